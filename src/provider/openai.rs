//! Makes requests for OpenAI's chat completions, and reads the replies of the many compatible servers (pure).

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::attachment;
use super::calls;
use super::counts::Counts;
use super::dialect::Dialect;
use super::failure::{self, ReplyResult};
use super::kept;
use super::lenient::{Content, Entries, Index, Json, Object, Text};
use super::reply::{Reply, TextPlace};
use super::request::{self, AnswerForm, OptionalField, Prompt, Quirks, SHAPE_NAME};
use super::tool_schema::ToolSchemas;
use crate::message::{self, Attachment, Message, Step, Tool, ToolCall, ToolRun, Usage};
use crate::server_url::Version;

/// Chat completions, as most servers speak them.
pub static DIALECT: Dialect = Dialect {
    name: "openai",
    version: Version::InBaseUrl,
    models_path: "/models",
    fixed_headers: &[],
    key_header: ("authorization", "Bearer "),
    takes_bearer: false,
    chat: |prompt, quirks| ("/chat/completions".to_owned(), body(prompt, quirks)),
    event: |data, reply| read_chunk(data, PartForm::Increment, reply),
    whole: |body, reply| read_chunk(body, PartForm::WholeAnswer, reply),
    ends_with_done: true,
    optional_fields: &[
        (OptionalField::Effort, "/reasoning_effort"),
        (OptionalField::Form, "/response_format"),
        (OptionalField::Usage, "/stream_options"),
        (OptionalField::Limit, "/max_tokens"),
        (OptionalField::Limit, "/max_completion_tokens"),
        (OptionalField::System, "/messages"),
    ],
    enforces_maps: true,
    searches: false,
    groups_tools: false,
    tool_schemas: ToolSchemas::Any,
};

/// DeepSeek's field for reasoning, which others use too.
const REASONING: &str = "reasoning_content";

/// The field of Groq, vLLM, Ollama, Cerebras, LocalAI and OpenRouter for the same. Each takes back its own, and some reject
/// the other.
const PLAIN_REASONING: &str = "reasoning";

/// The field of a call in which Google sends a signature, and wants it back.
const EXTRA_CONTENT: &str = "extra_content";

/// OpenRouter's field for reasoning: a list, with signatures.
const REASONING_DETAILS: &str = "reasoning_details";

/// The web search of OpenRouter, the only server with this dialect for which q knows one.
const WEB_SEARCH: &str = "openrouter:web_search";

/// The place of all text: a reply has one message.
const PLACE: TextPlace = TextPlace {
    message: None,
    part: None,
};

/// A name of the limit of tokens.
#[derive(Clone, Copy, PartialEq)]
enum LimitName {
    /// `max_tokens`
    Old,
    /// `max_completion_tokens`
    New,
}

impl LimitName {
    /// Returns the provider's usual one, or the other one once it has rejected that.
    fn new(prompt: &Prompt, quirks: Quirks) -> LimitName {
        let mut usual = LimitName::Old;
        if quirks.max_completion_tokens {
            usual = LimitName::New;
        }
        if prompt.sends(OptionalField::Limit) {
            usual
        } else {
            usual.other()
        }
    }

    fn other(self) -> LimitName {
        match self {
            LimitName::Old => LimitName::New,
            LimitName::New => LimitName::Old,
        }
    }
}

fn body(prompt: &Prompt, quirks: Quirks) -> Value {
    let usage = json!({"include_usage": true});
    let asks_for_usage = prompt.stream && quirks.stream_usage && prompt.sends(OptionalField::Usage);
    let limit_name = LimitName::new(prompt, quirks);
    let limit_as = |name| prompt.max_tokens.filter(|_| limit_name == name);
    let mut body = json!({
        "model": prompt.model,
        "stream": prompt.stream,
        "stream_options": asks_for_usage.then_some(usage),
        "max_tokens": limit_as(LimitName::Old),
        "max_completion_tokens": limit_as(LimitName::New),
        "reasoning_effort": prompt.effort,
        "response_format": format_of(prompt.form),
        "messages": null,
        "tools": tools(prompt),
    });
    body["messages"] = messages(prompt, quirks).into();
    request::without_empty(body)
}

/// Returns the tools that are offered. Some servers ignore `tool_choice`, so no tools are offered where calls are forbidden.
fn tools(prompt: &Prompt) -> Vec<Value> {
    if prompt.forbids_calls {
        return Vec::new();
    }
    let mut tools = Vec::from_iter(prompt.tools.iter().map(offer));
    if prompt.web {
        tools.push(json!({"type": WEB_SEARCH}));
    }
    tools
}

fn offer(tool: &Tool) -> Value {
    let function = json!({
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema,
    });
    json!({"type": "function", "function": function})
}

/// Returns the system prompt, the messages, and the calls of this question with their results.
fn messages(prompt: &Prompt, quirks: Quirks) -> Vec<Value> {
    let mut messages = Vec::new();
    if !prompt.system.is_empty() {
        messages.push(json!({"role": "system", "content": prompt.system}));
    }
    for message in &prompt.messages {
        messages.push(turn(message, quirks));
    }
    if !prompt.forbids_calls {
        for step in prompt.steps {
            messages.extend(elements_of(step, prompt, quirks));
        }
    } else if let Some(question) = prompt.messages.last() {
        // Some servers reject calls in a request without tools, so the calls become text.
        messages.pop();
        messages.push(turn(&with_calls(question, prompt.steps), quirks));
    }
    messages
}

fn turn(message: &Message, quirks: Quirks) -> Value {
    let attachments = message.attachments.iter();
    let parts = attachments.map(|attachment| part_of(attachment, quirks));
    let content = attachment::content(parts, &message.text);
    request::object([("role", json!(message.role)), ("content", content)])
}

/// Returns the question with its calls as text after it, and with their images.
fn with_calls(question: &Message, steps: &[Step]) -> Message {
    let mut question = question.clone();
    if steps.is_empty() {
        return question;
    }
    let calls = message::calls_as_text(steps);
    if question.text.is_empty() {
        question.text = calls.into();
    } else {
        question.text = format!("{}\n\n{calls}", question.text).into();
    }
    for step in steps {
        question.attachments.extend(images_of(step).cloned());
    }
    question
}

fn part_of(attachment: &Attachment, quirks: Quirks) -> Value {
    let url = attachment::url(attachment).into();
    if attachment.is_image() {
        let image = request::object([("url", url)]);
        return request::object([("type", "image_url".into()), ("image_url", image)]);
    }
    if quirks.document_url {
        return request::object([("type", "document_url".into()), ("document_url", url)]);
    }
    let name = attachment::file_name(attachment).into();
    let file = request::object([("filename", name), ("file_data", url)]);
    request::object([("type", "file".into()), ("file", file)])
}

fn format_of(form: AnswerForm) -> Option<Value> {
    match form {
        AnswerForm::Any => None,
        AnswerForm::Object => Some(json!({"type": "json_object"})),
        AnswerForm::Shaped(shape) => {
            let schema = json!({
                "name": SHAPE_NAME,
                "schema": shape.schema,
                "strict": shape.is_strict(),
            });
            Some(json!({"type": "json_schema", "json_schema": schema}))
        }
    }
}

/// Returns the model's turn, and a message for the result of each call.
fn elements_of(step: &Step, prompt: &Prompt, quirks: Quirks) -> Vec<Value> {
    let mut elements = vec![answer_of(step, prompt, quirks)];
    for run in &step.calls {
        elements.push(json!({
            "role": "tool",
            "tool_call_id": run.id,
            "content": run.result,
        }));
    }
    let images = Vec::from_iter(images_of(step).map(|image| part_of(image, quirks)));
    // A result can have only text, so the images follow in a message of the user.
    if !images.is_empty() {
        elements.push(json!({"role": "user", "content": images}));
    }
    elements
}

/// Returns the model's turn, with the fields that came with its calls, unless they have been rejected.
fn answer_of(step: &Step, prompt: &Prompt, quirks: Quirks) -> Value {
    let sends_sealed = prompt.sends(OptionalField::SealedReasoning);
    let fields = step.echo.fields();
    let mut calls = Vec::from_iter(step.calls.iter().map(call_of));
    if !sends_sealed {
        for call in calls.iter_mut().filter_map(Value::as_object_mut) {
            call.shift_remove(EXTRA_CONTENT);
        }
    }
    let mut turn = json!({
        "role": "assistant",
        "content": step.text,
        "tool_calls": calls,
    });
    if quirks.returns_reasoning {
        turn[REASONING] = "".into();
    }
    if let Some(fields) = fields {
        for (name, text) in [
            (REASONING, &fields.reasoning),
            (PLAIN_REASONING, &fields.plain),
        ] {
            if !text.is_empty() {
                turn[name] = text.as_str().into();
            }
        }
        if sends_sealed && !fields.details.is_empty() {
            turn[REASONING_DETAILS] = fields.details.value();
        }
    }
    turn
}

fn call_of(run: &ToolRun) -> Value {
    let arguments = calls::text(&run.arguments);
    let function = json!({"name": run.name, "arguments": arguments});
    request::without_empty(json!({
        "id": run.id,
        "type": "function",
        "function": function,
        (EXTRA_CONTENT): run.api_data,
    }))
}

/// Returns the images in the results of a step.
fn images_of(step: &Step) -> impl Iterator<Item = &Attachment> {
    step.calls.iter().flat_map(|run| &run.images)
}

/// An event of a stream, or a complete answer, as far as q reads it. Skipping the rest makes long streams fast.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: Entries<ChunkChoice<'a>>,
    error: Json<'a>,
    usage: Json<'a>,
    /// The addresses of Perplexity's sources.
    citations: Json<'a>,
    /// Perplexity's sources with their titles.
    search_results: Json<'a>,
    /// Groq's own fields, in the first and the last event.
    x_groq: Object<GroqFields<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GroqFields<'a> {
    /// Why a stream was stopped early.
    #[serde(borrow)]
    error: Json<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChunkChoice<'a> {
    index: Index,
    /// In a stream.
    #[serde(borrow)]
    delta: Object<Delta<'a>>,
    /// In a complete answer; Perplexity sends both, and gateways the one next to an empty other one.
    message: Json<'a>,
    /// In the older API for completions, which some gateways answer in.
    text: Text<'a>,
    finish_reason: Text<'a>,
    error: Json<'a>,
}

/// What a part of the answer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartForm {
    /// A piece of the message, in a stream.
    Increment,
    /// A message, in a stream that has had no increments of it.
    Message,
    /// A message after its increments, as some servers send it at the end of a stream.
    Repetition,
    WholeAnswer,
}

impl PartForm {
    /// Returns the form of a message in an event or a complete answer.
    fn of_message(is_whole: bool, reply: &Reply) -> PartForm {
        if reply.has_open_message() {
            PartForm::Repetition
        } else if is_whole {
            PartForm::WholeAnswer
        } else {
            PartForm::Message
        }
    }
}

/// A part of the answer, or all of it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Content<'a>,
    refusal: Json<'a>,
    tool_calls: Json<'a>,
    annotations: Json<'a>,
    /// OpenRouter's.
    images: Json<'a>,
    /// See [`REASONING`].
    reasoning_content: Text<'a>,
    /// See [`PLAIN_REASONING`].
    reasoning: Text<'a>,
    /// See [`REASONING_DETAILS`].
    reasoning_details: Json<'a>,
}

impl Delta<'_> {
    /// Whether it adds anything. Some servers send an empty one next to the message.
    fn says_something(&self) -> bool {
        if !self.content.text.is_empty() {
            return true;
        }
        let texts = [&self.reasoning_content, &self.reasoning];
        let fields = [
            self.refusal,
            self.tool_calls,
            self.annotations,
            self.images,
            self.reasoning_details,
        ];
        let is_filled = |field: Json| !matches!(field.get(), "null" | "[]" | r#""""#);
        self.content.rest.is_some()
            || texts.into_iter().any(|text| !text.is_empty())
            || fields.into_iter().any(is_filled)
    }
}

/// A call, or a part of one.
#[derive(Default, Deserialize)]
#[serde(default)]
struct CallFragment<'a> {
    index: Index,
    #[serde(borrow)]
    id: Text<'a>,
    function: Object<CalledFunction<'a>>,
    /// See [`EXTRA_CONTENT`].
    extra_content: Json<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CalledFunction<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    arguments: Json<'a>,
}

fn usage_of(counts: &Counts) -> Usage {
    let mut usage = counts.usage();
    // xAI and Gemini do not count reasoning among the tokens of the answer, but in the total.
    let total = counts.total_tokens.0.map(u64::from);
    let has_sound = counts.prompt_audio_seconds.0.is_some();
    if let (Some(total), Some(input), false) = (total, usage.input_tokens, has_sound) {
        usage.output_tokens = usage.output_tokens.max(total.checked_sub(input));
    }
    usage
}

/// Reads an event, whose parts have this form unless they say otherwise, or a complete answer.
fn read_chunk(data: &str, usual_form: PartForm, reply: &mut Reply) -> ReplyResult {
    let chunk: Chunk = serde_json::from_str(data)?;
    let choices = chunk.choices.of_first_choice(|choice| choice.index)?;
    // vLLM and Mistral report errors in fields of their own.
    if choices.is_empty() || !chunk.error.is_null() {
        failure::check(data)?;
    }
    let mut error = chunk.x_groq.0.unwrap_or_default().error;
    // Options may ask for several choices; q prints the first, of which an event may have several entries, as Dynamo sends
    // them.
    for choice in choices.iter() {
        if error.is_null() {
            error = choice.error;
        }
        read_choice(choice, usual_form, reply)?;
    }
    // The sources of the text come first, as they do in a stream. These are Perplexity's.
    for pages in [chunk.citations, chunk.search_results] {
        add_sources(pages, reply);
    }
    // Few events have it.
    if !chunk.usage.is_null() {
        reply.add_usage(usage_of(&Counts::read(chunk.usage)));
    }
    if !error.is_null() {
        failure::check_field(&error.value())?;
    }
    Ok(())
}

/// Reads a choice: a part of the answer, or all of it, in a delta or a message, and how it ends.
fn read_choice(choice: &ChunkChoice, usual_form: PartForm, reply: &mut Reply) -> ReplyResult {
    let is_whole = usual_form == PartForm::WholeAnswer;
    let has_message = choice.message.is_object();
    match &choice.delta.0 {
        Some(delta) if !has_message || (!is_whole && delta.says_something()) => {
            read_part(delta, PartForm::Increment, &choice.text, reply)?;
        }
        _ => {
            let form = PartForm::of_message(is_whole, reply);
            read_part(&choice.message.object()?, form, &choice.text, reply)?;
        }
    }
    reply.end.read(&choice.finish_reason);
    Ok(())
}

/// Reads a part of the answer. `completion` is the text in the older API, which has no messages.
fn read_part(part: &Delta, form: PartForm, completion: &str, reply: &mut Reply) -> ReplyResult {
    add_calls(part.tool_calls, form, reply)?;
    add_reasoning(part, form, reply)?;
    add_text(part, form, completion, reply)?;
    add_sources(part.annotations, reply);
    if !part.images.is_null() && (form == PartForm::Increment || reply.activity.images == 0) {
        reply.activity.images += part.images.list::<&RawValue>()?.len();
    }
    Ok(())
}

/// Adds the text of a part, and what the model says instead of it.
fn add_text(part: &Delta, form: PartForm, completion: &str, reply: &mut Reply) -> ReplyResult {
    let text = &*part.content.text;
    match form {
        PartForm::Increment => reply.add_increment(PLACE, text),
        PartForm::Message => reply.add_snapshot(PLACE, text),
        PartForm::Repetition => reply.finish_text(PLACE, text),
        PartForm::WholeAnswer => reply.add_text(text),
    }
    if text.is_empty() && !reply.has_open_message() {
        reply.add_text(completion);
    }
    let refusal = refusal_in(part)?;
    match form {
        PartForm::Increment => reply.refuse_further(PLACE, &refusal),
        PartForm::Repetition => reply.finish_refusal(&refusal),
        PartForm::Message | PartForm::WholeAnswer => reply.refuse(&refusal),
    }
    Ok(())
}

/// Returns what the model says instead of an answer. Few events have it.
fn refusal_in<'a>(part: &Delta<'a>) -> ReplyResult<Cow<'a, str>> {
    if part.refusal.is_null() {
        return Ok(Cow::default());
    }
    Ok(part.refusal.content()?.text)
}

/// Adds sources. Few events have any.
fn add_sources(pages: Json, reply: &mut Reply) {
    if !pages.is_null() {
        reply.answer.add_sources(pages.sources());
    }
}

/// Adds calls, or parts of calls, unless they have come as increments.
fn add_calls(calls: Json, form: PartForm, reply: &mut Reply) -> ReplyResult {
    let is_increment = form == PartForm::Increment;
    if !is_increment && reply.reading.has_streamed_calls {
        return Ok(());
    }
    let fragments: Vec<Object<CallFragment>> = calls.list()?;
    for (fragment, position) in fragments.into_iter().zip(0..) {
        let fragment = fragment.0.unwrap_or_default();
        let function = fragment.function.0.unwrap_or_default();
        let index = fragment.index.0.unwrap_or(position);
        reply.reading.has_streamed_calls |= is_increment && !function.name.is_empty();
        let call = ToolCall {
            id: fragment.id.to_string(),
            name: function.name.to_string(),
            arguments: function.arguments.as_text(),
            api_data: Value::Null,
        };
        let place = reply.add_call(index, call);
        if let Some(place) = place {
            reply.turn.add_api_data(place, fragment.extra_content);
        }
    }
    Ok(())
}

/// Reads the reasoning, unless it or the text has come as increments. It comes in one of three fields, or in parts of the content, as Mistral
/// writes it. Where tools are offered, it is kept to go back with the calls, in the field in which it came.
fn add_reasoning(delta: &Delta, form: PartForm, reply: &mut Reply) -> ReplyResult {
    let is_increment = form == PartForm::Increment;
    let has_come = !is_increment && reply.reading.has_streamed_reasoning;
    if has_come || form == PartForm::Repetition {
        return Ok(());
    }
    let details = delta.reasoning_details.list::<&RawValue>()?;
    let mut plain = &*delta.reasoning;
    if !delta.reasoning_content.is_empty() || !details.is_empty() {
        // The others say the same.
        plain = "";
    }
    let turn = &mut reply.turn;
    if turn.offers_tools {
        let text = &*delta.reasoning_content;
        if turn.budget.spend(text.len()) {
            turn.fields.reasoning.push_str(text);
        }
        if turn.budget.spend(plain.len()) {
            turn.fields.plain.push_str(plain);
        }
        for detail in &details {
            if turn.budget.spend(kept::weight_of_text(detail.get())) {
                turn.fields.details.push(detail.get());
            }
        }
    }
    let mut thought = &*delta.reasoning_content;
    if thought.is_empty() {
        thought = &delta.reasoning;
    }
    // OpenRouter hides some reasoning: its text is in neither field.
    if !thought.is_empty() || !details.is_empty() {
        reply.reading.has_streamed_reasoning |= is_increment;
        reply.think(thought);
    }
    if let Some(rest) = &delta.content.rest
        && !rest.thinking.is_empty()
    {
        reply.reading.has_streamed_reasoning |= is_increment;
        reply.think(&rest.thinking);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::attachment::tests::{image, pdf, question};
    use super::super::dialect::tests::{calls_of, prompt, replied_with_tools};
    use super::super::table;
    use super::*;
    use proptest::prelude::*;

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
    fn extra_fields_of_a_call_stay_with_it_after_a_call_without_a_name() {
        let signed = |id: &str, name: &str, signature: &str| {
            let function = json!({"name": name, "arguments": "{}"});
            let extra = json!({"google": {"thought_signature": signature}});
            json!({"id": id, "function": function, "extra_content": extra})
        };
        let calls = json!([
            signed("x", "", "of none"),
            signed("y", "a", "s"),
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
