//! A note about a wait, printed once nothing has arrived for a while.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use super::notes::Notes;
use crate::threads;

/// How long q waits before a note says so.
const NOTE_AFTER: Duration = Duration::from_secs(10);

/// A note that is printed unless something comes in time. The wait ends when this is dropped.
pub struct LateNote(Sender<()>);

impl LateNote {
    /// Begins the wait.
    pub fn start(notes: &Notes, note: String) -> LateNote {
        let (came, coming) = mpsc::channel();
        let notes = notes.clone();
        // Without a thread only the note is missing.
        let _ = threads::start(move || {
            if falls_silent(&coming, NOTE_AFTER) {
                notes.note(&note);
            }
        });
        LateNote(came)
    }

    /// Puts the note off, because something has arrived.
    pub fn put_off(&self) {
        let _ = self.0.send(());
    }
}

/// Waits until the reads end, or until none has arrived within the limit. Returns whether none has arrived.
fn falls_silent(coming: &Receiver<()>, limit: Duration) -> bool {
    loop {
        if let Err(error) = coming.recv_timeout(limit) {
            return error == RecvTimeoutError::Timeout;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_pause_of_the_input_is_noticed_at_any_time_and_slow_input_is_no_pause() {
        let (came, coming) = mpsc::channel();
        came.send(()).expect("a reader");
        let is_right = falls_silent(&coming, Duration::from_millis(10));
        assert!(is_right, "after the first bytes");

        let (came, coming) = mpsc::channel();
        let limit = Duration::from_millis(200);
        let (began, mut last, mut longest) = (Instant::now(), Instant::now(), Duration::ZERO);
        let silent = thread::spawn(move || falls_silent(&coming, limit));
        // All of it takes longer than the limit, and no part of it does, unless the machine is busy.
        while began.elapsed() < limit * 3 && came.send(()).is_ok() {
            thread::sleep(Duration::from_millis(5));
            longest = longest.max(last.elapsed());
            last = Instant::now();
        }
        drop(came);
        let silent = silent.join().expect("a thread that waits");
        let is_right = !silent || longest.max(last.elapsed()) >= limit / 2;
        assert!(is_right, "while input comes slowly");
    }
}
