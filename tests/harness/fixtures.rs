//! What the test files share beyond the rest of the harness: names of rows, addresses, documents, servers, runs.
//!
//! Test files import from here and from the rest of the harness, and never from each other.

use std::ffi::CString;
use std::fmt::Debug;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::json;

use super::dialect::{
    Dialect, LISTED_MODEL, anthropic_reply, gemini_reply, models_reply, openai_reply,
};
use super::pty::Terminal;
use super::run::Q;
use super::sandbox::Sandbox;
use super::server::{Recorded, Reply, Server};

/// Names a row of a table: shown if the test fails before this is dropped.
///
///     for (name, input) in TABLE {
///         let _case = case(name);
#[must_use = "a row is named for as long as this lives"]
pub struct Case<T: Debug>(T);

pub fn case<T: Debug>(name: T) -> Case<T> {
    Case(name)
}

impl<T: Debug> Drop for Case<T> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("failed in the case: {:?}", self.0);
        }
    }
}

/// The most bytes that the file of a conversation may have.
pub const LARGEST: usize = 10_000_000;

// ---- Addresses that lead nowhere

/// An address where nothing listens: a port that only root could open, and nobody does.
pub const CLOSED: &str = "http://127.0.0.1:1";

/// A name that no resolver has to be asked for: a label of it is longer than labels can be.
pub const UNKNOWN_HOST: &str =
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.invalid";

#[track_caller]
pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("another mode");
}

/// A named pipe.
#[track_caller]
pub fn make_pipe(path: &Path) {
    let name = CString::new(path.as_os_str().as_bytes()).expect("a path without NUL");
    // SAFETY: the name ends in NUL and outlives the call.
    let made = unsafe { libc::mkfifo(name.as_ptr(), 0o600) };
    let error = io::Error::last_os_error();
    assert_eq!(made, 0, "{}: {error}", path.display());
}

/// A file of the repository.
#[track_caller]
pub fn repository_file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The README, and after it the manual as `q --help` prints it.
#[track_caller]
pub fn documents() -> String {
    repository_file("README.md")
        + "\n"
        + &Sandbox::new().q(&["--help"]).run().success().stdout_text()
}

/// A command that the README or the manual has, word for word.
#[track_caller]
pub fn shown(command: &str) -> &str {
    let is_right = documents().contains(command);
    assert!(is_right, "no document shows: {command}");
    command
}

/// The sections of roles that the README and the manual show.
#[track_caller]
pub fn shown_roles() -> String {
    let documents = documents();
    let mut roles = String::new();
    for header in ["    [roles.review]\n", "    [roles.commit]\n"] {
        let (_, rest) = documents.split_once(header).expect("a role");
        let (lines, _) = rest.split_once("\n\n").expect("its end");
        roles.push_str(&format!("{header}{lines}\n"));
    }
    roles
}

impl Server {
    pub fn openai(answer: &str) -> Server {
        let answer = answer.to_owned();
        Server::openai_each(move |_| answer.clone())
    }

    /// Answers each question with what `answer` makes of its number; questions are counted from 0, model lists not.
    pub fn openai_each(answer: impl Fn(usize) -> String + Send + Sync + 'static) -> Server {
        let questions = AtomicUsize::new(0);
        Server::start(move |request, _| {
            if request.method == "POST" {
                let answer = answer(questions.fetch_add(1, Ordering::SeqCst));
                openai_reply(request, &answer)
            } else {
                let list = json!({"data": [{"id": LISTED_MODEL, "object": "model"}]});
                models_reply(request, list)
            }
        })
    }
}

/// A server that is every provider at once, each below a path of its name, and lists the models `first` and `second`.
pub fn every_provider(answer: &'static str) -> Server {
    Server::start(move |request, _| match request.method.as_str() {
        "GET" => Reply::json(200, json!({"data": [{"id": "first"}, {"id": "second"}]})),
        _ if request.path.contains("/v1/messages") => anthropic_reply(request, answer),
        _ if request.path.contains("/v1beta/") => gemini_reply(request, answer),
        _ => openai_reply(request, answer),
    })
}

/// A server whose answers have their number, and a sandbox that asks it.
pub fn numbered() -> (Server, Sandbox) {
    let server = Server::openai_each(|number| format!("answer {number}"));
    let sandbox = Sandbox::new().server_env(&server);
    (server, sandbox)
}

impl Dialect {
    /// q with this dialect's key, its API at `server`, and no second try.
    pub fn q(&self, sandbox: &Sandbox, server: &Server, args: &[&str]) -> Q {
        sandbox.q(args).speaks(self, server).env("Q_RETRIES", "0")
    }
}

/// q on a terminal of its own that it is in the foreground of.
pub fn in_foreground(sandbox: &Sandbox, terminal: &Terminal, args: &[&str]) -> Q {
    let q = sandbox.shell("exec setsid -c -w q \"$@\"");
    let q = q.arg("sh").args(args);
    q.stdin_from(terminal.end())
        .stdout_to(terminal.end())
        .stderr_to(terminal.end())
}

/// What runs `script` in a session of its own, on this terminal.
pub fn session(sandbox: &Sandbox, terminal: &Terminal, script: &str) -> Q {
    let q = sandbox.shell("exec setsid -c -w sh -c \"$0\"").arg(script);
    q.stdin_from(terminal.end())
        .stdout_to(terminal.end())
        .stderr_to(terminal.end())
}

/// What the last message of an OpenAI-like request says: the question, and what goes before it in the same prompt.
#[track_caller]
pub fn prompt(request: &Recorded) -> String {
    let body = request.json();
    let last = body["messages"]
        .as_array()
        .and_then(|messages| messages.last())
        .expect("a message");
    assert_eq!(last["role"], "user", "{body:#}");
    last["content"].as_str().expect("text").to_owned()
}

/// A run that must be answered, and what was asked by it.
#[track_caller]
pub fn asked_by(run: impl FnOnce(&Sandbox) -> Q) -> String {
    let server = Server::openai("fine");
    let sandbox = Sandbox::new().server_env(&server);
    run(&sandbox).run().success().stdout("fine\n");
    prompt(&server.request())
}
