//! Standard output: each piece leaves as it comes, disarmed where it is a terminal, and what has left is known.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use super::disarm::Disarmer;
use crate::error::{Error, Kind};

/// How long to wait for a reader whose end of the pipe does not block, and is full.
const FULL_PIPE_POLL: Duration = Duration::from_millis(5);

/// Standard output without a buffer of its own.
#[derive(Debug)]
pub(crate) struct Stdout {
    file: File,
    /// Where it is a terminal.
    disarmer: Option<Disarmer>,
    ends_with_newline: bool,
}

/// Standard output takes no more.
#[derive(Debug)]
pub(crate) enum OutputError {
    /// The reader has gone away, as `head` does when it has enough.
    ReaderGone,
    Failed(io::Error),
}

impl Stdout {
    /// # Errors
    /// There are no file descriptors left.
    pub(crate) fn open() -> Result<Stdout, OutputError> {
        let stdout = io::stdout();
        let descriptor = stdout.as_fd().try_clone_to_owned().map_err(OutputError::Failed)?;
        Ok(Stdout {
            file: File::from(descriptor),
            disarmer: stdout.is_terminal().then(Disarmer::default),
            ends_with_newline: true,
        })
    }

    /// Whether a person reads it.
    pub(crate) fn is_terminal(&self) -> bool {
        self.disarmer.is_some()
    }

    /// Writes a piece whole; `left` is told how many bytes of the piece have left, whenever some have, or when a signal has
    /// interrupted the write.
    ///
    /// # Errors
    /// The rest of the piece could not be written.
    pub(crate) fn write(&mut self, piece: &str, mut left: impl FnMut(usize)) -> Result<(), OutputError> {
        if let Some(last) = piece.as_bytes().last() {
            self.ends_with_newline = *last == b'\n';
        }
        let Some(disarmer) = &mut self.disarmer else { return self.write_bytes(piece.as_bytes(), left) };
        let before = disarmer.clone();
        let visible = disarmer.feed(piece);
        self.write_bytes(visible.as_bytes(), |bytes| {
            left(if bytes == visible.len() { piece.len() } else { before.clone().consumed(piece, bytes) });
        })
    }

    /// Ends the last line, if it lacks its end.
    ///
    /// # Errors
    /// As for [`Stdout::write`].
    pub(crate) fn end_line(&mut self) -> Result<(), OutputError> {
        let held = self.disarmer.as_mut().map_or("", Disarmer::finish);
        let end = if self.ends_with_newline { "" } else { "\n" };
        self.ends_with_newline = true;
        self.write_bytes(format!("{held}{end}").as_bytes(), |_| {})
    }

    fn write_bytes(&mut self, bytes: &[u8], mut left: impl FnMut(usize)) -> Result<(), OutputError> {
        let mut done = 0;
        while done < bytes.len() {
            match self.file.write(&bytes[done..]) {
                Ok(0) => return Err(OutputError::Failed(io::ErrorKind::WriteZero.into())),
                Ok(count) => {
                    done += count;
                    left(done);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => left(done),
                // Somebody else has set the pipe so; it cannot be told here when there is room again.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(FULL_PIPE_POLL),
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Err(OutputError::ReaderGone),
                Err(error) => return Err(OutputError::Failed(error)),
            }
        }
        Ok(())
    }
}

/// Prints a whole text.
///
/// # Errors
/// `Output`: it could not be written. A reader that has gone away is no error.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    let printed = Stdout::open().and_then(|mut stdout| {
        stdout.write(text, |_| {})?;
        stdout.end_line()
    });
    match printed {
        Ok(()) | Err(OutputError::ReaderGone) => Ok(()),
        Err(OutputError::Failed(error)) => {
            Err(Error::new(Kind::Output, format!("cannot write to standard output: {error}")))
        }
    }
}
