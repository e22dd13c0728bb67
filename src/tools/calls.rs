//! Runs the calls of a reply: each is checked, allowed and run, side by side where it need not wait for another, and its
//! result goes to the model.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use serde_json::{Map, Value};

use super::consent::ProposedCall;
use super::offers::OfferedTool;
use super::outcome::Outcome;
use super::secrets::{NameGoal, ToolSecrets};
use super::server::{CheckedCall, Server};
use super::toolbox::Toolbox;
use crate::message::{LEFT_OUT, MAX_ATTACHMENT, MAX_ATTACHMENTS, ToolCall, ToolRun, UNJOINED};
use crate::output::Notes;
use crate::text::json;
use crate::text::one_line::{beginning, on_one_line};
use crate::text::size::{in_bytes, in_units};
use crate::threads::lock;

/// The most calls of one reply that run.
pub const MAX_CALLS: usize = 32;

/// The most bytes of the arguments of all calls of a question, and the most memory, by an estimate, that those of the calls
/// that run side by side may take.
pub const MAX_ARGUMENTS: usize = 4_000_000;
const MAX_ARGUMENTS_WEIGHT: usize = 8_000_000;

/// The most characters of the line that shows a call.
const MAX_LINE: usize = 201;

/// An observer of calls, which keeps the results of those that have ended while others still run.
pub trait Observer: Sync {
    /// Learns that these calls are about to run. From here on, they may have an effect.
    fn started(&self, calls: &[&ToolCall]);
    /// Learns that one of them has ended.
    fn ended(&self, run: ToolRun);
}

/// A call that may run.
struct ReadyCall {
    offer: OfferedTool,
    server: Arc<Server>,
    checked: CheckedCall,
}

impl Toolbox {
    /// Refuses a call after too many in one reply.
    pub fn refuse(&mut self, call: &ToolCall) -> ToolRun {
        let reason = format!("The call was refused: at most {MAX_CALLS} calls of one reply run.");
        let outcome = Outcome::without_result(reason.as_str());
        let run = self.room.run_of(call, outcome, &reason);
        self.with_safe_name(run)
    }

    /// Returns a run with the name of its tool as it may be shown and saved.
    fn with_safe_name(&self, run: ToolRun) -> ToolRun {
        let name = self.redacted_name(&run.name, NameGoal::Sent);
        ToolRun { name, ..run }
    }

    fn redacted_name(&self, name: &str, goal: NameGoal) -> String {
        redacted_name(name, goal, &self.offers.list, &self.secrets)
    }

    /// Returns how many of these calls, from the first on, run side by side: as long as they only read. At least one.
    pub fn batch_of(&mut self, calls: &[ToolCall], notes: &Notes) -> usize {
        let mut reads = |call: &&ToolCall| {
            let found = self.find(call, notes);
            found.is_ok_and(|(offer, _)| offer.reads)
        };
        calls.iter().take_while(|call| reads(call)).count().max(1)
    }

    /// Runs calls side by side, if they may run, and returns a run for each. If they are `watched`, a line shows each to the
    /// user. `observer` learns which of them run, and what has arrived of each if q must end before the others have ended.
    pub fn run(
        &mut self,
        calls: &[ToolCall],
        watched: bool,
        observer: &dyn Observer,
        notes: &Notes,
    ) -> Vec<ToolRun> {
        let mut prepared = Vec::new();
        let mut room = MAX_ARGUMENTS_WEIGHT;
        let mut running = Vec::new();
        let mut names = Vec::new();
        for call in calls {
            let ready = self.prepare(call, &mut room, watched, notes);
            if ready.is_ok() {
                running.push(call);
                names.push(call.name.as_str());
            }
            prepared.push(ready);
        }
        observer.started(&running);
        if !running.is_empty() {
            self.has_called = true;
            let waiting = format!("waiting for {}", names.join(", "));
            let waiting = self.secrets.redact_for_user(&waiting);
            notes.spinner().wait_for(&waiting);
        }
        // What does not fit is dropped at once, not when all have ended.
        let this = Mutex::new(self);
        let on_end = |index: usize, outcome: Outcome| {
            let run = lock(&this).result(&calls[index], outcome, notes);
            observer.ended(run.clone());
            run
        };
        let runs = run_side_by_side(&prepared, &on_end);
        notes.spinner().stop();
        runs
    }

    /// Returns the result of a call within the limits, without keys.
    fn result(&mut self, call: &ToolCall, mut outcome: Outcome, notes: &Notes) -> ToolRun {
        if let Some(error) = outcome.server_failed.take() {
            notes.note_error(&self.secrets.redact_error(error));
        }
        let mut text = self.secrets.redact_for_model(&outcome.text);
        text += &self.secrets.redact_for_model(&outcome.remarks);
        let what = if outcome.is_error {
            "an error"
        } else {
            "a result"
        };
        let size = in_bytes(text.len());
        let seconds = outcome.took.as_secs_f64();
        let name = self.redacted_name(&call.name, NameGoal::Shown);
        let line = || format!("{name}: {what} of {size} after {seconds:.3} s");
        notes.detail(|| self.secrets.redact_for_user(&line()));
        let omitted = self.room.leave_out_images(&mut outcome);
        if omitted > 0 {
            let note = format!("{name}: {}", too_large(omitted));
            notes.note(&self.secrets.redact_for_user(&note));
        }
        let run = self.room.run_of(call, outcome, &text);
        self.with_safe_name(run)
    }

    /// Returns the tool that a call means, as its server lists it now, and this server. The error is for the model.
    fn find(
        &mut self,
        call: &ToolCall,
        notes: &Notes,
    ) -> Result<(OfferedTool, Arc<Server>), String> {
        let name = &call.name;
        let mut offers = self.offers.list.iter();
        let Some(index) = offers.position(|offer| offer.shown.name == *name) else {
            let name = self.redacted_name(name, NameGoal::Shown);
            return Err(format!("There is no tool {name}."));
        };
        let server = self.server(self.offers.list[index].source, notes)?;
        let offer = &self.offers.list[index];
        if !offer.is_listed {
            return Err(format!("The server no longer has the tool {name}."));
        }
        Ok((offer.clone(), server))
    }

    /// Checks a call, whose arguments may take this much memory. The error is for the model.
    fn checked(
        &mut self,
        call: &ToolCall,
        room: &mut usize,
        notes: &Notes,
    ) -> Result<ReadyCall, String> {
        let (offer, server) = self.find(call, notes)?;
        let checked = server.check(&offer.tool, arguments_of(call, room)?)?;
        Ok(ReadyCall {
            offer,
            server,
            checked,
        })
    }

    /// Checks a call, and asks whether it may run. The error says to the model why it does not.
    fn prepare(
        &mut self,
        call: &ToolCall,
        room: &mut usize,
        watched: bool,
        notes: &Notes,
    ) -> Result<ReadyCall, String> {
        let name = &call.name;
        let ready = self.checked(call, room, notes).inspect_err(|reason| {
            if watched {
                let name = self.redacted_name(name, NameGoal::Shown);
                let line = format!("{name} did not run: {reason}");
                let shown = self.secrets.redact_for_user(&line);
                notes.note(&beginning(&on_one_line(&shown), MAX_LINE));
            }
        })?;
        let bounds = ready.server.callee.bounds(&ready.offer.tool);
        let proposed = ProposedCall {
            offer: &ready.offer,
            section: &ready.server.section,
            bounds,
            arguments: &ready.checked.arguments,
        };
        let is_on_screen = self.consent.ask(&proposed, notes)?;
        let arguments = serde_json::to_string(&ready.checked.arguments).unwrap_or_default();
        let line = format!("{name} {arguments}");
        let line = self.secrets.redact_for_user(&line);
        if watched && !is_on_screen {
            notes.note(&beginning(&on_one_line(&line), MAX_LINE));
        } else if !is_on_screen {
            notes.detail(|| line);
        }
        if let Some(bounds) = bounds {
            notes.detail(|| format!("{name} is {}", bounds.full_summary()));
        }
        Ok(ready)
    }
}

/// Returns the name of a called tool without keys. That of a tool that is offered has none, but may have a word of a password, such as
/// the name of a database.
fn redacted_name(
    name: &str,
    goal: NameGoal,
    offers: &[OfferedTool],
    secrets: &ToolSecrets,
) -> String {
    if offers.iter().any(|offer| offer.shown.name == name) {
        return name.to_owned();
    }
    secrets.redact_called_name(name, goal)
}

/// Says that images of a result do not go to the model.
fn too_large(count: usize) -> String {
    let images = match count {
        1 => "an image is".to_owned(),
        _ => format!("{count} images are"),
    };
    format!(
        "{images} too large and not sent: the limit of images in base64 is {} each, and {} together",
        in_units(MAX_ATTACHMENT),
        in_units(MAX_ATTACHMENTS)
    )
}

/// Returns the arguments of a call as an object, if they take no more memory than there is `room`. The error is for the model.
fn arguments_of(call: &ToolCall, room: &mut usize) -> Result<Map<String, Value>, String> {
    let text = &call.arguments;
    if text == LEFT_OUT {
        return Err(format!(
            "The arguments of all calls together have more than {size}.",
            size = in_units(MAX_ARGUMENTS)
        ));
    }
    if text == UNJOINED {
        return Err(
            "The arguments came in pieces that cannot be put together. Call one tool at a time."
                .to_owned(),
        );
    }
    let weight = json::weight(text);
    if weight > *room {
        return Err("The arguments have too many values.".to_owned());
    }
    *room -= weight;
    serde_json::from_str(text).map_err(|error| {
        format!(
            "The arguments are not a JSON object: {}.",
            json::parse_failure(&error)
        )
    })
}

/// Runs calls side by side; those that may not run fail with the reason. `on_end` gets the index and the outcome of each call
/// when it has ended, on any thread, and makes the run of it: only that is kept until all have ended.
fn run_side_by_side(
    calls: &[Result<ReadyCall, String>],
    on_end: &(dyn Fn(usize, Outcome) -> ToolRun + Sync),
) -> Vec<ToolRun> {
    let runs = Mutex::new(BTreeMap::new());
    let run_lane = |lane: Vec<usize>| {
        for index in lane {
            let run = on_end(index, outcome_of(&calls[index]));
            lock(&runs).insert(index, run);
        }
    };
    thread::scope(|scope| {
        for lane in lanes(calls) {
            let here = lane.clone();
            let started = thread::Builder::new().spawn_scoped(scope, || run_lane(lane));
            // Where no thread can be started, the others wait.
            if started.is_err() {
                run_lane(here);
            }
        }
    });
    let runs = std::mem::take(&mut *lock(&runs));
    runs.into_values().collect()
}

/// Returns the indexes of the calls that run one after another, for each of the threads. The calls of one server keep their
/// order; each command is alone.
fn lanes(calls: &[Result<ReadyCall, String>]) -> Vec<Vec<usize>> {
    let mut of_servers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut lanes = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        match call {
            Ok(call) if call.server.callee.is_server() => {
                of_servers.entry(call.offer.source).or_default().push(index);
            }
            _ => lanes.push(vec![index]),
        }
    }
    lanes.extend(of_servers.into_values());
    lanes
}

/// Runs a call, or says why it may not run.
fn outcome_of(call: &Result<ReadyCall, String>) -> Outcome {
    let began = Instant::now();
    let mut outcome = match call {
        Ok(call) => call.server.call(&call.checked, call.offer.reads),
        Err(reason) => Outcome::without_result(reason),
    };
    outcome.took = began.elapsed();
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;
    use crate::settings::ToolServer;
    use crate::text::table::rows;

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall {
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            ..ToolCall::default()
        }
    }

    #[test]
    fn the_name_of_a_tool_that_is_offered_stays_although_a_word_of_it_is_a_key() {
        let section = ToolServer::parse("db", "command = [\"x\"]");
        let offers =
            ["query", "postgres"].map(|tool| OfferedTool::listed_by(&section, tool, false));
        let secrets = ToolSecrets::default();
        secrets.add_keys(&["sk-test-0123456789", "postgres"].map(Secret::new));
        let table = "
            db__query | db__query | db__query
            db__postgres | db__postgres | db__postgres
            db__sk-test-0123456789 | db__[redacted] | db__redacted
            db__postgres2 | db__[redacted]2 | db__redacted2
        ";
        for [name, shown, sent] in rows(table) {
            for (goal, expected) in [(NameGoal::Shown, shown), (NameGoal::Sent, sent)] {
                let found = redacted_name(name, goal, &offers, &secrets);
                assert_eq!(found, expected, "{name} {goal:?}");
            }
        }
    }

    #[test]
    fn the_arguments_of_calls_are_an_object_and_have_room_together() {
        let not_an_object = "The arguments are not a JSON object: ";
        let left_out = "The arguments of all calls together have more than 4 MB.";
        for (arguments, expected) in [
            ("{}", ""),
            (r#"{"a": [1, {"b": null}]}"#, ""),
            ("", not_an_object),
            ("[]", not_an_object),
            ("null", not_an_object),
            (r#"{"a": 1"#, not_an_object),
            (r#"{"a": 1} {}"#, not_an_object),
            (LEFT_OUT, left_out),
            (UNJOINED, "The arguments came in pieces"),
        ] {
            let found = arguments_of(&call("a", arguments), &mut MAX_ARGUMENTS_WEIGHT.clone());
            let reason = found.err().unwrap_or_default();
            assert!(reason.starts_with(expected), "{arguments}: {reason}");
            assert_eq!(
                reason.is_empty(),
                expected.is_empty(),
                "{arguments}: {reason}"
            );
        }
        let arguments = r#"{"a": [1, 2, 3]}"#;
        let mut room = json::weight(arguments) * 2;
        let mut fits = || arguments_of(&call("a", arguments), &mut room).is_ok();
        assert_eq!([fits(), fits(), fits()], [true, true, false]);
    }

    #[test]
    fn images_that_are_left_out_are_counted_in_words() {
        let limit = "the limit of images in base64 is 5 MB each, and 7 MB together";
        for (count, images) in [(1, "an image is"), (2, "2 images are")] {
            let expected = format!("{images} too large and not sent: {limit}");
            assert_eq!(too_large(count), expected);
        }
    }
}
