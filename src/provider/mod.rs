//! What the three API dialects have in common: a request goes out, a reply comes in; nothing here opens a connection.

mod anthropic;
pub(crate) mod failure;
mod gemini;
mod openai;
pub(crate) mod reply;
pub(crate) mod table;
mod template;

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::http::Request;
use crate::secret::Secret;
use reply::Reply;
use table::TokenLimit;

/// The dialects, by the names that the configuration file has for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    OpenAi,
    Anthropic,
    Gemini,
}

/// Who said a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, Deserialize)]
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

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) role: Role,
    pub(crate) text: String,
}

/// One message as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Turn<'a> {
    pub(crate) role: Role,
    pub(crate) text: Cow<'a, str>,
}

/// What the model is asked, in no dialect yet.
#[derive(Debug)]
pub(crate) struct Prompt<'a> {
    pub(crate) model: &'a str,
    /// No system prompt is sent where this is empty.
    pub(crate) system: &'a str,
    /// Begins and ends with the user, and the roles alternate.
    pub(crate) turns: Vec<Turn<'a>>,
    /// The most tokens that the answer may have; `None` leaves it to the API where the API allows that.
    pub(crate) max_tokens: Option<u64>,
    pub(crate) stream: bool,
}

/// How a server differs from others that speak its dialect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Habits {
    /// Takes `stream_options`, and then tells the usage in a stream.
    pub(crate) stream_usage: bool,
    pub(crate) token_limit: TokenLimit,
}

/// What a server sent is not what its dialect says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) String);

impl Api {
    pub(crate) const NAMES: &[&str] = &["openai", "anthropic", "gemini"];

    pub(crate) fn from_name(name: &str) -> Option<Api> {
        match name {
            "openai" => Some(Api::OpenAi),
            "anthropic" => Some(Api::Anthropic),
            "gemini" => Some(Api::Gemini),
            _ => None,
        }
    }

    /// The request that asks the prompt.
    pub(crate) fn ask(self, prompt: &Prompt, habits: Habits, key: Option<&Secret>) -> Request {
        let (path, body) = match self {
            Api::OpenAi => ("/chat/completions".to_owned(), openai::body(prompt, habits)),
            Api::Anthropic => ("/v1/messages".to_owned(), anthropic::body(prompt)),
            Api::Gemini => (gemini::path(prompt), gemini::body(prompt)),
        };
        Request { path, headers: self.headers(key), body: Some(body) }
    }

    /// The request for the list of models.
    pub(crate) fn list_models(self, key: Option<&Secret>) -> Request {
        let path = match self {
            Api::OpenAi => "/models",
            Api::Anthropic => "/v1/models?limit=1000",
            Api::Gemini => "/v1beta/models?pageSize=1000",
        };
        Request { path: path.to_owned(), headers: self.headers(key), body: None }
    }

    fn headers(self, key: Option<&Secret>) -> Vec<(String, Secret)> {
        let mut headers = Vec::new();
        if let Some(key) = key {
            headers.push(match self {
                Api::OpenAi => ("authorization".to_owned(), Secret::new(format!("Bearer {}", key.expose()))),
                Api::Anthropic => ("x-api-key".to_owned(), key.clone()),
                Api::Gemini => ("x-goog-api-key".to_owned(), key.clone()),
            });
        }
        if self == Api::Anthropic {
            headers.push(("anthropic-version".to_owned(), Secret::new(anthropic::VERSION)));
        }
        headers
    }

    /// Takes the data of one event of a stream into the reply.
    ///
    /// # Errors
    /// The data is not what the dialect says.
    pub(crate) fn read_event(self, data: &str, reply: &mut Reply) -> Result<(), Malformed> {
        if let Some(text) = reply.template.text(data) {
            reply.add_text(text);
            return Ok(());
        }
        match self {
            Api::OpenAi => openai::read_event(data, reply),
            Api::Anthropic => anthropic::read_event(data, reply),
            Api::Gemini => gemini::read_event(data, reply),
        }
    }

    /// Takes an answer that came in one piece into the reply.
    ///
    /// # Errors
    /// The body is not what the dialect says.
    pub(crate) fn read_whole(self, body: &str, reply: &mut Reply) -> Result<(), Malformed> {
        match self {
            Api::OpenAi => openai::read_whole(body, reply),
            Api::Anthropic => anthropic::read_whole(body, reply),
            Api::Gemini => gemini::read_whole(body, reply),
        }
    }

    /// The names in a list of models, in the server's order.
    ///
    /// # Errors
    /// The body is not a list of models.
    pub(crate) fn read_models(self, body: &str) -> Result<Vec<String>, Malformed> {
        match self {
            Api::OpenAi | Api::Anthropic => openai::read_models(body),
            Api::Gemini => gemini::read_models(body),
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Api::OpenAi => "openai",
            Api::Anthropic => "anthropic",
            Api::Gemini => "gemini",
        })
    }
}

impl From<serde_json::Error> for Malformed {
    fn from(error: serde_json::Error) -> Malformed {
        Malformed(error.to_string())
    }
}

/// Text where a server may also send null or a list of typed parts, of which only those of type `text` count.
#[derive(Debug, Default)]
struct LenientText<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for LenientText<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LenientTextVisitor)
    }
}

struct LenientTextVisitor;

impl<'de> Visitor<'de> for LenientTextVisitor {
    type Value = LenientText<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("text, null or a list of parts")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(LenientText(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(LenientText(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(LenientText::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut text = String::new();
        while let Some(part) = parts.next_element::<Part>()? {
            if part.kind.as_deref().is_none_or(|kind| kind == "text") {
                text.push_str(part.text.as_deref().unwrap_or_default());
            }
        }
        Ok(LenientText(Cow::Owned(text)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(LenientText::default())
    }
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

/// The JSON of a request body.
fn to_json(body: &impl serde::Serialize) -> Vec<u8> {
    // Fails only for maps whose keys are not text and for floats that are not numbers; bodies have neither.
    serde_json::to_vec(body).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn prompt() -> Prompt<'static> {
        let turn = |role, text| Turn { role, text: Cow::Borrowed(text) };
        Prompt {
            model: "m",
            system: "s",
            turns: vec![turn(Role::User, "one"), turn(Role::Assistant, "two"), turn(Role::User, "three")],
            max_tokens: None,
            stream: true,
        }
    }

    pub(super) fn replied(api: Api, events: &[&str]) -> Reply {
        let mut reply = Reply::default();
        for data in events {
            api.read_event(data, &mut reply).unwrap_or_else(|error| panic!("{data}: {error:?}"));
        }
        reply
    }

    #[test]
    fn keys_travel_in_the_header_of_the_dialect() {
        let key = Secret::new("k");
        for (api, name, value) in [
            (Api::OpenAi, "authorization", "Bearer k"),
            (Api::Anthropic, "x-api-key", "k"),
            (Api::Gemini, "x-goog-api-key", "k"),
        ] {
            let request = api.list_models(Some(&key));
            let header = request.headers.iter().find(|(header, _)| header == name);
            assert_eq!(header.map(|(_, value)| value.expose()), Some(value), "{api}");
            assert!(!request.path.contains('k'), "{}", request.path);
            assert!(api.list_models(None).headers.iter().all(|(header, _)| header != name));
        }
    }
}
