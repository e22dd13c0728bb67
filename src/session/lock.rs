//! The lock for changing conversations: flock on their directory itself, which needs no lock file.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use crate::threads;
use crate::whole_file::{OrCannot, identity_of};

/// How long to wait for the lock if nothing makes it urgent.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits for the lock until that time is over.
pub(super) const AT_TIMEOUT: GiveUp = &|waited| waited >= LOCK_TIMEOUT;

/// The pause between two attempts to get a lock that another process holds.
const LOCK_POLL: Duration = Duration::from_millis(5);

/// How often to look for the lock before sleeping.
const SPINS: usize = 200;

/// How long a single attempt may take, where the system itself waits.
const ATTEMPT: Duration = Duration::from_millis(200);

/// Decides, by the time waited, whether to wait no longer for a lock.
pub type GiveUp<'a> = &'a dyn Fn(Duration) -> bool;

/// The locks of some directories. Dropping it releases them.
pub struct Lock {
    /// Held only to be dropped.
    _directories: Vec<File>,
}

/// Locks directories, in this order, while files are read, changed and written in them. An error if they are not all locked
/// when `give_up` says so, or if one cannot be locked at all.
pub fn acquire(directories: &[&Path], give_up: GiveUp) -> io::Result<Lock> {
    LockRequest::prepare(directories, true).wait(give_up)
}

/// Locks a directory, unless another process holds the lock: this does not wait for it.
pub fn try_acquire(directory: &Path) -> io::Result<Lock> {
    LockRequest::prepare(&[directory], false).wait(&|waited| waited >= ATTEMPT)
}

/// A request for locks that is not made yet. A network file system whose lock server is away lets flock wait forever, although
/// it was told not to wait, so a thread makes the request, which takes a moment to start.
pub struct LockRequest {
    attempt: Arc<Attempt>,
    /// Lets the thread begin.
    begin: Sender<()>,
    outcome: Receiver<io::Result<Lock>>,
    has_thread: bool,
}

impl LockRequest {
    /// Starts the thread for a request. With `repeats`, it tries again while another process holds a lock.
    pub fn prepare(directories: &[&Path], repeats: bool) -> LockRequest {
        let attempt = Arc::new(Attempt {
            directories: directories.iter().map(|path| path.to_path_buf()).collect(),
            repeats,
            has_begun: AtomicBool::default(),
            is_held: AtomicBool::default(),
            is_given_up: AtomicBool::default(),
        });
        let (begin, begins) = mpsc::channel();
        let (sender, outcome) = mpsc::channel();
        let threads_attempt = Arc::clone(&attempt);
        let started = threads::start(move || {
            if begins.recv().is_ok() {
                // If nobody waits any more, this releases the locks.
                let _ = sender.send(threads_attempt.lock_all(&|| false));
            }
        });
        LockRequest {
            attempt,
            begin,
            outcome,
            has_thread: started.is_ok(),
        }
    }

    /// Makes the request, and waits until `give_up` says so.
    pub fn wait(self, give_up: GiveUp) -> io::Result<Lock> {
        let mut began = Instant::now();
        if !self.has_thread || self.begin.send(()).is_err() {
            return self.attempt.lock_all(&|| give_up(began.elapsed()));
        }
        for attempt in 0_usize.. {
            let mut pause = LOCK_POLL;
            if attempt < SPINS {
                // A lock that is free comes at once, and to sleep and be woken would take longer. On a busy machine each of these
                // may take as long as others run.
                std::thread::yield_now();
                pause = Duration::ZERO;
            }
            match self.outcome.recv_timeout(pause) {
                Ok(locked) => return locked,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let mut waited = began.elapsed();
            // A busy machine may let the thread wait.
            if !self.attempt.has_begun.load(Ordering::Relaxed) {
                began = Instant::now();
                waited = Duration::ZERO;
            }
            if give_up(waited) {
                break;
            }
        }
        self.attempt.is_given_up.store(true, Ordering::Relaxed);
        Err(self.attempt.unavailable())
    }
}

/// An attempt to lock directories, as the thread that makes it and the one that waits for it see it.
struct Attempt {
    directories: Vec<PathBuf>,
    /// Whether to try again while another process holds a lock.
    repeats: bool,
    has_begun: AtomicBool,
    /// Another process holds a lock.
    is_held: AtomicBool,
    /// Nobody waits for the locks any more.
    is_given_up: AtomicBool,
}

impl Attempt {
    fn lock_all(&self, give_up: &dyn Fn() -> bool) -> io::Result<Lock> {
        self.has_begun.store(true, Ordering::Relaxed);
        let mut locked = Vec::new();
        let mut identities = Vec::new();
        for path in &self.directories {
            let directory = File::open(path).or_cannot("open", path)?;
            // One directory may have two paths, and would wait for itself.
            let identity = identity_of(&directory.metadata()?);
            if identities.contains(&identity) {
                continue;
            }
            self.lock(&directory, path, give_up)?;
            identities.push(identity);
            locked.push(directory);
        }
        Ok(Lock {
            _directories: locked,
        })
    }

    fn lock(&self, directory: &File, path: &Path, give_up: &dyn Fn() -> bool) -> io::Result<()> {
        loop {
            match directory.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::WouldBlock) => self.is_held.store(true, Ordering::Relaxed),
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {
                    continue;
                }
                Err(TryLockError::Error(error)) => return Err(cannot_lock(path, error)),
            }
            if !self.repeats || self.is_given_up.load(Ordering::Relaxed) || give_up() {
                return Err(self.unavailable());
            }
            std::thread::sleep(LOCK_POLL);
        }
    }

    /// Returns the error where the time to wait is over.
    fn unavailable(&self) -> io::Error {
        if self.is_held.load(Ordering::Relaxed) {
            return io::Error::other("another q holds the lock");
        }
        io::Error::other("the file system does not answer a request for a lock")
    }
}

/// Returns the error of a lock that cannot be had, now or ever.
fn cannot_lock(path: &Path, error: io::Error) -> io::Error {
    let without_locks = [libc::ENOLCK, libc::EOPNOTSUPP, libc::ENOSYS];
    match error.raw_os_error() {
        Some(code) if without_locks.contains(&code) => {
            io::Error::other("this file system has no locks")
        }
        _ => io::Error::other(format!("cannot lock {}: {error}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn directories() -> [tempfile::TempDir; 2] {
        [(); 2].map(|()| tempfile::tempdir().expect("a directory"))
    }

    fn held(directory: &Path) -> Lock {
        try_acquire(directory).unwrap_or_else(|error| panic!("it is free: {error}"))
    }

    #[test]
    fn the_time_to_wait_for_locks_is_shared_by_all_directories() {
        let [first, second] = directories();
        let hold = Cell::new(Some(held(first.path())));
        let _held = held(second.path());
        let limit = Duration::from_millis(100);
        let waited_before = Cell::new(Duration::ZERO);
        let give_up = |waited| {
            // The first becomes free after half of the time, and the time goes on for the second.
            if waited >= limit / 2 {
                hold.take();
            }
            let before = waited_before.replace(waited);
            assert!(before <= waited);
            waited >= limit
        };
        let locked = acquire(&[first.path(), second.path()], &give_up);
        let error = locked.err().expect("the second is never free");
        assert_eq!(error.to_string(), "another q holds the lock");
        assert!(waited_before.get() >= limit && hold.take().is_none());
    }

    #[test]
    fn whether_to_wait_any_longer_is_asked_from_the_beginning_on() {
        let [directory, _] = directories();
        let _held = held(directory.path());
        // Asked between pauses alone, three times would always take longer than two pauses.
        let is_quick = (0..1_000).any(|_| {
            let asked = Cell::new(0);
            let began = Instant::now();
            let give_up = |_| asked.replace(asked.get() + 1) == 2;
            assert!(acquire(&[directory.path()], &give_up).is_err());
            began.elapsed() < LOCK_POLL * 2
        });
        assert!(is_quick);
    }

    #[test]
    fn locked_directories_are_released_if_another_cannot_be_locked() {
        let [first, second] = directories();
        let hold = held(second.path());
        let both = [first.path(), second.path()];
        assert!(acquire(&both, &|_| true).is_err());
        drop(hold);
        // The thread that nobody waits for any more may still be about to release them.
        acquire(&both, AT_TIMEOUT).unwrap_or_else(|error| panic!("they are free: {error}"));
    }

    #[test]
    fn a_directory_with_two_paths_is_locked_once() {
        let [directory, elsewhere] = directories();
        let link = elsewhere.path().join("link");
        std::os::unix::fs::symlink(directory.path(), &link).expect("a link");
        let lock = acquire(&[directory.path(), &link], AT_TIMEOUT);
        let lock = lock.unwrap_or_else(|error| panic!("it is free: {error}"));
        assert!(try_acquire(&link).is_err());
        drop(lock);
        held(&link);
    }
}
