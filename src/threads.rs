//! Starts threads, and locks what they share.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Starts a thread that is not joined. All threads start here, because every other place would add a copy of the code to
/// the program.
pub(crate) fn start(run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    start_boxed(Box::new(run))
}

fn start_boxed(run: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    std::thread::Builder::new().spawn(run).map(drop)
}

/// Locks a value, also after a panic.
pub(crate) fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
