//! Starts tool servers side by side, and decides which of their tools the model may call.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::naming;
use super::process::{Groups, Report};
use super::protocol::Offered;
use super::selection::Selection;
use super::server::{Server, Servers, Spec, Started};
use super::toolbox::{Offer, Toolbox};
use crate::error::{Error, Kind};
use crate::interrupt::{Interrupts, When};
use crate::message::Tool;
use crate::output::Notes;
use crate::secret::{self, Secret};
use crate::settings::{Configured, Environment, Key, Settings, ToolServer};

/// The most tools that OpenAI accepts.
const MOST_TOOLS: usize = 128;

/// Where the system looks for programs if PATH is not set.
const USUAL_PATH: &str = "/usr/bin:/bin";

/// Servers that are starting.
pub(crate) struct Starting {
    /// `None`: all tools.
    selection: Option<Selection>,
    servers: Vec<(ToolServer, Server)>,
    /// The configuration file.
    file: PathBuf,
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
        notes: &Notes,
    ) -> Result<Starting, Error> {
        if selection.is_empty() {
            let (selection, file) = (Some(selection.clone()), settings.file.clone());
            return Ok(Starting { selection, servers: Vec::new(), file, secrets: Vec::new() });
        }
        let configured = settings.tool_servers()?;
        let names: Vec<String> = configured.iter().map(|one| one.name.clone()).collect();
        let named = selection.servers(configured).map_err(|name| unknown(&name, &names, settings))?;
        let sections = named.into_iter().map(valid).collect::<Result<Vec<_>, _>>()?;
        for section in &sections {
            check_command(section, &settings.environment)?;
        }
        let secrets = secrets(&sections, settings);
        let launch = Launch::new(&sections, &secrets, interrupts, notes);
        let start = |section| launch.start(section, &settings.environment);
        let servers = sections.into_iter().map(start).collect::<Result<_, _>>()?;
        Ok(Starting { selection: Some(selection.clone()), servers, file: settings.file.clone(), secrets })
    }

    /// Starts every configured server; a note names each one that cannot be started.
    ///
    /// # Errors
    /// `Settings`: the file that the setting `mcp` names cannot be read.
    pub(crate) fn all(settings: &Settings, interrupts: &Arc<Interrupts>, notes: &Notes) -> Result<Starting, Error> {
        let checked = |one: Configured| {
            let section = valid(one)?;
            check_command(&section, &settings.environment).map(|()| section)
        };
        let sections: Vec<ToolServer> =
            settings.tool_servers()?.into_iter().filter_map(|one| noted(checked(one), notes)).collect();
        let secrets = secrets(&sections, settings);
        let launch = Launch::new(&sections, &secrets, interrupts, notes);
        let start = |section| noted(launch.start(section, &settings.environment), notes);
        let servers = sections.into_iter().filter_map(start).collect();
        Ok(Starting { selection: None, servers, file: settings.file.clone(), secrets })
    }

    /// Whether there is any server.
    pub(crate) fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Waits until the tools are listed. `None` if no tools are selected.
    ///
    /// # Errors
    /// `Tools`: a server did not start, or has no tools. `Settings`: a name selects no tool, or there are too many.
    pub(crate) fn finish(mut self, yes: bool, notes: &Notes) -> Result<Option<Toolbox>, Error> {
        let Some(selection) = self.selection.take().filter(|selection| !selection.is_empty()) else { return Ok(None) };
        let secrets = self.secrets.clone();
        let (sections, servers, offers) = self.collect(notes, |error, _| Err(error))?;
        let offers = choose(&selection, &sections, offers)?;
        if offers.len() > MOST_TOOLS {
            return Err(Error::settings(format!("there are {} tools, more than {MOST_TOOLS}", offers.len()))
                .advise("choose fewer with -t 'SERVER__list_*'\nor with only = [...] in the server's section"));
        }
        Ok(Some(Toolbox::new(servers, offers, yes, secrets)))
    }

    /// The tools, or the selected ones, sorted by name. Without a selection, a note names each server that fails.
    ///
    /// # Errors
    /// As for [`Starting::finish`].
    pub(crate) fn list(mut self, notes: &Notes) -> Result<Vec<Offer>, Error> {
        let selection = self.selection.take();
        let is_lenient = selection.is_none();
        let (sections, _servers, mut offers) = self.collect(notes, |error, notes| match is_lenient {
            true => {
                notes.note(&error.message);
                Ok(())
            }
            false => Err(error),
        })?;
        if let Some(selection) = selection {
            return choose(&selection, &sections, offers);
        }
        offers.sort_by(|one, other| one.shown.name.cmp(&other.shown.name));
        Ok(offers)
    }

    /// Waits for all servers; `failed` decides about a server that does not start or has no tools.
    fn collect(
        self,
        notes: &Notes,
        failed: impl Fn(Error, &Notes) -> Result<(), Error>,
    ) -> Result<(Vec<ToolServer>, Servers, Vec<Offer>), Error> {
        let names: Vec<&str> = self.servers.iter().map(|(section, _)| section.name.as_str()).collect();
        notes.sign().wait_for(&format!("waiting for {}", names.join(", ")));
        let (sections, servers): (Vec<ToolServer>, Vec<Server>) = self.servers.into_iter().unzip();
        // From here on they end together, even after an error.
        let mut servers = Servers(servers);
        let mut offers = Vec::new();
        for (index, (section, server)) in sections.iter().zip(&mut servers.0).enumerate() {
            let started = server.wait().and_then(|started| match started.about.tools.is_empty() {
                true => {
                    let what = format!("{}: the server offers no tools; leave it out of -t", section.name);
                    Err(Error::new(Kind::Tools, what))
                }
                false => Ok(started),
            });
            match started {
                Ok(started) => {
                    report_start(section, &started, notes);
                    let before = offers.len();
                    let tools = started.about.tools.into_iter().filter(|tool| section.offers(&tool.name));
                    offers.extend(tools.map(|tool| offer(index, section, tool, &self.file)));
                    if offers.len() == before {
                        let what = format!("{}: the setting only matches none of the server's tools", section.name);
                        failed(Error::new(Kind::Tools, what), notes)?;
                    }
                }
                Err(error) => {
                    notes.sign().stop();
                    failed(Error::new(error.kind, secret::redact(&error.message, &self.secrets)), notes)?;
                }
            }
        }
        notes.sign().stop();
        Ok((sections, servers, offers))
    }
}

/// What q needs to start a server.
struct Launch {
    groups: Groups,
    report: Report,
}

impl Launch {
    fn new(sections: &[ToolServer], secrets: &[Secret], interrupts: &Arc<Interrupts>, notes: &Notes) -> Launch {
        let groups = Groups::default();
        if !sections.is_empty() {
            let (first, last) = (groups.clone(), groups.clone());
            interrupts.before_the_end(When::First, move || first.terminate());
            interrupts.before_the_end(When::Last, move || last.kill());
            interrupts.install();
        }
        let (notes, secrets) = (notes.clone(), secrets.to_vec());
        let report: Report = Arc::new(move |text: &str| notes.detail(|| secret::redact(text, &secrets)));
        Launch { groups, report }
    }

    fn start(&self, section: ToolServer, environment: &Environment) -> Result<(ToolServer, Server), Error> {
        let server = Server::start(spec(&section, environment)?, &self.groups, &self.report)?;
        Ok((section, server))
    }
}

/// A tool of one of the servers.
fn offer(server: usize, section: &ToolServer, tool: Offered, file: &Path) -> Offer {
    let Offered { name, description, schema, hints } = tool;
    Offer {
        server,
        allowed: section.allows(&name) || hints.is_harmless(),
        reads: hints.read_only,
        setting: setting_that_allows(section, &name, file),
        shown: Tool { name: naming::full_name(&section.name, &name), description, schema },
        tool: name,
    }
}

/// The setting that would let a tool run without asking.
fn setting_that_allows(section: &ToolServer, tool: &str, file: &Path) -> String {
    let (name, file) = (&section.name, file.display());
    let command = if section.is_shared { " with its command" } else { "" };
    // TOML has the same text in quotes as JSON.
    format!("allow = [{}] in a section [tools.{name}]{command} of {file}", serde_json::Value::from(tool))
}

/// The server, or what is wrong with its configuration.
fn valid(configured: Configured) -> Result<ToolServer, Error> {
    configured.server.map_err(|reason| Error::settings(format!("the tool server {}: {reason}", configured.name)))
}

fn noted<T>(result: Result<T, Error>, notes: &Notes) -> Option<T> {
    result.inspect_err(|error| notes.note(&error.message)).ok()
}

fn report_start(section: &ToolServer, started: &Started, notes: &Notes) {
    let Started { about, took } = started;
    notes.detail(|| {
        let (name, tools) = (&section.name, about.tools.len());
        let of = format!("{} {}, protocol {}", about.name, about.version, about.protocol);
        format!("{name}: {of}, {tools} tools, {:.3} s", took.as_secs_f64())
    });
}

/// The selected tools, sorted by name, so that a provider's prompt cache finds them again.
fn choose(selection: &Selection, sections: &[ToolServer], mut offers: Vec<Offer>) -> Result<Vec<Offer>, Error> {
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
    let mut selected = known.iter().map(|(server, names)| selection.has(server, names)).collect::<Vec<_>>().into_iter();
    offers.retain(|_| selected.next() == Some(true));
    offers.sort_by(|one, other| one.shown.name.cmp(&other.shown.name));
    // No API accepts a name twice.
    offers.dedup_by(|one, other| one.shown.name == other.shown.name);
    Ok(offers)
}

fn unknown(name: &str, names: &[String], settings: &Settings) -> Error {
    let error = Error::settings(format!("there is no tool server “{name}”"));
    let file = settings.file.display();
    error.advise(match names.is_empty() {
        true => format!("none is configured: a section [tools.NAME] in {file} adds one"),
        false => format!("the servers are {}\na section [tools.NAME] in {file} adds one", names.join(", ")),
    })
}

/// Values that must not be shown: the variables that the configuration gives to servers, and the keys of providers.
fn secrets(sections: &[ToolServer], settings: &Settings) -> Vec<Secret> {
    let keys = settings.providers.iter().filter_map(|provider| match &provider.key {
        Key::Variables { found: Some((_, key)), .. } => Some(key.clone()),
        _ => None,
    });
    sections.iter().flat_map(|section| section.secrets(&settings.environment)).chain(keys).collect()
}

/// A missing program is reported before q waits for anything.
fn check_command(section: &ToolServer, environment: &Environment) -> Result<(), Error> {
    let program = &section.command[0];
    // The system searches the server's own PATH.
    let variables = section.environment(environment);
    let path = variables.iter().find(|(name, _)| name == "PATH").map_or(USUAL_PATH, |(_, path)| path);
    let is_there = match program.contains('/') {
        true => Path::new(program).is_file(),
        false => std::env::split_paths(path).any(|folder| folder.join(program).is_file()),
    };
    if is_there {
        return Ok(());
    }
    let name = &section.name;
    Err(Error::settings(format!("tools.{name}: there is no program {program}")).advise(match program.contains('/') {
        true => format!("correct the command of the server {name}"),
        false => "install it\nor write its full path".to_owned(),
    }))
}

fn spec(server: &ToolServer, environment: &Environment) -> Result<Spec, Error> {
    let home = || environment.get("HOME").map(PathBuf::from);
    let cwd = match server.cwd.as_deref() {
        Some(".") => std::env::current_dir().ok(),
        Some(folder) => Some(PathBuf::from(folder)),
        None => home(),
    };
    let cwd = cwd.filter(|folder| folder.is_dir()).ok_or_else(|| {
        let folder = server.cwd.as_deref().unwrap_or("the home folder");
        Error::settings(format!("tools.{}: {folder} is not a folder, so the server cannot start there", server.name))
    })?;
    let variables = server.environment(environment).into_iter();
    Ok(Spec {
        name: server.name.clone(),
        command: server.command.clone(),
        env: variables.map(|(name, value)| (name.into(), value.into())).collect(),
        cwd,
        start: server.start,
        timeout: server.timeout,
    })
}
