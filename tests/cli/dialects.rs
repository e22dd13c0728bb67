//! What goes to a provider and what comes back from it, in each dialect.

use serde_json::{Value, json};

use crate::dialect::{DIALECTS, Dialect, openai_reply};
use crate::fixtures::{answering, case, stored, talked, texts, with};
use crate::sandbox::{API_KEY, Sandbox};
use crate::server::{Reply, Server};

/// The messages of a request: role and text.
type Messages<'a> = &'a [(&'a str, &'a str)];

/// Makes the body of a request, with or without a stream.
type Body = fn(bool, Messages) -> Value;

/// The messages in the form that a dialect gives to each.
fn turns(messages: Messages, turn: impl Fn(&str, &str) -> Value) -> Vec<Value> {
    messages
        .iter()
        .map(|(role, text)| turn(role, text))
        .collect()
}

fn openai_body(stream: bool, messages: Messages) -> Value {
    let messages = [&[("system", "be terse")], messages].concat();
    let messages = turns(
        &messages,
        |role, text| json!({"role": role, "content": text}),
    );
    match stream {
        true => {
            json!({"model": "m/1", "messages": messages, "stream": true, "stream_options": {"include_usage": true}})
        }
        false => json!({"model": "m/1", "messages": messages, "stream": false}),
    }
}

fn anthropic_body(stream: bool, messages: Messages) -> Value {
    let has_history = messages.len() > 1;
    let messages = turns(
        messages,
        |role, text| json!({"role": role, "content": text}),
    );
    let mut body = json!({"model": "m/1", "max_tokens": 16384, "stream": stream, "system": "be terse", "messages": messages});
    if has_history {
        body["cache_control"] = json!({"type": "ephemeral"});
    }
    body
}

fn gemini_body(_: bool, messages: Messages) -> Value {
    let role = |role: &str| if role == "assistant" { "model" } else { "user" };
    let contents = turns(
        messages,
        |name, text| json!({"role": role(name), "parts": [{"text": text}]}),
    );
    json!({"contents": contents, "systemInstruction": {"parts": [{"text": "be terse"}]}})
}

fn responses_body(stream: bool, messages: Messages) -> Value {
    let input = turns(messages, |role, text| match role {
        "assistant" => {
            json!({"type": "message", "role": role, "content": [{"type": "output_text", "text": text}]})
        }
        _ => json!({"role": role, "content": [{"type": "input_text", "text": text}]}),
    });
    json!({"model": "m/1", "stream": stream, "store": false, "instructions": "be terse", "input": input})
}

#[test]
fn each_dialect_sends_its_request_and_nothing_else() {
    let bearer = format!("Bearer {API_KEY}");
    let openai: &[(&str, &str)] = &[("authorization", &bearer)];
    let anthropic: &[(&str, &str)] = &[("x-api-key", API_KEY), ("anthropic-version", "2023-06-01")];
    let google: &[(&str, &str)] = &[("x-goog-api-key", API_KEY)];
    let table = [
        (
            "/v1/chat/completions",
            "/v1/chat/completions",
            openai,
            openai_body as Body,
        ),
        ("/v1/messages", "/v1/messages", anthropic, anthropic_body),
        (
            "/v1beta/models/m%2F1:streamGenerateContent?alt=sse",
            "/v1beta/models/m%2F1:generateContent",
            google,
            gemini_body,
        ),
        ("/v1/responses", "/v1/responses", openai, responses_body),
    ];
    let prompt = "Previous conversation:\nHuman: one\n\nAssistant: two\n\nHuman: hi there";
    let conversations: [(&str, &[&str], Messages); 3] = [
        ("prompt", &[], &[("user", "hi there")]),
        ("prompt", &["-f"], &[("user", prompt)]),
        (
            "messages",
            &["-f"],
            &[("user", "one"), ("assistant", "two"), ("user", "hi there")],
        ),
    ];
    for (dialect, (streamed_path, whole_path, headers, body)) in DIALECTS.iter().zip(table) {
        for (history, options, messages) in conversations {
            for (stream, more, path) in [
                (true, &[][..], streamed_path),
                (false, &["--no-stream"], whole_path),
            ] {
                let _case = case((dialect.provider, history, options, more));
                let server = answering(dialect, "one two");
                let sandbox = Sandbox::new()
                    .env("Q_EXPIRE", "never")
                    .env("Q_HISTORY", history);
                let conversation = with(stored(&["one", "two"]), "provider", dialect.provider);
                sandbox.write_current(&with(conversation, "model", "m/1"));
                let args = [
                    options,
                    more,
                    &["-m", "m/1", "-S", "be terse", "hi", "there"],
                ]
                .concat();
                dialect
                    .q(&sandbox, &server, &args)
                    .run()
                    .success()
                    .stdout("one two\n");
                let request = server.request();
                assert_eq!(
                    (request.method.as_str(), request.path.as_str()),
                    ("POST", path)
                );
                assert_eq!(request.json(), body(stream, messages));
                // A key in a second header would reach a server that was never to have it.
                let mut expected = headers.to_vec();
                let agent = concat!("q/", env!("CARGO_PKG_VERSION"));
                expected.extend([
                    ("content-type", "application/json"),
                    ("user-agent", agent),
                    ("accept", "*/*"),
                ]);
                for (name, value) in &request.headers {
                    if !["host", "content-length"].contains(&name.as_str()) {
                        assert!(expected.contains(&(name, value)), "{name}: {value}");
                    }
                }
                for (name, value) in expected {
                    assert_eq!(request.header(name), Some(value), "{name}");
                }
            }
        }
    }
}

#[test]
fn blank_lines_that_keep_a_connection_alive_may_come_before_an_answer_in_one_piece() {
    // DeepSeek sends such lines while a request waits for its turn. There are so many here that no read gets past them.
    let server = Server::start(move |_, _| {
        let answer = json!({"choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]});
        let reply = Reply::new(200)
            .header("content-type", "application/json")
            .chunked();
        reply.piece("\n".repeat(200_000)).piece(answer.to_string())
    });
    for args in [&["--no-stream", "hi"][..], &["hi"]] {
        DIALECTS[0]
            .q(&Sandbox::new(), &server, args)
            .run()
            .success()
            .stdout("hi\n");
    }
}

#[test]
fn a_follow_up_sends_turns_where_the_setting_says_so() {
    for dialect in &DIALECTS {
        let _case = case(dialect.provider);
        let assistant = dialect.assistant;
        let server = answering(dialect, "ok");
        let sandbox = talked(dialect.provider, 2);
        let q = |args: &[&str]| {
            dialect
                .q(&sandbox, &server, args)
                .env("Q_HISTORY", "messages")
        };
        q(&["--no-save", "-f", "and then?"]).run().success();
        let all = [
            ("user", "question 1"),
            (assistant, "answer 1"),
            ("user", "question 2"),
            (assistant, "answer 2"),
            ("user", "and then?"),
        ];
        let owned = |turns: &[(&str, &str)]| -> Vec<(String, String)> {
            turns
                .iter()
                .map(|(role, text)| ((*role).to_owned(), (*text).to_owned()))
                .collect()
        };
        assert_eq!(dialect.sent(&server.request()).1, owned(&all));
        // A window that would begin with an answer drops it: the stricter APIs refuse one.
        q(&["--no-save", "--messages", "3", "-f", "and then?"])
            .run()
            .success();
        assert_eq!(dialect.sent(&server.requests()[1]).1, owned(&all[2..]));
    }
}

#[test]
fn the_system_prompt_that_is_built_in_says_where_q_runs() {
    for dialect in &DIALECTS {
        let _case = case(dialect.provider);
        let server = answering(dialect, "ok");
        dialect
            .q(&Sandbox::new(), &server, &["hi"])
            .env("SHELL", "/usr/bin/fish")
            .run()
            .success();
        let (system, _) = dialect.sent(&server.last_request());
        let system = system.expect("a system prompt");
        assert!(
            system.contains(std::env::consts::OS) && system.contains("fish"),
            "{system}"
        );
        assert!(system.contains("20") && system.len() < 600, "{system}");
    }
}

/// A server whose model takes at most `room` messages of history.
fn narrow(dialect: &Dialect, room: usize) -> Server {
    let (reply, body) = (
        dialect.reply,
        match dialect.provider {
            "openai" | "responses" => json!({"error": {
                "message": "This model's maximum context length is 8192 tokens.", "code": "context_length_exceeded",
            }}),
            "anthropic" => json!({"type": "error", "error": {
                "type": "invalid_request_error", "message": "prompt is too long: 250000 tokens > 200000 maximum",
            }}),
            _ => json!({"error": {
                "code": 400, "status": "INVALID_ARGUMENT",
                "message": "The input token count (9) exceeds the maximum number of tokens allowed (8).",
            }}),
        },
    );
    Server::start(move |request, _| {
        let text = request.text();
        let history =
            text.matches("Human: question").count() + text.matches("Assistant: answer").count();
        if history > room {
            Reply::json(400, body.clone())
        } else {
            reply(request, "ok")
        }
    })
}

#[test]
fn a_conversation_that_is_too_long_for_the_model_loses_its_oldest_half_until_it_fits() {
    for dialect in &DIALECTS {
        for (room, requests, left_out) in [(5, 2, "5"), (2, 3, "8"), (0, 5, "10")] {
            let _case = case((dialect.provider, room));
            let server = narrow(dialect, room);
            let sandbox = talked(dialect.provider, 5);
            let before = sandbox.current();
            let outcome = dialect.q(&sandbox, &server, &["-f", "next"]).run();
            outcome
                .exit(0)
                .stdout("ok\n")
                .stderr_contains(left_out)
                .stderr_has_lines(1);
            server.expect_requests(requests);
            let kept = sandbox.current();
            assert_eq!(texts(&kept).len(), 12, "{kept}");
            assert_eq!(
                kept["messages"].as_array().unwrap()[..10],
                before["messages"].as_array().unwrap()[..]
            );
        }
    }
}

#[test]
fn turns_that_were_not_sent_are_counted_as_they_went() {
    let server = narrow_by_turns(6);
    let sandbox = talked("openai", 5)
        .server_env(&server)
        .env("Q_HISTORY", "messages");
    let outcome = sandbox.q(&["-f", "next"]).run();
    let turns = DIALECTS[0].sent(&server.last_request()).1.len() - 1;
    // Of the 5 that remain the first is an answer, which goes too.
    assert_eq!(turns, 4);
    outcome.exit(0).stderr_contains("6");
}

/// An OpenAI-like server whose model takes at most `room` messages.
fn narrow_by_turns(room: usize) -> Server {
    Server::start(move |request, _| {
        let fits = request.json()["messages"]
            .as_array()
            .is_some_and(|messages| messages.len() <= room);
        if fits {
            openai_reply(request, "ok")
        } else {
            Reply::json(
                400,
                json!({"error": {"message": "too long", "code": "context_length_exceeded"}}),
            )
        }
    })
}
