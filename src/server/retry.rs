//! How long q waits before it sends a failed request again (pure).

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use crate::provider::failure::MAX_WAIT;

/// The shortest wait before another try.
const MIN_WAIT: Duration = Duration::from_millis(500);

/// How long to wait before the next try, after this many; `None` if the server asks for a longer wait than q allows.
pub fn wait(tried: u32, asked: Option<Duration>) -> Option<Duration> {
    match asked {
        Some(asked) if asked > MAX_WAIT => None,
        Some(asked) if !asked.is_zero() => Some(asked.max(MIN_WAIT)),
        _ => Some(back_off(tried)),
    }
}

/// A wait that doubles with each try, and up to half of it more, so that many clients do not come back at the same moment.
fn back_off(tried: u32) -> Duration {
    let shortest = MIN_WAIT.saturating_mul(2_u32.saturating_pow(tried));
    // A hasher's keys are random in each process and for each hasher.
    let random = RandomState::new().build_hasher().finish() % 1000;
    let factor = 1.0 + random as f64 / 2000.0;
    let wait = shortest.min(MAX_WAIT).mul_f64(factor);
    wait.min(MAX_WAIT)
}

/// Advice to wait as long as the server asks, in whole seconds rounded up; `None` if it asks for no wait.
pub fn advice(asked: Option<Duration>) -> Option<String> {
    let asked = asked.filter(|asked| !asked.is_zero())?;
    let seconds = asked.as_secs_f64().ceil();
    Some(format!("the server asks to try again in {seconds:.0} s"))
}

/// A longer wait counts as this one, in seconds: some servers write as many digits as they like.
const LONGEST: f64 = 1e9;

/// Reads `Retry-After` in both of its forms: seconds, or a date (RFC 9110, 10.2.3).
pub(super) fn retry_after(text: &str, now: OffsetDateTime) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        // Of what is no number, the other would be the smaller one.
        let seconds = if seconds > LONGEST { LONGEST } else { seconds };
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = OffsetDateTime::parse(text, &Rfc2822).ok()?;
    Some(Duration::try_from(date - now).unwrap_or_default())
}

/// Reads `retry-after-ms`, which OpenAI and Azure send beside the other, and which is more exact.
pub(super) fn retry_after_ms(text: &str) -> Option<Duration> {
    let milliseconds: f64 = text.trim().parse().ok()?;
    Duration::try_from_secs_f64(milliseconds / 1_000.0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_ms_is_a_number() {
        for (text, milliseconds) in [
            ("2500", Some(2_500)),
            (" 0.5 ", Some(0)),
            ("-3", None),
            ("soon", None),
            ("", None),
        ] {
            let found = retry_after_ms(text).map(|wait| wait.as_millis());
            assert_eq!(found, milliseconds, "{text}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = OffsetDateTime::parse("Sun, 06 Nov 1994 08:49:00 GMT", &Rfc2822).expect("a date");
        for (text, seconds) in [
            ("7", Some(7)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(37)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("99999999999999999999", Some(1_000_000_000)),
            ("-3", None),
            ("soon", None),
            ("", None),
        ] {
            let found = retry_after(text, now);
            assert_eq!(found, seconds.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn advice_never_names_a_shorter_wait_than_the_server_asks_for() {
        for (asked, seconds) in [
            (None, None),
            (Some(0), None),
            (Some(500), Some(1)),
            (Some(2_000), Some(2)),
        ] {
            let expected =
                seconds.map(|seconds: u64| format!("the server asks to try again in {seconds} s"));
            let found = advice(asked.map(Duration::from_millis));
            assert_eq!(found, expected, "{asked:?}");
        }
    }

    #[test]
    fn waits_grow_and_vary_within_bounds() {
        for tried in 0..4 {
            let shortest = MIN_WAIT * 2_u32.pow(tried);
            for asked in [None, Some(Duration::ZERO)] {
                for _ in 0..50 {
                    let wait = wait(tried, asked).expect("a wait");
                    let is_right = wait >= shortest && wait <= shortest.mul_f64(1.5);
                    assert!(is_right, "{wait:?}");
                }
            }
        }
        assert!(wait(u32::MAX, None).is_some_and(|wait| wait <= MAX_WAIT));
    }

    #[test]
    fn what_a_server_asks_for_is_waited_for_up_to_a_minute_and_at_least_half_a_second() {
        for (asked, waited) in [
            (1, Some(500)),
            (500, Some(500)),
            (501, Some(501)),
            (60_000, Some(60_000)),
            (60_001, None),
        ] {
            let found = wait(0, Some(Duration::from_millis(asked)));
            assert_eq!(found, waited.map(Duration::from_millis), "{asked}");
        }
    }
}
