//! `--web`: what is offered to which provider, what a pause brings, and where the sources of an answer stand.

use serde_json::{Value, json};

use crate::dialect::{
    DIALECTS, Dialect, anthropic_reply, failure, gemini_reply, openai_event, openai_reply,
    responses_reply, typed_event, word,
};
use crate::fixtures::{CREATED, STORED_MODEL, case, prompt, refused, snapshot, stored, texts};
use crate::pty::{Terminal, WIDE};
use crate::sandbox::{API_KEY, Q, Sandbox};
use crate::server::{Gate, Reply, Server};
use crate::toolserver::section;

const ANTHROPIC: &Dialect = &DIALECTS[1];

/// Sections that make openai and xai speak the Responses API at any address.
const RESPONSES: &str =
    "[providers.openai]\napi = \"responses\"\n[providers.xai]\napi = \"responses\"\n";

/// A section of a provider with a name of the user's own.
const OWN: &str =
    "[providers.own]\nbase_url = \"http://127.0.0.1:9/v1\"\nkey_env = \"OWN_API_KEY\"\n";

/// The providers that can search: the dialect that each is asked in, the path, and what it is offered.
fn searching() -> [(&'static str, &'static Dialect, &'static str, Value); 5] {
    let responses = json!({"type": "web_search"});
    [
        (
            "anthropic",
            ANTHROPIC,
            "/v1/messages",
            json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 5}),
        ),
        ("openai", &DIALECTS[3], "/v1/responses", responses.clone()),
        (
            "gemini",
            &DIALECTS[2],
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            json!({"google_search": {}}),
        ),
        (
            "openrouter",
            &DIALECTS[0],
            "/v1/chat/completions",
            json!({"type": "openrouter:web_search"}),
        ),
        ("xai", &DIALECTS[3], "/v1/responses", responses),
    ]
}

/// q that asks this provider at the server.
fn q(sandbox: &Sandbox, server: &Server, provider: &str, args: &[&str]) -> Q {
    let name = provider.to_uppercase();
    let version = if ["anthropic", "gemini"].contains(&provider) {
        ""
    } else {
        "/v1"
    };
    sandbox
        .q(&["-p", provider, "-m", "m"])
        .args(args)
        .env(format!("{name}_BASE_URL"), server.url() + version)
        .env(format!("{name}_API_KEY"), API_KEY)
        .env("Q_RETRIES", "0")
}

/// A server that answers in the dialect of each request.
fn answering(answer: &'static str) -> Server {
    Server::start(move |request, _| match request.path.as_str() {
        "/v1/messages" => anthropic_reply(request, answer),
        "/v1/responses" => responses_reply(request, answer),
        "/v1/chat/completions" => openai_reply(request, answer),
        _ => gemini_reply(request, answer),
    })
}

#[test]
fn each_provider_is_offered_the_search_of_its_api_and_nothing_else_changes() {
    for (provider, _, path, tool) in searching() {
        let _case = case(provider);
        let server = answering("ok");
        let sandbox = Sandbox::new();
        sandbox.config(RESPONSES);
        for args in [&["--web", "hi"][..], &["-w", "hi"], &["hi"]] {
            q(&sandbox, &server, provider, args)
                .run()
                .success()
                .stdout("ok\n");
        }
        let [long, short, without] = &server.requests()[..] else {
            panic!("three requests")
        };
        assert_eq!((long.path.as_str(), short.json()), (path, long.json()));
        let mut body = long.json();
        assert_eq!(body["tools"], json!([tool]));
        let fields = body.as_object_mut().expect("an object");
        let caching = fields.remove("cache_control");
        assert_eq!(
            caching,
            (provider == "anthropic").then(|| json!({"type": "ephemeral"}))
        );
        fields.remove("tools");
        assert_eq!(body, without.json());
        let printed = q(&sandbox, &server, provider, &["-j", "-w", "hi"])
            .run()
            .success()
            .stdout_json();
        assert_eq!(printed["sources"], json!([]));
    }
}

#[test]
fn beside_tools_a_search_is_offered_until_calls_are_forbidden() {
    for (provider, dialect, _, tool) in searching() {
        let _case = case(provider);
        let answer = dialect.reply;
        let server = Server::start(move |request, number| match number {
            0 => dialect.calling("", &[("aaaaaaaa1", "db__echo", json!({"text": "hi"}))]),
            _ => answer(request, "ok"),
        });
        let sandbox = Sandbox::new().env("Q_ROUNDS", "1");
        sandbox.config(&(RESPONSES.to_owned() + &section(&sandbox, "db", "", "only = [\"echo\"]")));
        q(&sandbox, &server, provider, &["-w", "-t", "db", "hi"])
            .run()
            .exit(0)
            .stdout("ok\n");
        let [first, last] = &server.requests()[..] else {
            panic!("two requests")
        };
        let (first, last) = (first.json(), last.json());
        assert_eq!(
            first["tools"].as_array().map(Vec::len),
            Some(2),
            "{}",
            first["tools"]
        );
        assert!(
            first["tools"][0].to_string().contains("db__echo"),
            "{}",
            first["tools"]
        );
        assert_eq!(first["tools"][1], tool);
        let expected = if provider == "openrouter" {
            &Value::Null
        } else {
            &first["tools"]
        };
        assert_eq!(last.get("tools").unwrap_or(&Value::Null), expected);
        let mode = json!({"mode": "NONE"});
        let [before, after] = match provider {
            "anthropic" => [Value::Null, json!({"type": "none"})],
            "gemini" => [
                json!({"includeServerSideToolInvocations": true}),
                json!({"functionCallingConfig": mode, "includeServerSideToolInvocations": true}),
            ],
            "openrouter" => [Value::Null, Value::Null],
            _ => [Value::Null, json!("none")],
        };
        let choice = if provider == "gemini" {
            "toolConfig"
        } else {
            "tool_choice"
        };
        assert_eq!([&first[choice], &last[choice]], [&before, &after]);
    }
}

#[test]
fn a_provider_without_a_search_is_refused_before_anything_is_read() {
    for provider in [
        "openai", "groq", "mistral", "deepseek", "xai", "cerebras", "zai", "moonshot", "ollama",
        "llamacpp", "lmstudio", "vllm", "own",
    ] {
        let _case = case(provider);
        let outcome = refused(|sandbox| {
            // xAI's own address would have a search.
            let xai = "[providers.xai]\napi = \"openai\"\n";
            sandbox.config(&format!("{OWN}{xai}[roles.news]\nweb = true\n"));
            let name = provider.to_uppercase();
            let q = sandbox
                .q(&["-p", provider, "-m", "m"])
                .args(if provider == "own" {
                    &["-r", "news"]
                } else {
                    &["-w"]
                });
            q.arg("who won?")
                .env(format!("{name}_API_KEY"), API_KEY)
                .stdin_open()
        });
        outcome.stderr_contains_all(&[
            provider,
            "anthropic, openai, gemini, openrouter, xai",
            "-t ",
        ]);
    }
    // Where only the conversation knows the provider, it must be read first.
    let server = Server::openai("never");
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.write_session("work.json", &stored(&["one", "two"]));
    let before = snapshot(sandbox.state());
    sandbox
        .q(&["-w", "-s", "work", "who won?"])
        .run()
        .exit(2)
        .stderr_contains("--web: openai cannot search");
    before.expect_unchanged();
    server.expect_requests(0);
    refused(|sandbox| sandbox.q(&["-w", "--last"])).stderr_contains("--last cannot use --web");
}

#[test]
fn a_provider_of_the_users_own_searches_if_its_api_can() {
    let [(.., anthropic), (.., responses), (.., gemini), _, _] = searching();
    for (api, tool) in [
        ("anthropic", anthropic),
        ("responses", responses),
        ("gemini", gemini),
    ] {
        let _case = case(api);
        let server = answering("ok");
        let sandbox = Sandbox::new();
        sandbox.config(&format!("{OWN}api = \"{api}\"\n"));
        let base_url = if api == "responses" {
            server.url() + "/v1"
        } else {
            server.url()
        };
        q(&sandbox, &server, "own", &["-w", "hi"])
            .env("OWN_BASE_URL", base_url)
            .run()
            .success();
        assert_eq!(server.request().json()["tools"], json!([tool]));
    }
}

#[test]
fn a_search_is_not_remembered_and_goes_with_what_else_shapes_a_question() {
    let server = answering("```\nls\n```");
    let sandbox = Sandbox::new().anthropic_env(&server);
    let searches = |args: &[&str]| {
        sandbox.q(args).run().success();
        server.last_request().json().get("tools").is_some()
    };
    for (args, expected) in [
        (&["-w", "one"][..], true),
        (&["-f", "two"], false),
        (&["-f", "-w", "three"], true),
        (&["--again"], false),
        (&["--again", "-w"], true),
        (&["-wx", "four"], true),
        (&["-w", "--no-stream", "five"], true),
    ] {
        let _case = case(args);
        assert_eq!(searches(args), expected);
    }
    assert_eq!(sandbox.current().get("web"), None);
}

#[test]
fn with_a_search_the_prompt_alone_describes_the_shape() {
    for (provider, dialect, ..) in searching() {
        let _case = case(provider);
        let server = answering("```json\n{\"name\":\"Ann\"}\n```");
        let sandbox = Sandbox::new();
        sandbox.config(RESPONSES);
        let outcome = q(
            &sandbox,
            &server,
            provider,
            &["-w", "--schema", "name", "who won?"],
        )
        .run();
        outcome.success().stdout("{\"name\":\"Ann\"}\n");
        let request = server.request();
        for field in [
            "response_format",
            "text",
            "output_config",
            "generationConfig",
        ] {
            assert_eq!(request.json().get(field), None);
        }
        let question = &dialect.sent(&request).1[0].1;
        assert!(
            question.starts_with("who won?") && question.contains("\"name\""),
            "{question}"
        );
    }
}

#[test]
fn the_shape_is_found_after_the_last_search() {
    let json = "{\"name\":\"Ann\"}";
    let answer = |then: &str| {
        message(
            &json!([text("I look."), search("s1"), found("s1"), text(then)]),
            "end_turn",
        )
    };
    let paused = message(&json!([text("I look."), search("s1")]), "pause_turn");
    let continued = message(
        &json!([found("s1"), text("{\"name\":"), text("\"Ann\"}")]),
        "end_turn",
    );
    for (what, replies, exit, stdout) in [
        ("JSON", vec![answer(json)], 0, json),
        (
            "JSON in a block",
            vec![answer("```json\n{\"name\":\"Ann\"}\n```")],
            0,
            json,
        ),
        ("JSON after a pause", vec![paused, continued], 0, json),
        ("words", vec![answer("It is Ann.")], 1, ""),
        ("JSON of another shape", vec![answer("{\"age\":7}")], 1, ""),
        (
            "no search",
            vec![message(&json!([text("I know."), text(json)]), "end_turn")],
            1,
            "",
        ),
    ] {
        let _case = case(what);
        let (_server, sandbox) = replying(replies);
        let outcome = sandbox.q(&["-w", "--schema", "name", "who won?"]).run();
        outcome
            .exit(exit)
            .check(outcome.stdout_text().trim_end() == stdout, || {
                stdout.to_owned()
            });
    }
}

// ---- Pauses

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

fn citation(number: u8) -> Value {
    json!({"type": "web_search_result_location", "url": format!("https://example.com/{number}"),
           "title": format!("Page {number}"), "cited_text": "It is.", "encrypted_index": "SQ=="})
}

/// A sandbox that asks a server whose replies are these, one after another, and then the last one again.
fn replying(replies: Vec<Reply>) -> (Server, Sandbox) {
    let server = Server::start(move |_, number| replies[number.min(replies.len() - 1)].clone());
    let sandbox = Sandbox::new().anthropic_env(&server).env("Q_RETRIES", "0");
    (server, sandbox)
}

#[test]
fn a_paused_answer_is_continued_with_what_came_untouched() {
    let delta = |index, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let start = |index, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let first = [
        start(
            0,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        start(1, json!({"type": "text", "text": ""})),
        start(2, json!({"type": "text", "text": "", "citations": []})),
        delta(
            2,
            json!({"type": "citations_delta", "citation": citation(1)}),
        ),
        delta(2, json!({"type": "text_delta", "text": "Let me "})),
        delta(2, json!({"type": "text_delta", "text": "see. "})),
        start(
            3,
            json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}),
        ),
        delta(
            3,
            json!({"type": "input_json_delta", "partial_json": "{\"query\":\"sky\","}),
        ),
        delta(
            3,
            json!({"type": "input_json_delta", "partial_json": "\"a\":1}"}),
        ),
        json!({"type": "message_delta", "delta": {"stop_reason": "pause_turn"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ];
    // The result of the last search comes with the next reply.
    let second = json!([found("s1"), search("s2")]);
    let third = json!([found("s2"), {"type": "text", "text": "Light.", "citations": [citation(2), citation(1)]}]);
    let (server, sandbox) = replying(vec![
        Reply::sse(first.map(typed_event)),
        message(&second, "pause_turn"),
        message(&third, "end_turn"),
    ]);
    let outcome = sandbox.q(&["-w", "why?"]).run();
    let sources = "q: [1] Page 1 https://example.com/1\nq: [2] Page 2 https://example.com/2\n";
    outcome
        .exit(0)
        .stdout("Let me see. Light.\n")
        .stderr(sources);
    let came = json!([
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "Let me see. ", "citations": [citation(1)]},
        search("s1"),
    ]);
    let bodies: Vec<Value> = server
        .requests()
        .iter()
        .map(|request| request.json())
        .collect();
    let all = came
        .as_array()
        .expect("blocks")
        .iter()
        .chain(second.as_array().expect("blocks"))
        .cloned()
        .collect();
    for (body, content) in bodies[1..].iter().zip([came, all]) {
        let mut expected = bodies[0].clone();
        let turn = json!({"role": "assistant", "content": content});
        expected["messages"]
            .as_array_mut()
            .expect("messages")
            .push(turn);
        assert_eq!(*body, expected);
    }
    assert_eq!(bodies.len(), 3);
    let answer = &sandbox.current()["messages"][1];
    assert_eq!(
        (&answer["content"], answer.get("finish")),
        (&json!("Let me see. Light."), None)
    );
    assert_eq!(answer["usage"]["output_tokens"], 6);
    // Some servers do not say that a text begins.
    let said = delta(0, json!({"type": "text_delta", "text": "Wait. "}));
    let end = [
        json!({"type": "message_delta", "delta": {"stop_reason": "pause_turn"}}),
        json!({"type": "message_stop"}),
    ];
    let (server, sandbox) = replying(vec![
        Reply::sse([said].into_iter().chain(end).map(typed_event)),
        message(&third, "end_turn"),
    ]);
    sandbox
        .q(&["-w", "why?"])
        .run()
        .exit(0)
        .stdout("Wait. Light.\n");
    assert_eq!(
        server.last_request().json()["messages"][1]["content"],
        json!([text("Wait. ")])
    );
}

#[test]
fn a_follow_up_searches_with_the_provider_that_its_conversation_keeps() {
    let (server, sandbox) = replying(vec![message(&json!([text("one")]), "end_turn")]);
    sandbox.q(&["-p", "anthropic", "why?"]).run().success();
    let sandbox = sandbox.env("Q_PROVIDER", "groq").env("GROQ_API_KEY", "k");
    sandbox.q(&["-f", "-w", "how?"]).run().success();
    assert_eq!(
        server.last_request().json()["tools"][0]["name"],
        "web_search"
    );
    sandbox
        .q(&["-w", "a new one"])
        .run()
        .exit(2)
        .stderr_contains("groq cannot search");
    server.expect_requests(2);
}

#[test]
fn an_answer_is_continued_as_often_as_the_setting_says() {
    let paused = |said: &str| message(&json!([text(said), search("s1")]), "pause_turn");
    let dots = ["."; 11].join("\n\n");
    for (rounds, said, args, exit, stdout, requests) in [
        ("10", ".", &["-w", "why?"][..], 3, dots.as_str(), 11),
        ("2", ".", &["-w", "why?"], 3, ".\n\n.\n\n.\n", 3),
        // Whoever runs or parses what is printed gets all of it or nothing.
        ("1", "```\nrm\n```\n", &["-wx", "why?"], 3, "", 2),
        ("1", "", &["-w", "why?"], 1, "", 2),
        ("1", " \n", &["-w", "why?"], 1, " \n", 2),
    ] {
        let _case = case((rounds, said, args));
        let (server, sandbox) = replying(vec![paused(said)]);
        let outcome = sandbox.q(args).env("Q_ROUNDS", rounds).run();
        outcome.exit(exit).stderr_contains("pause_turn");
        outcome.check(
            outcome.stdout.starts_with(stdout.trim_end().as_bytes()),
            || stdout.to_owned(),
        );
        server.expect_requests(requests);
        if exit == 3 {
            let answer = &sandbox.current()["messages"][1];
            assert_eq!(
                (&answer["finish"], answer.get("interrupted")),
                (&json!("pause_turn"), None)
            );
        }
    }
}

#[test]
fn what_follows_a_pause_is_part_of_the_answer() {
    let paused = |said: &str| message(&json!([text(said), search("s1")]), "pause_turn");
    for (said, then, exit, content, marks) in [
        // What came before the pause may be all.
        (
            "all",
            message(&json!([found("s1")]), "end_turn"),
            0,
            "all",
            [Value::Null, Value::Null],
        ),
        (
            "",
            message(&json!([found("s1"), text("all")]), "end_turn"),
            0,
            "all",
            [Value::Null, Value::Null],
        ),
        (
            "one ",
            message(&json!([text("two")]), "max_tokens"),
            3,
            "one two",
            [json!("max_tokens"), Value::Null],
        ),
        (
            "one ",
            message(&json!([found("s1")]), "max_tokens"),
            3,
            "one ",
            [json!("max_tokens"), Value::Null],
        ),
        (
            "one ",
            failure(500, "busy"),
            1,
            "one ",
            [Value::Null, json!(true)],
        ),
        (
            "one ",
            message(&json!([]), "refusal"),
            1,
            "one ",
            [json!("refusal"), json!(true)],
        ),
    ] {
        let _case = case((said, exit, content));
        let (server, sandbox) = replying(vec![paused(said), then]);
        sandbox
            .q(&["-w", "why?"])
            .run()
            .exit(exit)
            .stdout_contains(content.trim_end());
        server.expect_requests(2);
        let answer = &sandbox.current()["messages"][1];
        assert_eq!(
            (
                &answer["content"],
                [&answer["finish"], &answer["interrupted"]]
            ),
            (&json!(content), [&marks[0], &marks[1]])
        );
    }
    // Another try follows a pause like any other request.
    let (server, sandbox) = replying(vec![
        paused("one "),
        failure(529, "busy"),
        message(&json!([text("two")]), "end_turn"),
    ]);
    sandbox
        .q(&["-w", "why?"])
        .env("Q_RETRIES", "1")
        .run()
        .success()
        .stdout("one two\n");
    server.expect_requests(3);
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
        // A fence and a heading need a line of their own.
        ("I look. ", "\n\n", script),
        ("I look.", "\n\n", " ```\nls\n```"),
        ("I look. ", "\n\n", "###### Six\nDone."),
        ("I look. ", "\n\n", "##"),
        ("I look. ", "", "####### Seven"),
        ("I look. ", "", "#1 is it."),
        ("", "", "Found."),
        ("", "", script),
    ] {
        let paused = message(&json!([text(said), search("s1")]), "pause_turn");
        let searched = message(
            &json!([text(said), search("s1"), found("s1")]),
            "pause_turn",
        );
        for replies in [
            vec![message(
                &json!([text(said), search("s1"), found("s1"), text(then)]),
                "end_turn",
            )],
            vec![
                paused,
                message(&json!([found("s1"), text(then)]), "end_turn"),
            ],
            vec![searched, message(&json!([text(then)]), "end_turn")],
        ] {
            let _case = case((said, then, replies.len()));
            let (_server, sandbox) = replying(replies);
            sandbox
                .q(&["-w", "how?"])
                .run()
                .success()
                .stdout(format!("{said}{separator}{then}\n"));
        }
    }
}

#[test]
fn a_pause_alone_ends_no_paragraph() {
    for (said, then, answer) in [
        ("It is bl", "ue.", "It is blue.\n"),
        ("Run:", "```\nls\n```", "Run:\n\n```\nls\n```\n"),
    ] {
        let _case = case((said, then));
        let (_server, sandbox) = replying(vec![
            message(&json!([text(said)]), "pause_turn"),
            message(&json!([text(then)]), "end_turn"),
        ]);
        sandbox.q(&["-w", "how?"]).run().success().stdout(answer);
    }
}

#[test]
fn a_call_after_a_pause_has_all_of_the_turn_before_its_result() {
    let call = json!({"type": "tool_use", "id": "x1", "name": "db__echo", "input": {"text": "hi"}});
    let cited = json!({"type": "text", "text": "Wait. ", "citations": [citation(1)]});
    let (server, sandbox) = replying(vec![
        message(&json!([cited, search("s1")]), "pause_turn"),
        // A search beside a call has no result yet.
        message(&json!([found("s1"), search("s2"), call]), "tool_use"),
        message(&json!([found("s2"), search("s3")]), "pause_turn"),
        message(
            &json!([found("s3"), {"type": "text", "text": "Light.", "citations": [citation(2)]}]),
            "end_turn",
        ),
    ]);
    sandbox.config(&section(&sandbox, "db", "", "only = [\"echo\"]"));
    let outcome = sandbox.q(&["-w", "-t", "db", "-j", "why?"]).run();
    let printed = outcome.exit(0).stdout_json();
    assert_eq!(
        (&printed["answer"], &printed["rounds"]),
        (&json!("Light."), &json!(1))
    );
    let source = |number: u8| json!({"url": format!("https://example.com/{number}"), "title": format!("Page {number}")});
    assert_eq!(printed["sources"], json!([source(1), source(2)]));
    let messages = server.requests()[3].json()["messages"].clone();
    let turn = json!({"role": "assistant", "content": [cited, search("s1"), found("s1"), search("s2"), call]});
    let result = json!({"type": "tool_result", "tool_use_id": "x1", "content": "you said hi"});
    let rest = [
        turn,
        json!({"role": "user", "content": [result]}),
        json!({"role": "assistant", "content": [found("s2"), search("s3")]}),
    ];
    assert_eq!(messages.as_array().expect("messages")[1..], rest);
    let answer = &sandbox.current()["messages"][1];
    assert_eq!(
        (&answer["steps"][0]["text"], &answer["sources"]),
        (&json!("Wait. "), &printed["sources"])
    );
}

#[test]
fn a_signal_after_a_pause_saves_an_interrupted_answer_with_its_sources() {
    let cited = json!({"type": "text", "text": "one ", "citations": [citation(1)]});
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
    assert_eq!(
        (&answer["content"], &answer["interrupted"]),
        (&json!("one "), &json!(true))
    );
    assert_eq!(
        answer["sources"],
        json!([{"url": "https://example.com/1", "title": "Page 1"}])
    );
}

#[test]
fn what_the_providers_own_calls_leave_goes_back_untouched_beside_a_call() {
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "sky"}});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "x1", "name": "db__echo", "arguments": "{}"});
    let items = json!([search, call]);
    let responses =
        json!({"type": "response.completed", "response": {"status": "completed", "output": items}});
    let parts = json!([
        {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["sky"]}, "id": "t1"}, "thoughtSignature": "c2ln"},
        {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {"search_suggestions": "x"}, "id": "t1"}},
        {"functionCall": {"id": "x1", "name": "db__echo", "args": {}}},
    ]);
    let gemini =
        json!({"type": "x", "candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]});
    for (dialect, event, turn, left) in [
        (&DIALECTS[3], responses, "/input/1", &items[0]),
        (&DIALECTS[2], gemini, "/contents/1/parts", &parts),
    ] {
        let _case = case(dialect.provider);
        let answer = dialect.reply;
        let server = Server::start(move |request, number| match number {
            0 => Reply::sse([typed_event(event.clone())]),
            _ => answer(request, "ok"),
        });
        let sandbox = Sandbox::new();
        sandbox.config(&section(&sandbox, "db", "", "only = [\"echo\"]"));
        dialect
            .q(&sandbox, &server, &["-w", "-t", "db", "why?"])
            .run()
            .exit(0)
            .stdout("ok\n");
        let [_, second] = &server.requests()[..] else {
            panic!("two requests")
        };
        assert_eq!(second.json().pointer(turn), Some(left));
        assert_eq!(
            sandbox.current()["messages"][1]["steps"][0]["calls"]
                .as_array()
                .map(Vec::len),
            Some(1)
        );
    }
}

// ---- Sources

/// An answer of an OpenAI-like server with these sources, each an address and a title.
fn with_sources(sources: &[(&str, &str)]) -> Reply {
    let annotation = |(url, title): &(&str, &str)| json!({"type": "url_citation", "url_citation": {"url": url, "title": title}});
    let annotations: Vec<Value> = sources.iter().map(annotation).collect();
    Reply::sse([
        word("answer"),
        openai_event(
            json!({"content": "", "annotations": annotations}),
            Some("stop"),
        ),
    ])
}

#[test]
fn sources_follow_the_answer_and_are_kept_with_it() {
    let server = Server::always(with_sources(&[
        ("https://a.example/", "A page"),
        ("http://b.example/?x=1", "12"),
    ]));
    let sandbox = Sandbox::new().server_env(&server);
    let lines = "[1] A page https://a.example/\n[2] http://b.example/?x=1\n";
    let notes = "q: [1] A page https://a.example/\nq: [2] http://b.example/?x=1\n";
    let list =
        json!([{"url": "https://a.example/", "title": "A page"}, {"url": "http://b.example/?x=1"}]);
    // A search that a field of the request asks for has them, too.
    let asked = ["-o", "web_search_options={}", "why?"];
    let asking = |more: &[&str]| sandbox.q(&[more, &asked].concat()).run();
    for (args, stderr) in [(&[][..], notes), (&["--no-stream"], notes), (&["-q"], "")] {
        let _case = case(args);
        asking(args).exit(0).stdout("answer\n").stderr(stderr);
        assert_eq!(sandbox.current()["messages"][1]["sources"], list);
    }
    assert_eq!(
        asking(&["-j"]).exit(0).stderr(notes).stdout_json()["sources"],
        list
    );
    let history = sandbox.q(&["--history"]).run();
    history.success().check(
        history
            .stdout_text()
            .ends_with(&format!("]\nanswer\n{lines}")),
        || lines.to_owned(),
    );
    // The next question does not send them.
    sandbox.q(&["-f", "and then?"]).run().exit(0);
    assert!(!prompt(&server.last_request()).contains("a.example"));
    let terminal = Terminal::new(WIDE);
    sandbox
        .q(&["why?"])
        .stdout_to(terminal.end())
        .stderr_to(terminal.end())
        .run()
        .exit(0);
    assert_eq!(
        terminal.screen(),
        [
            "answer",
            "q: [1] A page https://a.example/",
            "q: [2] http://b.example/?x=1",
            ""
        ]
    );
}

#[test]
fn a_source_is_one_harmless_line() {
    let title = "two\r\nlines\u{2028}\u{1b}]0;x\u{7}\u{202e}q: [9] \u{9b}1m";
    let url = "https://a.example/\u{202e}x";
    let line = "[1] two lines ^[]0;x^G<U+202E>q: [9] <9B>1m https://a.example/<U+202E>x";
    let none = [
        "javascript:x",
        "//a.example",
        "https",
        "https://",
        "https:///x",
        "https://b c/",
        "https://b/\u{1b}[2J\nq",
    ];
    let sources: Vec<_> = [(url, title)]
        .into_iter()
        .chain(none.map(|url| (url, "x")))
        .collect();
    let server = Server::always(with_sources(&sources));
    let sandbox = Sandbox::new().server_env(&server);
    sandbox
        .q(&["why?"])
        .run()
        .exit(0)
        .stdout("answer\n")
        .stderr(format!("q: {line}\n"));
    // No note shows the key.
    let echoing = format!("https://a.example/?key={API_KEY}");
    let server = Server::always(with_sources(&[(&echoing, API_KEY)]));
    let outcome = Sandbox::new().server_env(&server).q(&["why?"]).run();
    outcome
        .exit(0)
        .stderr_contains("q: [1] ")
        .stderr_lacks(API_KEY);
    // Files and programs get what the provider sent.
    assert_eq!(
        sandbox.current()["messages"][1]["sources"],
        json!([{"url": url, "title": title}])
    );
    sandbox
        .q(&["--history"])
        .run()
        .success()
        .stdout_contains(&format!("answer\n{line}\n"));
}

#[test]
fn sources_of_an_answer_that_breaks_off_are_kept() {
    let annotations =
        json!([{"type": "url_citation", "url_citation": {"url": "https://a.example/"}}]);
    let first = openai_event(
        json!({"content": "half ", "annotations": annotations}),
        None,
    );
    let server = Server::always(Reply::sse([first]).cut());
    let sandbox = Sandbox::new().server_env(&server);
    sandbox
        .q(&["why?"])
        .run()
        .exit(1)
        .stdout("half \n")
        .stderr_contains("q: [1] https://a.example/\n");
    assert_eq!(
        sandbox.current()["messages"][1]["sources"],
        json!([{"url": "https://a.example/"}])
    );
    // A reader that goes away hears no more.
    let gate = Gate::new();
    let reply = Reply::sse([openai_event(
        json!({"content": "half ", "annotations": annotations}),
        None,
    )]);
    let server = Server::always(reply.wait_for(&gate).piece(word("more")).hang());
    let mut running = Sandbox::new().server_env(&server).q(&["why?"]).spawn();
    running.read_stdout_until("half ");
    running.close_stdout();
    gate.open();
    running.wait().exit(0).stderr_is_empty();
}

#[test]
fn sources_of_a_reply_without_text_are_kept() {
    let annotations =
        json!([{"type": "url_citation", "url_citation": {"url": "https://a.example/"}}]);
    let function = json!({"name": "db__echo", "arguments": "{\"text\":\"hi\"}"});
    let calls = json!([{"index": 0, "id": "aaaaaaaa1", "type": "function", "function": function}]);
    let delta = json!({"content": "", "annotations": annotations, "tool_calls": calls});
    let server = Server::start(move |request, number| match number {
        0 => Reply::sse([openai_event(delta.clone(), Some("tool_calls"))]),
        _ => openai_reply(request, "ok"),
    });
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.config(&section(&sandbox, "db", "", "only = [\"echo\"]"));
    sandbox
        .q(&["-t", "db", "why?"])
        .run()
        .exit(0)
        .stdout("ok\n")
        .stderr_contains("q: [1] https://a.example/\n");
}

#[test]
fn sources_that_another_program_has_written_stay() {
    let (a, b) = ("https://a.example/", "HTTP://b.example/");
    for (sources, lines) in [
        (json!(a), ""),
        (json!([1, {"page": 2}, {"title": "A"}, {"url": 3}]), ""),
        (json!({"a": [{"url": a}]}), ""),
        // Only pages are shown, each once.
        (
            json!([{"url": "file:///a", "title": "A"}, {"url": "javascript:x"}, {"url": "a.example"}]),
            "",
        ),
        (
            json!([{"url": a, "title": 7}, 1, {"url": b, "title": "B", "x": 1}, {"url": b, "title": "C"}]),
            "[1] https://a.example/\n[2] B HTTP://b.example/\n",
        ),
    ] {
        let _case = case(&sources);
        let server = Server::openai("ok");
        let sandbox = Sandbox::new().server_env(&server).env("Q_EXPIRE", "never");
        let mut conversation = stored(&["one", "two"]);
        conversation["messages"][1]["sources"] = sources.clone();
        sandbox.write_current(&conversation);
        let shown = format!(
            "[user {CREATED}]\none\n\n[assistant {CREATED} openai/{STORED_MODEL}]\ntwo\n{lines}"
        );
        sandbox.q(&["--history"]).run().success().stdout(shown);
        sandbox.q(&["-f", "three"]).run().success();
        assert_eq!(
            (
                texts(&sandbox.current()).len(),
                &sandbox.current()["messages"][1]["sources"]
            ),
            (4, &sources)
        );
    }
}

#[test]
fn each_search_that_fails_is_one_note() {
    let failed = json!({"type": "web_search_call", "status": "failed"});
    let done = json!({"type": "response.output_item.done", "item": failed});
    let said = json!({"type": "message", "content": [{"type": "output_text", "text": "ok"}]});
    let end = json!({"type": "response.completed", "response": {"status": "completed", "output": [failed, failed, said]}});
    let server = Server::always(Reply::sse([done.clone(), done, end].map(typed_event)));
    let sandbox = Sandbox::new();
    let note = "q: a search of the web failed\n";
    DIALECTS[3]
        .q(&sandbox, &server, &["-w", "why?"])
        .run()
        .exit(0)
        .stdout("ok\n")
        .stderr(note.repeat(2));
}

#[test]
fn the_waiting_sign_says_that_the_provider_searches() {
    let calls = [
        (
            "anthropic",
            json!({"type": "content_block_start", "index": 0, "content_block": search("s1")}),
        ),
        (
            "responses",
            json!({"type": "response.web_search_call.searching", "output_index": 0, "item_id": "ws_1"}),
        ),
        (
            "responses",
            json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "web_search_call"}}),
        ),
        (
            "gemini",
            json!({"type": "x", "candidates": [{"content": {"parts": [{"toolCall": {"toolType": "GOOGLE_SEARCH_WEB"}}]}}]}),
        ),
    ];
    for (provider, event) in calls {
        let _case = case(provider);
        let dialect = DIALECTS
            .iter()
            .find(|dialect| dialect.provider == provider)
            .expect("a dialect");
        let gate = Gate::new();
        let server = Server::always(
            Reply::sse([typed_event(event)])
                .wait_for(&gate)
                .pieces((dialect.stream)(&["Hello"])),
        );
        let sandbox = Sandbox::new();
        let terminal = Terminal::new(WIDE);
        let q = dialect.q(&sandbox, &server, &["-w", "why?"]);
        let running = q
            .stdout_to(terminal.end())
            .stderr_to(terminal.end())
            .spawn();
        terminal.wait_for("searching the web, ", 0);
        gate.open();
        running.wait().exit(0);
        assert_eq!(terminal.screen(), ["Hello", ""]);
    }
}
