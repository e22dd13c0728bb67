//! A client of a provider's API: sends requests, tries again, and describes every failure.

use std::time::{Duration, Instant};

use super::client::{self, Client, Response, TransportError};
use super::reading::{self, ReadError};
use super::retry;
use crate::error::{Error, ErrorKind};
use crate::output::Notes;
use crate::provider::failure::{self, Meaning, ServerError, TRANSIENT_STATUSES};
use crate::provider::finish::Finish;
use crate::provider::kept::MAX_KEPT;
use crate::provider::reply::{self, Reply};
use crate::provider::request::{Extra, Request};
use crate::provider::table;
use crate::provider::{Dialect, ReplyError};
use crate::secret::{Redaction, Secrets};
use crate::text::parts::parts;

/// The most bytes of a response that is not an answer, such as a list of models.
const MAX_LIST: usize = 8_000_000;

/// Advice where a model cannot call tools.
const NO_TOOLS: &str = "-m chooses another model\n-t none asks without tools";

/// Advice where a reply has nothing but reasoning.
const ONLY_REASONING: &str = "-v shows the reasoning\n\
    another --effort, or a higher max_tokens (Q_MAX_TOKENS), may leave room for an answer";

/// Advice where the server was started without what tools need.
const TOOLS_SWITCHED_OFF: &str =
    "start the server with the option that it names\n-t none asks without tools";

/// Advice where the answer cannot be streamed.
const NO_STREAM: &str = "--no-stream asks for the answer in one piece";

/// Advice where the provider refuses what was asked.
const OTHER_CONTENT: &str =
    "this is about the text or the pictures, not about the key: -m or -p asks another model";

/// Advice where the provider does not serve a place.
const OTHER_PLACE: &str =
    "this is about the country or the network, not about the key: -p asks another provider";

/// Advice where a request has too many tools.
const FEWER_TOOLS: &str = "-t 'NAME__list_*', or only = [...] in [tools.NAME], offers fewer tools";

/// Advice where the quota or the money is used up.
const SPENT: &str = "check plan and billing at the provider, or ask another one with -p";

/// Advice where the model does not read the files, or where they are too large.
const OTHER_FILES: &str = "the model may not read images or PDFs, or not so many: -m chooses another one\n\
    in a follow-up, --messages 0 leaves out earlier images and PDFs";

/// Advice where the request is too large.
const LESS_INPUT: &str =
    "less input makes the request smaller, and so does --messages 0 in a follow-up";

/// How often q looks whether a model has been loaded.
const LOADING_POLL: Duration = Duration::from_secs(1);

/// The attempts at one request so far.
#[derive(Default)]
pub struct Attempts {
    /// How often it was sent again.
    retries: u32,
    /// Since when q waits for a model that the server is loading, if it does.
    loading_since: Option<Instant>,
}

/// A client of the API of one server, with what a request needs besides its content.
pub struct ApiClient<'a> {
    pub client: &'a Client,
    pub provider: &'a str,
    pub api: &'static Dialect,
    /// How often a failed request is tried again.
    pub retries: u32,
    /// Values that must not be shown.
    pub secrets: Secrets,
    /// Advice for a key that is refused.
    pub key_advice: Option<String>,
    /// How long q waits for a model that the server is loading; `None` is forever.
    pub timeout: Option<Duration>,
    pub notes: &'a Notes,
}

/// A failure of the network or the provider.
#[derive(Debug)]
pub struct ApiError {
    pub error: Error,
    /// The kind of failure, which says what can be done about it.
    pub meaning: Meaning,
    /// How long the server asks to wait before another try.
    retry_after: Option<Duration>,
}

impl From<Error> for ApiError {
    fn from(error: Error) -> ApiError {
        ApiError {
            error,
            meaning: Meaning::Other,
            retry_after: None,
        }
    }
}

impl ApiError {
    /// Whether another try may succeed. What a busy server says about the model or the key may be wrong.
    fn is_transient(&self) -> bool {
        match self.meaning {
            Meaning::Transient => true,
            Meaning::UnknownModel | Meaning::WrongKey | Meaning::RefusesTools => matches!(
                self.error.kind,
                ErrorKind::Provider { status: Some(status) } if TRANSIENT_STATUSES.contains(&status)
            ),
            _ => false,
        }
    }

    pub(super) fn advise(mut self, advice: Option<String>) -> ApiError {
        self.error.advice = advice.or(self.error.advice);
        self
    }
}

impl ApiClient<'_> {
    /// Checks that the reply ended well.
    pub(super) fn check(&self, reply: &Reply) -> Result<(), ApiError> {
        let (mut message, meaning) = match reply.end.finish() {
            Some(Finish::Blocked(word)) => {
                let word = reply::shown_word(word, &self.secrets);
                let message = format!("the provider blocked the answer ({word})");
                (message, Meaning::Other)
            }
            Some(Finish::Failed(word)) => {
                let word = reply::shown_word(word, &self.secrets);
                let message = format!("the answer ended in an error ({word})");
                // The model or the server may do better at the next try.
                (message, Meaning::Transient)
            }
            _ if reply.turn.has_cut_call() => return Err(self.too_long()),
            _ => return Ok(()),
        };
        message += &reply.end.shown_reason();
        Err(self.reported(&ServerError::new(message), None, meaning))
    }

    /// The error for a call that is not complete, so it can neither run nor be sent back.
    fn too_long(&self) -> ApiError {
        self.failed(format!(
            "the reply has more than {MAX_KEPT} bytes, so what it calls cannot run"
        ))
    }

    /// Shows reasoning that came as text.
    pub fn show_reasoning(&self, reasoning: &str) {
        let mut shown = Redaction::new(&self.secrets);
        for part in parts(reasoning) {
            self.notes.think(&shown.feed(part));
        }
        self.end_reasoning(&mut shown);
    }

    /// Shows the rest of what the model thinks, and ends the line.
    pub(super) fn end_reasoning(&self, shown: &mut Redaction) {
        self.notes.think(&shown.finish());
        self.notes.end_thoughts();
    }

    /// Why there is no answer, though its last reply ended well.
    pub fn no_answer(&self, reply: &Reply, has_reasoned: bool) -> ApiError {
        if let Some(Finish::Limit(_)) = reply.end.finish() {
            let advice = "the setting max_tokens (Q_MAX_TOKENS) raises it; reasoning counts too";
            return self
                .failed("the token limit was reached before the first word")
                .advise(Some(advice.to_owned()));
        }
        let mut message = "the answer is empty".to_owned();
        let mut advice = None;
        if has_reasoned {
            message = "the reply has reasoning and no answer".to_owned();
            advice = Some(ONLY_REASONING.to_owned());
        }
        if let Some(finish) = reply.end.finish() {
            message += &format!(" ({}){}", finish.word(), reply.end.shown_reason());
        }
        self.failed(message).advise(advice)
    }

    /// Asks for something other than an answer, tries again if necessary, and returns the body.
    pub fn fetch(&self, request: &Request) -> Result<String, ApiError> {
        let mut attempts = Attempts::default();
        loop {
            match self.fetch_once(request) {
                Err(failed) if self.waits_to_ask_again(&mut attempts, &failed) => {}
                ended => return ended,
            }
        }
    }

    fn fetch_once(&self, request: &Request) -> Result<String, ApiError> {
        let mut response = self.send(request)?;
        let read = reading::read_text(Vec::new(), &mut response, MAX_LIST);
        read.map_err(|error| self.explain_reading(error, request))
    }

    pub(super) fn send(&self, request: &Request) -> Result<Response, ApiError> {
        self.notes.spinner().wait_for(&self.waiting());
        let sent = self.client.send(request, &self.secrets);
        sent.map_err(|failure| self.explain(failure, request))
    }

    /// The spinner's words while q waits.
    pub(super) fn waiting(&self) -> String {
        format!("waiting for {}", self.provider)
    }

    /// Returns whether to send the request again, after waiting for the right time.
    pub(super) fn waits_to_ask_again(&self, attempts: &mut Attempts, failed: &ApiError) -> bool {
        self.waits_while_loading(attempts, failed) || self.waits_to_retry(attempts, failed)
    }

    /// Waits a moment where the server says that it is loading the model. To ask again then is no retry.
    fn waits_while_loading(&self, attempts: &mut Attempts, failed: &ApiError) -> bool {
        if failed.meaning != Meaning::Loading {
            return false;
        }
        let is_first = attempts.loading_since.is_none();
        let since = *attempts.loading_since.get_or_insert_with(Instant::now);
        let timeout = self.timeout.unwrap_or(Duration::MAX);
        if since.elapsed() + LOADING_POLL > timeout {
            return false;
        }
        let what = format!("{} is loading the model", self.provider);
        let spinner = self.notes.spinner();
        spinner.wait_since(&what, since);
        if is_first && !spinner.is_active() {
            self.notes.note(&format!("{what}; q waits for it"));
        }
        std::thread::sleep(LOADING_POLL);
        true
    }

    fn waits_to_retry(&self, attempts: &mut Attempts, failed: &ApiError) -> bool {
        if attempts.retries == self.retries || !failed.is_transient() {
            return false;
        }
        let Some(wait) = retry::wait(attempts.retries, failed.retry_after) else {
            return false;
        };
        attempts.retries += 1;
        let error = &failed.error;
        let seconds = wait.as_secs_f64();
        self.notes
            .detail(|| format!("{error}; retrying in {seconds:.1} s"));
        self.notes.spinner().count_down("retrying", wait);
        std::thread::sleep(wait);
        true
    }

    /// Describes why there is no complete answer.
    pub(super) fn explain_reading(&self, error: ReadError, request: &Request) -> ApiError {
        match error {
            // The headers have come, so the server may have done the work already.
            ReadError::Connection(error) => ApiError {
                meaning: Meaning::Other,
                ..self.explain(self.client.connection_failure(error), request)
            },
            ReadError::Reply(error) => self.explain_reply(error, request),
            ReadError::Broken(why) => self.failed(why),
            ReadError::NotFromApi(why) => self.failed(why).advise(Some(self.check_base_url())),
        }
    }

    /// Describes a body that is an error, or does not fit the dialect.
    pub fn explain_reply(&self, error: ReplyError, request: &Request) -> ApiError {
        match error {
            ReplyError::Server(error) => self.refused(error, None, request),
            ReplyError::TooLong => self.too_long(),
            ReplyError::Malformed(reason) => {
                self.failed(format!("the response cannot be read ({reason})"))
            }
        }
    }

    /// A failure in q's own words. Unlike a server's they are not judged, because they may quote an address or a page's title.
    pub fn failed(&self, message: impl Into<String>) -> ApiError {
        self.reported(&ServerError::new(message), None, Meaning::Other)
    }

    fn reported(&self, error: &ServerError, status: Option<u16>, meaning: Meaning) -> ApiError {
        let says = client::with_status(status, &error.words());
        let message = format!("{}: {says} ({})", self.provider, self.client.address);
        let kind = ErrorKind::Provider { status };
        let mut shown = Error::new(kind, message);
        shown.redact(&self.secrets);
        ApiError {
            meaning,
            retry_after: error.retry_after,
            error: shown,
        }
    }

    /// An error that the server reported, as a status or inside a reply, with advice.
    fn refused(&self, error: ServerError, status: Option<u16>, request: &Request) -> ApiError {
        let Request { extras, tools, .. } = request;
        let meaning = failure::judge(&error, status, extras, tools);
        let advice = self.advice(&error, status, meaning, extras);
        self.reported(&error, status, meaning).advise(advice)
    }

    fn advice(
        &self,
        error: &ServerError,
        status: Option<u16>,
        meaning: Meaning,
        extras: &[Extra],
    ) -> Option<String> {
        let list = format!("q --models -p {}", self.provider);
        let advice = match meaning {
            Meaning::UnknownModel => format!("{list} lists its models"),
            Meaning::WrongKey => return self.key_advice.clone(),
            Meaning::NoAccess => {
                format!(
                    "this is about the model, not about the key: -m chooses another one; {list} lists them"
                )
            }
            Meaning::RefusesContent => OTHER_CONTENT.to_owned(),
            Meaning::RefusesPlace => OTHER_PLACE.to_owned(),
            Meaning::CannotChat => format!("choose another model with -m; {list} lists its models"),
            Meaning::Loading => {
                "the model is still loading; the setting timeout (Q_TIMEOUT) says how long q waits"
                    .to_owned()
            }
            Meaning::RefusesTools => NO_TOOLS.to_owned(),
            Meaning::ToolsSwitchedOff => TOOLS_SWITCHED_OFF.to_owned(),
            Meaning::RefusesStream => NO_STREAM.to_owned(),
            Meaning::TooManyTools => FEWER_TOOLS.to_owned(),
            Meaning::Spent => match retry::advice(error.retry_after) {
                Some(when) => format!("{when}; {SPENT}"),
                None => SPENT.to_owned(),
            },
            Meaning::Refuses(Extra::Attachments) | Meaning::TooLarge | Meaning::TooLong
                if extras.contains(&Extra::Attachments) =>
            {
                OTHER_FILES.to_owned()
            }
            Meaning::TooLarge => LESS_INPUT.to_owned(),
            _ if matches!(status, Some(404 | 405)) => {
                let check = self.check_base_url();
                format!("{check}\ncheck the model: {list} lists the models")
            }
            _ => return retry::advice(error.retry_after),
        };
        Some(advice)
    }

    /// Describes a failure of the connection, or a status other than success.
    fn explain(&self, failure: TransportError, request: &Request) -> ApiError {
        let Some(status) = failure.status else {
            let mut failed = self.failed(failure.error.message);
            if failure.is_transient {
                failed.meaning = Meaning::Transient;
            }
            return failed.advise(failure.advice);
        };
        let refused = self.refused(failure.error, Some(status), request);
        let redirect = failure.location.map(|target| {
            let check = self.check_base_url();
            format!("q does not follow the redirect to {target}\n{check}")
        });
        refused.advise(redirect)
    }

    /// Advice for a response that does not come from an API.
    fn check_base_url(&self) -> String {
        let variable = table::base_url_variable(self.provider);
        format!("check the base URL: {variable} or base_url in config.toml sets it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;
    use crate::message::tests::rows;
    use crate::provider::table::OPENAI_LIKE;
    use crate::settings::Environment;

    /// The values that a client borrows.
    struct Fixture {
        client: Client,
        notes: Notes,
    }

    impl Fixture {
        fn new() -> Fixture {
            let address = Address::parse("http://127.0.0.1:1").expect("an address");
            let client = Client::new(&address, None, &Environment::new(&[])).expect("a client");
            Fixture {
                client,
                notes: Notes::default(),
            }
        }

        fn client(&self) -> ApiClient<'_> {
            ApiClient {
                client: &self.client,
                provider: "p",
                api: OPENAI_LIKE.api,
                retries: 1,
                secrets: Secrets::default(),
                key_advice: Some("check the key".to_owned()),
                timeout: None,
                notes: &self.notes,
            }
        }
    }

    #[test]
    fn what_q_says_itself_is_never_about_a_model() {
        let fixture = Fixture::new();
        let client = fixture.client();
        let found = client.failed("the page “Models” does not exist").meaning;
        assert_eq!(found, Meaning::Other);
        let request = Request::default();
        let refused = client.refused(ServerError::new("the model does not exist"), None, &request);
        assert_eq!(refused.meaning, Meaning::UnknownModel);
    }

    #[test]
    fn a_request_with_attachments_that_is_refused_gets_a_hint_and_is_not_sent_again() {
        let fixture = Fixture::new();
        let client = fixture.client();
        let no_model = "q --models -p p lists its models";
        let wrong_address = "check the base URL: P_BASE_URL or base_url in config.toml sets it\n\
                             check the model: q --models -p p lists the models";
        let other_model = "this is about the model, not about the key: -m chooses another one; q --models -p p lists them";
        // The advice, or whether the request is sent again.
        let meant = |word: &str| match word {
            "hint" => (Some(OTHER_FILES), false),
            "model" => (Some(no_model), false),
            "key" => (Some("check the key"), false),
            "tools" => (Some(NO_TOOLS), false),
            "off" => (Some(TOOLS_SWITCHED_OFF), false),
            "stream" => (Some(NO_STREAM), false),
            "content" => (Some(OTHER_CONTENT), false),
            "place" => (Some(OTHER_PLACE), false),
            "access" => (Some(other_model), false),
            "spent" => (Some(SPENT), false),
            "less" => (Some(LESS_INPUT), false),
            "address" => (Some(wrong_address), false),
            "again" => (None, true),
            _ => (None, false),
        };
        let table = r##"
            400 | hint | - | no
            400 | hint | - | prompt is too long
            413 | hint | less | no
            404 | tools | tools | No endpoints found that support tool use
            500 | off | off | tools param requires --jinja flag
            400 | stream | stream | Your organization must be verified to stream this model.
            403 | content | content | Content violates usage guidelines.
            403 | place | place | Country, region, or territory not supported
            403 | access | access | You are not allowed to sample from this model
            429 | spent | spent | You have reached your specified workspace API usage limits.
            413 | hint | - | prompt is too long
            400 | model | model | invalid model
            401 | key | key | no images
            400 | tools | tools | m does not support tools
            404 | address | address | no
            404 | hint | address | no image input
            429 | again | again | too many images
            500 | hint | again | image input is not supported - hint: you may need to provide the mmproj
            500 | again | again | no
            - | hint | - | image input is not supported - hint: you may need to provide the mmproj
            - | model | model | invalid model
            - | key | key | invalid API key
            - | tools | tools | m does not support tools
            - | - | - | no
        "##;
        for [status, with_attachments, without, message] in rows(table) {
            let status: Option<u16> = status.parse().ok();
            for (has_attachments, expected) in [(true, with_attachments), (false, without)] {
                let mut asked = Request::default();
                if has_attachments {
                    asked.extras.push(Extra::Attachments);
                }
                let failed = client.refused(
                    failure::read_redacted(message, &Secrets::default()),
                    status,
                    &asked,
                );
                let found = (
                    failed.error.advice.as_deref(),
                    failed.meaning == Meaning::Transient,
                );
                let wanted = meant(expected);
                assert_eq!(found, wanted, "{status:?} {message} {has_attachments}");
            }
        }
    }

    #[test]
    fn calls_are_an_answer_without_text_where_tools_were_offered() {
        const CALL: &str =
            r#"{"tool_calls":[{"index":0,"id":"x","function":{"name":"a","arguments":"{}"}}]}"#;
        let fixture = Fixture::new();
        let client = fixture.client();
        for (word, words) in [
            ("tool_calls", None),
            ("stop", None),
            ("length", None),
            (
                "content_filter",
                Some("the provider blocked the answer (content_filter)"),
            ),
            ("error", Some("the answer ended in an error (error)")),
        ] {
            let body =
                format!("{{\"choices\":[{{\"message\":{CALL},\"finish_reason\":\"{word}\"}}]}}");
            let mut reply = Reply::new(true);
            client.api.read_whole(&body, &mut reply).expect(&body);
            let error = client
                .check(&reply)
                .err()
                .map(|failed| failed.error.message);
            let expected = words.map(|words| format!("p: {words} (http://127.0.0.1:1)"));
            assert_eq!((error, reply.turn.calls().len()), (expected, 1), "{word}");
        }
    }
}
