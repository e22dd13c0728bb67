//! Looks at which of its addresses a server is, and what is there.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use super::api_client::ApiClient;
use super::client::Client;
use super::credentials::Credentials;
use super::model_list;
use super::retry::RetryLimits;
use crate::error::Error;
use crate::output::Notes;
use crate::provider::failure::ErrorClass;
use crate::server_url::ServerUrl;
use crate::settings::{Environment, Provider, names_key};
use crate::threads;

/// How long a server has to answer when q looks whether it is there.
pub const PROBE_TIMEOUT: Duration = Duration::from_millis(300);

/// The list is asked for once: a server that is loading its model says so at once.
const ONCE: RetryLimits = RetryLimits {
    retries: 0,
    loading: Some(Duration::ZERO),
};

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

/// A probe with the address at which it was made.
#[derive(Debug)]
pub struct Located {
    pub address: ServerUrl,
    pub probe: Probe,
}

/// Finds the server of a provider, however long its addresses take for their answers.
///
/// # Errors
/// The address cannot be used, or the headers.
pub fn locate(provider: &Arc<Provider>, environment: &Environment) -> Result<Located, Error> {
    Ok(Search::begin(provider, environment)?.finish(None))
}

/// A search for the server of a provider, with a look at its usual address and at its other built-in one at the same time, because
/// what has taken an address may be silent. Nothing that tells who asks is sent, neither a key nor a login, because another program
/// may listen there.
pub struct Search {
    usual: Look,
    other: Option<Look>,
}

/// A look at an address that is under way.
struct Look {
    address: ServerUrl,
    found: Receiver<Probe>,
}

impl Search {
    /// # Errors
    /// The address cannot be used, or the headers.
    pub fn begin(provider: &Arc<Provider>, environment: &Environment) -> Result<Search, Error> {
        let other = provider.other_address();
        let begin = |address| Look::begin(address, provider, environment);
        Ok(Search {
            usual: begin(provider.address()?.clone())?,
            other: other.map(begin).transpose()?,
        })
    }

    /// Returns where the server is: at its other address only if it is not at its usual one. Nothing is where no answer has come by
    /// the deadline.
    pub fn finish(self, deadline: Option<Instant>) -> Located {
        let usual = self.usual.finish(deadline);
        if matches!(usual.probe, Probe::Ready(_) | Probe::Loading) {
            return usual;
        }
        let Some(other) = self.other else {
            return usual;
        };
        let other = other.finish(deadline);
        let is_at_other = match other.probe {
            Probe::Ready(_) | Probe::Loading => true,
            // It may be another program's, as may one that wants a key at the usual address.
            Probe::KeyRequired(_) => usual.probe == Probe::Absent,
            Probe::Absent => false,
        };
        if is_at_other { other } else { usual }
    }
}

impl Look {
    fn begin(
        address: ServerUrl,
        provider: &Arc<Provider>,
        environment: &Environment,
    ) -> Result<Look, Error> {
        let keyless = address.keyless(names_key);
        let client = Arc::new(Client::new(&keyless, Some(PROBE_TIMEOUT), environment)?);
        // Makes sure of the headers.
        Credentials::without_keys(provider, environment)?;
        let look = {
            let (provider, environment) = (Arc::clone(provider), environment.clone());
            move || match Credentials::without_keys(&provider, &environment) {
                Ok(credentials) => ask_for_models(&client, credentials),
                Err(_) => Probe::Absent,
            }
        };
        let (send, found) = mpsc::channel();
        let (sender, on_thread) = (send.clone(), look.clone());
        // Nobody waits for this thread to end, because a server that hangs must not delay the others.
        let started = threads::start(move || {
            let _ = sender.send(on_thread());
        });
        if started.is_err() {
            let _ = send.send(look());
        }
        Ok(Look { address, found })
    }

    fn finish(self, deadline: Option<Instant>) -> Located {
        let found = match deadline {
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                self.found.recv_timeout(left).ok()
            }
            None => self.found.recv().ok(),
        };
        Located {
            address: self.address,
            probe: found.unwrap_or(Probe::Absent),
        }
    }
}

impl Located {
    /// Looks again with all that tells who asks, if the server wants a key and there is one that no command has to print.
    pub fn retry_with_key(mut self, provider: &Provider, environment: &Environment) -> Located {
        if !matches!(self.probe, Probe::KeyRequired(_)) {
            return self;
        }
        let mut key = None;
        if !provider.withholds_key() {
            let read = provider.key.read(&provider.name, environment);
            key = read.unwrap_or_default();
        }
        if key.is_none() && provider.keys_within().is_empty() {
            return self;
        }
        let credentials = Credentials::new(provider, key.as_ref(), environment);
        let looked = credentials.and_then(|it| look_at(&self.address, it, environment));
        self.probe = looked.unwrap_or(self.probe);
        self
    }
}

/// Looks what is at an address.
fn look_at(
    address: &ServerUrl,
    credentials: Credentials,
    environment: &Environment,
) -> Result<Probe, Error> {
    let client = Client::new(address, Some(PROBE_TIMEOUT), environment)?;
    Ok(ask_for_models(&client, credentials))
}

/// Tells what a server is by its answer to a request for its models.
fn ask_for_models(client: &Client, credentials: Credentials) -> Probe {
    let notes = Notes::default();
    match ApiClient::new(client, credentials, ONCE, &notes).list_first_models() {
        Ok(listed) => model_list::first_of(&listed, None).map_or(Probe::Absent, Probe::Ready),
        Err(failed) => match failed.meaning {
            ErrorClass::Loading => Probe::Loading,
            ErrorClass::WrongKey => Probe::KeyRequired(failed.error.advice.unwrap_or_default()),
            _ => Probe::Absent,
        },
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::Mutex;

    use super::*;
    use crate::secret::Secret;
    use crate::settings::Settings;
    use crate::text::table::rows;
    use crate::threads::lock;

    /// The requests that a server has got, each with its headers.
    pub type Requests = Arc<Mutex<Vec<String>>>;

    /// A local server of the table, that q looks for at no other address unless it is given here.
    fn local(name: &str, environment: &Environment, other: Option<&'static str>) -> Arc<Provider> {
        let settings = Settings::defaults(environment);
        let provider = settings.provider_named(name).expect(name);
        let mut provider = Provider::clone(provider);
        provider.other_address = other;
        Arc::new(provider)
    }

    /// The address of a server that answers everything with this status and body.
    fn serve(status: &'static str, body: &'static str) -> &'static str {
        serve_noted(status, body).0
    }

    /// The same, and the requests that it has got.
    pub fn serve_noted(status: &'static str, body: &'static str) -> (&'static str, Requests) {
        let requests = Requests::default();
        let noted = Arc::clone(&requests);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.expect("a connection");
                let mut request = [0; 4096];
                let length = connection.read(&mut request).unwrap_or_default();
                let request = String::from_utf8_lossy(&request[..length]);
                lock(&noted).push(request.into_owned());
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
                );
                let _ = connection.write_all(format!("{head}{body}").as_bytes());
            }
        });
        (format!("http://{address}").leak(), requests)
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
            401 | {"error":"no key"} | no key | KeyRequired("export OLLAMA_API_KEY=your-key, because ollama wants a key")
            401 | {"error":"no key"} | key | KeyRequired("check the key in OLLAMA_API_KEY")
            403 | - | no key | KeyRequired("export OLLAMA_API_KEY=your-key, because ollama wants a key")
            403 | <html> | key | KeyRequired("check the key in OLLAMA_API_KEY")
            404 | - | no key | Absent
            302 | - | no key | Absent
        "##;
        for [status, body, key, expected] in rows(table) {
            let sesame = (key == "key").then(|| Secret::new("sesame"));
            let variables = [
                ("OLLAMA_HOST", serve(status, body)),
                ("OLLAMA_API_KEY", sesame.as_ref().map_or("", Secret::expose)),
            ];
            let environment = Environment::new(&variables);
            let provider = local("ollama", &environment, None);
            let address = provider.address().expect("an address");
            // A busy machine may take its time.
            let client = Client::new(address, None, &environment).expect("a client");
            let credentials = Credentials::new(&provider, sesame.as_ref(), &environment);
            let found = ask_for_models(&client, credentials.expect("credentials"));
            assert_eq!(format!("{found:?}"), expected, "{status} {body} {key}");
        }
        let environment = Environment::new(&[("OLLAMA_HOST", "http://127.0.0.1:1")]);
        let provider = local("ollama", &environment, None);
        let located = locate(&provider, &environment).expect("an address");
        assert_eq!(located.probe, Probe::Absent);
    }

    /// The address of a server that takes connections and says nothing, as long as its socket is open.
    pub fn silent() -> (&'static str, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        (format!("http://{address}").leak(), listener)
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
        let (silent, _open) = silent();
        for (usual, other, asked) in [
            (models, Some(second), models),
            (CLOSED, Some(second), second),
            (page, Some(second), second),
            (no_model, Some(second), second),
            (silent, Some(second), second),
            (silent, Some(CLOSED), silent),
            (CLOSED, Some(CLOSED), CLOSED),
            (CLOSED, Some(page), CLOSED),
            (CLOSED, None, CLOSED),
        ] {
            let environment = Environment::new(&[("LLAMACPP_BASE_URL", usual)]);
            let provider = local("llamacpp", &environment, other);
            let located = locate(&provider, &environment).expect(usual);
            let found = located.address.to_string();
            let found = found.trim_end_matches("/v1");
            assert_eq!(found, asked, "{usual} {other:?}");
        }
        // One request tells where it is and what it has.
        let (usual, requests) = serve_noted("200", LIST);
        let environment = Environment::new(&[("LLAMACPP_BASE_URL", usual)]);
        let provider = local("llamacpp", &environment, Some(second));
        let located = locate(&provider, &environment).expect("an address");
        assert_eq!(located.probe, Probe::Ready("m".to_owned()));
        assert_eq!(lock(&requests).len(), 1);
        // It needs no other page of a list.
        let paged = r#"{"data":[{"id":"m"}],"has_more":true,"last_id":"m"}"#;
        let (usual, requests) = serve_noted("200", paged);
        let environment = Environment::new(&[("LLAMACPP_BASE_URL", usual)]);
        let provider = local("llamacpp", &environment, None);
        let located = locate(&provider, &environment).expect("an address");
        assert_eq!(located.probe, Probe::Ready("m".to_owned()));
        assert_eq!(lock(&requests).len(), 1);
        // Who moves it means that address.
        let environment = Environment::new(&[("LLAMACPP_BASE_URL", CLOSED)]);
        for (environment, may_be_elsewhere) in [(environment, false), (Environment::new(&[]), true)]
        {
            let settings = Settings::defaults(&environment);
            let provider = settings.provider_named("llamacpp").expect("a provider");
            assert_eq!(provider.other_address.is_some(), may_be_elsewhere);
        }
    }
}
