//! State that cannot be read or changed: every action reports that, and none treats it as missing.

use std::os::unix::fs::chown;

use serde_json::json;

use crate::fixtures::{ACTIONS, ARCHIVED, CREATED, ID, case, mode, set_mode, snapshot, stored};
use crate::sandbox::{API_KEY, Sandbox};
use crate::server::Server;

/// The actions that change something in the folder of the conversations and do not correct its mode first.
const CHANGES: &[&[&str]] = &[
    &["--undo"],
    &["--undo", "--json"],
    &["--clear"],
    &["--clear", "--json"],
    &["--clear", "-s", "work"],
    &["--clear", "--all", "--yes"],
];

/// The actions that must read a conversation. Deleting one needs no right to read it.
const READS: &[&[&str]] = &[
    &["--history"],
    &["--last"],
    &["--last", "--json"],
    &["--list"],
    &["--list", "--json"],
    &["--list", "one"],
    &["--copy", "branch"],
    &["--undo"],
    &["--undo", "--json"],
];

/// What is wrong with a file or folder below `q`.
#[derive(Clone, Copy)]
enum Closed {
    Mode(u32),
    /// As after a run under sudo.
    AnotherOwner,
}

#[test]
fn an_action_on_state_that_cannot_be_used_is_an_error_with_its_cause() {
    // SAFETY: the call has no conditions and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    for (what, path, closed, actions) in [
        (
            "sessions without any right",
            "sessions",
            Closed::Mode(0o000),
            ACTIONS,
        ),
        (
            "sessions that cannot be entered",
            "sessions",
            Closed::Mode(0o600),
            ACTIONS,
        ),
        (
            "sessions that cannot be changed",
            "sessions",
            Closed::Mode(0o500),
            CHANGES,
        ),
        (
            "sessions that cannot be listed",
            "sessions",
            Closed::Mode(0o300),
            CHANGES,
        ),
        (
            "a list of sessions that cannot be listed",
            "sessions",
            Closed::Mode(0o300),
            &[&["--list"]],
        ),
        (
            "a state folder without any right",
            "",
            Closed::Mode(0o000),
            ACTIONS,
        ),
        (
            "a state folder that cannot be entered",
            "",
            Closed::Mode(0o600),
            ACTIONS,
        ),
        (
            "a conversation without any right",
            "sessions/current.json",
            Closed::Mode(0o000),
            READS,
        ),
        (
            "sessions of another owner",
            "sessions",
            Closed::AnotherOwner,
            ACTIONS,
        ),
        (
            "a state folder of another owner",
            "",
            Closed::AnotherOwner,
            ACTIONS,
        ),
        (
            "a conversation of another owner",
            "sessions/current.json",
            Closed::AnotherOwner,
            READS,
        ),
    ] {
        for action in actions {
            let _case = case((what, action));
            let sandbox = Sandbox::new();
            sandbox.write_current(&stored(&["one", "two"]));
            sandbox.write_bytes("work.json", stored(&["three", "four"]).to_string());
            let before = snapshot(sandbox.sessions());
            let path = sandbox.state().join("q").join(path);
            let mode = mode(&path);
            match closed {
                Closed::Mode(mode) => set_mode(&path, mode),
                Closed::AnotherOwner if root => chown(&path, Some(65_534), Some(65_534)).unwrap(),
                // Only root can give a file away.
                Closed::AnotherOwner => continue,
            }
            let refused = sandbox.q(action).obeying_modes().stdin_open().run();
            set_mode(&path, mode);
            let lacks = |text: &str| !refused.stderr_text().contains(text);
            let is_folder = path.is_dir() && matches!(closed, Closed::AnotherOwner);
            refused
                .exit(1)
                .stdout_lacks("leared")
                .stderr_lacks("failed to")
                .stderr_contains(if is_folder {
                    "belongs to another user; sudo chown "
                } else {
                    "ermission denied"
                })
                .check(lacks("there is no") && lacks("nothing to"), || {
                    "it is there".to_owned()
                });
            before.expect_unchanged();
        }
    }
}

#[test]
fn an_id_whose_file_cannot_be_read_is_not_reported_as_unknown() {
    // To find an id of 0.2.0, q reads the files that may have it.
    for (name, id) in [
        (ARCHIVED, ID),
        ("session_20260102030405.json", ID),
        ("current.json", ID),
    ] {
        for action in [
            &["--history"][..],
            &["--last"],
            &["--undo"],
            &["--copy", "branch"],
            &["--again"],
            &["more"],
        ] {
            let _case = case((name, action));
            let sandbox = Sandbox::new().env("OPENAI_API_KEY", API_KEY);
            sandbox.write_session(name, &stored(&["one", "two"]));
            let file = sandbox.sessions().join(name);
            set_mode(&file, 0o000);
            let refused = sandbox.q(action).args(&["-s", id]).obeying_modes();
            let refused = match action {
                ["more"] => sandbox
                    .q(&["-s", id, "more"])
                    .env("OPENAI_API_KEY", API_KEY)
                    .obeying_modes()
                    .run(),
                _ => refused.run(),
            };
            refused
                .stderr_contains_all(&[name, "ermission denied"])
                .stderr_lacks("there is no");
            assert!(
                matches!(refused.status.code(), Some(1 | 2)),
                "{}",
                refused.status
            );
        }
    }
}

#[test]
fn nothing_is_asked_again_of_a_conversation_that_cannot_be_read() {
    let server = Server::openai("never");
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.write_current(&stored(&["one", "two"]));
    set_mode(&sandbox.sessions().join("current.json"), 0o000);
    let refused = sandbox.q(&["--again"]).stdin_open().obeying_modes().run();
    refused
        .exit(1)
        .stdout_is_empty()
        .stderr_contains_all(&["current.json", "ermission denied"]);
    server.expect_requests(0);
}

#[test]
fn a_conversation_that_cannot_be_read_is_left_where_it_is() {
    let server = Server::openai("answer");
    for (linked, args) in [
        (true, &["-f", "more"][..]),
        (true, &["new"]),
        (false, &["-f", "more"]),
        (false, &["new"]),
    ] {
        let _case = case((linked, args));
        let sandbox = Sandbox::new().server_env(&server);
        match linked {
            true => sandbox.write_linked("current.json", ARCHIVED, &stored(&["one", "two"])),
            false => sandbox.write_current(&stored(&["one", "two"])),
        }
        let name = if linked { ARCHIVED } else { "current.json" };
        let file = sandbox.sessions().join(name);
        set_mode(&file, 0o000);
        let outcome = sandbox.q(args).obeying_modes().run();
        outcome.exit(0).stdout("answer\n");
        outcome.check(
            outcome.stderr.is_empty() == (linked && args == ["new"]),
            || "expected a note".to_owned(),
        );
        set_mode(&file, 0o600);
        sandbox.expect_texts(name, &["one", "two"]);
    }
}

#[test]
fn the_status_says_that_conversations_cannot_be_counted() {
    let sandbox = Sandbox::new();
    sandbox.write_current(&stored(&["one", "two"]));
    for mode in [0o000, 0o600] {
        let _case = case(mode);
        set_mode(&sandbox.sessions(), mode);
        let text = sandbox.q(&["--status"]).obeying_modes().run();
        let printed = sandbox.q(&["--status", "--json"]).obeying_modes().run();
        set_mode(&sandbox.sessions(), 0o700);
        let line = text
            .stdout_text()
            .lines()
            .find(|line| line.starts_with("conversations "))
            .map(str::to_owned);
        let says =
            line.is_some_and(|line| line.contains("sessions") && line.contains("ermission denied"));
        text.success()
            .check(says, || "expected the cause".to_owned());
        let printed = printed.success().stdout_json();
        assert_eq!(
            (&printed["kept"], &printed["bytes"]),
            (&json!(null), &json!(null))
        );
        assert!(
            printed["sessions_error"]
                .as_str()
                .is_some_and(|error| error.contains("ermission denied")),
            "{printed}"
        );
    }
}

#[test]
fn a_list_shows_what_it_can_and_fails_for_what_it_cannot_read() {
    let sandbox = Sandbox::new();
    sandbox.write_current(&stored(&["one", "two"]));
    sandbox.write_bytes("work.json", stored(&["three", "four"]).to_string());
    set_mode(&sandbox.sessions().join("work.json"), 0o000);
    let listed = sandbox.q(&["--list"]).obeying_modes().run();
    listed
        .exit(1)
        .stdout_contains("one")
        .stdout_lacks("three")
        .stderr_contains("work.json");
    let listed = sandbox.q(&["--list", "--json"]).obeying_modes().run();
    listed.exit(1).stderr_contains("work.json");
    listed.check(listed.stdout_json().get("error").is_some(), || {
        "expected one JSON, the error".to_owned()
    });
}

#[test]
fn nothing_is_cleared_in_a_folder_that_cannot_be_locked() {
    let sandbox = Sandbox::new();
    sandbox.write_current(&stored(&["one", "two"]));
    set_mode(&sandbox.sessions(), 0o300);
    let cleared = sandbox.q(&["--clear"]).obeying_modes().run();
    set_mode(&sandbox.sessions(), 0o700);
    cleared
        .exit(1)
        .stdout_is_empty()
        .stderr_contains("ermission denied");
    sandbox.expect_texts("current.json", &["one", "two"]);
}

#[test]
fn a_message_that_cannot_be_read_makes_the_whole_file_unusable_and_none_is_skipped() {
    let server = Server::openai("answer");
    for odd in [
        r#"{"role":"user","content":"three","content":"tres"}"#,
        r#"{"role":"assistant","content":"three","steps":[{"calls":7}]}"#,
    ] {
        let _case = case(odd);
        let whole = stored(&["one", "two", "three", "four", "five", "six"]).to_string();
        let third = json!({"role": "user", "content": "three", "timestamp": CREATED}).to_string();
        let file = whole.replace(&third, odd);
        assert_ne!(file, whole);
        let sandbox = Sandbox::new().server_env(&server).env("Q_EXPIRE", "never");
        sandbox.write_bytes("current.json", &file);
        sandbox.write_bytes("work.json", &file);
        for action in ["--history", "--last", "--undo"] {
            for named in [&[][..], &["-s", "work"]] {
                let refused = sandbox.q(&[action]).args(named).run();
                refused
                    .exit(1)
                    .stdout_is_empty()
                    .stderr_contains(".json: it cannot be parsed (")
                    .explains();
            }
        }
        for name in ["current.json", "work.json"] {
            sandbox.expect_bytes(name, &file);
        }
        sandbox
            .q(&["-s", "work", "more"])
            .run()
            .exit(2)
            .stderr_contains("cannot be parsed");
        sandbox
            .q(&["-f", "more"])
            .run()
            .exit(0)
            .stderr_contains("cannot be parsed");
        let kept = sandbox.only_archived();
        assert!(kept.ends_with(".unreadable"), "{kept}");
        sandbox.expect_bytes(&kept, &file);
    }
}
