//! Starts tool servers side by side, and decides which of their tools the model may call.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::naming;
use super::prepare::{self, Prepared};
use super::process::{Groups, Report};
use super::protocol::Offered;
use super::selection::Selection;
use super::server::{A_WHILE, Server, Servers, Started};
use super::toolbox::{Offer, Toolbox};
use crate::error::{Error, Kind};
use crate::interrupt::{Interrupts, When};
use crate::message::Tool;
use crate::one_line::on_one_line;
use crate::output::Notes;
use crate::secret::{self, Secret};
use crate::settings::{Configured, Key, Place, Settings, ToolServer};

/// The most tools that OpenAI accepts.
const MOST_TOOLS: usize = 128;

/// Servers that are starting.
pub(crate) struct Starting {
    /// `None`: all tools.
    selection: Option<Selection>,
    /// One for each server.
    sections: Vec<ToolServer>,
    /// Whatever happens from here on, they end together.
    servers: Servers,
    /// The configuration file.
    file: PathBuf,
    /// Values that the model does not get.
    keys: Vec<Secret>,
    /// Values that are not shown; the keys are among them.
    secrets: Vec<Secret>,
}

impl Starting {
    /// Starts the selected servers; from now on, a signal ends them.
    ///
    /// # Errors
    /// `Settings`: a server is not configured, its configuration is invalid, or its command is missing.
    pub(crate) fn new(
        selection: &Selection,
        settings: &Settings,
        interrupts: &Arc<Interrupts>,
        groups: &Groups,
        notes: &Notes,
    ) -> Result<Starting, Error> {
        if selection.is_empty() {
            return Ok(Starting::nothing(Some(selection.clone()), &[], settings));
        }
        let configured = settings.tool_servers()?;
        let names: Vec<String> = configured.iter().map(|one| one.name.clone()).collect();
        let named = selection.servers(configured).map_err(|name| unknown(&name, &names, settings))?;
        let sections = named.into_iter().map(valid).collect::<Result<Vec<_>, _>>()?;
        for section in &sections {
            prepare::check(section, &settings.environment)?;
        }
        let prepared = sections.into_iter().map(|section| prepare::prepare(section, settings, notes));
        let prepared = prepared.collect::<Result<Vec<_>, _>>()?;
        let mut starting = Starting::nothing(Some(selection.clone()), &prepared, settings);
        let report = starting.report(&prepared, interrupts, groups, notes);
        for one in prepared {
            starting.start(one, groups, &report)?;
        }
        Ok(starting)
    }

    /// Starts every configured server; a note names each one that cannot be started.
    ///
    /// # Errors
    /// `Settings`: the file that the setting `mcp` names cannot be read.
    pub(crate) fn all(
        settings: &Settings,
        interrupts: &Arc<Interrupts>,
        groups: &Groups,
        notes: &Notes,
    ) -> Result<Starting, Error> {
        let prepare = |one: Configured| {
            let section = valid(one)?;
            prepare::check(&section, &settings.environment)?;
            prepare::prepare(section, settings, notes)
        };
        let configured = settings.tool_servers()?.into_iter();
        let prepared: Vec<Prepared> = configured.filter_map(|one| noted(prepare(one), notes)).collect();
        let mut starting = Starting::nothing(None, &prepared, settings);
        let report = starting.report(&prepared, interrupts, groups, notes);
        for one in prepared {
            let _ = noted(starting.start(one, groups, &report), notes);
        }
        Ok(starting)
    }

    /// None of these servers yet.
    fn nothing(selection: Option<Selection>, prepared: &[Prepared], settings: &Settings) -> Starting {
        let of_providers = settings.providers.iter().filter_map(|provider| match &provider.key {
            Key::Variables { found: Some((_, key)), .. } => Some(key),
            _ => None,
        });
        let keys: Vec<Secret> = prepared.iter().flat_map(|server| &server.keys).chain(of_providers).cloned().collect();
        let hidden = prepared.iter().flat_map(|server| &server.hidden);
        let secrets = keys.iter().chain(hidden).cloned().collect();
        let file = settings.file.clone();
        Starting { selection, sections: Vec::new(), servers: Servers::default(), file, keys, secrets }
    }

    /// What reports details about servers; from now on, a signal ends them.
    fn report(&self, prepared: &[Prepared], interrupts: &Arc<Interrupts>, groups: &Groups, notes: &Notes) -> Report {
        if !prepared.is_empty() {
            let (first, last) = (groups.clone(), groups.clone());
            interrupts.before_the_end(When::First, move || first.terminate());
            interrupts.before_the_end(When::Last, move || last.kill());
            interrupts.install();
        }
        let (notes, secrets) = (notes.clone(), self.secrets.clone());
        Arc::new(move |text: &str| notes.detail(|| secret::redact(text, &secrets)))
    }

    fn start(&mut self, server: Prepared, groups: &Groups, report: &Report) -> Result<(), Error> {
        self.servers.0.push(Server::start(server.spec, groups, report)?);
        self.sections.push(server.section);
        Ok(())
    }

    /// Whether there is any server.
    pub(crate) fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// Waits until the tools are listed. `None` if no tools are selected.
    ///
    /// # Errors
    /// `Tools`: a server did not start, or has no tools. `Settings`: a name selects no tool, or there are too many.
    pub(crate) fn finish(mut self, yes: bool, notes: &Notes) -> Result<Option<Toolbox>, Error> {
        let Some(selection) = self.selection.take().filter(|selection| !selection.is_empty()) else { return Ok(None) };
        let (keys, secrets) = (self.keys.clone(), self.secrets.clone());
        let (sections, servers, offers) = self.collect(notes, |error, _| Err(error))?;
        let offers = choose(&selection, &sections, offers, notes)?;
        if offers.len() > MOST_TOOLS {
            return Err(Error::settings(format!("there are {} tools, more than {MOST_TOOLS}", offers.len()))
                .advise("choose fewer with -t 'SERVER__list_*'\nor with only = [...] in the server's section"));
        }
        Ok(Some(Toolbox::new(servers, offers, yes, keys, secrets)))
    }

    /// The tools, or the selected ones, sorted by name. Without a selection, a note names each server that fails.
    ///
    /// # Errors
    /// As for [`Starting::finish`].
    pub(crate) fn list(mut self, groups: &Groups, notes: &Notes) -> Result<Vec<Offer>, Error> {
        let selection = self.selection.take();
        let is_lenient = selection.is_none();
        let (sections, _servers, mut offers) = self.collect(notes, |error, notes| match is_lenient {
            true => {
                note(&error, notes);
                Ok(())
            }
            false => Err(error),
        })?;
        match selection {
            Some(selection) => offers = choose(&selection, &sections, offers, notes)?,
            None => sort(&mut offers, notes),
        }
        groups.be_patient();
        Ok(offers)
    }

    /// Waits for all servers; `failed` decides about a server that does not start or has no tools.
    fn collect(
        self,
        notes: &Notes,
        failed: impl Fn(Error, &Notes) -> Result<(), Error>,
    ) -> Result<(Vec<ToolServer>, Servers, Vec<Offer>), Error> {
        let names: Vec<&str> = self.sections.iter().map(|section| section.name.as_str()).collect();
        notes.sign().wait_for(&format!("waiting for {}", names.join(", ")));
        let Starting { sections, mut servers, file, secrets, .. } = self;
        let mut offers = Vec::new();
        // Where one fails, the user need not wait for the others.
        let mut waiting: Vec<usize> = (0..sections.len()).collect();
        while let Some(first) = waiting.first().copied() {
            let mut still_waiting = Vec::new();
            for index in waiting {
                let slice = if index == first { A_WHILE } else { Duration::ZERO };
                let Some(started) = servers.0[index].wait(slice) else {
                    still_waiting.push(index);
                    continue;
                };
                match started.and_then(|started| offered(index, &sections[index], started, &file, &secrets, notes)) {
                    Ok(offered) => offers.extend(offered),
                    Err(error) => {
                        notes.sign().stop();
                        let message = secret::redact(&error.message, &secrets);
                        let advice = error.advice.map(|advice| secret::redact(&advice, &secrets));
                        failed(Error { message, advice, ..error }, notes)?;
                    }
                }
            }
            waiting = still_waiting;
        }
        notes.sign().stop();
        Ok((sections, servers, offers))
    }
}

/// A tool of one of the servers.
fn offer(server: usize, section: &ToolServer, tool: Offered, file: &Path) -> Offer {
    let Offered { name, description, schema, hints } = tool;
    // An address may belong to anyone, so what it says about itself allows nothing.
    let is_trusted = matches!(section.place, Place::Local(_));
    Offer {
        server,
        allowed: section.allows(&name) || (is_trusted && hints.is_harmless()),
        reads: hints.read_only,
        setting: setting_that_allows(section, &name, file),
        shown: Tool { name: naming::full_name(&section.name, &name), description, schema },
        tool: name,
    }
}

/// The setting that would let a tool run without asking.
fn setting_that_allows(section: &ToolServer, tool: &str, file: &Path) -> String {
    let (name, file) = (&section.name, file.display());
    let (article, place) = match (section.is_shared, &section.place) {
        (false, _) => ("the", ""),
        (true, Place::Local(_) | Place::Commands(_)) => ("a", ", together with its command,"),
        (true, Place::Remote(_)) => ("a", ", together with its url,"),
    };
    // TOML has the same text in quotes as JSON.
    format!("allow = [{}] in {article} section [tools.{name}] of {file}{place}", serde_json::Value::from(tool))
}

/// The server, or what is wrong with its configuration.
fn valid(configured: Configured) -> Result<ToolServer, Error> {
    configured.server.map_err(|reason| Error::settings(format!("the tool server {}: {reason}", configured.name)))
}

fn noted<T>(result: Result<T, Error>, notes: &Notes) -> Option<T> {
    result.inspect_err(|error| note(error, notes)).ok()
}

/// An error that does not end q, with its advice.
fn note(error: &Error, notes: &Notes) {
    let advice = error.advice.as_ref().map_or_else(String::new, |advice| format!("\n{advice}"));
    notes.note(&format!("{}{advice}", error.message));
}

/// What a server offers of what it has.
fn offered(
    index: usize,
    section: &ToolServer,
    started: Started,
    file: &Path,
    secrets: &[Secret],
    notes: &Notes,
) -> Result<Vec<Offer>, Error> {
    let Started { about, took } = started;
    let name = &section.name;
    let count = about.tools.len();
    notes.detail(|| {
        let of = format!("{} {}", about.name, about.version);
        let tools = if count == 1 { "tool" } else { "tools" };
        let took = took.as_secs_f64();
        let line = format!("{name}: {}, protocol {}, {count} {tools}, {took:.3} s", of.trim(), about.protocol);
        secret::redact(&line, secrets)
    });
    let failed =
        |what: &str, advice: &str| Err(Error::new(Kind::Tools, format!("{name}: {what}")).advise(advice.to_owned()));
    if count == 0 {
        return failed("the server offers no tools", "leave it out of -t");
    }
    if about.has_more {
        notes.note(&format!("{name}: only the first {count} tools are listed; the server has more"));
    }
    let names: Vec<&str> = about.tools.iter().map(|tool| tool.name.as_str()).collect();
    for pattern in section.idle_patterns(&names) {
        notes.note(&format!("{name}: “{pattern}” in allow matches none of its tools"));
    }
    let tools = about.tools.into_iter().filter(|tool| section.offers(&tool.name));
    let offers: Vec<Offer> = tools.map(|tool| offer(index, section, tool, file)).collect();
    if offers.is_empty() {
        return failed("only = [...] in the server's section matches none of its tools", "correct its patterns");
    }
    Ok(offers)
}

/// The selected tools, sorted by name, so that a provider's prompt cache finds them again.
fn choose(
    selection: &Selection,
    sections: &[ToolServer],
    mut offers: Vec<Offer>,
    notes: &Notes,
) -> Result<Vec<Offer>, Error> {
    let names = |offer: &Offer| [offer.tool.clone(), naming::of_tool(&offer.shown.name).to_owned()];
    let all: Vec<(usize, [String; 2])> = offers.iter().map(|offer| (offer.server, names(offer))).collect();
    let known: Vec<(&str, [&str; 2])> =
        all.iter().map(|(server, [own, shown])| (sections[*server].name.as_str(), [own.as_str(), shown])).collect();
    let without = selection.without_tools(&known);
    if !without.is_empty() {
        let there: Vec<&str> = offers.iter().map(|offer| offer.shown.name.as_str()).collect();
        return Err(Error::settings(format!("no tool has the name {}", without.join(", ")))
            .advise(format!("the tools are {}", there.join(", "))));
    }
    offers.retain(|offer| {
        let [own, shown] = names(offer);
        selection.has(&sections[offer.server].name, &[&own, &shown])
    });
    sort(&mut offers, notes);
    Ok(offers)
}

/// Sorts the tools by name. No API accepts a name twice, so the second tool of a name is left out.
fn sort(offers: &mut Vec<Offer>, notes: &Notes) {
    offers.sort_by(|one, other| one.shown.name.cmp(&other.shown.name));
    offers.dedup_by(|one, other| {
        let is_taken = one.shown.name == other.shown.name;
        if is_taken && one.tool != other.tool {
            let (name, tool, first) = (&one.shown.name, on_one_line(&one.tool), on_one_line(&other.tool));
            notes.note(&format!("the tool {tool} is left out: models know it by the same name as {first}, {name}"));
        }
        is_taken
    });
}

fn unknown(name: &str, names: &[String], settings: &Settings) -> Error {
    let error = Error::settings(format!("there is no tool server “{name}”"));
    let file = settings.file.display();
    error.advise(match names.is_empty() {
        true => format!("none is configured: a section [tools.NAME] in {file} adds one"),
        false => format!("the servers are {}\na section [tools.NAME] in {file} adds one", names.join(", ")),
    })
}
