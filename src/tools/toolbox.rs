//! The tools of one question: each call is checked, allowed and run, and its result goes to the model.

use std::time::Instant;

use serde_json::{Map, Value};

use super::consent::{Allowed, Consent};
use super::offers::Offer;
use super::outcome::Outcome;
use super::server::Servers;
use crate::message::{
    Attachment, MAX_ATTACHMENT, MAX_ATTACHMENTS, MAX_RESULT, MAX_RESULTS, Tool, ToolCall, ToolRun,
    shortened,
};
use crate::output::Notes;
use crate::secret::{self, Secret};
use crate::text::fence;
use crate::text::one_line::on_one_line;

/// The most calls of one reply that run.
pub const MAX_CALLS: usize = 32;

/// The most bytes of a server's instructions, and of what a command of the user's says about others.
const MAX_INSTRUCTIONS: usize = 4_000;
const MAX_ABOUT: usize = 20_000;

/// The most bytes of one complete result, and of those of a question together.
const MAX_COMPLETE: usize = 1_000_000;
const MAX_ALL_COMPLETE: usize = 4_000_000;

/// What the model should know about a server, or about the commands of a section.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instructions {
    pub server: String,
    pub text: String,
    /// They come from a command of the user's.
    pub is_own: bool,
}

/// The tools that a question may use.
pub struct Toolbox {
    servers: Servers,
    /// Sorted by name, as are `offers`.
    tools: Vec<Tool>,
    offers: Vec<Offer>,
    instructions: String,
    consent: Consent,
    /// Values that the model does not get.
    keys: Vec<Secret>,
    /// Values that are not shown.
    secrets: Vec<Secret>,
    /// How many more bytes of results the model may get.
    room: usize,
    /// How many more bytes of complete results are kept.
    room_for_complete: usize,
    /// How many more bytes of images in base64 are allowed.
    room_for_images: usize,
}

impl Toolbox {
    /// The offers are sorted by name. With `yes`, every call runs without
    /// asking. The model does not get the keys, and the secrets are not shown.
    pub(super) fn new(
        servers: Servers,
        offers: Vec<Offer>,
        instructions: &[Instructions],
        yes: bool,
        keys: Vec<Secret>,
        secrets: Vec<Secret>,
    ) -> Toolbox {
        let mut tools = Vec::new();
        for offer in &offers {
            tools.push(offer.shown.clone());
        }
        let mut fences = Vec::new();
        for Instructions {
            server,
            text,
            is_own,
        } in instructions
        {
            if !text.trim().is_empty() {
                let most = if *is_own { MAX_ABOUT } else { MAX_INSTRUCTIONS };
                let text = shortened(&secret::redact(text, &keys), most);
                fences.push(fence::around_instructions(server, &text));
            }
        }
        Toolbox {
            servers,
            tools,
            offers,
            instructions: fence::join(fences.iter().map(String::as_str)),
            consent: Consent::new(yes),
            keys,
            secrets,
            room: MAX_RESULTS,
            room_for_complete: MAX_ALL_COMPLETE,
            room_for_images: MAX_ATTACHMENTS,
        }
    }

    /// What the servers want the model to know, in fences that name them.
    pub fn instructions(&self) -> &str {
        &self.instructions
    }

    /// The tools offered to the model, sorted by name.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Refuses a call after too many in one reply.
    pub fn refuse(call: &ToolCall) -> ToolRun {
        let result = format!("The call was refused: at most {MAX_CALLS} calls of one reply run.");
        ToolRun::new(call, result, true)
    }

    /// Runs a call if it may run, and calls `runs` just before that. If it is `watched`, a line shows it to the user.
    pub fn run(
        &mut self,
        call: &ToolCall,
        watched: bool,
        runs: &dyn Fn(),
        notes: &Notes,
    ) -> ToolRun {
        let began = Instant::now();
        let outcome = match self.outcome(call, watched, runs, notes) {
            Ok(outcome) => outcome,
            Err(reason) => Outcome::failed(reason),
        };
        notes.spinner().stop();
        if let Some(reason) = outcome.server_failed {
            notes.note(&secret::redact(&reason, &self.secrets));
        }
        let text = secret::redact(&outcome.text, &self.keys);
        let is_error = outcome.is_error;
        notes.detail(|| {
            let what = if is_error { "an error" } else { "a result" };
            let bytes = text.len();
            let seconds = began.elapsed().as_secs_f64();
            format!(
                "{}: {what} of {bytes} bytes after {seconds:.3} s",
                call.name
            )
        });
        let result = shortened(&text, MAX_RESULT.min(self.room));
        self.room = self.room.saturating_sub(result.len());
        let complete = shortened(&text, MAX_COMPLETE.min(self.room_for_complete));
        self.room_for_complete = self.room_for_complete.saturating_sub(complete.len());
        ToolRun {
            images: self.fitting(outcome.images),
            changed: outcome.is_changed || complete != outcome.text,
            complete: Some(complete),
            ..ToolRun::new(call, result, is_error)
        }
    }

    /// The images that are small enough, alone and together with the earlier ones.
    fn fitting(&mut self, mut images: Vec<Attachment>) -> Vec<Attachment> {
        images.retain(|image| {
            let size = image.data.len();
            let fits = size <= MAX_ATTACHMENT.min(self.room_for_images);
            if fits {
                self.room_for_images -= size;
            }
            fits
        });
        images
    }

    /// The index of the tool that a call means, and its arguments. The error is for the model.
    fn checked(&self, call: &ToolCall) -> Result<(usize, Map<String, Value>), String> {
        let name = &call.name;
        let Some(at) = self.tools.iter().position(|tool| tool.name == *name) else {
            let mut names = Vec::new();
            for tool in &self.tools {
                names.push(tool.name.as_str());
            }
            let names = names.join(", ");
            return Err(format!("There is no tool {name}. The tools are: {names}."));
        };
        let arguments: Map<String, Value> = serde_json::from_str(&call.arguments)
            .map_err(|error| format!("The arguments are not a JSON object: {error}."))?;
        let offer = &self.offers[at];
        let server = &self.servers.0[offer.server];
        server.check(&offer.tool, &arguments)?;
        Ok((at, arguments))
    }

    /// The outcome of a call. The error says to the model why the call did not run.
    fn outcome(
        &mut self,
        call: &ToolCall,
        watched: bool,
        runs: &dyn Fn(),
        notes: &Notes,
    ) -> Result<Outcome, String> {
        let (at, arguments) = self.checked(call).inspect_err(|reason| {
            if watched {
                let reason = secret::redact(reason, &self.secrets);
                let line = format!("{} did not run: {reason}", call.name);
                notes.note(&shortened_line(&line));
            }
        })?;
        let written = Value::from(arguments.clone()).to_string();
        let offer = &self.offers[at];
        let server = &mut self.servers.0[offer.server];
        let allowed = self.consent.ask(offer, &arguments, notes)?;
        let shown = secret::redact(&written, &self.secrets);
        if allowed == Allowed::Asked {
            // It is on the screen already.
        } else if watched {
            notes.note(&shortened_line(&format!("{} {shown}", call.name)));
        } else {
            notes.detail(|| format!("{} {shown}", call.name));
        }
        let waiting = format!("waiting for {}", call.name);
        notes.spinner().wait_for(&waiting);
        runs();
        Ok(server.call(&offer.tool, &arguments, offer.reads))
    }
}

/// The beginning of a text, on one line.
fn shortened_line(text: &str) -> String {
    const MAX_LINE: usize = 200;
    let line = on_one_line(text);
    match line.char_indices().nth(MAX_LINE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
