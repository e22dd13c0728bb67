//! Shows the answer on standard output. An unfinished word appears when it ends, or after a pause.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::stdout::{OutputError, Stdout};
use crate::threads::{self, lock};

/// How long an unfinished word waits for its end.
const WORD_TIMEOUT: Duration = Duration::from_millis(100);

/// Standard output, with a thread that shows an unfinished word after a pause.
pub struct Screen {
    pub is_terminal: bool,
    line: Mutex<LastLine>,
}

/// The answer's last line, which may hold an unfinished word.
struct LastLine {
    stdout: Stdout,
    /// When the last piece came.
    last_piece: Instant,
}

impl Screen {
    pub fn new(stdout: Stdout) -> Arc<Screen> {
        let is_terminal = stdout.is_terminal;
        let line = LastLine {
            stdout,
            last_piece: Instant::now(),
        };
        let screen = Arc::new(Screen {
            is_terminal,
            line: Mutex::new(line),
        });
        if is_terminal {
            let watched = Arc::clone(&screen);
            // Without a thread, the word just waits for its end.
            let _ = threads::start(move || watched.watch());
        }
        screen
    }

    /// Shows a piece of the answer.
    pub fn show(&self, piece: &str) -> Result<(), OutputError> {
        let mut line = lock(&self.line);
        let shown = line.stdout.write(piece);
        line.last_piece = Instant::now();
        shown
    }

    /// Ends the answer and its last line. Another answer may follow.
    pub fn end(&self) -> Result<(), OutputError> {
        lock(&self.line).stdout.end_line()
    }

    /// Prints a complete answer, or what was made from it: its code, or JSON.
    pub fn print(&self, text: &str) -> Result<(), OutputError> {
        lock(&self.line).stdout.write_complete(text)
    }

    /// Shows an unfinished word once nothing has followed it for a while. The thread ends with the process.
    fn watch(&self) {
        let mut wait = WORD_TIMEOUT;
        loop {
            std::thread::sleep(wait);
            let mut line = lock(&self.line);
            wait = WORD_TIMEOUT.saturating_sub(line.last_piece.elapsed());
            if wait.is_zero() {
                wait = WORD_TIMEOUT;
                // If this fails, the next write fails as well.
                let _ = line.stdout.write_held();
            }
        }
    }
}
