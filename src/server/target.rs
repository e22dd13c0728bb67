//! The server that q asks: a provider with its model, its key and a client for its address.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::advice;
use super::api_client::ApiClient;
use super::api_error::ApiError;
use super::client::{self, Client};
use super::key_command;
use super::models;
use super::retry::RetryLimits;
use super::whom::{Choice, Model};
use crate::error::{Error, ErrorKind};
use crate::output::Notes;
use crate::provider::failure::ErrorClass;
use crate::provider::request::{Field, ListedModel, Prompt, Request};
use crate::provider::{ReplyError, failure, read_models, table};
use crate::secret::{self, Secret, Secrets};
use crate::server_url::ServerUrl;
use crate::settings::{Cached, Environment, Key, Provider, Settings};
use crate::text::one_line::on_one_line;

/// How long a server has to answer when q looks whether it is there.
pub const PROBE_TIMEOUT: Duration = Duration::from_millis(300);

/// The result of a probe: what is at an address, as far as a request for the list of models tells.
#[derive(Debug, PartialEq, Eq)]
pub enum Probe {
    /// A server with this model, which it lists as the first that can chat.
    Ready(String),
    /// A server that is loading a model.
    Loading,
    /// A server that wants a key. Advice says what to do.
    KeyRequired(String),
    /// No server of this API, or one without a model that can chat.
    Absent,
}

/// A server to ask, with everything that a request needs besides its question.
pub struct Target {
    pub choice: Choice,
    /// The key, once it has been fetched; within, `None` if the server needs none.
    key: OnceLock<Option<Secret>>,
    /// Made when it is needed: a cached answer does without it.
    client: OnceLock<Client>,
    read_timeout: Option<Duration>,
    retries: u32,
    environment: Environment,
}

impl Target {
    /// Checks everything that can be checked before anything is sent; if the answer may be cached, the address alone.
    pub fn new(choice: Choice, settings: &Settings) -> Result<Target, Error> {
        choice.provider.address()?;
        choice.provider.headers()?;
        let environment = &settings.environment;
        let values = &settings.values;
        let target = Target::unchecked(choice, values.timeout, values.retries, environment);
        if settings.arguments.web {
            target.check_web()?;
        }
        if settings.cached != Cached::Off {
            return Ok(target);
        }
        // A dry run sends nothing.
        if !settings.arguments.dry_run {
            let provider = target.provider();
            provider.key.read(&provider.name, environment)?;
        }
        target.client()?;
        Ok(target)
    }

    /// Returns the same server, asked for this model. A connection that is open stays open.
    pub fn with_model(self, model: Model) -> Target {
        let provider = self.choice.provider;
        Target {
            choice: Choice { provider, model },
            ..self
        }
    }

    /// Creates a target of which nothing has been checked.
    pub(super) fn unchecked(
        choice: Choice,
        read_timeout: Option<Duration>,
        retries: u32,
        environment: &Environment,
    ) -> Target {
        Target {
            choice,
            key: OnceLock::new(),
            client: OnceLock::new(),
            read_timeout,
            retries,
            environment: environment.clone(),
        }
    }

    fn client(&self) -> Result<&Client, Error> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let address = self.provider().address()?;
        let mut client = Client::new(address, self.read_timeout, &self.environment)?;
        if let Some(other) = self.address_elsewhere() {
            client = Client::new(&other, self.read_timeout, &self.environment)?;
        }
        Ok(self.client.get_or_init(|| client))
    }

    /// Returns the address that is asked.
    pub fn address(&self) -> Result<&ServerUrl, Error> {
        Ok(&self.client()?.address)
    }

    /// Returns the address that is asked, as far as it is known without looking where the server is.
    pub fn known_address(&self) -> Result<&ServerUrl, Error> {
        match self.client.get() {
            Some(client) => Ok(&client.address),
            None => self.provider().address(),
        }
    }

    /// Returns the other built-in address of the server, if it is there and not at its usual one.
    fn address_elsewhere(&self) -> Option<ServerUrl> {
        let [usual, other] = self.provider().places()?;
        let address = other.address().ok()?.clone();
        let probe = |provider: Provider| {
            let choice = Choice {
                provider: Arc::new(provider),
                model: Model::First,
            };
            Target::unchecked(choice, Some(PROBE_TIMEOUT), 0, &self.environment).probe()
        };
        let usual = probe(usual);
        if matches!(usual, Probe::Ready(_) | Probe::Loading) {
            return None;
        }
        let is_there = match probe(other) {
            Probe::Ready(_) | Probe::Loading => true,
            // It may be another program's, as may one that wants a key at the usual address.
            Probe::KeyRequired(_) => usual == Probe::Absent,
            Probe::Absent => false,
        };
        is_there.then_some(address)
    }

    /// Asks for the list of models to find out what is at the address.
    pub(super) fn probe(&self) -> Probe {
        let notes = Notes::default();
        let _ = self.fetch_key(&notes);
        let client = self.api_client(&notes).map_err(ApiError::from);
        match client.and_then(|client| self.list_models(&client)) {
            Ok(models) => models::first_of(&models, None).map_or(Probe::Absent, Probe::Ready),
            Err(failed) => match failed.meaning {
                ErrorClass::Loading => Probe::Loading,
                ErrorClass::WrongKey => Probe::KeyRequired(failed.error.advice.unwrap_or_default()),
                _ => Probe::Absent,
            },
        }
    }

    /// Returns the key, once it has been fetched.
    pub fn key(&self) -> Option<&Secret> {
        self.key.get()?.as_ref()
    }

    /// Opens the connection for the first request, while q waits for something else. A dry run sends nothing, and a
    /// cached answer needs no request.
    pub fn open_ahead(&self, settings: &Settings) {
        if settings.arguments.dry_run || settings.cached != Cached::Off {
            return;
        }
        if let Ok(client) = self.client() {
            client.open_ahead();
        }
    }

    pub fn provider(&self) -> &Provider {
        &self.choice.provider
    }

    /// Checks that the provider can search the web over its API.
    fn check_web(&self) -> Result<(), Error> {
        let provider = self.provider();
        if provider.api.searches || provider.quirks.searches {
            return Ok(());
        }
        let name = &provider.name;
        let api = provider.api.name;
        let message = format!("--web: {name} cannot search the web over the API “{api}”");
        // At another address, a built-in provider may have an API that cannot.
        let mut others = table::searching();
        others.retain(|other| other != name);
        Err(Error::usage(message).advise(format!(
            "choose one that can with -p: {}, or any with api = \"anthropic\", \"responses\" or \"gemini\"\n\
             or let the model call a tool of yours that searches (-t)",
            others.join(", ")
        )))
    }

    /// Makes the server one that can be asked: fetches the key, just before the first request is sent.
    pub fn ready<'c>(&'c self, notes: &'c Notes) -> Result<ApiClient<'c>, Error> {
        self.fetch_key(notes)?;
        self.api_client(notes)
    }

    /// Fetches the key, once, perhaps from the command that prints it.
    fn fetch_key(&self, notes: &Notes) -> Result<(), Error> {
        if self.key.get().is_some() {
            return Ok(());
        }
        let provider = self.provider();
        let name = &provider.name;
        let address = provider.address()?;
        // The key of a local server stays on this machine, unless it is encrypted.
        let is_withheld = matches!(provider.key, Key::Optional(_)) && address.is_exposed();
        let key = if is_withheld {
            None
        } else {
            key_command::fetch(&provider.key, name, &self.environment, notes)?
        };
        self.key.get_or_init(|| key);
        self.note_exposed_key(notes)
    }

    /// Notes if a key leaves this machine unencrypted.
    fn note_exposed_key(&self, notes: &Notes) -> Result<(), Error> {
        let provider = self.provider();
        let address = provider.address()?;
        let sends_key = self.key().is_some()
            || client::has_authorization(provider.headers()?)
            || address.authorization().is_some();
        if sends_key && address.is_exposed() {
            let name = &provider.name;
            notes.note(&format!("the key of {name} goes to {address} unencrypted"));
        }
        Ok(())
    }

    /// Returns the model to ask where none is named: the first that the server lists and that can chat.
    pub fn first_model(&self, notes: &Notes) -> Result<String, Error> {
        let client = self.ready(notes)?;
        let listed = self.list_models(&client).map_err(|failed| failed.error)?;
        if let Some(first) = models::first_of(&listed, None) {
            return Ok(first);
        }
        let failed = client.failed("the provider lists no model that can chat");
        let advice = "load a model there, or name one with -m";
        Err(failed.error.advise(advice))
    }

    /// Returns the model to ask in a dry run: only a server on this machine that needs no key is asked.
    pub fn first_model_without_key(&self, notes: &Notes) -> Result<String, Error> {
        let provider = self.provider();
        if provider.key.is_optional() && provider.address()?.is_loopback() {
            return self.first_model(notes);
        }
        let message =
            "the model would be the first on the server's list, which only a request shows";
        Err(Error::settings(message).advise("name one with -m"))
    }

    /// Returns the model to ask instead of one that cannot chat, if nobody named that.
    pub fn next_model(&self, refused: &str, notes: &Notes) -> Option<String> {
        if !matches!(self.choice.model, Model::First | Model::Listed(_)) {
            return None;
        }
        let listed = self.models(notes).ok()?;
        models::first_of(&listed, Some(refused))
    }

    /// Returns the model to ask instead of one that the server does not know: the newest in the family of the provider's built-in
    /// default. If there is none, the error names the provider's models. A model that the user has named is not replaced;
    /// its error shows the most similar one.
    pub fn replace_retired_model(
        &self,
        model: &str,
        error: Error,
        notes: &Notes,
    ) -> Result<String, Error> {
        let listed = match self.models(notes) {
            Ok(listed) => listed,
            Err(unlisted) => {
                let reason = on_one_line(&unlisted.message);
                return Err(error.advise(format!("its models cannot be listed: {reason}")));
            }
        };
        if let Model::Named(_) = self.choice.model {
            return Err(models::advise_similar(error, model, &listed));
        }
        let family = self.provider().row.family;
        let family = family.filter(|family| table::is_of_family(model, family));
        if let Some(newest) = family.and_then(|family| models::newest_of(&listed, family))
            && newest != model
        {
            return Ok(newest);
        }
        Err(models::advise_some(error, &listed))
    }

    /// Returns the models that the server lists, in its order. It is an error if there are none.
    pub fn models(&self, notes: &Notes) -> Result<Vec<ListedModel>, Error> {
        let client = self.ready(notes)?;
        self.list_models(&client).map_err(|failed| failed.error)
    }

    fn list_models(&self, client: &ApiClient) -> Result<Vec<ListedModel>, ApiError> {
        let request = self.complete(self.provider().api.list_models(self.key()))?;
        let fetched = client.fetch(&request);
        let body = fetched.map_err(|failed| {
            let advice = self.no_list(&failed);
            failed.advise(advice)
        })?;
        let listed = match read_models(&body) {
            Ok(mut models) if !models.is_empty() => {
                for model in &mut models {
                    model.id = secret::redact(&model.id, &client.secrets);
                }
                return Ok(models);
            }
            listed => listed,
        };
        let checked = failure::check(&body).map_err(ReplyError::from);
        let failed = match checked.and(listed) {
            Ok(_) => client.failed("the provider lists no models"),
            Err(error) => client.explain_reply(error, &request),
        };
        let advice = "load a model there, name one with -m, or check base_url";
        Err(failed.advise(Some(advice.to_owned())))
    }

    /// Advice where the server does not know the address of its list: the list is what other errors refer to.
    fn no_list(&self, failed: &ApiError) -> Option<String> {
        let ErrorKind::Provider { status } = failed.error.kind else {
            return None;
        };
        let is_missing = matches!(status, Some(404 | 405 | 501));
        let check = advice::check_base_url(&self.provider().name);
        is_missing.then(|| {
            format!("not every server has a list: ask a model by its name with -m\n{check}")
        })
    }

    /// Returns advice if the server rejects the key, or wants one; `None` if the user has given another proof of identity.
    fn key_advice(&self) -> Result<Option<String>, Error> {
        let provider = self.provider();
        let address = provider.address()?;
        let has_credentials = address.authorization().is_some();
        if provider.key == Key::None
            && (has_credentials || client::has_authorization(provider.headers()?))
        {
            return Ok(None);
        }
        let advice = match provider.key.find(&self.environment) {
            Some((name, _)) if provider.key.is_optional() && address.is_exposed() => {
                format!("the key in {name} goes only to this machine or over https")
            }
            _ => provider
                .key
                .advice(&provider.name, self.key(), &self.environment),
        };
        Ok(Some(advice))
    }

    /// Returns a request with the headers that the file and the address add.
    fn complete(&self, request: Request) -> Result<Request, Error> {
        let provider = self.provider();
        let request = self.with_bearer(request)?;
        let mut headers = Vec::new();
        // The API's own key wins over credentials of the URL in the same header.
        if let Some(credentials) = provider.address()?.authorization()
            && !client::has_authorization(&request.headers)
        {
            headers.push(("authorization".to_owned(), credentials));
        }
        headers.extend_from_slice(provider.headers()?);
        Ok(request.with_headers(&headers))
    }

    /// Returns the request with its key as a bearer token where a server may want that: one that has an API with another header
    /// for the key, and is not the vendor's own, gets both. A key of which it is known that it is such a token goes as nothing
    /// else.
    fn with_bearer(&self, mut request: Request) -> Result<Request, Error> {
        let provider = self.provider();
        let address = provider.address()?;
        let Some(key) = self.key() else {
            return Ok(request);
        };
        let token = [(
            "authorization".to_owned(),
            Secret::new(format!("Bearer {}", key.expose())),
        )];
        let found = provider.key.find(&self.environment);
        if found.is_some_and(|(variable, _)| variable == table::BEARER_VARIABLE) {
            request.headers.retain(|(_, value)| value != key);
            return Ok(request.with_headers(&token));
        }
        // Other vendors have this API in addition to their own.
        let vendor = table::at_host(address.host());
        let is_vendors = vendor.is_some_and(|row| row.api.name == provider.api.name);
        let has_bearer = client::has_authorization(&request.headers);
        if provider.api.takes_bearer
            && !is_vendors
            && !has_bearer
            && address.authorization().is_none()
        {
            return Ok(request.with_headers(&token));
        }
        Ok(request)
    }

    /// Returns the request for a prompt, with the fields that the file sets and then those that options set.
    pub fn request(&self, prompt: &Prompt, options: &[Field]) -> Result<Request, Error> {
        let provider = self.provider();
        let fields = [&provider.options[..], options].concat();
        let api = provider.api;
        let request = api.request(prompt, provider.quirks, &fields, self.key());
        self.complete(request)
    }

    /// Returns a client with the key as far as it has been fetched. It describes failures without the key and other secrets.
    fn api_client<'c>(&'c self, notes: &'c Notes) -> Result<ApiClient<'c>, Error> {
        let provider = self.provider();
        let address = provider.address()?;
        let client = self.client()?;
        let mut secrets = Secrets::from_iter(&address.secrets());
        secrets.extend(self.key());
        secrets.extend(client.proxy_secrets());
        for (_, value) in provider.headers()? {
            secrets.extend(&value.of_header());
        }
        Ok(ApiClient {
            client,
            retry_limits: RetryLimits {
                retries: self.retries,
                loading: self.read_timeout,
            },
            notes,
            provider: &provider.name,
            api: provider.api,
            secrets,
            key_advice: self.key_advice()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::message::tests::rows;

    /// A local server of the table, with these variables, that q looks for at no other address unless it is given here.
    fn local(name: &str, variables: &[(&str, &str)], other: Option<&'static str>) -> Target {
        let environment = Environment::new(variables);
        let settings = Settings::defaults(&environment).expect("settings");
        let provider = settings.provider_named(name).expect(name);
        let mut provider = Provider::clone(provider);
        provider.other_address = other;
        let choice = Choice {
            provider: Arc::new(provider),
            model: Model::First,
        };
        Target::unchecked(choice, None, 0, &environment)
    }

    #[test]
    fn the_key_of_a_local_server_goes_only_to_this_machine_or_over_https() {
        // The address, whether the key goes there, and what is said where the server rejects it.
        let table = r##"
            http://127.0.0.1:11434 | true | check the key in OLLAMA_API_KEY
            https://box.example | true | check the key in OLLAMA_API_KEY
            http://box.example | false | the key in OLLAMA_API_KEY goes only to this machine or over https
        "##;
        for [host, goes, advice] in rows(table) {
            let variables = [("OLLAMA_HOST", host), ("OLLAMA_API_KEY", "sesame")];
            let target = local("ollama", &variables, None);
            target.fetch_key(&Notes::default()).expect("a key or none");
            assert_eq!(target.key().is_some().to_string(), goes, "{host}");
            let found = target.key_advice().expect(host);
            assert_eq!(found.as_deref(), Some(advice), "{host}");
        }
    }

    /// The address of a server that answers everything with this status and body.
    fn serve(status: &'static str, body: &'static str) -> &'static str {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.expect("a connection");
                let _ = connection.read(&mut [0; 4096]);
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
                );
                let _ = connection.write_all(format!("{head}{body}").as_bytes());
            }
        });
        format!("http://{address}").leak()
    }

    #[test]
    fn a_probe_recognizes_a_server_that_is_ready_loading_absent_or_wants_a_key() {
        // The status and the body of what answers, whether a key is set, and what is there.
        let table = r##"
            200 | {"data":[{"id":"m"}]} | no key | Ready("m")
            200 | {"data":[{"id":"bge-m3"},{"id":"m"}]} | no key | Ready("m")
            200 | {"data":[{"id":"bge-m3"}]} | no key | Absent
            200 | {"data":[]} | no key | Absent
            200 | <html> | no key | Absent
            503 | {"error":{"message":"Loading model","type":"unavailable_error","code":503}} | no key | Loading
            503 | busy | no key | Absent
            401 | {"error":"no key"} | no key | KeyRequired("ollama wants a key: export OLLAMA_API_KEY=your-key")
            401 | {"error":"no key"} | key | KeyRequired("check the key in OLLAMA_API_KEY")
            403 | - | no key | KeyRequired("ollama wants a key: export OLLAMA_API_KEY=your-key")
            403 | <html> | key | KeyRequired("check the key in OLLAMA_API_KEY")
            404 | - | no key | Absent
            302 | - | no key | Absent
        "##;
        for [status, body, key, expected] in rows(table) {
            let key = if key == "key" { "sesame" } else { "" };
            let variables = [
                ("OLLAMA_HOST", serve(status, body)),
                ("OLLAMA_API_KEY", key),
            ];
            let mut target = local("ollama", &variables, None);
            target
                .client()
                .expect("a client without a timeout, for a busy machine");
            target.read_timeout = Some(Duration::ZERO); // A model that is loading is not waited for.
            let found = target.probe();
            assert_eq!(format!("{found:?}"), expected, "{status} {body} {key}");
        }
        let variables = [("OLLAMA_HOST", "http://127.0.0.1:1")];
        assert_eq!(local("ollama", &variables, None).probe(), Probe::Absent);
    }

    #[test]
    fn a_server_is_asked_at_its_other_url_where_only_that_lists_models() {
        const CLOSED: &str = "http://127.0.0.1:1";
        const LIST: &str = r#"{"data":[{"id":"m"}]}"#;
        let (models, second, page) = (
            serve("200", LIST),
            serve("200", LIST),
            serve("200", "<html>"),
        );
        let no_model = serve("200", r#"{"data":[]}"#);
        for (usual, other, asked) in [
            (models, Some(second), models),
            (CLOSED, Some(second), second),
            (page, Some(second), second),
            (no_model, Some(second), second),
            (CLOSED, Some(CLOSED), CLOSED),
            (CLOSED, Some(page), CLOSED),
            (CLOSED, None, CLOSED),
        ] {
            let target = local("llamacpp", &[("LLAMACPP_BASE_URL", usual)], other);
            let found = target.address().expect(usual).to_string();
            let found = found.trim_end_matches("/v1");
            assert_eq!(found, asked, "{usual} {other:?}");
        }
        // Who moves it means that address.
        let environment = Environment::new(&[("LLAMACPP_BASE_URL", CLOSED)]);
        for (environment, may_be_elsewhere) in [(environment, false), (Environment::new(&[]), true)]
        {
            let settings = Settings::defaults(&environment).expect("settings");
            let provider = settings.provider_named("llamacpp").expect("a provider");
            assert_eq!(provider.other_address.is_some(), may_be_elsewhere);
        }
    }
}
