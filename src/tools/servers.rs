//! The servers of a question: those that are ready, and those that are still starting while the model is asked.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use super::about::About;
use super::connection::Spec;
use super::known::KnownList;
use super::process::{Groups, ReportLine};
use super::secrets::ToolSecrets;
use super::server::Server;
use crate::error::{Error, ErrorKind};
use crate::interrupt::Interrupts;
use crate::output::Notes;
use crate::settings::ToolServer;
use crate::threads;

/// The servers of one run, in the order in which they were started. Dropping them asks them all to end.
pub struct Servers {
    pub slots: Vec<Slot>,
    pub groups: Groups,
    pub secrets: ToolSecrets,
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

    /// Takes the server if it has started, or waits for it. What it lists replaces what it has listed before. A note says if
    /// a server that was known could not be started; of others this is an error.
    fn receive(&mut self, waits: bool, secrets: &ToolSecrets, notes: &Notes) {
        if self.opened.is_some() {
            return;
        }
        let mut arrived = self.arrival.try_recv().ok();
        if arrived.is_none() && waits {
            let waiting = format!("waiting for {}", self.section.name);
            notes.spinner().wait_for(&waiting);
            arrived = self.arrival.recv().ok();
            notes.spinner().stop();
        }
        self.opened = match arrived {
            Some(Ok(mut server)) => {
                secrets.redact_about(&mut server.about);
                if server.is_connected() {
                    let text = introduction(&self.section.name, &server);
                    notes.detail(|| secrets.redact_for_user(&text));
                }
                self.list.replace(&server.about);
                Some(Ok(Arc::new(server)))
            }
            Some(Err(error)) => {
                let error = secrets.redact_error(error);
                if self.list.about.is_some() {
                    notes.note_error(&error);
                }
                Some(Err(error))
            }
            None => None,
        };
    }
}

impl Servers {
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
        let name = section.name.clone();
        let secrets = self.secrets.clone();
        let notes = notes.clone();
        let report: ReportLine = Arc::new(move |text: &str| {
            notes.quote(|| secrets.redact_for_user(&format!("{name}: {text}")));
        });
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
            threads::start(open).map_err(|error| {
                let message = format!("{}: {error}", section.name);
                Error::new(ErrorKind::Tools, message)
            })?;
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
        for slot in &mut self.slots {
            let waits = must_start(slot);
            slot.receive(waits, &self.secrets, notes);
        }
    }

    /// Notes which servers were ended while nothing was called.
    pub fn report_failures(&self, notes: &Notes) {
        for slot in &self.slots {
            if let Some(Ok(server)) = &slot.opened
                && let Some(error) = server.failed()
            {
                notes.note_error(&self.secrets.redact_error(error));
            }
        }
    }

    /// Ends all servers at the same time, and waits until they have ended.
    pub fn end(&mut self) {
        self.end_with(|server| server.end());
    }

    fn end_with(&mut self, end: fn(Arc<Server>)) {
        // Their lists from before stay.
        self.groups.terminate_starting();
        thread::scope(|scope| {
            for slot in self.slots.drain(..) {
                if let Some(Ok(server)) = slot.opened
                    && server.is_connected()
                {
                    // If no thread can be started, the server is only asked to end.
                    let _ = thread::Builder::new().spawn_scoped(scope, move || end(server));
                }
            }
        });
    }

    /// Waits for one server. The error says to the model that it did not start.
    pub fn wait_for(&mut self, index: usize, notes: &Notes) -> Result<Arc<Server>, String> {
        let slot = &mut self.slots[index];
        slot.receive(true, &self.secrets, notes);
        if let Some(Ok(server)) = &slot.opened {
            return Ok(Arc::clone(server));
        }
        let name = &slot.section.name;
        Err(format!("The tool server {name} did not start."))
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.end_with(drop);
    }
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
