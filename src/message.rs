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

/// What an answer used, as the provider counts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Usage {
    /// Including those read from a cache or written into one.
    pub(crate) input_tokens: Option<u64>,
    /// Including those of the reasoning.
    pub(crate) output_tokens: Option<u64>,
    /// How many of the input were read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cached_tokens: Option<u64>,
    /// How many of the output are reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning_tokens: Option<u64>,
    /// In the provider's currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<f64>,
}

impl Usage {
    /// The usage of two requests together.
    pub(crate) fn plus(self, other: Usage) -> Usage {
        let add = |one: Option<u64>, other| [one, other].into_iter().flatten().reduce(u64::saturating_add);
        // Sums of fractions get long: 0.1 + 0.2 is 0.30000000000000004. No provider counts this exactly.
        let round = |cost: f64| (cost * 1e10).round() / 1e10;
        Usage {
            input_tokens: add(self.input_tokens, other.input_tokens),
            output_tokens: add(self.output_tokens, other.output_tokens),
            cached_tokens: add(self.cached_tokens, other.cached_tokens),
            reasoning_tokens: add(self.reasoning_tokens, other.reasoning_tokens),
            cost: [self.cost, other.cost].into_iter().flatten().reduce(|one, other| round(one + other)),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_of_two_requests_is_added_where_it_is_known() {
        let usage = |json: &str| serde_json::from_str::<Usage>(json).expect(json);
        for (one, other, sum) in [
            (
                r#"{"input_tokens":12,"output_tokens":34,"cached_tokens":5,"reasoning_tokens":3,"cost":0.1}"#,
                r#"{"input_tokens":1,"output_tokens":2,"cached_tokens":3,"reasoning_tokens":4,"cost":0.2}"#,
                r#"{"input_tokens":13,"output_tokens":36,"cached_tokens":8,"reasoning_tokens":7,"cost":0.3}"#,
            ),
            (
                r#"{"input_tokens":1,"cached_tokens":0}"#,
                r#"{"output_tokens":2,"cost":0.00014}"#,
                r#"{"input_tokens":1,"output_tokens":2,"cached_tokens":0,"cost":0.00014}"#,
            ),
            (
                r#"{"input_tokens":1}"#,
                r#"{"input_tokens":18446744073709551615}"#,
                r#"{"input_tokens":18446744073709551615,"output_tokens":null}"#,
            ),
        ] {
            let added = usage(one).plus(usage(other));
            assert_eq!(serde_json::to_string(&added).expect("JSON"), sum, "{one} {other}");
        }
    }
}
