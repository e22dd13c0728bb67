//! What to do about an error that a provider reports (pure).

use std::time::Duration;

use crate::provider::failure::{ErrorClass, TRANSIENT_STATUSES};
use crate::provider::request::{LimitOrigin, OptionalField, Request};
use crate::provider::table;
use crate::text::size::in_time_units;

/// Advice where a model cannot call tools.
const ASK_WITHOUT_TOOLS: &str = "choose another model with -m\nask without tools: -t none";

/// Advice where the server was started without what tools need.
const TOOLS_SWITCHED_OFF: &str =
    "start the server with the option that it names\nask without tools: -t none";

/// Advice where the answer cannot be streamed.
const NO_STREAM: &str = "ask for the answer in one piece: --no-stream";

/// Advice where the provider rejects the content of the question.
const OTHER_CONTENT: &str =
    "this is about the text or the pictures, not about the key: ask another model with -m or -p";

/// Advice where the provider does not serve a place.
const OTHER_PLACE: &str =
    "this is about the country or the network, not about the key: ask another provider with -p";

/// Advice where a page came in the place of the API.
pub const INTERCEPTED: &str =
    "a firewall or a proxy sent this page, so the key may be right: try another network";

/// Advice where a request has too many tools.
const FEWER_TOOLS: &str =
    "offer fewer tools with -t 'NAME__list_*', or only = [...] in [tools.NAME]";

/// Advice where a tool has a schema that the server does not take, and it does not say which one.
const OTHER_TOOLS: &str = "it rejects the schema of a tool: offer others with -t 'NAME__list_*', or only = [...] in [tools.NAME]";

/// Advice where the quota or the money is used up.
const SPENT: &str = "check plan and billing at the provider, or ask another one with -p";

/// Advice where the model may not read the files.
const OTHER_FILES: &str = "the model may not read images or PDFs, or not so many: choose another one with -m\n\
    in a follow-up, omit earlier images and PDFs with --messages 0";

/// Advice where a request with files is too large.
const FEWER_FILES: &str = "send fewer or smaller images and PDFs\n\
    in a follow-up, omit earlier ones with --messages 0";

/// Advice where the prompt is too long.
const SHORTER: &str = "a question with less input, or a model with a larger context (-m), may work";

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
    /// Says what to do. `key_advice` is for a key that is wrong or missing.
    pub fn advice(&self, provider: &str, key_advice: Option<&str>) -> Option<String> {
        let list = format!("q --models -p {provider}");
        let advice = match self.meaning {
            ErrorClass::UnknownModel => format!("{list} lists its models"),
            ErrorClass::WrongKey => return key_advice.map(str::to_owned),
            ErrorClass::Intercepted => format!("{INTERCEPTED}\n{}", check_base_url(provider)),
            ErrorClass::NoAccess => {
                format!(
                    "this is about the model, not about the key: choose another one with -m; {list} lists them"
                )
            }
            ErrorClass::WantsTls => {
                format!("begin its URL with https://\n{}", check_base_url(provider))
            }
            ErrorClass::RejectsContent => OTHER_CONTENT.to_owned(),
            ErrorClass::RejectsPlace => OTHER_PLACE.to_owned(),
            ErrorClass::CannotChat => {
                format!("choose another model with -m; {list} lists its models")
            }
            ErrorClass::Loading => {
                "the model is still loading; raise the timeout setting (Q_TIMEOUT) to wait longer"
                    .to_owned()
            }
            ErrorClass::RejectsTools => ASK_WITHOUT_TOOLS.to_owned(),
            ErrorClass::ToolsSwitchedOff => TOOLS_SWITCHED_OFF.to_owned(),
            ErrorClass::RejectsStream => NO_STREAM.to_owned(),
            ErrorClass::TooManyTools => FEWER_TOOLS.to_owned(),
            ErrorClass::RejectsToolSchema => OTHER_TOOLS.to_owned(),
            ErrorClass::Spent => match try_again_in(self.retry_after) {
                Some(when) => format!("{when}; {SPENT}"),
                None => SPENT.to_owned(),
            },
            ErrorClass::Rejects(OptionalField::Attachments) => OTHER_FILES.to_owned(),
            ErrorClass::TooLarge if self.has_attachments() => FEWER_FILES.to_owned(),
            ErrorClass::TooLong if self.has_attachments() => format!("{FEWER_FILES}\n{SHORTER}"),
            ErrorClass::TooLong => SHORTER.to_owned(),
            ErrorClass::TooLarge => LESS_INPUT.to_owned(),
            ErrorClass::LimitTooLarge(Some(most))
            | ErrorClass::LimitFillsContext(Some(most))
            | ErrorClass::OwnLimitTooLarge(most) => {
                format!("{} to at most {most}", self.lower_limit())
            }
            ErrorClass::TooLongWithLimit(most) => {
                let lower = self.lower_limit();
                let files = if self.has_attachments() {
                    format!("{FEWER_FILES}\n")
                } else {
                    String::new()
                };
                format!("{lower} to at most {most}\n{files}{SHORTER}")
            }
            ErrorClass::LimitTooLarge(None) | ErrorClass::LimitFillsContext(None) => {
                self.lower_limit()
            }
            ErrorClass::RejectsLimit | ErrorClass::Rejects(OptionalField::Limit) => {
                return self.unset_limit();
            }
            _ if matches!(self.status, Some(404 | 405)) => {
                let check = check_base_url(provider);
                format!("{check}\ncheck the model: {list} lists the models")
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

    /// Says to lower what has set the limit of tokens.
    fn lower_limit(&self) -> String {
        let limit = self.request.limit.as_ref();
        let origin = limit.map_or(&LimitOrigin::Setting, |limit| &limit.origin);
        format!("lower {origin}")
    }

    /// Says to leave out what has set the limit of tokens, unless it is q's own.
    fn unset_limit(&self) -> Option<String> {
        match &self.request.limit.as_ref()?.origin {
            LimitOrigin::Own => None,
            LimitOrigin::Field(name) => Some(format!("leave out {name} (-o)")),
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
        "set api = \"{api}\" in [providers.{provider}] of config.toml to ask in that form\n{check}"
    )
}

/// Returns advice for a response in the form of no API that q speaks.
pub fn check_api(provider: &str) -> String {
    let check = check_base_url(provider);
    format!("{check}\ncheck the API: api in [providers.{provider}] of config.toml sets it")
}

/// Returns advice to wait as long as the server asks; `None` if it asks for no wait.
fn try_again_in(asked: Option<Duration>) -> Option<String> {
    let asked = asked.filter(|asked| !asked.is_zero())?;
    let wait = in_time_units(asked);
    Some(format!("the server asks to try again in {wait}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::failure;
    use crate::secret::Secrets;
    use crate::text::table::rows;

    #[test]
    fn a_rejected_request_gets_the_advice_for_its_class_of_error() {
        let no_model = "q --models -p p lists its models";
        let wrong_address = "check the base URL: P_BASE_URL or base_url in config.toml sets it\n\
                             check the model: q --models -p p lists the models";
        let other_model = "this is about the model, not about the key: choose another one with -m; q --models -p p lists them";
        let intercepted = "a firewall or a proxy sent this page, so the key may be right: try another network\n\
                           check the base URL: P_BASE_URL or base_url in config.toml sets it";
        let fewer_and_shorter = format!("{FEWER_FILES}\n{SHORTER}");
        // The advice, or whether the request is sent again.
        let meant = |word: &str| match word {
            "hint" => (Some(OTHER_FILES), false),
            "fewer" => (Some(FEWER_FILES), false),
            "fewer, shorter" => (Some(&*fewer_and_shorter), false),
            "shorter" => (Some(SHORTER), false),
            "model" => (Some(no_model), false),
            "key" => (Some("check the key"), false),
            "tools" => (Some(ASK_WITHOUT_TOOLS), false),
            "off" => (Some(TOOLS_SWITCHED_OFF), false),
            "stream" => (Some(NO_STREAM), false),
            "content" => (Some(OTHER_CONTENT), false),
            "place" => (Some(OTHER_PLACE), false),
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
        assert_eq!(advice, Some(format!("{lower}\n{FEWER_FILES}\n{SHORTER}")));
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
            let expected = is_advised.then_some("the server asks to try again in 12 s");
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
            let expected = wait.map(|wait| format!("the server asks to try again in {wait}"));
            let found = try_again_in(asked.map(Duration::from_millis));
            assert_eq!(found, expected, "{asked:?}");
        }
    }
}
