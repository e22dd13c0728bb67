//! Shows on a terminal what q waits for and since when, and erases it before anything else is shown.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::terminal::{Styling, Terminal};
use super::terminal_lock;
use super::text_encoding::TextEncoding;
use crate::text::columns::cut;
use crate::text::escape::escape;
use crate::text::one_line::on_one_line;
use crate::threads::{self, lock};
use crate::unix;

/// A shorter wait gets no spinner.
const FIRST_DRAW_DELAY: Duration = Duration::from_millis(300);

/// How often the seconds are updated.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Returns to the beginning of the line and erases it (ECMA-48: EL).
const ERASE_LINE: &str = "\r\u{1b}[K";

/// A spinner, or none if nobody would see it.
#[derive(Clone, Default)]
pub struct Spinner(Option<Arc<Mutex<SpinnerState>>>);

/// The state of the spinner, and what it shows.
#[derive(Default)]
struct SpinnerState {
    /// What q waits for, if it waits.
    wait: Option<Wait>,
    /// The text on the line.
    shown: String,
    /// Whether a thread draws it.
    has_thread: bool,
    encoding: TextEncoding,
    /// The terminal, if its device can be opened.
    device: OnceCell<Option<File>>,
}

/// One wait, and its reason in words.
struct Wait {
    what: String,
    since: Instant,
    /// Until then the number of seconds counts down.
    until: Option<Instant>,
}

impl Spinner {
    /// Returns a spinner that is shown if standard output and standard error are both terminals that can erase a line.
    pub fn new(quiet: bool, terminal: &Terminal) -> Spinner {
        let is_visible = !quiet
            && terminal.styling != Styling::Dumb
            && io::stdout().is_terminal()
            && io::stderr().is_terminal();
        if !is_visible {
            return Spinner(None);
        }
        let state = SpinnerState {
            encoding: terminal.encoding.clone(),
            ..SpinnerState::default()
        };
        Spinner(Some(Arc::new(Mutex::new(state))))
    }

    /// Whether it is shown when q waits.
    pub fn is_active(&self) -> bool {
        self.0.is_some()
    }

    /// Changes what q waits for, but not since when.
    pub fn rename(&self, what: &str) {
        let Some(state) = &self.0 else { return };
        if let Some(wait) = &mut lock(state).wait {
            what.clone_into(&mut wait.what);
        }
    }

    /// Shows that q waits for this, and since when.
    pub fn wait_for(&self, what: &str) {
        self.begin(what, Instant::now(), None);
    }

    /// Shows a wait that began earlier.
    pub fn wait_since(&self, what: &str, since: Instant) {
        self.begin(what, since, None);
    }

    /// Shows how long q will still wait for this.
    pub fn count_down(&self, what: &str, wait: Duration) {
        let now = Instant::now();
        self.begin(what, now, Some(now + wait));
    }

    fn begin(&self, what: &str, since: Instant, until: Option<Instant>) {
        let Some(shared) = &self.0 else { return };
        let mut state = lock(shared);
        state.wait = Some(Wait {
            what: what.to_owned(),
            since,
            until,
        });
        if !state.has_thread {
            let shared = Arc::clone(shared);
            // Without a thread only the spinner is missing.
            state.has_thread = threads::start(move || draw_while_waiting(&shared)).is_ok();
        }
    }

    /// Erases the spinner until q waits for something else. When this returns, the line is as it was.
    pub fn stop(&self) {
        let Some(state) = &self.0 else { return };
        let mut state = lock(state);
        state.wait = None;
        state.erase();
    }

    /// Erases the line of the cursor, where another q may have drawn its spinner. Only for whoever has the terminal's lock.
    pub fn erase_line(&self) {
        if self.is_active() {
            let _ = io::stderr().write_all(ERASE_LINE.as_bytes());
        }
    }

    /// Erases the spinner while something else is printed. It comes back if q still waits.
    pub fn make_room(&self, say: impl FnOnce()) {
        let Some(state) = &self.0 else {
            return say();
        };
        // The lock is held until everything is printed.
        let mut state = lock(state);
        state.erase();
        say();
    }
}

/// Draws the spinner until q waits for nothing.
fn draw_while_waiting(shared: &Mutex<SpinnerState>) {
    loop {
        sleep(REDRAW_INTERVAL);
        let mut state = lock(shared);
        let Some(wait) = &state.wait else {
            state.has_thread = false;
            return;
        };
        if let Some(text) = wait.text(Instant::now()) {
            state.draw(&text);
        }
    }
}

impl Wait {
    /// Returns what the spinner says at this moment; `None` as long as the wait is short.
    fn text(&self, now: Instant) -> Option<String> {
        let what = &self.what;
        let elapsed = now.saturating_duration_since(self.since);
        if elapsed < FIRST_DRAW_DELAY {
            return None;
        }
        let Some(until) = self.until else {
            return Some(format!("{what}, {} s", elapsed.as_secs()));
        };
        let left = until.saturating_duration_since(now);
        Some(format!("{what} in {} s", left.as_secs() + 1))
    }
}

/// Returns the visible form of a text, as far as it fits on one line of a terminal of this many columns. A line that wraps cannot
/// be erased, so the last column stays free.
fn fit(text: &str, columns: usize, encoding: &TextEncoding) -> String {
    let visible = escape(&encoding.encode(&on_one_line(text)));
    cut(&visible, columns - 1, encoding.charset())
}

impl SpinnerState {
    fn draw(&mut self, text: &str) {
        let size = unix::terminal_size(io::stdout());
        let fitting = fit(text, size.columns, &self.encoding);
        if fitting != self.shown {
            let is_drawn = self.write(&format!("{ERASE_LINE}{fitting}"));
            self.shown = if is_drawn { fitting } else { String::new() };
        }
    }

    fn erase(&mut self) {
        if !std::mem::take(&mut self.shown).is_empty() {
            self.write(ERASE_LINE);
        }
    }

    /// Writes on the terminal, unless the line is not for this q: in the background it is where the user types, and while
    /// another q asks a question, that has erased the line, and its question stays.
    fn write(&self, text: &str) -> bool {
        if unix::is_in_background(io::stderr()) {
            return false;
        }
        // Losing the terminal is no reason to end.
        let write = || _ = io::stderr().write_all(text.as_bytes());
        let device = self.device.get_or_init(terminal_lock::spinner_device);
        terminal_lock::write_unless_asked(device.as_ref(), write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spinner_counts_the_seconds_of_a_wait_that_is_not_short() {
        // What q waits for, and in milliseconds: how long it has waited, and when a countdown ends.
        for (what, elapsed, until, expected) in [
            ("waiting", 0, None, None),
            ("waiting", 299, None, None),
            ("waiting", 300, None, Some("waiting, 0 s")),
            ("waiting", 999, None, Some("waiting, 0 s")),
            ("waiting", 1_000, None, Some("waiting, 1 s")),
            ("thinking", 61_500, None, Some("thinking, 61 s")),
            ("trying again", 299, Some(5_000), None),
            (
                "trying again",
                300,
                Some(5_000),
                Some("trying again in 5 s"),
            ),
            (
                "trying again",
                4_000,
                Some(5_000),
                Some("trying again in 2 s"),
            ),
            (
                "trying again",
                4_001,
                Some(5_000),
                Some("trying again in 1 s"),
            ),
            (
                "trying again",
                5_000,
                Some(5_000),
                Some("trying again in 1 s"),
            ),
            (
                "trying again",
                9_000,
                Some(5_000),
                Some("trying again in 1 s"),
            ),
        ] {
            let since = Instant::now();
            let after = |milliseconds| since + Duration::from_millis(milliseconds);
            let wait = Wait {
                what: what.to_owned(),
                since,
                until: until.map(after),
            };
            let text = wait.text(after(elapsed));
            assert_eq!(text.as_deref(), expected, "{what} {elapsed} {until:?}");
        }
    }

    #[test]
    fn a_spinner_fits_on_its_line() {
        for (locale, columns, text, expected) in [
            ("C.UTF-8", 80, "waiting, 1 s", "waiting, 1 s"),
            ("C.UTF-8", 13, "waiting, 1 s", "waiting, 1 s"),
            ("C.UTF-8", 12, "waiting, 1 s", "waiting, 1…"),
            ("C.UTF-8", 7, "日本語", "日本語"),
            ("C.UTF-8", 6, "日本語", "日本…"),
            ("C.UTF-8", 80, "a\n b\u{1b}[1m", "a b^[[1m"),
            ("C", 80, "für", "f\\u{fc}r"),
            ("C", 12, "waiting, 1 s", "waiting,..."),
        ] {
            let encoding = TextEncoding::new(|name| (name == "LC_ALL").then_some(locale));
            let fitting = fit(text, columns, &encoding);
            assert_eq!(fitting, expected, "{locale} {columns} {text:?}");
        }
    }
}
