//! Handles signals while q asks: q saves what has come, restores the terminal, and dies of the signal.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use crate::output::Spinner;
use crate::threads::{self, lock};
use crate::unix;

/// Ignores SIGXFSZ: from now on, a write beyond the limit on file sizes (`ulimit -f`) fails like a write to a full disk, and does
/// not end q. The signal has a handler, because programs that q starts would inherit that it is ignored.
pub fn ignore_sigxfsz() {
    let ignored = Arc::default();
    let _ = flag::register(libc::SIGXFSZ, ignored);
}

/// A phase of the end by a signal, in which an action runs before a signal ends q.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShutdownPhase {
    /// Programs that q has started are asked to end.
    StopPrograms,
    /// What would be lost is saved.
    Save,
    /// Programs that have not ended are killed.
    KillPrograms,
}

type Action = Box<dyn FnOnce() + Send>;

/// The actions that q runs before a signal ends it.
pub struct Interrupts {
    spinner: Spinner,
    actions: Mutex<Vec<(ShutdownPhase, Action)>>,
    installed: AtomicBool,
    arrived: Arc<AtomicBool>,
}

impl Interrupts {
    /// Signals are not handled yet, unless there is a spinner to wipe, or the system would ignore them.
    pub fn new(spinner: &Spinner) -> Arc<Interrupts> {
        let interrupts = Arc::new(Interrupts {
            spinner: spinner.clone(),
            actions: Mutex::default(),
            installed: AtomicBool::default(),
            arrived: Arc::default(),
        });
        if spinner.is_active() || is_first_process() {
            interrupts.install();
        }
        interrupts
    }

    /// Adds an action that runs before a signal ends q, on the signal's thread.
    pub fn on_signal(&self, when: ShutdownPhase, action: impl FnOnce() + Send + 'static) {
        let action = Box::new(action);
        lock(&self.actions).push((when, action));
    }

    /// Whether a signal is about to end q. That is so from its arrival on, also if the thread that handles it does not run yet.
    pub fn has_signal(&self) -> bool {
        self.arrived.load(Ordering::Relaxed)
    }

    /// Does not return if a signal is about to end q.
    pub fn wait_if_ending(&self) {
        if self.has_signal() {
            threads::wait_for_the_end();
        }
    }

    fn run_actions(&self) {
        self.arrived.store(true, Ordering::Relaxed);
        let mut actions = std::mem::take(&mut *lock(&self.actions));
        actions.sort_by_key(|(when, _)| *when);
        for (_, action) in actions {
            action();
        }
    }

    /// Handles signals from now on. One that was ignored when q started stays ignored. Later ones change nothing:
    /// `timeout` sends its signal to q, and again to q's process group.
    pub fn install(self: &Arc<Self>) {
        if self.installed.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut signals = vec![SIGINT, SIGTERM, SIGHUP, SIGQUIT];
        signals.retain(|signal| !unix::is_ignored(*signal));
        // If this fails, a signal still ends q as it did before.
        let Ok(mut arriving) = Signals::new(&signals) else {
            return;
        };
        let interrupts = Arc::clone(self);
        let started = threads::start(move || {
            if let Some(signal) = arriving.forever().next() {
                interrupts.run_actions();
                let spinner = interrupts.spinner.clone();
                threads::run_and_wait_briefly(move || spinner.stop());
                die_of(signal);
            }
        });
        for signal in signals {
            let _ = match started {
                Ok(()) => flag::register(signal, Arc::clone(&self.arrived)),
                // The handlers stay, so without a thread to run the actions, signals would be lost: they end q, and nothing is
                // saved.
                Err(_) => {
                    flag::register_conditional_default(signal, Arc::new(AtomicBool::new(true)))
                }
            };
        }
    }
}

/// Whether this is process 1, as in a container. The system ignores every signal to it that has no handler.
fn is_first_process() -> bool {
    process::id() == 1
}

/// Ends q as the signal would have. Process 1 cannot die of a signal, so it has the exit status that shells report for that.
fn die_of(signal: i32) {
    if is_first_process() {
        low_level::exit(128 + signal);
    }
    let _ = low_level::emulate_default_handler(signal);
}
