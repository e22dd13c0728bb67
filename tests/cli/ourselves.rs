//! Tests of the harness itself: what the other tests stand on.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::panic::{self, AssertUnwindSafe};

use crate::sandbox::Sandbox;
use crate::server::Server;
use crate::snapshot::snapshot;
use crate::times::{HOUR, age};

#[test]
fn a_program_gets_only_the_environment_of_the_sandbox() {
    let sandbox = Sandbox::new();
    let environment = sandbox.shell("/usr/bin/env -u PWD -u PATH -u _ -u SHLVL | sort");
    let expected = format!(
        "HOME={0}/home\nXDG_CONFIG_HOME={0}/config\nXDG_STATE_HOME={0}/state\n",
        sandbox.root().display()
    );
    environment.run().success().stdout(expected);
}

#[test]
fn a_snapshot_lists_files_that_were_added_removed_or_changed() {
    let sandbox = Sandbox::new();
    for name in ["changed", "removed", "same"] {
        sandbox.write_home(name, name);
    }
    let before = snapshot(sandbox.home());
    before.expect_unchanged();
    let script = "echo >changed; rm removed; mkdir directory; echo >directory/added";
    sandbox.shell(script).run().success();
    let expected = [
        "+ directory/",
        "+ directory/added",
        "- removed",
        "~ changed",
    ];
    assert_eq!(before.changes(), expected);
    let before = snapshot(sandbox.home());
    // The same bytes, written again.
    age(&sandbox.home().join("same"), HOUR);
    assert_eq!(before.changes(), ["~ same"]);
    panic::catch_unwind(AssertUnwindSafe(|| before.expect_unchanged())).expect_err("a change");
}

#[test]
fn a_handler_that_panics_fails_the_test() {
    let server = Server::start(|_, _| panic!("expected by this test"));
    let mut client = TcpStream::connect(server.address()).unwrap();
    client
        .write_all(b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}")
        .unwrap();
    assert_eq!(client.read_to_end(&mut Vec::new()).unwrap(), 0);
    panic::catch_unwind(AssertUnwindSafe(|| drop(server))).expect_err("no panic");
}
