//! The lock for changing conversations: flock on their folder itself, which needs no lock file.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::whole_file::OrCannot;

/// How long to wait for the lock if nothing makes it urgent.
pub const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// Waits for the lock until that time is over.
pub(super) const PATIENTLY: GiveUp = &|waited| waited >= LOCK_PATIENCE;

/// The pause between two attempts to get a lock that another process holds.
const LOCK_POLL: Duration = Duration::from_millis(5);

/// Decides, by the time waited, whether to wait no longer for a lock.
pub type GiveUp<'a> = &'a dyn Fn(Duration) -> bool;

/// Locks a folder, while files are read, changed and written in it; dropping the result releases it. An error if the time to
/// wait for another process is over, or the file system has no locks.
pub fn acquire(folder: &Path, give_up: GiveUp) -> io::Result<File> {
    let file = File::open(folder).or_cannot("open", folder)?;
    let began = Instant::now();
    while let Err(error) = file.try_lock() {
        let TryLockError::WouldBlock = error else {
            return Err(io::Error::other("this file system has no locks"));
        };
        if give_up(began.elapsed()) {
            return Err(io::Error::other("another q holds the lock"));
        }
        std::thread::sleep(LOCK_POLL);
    }
    Ok(file)
}
