//! Connections: one for all rounds of a question, one that is opened while q waits, and none that is used in vain.

use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::conversations::{id_of, idle_for, with};
use crate::dialect::{DIALECTS, Dialect, models_reply, openai_reply};
use crate::fixtures::case;
use crate::machine::fast_clock;
use crate::run::API_KEY;
use crate::sandbox::Sandbox;
use crate::server::{Reply, Server};
use crate::snapshot::snapshot;

const OPENAI: &Dialect = &DIALECTS[0];

/// How long something may take that takes a moment.
const LONG: Duration = Duration::from_secs(30);

/// A sandbox in which the model may call `shop__now`, which takes that many seconds.
fn with_command(seconds: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.config(&format!(
        "[tools.shop.now]\nreads = true\nrun = [\"sleep\", \"{seconds}\"]\n"
    ));
    sandbox
}

/// A reply that calls this command, with a length, so that its end needs nothing more.
fn calling(dialect: &Dialect) -> Reply {
    let calls = (dialect.calls)("", &[("call00001", "shop__now", json!({}))]);
    Reply::new(200)
        .header("content-type", "text/event-stream")
        .pieces(calls)
}

/// The numbers of the connections on which the requests came.
fn connections(server: &Server) -> Vec<usize> {
    let mut numbers = Vec::new();
    for request in server.requests() {
        numbers.push(request.connection);
    }
    numbers
}

#[test]
fn all_rounds_of_a_question_share_one_connection_unless_the_server_ends_it() {
    for dialect in &DIALECTS {
        // How the reply that calls ends, and the connections of the three requests.
        for (how, end, expected) in [
            ("kept", Reply::keep_alive as fn(Reply) -> Reply, [0, 0, 0]),
            ("closed", |reply| reply, [0, 1, 2]),
            // The body is longer, and nothing more comes.
            ("open", Reply::hang, [0, 1, 2]),
        ] {
            let _case = case((dialect.provider, how));
            // There is no terminal event, so only the end of the body ends the reply.
            if dialect.provider == "gemini" && how == "open" {
                continue;
            }
            let server = Server::start(move |request, number| match number {
                0 | 1 => end(calling(dialect)),
                _ => (dialect.reply)(request, "the answer"),
            });
            let sandbox = with_command("0");
            let q = dialect.q(&sandbox, &server, &["-t", "shop", "hi"]);
            q.run().success().stdout("the answer\n");
            assert_eq!(connections(&server), expected);
        }
    }
}

#[test]
fn a_connection_is_opened_while_q_waits_for_a_pipe_or_for_tool_servers() {
    let server = Server::openai("the answer");
    let sandbox = Sandbox::new();
    sandbox.config("[tools.slow]\ncommand = [\"sleep\", \"1000\"]\n");
    sandbox.shell("mkfifo wait").run().success();

    let named = &["-p", "openai", "-s", "work", "hi"];
    for (number, args) in [&["hi"][..], named, named].into_iter().enumerate() {
        let q = OPENAI.q(&sandbox, &server, args).stdin_open();
        let mut running = q.spawn();
        server.wait_for_connections(number + 1);
        server.expect_requests(number);
        running.close_stdin();
        running.wait().exit(0).stdout("the answer\n");
    }
    assert_eq!(connections(&server), [0, 1, 2]);
    for args in [&["-a", "wait", "hi"], &["-t", "slow", "hi"]] {
        let _case = case(args);
        let opened = server.connections();
        let mut running = OPENAI.q(&sandbox, &server, args).spawn();
        server.wait_for_connections(opened + 1);
        running.signal(libc::SIGTERM);
        running.wait().killed_by(libc::SIGTERM);
    }
    server.expect_requests(3);
}

/// More than a pipe holds: when q has taken it, it waits for input.
const LONG_INPUT: &str = "0123456789";
const REPEATED: usize = 20_000;

#[test]
fn only_the_server_that_is_asked_in_the_end_is_connected_to() {
    // A provider that a role names, and one without a key.
    const CONFIG: &str = "[roles.other]\nprovider = \"mistral\"\n";
    let (fresh, idle) = (Duration::from_secs(60), Duration::from_secs(48 * 3600));
    // Where the conversation is, the provider that it is with, whether that was chosen for it, and since when it is idle; what
    // is typed, with variables; and whom q asks. Without a variable for it, the settings name mistral.
    for (link, provider, pinned, since, args, variable, asked) in [
        ("current", "openai", true, fresh, "-f", "", "openai"),
        ("current", "openai", true, idle, "-ff", "", "openai"),
        ("current", "openai", true, idle, "-f", "", "mistral"),
        ("current", "openai", true, fresh, "-f -m m", "", "openai"),
        (
            "current",
            "openai",
            true,
            fresh,
            "-f",
            "Q_MISMATCH=continue",
            "openai",
        ),
        (
            "current",
            "openai",
            true,
            fresh,
            "-f -p mistral",
            "",
            "mistral",
        ),
        (
            "current",
            "openai",
            true,
            fresh,
            "-f -r other",
            "",
            "mistral",
        ),
        (
            "current",
            "openai",
            true,
            fresh,
            "-n --no-save",
            "",
            "mistral",
        ),
        ("current", "openai", false, fresh, "-f", "", "mistral"),
        ("current", "openai", false, fresh, "-ff", "", "mistral"),
        (
            "current",
            "openai",
            false,
            fresh,
            "-f",
            "Q_MISMATCH=continue",
            "mistral",
        ),
        ("current", "openai", false, fresh, "--again", "", "openai"),
        (
            "current",
            "openai",
            true,
            fresh,
            "--again -p mistral",
            "",
            "mistral",
        ),
        (
            "current-one",
            "openai",
            true,
            fresh,
            "-f",
            "Q_SESSION=one",
            "openai",
        ),
        ("current-one", "openai", true, fresh, "-f", "", "mistral"),
        ("work", "openai", false, fresh, "-s work", "", "openai"),
        (
            "work",
            "openai",
            false,
            fresh,
            "-f -s work",
            "Q_MODEL=m",
            "openai",
        ),
        ("work", "openai", false, fresh, "-s new", "", "mistral"),
        (
            "work",
            "openai",
            false,
            fresh,
            "-s ../state/q/sessions/work.json",
            "",
            "openai",
        ),
        // Nothing names a provider, and no key is set: a server on this machine may be asked, but not instead of another.
        ("current", "vllm", true, fresh, "-f", "Q_PROVIDER=", "vllm"),
        ("current", "vllm", true, idle, "-ff", "Q_PROVIDER=", "vllm"),
        (
            "work",
            "vllm",
            false,
            fresh,
            "-s work",
            "Q_PROVIDER=",
            "vllm",
        ),
        (
            "current",
            "vllm",
            false,
            fresh,
            "--again",
            "Q_PROVIDER=",
            "vllm",
        ),
    ] {
        let _case = case((link, provider, pinned, args, variable));
        let list = json!({"data": [{"id": "m"}]});
        let names = [
            "openai", "mistral", "vllm", "ollama", "llamacpp", "lmstudio",
        ];
        let start = || {
            let list = list.clone();
            Server::start(move |request, _| match request.method.as_str() {
                "GET" => models_reply(request, list.clone()),
                _ => openai_reply(request, "the answer"),
            })
        };
        let servers = names.map(|_| start());
        let mut sandbox = Sandbox::new().env("Q_PROVIDER", "mistral");
        for (name, server) in names.iter().zip(&servers) {
            let name = name.to_uppercase();
            sandbox = sandbox.env(format!("{name}_BASE_URL"), format!("{}/v1", server.url()));
        }
        for key in ["OPENAI_API_KEY", "MISTRAL_API_KEY"] {
            let is_local = provider == "vllm";
            sandbox = sandbox.env(key, if is_local { "" } else { API_KEY });
        }
        if let Some((name, value)) = variable.split_once('=') {
            sandbox = sandbox.env(name, value);
        }
        sandbox.config(CONFIG);
        let conversation = with(idle_for(since, &["one", "1"]), "provider", provider);
        let conversation = with(conversation, "pinned", pinned);
        if link == "work" {
            sandbox.write_session("work.json", &conversation);
        } else {
            let name = id_of(&conversation) + ".json";
            sandbox.write_linked(&format!("{link}.json"), &name, &conversation);
        }
        let before = snapshot(sandbox.state());
        let typed = Vec::from_iter(args.split(' '));
        let mut running = sandbox.q(&typed).args(&["what?"]).stdin_open().spawn();
        if !typed.contains(&"-n") {
            running.write_stdin(LONG_INPUT.repeat(REPEATED));
            before.expect_unchanged();
            // Nor is a round trip waited for where the server is known.
            let has_own = args.contains("-s") || args.contains("--again");
            if args.contains("-p") || !has_own {
                let place = names.iter().position(|name| *name == asked);
                servers[place.expect("a provider")].wait_for_connections(1);
            }
        }
        running.close_stdin();
        running.wait().exit(0).stdout("the answer\n");
        let connected = names.iter().zip(&servers);
        let connected = connected.filter(|(_, server)| server.connections() > 0);
        let connected = Vec::from_iter(connected.map(|(name, _)| *name));
        assert_eq!(connected, [asked]);
    }
}

#[test]
fn a_file_in_the_place_of_the_link_is_unchanged_until_input_has_arrived() {
    let server = Server::openai("the answer");
    let sandbox = Sandbox::new().server_env(&server);
    let conversation = with(idle_for(Duration::ZERO, &["one", "1"]), "pinned", true);
    sandbox.write_session("current.json", &conversation);
    let before = snapshot(sandbox.state());
    let mut running = sandbox.q(&["-f", "what?"]).stdin_open().spawn();
    running.write_stdin(LONG_INPUT.repeat(REPEATED));
    before.expect_unchanged();
    running.close_stdin();
    running.wait().exit(0).stdout("the answer\n");
    assert!(sandbox.target("current.json").is_some(), "there is no link");
}

#[test]
fn no_connection_is_opened_where_no_request_is_needed() {
    let server = Server::openai("the answer");
    let sandbox = Sandbox::new();
    for (option, opened) in [("--dry-run", 0), ("--cached", 1), ("--cached", 1)] {
        let q = OPENAI.q(&sandbox, &server, &[option, "hi"]);
        q.stdin("input").run().exit(0);
        assert_eq!(server.connections(), opened, "{option}");
    }
}

#[test]
fn only_a_connection_that_was_idle_is_replaced_and_only_once() {
    let nothing = || Reply::raw("");
    let something = || Reply::raw("HTTP/1.1 200 OK\r\n");
    let rate = || Reply::new(429).keep_alive();
    let kept = || calling(OPENAI).keep_alive();
    // What is asked, how the first requests are answered, and the connections of all requests. The last is answered well.
    for (piped, replies, expected, code) in [
        // Opened while q waited.
        (true, vec![nothing()], vec![0, 1], 0),
        (true, vec![nothing(), nothing()], vec![0, 1], 1),
        (true, vec![something()], vec![0], 1),
        // Opened for the request.
        (false, vec![nothing()], vec![0], 1),
        // Kept from the round before.
        (false, vec![kept(), nothing()], vec![0, 0, 1], 0),
        (false, vec![kept(), nothing(), nothing()], vec![0, 0, 1], 1),
        (false, vec![kept(), something()], vec![0, 0], 1),
        (false, vec![kept(), rate()], vec![0, 0], 1),
    ] {
        let _case = case((piped, &expected, code));
        let server = Server::start(move |request, number| match replies.get(number) {
            Some(reply) => reply.clone(),
            None => (OPENAI.reply)(request, "the answer"),
        });
        let sandbox = with_command("0");
        let mut q = OPENAI.q(&sandbox, &server, &["-v", "-t", "shop", "hi"]);
        if piped {
            q = OPENAI.q(&sandbox, &server, &["-v", "hi"]).stdin_open();
        }
        let mut running = q.spawn();
        if piped {
            server.wait_for_connections(1);
            running.close_stdin();
        }
        let outcome = running.wait();
        outcome.exit(code).stderr_lacks("retrying");
        assert_eq!(connections(&server), expected);
    }
}

/// A way to a server, whose first connection gets these words at once and ends.
fn with_early_words(server: &Server, words: &'static str) -> (SocketAddr, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (address, server) = (
        listener.local_addr().expect("its address"),
        server.address(),
    );
    let (said, has_said) = mpsc::channel();
    thread::spawn(move || -> io::Result<()> {
        let (mut first, _) = listener.accept()?;
        first.write_all(words.as_bytes())?;
        drop(first);
        let _ = said.send(());
        loop {
            let (client, _) = listener.accept()?;
            let backend = TcpStream::connect(server)?;
            let (mut from, mut to) = (client.try_clone()?, backend.try_clone()?);
            thread::spawn(move || io::copy(&mut from, &mut to));
            let (mut from, mut to) = (backend, client);
            thread::spawn(move || {
                let _ = io::copy(&mut from, &mut to);
                to.shutdown(Shutdown::Both)
            });
        }
    });
    (address, has_said)
}

#[test]
fn words_of_the_server_before_the_request_are_no_answer_to_it() {
    for words in [
        "",
        "HTTP/1.0 408 Request Time-out\r\nConnection: close\r\n\r\n<html>408</html>",
        "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"stale\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    ] {
        let _case = case(words);
        let server = Server::openai("the answer");
        let (address, has_said) = with_early_words(&server, words);
        let sandbox = Sandbox::new().openai_at(format!("http://{address}/v1"));
        let mut running = sandbox.q(&["-v", "hi"]).stdin_open().spawn();
        has_said.recv_timeout(LONG).expect("a connection");
        thread::sleep(Duration::from_millis(50));
        running.close_stdin();
        let outcome = running.wait();
        outcome
            .exit(0)
            .stdout("the answer\n")
            .stderr_lacks("retrying");
        server.expect_requests(1);
    }
}

#[test]
fn a_connection_that_was_idle_for_long_is_not_used() {
    let server = Server::start(|request, number| match number {
        0 => calling(OPENAI).keep_alive(),
        _ => (OPENAI.reply)(request, "the answer"),
    });
    // Time itself is what is tested here. On q's clock the wait for input, and the command, take 100 s, and a connection is
    // used that was idle for less than 30 s; what is left is for a machine that is slow to open it.
    let wait = Duration::from_secs(1);
    let sandbox = with_command("1");
    let Some(clock) = fast_clock(&sandbox) else {
        return;
    };
    let q = OPENAI
        .q(&sandbox, &server, &["-t", "shop", "hi"])
        .stdin_open();
    let mut running = q.env("LD_PRELOAD", clock).spawn();
    server.wait_for_connections(1);
    thread::sleep(wait);
    running.close_stdin();
    running.wait().exit(0).stdout("the answer\n");
    assert_eq!(connections(&server), [1, 2]);
}

#[test]
fn a_timeout_on_a_connection_that_was_idle_is_not_retried() {
    let server = Server::always(Reply::raw("").hang());
    let sandbox = Sandbox::new();
    let q = OPENAI.q(&sandbox, &server, &["hi"]).stdin("input");
    let outcome = q.env("Q_TIMEOUT", "1s").run();
    outcome.exit(1).stderr_contains("no data from the server");
    assert_eq!(connections(&server), [0]);
}
