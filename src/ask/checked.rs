//! Checks what was typed, as far as that is possible before q waits for input.

use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal};
use std::os::unix::fs::FileTypeExt;

use super::input::{self, Reader};
use super::question::{self, Draft};
use crate::error::Error;
use crate::manual;
use crate::output::Notes;
use crate::settings::{Cached, MAX_TEXT, Settings, read_text};
use crate::shape::Shape;
use crate::tools::Selection;

/// The forms of SPEC, for errors.
const SHAPES: &str = "SPEC is a JSON Schema, the path of a .json file, or fields: 'name, age int, tags list: what they like'";

/// The arguments of a question, and what follows from them before its input is read.
pub struct CheckedArguments {
    words: Option<String>,
    reads_stdin: bool,
    pub selection: Option<Selection>,
    pub shape: Option<Shape>,
    pub settings: Settings,
}

impl CheckedArguments {
    pub fn new(settings: Settings, notes: &Notes) -> Result<CheckedArguments, Error> {
        let arguments = &settings.typed;
        question::refuse_file_as_word(arguments)?;
        check_cached(&settings)?;
        let words = question::joined(&arguments.words, notes);
        let reads_stdin = reads_stdin(&settings, words.is_some(), notes)?;
        let selection = Selection::from_option(&arguments.tools)?;
        let shape = match &arguments.schema {
            Some(spec) => Some(read_shape(spec)?),
            None => None,
        };
        if let Some(system) = &arguments.system
            && system.to_str().is_none()
        {
            input::note_replaced("the system prompt", notes);
        }
        Ok(CheckedArguments {
            words,
            reads_stdin,
            selection,
            shape,
            settings,
        })
    }

    /// Whether q may have to wait for standard input or a file.
    pub fn waits_for_input(&self) -> bool {
        let is_pipe = |name: &OsString| {
            let metadata = fs::metadata(name);
            metadata.is_ok_and(|metadata| metadata.file_type().is_fifo())
        };
        let reads_pipe = self.reads_stdin && input::may_wait(input::stdin_type());
        reads_pipe || self.settings.typed.attach.iter().any(is_pipe)
    }

    /// Reads standard input, after the files, and puts the question together.
    pub fn read(&self, reader: Reader, notes: &Notes) -> Result<Draft, Error> {
        let (files, input) = reader.finish(self.reads_stdin)?;
        if let Some(input) = &input
            && self.words.is_some()
        {
            question::note_empty(input, notes);
        }
        let draft = Draft::new(files, input, self.words.clone());
        if !draft.says_something() && !self.settings.typed.again {
            return Err(no_question());
        }
        Ok(draft)
    }
}

/// Refuses what cannot be had where only known answers count.
fn check_cached(settings: &Settings) -> Result<(), Error> {
    let arguments = &settings.typed;
    let is_only = settings.values.cached == Cached::Only;
    let name = if is_only { "cached = only" } else { "--cached" };
    if is_only && arguments.again {
        let message = format!("--again asks anew, and {name} asks no server");
        return Err(Error::usage(message));
    }
    if settings.wants_results() && (is_only || arguments.cached) {
        let message = format!(
            "{name} cannot be used with -t or -w: no request shows what tools and searches will return"
        );
        return Err(Error::usage(message));
    }
    Ok(())
}

/// Whether standard input is read. It is an error if nothing can have the question.
fn reads_stdin(settings: &Settings, has_words: bool, notes: &Notes) -> Result<bool, Error> {
    let arguments = &settings.typed;
    let is_spared = input::stdin_is_spared(&settings.environment)?;
    let has_nothing_else = !has_words && arguments.attach.is_empty();
    // The last question is asked again unchanged, with its own input.
    if arguments.again && has_nothing_else {
        return Ok(false);
    }
    let mut reads_stdin = !arguments.no_stdin && !io::stdin().is_terminal();
    if reads_stdin && is_spared {
        reads_stdin = false;
        // One of the files may be standard input.
        if !arguments.attach.iter().any(|file| input::is_stdin(file)) {
            input::note_spared(notes);
        }
    }
    if has_nothing_else && !reads_stdin {
        return Err(no_question());
    }
    Ok(reads_stdin)
}

/// Reads the shape that `--schema` asks for.
fn read_shape(spec: &str) -> Result<Shape, Error> {
    let shape = if spec.ends_with(".json") {
        let named = |reason| format!("{spec}: {reason}");
        let text = read_text(spec.as_ref(), MAX_TEXT);
        text.and_then(|text| Shape::from_json(&text).map_err(named))
    } else {
        Shape::from_spec(spec)
    };
    shape.map_err(|reason| {
        let error = format!("--schema: {reason}");
        Error::usage(error).advise(SHAPES)
    })
}

fn no_question() -> Error {
    let synopsis = manual::SYNOPSIS;
    let advice = format!("usage:\n{synopsis}q -h lists the options");
    Error::usage("there is no question").advise(advice)
}
