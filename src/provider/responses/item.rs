//! The items of which a reply of the Responses API consists, and what is kept and shown of each (pure).

use serde::Deserialize;
use serde_json::json;

use crate::provider::failure::ReplyResult;
use crate::provider::lenient::{Content, Json, Object, Text};
use crate::provider::reply::{CallItem, Reply};

/// The type of an item that calls a tool of q.
pub const FUNCTION_CALL: &str = "function_call";

/// The type of an item with the output of such a call.
pub const CALL_OUTPUT: &str = "function_call_output";

/// The type of an item that searches the web.
pub const WEB_SEARCH_CALL: &str = "web_search_call";

/// The type of an item with an image that the provider has made.
const IMAGE_CALL: &str = "image_generation_call";

/// The type of an item with reasoning.
pub const REASONING: &str = "reasoning";

/// The type of an item with text of the model.
pub const MESSAGE: &str = "message";

/// An item of any type, as far as q reads it.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Item<'a> {
    #[serde(rename = "type", borrow)]
    pub kind: Text<'a>,
    pub phase: Text<'a>,
    pub status: Text<'a>,
    pub content: Json<'a>,
    /// Of a call.
    pub arguments: Json<'a>,
    pub call_id: Text<'a>,
    pub id: Text<'a>,
    pub name: Text<'a>,
    /// Of a part of a message.
    pub text: Text<'a>,
    /// A list of parts with reasoning.
    pub summary: Json<'a>,
    pub encrypted_content: Json<'a>,
    /// Of an image that the provider has made.
    result: Json<'a>,
}

/// A part of reasoning, whatever its type.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ReasoningPart<'a> {
    #[serde(borrow)]
    text: Content<'a>,
}

impl Item<'_> {
    /// Whether a message is a comment of the model before its answer.
    pub fn is_commentary(&self) -> bool {
        &*self.phase == "commentary"
    }

    /// Returns how many images of the answer it has.
    pub fn images(&self) -> ReplyResult<usize> {
        match &*self.kind {
            IMAGE_CALL => Ok(self.result.is_text().into()),
            MESSAGE => Ok(self.content.content()?.images()),
            _ => Ok(0),
        }
    }

    pub fn call(&self) -> CallItem {
        CallItem {
            call_id: self.call_id.to_string(),
            id: self.id.to_string(),
            name: self.name.to_string(),
            arguments: self.arguments.as_text(),
        }
    }
}

/// Reads the sources of an item, and keeps it, to send it back with the results of the calls. Reasoning that is not encrypted
/// is not kept, because the API would look for it in its store.
pub fn read_item(json: Json, item: &Item, reply: &mut Reply) -> ReplyResult {
    if &*item.kind == WEB_SEARCH_CALL && &*item.status == "failed" {
        reply.fail_search("");
    }
    read_sources(item, reply)?;
    let is_secret = item.encrypted_content.is_text();
    if json.is_object() && (&*item.kind != REASONING || is_secret) {
        let mut text = String::new();
        if item.arguments.is_too_heavy() {
            text = json!(item.arguments.as_text()).to_string();
        }
        reply
            .turn
            .keep_call(None, json.get(), item.arguments, &text);
    }
    // A call for which there is no room cannot run.
    reply.turn.has_called |= &*item.kind == FUNCTION_CALL && reply.turn.is_too_long();
    Ok(())
}

/// Reads the sources of an item.
pub fn read_sources(item: &Item, reply: &mut Reply) -> ReplyResult {
    if let Some(rest) = item.content.content()?.rest {
        for pages in rest.annotations {
            reply.answer.add_sources(pages.sources());
        }
    }
    Ok(())
}

/// Reads the parts of an item with reasoning, each as a paragraph of its own.
pub fn read_reasoning(item: &Item, reply: &mut Reply) -> ReplyResult {
    if &*item.kind != REASONING {
        return Ok(());
    }
    for parts in [item.summary, item.content] {
        for part in parts.list::<Object<ReasoningPart>>()? {
            let text = part.0.unwrap_or_default().text.text;
            reply.think(&text);
            reply.think("\n");
            reply.reading.has_streamed_reasoning |= !text.is_empty();
        }
    }
    Ok(())
}

/// Adds what is missing of the refusal in a message.
pub fn finish_refusal(content: &Content, reply: &mut Reply) {
    if let Some(rest) = &content.rest {
        reply.finish_refusal(&rest.refusal);
    }
}
