//! Images and PDFs in the files of conversations: kept as they are, and named where a conversation is shown.

use serde_json::{Value, json};

use crate::fixtures::{
    CREATED, HOUR, ID, PIXEL, STORED_MODEL, UPDATED, attachment, case, id_of, idle_for, numbered, stored, texts,
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

#[test]
fn a_follow_up_leaves_attachments_as_the_file_has_them() {
    for (name, ask) in [("current.json", &["-f", "more"][..]), ("work.json", &["-s", "work", "more"])] {
        let (server, sandbox) = numbered();
        let talked = talked();
        sandbox.write_session(name, &talked);
        sandbox.q(ask).run().success().stderr_is_empty();
        assert_eq!(sandbox.session(name)["messages"][0], talked["messages"][0]);
        assert_eq!(texts(&sandbox.session(name))[4], "more");
        server.expect_requests(1);
    }
}

#[test]
fn a_history_names_attachments() {
    let attachments = [
        error_png(),
        attachment("big\u{1b}[31m.pdf\n[x]", "application/pdf", &"A".repeat(164_000)),
        attachment("old.webp", "image/webp", PIXEL),
    ];
    let conversation = with_attachments(stored(&["what is it?", "a", "", "b"]), 0, &attachments);
    let conversation = with_attachments(conversation, 2, &attachments[..1]);
    let sandbox = Sandbox::new();
    sandbox.write_current(&conversation);
    let big = "[attached: big\u{1b}[31m.pdf [x], application/pdf, 123 kB]\n";
    let expected = format!(
        "[user {CREATED}]\n[attached: error.png, image/png, 1 kB]\n{big}\
         [attached: old.webp, image/webp, 1 kB]\nwhat is it?\n\n[assistant {CREATED}]\na\n\n\
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
            vec![error_png(), image("b.png", 8), attachment("c\n.pdf", "application/pdf", PIXEL)],
            "q: the question had error.png, b.png and c .pdf attached, which are not printed\n",
        ),
        (vec![], ""),
    ] {
        for json in [false, true] {
            let _case = case((note, json));
            let sandbox = Sandbox::new();
            let talked = talked();
            sandbox.write_current(&with_attachments(talked.clone(), 2, &attachments));
            let before = sandbox.read_bytes("current.json");
            let args = if json { &["--undo", "--json"][..] } else { &["--undo"] };
            let id = id_of(&talked);
            let printed = match json {
                true => format!("{{\"id\":\"{id}\",\"question\":\"and now?\"}}\n"),
                false => "and now?\n".to_owned(),
            };
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
        let line = format!("{ID}\t{UPDATED}\t2\topenai/{STORED_MODEL}\t{question}\n");
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
