//! The tools of one question: each call is checked, allowed and run, and its result goes to the model.

use std::time::Instant;

use serde_json::{Map, Value};

use super::consent::{Asked, Consent};
use super::result::{self, Outcome};
use super::server::Servers;
use crate::message::{Call, Ran, Tool};
use crate::one_line::on_one_line;
use crate::output::Notes;
use crate::secret::{self, Secret};

/// The most calls of one reply that run.
pub(crate) const MOST_CALLS: usize = 32;

/// The most bytes of one result, and of all results of a question.
const LONGEST_RESULT: usize = 50_000;
const LONGEST_RESULTS: usize = 400_000;

/// The most bytes of the mark for a part left out.
const LONGEST_MARK: usize = 40;

/// The tools that a question may use.
pub(crate) struct Toolbox {
    servers: Servers,
    /// Sorted by name, as are `offers`.
    tools: Vec<Tool>,
    offers: Vec<Offer>,
    consent: Consent,
    /// Values that the model does not get.
    keys: Vec<Secret>,
    /// Values that are not shown.
    secrets: Vec<Secret>,
    /// How many more bytes of results are allowed.
    room: usize,
}

/// A tool of a server.
pub(crate) struct Offer {
    /// The index of its server.
    pub(super) server: usize,
    /// The server's own name for it.
    pub(super) tool: String,
    /// The tool for the model.
    pub(crate) shown: Tool,
    /// Its server says that it changes nothing.
    pub(crate) reads: bool,
    /// It runs without asking.
    pub(crate) allowed: bool,
    /// The setting that would allow it.
    pub(super) setting: String,
}

impl Toolbox {
    /// `offers` are sorted by name; with `yes` every call runs without asking; the model does not get the `keys`, and the
    /// `secrets` are not shown.
    pub(super) fn new(
        servers: Servers,
        offers: Vec<Offer>,
        yes: bool,
        keys: Vec<Secret>,
        secrets: Vec<Secret>,
    ) -> Toolbox {
        let tools = offers.iter().map(|offer| offer.shown.clone()).collect();
        Toolbox { servers, tools, offers, consent: Consent::new(yes), keys, secrets, room: LONGEST_RESULTS }
    }

    /// The tools offered to the model, sorted by name.
    pub(crate) fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Refuses a call after too many in one reply.
    pub(crate) fn refuse(call: &Call) -> Ran {
        let result = format!("The call was refused: at most {MOST_CALLS} calls of one reply run.");
        Ran::new(call, result, true)
    }

    /// Runs a call, if it may run, and calls `runs` just before. `watched`: a person sees each call as a line.
    pub(crate) fn run(&mut self, call: &Call, watched: bool, runs: &dyn Fn(), notes: &Notes) -> Ran {
        let began = Instant::now();
        let outcome = self.outcome(call, watched, runs, notes).unwrap_or_else(Outcome::failed);
        let Outcome { text, is_error, server_failed } = outcome;
        notes.spinner().stop();
        if let Some(reason) = server_failed {
            notes.note(&secret::redact(&reason, &self.secrets));
        }
        let text = secret::redact(&text, &self.keys);
        let whole = text.len();
        let most = LONGEST_RESULT.min(self.room);
        let text = if whole <= most { text } else { result::cut(&text, most.saturating_sub(LONGEST_MARK)) };
        self.room = self.room.saturating_sub(text.len());
        notes.detail(|| {
            let what = if is_error { "an error" } else { "a result" };
            format!("{}: {what} of {whole} bytes after {:.3} s", call.name, began.elapsed().as_secs_f64())
        });
        Ran::new(call, text, is_error)
    }

    /// The outcome of a call.
    ///
    /// # Errors
    /// Why it did not run, in words for the model.
    fn outcome(&mut self, call: &Call, watched: bool, runs: &dyn Fn(), notes: &Notes) -> Result<Outcome, String> {
        let there = || self.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ");
        let at = self.tools.iter().position(|tool| tool.name == call.name);
        let at = at.ok_or_else(|| format!("There is no tool {}. There are: {}.", call.name, there()))?;
        let arguments: Map<String, Value> = serde_json::from_str(&call.arguments)
            .map_err(|error| format!("The arguments are not a JSON object: {error}."))?;
        let whole = Value::from(arguments.clone()).to_string();
        let offer = &self.offers[at];
        // The user must see all of it to agree.
        let asked = Asked { name: &call.name, arguments: &whole, allowed: offer.allowed, setting: &offer.setting };
        self.consent.ask(&asked, notes)?;
        let shown = secret::redact(&whole, &self.secrets);
        if watched {
            notes.note(&shortened_line(&format!("{} {shown}", call.name)));
        } else {
            notes.detail(|| format!("{} {shown}", call.name));
        }
        notes.spinner().wait_for(&format!("waiting for {}", call.name));
        runs();
        Ok(self.servers.0[offer.server].call(&offer.tool, &arguments))
    }
}

/// The beginning of a text, on one line.
fn shortened_line(text: &str) -> String {
    const LONGEST: usize = 200;
    let line = on_one_line(text);
    match line.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
