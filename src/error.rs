//! What can go wrong, in words for the person in front of it, with one exit status each.

use std::fmt;

/// A failure that ends q: what failed, on what and why; and what to do, where there is something.
#[derive(Debug)]
pub(crate) struct Error {
    pub(crate) kind: Kind,
    /// One sentence, without `q: ` and without a full stop.
    pub(crate) message: String,
    pub(crate) advice: Option<String>,
}

/// The kinds of failure; each has one exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The command line makes no sense.
    Usage,
    /// A setting is missing or wrong; no request was sent.
    Settings,
    /// The question cannot be taken from standard input or from a file; no request was sent.
    Input,
    /// The conversation that was named cannot be used; no request was sent.
    Session,
    /// There is nothing of the kind that was asked for.
    Nothing,
    /// There is no code block in the answer, or none to be printed. Everything else went well.
    NoCode,
    /// The answer is not JSON of the shape that was asked for. Everything else went well.
    Misshapen,
    /// There is an answer, but it is incomplete: it was cut at the limit of tokens, or for a reason that q does not recognize.
    Incomplete,
    /// A file could not be read or written.
    File,
    /// The network or the provider failed, with this HTTP status where there was one.
    Provider { status: Option<u16> },
    /// A server of tools did not start, or has none.
    Tools,
    /// Standard output could not be written.
    Output,
}

impl Error {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), advice: None }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Error {
        Error::new(Kind::Usage, message)
    }

    pub(crate) fn settings(message: impl Into<String>) -> Error {
        Error::new(Kind::Settings, message)
    }

    pub(crate) fn file(message: impl Into<String>) -> Error {
        Error::new(Kind::File, message)
    }

    pub(crate) fn nothing(message: impl Into<String>) -> Error {
        Error::new(Kind::Nothing, message)
    }

    /// The same failure with a second sentence: what to do.
    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Error {
        self.advice = Some(advice.into());
        self
    }

    /// `{"error":{"message","status"}}`, on one line.
    pub(crate) fn to_json(&self) -> String {
        let status = match self.kind {
            Kind::Provider { status } => status,
            _ => None,
        };
        serde_json::json!({"error": {"message": self.message, "status": status}}).to_string()
    }

    /// The exit status that the contract gives to this kind of failure.
    pub(crate) fn exit_status(&self) -> u8 {
        match self.kind {
            Kind::Usage | Kind::Settings | Kind::Input | Kind::Session => 2,
            Kind::Incomplete => 3,
            Kind::Nothing
            | Kind::NoCode
            | Kind::Misshapen
            | Kind::File
            | Kind::Provider { .. }
            | Kind::Tools
            | Kind::Output => 1,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}
