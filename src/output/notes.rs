//! What q itself says: notes, errors and details on standard error, each line beginning with `q: `.

use std::io::{self, IsTerminal, Write};

use super::disarm;
use super::sign::Sign;
use crate::error::{Error, Kind};

/// Where notes go. A standard error that cannot be written changes nothing else.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes {
    quiet: bool,
    verbose: bool,
    sign: Sign,
}

impl Notes {
    /// `quiet` says nothing but errors; `verbose` says details too.
    pub(crate) fn new(quiet: bool, verbose: bool, sign: Sign) -> Notes {
        Notes { quiet, verbose, sign }
    }

    /// Says one thing that was not as asked.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.write(text);
        }
    }

    /// Says something that only those want to know who have asked for it.
    pub(crate) fn detail(&self, text: impl FnOnce() -> String) {
        if self.verbose && !self.quiet {
            self.write(&text());
        }
    }

    /// Says why q ends, and what to do where there is something.
    pub(crate) fn error(&self, error: &Error) {
        // These are notes, though the exit status tells them too.
        if self.quiet && matches!(error.kind, Kind::NoCode | Kind::Incomplete) {
            return;
        }
        self.write(&error.message);
        if let Some(advice) = &error.advice {
            self.write(advice);
        }
    }

    pub(crate) fn sign(&self) -> &Sign {
        &self.sign
    }

    /// One write for each call, so that the lines of several processes do not mix.
    fn write(&self, text: &str) {
        let stderr = io::stderr();
        let text = if stderr.is_terminal() { disarm::visible(text) } else { text.to_owned() };
        let lines: String = text.lines().map(|line| format!("q: {line}\n")).collect();
        // A standard error that is closed or full must not end q, and there is nowhere left to say so.
        self.sign.make_room(|| {
            let _ = (&stderr).write_all(lines.as_bytes());
        });
    }
}
