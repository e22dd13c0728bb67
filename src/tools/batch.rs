//! Runs the calls of a reply that need not wait for one another side by side.

use std::collections::BTreeMap;
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
    let mut lanes: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (place, call) in calls.iter().enumerate() {
        let server = call.as_ref().ok().map(|call| call.server);
        let is_connected = server
            .and_then(|server| servers[server])
            .is_some_and(Server::is_connected);
        // Each command is alone.
        let lane = if is_connected { None } else { Some(place) };
        lanes.entry((server, lane)).or_default().push(place);
    }
    let ended = Mutex::new(BTreeMap::new());
    let run = |place: usize| {
        let began = Instant::now();
        let mut outcome = match &calls[place] {
            Ok(call) => match servers[call.server] {
                Some(server) => server.call(&call.tool, &call.arguments, call.reads),
                None => Outcome::failed("The tool server did not start."),
            },
            Err(reason) => Outcome::failed(reason),
        };
        outcome.took = began.elapsed();
        on_end(place, &outcome);
        lock(&ended).insert(place, outcome);
    };
    thread::scope(|scope| {
        for lane in lanes.values() {
            let run_all = || lane.iter().copied().for_each(run);
            let started = thread::Builder::new().spawn_scoped(scope, run_all);
            if started.is_err() {
                run_all();
            }
        }
    });
    let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    ended.into_values().collect()
}
