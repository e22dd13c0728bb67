//! Durations as people write them in settings: a whole number and `s`, `m`, `h` or `d`, or `never` (pure).

use std::time::Duration;

/// The units, with their seconds.
const UNITS: [(&str, u64); 4] = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];

/// Reads `90s`, `5m`, `24h`, `30d` or `never` (`None`). An error follows the name of the setting.
pub fn parse(text: &str) -> Result<Option<Duration>, String> {
    if text == "never" {
        return Ok(None);
    }
    for (unit, seconds) in UNITS {
        if let Some(number) = text.strip_suffix(unit)
            && let Ok(number) = number.parse::<u64>()
            && let Some(total) = number.checked_mul(seconds)
        {
            return Ok(Some(Duration::from_secs(total)));
        }
    }
    Err(format!(
        "“{text}” is not a whole number with s, m, h or d, such as 90s or 24h, nor never"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_with_units_and_never_are_durations() {
        for (text, seconds) in [("0s", 0), ("5m", 300), ("24h", 86_400), ("30d", 2_592_000)] {
            let found = parse(text);
            assert_eq!(found, Ok(Some(Duration::from_secs(seconds))), "{text}");
        }
        assert_eq!(parse("never"), Ok(None));
        let wrong = " | s | 5 | 5 m | -5m | 1.5h | 5M | 5ms | ever | 5é | 99999999999999999999d | 9999999999999999d";
        for text in wrong.split(" | ") {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
