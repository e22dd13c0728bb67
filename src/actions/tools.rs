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

/// A tool in the list.
#[derive(Serialize)]
struct ListedTool {
    name: String,
    description: String,
    /// It changes nothing, as its server or its section says.
    reads: bool,
    /// q asks before it runs.
    asks: bool,
    schema: Value,
}

impl ListedTool {
    fn new(offer: Offer) -> ListedTool {
        ListedTool {
            name: offer.shown.name,
            description: offer.shown.description,
            reads: offer.reads,
            asks: !offer.allowed,
            schema: offer.shown.schema,
        }
    }
}

/// Prints the tools of the servers that `-t` names, else of all, with a note for each server that fails. The servers are
/// started in `groups`.
pub fn list(arguments: &Arguments, context: &Context, groups: &Groups) -> Result<(), Error> {
    let notes = &context.notes;
    let selection = Selection::from_option(&arguments.tools)?;
    let settings = Settings::load(arguments, &context.environment, &context.configuration)?;
    let interrupts = Interrupts::new(notes.spinner());
    let starting = Starting::new(selection.as_ref(), &settings, context, &interrupts, groups)?;
    if settings.tool_servers()?.is_empty() {
        let file = settings.file.display();
        notes.note(&format!(
            "no tool is configured; a section [tools.NAME] in {file} adds one"
        ));
    }
    let offers = starting.list(notes)?;
    let mut listed = Vec::new();
    for offer in offers {
        listed.push(ListedTool::new(offer));
    }
    if arguments.json {
        let json = serde_json::to_string(&listed);
        return print(&json.map_err(Error::file)?);
    }
    print(&lines(&listed, io::stdout().is_terminal()))
}

/// Name, what a call does, whether it asks, first line of the description: in columns on a terminal, else between tabs.
fn lines(listed: &[ListedTool], in_columns: bool) -> String {
    let mut width = 0;
    for tool in listed {
        width = width.max(tool.name.len());
    }
    let mut text = String::new();
    for tool in listed {
        let name = &tool.name;
        let does = if tool.reads { "reads" } else { "writes" };
        let asks = if tool.asks { "asks" } else { "runs" };
        let first_line = tool.description.trim().lines().next();
        let about = first_line.unwrap_or_default().replace('\t', " ");
        if in_columns {
            let _ = writeln!(text, "{name:width$}  {does:6}  {asks}  {about}");
        } else {
            let _ = writeln!(text, "{name}\t{does}\t{asks}\t{about}");
        }
    }
    text
}
