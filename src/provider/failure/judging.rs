//! Judges what a server's error means for the next request: one table, in order (pure).

use std::time::Duration;

use super::reading::ServerError;
use super::refused::{self, OUTPUT_CONFIG, has_name};
use crate::provider::request::Extra;

/// The statuses of errors after which another try may succeed.
pub const TRANSIENT_STATUSES: &[u16] =
    &[408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529];

/// The longest wait that a server may ask for.
pub const MAX_WAIT: Duration = Duration::from_secs(60);

/// The types and codes of errors after which another try may succeed. They count where there is no status.
const TRANSIENT_CODES: &str = "\
    overloaded_error rate_limit_error rate_limit_exceeded api_error server_error internal_server_error \
    service_unavailable service_unavailable_error server_is_overloaded slow_down timeout_error unavailable \
    resource_exhausted internal deadline_exceeded";

/// What an error means for the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The prompt is longer than the model's context, or longer than what may be sent in a minute. A shorter one may be
    /// accepted.
    TooLong,
    /// The server refuses something that the request can do without.
    Refuses(Extra),
    /// The server does not know the model.
    UnknownModel,
    WrongKey,
    /// The quota or the money of the account is used up.
    Spent,
    /// The model cannot call tools.
    RefusesTools,
    /// The request has more bytes than the server accepts.
    TooLarge,
    /// The same request may succeed later.
    Transient,
    Other,
}

type Rule = fn(&Case) -> bool;

/// Each meaning and how it is recognized. The first that fits counts, because an error may have the words for several.
const RULES: &[(Meaning, Rule)] = &[
    (Meaning::TooLong, |case| case.says(TOO_LONG)),
    (Meaning::Refuses(Extra::Store), |case| {
        case.refuses(Extra::Store)
    }),
    (Meaning::Refuses(Extra::Cache), |case| {
        case.refuses(Extra::Cache)
    }),
    (Meaning::Refuses(Extra::Usage), |case| {
        case.refuses(Extra::Usage)
    }),
    (Meaning::Refuses(Extra::Limit), |case| {
        case.refuses(Extra::Limit)
    }),
    (Meaning::UnknownModel, |case| case.is_unknown_model()),
    (Meaning::Refuses(Extra::Effort), |case| {
        let is_wrong = case.error.code.contains(WRONG_PARAMETER);
        case.refuses(Extra::Effort) || (is_wrong && case.can_refuse(Extra::Effort))
    }),
    (Meaning::Refuses(Extra::Form), |case| {
        // As a plain word it may be any text, but not as the name of a field.
        let is_field = case.can_refuse(Extra::Form) && case.error.field == "text";
        is_field || case.refuses(Extra::Form)
    }),
    // Anthropic's object for the form and the effort. If the request has no form, the error is about the effort.
    (Meaning::Refuses(Extra::Effort), |case| {
        case.can_refuse(Extra::Effort) && has_name(&case.words, OUTPUT_CONFIG)
    }),
    (Meaning::Refuses(Extra::Encrypted), |case| {
        case.refuses(Extra::Encrypted)
    }),
    (Meaning::Refuses(Extra::System), |case| {
        case.refuses(Extra::System)
    }),
    (Meaning::Spent, |case| case.is_spent()),
    (Meaning::WrongKey, |case| {
        let is_refused = matches!(case.status, Some(401 | 403));
        is_refused || case.says(KEY)
    }),
    (Meaning::RefusesTools, |case| {
        case.says(&["does not support tools"])
    }),
    (Meaning::TooLarge, |case| case.status == Some(413)),
    (Meaning::Refuses(Extra::Attachments), |case| {
        case.asked.contains(&Extra::Attachments) && case.may_be_about_attachments()
    }),
    (Meaning::Transient, |case| case.is_transient()),
];

/// The words for a prompt that is too long of OpenAI, llama.cpp, vLLM, Anthropic, Gemini, Vertex, Ollama, OpenRouter,
/// Groq, xAI, LM Studio, Perplexity, SGLang, TGI, Together, Moonshot, Zhipu, DashScope and GitHub.
const TOO_LONG: &[&str] = &[
    "maximum context length",
    "maximum prompt length",
    "maximum model length",
    "context length exceeded",
    "greater than the context length",
    "longer than the model's context length",
    "context length of only",
    "exceeds the available context size",
    "exceed context limit",
    "exceeds the context length",
    "exceeds the context window",
    "exceeds the maximum number of tokens",
    "exceeds max length",
    "exceeded model token limit",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input length exceeds",
    "range of input length",
    "`inputs` must have less than",
    "`inputs` tokens + `max_new_tokens` must be",
    "but model only supports",
    "context window",
    "contextwindowexceeded",
    "reduce your message size",
    "request too large for",
    "tokens must be reduced",
    // Codes.
    "context_length_exceeded",
    "exceed_context_size_error",
    "too_many_prompt_tokens",
    "tokens_limit_reached",
    "request_too_large",
];

/// The words for a model that does not exist, including those of Zhipu and Groq.
const MODEL: &[&str] = &[
    "invalid model",
    "not a valid model",
    "supported api model names",
    "unknown model",
    "模型不存在",
    "has been decommissioned",
    // Codes.
    "model_not_found",
    "model_decommissioned",
];

/// The words for a key that is not accepted.
const KEY: &[&str] = &[
    "api key not valid",
    "incorrect api key",
    "invalid api key",
    "api_key_invalid",
    "authentication_error",
];

/// The words for an account that has used up its quota or its money, of OpenAI, Gemini, DeepSeek, Zhipu, OpenRouter,
/// Anthropic and xAI.
const SPENT: &[&str] = &[
    "exceeded your current quota",
    "insufficient balance",
    "余额不足",
    "insufficient credits",
    "credit balance is too low",
    "reached your specified api usage limits",
    "used all available credits",
    "monthly spending limit",
    // Codes of OpenAI and Moonshot, and a type of Anthropic's.
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "exceeded_current_quota_error",
    "billing_error",
];

/// Z.ai's code for a parameter that is wrong, and that it often does not name.
const WRONG_PARAMETER: &str = "1210";

/// The levels of effort that servers name in their errors.
const LEVELS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

const ATTACHMENTS: &str = "\
    image images vision multimodal mmproj pdf pdfs document documents attachment attachments modality modalities";

/// What an error means. `status` is that of the response. It is `None` for an error inside a reply; then the status in the
/// error counts. `asked` is what was in the request that it can do without.
pub fn judge(error: &ServerError, status: Option<u16>, asked: &[Extra]) -> Meaning {
    let words = format!("{} {} {}", error.message, error.code, error.field);
    let case = Case {
        words: words.to_lowercase(),
        status: status.or(error.status),
        error,
        asked,
    };
    for (meaning, applies) in RULES {
        if applies(&case) {
            return *meaning;
        }
    }
    Meaning::Other
}

/// The levels of effort that an error names beside the one that it refuses.
pub fn levels_in(message: &str, refused: &str) -> String {
    let message = message.to_lowercase();
    let mut levels = LEVELS.to_vec();
    levels.retain(|level| *level != refused && has_name(&message, level));
    levels.join(", ")
}

/// An error, and what is known about its response and its request.
struct Case<'a> {
    error: &'a ServerError,
    /// The error's message, its code and its field, in lower case.
    words: String,
    status: Option<u16>,
    /// What was in the request that it can do without.
    asked: &'a [Extra],
}

impl Case<'_> {
    fn says(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.words.contains(phrase))
    }

    /// Whether the server refuses something about the request itself, and this was in it.
    fn can_refuse(&self, extra: Extra) -> bool {
        let is_refusal = matches!(self.status, Some(400 | 422));
        is_refusal && self.asked.contains(&extra)
    }

    /// Whether it refuses this, which was in the request.
    fn refuses(&self, extra: Extra) -> bool {
        self.asked.contains(&extra) && refused::refuses(extra, &self.words, self.error, self.status)
    }

    fn is_unknown_model(&self) -> bool {
        let is_missing = match self.status {
            Some(404 | 410) => true,
            Some(400) | None => self.says(&["not found", "not exist", "not_found_error"]),
            Some(_) => false,
        };
        self.says(MODEL) || (is_missing && self.says(&["model"]))
    }

    fn may_be_about_attachments(&self) -> bool {
        let mut words = self.words.split(|char: char| !char.is_alphanumeric());
        let names_them = words.any(|word| is_one_of(word, ATTACHMENTS));
        let field = &self.error.field;
        match self.status {
            Some(415) => true,
            // Too many requests, or overload. The name of the model, which the message may have, may contain “vision”.
            Some(429 | 503 | 529) => false,
            // If the error names a field at all, it must be a part of the messages.
            Some(400 | 422) if field.is_empty() || field.contains("content") => true,
            // A 404 may also come from a wrong address.
            _ => names_them,
        }
    }

    /// Whether quota or money is used up. Google has the same words for a limit per minute, but then says how long to wait.
    fn is_spent(&self) -> bool {
        let wait = self.error.retry_after.unwrap_or(Duration::MAX);
        if wait <= MAX_WAIT && self.is_transient() {
            return false;
        }
        self.status == Some(402) || self.says(SPENT)
    }

    fn is_transient(&self) -> bool {
        if let Some(status) = self.status {
            return TRANSIENT_STATUSES.contains(&status);
        }
        let codes = self.error.code.to_lowercase();
        codes.split(' ').any(|code| match code.parse() {
            // Some servers write the status as text.
            Ok(status) => TRANSIENT_STATUSES.contains(&status),
            Err(_) => is_one_of(code, TRANSIENT_CODES),
        })
    }
}

/// Whether a word is one of those that blanks separate.
fn is_one_of(word: &str, words: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::read;
    use super::*;
    use crate::message::tests::rows;

    /// A request that asks for everything.
    const ALL: &[Extra] = &[
        Extra::Effort,
        Extra::Store,
        Extra::Cache,
        Extra::Form,
        Extra::Attachments,
    ];

    /// Checks a table: what an error means, or what not, its status, and its body, which may be the message alone.
    #[track_caller]
    fn check(asks: &[Extra], table: &str) {
        for [meaning, status, body] in rows(table) {
            let error = read(body).expect(body);
            let found = format!("{:?}", judge(&error, status.parse().ok(), asks));
            match meaning.strip_prefix("not ") {
                Some(other) => assert_ne!(found, other, "{status} {body}"),
                None => assert_eq!(found, meaning, "{status} {body}"),
            }
        }
    }

    /// Nothing in such a table means this to who has asked for something else.
    fn check_never(asks: &[Extra], meaning: &str, table: &str) {
        for [_, rest] in rows(table) {
            check(asks, &format!("not {meaning} | {rest}"));
        }
    }

    #[test]
    fn a_model_that_the_server_does_not_know_is_distinguished_from_other_failures() {
        let table = r##"
            UnknownModel | 500 | {"error":{"message":"no","code":"model_not_found"}}
            UnknownModel | 400 | x is not a valid model ID
            UnknownModel | 400 | The supported API model names are a or b, but you passed x.
            UnknownModel | 404 | model 'x' not found
            UnknownModel | 400 | The model x does not exist
            UnknownModel | 400 | Model Not Exist
            UnknownModel | 400 | {"error":{"message":"模型不存在，请检查模型代码。","code":"1211"}}
            UnknownModel | 400 | {"error":{"message":"no","code":"model_decommissioned"}}
            UnknownModel | 400 | The model `x` has been decommissioned and is no longer supported.
            UnknownModel | 410 | The model x was retired
            not UnknownModel | 410 | gone
            not UnknownModel | 400 | the model is overloaded
            not UnknownModel | 404 | page not found
            not UnknownModel | 400 | tool x not found
        "##;
        check(&[], table);
    }

    #[test]
    fn a_key_may_be_refused_with_any_status() {
        let table = r##"
            WrongKey | 401 | no
            WrongKey | 400 | API key not valid. Please pass a valid API key.
            WrongKey | 400 | Incorrect API key provided: x
            not WrongKey | 400 | no
        "##;
        check(&[], table);
    }

    #[test]
    fn what_is_used_up_does_not_come_back_unless_the_server_says_when() {
        let table = r##"
            429 | insufficient_quota | no
            - | insufficient_quota | no
            429 | - | You exceeded your current quota, please check your plan and billing details.
            402 | - | no
            400 | - | Your credit balance is too low to access the Anthropic API.
            403 | - | Your team has either used all available credits or reached its monthly spending limit.
            429 | 1113 | 余额不足或无可用资源包,请充值。
        "##;
        for [status, code, message] in rows(table) {
            let [spent, passes] = [Meaning::Spent, Meaning::Transient];
            let soon = if status == "429" { passes } else { spent };
            for (seconds, meaning) in [(None, spent), (Some(61), spent), (Some(60), soon)] {
                let error = ServerError {
                    retry_after: seconds.map(Duration::from_secs),
                    code: code.to_owned(),
                    ..ServerError::new(message)
                };
                let found = judge(&error, status.parse().ok(), ALL);
                assert_eq!(found, meaning, "{status} {code} {message} {seconds:?}");
            }
        }
        let limited =
            r#"{"error":{"message":"Rate limit reached for m","code":"rate_limit_exceeded"}}"#;
        check(ALL, &format!("Transient | 429 | {limited}"));
    }

    #[test]
    fn an_error_inside_a_reply_means_what_it_means_with_a_status() {
        let table = r##"
            UnknownModel | - | {"error":"model 'x' not found"}
            UnknownModel | - | {"error":{"message":"no such model","code":404}}
            UnknownModel | - | {"error":{"type":"not_found_error","message":"model: x"}}
            Other | - | {"error":{"type":"not_found_error","message":"no"}}
            Transient | - | {"error":{"message":"model x not found","code":500}}
            WrongKey | - | {"error":{"message":"No auth credentials found","code":401}}
            WrongKey | - | {"error":{"type":"authentication_error","message":"invalid x-api-key"}}
            Refuses(Form) | - | {"error":{"code":400,"message":"response_format is not supported"}}
            Refuses(Store) | - | {"error":{"code":422,"message":"Unknown parameter: 'store'."}}
            Transient | - | {"error":{"code":500,"message":"response_format and store"}}
            Other | - | {"error":{"message":"response_format and store"}}
        "##;
        check(ALL, table);
    }

    #[test]
    fn of_several_meanings_the_first_of_the_table_counts() {
        let table = r##"
            TooLong | 400 | with this schema the prompt is too long
            TooLong | 413 | prompt is too long
            Refuses(Store) | 400 | 'store' does not exist in the model's request
            UnknownModel | 400 | the model json_object does not exist
            Refuses(Form) | 400 | no json_schema with an invalid API key
            RefusesTools | 400 | m does not support tools
            TooLarge | 413 | no room for these images
            Refuses(Attachments) | 500 | image input is not supported
        "##;
        check(ALL, table);
        let table = r##"
            UnknownModel | 400 | 'store' does not exist in the model's request
            WrongKey | 400 | no json_schema with an invalid API key
            Transient | 500 | image input is not supported
        "##;
        check(&[], table);
    }

    #[test]
    fn a_context_that_is_too_long_is_recognized_in_everyones_words() {
        // The words of every server are in the corpus of replies.
        let table = r##"
            TooLong | - | {"error":{"message":"no","code":"context_length_exceeded"}}
            TooLong | - | {"error":{"message":"no","type":"exceed_context_size_error"}}
            TooLong | - | {"type":"error","error":{"type":"request_too_large","message":"no"}}
            TooLong | - | {"error":"The INPUT length exceeds the context length"}
            TooLong | - | {"error":{"message":"Request too large for model m on tokens per minute (TPM): Limit 6000, Requested 9000"}}
            not TooLong | - | {"error":{"message":"max_tokens is too large"}}
            not TooLong | - | {"error":{"message":"rate limit"}}
        "##;
        check(ALL, table);
    }

    #[test]
    fn a_form_that_is_refused_is_known_by_any_of_its_names() {
        let table = r##"
            Refuses(Form) | 400 | {"error":{"message":"This model does not support response format `json_schema`."}}
            Refuses(Form) | 400 | {"error":{"message":"Invalid value","param":"response_format"}}
            Refuses(Form) | 400 | {"error":{"message":"Unknown parameter: 'text'.","param":"text"}}
            not Refuses(Form) | 400 | {"error":{"message":"the text is too odd"}}
            Refuses(Form) | 400 | {"error":{"message":"Invalid value","param":"text.format.schema"}}
            not Refuses(Form) | 400 | {"error":{"message":"Invalid value","param":"text.verbosity"}}
            Refuses(Form) | 400 | {"error":{"message":"no","code":"invalid_json_schema"}}
            Refuses(Form) | 400 | {"error":{"message":"JSON mode is not enabled for this model"}}
            Refuses(Form) | 400 | {"error":{"message":"'messages' must contain the word 'json' for 'json_object'"}}
            Refuses(Form) | 400 | {"error":{"message":"output_config: Extra inputs are not permitted"}}
            Refuses(Form) | 400 | [{"error":{"code":400,"message":"Unknown name \"responseJsonSchema\""}}]
            Refuses(Form) | 400 | {"error":{"code":400,"message":"generation_config.response_mime_type: no"}}
            Refuses(Form) | 400 | {"error":{"code":400,"message":"Failed to parse grammar"}}
            Refuses(Form) | 422 | {"detail":[{"loc":["body","response_format"],"msg":"Extra inputs are not permitted"}]}
            Refuses(Form) | 422 | {"message":{"detail":[{"loc":["body","response_format",0],"msg":"no"}]}}
            not Refuses(Form) | 422 | {"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}
            not Refuses(Form) | 500 | {"error":{"message":"response_format is not supported"}}
            not Refuses(Form) | 400 | {"error":{"message":"no"}}
            not Refuses(Form) | 400 | {"error":{"message":"The model json_object does not exist"}}
            not Refuses(Form) | 400 | {"error":{"message":"With this schema the prompt is too long"}}
        "##;
        check(ALL, table);
    }

    #[test]
    fn images_and_pdfs_may_be_refused_with_any_status_that_speaks_of_them() {
        let table = r##"
            Refuses(Attachments) | 400 | no
            not Refuses(Attachments) | 413 | no
            Refuses(Attachments) | 415 | no
            Refuses(Attachments) | 404 | No endpoints found that support image input
            not Refuses(Attachments) | 404 | no
            Refuses(Attachments) | 500 | image input is not supported - hint: you may need to provide the mmproj
            not Refuses(Attachments) | 500 | no
            not Refuses(Attachments) | 500 | no provision, no imagination, see the documentation
            Refuses(Attachments) | 501 | This is no MULTIMODAL model
            not Refuses(Attachments) | 503 | the model llama-vision is overloaded
            not Refuses(Attachments) | 429 | too many requests for llama-vision
            not Refuses(Attachments) | 413 | with these images the prompt is too long
            not Refuses(Attachments) | 400 | The model llama-vision does not exist
            Refuses(Attachments) | - | cannot read the PDF
            not Refuses(Attachments) | - | no
            Refuses(Attachments) | - | {"error":{"code":500,"message":"no vision"}}
            not Refuses(Attachments) | - | {"error":{"code":503,"message":"no vision"}}
            Refuses(Attachments) | - | {"error":{"code":400,"message":"no","param":"messages.[0].content.[1].type"}}
            not Refuses(Attachments) | - | {"error":{"code":400,"message":"no","param":"temperature"}}
            Refuses(Attachments) | - | {"error":{"code":400,"message":"no images with it","param":"temperature"}}
            Refuses(Attachments) | - | {"code":422,"detail":[{"loc":["body","messages",0,"content"],"msg":"no"}]}
            not Refuses(Attachments) | - | {"code":422,"detail":[{"loc":["body","stream_options"],"msg":"no"}]}
        "##;
        check(ALL, table);
    }

    #[test]
    fn an_error_names_fields_in_its_words_or_beside_them() {
        let table = r##"
            Refuses(Store) | 400 | {"error":{"message":"Unknown parameter: 'store'."}}
            Refuses(Store) | 400 | {"error":{"message":"Unsupported parameter","param":"store"}}
            Refuses(Store) | 400 | {"error":"Bad Request","param":"store","message":"no"}
            Refuses(Store) | 400 | {"error":{"message":"no","param":"input[0].store"}}
            not Refuses(Store) | 400 | {"error":{"message":"no","param":"stored"}}
            not Refuses(Store) | 400 | {"error":{"message":"Unknown parameter: 'vector_store'.","param":null}}
            not Refuses(Store) | 400 | {"detail":[{"loc":["body",0],"msg":"no"}]}
        "##;
        check(ALL, table);
    }

    #[test]
    fn an_effort_that_is_refused_is_known_by_any_of_its_names() {
        let table = r##"
            Refuses(Effort) | 400 | {"error":{"message":"reasoning_effort='low' is not supported for this model. Must be one of ('none', 'high')","code":"3051"}}
            Refuses(Effort) | 400 | This model does not support the effort parameter.
            Refuses(Effort) | 400 | output_config.effort 'max' is not supported when thinking is disabled on this model.
            Refuses(Effort) | 400 | Model grok-build does not support parameter reasoningEffort.
            Refuses(Effort) | 400 | Thinking level MEDIUM is not supported for this model.
            Refuses(Effort) | 400 | Unknown name "thinkingLevel" at 'generation_config.thinking_config': Cannot find field.
            Refuses(Effort) | 422 | body.reasoning: property 'body.reasoning' is unsupported
            Refuses(Effort) | 400 | {"error":{"message":"Invalid API parameter, please check the documentation.","code":"1210"}}
            not Refuses(Effort) | 400 | {"error":{"message":"Invalid API parameter, please check the documentation.","code":"1211"}}
            not Refuses(Effort) | 400 | at most 1210 pixels
            not Refuses(Effort) | 500 | reasoning_effort is not supported
            not Refuses(Effort) | 400 | temperature is not supported by grok-4-fast-reasoning
            not Refuses(Effort) | 400 | The model grok-4-fast-reasoning does not exist
            Refuses(Effort) | 400 | output_config: Extra inputs are not permitted
            Refuses(Effort) | 400 | {"error":{"code":1210,"message":"Invalid API parameter."}}
        "##;
        check(&[Extra::Effort], table);
        check_never(&[], "Refuses(Effort)", table);
        // One object of Anthropic's has the form, too.
        let table = r##"
            Refuses(Effort) | 400 | {"error":{"message":"no","param":"reasoning.effort"}}
            Refuses(Form) | 400 | output_config: Extra inputs are not permitted
            Refuses(Effort) | 400 | output_config.effort: Input should be 'low'
            Refuses(Form) | 400 | output_config.format.schema: no
        "##;
        check(ALL, table);
    }

    #[test]
    fn the_levels_in_an_error_are_those_beside_the_refused_one() {
        let table = r##"
            medium | none, high | 'medium' is not supported. Must be one of (<ReasoningEffort.none: 'none'>, 'high')
            minimal | low, medium, high | Unsupported value: 'minimal'. Supported values are: 'low', 'medium', and 'high'.
            x | low | mistral-medium-latest takes LOW, with max_tokens
            low | - | no
        "##;
        for [refused, levels, message] in rows(table) {
            assert_eq!(levels_in(message, refused), levels, "{message}");
        }
    }

    #[test]
    fn a_refused_cache_is_named() {
        let table = r##"
            Refuses(Cache) | 400 | {"error":{"type":"invalid_request_error","message":"cache_control: Extra inputs are not permitted"}}
            Refuses(Cache) | 400 | {"error":{"message":"Unknown field `cache_control`."}}
            Refuses(Cache) | 400 | {"detail":[{"loc":["body","cache_control"],"msg":"no"}]}
            not Refuses(Cache) | 400 | {"error":{"message":"no"}}
        "##;
        check(ALL, table);
        check_never(&[Extra::Effort, Extra::Form], "Refuses(Cache)", table);
    }

    #[test]
    fn transient_errors_are_known_by_status_or_type() {
        let table = r##"
            Transient | - | {"error":{"message":"x","code":429}}
            not Transient | - | {"error":{"message":"x","code":400}}
            not Transient | - | {"error":{"message":"x","type":"server_error","code":400}}
            Transient | - | {"error":{"message":"x","type":"overloaded_error"}}
            Transient | - | {"error":{"message":"x","status":"UNAVAILABLE"}}
            Transient | - | {"error":{"message":"x","code":"server_is_overloaded"}}
            not Transient | - | {"error":{"message":"x","type":"invalid_request_error"}}
            not Transient | - | {"error":"x"}
        "##;
        check(&[], table);
    }
}
