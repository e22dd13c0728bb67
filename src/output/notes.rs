//! Writes q's own messages to standard error: notes, errors and details, each line after `q: `.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard};

use super::disarm;
use super::spinner::Spinner;
use super::wrap::wrapped;
use crate::error::{Error, ErrorKind};
use crate::message::Source;
use crate::text::one_line::on_one_line;
use crate::threads::lock;
use crate::unix;

/// Begins each line.
const SENDER: &str = "q: ";

/// A line for each source: its number, title and address. They are disarmed, because a page may say anything.
pub fn source_lines(sources: &[Source]) -> String {
    let mut lines = String::new();
    for (source, number) in sources.iter().zip(1..) {
        let title = source.title.as_deref().unwrap_or_default();
        let words = on_one_line(&format!("{title} {}", source.url));
        let visible = disarm::visible(&words);
        lines += &format!("[{number}] {visible}\n");
    }
    lines
}

/// Writes q's messages, as many as the user wants. If standard error cannot be written, q continues without them.
#[derive(Clone, Default)]
pub struct Notes {
    quiet: bool,
    verbose: bool,
    spinner: Spinner,
    /// What the model thinks is dim on a terminal.
    dims: bool,
    /// The last line, which shows what the model thinks, has no end yet.
    is_line_open: Arc<Mutex<bool>>,
    /// Locked while q asks the user something.
    question: Arc<Mutex<()>>,
}

impl Notes {
    /// `quiet` prints only errors; `verbose` prints details too, and what the model thinks, which a terminal shows dim if it
    /// `dims`.
    pub fn new(quiet: bool, verbose: bool, dims: bool, spinner: Spinner) -> Notes {
        Notes {
            quiet,
            verbose: verbose && !quiet,
            spinner,
            dims,
            is_line_open: Arc::default(),
            question: Arc::default(),
        }
    }

    /// Prints a note, unless `-q` was given.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            self.write(text);
        }
    }

    /// Holds the details of other threads back, so that they cannot push a question off the screen.
    pub fn hold_details(&self) -> MutexGuard<'_, ()> {
        lock(&self.question)
    }

    /// Prints a detail, for users who gave `-v`.
    pub fn detail(&self, text: impl FnOnce() -> String) {
        if self.verbose {
            let _waits = lock(&self.question);
            self.write(&text());
        }
    }

    /// Shows a part of what the model thinks, for users who gave `-v`.
    pub fn think(&self, text: &str) {
        if !self.verbose || text.is_empty() {
            return;
        }
        self.spinner.stop();
        let stderr = io::stderr();
        let mut is_open = lock(&self.is_line_open);
        let mut shown = String::new();
        for line in text.split_inclusive('\n') {
            if !*is_open {
                // No line is empty.
                if line == "\n" {
                    continue;
                }
                shown.push_str(SENDER);
            }
            shown.push_str(line);
            *is_open = !line.ends_with('\n');
        }
        // The terminal may be stalled, and a signal's note must not wait for it.
        drop(is_open);
        if stderr.is_terminal() {
            shown = disarm::visible(&shown);
            if self.dims {
                shown = format!("\x1b[2m{shown}\x1b[0m");
            }
        }
        let _ = (&stderr).write_all(shown.as_bytes());
    }

    /// Ends the line that shows what the model thinks.
    pub fn end_thoughts(&self) {
        if std::mem::take(&mut *lock(&self.is_line_open)) {
            let _ = io::stderr().write_all(b"\n");
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
        self.write(&error.message);
        if let Some(advice) = &error.advice {
            self.write(advice);
        }
    }

    pub fn spinner(&self) -> &Spinner {
        &self.spinner
    }

    /// Writes all lines at once, because the lines of several processes must not mix.
    fn write(&self, text: &str) {
        self.end_thoughts();
        let stderr = io::stderr();
        let mut lines = String::new();
        for line in text.lines() {
            let mut shown = format!("{SENDER}{line}");
            if stderr.is_terminal() {
                let columns = unix::terminal_size(&stderr).columns;
                shown = wrapped(&shown, SENDER.len(), columns);
            }
            lines += &shown;
            lines.push('\n');
        }
        self.spinner.make_room(|| {
            let _ = (&stderr).write_all(lines.as_bytes());
        });
    }
}
