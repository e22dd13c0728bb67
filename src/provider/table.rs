//! The tables of dialects and of built-in providers: adding one is adding a row (pure).

use super::dialect::Dialect;
use super::request::Quirks;
use super::{anthropic, gemini, openai, responses};

/// The dialects, in the order in which the documents name them.
pub const DIALECTS: &[&Dialect] = &[
    &openai::DIALECT,
    &responses::DIALECT,
    &anthropic::DIALECT,
    &gemini::DIALECT,
];

/// The variable whose key goes as a bearer token, whatever header the API has for keys.
pub const BEARER_VARIABLE: &str = "ANTHROPIC_AUTH_TOKEN";

/// A built-in provider.
#[derive(Debug)]
pub struct ProviderRow {
    pub name: &'static str,
    pub api: &'static Dialect,
    /// The dialect of servers that replace it at other addresses.
    pub api_elsewhere: &'static Dialect,
    pub base_url: &'static str,
    /// Where its newer versions are.
    pub other_base_url: Option<&'static str>,
    /// The variables that may hold the key, in order. A local server may do without.
    pub key_variables: &'static [&'static str],
    /// The server's own variable for its address.
    pub host_variable: Option<&'static str>,
    /// The default model. If there is none, it is the first model that the server lists.
    pub model: Option<&'static str>,
    /// The name of the models that may replace the default once the provider no longer serves it. `*` means a version.
    /// The newest of them is taken.
    pub family: Option<&'static str>,
    /// How the server differs from others. This holds for any provider at this host.
    pub quirks: Quirks,
    /// The command that starts the server, if it is one on the user's own machine.
    pub start: Option<&'static str>,
    /// The command that gets a model for that server, before the name of the model.
    pub get_model: Option<&'static str>,
}

/// What is assumed about an unknown server. A row says where a provider differs.
pub const OPENAI_LIKE: ProviderRow = ProviderRow {
    name: "",
    api: &openai::DIALECT,
    api_elsewhere: &openai::DIALECT,
    base_url: "",
    other_base_url: None,
    key_variables: &[],
    host_variable: None,
    model: None,
    family: None,
    quirks: Quirks {
        stream_usage: true,
        max_completion_tokens: false,
        returns_reasoning: false,
        document_url: false,
        stores: false,
        searches: false,
        effort: None,
    },
    start: None,
    get_model: None,
};

/// Returns a server on the internet, which wants a key.
const fn hosted(
    name: &'static str,
    base_url: &'static str,
    key_variables: &'static [&'static str],
    model: &'static str,
) -> ProviderRow {
    ProviderRow {
        name,
        base_url,
        key_variables,
        model: Some(model),
        ..OPENAI_LIKE
    }
}

/// Returns a server on the user's own machine.
const fn local(
    name: &'static str,
    base_url: &'static str,
    key_variables: &'static [&'static str],
    start: &'static str,
) -> ProviderRow {
    ProviderRow {
        name,
        base_url,
        key_variables,
        start: Some(start),
        ..OPENAI_LIKE
    }
}

/// The built-in providers, in the order in which a key or a local server is looked for. Addresses, key variables and
/// default models are from the providers' own documents, November 2026. Models are retired within months, so prefer a name
/// that always means the provider's newest model.
pub const PROVIDERS: &[ProviderRow] = &[
    ProviderRow {
        api: &anthropic::DIALECT,
        api_elsewhere: &anthropic::DIALECT,
        family: Some("claude-haiku-*"),
        ..hosted(
            "anthropic",
            "https://api.anthropic.com",
            &["ANTHROPIC_API_KEY", BEARER_VARIABLE],
            "claude-haiku-5-5",
        )
    },
    ProviderRow {
        api: &responses::DIALECT,
        family: Some("gpt-*-luna"),
        quirks: Quirks {
            max_completion_tokens: true,
            ..OPENAI_LIKE.quirks
        },
        ..hosted(
            "openai",
            "https://api.openai.com/v1",
            &["OPENAI_API_KEY"],
            "gpt-6-luna",
        )
    },
    ProviderRow {
        api: &gemini::DIALECT,
        api_elsewhere: &gemini::DIALECT,
        quirks: Quirks {
            stores: true,
            ..OPENAI_LIKE.quirks
        },
        ..hosted(
            "gemini",
            "https://generativelanguage.googleapis.com",
            &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            "gemini-flash-latest",
        )
    },
    hosted(
        "groq",
        "https://api.groq.com/openai/v1",
        &["GROQ_API_KEY"],
        "openai/gpt-oss-120b",
    ),
    ProviderRow {
        quirks: Quirks {
            stream_usage: false,
            document_url: true,
            ..OPENAI_LIKE.quirks
        },
        ..hosted(
            "mistral",
            "https://api.mistral.ai/v1",
            &["MISTRAL_API_KEY"],
            "mistral-small-latest",
        )
    },
    ProviderRow {
        quirks: Quirks {
            searches: true,
            ..OPENAI_LIKE.quirks
        },
        ..hosted(
            "openrouter",
            "https://openrouter.ai/api/v1",
            &["OPENROUTER_API_KEY"],
            "openrouter/auto",
        )
    },
    ProviderRow {
        quirks: Quirks {
            returns_reasoning: true,
            effort: Some("low"),
            ..OPENAI_LIKE.quirks
        },
        ..hosted(
            "deepseek",
            "https://api.deepseek.com/v1",
            &["DEEPSEEK_API_KEY"],
            "deepseek-flash",
        )
    },
    ProviderRow {
        api: &responses::DIALECT,
        ..hosted(
            "xai",
            "https://api.x.ai/v1",
            &["XAI_API_KEY"],
            "grok-latest",
        )
    },
    hosted(
        "cerebras",
        "https://api.cerebras.ai/v1",
        &["CEREBRAS_API_KEY"],
        "gpt-oss-120b",
    ),
    ProviderRow {
        family: Some("glm-*-flash"),
        quirks: Quirks {
            effort: Some("low"),
            ..OPENAI_LIKE.quirks
        },
        ..hosted(
            "zai",
            "https://api.z.ai/api/paas/v4",
            &["ZAI_API_KEY"],
            "glm-5.3-flash",
        )
    },
    ProviderRow {
        family: Some("kimi-k*"),
        quirks: Quirks {
            max_completion_tokens: true,
            ..OPENAI_LIKE.quirks
        },
        ..hosted(
            "moonshot",
            "https://api.moonshot.ai/v1",
            &["MOONSHOT_API_KEY"],
            "kimi-k2.6",
        )
    },
    ProviderRow {
        host_variable: Some("OLLAMA_HOST"),
        get_model: Some("ollama pull"),
        ..local(
            "ollama",
            "http://127.0.0.1:11434/v1",
            &["OLLAMA_API_KEY"],
            "ollama serve",
        )
    },
    ProviderRow {
        other_base_url: Some("http://127.0.0.1:9931/v1"),
        ..local(
            "llamacpp",
            "http://127.0.0.1:8080/v1",
            &["LLAMA_API_KEY"],
            "llama-server -m MODEL.gguf",
        )
    },
    ProviderRow {
        get_model: Some("lms get"),
        ..local(
            "lmstudio",
            "http://127.0.0.1:1234/v1",
            &["LM_API_TOKEN"],
            "lms server start",
        )
    },
    local(
        "vllm",
        "http://127.0.0.1:8000/v1",
        &["VLLM_API_KEY"],
        "vllm serve MODEL",
    ),
];

/// An older name of the variable that moves openai, and still that of some libraries.
pub const OLD_BASE_URL: (&str, &str) = ("openai", "OPENAI_API_BASE");

/// Returns the variable that moves a provider to another address.
pub fn base_url_variable(provider: &str) -> String {
    let name = provider.to_ascii_uppercase().replace('-', "_");
    format!("{name}_BASE_URL")
}

/// Returns the dialect with this name.
pub fn find_dialect(name: &str) -> Option<&'static Dialect> {
    let mut dialects = DIALECTS.iter().copied();
    dialects.find(|dialect| dialect.name == name)
}

/// Returns the names of the built-in providers that can search the web.
pub fn searching() -> Vec<&'static str> {
    let mut names = Vec::new();
    for row in PROVIDERS {
        if row.api.searches || row.quirks.searches {
            names.push(row.name);
        }
    }
    names
}

/// Returns the dialects that can search the web, whoever speaks them.
pub fn searching_dialects() -> impl Iterator<Item = &'static Dialect> {
    let dialects = DIALECTS.iter().copied();
    dialects.filter(|dialect| dialect.searches)
}

/// Returns the row of the built-in provider with this host, or with the domain that this host belongs to.
pub fn at_host(host: &str) -> Option<&'static ProviderRow> {
    // A dot at the end of a host only says that its name is complete.
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    for row in PROVIDERS {
        let own = row.base_url.split('/').nth(2).unwrap_or_default();
        let domain = own.strip_prefix("api.").unwrap_or(own);
        let is_hosted = row.start.is_none();
        if is_hosted
            && let Some(subdomain) = host.strip_suffix(domain)
            && (subdomain.is_empty() || subdomain.ends_with('.'))
        {
            return Some(row);
        }
    }
    None
}

/// Returns the row of a built-in provider.
pub fn find(name: &str) -> Option<&'static ProviderRow> {
    PROVIDERS.iter().find(|row| row.name == name)
}

/// Whether a model belongs to a family: `*` means a version, in which each part begins with a digit. So models for other
/// purposes do not belong to it, such as one for code only.
pub fn is_of_family(model: &str, family: &str) -> bool {
    let Some((begin, end)) = family.split_once('*') else {
        return model == family;
    };
    let rest = model.strip_prefix(begin);
    let Some(version) = rest.and_then(|rest| rest.strip_suffix(end)) else {
        return false;
    };
    let mut parts = version.split('-');
    parts.all(|part| part.starts_with(|char: char| char.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_model_belongs_to_the_family_of_its_row() {
        for row in PROVIDERS {
            if let (Some(model), Some(family)) = (row.model, row.family) {
                assert!(is_of_family(model, family), "{}", row.name);
            }
        }
    }

    #[test]
    fn a_host_belongs_to_the_provider_in_whose_domain_it_is() {
        for (host, name) in [
            ("api.mistral.ai.", "mistral"),
            ("api.openai.com", "openai"),
            ("EU.api.OpenAI.com", "openai"),
            ("codestral.mistral.ai", "mistral"),
            ("us-east-1.api.x.ai", "xai"),
            ("api.z.ai", "zai"),
            ("openrouter.ai", "openrouter"),
            ("generativelanguage.googleapis.com", "gemini"),
            ("aiplatform.googleapis.com", ""),
            ("notopenai.com", ""),
            ("api.openai.com.example", ""),
            ("resource.openai.azure.com", ""),
            ("127.0.0.1", ""),
            ("", ""),
        ] {
            assert_eq!(at_host(host).map_or("", |row| row.name), name, "{host}");
        }
    }

    #[test]
    fn a_model_belongs_to_a_family_if_only_a_version_fills_the_gap() {
        for (model, family, is) in [
            ("claude-haiku-6", "claude-haiku-*", true),
            ("claude-opus-6", "claude-haiku-*", false),
            ("gpt-7-luna", "gpt-*-luna", true),
            ("gpt-7-luna-mini", "gpt-*-luna", false),
            ("gpt-luna", "gpt-*-luna", false),
            ("gpt--luna", "gpt-*-luna", false),
            ("gpt-4o-luna", "gpt-*-luna", true),
            ("gpt-7-mini-luna", "gpt-*-luna", false),
            ("claude-haiku-5-5-20261007", "claude-haiku-*", true),
            ("kimi-k3", "kimi-k*", true),
            ("kimi-k2.7", "kimi-k*", true),
            ("kimi-k2.7-code-highspeed", "kimi-k*", false),
            ("kimi-k2-thinking", "kimi-k*", false),
            ("glm-5.3-flash", "glm-*-flash", true),
            ("a", "a", true),
            ("b", "a", false),
        ] {
            assert_eq!(is_of_family(model, family), is, "{model} {family}");
        }
    }
}
