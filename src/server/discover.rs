//! Finds a server to ask: the chosen provider, else the first server on this machine that has a model.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::target::Target;
use super::whom::{self, Choice, Claim, Model, Whom};
use crate::error::Error;
use crate::output::Notes;
use crate::settings::{Cached, Key, Settings};
use crate::threads;

/// How long the servers have to answer, all at the same time.
const TIMEOUT: Duration = Duration::from_millis(300);

/// How many variables for keys an error names.
const SHOWN_VARIABLES: usize = 3;

/// The server to ask: the chosen one, else the first local one that answers.
///
/// # Errors
/// Nobody can be asked, or the provider, its key or its address is wrong.
pub fn find_server(settings: &Settings, claim: Claim, notes: &Notes) -> Result<Target, Error> {
    if let Whom::Server(choice) = whom::decide(settings, claim)? {
        return Target::new(choice, settings);
    }
    if settings.cached == Cached::Only {
        return Err(unknown_without_asking("provider", "-p or Q_PROVIDER"));
    }
    let Some(choice) = first_running(settings, claim) else {
        return Err(no_provider(settings));
    };
    let name = &choice.provider.name;
    let address = choice.provider.address()?;
    notes.note(&format!(
        "no provider is set: asking {name} at {address}; Q_PROVIDER={name} silences this note"
    ));
    Target::new(choice, settings)
}

/// The error if the provider or the model is not named, and nobody may be asked.
pub fn unknown_without_asking(what: &str, names: &str) -> Error {
    let message = format!("cached = only asks no server, and no {what} is named");
    Error::settings(message).advise(format!("{names} names one"))
}

/// The first provider that needs no key and answers in time with at least one model.
fn first_running(settings: &Settings, claim: Claim) -> Option<Choice> {
    // Each server has a channel of its own, so that their answers can be awaited in order.
    let mut asked = Vec::new();
    for provider in &settings.providers {
        if provider.key != Key::None {
            continue;
        }
        let choice = Choice {
            provider: Arc::clone(provider),
            model: Model::First,
        };
        let (send, answer) = mpsc::channel();
        let target = Target::bare(choice, Some(TIMEOUT), 0, &settings.environment);
        // Nobody waits for this thread to end, because a server that hangs must not delay the others.
        let _ = threads::start(move || {
            if let Ok(model) = target.first_model(&Notes::default()) {
                let _ = send.send(model);
            }
        });
        asked.push((provider, answer));
    }
    let deadline = Instant::now() + TIMEOUT;
    for (provider, answer) in asked {
        let left = deadline.saturating_duration_since(Instant::now());
        if let Ok(first) = answer.recv_timeout(left) {
            let model = match whom::model_of(provider, settings, claim) {
                Model::First => Model::Default(first),
                chosen => chosen,
            };
            return Some(Choice {
                provider: Arc::clone(provider),
                model,
            });
        }
    }
    None
}

/// The error if there is no provider to ask. It shows the quickest ways to get one, and where the others are listed.
fn no_provider(settings: &Settings) -> Error {
    let mut variables = Vec::new();
    let mut servers = Vec::new();
    for provider in &settings.providers {
        match (&provider.key, provider.row.start) {
            (Key::Variables(names), _) => variables.extend(names.first().cloned()),
            (Key::None, Some(command)) => servers.push(format!("{} ({command})", provider.name)),
            _ => {}
        }
    }
    variables.truncate(SHOWN_VARIABLES);
    let (variables, servers) = (variables.join(" or "), servers.join(", "));
    let message =
        "no provider is configured: no key is set, and no local server answers with a model";
    Error::settings(message).advise(format!(
        "export {variables} with your key; q --help lists all of them\n\
         or start a local server: {servers}"
    ))
}
