//! A client of a provider's API: sends requests, retries them after a transient failure, and describes every failure.

use std::thread;
use std::time::{Duration, Instant};

use time::OffsetDateTime;

use super::advice::{self, Rejection};
use super::api_error::ApiError;
use super::body::{self, ForeignBody, ReadError};
use super::client::{self, Client, ConnectionFailure, Response, TransportError};
use super::credentials::Credentials;
use super::paged_list::{MAX_LIST, PagedList};
use super::retry::{self, Attempts, Pause, RetryLimits};
use crate::error::{Error, ErrorKind};
use crate::output::Notes;
use crate::provider::failure::{self, ErrorClass, ServerError};
use crate::provider::finish::{Finish, FinishKind};
use crate::provider::kept::MAX_KEPT;
use crate::provider::reply::{self, Reply};
use crate::provider::request::{LimitOrigin, ListedModel, Request};
use crate::provider::{Dialect, ModelPage, ReplyError, read_models};
use crate::secret::{self, Redaction, Secrets};
use crate::text::parts::parts;
use crate::text::size::in_units;

/// A client of the API of one server, with the credentials, the limits of retries and the notes of its requests.
pub struct ApiClient<'a> {
    client: &'a Client,
    credentials: Credentials<'a>,
    /// Values that must not be shown.
    pub secrets: Secrets,
    retry_limits: RetryLimits,
    pub notes: &'a Notes,
}

impl<'a> ApiClient<'a> {
    pub fn new(
        client: &'a Client,
        credentials: Credentials<'a>,
        retry_limits: RetryLimits,
        notes: &'a Notes,
    ) -> ApiClient<'a> {
        let mut secrets = credentials.secrets();
        secrets.extend(client.proxy_secrets());
        ApiClient {
            client,
            credentials,
            secrets,
            retry_limits,
            notes,
        }
    }

    /// Returns the name of the provider.
    fn name(&self) -> &'a str {
        &self.credentials.provider.name
    }

    pub(super) fn api(&self) -> &'static Dialect {
        self.credentials.provider.api
    }

    /// Returns the models that the server lists, in its order; an error if it lists none. If a page cannot be fetched, a note says
    /// so.
    pub fn list_models(&self) -> Result<Vec<ListedModel>, ApiError> {
        self.list_models_until(|_| false)
    }

    /// Returns the models of the pages up to the first with which there are enough.
    pub fn list_models_until(
        &self,
        are_enough: impl Fn(&[ListedModel]) -> bool,
    ) -> Result<Vec<ListedModel>, ApiError> {
        let mut list = PagedList::default();
        loop {
            match self.list_page(list.next.as_deref()) {
                Ok((page, bytes)) => list.add(page, bytes),
                Err(failed) if list.models.is_empty() => return Err(failed),
                Err(failed) => list.end_early(failed.error.message),
            }
            if are_enough(&list.models) {
                return self.checked_models(list.models);
            }
            if list.next.is_none() {
                break;
            }
        }
        if let Some(reason) = &list.lack {
            self.notes
                .note(&format!("the list of models may be incomplete: {reason}"));
        }
        self.checked_models(list.models)
    }

    /// Returns the models on the first page of the list, which may be all of it; an error if it has none.
    pub fn list_first_models(&self) -> Result<Vec<ListedModel>, ApiError> {
        let (page, _) = self.list_page(None)?;
        self.checked_models(page.models)
    }

    /// Returns listed models without secrets in their names; an error if there are no models.
    fn checked_models(&self, mut models: Vec<ListedModel>) -> Result<Vec<ListedModel>, ApiError> {
        if models.is_empty() {
            let failed = self.failed("the provider lists no models");
            let load = self.advice_to_load();
            let advice = format!("{load}, name one with -m, or check base_url");
            return Err(failed.advise(Some(advice)));
        }
        for model in &mut models {
            model.id = secret::redact(&model.id, &self.secrets);
        }
        Ok(models)
    }

    /// Returns what to do where the server has no model that q can ask.
    pub fn advice_to_load(&self) -> String {
        match self.credentials.provider.command_to_get("MODEL") {
            Some(command) => format!("get a model with {command}"),
            None => "load a model there".to_owned(),
        }
    }

    /// Fetches the first page of the list of models, or the page with the token `next`, and retries it if necessary. Returns the
    /// page and its size in bytes.
    fn list_page(&self, next: Option<&str>) -> Result<(ModelPage, usize), ApiError> {
        let request = self.api().list_models(self.credentials.key, next);
        let request = self.credentials.add_to(request);
        let mut attempts = Attempts::default();
        loop {
            match self.fetch_page(&request) {
                Err(failed) if self.wait_to_retry(&mut attempts, &failed) => {}
                ended => return ended.map_err(|failed| attempts.explain(failed)),
            }
        }
    }

    /// Sends a request for a page once. An error in its place is one of the server's, whatever the status.
    fn fetch_page(&self, request: &Request) -> Result<(ModelPage, usize), ApiError> {
        let body = self.fetch_body(request).map_err(|failed| {
            let advice = self.advice_without_list(&failed);
            failed.advise(advice)
        })?;
        let mut listed = read_models(&body);
        if !matches!(&listed, Ok(page) if !page.models.is_empty()) {
            let checked = failure::check(&body).map_err(ReplyError::from);
            listed = checked.and(listed);
        }
        let page = listed.map_err(|error| {
            let failed = self.explain_reply(error, request);
            if failed.error.advice.is_some() || failed.meaning != ErrorClass::Other {
                return failed;
            }
            failed.advise(Some("name a model with -m, or check base_url".to_owned()))
        })?;
        Ok((page, body.len()))
    }

    /// Returns advice if the server has no list of models, because the advice of other errors refers to the list.
    fn advice_without_list(&self, failed: &ApiError) -> Option<String> {
        let ErrorKind::Provider { status } = failed.error.kind else {
            return None;
        };
        let is_missing = matches!(status, Some(404 | 405 | 501));
        let check = advice::check_base_url(self.name());
        is_missing.then(|| {
            format!("ask a model by its name with -m, because not every server has a list; {check}")
        })
    }

    /// Sends a request for something other than an answer once, and returns the body.
    fn fetch_body(&self, request: &Request) -> Result<String, ApiError> {
        let mut response = self.send(request)?;
        let read = body::read_text(Vec::new(), &mut response, MAX_LIST);
        let checked = read.and_then(|text| match failure::title(&text) {
            Some(_) => {
                let body = ForeignBody::of(&text, response.content_type());
                Err(ReadError::NotFromApi(body))
            }
            None => Ok(text),
        });
        checked.map_err(|error| self.explain_reading(error, request))
    }

    /// Sends a request once, and returns when the headers of the response have arrived.
    pub(super) fn send(&self, request: &Request) -> Result<Response, ApiError> {
        self.notes.spinner().wait_for(&self.waiting());
        let sent = self.client.send(request, &self.secrets);
        sent.map_err(|failure| self.explain(failure, request))
    }

    /// Returns the spinner's words while q waits.
    pub(super) fn waiting(&self) -> String {
        format!("waiting for {}", self.name())
    }

    /// Waits before a retry of a request that has failed. Returns whether to retry it.
    pub(super) fn wait_to_retry(&self, attempts: &mut Attempts, failed: &ApiError) -> bool {
        match attempts.pause_after(failed, &self.retry_limits, Instant::now()) {
            Some(Pause::Loading {
                since,
                is_first,
                wait,
            }) => self.wait_while_loading(since, is_first, wait),
            Some(Pause::Retry(wait)) => self.wait_after(&failed.error, wait),
            None => return false,
        }
        true
    }

    /// Waits for a model that the server has been loading `since` then.
    fn wait_while_loading(&self, since: Instant, is_first: bool, wait: Duration) {
        let what = format!("{} is loading the model", self.name());
        let spinner = self.notes.spinner();
        spinner.wait_since(&what, since);
        if is_first && !spinner.is_active() {
            self.notes.note(&format!("{what}; q waits for it"));
        }
        thread::sleep(wait);
    }

    /// Waits after a transient error.
    fn wait_after(&self, error: &Error, wait: Duration) {
        let seconds = wait.as_secs_f64();
        self.notes
            .detail(|| format!("{error}; retrying in {seconds:.1} s"));
        self.notes.spinner().count_down("retrying", wait);
        thread::sleep(wait);
    }

    /// Shows reasoning that was part of the text.
    pub fn show_reasoning(&self, reasoning: &str) {
        let mut shown = Redaction::new(&self.secrets);
        for part in parts(reasoning) {
            self.notes.show_reasoning(&shown.feed(part));
        }
        self.end_reasoning(&mut shown);
    }

    /// Shows the rest of the reasoning, and ends its line.
    pub(super) fn end_reasoning(&self, shown: &mut Redaction) {
        self.notes.show_reasoning(&shown.finish());
        self.notes.end_reasoning();
    }

    /// Checks that the reply ended well.
    pub(super) fn check(&self, reply: &Reply) -> Result<(), ApiError> {
        let (mut message, meaning) = match reply.end.finish() {
            Some(Finish {
                kind: FinishKind::Blocked,
                word,
            }) => {
                let word = reply::shown_word(word, &self.secrets);
                let message = format!("the provider blocked the answer ({word})");
                (message, ErrorClass::Other)
            }
            Some(Finish {
                kind: FinishKind::Failed,
                word,
            }) => {
                let word = reply::shown_word(word, &self.secrets);
                let message = format!("the answer ended in an error ({word})");
                // The model or the server may do better at the next try.
                (message, ErrorClass::Transient)
            }
            _ if reply.turn.has_cut_call() => return Err(self.too_long()),
            _ => return Ok(()),
        };
        message += &reply.end.shown_reason();
        Err(self.reported(&message, None, meaning))
    }

    /// Returns the error for a call that is not complete, so it can neither run nor be sent back.
    fn too_long(&self) -> ApiError {
        self.failed(format!(
            "the reply has more than {size}, so what it calls cannot run",
            size = in_units(MAX_KEPT)
        ))
    }

    /// Returns why there is no answer, though its last reply ended well. `limit` is what sets the limit of tokens, and `images` the
    /// note that there were some.
    pub fn no_answer(
        &self,
        reply: &Reply,
        has_reasoned: bool,
        limit: &LimitOrigin,
        images: Option<String>,
    ) -> ApiError {
        if reply.end.has_reached_limit() {
            let mut message = "the token limit was reached before the first word".to_owned();
            let mut advice = format!("raise {limit}; reasoning counts, too");
            if has_reasoned {
                message += ": the reply has only reasoning";
                advice = format!("raise {limit}, or ask for less reasoning with --effort");
            }
            return self.failed(message).advise(Some(advice));
        }
        let mut message = "the answer is empty".to_owned();
        let mut advice = None;
        if let Some(images) = images {
            message = images;
        } else if has_reasoned {
            message = "the reply has reasoning and no answer".to_owned();
            let help = if reply.end.finish().is_some() && reply.end.is_normal() {
                "if it has the answer, switch off the reasoning parser of the server, \
                 else try another --effort, or another model with -m"
                    .to_owned()
            } else {
                format!("leave room for an answer with another --effort, or a higher {limit}")
            };
            advice = Some(format!("see the reasoning with -v; {help}"));
        }
        if let Some(finish) = reply.end.finish() {
            message += &format!(" ({}){}", finish.word, reply.end.shown_reason());
        }
        self.failed(message).advise(advice)
    }

    /// Describes why there is no complete answer.
    pub(super) fn explain_reading(&self, error: ReadError, request: &Request) -> ApiError {
        match error {
            // The headers have arrived, so the server may have done the work already.
            ReadError::Connection(error) => ApiError {
                meaning: ErrorClass::Other,
                ..self.explain_connection(self.client.connection_failure(error))
            },
            ReadError::Reply(error) => self.explain_reply(error, request),
            ReadError::Broken(why) => self.failed(why),
            ReadError::NotFromApi(body) => self
                .failed(body.words(&self.secrets))
                .advise(Some(advice::check_base_url(self.name()))),
        }
    }

    /// Describes a body that is an error, or does not fit the dialect.
    pub fn explain_reply(&self, error: ReplyError, request: &Request) -> ApiError {
        match error {
            ReplyError::Server(mut error) => {
                let now = OffsetDateTime::now_utc();
                error.retry_after = retry::wait_in_body(error.retry_after, now);
                self.rejected(&error, None, request)
            }
            ReplyError::TooLong => self.too_long(),
            ReplyError::OtherApi(other) => {
                let asked = self.api().name;
                let message = format!(
                    "the response is in the form of the {other} API, but the {asked} API was asked for"
                );
                self.failed(message)
                    .advise(Some(advice::set_api(self.name(), other)))
            }
            ReplyError::UnknownForm(fields) => {
                let asked = self.api().name;
                let message = format!(
                    "the response is not in the form of the {asked} API: it begins with the fields {fields}"
                );
                self.failed(message)
                    .advise(Some(advice::check_api(self.name())))
            }
            ReplyError::Malformed(reason) => {
                self.failed(format!("the response cannot be read ({reason})"))
            }
        }
    }

    /// Returns a failure in q's own words. Unlike a server's they are not judged, because they may quote an address or a page's
    /// title.
    pub fn failed(&self, message: impl AsRef<str>) -> ApiError {
        self.reported(message.as_ref(), None, ErrorClass::Other)
    }

    /// Returns a failure with the name of the provider and its URL.
    fn reported(&self, words: &str, status: Option<u16>, meaning: ErrorClass) -> ApiError {
        // What is cut within a secret is recognized at its end alone.
        let words = secret::redact(words, &self.secrets);
        let says = client::with_status(status, &words);
        let message = format!("{}: {says} ({})", self.name(), self.client.address);
        let kind = ErrorKind::Provider { status };
        let mut error = Error::new(kind, message);
        error.redact(&self.secrets);
        ApiError {
            meaning,
            retry_after: None,
            is_unreached: false,
            error,
        }
    }

    /// Returns an error that the server reported, as a status or inside a reply, with advice.
    fn rejected(&self, error: &ServerError, status: Option<u16>, request: &Request) -> ApiError {
        let meaning = failure::judge(error, status, request);
        let retry_after = match meaning {
            ErrorClass::Transient => error.wait(status),
            _ => error.retry_after,
        };
        let rejection = Rejection {
            meaning,
            status,
            request,
            is_about_client: failure::is_about_client(error, status),
            retry_after,
            is_local: self.client.address.is_loopback(),
        };
        let advice = rejection.advice(self.name(), self.credentials.advice().as_deref());
        let reported = ApiError {
            retry_after,
            ..self.reported(&error.words(), status, meaning)
        };
        reported.advise(advice)
    }

    /// Describes a failure of the connection, or a status other than success.
    fn explain(&self, failure: TransportError, request: &Request) -> ApiError {
        let failure = match failure {
            TransportError::Connection(failure) => return self.explain_connection(failure),
            TransportError::Status(failure) => failure,
        };
        let mut rejected = self.rejected(&failure.error, Some(failure.status), request);
        rejected.error.advice = failure.advice(rejected.error.advice);
        let redirect = failure.location.map(|target| {
            let check = advice::check_base_url(self.name());
            format!("{check}; the server redirects to {target}, which q does not follow")
        });
        rejected.advise(redirect)
    }

    fn explain_connection(&self, failure: ConnectionFailure) -> ApiError {
        let advice = match self.credentials.provider.start_command() {
            Some(command) if failure.is_refused_by_server() => Some(format!(
                "start the server ({command}), or check that this is its address"
            )),
            _ => failure.advice,
        };
        let mut failed = self.failed(failure.cause);
        failed.is_unreached = failure.is_unreached;
        if failure.is_transient {
            failed.meaning = ErrorClass::Transient;
        }
        failed.advise(advice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Environment, Provider, Settings};

    /// The values that a client borrows.
    struct Fixture {
        client: Client,
        provider: Provider,
        environment: Environment,
        notes: Notes,
    }

    impl Fixture {
        fn new() -> Fixture {
            let environment = Environment::new(&[("OPENAI_BASE_URL", "http://127.0.0.1:1")]);
            let settings = Settings::defaults(&environment);
            let provider = settings.provider_named("openai").expect("a provider");
            let address = provider.address().expect("an address");
            Fixture {
                client: Client::new(address, None, &environment).expect("a client"),
                provider: Provider::clone(provider),
                environment,
                notes: Notes::default(),
            }
        }

        fn client(&self) -> ApiClient<'_> {
            let credentials = Credentials::new(&self.provider, None, &self.environment);
            let credentials = credentials.expect("an address");
            let limits = RetryLimits::default();
            ApiClient::new(&self.client, credentials, limits, &self.notes)
        }
    }

    #[test]
    fn an_error_in_qs_own_words_is_never_taken_for_an_unknown_model() {
        let fixture = Fixture::new();
        let client = fixture.client();
        let found = client.failed("the page “Models” does not exist").meaning;
        assert_eq!(found, ErrorClass::Other);
        let request = Request::default();
        let rejected = client.rejected(
            &ServerError::new("the model does not exist"),
            None,
            &request,
        );
        assert_eq!(rejected.meaning, ErrorClass::UnknownModel);
    }

    #[test]
    fn a_reply_of_calls_without_text_is_no_error_where_tools_were_offered() {
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
            client.api().read_whole(&body, &mut reply).expect(&body);
            let error = client
                .check(&reply)
                .err()
                .map(|failed| failed.error.message);
            let expected = words.map(|words| format!("openai: {words} (http://127.0.0.1:1/v1)"));
            assert_eq!((error, reply.turn.calls().len()), (expected, 1), "{word}");
        }
    }
}
