//! Starts threads, and locks what they share.

use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

/// How long [`run_and_wait_briefly`] waits once the action has begun, and for its beginning, which a busy system may put off.
const BRIEF_TIMEOUT: Duration = Duration::from_millis(500);
const BEGIN_TIMEOUT: Duration = Duration::from_secs(3);

/// The most threads of [`map`], and how many calls are worth one.
const MOST: usize = 4;
const WORTH_A_THREAD: usize = 20;

/// Starts a thread that is not joined. All of these start here: for each other place that starts one, the program would have
/// another copy of the standard library's code.
pub fn start(run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    start_boxed(Box::new(run))
}

fn start_boxed(run: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    let started = thread::Builder::new().spawn(run);
    started.map(drop).map_err(|error| {
        let message = format!("cannot start a thread: {error}");
        io::Error::new(error.kind(), message)
    })
}

/// Runs an action on a thread of its own, and waits only a moment for its end, after which it goes on: writing to a terminal that
/// is stopped takes as long as it is stopped. Without a thread nothing is done.
pub fn run_and_wait_briefly(action: impl FnOnce() + Send + 'static) {
    let (sender, stages) = mpsc::channel();
    let _ = start(move || {
        let _ = sender.send(());
        action();
        drop(sender);
    });
    if stages.recv_timeout(BEGIN_TIMEOUT).is_ok() {
        let _ = stages.recv_timeout(BRIEF_TIMEOUT);
    }
}

/// Calls `run` with each number below `count`, on one thread for each [`WORTH_A_THREAD`] calls, but at most [`MOST`], and no more
/// than the machine can run at once. Returns the results in order.
pub fn map<T: Send>(count: usize, run: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let others = cores
        .min(MOST)
        .min(count / WORTH_A_THREAD)
        .saturating_sub(1);
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let result = run(number);
            lock(&results).push((number, result));
        }
    };
    thread::scope(|scope| {
        for _ in 0..others {
            // Without another thread it only takes longer.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Waits for the end of q. Never returns, because another thread is about to end q.
pub fn wait_for_the_end() -> ! {
    loop {
        thread::park();
    }
}

/// Locks a value, even if a thread has panicked while it held the lock.
pub fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_threads_are_in_the_order_of_their_numbers() {
        for count in [0, 1, 19, 2_000] {
            let squares = map(count, |number| number * number);
            assert_eq!(
                squares,
                Vec::from_iter((0..count).map(|number| number * number))
            );
        }
    }

    #[test]
    fn a_result_that_takes_longer_keeps_its_place() {
        let (sender, receiver) = mpsc::channel();
        let receiver = Mutex::new(receiver);
        let numbers = map(2 * WORTH_A_THREAD, |number| {
            if number == 0 {
                // Where there is another thread, it has passed on some results before this one.
                let _ = lock(&receiver).recv_timeout(Duration::from_secs(1));
            } else if number == WORTH_A_THREAD {
                let _ = sender.send(());
            }
            number
        });
        assert_eq!(numbers, Vec::from_iter(0..2 * WORTH_A_THREAD));
    }
}
