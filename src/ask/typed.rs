//! What was typed, checked as far as it can be before q waits for input.

use std::io::{self, IsTerminal, Read};

use super::input::{self, Reader};
use super::question::{self, Given};
use super::session;
use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::manual;
use crate::output::Notes;
use crate::server::target::Target;
use crate::settings::Settings;
use crate::shape::Shape;
use crate::tools::Selection;

/// The most bytes that q reads of a schema file.
const MAX_SCHEMA: u64 = 1_000_000;

/// What `--schema` takes.
const SHAPES: &str =
    "SPEC is a JSON Schema, the path of a .json file, or fields: 'name, age int, tags list: what they like'";

/// A question as it was typed, and its settings.
pub(super) struct Typed {
    words: String,
    /// Standard input is read.
    reads: bool,
    pub(super) selection: Option<Selection>,
    pub(super) shape: Option<Shape>,
    pub(super) settings: Settings,
    /// The server to ask; `None` if the conversation says which one it is.
    pub(super) known: Option<Target>,
}

impl Typed {
    /// Checks what was typed, and the settings.
    ///
    /// # Errors
    /// `Usage` or `Settings`: what is wrong; or there is no server to ask.
    pub(super) fn check(arguments: &Arguments, context: &Context) -> Result<Typed, Error> {
        let notes = &context.notes;
        let words = question::joined(&arguments.words, notes);
        let says_nothing = words.trim().is_empty();
        // ShapeEnforcement the last question unchanged reuses its input.
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
        Ok(Typed { words, reads, selection, shape, settings, known })
    }

    /// Reads standard input, after the files.
    ///
    /// # Errors
    /// `Input`: it cannot be used, or is too long. `Usage`: there is no question.
    pub(super) fn read(&self, reader: Reader, again: bool, notes: &Notes) -> Result<Given, Error> {
        let (files, input) = reader.finish(self.reads)?;
        if let Some(input) = input.as_ref().filter(|_| !self.words.trim().is_empty()) {
            question::note_empty(input, notes);
        }
        if again {
            return Ok(Given::Changes { files, input, words: self.words.clone() });
        }
        question::compose(&files, input, &self.words).map(Given::Question).ok_or_else(no_question)
    }
}

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
    let read = fs_err::File::open(spec).and_then(|file| file.take(MAX_SCHEMA + 1).read_to_string(&mut text));
    match read {
        Ok(length) if length as u64 > MAX_SCHEMA => Err(wrong(format!("{spec}: it has more than {MAX_SCHEMA} bytes"))),
        Ok(_) => Shape::from_json(&text).map_err(|reason| wrong(format!("{spec}: {reason}"))),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(wrong(format!("{spec}: it is not UTF-8"))),
        // The last description may end like a file name, too.
        Err(error) => Shape::from_short(spec).map_err(|_| wrong(error.to_string())),
    }
}

fn no_question() -> Error {
    Error::usage("there is no question").advise(format!("usage:\n{}q -h lists the options", manual::SYNOPSIS))
}
