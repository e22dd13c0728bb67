//! `q --list`: all conversations, or those that contain some words; as text for programs, or fitted to a terminal.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use serde::Serialize;
use time::OffsetDateTime;
use unicode_width::UnicodeWidthChar;

use crate::context::Context;
use crate::error::Error;
use crate::fence;
use crate::message::Message;
use crate::one_line::on_one_line;
use crate::output::{print, visible};
use crate::session::folder;
use crate::session::name::Which;
use crate::session::rules::Found;
use crate::session::timestamp::Timestamp;
use crate::session::{Conversation, Entry, Exchange, age};
use crate::unix::{self, Size};

/// How many characters of a question, or around a match, a list shows.
const LONGEST_TEXT: usize = 200;

/// How many columns of a name are always shown, where the terminal has them: `-s` needs those that q gives, whole.
const GIVEN_NAME: usize = "session_20261121100000-2".len();

/// How many characters before a match are shown.
const BEFORE_MATCH: usize = 20;

/// A conversation in a list.
#[derive(Debug, Serialize)]
struct Listed {
    id: String,
    name: String,
    path: String,
    state: State,
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
    /// How many characters of it come before the match.
    #[serde(skip)]
    lead: usize,
    /// `-f` would continue this conversation.
    #[serde(skip)]
    current: bool,
}

/// What the name of a conversation's file says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// The current conversation, or that of a slot.
    Current,
    Named,
    /// An archived conversation.
    Archived,
}

/// Lists the conversations, newest first; with words, those in which a message has all of them.
///
/// # Errors
/// A conversation could not be read, or the list could not be printed.
pub(crate) fn list(context: &Context, typed: &[OsString], json: bool) -> Result<(), Error> {
    let place = context.place()?;
    let words: Vec<String> = typed.iter().map(|word| folded(&word.to_string_lossy())).collect();
    let words: Vec<&str> = words.iter().map(|word| word.trim()).filter(|word| !word.is_empty()).collect();
    let mut listed = Vec::new();
    let mut unusable_files = false;
    let mut unread = None;
    for path in place.folder.all().map_err(|error| Error::file(error.to_string()))? {
        match folder::read(&path) {
            Ok(Found::Conversation(conversation)) => {
                let found = find(&conversation, &words);
                if words.is_empty() || found.is_some() {
                    listed.push(listing(&conversation, path, &place.path, found));
                }
            }
            // It was removed in the meantime.
            Ok(Found::Nothing) => {}
            Ok(Found::Unusable(unusable)) => {
                unusable_files = true;
                context.notes.note(&format!("not listed: {}: {unusable}", path.display()));
            }
            // A pipe or a device is not a conversation.
            Err(error) if error.kind() == folder::NOT_REGULAR => {
                unusable_files = true;
                context.notes.note(&format!("not listed: {error}"));
            }
            Err(error) => unread = Some(Error::file(format!("not everything is listed: {error}"))),
        }
    }
    if listed.is_empty() && unread.is_none() {
        match words.is_empty() {
            true if unusable_files => {}
            true => context.notes.note("there are no conversations"),
            false => context.notes.note("no message has all of these words"),
        }
    }
    listed.sort_by(|one, other| other.updated.cmp(&one.updated).then_with(|| one.name.cmp(&other.name)));
    if json {
        if let Some(error) = unread {
            return Err(error);
        }
        let array = serde_json::to_string(&listed).map_err(|error| Error::file(error.to_string()))?;
        return print(&array);
    }
    let text = match unix::terminal_size(&io::stdout()).filter(|_| io::stdout().is_terminal()) {
        Some(size) => {
            let typed: Vec<String> = typed.iter().map(|word| format!(" {}", word.display())).collect();
            fitted(&listed, size, Timestamp::new(OffsetDateTime::now_utc()), &typed.concat())
        }
        None => separated(&listed),
    };
    print(&text)?;
    unread.map_or(Ok(()), Err)
}

fn listing(conversation: &Conversation, path: PathBuf, current: &Path, found: Option<Match>) -> Listed {
    let name = path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let question = conversation.exchanges.iter().find_map(Exchange::question);
    let question = question.map_or_else(String::new, |question| shown(&question.message));
    let state = match path.file_name() {
        Some(name) if folder::is_archived(name) => State::Archived,
        _ if Which::is_name(&name) => State::Named,
        _ => State::Current,
    };
    Listed {
        id: if state == State::Named { name.clone() } else { conversation.created.id() },
        current: path == current,
        name: on_one_line(&name),
        path: path.to_string_lossy().into_owned(),
        state,
        provider: on_one_line(&conversation.provider),
        model: on_one_line(&conversation.model),
        created: conversation.created,
        updated: conversation.updated,
        messages: conversation.message_count(),
        question,
        lead: found.as_ref().map_or(0, |found| found.lead),
        found: found.map(|found| found.text),
    }
}

/// A question on one line, without its fences; if it has no words, the names of its files.
fn shown(question: &Message) -> String {
    let parts = fence::split(&question.text);
    if !parts.words.trim().is_empty() {
        return shortened(parts.words);
    }
    let images = question.attachments.iter().map(|attachment| attachment.name.clone());
    let names: Vec<String> = images.chain(fence::names_of(parts.files)).collect();
    if names.is_empty() { String::new() } else { shortened(&format!("[{}]", names.join(", "))) }
}

/// A match: the text around it on one line, and how many characters of that come before the match.
#[derive(Debug, PartialEq, Eq)]
struct Match {
    text: String,
    lead: usize,
}

/// The first match in the first message that has all the words, in upper or lower case, or in what the model said
/// before a call. The words are folded.
fn find<'a>(conversation: &'a Conversation, words: &[&str]) -> Option<Match> {
    if words.is_empty() {
        return None;
    }
    let texts = |entry: &'a Entry| entry.steps.iter().map(|step| &*step.text).chain([&*entry.message.text]);
    conversation.entries().flat_map(texts).find_map(|text| {
        let folded = folded(text);
        let places: Vec<usize> = words.iter().map(|word| folded.find(word)).collect::<Option<_>>()?;
        places.into_iter().min().map(|place| around(text, place))
    })
}

/// Text in which upper and lower case are the same.
fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    text.chars().for_each(|character| fold(character, &mut folded));
    folded
}

fn fold(character: char, folded: &mut String) {
    match character {
        'A'..='Z' => folded.push(character.to_ascii_lowercase()),
        '\0'..='\x7f' => folded.push(character),
        // These have other lower-case forms at the end of a word, or in Turkish.
        'ς' => folded.push('σ'),
        'İ' => folded.push('i'),
        _ => folded.extend(character.to_lowercase()),
    }
}

/// The text around a match, whose place is given in bytes of the folded text.
fn around(text: &str, place: usize) -> Match {
    let mut folded = String::new();
    let at = text.char_indices().find(|(_, character)| {
        fold(*character, &mut folded);
        folded.len() > place
    });
    let at = at.map_or(0, |(at, _)| at);
    let begin = text[..at].char_indices().rev().take(BEFORE_MATCH).last().map_or(at, |(begin, _)| begin);
    // No word is cut in half.
    let begin = match text[..begin].chars().next_back() {
        Some(before) if !before.is_whitespace() => {
            text[begin..at].find(char::is_whitespace).map_or(at, |blank| begin + blank)
        }
        _ => begin,
    };
    let cut = if text[..begin].trim().is_empty() { "" } else { "…" };
    let lead = format!("{cut}{}", shortened(&format!("{}x", &text[begin..at]))).chars().count() - 1;
    Match { text: format!("{cut}{}", shortened(&text[begin..])), lead }
}

/// The beginning of a text, on one line.
fn shortened(text: &str) -> String {
    on_one_line(&text.trim_start().chars().take(LONGEST_TEXT).collect::<String>())
}

/// For programs: tabs between the fields.
fn separated(listed: &[Listed]) -> String {
    let mut text = String::new();
    for one in listed {
        let Listed { name, updated, messages, provider, model, question, found, .. } = one;
        let question = found.as_ref().unwrap_or(question);
        let _ = writeln!(text, "{name}\t{updated}\t{messages}\t{provider}/{model}\t{question}");
    }
    text
}

/// For people: name, age and question, no line longer than the terminal, and no more lines than it has.
fn fitted(listed: &[Listed], size: Size, now: Timestamp, words: &str) -> String {
    // The last line is for the shell's prompt, and the one before says how many more there are.
    let room = size.rows.saturating_sub(1).max(2);
    let shown = if listed.len() > room { room - 1 } else { listed.len() };
    let ages: Vec<String> = listed[..shown].iter().map(|one| age::short(one.updated.elapsed_until(now))).collect();
    let most = (size.columns / 2).max(GIVEN_NAME);
    let names: Vec<String> = listed[..shown].iter().map(|one| cut(&visible(&one.name), most)).collect();
    let widest = names.iter().map(|name| width(name)).max().unwrap_or_default();
    let longest = ages.iter().map(String::len).max().unwrap_or_default();
    let mut text = String::new();
    for ((one, age), name) in listed.iter().zip(&ages).zip(&names) {
        let mark = if one.current { '*' } else { ' ' };
        let padding = " ".repeat(widest - width(name));
        let begin = format!("{mark} {name}{padding}  {age:>longest$}  ");
        let room = size.columns.saturating_sub(width(&begin));
        let line = format!("{begin}{}", visible(&question(one, room)));
        let _ = writeln!(text, "{}", cut(&line, size.columns).trim_end());
    }
    if listed.len() > shown {
        let more = format!("  {} more: q --list{words} | less", listed.len() - shown);
        let _ = writeln!(text, "{}", cut(&visible(&more), size.columns));
    }
    text
}

/// The question, or the match, with only as much text before it as leaves it enough room.
fn question(one: &Listed, room: usize) -> String {
    let Some(found) = &one.found else { return one.question.clone() };
    let surplus = one.lead.saturating_sub(room / 4);
    if surplus == 0 { found.clone() } else { ['…'].into_iter().chain(found.chars().skip(surplus + 1)).collect() }
}

/// How many columns a text takes.
fn width(text: &str) -> usize {
    text.chars().map(|character| character.width().unwrap_or_default()).sum()
}

/// As much of a line as fits into these columns, with a mark if something is cut off.
fn cut(line: &str, columns: usize) -> String {
    if width(line) <= columns {
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
            ("İİİ wald", "wald", "İİİ wald"),
            (long, "eight", "…four five six seven eight nine ten"),
            ("a\n\tb   c", "c", "a b c"),
            (&"x".repeat(300), "x", &"x".repeat(200)),
        ] {
            let place = folded(text).find(word).expect("the word");
            let found = around(text, place);
            assert_eq!(found.text, expected, "{text}");
            let shown: String = found.text.chars().skip(found.lead).collect();
            assert!(folded(&shown).starts_with(word), "{text}: {shown}");
        }
    }

    #[test]
    fn names_that_q_gives_are_shown_whole() {
        let now = Timestamp::new(OffsetDateTime::UNIX_EPOCH);
        let path = "/s/session_20261121100000-2.json".into();
        let listed = listing(&Conversation::new("openai", "m", now), path, Path::new("/s/current.json"), None);
        let text = fitted(&[listed], Size { columns: 40, rows: 24 }, now, "");
        assert!(text.starts_with("  session_20261121100000-2  "), "{text}");
    }

    #[test]
    fn a_screen_holds_so_many_lines_and_says_how_many_more_there_are() {
        let now = Timestamp::new(OffsetDateTime::UNIX_EPOCH);
        let listed = |count: usize| -> Vec<Listed> {
            let conversation = Conversation::new("openai", "m", now);
            (0..count)
                .map(|_| listing(&conversation, PathBuf::from("/s/work.json"), Path::new("/s/current.json"), None))
                .collect()
        };
        for (count, rows, lines, more) in [(3, 4, 3, false), (4, 4, 3, true), (90, 24, 23, true), (5, 1, 2, true)] {
            let text = fitted(&listed(count), Size { columns: 40, rows }, now, "");
            assert_eq!(text.lines().count(), lines, "{count} {rows}");
            assert_eq!(text.contains("more: q --list | less"), more, "{count} {rows}");
        }
    }
}
