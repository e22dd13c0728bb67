//! What the test files share: names of rows, defaults, conversations, files, replies, servers and sandboxes.
//!
//! Test files import from here and from the harness (`sandbox`, `server`, `pty`), and never from each other.

use std::collections::BTreeMap;
use std::env;
use std::ffi::CString;
use std::fmt::{self, Debug};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::dialect::{
    Dialect, LISTED_MODEL, anthropic_reply, gemini_reply, models_reply, openai_reply,
};
use super::pty::{Terminal, without_styles};
use super::sandbox::{Q, Sandbox};
use super::server::{Recorded, Reply, Server};

// ---- Rows of tables

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

// ---- Times

/// How long a test waits for something that should happen at once, however busy the machine is.
pub const GUARD: Duration = Duration::from_secs(120);

/// Waits until something is so that should be so at once.
#[track_caller]
pub fn wait_until(reached: impl Fn() -> bool) {
    let began = Instant::now();
    while !reached() {
        assert!(began.elapsed() < GUARD, "it takes too long");
        thread::sleep(Duration::from_millis(5));
    }
}

pub const MINUTE: Duration = Duration::from_secs(60);
pub const HOUR: Duration = Duration::from_secs(60 * 60);
pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A moment in the past, as a session file has it.
pub fn ago(duration: Duration) -> String {
    moment(OffsetDateTime::now_utc() - duration)
}

/// A moment that is yet to come, as a session file has it.
pub fn ahead(duration: Duration) -> String {
    moment(OffsetDateTime::now_utc() + duration)
}

fn moment(moment: OffsetDateTime) -> String {
    let [hour, minute, second] = [moment.hour(), moment.minute(), moment.second()];
    let (date, milliseconds) = (moment.date(), moment.millisecond());
    format!("{date}T{hour:02}:{minute:02}:{second:02}.{milliseconds:03}Z")
}

/// Sets when a file was changed last, as seen from now.
#[track_caller]
pub fn age(path: &Path, age: Duration) {
    change_at(path, SystemTime::now() - age);
}

/// Sets when a file was changed last, to the moment of `CREATED`.
#[track_caller]
pub fn change_when_created(path: &Path) {
    let moment = OffsetDateTime::parse(CREATED, &Rfc3339)
        .expect("a time")
        .into();
    change_at(path, moment);
}

#[track_caller]
fn change_at(path: &Path, moment: SystemTime) {
    let file = File::open(path).expect("a file to age");
    file.set_modified(moment).expect("another time of change");
}

// ---- Conversations as files

/// When the conversations of `stored` were started and last changed: long enough ago to have expired.
pub const CREATED: &str = "2026-01-02T03:04:05.678Z";
pub const UPDATED: &str = "2026-01-02T03:09:00.000Z";
/// The id of such a conversation, and its file.
pub const ID: &str = "session_20260102030405678";
pub const ARCHIVED: &str = "session_20260102030405678.json";
/// Its first backup.
pub const EARLIER: &str = "session_20260102030405678~1.json";
/// The model of the conversations of `stored`.
pub const STORED_MODEL: &str = "stored-model";

/// A conversation with OpenAI of these texts, questions and answers in turn.
pub fn stored<S: AsRef<str>>(texts: &[S]) -> Value {
    let roles = ["user", "assistant"].into_iter().cycle();
    let messages: Vec<Value> = texts
        .iter()
        .zip(roles)
        .map(|(text, role)| json!({"role": role, "content": text.as_ref(), "timestamp": CREATED}))
        .collect();
    json!({
        "version": 1, "provider": "openai", "model": STORED_MODEL, "created": CREATED, "updated": UPDATED,
        "messages": messages,
    })
}

/// The same, but everything in it happened so long ago.
pub fn idle_for<S: AsRef<str>>(idle: Duration, texts: &[S]) -> Value {
    let moment = json!(ago(idle));
    let mut conversation = stored(texts);
    for message in conversation["messages"].as_array_mut().expect("messages") {
        message["timestamp"] = moment.clone();
    }
    let conversation = with(conversation, "created", moment.clone());
    with(conversation, "updated", moment)
}

/// The id of a conversation: `session_` and the digits of when it was begun.
#[track_caller]
pub fn id_of(conversation: &Value) -> String {
    let created = conversation["created"].as_str().expect("a time");
    let digits: String = created.chars().filter(char::is_ascii_digit).collect();
    format!("session_{digits}")
}

/// The file of the conversation that `other` makes.
pub const OTHER: &str = "session_20260115000000000.json";

/// A conversation like `stored`, but begun at another time, so that the two have not the same id.
pub fn other<S: AsRef<str>>(texts: &[S]) -> Value {
    with(stored(texts), "created", "2026-01-15T00:00:00.000Z")
}

/// The same conversation with another value in one of its fields.
pub fn with(mut conversation: Value, field: &str, value: impl Into<Value>) -> Value {
    conversation[field] = value.into();
    conversation
}

/// A PNG of one pixel, and the same in base64.
pub const PNG: &[u8] =
    b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1F\x15\xC4\x89\
    \0\0\0\rIDATx\xDAcd\xF8\xCFP\x0F\0\x03\x86\x01\x80Z4}k\0\0\0\0IEND\xAEB`\x82";
pub const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// An attachment as a session file has it.
pub fn attachment(name: &str, media: &str, data: &str) -> Value {
    json!({"name": name, "type": media, "data": data})
}

/// The same conversation with attachments of the message of this number, counted from 0.
pub fn with_attachments(mut conversation: Value, message: usize, attachments: &[Value]) -> Value {
    conversation["messages"][message]["attachments"] = json!(attachments);
    conversation
}

/// A directory with a conversation of each kind, as other programs write them, none changed at the same time as another.
pub fn with_every_kind() -> Sandbox {
    let sandbox = Sandbox::new();
    let terminal = &["terminal", "x"][..];
    let current = &["what is\n a rebase?", "x", "and", "y"];
    for (minutes, (name, created, messages)) in [
        ("current-tty1.json", "2026-03-01T00:00:00.000Z", terminal),
        ("work.json", "2026-02-01T00:00:00.000Z", &["lone question"]),
        (OTHER, "2026-01-15T00:00:00.000Z", &["older", "x"]),
        ("current.json", CREATED, current),
        ("empty.json", "2025-02-01T00:00:00.000Z", &[]),
    ]
    .into_iter()
    .enumerate()
    {
        sandbox.write_session(name, &with(stored(messages), "created", created));
        age(&sandbox.sessions().join(name), MINUTE * minutes as u32);
    }
    sandbox
}

/// What was said in a conversation, questions and answers in turn.
#[track_caller]
pub fn texts(conversation: &Value) -> Vec<String> {
    let messages = conversation["messages"].as_array().expect("messages");
    let text = |message: &Value| message["content"].as_str().expect("text").to_owned();
    messages.iter().map(text).collect()
}

impl Sandbox {
    /// The conversation in this file has exactly these texts, questions and answers in turn.
    #[track_caller]
    pub fn expect_texts<S: AsRef<str>>(&self, name: &str, expected: &[S]) {
        let conversation = self.session(name);
        let expected: Vec<&str> = expected.iter().map(AsRef::as_ref).collect();
        let right = texts(&conversation) == expected;
        let what = format!("expected in {name}: {expected:?}, not:\n{conversation:#}");
        self.check(right, &what);
    }

    /// The last message of the current conversation is this answer, and is marked as interrupted or not.
    #[track_caller]
    pub fn expect_answer(&self, text: &str, interrupted: bool) {
        let conversation = self.current();
        let answer = conversation["messages"]
            .as_array()
            .and_then(|messages| messages.last());
        let mark = interrupted.then_some(true);
        let right = answer.is_some_and(|answer| {
            answer["role"] == "assistant"
                && answer["content"] == text
                && answer.get("interrupted").map(|found| *found == true) == mark
        });
        let marked = if interrupted { "interrupted" } else { "whole" };
        let what = format!("expected the {marked} answer {text:?} in:\n{conversation:#}");
        self.check(right, &what);
    }

    /// The files of unnamed conversations that are not current, and of backups, in order.
    pub fn archived(&self) -> Vec<String> {
        let mut names = self.session_files();
        names.retain(|name| name.starts_with("session_"));
        names
    }

    /// The only one of them.
    #[track_caller]
    pub fn only_archived(&self) -> String {
        let mut names = self.archived();
        let what = format!("expected exactly one archived conversation, not {names:?}");
        self.check(names.len() == 1, &what);
        names.remove(0)
    }
}

/// Takes the lock that q takes to change a conversation, until it is dropped.
pub fn hold_the_lock(sandbox: &Sandbox) -> File {
    fs::create_dir_all(sandbox.sessions()).expect("the sessions directory");
    lock_directory(&sandbox.sessions())
}

/// Locks a directory, until it is dropped.
pub fn lock_directory(path: &Path) -> File {
    let directory = File::open(path).expect("a directory");
    directory.lock().expect("the lock");
    directory
}

// ---- Files

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

/// Everything below a directory. Where nothing has changed since, nothing was written.
pub struct Snapshot {
    directory: PathBuf,
    entries: BTreeMap<PathBuf, Entry>,
}

/// All of an entry that a write could change.
#[derive(PartialEq, Eq)]
struct Entry {
    mode: u32,
    inode: u64,
    modified: (i64, i64),
    /// Of a link its target; pipes, devices and directories have none.
    bytes: Vec<u8>,
}

/// What is below a directory now; nothing where it does not exist.
pub fn snapshot(directory: impl AsRef<Path>) -> Snapshot {
    let directory = directory.as_ref().to_owned();
    let mut entries = BTreeMap::new();
    let mut directories = vec![directory.clone()];
    while let Some(next) = directories.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            let metadata = path.symlink_metadata().expect("what an entry is");
            let bytes = match metadata.file_type() {
                kind if kind.is_file() => fs::read(&path).unwrap_or_default(),
                kind if kind.is_symlink() => fs::read_link(&path)
                    .expect("a link's target")
                    .as_os_str()
                    .as_bytes()
                    .to_vec(),
                _ => Vec::new(),
            };
            let modified = (metadata.mtime(), metadata.mtime_nsec());
            let entry = Entry {
                mode: metadata.mode(),
                inode: metadata.ino(),
                modified,
                bytes,
            };
            let name = path
                .strip_prefix(&directory)
                .expect("a path below the directory");
            if metadata.is_dir() {
                entries.insert(name.join(""), entry);
                directories.push(path);
            } else {
                entries.insert(name.to_owned(), entry);
            }
        }
    }
    Snapshot { directory, entries }
}

impl Snapshot {
    /// What has changed below the directory: `+ new`, `- gone` and `~ changed`, in this order; directories end in a slash.
    pub fn changes(&self) -> Vec<String> {
        let now = snapshot(&self.directory).entries;
        let new = now.keys().filter(|path| !self.entries.contains_key(*path));
        let new = new.map(|path| ("+", path));
        let gone = self.entries.keys().filter(|path| !now.contains_key(*path));
        let gone = gone.map(|path| ("-", path));
        let differs = |path: &&PathBuf| {
            now.get(*path)
                .is_some_and(|entry| *entry != self.entries[*path])
        };
        let changed = self.entries.keys().filter(differs).map(|path| ("~", path));
        new.chain(gone)
            .chain(changed)
            .map(|(sign, path)| format!("{sign} {}", path.display()))
            .collect()
    }

    #[track_caller]
    pub fn expect_unchanged(&self) {
        let changes = self.changes();
        assert!(
            changes.is_empty(),
            "expected no change below {}, but:\n{changes:#?}",
            self.directory.display()
        );
    }

    /// Path, mode and bytes of every entry: what a backup brings back.
    pub fn contents(self) -> Vec<(PathBuf, u32, Vec<u8>)> {
        let entries = self.entries.into_iter();
        let contents = entries.map(|(path, entry)| (path, entry.mode, entry.bytes));
        contents.collect()
    }
}

impl Debug for Snapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |entry: &Entry| format!("{:o} {} bytes", entry.mode, entry.bytes.len());
        formatter
            .debug_map()
            .entries(
                self.entries
                    .iter()
                    .map(|(path, entry)| (path, shown(entry))),
            )
            .finish()
    }
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

// ---- Servers

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

/// A sandbox whose current conversation has this many pairs, `question 1`, `answer 1`, …, and does not expire.
pub fn talked(provider: &str, pairs: usize) -> Sandbox {
    let texts: Vec<String> = (1..=pairs)
        .flat_map(|number| [format!("question {number}"), format!("answer {number}")])
        .collect();
    let sandbox = Sandbox::new().env("Q_EXPIRE", "never");
    sandbox.write_current(&with(stored(&texts), "provider", provider));
    sandbox
}

// ---- On a terminal

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

// ---- Asking and being refused

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

// ---- What this machine has

/// Whether a program cannot be used here, and the test is skipped. The trial must succeed where it can.
#[track_caller]
pub fn lacks(program: &str, trial: &str) -> bool {
    let tried = Sandbox::new().shell(trial).run();
    let lacks = !tried.status.success();
    if lacks {
        let why = tried.stderr_text();
        skip(&format!("{program} cannot be used here: {why}"));
    }
    lacks
}

/// Whether this kernel cannot hold a confined command, by what q says of one. Then the test is skipped.
#[track_caller]
pub fn cannot_confine() -> bool {
    let sandbox = Sandbox::new();
    sandbox.config("[tools.x]\nconfine = {}\n[tools.x.ls]\nrun = [\"ls\"]\n");
    let listed = sandbox.q(&["--list-tools"]).run();
    let lacks = listed.stderr_text().contains("cannot be confined");
    if lacks {
        skip(&listed.stderr_text());
    }
    lacks
}

/// Says why a test is skipped. With `SKIP_NO_TEST` in the environment that is a failure.
#[track_caller]
pub fn skip(why: &str) {
    let is_allowed = env::var_os("SKIP_NO_TEST").is_none();
    assert!(is_allowed, "it would be skipped: {why}");
    // A test that passes does not show what the macros print; `.ci/run` counts these lines.
    writeln!(io::stderr(), "skipped: {}", why.trim_end()).expect("standard error");
}

impl Dialect {
    /// q with this dialect's key, its API at `server`, and no second try.
    pub fn q(&self, sandbox: &Sandbox, server: &Server, args: &[&str]) -> Q {
        sandbox.q(args).speaks(self, server).env("Q_RETRIES", "0")
    }
}

impl Q {
    /// Standard output and standard error are this terminal.
    pub fn on(self, terminal: &Terminal) -> Q {
        self.stdout_to(terminal.end()).stderr_to(terminal.end())
    }
}

impl Q {
    /// A terminal of this many columns with what q prints on it, and nothing else.
    #[track_caller]
    pub fn shown_on(self, columns: u16) -> Terminal {
        let terminal = Terminal::new(columns);
        self.stdout_to(terminal.end()).run().success();
        terminal
    }
}

impl Terminal {
    /// Everything that arrived, with the ends of lines as programs write them, once the programs have ended.
    #[track_caller]
    pub fn text(self) -> String {
        let text = String::from_utf8(self.bytes()).expect("UTF-8");
        text.replace("\r\n", "\n")
    }

    /// The same without styles.
    #[track_caller]
    pub fn text_alone(self) -> String {
        without_styles(&self.text())
    }

    /// Waits for each question in turn, and types the answer to it.
    #[track_caller]
    pub fn answer(&self, said: &[(&str, &str)]) {
        let mut seen = 0;
        for (question, answer) in said {
            seen = self.wait_for(question, seen).len();
            self.type_in(answer);
        }
    }
}

/// How many times as fast as others the clock of `fast_clock` runs.
pub const FASTER: u32 = 100;

/// A library to preload, with which the clock of q runs so fast; nothing where there is no compiler for C.
pub fn fast_clock(sandbox: &Sandbox) -> Option<PathBuf> {
    library(sandbox, "clock", "tests/cli/fast_clock.c")
}

/// A library to preload, which puts a layer under q: the variable `LAYER` names what the file system does.
pub fn layer(sandbox: &Sandbox) -> Option<PathBuf> {
    library(sandbox, "layer", "tests/soak/layer.c")
}

fn library(sandbox: &Sandbox, name: &str, source: &str) -> Option<PathBuf> {
    if lacks("a compiler for C", "cc --version") {
        return None;
    }
    sandbox.write_home(&format!("{name}.c"), repository_file(source));
    let compile = format!("cc -shared -fPIC -o {name}.so {name}.c -ldl");
    sandbox.shell(&compile).run().success();
    Some(sandbox.home().join(format!("{name}.so")))
}
