//! Images and PDFs in the files of conversations: kept as they are, named where a conversation is shown, the first to go
//! where it grows too large.

use serde_json::{Value, json};

use crate::fixtures::{
    CREATED, HOUR, LARGEST, PIXEL, attachment, case, idle_for, numbered, stored, texts, with, with_attachments,
};

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
    let text = "x".repeat(2_000_000);
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
            "goes on without the contents of its oldest attachment; all of it is in",
        ),
        (
            "more data",
            with_attachments(
                idle_for(HOUR, &["one", "1", &text, &text, &text, "3"]),
                0,
                &[image("a", 1000), image("b", third), image("c", 1000)],
            ),
            &[("a", false), ("b", false), ("c", true)],
            8,
            "goes on without the contents of its 2 oldest attachments; all of it is in",
        ),
        (
            "data and messages",
            with_attachments(idle_for(HOUR, &[&text, &text, &text, &text, "three", "3"]), 4, &[image("a", 900_000)]),
            &[("a", false)],
            6,
            "goes on with its newest 6 messages and without the contents of its oldest attachment; all of it is in",
        ),
        (
            "messages",
            with_attachments(idle_for(HOUR, &[&text, &text, &text, &text, "three", "3"]), 0, &[image("a", 900_000)]),
            &[],
            6,
            "goes on with its newest 6 messages; all of it is in",
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
        .stderr_contains("more than 10000000 bytes: it goes on without the contents of its oldest attachment");
    let continued = sandbox.session("work.json");
    assert_eq!((kept(&continued), texts(&continued).len()), (vec![("a", false)], 4));
    sandbox.expect_bytes(&sandbox.only_archived(), before);
}
