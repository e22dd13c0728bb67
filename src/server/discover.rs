//! Finds a server to ask: the chosen provider, else the first server on this machine that has a model.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Instant;

use super::target::{PROBE_TIMEOUT, Probe, Target};
use super::whom::{self, Choice, Claim, Model, Whom};
use crate::error::Error;
use crate::output::Notes;
use crate::settings::{Cached, Key, Settings};
use crate::threads;

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
    let choice = match first_running(settings, claim) {
        Ok(choice) => choice,
        Err(key_advice) => return Err(no_provider(settings, &key_advice)),
    };
    let target = Target::new(choice, settings)?;
    let name = &target.provider().name;
    let address = target.address()?;
    notes.note(&format!(
        "no provider is set: asking {name} at {address}; Q_PROVIDER={name} silences this note"
    ));
    Ok(target)
}

/// The error if the provider or the model is not named, and nobody may be asked.
pub fn unknown_without_asking(what: &str, names: &str) -> Error {
    let message = format!("cached = only asks no server, and no {what} is named");
    Error::settings(message).advise(format!("{names} names one"))
}

/// The first provider that needs no key and answers in time with at least one model, or that it is loading one.
///
/// # Errors
/// There is none. The advice of those that want a key is returned.
fn first_running(settings: &Settings, claim: Claim) -> Result<Choice, Vec<String>> {
    // Each server has a channel of its own, so that their answers can be awaited in order.
    let mut asked = Vec::new();
    for provider in &settings.providers {
        if !provider.key.is_optional() {
            continue;
        }
        let choice = Choice {
            provider: Arc::clone(provider),
            model: Model::First,
        };
        let (send, answer) = mpsc::channel();
        let target = Target::unchecked(choice, Some(PROBE_TIMEOUT), 0, &settings.environment);
        // Nobody waits for this thread to end, because a server that hangs must not delay the others.
        let _ = threads::start(move || {
            let _ = send.send(target.probe());
        });
        asked.push((provider, answer));
    }
    let deadline = Instant::now() + PROBE_TIMEOUT;
    let mut key_advice = Vec::new();
    for (provider, answer) in asked {
        let left = deadline.saturating_duration_since(Instant::now());
        let listed = match answer.recv_timeout(left) {
            Ok(Probe::Ready(first)) => Model::Listed(first),
            Ok(Probe::Loading) => Model::First,
            Ok(Probe::KeyRequired(advice)) => {
                key_advice.push(advice);
                continue;
            }
            Ok(Probe::Absent) | Err(_) => continue,
        };
        let model = match whom::model_of(provider, settings, claim) {
            Model::First => listed,
            chosen => chosen,
        };
        return Ok(Choice {
            provider: Arc::clone(provider),
            model,
        });
    }
    Err(key_advice)
}

/// The error if there is no provider to ask. It shows the quickest ways to get one, and where the others are listed.
fn no_provider(settings: &Settings, key_advice: &[String]) -> Error {
    let mut variables = Vec::new();
    let mut servers = Vec::new();
    for provider in &settings.providers {
        match (&provider.key, provider.row.start) {
            (Key::Variables(names), _) => variables.extend(names.first().cloned()),
            (_, Some(command)) => servers.push(format!("{} ({command})", provider.name)),
            _ => {}
        }
    }
    variables.truncate(SHOWN_VARIABLES);
    let (variables, servers) = (variables.join(" or "), servers.join(", "));
    let message =
        "no provider is configured: no key is set, and no local server answers with a model";
    let keys = format!("export {variables} with your key; q --help lists all of them");
    // A server that runs and wants a key needs the least.
    let advice = if key_advice.is_empty() {
        format!("{keys}\nor start a local server: {servers}")
    } else {
        format!("{}\nor {keys}", key_advice.join("; "))
    };
    Error::settings(message).advise(advice)
}
