//! Actions on conversations that need a terminal, a lock or a moment in time.

use std::fs;
use std::io::{self, Read};

use serde_json::json;

use crate::conversations::{ARCHIVED, hold_the_lock, stored, with_every_kind};
use crate::dialect::STORED_MODEL;
use crate::fixtures::{case, numbered};
use crate::machine::{fast_clock, lacks};
use crate::pty::{Terminal, WIDE};
use crate::sandbox::Sandbox;
use crate::snapshot::snapshot;

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
    let cet = "CET-1CEST,M3.5.0,M10.5.0/3";
    for (zone, first, others) in [
        ("UTC", "2026-07-31 22:30", "2026-01-02 03:04"),
        ("", "2026-07-31 22:30", "2026-01-02 03:04"),
        ("XYZ-5:45", "2026-08-01 04:15", "2026-01-02 08:49"),
        (cet, "2026-08-01 00:30", "2026-01-02 04:04"),
    ] {
        let _case = case(zone);
        let asked = sandbox.q(&["--history"]).env("TZ", zone);
        let mut heads = asked.shown_on(80).screen();
        heads.retain(|line| line.starts_with('['));
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
fn an_exchange_that_undo_could_not_drop_is_not_printed() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write_linked("current.json", ARCHIVED, &stored(&["one", "two"]));
    let before = sandbox.read_bytes(ARCHIVED);
    // Nothing can be renamed; and the backup can be written, but not the conversation, so that the backup is removed again.
    for calls in ["?rename,?renameat,?renameat2", "?rename,?renameat"] {
        let full = format!("exec strace -f -o trace -e inject={calls}:error=ENOSPC q --undo");
        let refused = sandbox.shell(&full).run();
        refused.exit(1).stdout_is_empty();
        refused.stderr_contains("q: undo failed: ");
        sandbox.expect_bytes("current.json", before.clone());
        sandbox.expect_files(&["current.json"]);
    }
}

#[test]
fn an_action_that_fails_names_the_file_or_the_directory() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let listing = "?getdents64:error=EIO";
    // The first read is that of the conversation, the last that of its copy.
    let copying = "read:error=EIO:when=5+";
    let removed = "q: the conversation was removed, but perhaps not its backups: cannot list";
    for (action, place, inject, expected) in [
        ("--list", "", listing, "q: cannot list"),
        ("--undo", "", listing, "q: undo failed: cannot list"),
        ("--undo", ARCHIVED, copying, "q: undo failed: cannot read"),
        ("--clear", "", listing, removed),
    ] {
        let _case = case((action, place));
        let sandbox = Sandbox::new();
        sandbox.write_linked("current.json", ARCHIVED, &stored(&["one", "two"]));
        let place = match place {
            "" => sandbox.sessions(),
            name => sandbox.sessions().join(name),
        };
        let place = place.display();
        let failing = format!("exec strace -f -o trace -P {place} -e inject={inject} q {action}");
        let outcome = sandbox.shell(&failing).run();
        outcome.exit(1).stdout_is_empty();
        outcome.stderr(format!("{expected} {place}: Input/output error\n"));
    }
}

#[test]
fn without_the_lock_no_conversation_is_changed_and_each_can_be_read() {
    let sandbox = Sandbox::new();
    sandbox.write_current(&stored(&["one", "two"]));
    let before = sandbox.read_bytes("current.json");
    let talk = sandbox.home().join("talk.json");
    fs::write(&talk, &before).unwrap();
    sandbox.link("away.json", talk.to_str().unwrap());
    let _lock = hold_the_lock(&sandbox);
    for action in ["--history", "--last", "--list", "--status"] {
        sandbox.q(&[action]).run().success();
    }
    let Some(clock) = fast_clock(&sandbox) else {
        return;
    };
    for args in [
        &["--undo"][..],
        &["--undo", "-j"],
        // A backup of a file elsewhere gets its name in the directory.
        &["--undo", "-s", "talk.json"],
        &["--copy", "branch"],
        &["--clear"],
        &["--clear", "-s", "away"],
        &["--clear", "--all", "--yes"],
    ] {
        let outcome = sandbox.q(args).env("LD_PRELOAD", &clock).run();
        outcome.exit(1).stderr_contains("another q holds the lock");
        outcome.stdout_lacks("one");
    }
    sandbox.expect_bytes("current.json", &before);
    assert_eq!(fs::read(talk).unwrap(), before);
    sandbox.expect_files(&["away.json", "current.json"]);
}

#[test]
fn undo_releases_the_lock_before_its_question_is_read() {
    let (_server, sandbox) = numbered();
    // More than a pipe holds.
    let long = "x".repeat(300_000);
    sandbox.write_current(&stored(&[long.as_str(), "answer", "last", "answer"]));
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
fn each_of_several_undos_at_once_drops_another_exchange() {
    let sandbox = Sandbox::new();
    let messages: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    sandbox.write_current(&stored(&messages));
    let running: Vec<_> = (0..6).map(|_| sandbox.q(&["--undo"]).spawn()).collect();
    let printed = running.into_iter().map(|run| run.wait());
    let mut printed: Vec<String> = printed.map(|run| run.success().stdout_text()).collect();
    printed.sort();
    assert_eq!(printed, ["10\n", "12\n", "14\n", "16\n", "18\n", "8\n"]);
    sandbox.expect_texts("current.json", &["0", "1", "2", "3", "4", "5", "6", "7"]);
}

#[test]
fn clear_all_asks_the_user_before_it_deletes_every_conversation() {
    for (args, typed, deletes) in [
        (&["--clear", "--all"][..], "\n", false),
        (&["--clear", "--all"], "n\n", false),
        (&["--clear", "--all"], "nonsense\n", false),
        (&["--clear", "--all"], "\x04", false),
        (&["--clear", "--all"], "y\n", true),
        (&["--clear", "--all", "-q"], "yes\n", true),
        (&["--clear", "--all", "--yes"], "", true),
    ] {
        let _case = case((args, typed));
        let sandbox = with_every_kind();
        // A backup is no conversation of its own.
        sandbox.write_session("work~1.json", &stored(&["one", "two"]));
        let before = snapshot(sandbox.sessions());
        let terminal = Terminal::new(WIDE);
        let running = sandbox.q(args).stdin_from(terminal.end());
        let running = running.stderr_to(terminal.end()).spawn();
        if typed.is_empty() {
            running.wait().exit(0).stdout("Conversations cleared: 5\n");
            assert_eq!(terminal.screen(), [""]);
            sandbox.expect_no_files();
            continue;
        }
        terminal.wait_for("q: delete all conversations (5) for good? [y/N] ", 0);
        before.expect_unchanged();
        terminal.type_in(typed);
        let outcome = running.wait();
        if deletes {
            outcome.exit(0).stdout("Conversations cleared: 5\n");
            sandbox.expect_no_files();
        } else {
            outcome.exit(1).stdout_is_empty();
            before.expect_unchanged();
            let unseen = sandbox.q(args).stdin_from(terminal.end()).run();
            unseen.exit(2).stderr_contains("error is not a terminal");
            // It begins a line, also where Ctrl-D was the answer.
            let lines = terminal.screen();
            assert!(
                lines.iter().any(|line| line == "q: nothing was deleted"),
                "{lines:?}"
            );
        }
    }
}
