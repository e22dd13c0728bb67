//! Makes the question from the words of the command line, standard input and files.

use std::ffi::OsString;
use std::fs::FileType;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use super::input::{self, Files};
use crate::error::Error;
use crate::fence;
use crate::flags::Arguments;
use crate::message::{Message, Role};
use crate::output::Notes;

/// The words, joined by one space.
pub(super) fn joined(words: &[OsString], notes: &Notes) -> String {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_encoded_bytes()).collect();
    input::text(words.join(&b' '), "the command line", notes)
}

/// Notes that a pipe or a file was empty, because a command that failed leaves its pipe empty.
pub(super) fn note_empty(input: &str, notes: &Notes) {
    let is_pipe_or_file = |kind: FileType| kind.is_fifo() || kind.is_file();
    if input.trim().is_empty() && input::stdin_type().is_some_and(is_pipe_or_file) {
        notes.note("standard input was empty");
    }
}

/// Refuses a file as the first word: the shell makes several words of `-a *.rs`, but `-a` takes only one.
///
/// # Errors
/// `Usage`: `-a` came right before the word, which is a file.
pub(super) fn refuse_file_as_word(arguments: &Arguments) -> Result<(), Error> {
    let word = arguments.words.first().filter(|word| arguments.words_follow_attach && Path::new(word).is_file());
    let Some(word) = word.map(|word| word.display()) else { return Ok(()) };
    Err(Error::usage(format!("-a takes one file, so {word} would be a word of the question")).advise(format!(
        "put -a before each file, or a pattern in quotes: -a '*.rs'\nif it is a word, put -- before it: -- {word}"
    )))
}

/// What is asked, before the conversation is read.
pub(super) enum Given {
    Question(Message),
    /// New parts for the conversation's last question.
    Changes {
        files: Files,
        input: Option<String>,
        words: String,
    },
}

impl Given {
    /// The question; `last` is the conversation's last one.
    pub(super) fn into_question(self, last: Option<&Message>) -> Message {
        match self {
            Given::Question(question) => question,
            Given::Changes { files, input, words } => again(last, &files, input, &words),
        }
    }
}

/// Puts files, input and words together; `None` if there is nothing to ask.
pub(super) fn compose(files: &Files, input: Option<String>, words: &str) -> Option<Message> {
    let input = input.filter(|input| non_blank(input).is_some());
    if non_blank(words).is_none() && input.is_none() && !files.say_something {
        return None;
    }
    let (fenced, words) = match (non_blank(words), input) {
        (Some(words), Some(input)) => (fence::around_input(&input), words.to_owned()),
        (Some(words), None) => (String::new(), words.to_owned()),
        // Input alone is the question.
        (None, input) => (String::new(), input.unwrap_or_default().trim_end_matches(['\n', '\r']).to_owned()),
    };
    let fences = files.fences.iter().map(String::as_str);
    let text = fence::join(fences.chain([&*fenced, &*words]));
    Some(Message::with_attachments(Role::User, files.attachments.clone(), text))
}

/// The question to ask again: the last one, in which new files, input or words replace its own if any are given.
fn again(last: Option<&Message>, files: &Files, input: Option<String>, words: &str) -> Message {
    let own = fence::split(last.map_or("", |last| &last.text));
    let fenced = input.filter(|input| non_blank(input).is_some()).map(|input| fence::around_input(&input));
    let input = fenced.as_deref().unwrap_or(own.input);
    let words = non_blank(words).unwrap_or(own.words);
    if files.is_empty() {
        let attachments = last.map_or_else(Vec::new, |last| last.attachments.clone());
        return Message::with_attachments(Role::User, attachments, fence::join([own.files, input, words]));
    }
    let fences = files.fences.iter().map(String::as_str);
    Message::with_attachments(Role::User, files.attachments.clone(), fence::join(fences.chain([input, words])))
}

/// The text, unless it is nothing but white space.
fn non_blank(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_files(files: &[(&str, &str)]) -> Files {
        let fences = files.iter().map(|(name, text)| fence::around_file(name, text)).collect();
        Files { fences, say_something: true, ..Files::default() }
    }

    #[test]
    fn a_question_is_asked_again_with_other_words_input_or_files() {
        let fenced = "<context>\nlog\n</context>\n\nwhy";
        let file = "<file name=\"a\">\none\n</file>";
        let both = format!("{file}\n\n{fenced}");
        let other = "<file name=\"b\">\ntwo\n</file>";
        for (last, files, words, input, question) in [
            ("why", &[][..], "", None, "why"),
            ("why", &[], "how", None, "how"),
            ("why", &[], "how", Some("new\n"), "<context>\nnew\n</context>\n\nhow"),
            (fenced, &[], "", None, fenced),
            (fenced, &[], "how", None, "<context>\nlog\n</context>\n\nhow"),
            (fenced, &[], "how", Some(" \n"), "<context>\nlog\n</context>\n\nhow"),
            (fenced, &[], "how", Some("new"), "<context>\nnew\n</context>\n\nhow"),
            (&both, &[], "", None, &both),
            (&both, &[], "how", None, &both.replace("why", "how")),
            (&both, &[], "how", Some("new"), &both.replace("log", "new").replace("why", "how")),
            (&both, &[("b", "two")], "", None, &both.replace(file, other)),
            (&both, &[("b", "two")], "how", None, &both.replace(file, other).replace("why", "how")),
            (file, &[], "how", None, &format!("{file}\n\nhow")),
            ("why", &[("b", "two")], "", None, &format!("{other}\n\nwhy")),
        ] {
            let asked =
                again(Some(&Message::text(Role::User, last)), &text_files(files), input.map(str::to_owned), words);
            assert_eq!(asked, Message::text(Role::User, question), "{last:?} {files:?} {words:?} {input:?}");
        }
    }
}
