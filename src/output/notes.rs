//! What q itself says: notes and errors on standard error, each line beginning with `q: `.

use std::io::Write;

use crate::error::Error;

/// Where notes go. A standard error that cannot be written changes nothing else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Notes {}

impl Notes {
    pub(crate) fn new() -> Notes {
        Notes {}
    }

    /// Says one thing that was not as asked.
    pub(crate) fn note(&self, text: &str) {
        write_lines(text);
    }

    /// Says why q ends, and what to do where there is something.
    pub(crate) fn error(&self, error: &Error) {
        write_lines(&error.message);
        if let Some(advice) = &error.advice {
            write_lines(advice);
        }
    }
}

/// One write for each call, so that the lines of several processes do not mix.
fn write_lines(text: &str) {
    let lines: String = text.lines().map(|line| format!("q: {line}\n")).collect();
    // A standard error that is closed or full must not end q, and there is nowhere left to say so.
    let _ = std::io::stderr().write_all(lines.as_bytes());
}
