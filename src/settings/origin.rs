//! Where the values of settings come from (pure).

use std::path::PathBuf;

use crate::error::Error;

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Origin {
    #[default]
    Default,
    File {
        path: PathBuf,
        line: usize,
    },
    Variable(String),
    Option(&'static str),
}

impl Origin {
    /// Returns the error for a value from here.
    pub(super) fn error(&self, key: &str, reason: &str) -> Error {
        match self {
            Origin::Option(name) => Error::usage(format!("{name}: {reason}")),
            Origin::Variable(name) => Error::settings(format!("{name}: {reason}")),
            _ => Error::settings(format!("{self}: {key}: {reason}")),
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Default => formatter.write_str("default"),
            Origin::File { path, line } => write!(formatter, "{}, line {line}", path.display()),
            Origin::Variable(name) => formatter.write_str(name),
            Origin::Option(name) => formatter.write_str(name),
        }
    }
}

/// A value as text, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced {
    pub text: String,
    pub origin: Origin,
}

impl Sourced {
    pub(super) fn new(text: &str, origin: Origin) -> Sourced {
        Sourced {
            text: text.to_owned(),
            origin,
        }
    }
}
