//! Anthropic's messages API.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::attachment;
use super::dialect::Dialect;
use super::failure::{self, ServerError};
use super::finish::is_word;
use super::kept::VALUE;
use super::lenient::{self, Count, IfReadable, ReplyError, Text};
use super::reply::Reply;
use super::request::{self, AnswerForm, Extra, Prompt};
use super::{calls, openai, schema};
use crate::message::{Attachment, AttachmentKind, Message, Step, Tool, ToolRun, Usage};
use crate::surrogates;

pub(super) static DIALECT: Dialect = Dialect {
    name: "anthropic",
    models_path: "/v1/models?limit=1000",
    fixed_headers: &[("anthropic-version", "2023-06-01")],
    key_header: ("x-api-key", ""),
    chat: |prompt, _| ("/v1/messages".to_owned(), body(prompt)),
    event: read_event,
    whole: read_whole,
    models: openai::read_models,
    ends_with_done: false,
    extras: &[
        (Extra::Effort, "/output_config/effort"),
        (Extra::Form, "/output_config/format"),
        (Extra::Cache, "/cache_control"),
    ],
    enforces_maps: false,
    knows_object_form: false,
    searches: true,
};

/// The API demands a limit; this one is sent unless the user sets one.
const MAX_TOKENS: u64 = 16_384;

/// How often the provider may search for one answer; each search costs extra.
const MAX_SEARCHES: u64 = 5;

/// The field of a block that contains the arguments of a call.
const INPUT: &str = "input";

/// The type of a block that calls a tool of q's; that of the provider's calls ends like this, too.
const TOOL_USE: &str = "tool_use";

fn body(prompt: &Prompt) -> Value {
    let turns = prompt.messages.iter().map(turn);
    let steps = prompt
        .steps
        .iter()
        .flat_map(|step| [answer_of(&step.echo), results_of(step)]);
    let begun = (!prompt.begun.is_empty()).then(|| answer_of(prompt.begun));
    let forbids_calls = prompt.forbids_calls && !prompt.tools.is_empty();
    request::without_empty(json!({
        "model": prompt.model,
        "max_tokens": prompt.max_tokens.unwrap_or(MAX_TOKENS),
        "stream": prompt.stream,
        "system": (!prompt.system.is_empty()).then_some(prompt.system),
        "messages": turns.chain(steps).chain(begun).collect::<Vec<_>>(),
        "output_config": output_config(prompt),
        // The API demands the tools if the messages have calls, even if the model must not call tools again.
        "tools": prompt.tools.iter().map(offer).chain(prompt.web.then(offer_web)).collect::<Vec<_>>(),
        "tool_choice": forbids_calls.then(|| json!({"type": "none"})),
        "cache_control": caches(prompt).then(|| json!({"type": "ephemeral"})),
    }))
}

/// Whether the request begins with what another one is likely to begin with, too: writing into the cache costs more than
/// sending.
fn caches(prompt: &Prompt) -> bool {
    let has_attachments = prompt
        .messages
        .iter()
        .any(|message| !message.attachments.is_empty());
    prompt.caches
        && (has_attachments || !prompt.tools.is_empty() || prompt.web || prompt.messages.len() > 1)
}

fn turn(message: &Message) -> Value {
    json!({"role": message.role, "content": attachment::content(message.attachments.iter().map(part_of), &message.text)})
}

fn part_of(attachment: &Attachment) -> Value {
    let source =
        json!({"type": "base64", "media_type": attachment.media, "data": &*attachment.data});
    match attachment.kind() {
        AttachmentKind::Image => json!({"type": "image", "source": source}),
        AttachmentKind::Pdf => request::without_empty(
            json!({"type": "document", "source": source, "title": attachment::title(attachment)}),
        ),
    }
}

fn output_config(prompt: &Prompt) -> Value {
    let format = match prompt.form {
        // The API has no way to ask for an object without a schema.
        AnswerForm::Any | AnswerForm::Object => None,
        AnswerForm::Shaped(shape) => Some(
            json!({"type": "json_schema", "schema": schema::with_rules_in_words(shape.schema())}),
        ),
    };
    request::without_empty(json!({"effort": prompt.effort, "format": format}))
}

fn offer(tool: &Tool) -> Value {
    let schema = schema::without_combinations(tool);
    json!({"name": tool.name, "description": tool.description, "input_schema": schema})
}

/// The version of the tool that every model supports.
fn offer_web() -> Value {
    json!({"type": "web_search_20250305", "name": "web_search", "max_uses": MAX_SEARCHES})
}

/// The model's turn as it came, because signatures are valid only for an unchanged turn.
fn answer_of(blocks: &[Value]) -> Value {
    // The API refuses text that is blank.
    let is_blank = |block: &Value| {
        block["type"] == "text"
            && block["text"]
                .as_str()
                .is_none_or(|text| text.trim().is_empty())
    };
    let content: Vec<&Value> = blocks.iter().filter(|block| !is_blank(block)).collect();
    json!({"role": "assistant", "content": content})
}

/// All results of a turn, which must be in one message.
fn results_of(step: &Step) -> Value {
    let results: Vec<Value> = step.calls.iter().map(result_of).collect();
    json!({"role": "user", "content": results})
}

fn result_of(ran: &ToolRun) -> Value {
    let text = json!({"type": "text", "text": ran.result});
    let content: Value = match ran.images.is_empty() {
        true => ran.result.as_str().into(),
        false => std::iter::once(text)
            .chain(ran.images.iter().map(part_of))
            .collect(),
    };
    let mut result = json!({"type": "tool_result", "tool_use_id": ran.id, "content": content});
    if ran.is_error {
        result["is_error"] = true.into();
    }
    result
}

/// The fields of all events that matter here. Unknown types are ignored, as the API's documents ask. It borrows from
/// the data, like those below, so that no text of an answer is copied to be read.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: IfReadable<String>,
    /// The number of the block.
    index: Count,
    delta: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Delta<'a> {
    #[serde(rename = "type")]
    kind: IfReadable<String>,
    text: Text<'a>,
    thinking: Text<'a>,
    citation: Option<&'a RawValue>,
    signature: Text<'a>,
    partial_json: Text<'a>,
}

/// The count of the input does not include what was read from a cache or written into one.
fn usage_of(counts: &Value) -> Usage {
    let count = |place| lenient::count(counts, place);
    let read = count("/cache_read_input_tokens");
    let cached = read.unwrap_or(0) + count("/cache_creation_input_tokens").unwrap_or(0);
    Usage {
        input_tokens: count("/input_tokens").map(|tokens| tokens + cached),
        output_tokens: count("/output_tokens"),
        cached_tokens: read,
        reasoning_tokens: count("/output_tokens_details/thinking_tokens"),
        cost: None,
    }
}

fn read_event(data: &str, reply: &mut Reply) -> Result<(), ReplyError> {
    let Some(event) = lenient::event::<Event>(data)? else {
        return Ok(());
    };
    failure::check(data, event.error.is_some() || event.kind.0.is_none())?;
    let kind = event.kind.0.unwrap_or_default();
    if kind == "content_block_delta" {
        let delta = lenient::in_field::<Delta>(event.delta)?;
        return delta.map_or(Ok(()), |delta| add_delta(event.index.0, &delta, reply));
    }
    // All others are rare.
    let mut fields: Value = surrogates::lossy(data)?;
    reply.add_usage(usage_of(&fields["usage"]));
    match kind.as_str() {
        "content_block_start" => {
            if let Value::Object(block) = fields["content_block"].take() {
                add_block(event.index.0, block, reply)?;
            }
        }
        "message_start" => reply.add_usage(usage_of(&fields["message"]["usage"])),
        "message_delta" => {
            let delta = &fields["delta"];
            if delta["stop_reason"].is_string() {
                read_calls(reply);
            }
            finish(delta, reply);
        }
        "message_stop" => {
            read_calls(reply);
            reply.end();
        }
        "error" => {
            return Err(failure::read(data)
                .unwrap_or_else(|| ServerError::new(data))
                .into());
        }
        _ => {}
    }
    Ok(())
}

fn read_whole(body: &str, reply: &mut Reply) -> Result<(), ReplyError> {
    failure::check(body, true)?;
    let message = Value::Object(surrogates::lossy(body)?);
    for (block, index) in message["content"].as_array().into_iter().flatten().zip(0..) {
        let Value::Object(block) = block else {
            return Err(ReplyError::Malformed("a block is no object".to_owned()));
        };
        add_block(Some(index), block.clone(), reply)?;
    }
    reply.add_usage(usage_of(&message["usage"]));
    read_calls(reply);
    finish(&message, reply);
    reply.end();
    Ok(())
}

/// Reads how a message ended, and why the model refused.
fn finish(message: &Value, reply: &mut Reply) {
    if let Some(word) = message["stop_reason"].as_str().filter(|word| is_word(word)) {
        reply.finish(word);
        if word == "pause_turn" {
            reply.pause();
        }
    }
    let text = |name: &str| message["stop_details"][name].as_str();
    reply.explain(
        text("explanation")
            .or_else(|| text("category"))
            .unwrap_or_default(),
    );
}

fn add_block(
    index: Option<u64>,
    block: Map<String, Value>,
    reply: &mut Reply,
) -> Result<(), ReplyError> {
    let kind = block
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if kind.ends_with("thinking") {
        reply.think();
    }
    if kind == "text" {
        let text = lenient::text_in(block.get("text").unwrap_or(&Value::Null))?;
        reply.add(&Value::from(text).to_string())?;
    }
    if kind == TOOL_USE && !reply.offers_tools() {
        reply.call_unoffered();
    }
    // The server's own calls and their results, such as `server_tool_use` and `web_search_tool_result`.
    if kind.ends_with("_tool_use") || kind.ends_with("_tool_result") {
        reply.begin_paragraph();
    }
    let of_web = |name: &str| {
        block
            .get(name)
            .and_then(Value::as_str)
            .is_some_and(|name| name.starts_with("web_"))
    };
    if kind == "server_tool_use" && of_web("name") {
        reply.search();
    }
    // The result of a search is a list of pages, that of a fetch a page; or an object says why there is none.
    if let Some(code) = block
        .get("content")
        .and_then(|result| result["error_code"].as_str())
        .filter(|_| of_web("type"))
    {
        reply.fail_search(kind == "web_fetch_tool_result", Some(code));
    }
    reply.add_sources(
        block.get("citations").unwrap_or(&Value::Null),
        "/url",
        "/title",
    );
    keep_block(index, block, reply)
}

/// Keeps a block, which is sent back after a pause or with the results of its calls. Its input is text until it is
/// complete.
fn keep_block(
    index: Option<u64>,
    mut block: Map<String, Value>,
    reply: &mut Reply,
) -> Result<(), ReplyError> {
    let kind = block
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let is_call = kind == TOOL_USE;
    if kind.ends_with(TOOL_USE) {
        // If the input comes in fragments, this is an empty object or missing.
        let input = block
            .get(INPUT)
            .filter(|input| input.as_object().is_some_and(|input| !input.is_empty()));
        let input = input.map(Value::to_string).unwrap_or_default();
        block.insert(INPUT.into(), input.into());
    }
    let next = reply
        .echo_mut()
        .last_key_value()
        .map_or(0, |(last, _)| last + 1);
    let block = Value::Object(block);
    if reply.has_room(VALUE + block.to_string().len(), is_call)? {
        reply.echo_mut().insert(index.unwrap_or(next), block);
    }
    Ok(())
}

fn add_delta(index: Option<u64>, delta: &Delta, reply: &mut Reply) -> Result<(), ReplyError> {
    let kind = delta.kind.0.as_deref().unwrap_or_default();
    if kind == "thinking_delta" {
        reply.think();
    }
    let last = reply
        .echo_mut()
        .last_key_value()
        .map_or(0, |(last, _)| *last);
    let index = index.unwrap_or(last);
    let (field, piece) = match kind {
        "text_delta" => ("text", delta.text.json()?),
        "thinking_delta" => ("thinking", delta.thinking.json()?),
        "signature_delta" => ("signature", delta.signature.json()?),
        "input_json_delta" => (INPUT, delta.partial_json.json()?),
        "citations_delta" => {
            return add_citation(index, lenient::value(delta.citation), reply);
        }
        _ => return Ok(()),
    };
    if field == "text" {
        reply.add(&piece)?;
        // Some servers do not say that a text begins.
        if !reply.echo_mut().contains_key(&index) {
            keep_block(
                Some(index),
                Map::from_iter([("type".to_owned(), "text".into())]),
                reply,
            )?;
        }
    }
    let is_call = reply
        .echo_mut()
        .get(&index)
        .is_some_and(|block| block["type"] == TOOL_USE);
    if !reply.has_room(piece.len(), is_call)? {
        return Ok(());
    }
    let block = reply
        .echo_mut()
        .get_mut(&index)
        .and_then(Value::as_object_mut);
    if let Some(Value::String(so_far)) =
        block.map(|block| block.entry(field).or_insert_with(|| "".into()))
    {
        so_far.push_str(&surrogates::lossy::<String>(&piece)?);
    }
    Ok(())
}

/// Adds what a text is based on to its block: a page is a source.
fn add_citation(index: u64, citation: Value, reply: &mut Reply) -> Result<(), ReplyError> {
    if reply.has_room(VALUE + citation.to_string().len(), false)?
        && let Some(block) = reply
            .echo_mut()
            .get_mut(&index)
            .and_then(Value::as_object_mut)
    {
        match block.entry("citations").or_insert_with(|| json!([])) {
            Value::Array(citations) => citations.push(citation.clone()),
            none => *none = json!([citation]),
        }
    }
    reply.add_sources(&json!([citation]), "/url", "/title");
    Ok(())
}

/// The blocks are complete: reads the input of each that has one, and finds the calls in them.
fn read_calls(reply: &mut Reply) {
    let mut blocks = std::mem::take(reply.echo_mut());
    for block in blocks.values_mut().filter_map(Value::as_object_mut) {
        let text = |name: &str| {
            block
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let (kind, id, name) = (text("type"), text("id"), text("name"));
        let Some(input) = block.get(INPUT).and_then(Value::as_str).map(str::to_owned) else {
            continue;
        };
        let mut fields = serde_json::from_str(&input).unwrap_or_else(|_| json!({}));
        if kind == TOOL_USE && reply.offers_tools() {
            let call = reply.add_call(&id, &name, &input);
            block.insert("id".into(), call.id.as_str().into());
            fields = calls::object(&call.arguments);
        }
        block.insert(INPUT.into(), fields);
    }
    *reply.echo_mut() = blocks;
}

#[cfg(test)]
mod tests {
    use super::super::dialect::tests::{
        calls_of, prompt, replied, replied_with_tools, shapes, steps, tool, with_steps,
    };
    use super::super::finish::Finish;
    use super::*;

    fn sent(prompt: &Prompt) -> Value {
        body(prompt)
    }

    fn call(id: &str, input: &Value) -> Value {
        json!({"type": "tool_use", "id": id, "name": "db__get", "input": input})
    }

    #[test]
    fn the_effort_stands_beside_the_form_of_the_answer() {
        let [strict, _] = shapes();
        let format = json!({"type": "json_schema", "schema": strict.schema()});
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
    fn text_at_the_start_of_a_block_is_part_of_the_answer() {
        let mut reply = replied(
            &DIALECT,
            &[
                r#"{"type":"content_block_start","content_block":{"type":"text","text":"Hel"}}"#,
                r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"lo"}}"#,
            ],
        );
        assert_eq!(reply.take_text().as_str(), "Hello");
    }

    #[test]
    fn input_counts_with_what_was_read_from_and_written_to_a_cache() {
        for (usage, input) in [
            (
                r#"{"input_tokens":4,"cache_read_input_tokens":3,"cache_creation_input_tokens":20}"#,
                Some(27),
            ),
            (r#"{"input_tokens":4,"cache_read_input_tokens":3}"#, Some(7)),
            (
                r#"{"input_tokens":4,"cache_creation_input_tokens":20}"#,
                Some(24),
            ),
            (r#"{"input_tokens":4}"#, Some(4)),
            (r#"{"output_tokens":1}"#, None),
        ] {
            let data = format!(r#"{{"type":"message_delta","delta":{{}},"usage":{usage}}}"#);
            let counted = replied(&DIALECT, &[&data])
                .usage()
                .and_then(|usage| usage.input_tokens);
            assert_eq!(counted, input, "{usage}");
        }
    }

    #[test]
    fn calls_and_results_follow_the_messages() {
        let echo = vec![
            json!({"type": "thinking", "thinking": "hm", "signature": "s"}),
            json!({"type": "redacted_thinking", "data": "r"}),
            json!({"type": "text", "text": ""}),
            call("x1", &json!({"n": 1})),
            call("x2", &json!({"n": 2})),
        ];
        let (tools, steps) = (
            [tool()],
            steps([echo.clone(), vec![call("x3", &json!({"n": 3}))]]),
        );
        let mut prompt = with_steps(&tools, &steps);
        let schema = json!({"$schema": "x", "type": "object", "properties": {"n": {"$ref": "#/$defs/N"}},
                            "$defs": {"N": {"type": "integer"}}});
        let mut expected = json!({
            "model": "m", "max_tokens": 16_384, "stream": true, "cache_control": {"type": "ephemeral"},
            "tools": [{"name": "db__get", "description": "Gets it.", "input_schema": schema}],
            "messages": [
                {"role": "user", "content": "why"},
                {"role": "assistant", "content": [echo[0], echo[1], echo[3], echo[4]]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "x1", "content": "one"},
                    {"type": "tool_result", "tool_use_id": "x2", "content": "no such row", "is_error": true}]},
                {"role": "assistant", "content": [call("x3", &json!({"n": 3}))]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x3", "content": "three"}]},
            ],
        });
        assert_eq!(sent(&prompt), expected);
        prompt.forbids_calls = true;
        expected["tool_choice"] = json!({"type": "none"});
        assert_eq!(sent(&prompt), expected);
    }

    const CALL_FOLLOWS: &str = r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"x","name":"db__get","input":{}}}"#;
    const CALLS_END: &str = r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#;
    const STOP: &str = r#"{"type":"message_stop"}"#;

    #[test]
    fn blocks_are_put_together_in_order_and_signatures_stay() {
        let mut reply = replied_with_tools(
            &DIALECT,
            &[
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"let "}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"me"}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}"#,
                r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"r"}}"#,
                r#"{"type":"content_block_start","index":3,"content_block":{"type":"text","text":"H"}}"#,
                r#"{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"i"}}"#,
                CALL_FOLLOWS,
                r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}"#,
                r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"n\""}}"#,
                r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":": 1}"}}"#,
                r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"y","name":"db__get"}}"#,
                r#"{"type":"content_block_start","index":5,"content_block":{"type":"tool_use","name":"a","input":{"n":2}}}"#,
                CALLS_END,
                STOP,
            ],
        );
        assert_eq!(
            (reply.take_text().as_str(), reply.finished()),
            ("Hi", Some(&Finish::Complete("tool_use".into())))
        );
        let expected = [
            ("x", "db__get", "{\"n\": 1}"),
            ("y", "db__get", "{}"),
            ("", "a", "{\"n\":2}"),
        ];
        assert_eq!(calls_of(&reply), expected);
        let own = &reply.calls()[2].id;
        assert_eq!(
            reply.echo(),
            [
                json!({"type": "thinking", "thinking": "let me", "signature": "sig"}),
                json!({"type": "redacted_thinking", "data": "r"}),
                call("x", &json!({"n": 1})),
                json!({"type": "text", "text": "Hi"}),
                call("y", &json!({})),
                json!({"type": "tool_use", "id": own, "name": "a", "input": {"n": 2}}),
            ]
        );
    }

    #[test]
    fn blocks_without_an_index_are_put_together() {
        let reply = replied_with_tools(
            &DIALECT,
            &[
                r#"{"type":"content_block_start","content_block":{"type":"text","text":"Hi"}}"#,
                r#"{"type":"content_block_start","content_block":{"type":"tool_use","id":"x","name":"a"}}"#,
                r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{no"}}"#,
                STOP,
            ],
        );
        assert_eq!(calls_of(&reply), [("x", "a", "{no")]);
        let call = json!({"type": "tool_use", "id": "x", "name": "a", "input": {}});
        assert_eq!(reply.echo(), [json!({"type": "text", "text": "Hi"}), call]);
    }

    #[test]
    fn arguments_after_an_empty_object_are_sent_back_as_they_were_run() {
        let piece = |json: &str| {
            json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": json}})
                .to_string()
        };
        let reply = replied_with_tools(
            &DIALECT,
            &[
                CALL_FOLLOWS,
                &piece("{}"),
                &piece("{\"n\":1}"),
                CALLS_END,
                STOP,
            ],
        );
        assert_eq!(calls_of(&reply), [("x", "db__get", "{\"n\":1}")]);
        assert_eq!(reply.echo(), [call("x", &json!({"n": 1}))]);
    }

    #[test]
    fn calls_in_a_whole_answer_are_read() {
        let mut reply = Reply::new(true);
        let content = json!([{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "Hi"},
                             call("x", &json!({"n": 1})), call("y", &json!({}))]);
        let body =
            json!({"type": "message", "content": content, "stop_reason": "tool_use"}).to_string();
        read_whole(&body, &mut reply).expect("a whole answer");
        assert_eq!(
            (reply.take_text().as_str(), reply.finished()),
            ("Hi", Some(&Finish::Complete("tool_use".into())))
        );
        assert_eq!(
            calls_of(&reply),
            [("x", "db__get", "{\"n\":1}"), ("y", "db__get", "{}")]
        );
        assert_eq!(Value::from(reply.echo()), content);
    }
}
