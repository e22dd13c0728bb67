//! `--again`: the last question asked once more, and nothing changed until the new answer is complete.

use serde_json::json;

use crate::dialect::{
    failure, finish, first_word_then_silence, held_back, openai_reply, openai_stream, word,
};
use crate::fixtures::{
    ANTHROPIC_MODEL, ARCHIVED, EARLIER, HOUR, LARGEST, STORED_MODEL, case, idle_for, numbered,
    prompt, snapshot, stored, texts, with,
};
use crate::sandbox::Sandbox;
use crate::server::{Gate, Reply, Server};

const FENCED: &str = "<context>\nlog\n</context>\n\nwhy?";

/// A current conversation of two exchanges, the second with input.
fn talked() -> (Server, Sandbox) {
    let (server, sandbox) = numbered();
    sandbox.write_current(&stored(&["one", "two", FENCED, "four"]));
    (server, sandbox)
}

#[test]
fn the_last_question_is_asked_with_the_history_before_it_and_its_answer_replaced() {
    let (server, sandbox) = talked();
    // Without words standard input is not read.
    sandbox
        .q(&["--again"])
        .stdin_open()
        .run()
        .success()
        .stdout("answer 0\n");
    let sent = server.request();
    assert_eq!(
        prompt(&sent),
        format!("Previous conversation:\nHuman: one\n\nAssistant: two\n\nHuman: {FENCED}")
    );
    assert_eq!(sent.json()["model"], STORED_MODEL);
    sandbox.expect_texts("current.json", &["one", "two", FENCED, "answer 0"]);
    sandbox.expect_texts(EARLIER, &["one", "two", FENCED, "four"]);
}

#[test]
fn words_and_input_take_the_place_of_the_old_ones() {
    for (args, input, question) in [
        (
            &["--again", "how?"][..],
            None,
            "<context>\nlog\n</context>\n\nhow?",
        ),
        (
            &["--again", "how?"],
            Some("other\n"),
            "<context>\nother\n</context>\n\nhow?",
        ),
        (
            &["--again", "-n", "how?"],
            Some("other\n"),
            "<context>\nlog\n</context>\n\nhow?",
        ),
        (
            &["-f", "--again", "how?"],
            None,
            "<context>\nlog\n</context>\n\nhow?",
        ),
    ] {
        let _case = case((args, input));
        let (server, sandbox) = talked();
        let q = sandbox.q(args);
        input
            .into_iter()
            .fold(q, |q, input| q.stdin(input))
            .run()
            .success();
        assert!(
            prompt(&server.request()).ends_with(&format!("Human: {question}")),
            "{}",
            prompt(&server.request())
        );
        sandbox.expect_texts("current.json", &["one", "two", question, "answer 0"]);
    }
}

#[test]
fn input_that_was_the_question_stays_when_it_gets_words() {
    let (server, sandbox) = numbered();
    sandbox.q(&[]).stdin("log\n\n").run().success();
    assert_eq!(prompt(&server.last_request()), "log");
    assert_eq!(sandbox.current()["messages"][0]["input_alone"], true);
    // Asked again as it is, it is the same.
    sandbox.q(&["--again"]).stdin_open().run().success();
    assert_eq!(prompt(&server.last_request()), "log");
    sandbox.q(&["--again", "how?"]).run().success();
    assert_eq!(
        prompt(&server.last_request()),
        "<context>\nlog\n</context>\n\nhow?"
    );
    assert_eq!(sandbox.current()["messages"][0].get("input_alone"), None);
    sandbox.q(&["--again", "why?"]).run().success();
    assert_eq!(
        prompt(&server.last_request()),
        "<context>\nlog\n</context>\n\nwhy?"
    );
    // Typed words are replaced.
    sandbox.q(&["log"]).run().success();
    assert_eq!(sandbox.current()["messages"][0].get("input_alone"), None);
    sandbox.q(&["--again", "how?"]).run().success();
    assert_eq!(prompt(&server.last_request()), "how?");
}

#[test]
fn a_stronger_model_is_asked_again_and_stays() {
    let (openai, claude) = (
        Server::openai("from openai"),
        Server::anthropic("from anthropic"),
    );
    for (args, provider, model) in [
        (&["-m", "big"][..], "openai", "big"),
        (&["-p", "anthropic"], "anthropic", ANTHROPIC_MODEL),
    ] {
        let _case = case(args);
        // A variable does not count here, and neither does the age.
        let sandbox = Sandbox::new()
            .server_env(&openai)
            .anthropic_env(&claude)
            .env("Q_PROVIDER", "openai")
            .env("Q_MODEL", "x");
        sandbox.write_current(&stored(&["one", "two"]));
        sandbox.q(&["--again"]).args(args).run().success();
        for _ in 0..2 {
            let current = sandbox.current();
            for said_by in [&current, &current["messages"][1]] {
                assert_eq!(
                    (&said_by["provider"], &said_by["model"]),
                    (&json!(provider), &json!(model))
                );
            }
            assert_eq!(current["pinned"], true);
            sandbox.q(&["--again"]).run().success();
        }
    }
    openai.expect_requests(3);
    claude.expect_requests(3);
}

#[test]
fn named_conversations_files_and_ids_are_asked_again_too() {
    let (_server, sandbox) = numbered();
    sandbox.write_session("work.json", &stored(&["one", "two"]));
    sandbox.write_home("talk.json", stored(&["one", "two"]).to_string());
    sandbox.q(&["-s", "work", "--again"]).run().success();
    sandbox.expect_texts("work.json", &["one", "answer 0"]);
    sandbox
        .q(&["-s", "talk.json", "--again", "uno"])
        .run()
        .success();
    assert_eq!(
        texts(&sandbox.home_session("talk.json")),
        ["uno", "answer 1"]
    );
    let id = sandbox.q(&["-j", "first"]).run().success().stdout_json()["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    sandbox.q(&["second"]).run().success();
    assert_eq!(
        sandbox
            .q(&["-j", "-s", &id, "--again"])
            .run()
            .success()
            .stdout_json()["id"],
        id.as_str()
    );
    sandbox
        .q(&["--last", "-s", &id])
        .run()
        .success()
        .stdout("answer 4\n");
    sandbox.expect_texts("current.json", &["second", "answer 3"]);
}

#[test]
fn where_there_is_no_question_nothing_is_asked() {
    let (server, sandbox) = numbered();
    sandbox
        .q(&["--again"])
        .stdin_open()
        .run()
        .exit(1)
        .stdout_is_empty()
        .stderr("q: there is no question to ask again\n");
    sandbox.write_current(&stored::<&str>(&[]));
    sandbox.q(&["--again"]).run().exit(1).stdout_is_empty();
    sandbox
        .q(&["--again", "-s", "nobody"])
        .run()
        .exit(1)
        .stdout_is_empty()
        .stderr_contains("nobody");
    sandbox.write_bytes("current.json", "{");
    sandbox
        .q(&["--again"])
        .run()
        .exit(1)
        .stdout_is_empty()
        .stderr_contains("cannot be parsed");
    sandbox.expect_bytes("current.json", b"{");
    server.expect_requests(0);
}

#[test]
fn what_fails_or_breaks_off_leaves_the_conversation_as_it_is() {
    let broken = || Reply::sse([word("half")]).cut();
    let limit = || Reply::sse([word("half an answer"), finish("length")]);
    for (name, reply, status, kept) in [
        ("refused", failure(500, "down"), 1, None),
        ("cut", broken(), 1, Some("half")),
        ("at the limit", limit(), 3, Some("half an answer")),
    ] {
        let _case = case(name);
        let server = Server::always(reply);
        let sandbox = Sandbox::new().server_env(&server).env("Q_RETRIES", "0");
        sandbox.write_current(&stored(&["one", "two", "three", "four"]));
        let before = sandbox.read_bytes("current.json");
        let outcome = sandbox.q(&["--again", "in other words"]).run();
        outcome.exit(status);
        sandbox.expect_bytes("current.json", before);
        match kept {
            None => sandbox.expect_files(&["current.json"]),
            Some(text) => {
                outcome.stderr_contains(
                    "the new answer is incomplete: this exchange is saved on its own, in ",
                );
                sandbox.expect_texts(&sandbox.only_archived(), &["in other words", text]);
            }
        }
    }
    // The provider is down: nothing listens.
    let sandbox = Sandbox::new()
        .openai_at("http://127.0.0.1:1/v1")
        .env("OPENAI_API_KEY", "sk-12345678");
    sandbox.write_current(&stored(&["one", "two"]));
    let before = snapshot(sandbox.state());
    sandbox
        .q(&["--again", "in other words"])
        .run()
        .exit(1)
        .stdout_is_empty();
    before.expect_unchanged();
}

#[test]
fn an_answer_of_its_own_is_found_by_the_id_that_is_shown() {
    let server = Server::always(Reply::sse([word("half an answer"), finish("length")]));
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.write_session("work.json", &stored(&["one", "two"]));
    let printed = sandbox
        .q(&["-s", "work", "--again", "-j"])
        .run()
        .exit(3)
        .stdout_json();
    let id = printed["id"].as_str().expect("an id");
    sandbox
        .q(&["--last", "-s", id])
        .run()
        .exit(0)
        .stdout("half an answer\n");
    sandbox
        .q(&["--last", "-s", "work"])
        .run()
        .success()
        .stdout("two\n");
}

#[test]
fn what_a_signal_leaves_of_the_new_answer_is_in_a_conversation_of_its_own() {
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
    assert!(
        outcome.stdout_text() == "first \n" || outcome.stderr_text().is_empty(),
        "{}",
        outcome.stderr_text()
    );
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
            "the conversation has changed in the meantime: this exchange is saved on its own, in ";
        running
            .wait()
            .exit(0)
            .stdout("again\n")
            .stderr_contains(note);
        sandbox.expect_texts("current.json", kept);
        let own = sandbox
            .archived()
            .into_iter()
            .find(|name| !name.contains('~'))
            .expect("one of its own");
        sandbox.expect_texts(&own, &["one", "again"]);
    }
}

#[test]
fn an_answer_reaches_its_conversation_though_another_is_current_by_then() {
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
fn nothing_is_saved_or_kept_if_that_is_not_wanted() {
    let (server, sandbox) = talked();
    let before = snapshot(sandbox.state());
    sandbox.q(&["--again", "--no-save"]).run().success();
    before.expect_unchanged();
    let dry = sandbox
        .q(&["--again", "--dry-run"])
        .run()
        .success()
        .stdout_json();
    assert_eq!(dry, server.request().json());
    sandbox.q(&["--again"]).env("Q_KEEP", "0").run().success();
    sandbox.expect_files(&["current.json"]);
    sandbox.expect_texts("current.json", &["one", "two", FENCED, "answer 1"]);
}

#[test]
fn code_and_json_are_those_of_the_new_answer() {
    let server = Server::always(Reply::sse(openai_stream(&["Use:\n```\nls\n```\n"])));
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.write_current(&with(stored(&["one", "two"]), "system", "be brief"));
    sandbox.q(&["--again", "-x"]).run().success().stdout("ls\n");
    let printed = sandbox.q(&["--again", "-j"]).run().success().stdout_json();
    assert_eq!(printed["messages_sent"], 0);
    assert_eq!(
        server.last_request().json()["messages"][0]["content"],
        "be brief"
    );
    assert_eq!(sandbox.current()["system"], "be brief");
}

#[test]
fn a_conversation_does_not_grow_too_large_by_another_question() {
    let (_server, sandbox) = numbered();
    sandbox.write_session(
        "work.json",
        &stored(&["x".repeat(LARGEST / 2).as_str(), "two", "three", "four"]),
    );
    let before = sandbox.read_bytes("work.json");
    let long = "y".repeat(LARGEST / 2);
    let ask = sandbox
        .q(&["-s", "work", "--again", "shorter"])
        .stdin(&long)
        .env("Q_MAX_HISTORY", "0");
    let outcome = ask.run();
    outcome.exit(0).stderr_contains_all(&[
        "more than 10000000 bytes",
        "the full conversation is in ",
        "work~1.json",
    ]);
    assert_eq!(texts(&sandbox.session("work.json")).len(), 2);
    sandbox
        .q(&["--last", "-s", "work"])
        .run()
        .success()
        .stdout("answer 0\n");
    sandbox.expect_bytes("work~1.json", before);
    sandbox.expect_files(&["work.json", "work~1.json"]);
}

#[test]
fn asking_again_keeps_the_last_pairs() {
    let (_server, sandbox) = numbered();
    sandbox.write_current(&stored(&["one", "1", "two", "2", "three", "3"]));
    sandbox.q(&["--again"]).env("Q_PAIRS", "2").run().success();
    sandbox.expect_texts("current.json", &["two", "2", "three", "answer 0"]);
}
