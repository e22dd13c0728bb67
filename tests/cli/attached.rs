//! Images and PDFs in the files of conversations: kept as they are, named where a conversation is shown, the first to go
//! where it grows too large.

use serde_json::{Value, json};

use crate::fixtures::{
    CREATED, HOUR, LARGEST, PIXEL, STORED_MODEL, UPDATED, attachment, case, idle_for, numbered, stored, texts, with,
    with_attachments,
};
use crate::pty::Terminal;
use crate::sandbox::Sandbox;

/// Two exchanges, of which the first question has an image.
fn talked() -> Value {
    with_attachments(idle_for(HOUR, &["what went wrong?", "a", "and now?", "b"]), 0, &[error_png()])
}

fn error_png() -> Value {
    attachment("error.png", "image/png", PIXEL)
}

/// An image that has so many bytes in base64.
fn image(name: &str, bytes: usize) -> Value {
    attachment(name, "image/png", &"A".repeat(bytes))
}

/// The names of the images of a conversation, and whether they have data.
fn kept(conversation: &Value) -> Vec<(&str, bool)> {
    let messages = conversation["messages"].as_array().expect("messages");
    let attachments = messages.iter().filter_map(|message| message["attachments"].as_array()).flatten();
    let named = attachments.inspect(|one| assert_eq!(one["type"], "image/png"));
    named.map(|one| (one["name"].as_str().expect("a name"), one.get("data").is_some())).collect()
}

#[test]
fn a_follow_up_leaves_attachments_as_the_file_has_them() {
    // As q writes it, and as another tool may have written it.
    for message in [
        json!({"role": "user", "content": "what is it?", "timestamp": CREATED, "attachments": [error_png()]})
            .to_string(),
        format!(
            r#"{{ "attachments" : [ {{"data": "{}", "x": 1.50, "type":"image/png", "name":"\u00e4.png"}},{{"name":"b.pdf","type":"application/pdf","data":null}} ], "content":"what is it?","role":"user","stars": 1e2}}"#,
            PIXEL.replace('/', "\\/")
        ),
    ] {
        let _case = case(&message);
        let (server, sandbox) = numbered();
        let file = with(idle_for(HOUR, &[""; 0]), "messages", "here").to_string();
        let file = file.replace("\"here\"", &format!("[{message},{{\"role\":\"assistant\",\"content\":\"a\"}}]"));
        for (name, ask) in [("current.json", &["-f", "more"][..]), ("work.json", &["-s", "work", "more"])] {
            sandbox.write_bytes(name, &file);
            sandbox.q(ask).run().success().stderr_is_empty();
            let written = String::from_utf8(sandbox.read_bytes(name)).expect("text");
            sandbox.check(written.contains(&message), || format!("expected {message} in {written}"));
            assert_eq!(texts(&sandbox.session(name))[2], "more");
        }
        server.expect_requests(2);
    }
}

#[test]
fn a_conversation_that_would_grow_too_large_loses_the_oldest_data_first() {
    let text = &*"x".repeat(2_000_000);
    let third = LARGEST * 3 / 10;
    for (what, conversation, left, messages, words) in [
        (
            "data",
            with_attachments(
                with_attachments(idle_for(HOUR, &["one", "1", "two", "2"]), 0, &[image("a", third), image("b", third)]),
                2,
                &[image("c", third)],
            ),
            &[("a", false), ("b", true), ("c", true)][..],
            6,
            "continues without the contents of its oldest attachment; all of it is in",
        ),
        (
            "more data",
            with_attachments(
                idle_for(HOUR, &["one", "1", text, text, text, "3"]),
                0,
                &[image("a", 1000), image("b", third), image("c", 1000)],
            ),
            &[("a", false), ("b", false), ("c", true)],
            8,
            "continues without the contents of its 2 oldest attachments; all of it is in",
        ),
        (
            "data and messages",
            with_attachments(idle_for(HOUR, &[text, text, text, text, "three", "3"]), 4, &[image("a", 900_000)]),
            &[("a", false)],
            6,
            "continues with its newest 6 messages and without the contents of its oldest attachment; all of it is in",
        ),
        (
            "messages",
            with_attachments(idle_for(HOUR, &[text, text, text, text, "three", "3"]), 0, &[image("a", 900_000)]),
            &[],
            6,
            "continues with its newest 6 messages; all of it is in",
        ),
    ] {
        let _case = case(what);
        let (_server, sandbox) = numbered();
        sandbox.write_current(&conversation);
        let before = sandbox.read_bytes("current.json");
        assert!(before.len() < LARGEST, "{} bytes", before.len());
        let more = "y".repeat(1_200_000);
        let outcome = sandbox.q(&["-f", "--messages", "0", "more"]).stdin(&more).run();
        let archived = sandbox.only_archived();
        outcome.exit(0).stdout("answer 0\n").stderr_contains(words).stderr_contains(&archived).stderr_has_lines(1);
        sandbox.expect_bytes(&archived, &before);
        let continued = sandbox.current();
        assert_eq!(kept(&continued), left);
        assert_eq!(texts(&continued).len(), messages);
        let bytes = sandbox.read_bytes("current.json").len();
        outcome.check(bytes <= LARGEST, || format!("expected at most {LARGEST} bytes, not {bytes}"));
    }
}

#[test]
fn another_question_in_its_place_loses_the_oldest_data_too() {
    let (_server, sandbox) = numbered();
    let half = LARGEST / 2 - 100_000;
    let conversation = stored(&["one", "two", &"x".repeat(half), "four"]);
    sandbox.write_session("work.json", &with_attachments(conversation, 0, &[image("a", half)]));
    let before = sandbox.read_bytes("work.json");
    let ask = sandbox.q(&["-s", "work", "--again", "--messages", "0", "shorter"]);
    let outcome = ask.stdin("y".repeat(LARGEST / 2 + 100_000)).run();
    outcome
        .exit(0)
        .stderr_contains("more than 10000000 bytes: it continues without the contents of its oldest attachment");
    let continued = sandbox.session("work.json");
    assert_eq!((kept(&continued), texts(&continued).len()), (vec![("a", false)], 4));
    sandbox.expect_bytes(&sandbox.only_archived(), before);
}

#[test]
fn a_history_names_attachments() {
    let attachments = [
        error_png(),
        attachment("big\u{1b}[31m.pdf\n[x]", "application/pdf", &"A".repeat(164_000)),
        json!({"name": "old.webp", "type": "image/webp"}),
    ];
    let conversation = with_attachments(stored(&["what is it?", "a", "", "b"]), 0, &attachments);
    let conversation = with_attachments(conversation, 2, &attachments[..1]);
    let sandbox = Sandbox::new();
    sandbox.write_current(&conversation);
    let big = "[attached: big\u{1b}[31m.pdf [x], application/pdf, 123 kB]\n";
    let expected = format!(
        "[user {CREATED}]\n[attached: error.png, image/png, 1 kB]\n{big}\
         [attached: old.webp, image/webp, no longer kept]\nwhat is it?\n\n[assistant {CREATED}]\na\n\n\
         [user {CREATED}]\n[attached: error.png, image/png, 1 kB]\n\n\n[assistant {CREATED}]\nb\n"
    );
    sandbox.q(&["--history"]).run().success().stdout(&expected);
    sandbox.q(&["--history", "--json"]).run().success().stdout(format!("{conversation}\n"));
    let terminal = Terminal::new(100);
    sandbox.q(&["--history"]).stdout_to(terminal.end()).run().success();
    let lines = terminal.screen();
    assert_eq!(lines[2], "[attached: big^[[31m.pdf [x], application/pdf, 123 kB]");
}

#[test]
fn an_undo_says_what_its_question_had_attached() {
    for (attachments, note) in [
        (vec![error_png()], "q: the question had error.png attached, which is not printed\n"),
        (
            vec![error_png(), image("b.png", 8), json!({"name": "c\n.pdf", "type": "application/pdf"})],
            "q: the question had error.png, b.png and c .pdf attached, which are not printed\n",
        ),
        (vec![], ""),
    ] {
        for json in [false, true] {
            let _case = case((note, json));
            let sandbox = Sandbox::new();
            sandbox.write_current(&with_attachments(talked(), 2, &attachments));
            let before = sandbox.read_bytes("current.json");
            let args = if json { &["--undo", "--json"][..] } else { &["--undo"] };
            let printed = if json { "{\"question\":\"and now?\"}\n" } else { "and now?\n" };
            sandbox.q(args).run().exit(0).stdout(printed).stderr(note);
            sandbox.expect_texts("current.json", &["what went wrong?", "a"]);
            assert_eq!(sandbox.current()["messages"][0]["attachments"], json!([error_png()]));
            sandbox.expect_bytes(&sandbox.only_archived(), before);
        }
    }
}

#[test]
fn a_list_shows_names_and_never_data() {
    let sandbox = Sandbox::new();
    let shown = |question: &str, attachments: &[Value]| {
        sandbox.write_current(&with_attachments(stored(&[question, "a"]), 0, attachments));
        let listed = sandbox.q(&["--list", "--json"]).run().success().stdout_json();
        let question = listed[0]["question"].as_str().expect("text").to_owned();
        let line = format!("current\t{UPDATED}\t2\topenai/{STORED_MODEL}\t{question}\n");
        sandbox.q(&["--list"]).run().success().stdout(line);
        question
    };
    assert_eq!(shown("what is it?", &[error_png()]), "what is it?");
    assert_eq!(shown("", &[error_png()]), "[error.png]");
    assert_eq!(shown(" \n", &[error_png(), image("a\tb\n.png", 8)]), "[error.png, a b .png]");
    assert_eq!(shown("", &[]), "");
    sandbox.write_current(&talked());
    for words in ["iVBORw0KGgo", "image/png", "error.png"] {
        sandbox.q(&["--list", words]).run().exit(0).stdout_is_empty().stderr_contains("no message");
    }
    sandbox.q(&["--list", "wrong"]).run().success().stdout_contains("what went wrong?").stdout_lacks("iVBOR");
}

#[test]
fn the_last_answer_and_a_copy_are_as_without_attachments() {
    let sandbox = Sandbox::new();
    sandbox.write_current(&talked());
    sandbox.q(&["--last"]).run().success().stdout("b\n").stderr_is_empty();
    sandbox.q(&["--copy", "work"]).run().success();
    assert_eq!(sandbox.session("work.json")["messages"], sandbox.current()["messages"]);
    sandbox.q(&["--last", "-s", "work"]).run().success().stdout("b\n").stderr_is_empty();
}
