//! The words, codes and types by which the errors of servers are recognized, in lower case (pure).

/// The words for a prompt that is too long, besides those of `prompt_length.rs`: of OpenAI, llama.cpp, vLLM, Anthropic, Gemini,
/// Vertex, Ollama, OpenRouter, Groq, xAI, LM Studio, Perplexity, SGLang, TGI, Together, Moonshot, Zhipu, DashScope, GitHub,
/// Copilot, Poolside, Cohere, Volcengine, SambaNova, vMLX and DwarfStar.
pub const TOO_LONG: &[&str] = &[
    "maximum context length",
    "maximum prompt length",
    "maximum model length",
    "context length exceeded",
    "greater than the context length",
    "longer than the model's context length",
    "context length of only",
    "context length is only",
    "does not fit in context length",
    "configured context size",
    "context size has been exceeded",
    "maximum allowed input length",
    "prompt token count of",
    "exceed max message tokens",
    "too many tokens: ",
    "reduce the length of the messages",
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
    "max input token limit",
    "maximum allowed token size",
    "but max context is",
    "but model only supports",
    "contextwindowexceeded",
    "reduce your message size",
    "request too large for",
    "maximum supported sequence length",
    "tokens must be reduced",
    // llama.cpp.
    "input prompt is too big compared to kv size",
    // Codes.
    "context_length_exceeded",
    "exceed_context_size_error",
    "context_exceeded",
    "prompt_too_long",
    "too_many_prompt_tokens",
    "max_prompt_tokens_exceeded",
    "tokens_limit_reached",
    "request_too_large",
];

/// What llama.cpp says where the prompt or the answer has filled the context.
pub const FULL_CONTEXT: &str = "context shift is disabled";

/// Moonshot's words for the bytes of all messages.
pub const MESSAGE_SIZE: &str = "total message size";

/// The words for a context, and what an error says of a prompt that does not fit it. Other errors praise the context of a model.
pub const CONTEXT: &str = "context window";
pub const EXCEEDS_CONTEXT: &[&str] = &[
    "exceed",
    "too long",
    "too large",
    "too many",
    "larger than",
    "longer than",
    "greater than",
    "more than",
    "out of room",
    "not fit",
    "overflow",
    "reached",
    "is full",
    "beyond",
    "outside",
    "over the",
    "above",
    "surpass",
    "too small",
    "insufficient",
    "not enough",
    "limit",
    "tokens but",
    " > ",
];

/// The words for something that is not there.
pub const MISSING: &[&str] = &["not found", "not exist", "not_found_error"];

/// The words for a path that is not there, which may have “model” in it.
pub const PATH: &[&str] = &["route", "post", "url", "path", "endpoint"];

/// The words for a model that does not exist, including those of Zhipu and Groq.
pub const MODEL: &[&str] = &[
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

/// The words for a model that is being loaded, of llama.cpp, Hugging Face and others. Ollama has the last as an error 500.
pub const LOADING: &[&str] = &[
    "loading model",
    "loading the model",
    "model loading",
    "is loading",
    "currently loading",
    "still loading",
    "being loaded",
];
pub const LOADING_IN_OLLAMA: &str = "llm server loading model";

/// The words for a model that was not loaded, and will not be.
pub const NOT_LOADED: &[&str] = &["error loading", "failed", "unable"];

/// The words for a model that cannot chat, of Ollama, vLLM, llama.cpp and OpenAI.
pub const CANNOT_CHAT: &[&str] = &[
    "does not support chat",
    "do not support chat",
    "not a chat model",
    "is an embedding model",
];

/// The words for a list that is too long, of OpenAI, Azure, Copilot, Groq and Gemini.
pub const TOO_MANY: &[&str] = &[
    "array too long",
    "array_above_max_length",
    "tools per request",
    "maximum number of items",
    TOO_MANY_DECLARATIONS,
];

/// The words for too many tools that need no other word: of xAI, Copilot and gateways.
pub const TOO_MANY_TOOLS: &[&str] = &[
    "too many tools",
    "too many functions",
    "tools limit",
    "number of tools",
    "tool_count_limit",
];

/// The words for a limit, where a number of tools is in the same error.
pub const AT_MOST: &[&str] = &["up to", "at most", "more than", "maximum", "limit"];

/// The words for a part of the schema of a tool that a server does not take.
pub const SCHEMA_PARTS: &[&str] = &[
    "tool schema",
    "tool_schema",
    "schema keyword",
    "unsupported keyword",
    "unsupported_keyword",
    "parameter type",
    STRICT_RULE,
];

/// OpenAI's words for a schema that breaks its strict rules, which are those of tools and of the answer.
pub const STRICT_RULE: &str = "including every key in properties";

/// Gemini's, which name the first tool, although they are about all of them.
pub const TOO_MANY_DECLARATIONS: &str = "function declarations can be specified";

/// The words for tools whose schemas are too much together, of Anthropic and Gemini, where they do not name them.
pub const TOO_COMPLEX: &[&str] = &[
    "compiled grammar is too large",
    "schemas contains too many",
    "too many states for serving",
];

/// The words for a key that is not accepted.
pub const KEY: &[&str] = &[
    "api key not valid",
    "incorrect api key",
    "invalid api key",
    "api_key_invalid",
    "authentication_error",
];

/// The words for an account that has used up its quota or its money, or whose plan has none of this: of OpenAI, Gemini,
/// DeepSeek, Zhipu, OpenRouter, Anthropic, xAI, Moonshot, DashScope, Volcengine, SiliconFlow and Ollama.
pub const SPENT: &[&str] = &[
    "exceeded your current quota",
    "check your plan and billing details",
    "insufficient balance",
    "余额不足",
    "insufficient credits",
    "key limit exceeded",
    "free-models-per-day",
    "credit balance is too low",
    "api usage limits",
    "extra usage is required",
    "used all available credits",
    "monthly spending limit",
    "usage limit reached for",
    "usage limit for this billing cycle",
    "hourly usage limit",
    "session usage limit",
    "daily usage limit",
    "weekly usage limit",
    "monthly usage limit",
    "subscription quota",
    "exhausted your capacity",
    "budget has been exceeded",
    "exceededbudget",
    "insufficient funds",
    "not enough credits",
    "out of credits",
    "quota is not enough",
    "model requires a subscription",
    "upgrade for access",
    "no active subscription",
    "subscription has expired",
    "subscription payment",
    "payment is past due",
    "update your payment method",
    "overdue balance",
    "balance is insufficient",
    "额度不足",
    "额度已用尽",
    // Codes of OpenAI, Moonshot, DashScope and Volcengine, and a type and codes of Anthropic's.
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "subscription_sharing_usage_limit_exceeded",
    "usage_limit_reached",
    "exceeded_current_quota_error",
    "arrearage",
    "billing_error",
    "enforced_spend_limit_reached",
    "contract_spend_limit_reached",
    "project_spend_limit_reached",
    "credit_limit_reached",
    "credits_exhausted",
    "accountoverdueerror",
];

/// The codes of LiteLLM, New API and other gateways for the same. As parts of other codes they may be about a minute, as in
/// `request_quota_exceeded` of Cerebras.
pub const SPENT_CODES: &[&str] = &[
    "budget_exceeded",
    "insufficient_user_quota",
    "insufficient_balance",
    "insufficient_credits",
    "quota_exceeded",
];

/// A message that says no more than this is about an account, too, unless its code is about a rate. As a part of one, it may be
/// about a minute.
pub const SPENT_ALONE: &[&str] = &["quota exceeded", "budget exceeded"];

/// Gemini's words for a limit that a plan sets to nothing: `limit: 0, model: gemini-…`. It asks to wait anyway.
pub const NO_QUOTA: &str = "limit: 0, model:";

/// The words for no quota without a model. Of a limit that passes, other servers say that much, too. The number must not go on.
pub const NO_QUOTA_NOW: &str = "limit: 0";

/// What servers call the calling of tools in their errors, without backticks and double quotes.
pub const TOOLS: &[&str] = &[
    "tools",
    "'tools'",
    "tool use",
    "tool call",
    "tool calls",
    "tool calling",
    "function call",
    "function calls",
    "function calling",
    "function-call",
    "function-calling",
    "function_calling",
    "tool-calling",
    "tool_calling",
];

/// What is after one of [`TOOLS`] if they are rejected, and what is before it.
pub const REFUSED_AFTER: &[&str] = &[
    " is not supported",
    " are not supported",
    " is not enabled",
    " not support",
];
pub const REFUSED_BEFORE: &[&str] = &[
    "not support ",
    "not support feature: ",
    "doesn't support ",
    // OpenRouter's and Xinference's.
    "no endpoints found that support ",
    "] support ",
];

/// The words of vLLM and llama.cpp for an option that is missing where they were started.
pub const SWITCHED_OFF: &[&str] = &["--enable-auto-tool-choice", "requires --jinja"];

/// The words for an answer that cannot be streamed, of OpenAI, Azure and Bedrock.
pub const STREAM: &[&str] = &[
    "verified to stream",
    "'stream' does not support true",
    "not support streaming",
    "streaming is not supported",
    "in streaming mode",
];

/// The words for an answer that can only be streamed, of Anthropic, DashScope, OpenAI and others.
pub const NO_STREAM: &[&str] = &[
    "streaming is required",
    "only support stream mode",
    "only supports stream mode",
    "only supports streaming",
    "only supported in streaming mode",
    "stream must be set to true",
    "non-streaming is not supported",
];

/// The words for a model that answers through the Responses API alone, of OpenAI, Azure and Copilot.
pub const RESPONSES: &[&str] = &[
    "only supported in v1/responses",
    "mean v1/responses",
    "chatcompletion operation does not work with the specified model",
    "not accessible via the /chat/completions endpoint",
];

/// The words for a text or picture that is not answered, of xAI, OpenRouter, OpenAI, Azure, Anthropic, DeepSeek, Moonshot,
/// Zhipu, DashScope and MiniMax.
pub const CONTENT: &[&str] = &[
    "violates usage guidelines",
    "input was flagged",
    "flagged by moderation",
    "violation of provider terms of service",
    "result of our safety system",
    "violating our usage policy",
    "content management policy",
    "content filtering policy",
    "content exists risk",
    "considered high risk",
    "unsafe or sensitive content",
    "inappropriate content",
    // Codes.
    "content_policy_violation",
    "misalignment_policy_violation",
    "responsibleaipolicyviolation",
    "datainspectionfailed",
    "new_sensitive",
];

/// The words for a request without TLS where the server wants it, of servers in Go and of nginx.
pub const TLS: &[&str] = &[
    "client sent an http request to an https server",
    "the plain http request was sent to https port",
];

/// The words for a country or network that is not served, of OpenAI, Gemini, Anthropic and Groq.
pub const PLACE: &[&str] = &[
    "country, region, or territory not supported",
    "unsupported_country_region_territory",
    "user location is not supported",
    "not available in your region",
    "not available in your country",
    "check your network settings",
];

/// Anthropic's message for the same, with a status 403. After a method it is about that.
pub const PLACE_ALONE: &str = "request not allowed";

/// The methods of HTTP, which servers name with a path that they do not serve.
pub const METHODS: &[&str] = &["get", "post", "put", "patch", "delete", "method"];

/// The words for pictures that a model does not read, with statuses that would mean something else: of OpenRouter, Mistral,
/// Gemini, Bedrock and Novita.
pub const PICTURES: &[&str] = &[
    "that support image input",
    "multimodal is not enabled",
    "input modality is not enabled",
    "not support image",
    "not support feature: vision",
    "not support feature: image-input",
    "not support feature: image_input",
    "doesn't support the image",
    "image input is not",
    "image inputs are not",
    "not a multimodal model",
    "image_url is only supported by certain models",
];

/// The words for a model that this account may not use, of OpenAI, Groq and OpenRouter.
pub const ACCESS: &[&str] = &[
    "not allowed to sample from this model",
    "must be verified to use",
    "requires terms acceptance",
    "no endpoints found matching your data policy",
    "no allowed providers are available",
    // Codes.
    "model_permission_blocked",
    "model_terms_required",
];

/// Z.ai's code for a parameter that is wrong, and that it often does not name.
pub const WRONG_PARAMETER: &str = "1210";

/// The levels of effort that servers name in their errors.
pub const LEVELS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The words for an answer in which the model failed to keep the form, of Groq and llama.cpp.
pub const FAILED_FORM: &[&str] = &[
    "does not match the expected peg",
    "failed to generate json",
    "failed to validate json",
    "json_validate_failed",
];

/// The words and the code for a call that the model failed to write: Groq's. Another try may succeed.
pub const FAILED_CALL: &[&str] = &["tool call validation failed", "tool_use_failed"];

/// Gemini's words for a schema that it cannot take, among others. It says nothing more.
pub const INVALID_ARGUMENT: &str = "request contains an invalid argument.";

/// The words by which an error may be about an image or a PDF, whatever its status.
pub const ATTACHMENTS: &[&str] = &[
    "image",
    "images",
    "vision",
    "multimodal",
    "multi-modal",
    "mmproj",
    "pdf",
    "pdfs",
    "attachment",
    "attachments",
    "modality",
    "modalities",
];

/// Such words in Chinese, Japanese and Korean, which are not apart from others.
pub const JOINED_ATTACHMENTS: &[&str] = &[
    "图片",
    "图像",
    "视觉",
    "多模态",
    "附件",
    "圖片",
    "圖像",
    "視覺",
    "多模態",
    "画像",
    "マルチモーダル",
    "添付",
    "이미지",
    "멀티모달",
    "첨부",
];

/// What an error of the server that may pass says where it still rejects pictures.
pub const REFUSES_PICTURES: &[&str] = &[
    "not support",
    "n't support",
    "unsupported",
    "cannot ",
    "can't ",
    "unable to",
    "failed to",
    "invalid",
    "not enabled",
    "no image",
    "no vision",
    "no multimodal",
    "不支持",
    "不支援",
    "无法",
    "無法",
    "対応していません",
    "지원하지",
];

/// The words for parts of a message, by which a request that is rejected as bad may be so because of an image or a PDF.
pub const PARTS: &[&str] = &[
    "content",
    "contents",
    "part",
    "media",
    "mime",
    "base64",
    "file",
    "files",
    "document",
    "documents",
];

/// What is in the name of a field of the request that has the messages, or a part of them.
pub const CONTENT_FIELDS: &[&str] = &["content", "messages"];

/// What servers say of a message in parts that should be one text: those in Python and in Rust.
pub const NOT_A_STRING: &[&str] = &["a valid string", "expected a string"];

/// The words of errors that say no more than that a request is bad.
const EMPTY_WORDS: &[&str] = &[
    "a",
    "again",
    "an",
    "and",
    "api",
    "argument",
    "arguments",
    "bad",
    "badrequest",
    "badrequesterror",
    "by",
    "check",
    "client",
    "code",
    "contains",
    "could",
    "documentation",
    "entity",
    "error",
    "failed",
    "from",
    "gives",
    "has",
    "http",
    "input",
    "invalid",
    "invalidrequest",
    "invalidrequesterror",
    "is",
    "malformed",
    "no",
    "not",
    "or",
    "parameter",
    "parameters",
    "please",
    "process",
    "processed",
    "provider",
    "reason",
    "rejected",
    "request",
    "returned",
    "server",
    "something",
    "status",
    "the",
    "this",
    "try",
    "unknown",
    "unprocessable",
    "upstream",
    "validation",
    "was",
    "went",
    "with",
    "wrong",
    "your",
];

/// Whether a message, in any case, says no more than that a request is bad, perhaps with a status.
pub fn says_nothing(message: &str) -> bool {
    let message = message.to_lowercase();
    let mut words = message.split(|char: char| !char.is_alphanumeric());
    words.all(|word| EMPTY_WORDS.contains(&word) || word.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The types and codes that stand for a status where an error has none, as in a stream.
pub const STATUS_CODES: &[(u16, &[&str])] = &[
    (
        400,
        &[
            "invalid_request_error",
            "invalid_request",
            "bad_request",
            "bad_request_error",
            "badrequesterror",
            "invalid_argument",
        ],
    ),
    (
        500,
        &[
            "server_error",
            "internal_server_error",
            "internal_error",
            "internalservererror",
            "internal",
            "api_error",
        ],
    ),
    (
        503,
        &[
            "unavailable",
            "unavailable_error",
            "service_unavailable",
            "service_unavailable_error",
        ],
    ),
];

/// The types and codes of errors after which another try may succeed, because the client asked too often. They count where there
/// is no status.
pub const CLIENT_CODES: &[&str] = &[
    "rate_limit_error",
    "rate_limit_exceeded",
    "too_many_requests",
    "slow_down",
    "resource_exhausted",
];

/// What says in words that the client asked too often. Gateways pass it on as an error of their own.
pub const TOO_OFTEN: &[&str] = &["rate limit", "rate-limit", "ratelimit", "too many requests"];

/// The types and codes of errors of the server after which another try may succeed. They count where there is no status.
pub const TRANSIENT_CODES: &[&str] = &[
    "overloaded_error",
    "api_error",
    "server_error",
    "internal_server_error",
    "service_unavailable",
    "service_unavailable_error",
    "server_is_overloaded",
    "timeout_error",
    "unavailable",
    "internal",
    "deadline_exceeded",
];
