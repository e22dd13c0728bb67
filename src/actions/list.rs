//! `q --list`: all conversations, or those that contain some words, as text for programs or fitted to a terminal.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Mutex;

use serde::Serialize;
use serde_json::json;

use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::output::{Notes, Terminal, print};
use crate::session::directory::{ConversationFile, StateDirectory};
use crate::session::name::option_of;
use crate::session::rules::FileKind;
use crate::session::store::{self, Handle, Purpose};
use crate::session::timestamp::Timestamp;
use crate::session::title::{shortened, title_of};
use crate::session::{self, Conversation};
use crate::text::age;
use crate::text::columns::{cut, width};
use crate::text::escape::escape;
use crate::text::one_line::on_one_line;
use crate::text::search::Word;
use crate::threads;
use crate::unix::{self, TerminalSize};
use crate::whole_file::ReadFailure;

/// How many characters before a match are shown. They are few, because a narrow terminal needs its room for the match.
const BEFORE_MATCH: usize = 12;

/// How many names a note about them has at most.
const MAX_NAMES: usize = 3;

/// Files with more bytes than this are not read side by side.
const LARGE: u64 = 1_000_000;

/// A conversation in a list.
#[derive(Serialize)]
struct Row {
    /// Its place in the plain list, counted from 1; a backup has none.
    #[serde(skip)]
    number: Option<usize>,
    id: String,
    name: String,
    /// What of the name a terminal shows.
    #[serde(skip)]
    label: Label,
    path: String,
    provider: String,
    model: String,
    created: Timestamp,
    updated: Timestamp,
    messages: usize,
    /// The words of the first question, on one line.
    question: String,
    /// The text around the first match of one of the words, on one line.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    found: Option<String>,
    /// Whether it is the current conversation.
    #[serde(skip)]
    current: bool,
}

impl Row {
    /// Returns the match, or else the question.
    fn text(&self) -> &str {
        self.found.as_ref().unwrap_or(&self.question)
    }

    /// Returns what a terminal of this size shows of the name.
    fn shown_name(&self, size: TerminalSize, terminal: &Terminal) -> String {
        let name = shown(&self.name, terminal);
        match self.label {
            Label::Nothing => String::new(),
            // A narrow screen must have room for the question, too.
            Label::Name => cut(&name, size.columns / 3, terminal.encoding.charset()),
            Label::Backup => name,
        }
    }
}

/// The name of a conversation, as a terminal shows it.
#[derive(PartialEq)]
enum Label {
    /// Nothing: q has named it, and its number is shorter.
    Nothing,
    /// The name that the user has given it, perhaps only its beginning.
    Name,
    /// The whole name of a backup, which has no number.
    Backup,
}

/// The columns that are shown of the conversations, and the room for them.
struct ListOptions {
    /// How many rows there is room for.
    room: usize,
    /// Whether rows have the numbers of conversations.
    numbers: bool,
    /// Whether a match has the first question next to it.
    questions: bool,
}

/// The result of a search in a file.
enum FileMatch {
    /// No file, or one that lacks a word.
    Nothing,
    /// A conversation, and its row if it has the words.
    Conversation(Option<Box<Row>>),
}

/// The conversations that are listed, and why a file could not be read.
struct Listing {
    rows: Vec<Row>,
    /// How many of the conversations that were read have a number.
    counted: usize,
    /// How many files were not opened, because there is no room for them.
    unopened: usize,
    unread: Result<(), Error>,
}

/// Lists the conversations, newest first; with words, those in which a message has all of them. Backups are listed
/// only with `--all`.
pub fn list(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let current = store::find(context.directory()?, context.conversation()?, Purpose::Look)?;
    let words = search_words(&arguments.words);
    let terminal = context.notes.terminal();
    let mut screen = None;
    if io::stdout().is_terminal() && !arguments.json {
        screen = Some(unix::terminal_size(io::stdout()));
    }
    let shown = ListOptions {
        // Conversations that the screen has no room for are not opened.
        room: match screen {
            Some(size) if words.is_empty() => room(size),
            _ => usize::MAX,
        },
        numbers: screen.is_some(),
        questions: arguments.json,
    };

    let files = current
        .directory
        .files(arguments.all)
        .map_err(Error::file)?;
    let Listing {
        rows,
        unopened,
        unread,
        ..
    } = find_words(&files, &words, &shown, &current, &context.notes);
    if unread.is_ok() {
        if words.is_empty() && files.is_empty() {
            context.notes.note("there are no conversations");
        } else if !words.is_empty() && rows.is_empty() {
            let names = names_note(&words, &files, &current.directory);
            let note = format!("no message has all of these words{names}");
            context.notes.note(&note);
        }
    }

    if arguments.json {
        // A program must not mistake a part of the list for all of it.
        unread?;
        return print(&json!(rows).to_string(), terminal);
    }
    let text = match screen {
        Some(size) => lay_out(&rows, rows.len() + unopened, size, terminal),
        None => separated(&rows),
    };
    print(&text, terminal)?;
    unread
}

/// Returns the words to search for, in lower case.
fn search_words(arguments: &[OsString]) -> Vec<Word> {
    let mut words = Vec::new();
    for argument in arguments {
        let word = argument.to_string_lossy().trim().to_lowercase();
        if !word.is_empty() {
            words.push(Word::new(word));
        }
    }
    words
}

/// Says which of these conversations have all of the words in their names, in the order of the files: a name is no part of a
/// message.
fn names_note(words: &[Word], files: &[ConversationFile], directory: &StateDirectory) -> String {
    let mut commands = Vec::new();
    for file in files {
        let is_named = directory.kind(&file.path) == FileKind::Named;
        let name = directory.id(&file.path);
        let lower = name.to_lowercase();
        if is_named && words.iter().all(|word| lower.contains(word.lower())) {
            commands.push(format!("q{}", option_of(&name)));
        }
    }
    commands_note(&commands)
}

/// Says with which commands names continue that have the words.
fn commands_note(commands: &[String]) -> String {
    let (shown, others) = commands.split_at(commands.len().min(MAX_NAMES));
    let mut list = shown.join(", ");
    if !others.is_empty() {
        list += &format!(" and {} more", others.len());
    }
    match commands {
        [] => String::new(),
        [_] => format!(", but a name has: {list}"),
        _ => format!(", but names have: {list}"),
    }
}

/// Reads files until there is no more room for their rows.
fn find_words(
    files: &[ConversationFile],
    words: &[Word],
    shown: &ListOptions,
    current: &Handle,
    notes: &Notes,
) -> Listing {
    let mut listing = Listing {
        rows: Vec::new(),
        counted: 0,
        unopened: files.len(),
        unread: Ok(()),
    };
    let mut unopened = files;
    let turn = Mutex::new(());
    while listing.rows.len() < shown.room && !unopened.is_empty() {
        let count = unopened.len().min(shown.room - listing.rows.len());
        let (next, rest) = unopened.split_at(count);
        unopened = rest;
        let searched = threads::map(count, |index| {
            let file = &next[index];
            // They take much memory, so there is one at a time.
            let _turn = (file.bytes > LARGE).then(|| threads::lock(&turn));
            look_into(file, words, shown, current)
        });
        for (file, found) in next.iter().zip(searched) {
            listing.add(file, found, notes);
        }
    }
    listing.unopened = unopened.len();
    listing
}

impl Listing {
    /// Adds what was found in a file. A note says if the file is not a conversation.
    fn add(
        &mut self,
        file: &ConversationFile,
        found: Result<FileMatch, ReadFailure>,
        notes: &Notes,
    ) {
        match found {
            Ok(FileMatch::Conversation(row)) => {
                let mut number = None;
                if !file.is_backup {
                    self.counted += 1;
                    number = Some(self.counted);
                }
                self.rows.extend(row.map(|row| Row { number, ..*row }));
            }
            // It was removed in the meantime.
            Ok(FileMatch::Nothing) => {}
            Err(ReadFailure::Unusable(reason)) => {
                notes.note(&format!("not listed: {reason}"));
            }
            Err(ReadFailure::System(error)) => {
                let message = format!("not everything is listed: {error}");
                self.unread = Err(Error::file(message));
            }
        }
    }
}

/// Reads a file, and looks for the words in it.
fn look_into(
    file: &ConversationFile,
    words: &[Word],
    shown: &ListOptions,
    current: &Handle,
) -> Result<FileMatch, ReadFailure> {
    let read = if shown.numbers {
        // What cannot be used must not be counted.
        session::read(&file.path)
    } else {
        session::read_if_it_may_have(&file.path, words)
    };
    let Some(conversation) = read? else {
        return Ok(FileMatch::Nothing);
    };
    let found = first_match(&conversation, words);
    if found.is_none() && !words.is_empty() {
        return Ok(FileMatch::Conversation(None));
    }
    let mut row = row(&conversation, &file.path, current);
    if found.is_none() || shown.questions {
        row.question = title_of(&conversation).unwrap_or_default();
    }
    row.found = found;
    Ok(FileMatch::Conversation(Some(Box::new(row))))
}

/// Returns the row of a conversation, but for its number and its texts.
fn row(conversation: &Conversation, path: &Path, current: &Handle) -> Row {
    let id = current.directory.id(path);
    let label = match current.directory.kind(path) {
        FileKind::AutoNamed | FileKind::Link | FileKind::Temporary => Label::Nothing,
        FileKind::Named | FileKind::External => Label::Name,
        FileKind::Backup => Label::Backup,
    };
    Row {
        number: None,
        label,
        current: path == current.path,
        name: on_one_line(&id),
        id,
        path: path.to_string_lossy().into_owned(),
        provider: on_one_line(&conversation.provider),
        model: on_one_line(&conversation.model),
        created: conversation.created,
        updated: conversation.updated,
        messages: conversation.message_count(),
        question: String::new(),
        found: None,
    }
}

/// Returns the text around the first match, in the first message that has all the words.
fn first_match(conversation: &Conversation, words: &[Word]) -> Option<String> {
    for entry in conversation.entries() {
        if words.iter().all(|word| entry.may_have(word))
            && let Some(found) = around_first(words, &entry.text())
        {
            return Some(found);
        }
    }
    None
}

/// Returns the text around the first of the words, if it has them all. The words are in lower case.
fn around_first(words: &[Word], text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let mut first = None;
    for word in words {
        let place = word.place_in(&lower)?;
        first = Some(first.unwrap_or(place).min(place));
    }
    let first = first?;
    let mut bytes = 0;
    let mut before = 0_usize;
    for character in text.chars() {
        // Lower case may take more bytes.
        bytes += character.to_lowercase().map(char::len_utf8).sum::<usize>();
        if bytes > first {
            break;
        }
        before += 1;
    }
    let skipped = before.saturating_sub(BEFORE_MATCH);
    let place = |count| text.char_indices().nth(count).map(|(at, _)| at);
    let mut begin = place(skipped).unwrap_or_default();
    let found = place(before).unwrap_or(text.len());
    // A part of a word, or of a tag, would look like something else. A long one is better than nothing before the match.
    let is_in_word = text[..begin].ends_with(|last: char| !last.is_whitespace());
    let words_before = text[begin..found].trim_end();
    if is_in_word && let Some(blank) = words_before.find(char::is_whitespace) {
        begin += blank;
    }
    let mark = if skipped > 0 { "…" } else { "" };
    Some(format!("{mark}{}", shortened(&text[begin..])))
}

/// Returns the list for programs, with tabs between the fields.
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
        text += &format!("{name}\t{updated}\t{messages}\t{provider}/{model}\t{shown}\n");
    }
    text
}

/// Returns a text as a terminal can show it.
fn shown(text: &str, terminal: &Terminal) -> String {
    escape(&terminal.encoding.encode(text))
}

/// Returns how many rows a screen holds: the last line is for the shell's prompt.
fn room(size: TerminalSize) -> usize {
    size.rows.saturating_sub(1).max(2)
}

/// Returns the list for people: the number that `-s` takes, the name if a user has given one, age and question. No line is longer
/// than the terminal, and there are no more lines than it has. `files` is how many files there are in all.
fn lay_out(rows: &[Row], files: usize, size: TerminalSize, terminal: &Terminal) -> String {
    let room = room(size);
    let has_more = files > room;
    // The last line says how many more there are.
    let most = if has_more { room - 1 } else { room };
    let rows = &rows[..rows.len().min(most)];
    let highest = rows.iter().filter_map(|row| row.number).max();
    let digits = format!("%{}", highest.unwrap_or_default()).len();
    let charset = terminal.encoding.charset();
    let names = rows.iter().map(|row| row.shown_name(size, terminal));
    let names = Vec::from_iter(names);
    let widths = names.iter().map(|name| width(name));
    let widest_name = widths.max().unwrap_or_default();
    let gap = if widest_name > 0 { "  " } else { "" };

    let now = Timestamp::now();
    let mut text = String::new();
    for (row, name) in rows.iter().zip(&names) {
        let mark = if row.current { '*' } else { ' ' };
        let number = row.number.map(|at| format!("%{at}")).unwrap_or_default();
        let padding = " ".repeat(widest_name - width(name));
        let age = age::short(row.updated.elapsed_until(now));
        let question = match row.text() {
            "" if row.messages == 0 => "(empty)".to_owned(),
            words => shown(words, terminal),
        };
        let line = format!("{mark} {number:>digits$}{gap}{name}{padding}  {age:>4}  {question}");
        text += &format!("{}\n", cut(&line, size.columns, charset).trim_end());
    }
    if has_more {
        let line = format!(
            "  {} more; in a pipe, --list prints all",
            files - rows.len()
        );
        text += &format!("{}\n", cut(&line, size.columns, charset).trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_begins_shortly_before_the_words_that_were_found() {
        let long = "one two three four five six seven eight nine ten";
        for (text, words, expected) in [
            ("Bäume im Wald", "wald", "Bäume im Wald"),
            ("ÄÖÜ straße", "äö", "ÄÖÜ straße"),
            ("İİİ ΟΔΟΣ wald", "wald", "İİİ ΟΔΟΣ wald"),
            (long, "eight", "…six seven eight nine ten"),
            (long, "nine eight", "…six seven eight nine ten"),
            ("see <context>\nthe log", "the", "…<context> the log"),
            ("sentences and a log", "log", "…and a log"),
            ("sentences-and needle", "needle", "…ntences-and needle"),
            ("https://h/long/path", "path", "…ps://h/long/path"),
            ("a\n\tb   c", "c", "a b c"),
            (&"x".repeat(300), "x", &"x".repeat(200)),
        ] {
            let words: Vec<_> = words
                .split(' ')
                .map(|word| Word::new(word.to_owned()))
                .collect();
            let found = around_first(&words, text).expect("the words");
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn no_more_than_three_names_are_named_and_the_others_counted() {
        for (names, expected) in [
            ("", ""),
            ("a", ", but a name has: q -s a"),
            ("a b", ", but names have: q -s a, q -s b"),
            ("a b c", ", but names have: q -s a, q -s b, q -s c"),
            (
                "a b c d",
                ", but names have: q -s a, q -s b, q -s c and 1 more",
            ),
        ] {
            let commands = names.split_whitespace().map(|name| format!("q -s {name}"));
            assert_eq!(commands_note(&Vec::from_iter(commands)), expected);
        }
    }
}
