//! Reads the events of a stream of chat completions, and complete answers, which have the same form (pure).

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::body::{EXTRA_CONTENT, FUNCTION_SIGNATURE, PROVIDER_FIELDS, SIGNATURE};
use crate::message::{ToolCall, Usage};
use crate::provider::calls::FragmentPlace;
use crate::provider::counts::Counts;
use crate::provider::failure::{self, ReplyResult};
use crate::provider::kept;
use crate::provider::lenient::{self, Content, Entries, Index, Json, Object, Text, text_field};
use crate::provider::reply::{ModelTurn, Reply, TextPlace};

/// The place of all text: a reply has one message.
const PLACE: TextPlace = TextPlace {
    message: None,
    part: None,
};

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
    /// See [`super::body::REASONING`].
    reasoning_content: Text<'a>,
    /// See [`super::body::PLAIN_REASONING`].
    reasoning: Text<'a>,
    /// See [`super::body::REASONING_DETAILS`].
    reasoning_details: Json<'a>,
    /// See [`super::body::THINKING_BLOCKS`].
    thinking_blocks: Json<'a>,
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
            self.thinking_blocks,
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
    /// See [`PROVIDER_FIELDS`].
    provider_specific_fields: Json<'a>,
    /// See [`SIGNATURE`].
    thought_signature: Json<'a>,
}

impl CallFragment<'_> {
    /// Returns the fields that go back with the call, and their names. LiteLLM has one of them for other things, too.
    fn returned_fields(&self) -> impl Iterator<Item = (&'static str, Json<'_>)> {
        let litellm = self.provider_specific_fields;
        let has_signature = litellm.get().contains("\"thought_signature\"");
        let litellm = has_signature.then_some((PROVIDER_FIELDS, litellm));
        let own = [
            (EXTRA_CONTENT, self.extra_content),
            (SIGNATURE, self.thought_signature),
        ];
        own.into_iter().chain(litellm)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CalledFunction<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    arguments: Json<'a>,
    /// See [`SIGNATURE`].
    thought_signature: Json<'a>,
}

pub fn usage_of(counts: &Counts) -> Usage {
    let mut usage = counts.usage();
    // xAI and Gemini do not count reasoning among the tokens of the answer, but in the total.
    let total = counts.total_tokens.0.map(u64::from);
    let has_sound = counts.prompt_audio_seconds.0.is_some();
    if let (Some(total), Some(input)) = (total, usage.input_tokens)
        && !has_sound
    {
        usage.output_tokens = usage.output_tokens.max(total.checked_sub(input));
    }
    usage
}

/// Adds an event of a stream to the reply, unless it is an error.
pub fn read_event(data: &str, reply: &mut Reply) -> ReplyResult {
    read_chunk(data, PartForm::Increment, reply)
}

/// Adds an answer that came in one piece to the reply.
pub fn read_whole(body: &str, reply: &mut Reply) -> ReplyResult {
    read_chunk(body, PartForm::WholeAnswer, reply)
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
    if form == PartForm::Increment || reply.activity.images == 0 {
        reply.activity.images += images_in(part)?;
    }
    Ok(())
}

/// Returns how many images a part has: in a field of their own, in its content, or in both. Few events have any.
fn images_in(part: &Delta) -> ReplyResult<usize> {
    let in_content = part.content.images();
    if part.images.is_null() {
        return Ok(in_content);
    }
    let listed = part.images.list::<&RawValue>()?.len();
    Ok(listed.max(in_content))
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
    let is_alone = fragments.len() == 1;
    for (fragment, position) in fragments.into_iter().zip(0..) {
        let mut fragment = fragment.0.unwrap_or_default();
        let function = std::mem::take(&mut fragment.function).0.unwrap_or_default();
        let at = match fragment.index.0 {
            Some(index) => FragmentPlace::Index(index),
            None if is_alone => FragmentPlace::Alone,
            None => FragmentPlace::AmongSeveral(position),
        };
        reply.reading.has_streamed_calls |= is_increment && !function.name.is_empty();
        let call = ToolCall {
            id: fragment.id.to_string(),
            name: function.name.to_string(),
            arguments: function.arguments.as_text(),
            api_data: Value::Null,
        };
        let place = reply.add_call(at, call);
        if let Some(place) = place {
            for (name, data) in fragment.returned_fields() {
                reply.turn.add_api_data(place, name, data);
            }
            let signature = function.thought_signature;
            reply
                .turn
                .add_api_data(place, FUNCTION_SIGNATURE, signature);
        }
    }
    Ok(())
}

/// Reads the reasoning, unless it or the text has come as increments. It comes in one of three fields, or in parts of the
/// content, as Mistral writes it. Where tools are offered, it is kept to go back with the calls, in the field in which it came.
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
    if reply.turn.offers_tools {
        keep_reasoning(delta, plain, &details, &mut reply.turn)?;
    }
    let mut thought = &*delta.reasoning_content;
    if thought.is_empty() {
        thought = &delta.reasoning;
    }
    // OpenRouter hides some reasoning: its text is in neither field.
    if !thought.is_empty() || !details.is_empty() {
        show_thought(thought, is_increment, reply);
    }
    if let Some(rest) = &delta.content.rest
        && !rest.thinking.is_empty()
    {
        show_thought(&rest.thinking, is_increment, reply);
    }
    Ok(())
}

/// Keeps the reasoning of a delta, each field of it if there is room. `plain` is that of the field `reasoning`, if no other field
/// says the same.
fn keep_reasoning(
    delta: &Delta,
    plain: &str,
    details: &[&RawValue],
    turn: &mut ModelTurn,
) -> ReplyResult {
    let text = &*delta.reasoning_content;
    if turn.budget.spend(text.len()) {
        turn.fields.reasoning.push_str(text);
    }
    if turn.budget.spend(plain.len()) {
        turn.fields.plain.push_str(plain);
    }
    for detail in details {
        if turn.budget.spend(kept::weight_of_text(detail.get())) {
            turn.fields.details.push(detail.get());
        }
    }
    for block in delta.thinking_blocks.list::<&RawValue>()? {
        keep_block(block.get(), turn);
    }
    Ok(())
}

/// Shows reasoning, whose text the provider may hide.
fn show_thought(text: &str, is_increment: bool, reply: &mut Reply) {
    reply.reading.has_streamed_reasoning |= is_increment;
    reply.think(text);
}

/// Keeps a block with reasoning, or adds it to the one whose pieces come: its signature is the last. It comes in many small pieces,
/// of which there must be room for all that a model thinks.
fn keep_block(json: &str, turn: &mut ModelTurn) {
    let block = lenient::value(json).unwrap_or_default();
    let is_thinking = text_field(&block, "type") == "thinking";
    if let Some(open) = turn.fields.blocks.last_mut()
        && is_thinking
        && text_field(open, "type") == "thinking"
        && text_field(open, "signature").is_empty()
    {
        let (text, signature) = (
            text_field(&block, "thinking"),
            text_field(&block, "signature"),
        );
        if !turn.budget.spend(text.len() + signature.len()) {
            return;
        }
        lenient::append(&mut open["thinking"], text);
        if !signature.is_empty() {
            open["signature"] = signature.into();
        }
    } else if block.is_object() && turn.has_room_for(json) {
        turn.fields.blocks.push(block);
    }
}
