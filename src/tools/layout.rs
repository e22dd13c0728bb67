//! Lays out a call for the person who must allow it, in screenfuls in which nothing can hide (pure).

use serde_json::{Map, Value};

use crate::text::escape::escape_all;
use crate::text::locale::Charset;
use crate::unix::TerminalSize;

/// The blanks before the name of an argument. What a model wrote is never at the beginning of a row, where q writes.
const INDENT: usize = 3;

/// How far a row that continues a long line is left of the lines of its text, so that nobody takes it for one of them.
const OUTDENT: usize = 2;

/// A blank where it would not be seen.
const BLANK: &str = "\\u{20}";

/// The fewest columns in which a call can be read.
const MIN_COLUMNS: usize = 12;

/// A screenful of a call.
#[derive(Debug, PartialEq, Eq)]
pub struct Screenful {
    /// The part of the call that it shows.
    part: Vec<String>,
    /// The rows of the question below that.
    question: Vec<String>,
}

impl Screenful {
    pub fn text(&self) -> String {
        [&self.part[..], &self.question].concat().join("\n")
    }

    /// Returns its question alone.
    pub fn question(&self) -> String {
        self.question.join("\n")
    }
}

/// Returns a call in screenfuls, each with the question to ask below it: the last one whether the call may run, those before it
/// whether to go on. Above the last question, `confined` says what the kernel lets the call do. `None` if the screen has no room
/// for a part of the call above the question.
pub fn screens(
    name: &str,
    arguments: &Map<String, Value>,
    confined: Option<&str>,
    size: TerminalSize,
    charset: Charset,
) -> Option<Vec<Screenful>> {
    if size.columns < MIN_COLUMNS {
        return None;
    }
    // The last column stays free for the letter that is typed after a question.
    let width = size.columns - 1;
    let name = escape_all(name, charset);
    let rows = rows(&name, arguments, width, charset);
    let question = |left: usize| {
        let mut lines = Vec::new();
        let question = if left == 0 {
            if let Some(confined) = confined {
                let line = format!("q: {}", escape_all(confined, charset));
                lines = folded(&line, INDENT, width);
            }
            format!("q: run {name}? [y]es, [N]o, [a]lways in this run ")
        } else {
            format!("q: run {name}? {left} more lines: [v]iew, [N]o ")
        };
        lines.extend(folded(&question, INDENT, width));
        lines
    };
    let rows_of_question = question(0).len().max(question(rows.len()).len());
    let room = size.rows.checked_sub(rows_of_question)?;
    if room == 0 {
        return None;
    }
    let mut screens = Vec::new();
    let mut left = rows.len();
    for part in rows.chunks(room) {
        left -= part.len();
        screens.push(Screenful {
            part: part.to_vec(),
            question: question(left),
        });
    }
    Some(screens)
}

/// Returns the rows of a call: its name, and each argument on lines of its own.
fn rows(name: &str, arguments: &Map<String, Value>, width: usize, charset: Charset) -> Vec<String> {
    let end = if arguments.is_empty() {
        ", without arguments"
    } else {
        ":"
    };
    let mut rows = folded(&format!("q: {name} wants to run{end}"), INDENT, width);
    for (argument, value) in arguments {
        let label = format!("{}{} = ", " ".repeat(INDENT), escape_all(argument, charset));
        let indent = columns(&label).min(width / 2);
        let text = match value {
            Value::String(text) => text.replace("\r\n", "\n"),
            other => other.to_string(),
        };
        let mut begin = label;
        for line in text.split('\n') {
            let line = format!("{begin}{}", escape_all(line, charset));
            rows.extend(folded(&line, indent - OUTDENT, width));
            begin = " ".repeat(indent);
        }
    }
    rows
}

/// Returns the rows that a line takes, broken after blanks where possible. Those after the first begin at a column of their own,
/// and never with a blank of the line, which would shift what follows it.
fn folded(line: &str, column: usize, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let mut row = String::new();
    let mut used = 0;
    for word in line.split_inclusive(' ') {
        let mut is_too_long = used + columns(word) > width && columns(word) <= width - column;
        for character in word.chars() {
            let mut taken = columns_of(character);
            if is_too_long || used + taken > width {
                rows.push(std::mem::replace(&mut row, " ".repeat(column)));
                used = column;
                is_too_long = false;
            }
            let begins_row = !rows.is_empty() && used == column;
            if begins_row && character == ' ' {
                row.push_str(BLANK);
                taken = BLANK.len();
            } else {
                row.push(character);
            }
            used += taken;
        }
    }
    rows.push(row);
    rows
}

fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Returns how many columns a character takes at most. What is not ASCII counts as two, the most that any terminal takes for a
/// letter.
fn columns_of(character: char) -> usize {
    if character.is_ascii() { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn object(value: &Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    fn screens_of(arguments: &Value, columns: usize, rows: usize) -> Vec<String> {
        let size = TerminalSize { columns, rows };
        let screens = screens(
            "db__write",
            &object(arguments),
            None,
            size,
            Charset::Unicode,
        );
        let screens = screens.expect("room");
        screens.iter().map(Screenful::text).collect()
    }

    const QUESTION: &str = "q: run db__write? [y]es, [N]o, [a]lways in this run ";

    #[test]
    fn arguments_of_a_call_are_shown_by_name_with_their_newlines_as_lines() {
        for (arguments, expected) in [
            (json!({}), "q: db__write wants to run, without arguments\n"),
            (
                json!({"query": "SELECT 1", "limit": 5, "tags": ["a", null], "with": {"b": "c\nd"}}),
                "q: db__write wants to run:\n   query = SELECT 1\n   limit = 5\n   tags = [\"a\",null]\n   with = {\"b\":\"c\\nd\"}\n",
            ),
            (
                json!({"query": "INSERT INTO orders (customer, total)\r\nVALUES (1, 9.90);\n\n  --"}),
                "q: db__write wants to run:\n   query = INSERT INTO orders (customer, total)\n           VALUES (1, 9.90);\n           \n             --\n",
            ),
            (
                json!({"a\nb": "", "\u{202e}": "\rx\ty"}),
                "q: db__write wants to run:\n   a\\u{a}b = \n   \\u{202e} = \\u{d}x\\u{9}y\n",
            ),
        ] {
            let expected = format!("{expected}{QUESTION}");
            assert_eq!(screens_of(&arguments, 80, 24), [expected]);
        }
    }

    #[test]
    fn a_long_line_of_a_call_is_folded_and_continues_left_of_its_text() {
        for (line, expected) in [
            ("   a = one two", "   a = one two"),
            ("   a = one two six", "   a = one \n     two six"),
            ("   a = one  two", "   a = one  \n     two"),
            (
                "   a = one      two",
                "   a = one    \n     \\u{20} \n     two",
            ),
            ("   a = onetwosixnine", "   a = onetwos\n     ixnine"),
            ("   a = ééééé", "   a = ééé\n     éé"),
            ("   a = one twosixnin", "   a = one \n     twosixnin"),
        ] {
            assert_eq!(folded(line, 5, 14).join("\n"), expected, "{line}");
        }
    }

    #[test]
    fn a_call_that_does_not_fit_is_shown_screen_by_screen() {
        let lines: Vec<String> = (1..=9).map(|number| format!("line {number}")).collect();
        let arguments = json!({"a": lines.join("\n")});
        assert_eq!(
            screens_of(&arguments, 80, 5),
            [
                "q: db__write wants to run:\n   a = line 1\n       line 2\n       line 3\nq: run db__write? 6 more lines: [v]iew, [N]o ",
                "       line 4\n       line 5\n       line 6\n       line 7\nq: run db__write? 2 more lines: [v]iew, [N]o ",
                &format!("       line 8\n       line 9\n{QUESTION}"),
            ]
        );
        let all = format!(
            "q: db__write wants to run:\n   a = {}\n{QUESTION}",
            lines.join("\n       ")
        );
        assert_eq!(screens_of(&arguments, 80, 11), [all]);
        for (columns, rows) in [(80, 1), (30, 2), (11, 24)] {
            let size = TerminalSize { columns, rows };
            assert_eq!(
                screens(
                    "db__write",
                    &object(&arguments),
                    None,
                    size,
                    Charset::Unicode
                ),
                None,
                "{columns} by {rows}"
            );
        }
    }

    /// The rows of a terminal that draws each character this wide.
    fn drawn(text: &str, columns: usize, width: impl Fn(char) -> usize) -> Vec<String> {
        let mut rows = Vec::new();
        for line in text.split('\n') {
            let mut row = String::new();
            let mut left = columns;
            for character in line.chars() {
                if width(character) > left {
                    rows.push(std::mem::take(&mut row));
                    left = columns;
                }
                left -= width(character);
                row.push(character);
            }
            rows.push(row);
        }
        rows
    }

    /// The columns of a character as the system's C library has them, which many terminals ask; none where it has none.
    #[cfg(target_os = "linux")]
    #[allow(unsafe_code)]
    fn width_of(character: char) -> usize {
        unsafe extern "C" {
            fn wcwidth(character: libc::wchar_t) -> libc::c_int;
        }
        thread_local! {
            /// From its first use on, this thread is in a locale with UTF-8.
            static IS_UTF8: bool = {
                // SAFETY: the name ends in NUL; the locale is never freed, and only this thread uses it.
                unsafe {
                    let locale = libc::newlocale(libc::LC_CTYPE_MASK, c"C.UTF-8".as_ptr(), std::ptr::null_mut());
                    !locale.is_null() && !libc::uselocale(locale).is_null()
                }
            };
        }
        assert!(IS_UTF8.with(|is_utf8| *is_utf8), "no locale C.UTF-8");
        // SAFETY: the call takes any number.
        let width =
            unsafe { wcwidth(libc::wchar_t::try_from(u32::from(character)).expect("a character")) };
        usize::try_from(width).unwrap_or_default()
    }

    /// Elsewhere the crate that q wraps text by.
    #[cfg(not(target_os = "linux"))]
    fn width_of(character: char) -> usize {
        unicode_width::UnicodeWidthChar::width(character).unwrap_or_default()
    }

    #[test]
    fn every_character_of_a_shown_call_takes_one_or_two_columns() {
        let every = String::from_iter('\0'..=char::MAX);
        let all = escape_all(&every, Charset::Unicode);
        for character in all.chars().filter(|character| !character.is_ascii()) {
            assert!((1..=2).contains(&width_of(character)), "{character:?}");
        }
    }

    proptest! {
        #[test]
        fn arguments_of_a_call_never_move_other_text_on_any_terminal(
            // Any characters, newlines and blanks, and those that are shown or look as if they could be.
            text in prop::collection::vec(
                prop_oneof![
                    any::<char>(),
                    prop::char::range(' ', '\u{600}'),
                    prop::char::range('\u{2e80}', '\u{ffff}'),
                    prop::sample::select(vec!['\n', ' ', 'q', ':']),
                ],
                0..300,
            ),
            name in "[a-z\n =:\u{300}]{0,40}",
            columns in MIN_COLUMNS..100_usize,
            rows in 2..30_usize,
        ) {
            let text = String::from_iter(text);
            let arguments = object(&json!({name: text.clone(), "z": "END"}));
            let size = TerminalSize { columns, rows };
            let Some(screens) = screens("db__write", &arguments, None, size, Charset::Unicode) else {
                return Ok(());
            };
            let widest = |character: char| if character.is_ascii() { 1 } else { 2 };
            let mut written = Vec::new();
            for screen in screens.iter().map(Screenful::text) {
                let lines: Vec<&str> = screen.split('\n').collect();
                prop_assert!(lines.len() <= rows);
                // Each line is one row, so that none scrolls away, and the rows are where q counted them.
                prop_assert_eq!(drawn(&screen, columns - 1, width_of), &lines[..]);
                prop_assert_eq!(drawn(&screen, columns - 1, widest), &lines[..]);
                // Only q writes at the beginning of a row.
                let own = lines.iter().filter(|line| !line.starts_with("  ")).count();
                let is_first = written.is_empty();
                prop_assert_eq!(own, if is_first { 2 } else { 1 });
                written.extend(lines.into_iter().map(str::to_owned));
            }
            let last = written.iter().filter(|row| row.ends_with("   z = END")).count();
            prop_assert_eq!(last, 1);
        }

        #[test]
        fn folding_a_line_loses_no_character(line in "[a-c é日 ]{0,120}", column in 0..6_usize, width in MIN_COLUMNS..40) {
            let rows = folded(&line, column, width);
            let mut joined = rows[0].clone();
            for row in &rows[1..] {
                let (margin, part) = row.split_at(column);
                prop_assert!(margin.trim().is_empty() && !part.starts_with(' '), "{:?}", row);
                joined.push_str(part);
            }
            prop_assert_eq!(joined.replace(BLANK, " "), line);
        }
    }
}
