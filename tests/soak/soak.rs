//! What all parts of a soak share: the server, the report, numbers for questions, and when to stop.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use tempfile::TempDir;

use crate::command::Command;
use crate::question::Question;
use crate::report::Report;
use crate::run::Run;
use crate::server::Server;
use crate::world::World;

/// Of how many questions, counted back from the newest, the server knows what was sent.
const REMEMBERED: u64 = 20_000;

pub struct Soak {
    pub server: Server,
    pub report: Report,
    /// Worlds are made here.
    work: TempDir,
    /// Set by Ctrl-C.
    pub stop: Arc<AtomicBool>,
    deadline: Option<Instant>,
    questions: AtomicU64,
}

impl Soak {
    pub fn new(work: TempDir, findings: PathBuf, deadline: Option<Instant>) -> io::Result<Soak> {
        Ok(Soak {
            server: Server::start(),
            report: Report::new(findings),
            work,
            stop: Arc::default(),
            deadline,
            questions: AtomicU64::new(1),
        })
    }

    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
            || self
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// A number for a question. What is known of one long ago is forgotten.
    pub fn next_id(&self) -> u64 {
        let id = self.questions.fetch_add(1, Ordering::Relaxed);
        if let Some(old) = id.checked_sub(REMEMBERED) {
            self.server.forget(old);
        }
        id
    }

    pub fn world(&self, keep: Option<&'static str>) -> io::Result<World> {
        World::new(self.work.path(), self.server.address, keep)
    }

    pub fn start(&self, world: &World, command: &Command, question: &Question) -> io::Result<Run> {
        Run::start(world.run(&[], command, question))
    }
}
