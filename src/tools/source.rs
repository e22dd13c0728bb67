//! Where tools come from: the server of a section, which may still be starting while the model is asked, or its commands.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use super::about::ServerInfo;
use super::cached_list;
use super::lines::ReportLine;
use super::secrets::ToolSecrets;
use super::server::Server;
use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::flags::Mode;
use crate::output::Notes;
use crate::settings::{Settings, ToolServer};
use crate::threads;

/// A section that is in use, from its start on.
pub struct ToolSource {
    pub section: Arc<ToolServer>,
    /// What its server has listed the last time, without keys.
    listed_before: Option<ServerInfo>,
    /// Where to keep what it lists now.
    list: Option<PathBuf>,
    /// Whether its program was started once more after it had ended.
    was_restarted: bool,
    state: SourceState,
}

/// The state of a source.
enum SourceState {
    /// Brings the server once it has started, or the error for the user.
    Starting(Receiver<Result<Server, Error>>),
    Ready(Arc<Server>),
    Failed(Error),
}

impl ToolSource {
    /// Starts a server. What it has listed the last time counts until it has started, unless the tools are to be shown.
    pub fn start(
        server: Server,
        settings: &Settings,
        secrets: &ToolSecrets,
        context: &Context,
    ) -> Result<ToolSource, Error> {
        let section = Arc::clone(&server.section);
        let list = cached_list::list_path(context.cache.as_deref(), &server);
        let mut listed_before = None;
        let arguments = &settings.arguments;
        if let Some(path) = &list
            && !arguments.dry_run
            && arguments.mode == Mode::Ask
        {
            listed_before = cached_list::read_list(path);
        }
        // What was no key when it was written may be one now.
        if let Some(about) = &mut listed_before {
            secrets.redact_about(about);
        }
        if !server.callee.needs_no_start() {
            context.interrupts.install();
        }
        Ok(ToolSource {
            section,
            listed_before,
            list: list.filter(|_| settings.saves()),
            was_restarted: false,
            state: SourceState::Starting(open(server, secrets, &context.notes)?),
        })
    }

    /// Starts a program that has ended once more, for the next call. The call that it has failed is not made again, so the model
    /// knows that the server has forgotten what earlier calls did. One that ends twice in a question is not started again.
    pub fn restart_if_ended(&mut self, secrets: &ToolSecrets, notes: &Notes) {
        let SourceState::Ready(server) = &self.state else {
            return;
        };
        if self.was_restarted {
            return;
        }
        let Some(again) = server.again() else {
            return;
        };
        self.was_restarted = true;
        notes.detail(|| format!("{}: starting it again", self.section.name));
        self.state = match open(again, secrets, notes) {
            Ok(arrival) => SourceState::Starting(arrival),
            Err(error) => SourceState::Failed(error),
        };
    }

    /// Returns what it offers: what it has listed now, else what it has listed before; or why it could not be started.
    pub fn about(&self) -> Option<Result<&ServerInfo, &Error>> {
        match (&self.state, &self.listed_before) {
            (SourceState::Ready(server), _) => Some(Ok(&server.about)),
            (_, Some(about)) => Some(Ok(about)),
            (SourceState::Failed(error), None) => Some(Err(error)),
            (SourceState::Starting(_), None) => None,
        }
    }

    /// Whether what it offers is known before it has started.
    pub fn was_listed_before(&self) -> bool {
        self.listed_before.is_some()
    }

    pub fn is_starting(&self) -> bool {
        matches!(self.state, SourceState::Starting(_))
    }

    /// Its server, if that has started.
    pub fn server(&self) -> Option<&Arc<Server>> {
        match &self.state {
            SourceState::Ready(server) => Some(server),
            SourceState::Starting(_) | SourceState::Failed(_) => None,
        }
    }

    pub fn into_server(self) -> Option<Arc<Server>> {
        match self.state {
            SourceState::Ready(server) => Some(server),
            SourceState::Starting(_) | SourceState::Failed(_) => None,
        }
    }

    /// Takes the server if it has started, or waits for it. What it lists replaces what it has listed before. A note says if
    /// a server that has been offered already could not be started; for others this is an error.
    pub fn receive(&mut self, waits: bool, secrets: &ToolSecrets, notes: &Notes) {
        let SourceState::Starting(arrival) = &self.state else {
            return;
        };
        let mut arrived = arrival.try_recv().ok();
        if arrived.is_none() && waits {
            let waiting = format!("waiting for {}", self.section.name);
            notes.spinner().wait_for(&waiting);
            arrived = arrival.recv().ok();
            notes.spinner().stop();
        }
        self.state = match arrived {
            Some(Ok(mut server)) => {
                secrets.redact_about(&mut server.about);
                if server.callee.is_server() {
                    server.about.cut_descriptions();
                    notes.detail(|| secrets.redact_for_user(&introduction(&server)));
                }
                let mut tools = server.about.tools.iter();
                let has_key = tools.any(|tool| {
                    let is_renamed = secrets.redact_tool_name(&tool.name) != tool.name;
                    is_renamed || secrets.are_in_argument_names(&tool.schema)
                });
                if let Some(path) = &self.list
                    && !has_key
                    && self.listed_before.as_ref() != Some(&server.about)
                {
                    cached_list::write_list(path, &server.about);
                }
                SourceState::Ready(Arc::new(server))
            }
            Some(Err(error)) => {
                let error = secrets.redact_error(error);
                if self.was_listed_before() || self.was_restarted {
                    notes.note_error(&error);
                }
                SourceState::Failed(error)
            }
            None => return,
        };
    }
}

/// Opens a server on a thread of its own, and returns the channel that brings it. Commands need no thread.
fn open(
    server: Server,
    secrets: &ToolSecrets,
    notes: &Notes,
) -> Result<Receiver<Result<Server, Error>>, Error> {
    let name = server.section.name.clone();
    let shown_name = name.clone();
    let secrets = secrets.clone();
    let notes = notes.clone();
    let report: ReportLine = Arc::new(move |text: &str| {
        notes.quote(|| secrets.redact_for_user(&format!("{shown_name}: {text}")));
    });
    let needs_no_start = server.callee.needs_no_start();
    let (sender, arrival) = mpsc::channel();
    let open = move || {
        // If the run has ended meanwhile, the server ends here.
        let _ = sender.send(server.open(&report));
    };
    if needs_no_start {
        open();
    } else {
        threads::start(open).map_err(|error| {
            let message = format!("{name}: {error}");
            Error::new(ErrorKind::Tools, message)
        })?;
    }
    Ok(arrival)
}

/// Returns what a server says about itself, for `-v`.
fn introduction(server: &Server) -> String {
    let name = &server.section.name;
    let about = &server.about;
    let own = &about.name;
    let version = &about.version;
    let revision = &about.revision;
    let count = about.tools.len();
    let seconds = server.took.as_secs_f64();
    format!("{name}: {own} {version}, protocol {revision}, tools: {count}, {seconds:.3} s")
}
