//! Conversations that a user names, where two runs at once or another user have a part; `names.txt` has the rest.

use std::fs;
use std::os::unix::fs::chown;

use crate::conversations::{ARCHIVED, ID, stored, texts};
use crate::dialect::in_two_parts;
use crate::fixtures::{case, numbered};
use crate::machine::skip;
use crate::outcome::Outcome;
use crate::sandbox::Sandbox;
use crate::server::{Gate, Server};
use crate::snapshot::snapshot;

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
        let text = "the conversation was cleared or replaced in the meantime";
        asked.wait().exit(0).stderr_contains(text);
        let name = sandbox.archived().pop().expect("one of its own");
        sandbox.expect_texts(&name, &["three", "answer"]);
        assert_eq!(sandbox.all_files().len(), 1 + usize::from(again));
    }
}

#[test]
fn a_file_of_another_user_is_refused_before_anything_is_asked() {
    let (server, sandbox) = numbered();
    let path = sandbox.home().join("talk.json");
    fs::write(&path, stored(&["one", "two", "three", "four"]).to_string()).unwrap();
    // Only root can give a file away.
    if chown(&path, Some(65_533), None).is_err() {
        return skip("only root can give a file away");
    }
    let before = snapshot(sandbox.home());
    for args in [
        &["more"][..],
        &["--no-save", "more"],
        &["--again"],
        &["--undo"],
    ] {
        let _case = case(args);
        let q = sandbox.q(&["-s", "talk.json"]).args(args);
        let text = "talk.json belongs to another user";
        q.run().exit(1).stdout_is_empty().stderr_contains(text);
        before.expect_unchanged();
    }
    server.expect_requests(0);
    // What changes nothing may read it.
    let outcome = sandbox.q(&["-s", "talk.json", "--last"]).run();
    outcome.stdout("four\n");
}

#[test]
fn clear_and_copy_change_no_conversation_that_is_started_at_the_same_time() {
    let (_server, sandbox) = numbered();
    let asked = |outcome: Outcome| {
        let id = &outcome.success().stdout_json()["id"];
        id.as_str().expect("an id").to_owned()
    };
    for round in 0..25 {
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
