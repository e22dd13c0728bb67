//! `q --list-tools`: the configured commands, and what the configured tool servers offer, one tool a line.

use serde_json::json;

use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::output::print_report;
use crate::settings::advice_to_add_tools;
use crate::text::escape::is_line_break;
use crate::text::one_line::on_one_line;
use crate::tools::{ProcessGroups, Selection, Toolbox};

/// Prints the tools that `-t` selects. Without it, prints all, with a note for each server that fails. The servers are
/// started in `groups`.
pub fn list(arguments: &Arguments, context: &Context, groups: &ProcessGroups) -> Result<(), Error> {
    let notes = &context.notes;
    let selection = Selection::from_option(&arguments.tools)?;
    let settings = context.settings(arguments)?;
    let toolbox = Toolbox::start(selection.as_ref(), &settings, context, groups)?;
    if settings.all_tool_servers()?.is_empty() {
        let advice = advice_to_add_tools(settings.file.as_deref());
        notes.note(&format!("no tool is configured; {advice}"));
    }
    let offers = toolbox.list(notes)?;
    let mut listed = Vec::new();
    let mut lines = String::new();
    for (offer, bounds) in offers {
        let tool = &offer.shown;
        let does = if offer.reads { "reads" } else { "writes" };
        let asks = if offer.allowed { "runs" } else { "asks" };
        let first_line = tool.description.trim().split(is_line_break).next();
        let about = first_line.unwrap_or_default().replace('\t', " ");
        lines += &format!("{}\t{does}\t{asks}\t{about}", tool.name);
        if let Some(bounds) = &bounds {
            let confined = on_one_line(&bounds.full_summary());
            lines += &format!("\t{confined}");
        }
        lines.push('\n');
        let mut row = json!({
            "name": tool.name,
            "description": tool.description,
            "reads": offer.reads,
            "asks": !offer.allowed,
            "schema": tool.schema,
        });
        if let Some(bounds) = &bounds {
            row["confined"] = bounds.to_json();
        }
        listed.push(row);
    }
    print_report(arguments.json, &listed.into(), &lines, notes.terminal())
}
