//! What servers and files have more of than q keeps: how much memory and time it takes, and how it is ended.

use libc::SIGTERM;
use serde_json::json;

use crate::conversations::{idle_for, stored};
use crate::dialect::{DIALECTS, Dialect, data, finish, word};
#[cfg(target_os = "linux")]
use crate::fixtures::make_pipe;
use crate::fixtures::{LARGEST, case};
use crate::run::Q;
use crate::sandbox::Sandbox;
use crate::server::{Gate, Reply, Server};
use crate::snapshot::snapshot;
use crate::times::HOUR;
use crate::toolserver::{expect_gone, section};

/// The bytes of text in one event.
const PIECE: usize = 100_000;

/// The numbers of events that are more than q keeps, and more than the limit on memory below allows to be kept.
const TOO_MANY: usize = LARGEST / PIECE + 1;
const FAR_TOO_MANY: usize = 4 * LARGEST / PIECE;

/// In KiB: enough to keep what may be kept. A text of 40 MB takes room for 64.
const MEMORY: usize = 60_000;

/// The same for an answer that may be kept.
const MEMORY_OF_ANSWER: usize = 50_000;

/// The same where the parser needs a buffer for a text of 16 MB with escapes. It asks for twice that, and uses half of it.
const MEMORY_WITH_ESCAPES: usize = 70_000;

/// The same with the stacks of a tool server's threads, and with the memory that a tool server takes itself, which has the
/// same limit.
const MEMORY_WITH_TOOLS: usize = 100_000;

const NOT_SAVED: &str = "q: this exchange was not saved: the answer has more than 10 MB\n";

/// The real `q` with these arguments in the words of a shell, which may take so much memory.
fn limited(sandbox: &Sandbox, memory: usize, arguments: &str) -> Q {
    let limit = if cfg!(target_os = "linux") {
        format!("ulimit -d {memory}; ")
    } else {
        String::new()
    };
    sandbox.shell(&format!("{limit}exec q {arguments}"))
}

/// So much text, as a stream of OpenAI's that has not ended.
fn text(count: usize) -> Vec<Vec<u8>> {
    vec![word(&"x".repeat(PIECE)); count]
}

/// This many sources with long titles, as a stream of Gemini's that has not ended.
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

/// This many thousands of sources, as a stream of Perplexity's in which no word has come.
fn citations(count: usize) -> Vec<Vec<u8>> {
    let event = |thousand: usize| {
        let pages = (0..1000).map(|page| format!("https://example.com/{thousand}/{page}"));
        data(&json!({"choices": [], "citations": Vec::from_iter(pages)}))
    };
    Vec::from_iter((0..count).map(event))
}

/// A sandbox with a conversation.
fn talked() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write_current(&idle_for(HOUR, &["one", "1"]));
    sandbox
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux limits memory by ulimit -d"
)]
fn an_endless_answer_takes_little_memory() {
    for (what, dialect, events) in [
        ("text", &DIALECTS[0], text(FAR_TOO_MANY)),
        ("sources", &DIALECTS[2], sources(FAR_TOO_MANY)),
        ("many sources", &DIALECTS[0], citations(300)),
    ] {
        let _case = case(what);
        let server = Server::always(Reply::sse(events).pieces((dialect.stream)(&["the end"])));
        let sandbox = talked();
        let before = snapshot(sandbox.state());
        let q = limited(&sandbox, MEMORY, "two >/dev/null").env("Q_PROVIDER", dialect.provider);
        q.speaks(dialect, &server).run().exit(0).stderr(NOT_SAVED);
        before.expect_unchanged();
    }
}

/// Many small values would take a hundred times the memory of their JSON.
#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux limits memory by ulimit -d"
)]
fn an_event_of_many_small_values_takes_little_memory() {
    let zeros = format!("[{}0]", "0,".repeat(2_000_000));
    let objects = format!("[{}{{}}]", "{},".repeat(1_000_000));
    // The exit status: a list that is read has a limit, and an error is one however long it is.
    for (provider, status, event) in [
        ("openai", 0, r#"{"choices":[{"delta":{"content":ZEROS}}]}"#),
        (
            "openai",
            0,
            r#"{"choices":[{"delta":ZEROS}],"unread":OBJECTS}"#,
        ),
        (
            "openai",
            0,
            r#"{"choices":[],"usage":{"prompt_tokens":ZEROS}}"#,
        ),
        ("openai", 1, r#"{"choices":OBJECTS}"#),
        ("openai", 1, r#"{"error":ZEROS}"#),
        ("anthropic", 0, r#"{"type":"ping","unread":ZEROS}"#),
        (
            "anthropic",
            0,
            r#"{"type":"content_block_start","index":9,"content_block":{"type":"x","citations":ZEROS}}"#,
        ),
        (
            "gemini",
            0,
            r#"{"candidates":[{"content":{"parts":[{"text":OBJECTS}]}}]}"#,
        ),
        (
            "gemini",
            1,
            r#"{"candidates":[{"content":{"parts":ZEROS}}]}"#,
        ),
        (
            "responses",
            0,
            r#"{"type":"response.in_progress","response":ZEROS}"#,
        ),
        (
            "responses",
            0,
            r#"{"type":"response.output_item.done","item":{"type":"message","content":ZEROS}}"#,
        ),
    ] {
        let _case = case(event);
        let dialect = Dialect::named(provider);
        let event = event.replace("ZEROS", &zeros).replace("OBJECTS", &objects);
        let event = format!("data: {event}\n\n").into_bytes();
        let server = Server::always(Reply::sse([event]).pieces((dialect.stream)(&["the end"])));
        let sandbox = Sandbox::new();
        let limit = if cfg!(target_os = "linux") {
            format!("ulimit -d {MEMORY}; ")
        } else {
            String::new()
        };
        let q = sandbox.shell(&format!("{limit}exec q --no-save two"));
        let q = q.env("Q_PROVIDER", provider).env("Q_RETRIES", "0");
        q.speaks(dialect, &server).run().exit(status);
    }
}

/// A long text is in memory as the server's JSON and as text, and if it has escapes, once more.
#[test]
fn a_long_piece_takes_little_memory() {
    let long = "x".repeat(15_900_000);
    for (what, text, memory, dialects) in [
        ("plain", long.clone(), MEMORY, &DIALECTS[..]),
        (
            "escaped",
            format!("{long}\n"),
            MEMORY_WITH_ESCAPES,
            &DIALECTS[..1],
        ),
    ] {
        for dialect in dialects {
            let _case = case((what, dialect.provider));
            let server = Server::always(Reply::sse((dialect.stream)(&[&text])));
            let sandbox = Sandbox::new();
            let q = limited(&sandbox, memory, "two >/dev/null").env("Q_PROVIDER", dialect.provider);
            q.speaks(dialect, &server).run().exit(0).stderr(NOT_SAVED);
        }
    }
    let thought = data(&json!({"choices": [{"delta": {"reasoning_content": long}}]}));
    let server = Server::always(Reply::sse([thought]).pieces((DIALECTS[0].stream)(&["the end"])));
    let sandbox = Sandbox::new().server_env(&server);
    let outcome = limited(&sandbox, MEMORY, "-v two 2>/dev/null").run();
    outcome.success().stdout("the end\n");
}

/// A text that is printed and saved is in memory as the answer, and as what is made of it.
#[test]
fn a_long_answer_takes_little_memory() {
    let long = "x".repeat(9_800_000);
    let code = format!("```sh\n{long}\n```\n");
    let object = json!({"a": long}).to_string();
    let list = format!("{{\"items\":[{object}]}}");
    for (arguments, text) in [
        ("two", &long),
        ("--no-stream two", &long),
        ("-j two", &long),
        ("-x two", &code),
        ("--schema a two", &object),
        ("--schema [a] --lines two", &list),
        ("--schema [a] --lines --no-stream two", &list),
    ] {
        let _case = case(arguments);
        let server = Server::start({
            let text = text.clone();
            move |request, number| match number {
                0 => (DIALECTS[0].reply)(request, &text),
                _ => (DIALECTS[0].reply)(request, "the answer"),
            }
        });
        let sandbox = Sandbox::new().server_env(&server);
        let first = limited(
            &sandbox,
            MEMORY_OF_ANSWER,
            &format!("{arguments} >/dev/null"),
        );
        first.run().exit(0).stderr("");
        let saved = sandbox.current()["messages"][1]["content"].clone();
        assert_eq!(saved.as_str().map(str::len), Some(text.len()));
        let next = limited(&sandbox, MEMORY_OF_ANSWER, "-f three 2>/dev/null");
        next.run().success().stdout("the answer\n");
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
    before.expect_unchanged();
}

/// A list of this many zeros.
fn zeros(count: usize) -> String {
    format!("[{}0]", "0,".repeat(count))
}

/// A reply of OpenAI's that calls `db__echo` this often with these arguments.
fn calling(times: usize, arguments: &str) -> Reply {
    let mut calls = Vec::new();
    for index in 0..times {
        let function = json!({"name": "db__echo", "arguments": arguments});
        calls.push(json!({"index": index, "id": format!("call{index:05}"), "function": function}));
    }
    let event = json!({"choices": [{"delta": {"tool_calls": calls}}]});
    Reply::sse([data(&event), finish("tool_calls")])
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux limits memory by ulimit -d"
)]
fn huge_messages_of_a_tool_server_take_little_memory() {
    // What it does, how q ends, what q says, and the beginning of the call's result.
    for (mode, calls, exit, says, result) in [
        ("vast-list", 1, 1, "db: lists more than 1 MB", ""),
        ("pages", 1, 1, "db: lists more than 1 MB", ""),
        (
            "dense-list",
            1,
            1,
            "db: lists schemas with too many values",
            "",
        ),
        (
            "vast-text",
            1,
            0,
            "",
            "the tool server sent a message that cannot be parsed",
        ),
        ("vast-values", 1, 0, "", "{\"x\":[0,0,0"),
        ("vast-twin", 1, 0, "", "{\"x\":\"xxx"),
        ("many-pieces", 1, 0, "", "x\nx\nx"),
        ("long-texts", 10, 0, "", "xxx"),
        (
            "floods",
            1,
            0,
            "q: db: sends too many requests, or does not read the answers to them, so it was ended\n",
            "the tool server db sends too many requests",
        ),
    ] {
        let _case = case(mode);
        let server = Server::start(move |request, number| match number {
            0 => calling(calls, "{}"),
            _ => (DIALECTS[0].reply)(request, "the answer"),
        });
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.config(&section(&sandbox, "db", mode, "allow = [\"*\"]"));
        // Twice, because the list is kept for the next question.
        for _ in 0..2 {
            let outcome = limited(&sandbox, MEMORY_WITH_TOOLS, "-t db go").run();
            outcome.exit(exit).stderr_contains(says);
            if exit != 0 {
                server.expect_requests(0);
                continue;
            }
            let saved = sandbox.current()["messages"][1]["steps"][0]["calls"].clone();
            let found = saved[0]["result"].as_str().expect("a result");
            assert!(
                found.starts_with(result),
                "{}",
                &found[..100.min(found.len())]
            );
            break;
        }
    }
}

#[test]
fn a_server_that_floods_while_nothing_is_called_is_ended_with_a_note() {
    let ended = Gate::new();
    let gate = ended.clone();
    let server = Server::start(move |_, _| {
        let events = (DIALECTS[0].stream)(&["the answer"]);
        Reply::sse([": wait\n\n"]).wait_for(&gate).pieces(events)
    });
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.config(&section(&sandbox, "db", "floods-at-once", ""));
    let running = limited(&sandbox, MEMORY_WITH_TOOLS, "-t db go").spawn();
    server.wait_for_requests(1);
    expect_gone(&sandbox, "db");
    ended.open();
    let outcome = running.wait();
    outcome.exit(0).stdout("the answer\n");
    outcome.stderr_contains("q: db: sends too many requests, or does not read the answers");
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux limits memory by ulimit -d"
)]
fn huge_arguments_of_a_call_take_little_memory() {
    let dense = format!("{{\"x\":{}}}", zeros(490_000));
    let vast = format!("{{\"x\":{}}}", zeros(2_000_000));
    for (what, calls, arguments, result) in [
        (
            "many bytes",
            1,
            &vast,
            "The arguments of all calls together have more than 4 MB.",
        ),
        (
            "many values",
            1,
            &dense,
            "The arguments have too many values.",
        ),
    ] {
        let _case = case(what);
        let reply = calling(calls, arguments);
        let server = Server::start(move |request, number| match number {
            0 => reply.clone(),
            _ => (DIALECTS[0].reply)(request, "the answer"),
        });
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.config(&section(&sandbox, "db", "", "allow = [\"*\"]"));
        let outcome = limited(&sandbox, MEMORY_WITH_TOOLS, "-t db go").run();
        outcome.success().stdout("the answer\n");
        let step = &sandbox.current()["messages"][1]["steps"][0];
        assert_eq!(step["calls"][0]["result"], result);
        assert_eq!(step["calls"][0]["error"], true);
    }
}

/// All calls of a question go with each further request.
#[test]
fn huge_arguments_in_many_rounds_take_little_memory() {
    let arguments = json!({"x": "x".repeat(3_900_000)}).to_string();
    let reply = calling(1, &arguments);
    let server = Server::start(move |request, number| match number {
        0..9 => reply.clone(),
        _ => (DIALECTS[0].reply)(request, "the answer"),
    });
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.config(&section(&sandbox, "db", "", "allow = [\"*\"]"));
    let outcome = limited(&sandbox, MEMORY_WITH_TOOLS, "-t db go").run();
    outcome.success().stdout("the answer\n");
    let steps = sandbox.current()["messages"][1]["steps"].clone();
    assert_eq!(steps[8]["calls"][0]["arguments"], "(too many bytes)");
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux limits memory by ulimit -d"
)]
fn arguments_that_are_sent_as_json_values_take_little_memory() {
    let values = format!("{{\"x\":{}}}", zeros(3_000_000));
    for (provider, event) in [
        (
            "gemini",
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"db__echo","args":VALUES},"thoughtSignature":"s"}]},"finishReason":"STOP"}]}"#,
        ),
        (
            "anthropic",
            r#"{"stop_reason":"tool_use","content":[{"type":"tool_use","id":"x","name":"db__echo","input":VALUES}]}"#,
        ),
        (
            "responses",
            r#"{"status":"completed","output":[{"type":"function_call","call_id":"x","name":"db__echo","arguments":VALUES}]}"#,
        ),
    ] {
        let _case = case(provider);
        let dialect = Dialect::named(provider);
        let body = event.replace("VALUES", &values);
        let reply = Reply::new(200).header("content-type", "application/json");
        let reply = reply.piece(body);
        let server = Server::start(move |request, number| match number {
            0 => reply.clone(),
            _ => (dialect.reply)(request, "the answer"),
        });
        let sandbox = Sandbox::new();
        sandbox.config(&section(&sandbox, "db", "", "allow = [\"*\"]"));
        let q = limited(&sandbox, MEMORY_WITH_TOOLS, "--no-stream -t db go");
        let q = q.env("Q_PROVIDER", provider);
        let outcome = q.speaks(dialect, &server).run();
        outcome.success().stdout("the answer\n");
        let call = &sandbox.current()["messages"][1]["steps"][0]["calls"][0];
        let result = "The arguments of all calls together have more than 4 MB.";
        assert_eq!(call["result"], result);
    }
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux limits memory by ulimit -d"
)]
fn many_values_in_a_response_take_little_memory() {
    let many = zeros(4_500_000);
    let in_event = format!(r#"{{"choices":[{{"delta":{{"content":"a","x":{many}}}}}]}}"#);
    let event = format!("data: {in_event}\n\ndata: [DONE]\n\n");
    let whole = format!(r#"{{"choices":[{{"message":{{"content":"a","x":{many}}}}}]}}"#);
    let names = |count: usize| {
        let names = Vec::from_iter((0..count).map(|name| format!("{{\"id\":\"m{name}\"}}")));
        format!("{{\"data\":[{}]}}", names.join(","))
    };
    let error = format!(r#"{{"error":{{"message":"no","x":{many}}}}}"#);
    let json = |status: u16, body: &str| {
        let reply = Reply::new(status).header("content-type", "application/json");
        reply.piece(body)
    };
    for (what, reply, arguments, exit, says) in [
        // No field that q does not read fails an answer.
        ("an event", Reply::sse([event]), "hi", 0, ""),
        ("a whole answer", json(200, &whole), "--no-stream hi", 0, ""),
        (
            "an error",
            json(400, &error),
            "hi",
            1,
            "400 Bad Request: {\"error\"",
        ),
        (
            "names",
            json(200, &names(9_000)),
            "--models >/dev/null",
            0,
            "",
        ),
        (
            "many names",
            json(200, &names(60_000)),
            "--models",
            1,
            "more than 10000 elements",
        ),
        (
            "too many names",
            json(200, &names(600_000)),
            "--models",
            1,
            "more than 8 MB",
        ),
    ] {
        let _case = case(what);
        let server = Server::always(reply);
        let sandbox = Sandbox::new().server_env(&server).env("Q_RETRIES", "0");
        let outcome = limited(&sandbox, MEMORY, arguments).run();
        outcome.exit(exit).stderr_contains(says);
    }
}

/// Work that grows with the square of a reply would take hours for these, and a run of q that long fails.
#[test]
fn a_long_reply_takes_little_time() {
    let error =
        |message: &str| Reply::json(200, json!({"error": {"code": 400, "message": message}}));
    let answer = |text: &str| Reply::sse((DIALECTS[0].stream)(&[text]));
    let nested = format!(
        "{}\n{}x\n```sh\nls\n```",
        "- ".repeat(300_000),
        " ".repeat(300_000)
    );
    let mut deeper = String::new();
    for depth in 0..3_000 {
        deeper += &format!("{}- x\n\n", "  ".repeat(depth));
    }
    let named = json!({"x".repeat(8_000_000): vec![0; 250_000]}).to_string();
    let items = r#"{"additionalProperties": {"items": {"type": "integer"}}}"#;
    for (what, arguments, reply, exit) in [
        (
            "a name in an error",
            "hi",
            error(&"system,".repeat(140_000)),
            1,
        ),
        ("nested items", "-x hi", answer(&nested), 0),
        ("ever deeper items", "-x hi", answer(&deeper), 1),
        (
            "many items below a long name",
            "--schema items.json hi",
            answer(&named),
            0,
        ),
    ] {
        let _case = case(what);
        let server = Server::always(reply);
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.write_home("items.json", items);
        let q = sandbox.shell(&format!("exec q {arguments}"));
        q.env("Q_SAVE", "false").run().exit(exit);
    }
}

#[test]
fn a_key_command_with_endless_output_is_ended() {
    let sandbox = Sandbox::new();
    sandbox.config("[providers.openai]\nkey_cmd = [\"yes\"]\n");
    let outcome = limited(&sandbox, MEMORY, "-p openai -m m hi").run();
    let error = "q: openai: key_cmd: yes printed more than 1 MB, and was ended\n";
    outcome.exit(2).stderr(error);
}

#[test]
#[cfg(target_os = "linux")]
fn an_endless_file_takes_little_memory_and_a_pipe_is_not_waited_for() {
    // To the system, the first is a regular file of no bytes.
    for target in ["/proc/self/pagemap", "pipe"] {
        for (place, arguments, exit) in [
            ("sessions/current.json", "-f hi", 0),
            ("sessions/n.json", "-s n hi", 2),
            ("sessions/n.json", "-s n --history", 1),
            ("sessions/n.json", "-s n --undo", 1),
            ("sessions/n.json", "-s n --copy m", 1),
            ("sessions/n.json", "--list word", 0),
            ("home/x.json", "-s ./x.json hi", 2),
            ("home/x.json", "--schema x.json hi", 2),
            ("home/x.json", "--list-tools", 2),
            ("config/roles/r.md", "-r r hi", 2),
            ("config/roles/r/system.md", "-r r hi", 2),
            ("config/config.toml", "hi", 2),
            ("answers", "--cached hi", 0),
            ("home/x.pem", "hi", 2),
            ("home/certificates/12345678.0", "hi", 2),
        ] {
            let _case = case((target, place, arguments));
            let server = Server::start(|request, _| (DIALECTS[0].reply)(request, "the answer"));
            let answers = tempfile::tempdir().expect("a directory");
            let mut sandbox = Sandbox::new()
                .server_env(&server)
                .env("Q_ANSWERS", answers.path());
            let config = sandbox.config_file();
            let config = config.parent().expect("a directory").to_owned();
            let (directory, name) = place.split_once('/').unwrap_or((place, ""));
            let mut path = match directory {
                "sessions" => sandbox.sessions().join(name),
                "config" => config.join(name),
                _ => sandbox.home().join(name),
            };
            match name {
                "x.json" => sandbox.config(&format!("mcp = {path:?}\n")),
                "x.pem" => sandbox = sandbox.env("SSL_CERT_FILE", &path),
                "certificates/12345678.0" => {
                    sandbox = sandbox.env("SSL_CERT_DIR", path.parent().expect("a directory"));
                }
                _ => (),
            }
            if name.ends_with(".pem") || name.ends_with(".0") {
                sandbox = sandbox.env("OPENAI_BASE_URL", "https://127.0.0.1:1/v1");
            }
            if directory == "answers" {
                sandbox.q(&["--cached", "hi"]).run().success();
                let entry = std::fs::read_dir(answers.path())
                    .expect("a directory")
                    .next();
                path = entry.expect("an answer").expect("an answer").path();
                std::fs::remove_file(&path).expect("an answer");
            }
            let parent = path.parent().expect("a directory");
            std::fs::create_dir_all(parent).expect("a directory");
            let mut target = std::path::PathBuf::from(target);
            if target.is_relative() {
                target = sandbox.root().join("pipe");
                make_pipe(&target);
            }
            std::os::unix::fs::symlink(&target, &path).expect("a link");
            let outcome = limited(&sandbox, MEMORY, arguments).run();
            outcome.exit(exit);
        }
    }
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "only Linux limits memory by ulimit -d"
)]
fn a_file_with_many_values_takes_little_memory() {
    let many = zeros(4_500_000);
    let conversation = |more: &str| {
        let mut text = stored(&["one", "1"]).to_string();
        text.truncate(text.len() - 1);
        format!("{text},\"x\":{more}}}")
    };
    let some = zeros(1_000);
    let schema = format!("{{\"type\":\"object\",\"x\":{}}}", zeros(490_000));
    let servers = format!("{{\"mcpServers\":{{\"a\":{many}}}}}");
    let ignored = format!("{{\"history\":{many},\"mcpServers\":{{}}}}");
    let too_many = "it has too many values";
    for (name, text, config, arguments, exit, says) in [
        ("x.json", &conversation(&some), "", "-s ./x.json hi", 0, ""),
        // What q does not know is not parsed.
        ("x.json", &conversation(&many), "", "-s ./x.json hi", 0, ""),
        ("x.json", &schema, "", "--schema x.json hi", 2, too_many),
        (
            "x.json",
            &servers,
            "mcp = PATH",
            "--list-tools",
            2,
            too_many,
        ),
        (
            "x.json",
            &ignored,
            "mcp = PATH",
            "--list-tools",
            0,
            "no tool is configured",
        ),
        (
            "x.json",
            &some,
            &format!("x = {}", zeros(490_000)),
            "hi",
            2,
            too_many,
        ),
    ] {
        let _case = case((arguments, text.len(), config.len()));
        let server = Server::start(|request, _| (DIALECTS[0].reply)(request, "the answer"));
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.write_home(name, text);
        let path = format!("{:?}", sandbox.home().join(name));
        sandbox.config(&config.replace("PATH", &path));
        let outcome = limited(&sandbox, MEMORY, arguments).run();
        outcome.exit(exit).stderr_contains(says);
    }
}

#[test]
fn a_server_that_lists_a_newer_model_each_time_and_serves_none_is_asked_for_one_of_them() {
    let unknown =
        json!({"type": "error", "error": {"type": "not_found_error", "message": "model: X"}});
    let server = Server::start(move |request, earlier| match request.method.as_str() {
        "GET" => Reply::json(
            200,
            json!({"data": [{"id": format!("claude-haiku-{}", 10 + earlier)}]}),
        ),
        _ => Reply::json(404, unknown.clone()),
    });
    let sandbox = Sandbox::new().anthropic_env(&server);
    let outcome = sandbox.q(&["-p", "anthropic", "hi"]).run();
    outcome
        .exit(1)
        .stderr_contains("asking claude-haiku-11: ")
        .stderr_contains("run q --models -p anthropic to list its models");
    server.expect_requests(3);
}
