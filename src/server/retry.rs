//! Whether and when a failed request is sent again (pure).

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use super::api_error::ApiError;
use crate::provider::failure::{ErrorClass, MAX_WAIT};

/// How often q looks whether a model has been loaded.
const LOADING_POLL: Duration = Duration::from_secs(1);

/// The shortest wait before another try.
const MIN_WAIT: Duration = Duration::from_millis(500);

/// The limits of retries: how often, and how long.
#[derive(Debug, Clone, Copy, Default)]
pub struct RetryLimits {
    /// How often a failed request is sent again.
    pub retries: u32,
    /// How long q waits for a model that the server is loading; `None` is forever.
    pub loading: Option<Duration>,
}

/// The attempts at one request so far.
#[derive(Debug, Default)]
pub struct Attempts {
    /// How often it was sent again.
    retries: u32,
    /// Since when q waits for a model that the server is loading, if it does.
    loading_since: Option<Instant>,
}

/// A pause before a request is sent again.
#[derive(Debug, PartialEq, Eq)]
pub enum Pause {
    /// The server is loading the model. To ask again then is no retry.
    Loading {
        since: Instant,
        is_first: bool,
        wait: Duration,
    },
    /// The failure may pass.
    Retry(Duration),
}

impl Attempts {
    /// Counts a failure, and decides on the pause before the next attempt; `None` if there should be none.
    pub fn pause_after(
        &mut self,
        failed: &ApiError,
        limits: &RetryLimits,
        now: Instant,
    ) -> Option<Pause> {
        if failed.meaning == ErrorClass::Loading {
            return self.pause_while_loading(limits, now);
        }
        if !failed.is_transient() {
            return None;
        }
        let wait = self.wait_to_retry(failed.retry_after, limits.retries)?;
        Some(Pause::Retry(wait))
    }

    /// Counts a failure that may pass, and returns how long to wait before the next attempt; `None` if there should be none. The
    /// server may ask for a longer wait.
    pub fn wait_to_retry(&mut self, asked: Option<Duration>, retries: u32) -> Option<Duration> {
        if self.retries >= retries {
            return None;
        }
        let wait = wait(self.retries, asked)?;
        self.retries += 1;
        Some(wait)
    }

    /// Adds to the last failure, if it may pass, how often q has tried. After a single retry there is hardly a wait to explain, and
    /// where no server was reached, it is the network that has to be looked at.
    pub fn explain(&self, mut failed: ApiError) -> ApiError {
        if self.retries > 1 && failed.is_transient() && !failed.is_unreached {
            let tried = self.retries + 1;
            let advice =
                format!("raise the retries setting (Q_RETRIES) to try more than {tried} times");
            failed.error = failed.error.advise_also(advice);
        }
        failed
    }

    fn pause_while_loading(&mut self, limits: &RetryLimits, now: Instant) -> Option<Pause> {
        let is_first = self.loading_since.is_none();
        let since = *self.loading_since.get_or_insert(now);
        let waited = now.saturating_duration_since(since);
        let left = limits.loading.map(|timeout| timeout.saturating_sub(waited));
        // The last look is at the end of the timeout.
        let wait = left.map_or(LOADING_POLL, |left| left.min(LOADING_POLL));
        let pause = Pause::Loading {
            since,
            is_first,
            wait,
        };
        (!wait.is_zero()).then_some(pause)
    }
}

/// Returns how long to wait before the next try, after this many; `None` if the server asks for a longer wait than q allows.
fn wait(tried: u32, asked: Option<Duration>) -> Option<Duration> {
    match asked {
        Some(asked) if asked > MAX_WAIT => None,
        Some(asked) if !asked.is_zero() => Some(asked.max(MIN_WAIT)),
        _ => Some(back_off(tried)),
    }
}

/// Returns a wait that doubles with each try, and up to half of it more, so that many clients do not come back at the same
/// moment.
fn back_off(tried: u32) -> Duration {
    let shortest = MIN_WAIT.saturating_mul(2_u32.saturating_pow(tried));
    // A hasher's keys are random in each process and for each hasher.
    let random = RandomState::new().build_hasher().finish() % 1000;
    let factor = 1.0 + random as f64 / 2000.0;
    let wait = shortest.min(MAX_WAIT).mul_f64(factor);
    wait.min(MAX_WAIT)
}

/// A longer wait counts as this one, in seconds: some servers write as many digits as they like.
const LONGEST: f64 = 1e9;

/// A number of seconds from here on is no wait but a time since 1970: of 2001, or later.
const FIRST_TIME: f64 = 1e9;

/// A time in seconds is before this one. A larger number is one in milliseconds, or in even smaller units.
const LAST_TIME: f64 = 1e12;

/// Reads `Retry-After` in both of its forms: seconds, or a date (RFC 9110, 10.2.3). Some servers send the seconds since 1970.
pub(super) fn retry_after(text: &str, now: OffsetDateTime) -> Option<Duration> {
    let text = text.trim();
    if let Some(seconds) = number(text) {
        return wait_of(seconds, now);
    }
    let date = OffsetDateTime::parse(text, &Rfc2822).ok();
    let date = date.or_else(|| OffsetDateTime::parse(&newer_form(text)?, &Rfc2822).ok())?;
    Some(Duration::try_from(date - now).unwrap_or_default())
}

/// Returns a date in one of the two older forms of HTTP (RFC 9110, 5.6.7) in the form of today.
fn newer_form(date: &str) -> Option<String> {
    let words = Vec::from_iter(date.split_whitespace());
    match words[..] {
        // Sunday, 06-Nov-94 08:49:37 GMT
        [_, day, time, "GMT"] => {
            let [day, month, year] = Vec::from_iter(day.split('-'))[..] else {
                return None;
            };
            // A server that dates its answers has none of the last century.
            Some(format!("{day} {month} 20{year} {time} GMT"))
        }
        // Sun Nov  6 08:49:37 1994
        [_, month, day, time, year] => Some(format!("{day} {month} {year} {time} GMT")),
        _ => None,
    }
}

/// Reads `retry-after-ms`, which OpenAI and Azure send in addition, and which is more exact.
pub(super) fn retry_after_ms(text: &str, now: OffsetDateTime) -> Option<Duration> {
    wait_of(number(text.trim())? / 1_000.0, now)
}

/// Returns the wait that an error means by the seconds for which it asks in its body.
pub(super) fn wait_in_body(asked: Option<Duration>, now: OffsetDateTime) -> Option<Duration> {
    let wait = wait_of(asked?.as_secs_f64(), now);
    wait.filter(|wait| !wait.is_zero())
}

/// Returns the wait that a server means by a number of seconds: that long, or until that time since 1970, which may have passed.
fn wait_of(mut seconds: f64, now: OffsetDateTime) -> Option<Duration> {
    if seconds >= FIRST_TIME {
        while seconds >= LAST_TIME {
            seconds /= 1_000.0;
        }
        let since_1970 = now.unix_timestamp_nanos() as f64 / 1e9;
        seconds = (seconds - since_1970).max(0.0);
    }
    Duration::try_from_secs_f64(seconds.min(LONGEST)).ok()
}

/// Returns the first of these waits that is one. A gateway may write zero where it does not know what the server behind it says.
pub(super) fn first_wait(waits: [Option<Duration>; 3]) -> Option<Duration> {
    let mut known = waits.into_iter().flatten();
    known.find(|wait| !wait.is_zero())
}

/// Reads a number in digits. Rust also reads words for infinity, which is no time to wait.
fn number(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, ErrorKind};
    use crate::text::table::rows;

    /// A failure like this, with the milliseconds that the server asks to wait.
    fn failure(word: &str, asked: &str) -> ApiError {
        let (meaning, status) = match word {
            "busy" => (ErrorClass::Transient, Some(503)),
            "no model" => (ErrorClass::UnknownModel, Some(404)),
            "no model, busy" => (ErrorClass::UnknownModel, Some(503)),
            "loading" => (ErrorClass::Loading, Some(503)),
            "spent" => (ErrorClass::Spent, Some(429)),
            other => panic!("{other}"),
        };
        ApiError {
            error: Error::new(ErrorKind::Provider { status }, ""),
            meaning,
            retry_after: asked.parse().ok().map(Duration::from_millis),
            is_unreached: false,
        }
    }

    #[test]
    fn more_retries_are_advised_only_where_a_server_was_reached_and_retried_twice() {
        for (retries, word, is_unreached, is_advised) in [
            (3, "busy", false, true),
            (2, "busy", false, true),
            (1, "busy", false, false),
            (3, "busy", true, false),
            (3, "no model", false, false),
        ] {
            let attempts = Attempts {
                retries,
                loading_since: None,
            };
            let failed = ApiError {
                is_unreached,
                ..failure(word, "-")
            };
            let advice = attempts.explain(failed).error.advice;
            let found = advice.is_some_and(|advice| advice.contains("Q_RETRIES"));
            assert_eq!(found, is_advised, "{retries} {word} {is_unreached}");
        }
    }

    #[test]
    fn a_request_is_sent_again_while_its_failure_may_pass() {
        // Failures one after the other, each after this many seconds; what the server asks for, in milliseconds; the limits of
        // retries and of milliseconds for loading; what follows each, after how many milliseconds.
        let table = r##"
            busy | - | 3 | - | 500..750
            busy; busy; busy | - | 3 | - | 500..750; 1000..1500; 2000..3000
            busy; busy | - | 1 | - | 500..750; fail
            busy | - | 0 | - | fail
            busy; busy | 7000 | 2 | - | 7000..7000; 7000..7000
            busy | 60000 | 1 | - | 60000..60000
            busy | 60001 | 1 | - | fail
            busy | 20 | 1 | - | 500..500
            no model | - | 3 | - | fail
            no model, busy | - | 3 | - | 500..750
            spent | 7000 | 3 | - | fail
            loading; loading; loading | - | 0 | - | first 1000; again 1000; again 1000
            loading; loading; loading | - | 0 | 3000 | first 1000; again 1000; again 1000
            loading; loading; loading; loading | - | 3 | 3000 | first 1000; again 1000; again 1000; fail
            loading; loading; loading | - | 3 | 1990 | first 1000; again 990; fail
            loading | - | 3 | 300 | first 300
            loading | - | 3 | 0 | fail
            loading; busy; loading | - | 1 | 5000 | first 1000; 500..750; again 1000
        "##;
        for [failures, asked, retries, loading, expected] in rows(table) {
            let limits = RetryLimits {
                retries: retries.parse().expect(retries),
                loading: loading.parse().ok().map(Duration::from_millis),
            };
            let begin = Instant::now();
            let mut now = begin;
            let mut attempts = Attempts::default();
            for (word, expected) in failures.split("; ").zip(expected.split("; ")) {
                let pause = attempts.pause_after(&failure(word, asked), &limits, now);
                let case = format!("{failures} | {asked} | {retries} | {loading}: {pause:?}");
                match (pause, expected.split_once("..")) {
                    (Some(Pause::Retry(wait)), Some((shortest, longest))) => {
                        let [shortest, longest] =
                            [shortest, longest].map(|it| it.parse().expect(it));
                        let milliseconds = wait.as_millis();
                        assert!((shortest..=longest).contains(&milliseconds), "{case}");
                    }
                    (
                        Some(Pause::Loading {
                            since,
                            is_first,
                            wait,
                        }),
                        None,
                    ) => {
                        let word = if is_first { "first" } else { "again" };
                        let found = format!("{word} {}", wait.as_millis());
                        assert_eq!((since, &*found), (begin, expected), "{case}");
                    }
                    (pause, _) => assert_eq!((pause, expected), (None, "fail"), "{case}"),
                }
                now += LOADING_POLL;
            }
        }
    }

    #[test]
    fn the_retry_after_ms_header_is_read_as_a_number() {
        let now = OffsetDateTime::from_unix_timestamp(1_780_000_000).expect("a time");
        for (text, milliseconds) in [
            ("2500", Some(2_500)),
            (" 0.5 ", Some(0)),
            ("1780000007500", Some(7_500)),
            ("1779999999000", Some(0)),
            ("99999999999999999999", Some(1_000_000_000_000)),
            ("inf", None),
            ("NaN", None),
            ("-3", None),
            ("soon", None),
            ("", None),
        ] {
            let found = retry_after_ms(text, now).map(|wait| wait.as_millis());
            assert_eq!(found, milliseconds, "{text}");
        }
    }

    #[test]
    fn a_retry_after_header_with_the_time_since_1970_means_a_wait_until_then() {
        let now = OffsetDateTime::from_unix_timestamp(1_780_000_000).expect("a time");
        for (text, seconds) in [
            ("999999999", 999_999_999),
            ("1780000003", 3),
            ("1780000003.0", 3),
            ("1780604800", 604_800),
            ("1780000003000", 3),
            ("1780000003000000", 3),
            ("1780000000", 0),
            ("1779999990", 0),
            ("1000000000", 0),
            ("9999999999", 1_000_000_000),
        ] {
            let found = retry_after(text, now);
            assert_eq!(found, Some(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn the_first_wait_that_is_not_zero_counts() {
        // The waits of the two headers and of the body in milliseconds, and the one that counts.
        let table = r##"
            - | - | - | -
            1 | 2 | 3 | 1
            - | 2 | 3 | 2
            - | - | 3 | 3
            - | 0 | 3 | 3
            0 | 2 | 3 | 2
            0 | 0 | 3 | 3
            0 | 0 | - | -
            - | - | 0 | -
        "##;
        for [exact, header, body, expected] in rows(table) {
            let waits = [exact, header, body];
            let found = first_wait(waits.map(|wait| wait.parse().ok().map(Duration::from_millis)));
            let found = found.map(|wait| wait.as_millis().to_string());
            assert_eq!(found.unwrap_or_default(), expected, "{waits:?}");
        }
    }

    #[test]
    fn the_retry_after_header_is_read_as_seconds_or_a_date() {
        let now = OffsetDateTime::parse("Sun, 06 Nov 1994 08:49:00 GMT", &Rfc2822).expect("a date");
        for (text, seconds) in [
            ("7", Some(7)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(37)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("Sun Nov  6 08:49:37 1994", Some(37)),
            ("Sun Nov 06 08:49:37 1994", Some(37)),
            ("99999999999999999999", Some(1_000_000_000)),
            ("Sun Nov  6 1994", None),
            ("one two three GMT", None),
            ("inf", None),
            ("Infinity", None),
            ("NaN", None),
            ("-3", None),
            ("soon", None),
            ("", None),
        ] {
            let found = retry_after(text, now);
            assert_eq!(found, seconds.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn the_year_of_a_date_with_two_digits_is_in_this_century() {
        let now = OffsetDateTime::parse("Sun, 29 Nov 2026 16:31:00 GMT", &Rfc2822).expect("a date");
        let found = retry_after("Sunday, 29-Nov-26 16:31:40 GMT", now);
        assert_eq!(found, Some(Duration::from_secs(40)));
    }

    #[test]
    fn waits_between_tries_grow_and_vary_within_bounds() {
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
    fn a_requested_wait_lasts_at_least_half_a_second_and_fails_beyond_a_minute() {
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
