//! The main job: q turns words and input into a question, adds the conversation, asks the provider, prints the answer
//! and saves the exchange.

mod checked;
mod delivery;
mod input;
mod known;
mod pattern;
mod question;
mod record;
mod request;
mod run;
mod screen;
mod session;
mod turn;
mod window;

use std::io::{self, IsTerminal};

use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::output::Notes;
use crate::settings::{Cached, Settings};
use crate::text::one_line::{on_one_line, quoted};
use crate::tools::{Groups, Selection, Starting};
use checked::CheckedArguments;
use input::Reader;
use run::Run;
use session::Session;

/// Asks one question, in the conversation that the command line chooses. Tool servers start in `groups`.
pub fn ask(command_line: &Arguments, context: &Context, groups: &Groups) -> Result<(), Error> {
    let notes = &context.notes;
    let loaded = Settings::load(command_line, &context.environment, &context.configuration)?;
    let checked = CheckedArguments::new(loaded, notes)?;
    let settings = &checked.settings;
    let waits = checked.waits_for_input();
    let known_target = session::known_target(settings, context, waits)?;
    if let Some(target) = &known_target
        && waits
    {
        target.open_ahead(settings);
    }

    let reader = Reader::read_files(&settings.typed.attach, notes)?;
    let start = |tools| Starting::new(Some(tools), settings, context, groups);
    // Servers start while input is read.
    let starting = checked.selection.as_ref().map(start).transpose()?;
    let draft = checked.read(reader, notes)?;

    let session = session::open(known_target, settings, context)?;
    let last_question = session::last_question(&session.intent);
    let question = draft.into_question(last_question.as_ref());

    let finish = |servers: Starting| {
        if servers.are_awaited() {
            session.target.open_ahead(settings);
        }
        servers.finish(settings.typed.yes, notes)
    };
    let mut toolbox = None;
    if let Some(starting) = starting {
        toolbox = finish(starting)?;
    } else if let Some(conversation) = session.intent.read()
        && let Some(tools) = remembered_tools(&conversation.tools, &session, settings, notes)?
    {
        let finished = start(&tools).and_then(finish);
        toolbox = finished.map_err(|error| error.advise_also(REMEMBERED))?;
    }

    let mut run = Run::resolve(checked, question, session, toolbox, context)?;
    let result = run.ask(context);
    // The run has the tool servers, which end when this returns.
    if result.is_ok() {
        groups.be_patient();
    }
    result
}

/// Advice for remembered tools that fail.
const REMEMBERED: &str =
    "the conversation remembers these tools: -t none drops them, -t NAME chooses others";

/// The most characters of the names of tools that a note shows.
const MAX_NAMES: usize = 200;

/// The tools that the conversation remembers. Without a person at the terminal they are not used, nor where the answer may
/// be known, nor where somebody else may have named them.
fn remembered_tools(
    names: &[String],
    session: &Session,
    settings: &Settings,
    notes: &Notes,
) -> Result<Option<Selection>, Error> {
    if names.is_empty() {
        return Ok(None);
    }
    let reason = if settings.cached() != Cached::Off {
        "no answer that needs them can be known".to_owned()
    } else if let Some(file) = session.file_elsewhere() {
        let mut names = on_one_line(&names.join(","));
        if let Some((end, _)) = names.char_indices().nth(MAX_NAMES) {
            names.replace_range(end.., "…");
        }
        let (file, names) = (file.display(), quoted(&names));
        format!("{file} names them, and it may have come from somebody else; -t {names} uses them")
    } else if !io::stdin().is_terminal() {
        let names = names.join(",");
        format!("standard input is not a terminal; -t {names} uses them")
    } else {
        let tools = Selection::parse(names);
        let tools = tools.map_err(|reason| Error::usage(reason).advise(REMEMBERED))?;
        return Ok(Some(tools));
    };
    notes.note(&format!(
        "the tools of this conversation are not used: {reason}"
    ));
    Ok(None)
}
