//! Finding whom to ask: the provider that is named, else the first with a key, else a server that runs on this machine.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::client::Client;
use super::target::Target;
use crate::error::Error;
use crate::output::Notes;
use crate::settings::{Environment, Key, Provider, Settings};

/// How long the servers have for their answer, all at the same time.
const PATIENCE: Duration = Duration::from_millis(300);

/// The provider that the settings name, else the first with a key, else, with `search`, the first local server.
///
/// # Errors
/// `Settings`: there is none, its key is missing or cannot be one, or its address is no URL.
pub(crate) fn choose<'a>(
    settings: &'a Settings,
    environment: Environment,
    search: bool,
    notes: &Notes,
) -> Result<Target<'a>, Error> {
    let named_model = settings.model.as_ref().map(|given| given.text.clone());
    if let Some(provider) = settings.chosen_provider(environment) {
        return Target::new(provider, named_model, environment);
    }
    let running = if search { running(&settings.providers, environment) } else { None };
    let Some(running) = running else {
        let servers = if search { "no local server answers" } else { "local servers are not asked for a dry run" };
        return Err(nobody(settings, servers));
    };
    let name = &running.provider.name;
    notes.note(&format!(
        "asking {name} at {}, the first local server that answers; Q_PROVIDER={name}, or provider = \"{name}\" in {}, \
         silences this note",
        running.provider.address()?,
        settings.file.display()
    ));
    Ok(Target { named_model, default_model: Some(running.model), ..Target::without_key(running.provider) })
}

/// A server that runs, and the first model that it lists.
struct Running<'a> {
    provider: &'a Provider,
    model: String,
}

/// The first, in the order of the providers, of those that want no key and answer in time with at least one model.
fn running<'a>(providers: &'a [Provider], environment: Environment) -> Option<Running<'a>> {
    let (send, answers) = mpsc::channel();
    let candidates: Vec<&Provider> = providers.iter().filter(|provider| provider.key == Key::None).collect();
    for (index, provider) in candidates.iter().enumerate() {
        let client = provider.address().and_then(|address| Client::new(address, Some(PATIENCE), 0, environment));
        let Ok(client) = client else {
            let _ = send.send((index, None));
            continue;
        };
        let (send, provider) = (send.clone(), (*provider).clone());
        // Not joined: one that hangs must not hold up the others.
        let _ = std::thread::Builder::new().spawn(move || {
            let model = Target::without_key(&provider).first_model(&client, &Notes::default());
            send.send((index, model.ok().flatten()))
        });
    }
    let deadline = Instant::now() + PATIENCE;
    let mut models: Vec<Option<Option<String>>> = vec![None; candidates.len()];
    // One that answers wins only once all before it are known to have nothing.
    while models.iter().find(|answer| !matches!(answer, Some(None))).is_some_and(Option::is_none) {
        match answers.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok((index, model)) => models[index] = Some(model),
            Err(_) => break,
        }
    }
    let mut answered = candidates.into_iter().zip(models);
    answered.find_map(|(provider, model)| Some(Running { provider, model: model.flatten()? }))
}

/// Nobody to ask: every way out in one message.
fn nobody(settings: &Settings, no_server: &str) -> Error {
    let mut variables = Vec::new();
    let mut servers = Vec::new();
    for provider in &settings.providers {
        match (&provider.key, provider.address()) {
            (Key::Variables(names), _) => variables.extend(names.iter().map(String::as_str)),
            (Key::None, Ok(address)) => servers.push(match provider.start {
                Some(start) => format!("{} at {address} ({start})", provider.name),
                None => format!("{} at {address}", provider.name),
            }),
            _ => {}
        }
    }
    Error::settings(format!("no provider is configured: no key is set, and {no_server}")).advise(format!(
        "set one of {}; or start one of {}",
        variables.join(", "),
        servers.join(", ")
    ))
}
