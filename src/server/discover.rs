//! Finds a server to ask: the chosen provider, else the first server on this machine that has a model.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::choice::{self, Choice, HeldWith, Model};
use super::client::Client;
use super::target::Target;
use crate::error::Error;
use crate::output::Notes;
use crate::settings::{Key, Provider, Settings};
use crate::threads;

/// How long the servers have to answer, all at the same time.
const TIMEOUT: Duration = Duration::from_millis(300);

/// How many variables for keys an error names.
const SHOWN_VARIABLES: usize = 3;

/// The server chosen by options, settings and a conversation that keeps its own, else the first local one.
///
/// # Errors
/// `Settings`: there is no server, or the chosen one cannot be used. `Session`: the conversation's provider is gone.
pub(crate) fn find(
    settings: &Settings,
    keeps: Option<&HeldWith>,
    notes: &Notes,
) -> Result<Target, Error> {
    if let Some(target) = chosen(settings, keeps)? {
        return Ok(target);
    }
    let Some(Running { provider, model }) = running(settings) else {
        return Err(no_provider(settings));
    };
    let name = &provider.name;
    notes.note(&format!(
        "no provider is set: asking {name} at {}; Q_PROVIDER={name} silences this note",
        provider.address()?
    ));
    let model = settings
        .model
        .as_ref()
        .map_or(Model::Default(model), |named| {
            Model::Named(named.text.clone())
        });
    Target::new(Choice { provider, model }, settings)
}

/// The same without a search: `None` if nothing names a provider, and no key is set.
///
/// # Errors
/// As for [`find`].
pub(crate) fn chosen(
    settings: &Settings,
    keeps: Option<&HeldWith>,
) -> Result<Option<Target>, Error> {
    choice::choose(settings, keeps)?
        .map(|choice| Target::new(choice, settings))
        .transpose()
}

/// A running server, and the first model that it lists.
pub(crate) struct Running {
    pub(crate) provider: Arc<Provider>,
    pub(crate) model: String,
}

/// The first provider that needs no key and answers in time with at least one model.
pub(crate) fn running(settings: &Settings) -> Option<Running> {
    let (send, answers) = mpsc::channel();
    let candidates: Vec<_> = settings
        .providers
        .iter()
        .filter(|provider| provider.key == Key::None)
        .cloned()
        .collect();
    for (index, provider) in candidates.iter().enumerate() {
        let client = provider
            .address()
            .and_then(|address| Client::new(address, Some(TIMEOUT), 0, &settings.environment));
        let Ok(client) = client else {
            let _ = send.send((index, None));
            continue;
        };
        let (send, provider) = (send.clone(), Arc::clone(provider));
        // Not joined, because a server that hangs must not delay the others.
        let _ = threads::start(move || {
            let target = Target::without_key(
                Choice {
                    provider,
                    model: Model::First,
                },
                client,
            );
            let _ = send.send((index, target.model(&Notes::default()).ok()));
        });
    }
    let deadline = Instant::now() + TIMEOUT;
    let mut models: Vec<Option<Option<String>>> = vec![None; candidates.len()];
    // An answer counts only once all servers before it are known to have nothing.
    while models
        .iter()
        .find(|answer| !matches!(answer, Some(None)))
        .is_some_and(Option::is_none)
    {
        match answers.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok((index, model)) => models[index] = Some(model),
            Err(_) => break,
        }
    }
    let mut answered = candidates.into_iter().zip(models);
    answered.find_map(|(provider, model)| {
        Some(Running {
            provider,
            model: model.flatten()?,
        })
    })
}

/// The error if there is no provider to ask: it shows the quickest ways to get one, and where to find the rest.
fn no_provider(settings: &Settings) -> Error {
    let mut variables = Vec::new();
    let mut servers = Vec::new();
    for provider in &settings.providers {
        match &provider.key {
            Key::Variables { names, .. } => variables.extend(names.first().map(String::as_str)),
            Key::None => servers.extend(provider.address().map(|address| {
                let start = provider.row.start.filter(|_| !provider.is_set_up());
                format!(
                    "{} ({})",
                    provider.name,
                    start.map_or_else(|| format!("at {address}"), str::to_owned)
                )
            })),
            Key::Command(_) => {}
        }
    }
    variables.truncate(SHOWN_VARIABLES);
    let (first, others) = variables.split_first().unwrap_or((&"", &[]));
    Error::settings("no provider is configured: no key is set, and no local server answers with a model").advise(
        format!(
            "for example: export {first}=your-key, or {}; q --help lists all of them\nor start a local server: {}",
            others.join(" or "),
            servers.join(", ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::flags::Arguments;
    use crate::settings::Environment;

    #[test]
    fn the_local_servers_are_named_with_the_command_that_starts_them_or_where_q_has_looked_for_them()
     {
        let (usual, vllm) = (
            "llamacpp (llama-server -m MODEL.gguf)",
            "vllm (vllm serve MODEL)",
        );
        for (variable, address, ollama) in [
            ("OLLAMA_HOST", "", "ollama (ollama serve), "),
            ("OLLAMA_HOST", "127.0.0.1", "ollama (ollama serve), "),
            (
                "OLLAMA_HOST",
                "elsewhere",
                "ollama (at http://elsewhere:11434/v1), ",
            ),
            (
                "OLLAMA_BASE_URL",
                "https://me:pw@elsewhere/api",
                "ollama (at https://elsewhere/api), ",
            ),
            ("OLLAMA_HOST", "ftp://elsewhere", ""),
        ] {
            let environment = Environment::new(&[(variable, address)]);
            let settings = Settings::load(&Arguments::default(), &environment, Path::new(""))
                .expect("settings");
            let advice = no_provider(&settings).advice.expect("advice");
            let (_, servers) = advice
                .split_once("\nor start a local server: ")
                .expect(&advice);
            assert!(
                servers.starts_with(&format!("{ollama}{usual}, ")) && servers.contains(vllm),
                "{servers}"
            );
        }
    }
}
