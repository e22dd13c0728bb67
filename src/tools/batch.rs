//! Runs the calls of a reply that need not wait for one another side by side.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use serde_json::{Map, Value};

use super::offers::Offer;
use super::outcome::Outcome;
use super::server::Server;
use crate::message::ToolRun;
use crate::threads::lock;

/// A call that may run.
pub struct ReadyCall {
    pub offer: Offer,
    pub server: Arc<Server>,
    pub arguments: Map<String, Value>,
}

/// Runs calls side by side; those that may not run fail with the reason. A server runs its calls one after another. `on_end`
/// gets the index and the outcome of each call when it has ended, on any thread, and makes the run of it: only that is kept
/// until all have ended.
pub fn run(
    calls: &[Result<ReadyCall, String>],
    on_end: &(dyn Fn(usize, Outcome) -> ToolRun + Sync),
) -> Vec<ToolRun> {
    let mut lanes: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (place, call) in calls.iter().enumerate() {
        let lane = match call {
            Ok(call) if call.server.is_connected() => (Some(call.offer.server), 0),
            // Each command is alone.
            _ => (None, place),
        };
        lanes.entry(lane).or_default().push(place);
    }
    let ended = Mutex::new(BTreeMap::new());
    let run = |place: usize| {
        let began = Instant::now();
        let mut outcome = match &calls[place] {
            Ok(ReadyCall {
                offer,
                server,
                arguments,
            }) => server.call(&offer.tool, arguments, offer.reads),
            Err(reason) => Outcome::without_result(reason),
        };
        outcome.took = began.elapsed();
        let run = on_end(place, outcome);
        lock(&ended).insert(place, run);
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
    let ended = std::mem::take(&mut *lock(&ended));
    ended.into_values().collect()
}
