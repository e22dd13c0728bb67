//! Conversations as files: what tests write, and what they expect of those that q has written.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::dialect::STORED_MODEL;
use super::sandbox::Sandbox;
use super::times::{MINUTE, age, ago, change_at};

/// When the conversations of `stored` were started and last changed: long enough ago to have expired.
pub const CREATED: &str = "2026-01-02T03:04:05.678Z";
pub const UPDATED: &str = "2026-01-02T03:09:00.000Z";
/// The id of such a conversation, and its file.
pub const ID: &str = "session_20260102030405678";
pub const ARCHIVED: &str = "session_20260102030405678.json";
/// Its first backup.
pub const EARLIER: &str = "session_20260102030405678~1.json";

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

/// Returns a stored conversation in which everything happened this long ago.
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

/// A sandbox whose current conversation has this many pairs, `question 1`, `answer 1`, …, and does not expire.
pub fn talked(provider: &str, pairs: usize) -> Sandbox {
    let texts: Vec<String> = (1..=pairs)
        .flat_map(|number| [format!("question {number}"), format!("answer {number}")])
        .collect();
    let sandbox = Sandbox::new().env("Q_EXPIRE", "never");
    sandbox.write_current(&with(stored(&texts), "provider", provider));
    sandbox
}

/// Sets when a file was changed last, to the moment of `CREATED`.
#[track_caller]
pub fn change_when_created(path: &Path) {
    let moment = OffsetDateTime::parse(CREATED, &Rfc3339)
        .expect("a time")
        .into();
    change_at(path, moment);
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

impl Sandbox {
    /// Writes a conversation under its id, and makes it the current one.
    #[track_caller]
    pub fn write_current(&self, conversation: &Value) {
        let name = id_of(conversation) + ".json";
        self.write_linked("current.json", &name, conversation);
    }

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
