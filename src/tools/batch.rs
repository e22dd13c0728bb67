//! Runs the calls of a reply that need not wait for one another side by side.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::outcome::Outcome;
use super::server::Server;
use crate::threads::lock;

/// A call that may run.
pub struct ReadyCall {
    /// Its place among the calls of its batch.
    pub place: usize,
    /// The index of its server.
    pub server: usize,
    /// The server's own name for the tool.
    pub tool: String,
    pub arguments: Map<String, Value>,
    pub reads: bool,
}

/// A call that has run.
pub struct EndedCall {
    pub place: usize,
    pub outcome: Outcome,
    pub took: Duration,
}

/// Runs calls side by side. `servers` are those that have started. A server runs one call at a time. `on_end` gets each call when it has ended, on any thread.
pub fn run(
    mut calls: Vec<ReadyCall>,
    servers: &[Option<&Server>],
    on_end: &(dyn Fn(&EndedCall) + Sync),
) -> Vec<EndedCall> {
    let others = calls.len().saturating_sub(1);
    // The last is taken first.
    calls.reverse();
    let waiting = Mutex::new(calls);
    let ended = Mutex::new(Vec::new());
    let work = || {
        loop {
            let Some(call) = lock(&waiting).pop() else {
                return;
            };
            let began = Instant::now();
            let outcome = match servers[call.server] {
                Some(server) => server.call(&call.tool, &call.arguments, call.reads),
                None => Outcome::failed("The tool server did not start."),
            };
            let call = EndedCall {
                place: call.place,
                outcome,
                took: began.elapsed(),
            };
            on_end(&call);
            lock(&ended).push(call);
        }
    };
    thread::scope(|scope| {
        for _ in 0..others {
            // If no thread can be started, this one runs more of the calls.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    ended.into_inner().unwrap_or_else(PoisonError::into_inner)
}
