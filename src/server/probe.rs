//! Looks what is at the address of a provider, and at which of its addresses its server is.

use std::time::Duration;

use super::api_client::ApiClient;
use super::client::Client;
use super::credentials::Credentials;
use super::key_command;
use super::models;
use super::retry::RetryLimits;
use crate::error::Error;
use crate::output::Notes;
use crate::provider::failure::ErrorClass;
use crate::server_url::ServerUrl;
use crate::settings::{Environment, Provider};

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

/// A probe with the address at which it was made.
#[derive(Debug)]
pub struct Located {
    pub address: ServerUrl,
    pub probe: Probe,
}

/// Returns a client for the address of a server: its other built-in one, if it is there and not at its usual one.
pub fn locate(
    provider: &Provider,
    read_timeout: Option<Duration>,
    environment: &Environment,
) -> Result<Client, Error> {
    let mut address = provider.address()?.clone();
    // A server that can be at only one address need not be looked for.
    if provider.other_address.is_some()
        && let Some(located) = look_for(provider, environment)
    {
        address = located.address;
    }
    Client::new(&address, read_timeout, environment)
}

/// Looks at which of its addresses a server is, and what is there. `None`: its address cannot be used.
pub fn look_for(provider: &Provider, environment: &Environment) -> Option<Located> {
    let Some([usual, other]) = provider.places() else {
        return look_at(provider, environment);
    };
    let usual = look_at(&usual, environment)?;
    if matches!(usual.probe, Probe::Ready(_) | Probe::Loading) {
        return Some(usual);
    }
    let Some(other) = look_at(&other, environment) else {
        return Some(usual);
    };
    let is_at_other = match other.probe {
        Probe::Ready(_) | Probe::Loading => true,
        // It may be another program's, as may one that wants a key at the usual address.
        Probe::KeyRequired(_) => usual.probe == Probe::Absent,
        Probe::Absent => false,
    };
    let found = if is_at_other { other } else { usual };
    Some(found)
}

/// Looks what is at the usual address of a provider.
fn look_at(provider: &Provider, environment: &Environment) -> Option<Located> {
    let address = provider.address().ok()?;
    let timeout = Some(PROBE_TIMEOUT);
    let client = Client::new(address, timeout, environment).ok()?;
    Some(Located {
        address: address.clone(),
        probe: probe_at(&client, timeout, provider, environment),
    })
}

/// Looks what is at the address of a client. A model that is being loaded is waited for this long.
fn probe_at(
    client: &Client,
    loading: Option<Duration>,
    provider: &Provider,
    environment: &Environment,
) -> Probe {
    let notes = Notes::default();
    // Without its key, the server says whether it wants one.
    let key = key_command::fetch_for(provider, environment, &notes).unwrap_or_default();
    let Ok(credentials) = Credentials::new(provider, key.as_ref(), environment) else {
        return Probe::Absent;
    };
    let limits = RetryLimits {
        retries: 0,
        loading,
    };
    match ApiClient::new(client, credentials, limits, &notes).list_models() {
        Ok(listed) => models::first_of(&listed, None).map_or(Probe::Absent, Probe::Ready),
        Err(failed) => match failed.meaning {
            ErrorClass::Loading => Probe::Loading,
            ErrorClass::WrongKey => Probe::KeyRequired(failed.error.advice.unwrap_or_default()),
            _ => Probe::Absent,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::message::tests::rows;
    use crate::settings::Settings;

    /// A local server of the table, that q looks for at no other address unless it is given here.
    fn local(name: &str, environment: &Environment, other: Option<&'static str>) -> Provider {
        let settings = Settings::defaults(environment).expect("settings");
        let provider = settings.provider_named(name).expect(name);
        let mut provider = Provider::clone(provider);
        provider.other_address = other;
        provider
    }

    /// The address of a server that answers everything with this status and body.
    fn serve(status: &'static str, body: &'static str) -> &'static str {
        serve_counted(status, body).0
    }

    /// The same, and how many requests it has answered.
    fn serve_counted(status: &'static str, body: &'static str) -> (&'static str, Arc<AtomicUsize>) {
        let count: Arc<AtomicUsize> = Arc::default();
        let answered = Arc::clone(&count);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.expect("a connection");
                let _ = connection.read(&mut [0; 4096]);
                answered.fetch_add(1, Ordering::SeqCst);
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
                );
                let _ = connection.write_all(format!("{head}{body}").as_bytes());
            }
        });
        (format!("http://{address}").leak(), count)
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
            let environment = Environment::new(&variables);
            let provider = local("ollama", &environment, None);
            // A busy machine may take its time.
            let client = locate(&provider, None, &environment).expect("a client");
            let found = probe_at(&client, Some(Duration::ZERO), &provider, &environment);
            assert_eq!(format!("{found:?}"), expected, "{status} {body} {key}");
        }
        let environment = Environment::new(&[("OLLAMA_HOST", "http://127.0.0.1:1")]);
        let provider = local("ollama", &environment, None);
        let located = look_for(&provider, &environment).expect("an address");
        assert_eq!(located.probe, Probe::Absent);
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
            let environment = Environment::new(&[("LLAMACPP_BASE_URL", usual)]);
            let provider = local("llamacpp", &environment, other);
            let client = locate(&provider, None, &environment).expect(usual);
            let found = client.address.to_string();
            let found = found.trim_end_matches("/v1");
            assert_eq!(found, asked, "{usual} {other:?}");
        }
        // One request tells where it is and what it has.
        let (usual, requests) = serve_counted("200", LIST);
        let environment = Environment::new(&[("LLAMACPP_BASE_URL", usual)]);
        let provider = local("llamacpp", &environment, Some(second));
        let located = look_for(&provider, &environment).expect("an address");
        assert_eq!(located.probe, Probe::Ready("m".to_owned()));
        assert_eq!(requests.load(Ordering::SeqCst), 1);
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
