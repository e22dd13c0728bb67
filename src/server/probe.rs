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

/// Returns a client for the address of a server: its other built-in one, if it is there and not at its usual one.
pub fn locate(
    provider: &Provider,
    read_timeout: Option<Duration>,
    environment: &Environment,
) -> Result<Client, Error> {
    let usual = Client::new(provider.address()?, read_timeout, environment)?;
    match address_elsewhere(provider, environment) {
        Some(other) => Client::new(&other, read_timeout, environment),
        None => Ok(usual),
    }
}

/// Returns the other built-in address of a server, if it is there and not at its usual one.
fn address_elsewhere(provider: &Provider, environment: &Environment) -> Option<ServerUrl> {
    let [usual, other] = provider.places()?;
    let address = other.address().ok()?;
    let usual = probe(&usual, environment);
    if matches!(usual, Probe::Ready(_) | Probe::Loading) {
        return None;
    }
    let is_there = match probe(&other, environment) {
        Probe::Ready(_) | Probe::Loading => true,
        // It may be another program's, as may one that wants a key at the usual address.
        Probe::KeyRequired(_) => usual == Probe::Absent,
        Probe::Absent => false,
    };
    is_there.then(|| address.clone())
}

/// Looks what is at the address of a provider.
pub fn probe(provider: &Provider, environment: &Environment) -> Probe {
    let timeout = Some(PROBE_TIMEOUT);
    match locate(provider, timeout, environment) {
        Ok(client) => probe_at(&client, timeout, provider, environment),
        Err(_) => Probe::Absent,
    }
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
            let environment = Environment::new(&variables);
            let provider = local("ollama", &environment, None);
            // A busy machine may take its time.
            let client = locate(&provider, None, &environment).expect("a client");
            let found = probe_at(&client, Some(Duration::ZERO), &provider, &environment);
            assert_eq!(format!("{found:?}"), expected, "{status} {body} {key}");
        }
        let environment = Environment::new(&[("OLLAMA_HOST", "http://127.0.0.1:1")]);
        let provider = local("ollama", &environment, None);
        assert_eq!(probe(&provider, &environment), Probe::Absent);
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
