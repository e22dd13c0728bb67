//! `q --list-tools`: the configured commands, and what the configured tool servers offer, one tool a line.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::message::Tool;
use crate::output::print;
use crate::settings::Settings;
use crate::tools::{Groups, Offer, Selection, Starting};

/// Prints the tools of the servers that `-t` names, else of all, with a note for each server that fails. The servers are
/// started in `groups`.
pub fn list(arguments: &Arguments, context: &Context, groups: &Groups) -> Result<(), Error> {
    let notes = &context.notes;
    let selection = Selection::from_option(&arguments.tools)?;
    let settings = Settings::load(arguments, &context.environment, &context.configuration)?;
    let starting = Starting::new(selection.as_ref(), &settings, context, groups)?;
    if settings.tool_servers()?.is_empty() {
        let file = settings.file.display();
        notes.note(&format!(
            "no tool is configured; a section [tools.NAME] in {file} adds one"
        ));
    }
    let offers = starting.list(notes)?;
    if !arguments.json {
        return print(&lines(&offers));
    }
    let mut listed = Vec::new();
    for offer in offers {
        let Tool {
            name,
            description,
            schema,
        } = offer.shown;
        listed.push(json!({
            "name": name,
            "description": description,
            "reads": offer.reads,
            "asks": !offer.allowed,
            "schema": schema,
        }));
    }
    print(&Value::from(listed).to_string())
}

/// Name, what a call does, whether it asks, first line of the description, between tabs.
fn lines(offers: &[Offer]) -> String {
    let mut text = String::new();
    for offer in offers {
        let name = &offer.shown.name;
        let does = if offer.reads { "reads" } else { "writes" };
        let asks = if offer.allowed { "runs" } else { "asks" };
        let first_line = offer.shown.description.trim().lines().next();
        let about = first_line.unwrap_or_default().replace('\t', " ");
        let _ = writeln!(text, "{name}\t{does}\t{asks}\t{about}");
    }
    text
}
