//! Starts threads, and locks what they share.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

/// How long [`run_briefly`] waits.
const PATIENCE: Duration = Duration::from_millis(500);

/// Starts a thread that is not joined. All of these start here: for each other place that starts one, the program would have
/// another copy of the standard library's code.
pub fn start(run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    start_boxed(Box::new(run))
}

fn start_boxed(run: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    let builder = thread::Builder::new();
    builder.spawn(run)?;
    Ok(())
}

/// Runs an action on a thread of its own, and waits only a moment for its end: writing to a terminal that is stopped takes as
/// long as it is stopped. Without a thread nothing is done.
pub fn run_briefly(action: impl FnOnce() + Send + 'static) {
    let (sender, ended) = mpsc::channel::<()>();
    let _ = start(move || {
        action();
        drop(sender);
    });
    let _ = ended.recv_timeout(PATIENCE);
}

/// Never returns, because another thread is about to end q.
pub fn wait_for_the_end() -> ! {
    loop {
        thread::park();
    }
}

/// Locks a value, even if a thread has panicked while it held the lock.
pub fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
