//! The type of a dialect: how requests are made and replies are read (pure).

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use super::api_of::{ReplyForm, form_of};
use super::failure::{self, ReplyError, ReplyResult};
use super::lenient::{self, List};
use super::reply::Reply;
use super::request::{Field, OptionalField, Prompt, Quirks, Request, RequestedTools, TokenLimit};
use super::tool_schema::ToolSchemas;
use crate::secret::Secret;
use crate::server_url::Version;
use crate::shape::Shape;
use crate::text::byte_order_mark::text_after_mark;
use crate::text::not_a_number;
use crate::text::surrogates::{self, TextHalves};

/// The last event of a stream in OpenAI's dialect.
const DONE: &str = "[DONE]";

/// The most bytes of an event without JSON that is kept.
const MAX_PLAIN_LINE: usize = 64 << 10;

/// How many parts of a reply are looked at for the API in whose form they are.
const MAX_LOOKS: usize = 10;

/// An API of one or more providers. Each dialect is a value in a file of its own.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    /// As in the configuration file.
    pub name: &'static str,
    /// What a base URL ends in, or must not end in.
    pub version: Version,
    /// The path of the list of models.
    pub(super) models_path: &'static str,
    /// The parameter that asks for the next page of it.
    pub(super) next_models: &'static str,
    /// Headers of every request.
    pub(super) fixed_headers: &'static [(&'static str, &'static str)],
    /// The name of the header with the key, and what is before the key in its value.
    pub(super) key_header: (&'static str, &'static str),
    /// Whether other servers with this API may want the key as a bearer token.
    pub takes_bearer: bool,
    /// The path and the body of the request for a prompt.
    pub(super) chat: fn(&Prompt, Quirks) -> (String, Value),
    /// Adds an event of a stream to the reply, unless it is an error.
    pub(super) event: ReadFn,
    /// Adds an answer that came in one piece to the reply.
    pub(super) whole: ReadFn,
    /// The names of fields that its replies have, also those without a word of the answer, and with null for a value.
    pub(super) reply_fields: &'static [&'static str],
    /// Reads the `[DONE]` of a stream without a finish reason. Returns whether the reply ends with it.
    pub(super) ends_with_done: fn(&mut Reply) -> ReplyResult<bool>,
    /// What a request can do without, each with its place in the body.
    pub(super) optional_fields: &'static [(OptionalField, &'static str)],
    /// Whether the API can enforce JSON objects without fixed names for their fields, within a shape or as a whole answer.
    pub enforces_maps: bool,
    /// Whether the provider can search the web for an answer.
    pub searches: bool,
    /// Whether the tools are one element in the request's list of tools.
    pub(super) groups_tools: bool,
    /// What it takes of the schemas of tools.
    pub tool_schemas: ToolSchemas,
}

type ReadFn = fn(&str, &mut Reply) -> ReplyResult;

impl Dialect {
    /// Returns the request for a prompt, with the fields that the user has set. These are not among its optional fields, so they
    /// are never left out.
    pub fn request(
        &self,
        prompt: &Prompt,
        quirks: Quirks,
        fields: &[Field],
        key: Option<&Secret>,
    ) -> Request {
        let (path, mut body) = (self.chat)(prompt, quirks);
        let mut optional_fields = Vec::new();
        for &(optional, pointer) in self.optional_fields {
            let is_set_by_user = fields.iter().any(|field| field.meets(pointer));
            let is_there = match optional {
                // All messages are in one field.
                OptionalField::System => !prompt.system.is_empty(),
                OptionalField::ReasonedTurns => {
                    prompt.has_reasoned_turns() && prompt.sends(OptionalField::ReasonedTurns)
                }
                OptionalField::UnreasonedTurns => {
                    prompt.has_turns() && prompt.sends(OptionalField::UnreasonedTurns)
                }
                _ => true,
            };
            if is_there && body.pointer(pointer).is_some() && !is_set_by_user {
                optional_fields.push(optional);
            }
        }
        if prompt.has_attachments() {
            optional_fields.push(OptionalField::Attachments);
        }
        if prompt.has_earlier_turns() && prompt.sends(OptionalField::SealedReasoning) {
            optional_fields.push(OptionalField::SealedReasoning);
        }
        self.remove_replaced_limit(&mut body, fields);
        for field in fields {
            field.set(&mut body);
        }
        // OpenAI rejects it where nothing streams, such as after `-o stream=false`.
        if body["stream"] != true
            && let Some(body) = body.as_object_mut()
        {
            body.shift_remove("stream_options");
        }
        let limit = TokenLimit::find(&body, fields, prompt.max_tokens.is_none());
        let offers_tools = !prompt.tools.is_empty() && !prompt.forbids_calls;
        let names = prompt.tools.iter().map(|tool| tool.name.clone());
        let earlier_calls = prompt.steps.iter().flat_map(|step| &step.calls);
        Request {
            path,
            headers: self.headers(key),
            body: Some(body.to_string()),
            offers_tools,
            tools: RequestedTools {
                names: names.collect(),
                are_grouped: self.groups_tools,
            },
            optional_fields,
            limit,
            earlier_call_ids: earlier_calls.map(|call| call.id.clone()).collect(),
            budget: prompt.budget_left(),
        }
    }

    /// Removes the limit of tokens where the user sets it under any of its names. OpenAI has two, and rejects both together.
    fn remove_replaced_limit(&self, body: &mut Value, fields: &[Field]) {
        let names = self.optional_fields.iter();
        let names = names.filter(|(optional, _)| *optional == OptionalField::Limit);
        let is_set = |pointer: &str| {
            let mut set = fields.iter().filter(|field| !field.value.is_null());
            set.any(|field| field.meets(pointer))
        };
        if let Some(body) = body.as_object_mut()
            && names.clone().any(|(_, pointer)| is_set(pointer))
        {
            for (_, pointer) in names {
                body.shift_remove(pointer.trim_start_matches('/'));
            }
        }
    }

    /// Returns the request for the list of models, or for its page after the one that says `next`.
    pub fn list_models(&self, key: Option<&Secret>, next: Option<&str>) -> Request {
        let mut path = self.models_path.to_owned();
        if let Some(next) = next {
            path.push(if path.contains('?') { '&' } else { '?' });
            let value = utf8_percent_encode(next, NON_ALPHANUMERIC);
            path += &format!("{}={value}", self.next_models);
        }
        Request {
            path,
            headers: self.headers(key),
            ..Request::default()
        }
    }

    fn headers(&self, key: Option<&Secret>) -> Vec<(String, Secret)> {
        let mut headers = Vec::new();
        if let Some(key) = key {
            let (name, prefix) = self.key_header;
            let value = format!("{prefix}{}", key.expose());
            headers.push((name.to_owned(), Secret::new(value)));
        }
        for &(name, value) in self.fixed_headers {
            headers.push((name.to_owned(), Secret::new(value)));
        }
        headers
    }

    /// Whether the API can enforce this shape.
    pub fn can_enforce(&self, shape: &Shape) -> bool {
        self.enforces_maps || !shape.has_maps()
    }

    /// Adds an answer that came in one piece to the reply.
    pub fn read_whole(&self, body: &str, reply: &mut Reply) -> ReplyResult {
        // Some servers begin with a byte order mark.
        let body = text_after_mark(body);
        if body.trim_start().starts_with('[') {
            self.read_list(body, reply)?;
        } else {
            let body = surrogates::replaced(body);
            let read = read_leniently(self.whole, &body, reply);
            self.note_form(&body, reply);
            if matches!(read, Err(ReplyError::Malformed(_))) {
                reply.check_form()?;
            }
            read?;
        }
        reply.close();
        Ok(())
    }

    /// Adds the events of a stream that came as a list, or an answer that is its only element.
    fn read_list(&self, body: &str, reply: &mut Reply) -> ReplyResult {
        let elements: List<&RawValue> = serde_json::from_str(body)?;
        if let [whole] = elements.0[..] {
            let whole = surrogates::replaced(whole.get());
            read_leniently(self.whole, &whole, reply)?;
            self.note_form(&whole, reply);
            return Ok(());
        }
        for event in elements.0 {
            self.read_event(event.get(), reply)?;
        }
        Ok(())
    }

    /// Notes in which API's form a whole reply is, as long as nothing of the answer has arrived.
    fn note_form(&self, json: &str, reply: &mut Reply) {
        if reply.answer.has_text() {
            return;
        }
        let reading = &mut reply.reading;
        match form_of(json, self.name, self.reply_fields) {
            ReplyForm::Expected => (),
            ReplyForm::Other(api) => reading.other_api = Some(api),
            ReplyForm::Unknown(fields) => reading.unknown_fields = Some(fields),
        }
    }

    /// Notes in which other API's form the events of a stream are, as long as nothing of the answer has arrived. One of no known
    /// form may be a sign of life.
    fn note_api(&self, json: &str, reply: &mut Reply) {
        let reading = &mut reply.reading;
        if reply.answer.has_text() || reading.looks_at_api >= MAX_LOOKS {
            return;
        }
        reading.looks_at_api += 1;
        if let ReplyForm::Other(api) = form_of(json, self.name, self.reply_fields) {
            reading.other_api = reading.other_api.or(Some(api));
        }
    }

    /// Adds the data of one event of a stream to the reply.
    pub fn read_event(&self, data: &str, reply: &mut Reply) -> ReplyResult {
        let data = data.trim_ascii();
        if data.starts_with('{') {
            reply.reading.plain_line.clear();
            // Nearly all events have no half of a character.
            if let Some(marked) = surrogates::marked(data) {
                let halves = self.halves_of_text(&marked, reply);
                let joined = reply.join_halves(data, &halves);
                self.read_json(&joined, reply)?;
                reply.await_second_half(halves);
            } else {
                self.read_json(data, reply)?;
            }
            if reply.turn.has_cut_call() {
                return Err(ReplyError::TooLong);
            }
            return Ok(());
        }
        // Proxies send this in every dialect, even if the answer has broken off.
        if data == DONE && (reply.end.finish().is_some() || (self.ends_with_done)(reply)?) {
            reply.check_plain_line()?;
            reply.close();
        }
        // Gemini reports an error in a list. Some servers send other things to keep a connection alive.
        failure::check(data)?;
        if is_sentence(data) {
            data.clone_into(&mut reply.reading.plain_line);
        }
        Ok(())
    }

    /// Reads an event that is an object.
    fn read_json(&self, json: &str, reply: &mut Reply) -> ReplyResult {
        read_leniently(self.event, json, reply)?;
        self.note_api(json, reply);
        Ok(())
    }

    /// Returns the halves of characters at the ends of what an event adds to the text, by its marked JSON. Which of its strings are
    /// a text is known only by reading it.
    fn halves_of_text(&self, marked: &str, reply: &Reply) -> TextHalves {
        let mut trial = Reply::new(reply.turn.offers_tools);
        // If it cannot be read, it is reported when it is read to be kept.
        drop(read_leniently(self.event, marked, &mut trial));
        TextHalves::of(&trial.take_piece(false).text)
    }
}

/// The words that servers send to keep a connection alive, in lower case. Others send a time or a tag.
const SIGNS_OF_LIFE: &[&str] = &[
    "openrouter",
    "processing",
    "keep",
    "alive",
    "keepalive",
    "keep-alive",
    "heartbeat",
    "ping",
    "ok",
];

/// Whether an event without JSON says something to people.
fn is_sentence(data: &str) -> bool {
    let is_plain = serde_json::from_str::<IgnoredAny>(data).is_err();
    let begins_with_letter = data.starts_with(char::is_alphabetic);
    let has_words = data.split_whitespace().nth(1).is_some() && data.len() <= MAX_PLAIN_LINE;
    is_plain && begins_with_letter && has_words && !is_sign_of_life(&data.to_lowercase())
}

/// Whether a line in lower case is there to keep a connection alive: it has no other words but numbers.
fn is_sign_of_life(line: &str) -> bool {
    let mut words = line
        .split_whitespace()
        .map(|word| word.trim_end_matches([':', ',', '.']));
    words.all(|word| SIGNS_OF_LIFE.contains(&word) || word.parse::<u64>().is_ok())
}

/// Reads an event or an answer, where the last of several fields with one name counts, as for most programs. Few have any, so it is
/// read again then.
fn read_leniently(read: ReadFn, json: &str, reply: &mut Reply) -> ReplyResult {
    let before = reply.turn.budget;
    let result = read_with_null(read, json, reply);
    let is_repeated = |why: &str| why.contains(lenient::REPEATED_FIELD);
    if matches!(&result, Err(ReplyError::Malformed(why)) if is_repeated(why))
        && reply.turn.budget == before
        && let Some(value) = lenient::value(json)
    {
        return read_with_null(read, &value.to_string(), reply);
    }
    result
}

/// Reads an event or an answer. If it is no JSON because of a number, it is read with null in its place.
fn read_with_null(read: ReadFn, json: &str, reply: &mut Reply) -> ReplyResult {
    // What is no JSON has added nothing.
    let is_no_json = |error: &ReplyError| matches!(error, ReplyError::Malformed(_));
    not_a_number::read_with(json, is_no_json, |json| read(json, reply))
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::super::kept::MAX_KEPT;
    use super::super::lenient::NO_ENTRIES;
    use super::super::request::AnswerForm;
    use super::super::table;
    use super::*;
    use crate::message::echo::Echo;
    use crate::message::{Message, Role};
    use crate::shape::Shape;
    use crate::text::table::rows;

    static NO_ECHO: Echo = Echo::Items(Vec::new());

    pub(in crate::provider) fn prompt() -> Prompt<'static> {
        Prompt {
            model: "m",
            system: "s",
            messages: vec![
                Message::text(Role::User, "one"),
                Message::text(Role::Assistant, "two"),
                Message::text(Role::User, "three"),
            ],
            lasting: 0,
            max_tokens: None,
            effort: None,
            rejected_fields: &[OptionalField::Store],
            stream: true,
            tools: &[],
            web: false,
            steps: &[],
            paused_turn: &NO_ECHO,
            forbids_calls: false,
            form: AnswerForm::Any,
        }
    }

    /// A schema that obeys the strict rules, and one that does not.
    pub(in crate::provider) fn shapes() -> [Shape; 2] {
        let shape = |schema: Value| Shape::from_json(&schema.to_string()).expect("a schema");
        let properties = json!({"z": {"type": "string"}, "a": {"$ref": "#/$defs/A"}});
        let strict = json!({"type": "object", "properties": properties, "required": ["z", "a"],
                            "additionalProperties": false, "$defs": {"A": {"type": "integer"}}});
        let loose = json!({"$schema": "x", "type": "object", "properties": {"a": {"type": "integer", "minimum": 0}}});
        [shape(strict), shape(loose)]
    }

    /// The reply after these events.
    pub(in crate::provider) fn replied(api: &Dialect, events: &[&str]) -> Reply {
        replied_to(false, api, events)
    }

    /// The reply after these events to a request that offers tools.
    pub(in crate::provider) fn replied_with_tools(api: &Dialect, events: &[&str]) -> Reply {
        replied_to(true, api, events)
    }

    fn replied_to(offers_tools: bool, api: &Dialect, events: &[&str]) -> Reply {
        let mut reply = Reply::new(offers_tools);
        for data in events {
            api.read_event(data, &mut reply)
                .unwrap_or_else(|error| panic!("{data}: {error:?}"));
        }
        reply
    }

    /// The calls of a reply: id, name and arguments. An id that q made up is shown as empty.
    pub(in crate::provider) fn calls_of(reply: &Reply) -> Vec<(&str, &str, &str)> {
        let is_own =
            |id: &str| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let id = |id| if is_own(id) { "" } else { id };
        reply
            .turn
            .calls()
            .iter()
            .map(|call| (id(&*call.id), &*call.name, &*call.arguments))
            .collect()
    }

    fn named(name: &str) -> &'static Dialect {
        let found = table::DIALECTS.iter().find(|api| api.name == name);
        found.expect(name)
    }

    /// The body that the dialect makes from a prompt.
    fn body(api: &Dialect, prompt: &Prompt) -> Value {
        let request = api.request(prompt, table::OPENAI_LIKE.quirks, &[], None);
        let body = request.body.expect("a body");
        serde_json::from_str(&body).expect(&body)
    }

    #[test]
    fn each_dialect_asks_for_the_form_of_the_answer() {
        let [strict, loose] = shapes();
        let [in_strict, in_loose] = [&strict, &loose].map(|shape| shape.schema.to_string());
        // An object, a strict shape, and one that is not strict. Anthropic's API has no way to ask for an object without a
        // schema; it takes rules as words.
        let table = r##"
            openai | response_format | {"type":"json_object"} | {"type":"json_schema","json_schema":{"name":"answer","schema":STRICT,"strict":true}} | {"type":"json_schema","json_schema":{"name":"answer","schema":LOOSE,"strict":false}}
            responses | text | {"format":{"type":"json_object"}} | {"format":{"type":"json_schema","name":"answer","schema":STRICT,"strict":true}} | {"format":{"type":"json_schema","name":"answer","schema":LOOSE,"strict":false}}
            anthropic | output_config | - | {"format":{"type":"json_schema","schema":STRICT}} | {"format":{"type":"json_schema","schema":{"type":"object","properties":{"a":{"type":"integer","description":"Rules: minimum 0"}},"additionalProperties":false}}}
            gemini | generationConfig | {"responseMimeType":"application/json"} | {"responseMimeType":"application/json","responseJsonSchema":STRICT} | {"responseMimeType":"application/json","responseJsonSchema":LOOSE}
        "##;
        for [dialect, field, object, shaped, other] in rows(table) {
            let api = named(dialect);
            for (form, expected) in [
                (AnswerForm::Object, object),
                (AnswerForm::Shaped(&strict), shaped),
                (AnswerForm::Shaped(&loose), other),
                (AnswerForm::Any, ""),
            ] {
                let expected = expected.replace("STRICT", &in_strict);
                let expected = expected.replace("LOOSE", &in_loose);
                let expected = serde_json::from_str::<Value>(&expected).ok();
                let body = body(api, &Prompt { form, ..prompt() });
                assert_eq!(body.get(field), expected.as_ref(), "{dialect}: {form:?}");
            }
        }
    }

    #[test]
    fn an_echo_is_bounded_and_a_call_that_does_not_fit_is_an_error() {
        // What comes again and again, what comes before it, and a call.
        let table = r##"
            openai | [] | {"choices":[{"delta":{"reasoning_content":"LONG"}}]} | {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"a"}}]}}]}
            openai | [] | {"choices":[{"delta":{"reasoning_details":[{"text":"LONG"}]}}]} | {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"a"}}]}}]}
            openai | {"choices":[{"delta":{"thinking_blocks":[{"type":"thinking","thinking":""}]}}]} | {"choices":[{"delta":{"thinking_blocks":[{"type":"thinking","thinking":"LONG"}]}}]} | {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"a"}}]}}]}
            anthropic | {"type":"content_block_start","index":0,"content_block":{"type":"thinking"}} | {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"LONG"}} | {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","name":"a"}}
            responses | [] | {"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"LONG"}]}} | {"type":"response.output_item.done","item":{"type":"function_call","name":"a"}}
            gemini | [] | {"candidates":[{"content":{"parts":[{"text":"LONG","thoughtSignature":"s"}]}}]} | {"candidates":[{"content":{"parts":[{"functionCall":{"name":"a"}}]}}]}
        "##;
        for [dialect, first, again, call] in rows(table) {
            let api = named(dialect);
            let long = again.replace("LONG", &"x".repeat(MAX_KEPT / 8));
            let events = [&[first][..], &[long.as_str(); 9]].concat();
            let mut reply = replied_with_tools(api, &events);
            let kept: usize = reply.turn.echo().texts().map(|part| part.len()).sum();
            let is_bounded = kept <= MAX_KEPT + again.len() && reply.turn.is_too_long();
            assert!(is_bounded, "{again}: {kept}");
            let found = api.read_event(call, &mut reply);
            assert_eq!(found, Err(ReplyError::TooLong), "{call}");
        }
    }

    #[test]
    fn reasoning_in_many_small_pieces_leaves_room_for_a_call() {
        let table = r##"
            openai | [] | {"choices":[{"delta":{"reasoning_content":" wordy"}}]} | {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"a"}}]}}]}
            openai | [] | {"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":" wordy"}]}}]} | {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"a"}}]}}]}
            openai | [] | {"choices":[{"delta":{"thinking_blocks":[{"type":"thinking","thinking":" wordy","signature":""}]}}]} | {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"a"}}]}}]}
            anthropic | {"type":"content_block_start","index":0,"content_block":{"type":"thinking"}} | {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":" wordy"}} | {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","name":"a"}}
        "##;
        for [dialect, first, again, call] in rows(table) {
            let api = named(dialect);
            let events = [&[first][..], &vec![again; 20_000]].concat();
            let mut reply = replied_with_tools(api, &events);
            assert_eq!(api.read_event(call, &mut reply), Ok(()), "{again}");
            assert!(!reply.turn.is_too_long(), "{again}");
        }
    }

    #[test]
    fn a_reply_is_not_finished_while_the_server_runs_calls_of_its_own() {
        let table = r##"
            responses | no | {"type":"response.output_item.added","output_index":0,"item":{"type":"web_search_call"}}
            responses | no | {"type":"response.output_item.done","output_index":0,"item":{"type":"shell_call","call_id":"x"}}
            anthropic | no | {"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"x"}}
            gemini | no | {"candidates":[{"content":{"parts":[{"executableCode":{"code":"1"}}]},"finishReason":"STOP"}]}
            gemini | no | {"candidates":[{"content":{"parts":[{"toolCall":{"id":"x"}}]},"finishReason":"STOP"}]}
            gemini | yes | {"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}
        "##;
        for [dialect, is_over, event] in rows(table) {
            let api = named(dialect);
            for reply in [replied(api, &[event]), replied_with_tools(api, &[event])] {
                assert_eq!(reply.end.is_finished(), is_over == "yes", "{event}");
                assert_eq!(reply.turn.calls().len(), 0, "{event}");
            }
        }
    }

    /// Events as each API sends them, from which the property below makes others.
    fn usual_events(api: &Dialect) -> Vec<Value> {
        let function = json!({"name": "a", "arguments": "{"});
        let text = json!({"type": "output_text", "text": "Hi"});
        let usage = json!({"input_tokens": 1, "output_tokens": 2});
        let mut events = match api.name {
            "openai" => vec![
                json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hi", "reasoning": "hm"}}]}),
                json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "x", "function": function}]}}]}),
                json!({"choices": [{"delta": {"content": [{"type": "text", "text": "Hi"}]}, "finish_reason": "stop"}]}),
                json!({"choices": [{"message": {"content": "Hi", "refusal": "no"}, "finish_reason": "tool_calls"}]}),
                json!({"choices": [{"delta": {"annotations": [{"url_citation": {"url": "https://a", "title": "A"}}]}}]}),
                json!({"choices": [], "citations": ["https://a"], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}),
            ],
            "responses" => vec![
                json!({"type": "response.output_item.added", "output_index": 0,
                    "item": {"type": "function_call", "call_id": "x", "name": "a", "arguments": ""}}),
                json!({"type": "response.output_text.delta", "delta": "Hi"}),
                json!({"type": "response.output_text.annotation.added", "annotation": {"url": "https://a", "title": "A"}}),
                json!({"type": "response.output_item.done", "output_index": 0, "item": {"type": "message", "content": [text]}}),
                json!({"type": "response.completed", "response": {
                    "status": "completed", "output": [{"type": "reasoning", "summary": []}], "usage": usage}}),
                json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": "max_output_tokens"}}}),
            ],
            "anthropic" => vec![
                json!({"type": "message_start", "message": {"usage": usage, "content": []}}),
                json!({"type": "content_block_start", "index": 0,
                    "content_block": {"type": "tool_use", "id": "x", "name": "a", "input": {}}}),
                json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
                json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Hi"}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}}),
                json!({"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta", "citation": {"url": "https://a"}}}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}),
                json!({"type": "message_stop"}),
            ],
            "gemini" => vec![
                json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}, {"text": "hm", "thought": true}]}}]}),
                json!({"candidates": [{"finishReason": "STOP",
                    "content": {"parts": [{"functionCall": {"name": "a", "args": {}}, "thoughtSignature": "s"}]}}]}),
                json!({"candidates": [{"groundingMetadata": {"groundingChunks": [{"web": {"uri": "https://a"}}]}}]}),
                json!({"promptFeedback": {"blockReason": "SAFETY"}}),
                json!({"usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2, "thoughtsTokenCount": 3}}),
            ],
            name => panic!("give events of {name}"),
        };
        events.push(json!({"type": "error", "error": {"type": "overloaded_error", "code": 529, "message": "busy"}}));
        events
    }

    /// The places of all values in a value, its own first, as JSON pointers.
    fn places(value: &Value, here: &str, found: &mut Vec<String>) {
        found.push(here.to_owned());
        match value {
            Value::Object(fields) => {
                fields
                    .iter()
                    .for_each(|(name, value)| places(value, &format!("{here}/{name}"), found));
            }
            Value::Array(values) => {
                values
                    .iter()
                    .enumerate()
                    .for_each(|(at, value)| places(value, &format!("{here}/{at}"), found));
            }
            _ => {}
        }
    }

    fn is_readable(result: &ReplyResult) -> bool {
        !matches!(result, Err(ReplyError::Malformed(why)) if why != NO_ENTRIES)
    }

    /// What may be in the place of any value.
    fn odd_values() -> impl Strategy<Value = Value> {
        let words = vec![
            "stop", "length", "error", "</think>", "<think>", "text", "a", "",
        ];
        prop_oneof![
            prop::sample::select(vec![
                json!(null),
                json!({}),
                json!([]),
                json!([[{}]]),
                json!(true),
                json!(-1),
                json!(1e300)
            ]),
            any::<i64>().prop_map(Value::from),
            "[a-z{}\"<>/ ]{0,9}".prop_map(Value::from),
            prop::sample::select(words).prop_map(Value::from),
        ]
    }

    #[test]
    fn unknown_fields_of_an_event_do_not_change_the_reply() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let unread = format!(
            r#""unread":[NaN,-Infinity,1e99999,{{"a":nan,"a":"NaN"}},{deep},"\ud800 ","\ud800"],"unread":7,"#
        );
        for api in table::DIALECTS {
            for event in usual_events(api) {
                let plain = event.to_string();
                let with_unread = plain.replacen('{', &format!("{{{unread}"), 1);
                let read = |event: &str| {
                    let mut reply = Reply::new(true);
                    let result = api.read_event(event, &mut reply);
                    // No text is joined with it.
                    reply.reading.other_half.clear();
                    (result, format!("{reply:?}"))
                };
                assert_eq!(read(&with_unread), read(&plain), "{plain}");
            }
        }
    }

    #[test]
    fn the_last_of_several_fields_with_one_name_counts() {
        let table = r##"
            openai | {"choices":[{"delta":{"content":"a","content":"b"}}]}
            openai | {"choices":[{"delta":{"content":"a"},"delta":{"content":"b"}}]}
            openai | {"choices":[{"delta":{"content":"a"}}],"choices":[{"delta":{"content":"b"}}]}
            openai | {"choices":[{"message":{"content":"a","content":"b"}}]}
            openai | {"choices":[{"delta":{"content":[{"text":"a","text":"b"}]}}]}
            openai | {"choices":[{"delta":{"content":"b"}}],"usage":null,"usage":{"prompt_tokens":1}}
            openai | {"choices":[{"index":0,"index":0,"delta":{"content":"b"},"finish_reason":null,"finish_reason":null}]}
            openai | {"error":null,"error":null,"citations":[],"citations":[],"choices":[{"delta":{"content":"b"}}]}
            openai | {"choices":[{"delta":{"reasoning":"a","reasoning":"a","refusal":null,"refusal":null,"content":"b"}}]}
            openai | {"choices":[{"delta":{"content":"b","tool_calls":[],"tool_calls":null}}]}
            openai | {"choices":[{"delta":{"content":"b","tool_calls":[{"index":0,"index":0,"function":{"name":"a","name":"a"}}]}}]}
            responses | {"type":"response.output_text.delta","delta":"a","delta":"b"}
            responses | {"type":"response.output_item.done","item":{"type":"message","content":[{"text":"a","text":"b"}]}}
            anthropic | {"type":"content_block_delta","delta":{"text":"a","text":"b"}}
            anthropic | {"type":"content_block_start","content_block":{"type":"text","text":"a","text":"b"}}
            gemini | {"candidates":[{"content":{"parts":[{"text":"a","text":"b"}]}}]}
            gemini | {"candidates":[{"content":{"parts":[{"text":"a"}],"parts":[{"text":"b"}]}}]}
        "##;
        for [dialect, event] in rows(table) {
            let mut reply = Reply::default();
            let result = named(dialect).read_event(event, &mut reply);
            assert_eq!(result, Ok(()), "{event}");
            reply.close();
            assert_eq!(reply.take_piece(true).text, "b", "{event}");
        }
    }

    /// Events and complete answers with a text in JSON, next to fields that are not read.
    const FORMS: &str = r##"
        openai | {"zz":UNREAD,"choices":[{"index":0,"delta":{"zz":UNREAD,"content":TEXT,"yy":UNREAD},"logprobs":{"content":[{"token":UNREAD}]}}],"yy":UNREAD} | {"zz":UNREAD,"choices":[{"message":{"content":TEXT,"zz":UNREAD}}]}
        responses | {"zz":UNREAD,"type":"response.output_text.delta","output_index":0,"delta":TEXT,"logprobs":[{"token":UNREAD}]} | {"zz":UNREAD,"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":TEXT,"zz":UNREAD}]}]}
        anthropic | {"zz":UNREAD,"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":TEXT,"zz":UNREAD}} | {"zz":UNREAD,"content":[{"type":"text","text":TEXT,"zz":UNREAD}]}
        gemini | {"zz":UNREAD,"candidates":[{"content":{"parts":[{"text":TEXT,"zz":UNREAD}]},"yy":UNREAD}]} | {"zz":UNREAD,"candidates":[{"content":{"parts":[{"text":TEXT,"zz":UNREAD}]}}]}
    "##;

    /// What may be in the fields that are not read.
    const UNREAD: [&str; 6] = [
        r#""""#,
        r#""\ud83c""#,
        r#""\ude01""#,
        r#""\ude01\ud83c""#,
        r#""A\ud83c""#,
        r#""\ud83d\ude01""#,
    ];

    #[test]
    fn halves_of_characters_are_joined_within_the_text_alone() {
        let table = r##"
            A | A
            A\ud83d ; \ude00B | A😀B
            A\ud83d ; B | A�B
            A\ud83d ; - ; \ude00B | A😀B
            A ; \ud83d ; \ude00 ; B | A😀B
            A ; \ud83d ; B | A�B
            A\ud83d ; \ud83d\ude00 | A�😀
            A\ud83d ; \ude00B\ud83d ; \ude00 | A😀B😀
            A ; \ude00B | A�B
            A\ud83d | A�
            \ud83d | �
        "##;
        for [texts, expected] in rows(table) {
            for [dialect, event, _] in rows(FORMS) {
                for unread in UNREAD {
                    let mut reply = Reply::default();
                    let mut found = String::new();
                    for text in texts.split(" ; ") {
                        let text = format!("\"{}\"", text.trim_matches('-'));
                        let event = event.replace("TEXT", &text).replace("UNREAD", unread);
                        let result = named(dialect).read_event(&event, &mut reply);
                        assert_eq!(result, Ok(()), "{event}");
                        found += &reply.take_piece(false).text;
                    }
                    reply.close();
                    found += &reply.take_piece(true).text;
                    assert_eq!(found, expected, "{dialect}: {texts}, {unread}");
                }
            }
        }
    }

    #[test]
    fn halves_of_characters_are_joined_in_reasoning_and_in_arguments() {
        // The dialect, what comes before the pieces, an event with a piece of reasoning or of arguments, and what comes after them.
        let table = r##"
            openai | - | {"choices":[{"delta":{"reasoning_content":"TEXT"}}]} | -
            openai | - | {"choices":[{"delta":{"reasoning":"TEXT","reasoning_details":[{"text":"TEXT"}]}}]} | -
            openai | - | {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"TEXT"}}]}}]} | -
            responses | - | {"type":"response.reasoning_summary_text.delta","delta":"TEXT"} | -
            responses | {"type":"response.output_item.added","item":{"type":"function_call","call_id":"x","name":"a"}} | {"type":"response.function_call_arguments.delta","delta":"TEXT"} | {"type":"response.completed","response":{"status":"completed"}}
            anthropic | {"type":"content_block_start","index":0,"content_block":{"type":"thinking"}} | {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"TEXT"}} | -
            anthropic | {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"x","name":"a","input":{}}} | {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"TEXT"}} | {"type":"message_stop"}
            gemini | - | {"candidates":[{"content":{"parts":[{"text":"TEXT","thought":true}]}}]} | -
        "##;
        for [dialect, before, event, after] in rows(table) {
            let mut reply = Reply::new(true);
            let mut events = vec![before.to_owned()];
            for text in [r"A\ud83d", "", r"\ude00B\ud83d", r"\ude00"] {
                events.push(event.replace("TEXT", text));
            }
            events.push(after.to_owned());
            for event in events.iter().filter(|event| !event.is_empty()) {
                let result = named(dialect).read_event(event, &mut reply);
                assert_eq!(result, Ok(()), "{event}");
            }
            let reasoning = reply.take_piece(true).reasoning;
            let calls = reply.turn.calls().iter();
            let arguments = calls.map(|call| &*call.arguments).collect::<String>();
            let found = format!("{}{arguments}", reasoning.trim());
            assert_eq!(found, "A😀B😀", "{event}");
        }
    }

    #[test]
    fn halves_of_characters_in_a_complete_answer_are_replaced_in_its_text() {
        for (text, expected) in [("A", "A"), (r"A\ud83d", "A�"), (r"\ude00A", "�A")] {
            for [dialect, _, whole] in rows(FORMS) {
                for unread in UNREAD {
                    let whole = whole.replace("TEXT", &format!("\"{text}\""));
                    let whole = whole.replace("UNREAD", unread);
                    for body in [whole.clone(), format!("[{whole}]")] {
                        let mut reply = Reply::default();
                        let result = named(dialect).read_whole(&body, &mut reply);
                        assert_eq!(result, Ok(()), "{body}");
                        assert_eq!(reply.take_piece(true).text, expected, "{body}");
                    }
                }
            }
        }
    }

    #[test]
    fn halves_of_characters_in_a_finished_text_repeat_those_of_its_increments() {
        // The increments, the text that is finished then, and the answer.
        let table = r##"
            A\ud83d ; \ude00B | A\ud83d\ude00B | A😀B
            A\ud83d ; B | A\ud83dB | A�B
            A\ud83d | A\ud83d | A�
            A\ud83d | A\ud83d\ude00 | A😀
        "##;
        let events = r##"
            {"type":"response.output_text.done","output_index":0,"text":"TEXT"}
            {"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"TEXT"}]}}
            {"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"TEXT"}]}]}}
        "##;
        let delta = r#"{"type":"response.output_text.delta","output_index":0,"delta":"TEXT"}"#;
        for [increments, finished, expected] in rows(table) {
            let mut reply = Reply::default();
            let mut made = Vec::new();
            for text in increments.split(" ; ") {
                made.push(delta.replace("TEXT", text));
            }
            for [event] in rows(events) {
                made.push(event.replace("TEXT", finished));
            }
            for event in &made {
                let result = named("responses").read_event(event, &mut reply);
                assert_eq!(result, Ok(()), "{event}");
            }
            assert_eq!(reply.take_piece(true).text, expected, "{increments}");
            assert_eq!(reply.end.incomplete_reason(), None, "{increments}");
        }
    }

    /// The text after an event, and after a whole answer, and what went wrong instead.
    fn texts(api: &Dialect, json: &str) -> [Result<String, ReplyError>; 2] {
        [api.event, api.whole].map(|read| {
            let mut reply = Reply::default();
            read_with_null(read, json, &mut reply)?;
            reply.close();
            Ok(reply.take_piece(false).text)
        })
    }

    #[test]
    fn a_whole_answer_after_a_byte_order_mark_is_read() {
        let mut reply = Reply::default();
        let body = "\u{feff}{\"choices\":[{\"message\":{\"content\":\"a\"}}]}";
        assert_eq!(named("openai").read_whole(body, &mut reply), Ok(()));
        assert_eq!(reply.take_piece(true).text, "a");
    }

    #[test]
    fn an_empty_error_field_is_not_an_error() {
        let table = r##"
            openai | {"error":EMPTY,"choices":[{"message":{"content":"a"}}]}
            openai | {"choices":[{"error":EMPTY,"message":{"content":"a"}}]}
            responses | {"type":"response.output_text.delta","delta":"a","status":"completed","output":[{"type":"message","content":"a"}],"error":EMPTY}
            anthropic | {"type":"content_block_delta","delta":{"text":"a"},"content":[{"type":"text","text":"a"}],"error":EMPTY}
            anthropic | {"type":"content_block_start","content_block":{"type":"text","text":"a"},"content":[{"type":"text","text":"a"}],"error":EMPTY}
            gemini | {"error":EMPTY,"candidates":[{"content":{"parts":[{"text":"a"}]}}]}
        "##;
        for [dialect, json] in rows(table) {
            for empty in [
                "null",
                "{}",
                "[]",
                "\"\"",
                "false",
                "0",
                r#"{"message":""}"#,
                r#"{"message":"","code":null,"type":""}"#,
            ] {
                let json = json.replace("EMPTY", empty);
                let found = texts(named(dialect), &json);
                assert_eq!(found, [Ok("a".into()), Ok("a".into())], "{json}");
            }
            let json = json.replace("EMPTY", r#"{"message":"no"}"#);
            if dialect != "anthropic" {
                assert!(texts(named(dialect), &json)[1].is_err(), "{json}");
            }
            assert!(texts(named(dialect), &json)[0].is_err(), "{json}");
        }
        let citation =
            r#"{"type":"content_block_delta","delta":{"citation":{"url":"https://a"}},"error":{}}"#;
        let words = r#"{"type":"content_block_delta","delta":{"text":"a"}}"#;
        let mut reply = replied(named("anthropic"), &[citation, words]);
        assert_eq!(reply.take_piece(false).sources.len(), 1);
    }

    #[test]
    fn a_repeated_count_leaves_the_answer_intact_and_the_last_one_counts() {
        let table = r##"
            openai | {"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":1,"prompt_tokens":7}}
            openai | {"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":7,"prompt_tokens_details":{"cached_tokens":1,"cached_tokens":2}}}
            responses | {"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":"a"}],"usage":{"input_tokens":1,"input_tokens":7}}}
            anthropic | {"type":"content_block_start","content_block":{"type":"text","text":"a"},"usage":{"input_tokens":1,"input_tokens":7}}
            anthropic | {"type":"content_block_start","content_block":{"type":"text","text":"a"},"message":{"usage":{"input_tokens":1,"input_tokens":7}}}
            gemini | {"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":1,"promptTokenCount":7}}
        "##;
        for [dialect, json] in rows(table) {
            let mut reply = replied(named(dialect), &[json]);
            reply.close();
            assert_eq!(reply.take_piece(false).text, "a", "{json}");
            let usage = reply.usage().expect(json);
            assert_eq!(usage.input_tokens, Some(7), "{json}");
        }
    }

    #[test]
    fn only_the_first_of_several_answers_is_the_answer() {
        // The answer, and the entries that one event or a whole answer has.
        let table = r##"
            a | 0 a ; 1 b
            a | 1 b ; 0 a
            ab | 0 a ; 0 b ; 1 c
            a | "0" a ; "1" b
            a | "1" b ; "0" a
            a | 0.0 a ; 1.0 b
            a | 1.0 b ; 0.0 a
            a | "1.0" b ; 0e0 a
            - | 1 b
            - | "1" b
            a | - a ; - b
            a | null a ; null b
            a | -1 a ; true b
            a | - a ; 1 b
            a | 1 b ; - a
            ab | 0 a ; - b ; 2 c
        "##;
        for [expected, entries] in rows(table) {
            let forms = [
                ("openai", "choices", r#""message":{"content":"TEXT"}"#),
                (
                    "gemini",
                    "candidates",
                    r#""content":{"parts":[{"text":"TEXT"}]}"#,
                ),
            ];
            for (dialect, list, form) in forms {
                let mut made = Vec::new();
                for entry in entries.split(" ; ") {
                    let (index, text) = entry.split_once(' ').expect(entry);
                    let text = form.replace("TEXT", text);
                    match index {
                        "-" => made.push(format!("{{{text}}}")),
                        index => made.push(format!("{{\"index\":{index},{text}}}")),
                    }
                }
                let json = format!("{{\"{list}\":[{}]}}", made.join(","));
                let found = texts(named(dialect), &json);
                let text = expected.replace('-', "");
                assert_eq!(found, [Ok(text.clone()), Ok(text)], "{json}");
            }
        }
    }

    #[test]
    fn calls_are_distinguished_by_an_index_of_any_type() {
        for [one, two] in [["0", "1"], ["\"0\"", "\"1\""], ["0.0", "1.0"]] {
            let events = [(one, "x", "a"), (two, "y", "b"), (one, "", "")].map(|(index, id, name)| {
                format!(
                    r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":{index},"id":"{id}","function":{{"name":"{name}","arguments":"1"}}}}]}}}}]}}"#
                )
            });
            let events: Vec<&str> = events.iter().map(String::as_str).collect();
            let reply = replied_with_tools(named("openai"), &events);
            assert_eq!(
                calls_of(&reply),
                [("x", "a", "11"), ("y", "b", "1")],
                "{one}"
            );
        }
    }

    #[test]
    fn an_answer_in_an_odd_place_of_the_json_is_read_or_reported_as_an_error() {
        // The text, or nothing if it is an error.
        let table = r##"
            openai | a | {"choices":{"message":{"content":"a"}}}
            openai | a | {"choices":[null,"",[],{"message":{"content":"a"}}]}
            openai | ERROR | {"choices":"a"}
            openai | ERROR | {"choices":["a"]}
            openai | ERROR | {"choices":[["a"]]}
            openai | ERROR | {"choices":[{"message":{"content":"a"}},"b"]}
            openai | - | {"choices":null}
            openai | - | {"choices":7}
            openai | - | {"choices":""}
            openai | - | {"choices":[7]}
            openai | - | {"choices":[{"delta":"a","message":7}]}
            gemini | a | {"candidates":{"content":{"parts":[{"text":"a"}]}}}
            gemini | a | {"candidates":[{"content":{"parts":{"text":"a"}}}]}
            gemini | ERROR | {"candidates":"a"}
            gemini | ERROR | {"candidates":[["a"]]}
            gemini | ERROR | {"candidates":[{"content":{"parts":"a"}}]}
            gemini | - | {"candidates":[{"content":{"parts":""}}]}
        "##;
        for [dialect, expected, json] in rows(table) {
            for found in texts(named(dialect), json) {
                match expected {
                    "ERROR" => {
                        let expected = ReplyError::Malformed(NO_ENTRIES.to_owned());
                        assert_eq!(found, Err(expected), "{json}");
                    }
                    text => assert_eq!(found, Ok(text.replace('-', "")), "{json}"),
                }
            }
        }
        let table = r##"
            anthropic | a | {"content":{"type":"text","text":"a"}}
            anthropic | ERROR | {"content":"a"}
            responses | a | {"output":{"type":"message","content":"a"}}
            responses | ERROR | {"output":"a"}
        "##;
        for [dialect, expected, json] in rows(table) {
            let [_, found] = texts(named(dialect), json);
            let found = found.unwrap_or_else(|_| "ERROR".to_owned());
            assert_eq!(found, expected, "{json}");
        }
    }

    proptest! {
        #[test]
        fn odd_events_never_panic_and_the_text_is_the_same_whenever_it_is_taken(
            api in prop::sample::select(table::DIALECTS),
            changes in prop::collection::vec(
                (any::<prop::sample::Index>(), any::<prop::sample::Index>(), prop::option::of(odd_values())), 0..8),
            offers_tools in any::<bool>(),
        ) {
            let usual = usual_events(api);
            let mut events = Vec::new();
            for (which, place, odd) in changes {
                let mut event = which.get(&usual).clone();
                let mut found = Vec::new();
                places(&event, "", &mut found);
                if let (Some(odd), Some(value)) = (odd, event.pointer_mut(place.get(&found[..]).as_str())) {
                    *value = odd;
                }
                events.push(event.to_string());
            }
            let read = |takes_early: bool| {
                let (mut reply, mut text) = (Reply::new(offers_tools), String::new());
                for event in &events {
                    // It may be an error, but of the form only where the answer would be lost.
                    let result = api.read_event(event, &mut reply);
                    prop_assert!(is_readable(&result), "{event}: {result:?}");
                    if takes_early {
                        text.push_str(&reply.take_piece(false).text);
                    }
                }
                reply.close();
                text.push_str(&reply.take_piece(false).text);
                Ok((text, reply.turn.calls().to_vec(), reply.turn.echo(), reply.end.finish().cloned()))
            };
            prop_assert_eq!(read(true)?, read(false)?);
            for event in events.iter().filter(|event| event.starts_with('{')) {
                let result = api.read_whole(event, &mut Reply::new(offers_tools));
                prop_assert!(is_readable(&result), "{event}: {result:?}");
            }
        }
    }
}
