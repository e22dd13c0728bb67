//! Sizes and times as people say them (pure).

use std::time::Duration;

const KILO: u64 = 1_000;
const MEGA: u64 = 1_000_000;

/// Returns a number of bytes in words: `1 byte`, `2 bytes`.
pub fn in_bytes(count: impl TryInto<u64>) -> String {
    match count.try_into().unwrap_or(u64::MAX) {
        1 => "1 byte".to_owned(),
        count => format!("{count} bytes"),
    }
}

/// Returns a size in the largest unit in which it is a whole number: `10 MB`, `50 kB`, `1234 bytes`.
pub fn in_units(bytes: impl TryInto<u64>) -> String {
    let bytes = bytes.try_into().unwrap_or(u64::MAX);
    match bytes {
        0 => in_bytes(bytes),
        _ if bytes.is_multiple_of(MEGA) => format!("{} MB", bytes / MEGA),
        _ if bytes.is_multiple_of(KILO) => format!("{} kB", bytes / KILO),
        _ => in_bytes(bytes),
    }
}

/// Returns a time in seconds: `1 s`, `0.5 s`.
pub fn in_seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_in_seconds() {
        for (milliseconds, words) in [(0, "0 s"), (500, "0.5 s"), (60_000, "60 s")] {
            assert_eq!(in_seconds(Duration::from_millis(milliseconds)), words);
        }
    }

    #[test]
    fn a_size_is_shown_in_the_largest_unit_that_leaves_no_fraction() {
        for (bytes, words) in [
            (0_u64, "0 bytes"),
            (1, "1 byte"),
            (2, "2 bytes"),
            (999, "999 bytes"),
            (1_000, "1 kB"),
            (1_500, "1500 bytes"),
            (50_000, "50 kB"),
            (1_000_000, "1 MB"),
            (10_000_000, "10 MB"),
            (10_500_000, "10500 kB"),
        ] {
            assert_eq!(in_units(bytes), words);
        }
    }
}
