//! Starts tool servers side by side, each on a thread, and collects what they and commands offer.

use std::sync::Arc;

use super::about::About;
use super::consent::Consent;
use super::names::Selection;
use super::offers::{self, Offer};
use super::prepare::Preparation;
use super::process::Groups;
use super::secrets::ToolSecrets;
use super::servers::Servers;
use super::source::ToolSource;
use super::toolbox::Toolbox;
use crate::context::Context;
use crate::error::Error;
use crate::interrupt::{Interrupts, When};
use crate::message::shortened;
use crate::output::Notes;
use crate::settings::{Environment, ServerKind, Settings, ToolServer};
use crate::text::fence;

/// The most bytes of a server's instructions, and of what a command of the user's says about others.
const MAX_INSTRUCTIONS: usize = 4_000;
const MAX_ABOUT: usize = 20_000;

/// Servers that are starting, and the selection of their tools.
pub struct Starting {
    /// `None`: all tools.
    selection: Option<Selection>,
    servers: Servers,
    environment: Environment,
    interrupts: Arc<Interrupts>,
}

impl Starting {
    /// Starts the selected servers; from now on, a signal ends them. Without a selection, starts every configured server,
    /// and a note names each one that cannot be started.
    pub fn new(
        selection: Option<&Selection>,
        settings: &Settings,
        context: &Context,
        groups: &Groups,
    ) -> Result<Starting, Error> {
        let notes = &context.notes;
        let mut secrets = ToolSecrets::of_providers(settings);
        let prepared = Preparation {
            selection,
            settings,
            notes,
            groups,
            secrets: &mut secrets,
        }
        .prepare_all()?;
        if !prepared.is_empty() {
            end_on_signal(groups, &context.interrupts);
        }
        let mut servers = Servers {
            sources: Vec::new(),
            groups: groups.clone(),
            secrets,
        };
        for server in prepared {
            let source = ToolSource::start(server, settings, &servers.secrets, context)?;
            servers.sources.push(source);
        }
        servers.receive(|_| false, notes);
        let starting = Starting {
            selection: selection.cloned(),
            servers,
            environment: settings.environment.clone(),
            interrupts: Arc::clone(&context.interrupts),
        };
        // If there are only commands, their names are checked before q waits for input.
        if selection.is_some() && !starting.are_awaited() {
            starting.collect(notes)?;
        }
        Ok(starting)
    }

    /// Whether q may wait for servers; commands need no start.
    pub fn are_awaited(&self) -> bool {
        self.servers.are_starting()
    }

    /// Waits until the tools are listed; what servers have listed before is known. `None` if no tools are selected. With
    /// `yes`, every call runs without asking.
    pub fn finish(mut self, yes: bool, notes: &Notes) -> Result<Option<Toolbox>, Error> {
        if self.servers.sources.is_empty() {
            return Ok(None);
        }
        let mut collected = self.wait_and_collect(false, notes);
        if collected.is_err() && self.are_awaited() {
            // What was not listed before may be new.
            collected = self.wait_and_collect(true, notes);
        }
        let (offers, instructions) = collected?;
        let consent = Consent::new(yes, self.environment, self.interrupts);
        let toolbox = Toolbox::new(self.servers, offers, instructions, consent);
        Ok(Some(toolbox))
    }

    /// The tools, or the selected ones, sorted by name. Without a selection, a note names each server that fails.
    pub fn list(mut self, notes: &Notes) -> Result<Vec<Offer>, Error> {
        let (offers, _) = self.wait_and_collect(true, notes)?;
        self.servers.end();
        Ok(offers)
    }

    /// Waits until all that is offered is known or, if they `must_start`, until all servers have started.
    fn wait_and_collect(
        &mut self,
        must_start: bool,
        notes: &Notes,
    ) -> Result<(Vec<Offer>, String), Error> {
        let is_awaited = |source: &ToolSource| must_start || !source.is_known();
        self.servers.receive(is_awaited, notes);
        self.collect(notes)
    }

    /// What all servers offer that have started, or are known, and what the model should know about them, in fences. A server
    /// that has failed is an error, or without a selection a note.
    fn collect(&self, notes: &Notes) -> Result<(Vec<Offer>, String), Error> {
        let mut offers = Vec::new();
        let mut instructions = String::new();
        for (index, source) in self.servers.sources.iter().enumerate() {
            let section = &source.section;
            let offered = match source.about() {
                Some(Ok(about)) => {
                    let more = self.instructions(section, about);
                    instructions = fence::join([&*instructions, &more]);
                    offers::of_server(index, section, &about.tools)
                }
                Some(Err(error)) => Err(error.clone()),
                None => continue,
            };
            match offered {
                Ok(offered) => offers.extend(offered),
                Err(error) if self.selection.is_none() => notes.note_error(&error),
                Err(error) => return Err(error),
            }
        }
        offers::name_apart(&mut offers);
        if let Some(selection) = &self.selection {
            offers = offers::choose(selection, offers)?;
        }
        Ok((offers, instructions))
    }

    /// What a server, or a command of the user's, wants the model to know, without keys; empty if it says nothing.
    fn instructions(&self, section: &ToolServer, about: &About) -> String {
        let text = &about.instructions;
        if text.trim().is_empty() {
            return String::new();
        }
        let most = match section.kind {
            ServerKind::Commands(_) => MAX_ABOUT,
            _ => MAX_INSTRUCTIONS,
        };
        let text = self.servers.secrets.redact_for_model(text);
        fence::around_instructions(&section.name, &shortened(&text, most))
    }
}

/// From now on, a signal asks the servers to end, and those that remain are killed just before q ends.
fn end_on_signal(groups: &Groups, interrupts: &Interrupts) {
    let first = groups.clone();
    interrupts.before_the_end(When::First, move || first.terminate());
    let last = groups.clone();
    interrupts.before_the_end(When::Last, move || last.kill());
}
