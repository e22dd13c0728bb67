//! `--web` in time and on terminals, and what parts its texts. All else is in `tests/transcripts/provider/web.txt`.

use serde_json::{Value, json};

use crate::dialect::{openai_event, typed_event, word};
use crate::fixtures::case;
use crate::sandbox::Sandbox;
use crate::server::{Gate, Reply, Server};

/// A streamed reply of Anthropic's API with these blocks.
fn message(blocks: &Value, stop_reason: &str) -> Reply {
    let blocks = blocks.as_array().expect("blocks").iter().enumerate();
    let begin = |(index, block)| json!({"type": "content_block_start", "index": index, "content_block": block});
    let end = [
        json!({"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ];
    Reply::sse(blocks.map(begin).chain(end).map(typed_event))
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn search(id: &str) -> Value {
    json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "sky", "a": 1}})
}

fn found(id: &str) -> Value {
    let page = json!({"type": "web_search_result", "url": "https://example.com/9", "encrypted_content": "RQ=="});
    json!({"type": "web_search_tool_result", "tool_use_id": id, "content": [page]})
}

/// A sandbox that asks a server whose replies are these, one after another, and then the last one again.
fn replying(replies: Vec<Reply>) -> (Server, Sandbox) {
    let server = Server::start(move |_, number| replies[number.min(replies.len() - 1)].clone());
    let sandbox = Sandbox::new().anthropic_env(&server).env("Q_RETRIES", "0");
    (server, sandbox)
}

#[test]
fn texts_around_a_search_are_paragraphs() {
    let script = "```sh\necho one\n```\nDone.";
    for (said, separator, then) in [
        ("I look.", "\n\n", "Found."),
        ("I look.", "\n\n", script),
        ("I look.", "\n\n", "# One\nDone."),
        ("I look.", "", " Found."),
        ("I look.\n", "", "Found."),
        ("I look.\n", "", script),
        ("I look. ", "", "Found."),
        ("", "", "Found."),
        ("", "", script),
    ] {
        let paused = message(&json!([text(said), search("s1")]), "pause_turn");
        let searched = json!([text(said), search("s1"), found("s1")]);
        let searched = message(&searched, "pause_turn");
        let whole = json!([text(said), search("s1"), found("s1"), text(then)]);
        let [begun, rest] = [json!([found("s1"), text(then)]), json!([text(then)])];
        for replies in [
            vec![message(&whole, "end_turn")],
            vec![paused, message(&begun, "end_turn")],
            vec![searched, message(&rest, "end_turn")],
        ] {
            let _case = case((said, then, replies.len()));
            let (_server, sandbox) = replying(replies);
            let outcome = sandbox.q(&["-w", "how?"]).run();
            outcome
                .success()
                .stdout(format!("{said}{separator}{then}\n"));
        }
    }
}

#[test]
fn a_signal_after_a_pause_saves_an_interrupted_answer_with_its_sources() {
    let cited = json!({"type": "text", "text": "one ", "citations": [
        {"type": "web_search_result_location", "url": "https://example.com/1", "title": "Page 1"},
    ]});
    let (server, sandbox) = replying(vec![
        message(&json!([cited, search("s1")]), "pause_turn"),
        Reply::sse([":\n\n"]).hang(),
    ]);
    let mut running = sandbox.q(&["-w", "why?"]).spawn();
    running.read_stdout_until("one ");
    server.wait_for_requests(2);
    running.signal(libc::SIGTERM);
    running.wait().killed_by(libc::SIGTERM);
    let answer = &sandbox.current()["messages"][1];
    let sources = json!([{"url": "https://example.com/1", "title": "Page 1"}]);
    assert_eq!(answer["content"], "one ");
    assert_eq!(answer["interrupted"], true);
    assert_eq!(answer["sources"], sources);
}

/// The event of an OpenAI-like stream that has half of an answer, and a source.
fn half() -> Vec<u8> {
    let source = json!({"type": "url_citation", "url_citation": {"url": "https://a.example/", "title": "A page"}});
    openai_event(json!({"content": "half ", "annotations": [source]}), None)
}

#[test]
fn no_sources_are_noted_after_the_reader_of_the_answer_has_gone() {
    let gate = Gate::new();
    // It is more than a pipe holds: a program that another test is just starting may have the pipe open for a moment.
    let more = vec![word("more "); 20_000].concat();
    let reply = Reply::sse([half()]).wait_for(&gate).piece(more);
    let server = Server::always(reply.hang());
    let sandbox = Sandbox::new().server_env(&server);
    let mut running = sandbox.q(&["why?"]).spawn();
    running.read_stdout_until("half ");
    running.close_stdout();
    gate.open();
    running.wait().exit(0).stderr_is_empty();
}
