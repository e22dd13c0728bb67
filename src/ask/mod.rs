//! The main job: q turns words and input into a question, adds the conversation, asks the provider, prints the answer
//! and saves the exchange.

mod checked;
mod delivery;
mod input;
mod known;
mod pattern;
mod prompt;
mod question;
mod record;
mod run;
mod screen;
mod session;
mod turn;
mod window;

use std::io::{self, IsTerminal};

use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::interrupt::Interrupts;
use crate::output::Notes;
use crate::server::target::Target;
use crate::session::Conversation;
use crate::settings::{Cached, Settings};
use crate::tools::{Groups, Selection, Starting, Toolbox};
use checked::CheckedArguments;
use input::Reader;
use run::Run;

/// Asks one question, in the conversation that the command line chooses. Tool servers start in `groups`.
pub fn ask(command_line: &Arguments, context: &Context, groups: &Groups) -> Result<(), Error> {
    let notes = &context.notes;
    let loaded = Settings::load(command_line, &context.environment, &context.configuration)?;
    let checked = CheckedArguments::new(loaded, notes)?;
    let settings = &checked.settings;
    let known_target = session::known_target(settings, context)?;
    let interrupts = Interrupts::new(notes.spinner());
    if let Some(target) = &known_target
        && checked.waits_for_input()
    {
        target.open_ahead(settings);
    }
    let arguments = &settings.typed;

    let reader = Reader::read_files(&arguments.attach, notes)?;
    let start = |tools| Starting::new(Some(tools), settings, context, &interrupts, groups);
    // Servers start while input is read.
    let mut starting = None;
    if let Some(tools) = &checked.selection {
        starting = Some(start(tools)?);
    }
    let draft = checked.read(reader, notes)?;

    let session = session::open(known_target, settings, context)?;
    let last_question = session.last_question();
    let question = draft.into_question(last_question.as_ref());

    let mut toolbox = None;
    let finish = |servers| finish(servers, &session.target, settings, notes);
    if let Some(starting) = starting {
        toolbox = finish(starting)?;
    } else if let Some(tools) = remembered_tools(session.intent.read(), settings, notes)? {
        let finished = start(&tools).and_then(finish);
        toolbox = finished.map_err(|error| error.advise_also(REMEMBERED))?;
    }

    let mut run = Run::resolve(checked, question, session, toolbox, context)?;
    let result = run.ask(interrupts);
    if result.is_ok() {
        groups.be_patient();
    }
    // The run has the tool servers, which end here.
    drop(run);
    result
}

/// Waits for tool servers, and connects to the server of the model meanwhile.
fn finish(
    servers: Starting,
    target: &Target,
    settings: &Settings,
    notes: &Notes,
) -> Result<Option<Toolbox>, Error> {
    if servers.are_awaited() {
        target.open_ahead(settings);
    }
    servers.finish(settings.typed.yes, notes)
}

/// Advice for remembered tools that fail.
const REMEMBERED: &str =
    "the conversation remembers these tools: -t none drops them, -t NAME chooses others";

/// The tools that the conversation remembers. Without a person at the terminal they are not used, nor where the answer may
/// be known.
fn remembered_tools(
    conversation: Option<&Conversation>,
    settings: &Settings,
    notes: &Notes,
) -> Result<Option<Selection>, Error> {
    let names = match conversation {
        Some(conversation) if !conversation.tools.is_empty() => &conversation.tools,
        _ => return Ok(None),
    };
    let reason = if settings.cached() != Cached::Off {
        "no answer that needs them can be known".to_owned()
    } else if !io::stdin().is_terminal() {
        let names = names.join(",");
        format!("standard input is not a terminal; -t {names} uses them")
    } else {
        let tools = Selection::parse(names).map_err(Error::usage);
        return Ok(Some(tools?));
    };
    notes.note(&format!(
        "the tools of this conversation are not used: {reason}"
    ));
    Ok(None)
}
