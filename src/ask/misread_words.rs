//! Notes on words that a person types for something else than a question: for the command of another program, or for a file.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;

use super::plan::{Plan, Relation};
use crate::flags::{Arguments, synonyms};
use crate::output::Notes;
use crate::text::escape::{escape_all, is_hidden};
use crate::text::locale::Charset;
use crate::text::shell_words::quoted;

/// Notes what the words may have been meant for. Only a person gets such a note, who reads it on a terminal and has typed the
/// words there; scripts ask what they ask. `--` before the words says that they are the question.
pub fn note_misread_words(plan: &Plan, notes: &Notes) {
    let arguments = &plan.settings.arguments;
    let is_typed = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !is_typed || arguments.words_are_marked || !arguments.attach.is_empty() {
        return;
    }
    let is_new = plan.relation == Relation::New;
    let note = match note_of_files(arguments) {
        None if is_new && arguments.role.is_none() => note_of_subcommand(arguments),
        note => note,
    };
    if let Some(note) = note {
        notes.note(&note);
    }
}

/// Returns what the command of another program is called here, if that is all that is typed.
fn note_of_subcommand(arguments: &Arguments) -> Option<String> {
    let mut words = Vec::new();
    for word in &arguments.words {
        words.push(word.to_str()?);
    }
    let here = synonyms::subcommand(&words)?;
    let typed = words.join(" ");
    Some(format!("“{typed}” is asked as a question; {here}"))
}

/// Returns what to type for the files that the words name, as other programs take files: before the question or after it.
fn note_of_files(arguments: &Arguments) -> Option<String> {
    let words = &arguments.words;
    let at_beginning = words.iter().take_while(|word| is_file(word)).count();
    let at_end = words[at_beginning..].iter().rev();
    let at_end = at_end.take_while(|word| is_file(word)).count();
    let count = at_beginning + at_end;
    if count == 0 {
        return None;
    }
    let first = match at_beginning {
        0 => words.len() - at_end,
        _ => 0,
    };
    let word = &words[first];
    // What hides in a name, or is no text, cannot be copied into a command.
    let plain = word.to_str().filter(|name| !name.contains(is_hidden));
    let name = match plain {
        Some(name) => name.to_owned(),
        None => escape_all(&word.to_string_lossy(), Charset::Unicode),
    };
    Some(match (count, plain) {
        (1, Some(plain)) => format!(
            "{name} is sent as a word; -a {} before the question sends the file",
            quoted(plain)
        ),
        (1, None) => {
            format!("{name} is sent as a word; -a and its name before the question send the file")
        }
        _ => format!(
            "{name} and {} more are sent as words; -a before each, before the question, sends the files",
            count - 1
        ),
    })
}

/// Whether a word looks like the name of a file and is the one of a file that is there.
fn is_file(word: &OsString) -> bool {
    let bytes = word.as_encoded_bytes();
    (bytes.contains(&b'.') || bytes.contains(&b'/')) && Path::new(word).is_file()
}
