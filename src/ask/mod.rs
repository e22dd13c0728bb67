//! The main job: q turns words and input into a question, adds the conversation, asks the provider, prints the answer
//! and saves the exchange.

mod delivery;
mod input;
mod pattern;
mod plan;
mod prompt;
mod question;
mod record;
mod screen;
mod session;
mod turn;
mod typed;
mod window;

use std::io::{self, IsTerminal};

use time::OffsetDateTime;

use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::flags::Arguments;
use crate::interrupt::Interrupts;
use crate::output::Notes;
use crate::session::timestamp::Timestamp;
use crate::settings::Settings;
use crate::tools::{Groups, Selection, Starting};
use input::Reader;
use plan::Plan;
use typed::Typed;

/// Asks one question, in the conversation that the arguments choose. Tool servers start in `groups`.
///
/// # Errors
/// Why there is no answer, or why it is incomplete.
pub(crate) fn ask(arguments: &Arguments, context: &Context, groups: &Groups) -> Result<(), Error> {
    let notes = &context.notes;
    let settings = Settings::load(arguments, &context.environment, &context.configuration)?;
    let arguments = &settings.typed.clone();
    if let Some(role) = &arguments.role {
        let line = format!("role {role}");
        if arguments.dry_run {
            notes.note(&line)
        } else {
            notes.detail(|| line)
        }
    }
    let mut typed = Typed::check(arguments, settings, context)?;
    let known = typed.known.take();
    let interrupts = Interrupts::new(notes.spinner());
    let reader = Reader::read_files(&arguments.attach, arguments.no_stdin, notes)?;
    // Servers start while input is read.
    let start =
        |tools: &Selection| Starting::new(Some(tools), &typed.settings, &interrupts, groups, notes);
    let starting = typed.selection.as_ref().map(start).transpose()?;
    let given = typed.read(reader, arguments.again, notes)?;
    let asked = Timestamp::new(OffsetDateTime::now_utc());
    let session = session::open(arguments, known, &typed.settings, context, asked)?;
    if arguments.web {
        session.target.check_web()?;
    }
    session.report(notes);
    let remembered = session
        .conversation
        .as_ref()
        .map_or(&[][..], |conversation| &conversation.tools);
    let toolbox = match starting {
        Some(starting) => starting.finish(arguments.yes, notes)?,
        None => remembered_tools(remembered, notes)
            .and_then(|tools| {
                tools
                    .map(|tools| start(&tools)?.finish(arguments.yes, notes))
                    .transpose()
            })
            .map_err(|error| error.advise_also(REMEMBERED))?
            .flatten(),
    };
    let mut plan = Plan::resolve(arguments, context, typed, given, session, toolbox, asked)?;
    let done = if arguments.dry_run {
        plan.print_request(notes)
    } else {
        plan.run(interrupts, notes)
    };
    // The servers end with the plan.
    done.inspect(|()| groups.be_patient())
}

/// What to do if remembered tools fail.
const REMEMBERED: &str =
    "the conversation remembers these tools: -t none drops them, -t NAME chooses others";

/// The tools that the conversation remembers. They are used only where a person can see what they do.
fn remembered_tools(names: &[String], notes: &Notes) -> Result<Option<Selection>, Error> {
    if names.is_empty() {
        return Ok(None);
    }
    if !io::stdin().is_terminal() {
        let names = names.join(",");
        notes.note(&format!(
            "the tools of this conversation are not used, because standard input is not a terminal; -t {names} uses them"
        ));
        return Ok(None);
    }
    let tools = Selection::parse(names).map_err(|reason| {
        Error::new(
            ErrorKind::Session,
            format!("the conversation's tools: {reason}"),
        )
    })?;
    Ok(Some(tools))
}
