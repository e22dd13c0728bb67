//! Recognizes that an error finds a prompt longer than the model's context: the prompt, that it exceeds, and a limit (pure).

use crate::text::digits::is_digits;
use crate::text::whole_name::{is_of_name, occurrences};

/// Names of what is too long.
const PROMPTS: &[&str] = &["prompt", "input", "request", "conversation", "messages"];

/// Names of its length.
const LENGTHS: &[&str] = &["prompt_tokens", "input_tokens", "num_prompt_tokens"];

/// Words for a length, which may be after the prompt.
const OF_LENGTH: &[&str] = &["length", "token", "tokens"];

/// Other words that may be between the prompt and what it exceeds.
const BETWEEN: &[&str] = &["count", "total", "of", "is", "are", "was", "has", "have"];

/// What an error says of something that is too long.
const EXCEEDS: &[&str] = &[
    "exceed",
    "greater than",
    "larger than",
    "longer than",
    "more than",
    "over the",
    "too long",
    "must be less than",
    "must be at most",
    "must not exceed",
    "must be <",
];

/// What it exceeds.
const LIMITS: &[&str] = &[
    "context",
    "sequence length",
    "seq_len",
    "seqlen",
    "model_len",
    "prompt_tokens",
    "input_tokens",
    "maximum length",
    "max length",
    "input length",
    "prompt length",
    "limit of",
    "model's limit",
    "model limit",
];

/// What a limit is called that passes, that a plan or a key has, or that is none of tokens.
const OTHER_LIMITS: &[&str] = &[
    "per minute",
    "per-minute",
    "per hour",
    "per day",
    "rate limit",
    "rate-limit",
    "ratelimit",
    "quota",
    "tokens per",
    " tpm",
    " plan",
    " tier",
    "monthly",
    "daily",
    "credit",
    "organization",
    "try again in",
    "retry after",
    " bytes",
    " mb",
    " images",
    " characters",
];

/// Whether an error, in lower case, says that the prompt is too long.
pub fn is_exceeded(words: &str) -> bool {
    if OTHER_LIMITS.iter().any(|other| words.contains(other)) {
        return false;
    }
    let of_prompt = PROMPTS.iter().map(|prompt| (prompt, false));
    let of_length = LENGTHS.iter().map(|length| (length, true));
    of_prompt.chain(of_length).any(|(name, is_length)| {
        occurrences(words, name).any(|(before, after)| {
            let is_length = is_length || ends_in_length(before);
            exceeds_limit(after, is_length)
        })
    })
}

/// Whether “tokens in the” or “length of the” is before a prompt.
fn ends_in_length(before: &str) -> bool {
    let words = before.split_whitespace().rev();
    let mut words = words.skip_while(|word| ["the", "of", "in", "your", "this"].contains(word));
    words.next().is_some_and(|word| OF_LENGTH.contains(&word))
}

/// Whether what follows a prompt says that its length exceeds a limit. A word for something else ends that: what is too long is
/// not the prompt, but a name or a field in it.
fn exceeds_limit(after: &str, mut is_length: bool) -> bool {
    let mut rest = after;
    loop {
        rest = rest.trim_start_matches(|char| !is_of_name(char) && !".;".contains(char));
        if let Some(excess) = EXCEEDS.iter().find_map(|words| rest.strip_prefix(words)) {
            return is_length && LIMITS.iter().any(|limit| excess.contains(limit));
        }
        let end = rest.find(|char| !is_of_name(char)).unwrap_or(rest.len());
        let (word, more) = rest.split_at(end);
        is_length |= OF_LENGTH.contains(&word);
        if !is_digits(word) && !OF_LENGTH.contains(&word) && !BETWEEN.contains(&word) {
            return false;
        }
        rest = more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn a_prompt_that_is_longer_than_a_limit_is_distinguished_from_other_things() {
        let table = r##"
            yes | number of input tokens (204703) has exceeded max_prompt_tokens (202752) limit.
            yes | length of prompt_tokens (57535) must be less than max_seq_len (32768).
            yes | input length 203743 exceeds the maximum length 202752. request id: 1
            yes | prompt tokens (9000) exceeds context size (4096)
            yes | request length 71599 + 2048 is greater than max_seq_len 65536
            yes | prompt length (200) exceeds maximum input length (100)
            yes | prompt length (5056) exceeds maximum sequence length (2048)
            yes | the prompt (total length 25938) is too long to fit into the model (context length 4096).
            yes | input length 6491 exceeds context length 1500
            yes | the total number of tokens in the prompt exceeds the limit of 131072
            yes | length of your prompt is more than the model limit 8192
            yes | the length of the messages exceeds the context of this model
            no | tool name length 70 exceeds the maximum length 64
            no | description exceeds maximum length
            no | description of tool x exceeds the maximum length of 1024 in the request
            no | the input file name length 300 exceeds the maximum length 255
            no | messages.0.name: string length 70 exceeds the maximum length 64
            no | the prompt 'x' of length 70 exceeds the maximum length of a name
            no | input schema length 70000 exceeds the maximum length 65536
            no | request exceeds the maximum length of 20 images
            no | request size exceeds the limit of 20 mb
            no | number of input tokens has exceeded your per-minute rate limit
            no | number of request tokens has exceeded your per-minute rate limit
            no | number of prompt tokens exceeds the limit of your free plan
            no | input tokens exceed the limit of your organization
            no | input tokens exceed the limit of 30000 tpm
            no | tokens in prompt exceed limit of daily credits
            no | number of input tokens exceeds the limit of 8000 for this model; try again in 1s
            no | max_tokens must be less than or equal to 16,384
            no | max_tokens exceeds the maximum of 8192 for model m1 (released 2024)
            no | max_tokens is too large: 6000. this model's maximum context length is 8192 tokens and your request has 3192 input tokens
            no | the maximum tokens you requested exceeds the model limit of 4096
            no | this prompt is about a text that is too long for the context
            no | the input is fine. its length exceeds the maximum length
            no | input
            no | input tokens
            no | input tokens exceed
        "##;
        for [expected, words] in rows(table) {
            assert_eq!(is_exceeded(words), expected == "yes", "{words}");
        }
    }

    #[test]
    fn the_work_for_an_error_of_many_prompts_is_bounded() {
        let words = "prompt tokens exceed ".repeat(5_000);
        assert!(!is_exceeded(&words));
        // What stands behind many does not count.
        let behind = "the prompt tokens exceed the context";
        assert!(is_exceeded(&format!("{}{behind}", "prompt; ".repeat(9))));
        assert!(!is_exceeded(&format!("{}{behind}", "prompt; ".repeat(999))));
    }
}
