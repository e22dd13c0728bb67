//! Where tools come from: the server of a section, which may still be starting while the model is asked, or its commands.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};

use super::about::ServerInfo;
use super::cached_list;
use super::lines::ReportLine;
use super::secrets::ToolSecrets;
use super::server::{OpenServer, Server};
use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::flags::Mode;
use crate::output::Notes;
use crate::settings::{Settings, ToolServer};
use crate::threads;

/// A section that is in use, from its start on.
pub struct ToolSource {
    pub section: Arc<ToolServer>,
    /// The tool list, without keys: from the cache file until the server has started, then the server's own.
    about: Option<ServerInfo>,
    /// Whether `about` was read from the cache file at the start.
    is_from_cache: bool,
    /// Whether `about` has changed since the last offer.
    pub has_new_tools: bool,
    /// Whether a repeated `tools/list` has failed; q does not try again.
    cannot_list_again: bool,
    /// The cache file that the server's own list is written to.
    cache_path: Option<PathBuf>,
    /// Whether its program was started once more after it had ended.
    was_restarted: bool,
    state: SourceState,
}

/// A server that has started, or the error for the user.
type Opened = Result<OpenServer, Error>;

/// The state of a source.
enum SourceState {
    /// Brings the server once it has started.
    Starting(Receiver<Opened>),
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
        let cache_path = cached_list::list_path(context.cache.as_deref(), &server);
        let mut about = None;
        let arguments = &settings.arguments;
        if let Some(path) = &cache_path
            && !arguments.dry_run
            && arguments.mode == Mode::Ask
        {
            about = cached_list::read_list(path);
        }
        // What was no key when it was written may be one now.
        if let Some(about) = &mut about {
            secrets.redact_about(about);
        }
        if !server.callee.needs_no_start() {
            context.interrupts.install();
        }
        Ok(ToolSource {
            section,
            is_from_cache: about.is_some(),
            about,
            has_new_tools: false,
            cannot_list_again: false,
            cache_path: cache_path.filter(|_| settings.saves()),
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

    /// Returns what it offers: what it has listed last; or why it could not be started.
    pub fn about(&self) -> Option<Result<&ServerInfo, &Error>> {
        match (&self.about, &self.state) {
            (Some(about), _) => Some(Ok(about)),
            (None, SourceState::Failed(error)) => Some(Err(error)),
            (None, _) => None,
        }
    }

    /// Whether its tools were known from the cache file before it had started.
    pub fn is_from_cache(&self) -> bool {
        self.is_from_cache
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
            Some(Ok(OpenServer { server, mut about })) => {
                secrets.redact_about(&mut about);
                if server.callee.is_server() {
                    about.cut_descriptions();
                    notes.detail(|| secrets.redact_for_user(&introduction(&server, &about)));
                }
                self.store_list(&about, secrets);
                self.take_list(about);
                SourceState::Ready(Arc::new(server))
            }
            Some(Err(error)) => {
                let error = secrets.redact_error(error);
                if self.is_from_cache || self.was_restarted {
                    notes.note_error(&error);
                }
                SourceState::Failed(error)
            }
            None => return,
        };
    }

    /// Lists the tools once more if the server has said that they have changed. If that fails, those from before stay, and a
    /// note says so. The list is not stored: the next process of the server begins without these changes.
    pub fn list_again(&mut self, secrets: &ToolSecrets, notes: &Notes) {
        let (Some(server), Some(before)) = (self.server(), &self.about) else {
            return;
        };
        if self.cannot_list_again || !server.has_changed_tools() {
            return;
        }
        let name = &self.section.name;
        notes.spinner().wait_for(&format!("waiting for {name}"));
        let listed = server.list_again();
        notes.spinner().stop();
        match listed {
            Ok(list) => {
                let count = list.tools.len();
                notes.detail(|| format!("{name}: has listed its tools again: {count}"));
                let mut about = before.clone();
                list.replace_in(&mut about);
                secrets.redact_about(&mut about);
                about.cut_descriptions();
                self.take_list(about);
            }
            Err(error) => {
                self.cannot_list_again = true;
                notes.note_error(&secrets.redact_error(error));
            }
        }
    }

    /// Takes what the server lists now in place of what it has listed before.
    fn take_list(&mut self, about: ServerInfo) {
        self.has_new_tools |= self.about.as_ref() != Some(&about);
        self.about = Some(about);
    }

    /// Stores what the server lists when it has started, unless that is stored already.
    fn store_list(&self, about: &ServerInfo, secrets: &ToolSecrets) {
        if self.about.as_ref() == Some(about) {
            return;
        }
        let mut tools = about.tools.iter();
        let has_key = tools.any(|tool| {
            let is_renamed = secrets.redact_tool_name(&tool.name) != tool.name;
            is_renamed || secrets.are_in_argument_names(&tool.schema)
        });
        if let Some(path) = &self.cache_path
            && !has_key
        {
            cached_list::write_list(path, about);
        }
    }
}

/// Opens a server on a thread of its own, and returns the channel that brings it. Commands need no thread.
fn open(server: Server, secrets: &ToolSecrets, notes: &Notes) -> Result<Receiver<Opened>, Error> {
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
fn introduction(server: &Server, about: &ServerInfo) -> String {
    let name = &server.section.name;
    let own = &about.name;
    let version = &about.version;
    let revision = &about.revision;
    let count = about.tools.len();
    let seconds = server.took.as_secs_f64();
    format!("{name}: {own} {version}, protocol {revision}, tools: {count}, {seconds:.3} s")
}
