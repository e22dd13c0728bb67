//! The types that conversations, dialects and tools share: messages, tools and calls.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who wrote a message.
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
    /// As given on the command line.
    pub(crate) name: String,
    /// Its media type, such as `image/png`.
    pub(crate) media: String,
    /// Base64, as every API wants it. `None`: it was dropped because the conversation grew too large.
    pub(crate) data: Option<Arc<str>>,
}

impl Attachment {
    pub(crate) fn is_image(&self) -> bool {
        self.media.starts_with("image/")
    }
}

/// One message. It may have megabytes, so copies share the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) role: Role,
    /// They go before the text.
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) text: Arc<str>,
}

impl Message {
    /// A message of text alone.
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
    /// The provider's id; if it gave none, 9 letters and digits that q made up.
    pub(crate) id: String,
    /// The name of a tool, as the model wrote it.
    pub(crate) name: String,
    /// The arguments as the model wrote them: perhaps not an object, or not even JSON.
    pub(crate) arguments: String,
}

/// A call and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) call: Call,
    /// The text that the model gets.
    pub(crate) result: String,
    /// The call failed, or it did not run.
    pub(crate) is_error: bool,
}

/// One round on the way to an answer: what the model said, and the calls that it made.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Step {
    pub(crate) text: String,
    pub(crate) calls: Vec<Ran>,
    /// The model's turn in the API's own form, if the API wants it back unchanged (signatures, reasoning); not stored.
    pub(crate) echo: Vec<Value>,
}
