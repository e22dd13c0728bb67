//! `q --models`: lists the provider's models, one per line.

use serde_json::json;

use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::interrupt::Interrupts;
use crate::output::print;
use crate::server::discover;
use crate::settings::Settings;

/// Prints the models of the provider that a question would go to.
pub fn list(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let notes = &context.notes;
    let _interrupts = Interrupts::new(notes.spinner());
    let settings = Settings::load(arguments, &context.environment, &context.configuration)?;
    let target = discover::find(&settings, None, notes)?;
    target.fetch_key(notes)?;
    let models = target.models(notes)?;
    notes.spinner().stop();
    if models.is_empty() {
        return Err(target.lists_no_models(notes));
    }
    let mut names = Vec::new();
    for model in models {
        names.push(model.id);
    }
    if arguments.json {
        return print(&json!(names).to_string());
    }
    print(&names.join("\n"))
}
