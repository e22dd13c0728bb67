//! Starts threads, and locks what they share.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Starts a thread that is not joined. All threads start here: for each other place that starts one, the program would have
/// another copy of the standard library's code.
pub fn start(run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    start_boxed(Box::new(run))
}

fn start_boxed(run: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    let builder = std::thread::Builder::new();
    builder.spawn(run)?;
    Ok(())
}

/// Locks a value, even if a thread has panicked while it held the lock.
pub fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
