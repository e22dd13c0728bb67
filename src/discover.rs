//! Servers on this machine: the first that answers, and the first model that one lists.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::http::Client;
use crate::output::Notes;
use crate::settings::{Environment, Key, Provider};
use crate::target::Target;

/// How long the servers have for their answer, all at the same time.
const PATIENCE: Duration = Duration::from_millis(300);

/// A server that runs, and the first model that it lists.
#[derive(Debug)]
pub(crate) struct Running<'a> {
    pub(crate) provider: &'a Provider,
    pub(crate) model: String,
}

/// The first, in the order of the providers, of those that want no key and answer in time with at least one model.
pub(crate) fn running<'a>(providers: &'a [Provider], environment: Environment) -> Option<Running<'a>> {
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
        std::thread::spawn(move || {
            let model = first_model(&Target::without_key(&provider), &client, &Notes::default());
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

/// The first model that a server lists, if it lists any.
///
/// # Errors
/// It cannot be reached, or its list cannot be read.
pub(crate) fn first_model(target: &Target, client: &Client, notes: &Notes) -> Result<Option<String>, Error> {
    Ok(models(target, client, notes)?.into_iter().next())
}

/// The models that a server lists, in its order.
///
/// # Errors
/// It cannot be reached, or its list cannot be read.
pub(crate) fn models(target: &Target, client: &Client, notes: &Notes) -> Result<Vec<String>, Error> {
    let provider = target.provider;
    let request = target.complete(provider.api.list_models(target.key.as_ref()))?;
    let call = target.call(client, notes)?;
    let body = call.fetch(&request).map_err(|failed| failed.error)?;
    provider.api.read_models(&body).map_err(|malformed| call.malformed(&malformed).error.advise("-m names a model"))
}
