//! Tools over HTTP: sessions, keys, what breaks on the way, and that nothing is lost by it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fixtures::{DIALECTS, Dialect, calling, case, data};
use crate::sandbox::{API_KEY, Sandbox};
use crate::server::{Gate, Recorded, Reply, Server};
use crate::toolserver::{INSTRUCTIONS, expect_gone, modern, section};

const OPENAI: &Dialect = &DIALECTS[0];

/// A key that only tool servers get.
const TOOL_KEY: &str = "tool-key-1234567";

/// A server of models that calls `web__echo` in each of so many rounds, with other words each time, and then answers.
fn model(rounds: usize) -> Server {
    Server::start(move |request, number| match number < rounds {
        true => calling(OPENAI, "let me see", &[("call00001", "web__echo", json!({"text": format!("hi {number}")}))]),
        false => (OPENAI.reply)(request, "the answer"),
    })
}

/// A sandbox that asks such a server, with this tool server `web`; `more` are more lines of its section.
fn with_web(model: &Server, url: &str, more: &str) -> Sandbox {
    let sandbox = Sandbox::new().server_env(model).env("Q_RETRIES", "0");
    sandbox.config(&format!("[tools.web]\nurl = \"{url}\"\n{more}\n"));
    sandbox
}

/// A tool server whose messages are JSON; `call` answers calls, counted from 0.
fn site(call: impl Fn(&Value, usize) -> Reply + Send + Sync + 'static) -> Server {
    site_of(move |_, message, number| call(message, number))
}

/// The same; `call` also gets the request that the call is in.
fn site_of(call: impl Fn(&Recorded, &Value, usize) -> Reply + Send + Sync + 'static) -> Server {
    let calls = AtomicUsize::new(0);
    Server::start(move |request, _| {
        let message = message(request);
        match message["method"].as_str() {
            Some("tools/call") => call(request, &message, calls.fetch_add(1, Ordering::SeqCst)),
            _ => usual(request, &message, "s1"),
        }
    })
}

/// What a client sends; nothing with a DELETE.
fn message(request: &Recorded) -> Value {
    if request.method == "POST" { request.json() } else { Value::Null }
}

/// What a tool server answers to all but calls; its session has this name.
fn usual(request: &Recorded, message: &Value, session: &str) -> Reply {
    match (request.method.as_str(), message["method"].as_str()) {
        ("POST", Some("initialize")) => answer(
            message,
            json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "site", "version": "3"}}),
        )
        .header("mcp-session-id", session),
        ("POST", Some("tools/list")) => {
            let hints = json!({"readOnlyHint": true, "openWorldHint": false, "destructiveHint": false});
            let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
            answer(message, json!({"tools": [{"name": "echo", "description": "does echo", "inputSchema": schema, "annotations": hints}]}))
        }
        ("POST", _) => Reply::new(202),
        _ => Reply::new(200),
    }
}

fn answer(message: &Value, result: Value) -> Reply {
    Reply::json(200, json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

fn echoed(message: &Value) -> Value {
    let said = message["params"]["arguments"]["text"].as_str().unwrap_or("nothing");
    json!({"content": [{"type": "text", "text": format!("you said {said}")}]})
}

fn echo(message: &Value, _: usize) -> Reply {
    answer(message, echoed(message))
}

/// The messages that a tool server got, by their method or as the answer that they are; `DELETE` is one too.
fn heard(site: &Server) -> Vec<String> {
    let name = |request: &Recorded| match request.method.as_str() {
        "POST" => request.json()["method"].as_str().unwrap_or("an answer").to_owned(),
        other => other.to_owned(),
    };
    site.requests().iter().map(name).collect()
}

const ONE_CALL: [&str; 5] = ["initialize", "notifications/initialized", "tools/list", "tools/call", "DELETE"];

/// The calls that a conversation has kept of its last answer.
fn kept(sandbox: &Sandbox) -> Vec<Value> {
    let steps = sandbox.current()["messages"][1]["steps"].as_array().cloned().unwrap_or_default();
    steps.iter().flat_map(|step| step["calls"].as_array().cloned().unwrap_or_default()).collect()
}

#[test]
fn a_question_takes_the_same_two_rounds_as_with_a_program() {
    let local = model(1);
    let sandbox = Sandbox::new().server_env(&local);
    sandbox.config(&section(&sandbox, "web", "", "only = [\"echo\"]"));
    sandbox.q(&["-t", "web", "what is there?"]).run().success().stdout("the answer\n");
    expect_gone(&sandbox, "web");
    let expected = (local.last_request().json()["messages"].clone(), kept(&sandbox));
    for streams in [false, true] {
        let _case = case(streams);
        let site = site(move |message, _| match streams {
            false => echo(message, 0),
            true => {
                let notice = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "busy"}});
                let result = json!({"jsonrpc": "2.0", "id": message["id"], "result": echoed(message)});
                Reply::sse([b": hello\n\n".to_vec(), data(&notice), data(&result)]).hang()
            }
        });
        let model = model(1);
        let sandbox = with_web(&model, &format!("{}/mcp?team=a%20b", site.url()), "allow = [\"echo\"]");
        sandbox.q(&["-t", "web", "what is there?"]).run().success().stdout("the answer\n");
        assert_eq!((model.last_request().json()["messages"].clone(), kept(&sandbox)), expected);
        assert_eq!(sandbox.current()["tools"], json!(["web"]));
        assert_eq!(heard(&site), ONE_CALL);
        for (number, request) in site.requests().iter().enumerate() {
            assert_eq!(request.path, "/mcp?team=a%20b");
            // The first request asks for both.
            let later = number > 0;
            assert_eq!(request.header("mcp-session-id"), later.then_some("s1"));
            assert_eq!(request.header("mcp-protocol-version"), later.then_some("2025-06-18"));
            if request.method == "POST" {
                assert_eq!(request.header("accept"), Some("application/json, text/event-stream"));
                assert_eq!(request.header("content-type"), Some("application/json"));
            }
            assert_eq!(request.header("authorization"), None);
        }
    }
}

#[test]
fn what_a_server_says_of_its_tools_allows_nothing() {
    for (args, more, runs) in [(&[][..], "", false), (&["--yes"], "", true), (&[], "allow = [\"ec*\"]", true)] {
        let _case = case((args, more));
        let (model, site) = (model(1), site(echo));
        let sandbox = with_web(&model, &site.url(), more);
        let outcome = sandbox.q(&["-t", "web"]).args(args).arg("go").run();
        outcome.exit(0).stdout("the answer\n");
        assert_eq!(heard(&site).contains(&"tools/call".to_owned()), runs);
        if runs {
            outcome.stderr("");
        } else {
            outcome.stderr_contains_all(&["web__echo did not run", "allow = [\"echo\"]", "[tools.web]", "--yes"]);
        }
        let asks = if more.is_empty() { "asks" } else { "runs" };
        sandbox.q(&["--list-tools"]).run().success().stdout(format!("web__echo\treads\t{asks}\tdoes echo\n"));
    }
}

#[test]
fn a_server_gets_its_own_headers_and_its_own_key() {
    let bearer = format!("Bearer {TOOL_KEY}");
    let cmd = format!("key_cmd = [\"printf\", \"{TOOL_KEY}\\\\nmore\"]");
    let own = format!("headers = {{ Authorization = \"Token {TOOL_KEY}\" }}");
    for (login, more, authorization) in [
        ("", "key_env = \"TOOL_KEY\"", bearer.as_str()),
        ("", &cmd, &bearer),
        ("", &own, &format!("Token {TOOL_KEY}")),
        ("", &format!("{own}\nkey_env = \"TOOL_KEY\""), &format!("Token {TOOL_KEY}")),
        // me:tool-key-1234567
        (&format!("me:{TOOL_KEY}@"), "", "Basic bWU6dG9vbC1rZXktMTIzNDU2Nw=="),
        (&format!("me:{TOOL_KEY}@"), "key_env = \"TOOL_KEY\"", &bearer),
    ] {
        let _case = case(more);
        // It repeats what it was sent, as the reason for a failure, as an error of the tool, and as its result.
        let site = site_of(|request, message, number| {
            let sent = format!("I know {:?}", request.header("authorization"));
            match number {
                0 => Reply::new(500).piece(sent),
                1 => answer(message, json!({"content": [{"type": "text", "text": sent}]})),
                _ => Reply::json(200, json!({"jsonrpc": "2.0", "id": message["id"], "error": {"message": sent}})),
            }
        });
        let model = model(3);
        let url = site.url().replace("http://", &format!("http://{login}"));
        let headers =
            if more.contains("headers") { "" } else { "headers = { x-team = \"infra\", Accept = \"*/*\" }\n" };
        let sandbox = with_web(&model, &url, &format!("{headers}{more}\nallow = [\"*\"]")).env("TOOL_KEY", TOOL_KEY);
        let outcome = sandbox.q(&["-v", "-t", "web", "go"]).run();
        outcome.exit(0).stdout("the answer\n").stderr_contains("[redacted]").stderr_lacks(TOOL_KEY);
        let secret = authorization.rsplit(' ').next().expect("a word");
        outcome.stderr_lacks(secret);
        assert_eq!(kept(&sandbox).len(), 3);
        assert!(!sandbox.current().to_string().contains(secret));
        for request in site.requests() {
            assert_eq!(request.header("authorization"), Some(authorization), "{} {}", request.method, request.text());
            assert_eq!(request.header("x-team").is_some(), !headers.is_empty());
            let accepts_all = request.header("accept") == Some("*/*");
            assert_eq!(accepts_all, !headers.is_empty() || request.method == "DELETE");
            assert!(!format!("{:?}", request.headers).contains(API_KEY));
        }
        assert!(!model.last_request().text().contains(secret));
        sandbox.q(&["--status"]).run().success().stdout_contains(&site.url()).stdout_lacks(TOOL_KEY);
    }
}

#[test]
fn the_parts_of_an_address_are_no_secrets() {
    let path = "/an-organization-with-a-long-name/mcp";
    let words = "nothing at /an-organization-with-a-long-name/mcp for team-of-the-shop";
    let site = site(move |message, number| match number {
        0 => Reply::json(500, json!({"error": words})),
        _ => answer(message, json!({"content": [{"type": "text", "text": words}], "isError": true})),
    });
    let model = model(2);
    let url = format!("{}{path}?team=team-of-the-shop", site.url());
    let sandbox = with_web(&model, &url, "allow = [\"*\"]\nheaders = { x-team = \"team-of-the-shop\" }");
    let outcome = sandbox.q(&["-t", "web", "go"]).run();
    // The user sees neither query nor headers; the model sees what there is.
    outcome.exit(0).stderr_contains(&format!("nothing at {path} for [redacted] ({}{path})", site.url()));
    assert_eq!(kept(&sandbox)[0]["result"], format!("the tool server web failed: 500 Internal Server Error: {words}"));
    assert_eq!(kept(&sandbox)[1]["result"], words);
}

#[test]
fn what_a_server_says_about_itself_shows_no_key() {
    let site = Server::start(|request, _| {
        let message = message(request);
        match message["method"].as_str() {
            Some("initialize") => {
                let about = json!({"name": request.header("authorization"), "version": "1"});
                answer(
                    &message,
                    json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}),
                )
            }
            _ => usual(request, &message, "s1"),
        }
    });
    let model = model(0);
    let sandbox = with_web(&model, &site.url(), "key_env = \"TOOL_KEY\"").env("TOOL_KEY", TOOL_KEY);
    let outcome = sandbox.q(&["-v", "-t", "web", "go"]).run();
    outcome.exit(0).stderr_contains("q: web: [redacted] 1, protocol 2025-06-18, 1 tool, ").stderr_lacks(TOOL_KEY);
    // Nor does the place that it wants q to go to.
    let site = Server::always(Reply::new(308).header("location", &format!("https://u:{TOOL_KEY}@h/mcp")));
    let sandbox = with_web(&model, &site.url(), "key_env = \"TOOL_KEY\"").env("TOOL_KEY", TOOL_KEY);
    let outcome = sandbox.q(&["-t", "web", "go"]).run();
    outcome.exit(1).stderr_contains("set url to https://u:[redacted]@h/mcp").stderr_lacks(TOOL_KEY);
}

#[test]
fn a_key_that_is_missing_is_reported_before_anything_is_sent() {
    for (more, words) in [
        ("key_env = \"TOOL_KEY\"", &["tools.web: there is no key: TOOL_KEY is not set", "set it", "[tools.web]"][..]),
        ("key_cmd = [\"sh\", \"-c\", \"exit 7\"]", &["tools.web: key_cmd: sh failed (exit status: 7)"]),
        ("key_cmd = [\"true\"]", &["tools.web: key_cmd: true printed no key"]),
    ] {
        let _case = case(more);
        let (model, site) = (model(0), site(echo));
        let sandbox = with_web(&model, &site.url(), more);
        let outcome = sandbox.q(&["-t", "web", "go"]).stdin_open().run();
        outcome.exit(2).stdout_is_empty().stderr_contains_all(words);
        // The other servers are still listed.
        sandbox.q(&["--list-tools"]).run().exit(0).stdout_is_empty().stderr_contains_all(words);
        model.expect_requests(0);
        site.expect_requests(0);
    }
}

#[test]
fn a_server_that_refuses_says_why_and_q_says_what_to_do() {
    let refusal = |message: &str| json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": message}});
    let page = "<html><head><title>Welcome</title></head></html>";
    for (more, reply, words) in [
        (
            "",
            Reply::json(401, json!({"error": "invalid_token"})),
            &[
                "401 Unauthorized: invalid_token",
                "key_env or key_cmd in the section [tools.web] sets a key",
                "OAuth",
                "mcp-remote",
            ][..],
        ),
        (
            "key_env = \"TOOL_KEY\"",
            Reply::json(403, json!({"error": "no"})),
            &["403 Forbidden: no", "check the key in TOOL_KEY", "OAuth", "mcp-remote"],
        ),
        (
            "key_cmd = [\"echo\", \"tool-key-1\"]",
            Reply::new(401),
            &["401", "no reason", "check the key that echo prints"],
        ),
        (
            "",
            Reply::json(400, refusal("no such version")),
            &["refused to start a conversation: no such version (-32001)"],
        ),
        ("", Reply::new(404), &["404 Not Found", "check the url", "mcp-remote"]),
        ("", Reply::new(405), &["405 Method Not Allowed", "check the url", "mcp-remote"]),
        (
            "",
            Reply::new(307).header("location", "/mcp/?key=hunter22"),
            &["307", "does not follow redirects; set url to http://127.0.0.1:"],
        ),
        ("", Reply::new(503).header("retry-after", "100"), &["503 Service Unavailable", "try again in 100 s"]),
        ("", Reply::json(200, refusal("not today")), &["refused to start a conversation: not today (-32001)"]),
        ("", Reply::new(200).header("content-type", "text/html").piece(page), &["an HTML page: “Welcome”"]),
        (
            "",
            Reply::new(200).header("content-type", "text/plain").piece("hello"),
            &["neither JSON nor an event stream", "text/plain"],
        ),
        ("", Reply::new(200), &["sent no answer"]),
        (
            "",
            Reply::json(200, json!({"message": "quota exceeded"})),
            &["the server sent no answer, but {\"message\":\"quota exceeded\"}"],
        ),
        (
            "headers = { authorization = \"Token abcdefgh\" }",
            Reply::new(401),
            &["check the header authorization of the tool server web"],
        ),
        ("", Reply::sse([": nothing\n\n"]), &["ended before the answer"]),
        ("", Reply::new(200).reset(), &["the server closed the connection"]),
    ] {
        let _case = case((more, words));
        let (model, site) = (model(0), Server::always(reply));
        let sandbox = with_web(&model, &format!("{}/mcp", site.url()), more).env("TOOL_KEY", TOOL_KEY);
        let outcome = sandbox.q(&["-t", "web", "go"]).run();
        outcome.exit(1).stdout_is_empty().stderr_contains("q: web: ").stderr_contains_all(words).stderr_is_of_q();
        outcome.stderr_lacks("hunter22");
        model.expect_requests(0);
        sandbox.expect_no_files();
    }
}

#[test]
fn what_breaks_in_a_call_is_a_result_and_the_session_continues() {
    fn first(reply: Reply) -> impl Fn(&Value, usize) -> Reply + Send + Sync + 'static {
        move |message, number| if number == 0 { reply.clone() } else { echo(message, number) }
    }
    let refused = json!({"jsonrpc": "2.0", "id": 3, "error": {"code": -32602, "message": "bad arguments"}});
    let half = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "busy"}});
    for (name, reply, words, noted) in [
        ("reset", Reply::new(200).reset(), "the server closed the connection", true),
        ("cut", Reply::sse([data(&half)]).cut(), "the server closed the connection", true),
        ("ended", Reply::sse([data(&half)]), "the stream ended before the answer", true),
        (
            "down",
            Reply::json(500, json!({"error": {"message": "on fire"}})),
            "500 Internal Server Error: on fire",
            true,
        ),
        ("busy", Reply::new(503), "503 Service Unavailable", true),
        ("refused", Reply::json(200, refused), "bad arguments (-32602)", false),
        ("no result", Reply::json(200, json!({"jsonrpc": "2.0", "id": 3})), "something that is not a result", false),
    ] {
        let _case = case(name);
        let (model, site) = (model(2), site(first(reply)));
        let sandbox = with_web(&model, &site.url(), "allow = [\"*\"]").env("Q_RETRIES", "3");
        let outcome = sandbox.q(&["-t", "web", "go"]).run();
        outcome.exit(0).stdout("the answer\n");
        if noted {
            outcome.stderr_contains(&format!("q: web: {words}"));
        } else {
            outcome.stderr("");
        }
        let calls = kept(&sandbox);
        assert!(calls[0]["result"].as_str().is_some_and(|text| text.contains(words)), "{}", calls[0]);
        assert_eq!(calls[0]["error"], true);
        assert_eq!(calls[1]["result"], "you said hi 1");
        // No call is sent again, and there is one session.
        let methods = heard(&site);
        assert_eq!(methods.iter().filter(|method| *method == "tools/call").count(), 2);
        assert_eq!(methods.iter().filter(|method| *method == "initialize").count(), 1);
        assert_eq!(methods.last().map(String::as_str), Some("DELETE"));
    }
}

/// A tool server that forgets its first so many sessions when they are called.
fn forgetful(sessions: usize) -> Server {
    let current = Mutex::new(0);
    Server::start(move |request, _| {
        let message = message(request);
        let mut current = current.lock().expect("a number");
        match message["method"].as_str() {
            Some("initialize") => {
                *current += 1;
                usual(request, &message, &format!("s{current}"))
            }
            Some("tools/call") if *current <= sessions => Reply::json(404, json!({"error": "Session not found"})),
            Some("tools/call") => {
                assert_eq!(request.header("mcp-session-id"), Some(format!("s{current}").as_str()));
                echo(&message, 0)
            }
            _ => usual(request, &message, ""),
        }
    })
}

#[test]
fn a_session_that_the_server_has_forgotten_is_replaced_once() {
    let (model, site) = (model(1), forgetful(1));
    let sandbox = with_web(&model, &site.url(), "allow = [\"*\"]");
    sandbox.q(&["-t", "web", "go"]).run().success().stdout("the answer\n");
    assert_eq!(kept(&sandbox)[0]["result"], "you said hi 0");
    let methods = heard(&site);
    let start = &ONE_CALL[..3];
    let expected: Vec<&str> = [start, &["tools/call"], start, &["tools/call", "DELETE"]].concat();
    assert_eq!(methods, expected);
    // The request for the new session is none of the old one.
    assert_eq!(site.requests()[4].header("mcp-session-id"), None);
    assert_eq!(site.last_request().header("mcp-session-id"), Some("s2"));
    // That a call was sent twice is no secret.
    let (model, site) = (self::model(1), forgetful(1));
    let told = with_web(&model, &site.url(), "allow = [\"*\"]").q(&["-v", "-t", "web", "go"]).run();
    told.exit(0).stderr_contains("404 Not Found: Session not found");
    told.stderr_contains("sending the call again in a new session");
}

#[test]
fn a_server_that_forgets_again_is_given_up() {
    let (model, site) = (model(2), forgetful(9));
    let sandbox = with_web(&model, &site.url(), "allow = [\"*\"]");
    let outcome = sandbox.q(&["-t", "web", "go"]).run();
    outcome.exit(0).stdout("the answer\n").stderr_contains_all(&[
        "q: web: 404 Not Found: Session not found",
        "has failed twice and is not started again",
    ]);
    outcome.stderr_lacks("HTTP+SSE");
    let calls = kept(&sandbox);
    assert!(calls.len() == 2 && calls.iter().all(|call| call["error"] == true), "{calls:?}");
    assert_eq!(heard(&site).iter().filter(|method| *method == "initialize").count(), 2);
}

#[test]
fn a_silent_call_times_out_and_is_cancelled() {
    let calls = AtomicUsize::new(0);
    let site = Server::start(move |request, _| {
        let message = message(request);
        match message["method"].as_str() {
            Some("tools/call") if calls.fetch_add(1, Ordering::SeqCst) == 0 => Reply::sse([": working\n\n"]).hang(),
            Some("tools/call") => echo(&message, 1),
            // It does not even take notice of that.
            Some("notifications/cancelled") => Reply::raw("").hang(),
            _ => usual(request, &message, "s1"),
        }
    });
    let model = model(2);
    let sandbox = with_web(&model, &site.url(), "allow = [\"*\"]\ntimeout = \"1s\"");
    sandbox.q(&["-t", "web", "go"]).run().success().stdout("the answer\n");
    let calls = kept(&sandbox);
    assert_eq!((&calls[0]["result"], &calls[0]["error"]), (&json!("no answer within 1 s"), &json!(true)));
    assert_eq!(calls[1]["result"], "you said hi 1");
    let cancelled =
        site.requests().into_iter().filter(|request| request.method == "POST").map(|request| request.json());
    let cancelled: Vec<Value> = cancelled.filter(|message| message["method"] == "notifications/cancelled").collect();
    assert_eq!(cancelled.len(), 1);
    assert_eq!(cancelled[0]["params"]["requestId"], 3);
}

#[test]
fn only_progress_prolongs_the_time_for_a_call() {
    for (name, lasting, result) in [
        ("comments", |_: &Value| b": working\n\n".to_vec(), "no answer within 1 s"),
        ("log", |_: &Value| data(&json!({"method": "notifications/message", "params": {}})), "no answer within 1 s"),
        (
            "progress",
            |call: &Value| {
                let token = &call["params"]["_meta"]["progressToken"];
                data(&json!({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}}))
            },
            "you said hi 0",
        ),
    ] as [(&str, fn(&Value) -> Vec<u8>, &str); 3]
    {
        let _case = case(name);
        let site = site(move |message, _| {
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": echoed(message)});
            let gates: Vec<Gate> = (0..16).map(|_| Gate::new()).collect();
            let begun = Reply::sse([""; 0]);
            let reply = gates.iter().fold(begun, |reply, gate| reply.piece(lasting(message)).wait_for(gate));
            std::thread::spawn(move || {
                for gate in gates {
                    std::thread::sleep(Duration::from_millis(150));
                    gate.open();
                }
            });
            reply.piece(data(&answer))
        });
        let model = model(1);
        let sandbox = with_web(&model, &site.url(), "allow = [\"*\"]\ntimeout = \"1s\"");
        sandbox.q(&["-t", "web", "go"]).run().success().stdout("the answer\n");
        assert_eq!(kept(&sandbox)[0]["result"], result);
    }
}

#[test]
fn a_server_that_does_not_list_its_tools_in_time_is_given_up() {
    for hangs in ["initialize", "tools/list"] {
        let _case = case(hangs);
        let site = Server::start(move |request, _| {
            let message = message(request);
            if message["method"] == hangs { Reply::sse([": wait\n\n"]).hang() } else { usual(request, &message, "s1") }
        });
        let model = model(0);
        // The silence that a call may last is not meant here.
        let sandbox = with_web(&model, &format!("{}/mcp", site.url()), "start = \"1s\"\ntimeout = \"5m\"");
        let outcome = sandbox.q(&["-t", "web", "go"]).run();
        let remedy = "q: a longer start may help, such as start = \"2m\" in [tools.web]";
        let late = format!("q: web: did not list its tools within 1 s ({}/mcp)\n{remedy}\n", site.url());
        outcome.exit(1).stdout_is_empty().stderr(late);
        model.expect_requests(0);
    }
}

#[test]
fn a_session_that_comes_to_nothing_is_ended() {
    // Its tools are refused.
    let site = Server::start(|request, _| {
        let message = message(request);
        if message["method"] == "tools/list" { Reply::new(403) } else { usual(request, &message, "s1") }
    });
    let model = model(0);
    let sandbox = with_web(&model, &site.url(), "");
    sandbox.q(&["-t", "web", "go"]).run().exit(1).stdout_is_empty().stderr_contains("q: web: 403 Forbidden");
    assert_eq!(heard(&site), ["initialize", "notifications/initialized", "tools/list", "DELETE"]);
    // There is no question after all.
    let site = self::site(echo);
    let sandbox = with_web(&model, &site.url(), "");
    let mut running = sandbox.q(&["-t", "web"]).stdin_open().spawn();
    site.wait_for_requests(3);
    running.close_stdin();
    running.wait().exit(2);
    // Unless the last answer was still on its way.
    let methods = heard(&site);
    assert!(methods.len() == 3 || methods.last().is_some_and(|last| last == "DELETE"), "{methods:?}");
}

#[test]
fn where_another_try_would_come_too_late_the_first_failure_is_the_reason() {
    let site = Server::always(Reply::new(429).header("retry-after", "20"));
    let model = model(0);
    let sandbox = with_web(&model, &site.url(), "start = \"5s\"").env("Q_RETRIES", "3");
    let outcome = sandbox.q(&["-t", "web", "go"]).run();
    outcome.exit(1).stdout_is_empty().stderr_contains_all(&["429 Too Many Requests", "try again in 20 s"]);
    site.expect_requests(1);
}

#[test]
fn a_servers_own_requests_are_answered_during_a_call() {
    let (pong, answered) = (Gate::new(), AtomicUsize::new(0));
    let site = Server::start({
        let pong = pong.clone();
        move |request, _| {
            let message = message(request);
            if message["method"] != "tools/call" {
                // The answer waits for both of the client's, which come in any order.
                let is_answer = request.method == "POST" && message.get("method").is_none();
                if is_answer && answered.fetch_add(1, Ordering::SeqCst) == 1 {
                    pong.open();
                }
                return usual(request, &message, "s1");
            }
            let ping = json!({"jsonrpc": "2.0", "id": "p1", "method": "ping"});
            let roots = json!({"jsonrpc": "2.0", "id": "p2", "method": "roots/list"});
            let result = json!({"jsonrpc": "2.0", "id": message["id"], "result": echoed(&message)});
            Reply::sse([data(&roots), data(&ping)]).wait_for(&pong).piece(data(&result))
        }
    });
    let model = model(1);
    let sandbox = with_web(&model, &site.url(), "allow = [\"*\"]");
    sandbox.q(&["-t", "web", "go"]).run().success().stdout("the answer\n").stderr("");
    assert_eq!(kept(&sandbox)[0]["result"], "you said hi 0");
    let answers = site.requests().into_iter().map(|request| message(&request));
    let of = |id: &str| answers.clone().find(|message| message["id"] == id).expect("an answer");
    assert_eq!(of("p1"), json!({"jsonrpc": "2.0", "id": "p1", "result": {}}));
    assert_eq!(of("p2")["error"]["code"], -32601);
}

#[test]
fn a_server_that_takes_no_answer_to_its_own_request_holds_up_nothing() {
    let site = Server::start(|request, _| {
        let message = message(request);
        if message["id"] == "p1" {
            return Reply::raw("").hang();
        }
        if message["method"] != "tools/call" {
            return usual(request, &message, "s1");
        }
        let ping = json!({"jsonrpc": "2.0", "id": "p1", "method": "ping"});
        let result = json!({"jsonrpc": "2.0", "id": message["id"], "result": echoed(&message)});
        Reply::sse([data(&ping), data(&result)])
    });
    let model = model(1);
    let sandbox = with_web(&model, &site.url(), "allow = [\"*\"]\ntimeout = \"never\"");
    sandbox.q(&["-t", "web", "go"]).run().success().stdout("the answer\n");
    assert_eq!(kept(&sandbox)[0]["result"], "you said hi 0");
}

/// A tool server without a handshake, which refuses what its headers do not say; others answer the handshake with `status`.
fn stateless(status: u16) -> Server {
    Server::start(move |request, _| {
        let message = message(request);
        let error = |status: u16, error: Value| {
            Reply::json(status, json!({"jsonrpc": "2.0", "id": message["id"], "error": error}))
        };
        if message["method"] == "initialize" {
            return error(status, json!({"code": -32601, "message": "Method not found"}));
        }
        let headers = ["mcp-protocol-version", "mcp-method", "mcp-name"].map(|name| request.header(name));
        let expected = [Some("2026-07-28"), message["method"].as_str(), message["params"]["name"].as_str()];
        if headers != expected || request.header("mcp-session-id").is_some() {
            return error(400, json!({"code": -32020, "message": format!("Header mismatch: {headers:?}")}));
        }
        match modern(&message, INSTRUCTIONS) {
            Ok(Some(result)) => answer(&message, result),
            Ok(None) => answer(&message, echoed(&message)),
            Err(refusal) => error(400, refusal),
        }
    })
}

#[test]
fn a_server_without_a_handshake_is_spoken_to_in_its_own_revision() {
    for status in [200, 400, 404] {
        let _case = case(status);
        let (model, site) = (model(1), stateless(status));
        let sandbox = with_web(&model, &site.url(), "only = [\"echo\"]\nallow = [\"echo\"]");
        let outcome = sandbox.q(&["-v", "-t", "web", "go"]).run();
        outcome.exit(0).stdout("the answer\n").stderr_contains("web: modern 2.0, protocol 2026-07-28, 11 tools,");
        assert_eq!(kept(&sandbox)[0]["result"], "you said hi 0");
        assert_eq!(heard(&site), ["initialize", "server/discover", "tools/list", "tools/call"]);
        let system = model.last_request().json()["messages"][0]["content"].as_str().expect("text").to_owned();
        assert!(
            system.ends_with(&format!("<instructions-2 server=\"web\">\n{INSTRUCTIONS}\n</instructions-2>")),
            "{system}"
        );
    }
}

#[test]
fn a_call_without_an_answer_is_given_up_by_its_connection_where_there_is_no_handshake() {
    let site = Server::start(|request, _| {
        let message = message(request);
        match message["method"].as_str() {
            Some("tools/call") => Reply::sse([": working\n\n"]).hang(),
            Some("initialize") => Reply::json(400, json!({"error": {"code": -32601, "message": "no"}})),
            _ => answer(&message, modern(&message, "").ok().flatten().expect("a result")),
        }
    });
    let model = model(1);
    let sandbox = with_web(&model, &site.url(), "allow = [\"*\"]\ntimeout = \"1s\"");
    sandbox.q(&["-t", "web", "go"]).run().success().stdout("the answer\n");
    assert_eq!(kept(&sandbox)[0]["result"], "no answer within 1 s");
    assert_eq!(heard(&site), ["initialize", "server/discover", "tools/list", "tools/call"]);
}

#[test]
fn no_part_of_a_key_is_shown_where_an_answer_is_quoted() {
    // The quote ends within the key.
    let text = format!("{{\"message\":\"{}{TOOL_KEY}\"}}", "x".repeat(180));
    let (model, site) =
        (model(0), Server::always(Reply::new(200).header("content-type", "application/json").piece(text)));
    let sandbox = with_web(&model, &site.url(), "key_env = \"TOOL_KEY\"").env("TOOL_KEY", TOOL_KEY);
    let outcome = sandbox.q(&["-t", "web", "go"]).run();
    outcome.exit(1).stderr_contains("the server sent no answer, but {").stderr_lacks(&TOOL_KEY[..4]);
}

#[test]
fn a_server_that_fails_is_reported_though_another_is_silent() {
    let (silent, refuses) = (Server::always(Reply::raw("").hang()), Server::always(Reply::new(401)));
    let model = model(0);
    let sandbox = Sandbox::new().server_env(&model).env("Q_RETRIES", "0");
    let section = |name: &str, site: &Server| format!("[tools.{name}]\nurl = \"{}\"\nstart = \"never\"\n", site.url());
    sandbox.config(&(section("silent", &silent) + &section("refuses", &refuses)));
    for names in ["silent,refuses", "refuses,silent"] {
        sandbox.q(&["-t", names, "go"]).run().exit(1).stdout_is_empty().stderr_contains("q: refuses: 401 Unauthorized");
    }
}

#[test]
fn more_tools_than_q_lists_are_noted() {
    let site = Server::start(|request, _| {
        let message = message(request);
        if message["method"] != "tools/list" {
            return usual(request, &message, "s1");
        }
        // One more tool a page, without an end.
        let page = message["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse::<usize>().expect("a number"));
        let tools = json!([{"name": format!("t{page}"), "inputSchema": {"type": "object"}}]);
        answer(&message, json!({"tools": tools, "nextCursor": (page + 1).to_string()}))
    });
    let model = model(0);
    let sandbox = with_web(&model, &site.url(), "");
    let outcome = sandbox.q(&["--list-tools"]).run();
    outcome.exit(0).stdout_contains("web__t99\t").stdout_lacks("web__t100");
    outcome.stderr("q: web: only the first 100 tools are listed; the server has more\n");
}

#[test]
fn a_start_is_tried_again_but_never_a_call() {
    let started = AtomicUsize::new(0);
    let site = Server::start(move |request, _| {
        let message = message(request);
        match message["method"].as_str() {
            Some("initialize") if started.fetch_add(1, Ordering::SeqCst) == 0 => {
                Reply::new(503).header("retry-after", "0")
            }
            Some("tools/call") => Reply::new(503).header("retry-after", "0"),
            _ => usual(request, &message, "s1"),
        }
    });
    let model = model(1);
    let sandbox = with_web(&model, &site.url(), "allow = [\"*\"]").env("Q_RETRIES", "2");
    let outcome = sandbox.q(&["-v", "-t", "web", "go"]).run();
    outcome.exit(0).stdout("the answer\n").stderr_contains_all(&[
        "q: web: 503",
        "retrying in 0.0 s",
        "web: site 3, protocol 2025-06-18, 1 tool,",
    ]);
    let methods = heard(&site);
    assert_eq!(methods.iter().filter(|method| *method == "initialize").count(), 2);
    assert_eq!(methods.iter().filter(|method| *method == "tools/call").count(), 1);
}

#[test]
fn a_start_that_breaks_off_after_its_headers_is_not_tried_again() {
    let (model, site) = (model(0), Server::always(Reply::sse([": wait\n\n"]).reset()));
    let sandbox = with_web(&model, &site.url(), "").env("Q_RETRIES", "2");
    sandbox.q(&["-t", "web", "go"]).run().exit(1).stdout_is_empty().stderr_contains("the server closed the connection");
    site.expect_requests(1);
}

#[test]
fn a_server_without_sessions_needs_no_goodbye_and_may_refuse_a_call_with_a_status() {
    let site = Server::start(|request, _| {
        let message = request.json();
        match message["method"].as_str() {
            Some("tools/call") if message["params"]["arguments"]["text"] == "hi 1" => {
                Reply::json(400, json!({"id": message["id"], "error": {"code": -32602, "message": "no such row"}}))
            }
            Some("tools/call") => echo(&message, 0),
            Some("initialize") => {
                answer(&message, json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}))
            }
            _ => usual(request, &message, ""),
        }
    });
    let model = model(2);
    let sandbox = with_web(&model, &site.url(), "allow = [\"*\"]");
    sandbox.q(&["-t", "web", "go"]).run().success().stdout("the answer\n");
    assert_eq!(heard(&site), [&ONE_CALL[..4], &["tools/call"]].concat());
    // With a session, such a status may mean that the server has forgotten it.
    assert_eq!(kept(&sandbox)[1]["result"], "no such row (-32602)");
    assert!(site.requests().iter().all(|request| request.header("mcp-session-id").is_none()));
}

#[test]
fn a_goodbye_that_nobody_answers_does_not_hold_q_up_for_long() {
    let site = Server::start(|request, _| {
        if request.method == "DELETE" {
            return Reply::raw("").hang();
        }
        let message = request.json();
        if message["method"] == "tools/call" { echo(&message, 0) } else { usual(request, &message, "s1") }
    });
    let model = model(1);
    let sandbox = with_web(&model, &site.url(), "allow = [\"*\"]");
    let mut running = sandbox.q(&["-t", "web", "go"]).spawn();
    // The answer is out, and saved, before q waits for anybody.
    running.read_stdout_until("the answer\n");
    site.wait_for_requests(5);
    let began = Instant::now();
    assert_eq!(sandbox.current()["messages"][1]["content"], "the answer");
    let outcome = running.wait();
    // Far from the fifth of a second that q waits, on a busy machine.
    outcome.success().check(began.elapsed() < Duration::from_millis(1_500), || "expected a quick end".to_owned());
}

#[test]
fn a_signal_during_a_call_keeps_what_has_run() {
    let (model, site) = (
        model(2),
        site(|message, number| match number {
            0 => echo(message, number),
            _ => Reply::new(200).hang(),
        }),
    );
    let sandbox = with_web(&model, &site.url(), "allow = [\"*\"]\ntimeout = \"never\"");
    let mut running = sandbox.q(&["-t", "web", "go"]).spawn();
    site.wait_for_requests(5);
    running.signal(libc::SIGINT);
    running.wait().killed_by(libc::SIGINT);
    let calls = kept(&sandbox);
    assert_eq!(calls[0]["result"], "you said hi 0");
    assert_eq!(sandbox.current()["messages"][1]["interrupted"], true);
}

#[test]
fn a_proxy_is_used_and_a_key_without_tls_is_noted() {
    let model = model(1);
    // It lets q through to itself.
    let proxy = Server::start(|request, _| {
        if request.method == "CONNECT" {
            return Reply::raw("HTTP/1.1 200 OK\r\n\r\n").keep_alive();
        }
        let message = message(request);
        if message["method"] == "tools/call" { echo(&message, 0) } else { usual(request, &message, "s1") }
    });
    let sandbox = with_web(&model, "http://tools.example/mcp", "allow = [\"*\"]\nkey_env = \"TOOL_KEY\"");
    let sandbox = sandbox.env("TOOL_KEY", TOOL_KEY).env("ALL_PROXY", proxy.url());
    let outcome = sandbox.q(&["-t", "web", "go"]).run();
    outcome.exit(0).stdout("the answer\n");
    outcome.stderr("q: the key of the tool server web goes to http://tools.example unencrypted\n");
    assert_eq!(proxy.requests()[0].path, "tools.example:80");
    assert_eq!(proxy.last_request().method, "DELETE");
}

#[test]
fn a_server_of_a_shared_file_gets_its_headers() {
    let (model, site) = (model(1), site(echo));
    let sandbox = Sandbox::new().server_env(&model).env("TOKEN", TOOL_KEY);
    let file = sandbox.root().join("mcp.json");
    let servers = json!({"mcpServers": {"Web": {
        "type": "http", "url": format!("{}/${{PLACE:-mcp}}", site.url()), "headers": {"Authorization": "Bearer ${TOKEN}"},
    }}});
    std::fs::write(&file, servers.to_string()).expect("a file");
    let sandbox = sandbox.env("Q_MCP", &file);
    let refused = sandbox.q(&["-t", "web", "go"]).run();
    refused
        .exit(0)
        .stderr_contains_all(&["allow = [\"echo\"] in a section [tools.web] of ", ", together with its url,"]);
    let model = self::model(1);
    let sandbox = sandbox.server_env(&model);
    sandbox.q(&["-t", "web", "--yes", "go"]).run().success();
    let request = site.last_request();
    assert_eq!(
        (request.path.as_str(), request.header("authorization")),
        ("/mcp", Some(format!("Bearer {TOOL_KEY}").as_str()))
    );
}
