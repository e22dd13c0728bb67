//! A tool server, from its preparation to its end, with its calls and how they fail.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::about::ServerInfo;
use super::commands::FilledCommand;
use super::connection::{Callee, Connection};
use super::failure::Failure;
use super::groups::ProcessGroups;
use super::lines::ReportLine;
use super::outcome::Outcome;
use super::program::Program;
use super::tool_list::ToolList;
use super::withheld::variable_asked_for;
use crate::error::Error;
use crate::settings::ToolServer;
use crate::text::one_line::on_one_line;
use crate::threads::lock;

/// A call whose arguments have been checked: what is allowed or refused, and then runs as it is.
pub struct CheckedCall {
    pub arguments: Map<String, Value>,
    target: CallTarget,
}

/// What the model is told of a command whose paths lead elsewhere since they were checked.
const MOVED: &str =
    "A path of the call leads elsewhere than when it was checked, so the command did not run.";

/// The tool or command that a call is for.
#[derive(PartialEq)]
enum CallTarget {
    /// A tool of the server, by the server's own name.
    Tool(String),
    Command(FilledCommand),
}

/// A server, or the commands of a section. It can be called once it is open. Dropping it asks its program to end.
pub struct Server {
    pub section: Arc<ToolServer>,
    pub callee: Callee,
    /// How long it took to start and to list its tools.
    pub took: Duration,
    groups: ProcessGroups,
    /// `None` before the server has started, after it has ended, and for commands. A call holds the lock until its answer has
    /// arrived.
    connection: Mutex<Option<Connection>>,
}

/// A server that has started, with what it says of itself and its tools.
pub struct OpenServer {
    pub server: Server,
    pub about: ServerInfo,
}

impl Server {
    /// Returns a server that can be started in `groups`.
    pub fn new(section: ToolServer, callee: Callee, groups: &ProcessGroups) -> Server {
        Server {
            section: Arc::new(section),
            callee,
            took: Duration::ZERO,
            groups: groups.clone(),
            connection: Mutex::new(None),
        }
    }

    /// Starts the server, and waits until its tools are listed. `report` gets what `-v` shows.
    pub fn open(mut self, report: &ReportLine) -> Result<OpenServer, Error> {
        let began = Instant::now();
        let Server {
            section,
            callee,
            groups,
            ..
        } = &self;
        let opened = match callee {
            Callee::Commands(commands) => {
                let about = commands.about(section.rules.start, groups);
                about.map(|about| (None, about))
            }
            _ => Connection::open(section, callee, groups, report)
                .map(|(connection, about)| (Some(connection), about)),
        };
        let (connection, about) = opened.map_err(|mut failure| {
            groups.park_if_terminating();
            if let Some(program) = callee.program_at_start() {
                advise_on_start(&mut failure, section, program);
            }
            failure.into_error(&section.name)
        })?;
        self.connection = Mutex::new(connection);
        self.took = began.elapsed();
        Ok(OpenServer {
            server: self,
            about,
        })
    }

    /// Returns its program as a server that can be started once more, if it has ended.
    pub fn again(&self) -> Option<Server> {
        let Callee::Local(program) = &self.callee else {
            return None;
        };
        let again = || Server {
            section: Arc::clone(&self.section),
            callee: Callee::Local(program.clone()),
            took: Duration::ZERO,
            groups: self.groups.clone(),
            connection: Mutex::new(None),
        };
        (!self.is_open()).then(again)
    }

    /// Whether its connection is open, so that there is something to end. Commands have none.
    pub fn is_open(&self) -> bool {
        lock(&self.connection).is_some()
    }

    /// Returns why the server was ended since the last call.
    pub fn failed(&self) -> Option<Error> {
        let mut connected = lock(&self.connection);
        let failure = connected.as_ref()?.failed()?;
        end(&mut connected);
        Some(failure.into_error(&self.section.name))
    }

    /// Whether it has said that its tools are others than those that it has listed.
    pub fn has_changed_tools(&self) -> bool {
        let connected = lock(&self.connection);
        connected
            .as_ref()
            .is_some_and(Connection::has_changed_tools)
    }

    /// Lists its tools once more.
    pub fn list_again(&self) -> Result<ToolList, Error> {
        self.with_connection(|connection| connection.list_again(&self.section))
            .map_err(|failure| failure.into_error(&self.section.name))
    }

    /// Ends the connection if it fails for good.
    fn with_connection<T>(
        &self,
        ask: impl FnOnce(&mut Connection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut connected = lock(&self.connection);
        let Some(connection) = &mut *connected else {
            return Err(Failure::of_server("has ended"));
        };
        let result = ask(connection);
        if let Err(failure) = &result {
            self.groups.park_if_terminating();
            if failure.has_ended_server {
                end(&mut connected);
            }
        }
        result
    }

    /// Ends its program or session.
    pub fn end(&self) {
        end(&mut lock(&self.connection));
    }

    /// Checks the arguments for a tool, by the server's own name. What a server accepts, it says itself. The error is for the
    /// model.
    pub fn check(&self, tool: &str, arguments: Map<String, Value>) -> Result<CheckedCall, String> {
        let target = match &self.callee {
            Callee::Commands(commands) => CallTarget::Command(commands.fill(tool, &arguments)?),
            Callee::Local(_) | Callee::Remote(_) => CallTarget::Tool(tool.to_owned()),
        };
        Ok(CheckedCall { arguments, target })
    }

    /// Runs a call that it has checked, and returns what the model gets. `reads`: it changes nothing. A command does not run if
    /// its paths lead elsewhere than when they were checked: a person may have thought for a while.
    pub fn call(&self, call: &CheckedCall, reads: bool) -> Outcome {
        let tool = match &call.target {
            CallTarget::Command(command) => {
                return match self.check(&command.tool, call.arguments.clone()) {
                    Ok(now) if now.target == call.target => command
                        .run(&self.groups)
                        .unwrap_or_else(Outcome::without_result),
                    Ok(_) => Outcome::without_result(MOVED.to_owned()),
                    Err(reason) => Outcome::without_result(reason),
                };
            }
            CallTarget::Tool(tool) => tool,
        };
        let result = self.with_connection(|connection| {
            connection.call(&self.section, tool, &call.arguments, reads)
        });
        match result {
            Ok(outcome) => outcome,
            Err(failure) => {
                let name = &self.section.name;
                let for_model = failure.for_model(name);
                Outcome {
                    server_failed: Some(failure.into_error(name)),
                    ..Outcome::without_result(for_model)
                }
            }
        }
    }
}

/// Adds to a failure what the program of a section was not given, and was not let do.
fn advise_on_start(failure: &mut Failure, section: &ToolServer, program: &Program) {
    if let Some(name) = variable_asked_for(&failure.all_words(), &program.withheld) {
        let setting = section.passing_of(name);
        failure.advise_first(&format!("give it {name}, which is set: {setting}"));
    }
    if let Some(confined) = &program.confined {
        let section = section.section_to_edit();
        let summary = on_one_line(&confined.bounds.summary());
        failure.advise_last(&format!(
            "if it needs more, add that to confine in {section} ({summary})"
        ));
    }
}

fn end(connected: &mut Option<Connection>) {
    if let Some(connection) = connected.take() {
        connection.end();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc;

    use super::*;
    use crate::settings::ServerKind;
    use crate::text::size::in_seconds;
    use crate::text::table::rows;
    use crate::tools::about::LeftOutTools;
    use crate::tools::commands::{Commands, RunnableCommand};

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

    /// A server that does what the script says.
    fn scripted(script: &str) -> Server {
        of(Program::shell(script))
    }

    fn of(program: Program) -> Server {
        let section = ToolServer::parse("db", "command = [\"x\"]\nstart = \"60s\"");
        Server::new(section, Callee::Local(program), &ProcessGroups::default())
    }

    fn silent() -> ReportLine {
        Arc::new(|_: &str| ())
    }

    /// A server that has listed its tools and then does what the script says.
    fn started(script: &str) -> Server {
        let server = scripted(&format!("{START}{script}"));
        server.open(&silent()).expect("tools").server
    }

    /// Calls a tool with arguments in JSON.
    fn call(server: &mut Server, arguments: &str) -> Outcome {
        let arguments = serde_json::from_str(arguments).expect("an object");
        let checked = server.check("a", arguments).expect("a call");
        server.call(&checked, true)
    }

    fn outcome(text: &str, is_error: bool) -> Outcome {
        Outcome {
            text: text.to_owned(),
            is_error,
            ..Outcome::default()
        }
    }

    /// Compares what comes within a limit with what is expected, with a longer limit where a busy machine needs it.
    fn in_time<T: PartialEq + std::fmt::Debug>(compared: impl Fn(Duration) -> (T, T)) {
        for limit in [500, 5_000, 50_000] {
            let (found, expected) = compared(Duration::from_millis(limit));
            if found == expected {
                return;
            }
            assert!(limit < 50_000, "{found:?} is not {expected:?}");
        }
    }

    fn failure(server: Server) -> String {
        let opened = server.open(&silent()).map(|_| ());
        let error = opened.expect_err("no tools");
        format!("{}\n{}", error.message, error.quote)
            .trim_end()
            .to_owned()
    }

    #[test]
    fn a_command_runs_as_it_was_checked_or_not_at_all() {
        let directory = tempfile::tempdir().expect("a directory");
        let home = directory.path().canonicalize().expect("a path");
        let [file, other, link] = ["file", "other", "link"].map(|name| home.join(name));
        for path in [&file, &other] {
            fs_err::write(path, "").expect("a file");
        }
        fs_err::os::unix::fs::symlink(&file, &link).expect("a link");
        let section = r#"show = { run = ["echo", "{path}"], input = "path path" }"#;
        let section = ToolServer::parse("files", section);
        let ServerKind::Commands { commands, .. } = &section.kind else {
            panic!("a section without commands");
        };
        let program = Program {
            file: "/bin/echo".into(),
            directory: Some(home.clone()),
            ..Program::shell("")
        };
        let callee = Callee::Commands(Commands {
            runnable: vec![RunnableCommand {
                command: commands[0].clone(),
                program: Arc::new(program),
            }],
            about: None,
        });
        let server = Server::new(section, callee, &ProcessGroups::default());
        let arguments = || serde_json::from_str(r#"{"path": "link"}"#).expect("an object");
        let checked = server.check("show", arguments()).expect("a call");
        let expected = outcome(&format!("{}\n", file.display()), false);
        assert_eq!(server.call(&checked, true), expected);
        let outside = format!("The argument path names nothing below {}.", home.display());
        for (target, said) in [
            (other.as_path(), MOVED),
            (Path::new("/etc/passwd"), &outside),
        ] {
            fs_err::remove_file(&link).expect("a link");
            fs_err::os::unix::fs::symlink(target, &link).expect("a link");
            let found = server.call(&checked, true);
            assert_eq!((found.text.as_str(), found.is_error), (said, true));
        }
        let refused = server.check("show", arguments()).map(|_| ());
        assert!(refused.is_err_and(|reason| reason.contains("names nothing below")));
    }

    #[test]
    fn a_server_whose_program_cannot_be_run_is_reported_by_its_name_without_its_arguments() {
        for (file, reason) in [
            ("/no/such", "No such file or directory"),
            // A directory is no program.
            ("/dev", "Permission denied"),
        ] {
            let wrong = Program {
                file: file.into(),
                name: "shop-server".to_owned(),
                arguments: ["--key", "sk-123"].map(str::to_owned).to_vec(),
                ..Program::shell("")
            };
            let expected = format!("db: cannot run shop-server: {reason}");
            assert_eq!(failure(of(wrong)), expected, "{file}");
        }
    }

    #[test]
    fn a_server_that_does_not_start_is_reported_with_the_reason() {
        let table = r#"
            ended by itself (exit status: 1): no module | echo no module >&2; exit 1
            ended by itself (exit status: 0):␊a␊b | echo a >&2; echo b >&2
            ended by itself (signal: 9 (SIGKILL)) | kill -9 $$
            ended by itself (exit status: 1): no key | echo no key; exit 1
            ended by itself (exit status: 1): no key | printf 'no key'; exit 1
            ended by itself (exit status: 1): no key | read -r line; echo no key; exit 1
            ended by itself (exit status: 1): {"level":"error","msg":"no key"} | echo '{"level":"error","msg":"no key"}'; exit 1
            ended by itself (exit status: 1):␊usage: x KEY␊no key | echo usage: x KEY; echo; echo no key; exit 1
            ended by itself (exit status: 1): no key | echo starting; echo no key >&2; exit 1
            ended by itself (exit status: 1) | echo '{"jsonrpc":"2.0","id":99,"result":{}}'; exit 1
            closed its output | exec >&-; read -r line; read -r end
            closed its output | exec >/dev/null; cat; sleep 1; echo late >&2
            refused to start a conversation: no initialize (-32601) | read -r line; echo '{"id":1,"error":{"code":-32601,"message":"no initialize"}}'; read -r end
            speaks version "2027-07-28" of the protocol, and q speaks 2024-11-05 to 2026-07-28 | read -r line; echo '{"id":1,"result":{"protocolVersion":"2027-07-28"}}'; read -r end
            sent a message that cannot be parsed, or has more than 10 MB (expected value at line 1 column 18) | read -r line; echo '{"id":1,"result":undefined}'; read -r end
            keeps writing what answers nothing, so it was ended | yes "$(printf '%0999d' 0)"
            keeps writing what answers nothing, so it was ended | yes ''
            writes a line of more than 110 MB, so it was ended | head -c 120000000 /dev/zero; exec sleep 1000
            writes a line of more than 110 MB, so it was ended | yes | tr -d '\n'
            offers no tools | read -r line; echo '{"id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}'; read -r initialized; read -r line; echo '{"id":2,"error":{"code":-32601,"message":"Method not found"}}'; read -r end
            offers no tools | read -r line; echo '{"id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}'; read -r initialized; read -r line; echo '{"id":2,"result":{"tools":[]}}'; read -r end
            refused to list its tools: no (-1) | read -r line; echo '{"id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}}'; read -r initialized; read -r line; echo '{"id":2,"error":{"code":-1,"message":"no"}}'; read -r end"#;
        for [expected, script] in rows(table) {
            let expected = format!("db: {}", expected.replace('␊', "\n"));
            assert_eq!(failure(scripted(script)), expected, "{script}");
        }
        let listed = "db: answered tools/list without a list of tools";
        assert_eq!(
            failure(scripted(&START.replace("tools\":[", "things\":["))),
            listed
        );
        let mut slow = scripted("while read -r line; do :; done");
        Arc::make_mut(&mut slow.section).rules.start = Some(Duration::from_millis(1));
        assert_eq!(failure(slow), "db: did not list its tools within 0.001 s");
    }

    #[test]
    fn the_user_and_the_model_read_why_a_call_failed() {
        // What the server does, what follows its name for both, and what only the user reads.
        let table = r#"
            exit 3 | ended by itself (exit status: 3) | -
            read -r call; echo no rows >&2; exit 3 | ended by itself (exit status: 3) | : no rows
            exec >&-; read -r call; read -r end | closed its output | -
            yes '' | keeps writing what answers nothing, so it was ended | -
            while :; do say '{"id":"p","method":"ping"}'; done | sends too many requests, or does not read the answers to them, so it was ended | -
        "#;
        for [script, what, more] in rows(table) {
            let mut server = started(script);
            let failed = call(&mut server, "{}");
            let error = failed.server_failed.expect(script);
            assert_eq!(error.message, format!("db: {what}{more}"));
            assert_eq!(failed.text, format!("the tool server db {what}"));
            let again = call(&mut server, "{}");
            assert_eq!(again.text, "the tool server db has ended");
        }
    }

    #[test]
    fn an_answer_to_nothing_is_shown_where_none_comes_in_time() {
        let wrote = "db: did not list its tools within 0.5 s; it wrote";
        let answers = "answer nothing that q asked; the last:";
        let boom = r#"say '{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"boom"}}'"#;
        for (instead, expected, is_slow) in [
            (
                r#"say '{"id":0,"result":{}}'; echo I am lost >&2"#,
                format!(
                    "{wrote} a line that answers nothing that q asked: {{\"id\":0,\"result\":{{}}}}\nI am lost"
                ),
                false,
            ),
            (
                r#"say '{'; say ' "id": 2,'; say ' "result": {}'; say '}'"#,
                format!("{wrote} 4 lines that {answers} }}"),
                false,
            ),
            (
                "say one; say two",
                format!("{wrote} 2 lines that {answers} two"),
                true,
            ),
            (
                boom,
                "db: refused to list its tools: boom (-32603)".to_owned(),
                false,
            ),
        ] {
            let (before, _) = START.split_once("answer 2").expect("a list");
            in_time(|limit| {
                let mut server = scripted(&format!("{before}{instead}; read -r end"));
                Arc::make_mut(&mut server.section).rules.start = Some(limit);
                let opened = server.open(&silent()).map(|_| ());
                let error = opened.expect_err("no tools");
                let said = format!("{}\n{}", error.message, error.quote);
                let found = (said.trim_end().to_owned(), error.advice.is_some());
                let expected = expected.replace("0.5 s", &in_seconds(limit));
                (found, (expected, is_slow))
            });
        }
    }

    #[test]
    fn a_call_whose_error_has_no_id_fails_at_once_and_one_with_another_says_what_came() {
        let error = r#"say '{"id":null,"error":{"code":-1,"message":"boom"}}'"#;
        let script = format!("read -r call; {error}; read -r call; answer 0 '{{}}'; read -r end");
        in_time(|limit| {
            let mut server = started(&script);
            assert_eq!(call(&mut server, "{}"), outcome("boom (-1)", true));
            Arc::make_mut(&mut server.section).rules.timeout = Some(limit);
            let limit = in_seconds(limit);
            let expected = format!(
                "no answer within {limit}; the server wrote a line that answers nothing that q asked"
            );
            (call(&mut server, "{}").text, expected)
        });
    }

    #[test]
    fn a_list_decides_which_tools_a_server_has_and_not_what_it_says_of_itself() {
        for capabilities in [
            "{}",
            "null",
            "[]",
            r#"{"tools":[]}"#,
            r#"{"tools":[{"name":"a"}]}"#,
            r#"{"tools":true}"#,
            r#"{"tools":null}"#,
            r#"{"prompts":{}}"#,
        ] {
            let script = START.replace(r#"{"tools":{}}"#, capabilities);
            assert_ne!(script, START);
            let server = scripted(&format!("{script} read -r end")).open(&silent());
            let names = server.map(|opened| opened.about.tools[0].name.clone());
            assert_eq!(names.ok().as_deref(), Some("a"), "{capabilities}");
        }
    }

    #[test]
    fn a_server_that_refuses_a_revision_is_asked_for_another_one_once() {
        // What it answers the first two requests with, and what it says of itself in the end or why it has failed.
        let supported = r#"{"code":-32602,"message":"Unsupported protocol version","data":{"supported":["2025-06-18","2024-11-05"]}}"#;
        let old = r#"{"code":-32600,"message":"Unsupported protocol version"}"#;
        let other = r#"{"code":-1,"message":"no"}"#;
        let in_words = |message: &str| format!("db: refused to start a conversation: {message}");
        for (first, after, expected) in [
            (supported, "", "2025-06-18".to_owned()),
            (old, "", "2024-11-05".to_owned()),
            // It ends, and is started again.
            (old, "exit 3", "2024-11-05".to_owned()),
            (other, "", in_words("no (-1)")),
            (
                old,
                "old=x",
                in_words("Unsupported protocol version (-32600)"),
            ),
        ] {
            let script = format!(
                r#"n=0; old={old}
                while read -r line; do n=$((n + 1)); case $line in
                    *notifications*) n=$((n - 1));;
                    *tools/list*) echo "{{\"id\":$n,\"result\":{{\"tools\":[{{\"name\":\"a\"}}]}}}}";;
                    *"protocolVersion\":\"$old\""*) echo "{{\"id\":$n,\"result\":{{\"protocolVersion\":\"$old\"}}}}";;
                    *) echo "{{\"id\":$n,\"error\":"'{first}'"}}"; {after};;
                esac; done"#,
                old = if first == supported {
                    "2025-06-18"
                } else {
                    "2024-11-05"
                },
                after = if after.is_empty() { ":" } else { after },
            );
            let opened = scripted(&script).open(&silent());
            let found = match opened {
                Ok(opened) => opened.about.revision,
                Err(error) => error.message,
            };
            assert_eq!(found, expected, "{first} {after}");
        }
    }

    #[test]
    fn pages_of_tools_are_read_until_one_is_the_last_or_has_no_new_tools() {
        let known = r#"{"name":"a"}"#;
        let uncallable = r#"{"name":"t","execution":{"taskSupport":"required"}}"#;
        for (first, last, names) in [
            (known, r#"{"tools":[{"name":"b"},{"name":"a"}]}"#, "a b"),
            (known, r#"{"tools":[{"name":"b"}],"nextCursor":""}"#, "a b"),
            (known, r#"{"tools":[{"name":"b"}],"nextCursor":7}"#, "a b"),
            (known, r#"{"tools":[{"name":"a"}],"nextCursor":"m"}"#, "a"),
            ("", r#"{"tools":[{"name":"b"}]}"#, "b"),
            (uncallable, r#"{"tools":[{"name":"b"}]}"#, "b"),
        ] {
            let (before, _) = START.split_once("answer 2").expect("a list");
            let first = format!(r#"answer 2 '{{"tools":[{first}],"nextCursor":"n"}}'"#);
            let script = format!("{before}{first}; read -r page; answer 3 '{last}'; read -r end");
            let opened = scripted(&script).open(&silent()).expect("tools");
            let tools = opened.about.tools.iter();
            let listed: Vec<&str> = tools.map(|tool| tool.name.as_str()).collect();
            assert_eq!(listed.join(" "), names, "{last}");
        }
    }

    #[test]
    fn pages_of_tools_that_have_no_end_are_read_up_to_a_limit_with_a_note() {
        let (before, _) = START.split_once("read -r list").expect("a list");
        let pages = r#"n=2; while read -r page; do
            answer $n "{\"tools\":[{\"name\":\"t$n\"}],\"nextCursor\":\"$n\"}"; n=$((n + 1)); done"#;
        let same = pages.replace(r#"\"nextCursor\":\"$n\""#, r#"\"nextCursor\":\"n\""#);
        for (script, count, what) in [
            (pages, 1_000, LeftOutTools::TooManyPages),
            (&same, 2, LeftOutTools::RepeatedPage),
        ] {
            let server = scripted(&format!("{before}{script}"));
            let about = server.open(&silent()).expect("tools").about;
            assert_eq!((about.tools.len(), about.left_out), (count, Some(what)));
        }
    }

    #[test]
    fn an_empty_cursor_leads_to_another_page_only_without_a_handshake() {
        let refused = r#"answer() { say "{\"jsonrpc\":\"2.0\",\"id\":$1,\"result\":$2}"; }
            say() { printf '%s\n' "$1"; }
            read -r initialize; say '{"id":1,"error":{"code":-32601,"message":"no"}}'
            read -r discover; answer 2 '{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}'
            read -r list; answer 3 '{"tools":[{"name":"a"}],"nextCursor":""}'
            read -r page; case $page in *'"cursor":""'*) answer 4 '{"tools":[{"name":"b"}]}';; esac
            read -r end"#;
        let (before, _) = START.split_once("answer 2").expect("a list");
        let agreed = format!(
            r#"{before} answer 2 '{{"tools":[{{"name":"a"}}],"nextCursor":""}}'; read -r end"#
        );
        for (script, names) in [(refused, "a b"), (&agreed, "a")] {
            let opened = scripted(script).open(&silent()).expect("tools");
            let tools = opened.about.tools.iter();
            let listed: Vec<&str> = tools.map(|tool| tool.name.as_str()).collect();
            assert_eq!(listed.join(" "), names, "{script}");
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
        assert!(failed.is_error && failed.text.contains("more than 10 MB"));
        assert_eq!(call(&mut server, "{}"), outcome("ok", false));
    }

    #[test]
    fn requests_of_the_server_are_answered_between_calls() {
        let ping =
            r#"say '{"id":"p","method":"ping"}'; read -r pong; say "pong: $pong" >&2; read -r end"#;
        let (sender, details) = mpsc::channel();
        let report: ReportLine = Arc::new(move |text: &str| _ = sender.send(text.to_owned()));
        let _server = scripted(&format!("{START}{ping}"))
            .open(&report)
            .expect("tools");
        assert_eq!(
            details.recv().expect("a line"),
            r#"pong: {"jsonrpc":"2.0","id":"p","result":{}}"#
        );
    }
}
