//! `q --models`: lists the provider's models, one per line.

use serde_json::json;

use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::output::print_report;
use crate::server::discover;
use crate::server::whom::Claim;

/// Prints the models of the provider that a question would go to.
pub fn list(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let notes = &context.notes;
    let settings = context.settings(arguments)?;
    let target = discover::find_server_with_note(&settings, Claim::None, notes)?;
    let models = target.models(notes)?;
    notes.spinner().stop();
    let names = Vec::from_iter(models.into_iter().map(|model| model.id));
    // One a line; all else goes into a pipe as it came.
    let lines = Vec::from_iter(names.iter().map(|name| name.replace('\n', " ")));
    let text = lines.join("\n");
    print_report(arguments.json, &json!(names), &text, notes.terminal())
}
