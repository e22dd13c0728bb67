//! Addresses of providers and tool servers: checked when they are set, and shown without anything secret in them.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use http::Uri;
use http::uri::{Authority, PathAndQuery};

use percent_encoding::percent_decode_str;

use crate::secret::{self, Secret};
use crate::text::digits::is_digits;

/// What is wrong with an address like `localhost:8080`.
const NO_SCHEME: &str = "is not a URL: it must begin with http:// or https://";

/// What q itself adds to an address for a question. Addresses in the documents of vendors often end like this.
const PATHS_OF_QUESTIONS: [&str; 4] = [
    "/chat/completions",
    "/responses",
    "/v1/messages",
    "/messages",
];

/// Hosts whose API is like OpenAI's and has no version in its paths.
const WITHOUT_VERSION: [&str; 1] = ["api.perplexity.ai"];

/// The place of the version in an API's URLs: people write base URLs with it and without it.
#[derive(Debug, Clone, Copy)]
pub enum Version {
    /// At the end of the base URL, which is `/v1` if the URL has no path at all.
    InBaseUrl,
    /// In the paths below the base URL, which does not end in one of these.
    InPaths(&'static [&'static str]),
}

/// The error for a URL with a variable in place of one of its parts. A list of tool servers has its variables filled in before.
const UNFILLED: &str =
    "is not a URL: variables such as ${HOST} are not filled in here; write their values";

/// The parameters of a query that hold a key.
const KEY_PARAMETERS: [&str; 6] = ["key", "api-key", "api_key", "token", "access_token", "sig"];

/// Schemes of URLs in which no host follows: an `@` is a part of an address there.
const SCHEMES_WITHOUT_HOST: [&str; 5] = ["mailto", "sip", "sips", "xmpp", "acct"];

/// An `http` or `https` URL with a host. Paths are added to it, and its query is added to each of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl {
    /// Without user, password and query.
    uri: Uri,
    /// It may contain a key. Empty if there is none.
    query: Secret,
    /// User and password, as in the URL.
    user_info: Option<Secret>,
}

impl ServerUrl {
    /// Checks a URL. A slash at its end does not matter. An error repeats nothing of it that may be secret.
    pub fn parse(text: &str) -> Result<ServerUrl, String> {
        check_is_filled_in(text.trim())?;
        ServerUrl::parse_filled(text)
    }

    /// Checks a URL whose variables have been filled in.
    fn parse_filled(text: &str) -> Result<ServerUrl, String> {
        let text = text.trim();
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") {
            return Err(NO_SCHEME.to_owned());
        }
        check_characters(text)?;
        let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
        PathAndQuery::try_from(format!("/?{query}")).map_err(not_a_url)?;
        let (authority, path) = base.split_at(base.find('/').unwrap_or(base.len()));
        let (user_info, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        if host.is_empty() || host.starts_with(':') {
            return Err("is not a URL: it names no host".to_owned());
        }
        let path = path.trim_end_matches('/');
        let uri: Uri = format!("{scheme}://{host}{path}")
            .parse()
            .map_err(not_a_url)?;
        // The parser ignores a port that is empty or too long. An IPv6 address in brackets may have colons, too.
        let has_port = !host.ends_with(']') && host.contains(':');
        let has_number = uri.port().is_some_and(|port| is_digits(port.as_str()));
        if has_port && !has_number {
            return Err("has a port that is not a number up to 65535".to_owned());
        }
        let address = ServerUrl {
            uri,
            query: Secret::new(query),
            user_info: (!user_info.is_empty()).then(|| Secret::new(user_info)),
        };
        address.without_path_of_question()
    }

    /// Refuses an address that already has the path of a question, and shows the one that was meant.
    fn without_path_of_question(self) -> Result<ServerUrl, String> {
        let shown = self.to_string();
        let query = match self.query.expose() {
            "" => "",
            _ => "?…",
        };
        for path in PATHS_OF_QUESTIONS {
            if let Some(before) = shown.to_ascii_lowercase().strip_suffix(path) {
                let meant = &shown[..before.len()];
                return Err(format!(
                    "ends in {path}, which q adds itself: it must be {meant}{query}"
                ));
            }
        }
        Ok(self)
    }

    /// Returns the address with the version of an API where that API has it.
    pub fn with_version(self, version: Version) -> ServerUrl {
        let shown = self.to_string();
        let base = match version {
            Version::InBaseUrl if shown != self.origin() => return self,
            Version::InBaseUrl if WITHOUT_VERSION.contains(&self.host()) => return self,
            Version::InBaseUrl => format!("{shown}/v1"),
            Version::InPaths(versions) => {
                let mut found = versions.iter().filter_map(|end| shown.strip_suffix(end));
                match found.next() {
                    Some(base) => base.to_owned(),
                    None => return self,
                }
            }
        };
        match base.parse() {
            Ok(uri) => ServerUrl { uri, ..self },
            Err(_) => self,
        }
    }

    /// Returns the URL of a path below this address, with its query.
    pub fn join(&self, path: &str) -> String {
        let separator = match self.query.expose() {
            "" => "",
            _ if path.contains('?') => "&",
            _ => "?",
        };
        format!("{self}{path}{separator}{}", self.query.expose())
    }

    /// Returns the address without user and password, and without the parameters of its query that hold keys: those whose names
    /// usual keys have, and those that `names_key` names. A server hears nothing from it of who asks, and it says which of the
    /// servers that a host has this is.
    pub fn keyless(&self, names_key: impl Fn(&str) -> bool) -> ServerUrl {
        let is_key = |parameter: &&str| {
            let name = parameter.split('=').next().unwrap_or_default();
            is_key_parameter(name) || names_key(name)
        };
        let mut fields = Vec::new();
        for field in self.query.expose().split('&') {
            // A semicolon separates parameters, too, or is a part of a key.
            let before_key = field.split(';').take_while(|parameter| !is_key(parameter));
            let before_key = Vec::from_iter(before_key);
            if !before_key.is_empty() {
                fields.push(before_key.join(";"));
            }
        }
        ServerUrl {
            uri: self.uri.clone(),
            query: Secret::new(fields.join("&")),
            user_info: None,
        }
    }

    pub fn is_https(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    /// Returns the host without the brackets of an IPv6 address.
    pub fn host(&self) -> &str {
        let host = self.uri.host().unwrap_or_default();
        host.trim_matches(['[', ']'])
    }

    /// Returns the port, which the scheme gives where the URL does not.
    pub fn port(&self) -> u16 {
        let usual = if self.is_https() { 443 } else { 80 };
        self.uri.port_u16().unwrap_or(usual)
    }

    /// Whether requests go to the loopback of this machine: 127/8, ::1, localhost and the names below it, in every spelling that
    /// means one of them.
    pub fn is_loopback(&self) -> bool {
        let host = self.host().to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        if let Ok(ip) = host.parse::<Ipv6Addr>() {
            let mapped = ip.to_ipv4_mapped();
            return mapped.map_or(ip.is_loopback(), |mapped| mapped.is_loopback());
        }
        ipv4_of(host).is_some_and(|ip| ip.is_loopback())
            || host == "localhost"
            || host.ends_with(".localhost")
    }

    /// Returns scheme, host and port, without a path.
    pub fn origin(&self) -> String {
        let scheme = self.uri.scheme_str().unwrap_or_default();
        let authority = self.uri.authority().map_or("", Authority::as_str);
        format!("{scheme}://{authority}")
    }

    /// Returns where a redirect from this address leads, without what may be secret: user info, query and fragment.
    pub fn redirect_target(&self, location: &str) -> String {
        let beginning = location.split(':').next().unwrap_or_default();
        if SCHEMES_WITHOUT_HOST.contains(&&*beginning.to_ascii_lowercase()) {
            let end = location.find(['?', '#']).unwrap_or(location.len());
            return location[..end].to_owned();
        }
        let is_path = location.starts_with('/') && !location.starts_with("//");
        let (before, rest) = match location.split_once("//") {
            _ if is_path => (self.origin(), location),
            Some(("", rest)) => {
                let scheme = self.uri.scheme_str().unwrap_or_default();
                (format!("{scheme}://"), rest)
            }
            Some((scheme, rest)) if scheme.ends_with(':') => (format!("{scheme}//"), rest),
            _ => (String::new(), location),
        };
        let rest = secret::without_user_info(rest);
        let end = rest.find(['?', '#']).unwrap_or(rest.len());
        before + &rest[..end]
    }

    /// Whether requests leave this machine unencrypted.
    pub fn is_exposed(&self) -> bool {
        !self.is_https() && !self.is_loopback()
    }

    /// Returns the header for the user and password in the URL (RFC 7617).
    pub fn authorization(&self) -> Option<Secret> {
        let user_info = self.user_info.as_ref()?;
        let encoded = secret::in_header(user_info.expose());
        Some(Secret::new(format!("Basic {encoded}")))
    }

    /// Returns the parts of the URL that must not be shown: its password, or its user where there is none, and all values of its
    /// query, whatever their names are.
    pub fn secrets(&self) -> Vec<Secret> {
        self.secrets_of(|_| true)
    }

    /// Returns those of its secrets that are keys for sure, not ordinary words: its password, or its user where there is none, and
    /// the values of its query that are keys by their names.
    pub fn keys(&self, names_key: impl Fn(&str) -> bool) -> Vec<Secret> {
        self.secrets_of(|name| is_key_parameter(name) || names_key(name))
    }

    /// Returns its password, or its user where there is none, and those values of its query whose names are secret.
    fn secrets_of(&self, is_secret: impl Fn(&str) -> bool) -> Vec<Secret> {
        let mut secrets = secret::of_query(self.query.expose(), is_secret);
        if let Some(user_info) = &self.user_info {
            secrets.extend(secret::of_user_info(user_info.expose()));
        }
        secrets
    }
}

/// Refuses a variable, except before the @ of the host, where a password may look like one.
fn check_is_filled_in(text: &str) -> Result<(), String> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path_and_query) = rest.split_at(end);
    let host = authority.rsplit('@').next().unwrap_or_default();
    // A path may have a dollar, and no host has one.
    if host.contains('$') || path_and_query.contains("${") {
        return Err(UNFILLED.to_owned());
    }
    Ok(())
}

/// Refuses what others read otherwise than q: to browsers and proxies, `#` and a backslash end the host, so that what follows is
/// no server. In a password or a query they have to be escaped anyway, as blanks and control characters have everywhere.
fn check_characters(text: &str) -> Result<(), String> {
    let is_wrong =
        |char: &char| matches!(char, '#' | '\\') || char.is_whitespace() || char.is_control();
    let what = match text.chars().find(is_wrong) {
        None => return Ok(()),
        Some('#') => "“#”, which is written %23",
        Some('\\') => "a backslash, which is written %5C",
        Some(' ') => "a blank, which is written %20",
        Some(_) => "a control character",
    };
    Err(format!("is not a URL: it has {what}"))
}

/// Returns the address that a host is, in each way in which systems read one: of one to four numbers, of which the last is the
/// rest of the address, and which may be octal or hexadecimal.
fn ipv4_of(host: &str) -> Option<Ipv4Addr> {
    let mut parts = Vec::new();
    for part in host.split('.') {
        let (digits, radix) = match part.strip_prefix("0x") {
            Some(digits) => (digits, 16),
            None if part.len() > 1 && part.starts_with('0') => (&part[1..], 8),
            None => (part, 10),
        };
        if !digits.chars().all(|digit| digit.is_digit(radix)) {
            return None;
        }
        parts.push(u32::from_str_radix(digits, radix).ok()?);
    }
    let (last, first) = parts.split_last()?;
    if first.len() > 3 || first.iter().any(|part| *part > 255) {
        return None;
    }
    let mut bits = 0;
    for (place, part) in first.iter().enumerate() {
        bits |= part << (24 - 8 * place);
    }
    let most = u32::MAX >> (8 * first.len());
    (*last <= most).then(|| Ipv4Addr::from_bits(bits | last))
}

/// Whether a parameter of a query is one of those that hold a key.
fn is_key_parameter(name: &str) -> bool {
    let name = percent_decode_str(name).decode_utf8_lossy();
    let mut names = KEY_PARAMETERS.iter();
    names.any(|key| name.eq_ignore_ascii_case(key))
}

fn not_a_url(error: impl fmt::Display) -> String {
    format!("is not a URL ({error})")
}

/// The address without user, password and query.
impl fmt::Display for ServerUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.uri.to_string().trim_end_matches('/'))
    }
}

/// A URL that is requested exactly as it is, with its path and its query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Where the server is, without a path.
    pub server: ServerUrl,
    /// Both may contain a key.
    path_and_query: Secret,
    /// What variables have added to it besides its scheme, host and port. Any of it may be a key, so its path is not shown then.
    variables: Vec<Secret>,
}

impl Endpoint {
    /// Checks a URL. An error repeats nothing of it that may be secret.
    pub fn parse(text: &str) -> Result<Endpoint, String> {
        check_is_filled_in(text.trim())?;
        Endpoint::parse_filled(text)
    }

    /// Checks a URL whose variables have been filled in. An error repeats nothing of it that may be secret.
    pub fn parse_filled(text: &str) -> Result<Endpoint, String> {
        let text = text.trim();
        check_characters(text)?;
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, path_and_query) = rest.split_at(end);
        let server = ServerUrl::parse_filled(&format!("{scheme}://{host}"))?;
        let mut path_and_query = path_and_query.to_owned();
        if !path_and_query.starts_with('/') {
            path_and_query.insert(0, '/');
        }
        PathAndQuery::try_from(path_and_query.as_str()).map_err(not_a_url)?;
        Ok(Endpoint {
            server,
            path_and_query: Secret::new(path_and_query),
            variables: Vec::new(),
        })
    }

    /// Notes the variables that have been filled in, with their values. A value of which all is in its scheme, host and port, and
    /// nothing elsewhere, is no secret, unless the variable has the name of a key.
    pub fn add_variables(
        &mut self,
        variables: Vec<(String, Secret)>,
        names_key: impl Fn(&str) -> bool,
    ) {
        let shown = self.server.to_string();
        let user_info = self.server.user_info.as_ref().map(Secret::expose);
        let hidden = [self.path_and_query(), user_info.unwrap_or_default()];
        let is_secret = |(name, value): &(String, Secret)| {
            let value = value.expose().trim_end_matches('/');
            names_key(name)
                || !shown.contains(value)
                || hidden.iter().any(|part| part.contains(value))
        };
        let secrets = variables.into_iter().filter(is_secret);
        let secrets = Vec::from_iter(secrets.map(|(_, value)| value));
        self.variables.extend(secrets);
    }

    /// Returns the path and the query, for the request and for nothing else.
    pub fn path_and_query(&self) -> &str {
        self.path_and_query.expose()
    }

    fn path_and_its_query(&self) -> (&str, &str) {
        let path = self.path_and_query();
        path.split_once('?').unwrap_or((path, ""))
    }

    /// Returns the parts of the URL that must not be shown: its password, or its user where there is none, the values of its query,
    /// and those of variables.
    pub fn secrets(&self) -> Vec<Secret> {
        let mut secrets = self.server.secrets();
        let (_, query) = self.path_and_its_query();
        secrets.extend(secret::of_query(query, |_| true));
        secrets.extend_from_slice(&self.variables);
        secrets
    }

    /// Returns the parts of the URL that are keys, as [`ServerUrl::keys`] does. The value of a variable may be an ordinary word,
    /// such as the name of a host.
    pub fn keys(&self, names_key: impl Fn(&str) -> bool) -> Vec<Secret> {
        let mut keys = self.server.keys(&names_key);
        let (_, query) = self.path_and_its_query();
        let is_key = |name: &str| is_key_parameter(name) || names_key(name);
        keys.extend(secret::of_query(query, is_key));
        keys
    }
}

/// The URL without user, password and query, and without a path that is hidden.
impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut path, _) = self.path_and_its_query();
        if !self.variables.is_empty() {
            path = "/…";
        }
        write!(formatter, "{}{path}", self.server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn a_url_without_a_scheme_is_refused_with_that_reason() {
        for text in ["localhost:8080", "127.0.0.1:8080/v1", "ftp://h", ""] {
            assert_eq!(
                ServerUrl::parse(text).err().as_deref(),
                Some(NO_SCHEME),
                "{text}"
            );
        }
    }

    #[test]
    fn urls_are_joined_with_paths_and_shown_without_secrets() {
        let table = r##"
            /x | http://127.0.0.1:8080/v1/x | http://127.0.0.1:8080/v1 | http://127.0.0.1:8080/v1
            /x | https://h.example/v1/x | https://h.example/v1 | https://h.example/v1//
            /x | https://h.example/x | https://h.example | https://h.example
            /x | http://h:1/v1/x | http://h:1/v1 | http://u:secret@h:1/v1/
            /x | http://[::1]:11434/v1/x | http://[::1]:11434/v1 | ␊ http://[::1]:11434/v1␊
            /x | http://[::1]/x | http://[::1] | http://[::1]
            /x | http://h/v1/x | http://h/v1 | http://h/v1?
            /x | http://h/v1/x?a=b&key=secret/ | http://h/v1 | ␊ http://h/v1/?a=b&key=secret/ ␊
            /x?alt=sse | http://h/x?alt=sse&key=secret | http://h | http://u:p@h?key=secret
        "##;
        for [path, joined, shown, text] in rows(table) {
            let text = &text.replace('␊', "\n");
            let address = ServerUrl::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(
                (address.join(path).as_str(), address.to_string().as_str()),
                (joined, shown)
            );
            assert!(!format!("{address:?}").contains("secret"));
        }
    }

    #[test]
    fn the_target_of_a_redirect_is_shown_without_secrets() {
        let table = r##"
            https://h/x | https://h/x
            https://h:8080/x/ | https://h:8080/x/
            https://h/@scope/x@y | https://h/@scope/x@y
            https://h:8080/x:1@y | https://h:8080/x:1@y
            https://[::1]/x@y | https://[::1]/x@y
            https://h/x | https://h/x?to=me@elsewhere
            https://h/x | https://h/x#a@b
            https://h | https://h?to=me@elsewhere
            https://h | https://h?to=//me@elsewhere
            https://h/x@y | https://secret@h/x@y
            https://h/x@y | https://me:secret@h/x@y?key=secret@z
            https://h:1/x | https://me:secret@word@h:1/x
            https://h/x | https://me:secret/word@h/x
            https://h/x | https://me:secret?word@h/x
            https://h/x | https://me:[redacted]/secret@h/x
            ftp://h/x | ftp://me:secret@h/x
            http://box:1/x@y | /x@y?key=secret
            http://box:1/x//h@y | /x//h@y
            http://h/x@y | //h/x@y
            http://h/x | //me:secret@h/x
            x/y@z | x/y@z
            h/x | me:secret@h/x
            mailto:a@b | mailto:a@b
            MAILTO:a@b | MAILTO:a@b?subject=secret
            xmpp:a@b/x | xmpp:a@b/x#secret
            h/x | mailtome:secret@h/x
        "##;
        let address = ServerUrl::parse("http://me:pass@box:1/v1?key=1").expect("an address");
        for [target, location] in rows(table) {
            assert_eq!(address.redirect_target(location), target, "{location}");
        }
    }

    #[test]
    fn text_that_is_not_a_url_is_refused_without_being_repeated() {
        let texts = "http://|http:///v1|http://h:99999|http://h:/v1|http://h:x|http://h/v1?a b|\
            http://a b/|http://u:hunter22@h:x|http://h#@hunter22/v1|http://h\\@hunter22/v1|http://h/v1#hunter22|\
            http://h/v1?a=b#hunter22|http://hunter22:#@h|http://h\t/v1|http://h/\u{a0}x|http://h\u{7f}/|http://h\n@i/";
        for text in texts.split('|') {
            let error = ServerUrl::parse(text).expect_err(text);
            assert!(!error.contains("hunter22"), "{error}");
            assert!(Endpoint::parse(text).is_err(), "{text}");
        }
        for text in [
            "${URL}",
            "${URL}/mcp",
            "$URL",
            "$URL/v1",
            "http://$HOST/mcp",
            "https://u:p@h:$PORT?x",
            "http://${HOST}/mcp",
            "https://u@h:${PORT}?x",
            "https://h/v1/${TOKEN}/mcp",
            "https://u:p@h?key=${TOKEN:-x}",
        ] {
            let error = ServerUrl::parse(text).expect_err(text);
            assert_eq!(error, UNFILLED, "{text}");
            let error = Endpoint::parse(text).expect_err(text);
            assert_eq!(error, UNFILLED, "{text}");
        }
        for text in ["https://u:${p}@h/v1", "https://h/$TOKEN"] {
            assert!(ServerUrl::parse(text).is_ok(), "{text}");
            assert!(Endpoint::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_base_url_with_the_path_of_a_request_is_refused_with_the_one_to_use() {
        let table = r##"
            /chat/completions | https://h/v1 | https://h/v1/chat/completions
            /responses | https://h/v1?… | https://u:secret@h/v1/responses/?key=secret
            /v1/messages | https://h | https://h/v1/messages
            /messages | https://h/a | https://h/a/messages
            /chat/completions | https://h/V1 | https://h/V1/Chat/Completions
        "##;
        for [path, meant, text] in rows(table) {
            let expected = format!("ends in {path}, which q adds itself: it must be {meant}");
            assert_eq!(ServerUrl::parse(text), Err(expected), "{text}");
        }
        assert!(ServerUrl::parse("https://messages/v1").is_ok());
    }

    fn exposed(secrets: Vec<Secret>) -> String {
        let secrets = secrets.iter().map(|secret| secret.expose().to_owned());
        Vec::from_iter(secrets).join(" ")
    }

    #[test]
    fn credentials_in_a_url_are_decoded_and_kept_secret() {
        let address = ServerUrl::parse("http://me:p%40ss@h").expect("an address");
        // me:p@ss
        let header = address.authorization().expect("user info");
        assert_eq!(header.expose(), "Basic bWU6cEBzcw==");
        assert_eq!(exposed(address.secrets()), "bWU6cEBzcw== p%40ss p@ss");
        let address = ServerUrl::parse("http://h?version=2&key=12%2F45").expect("an address");
        assert_eq!(exposed(address.secrets()), "2 12%2F45");
        assert!(
            ServerUrl::parse("http://h").is_ok_and(|address| address.authorization().is_none())
        );
    }

    #[test]
    fn a_keyless_url_has_neither_login_nor_parameters_that_are_keys_by_their_names() {
        let table = r##"
            https://h/v1/m?api-version=1&&a=b | https://me:p@h/v1/?api-version=1&&a=b
            https://h/v1/m | https://token@h/v1
            https://h/v1/m?a=b&api-version=1 | https://h/v1?key=1&a=b&API-Key=2&api-version=1&sig=3
            https://h/v1/m | https://h/v1?api%2Dkey=1&token=2
            https://h/m?monkey=1&token_type=x | https://h?monkey=1&access_token=1&token_type=x&api_key
            https://h/m?a=key | https://h?a=key
            https://h/v1/m?a=b | https://h/v1?a=b&x-secret=1
            https://h/v1/m?a=b&c=d | https://h/v1?a=b&c=d;token=2
            https://h/v1/m?a=b | https://h/v1?a=b&token=1;c
            https://h/v1/m?a=b;;c=d&e=f | https://h/v1?a=b;;c=d;sig=2&token=1;sig=2&e=f
            https://h/m | https://h?api_key=1
        "##;
        for [keyless, text] in rows(table) {
            let address = ServerUrl::parse(text).expect(text);
            let found = address.keyless(|name| name.contains("secret"));
            assert_eq!(found.join("/m"), keyless, "{text}");
            assert_eq!(found.authorization(), None, "{text}");
        }
    }

    #[test]
    fn an_endpoint_keeps_its_path_and_hides_its_query() {
        let table = r##"
            https://h.example | /mcp | https://h.example/mcp | https://h.example/mcp
            https://h.example | /mcp/ | https://h.example/mcp/ | https://h.example/mcp/ ␊
            https://h.example | / | https://h.example/ | https://h.example
            http://h:1 | /a/b | http://h:1/a/b | http://me:hunter22@h:1/a/b
            https://h | /?key=hunter22&a=b%20c | https://h/ | https://h?key=hunter22&a=b%20c
            https://h | /an-organization-with-a-long-name/mcp | https://h/an-organization-with-a-long-name/mcp | https://h/an-organization-with-a-long-name/mcp
            https://h | /organizations/mcp | https://h/organizations/mcp | https://h/organizations/mcp
        "##;
        for [server, path_and_query, shown, text] in rows(table) {
            let text = &text.replace('␊', "\n");
            let endpoint = Endpoint::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(endpoint.server.to_string().as_str(), server);
            assert_eq!(endpoint.path_and_query(), path_and_query);
            assert_eq!(endpoint.to_string(), shown);
            assert!(!format!("{endpoint:?}").contains("hunter22"), "{text}");
        }
        let endpoint = Endpoint::parse("https://me:hunter22@h/a-long-part-of-a-path?key=12%2F45&x");
        let secrets = exposed(endpoint.expect("a URL").secrets());
        let expected = "bWU6aHVudGVyMjI= hunter22 hunter22 12%2F45 x";
        assert_eq!(secrets, expected);
        let mut endpoint = Endpoint::parse("https://h/a-b/mcp?k=v").expect("a URL");
        endpoint.add_variables(vec![("A".to_owned(), Secret::new("b"))], |_| false);
        assert_eq!(endpoint.to_string(), "https://h/…");
        assert_eq!(exposed(endpoint.secrets()), "v b");
        // A URL, a variable in it and its value, how the URL is shown, and what is secret.
        let table = r##"
            http://h.example:8080/mcp | HOST | http://h.example:8080 | http://h.example:8080/mcp | -
            http://h.example:8080/mcp | HOST | http://h.example:8080/ | http://h.example:8080/mcp | -
            http://h.example:8080/mcp | HOST | h.example | http://h.example:8080/mcp | -
            http://h.example:8080/mcp | HOST | 8080 | http://h.example:8080/mcp | -
            http://h.example:8080/mcp | HOST | http://h.example:8080/mcp | http://h.example:8080/… | http://h.example:8080/mcp
            http://h.example:8080/mcp | HOST | h.example:8080/mc | http://h.example:8080/… | h.example:8080/mc
            http://h.example/h.example | HOST | h.example | http://h.example/… | h.example
            http://token:p@token.example/mcp | HOST | token | http://token.example/… | dG9rZW46cA== p p token
            http://h.example/mcp | HOST | token@h.example | http://h.example/… | token@h.example
            http://hunter22.example/mcp | HOST | hunter22 | http://hunter22.example/mcp | -
            http://hunter22.example/mcp | KEY | hunter22 | http://hunter22.example/… | hunter22
            http://h.example:8080/mcp | KEY | 8080 | http://h.example:8080/… | 8080
        "##;
        for [text, name, value, shown, secrets] in rows(table) {
            let mut endpoint = Endpoint::parse(text).expect(text);
            let variables = vec![(name.to_owned(), Secret::new(value))];
            endpoint.add_variables(variables, |name| name == "KEY");
            assert_eq!(endpoint.to_string(), shown, "{text} {value}");
            assert_eq!(exposed(endpoint.secrets()), secrets, "{text} {value}");
        }
        let texts = "|h.example/mcp|ftp://h/mcp|https:///mcp|https://h/a b";
        for text in texts.split('|') {
            assert!(Endpoint::parse(text).is_err(), "{text}");
        }
        for (text, reason) in [
            ("${HOST}/mcp", NO_SCHEME),
            ("http://${NOPE:1/mcp", "is not a URL ("),
            ("http://${HOST}/mcp", "is not a URL ("),
        ] {
            let error = Endpoint::parse_filled(text).expect_err(text);
            assert!(error.starts_with(reason), "{text}: {error}");
        }
    }

    #[test]
    fn the_version_of_an_api_is_added_to_or_taken_from_its_base_url() {
        let [openai, gemini] = [Version::InBaseUrl, Version::InPaths(&["/v1beta", "/v1"])];
        for (version, text, base) in [
            (openai, "http://h:1", "http://h:1/v1"),
            (openai, "http://h/", "http://h/v1"),
            (openai, "http://h/v1", "http://h/v1"),
            (openai, "http://h/api/paas/v4", "http://h/api/paas/v4"),
            (openai, "http://h/openai", "http://h/openai"),
            (openai, "http://h?a=b", "http://h/v1?a=b"),
            (
                openai,
                "https://api.perplexity.ai",
                "https://api.perplexity.ai",
            ),
            (gemini, "http://h", "http://h"),
            (gemini, "http://h/v1/", "http://h"),
            (gemini, "http://h/a/v1beta?a=b", "http://h/a?a=b"),
            (gemini, "http://h/v1/openai", "http://h/v1/openai"),
        ] {
            let address = ServerUrl::parse(text).expect(text).with_version(version);
            assert_eq!(address.join(""), base, "{text}");
        }
    }

    #[test]
    fn loopback_hosts_are_recognized() {
        for (text, loopback) in [
            ("http://localhost", true),
            ("http://LOCALHOST:1", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:1", true),
            ("http://localhost.:1", true),
            ("http://foo.localhost", true),
            ("http://foo.LocalHost./v1", true),
            ("http://127.1:1", true),
            ("http://127.0.1", true),
            ("http://127.0.0.1.", true),
            ("http://2130706433", true),
            ("http://0x7f.1", true),
            ("http://0x7F000001", true),
            ("http://017700000001", true),
            ("http://[::ffff:127.0.0.1]", true),
            ("http://[0:0::1]", true),
            ("http://0.0.0.0", false),
            ("http://0", false),
            ("http://[::]:1", false),
            ("http://localhost.example", false),
            ("http://notlocalhost", false),
            ("http://localhost..", false),
            ("http://10.0.0.1", false),
            ("http://127", false),
            ("http://1.127", false),
            ("http://127.0.0.0.1", false),
            ("http://127.0.0.256", false),
            ("http://127.256.1", false),
            ("http://4294967296", false),
            ("http://128.1", false),
            ("http://127.1.example", false),
            ("http://127.x", false),
            ("http://[::ffff:10.0.0.1]", false),
            ("http://[::2]", false),
        ] {
            let found = ServerUrl::parse(text).map(|address| address.is_loopback());
            assert_eq!(found, Ok(loopback), "{text}");
        }
    }
}
