//! Moments as the files of conversations have them: UTC, RFC 3339, milliseconds.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

use crate::unix;

/// The beginning of ids.
pub const ID_PREFIX: &str = "session_";

/// A moment, to the millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Timestamp(OffsetDateTime);

impl Timestamp {
    pub fn now() -> Timestamp {
        Timestamp::new(OffsetDateTime::now_utc())
    }

    /// Returns a moment in UTC, cut to the millisecond.
    pub fn new(moment: OffsetDateTime) -> Timestamp {
        Timestamp(moment.truncate_to_millisecond())
    }

    /// Returns when a file was changed; 1970 for a time that no calendar has.
    pub fn from_mtime(modified: SystemTime) -> Timestamp {
        let since_1970 = modified.duration_since(SystemTime::UNIX_EPOCH);
        let nanoseconds = since_1970.unwrap_or_default().as_nanos() as i128;
        let moment = OffsetDateTime::from_unix_timestamp_nanos(nanoseconds);
        Timestamp::new(moment.unwrap_or(OffsetDateTime::UNIX_EPOCH))
    }

    /// Reads RFC 3339. `None`: it is not such a time, or would not be one in UTC.
    pub(super) fn parse(text: &str) -> Option<Timestamp> {
        let moment = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        let moment = moment.checked_to_offset(UtcOffset::UTC)?;
        if moment.year() < 0 {
            return None;
        }
        Some(Timestamp::new(moment))
    }

    /// Returns the next moment, one millisecond later; the last of the calendar is its own next.
    pub fn next(self) -> Timestamp {
        Timestamp(self.0.saturating_add(time::Duration::MILLISECOND))
    }

    /// Returns how long ago this was; zero if it is in the future.
    pub fn elapsed_until(self, now: Timestamp) -> Duration {
        Duration::try_from(now.0 - self.0).unwrap_or_default()
    }

    /// Returns local time to the minute, for people.
    pub fn local(self) -> String {
        let seconds = unix::utc_offset(self.0.unix_timestamp());
        let mut local = self.0;
        if let Ok(offset) = UtcOffset::from_whole_seconds(seconds)
            && let Some(moment) = self.0.checked_to_offset(offset)
        {
            local = moment;
        }
        format!("{} {:02}:{:02}", local.date(), local.hour(), local.minute())
    }

    /// Returns the id of the conversation created at this time: `session_` and the moment to the millisecond, in 17 digits.
    pub fn id(self) -> String {
        let mut digits = self.to_string();
        digits.retain(|character| character.is_ascii_digit());
        format!("{ID_PREFIX}{digits}")
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hour, minute, second, millisecond) = self.0.to_hms_milli();
        write!(
            formatter,
            "{}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z",
            self.0.date()
        )
    }
}

impl From<Timestamp> for String {
    fn from(moment: Timestamp) -> String {
        moment.to_string()
    }
}

impl TryFrom<String> for Timestamp {
    type Error = String;

    fn try_from(text: String) -> Result<Timestamp, String> {
        let moment = Timestamp::parse(&text);
        moment.ok_or_else(|| format!("“{text}” is not a time such as 2026-11-21T10:00:00.000Z"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Timestamp, serde_json::Error> {
        serde_json::from_value(serde_json::Value::from(text))
    }

    #[test]
    fn times_are_written_in_utc_to_the_millisecond() {
        for (text, written) in [
            ("2026-11-21T10:00:00.000Z", "2026-11-21T10:00:00.000Z"),
            ("2026-11-21T10:00:00Z", "2026-11-21T10:00:00.000Z"),
            ("2026-11-21T12:00:00.1239+02:00", "2026-11-21T10:00:00.123Z"),
            ("0001-02-03T04:05:06.007Z", "0001-02-03T04:05:06.007Z"),
            ("0000-01-01T00:00:00-01:00", "0000-01-01T01:00:00.000Z"),
        ] {
            assert_eq!(parse(text).expect(text).to_string(), written);
        }
        let texts = "|yesterday|2026-11-21|2026-13-21T10:00:00Z|\
            2026-11-21T10:00:00|9999-12-31T23:59:59-01:00|0000-01-01T00:00:00+01:00";
        for text in texts.split('|') {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_id_has_the_time_to_the_millisecond() {
        let moment = parse("2026-12-31T23:59:58.007Z").expect("a time");
        assert_eq!(moment.id(), "session_20261231235958007");
    }

    #[test]
    fn the_next_moment_is_a_millisecond_later() {
        let moment = parse("2026-12-31T23:59:59.999Z").expect("a time");
        assert_eq!(moment.next().to_string(), "2027-01-01T00:00:00.000Z");
        let found = moment.elapsed_until(moment.next());
        assert_eq!(found, Duration::from_millis(1));
        assert_eq!(moment.next().elapsed_until(moment), Duration::ZERO);
    }
}
