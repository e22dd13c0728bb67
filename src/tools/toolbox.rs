//! The tools of one question, from their start to their end: sources start side by side, and what they offer goes to the
//! model.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

use super::about::ServerInfo;
use super::bounds::Bounds;
use super::consent::Consent;
use super::groups::ProcessGroups;
use super::names::Selection;
use super::offers::{self, OfferedTool, Offers};
use super::outcome::Room;
use super::prepare::Preparation;
use super::secrets::ToolSecrets;
use super::server::Server;
use super::source::ToolSource;
use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::interrupt::{Interrupts, ShutdownPhase};
use crate::message::shortened;
use crate::output::Notes;
use crate::provider::tool_schema::{RejectedTool, ToolSchemas};
use crate::secret::Secret;
use crate::settings::{ServerKind, Settings, ToolServer};
use crate::text::fence;
use crate::text::one_line::on_one_line;

/// The most bytes of a server's instructions, and of what a command of the user's says about others.
const MAX_INSTRUCTIONS: usize = 4_000;
const MAX_ABOUT: usize = 20_000;

/// How many sections advice counts the tools of.
const MAX_COUNTED: usize = 5;

/// The tools that a question may use. Dropping them asks all servers to end.
pub struct Toolbox {
    /// `None`: all tools.
    selection: Option<Selection>,
    /// In the order in which they were started.
    pub(super) sources: Vec<ToolSource>,
    /// There are none until the sources are known.
    pub offers: Offers,
    /// What the servers want the model to know, in fences that name them.
    pub instructions: String,
    /// The notes about tools that are not offered.
    omissions: BTreeSet<String>,
    pub(super) secrets: ToolSecrets,
    pub(super) consent: Consent,
    groups: ProcessGroups,
    /// Whether a call has run.
    pub(super) has_called: bool,
    /// For results.
    pub(super) room: Room,
}

impl Toolbox {
    /// Starts the servers of the selected tools in `groups`; from now on, a signal ends them. Without a selection, starts every
    /// configured server, and a note names each one that cannot be started.
    pub fn start(
        selection: Option<&Selection>,
        settings: &Settings,
        context: &Context,
        groups: &ProcessGroups,
    ) -> Result<Toolbox, Error> {
        let notes = &context.notes;
        let secrets = ToolSecrets::of_providers(settings);
        let prepared = Preparation {
            selection,
            settings,
            notes,
            groups,
            secrets: &secrets,
            scratch_places: context.scratch_places(),
        }
        .prepare_all()?;
        let interrupts = &context.interrupts;
        if !prepared.is_empty() {
            end_on_signal(groups, interrupts);
        }
        let environment = settings.environment.clone();
        let mut toolbox = Toolbox {
            selection: selection.cloned(),
            sources: Vec::new(),
            offers: Offers::default(),
            instructions: String::new(),
            omissions: BTreeSet::new(),
            secrets,
            consent: Consent::new(settings.arguments.yes, environment, Arc::clone(interrupts)),
            groups: groups.clone(),
            has_called: false,
            room: Room::default(),
        };
        for server in prepared {
            let source = ToolSource::start(server, settings, &toolbox.secrets, context)?;
            toolbox.sources.push(source);
        }
        toolbox.receive_all(|_| false, notes);
        // If there are only commands, their names are checked before q waits for input.
        if !toolbox.is_starting() {
            toolbox.collect(notes)?;
        }
        Ok(toolbox)
    }

    /// Whether no tools are selected.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Whether q may have to wait for servers.
    pub fn is_starting(&self) -> bool {
        self.sources.iter().any(ToolSource::is_starting)
    }

    /// Waits until the tools are known; of a server that has listed them before, they are.
    pub fn wait(&mut self, notes: &Notes) -> Result<(), Error> {
        if !self.is_starting() {
            return Ok(());
        }
        let collected = self.wait_and_collect(|source| !source.is_from_cache(), notes);
        if collected.is_err() && self.is_starting() {
            // What was not listed before may be new.
            return self.wait_and_collect(|_| true, notes);
        }
        collected
    }

    /// Returns the tools, or the selected ones, sorted by name, and to what each is confined. Without a selection, a note names
    /// each server that fails.
    pub fn list(mut self, notes: &Notes) -> Result<Vec<(OfferedTool, Option<Bounds>)>, Error> {
        if self.is_starting() {
            self.wait_and_collect(|_| true, notes)?;
        }
        let mut listed = Vec::new();
        for offer in std::mem::take(&mut self.offers.list) {
            let server = self.sources[offer.source].server();
            let bounds = server.and_then(|server| server.callee.bounds(&offer.tool));
            listed.push((offer, bounds.cloned()));
        }
        self.end_servers(|server| server.end());
        Ok(listed)
    }

    fn wait_and_collect(
        &mut self,
        is_awaited: fn(&ToolSource) -> bool,
        notes: &Notes,
    ) -> Result<(), Error> {
        self.receive_all(is_awaited, notes);
        self.collect(notes)
    }

    /// Takes the servers that have started, and waits for those that are awaited.
    fn receive_all(&mut self, is_awaited: fn(&ToolSource) -> bool, notes: &Notes) {
        for index in 0..self.sources.len() {
            let waits = is_awaited(&self.sources[index]);
            self.receive(index, waits, notes);
        }
    }

    /// Takes a server if it has started, or waits for it. From then on, what it lists now counts for the calls.
    fn receive(&mut self, index: usize, waits: bool, notes: &Notes) {
        let source = &mut self.sources[index];
        if !source.is_starting() {
            return;
        }
        source.receive(waits, &self.secrets, notes);
        self.update_offers();
    }

    /// Takes what the servers list now for the offers, and adds none.
    fn update_offers(&mut self) {
        for (index, source) in self.sources.iter().enumerate() {
            let (Some(Ok(about)), Some(_)) = (source.about(), source.server()) else {
                continue;
            };
            let listed = offers::by_name(&about.tools);
            for offer in &mut self.offers.list {
                if offer.source == index {
                    offer.update(&source.section, &listed);
                }
            }
        }
    }

    /// Collects what all sources offer that have started, or are known, and what the model should know about them. A server
    /// that has failed is an error, or without a selection a note.
    fn collect(&mut self, notes: &Notes) -> Result<(), Error> {
        self.note_tools_left_out(notes);
        let (mut offers, errors) = self.all_offers();
        for error in errors {
            if self.selection.is_some() {
                return Err(error);
            }
            notes.note_error(&error);
        }
        if let Some(selection) = &self.selection {
            offers = offers::choose(selection, offers)?;
        }
        let allowed = self.without_keys_in_arguments(offers, notes)?;
        self.offer(allowed);
        self.instructions = self.all_instructions();
        Ok(())
    }

    /// Returns what all sources offer that have started, or are known, each under a name of its own, and why others offer nothing.
    fn all_offers(&self) -> (Vec<OfferedTool>, Vec<Error>) {
        let mut offers = Vec::new();
        let mut errors = Vec::new();
        let redact = |name: &str| self.secrets.redact_tool_name(name);
        for (index, source) in self.sources.iter().enumerate() {
            let offered = match source.about() {
                Some(Ok(about)) => offers::offers_of(index, &source.section, &about.tools, &redact),
                Some(Err(error)) => Err(error.clone()),
                None => continue,
            };
            match offered {
                Ok(offered) => offers.extend(offered),
                Err(error) => errors.push(error),
            }
        }
        offers::name_apart(&mut offers);
        (offers, errors)
    }

    /// Offers these tools to the model.
    fn offer(&mut self, list: Vec<OfferedTool>) {
        self.offers = Offers::of(list);
        for source in &mut self.sources {
            source.has_new_tools = false;
        }
    }

    /// Offers what the servers list now, before the model is asked again: some have said that their tools have changed, and
    /// others have started with other tools than before. Where nothing would be left, the tools from before stay, because an API may
    /// reject calls in a request without tools; they do not run.
    pub fn offer_new_tools(&mut self, accepted: ToolSchemas, provider: &str, notes: &Notes) {
        self.receive_all(|_| false, notes);
        for source in &mut self.sources {
            source.list_again(&self.secrets, notes);
        }
        if !self.sources.iter().any(|source| source.has_new_tools) {
            return;
        }
        self.note_tools_left_out(notes);
        let (mut offers, _) = self.all_offers();
        if let Some(selection) = &self.selection {
            offers::retain_selected(selection, &mut offers);
        }
        let before = self.offers.clone();
        let allowed = self.without_keys_in_arguments(offers, notes);
        self.offer(allowed.unwrap_or_default());
        let fitting = self.fit(accepted, provider, notes);
        if fitting.is_err() || self.offers.tools().is_empty() {
            self.offers = before;
            self.update_offers();
        }
    }

    /// Returns what the model should know about all sources.
    fn all_instructions(&self) -> String {
        let mut instructions = String::new();
        for source in &self.sources {
            if let Some(Ok(about)) = source.about() {
                let more = self.instructions_of(&source.section, about);
                instructions = fence::join([&*instructions, &more]);
            }
        }
        instructions
    }

    /// Leaves out the tools with a key in the name of an argument, with a note for each: a call needs this name as it is, and the
    /// model and the file must not get it.
    fn without_keys_in_arguments(
        &mut self,
        mut offers: Vec<OfferedTool>,
        notes: &Notes,
    ) -> Result<Vec<OfferedTool>, Error> {
        let mut omitted = Vec::new();
        offers.retain(|offer| {
            let has_key = self.secrets.are_in_argument_names(&offer.shown.schema);
            if has_key {
                omitted.push(offer.shown.name.clone());
            }
            !has_key
        });
        let reason = "the name of one of its arguments contains a key";
        if offers.is_empty() && !omitted.is_empty() && self.selection.is_some() {
            let message = format!("{} cannot be offered: {reason}", omitted.join(", "));
            let error = Error::new(ErrorKind::Tools, message);
            return Err(error.advise("ask with other tools, or without: -t none"));
        }
        for name in omitted {
            self.note_once(format!("{name} is omitted: {reason}"), notes);
        }
        Ok(offers)
    }

    /// Prints a note for each server that lists tools which are not read.
    fn note_tools_left_out(&mut self, notes: &Notes) {
        let mut left_out = Vec::new();
        for source in &self.sources {
            if let Some(Ok(about)) = source.about()
                && let Some(what) = about.left_out
            {
                left_out.push(what.note(&source.section));
            }
        }
        for note in left_out {
            self.note_once(note, notes);
        }
    }

    /// Prints a note, unless an earlier list has led to the same.
    fn note_once(&mut self, note: String, notes: &Notes) {
        if self.omissions.insert(note.clone()) {
            notes.note(&note);
        }
    }

    /// Returns what a server, or a command of the user's, wants the model to know, without keys and in a fence; empty if it says
    /// nothing.
    fn instructions_of(&self, section: &ToolServer, about: &ServerInfo) -> String {
        let text = &about.instructions;
        if text.trim().is_empty() {
            return String::new();
        }
        let most = match section.kind {
            ServerKind::Commands { .. } => MAX_ABOUT,
            _ => MAX_INSTRUCTIONS,
        };
        let text = self.secrets.redact_for_model(text);
        fence::around_instructions(&section.name, &shortened(&text, most))
    }

    /// Leaves out the tools that an API would reject, with a note for each, and completes the schemas of the others.
    pub fn fit(
        &mut self,
        accepted: ToolSchemas,
        provider: &str,
        notes: &Notes,
    ) -> Result<(), Error> {
        let (fitting, rejected) = self.offers.fitted(accepted);
        for RejectedTool { name, argument } in &rejected {
            let argument = on_one_line(argument);
            let note = format!(
                "{name} is omitted: {provider} rejects tools with an argument named “{argument}”"
            );
            self.note_once(note, notes);
        }
        if fitting.tools().is_empty() && !rejected.is_empty() {
            let message = format!("{provider} takes none of the tools");
            let error = Error::new(ErrorKind::Tools, message);
            return Err(error.advise("ask another provider with -p, or without tools: -t none"));
        }
        self.offers = fitting;
        Ok(())
    }

    /// Returns what to do about a tool that an API rejects.
    pub fn leave_out_advice(&self, index: usize) -> Option<String> {
        let offer = self.offers.list.get(index)?;
        let choice = self.sources.get(offer.source)?.section.choice_of_tools();
        let tool = offer.own_name().unwrap_or(&offer.shown.name);
        Some(format!(
            "it rejects the tool {}: exclude it with {choice}",
            on_one_line(tool)
        ))
    }

    /// Returns what to do where an API takes fewer tools than it was sent.
    pub fn fewer_tools_advice(&self) -> Option<String> {
        let mut sections = Vec::new();
        for (index, source) in self.sources.iter().enumerate() {
            let mut offers = self
                .offers
                .list
                .iter()
                .filter(|offer| offer.source == index);
            if let Some(first) = offers.next() {
                let count = 1 + offers.count();
                sections.push((count, first.shown.name.as_str(), &*source.section));
            }
        }
        fewer_tools(&mut sections)
    }

    /// Hides a key: from now on, neither the model nor the user gets this key.
    pub fn hide(&self, key: &Secret) {
        self.secrets.add_keys(std::slice::from_ref(key));
    }

    /// Waits for the server at this index, which is started again if it has ended. The error says to the model that it did not
    /// start.
    pub(super) fn server(&mut self, index: usize, notes: &Notes) -> Result<Arc<Server>, String> {
        self.sources[index].restart_if_ended(&self.secrets, notes);
        self.receive(index, true, notes);
        let source = &self.sources[index];
        if let Some(server) = source.server() {
            return Ok(Arc::clone(server));
        }
        let name = &source.section.name;
        Err(format!("The tool server {name} did not start."))
    }

    /// Reports servers that could not be started or were ended, and keeps the lists of those that have started meanwhile.
    pub fn report_servers(&mut self, notes: &Notes) {
        self.receive_all(|_| false, notes);
        for server in self.sources.iter().filter_map(ToolSource::server) {
            if let Some(error) = server.failed() {
                notes.note_error(&self.secrets.redact_error(error));
            }
        }
    }

    /// Ends the servers, and waits until they have ended. If the question has failed before any call, they are only asked to
    /// end, for `main` waits a moment for them.
    pub fn end(mut self, has_answer: bool) {
        if has_answer || self.has_called {
            self.end_servers(|server| server.end());
        }
    }

    /// Ends all servers at the same time, and waits until they have ended.
    fn end_servers(&mut self, end: fn(Arc<Server>)) {
        // Their lists from before stay.
        self.groups.terminate_unlisted();
        thread::scope(|scope| {
            for source in self.sources.drain(..) {
                if let Some(server) = source.into_server()
                    && server.is_open()
                {
                    // If no thread can be started, the server is only asked to end.
                    let _ = thread::Builder::new().spawn_scoped(scope, move || end(server));
                }
            }
        });
    }
}

impl Drop for Toolbox {
    fn drop(&mut self) {
        self.end_servers(drop);
    }
}

/// Returns how to offer fewer tools. `sections` has how many tools each of them offers, and the name of one.
fn fewer_tools(sections: &mut [(usize, &str, &ToolServer)]) -> Option<String> {
    sections.sort_by_key(|(count, ..)| std::cmp::Reverse(*count));
    let (_, example, largest) = sections.first()?;
    let sum: usize = sections.iter().map(|(count, ..)| count).sum();
    let mut counts = Vec::new();
    for (count, _, section) in sections.iter().take(MAX_COUNTED) {
        counts.push(format!("{count} of {}", section.name));
    }
    if sections.len() > MAX_COUNTED {
        counts.push("…".to_owned());
    }
    let name = &largest.name;
    Some(format!(
        "offer fewer than these {sum} tools: {}; \
         name those of {name} that you need: -t {example}, or a pattern such as -t '{name}__list_*', \
         or set {}; run q --list-tools -t {name} to list its tools",
        counts.join(", "),
        largest.choice_of_tools(),
    ))
}

/// Lets a signal ask the servers to end, and those that remain are killed just before q ends.
fn end_on_signal(groups: &ProcessGroups, interrupts: &Interrupts) {
    let first = groups.clone();
    interrupts.on_signal(ShutdownPhase::StopPrograms, move || first.terminate());
    let last = groups.clone();
    interrupts.on_signal(ShutdownPhase::KillPrograms, move || last.kill());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_on_too_many_tools_counts_them_and_says_where_to_choose() {
        let section = |name: &str| ToolServer::parse(name, "command = [\"x\"]");
        let sections = ["git", "time", "a", "b", "c", "d"].map(section);
        let [git, time, others @ ..] = &sections;
        let few = [(2, "time__now", time), (600, "git__add", git)];
        assert_eq!(
            fewer_tools(&mut few.clone()).as_deref(),
            Some(
                "offer fewer than these 602 tools: 600 of git, 2 of time; \
                 name those of git that you need: -t git__add, or a pattern such as -t 'git__list_*', \
                 or set only = [...] in [tools.git]; run q --list-tools -t git to list its tools"
            )
        );
        let many = others.iter().map(|section| (40, "x", section));
        let many = fewer_tools(&mut Vec::from_iter(many.chain(few))).expect("advice");
        let counts = "these 762 tools: 600 of git, 40 of a, 40 of b, 40 of c, 40 of d, …; ";
        assert!(many.contains(counts), "{many}");
        assert_eq!(fewer_tools(&mut []), None);
    }
}
