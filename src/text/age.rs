//! Time spans for people: short for a column, in words for a sentence (pure).

use std::time::Duration;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A number and a letter, rounded down: `12s`, `5m`, `3h`, `2d`.
pub fn short(age: Duration) -> String {
    match age.as_secs() {
        seconds if seconds < MINUTE => format!("{seconds}s"),
        seconds if seconds < HOUR => format!("{}m", seconds / MINUTE),
        seconds if seconds < DAY => format!("{}h", seconds / HOUR),
        seconds => format!("{}d", seconds / DAY),
    }
}

/// An age in the largest unit that it contains at least twice, rounded down: `40 minutes`, `26 hours`, `3 days`. Under a
/// second it is `less than a second`.
pub fn in_words(age: Duration) -> String {
    let (count, unit) = match age.as_secs() {
        0 => return "less than a second".to_owned(),
        seconds if seconds < 2 * MINUTE => (seconds, "second"),
        seconds if seconds < 2 * HOUR => (seconds / MINUTE, "minute"),
        seconds if seconds < 2 * DAY => (seconds / HOUR, "hour"),
        seconds => (seconds / DAY, "day"),
    };
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_worded_for_people() {
        for (seconds, column, sentence) in [
            (0, "0s", "less than a second"),
            (1, "1s", "1 second"),
            (59, "59s", "59 seconds"),
            (60, "1m", "60 seconds"),
            (119, "1m", "119 seconds"),
            (120, "2m", "2 minutes"),
            (2433, "40m", "40 minutes"),
            (3599, "59m", "59 minutes"),
            (3600, "1h", "60 minutes"),
            (7199, "1h", "119 minutes"),
            (7200, "2h", "2 hours"),
            (86_400, "1d", "24 hours"),
            (172_799, "1d", "47 hours"),
            (172_800, "2d", "2 days"),
            (30 * 86_400, "30d", "30 days"),
        ] {
            let age = Duration::from_secs(seconds);
            assert_eq!(
                (short(age).as_str(), in_words(age).as_str()),
                (column, sentence),
                "{seconds}"
            );
        }
    }
}
