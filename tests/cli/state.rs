//! What the tests of conversations share: conversations as files, snapshots of the state, answers in parts.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::sandbox::Sandbox;
use crate::server::{Gate, Recorded, Reply, openai_event, openai_stream};

/// The model that is asked where none is named.
pub const MODEL: &str = "gpt-6-luna";
pub const HOUR: Duration = Duration::from_secs(60 * 60);
pub const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A moment in the past, as a session file has it.
pub fn ago(duration: Duration) -> String {
    let moment = OffsetDateTime::now_utc() - duration;
    let moment = moment.replace_millisecond(moment.millisecond()).expect("a millisecond");
    moment.format(&Rfc3339).expect("a time")
}

/// A conversation that was left alone for so long; questions and answers in turn.
pub fn conversation(idle: Duration, texts: &[&str]) -> Value {
    let moment = ago(idle);
    let messages: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let role = if index % 2 == 0 { "user" } else { "assistant" };
            json!({"role": role, "content": text, "timestamp": moment})
        })
        .collect();
    json!({"version": 1, "provider": "openai", "model": MODEL, "created": moment, "updated": moment, "messages": messages})
}

/// What was said in a conversation, questions and answers in turn.
pub fn texts(conversation: &Value) -> Vec<String> {
    let messages = conversation["messages"].as_array().expect("messages");
    messages.iter().map(|message| message["content"].as_str().expect("text").to_owned()).collect()
}

/// What the last message of a request says: the question, and what goes before it in the same prompt.
pub fn prompt(request: &Recorded) -> String {
    let body = request.json();
    let last = body["messages"].as_array().and_then(|messages| messages.last()).cloned();
    last.expect("a message")["content"].as_str().expect("text").to_owned()
}

/// The files set aside, in order.
pub fn set_aside(sandbox: &Sandbox) -> Vec<String> {
    sandbox.session_files().into_iter().filter(|name| name.starts_with("session_")).collect()
}

/// The only file that was set aside.
#[track_caller]
pub fn only_set_aside(sandbox: &Sandbox) -> String {
    let mut names = set_aside(sandbox);
    assert_eq!(names.len(), 1, "not exactly one file set aside: {:?}", sandbox.session_files());
    names.remove(0)
}

/// Everything below the sandbox's folder: what it is, what it holds and when it was changed. Two that are equal have no
/// write between them.
pub fn snapshot(sandbox: &Sandbox) -> BTreeMap<PathBuf, (Option<SystemTime>, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![sandbox.root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let metadata = path.symlink_metadata().expect("what an entry is");
            let changed = metadata.modified().ok();
            if metadata.is_dir() {
                folders.push(path.clone());
                found.insert(path, (changed, b"a folder".to_vec()));
            } else if metadata.is_file() {
                let bytes = fs::read(&path).expect("a file's bytes");
                found.insert(path, (changed, bytes));
            } else {
                found.insert(path, (changed, format!("{:?}", metadata.file_type()).into_bytes()));
            }
        }
    }
    found
}

/// Sets when a file was changed last, as seen from now.
pub fn age(path: &Path, age: Duration) {
    let file = File::options().read(true).open(path).expect("a file to age");
    file.set_modified(SystemTime::now() - age).expect("an older file");
}

/// The first part of an answer at once, the rest when the gate opens.
pub fn in_two_parts(first: &str, gate: &Gate, rest: &str) -> Reply {
    Reply::sse([openai_event(json!({"content": first}), None)]).wait_for(gate).pieces(openai_stream(&[rest]))
}

/// An answer of which nothing comes until the gate opens.
pub fn held_back(gate: &Gate, answer: &str) -> Reply {
    Reply::sse([""; 0]).wait_for(gate).pieces(openai_stream(&[answer]))
}

/// Takes the lock that every q takes to save, until it is dropped.
pub fn hold_the_lock(sandbox: &Sandbox) -> File {
    fs::create_dir_all(sandbox.sessions()).expect("the sessions folder");
    let lock = File::create(sandbox.state().join("q/lock")).expect("the lock's file");
    lock.lock().expect("the lock");
    lock
}

/// Reads from a pipe whatever is in it, up to its end.
pub fn drain(mut pipe: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    pipe.read_to_end(&mut bytes).expect("a pipe that can be read");
    bytes
}
