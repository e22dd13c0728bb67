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

/// Runs calls side by side. `servers` are those that have started; a server runs its calls one after another. `on_end` gets
/// each call when it has ended, on any thread.
pub fn run(
    calls: Vec<ReadyCall>,
    servers: &[Option<&Server>],
    on_end: &(dyn Fn(&EndedCall) + Sync),
) -> Vec<EndedCall> {
    let lanes = lanes(calls, servers);
    let others = lanes.len().saturating_sub(1);
    let waiting = Mutex::new(lanes);
    let ended = Mutex::new(Vec::new());
    let work = || {
        loop {
            let Some(lane) = lock(&waiting).pop() else {
                return;
            };
            for call in lane {
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

/// Calls that run one after another, in their order: those of one server. Each command is alone.
fn lanes(calls: Vec<ReadyCall>, servers: &[Option<&Server>]) -> Vec<Vec<ReadyCall>> {
    let mut lanes: Vec<Vec<ReadyCall>> = Vec::new();
    for call in calls {
        let is_connected = servers[call.server].is_some_and(Server::is_connected);
        let mut others = lanes.iter_mut();
        let of_same_server = others.find(|lane| is_connected && lane[0].server == call.server);
        match of_same_server {
            Some(lane) => lane.push(call),
            None => lanes.push(vec![call]),
        }
    }
    lanes
}
