//! Time spans for people (pure).

use std::time::Duration;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Returns a number and a letter, rounded down: `12s`, `5m`, `3h`, `2d`.
pub fn short(age: Duration) -> String {
    match age.as_secs() {
        seconds if seconds < MINUTE => format!("{seconds}s"),
        seconds if seconds < HOUR => format!("{}m", seconds / MINUTE),
        seconds if seconds < DAY => format!("{}h", seconds / HOUR),
        seconds => format!("{}d", seconds / DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn an_age_is_shown_in_its_largest_unit() {
        let table = "0 | 0s\n59 | 59s\n60 | 1m\n3599 | 59m\n3600 | 1h\n86399 | 23h\n86400 | 1d\n2592000 | 30d";
        for [seconds, expected] in rows(table) {
            let age = Duration::from_secs(seconds.parse().expect("a number"));
            assert_eq!(short(age), expected);
        }
    }
}
