//! Starts tool servers side by side, each on a thread, and collects what they and commands offer.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::{Duration, Instant};

use super::names::Selection;
use super::offers::{self, Offer};
use super::prepare::prepare;
use super::process::{Groups, Report};
use super::protocol::About;
use super::server::{Server, Servers, Spec, Target};
use super::toolbox::{Instructions, Toolbox};
use crate::error::{Error, ErrorKind};
use crate::interrupt::{Interrupts, When};
use crate::output::Notes;
use crate::secret::{self, Secret};
use crate::settings::{Configured, Key, ServerKind, Settings, ToolServer};
use crate::text::nearest::did_you_mean;
use crate::threads;

/// A server that has listed its tools.
struct Opened {
    server: Server,
    about: About,
    /// How long it took to start and to list them.
    took: Duration,
}

/// What all servers and commands offer.
#[derive(Default)]
struct Collection {
    servers: Servers,
    offers: Vec<Offer>,
    /// What the model should know about each server.
    instructions: Vec<Instructions>,
    /// What the user should know about the offers.
    remarks: Vec<String>,
}

/// Servers that are starting, and what is needed once they have started.
pub struct Starting {
    /// `None`: all tools.
    selection: Option<Selection>,
    /// The names of the servers that must start; commands need not.
    awaited: Vec<String>,
    /// The result for each server, and for commands.
    opened: Receiver<Result<Opened, Error>>,
    /// What all of them offer, if there is nothing to wait for.
    collected: Option<Collection>,
    groups: Groups,
    /// The configuration file.
    file: PathBuf,
    /// Values that the model does not get.
    keys: Vec<Secret>,
    /// Values that are not shown; the keys are among them.
    secrets: Vec<Secret>,
}

impl Starting {
    /// Starts the selected servers; from now on, a signal ends them. Without a selection, starts every configured server,
    /// and a note names each one that cannot be started.
    pub fn new(
        selection: Option<&Selection>,
        settings: &Settings,
        interrupts: &Arc<Interrupts>,
        groups: &Groups,
        notes: &Notes,
    ) -> Result<Starting, Error> {
        let prepared = prepared(selection, settings, notes)?;
        let keys = keys(&prepared, settings);
        let mut secrets = keys.clone();
        for server in &prepared {
            secrets.extend(server.hidden.iter().cloned());
        }
        if !prepared.is_empty() {
            end_on_signal(groups, interrupts);
        }

        let (sender, opened) = mpsc::channel();
        let mut awaited = Vec::new();
        for spec in prepared {
            let name = spec.section.name.clone();
            let is_known = spec.target.is_known();
            let report = reporter(&name, &secrets, notes);
            let sender = sender.clone();
            let groups = groups.clone();
            let began = Instant::now();
            let open = move || {
                let result = Server::open(spec, &groups, report);
                let result = result.map(|(ready, about)| Opened {
                    server: ready,
                    about,
                    took: began.elapsed(),
                });
                // If the run has failed meanwhile, the server ends here.
                let _ = sender.send(result);
            };
            if is_known {
                open();
                continue;
            }
            interrupts.install();
            if let Err(error) = threads::start(open) {
                return Err(Error::new(ErrorKind::Tools, format!("{name}: {error}")));
            }
            awaited.push(name);
        }
        drop(sender);

        let mut starting = Starting {
            selection: selection.cloned(),
            awaited,
            opened,
            collected: None,
            groups: groups.clone(),
            file: settings.file.clone(),
            keys,
            secrets,
        };
        // If there are only commands, their names are checked before q waits for input.
        if starting.awaited.is_empty() {
            starting.collected = Some(starting.collect(notes)?);
        }
        Ok(starting)
    }

    /// Waits until the tools are listed. `None` if no tools are selected.
    pub fn finish(mut self, yes: bool, notes: &Notes) -> Result<Option<Toolbox>, Error> {
        if self.selection.as_ref().is_none_or(Selection::is_empty) {
            return Ok(None);
        }
        let collection = self.collect(notes)?;
        offers::check_count(&collection.offers)?;
        Ok(Some(Toolbox::new(
            collection.servers,
            collection.offers,
            &collection.instructions,
            yes,
            self.keys.clone(),
            self.secrets.clone(),
        )))
    }

    /// The tools, or the selected ones, sorted by name. Without a selection, a note names each server that fails.
    pub fn list(mut self, notes: &Notes) -> Result<Vec<Offer>, Error> {
        let collection = self.collect(notes)?;
        self.groups.be_patient();
        Ok(collection.offers)
    }

    /// Waits for all servers, or until a selected one has failed.
    fn collect(&mut self, notes: &Notes) -> Result<Collection, Error> {
        if let Some(collected) = self.collected.take() {
            return Ok(collected);
        }
        let spinner = notes.spinner();
        spinner.wait_for(&format!("waiting for {}", self.awaited.join(", ")));
        let mut collection = Collection::default();
        for opened in &self.opened {
            let added = opened.and_then(|opened| self.add(opened, &mut collection, notes));
            if let Err(error) = added {
                spinner.stop();
                let error = redacted(error, &self.secrets);
                if self.selection.is_some() {
                    return Err(error);
                }
                note(&error, notes);
            }
        }
        spinner.stop();

        // The order in which servers answer must not change the prompt.
        collection.instructions.sort();
        offers::sort(&mut collection.offers);
        if let Some(selection) = &self.selection {
            collection.offers = offers::choose(selection, collection.offers)?;
        }
        let dropped = offers::drop_duplicate_names(&mut collection.offers);
        collection.remarks.extend(dropped);
        for remark in &collection.remarks {
            notes.note(remark);
        }
        Ok(collection)
    }

    /// Adds what a server offers.
    fn add(&self, opened: Opened, collection: &mut Collection, notes: &Notes) -> Result<(), Error> {
        let Opened {
            server,
            about,
            took,
        } = opened;
        let Spec {
            section, target, ..
        } = &server.spec;
        if !matches!(target, Target::Commands(_)) {
            notes.detail(|| {
                let text = introduction(section, &about, took);
                secret::redact(&text, &self.secrets)
            });
        }
        let index = collection.servers.0.len();
        let (offers, remarks) = offers::of_server(index, section, &about, &self.file)?;
        collection.offers.extend(offers);
        collection.remarks.extend(remarks);
        collection.instructions.push(Instructions {
            server: section.name.clone(),
            text: about.instructions,
            is_own: matches!(target, Target::Commands(_)),
        });
        collection.servers.0.push(server);
        Ok(())
    }
}

/// From now on, a signal asks the servers to end, and those that remain are killed just before q ends.
fn end_on_signal(groups: &Groups, interrupts: &Interrupts) {
    let first = groups.clone();
    interrupts.before_the_end(When::First, move || first.terminate());
    let last = groups.clone();
    interrupts.before_the_end(When::Last, move || last.kill());
}

/// The values that the model does not get: the keys of tools and of providers.
fn keys(prepared: &[Spec], settings: &Settings) -> Vec<Secret> {
    let mut keys = Vec::new();
    for server in prepared {
        keys.extend(server.keys.iter().cloned());
    }
    for provider in &settings.providers {
        if let Key::Variables { found, .. } = &provider.key
            && let Some((_, key)) = found
        {
            keys.push(key.clone());
        }
    }
    keys
}

/// Shows with `-v` what a server says on standard error.
fn reporter(name: &str, secrets: &[Secret], notes: &Notes) -> Report {
    let name = name.to_owned();
    let secrets = secrets.to_vec();
    let notes = notes.clone();
    Arc::new(move |text: &str| {
        notes.detail(|| secret::redact(&format!("{name}: {text}"), &secrets));
    })
}

/// An error without secrets.
fn redacted(error: Error, secrets: &[Secret]) -> Error {
    let hide = |text: &String| secret::redact(text, secrets);
    Error {
        message: hide(&error.message),
        advice: error.advice.as_ref().map(hide),
        ..error
    }
}

/// Asks servers that are still starting to end.
impl Drop for Starting {
    fn drop(&mut self) {
        if self.opened.try_recv().err() != Some(TryRecvError::Disconnected) {
            self.groups.terminate();
        }
    }
}

/// What a server says about itself, for `-v`.
fn introduction(section: &ToolServer, about: &About, took: Duration) -> String {
    let product = format!("{} {}", about.name, about.version);
    let count = about.tools.len();
    let tools = if count == 1 { "tool" } else { "tools" };
    format!(
        "{}: {}, protocol {}, {count} {tools}, {:.3} s",
        section.name,
        product.trim(),
        about.revision,
        took.as_secs_f64()
    )
}

/// The selected servers, or all that can be started.
fn prepared(
    selection: Option<&Selection>,
    settings: &Settings,
    notes: &Notes,
) -> Result<Vec<Spec>, Error> {
    let mut configured = Vec::new();
    if selection.is_none_or(|selection| !selection.is_empty()) {
        configured = settings.tool_servers()?;
    }
    if let Some(selection) = selection {
        let mut names = Vec::new();
        for server in &configured {
            names.push(server.name.clone());
        }
        configured = selection
            .servers(configured)
            .map_err(|name| unknown(&name, &names, settings))?;
    }
    // Remote servers come last: no key is asked for where a program is missing.
    configured.sort_by_key(|configured| match &configured.server {
        Ok(server) => matches!(server.kind, ServerKind::Remote(_)),
        Err(_) => false,
    });
    let mut prepared = Vec::new();
    for server in configured {
        let section = valid(server);
        let ready = section.and_then(|section| prepare(section, selection, settings, notes));
        match ready {
            Ok(ready) => prepared.push(ready),
            Err(error) if selection.is_none() => note(&error, notes),
            Err(error) => return Err(error),
        }
    }
    Ok(prepared)
}

/// The server, or what is wrong with its configuration.
fn valid(configured: Configured) -> Result<ToolServer, Error> {
    configured
        .server
        .map_err(|reason| Error::settings(format!("the tool server {}: {reason}", configured.name)))
}

/// Reports an error that does not end q.
fn note(error: &Error, notes: &Notes) {
    match &error.advice {
        Some(advice) => notes.note(&format!("{}\n{advice}", error.message)),
        None => notes.note(&error.message),
    }
}

fn unknown(name: &str, names: &[String], settings: &Settings) -> Error {
    let place = settings.place_of_server(name);
    let error = Error::settings(format!("{place}there are no tools named “{name}”"));
    let file = settings.file.display();
    if names.is_empty() {
        return error.advise(format!(
            "none is configured: a section [tools.NAME] in {file} adds one"
        ));
    }
    let meant = did_you_mean(name, names);
    let names = names.join(", ");
    error.advise(format!(
        "{meant}there are {names}\na section [tools.NAME] in {file} adds one"
    ))
}
