//! What goes to a provider and what comes back from it, in each dialect.

use serde_json::{Value, json};

use crate::fixtures::{DIALECTS, Dialect, answering, case, everybody, openai_reply, stored, talked, texts, with};
use crate::sandbox::{API_KEY, Sandbox};
use crate::server::{Recorded, Reply, Server};

/// The only message of an OpenAI-like request, less its system prompt.
fn flattened(request: &Recorded) -> String {
    let (_, mut messages) = DIALECTS[0].sent(request);
    assert_eq!(messages.len(), 1, "{messages:?}");
    messages.remove(0).1
}

/// The messages of a request: role and text.
type Messages<'a> = &'a [(&'a str, &'a str)];

/// Makes the body of a request, with or without a stream.
type Body = fn(bool, Messages) -> Value;

/// The messages in the form that a dialect gives to each.
fn turns(messages: Messages, turn: impl Fn(&str, &str) -> Value) -> Vec<Value> {
    messages.iter().map(|(role, text)| turn(role, text)).collect()
}

fn openai_body(stream: bool, messages: Messages) -> Value {
    let messages = [&[("system", "be terse")], messages].concat();
    let messages = turns(&messages, |role, text| json!({"role": role, "content": text}));
    match stream {
        true => {
            json!({"model": "m/1", "messages": messages, "stream": true, "stream_options": {"include_usage": true}})
        }
        false => json!({"model": "m/1", "messages": messages, "stream": false}),
    }
}

fn anthropic_body(stream: bool, messages: Messages) -> Value {
    let has_history = messages.len() > 1;
    let messages = turns(messages, |role, text| json!({"role": role, "content": text}));
    let mut body =
        json!({"model": "m/1", "max_tokens": 16384, "stream": stream, "system": "be terse", "messages": messages});
    if has_history {
        body["cache_control"] = json!({"type": "ephemeral"});
    }
    body
}

fn gemini_body(_: bool, messages: Messages) -> Value {
    let role = |role: &str| if role == "assistant" { "model" } else { "user" };
    let contents = turns(messages, |name, text| json!({"role": role(name), "parts": [{"text": text}]}));
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
        ("/v1/chat/completions", "/v1/chat/completions", openai, openai_body as Body),
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
        ("messages", &["-f"], &[("user", "one"), ("assistant", "two"), ("user", "hi there")]),
    ];
    for (dialect, (streamed_path, whole_path, headers, body)) in DIALECTS.iter().zip(table) {
        for (history, options, messages) in conversations {
            for (stream, more, path) in [(true, &[][..], streamed_path), (false, &["--no-stream"], whole_path)] {
                let _case = case((dialect.provider, history, options, more));
                let server = answering(dialect, "one two");
                let sandbox = Sandbox::new().env("Q_EXPIRE", "never").env("Q_HISTORY", history);
                let conversation = with(stored(&["one", "two"]), "provider", dialect.provider);
                sandbox.write_current(&with(conversation, "model", "m/1"));
                let args = [options, more, &["-m", "m/1", "-S", "be terse", "hi", "there"]].concat();
                dialect.q(&sandbox, &server, &args).run().success().stdout("one two\n");
                let request = server.request();
                assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", path));
                assert_eq!(request.json(), body(stream, messages));
                // A key in a second header would reach a server that was never to have it.
                let mut expected = headers.to_vec();
                let agent = concat!("q/", env!("CARGO_PKG_VERSION"));
                expected.extend([("content-type", "application/json"), ("user-agent", agent), ("accept", "*/*")]);
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
        let _case = case(provider);
        let server = everybody("ok");
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
        assert_eq!(body.pointer(limit), Some(&json!(77)), "{body}");
        assert_eq!(body.to_string().matches("77").count(), 1, "{body}");
        assert_eq!(body.get("stream_options").is_some(), usage, "{body}");

        q().run().success();
        let unlimited = &server.requests()[1].json();
        let sent = unlimited.pointer(limit).cloned();
        assert_eq!(sent, (provider == "anthropic").then(|| json!(16384)), "{unlimited}");
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
fn a_follow_up_sends_the_conversation_in_one_prompt_to_the_letter() {
    for dialect in &DIALECTS {
        let _case = case(dialect.provider);
        let server = answering(dialect, "a third");
        let sandbox = talked(dialect.provider, 2);
        dialect.q(&sandbox, &server, &["-f", "and then?"]).run().success();
        let (_, messages) = dialect.sent(&server.request());
        let prompt = "Previous conversation:\nHuman: question 1\n\nAssistant: answer 1\n\nHuman: question 2\n\n\
                      Assistant: answer 2\n\nHuman: and then?";
        assert_eq!(messages, [("user".to_owned(), prompt.to_owned())]);
        // The flattened form and the system prompt are for the wire only.
        let kept = sandbox.current();
        assert_eq!(texts(&kept)[4..], ["and then?", "a third"]);
        assert!(!kept.to_string().contains("Previous conversation"), "{kept}");
        assert!(!kept.to_string().contains("system"), "{kept}");
    }
}

#[test]
fn a_follow_up_sends_turns_where_the_setting_says_so() {
    for dialect in &DIALECTS {
        let _case = case(dialect.provider);
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
        let _case = case(args);
        let sandbox = talked("openai", 6).server_env(&server);
        sandbox.q(&[args, &["-f", "next"]].concat()).run().success();
        assert_eq!(flattened(&server.last_request()), sent);
        // The window is about what is sent, not about what is kept.
        assert_eq!(texts(&sandbox.current()).len(), 14);
    }
    let sandbox = talked("openai", 6).server_env(&server);
    sandbox.q(&["-f", "next"]).run().success();
    let prompt = flattened(&server.last_request());
    assert!(prompt.starts_with("Previous conversation:\nHuman: question 2\n\n"), "{prompt}");
}

#[test]
fn a_window_of_too_many_bytes_loses_its_oldest_messages_with_a_note() {
    let server = Server::openai("ok");
    // `question 1` has 10 bytes, `answer 1` has 8.
    let asked = |most: &str, begin: &str| {
        let _case = case(most);
        let sandbox = talked("openai", 2).server_env(&server).env("Q_MAX_HISTORY", most);
        let outcome = sandbox.q(&["-f", "next"]).run();
        outcome.exit(0).stdout("ok\n");
        let prompt = flattened(&server.last_request());
        assert!(prompt.starts_with(begin), "{prompt}");
        assert_eq!(texts(&sandbox.current()).len(), 6);
        outcome
    };
    asked("36", "Previous conversation:\nHuman: question 1\n").stderr_is_empty();
    for (most, left_out, begin) in [
        ("35", "message", "Previous conversation:\nAssistant: answer 1\n"),
        ("8", "3", "Previous conversation:\nAssistant: answer 2\n"),
        ("7", "4", "next"),
    ] {
        asked(most, begin).stderr_contains("max_history").stderr_contains(left_out);
    }
}

#[test]
fn the_system_prompt_is_the_option_else_the_setting_else_the_built_in_one() {
    for dialect in &DIALECTS {
        let _case = case(dialect.provider);
        let server = answering(dialect, "ok");
        for (file, variable, args, system) in [
            ("", "", &["-S", "of the option"][..], Some("of the option")),
            ("system = \"of the file\"", "of the variable", &["-S", "of the option"], Some("of the option")),
            ("system = \"of the file\"", "of the variable", &[], Some("of the variable")),
            ("system = \"of the file\"", "", &[], Some("of the file")),
            ("system = \"of the file\"", "of the variable", &["-S", ""], None),
            ("system = \"\"", "", &[], None),
        ] {
            let _case = case((dialect.provider, file, variable, args));
            let sandbox = Sandbox::new();
            sandbox.config(file);
            let q = dialect.q(&sandbox, &server, &[args, &["hi"]].concat());
            q.env("Q_SYSTEM", variable).run().success();
            let request = server.last_request();
            assert_eq!(dialect.sent(&request).0.as_deref(), system);
            // A system prompt that is empty is refused by some servers.
            let empty = system.is_none() && request.text().to_lowercase().contains("system");
            assert!(!empty, "{}", request.text());
        }
        dialect.q(&Sandbox::new(), &server, &["hi"]).env("SHELL", "/usr/bin/fish").run().success();
        let (system, _) = dialect.sent(&server.last_request());
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
        let history = text.matches("Human: question").count() + text.matches("Assistant: answer").count();
        if history > room { Reply::json(400, body.clone()) } else { reply(request, "ok") }
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
            outcome.exit(0).stdout("ok\n").stderr_contains(left_out).stderr_has_lines(1);
            server.expect_requests(requests);
            let kept = sandbox.current();
            assert_eq!(texts(&kept).len(), 12, "{kept}");
            assert_eq!(kept["messages"].as_array().unwrap()[..10], before["messages"].as_array().unwrap()[..]);
        }
    }
}

#[test]
fn a_question_that_is_too_long_by_itself_fails_and_changes_nothing() {
    for dialect in &DIALECTS {
        let _case = case(dialect.provider);
        let server = Server::always(Reply::json(400, dialect.error(400, "prompt is too long")));
        let sandbox = talked(dialect.provider, 1);
        let before = sandbox.read_bytes("current.json");
        let follow = dialect.q(&sandbox, &server, &["-f", "next"]).run();
        follow.exit(1).stdout_is_empty().stderr_contains("prompt is too long");
        // With two messages, with one, with none.
        server.expect_requests(3);
        let alone = dialect.q(&sandbox, &server, &["next"]).run();
        alone.exit(1).stderr_contains_all(&["prompt is too long", "with less input", "-m"]);
        server.expect_requests(4);
        sandbox.expect_bytes("current.json", before);
        sandbox.expect_files(&["current.json"]);
    }
}

#[test]
fn turns_that_were_not_sent_are_counted_as_they_went() {
    let server = narrow_by_turns(6);
    let sandbox = talked("openai", 5).server_env(&server).env("Q_HISTORY", "messages");
    let outcome = sandbox.q(&["-f", "next"]).run();
    let turns = DIALECTS[0].sent(&server.last_request()).1.len() - 1;
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
