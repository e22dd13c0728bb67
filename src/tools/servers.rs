//! The servers of a question: those that are ready, and those that are still starting while the model is asked.

use std::sync::Arc;
use std::thread;

use super::process::Groups;
use super::secrets::ToolSecrets;
use super::server::Server;
use super::source::ToolSource;
use crate::output::Notes;

/// The servers of one run, in the order in which they were started. Dropping them asks them all to end.
pub struct Servers {
    pub sources: Vec<ToolSource>,
    pub groups: Groups,
    pub secrets: ToolSecrets,
}

impl Servers {
    /// Whether some of them are still starting.
    pub fn are_starting(&self) -> bool {
        self.sources.iter().any(ToolSource::is_starting)
    }

    /// Takes the servers that have started, and waits for those that `must_start`.
    pub fn receive(&mut self, must_start: impl Fn(&ToolSource) -> bool, notes: &Notes) {
        for source in &mut self.sources {
            let waits = must_start(source);
            source.receive(waits, &self.secrets, notes);
        }
    }

    /// Notes which servers were ended while nothing was called.
    pub fn report_failures(&self, notes: &Notes) {
        for source in &self.sources {
            if let Some(server) = source.server()
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
            for source in self.sources.drain(..) {
                if let Some(server) = source.into_server()
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
        let source = &mut self.sources[index];
        source.receive(true, &self.secrets, notes);
        if let Some(server) = source.server() {
            return Ok(Arc::clone(server));
        }
        let name = &source.section.name;
        Err(format!("The tool server {name} did not start."))
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.end_with(drop);
    }
}
