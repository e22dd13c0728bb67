//! What came next to what was expected: visible text, names for what differs from run to run, wildcards, and diffs.

use std::fs;

use similar::TextDiff;
use time::{Duration, OffsetDateTime};

use crate::DIRECTORY;

/// What stands for any text within a line.
const ANY_TEXT: &str = "[..]";

/// A line that stands for any lines.
const ANY_LINES: &str = "...";

/// Times this close to now come from the run; all others are written in transcripts.
const RECENT: Duration = Duration::days(30);

/// Returns the lines of an output, in which nothing is hidden: pictures of control characters, `⟨ff⟩` for a byte that is no text,
/// and `␄` where the last line has no end.
pub fn visible(bytes: &[u8]) -> Vec<String> {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("⟨{byte:02x}⟩"));
        }
    }
    let mut shown = String::new();
    for character in text.chars() {
        match character {
            '\n' => shown.push('\n'),
            // Its picture stands for a last line without an end.
            '\x04' => shown.push_str("⟨04⟩"),
            '\0'..='\x1f' => shown.push(picture(character as u32)),
            '\x7f' => shown.push('␡'),
            other => shown.push(other),
        }
    }
    if !shown.is_empty() && !shown.ends_with('\n') {
        shown.push('␄');
    }
    shown.lines().map(str::to_owned).collect()
}

fn picture(code: u32) -> char {
    char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Returns the bytes that a line of a block stands for: bytes for `⟨ff⟩` and control characters for their pictures.
pub fn bytes_of(text: &str) -> Vec<u8> {
    if text.is_ascii() {
        return text.as_bytes().to_vec();
    }
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        if let Some((byte, after)) = named_byte(rest) {
            bytes.push(byte);
            rest = after;
            continue;
        }
        match character {
            '\u{2400}'..='\u{241f}' => bytes.push((character as u32 - 0x2400) as u8),
            '␡' => bytes.push(0x7f),
            _ => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        rest = &rest[character.len_utf8()..];
    }
    bytes
}

/// Returns the byte that `⟨ff⟩` at the beginning stands for, and what follows it.
fn named_byte(text: &str) -> Option<(u8, &str)> {
    let (hex, after) = text.strip_prefix('⟨')?.split_once('⟩')?;
    let is_byte = hex.len() == 2 && hex.bytes().all(|digit| digit.is_ascii_hexdigit());
    let byte = u8::from_str_radix(hex, 16).ok()?;
    is_byte.then_some((byte, after))
}

/// The placeholders of a case for what differs from run to run: times close to now, durations, and ids that are made of
/// times. An id has the same number everywhere in a case.
#[derive(Default)]
pub struct Placeholders {
    /// The ids so far, in the order of their numbers.
    ids: Vec<String>,
}

impl Placeholders {
    /// Returns a text with placeholders.
    pub fn stable(&mut self, text: &str) -> String {
        let mut stable = String::new();
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            let after = &rest[character.len_utf8()..];
            let is_start =
                character.is_ascii_digit() && !stable.ends_with(|last: char| last.is_ascii_digit());
            if let Some(after) = rest.strip_prefix("session_").and_then(recent_id) {
                let id = rest[..rest.len() - after.len()].to_owned();
                let known = self.ids.iter().position(|known| *known == id);
                let number = known.unwrap_or_else(|| {
                    self.ids.push(id);
                    self.ids.len() - 1
                });
                stable.push_str(&format!("<id {}>", number + 1));
                rest = after;
            } else if is_start && let Some(after) = recent_time(rest) {
                stable.push_str("<time>");
                rest = after;
            } else if is_start && let Some(after) = seconds(rest) {
                stable.push_str("<n> s");
                rest = after;
            } else {
                stable.push(character);
                rest = after;
            }
        }
        stable
    }
}

/// Returns what follows the 17 digits of an id that was made now.
fn recent_id(text: &str) -> Option<&str> {
    let digits = text.get(..17)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && is_recent(&digits[..4], &digits[4..6], &digits[6..8])).then(|| &text[17..])
}

/// Returns what follows a date close to now, and the time of day after it if there is one.
fn recent_time(text: &str) -> Option<&str> {
    let date = text.get(..10)?;
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if year.len() != 4 || !is_recent(year, month, day) {
        return None;
    }
    let is_time = |byte: &u8| byte.is_ascii_digit() || b":.TZ".contains(byte);
    let rest = &text[10..];
    // A list has a blank between the two.
    let in_list = rest.split_at_checked(" 10:11".len());
    if let Some((time, after)) = in_list
        && let [b' ', _, _, b':', _, _] = time.as_bytes()
    {
        return Some(after);
    }
    let length = rest.bytes().take_while(is_time).count();
    Some(&rest[length..])
}

fn is_recent(year: &str, month: &str, day: &str) -> bool {
    let (Ok(year), Ok(month), Ok(day)) = (year.parse(), month.parse::<u8>(), day.parse()) else {
        return false;
    };
    let Ok(month) = time::Month::try_from(month) else {
        return false;
    };
    let Ok(date) = time::Date::from_calendar_date(year, month, day) else {
        return false;
    };
    (OffsetDateTime::now_utc().date() - date).abs() < RECENT
}

/// Returns what follows a duration like `0.3 s`.
fn seconds(text: &str) -> Option<&str> {
    let end = text.find(|next: char| !next.is_ascii_digit() && next != '.')?;
    let rest = text[end..].strip_prefix(" s")?;
    let is_end = !rest.starts_with(|next: char| next.is_alphanumeric());
    (text[..end].contains('.') && is_end).then_some(rest)
}

/// Whether lines fit those that are expected, with their wildcards.
pub fn matches(expected: &[String], came: &[String]) -> bool {
    match expected.split_first() {
        None => came.is_empty(),
        Some((first, rest)) if first == ANY_LINES => {
            (0..=came.len()).any(|skipped| matches(rest, &came[skipped..]))
        }
        Some((first, rest)) => came
            .split_first()
            .is_some_and(|(line, after)| line_matches(first, line) && matches(rest, after)),
    }
}

fn line_matches(expected: &str, came: &str) -> bool {
    let mut parts = expected.split(ANY_TEXT);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = came.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Gives lines a wildcard where those of another run differ.
pub fn merge(lines: &mut Vec<String>, others: &[String]) {
    if matches(lines, others) {
        return;
    }
    if lines.len() != others.len() {
        *lines = vec![ANY_LINES.to_owned()];
        return;
    }
    for (line, other) in lines.iter_mut().zip(others) {
        if !line_matches(line, other) {
            *line = merged(line, other);
        }
    }
}

/// Returns what two lines have in common at the beginning and at the end. The first one may have a wildcard already.
fn merged(one: &str, other: &str) -> String {
    let first = one.split(ANY_TEXT).next().unwrap_or_default();
    let last = one.rsplit(ANY_TEXT).next().unwrap_or_default();
    let same = |(one, other): &(char, char)| one == other;
    let begin = first.chars().zip(other.chars()).take_while(same);
    let begin: String = begin.map(|pair| pair.0).collect();
    let rest = &other[begin.len()..];
    let end = last.chars().rev().zip(rest.chars().rev()).take_while(same);
    let mut end: Vec<char> = end.map(|pair| pair.0).collect();
    // A line without a wildcard has both ends in one piece, and the two must not overlap.
    end.truncate(one.chars().count().saturating_sub(begin.chars().count()));
    let end: String = end.into_iter().rev().collect();
    format!("{begin}{ANY_TEXT}{end}")
}

/// Returns the lines that came, except that those which the expected ones fit are written as they were, with their wildcards. Lines
/// correspond from the beginning and from the end, and between these if there are as many.
pub fn blessed(expected: &[String], came: Vec<String>) -> Vec<String> {
    let fits = |(expected, came): &(&String, &String)| line_matches(expected, came);
    let begin = expected.iter().zip(&came).take_while(fits).count();
    let left = expected.len().min(came.len()) - begin;
    let from_end = expected.iter().rev().zip(came.iter().rev());
    let end = from_end.take(left).take_while(fits).count();
    let is_one_to_one = expected.len() == came.len();
    let mut lines = came;
    let first_of_end = lines.len() - end;
    for (index, line) in lines.iter_mut().enumerate() {
        let old = if index >= first_of_end {
            expected.get(index - first_of_end + expected.len() - end)
        } else if index < begin || is_one_to_one {
            expected.get(index)
        } else {
            None
        };
        if let Some(old) = old.filter(|old| line_matches(old, line)) {
            line.clone_from(old);
        }
    }
    lines
}

/// Returns the lines that are expected, except that those whose wildcards fit are shown as they came.
pub fn resolved(expected: &[String], came: &[String]) -> Vec<String> {
    let mut lines = expected.to_vec();
    for (line, came) in lines.iter_mut().zip(came) {
        if line_matches(line, came) {
            line.clone_from(came);
        }
    }
    lines
}

/// Returns how lines differ from those that are expected, with their wildcards.
pub fn difference(expected: &[String], came: &[String]) -> String {
    let text = |lines: &[String]| lines.join("\n") + "\n";
    diff(&text(&resolved(expected, came)), &text(came))
}

/// Returns how a text differs from the one that is expected; empty if it does not.
pub fn diff(expected: &str, came: &str) -> String {
    let diff = TextDiff::from_lines(expected, came);
    let mut unified = diff.unified_diff();
    unified.header("expected", "came").context_radius(4);
    unified.to_string()
}

/// Cases that are meant to differ from an older program.
pub struct Differences(Vec<String>);

impl Differences {
    /// Reads `differences.md`: each line with `- ` begins with the beginning of names, in backticks.
    pub fn read() -> Differences {
        let text =
            fs::read_to_string(format!("{DIRECTORY}/differences.md")).expect("the differences");
        let lines = text.lines().filter_map(|line| line.strip_prefix("- `"));
        let names = lines.map(|line| line.split('`').next().unwrap_or_default().to_owned());
        Differences(names.collect())
    }

    /// Whether a case is one of them.
    pub fn names(&self, case: &str) -> bool {
        self.0.iter().any(|name| case.starts_with(name))
    }
}

/// Checks the functions that decide about every case.
pub fn check_matching() {
    for (expected, came, fits) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("", "a", false),
        ("a[..]", "abc", true),
        ("[..]c", "abc", true),
        ("a[..]c", "ac", true),
        ("ab[..]bc", "abc", false),
        ("a[..]b[..]c", "a1b2c", true),
        ("a[..]b[..]c", "a1c2b", false),
        ("a[..]b[..]b", "ab", false),
    ] {
        assert_eq!(line_matches(expected, came), fits, "{expected}: {came}");
    }
    let lines = |text: &str| Vec::from_iter(text.split_whitespace().map(str::to_owned));
    for (expected, came, fits) in [
        ("", "", true),
        ("a b", "a b", true),
        ("a b", "a", false),
        ("a", "a b", false),
        ("...", "", true),
        ("a ... c", "a b b c", true),
        ("a ... c", "a c", true),
        ("a ... c", "a c d", false),
        ("... c ... e", "c c d e", true),
    ] {
        let found = matches(&lines(expected), &lines(came));
        assert_eq!(found, fits, "{expected}: {came}");
    }
    for (one, other, both) in [
        ("abc", "axc", "a[..]c"),
        ("abc", "xyz", "[..]"),
        ("aa", "a", "a[..]"),
        ("a[..]c", "abd", "a[..]"),
    ] {
        assert_eq!(merged(one, other), both, "{one}, {other}");
        let fits = line_matches(both, other) && (one.contains(ANY_TEXT) || line_matches(both, one));
        assert!(fits, "{one}, {other}");
    }
    for (expected, came, written) in [
        ("", "a b", "a b"),
        ("a[..] b", "", ""),
        ("a[..] b", "ax c", "a[..] c"),
        ("b a[..]", "c ax", "c a[..]"),
        ("a[..] b[..] c", "x by z", "x b[..] z"),
        ("a[..] c[..]", "ax b cx", "a[..] b c[..]"),
        ("a[..] b c[..]", "ax cx", "a[..] c[..]"),
        ("a[..] ... c[..]", "ax b dx", "a[..] b dx"),
        ("a[..]", "ax ay", "a[..] ay"),
        ("a[..] a[..]", "ax", "a[..]"),
        ("[..]", "a b", "[..] b"),
    ] {
        let found = blessed(&lines(expected), lines(came));
        assert_eq!(found, lines(written), "{expected}: {came}");
    }
    for (text, bytes) in [
        ("⟨ff⟩a␛", &b"\xffa\x1b"[..]),
        ("⟨ff", "⟨ff".as_bytes()),
        ("⟨f⟩", "⟨f⟩".as_bytes()),
        ("⟨+f⟩", "⟨+f⟩".as_bytes()),
        ("⟨ff a⟩", "⟨ff a⟩".as_bytes()),
        ("⟨ffé⟩", "⟨ffé⟩".as_bytes()),
    ] {
        assert_eq!(bytes_of(text), bytes, "{text}");
    }
    let today = OffsetDateTime::now_utc().date();
    let (year, month, day) = (today.year(), today.month() as u8, today.day());
    let mut placeholders = Placeholders::default();
    for (text, stable) in [
        (
            format!("{year}-{month:02}-{day:02}T10:11:12.123Z, x"),
            "<time>, x",
        ),
        (format!("x{year}-{month:02}-{day:02} 10:11 y"), "x<time> y"),
        (format!("{year}-{month:02}-{day:02} 12:3é"), "<time> 12:3é"),
        (format!("{year}-{month:02}-{day:02}é1:30"), "<time>é1:30"),
        ("2001-02-03T10:11:12Z".to_owned(), "2001-02-03T10:11:12Z"),
        (
            format!("session_{year}{month:02}{day:02}101112123"),
            "<id 1>",
        ),
        (
            format!("session_{year}{month:02}{day:02}101112124 "),
            "<id 2> ",
        ),
        (
            format!("session_{year}{month:02}{day:02}101112123"),
            "<id 1>",
        ),
        (
            "session_20010203101112123".to_owned(),
            "session_20010203101112123",
        ),
        (
            "in 0.3 s, 3 s and 0.3 seconds".to_owned(),
            "in <n> s, 3 s and 0.3 seconds",
        ),
    ] {
        assert_eq!(placeholders.stable(&text), stable, "{text}");
    }
    let all = Vec::from_iter((0..=0x7f).chain([0xc3, 0xa9, 0xff, 0xfe]));
    for bytes in [&b"a\n"[..], b"a", b"a\x04\n", b"a\x04", b"\x7f\xff", &all] {
        let shown = visible(bytes).join("\n");
        let back = match shown.strip_suffix('␄') {
            Some(without_end) => bytes_of(without_end),
            None => bytes_of(&(shown + "\n")),
        };
        assert_eq!(back, bytes);
    }
}
