//! Shows on a terminal what q waits for and since when, and wipes it before anything else is shown.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::terminal::{Styling, Terminal};
use super::terminal_lock;
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

/// What the spinner shows.
#[derive(Default)]
struct SpinnerState {
    /// What q waits for, if it waits.
    wait: Option<Wait>,
    /// The text on the line.
    shown: String,
    /// A thread draws it.
    has_thread: bool,
    terminal: Terminal,
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
    /// A spinner that is shown if standard output and standard error are both terminals that can wipe a line.
    pub fn new(quiet: bool, terminal: &Terminal) -> Spinner {
        let is_visible = !quiet
            && terminal.styling != Styling::Dumb
            && io::stdout().is_terminal()
            && io::stderr().is_terminal();
        if !is_visible {
            return Spinner(None);
        }
        let state = SpinnerState {
            terminal: terminal.clone(),
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

    /// The same for a wait that began earlier.
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

    /// Wipes the spinner until q waits for something else. When this returns, the line is as it was.
    pub fn stop(&self) {
        let Some(state) = &self.0 else { return };
        let mut state = lock(state);
        state.wait = None;
        state.wipe();
    }

    /// Erases the line of the cursor, where another q may have drawn its spinner. Only for whoever has the terminal's lock.
    pub fn erase_line(&self) {
        if self.is_active() {
            let _ = io::stderr().write_all(ERASE_LINE.as_bytes());
        }
    }

    /// Wipes the spinner while something else is printed. It comes back if q still waits.
    pub fn make_room(&self, say: impl FnOnce()) {
        let Some(state) = &self.0 else {
            return say();
        };
        // The lock is held until everything is printed.
        let mut state = lock(state);
        state.wipe();
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
        if wait.since.elapsed() >= FIRST_DRAW_DELAY {
            let text = wait.text();
            state.draw(&text);
        }
    }
}

impl Wait {
    fn text(&self) -> String {
        let what = &self.what;
        let Some(until) = self.until else {
            let seconds = self.since.elapsed().as_secs();
            return format!("{what}, {seconds} s");
        };
        let left = until.saturating_duration_since(Instant::now());
        format!("{what} in {} s", left.as_secs() + 1)
    }
}

impl SpinnerState {
    fn draw(&mut self, text: &str) {
        // A line that wraps cannot be wiped.
        let size = unix::terminal_size(io::stdout());
        let visible = escape(&self.terminal.encoding.encode(&on_one_line(text)));
        let fitting = cut(&visible, size.columns - 1, self.terminal.encoding.charset());
        if fitting != self.shown {
            let is_drawn = self.write(&format!("{ERASE_LINE}{fitting}"));
            self.shown = if is_drawn { fitting } else { String::new() };
        }
    }

    fn wipe(&mut self) {
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
