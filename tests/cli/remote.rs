//! Tools over HTTP in time, with proxies, signals and much data. All else is in `tests/transcripts/remote.txt`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::dialect::{DIALECTS, Dialect, data};
use crate::fixtures::case;
use crate::sandbox::{API_KEY, Sandbox};
use crate::server::{Gate, Recorded, Reply, Server};
use crate::toolserver::{self, IMAGE};

const OPENAI: &Dialect = &DIALECTS[0];

/// A key that only tool servers get.
const TOOL_KEY: &str = "tool-key-1234567";

/// A server of models that calls `web__echo` in each of so many rounds, with other words each time, and then answers.
fn model(rounds: usize) -> Server {
    Server::start(move |request, number| match number < rounds {
        true => OPENAI.calling(
            "let me see",
            &[(
                "call00001",
                "web__echo",
                json!({"text": format!("hi {number}")}),
            )],
        ),
        false => (OPENAI.reply)(request, "the answer"),
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
    Reply::json(
        200,
        json!({"jsonrpc": "2.0", "id": message["id"], "result": result}),
    )
}

fn echoed(message: &Value) -> Value {
    let said = message["params"]["arguments"]["text"]
        .as_str()
        .unwrap_or("nothing");
    json!({"content": [{"type": "text", "text": format!("you said {said}")}]})
}

/// The messages that a tool server got, by their method or as the answer that they are; `DELETE` is one too.
fn heard(site: &Server) -> Vec<String> {
    let name = |request: &Recorded| match request.method.as_str() {
        "POST" => request.json()["method"]
            .as_str()
            .unwrap_or("an answer")
            .to_owned(),
        other => other.to_owned(),
    };
    site.requests().iter().map(name).collect()
}

/// The calls that a conversation has kept of its last answer.
fn kept(sandbox: &Sandbox) -> Vec<Value> {
    let steps = sandbox.current()["messages"][1]["steps"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    steps
        .iter()
        .flat_map(|step| step["calls"].as_array().cloned().unwrap_or_default())
        .collect()
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
        (
            "",
            &format!("{own}\nkey_env = \"TOOL_KEY\""),
            &format!("Token {TOOL_KEY}"),
        ),
        // me:tool-key-1234567
        (
            &format!("me:{TOOL_KEY}@"),
            "",
            "Basic bWU6dG9vbC1rZXktMTIzNDU2Nw==",
        ),
        (
            &format!("me:{TOOL_KEY}@"),
            "key_env = \"TOOL_KEY\"",
            &bearer,
        ),
    ] {
        let _case = case(more);
        // It repeats what it was sent, as the reason for a failure, as an error of the tool, and as its result.
        let site = site(|request, message| {
            let sent = format!("I know {:?}", request.header("authorization"));
            match message["params"]["arguments"]["text"].as_str()? {
                "hi 0" => Some(Reply::new(500).piece(sent)),
                "hi 1" => Some(answer(
                    message,
                    json!({"content": [{"type": "text", "text": sent}]}),
                )),
                _ => Some(Reply::json(
                    200,
                    json!({"jsonrpc": "2.0", "id": message["id"], "error": {"message": sent}}),
                )),
            }
        });
        let model = model(3);
        let url = site.url().replace("http://", &format!("http://{login}"));
        let headers = if more.contains("headers") {
            ""
        } else {
            "headers = { x-team = \"infra\", Accept = \"*/*\" }\n"
        };
        let sandbox = with_web(&model, &url, &format!("{headers}{more}\nallow = [\"*\"]"))
            .env("TOOL_KEY", TOOL_KEY);
        let outcome = sandbox.q(&["-v", "-t", "web", "go"]).run();
        outcome
            .exit(0)
            .stdout("the answer\n")
            .stderr_contains("[redacted]")
            .stderr_lacks(TOOL_KEY);
        let secret = authorization.rsplit(' ').next().expect("a word");
        outcome.stderr_lacks(secret);
        assert_eq!(kept(&sandbox).len(), 3);
        assert!(!sandbox.current().to_string().contains(secret));
        for request in site.requests() {
            assert_eq!(
                request.header("authorization"),
                Some(authorization),
                "{} {}",
                request.method,
                request.text()
            );
            assert_eq!(request.header("x-team").is_some(), !headers.is_empty());
            let accepts_all = request.header("accept") == Some("*/*");
            assert_eq!(
                accepts_all,
                !headers.is_empty() || request.method == "DELETE"
            );
            assert!(!format!("{:?}", request.headers).contains(API_KEY));
        }
        assert!(!model.last_request().text().contains(secret));
        sandbox
            .q(&["--status"])
            .run()
            .success()
            .stdout_contains(&site.url())
            .stdout_lacks(TOOL_KEY);
    }
}

#[test]
fn only_progress_prolongs_the_time_for_a_call() {
    for (name, lasting, result) in [
        (
            "comments",
            |_: &Value| b": working\n\n".to_vec(),
            "no answer within 1 s",
        ),
        (
            "log",
            |_: &Value| data(&json!({"method": "notifications/message", "params": {}})),
            "no answer within 1 s",
        ),
        (
            "progress",
            |call: &Value| {
                let token = &call["params"]["_meta"]["progressToken"];
                data(
                    &json!({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}}),
                )
            },
            "you said hi 0",
        ),
    ] as [(&str, fn(&Value) -> Vec<u8>, &str); 3]
    {
        let _case = case(name);
        let site = site(move |_, message| {
            if message["method"] != "tools/call" {
                return None;
            }
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": echoed(message)});
            let gates: Vec<Gate> = (0..16).map(|_| Gate::new()).collect();
            let begun = Reply::sse([""; 0]);
            let reply = gates.iter().fold(begun, |reply, gate| {
                reply.piece(lasting(message)).wait_for(gate)
            });
            std::thread::spawn(move || {
                for gate in gates {
                    std::thread::sleep(Duration::from_millis(150));
                    gate.open();
                }
            });
            Some(reply.piece(data(&answer)))
        });
        let model = model(1);
        let sandbox = with_web(&model, &site.url(), "allow = [\"*\"]\ntimeout = \"1s\"");
        sandbox
            .q(&["-t", "web", "go"])
            .run()
            .success()
            .stdout("the answer\n");
        assert_eq!(kept(&sandbox)[0]["result"], result);
    }
}

#[test]
fn a_session_without_a_question_is_ended() {
    let (model, site) = (model(0), site(|_, _| None));
    let sandbox = with_web(&model, &site.url(), "");
    let mut running = sandbox.q(&["-t", "web"]).stdin_open().spawn();
    site.wait_for_requests(3);
    running.close_stdin();
    running.wait().exit(2);
    // Unless the last answer was still on its way.
    let methods = heard(&site);
    assert!(
        methods.len() == 3 || methods.last().is_some_and(|last| last == "DELETE"),
        "{methods:?}"
    );
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
    sandbox
        .q(&["-t", "web", "go"])
        .run()
        .success()
        .stdout("the answer\n")
        .stderr("");
    assert_eq!(kept(&sandbox)[0]["result"], "you said hi 0");
    let answers = site.requests().into_iter().map(|request| message(&request));
    let of = |id: &str| {
        answers
            .clone()
            .find(|message| message["id"] == id)
            .expect("an answer")
    };
    assert_eq!(
        of("p1"),
        json!({"jsonrpc": "2.0", "id": "p1", "result": {}})
    );
    assert_eq!(of("p2")["error"]["code"], -32601);
}

#[test]
fn a_server_that_ignores_the_answer_to_its_own_request_holds_up_nothing() {
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
    sandbox
        .q(&["-t", "web", "go"])
        .run()
        .success()
        .stdout("the answer\n");
    assert_eq!(kept(&sandbox)[0]["result"], "you said hi 0");
}

#[test]
fn a_server_that_fails_is_reported_though_another_is_silent() {
    let (silent, refuses) = (
        Server::always(Reply::raw("").hang()),
        Server::always(Reply::new(401)),
    );
    let model = model(0);
    let sandbox = Sandbox::new().server_env(&model).env("Q_RETRIES", "0");
    let section = |name: &str, site: &Server| {
        format!(
            "[tools.{name}]\nurl = \"{}\"\nstart = \"never\"\n",
            site.url()
        )
    };
    sandbox.config(&(section("silent", &silent) + &section("refuses", &refuses)));
    for names in ["silent,refuses", "refuses,silent"] {
        sandbox
            .q(&["-t", names, "go"])
            .run()
            .exit(1)
            .stdout_is_empty()
            .stderr_contains("q: refuses: 401 Unauthorized");
    }
}

#[test]
fn more_tools_than_q_lists_are_noted() {
    let site = site(|_, message| {
        if message["method"] != "tools/list" {
            return None;
        }
        // One more tool a page, without an end.
        let page = message["params"]["cursor"]
            .as_str()
            .map_or(0, |cursor| cursor.parse::<usize>().expect("a number"));
        let tools = json!([{"name": format!("t{page}"), "inputSchema": {"type": "object"}}]);
        Some(answer(
            message,
            json!({"tools": tools, "nextCursor": (page + 1).to_string()}),
        ))
    });
    let model = model(0);
    let sandbox = with_web(&model, &site.url(), "");
    let outcome = sandbox.q(&["--list-tools"]).run();
    outcome
        .exit(0)
        .stdout_contains("web__t99\t")
        .stdout_lacks("web__t100");
    outcome.stderr("q: web: only the first 100 tools are listed; the server has more\n");
}

#[test]
fn long_instructions_lose_their_middle() {
    let site = site(|_, message| {
        let instructions = format!("begin{}end", "ü".repeat(4_000));
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "instructions": instructions});
        (message["method"] == "initialize").then(|| answer(message, hello))
    });
    let model = model(0);
    with_web(&model, &site.url(), "")
        .q(&["-t", "web", "-S", "", "go"])
        .run()
        .success();
    let system = model.request().json()["messages"][0]["content"]
        .as_str()
        .expect("text")
        .to_owned();
    let text = system
        .strip_prefix("<instructions server=\"web\">\n")
        .expect("a fence");
    let text = text.strip_suffix("\n</instructions>").expect("a fence");
    assert!(
        text.starts_with("begin") && text.contains(" bytes left out]") && text.ends_with("end"),
        "{text}"
    );
    assert!(
        text.len() <= 4_000 && text.len() > 3_900,
        "{} bytes",
        text.len()
    );
}

#[test]
fn the_images_of_all_results_have_a_limit_together() {
    let data = format!("{IMAGE}{}", "A".repeat(4_000_000));
    let image = json!({"content": [{"type": "image", "mimeType": "image/png", "data": data}]});
    let site = site(move |_, message| {
        (message["method"] == "tools/call").then(|| answer(message, image.clone()))
    });
    let model = model(2);
    with_web(&model, &site.url(), "allow = [\"*\"]")
        .q(&["-t", "web", "go"])
        .run()
        .success();
    let sent = model.last_request().text();
    assert_eq!(
        (
            sent.matches("data:image/png").count(),
            sent.matches("[image image/png, ").count()
        ),
        (1, 2)
    );
}

#[test]
fn a_goodbye_that_nobody_answers_does_not_hold_q_up_for_long() {
    let site = site(|request, _| (request.method == "DELETE").then(|| Reply::raw("").hang()));
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
    outcome
        .success()
        .check(began.elapsed() < Duration::from_millis(1_500), || {
            "expected a quick end".to_owned()
        });
}

#[test]
fn a_signal_during_a_call_keeps_what_has_run() {
    let site = site(|_, message| {
        (message["params"]["arguments"]["text"] == "hi 1").then(|| Reply::new(200).hang())
    });
    let model = model(2);
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
    let tunnel = Reply::raw("HTTP/1.1 200 OK\r\n\r\n").keep_alive();
    let proxy = site(move |request, _| (request.method == "CONNECT").then(|| tunnel.clone()));
    let sandbox = with_web(
        &model,
        "http://tools.example/mcp",
        "allow = [\"*\"]\nkey_env = \"TOOL_KEY\"",
    );
    let sandbox = sandbox
        .env("TOOL_KEY", TOOL_KEY)
        .env("ALL_PROXY", proxy.url());
    let outcome = sandbox.q(&["-t", "web", "go"]).run();
    outcome.exit(0).stdout("the answer\n");
    outcome.stderr("q: the key of the tool server web goes to http://tools.example unencrypted\n");
    assert_eq!(proxy.requests()[0].path, "tools.example:80");
    assert_eq!(proxy.last_request().method, "DELETE");
}
