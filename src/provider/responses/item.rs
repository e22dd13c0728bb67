//! The items of which a reply of the Responses API consists, and what is kept and shown of each (pure).

use serde::Deserialize;
use serde_json::json;

use crate::provider::failure::ReplyResult;
use crate::provider::lenient::{Content, Json, Object, Text};
use crate::provider::reply::{CallItem, ItemIds, Reply};

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
pub struct OutputItem<'a> {
    /// All of it, which goes back to the API.
    json: Json<'a>,
    fields: ItemFields<'a>,
    /// The text of a message, and what its parts have besides.
    pub content: Content<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ItemFields<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    phase: Text<'a>,
    status: Text<'a>,
    /// Parts of a message, or of reasoning.
    content: Json<'a>,
    /// Of a call.
    arguments: Json<'a>,
    call_id: Text<'a>,
    id: Text<'a>,
    name: Text<'a>,
    /// A list of parts with reasoning.
    summary: Json<'a>,
    encrypted_content: Json<'a>,
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

impl<'a> OutputItem<'a> {
    /// Reads an item; one of no type if it is no object.
    ///
    /// # Errors
    ///
    /// A field is there twice, or a list in it is too long.
    pub fn read(json: Json<'a>) -> serde_json::Result<OutputItem<'a>> {
        let fields: ItemFields = json.object()?;
        let content = fields.content.content()?;
        Ok(OutputItem {
            json,
            fields,
            content,
        })
    }

    /// Returns its type.
    pub fn kind(&self) -> &str {
        &self.fields.kind
    }

    /// Returns its own id.
    pub fn id(&self) -> &str {
        &self.fields.id
    }

    /// Returns what of reasoning goes back to the API, and the field with it: the encrypted text or, as of DeepSeek and vLLM, the
    /// text itself. OpenAI would look for any other in its store.
    pub fn returned_reasoning(&self) -> Option<(&'static str, Json<'a>)> {
        let sealed = self.fields.encrypted_content;
        let content = self.fields.content;
        let has_text = !matches!(content.get(), "null" | "[]" | r#""""#);
        match self.kind() {
            REASONING if sealed.is_text() => Some(("encrypted_content", sealed)),
            REASONING if has_text => Some(("content", content)),
            _ => None,
        }
    }

    /// Whether nothing has to follow it: it is a call, or a message that is no comment of the model before its answer.
    pub fn may_end_reply(&self) -> bool {
        match self.kind() {
            FUNCTION_CALL => true,
            MESSAGE => !self.is_commentary(),
            _ => false,
        }
    }

    /// Returns the id by which the result of a call is sent.
    pub fn call_id(&self) -> &str {
        &self.fields.call_id
    }

    /// Returns both ids.
    pub fn ids(&self) -> ItemIds<'_> {
        ItemIds {
            call_id: &self.fields.call_id,
            id: &self.fields.id,
        }
    }

    /// Whether a message is a comment of the model before its answer.
    pub fn is_commentary(&self) -> bool {
        &*self.fields.phase == "commentary"
    }

    /// Whether a message or a call has broken off; `None` for other items. vLLM says so of its last item alone, and of the response
    /// that it is completed. What follows a cut item has not been cut with it.
    pub fn is_cut(&self) -> Option<bool> {
        let is_part = matches!(self.kind(), MESSAGE | FUNCTION_CALL);
        is_part.then(|| &*self.fields.status == "incomplete")
    }

    /// Returns how many images of the answer it has.
    pub fn images(&self) -> usize {
        match self.kind() {
            IMAGE_CALL => self.fields.result.is_text().into(),
            MESSAGE => self.content.images(),
            _ => 0,
        }
    }

    /// Returns what it says of a call.
    pub fn call(&self) -> CallItem {
        CallItem {
            call_id: self.fields.call_id.to_string(),
            id: self.fields.id.to_string(),
            name: self.fields.name.to_string(),
            arguments: self.fields.arguments.as_text(),
        }
    }

    /// Returns the JSON of it.
    pub fn json(&self) -> &str {
        self.json.get()
    }
}

/// Reads the sources of an item, and keeps it, to send it back with the results of the calls, see
/// [`OutputItem::returned_reasoning`].
pub fn read_item(item: &OutputItem, reply: &mut Reply) {
    let fields = &item.fields;
    if item.kind() == WEB_SEARCH_CALL && &*fields.status == "failed" {
        reply.fail_search("");
    }
    read_sources(item, reply);
    let goes_back = item.kind() != REASONING || item.returned_reasoning().is_some();
    if item.json.is_object() && goes_back {
        let mut text = String::new();
        if fields.arguments.is_too_heavy() {
            text = json!(fields.arguments.as_text()).to_string();
        }
        reply
            .turn
            .keep_call(None, item.json(), fields.arguments, &text);
    }
    // A call for which there is no room cannot run.
    reply.turn.has_called |= item.kind() == FUNCTION_CALL && reply.turn.is_too_long();
}

/// Reads the sources of an item.
pub fn read_sources(item: &OutputItem, reply: &mut Reply) {
    if let Some(rest) = &item.content.rest {
        for pages in &rest.annotations {
            reply.answer.add_sources(pages.sources());
        }
    }
}

/// Reads the parts of an item with reasoning, each as a paragraph of its own.
pub fn read_reasoning(item: &OutputItem, reply: &mut Reply) -> ReplyResult {
    if item.kind() != REASONING {
        return Ok(());
    }
    for parts in [item.fields.summary, item.fields.content] {
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
