//! The lock of a terminal, by which only one q at a time asks a question there, and no other draws a spinner over it.

use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::unix::{self, StopRequests};

/// All terminals share this name, and their locks must not be shared.
const OWN_TERMINAL: &str = "/dev/tty";

/// How often to look whether q has been asked to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A terminal that no other q asks a question on, and whose spinners wait, until this value is dropped. When q ends, however
/// that is, the system releases the lock; programs that q starts do not inherit it.
pub struct TerminalLock {
    // Dropped before the signal handler, so that a q that stops then holds no lock.
    device: File,
    stops: StopRequests,
}

impl TerminalLock {
    /// Waits, as long as a person may take, until no other q asks on the terminal of this process. `None` if its device
    /// cannot be opened.
    pub fn wait() -> Option<TerminalLock> {
        let mut lock = TerminalLock {
            device: own_device()?,
            stops: StopRequests::hold(),
        };
        lock.acquire();
        Some(lock)
    }

    /// Waits for the lock, and stops meanwhile when asked to. A request that comes with the lock is obeyed by whoever waits for
    /// input. The system cannot wait here: q would either stop with the lock that it has just been given, or not at all.
    fn acquire(&mut self) {
        while !try_to_lock(&self.device) {
            if self.stops.have_arrived() {
                self.stops.obey();
            }
            sleep(POLL_INTERVAL);
        }
    }

    /// Waits until there is something to read on the terminal. Returns false if q has been asked to stop before.
    pub fn wait_for_input(&self) -> bool {
        while !unix::wait_for_input(&self.device, POLL_INTERVAL) {
            if self.stops.have_arrived() {
                return false;
            }
        }
        true
    }

    /// Stops q without the lock, so that another q can ask meanwhile, and waits for the lock again once q goes on.
    pub fn stop(&mut self) {
        let _ = self.device.unlock();
        self.stops.obey();
        self.acquire();
    }
}

/// Returns the device of the terminal that controls this process: only there does the user answer.
fn own_device() -> Option<File> {
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    for stream in [stderr.as_fd(), stdin.as_fd(), stdout.as_fd()] {
        if unix::controls_this_process(stream)
            && let Some(device) = device_of(stream)
        {
            return Some(device);
        }
    }
    None
}

/// Returns the device of the terminal that a spinner is drawn on.
pub fn spinner_device() -> Option<File> {
    device_of(io::stderr().as_fd()).or_else(|| device_of(io::stdout().as_fd()))
}

/// Opens the terminal of a stream by its own name.
fn device_of(stream: BorrowedFd) -> Option<File> {
    let path = unix::terminal_path(stream)?;
    if path == Path::new(OWN_TERMINAL) {
        return None;
    }
    let mut options = File::options();
    options.read(true).write(true).custom_flags(libc::O_NOCTTY);
    options.open(path).ok()
}

/// Locks a device, unless another q has the lock. Returns whether there is nothing left to wait for: where there are no
/// locks, q does without.
fn try_to_lock(device: &File) -> bool {
    match device.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(error)) => error.kind() != io::ErrorKind::Interrupted,
    }
}

/// Writes on a terminal, unless another q asks a question there; without a device that cannot be known. Returns whether it has
/// written.
pub fn write_unless_asked(device: Option<&File>, write: impl FnOnce()) -> bool {
    let Some(device) = device else {
        write();
        return true;
    };
    // Locked while it writes, so that no question appears meanwhile.
    if let Err(TryLockError::WouldBlock) = device.try_lock_shared() {
        return false;
    }
    write();
    let _ = device.unlock();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_on_a_terminal_where_another_q_asks() {
        let terminal = tempfile::NamedTempFile::new().expect("a file");
        let own = terminal.reopen().expect("a file");
        // What another q does there, and whether this one may write, and ask.
        for (what, may_write, may_ask) in [
            ("nothing", true, true),
            ("draws", true, false),
            ("asks", false, false),
        ] {
            let other = terminal.reopen().expect("a file");
            let locked = match what {
                "draws" => other.lock_shared(),
                "asks" => other.lock(),
                _ => Ok(()),
            };
            locked.expect("a lock");
            let mut has_written = false;
            let said = write_unless_asked(Some(&own), || has_written = true);
            assert_eq!([said, has_written], [may_write; 2], "{what}");
            assert_eq!(try_to_lock(&own), may_ask, "{what}");
            own.unlock().expect("no lock");
        }
    }

    #[test]
    fn no_other_q_asks_while_something_is_written_and_one_may_after_it() {
        let terminal = tempfile::NamedTempFile::new().expect("a file");
        let own = terminal.reopen().expect("a file");
        let other = terminal.reopen().expect("a file");
        let mut could_ask = true;
        write_unless_asked(Some(&own), || could_ask = try_to_lock(&other));
        assert!(!could_ask);
        assert!(try_to_lock(&other));
    }

    #[test]
    fn without_a_device_everything_is_written() {
        let mut has_written = false;
        assert!(write_unless_asked(None, || has_written = true));
        assert!(has_written);
    }
}
