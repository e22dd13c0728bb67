//! `--again` where there is a signal, another q at the same time, or very much text. The rest is in the transcripts.

use crate::conversations::{ARCHIVED, EARLIER, idle_for, stored, texts};
use crate::dialect::{first_word_then_silence, held_back, openai_reply};
use crate::fixtures::{LARGEST, case, numbered};
use crate::sandbox::Sandbox;
use crate::server::{Gate, Server};
use crate::times::HOUR;

#[test]
fn an_interrupted_new_answer_is_saved_in_a_conversation_of_its_own() {
    let server = Server::always(first_word_then_silence());
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.write_current(&stored(&["one", "two"]));
    let before = sandbox.read_bytes("current.json");
    let mut running = sandbox.q(&["--again"]).spawn();
    running.read_stdout_until("first ");
    running.signal(libc::SIGTERM);
    let outcome = running.wait();
    outcome.killed_by(libc::SIGTERM);
    // A note begins a line, also where both outputs go to one place. A machine that is busy may have no time for it.
    let is_right = outcome.stdout_text() == "first \n" || outcome.stderr_text().is_empty();
    assert!(is_right, "{}", outcome.stderr_text());
    sandbox.expect_bytes("current.json", before);
    let archived = sandbox.session(&sandbox.only_archived());
    assert_eq!(texts(&archived), ["one", "first "]);
    assert_eq!(archived["messages"][1]["interrupted"], true);
}

/// A server whose first answer waits for the gate.
fn first_held_back() -> (Server, Gate) {
    let gate = Gate::new();
    let held = gate.clone();
    let server = Server::start(move |request, number| match number {
        0 => held_back(&held, "again"),
        _ => openai_reply(request, "other"),
    });
    (server, gate)
}

#[test]
fn an_answer_to_a_question_that_is_no_longer_the_last_is_saved_on_its_own() {
    for (meanwhile, kept) in [
        (&["-f", "more"][..], &["one", "two", "more", "other"][..]),
        (&["--undo"], &[]),
    ] {
        let _case = case(meanwhile);
        let (server, gate) = first_held_back();
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.write_current(&idle_for(HOUR, &["one", "two"]));
        let running = sandbox.q(&["--again"]).spawn();
        server.wait_for_requests(1);
        sandbox.q(meanwhile).run().success();
        gate.open();
        let note =
            "the conversation has changed in the meantime; saved as a separate conversation: ";
        let outcome = running.wait();
        outcome.exit(0).stdout("again\n").stderr_contains(note);
        sandbox.expect_texts("current.json", kept);
        let mut names = sandbox.archived().into_iter();
        let own = names.find(|name| !name.contains('~'));
        let own = own.expect("one of its own");
        sandbox.expect_texts(&own, &["one", "again"]);
    }
}

#[test]
fn a_new_answer_is_saved_in_its_conversation_though_another_is_current_by_then() {
    let (server, gate) = first_held_back();
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.write_current(&stored(&["zero", "0", "one", "two"]));
    let running = sandbox.q(&["--again"]).spawn();
    server.wait_for_requests(1);
    sandbox.q(&["new"]).run().success();
    gate.open();
    running.wait().success().stdout("again\n");
    sandbox.expect_texts("current.json", &["new", "other"]);
    sandbox.expect_texts(ARCHIVED, &["zero", "0", "one", "again"]);
    sandbox.expect_texts(EARLIER, &["zero", "0", "one", "two"]);
}

#[test]
fn asking_again_keeps_a_conversation_below_the_limit_and_a_backup_has_the_rest() {
    let (_server, sandbox) = numbered();
    sandbox.write_session(
        "work.json",
        &stored(&["x".repeat(LARGEST / 2).as_str(), "two", "three", "four"]),
    );
    let before = sandbox.read_bytes("work.json");
    let long = "y".repeat(LARGEST / 2);
    let ask = sandbox.q(&["-s", "work", "--again", "shorter"]);
    let ask = ask.stdin(&long).env("Q_MAX_HISTORY", "0");
    let outcome = ask.run();
    outcome.exit(0).stderr_contains_all(&[
        "more than 10 MB",
        "the full conversation is in ",
        "work~1.json",
    ]);
    assert_eq!(texts(&sandbox.session("work.json")).len(), 2);
    let ended = sandbox.q(&["--last", "-s", "work"]).run();
    ended.success().stdout("answer 0\n");
    sandbox.expect_bytes("work~1.json", before);
    sandbox.expect_files(&["work.json", "work~1.json"]);
}
