//! The vocabulary of conversations, dialects and tools: who says what, which tools there are, and which were called.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    Attachment(Attachment),
}

/// An image or a PDF that goes with a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attachment {
    /// As it was given on the command line.
    pub(crate) name: String,
    /// Its media type, such as `image/png`.
    pub(crate) media: String,
    /// Base64, as every API wants it. `None`: the conversation has grown too large to keep it.
    pub(crate) data: Option<Arc<str>>,
}

impl Attachment {
    pub(crate) fn is_image(&self) -> bool {
        self.media.starts_with("image/")
    }
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

    /// A text with attachments before it.
    pub(crate) fn with_attachments(role: Role, attachments: Vec<Attachment>, text: impl Into<String>) -> Message {
        let parts = attachments.into_iter().map(Part::Attachment).chain([Part::Text(text.into())]).collect();
        Message { role, parts }
    }

    /// Its text, without what else it has.
    pub(crate) fn to_text(&self) -> Cow<'_, str> {
        let mut texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Attachment(_) => None,
        });
        match (texts.next(), texts.next()) {
            (text, None) => Cow::Borrowed(text.unwrap_or_default()),
            (one, other) => Cow::Owned(one.into_iter().chain(other).chain(texts).collect()),
        }
    }

    pub(crate) fn attachments(&self) -> impl Iterator<Item = &Attachment> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Attachment(attachment) => Some(attachment),
        })
    }
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tool {
    /// `server__tool`, of at most 64 of `A-Z a-z 0-9 _ -`, which every API takes.
    pub(crate) name: String,
    pub(crate) description: String,
    /// A JSON Schema of an object.
    pub(crate) schema: Value,
}

/// A call that the model asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Call {
    /// The provider's id; where it gave none, 9 letters and digits of q's own.
    pub(crate) id: String,
    /// The name of a tool, as the model has written it.
    pub(crate) name: String,
    /// JSON, as the model has written it; perhaps no object, or not even JSON.
    pub(crate) arguments: String,
}

/// A call, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) call: Call,
    /// What the model gets.
    pub(crate) result: String,
    pub(crate) is_error: bool,
}

/// One round of a question's answer: what the model said, and the calls that it made then.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Step {
    pub(crate) text: String,
    pub(crate) calls: Vec<Ran>,
    /// The model's turn in the API's own form, where the API wants it back unchanged (signatures, reasoning); not stored.
    pub(crate) echo: Vec<Value>,
}
