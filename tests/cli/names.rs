//! Conversations that a user names, where two runs at once or another user have a part; `names.txt` has the rest.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};

use crate::dialect::in_two_parts;
use crate::fixtures::{ARCHIVED, ID, case, numbered, set_mode, snapshot, stored, texts};
use crate::sandbox::{Outcome, Sandbox};
use crate::server::{Gate, Server};

#[test]
fn a_conversation_removed_meanwhile_does_not_come_back_without_its_beginning() {
    for again in [false, true] {
        let _case = case(again);
        let gate = Gate::new();
        let server = Server::always(in_two_parts("an", &gate, "swer"));
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.write_session(ARCHIVED, &stored(&["one", "two"]));
        let mut asked = sandbox.q(&["-s", ID, "three"]).spawn();
        asked.read_stdout_until("an");
        fs::remove_file(sandbox.sessions().join(ARCHIVED)).unwrap();
        if again {
            sandbox.write_session(ARCHIVED, &stored(&["another", "x"]));
        }
        gate.open();
        asked
            .wait()
            .exit(0)
            .stderr_contains("the conversation was cleared or replaced in the meantime");
        sandbox.expect_texts(
            &sandbox.archived().pop().expect("one of its own"),
            &["three", "answer"],
        );
        assert_eq!(sandbox.all_files().len(), 1 + usize::from(again));
    }
}

/// Runs a command as a user who does not own the file, in these groups.
fn as_another_user(sandbox: &Sandbox, groups: &str, command: &str) -> Outcome {
    sandbox
        .shell(&format!(
            "exec setpriv --reuid 65534 --regid 65534 {groups} {command}"
        ))
        .run()
}

#[test]
fn a_file_that_a_group_shares_keeps_its_group_and_mode_or_is_refused_before_anything_is_asked() {
    let (server, sandbox) = numbered();
    for folder in [sandbox.root(), &sandbox.home(), &sandbox.state()] {
        set_mode(folder, 0o777);
    }
    // Only root can change the owner of a file, and another user may not be allowed to run what was built.
    if !as_another_user(&sandbox, "--clear-groups", "q --version")
        .status
        .success()
    {
        return eprintln!("skipped: another user cannot run q here");
    }
    let path = sandbox.home().join("talk.json");
    let give = |mode| {
        fs::write(&path, stored(&["one", "two", "three", "four"]).to_string()).unwrap();
        chown(&path, Some(65_533), Some(65_533)).unwrap();
        set_mode(&path, mode);
    };
    for command in [
        "q -s talk.json more",
        "q -s talk.json --again",
        "q -s talk.json --undo",
    ] {
        let _case = case(command);
        give(0o660);
        as_another_user(&sandbox, "--groups 65533", command).success();
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!((metadata.gid(), metadata.mode() & 0o777), (65_533, 0o660));
        // A user who is not in the group cannot keep the group.
        let asked = server.requests().len();
        for mode in [0o644, 0o666] {
            give(mode);
            let before = snapshot(sandbox.home());
            let refused = as_another_user(&sandbox, "--clear-groups", command);
            refused
                .exit(1)
                .stdout_is_empty()
                .stderr_contains("talk.json")
                .stderr_is_of_q();
            before.expect_unchanged();
        }
        server.expect_requests(asked);
    }
    // Root may keep everything.
    give(0o640);
    sandbox.q(&["-s", "talk.json", "three"]).run().success();
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!((metadata.gid(), metadata.mode() & 0o777), (65_533, 0o640));
}

#[test]
fn the_right_conversation_is_cleared_or_copied_beside_a_new_question() {
    let (_server, sandbox) = numbered();
    let asked = |outcome: Outcome| {
        let id = &outcome.success().stdout_json()["id"];
        id.as_str().expect("an id").to_owned()
    };
    for round in 0..75 {
        let _case = case(round);
        for action in [&["--clear"][..], &["--copy", &format!("copy-{round}")]] {
            let before = asked(sandbox.q(&["--json", "before"]).run());
            let question = sandbox.q(&["--json", "beside"]).spawn();
            let done = sandbox.q(&["-s", &before]).args(action).run();
            done.exit(0);
            let beside = asked(question.wait());
            let kept = |name: &str| texts(&sandbox.session(&format!("{name}.json"))).remove(0);
            assert_eq!(kept(&beside), "beside");
            if let [_, copy] = action {
                assert_eq!(kept(copy), "before");
            }
        }
    }
}
