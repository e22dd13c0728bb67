//! A folder that q 0.2.0 has made: each question and each action finds in it what it found before.
//!
//! `upgrade/` has what 0.2.0 wrote, byte for byte: current conversations in files of their own, archived ones named by the
//! second (`-2` is the second of that second), one that it could not read, a named one, the lock, and what a killed run left.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::fixtures::{DAY, MINUTE, age, case, lock_folder, numbered, prompt, texts, with};
use crate::pty::{Terminal, WIDE};
use crate::sandbox::Sandbox;
use crate::server::Server;

/// The conversations, newest first: file, id under 0.2.0, id from now on, questions.
const KEPT: [(&str, &str, &str, &[&str]); 6] = [
    (
        "current.json",
        "session_20261123020821264",
        "session_20261123020821264",
        &["four", "five"],
    ),
    (
        "current-tty1.json",
        "session_20261123020834540",
        "session_20261123020834540",
        &["slotted"],
    ),
    ("work.json", "work", "work", &["plan"]),
    (
        "session_20261123020821.json",
        "session_20261123020821263",
        "session_20261123020821",
        &["four", "five", "six"],
    ),
    (
        "session_20261123020819-2.json",
        "session_20261123020819033",
        "session_20261123020819-2",
        &["two"],
    ),
    (
        "session_20261123020819.json",
        "session_20261123020819021",
        "session_20261123020819",
        &["one"],
    ),
];
const UNREADABLE: &str = "session_20261123020820.json.unreadable";

fn upgraded() -> (Server, Sandbox) {
    let (server, sandbox) = numbered();
    let sandbox = sandbox.env("Q_EXPIRE", "never").env("Q_KEEP", "never");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/upgrade");
    for entry in fs::read_dir(folder).expect("the folder of 0.2.0") {
        let entry = entry.expect("a file of 0.2.0");
        sandbox.write_bytes(
            &entry.file_name().to_string_lossy(),
            fs::read(entry.path()).expect("its bytes"),
        );
    }
    for name in ["lock", "swept"] {
        let _ = fs::rename(
            sandbox.sessions().join(name),
            sandbox.state().join("q").join(name),
        );
    }
    for (ago, (file, ..)) in KEPT.iter().enumerate() {
        age(
            &sandbox.sessions().join(file),
            MINUTE + Duration::from_secs(ago as u64),
        );
    }
    (server, sandbox)
}

/// Questions and their answers, as 0.2.0 has saved them.
fn exchanges(questions: &[&str]) -> Vec<String> {
    questions
        .iter()
        .flat_map(|question| [(*question).to_owned(), format!("answer to {question}")])
        .collect()
}

/// All conversations but the one in `changed` still have their texts, wherever their files are now.
#[track_caller]
fn expect_others(sandbox: &Sandbox, changed: &str) {
    let all: Vec<Vec<String>> = sandbox
        .all_files()
        .iter()
        .filter(|name| name.ends_with(".json") && sandbox.target(name).is_none())
        .map(|name| texts(&sandbox.session(name)))
        .collect();
    for (file, _, _, questions) in KEPT.iter().filter(|(file, ..)| *file != changed) {
        sandbox.check(all.contains(&exchanges(questions)), || {
            format!("{file} is gone")
        });
    }
    sandbox.expect_bytes(UNREADABLE, "{\"version\": 1, \"prov");
}

#[test]
fn each_question_continues_what_it_continued_in_0_2_0() {
    for (file, old, id, questions) in KEPT {
        let slot = if file == "current-tty1.json" {
            "tty1"
        } else {
            ""
        };
        let mut ways = vec![(vec!["-s", old], ""), (vec!["-s", id], "")];
        if file.starts_with("current") {
            ways.push((vec!["-f"], slot));
        }
        for (way, slot) in ways {
            for again in [false, true] {
                let _case = case((file, &way, again));
                let (server, sandbox) = upgraded();
                let q = sandbox.q(&way).env("Q_SESSION", slot).arg(if again {
                    "--again"
                } else {
                    "more"
                });
                q.run().success().stdout("answer 0\n");
                let mut said = exchanges(questions);
                let asked = if again {
                    said[said.len() - 2].clone()
                } else {
                    "more".to_owned()
                };
                said.truncate(said.len() - if again { 2 } else { 0 });
                let sent = prompt(&server.request());
                assert!(
                    sent.ends_with(&asked) && said.iter().all(|text| sent.contains(text)),
                    "{sent}"
                );
                said.extend([asked, "answer 0".to_owned()]);
                assert_eq!(texts(&sandbox.session(file)), said);
                if again {
                    sandbox.expect_texts(&format!("{id}~1.json"), &exchanges(questions));
                }
                if let Some(target) = sandbox.target(file) {
                    assert_eq!(
                        target,
                        format!("{id}.json"),
                        "the file has got the name of its id"
                    );
                }
                expect_others(&sandbox, file);
                assert!(
                    !sandbox
                        .all_files()
                        .iter()
                        .any(|name| name.starts_with(".tmp")),
                    "{:?}",
                    sandbox.all_files()
                );
            }
        }
    }
}

#[test]
fn a_new_question_leaves_what_was_current_under_its_id() {
    for (slot, number) in [("", 0), ("tty1", 1)] {
        let (_server, sandbox) = upgraded();
        let (file, _, id, questions) = KEPT[number];
        sandbox.q(&["new"]).env("Q_SESSION", slot).run().success();
        sandbox.expect_texts(file, &["new", "answer 0"]);
        sandbox.expect_texts(&format!("{id}.json"), &exchanges(questions));
        expect_others(&sandbox, "");
        sandbox
            .q(&["-s", id, "--last"])
            .run()
            .success()
            .stdout(format!("{}\n", exchanges(questions).pop().unwrap()));
        sandbox.q(&["-s", id, "--undo"]).run().success();
        sandbox.expect_texts(file, &["new", "answer 0"]);
    }
}

#[test]
fn each_action_is_about_what_it_was_about_in_0_2_0() {
    for (file, old, id, questions) in KEPT {
        let said = exchanges(questions);
        for way in [&["-s", old][..], &["-s", id], &[]] {
            let _case = case((file, way));
            if way.is_empty() && !file.starts_with("current") {
                continue;
            }
            let (_server, sandbox) = upgraded();
            let slot = if file == "current-tty1.json" {
                "tty1"
            } else {
                ""
            };
            let sandbox = sandbox.env("Q_SESSION", slot);
            let act = |args: &[&str]| sandbox.q(way).args(args).run();
            let bytes = sandbox.read_bytes(file);
            act(&["--history", "-j"]).success().stdout(&bytes);
            act(&["--last"])
                .success()
                .stdout(format!("{}\n", said[said.len() - 1]));
            assert_eq!(act(&["--last", "-j"]).success().stdout_json()["id"], id);
            assert_eq!(
                act(&["--status", "-j"]).success().stdout_json()["conversation"]["messages"],
                said.len()
            );
            act(&["--copy", "branch"]).success();
            sandbox.expect_texts("branch.json", &said);
            sandbox.expect_bytes(file, &bytes);
            act(&["--undo"])
                .success()
                .stdout(format!("{}\n", said[said.len() - 2]));
            sandbox.expect_texts(file, &said[..said.len() - 2]);
            sandbox.expect_bytes(&format!("{id}~1.json"), &bytes);
            sandbox
                .q(&["-s", &format!("{id}~1"), "--last"])
                .run()
                .success();
            act(&["--clear"]).exit(0).stdout("Conversation cleared\n");
            let left = sandbox.all_files();
            assert!(
                !left
                    .iter()
                    .any(|name| name == file || name.starts_with(&format!("{id}."))),
                "{left:?}"
            );
            assert!(!left.contains(&format!("{id}~1.json")), "{left:?}");
            expect_others(&sandbox, file);
        }
    }
}

#[test]
fn a_list_has_all_that_0_2_0_has_kept() {
    let (_server, sandbox) = upgraded();
    let listed = sandbox.q(&["--list"]).run();
    let names: Vec<String> = listed
        .stdout_text()
        .lines()
        .map(|line| line.split('\t').next().unwrap_or_default().to_owned())
        .collect();
    listed.exit(0).stderr_contains(UNREADABLE);
    assert_eq!(names, KEPT.map(|(_, _, id, _)| id));
    let found = sandbox
        .q(&["--list", "-j", "slotted"])
        .run()
        .exit(0)
        .stdout_json();
    assert_eq!(found[0]["id"], KEPT[1].2);
    // On a terminal each has a number, by which it becomes the current one.
    let terminal = Terminal::new(WIDE);
    sandbox
        .q(&["--list"])
        .stdout_to(terminal.end())
        .run()
        .exit(0);
    let screen = terminal.screen();
    let line = screen
        .iter()
        .find(|line| line.contains("session_20261123020821 "))
        .expect("a line");
    let number = format!("%{}", line.split_whitespace().next().unwrap_or_default());
    let terminal = Terminal::new(WIDE);
    sandbox
        .q(&["-s", &number, "more"])
        .stdout_to(terminal.end())
        .run()
        .exit(0);
    assert_eq!(
        sandbox.target("current.json").as_deref(),
        Some("session_20261123020821.json")
    );
    sandbox.expect_texts("session_20261123020821264.json", &exchanges(KEPT[0].3));
    assert_eq!(
        sandbox.q(&["--status", "-j"]).run().success().stdout_json()["kept"],
        7
    );
}

#[test]
fn all_that_0_2_0_has_kept_is_cleared_and_swept() {
    let (_server, sandbox) = upgraded();
    sandbox
        .q(&["--clear", "--all", "--yes"])
        .run()
        .success()
        .stdout("Conversations cleared: 7\n");
    assert_eq!(sandbox.all_files(), [""; 0]);

    let (_server, sandbox) = upgraded();
    sandbox.q(&["-s", "new", "first"]).run().success();
    for name in sandbox.all_files() {
        age(&sandbox.sessions().join(name), 40 * DAY);
    }
    sandbox
        .q(&["-s", "new", "second"])
        .env("Q_KEEP", "30d")
        .env("Q_EXPIRE", "24h")
        .run()
        .success();
    sandbox.expect_files(&["current.json", "new.json", "work.json"]);
}

#[test]
fn a_lock_of_0_2_0_blocks_nothing() {
    let (_server, sandbox) = upgraded();
    let _held = lock_folder(&sandbox.state().join("q/lock"));
    sandbox.q(&["-f", "more"]).run().success();
}

#[test]
fn images_that_0_2_0_has_dropped_block_nothing() {
    // Over 10 MB, 0.2.0 dropped the contents of the oldest images; q now drops the oldest exchanges.
    let (_server, sandbox) = upgraded();
    let mut conversation: Value = sandbox.session("work.json");
    conversation["messages"][0]["attachments"] = json!([{"name": "gone.png", "type": "image/png"}]);
    sandbox.write_session("work.json", &with(conversation, "x", 1));
    sandbox.q(&["-s", "work", "--history"]).run().success();
    sandbox
        .q(&["-s", "work", "more"])
        .run()
        .exit(0)
        .stdout("answer 0\n");
    sandbox.q(&["-s", "work", "--undo"]).run().success();
}
