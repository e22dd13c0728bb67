//! The servers of a question: those that are ready, and those that are still starting while the model is asked.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use super::about::About;
use super::known::KnownList;
use super::process::{Groups, Report};
use super::server::Server;
use super::spec::Spec;
use crate::error::{Error, ErrorKind};
use crate::interrupt::Interrupts;
use crate::output::Notes;
use crate::secret::{self, Secret};
use crate::settings::ToolServer;
use crate::threads;

/// The servers of one run, in the order in which they were started. Dropping them ends them all at the same time.
pub struct Servers {
    pub slots: Vec<Slot>,
    pub groups: Groups,
    /// Values that the model does not get.
    pub keys: Vec<Secret>,
    /// Values that are not shown; the keys are among them.
    pub secrets: Vec<Secret>,
}

/// The place of one server.
pub struct Slot {
    pub section: ToolServer,
    pub list: KnownList,
    /// Brings the server once it has started, or the error for the user.
    arrival: Receiver<Result<Server, Error>>,
    /// `None` while it starts.
    opened: Option<Result<Arc<Server>, Error>>,
}

impl Slot {
    /// What it offers: what it has listed now, else what it has listed before; or why it could not be started.
    pub fn about(&self) -> Option<Result<&About, &Error>> {
        match (&self.opened, &self.list.about) {
            (Some(Ok(server)), _) => Some(Ok(&server.about)),
            (_, Some(about)) => Some(Ok(about)),
            (Some(Err(error)), None) => Some(Err(error)),
            (None, None) => None,
        }
    }

    /// Takes a server that has started. What it lists replaces what it has listed before. A note says if a server that was
    /// known could not be started; of others this is an error.
    fn take(
        &mut self,
        opened: Result<Server, Error>,
        keys: &[Secret],
        secrets: &[Secret],
        notes: &Notes,
    ) {
        let opened = match opened {
            Ok(mut server) => {
                server.about = without_keys(&server.about, keys);
                if server.is_connected() {
                    let text = introduction(&self.section.name, &server);
                    notes.detail(|| secret::redact(&text, secrets));
                }
                self.list.replace(&server.about);
                Ok(Arc::new(server))
            }
            Err(error) => {
                let error = redacted(error, secrets);
                if self.list.about.is_some() {
                    note(&error, notes);
                }
                Err(error)
            }
        };
        self.opened = Some(opened);
    }
}

impl Servers {
    /// None yet. The model does not get the keys; what is hidden is not shown either.
    pub fn new(groups: &Groups, keys: Vec<Secret>, mut hidden: Vec<Secret>) -> Servers {
        hidden.extend_from_slice(&keys);
        Servers {
            slots: Vec::new(),
            groups: groups.clone(),
            keys,
            secrets: hidden,
        }
    }

    /// Starts a server on a thread of its own.
    pub fn start(
        &mut self,
        spec: Spec,
        list: KnownList,
        interrupts: &Arc<Interrupts>,
        notes: &Notes,
    ) -> Result<(), Error> {
        let is_known = spec.target.is_known();
        let section = spec.section.clone();
        let report = reporter(&section.name, &self.secrets, notes);
        let groups = self.groups.clone();
        let (sender, arrival) = mpsc::channel();
        let open = move || {
            let opened = Server::open(spec, &groups, &report);
            // If the run has ended meanwhile, the server ends here.
            let _ = sender.send(opened);
        };
        if is_known {
            open();
        } else {
            interrupts.install();
            threads::start(open)
                .map_err(|error| Error::new(ErrorKind::Tools, error.to_string()))?;
        }
        self.slots.push(Slot {
            section,
            list,
            arrival,
            opened: None,
        });
        Ok(())
    }

    /// Whether some of them are still starting.
    pub fn are_starting(&self) -> bool {
        self.slots.iter().any(|slot| slot.opened.is_none())
    }

    /// Takes the servers that have started, and waits for those that `must_start`.
    pub fn receive(&mut self, must_start: impl Fn(&Slot) -> bool, notes: &Notes) {
        let mut names = Vec::new();
        for slot in &self.slots {
            if slot.opened.is_none() && must_start(slot) {
                names.push(slot.section.name.as_str());
            }
        }
        let waits = !names.is_empty();
        if waits {
            let waiting = format!("waiting for {}", names.join(", "));
            notes.spinner().wait_for(&waiting);
        }
        for slot in &mut self.slots {
            if slot.opened.is_some() {
                continue;
            }
            let arrived = if must_start(slot) {
                slot.arrival.recv().ok()
            } else {
                slot.arrival.try_recv().ok()
            };
            if let Some(opened) = arrived {
                slot.take(opened, &self.keys, &self.secrets, notes);
            }
        }
        if waits {
            notes.spinner().stop();
        }
    }

    /// Waits for one server. The error says to the model that it did not start.
    pub fn wait_for(&mut self, index: usize, notes: &Notes) -> Result<Arc<Server>, String> {
        let name = self.slots[index].section.name.clone();
        self.receive(|slot| slot.section.name == name, notes);
        match &self.slots[index].opened {
            Some(Ok(server)) => Ok(Arc::clone(server)),
            _ => Err(format!("The tool server {name} did not start.")),
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        if self.are_starting() {
            // Their lists from before stay.
            self.groups.terminate_starting();
        }
        // Waits until every server has ended.
        thread::scope(|scope| {
            for slot in self.slots.drain(..) {
                if let Some(Ok(server)) = slot.opened
                    && server.is_connected()
                {
                    // If no thread can be started, the server ends here.
                    let _ = thread::Builder::new().spawn_scoped(scope, move || drop(server));
                }
            }
        });
    }
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

/// Reports an error that does not end q.
pub fn note(error: &Error, notes: &Notes) {
    match &error.advice {
        Some(advice) => notes.note(&format!("{}\n{advice}", error.message)),
        None => notes.note(&error.message),
    }
}

/// An error without secrets.
pub fn redacted(error: Error, secrets: &[Secret]) -> Error {
    let hide = |text: &String| secret::redact(text, secrets);
    Error {
        message: hide(&error.message),
        advice: error.advice.as_ref().map(hide),
        ..error
    }
}

/// What a server lists without the keys that it knows. Neither the model nor a file gets them.
fn without_keys(about: &About, keys: &[Secret]) -> About {
    let written = serde_json::json!(about).to_string();
    serde_json::from_str(&secret::redact(&written, keys)).unwrap_or_default()
}

/// What a server says about itself, for `-v`.
fn introduction(name: &str, server: &Server) -> String {
    let about = &server.about;
    let own = &about.name;
    let version = &about.version;
    let revision = &about.revision;
    let count = about.tools.len();
    let seconds = server.took.as_secs_f64();
    format!("{name}: {own} {version}, protocol {revision}, tools: {count}, {seconds:.3} s")
}
