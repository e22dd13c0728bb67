//! The title of a conversation in lists and notes: its first question, on one line (pure).

use super::conversation::{Conversation, Exchange};
use crate::text::fence;
use crate::text::one_line::on_one_line;

/// How many characters of a question, or around a match, a list shows.
const MAX_TEXT: usize = 200;

/// Returns the words of the first question, on one line. A fence that begins it is left out.
pub fn title_of(conversation: &Conversation) -> Option<String> {
    let mut exchanges = conversation.exchanges.iter();
    let text = exchanges.find_map(Exchange::question)?.text();
    let (_, words) = fence::split_input(&text);
    Some(shortened(words))
}

/// Returns the beginning of a text, on one line.
pub fn shortened(text: &str) -> String {
    let text = text.trim_start();
    let end = text.char_indices().nth(MAX_TEXT);
    on_one_line(&text[..end.map_or(text.len(), |(at, _)| at)])
}
