//! Earlier states: `--undo` and `--again` keep the conversation as it was, under `ID~1`, `ID~2`, …

use std::os::unix::fs::symlink;

use crate::fixtures::{
    ARCHIVED, CREATED, DAY, EARLIER, ID, age, another_day, case, mode, numbered, prompt, set_mode,
    snapshot, stored, texts, with,
};
use crate::sandbox::Sandbox;
use crate::server::Server;

const STATE: &str = "session_20260102030405678~1";

const TALK: [&str; 4] = ["one", "two", "three", "four"];

/// A sandbox with a current conversation and a named one of two exchanges, and in which nothing is too old.
fn talked() -> (Server, Sandbox) {
    let (server, sandbox) = numbered();
    let sandbox = sandbox.env("Q_EXPIRE", "never");
    sandbox.write_linked("current.json", ARCHIVED, &stored(&TALK));
    sandbox.write_session("work.json", &stored(&TALK));
    (server, sandbox)
}

/// The same with an earlier state of each, which has one exchange more.
fn with_states() -> (Server, Sandbox) {
    let (server, sandbox) = talked();
    for name in [EARLIER, "work~1.json"] {
        sandbox.write_session(
            name,
            &stored(&["one", "two", "three", "four", "five", "six"]),
        );
    }
    (server, sandbox)
}

#[test]
fn a_conversation_that_changes_at_its_end_leaves_its_earlier_states() {
    for (args, file, state) in [
        (&[][..], ARCHIVED, ID),
        (&["-s", ID], ARCHIVED, ID),
        (&["-s", "work"], "work.json", "work"),
    ] {
        for (change, after) in [
            ("--undo", &["one", "two"][..]),
            ("--again", &["one", "two", "three", "answer 0"]),
        ] {
            let _case = case((args, change));
            let (_server, sandbox) = talked();
            age(&sandbox.sessions().join(file), 40 * DAY);
            set_mode(&sandbox.sessions().join(file), 0o644);
            let first = sandbox.read_bytes(file);
            sandbox.q(args).arg(change).run().success();
            sandbox.expect_texts(file, after);
            sandbox.expect_bytes(&format!("{state}~1.json"), &first);
            assert_eq!(
                mode(&sandbox.sessions().join(format!("{state}~1.json"))),
                0o600
            );
            assert_eq!(sandbox.session(file)["created"], CREATED);
            let second = sandbox.read_bytes(file);
            sandbox.q(args).arg("--undo").run().success();
            sandbox.expect_bytes(&format!("{state}~1.json"), &first);
            sandbox.expect_bytes(&format!("{state}~2.json"), &second);
            assert_eq!(sandbox.target("current.json").as_deref(), Some(ARCHIVED));
            // Its days begin when it became an earlier state.
            another_day(&sandbox);
            sandbox.q(&["-s", "new", "one"]).run().success();
            sandbox.expect_bytes(&format!("{state}~1.json"), &first);
        }
        let (_server, sandbox) = talked();
        for change in ["--again", "--undo"] {
            sandbox
                .q(args)
                .arg(change)
                .env("Q_KEEP", "0")
                .run()
                .success();
        }
        sandbox.expect_files(&["current.json", "work.json"]);
    }
}

#[test]
fn each_action_takes_an_earlier_state() {
    for (typed, id) in [(STATE, STATE), ("work~1", "work~1"), ("alias~1", "work~1")] {
        let _case = case(typed);
        let file = format!("{id}.json");
        let (_server, sandbox) = with_states();
        // The states of a link are those of the conversation that it leads to.
        sandbox.link("alias.json", "work.json");
        let before = snapshot(sandbox.sessions());
        let act = |args: &[&str]| sandbox.q(&["-s", typed]).args(args).run();
        act(&["--last"]).success().stdout("six\n");
        assert_eq!(act(&["--last", "-j"]).success().stdout_json()["id"], id);
        assert_eq!(
            act(&["--history", "-j"]).success().stdout_json(),
            sandbox.session(&file)
        );
        assert_eq!(
            act(&["--status", "-j"]).success().stdout_json()["conversation"]["messages"],
            6
        );
        before.expect_unchanged();
        act(&["--copy", "branch"]).success();
        assert_eq!(texts(&sandbox.session("branch.json")).len(), 6);
        act(&["--undo"]).success().stdout("five\n");
        sandbox.expect_texts(&file, &TALK);
        let before = snapshot(sandbox.sessions());
        act(&["--clear"]).exit(0).stdout("Conversation cleared\n");
        assert!(
            before.changes().contains(&format!("- {file}")),
            "{:?}",
            before.changes()
        );
        for name in ["current.json", "work.json"] {
            sandbox.expect_texts(name, &TALK);
        }
    }
}

#[test]
fn a_question_to_an_earlier_state_is_appended_to_it() {
    for (id, file) in [(STATE, EARLIER), ("work~1", "work~1.json")] {
        for more in [&[][..], &["-f"]] {
            let _case = case((id, more));
            let (server, sandbox) = with_states();
            let sandbox = sandbox.env("Q_PAIRS", "1");
            let before = [
                sandbox.read_bytes(ARCHIVED),
                sandbox.read_bytes("work.json"),
            ];
            let printed = sandbox
                .q(&["-j", "-s", id])
                .args(more)
                .arg("more")
                .run()
                .success()
                .stdout_json();
            assert_eq!(printed["id"], id);
            assert!(prompt(&server.last_request()).contains("Human: five"));
            assert_eq!(texts(&sandbox.session(file)).len(), 8);
            assert_eq!(
                [
                    sandbox.read_bytes(ARCHIVED),
                    sandbox.read_bytes("work.json")
                ],
                before
            );
            sandbox.q(&["-s", id, "--again"]).run().success();
            assert_eq!(texts(&sandbox.session(file)).len(), 8);
        }
    }
}

#[test]
fn an_earlier_state_that_does_not_exist_is_not_started() {
    let (server, sandbox) = with_states();
    // A link to a file elsewhere names none of the folder, whatever that file is called.
    sandbox.link("elsewhere.json", sandbox.home().join("work.json"));
    let before = snapshot(sandbox.sessions());
    for id in [
        "session_20260102030405678~7",
        "work~7",
        "play~1",
        "elsewhere~1",
    ] {
        for args in [
            &["more"][..],
            &["-f", "more"],
            &["--again"],
            &["--last"],
            &["--clear"],
            &["--undo"],
        ] {
            sandbox
                .q(&["-s", id])
                .args(args)
                .run()
                .exit(1)
                .stdout_is_empty()
                .stderr_contains(id);
        }
    }
    sandbox
        .q(&["--copy", "work~7"])
        .run()
        .exit(2)
        .stdout_is_empty();
    server.expect_requests(0);
    before.expect_unchanged();
}

#[test]
fn earlier_states_go_with_their_conversation_or_when_they_are_too_old() {
    for (args, left) in [
        (&["--clear"][..], &["work.json", "work~1.json"][..]),
        (&["--clear", "-s", ID], &["work.json", "work~1.json"]),
        (&["--clear", "-s", "work"], &["current.json", EARLIER]),
        (&["--clear", "--all", "--yes"], &[]),
    ] {
        let _case = case(args);
        let (_server, sandbox) = with_states();
        // Earlier states are not counted.
        sandbox.q(args).run().exit(0).stdout_lacks("4");
        sandbox.expect_files(left);
    }
    let (_server, sandbox) = with_states();
    for name in [EARLIER, "work~1.json"] {
        age(&sandbox.sessions().join(name), 40 * DAY);
    }
    sandbox.q(&["-s", "work", "more"]).run().success();
    sandbox.expect_files(&["current.json", "work.json"]);
}

#[test]
fn a_file_of_the_folder_by_its_path_goes_with_its_earlier_states_where_a_link_leads_to_the_folder()
{
    for (name, left) in [
        ("work.json", &["current.json", EARLIER][..]),
        (ARCHIVED, &["work.json", "work~1.json"]),
    ] {
        let _case = case(name);
        let (_server, sandbox) = with_states();
        let state = sandbox.home().join("state");
        symlink(sandbox.state(), &state).expect("a link");
        let path = state.join("q/sessions").join(name);
        sandbox
            .q(&["--clear", "-s"])
            .arg(path)
            .env("XDG_STATE_HOME", state)
            .run()
            .exit(0);
        sandbox.expect_files(left);
    }
}

#[test]
fn a_list_shows_earlier_states_only_where_all_are_wanted() {
    let (_server, sandbox) = with_states();
    let names = |args: &[&str]| {
        let listed = sandbox.q(args).run().success().stdout_json();
        let mut names: Vec<String> = listed
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| one["name"].to_string().replace('"', ""))
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&["--list", "-j"]), [ID, "work"]);
    let earlier = EARLIER.trim_end_matches(".json");
    assert_eq!(
        names(&["--list", "--all", "-j"]),
        [ID, earlier, "work", "work~1"]
    );
    assert_eq!(
        names(&["--list", "--all", "-j", "five"]),
        [earlier, "work~1"]
    );
    let lines = sandbox
        .q(&["--list", "--all"])
        .run()
        .success()
        .stdout_text();
    assert!(
        lines.contains(&format!("{earlier}\t")) && lines.lines().count() == 4,
        "{lines}"
    );
    assert_eq!(
        sandbox
            .q(&["--list"])
            .run()
            .success()
            .stdout_text()
            .lines()
            .count(),
        2
    );
}

#[test]
fn undoing_everything_leaves_the_file_with_all_but_its_messages() {
    for args in [&[][..], &["-s", "work"]] {
        let _case = case(args);
        let (server, sandbox) = numbered();
        let ask = |more: &[&str]| sandbox.q(args).args(more).run();
        ask(&["-S", "pirate", "-m", "big", "one"]).success();
        let file = if args.is_empty() {
            "current.json"
        } else {
            "work.json"
        };
        let before = sandbox.session(file);
        ask(&["--undo"]).success().stdout("one\n");
        let left = sandbox.session(file);
        assert_eq!(
            with(left.clone(), "updated", 0),
            with(
                with(before, "messages", left["messages"].clone()),
                "updated",
                0
            )
        );
        assert_eq!(left["messages"].as_array().map(Vec::len), Some(0));
        ask(&["--undo"])
            .exit(1)
            .stdout_is_empty()
            .stderr_contains("nothing to undo");
        ask(&["--last"])
            .exit(1)
            .stdout_is_empty()
            .stderr_contains("no answer");
        ask(&["--again"]).exit(1).stdout_is_empty();
        ask(if args.is_empty() {
            &["-f", "two"]
        } else {
            &["two"]
        })
        .success();
        let body = server.last_request().json();
        assert_eq!(
            (&body["messages"][0]["content"], &body["model"]),
            (&"pirate".into(), &"big".into())
        );
        sandbox.expect_texts(file, &["two", "answer 1"]);
        assert_eq!(sandbox.session(file)["created"], left["created"]);
    }
}

#[test]
fn an_earlier_state_that_is_current_is_listed_and_leaves_no_link_when_it_is_cleared() {
    let (_server, sandbox) = numbered();
    sandbox.write_session(ARCHIVED, &stored(&TALK));
    sandbox.write_linked("current.json", EARLIER, &stored(&TALK));
    let id = ARCHIVED.trim_end_matches(".json");
    sandbox
        .q(&["--list"])
        .run()
        .success()
        .stdout_contains(&format!("{id}~1\t"));
    sandbox.q(&["--clear", "-s", id]).run().success();
    sandbox.expect_no_files();
}

#[test]
fn a_conversation_that_is_a_file_in_place_of_the_link_is_cleared_with_its_earlier_states() {
    let (_server, sandbox) = numbered();
    sandbox.write_session("current.json", &stored(&TALK));
    sandbox.write_session(EARLIER, &stored(&TALK));
    sandbox.q(&["--clear"]).run().success();
    sandbox.expect_no_files();
}
