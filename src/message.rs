//! The vocabulary of conversations, dialects and tools: who says what.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    User,
    Assistant,
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Role::User => "user",
            Role::Assistant => "assistant",
        })
    }
}

/// What a message consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
}

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) role: Role,
    pub(crate) parts: Vec<Part>,
}

impl Message {
    /// A message that is one text.
    pub(crate) fn text(role: Role, text: impl Into<String>) -> Message {
        Message { role, parts: vec![Part::Text(text.into())] }
    }

    /// Its text, without what else it has.
    pub(crate) fn to_text(&self) -> Cow<'_, str> {
        match &self.parts[..] {
            [Part::Text(text)] => Cow::Borrowed(text),
            parts => parts.iter().map(|Part::Text(text)| text.as_str()).collect(),
        }
    }
}
