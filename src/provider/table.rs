//! The tables of dialects and of built-in providers: adding one is adding a row.

use super::dialect::Dialect;
use super::request::{Habits, TokenLimit};
use super::{anthropic, gemini, openai, responses};

/// The dialects, in the order in which the documents name them.
pub(crate) const DIALECTS: &[&Dialect] =
    &[&openai::DIALECT, &responses::DIALECT, &anthropic::DIALECT, &gemini::DIALECT];

/// One built-in provider.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) api: &'static Dialect,
    /// The dialect of servers that replace it at other addresses, if that is another one.
    pub(crate) api_elsewhere: Option<&'static Dialect>,
    pub(crate) base_url: &'static str,
    /// The variables that may hold the key, in order; none if the server wants no key.
    pub(crate) key_variables: &'static [&'static str],
    /// `None`: the first model that the server lists.
    pub(crate) model: Option<&'static str>,
    /// What replaces the default model once the provider no longer serves it: the newest model with this name,
    /// `*` standing for anything.
    pub(crate) family: Option<&'static str>,
    /// The effort to send if the user sets none; `None` leaves it to the provider.
    pub(crate) effort: Option<&'static str>,
    pub(crate) habits: Habits,
    /// The command that starts it, for a server on the user's own machine.
    pub(crate) start: Option<&'static str>,
}

/// What is assumed about an unknown server; a row says where a provider differs.
pub(crate) const OPENAI_LIKE: Row = Row {
    name: "",
    api: &openai::DIALECT,
    api_elsewhere: None,
    base_url: "",
    key_variables: &[],
    model: None,
    family: None,
    effort: None,
    habits: Habits {
        stream_usage: true,
        token_limit: TokenLimit::MaxTokens,
        returns_reasoning: false,
        document_url: false,
    },
    start: None,
};

/// The built-in providers, in the order in which a key or a local server is looked for. Addresses, key variables and
/// default models are from the providers' own documents, November 2026. Defaults are retired within months,
/// so prefer names that the provider keeps pointing at its newest model.
pub(crate) const PROVIDERS: &[Row] = &[
    Row {
        name: "anthropic",
        api: &anthropic::DIALECT,
        base_url: "https://api.anthropic.com",
        key_variables: &["ANTHROPIC_API_KEY"],
        model: Some("claude-haiku-5-5"),
        family: Some("claude-haiku-*"),
        ..OPENAI_LIKE
    },
    Row {
        name: "openai",
        api: &responses::DIALECT,
        api_elsewhere: Some(&openai::DIALECT),
        base_url: "https://api.openai.com/v1",
        key_variables: &["OPENAI_API_KEY"],
        model: Some("gpt-6-luna"),
        family: Some("gpt-*-luna"),
        habits: Habits { token_limit: TokenLimit::MaxCompletionTokens, ..OPENAI_LIKE.habits },
        ..OPENAI_LIKE
    },
    Row {
        name: "gemini",
        api: &gemini::DIALECT,
        base_url: "https://generativelanguage.googleapis.com",
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        model: Some("gemini-flash-latest"),
        ..OPENAI_LIKE
    },
    Row {
        name: "groq",
        base_url: "https://api.groq.com/openai/v1",
        key_variables: &["GROQ_API_KEY"],
        model: Some("openai/gpt-oss-120b"),
        ..OPENAI_LIKE
    },
    Row {
        name: "mistral",
        base_url: "https://api.mistral.ai/v1",
        key_variables: &["MISTRAL_API_KEY"],
        model: Some("mistral-small-latest"),
        habits: Habits { stream_usage: false, document_url: true, ..OPENAI_LIKE.habits },
        ..OPENAI_LIKE
    },
    Row {
        name: "openrouter",
        base_url: "https://openrouter.ai/api/v1",
        key_variables: &["OPENROUTER_API_KEY"],
        model: Some("openrouter/auto"),
        ..OPENAI_LIKE
    },
    Row {
        name: "deepseek",
        base_url: "https://api.deepseek.com/v1",
        key_variables: &["DEEPSEEK_API_KEY"],
        model: Some("deepseek-flash"),
        // Its own default is high.
        effort: Some("low"),
        habits: Habits { returns_reasoning: true, ..OPENAI_LIKE.habits },
        ..OPENAI_LIKE
    },
    Row {
        name: "xai",
        base_url: "https://api.x.ai/v1",
        key_variables: &["XAI_API_KEY"],
        model: Some("grok-latest"),
        ..OPENAI_LIKE
    },
    Row {
        name: "cerebras",
        base_url: "https://api.cerebras.ai/v1",
        key_variables: &["CEREBRAS_API_KEY"],
        model: Some("gpt-oss-120b"),
        ..OPENAI_LIKE
    },
    Row {
        name: "zai",
        base_url: "https://api.z.ai/api/paas/v4",
        key_variables: &["ZAI_API_KEY"],
        model: Some("glm-5.3-flash"),
        family: Some("glm-*-flash"),
        ..OPENAI_LIKE
    },
    Row {
        name: "moonshot",
        base_url: "https://api.moonshot.ai/v1",
        key_variables: &["MOONSHOT_API_KEY"],
        model: Some("kimi-k2.6"),
        ..OPENAI_LIKE
    },
    Row { name: "ollama", base_url: "http://127.0.0.1:11434/v1", start: Some("ollama serve"), ..OPENAI_LIKE },
    Row {
        name: "llamacpp",
        base_url: "http://127.0.0.1:8080/v1",
        start: Some("llama-server -m MODEL.gguf"),
        ..OPENAI_LIKE
    },
    Row { name: "lmstudio", base_url: "http://127.0.0.1:1234/v1", start: Some("lms server start"), ..OPENAI_LIKE },
    Row { name: "vllm", base_url: "http://127.0.0.1:8000/v1", start: Some("vllm serve MODEL"), ..OPENAI_LIKE },
];

impl Row {
    /// The variable that moves the provider to another address.
    pub(crate) fn base_url_variable(&self) -> String {
        format!("{}_BASE_URL", self.name.to_ascii_uppercase())
    }
}

/// The dialect with this name.
pub(crate) fn find_dialect(name: &str) -> Option<&'static Dialect> {
    DIALECTS.iter().copied().find(|dialect| dialect.name == name)
}

/// The row of a built-in provider.
pub(crate) fn find(name: &str) -> Option<&'static Row> {
    PROVIDERS.iter().find(|row| row.name == name)
}

/// Whether a model belongs to a family: `*` stands for anything.
pub(crate) fn is_of_family(model: &str, family: &str) -> bool {
    let Some((begin, end)) = family.split_once('*') else { return model == family };
    model.len() >= begin.len() + end.len() && model.starts_with(begin) && model.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_of_its_family() {
        for row in PROVIDERS {
            if let (Some(model), Some(family)) = (row.model, row.family) {
                assert!(is_of_family(model, family), "{}", row.name);
            }
        }
    }

    #[test]
    fn a_family_is_a_name_with_a_gap() {
        for (model, family, is) in [
            ("claude-haiku-6", "claude-haiku-*", true),
            ("claude-opus-6", "claude-haiku-*", false),
            ("gpt-7-luna", "gpt-*-luna", true),
            ("gpt-7-luna-mini", "gpt-*-luna", false),
            ("gpt-luna", "gpt-*-luna", false),
            ("a", "a", true),
            ("b", "a", false),
        ] {
            assert_eq!(is_of_family(model, family), is, "{model} {family}");
        }
    }
}
