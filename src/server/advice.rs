//! What to do about an error that a provider reports (pure).

use std::time::Duration;

use crate::provider::failure::{ErrorClass, TRANSIENT_STATUSES};
use crate::provider::request::{LimitOrigin, OptionalField, Request};
use crate::provider::table;
use crate::text::size::in_time_units;

/// The advice for each class of error for which it depends on nothing else.
const ADVICE: &[(ErrorClass, &str)] = &[
    (
        ErrorClass::Loading,
        "raise the timeout setting (Q_TIMEOUT) to wait longer, because the model is still loading",
    ),
    (
        ErrorClass::Rejects(OptionalField::Attachments),
        "choose another model with -m, because this one may not read images or PDFs, or not so many; \
         in a follow-up, omit earlier ones with --messages 0",
    ),
    (
        ErrorClass::RejectsContent,
        "ask another model with -m or -p, because this one refuses the text or the pictures, not the key",
    ),
    (
        ErrorClass::RejectsPlace,
        "ask another provider with -p, because this one refuses the country or the network, not the key",
    ),
    (
        ErrorClass::RejectsStream,
        "ask for the answer in one piece: --no-stream",
    ),
    (
        ErrorClass::NeedsStream,
        "leave out --no-stream (stream = false), because the server only streams",
    ),
    (
        ErrorClass::LacksSignature,
        "ask another model or provider with -m or -p, or ask without tools: -t none, \
         because this server does not pass on what the model wants back with its calls",
    ),
    (
        ErrorClass::RejectsTools,
        "choose another model with -m, or ask without tools: -t none",
    ),
    (
        ErrorClass::RejectsToolSchema,
        "offer other tools with -t 'NAME__list_*', or only = [...] in [tools.NAME], \
         because the server rejects the schema of one",
    ),
    (
        ErrorClass::ToolsSwitchedOff,
        "start the server with the option that it names, or ask without tools: -t none",
    ),
    (
        ErrorClass::TooManyTools,
        "offer fewer tools with -t 'NAME__list_*', or only = [...] in [tools.NAME]",
    ),
];

/// Advice where a page came in the place of the API.
pub const INTERCEPTED: &str =
    "try another network, because a firewall or a proxy sent this page, so the key may be right";

/// Advice where the quota or the money is used up.
const SPENT: &str = "check plan and billing at the provider, or ask another one with -p";

/// Advice where a request with files is too large.
const FEWER_FILES: &str = "send fewer or smaller images and PDFs; \
    in a follow-up, omit earlier ones with --messages 0";

/// Advice where the prompt is too long.
const SHORTER: &str = "send less input, or ask a model with a larger context with -m";

/// Advice where the request is too large.
const LESS_INPUT: &str = "send less input or, in a follow-up, --messages 0";

/// Advice where a server fails again and again.
const SERVER_FAILS: &str =
    "try again later, or ask another model with -m or another provider with -p";

/// The same where the server runs on this machine.
const LOCAL_SERVER_FAILS: &str =
    "look into the log of the server for the cause, or ask another model with -m";

/// The same where the server does not say which models it has.
const LIST_FAILS: &str = "try again later, or ask a model by its name with -m";

/// An error that a provider reported, as far as the advice depends on it.
pub struct Rejection<'a> {
    pub meaning: ErrorClass,
    /// The status; `None` if the error came inside a reply.
    pub status: Option<u16>,
    pub request: &'a Request,
    /// Whether it is the client that has to wait, and not the server that fails.
    pub is_about_client: bool,
    /// How long the server asks to wait before another try.
    pub retry_after: Option<Duration>,
    /// Whether the server runs on this machine.
    pub is_local: bool,
}

impl Rejection<'_> {
    /// Returns what to do. `key_advice` is for a key that is wrong or missing.
    pub fn advice(&self, provider: &str, key_advice: Option<&str>) -> Option<String> {
        let mut known = ADVICE.iter();
        if let Some((_, advice)) = known.find(|(meaning, _)| *meaning == self.meaning) {
            return Some((*advice).to_owned());
        }
        let list = format!("q --models -p {provider}");
        let check = check_base_url(provider);
        let advice = match self.meaning {
            ErrorClass::WrongKey => return key_advice.map(str::to_owned),
            ErrorClass::UnknownModel => format!("run {list} to list its models"),
            ErrorClass::CannotChat => {
                format!("choose another model with -m; run {list} to list its models")
            }
            ErrorClass::NeedsResponses => format!(
                "set api = \"responses\" in [providers.{provider}] of config.toml, because the model answers through that API alone"
            ),
            ErrorClass::NoAccess => format!(
                "choose another model with -m, because the server refuses this one, not the key; run {list} to list its models"
            ),
            ErrorClass::Intercepted => format!("{INTERCEPTED}; {check}"),
            ErrorClass::WantsTls => format!("begin its URL with https://; {check}"),
            ErrorClass::Spent => match try_again_in(self.retry_after) {
                Some(when) => format!("{when}; {SPENT}"),
                None => SPENT.to_owned(),
            },
            ErrorClass::TooLong => self.shorten(),
            ErrorClass::TooLarge if self.has_attachments() => FEWER_FILES.to_owned(),
            ErrorClass::TooLarge => LESS_INPUT.to_owned(),
            ErrorClass::TooLongWithLimit(most) => {
                format!("{}; {}", self.lower_limit(Some(most)), self.shorten())
            }
            ErrorClass::OwnLimitTooLarge(most) => self.lower_limit(Some(most)),
            ErrorClass::LimitTooLarge(most) | ErrorClass::LimitFillsContext(most) => {
                self.lower_limit(most)
            }
            ErrorClass::RejectsLimit | ErrorClass::Rejects(OptionalField::Limit) => {
                return self.unset_limit();
            }
            _ if matches!(self.status, Some(404 | 405)) => {
                format!("{check}; check the model: run {list} to list the models")
            }
            _ => {
                let wait = try_again_in(self.retry_after).filter(|_| self.may_pass());
                return wait.or_else(|| self.advice_on_failure());
            }
        };
        Some(advice)
    }

    fn has_attachments(&self) -> bool {
        let asked = &self.request.optional_fields;
        asked.contains(&OptionalField::Attachments)
    }

    /// Whether the same request may succeed later, so that it helps to wait. What a server says of a wait may be about others.
    fn may_pass(&self) -> bool {
        let has_status = |status| TRANSIENT_STATUSES.contains(&status);
        self.meaning == ErrorClass::Transient || self.status.is_some_and(has_status)
    }

    /// Says to make the prompt shorter.
    fn shorten(&self) -> String {
        if self.has_attachments() {
            return format!("{FEWER_FILES}; {SHORTER}");
        }
        SHORTER.to_owned()
    }

    /// Says to lower what has set the limit of tokens, to at most as many as the server accepts, if it names that.
    fn lower_limit(&self, most: Option<u64>) -> String {
        let limit = self.request.limit.as_ref();
        let origin = limit.map_or(&LimitOrigin::Setting, |limit| &limit.origin);
        match most {
            Some(most) => format!("lower {origin} to at most {most}"),
            None => format!("lower {origin}"),
        }
    }

    /// Says to leave out what has set the limit of tokens, unless it is q's own.
    fn unset_limit(&self) -> Option<String> {
        match &self.request.limit.as_ref()?.origin {
            LimitOrigin::Own => None,
            LimitOrigin::Field(name) => Some(format!("leave out {name} (-o or options)")),
            LimitOrigin::Setting => Some("unset max_tokens (Q_MAX_TOKENS)".to_owned()),
        }
    }

    /// Says what to do where the server itself fails, and may do better later.
    fn advice_on_failure(&self) -> Option<String> {
        if self.meaning != ErrorClass::Transient || self.is_about_client {
            return None;
        }
        let advice = if self.request.lists_models() {
            LIST_FAILS
        } else if self.is_local {
            LOCAL_SERVER_FAILS
        } else {
            SERVER_FAILS
        };
        Some(advice.to_owned())
    }
}

/// Returns advice for a response that does not come from an API.
pub fn check_base_url(provider: &str) -> String {
    let variable = table::base_url_variable(provider);
    format!("check the base URL: {variable} or base_url in config.toml sets it")
}

/// Returns advice for a response in the form of this API, which is not the one that was asked for.
pub fn set_api(provider: &str, api: &str) -> String {
    let check = check_base_url(provider);
    format!(
        "set api = \"{api}\" in [providers.{provider}] of config.toml to ask in that form; {check}"
    )
}

/// Returns advice for a response in the form of no API that q speaks.
pub fn check_api(provider: &str) -> String {
    let check = check_base_url(provider);
    format!("{check}; check the API: api in [providers.{provider}] of config.toml sets it")
}

/// Returns advice to wait as long as the server asks; `None` if it asks for no wait.
fn try_again_in(asked: Option<Duration>) -> Option<String> {
    let asked = asked.filter(|asked| !asked.is_zero())?;
    let wait = in_time_units(asked);
    Some(format!("try again in {wait}, as the server asks"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::failure;
    use crate::secret::Secrets;
    use crate::text::table::rows;

    #[test]
    fn a_rejected_request_gets_the_advice_for_its_class_of_error() {
        let no_model = "run q --models -p p to list its models";
        let wrong_address = "check the base URL: P_BASE_URL or base_url in config.toml sets it; \
                             check the model: run q --models -p p to list the models";
        let other_model = "choose another model with -m, because the server refuses this one, not the key; run q --models -p p to list its models";
        let intercepted = "try another network, because a firewall or a proxy sent this page, so the key may be right; \
                           check the base URL: P_BASE_URL or base_url in config.toml sets it";
        let fewer_and_shorter = format!("{FEWER_FILES}; {SHORTER}");
        let known = |meaning| {
            let mut known = ADVICE.iter();
            let (_, advice) = known.find(|(of, _)| *of == meaning).expect("advice");
            Some(*advice)
        };
        // The advice, or whether the request is sent again.
        let meant = |word: &str| match word {
            "hint" => (
                known(ErrorClass::Rejects(OptionalField::Attachments)),
                false,
            ),
            "fewer" => (Some(FEWER_FILES), false),
            "fewer, shorter" => (Some(&*fewer_and_shorter), false),
            "shorter" => (Some(SHORTER), false),
            "model" => (Some(no_model), false),
            "key" => (Some("check the key"), false),
            "tools" => (known(ErrorClass::RejectsTools), false),
            "off" => (known(ErrorClass::ToolsSwitchedOff), false),
            "stream" => (known(ErrorClass::RejectsStream), false),
            "content" => (known(ErrorClass::RejectsContent), false),
            "place" => (known(ErrorClass::RejectsPlace), false),
            "page" => (Some(intercepted), false),
            "access" => (Some(other_model), false),
            "spent" => (Some(SPENT), false),
            "less" => (Some(LESS_INPUT), false),
            "address" => (Some(wrong_address), false),
            "again" => (None, true),
            "later" => (Some(SERVER_FAILS), true),
            _ => (None, false),
        };
        let table = r##"
            400 | hint | - | no
            400 | - | - | temperature is too high
            400 | fewer, shorter | shorter | prompt is too long
            413 | fewer | less | no
            404 | tools | tools | No endpoints found that support tool use
            500 | off | off | tools param requires --jinja flag
            400 | stream | stream | Your organization must be verified to stream this model.
            403 | content | content | Content violates usage guidelines.
            403 | place | place | Country, region, or territory not supported
            403 | access | access | You are not allowed to sample from this model
            429 | spent | spent | You have reached your specified workspace API usage limits.
            413 | fewer, shorter | shorter | prompt is too long
            500 | fewer, shorter | shorter | context shift is disabled
            400 | model | model | invalid model
            401 | key | key | no images
            403 | page | page | <html><title>Just a moment...</title></html>
            401 | key | key | <html><title>401 Authorization Required</title></html>
            503 | later | later | <html><title>Just a moment...</title></html>
            400 | tools | tools | m does not support tools
            404 | address | address | no
            404 | hint | address | no image input
            429 | again | again | too many images
            500 | hint | later | image input is not supported - hint: you may need to provide the mmproj
            500 | later | later | no
            529 | later | later | Overloaded
            - | later | later | {"error":{"type":"overloaded_error","message":"Overloaded"}}
            - | again | again | {"error":{"message":"Rate limit exceeded","code":429}}
            - | again | again | {"error":{"message":"no","type":"tokens","code":"rate_limit_exceeded"}}
            - | again | again | {"error":{"message":"Provider openai: rate limited","type":"api_error","code":null}}
            500 | again | again | upstream: Too Many Requests
            503 | again | again | RateLimitError
            501 | - | - | no
            - | hint | - | image input is not supported - hint: you may need to provide the mmproj
            - | model | model | invalid model
            - | key | key | invalid API key
            - | tools | tools | m does not support tools
            - | - | - | no
        "##;
        for [status, with_attachments, without, message] in rows(table) {
            let status: Option<u16> = status.parse().ok();
            for (has_attachments, expected) in [(true, with_attachments), (false, without)] {
                let mut request = Request {
                    body: Some("{}".to_owned()),
                    ..Request::default()
                };
                if has_attachments {
                    request.optional_fields.push(OptionalField::Attachments);
                }
                let error = failure::read_redacted(message, &Secrets::default());
                let meaning = failure::judge(&error, status, &request);
                let rejection = Rejection {
                    meaning,
                    status,
                    request: &request,
                    is_about_client: failure::is_about_client(&error, status),
                    retry_after: None,
                    is_local: false,
                };
                let advice = rejection.advice("p", Some("check the key"));
                let found = (advice.as_deref(), meaning == ErrorClass::Transient);
                let wanted = meant(expected);
                assert_eq!(found, wanted, "{status:?} {message} {has_attachments}");
                if expected == "later" {
                    let local = Rejection {
                        is_local: true,
                        ..rejection
                    };
                    let advice = local.advice("p", None);
                    assert_eq!(advice.as_deref(), Some(LOCAL_SERVER_FAILS), "{message}");
                }
            }
        }
    }

    #[test]
    fn fewer_files_are_advised_next_to_a_lower_limit() {
        let request = Request {
            optional_fields: vec![OptionalField::Attachments],
            ..Request::default()
        };
        let rejection = Rejection {
            meaning: ErrorClass::TooLongWithLimit(4096),
            status: Some(400),
            request: &request,
            is_about_client: false,
            retry_after: None,
            is_local: false,
        };
        let advice = rejection.advice("p", None);
        let lower = "lower max_tokens (Q_MAX_TOKENS) to at most 4096";
        assert_eq!(advice, Some(format!("{lower}; {FEWER_FILES}; {SHORTER}")));
    }

    #[test]
    fn a_wait_is_advised_only_where_it_can_help() {
        for (meaning, status, is_advised) in [
            (ErrorClass::Transient, None, true),
            (ErrorClass::Transient, Some(429), true),
            // The server asks for no other try.
            (ErrorClass::Other, Some(429), true),
            (ErrorClass::Other, Some(503), true),
            (ErrorClass::Other, Some(400), false),
            (ErrorClass::Other, Some(422), false),
            (ErrorClass::Other, None, false),
        ] {
            let request = Request::default();
            let rejection = Rejection {
                meaning,
                status,
                request: &request,
                is_about_client: true,
                retry_after: Some(Duration::from_secs(12)),
                is_local: false,
            };
            let advice = rejection.advice("p", None);
            let expected = is_advised.then_some("try again in 12 s, as the server asks");
            assert_eq!(advice.as_deref(), expected, "{meaning:?} {status:?}");
        }
    }

    #[test]
    fn advice_never_names_a_shorter_wait_than_the_server_asks_for() {
        for (asked, wait) in [
            (None, None),
            (Some(0), None),
            (Some(500), Some("1 s")),
            (Some(2_000), Some("2 s")),
            (Some(579_600_000), Some("6 d 17 h")),
        ] {
            let expected = wait.map(|wait| format!("try again in {wait}, as the server asks"));
            let found = try_again_in(asked.map(Duration::from_millis));
            assert_eq!(found, expected, "{asked:?}");
        }
    }
}
