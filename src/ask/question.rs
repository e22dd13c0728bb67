//! Makes the question from the words of the command line, standard input and files.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use super::input::{self, Content};
use crate::error::Error;
use crate::flags::Arguments;
use crate::message::{Attachment, Message, Role};
use crate::output::Notes;
use crate::text::fence;

/// What a question is made of. Input and words are not blank.
pub struct Draft {
    files: Vec<Content>,
    input: Option<String>,
    words: Option<String>,
}

impl Draft {
    pub fn new(files: Vec<Content>, input: Option<String>, words: Option<String>) -> Draft {
        Draft {
            files,
            input: input.and_then(non_blank),
            words,
        }
    }

    /// Whether there is something to ask.
    pub fn says_something(&self) -> bool {
        self.words.is_some() || self.input.is_some() || !self.files.is_empty()
    }

    /// The question to ask. With a `last` one to ask again, it has the parts of that one that are not given anew.
    pub fn into_question(self, last: Option<&Message>) -> Message {
        let empty = Message::text(Role::User, "");
        let last = last.unwrap_or(&empty);
        let (last_files, last_rest) = fence::split_files(&last.text);
        let mut fences = last_files.to_owned();
        let mut attachments = last.attachments.clone();
        if !self.files.is_empty() {
            (fences, attachments) = split(self.files);
        }
        if last.input_alone {
            let input = self.input.or_else(|| non_blank(last_rest.to_owned()));
            return question(&fences, attachments, input, self.words);
        }
        let (last_input, last_words) = fence::split_input(&last.text);
        let words = self.words.or_else(|| non_blank(last_words.to_owned()));
        if self.input.is_some() {
            return question(&fences, attachments, self.input, words);
        }
        // The last input keeps its fence.
        let text = fence::join([&fences, last_input, &words.unwrap_or_default()]);
        Message::with_attachments(Role::User, attachments, text)
    }
}

/// The words, joined by one space; `None` if they are blank.
pub fn joined(words: &[OsString], notes: &Notes) -> Option<String> {
    let text = words.join(OsStr::new(" "));
    non_blank(input::text(
        text.into_encoded_bytes(),
        "the command line",
        notes,
    ))
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

/// A question of fenced files, input and words. Without words, the input is the question and gets no fence.
fn question(
    files: &str,
    attachments: Vec<Attachment>,
    input: Option<String>,
    words: Option<String>,
) -> Message {
    let input_alone = words.is_none() && input.is_some();
    let input = match input {
        Some(input) if input_alone => input.trim_end_matches(['\n', '\r']).to_owned(),
        Some(input) => fence::around_input(&input),
        None => String::new(),
    };
    let text = fence::join([files, &input, &words.unwrap_or_default()]);
    let mut question = Message::with_attachments(Role::User, attachments, text);
    question.input_alone = input_alone;
    question
}

/// Text files in their fences, and the other files.
fn split(files: Vec<Content>) -> (String, Vec<Attachment>) {
    let mut fences = Vec::new();
    let mut attachments = Vec::new();
    for file in files {
        match file {
            Content::Text(fence) => fences.push(fence),
            Content::Attachment(attachment) => attachments.push(attachment),
        }
    }
    let fences = fence::join(fences.iter().map(String::as_str));
    (fences, attachments)
}

/// The text, unless it is nothing but white space.
fn non_blank(text: String) -> Option<String> {
    if text.trim().is_empty() {
        None
    } else {
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::rows;

    /// The text of a table, where some words stand for a file or a fence.
    fn text(column: &str) -> String {
        let file = "<file name=\"a\">␊one␊</file>";
        let other = "<file name=\"b\">␊two␊</file>";
        let text = column.replace("FILE", file).replace("OTHER", other);
        let text = text.replace("LOG", "<context>␊log␊</context>");
        let text = text.replace("NEW", "<context>␊new␊</context>");
        text.replace('␊', "\n")
    }

    /// The question with other words, input or files; `b` is the only file.
    fn asked(last: &Message, files: &str, words: &str, input: &str) -> Message {
        let mut new = Vec::new();
        if files == "b" {
            new.push(Content::Text(text("OTHER")));
        }
        let input = if input.is_empty() {
            None
        } else {
            Some(text(input))
        };
        let words = non_blank(words.to_owned());
        Draft::new(new, input, words).into_question(Some(last))
    }

    #[test]
    fn a_question_is_asked_again_with_other_words_input_or_files() {
        let table = r##"
            why | - | - | - | why
            why | - | how | - | how
            why | - | how | new␊ | NEW␊␊how
            LOG␊␊why | - | - | - | LOG␊␊why
            LOG␊␊why | - | how | - | LOG␊␊how
            LOG␊␊why | - | how |  ␊ | LOG␊␊how
            LOG␊␊why | - | how | new | NEW␊␊how
            FILE␊␊LOG␊␊why | - | - | - | FILE␊␊LOG␊␊why
            FILE␊␊LOG␊␊why | - | how | - | FILE␊␊LOG␊␊how
            FILE␊␊LOG␊␊why | - | how | new | FILE␊␊NEW␊␊how
            FILE␊␊LOG␊␊why | b | - | - | OTHER␊␊LOG␊␊why
            FILE␊␊LOG␊␊why | b | how | - | OTHER␊␊LOG␊␊how
            FILE | - | how | - | FILE␊␊how
            why | b | - | - | OTHER␊␊why
        "##;
        for [last, files, words, input, question] in rows(table) {
            let case = format!("{last} {files} {words} {input}");
            let last = Message::text(Role::User, text(last));
            let expected = Message::text(Role::User, text(question));
            assert_eq!(asked(&last, files, words, input), expected, "{case}");
        }
    }

    #[test]
    fn input_that_was_the_question_stays_when_words_or_files_come() {
        // Input may look as if q had made it.
        let table = r##"
            log | - | - | - | log | alone
            log | - | how | - | LOG␊␊how | -
            log | - | how | new | NEW␊␊how | -
            log | - | how |  ␊ | LOG␊␊how | -
            FILE␊␊log | - | how | - | FILE␊␊LOG␊␊how | -
            FILE␊␊log | b | - | - | OTHER␊␊log | alone
            FILE␊␊log | b | - | new␊ | OTHER␊␊new | alone
            LOG␊␊why | - | how | - | <context-2>␊LOG␊␊why␊</context-2>␊␊how | -
        "##;
        for [last, files, words, input, question, is_alone] in rows(table) {
            let case = format!("{last} {files} {words} {input}");
            let message = |column: &str, input_alone: bool| Message {
                input_alone,
                ..Message::text(Role::User, text(column))
            };
            let expected = message(question, is_alone == "alone");
            let found = asked(&message(last, true), files, words, input);
            assert_eq!(found, expected, "{case}");
        }
    }
}
