//! Durations as people write them in settings: a whole number and `s`, `m`, `h` or `d`, or `never` (pure).

use std::time::Duration;

use crate::text::digits::whole_number;
use crate::text::nearest::nearest;

/// The word for a duration without end.
const NEVER: &str = "never";

/// The longest duration, of about 3,000 years. The clock of a system can overflow with a longer one.
const MAX_SECONDS: u64 = 100_000_000_000;

/// The units, with their seconds.
const UNITS: [(&str, u64); 4] = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];

/// Reads `90s`, `5m`, `24h`, `30d` or `never` (`None`). An error follows the name of the setting.
pub fn parse(text: &str) -> Result<Option<Duration>, String> {
    parse_or(text, "never")
}

/// Reads a span: a duration, or `0` alone.
pub fn parse_span(text: &str) -> Result<Option<Duration>, String> {
    match text {
        "0" => Ok(Some(Duration::ZERO)),
        _ => parse_or(text, "never or 0"),
    }
}

/// Reads a duration. An error about something else says what else there may be.
fn parse_or(text: &str, words: &str) -> Result<Option<Duration>, String> {
    if text == NEVER {
        return Ok(None);
    }
    for (unit, seconds) in UNITS {
        if let Some(number) = text.strip_suffix(unit)
            && let Some(number) = whole_number::<u64>(number)
            && let Some(total) = number.checked_mul(seconds)
        {
            if total > MAX_SECONDS {
                return Err(format!("“{text}” is too long: never means without end"));
            }
            return Ok(Some(Duration::from_secs(total)));
        }
    }
    Err(format!(
        "“{text}” is not a whole number with s, m, h or d, such as 90s or 24h, nor {words}"
    ))
}

/// Reads a timeout: like `parse`, but not zero.
pub fn parse_timeout(text: &str) -> Result<Option<Duration>, String> {
    let timeout = parse(text)?;
    if timeout == Some(Duration::ZERO) {
        Err(format!("“{text}” is too short: at least 1s, or never"))
    } else {
        Ok(timeout)
    }
}

/// The units as people also write them, with their seconds. A month has 30 days, and a year 365.
const LONG_UNITS: [(&str, f64); 11] = [
    ("milliseconds", 0.001),
    ("ms", 0.001),
    ("seconds", 1.0),
    ("minutes", 60.0),
    ("hours", 3_600.0),
    ("hrs", 3_600.0),
    ("days", 86_400.0),
    ("weeks", 604_800.0),
    ("months", 2_592_000.0),
    ("years", 31_536_000.0),
    ("yrs", 31_536_000.0),
];

/// Returns the duration that somebody may have meant by a text that is none, such as `90s` by `1.5 min`. A number alone has the
/// usual unit.
pub fn guess(text: &str, usual_unit: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let is_endless = ["none", "off", "no", "infinite", "forever"].contains(&&*text);
    if is_endless || nearest(&text, [NEVER]).is_some() {
        return Some(NEVER.to_owned());
    }
    if whole_number::<u64>(&text).is_some() {
        return Some(format!("{text}{usual_unit}"));
    }
    let mut seconds = 0.0;
    let mut rest = &*text;
    while !rest.is_empty() {
        let is_of_number = |c: char| c.is_ascii_digit() || c == '.';
        let (number, after) = split_where(rest, |c| !is_of_number(c));
        let (unit, after) = split_where(after.trim_start(), is_of_number);
        seconds += number.parse::<f64>().ok()? * seconds_of(unit.trim_end())?;
        rest = after;
    }
    (seconds > 0.0 && seconds < MAX_SECONDS as f64).then(|| shortest(seconds.ceil() as u64))
}

/// Returns the text before the first character for which this is true, and the rest.
fn split_where(text: &str, is_first: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(is_first).unwrap_or(text.len()))
}

/// Returns the seconds of a unit that is written out, or the beginning of one, such as `min`.
fn seconds_of(unit: &str) -> Option<f64> {
    let is_meant = |(name, _): &&(&str, f64)| !unit.is_empty() && name.starts_with(unit);
    // A single letter is a unit of q, so m is no month; and mo is one.
    let short = UNITS.iter().find(|(name, _)| *name == unit);
    short.map(|(_, seconds)| *seconds as f64).or_else(|| {
        let found = LONG_UNITS.iter().find(is_meant)?;
        Some(found.1)
    })
}

/// Returns the duration in the largest unit of which it is a multiple.
fn shortest(seconds: u64) -> String {
    let mut shortest = format!("{seconds}s");
    for (unit, length) in UNITS {
        if seconds.is_multiple_of(length) {
            shortest = format!("{}{unit}", seconds / length);
        }
    }
    shortest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_with_units_and_never_are_durations() {
        for (text, seconds) in [
            ("0s", 0),
            ("5m", 300),
            ("24h", 86_400),
            ("30d", 2_592_000),
            ("100000000000s", MAX_SECONDS),
        ] {
            let found = parse(text);
            assert_eq!(found, Ok(Some(Duration::from_secs(seconds))), "{text}");
        }
        assert_eq!(parse("never"), Ok(None));
        let wrong = " | s | 5 | 5 m | -5m | +5m | 1.5h | 5M | 5ms | ever | 5é | 99999999999999999999d | 9999999999999999d | 18446744073709551615s | 100000000001s";
        for text in wrong.split(" | ") {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_invalid_duration_is_answered_with_a_guess_where_that_is_clear() {
        for (text, guessed) in [
            ("30", "30s"),
            ("0", "0s"),
            ("30 s", "30s"),
            ("30S", "30s"),
            ("30sec", "30s"),
            ("30 seconds", "30s"),
            ("1.5h", "90m"),
            ("1h30m", "90m"),
            ("1 h 30 min", "90m"),
            ("10 minutes", "10m"),
            ("5min", "5m"),
            ("2hrs", "2h"),
            ("1w", "7d"),
            ("2 weeks", "14d"),
            ("1 month", "30d"),
            ("1y", "365d"),
            ("500ms", "1s"),
            ("NEVER", "never"),
            ("nevr", "never"),
            ("none", "never"),
        ] {
            assert_eq!(guess(text, "s").as_deref(), Some(guessed), "{text}");
            let is_duration = parse(guessed).is_ok();
            assert!(is_duration, "{guessed}");
        }
        assert_eq!(guess("7", "d").as_deref(), Some("7d"));
        for text in
            " | s | soon | +30 | -5m | 5x | 1e9 | 1.2.3s | 5é | 99999999999999999999d | 0.0h | h1"
                .split(" | ")
        {
            assert_eq!(guess(text, "s"), None, "{text}");
        }
    }

    #[test]
    fn a_timeout_is_a_duration_but_not_zero() {
        for (text, found) in [
            ("1s", Some(Some(1))),
            ("2m", Some(Some(120))),
            ("never", Some(None)),
            ("0s", None),
            ("0d", None),
            ("1", None),
        ] {
            let seconds = parse_timeout(text)
                .ok()
                .map(|time| time.map(|time| time.as_secs()));
            assert_eq!(seconds, found, "{text}");
        }
    }
}
