//! The tools of one question: each call is checked, allowed and run, and its result goes to the model.

use std::sync::{Arc, Mutex};

use serde_json::{Map, Value};

use super::batch::{self, ReadyCall};
use super::connection::Callee;
use super::consent::Consent;
use super::offers::Offer;
use super::outcome::Outcome;
use super::server::Server;
use super::servers::Servers;
use crate::error::{Error, ErrorKind};
use crate::message::{
    Attachment, LEFT_OUT, MAX_ATTACHMENT, MAX_ATTACHMENTS, MAX_RESULT, MAX_RESULTS, Tool, ToolCall,
    ToolRun, shortened,
};
use crate::output::Notes;
use crate::provider::tool_schema::{self, RefusedTool, ToolSchemas};
use crate::secret::Secret;
use crate::text::json;
use crate::text::one_line::on_one_line;
use crate::threads::lock;

/// The most calls of one reply that run.
pub const MAX_CALLS: usize = 32;

/// The most bytes of one complete result, and of those of a question together.
const MAX_COMPLETE: usize = 1_000_000;
const MAX_ALL_COMPLETE: usize = 4_000_000;

/// The most bytes of the arguments of all calls of a question, and the most memory, by an estimate, that those of the calls
/// that run side by side may take.
pub const MAX_ARGUMENTS: usize = 4_000_000;
const MAX_ARGUMENTS_WEIGHT: usize = 8_000_000;

/// Keeps what has come of calls while they run.
pub trait Observer: Sync {
    /// These calls are about to run. From here on, they may have an effect.
    fn started(&self, calls: &[&ToolCall]);
    /// One of them has ended.
    fn ended(&self, run: ToolRun);
}

/// The tools that a question may use.
pub struct Toolbox {
    servers: Servers,
    /// The tools offered to the model, sorted by name, as are `offers`.
    pub tools: Vec<Tool>,
    offers: Vec<Offer>,
    /// What the servers want the model to know, in fences that name them.
    pub instructions: String,
    consent: Consent,
    /// A call has run.
    has_called: bool,
    /// How many more bytes of results the model may get.
    room: usize,
    /// How many more bytes of complete results are kept.
    room_for_complete: usize,
    /// How many more bytes of images in base64 are allowed.
    room_for_images: usize,
}

impl Toolbox {
    /// The offers are sorted by name.
    pub(super) fn new(
        servers: Servers,
        offers: Vec<Offer>,
        instructions: String,
        consent: Consent,
    ) -> Toolbox {
        Toolbox {
            servers,
            tools: offers.iter().map(|offer| offer.shown.clone()).collect(),
            offers,
            instructions,
            consent,
            has_called: false,
            room: MAX_RESULTS,
            room_for_complete: MAX_ALL_COMPLETE,
            room_for_images: MAX_ATTACHMENTS,
        }
    }

    /// Leaves out the tools that an API would refuse, with a note for each, and completes the schemas of the others.
    pub fn fit(
        &mut self,
        accepted: ToolSchemas,
        provider: &str,
        notes: &Notes,
    ) -> Result<(), Error> {
        let (tools, refused) = tool_schema::fit(&self.tools, accepted);
        for RefusedTool { name, argument } in &refused {
            let argument = on_one_line(argument);
            notes.note(&format!(
                "{name} is left out: {provider} refuses tools with an argument named “{argument}”"
            ));
            self.offers.retain(|offer| offer.shown.name != *name);
        }
        if tools.is_empty() && !refused.is_empty() {
            let message = format!("{provider} takes none of the tools");
            let error = Error::new(ErrorKind::Tools, message);
            return Err(error.advise("ask another provider with -p, or without tools: -t none"));
        }
        self.tools = tools;
        Ok(())
    }

    /// What to do about a tool that an API refuses.
    pub fn leave_out_advice(&self, place: usize) -> Option<String> {
        let Offer { tool, server, .. } = self.offers.get(place)?;
        let section = &self.servers.sources.get(*server)?.section.name;
        Some(format!(
            "it refuses the tool {}: only = [...] in [tools.{section}] can leave it out",
            on_one_line(tool)
        ))
    }

    /// From now on, neither the model nor the user gets this key.
    pub fn hide(&mut self, key: &Secret) {
        self.servers.secrets.add_keys(std::slice::from_ref(key));
    }

    /// Ends the servers, and waits until they have ended. If the question has failed before any call, they are only asked to
    /// end, for `main` waits a moment for them.
    pub fn end(mut self, has_answer: bool) {
        if has_answer || self.has_called {
            self.servers.end();
        }
    }

    /// Refuses a call after too many in one reply.
    pub fn refuse(call: &ToolCall) -> ToolRun {
        let result = format!("The call was refused: at most {MAX_CALLS} calls of one reply run.");
        ToolRun {
            no_result: true,
            ..ToolRun::new(call, result, true)
        }
    }

    /// How many of these calls, from the first on, run side by side: as long as they only read. At least one.
    pub fn batch_of(&mut self, calls: &[ToolCall], notes: &Notes) -> usize {
        let mut reads = |call: &&ToolCall| {
            let found = self.find(call, notes);
            found.is_ok_and(|(offer, _)| offer.reads)
        };
        calls.iter().take_while(|call| reads(call)).count().max(1)
    }

    /// Runs calls side by side, if they may run, and returns a run for each. If they are `watched`, a line shows each to the
    /// user. `observer` learns which of them run, and what has come of each if q must end before the others have ended.
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
            notes.spinner().wait_for(&waiting);
        }
        // What does not fit is dropped at once, not when all have ended.
        let this = Mutex::new(self);
        let on_end = |place: usize, outcome: Outcome| {
            let run = lock(&this).result(&calls[place], outcome, notes);
            observer.ended(run.clone());
            run
        };
        let runs = batch::run(&prepared, &on_end);
        notes.spinner().stop();
        runs
    }

    /// The result of a call within the limits, without keys.
    fn result(&mut self, call: &ToolCall, mut outcome: Outcome, notes: &Notes) -> ToolRun {
        let secrets = &self.servers.secrets;
        if let Some(error) = outcome.server_failed.take() {
            notes.note_error(&secrets.redact_error(error));
        }
        let mut text = secrets.redact_for_model(&outcome.text);
        text += &secrets.redact_for_model(&outcome.remarks);
        let is_error = outcome.is_error;
        let what = if is_error { "an error" } else { "a result" };
        let bytes = text.len();
        let seconds = outcome.took.as_secs_f64();
        let name = &call.name;
        notes.detail(|| format!("{name}: {what} of {bytes} bytes after {seconds:.3} s"));
        let result = shortened(&text, MAX_RESULT.min(self.room));
        self.room = self.room.saturating_sub(result.len());
        let complete = shortened(&text, MAX_COMPLETE.min(self.room_for_complete));
        self.room_for_complete = self.room_for_complete.saturating_sub(complete.len());
        let is_whole = complete.strip_prefix(&outcome.text) == Some(&outcome.remarks);
        let changed = outcome.is_changed || !is_whole;
        ToolRun {
            images: self.fitting(outcome.images),
            changed,
            no_result: outcome.no_result,
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

    /// Reports servers that could not be started or were ended, and keeps the lists of those that have started meanwhile.
    pub fn report_servers(&mut self, notes: &Notes) {
        self.servers.receive(|_| false, notes);
        self.servers.report_failures(notes);
    }

    /// The tool that a call means, as its server lists it now, and this server. The error is for the model.
    fn find(&mut self, call: &ToolCall, notes: &Notes) -> Result<(Offer, Arc<Server>), String> {
        let name = &call.name;
        let mut offers = self.offers.iter();
        let Some(offer) = offers.find(|offer| offer.shown.name == *name) else {
            return Err(format!("There is no tool {name}."));
        };
        let server = self.servers.wait_for(offer.server, notes)?;
        let mut tools = server.about.tools.iter();
        let Some(tool) = tools.find(|tool| tool.name == offer.tool) else {
            return Err(format!("The server no longer has the tool {name}."));
        };
        let mut now = Offer::new(offer.server, &server.section, tool);
        now.shown.name.clone_from(name);
        Ok((now, server))
    }

    /// Checks a call, whose arguments may take this much memory. The error is for the model.
    fn checked(
        &mut self,
        call: &ToolCall,
        room: &mut usize,
        notes: &Notes,
    ) -> Result<ReadyCall, String> {
        let (offer, server) = self.find(call, notes)?;
        let arguments = arguments_of(call, room)?;
        if let Callee::Commands(commands) = &server.callee {
            commands.fill(&offer.tool, &arguments)?;
        }
        Ok(ReadyCall {
            offer,
            server,
            arguments,
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
                let line = format!("{name} did not run: {reason}");
                let shown = self.servers.secrets.redact_for_user(&line);
                notes.note(&shortened_line(&shown));
            }
        })?;
        let section = &ready.server.section;
        let consent = &mut self.consent;
        let is_on_screen = consent.ask(&ready.offer, section, &ready.arguments, notes)?;
        let arguments = serde_json::to_string(&ready.arguments).unwrap_or_default();
        let line = format!("{name} {arguments}");
        let line = self.servers.secrets.redact_for_user(&line);
        if watched && !is_on_screen {
            notes.note(&shortened_line(&line));
        } else if !is_on_screen {
            notes.detail(|| line);
        }
        Ok(ready)
    }
}

/// The arguments of a call as an object, if they take no more memory than there is `room`. The error is for the model.
fn arguments_of(call: &ToolCall, room: &mut usize) -> Result<Map<String, Value>, String> {
    let text = &call.arguments;
    if text == LEFT_OUT {
        return Err(format!(
            "The arguments of all calls together have more than {MAX_ARGUMENTS} bytes."
        ));
    }
    let weight = json::weight(text);
    if weight > *room {
        return Err("The arguments have too many values.".to_owned());
    }
    *room -= weight;
    serde_json::from_str(text)
        .map_err(|error| format!("The arguments are not a JSON object: {error}."))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupts;
    use crate::output::Spinner;
    use crate::settings::Environment;
    use crate::tools::process::Groups;
    use crate::tools::secrets::ToolSecrets;

    #[test]
    fn images_of_results_have_a_limit_together() {
        let servers = Servers {
            sources: Vec::new(),
            groups: Groups::default(),
            secrets: ToolSecrets::default(),
        };
        let consent = Consent::new(
            false,
            Environment::default(),
            Interrupts::new(&Spinner::default()),
        );
        let mut toolbox = Toolbox::new(servers, Vec::new(), String::new(), consent);
        let image = |size| Attachment {
            data: "x".repeat(size).into(),
            ..Attachment::default()
        };
        let mut kept = |size| toolbox.fitting(vec![image(size)]).len();
        assert_eq!(kept(MAX_ATTACHMENT + 1), 0);
        assert_eq!(kept(MAX_ATTACHMENT), 1);
        let rest = MAX_ATTACHMENTS - MAX_ATTACHMENT;
        assert_eq!([kept(rest + 1), kept(rest), kept(1)], [0, 1, 0]);
    }
}
