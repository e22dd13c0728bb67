//! Writes to standard error, and waits a moment for the reader of a full pipe that does not block.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::stdout::FULL_PIPE_POLL;

/// How long q waits for a reader that takes nothing.
const PATIENCE: Duration = Duration::from_secs(3);

/// Whether q has waited in vain. It does not wait once more for each further message.
static IS_STUCK: AtomicBool = AtomicBool::new(false);

/// Writes all of a text. If standard error cannot be written, q continues without it.
pub fn write_stderr(text: &str) {
    let patience = if IS_STUCK.load(Ordering::Relaxed) {
        Duration::ZERO
    } else {
        PATIENCE
    };
    if let Err(error) = write_waiting(&mut io::stderr().lock(), text.as_bytes(), patience)
        && error.kind() == io::ErrorKind::WouldBlock
    {
        IS_STUCK.store(true, Ordering::Relaxed);
    }
}

/// Writes all bytes. Another program may have made the pipe non-blocking; while it is full, its reader has this long to take
/// something.
fn write_waiting(to: &mut impl Write, mut bytes: &[u8], patience: Duration) -> io::Result<()> {
    let mut began = Instant::now();
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                bytes = &bytes[count..];
                began = Instant::now();
            }
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock if began.elapsed() < patience => {
                    thread::sleep(FULL_PIPE_POLL);
                }
                _ => return Err(error),
            },
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pipe that takes two bytes at a time, and is full so many times before each of them.
    struct FullPipe {
        written: Vec<u8>,
        times: usize,
        full: usize,
    }

    impl Write for FullPipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.full > 0 {
                self.full -= 1;
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.full = self.times;
            let taken = &bytes[..bytes.len().min(2)];
            self.written.extend_from_slice(taken);
            Ok(taken.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_reader_of_a_full_pipe_has_time_to_take_a_message() {
        let hour = Duration::from_secs(3600);
        for (times, patience, written) in [
            (0, Duration::ZERO, "q: no"),
            (3, hour, "q: no"),
            (1, Duration::ZERO, "q:"),
        ] {
            let mut pipe = FullPipe {
                written: Vec::new(),
                times,
                full: 0,
            };
            let ended = write_waiting(&mut pipe, b"q: no", patience);
            let error = ended.err().map(|error| error.kind());
            let is_whole = written == "q: no";
            assert_eq!(error, (!is_whole).then_some(io::ErrorKind::WouldBlock));
            assert_eq!(String::from_utf8_lossy(&pipe.written), written, "{times}");
        }
    }
}
