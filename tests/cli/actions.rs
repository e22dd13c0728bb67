//! What q does with conversations without asking a model: `--history`, `--last`, `--undo`, `--copy`, `--clear`.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::fixtures::{
    ACTIONS, ARCHIVED, CREATED, EARLIER, ID, LARGEST, OTHER, STORED_MODEL, case, full_device,
    hold_the_lock, lacks, numbered, prompt, snapshot, stored, with, with_every_kind,
};
use crate::pty::{Terminal, WIDE};
use crate::sandbox::{Running, Sandbox};
use crate::server::Server;

/// A sandbox with a current conversation of two exchanges.
fn with_current() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write_current(&stored(&["one", "two", "three", "four"]));
    sandbox
}

#[test]
fn no_action_needs_a_provider_a_valid_configuration_input_or_a_request() {
    let server = Server::openai("never");
    let host = server.address().to_string();
    for action in ACTIONS {
        for (config, variable, value) in [
            ("provider = 7\n[[", "Q_MESSAGES", "many"),
            ("colour = \"blue\"\n", "Q_KEEP", "some time"),
            ("", "Q_PROVIDER", "nobody"),
            ("", "OPENAI_BASE_URL", "no address"),
        ] {
            // A local server that would answer, if it were looked for.
            let sandbox = with_current()
                .env("OLLAMA_HOST", &host)
                .env(variable, value);
            sandbox.config(config);
            sandbox.write_session("work.json", &stored(&["five", "six"]));
            let _case = case((action, config, variable));
            let done = sandbox.q(action).stdin_open().run();
            done.exit(0)
                .stderr_lacks(config.lines().next().unwrap_or("config"))
                .stderr_lacks(value);
            done.check(!done.stdout.is_empty(), || {
                "expected something on stdout".to_owned()
            });
        }
    }
    server.expect_requests(0);
}

#[test]
fn each_action_reports_that_there_is_nothing_and_creates_nothing() {
    let sandbox = Sandbox::new();
    for (action, exit, stdout, says) in [
        (&["--history"][..], 0, "", "no conversation"),
        (&["--list"], 0, "", "no conversation"),
        (&["--list", "--json"], 0, "[]\n", "no conversation"),
        (&["--last"], 1, "", "no conversation"),
        (&["--undo"], 1, "", "nothing to undo"),
        (&["--clear"], 0, "Conversation cleared\n", "no conversation"),
        (
            &["--clear", "--all", "--yes"],
            0,
            "Conversations cleared: 0\n",
            "",
        ),
        (&["--history", "-s", "work"], 1, "", "work"),
        (&["--last", "-s", "work"], 1, "", "work"),
        (&["--undo", "-s", "work"], 1, "", "work"),
        (&["--clear", "-s", "work"], 1, "", "work"),
        (&["--history", "-s", "work.json"], 1, "", "work.json"),
        (&["--last", "-s", "work.json"], 1, "", "work.json"),
        (&["--undo", "-s", "work.json"], 1, "", "work.json"),
        (&["--clear", "-s", "work.json"], 1, "", "work.json"),
    ] {
        let outcome = sandbox.q(action).run();
        outcome.exit(exit).stdout(stdout).stderr_contains(says);
        outcome.check(outcome.stderr.is_empty() == says.is_empty(), || {
            "expected words or silence".to_owned()
        });
        sandbox.expect_no_files();
    }
    // The same if there are other conversations.
    sandbox.write_current(&stored(&["one", "two"]));
    for action in ["--history", "--last", "--undo", "--clear"] {
        let before = snapshot(sandbox.sessions());
        sandbox
            .q(&[action, "-s", "work"])
            .run()
            .exit(1)
            .stdout_is_empty()
            .stderr_contains("work");
        before.expect_unchanged();
    }
}

#[test]
fn a_history_shows_role_time_model_and_text_of_each_message() {
    let mut conversation = stored(&["one\ntwo\n", "t\u{e4}glich \u{1b}[1m\t3", "", "half an ans"]);
    let messages = conversation["messages"].as_array_mut().unwrap();
    messages[2].as_object_mut().unwrap().remove("timestamp");
    messages[3]["interrupted"] = json!(true);
    let expected = format!(
        "[user {CREATED}]\none\ntwo\n\n[assistant {CREATED} openai/{STORED_MODEL}]\nt\u{e4}glich \u{1b}[1m\t3\n\n[user]\n\n\n\
         [assistant {CREATED} openai/{STORED_MODEL} interrupted]\nhalf an ans\n"
    );
    let sandbox = Sandbox::new();
    sandbox.write_home("talk.json", conversation.to_string());
    for name in ["current.json", "current-tty1.json", "work.json"] {
        sandbox.write_session(name, &conversation);
    }
    let before = snapshot(sandbox.sessions());
    sandbox.q(&["--history"]).run().success().stdout(&expected);
    sandbox
        .q(&["--history"])
        .env("Q_SESSION", "tty1")
        .run()
        .success()
        .stdout(&expected);
    sandbox
        .q(&["--history", "-s", "work"])
        .run()
        .success()
        .stdout(&expected);
    sandbox
        .q(&["-s", "talk.json", "--history"])
        .run()
        .success()
        .stdout(&expected);
    before.expect_unchanged();
    sandbox.write_current(&with(stored::<&str>(&[]), "messages", json!([])));
    sandbox
        .q(&["--history"])
        .run()
        .exit(0)
        .stdout_is_empty()
        .stderr("q: the conversation has no messages\n");
}

#[test]
fn a_history_on_a_terminal_has_local_time() {
    let mut conversation = stored(&["one", "two", "three", "four"]);
    conversation["messages"][0]["timestamp"] = json!("2026-07-31T22:30:59.999Z");
    conversation["messages"][3]["provider"] = json!("work");
    conversation["messages"][3]["model"] = json!("big\u{1b}[31m");
    conversation["messages"][3]["interrupted"] = json!(true);
    let sandbox = Sandbox::new();
    sandbox.write_current(&conversation);
    // Names of zones need files that a machine may lack.
    for (zone, first, others) in [
        ("UTC", "2026-07-31 22:30", "2026-01-02 03:04"),
        ("", "2026-07-31 22:30", "2026-01-02 03:04"),
        ("XYZ-5:45", "2026-08-01 04:15", "2026-01-02 08:49"),
        (
            "CET-1CEST,M3.5.0,M10.5.0/3",
            "2026-08-01 00:30",
            "2026-01-02 04:04",
        ),
    ] {
        let _case = case(zone);
        let terminal = Terminal::new(80);
        sandbox
            .q(&["--history"])
            .env("TZ", zone)
            .stdout_to(terminal.end())
            .run()
            .success();
        let heads: Vec<String> = terminal
            .screen()
            .into_iter()
            .filter(|line| line.starts_with('['))
            .collect();
        let expected = [
            format!("[user {first}]"),
            format!("[assistant {others} openai/{STORED_MODEL}]"),
            format!("[user {others}]"),
            format!("[assistant {others} work/big^[[31m interrupted]"),
        ];
        assert_eq!(heads, expected);
    }
}

#[test]
fn advice_that_names_a_file_can_be_copied() {
    let sandbox = Sandbox::new();
    let mut conversation = stored(&["one", "```\ntwo\n```"]);
    conversation["messages"][1]["interrupted"] = json!(true);
    sandbox.write_home("my talk.json", conversation.to_string());
    let refused = sandbox.q(&["--last", "-x", "-s", "my talk.json"]).run();
    refused
        .exit(1)
        .stderr_contains("q --last -s '/")
        .stderr_contains("/my talk.json' prints");
}

#[test]
fn a_history_as_json_is_the_file_to_the_byte() {
    // As another tool may have written it.
    let text = format!(
        "\r\n{{ \"x\": 1.50, \"messages\": [\n\t{{\"content\":\"\\u00e4\",\"role\":\"user\"}} ],\n \"model\": \"m\", \
         \"provider\": \"p\", \"created\": \"{CREATED}\",\n \"updated\": \"2026-01-02T04:09:00+01:00\", \"version\": 1 }} \n\n"
    );
    let sandbox = Sandbox::new();
    sandbox.write_home("talk.json", &text);
    sandbox.write_bytes("current.json", &text);
    sandbox.write_bytes("work.json", &text);
    for arguments in [
        &["--history", "--json"][..],
        &["-j", "--history", "-s", "work"],
        &["--history", "-js", "talk.json"],
    ] {
        sandbox.q(arguments).run().success().stdout(&text);
    }
}

#[test]
fn the_last_answer_is_printed_as_it_came() {
    for (conversation, expected) in [
        (stored(&["one", "two", "three", "four"]), "four\n"),
        (stored(&["one", "four\n"]), "four\n"),
        (stored(&["one", "four\n\n"]), "four\n\n"),
        (
            stored(&["one", "\u{1b}[31m\t\u{202e}\u{e4}\r\n"]),
            "\u{1b}[31m\t\u{202e}\u{e4}\r\n",
        ),
        // The last question has no answer.
        (stored(&["one", "two", "three"]), "two\n"),
    ] {
        let _case = case(expected);
        let sandbox = Sandbox::new();
        for name in ["current.json", "work.json"] {
            sandbox.write_session(name, &conversation);
        }
        sandbox.q(&["--last"]).run().success().stdout(expected);
        sandbox
            .q(&["--last", "-s", "work"])
            .run()
            .success()
            .stdout(expected);
    }
    for texts in [&[][..], &["one"]] {
        let _case = case(texts);
        let sandbox = Sandbox::new();
        sandbox.write_current(&stored(texts));
        sandbox
            .q(&["--last"])
            .run()
            .exit(1)
            .stdout_is_empty()
            .stderr_contains("no answer");
    }
}

#[test]
fn an_interrupted_answer_is_printed_again_as_far_as_it_came() {
    let sandbox = Sandbox::new();
    let mut conversation = stored(&["one", "half an ans"]);
    conversation["messages"][1]["interrupted"] = json!(true);
    sandbox.write_current(&conversation);
    sandbox.q(&["--last"]).run().exit(0).stdout("half an ans\n");
}

#[test]
fn the_code_of_the_last_answer_is_printed_alone() {
    let sandbox = Sandbox::new();
    sandbox.write_current(&stored(&["one", "Do\n```sh\nls -l\n```\nand so on."]));
    sandbox.write_session("work.json", &stored(&["one", "No code."]));
    sandbox
        .q(&["--last", "-x"])
        .run()
        .success()
        .stdout("ls -l\n");
    sandbox
        .q(&["-x", "--last", "-s", "work"])
        .run()
        .exit(1)
        .stdout_is_empty()
        .stderr_contains("code");
}

#[test]
fn undo_drops_the_last_exchange_and_an_earlier_state_keeps_it() {
    let mut conversation = stored(&["one", "two", "three\n", "four"]);
    conversation["x-title"] = json!({"a": [1.50, null]});
    conversation["messages"][0]["x-stars"] = json!(5);
    let text = conversation.to_string();
    for (name, typed, slot) in [
        ("current.json", &["--undo"][..], ""),
        ("current-tty1.json", &["--undo"], "tty1"),
        ("work.json", &["--undo", "-s", "work"], ""),
        (ARCHIVED, &["--undo", "-s", ID], ""),
        // The earlier state of a file elsewhere is a conversation of its own.
        (
            "../../../home/talk.json",
            &["--undo", "-s", "talk.json"],
            "",
        ),
    ] {
        let _case = case(name);
        let sandbox = Sandbox::new().env("Q_SESSION", slot);
        sandbox.write_bytes(name, &text);
        // The question had a newline of its own.
        sandbox.q(typed).run().success().stdout("three\n");
        sandbox.expect_texts(name, &["one", "two"]);
        let after = sandbox.session(name);
        assert_eq!(after["messages"][0], conversation["messages"][0]);
        assert_eq!(after["x-title"], conversation["x-title"]);
        assert_eq!(
            (&after["provider"], &after["model"]),
            (&conversation["provider"], &conversation["model"])
        );
        let state = sandbox
            .all_files()
            .into_iter()
            .find(|file| file.contains('~') || name.starts_with('.'));
        let state = state.expect("an earlier state");
        assert_eq!(state.contains('~'), !name.starts_with('.'), "{state}");
        assert_eq!(sandbox.session(&state), conversation);
        sandbox
            .q(&["--last", "-s", state.trim_end_matches(".json")])
            .run()
            .success()
            .stdout("four\n");
    }
}

#[test]
fn undo_finds_the_last_exchange_of_odd_conversations() {
    let (user, assistant) = (
        json!({"role": "user", "content": "u"}),
        json!({"role": "assistant", "content": "a"}),
    );
    for (before, left) in [
        (vec![&user, &user], 1),
        (vec![&user, &assistant, &user], 2),
        (vec![&assistant, &user, &assistant], 1),
        (vec![&user], 0),
        (vec![&user, &assistant, &assistant], 0),
    ] {
        let _case = case(&before);
        let sandbox = Sandbox::new();
        let conversation = with(stored::<&str>(&[]), "messages", json!(before));
        sandbox.write_current(&conversation);
        sandbox.q(&["--undo"]).run().success().stdout("u\n");
        assert_eq!(sandbox.session(EARLIER), conversation);
        assert_eq!(sandbox.current()["messages"], json!(before[..left]));
    }
    for none in [vec![&assistant], vec![]] {
        let _case = case(&none);
        let sandbox = Sandbox::new();
        sandbox.write_current(&with(stored::<&str>(&[]), "messages", json!(none)));
        let before = snapshot(sandbox.sessions());
        sandbox
            .q(&["--undo"])
            .run()
            .exit(1)
            .stdout_is_empty()
            .stderr_contains("nothing to undo");
        before.expect_unchanged();
    }
}

#[test]
fn undo_and_follow_ask_the_last_question_again() {
    let (server, sandbox) = numbered();
    let sandbox = sandbox.env("Q_EXPIRE", "never");
    for (name, script) in [
        ("current.json", "q --undo | q -f 'in one line'"),
        ("work.json", "q --undo -s work | q -s work 'in one line'"),
    ] {
        let _case = case(script);
        let asked = server.requests().len();
        sandbox.write_session(name, &stored(&["one", "two", "three", "four"]));
        sandbox
            .shell(script)
            .run()
            .success()
            .stdout(format!("answer {asked}\n"));
        let question = "<context>\nthree\n</context>\n\nin one line";
        let sent =
            format!("Previous conversation:\nHuman: one\n\nAssistant: two\n\nHuman: {question}");
        assert_eq!(prompt(&server.requests()[asked]), sent);
        sandbox.expect_texts(name, &["one", "two", question, &format!("answer {asked}")]);

        // The same with the only question.
        sandbox.write_session(name, &stored(&["one", "two"]));
        sandbox
            .shell(script)
            .run()
            .exit(0)
            .stdout(format!("answer {}\n", asked + 1));
        assert_eq!(
            prompt(&server.requests()[asked + 1]),
            "<context>\none\n</context>\n\nin one line"
        );
    }
}

#[test]
fn a_question_that_cannot_be_printed_is_in_an_earlier_state() {
    if lacks("/dev/full", "test -e /dev/full") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write_current(&stored(&["one", "two"]));
    sandbox
        .q(&["--undo"])
        .stdout_to(full_device())
        .run()
        .exit(1)
        .stderr_contains("No space left");
    sandbox.expect_texts(&format!("{ID}~1.json"), &["one", "two"]);
}

#[test]
fn a_question_that_stays_is_not_printed() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write_linked("current.json", ARCHIVED, &stored(&["one", "two"]));
    let before = sandbox.read_bytes(ARCHIVED);
    let full =
        "exec strace -f -o trace -e inject=?rename,?renameat,?renameat2:error=ENOSPC q --undo";
    let refused = sandbox.shell(full).run();
    refused
        .exit(1)
        .stderr_contains("q: nothing was undone: ")
        .stdout_is_empty();
    sandbox.expect_bytes("current.json", before);
    sandbox.expect_files(&["current.json"]);
}

#[test]
fn without_the_lock_nothing_is_undone_or_copied_and_everything_can_be_read() {
    let sandbox = Sandbox::new();
    sandbox.write_current(&stored(&["one", "two"]));
    let before = sandbox.read_bytes("current.json");
    let _lock = hold_the_lock(&sandbox);
    for action in ["--history", "--last", "--list", "--status"] {
        sandbox.q(&[action]).run().success();
    }
    let refused = [&["--undo"][..], &["--undo", "-j"], &["--copy", "branch"]]
        .map(|args| sandbox.q(args).spawn());
    for outcome in refused.map(Running::wait) {
        outcome
            .exit(1)
            .stderr_contains("another q holds the lock")
            .stdout_lacks("one");
    }
    sandbox.expect_bytes("current.json", &before);
    sandbox.expect_files(&["current.json"]);
}

#[test]
fn undo_releases_the_lock_before_its_question_is_read() {
    let (_server, sandbox) = numbered();
    // More than a pipe holds.
    sandbox.write_current(&stored(&[
        "x".repeat(300_000).as_str(),
        "answer",
        "last",
        "answer",
    ]));
    sandbox.q(&["--undo"]).run().success();
    let (mut reader, writer) = io::pipe().unwrap();
    let undo = sandbox.q(&["--undo"]).stdout_to(writer).spawn();
    reader.read_exact(&mut [0]).unwrap();
    sandbox.q(&["another"]).run().success();
    sandbox.expect_texts("current.json", &["another", "answer 0"]);
    io::copy(&mut reader, &mut io::sink()).unwrap();
    undo.wait().success();
}

#[test]
fn of_two_undos_at_once_each_drops_an_exchange() {
    let sandbox = Sandbox::new();
    let messages: Vec<String> = (0..20).map(|number| format!("{number}")).collect();
    sandbox.write_current(&stored(
        &messages.iter().map(String::as_str).collect::<Vec<_>>(),
    ));
    let running: Vec<_> = (0..6).map(|_| sandbox.q(&["--undo"]).spawn()).collect();
    let mut printed: Vec<String> = running
        .into_iter()
        .map(|run| run.wait().success().stdout_text())
        .collect();
    printed.sort();
    assert_eq!(printed, ["10\n", "12\n", "14\n", "16\n", "18\n", "8\n"]);
    sandbox.expect_texts("current.json", &["0", "1", "2", "3", "4", "5", "6", "7"]);
}

#[test]
fn a_broken_link_to_the_folder_is_an_error() {
    for link in ["q", "q/sessions"] {
        let _case = case(link);
        let sandbox = Sandbox::new();
        sandbox.write_current(&stored(&["one", "two"]));
        let path = sandbox.sessions().parent().unwrap().with_file_name(link);
        let away = sandbox.root().join("away");
        fs::rename(&path, &away).unwrap();
        symlink(sandbox.root().join("unmounted"), &path).unwrap();
        let actions = [
            &["--history"][..],
            &["--last"],
            &["--undo"],
            &["--list"],
            &["--clear"],
            &["--clear", "--all", "--yes"],
        ];
        for action in actions {
            let _case = case(action);
            let outcome = sandbox.q(action).run();
            outcome
                .exit(1)
                .stdout_is_empty()
                .stderr_contains("is a link to something that does not exist");
        }
    }
}

#[test]
fn clear_deletes_one_and_mentions_the_others() {
    for (typed, slot, gone) in [
        (&["--clear"][..], "", "current.json"),
        (&["--clear"], "tty1", "current-tty1.json"),
        (&["--clear", "-s", "work"], "", "work.json"),
        (&["--clear", "-s", "session_20260115000000000"], "", OTHER),
        (&["--clear", "-s", "talk.json"], "", "talk.json"),
    ] {
        let _case = case((typed, slot));
        let sandbox = with_every_kind().env("Q_SESSION", slot);
        sandbox.write_home("talk.json", stored(&["one", "two"]).to_string());
        let before = [snapshot(sandbox.sessions()), snapshot(sandbox.home())];
        let cleared = sandbox.q(typed).run();
        cleared
            .exit(0)
            .stdout("Conversation cleared\n")
            .stderr_contains("q --list")
            .stderr_contains("--clear --all");
        assert_eq!(
            before.map(|folder| folder.changes()).concat(),
            [format!("- {gone}")]
        );
    }
}

#[test]
fn clear_is_silent_if_nothing_else_is_kept_and_deletes_unreadable_files() {
    for text in [
        stored(&["one", "two"]).to_string(),
        String::new(),
        "{".to_owned(),
    ] {
        let _case = case(&text);
        let sandbox = Sandbox::new();
        sandbox.write_bytes("current.json", &text);
        sandbox
            .q(&["--clear"])
            .run()
            .success()
            .stdout("Conversation cleared\n");
        sandbox.expect_no_files();
    }
}

#[test]
fn clear_all_deletes_every_conversation_and_nothing_else() {
    let sandbox = with_every_kind();
    for name in ["broken.json", "session_20250101000000.json.unreadable"] {
        sandbox.write_bytes(name, "hello");
    }
    // What killed runs have left.
    for name in [".tmp", ".tmp-4711"] {
        sandbox.write_bytes(name, "half");
    }
    for name in ["notes.txt", "work.json.bak", ".own.json"] {
        sandbox.write_bytes(name, "foreign");
    }
    // It goes, too, but leads to no conversation.
    sandbox.link("gone.json", "nowhere.json");
    sandbox.write_home("talk.json", stored(&["one", "two"]).to_string());
    let before = snapshot(sandbox.home());
    sandbox
        .q(&["--clear", "--all", "--yes"])
        .run()
        .success()
        .stdout("Conversations cleared: 7\n");
    sandbox.expect_files(&[".own.json", "notes.txt", "work.json.bak"]);
    before.expect_unchanged();
    sandbox
        .q(&["--clear", "--all", "--yes"])
        .run()
        .success()
        .stdout("Conversations cleared: 0\n");
}

#[test]
fn a_person_is_asked_before_every_conversation_is_deleted() {
    for (args, typed, deletes) in [
        (&["--clear", "--all"][..], "\n", false),
        (&["--clear", "--all"], "n\n", false),
        (&["--clear", "--all"], "nonsense\n", false),
        (&["--clear", "--all"], "y\n", true),
        (&["--clear", "--all", "-q"], "yes\n", true),
        (&["--clear", "--all", "--yes"], "", true),
    ] {
        let _case = case((args, typed));
        let sandbox = with_every_kind();
        // An earlier state is no conversation of its own.
        sandbox.write_session("work~1.json", &stored(&["one", "two"]));
        let before = snapshot(sandbox.sessions());
        let terminal = Terminal::new(WIDE);
        let running = sandbox
            .q(args)
            .stdin_from(terminal.end())
            .stderr_to(terminal.end())
            .spawn();
        if typed.is_empty() {
            running.wait().exit(0).stdout("Conversations cleared: 5\n");
            assert_eq!(terminal.screen(), [""]);
            sandbox.expect_no_files();
            continue;
        }
        terminal.wait_for("q: delete all 5 conversations for good? [y/N] ", 0);
        before.expect_unchanged();
        terminal.type_in(typed);
        let outcome = running.wait();
        if deletes {
            outcome.exit(0).stdout("Conversations cleared: 5\n");
            sandbox.expect_no_files();
        } else {
            outcome.exit(1).stdout_is_empty();
            before.expect_unchanged();
        }
    }
}

#[test]
fn where_nobody_can_be_asked_every_conversation_is_deleted_only_with_yes() {
    let nothing_there = Sandbox::new();
    for sandbox in [with_every_kind(), nothing_there] {
        for args in [&["--clear", "--all"][..], &["--clear", "--all", "-q"]] {
            let before = snapshot(sandbox.sessions());
            // A yes in a pipe is not a person's.
            let refused = sandbox.q(args).stdin("y\n").run();
            refused.refused(&[
                "standard input is not a terminal",
                "nothing was deleted",
                "--yes",
            ]);
            before.expect_unchanged();
        }
        let printed = sandbox
            .q(&["--clear", "--all", "-j"])
            .run()
            .exit(2)
            .stdout_json();
        assert!(
            printed["error"]["message"]
                .as_str()
                .expect("a message")
                .contains("nothing was deleted")
        );
    }
}

#[test]
fn actions_report_as_json_what_they_show_or_have_done() {
    let sandbox = with_current();
    let printed = |args: &[&str]| sandbox.q(args).run().exit(0).stdout_json();
    let expected = json!({
        "id": ID, "provider": "openai", "model": STORED_MODEL, "answer": "four", "finish": "stop", "interrupted": false,
    });
    assert_eq!(printed(&["--last", "-j"]), expected);
    assert_eq!(printed(&["--copy", "work", "-j"]), json!({"id": "work"}));
    assert_eq!(
        printed(&["--undo", "-j"]),
        json!({"id": ID, "question": "three"})
    );
    assert_eq!(printed(&["--clear", "-j"]), json!({"cleared": 1}));
    let none = sandbox.q(&["--clear", "-j"]).run();
    assert_eq!(none.stdout_json(), json!({"cleared": 0}));
    none.exit(0).stderr_contains_all(&[
        "there was no conversation",
        "other conversations kept: 1; q --list",
    ]);
    let mut odd = stored(&["one", "```\nls\n```\nmore"]);
    let answer = &mut odd["messages"][1];
    (answer["finish"], answer["provider"], answer["model"]) =
        (json!("length"), json!("groq"), json!("big"));
    sandbox.write_session("odd.json", &odd);
    let last = printed(&["--last", "-j", "-s", "odd"]);
    assert_eq!(
        (&last["finish"], &last["provider"], &last["model"]),
        (&json!("length"), &json!("groq"), &json!("big"))
    );
    odd["messages"][1]["interrupted"] = json!(true);
    odd["messages"][1]["finish"] = json!(null);
    sandbox.write_session("odd.json", &odd);
    let broken_off = printed(&["--last", "-j", "-s", "odd"]);
    assert_eq!(
        (&broken_off["interrupted"], &broken_off["finish"]),
        (&json!(true), &json!(null))
    );
    odd["messages"][1]["interrupted"] = json!(false);
    sandbox.write_session("odd.json", &odd);
    assert_eq!(printed(&["--last", "-xj", "-s", "odd"])["answer"], "ls\n");
    assert_eq!(printed(&["--clear", "--all", "--yes", "-j"])["cleared"], 2);
    let nothing = sandbox.q(&["--last", "-j"]).run();
    assert_eq!(
        nothing.exit(1).stdout_json()["error"]["message"],
        "there is no conversation"
    );
}

#[test]
fn a_copy_has_all_that_the_original_has_and_a_life_of_its_own() {
    let (server, sandbox) = numbered();
    let sandbox = sandbox.env("Q_EXPIRE", "never");
    let original = with(
        with(
            stored(&["one", "two", "three", "four"]),
            "system",
            "be brief",
        ),
        "x-mine",
        7,
    );
    sandbox.write_current(&original);
    let before = sandbox.read_bytes("current.json");
    sandbox
        .q(&["--copy", "branch"])
        .run()
        .success()
        .stdout("Conversation copied to branch\n");
    sandbox.expect_bytes("current.json", before);
    let copy = sandbox.session("branch.json");
    assert_ne!(copy["created"], original["created"]);
    assert_eq!(with(copy, "created", CREATED), original);
    // After an undo, each continues by itself.
    sandbox
        .q(&["--undo", "-s", "branch"])
        .run()
        .success()
        .stdout("three\n");
    sandbox.q(&["-s", "branch", "instead"]).run().success();
    sandbox.q(&["-f", "more"]).run().success();
    assert!(prompt(&server.requests()[0]).contains("two\n\nHuman: instead"));
    sandbox.expect_texts("branch.json", &["one", "two", "instead", "answer 0"]);
    sandbox.expect_texts(
        "current.json",
        &["one", "two", "three", "four", "more", "answer 1"],
    );
    // A named conversation can be copied, and a copy can be a file.
    sandbox
        .q(&["-s", "branch", "--copy", "talk.json"])
        .run()
        .success();
    assert_eq!(
        sandbox.home_session("talk.json")["messages"],
        sandbox.session("branch.json")["messages"]
    );
}

#[test]
fn a_copy_overwrites_nothing_and_has_a_name_that_a_user_may_give() {
    let sandbox = with_current();
    sandbox.write_session("work.json", &stored(&["five", "six"]));
    sandbox.write_home("talk.json", "mine");
    let before = snapshot(sandbox.sessions());
    for name in ["work", "talk.json"] {
        sandbox
            .q(&["--copy", name])
            .run()
            .exit(1)
            .stdout_is_empty()
            .stderr_contains_all(&[name, "new"]);
    }
    for name in [
        "session_20260102030405",
        "session_20260102030405678",
        "current",
        "a/b",
        "",
    ] {
        sandbox.q(&["--copy", name]).run().exit(2).stdout_is_empty();
    }
    sandbox
        .q(&["--copy", "new", "-s", "nobody"])
        .run()
        .exit(1)
        .stdout_is_empty()
        .stderr_contains("nobody");
    assert_eq!(snapshot(sandbox.sessions()).contents(), before.contents());
    assert_eq!(
        fs::read_to_string(sandbox.home().join("talk.json")).unwrap(),
        "mine"
    );
    Sandbox::new()
        .q(&["--copy", "new"])
        .run()
        .exit(1)
        .stdout_is_empty()
        .stderr_contains("no conversation");
}

#[test]
fn a_copy_that_would_be_too_large_to_read_is_refused() {
    let sandbox = Sandbox::new();
    // q writes more bytes than another program, which leaves out line ends.
    let short = stored(&["", "two"]).to_string();
    let text = "x".repeat(LARGEST - short.len());
    sandbox.write_bytes("work.json", stored(&[text.as_str(), "two"]).to_string());
    sandbox.q(&["--last", "-s", "work"]).run().success();
    sandbox
        .q(&["--copy", "new", "-s", "work"])
        .run()
        .exit(1)
        .stdout_is_empty()
        .stderr_contains("10000000 bytes");
    sandbox.expect_files(&["work.json"]);
}
