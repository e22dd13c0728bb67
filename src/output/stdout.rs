//! Standard output: writes each piece as it comes. On a terminal, text is disarmed and, on request, wrapped.

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use super::disarm::Disarmer;
use super::wrap::Wrapper;
use crate::error::{Error, Kind};
use crate::unix;

/// How long to wait for the reader of a full pipe that does not block.
const FULL_PIPE_POLL: Duration = Duration::from_millis(5);

/// The columns of a terminal that does not report its size.
const DEFAULT_COLUMNS: usize = 80;

/// Standard output. It has no buffer, except for an unfinished word where text is wrapped.
#[derive(Debug)]
pub(crate) struct Stdout {
    file: File,
    /// Set if it is a terminal.
    disarmer: Option<Disarmer>,
    /// Set if text is wrapped.
    wrapper: Option<Wrapper>,
    ends_with_newline: bool,
}

/// Why standard output accepts no more.
#[derive(Debug)]
pub(crate) enum OutputError {
    /// The reader has gone away, as `head` does when it has enough.
    ReaderGone,
    Failed(io::Error),
}

impl fmt::Display for OutputError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutputError::ReaderGone => formatter.write_str("the reader of standard output is gone"),
            OutputError::Failed(error) => write!(formatter, "cannot write to standard output: {error}"),
        }
    }
}

impl Stdout {
    /// Opens standard output.
    ///
    /// # Errors
    /// There are no file descriptors left.
    pub(crate) fn open() -> Result<Stdout, OutputError> {
        let stdout = io::stdout();
        let descriptor = stdout.as_fd().try_clone_to_owned().map_err(OutputError::Failed)?;
        Ok(Stdout {
            file: File::from(descriptor),
            disarmer: stdout.is_terminal().then(Disarmer::default),
            wrapper: None,
            ends_with_newline: true,
        })
    }

    /// What is written from now on is prose, which is wrapped on a terminal.
    pub(crate) fn wrap(&mut self) {
        self.wrapper = self.is_terminal().then(Wrapper::default);
    }

    /// Whether a person reads it.
    pub(crate) fn is_terminal(&self) -> bool {
        self.disarmer.is_some()
    }

    /// Writes a piece; where text is wrapped, an unfinished word at its end waits.
    ///
    /// # Errors
    /// The rest of the piece could not be written.
    pub(crate) fn write(&mut self, piece: &str) -> Result<(), OutputError> {
        if let Some(last) = piece.as_bytes().last() {
            self.ends_with_newline = *last == b'\n';
        }
        if self.wrapper.is_none() {
            return self.put(piece);
        }
        // The terminal may have changed its width since the last line.
        for line in piece.split_inclusive('\n') {
            self.put_wrapped(&|wrapper, columns| wrapper.feed(line, columns))?;
        }
        Ok(())
    }

    /// Whether a part of a word waits for the rest.
    pub(crate) fn holds_word(&self) -> bool {
        self.wrapper.as_ref().is_some_and(Wrapper::holds_word)
    }

    /// Writes the unfinished word, as far as it has come.
    ///
    /// # Errors
    /// As for [`Stdout::write`].
    pub(crate) fn write_held(&mut self) -> Result<(), OutputError> {
        self.put_wrapped(&Wrapper::pause)
    }

    /// Ends the last line if necessary. What is written afterwards is another text.
    ///
    /// # Errors
    /// As for [`Stdout::write`].
    pub(crate) fn end_line(&mut self) -> Result<(), OutputError> {
        self.put_wrapped(&Wrapper::finish)?;
        let held = self.disarmer.as_mut().map_or("", Disarmer::finish);
        let end = if self.ends_with_newline { "" } else { "\n" };
        self.ends_with_newline = true;
        self.write_bytes(format!("{held}{end}").as_bytes())
    }

    fn put_wrapped(&mut self, wrap: &dyn Fn(&mut Wrapper, usize) -> String) -> Result<(), OutputError> {
        let Some(wrapper) = &mut self.wrapper else { return Ok(()) };
        let wrapped = wrap(wrapper, unix::terminal_size(&io::stdout()).map_or(DEFAULT_COLUMNS, |size| size.columns));
        self.put(&wrapped)
    }

    fn put(&mut self, text: &str) -> Result<(), OutputError> {
        match &mut self.disarmer {
            Some(disarmer) => {
                let visible = disarmer.feed(text);
                self.write_bytes(visible.as_bytes())
            }
            None => self.write_bytes(text.as_bytes()),
        }
    }

    fn write_bytes(&mut self, mut bytes: &[u8]) -> Result<(), OutputError> {
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(0) => return Err(OutputError::Failed(io::ErrorKind::WriteZero.into())),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Another program made the pipe non-blocking, so q has to try again.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(FULL_PIPE_POLL),
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Err(OutputError::ReaderGone),
                Err(error) => return Err(OutputError::Failed(error)),
            }
        }
        Ok(())
    }
}

/// Prints a complete text.
///
/// # Errors
/// `Output`: it could not be written. A reader that has gone away is no error.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    print_prose(&[text], false)
}

/// Prints complete texts, each on a new line. With `wraps` they are wrapped on a terminal.
///
/// # Errors
/// As for [`print()`].
pub(crate) fn print_prose(texts: &[&str], wraps: bool) -> Result<(), Error> {
    let print = || {
        let mut stdout = Stdout::open()?;
        if wraps {
            stdout.wrap();
        }
        for text in texts {
            stdout.write(text)?;
            stdout.end_line()?;
        }
        Ok(())
    };
    match print() {
        Ok(()) | Err(OutputError::ReaderGone) => Ok(()),
        Err(error) => Err(Error::new(Kind::Output, error.to_string())),
    }
}
