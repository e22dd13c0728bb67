//! A value of a setting, and where it comes from.

use std::path::PathBuf;

/// Looks up an environment variable; one that is empty counts as unset.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Where a value comes from, the later the stronger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File { path: PathBuf, line: usize },
    Variable(String),
    Option(&'static str),
}

impl Origin {
    /// All ranks, the later the stronger.
    pub(super) const RANKS: std::ops::RangeInclusive<u8> = 0..=3;

    pub(super) fn rank(&self) -> u8 {
        match self {
            Origin::Default => 0,
            Origin::File { .. } => 1,
            Origin::Variable(_) => 2,
            Origin::Option(_) => 3,
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
pub(crate) struct Given {
    pub(crate) text: String,
    pub(crate) origin: Origin,
}

impl Given {
    /// Nobody has set it.
    pub(crate) fn is_default(&self) -> bool {
        self.origin == Origin::Default
    }
}
