//! `current.json` is a link to the conversation that `-f` continues: which one, when it moves, and what else may be there.

use std::fs;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::fixtures::{
    ARCHIVED, CREATED, DAY, EARLIER, HOUR, ID, MINUTE, OTHER, age, another_day, case,
    change_when_created, hold_the_lock, id_of, idle_for, lacks, lock_folder, mode, numbered, other,
    prompt, set_mode, snapshot, stored, texts, wait_until, with,
};
use crate::sandbox::Sandbox;
use crate::server::Server;

/// The file of the next id after that of `stored`.
const COUNTED_UP: &str = "session_20260102030405679.json";

/// A sandbox in which nothing is too old.
fn lasting() -> (Server, Sandbox) {
    let (server, sandbox) = numbered();
    (server, sandbox.env("Q_EXPIRE", "never"))
}

fn changed(sandbox: &Sandbox, name: &str) -> SystemTime {
    let metadata = fs::metadata(sandbox.sessions().join(name)).expect("a conversation");
    metadata.modified().expect("when it was changed")
}

#[test]
fn a_conversation_keeps_its_file_and_its_id_and_the_link_moves() {
    for (slot, link) in [("", "current.json"), ("tty1", "current-tty1.json")] {
        let _case = case(link);
        let (_server, sandbox) = lasting();
        let sandbox = sandbox.env("Q_SESSION", slot);
        let id = sandbox.q(&["-j", "one"]).run().success().stdout_json()["id"]
            .as_str()
            .expect("an id")
            .to_owned();
        assert_eq!(
            (id.len(), &id),
            (
                "session_20261121100000000".len(),
                &id_of(&sandbox.session(link))
            )
        );
        let file = format!("{id}.json");
        for args in [
            &["-f", "two"][..],
            &["-f", "-m", "big", "-s", &id, "three"],
            &["--again"],
            &["--undo"],
        ] {
            sandbox.q(args).run().success();
            // Relative, so that the folder can be moved.
            assert_eq!(
                sandbox.target(link).as_deref(),
                Some(file.as_str()),
                "{args:?}"
            );
            assert_eq!(id_of(&sandbox.session(link)), id);
        }
        let before = sandbox.read_bytes(&file);
        age(&sandbox.sessions().join(&file), 2 * DAY);
        sandbox.q(&["new"]).run().success();
        sandbox.expect_bytes(&file, before);
        let new = sandbox.target(link).expect("a link");
        assert!(
            new != file && changed(&sandbox, &new) >= changed(&sandbox, &file),
            "{new}"
        );
        assert!(
            changed(&sandbox, &file) > SystemTime::now() - HOUR,
            "its days begin now"
        );
    }
}

#[test]
fn a_file_in_place_of_a_link_that_has_the_name_of_its_id_becomes_the_link() {
    // This one was given its name by a q that was killed before it made the link; upgrade.rs has those with one name.
    for (args, kept, current) in [
        (
            &["new"][..],
            &["one", "two", "three", "four"][..],
            &["new", "answer 0"][..],
        ),
        (
            &["-f", "more"],
            &["one", "two", "three", "four", "more", "answer 0"],
            &[],
        ),
        (
            &["-s", ID, "more"],
            &["one", "two", "three", "four", "more", "answer 0"],
            &[],
        ),
        (&["--again"], &["one", "two", "three", "answer 0"], &[]),
        (&["--undo"], &["one", "two"], &[]),
    ] {
        for (slot, name) in [("", "current.json"), ("tty1", "current-tty1.json")] {
            let _case = case((args, name));
            let (_server, sandbox) = lasting();
            let sandbox = sandbox.env("Q_SESSION", slot);
            sandbox.write_session(name, &stored(&["one", "two", "three", "four"]));
            let link = sandbox.sessions().join(name);
            fs::hard_link(&link, sandbox.sessions().join(ARCHIVED)).expect("a second name");
            set_mode(&link, 0o644);
            sandbox.q(args).run().success();
            sandbox.expect_texts(ARCHIVED, kept);
            sandbox.expect_texts(name, if current.is_empty() { kept } else { current });
            assert_eq!(
                sandbox.target(name).expect("a link") == ARCHIVED,
                current.is_empty()
            );
            assert_eq!(sandbox.session(ARCHIVED)["created"], CREATED);
            if args != ["new"] {
                assert_eq!(mode(&link), 0o600);
            }
        }
    }
}

#[test]
fn nothing_is_lost_or_kept_twice_if_the_file_of_its_id_exists() {
    let file = &["one", "two", "three", "four"];
    for (what, there, kept) in [
        ("what it was before", &["one", "two"][..], &[ARCHIVED][..]),
        ("the same", file, &[ARCHIVED]),
        ("another one", &["eins", "two"], &[ARCHIVED, COUNTED_UP]),
        (
            "more of it",
            &["one", "two", "three", "four", "five", "six"],
            &[ARCHIVED, COUNTED_UP],
        ),
    ] {
        for args in [&["new"][..], &["-f", "more"]] {
            let _case = case((what, args));
            let (_server, sandbox) = lasting();
            sandbox.write_session(ARCHIVED, &stored(there));
            sandbox.write_current(&stored(file));
            sandbox.q(args).run().success();
            let more = ["more", "answer 0"];
            let end = if args == ["new"] { &[][..] } else { &more };
            sandbox.expect_texts(kept[kept.len() - 1], &[file, end].concat());
            if kept.len() == 2 {
                sandbox.expect_texts(ARCHIVED, there);
                assert_eq!(
                    sandbox.session(COUNTED_UP)["created"],
                    "2026-01-02T03:04:05.679Z"
                );
            }
            let new = usize::from(args == ["new"]);
            assert_eq!(
                sandbox.all_files().len(),
                kept.len() + 1 + new,
                "{:?}",
                sandbox.all_files()
            );
        }
    }
}

#[test]
fn an_id_is_in_utc_and_one_that_cannot_be_parsed_has_the_time_of_its_file() {
    let (_server, sandbox) = lasting();
    sandbox.write_current(&with(
        stored(&["one", "two"]),
        "created",
        "2026-01-02T05:04:05.678+02:00",
    ));
    sandbox.q(&["-f", "more"]).run().success();
    assert_eq!(sandbox.current_id(), ID);
    for (bytes, file) in [("half 1", ARCHIVED), ("half 2", COUNTED_UP)] {
        sandbox.write_bytes("current.json", bytes);
        change_when_created(&sandbox.sessions().join("current.json"));
        sandbox.q(&["new"]).run().exit(0).stdout_contains("answer");
        sandbox.expect_bytes(&format!("{file}.unreadable"), bytes);
    }
}

#[test]
fn a_conversation_that_the_link_leads_to_stays_under_its_id_whatever_is_wrong_with_it() {
    for bytes in ["{", "[]", "{\"version\": 2}"] {
        for args in [&["new"][..], &["-f", "new"]] {
            let _case = case((bytes, args));
            let (_server, sandbox) = lasting();
            sandbox.write_bytes(ARCHIVED, bytes);
            sandbox.link("current.json", ARCHIVED);
            sandbox.q(args).run().exit(0).stdout("answer 0\n");
            sandbox.expect_bytes(ARCHIVED, bytes);
            sandbox.expect_texts("current.json", &["new", "answer 0"]);
        }
    }
}

/// The targets of links that a user has made.
const OWN: [&str; 3] = ["../../../home/talk.json", "work.json", "ABSOLUTE"];

/// A sandbox whose `current.json` is such a link, to a conversation of two exchanges.
fn with_own_link(target: &str) -> (Server, Sandbox, String) {
    let (server, sandbox) = lasting();
    let path = sandbox.home().join("talk.json");
    let target = if target == "ABSOLUTE" {
        path.to_str().expect("a path").to_owned()
    } else {
        target.to_owned()
    };
    sandbox.link("current.json", &target);
    sandbox.write_bytes(
        &target,
        with(stored(&["one", "two", "three", "four"]), "x", 1).to_string(),
    );
    set_mode(&sandbox.sessions().join(&target), 0o640);
    (server, sandbox, target)
}

#[test]
fn a_file_elsewhere_that_the_link_leads_to_is_continued_and_never_trimmed_or_removed() {
    for target in OWN {
        let _case = case(target);
        let (server, sandbox, target) = with_own_link(target);
        let sandbox = sandbox.env("Q_PAIRS", "1").env("Q_KEEP", "0");
        sandbox.q(&["-f", "more"]).run().success();
        assert!(prompt(&server.request()).contains("Human: one"));
        sandbox.expect_texts(
            "current.json",
            &["one", "two", "three", "four", "more", "answer 0"],
        );
        sandbox.q(&["--again", "other"]).run().success();
        sandbox.q(&["--undo"]).run().success().stdout("other\n");
        sandbox.expect_texts("current.json", &["one", "two", "three", "four"]);
        assert_eq!(sandbox.target("current.json"), Some(target.clone()));
        let file = sandbox.sessions().join(&target);
        assert_eq!(sandbox.current()["x"], 1);
        assert!(
            mode(&file) == 0o640 || target == "work.json",
            "{:o}",
            mode(&file)
        );
        // A new question moves the link and changes nothing else.
        age(&file, 40 * DAY);
        let before = [snapshot(sandbox.home()), snapshot(sandbox.sessions())];
        sandbox.q(&["new"]).run().success();
        let changes = before.map(|folder| folder.changes()).concat();
        let id = sandbox.current_id();
        assert_eq!(
            changes,
            [format!("+ {id}.json"), "~ current.json".to_owned()]
        );
    }
}

#[test]
fn an_earlier_state_of_a_file_elsewhere_is_a_conversation_of_its_own() {
    for target in ["../../../home/talk.json", "ABSOLUTE"] {
        for args in [&["--undo"][..], &["--again"]] {
            let _case = case((target, args));
            let (_server, sandbox, _) = with_own_link(target);
            let before = sandbox.current();
            sandbox.q(args).run().success();
            let own = sandbox.only_archived();
            assert!(!own.contains('~'), "{own}");
            assert_eq!(sandbox.session(&own), before);
            sandbox
                .q(&["-s", own.trim_end_matches(".json"), "--last"])
                .run()
                .success()
                .stdout("four\n");
        }
    }
}

#[test]
fn clearing_removes_no_more_than_a_link_that_leads_elsewhere() {
    for target in OWN {
        let _case = case(target);
        let (_server, sandbox, target) = with_own_link(target);
        let before = sandbox.read_bytes(&target);
        sandbox
            .q(&["--clear"])
            .run()
            .exit(0)
            .stdout("Conversation cleared\n");
        assert_eq!(sandbox.target("current.json"), None);
        sandbox.expect_bytes(&target, &before);
        sandbox.link("current.json", &target);
        sandbox.q(&["--clear", "--all", "--yes"]).run().success();
        assert_eq!(sandbox.all_files(), [""; 0]);
        let left = sandbox.home().join("talk.json").exists();
        sandbox.check(left == (target != "work.json"), || {
            "expected only what is in the folder to go".to_owned()
        });
    }
}

#[test]
fn a_link_to_nothing_is_no_conversation_and_the_next_question_replaces_it() {
    for (args, code, says) in [
        (&["new"][..], 0, ""),
        (&["-f", "new"], 0, "no conversation"),
        (&["--history"], 0, "no conversation"),
        (&["--last"], 1, "no conversation"),
        (&["--undo"], 1, "nothing to undo"),
        (&["--again"], 1, "no question"),
        (&["--clear"], 0, ""),
    ] {
        for target in [ARCHIVED, "../../../home/gone.json"] {
            let _case = case((args, target));
            let (_server, sandbox) = lasting();
            sandbox.link("current.json", target);
            sandbox.q(args).run().exit(code).stderr_contains(says);
            if args.contains(&"new") {
                sandbox.expect_texts("current.json", &["new", "answer 0"]);
                assert_ne!(sandbox.current_id(), ID);
            }
            if args == ["--clear"] {
                assert_eq!(sandbox.all_files(), [""; 0]);
            }
        }
    }
}

#[test]
fn a_name_that_is_a_link_is_what_it_leads_to() {
    let (_server, sandbox) = lasting();
    sandbox.write_home("talk.json", stored(&["one", "two"]).to_string());
    sandbox.link("work.json", "../../../home/talk.json");
    sandbox.q(&["-s", "work", "three"]).run().success();
    sandbox.q(&["-s", "work", "--again"]).run().success();
    assert_eq!(
        texts(&sandbox.home_session("talk.json")),
        ["one", "two", "three", "answer 1"]
    );
    sandbox
        .q(&["-s", "work", "--undo"])
        .run()
        .success()
        .stdout("three\n");
    assert_eq!(texts(&sandbox.home_session("talk.json")), ["one", "two"]);
    assert_eq!(
        sandbox.target("work.json").as_deref(),
        Some("../../../home/talk.json")
    );
    sandbox
        .q(&["-s", "work", "--clear"])
        .run()
        .exit(0)
        .stdout("Conversation cleared\n");
    assert_eq!(
        (
            sandbox.target("work.json"),
            sandbox.home().join("talk.json").exists()
        ),
        (None, false)
    );
    // Without the file, a question creates it again.
    sandbox.link("work.json", "../../../home/talk.json");
    sandbox
        .q(&["-s", "work", "--last"])
        .run()
        .exit(1)
        .stdout_is_empty();
    sandbox.q(&["-s", "work", "one"]).run().success();
    assert_eq!(
        texts(&sandbox.home_session("talk.json")),
        ["one", "answer 2"]
    );
}

#[test]
fn a_conversation_that_another_link_leads_to_is_not_removed() {
    let (_server, sandbox) = lasting();
    let sandbox = sandbox.env("Q_KEEP", "0");
    sandbox.write_linked("current.json", ARCHIVED, &stored(&["one", "two"]));
    sandbox.link("current-tty1.json", ARCHIVED);
    sandbox.q(&["new"]).run().success();
    sandbox.expect_texts("current-tty1.json", &["one", "two"]);
    // Once it is cleared, no link to it is left.
    sandbox.q(&["--clear", "-s", ID]).run().exit(0);
    assert_eq!(
        sandbox.all_files(),
        ["current.json", &format!("{}.json", sandbox.current_id())]
    );
}

#[test]
fn keep_0_removes_a_conversation_and_its_earlier_states_when_another_takes_its_place() {
    for regular in [false, true] {
        for args in [&["new"][..], &["-f", "-m", "other", "new"]] {
            let _case = case((regular, args));
            let (_server, sandbox) = lasting();
            let conversation = stored(&["one", "two"]);
            match regular {
                true => sandbox.write_current(&conversation),
                false => sandbox.write_linked("current.json", ARCHIVED, &conversation),
            }
            for name in [EARLIER, OTHER, "work.json"] {
                sandbox.write_session(name, &other(&["three", "four"]));
            }
            sandbox.q(args).env("Q_KEEP", "0").run().exit(0);
            let id = sandbox.current_id();
            assert_eq!(
                sandbox.all_files(),
                ["current.json", OTHER, &format!("{id}.json"), "work.json"]
            );
        }
    }
}

#[test]
fn a_plain_question_needs_the_lock_only_to_adopt_a_file() {
    let (_server, sandbox) = lasting();
    sandbox.q(&["one"]).run().success();
    let lock = hold_the_lock(&sandbox);
    sandbox.q(&["two"]).run().success();
    sandbox.expect_texts("current.json", &["two", "answer 1"]);
    // Another q was stopped while it changed a link.
    let _links = lock_folder(&sandbox.state().join("q"));
    sandbox.q(&["again"]).run().success();
    sandbox.expect_texts("current.json", &["again", "answer 2"]);
    drop(lock);
    sandbox.write_current(&stored(&["one", "two"]));
    let before = sandbox.read_bytes("current.json");
    let _lock = hold_the_lock(&sandbox);
    let outcome = sandbox.q(&["three"]).run();
    outcome
        .exit(0)
        .stderr_contains("another q holds the lock: this exchange is saved on its own, in ");
    sandbox.expect_bytes("current.json", before);
}

#[test]
fn old_conversations_are_removed_once_a_day_without_being_opened() {
    let before_2026 = || SystemTime::UNIX_EPOCH + 400 * DAY;
    let fill = |sandbox: &Sandbox| {
        // None of them is a conversation, and that does not matter: they are not opened.
        for (name, days) in [
            ("session_20260101000000001.json", 40),
            ("session_20260101000000001~1.json", 40),
            ("session_20260101000000002.json", 20),
            ("session_20260101000000003.json.unreadable", 40),
            ("session_20260101000000004.json", 40),
            ("session_20260101000000005.json", 40),
            ("session_20260101000000006.json", 20),
            ("current-old.json", 40),
            ("work~1.json", 40),
            ("work.json", 400),
        ] {
            sandbox.write_bytes(name, "{");
            age(&sandbox.sessions().join(name), days * DAY);
        }
        sandbox.write_home("own.json", "{");
        age(&sandbox.home().join("own.json"), 40 * DAY);
        for (link, target) in [
            ("current.json", "session_20260101000000004.json"),
            ("current-idle.json", "session_20260101000000005.json"),
            ("current-busy.json", "session_20260101000000006.json"),
            ("current-gone.json", "session_20260101000000009.json"),
            ("current-own.json", "../../../home/own.json"),
        ] {
            let _ = fs::remove_file(sandbox.sessions().join(link));
            sandbox.link(link, target);
        }
        // As a machine with a wrong clock has written it.
        sandbox.write_bytes(OTHER, "{");
        let file = fs::File::open(sandbox.sessions().join(OTHER)).expect("a file");
        file.set_modified(before_2026()).expect("another time");
    };
    let left = [
        "current-busy.json",
        "current-own.json",
        "current.json",
        "session_20260101000000002.json",
        "session_20260101000000004.json",
        "session_20260101000000006.json",
        OTHER,
        "work.json",
    ];
    let (_server, sandbox) = lasting();
    let sandbox = sandbox.env("Q_EXPIRE", "24h");
    fill(&sandbox);
    sandbox.q(&["-s", "talk", "one"]).run().success();
    fs::remove_file(sandbox.sessions().join("talk.json")).expect("a conversation");
    assert_eq!(sandbox.all_files(), left);
    assert!(changed(&sandbox, OTHER) > SystemTime::now() - HOUR);
    assert!(sandbox.home().join("own.json").exists());
    fill(&sandbox);
    let all = sandbox.all_files().len();
    sandbox.q(&["-s", "talk", "two"]).run().success();
    assert_eq!(
        sandbox.all_files().len(),
        all + 1,
        "looked again on the same day"
    );
    another_day(&sandbox);
    sandbox
        .q(&["-s", "talk", "three"])
        .env("Q_KEEP", "never")
        .run()
        .success();
    assert_eq!(sandbox.all_files().len(), all + 1);
    sandbox.q(&["-s", "talk", "four"]).run().success();
    fs::remove_file(sandbox.sessions().join("talk.json")).expect("a conversation");
    assert_eq!(sandbox.all_files(), left);
}

#[test]
fn a_conversation_that_any_link_leads_to_is_not_swept() {
    for link in ["current.json", "work.json"] {
        for absolute in [false, true] {
            let _case = case((link, absolute));
            let (_server, sandbox) = lasting();
            sandbox.write_session(ARCHIVED, &stored(&["one", "two"]));
            age(&sandbox.sessions().join(ARCHIVED), 40 * DAY);
            let target = sandbox.sessions().join(ARCHIVED);
            sandbox.link(
                link,
                if absolute {
                    target.as_path()
                } else {
                    ARCHIVED.as_ref()
                },
            );
            sandbox.q(&["-s", "new", "one"]).run().success();
            sandbox.expect_texts(link, &["one", "two"]);
        }
    }
}

#[test]
fn nothing_is_removed_on_the_same_day_nor_by_a_clock_that_may_be_wrong() {
    let (_server, sandbox) = lasting();
    sandbox.q(&["-s", "new", "one"]).run().success();
    for (since, removes) in [(HOUR * 23, false), (HOUR * 25, true), (DAY * 366, false)] {
        let _case = case(since);
        sandbox.write_session(ARCHIVED, &stored(&["one", "two"]));
        age(&sandbox.sessions().join(ARCHIVED), 40 * DAY);
        // A killed run has left it.
        sandbox.write_bytes(".tmp-4711", "half");
        age(&sandbox.sessions().join(".tmp-4711"), 2 * DAY);
        age(&sandbox.state().join("q/swept"), since);
        sandbox.q(&["-s", "new", "more"]).run().success();
        for name in [ARCHIVED, ".tmp-4711"] {
            assert_eq!(sandbox.sessions().join(name).exists(), !removes, "{name}");
        }
    }
}

#[test]
fn a_slot_keeps_its_conversation_until_that_has_expired() {
    for (expire, stays) in [("never", true), ("60d", true), ("24h", false)] {
        for linked in [true, false] {
            let _case = case((expire, linked));
            let (_server, sandbox) = lasting();
            let name = if linked { ARCHIVED } else { "current-old.json" };
            sandbox.write_session(name, &stored(&["one", "two"]));
            age(&sandbox.sessions().join(name), 40 * DAY);
            if linked {
                sandbox.link("current-old.json", ARCHIVED);
            }
            sandbox
                .q(&["-s", "new", "one"])
                .env("Q_EXPIRE", expire)
                .run()
                .success();
            assert_eq!(sandbox.sessions().join("current-old.json").exists(), stays);
        }
    }
}

#[test]
fn what_should_not_be_kept_at_all_is_gone_the_next_day() {
    let (_server, sandbox) = lasting();
    for (name, minutes) in [
        ("current.json", 2),
        (ARCHIVED, 2),
        (OTHER, 0),
        ("work.json", 2),
        ("work~1.json", 2),
    ] {
        sandbox.write_session(name, &stored(&["one", "two"]));
        age(&sandbox.sessions().join(name), MINUTE * minutes);
    }
    sandbox
        .q(&["-s", "new", "one"])
        .env("Q_KEEP", "0")
        .run()
        .success();
    sandbox.expect_files(&["current.json", "new.json", OTHER, "work.json"]);
}

#[test]
fn a_conversation_that_is_replaced_today_is_kept_however_old_it_is() {
    for bytes in [
        idle_for(40 * DAY, &["one", "1"]).to_string(),
        "not JSON".to_owned(),
    ] {
        for args in [&["two"][..], &["-f", "two"]] {
            for linked in [false, true] {
                let _case = case((&bytes, args, linked));
                let (_server, sandbox) = numbered();
                let name = if linked { OTHER } else { "current.json" };
                sandbox.write_bytes(name, &bytes);
                age(&sandbox.sessions().join(name), 40 * DAY);
                if linked {
                    sandbox.link("current.json", OTHER);
                }
                sandbox.q(args).run().exit(0);
                sandbox.expect_bytes(&sandbox.only_archived(), &bytes);
            }
        }
    }
}

#[test]
fn other_programs_read_and_write_current_json_by_that_path_alone() {
    let (server, sandbox) = lasting();
    sandbox.q(&["one"]).run().success();
    let path = sandbox.sessions().join("current.json");
    // As an editor writes: through the link, or another file in its place.
    let edited = |text: &str| {
        let mut conversation: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        conversation["messages"][1]["content"] = json!(text);
        conversation.to_string()
    };
    fs::write(&path, edited("through")).unwrap();
    sandbox.q(&["-f", "two"]).run().success();
    assert!(prompt(&server.last_request()).contains("Assistant: through"));
    let replaced = edited("in its place");
    fs::write(sandbox.home().join("new"), replaced).unwrap();
    fs::rename(sandbox.home().join("new"), &path).unwrap();
    sandbox.q(&["-f", "three"]).run().success();
    assert!(prompt(&server.last_request()).contains("Assistant: in its place"));
    assert_eq!(texts(&sandbox.current()).len(), 6);
    sandbox.current_id();
}

#[test]
fn what_is_cleared_is_the_conversation_that_is_current_once_the_lock_is_free() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write_linked("current.json", ARCHIVED, &stored(&["one", "two"]));
    sandbox.write_session(OTHER, &other(&["three", "four"]));
    let lock = hold_the_lock(&sandbox);
    let clear = sandbox
        .shell("exec strace -f -o trace -e trace=flock q --clear")
        .spawn();
    wait_until(|| {
        fs::read_to_string(sandbox.home().join("trace")).is_ok_and(|trace| trace.contains("flock("))
    });
    // Another q has started a conversation, which needs no lock.
    sandbox.link(".new", OTHER);
    fs::rename(
        sandbox.sessions().join(".new"),
        sandbox.sessions().join("current.json"),
    )
    .expect("another link");
    drop(lock);
    clear.wait().exit(0);
    sandbox.expect_files(&[ARCHIVED]);
}

#[test]
fn a_cleared_conversation_leaves_no_link_unless_that_is_an_error_and_no_link_is_moved_aside() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let sandbox = Sandbox::new();
    for call in 1.. {
        let _case = case(call);
        sandbox.write_linked("current.json", ARCHIVED, &stored(&["one", "two"]));
        let inject = format!("?readlink,?readlinkat:error=EIO:when={call}");
        let outcome = sandbox
            .shell(&format!(
                "exec strace -f -o trace -e inject={inject} q --clear"
            ))
            .run();
        let stays = sandbox.sessions().join("current.json").is_symlink();
        outcome.check(outcome.status.success() != stays, || {
            format!("the link stays: {stays}")
        });
        let trace = fs::read_to_string(sandbox.home().join("trace")).unwrap();
        // A clear that was killed after moving the link would take it from a conversation that another q has just started.
        assert!(!trace.contains("rename"), "{trace}");
        if !trace.contains("INJECTED") {
            break;
        }
    }
}
