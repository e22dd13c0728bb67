//! Writes to standard error, and waits a moment for the reader of a full pipe that does not block.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::stdout::FULL_PIPE_POLL;

/// How long q waits for a reader that takes nothing.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Whether q has waited in vain. It does not wait once more for each further message until one gets through.
static IS_STUCK: AtomicBool = AtomicBool::new(false);

/// Writes all of a text. If standard error cannot be written, q continues without it.
pub fn write_stderr(text: &str) {
    write_unless_stuck(&mut io::stderr().lock(), text, TIMEOUT, &IS_STUCK);
}

/// Writes all of a text, and waits this long for a reader that takes nothing, unless that was in vain before.
fn write_unless_stuck(to: &mut impl Write, text: &str, timeout: Duration, is_stuck: &AtomicBool) {
    let timeout = if is_stuck.load(Ordering::Relaxed) {
        Duration::ZERO
    } else {
        timeout
    };
    let ended = write_waiting(to, text.as_bytes(), timeout);
    let was_in_vain = ended.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
    is_stuck.store(was_in_vain, Ordering::Relaxed);
}

/// Writes all bytes. Another program may have made the pipe non-blocking; while it is full, its reader has this long to take
/// something.
fn write_waiting(to: &mut impl Write, mut bytes: &[u8], timeout: Duration) -> io::Result<()> {
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
                io::ErrorKind::WouldBlock if began.elapsed() < timeout => {
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

    /// A pipe that takes two bytes at a time, and is full this often before each of them.
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
        for (times, timeout, written) in [
            (0, Duration::ZERO, "q: no"),
            (3, hour, "q: no"),
            (1, Duration::ZERO, "q:"),
        ] {
            let mut pipe = FullPipe {
                written: Vec::new(),
                times,
                full: 0,
            };
            let ended = write_waiting(&mut pipe, b"q: no", timeout);
            let error = ended.err().map(|error| error.kind());
            let is_whole = written == "q: no";
            assert_eq!(error, (!is_whole).then_some(io::ErrorKind::WouldBlock));
            assert_eq!(String::from_utf8_lossy(&pipe.written), written, "{times}");
        }
    }

    #[test]
    fn a_reader_that_was_waited_for_in_vain_has_time_again_once_it_has_taken_a_message() {
        let is_stuck = AtomicBool::new(false);
        let (none, hour) = (Duration::ZERO, Duration::from_secs(3600));
        // How often the pipe is full before each part, how long its reader has, and what is written.
        for (times, timeout, written) in [
            (1, none, "q:"),
            (1, hour, "q:"),
            (0, hour, "q: no"),
            (3, hour, "q: no"),
            (1, none, "q:"),
        ] {
            let mut pipe = FullPipe {
                written: Vec::new(),
                times,
                full: 0,
            };
            write_unless_stuck(&mut pipe, "q: no", timeout, &is_stuck);
            assert_eq!(String::from_utf8_lossy(&pipe.written), written, "{times}");
        }
    }
}
