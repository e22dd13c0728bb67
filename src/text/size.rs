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

/// Returns a wait in one or two units, rounded up: `12 s`, `5 min`, `2 h`, `6 d 17 h`.
pub fn in_time_units(wait: Duration) -> String {
    let seconds = wait.as_secs_f64().ceil() as u64;
    let minutes = seconds.div_ceil(60);
    let hours = minutes.div_ceil(60);
    if seconds < 120 {
        format!("{seconds} s")
    } else if minutes < 60 {
        format!("{minutes} min")
    } else if minutes < 24 * 60 {
        in_two_units((minutes / 60, "h"), (minutes % 60, "min"))
    } else {
        in_two_units((hours / 24, "d"), (hours % 24, "h"))
    }
}

/// Returns a number of each unit, without the second where it is zero.
fn in_two_units((large, unit): (u64, &str), (small, smaller_unit): (u64, &str)) -> String {
    match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {smaller_unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn a_wait_is_shown_in_the_units_that_people_would_use_and_never_shorter() {
        let table = r##"
            1 | 1 s
            119000 | 119 s
            119001 | 2 min
            120000 | 2 min
            120001 | 3 min
            3540000 | 59 min
            3540001 | 1 h
            3601000 | 1 h 1 min
            7200000 | 2 h
            11525000 | 3 h 13 min
            86340001 | 1 d
            90000000 | 1 d 1 h
            579600000 | 6 d 17 h
            579600001 | 6 d 18 h
            1000000000000 | 11574 d 2 h
        "##;
        for [milliseconds, words] in rows(table) {
            let wait = Duration::from_millis(milliseconds.parse().expect("a number"));
            assert_eq!(in_time_units(wait), words, "{milliseconds}");
        }
    }

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
