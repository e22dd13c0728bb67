//! Writes to standard output piece by piece. On a terminal the text is escaped and, on request, wrapped and styled.

use std::fs::File;
use std::io::{self, IoSlice, IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use serde_json::Value;

use super::formatter::{DisplayOptions, Formatter};
use super::terminal::Terminal;
use crate::error::{Error, ErrorKind};
use crate::text::parts::parts;
use crate::unix;

/// How long to wait for the reader of a full pipe that does not block.
pub(super) const FULL_PIPE_POLL: Duration = Duration::from_millis(5);

/// The most bytes of complete texts that one write joins.
const JOINED: usize = 64 << 10;

/// Standard output. It has no buffer, except for an unfinished word where text is wrapped or styled.
pub struct Stdout {
    file: File,
    pub is_terminal: bool,
    terminal: Terminal,
    /// Used on a terminal.
    formatter: Formatter,
    ends_with_newline: bool,
}

/// A reason why standard output accepts no more.
#[derive(Debug)]
pub enum OutputError {
    /// The reader has gone away, as `head` does when it has enough.
    ReaderGone,
    Failed(Error),
}

impl Stdout {
    /// Opens standard output, which fails if there are no file descriptors left.
    pub fn open(terminal: &Terminal) -> Result<Stdout, Error> {
        let stdout = io::stdout();
        let descriptor = stdout.as_fd().try_clone_to_owned();
        let descriptor = descriptor.map_err(write_error)?;
        Ok(Stdout {
            file: descriptor.into(),
            is_terminal: stdout.is_terminal(),
            terminal: terminal.clone(),
            formatter: Formatter::new(DisplayOptions::default()),
            ends_with_newline: true,
        })
    }

    /// Sets how the text that follows is shown on a terminal.
    pub fn set_display(&mut self, display: DisplayOptions) {
        self.formatter = Formatter::new(display);
    }

    /// Writes a piece. Where text is wrapped or styled, an unfinished word at its end waits.
    pub fn write(&mut self, piece: &str) -> Result<(), OutputError> {
        if let Some(last) = piece.as_bytes().last() {
            self.ends_with_newline = *last == b'\n';
        }
        if !self.is_terminal {
            return self.write_all(piece);
        }
        for part in parts(piece) {
            let encoded = self.terminal.encoding.encode(part);
            // The terminal may have changed its width since the last line.
            for line in encoded.split_inclusive('\n') {
                let shown = self.formatter.feed(line, columns());
                self.write_all(&shown)?;
            }
        }
        Ok(())
    }

    /// Writes what has come of the unfinished word.
    pub fn write_held(&mut self) -> Result<(), OutputError> {
        let shown = self.formatter.pause(columns());
        self.write_all(&shown)
    }

    /// Ends the last line if necessary. Another text may follow.
    pub fn end_line(&mut self) -> Result<(), OutputError> {
        let shown = self.formatter.finish(columns());
        self.write_all(&shown)?;
        if self.ends_with_newline {
            return Ok(());
        }
        self.ends_with_newline = true;
        self.write_all("\n")
    }

    /// Writes a complete text and ends its last line. In a pipe or file this is one write, because the lines of several
    /// processes must not mix.
    pub fn write_complete(&mut self, text: &str) -> Result<(), OutputError> {
        if self.is_terminal || text.is_empty() || text.ends_with('\n') {
            self.write(text)?;
            return self.end_line();
        }
        self.ends_with_newline = true;
        self.write_parts([text, "\n"])
    }

    fn write_all(&mut self, text: &str) -> Result<(), OutputError> {
        self.write_parts([text, ""])
    }

    /// Writes both parts at once. A text may have megabytes, so it is not copied for the sake of its last newline.
    fn write_parts(&mut self, parts: [&str; 2]) -> Result<(), OutputError> {
        let mut slices = &mut parts.map(|part| IoSlice::new(part.as_bytes()))[..];
        while !slices.iter().all(|slice| slice.is_empty()) {
            // There is something else in its place, which takes everything.
            if unix::was_stdout_closed() {
                let error = io::Error::from_raw_os_error(libc::EBADF);
                return Err(OutputError::Failed(write_error(error)));
            }
            match self.file.write_vectored(slices) {
                Ok(0) => {
                    return Err(OutputError::Failed(write_error(
                        io::ErrorKind::WriteZero.into(),
                    )));
                }
                Ok(count) => IoSlice::advance_slices(&mut slices, count),
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    // Another program made the pipe non-blocking, so q has to try again.
                    io::ErrorKind::WouldBlock => std::thread::sleep(FULL_PIPE_POLL),
                    io::ErrorKind::BrokenPipe => return Err(OutputError::ReaderGone),
                    _ => return Err(OutputError::Failed(write_error(error))),
                },
            }
        }
        Ok(())
    }
}

/// Prints a complete text. A reader that has gone away is no error.
pub fn print(text: &str, terminal: &Terminal) -> Result<(), Error> {
    print_texts(&[(text, DisplayOptions::default())], terminal)
}

/// Prints what an action found or did: a value if JSON is asked for, else a text.
pub fn print_report(
    json: bool,
    value: &Value,
    text: &str,
    terminal: &Terminal,
) -> Result<(), Error> {
    if json {
        return print(&value.to_string(), terminal);
    }
    print(text, terminal)
}

/// Prints complete texts, each on a new line and shown in its own way on a terminal.
pub fn print_texts(
    texts: &[(impl AsRef<str>, DisplayOptions)],
    terminal: &Terminal,
) -> Result<(), Error> {
    let mut stdout = Stdout::open(terminal)?;
    if !stdout.is_terminal && texts.len() > 1 {
        return print_joined(texts, &mut stdout);
    }
    for (text, display) in texts {
        stdout.set_display(*display);
        unless_reader_gone(stdout.write_complete(text.as_ref()))?;
    }
    Ok(())
}

/// Prints complete texts where they are not shown in some way of their own, with few writes.
fn print_joined(
    texts: &[(impl AsRef<str>, DisplayOptions)],
    stdout: &mut Stdout,
) -> Result<(), Error> {
    let mut joined = String::new();
    for (text, _) in texts {
        let text = text.as_ref();
        // A text that fills the buffer is not copied.
        if joined.len() + text.len() > JOINED {
            unless_reader_gone(stdout.write_complete(&joined))?;
            joined.clear();
        }
        if text.len() > JOINED {
            unless_reader_gone(stdout.write_complete(text))?;
            continue;
        }
        joined.push_str(text);
        if !text.is_empty() && !text.ends_with('\n') {
            joined.push('\n');
        }
    }
    unless_reader_gone(stdout.write_complete(&joined))
}

/// Prints a text without adding a newline, unless it goes to a terminal.
pub fn print_exactly(text: &str, terminal: &Terminal) -> Result<(), Error> {
    let mut stdout = Stdout::open(terminal)?;
    unless_reader_gone(stdout.write(text))?;
    if stdout.is_terminal {
        unless_reader_gone(stdout.end_line())?;
    }
    Ok(())
}

/// Leaves an error only where the user has to know of it: a reader that has gone has read as much as it wanted.
pub fn unless_reader_gone(written: Result<(), OutputError>) -> Result<(), Error> {
    match written {
        Ok(()) | Err(OutputError::ReaderGone) => Ok(()),
        Err(OutputError::Failed(error)) => Err(error),
    }
}

fn columns() -> usize {
    unix::terminal_size(io::stdout()).columns
}

fn write_error(error: io::Error) -> Error {
    let message = format!("cannot write to standard output: {error}");
    Error::new(ErrorKind::Output, message)
}
