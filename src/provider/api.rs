//! The dialects by name: which one makes a request, and which one reads the reply.

use std::fmt;

use super::lenient::Malformed;
use super::reply::Reply;
use super::request::{Habits, Listed, Prompt, Request};
use super::{anthropic, gemini, openai, responses};
use crate::secret::Secret;

/// The dialects, by the names that the configuration file has for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    /// Chat completions, as most servers speak them.
    OpenAi,
    /// OpenAI's newer API.
    Responses,
    Anthropic,
    Gemini,
}

impl Api {
    pub(crate) const NAMES: &[&str] = &["openai", "responses", "anthropic", "gemini"];

    pub(crate) fn from_name(name: &str) -> Option<Api> {
        match name {
            "openai" => Some(Api::OpenAi),
            "responses" => Some(Api::Responses),
            "anthropic" => Some(Api::Anthropic),
            "gemini" => Some(Api::Gemini),
            _ => None,
        }
    }

    /// The request for a prompt.
    pub(crate) fn request(self, prompt: &Prompt, habits: Habits, key: Option<&Secret>) -> Request {
        let (path, body) = match self {
            Api::OpenAi => ("/chat/completions".to_owned(), openai::body(prompt, habits)),
            Api::Responses => ("/responses".to_owned(), responses::body(prompt)),
            Api::Anthropic => ("/v1/messages".to_owned(), anthropic::body(prompt)),
            Api::Gemini => (gemini::path(prompt), gemini::body(prompt)),
        };
        Request { path, headers: self.headers(key), body: Some(body) }
    }

    /// The request for the list of models.
    pub(crate) fn list_models(self, key: Option<&Secret>) -> Request {
        let path = match self {
            Api::OpenAi | Api::Responses => "/models",
            Api::Anthropic => "/v1/models?limit=1000",
            Api::Gemini => "/v1beta/models?pageSize=1000",
        };
        Request { path: path.to_owned(), headers: self.headers(key), body: None }
    }

    fn headers(self, key: Option<&Secret>) -> Vec<(String, Secret)> {
        let mut headers = Vec::new();
        if let Some(key) = key {
            headers.push(match self {
                Api::OpenAi | Api::Responses => {
                    ("authorization".to_owned(), Secret::new(format!("Bearer {}", key.expose())))
                }
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
        // OpenAI's last event, which proxies send in every dialect.
        if data.trim() == "[DONE]" {
            reply.end();
            return Ok(());
        }
        match self {
            Api::OpenAi => openai::read_event(data, reply),
            Api::Responses => responses::read_event(data, reply),
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
            Api::Responses => responses::read_whole(body, reply),
            Api::Anthropic => anthropic::read_whole(body, reply),
            Api::Gemini => gemini::read_whole(body, reply),
        }
    }

    /// The models in a list, in the server's order.
    ///
    /// # Errors
    /// The body is not a list of models.
    pub(crate) fn read_models(self, body: &str) -> Result<Vec<Listed>, Malformed> {
        match self {
            Api::OpenAi | Api::Responses | Api::Anthropic => openai::read_models(body),
            Api::Gemini => gemini::read_models(body),
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Api::OpenAi => "openai",
            Api::Responses => "responses",
            Api::Anthropic => "anthropic",
            Api::Gemini => "gemini",
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::message::{Message, Role};

    pub(in crate::provider) fn prompt() -> Prompt<'static> {
        Prompt {
            model: "m",
            system: "s",
            messages: vec![
                Message::text(Role::User, "one"),
                Message::text(Role::Assistant, "two"),
                Message::text(Role::User, "three"),
            ],
            max_tokens: None,
            effort: None,
            refuses_storage: false,
            stream: true,
        }
    }

    /// The reply after these events, and its text.
    pub(in crate::provider) fn replied(api: Api, events: &[&str]) -> Reply {
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
            (Api::Responses, "authorization", "Bearer k"),
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
