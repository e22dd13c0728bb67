//! What the test files share: names of rows, defaults, conversations, files, replies, servers and sandboxes.
//!
//! Test files import from here and from the harness (`sandbox`, `server`, `pty`), and never from each other.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fmt::{self, Debug};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::pty::Terminal;
use crate::sandbox::{Outcome, Q, Sandbox};
use crate::server::{Gate, Recorded, Reply, Server};

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

/// How many cases of data run at once: most of their time is spent in starting programs and in waiting.
const WORKERS: usize = 4;

/// What is wrong with these cases, which run at the same time, in order.
pub fn failures_of<T: Sync>(
    cases: &[T],
    failure: impl Fn(&T) -> Option<String> + Sync,
) -> Vec<String> {
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let failure = failure(case);
                    failures.lock().expect("no panic").extend(failure);
                }
            });
        }
    });
    let mut failures = failures.into_inner().expect("no panic");
    failures.sort();
    failures
}

// ---- What q has built in

/// The models that are asked where none is named.
pub const OPENAI_MODEL: &str = "gpt-6-luna";
pub const ANTHROPIC_MODEL: &str = "claude-haiku-5-5";
pub const GROQ_MODEL: &str = "openai/gpt-oss-120b";
pub const XAI_MODEL: &str = "grok-latest";

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
    let (date, hour, minute, second) = (
        moment.date(),
        moment.hour(),
        moment.minute(),
        moment.second(),
    );
    format!(
        "{date}T{hour:02}:{minute:02}:{second:02}.{:03}Z",
        moment.millisecond()
    )
}

/// Sets when a file was changed last, as seen from now.
#[track_caller]
pub fn age(path: &Path, age: Duration) {
    change_at(path, SystemTime::now() - age);
}

/// Sets when a file was changed last, to the moment of `CREATED`.
#[track_caller]
pub fn change_when_created(path: &Path) {
    change_at(
        path,
        OffsetDateTime::parse(CREATED, &Rfc3339)
            .expect("a time")
            .into(),
    );
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
/// Every action on conversations, as one types it.
pub const ACTIONS: &[&[&str]] = &[
    &["--history"],
    &["--history", "--json"],
    &["--history", "-s", "work"],
    &["--last"],
    &["--last", "--json"],
    &["--last", "-s", "work"],
    &["--list"],
    &["--list", "--json"],
    &["--list", "one"],
    &["--copy", "branch"],
    &["--copy", "branch", "-s", "work"],
    &["--undo"],
    &["--undo", "--json"],
    &["--undo", "-s", "work"],
    &["--clear"],
    &["--clear", "--json"],
    &["--clear", "-s", "work"],
    &["--clear", "--all", "--yes"],
    &["--clear", "--all", "--yes", "--json"],
];

/// The id of such a conversation, and its file.
pub const ID: &str = "session_20260102030405678";
pub const ARCHIVED: &str = "session_20260102030405678.json";
/// Its first earlier state.
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
    with(
        with(conversation, "created", moment.clone()),
        "updated",
        moment,
    )
}

/// The id of a conversation: `session_` and the digits of when it was begun.
#[track_caller]
pub fn id_of(conversation: &Value) -> String {
    let created = conversation["created"].as_str().expect("a time");
    format!(
        "session_{}",
        created
            .chars()
            .filter(char::is_ascii_digit)
            .collect::<String>()
    )
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

/// A folder with a conversation of each kind, as other programs write them, none changed at the same time as another.
pub fn with_every_kind() -> Sandbox {
    let sandbox = Sandbox::new();
    for (name, created, messages) in [
        (
            "current-tty1.json",
            "2026-03-01T00:00:00.000Z",
            &["terminal", "x"][..],
        ),
        ("work.json", "2026-02-01T00:00:00.000Z", &["lone question"]),
        (OTHER, "2026-01-15T00:00:00.000Z", &["older", "x"]),
        (
            "current.json",
            CREATED,
            &["what is\n a rebase?", "x", "and", "y"],
        ),
        ("empty.json", "2025-02-01T00:00:00.000Z", &[]),
    ] {
        sandbox.write_session(name, &with(stored(messages), "created", created));
    }
    for (minutes, name) in [
        "current-tty1.json",
        "work.json",
        OTHER,
        "current.json",
        "empty.json",
    ]
    .iter()
    .enumerate()
    {
        age(&sandbox.sessions().join(name), MINUTE * minutes as u32);
    }
    sandbox
}

/// What was said in a conversation, questions and answers in turn.
#[track_caller]
pub fn texts(conversation: &Value) -> Vec<String> {
    let messages = conversation["messages"].as_array().expect("messages");
    messages
        .iter()
        .map(|message| message["content"].as_str().expect("text").to_owned())
        .collect()
}

impl Sandbox {
    /// The conversation in this file has exactly these texts, questions and answers in turn.
    #[track_caller]
    pub fn expect_texts<S: AsRef<str>>(&self, name: &str, expected: &[S]) {
        let conversation = self.session(name);
        let expected: Vec<&str> = expected.iter().map(AsRef::as_ref).collect();
        let right = texts(&conversation) == expected;
        self.check(right, || {
            format!("expected in {name}: {expected:?}, not:\n{conversation:#}")
        });
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
        self.check(right, || {
            format!("expected the {marked} answer {text:?} in:\n{conversation:#}")
        });
    }

    /// The files of unnamed conversations that are not current, and of earlier states, in order.
    pub fn archived(&self) -> Vec<String> {
        self.session_files()
            .into_iter()
            .filter(|name| name.starts_with("session_"))
            .collect()
    }

    /// The only one of them.
    #[track_caller]
    pub fn only_archived(&self) -> String {
        let mut names = self.archived();
        self.check(names.len() == 1, || {
            format!("expected exactly one archived conversation, not {names:?}")
        });
        names.remove(0)
    }

    /// The conversation in a file below `home/`.
    #[track_caller]
    pub fn home_session(&self, name: &str) -> Value {
        let bytes = fs::read(self.home().join(name)).expect("a file in the home folder");
        serde_json::from_slice(&bytes).expect("a conversation")
    }
}

/// Takes the lock that q takes to change a conversation, until it is dropped.
pub fn hold_the_lock(sandbox: &Sandbox) -> File {
    fs::create_dir_all(sandbox.sessions()).expect("the sessions folder");
    lock_folder(&sandbox.sessions())
}

/// Locks a folder, until it is dropped.
pub fn lock_folder(path: &Path) -> File {
    let folder = File::open(path).expect("a folder");
    folder.lock().expect("the lock");
    folder
}

/// As on another day: q looks for what is too old.
pub fn another_day(sandbox: &Sandbox) {
    let _ = fs::remove_file(sandbox.state().join("q/swept"));
}

// ---- Files

/// The mode of a file or folder, without its kind.
#[track_caller]
pub fn mode(path: &Path) -> u32 {
    path.metadata().expect("a file").permissions().mode() & 0o7777
}

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
    assert_eq!(
        made,
        0,
        "{}: {}",
        path.display(),
        io::Error::last_os_error()
    );
}

/// Everything below a folder. Where nothing has changed since, nothing was written.
pub struct Snapshot {
    folder: PathBuf,
    entries: BTreeMap<PathBuf, Entry>,
}

/// All of an entry that a write could change.
#[derive(PartialEq, Eq)]
struct Entry {
    mode: u32,
    inode: u64,
    modified: (i64, i64),
    /// Of a link its target; pipes, devices and folders have none.
    bytes: Vec<u8>,
}

/// What is below a folder now; nothing where it does not exist.
pub fn snapshot(folder: impl AsRef<Path>) -> Snapshot {
    let folder = folder.as_ref().to_owned();
    let mut entries = BTreeMap::new();
    let mut folders = vec![folder.clone()];
    while let Some(next) = folders.pop() {
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
            let name = path.strip_prefix(&folder).expect("a path below the folder");
            if metadata.is_dir() {
                entries.insert(name.join(""), entry);
                folders.push(path);
            } else {
                entries.insert(name.to_owned(), entry);
            }
        }
    }
    Snapshot { folder, entries }
}

impl Snapshot {
    /// What has changed below the folder: `+ new`, `- gone` and `~ changed`, in this order; folders end in a slash.
    pub fn changes(&self) -> Vec<String> {
        let now = snapshot(&self.folder).entries;
        let new = now
            .keys()
            .filter(|path| !self.entries.contains_key(*path))
            .map(|path| ("+", path));
        let gone = self
            .entries
            .keys()
            .filter(|path| !now.contains_key(*path))
            .map(|path| ("-", path));
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
            self.folder.display()
        );
    }

    #[track_caller]
    pub fn expect_empty(&self) {
        assert!(
            self.entries.is_empty(),
            "expected nothing below {}, but:\n{self:?}",
            self.folder.display()
        );
    }

    /// Path, mode and bytes of every entry: what a backup brings back.
    pub fn contents(self) -> Vec<(PathBuf, u32, Vec<u8>)> {
        self.entries
            .into_iter()
            .map(|(path, entry)| (path, entry.mode, entry.bytes))
            .collect()
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
    assert!(
        documents().contains(command),
        "no document shows: {command}"
    );
    command
}

/// The sections of roles that the README shows.
#[track_caller]
pub fn readme_roles() -> String {
    let readme = repository_file("README.md");
    let (_, rest) = readme.split_once("    [roles.review]").expect("the roles");
    let lines = rest
        .lines()
        .take_while(|line| line.is_empty() || line.contains(" = ") || line.contains("[roles."));
    lines.fold("[roles.review]".to_owned(), |text, line| {
        format!("{text}\n{line}")
    })
}

// ---- Replies

/// What the ready-made answers report as the size of the question.
pub const INPUT_TOKENS: u64 = 11;
/// What the ready-made answers report as the size of the answer.
pub const OUTPUT_TOKENS: u64 = 7;
/// The only model that the ready-made servers list.
pub const LISTED_MODEL: &str = "test-model";

/// What ends an OpenAI-like stream.
pub const DONE: &[u8] = b"data: [DONE]\n\n";

/// One event of an OpenAI-like stream: more of the answer.
pub fn word(text: &str) -> Vec<u8> {
    openai_event(json!({"content": text}), None)
}

/// One event of an OpenAI-like stream: why the answer ends.
pub fn finish(reason: &str) -> Vec<u8> {
    openai_event(json!({}), Some(reason))
}

/// One event of a stream that has any other JSON.
pub fn data(event: &Value) -> Vec<u8> {
    format!("data: {event}\n\n").into_bytes()
}

/// An error as OpenAI-like servers report it.
pub fn failure(status: u16, message: &str) -> Reply {
    Reply::json(status, json!({"error": {"message": message}}))
}

/// The first part of an answer at once, the rest when the gate opens.
pub fn in_two_parts(first: &str, gate: &Gate, rest: &str) -> Reply {
    Reply::sse([word(first)])
        .wait_for(gate)
        .pieces(openai_stream(&[rest]))
}

/// An answer of which nothing comes until the gate opens.
pub fn held_back(gate: &Gate, answer: &str) -> Reply {
    Reply::sse([""; 0])
        .wait_for(gate)
        .pieces(openai_stream(&[answer]))
}

/// The first part of an answer, and nothing more.
pub fn first_word_then_silence() -> Reply {
    Reply::sse([word("first ")]).hang()
}

/// The reply of an OpenAI-like server: a stream or whole, as the request asks.
pub fn openai_reply(request: &Recorded, answer: &str) -> Reply {
    if wants_stream(request) {
        return Reply::sse(openai_stream(&deltas(answer)));
    }
    let message = json!({"role": "assistant", "content": answer});
    Reply::json(
        200,
        json!({
            "id": "chatcmpl-1", "object": "chat.completion", "model": LISTED_MODEL,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": openai_usage(),
        }),
    )
}

/// The reply of an Anthropic-like server: a stream or whole, as the request asks.
pub fn anthropic_reply(request: &Recorded, answer: &str) -> Reply {
    if wants_stream(request) {
        return Reply::sse(anthropic_stream(&deltas(answer)));
    }
    Reply::json(
        200,
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": LISTED_MODEL,
            "content": [{"type": "text", "text": answer}],
            "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS},
        }),
    )
}

/// The reply of a server with the Responses API: a stream or whole, as the request asks.
pub fn responses_reply(request: &Recorded, answer: &str) -> Reply {
    if wants_stream(request) {
        return Reply::sse(responses_stream(&deltas(answer)));
    }
    Reply::json(200, response(answer))
}

/// The reply of a Gemini-like server: a stream or whole, as the path asks.
pub fn gemini_reply(request: &Recorded, answer: &str) -> Reply {
    if request.path.contains(":streamGenerateContent") {
        return Reply::sse(gemini_stream(&deltas(answer)));
    }
    let mut whole = gemini_event(answer, true);
    whole["modelVersion"] = json!(LISTED_MODEL);
    Reply::json(200, whole)
}

/// The list where a list of models was asked for, else 404.
fn models_reply(request: &Recorded, list: Value) -> Reply {
    let path = request.path.split('?').next().unwrap_or_default();
    if request.method == "GET" && path.ends_with("/models") {
        return Reply::json(200, list);
    }
    let message = format!("nothing at {} {}", request.method, request.path);
    Reply::json(404, json!({"error": {"message": message}}))
}

fn wants_stream(request: &Recorded) -> bool {
    serde_json::from_slice::<Value>(&request.body).is_ok_and(|body| body["stream"] == true)
}

/// An answer in pieces the size of words, as models send it.
fn deltas(answer: &str) -> Vec<&str> {
    answer.split_inclusive(' ').collect()
}

/// One event a piece: the role, each delta, the finish reason, the usage, `[DONE]`.
pub fn openai_stream<S: AsRef<str>>(deltas: &[S]) -> Vec<Vec<u8>> {
    let mut events = vec![openai_event(
        json!({"role": "assistant", "content": ""}),
        None,
    )];
    for delta in deltas {
        events.push(openai_event(json!({"content": delta.as_ref()}), None));
    }
    events.push(openai_event(json!({}), Some("stop")));
    let usage = json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "model": LISTED_MODEL,
        "choices": [], "usage": openai_usage(),
    });
    events.push(format!("data: {usage}\n\n").into_bytes());
    events.push(DONE.to_vec());
    events
}

/// One event of an OpenAI-like stream, for streams that are put together by hand.
pub fn openai_event(delta: Value, finish_reason: Option<&str>) -> Vec<u8> {
    let event = json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "model": LISTED_MODEL,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    });
    format!("data: {event}\n\n").into_bytes()
}

fn openai_usage() -> Value {
    json!({
        "prompt_tokens": INPUT_TOKENS,
        "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    })
}

/// One event a piece: `message_start`, `content_block_start`, `ping`, each delta, `content_block_stop`,
/// `message_delta`, `message_stop`.
pub fn anthropic_stream<S: AsRef<str>>(deltas: &[S]) -> Vec<Vec<u8>> {
    let mut events = vec![
        typed_event(json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": LISTED_MODEL,
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": 1},
        }})),
        typed_event(json!({
            "type": "content_block_start", "index": 0,
            "content_block": {"type": "text", "text": ""},
        })),
        typed_event(json!({"type": "ping"})),
    ];
    for delta in deltas {
        events.push(typed_event(json!({
            "type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": delta.as_ref()},
        })));
    }
    events.extend([
        typed_event(json!({"type": "content_block_stop", "index": 0})),
        typed_event(json!({
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": null},
            "usage": {"output_tokens": OUTPUT_TOKENS},
        })),
        typed_event(json!({"type": "message_stop"})),
    ]);
    events
}

/// One event of a stream whose events are named by their own `type`.
pub fn typed_event(event: Value) -> Vec<u8> {
    let name = event["type"].as_str().expect("an event's type");
    format!("event: {name}\ndata: {event}\n\n").into_bytes()
}

/// One event a piece: `response.created`, each delta, and `response.completed`, which repeats the answer.
pub fn responses_stream<S: AsRef<str>>(deltas: &[S]) -> Vec<Vec<u8>> {
    let mut events = vec![
        json!({"type": "response.created", "response": {"status": "in_progress", "output": []}}),
    ];
    let delta = |delta: &S| json!({"type": "response.output_text.delta", "delta": delta.as_ref()});
    events.extend(deltas.iter().map(delta));
    let answer: String = deltas.iter().map(AsRef::as_ref).collect();
    events.push(json!({"type": "response.completed", "response": response(&answer)}));
    events.into_iter().map(typed_event).collect()
}

fn response(answer: &str) -> Value {
    let content = json!([{"type": "output_text", "text": answer, "annotations": []}]);
    json!({
        "id": "resp_1", "object": "response", "status": "completed", "model": LISTED_MODEL, "error": null,
        "output": [{"type": "message", "role": "assistant", "status": "completed", "content": content}],
        "usage": {
            "input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    })
}

/// One event a piece: each delta, then the terminal event with an empty text, the finish reason and the usage.
pub fn gemini_stream<S: AsRef<str>>(deltas: &[S]) -> Vec<Vec<u8>> {
    let mut events = Vec::new();
    for delta in deltas {
        events.push(gemini_event(delta.as_ref(), false));
    }
    events.push(gemini_event("", true));
    let lines = events
        .iter()
        .map(|event| format!("data: {event}\r\n\r\n").into_bytes());
    lines.collect()
}

fn gemini_event(text: &str, last: bool) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": [{"text": text}]}});
    if last {
        candidate["finishReason"] = json!("STOP");
    }
    let mut usage = json!({"promptTokenCount": INPUT_TOKENS});
    if last {
        usage["candidatesTokenCount"] = json!(OUTPUT_TOKENS);
        usage["totalTokenCount"] = json!(INPUT_TOKENS + OUTPUT_TOKENS);
    }
    json!({"candidates": [candidate], "usageMetadata": usage})
}

/// A reply that calls tools: id, name and arguments of each; in the form of the dialect, streamed in fragments or whole.
pub fn calling(dialect: &Dialect, text: &str, calls: &[(&str, &str, Value)]) -> Reply {
    match dialect.provider {
        "openai" => Reply::sse(openai_calls(text, calls)),
        "anthropic" => Reply::sse(anthropic_calls(text, calls)),
        "responses" => Reply::sse(responses_calls(text, calls)),
        _ => Reply::sse(gemini_calls(text, calls)),
    }
}

/// The arguments come in pieces of three bytes.
fn openai_calls(text: &str, calls: &[(&str, &str, Value)]) -> Vec<Vec<u8>> {
    let mut events = vec![openai_event(
        json!({"role": "assistant", "content": text}),
        None,
    )];
    for (index, (id, name, arguments)) in calls.iter().enumerate() {
        let function = json!({"name": name, "arguments": ""});
        let first = json!({"index": index, "id": id, "type": "function", "function": function});
        events.push(openai_event(json!({"tool_calls": [first]}), None));
        for piece in arguments.to_string().as_bytes().chunks(3) {
            let piece = std::str::from_utf8(piece).expect("plain arguments");
            let fragment = json!({"index": index, "function": {"arguments": piece}});
            events.push(openai_event(json!({"tool_calls": [fragment]}), None));
        }
    }
    events.push(openai_event(json!({}), Some("tool_calls")));
    events.push(DONE.to_vec());
    events
}

/// With thinking and its signature before the text.
fn anthropic_calls(text: &str, calls: &[(&str, &str, Value)]) -> Vec<Vec<u8>> {
    let mut events = vec![json!({"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": LISTED_MODEL, "content": [],
        "stop_reason": null, "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": 1},
    }})];
    let mut index = 0;
    let mut block = |block: Value, deltas: Vec<Value>| {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
        let delta = |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
        events.extend(deltas.into_iter().map(delta));
        events.push(json!({"type": "content_block_stop", "index": index}));
        index += 1;
    };
    let thinking = json!({"type": "thinking_delta", "thinking": "hm"});
    let signature = json!({"type": "signature_delta", "signature": "c2ln"});
    block(
        json!({"type": "thinking", "thinking": "", "signature": ""}),
        vec![thinking, signature],
    );
    if !text.is_empty() {
        block(
            json!({"type": "text", "text": ""}),
            vec![json!({"type": "text_delta", "text": text})],
        );
    }
    for (id, name, arguments) in calls {
        let arguments = arguments.to_string();
        let pieces = arguments
            .as_bytes()
            .chunks(3)
            .map(|piece| std::str::from_utf8(piece).expect("plain arguments"));
        let deltas = pieces
            .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
            .collect();
        block(
            json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
            deltas,
        );
    }
    let usage = json!({"output_tokens": OUTPUT_TOKENS});
    events.push(
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage}),
    );
    events.push(json!({"type": "message_stop"}));
    events.into_iter().map(typed_event).collect()
}

/// With encrypted reasoning before the text.
fn responses_calls(text: &str, calls: &[(&str, &str, Value)]) -> Vec<Vec<u8>> {
    let mut items = vec![
        json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"}),
    ];
    if !text.is_empty() {
        items.push(response(text)["output"][0].clone());
    }
    items.extend(calls.iter().map(|(id, name, arguments)| {
        json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name,
            "arguments": arguments.to_string(), "status": "completed"})
    }));
    let mut events = vec![
        json!({"type": "response.created", "response": {"status": "in_progress", "output": []}}),
    ];
    for (index, item) in items.iter().enumerate() {
        events.push(
            json!({"type": "response.output_item.added", "output_index": index, "item": item}),
        );
        if item["type"] == "message" {
            events.push(json!({"type": "response.output_text.delta", "delta": text}));
        }
        events.push(
            json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        );
    }
    let mut done = response("");
    done["output"] = json!(items);
    events.push(json!({"type": "response.completed", "response": done}));
    events.into_iter().map(typed_event).collect()
}

/// With a signature on the first call.
fn gemini_calls(text: &str, calls: &[(&str, &str, Value)]) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(json!({"text": text}));
    }
    for (index, (id, name, arguments)) in calls.iter().enumerate() {
        let mut part = json!({"functionCall": {"id": id, "name": name, "args": arguments}});
        if index == 0 {
            part["thoughtSignature"] = json!("c2ln");
        }
        parts.push(part);
    }
    let events = parts.iter().enumerate().map(|(index, part)| {
        let mut candidate = json!({"content": {"role": "model", "parts": [part]}});
        if index + 1 == parts.len() {
            candidate["finishReason"] = json!("STOP");
        }
        data(&json!({"candidates": [candidate], "usageMetadata": {"promptTokenCount": INPUT_TOKENS}}))
    });
    events.collect()
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
                models_reply(
                    request,
                    json!({"data": [{"id": LISTED_MODEL, "object": "model"}]}),
                )
            }
        })
    }

    pub fn anthropic(answer: &str) -> Server {
        let answer = answer.to_owned();
        Server::start(move |request, _| {
            if request.method == "POST" {
                anthropic_reply(request, &answer)
            } else {
                models_reply(
                    request,
                    json!({"data": [{"id": LISTED_MODEL, "type": "model"}]}),
                )
            }
        })
    }
}

/// A server that is every provider at once, each below a path of its name, and lists the models `first` and `second`.
pub fn everybody(answer: &'static str) -> Server {
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

// ---- Dialects

/// A built-in provider for each dialect, and the test server that speaks it.
pub struct Dialect {
    pub provider: &'static str,
    pub env: fn(Q, &Server) -> Q,
    /// A whole answer, or a stream where the request asks for one.
    pub reply: fn(&Recorded, &str) -> Reply,
    /// The events of an answer; the last one is the terminal event.
    pub stream: fn(&[&'static str]) -> Vec<Vec<u8>>,
    /// What ends an answer but for its terminal event: the number of events at the end of `stream`.
    pub after_finish: usize,
}

pub const DIALECTS: [Dialect; 4] = [
    Dialect {
        provider: "openai",
        env: Q::server_env,
        reply: openai_reply,
        stream: openai_stream::<&str>,
        after_finish: 2,
    },
    Dialect {
        provider: "anthropic",
        env: Q::anthropic_env,
        reply: anthropic_reply,
        stream: anthropic_stream::<&str>,
        after_finish: 1,
    },
    Dialect {
        provider: "gemini",
        env: Q::gemini_env,
        reply: gemini_reply,
        stream: gemini_stream::<&str>,
        after_finish: 0,
    },
    Dialect {
        provider: "responses",
        env: Q::responses_env,
        reply: responses_reply,
        stream: responses_stream::<&str>,
        after_finish: 0,
    },
];

impl Dialect {
    /// q with this dialect's key, its API at `server`, and no second try.
    pub fn q(&self, sandbox: &Sandbox, server: &Server, args: &[&str]) -> Q {
        (self.env)(sandbox.q(args), server).env("Q_RETRIES", "0")
    }

    /// The events of an answer that breaks off: neither the terminal event nor the finish reason before it.
    pub fn unfinished(&self, words: &[&'static str]) -> Vec<Vec<u8>> {
        let mut events = (self.stream)(words);
        events.truncate(events.len() - 1 - self.after_finish);
        events
    }

    /// An error as this dialect's servers report it: in a body, and as the data of an event.
    pub fn error(&self, status: u16, message: &str) -> Value {
        match self.provider {
            "openai" | "responses" => {
                json!({"error": {"message": message, "type": "some_error", "code": null}})
            }
            "anthropic" => {
                json!({"type": "error", "error": {"type": "some_error", "message": message}})
            }
            _ => json!({"error": {"code": status, "message": message, "status": "SOME_ERROR"}}),
        }
    }

    /// The system prompt of a request, and its messages as role and text.
    pub fn sent(&self, request: &Recorded) -> (Option<String>, Vec<(String, String)>) {
        let body = request.json();
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let (list, content) = match self.provider {
            "gemini" => ("contents", "/parts/0/text"),
            "responses" => ("input", "/content/0/text"),
            _ => ("messages", "/content"),
        };
        let said = |value: &Value| {
            (
                text(&value["role"]),
                text(value.pointer(content).expect("content")),
            )
        };
        let mut messages: Vec<_> = body[list]
            .as_array()
            .expect("messages")
            .iter()
            .map(said)
            .collect();
        let system = match self.provider {
            "openai" if messages[0].0 == "system" => Some(messages.remove(0).1),
            "openai" => None,
            "anthropic" => body.get("system").map(text),
            "responses" => body.get("instructions").map(text),
            _ => body
                .get("systemInstruction")
                .map(|system| text(&system["parts"][0]["text"])),
        };
        (system, messages)
    }

    /// The role of the model's messages.
    pub fn assistant(&self) -> &'static str {
        if self.provider == "gemini" {
            "model"
        } else {
            "assistant"
        }
    }
}

/// The dialects that a built-in provider speaks at any address, so that a variable moves it to a server of the tests.
pub fn built_in_dialects() -> impl Iterator<Item = &'static Dialect> {
    DIALECTS
        .iter()
        .filter(|dialect| dialect.provider != "responses")
}

/// A server of the dialect that answers every question with `answer`.
pub fn answering(dialect: &Dialect, answer: &'static str) -> Server {
    let reply = dialect.reply;
    Server::start(move |request, _| reply(request, answer))
}

/// A sandbox whose current conversation has so many pairs, `question 1`, `answer 1`, …, and does not expire.
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
    let q = sandbox
        .shell("exec setsid -c -w q \"$@\"")
        .arg("sh")
        .args(args);
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

/// The names of the tools in a request.
pub fn offered(dialect: &Dialect, body: &Value) -> Vec<String> {
    let tools = match dialect.provider {
        "gemini" => &body["tools"][0]["functionDeclarations"],
        _ => &body["tools"],
    };
    let name = |tool: &Value| match dialect.provider {
        "openai" => tool["function"]["name"].clone(),
        _ => tool["name"].clone(),
    };
    tools
        .as_array()
        .into_iter()
        .flatten()
        .map(|tool| name(tool).as_str().expect("a name").to_owned())
        .collect()
}

/// What the last message of an OpenAI-like request says: the question, and what goes before it in the same prompt.
#[track_caller]
pub fn prompt(request: &Recorded) -> String {
    let body = request.json();
    let last = body["messages"]
        .as_array()
        .and_then(|messages| messages.last())
        .expect("a message");
    assert_eq!(
        last["role"], "user",
        "the last message is the user's: {body:#}"
    );
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

/// A run with a server and a conversation within reach that must be refused and touch neither.
#[track_caller]
pub fn refused(run: impl FnOnce(&Sandbox) -> Q) -> Outcome {
    let server = Server::openai("never");
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.write_bytes("current.json", "as it was");
    let before = snapshot(sandbox.state());
    let outcome = run(&sandbox).run();
    outcome.exit(2).stdout_is_empty().stderr_is_of_q();
    server.expect_requests(0);
    before.expect_unchanged();
    outcome
}

// ---- What this machine has

/// Whether a program cannot be used here, which is then said. The trial must succeed where it can.
pub fn lacks(program: &str, trial: &str) -> bool {
    let tried = Sandbox::new().shell(trial).run();
    let lacks = !tried.status.success();
    if lacks {
        eprintln!(
            "skipped: {program} cannot be used here: {}",
            tried.stderr_text()
        );
    }
    lacks
}

/// A device that takes nothing: every write to it fails for want of room. Only Linux has it.
pub fn full_device() -> File {
    File::options()
        .write(true)
        .open("/dev/full")
        .expect("/dev/full")
}
