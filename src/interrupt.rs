//! Signals while an answer comes: what was shown is saved, and q dies of the signal itself.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use crate::record::Record;
use crate::unix;

/// From now on these signals save what was shown before they end q. One that was ignored when q started stays so; a
/// second one ends q at once.
pub(crate) fn install(record: &Arc<Record>) {
    let signals: Vec<i32> = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !unix::is_ignored(*signal)).collect();
    let second = Arc::new(AtomicBool::new(false));
    for signal in &signals {
        // Called in this order, so that the first signal only sets the flag. Where it cannot be registered, the signal
        // ends q as it did before.
        let _ = flag::register_conditional_default(*signal, Arc::clone(&second))
            .and_then(|_| flag::register(*signal, Arc::clone(&second)));
    }
    let Ok(mut arriving) = Signals::new(&signals) else { return };
    let record = Arc::clone(record);
    std::thread::spawn(move || {
        if let Some(signal) = arriving.forever().next() {
            record.save_interrupted();
            let _ = low_level::emulate_default_handler(signal);
        }
    });
}
