//! Reads an error that finds the limit of an answer's tokens too large (pure).

use crate::text::digits::is_digits;
use crate::text::whole_name::{has_name, is_of_name};

/// The names of the limit in the APIs, in lower case.
pub(super) const NAMES: &[&str] = &[
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "maxoutputtokens",
    "maxtokens",
];

/// Words for the limit. They may also stand for that of a prompt, so they count only where the error has no word for one.
const WORDS: &[&str] = &["max tokens", "maximum tokens"];
const PROMPT_WORDS: &[&str] = &["prompt", "input", "messages", "context"];

/// What an error says of a number that is too large.
const TOO_LARGE: &[&str] = &[
    " > ",
    "too large",
    "too high",
    "at most",
    "less than or equal",
    "must be less than",
    "must be lower than",
    "must be smaller than",
    "must be below",
    "<=",
    "must be <",
    "range",
    "between",
    "exceed",
    "maximum allowed",
    "is greater than",
    "is larger than",
    "is higher than",
];

/// What is before a number that the limit must not reach.
const EXCLUSIVE_BEFORE: &[&str] = &[
    "less than",
    "lower than",
    "smaller than",
    "below",
    "under",
    "<",
];

/// What is after a number that the limit must not reach.
const EXCLUSIVE_AFTER: &str = " (exclusive)";

/// What is directly before a number that is the largest limit, apart from [`LINKS`]. Where no number has such a word before it,
/// those count that can be neither a status nor a year.
const BEFORE_MOST: &[&str] = &[
    "most", "than", "to", "of", "exceed", "exceeds", "exceeded", "max", "maximum", "limit",
    "allowed", "allows", "supports", "only", "below", "under", "between", "from", "and", "range",
    "tokens", "<", "<=", "≤", ">",
];

/// Words that may be between such a word and the number.
const LINKS: &[&str] = &["is", "are", "be", "was", "value", "currently"];

/// What is after the number of tokens in the prompt.
const OF_PROMPT: &[&str] = &[
    " input tokens",
    " prompt tokens",
    " tokens in the input",
    " tokens in the prompt",
    " tokens in the messages",
    " tokens from the input",
    " in the prompt",
    " in your prompt",
    " `inputs` tokens",
];

/// What is after the number of tokens in a part of the prompt: its length is the sum of these.
const OF_PROMPT_PART: &[&str] = &[
    " in the messages",
    " in the functions",
    " of text input",
    " of tool input",
    " of image input",
];

/// What is after the number of tokens that an answer may have.
const OF_ANSWER: &[&str] = &[
    " output tokens",
    " completion tokens",
    " in the completion",
    " in the output",
    " for the completion",
    " tokens for the completion",
    " tokens in the completion",
    " `max_new_tokens`",
];

/// What is before the number of tokens in prompt and answer together, and how far it may be before that number, in bytes.
const CONTEXT: &[&str] = &["context", "`max_new_tokens` must be"];
const CONTEXT_DISTANCE: usize = 32;

/// The smallest limit that is worth another request: an answer in fewer tokens is hardly one.
const WORTHWHILE: u64 = 256;

/// The most numbers that are looked at: each is compared with all others.
const MAX_NUMBERS: usize = 100;

/// The largest limit that q reads. A longer number stands for something else.
const LARGEST: u64 = 100_000_000;

/// A limit of tokens that a server finds too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedLimit {
    /// The largest limit that the server accepts; `None` if it does not say one, or none that is worth a request.
    pub most: Option<u64>,
    /// The part of the context that the prompt takes, where the prompt and the limit together are too many tokens.
    pub prompt: Option<PromptPart>,
}

/// The part of a context that a prompt takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptPart {
    /// Less than half, so a lower limit helps more than a shorter prompt.
    Small,
    /// What takes that much has to give way.
    Large,
}

/// What an error says of the numbers that it adds up. Others may describe a plan.
const ADDS_UP: &[&str] = &["exceed", "requested", "maximum", "must be", "too "];

/// Reads the message of an error, in lower case, about a request with this limit; returns `None` if it is not about the limit of
/// tokens.
pub fn refused_limit(message: &str, sent: Option<u64>) -> Option<RefusedLimit> {
    // Some servers name no field, but how many tokens each of them has.
    let adds_up = ADDS_UP.iter().any(|words| message.contains(words));
    let named = adds_up.then(|| Sizes::named(&numbers_in(message)));
    if let Some(sizes) = named.flatten() {
        return Some(sizes.refused_limit());
    }
    if !names_limit(message) || !TOO_LARGE.iter().any(|words| message.contains(words)) {
        return None;
    }
    // That of reasoning must be less than the limit.
    if message.contains("budget") {
        return None;
    }
    let numbers = numbers_in(message);
    if let Some(sent) = sent
        && !numbers.is_empty()
        && numbers.iter().all(|number| number.value > sent)
    {
        return None;
    }
    if let Some(sizes) = Sizes::beside_limit(&numbers, sent) {
        return Some(sizes.refused_limit());
    }
    let above = numbers.windows(2).find_map(|two| match two {
        // “max_tokens: 16384 > 4096, which is the maximum allowed number of output tokens”
        [limit, most] if limit.is_before(" > ") => Some(most.value),
        _ => None,
    });
    Some(RefusedLimit {
        most: above
            .or_else(|| largest_below(&numbers, sent))
            .and_then(worthwhile),
        prompt: None,
    })
}

fn names_limit(message: &str) -> bool {
    let has_words = WORDS.iter().any(|words| has_name(message, words));
    let is_about_prompt = PROMPT_WORDS.iter().any(|word| message.contains(word));
    NAMES.iter().any(|name| has_name(message, name)) || (has_words && !is_about_prompt)
}

/// The numbers of tokens that an error adds up.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    prompt: u64,
    /// The limit of the answer, if it is known.
    answer: Option<u64>,
    context: u64,
}

impl Sizes {
    /// Finds them where the error says of each number what it is.
    fn named(numbers: &[Number]) -> Option<Sizes> {
        let answer = numbers.iter().find(|number| number.is_of_answer())?;
        let context = numbers.iter().find(|number| number.is_of_context())?;
        let sizes = Sizes {
            prompt: prompt_in(numbers)?,
            answer: Some(answer.value),
            context: context.value,
        };
        (sizes.prompt.saturating_add(answer.value) > sizes.context).then_some(sizes)
    }

    /// Finds them in an error about the limit, which may be the one that was sent.
    fn beside_limit(numbers: &[Number], sent: Option<u64>) -> Option<Sizes> {
        let added_up = numbers.windows(3).find_map(|three| match three {
            // “input length and `max_tokens` exceed context limit: 12 + 16384 > 8192”
            [prompt, limit, context] if prompt.is_before(" + ") && limit.is_before(" > ") => {
                Some((prompt.value, Some(limit.value), context.value))
            }
            // “is too large: … (16384 > 8192 - 120)”
            [limit, context, prompt] if limit.is_before(" > ") && context.is_before(" - ") => {
                Some((prompt.value, Some(limit.value), context.value))
            }
            _ => None,
        });
        let (prompt, answer, context) = added_up.or_else(|| {
            // “maximum context length is 8192 tokens and your request has 120 input tokens”
            let prompt = prompt_in(numbers)?;
            let context = numbers.iter().find(|number| number.is_of_context())?;
            Some((prompt, sent, context.value))
        })?;
        Some(Sizes {
            prompt,
            answer,
            context,
        })
    }

    /// Returns what the context leaves for the answer.
    fn refused_limit(self) -> RefusedLimit {
        let rest = self.context.saturating_sub(self.prompt);
        // vLLM counts the tokens of a prompt only until there is one too many, so the prompt may be longer.
        let is_counted = self
            .answer
            .is_none_or(|answer| rest.saturating_add(1) != answer);
        let prompt = if self.prompt < self.context / 2 {
            PromptPart::Small
        } else {
            PromptPart::Large
        };
        RefusedLimit {
            most: worthwhile(rest).filter(|_| is_counted),
            prompt: Some(prompt),
        }
    }
}

/// Returns the number of tokens in the prompt.
fn prompt_in(numbers: &[Number]) -> Option<u64> {
    let whole = numbers.iter().find(|number| number.has_after(OF_PROMPT));
    if let Some(whole) = whole {
        return Some(whole.value);
    }
    let mut sum: Option<u64> = None;
    for number in numbers {
        if number.has_after(OF_PROMPT_PART) {
            sum = Some(sum.unwrap_or(0).saturating_add(number.value));
        }
    }
    sum
}

/// Returns the largest limit that the numbers name and that is lower than the one that was sent. If none was sent, that is the
/// largest number, unless it is the only one.
fn largest_below(numbers: &[Number], sent: Option<u64>) -> Option<u64> {
    let is_exclusive = |value: u64| {
        let mut same = numbers.iter().filter(|number| number.value == value);
        same.any(Number::is_exclusive)
    };
    let mut candidates = Vec::from_iter(numbers.iter().filter(|number| !number.is_of_prompt()));
    if candidates.iter().any(|number| number.follows_limit()) {
        candidates.retain(|number| number.follows_limit());
    } else {
        candidates.retain(|number| !number.may_be_code());
    }
    let mut allowed = Vec::new();
    for number in candidates {
        let value = number.value;
        allowed.push(if is_exclusive(value) {
            value.saturating_sub(1)
        } else {
            value
        });
    }
    let largest = allowed.iter().max().copied();
    let has_others = allowed.iter().any(|value| Some(*value) != largest);
    let sent = sent.or(largest.filter(|_| has_others)).unwrap_or(u64::MAX);
    allowed.retain(|value| *value < sent);
    allowed.into_iter().max()
}

fn worthwhile(limit: u64) -> Option<u64> {
    (WORTHWHILE..=LARGEST).contains(&limit).then_some(limit)
}

/// A number in a text.
struct Number<'t> {
    value: u64,
    /// The text before it.
    before: &'t str,
    /// The text after it.
    after: &'t str,
}

impl Number<'_> {
    fn is_before(&self, sign: &str) -> bool {
        self.after.starts_with(sign)
    }

    fn has_after(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|words| self.is_before(words))
    }

    fn is_of_prompt(&self) -> bool {
        self.has_after(OF_PROMPT) || self.has_after(OF_PROMPT_PART)
    }

    fn is_of_answer(&self) -> bool {
        self.has_after(OF_ANSWER)
    }

    fn is_of_context(&self) -> bool {
        CONTEXT.iter().any(|words| {
            let place = self.before.rfind(words);
            place.is_some_and(|place| self.before.len() - place <= CONTEXT_DISTANCE)
        })
    }

    /// Whether it may be a status or a year, which errors also have.
    fn may_be_code(&self) -> bool {
        (400..600).contains(&self.value) || (1990..2100).contains(&self.value)
    }

    /// Whether the words before it are those of a limit, or it is the end of a range.
    fn follows_limit(&self) -> bool {
        let before = self.before.trim_end_matches([' ', '`', '\'', '"']);
        let is_of_range = before
            .strip_suffix([',', '-', '–', '~'])
            .is_some_and(|first| {
                first
                    .trim_end()
                    .ends_with(|char: char| char.is_ascii_digit())
            });
        // Some errors begin with their status: `<400> …`.
        if before.ends_with('<') && self.is_before(">") {
            return false;
        }
        let words = before.split_whitespace().rev();
        let mut words =
            words.map(|word| word.trim_matches(|char: char| ":=([{,\"'`".contains(char)));
        let word = words.find(|word| !word.is_empty() && !LINKS.contains(word));
        is_of_range || word.is_some_and(|word| BEFORE_MOST.contains(&word))
    }

    /// Whether the limit must not reach it.
    fn is_exclusive(&self) -> bool {
        let before = self.before.trim_end_matches([' ', '`', '\'', '"']);
        let after = self.after.trim_start_matches(['`', '\'', '"']);
        after.starts_with(EXCLUSIVE_AFTER)
            || EXCLUSIVE_BEFORE.iter().any(|words| before.ends_with(words))
    }
}

/// Returns the first numbers of a text that are no parts of names, such as that of a model.
fn numbers_in(text: &str) -> Vec<Number<'_>> {
    let mut numbers = Vec::new();
    let mut begin = 0;
    while numbers.len() < MAX_NUMBERS
        && let Some(first) = text[begin..].chars().next()
    {
        let rest = &text[begin..];
        let mut length = rest.find(|char| !is_of_name(char)).unwrap_or(rest.len());
        if length == 0 {
            begin += first.len_utf8();
            continue;
        }
        length += length_of_groups(&rest[..length], &rest[length..]);
        // The first number of a range ends at its hyphen.
        let in_range = length_before_hyphen(&rest[..length]);
        let (word, after) = rest.split_at(in_range.unwrap_or(length));
        let before = &text[..begin];
        // A version has a point.
        let is_fraction = before.ends_with('.') || is_fraction(after);
        let digits = word.replace([',', '_'], "");
        if !is_fraction && let Ok(value) = digits.parse() {
            numbers.push(Number {
                value,
                before,
                after,
            });
        }
        begin += in_range.map_or(length, |before_hyphen| before_hyphen + 1);
    }
    numbers
}

/// Returns how long the first number of a range such as `1-8192` is; `None` for any other word.
fn length_before_hyphen(word: &str) -> Option<usize> {
    let (first, last) = word.split_once('-')?;
    (is_digits(first) && is_digits(last)).then_some(first.len())
}

/// Returns how long the groups of digits are that go on with a number after it: `,384` after `16`.
fn length_of_groups(word: &str, after: &str) -> usize {
    let mut length = 0;
    while (1..=3).contains(&word.len())
        && is_digits(word)
        && let Some(group) = after[length..].strip_prefix(',')
        && let end = group.find(|char| !is_of_name(char)).unwrap_or(group.len())
        && end == 3
        && is_digits(&group[..end])
    {
        length += 1 + end;
    }
    length
}

/// Whether the digits before this are those of a fraction: a point and a digit follow.
pub fn is_fraction(after: &str) -> bool {
    let rest = after.strip_prefix('.');
    rest.is_some_and(|rest| rest.starts_with(|char: char| char.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn the_largest_limit_is_read_from_the_words_of_each_server() {
        // What was sent, the limit, the part of the context that the prompt takes, the server, and what it says.
        let table = r##"
            16384 | 4096 | - | Anthropic | max_tokens: 16384 > 4096, which is the maximum allowed number of output tokens for claude-3-haiku-20240307
            16384 | 8192 | - | a gateway | max_tokens must be less than or equal to 8192
            32000 | 16384 | - | a gateway | `max_tokens` must be less than or equal to 16,384
            200000 | 131072 | - | a gateway | max_tokens must be at most 131,072 (got 200,000)
            200000 | 131072 | - | a gateway | max_tokens: 200_000 exceeds 131_072
            16384 | 8192 | - | a gateway | max_tokens exceeds the maximum of 8192 for model m1 (released 2024)
            4096 | 4095 | - | a gateway | max_tokens must be less than 4096
            9000 | 4095 | - | a gateway | max_tokens must be less than `4096`
            9000 | 4095 | - | a gateway | max_tokens must be < 4096
            9000 | 4096 | - | a gateway | max_tokens must be <= 4096
            16384 | 8192 | - | DashScope | Range of max_tokens should be [1, 8192]
            16384 | 8192 | - | DashScope | Range of max_tokens should be [1,8192]
            16384 | 8192 | - | a gateway | max_tokens must be in the range 1-8192
            16384 | 8192 | - | a gateway | max_tokens must be between 1 and 8192
            16384 | 8192 | - | a gateway | max_tokens is too large: 16384 (model limit: 8192, see 5000)
            16384 | 8192 | - | a gateway | max_tokens is too large: 16384. The limit is 8192 (error 400)
            16384 | - | - | a gateway | Error code: 400 - max_tokens is too large: 16384
            16384 | - | - | a gateway | max_tokens is too large: 16384 (released 2024)
            16384 | 8192 | - | a gateway | max_tokens exceeds max_model_len: 8192
            16384 | 8192 | - | a gateway | max_tokens is too large: the limit for model m1 is 8192
            16384 | 8192 | - | a gateway | max_tokens: 16384 is too large, 8192 is the maximum (error 400)
            - | 8192 | - | DashScope | <400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]
            16384 | 8192 | - | DeepSeek | Invalid max_tokens value, the valid range of max_tokens is [1, 8192]
            16384 | 8072 | small | vLLM | 'max_tokens' or 'max_completion_tokens' is too large: 16384. This model's maximum context length is 8192 tokens and your request has 120 input tokens (16384 > 8192 - 120).
            6000 | 5000 | small | vLLM | 'max_tokens' is too large: 6000. This model's maximum context length is 8192 tokens and your request has 3192 input tokens (6000 > 8192 - 3192).
            16384 | 8180 | small | Anthropic | input length and `max_tokens` exceed context limit: 12 + 16384 > 8192, decrease input length or `max_tokens` and try again
            16384 | 10000 | large | Anthropic | input length and `max_tokens` exceed context limit: 190000 + 16384 > 200000, decrease input length or `max_tokens` and try again
            16384 | - | large | Anthropic | input length and `max_tokens` exceed context limit: 199990 + 16384 > 200000, decrease input length or `max_tokens` and try again
            16384 | 8072 | small | vLLM | max_tokens is too large: 16384. This model's maximum context length is 8192 tokens and your request has 120 input tokens.
            4000 | 3692 | large | vLLM | 'max_tokens' is too large: 4000. This model's maximum context length is 8192 tokens and your request has 4500 input tokens (4000 > 8192 - 4500).
            8192 | 8109 | small | vLLM | This model's maximum context length is 8192 tokens. However, you requested 8192 output tokens and your prompt contains at least 83 input tokens, for a total of at least 8275 tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=83)
            8000 | - | small | vLLM, which stops counting | This model's maximum context length is 8192 tokens. However, you requested 8000 output tokens and your prompt contains at least 193 input tokens, for a total of at least 8193 tokens.
            4000 | - | large | vLLM, which stops counting | This model's maximum context length is 8192 tokens. However, you requested 4000 output tokens and your prompt contains at least 4193 input tokens, for a total of at least 8193 tokens.
            8000 | 7967 | small | vLLM and DeepSeek | This model's maximum context length is 8192 tokens. However, you requested 8225 tokens (225 in the messages, 8000 in the completion). Please reduce the length of the messages or completion.
            4000 | 3192 | large | vLLM and DeepSeek | This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (5000 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.
            8000 | 7867 | small | OpenAI | This model's maximum context length is 8192 tokens. However, you requested 8325 tokens (225 in the messages, 100 in the functions, and 8000 in the completion).
            4000 | 3872 | small | OpenAI | This model's maximum context length is 4097 tokens, however you requested 4225 tokens (225 in your prompt; 4000 for the completion).
            8000 | 8012 | small | OpenRouter | This endpoint's maximum context length is 8192 tokens. However, you requested about 8250 tokens (100 of text input, 80 of tool input, 8070 in the output). Please reduce the length of either one.
            8000 | 7192 | small | SGLang | Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9000 tokens: 1000 tokens from the input messages and 8000 tokens for the completion.
            8000 | 7993 | small | Together | Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 200 `inputs` tokens and 8000 `max_new_tokens`
            512 | - | large | Together | Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32769. Given: 40213 `inputs` tokens and 512 `max_new_tokens`
            16384 | - | large | Anthropic | input length and `max_tokens` exceed context limit: 10000 + 16384 > 8192
            6000 | 5000 | small | vLLM | max_tokens is too large: 6000. This model's maximum context length is 8192 tokens and your request has 3192 input tokens
            9000 | 4096 | - | OpenAI | max_tokens is too large: 9000. This model supports at most 4096 completion tokens, whereas you provided 9000.
            9000 | 4096 | - | a gateway | "max_tokens" must be at most 4096.
            - | 4096 | - | a gateway with a limit of its own | max_tokens: at most 4096
            - | 4096 | - | a gateway with a limit of its own | max_tokens is too large: 9000, at most 4096
            16384 | 8192 | - | Groq | `max_completion_tokens` must be less than or equal to `8192`, the maximum value for `max_completion_tokens` is less than the `context_window` for this model
            99999 | 65536 | - | Gemini | Unable to submit request because it has a maxOutputTokens value of 99999 but the supported range is from 1 (inclusive) to 65536 (inclusive).
            65536 | 65535 | - | Vertex | Unable to submit request because it has a maxOutputTokens value of 65536 but the supported range is from 1 (inclusive) to 65536 (exclusive). Update the value and try again.
            9000 | 4095 | - | Bedrock | The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096.
            9000 | 4096 | - | Bedrock | The maximum tokens you requested exceeds the model limit of 4096
            9000 | 4096 | - | Cohere | max tokens must be less than or equal to 4096, the maximum output length for this model - received 9000.
            100 | - | - | less than what is worth a request | max_tokens must be at most 64
            9000 | - | - | no number | max_tokens is too large
            9000 | - | - | no lower number | max_tokens is too large: 9000 (see error 12000)
            9000 | none | - | too small | max_tokens: 1 must be positive
            9000 | none | - | another limit | `max_tokens` must be greater than `thinking.budget_tokens`
            0 | none | - | too small | the valid range of max_tokens is [1, 8192]
            512 | none | - | another limit | max_tokens must be greater than thinking.budget_tokens. Range: 1024 to 32000
            9000 | none | - | another limit | thinking budget_tokens must be less than max_tokens
            16000 | 3692 | large | a limit that exceeds the context alone | This model's maximum context length is 8192 tokens. However, you requested 20500 tokens (4500 in the messages, 16000 in the completion).
            9000 | none | - | a plan | Plan: context 8192, 8000 output tokens, 1000 input tokens
            9000 | none | - | a prompt | This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.
            9000 | none | - | a prompt | This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.
            9000 | none | - | both fit | This model's maximum context length is 8192 tokens, of which 225 input tokens and 1000 output tokens were used
            9000 | none | - | a prompt | number of input tokens (204703) has exceeded max_prompt_tokens (202752) limit.
            9000 | none | - | a prompt | The input exceeds the maximum tokens of this model: 8192
            9000 | none | - | a field | max_tokens is not supported with this model
        "##;
        for [sent, most, prompt, server, message] in rows(table) {
            let expected = (most != "none").then(|| RefusedLimit {
                most: most.parse().ok(),
                prompt: match prompt {
                    "small" => Some(PromptPart::Small),
                    "large" => Some(PromptPart::Large),
                    _ => None,
                },
            });
            let found = refused_limit(&message.to_lowercase(), sent.parse().ok());
            assert_eq!(found, expected, "{server}: {message}");
        }
    }

    #[test]
    fn the_work_for_an_error_of_many_numbers_is_bounded() {
        let numbers = "9000, ".repeat(100_000);
        // What stands behind them does not count.
        let message = format!("max_tokens is too large: {numbers} 8192");
        let found = refused_limit(&message, Some(9000));
        assert_eq!(found.and_then(|found| found.most), None);
    }
}
