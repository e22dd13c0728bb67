//! Makes the question from the words of the command line, standard input and files.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use super::input::{self, Files};
use crate::error::Error;
use crate::fence;
use crate::flags::Arguments;
use crate::message::{Attachment, Message, Role};
use crate::output::Notes;

/// A question, as far as it is known before the conversation is read.
pub enum Draft {
    New(Message),
    /// What replaces parts of the conversation's last question.
    Again {
        files: Files,
        input: Option<String>,
        words: String,
    },
}

impl Draft {
    /// The question to ask. `last` is the conversation's last question.
    pub fn into_question(self, last: Option<&Message>) -> Message {
        match self {
            Draft::New(question) => question,
            Draft::Again {
                files,
                input,
                words,
            } => again(last, &files, input, &words),
        }
    }
}

/// The words, joined by one space.
pub fn joined(words: &[OsString], notes: &Notes) -> String {
    let text = words.join(OsStr::new(" "));
    input::text(text.into_encoded_bytes(), "the command line", notes)
}

/// Notes that a pipe or a file was empty. A command that failed may be the reason.
pub fn note_empty(input: &str, notes: &Notes) {
    if input.trim().is_empty()
        && let Some(kind) = input::stdin_type()
        && (kind.is_fifo() || kind.is_file())
    {
        notes.note("standard input was empty");
    }
}

/// Refuses a file as the first word: the shell makes several words of `-a *.rs`, but `-a` takes only one.
pub fn refuse_file_as_word(arguments: &Arguments) -> Result<(), Error> {
    let Some(word) = arguments.words.first() else {
        return Ok(());
    };
    if !arguments.words_follow_attach || !Path::new(word).is_file() {
        return Ok(());
    }
    let word = word.display();
    let error = format!("-a takes one file, so {word} would be a word of the question");
    Err(Error::usage(error).advise(format!(
        "put -a before each file, or a pattern in quotes: -a '*.rs'\nif it is a word, put -- before it: -- {word}"
    )))
}

/// A question of files, input and words; `None` if there is nothing to ask.
pub fn compose(files: &Files, input: Option<String>, words: &str) -> Option<Message> {
    let input = input.as_deref().and_then(non_blank);
    let words = non_blank(words);
    if words.is_none() && input.is_none() && !files.say_something {
        return None;
    }
    let attachments = files.attachments.clone();
    Some(question(&files.joined(), attachments, input, words))
}

/// The last question, with new files, input or words in place of its own.
fn again(last: Option<&Message>, files: &Files, input: Option<String>, words: &str) -> Message {
    let empty = Message::text(Role::User, "");
    let last = last.unwrap_or(&empty);
    let (last_files, last_rest) = fence::split_files(&last.text);
    let mut fences = last_files.to_owned();
    let mut attachments = last.attachments.clone();
    if !files.is_empty() {
        fences = files.joined();
        attachments = files.attachments.clone();
    }
    let input = input.as_deref().and_then(non_blank);
    let words = non_blank(words);
    if last.input_alone {
        let input = input.or(non_blank(last_rest));
        return question(&fences, attachments, input, words);
    }
    let last_parts = fence::split(&last.text);
    let words = words.or(non_blank(last_parts.words));
    if input.is_some() {
        return question(&fences, attachments, input, words);
    }
    // The last input keeps its fence.
    let text = fence::join([&fences, last_parts.input, words.unwrap_or_default()]);
    Message::with_attachments(Role::User, attachments, text)
}

/// A question of fenced files, input and words. Without words, the input is the question and gets no fence.
fn question(
    files: &str,
    attachments: Vec<Attachment>,
    input: Option<&str>,
    words: Option<&str>,
) -> Message {
    let input_alone = words.is_none() && input.is_some();
    let input = match input {
        Some(input) if input_alone => input.trim_end_matches(['\n', '\r']).to_owned(),
        Some(input) => fence::around_input(input),
        None => String::new(),
    };
    let text = fence::join([files, &input, words.unwrap_or_default()]);
    let mut question = Message::with_attachments(Role::User, attachments, text);
    question.input_alone = input_alone;
    question
}

/// The text, unless it is nothing but white space.
fn non_blank(text: &str) -> Option<&str> {
    if text.trim().is_empty() {
        None
    } else {
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_files(files: &[(&str, &str)]) -> Files {
        let fences = files
            .iter()
            .map(|(name, text)| fence::around_file(name, text))
            .collect();
        Files {
            fences,
            say_something: true,
            ..Files::default()
        }
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
            (
                "why",
                &[],
                "how",
                Some("new\n"),
                "<context>\nnew\n</context>\n\nhow",
            ),
            (fenced, &[], "", None, fenced),
            (
                fenced,
                &[],
                "how",
                None,
                "<context>\nlog\n</context>\n\nhow",
            ),
            (
                fenced,
                &[],
                "how",
                Some(" \n"),
                "<context>\nlog\n</context>\n\nhow",
            ),
            (
                fenced,
                &[],
                "how",
                Some("new"),
                "<context>\nnew\n</context>\n\nhow",
            ),
            (&both, &[], "", None, &both),
            (&both, &[], "how", None, &both.replace("why", "how")),
            (
                &both,
                &[],
                "how",
                Some("new"),
                &both.replace("log", "new").replace("why", "how"),
            ),
            (&both, &[("b", "two")], "", None, &both.replace(file, other)),
            (
                &both,
                &[("b", "two")],
                "how",
                None,
                &both.replace(file, other).replace("why", "how"),
            ),
            (file, &[], "how", None, &format!("{file}\n\nhow")),
            ("why", &[("b", "two")], "", None, &format!("{other}\n\nwhy")),
        ] {
            let asked = again(
                Some(&Message::text(Role::User, last)),
                &text_files(files),
                input.map(str::to_owned),
                words,
            );
            assert_eq!(
                asked,
                Message::text(Role::User, question),
                "{last:?} {files:?} {words:?} {input:?}"
            );
        }
    }

    #[test]
    fn input_that_was_the_question_stays_when_words_or_files_come() {
        let file = "<file name=\"a\">\none\n</file>";
        let other = "<file name=\"b\">\ntwo\n</file>";
        let fenced = "<context>\nlog\n</context>\n\nhow";
        let with_file = format!("{file}\n\nlog");
        // Input may look as if q had made it.
        let nested = "<context-2>\n<context>\nlog\n</context>\n\nwhy\n</context-2>\n\nhow";
        for (last, files, words, input, question, is_alone) in [
            ("log", &[][..], "", None, "log", true),
            ("log", &[], "how", None, fenced, false),
            (
                "log",
                &[],
                "how",
                Some("new"),
                &fenced.replace("log", "new"),
                false,
            ),
            ("log", &[], "how", Some(" \n"), fenced, false),
            (
                &with_file,
                &[],
                "how",
                None,
                &format!("{file}\n\n{fenced}"),
                false,
            ),
            (
                &with_file,
                &[("b", "two")],
                "",
                None,
                &format!("{other}\n\nlog"),
                true,
            ),
            (
                &with_file,
                &[("b", "two")],
                "",
                Some("new\n"),
                &format!("{other}\n\nnew"),
                true,
            ),
            (
                "<context>\nlog\n</context>\n\nwhy",
                &[],
                "how",
                None,
                nested,
                false,
            ),
        ] {
            let last = Message {
                input_alone: true,
                ..Message::text(Role::User, last)
            };
            let asked = again(
                Some(&last),
                &text_files(files),
                input.map(str::to_owned),
                words,
            );
            let expected = Message {
                input_alone: is_alone,
                ..Message::text(Role::User, question)
            };
            assert_eq!(asked, expected, "{last:?} {files:?} {words:?} {input:?}");
        }
    }
}
