//! The JSON of a conversation's file, version 1; fields that q does not know keep their values (pure).

use std::io;

use serde_json::Value;

use super::conversation::{Conversation, VERSION};
use crate::text::surrogates;

/// The most bytes of a conversation's file.
pub const MAX_SIZE: usize = 10_000_000;

/// Reads a file's bytes. The error says why it cannot be used as a conversation.
pub fn read(bytes: &[u8]) -> Result<Conversation, String> {
    // To check all of it once is faster than each string for itself.
    let text = str::from_utf8(bytes).map_err(|error| format!("it cannot be parsed ({error})"))?;
    let parsed = surrogates::lossy::<Conversation>(text);
    let version = if let Ok(conversation) = &parsed {
        conversation.version
    } else {
        // Its other fields need not be those that q knows.
        let file: Value = serde_json::from_str(text).unwrap_or_default();
        file["version"].as_u64().unwrap_or(VERSION)
    };
    if version != VERSION {
        return Err(format!(
            "it has version {version}, but q reads version {VERSION}"
        ));
    }
    parsed.map_err(|error| format!("it cannot be parsed ({error})"))
}

/// The file of a conversation: JSON, one message a line. It must not have more than [`MAX_SIZE`].
pub fn to_bytes(conversation: &Conversation) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(conversation)?;
    // The messages follow in place of the last brace.
    bytes.pop();
    bytes.extend_from_slice(b",\"messages\":[");
    for (index, entry) in conversation.entries().enumerate() {
        if index > 0 {
            bytes.push(b',');
        }
        bytes.push(b'\n');
        serde_json::to_writer(&mut bytes, entry)?;
    }
    bytes.extend_from_slice(b"\n]}\n");
    if bytes.len() > MAX_SIZE {
        let reason = format!("it has more than {MAX_SIZE} bytes");
        return Err(io::Error::other(reason));
    }
    Ok(bytes)
}

/// The file of a conversation that has changed. If it would be too large, the results of tool calls are cut, and then
/// the oldest exchanges are removed. The last one stays.
pub(super) fn to_fitting_bytes(conversation: &mut Conversation) -> io::Result<Vec<u8>> {
    let mut bytes = to_bytes(conversation);
    if bytes.is_err() {
        conversation.cut_results();
        bytes = to_bytes(conversation);
    }
    while bytes.is_err() && conversation.exchanges.len() > 1 {
        // A tenth at a time, or every further exchange would remove one and keep another earlier state.
        let kept = conversation.exchanges.len() * 9 / 10;
        conversation.keep_last(kept);
        bytes = to_bytes(conversation);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::conversation::tests::conversation;
    use super::*;
    use crate::message::tests::rows;
    use crate::message::{Step, ToolCall, ToolRun};

    fn file(messages: &str) -> String {
        format!(
            r#"{{"version":1,"provider":"p","model":"m","created":"2026-11-21T10:00:00.000Z","updated":"2026-11-21T10:00:00Z","messages":{messages}}}"#
        )
    }

    fn rewritten(text: &str) -> Value {
        let conversation =
            read(text.as_bytes()).unwrap_or_else(|unusable| panic!("{text}: {unusable}"));
        serde_json::from_slice(&to_bytes(&conversation).expect("bytes")).expect("JSON")
    }

    #[test]
    fn what_q_does_not_know_keeps_its_value() {
        let deep = format!("{}1{}", "[".repeat(1000), "]".repeat(1000));
        for message in [
            r#"{"role":"user","content":"a","timestamp":"2026-11-23 10:00"}"#,
            r#"{"role":"user","content":"a","input_alone":true,"x":1}"#,
            r#"{"role":"user","content":"a","x":{"b":1.50,"a":[1e+400,12345678901234567890123]}}"#,
            r#"{"role":"user","content":"a","attachments":[{"name":"n","type":"image/png","data":"AAAA","x":1}]}"#,
            r#"{"role":"user","content":"a","attachments":[{"name":"n","type":"image/png"}]}"#,
            &format!(
                r#"{{"role":"assistant","content":"a","steps":[{{"calls":[{{"id":"1","name":"t","arguments":{deep},"result":"r","x":1}}],"y":2.0}}]}}"#
            ),
            r#"{"role":"assistant","content":"a","steps":[{"text":"t","calls":[{"id":"1","name":"t","arguments":"not JSON","result":"r","error":true}]}]}"#,
        ] {
            let text = file(&format!("[{message}]")).replacen('{', r#"{"z":{"y":[1.10]},"#, 1);
            let written = read(text.as_bytes()).and_then(|read| {
                String::from_utf8(to_bytes(&read).expect("bytes"))
                    .map_err(|error| error.to_string())
            });
            let written = written.expect("a file");
            assert!(written.contains(message), "{written}\nlacks\n{message}");
            assert!(written.contains(r#""z":{"y":[1.10]}"#), "{written}");
        }
    }

    #[test]
    fn optional_fields_may_be_null_and_text_may_have_lone_surrogates() {
        let message = r#"{"role":"assistant","content":"a\ud800b","timestamp":null,"attachments":null,"input_alone":null,"interrupted":null,"finish":null,"provider":null,"model":null,"steps":null}"#;
        let text = file(&format!("[{message}]")).replacen(
            '{',
            r#"{"system":null,"tools":null,"pinned":null,"#,
            1,
        );
        let expected = json!([{"role": "assistant", "content": "a\u{fffd}b"}]);
        assert_eq!(rewritten(&text)["messages"], expected);
    }

    #[test]
    fn a_file_that_cannot_be_read_completely_is_unusable() {
        let good = file("[]");
        let mut texts = vec![good[1..].to_owned(), format!("{good}x")];
        let changes = r#"
            "p" | 7
            [] | null
            :1, | :"1",
            "version":1, | -
            2026-11-21T10:00:00Z | 5
            2026-11-21T10:00:00.000Z | yesterday
            {" | {"model":"twice","
            [] | {}
            [] | [["user","a"]]
            [] | [{"role":"system","content":"a"}]
            [] | [{"role":"user"}]
            [] | [{"content":"a"}]
            [] | [{"role":5,"content":"a"}]
            [] | [{"role":"user","content":"a","role":"user"}]
            [] | [{"role":"user","content":null}]
            [] | [{"role":"user","content":[{"text":"a"}]}]
            [] | [{"role":"user","content":"a","content":"b"}]
            [] | [{"role":"user","content":"a","timestamp":"x","timestamp":"x"}]
            [] | [{"role":"user","content":"a","interrupted":"yes"}]
            [] | [{"role":"assistant","content":"a","model":7}]
            [] | [{"role":"user","content":"a","attachments":{}}]
            [] | [{"role":"user","content":"a","attachments":[{}]}]
            [] | [{"role":"user","content":"a","attachments":[{"name":"a","type":"b","data":7}]}]
            [] | [{"role":"user","content":"a","attachments":[{"name":"a","name":"b","type":"c","data":""}]}]
            [] | [{"role":"user","content":"a","steps":[{}]}]
            [] | [{"role":"assistant","content":"a","steps":[{"calls":7}]}]
            [] | [{"role":"user","content":"a","steps":[{"calls":[["1","t",{},"r"]]}]}]"#;
        for [from, to] in rows(changes) {
            assert!(good.contains(from), "{from}");
            texts.push(good.replacen(from, to, 1));
        }
        texts.extend(["", "[]", "{}", "hello\n"].map(str::to_owned));
        for text in texts {
            let unusable = read(text.as_bytes()).expect_err(&text);
            let is_right = unusable.starts_with("it cannot be parsed (");
            assert!(is_right, "{text}: {unusable}");
        }
        let wrong = file(r#"[{"role":"user","content":3}]"#);
        let reason = "it cannot be parsed (invalid type: integer `3`, expected a string at line 1 column 148)";
        assert_eq!(read(wrong.as_bytes()), Err(reason.to_owned()));
    }

    #[test]
    fn a_file_may_have_as_many_bytes_as_are_read_and_no_more() {
        let rest = to_bytes(&conversation(&[("one", "")]))
            .expect("bytes")
            .len();
        for (more, fits) in [(0, true), (1, false)] {
            let written = to_bytes(&conversation(&[(
                "one",
                &"x".repeat(MAX_SIZE - rest + more),
            )]));
            let found = written
                .map_err(|error| error.kind())
                .is_ok_and(|bytes| read(&bytes).is_ok());
            assert_eq!(found, fits, "{more}");
        }
    }

    #[test]
    fn a_conversation_that_would_be_too_large_loses_a_tenth_and_never_its_end() {
        for (count, size, left) in [(100, 99_000, 100), (100, 101_000, 90), (3, 5_000_000, 1)] {
            let answer = "x".repeat(size);
            let mut shrunk = conversation(&vec![("", answer.as_str()); count]);
            let last = shrunk.exchanges.last().cloned();
            to_fitting_bytes(&mut shrunk).expect("it fits");
            assert_eq!(shrunk.exchanges.len(), left, "{count} {size}");
            assert_eq!(shrunk.exchanges.last().cloned(), last);
        }
        let too_large = "x".repeat(MAX_SIZE);
        let alone = to_fitting_bytes(&mut conversation(&[("", &too_large)]));
        assert!(alone.is_err());
        // Results go before exchanges do.
        let mut with_results = conversation(&[("", ""), ("", "")]);
        let run = ToolRun::new(&ToolCall::default(), &too_large, false);
        with_results.exchanges[1].entries[1].steps = vec![Step {
            calls: vec![run],
            ..Step::default()
        }];
        to_fitting_bytes(&mut with_results).expect("it fits");
        assert_eq!(with_results.exchanges.len(), 2);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_again(texts in prop::collection::vec((".*", ".*"), 0..5), system in prop::option::of(".*"), pinned: bool) {
            let pairs: Vec<(&str, &str)> = texts.iter().map(|(question, answer)| (question.as_str(), answer.as_str())).collect();
            let mut written = conversation(&pairs);
            (written.system, written.pinned) = (system, pinned);
            prop_assert_eq!(read(&to_bytes(&written).expect("bytes")), Ok(written));
        }
    }
}
