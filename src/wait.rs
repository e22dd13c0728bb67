//! Waits for what q is not told, such as the end of a program, by looking again after pauses that grow.

use std::thread;
use std::time::{Duration, Instant};

/// The first pause, and the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// The pauses of a wait. What has taken long may go on for long, so q looks less often then.
pub struct GrowingPauses {
    began: Instant,
    limit: Option<Duration>,
}

impl GrowingPauses {
    /// Begins a wait of at most this long; `None` is no limit.
    pub fn begin(limit: Option<Duration>) -> GrowingPauses {
        GrowingPauses {
            began: Instant::now(),
            limit,
        }
    }

    /// Returns how long to wait before looking again.
    pub fn next(&self) -> Duration {
        pause_after(self.began.elapsed())
    }

    /// Whether the time is up.
    pub fn are_over(&self) -> bool {
        self.limit
            .is_some_and(|limit| self.began.elapsed() >= limit)
    }
}

fn pause_after(waited: Duration) -> Duration {
    (waited / 50).clamp(FIRST_PAUSE, LONGEST_PAUSE)
}

/// Waits until a condition holds, at most this long; `None` is no limit. Returns whether it does.
pub fn wait_until(limit: impl Into<Option<Duration>>, mut holds: impl FnMut() -> bool) -> bool {
    let pauses = GrowingPauses::begin(limit.into());
    while !holds() {
        if pauses.are_over() {
            return false;
        }
        thread::sleep(pauses.next());
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_the_time_waited_up_to_a_limit() {
        for (waited, pause) in [(0, 2), (100, 2), (500, 10), (1_000, 20), (3_600_000, 20)] {
            let found = pause_after(Duration::from_millis(waited));
            assert_eq!(found, Duration::from_millis(pause), "{waited} ms");
        }
    }

    #[test]
    fn a_condition_is_looked_at_before_the_time_is_up_and_again_until_it_holds() {
        // The time, the look at which the condition holds, and what comes of it.
        for (limit, holds_at, expected, looks) in [
            (Some(Duration::ZERO), 1, true, 1),
            (Some(Duration::ZERO), 2, false, 1),
            (Some(Duration::MAX), 3, true, 3),
            (None, 3, true, 3),
        ] {
            let mut count = 0;
            let held = wait_until(limit, || {
                count += 1;
                count >= holds_at
            });
            assert_eq!((held, count), (expected, looks), "{limit:?} {holds_at}");
        }
    }
}
