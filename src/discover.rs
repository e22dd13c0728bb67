//! Where no provider is configured: a server on this machine that answers with at least one model.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::call::Call;
use crate::error::Error;
use crate::http::Client;
use crate::settings::{Environment, Key, Provider};

/// How long the servers have for their answer, all at the same time.
const PATIENCE: Duration = Duration::from_millis(300);

/// A server that runs, and the first model that it lists.
#[derive(Debug)]
pub(crate) struct Running<'a> {
    pub(crate) provider: &'a Provider,
    pub(crate) model: String,
}

/// The first, in the order of the providers, of those that want no key and answer in time.
pub(crate) fn running<'a>(providers: &'a [Provider], environment: Environment) -> Option<Running<'a>> {
    let (send, answers) = mpsc::channel();
    let candidates: Vec<&Provider> = providers.iter().filter(|provider| provider.key == Key::None).collect();
    for (index, provider) in candidates.iter().enumerate() {
        let client = provider.address().and_then(|address| Client::new(address, Some(PATIENCE), 0, environment));
        if let Ok(client) = client {
            let (send, provider) = (send.clone(), (*provider).clone());
            // Not joined: one that hangs must not hold up the others.
            std::thread::spawn(move || send.send((index, first_model(&provider, &client).ok().flatten())));
        } else {
            let _ = send.send((index, None));
        }
    }
    drop(send);
    let deadline = Instant::now() + PATIENCE;
    let mut models: Vec<Option<Option<String>>> = vec![None; candidates.len()];
    // The first that answers wins only once all before it are known to have nothing.
    while models.iter().find(|answer| !matches!(answer, Some(None))).is_some_and(Option::is_none) {
        match answers.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok((index, model)) => models[index] = Some(model),
            Err(_) => break,
        }
    }
    let mut answered = candidates.into_iter().zip(models);
    answered.find_map(|(provider, model)| Some(Running { provider, model: model.flatten()? }))
}

/// The first model that a server lists, if it lists any.
///
/// # Errors
/// It cannot be reached, or its list cannot be read.
pub(crate) fn first_model(provider: &Provider, client: &Client) -> Result<Option<String>, Error> {
    let call = Call {
        client,
        provider: &provider.name,
        api: provider.api,
        address: provider.address()?,
        secrets: provider.headers.iter().map(|(_, value)| value.clone()).collect(),
        key_advice: None,
    };
    let mut request = provider.api.list_models(None);
    request.headers.extend(provider.headers.iter().cloned());
    let body = call.fetch(&request).map_err(|failed| failed.error)?;
    let models = provider.api.read_models(&body).map_err(|malformed| {
        Error::settings(format!("{}: its list of models cannot be read ({})", provider.name, malformed.0))
            .advise("name the model with -m")
    })?;
    Ok(models.into_iter().next())
}
