//! Plans a question: checks what was typed as far as that needs no waiting, and decides what follows from it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, IsTerminal};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use super::answer_form::Output;
use super::input::{self, InputReader};
use super::question::{QuestionDraft, non_blank};
use super::verdict::no_statement;
use crate::error::Error;
use crate::flags::Arguments;
use crate::manual;
use crate::output::Notes;
use crate::settings::{Cached, Settings};
use crate::tools::Selection;
use crate::unix;

/// What is decided about a question before its input is read.
pub struct Plan<'a> {
    pub settings: &'a Settings,
    words: Option<String>,
    reads_stdin: bool,
    /// The tools of `-t`, if it is given.
    pub selection: Option<Selection>,
    /// A system prompt that stays with the conversation.
    pub system: Option<String>,
    pub output: Output,
}

impl Plan<'_> {
    pub fn new<'a>(settings: &'a Settings, notes: &Notes) -> Result<Plan<'a>, Error> {
        let text = |typed: OsString, name| input::text(typed.into_encoded_bytes(), name, notes);
        let arguments = &settings.typed;
        refuse_file_as_word(arguments)?;
        check_cached(settings)?;
        let words = text(arguments.words.join(OsStr::new(" ")), "the command line");
        let words = non_blank(words);
        if arguments.is && words.is_none() && !arguments.again {
            return Err(no_statement());
        }
        let reads_stdin = reads_stdin(settings, words.is_some(), notes)?;
        let selection = Selection::from_option(&arguments.tools)?;
        let output = Output::new(settings)?;
        let system = arguments.system.clone();
        Ok(Plan {
            settings,
            words,
            reads_stdin,
            selection,
            system: system.map(|system| text(system, "the system prompt")),
            output,
        })
    }

    /// Whether q may have to wait for standard input or a file.
    pub fn waits_for_input(&self) -> bool {
        let mut files = self.settings.typed.attach.iter();
        let reads_pipe = self.reads_stdin && input::may_wait(input::STDIN_PATH.as_ref());
        reads_pipe || files.any(|file| input::may_wait(file))
    }

    /// Reads standard input, after the files, and puts the question together.
    pub fn read_input(&self, files: InputReader, notes: &Notes) -> Result<QuestionDraft, Error> {
        let (files, input) = files.finish(self.reads_stdin)?;
        // A command that failed may be the reason.
        if let Some(input) = &input
            && input.trim().is_empty()
            && self.words.is_some()
            && let Ok(stdin) = fs::metadata(input::STDIN_PATH)
            && (stdin.is_file() || stdin.file_type().is_fifo())
        {
            notes.note("standard input was empty");
        }
        let draft = QuestionDraft::new(files, input, self.words.clone(), self.settings.typed.is);
        if !draft.says_something() && !self.settings.typed.again {
            return Err(no_question());
        }
        Ok(draft)
    }
}

/// Refuses a file as the first word: the shell makes several words of `-a *.rs`, but `-a` takes only one.
fn refuse_file_as_word(arguments: &Arguments) -> Result<(), Error> {
    let Some(word) = arguments.words.first() else {
        return Ok(());
    };
    if !arguments.words_follow_attach || !Path::new(word).is_file() {
        return Ok(());
    }
    let mut pattern = Path::new(word).with_file_name("*");
    if let Some(ending) = Path::new(word).extension() {
        pattern.set_extension(ending);
    }
    let pattern = pattern.display();
    let word = word.display();
    let error = format!("-a takes one file, so {word} would be a word of the question");
    Err(Error::usage(error).advise(format!(
        "put -a before each file, or a pattern in quotes: -a '{pattern}'\nif it is a word, put -- before it: -- {word}"
    )))
}

/// Refuses what known answers cannot serve: tools and searches, and `--again` where only they count.
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
    let is_spared = match settings.environment.get("Q_STDIN") {
        None => false,
        Some("none") => true,
        Some(other) => {
            return Err(Error::settings(format!(
                "Q_STDIN: the only value is none, not “{other}”"
            )));
        }
    };
    let has_nothing_else = !has_words && arguments.attach.is_empty();
    // The last question is asked again unchanged, with its own input.
    if arguments.again && has_nothing_else {
        return Ok(false);
    }
    let mut reads_stdin = !arguments.no_stdin && !io::stdin().is_terminal();
    if reads_stdin && is_spared {
        reads_stdin = false;
        // One of the files may be standard input.
        if unix::stdin_has_bytes() && !arguments.attach.iter().any(|file| input::is_stdin(file)) {
            notes.note(
                "Q_STDIN=none leaves standard input alone, where bytes are waiting; -a - reads them",
            );
        }
    }
    if has_nothing_else && !reads_stdin {
        return Err(no_question());
    }
    Ok(reads_stdin)
}

fn no_question() -> Error {
    let synopsis = manual::SYNOPSIS;
    let advice = format!("usage:\n{synopsis}q -h lists the options");
    Error::usage("there is no question").advise(advice)
}
