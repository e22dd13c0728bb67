//! Runs the calls of a reply that need not wait for one another side by side.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use serde_json::{Map, Value};

use super::outcome::Outcome;
use super::server::Server;
use crate::threads::lock;

/// A call that may run.
pub struct ReadyCall {
    /// The index of its server.
    pub server: usize,
    /// The server's own name for the tool.
    pub tool: String,
    pub arguments: Map<String, Value>,
    pub reads: bool,
}

/// Runs calls side by side; those that may not run fail with the reason. `servers` are those that have started. A server
/// runs its calls one after another. `on_end` gets the index and the outcome of each call when it has ended, on any thread.
pub fn run(
    calls: &[Result<ReadyCall, String>],
    servers: &[Option<&Server>],
    on_end: &(dyn Fn(usize, &Outcome) + Sync),
) -> Vec<Outcome> {
    let lanes = lanes(calls, servers);
    let next = AtomicUsize::new(0);
    let ended = Mutex::new(BTreeMap::new());
    let work = || {
        loop {
            let Some(lane) = lanes.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return;
            };
            for place in lane {
                let began = Instant::now();
                let mut outcome = match &calls[*place] {
                    Ok(call) => match servers[call.server] {
                        Some(server) => server.call(&call.tool, &call.arguments, call.reads),
                        None => Outcome::failed("The tool server did not start."),
                    },
                    Err(reason) => Outcome::failed(reason),
                };
                outcome.took = began.elapsed();
                on_end(*place, &outcome);
                lock(&ended).insert(*place, outcome);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..lanes.len() {
            // If no thread can be started, this one runs more of the calls.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    ended.into_values().collect()
}

/// Calls that run one after another, in their order: those of one server. Each command is alone.
fn lanes(calls: &[Result<ReadyCall, String>], servers: &[Option<&Server>]) -> Vec<Vec<usize>> {
    let mut lanes = Vec::new();
    let mut lane_of_server = BTreeMap::new();
    for (place, call) in calls.iter().enumerate() {
        let connected = match call {
            Ok(call) if servers[call.server].is_some_and(Server::is_connected) => Some(call.server),
            _ => None,
        };
        let known = connected.and_then(|server| lane_of_server.get(&server).copied());
        if let Some(lane) = known {
            let lane: &mut Vec<usize> = &mut lanes[lane];
            lane.push(place);
            continue;
        }
        if let Some(server) = connected {
            lane_of_server.insert(server, lanes.len());
        }
        lanes.push(vec![place]);
    }
    lanes
}
