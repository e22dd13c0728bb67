//! Addresses of providers and tool servers: checked when they are set, and shown without anything secret in them.

use std::fmt;
use std::net::IpAddr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::Uri;
use http::uri::PathAndQuery;
use percent_encoding::percent_decode_str;

use crate::secret::{self, Secret};

/// What is wrong with an address like `localhost:8080`.
const NO_SCHEME: &str = "is not a URL: it must begin with http:// or https://";

/// The paths of questions, which q adds itself, and what stands before them in the addresses that vendors show.
const PATHS_OF_QUESTIONS: [&str; 4] = [
    "/chat/completions",
    "/responses",
    "/v1/messages",
    "/messages",
];

/// An `http` or `https` URL with a host, to which paths are added. Its query ends every one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// Without user, password and query.
    uri: Uri,
    /// It may contain a key. Empty if there is none.
    query: Secret,
    /// User and password, as written in the URL and decoded.
    login: Option<Login>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Login {
    written: Secret,
    decoded: Secret,
}

impl Address {
    /// Checks a URL. A slash at its end does not matter.
    ///
    /// # Errors
    /// What is wrong with it, without the text itself, which may contain a password.
    pub(crate) fn parse(text: &str) -> Result<Address, String> {
        if !text.contains("://") {
            return Err(NO_SCHEME.to_owned());
        }
        let (place, query) = text.trim().split_once('?').unwrap_or((text.trim(), ""));
        PathAndQuery::try_from(format!("/?{query}"))
            .map_err(|error| format!("is not a URL ({error})"))?;
        let query = Secret::new(query);
        let uri: Uri = place
            .trim_end_matches('/')
            .parse()
            .map_err(|error: http::uri::InvalidUri| format!("is not a URL ({error})"))?;
        match uri.scheme_str() {
            Some("http" | "https") => {}
            Some(other) => {
                return Err(format!(
                    "has the scheme {other}, but only http and https can be used"
                ));
            }
            None => return Err(NO_SCHEME.to_owned()),
        }
        if uri.host().is_none_or(str::is_empty) {
            return Err("is not a URL: it names no host".to_owned());
        }
        if text.contains('#') {
            return Err("has a fragment, which a base URL cannot have".to_owned());
        }
        // The parser ignores a port that is empty or too long.
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let port = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        let port = port.rsplit_once(']').map_or(port, |(_, port)| port);
        if port.contains(':') && uri.port_u16().is_none() {
            return Err("has a port that is not a number up to 65535".to_owned());
        }
        let (uri, login) = without_login(uri).map_err(|error| format!("is not a URL ({error})"))?;
        Address { uri, query, login }.without_path_of_question()
    }

    /// Refuses an address to which q would add the path of a question a second time, and shows the one that was meant.
    fn without_path_of_question(self) -> Result<Address, String> {
        let shown = self.to_string();
        let Some((meant, path)) = PATHS_OF_QUESTIONS
            .iter()
            .find_map(|path| Some((shown.strip_suffix(path)?, path)))
        else {
            return Ok(self);
        };
        let query = if self.query.expose().is_empty() {
            ""
        } else {
            "?…"
        };
        Err(format!(
            "ends in {path}, which q adds itself: it must be {meant}{query}"
        ))
    }

    /// The URL of a path below this address.
    pub(crate) fn join(&self, path: &str) -> String {
        let separator = match self.query.expose() {
            "" => "",
            _ if path.contains('?') => "&",
            _ => "?",
        };
        format!("{self}{path}{separator}{}", self.query.expose())
    }

    pub(crate) fn is_https(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    /// The host without the brackets of an IPv6 address.
    pub(crate) fn host(&self) -> &str {
        self.uri
            .host()
            .unwrap_or_default()
            .trim_start_matches('[')
            .trim_end_matches(']')
    }

    /// The port in the URL, else the scheme's default.
    pub(crate) fn port(&self) -> u16 {
        self.uri
            .port_u16()
            .unwrap_or(if self.is_https() { 443 } else { 80 })
    }

    /// The host as an IP address, if it is one.
    pub(crate) fn ip(&self) -> Option<IpAddr> {
        self.host().parse().ok()
    }

    /// Whether requests stay on this machine: 127/8, ::1 and localhost.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.host().trim_end_matches('.');
        match host.parse::<IpAddr>() {
            Ok(ip) => ip.to_canonical().is_loopback(),
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        }
    }

    /// Scheme, host and port, without a path.
    pub(crate) fn origin(&self) -> String {
        let authority = self
            .uri
            .authority()
            .map_or("", |authority| authority.as_str());
        format!(
            "{}://{authority}",
            self.uri.scheme_str().unwrap_or_default()
        )
    }

    /// Whether requests leave this machine unencrypted.
    pub(crate) fn is_exposed(&self) -> bool {
        !self.is_https() && !self.is_loopback()
    }

    /// The header for the user and password in the URL (RFC 7617).
    pub(crate) fn authorization(&self) -> Option<Secret> {
        let login = self.login.as_ref()?;
        Some(Secret::new(format!(
            "Basic {}",
            BASE64_STANDARD.encode(login.decoded.expose())
        )))
    }

    /// The parts of the URL that must not be shown, in every form in which a server may repeat them.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let mut secrets = values_of(self.query.expose());
        if let Some(login) = &self.login {
            secrets.extend(secret::of_login(login.written.expose()));
        }
        secrets
    }
}

/// Takes user and password out of a URL.
fn without_login(uri: Uri) -> Result<(Uri, Option<Login>), http::Error> {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let Some((login, host)) = authority.rsplit_once('@') else {
        return Ok((uri, None));
    };
    let login = Login {
        decoded: Secret::new(percent_decode_str(login).decode_utf8_lossy()),
        written: Secret::new(login),
    };
    let host = host.parse()?;
    let mut parts = uri.into_parts();
    parts.authority = Some(host);
    Ok((Uri::from_parts(parts)?, Some(login)))
}

/// The values in a query, as they are written and decoded.
fn values_of(query: &str) -> Vec<Secret> {
    let values = query
        .split('&')
        .map(|field| field.split_once('=').map_or(field, |(_, value)| value));
    let values = values.filter(|value| !value.is_empty());
    values
        .flat_map(|value| {
            [
                Secret::new(value),
                Secret::new(percent_decode_str(value).decode_utf8_lossy()),
            ]
        })
        .collect()
}

/// The address without user, password and query.
impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.uri.to_string().trim_end_matches('/'))
    }
}

/// A URL that is requested exactly as it is, with its path and its query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// Where the server is, without a path.
    pub(crate) server: Address,
    /// Both may contain a key.
    path_and_query: Secret,
    /// Values in it that must not be shown.
    hidden: Vec<Secret>,
}

impl Endpoint {
    /// Checks a URL.
    ///
    /// # Errors
    /// What is wrong with it, without the text itself, which may contain a password.
    pub(crate) fn parse(text: &str) -> Result<Endpoint, String> {
        let text = text.trim();
        let host = text.find("://").map_or(0, |at| at + "://".len());
        let path = text[host..]
            .find(['/', '?', '#'])
            .map_or(text.len(), |at| host + at);
        let (server, path_and_query) = text.split_at(path);
        let server = Address::parse(server)?;
        if path_and_query.contains('#') {
            return Err("has a fragment, which cannot be sent".to_owned());
        }
        let path_and_query = match path_and_query.starts_with('/') {
            true => path_and_query.to_owned(),
            false => format!("/{path_and_query}"),
        };
        PathAndQuery::try_from(path_and_query.as_str())
            .map_err(|error| format!("is not a URL ({error})"))?;
        Ok(Endpoint {
            server,
            path_and_query: Secret::new(path_and_query),
            hidden: Vec::new(),
        })
    }

    /// The same, with values that must not be shown where they are parts of its path.
    pub(crate) fn hiding(mut self, values: Vec<Secret>) -> Endpoint {
        let path = self.path_and_query.expose();
        self.hidden = values
            .into_iter()
            .filter(|value| path.contains(value.expose()))
            .collect();
        self
    }

    /// The path and the query, for the request and for nothing else.
    pub(crate) fn path_and_query(&self) -> &str {
        self.path_and_query.expose()
    }

    /// The parts of the URL that must not be shown: its password, the values of its query, and those that are hidden.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let query = self
            .path_and_query()
            .split_once('?')
            .map_or("", |(_, query)| query);
        [self.server.secrets(), values_of(query), self.hidden.clone()].concat()
    }
}

/// The URL without user, password and query, and without parts that are hidden.
impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path_and_query().split('?').next().unwrap_or_default();
        let is_hidden = |part: &str| {
            self.hidden
                .iter()
                .any(|value| part.contains(value.expose()))
        };
        let parts: Vec<&str> = path
            .split('/')
            .map(|part| if is_hidden(part) { "…" } else { part })
            .collect();
        write!(formatter, "{}{}", self.server, parts.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinguished_from_numbers() {
        for (text, is_number) in [
            ("http://10.0.0.1/v1", true),
            ("http://[fe80::1]:1", true),
            ("https://localhost", false),
            ("http://a.b", false),
        ] {
            assert_eq!(
                Address::parse(text).expect(text).ip().is_some(),
                is_number,
                "{text}"
            );
        }
        for text in ["localhost:8080", "127.0.0.1:8080/v1", "llm.corp.example/v1"] {
            assert_eq!(
                Address::parse(text).err().as_deref(),
                Some(NO_SCHEME),
                "{text}"
            );
        }
    }

    #[test]
    fn addresses_are_joined_and_shown_without_secrets() {
        for (text, path, joined, shown) in [
            (
                "http://127.0.0.1:8080/v1",
                "/x",
                "http://127.0.0.1:8080/v1/x",
                "http://127.0.0.1:8080/v1",
            ),
            (
                "https://h.example/v1//",
                "/x",
                "https://h.example/v1/x",
                "https://h.example/v1",
            ),
            (
                "https://h.example",
                "/x",
                "https://h.example/x",
                "https://h.example",
            ),
            (
                "http://u:secret@h:1/v1/",
                "/x",
                "http://h:1/v1/x",
                "http://h:1/v1",
            ),
            (
                " http://[::1]:11434/v1\n",
                "/x",
                "http://[::1]:11434/v1/x",
                "http://[::1]:11434/v1",
            ),
            ("http://h/v1?", "/x", "http://h/v1/x", "http://h/v1"),
            (
                " http://h/v1/?a=b&key=secret/ ",
                "/x",
                "http://h/v1/x?a=b&key=secret/",
                "http://h/v1",
            ),
            (
                "http://u:p@h?key=secret",
                "/x?alt=sse",
                "http://h/x?alt=sse&key=secret",
                "http://h",
            ),
        ] {
            let address = Address::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(
                (address.join(path).as_str(), address.to_string().as_str()),
                (joined, shown)
            );
            assert!(!format!("{address:?}").contains("secret"));
        }
    }

    #[test]
    fn what_is_not_a_url_is_refused_without_being_repeated() {
        for text in [
            "",
            "localhost:8080",
            "example.com/v1",
            "ftp://h",
            "http://",
            "http:///v1",
            "http://h:99999",
            "http://h:/v1",
            "http://h:x",
            "http://h/#f",
            "http://h/v1?a=b#f",
            "http://h/v1?a b",
            "http://a b/",
            "http://u:hunter22@h:x",
        ] {
            let error = Address::parse(text).expect_err(text);
            assert!(!error.contains("hunter22"), "{error}");
        }
    }

    #[test]
    fn an_address_that_ends_in_the_path_of_a_question_is_refused_with_the_one_that_was_meant() {
        for (text, path, meant) in [
            (
                "https://h/v1/chat/completions",
                "/chat/completions",
                "https://h/v1",
            ),
            (
                "https://u:secret@h/v1/responses/?key=secret",
                "/responses",
                "https://h/v1?…",
            ),
            ("https://h/v1/messages", "/v1/messages", "https://h"),
            ("https://h/a/messages", "/messages", "https://h/a"),
        ] {
            let expected = format!("ends in {path}, which q adds itself: it must be {meant}");
            assert_eq!(Address::parse(text), Err(expected), "{text}");
        }
        assert!(Address::parse("https://messages/v1").is_ok());
    }

    #[test]
    fn a_login_is_decoded_and_kept_secret() {
        let address = Address::parse("http://me:p%40ss@h").expect("an address");
        // me:p@ss
        assert_eq!(
            address
                .authorization()
                .map(|header| header.expose().to_owned())
                .as_deref(),
            Some("Basic bWU6cEBzcw==")
        );
        let secrets: Vec<String> = address
            .secrets()
            .iter()
            .map(|secret| secret.expose().to_owned())
            .collect();
        assert_eq!(secrets, ["p%40ss", "p@ss", "bWU6cEBzcw=="]);
        let address = Address::parse("http://h?version=2&key=12%2F45").expect("an address");
        let secrets: Vec<String> = address
            .secrets()
            .iter()
            .map(|secret| secret.expose().to_owned())
            .collect();
        assert_eq!(secrets, ["2", "2", "12%2F45", "12/45"]);
        assert!(Address::parse("http://h").is_ok_and(|address| address.authorization().is_none()));
    }

    #[test]
    fn an_endpoint_keeps_its_path_and_hides_its_query() {
        for (text, server, path_and_query, shown) in [
            (
                "https://h.example/mcp",
                "https://h.example",
                "/mcp",
                "https://h.example/mcp",
            ),
            (
                "https://h.example/mcp/ ",
                "https://h.example",
                "/mcp/",
                "https://h.example/mcp/",
            ),
            (
                "https://h.example",
                "https://h.example",
                "/",
                "https://h.example/",
            ),
            (
                "http://me:hunter22@h:1/a/b",
                "http://h:1",
                "/a/b",
                "http://h:1/a/b",
            ),
            (
                "https://h?key=hunter22&a=b%20c",
                "https://h",
                "/?key=hunter22&a=b%20c",
                "https://h/",
            ),
            (
                "https://h/an-organization-with-a-long-name/mcp",
                "https://h",
                "/an-organization-with-a-long-name/mcp",
                "https://h/an-organization-with-a-long-name/mcp",
            ),
            (
                "https://h/organizations/mcp",
                "https://h",
                "/organizations/mcp",
                "https://h/organizations/mcp",
            ),
        ] {
            let endpoint = Endpoint::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(
                (
                    endpoint.server.to_string().as_str(),
                    endpoint.path_and_query()
                ),
                (server, path_and_query)
            );
            assert_eq!(endpoint.to_string(), shown);
            assert!(!format!("{endpoint:?}").contains("hunter22"), "{text}");
        }
        let secrets = |endpoint: &Endpoint| -> Vec<String> {
            endpoint
                .secrets()
                .iter()
                .map(|secret| secret.expose().to_owned())
                .collect()
        };
        let endpoint = Endpoint::parse("https://me:hunter22@h/a-long-part-of-a-path?key=12%2F45&x")
            .expect("a URL");
        let expected = [
            "hunter22",
            "hunter22",
            "bWU6aHVudGVyMjI=",
            "12%2F45",
            "12/45",
            "x",
            "x",
        ];
        assert_eq!(secrets(&endpoint), expected);
        let endpoint = Endpoint::parse("https://h/a-b/mcp")
            .expect("a URL")
            .hiding(vec![Secret::new("b"), Secret::new("h/")]);
        assert_eq!(
            (endpoint.to_string().as_str(), secrets(&endpoint)),
            ("https://h/…/mcp", vec!["b".to_owned()])
        );
        for text in [
            "",
            "h.example/mcp",
            "ftp://h/mcp",
            "https:///mcp",
            "https://h/mcp#x",
            "https://h#x",
            "https://h/a b",
        ] {
            assert!(Endpoint::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn loopback_is_known() {
        for (text, loopback) in [
            ("http://localhost", true),
            ("http://LOCALHOST:1", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:1", true),
            ("http://localhost.:1", true),
            ("http://[::ffff:127.0.0.1]:1", true),
            ("http://localhost.example", false),
            ("http://10.0.0.1", false),
            ("http://0.0.0.0", false),
        ] {
            assert_eq!(
                Address::parse(text).map(|address| address.is_loopback()),
                Ok(loopback),
                "{text}"
            );
        }
    }
}
