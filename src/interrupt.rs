//! Signals while q asks: what was shown is saved, the terminal is left as it was, and q dies of the signal itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use crate::output::Sign;
use crate::unix;

/// Signals that come closer together are one: `timeout`, for example, sends its own to q and then to q's whole group.
const SAME_SIGNAL: Duration = Duration::from_millis(50);

/// Writing beyond a limit on the size of files (`ulimit -f`) fails from now on like writing to a full disk, and does not
/// end q. Programs that q starts are not affected, as they would be if the signal were ignored.
pub(crate) fn survive_size_limit() {
    let _ = flag::register(libc::SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// When something is done before a signal ends q.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum When {
    /// Programs that q has started are asked to end.
    First,
    /// What would be lost is saved.
    Then,
    /// Programs that have not ended are killed.
    Last,
}

struct Action(Box<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Action {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Action")
    }
}

/// What is to be done before a signal ends q.
#[derive(Debug)]
pub(crate) struct Interrupts {
    sign: Sign,
    actions: Mutex<Vec<(When, Action)>>,
    installed: AtomicBool,
}

impl Interrupts {
    /// Nothing is done yet, and a signal ends q by itself, unless there is a sign to be wiped.
    pub(crate) fn new(sign: &Sign) -> Arc<Interrupts> {
        let interrupts =
            Arc::new(Interrupts { sign: sign.clone(), actions: Mutex::default(), installed: AtomicBool::new(false) });
        if sign.is_active() {
            interrupts.install();
        }
        interrupts
    }

    /// What a signal's thread runs before it ends q.
    pub(crate) fn before_the_end(&self, when: When, action: impl Fn() + Send + Sync + 'static) {
        self.actions().push((when, Action(Box::new(action))));
    }

    fn run_actions(&self) {
        let mut actions = std::mem::take(&mut *self.actions());
        actions.sort_by_key(|(when, _)| *when);
        for (_, Action(action)) in actions {
            action();
        }
    }

    fn actions(&self) -> MutexGuard<'_, Vec<(When, Action)>> {
        self.actions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on signals are seen to. One that was ignored when q started stays so; a second one ends q at once.
    pub(crate) fn install(self: &Arc<Self>) {
        if self.installed.swap(true, Ordering::Relaxed) {
            return;
        }
        let signals: Vec<i32> =
            [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !unix::is_ignored(*signal)).collect();
        // Where any of this fails, a signal ends q as it did before.
        let Ok(mut arriving) = Signals::new(&signals) else { return };
        let handle = arriving.handle();
        let interrupts = Arc::clone(self);
        let again = Arc::new(AtomicBool::new(false));
        let seen_to = Arc::clone(&again);
        let thread = unix::start_thread(move || {
            if let Some(signal) = arriving.forever().next() {
                let _ = unix::start_thread(move || {
                    std::thread::sleep(SAME_SIGNAL);
                    seen_to.store(true, Ordering::Relaxed);
                });
                interrupts.sign.stop();
                interrupts.run_actions();
                let _ = low_level::emulate_default_handler(signal);
            }
        });
        if thread.is_err() {
            again.store(true, Ordering::Relaxed);
            handle.close();
        }
        for signal in &signals {
            let _ = flag::register_conditional_default(*signal, Arc::clone(&again));
        }
    }
}
