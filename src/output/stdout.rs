//! Standard output: each piece of the answer leaves as it comes, and what has left is known to the byte.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::Duration;

/// How long to wait for a reader whose end of the pipe does not block, and is full.
const FULL_PIPE_POLL: Duration = Duration::from_millis(5);

/// Standard output without a buffer of its own.
#[derive(Debug)]
pub(crate) struct Stdout {
    file: File,
    ends_with_newline: bool,
}

/// Standard output takes no more.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The reader has gone away, as `head` does when it has enough.
    Gone,
    Failed(io::Error),
}

impl Stdout {
    /// # Errors
    /// There are no file descriptors left.
    pub(crate) fn open() -> Result<Stdout, Broken> {
        let descriptor = io::stdout().as_fd().try_clone_to_owned().map_err(Broken::Failed)?;
        Ok(Stdout { file: File::from(descriptor), ends_with_newline: true })
    }

    /// Writes a piece whole; `left` is told after each part how many bytes of the piece have left by then.
    ///
    /// # Errors
    /// The rest of the piece could not be written.
    pub(crate) fn write(&mut self, piece: &str, mut left: impl FnMut(usize)) -> Result<(), Broken> {
        let bytes = piece.as_bytes();
        let mut done = 0;
        while done < bytes.len() {
            match self.file.write(&bytes[done..]) {
                Ok(0) => return Err(Broken::Failed(io::ErrorKind::WriteZero.into())),
                Ok(count) => {
                    done += count;
                    left(done);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Somebody else has set the pipe so; it cannot be told here when there is room again.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(FULL_PIPE_POLL),
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Err(Broken::Gone),
                Err(error) => return Err(Broken::Failed(error)),
            }
        }
        if let Some(last) = bytes.last() {
            self.ends_with_newline = *last == b'\n';
        }
        Ok(())
    }

    /// Ends the last line, if it lacks its end.
    pub(crate) fn end_line(&mut self) -> Result<(), Broken> {
        if self.ends_with_newline { Ok(()) } else { self.write("\n", |_| {}) }
    }
}
