//! Tests of the harness itself: what the other tests stand on.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::panic::{self, AssertUnwindSafe};
use std::time::Duration;

use serde_json::json;

use crate::fixtures::{HOUR, age, case, snapshot, stored};
use crate::sandbox::Sandbox;
use crate::server::Server;

#[test]
fn the_real_program_runs_with_nothing_but_what_the_sandbox_gives() {
    let sandbox = Sandbox::new();
    let outcome = sandbox.q(&["--version"]).stdin_open().run();
    outcome.success();
    let text = outcome.stdout_text();
    let version = text
        .strip_prefix("q ")
        .and_then(|rest| rest.strip_suffix('\n'));
    let numbers: Vec<_> = version.unwrap_or_default().split('.').collect();
    let right = numbers.len() == 3 && numbers.iter().all(|number| number.parse::<u32>().is_ok());
    outcome.check(right, || "expected `q X.Y.Z`".to_owned());

    let environment = sandbox.shell("/usr/bin/env -u PWD -u PATH -u _ -u SHLVL | sort");
    let expected = format!(
        "HOME={0}/home\nXDG_CONFIG_HOME={0}/config\nXDG_STATE_HOME={0}/state\n",
        sandbox.root().display()
    );
    environment.run().success().stdout(expected);
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
        (
            "texts",
            panic_of(|| sandbox.expect_texts("current.json", &["one"])),
        ),
        ("files", panic_of(|| sandbox.expect_no_files())),
        (
            "bytes",
            panic_of(|| sandbox.expect_bytes("current.json", "{}")),
        ),
        (
            "a missing file",
            panic_of(|| drop(sandbox.session("other.json"))),
        ),
        // What a sandbox says when it is dropped by any other panic.
        ("its story", sandbox.story()),
    ] {
        let _case = case(name);
        for part in [
            "echo second",
            "stdout:\nsecond\n",
            " q/sessions/current.json",
        ] {
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
    sandbox
        .shell("echo >changed; rm removed; mkdir folder; echo >folder/added")
        .run()
        .success();
    assert_eq!(
        before.changes(),
        ["+ folder/", "+ folder/added", "- removed", "~ changed"]
    );
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
fn a_handler_that_panics_fails_the_test() {
    let server = Server::start(|_, _| panic!("expected by this test"));
    let mut client = TcpStream::connect(server.address()).unwrap();
    client
        .write_all(b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}")
        .unwrap();
    assert_eq!(client.read_to_end(&mut Vec::new()).unwrap(), 0);
    let shown = panic_of(|| drop(server));
    assert_eq!(shown, "the server's handler panicked");
}

/// The message of the panic that must come.
fn panic_of(action: impl FnOnce()) -> String {
    let panic = panic::catch_unwind(AssertUnwindSafe(action)).expect_err("no panic");
    match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => panic
            .downcast::<&str>()
            .map_or_else(|_| String::new(), |message| (*message).to_owned()),
    }
}
