//! The lock for writing conversations: flock on their folder itself, which needs no lock file.

use std::fmt;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::files::named;

/// How long to wait for the lock if nothing makes it urgent.
pub const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// The pause between two attempts to get a lock that another process holds.
const LOCK_POLL: Duration = Duration::from_millis(5);

/// A lock on a folder, held while conversations are read, changed and written. Dropping it releases it.
#[derive(Debug)]
pub struct Lock {
    /// Closing it releases the lock.
    _file: File,
    pub(super) folder: PathBuf,
}

/// Why there is no lock.
#[derive(Debug)]
pub enum NoLock {
    /// Another process has it, and the time to wait for it is over.
    Busy,
    /// This file system has no locks.
    Unsupported,
    /// The folder cannot be opened.
    Failed(io::Error),
}

impl fmt::Display for NoLock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoLock::Busy => formatter.write_str("another q holds the lock"),
            NoLock::Unsupported => formatter.write_str("this file system has no locks"),
            NoLock::Failed(error) => error.fmt(formatter),
        }
    }
}

impl Lock {
    /// Locks a folder. While another process has the lock, calls `give_up` from time to time with the time waited.
    pub(super) fn acquire(
        folder: &Path,
        give_up: &dyn Fn(Duration) -> bool,
    ) -> Result<Lock, NoLock> {
        let file =
            File::open(folder).map_err(|error| NoLock::Failed(named(error, "open", folder)))?;
        let began = Instant::now();
        while let Err(error) = file.try_lock() {
            match error {
                TryLockError::WouldBlock => {
                    if give_up(began.elapsed()) {
                        return Err(NoLock::Busy);
                    }
                    std::thread::sleep(LOCK_POLL);
                }
                TryLockError::Error(error) => {
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(NoLock::Unsupported);
                    }
                }
            }
        }
        Ok(Lock {
            _file: file,
            folder: folder.to_owned(),
        })
    }
}
