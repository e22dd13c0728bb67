//! Reads the events and the whole answers of Google's Gemini API (pure).

use serde::Deserialize;
use serde_json::{Value, json};

use super::body::{FUNCTION_CALL, SIGNATURE, TOKEN};
use crate::message::{Source, ToolCall, Usage};
use crate::provider::calls;
use crate::provider::counts::Counts;
use crate::provider::failure::{self, ReplyResult};
use crate::provider::lenient::{self, Content, Entries, Index, Json, Object, Scalar, Text};
use crate::provider::reply::{Added, Reply};
use crate::shape::elements;

/// The first value of the API's block reasons, which stands for none.
const NO_BLOCK: &str = "BLOCK_REASON_UNSPECIFIED";

/// The finish reason of an answer that is longer than one reply.
const CONTINUATION: &str = "CONTINUATION";

/// An event of a stream, or a complete answer, as far as q reads it. Skipping the rest makes long streams fast.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GeneratedContent<'a> {
    #[serde(borrow)]
    candidates: Entries<Candidate<'a>>,
    error: Json<'a>,
    usage_metadata: Json<'a>,
    prompt_feedback: Json<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Candidate<'a> {
    index: Index,
    #[serde(borrow)]
    content: Object<CandidateContent<'a>>,
    finish_reason: Json<'a>,
    finish_message: Text<'a>,
    continuation_token: Text<'a>,
    grounding_metadata: Json<'a>,
    /// The pages that the text quotes.
    citation_metadata: Json<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CandidateContent<'a> {
    #[serde(borrow)]
    parts: Json<'a>,
}

/// A part of a candidate: text, reasoning or a call.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CandidatePart<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    text: Content<'a>,
    thought: Scalar<bool>,
    thought_signature: Json<'a>,
    inline_data: Object<InlineData<'a>>,
    /// A call of a tool of q.
    function_call: Object<FunctionCall<'a>>,
    /// A call that Google runs itself, and another kind of these.
    tool_call: Object<OwnCall<'a>>,
    executable_code: Object<OwnCall<'a>>,
}

/// An image, or another file.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct InlineData<'a> {
    #[serde(borrow)]
    mime_type: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct FunctionCall<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    name: Text<'a>,
    args: Json<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OwnCall<'a> {
    #[serde(borrow)]
    tool_type: Text<'a>,
}

/// The reason why the prompt itself was blocked.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PromptFeedback<'a> {
    #[serde(borrow)]
    block_reason: Text<'a>,
    block_reason_message: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Grounding<'a> {
    #[serde(borrow)]
    grounding_chunks: Json<'a>,
}

/// The same list has another name at Vertex.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Citations<'a> {
    #[serde(borrow)]
    citation_sources: Json<'a>,
    citations: Json<'a>,
}

fn usage_of(counts: &Counts) -> Usage {
    let mut usage = counts.usage();
    // The results of Google's own tools become a part of the prompt.
    let by_tools = counts.gemini_tools.0.map_or(0, u64::from);
    usage.input_tokens = usage.input_tokens.map(|tokens| tokens + by_tools);
    if let Some(reasoning) = usage.reasoning_tokens {
        usage.output_tokens = Some(usage.output_tokens.unwrap_or(0) + reasoning);
    }
    usage
}

/// Reads an event of a stream, or a complete answer.
pub fn read_response(data: &str, reply: &mut Reply) -> ReplyResult {
    let event: Object<GeneratedContent> = serde_json::from_str(data)?;
    let event = event.0.unwrap_or_default();
    let candidates = event
        .candidates
        .of_first_choice(|candidate| candidate.index)?;
    if candidates.is_empty() || !event.error.is_null() {
        failure::check(data)?;
    }
    // Options may ask for several candidates; q prints the first, of which an event may have several entries.
    for candidate in candidates.iter() {
        read_candidate(candidate, reply)?;
    }
    reply.add_usage(usage_of(&Counts::read(event.usage_metadata)));
    // The prompt itself may be blocked.
    let feedback: PromptFeedback = event.prompt_feedback.object()?;
    let reason = &*feedback.block_reason;
    if !matches!(reason, "" | NO_BLOCK) {
        reply.end.block(reason);
        reply.end.explain(&feedback.block_reason_message);
    }
    Ok(())
}

fn read_candidate(candidate: &Candidate, reply: &mut Reply) -> ReplyResult {
    if let Some(content) = &candidate.content.0 {
        for part in content.parts.entries()? {
            read_part(part, reply)?;
        }
    }
    if !candidate.grounding_metadata.is_null() {
        let grounding = candidate.grounding_metadata.object()?;
        reply.answer.add_sources(sources_of(grounding));
    }
    if !candidate.citation_metadata.is_null() {
        let quoted: Citations = candidate.citation_metadata.object()?;
        for pages in [quoted.citation_sources, quoted.citations] {
            reply.answer.add_sources(pages.sources());
        }
    }
    let token = &*candidate.continuation_token;
    let reason = candidate.finish_reason.content()?.text;
    // Without a token nothing continues the answer, so it is incomplete.
    if reason == CONTINUATION && !token.is_empty() {
        reply.turn.keep(None, &json!({(TOKEN): token}).to_string());
        reply.end.pause(CONTINUATION);
    } else {
        reply.end.read(&reason);
    }
    // Gateways may have an empty one.
    let is_empty_word = candidate.finish_reason.is_text() && reason.is_empty();
    reply.end.read_empty_word(is_empty_word);
    reply.end.explain(&candidate.finish_message);
    Ok(())
}

fn read_part(json: Json, reply: &mut Reply) -> ReplyResult {
    let part: CandidatePart = json.object()?;
    let mut call = NewCall::default();
    if let Some(called) = part.function_call.0 {
        let Some(new) = add_call(json, called, reply) else {
            return Ok(());
        };
        call = new;
    }
    let own_calls = [part.tool_call.0, part.executable_code.0];
    note_own_calls(own_calls.into_iter().flatten(), reply);
    let content = content_of(json, part.text, &part.kind)?;
    let is_thought = part.thought.0 == Some(true);
    let data = part.inline_data.0.unwrap_or_default();
    if data.mime_type.starts_with("image/") && !is_thought {
        reply.activity.images += 1;
    }
    if is_thought {
        reply.think(&content.text);
    } else {
        reply.add_text(&content.text);
    }
    // The API wants reasoning and empty text back only if they are signed.
    let is_signed = !part.thought_signature.is_null();
    let is_empty = content.text.is_empty() && json.value() == json!({"text": ""});
    let says_nothing = is_thought || is_empty;
    if reply.turn.offers_tools && (is_signed || !says_nothing) {
        keep_part(json, call, reply);
    }
    Ok(())
}

/// Records calls that Google runs itself, after which the answer goes on.
fn note_own_calls<'a>(calls: impl Iterator<Item = OwnCall<'a>>, reply: &mut Reply) {
    for call in calls {
        reply.end.expect_more();
        if call.tool_type.contains("SEARCH") {
            reply.activity.search();
        }
    }
}

/// Returns the text of a part with this text and type.
fn content_of<'a>(part: Json<'a>, text: Content<'a>, kind: &str) -> ReplyResult<Content<'a>> {
    // A text may be there without the object around it.
    if !part.is_object() {
        return Ok(part.content()?);
    }
    Ok(if lenient::is_text_type(kind) {
        text
    } else {
        Content::default()
    })
}

/// Keeps a part, if there is room, so that it goes back with the results of the calls.
fn keep_part(part: Json, call: NewCall, reply: &mut Reply) {
    if let Some(kept) = reply.turn.keep_call(None, part.get(), call.arguments, "{}")
        && let Some(called) = kept.get_mut(FUNCTION_CALL)
        && called.is_object()
    {
        calls::add_missing_name(called);
        if let Some(id) = call.id {
            called["id"] = id.into();
        }
    }
}

/// What a part with a call needs to go back with the results.
#[derive(Default)]
struct NewCall<'a> {
    arguments: Json<'a>,
    /// The call's own id, if the model has given it one: the model knows only those that it gave.
    id: Option<String>,
}

/// Adds the call of a part; returns `None` if the server has sent it before.
fn add_call<'a>(part: Json, called: FunctionCall<'a>, reply: &mut Reply) -> Option<NewCall<'a>> {
    let call = ToolCall {
        id: called.id.to_string(),
        name: called.name.to_string(),
        arguments: called.args.as_text(),
        api_data: Value::Null,
    };
    let mut id = None;
    match reply.add_whole_call(call) {
        Some(Added::New(place)) if !called.id.is_empty() => {
            id = Some(reply.turn.calls()[place].id.clone());
        }
        Some(Added::New(_)) | None => {}
        Some(added) => {
            let mut later = part.value();
            calls::add_missing_name(&mut later[FUNCTION_CALL]);
            complete_part(&later, &added, reply);
            return None;
        }
    }
    Some(NewCall {
        arguments: called.args,
        id,
    })
}

/// Adds to the part with a call what it lacks and the `later` part has, which the server has sent for the same call.
fn complete_part(later: &Value, added: &Added, reply: &mut Reply) {
    let call = &reply.turn.calls()[added.place()];
    let (id, arguments) = (call.id.clone(), calls::object(&call.arguments));
    let is_same = |known: &&mut Value| {
        let (known, later) = (&known[FUNCTION_CALL], &later[FUNCTION_CALL]);
        known["id"] == id.as_str() && known["name"] == later["name"]
    };
    let Some(known) = reply.turn.items.values_mut().rev().find(is_same) else {
        return;
    };
    if matches!(added, Added::Completed(_)) {
        known[FUNCTION_CALL]["args"] = arguments;
    }
    if known[SIGNATURE].is_null() && later[SIGNATURE].is_string() {
        known[SIGNATURE] = later[SIGNATURE].clone();
    }
}

fn sources_of(grounding: Grounding) -> Vec<Source> {
    let mut pages = Vec::new();
    for chunk in elements(&grounding.grounding_chunks.value()) {
        // A chunk has one field, named by its kind: a page, a place, a file.
        if let Some(chunk) = chunk.as_object() {
            pages.extend(chunk.values().cloned());
        }
    }
    Source::all_in(&pages.into())
}
