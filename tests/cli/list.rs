//! Finding a conversation: `--list` for programs and for people, and `--list WORDS`.

use std::fs;

use serde_json::json;

use crate::fixtures::{
    ARCHIVED, CREATED, DAY, HOUR, ID, MINUTE, OTHER, STORED_MODEL, UPDATED, age, case, idle_for,
    numbered, other, prompt, snapshot, stored, with, with_every_kind,
};
use crate::pty::Terminal;
use crate::sandbox::{Outcome, Sandbox};

#[test]
fn a_list_has_a_line_for_each_newest_first() {
    let sandbox = with_every_kind();
    sandbox.write_bytes("notes.txt", "not a conversation");
    let before = snapshot(sandbox.sessions());
    let expected = "session_20260301000000000\t2026-01-02T03:09:00.000Z\t2\topenai/stored-model\tterminal\n\
                    work\t2026-01-02T03:09:00.000Z\t1\topenai/stored-model\tlone question\n\
                    session_20260115000000000\t2026-01-02T03:09:00.000Z\t2\topenai/stored-model\tolder\n\
                    session_20260102030405678\t2026-01-02T03:09:00.000Z\t4\topenai/stored-model\twhat is a rebase?\n\
                    empty\t2026-01-02T03:09:00.000Z\t0\topenai/stored-model\t\n";
    sandbox.q(&["--list"]).run().success().stdout(expected);
    sandbox
        .q(&["--list"])
        .env("Q_SESSION", "tty1")
        .run()
        .success()
        .stdout(expected);
    before.expect_unchanged();
    // Linked ones are listed once.
    for (link, target) in [
        ("current-tty1.json", "session_20260301000000000.json"),
        ("current.json", ARCHIVED),
    ] {
        fs::rename(
            sandbox.sessions().join(link),
            sandbox.sessions().join(target),
        )
        .unwrap();
        sandbox.link(link, target);
    }
    sandbox.q(&["--list"]).run().success().stdout(expected);
}

#[test]
fn a_list_as_json_has_an_object_for_each() {
    let sandbox = with_every_kind();
    let listed = sandbox.q(&["--list", "--json"]).run();
    listed.success();
    let expected = |name: &str, file: &str, created: &str, messages: usize, question: &str| {
        json!({
            "id": name, "name": name, "path": sandbox.sessions().join(file), "provider": "openai",
            "model": STORED_MODEL, "created": created, "updated": UPDATED, "messages": messages, "question": question,
        })
    };
    let all = json!([
        expected(
            "session_20260301000000000",
            "current-tty1.json",
            "2026-03-01T00:00:00.000Z",
            2,
            "terminal"
        ),
        expected(
            "work",
            "work.json",
            "2026-02-01T00:00:00.000Z",
            1,
            "lone question"
        ),
        expected(
            "session_20260115000000000",
            OTHER,
            "2026-01-15T00:00:00.000Z",
            2,
            "older"
        ),
        expected(ID, "current.json", CREATED, 4, "what is a rebase?"),
        expected("empty", "empty.json", "2025-02-01T00:00:00.000Z", 0, ""),
    ]);
    listed.check(listed.stdout_json() == all, || format!("expected {all}"));
    listed.check(listed.stdout.ends_with(b"\n"), || {
        "expected a newline at the end".to_owned()
    });
}

#[test]
fn a_list_continues_after_an_unreadable_file() {
    let sandbox = Sandbox::new();
    sandbox.write_current(&stored(&["one", "two", "three", "four"]));
    sandbox.write_bytes("broken.json", "{");
    sandbox.write_bytes("session_20250101000000.json.unreadable", "hello");
    sandbox.write_bytes("newer.json", json!({"version": 2}).to_string());
    sandbox
        .shell("mkfifo ../state/q/sessions/pipe.json; mkdir ../state/q/sessions/folder.json")
        .run()
        .success();
    let line = format!("{ID}\t{UPDATED}\t4\topenai/stored-model\tone\n");
    let listed = sandbox.q(&["--list"]).run();
    listed.exit(0).stdout(&line);
    let unreadable = [
        "broken.json",
        "session_20250101000000.json.unreadable",
        "newer.json",
        "pipe.json",
    ];
    listed.stderr_contains_all(&unreadable);
    let listed = sandbox.q(&["--list", "--json"]).run();
    listed.exit(0).stderr_contains("broken.json");
    let length = listed.stdout_json().as_array().map(Vec::len);
    listed.check(length == Some(1), || "expected a list of one".to_owned());
}

#[test]
fn a_list_of_unreadable_files_does_not_say_that_there_are_no_conversations() {
    let sandbox = Sandbox::new();
    sandbox.write_bytes("broken.json", "{");
    sandbox
        .q(&["--list"])
        .run()
        .exit(0)
        .stderr_contains("broken.json")
        .stderr_lacks("no conversations");
}

#[test]
fn a_line_of_a_list_is_one_line_of_five_fields_whatever_files_say() {
    let sandbox = Sandbox::new();
    let conversation = stored(&["a\tb\nc\r\n\u{2028}d\u{85}e", "x"]);
    let conversation = with(
        with(conversation, "model", "m\tn\no"),
        "provider",
        "p\tr\ns",
    );
    // A user may name a copy like this.
    for name in ["work.json", "a\tb\nc.json"] {
        sandbox.write_session(name, &conversation);
    }
    let listed = sandbox.q(&["--list"]).run();
    let text = listed.stdout_text();
    let fields: Vec<_> = text.lines().map(|line| line.split('\t').count()).collect();
    listed.check(fields == [5, 5], || {
        "expected two lines of five fields".to_owned()
    });
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "other systems have no such names")]
fn a_list_shows_files_whose_names_are_not_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::new();
    sandbox.write_current(&stored(&["one", "two", "three", "four"]));
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.json");
    fs::write(
        sandbox.sessions().join(name),
        stored(&["one", "two"]).to_string(),
    )
    .unwrap();
    let listed = sandbox.q(&["--list"]).run();
    listed.exit(0).stdout_contains("caf").stdout_contains(ID);
    let listed = sandbox.q(&["--list", "--json"]).run();
    listed.exit(0);
    let list = listed.stdout_json();
    let named = list
        .as_array()
        .is_some_and(|list| list.iter().any(|one| one["name"] == ID));
    listed.check(named, || "expected the other conversation too".to_owned());
}

#[test]
fn a_list_on_a_terminal_shows_name_age_and_question_in_its_width() {
    let sandbox = Sandbox::new();
    let long = format!(
        "<context>\n{}\n</context>\n\nwhy is 日本語 shown {}",
        "log\n".repeat(99),
        "so ".repeat(99)
    );
    for (name, idle, question) in [
        (ARCHIVED, 40 * DAY, "tab\tand \u{1b}[31mescape"),
        ("work.json", 3 * HOUR, &long),
        (OTHER, 5 * MINUTE, "what is a rebase?"),
    ] {
        sandbox.write_session(name, &idle_for(idle, &[question, "x"]));
        age(&sandbox.sessions().join(name), idle);
    }
    sandbox.link("current.json", OTHER);
    let lines = on_terminal(&sandbox, &["--list"], 60);
    let expected = [
        "* 1  session_20260115000000000   5m  what is a rebase?",
        "  2  work                        3h  why is 日本語 shown so…",
        "  3  session_20260102030405678  40d  tab and ^[[31mescape",
    ];
    assert_eq!(lines, expected);
    // An earlier state has no number: the numbers are those of the plain list.
    sandbox.write_session("work~1.json", &idle_for(HOUR, &["one", "two"]));
    age(&sandbox.sessions().join("work~1.json"), 4 * HOUR);
    let lines = on_terminal(&sandbox, &["--list", "--all"], 60);
    assert!(
        lines[2].starts_with("     work~1 ") && lines[3].starts_with("  3  session_"),
        "{lines:?}"
    );
}

#[test]
fn a_folder_is_no_conversation() {
    let sandbox = Sandbox::new();
    sandbox.write_session("work.json", &stored(&["one", "two"]));
    std::fs::create_dir(sandbox.sessions().join("folder.json")).expect("a folder");
    assert_eq!(
        sandbox
            .q(&["--list"])
            .run()
            .success()
            .stdout_text()
            .lines()
            .count(),
        1
    );
}

#[test]
fn a_terminal_without_a_size_has_80_columns() {
    let sandbox = Sandbox::new();
    sandbox.write_session(
        "work.json",
        &idle_for(HOUR, &["so ".repeat(99), "x".to_owned()]),
    );
    let listed = |columns: u16| {
        let terminal = Terminal::new(columns);
        sandbox
            .q(&["--list"])
            .stdout_to(terminal.end())
            .run()
            .success();
        String::from_utf8(terminal.bytes()).expect("text")
    };
    assert_eq!(listed(0), listed(80));
}

#[test]
fn a_list_on_a_terminal_is_no_longer_than_the_screen() {
    let sandbox = Sandbox::new();
    for number in 0..60 {
        let name = format!("talk-{number:02}.json");
        sandbox.write_session(
            &name,
            &stored(&[format!("question {number}"), "x".to_owned()]),
        );
        // Only what is shown is opened, or there would be a note.
        if number >= 50 {
            sandbox.write_bytes(&name, "{");
        }
        age(&sandbox.sessions().join(&name), number * HOUR);
    }
    // The terminals of tests have 50 lines; one is for the shell's prompt.
    let lines = on_terminal(&sandbox, &["--list"], 80);
    assert_eq!(lines.len(), 49);
    assert!(
        lines[0].ends_with("question 0") && lines[47].ends_with("question 47"),
        "{lines:?}"
    );
    assert!(lines[48].trim().starts_with("12 more"), "{lines:?}");
    assert_eq!(
        sandbox
            .q(&["--list"])
            .run()
            .exit(0)
            .stdout_text()
            .lines()
            .count(),
        50
    );
}

/// What a list shows on a terminal of so many columns.
#[track_caller]
fn on_terminal(sandbox: &Sandbox, args: &[&str], columns: u16) -> Vec<String> {
    let terminal = Terminal::new(columns);
    sandbox.q(args).stdout_to(terminal.end()).run().success();
    let mut lines = terminal.screen();
    assert_eq!(lines.pop().as_deref(), Some(""));
    lines
}

#[test]
fn words_find_the_messages_that_have_all_of_them_in_any_case() {
    let sandbox = Sandbox::new();
    for (name, texts) in [
        (
            "trees.json",
            &[
                "Wie alt werden Bäume?",
                "Eine EICHE wird tausend Jahre alt.\nÜber 1000!",
            ][..],
        ),
        (
            "code.json",
            &[
                "<context>\nfn wald() {}\n</context>\n\nwhy?",
                "a \"quoted\" and a back\\slash",
            ],
        ),
        ("apart.json", &["eiche", "baum"]),
        ("greek.json", &["ΟΔΥΣΣΕΥΣ, Οδυσσεύς", "İSTANBUL"]),
    ] {
        sandbox.write_session(name, &idle_for(HOUR, texts));
    }
    for (words, found) in [
        (&["eiche"][..], &["apart", "trees"][..]),
        (&["EICHE", "JAHRE"], &["trees"]),
        (&["bäume"], &["trees"]),
        (&["BÄUME"], &["trees"]),
        (&["οδυσσευς"], &["greek"]),
        (&["ΟΔΥΣΣΕΥΣ"], &["greek"]),
        (&["İstanbul"], &["greek"]),
        (&["über"], &["trees"]),
        // Each in another message.
        (&["eiche", "baum"], &[]),
        (&["wald"], &["code"]),
        // The text itself, and not its JSON.
        (&["\"quoted\""], &["code"]),
        (&["back\\slash"], &["code"]),
        (&["\\n"], &[]),
        (&["assistant"], &[]),
        (&["tausend jahre"], &["trees"]),
        (&["tausend  jahre"], &[]),
    ] {
        let _case = case(words);
        let listed = sandbox.q(&["--list"]).args(words).run();
        listed.exit(0);
        let mut names: Vec<String> = listed
            .stdout_text()
            .lines()
            .map(|line| line.split('\t').next().unwrap().to_owned())
            .collect();
        names.sort();
        listed.check(names == found, || format!("expected {found:?}"));
        listed.check(listed.stderr.is_empty() != found.is_empty(), || {
            "expected a note for nothing".to_owned()
        });
    }
}

#[test]
fn the_place_that_was_found_is_shown() {
    let sandbox = Sandbox::new();
    let texts = [
        "what grows?",
        "Many things grow there, among them the old oak of the village and a pear",
    ];
    sandbox.write_session("trees.json", &idle_for(3 * HOUR, &texts));
    let place = "…grow there, among them the old oak of the village and a pear";
    let fields = |listed: &Outcome| {
        listed
            .stdout_text()
            .trim_end()
            .split('\t')
            .next_back()
            .map(str::to_owned)
    };
    assert_eq!(
        fields(sandbox.q(&["--list", "AMONG", "oak"]).run().success()).as_deref(),
        Some(place)
    );
    let listed = sandbox
        .q(&["--list", "--json", "among"])
        .run()
        .success()
        .stdout_json();
    assert_eq!(
        (&listed[0]["match"], &listed[0]["question"]),
        (&json!(place), &json!("what grows?"))
    );
    let lines = on_terminal(&sandbox, &["--list", "among"], 40);
    assert_eq!(lines, ["  1  trees  3h  …grow there, among them…"]);
}

#[test]
fn last_weeks_conversation_is_found_by_a_word_and_continued() {
    let (server, sandbox) = numbered();
    sandbox.write_session(OTHER, &other(&["how do I prune a vine?", "In February."]));
    age(&sandbox.sessions().join(OTHER), 7 * DAY);
    sandbox.write_session("other.json", &idle_for(DAY, &["one", "two"]));
    let script =
        "q -s \"$(q --list --json vine | sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/')\" 'how much?'";
    sandbox.shell(script).run().success().stdout("answer 0\n");
    assert!(prompt(&server.request()).contains("how do I prune a vine?"));
    // The name in the list works too.
    sandbox
        .shell("q -s \"$(q --list vine | cut -f1)\" 'when?'")
        .run()
        .success();
    let kept = [
        "how do I prune a vine?",
        "In February.",
        "how much?",
        "answer 0",
        "when?",
        "answer 1",
    ];
    sandbox.expect_texts(OTHER, &kept);
}
