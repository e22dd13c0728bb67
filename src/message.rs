//! The vocabulary of conversations, dialects and tools: who says what, which tools there are, and which were called.

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

/// One message. It may have megabytes, so copies share them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) role: Role,
    /// They go before the text.
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) text: Arc<str>,
}

impl Message {
    /// A message that is one text.
    pub(crate) fn text(role: Role, text: impl Into<Arc<str>>) -> Message {
        Message::with_attachments(role, Vec::new(), text)
    }

    /// A text with attachments before it.
    pub(crate) fn with_attachments(role: Role, attachments: Vec<Attachment>, text: impl Into<Arc<str>>) -> Message {
        Message { role, attachments, text: text.into() }
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
