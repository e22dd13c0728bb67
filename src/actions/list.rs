//! `q --list`: all conversations, or those that contain some words, as text for programs or fitted to a terminal.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::path::Path;

use memchr::memchr2_iter;
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use crate::context::Context;
use crate::error::Error;
use crate::output::{Notes, print, visible};
use crate::session::rules::FileContent;
use crate::session::store::{self, Handle, Purpose};
use crate::session::timestamp::Timestamp;
use crate::session::{self, Conversation, Entry, Exchange, list as listing};
use crate::text::age;
use crate::text::columns::cut;
use crate::text::fence;
use crate::text::one_line::on_one_line;
use crate::unix::{self, Size};

/// How many characters of a question, or around a match, a list shows.
const MAX_TEXT: usize = 200;

/// How many columns of a name are always shown: `-s` needs all of a name that q generated.
const GENERATED_NAME: usize = "session_20261121100000123".len();

/// How many characters before a match are shown. They are few, because a narrow terminal needs its room for the match.
const BEFORE_MATCH: usize = 12;

/// A conversation in a list.
#[derive(Serialize)]
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

impl Row {
    /// The match, or else the question.
    fn text(&self) -> &str {
        self.found.as_ref().unwrap_or(&self.question)
    }
}

/// The rows to show, and which files are missing from them.
#[derive(Default)]
struct Listing {
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
pub fn list(context: &Context, typed: &[OsString], json: bool, all: bool) -> Result<(), Error> {
    let current = store::find(context.folder()?, &context.which, Purpose::Look)?;
    let words = search_words(typed);
    let mut screen = None;
    if io::stdout().is_terminal() && !json {
        screen = Some(unix::terminal_size(&io::stdout()));
    }
    // Conversations that the screen has no room for are not opened.
    let room = match screen {
        Some(size) if words.is_empty() => room(size),
        _ => usize::MAX,
    };

    let mut listing = read(&current, &words, room, all, &context.notes)?;
    if !words.is_empty() {
        listing.files = listing.rows.len();
    }
    if listing.rows.is_empty() && listing.unread.is_none() && !listing.has_unusable {
        context.notes.note(if words.is_empty() {
            "there are no conversations"
        } else {
            "no message has all of these words"
        });
    }

    // A program must not mistake a part of the list for all of it.
    if json && let Some(error) = listing.unread {
        return Err(error);
    }
    let text = if json {
        serde_json::to_string(&listing.rows).map_err(Error::file)?
    } else if let Some(size) = screen {
        let now = Timestamp::now();
        lay_out(&listing.rows, listing.files, size, now)
    } else {
        separated(&listing.rows)
    };
    print(&text)?;
    match listing.unread {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// The words to search for, in lower case.
fn search_words(typed: &[OsString]) -> Vec<String> {
    let mut words = Vec::new();
    for argument in typed {
        let word = argument.to_string_lossy().trim().to_lowercase();
        if !word.is_empty() {
            words.push(word);
        }
    }
    words
}

/// Reads the newest conversations, as many as there is room for.
fn read(
    current: &Handle,
    words: &[String],
    room: usize,
    all: bool,
    notes: &Notes,
) -> Result<Listing, Error> {
    let files = listing::files(&current.folder, all).map_err(Error::file)?;
    let mut listing = Listing {
        files: files.len(),
        ..Listing::default()
    };
    let mut counted = 0;
    for file in files {
        if listing.rows.len() >= room {
            break;
        }
        match file.read() {
            Ok(FileContent::Conversation(conversation)) => {
                let mut number = None;
                if !file.is_state {
                    counted += 1;
                    number = Some(counted);
                }
                let found = find(&conversation, words);
                if words.is_empty() || found.is_some() {
                    let row = row(&conversation, number, &file.path, current, found);
                    listing.rows.push(row);
                }
            }
            // It was removed in the meantime.
            Ok(FileContent::Nothing) => {}
            Ok(FileContent::Unusable(reason)) => {
                listing.has_unusable = true;
                notes.note(&format!("not listed: {}: {reason}", file.path.display()));
            }
            // A pipe or a device is not a conversation.
            Err(error) if error.kind() == session::NOT_REGULAR => {
                listing.has_unusable = true;
                notes.note(&format!("not listed: {error}"));
            }
            Err(error) => {
                let message = format!("not everything is listed: {error}");
                listing.unread = Some(Error::file(message));
            }
        }
    }
    Ok(listing)
}

fn row(
    conversation: &Conversation,
    number: Option<usize>,
    path: &Path,
    current: &Handle,
    found: Option<String>,
) -> Row {
    let id = current.folder.id(path);
    let mut questions = conversation.exchanges.iter().filter_map(Exchange::question);
    Row {
        number,
        current: path == current.path,
        name: on_one_line(&id),
        id,
        path: path.to_string_lossy().into_owned(),
        provider: on_one_line(&conversation.provider),
        model: on_one_line(&conversation.model),
        created: conversation.created,
        updated: conversation.updated,
        messages: conversation.message_count(),
        question: questions.next().map(summary).unwrap_or_default(),
        found,
    }
}

/// A question on one line, without its fences; if it has no words, the names of its files.
fn summary(question: &Entry) -> String {
    let parts = fence::split(&question.text);
    if !parts.words.trim().is_empty() {
        return shortened(parts.words);
    }
    let mut names = Vec::new();
    for attachment in &question.attachments {
        names.push(attachment.name.clone());
    }
    names.extend(fence::names_of(parts.files));
    if names.is_empty() {
        return String::new();
    }
    shortened(&format!("[{}]", names.join(", ")))
}

/// The text around the first match, in the first message that has all the words. What the model said before a call
/// counts as a message. The words are in lower case.
fn find(conversation: &Conversation, words: &[String]) -> Option<String> {
    for entry in conversation.entries() {
        for step in &entry.steps {
            if let Some(place) = first_place(words, &step.text) {
                return Some(around(&step.text, place));
            }
        }
        if let Some(place) = first_place(words, &entry.text) {
            return Some(around(&entry.text, place));
        }
    }
    None
}

/// Where the first of the words begins in a text that has them all, in bytes of the text in lower case.
fn first_place(words: &[String], text: &str) -> Option<usize> {
    let (word, others) = words.split_first()?;
    let mut first = place_of(word, text)?;
    for other in others {
        first = first.min(place_of(other, text)?);
    }
    Some(first)
}

/// Where a word begins in a text, in bytes of the text in lower case. The word is in lower case, too.
fn place_of(word: &str, text: &str) -> Option<usize> {
    if !text.is_ascii() {
        return text.to_lowercase().find(word);
    }
    // A copy in lower case would take longer than the search.
    let bytes = text.as_bytes();
    let first = *word.as_bytes().first()?;
    for at in memchr2_iter(first, first.to_ascii_uppercase(), bytes) {
        let candidate = bytes[at..].get(..word.len())?;
        if candidate.eq_ignore_ascii_case(word.as_bytes()) {
            return Some(at);
        }
    }
    None
}

/// The text around a match. `place` is where the match begins, in bytes of the text in lower case.
fn around(text: &str, place: usize) -> String {
    let at = place_in_original(text, place);
    let mut begin = at;
    for (before, _) in text[..at].char_indices().rev().take(BEFORE_MATCH) {
        begin = before;
    }
    // No word is cut in half.
    if text[..begin].ends_with(|before: char| !before.is_whitespace()) {
        begin = match text[begin..at].find(char::is_whitespace) {
            Some(blank) => begin + blank,
            None => at,
        };
    }
    let shown = shortened(&text[begin..]);
    if text[..begin].trim().is_empty() {
        shown
    } else {
        format!("…{shown}")
    }
}

/// Finds the place in a text that belongs to a place in its lower case. Lower case may take more bytes.
fn place_in_original(text: &str, place: usize) -> usize {
    let mut lower = 0;
    for (at, character) in text.char_indices() {
        for lower_case in character.to_lowercase() {
            lower += lower_case.len_utf8();
        }
        if lower > place {
            return at;
        }
    }
    0
}

/// The beginning of a text, on one line.
fn shortened(text: &str) -> String {
    let beginning: String = text.trim_start().chars().take(MAX_TEXT).collect();
    on_one_line(&beginning)
}

/// The list for programs, with tabs between the fields.
fn separated(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let Row {
            name,
            updated,
            messages,
            provider,
            model,
            ..
        } = row;
        let shown = row.text();
        let _ = writeln!(
            text,
            "{name}\t{updated}\t{messages}\t{provider}/{model}\t{shown}"
        );
    }
    text
}

/// How many rows a screen holds: the last line is for the shell's prompt.
fn room(size: Size) -> usize {
    size.rows.saturating_sub(1).max(2)
}

/// The parts of a row on a terminal, before they are padded.
struct Line {
    mark: char,
    number: String,
    name: String,
    age: String,
    text: String,
}

impl Line {
    fn new(row: &Row, size: Size, now: Timestamp) -> Line {
        let longest_name = (size.columns / 2).max(GENERATED_NAME);
        Line {
            mark: if row.current { '*' } else { ' ' },
            number: row.number.map(|at| at.to_string()).unwrap_or_default(),
            name: cut(&visible(&row.name), longest_name),
            age: age::short(row.updated.elapsed_until(now)),
            text: visible(row.text()),
        }
    }
}

/// The list for people: number, name, age and question. No line is longer than the terminal, and there are no more lines
/// than it has. `files` is how many files there are in all.
fn lay_out(rows: &[Row], files: usize, size: Size, now: Timestamp) -> String {
    let room = room(size);
    let has_more = files > room;
    // The last line says how many more there are.
    let most = if has_more { room - 1 } else { room };
    let mut lines = Vec::new();
    for row in rows.iter().take(most) {
        lines.push(Line::new(row, size, now));
    }

    let mut digits = 0;
    let mut widest_name = 0;
    let mut longest_age = 0;
    for line in &lines {
        digits = digits.max(line.number.len());
        widest_name = widest_name.max(line.name.width());
        longest_age = longest_age.max(line.age.len());
    }

    let mut text = String::new();
    for line in &lines {
        let Line {
            mark, number, name, ..
        } = line;
        let padding = " ".repeat(widest_name - name.width());
        let age = format!("{:>longest_age$}", line.age);
        let columns = format!(
            "{mark} {number:>digits$}  {name}{padding}  {age}  {}",
            line.text
        );
        text.push_str(cut(&columns, size.columns).trim_end());
        text.push('\n');
    }
    if has_more {
        let more = format!("  {} more", files - lines.len());
        text.push_str(&cut(&more, size.columns));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
