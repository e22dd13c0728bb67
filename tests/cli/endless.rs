//! Replies that are longer than what q keeps: how much memory they take, and how they are ended.

use std::time::Duration;

use libc::SIGTERM;
use serde_json::json;

use crate::dialect::{DIALECTS, Dialect, data, word};
use crate::fixtures::{HOUR, LARGEST, case, idle_for, snapshot};
use crate::sandbox::Sandbox;
use crate::server::{Reply, Server};

/// The bytes of text in one event.
const PIECE: usize = 100_000;

/// So many events are more than q keeps, and so many are more than the limit on memory below allows to be kept.
const TOO_MANY: usize = LARGEST / PIECE + 1;
const FAR_TOO_MANY: usize = 4 * LARGEST / PIECE;

/// In KiB: enough to keep what may be kept. A text of 40 MB takes room for 64.
const MEMORY: usize = 60_000;

const NOT_SAVED: &str = "q: this exchange was not saved: the answer has more than 10000000 bytes\n";

/// So much text, as a stream of OpenAI's that has not ended.
fn text(count: usize) -> Vec<Vec<u8>> {
    vec![word(&"x".repeat(PIECE)); count]
}

/// So many sources with long titles, as a stream of Gemini's that has not ended.
fn sources(count: usize) -> Vec<Vec<u8>> {
    let chunks =
        json!([{"web": {"uri": "https://example.com/NUMBER", "title": "x".repeat(PIECE)}}]);
    let event = data(&json!({"candidates": [{"groundingMetadata": {"groundingChunks": chunks}}]}));
    let event = String::from_utf8(event).expect("text");
    (0..count)
        .map(|number| {
            event
                .replacen("NUMBER", &number.to_string(), 1)
                .into_bytes()
        })
        .collect()
}

/// A sandbox with a conversation.
fn talked() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write_current(&idle_for(HOUR, &["one", "1"]));
    sandbox
}

#[test]
fn an_endless_answer_takes_little_memory() {
    for (what, dialect, events) in [
        ("text", &DIALECTS[0], text(FAR_TOO_MANY)),
        ("sources", &DIALECTS[2], sources(FAR_TOO_MANY)),
    ] {
        let _case = case(what);
        let server = Server::always(Reply::sse(events).pieces((dialect.stream)(&["the end"])));
        let sandbox = talked();
        let before = snapshot(sandbox.state());
        let limit = if cfg!(target_os = "linux") {
            format!("ulimit -d {MEMORY}; ")
        } else {
            String::new()
        };
        let q = sandbox
            .shell(&format!("{limit}exec q two >/dev/null"))
            .env("Q_PROVIDER", dialect.provider);
        q.speaks(dialect, &server).run().exit(0).stderr(NOT_SAVED);
        before.expect_unchanged();
    }
}

/// Many small values would take a hundred times the memory of their JSON.
#[test]
fn an_event_of_many_small_values_takes_little_memory() {
    let zeros = format!("[{}0]", "0,".repeat(2_000_000));
    let objects = format!("[{}{{}}]", "{},".repeat(1_000_000));
    // The exit status: a list that is read has a limit, and an error is one however long it is.
    for (provider, status, event) in [
        ("openai", 0, r#"{"choices":[{"delta":{"content":ZEROS}}]}"#),
        (
            "openai",
            0,
            r#"{"choices":[{"delta":ZEROS}],"unread":OBJECTS}"#,
        ),
        (
            "openai",
            0,
            r#"{"choices":[],"usage":{"prompt_tokens":ZEROS}}"#,
        ),
        ("openai", 1, r#"{"choices":OBJECTS}"#),
        ("openai", 1, r#"{"error":ZEROS}"#),
        ("anthropic", 0, r#"{"type":"ping","unread":ZEROS}"#),
        (
            "anthropic",
            0,
            r#"{"type":"content_block_start","index":9,"content_block":{"type":"x","citations":ZEROS}}"#,
        ),
        (
            "gemini",
            0,
            r#"{"candidates":[{"content":{"parts":[{"text":OBJECTS}]}}]}"#,
        ),
        (
            "gemini",
            1,
            r#"{"candidates":[{"content":{"parts":ZEROS}}]}"#,
        ),
        (
            "responses",
            0,
            r#"{"type":"response.in_progress","response":ZEROS}"#,
        ),
        (
            "responses",
            0,
            r#"{"type":"response.output_item.done","item":{"type":"message","content":ZEROS}}"#,
        ),
    ] {
        let _case = case(event);
        let dialect = Dialect::named(provider);
        let event = event.replace("ZEROS", &zeros).replace("OBJECTS", &objects);
        let event = format!("data: {event}\n\n").into_bytes();
        let server = Server::always(Reply::sse([event]).pieces((dialect.stream)(&["the end"])));
        let sandbox = Sandbox::new();
        let limit = if cfg!(target_os = "linux") {
            format!("ulimit -d {MEMORY}; ")
        } else {
            String::new()
        };
        let q = sandbox.shell(&format!("{limit}exec q --no-save two"));
        let q = q.env("Q_PROVIDER", provider).env("Q_RETRIES", "0");
        q.speaks(dialect, &server).run().exit(status);
    }
}

#[test]
fn one_signal_ends_an_answer_that_is_too_long() {
    let server = Server::always(Reply::sse(text(TOO_MANY)).piece(word("the end")).hang());
    let sandbox = talked();
    let before = snapshot(sandbox.state());
    let mut running = DIALECTS[0].q(&sandbox, &server, &["two"]).spawn();
    running.read_stdout_until("the end");
    running.signal(SIGTERM);
    let outcome = running.wait();
    outcome.killed_by(SIGTERM).stderr(NOT_SAVED);
    outcome.ended_within(Duration::from_secs(60));
    before.expect_unchanged();
}
