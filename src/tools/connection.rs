//! A conversation with a tool server, from its start to its last call.

use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::about::ServerInfo;
use super::bounds::Bounds;
use super::commands::Commands;
use super::events::{Arrival, EventReceiver, event_queue};
use super::failure::{Evidence, Failure, FailureCause};
use super::groups::ProcessGroups;
use super::http::{Http, Site};
use super::input::Input;
use super::line_reader::LineReader;
use super::lines::{ReportLine, WrittenLine};
use super::outcome::Outcome;
use super::process::Process;
use super::program::Program;
use super::protocol::{Protocol, ServerEvent, Strays};
use super::revision::{self, Handshake, HandshakeRefusal, Revision};
use super::rpc::{self, Id, RpcAnswer, RpcError, RpcRefusal};
use super::tool_list::ToolList;
use crate::server::retry::Attempts;
use crate::settings::ToolServer;
use crate::text::size::{in_seconds, in_units};
use crate::text::{json, surrogates};
use crate::threads::lock;

/// How often to check whether a silent program still runs.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How long the last lines of a program that has ended may be on their way, on a busy machine. They end with its output, unless
/// something that it has started holds that open.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The longest time to list changed tools in, within a question. One that needs longer is asked in vain once.
const LIST_AGAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The most bytes that a server may say of itself and its tools, all pages together, and the most memory, by an estimate,
/// that these values may take.
const MAX_LISTED: usize = 1_000_000;
const MAX_LISTED_WEIGHT: usize = json::MAX_WEIGHT;

/// The program, server or commands that calls go to.
pub enum Callee {
    Local(Program),
    Remote(Arc<Site>),
    /// Each is a tool, and starts when it is called.
    Commands(Commands),
}

impl Callee {
    /// Whether there is nothing to wait for until its tools are known.
    pub fn needs_no_start(&self) -> bool {
        matches!(self, Callee::Commands(commands) if commands.about.is_none())
    }

    /// Whether it is a server, which introduces itself, and gets its calls one after another. Commands do neither.
    pub fn is_server(&self) -> bool {
        !matches!(self, Callee::Commands(_))
    }

    /// Returns the program that runs before its tools are known.
    pub fn program_at_start(&self) -> Option<&Program> {
        match self {
            Callee::Local(program) => Some(program),
            Callee::Remote(_) => None,
            Callee::Commands(commands) => commands.about.as_ref(),
        }
    }

    /// Returns what the kernel lets a tool do; `None` if it is not confined.
    pub fn bounds(&self, tool: &str) -> Option<&Bounds> {
        let program = match self {
            Callee::Local(program) => program,
            Callee::Remote(_) => return None,
            Callee::Commands(commands) => commands.program(tool)?,
        };
        program.confined.as_ref().map(|confined| &confined.bounds)
    }
}

/// A conversation with a server. A thread reads what the server sends, and passes it on as events.
pub struct Connection {
    protocol: Arc<Mutex<Protocol>>,
    transport: Transport,
    events: EventReceiver,
    /// How long the next answer may take.
    timeout: Option<Duration>,
    /// Until when q waits for it.
    deadline: Option<Instant>,
    /// What the server has said of itself and its tools so far.
    listed: ListedSize,
}

/// How much a server has said of itself and its tools.
#[derive(Default)]
struct ListedSize {
    bytes: usize,
    /// The memory that the values take, by an estimate.
    weight: usize,
}

/// A server's answer to a request that has to be answered before it can be used.
enum StartAnswer {
    Accepted(Value),
    Refused(RpcRefusal),
}

enum Transport {
    Local(Process),
    Remote(Http),
}

impl Connection {
    /// Starts or reaches a server, and lists its tools. One that rejects the handshake is asked without one. Some programs end
    /// at the handshake, so they are started again for that.
    pub fn open(
        section: &ToolServer,
        callee: &Callee,
        groups: &ProcessGroups,
        report: &ReportLine,
    ) -> Result<(Connection, ServerInfo), Failure> {
        let deadline = after(section.rules.start);
        let begin = || Connection::begin(section, callee, deadline, groups, report);
        let mut connection = begin()?;
        let mut handshake = connection.shake_hands(section)?;
        let mut other = None;
        if let Handshake::Refused(HandshakeRefusal::Said(words)) = &handshake {
            other = revision::other_revision(connection.protocol().offered, words);
        }
        if let Some(other) = other {
            handshake = connection.offer(other, section, &begin, handshake)?;
        }
        let introduction = match handshake {
            Handshake::Agreed(introduction) => {
                connection.end_handshake()?;
                introduction
            }
            Handshake::Refused(refusal) => {
                let mut discovered = connection.discover(section);
                if matches!(&discovered, Err(failure) if failure.has_ended_server) {
                    connection = begin()?;
                    discovered = connection.discover(section);
                }
                // The refusal says more than how the server failed after it.
                discovered.map_err(|failure| Failure {
                    cause: FailureCause::ServerDid(refusal.explain()),
                    advice: None,
                    ..failure
                })?
            }
        };
        let mut about = connection.read_offer(section, &introduction);
        if about.is_err() && connection.has_lost_session() {
            // A list may be asked for again.
            let renewed = connection.renew_session(section)?;
            about = connection.read_offer(section, &renewed);
        }
        Ok((connection, about?))
    }

    /// Begins the conversation once more, with another revision, after a server has refused the first. A program that ended with
    /// its refusal is started again. A second refusal says no more than the first.
    fn offer(
        &mut self,
        revision: &'static str,
        section: &ToolServer,
        begin: &dyn Fn() -> Result<Connection, Failure>,
        refused: Handshake,
    ) -> Result<Handshake, Failure> {
        self.protocol().offered = revision;
        let mut handshake = self.shake_hands(section);
        if matches!(&handshake, Err(failure) if failure.has_ended_server) {
            *self = begin()?;
            self.protocol().offered = revision;
            handshake = self.shake_hands(section);
        }
        match handshake {
            Ok(Handshake::Refused(_)) => Ok(refused),
            Err(failure) if failure.has_ended_server => Ok(refused),
            other => other,
        }
    }

    /// Begins a conversation.
    fn shake_hands(&mut self, section: &ToolServer) -> Result<Handshake, Failure> {
        let handshake = self.protocol().handshake();
        let introduction = match self.ask_at_start(section, "initialize", handshake)? {
            StartAnswer::Accepted(introduction) => introduction,
            StartAnswer::Refused(refusal) => {
                let said = HandshakeRefusal::Said(refusal.words);
                return Ok(Handshake::Refused(said));
            }
        };
        if let Some(unknown) = revision::unknown_version(&introduction) {
            return Err(self.failure(unknown));
        }
        Ok(self.protocol().agree(introduction))
    }

    /// Whether the server has said that its tools are others than those that it has listed.
    pub fn has_changed_tools(&self) -> bool {
        self.protocol().has_changed_tools
    }

    /// Lists the tools once more, in a time that nobody minds who waits for an answer.
    pub fn list_again(&mut self, section: &ToolServer) -> Result<ToolList, Failure> {
        self.renew_lost_session(section)?;
        let limit = section
            .rules
            .start
            .map_or(LIST_AGAIN_TIMEOUT, |start| start.min(LIST_AGAIN_TIMEOUT));
        self.limit_time(Some(limit));
        self.listed = ListedSize::default();
        let list = self.list_tools(section)?;
        self.protocol().tools.clone_from(&list.tools);
        Ok(list)
    }

    /// Lets the next answer take this time from now on.
    fn limit_time(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
        self.deadline = after(timeout);
    }

    /// Whether a remote server no longer knows the session.
    fn has_lost_session(&self) -> bool {
        matches!(&self.transport, Transport::Remote(http) if http.has_lost_session())
    }

    /// Begins another session, if a remote server has lost the session of an earlier request.
    fn renew_lost_session(&mut self, section: &ToolServer) -> Result<(), Failure> {
        if self.has_lost_session() {
            self.limit_time(section.rules.start);
            self.renew_session(section)?;
        }
        Ok(())
    }

    /// Begins another session in place of one that a remote server has lost, and returns how the server introduces itself.
    /// Nothing that was sent is sent again. After a failure the old one still counts as lost.
    fn renew_session(&mut self, section: &ToolServer) -> Result<Value, Failure> {
        let Transport::Remote(lost) = &self.transport else {
            return Err(self.failure("has no sessions"));
        };
        let mut protocol = Protocol::new(true);
        protocol.tools.clone_from(&self.protocol().tools);
        protocol.offered = self.protocol().offered;
        let protocol = Arc::new(Mutex::new(protocol));
        let (sender, events) = event_queue();
        let http = lost.without_session(&protocol, sender);
        let mut renewed = Connection {
            protocol,
            transport: Transport::Remote(http),
            events,
            timeout: self.timeout,
            deadline: self.deadline,
            listed: ListedSize::default(),
        };
        let introduction = match renewed.shake_hands(section)? {
            Handshake::Agreed(introduction) => introduction,
            Handshake::Refused(refusal) => return Err(renewed.failure(refusal.explain())),
        };
        renewed.end_handshake()?;
        // The lost one ends here.
        *self = renewed;
        Ok(introduction)
    }

    /// Says that the handshake is over, and listens to what a remote server sends without being asked.
    fn end_handshake(&self) -> Result<(), Failure> {
        let initialized = rpc::notification("notifications/initialized", json!({}));
        self.send(initialized)?;
        if let Transport::Remote(http) = &self.transport {
            http.listen();
        }
        Ok(())
    }

    /// Asks a server that has introduced itself for its tools, whatever it says of what it can do: some leave them out there. From
    /// then on it counts as started.
    fn read_offer(
        &mut self,
        section: &ToolServer,
        introduction: &Value,
    ) -> Result<ServerInfo, Failure> {
        let revision = self.protocol().revision.name();
        let mut about = ServerInfo::new(revision.unwrap_or_default(), introduction);
        self.list_tools(section)?.replace_in(&mut about);
        if about.tools.is_empty() {
            return Err(self.failure("offers no tools"));
        }
        self.protocol().tools.clone_from(&about.tools);
        if let Transport::Local(process) = &self.transport {
            process.mark_listed();
        }
        Ok(about)
    }

    /// Begins the conversation, and sends nothing yet.
    fn begin(
        section: &ToolServer,
        callee: &Callee,
        deadline: Option<Instant>,
        groups: &ProcessGroups,
        report: &ReportLine,
    ) -> Result<Connection, Failure> {
        let (sender, events) = event_queue();
        let over_http = matches!(callee, Callee::Remote(_));
        let protocol = Arc::new(Mutex::new(Protocol::new(over_http)));
        let transport = match callee {
            Callee::Local(program) => {
                let mut reader = LineReader::new(Arc::clone(&protocol), sender, report);
                let read = move |input: &Input, line: &WrittenLine| reader.take(input, line);
                let process = Process::start(program, groups, read, Arc::clone(report));
                Transport::Local(process.map_err(|error| {
                    // Its arguments may be secret.
                    let what = format!("cannot run {}: {error}", program.name);
                    Failure::new(FailureCause::Happened(what))
                })?)
            }
            Callee::Remote(site) => {
                let http = Http::new(site, &protocol, sender, report);
                Transport::Remote(http)
            }
            Callee::Commands(_) => return Err(Failure::of_server("has commands, and no server")),
        };
        Ok(Connection {
            protocol,
            transport,
            events,
            timeout: section.rules.start,
            deadline,
            listed: ListedSize::default(),
        })
    }

    /// Asks a server that has rejected the handshake what it is in the revision without one.
    fn discover(&mut self, section: &ToolServer) -> Result<Value, Failure> {
        self.protocol().revision = Revision::WithoutHandshake;
        let answer = self.ask_at_start(section, "server/discover", json!({}))?;
        if let StartAnswer::Accepted(discovered) = answer
            && revision::offers_stateless(&discovered)
        {
            return Ok(discovered);
        }
        Err(self.failure("speaks neither revision"))
    }

    fn list_tools(&mut self, section: &ToolServer) -> Result<ToolList, Failure> {
        let mut list = ToolList::default();
        let mut parameters = json!({});
        loop {
            let mut result = match self.ask_at_start(section, "tools/list", parameters)? {
                StartAnswer::Accepted(result) => result,
                // One that has listed tools knows the method.
                StartAnswer::Refused(refusal)
                    if refusal.is_unknown_method() && self.protocol().tools.is_empty() =>
                {
                    return Ok(list);
                }
                StartAnswer::Refused(RpcRefusal { words, .. }) => {
                    return Err(self.failure(format!("refused to list its tools: {words}")));
                }
            };
            let page = result.get_mut("tools").map(Value::take);
            let Some(Value::Array(page)) = page else {
                return Err(self.failure("answered tools/list without a list of tools"));
            };
            let mut next = result["nextCursor"].as_str().map(str::to_owned);
            // In the revisions with a handshake, an empty cursor is how some servers say that there is none.
            if !self.protocol().is_stateless() {
                next = next.filter(|cursor| !cursor.is_empty());
            }
            match list.take_page(page, next, &|tool| section.offers(tool)) {
                Some(cursor) => parameters = json!({"cursor": cursor}),
                None => return Ok(list),
            }
        }
    }

    /// Returns the answer to a request that has to be answered before the server can be used. It calls nothing, so it is sent
    /// again after a failure that may pass.
    fn ask_at_start(
        &mut self,
        section: &ToolServer,
        method: &str,
        parameters: Value,
    ) -> Result<StartAnswer, Failure> {
        let mut attempts = Attempts::default();
        loop {
            let answer = self.ask_once_at_start(section, method, parameters.clone());
            let Err(failure) = &answer else {
                return answer;
            };
            match self.wait_to_retry(failure, &mut attempts) {
                Some(wait) => thread::sleep(wait),
                None => return answer,
            }
        }
    }

    /// Returns how long to wait before a request is sent again after this failure; `None` if it is not, or there is no time.
    fn wait_to_retry(&self, failure: &Failure, attempts: &mut Attempts) -> Option<Duration> {
        let Transport::Remote(http) = &self.transport else {
            return None;
        };
        let wait = attempts.wait_to_retry(failure.retry?.asked, http.retries())?;
        let next = Instant::now().checked_add(wait)?;
        if self.deadline.is_some_and(|deadline| next >= deadline) {
            return None;
        }
        http.report_retry(failure, wait);
        Some(wait)
    }

    fn ask_once_at_start(
        &mut self,
        section: &ToolServer,
        method: &str,
        parameters: Value,
    ) -> Result<StartAnswer, Failure> {
        if let Some(answer) = self.ask(method, parameters)? {
            return match answer {
                Ok(result) => Ok(StartAnswer::Accepted(self.parse_listing(&result.json)?)),
                Err(RpcError::Refused(refusal)) => Ok(StartAnswer::Refused(refusal)),
                Err(RpcError::Unreadable(what)) => Err(self.failure(what)),
            };
        }
        let is_listed = !self.protocol().tools.is_empty();
        let is_again = is_listed && method == "tools/list";
        let goal = if is_again {
            "list its tools again"
        } else if is_listed {
            "begin another session"
        } else {
            "list its tools"
        };
        let edited = section.section_to_edit();
        let limit = in_seconds(self.timeout.unwrap_or_default());
        let advice = format!("try a longer start, such as start = \"2m\" in {edited}");
        let strays = self.protocol().strays.clone();
        let failure = self.failure(format!("did not {goal} within {limit}"));
        let mut failure = self.with_strays(failure, &strays);
        // One that answers otherwise than it should is not slow.
        failure.advice = (!strays.has_json && !is_again).then_some(advice);
        Err(failure)
    }

    /// Adds to a failure what the server has sent instead of an answer.
    fn with_strays(&self, failure: Failure, strays: &Strays) -> Failure {
        if strays.count == 0 {
            return failure;
        }
        let over_http = matches!(self.transport, Transport::Remote(_));
        Failure {
            strays: strays.full_summary(over_http),
            ..failure
        }
    }

    /// Parses what the server says of itself or its tools, unless that is too much.
    fn parse_listing(&mut self, result: &str) -> Result<Value, Failure> {
        self.listed.bytes += result.len();
        if self.listed.bytes > MAX_LISTED {
            return Err(self.failure(format!(
                "lists more than {size}",
                size = in_units(MAX_LISTED)
            )));
        }
        self.listed.weight += json::weight(result);
        if self.listed.weight > MAX_LISTED_WEIGHT {
            return Err(self.failure("lists schemas with too many values"));
        }
        surrogates::lossy(result).map_err(|error| self.failure(rpc::unreadable(&error)))
    }

    /// Returns the outcome of a call, which may take the section's timeout until its answer, or from one report of progress to
    /// the next. If the server has lost the session of an earlier one, another is begun.
    pub fn call(
        &mut self,
        section: &ToolServer,
        tool: &str,
        arguments: &Map<String, Value>,
        reads: bool,
    ) -> Result<Outcome, Failure> {
        self.renew_lost_session(section)?;
        let timeout = section.rules.timeout;
        if let Transport::Local(process) = &mut self.transport
            && !reads
        {
            process.expect_changes();
        }
        self.limit_time(timeout);
        let mut parameters = json!({"name": tool});
        parameters["arguments"] = Value::Object(arguments.clone());
        if let Some(answer) = self.ask("tools/call", parameters)? {
            return Ok(Outcome::read(answer));
        }
        let cancellation = self.protocol().give_up();
        if let Some(cancellation) = cancellation {
            self.send(cancellation)?;
        }
        let limit = in_seconds(timeout.unwrap_or_default());
        let over_http = matches!(self.transport, Transport::Remote(_));
        let strays = self.protocol().strays.summary("the server", over_http);
        Ok(Outcome::without_result(format!(
            "no answer within {limit}{strays}"
        )))
    }

    /// Sends a request, and waits for its answer; `None` if that takes too long.
    fn ask(&mut self, method: &str, parameters: Value) -> Result<Option<RpcAnswer>, Failure> {
        let (id, request) = self.protocol().request(method, parameters);
        self.send(request)?;
        while let Some(arrival) = self.next()? {
            if arrival == Arrival::Event(ServerEvent::Progress) && method == "tools/call" {
                self.limit_time(self.timeout);
            }
            if let Some(outcome) = outcome_of(id, arrival) {
                return outcome.map(Some);
            }
        }
        Ok(None)
    }

    /// Returns why the server was ended since the last call.
    pub fn failed(&self) -> Option<Failure> {
        self.events.failed()
    }

    fn send(&self, message: Value) -> Result<(), Failure> {
        match &self.transport {
            Transport::Local(process) if !process.send(format!("{message}\n")) => Err(Failure {
                has_ended_server: true,
                ..self.failure("does not read what it is sent")
            }),
            Transport::Local(_) => Ok(()),
            Transport::Remote(http) => http.send(message, self.timeout),
        }
    }

    /// Returns what the server sends next; `None` if that takes too long. What has arrived counts even after the deadline. A
    /// program that has ended is gone, even if something that it started holds its output open.
    fn next(&mut self) -> Result<Option<Arrival>, Failure> {
        let mut has_ended = false;
        loop {
            // Its last lines may still be on their way.
            let mut wait = if has_ended { LAST_LINES } else { POLL_INTERVAL };
            if let Some(deadline) = self.deadline {
                wait = wait.min(deadline.saturating_duration_since(Instant::now()));
            }
            match self.events.next(wait) {
                Ok(received) => return received.map(Some),
                Err(RecvTimeoutError::Timeout) if !has_ended => (),
                Err(_) => return Err(self.output_closed()),
            }
            if let Transport::Local(process) = &mut self.transport {
                has_ended = process.has_ended();
            }
            if wait < POLL_INTERVAL && !has_ended {
                return Ok(None);
            }
        }
    }

    /// Ends a program that has closed its output, and says how it failed.
    fn output_closed(&mut self) -> Failure {
        let mut what = "closed its output".to_owned();
        // A program that ends closes its output a moment before it is gone.
        if let Transport::Local(process) = &mut self.transport
            && let Some(status) = process.end_after(POLL_INTERVAL)
        {
            what = format!("ended by itself ({status})");
        }
        let mut lines = self.lines();
        if lines.is_empty() {
            // Many programs say on standard output why they cannot start. Their messages say nothing of that.
            let protocol = self.protocol();
            let strays = protocol.strays.kept.iter();
            lines.extend(strays.filter(|line| !line.contains("\"jsonrpc\"")).cloned());
        }
        Failure {
            has_ended_server: true,
            ..self.failure_with(FailureCause::ServerDid(what), &lines)
        }
    }

    /// Returns the failure of the server by what it does or did, to follow its name, with its last lines or its address.
    fn failure(&self, what: impl Into<String>) -> Failure {
        self.failure_with(FailureCause::ServerDid(what.into()), &self.lines())
    }

    /// Returns the last lines of a program's standard error.
    fn lines(&self) -> Vec<String> {
        match &self.transport {
            Transport::Local(process) => process.lines(),
            Transport::Remote(_) => Vec::new(),
        }
    }

    fn failure_with(&self, cause: FailureCause, lines: &[String]) -> Failure {
        if let Transport::Remote(http) = &self.transport {
            return http.failure(cause);
        }
        Failure {
            evidence: Evidence::of_lines(lines),
            ..Failure::new(cause)
        }
    }

    /// Ends the server. A session over HTTP ends when it is dropped.
    pub fn end(mut self) {
        if let Transport::Local(process) = &mut self.transport {
            process.end();
        }
    }

    fn protocol(&self) -> MutexGuard<'_, Protocol> {
        lock(&self.protocol)
    }
}

/// Ends a session over HTTP. A program is asked to end when its [`Process`] is dropped.
impl Drop for Connection {
    fn drop(&mut self) {
        if let Transport::Remote(http) = &self.transport {
            http.end();
        }
    }
}

/// Returns the outcome of a request, if this arrival is about it and not about an earlier one that q has given up.
fn outcome_of(request: Id, arrival: Arrival) -> Option<Result<RpcAnswer, Failure>> {
    match arrival {
        Arrival::Event(ServerEvent::RpcAnswer(id, answer)) if id == request => Some(Ok(answer)),
        Arrival::Failed(id, failure) if id == request => Some(Err(failure)),
        _ => None,
    }
}

fn after(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_of_an_earlier_request_is_not_taken_for_that_of_this_one() {
        let refusal = Err(RpcError::Unreadable("sent nonsense".to_owned()));
        let answer = |id| Arrival::Event(ServerEvent::RpcAnswer(id, refusal.clone()));
        let failed = |id| Arrival::Failed(id, Failure::of_server("broke"));
        for (arrival, expected) in [
            (answer(2), Some(Ok(refusal.clone()))),
            (failed(2), Some(Err(Failure::of_server("broke")))),
            (answer(1), None),
            (failed(1), None),
            (Arrival::Event(ServerEvent::Progress), None),
        ] {
            assert_eq!(outcome_of(2, arrival), expected);
        }
    }
}
