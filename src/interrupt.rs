//! Handles signals while q asks: q saves what has come, restores the terminal, and dies of the signal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use crate::output::Spinner;
use crate::threads::{self, lock};
use crate::unix;

/// Signals closer together than this count as one: `timeout` sends its signal to q, and again to q's process group.
const SAME_SIGNAL: Duration = Duration::from_millis(50);

/// How long wiping the spinner may take once a signal has come. A terminal that is stopped takes no output at all.
const WIPE_PATIENCE: Duration = Duration::from_millis(100);

/// From now on, a write beyond the limit on file sizes (`ulimit -f`) fails like a write to a full disk, and does not
/// end q. The signal has a handler, because programs that q starts would inherit that it is ignored.
pub fn survive_size_limit() {
    let ignored = Arc::default();
    let _ = flag::register(libc::SIGXFSZ, ignored);
}

/// When an action runs before a signal ends q.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// Recording stops, because tools that the signal ends have no result to record.
    AtOnce,
    /// Programs that q has started are asked to end.
    First,
    /// What would be lost is saved.
    Then,
    /// Programs that have not ended are killed.
    Last,
}

type Action = Box<dyn FnOnce() + Send>;

/// The actions that q runs before a signal ends it.
pub struct Interrupts {
    spinner: Spinner,
    actions: Mutex<Vec<(When, Action)>>,
    installed: AtomicBool,
}

impl Interrupts {
    /// Signals are not handled yet, unless there is a spinner to wipe.
    pub fn new(spinner: &Spinner) -> Arc<Interrupts> {
        let interrupts = Arc::new(Interrupts {
            spinner: spinner.clone(),
            actions: Mutex::default(),
            installed: AtomicBool::new(false),
        });
        if spinner.is_active() {
            interrupts.install();
        }
        interrupts
    }

    /// Adds an action that runs before a signal ends q, on the signal's thread.
    pub fn before_the_end(&self, when: When, action: impl FnOnce() + Send + 'static) {
        let action = Box::new(action);
        lock(&self.actions).push((when, action));
    }

    fn run_actions(&self) {
        let mut actions = std::mem::take(&mut *lock(&self.actions));
        actions.sort_by_key(|(when, _)| *when);
        for (_, action) in actions {
            action();
        }
    }

    /// Wipes the spinner, unless the terminal takes no output.
    fn wipe_spinner(&self) {
        let spinner = self.spinner.clone();
        let (sender, wiped) = mpsc::channel();
        // Without a thread, the spinner stays on the terminal.
        let _ = threads::start(move || {
            spinner.stop();
            let _ = sender.send(());
        });
        let _ = wiped.recv_timeout(WIPE_PATIENCE);
    }

    /// Handles signals from now on. One that was ignored when q started stays ignored; a second one ends q at once.
    pub fn install(self: &Arc<Self>) {
        if self.installed.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut signals = vec![SIGINT, SIGTERM, SIGHUP, SIGQUIT];
        signals.retain(|signal| !unix::is_ignored(*signal));
        // If any of this fails, a signal still ends q as it did before.
        let Ok(mut arriving) = Signals::new(&signals) else {
            return;
        };
        let handle = arriving.handle();
        let interrupts = Arc::clone(self);
        // Whether the next signal ends q at once.
        let ends_at_once = Arc::new(AtomicBool::new(false));
        let after_first = Arc::clone(&ends_at_once);
        let thread = threads::start(move || {
            if let Some(signal) = arriving.forever().next() {
                let _ = threads::start(move || {
                    std::thread::sleep(SAME_SIGNAL);
                    after_first.store(true, Ordering::Relaxed);
                });
                // The spinner comes last, because a terminal that is stopped makes q wait.
                interrupts.run_actions();
                interrupts.wipe_spinner();
                let _ = low_level::emulate_default_handler(signal);
            }
        });
        if thread.is_err() {
            ends_at_once.store(true, Ordering::Relaxed);
            handle.close();
        }
        for signal in signals {
            let _ = flag::register_conditional_default(signal, Arc::clone(&ends_at_once));
        }
    }
}
