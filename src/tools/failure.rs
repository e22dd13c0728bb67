//! A failure of a tool server, as the user and the model read it (pure).

use std::time::Duration;

use crate::error::{Error, ErrorKind};

/// Why a server failed. The model learns this and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureCause {
    /// What the server does or did, to follow its name: “closed its output”.
    ServerDid(String),
    /// What happened to it, or on the way to it, in a sentence or a phrase of its own: “the connection was refused”.
    Happened(String),
}

impl FailureCause {
    pub fn words(&self) -> &str {
        match self {
            FailureCause::ServerDid(words) | FailureCause::Happened(words) => words,
        }
    }
}

/// What else is known of a failure, for the user alone.
#[derive(Debug, PartialEq, Eq)]
pub enum Evidence {
    None,
    /// The only line of its program.
    Line(String),
    /// The last lines of its program.
    Lines(Vec<String>),
    /// Where the server is.
    Address(String),
}

impl Evidence {
    pub fn of_lines(lines: &[String]) -> Evidence {
        match lines {
            [] => Evidence::None,
            [line] => Evidence::Line(line.clone()),
            lines => Evidence::Lines(lines.to_vec()),
        }
    }
}

/// The prospect that a request succeeds if it is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// How long the server asks to wait before that.
    pub asked: Option<Duration>,
}

/// A failure of a call or of a start.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    pub cause: FailureCause,
    pub evidence: Evidence,
    /// What it has sent instead of an answer, to follow the cause.
    pub strays: String,
    pub advice: Option<String>,
    /// Whether the server cannot continue; otherwise it may answer the next call.
    pub has_ended_server: bool,
    /// `None` if the failure will not pass by itself.
    pub retry: Option<Retry>,
}

impl Failure {
    pub fn new(cause: FailureCause) -> Failure {
        Failure {
            cause,
            evidence: Evidence::None,
            strays: String::new(),
            advice: None,
            has_ended_server: false,
            retry: None,
        }
    }

    /// Returns the failure of a server by what it does or did, to follow its name.
    pub fn of_server(what: impl Into<String>) -> Failure {
        Failure::new(FailureCause::ServerDid(what.into()))
    }

    /// Returns the failure of a server that cannot continue.
    pub fn ending_server(what: impl Into<String>) -> Failure {
        Failure {
            has_ended_server: true,
            ..Failure::of_server(what)
        }
    }

    /// Returns the failure of a server that writes without an end, and answers nothing.
    pub fn noise() -> Failure {
        Failure::ending_server("keeps writing what answers nothing, so it was ended")
    }

    /// Returns the failure of a server that sends more requests than q answers.
    pub fn flood() -> Failure {
        Failure::ending_server(
            "sends too many requests, or does not read the answers to them, so it was ended",
        )
    }

    /// Returns all that the server has said of it, as far as that is known.
    pub fn all_words(&self) -> String {
        let mut words = vec![self.cause.words()];
        match &self.evidence {
            Evidence::None => (),
            Evidence::Line(text) | Evidence::Address(text) => words.push(text),
            Evidence::Lines(lines) => words.extend(lines.iter().map(String::as_str)),
        }
        words.push(&self.strays);
        words.join("\n")
    }

    /// Adds advice before the advice that there is.
    pub fn advise_first(&mut self, advice: &str) {
        let after = self.advice.take();
        let after = after.map(|after| format!("; {after}")).unwrap_or_default();
        self.advice = Some(format!("{advice}{after}"));
    }

    /// Adds advice after the advice that there is.
    pub fn advise_last(&mut self, advice: &str) {
        let before = self.advice.take();
        let before = before
            .map(|before| format!("{before}; "))
            .unwrap_or_default();
        self.advice = Some(format!("{before}{advice}"));
    }

    /// Returns the error for the user.
    pub fn into_error(self, server: &str) -> Error {
        let mut message = format!("{server}: {}", self.cause.words());
        let mut quote = String::new();
        let has_strays = !self.strays.is_empty();
        match self.evidence {
            Evidence::None => (),
            Evidence::Address(address) => message.push_str(&format!(" ({address})")),
            // What it has sent follows the cause.
            Evidence::Line(line) if has_strays => quote = line,
            Evidence::Line(line) => message.push_str(&format!(": {line}")),
            Evidence::Lines(lines) => {
                if !has_strays {
                    message.push(':');
                }
                quote = lines.join("\n");
            }
        }
        message.push_str(&self.strays);
        Error {
            quote,
            advice: self.advice,
            ..Error::new(ErrorKind::Tools, message)
        }
    }

    /// Returns what the model learns. It does not get the program's own lines, which may contain anything.
    pub fn for_model(&self, server: &str) -> String {
        match &self.cause {
            FailureCause::ServerDid(what) => format!("the tool server {server} {what}"),
            FailureCause::Happened(what) => format!("the tool server {server} failed: {what}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_and_the_model_read_a_whole_sentence_whatever_has_failed() {
        let happened = |what: &str| Failure::new(FailureCause::Happened(what.to_owned()));
        let with_line = Failure {
            evidence: Evidence::Line("no module".to_owned()),
            ..Failure::ending_server("ended by itself (exit status: 1)")
        };
        for (failure, user, model) in [
            (
                with_line,
                "db: ended by itself (exit status: 1): no module",
                "the tool server db ended by itself (exit status: 1)",
            ),
            (
                Failure::noise(),
                "db: keeps writing what answers nothing, so it was ended",
                "the tool server db keeps writing what answers nothing, so it was ended",
            ),
            (
                Failure::flood(),
                "db: sends too many requests, or does not read the answers to them, so it was ended",
                "the tool server db sends too many requests, or does not read the answers to them, so it was ended",
            ),
            (
                happened("the connection was refused"),
                "db: the connection was refused",
                "the tool server db failed: the connection was refused",
            ),
            (
                happened("404 Not Found: no such page"),
                "db: 404 Not Found: no such page",
                "the tool server db failed: 404 Not Found: no such page",
            ),
        ] {
            assert_eq!(failure.for_model("db"), model);
            assert_eq!(failure.into_error("db").message, user);
        }
    }
}
