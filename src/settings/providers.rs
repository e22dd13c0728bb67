//! The configured providers: the built-in ones, as file and environment change them, and the file's own (pure).

use std::sync::{Arc, OnceLock};

use super::environment::Environment;
use super::file::ProviderSection;
use super::headers::{HeaderEntry, OwnHeaders};
use super::key::{Key, names_key};
use super::origin::{Origin, Sourced};
use crate::error::Error;
use crate::provider::Dialect;
use crate::provider::request::{Field, Quirks};
use crate::provider::table::{self, OPENAI_LIKE, ProviderRow};
use crate::secret::Secret;
use crate::server_url::ServerUrl;

/// The host that Ollama reaches over TLS where `OLLAMA_HOST` names no scheme.
const OLLAMA_CLOUD: &str = "ollama.com";

/// A server that can be asked.
#[derive(Debug, Clone)]
pub struct Provider {
    pub name: String,
    pub api: &'static Dialect,
    /// Or why the configured address cannot be used. The built-in address is parsed once it is needed.
    address: OnceLock<Result<ServerUrl, String>>,
    /// Another built-in address at which the server may be, unless it was moved.
    pub other_address: Option<&'static str>,
    pub key: Key,
    /// The model to ask if none is named: its section's, else the table's; `None` is the first one on its list.
    pub model: Option<Sourced>,
    /// Or why a variable in them cannot be filled in.
    headers: Result<OwnHeaders, String>,
    /// Fields that are added to every request.
    pub options: Vec<Field>,
    /// What the server at its address needs and rejects.
    pub quirks: Quirks,
    /// Its row of the table; for other providers that of a server like OpenAI's.
    pub row: &'static ProviderRow,
}

/// Returns all providers: those of the file in its order, then the other rows of the table.
pub fn all(mut sections: Vec<ProviderSection>, environment: &Environment) -> Vec<Arc<Provider>> {
    for row in table::PROVIDERS {
        if !sections.iter().any(|section| section.name == row.name) {
            sections.push(ProviderSection {
                name: row.name.to_owned(),
                ..ProviderSection::default()
            });
        }
    }
    let sections = sections.into_iter();
    sections
        .map(|section| Arc::new(provider(section, environment)))
        .collect()
}

/// Returns a provider as its section, its row of the table and the environment describe it.
fn provider(section: ProviderSection, environment: &Environment) -> Provider {
    let row = table::find(&section.name).unwrap_or(&OPENAI_LIKE);
    let address = address(&section, row, environment);
    let other_address = row.other_base_url.filter(|_| address.get().is_none());
    let usual_model = row.model.map(|model| Sourced::new(model, Origin::Default));
    let mut provider = Provider {
        headers: filled_headers(&section, environment),
        name: section.name,
        api: row.api,
        address,
        other_address,
        key: key(section.key, row),
        model: section.model.or(usual_model),
        options: section.options,
        quirks: row.quirks,
        row,
    };
    provider.adapt(section.api);
    provider
}

/// Returns the address of a provider, or why it cannot be used; nothing if it is the built-in one.
fn address(
    section: &ProviderSection,
    row: &ProviderRow,
    environment: &Environment,
) -> OnceLock<Result<ServerUrl, String>> {
    let ProviderSection { name, origin, .. } = section;
    // The environment wins over the file.
    if let Some(moved) = moved(name, row, environment) {
        OnceLock::from(moved)
    } else if let Some(address) = &section.base_url {
        OnceLock::from(Ok(address.clone()))
    } else if row.base_url.is_empty() {
        let reason = format!("{origin}: providers.{name}: has no base_url");
        OnceLock::from(Err(reason))
    } else {
        OnceLock::new()
    }
}

/// Returns the key that a section names, else that of its row. A local server needs none.
fn key(own: Key, row: &ProviderRow) -> Key {
    if own != Key::None || row.key_variables.is_empty() {
        return own;
    }
    let names = row.key_variables.iter().map(ToString::to_string);
    let names = names.collect();
    if row.start.is_some() {
        Key::Optional(names)
    } else {
        Key::Variables(names)
    }
}

/// Returns the address that the environment gives to a provider, if any, or why it cannot be used.
fn moved(
    name: &str,
    row: &ProviderRow,
    environment: &Environment,
) -> Option<Result<ServerUrl, String>> {
    let in_variable = |variable: &str, parse: fn(&str) -> Result<ServerUrl, String>| {
        let address = environment.text(variable)?.and_then(parse);
        Some(address.map_err(|reason| format!("{variable} {reason}")))
    };
    let own = in_variable(&table::base_url_variable(name), ServerUrl::parse);
    if own.is_some() {
        return own;
    }
    let (provider, old_variable) = table::OLD_BASE_URL;
    if name == provider
        && let Some(address) = in_variable(old_variable, ServerUrl::parse)
    {
        return Some(address);
    }
    in_variable(row.host_variable?, ollama_host)
}

/// Returns the headers of a section with their variables filled in.
fn filled_headers(
    section: &ProviderSection,
    environment: &Environment,
) -> Result<OwnHeaders, String> {
    let provider = &section.name;
    let mut headers = OwnHeaders::default();
    for HeaderEntry {
        name,
        value,
        origin,
    } in &section.headers
    {
        let added = headers.add(name, value.expose(), environment);
        added.map_err(|reason| {
            format!("{origin}: providers.{provider}: headers: {name}: {reason}")
        })?;
    }
    Ok(headers)
}

/// Reads `OLLAMA_HOST` as Ollama does: scheme, host and port may be missing, an IPv6 address needs no brackets, and the address
/// of all interfaces is this machine's (Ollama, envconfig/config.go). A user and password are sent to the server.
fn ollama_host(text: &str) -> Result<ServerUrl, String> {
    let text = text.trim().trim_matches(['"', '\'']);
    let (scheme, rest, default_port) = match text.split_once("://") {
        Some((scheme, rest)) => (scheme, rest, ""),
        None if text == OLLAMA_CLOUD => ("https", text, ""),
        // Ollama's own port is the default only without a scheme.
        None => ("http", text, ":11434"),
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (login, server) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    let (name, port) = name_and_port(server);
    let port = if port.is_empty() { default_port } else { port };
    let host = match name {
        // A colon alone names neither.
        "" if port == ":" => String::new(),
        "" | "0.0.0.0" => "127.0.0.1".to_owned(),
        "[::]" | "::" => "[::1]".to_owned(),
        name if is_bare_ipv6(name) => format!("[{name}]"),
        name => name.to_owned(),
    };
    let path = path.trim_end_matches('/');
    let path = path.strip_suffix("/v1").unwrap_or(path);
    ServerUrl::parse(&format!("{scheme}://{login}{host}{port}{path}/v1"))
}

/// A server's name or IP address, and its port with the colon, if there is one.
fn name_and_port(server: &str) -> (&str, &str) {
    let is_address = server.ends_with(']') || is_bare_ipv6(server);
    // The last colon of an IPv6 address is a part of it.
    let colon = server.rfind(':').filter(|_| !is_address);
    server.split_at(colon.unwrap_or(server.len()))
}

/// Whether this can only be an IPv6 address without brackets: a name and its port have one colon.
fn is_bare_ipv6(server: &str) -> bool {
    let is_of_address = |char: char| char.is_ascii_hexdigit() || ":.".contains(char);
    server.matches(':').count() > 1 && server.chars().all(is_of_address)
}

impl Provider {
    /// Takes the API and the quirks of the server at its address, and completes that for the API. One that the file names wins.
    fn adapt(&mut self, api: Option<&'static Dialect>) {
        self.adapt_to_host();
        self.api = api.unwrap_or(self.api);
        if let Some(Ok(other)) = self.address.get() {
            let versioned = other.clone().with_version(self.api.version);
            self.address = OnceLock::from(Ok(versioned));
        }
    }

    /// Takes the API and the quirks of the server at its address, unless that is the built-in one. The host decides, not the
    /// provider's name.
    fn adapt_to_host(&mut self) {
        let Some(Ok(address)) = self.address.get() else {
            return;
        };
        let is_like_openai = |row: &ProviderRow| row.api_elsewhere.name == OPENAI_LIKE.api.name;
        self.api = self.row.api_elsewhere;
        self.quirks = OPENAI_LIKE.quirks;
        if let Some(vendor) = table::at_host(address.host()) {
            self.quirks = vendor.quirks;
            let speaks_its_own_api = if is_like_openai(vendor) {
                is_like_openai(self.row)
            } else {
                // Anthropic and Google speak their own API at the top of their host, and one like OpenAI's below it.
                address.to_string() == address.origin()
            };
            if speaks_its_own_api {
                self.api = vendor.api;
            }
        }
        // A gateway to OpenRouter passes its search on.
        self.quirks.searches |= self.row.quirks.searches;
    }

    /// Returns the provider's address.
    pub fn address(&self) -> Result<&ServerUrl, Error> {
        let parse = || ServerUrl::parse(self.row.base_url);
        let address = self.address.get_or_init(parse).as_ref();
        address.map_err(|reason| Error::settings(reason.clone()))
    }

    /// Its own headers.
    pub fn headers(&self) -> Result<&[(String, Secret)], Error> {
        match &self.headers {
            Ok(headers) => Ok(&headers.all),
            Err(reason) => Err(Error::settings(reason.clone())),
        }
    }

    /// Returns what its headers send as it stands and is hardly meant so, for notes.
    pub fn unfilled(&self) -> &[String] {
        match &self.headers {
            Ok(headers) => &headers.unfilled,
            Err(_) => &[],
        }
    }

    /// Returns its own headers; none of them if there is a key in one.
    pub fn headers_without_keys(&self) -> Result<&[(String, Secret)], Error> {
        match &self.headers {
            Ok(headers) if !headers.keys.is_empty() => Ok(&[]),
            _ => self.headers(),
        }
    }

    /// Returns the keys that are in its headers and in its URL, besides the one that has a place of its own.
    pub fn keys_within(&self) -> Vec<Secret> {
        let mut keys = Vec::new();
        // The built-in address, which need not be there yet, has none.
        if let Some(Ok(address)) = self.address.get() {
            keys.extend(address.keys(names_key));
        }
        if let Ok(headers) = &self.headers {
            keys.extend_from_slice(&headers.keys);
        }
        keys
    }

    /// Returns its other built-in address, if it may be there.
    pub fn other_address(&self) -> Option<ServerUrl> {
        ServerUrl::parse(self.other_address?).ok()
    }

    /// Whether its key is not sent: that of a local server stays on this machine, unless it is encrypted.
    pub fn withholds_key(&self) -> bool {
        matches!(self.key, Key::Optional(_)) && self.address().is_ok_and(ServerUrl::is_exposed)
    }

    /// Returns the command that starts its server; `None` if that is not one on this machine.
    pub fn start_command(&self) -> Option<&'static str> {
        self.row.start.filter(|_| self.is_on_this_machine())
    }

    /// Returns the command that gets a model for its server, if that is one on this machine and has such a command.
    pub fn command_to_get(&self, model: &str) -> Option<String> {
        let command = self.row.get_model.filter(|_| self.is_on_this_machine())?;
        Some(format!("{command} {model}"))
    }

    fn is_on_this_machine(&self) -> bool {
        self.address().is_ok_and(ServerUrl::is_loopback)
    }

    /// Whether a key is set that it needs, or a command that prints it.
    pub(super) fn has_key(&self, environment: &Environment) -> bool {
        match &self.key {
            Key::Command(_) => true,
            Key::Variables(_) => self.key.find(environment).is_some(),
            Key::None | Key::Optional(_) => false,
        }
    }

    /// Whether the user has set it up: its key or, for one that needs none, an address other than the built-in one.
    pub fn is_set_up(&self, environment: &Environment) -> bool {
        if !self.key.is_optional() {
            return self.has_key(environment);
        }
        if self.key.find(environment).is_some() {
            return true;
        }
        match self.address.get() {
            Some(Ok(address)) => ServerUrl::parse(self.row.base_url).as_ref() != Ok(address),
            Some(Err(_)) => true,
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::file::read_config;
    use super::*;
    use crate::text::table::rows;

    fn address_of(name: &str, variables: &[(&str, &str)]) -> String {
        let environment = Environment::new(variables);
        let providers = all(Vec::new(), &environment);
        let provider = providers
            .iter()
            .find(|provider| provider.name == name)
            .expect(name);
        provider
            .address()
            .map_or_else(|error| error.message, ToString::to_string)
    }

    #[test]
    fn a_provider_at_its_built_in_url_has_the_api_and_the_quirks_of_its_row() {
        for row in table::PROVIDERS {
            let variable = table::base_url_variable(row.name);
            let described = |variables: &[(&str, &str)]| {
                let providers = all(Vec::new(), &Environment::new(variables));
                let mut providers = providers.iter();
                let found = providers.find(|provider| provider.name == row.name);
                let found = found.expect(row.name);
                let address = found.address().expect(row.name).to_string();
                format!("{address} {} {:?}", found.api.name, found.quirks)
            };
            let named = described(&[(&variable, row.base_url)]);
            assert_eq!(described(&[]), named, "{}", row.name);
        }
    }

    #[test]
    fn an_error_of_a_header_has_its_line_and_not_its_value() {
        let key = "sk-live-0123";
        let table = r#"
            2 | the variable NO is not set | headers = { x-api-key = "KEY ${NO}" }
            2 | ${NO…} does not name a variable | headers = { x-api-key = "${NO-KEY}" }
            2 | ${NO…} does not name a variable | headers = { x-api-key = "${NO:=KEY}" }
            2 | a variable within another one is not filled in: ${NO… | headers = { x-api-key = "${NO:-KEY${SUFFIX}}" }
            4 | ${NO…} does not name a variable | [providers.work.headers]␊x-team = "a"␊x-key = "${NO KEY}"
            2 | the variable NO is empty, so nothing follows the scheme | headers = { x-api-key = "KEY ${NO:-}" }
            3 | is not a valid name or value of a header | [providers.work.headers]␊x-key = "KEY${BROKEN}"
        "#;
        let environment = Environment::new(&[("BROKEN", "a\nb")]);
        for [line, reason, text] in rows(table) {
            let text = text.replace('␊', "\n").replace("KEY", key);
            let text = format!("[providers.work]\n{text}");
            let (file, fault) = read_config(&text, Path::new("q.toml"));
            assert_eq!(fault, None, "{text}");
            let providers = all(file.providers, &environment);
            let error = providers[0].headers().expect_err(&text).message;
            let begin = format!("q.toml, line {line}: providers.work: headers: x-");
            assert!(error.starts_with(&begin), "{text}: {error}");
            assert!(error.contains(reason), "{text}: {error}");
            assert!(!error.contains("sk"), "{text}: {error}");
        }
    }

    #[test]
    fn ollama_host_is_read_as_ollama_reads_it() {
        let table = r##"
            127.0.0.1 | http://127.0.0.1:11434/v1
            "box:8000" | http://box:8000/v1
            :8000 | http://127.0.0.1:8000/v1
            0.0.0.0 | http://127.0.0.1:11434/v1
            0.0.0.0:5000 | http://127.0.0.1:5000/v1
            http://0.0.0.0:5000/ | http://127.0.0.1:5000/v1
            [::]:5000 | http://[::1]:5000/v1
            [::1] | http://[::1]:11434/v1
            [::1]:5000 | http://[::1]:5000/v1
            ::1 | http://[::1]:11434/v1
            :: | http://[::1]:11434/v1
            fe80::7/ollama | http://[fe80::7]:11434/ollama/v1
            box:5000/v1/ | http://box:5000/v1
            http://box/ollama/v1 | http://box/ollama/v1
            http://:: | http://[::1]/v1
            me:secret@box | http://box:11434/v1
            me:secret@box:8000 | http://box:8000/v1
            me:se:cr@et@box/ollama | http://box:11434/ollama/v1
            me@0.0.0.0 | http://127.0.0.1:11434/v1
            me:secret@[::]:5000 | http://[::1]:5000/v1
            me:secret@ | http://127.0.0.1:11434/v1
            https://me:secret@box | https://box/v1
            http://me:secret@0.0.0.0:5000 | http://127.0.0.1:5000/v1
            ollama.com | https://ollama.com/v1
            https://box.example | https://box.example/v1
            http://box.example/ollama/ | http://box.example/ollama/v1
            ftp://box | OLLAMA_HOST is not a URL: it must begin with http:// or https://
            box:80:90 | OLLAMA_HOST is not a URL
            bo x | OLLAMA_HOST is not a URL
            : | OLLAMA_HOST is not a URL: it names no host
            me:secret@:/ | OLLAMA_HOST is not a URL: it names no host
            https://:/ | OLLAMA_HOST is not a URL: it names no host
            box: | OLLAMA_HOST has a port that is not a number up to 65535
            :x | OLLAMA_HOST has a port that is not a number up to 65535
        "##;
        for [text, address] in rows(table) {
            let found = address_of("ollama", &[("OLLAMA_HOST", text)]);
            let is_as_expected = if address.ends_with("is not a URL") {
                found.starts_with(address)
            } else {
                found == address
            };
            assert!(is_as_expected, "{text}: {found}");
        }
    }
}
