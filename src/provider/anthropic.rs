//! Anthropic's Messages API: its requests and its replies (pure).

mod body;
mod reply;

use super::dialect::Dialect;
use super::request::OptionalField;
use super::tool_schema::ToolSchemas;
use crate::server_url::Version;

pub static DIALECT: Dialect = Dialect {
    name: "anthropic",
    version: Version::InPaths(&["/v1"]),
    models_path: "/v1/models?limit=1000",
    next_models: "after_id",
    fixed_headers: &[("anthropic-version", "2023-06-01")],
    key_header: ("x-api-key", ""),
    takes_bearer: true,
    chat: |prompt, _| ("/v1/messages".to_owned(), body::body(prompt)),
    event: reply::read_event,
    whole: reply::read_whole,
    reply_fields: &["type", "role", "stop_reason"],
    ends_with_done: |_| Ok(false),
    optional_fields: &[
        (OptionalField::Effort, "/output_config/effort"),
        (OptionalField::Form, "/output_config/format"),
        (OptionalField::Cache, "/cache_control"),
        (OptionalField::System, "/system"),
        (OptionalField::ToolChoice, "/tool_choice"),
    ],
    enforces_maps: false,
    searches: true,
    groups_tools: false,
    tool_schemas: ToolSchemas::PlainArguments,
};

#[cfg(test)]
mod tests {
    use super::super::dialect::tests::{calls_of, prompt, replied, replied_with_tools, shapes};
    use super::*;
    use crate::provider::reply::Reply;
    use crate::provider::request::{AnswerForm, Prompt};
    use crate::text::table::rows;
    use serde_json::{Value, json};

    fn sent(prompt: &Prompt) -> Value {
        body::body(prompt)
    }

    #[test]
    fn the_effort_is_sent_together_with_the_form_of_the_answer() {
        let [strict, _] = shapes();
        let format = json!({"type": "json_schema", "schema": strict.schema});
        for (form, config) in [
            (AnswerForm::Any, json!({"effort": "low"})),
            (AnswerForm::Object, json!({"effort": "low"})),
            (
                AnswerForm::Shaped(&strict),
                json!({"effort": "low", "format": format}),
            ),
        ] {
            assert_eq!(
                sent(&Prompt {
                    form,
                    effort: Some("low"),
                    ..prompt()
                })["output_config"],
                config,
                "{form:?}"
            );
        }
    }

    #[test]
    fn the_input_of_a_call_is_read_in_each_form_in_which_servers_send_it() {
        // What begins the block, the fragments that follow, and the arguments. Those that are no object are refused later.
        let table = r#"
            {"n":1} | - | {"n":1}
            {} | {"n":1} | {"n":1}
            {} | - | {}
            null | - | {}
            "" | - | {}
            [] | - | {}
            "{\"n\":1}" | - | {"n":1}
            "{\"n\"" | ":1}" | {"n":1}
            {} | "{\"n\"" ":1}" | {"n":1}
            "no" | - | no
            [1] | - | [1]
            5 | - | 5
        "#;
        for [input, fragments, arguments] in rows(table) {
            let block = format!(r#"{{"type":"tool_use","id":"x","name":"a","input":{input}}}"#);
            let mut events = vec![format!(
                r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#
            )];
            for piece in fragments.split_whitespace() {
                let delta = format!(r#"{{"type":"input_json_delta","partial_json":{piece}}}"#);
                events.push(format!(
                    r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#
                ));
            }
            events
                .push(r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#.to_owned());
            events.push(r#"{"type":"message_stop"}"#.to_owned());
            let events = Vec::from_iter(events.iter().map(String::as_str));
            let reply = replied_with_tools(&DIALECT, &events);
            assert_eq!(
                calls_of(&reply),
                [("x", "a", arguments)],
                "{input} {fragments}"
            );
            if fragments.is_empty() {
                let whole = format!(r#"{{"content":[{block}],"stop_reason":"tool_use"}}"#);
                let mut reply = Reply::new(true);
                reply::read_whole(&whole, &mut reply).expect(&whole);
                assert_eq!(calls_of(&reply), [("x", "a", arguments)], "whole: {input}");
            }
        }
    }

    #[test]
    fn input_tokens_include_those_read_from_and_written_to_the_cache() {
        let table = r##"
            27 | {"input_tokens":4,"cache_read_input_tokens":3,"cache_creation_input_tokens":20}
            7 | {"input_tokens":4,"cache_read_input_tokens":3}
            24 | {"input_tokens":4,"cache_creation_input_tokens":20}
            4 | {"input_tokens":4}
            - | {"output_tokens":1}
        "##;
        for [input, usage] in rows(table) {
            let data = format!(r#"{{"type":"message_delta","delta":{{}},"usage":{usage}}}"#);
            let reply = replied(&DIALECT, &[&data]);
            let counted = reply.usage().and_then(|usage| usage.input_tokens);
            assert_eq!(counted, input.parse().ok(), "{usage}");
        }
    }
}
