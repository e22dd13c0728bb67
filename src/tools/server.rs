//! A tool server from its start to its last call: a program, an address, or commands, which need no start.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::commands::Commands;
use super::http::{Http, Site};
use super::listener::Listener;
use super::outcome::{Failure, Outcome, seconds};
use super::process::{Groups, Input, Process, Program, Report};
use super::protocol::{About, Protocol, ServerEvent};
use crate::error::Error;
use crate::settings::ToolServer;
use crate::threads::lock;

/// How often to check whether a silent program still runs.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A section that is ready: its server can be started, or its commands called.
pub struct Spec {
    pub section: ToolServer,
    pub target: Target,
}

/// What a call goes to.
pub enum Target {
    Local(Program),
    Remote(Arc<Site>),
    /// Each is a tool, and starts when it is called.
    Commands(Commands),
}

impl Target {
    /// Whether there is nothing to wait for until its tools are known.
    pub fn is_known(&self) -> bool {
        matches!(self, Target::Commands(commands) if commands.about.is_none())
    }
}

/// A server that can be called. Dropping it ends its program or session.
pub struct Server {
    pub spec: Spec,
    /// What it has listed.
    pub about: About,
    /// How long it took to start and to list its tools.
    pub took: Duration,
    groups: Groups,
    /// `None` after the server has ended, and for commands. Whoever calls it holds the lock until the answer has come.
    connection: Mutex<Option<Connection>>,
}

/// A conversation with a server. A thread reads what the server sends, and passes it on as events.
struct Connection {
    protocol: Arc<Mutex<Protocol>>,
    transport: Transport,
    events: Receiver<Result<ServerEvent, Failure>>,
}

enum Transport {
    Local(Process),
    Remote(Http),
}

impl Server {
    /// Starts a server, and waits until its tools are listed. `report` gets what `-v` shows.
    pub fn open(spec: Spec, groups: &Groups, report: &Report) -> Result<Server, Error> {
        let began = Instant::now();
        let start = spec.section.start;
        let opened = match &spec.target {
            Target::Commands(commands) => {
                let about = commands.about(start, groups);
                about.map(|about| (None, about))
            }
            _ => Connection::open(&spec, None, after(start), groups, report)
                .map(|(connection, about)| (Some(connection), about)),
        };
        let (connection, about) = opened.map_err(|failure| {
            groups.wait_if_closed();
            failure.into_error(&spec.section.name)
        })?;
        Ok(Server {
            spec,
            about,
            took: began.elapsed(),
            groups: groups.clone(),
            connection: Mutex::new(connection),
        })
    }

    /// Whether there is something to end.
    pub fn is_connected(&self) -> bool {
        lock(&self.connection).is_some()
    }

    /// Checks what can be checked before a person is asked. The error is for the model.
    pub fn check(&self, tool: &str, arguments: &Map<String, Value>) -> Result<(), String> {
        if let Target::Commands(commands) = &self.spec.target {
            commands.check(tool, arguments)?;
        }
        Ok(())
    }

    /// Calls a tool by the server's own name, and returns what the model gets. `reads`: it changes nothing.
    pub fn call(&self, tool: &str, arguments: &Map<String, Value>, reads: bool) -> Outcome {
        self.groups.be_patient();
        if let Target::Commands(commands) = &self.spec.target {
            let called = commands.call(tool, arguments, &self.groups);
            return called.unwrap_or_else(Outcome::failed);
        }
        let mut connected = lock(&self.connection);
        let result = match &mut *connected {
            Some(connection) => connection.call(tool, arguments, reads, self.spec.section.timeout),
            None => Err(Failure::new("it has ended")),
        };
        match result {
            Ok(outcome) => outcome,
            Err(failure) => {
                self.groups.wait_if_closed();
                if failure.has_ended_server {
                    *connected = None;
                }
                let name = &self.spec.section.name;
                // The model does not get the program's own lines, which may contain anything.
                let for_model = format!("the tool server {name} failed: {}", failure.what);
                Outcome {
                    server_failed: Some(failure.into_error(name)),
                    ..Outcome::failed(for_model)
                }
            }
        }
    }
}

impl Connection {
    /// Starts or reaches the server, and lists its tools. A program that refuses the handshake and ends is started again
    /// without it: `refusal` is how it has refused.
    fn open(
        spec: &Spec,
        refusal: Option<String>,
        deadline: Option<Instant>,
        groups: &Groups,
        report: &Report,
    ) -> Result<(Connection, About), Failure> {
        let is_first = refusal.is_none();
        let mut connection = Connection::begin(spec, refusal, groups, report)?;
        let failure = match connection.list_tools(spec, deadline) {
            Ok(about) => return Ok((connection, about)),
            Err(failure) => failure,
        };
        let Some(what) = connection.protocol().refusal() else {
            return Err(failure);
        };
        if is_first && failure.has_ended_server {
            return Connection::open(spec, Some(what), deadline, groups, report);
        }
        // The refusal says more than how the server failed after it.
        Err(Failure {
            what,
            advice: None,
            ..failure
        })
    }

    /// Begins the conversation and does not wait for the server.
    fn begin(
        spec: &Spec,
        refusal: Option<String>,
        groups: &Groups,
        report: &Report,
    ) -> Result<Connection, Failure> {
        let (sender, events) = mpsc::channel();
        let over_http = matches!(spec.target, Target::Remote(_));
        let (protocol, first) = Protocol::open(over_http, refusal);
        let protocol = Arc::new(Mutex::new(protocol));
        let listener = Listener {
            protocol: Arc::clone(&protocol),
            events: sender,
            report: Arc::clone(report),
        };
        let transport = match &spec.target {
            Target::Local(program) => Transport::Local(start(program, groups, listener)?),
            Target::Remote(site) => Transport::Remote(Http::new(Arc::clone(site), listener)),
            Target::Commands(_) => return Err(Failure::new("has commands, and no server")),
        };
        let connection = Connection {
            protocol,
            transport,
            events,
        };
        connection.send(first, spec.section.start);
        Ok(connection)
    }

    fn list_tools(&mut self, spec: &Spec, deadline: Option<Instant>) -> Result<About, Failure> {
        while let Some(event) = self.next(deadline)? {
            match event {
                ServerEvent::Send(message) => self.send(message, spec.section.start),
                ServerEvent::Ready(about) if about.tools.is_empty() => {
                    return Err(self.failure("offers no tools"));
                }
                ServerEvent::Ready(about) => {
                    if let Transport::Local(process) = &self.transport {
                        process.has_started();
                    }
                    return Ok(about);
                }
                ServerEvent::Unusable(reason) => return Err(self.failure(&reason)),
                _ => (),
            }
        }
        let name = &spec.section.name;
        let limit = seconds(spec.section.start);
        let advice = format!("a longer start may help, such as start = \"2m\" in [tools.{name}]");
        Err(Failure {
            advice: Some(advice),
            ..self.failure(&format!("did not list its tools within {limit}"))
        })
    }

    /// The outcome of a call, which may take `patience` until its answer, or from one report of progress to the next.
    fn call(
        &mut self,
        tool: &str,
        arguments: &Map<String, Value>,
        reads: bool,
        patience: Option<Duration>,
    ) -> Result<Outcome, Failure> {
        if let Transport::Local(process) = &mut self.transport {
            process.may_have_changes |= !reads;
        }
        let (id, message) = self.protocol().call(tool, arguments);
        self.send(message, patience);
        let mut deadline = after(patience);
        while let Some(event) = self.next(deadline)? {
            match event {
                ServerEvent::Progress => deadline = after(patience),
                ServerEvent::Answer(answered, answer) if answered == id => {
                    return Ok(Outcome::read(answer));
                }
                _ => (),
            }
        }
        let cancellation = self.protocol().cancel(id);
        if let Some(cancellation) = cancellation {
            self.send(cancellation, None);
        }
        let limit = seconds(patience);
        Ok(Outcome::failed(format!("no answer within {limit}")))
    }

    /// Sends a message, whose answer may take as long as `patience`.
    fn send(&self, message: Value, patience: Option<Duration>) {
        match &self.transport {
            Transport::Local(process) => process.input.send(format!("{message}\n")),
            Transport::Remote(http) => http.send(message, patience),
        }
    }

    /// What the server sends next; `None` if that takes too long. What has arrived counts even after the deadline. A program
    /// that has ended is gone, even if something that it started holds its output open.
    fn next(&mut self, deadline: Option<Instant>) -> Result<Option<ServerEvent>, Failure> {
        let mut has_ended = false;
        loop {
            let left = deadline.map_or(POLL_INTERVAL, |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            match self.events.recv_timeout(left.min(POLL_INTERVAL)) {
                Ok(received) => return received.map(Some),
                Err(RecvTimeoutError::Timeout) if !has_ended => (),
                Err(_) => return Err(self.output_closed()),
            }
            if let Transport::Local(process) = &mut self.transport {
                // Its last lines may still be on their way.
                has_ended = process.has_ended();
            }
            if left < POLL_INTERVAL && !has_ended {
                return Ok(None);
            }
        }
    }

    /// Ends a program that has closed its output, and says how it failed.
    fn output_closed(&mut self) -> Failure {
        let mut what = "closed its output".to_owned();
        // A program that ends closes its output a moment before it is gone.
        if let Transport::Local(process) = &mut self.transport
            && let Some(status) = process.end(POLL_INTERVAL)
        {
            what = format!("ended by itself ({status})");
        }
        Failure {
            has_ended_server: true,
            ..self.failure(&what)
        }
    }

    /// Says why the server failed, with its last lines or its address.
    fn failure(&self, what: &str) -> Failure {
        let process = match &self.transport {
            Transport::Remote(http) => return http.failure(what),
            Transport::Local(process) => process,
        };
        let more = match &process.lines()[..] {
            [] => String::new(),
            [line] => format!(": {line}"),
            lines => format!(":\n{}", lines.join("\n")),
        };
        Failure {
            more,
            ..Failure::new(what)
        }
    }

    fn protocol(&self) -> MutexGuard<'_, Protocol> {
        lock(&self.protocol)
    }
}

/// Ends a session over HTTP; a program ends when its process is dropped.
impl Drop for Connection {
    fn drop(&mut self) {
        if let Transport::Remote(http) = &self.transport {
            http.end();
        }
    }
}

/// Starts a program. A thread handles each line that it writes, so that the server's own requests are answered while q
/// does something else.
fn start(program: &Program, groups: &Groups, listener: Listener) -> Result<Process, Failure> {
    let report = Arc::clone(&listener.report);
    let read = move |input: &Input, line: &[u8]| {
        let events = listener.protocol().receive(line);
        listener.dispatch(events, |message| input.send(format!("{message}\n")));
    };
    Process::start(program, groups, read, report).map_err(|error| {
        let command = program.command.join(" ");
        Failure::new(format!("cannot run {command}: {error}"))
    })
}

fn after(patience: Option<Duration>) -> Option<Instant> {
    patience.and_then(|patience| Instant::now().checked_add(patience))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a scripted server does until its tools are listed. The first call has the number 3.
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

    fn program(script: &str) -> Program {
        let command = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
        Program {
            file: "/bin/sh".into(),
            command,
            environment,
            folder: "/".into(),
        }
    }

    fn spec(script: &str) -> Spec {
        with(program(script))
    }

    fn with(program: Program) -> Spec {
        let section = ToolServer::parse("db", "command = [\"x\"]\nstart = \"60s\"");
        Spec {
            section,
            target: Target::Local(program),
        }
    }

    fn silent() -> Report {
        Arc::new(|_: &str| ())
    }

    /// A server that has listed its tools and then does what the script says.
    fn started(script: &str) -> Server {
        open(spec(&format!("{START}{script}")), &silent()).expect("tools")
    }

    fn open(spec: Spec, report: &Report) -> Result<Server, Error> {
        Server::open(spec, &Groups::default(), report)
    }

    /// Calls a tool with arguments in JSON.
    fn call(server: &mut Server, arguments: &str) -> Outcome {
        server.call(
            "a",
            &serde_json::from_str(arguments).expect("an object"),
            true,
        )
    }

    fn outcome(text: &str, is_error: bool) -> Outcome {
        Outcome {
            text: text.to_owned(),
            is_error,
            ..Outcome::default()
        }
    }

    #[test]
    fn a_program_that_cannot_be_run_is_reported() {
        let error = |spec: Spec| {
            open(spec, &silent())
                .map(|_| ())
                .expect_err("no process")
                .message
        };
        let missing = error(with(Program {
            file: "/no/such".into(),
            command: vec!["/no/such".to_owned()],
            ..program("")
        }));
        assert_eq!(
            missing,
            "db: cannot run /no/such: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn a_server_that_does_not_start_says_why() {
        let hurry = |time: u64, script: &str| {
            let mut spec = spec(script);
            spec.section.start = Some(Duration::from_millis(time));
            spec
        };
        let refused = r#"read -r line; echo '{"id":1,"error":{"code":-32601,"message":"no initialize"}}'; read -r end"#;
        for (spec, expected) in [
            (
                spec("echo no module >&2; exit 1"),
                "db: ended by itself (exit status: 1): no module",
            ),
            (
                spec("echo a >&2; echo b >&2"),
                "db: ended by itself (exit status: 0):\na\nb",
            ),
            (
                spec("kill -9 $$"),
                "db: ended by itself (signal: 9 (SIGKILL))",
            ),
            (
                spec("exec >&-; read -r line; read -r end"),
                "db: closed its output",
            ),
            // It is ended at once.
            (
                spec("exec >/dev/null; cat; sleep 1; echo late >&2"),
                "db: closed its output",
            ),
            (
                spec(refused),
                "db: refused to start a conversation: no initialize (-32601)",
            ),
            (
                hurry(1, "while read -r line; do :; done"),
                "db: did not list its tools within 0.001 s",
            ),
        ] {
            assert_eq!(
                open(spec, &silent())
                    .map(|_| ())
                    .expect_err("no tools")
                    .message,
                expected
            );
        }
    }

    #[test]
    fn an_answer_that_is_too_long_fails_only_its_call() {
        let long = "head -c 17000000 /dev/zero | tr '\\0' x; echo";
        // Only the first one is meant as a message.
        let script = format!(
            "read -r call; printf '{{\"'; {long}; read -r call; {long}; text 4 ok; read -r end"
        );
        let mut server = started(&script);
        let failed = call(&mut server, "{}");
        assert!(failed.is_error && failed.text.contains("more than 16 MB"));
        assert_eq!(call(&mut server, "{}"), outcome("ok", false));
    }

    #[test]
    fn requests_of_the_server_are_answered_between_calls() {
        let ping =
            r#"say '{"id":"p","method":"ping"}'; read -r pong; say "pong: $pong" >&2; read -r end"#;
        let (sender, details) = mpsc::channel();
        let report: Report = Arc::new(move |text: &str| _ = sender.send(text.to_owned()));
        let _server = open(spec(&format!("{START}{ping}")), &report).expect("tools");
        assert_eq!(
            details.recv().expect("a line"),
            r#"pong: {"jsonrpc":"2.0","id":"p","result":{}}"#
        );
    }
}
