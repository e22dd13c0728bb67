//! What goes to a provider and what comes back from it, in each of the three dialects.

use serde_json::{Value, json};

use crate::sandbox::{API_KEY, Outcome, Q, Sandbox};
use crate::server::{
    Recorded, Reply, Server, anthropic_event, anthropic_reply, anthropic_stream, gemini_reply, gemini_stream,
    openai_event, openai_reply, openai_stream,
};

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

pub const DIALECTS: [Dialect; 3] = [
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
];

impl Dialect {
    /// q with this dialect's key, its API at `server`, and no second try.
    pub fn q(&self, sandbox: &Sandbox, server: &Server, args: &[&str]) -> Q {
        (self.env)(sandbox.q(args), server).env("Q_RETRIES", "0")
    }

    /// An error as this dialect's servers report it: in a body, and as the data of an event.
    pub fn error(&self, status: u16, message: &str) -> Value {
        match self.provider {
            "openai" => json!({"error": {"message": message, "type": "some_error", "code": null}}),
            "anthropic" => json!({"type": "error", "error": {"type": "some_error", "message": message}}),
            _ => json!({"error": {"code": status, "message": message, "status": "SOME_ERROR"}}),
        }
    }

    fn error_event(&self, message: &str) -> Vec<u8> {
        let error = self.error(500, message);
        if self.provider == "anthropic" { anthropic_event(error) } else { format!("data: {error}\n\n").into_bytes() }
    }

    /// The system prompt of a request, and its messages as role and text.
    fn sent(&self, request: &Recorded) -> (Option<String>, Vec<(String, String)>) {
        let body = request.json();
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let said = |value: &Value| {
            let content = if self.provider == "gemini" { &value["parts"][0]["text"] } else { &value["content"] };
            (text(&value["role"]), text(content))
        };
        let list = if self.provider == "gemini" { &body["contents"] } else { &body["messages"] };
        let mut messages: Vec<_> = list.as_array().expect("messages").iter().map(said).collect();
        let system = match self.provider {
            "openai" if messages[0].0 == "system" => Some(messages.remove(0).1),
            "openai" => None,
            "anthropic" => body.get("system").map(text),
            _ => body.get("systemInstruction").map(|system| text(&system["parts"][0]["text"])),
        };
        (system, messages)
    }

    /// The role of the model's messages.
    fn assistant(&self) -> &'static str {
        if self.provider == "gemini" { "model" } else { "assistant" }
    }
}

/// A conversation of `question 1`, `answer 1`, … with the model `m`.
pub fn conversation(provider: &str, pairs: usize) -> Value {
    const TIME: &str = "2026-01-02T03:04:05.006Z";
    let said = |role, text| json!({"role": role, "content": text, "timestamp": TIME});
    let messages: Vec<Value> = (1..=pairs)
        .flat_map(|number| [said("user", format!("question {number}")), said("assistant", format!("answer {number}"))])
        .collect();
    json!({"version": 1, "provider": provider, "model": "m", "created": TIME, "updated": TIME, "messages": messages})
}

/// A sandbox whose current conversation is `conversation`, which does not expire.
pub fn talked(provider: &str, pairs: usize) -> Sandbox {
    let sandbox = Sandbox::new().env("Q_EXPIRE", "never");
    sandbox.write_current(&conversation(provider, pairs));
    sandbox
}

/// A server of the dialect that answers every question with `answer`.
pub fn answering(dialect: &Dialect, answer: &'static str) -> Server {
    let reply = dialect.reply;
    Server::start(move |request, _| reply(request, answer))
}

/// The only message of an OpenAI-like request, less its system prompt.
fn flattened(request: &Recorded) -> String {
    let (_, mut messages) = DIALECTS[0].sent(request);
    assert_eq!(messages.len(), 1, "{messages:?}");
    messages.remove(0).1
}

#[test]
fn each_dialect_sends_its_request_and_nothing_else() {
    let user = json!([{"role": "user", "content": "hi there"}]);
    let with_system = json!([{"role": "system", "content": "be terse"}, {"role": "user", "content": "hi there"}]);
    let gemini = json!({
        "contents": [{"role": "user", "parts": [{"text": "hi there"}]}],
        "systemInstruction": {"parts": [{"text": "be terse"}]},
    });
    let bearer = format!("Bearer {API_KEY}");
    let openai: &[(&str, &str)] = &[("authorization", &bearer)];
    let anthropic: &[(&str, &str)] = &[("x-api-key", API_KEY), ("anthropic-version", "2023-06-01")];
    let google: &[(&str, &str)] = &[("x-goog-api-key", API_KEY)];
    let table = [
        (
            "/v1/chat/completions",
            "/v1/chat/completions",
            openai,
            json!({"model": "m/1", "stream": true, "stream_options": {"include_usage": true}, "messages": with_system}),
            json!({"model": "m/1", "stream": false, "messages": with_system}),
        ),
        (
            "/v1/messages",
            "/v1/messages",
            anthropic,
            json!({"model": "m/1", "max_tokens": 16384, "stream": true, "system": "be terse", "messages": user}),
            json!({"model": "m/1", "max_tokens": 16384, "stream": false, "system": "be terse", "messages": user}),
        ),
        (
            "/v1beta/models/m%2F1:streamGenerateContent?alt=sse",
            "/v1beta/models/m%2F1:generateContent",
            google,
            gemini.clone(),
            gemini,
        ),
    ];
    for (dialect, (streamed_path, whole_path, headers, streamed_body, whole_body)) in DIALECTS.iter().zip(table) {
        for (options, path, body) in [
            (&["-m", "m/1"][..], streamed_path, streamed_body),
            (&["-m", "m/1", "--no-stream"], whole_path, whole_body),
        ] {
            let server = answering(dialect, "one two");
            let args = [options, &["-S", "be terse", "hi", "there"]].concat();
            dialect.q(&Sandbox::new(), &server, &args).run().success().stdout("one two\n");
            let request = server.request();
            assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", path));
            assert_eq!(request.json(), body, "{}", dialect.provider);
            // A key in a second header would reach a server that was never to have it.
            let mut expected = headers.to_vec();
            let agent = concat!("q/", env!("CARGO_PKG_VERSION"));
            expected.extend([("content-type", "application/json"), ("user-agent", agent), ("accept", "*/*")]);
            for (name, value) in &request.headers {
                if !["host", "content-length"].contains(&name.as_str()) {
                    assert!(expected.contains(&(name, value)), "{}: {name}: {value}", dialect.provider);
                }
            }
            for (name, value) in expected {
                assert_eq!(request.header(name), Some(value), "{}", dialect.provider);
            }
        }
    }
}

#[test]
fn the_limit_of_tokens_and_the_usage_are_asked_for_as_each_server_takes_them() {
    for (provider, limit, usage) in [
        ("openai", "/max_completion_tokens", true),
        ("groq", "/max_tokens", true),
        ("mistral", "/max_tokens", false),
        ("openrouter", "/max_tokens", true),
        ("deepseek", "/max_tokens", true),
        ("xai", "/max_tokens", true),
        ("cerebras", "/max_tokens", true),
        ("zai", "/max_tokens", true),
        ("moonshot", "/max_tokens", true),
        ("ollama", "/max_tokens", true),
        ("llamacpp", "/max_tokens", true),
        ("lmstudio", "/max_tokens", true),
        ("vllm", "/max_tokens", true),
        ("anthropic", "/max_tokens", false),
        ("gemini", "/generationConfig/maxOutputTokens", false),
    ] {
        let server = Server::start(move |request, _| match provider {
            "anthropic" => anthropic_reply(request, "ok"),
            "gemini" => gemini_reply(request, "ok"),
            _ => openai_reply(request, "ok"),
        });
        let name = provider.to_uppercase();
        let sandbox = Sandbox::new();
        let q = || {
            sandbox
                .q(&["-p", provider, "-m", "m", "hi"])
                .env(format!("{name}_BASE_URL"), server.url())
                .env(format!("{name}_API_KEY"), API_KEY)
        };
        q().env("Q_MAX_TOKENS", "77").run().success();
        let body = server.request().json();
        assert_eq!(body.pointer(limit), Some(&json!(77)), "{provider}: {body}");
        assert_eq!(body.to_string().matches("77").count(), 1, "{provider}: {body}");
        assert_eq!(body.get("stream_options").is_some(), usage, "{provider}: {body}");

        q().run().success();
        let unlimited = &server.requests()[1].json();
        let sent = unlimited.pointer(limit).cloned();
        assert_eq!(sent, (provider == "anthropic").then(|| json!(16384)), "{provider}: {unlimited}");
    }
}

#[test]
fn an_answer_in_one_piece_is_taken_where_a_stream_was_asked_for() {
    for dialect in &DIALECTS {
        let reply = dialect.reply;
        let server = Server::start(move |request, _| {
            let mut whole = request.clone();
            whole.body = b"{}".to_vec();
            whole.path = whole.path.replace(":streamGenerateContent", ":generateContent");
            reply(&whole, "one two")
        });
        let sandbox = Sandbox::new();
        dialect.q(&sandbox, &server, &["hi"]).run().success().stdout("one two\n");
        assert_eq!(sandbox.current()["messages"][1]["content"], "one two", "{}", dialect.provider);
    }
}

#[test]
fn blank_lines_that_keep_a_connection_alive_may_come_before_an_answer_in_one_piece() {
    // DeepSeek sends such lines while a request waits for its turn. There are so many here that no read gets past them.
    let server = Server::start(move |_, _| {
        let answer = json!({"choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]});
        let reply = Reply::new(200).header("content-type", "application/json").chunked();
        reply.piece("\n".repeat(200_000)).piece(answer.to_string())
    });
    for args in [&["--no-stream", "hi"][..], &["hi"]] {
        DIALECTS[0].q(&Sandbox::new(), &server, args).run().success().stdout("hi\n");
    }
}

#[test]
fn an_error_inside_a_stream_is_told_and_what_had_come_is_kept() {
    for dialect in &DIALECTS {
        for begun in [false, true] {
            let error = dialect.error_event("the model fell over");
            let mut events = (dialect.stream)(&["half "]);
            events.truncate(events.len() - 1 - dialect.after_finish);
            if !begun {
                events.clear();
            }
            events.push(error);
            let server = Server::start(move |_, _| Reply::sse(events.clone()));
            let sandbox = Sandbox::new();
            let outcome = dialect.q(&sandbox, &server, &["hi"]).run();
            outcome.exit(1).stderr_contains("the model fell over").stderr_contains(&server.url());
            outcome.stdout(if begun { "half \n" } else { "" });
            if begun {
                let answer = &sandbox.current()["messages"][1];
                assert_eq!(answer["interrupted"], true, "{}", dialect.provider);
            } else {
                assert_eq!(sandbox.session_files(), [""; 0], "{}", dialect.provider);
            }
        }
    }
}

#[test]
fn a_stream_without_an_end_is_a_failure() {
    for dialect in &DIALECTS {
        let mut events = (dialect.stream)(&["half ", "answer"]);
        // Neither the terminal event nor the finish reason before it.
        events.truncate(events.len() - 1 - dialect.after_finish);
        let server = Server::start(move |_, _| Reply::sse(events.clone()));
        let sandbox = Sandbox::new();
        let outcome = dialect.q(&sandbox, &server, &["hi"]).run();
        outcome.exit(1).stdout("half answer\n").stderr_contains("ended before the answer");
        assert_eq!(sandbox.current()["messages"][1]["interrupted"], true, "{}", dialect.provider);
    }
}

#[test]
fn a_follow_up_sends_the_conversation_in_one_prompt_to_the_letter() {
    for dialect in &DIALECTS {
        let server = answering(dialect, "a third");
        let sandbox = talked(dialect.provider, 2);
        dialect.q(&sandbox, &server, &["-f", "and then?"]).run().success();
        let (_, messages) = dialect.sent(&server.request());
        let prompt = "Previous conversation:\nHuman: question 1\n\nAssistant: answer 1\n\nHuman: question 2\n\n\
                      Assistant: answer 2\n\nHuman: and then?";
        assert_eq!(messages, [("user".to_owned(), prompt.to_owned())]);
        // The flattened form and the system prompt are for the wire only.
        let kept = sandbox.current();
        assert_eq!(kept["messages"][4]["content"], "and then?");
        assert_eq!(kept["messages"][5]["content"], "a third");
        assert!(!kept.to_string().contains("Previous conversation"), "{kept}");
        assert!(!kept.to_string().contains("system"), "{kept}");
    }
}

#[test]
fn a_follow_up_sends_turns_where_the_setting_says_so() {
    for dialect in &DIALECTS {
        let assistant = dialect.assistant();
        let server = answering(dialect, "ok");
        let sandbox = talked(dialect.provider, 2);
        let q = |args: &[&str]| dialect.q(&sandbox, &server, args).env("Q_HISTORY", "messages");
        q(&["--no-save", "-f", "and then?"]).run().success();
        let all = [
            ("user", "question 1"),
            (assistant, "answer 1"),
            ("user", "question 2"),
            (assistant, "answer 2"),
            ("user", "and then?"),
        ];
        let owned = |turns: &[(&str, &str)]| -> Vec<(String, String)> {
            turns.iter().map(|(role, text)| ((*role).to_owned(), (*text).to_owned())).collect()
        };
        assert_eq!(dialect.sent(&server.request()).1, owned(&all));
        // A window that would begin with an answer drops it: the stricter APIs refuse one.
        q(&["--no-save", "--messages", "3", "-f", "and then?"]).run().success();
        assert_eq!(dialect.sent(&server.requests()[1]).1, owned(&all[2..]));
    }
}

#[test]
fn the_window_is_the_last_messages_and_the_option_says_how_many() {
    let server = Server::openai("ok");
    for (args, sent) in [
        (&["--messages", "0"][..], "next"),
        (&["--messages", "1"], "Previous conversation:\nAssistant: answer 6\n\nHuman: next"),
        (
            &["--messages", "3"],
            "Previous conversation:\nAssistant: answer 5\n\nHuman: question 6\n\nAssistant: answer 6\n\nHuman: next",
        ),
    ] {
        let sandbox = talked("openai", 6).server_env(&server);
        sandbox.q(&[args, &["-f", "next"]].concat()).run().success();
        assert_eq!(flattened(server.requests().last().expect("a request")), sent);
        // The window is about what is sent, not about what is kept.
        assert_eq!(sandbox.current()["messages"].as_array().map(Vec::len), Some(14));
    }
    let sandbox = talked("openai", 6).server_env(&server);
    sandbox.q(&["-f", "next"]).run().success();
    let prompt = flattened(server.requests().last().expect("a request"));
    assert!(prompt.starts_with("Previous conversation:\nHuman: question 2\n\n"), "{prompt}");
}

#[test]
fn a_window_of_too_many_bytes_loses_its_oldest_messages_with_a_note() {
    let server = Server::openai("ok");
    // `question 1` has 10 bytes, `answer 1` has 8.
    for (most, left_out, begin) in [
        ("36", 0, "Previous conversation:\nHuman: question 1\n"),
        ("35", 1, "Previous conversation:\nAssistant: answer 1\n"),
        ("8", 3, "Previous conversation:\nAssistant: answer 2\n"),
        ("7", 4, "next"),
    ] {
        let sandbox = talked("openai", 2).server_env(&server).env("Q_MAX_HISTORY", most);
        let outcome = sandbox.q(&["-f", "next"]).run();
        outcome.exit(0).stdout("ok\n");
        let prompt = flattened(server.requests().last().expect("a request"));
        assert!(prompt.starts_with(begin), "{most}: {prompt}");
        match left_out {
            0 => outcome.stderr_is_empty(),
            1 => outcome.stderr_contains("max_history").stderr_contains("message"),
            number => outcome.stderr_contains("max_history").stderr_contains(&number.to_string()),
        };
        assert_eq!(sandbox.current()["messages"].as_array().map(Vec::len), Some(6));
    }
}

#[test]
fn the_system_prompt_is_the_option_else_the_setting_else_the_built_in_one() {
    for dialect in &DIALECTS {
        let server = answering(dialect, "ok");
        for (file, variable, args, system) in [
            ("", "", &["-S", "of the option"][..], Some("of the option")),
            ("system = \"of the file\"", "of the variable", &["-S", "of the option"], Some("of the option")),
            ("system = \"of the file\"", "of the variable", &[], Some("of the variable")),
            ("system = \"of the file\"", "", &[], Some("of the file")),
            ("system = \"of the file\"", "of the variable", &["-S", ""], None),
            ("system = \"\"", "", &[], None),
        ] {
            let sandbox = Sandbox::new();
            sandbox.config(file);
            let q = dialect.q(&sandbox, &server, &[args, &["hi"]].concat());
            q.env("Q_SYSTEM", variable).run().success();
            let request = server.requests().pop().expect("a request");
            assert_eq!(dialect.sent(&request).0.as_deref(), system, "{} {file} {args:?}", dialect.provider);
            // A system prompt that is empty is refused by some servers.
            let empty = system.is_none() && request.text().to_lowercase().contains("system");
            assert!(!empty, "{}: {}", dialect.provider, request.text());
        }
        dialect.q(&Sandbox::new(), &server, &["hi"]).env("SHELL", "/usr/bin/fish").run().success();
        let (system, _) = dialect.sent(&server.requests().pop().expect("a request"));
        let system = system.expect("a system prompt");
        assert!(system.contains(std::env::consts::OS) && system.contains("fish"), "{system}");
        assert!(system.contains("20") && system.len() < 600, "{system}");
    }
}

/// A server whose model takes at most `room` messages of history.
fn narrow(dialect: &Dialect, room: usize) -> Server {
    let (reply, body) = (
        dialect.reply,
        match dialect.provider {
            "openai" => json!({"error": {
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
        let history = text.matches("Human: question").count() + text.matches("Assistant: answer").count();
        if history > room { Reply::json(400, body.clone()) } else { reply(request, "ok") }
    })
}

#[test]
fn a_conversation_that_is_too_long_for_the_model_loses_its_oldest_half_until_it_fits() {
    for dialect in &DIALECTS {
        for (room, requests, left_out) in [(5, 2, "5"), (2, 3, "8"), (0, 5, "10")] {
            let server = narrow(dialect, room);
            let sandbox = talked(dialect.provider, 5);
            let outcome = dialect.q(&sandbox, &server, &["-f", "next"]).run();
            outcome.exit(0).stdout("ok\n").stderr_contains(left_out);
            assert_eq!(outcome.stderr_text().lines().count(), 1, "one note: {}", outcome.stderr_text());
            assert_eq!(server.requests().len(), requests, "{}", dialect.provider);
            let kept = sandbox.current();
            let before = conversation(dialect.provider, 5);
            assert_eq!(kept["messages"].as_array().map(Vec::len), Some(12), "{kept}");
            assert_eq!(kept["messages"].as_array().unwrap()[..10], before["messages"].as_array().unwrap()[..]);
        }
    }
}

#[test]
fn a_question_that_is_too_long_by_itself_fails_and_changes_nothing() {
    for dialect in &DIALECTS {
        let error = dialect.error(400, "prompt is too long");
        let server = Server::start(move |_, _| Reply::json(400, error.clone()));
        let sandbox = talked(dialect.provider, 1);
        let before = sandbox.read_bytes("current.json");
        let follow: Outcome = dialect.q(&sandbox, &server, &["-f", "next"]).run();
        follow.exit(1).stdout_is_empty().stderr_contains("prompt is too long");
        // With two messages, with one, with none.
        assert_eq!(server.requests().len(), 3);
        dialect.q(&sandbox, &server, &["next"]).run().exit(1).stderr_contains("prompt is too long");
        assert_eq!(server.requests().len(), 4);
        assert_eq!(sandbox.read_bytes("current.json"), before);
        assert_eq!(sandbox.session_files(), ["current.json"]);
    }
}

#[test]
fn turns_that_were_not_sent_are_counted_as_they_went() {
    let server = narrow_by_turns(6);
    let sandbox = talked("openai", 5).server_env(&server).env("Q_HISTORY", "messages");
    let outcome = sandbox.q(&["-f", "next"]).run();
    let turns = DIALECTS[0].sent(&server.requests().pop().expect("a request")).1.len() - 1;
    // Of the 5 that remain the first is an answer, which goes too.
    assert_eq!(turns, 4);
    outcome.exit(0).stderr_contains("6");
}

/// An OpenAI-like server whose model takes at most `room` messages.
fn narrow_by_turns(room: usize) -> Server {
    Server::start(move |request, _| {
        let fits = request.json()["messages"].as_array().is_some_and(|messages| messages.len() <= room);
        if fits {
            openai_reply(request, "ok")
        } else {
            Reply::json(400, json!({"error": {"message": "too long", "code": "context_length_exceeded"}}))
        }
    })
}

#[test]
fn what_servers_do_differently_in_a_stream_is_taken() {
    let stop = openai_event(json!({}), Some("stop"));
    let half = |text: &str| openai_event(json!({"content": text}), None);
    let done = b"data: [DONE]\n\n".to_vec();
    let plain = |events: &[Vec<u8>]| Reply::sse(events.to_vec());
    let crlf = String::from_utf8([half("one "), half("two"), stop.clone(), done.clone()].concat()).unwrap();
    for (what, reply) in [
        ("no [DONE]", plain(&[half("one "), half("two"), stop.clone()])),
        ("no finish reason", plain(&[half("one "), half("two"), done.clone()])),
        ("CRLF", Reply::sse([crlf.replace('\n', "\r\n")])),
        ("one byte at a time", Reply::sse(crlf.as_bytes().chunks(1))),
        ("comments", plain(&[b": processing\n\n".to_vec(), half("one two"), b": ping\n\n".to_vec(), stop.clone()])),
        ("null", plain(&[openai_event(json!({"role": "assistant", "content": null}), None), half("one two"), done])),
        (
            "error: null",
            Reply::sse([format!(
                "data: {}\n\n",
                json!({"error": null, "choices": [
                {"delta": {"content": "one two"}, "finish_reason": "stop"}]})
            )]),
        ),
        ("no last line end", plain(&[half("one two"), stop.strip_suffix(b"\n\n").unwrap().to_vec()])),
        ("another type", Reply::new(200).header("content-type", "text/plain").piece(&crlf)),
    ] {
        let server = Server::start(move |_, _| reply.clone());
        let outcome = DIALECTS[0].q(&Sandbox::new(), &server, &["hi"]).run();
        outcome.check(outcome.status.success(), || format!("expected success: {what}"));
        outcome.success().stdout("one two\n");
    }
}
