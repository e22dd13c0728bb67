//! Tools over HTTP in time, with proxies, signals and much data. All else is in `tests/transcripts/tools/remote.txt`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::dialect::{DIALECTS, Dialect, data};
use crate::fixtures::case;
use crate::run::API_KEY;
use crate::sandbox::Sandbox;
use crate::server::{Gate, Recorded, Reply, Server};
use crate::toolserver::{self, IMAGE};

const OPENAI: &Dialect = &DIALECTS[0];

/// A key that only tool servers get.
const TOOL_KEY: &str = "tool-key-1234567";

/// A server of models that calls `web__echo` in each of this many rounds, with other words each time, and then answers.
fn model(rounds: usize) -> Server {
    Server::start(move |request, number| {
        let text = json!({"text": format!("hi {number}")});
        match number < rounds {
            true => OPENAI.calling("let me see", &[("call00001", "web__echo", text)]),
            false => (OPENAI.reply)(request, "the answer"),
        }
    })
}

/// A sandbox that asks such a server, with this tool server `web`; `more` are more lines of its section.
fn with_web(model: &Server, url: &str, more: &str) -> Sandbox {
    let sandbox = Sandbox::new().server_env(model).env("Q_RETRIES", "0");
    sandbox.config(&format!("[tools.web]\nurl = \"{url}\"\n{more}\n"));
    sandbox
}

/// A tool server that answers some requests in its own way, made of the request and of its message.
fn site(other: impl Fn(&Recorded, &Value) -> Option<Reply> + Send + Sync + 'static) -> Server {
    toolserver::site("", move |request| other(request, &message(request)))
}

/// What a client sends; nothing with a DELETE.
fn message(request: &Recorded) -> Value {
    if request.method == "POST" {
        request.json()
    } else {
        Value::Null
    }
}

fn answer(message: &Value, result: Value) -> Reply {
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    Reply::json(200, body)
}

fn echoed(message: &Value) -> Value {
    let said = message["params"]["arguments"]["text"]
        .as_str()
        .unwrap_or("nothing");
    json!({"content": [{"type": "text", "text": format!("you said {said}")}]})
}

/// The messages that a tool server got, by their method or as the answer that they are; `DELETE` is one too. The stream for
/// its own requests is opened in addition to the others, at any time.
fn heard(site: &Server) -> Vec<String> {
    let name = |request: &Recorded| match request.method.as_str() {
        "POST" => request.json()["method"]
            .as_str()
            .unwrap_or("an answer")
            .to_owned(),
        other => other.to_owned(),
    };
    let requests = site.requests();
    let others = requests.iter().filter(|request| request.method != "GET");
    others.map(name).collect()
}

/// The results of the calls that a conversation has kept of its last answer.
fn results(sandbox: &Sandbox) -> Vec<String> {
    let mut results = Vec::new();
    let steps = sandbox.current()["messages"][1]["steps"].clone();
    for step in steps.as_array().into_iter().flatten() {
        for call in step["calls"].as_array().into_iter().flatten() {
            results.push(call["result"].as_str().expect("text").to_owned());
        }
    }
    results
}

/// Asks, gets the answer, and returns the result of the only call.
#[track_caller]
fn only_result(sandbox: &Sandbox) -> String {
    let outcome = sandbox.q(&["-t", "web", "go"]).run();
    outcome.success().stdout("the answer\n").stderr("");
    results(sandbox).remove(0)
}

#[test]
fn a_tool_server_over_http_gets_its_own_headers_and_key() {
    let cmd = format!("key_cmd = [\"printf\", \"{TOOL_KEY}\\\\nmore\"]");
    let own = format!("headers = {{ Authorization = \"Token {TOOL_KEY}\" }}");
    let both = format!("{own}\nkey_env = \"TOOL_KEY\"");
    let login = format!("me:{TOOL_KEY}@");
    let (bearer, token) = (format!("Bearer {TOOL_KEY}"), format!("Token {TOOL_KEY}"));
    // me:tool-key-1234567
    let basic = "Basic bWU6dG9vbC1rZXktMTIzNDU2Nw==";
    for (login, more, authorization) in [
        ("", "key_env = \"TOOL_KEY\"", bearer.as_str()),
        ("", &cmd, &bearer),
        ("", &own, &token),
        ("", &both, &token),
        (&login, "", basic),
        (&login, "key_env = \"TOOL_KEY\"", &bearer),
    ] {
        let _case = case((login, more));
        // It repeats what it was sent, as the reason for a failure, as an error of the tool, and as its result.
        let site = site(|request, message| {
            let sent = format!("I know {:?}", request.header("authorization"));
            let result = json!({"content": [{"type": "text", "text": sent}]});
            let error = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"message": sent}});
            match message["params"]["arguments"]["text"].as_str()? {
                "hi 0" => Some(Reply::new(500).piece(sent)),
                "hi 1" => Some(answer(message, result)),
                _ => Some(Reply::json(200, error)),
            }
        });
        let model = model(3);
        let url = site.url().replace("http://", &format!("http://{login}"));
        let has_headers = more.contains("headers");
        let headers = "headers = { x-team = \"infra\" }\n";
        let headers = if has_headers { "" } else { headers };
        let sandbox = with_web(&model, &url, &format!("{headers}{more}\nallow = [\"*\"]"))
            .env("TOOL_KEY", TOOL_KEY);
        let outcome = sandbox.q(&["-v", "-t", "web", "go"]).run();
        outcome.exit(0).stdout("the answer\n");
        let secret = authorization.rsplit(' ').next().expect("a word");
        outcome.stderr_contains("[redacted]");
        outcome.stderr_lacks(TOOL_KEY).stderr_lacks(secret);
        assert_eq!(results(&sandbox).len(), 3);
        assert!(!sandbox.current().to_string().contains(secret));
        assert!(!model.last_request().text().contains(secret));
        for request in site.requests() {
            assert_eq!(request.header("authorization"), Some(authorization));
            assert_eq!(request.header("x-team").is_some(), !has_headers);
            assert!(!format!("{:?}", request.headers).contains(API_KEY));
        }
        let status = sandbox.q(&["--status"]).run();
        status.stdout_lacks(TOOL_KEY);
    }
}

#[test]
fn only_progress_extends_the_timeout_of_a_call() {
    let late = "no answer within 1 s";
    let started = [
        ("comment", late),
        ("notifications/message", late),
        ("notifications/progress", "you said hi 0"),
    ]
    .map(|(method, result)| {
        let site = site(move |_, message| {
            if message["method"] != "tools/call" {
                return None;
            }
            let token = &message["params"]["_meta"]["progressToken"];
            let params = json!({"progressToken": token, "progress": 1});
            let sign = match method {
                "comment" => b": working\n\n".to_vec(),
                _ => data(&json!({"method": method, "params": params})),
            };
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": echoed(message)});
            let pause = || std::thread::sleep(Duration::from_millis(150));
            let begun = Reply::sse([""; 0]);
            let working = (0..10).fold(begun, |reply, _| reply.piece(&sign).then(pause));
            Some(working.piece(data(&answer)))
        });
        let model = model(1);
        let sandbox = with_web(&model, &site.url(), "allow = [\"*\"]\ntimeout = \"1s\"");
        let running = sandbox.q(&["-t", "web", "go"]).spawn();
        (method, result, site, model, sandbox, running)
    });
    for (method, result, _site, _model, sandbox, running) in started {
        let _case = case(method);
        running.wait().success().stdout("the answer\n");
        assert_eq!(results(&sandbox), [result]);
    }
}

#[test]
fn an_http_session_is_ended_though_nothing_was_asked() {
    let (model, site) = (model(0), site(|_, _| None));
    let sandbox = with_web(&model, &site.url(), "");
    let mut running = sandbox.q(&["-t", "web"]).stdin_open().spawn();
    site.wait_for_requests(4);
    running.close_stdin();
    running.wait().exit(2);
    // Unless the last answer was still on its way.
    let methods = heard(&site);
    let is_right = methods.len() == 3 || methods.last().is_some_and(|last| last == "DELETE");
    assert!(is_right, "{methods:?}");
}

#[test]
fn a_servers_own_requests_are_answered_during_a_call() {
    let (pong, answered) = (Gate::new(), AtomicUsize::new(0));
    let site = site({
        let pong = pong.clone();
        move |request, message| {
            // The answer waits for both of the client's, which come in any order.
            let is_answer = request.method == "POST" && message.get("method").is_none();
            if is_answer && answered.fetch_add(1, Ordering::SeqCst) == 1 {
                pong.open();
            }
            let ping = json!({"jsonrpc": "2.0", "id": "p1", "method": "ping"});
            let roots = json!({"jsonrpc": "2.0", "id": "p2", "method": "roots/list"});
            let result = json!({"jsonrpc": "2.0", "id": message["id"], "result": echoed(message)});
            let reply = Reply::sse([data(&roots), data(&ping)])
                .wait_for(&pong)
                .piece(data(&result));
            (message["method"] == "tools/call").then_some(reply)
        }
    });
    let model = model(1);
    let sandbox = with_web(&model, &site.url(), "allow = [\"*\"]");
    assert_eq!(only_result(&sandbox), "you said hi 0");
    let heard: Vec<Value> = site.requests().iter().map(message).collect();
    assert!(heard.contains(&json!({"jsonrpc": "2.0", "id": "p1", "result": {}})));
    let refusal = heard.iter().find(|message| message["id"] == "p2");
    assert_eq!(refusal.expect("an answer")["error"]["code"], -32601);
}

#[test]
fn an_unsupported_request_of_a_server_on_its_own_stream_is_refused() {
    let refused = Gate::new();
    let site = site(move |request, message| {
        if request.method == "GET" {
            return Some(Reply::sse([data(&json!({"id": "r", "method": "roots/list"}))]).hang());
        }
        if message["id"] == "r" && message["error"]["code"] == -32601 {
            refused.open();
            return Some(Reply::new(202));
        }
        if message["method"] != "tools/call" {
            return None;
        }
        let result = json!({"jsonrpc": "2.0", "id": message["id"], "result": echoed(message)});
        let reply = Reply::new(200).header("content-type", "application/json");
        // The call waits for the refusal.
        Some(reply.wait_for(&refused).piece(result.to_string()))
    });
    let model = model(1);
    let sandbox = with_web(&model, &format!("{}/mcp", site.url()), "allow = [\"*\"]");
    assert_eq!(only_result(&sandbox), "you said hi 0");
}

#[test]
fn a_server_that_floods_its_stream_is_ended_and_answered_on_few_connections() {
    let ping = data(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}));
    let answered = Gate::new();
    let pings = ping.repeat(10_000);
    let waits = answered.clone();
    let site = site(move |request, message| {
        if request.method == "GET" {
            return Some(Reply::sse([&pings]).hang());
        }
        // The answers are not taken, and the call waits for nothing.
        let is_answer = message["id"] == "p";
        let is_call = message["method"] == "tools/call";
        (is_answer || is_call).then(|| Reply::new(202).wait_for(&waits))
    });
    let model = model(1);
    let sandbox = with_web(&model, &format!("{}/mcp", site.url()), "allow = [\"*\"]");
    let outcome = sandbox.q(&["-t", "web", "go"]).run();
    answered.open();
    outcome.stderr_contains("q: web: sends too many requests, or does not read the answers");
    // They come one after another.
    assert!(site.connections() < 50, "{}", site.connections());
}

#[test]
fn a_server_that_ignores_the_answer_to_its_own_request_delays_no_call() {
    let site = site(|_, message| {
        let ping = json!({"jsonrpc": "2.0", "id": "p1", "method": "ping"});
        let result = json!({"jsonrpc": "2.0", "id": message["id"], "result": echoed(message)});
        match message["id"] == "p1" {
            true => Some(Reply::raw("").hang()),
            false => (message["method"] == "tools/call")
                .then(|| Reply::sse([data(&ping), data(&result)])),
        }
    });
    let model = model(1);
    let sandbox = with_web(&model, &site.url(), "allow = [\"*\"]\ntimeout = \"never\"");
    assert_eq!(only_result(&sandbox), "you said hi 0");
}

#[test]
fn the_images_of_all_results_together_have_a_limit() {
    let data = format!("{IMAGE}{}", "A".repeat(4_000_000));
    let image = json!({"content": [{"type": "image", "mimeType": "image/png", "data": data}]});
    let site = site(move |_, message| {
        (message["method"] == "tools/call").then(|| answer(message, image.clone()))
    });
    let model = model(2);
    let sandbox = with_web(&model, &site.url(), "allow = [\"*\"]");
    let outcome = sandbox.q(&["-t", "web", "go"]).run();
    outcome.exit(0).stderr(
        "q: web__echo: an image is too large and not sent: \
         the limit of images in base64 is 5 MB each, and 7 MB together\n",
    );
    let sent = model.last_request().text();
    assert_eq!(sent.matches("data:image/png").count(), 1);
    assert_eq!(sent.matches("[image image/png, ").count(), 2);
}

#[test]
fn an_unanswered_delete_of_a_session_does_not_delay_the_end_of_q_for_long() {
    let site = site(|request, _| (request.method == "DELETE").then(|| Reply::raw("").hang()));
    let model = model(1);
    // No limit that can be set is the one that ends the wait.
    let sandbox = with_web(&model, &site.url(), "allow = [\"*\"]\ntimeout = \"never\"");
    let q = sandbox.q(&["-t", "web", "go"]).env("Q_TIMEOUT", "never");
    let mut running = q.spawn();
    // The answer is out, and saved, before q waits for anybody.
    running.read_stdout_until("the answer\n");
    site.wait_for_requests(6);
    assert_eq!(sandbox.current()["messages"][1]["content"], "the answer");
    running.wait().success();
}

#[test]
fn a_signal_during_a_call_keeps_the_results_of_earlier_calls() {
    let site = site(|_, message| {
        (message["params"]["arguments"]["text"] == "hi 1").then(|| Reply::new(200).hang())
    });
    let model = model(2);
    let sandbox = with_web(&model, &site.url(), "allow = [\"*\"]\ntimeout = \"never\"");
    let mut running = sandbox.q(&["-t", "web", "go"]).spawn();
    site.wait_for_requests(6);
    running.signal(libc::SIGINT);
    running.wait().killed_by(libc::SIGINT);
    assert_eq!(results(&sandbox)[0], "you said hi 0");
    assert_eq!(sandbox.current()["messages"][1]["interrupted"], true);
}

#[test]
fn a_tool_server_is_reached_through_a_proxy_and_an_unencrypted_key_is_noted() {
    const NOTE: &str =
        "q: the key of the tool server web goes to http://tools.example unencrypted\n";
    // What follows the host in the URL, another line of its section, and what is noted.
    for (rest, more, noted) in [
        ("/mcp", "key_env = \"TOOL_KEY\"", NOTE),
        ("/mcp", "headers = { x-api-key = \"12345678\" }", NOTE),
        ("/mcp?api_key=12345678", "", NOTE),
        ("/mcp?team=shop", "headers = { x-team = \"shop\" }", ""),
    ] {
        let _case = case(rest);
        let model = model(1);
        // It lets q through to itself.
        let tunnel = Reply::raw("HTTP/1.1 200 OK\r\n\r\n").keep_alive();
        let proxy = site(move |request, _| (request.method == "CONNECT").then(|| tunnel.clone()));
        let url = format!("http://tools.example{rest}");
        let sandbox = with_web(&model, &url, &format!("allow = [\"*\"]\n{more}"));
        let sandbox = sandbox
            .env("TOOL_KEY", TOOL_KEY)
            .env("ALL_PROXY", proxy.url());
        let outcome = sandbox.q(&["-t", "web", "go"]).run();
        outcome.exit(0).stdout("the answer\n").stderr(noted);
        assert_eq!(proxy.requests()[0].path, "tools.example:80");
        // A session is ended in 200 ms or left, which a busy machine may need for the tunnel alone.
        let last = proxy.last_request().method;
        assert!(["DELETE", "CONNECT"].contains(&&*last), "{last}");
    }
}
