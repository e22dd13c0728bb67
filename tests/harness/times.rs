//! How long a test waits, and moments as conversations and files have them.

use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use time::OffsetDateTime;

/// How long a test waits for something that should happen at once, however busy the machine is.
pub const GUARD: Duration = Duration::from_secs(120);

/// Waits until something is so that should be so at once.
#[track_caller]
pub fn wait_until(reached: impl Fn() -> bool) {
    let began = Instant::now();
    while !reached() {
        assert!(began.elapsed() < GUARD, "it takes too long");
        thread::sleep(Duration::from_millis(5));
    }
}

pub const MINUTE: Duration = Duration::from_secs(60);
pub const HOUR: Duration = Duration::from_secs(60 * 60);
pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A moment in the past, as a session file has it.
pub fn ago(duration: Duration) -> String {
    moment(OffsetDateTime::now_utc() - duration)
}

/// A moment that is yet to come, as a session file has it.
pub fn ahead(duration: Duration) -> String {
    moment(OffsetDateTime::now_utc() + duration)
}

fn moment(moment: OffsetDateTime) -> String {
    let [hour, minute, second] = [moment.hour(), moment.minute(), moment.second()];
    let (date, milliseconds) = (moment.date(), moment.millisecond());
    format!("{date}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// Sets when a file was changed last, as seen from now.
#[track_caller]
pub fn age(path: &Path, age: Duration) {
    change_at(path, SystemTime::now() - age);
}

/// Sets when a file was changed last.
#[track_caller]
pub fn change_at(path: &Path, moment: SystemTime) {
    let file = File::open(path).expect("a file to age");
    file.set_modified(moment).expect("another time of change");
}
