//! The tools of one question: their servers started side by side, each call checked, agreed to, run and told to the model.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value};

use super::consent::{Asked, Consent};
use super::naming;
use super::process::{Groups, Report};
use super::result::{self, Outcome};
use super::selection::Selection;
use super::server::{Server, Servers, Spec, Started};
use crate::error::{Error, Kind};
use crate::interrupt::{Interrupts, When};
use crate::message::{Call, Ran, Tool};
use crate::output::Notes;
use crate::secret::{self, Secret};
use crate::settings::{Environment, Settings, ToolServer};

/// The most tools that OpenAI takes.
const MOST_TOOLS: usize = 128;

/// The most bytes of one result, and of all results of a question.
const LONGEST_RESULT: usize = 50_000;
const LONGEST_RESULTS: usize = 400_000;

/// Where the system looks for programs if nobody says.
const USUAL_PATH: &str = "/usr/bin:/bin";

/// How often in a row the same call with the same arguments may come.
const SAME_CALLS: usize = 2;

/// Servers that are being started.
pub(crate) struct Starting {
    selection: Selection,
    file: PathBuf,
    configured: Vec<ToolServer>,
    /// In the same order.
    servers: Servers,
}

/// The tools that a question may use.
pub(crate) struct Toolbox {
    servers: Servers,
    /// Sorted by name, as are `offers`.
    tools: Vec<Tool>,
    offers: Vec<Offer>,
    consent: Consent,
    /// Values that the servers got and that must not be shown.
    secrets: Vec<Secret>,
    /// How many more bytes of results there may be.
    room: usize,
    /// The last call, and how often it has come in a row.
    last: Option<(Call, usize)>,
}

/// Where a tool is, and whether it runs without asking.
struct Offer {
    server: usize,
    /// The server's own name for it.
    tool: String,
    allowed: bool,
    /// The setting that would allow it.
    setting: String,
}

impl Starting {
    /// Starts the servers that are selected; a signal ends them from now on.
    ///
    /// # Errors
    /// `Settings`: a server is not configured, or its command is not there.
    pub(crate) fn new(
        selection: &Selection,
        settings: &Settings,
        interrupts: &Arc<Interrupts>,
        notes: &Notes,
    ) -> Result<Starting, Error> {
        let file = settings.file.clone();
        let named = selection.servers(&settings.tools).map_err(|name| unknown(&name, settings))?;
        for server in &named {
            check_command(server, &settings.environment)?;
        }
        let groups = Groups::default();
        if !named.is_empty() {
            let (first, last) = (groups.clone(), groups.clone());
            interrupts.before_the_end(When::First, move || first.terminate());
            interrupts.before_the_end(When::Last, move || last.kill());
            interrupts.install();
        }
        let configured: Vec<ToolServer> = named.into_iter().cloned().collect();
        let secrets = secrets(&configured);
        let report: Report = {
            let notes = notes.clone();
            Arc::new(move |text: &str| notes.detail(|| secret::redact(text, &secrets)))
        };
        let mut servers = Servers::default();
        for server in &configured {
            servers.0.push(Server::start(spec(server, &settings.environment)?, &groups, &report)?);
        }
        Ok(Starting { selection: selection.clone(), file, configured, servers })
    }

    /// Waits until the tools are listed. `None` where none are selected.
    ///
    /// # Errors
    /// `Tools`: a server did not start, or has no tools. `Settings`: a name selects none of them, or they are too many.
    pub(crate) fn finish(self, yes: bool, notes: &Notes) -> Result<Option<Toolbox>, Error> {
        if self.selection.is_empty() {
            return Ok(None);
        }
        let Starting { selection, file, configured, mut servers } = self;
        let secrets = secrets(&configured);
        let names: Vec<&str> = configured.iter().map(|server| server.name.as_str()).collect();
        notes.sign().wait_for(&format!("waiting for {}", names.join(", ")));
        let mut all = Vec::new();
        for (index, (server, section)) in servers.0.iter_mut().zip(&configured).enumerate() {
            let Started { about, took } = server.wait().map_err(|error| {
                notes.sign().stop();
                Error::new(error.kind, secret::redact(&error.message, &secrets))
            })?;
            notes.detail(|| {
                let (name, tools) = (&section.name, about.tools.len());
                let of = format!("{} {}, protocol {}", about.name, about.version, about.protocol);
                format!("{name}: {of}, {tools} tools, {:.3} s", took.as_secs_f64())
            });
            if about.tools.is_empty() {
                return Err(failed(format!("{}: it offers no tools", section.name)));
            }
            for tool in about.tools.iter().filter(|tool| section.offers(&tool.name)) {
                let offer = Offer {
                    server: index,
                    tool: tool.name.clone(),
                    allowed: section.allows(&tool.name) || tool.hints.is_harmless(),
                    setting: format!("allow = [\"{}\"] in [tools.{}] of {}", tool.name, section.name, file.display()),
                };
                let description = tool.description.clone();
                let (name, schema) = (naming::full_name(&section.name, &tool.name), tool.schema.clone());
                all.push((Tool { name, description, schema }, offer));
            }
        }
        notes.sign().stop();
        let (tools, offers) = choose(&selection, &configured, all)?.into_iter().unzip();
        let consent = Consent::new(yes);
        Ok(Some(Toolbox { servers, tools, offers, consent, secrets, room: LONGEST_RESULTS, last: None }))
    }
}

/// Those that are selected, sorted by name, so that a provider's cache of prompts finds them again.
fn choose(
    selection: &Selection,
    servers: &[ToolServer],
    mut tools: Vec<(Tool, Offer)>,
) -> Result<Vec<(Tool, Offer)>, Error> {
    let names = |tool: &'_ (Tool, Offer)| -> (String, [String; 2]) {
        let server = &servers[tool.1.server].name;
        (server.clone(), [tool.1.tool.clone(), naming::of_tool(&tool.0.name).to_owned()])
    };
    let all: Vec<(String, [String; 2])> = tools.iter().map(names).collect();
    let known: Vec<(&str, [&str; 2])> =
        all.iter().map(|(server, [own, shown])| (server.as_str(), [own.as_str(), shown.as_str()])).collect();
    let without = selection.without_tools(&known);
    if !without.is_empty() {
        let there: Vec<&str> = tools.iter().map(|(tool, _)| tool.name.as_str()).collect();
        return Err(Error::settings(format!("no tool has the name {}", without.join(", ")))
            .advise(format!("there are {}", there.join(", "))));
    }
    let mut selected = known.iter().map(|(server, names)| selection.has(server, names)).collect::<Vec<_>>().into_iter();
    tools.retain(|_| selected.next() == Some(true));
    if tools.len() > MOST_TOOLS {
        return Err(Error::settings(format!("there are {} tools, more than {MOST_TOOLS}", tools.len()))
            .advise("choose some with -t 'SERVER__list_*', or with only = [...] in the server's section"));
    }
    tools.sort_by(|one, other| one.0.name.cmp(&other.0.name));
    // No API takes a name twice.
    tools.dedup_by(|one, other| one.0.name == other.0.name);
    Ok(tools)
}

impl Toolbox {
    /// What is offered to the model, sorted by name.
    pub(crate) fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Runs a call, if it may run. `watched`: a person sees each call as a line.
    pub(crate) fn run(&mut self, call: &Call, watched: bool, notes: &Notes) -> Ran {
        let began = Instant::now();
        let Outcome { text, is_error } = self.outcome(call, watched, notes).unwrap_or_else(Outcome::failed);
        notes.sign().stop();
        let whole = text.len();
        let text = result::cut(&text, LONGEST_RESULT.min(self.room));
        self.room -= text.len().min(self.room);
        notes.detail(|| {
            let what = if is_error { "an error" } else { "a result" };
            format!("{}: {what} of {whole} bytes after {:.3} s", call.name, began.elapsed().as_secs_f64())
        });
        Ran { call: call.clone(), result: text, is_error }
    }

    /// # Errors
    /// Why the call did not run, in words for the model.
    fn outcome(&mut self, call: &Call, watched: bool, notes: &Notes) -> Result<Outcome, String> {
        let there = || self.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ");
        let at = self.tools.iter().position(|tool| tool.name == call.name);
        let at = at.ok_or_else(|| format!("There is no tool {}. There are: {}.", call.name, there()))?;
        let arguments: Map<String, Value> = serde_json::from_str(&call.arguments)
            .map_err(|error| format!("The arguments are not a JSON object: {error}."))?;
        self.refuse_repetition(call)?;
        let shown = secret::redact(&Value::from(arguments.clone()).to_string(), &self.secrets);
        let offer = &self.offers[at];
        let asked = Asked { name: &call.name, arguments: &shown, allowed: offer.allowed, setting: &offer.setting };
        self.consent.ask(&asked, notes)?;
        if watched {
            notes.note(&on_one_line(&format!("{} {shown}", call.name)));
        } else {
            notes.detail(|| format!("{} {shown}", call.name));
        }
        notes.sign().wait_for(&format!("waiting for {}", call.name));
        Ok(self.servers.0[offer.server].call(&offer.tool, &call.arguments))
    }

    fn refuse_repetition(&mut self, call: &Call) -> Result<(), String> {
        let same = |last: &Call| (&last.name, &last.arguments) == (&call.name, &call.arguments);
        let count = self.last.as_ref().filter(|(last, _)| same(last)).map_or(1, |(_, count)| count + 1);
        self.last = Some((call.clone(), count));
        if count > SAME_CALLS {
            return Err(format!("The same call came {count} times in a row. Its result will not change."));
        }
        Ok(())
    }
}

/// A line that a terminal shows without a break.
fn on_one_line(text: &str) -> String {
    const LONGEST: usize = 200;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

fn failed(message: String) -> Error {
    Error::new(Kind::Tools, message)
}

fn unknown(name: &str, settings: &Settings) -> Error {
    let error = Error::settings(format!("there is no tool server “{name}”"));
    let file = settings.file.display();
    let names: Vec<&str> = settings.tools.iter().map(|server| server.name.as_str()).collect();
    error.advise(match names.is_empty() {
        true => format!("none is configured; a section [tools.NAME] in {file} adds one"),
        false => format!("there are {}; a section [tools.NAME] in {file} adds one", names.join(", ")),
    })
}

/// The values that servers get and nobody is shown.
fn secrets(servers: &[ToolServer]) -> Vec<Secret> {
    servers.iter().flat_map(|server| server.env.iter().map(|(_, value)| value.clone())).collect()
}

/// A command that is not there is told before anything is waited for.
fn check_command(server: &ToolServer, environment: &Environment) -> Result<(), Error> {
    let program = &server.command[0];
    let is_there = match program.contains('/') {
        true => Path::new(program).is_file(),
        false => std::env::split_paths(environment.get("PATH").unwrap_or(USUAL_PATH))
            .any(|folder| folder.join(program).is_file()),
    };
    if is_there {
        return Ok(());
    }
    let error = Error::settings(format!("tools.{}: there is no program {program}", server.name));
    Err(if program.contains('/') { error } else { error.advise("install it, or write its whole path") })
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
        Error::settings(format!("tools.{}: {folder} is no folder to start it in", server.name))
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
