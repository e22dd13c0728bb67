//! Judges what a server's error means for the next request: one table, in order (pure).

use std::time::Duration;

use self::Clue::{Judged, Named, Statuses, Words};
use self::MeaningRow::{Finds, Means};
use super::limit::{self, PromptPart, RefusedLimit, refused_limit};
use super::prompt_length;
use super::reading::ServerError;
use super::rejected::{self, OUTPUT_CONFIG};
use super::rejected_tool::rejected_tool;
use super::words;
use crate::provider::request::{LimitOrigin, OptionalField, Request};
use crate::text::whole_name::{has_name, occurrences};

/// The statuses of errors after which another try may succeed.
pub const TRANSIENT_STATUSES: &[u16] = &[
    408, 409, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529,
];

/// Those of them that are about the client.
const CLIENT_STATUSES: &[u16] = &[408, 409, 429];

/// The longest wait that a server may ask for.
pub const MAX_WAIT: Duration = Duration::from_secs(60);

/// The meaning of an error for the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The prompt is longer than the model's context, or longer than what may be sent in a minute. A shorter one may be
    /// accepted.
    TooLong,
    /// The prompt and the limit of tokens that the user chose are too long together. A shorter prompt may be accepted, or this
    /// limit.
    TooLongWithLimit(u64),
    /// The same, where the prompt takes less than half of the context, so a lower limit helps more; the largest one that fits.
    LimitFillsContext(Option<u64>),
    /// The server rejects something that the request can do without.
    Rejects(OptionalField),
    /// The limit of tokens that q chose is too large. The server accepts this one.
    OwnLimitTooLarge(u64),
    /// The limit of tokens that the user chose is too large; the largest one that the server names.
    LimitTooLarge(Option<u64>),
    /// The server takes no limit of tokens, or none of this name.
    RejectsLimit,
    /// The server does not know the model.
    UnknownModel,
    /// The model is for something else, such as embedding.
    CannotChat,
    /// The server is loading the model, and will answer once it has.
    Loading,
    /// The server does not accept the key, or wants one.
    WrongKey,
    /// A firewall or a proxy has sent a page in the place of the API, which may not have seen the request at all.
    Intercepted,
    /// The key may not use this model, or nobody who may serves it.
    NoAccess,
    /// The provider does not answer a text or picture like this, whoever asks.
    RejectsContent,
    /// The server wants TLS, and the URL has none.
    WantsTls,
    /// The provider does not serve this country or network.
    RejectsPlace,
    /// The quota or the money of the account is used up, or its plan has none of this.
    Spent,
    /// The model cannot call tools.
    RejectsTools,
    /// The server can let a model call tools, but was not started with what this needs.
    ToolsSwitchedOff,
    /// The answer may come as a whole, but not as a stream.
    RejectsStream,
    /// The answer may come as a stream, but not as a whole.
    NeedsStream,
    /// The model answers through the Responses API, and not through the one that was asked.
    NeedsResponses,
    /// The signature of a call has not come back to the model, which something between q and the model must have dropped.
    LacksSignature,
    /// The server rejects the tool at this place of the request.
    RejectsTool(usize),
    /// The request is bad for a reason that is not known, and has images or files that may be it.
    MayRejectAttachments,
    /// The server rejects the schema of a tool, and does not say of which.
    RejectsToolSchema,
    /// The request has more tools than the server takes.
    TooManyTools,
    /// The request has more bytes than the server accepts.
    TooLarge,
    /// The same request may succeed later.
    Transient,
    /// Nothing that q knows, so no other request is tried.
    Other,
}

impl ErrorClass {
    /// Whether the same request may succeed later. `status` is that of the response. What a busy server says about the model or the
    /// key may be wrong.
    pub fn may_pass(self, status: Option<u16>) -> bool {
        match self {
            ErrorClass::Transient => true,
            ErrorClass::UnknownModel | ErrorClass::WrongKey | ErrorClass::RejectsTools => {
                status.is_some_and(|status| TRANSIENT_STATUSES.contains(&status))
            }
            _ => false,
        }
    }
}

/// A sign by which an error of some class is recognized.
#[derive(Clone, Copy)]
enum Clue {
    /// One of these words or codes, whatever the status.
    Words(&'static [&'static str]),
    /// One of these statuses, whatever the words.
    Statuses(&'static [u16]),
    /// The server rejects this by its name.
    Named(OptionalField),
    /// A rule of its own, where it takes more than one of some words or statuses, such as both together.
    Judged(fn(&Case) -> bool),
}

/// A row of the table.
#[derive(Clone, Copy)]
enum MeaningRow {
    /// An error with this clue has this meaning.
    Means(ErrorClass, Clue),
    /// A rule that finds the meaning together with a place or a number in the error.
    Finds(fn(&Case) -> Option<ErrorClass>),
}

const fn by_name(field: OptionalField) -> MeaningRow {
    Means(ErrorClass::Rejects(field), Named(field))
}

/// Each meaning and how it is recognized. The first that fits counts, because an error may have the words for several.
const ROWS: &[MeaningRow] = &[
    Means(ErrorClass::WantsTls, Words(words::TLS)),
    // It may name a tool that is right.
    Means(
        ErrorClass::LacksSignature,
        Judged(|case| case.lacks_signature()),
    ),
    // It may name a tool and its schema.
    Means(ErrorClass::Transient, Words(words::FAILED_CALL)),
    // It names the first tool, and is about all.
    by_name(OptionalField::JsonSchemas),
    Finds(|case| case.rejected_tool()),
    Finds(|case| case.too_large_limit()),
    Means(ErrorClass::TooLong, Judged(|case| case.is_too_long())),
    Means(ErrorClass::NeedsStream, Judged(|case| case.needs_stream())),
    Means(ErrorClass::RejectsStream, Words(words::STREAM)),
    Means(ErrorClass::ToolsSwitchedOff, Words(words::SWITCHED_OFF)),
    Means(
        ErrorClass::TooManyTools,
        Judged(|case| case.has_too_many_tools()),
    ),
    Finds(|case| case.rejected_tool_schema()),
    Means(
        ErrorClass::RejectsTools,
        Judged(|case| case.rejects_tools()),
    ),
    Means(ErrorClass::RejectsContent, Words(words::CONTENT)),
    Means(
        ErrorClass::RejectsPlace,
        Judged(|case| case.rejects_place()),
    ),
    Means(
        ErrorClass::Rejects(OptionalField::Attachments),
        Words(words::PICTURES),
    ),
    Means(ErrorClass::NoAccess, Words(words::ACCESS)),
    by_name(OptionalField::SealedReasoning),
    by_name(OptionalField::ReasonedTurns),
    by_name(OptionalField::UnreasonedTurns),
    by_name(OptionalField::Store),
    by_name(OptionalField::Cache),
    by_name(OptionalField::Usage),
    by_name(OptionalField::Limit),
    Means(ErrorClass::Loading, Judged(|case| case.is_loading())),
    Means(
        ErrorClass::NeedsResponses,
        Judged(|case| case.needs_responses()),
    ),
    Means(ErrorClass::CannotChat, Words(words::CANNOT_CHAT)),
    Means(ErrorClass::UnknownModel, Words(words::MODEL)),
    Means(ErrorClass::UnknownModel, Judged(|case| case.lacks_model())),
    Means(
        ErrorClass::Rejects(OptionalField::Effort),
        Judged(|case| case.rejects_effort()),
    ),
    Means(
        ErrorClass::Rejects(OptionalField::Form),
        Judged(|case| case.rejects_form()),
    ),
    by_name(OptionalField::Encrypted),
    by_name(OptionalField::ToolChoice),
    by_name(OptionalField::System),
    Means(ErrorClass::Spent, Judged(|case| case.is_spent())),
    Means(
        ErrorClass::Intercepted,
        Judged(|case| case.is_intercepted()),
    ),
    Means(ErrorClass::WrongKey, Statuses(&[401, 403])),
    Means(ErrorClass::WrongKey, Words(words::KEY)),
    Means(
        ErrorClass::TooManyTools,
        Judged(|case| case.has_too_complex_tools()),
    ),
    Means(ErrorClass::TooLarge, Statuses(&[413])),
    Means(
        ErrorClass::Rejects(OptionalField::Attachments),
        Judged(|case| case.rejects_attachments()),
    ),
    // It may be named next to what is rejected.
    Means(
        ErrorClass::RejectsLimit,
        Judged(|case| case.rejects_limit()),
    ),
    Means(
        ErrorClass::MayRejectAttachments,
        Judged(|case| case.might_reject_attachments()),
    ),
    Means(ErrorClass::Transient, Judged(|case| case.is_transient())),
];

/// Returns what an error means. `status` is that of the response. It is `None` for an error inside a reply; then the status in
/// the error counts.
pub fn judge(error: &ServerError, status: Option<u16>, request: &Request) -> ErrorClass {
    let words = format!("{} {} {}", error.message, error.code, error.field);
    let case = Case {
        words: words.to_lowercase(),
        status: status.or(error.status),
        error,
        request,
    };
    if error.is_unread {
        return case.meaning_of_status();
    }
    let found = ROWS.iter().find_map(|row| match *row {
        Means(meaning, clue) => case.has(clue, meaning).then_some(meaning),
        Finds(rule) => rule(&case),
    });
    found.unwrap_or(ErrorClass::Other)
}

/// Whether it is the client that has to wait, and not the server that fails: it asks too often, or at the wrong moment.
/// `status` is that of the response.
pub fn is_about_client(error: &ServerError, status: Option<u16>) -> bool {
    let status = status.or(error.status);
    let words = error.message.to_lowercase();
    status.is_some_and(|status| CLIENT_STATUSES.contains(&status))
        || error.has_code(words::CLIENT_CODES)
        || words::TOO_OFTEN.iter().any(|phrase| words.contains(phrase))
}

/// Whether an error says that the model reads no images, and not only something about one of them.
pub fn says_no_images(message: &str) -> bool {
    let message = message.to_lowercase();
    words::PICTURES.iter().any(|words| message.contains(words))
}

/// An error, and what is known about its response and its request.
struct Case<'a> {
    error: &'a ServerError,
    /// The error's message, its code and its field, in lower case.
    words: String,
    status: Option<u16>,
    request: &'a Request,
}

impl Case<'_> {
    fn says(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.words.contains(phrase))
    }

    /// Returns what the status alone means.
    fn meaning_of_status(&self) -> ErrorClass {
        match self.status {
            Some(401 | 403) => ErrorClass::WrongKey,
            Some(402) => ErrorClass::Spent,
            Some(413) => ErrorClass::TooLarge,
            _ if self.is_transient() => ErrorClass::Transient,
            _ => ErrorClass::Other,
        }
    }

    /// Whether the request has this, which it can do without.
    fn asks(&self, field: OptionalField) -> bool {
        self.request.optional_fields.contains(&field)
    }

    /// Whether the error has this clue to this meaning. What was not in the request cannot be rejected.
    fn has(&self, clue: Clue, meaning: ErrorClass) -> bool {
        if let ErrorClass::Rejects(field) = meaning
            && !self.asks(field)
        {
            return false;
        }
        match clue {
            Words(words) => self.says(words),
            Statuses(statuses) => self.status.is_some_and(|status| statuses.contains(&status)),
            Named(field) => self.names(field),
            Judged(rule) => rule(self),
        }
    }

    /// Whether the provider does not serve the place that the request comes from.
    fn rejects_place(&self) -> bool {
        let may_be = matches!(self.status, Some(403) | None);
        let message = self.error.message.to_lowercase();
        let mut places = occurrences(&message, words::PLACE_ALONE);
        let is_whole = |(before, after): (&str, &str)| {
            let goes_on = after.trim_start().starts_with(char::is_alphabetic);
            let before = before.trim_end();
            !goes_on && !words::METHODS.iter().any(|method| before.ends_with(method))
        };
        self.says(words::PLACE) || (may_be && places.any(is_whole))
    }

    /// Returns the meaning of an error that finds the limit of tokens too large, alone or together with the prompt. The history
    /// is kept only for a limit that the user can lower.
    fn too_large_limit(&self) -> Option<ErrorClass> {
        let is_about_limit = self.is_bad_request() || self.status.is_none();
        if !is_about_limit {
            return None;
        }
        let limit = self.request.limit.as_ref();
        let sent = limit.map(|limit| limit.tokens);
        let message = self.error.message.to_lowercase();
        let RefusedLimit { most, prompt } = refused_limit(&message, sent)?;
        let origin = limit.map(|limit| &limit.origin);
        let is_too_long = prompt.is_some() || self.is_too_long();
        Some(match (origin, most, prompt) {
            (Some(LimitOrigin::Own), Some(most), _) => ErrorClass::OwnLimitTooLarge(most),
            (Some(LimitOrigin::Own) | None, ..) if is_too_long => ErrorClass::TooLong,
            (_, most, Some(PromptPart::Small)) => ErrorClass::LimitFillsContext(most),
            (_, Some(most), Some(PromptPart::Large)) => ErrorClass::TooLongWithLimit(most),
            (_, None, Some(PromptPart::Large)) => ErrorClass::TooLong,
            (_, most, None) => ErrorClass::LimitTooLarge(most),
        })
    }

    /// Returns the meaning of an error that rejects the definition of one tool.
    fn rejected_tool(&self) -> Option<ErrorClass> {
        if !self.is_bad_request() {
            return None;
        }
        rejected_tool(self.error, &self.request.tools).map(ErrorClass::RejectsTool)
    }

    /// Returns the meaning of an error that rejects the schema of a tool that it does not name.
    fn rejected_tool_schema(&self) -> Option<ErrorClass> {
        let tools = &self.request.tools.names;
        let is_about_tools = self.error.field.contains("tool") || self.says(&["tool", "function"]);
        // An answer can have a schema, too.
        let is_about_form = has_name(&self.words, "response_format");
        let is_no_other = is_about_tools || !self.asks(OptionalField::Form);
        let rejects_schema = (is_about_tools && self.says(words::SCHEMA_PARTS))
            || (is_no_other && self.says(&[words::STRICT_RULE]));
        let is_other = is_about_form || self.says(words::TOO_COMPLEX);
        if !self.is_bad_request() || !rejects_schema || is_other {
            return None;
        }
        match tools.len() {
            0 => None,
            1 => Some(ErrorClass::RejectsTool(0)),
            _ => Some(ErrorClass::RejectsToolSchema),
        }
    }

    fn is_too_long(&self) -> bool {
        if self.says(words::TOO_LONG) {
            return true;
        }
        // What is not there may be found in a model with a larger context.
        if matches!(self.status, Some(404 | 410)) {
            return false;
        }
        if self.says(&[words::FULL_CONTEXT]) || self.is_too_many_bytes() {
            return true;
        }
        if self.says(&[words::CONTEXT]) && self.says(words::EXCEEDS_CONTEXT) {
            return true;
        }
        // Plans, keys and rates have limits of tokens, too.
        let may_be_another_limit = match self.status {
            Some(status) => matches!(status, 401 | 402 | 403 | 429),
            None => self.is_transient(),
        };
        !may_be_another_limit && prompt_length::is_exceeded(&self.words)
    }

    /// Whether the messages have more bytes than the server takes, in words of Moonshot.
    fn is_too_many_bytes(&self) -> bool {
        self.says(&[words::MESSAGE_SIZE])
            && self.says(&["exceed", "too large", "limit"])
            && self.words.contains(|char: char| char.is_ascii_digit())
    }

    /// Returns the status, or the one for which a word stands in an error inside a reply. A type may say that the request is
    /// bad where the code says that it passes.
    fn meant_status(&self) -> Option<u16> {
        let by_word = || {
            let mut statuses = words::STATUS_CODES.iter();
            let found = statuses.find(|(status, codes)| {
                self.has_code(codes) && !(*status == 400 && self.is_transient())
            })?;
            Some(found.0)
        };
        self.status.or_else(by_word)
    }

    /// Whether the server rejects something about the request itself.
    fn is_bad_request(&self) -> bool {
        matches!(self.meant_status(), Some(400 | 422))
    }

    /// Whether the server rejects this by its name.
    fn names(&self, field: OptionalField) -> bool {
        rejected::rejects(field, &self.words, self.error, self.meant_status())
    }

    /// Whether the server rejects the limit of tokens as a field, and not its number.
    fn rejects_limit(&self) -> bool {
        let is_there = self.request.limit.is_some();
        is_there && self.is_bad_request() && rejected::rejects_limit(&self.words, self.error)
    }

    /// Whether the words say of one of the names for tools that it is not supported, or of a field with the tools.
    fn rejects_tools(&self) -> bool {
        let words = &self.words;
        let mut fields = self.error.field.split(',');
        if fields.any(|field| field.trim() == "tools") && words.contains("support") {
            return true;
        }
        // Some have a name of the calling of tools in quotes, and some a word.
        let plain = words.replace(['`', '"'], "");
        let offers_tools = !self.request.tools.names.is_empty();
        words::TOOLS.iter().any(|tools| {
            let is_refused = |after: &&str| {
                let phrase = format!("{tools}{after}");
                let mut places = plain.match_indices(&phrase);
                // A part of a message can be called so, too.
                places.any(|(place, _)| offers_tools || !plain[..place].ends_with('.'))
            };
            let is_named = |before: &&str| has_name(&plain, &format!("{before}{tools}"));
            words::REFUSED_AFTER.iter().any(is_refused)
                || words::REFUSED_BEFORE.iter().any(is_named)
        })
    }

    /// Whether the server rejects the effort, or may mean it.
    fn rejects_effort(&self) -> bool {
        let has_wrong_parameter = self.has_code(&[words::WRONG_PARAMETER]);
        // Anthropic's object for the form and the effort. If the request has no form, the error is about the effort.
        let is_only_effort = !self.asks(OptionalField::Form);
        let may_be =
            has_wrong_parameter || (is_only_effort && has_name(&self.words, OUTPUT_CONFIG));
        self.names(OptionalField::Effort) || (self.is_bad_request() && may_be)
    }

    /// Whether the server rejects the form, or may mean it, or the model did not keep it. The status is not always there.
    fn rejects_form(&self) -> bool {
        // As a plain word it may be any text, but not as the name of a field.
        let is_field = self.error.field == "text";
        let is_bare = self.error.message.to_lowercase() == words::INVALID_ARGUMENT;
        let may_be = is_field || is_bare;
        self.names(OptionalField::Form)
            || self.says(words::FAILED_FORM)
            || (self.is_bad_request() && may_be)
    }

    /// Whether a call has gone back without the signature that came with it.
    fn lacks_signature(&self) -> bool {
        let plain = self.words.replace(['"', '\'', '`'], "");
        let is_missing = ["missing a thought_signature", "missing thought_signature"];
        matches!(self.status, Some(400) | None)
            && !self.request.earlier_call_ids.is_empty()
            && is_missing.iter().any(|phrase| plain.contains(phrase))
    }

    fn needs_stream(&self) -> bool {
        let streams = self.request.body.as_ref();
        let streams = streams.is_some_and(|body| body.contains(r#""stream":true"#));
        let is_bad = matches!(self.status, Some(400 | 422) | None);
        is_bad && !streams && self.says(words::NO_STREAM)
    }

    fn needs_responses(&self) -> bool {
        matches!(self.status, Some(400 | 404 | 405) | None)
            && self.request.path.ends_with("/chat/completions")
            && self.says(words::RESPONSES)
    }

    /// Whether the address or the model is not there, and the words say that it is the model. They may also name the model that
    /// lacks something, or the path of the request.
    fn lacks_model(&self) -> bool {
        let is_missing = match self.status {
            Some(404 | 410) => true,
            Some(400) | None => self.says(words::MISSING),
            Some(_) => false,
        };
        let mut path_words = words::PATH.iter();
        let names_path = path_words.any(|word| has_name(&self.words, word));
        let mut places = self.words.match_indices("model");
        is_missing
            && places.any(|(place, _)| {
                let before = &self.words[..place];
                !(before.ends_with("for this ") || (names_path && before.ends_with('/')))
            })
    }

    /// Whether something between q and the server has answered.
    fn is_intercepted(&self) -> bool {
        self.status
            .is_some_and(|status| self.error.is_of_firewall(status))
    }

    fn has_too_many_tools(&self) -> bool {
        if self.request.tools.names.is_empty() {
            return false;
        }
        let names_them = has_name(&self.words, "tools");
        let counts_them = || {
            let mut counted = occurrences(&self.words, "tools");
            counted.any(|(before, _)| {
                let before = before.trim_end();
                before.ends_with(|end: char| end.is_ascii_digit())
            })
        };
        (names_them && self.says(words::TOO_MANY))
            || (self.is_bad_request() && self.says(words::TOO_MANY_TOOLS))
            || (self.is_bad_request() && self.says(words::AT_MOST) && counts_them())
    }

    /// Whether the schemas of the tools are too much together.
    fn has_too_complex_tools(&self) -> bool {
        !self.request.tools.names.is_empty() && self.says(words::TOO_COMPLEX)
    }

    fn is_loading(&self) -> bool {
        match self.meant_status() {
            Some(503) => self.says(words::LOADING) && !self.says(words::NOT_LOADED),
            Some(500) => self.says(&[words::LOADING_IN_OLLAMA]),
            _ => false,
        }
    }

    /// Whether the server probably rejects the images and files. Most errors that do not name them are about something else.
    fn rejects_attachments(&self) -> bool {
        match self.status {
            Some(415) => true,
            // Too many requests, or overload.
            Some(429 | 503 | 529) => false,
            // A busy server may name what is busy.
            _ if self.is_transient() && !self.says(words::REFUSES_PICTURES) => false,
            _ if self.has_word(words::ATTACHMENTS) => true,
            _ if self.says(words::JOINED_ATTACHMENTS) => true,
            _ => self.is_bad_request() && self.rejects_message_part(),
        }
    }

    /// Whether the server rejects a part of a message, or does not say what it rejects.
    fn rejects_message_part(&self) -> bool {
        self.names_no_other_field()
            && (self.has_word(words::PARTS)
                || self.says(words::NOT_A_STRING)
                || words::says_nothing(&self.error.message))
    }

    /// Whether the server might reject the images and files, as a template for text alone that fails with them. It may as well
    /// mean anything else.
    fn might_reject_attachments(&self) -> bool {
        self.is_bad_request()
            && self.asks(OptionalField::Attachments)
            && self.names_no_other_field()
    }

    /// Whether the error names no field, or a part of the messages.
    fn names_no_other_field(&self) -> bool {
        let field = &self.error.field;
        let mut names = words::CONTENT_FIELDS.iter();
        field.is_empty() || names.any(|name| field.contains(name))
    }

    /// Whether one of these words is there. The name of a model, such as `llama-3.2-vision`, is another word.
    fn has_word(&self, words: &[&str]) -> bool {
        let is_end = |char: char| !(char.is_alphanumeric() || char == '-');
        self.words.split(is_end).any(|word| words.contains(&word))
    }

    /// Whether quota or money is used up. Google has the same words for a limit per minute, but then says how long to wait.
    fn is_spent(&self) -> bool {
        if self.says(&[words::NO_QUOTA]) {
            return true;
        }
        let wait = self.error.retry_after.unwrap_or(Duration::MAX);
        if wait <= MAX_WAIT && self.is_transient() {
            return false;
        }
        let message = self.error.message.to_lowercase();
        let is_alone = words::SPENT_ALONE.contains(&message.trim_end_matches(['.', '!']));
        let mut limits = occurrences(&self.words, words::NO_QUOTA_NOW);
        self.status == Some(402)
            || self.says(words::SPENT)
            || self.has_code(words::SPENT_CODES)
            || (is_alone && !self.has_code(words::CLIENT_CODES))
            || limits.any(|(_, after)| !limit::is_fraction(after))
    }

    /// Whether one of the error's codes is one of these.
    fn has_code(&self, codes: &[&str]) -> bool {
        self.error.has_code(codes)
    }

    fn is_transient(&self) -> bool {
        if let Some(should) = self.error.should_retry {
            return should;
        }
        if let Some(status) = self.status {
            return TRANSIENT_STATUSES.contains(&status);
        }
        let codes = self.error.code.to_lowercase();
        codes.split(' ').any(|code| match code.parse() {
            // Some servers write the status as text.
            Ok(status) => TRANSIENT_STATUSES.contains(&status),
            Err(_) => words::TRANSIENT_CODES.contains(&code) || words::CLIENT_CODES.contains(&code),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::reading::read_redacted;
    use super::super::reading::tests::read;
    use super::*;
    use crate::provider::request::{RequestedTools, TokenLimit};
    use crate::secret::Secrets;
    use crate::text::table::rows;

    /// A request that asks for everything.
    const ALL: &[OptionalField] = &[
        OptionalField::Effort,
        OptionalField::Store,
        OptionalField::Cache,
        OptionalField::Form,
        OptionalField::Attachments,
    ];

    fn asking_for(fields: &[OptionalField]) -> Request {
        Request {
            optional_fields: fields.to_vec(),
            ..Request::default()
        }
    }

    fn offering<Name: ToString>(names: &[Name]) -> Request {
        let names = names.iter().map(ToString::to_string).collect();
        Request {
            tools: RequestedTools {
                names,
                ..RequestedTools::default()
            },
            ..Request::default()
        }
    }

    /// Checks a table: what an error means, or what not, its status, and its body, which may be the message alone. That is the
    /// same where tools are offered that it does not name.
    #[track_caller]
    fn check(asks: &[OptionalField], table: &str) {
        for [meaning, status, body] in rows(table) {
            let error = read(body).expect(body);
            let with_tools = Request {
                optional_fields: asks.to_vec(),
                ..offering(&["x__say"])
            };
            for request in [asking_for(asks), with_tools] {
                let found = judge(&error, status.parse().ok(), &request);
                let found = format!("{found:?}");
                match meaning.strip_prefix("not ") {
                    Some(other) => assert_ne!(found, other, "{status} {body}"),
                    None => assert_eq!(found, meaning, "{status} {body}"),
                }
            }
        }
    }

    /// Nothing in such a table means this to who has asked for something else.
    fn check_never(asks: &[OptionalField], meaning: &str, table: &str) {
        for [_, rest] in rows(table) {
            check(asks, &format!("not {meaning} | {rest}"));
        }
    }

    #[test]
    fn the_rejected_tool_is_found_in_an_error_about_its_definition() {
        let names = ["db__get", "db__list", "db__get_2"].map(str::to_owned);
        for (status, message, field, place) in [
            (
                400,
                "Invalid schema for function 'db__list': no",
                "",
                Some(1),
            ),
            (
                400,
                "Invalid schema for function 'db__get_2': no",
                "",
                Some(2),
            ),
            (400, "no", "tools[1].function.parameters", Some(1)),
            (422, "tools.2.custom.input_schema: no", "", Some(2)),
            (
                400,
                "Invalid at 'tools[0].function_declarations[1].parameters'",
                "",
                Some(1),
            ),
            (400, "tools.3.type: no search here", "", None),
            (400, "tools are not supported", "", None),
            (400, "db__list was called twice", "", None),
            (400, "Invalid schema for function 'db__lists'", "", None),
            (404, "Invalid schema for function 'db__list'", "", None),
            (500, "Invalid schema for function 'db__list'", "", None),
        ] {
            let error = ServerError {
                field: field.to_owned(),
                ..ServerError::new(message)
            };
            let meaning = judge(&error, Some(status), &offering(&names));
            let found = match meaning {
                ErrorClass::RejectsTool(place) => Some(place),
                _ => None,
            };
            assert_eq!(found, place, "{status} {message}");
        }
    }

    #[test]
    fn a_call_that_the_model_failed_to_write_is_no_rejection_of_its_tool() {
        // Groq, with its code and as a gateway passes it on. The definition of a tool may be wrong, too.
        let table = r##"
            Transient | 400 | {"error":{"message":"Tool call validation failed: parameters for tool x__say did not match schema: errors: [missing properties: 'text']","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=x__say>"}}
            Transient | 400 | {"error":{"message":"tool call validation failed: attempted to call tool 'x__say' with other parameters"}}
            Transient | 400 | {"error":{"message":"Failed to call a function. Please adjust your prompt.","code":"tool_use_failed"}}
            RejectsTool(0) | 400 | {"error":{"message":"Invalid schema for function 'x__say': the prompt is too long"}}
            RejectsTool(0) | 400 | tools.0.custom.name: string length 70 exceeds the maximum length 64
        "##;
        for [meaning, status, body] in rows(table) {
            let error = read(body).expect(body);
            let found = judge(&error, status.parse().ok(), &offering(&["x__say"]));
            assert_eq!(format!("{found:?}"), meaning, "{body}");
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
    fn a_loading_model_and_one_that_cannot_chat_are_recognized_for_each_server() {
        let table = r##"
            Loading | 503 | {"error":{"message":"Loading model","type":"unavailable_error","code":503}}
            Loading | 503 | {"message":"Loading model","type":"unavailable_error","code":503}
            Loading | 503 | {"error":"Model meta-llama/Llama-2-13b-chat is currently loading","estimated_time":20.0}
            Loading | 503 | {"error":{"message":"model is still loading, please retry"}}
            Loading | 503 | {"detail":"The model is being loaded"}
            Loading | 500 | {"error":"unexpected server status: llm server loading model"}
            Loading | - | {"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}
            Loading | - | {"error":{"message":"Loading model","type":"unavailable_error"}}
            Transient | 500 | {"error":"llama-server process has terminated: exit status 1: error loading model: no"}
            Transient | 503 | {"error":"error loading model: no memory"}
            Transient | 503 | {"error":"server busy, please try again. maximum pending requests exceeded"}
            not Loading | 400 | {"error":"Failed to load model \"gpt-oss-20b\". Error: Error loading model."}
            CannotChat | 400 | {"error":{"message":"\"nomic-embed-text:latest\" does not support chat"}}
            CannotChat | 400 | {"object":"error","message":"The model does not support Chat Completions API","code":400}
            CannotChat | 400 | embedding models do not support chat
            CannotChat | 404 | This is not a chat model and thus not supported in the v1/chat/completions endpoint.
        "##;
        check(&[], table);
    }

    #[test]
    fn a_rejected_key_is_recognized_with_any_status() {
        let table = r##"
            WrongKey | 401 | no
            WrongKey | 400 | API key not valid. Please pass a valid API key.
            WrongKey | 400 | Incorrect API key provided: x
            not WrongKey | 400 | no
        "##;
        check(&[], table);
    }

    #[test]
    fn exhausted_quota_is_not_retried_unless_the_server_sends_a_short_delay() {
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
            let [spent, passes] = [ErrorClass::Spent, ErrorClass::Transient];
            let soon = if status == "429" { passes } else { spent };
            for (seconds, meaning) in [(None, spent), (Some(61), spent), (Some(60), soon)] {
                let error = ServerError {
                    retry_after: seconds.map(Duration::from_secs),
                    code: code.to_owned(),
                    ..ServerError::new(message)
                };
                let found = judge(&error, status.parse().ok(), &asking_for(ALL));
                assert_eq!(found, meaning, "{status} {code} {message} {seconds:?}");
            }
        }
        let limited =
            r#"{"error":{"message":"Rate limit reached for m","code":"rate_limit_exceeded"}}"#;
        check(ALL, &format!("Transient | 429 | {limited}"));
    }

    #[test]
    fn exhausted_credit_or_plan_is_distinguished_from_a_limit_that_passes() {
        // Anthropic's two codes (its documents on rate limits and its library 2.14), its messages in public reports, the
        // code of “Sign in with ChatGPT”, Gemini's free tier without a model, OpenRouter, Zhipu, Moonshot, DashScope,
        // Fireworks, Ollama's cloud, Gemini's subscriptions.
        let table = r##"
            Spent | 429 | {"type":"error","error":{"type":"rate_limit_error","message":"no","details":{"error_code":"enforced_spend_limit_reached"}}}
            Spent | 429 | {"type":"error","error":{"type":"rate_limit_error","message":"no","details":{"error_code":"contract_spend_limit_reached"}}}
            Spent | 400 | You have reached your specified workspace API usage limits. You will regain access on 2026-09-01 at 00:00 UTC.
            Spent | 402 | Number of prompt tokens exceeds the limit of your free plan
            Spent | 402 | Number of prompt tokens exceeds the limit of 8000
            WrongKey | 403 | Input tokens exceed the limit of 8000
            TooLong | 400 | Input tokens exceed the limit of 8000
            Spent | 429 | you (me) have reached your weekly usage limit, upgrade for higher limits
            Transient | 429 | Rate limit reached: Usage limit: 20 requests per minute. Please try again in 1s.
            Transient | 429 | Concurrency usage limit exceeded, retry after 1 second
            Transient | - | {"error":{"code":"rate_limit_exceeded","message":"Number of input tokens exceeds the limit of 8000 for this model"}}
            Spent | 429 | You have reached your API usage limits: your organization has crossed its monthly API usage threshold.
            Spent | 429 | Extra usage is required for long context requests.
            Spent | 429 | {"error":{"code":"subscription_sharing_usage_limit_exceeded","message":"allowance exhausted","type":"request_error"}}
            Spent | - | {"error":{"code":"subscription_sharing_usage_limit_exceeded","message":"allowance exhausted"}}
            Transient | 429 | {"error":{"message":"Rate limit: 0 requests remaining","metadata":{"retry_after_seconds":1}}}
            Spent | 429 | {"error":{"message":"Rate limit: 0 requests remaining"}}
            Transient | 429 | {"error":{"message":"Rate limit: 0.5 requests per second"}}
            Spent | 429 | {"error":{"message":"quota exceeded"}}
            Spent | - | {"error":{"message":"quota exceeded","code":429}}
            Spent | 403 | {"error":{"message":"Quota exceeded."}}
            Transient | 429 | {"error":{"message":"Quota exceeded","code":429,"status":"RESOURCE_EXHAUSTED"}}
            Transient | 429 | {"message":"Requests per minute limit exceeded - too many requests sent.","type":"too_many_requests_error","param":"quota","code":"request_quota_exceeded"}
            Spent | 429 | {"error":{"message":"no","code":"quota_exceeded"}}
            Spent | 429 | {"error":{"message":"Budget has been exceeded! Current cost: 1.2, Max budget: 1.0","type":"budget_exceeded","param":null,"code":"429"}}
            Spent | 400 | {"error":{"message":"ExceededBudget: User=u over budget. Spend=1.2, Budget=1.0"}}
            Spent | 403 | {"error":{"message":"预扣费额度失败","code":"insufficient_user_quota"}}
            Spent | 401 | {"error":{"message":"该令牌额度已用尽"}}
            Transient | 429 | {"error":{"message":"quota exceeded","metadata":{"retry_after_seconds":5}}}
            Spent | 429 | {"error":{"code":429,"message":"You exceeded your current quota. * Quota exceeded for metric: generate_content_free_tier_requests, limit: 0, model: gemini-2.5-pro","details":[{"retryDelay":"34s"}]}}
            Transient | 429 | {"error":{"code":429,"message":"You exceeded your current quota. * Quota exceeded for metric: generate_content_free_tier_requests, limit: 05, model: gemini-2.5-pro","details":[{"retryDelay":"34s"}]}}
            Spent | 403 | Key limit exceeded (monthly limit). Manage it using https://openrouter.ai/settings/keys
            Spent | 429 | Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day
            Spent | 429 | {"error":{"code":"1308","message":"Usage limit reached for 5 hour. Your limit will reset at 2026-11-28 20:00:00"}}
            Spent | 429 | Your account org-1 is not active, please check your plan and billing details.
            Spent | 403 | You've reached your usage limit for this billing cycle.
            Spent | 400 | {"code":"Arrearage","message":"Access denied, please make sure your account is in good standing."}
            Spent | 403 | {"type":"error","error":{"type":"permission_error","message":"this model requires a subscription, upgrade for access: https://ollama.com/upgrade"}}
            Spent | 403 | {"error":{"message":"your subscription payment is past due. update your payment method: https://ollama.com/settings/billing","type":"api_error"}}
            Spent | 403 | {"error":{"code":"AccountOverdueError","message":"The request failed because your account has an overdue balance."}}
            Spent | 403 | {"error":{"code":"AccountOverdueError","message":"no"}}
            Spent | 403 | {"code":30001,"message":"Sorry, your account balance is insufficient"}
            Spent | 401 | Your subscription has expired.
            Spent | 401 | No active subscription found for this key
            Spent | 400 | Please update your payment method.
            Spent | 429 | {"error":{"message":"no","code":"credits_exhausted"}}
            Spent | 429 | {"error":{"message":"no","code":"credit_limit_reached"}}
            Spent | 429 | {"error":{"message":"no","code":"project_spend_limit_reached"}}
            WrongKey | 403 | {"error":{"message":"this key requires a subscription id in its header"}}
            WrongKey | 401 | Access denied due to invalid subscription key. Provide a valid key for an active subscription.
            Transient | 429 | Your subscription allows 20 requests per minute
            Transient | 429 | {"error":{"message":"no","code":"rate_limit_exceeded","param":"credit_limit"}}
            Spent | 412 | Account a is suspended, possibly due to reaching the monthly spending limit.
            Transient | 429 | {"type":"error","error":{"type":"rate_limit_error","message":"Number of request tokens has exceeded your per-minute rate limit","details":{"error_code":null}}}
            Spent | 429 | {"error":"you (me) have reached your weekly usage limit, upgrade for higher limits: https://ollama.com/upgrade (ref: 1)"}
            Spent | 429 | {"error":"you (me) have reached your session usage limit, please wait or upgrade to continue"}
            Spent | 429 | {"error":"you (me) have reached your hourly usage limit, please upgrade to continue"}
            Spent | 429 | {"error":{"message":"Subscription quota exceeded"}}
            Spent | 429 | {"error":{"message":"You exceeded your current quota. Please try again in 5s.","code":"insufficient_quota"}}
            Spent | 429 | {"error":{"code":429,"message":"You have exhausted your capacity on this model. Your quota will reset after 3h12m5s.","status":"RESOURCE_EXHAUSTED"}}
            Transient | 429 | {"error":{"code":429,"message":"You have exhausted your capacity on this model. Your quota will reset after 5s.","status":"RESOURCE_EXHAUSTED"}}
            Transient | 429 | {"error":{"code":429,"message":"Resource has been exhausted (e.g. check quota).","status":"RESOURCE_EXHAUSTED"}}
            Transient | 429 | {"error":{"message":"Quota exceeded for quota metric 'Requests' and limit 'Requests per minute'"}}
            Transient | 429 | Rate limited
            Transient | 409 | no
        "##;
        check(ALL, table);
    }

    #[test]
    fn a_should_retry_header_overrides_the_status_except_for_a_wrong_key() {
        for (status, should_retry, meaning) in [
            (429, None, ErrorClass::Transient),
            (429, Some(false), ErrorClass::Other),
            (529, Some(true), ErrorClass::Transient),
            (400, Some(true), ErrorClass::Transient),
            (401, Some(true), ErrorClass::WrongKey),
        ] {
            let error = ServerError {
                should_retry,
                ..ServerError::new("no")
            };
            let found = judge(&error, Some(status), &Request::default());
            assert_eq!(found, meaning, "{status} {should_retry:?}");
        }
    }

    #[test]
    fn rejected_content_countries_and_models_are_not_taken_for_a_wrong_key() {
        // xAI, OpenRouter, OpenAI, Azure, Anthropic, DeepSeek, Moonshot, Zhipu, DashScope; Gemini and Groq for places.
        let table = r##"
            RejectsContent | 403 | {"code":"The caller does not have permission to execute the specified operation","error":"Content violates usage guidelines. Team: t, API key ID: k, Model: grok-4, Failed check: SAFETY_CHECK_TYPE_BIO"}
            RejectsContent | 403 | {"code":"permission-denied","error":"Content violates usage guidelines. "}
            RejectsContent | 403 | {"error":{"code":403,"message":"openai/gpt-5 requires moderation on OpenRouter. Your input was flagged for \"violence\".","metadata":{"reasons":["violence"]}}}
            RejectsContent | 403 | {"error":{"message":"Input was flagged by moderation","code":403,"metadata":{"reasons":["violence"]}}}
            RejectsContent | 403 | {"error":{"message":"The prompt was flagged by moderation.","code":403}}
            WrongKey | 403 | {"error":{"message":"This key was flagged","code":403}}
            RejectsContent | 403 | The request is prohibited due to a violation of provider Terms Of Service.
            RejectsContent | 400 | Your request was rejected as a result of our safety system.
            RejectsContent | 400 | Invalid prompt: your prompt was flagged as potentially violating our usage policy.
            RejectsContent | 400 | The response was filtered due to the prompt triggering Azure OpenAI's content management policy.
            RejectsContent | 400 | Output blocked by content filtering policy
            RejectsContent | - | {"error":{"code":"misalignment_policy_violation","message":"no"}}
            RejectsContent | 400 | Content Exists Risk
            RejectsContent | 400 | The request was rejected because it was considered high risk
            RejectsContent | 400 | {"error":{"code":"1301","message":"System detected potentially unsafe or sensitive content in input or generation."}}
            RejectsContent | 400 | {"code":"DataInspectionFailed","message":"no"}
            RejectsPlace | 403 | {"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported","type":"request_forbidden"}}
            RejectsPlace | 400 | {"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}
            RejectsPlace | 403 | {"type":"error","error":{"type":"forbidden","message":"Request not allowed"}}
            RejectsPlace | 403 | Access denied. Please check your network settings.
            RejectsPlace | 403 | litellm.PermissionDeniedError: AnthropicException - Request not allowed
            RejectsPlace | 403 | litellm.PermissionDeniedError: AnthropicException - {"type":"error","error":{"type":"forbidden","message":"Request not allowed"}}
            Other | 405 | POST request not allowed
            WrongKey | 403 | POST request not allowed
            WrongKey | 403 | Request not allowed for this key
            NoAccess | 403 | You are not allowed to sample from this model
            NoAccess | 404 | {"error":{"message":"Your organization must be verified to use the model `m`.","code":"model_not_found"}}
            NoAccess | 400 | {"error":{"message":"The model m requires terms acceptance.","code":"model_terms_required"}}
            NoAccess | 403 | {"error":{"message":"The model `m` is blocked at the organization level.","code":"model_permission_blocked_org"}}
            NoAccess | 404 | No endpoints found matching your data policy (Free model training).
            NoAccess | 404 | No allowed providers are available for the selected model.
            WrongKey | 403 | The caller does not have permission to execute the specified operation
            WrongKey | 403 | Access to the chat endpoint is denied
        "##;
        check(ALL, table);
        check(&[], table);
    }

    #[test]
    fn a_rejection_of_tools_is_recognized_in_the_words_of_each_server() {
        // Ollama, OpenRouter, OpenAI, Groq, DeepInfra, Hugging Face, Mistral, Gemini, DeepSeek, SiliconFlow, Novita, Cerebras,
        // Bedrock, nscale, Xinference; vLLM and llama.cpp, which lack an option; and errors that are about something else.
        let table = r##"
            RejectsTools | 400 | registry.ollama.ai/library/llama3:latest does not support tools
            RejectsTools | 404 | No endpoints found that support tool use. Try disabling "x". To learn more about provider routing, visit: https://openrouter.ai/docs/guides/routing/provider-selection
            RejectsTools | 404 | {"error":{"message":"tools is not supported in this model. For a list of supported models, refer to https://platform.openai.com/docs/guides/function-calling#models-supporting-function-calling.","type":"invalid_request_error"}}
            RejectsTools | 400 | Unsupported parameter: 'tools' is not supported with this model.
            RejectsTools | 400 | {"error":{"message":"tool calling is not supported with this model","type":"invalid_request_error","param":"tool calling"}}
            RejectsTools | 400 | `tools` is not supported with this model
            RejectsTools | 400 | {"error":{"message":"`tool calling` is not supported with this model"}}
            RejectsTools | 400 | "function calling" is not enabled for this model
            RejectsTools | 400 | m does not support `tools`
            RejectsTools | 405 | deepinfra error: Tool calling is not supported for model: NousResearch/Hermes-3-Llama-3.1-70B
            RejectsTools | 422 | {"error":{"message":"The requested model does not support tool calling"}}
            RejectsTools | 400 | {"object":"error","message":"Function calling is not enabled for this model","type":"invalid_request_error","code":"3051"}
            RejectsTools | 400 | Function calling is not enabled for models/gemma-3-27b-it
            RejectsTools | 400 | deepseek-reasoner does not support Function Calling
            RejectsTools | 400 | {"code":20037,"message":"Function call is not supported for this model."}
            RejectsTools | 400 | model features function calling not support
            RejectsTools | 400 | {"message":"Tools are not supported for this model","type":"invalid_request_error","param":"tools"}
            RejectsTools | 400 | This model doesn't support tool use.
            RejectsTools | 422 | {"code":"422","error_type":"UNSUPPORTED_OPENAI_PARAMS","message":"The following parameters are not supported for this model: tools, tool_choice","param":"tools, tool_choice"}
            RejectsTools | 400 | {"code":400,"reason":"INVALID_REQUEST_BODY","message":"model: x does not support feature: function-calling","metadata":{}}
            RejectsTools | 400 | model: x does not support feature: tools
            RejectsTools | 400 | model: x does not support feature: tool_calling
            not RejectsTools | 400 | model: x does not support feature: tools-v2
            not RejectsTools | 400 | model: x does not support feature: structured-outputs
            RejectsTools | 400 | {"detail":"Only ['qwen2-instruct', 'glm4-chat'] support tool calls"}
            RejectsTools | 400 | {"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"code\":400, \"reason\":\"INVALID_REQUEST_BODY\", \"message\":\"model features function calling not support\", \"metadata\":{}}","provider_name":"Novita"}}}
            not RejectsTools | 400 | {"error":{"message":"Invalid schema: 'x' is not supported","param":"tools[0].function.parameters"}}
            ToolsSwitchedOff | 400 | {"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}
            ToolsSwitchedOff | 500 | {"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}
            not RejectsTools | 400 | Function tools with reasoning_effort are not supported for gpt-6-sol in /v1/chat/completions.
            not RejectsTools | 400 | Invalid schema for function 'a': tools
            not RejectsTools | 400 | does not support toolsets
            RejectsStream | 400 | {"error":{"message":"Your organization must be verified to stream this model. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization.","type":"invalid_request_error","param":"stream","code":"unsupported_value"}}
            RejectsStream | 400 | {"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"Your organization must be verified to stream this model.\"}}"}}}
            RejectsStream | 400 | Unsupported value: 'stream' does not support true with this model. Supported values are: false.
            RejectsStream | 400 | This model doesn't support tool use in streaming mode.
            NeedsStream | 400 | {"type":"error","error":{"type":"invalid_request_error","message":"Streaming is required for operations that may take longer than 10 minutes."}}
            NeedsStream | 400 | {"detail":"Stream must be set to true"}
            NeedsStream | 400 | {"error":{"code":"invalid_parameter_error","message":"This model only support stream mode, please enable the stream parameter to access the model."}}
            NeedsStream | 400 | This model is only supported in streaming mode
            NeedsStream | 400 | non-streaming is not supported
            not NeedsStream | 429 | Streaming is required
            not NeedsStream | 400 | This model only supports stream=false
            not LacksSignature | 400 | Function call is missing a thought_signature in functionCall parts.
        "##;
        check(ALL, table);
        check(&[], table);
    }

    #[test]
    fn an_answer_that_violates_its_form_counts_as_a_rejection_of_the_form() {
        let table = r##"
            Rejects(Form) | 400 | {"error":{"message":"Failed to generate JSON. Please adjust your prompt.","type":"invalid_request_error","code":"json_validate_failed","failed_generation":""}}
            Rejects(Form) | 400 | {"error":{"message":"no","code":"json_validate_failed"}}
            Transient | 400 | {"error":{"message":"Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=a>"}}
            Rejects(Form) | - | {"error":{"message":"Failed to validate JSON. Please adjust your prompt."}}
            Rejects(Form) | 400 | {"error":{"code":400,"message":"Request contains an invalid argument.","status":"INVALID_ARGUMENT"}}
            Rejects(Form) | 500 | {"error":{"code":500,"message":"The model produced output that does not match the expected peg-native format","type":"server_error"}}
        "##;
        check(&[OptionalField::Form], table);
        check_never(&[], "Rejects(Form)", table);
        let other = r##"
            not Rejects(Form) | 400 | {"error":{"code":400,"message":"Request contains an invalid argument. Field: temperature","status":"INVALID_ARGUMENT"}}
        "##;
        check(&[OptionalField::Form], other);
    }

    #[test]
    fn schemas_that_are_too_much_are_those_of_the_answer_or_of_the_tools() {
        for words in [
            "The specified schema produces a constraint that has too many states for serving.",
            "The compiled grammar is too large. Simplify your tool schemas.",
            "Schemas contains too many optional parameters (27).",
        ] {
            let form = &[OptionalField::Form][..];
            for (asked, names, meaning) in [
                (form, &[][..], ErrorClass::Rejects(OptionalField::Form)),
                (&[], &["db__get"], ErrorClass::TooManyTools),
                (&[], &[], ErrorClass::Other),
            ] {
                let request = Request {
                    optional_fields: asked.to_vec(),
                    ..offering(names)
                };
                let found = judge(&ServerError::new(words), Some(400), &request);
                assert_eq!(found, meaning, "{words}");
            }
        }
    }

    #[test]
    fn a_tool_that_is_rejected_and_too_many_tools_are_distinguished_from_a_model_without_tools() {
        // What it means where two tools are offered, the field that the error names, and the message.
        let table = r##"
            TooManyTools | tools | [unsupported_tool_schema] The tool schema is not supported (tool_count_limit).
            TooManyTools | tools | Too many tools: at most 16 are supported
            TooManyTools | tools | Up to 128 tools are supported
            TooManyTools | tools | Too many tools: 17, at most 16
            TooManyTools | tools | Maximum tools limit reached. Requested 220, Max: 200
            TooManyTools | - | [unsupported_tool_schema] The tool schema is not supported (tool_count_limit).
            TooManyTools | - | Too many tools: at most 16 are supported
            TooManyTools | - | Up to 128 tools are supported
            TooManyTools | - | Too many tools: 17, at most 16
            TooManyTools | - | Maximum tools limit reached. Requested 220, Max: 200
            TooManyTools | - | Maximum tools limit reached. 219 tools have been provided but the maximum is 200.
            TooManyTools | - | You may not include more than 128 tools in your request.
            TooManyTools | - | Cannot have more than 128 tools per request.
            TooManyTools | tools | Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 220 instead.
            RejectsToolSchema | tools | [unsupported_tool_schema] The tool schema is not supported (unsupported_keyword).
            RejectsToolSchema | - | [unsupported_tool_schema] The tool schema is not supported (unsupported_keyword).
            RejectsToolSchema | tools | Unsupported tool schema keyword: minimum
            RejectsToolSchema | - | Unsupported tool schema keyword: minimum
            RejectsToolSchema | tools | This tool parameter type is not supported
            RejectsToolSchema | - | This tool parameter type is not supported
            RejectsToolSchema | tools | 'required' is required to be supplied and to be an array including every key in properties. Missing 'timeout'
            RejectsToolSchema | - | 'required' is required to be supplied and to be an array including every key in properties. Missing 'timeout'
            RejectsTool(1) | tools | Tool r__term uses an unsupported keyword 'minimum'
            RejectsTool(1) | - | Tool r__term uses an unsupported keyword 'minimum'
            RejectsTool(1) | - | Tool 'r__term': this parameter type is not supported
            RejectsTool(1) | tools | Invalid schema for function 'r__term': In context=(), 'required' is required to be supplied and to be an array including every key in properties. Missing 'timeout'
            RejectsTools | tools | Unsupported parameter: 'tools' is not supported with this model.
            RejectsTools | tools | This is not supported by the model
            RejectsTools | - | m does not support tools
            RejectsTools | - | Function calling is not supported by this model
        "##;
        for [meaning, field, message] in rows(table) {
            let error = ServerError {
                field: field.trim_matches('-').to_owned(),
                ..ServerError::new(message)
            };
            for status in [400, 422] {
                let request = offering(&["x__say", "r__term"]);
                let found = judge(&error, Some(status), &request);
                assert_eq!(format!("{found:?}"), meaning, "{field} {message}");
            }
            // The only tool is the one.
            if meaning == "RejectsToolSchema" {
                let found = judge(&error, Some(400), &offering(&["x__say"]));
                assert_eq!(found, ErrorClass::RejectsTool(0), "{field} {message}");
                let found = judge(&error, Some(400), &offering::<&str>(&[]));
                assert_ne!(found, ErrorClass::RejectsToolSchema, "{field} {message}");
            }
        }
        // The schema of the answer is meant, or may be.
        let table = r##"
            Rejects(Form) | 400 | Invalid schema for response_format 'answer': In context=(), 'required' is required to be supplied and to be an array including every key in properties. Missing 'a'
            Other | 400 | 'required' is required to be supplied and to be an array including every key in properties. Missing 'a'
        "##;
        check(&[OptionalField::Form], table);
    }

    #[test]
    fn a_limit_that_is_too_large_is_lowered_only_if_q_chose_it_and_never_counts_as_a_long_prompt() {
        let table = r##"
            OwnLimitTooLarge(4096) | LimitTooLarge(Some(4096)) | 400 | max_tokens: 16384 > 4096, which is the maximum
            OwnLimitTooLarge(8180) | LimitFillsContext(Some(8180)) | 400 | input length and `max_tokens` exceed context limit: 12 + 16384 > 8192
            OwnLimitTooLarge(10000) | TooLongWithLimit(10000) | 400 | input length and `max_tokens` exceed context limit: 190000 + 16384 > 200000
            OwnLimitTooLarge(15000) | LimitFillsContext(Some(15000)) | 400 | This model's maximum context length is 20000 tokens. However, you requested 21384 tokens (5000 in the messages, 16384 in the completion).
            TooLong | TooLong | 400 | input length and `max_tokens` exceed context limit: 199990 + 16384 > 200000
            LimitTooLarge(None) | LimitTooLarge(None) | 400 | max_tokens is too large
            Transient | Transient | 429 | tokens exceed the limit of max_tokens 9000 per minute
        "##;
        for [own, chosen, status, words] in rows(table) {
            let by_user = LimitOrigin::Field("max_tokens".to_owned());
            for (origin, expected) in [
                (LimitOrigin::Own, own),
                (LimitOrigin::Setting, chosen),
                (by_user, chosen),
            ] {
                let limit = TokenLimit {
                    tokens: 16384,
                    origin,
                };
                let request = Request {
                    limit: Some(limit),
                    ..Request::default()
                };
                let found = judge(&ServerError::new(words), status.parse().ok(), &request);
                assert_eq!(format!("{found:?}"), expected, "{words}");
            }
        }
    }

    #[test]
    fn a_full_context_is_about_the_limit_only_where_the_user_set_it_and_the_prompt_is_small() {
        // The meaning where q chose the limit, where none was sent, and where the user chose it.
        let table = r##"
            OwnLimitTooLarge(7967) | TooLong | LimitFillsContext(Some(7967)) | This model's maximum context length is 8192 tokens. However, you requested 8225 tokens (225 in the messages, 8000 in the completion).
            OwnLimitTooLarge(119368) | TooLong | LimitFillsContext(Some(119368)) | This endpoint's maximum context length is 204800 tokens. However, you requested about 205432 tokens (81684 of text input, 3748 of tool input, 120000 in the output).
            TooLong | TooLong | LimitFillsContext(None) | This model's maximum context length is 20000 tokens. However, you requested 16384 output tokens and your prompt contains at least 3617 input tokens, for a total of at least 20001 tokens.
            OwnLimitTooLarge(3192) | TooLong | TooLongWithLimit(3192) | This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (5000 in the messages, 4000 in the completion).
            OwnLimitTooLarge(3692) | TooLong | TooLongWithLimit(3692) | This model's maximum context length is 8192 tokens. However, you requested 20500 tokens (4500 in the messages, 16000 in the completion).
            TooLong | TooLong | TooLong | input length and `max_tokens` exceed context limit: 199990 + 16384 > 200000
            TooLong | TooLong | LimitTooLarge(None) | input tokens 100000 plus max_tokens 8000 exceed the context window of 64000
            OwnLimitTooLarge(4096) | LimitTooLarge(Some(4096)) | LimitTooLarge(Some(4096)) | max_tokens is too large: 9000, at most 4096
            Other | Other | Other | Plan: context 8192, 8000 output tokens, 1000 input tokens
        "##;
        for [own, unset, chosen, words] in rows(table) {
            for (origin, expected) in [
                (Some(LimitOrigin::Own), own),
                (None, unset),
                (Some(LimitOrigin::Setting), chosen),
                (Some(LimitOrigin::Field("max_tokens".to_owned())), chosen),
            ] {
                let limit = origin.map(|origin| TokenLimit {
                    tokens: 16384,
                    origin,
                });
                let request = Request {
                    limit,
                    ..Request::default()
                };
                let found = judge(&ServerError::new(words), Some(400), &request);
                assert_eq!(format!("{found:?}"), expected, "{words}");
            }
        }
    }

    #[test]
    fn an_error_that_passes_is_transient_also_with_a_word_for_a_bad_request_or_for_pictures() {
        let table = r##"
            Transient | - | {"error":{"type":"invalid_request_error","code":"rate_limit_exceeded","message":"Rate limit reached, slow down"}}
            Transient | - | {"error":{"type":"invalid_request_error","code":"server_error","message":"The server had an error"}}
            Transient | - | {"error":{"type":"bad_request","code":"too_many_requests","message":"busy"}}
            Transient | - | {"error":{"type":"invalid_request_error","code":"overloaded_error","message":"response_format pool"}}
            Transient | 500 | 图像模型排队中，请稍后再试
            Transient | 500 | 画像モデルは混雑しています
            Transient | 500 | the image model is queued
            Transient | 502 | image worker died
            Transient | 500 | the image model is queued; contact support
            Transient | - | {"error":{"type":"server_error","message":"the image model is queued"}}
            Transient | 503 | 图像模型排队中
            Transient | 429 | 图像模型排队中
            Rejects(Attachments) | 500 | 当前模型不支持图片
            Rejects(Attachments) | 500 | Failed to load image or audio file
            Rejects(Attachments) | 500 | images are not supported
            Rejects(Attachments) | 400 | 图像模型
        "##;
        check(ALL, table);
    }

    #[test]
    fn a_limit_of_tokens_is_rejected_only_where_nothing_else_is_named() {
        let table = r##"
            Rejects(Effort) | Unsupported parameter: 'max_tokens' is not supported when 'reasoning_effort' is set
            Rejects(Effort) | The following parameters are not supported: max_tokens, reasoning_effort
            Rejects(Form) | response_format and max_tokens not supported together
            WrongKey | Invalid API key; max_tokens not supported
            UnknownModel | {"error":{"message":"The model `m` does not exist or max_tokens is not supported","code":"model_not_found"}}
            RejectsLimit | Unsupported parameter: 'max_tokens'
            RejectsLimit | {"error":{"message":"max_tokens is not supported","type":"invalid_request_error"}}
            RejectsLimit | This model doesn't support max_tokens
            RejectsLimit | {"detail":"Unknown field: maxTokens"}
        "##;
        for [meaning, body] in rows(table) {
            let limit = TokenLimit {
                tokens: 99,
                origin: LimitOrigin::Setting,
            };
            let request = Request {
                limit: Some(limit),
                ..asking_for(ALL)
            };
            let found = judge(&read(body).expect(body), Some(400), &request);
            assert_eq!(format!("{found:?}"), meaning, "{body}");
        }
    }

    #[test]
    fn words_for_something_else_are_no_rejection() {
        let fields = &[OptionalField::Effort, OptionalField::Form];
        let table = r##"
            Other | 400 | A signature for thinking is required in messages.1.content.0
            Other | 400 | this endpoint requires thinking blocks to be passed back
            Other | 400 | thinking cannot be disabled in the turn before a tool result
            Rejects(Effort) | 400 | Provider returned error: Reasoning is mandatory for this endpoint
            Other | 400 | Unknown beta header structured-outputs-2025-11-13
            WrongKey | 400 | Invalid API key for json_mode
            Other | 400 | total message size is 12
            TooLong | 400 | total message size 4266000 exceeds limit 4194304
            not TooLong | 404 | page context shift is disabled
            TooLong | 500 | context shift is disabled
        "##;
        check(fields, table);
        let table = r##"
            not RejectsTools | 400 | messages[2].tool_calling is not supported
            RejectsTools | 400 | tool_calling is not supported
        "##;
        for [meaning, status, message] in rows(table) {
            let error = ServerError::new(message);
            let found = judge(&error, status.parse().ok(), &Request::default());
            let is_meant = found == ErrorClass::RejectsTools;
            assert_eq!(is_meant, meaning == "RejectsTools", "{message}");
        }
        assert!(!says_no_images("m does not support feature: image-output"));
        assert!(says_no_images("m does not support feature: image-input"));
    }

    #[test]
    fn a_limit_of_tokens_that_a_server_does_not_take_is_recognized_only_by_its_name() {
        let table = r##"
            yes | {"detail":"Unsupported parameter: max_output_tokens"}
            yes | {"error":{"message":"Unsupported parameter: 'max_tokens'","param":null}}
            yes | Unsupported parameter: 'max_tokens' is not supported with this model.
            yes | Unrecognized request argument supplied: max_tokens
            yes | max_tokens: Extra inputs are not permitted
            yes | Invalid JSON payload received. Unknown name "maxOutputTokens" at 'generation_config': Cannot find field.
            yes | json: unknown field "max_tokens"
            yes | {"detail":[{"loc":["body","max_tokens"],"msg":"Extra inputs are not permitted"}]}
            yes | {"error":{"message":"Unsupported parameter","param":"max_tokens"}}
            no | Unsupported parameter: 'temperature'. Supported are: 'max_tokens', 'top_p'
            no | Unsupported parameter: temperature (max_tokens is fine)
            no | {"error":{"message":"Unsupported parameter: 'top_k'","param":"top_k"}}
            no | {"error":{"message":"no","param":"max_tokens"}}
            no | the field max_tokens must be a number
        "##;
        for [is_meant, body] in rows(table) {
            let error = read(body).expect(body);
            let limit = TokenLimit {
                tokens: 99,
                origin: LimitOrigin::Setting,
            };
            let request = Request {
                limit: Some(limit),
                ..Request::default()
            };
            let found = judge(&error, Some(400), &request);
            assert_eq!(
                found == ErrorClass::RejectsLimit,
                is_meant == "yes",
                "{body}"
            );
            // What was not sent cannot be rejected.
            let found = judge(&error, Some(400), &Request::default());
            assert_ne!(found, ErrorClass::RejectsLimit, "{body}");
        }
    }

    #[test]
    fn a_word_stands_for_the_status_in_an_error_inside_a_reply() {
        let table = r##"
            Rejects(System) | {"error":{"code":"server_error","message":"rpc error: code = InvalidArgument desc = Error: Jinja Exception: Only user and assistant roles are supported!","type":"server_error"}}
            Rejects(System) | {"error":{"type":"BadRequestError","message":"System role not supported"}}
            Rejects(System) | {"type":"error","error":{"type":"invalid_request_error","message":"system: no"}}
            Rejects(System) | {"error":{"status":"INVALID_ARGUMENT","message":"Developer instruction is not enabled for models/m"}}
            Rejects(Effort) | {"error":{"type":"invalid_request_error","message":"reasoning_effort is not supported"}}
            Rejects(Store) | {"error":{"type":"invalid_request_error","message":"Unknown parameter: 'store'.","param":"store"}}
            Rejects(Form) | {"error":{"type":"invalid_request_error","message":"response_format: no"}}
            Transient | {"error":{"type":"server_error","message":"response_format: no"}}
            Transient | {"error":{"code":"server_error","message":"no"}}
            Transient | {"error":{"type":"invalid_request_error","code":"rate_limit_exceeded","message":"no"}}
            Other | {"error":{"type":"invalid_request_error","message":"no"}}
            Other | {"error":"System role not supported"}
        "##;
        let request = asking_for(&[
            OptionalField::System,
            OptionalField::Effort,
            OptionalField::Store,
            OptionalField::Form,
        ]);
        for [meaning, body] in rows(table) {
            let error = read(body).expect(body);
            let found = judge(&error, None, &request);
            assert_eq!(format!("{found:?}"), meaning, "{body}");
        }
        let tool = r#"{"error":{"type":"invalid_request_error","message":"Invalid schema for function 'x__say': no"}}"#;
        let error = read(tool).expect("an error");
        let found = judge(&error, None, &offering(&["x__say"]));
        assert_eq!(found, ErrorClass::RejectsTool(0));
    }

    #[test]
    fn an_error_inside_a_reply_is_judged_like_one_with_an_http_status() {
        let table = r##"
            UnknownModel | - | {"error":"model 'x' not found"}
            UnknownModel | - | {"error":{"message":"no such model","code":404}}
            UnknownModel | - | {"error":{"type":"not_found_error","message":"model: x"}}
            Other | - | {"error":{"type":"not_found_error","message":"no"}}
            Other | 404 | Route POST:/x/v1beta/models/m:streamGenerateContent not found
            Other | 404 | The requested URL /v1/models/m:streamGenerateContent was not found on this server.
            Other | 404 | unknown endpoint: /v1beta/models/m:generateContent
            UnknownModel | 404 | resource not found: projects/p/locations/l/publishers/google/models/m1
            UnknownModel | 400 | Not found the model m1 or Permission denied
            UnknownModel | 400 | {"error":{"message":"m1 does not exist","param":"model"}}
            UnknownModel | 404 | models/m is not found for API version v1beta
            not UnknownModel | 400 | The file f-1 does not exist for this model
            Transient | - | {"error":{"message":"model x not found","code":500}}
            WrongKey | - | {"error":{"message":"No auth credentials found","code":401}}
            WrongKey | - | {"error":{"type":"authentication_error","message":"invalid x-api-key"}}
            Rejects(Form) | - | {"error":{"code":400,"message":"response_format is not supported"}}
            Rejects(Store) | - | {"error":{"code":422,"message":"Unknown parameter: 'store'."}}
            Transient | - | {"error":{"code":500,"message":"response_format and store"}}
            Other | - | {"error":{"message":"response_format and store"}}
        "##;
        check(ALL, table);
    }

    #[test]
    fn an_error_with_several_meanings_has_the_first_one_of_the_table() {
        let table = r##"
            TooLong | 400 | with this schema the prompt is too long
            TooLong | 413 | prompt is too long
            Rejects(Store) | 400 | 'store' does not exist in the model's request
            UnknownModel | 400 | the model json_object does not exist
            Rejects(Form) | 400 | no json_schema with an invalid API key
            RejectsTools | 400 | m does not support tools
            TooLarge | 413 | no room for these images
            Rejects(Attachments) | 500 | image input is not supported
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
    fn a_context_that_is_too_long_is_recognized_in_the_words_of_each_server() {
        // The words of every server are in the corpus of replies.
        let table = r##"
            TooLong | - | {"error":{"message":"no","code":"context_length_exceeded"}}
            TooLong | - | {"error":{"message":"no","type":"exceed_context_size_error"}}
            TooLong | - | {"type":"error","error":{"type":"request_too_large","message":"no"}}
            TooLong | - | {"error":"The INPUT length exceeds the context length"}
            TooLong | 400 | The request ran out of room in the model's context window.
            TooLong | - | Your input exceeds the context window of this model.
            TooLong | 400 | Prompt is 11543 tokens but the model context window is 4096 tokens.
            TooLong | 400 | prompt length 9000 > context window 8192
            TooLong | 404 | prompt is too long: 210000 tokens > 200000 maximum
            UnknownModel | 404 | model m not found; try big-m with its 1M context window
            not TooLong | 400 | m has a context window of 8192 tokens and wants no pictures
            TooLong | - | {"error":{"message":"Request too large for model m on tokens per minute (TPM): Limit 6000, Requested 9000"}}
            not TooLong | - | {"error":{"message":"max_tokens is too large"}}
            not TooLong | 429 | {"message":"Too many tokens, please wait before trying again."}
            not TooLong | 429 | Number of input tokens has exceeded the limit of your organization
            not TooLong | 400 | max_tokens exceeds the maximum allowed output length
            not TooLong | - | {"error":{"message":"rate limit"}}
        "##;
        check(ALL, table);
    }

    #[test]
    fn a_rejected_form_of_the_answer_is_recognized_by_any_of_its_names() {
        let table = r##"
            Rejects(Form) | 400 | {"error":{"message":"This model does not support response format `json_schema`."}}
            Rejects(Form) | 400 | {"error":{"message":"Invalid value","param":"response_format"}}
            Rejects(Form) | 400 | {"error":{"message":"Unknown parameter: 'text'.","param":"text"}}
            not Rejects(Form) | 400 | {"error":{"message":"the text is too odd"}}
            Rejects(Form) | 400 | {"error":{"message":"Invalid value","param":"text.format.schema"}}
            not Rejects(Form) | 400 | {"error":{"message":"Invalid value","param":"text.verbosity"}}
            Rejects(Form) | 400 | {"error":{"message":"no","code":"invalid_json_schema"}}
            Rejects(Form) | 400 | {"error":{"message":"JSON mode is not enabled for this model"}}
            Rejects(Form) | 400 | {"error":{"message":"'messages' must contain the word 'json' for 'json_object'"}}
            Rejects(Form) | 400 | {"error":{"message":"output_config: Extra inputs are not permitted"}}
            Rejects(Form) | 400 | [{"error":{"code":400,"message":"Unknown name \"responseJsonSchema\""}}]
            Rejects(Form) | 400 | {"error":{"code":400,"message":"generation_config.response_mime_type: no"}}
            Rejects(Form) | 400 | {"error":{"code":400,"message":"Failed to parse grammar"}}
            Rejects(Form) | 422 | {"detail":[{"loc":["body","response_format"],"msg":"Extra inputs are not permitted"}]}
            Rejects(Form) | 422 | {"message":{"detail":[{"loc":["body","response_format",0],"msg":"no"}]}}
            not Rejects(Form) | 422 | {"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}
            not Rejects(Form) | 500 | {"error":{"message":"response_format is not supported"}}
            not Rejects(Form) | 400 | {"error":{"message":"no"}}
            not Rejects(Form) | 400 | {"error":{"message":"The model json_object does not exist"}}
            not Rejects(Form) | 400 | {"error":{"message":"With this schema the prompt is too long"}}
        "##;
        check(ALL, table);
    }

    #[test]
    fn rejected_images_and_pdfs_are_recognized_by_the_status_and_the_words() {
        let table = r##"
            Rejects(Attachments) | 400 | no
            not Rejects(Attachments) | 413 | no
            Rejects(Attachments) | 415 | no
            Rejects(Attachments) | 404 | No endpoints found that support image input
            Rejects(Attachments) | 403 | Multimodal is not enabled for this model
            Rejects(Attachments) | 404 | The model m does not support images: not found
            Rejects(Attachments) | 404 | model: x does not support feature: vision
            Rejects(Attachments) | 403 | Image input is not enabled for this model
            Rejects(Attachments) | 400 | Image input modality is not enabled for models/gemma-3-1b-it
            Rejects(Attachments) | 400 | {"error":{"message":"Invalid content type. image_url is only supported by certain models.","param":"messages.[0].content.[0].type"}}
            Rejects(Attachments) | 400 | This model doesn't support the image content block that you provided.
            not Rejects(Attachments) | 404 | no
            Rejects(Attachments) | 500 | image input is not supported - hint: you may need to provide the mmproj
            not Rejects(Attachments) | 500 | no
            not Rejects(Attachments) | 500 | no provision, no imagination, see the documentation
            Rejects(Attachments) | 501 | This is no MULTIMODAL model
            not Rejects(Attachments) | 503 | the model llama-vision is overloaded
            not Rejects(Attachments) | 429 | too many requests for llama-vision
            not Rejects(Attachments) | 413 | with these images the prompt is too long
            not Rejects(Attachments) | 400 | The model llama-vision does not exist
            Rejects(Attachments) | - | cannot read the PDF
            not Rejects(Attachments) | - | no
            Rejects(Attachments) | - | {"error":{"code":500,"message":"no vision"}}
            not Rejects(Attachments) | - | {"error":{"code":503,"message":"no vision"}}
            Rejects(Attachments) | - | {"error":{"code":400,"message":"no","param":"messages.[0].content.[1].type"}}
            not Rejects(Attachments) | - | {"error":{"code":400,"message":"no","param":"temperature"}}
            Rejects(Attachments) | - | {"error":{"code":400,"message":"no images with it","param":"temperature"}}
            Rejects(Attachments) | - | {"code":422,"detail":[{"loc":["body","messages",0,"content"],"msg":"no"}]}
            not Rejects(Attachments) | - | {"code":422,"detail":[{"loc":["body","stream_options"],"msg":"no"}]}
        "##;
        check(ALL, table);
    }

    #[test]
    fn a_bad_request_is_about_attachments_only_if_it_says_so_or_says_nothing() {
        // DeepSeek, Groq, vLLM, Ollama, llama.cpp, Anthropic, OpenAI, Gemini, xAI, Zhipu, OpenRouter, Bedrock, proxies.
        let table = r##"
            Rejects(Attachments) | 400 | Failed to deserialize the JSON body into the target type: messages[0]: unknown variant `image_url`, expected `text` at line 1 column 212
            Rejects(Attachments) | 400 | Failed to deserialize the JSON body into the target type: messages[1]: invalid type: sequence, expected a string at line 1 column 80
            Rejects(Attachments) | 400 | {"error":{"message":"messages[0].content must be a string","type":"invalid_request_error"}}
            Rejects(Attachments) | 400 | {"object":"error","message":"m is not a multimodal model","type":"BadRequestError","param":null,"code":400}
            Rejects(Attachments) | 400 | {"object":"error","message":"At most 0 image(s) may be provided in one prompt.","code":400}
            Rejects(Attachments) | 400 | {"object":"error","message":"Unknown part type: file","type":"BadRequestError","param":null,"code":400}
            Rejects(Attachments) | 400 | json: cannot unmarshal array into Go struct field ChatMessage.messages.content of type string
            Rejects(Attachments) | 400 | {"error":{"message":"invalid image input","type":"invalid_request_error"}}
            Rejects(Attachments) | 400 | Failed to load image or audio file
            Rejects(Attachments) | 400 | messages.0.content.0.image.source.base64: The file format is invalid or unsupported
            Rejects(Attachments) | 400 | Could not process image
            Rejects(Attachments) | 400 | {"error":{"message":"Invalid MIME type. Only image types are supported.","code":"invalid_image_format"}}
            Rejects(Attachments) | 400 | {"error":{"message":"Invalid value: 'input_file'.","param":"input[0].content[0]","code":"invalid_value"}}
            Rejects(Attachments) | 400 | [{"error":{"code":400,"message":"Unsupported MIME type: application/pdf","status":"INVALID_ARGUMENT"}}]
            Rejects(Attachments) | 400 | [{"error":{"code":400,"message":"Request contains an invalid argument.","status":"INVALID_ARGUMENT"}}]
            Rejects(Attachments) | 400 | {"code":"Client specified an invalid argument","error":"Image inputs are not supported by this model."}
            Rejects(Attachments) | 400 | {"error":{"code":"1210","message":"messages.content.type 参数非法，取值范围 ['text']"}}
            Rejects(Attachments) | 400 | {"error":{"code":"1210","message":"Invalid API parameter, please check the documentation."}}
            Rejects(Attachments) | 400 | {"error":{"message":"Provider returned error","code":400}}
            Rejects(Attachments) | 422 | {"detail":[{"type":"string_type","loc":["body","messages",0,"content"],"msg":"Input should be a valid string"}]}
            Rejects(Attachments) | 400 | <html><head><title>400 Bad Request</title></head></html>
            Rejects(Attachments) | 400 | Bad Request
            Rejects(Attachments) | 400 | bad_request_error
            Rejects(Attachments) | 400 | {"error":{"message":"","type":"invalid_request_error"}}
            Rejects(Attachments) | 400 | {"error":{"message":"Invalid request","param":"messages"}}
            Rejects(Attachments) | 400 | Request failed with status code 400
            Rejects(Attachments) | 422 | Unprocessable Entity
            Rejects(Attachments) | 400 | {}
            Other | 400 | {"error":{"message":"Unsupported parameter: 'temperature' is not supported with this model.","param":"temperature","code":"unsupported_parameter"}}
            MayRejectAttachments | 400 | temperature is not supported with llama-3.2-11b-vision
            MayRejectAttachments | 400 | {"error":{"message":"Invalid 'top_p': must be at most 1","param":null}}
            MayRejectAttachments | 400 | {"error":{"message":"n must be 1"}}
            Other | 422 | {"detail":[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted"}]}
            Other | 422 | {"detail":[{"type":"string_type","loc":["body","stop"],"msg":"Input should be a valid string"}]}
            MayRejectAttachments | 400 | [{"error":{"code":400,"message":"* GenerateContentRequest.generation_config.temperature: must be in the range [0, 2]","status":"INVALID_ARGUMENT"}}]
            MayRejectAttachments | 400 | [{"error":{"code":400,"message":"Please enable billing on project p","status":"FAILED_PRECONDITION"}}]
            MayRejectAttachments | 400 | messages: roles must alternate between "user" and "assistant"
            MayRejectAttachments | 400 | {"message":"Invocation of model ID m with on-demand throughput isn't supported. Retry your request with an inference profile."}
            MayRejectAttachments | 400 | Prefilling assistant messages is not supported for this model.
            MayRejectAttachments | 400 | can only concatenate str (not "list") to str
            MayRejectAttachments | 400 | Unexpected role 'user' after role 'tool'
            Rejects(Attachments) | 422 | 当前模型不支持图片
            Rejects(Attachments) | 400 | {"error":{"message":"该模型不支持图像输入","code":"invalid_parameter_error"}}
            Rejects(Attachments) | 400 | 此模型不支援圖片輸入
            Rejects(Attachments) | 400 | このモデルは画像入力に対応していません。
            Rejects(Attachments) | 400 | 이 모델은 이미지를 지원하지 않습니다.
            MayRejectAttachments | 400 | 参数 temperature 不合法
            Other | 404 | can only concatenate str (not "list") to str
            WantsTls | 400 | The plain HTTP request was sent to HTTPS port
            MayRejectAttachments | 400 | Unsupported API version. Content-Type must be application/json
            UnknownModel | 400 | invalid model name: llama-vision
            Spent | 400 | Your credit balance is too low to access the Anthropic API.
            WrongKey | 400 | API key not valid. Please pass a valid API key.
            TooLong | 400 | prompt is too long: 210000 tokens > 200000 maximum
            LimitTooLarge(None) | 400 | max_tokens is too large
        "##;
        for [meaning, status, body] in rows(table) {
            let error = read_redacted(body, &Secrets::default());
            let request = asking_for(&[OptionalField::Attachments]);
            let found = judge(&error, status.parse().ok(), &request);
            assert_eq!(format!("{found:?}"), meaning, "{status} {body}");
        }
    }

    #[test]
    fn a_rejected_field_is_recognized_in_the_message_or_in_a_field_of_its_own() {
        let table = r##"
            Rejects(Store) | 400 | {"error":{"message":"Unknown parameter: 'store'."}}
            Rejects(Store) | 400 | {"error":{"message":"Unsupported parameter","param":"store"}}
            Rejects(Store) | 400 | {"error":"Bad Request","param":"store","message":"no"}
            Rejects(Store) | 400 | {"error":{"message":"no","param":"input[0].store"}}
            not Rejects(Store) | 400 | {"error":{"message":"no","param":"stored"}}
            not Rejects(Store) | 400 | {"error":{"message":"Unknown parameter: 'vector_store'.","param":null}}
            not Rejects(Store) | 400 | {"detail":[{"loc":["body",0],"msg":"no"}]}
        "##;
        check(ALL, table);
    }

    #[test]
    fn a_rejected_effort_is_recognized_by_any_of_its_names() {
        let table = r##"
            Rejects(Effort) | 400 | {"error":{"message":"reasoning_effort='low' is not supported for this model. Must be one of ('none', 'high')","code":"3051"}}
            Rejects(Effort) | 400 | This model does not support the effort parameter.
            Rejects(Effort) | 400 | output_config.effort 'max' is not supported when thinking is disabled on this model.
            Rejects(Effort) | 400 | level "max" not supported, valid levels: low, medium, high, xhigh
            Rejects(Effort) | 400 | {"error":{"message":"The request was malformed.\nlevel \"max\" not supported, valid levels: low, medium"}}
            Rejects(Effort) | 400 | reasoning_effort must be one of: no_think, low, high
            not Rejects(Effort) | 400 | log level "max" not supported
            Rejects(Effort) | 400 | Model grok-build does not support parameter reasoningEffort.
            Rejects(Effort) | 400 | Thinking level MEDIUM is not supported for this model.
            Rejects(Effort) | 400 | Unknown name "thinkingLevel" at 'generation_config.thinking_config': Cannot find field.
            Rejects(Effort) | 422 | body.reasoning: property 'body.reasoning' is unsupported
            Rejects(Effort) | 400 | {"error":{"message":"Invalid API parameter, please check the documentation.","code":"1210"}}
            not Rejects(Effort) | 400 | {"error":{"message":"Invalid API parameter, please check the documentation.","code":"1211"}}
            not Rejects(Effort) | 400 | at most 1210 pixels
            not Rejects(Effort) | 400 | {"error":{"message":"The images are too many.","code":"121001"}}
            not Rejects(Effort) | 500 | reasoning_effort is not supported
            not Rejects(Effort) | 400 | temperature is not supported by grok-4-fast-reasoning
            not Rejects(Effort) | 400 | The model grok-4-fast-reasoning does not exist
            Rejects(Effort) | 400 | output_config: Extra inputs are not permitted
            Rejects(Effort) | 400 | {"error":{"code":1210,"message":"Invalid API parameter."}}
        "##;
        check(&[OptionalField::Effort], table);
        check_never(&[], "Rejects(Effort)", table);
        // One object of Anthropic's has the form, too.
        let table = r##"
            Rejects(Effort) | 400 | {"error":{"message":"no","param":"reasoning.effort"}}
            Rejects(Form) | 400 | output_config: Extra inputs are not permitted
            Rejects(Effort) | 400 | output_config.effort: Input should be 'low'
            Rejects(Form) | 400 | output_config.format.schema: no
        "##;
        check(ALL, table);
    }

    #[test]
    fn a_rejected_cache_field_is_recognized_only_if_the_error_names_it() {
        let table = r##"
            Rejects(Cache) | 400 | {"error":{"type":"invalid_request_error","message":"cache_control: Extra inputs are not permitted"}}
            Rejects(Cache) | 400 | {"error":{"message":"Unknown field `cache_control`."}}
            Rejects(Cache) | 400 | {"detail":[{"loc":["body","cache_control"],"msg":"no"}]}
            not Rejects(Cache) | 400 | {"error":{"message":"no"}}
        "##;
        check(ALL, table);
        check_never(
            &[OptionalField::Effort, OptionalField::Form],
            "Rejects(Cache)",
            table,
        );
    }

    #[test]
    fn transient_errors_are_recognized_by_status_or_type() {
        let table = r##"
            Transient | - | {"error":{"message":"x","code":429}}
            not Transient | - | {"error":{"message":"x","code":400}}
            not Transient | - | {"error":{"message":"x","type":"server_error","code":400}}
            Transient | - | {"error":{"message":"x","type":"overloaded_error"}}
            Transient | - | {"error":{"message":"x","type":"rate_limit_error","code":1302}}
            Transient | - | {"error":{"message":"x","type":"rate_limit_error","code":"1302"}}
            Transient | - | {"error":{"message":"x","type":"server_error","code":50001}}
            Transient | - | {"error":{"message":"x","type":"server_error","code":0}}
            Transient | - | {"error":{"message":"x","code":50001,"status":503}}
            not Transient | - | {"error":{"message":"x","type":"invalid_request_error","code":1210}}
            not Transient | - | {"error":{"message":"x","type":"server_error","code":599}}
            Transient | - | {"error":{"message":"x","status":"UNAVAILABLE"}}
            Transient | - | {"error":{"message":"x","code":"server_is_overloaded"}}
            not Transient | - | {"error":{"message":"x","type":"invalid_request_error"}}
            not Transient | - | {"error":"x"}
        "##;
        check(&[], table);
    }
}
