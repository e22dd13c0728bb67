//! Standard output: writes each piece as it comes, and counts what has left. On a terminal, text is disarmed and, on
//! request, wrapped.

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use super::disarm::Disarmer;
use super::wrap::{Wrapped, Wrapper};
use crate::error::{Error, Kind};
use crate::unix;

/// How long to wait for the reader of a full pipe that does not block.
const FULL_PIPE_POLL: Duration = Duration::from_millis(5);

/// The columns of a terminal that does not report its size.
const USUAL_COLUMNS: usize = 80;

/// Standard output. It has no buffer, except for an unfinished word where text is wrapped.
#[derive(Debug)]
pub(crate) struct Stdout {
    file: File,
    /// Set if it is a terminal.
    disarmer: Option<Disarmer>,
    /// Set if text is wrapped.
    wrapper: Option<Wrapper>,
    /// How many bytes have left of the text written since [`Stdout::end_line`] was last called.
    left: usize,
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
            OutputError::ReaderGone => formatter.write_str("nobody reads standard output anymore"),
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
            left: 0,
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

    /// Writes a piece; where text is wrapped, an unfinished word at its end waits. Whenever bytes have left, or a signal
    /// has interrupted the write, calls `left` with the number of bytes that have left since [`Stdout::end_line`].
    ///
    /// # Errors
    /// The rest of the piece could not be written.
    pub(crate) fn write(&mut self, piece: &str, left: &mut dyn FnMut(usize)) -> Result<(), OutputError> {
        if let Some(last) = piece.as_bytes().last() {
            self.ends_with_newline = *last == b'\n';
        }
        if self.wrapper.is_none() {
            return self.put(piece, &|bytes| bytes, left);
        }
        // The terminal may have changed its width since the last line.
        for line in piece.split_inclusive('\n') {
            self.put_wrapped(&|wrapper, columns| wrapper.feed(line, columns), left)?;
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
    pub(crate) fn write_held(&mut self, left: &mut dyn FnMut(usize)) -> Result<(), OutputError> {
        self.put_wrapped(&Wrapper::pause, left)
    }

    /// Ends the last line if necessary. What is written afterwards is another text.
    ///
    /// # Errors
    /// As for [`Stdout::write`].
    pub(crate) fn end_line(&mut self, left: &mut dyn FnMut(usize)) -> Result<(), OutputError> {
        self.put_wrapped(&Wrapper::finish, left)?;
        self.left = 0;
        let held = self.disarmer.as_mut().map_or("", Disarmer::finish);
        let end = if self.ends_with_newline { "" } else { "\n" };
        self.ends_with_newline = true;
        self.write_bytes(format!("{held}{end}").as_bytes(), &mut |_| {})
    }

    fn put_wrapped(
        &mut self,
        wrap: &dyn Fn(&mut Wrapper, usize) -> Wrapped,
        left: &mut dyn FnMut(usize),
    ) -> Result<(), OutputError> {
        let Some(wrapper) = &mut self.wrapper else { return Ok(()) };
        let wrapped = wrap(wrapper, unix::terminal_size(&io::stdout()).map_or(USUAL_COLUMNS, |size| size.columns));
        self.put(&wrapped.text, &|bytes| wrapped.unbroken(bytes), left)
    }

    /// Writes a complete text. `unbroken` returns how many of its first bytes are not breaks, for a number of bytes.
    fn put(
        &mut self,
        text: &str,
        unbroken: &dyn Fn(usize) -> usize,
        left: &mut dyn FnMut(usize),
    ) -> Result<(), OutputError> {
        let begin = self.left;
        self.left += unbroken(text.len());
        let Some(disarmer) = &mut self.disarmer else {
            return self.write_bytes(text.as_bytes(), &mut |bytes| left(begin + bytes));
        };
        let before = disarmer.clone();
        let visible = disarmer.feed(text);
        self.write_bytes(visible.as_bytes(), &mut |bytes| {
            let seen = if bytes == visible.len() { text.len() } else { before.clone().consumed(text, bytes) };
            left(begin + unbroken(seen));
        })
    }

    fn write_bytes(&mut self, bytes: &[u8], left: &mut dyn FnMut(usize)) -> Result<(), OutputError> {
        let mut done = 0;
        while done < bytes.len() {
            match self.file.write(&bytes[done..]) {
                Ok(0) => return Err(OutputError::Failed(io::ErrorKind::WriteZero.into())),
                Ok(count) => {
                    done += count;
                    left(done);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => left(done),
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
            stdout.write(text, &mut |_| {})?;
            stdout.end_line(&mut |_| {})?;
        }
        Ok(())
    };
    match print() {
        Ok(()) | Err(OutputError::ReaderGone) => Ok(()),
        Err(error) => Err(Error::new(Kind::Output, error.to_string())),
    }
}
