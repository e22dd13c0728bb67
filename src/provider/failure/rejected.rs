//! Recognizes what a server rejects of a request that can do without it, or say it in another form: one table (pure).

use super::limit;
use super::reading::ServerError;
use crate::provider::request::OptionalField;
use crate::text::whole_name::{has_name, is_of_name, occurrences};

/// A row of the table: how servers name something that they reject.
#[derive(Clone, Copy)]
struct RejectionRow {
    field: OptionalField,
    /// Names of the field and of its parts that are no words of English, and what counts only if no name goes on after it.
    names: &'static [&'static str],
    /// Names that are words, too. They count only where the error names a field: in quotation marks, on a path, next to the
    /// word “parameter” or “field”, before a colon that the error begins with, or next to the message.
    words: &'static [&'static str],
    /// What says the same without a name.
    phrases: &'static [&'static str],
    /// The statuses with which servers reject it.
    statuses: &'static [u16],
}

const BAD_REQUEST: &[u16] = &[400, 422];

/// The statuses in which gateways wrap a rejection by the server behind them. Other failures have them, too, so only what can mean
/// nothing else counts.
const OF_GATEWAYS: &[u16] = &[500, 502, 503];

/// What rejects sealed reasoning and can mean nothing else.
const REJECTED_SEAL: &[&str] = &[
    // OpenAI, and Azure.
    "encrypted content for item",
    "encrypted content could not be",
    // Anthropic, with backticks or without.
    "invalid `signature` in",
    "invalid signature in",
    "blocks in the latest assistant message cannot be modified",
    // Gemini.
    "corrupted thought signature",
    "invalid thought signature",
    "thought signature is not valid",
    "corrupted thought_signature",
    "invalid thought_signature",
];

const ROWS: &[RejectionRow] = &[
    RejectionRow {
        field: OptionalField::SealedReasoning,
        names: &["invalid_encrypted_content"],
        words: &[],
        phrases: &[
            // OpenAI, and Azure. See also `REJECTED_SEAL`.
            "could not be decrypted",
            "created under a different",
            "item with id",
            "without its required",
        ],
        // An item that is not in the store is missing.
        statuses: &[400, 404, 422],
    },
    RejectionRow {
        field: OptionalField::Store,
        names: &[],
        words: &["store"],
        phrases: &[],
        statuses: BAD_REQUEST,
    },
    RejectionRow {
        field: OptionalField::Cache,
        names: &["cache_control"],
        words: &[],
        phrases: &[],
        statuses: BAD_REQUEST,
    },
    RejectionRow {
        field: OptionalField::Usage,
        names: &["stream_options", "streamoptions", "include_usage"],
        words: &[],
        phrases: &["stream options"],
        statuses: BAD_REQUEST,
    },
    RejectionRow {
        field: OptionalField::Encrypted,
        names: &["reasoning.encrypted_content"],
        words: &["include"],
        // OpenAI, of models that do not reason.
        phrases: &["encrypted content is not supported"],
        statuses: BAD_REQUEST,
    },
    RejectionRow {
        field: OptionalField::ToolChoice,
        names: &[
            "tool_choice",
            "functioncallingconfig",
            "function_calling_config",
        ],
        words: &[],
        phrases: &["tool choice"],
        statuses: BAD_REQUEST,
    },
    RejectionRow {
        field: OptionalField::System,
        names: &[
            "systeminstruction",
            "system_instruction",
            "messages[0].role",
        ],
        words: &["system", "instructions"],
        phrases: &[
            // Templates of Gemma and Mistral, in vLLM, SGLang, llama.cpp, TGI and LM Studio.
            "system role not supported",
            "conversation roles must alternate",
            "only user and assistant roles are supported",
            "roles are supported, got system",
            // Gemini.
            "developer instruction is not enabled",
            // Bedrock.
            "doesn't support system messages",
            // OpenAI.
            "does not support 'system'",
            "does not support 'developer'",
            "does not support system",
            "system role is not supported",
            "system message is not supported",
            "system messages are not supported",
            "system prompt is not supported",
            "system prompts are not supported",
            "system instruction is not supported",
        ],
        // An exception in a template is an error of the server.
        statuses: &[400, 422, 500],
    },
    RejectionRow {
        field: OptionalField::Effort,
        names: &[
            "reasoning_effort",
            "reasoningeffort",
            "reasoning.effort",
            "output_config.effort",
            "thinkingconfig",
            "thinking_config",
            "thinkinglevel",
            "thinking_level",
            "thinkingbudget",
            "thinking_budget",
            // Anthropic.
            "not support effort",
            "doesn't support effort",
            "effort is not supported",
            "effort level",
        ],
        words: &["effort", "reasoning", "think"],
        phrases: &[
            "thinking level",
            "reasoning effort",
            "valid levels: ",
            // Ollama.
            "does not support thinking",
            "think value",
            // Gemini and Vertex.
            "thinking is not enabled",
            "thinking is not supported",
            "reasoning is not enabled",
            "reasoning is not supported",
            "does not support reasoning",
            "doesn't support reasoning",
            "doesn't support thinking",
            // Novita.
            "not support feature: reasoning",
            "not support feature: thinking",
        ],
        statuses: BAD_REQUEST,
    },
    RejectionRow {
        field: OptionalField::Form,
        names: &[
            "response_format",
            "response-format",
            "guided_decoding",
            "json_object",
            "json_schema",
            "invalid_json_schema",
            "text.format",
            OUTPUT_CONFIG,
            "output_format",
            "responsemimetype",
            "response_mime_type",
            "responseschema",
            "response_schema",
            "responsejsonschema",
            "response_json_schema",
        ],
        words: &["schema", "grammar"],
        phrases: &[
            "response format",
            "json mode",
            "json schema",
            "structured output",
            "guided decoding",
            "grammar is not supported",
            "grammars are not supported",
            "not support grammar",
            // OpenAI, Anthropic and Gemini.
            "invalid schema",
            "schema is too complex",
            "schema in generationconfig",
            "schemas contains too many",
            "too many states",
            // What Anthropic, llama.cpp and vLLM turn a schema into.
            "compiled grammar is too large",
            "grammar compilation",
            "grammar error",
            "parse grammar",
            "initialize grammar",
        ],
        statuses: BAD_REQUEST,
    },
];

/// Anthropic's object for the form and the effort.
pub(super) const OUTPUT_CONFIG: &str = "output_config";

/// What OpenRouter, Gemini and others say of models that always think: the effort was `none`.
const ALWAYS_THINKS: &[&str] = &[
    "reasoning is mandatory",
    "reasoning is required",
    "reasoning must be enabled",
    "reasoning cannot be disabled",
    "reasoning can't be disabled",
    "reasoning mode cannot be disabled",
    "cannot disable reasoning",
    "requires reasoning",
    "thinking is mandatory",
    "thinking is required",
    "thinking must be enabled",
    "thinking cannot be disabled",
    "thinking can't be disabled",
    "thinking mode cannot be disabled",
    "cannot disable thinking",
    "requires thinking",
    "only works in thinking mode",
    "only supports thinking mode",
];

/// What such an error is about instead: the thoughts in a turn of the model.
const OF_TURNS: &[&str] = &[
    "signature",
    "signatures",
    "block",
    "blocks",
    "turn",
    "turns",
    "assistant message",
    "passed back",
];

/// The beginnings of paths to a turn.
const PATHS_TO_TURNS: &[&str] = &["messages.", "messages["];

/// What Novita and others call the form of an answer, as a feature of a model. Beta headers and keys are called so, too.
const FORM_FEATURES: &[&str] = &[
    "json-mode",
    "json_mode",
    "structured-output",
    "structured-outputs",
    "structured_output",
    "structured_outputs",
];
const LACKS_FEATURE: &[&str] = &["support", "not enabled", "not available", "unavailable"];

/// The names of the limit of tokens. Each is rejected by servers that want the other.
const OLD_LIMIT: &str = "max_tokens";
const NEW_LIMIT: &str = "max_completion_tokens";

/// The names of Gemini's field for the schemas of tools, in lower case.
const JSON_SCHEMAS: &[&str] = &["parametersjsonschema", "parameters_json_schema"];

/// The field with reasoning in a turn of the model.
const REASONING: &str = "reasoning_content";

/// LiteLLM's field for reasoning with signatures.
const SIGNED_REASONING: &str = "thinking_blocks";

/// The same of other servers.
const PLAIN_REASONING: &str = "reasoning";

/// What DeepSeek, Moonshot, and servers in Python say of it where a turn lacks it.
const LACKING: &[&str] = &[
    "must be passed back",
    "missing",
    "required",
    "must be provided",
];

/// The same of them, where it can mean nothing else.
const CERTAINLY_LACKING: &[&str] = &[
    "reasoning_content in the thinking mode must be passed back",
    "reasoning_content is missing in assistant",
    "missing reasoning_content field in the assistant message",
];

/// The words for a field that a server does not know, of OpenAI, Azure, Mistral, servers in Python and in Go, Google, and xAI.
const UNKNOWN_FIELD: &[&str] = &[
    "unsupported",
    "not supported",
    "does not support",
    "unknown",
    "unrecognized",
    "unexpected",
    "not permitted",
    "not allowed",
    "cannot find field",
    "not one of the supported",
];

/// What servers say of an earlier response that the field `store` has kept them from keeping.
const OBEYED: &[&str] = &["store is false", "store is set to false", "store=false"];

/// What may be before or after the name of a field in a code that rejects it.
const CODE_BEGINNINGS: &[&str] = &["unsupported_", "unknown_", "unrecognized_"];
const CODE_ENDS: &[&str] = &[
    "_not_supported",
    "_unsupported",
    "_not_allowed",
    "_not_permitted",
    "_not_available",
];

/// What may be before or after the name of a field.
const FIELD_NOUNS: &[&str] = &[
    "parameter",
    "field",
    "argument",
    "property",
    "option",
    "key",
];

/// What gateways say after the name of a field that they do not take.
const UNLISTED: &str = " is not one of the supported parameters";

/// What may be before a colon that a name follows.
const BEFORE_COLON: &[&str] = &[
    "parameter",
    "parameters",
    "field",
    "fields",
    "argument",
    "supplied",
    "property",
];

/// Whether an error rejects this, by what it says, in lower case, and by its status. The message comes first in `words`.
pub(super) fn rejects(
    field: OptionalField,
    words: &str,
    error: &ServerError,
    status: Option<u16>,
) -> bool {
    let has_status = |statuses: &[u16]| status.is_some_and(|status| statuses.contains(&status));
    let is_bad = has_status(BAD_REQUEST);
    let plain = words.replace(['"', '\'', '`'], "");
    let is_said = |phrase: &&str| words.contains(phrase) || plain.contains(phrase);
    if status.is_none() || has_status(OF_GATEWAYS) || is_bad {
        let is_certain = match field {
            OptionalField::SealedReasoning => {
                REJECTED_SEAL.iter().any(is_said) || is_unknown(words, error, SIGNED_REASONING)
            }
            OptionalField::ReasonedTurns => rejects_reasoning(words, error),
            OptionalField::UnreasonedTurns => CERTAINLY_LACKING.iter().any(is_said),
            _ => false,
        };
        if is_certain {
            return true;
        }
    }
    match field {
        OptionalField::Limit => return is_bad && asks_for_other_limit(words),
        OptionalField::UnreasonedTurns => return is_bad && asks_for_reasoning(words),
        OptionalField::JsonSchemas => return is_bad && rejects_json_schemas(words, error),
        _ => {}
    }
    let Some(row) = ROWS.iter().find(|row| row.field == field) else {
        return false;
    };
    // A server that does without an earlier response obeys the field.
    if field == OptionalField::Store && OBEYED.iter().any(|phrase| plain.contains(phrase)) {
        return false;
    }
    let named_field = error.field.to_lowercase();
    has_status(row.statuses)
        && (row.phrases.iter().any(is_said)
            || (field == OptionalField::Effort && says_always_thinks(words))
            || (field == OptionalField::Form && lacks_form_feature(words))
            || row.names.iter().any(|name| has_name(words, name))
            || is_in_code(error, row)
            || row
                .words
                .iter()
                .any(|word| names_field(words, &named_field, word)))
}

/// Whether the code of an error is made of a field's name and of words that reject it, such as `response_format_not_supported`.
fn is_in_code(error: &ServerError, row: &RejectionRow) -> bool {
    let code = error.code.to_lowercase();
    let named = code.split_whitespace().filter_map(|code| {
        let mut before = CODE_BEGINNINGS.iter();
        let mut after = CODE_ENDS.iter();
        let rest = before.find_map(|begin| code.strip_prefix(begin));
        rest.or_else(|| after.find_map(|end| code.strip_suffix(end)))
    });
    let mut named = named.into_iter();
    named.any(|named| row.names.contains(&named) || row.words.contains(&named))
}

/// Whether an error says that the model cannot do without reasoning.
fn says_always_thinks(words: &str) -> bool {
    let is_of_turns = OF_TURNS.iter().any(|name| has_name(words, name))
        || PATHS_TO_TURNS.iter().any(|path| words.contains(path));
    // `requires reasoning_content` is about a turn, too.
    !is_of_turns && ALWAYS_THINKS.iter().any(|phrase| has_name(words, phrase))
}

/// Whether an error says that the model lacks the form as a feature.
fn lacks_form_feature(words: &str) -> bool {
    let is_lacking = LACKS_FEATURE.iter().any(|phrase| words.contains(phrase));
    is_lacking && FORM_FEATURES.iter().any(|name| has_name(words, name))
}

/// Whether an error wants the other name of the limit. One that only finds the number too large does not.
fn asks_for_other_limit(words: &str) -> bool {
    has_name(words, NEW_LIMIT) && (says_unknown(words) || has_name(words, OLD_LIMIT))
}

/// What is before the name of a field that a server does not take.
const UNKNOWN_BEFORE: &[&str] = &[
    "unsupported parameter",
    "unknown parameter",
    "unrecognized parameter",
    "unexpected parameter",
    "unsupported field",
    "unknown field",
    "unknown name",
    "request argument supplied",
    "unsupported argument",
    "not support parameter",
    "not support the parameter",
    "not support",
    "n't support",
];

/// What is after the name of such a field.
const UNKNOWN_AFTER: &[&str] = &[
    "is not supported",
    "not supported",
    "is unsupported",
    "is not permitted",
    "is not allowed",
    "is not one of the supported",
    "extra inputs are not permitted",
];

/// Whether an error rejects the limit of tokens as a field. One that names it next to another field does not.
pub(super) fn rejects_limit(words: &str, error: &ServerError) -> bool {
    let mut names = limit::NAMES.iter();
    names.any(|name| is_unknown(words, error, name))
}

/// Whether an error does not take the reasoning in a turn of the model. The shorter name may also be that of an effort.
fn rejects_reasoning(words: &str, error: &ServerError) -> bool {
    let is_on_path = PATHS_TO_TURNS.iter().any(|path| words.contains(path));
    is_unknown(words, error, REASONING) || (is_on_path && is_unknown(words, error, PLAIN_REASONING))
}

/// Whether an error does not take the field for JSON Schema as such. An error about a schema has the field on its path.
fn rejects_json_schemas(words: &str, error: &ServerError) -> bool {
    let field = error.field.to_lowercase();
    let last = field.rsplit(|char: char| !is_of_name(char)).next();
    JSON_SCHEMAS
        .iter()
        .any(|name| is_called_unknown(words, name) || (last == Some(name) && says_unknown(words)))
}

/// Whether an error is about the field with this name, or says next to the name that the server does not take it.
fn is_unknown(words: &str, error: &ServerError, name: &str) -> bool {
    let field = error.field.to_lowercase();
    let mut components = field.split(|char: char| !is_of_name(char));
    let is_field = components.any(|component| component == name);
    (is_field && says_unknown(words)) || is_called_unknown(words, name)
}

fn says_unknown(words: &str) -> bool {
    UNKNOWN_FIELD.iter().any(|phrase| words.contains(phrase))
}

/// Whether an error says next to the name of a field that the server does not take it.
fn is_called_unknown(words: &str, name: &str) -> bool {
    occurrences(words, name).any(|(before, after)| {
        let is_sign = |char: char| is_quote(char) || matches!(char, ' ' | ':' | '(');
        let is_of_path = |char: char| is_of_name(char) || matches!(char, '.' | '[' | ']');
        let before = match before.strip_suffix('.') {
            Some(path) => path.trim_end_matches(is_of_path),
            None => before,
        };
        let before = before.trim_end_matches(is_sign);
        let after = after.trim_start_matches(is_sign);
        UNKNOWN_BEFORE.iter().any(|phrase| before.ends_with(phrase))
            || UNKNOWN_AFTER.iter().any(|phrase| after.starts_with(phrase))
    })
}

/// Whether an error finds a turn of the model without its reasoning.
fn asks_for_reasoning(words: &str) -> bool {
    has_name(words, REASONING) && LACKING.iter().any(|phrase| words.contains(phrase))
}

/// Whether an error names a field with this name, which is also a word.
fn names_field(words: &str, field: &str, name: &str) -> bool {
    let mut components = field.split(|char: char| !is_of_name(char));
    if components.any(|component| component == name) {
        return true;
    }
    occurrences(words, name).any(|(before, after)| {
        let is_quoted =
            before.ends_with(is_quote) && after.starts_with(|char| is_quote(char) || char == '\\');
        let is_on_path = before.ends_with('.') || after.starts_with('[') || goes_on(after);
        let is_first = before.is_empty() || before.ends_with(": ");
        let last_word = before.split_whitespace().next_back().unwrap_or_default();
        let next_word = after
            .split(|char: char| !is_of_name(char))
            .nth(1)
            .unwrap_or_default();
        let is_beside_noun = FIELD_NOUNS.contains(&last_word)
            || (after.starts_with(' ') && FIELD_NOUNS.contains(&next_word));
        let is_listed = last_word
            .strip_suffix(':')
            .is_some_and(|noun| BEFORE_COLON.contains(&noun));
        is_quoted
            || is_on_path
            || is_beside_noun
            || is_listed
            || after.starts_with(UNLISTED)
            || (is_first && after.starts_with(':'))
    })
}

/// Whether a path goes on after a name.
fn goes_on(after: &str) -> bool {
    let rest = after.strip_prefix('.');
    rest.is_some_and(|rest| rest.starts_with(char::is_alphanumeric))
}

fn is_quote(char: char) -> bool {
    "'\"`“”‘’«»".contains(char)
}

#[cfg(test)]
mod tests {
    use super::super::judging::{ErrorClass, judge};
    use super::super::reading::tests::read;
    use super::*;
    use crate::provider::request::Request;
    use crate::text::table::rows;

    fn asking_for_all() -> Request {
        Request {
            optional_fields: ALL.to_vec(),
            ..Request::default()
        }
    }

    const ALL: &[OptionalField] = &[
        OptionalField::Effort,
        OptionalField::Store,
        OptionalField::Cache,
        OptionalField::Usage,
        OptionalField::Encrypted,
        OptionalField::ToolChoice,
        OptionalField::Limit,
        OptionalField::System,
        OptionalField::Form,
        OptionalField::JsonSchemas,
        OptionalField::SealedReasoning,
        OptionalField::ReasonedTurns,
        OptionalField::UnreasonedTurns,
    ];

    #[test]
    fn rejected_fields_are_recognized_in_the_words_of_each_server() {
        // What is rejected, the server, the status and the body.
        let table = r##"
            Store | OpenAI | 400 | {"error":{"message":"Unknown parameter: 'store'.","param":"store"}}
            Store | FastAPI | 422 | {"detail":[{"type":"extra_forbidden","loc":["body","store"],"msg":"Extra inputs are not permitted"}]}
            Store | Azure | 400 | {"error":{"message":"Unrecognized request argument supplied: store"}}
            Store | Fireworks | 400 | body.store: property 'body.store' is unsupported
            Store | Go | 400 | json: unknown field "store"
            Cache | Vertex | 400 | cache_control: Extra inputs are not permitted
            Cache | LiteLLM | 400 | {"error":{"message":"{\"error\":{\"message\":\"cache_control: Extra inputs are not permitted\"}}"}}
            Cache | Bedrock | 400 | {"message":"cache_control: Extra inputs are not permitted"}
            Usage | Databricks | 400 | {"error_code":"BAD_REQUEST","message":"Bad request: json: unknown field \"stream_options\""}
            Usage | Azure | 400 | Unrecognized request argument supplied: stream_options. Please contact us through an Azure support request
            Usage | Azure | 400 | Unknown parameter: 'stream_options'.
            Usage | Mistral | 422 | {"message":{"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}}
            Encrypted | OpenAI | 400 | {"error":{"message":"Encrypted content is not supported with this model.","param":"include"}}
            Encrypted | Azure | 400 | {"error":{"message":"Unknown parameter: 'include'."}}
            Encrypted | FastAPI | 422 | {"detail":[{"loc":["body","include",0],"msg":"Input should be 'file_search_call.results'"}]}
            Limit | OpenAI | 400 | {"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens","code":"unsupported_parameter"}}
            Limit | Copilot | 400 | {"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","code":"invalid_request_body"}}
            Limit | vLLM | 400 | {"object":"error","message":"[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'msg': 'Extra inputs are not permitted', 'input': 8192}]","code":400}
            Limit | Mistral | 422 | {"message":{"detail":[{"loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted"}]}}
            ToolChoice | vLLM | 400 | Only 'auto' tool_choice is supported in response API with Harmony
            ToolChoice | Bedrock | 400 | {"message":"tool_choice.type: Input should be 'auto', 'any' or 'tool'"}
            ToolChoice | FastAPI | 422 | {"detail":[{"loc":["body","tool_choice"],"msg":"Extra inputs are not permitted"}]}
            ToolChoice | Vertex | 400 | Invalid JSON payload received. Unknown name "functionCallingConfig" at 'tool_config': Cannot find field.
            System | vLLM | 400 | {"object":"error","message":"System role not supported","type":"BadRequestError","param":null,"code":400}
            System | llama.cpp | 500 | {"error":{"code":500,"message":"System role not supported at row 1, column 58","type":"server_error"}}
            System | SGLang | 500 | jinja2.exceptions.TemplateError: System role not supported
            System | TGI | 422 | {"error":"Template error: invalid operation: System role not supported (in <string>:1)","error_type":"template_error"}
            System | vLLM | 400 | Conversation roles must alternate user/assistant/user/assistant/...
            System | llama.cpp | 500 | Only user and assistant roles are supported! at row 30
            System | LM Studio | 400 | {"error":"Error rendering prompt with jinja template: \"Only user, assistant and tool roles are supported, got system.\""}
            System | Gemini | 400 | [{"error":{"code":400,"message":"Developer instruction is not enabled for models/gemma-3-27b-it","status":"INVALID_ARGUMENT"}}]
            System | Bedrock | 400 | {"message":"This model doesn't support system messages. Try again without a system message or use a model that supports system messages."}
            System | OpenAI | 400 | {"error":{"message":"Unsupported value: 'messages[0].role' does not support 'system' with this model.","param":"messages[0].role","code":"unsupported_value"}}
            System | Gemini | 400 | {"error":{"message":"Invalid JSON payload received. Unknown name \"systemInstruction\": Cannot find field."}}
            Effort | Ollama | 400 | {"error":{"message":"\"llama3.1:8b\" does not support thinking","type":"invalid_request_error"}}
            Effort | Ollama | 400 | think value "medium" is not supported for this model
            Effort | Gemini | 400 | {"error":{"code":400,"message":"Thinking is not enabled for models/gemini-2.0-flash"}}
            Effort | Gemini | 400 | Thinking level is not supported for this model.
            Effort | Vertex | 400 | Unable to submit request because thinking is not supported by this model.
            Effort | OpenAI | 400 | {"error":{"message":"Unsupported parameter: 'reasoning.effort' is not supported with this model.","param":"reasoning.effort"}}
            Effort | Azure | 400 | Unrecognized request argument supplied: reasoning_effort
            Effort | xAI | 400 | Model grok-4-0709 does not support parameter reasoningEffort.
            Effort | Groq | 400 | `reasoning_effort` is not supported with this model
            Effort | Anthropic | 400 | This model does not support the effort parameter.
            Effort | Anthropic | 400 | {"type":"error","error":{"type":"invalid_request_error","message":"This model does not support effort level 'max'. Supported levels: high, low, medium."}}
            Effort | Anthropic | 400 | This model does not support effort
            Effort | a gateway | 400 | effort is not supported by this model
            Effort | a gateway | 400 | {"error":{"message":"reasoning is not one of the supported parameters"}}
            Effort | a gateway | 400 | The parameter 'thinking' is not supported by this model route. Remove the field or choose a native Anthropic-only route.
            Store | a gateway | 400 | store is not one of the supported parameters
            Limit | a gateway | 400 | max_completion_tokens is not one of the supported parameters
            Effort | Fireworks | 422 | body.reasoning: property 'body.reasoning' is unsupported
            Effort | OpenRouter | 400 | {"error":{"message":"Reasoning is mandatory for this endpoint and cannot be disabled.","code":400,"metadata":{"provider_name":null}}}
            Effort | OpenRouter, through a router | 400 | {"error":{"message":"Error from provider(openrouter,x: 400): {\"error\":{\"message\":\"Reasoning is mandatory for this endpoint and cannot be disabled.\",\"code\":400}}","type":"api_error","code":"provider_response_error"}}
            Effort | Gemini | 400 | {"error":{"code":400,"message":"Budget 0 is invalid. This model only works in thinking mode.","status":"INVALID_ARGUMENT"}}
            Effort | a gateway | 400 | Thinking cannot be disabled for this model
            Effort | a gateway | 422 | Thinking mode can't be disabled: thinking must be enabled
            Effort | a gateway | 400 | This model requires reasoning.
            Effort | a gateway | 400 | Disabling reasoning is not supported
            Effort | Novita | 400 | {"code":400,"reason":"INVALID_REQUEST_BODY","message":"model: x does not support feature: reasoning","metadata":{}}
            Form | Novita | 400 | {"code":400,"reason":"INVALID_REQUEST_BODY","message":"model: deepseek/deepseek-r1-distill-llama-70b does not support feature: structured-outputs","metadata":{}}
            Form | a gateway | 400 | structured_outputs is not supported for this model
            Form | a gateway | 400 | model x does not support feature: json-mode
            Form | vLLM | 400 | Guided decoding is not supported on this backend
            Form | a gateway | 422 | grammar is not supported
            Form | Groq | 400 | This model does not support response format `json_schema`.
            Form | a code alone | 400 | {"error":{"message":"unsupported: constrained decoding is not available","type":"invalid_request_error","param":null,"code":"response_format_not_supported"}}
            Form | a code alone | 422 | {"error":{"message":"no","code":"unsupported_json_schema"}}
            Usage | a code alone | 400 | {"error":{"message":"no","code":"stream_options_not_allowed"}}
            Store | a code alone | 400 | {"error":{"message":"no","code":"STORE_NOT_SUPPORTED"}}
            Effort | a code alone | 400 | {"error":{"message":"no","code":"reasoning_effort_unsupported"}}
            ToolChoice | a code alone | 400 | {"error":{"message":"no","code":"unsupported_tool_choice"}}
            Cache | a code alone | 400 | {"error":{"message":"no","code":"cache_control_not_permitted"}}
            Form | the second of two codes | 400 | {"error":{"message":"no","code":"unsupported_value","type":"response_format_not_supported"}}
            System | a code alone | 400 | {"error":{"message":"no","code":"system_not_supported"}}
            Form | DeepSeek | 400 | This response_format type is unavailable now
            Form | OpenAI | 400 | Invalid schema for response_format 'answer': no
            Form | Gemini | 400 | A schema in GenerationConfig in the request exceeds the maximum allowed nesting depth.
            Form | llama.cpp | 400 | Failed to parse grammar
            Form | Anthropic | 400 | {"type":"error","error":{"type":"invalid_request_error","message":"The compiled grammar is too large, which would cause performance issues. Simplify your tool schemas or reduce the number of strict tools."}}
            Form | Bedrock | 400 | {"message":"Grammar compilation timed out."}
            Form | Anthropic | 400 | Schemas contains too many parameters with union types (49 parameters with type arrays or anyOf) which exceeds the limit: 16
            Form | Anthropic | 400 | Schemas contains too many optional parameters (27), which would make grammar compilation inefficient.
            Form | Gemini | 400 | {"error":{"code":400,"message":"The specified schema produces a constraint that has too many states for serving. Typical causes of this error are schemas with lots of text","status":"INVALID_ARGUMENT"}}
            SealedReasoning | OpenAI | 400 | {"error":{"message":"The encrypted content for item rs_1 could not be verified.","code":"invalid_encrypted_content"}}
            SealedReasoning | OpenAI | 404 | Item with id 'rs_1' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true
            SealedReasoning | OpenAI | 400 | Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.
            SealedReasoning | Azure | 400 | The requested item was created under a different Azure OpenAI resource.
            SealedReasoning | Anthropic | 400 | messages.1.content.0: Invalid `signature` in `thinking` block
            SealedReasoning | Gemini | 400 | {"error":{"code":400,"message":"Corrupted thought signature.","status":"INVALID_ARGUMENT"}}
            UnreasonedTurns | DeepSeek | 400 | {"error":{"message":"The `reasoning_content` in the thinking mode must be passed back to the API.","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}
            UnreasonedTurns | DeepSeek | 400 | {"error":{"message":"Missing `reasoning_content` field in the assistant message at message index 1","type":"invalid_request_error"}}
            UnreasonedTurns | OpenCode | 400 | Error from provider: Upstream request failed: [invalid_request_error] The reasoning_content in the thinking mode must be passed back to the API.
            UnreasonedTurns | Moonshot | 400 | {"error":{"message":"thinking is enabled but reasoning_content is missing in assistant tool call message at index 2","type":"invalid_request_error"}}
            UnreasonedTurns | SiliconFlow | 400 | {"code":20015,"message":"thinking is enabled but reasoning_content is missing in assistant tool call message at index 32","data":null}
            UnreasonedTurns | FastAPI | 422 | {"detail":[{"type":"missing","loc":["body","messages",1,"reasoning_content"],"msg":"Field required"}]}
            UnreasonedTurns | new-api | 500 | {"error":{"message":"The `reasoning_content` in the thinking mode must be passed back to the API.","type":"upstream_error"}}
            UnreasonedTurns | new-api | 502 | thinking is enabled but reasoning_content is missing in assistant tool call message at index 2
            UnreasonedTurns | a gateway in its stream | - | Missing `reasoning_content` field in the assistant message at message index 1
            SealedReasoning | new-api | 500 | messages.1.content.0: Invalid `signature` in `thinking` block
            SealedReasoning | new-api | 502 | {"error":{"message":"Corrupted thought signature.","type":"upstream_error"}}
            SealedReasoning | OpenAI | 400 | Unknown parameter: 'messages[2].thinking_blocks'.
            SealedReasoning | Anthropic | 400 | messages.2.thinking_blocks: Extra inputs are not permitted
            SealedReasoning | Groq | 400 | 'messages.2' : property 'thinking_blocks' is unsupported
            SealedReasoning | Groq behind a gateway | 502 | 'messages.2' : property 'thinking_blocks' is unsupported
            SealedReasoning | Mistral | 422 | {"detail":[{"type":"extra_forbidden","loc":["body","messages",2,"assistant","thinking_blocks"],"msg":"Extra inputs are not permitted"}]}
            SealedReasoning | new-api | 503 | The encrypted content for item rs_1 could not be verified.
            JsonSchemas | Gemini | 400 | {"error":{"message":"Invalid JSON payload received. Unknown name \"parametersJsonSchema\" at 'tools[0].function_declarations[0]': Cannot find field.","status":"INVALID_ARGUMENT"}}
            JsonSchemas | Gemini | 400 | Invalid JSON payload received. Unknown name "parameters_json_schema" at 'tools[0].function_declarations[0]': Cannot find field.
            JsonSchemas | FastAPI | 422 | {"detail":[{"type":"extra_forbidden","loc":["body","tools",0,"functionDeclarations",0,"parametersJsonSchema"],"msg":"Extra inputs are not permitted"}]}
            JsonSchemas | Go | 400 | json: unknown field "parametersJsonSchema"
            ReasonedTurns | Groq | 400 | {"error":{"message":"'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]","type":"invalid_request_error"}}
            ReasonedTurns | Groq | 400 | {"error":{"message":"'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning' is unsupported, did you mean 'role'?)]","type":"invalid_request_error"}}
            ReasonedTurns | Groq | 400 | {"error":{"message":"`messages[3].reasoning`: reasoning is not supported with this model","type":"invalid_request_error"}}
            ReasonedTurns | Groq behind a gateway | 502 | GroqException - 'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]
            ReasonedTurns | Mistral | 422 | {"detail":[{"type":"extra_forbidden","loc":["body","messages",1,"assistant","reasoning_content"],"msg":"Extra inputs are not permitted"}]}
            ReasonedTurns | OpenAI | 400 | Unknown parameter: 'messages[2].reasoning_content'.
            ReasonedTurns | Cerebras | 400 | messages.1.reasoning_content: Extra inputs are not permitted
            ReasonedTurns | a server in Go | 400 | json: unknown field "reasoning_content"
            Form | vLLM | 400 | Grammar error: Unimplemented keys: ["uniqueItems"]
            Form | FastAPI | 422 | {"detail":[{"loc":["body","response_format"],"msg":"Extra inputs are not permitted"}]}
        "##;
        let all = asking_for_all();
        for [refused, server, status, body] in rows(table) {
            let error = read(body).expect(body);
            let found = judge(&error, status.parse().ok(), &all);
            assert_eq!(
                format!("{found:?}"),
                format!("Rejects({refused})"),
                "{server}: {body}"
            );
            // What was not sent cannot be rejected.
            let found = judge(&error, status.parse().ok(), &Request::default());
            assert!(!matches!(found, ErrorClass::Rejects(_)), "{server}: {body}");
        }
    }

    #[test]
    fn an_ordinary_word_or_a_part_of_a_name_is_not_taken_for_a_rejected_field() {
        let table = r##"
            400 | there is nothing in store for you
            400 | Previous response cannot be used because 'store' is false
            400 | Items are not persisted when `store` is set to false. Try again with `store` set to true
            400 | the vector store is empty
            400 | {"error":{"message":"Unknown parameter: 'vector_store'."}}
            400 | please include a question
            400 | these instructions make no sense to the system
            500 | the system is down
            500 | stream_options is not supported
            400 | remove reasoning_content from the messages
            500 | reasoning_content is missing
            500 | this tool requires reasoning_content in each message, and one is missing
            500 | a signature is not valid
            400 | Invalid JSON payload received. Unknown name "const" at 'tools[0].function_declarations[1].parameters_json_schema': Cannot find field.
            400 | parametersJsonSchema is not a valid schema
            502 | Item with id 'rs_1' not found
            429 | messages.1.content.0: Invalid `signature` in `thinking` block
            400 | with more effort and better reasoning. I think so
            400 | this tool requires reasoning_content in each message
            400 | the reasoning is good, and the thinking is enabled
            400 | this model will not support efforts to break it
            400 | with little effort. Level 3 is not supported
            400 | temperature is not one of the supported parameters for reasoning
            400 | reasoning is one of the supported parameters
            400 | messages.1.content.0.thinking: Field required
            400 | structured data is not supported, and neither is the grammar school
            400 | model: x does not support feature: fine-tuning
            500 | Reasoning is mandatory for this endpoint and cannot be disabled.
            400 | temperature is not supported by grok-4-fast-reasoning
            400 | max_tokens is too large: 9000. This model supports at most 4096 completion tokens.
            400 | max_completion_tokens must be at least 16
            400 | the text has no schema, and no grammar either
            400 | {"error":{"message":"no","param":"text.verbosity"}}
            400 | {"error":{"message":"no","param":"stored"}}
        "##;
        let all = asking_for_all();
        for [status, body] in rows(table) {
            let error = read(body).expect(body);
            let found = judge(&error, status.parse().ok(), &all);
            assert!(
                !matches!(found, ErrorClass::Rejects(_)),
                "{body}: {found:?}"
            );
        }
    }
}
