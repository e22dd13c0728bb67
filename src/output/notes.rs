//! Writes q's own messages to standard error: notes, errors and details, as many as the user wants.

use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, MutexGuard};

use super::note_layout::NotePlace;
use super::quote::Quote;
use super::spinner::Spinner;
use super::stderr::write_stderr;
use super::terminal::Terminal;
use crate::error::{Error, ErrorDisplay};
use crate::text::one_line::without_breaks;
use crate::threads::lock;
use crate::unix;

/// The amount of messages that the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verbosity {
    /// Errors alone (`-q`).
    Errors,
    #[default]
    Notes,
    /// Notes, details and the model's reasoning (`-v`).
    Details,
}

impl Verbosity {
    /// Returns the verbosity by both options, of which `-q` counts more.
    pub fn of(quiet: bool, verbose: bool) -> Verbosity {
        if quiet {
            Verbosity::Errors
        } else if verbose {
            Verbosity::Details
        } else {
            Verbosity::Notes
        }
    }
}

/// A writer of q's messages, as many as the user wants. If standard error cannot be written, q continues without them.
#[derive(Clone, Default)]
pub struct Notes {
    verbosity: Verbosity,
    spinner: Spinner,
    terminal: Terminal,
    /// The reasoning of the model, as far as it is shown. Locked while anything is written: whether a line is open must still be
    /// true when the next bytes arrive.
    reasoning: Arc<Mutex<Quote>>,
    /// Locked while q asks the user something.
    question: Arc<Mutex<()>>,
}

impl Notes {
    pub fn new(verbosity: Verbosity, spinner: Spinner, terminal: Terminal) -> Notes {
        Notes {
            verbosity,
            spinner,
            terminal,
            reasoning: Arc::default(),
            question: Arc::default(),
        }
    }

    /// Prints a note of one line, unless `-q` was given. Newlines in it become blanks.
    pub fn note(&self, text: &str) {
        self.note_lines([text]);
    }

    /// Prints a note of several lines, unless `-q` was given.
    pub fn note_lines<S: AsRef<str>>(&self, lines: impl IntoIterator<Item = S>) {
        if self.is_quiet() {
            return;
        }
        let place = self.place();
        let lines = lines.into_iter().map(|line| place.line(line.as_ref()));
        self.write(&lines.collect::<String>());
    }

    /// Notes that bytes of a text in this encoding have been replaced.
    pub fn note_replaced(&self, source: &str, encoding: &str) {
        self.note(&format!(
            "{source} is not valid {encoding}: invalid bytes are sent as U+FFFD"
        ));
    }

    /// Returns bytes as text. Those that are not UTF-8 become U+FFFD, with a note.
    pub fn text_of(&self, bytes: Vec<u8>, source: &str) -> String {
        self.text_from(bytes, source, "UTF-8")
    }

    /// Returns text that was in this encoding before, and is in UTF-8 now, like `text_of`.
    pub fn text_from(&self, bytes: Vec<u8>, source: &str, encoding: &str) -> String {
        match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                self.note_replaced(source, encoding);
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            }
        }
    }

    /// Prints an error that does not end q as a note.
    pub fn note_error(&self, error: &Error) {
        if !self.is_quiet() {
            self.write(&self.place().error(error));
        }
    }

    /// Holds the details of other threads back, so that they cannot push a question off the screen.
    pub fn hold_details(&self) -> MutexGuard<'_, ()> {
        lock(&self.question)
    }

    /// Prints a detail of one line, for users who gave `-v`.
    pub fn detail(&self, text: impl FnOnce() -> String) {
        self.write_detail(|place| place.line(&text()));
    }

    /// Prints one line from elsewhere, for users who gave `-v`. It does not look like one of q's own.
    pub fn quote(&self, line: impl FnOnce() -> String) {
        self.write_detail(|place| place.quote(&without_breaks(&line())));
    }

    fn write_detail(&self, lines: impl FnOnce(NotePlace) -> String) {
        if self.verbosity == Verbosity::Details {
            let _waits = lock(&self.question);
            self.write(&lines(self.place()));
        }
    }

    /// Whether the user wants to see the model's reasoning.
    pub fn shows_reasoning(&self) -> bool {
        self.verbosity == Verbosity::Details
    }

    /// Shows a piece of the model's reasoning, for users who gave `-v`.
    pub fn show_reasoning(&self, text: &str) {
        if !self.shows_reasoning() || text.is_empty() {
            return;
        }
        self.spinner.stop();
        let mut reasoning = lock(&self.reasoning);
        let shown = self.place().reasoning(&mut reasoning, text);
        write_stderr(&shown);
    }

    /// Ends the line that shows the model's reasoning.
    pub fn end_reasoning(&self) {
        let mut reasoning = lock(&self.reasoning);
        let end = reasoning.end();
        if !end.is_empty() {
            write_stderr(end);
        }
    }

    /// Prints why q ends, and what the user can do about it.
    pub fn error(&self, error: &Error) {
        let is_shown = match error.kind.consequences().display {
            ErrorDisplay::Always => true,
            ErrorDisplay::UnlessQuiet => !self.is_quiet(),
            ErrorDisplay::Never => false,
        };
        if is_shown {
            self.write(&self.place().error(error));
        }
    }

    /// Tells the user why letters were shown as their code points, if any were.
    pub fn explain_encoding(&self) {
        if let Some(note) = self.terminal.encoding.note() {
            self.note(&note);
        }
    }

    pub fn spinner(&self) -> &Spinner {
        &self.spinner
    }

    pub fn terminal(&self) -> &Terminal {
        &self.terminal
    }

    fn is_quiet(&self) -> bool {
        self.verbosity == Verbosity::Errors
    }

    /// Returns where messages go.
    fn place(&self) -> NotePlace<'_> {
        let stderr = io::stderr();
        let is_terminal = stderr.is_terminal();
        NotePlace {
            terminal: &self.terminal,
            columns: is_terminal.then(|| unix::terminal_size(&stderr).columns),
        }
    }

    /// Writes all lines at once, because the lines of several processes must not mix.
    fn write(&self, lines: &str) {
        let mut reasoning = lock(&self.reasoning);
        let written = format!("{}{lines}", reasoning.end());
        self.spinner.make_room(|| {
            write_stderr(&written);
        });
    }
}
