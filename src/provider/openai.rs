//! OpenAI's chat completions, as it and the many compatible servers speak them: requests and replies (pure).

mod body;
mod chunk;

use super::dialect::Dialect;
use super::request::OptionalField;
use super::tool_schema::ToolSchemas;
use crate::server_url::Version;

/// Chat completions, as most servers speak them.
pub static DIALECT: Dialect = Dialect {
    name: "openai",
    version: Version::InBaseUrl,
    models_path: "/models",
    next_models: "after",
    fixed_headers: &[],
    key_header: ("authorization", "Bearer "),
    takes_bearer: false,
    chat: |prompt, quirks| ("/chat/completions".to_owned(), body::body(prompt, quirks)),
    event: chunk::read_event,
    whole: chunk::read_whole,
    reply_fields: &["choices", "id", "object", "created", "usage"],
    ends_with_done: |_| Ok(true),
    optional_fields: &[
        (OptionalField::Effort, "/reasoning_effort"),
        (OptionalField::Form, "/response_format"),
        (OptionalField::Usage, "/stream_options"),
        (OptionalField::Limit, "/max_tokens"),
        (OptionalField::Limit, "/max_completion_tokens"),
        (OptionalField::System, "/messages"),
        (OptionalField::ReasonedTurns, "/messages"),
        (OptionalField::UnreasonedTurns, "/messages"),
    ],
    enforces_maps: true,
    searches: false,
    groups_tools: false,
    tool_schemas: ToolSchemas::Any,
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::attachment::tests::{image, pdf, question};
    use super::super::dialect::tests::{calls_of, prompt, replied_with_tools};
    use super::super::table;
    use super::body::{answer_of, body};
    use super::chunk::usage_of;
    use super::*;
    use crate::message::{Step, ToolRun};
    use crate::provider::counts::Counts;
    use crate::provider::reply::Reply;
    use crate::provider::request::{Prompt, Quirks};

    fn json(prompt: &Prompt, quirks: Quirks) -> Value {
        body(prompt, quirks)
    }

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    fn image_part() -> Value {
        json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1n"}})
    }

    #[test]
    fn mistral_takes_a_pdf_as_the_url_of_a_document() {
        let prompt = Prompt {
            messages: vec![question(vec![pdf(), image()], "why")],
            system: "",
            ..prompt()
        };
        let document =
            json!({"type": "document_url", "document_url": "data:application/pdf;base64,cGRm"});
        let mistral = table::find("mistral").expect("a row").quirks;
        assert_eq!(
            json(&prompt, mistral)["messages"][0]["content"],
            json!([document, image_part(), text("why")])
        );
    }

    #[test]
    fn the_token_limit_is_sent_under_its_other_name_once_the_usual_one_is_rejected() {
        for (knows_new_name, rejected_fields, name) in [
            (false, &[][..], "max_tokens"),
            (true, &[], "max_completion_tokens"),
            (false, &[OptionalField::Limit], "max_completion_tokens"),
            (true, &[OptionalField::Limit], "max_tokens"),
        ] {
            let quirks = Quirks {
                max_completion_tokens: knows_new_name,
                ..table::OPENAI_LIKE.quirks
            };
            let prompt = Prompt {
                max_tokens: Some(9),
                rejected_fields,
                ..prompt()
            };
            let body = json(&prompt, quirks);
            let names = ["max_tokens", "max_completion_tokens"];
            let found = names.map(|name| body.get(name).is_some());
            assert_eq!(
                found,
                names.map(|other| other == name),
                "{rejected_fields:?}"
            );
        }
    }

    #[test]
    fn calls_and_reasoning_that_come_once_more_in_a_message_are_taken_once() {
        let call = |arguments: &str| json!([{"function": {"name": "a", "arguments": arguments}}]);
        let of = |form: &str, part: Value| json!({"choices": [{(form): part}]}).to_string();
        let thought = json!({"reasoning": "hm"});
        let all = json!({"content": "", "reasoning": "hm", "tool_calls": call("{\"n\": 1}")});
        let called = json!({"tool_calls": call("{\"n\":1}")});
        for events in [
            &[
                of("delta", thought.clone()),
                of("delta", called.clone()),
                of("message", all.clone()),
            ][..],
            &[of("delta", thought.clone()), of("message", all.clone())],
            &[of("message", thought), of("message", called)],
            &[of("message", all)],
        ] {
            let mut reply = reply_of(events, "tool_calls");
            let arguments = reply.turn.calls()[0].arguments.replace(' ', "");
            let found = (reply.turn.calls().len(), arguments);
            assert_eq!(found, (1, "{\"n\":1}".to_owned()), "{events:?}");
            assert_eq!(reply.take_piece(true).reasoning, "hm", "{events:?}");
        }
    }

    #[test]
    fn reasoning_tokens_that_only_the_total_has_are_output_unless_there_is_audio() {
        for (usage, output) in [
            (
                r#"{"prompt_tokens":4,"completion_tokens":3,"total_tokens":7}"#,
                3,
            ),
            (
                r#"{"prompt_tokens":4,"completion_tokens":3,"total_tokens":57}"#,
                53,
            ),
            (
                r#"{"prompt_tokens":4,"completion_tokens":3,"total_tokens":57,"prompt_audio_seconds":2}"#,
                3,
            ),
            (
                r#"{"prompt_tokens":4,"completion_tokens":3,"total_tokens":57,"prompt_audio_seconds":null}"#,
                53,
            ),
        ] {
            let counts: Counts = serde_json::from_str(usage).expect(usage);
            assert_eq!(usage_of(&counts).output_tokens, Some(output), "{usage}");
        }
    }

    /// An event of a stream with these fragments of calls.
    fn event(fragments: &Value) -> String {
        json!({"choices": [{"delta": {"content": null, "tool_calls": fragments}}]}).to_string()
    }

    fn reply_of(events: &[String], word: &str) -> Reply {
        let finish = json!({"choices": [{"delta": {}, "finish_reason": word}]}).to_string();
        let events: Vec<&str> = events
            .iter()
            .chain([&finish])
            .map(String::as_str)
            .chain(["[DONE]"])
            .collect();
        replied_with_tools(&DIALECT, &events)
    }

    #[test]
    fn extra_fields_of_a_call_stay_with_it_after_a_call_that_says_nothing() {
        let signed = |id: &str, name: &str, arguments: &str, signature: &str| {
            let function = json!({"name": name, "arguments": arguments});
            let extra = json!({"google": {"thought_signature": signature}});
            json!({"id": id, "function": function, "extra_content": extra})
        };
        let calls = json!([
            signed("x", "", "", "of none"),
            signed("y", "a", "{}", "s"),
            {"id": "z", "function": {"name": "a", "arguments": "{}"}},
        ]);
        let reply = reply_of(&[event(&calls)], "tool_calls");
        let runs = reply.turn.calls().iter();
        let step = Step {
            calls: runs.map(|call| ToolRun::new(call, "done", false)).collect(),
            echo: reply.turn.echo(),
            ..Step::default()
        };
        let sent = &answer_of(&step, &prompt(), table::OPENAI_LIKE.quirks)["tool_calls"];
        let signature = &sent[0]["extra_content"]["google"]["thought_signature"];
        assert_eq!((&sent[0]["id"], signature), (&json!("y"), &json!("s")));
        assert_eq!(
            (&sent[1]["id"], sent[1].get("extra_content")),
            (&json!("z"), None)
        );
    }

    proptest! {
        #[test]
        fn arguments_of_a_call_are_the_same_however_they_are_split(
            text in "[a-z0\"\\\\ä😀{}]{0,20}", sizes in prop::collection::vec(0usize..5, 0..9),
        ) {
            let arguments = json!({"text": text}).to_string();
            let mut rest: Vec<char> = arguments.chars().collect();
            let mut events = vec![event(&json!([{"index": 0, "id": "x", "function": {"name": "a"}}]))];
            for size in sizes.into_iter().chain([usize::MAX]) {
                let piece: String = rest.drain(..size.min(rest.len())).collect();
                events.push(event(&json!([{"index": 0, "function": {"arguments": piece}}])));
            }
            let reply = reply_of(&events, "tool_calls");
            prop_assert_eq!(calls_of(&reply), [("x", "a", arguments.as_str())]);
        }
    }
}
