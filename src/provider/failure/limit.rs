//! Reads an error that finds the limit of an answer's tokens too large (pure).

use crate::text::whole_name::{has_name, is_of_name};

/// The names of the limit in the APIs, in lower case.
const NAMES: &[&str] = &[
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "maxoutputtokens",
];

/// What an error says of a number that is too large.
const TOO_LARGE: &[&str] = &[
    " > ",
    "too large",
    "too high",
    "at most",
    "less than or equal",
    "must be less than",
    "<=",
    "range",
    "between",
    "exceed",
    "maximum allowed",
    "is greater than",
    "is larger than",
    "is higher than",
];

/// The smallest limit that is worth another request: an answer in fewer tokens is hardly one.
const WORTHWHILE: u64 = 256;

/// The largest limit that q reads. A longer number stands for something else.
const LARGEST: u64 = 100_000_000;

/// A limit of tokens that a server finds too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedLimit {
    /// The largest limit that the server accepts; `None` if it does not say one, or none that is worth a request.
    pub most: Option<u64>,
    /// Whether a shorter prompt would make room for it: the prompt and the limit together are too many tokens.
    pub may_fit: bool,
}

/// Reads the message of an error, in lower case; returns `None` if it is not about the limit of tokens.
pub fn refused_limit(message: &str) -> Option<RefusedLimit> {
    let is_named = NAMES.iter().any(|name| has_name(message, name));
    if !is_named || !TOO_LARGE.iter().any(|words| message.contains(words)) {
        return None;
    }
    let numbers = numbers_in(message);
    let with_prompt = numbers.windows(3).find_map(|three| match three {
        // “input length and `max_tokens` exceed context limit: 12 + 16384 > 8192”
        [prompt, limit, context] if prompt.is_before(" + ") && limit.is_before(" > ") => {
            Some((prompt.value, limit.value, context.value))
        }
        // “is too large: … (16384 > 8192 - 120)”
        [limit, context, prompt] if limit.is_before(" > ") && context.is_before(" - ") => {
            Some((prompt.value, limit.value, context.value))
        }
        _ => None,
    });
    if let Some((prompt, limit, context)) = with_prompt {
        return Some(RefusedLimit {
            most: worthwhile(context.saturating_sub(prompt)),
            may_fit: limit <= context,
        });
    }
    let above = numbers.windows(2).find_map(|two| match two {
        // “max_tokens: 16384 > 4096, which is the maximum allowed number of output tokens”
        [limit, most] if limit.is_before(" > ") => Some(most.value),
        _ => None,
    });
    // Otherwise the limit that was sent is the larger one of those that the error names.
    let (of_prompt, others): (Vec<_>, Vec<_>) = numbers
        .iter()
        .partition(|number| number.is_before(" input tokens"));
    let values = others.iter().map(|number| number.value);
    let most = above.or_else(|| values.filter(|value| *value >= WORTHWHILE).min());
    let prompt = of_prompt.first().map_or(0, |number| number.value);
    Some(RefusedLimit {
        most: most.and_then(|most| worthwhile(most.saturating_sub(prompt))),
        may_fit: false,
    })
}

fn worthwhile(limit: u64) -> Option<u64> {
    (WORTHWHILE..=LARGEST).contains(&limit).then_some(limit)
}

/// A number in a text.
struct Number<'t> {
    value: u64,
    /// The text after it.
    after: &'t str,
}

impl Number<'_> {
    fn is_before(&self, sign: &str) -> bool {
        self.after.starts_with(sign)
    }
}

/// Returns the numbers of a text that are no parts of names, such as that of a model.
fn numbers_in(text: &str) -> Vec<Number<'_>> {
    let mut numbers = Vec::new();
    let mut rest = text;
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|char| !is_of_name(char)).unwrap_or(rest.len());
        if end == 0 {
            before = Some(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (word, after) = rest.split_at(end);
        // A version has a point.
        let is_fraction = before == Some('.') || followed_by_digit(after);
        if !is_fraction && let Ok(value) = word.parse() {
            numbers.push(Number { value, after });
        }
        before = word.chars().next_back();
        rest = after;
    }
    numbers
}

/// Whether a point and a digit follow.
fn followed_by_digit(after: &str) -> bool {
    let rest = after.strip_prefix('.');
    rest.is_some_and(|rest| rest.starts_with(|char: char| char.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn the_largest_limit_is_read_from_the_words_of_each_server() {
        // The limit, whether a shorter prompt makes room, the server, and what it says.
        let table = r##"
            4096 | no | Anthropic | max_tokens: 16384 > 4096, which is the maximum allowed number of output tokens for claude-3-haiku-20240307
            8192 | no | a gateway | max_tokens must be less than or equal to 8192
            8192 | no | DashScope | Range of max_tokens should be [1, 8192]
            8192 | no | DeepSeek | Invalid max_tokens value, the valid range of max_tokens is [1, 8192]
            8072 | no | vLLM | 'max_tokens' or 'max_completion_tokens' is too large: 16384. This model's maximum context length is 8192 tokens and your request has 120 input tokens (16384 > 8192 - 120).
            5000 | yes | vLLM | 'max_tokens' is too large: 6000. This model's maximum context length is 8192 tokens and your request has 3192 input tokens (6000 > 8192 - 3192).
            8180 | no | Anthropic | input length and `max_tokens` exceed context limit: 12 + 16384 > 8192, decrease input length or `max_tokens` and try again
            10000 | yes | Anthropic | input length and `max_tokens` exceed context limit: 190000 + 16384 > 200000, decrease input length or `max_tokens` and try again
            - | yes | Anthropic | input length and `max_tokens` exceed context limit: 199990 + 16384 > 200000, decrease input length or `max_tokens` and try again
            8072 | no | vLLM | max_tokens is too large: 16384. This model's maximum context length is 8192 tokens and your request has 120 input tokens.
            4096 | no | OpenAI | max_tokens is too large: 9000. This model supports at most 4096 completion tokens, whereas you provided 9000.
            4096 | no | a gateway | "max_tokens" must be at most 4096.
            8192 | no | Groq | `max_completion_tokens` must be less than or equal to `8192`, the maximum value for `max_completion_tokens` is less than the `context_window` for this model
            65536 | no | Gemini | Unable to submit request because it has a maxOutputTokens value of 99999 but the supported range is from 1 (inclusive) to 65536 (inclusive).
            - | no | no number | max_tokens is too large
            none | - | too small | max_tokens: 1 must be positive
            none | - | another limit | `max_tokens` must be greater than `thinking.budget_tokens`
            none | - | a prompt | This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.
            none | - | a field | max_tokens is not supported with this model
        "##;
        for [most, may_fit, server, message] in rows(table) {
            let expected = (most != "none").then(|| RefusedLimit {
                most: most.parse().ok(),
                may_fit: may_fit == "yes",
            });
            let found = refused_limit(&message.to_lowercase());
            assert_eq!(found, expected, "{server}: {message}");
        }
    }
}
