//! Replies that are longer than what q keeps: what is printed of them, what is saved, and how much memory they take.

use std::time::Duration;

use libc::SIGTERM;
use serde_json::json;

use crate::dialect::{DIALECTS, DONE, Dialect, data, finish, openai_event, typed_event, word};
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

/// A call, or calls, with arguments that are too long, as a stream that has not ended.
fn long_call(dialect: &Dialect) -> Vec<Vec<u8>> {
    let long = "x".repeat(PIECE);
    let openai = |function| {
        openai_event(
            json!({"tool_calls": [{"index": 0, "id": "a", "function": function}]}),
            None,
        )
    };
    let (begin, event) = match dialect.provider {
        "openai" => (
            openai(json!({"name": "shop__sql"})),
            openai(json!({"arguments": long})),
        ),
        "anthropic" => {
            let call = json!({"type": "tool_use", "id": "a", "name": "shop__sql", "input": {}});
            let begin = json!({"type": "content_block_start", "index": 0, "content_block": call});
            let delta = json!({"type": "input_json_delta", "partial_json": long});
            let delta = json!({"type": "content_block_delta", "index": 0, "delta": delta});
            (typed_event(begin), typed_event(delta))
        }
        "gemini" => {
            let call = json!({"functionCall": {"name": "shop__sql", "args": {"query": long}}});
            let event = data(&json!({"candidates": [{"content": {"parts": [call]}}]}));
            (event.clone(), event)
        }
        _ => {
            let call = json!({"type": "function_call", "call_id": "a", "name": "shop__sql", "arguments": long});
            let event = typed_event(json!({"type": "response.output_item.done", "item": call}));
            (event.clone(), event)
        }
    };
    [vec![begin], vec![event; TOO_MANY]].concat()
}

/// A sandbox in which `shop__sql` is a command that runs without asking, with a conversation.
fn with_command() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.config("[tools.shop.sql]\nreads = true\nrun = [\"echo\", \"{query}\"]\n");
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
        let sandbox = with_command();
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
fn a_call_that_is_too_long_is_an_error_at_once_and_does_not_run() {
    for dialect in &DIALECTS {
        let _case = case(dialect.provider);
        let server = Server::always(Reply::sse(long_call(dialect)).hang());
        let sandbox = with_command();
        let before = snapshot(sandbox.state());
        let outcome = dialect.q(&sandbox, &server, &["-t", "shop", "two"]).run();
        outcome
            .exit(1)
            .stdout_is_empty()
            .stderr_contains("more than 10000000 bytes, so what it calls cannot run");
        server.expect_requests(1);
        before.expect_unchanged();
    }
}

#[test]
fn an_answer_that_is_too_long_is_printed_whole_and_not_saved() {
    let whole = "x".repeat(TOO_MANY * PIECE) + "\n";
    let end = [finish("stop"), DONE.to_vec()];
    let server = Server::always(Reply::sse(text(TOO_MANY)).pieces(end));
    for (args, note) in [(["-f", "two"], NOT_SAVED), (["--no-save", "two"], "")] {
        let _case = case(args);
        let sandbox = with_command();
        let before = snapshot(sandbox.state());
        DIALECTS[0]
            .q(&sandbox, &server, &args)
            .run()
            .exit(0)
            .stdout(&whole)
            .stderr(note);
        before.expect_unchanged();
    }
}

#[test]
fn an_answer_that_is_too_long_to_be_printed_at_its_end_is_an_error_at_once() {
    let server = Server::always(Reply::sse(text(TOO_MANY)).hang());
    for args in [&["-x", "two"][..], &["-j", "two"], &["-t", "shop", "two"]] {
        let _case = case(args);
        let sandbox = with_command();
        let before = snapshot(sandbox.state());
        let outcome = DIALECTS[0].q(&sandbox, &server, args).run();
        outcome
            .exit(1)
            .stderr_contains("more than 10000000 bytes, so it is neither printed nor saved")
            .explains();
        let printed = outcome.stdout_text();
        outcome.check(
            printed.is_empty() || printed.starts_with("{\"error\":"),
            || "expected no answer".to_owned(),
        );
        before.expect_unchanged();
    }
}

#[test]
fn one_signal_ends_an_answer_that_is_too_long() {
    let server = Server::always(Reply::sse(text(TOO_MANY)).piece(word("the end")).hang());
    let sandbox = with_command();
    let before = snapshot(sandbox.state());
    let mut running = DIALECTS[0].q(&sandbox, &server, &["two"]).spawn();
    running.read_stdout_until("the end");
    running.signal(SIGTERM);
    let outcome = running.wait();
    outcome
        .killed_by(SIGTERM)
        .ended_within(Duration::from_secs(60))
        .stderr(NOT_SAVED);
    before.expect_unchanged();
}
