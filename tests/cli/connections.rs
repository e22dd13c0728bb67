//! Connections: one for all rounds of a question, one that is opened while q waits, and none that is used in vain.

use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::dialect::{DIALECTS, Dialect};
use crate::fixtures::{case, fast_clock};
use crate::sandbox::Sandbox;
use crate::server::{Reply, Server};

const OPENAI: &Dialect = &DIALECTS[0];

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
fn all_rounds_of_a_question_have_one_connection_unless_the_server_ends_it() {
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

#[test]
fn what_needs_no_request_opens_none() {
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

#[test]
fn a_connection_that_was_idle_for_long_is_not_used() {
    let server = Server::start(|request, number| match number {
        0 => calling(OPENAI).keep_alive(),
        _ => (OPENAI.reply)(request, "the answer"),
    });
    // On q's clock the wait for input, and the command, take 40 s.
    let wait = Duration::from_millis(400);
    let sandbox = with_command("0.4");
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
fn after_silence_on_a_connection_that_was_idle_nothing_is_sent_again() {
    let server = Server::always(Reply::raw("").hang());
    let sandbox = Sandbox::new();
    let q = OPENAI.q(&sandbox, &server, &["hi"]).stdin("input");
    let outcome = q.env("Q_TIMEOUT", "1s").run();
    outcome.exit(1).stderr_contains("no data from the server");
    assert_eq!(connections(&server), [0]);
}
