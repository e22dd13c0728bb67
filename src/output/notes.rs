//! Writes q's own messages to standard error: notes, errors and details, each line after `q: `.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard};

use super::formatter::wrapped;
use super::quote::Quote;
use super::spinner::Spinner;
use super::terminal::{Styling, Terminal};
use crate::error::{self, Error, ErrorKind};
use crate::message::Source;
use crate::text::escape::escape;
use crate::text::one_line::{on_one_line, without_breaks};
use crate::threads::lock;
use crate::unix;

/// Begins each line.
const SENDER: &str = "q: ";

/// A line for each source: its number, title and address. They are escaped, because a page may say anything.
pub fn source_lines(sources: &[Source]) -> Vec<String> {
    let mut lines = Vec::new();
    for (source, number) in sources.iter().zip(1..) {
        let title = source.title.as_deref().unwrap_or_default();
        let words = on_one_line(&format!("{title} {}", source.url));
        lines.push(format!("[{number}] {}", escape(&words)));
    }
    lines
}

/// Writes q's messages, as many as the user wants. If standard error cannot be written, q continues without them.
#[derive(Clone, Default)]
pub struct Notes {
    quiet: bool,
    verbose: bool,
    spinner: Spinner,
    terminal: Terminal,
    /// The reasoning of the model, as far as it is shown.
    reasoning: Arc<Mutex<Quote>>,
    /// Locked while q asks the user something.
    question: Arc<Mutex<()>>,
}

impl Notes {
    /// `quiet` prints only errors; `verbose` prints details and the model's reasoning, too.
    pub fn new(quiet: bool, verbose: bool, spinner: Spinner, terminal: Terminal) -> Notes {
        Notes {
            quiet,
            verbose: verbose && !quiet,
            spinner,
            terminal,
            reasoning: Arc::default(),
            question: Arc::default(),
        }
    }

    /// Prints a note of one line, unless `-q` was given. Line breaks in it become blanks.
    pub fn note(&self, text: &str) {
        self.note_lines([text]);
    }

    /// Prints a note of several lines, unless `-q` was given.
    pub fn note_lines<S: AsRef<str>>(&self, lines: impl IntoIterator<Item = S>) {
        if !self.quiet {
            let mut message = ShownMessage::new(self);
            for line in lines {
                message.add_line(line.as_ref());
            }
            self.write(&message.text);
        }
    }

    /// Notes that bytes of a text have been replaced.
    pub fn note_replaced(&self, source: &str) {
        self.note(&format!(
            "{source} is not all UTF-8: its other bytes are sent as U+FFFD"
        ));
    }

    /// Bytes as text. Those that are not UTF-8 become U+FFFD, with a note.
    pub fn text_of(&self, bytes: Vec<u8>, source: &str) -> String {
        match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                self.note_replaced(source);
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            }
        }
    }

    /// Prints an error that does not end q as a note.
    pub fn note_error(&self, error: &Error) {
        if !self.quiet {
            self.write_error(error);
        }
    }

    /// Holds the details of other threads back, so that they cannot push a question off the screen.
    pub fn hold_details(&self) -> MutexGuard<'_, ()> {
        lock(&self.question)
    }

    /// Prints a detail of one line, for users who gave `-v`.
    pub fn detail(&self, text: impl FnOnce() -> String) {
        self.detail_with(|message| message.add_line(&text()));
    }

    /// Prints one line from elsewhere, for users who gave `-v`. It does not look like one of q's own.
    pub fn quote(&self, line: impl FnOnce() -> String) {
        self.detail_with(|message| message.add_quote(&without_breaks(&line())));
    }

    fn detail_with(&self, add: impl FnOnce(&mut ShownMessage)) {
        if self.verbose {
            let _waits = lock(&self.question);
            let mut message = ShownMessage::new(self);
            add(&mut message);
            self.write(&message.text);
        }
    }

    /// Whether the user wants to see the model's reasoning.
    pub fn shows_reasoning(&self) -> bool {
        self.verbose
    }

    /// Shows a piece of the model's reasoning, for users who gave `-v`.
    pub fn show_reasoning(&self, text: &str) {
        if !self.verbose || text.is_empty() {
            return;
        }
        self.spinner.stop();
        let place = NotePlace::of(self);
        // The lock is released before the text is written: the terminal may be stalled, and a signal's note must not wait
        // for it.
        let mut shown = lock(&self.reasoning).feed(text, place.columns, |part| place.visible(part));
        let dims = self.terminal.styling == Styling::Full;
        if dims && place.columns.is_some() && !shown.is_empty() {
            shown = format!("\x1b[2m{shown}\x1b[0m");
        }
        let _ = io::stderr().write_all(shown.as_bytes());
    }

    /// Ends the line that shows the model's reasoning.
    pub fn end_reasoning(&self) {
        let end = lock(&self.reasoning).end();
        if !end.is_empty() {
            let _ = io::stderr().write_all(end.as_bytes());
        }
    }

    /// Prints why q ends, and what the user can do about it.
    pub fn error(&self, error: &Error) {
        // `-q` hides these as well, because the exit status shows them.
        let counts_as_note = matches!(
            error.kind,
            ErrorKind::NoCode | ErrorKind::Incomplete | ErrorKind::Withheld
        );
        if counts_as_note && self.quiet {
            return;
        }
        self.write_error(error);
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

    fn write_error(&self, error: &Error) {
        let mut message = ShownMessage::new(self);
        message.add_line(&error.message);
        message.add_quote(&error.quote);
        // Each line is q's own; it has put what is foreign in it on one line.
        for line in error.advice.iter().flat_map(|advice| advice.lines()) {
            message.add_line(line);
        }
        self.write(&message.text);
    }

    /// Writes all lines at once, because the lines of several processes must not mix.
    fn write(&self, lines: &str) {
        self.end_reasoning();
        self.spinner.make_room(|| {
            let _ = io::stderr().write_all(lines.as_bytes());
        });
    }
}

/// Where a message goes, which decides how it looks.
struct NotePlace<'a> {
    terminal: &'a Terminal,
    /// The columns of standard error, if that is a terminal.
    columns: Option<usize>,
}

impl<'a> NotePlace<'a> {
    fn of(notes: &'a Notes) -> NotePlace<'a> {
        let stderr = io::stderr();
        let is_terminal = stderr.is_terminal();
        let columns = is_terminal.then(|| unix::terminal_size(&stderr).columns);
        NotePlace {
            terminal: &notes.terminal,
            columns,
        }
    }

    /// The visible form of a text where a terminal shows it, at once or through a shell. Any other place gets its bytes.
    fn visible(&self, text: &str) -> String {
        if self.columns.is_some() || self.terminal.fills_command_line {
            escape(&self.terminal.encoding.encode(text))
        } else {
            text.to_owned()
        }
    }
}

/// The lines of a message as they are written.
struct ShownMessage<'a> {
    place: NotePlace<'a>,
    text: String,
}

impl<'a> ShownMessage<'a> {
    fn new(notes: &'a Notes) -> ShownMessage<'a> {
        ShownMessage {
            place: NotePlace::of(notes),
            text: String::new(),
        }
    }

    /// Adds one line, whatever the text has in it.
    fn add_line(&mut self, text: &str) {
        let text = without_breaks(&error::in_words(text));
        let mut line = format!("{SENDER}{}", self.place.visible(&text));
        if let Some(columns) = self.place.columns {
            line = wrapped(&line, SENDER.len(), columns);
        }
        self.text += &line;
        self.text.push('\n');
    }

    /// Adds text from elsewhere, line by line.
    fn add_quote(&mut self, text: &str) {
        let mut quote = Quote::default();
        let columns = self.place.columns;
        self.text += &quote.feed(text, columns, |part| self.place.visible(part));
        self.text += quote.end();
    }
}
