//! Replies that are longer than what q keeps: how much memory they take, and how they are ended.

use std::time::Duration;

use libc::SIGTERM;
use serde_json::json;

use crate::dialect::{DIALECTS, data, word};
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
