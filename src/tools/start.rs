//! Starts tool servers side by side, each on a thread, and collects what they and commands offer.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::{Duration, Instant};

use super::names::Selection;
use super::offers::{self, Offer};
use super::prepare::{self, Prepared};
use super::process::{Groups, Report};
use super::protocol::About;
use super::server::{Location, Server, Servers, Spec};
use super::toolbox::Toolbox;
use crate::error::{Error, ErrorKind};
use crate::interrupt::{Interrupts, When};
use crate::nearest::did_you_mean;
use crate::output::Notes;
use crate::secret::{self, Secret};
use crate::settings::{Configured, Key, Place, Settings, ToolServer};
use crate::threads;

/// A server that has listed its tools, and the time that it took.
type Opened = Result<(Server, About, Duration), Error>;

/// The servers, their tools, and what each server, by its name, wants the model to know.
type Collected = (Servers, Vec<Offer>, Vec<(String, String)>);

/// Servers that are starting.
pub(crate) struct Starting {
    /// `None`: all tools.
    selection: Option<Selection>,
    /// The names of the servers that must start; commands need not.
    awaited: Vec<String>,
    /// The result for each server, and for commands.
    opened: Receiver<Opened>,
    /// The result of all, if there is nothing to wait for.
    collected: Option<Collected>,
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
    ///
    /// # Errors
    /// `Settings`: a selected server is not configured, its configuration is invalid, or its command is missing; or the
    /// file that the setting `mcp` names cannot be read.
    pub(crate) fn new(
        selection: Option<&Selection>,
        settings: &Settings,
        interrupts: &Arc<Interrupts>,
        groups: &Groups,
        notes: &Notes,
    ) -> Result<Starting, Error> {
        let prepared = prepared(selection, settings, notes)?;
        let of_providers = settings
            .providers
            .iter()
            .filter_map(|provider| match &provider.key {
                Key::Variables {
                    found: Some((_, key)),
                    ..
                } => Some(key),
                _ => None,
            });
        let keys: Vec<Secret> = prepared
            .iter()
            .flat_map(|server| &server.keys)
            .chain(of_providers)
            .cloned()
            .collect();
        let secrets: Vec<Secret> = keys
            .iter()
            .chain(prepared.iter().flat_map(|server| &server.hidden))
            .cloned()
            .collect();
        if !prepared.is_empty() {
            let (first, last) = (groups.clone(), groups.clone());
            interrupts.before_the_end(When::First, move || first.terminate());
            interrupts.before_the_end(When::Last, move || last.kill());
        }
        let (sender, opened) = mpsc::channel();
        let mut awaited = Vec::new();
        for Prepared { spec, .. } in prepared {
            let (name, is_command) = (
                spec.section.name.clone(),
                matches!(spec.location, Location::Commands(_)),
            );
            let report: Report = {
                let (notes, secrets, name) = (notes.clone(), secrets.clone(), name.clone());
                Arc::new(move |text: &str| {
                    notes.detail(|| secret::redact(&format!("{name}: {text}"), &secrets))
                })
            };
            let (sender, groups, began) = (sender.clone(), groups.clone(), Instant::now());
            let open = move || {
                let opened = Server::open(spec, &groups, report);
                // If the run has failed meanwhile, the server ends here.
                let _ = sender.send(opened.map(|(server, about)| (server, about, began.elapsed())));
            };
            if is_command {
                open();
            } else {
                interrupts.install();
                threads::start(open)
                    .map_err(|error| Error::new(ErrorKind::Tools, format!("{name}: {error}")))?;
                awaited.push(name);
            }
        }
        drop(sender);
        let (selection, groups, file) = (selection.cloned(), groups.clone(), settings.file.clone());
        let mut starting = Starting {
            selection,
            awaited,
            opened,
            collected: None,
            groups,
            file,
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
    ///
    /// # Errors
    /// `Tools`: a server did not start, or has no tools. `Settings`: a name selects no tool, or there are too many.
    pub(crate) fn finish(mut self, yes: bool, notes: &Notes) -> Result<Option<Toolbox>, Error> {
        if self.selection.as_ref().is_none_or(Selection::is_empty) {
            return Ok(None);
        }
        let (servers, offers, instructions) = self.collect(notes)?;
        offers::check_count(&offers)?;
        let (keys, secrets) = (self.keys.clone(), self.secrets.clone());
        Ok(Some(Toolbox::new(
            servers,
            offers,
            &instructions,
            yes,
            keys,
            secrets,
        )))
    }

    /// The tools, or the selected ones, sorted by name. Without a selection, a note names each server that fails.
    ///
    /// # Errors
    /// As for [`Starting::finish`].
    pub(crate) fn list(mut self, notes: &Notes) -> Result<Vec<Offer>, Error> {
        let (_servers, offers, _) = self.collect(notes)?;
        self.groups.be_patient();
        Ok(offers)
    }

    /// Waits for all servers, or until a selected one has failed.
    fn collect(&mut self, notes: &Notes) -> Result<Collected, Error> {
        if let Some(collected) = self.collected.take() {
            return Ok(collected);
        }
        notes
            .spinner()
            .wait_for(&format!("waiting for {}", self.awaited.join(", ")));
        let (mut servers, mut offers, mut instructions, mut remarks) =
            <(Servers, Vec<_>, Vec<_>, Vec<_>)>::default();
        for opened in &self.opened {
            let offered = opened.and_then(|(server, about, took)| {
                let Spec { section, location } = &server.spec;
                if !matches!(location, Location::Commands(_)) {
                    notes.detail(|| {
                        secret::redact(&introduction(section, &about, took), &self.secrets)
                    });
                }
                let (offered, noted) =
                    offers::of_server(servers.0.len(), section, &about, &self.file)?;
                instructions.push((section.name.clone(), about.instructions));
                remarks.extend(noted);
                servers.0.push(server);
                Ok(offered)
            });
            match offered {
                Ok(offered) => offers.extend(offered),
                Err(error) => {
                    notes.spinner().stop();
                    let message = secret::redact(&error.message, &self.secrets);
                    let advice = error
                        .advice
                        .map(|advice| secret::redact(&advice, &self.secrets));
                    let error = Error {
                        message,
                        advice,
                        ..error
                    };
                    match self.selection {
                        Some(_) => return Err(error),
                        None => note(&error, notes),
                    }
                }
            }
        }
        notes.spinner().stop();
        // The order in which servers answer must not change the prompt.
        instructions.sort();
        offers::sort(&mut offers);
        if let Some(selection) = &self.selection {
            offers = offers::choose(selection, offers)?;
        }
        remarks.extend(offers::leave_out_twins(&mut offers));
        remarks.iter().for_each(|remark| notes.note(remark));
        Ok((servers, offers, instructions))
    }
}

/// Asks servers to end that are still starting.
impl Drop for Starting {
    fn drop(&mut self) {
        if self.opened.try_recv().err() != Some(TryRecvError::Disconnected) {
            self.groups.terminate();
        }
    }
}

/// What a server says about itself, for `-v`.
fn introduction(section: &ToolServer, about: &About, took: Duration) -> String {
    let (of, count) = (
        format!("{} {}", about.name, about.version),
        about.tools.len(),
    );
    let tools = if count == 1 { "tool" } else { "tools" };
    let (name, took) = (&section.name, took.as_secs_f64());
    format!(
        "{name}: {}, protocol {}, {count} {tools}, {took:.3} s",
        of.trim(),
        about.revision
    )
}

/// The selected servers, or all that can be started, ready to start.
fn prepared(
    selection: Option<&Selection>,
    settings: &Settings,
    notes: &Notes,
) -> Result<Vec<Prepared>, Error> {
    let mut configured = match selection {
        Some(selection) if selection.is_empty() => Vec::new(),
        _ => settings.tool_servers()?,
    };
    if let Some(selection) = selection {
        let names: Vec<String> = configured.iter().map(|one| one.name.clone()).collect();
        configured = selection
            .servers(configured)
            .map_err(|name| unknown(&name, &names, settings))?;
    }
    // No key is asked for where a program is missing.
    configured.sort_by_key(|one| {
        one.server
            .as_ref()
            .is_ok_and(|server| matches!(server.place, Place::Remote(_)))
    });
    let mut prepared = Vec::new();
    for one in configured {
        match valid(one).and_then(|section| prepare::prepare(section, selection, settings, notes)) {
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
    let advice = error
        .advice
        .as_ref()
        .map_or_else(String::new, |advice| format!("\n{advice}"));
    notes.note(&format!("{}{advice}", error.message));
}

fn unknown(name: &str, names: &[String], settings: &Settings) -> Error {
    let error = Error::settings(format!(
        "{}there are no tools named “{name}”",
        settings.place_of_server(name)
    ));
    let (file, meant) = (settings.file.display(), did_you_mean(name, names));
    error.advise(match names.is_empty() {
        true => format!("none is configured: a section [tools.NAME] in {file} adds one"),
        false => format!(
            "{meant}there are {}\na section [tools.NAME] in {file} adds one",
            names.join(", ")
        ),
    })
}
