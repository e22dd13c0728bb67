//! How `--list` shows conversations on a terminal.

use crate::conversations::{ARCHIVED, EARLIER, OTHER, idle_for, stored};
use crate::sandbox::Sandbox;
use crate::times::{DAY, HOUR, MINUTE, age};

#[test]
fn a_list_on_a_terminal_shows_number_name_age_and_question_in_its_width() {
    let sandbox = Sandbox::new();
    let (logs, rest) = ("log\n".repeat(99), "so ".repeat(99));
    let long = format!("<context>\n{logs}\n</context>\n\nwhy is 日本語 shown {rest}");
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
        "* %1          5m  what is a rebase?",
        "  %2  work    3h  why is 日本語 shown so so so so so so so …",
        "  %3         40d  tab and ^[[31mescape",
    ];
    assert_eq!(lines, expected);
    let narrow = on_terminal(&sandbox, &["--list"], 20);
    assert_eq!(narrow[1], "  %2  work    3h  w…");
    // A backup has no number: the numbers are those of the plain list. Its name is shown whole, because nothing else names it.
    sandbox.write_session("work~1.json", &idle_for(HOUR, &["one", "two"]));
    age(&sandbox.sessions().join("work~1.json"), 4 * HOUR);
    sandbox.write_session(EARLIER, &idle_for(HOUR, &["one", "two"]));
    age(&sandbox.sessions().join(EARLIER), 50 * DAY);
    let lines = on_terminal(&sandbox, &["--list", "--all"], 60);
    let expected = [
        "* %1                                 5m  what is a rebase?",
        "  %2  work                           3h  why is 日本語 show…",
        "      work~1                         1h  one",
        "  %3                                40d  tab and ^[[31mesca…",
        "      session_20260102030405678~1    1h  one",
    ];
    assert_eq!(lines, expected);
    let is_listed = |line: &String| line.contains('~');
    assert!(!on_terminal(&sandbox, &["--list"], 60).iter().any(is_listed));
    // The only question may have been taken back.
    sandbox.write_session(OTHER, &idle_for(5 * MINUTE, &[] as &[&str]));
    let lines = on_terminal(&sandbox, &["--list"], 60);
    let now = &lines[0];
    assert!(
        now.starts_with("* %1") && now.ends_with("  (empty)"),
        "{now}"
    );
}

#[test]
fn a_terminal_without_a_size_has_80_columns() {
    let sandbox = Sandbox::new();
    let conversation = idle_for(HOUR, &["so ".repeat(99), "x".to_owned()]);
    sandbox.write_session("work.json", &conversation);
    let listed = |columns: u16| sandbox.q(&["--list"]).shown_on(columns).text();
    assert_eq!(listed(0), listed(80));
}

#[test]
fn a_list_on_a_terminal_is_no_longer_than_the_screen() {
    let sandbox = Sandbox::new();
    for number in 0..60 {
        let name = format!("talk-{number:02}.json");
        let conversation = stored(&[format!("question {number}"), "x".to_owned()]);
        sandbox.write_session(&name, &conversation);
        // Only what is shown is opened, or there would be a note.
        if number >= 50 {
            sandbox.write_bytes(&name, "{");
        }
        age(&sandbox.sessions().join(&name), number * HOUR);
    }
    // The terminals of tests have 50 lines; one is for the shell's prompt.
    let lines = on_terminal(&sandbox, &["--list"], 80);
    assert_eq!(lines.len(), 49);
    let is_right = lines[0].ends_with("question 0") && lines[47].ends_with("question 47");
    assert!(is_right, "{lines:?}");
    assert!(
        lines[48]
            .trim()
            .starts_with("12 more; in a pipe, --list prints all"),
        "{lines:?}"
    );
    // A search reads them all.
    let lines = on_terminal(&sandbox, &["-q", "--list", "question"], 80);
    assert!(
        lines[48]
            .trim()
            .starts_with("2 more; in a pipe, --list prints all"),
        "{lines:?}"
    );
    let listed = sandbox.q(&["--list"]).run().exit(0).stdout_text();
    assert_eq!(listed.lines().count(), 50);
    // What cannot be listed is not among those that are left out.
    sandbox.write_bytes("talk-20.json", "{");
    let lines = on_terminal(&sandbox, &["-q", "--list"], 80);
    assert!(
        lines[48]
            .trim()
            .starts_with("11 more; in a pipe, --list prints all"),
        "{lines:?}"
    );
}

/// What a list shows on a terminal of this many columns.
#[track_caller]
fn on_terminal(sandbox: &Sandbox, args: &[&str], columns: u16) -> Vec<String> {
    let mut lines = sandbox.q(args).shown_on(columns).screen();
    assert_eq!(lines.pop().as_deref(), Some(""));
    lines
}

#[test]
fn a_search_on_a_terminal_shows_the_found_words_within_its_width() {
    let sandbox = Sandbox::new();
    let texts = [
        "what grows?",
        "Many things grow there, among them the old oak of the village and a pear",
    ];
    sandbox.write_session("trees.json", &idle_for(3 * HOUR, &texts));
    let lines = on_terminal(&sandbox, &["--list", "among"], 40);
    assert_eq!(lines, ["  %1  trees    3h  …grow there, among t…"]);
}

#[test]
fn a_list_of_unnamed_conversations_has_no_column_for_names() {
    let sandbox = Sandbox::new();
    for number in 10..22 {
        let name = format!("session_202601020304056{number}.json");
        sandbox.write_session(
            &name,
            &idle_for(HOUR, &[format!("question {number}"), "x".to_owned()]),
        );
        age(&sandbox.sessions().join(&name), (30 - number) * MINUTE);
    }
    let lines = on_terminal(&sandbox, &["--list"], 40);
    assert_eq!(lines[0], "   %1    1h  question 21");
    assert_eq!(lines[11], "  %12    1h  question 10");
    // Each number names its conversation.
    sandbox.q(&["-s", "%12", "--undo"]).run().exit(2);
    let shown = sandbox.q(&["-s", "%12", "--history"]).run();
    let text = shown.exit(0).stdout_text();
    assert!(text.contains("question 10"), "{text}");
}
