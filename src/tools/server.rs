//! A tool server from its start to its last call: what it offers, what it answers, and what happens when it fails.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::failure::{Failure, Lost};
use super::local;
use super::process::{self, Groups, Program, Report};
use super::protocol::About;
use super::remote;
use super::result::Outcome;
use crate::error::{Error, Kind};

/// How long one look at a server that starts may take.
pub(super) const A_WHILE: Duration = Duration::from_millis(50);

/// A server as it is configured.
pub(crate) struct Spec {
    pub(crate) name: String,
    pub(crate) place: Place,
    /// How long it may take until its tools are listed; `None` is for ever.
    pub(crate) start: Option<Duration>,
    /// How long a call may take until its answer, or from one report of progress to the next; `None` is for ever.
    pub(crate) timeout: Option<Duration>,
}

/// Where a server is.
pub(crate) enum Place {
    Local(Program),
    Remote(Arc<remote::Server>),
}

impl Place {
    /// What is said of a server that has been started a second time in vain.
    fn given_up(&self) -> &'static str {
        match self {
            Place::Local(_) => "has failed twice and is not started again",
            Place::Remote(_) => "has lost two sessions and is not asked again",
        }
    }
}

/// What q knows about a server that has started.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Started {
    pub(crate) about: About,
    /// The time from its start until its tools were listed.
    pub(crate) took: Duration,
}

/// A running server. Dropping it ends it.
pub(crate) struct Server {
    spec: Spec,
    groups: Groups,
    report: Report,
    since: Instant,
    /// None after the server has ended.
    connection: Option<Connection>,
    /// Whether the server has been started a second time.
    is_second: bool,
}

/// The conversation with a server.
enum Connection {
    Local(local::Conversation),
    Remote(remote::Conversation),
}

impl Server {
    /// Starts a server and does not wait for it. `report` gets what `-v` shows, each line with the server's name.
    ///
    /// # Errors
    /// `Tools`: its program cannot be run, or there are no more threads.
    pub(crate) fn start(spec: Spec, groups: &Groups, report: &Report) -> Result<Server, Error> {
        let report: Report = {
            let (report, name) = (Arc::clone(report), spec.name.clone());
            Arc::new(move |text: &str| report(&format!("{name}: {text}")))
        };
        let since = Instant::now();
        let connection = Connection::open(&spec, groups, &report).map_err(|failure| error(&spec, failure))?;
        Ok(Server { spec, groups: groups.clone(), report, since, connection: Some(connection), is_second: false })
    }

    /// What the server says once its tools are listed, for which its time counts from its start; `None` if that takes
    /// longer than `slice`. Not to be called again after that.
    ///
    /// # Errors
    /// `Tools`: the server has ended, is too slow, refuses, or does not speak the protocol.
    pub(crate) fn wait(&mut self, slice: Duration) -> Option<Result<Started, Error>> {
        let ready = match &mut self.connection {
            Some(connection) => connection.wait(&self.spec, slice)?,
            None => Err(Failure::not_started()),
        };
        Some(match ready {
            Ok((about, at)) => Ok(Started { about, took: at.duration_since(self.since) }),
            Err(failure) => {
                self.groups.wait_if_closed();
                Err(error(&self.spec, failure))
            }
        })
    }

    /// Calls a tool by the server's own name, and returns what the model gets.
    ///
    /// A server that ends is started once more for the next call. One that has forgotten the session gets a new session
    /// at once, because it has not run the call.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Map<String, Value>) -> Outcome {
        self.groups.be_patient();
        let mut called = self.try_call(tool, arguments);
        if let Err(Lost::Session(failure)) = &called {
            (self.report)(&format!("{failure}; sending the call again in a new session"));
            self.connection = None;
            called = self.try_call(tool, arguments);
        }
        let lost = match called {
            Ok(outcome) => return outcome,
            Err(lost) => lost,
        };
        self.groups.wait_if_closed();
        let failure = match lost {
            Lost::Call(failure) => failure,
            Lost::Server(failure) | Lost::Session(failure) => {
                self.connection = None;
                failure
            }
        };
        let name = &self.spec.name;
        // A program's own lines are not for the model: nobody knows what is in them.
        let for_model = format!("the tool's server {name} failed: {}", failure.what);
        let advice: String = failure.advice.iter().map(|advice| format!("\n{advice}")).collect();
        Outcome { server_failed: Some(format!("{name}: {failure}{advice}")), ..Outcome::failed(for_model) }
    }

    fn try_call(&mut self, tool: &str, arguments: &Map<String, Value>) -> Result<Outcome, Lost> {
        let timeout = self.spec.timeout;
        match self.connection().map_err(Lost::Server)? {
            Connection::Local(conversation) => conversation.call(tool, arguments, timeout).map_err(Lost::Server),
            Connection::Remote(conversation) => conversation.call(tool, arguments, timeout),
        }
    }

    /// The connection to the server, which is started a second time if it has ended.
    fn connection(&mut self) -> Result<&mut Connection, Failure> {
        if self.connection.as_mut().is_some_and(Connection::has_ended) {
            self.connection = None;
        }
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None if self.is_second => return Err(self.spec.place.given_up().to_owned().into()),
            None => {
                self.is_second = true;
                let mut connection = Connection::open(&self.spec, &self.groups, &self.report)?;
                while connection.wait(&self.spec, A_WHILE).transpose()?.is_none() {}
                connection
            }
        };
        Ok(self.connection.insert(connection))
    }
}

impl Connection {
    fn open(spec: &Spec, groups: &Groups, report: &Report) -> Result<Connection, Failure> {
        match &spec.place {
            Place::Local(program) => local::Conversation::open(program, groups, report).map(Connection::Local),
            Place::Remote(site) => remote::Conversation::open(site, spec.start, Arc::clone(report))
                .map(Connection::Remote)
                .map_err(|error| error.to_string().into()),
        }
    }

    fn wait(&mut self, spec: &Spec, slice: Duration) -> Option<Result<(About, Instant), Failure>> {
        match self {
            Connection::Local(conversation) => conversation.wait(&spec.name, spec.start, slice),
            Connection::Remote(conversation) => conversation.wait(&spec.name, spec.start, slice),
        }
    }

    /// Whether the server has ended; an address cannot end.
    fn has_ended(&mut self) -> bool {
        match self {
            Connection::Local(conversation) => conversation.has_ended(),
            Connection::Remote(_) => false,
        }
    }
}

/// The servers of one run. Dropping them ends them all at the same time, or asks them to end if the run has failed before
/// any call.
#[derive(Default)]
pub(crate) struct Servers(pub(crate) Vec<Server>);

impl Drop for Servers {
    fn drop(&mut self) {
        let (is_open, ends) = mpsc::channel();
        let is_patient = self.0.iter().any(|server| server.groups.is_patient());
        let mut processes = Vec::new();
        for connection in self.0.iter_mut().filter_map(|server| server.connection.as_mut()) {
            match connection {
                Connection::Local(conversation) => processes.push(&mut conversation.process),
                Connection::Remote(conversation) => conversation.end(is_open.clone()),
            }
        }
        drop(is_open);
        match is_patient {
            true => process::end_all(&mut processes),
            false => process::dismiss_all(&mut processes),
        }
        // Nothing is ever sent: this waits until every session has dropped its end.
        let _ = ends.recv_timeout(remote::GOODBYE);
    }
}

fn error(spec: &Spec, failure: Failure) -> Error {
    let error = Error::new(Kind::Tools, format!("{}: {failure}", spec.name));
    match failure.advice {
        Some(advice) => error.advise(advice),
        None => error,
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

    fn program(script: &str) -> Program {
        let command = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        Program { command, environment: vec![("PATH".into(), "/usr/bin:/bin".into())], folder: "/".into() }
    }

    fn spec(script: &str) -> Spec {
        with(program(script))
    }

    fn with(program: Program) -> Spec {
        Spec {
            name: "db".to_owned(),
            place: Place::Local(program),
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
        wait(&mut server).expect("tools");
        server
    }

    fn start(spec: Spec) -> Server {
        Server::start(spec, &Groups::default(), &silent()).expect("a process")
    }

    fn wait(server: &mut Server) -> Result<Started, Error> {
        loop {
            if let Some(started) = server.wait(A_WHILE) {
                return started;
            }
        }
    }

    fn conversation(server: &mut Server) -> &mut local::Conversation {
        match &mut server.connection {
            Some(Connection::Local(conversation)) => conversation,
            _ => panic!("no process"),
        }
    }

    /// What the model learns about a server that cannot continue, and what only the user learns.
    fn failed(what: &str, lines: &str) -> Outcome {
        let server_failed = Some(format!("db: {what}{lines}"));
        Outcome { text: format!("the tool's server db failed: {what}"), is_error: true, server_failed }
    }

    /// Calls a tool with arguments in JSON.
    fn call(server: &mut Server, arguments: &str) -> Outcome {
        server.call("a", &serde_json::from_str(arguments).expect("an object"))
    }

    fn outcome(text: &str, is_error: bool) -> Outcome {
        Outcome { text: text.to_owned(), is_error, server_failed: None }
    }

    #[test]
    fn of_many_lines_only_the_first_are_reported_while_it_starts_and_in_each_call() {
        let (sender, details) = mpsc::channel();
        let report: Report = Arc::new(move |text: &str| _ = sender.send(text.to_owned()));
        let noise = "awk 'BEGIN { for (i = 0; i < 300; i++) print \"noise\" }' >&2";
        let script = format!("{noise}; {START} read -r call; {noise}; text 3 ok; read -r end");
        let mut server = Server::start(spec(&script), &Groups::default(), &report).expect("a process");
        wait(&mut server).expect("tools");
        // What it has written before its tools were listed has been read before the call, or is read during it.
        while !format!("{:?}", conversation(&mut server).process).contains("reported: 300") {
            std::thread::yield_now();
        }
        assert_eq!(call(&mut server, "{}"), outcome("ok", false));
        conversation(&mut server).process.end();
        conversation(&mut server).process.lines();
        drop((server, report));
        let details: Vec<String> = details.iter().collect();
        assert_eq!(details.iter().filter(|line| *line == "db: noise").count(), 400);
        assert_eq!(details[200], "db: writes more to standard error, which is not shown");
        assert_eq!(details.len(), 402);
    }

    #[test]
    fn a_program_that_cannot_be_run_is_named() {
        let error = |spec: Spec| match Server::start(spec, &Groups::default(), &silent()) {
            Ok(_) => panic!("a process"),
            Err(error) => error.message,
        };
        let missing = error(with(Program { command: vec!["/no/such".to_owned()], ..program("") }));
        assert_eq!(missing, "db: cannot run /no/such: No such file or directory (os error 2)");
        assert_eq!(
            error(with(Program { folder: "/no/such".into(), ..program("") })),
            "db: there is no folder /no/such"
        );
        assert!(
            error(with(Program { command: vec![], ..program("") })).starts_with("db: cannot run an empty command: ")
        );
    }

    #[test]
    fn an_answer_that_is_too_long_fails_only_its_call() {
        let long = "head -c 17000000 /dev/zero | tr '\\0' x; echo";
        // Only the first one is meant as a message.
        let script = format!("read -r call; printf '{{'; {long}; read -r call; {long}; text 4 ok; read -r end");
        let mut server = started(&script);
        assert_eq!(call(&mut server, "{}"), outcome("the tool's server sent a message of more than 16 MB", true));
        assert_eq!(call(&mut server, "{}"), outcome("ok", false));
    }

    #[test]
    fn a_server_that_does_not_start_says_why() {
        let hurry = |time: u64, script: &str| Spec { start: Some(Duration::from_millis(time)), ..spec(script) };
        let refused = r#"read -r line; echo '{"id":1,"error":{"code":-32601,"message":"no initialize"}}'; read -r end"#;
        for (spec, expected) in [
            (spec("echo no module >&2; exit 1"), "db: ended before its tools were listed (exit status 1): no module"),
            (spec("echo a >&2; echo b >&2"), "db: ended before its tools were listed (exit status 0):\na\nb"),
            (spec("kill -9 $$"), "db: ended before its tools were listed (signal 9 (SIGKILL))"),
            (spec("exec >&-; read -r line; read -r end"), "db: closed its output before its tools were listed"),
            // It gets no time for what it would still do.
            (
                spec("exec >/dev/null; cat; sleep 1; echo late >&2"),
                "db: closed its output before its tools were listed",
            ),
            (spec(refused), "db: refused to start a conversation: no initialize (-32601)"),
            (hurry(1, "while read -r line; do :; done"), "db: did not list its tools within 0.001 s"),
        ] {
            assert_eq!(wait(&mut start(spec)).expect_err("no tools").message, expected);
        }
    }

    #[test]
    fn a_call_without_an_answer_times_out_and_is_cancelled() {
        let script = r#"read -r call; read -r cancel; text 3 late; read -r call
            case $cancel in *notifications/cancelled*'"requestId":3'*) text 4 cancelled;; *) text 4 not;; esac
            read -r end"#;
        let mut server = started(script);
        server.spec.timeout = Some(Duration::from_millis(1));
        assert_eq!(call(&mut server, "{}"), outcome("no answer within 0.001 s", true));
        server.spec.timeout = None;
        assert_eq!(call(&mut server, "{}"), outcome("cancelled", false));
    }

    #[test]
    fn a_server_that_ends_during_a_call_is_started_once_more() {
        let script = "read -r call; case $call in *again*) text 3 ok; read -r call;; esac; echo broken >&2; exit 4";
        let mut server = started(script);
        let broken = failed("ended during the call (exit status 4)", ": broken");
        assert_eq!(call(&mut server, "{}"), broken);
        assert_eq!(call(&mut server, r#"{"again":1}"#), outcome("ok", false));
        assert_eq!(call(&mut server, "{}"), broken);
        let out = failed("has failed twice and is not started again", "");
        assert_eq!(call(&mut server, "{}"), out);
        assert_eq!(call(&mut server, "{}"), out);
    }

    #[test]
    fn a_server_that_closes_its_output_did_not_end_by_itself() {
        let mut server = started("read -r call; echo broken >&2; exec >&-; read -r end");
        assert_eq!(call(&mut server, "{}"), failed("closed its output during the call", ": broken"));
    }

    #[test]
    fn a_server_that_ends_between_calls_is_started_once_more() {
        let mut server = started("read -r call; text 3 $$; exit 0");
        let first = call(&mut server, "{}");
        while !conversation(&mut server).has_ended() {
            std::thread::yield_now();
        }
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
        wait(&mut server).expect("tools");
        assert_eq!(details.recv().expect("a line"), r#"db: pong: {"jsonrpc":"2.0","id":"p","result":{}}"#);
    }
}
