//! Finds the levels of effort that a server's error offers (pure).

use super::words;
use crate::text::whole_name::{has_name, is_of_name};

/// The most levels of effort that are told. No server has half as many.
const MAX_LEVELS: usize = 20;

/// Returns the levels of effort that an error names next to the one that it rejects: the usual ones, and others in the same list.
pub fn levels_in(message: &str, refused: &str) -> String {
    let message = without_apostrophes(&message.to_lowercase());
    let mut levels = words::LEVELS.to_vec();
    levels.retain(|level| has_name(&message, level));
    for list in quoted_lists(&message) {
        if list.iter().any(|word| words::LEVELS.contains(word)) {
            levels.extend(list.into_iter().filter(|word| is_level(word)));
        }
    }
    let mut named: Vec<&str> = Vec::new();
    for level in levels {
        if level != refused && !named.contains(&level) {
            named.push(level);
        }
        if named.len() == MAX_LEVELS {
            break;
        }
    }
    named.join(", ")
}

/// Returns a text in which an apostrophe inside a word, as in “don't”, is no quotation mark.
fn without_apostrophes(text: &str) -> String {
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    let mut plain = String::with_capacity(text.len());
    while let Some(char) = rest.next() {
        let goes_on = rest.peek().is_some_and(|next| next.is_alphanumeric());
        let is_apostrophe = char == '\'' && before.is_alphanumeric() && goes_on;
        plain.push(if is_apostrophe { '’' } else { char });
        before = char;
    }
    plain
}

/// Whether a quoted text may be a level: a single word.
fn is_level(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_of_name)
}

/// Returns the lists of quoted words in a text, such as “'a', 'b' or 'c'”. A word alone is one, too.
fn quoted_lists(text: &str) -> Vec<Vec<&str>> {
    let mut lists: Vec<Vec<&str>> = Vec::new();
    let mut parts = text.split(['\'', '"', '`']);
    let mut before = parts.next();
    while let (Some(word), Some(after)) = (parts.next(), parts.next()) {
        let separator: String = before.unwrap_or_default().split_whitespace().collect();
        let follows = ["", ",", "|", "or", "and", ",or", ",and"].contains(&&*separator);
        match lists.last_mut() {
            Some(list) if follows => list.push(word),
            _ => lists.push(vec![word]),
        }
        before = Some(after);
    }
    lists
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn the_levels_of_effort_in_an_error_are_listed_without_the_rejected_one() {
        let table = r##"
            medium | none, high | 'medium' is not supported. Must be one of (<ReasoningEffort.none: 'none'>, 'high')
            minimal | low, medium, high | Unsupported value: 'minimal'. Supported values are: 'low', 'medium', and 'high'.
            x | low | mistral-medium-latest takes LOW, with max_tokens
            low | - | no
            low | none, default | `reasoning_effort` must be one of `none`, `default`, but is 'low'
            low | none, default | "reasoning_effort": must be one of "none" or "default"
            low | high, max | {'loc': ['body', 'reasoning_effort'], 'msg': "Input should be 'high' or 'max'", 'type': 'x'}
            low | high, ultra | it's not 'low': reasoning_effort isn't 'low' or 'don't', but 'high', 'ultra'
            low | high | reasoning_effort: 'low', 'high', '', "" or 'a b'
        "##;
        for [refused, levels, message] in rows(table) {
            assert_eq!(levels_in(message, refused), levels, "{message}");
        }
    }
}
