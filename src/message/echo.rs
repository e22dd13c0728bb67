//! What goes back to an API with the results of its calls: the model's turn as it came (pure).

use serde_json::Value;

/// The model's turn in the API's own form, for the APIs that want it back unchanged, because it has signatures and reasoning.
#[derive(Debug, Clone, PartialEq)]
pub enum Echo {
    /// All of the turn, as blocks, items or parts.
    Items(Vec<Value>),
    /// What chat completions want besides the text and the calls, which q writes itself.
    Fields(EchoFields),
}

/// The fields that come with the text and the calls of a turn in chat completions, and go back with them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EchoFields {
    /// Of `reasoning_content`, and of the field `reasoning` where that and the details lack it.
    pub reasoning: String,
    pub plain: String,
    pub details: RawList,
    /// Signed or encrypted blocks with reasoning, put together from their pieces.
    pub blocks: Vec<Value>,
}

/// A list of JSON that is kept as text, which takes less memory than a tree.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawList {
    /// The elements, with a comma between two of them.
    elements: String,
}

impl Default for Echo {
    fn default() -> Echo {
        Echo::Items(Vec::new())
    }
}

impl Echo {
    /// Returns all of the turn; empty if it is written again.
    pub fn items(&self) -> &[Value] {
        match self {
            Echo::Items(items) => items,
            Echo::Fields(_) => &[],
        }
    }

    /// Returns what belongs with text and calls, if there is anything.
    pub fn fields(&self) -> Option<&EchoFields> {
        match self {
            Echo::Items(_) => None,
            Echo::Fields(fields) => Some(fields),
        }
    }

    /// Adds what came after a pause. Chat completions know no pause, so the first of their fields stay.
    pub fn extend(&mut self, later: Echo) {
        match (self, later) {
            (Echo::Items(items), Echo::Items(more)) => items.extend(more),
            (first @ Echo::Items(_), fields) if first.items().is_empty() => *first = fields,
            _ => {}
        }
    }

    /// Returns each part of it as JSON.
    pub fn texts(&self) -> Box<dyn Iterator<Item = String> + '_> {
        match self {
            Echo::Items(items) => Box::new(items.iter().map(Value::to_string)),
            Echo::Fields(fields) => {
                let words = [&fields.reasoning, &fields.plain, &fields.details.elements];
                let words = words.map(|words| Value::from(words.as_str()).to_string());
                let blocks = fields.blocks.iter().map(Value::to_string);
                Box::new(words.into_iter().chain(blocks))
            }
        }
    }
}

impl EchoFields {
    pub fn is_empty(&self) -> bool {
        let texts = [&self.reasoning, &self.plain];
        texts.iter().all(|text| text.is_empty())
            && self.details.is_empty()
            && self.blocks.is_empty()
    }
}

impl RawList {
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Adds an element, which is JSON.
    pub fn push(&mut self, json: &str) {
        if !self.elements.is_empty() {
            self.elements.push(',');
        }
        self.elements.push_str(json);
    }

    /// Returns the list as a tree; null if it is no JSON.
    pub fn value(&self) -> Value {
        serde_json::from_str(&format!("[{}]", self.elements)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_echo_of_a_turn_is_extended_by_the_items_after_a_pause() {
        let items = |items: Value| Echo::Items(items.as_array().cloned().unwrap_or_default());
        let fields = |reasoning: &str| {
            Echo::Fields(EchoFields {
                reasoning: reasoning.to_owned(),
                ..EchoFields::default()
            })
        };
        for (first, later, whole) in [
            (items(json!([1])), items(json!([2])), items(json!([1, 2]))),
            (Echo::default(), fields("a"), fields("a")),
            (fields("a"), Echo::default(), fields("a")),
            (fields("a"), fields("b"), fields("a")),
        ] {
            let mut echo = first.clone();
            echo.extend(later);
            assert_eq!(echo, whole, "{first:?}");
        }
    }

    #[test]
    fn a_list_that_is_kept_as_text_is_read_back_with_the_same_elements() {
        let mut list = RawList::default();
        assert!(list.is_empty() && list.value() == json!([]));
        for element in [r#"{"text":"a,"}"#, "[]", "null"] {
            list.push(element);
        }
        assert_eq!(list.value(), json!([{"text": "a,"}, [], null]));
    }
}
