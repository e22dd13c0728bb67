//! The main job: q turns words and input into a question, adds the conversation, asks the provider, prints the answer
//! and saves the exchange.

mod delivery;
mod input;
mod prompt;
mod question;
mod record;
mod screen;
mod session;
mod turn;
mod window;

use std::io::{self, IsTerminal, Read};

use time::OffsetDateTime;

use crate::context::Context;
use crate::error::{Error, Kind};
use crate::flags::Arguments;
use crate::interrupt::Interrupts;
use crate::manual;
use crate::output::{Notes, print};
use crate::server::target::Target;
use crate::session::timestamp::Timestamp;
use crate::settings::Settings;
use crate::shape::Shape;
use crate::tools::{Groups, Selection, Starting};
use delivery::{Delivery, Output};
use input::Reader;
use record::Record;
use turn::{Asking, Turn};
use window::Window;

/// Asks one question, in the conversation that the arguments choose. Tool servers start in `groups`.
///
/// # Errors
/// Why there is no answer, or why it is incomplete.
pub(crate) fn ask(arguments: &Arguments, context: &Context, groups: &Groups) -> Result<(), Error> {
    let notes = &context.notes;
    let words = question::joined(&arguments.words, notes);
    let says_nothing = words.trim().is_empty();
    // Asking the last question unchanged reuses its input.
    let is_unchanged = arguments.again && says_nothing && arguments.attach.is_empty();
    let reads = !arguments.no_stdin && !io::stdin().is_terminal() && !is_unchanged;
    if !reads && says_nothing && !arguments.again && arguments.attach.is_empty() {
        return Err(no_question());
    }
    let selection = Selection::typed(&arguments.tools)?;
    let shape = arguments.schema.as_deref().map(shape).transpose()?;
    let settings = Settings::load(arguments, &context.environment, &context.configuration)?;
    if arguments.system.as_ref().is_some_and(|system| system.to_str().is_none()) {
        input::note_replaced("the system prompt", notes);
    }
    let known = session::known_target(arguments, &settings, context)?;
    if !arguments.attach.is_empty() {
        question::note_file_among_words(&arguments.words, notes);
    }
    let interrupts = Interrupts::new(notes.sign());
    let reader = Reader::read_files(&arguments.attach, arguments.no_stdin, notes)?;
    // Servers start while input is read.
    let start = |tools: &Selection| Starting::new(tools, &settings, &interrupts, groups, notes);
    let starting = selection.as_ref().map(start).transpose()?;
    let (files, input) = reader.finish(reads)?;
    if let Some(input) = input.as_ref().filter(|_| !says_nothing) {
        question::note_empty(input, notes);
    }
    let (input, question) = match arguments.again {
        true => (input, None),
        false => (None, Some(question::compose(&files, input, &words).ok_or_else(no_question)?)),
    };
    let asked = Timestamp::new(OffsetDateTime::now_utc());
    let (mut target, session) = session::open(arguments, known, &settings, context, asked)?;
    let question = question.unwrap_or_else(|| question::again(session.last_question().as_ref(), &files, input, &words));
    // The question has its own copy, and they may have megabytes.
    drop(files);
    let toolbox = match starting {
        Some(starting) => starting.finish(arguments.yes, notes)?,
        None if session.tools().is_empty() => None,
        None => remembered(session.tools(), notes)
            .and_then(|tools| tools.map(|tools| start(&tools)?.finish(arguments.yes, notes)).transpose())
            .map_err(|error| error.advise_also(REMEMBERED))?
            .flatten(),
    };
    let model = model(&mut target, arguments.dry_run, notes)?;
    let given = arguments.system.as_ref().map(|system| system.to_string_lossy().into_owned());
    let system = given.clone().or_else(|| session.system().cloned());
    let system = system.unwrap_or_else(|| system_prompt(&settings, asked));
    let tools = selection.as_ref().map(Selection::names);
    let committer = session.committer(&target, &model, given, tools, asked, &settings.values);
    let which = session.which();
    let window = Window::new(session.window, &settings.values);
    window.report_limit(&settings.values, notes);
    window.report_hand_over(session.handed_to.as_deref(), notes);
    let stream = !arguments.no_stream;
    let refuses_storage = target.stores_by_default();
    let settings = &settings;
    let with_tools = toolbox.is_some();
    let output = Output::of(arguments, shape.clone(), context.wraps(&settings.values));
    // Not every API accepts tools and a shape together.
    let can_enforce = |shape: &Shape| !with_tools && target.provider().api.can_enforce(shape);
    let asked_for = |shape: Shape| if can_enforce(&shape) { (shape, Asking::ByApi) } else { (shape, Asking::InPrompt) };
    let mut turn = Turn {
        target: &target,
        model,
        system,
        window,
        question,
        settings,
        refuses_storage,
        stream,
        toolbox,
        steps: Vec::new(),
        cut_results: false,
        shape: shape.map(asked_for),
    };
    if arguments.dry_run {
        turn.report(notes);
        return print(&turn.body_to_show(io::stdout().is_terminal())?).inspect(|()| groups.be_patient());
    }
    let record = Record::new(turn.question.clone(), committer, notes.clone());
    let delivery = Delivery::new(output, with_tools, record, which, interrupts, notes)?;
    turn.run(delivery, notes).inspect(|()| groups.be_patient())
}

/// The most bytes that q reads of a schema file.
const LONGEST_SCHEMA: u64 = 1_000_000;

/// What `--schema` takes.
const SHAPES: &str =
    "SPEC is a JSON Schema, the path of a .json file, or fields: 'name, age int, tags list: what they like'";

/// The shape that `--schema` asks for.
fn shape(spec: &str) -> Result<Shape, Error> {
    let wrong = |reason: String| Error::usage(format!("--schema: {reason}")).advise(SHAPES);
    if spec.trim_start().starts_with('{') {
        return Shape::from_json(spec).map_err(wrong);
    }
    if !spec.ends_with(".json") {
        return Shape::from_short(spec).map_err(wrong);
    }
    let mut text = String::new();
    let read = fs_err::File::open(spec).and_then(|file| file.take(LONGEST_SCHEMA + 1).read_to_string(&mut text));
    match read {
        Ok(length) if length as u64 > LONGEST_SCHEMA => {
            Err(wrong(format!("{spec}: it has more than {LONGEST_SCHEMA} bytes")))
        }
        Ok(_) => Shape::from_json(&text).map_err(|reason| wrong(format!("{spec}: {reason}"))),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(wrong(format!("{spec}: it is not UTF-8"))),
        // The last description may end like a file name, too.
        Err(error) => Shape::from_short(spec).map_err(|_| wrong(error.to_string())),
    }
}

/// The model to ask. A dry run asks nobody for it, except a server on this machine.
fn model(target: &mut Target, is_dry_run: bool, notes: &Notes) -> Result<String, Error> {
    if is_dry_run {
        return target.model_without_key(notes);
    }
    target.fetch_key(notes)?;
    target.model(notes)
}

/// How to go on without tools that fail.
const REMEMBERED: &str = "the conversation remembers these tools: -t none drops them, -t NAME chooses others";

/// The tools that the conversation remembers, if a person is there to see what they do.
fn remembered(names: &[String], notes: &Notes) -> Result<Option<Selection>, Error> {
    if !io::stdin().is_terminal() {
        let names = names.join(",");
        notes.note(&format!(
            "the tools of this conversation are not used, because standard input is not a terminal; -t {names} uses them"
        ));
        return Ok(None);
    }
    let tools = Selection::parse(names)
        .map_err(|reason| Error::new(Kind::Session, format!("the conversation's tools: {reason}")))?;
    Ok(Some(tools))
}

fn no_question() -> Error {
    Error::usage("there is no question").advise(format!("usage:\n{}q -h lists the options", manual::SYNOPSIS))
}

/// The system prompt of the settings, else the built-in one.
fn system_prompt(settings: &Settings, now: Timestamp) -> String {
    let built_in = || prompt::system(std::env::consts::OS, settings.environment.get("SHELL"), now.date());
    settings.values.system.clone().unwrap_or_else(built_in)
}
