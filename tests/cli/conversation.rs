//! Conversations while an answer comes: nothing is touched before it is complete.

use crate::conversations::{ARCHIVED, change_when_created, idle_for, texts};
use crate::dialect::{first_word_then_silence, held_back, in_two_parts};
use crate::fixtures::case;
use crate::sandbox::Sandbox;
use crate::server::{Gate, Server};
use crate::snapshot::snapshot;
use crate::times::HOUR;

#[test]
fn no_file_is_changed_before_the_answer_is_complete() {
    for args in [&["two"][..], &["-f", "two"], &["-s", "work", "two"]] {
        let _case = case(args);
        let gate = Gate::new();
        let server = Server::always(in_two_parts("first ", &gate, "second"));
        let sandbox = Sandbox::new().server_env(&server);
        let conversation = idle_for(HOUR, &["one", "1"]);
        sandbox.write_current(&conversation);
        sandbox.write_session("work.json", &conversation);
        let before = snapshot(sandbox.root());
        let mut running = sandbox.q(args).spawn();
        running.read_stdout_until("first ");
        before.expect_unchanged();
        gate.open();
        running.wait().success().stdout("first second\n");
        let file = if args[0] == "-s" {
            "work.json"
        } else {
            "current.json"
        };
        assert!(
            texts(&sandbox.session(file)).ends_with(&["two".to_owned(), "first second".to_owned()])
        );
    }
}

#[test]
fn an_unreadable_conversation_is_moved_aside_with_all_its_bytes() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = Server::start(move |_, number| match number {
        0 => held_back(&Gate::new(), "never").cut(),
        _ => held_back(&held, "answer"),
    });
    let sandbox = Sandbox::new().server_env(&server);
    let bytes = "{\"version\": 1, \"prov";
    sandbox.write_bytes("current.json", bytes);
    change_when_created(&sandbox.sessions().join("current.json"));

    let mut failing = sandbox.q(&["-f", "two"]).spawn();
    server.wait_for_requests(1);
    failing.signal(libc::SIGKILL);
    failing.wait();
    let asking = sandbox.q(&["-f", "two"]).spawn();
    server.wait_for_requests(2);
    gate.open();
    asking.wait().exit(0).stdout("answer\n");
    sandbox.expect_texts("current.json", &["two", "answer"]);
    sandbox.expect_bytes(&format!("{ARCHIVED}.unreadable"), bytes);
}

#[test]
fn an_interrupted_run_with_no_save_changes_no_file() {
    let server = Server::always(first_word_then_silence());
    let sandbox = Sandbox::new().server_env(&server);
    let before = snapshot(sandbox.root());
    let mut running = sandbox.q(&["--no-save", "one"]).spawn();
    running.read_stdout_until("first ");
    running.signal(libc::SIGTERM);
    running.wait().killed_by(libc::SIGTERM);
    before.expect_unchanged();
}
