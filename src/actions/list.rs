//! `q --list`: all conversations, or those that contain some words, as text for programs or fitted to a terminal.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::path::Path;

use memchr::memchr2_iter;
use serde::Serialize;
use time::OffsetDateTime;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::context::{Context, Place};
use crate::error::Error;
use crate::fence;
use crate::one_line::on_one_line;
use crate::output::{Notes, print, visible};
use crate::session::files;
use crate::session::rules::Found;
use crate::session::timestamp::Timestamp;
use crate::session::{Conversation, Entry, Exchange, age};
use crate::unix::{self, Size};

/// How many characters of a question, or around a match, a list shows.
const MAX_TEXT: usize = 200;

/// How many columns of a name are always shown: `-s` needs all of a name that q generated.
const GENERATED_NAME: usize = "session_20261121100000123".len();

/// The size of a terminal that does not report its own.
const DEFAULT_SIZE: Size = Size {
    columns: 80,
    rows: 24,
};

/// How many characters before a match are shown: few, so that a narrow terminal has room for the match.
const BEFORE_MATCH: usize = 12;

/// A conversation in a list.
#[derive(Debug, Serialize)]
struct Row {
    /// Its place in the plain list, counted from 1; an earlier state has none.
    #[serde(skip)]
    number: Option<usize>,
    id: String,
    name: String,
    path: String,
    provider: String,
    model: String,
    created: Timestamp,
    updated: Timestamp,
    messages: usize,
    /// The first question, on one line, without its fenced input; if it has no text, the names of its attachments.
    question: String,
    /// The text around the first match of one of the words, on one line.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    found: Option<String>,
    /// `-f` would continue this conversation.
    #[serde(skip)]
    current: bool,
}

/// The rows to show, and what is missing from them.
#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
    /// How many files there are.
    files: usize,
    /// A file cannot be used; a note says which.
    has_unusable: bool,
    /// Why a file could not be read.
    unread: Option<Error>,
}

/// Lists the conversations, newest first; with words, those in which a message has all of them. Earlier states are
/// listed only if `all`.
///
/// # Errors
/// A conversation could not be read, or the list could not be printed.
pub(crate) fn list(
    context: &Context,
    typed: &[OsString],
    json: bool,
    all: bool,
) -> Result<(), Error> {
    let place = context.place()?;
    let words: Vec<String> = typed
        .iter()
        .map(|word| word.to_string_lossy().to_lowercase())
        .collect();
    let words: Vec<&str> = words
        .iter()
        .map(|word| word.trim())
        .filter(|word| !word.is_empty())
        .collect();
    let size = || unix::terminal_size(&io::stdout()).unwrap_or(DEFAULT_SIZE);
    let size = (io::stdout().is_terminal() && !json).then(size);
    // Conversations that the screen has no room for are not opened.
    let room = size.filter(|_| words.is_empty()).map_or(usize::MAX, room);
    let rows = read(&place, &words, room, all, &context.notes)?;
    if rows.rows.is_empty() && rows.unread.is_none() && !rows.has_unusable {
        let none = if words.is_empty() {
            "there are no conversations"
        } else {
            "no message has all of these words"
        };
        context.notes.note(none);
    }
    if json {
        return match rows.unread {
            Some(error) => Err(error),
            None => print(
                &serde_json::to_string(&rows.rows)
                    .map_err(|error| Error::file(error.to_string()))?,
            ),
        };
    }
    let text = match size {
        Some(size) => {
            let files = if words.is_empty() {
                rows.files
            } else {
                rows.rows.len()
            };
            fitted(
                &rows.rows,
                files,
                size,
                Timestamp::new(OffsetDateTime::now_utc()),
            )
        }
        None => separated(&rows.rows),
    };
    print(&text)?;
    rows.unread.map_or(Ok(()), Err)
}

/// Reads the newest conversations, as many as there is room for.
fn read(
    place: &Place,
    words: &[&str],
    room: usize,
    all: bool,
    notes: &Notes,
) -> Result<Rows, Error> {
    let files = place
        .folder
        .list(all)
        .map_err(|error| Error::file(error.to_string()))?;
    let mut rows = Rows {
        files: files.len(),
        ..Rows::default()
    };
    let mut number = 0;
    for file in files {
        if rows.rows.len() >= room {
            break;
        }
        match files::read(&file.path) {
            Ok(Found::Conversation(conversation)) => {
                number += usize::from(!file.is_state);
                let found = find(&conversation, words);
                if words.is_empty() || found.is_some() {
                    let number = (!file.is_state).then_some(number);
                    rows.rows
                        .push(row(&conversation, number, &file.path, place, found));
                }
            }
            // It was removed in the meantime.
            Ok(Found::Nothing) => {}
            Ok(Found::Unusable(reason)) => {
                rows.has_unusable = true;
                notes.note(&format!("not listed: {}: {reason}", file.path.display()));
            }
            // A pipe or a device is not a conversation.
            Err(error) if error.kind() == files::NOT_REGULAR => {
                rows.has_unusable = true;
                notes.note(&format!("not listed: {error}"));
            }
            Err(error) => {
                rows.unread = Some(Error::file(format!("not everything is listed: {error}")))
            }
        }
    }
    Ok(rows)
}

fn row(
    conversation: &Conversation,
    number: Option<usize>,
    path: &Path,
    place: &Place,
    found: Option<String>,
) -> Row {
    let id = place.folder.id(path, conversation.created);
    let question = conversation.exchanges.iter().find_map(Exchange::question);
    Row {
        number,
        current: path == place.location.path || Some(path) == place.location.link.as_deref(),
        name: on_one_line(&id),
        id,
        path: path.to_string_lossy().into_owned(),
        provider: on_one_line(&conversation.provider),
        model: on_one_line(&conversation.model),
        created: conversation.created,
        updated: conversation.updated,
        messages: conversation.message_count(),
        question: question.map_or_else(String::new, shown),
        found,
    }
}

/// A question on one line, without its fences; if it has no words, the names of its files.
fn shown(question: &Entry) -> String {
    let parts = fence::split(&question.text);
    if !parts.words.trim().is_empty() {
        return shortened(parts.words);
    }
    let images = question
        .attachments
        .iter()
        .map(|attachment| attachment.name.clone());
    let names: Vec<String> = images.chain(fence::names_of(parts.files)).collect();
    if names.is_empty() {
        String::new()
    } else {
        shortened(&format!("[{}]", names.join(", ")))
    }
}

/// The first match in the first message that has all the words, in upper or lower case, or in what the model said
/// before a call. The words are in lower case.
fn find<'a>(conversation: &'a Conversation, words: &[&str]) -> Option<String> {
    if words.is_empty() {
        return None;
    }
    let texts = |entry: &'a Entry| {
        entry
            .steps
            .iter()
            .map(|step| &*step.text)
            .chain([&*entry.text])
    };
    conversation.entries().flat_map(texts).find_map(|text| {
        let places: Vec<usize> = words
            .iter()
            .map(|word| place_of(word, text))
            .collect::<Option<_>>()?;
        places.into_iter().min().map(|place| around(text, place))
    })
}

/// Where a word begins in a text, in bytes of the text in lower case, as the word is.
fn place_of(word: &str, text: &str) -> Option<usize> {
    if !text.is_ascii() {
        return text.to_lowercase().find(word);
    }
    // A copy in lower case would take longer than the search.
    let (text, word) = (text.as_bytes(), word.as_bytes());
    let first = *word.first()?;
    memchr2_iter(first, first.to_ascii_uppercase(), text).find(|at| {
        text[*at..]
            .get(..word.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(word))
    })
}

/// The text around a match, whose place is given in bytes of the text in lower case.
fn around(text: &str, place: usize) -> String {
    let mut lower = 0;
    let at = text.char_indices().find(|(_, character)| {
        lower += character.to_lowercase().map(char::len_utf8).sum::<usize>();
        lower > place
    });
    let at = at.map_or(0, |(at, _)| at);
    let begin = text[..at]
        .char_indices()
        .rev()
        .take(BEFORE_MATCH)
        .last()
        .map_or(at, |(begin, _)| begin);
    // No word is cut in half.
    let begin = match text[..begin].chars().next_back() {
        Some(before) if !before.is_whitespace() => text[begin..at]
            .find(char::is_whitespace)
            .map_or(at, |blank| begin + blank),
        _ => begin,
    };
    let cut = if text[..begin].trim().is_empty() {
        ""
    } else {
        "…"
    };
    format!("{cut}{}", shortened(&text[begin..]))
}

/// The beginning of a text, on one line.
fn shortened(text: &str) -> String {
    on_one_line(&text.trim_start().chars().take(MAX_TEXT).collect::<String>())
}

/// For programs: tabs between the fields.
fn separated(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let Row {
            name,
            updated,
            messages,
            provider,
            model,
            question,
            found,
            ..
        } = row;
        let question = found.as_ref().unwrap_or(question);
        let _ = writeln!(
            text,
            "{name}\t{updated}\t{messages}\t{provider}/{model}\t{question}"
        );
    }
    text
}

/// How many rows a screen holds: the last line is for the shell's prompt.
fn room(size: Size) -> usize {
    size.rows.saturating_sub(1).max(2)
}

/// For people: number, name, age and question, no line longer than the terminal, and no more lines than it has. `files`
/// is how many there are in all.
fn fitted(rows: &[Row], files: usize, size: Size, now: Timestamp) -> String {
    let room = room(size);
    // The last line says how many more there are.
    let shown = if files > room { room - 1 } else { files }.min(rows.len());
    let rows = &rows[..shown];
    let ages: Vec<String> = rows
        .iter()
        .map(|row| age::short(row.updated.elapsed_until(now)))
        .collect();
    let most = (size.columns / 2).max(GENERATED_NAME);
    let names: Vec<String> = rows
        .iter()
        .map(|row| cut(&visible(&row.name), most))
        .collect();
    let widest = names
        .iter()
        .map(|name| name.width())
        .max()
        .unwrap_or_default();
    let longest = ages.iter().map(String::len).max().unwrap_or_default();
    let numbers: Vec<String> = rows
        .iter()
        .map(|row| row.number.map_or_else(String::new, |at| at.to_string()))
        .collect();
    let digits = numbers.iter().map(String::len).max().unwrap_or_default();
    let mut text = String::new();
    for (((row, age), name), number) in rows.iter().zip(&ages).zip(&names).zip(&numbers) {
        let mark = if row.current { '*' } else { ' ' };
        let padding = " ".repeat(widest - name.width());
        let begin = format!("{mark} {number:>digits$}  {name}{padding}  {age:>longest$}  ");
        let line = format!(
            "{begin}{}",
            visible(row.found.as_ref().unwrap_or(&row.question))
        );
        let _ = writeln!(text, "{}", cut(&line, size.columns).trim_end());
    }
    if files > shown && files > room {
        let _ = writeln!(
            text,
            "{}",
            cut(&format!("  {} more", files - shown), size.columns)
        );
    }
    text
}

/// As much of a line as fits into these columns, with a mark if something is cut off.
fn cut(line: &str, columns: usize) -> String {
    if line.width() <= columns {
        return line.to_owned();
    }
    let mut used = 1;
    let fits = line.chars().take_while(|character| {
        used += character.width().unwrap_or_default();
        used <= columns
    });
    fits.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_to_the_columns_that_it_takes() {
        for (line, columns, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("a\u{301}bc", 3, "a\u{301}bc"),
            ("", 3, ""),
        ] {
            assert_eq!(cut(line, columns), expected, "{line} {columns}");
        }
    }

    #[test]
    fn what_is_shown_begins_a_little_before_the_place_that_was_found() {
        let long = "one two three four five six seven eight nine ten";
        for (text, word, expected) in [
            ("Bäume im Wald", "wald", "Bäume im Wald"),
            ("ÄÖÜ straße", "äö", "ÄÖÜ straße"),
            ("İİİ ΟΔΟΣ wald", "wald", "İİİ ΟΔΟΣ wald"),
            (long, "eight", "…six seven eight nine ten"),
            ("a\n\tb   c", "c", "a b c"),
            (&"x".repeat(300), "x", &"x".repeat(200)),
        ] {
            let place = place_of(word, text).expect("the word");
            assert_eq!(around(text, place), expected, "{text}");
        }
    }

    fn rows(count: usize, name: &str) -> Vec<Row> {
        let now = Timestamp::new(OffsetDateTime::UNIX_EPOCH);
        let row = |number| Row {
            number: Some(number),
            id: name.to_owned(),
            name: name.to_owned(),
            path: String::new(),
            provider: String::new(),
            model: String::new(),
            created: now,
            updated: now,
            messages: 2,
            question: "why".to_owned(),
            found: None,
            current: false,
        };
        (1..=count).map(row).collect()
    }

    #[test]
    fn names_that_q_gives_are_shown_whole() {
        let now = Timestamp::new(OffsetDateTime::UNIX_EPOCH);
        let text = fitted(
            &rows(1, "session_20261121100000123"),
            1,
            Size {
                columns: 40,
                rows: 24,
            },
            now,
        );
        assert_eq!(text, "  1  session_20261121100000123  0s  why\n");
    }
}
