//! Makes the question from the words of the command line, standard input and files (pure).

use super::verdict::{self, no_statement};
use crate::error::Error;
use crate::input::{FileContent, QuestionInput};
use crate::message::{Attachment, Message, Role};
use crate::text::{fence, non_blank};

/// Makes the question to ask: fenced files, input in its fence, and words. Without words, the input is the question and gets no
/// fence. With a `last` one to ask again, it has those parts of that one that are not given this time. Words are not blank;
/// with `is_statement` they are a statement, and the question is whether it is true.
///
/// # Errors
///
/// There is no statement where there must be one.
pub fn compose(
    words: Option<String>,
    input: QuestionInput,
    last: Option<&Message>,
    is_statement: bool,
) -> Result<Message, Error> {
    let empty = Message::text(Role::User, "");
    let last = last.unwrap_or(&empty);
    let (last_files, last_rest) = fence::split_files(&last.text);
    let (mut parts, attachments) = if input.files.is_empty() {
        (vec![last_files.to_owned()], last.attachments.clone())
    } else {
        texts_and_attachments(input.files)
    };
    let last = LastParts::new(last, last_rest);
    let words = if is_statement {
        Some(question_of_statement(words, last.words)?)
    } else {
        words.or_else(|| non_blank(last.words.to_owned()))
    };
    let input = input.text.or(last.input_alone);
    let input_alone = words.is_none() && input.is_some();
    parts.push(match input {
        Some(input) if input_alone => input.trim_end_matches(['\n', '\r']).to_owned(),
        Some(input) => fence::around_input(&input),
        None => last.fenced_input.to_owned(),
    });
    parts.extend(words);
    let text = fence::join(parts.iter().map(String::as_str));
    Ok(Message {
        input_alone,
        ..Message::with_attachments(Role::User, attachments, text)
    })
}

/// The parts of the last question besides its files.
struct LastParts<'a> {
    /// The input that was the question.
    input_alone: Option<String>,
    /// The input in its fence, if there were words, too.
    fenced_input: &'a str,
    words: &'a str,
}

impl LastParts<'_> {
    /// Divides `rest`, which is the text of the last question after its files.
    fn new<'a>(last: &Message, rest: &'a str) -> LastParts<'a> {
        if last.input_alone {
            return LastParts {
                input_alone: non_blank(rest.to_owned()),
                fenced_input: "",
                words: "",
            };
        }
        let (fenced_input, words) = fence::split_input(rest);
        LastParts {
            input_alone: None,
            fenced_input,
            words,
        }
    }
}

/// Separates files that are text from the others.
fn texts_and_attachments(files: Vec<FileContent>) -> (Vec<String>, Vec<Attachment>) {
    let mut texts = Vec::new();
    let mut attachments = Vec::new();
    for file in files {
        match file {
            FileContent::Text(fence) => texts.push(fence),
            FileContent::Attachment(attachment) => attachments.push(attachment),
        }
    }
    (texts, attachments)
}

/// Makes a question of a statement, or of the words of the last question if there is none.
fn question_of_statement(statement: Option<String>, last_words: &str) -> Result<String, Error> {
    if let Some(statement) = statement {
        return Ok(verdict::question_about(&statement));
    }
    let earlier = non_blank(last_words.to_owned()).ok_or_else(no_statement)?;
    Ok(verdict::question_again(&earlier))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    /// The text of a table, where some words mean a file or a fence.
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
            new.push(FileContent::Text(text("OTHER")));
        }
        let input = QuestionInput {
            files: new,
            text: non_blank(text(input)),
            stdin_fault: None,
        };
        compose(non_blank(words.to_owned()), input, Some(last), false).expect("a question")
    }

    #[test]
    fn a_question_is_asked_again_with_other_words_input_or_files() {
        let table = r##"
            why | - | - | - | why
            why | - | how | - | how
            why | - | how | new␊ | NEW␊␊how
            LOG␊␊why | - | - | - | LOG␊␊why
            LOG␊␊why | - | how | - | LOG␊␊how
            LOG␊␊why | - | how | ␊ ␊ | LOG␊␊how
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
    fn input_that_was_the_whole_question_stays_when_words_or_files_are_added() {
        // Input may look as if q had made it.
        let table = r##"
            log | - | - | - | log | alone
            log | - | how | - | LOG␊␊how | -
            log | - | how | new | NEW␊␊how | -
            log | - | how | ␊ ␊ | LOG␊␊how | -
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
