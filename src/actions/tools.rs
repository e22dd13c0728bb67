//! `q --list-tools`: the configured commands, and what the configured tool servers offer, one tool a line.

use std::fmt::Write as _;
use std::io::{self, IsTerminal};

use serde::Serialize;
use serde_json::Value;

use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::interrupt::Interrupts;
use crate::output::print;
use crate::settings::Settings;
use crate::tools::{Groups, Offer, Selection, Starting};

/// A tool in the JSON.
#[derive(Serialize)]
struct Listed {
    name: String,
    description: String,
    /// It changes nothing, as its server or its section says.
    reads: bool,
    /// q asks before it runs.
    asks: bool,
    schema: Value,
}

impl From<Offer> for Listed {
    fn from(offer: Offer) -> Listed {
        let Offer {
            shown,
            reads,
            allowed,
            ..
        } = offer;
        Listed {
            name: shown.name,
            description: shown.description,
            reads,
            asks: !allowed,
            schema: shown.schema,
        }
    }
}

/// Prints the tools of the servers that `-t` names, else of all, with a note for each server that fails. They start in
/// `groups`.
///
/// # Errors
/// What is wrong with the configuration, or with a server that was named.
pub(crate) fn list(arguments: &Arguments, context: &Context, groups: &Groups) -> Result<(), Error> {
    let notes = &context.notes;
    let selection = Selection::typed(&arguments.tools)?;
    let settings = Settings::load(arguments, &context.environment, &context.configuration)?;
    let interrupts = Interrupts::new(notes.spinner());
    let starting = Starting::new(selection.as_ref(), &settings, &interrupts, groups, notes)?;
    if settings.tool_servers()?.is_empty() {
        let file = settings.file.display();
        notes.note(&format!(
            "no tool is configured; a section [tools.NAME] in {file} adds one"
        ));
    }
    let listed: Vec<Listed> = starting
        .list(notes)?
        .into_iter()
        .map(Listed::from)
        .collect();
    if arguments.json {
        let json =
            serde_json::to_string(&listed).map_err(|error| Error::file(error.to_string()))?;
        return print(&json);
    }
    print(&lines(&listed, io::stdout().is_terminal()))
}

/// Name, what a call does, whether it asks, first line of the description: in columns on a terminal, else between tabs.
fn lines(listed: &[Listed], in_columns: bool) -> String {
    let width = listed
        .iter()
        .map(|tool| tool.name.len())
        .max()
        .unwrap_or_default();
    let mut text = String::new();
    for Listed {
        name,
        description,
        reads,
        asks,
        ..
    } in listed
    {
        let does = if *reads { "reads" } else { "writes" };
        let asks = if *asks { "asks" } else { "runs" };
        let first = description
            .trim()
            .lines()
            .next()
            .unwrap_or_default()
            .replace('\t', " ");
        let _ = match in_columns {
            true => writeln!(text, "{name:width$}  {does:6}  {asks}  {first}"),
            false => writeln!(text, "{name}\t{does}\t{asks}\t{first}"),
        };
    }
    text
}
