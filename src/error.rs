//! What can go wrong, in words for the user, with one exit status each (pure).

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

use serde_json::json;

use crate::secret::{self, Secrets};

/// A failure: what failed and why, and what the user can do about it. It ends q, or a note says it.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    pub kind: ErrorKind,
    /// One sentence, without `q: ` and without a full stop.
    pub message: String,
    /// Longer text from elsewhere that the message is about, such as the last lines of a program. It is shown line by line,
    /// so that no line of it looks like one of q's own.
    pub quote: String,
    /// One line, in which “; ” separates the possibilities.
    pub advice: Option<String>,
}

/// The kinds of failure. Each has one exit status, and one with `--is`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The command line is wrong.
    Usage,
    /// A setting is missing or wrong; no question was sent.
    Settings,
    /// A file cannot be used for the question, or there is too much input; no question was sent.
    Input,
    /// Input is neither text nor an image or a PDF; no question was sent.
    Binary,
    /// The conversation that was chosen cannot be used; no question was sent.
    Session,
    /// What the user asked for does not exist, or was not done.
    Nothing,
    /// The last call of a tool has no result, or the conversation of a status cannot be shown. What JSON there is was printed.
    PartMissing,
    /// The answer has no code block that can be printed. Everything else went well.
    NoCode,
    /// The answer, or what has come of it, is not JSON of the requested shape.
    Misshapen,
    /// The answer says that the statement of `--is` is not true. Nothing failed, so nothing is printed about it.
    Untrue,
    /// The answer says that the model cannot tell whether the statement of `--is` is true. Everything else went well.
    Undecided,
    /// The answer is or may be incomplete: it reached the token limit, is a call that did not run, or ended for a reason that q
    /// does not recognize.
    Incomplete,
    /// The answer is or may be incomplete, and what was asked for was not printed, except for the items of a list that had come
    /// by then.
    Withheld,
    /// A file, a directory or standard input could not be read or written.
    File,
    /// The network or the provider failed, with this HTTP status if there was one.
    Provider { status: Option<u16> },
    /// A tool server failed, or has no tools.
    Tools,
    /// Standard output could not be written, or the answer is too long to be printed in the form that was asked for.
    Output,
}

/// What a kind of failure means for the rest of q.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consequences {
    /// 1 for what failed on the way, 2 for what the user has to change, 3 for an answer that is incomplete.
    pub exit_status: u8,
    /// The exit status with `--is`.
    pub condition_status: u8,
    /// Whether the answer came as it should have, and the error is only what it says or lacks.
    pub is_about_content: bool,
    /// What is shown of it.
    pub display: ErrorDisplay,
    /// Whether the JSON of `--json` has been printed already, so that none follows.
    pub has_printed_json: bool,
}

/// Who sees the message of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorDisplay {
    Always,
    /// `-q` hides it, because the exit status shows it.
    UnlessQuiet,
    /// Nobody, because nothing failed.
    Never,
}

impl Consequences {
    const fn of_failure(exit_status: u8) -> Consequences {
        Consequences {
            exit_status,
            condition_status: 2,
            is_about_content: false,
            display: ErrorDisplay::Always,
            has_printed_json: false,
        }
    }
}

impl ErrorKind {
    /// Returns what this kind of failure means.
    pub fn consequences(self) -> Consequences {
        match self {
            ErrorKind::Usage
            | ErrorKind::Settings
            | ErrorKind::Input
            | ErrorKind::Binary
            | ErrorKind::Session => Consequences::of_failure(2),
            ErrorKind::Nothing
            | ErrorKind::Misshapen
            | ErrorKind::File
            | ErrorKind::Provider { .. }
            | ErrorKind::Tools
            | ErrorKind::Output => Consequences::of_failure(1),
            ErrorKind::PartMissing => Consequences {
                has_printed_json: true,
                ..Consequences::of_failure(1)
            },
            ErrorKind::NoCode => Consequences {
                is_about_content: true,
                display: ErrorDisplay::UnlessQuiet,
                ..Consequences::of_failure(1)
            },
            ErrorKind::Untrue => Consequences {
                condition_status: 1,
                is_about_content: true,
                display: ErrorDisplay::Never,
                has_printed_json: true,
                ..Consequences::of_failure(1)
            },
            ErrorKind::Undecided => Consequences {
                is_about_content: true,
                has_printed_json: true,
                ..Consequences::of_failure(2)
            },
            ErrorKind::Incomplete => Consequences {
                display: ErrorDisplay::UnlessQuiet,
                has_printed_json: true,
                ..Consequences::of_failure(3)
            },
            ErrorKind::Withheld => Consequences {
                display: ErrorDisplay::UnlessQuiet,
                ..Consequences::of_failure(3)
            },
        }
    }
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        let message = message.into();
        Error {
            kind,
            message: in_words(&message).into_owned(),
            quote: String::new(),
            advice: None,
        }
    }

    pub fn usage(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Usage, message)
    }

    pub fn settings(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Settings, message)
    }

    pub fn file(message: impl Display) -> Error {
        Error::new(ErrorKind::File, message.to_string())
    }

    pub fn nothing(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Nothing, message)
    }

    /// Sets what the user can do about it.
    pub fn advise(mut self, advice: impl Into<String>) -> Error {
        self.advice = Some(advice.into());
        self
    }

    /// Adds another possibility.
    pub fn advise_also(mut self, further: impl AsRef<str>) -> Error {
        let further = further.as_ref();
        self.advice = Some(match self.advice {
            Some(advice) => format!("{advice}; {further}"),
            None => further.to_owned(),
        });
        self
    }

    /// Removes secrets from all that it says.
    pub fn redact(&mut self, secrets: &Secrets) {
        self.message = secret::redact(&self.message, secrets);
        // Each line of the quote may have been cut.
        let quote = secret::redact(&self.quote, secrets);
        let lines = quote.split('\n').map(|line| secret::redact(line, secrets));
        self.quote = Vec::from_iter(lines).join("\n");
        if let Some(advice) = &mut self.advice {
            *advice = secret::redact(advice, secrets);
        }
    }

    /// Returns `{"error":{"message","status"}}`, on one line; `status` is that of HTTP, or null.
    pub fn to_json(&self) -> String {
        let status = match self.kind {
            ErrorKind::Provider { status } => status,
            _ => None,
        };
        let mut message = self.message.clone();
        if !self.quote.is_empty() {
            message += &format!("\n{}", self.quote);
        }
        let error = json!({"message": message, "status": status});
        json!({"error": error}).to_string()
    }

    /// Whether the answer came as it should have, and the error is only what it says or lacks.
    pub fn is_about_content(&self) -> bool {
        self.kind.consequences().is_about_content
    }

    /// Returns the exit status where the exit status is the answer, as grep has it: only a no is 1.
    pub fn exit_status_of_condition(&self) -> u8 {
        self.kind.consequences().condition_status
    }

    /// Returns the exit status for this kind of failure: 1, 2 or 3.
    pub fn exit_status(&self) -> u8 {
        self.kind.consequences().exit_status
    }
}

/// The standard library's words before the number of a system's error, which has a text already.
const NUMBER: &str = " (os error ";

/// Returns a message without the numbers of the system's errors, which tell people nothing.
pub fn in_words(message: &str) -> Cow<'_, str> {
    let mut parts = message.split(NUMBER);
    let mut words = Cow::Borrowed(parts.next().unwrap_or_default());
    for part in parts {
        let rest = part.trim_start_matches(|character: char| character.is_ascii_digit());
        match rest.strip_prefix(')') {
            Some(rest) if rest.len() + 1 < part.len() => words += rest,
            _ => words = words + NUMBER + part,
        }
    }
    words
}

impl Display for Error {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::secret::Secret;

    #[test]
    fn an_error_of_the_system_is_shown_without_its_number() {
        let system = |code: i32| io::Error::from_raw_os_error(code).to_string();
        for code in [libc::ENOENT, libc::EACCES, libc::ENOSPC, libc::ELOOP, 4095] {
            let message = format!("cannot read x: {}", system(code));
            assert!(
                message.ends_with(&format!(" (os error {code})")),
                "{message}"
            );
            let words = Error::usage(message.as_str()).message;
            let expected = message.split(" (os").next();
            assert_eq!(Some(&*words), expected);
        }
        for (message, expected) in [
            ("no", "no"),
            ("no (os error 2) at '/x'", "no at '/x'"),
            ("a (os error 2): b (os error 13)", "a: b"),
            ("no (os error )", "no (os error )"),
            ("no (os error 2", "no (os error 2"),
            ("no (os error x) (os error 3)", "no (os error x)"),
        ] {
            assert_eq!(in_words(message), expected);
        }
    }

    #[test]
    fn each_kind_of_failure_has_its_consequences() {
        // The exit status, that with --is, whether it is about the content, who sees it, and whether its JSON is printed.
        for (kind, expected) in [
            (ErrorKind::Usage, "2 2 false Always false"),
            (ErrorKind::Settings, "2 2 false Always false"),
            (ErrorKind::Input, "2 2 false Always false"),
            (ErrorKind::Binary, "2 2 false Always false"),
            (ErrorKind::Session, "2 2 false Always false"),
            (ErrorKind::Nothing, "1 2 false Always false"),
            (ErrorKind::PartMissing, "1 2 false Always true"),
            (ErrorKind::NoCode, "1 2 true UnlessQuiet false"),
            (ErrorKind::Misshapen, "1 2 false Always false"),
            (ErrorKind::Untrue, "1 1 true Never true"),
            (ErrorKind::Undecided, "2 2 true Always true"),
            (ErrorKind::Incomplete, "3 2 false UnlessQuiet true"),
            (ErrorKind::Withheld, "3 2 false UnlessQuiet false"),
            (ErrorKind::File, "1 2 false Always false"),
            (
                ErrorKind::Provider { status: Some(500) },
                "1 2 false Always false",
            ),
            (ErrorKind::Tools, "1 2 false Always false"),
            (ErrorKind::Output, "1 2 false Always false"),
        ] {
            let Consequences {
                exit_status,
                condition_status,
                is_about_content,
                display,
                has_printed_json,
            } = kind.consequences();
            let found = format!(
                "{exit_status} {condition_status} {is_about_content} {display:?} {has_printed_json}"
            );
            assert_eq!(found, expected, "{kind:?}");
        }
    }

    #[test]
    fn secrets_are_redacted_in_all_parts_of_an_error_also_where_a_line_cuts_one() {
        let secrets = Secrets::from_iter(&[Secret::new("sk-12345678")]);
        let mut error = Error {
            quote: "a sk-1234567\nb sk-12345678 c\nsk-12".to_owned(),
            ..Error::usage("no sk-12345678").advise("give sk-12345678, or another")
        };
        error.redact(&secrets);
        assert_eq!(error.message, "no [redacted]");
        assert_eq!(error.quote, "a [redacted]\nb [redacted] c\nsk-12");
        assert_eq!(error.advice.as_deref(), Some("give [redacted], or another"));
    }
}
