//! Shows the answer on standard output. An unfinished word is shown when it ends, or after a pause.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::output::{OutputError, Stdout};
use crate::threads::{self, lock};

/// How long an unfinished word waits for its end.
const PAUSE: Duration = Duration::from_millis(100);

/// Standard output, with a thread that shows an unfinished word after a pause.
#[derive(Debug)]
pub(super) struct Screen {
    is_terminal: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stdout: Stdout,
    /// When the last piece came.
    since: Instant,
    /// A thread watches for pauses.
    watched: bool,
}

impl Screen {
    pub(super) fn new(stdout: Stdout) -> Arc<Screen> {
        let is_terminal = stdout.is_terminal();
        let state = Mutex::new(State {
            stdout,
            since: Instant::now(),
            watched: false,
        });
        Arc::new(Screen { is_terminal, state })
    }

    /// Whether it is a terminal.
    pub(super) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Shows a piece of the answer.
    ///
    /// # Errors
    /// As for [`Stdout::write`].
    pub(super) fn show(self: &Arc<Self>, piece: &str) -> Result<(), OutputError> {
        let mut state = lock(&self.state);
        let shown = state.stdout.write(piece);
        state.since = Instant::now();
        if state.stdout.holds_word() && !std::mem::replace(&mut state.watched, true) {
            let screen = Arc::clone(self);
            // Without a thread, the word just waits for its end.
            let _ = threads::start(move || screen.watch());
        }
        shown
    }

    /// Ends the answer and its last line. Another answer may follow.
    ///
    /// # Errors
    /// As for [`Stdout::write`].
    pub(super) fn end(&self) -> Result<(), OutputError> {
        lock(&self.state).stdout.end_line()
    }

    /// Prints the whole answer, or what was made from it: its code, or JSON.
    ///
    /// # Errors
    /// As for [`Stdout::write`].
    pub(super) fn print(&self, text: &str) -> Result<(), OutputError> {
        lock(&self.state).stdout.write_whole(text)
    }

    /// Shows an unfinished word once nothing has followed it for a while. The thread ends with the process.
    fn watch(&self) {
        let mut wait = PAUSE;
        loop {
            std::thread::sleep(wait);
            let mut state = lock(&self.state);
            wait = PAUSE;
            if state.stdout.holds_word() {
                match PAUSE.checked_sub(state.since.elapsed()) {
                    Some(rest) if !rest.is_zero() => wait = rest,
                    // If this fails, the next write fails as well.
                    _ => drop(state.stdout.write_held()),
                }
            }
        }
    }
}
