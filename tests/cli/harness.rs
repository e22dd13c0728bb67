//! Tests of the harness itself: what the other tests stand on.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::panic::{self, AssertUnwindSafe};
use std::time::Duration;

use serde_json::json;

use crate::fixtures::{GUARD, HOUR, age, case, snapshot, stored, word};
use crate::sandbox::Sandbox;
use crate::server::{Gate, Reply, Server};

#[test]
fn the_real_program_runs_with_nothing_but_what_the_sandbox_gives() {
    let sandbox = Sandbox::new();
    let outcome = sandbox.q(&["--version"]).stdin_open().run();
    outcome.success();
    let text = outcome.stdout_text();
    let version = text.strip_prefix("q ").and_then(|rest| rest.strip_suffix('\n'));
    let numbers: Vec<_> = version.unwrap_or_default().split('.').collect();
    let right = numbers.len() == 3 && numbers.iter().all(|number| number.parse::<u32>().is_ok());
    outcome.check(right, || "expected `q X.Y.Z`".to_owned());

    let environment = sandbox.shell("/usr/bin/env -u PWD -u PATH -u _ -u SHLVL | sort");
    let expected =
        format!("HOME={0}/home\nXDG_CONFIG_HOME={0}/config\nXDG_STATE_HOME={0}/state\n", sandbox.root().display());
    environment.run().success().stdout(expected);
}

#[test]
fn much_input_and_output_at_once_do_not_lock_up() {
    let sandbox = Sandbox::new();
    let input = vec![b'x'; 3_000_000];
    let echoed = sandbox.shell("tee /dev/stderr").stdin(&input).run();
    echoed.exit(0).stdout(&input).stderr(&input);
    // A program that leaves its input unread.
    sandbox.q(&["--version"]).stdin(&input).run().success();
}

#[test]
fn a_running_program_is_read_written_signalled_and_left() {
    let sandbox = Sandbox::new();
    let mut echo = sandbox.shell("echo ready; read line; echo $line; echo done >&2; exit 3").stdin_open().spawn();
    assert_eq!(echo.read_stdout_until("ready\n"), b"ready\n");
    echo.write_stdin("words\n");
    let echoed = echo.wait();
    echoed.exit(3).stdout("ready\nwords\n").stderr_contains("done");

    let mut waiting = sandbox.shell("echo ready; read line").stdin_open().spawn();
    waiting.read_stdout_until("ready");
    waiting.signal(libc::SIGTERM);
    waiting.wait().killed_by(libc::SIGTERM).stderr_is_empty();

    let mut left = sandbox.shell("read line; echo $line").stdin_open().spawn();
    left.close_stdout().write_stdin("words\n");
    let left = left.wait();
    left.stdout_is_empty().check(!left.status.success(), || "expected a failure".to_owned());

    let ignoring = sandbox.shell("kill -HUP $$; echo alive").ignoring(libc::SIGHUP);
    ignoring.run().success().stdout("alive\n");
}

#[test]
fn a_failure_shows_the_whole_run() {
    let sandbox = Sandbox::new().env("COLOUR", "blue");
    sandbox.write_current(&json!({"version": 1}));
    sandbox.expect_files(&["current.json"]);
    assert_eq!(sandbox.current(), json!({"version": 1}));
    let outcome = sandbox.shell("echo out; echo err >&2; exit 4").run();
    let shown = panic_of(|| {
        outcome.success();
    });
    for part in [
        "exit code 0",
        "exit 4",
        "COLOUR=\"blue\"",
        "0600        13 q/sessions/current.json",
        "exit status: 4",
        "stdout:\nout\n",
        "stderr:\nerr\n",
    ] {
        assert!(shown.contains(part), "{part:?} is missing in:\n{shown}");
    }
}

#[test]
fn a_failure_without_an_outcome_at_hand_shows_the_last_run_and_the_files() {
    let sandbox = Sandbox::new();
    sandbox.write_current(&stored(&["one", "two"]));
    sandbox.shell("echo first").run().success();
    sandbox.shell("echo second").run().success();
    for (name, shown) in [
        ("texts", panic_of(|| sandbox.expect_texts("current.json", &["one"]))),
        ("files", panic_of(|| sandbox.expect_no_files())),
        ("bytes", panic_of(|| sandbox.expect_bytes("current.json", "{}"))),
        ("a missing file", panic_of(|| drop(sandbox.session("other.json")))),
        // What a sandbox says when it is dropped by any other panic.
        ("its story", sandbox.story()),
    ] {
        let _case = case(name);
        for part in ["echo second", "stdout:\nsecond\n", " q/sessions/current.json"] {
            assert!(shown.contains(part), "{part:?} is missing in:\n{shown}");
        }
    }
}

#[test]
fn a_snapshot_shows_what_was_added_removed_and_changed() {
    let sandbox = Sandbox::new();
    for name in ["changed", "removed", "same"] {
        sandbox.write_home(name, name);
    }
    let before = snapshot(sandbox.home());
    before.expect_unchanged();
    sandbox.shell("echo >changed; rm removed; mkdir folder; echo >folder/added").run().success();
    assert_eq!(before.changes(), ["+ folder/", "+ folder/added", "- removed", "~ changed"]);
    let before = snapshot(sandbox.home());
    // The same bytes, written again.
    age(&sandbox.home().join("same"), HOUR);
    assert_eq!(before.changes(), ["~ same"]);
    let shown = panic_of(|| before.expect_unchanged());
    assert!(shown.contains("~ same"), "{shown}");
}

#[test]
fn a_run_that_does_not_end_is_killed() {
    let sandbox = Sandbox::new();
    let endless = sandbox.shell("echo out; cat").stdin_open();
    let shown = panic_of(|| {
        endless.guard(Duration::from_millis(300)).run();
    });
    assert!(shown.contains("did not end in time"), "{shown}");
}

#[test]
fn a_gate_holds_a_reply_back_and_a_client_that_leaves_is_noticed() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = Server::start(move |_, _| {
        let first = word("one");
        Reply::sse([first]).wait_for(&held).piece("data: [DONE]\n\n")
    });
    let mut staying = BufReader::new(send(&server, &question("{}")));
    read_until(&mut staying, "one");
    let mut leaving = BufReader::new(send(&server, &question("{}")));
    read_until(&mut leaving, "one");
    drop(leaving);
    server.wait_for_abandoned(1);
    gate.open();
    read_until(&mut staying, "[DONE]");
    let mut rest = String::new();
    staying.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
    // An open gate stays open.
    exchange(&server, &question("{}"));
    server.wait_for_requests(3);
}

#[test]
fn replies_can_break_off_in_every_way() {
    let server = Server::start(|_, number| match number {
        0 => Reply::sse(["data: half\n\n"]).cut(),
        1 => Reply::sse(["data: half\n\n"]).reset(),
        2 => Reply::json(200, json!("half")).cut(),
        3 => Reply::raw(""),
        4 => Reply::raw("").reset(),
        _ => Reply::raw("HTTP/1.0 200 OK\r\n\r\nto the end"),
    });
    let chunked = exchange(&server, &question("{}"));
    assert!(chunked.rest.ends_with("data: half\n\n\r\n"), "{}", chunked.rest);
    let mut stream = send(&server, &question("{}"));
    let error = stream.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let announced = exchange(&server, &question("{}"));
    assert!(announced.head.contains("content-length: 7"), "{}", announced.head);
    assert_eq!(announced.rest, "\"half\"");
    assert_eq!(exchange(&server, &question("{}")).head, "");
    let mut stream = send(&server, &question("{}"));
    let error = stream.read_to_end(&mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(exchange(&server, &question("{}")).rest, "to the end");
}

#[test]
fn a_dropped_server_ends_what_hangs() {
    let server = Server::start(|_, _| Reply::raw("").hang());
    let mut silent = send(&server, &question("{}"));
    let mut unfinished = send(&server, "POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\n");
    server.wait_for_requests(1);
    drop(server);
    for stream in [&mut silent, &mut unfinished] {
        let mut bytes = Vec::new();
        // A reset is an end as well: what was sent last may not have been read.
        let _ = stream.read_to_end(&mut bytes);
        assert_eq!(bytes, b"");
    }
}

#[test]
fn a_handler_that_panics_fails_the_test() {
    let server = Server::start(|_, _| panic!("expected by this test"));
    assert_eq!(exchange(&server, &question("{}")).head, "");
    let shown = panic_of(|| drop(server));
    assert_eq!(shown, "the server's handler panicked");
}

/// What a raw client got.
struct Received {
    head: String,
    rest: String,
}

fn question(body: &str) -> String {
    format!("POST / HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn exchange(server: &Server, request: &str) -> Received {
    let mut text = String::new();
    let mut stream = send(server, request);
    stream.read_to_string(&mut text).unwrap();
    let (head, rest) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    Received { head: head.to_owned(), rest: rest.to_owned() }
}

fn send(server: &Server, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(GUARD)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

fn read_until(reader: &mut impl BufRead, text: &str) {
    let mut line = String::new();
    while !line.contains(text) {
        line.clear();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "no {text:?}");
    }
}

/// The message of the panic that must come.
fn panic_of(action: impl FnOnce()) -> String {
    let panic = panic::catch_unwind(AssertUnwindSafe(action)).expect_err("no panic");
    match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => panic.downcast::<&str>().map_or_else(|_| String::new(), |message| (*message).to_owned()),
    }
}
