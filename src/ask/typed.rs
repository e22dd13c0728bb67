//! Checks what was typed, as far as that is possible before q waits for input.

use std::io::{self, IsTerminal};
use std::path::Path;

use super::input::{self, Reader};
use super::question::{self, Given};
use super::session;
use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::manual;
use crate::output::Notes;
use crate::server::target::Target;
use crate::settings::{MAX_TEXT, Settings, read_text};
use crate::shape::Shape;
use crate::tools::Selection;

/// The forms of SPEC, for errors.
const SHAPES: &str = "SPEC is a JSON Schema, the path of a .json file, or fields: 'name, age int, tags list: what they like'";

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
    /// Checks what was typed.
    ///
    /// # Errors
    /// `Usage` or `Settings`: what is wrong; or there is no server to ask.
    pub(super) fn check(
        arguments: &Arguments,
        settings: Settings,
        context: &Context,
    ) -> Result<Typed, Error> {
        let notes = &context.notes;
        question::refuse_file_as_word(arguments)?;
        let words = question::joined(&arguments.words, notes);
        let says_nothing = words.trim().is_empty();
        // The last question, asked again unchanged, brings its own input.
        let is_unchanged = arguments.again && says_nothing && arguments.attach.is_empty();
        let reads = !arguments.no_stdin && !io::stdin().is_terminal() && !is_unchanged;
        if !reads && says_nothing && !arguments.again && arguments.attach.is_empty() {
            return Err(no_question());
        }
        let selection = Selection::from_option(&arguments.tools)?;
        let shape = arguments.schema.as_deref().map(shape).transpose()?;
        if arguments
            .system
            .as_ref()
            .is_some_and(|system| system.to_str().is_none())
        {
            input::note_replaced("the system prompt", notes);
        }
        let known = session::known_target(arguments, &settings, context)?;
        if let Some(target) = known.as_ref().filter(|_| arguments.web) {
            target.check_web()?;
        }
        Ok(Typed {
            words,
            reads,
            selection,
            shape,
            settings,
            known,
        })
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
            return Ok(Given::Changes {
                files,
                input,
                words: self.words.clone(),
            });
        }
        question::compose(&files, input, &self.words)
            .map(Given::Question)
            .ok_or_else(no_question)
    }
}

/// The shape that `--schema` asks for.
fn shape(spec: &str) -> Result<Shape, Error> {
    let wrong = |reason: String| Error::usage(format!("--schema: {reason}")).advise(SHAPES);
    if spec.trim_start().starts_with('{') || !spec.ends_with(".json") {
        return Shape::from_spec(spec).map_err(wrong);
    }
    match read_text(Path::new(spec), MAX_TEXT) {
        Ok(text) => Shape::from_json(&text).map_err(|reason| wrong(format!("{spec}: {reason}"))),
        // The last description may end like a file name, too.
        Err(reason) => Shape::from_spec(spec).map_err(|_| wrong(reason)),
    }
}

fn no_question() -> Error {
    Error::usage("there is no question").advise(format!(
        "usage:\n{}q -h lists the options",
        manual::SYNOPSIS
    ))
}
