//! Makes the system prompt of a question.

use std::env::consts::OS;

use time::OffsetDateTime;

use super::answer_form::{Form, Output};
use super::place::Place;
use super::plan::Plan;
use crate::settings::{Cached, Settings};
use crate::text::fence;
use crate::tools::Toolbox;

/// Returns the system prompt, with what the tool servers say of their tools.
pub fn prompt(plan: &Plan, output: &Output, place: &Place, toolbox: Option<&Toolbox>) -> String {
    let prompt = without_tools(plan, output, place);
    let instructions = toolbox.map_or("", |toolbox| &toolbox.instructions);
    fence::join([prompt.as_str(), instructions])
}

/// Returns the one of the command line, the conversation's own, that of the settings, or the built-in one.
fn without_tools(plan: &Plan, output: &Output, place: &Place) -> String {
    let continued = place.intent.continued();
    let kept = continued.and_then(|conversation| conversation.system.as_ref());
    let set = plan.system.as_ref().or(kept);
    let set = set.or(plan.settings.values.system.as_ref());
    set.cloned()
        .unwrap_or_else(|| built_in(output, plan.settings))
}

fn built_in(output: &Output, settings: &Settings) -> String {
    let form = match output.form {
        Form::Code => {
            "Only code is taken from the answer: put all of it into one fenced code block."
        }
        Form::Prose | Form::Shaped(_) | Form::Items(..) | Form::Verdict(_) => {
            "Answer in plain text for a terminal, briefly and directly, without Markdown; put code and commands into \
             fenced code blocks only where they are asked for."
        }
    };
    let mut system = format!("You answer questions from a Unix command line. {form}");
    // A cached answer must serve tomorrow, and elsewhere.
    if settings.caching == Cached::Off {
        system += &format!(" The user's operating system is {OS}");
        let shell = settings.environment.get("SHELL").unwrap_or_default();
        let (_, name) = shell.rsplit_once('/').unwrap_or(("", shell));
        if !name.is_empty() {
            system += &format!(", shell {name}");
        }
        let today = OffsetDateTime::now_utc().date();
        system += &format!(". Today is {today} (UTC).");
    }
    system
}
