//! A tool server from its start to its last call: what it offers, what it answers, and what happens when it fails.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::process::{self, Groups, Input, LONGEST_LINE, Line, Process, Program, Report};
use super::protocol::{About, Event, Protocol};
use super::result::{self, Outcome};
use crate::error::{Error, Kind};

/// How often to look whether a silent server still runs.
const LOOK: Duration = Duration::from_millis(100);

/// A server as it is configured.
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    pub(crate) name: String,
    /// The program and its arguments; no shell reads them.
    pub(crate) command: Vec<String>,
    /// The whole environment.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: PathBuf,
    /// How long it may take until its tools are listed; `None` is for ever.
    pub(crate) start: Option<Duration>,
    /// How long it may be silent during a call; `None` is for ever.
    pub(crate) timeout: Option<Duration>,
}

/// What q knows about a server that has started.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Started {
    pub(crate) about: About,
    /// The time from its start until its tools were listed.
    pub(crate) took: Duration,
}

/// Why a server cannot continue, and its last lines.
#[derive(Debug)]
struct Failure {
    what: String,
    lines: Vec<String>,
}

impl From<String> for Failure {
    fn from(what: String) -> Failure {
        Failure { what, lines: Vec::new() }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}{}", self.what, quoted(&self.lines))
    }
}

/// A running server. Dropping it ends it.
pub(crate) struct Server {
    spec: Spec,
    groups: Groups,
    report: Report,
    /// None after the server has ended.
    connection: Option<Connection>,
    /// Whether the server has been started a second time.
    is_second: bool,
}

impl Server {
    /// Starts a server and does not wait for it. `report` gets what `-v` shows, each line with the server's name.
    ///
    /// # Errors
    /// `Tools`: its program cannot be run.
    pub(crate) fn start(spec: Spec, groups: &Groups, report: &Report) -> Result<Server, Error> {
        let connection = Connection::open(&spec, groups, report).map_err(|reason| failure(&spec, &reason))?;
        let (groups, report) = (groups.clone(), Arc::clone(report));
        Ok(Server { spec, groups, report, connection: Some(connection), is_second: false })
    }

    /// Waits until the tools are listed; the time counts from the server's start. Call this once.
    ///
    /// # Errors
    /// `Tools`: the server has ended, is too slow, or does not speak the protocol.
    pub(crate) fn wait(&mut self) -> Result<Started, Error> {
        let Some(connection) = &mut self.connection else { return Err(failure(&self.spec, &"has ended")) };
        let started = connection.wait_until_ready(self.spec.start);
        started.map_err(|reason| {
            self.groups.wait_if_closed();
            failure(&self.spec, &reason)
        })
    }

    /// Calls a tool by the server's own name, and returns what the model gets.
    ///
    /// A server that ends is started once more for the next call.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Map<String, Value>) -> Outcome {
        let timeout = self.spec.timeout;
        let outcome = match self.connection() {
            Ok(connection) => connection.call(tool, arguments, timeout),
            Err(reason) => Err(reason),
        };
        outcome.unwrap_or_else(|reason| {
            self.groups.wait_if_closed();
            self.connection = None;
            let name = &self.spec.name;
            // The server's own lines are not for the model: nobody knows what is in them.
            let told = Outcome::failed(format!("the tool's server {name} {}", reason.what));
            Outcome { server_failed: Some(format!("{name}: {reason}")), ..told }
        })
    }

    /// The connection to the server, which is started a second time if it has ended.
    fn connection(&mut self) -> Result<&mut Connection, Failure> {
        if self.connection.as_mut().is_some_and(Connection::has_ended) {
            self.connection = None;
        }
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None if self.is_second => return Err("has failed twice and is not started again".to_owned().into()),
            None => {
                self.is_second = true;
                let mut connection = Connection::open(&self.spec, &self.groups, &self.report)?;
                connection.wait_until_ready(self.spec.start)?;
                connection
            }
        };
        if !connection.is_ready {
            return Err("did not start".to_owned().into());
        }
        Ok(self.connection.insert(connection))
    }
}

/// The servers of one run. Dropping them ends them all at the same time.
#[derive(Default)]
pub(crate) struct Servers(pub(crate) Vec<Server>);

impl Drop for Servers {
    fn drop(&mut self) {
        let running = self.0.iter_mut().filter_map(|server| server.connection.as_mut());
        process::end_all(&mut running.map(|connection| &mut connection.process).collect::<Vec<_>>());
    }
}

/// A process and the conversation with it. The thread that reads drives the conversation, so that a server's own
/// requests are answered while q does something else.
struct Connection {
    process: Process,
    protocol: Arc<Mutex<Protocol>>,
    events: Receiver<Heard>,
    /// When the server wrote its last line.
    heard: Arc<Mutex<Instant>>,
    since: Instant,
    is_ready: bool,
}

/// What a server said, and when.
struct Heard {
    event: Event,
    at: Instant,
}

impl Connection {
    /// Starts the process and begins the conversation.
    fn open(spec: &Spec, groups: &Groups, report: &Report) -> Result<Connection, Failure> {
        let since = Instant::now();
        let (protocol, first_line) = Protocol::open();
        let protocol = Arc::new(Mutex::new(protocol));
        let (sender, events) = mpsc::channel();
        let heard = Arc::new(Mutex::new(since));
        let report = {
            let (report, name) = (Arc::clone(report), spec.name.clone());
            move |text: &str| report(&format!("{name}: {text}"))
        };
        let read = {
            let (protocol, heard, report) = (Arc::clone(&protocol), Arc::clone(&heard), report.clone());
            move |input: &Input, line: Line| {
                *heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
                hear(&line, &protocol, input, &sender, &report);
            }
        };
        let program = Program { command: &spec.command, environment: &spec.env, folder: &spec.cwd };
        let process = Process::start(program, groups, read, report).map_err(|error| cannot_run(spec, &error))?;
        process.send(first_line);
        Ok(Connection { process, protocol, events, heard, since, is_ready: false })
    }

    fn wait_until_ready(&mut self, patience: Option<Duration>) -> Result<Started, Failure> {
        let deadline = after(self.since, patience);
        loop {
            match self.next(deadline) {
                Ok(Heard { event: Event::Ready(about), at }) => {
                    self.is_ready = true;
                    return Ok(Started { about, took: at.duration_since(self.since) });
                }
                Ok(Heard { event: Event::Unusable(reason), .. }) => return Err(reason.into()),
                Ok(_) => (),
                Err(RecvTimeoutError::Timeout) => {
                    let what = format!("did not list its tools within {}", seconds(patience));
                    return Err(Failure { what, lines: self.process.last_lines() });
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended("ended before its tools were listed")),
            }
        }
    }

    /// The outcome of a call. An error means that the server cannot continue.
    fn call(
        &mut self,
        tool: &str,
        arguments: &Map<String, Value>,
        patience: Option<Duration>,
    ) -> Result<Outcome, Failure> {
        let (id, line) = self.protocol().call(tool, arguments);
        if !self.process.send(line) {
            return Err(self.ended("does not read what it is sent, and was ended"));
        }
        let sent = Instant::now();
        loop {
            // Any line shows that the server still works.
            let deadline = after(sent.max(self.last_heard()), patience);
            match self.next(deadline) {
                Ok(Heard { event: Event::Answer(answered, answer), .. }) if answered == id => {
                    return Ok(result::read(&answer));
                }
                Ok(_) => (),
                Err(RecvTimeoutError::Timeout) if after(sent.max(self.last_heard()), patience) > deadline => (),
                Err(RecvTimeoutError::Timeout) => {
                    let line = self.protocol().cancel(id);
                    self.process.send(line);
                    return Ok(Outcome::failed(format!("no answer within {}", seconds(patience))));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended("ended during the call")),
            }
        }
    }

    /// The server's next words. Words that have arrived count even after the deadline. A server without a process is
    /// gone, though something that it started may hold its output open.
    fn next(&mut self, deadline: Option<Instant>) -> Result<Heard, RecvTimeoutError> {
        loop {
            let left = deadline.map_or(LOOK, |deadline| deadline.saturating_duration_since(Instant::now()));
            match self.events.recv_timeout(left.min(LOOK)) {
                Err(RecvTimeoutError::Timeout) if self.process.leader_has_ended() => {
                    // Its last lines may still be on their way.
                    let last = self.events.recv_timeout(LOOK);
                    return last.map_err(|_| RecvTimeoutError::Disconnected);
                }
                Err(RecvTimeoutError::Timeout) if left > LOOK || deadline.is_none() => {}
                heard => return heard,
            }
        }
    }

    fn last_heard(&self) -> Instant {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the server has ended, or has closed its output. Words between two calls are dropped.
    fn has_ended(&mut self) -> bool {
        loop {
            match self.events.try_recv() {
                Ok(_) => (),
                Err(error) => return error == TryRecvError::Disconnected || self.process.leader_has_ended(),
            }
        }
    }

    /// How the server failed: the reason, its exit status and its last lines. Nothing of it is left after this.
    fn ended(&mut self, words: &str) -> Failure {
        let status = self.process.end().map(|status| format!(" ({})", status_words(status))).unwrap_or_default();
        Failure { what: format!("{words}{status}"), lines: self.process.last_lines() }
    }

    fn protocol(&self) -> MutexGuard<'_, Protocol> {
        self.protocol.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handles a line that the server wrote.
fn hear(line: &Line, protocol: &Mutex<Protocol>, input: &Input, heard: &mpsc::Sender<Heard>, report: &impl Fn(&str)) {
    let events = {
        let mut protocol = protocol.lock().unwrap_or_else(PoisonError::into_inner);
        if line.is_cut { protocol.receive_too_long(LONGEST_LINE) } else { protocol.receive(&line.bytes) }
    };
    for event in events {
        match event {
            // A server that does not read gets no answers to its own requests.
            Event::Send(line) => _ = input.send(line),
            Event::Detail(text) => report(&text),
            event => _ = heard.send(Heard { event, at: Instant::now() }),
        }
    }
}

fn failure(spec: &Spec, reason: &impl std::fmt::Display) -> Error {
    Error::new(Kind::Tools, format!("{}: {reason}", spec.name))
}

/// Why a program cannot be run. The system does not say whether the program or its folder is missing.
fn cannot_run(spec: &Spec, error: &std::io::Error) -> String {
    if !spec.cwd.is_dir() {
        return format!("there is no folder {}", spec.cwd.display());
    }
    format!("cannot run {}: {error}", spec.command.first().map_or("an empty command", String::as_str))
}

fn after(start: Instant, patience: Option<Duration>) -> Option<Instant> {
    patience.and_then(|patience| start.checked_add(patience))
}

fn seconds(time: Option<Duration>) -> String {
    format!("{} s", time.unwrap_or_default().as_secs_f64())
}

fn status_words(status: ExitStatus) -> String {
    status.to_string().replace(": ", " ")
}

/// Lines after a reason: a single line continues it, several go below it.
fn quoted(lines: &[String]) -> String {
    match lines {
        [] => String::new(),
        [line] => format!(": {line}"),
        lines => lines.iter().fold(":".to_owned(), |mut text, line| {
            let _ = write!(text, "\n{line}");
            text
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a scripted server does before its tools are listed, and the first number of a call, which is 3.
    const START: &str = r#"
        say() { printf '%s\n' "$1"; }
        answer() { say "{\"jsonrpc\":\"2.0\",\"id\":$1,\"result\":$2}"; }
        text() { answer $1 "{\"content\":[{\"type\":\"text\",\"text\":\"$2\"}]}"; }
        read -r initialize
        answer 1 '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"N","version":"1"}}'
        read -r initialized
        read -r list
        answer 2 '{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}'
    "#;

    fn spec(script: &str) -> Spec {
        Spec {
            name: "db".to_owned(),
            command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            cwd: "/".into(),
            start: Some(Duration::from_secs(60)),
            timeout: Some(Duration::from_secs(60)),
        }
    }

    fn silent() -> Report {
        Arc::new(|_: &str| ())
    }

    /// A server that has listed its tools and then does what the script says.
    fn started(script: &str) -> Server {
        let mut server = start(spec(&format!("{START}{script}")));
        server.wait().expect("tools");
        server
    }

    fn start(spec: Spec) -> Server {
        Server::start(spec, &Groups::default(), &silent()).expect("a process")
    }

    /// What the model learns about a server that cannot continue, and what only the user learns.
    fn failed(what: &str, lines: &str) -> Outcome {
        let server_failed = Some(format!("db: {what}{lines}"));
        Outcome { text: format!("the tool's server db {what}"), is_error: true, server_failed }
    }

    /// Calls a tool with arguments in JSON.
    fn call(server: &mut Server, arguments: &str) -> Outcome {
        server.call("a", &serde_json::from_str(arguments).expect("an object"))
    }

    fn told(text: &str, is_error: bool) -> Outcome {
        Outcome { text: text.to_owned(), is_error, server_failed: None }
    }

    #[test]
    fn a_server_says_what_it_offers() {
        let mut server = start(spec(START));
        let started = server.wait().expect("tools");
        assert_eq!((&*started.about.name, &*started.about.version, &*started.about.protocol), ("N", "1", "2025-06-18"));
        assert_eq!(started.about.tools.len(), 1);
        assert!(started.took > Duration::ZERO);
    }

    #[test]
    fn a_tool_is_called_and_answers() {
        let mut server = started("read -r call; text 3 ok; read -r call; say \"$call\" >&2; text 4 again; read -r end");
        assert_eq!(call(&mut server, r#"{ "x": 1 }"#), told("ok", false));
        assert_eq!(call(&mut server, "{}"), told("again", false));
        let connection = server.connection.as_mut().expect("a connection");
        connection.process.end();
        let call = connection.process.last_lines().concat();
        assert!(call.contains(r#""method":"tools/call""#) && call.contains(r#""arguments":{}"#), "{call}");
    }

    #[test]
    fn details_are_reported_with_the_name_of_the_server() {
        let (sender, details) = mpsc::channel();
        let report: Report = Arc::new(move |text: &str| _ = sender.send(text.to_owned()));
        let log = r#"say '{"method":"notifications/message","params":{"level":"info","data":"logged"}}'"#;
        let script = format!("echo problem >&2; echo noise; {START} {log}; read -r end");
        let mut server = Server::start(spec(&script), &Groups::default(), &report).expect("a process");
        server.wait().expect("tools");
        drop((server, report));
        let mut details: Vec<String> = details.iter().collect();
        details.sort();
        let noise = "db: wrote a line that is not a message: noise";
        assert_eq!(details, ["db: info: logged", "db: problem", noise]);
    }

    #[test]
    fn a_program_that_cannot_be_run_is_named() {
        let error = |spec: Spec| match Server::start(spec, &Groups::default(), &silent()) {
            Ok(_) => panic!("a process"),
            Err(error) => error.message,
        };
        let missing = error(Spec { command: vec!["/no/such".to_owned()], ..spec("") });
        assert_eq!(missing, "db: cannot run /no/such: No such file or directory (os error 2)");
        assert_eq!(error(Spec { cwd: "/no/such".into(), ..spec("") }), "db: there is no folder /no/such");
        assert!(error(Spec { command: vec![], ..spec("") }).starts_with("db: cannot run an empty command: "));
    }

    #[test]
    fn a_server_that_does_not_start_says_why() {
        let hurry = |time: u64, script: &str| Spec { start: Some(Duration::from_millis(time)), ..spec(script) };
        let refused = r#"read -r line; echo '{"id":1,"error":{"code":-32601,"message":"no initialize"}}'; read -r end"#;
        for (spec, expected) in [
            (spec("echo no module >&2; exit 1"), "db: ended before its tools were listed (exit status 1): no module"),
            (spec("echo a >&2; echo b >&2"), "db: ended before its tools were listed (exit status 0):\na\nb"),
            (spec("kill -9 $$"), "db: ended before its tools were listed (signal 9 (SIGKILL))"),
            (spec("exec >&-; read -r line; read -r end"), "db: ended before its tools were listed (exit status 1)"),
            (spec(refused), "db: refused to start a conversation: no initialize (-32601)"),
            (hurry(1, "while read -r line; do :; done"), "db: did not list its tools within 0.001 s"),
        ] {
            let script = spec.command[2].clone();
            assert_eq!(start(spec).wait().expect_err("no tools").message, expected, "{script}");
        }
    }

    #[test]
    fn a_server_may_write_much_to_standard_error() {
        let script = "read -r call; head -c 1000000 /dev/zero | tr '\\0' 'x' >&2; text 3 ok; read -r end";
        assert_eq!(call(&mut started(script), "{}"), told("ok", false));
    }

    #[test]
    fn an_answer_that_is_too_long_fails_only_its_call() {
        let long = "read -r call; head -c 17000000 /dev/zero | tr '\\0' x; echo; read -r call; text 4 ok; read -r end";
        let mut server = started(long);
        assert_eq!(call(&mut server, "{}"), told("the tool's server wrote a line of more than 16 MB", true));
        assert_eq!(call(&mut server, "{}"), told("ok", false));
    }

    #[test]
    fn a_call_without_an_answer_times_out_and_is_cancelled() {
        let script = r#"read -r call; read -r cancel; text 3 late; read -r call
            case $cancel in *notifications/cancelled*'"requestId":3'*) text 4 cancelled;; *) text 4 not;; esac
            read -r end"#;
        let mut server = started(script);
        server.spec.timeout = Some(Duration::from_millis(1));
        assert_eq!(call(&mut server, "{}"), told("no answer within 0.001 s", true));
        server.spec.timeout = None;
        assert_eq!(call(&mut server, "{}"), told("cancelled", false));
    }

    #[test]
    fn a_server_that_ends_during_a_call_is_started_once_more() {
        let script = "read -r call; case $call in *again*) text 3 ok; read -r call;; esac; echo broken >&2; exit 4";
        let mut server = started(script);
        let broken = failed("ended during the call (exit status 4)", ": broken");
        assert_eq!(call(&mut server, "{}"), broken);
        assert_eq!(call(&mut server, r#"{"again":1}"#), told("ok", false));
        assert_eq!(call(&mut server, "{}"), broken);
        let out = failed("has failed twice and is not started again", "");
        assert_eq!(call(&mut server, "{}"), out);
        assert_eq!(call(&mut server, "{}"), out);
    }

    #[test]
    fn a_server_that_ends_between_calls_is_started_once_more() {
        let mut server = started("read -r call; text 3 $$; exit 0");
        let first = call(&mut server, "{}");
        // Not before its output has ended.
        let connection = server.connection.as_mut().expect("a connection");
        assert!(matches!(connection.next(None), Err(RecvTimeoutError::Disconnected)));
        let second = call(&mut server, "{}");
        assert!(!first.is_error && !second.is_error && first != second, "{first:?} {second:?}");
    }

    #[test]
    fn a_server_that_did_not_start_is_not_called() {
        let mut server = start(spec("read -r line; read -r end"));
        assert_eq!(call(&mut server, "{}"), failed("did not start", ""));
    }

    #[test]
    fn requests_of_the_server_are_answered_between_calls() {
        let ping = r#"say '{"id":"p","method":"ping"}'; read -r pong; say "pong: $pong" >&2; read -r end"#;
        let (sender, details) = mpsc::channel();
        let report: Report = Arc::new(move |text: &str| _ = sender.send(text.to_owned()));
        let mut server =
            Server::start(spec(&format!("{START}{ping}")), &Groups::default(), &report).expect("a process");
        server.wait().expect("tools");
        assert_eq!(details.recv().expect("a line"), r#"db: pong: {"jsonrpc":"2.0","id":"p","result":{}}"#);
    }

    #[test]
    fn servers_end_together() {
        let groups = Groups::default();
        let script = format!("trap 'exit 7' TERM; {START} while :; do read -r line || sleep 1000; done");
        let servers = (0..3).map(|_| Server::start(spec(&script), &groups, &silent()).expect("a process")).collect();
        let mut servers = Servers(servers);
        for server in &mut servers.0 {
            server.wait().expect("tools");
        }
        let start = Instant::now();
        drop(servers);
        let took = start.elapsed();
        // One after the other would take at least six seconds.
        assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(6), "{took:?}");
        // Nothing is left that a signal could reach.
        assert_eq!(format!("{groups:?}"), format!("{:?}", Groups::default()));
    }
}
