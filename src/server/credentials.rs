//! What tells a server who asks: its key, its own headers, and the user and password in its URL (pure).

use super::client::has_authorization;
use crate::error::Error;
use crate::provider::request::Request;
use crate::provider::table;
use crate::secret::{Secret, Secrets};
use crate::server_url::ServerUrl;
use crate::settings::{Environment, Key, Provider};

/// What tells the server of a provider who asks.
pub struct Credentials<'a> {
    pub provider: &'a Provider,
    address: &'a ServerUrl,
    /// The header for the user and the password in the address.
    login: Option<Secret>,
    /// The headers that the file adds.
    headers: &'a [(String, Secret)],
    /// `None` if the server needs none, or if it has not been fetched.
    pub key: Option<&'a Secret>,
    environment: &'a Environment,
}

impl<'a> Credentials<'a> {
    /// Takes the key as far as it has been fetched.
    ///
    /// # Errors
    /// The address or the headers of the provider cannot be used.
    pub fn new(
        provider: &'a Provider,
        key: Option<&'a Secret>,
        environment: &'a Environment,
    ) -> Result<Credentials<'a>, Error> {
        let address = provider.address()?;
        Ok(Credentials {
            provider,
            address,
            login: address.authorization(),
            headers: provider.headers()?,
            key,
            environment,
        })
    }

    /// Takes neither a key that the file or a variable has for the server nor a login, for a look at what is there.
    ///
    /// # Errors
    /// The address or the headers of the provider cannot be used.
    pub fn without_keys(
        provider: &'a Provider,
        environment: &'a Environment,
    ) -> Result<Credentials<'a>, Error> {
        Ok(Credentials {
            login: None,
            headers: provider.headers_without_keys()?,
            ..Credentials::new(provider, None, environment)?
        })
    }

    /// Returns what of them must not be shown.
    pub fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::from_iter(&self.address.secrets());
        secrets.extend(self.key);
        for (_, value) in self.headers {
            secrets.extend(&value.of_header());
        }
        secrets
    }

    /// Whether any of them leaves this machine unencrypted.
    pub fn are_exposed(&self) -> bool {
        let has_key = self.key.is_some() || !self.provider.keys_within().is_empty();
        self.address.is_exposed() && has_key
    }

    /// Returns advice for a server that rejects the key, or wants one; `None` if something else than a key tells who asks.
    pub fn advice(&self) -> Option<String> {
        let Provider { name, key, .. } = self.provider;
        if *key == Key::None && !self.provider.keys_within().is_empty() {
            return None;
        }
        if let Some((variable, _)) = key.find(self.environment)
            && self.provider.withholds_key()
        {
            let advice = format!("the key in {variable} goes only to this machine or over https");
            return Some(advice);
        }
        Some(key.advice(name, self.key, self.environment))
    }

    /// Returns a request, which has the key where its API has it, with everything else that tells who asks.
    pub fn add_to(&self, request: Request) -> Request {
        let request = self.add_bearer(request);
        let mut headers = Vec::new();
        // The key and the file's own header win over credentials of the URL in the same header.
        let has_other = has_authorization(&request.headers) || has_authorization(self.headers);
        if let Some(login) = &self.login
            && !has_other
        {
            headers.push(("authorization".to_owned(), login.clone()));
        }
        headers.extend_from_slice(self.headers);
        request.with_headers(&headers)
    }

    /// Returns a request with the key as a bearer token where a server may want that: one that has an API with another header
    /// for the key, and is not the vendor's own, gets both. A key of which it is known that it is such a token goes as nothing
    /// else.
    fn add_bearer(&self, mut request: Request) -> Request {
        let Some(key) = self.key else {
            return request;
        };
        let token = Secret::new(format!("Bearer {}", key.expose()));
        let header = [("authorization".to_owned(), token)];
        let found = self.provider.key.find(self.environment);
        if found.is_some_and(|(variable, _)| variable == table::BEARER_VARIABLE) {
            request.headers.retain(|(_, value)| value != key);
            return request.with_headers(&header);
        }
        // Other vendors have this API in addition to their own.
        let api = self.provider.api;
        let vendor = table::at_host(self.address.host());
        let is_vendors = vendor.is_some_and(|row| row.api.name == api.name);
        let has_other = has_authorization(&request.headers) || self.login.is_some();
        if api.takes_bearer && !is_vendors && !has_other {
            return request.with_headers(&header);
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Arguments;
    use crate::secret::redact;
    use crate::settings::Settings;
    use crate::text::table::rows;

    /// The value of the variable `KEY`.
    const SESAME: &str = "open-sesame";

    /// Settings with the provider `p`, whose section this is.
    fn settings(section: &str) -> Settings {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("config.toml");
        let section = section.replace("; ", "\n");
        fs_err::write(&path, format!("[providers.p]\n{section}\n")).expect("a file");
        let variables = ["KEY", "ANTHROPIC_AUTH_TOKEN", "GATEWAY_KEY", "TEAM"];
        let environment = Environment::new(&variables.map(|name| (name, SESAME)));
        Settings::load(&Arguments::default(), &environment, &path).expect(&section)
    }

    /// The headers of the request for the list, but for those that its API always has, and whether they are exposed.
    fn sent(section: &str) -> (String, bool) {
        let settings = settings(section);
        let environment = &settings.environment;
        let provider = settings.provider_named("p").expect("a provider");
        let key = provider.key.read("p", environment).expect("a key or none");
        let credentials = Credentials::new(provider, key.as_ref(), environment).expect(section);
        let request = provider.api.list_models(key.as_ref(), None);
        let mut headers = Vec::new();
        for (name, value) in credentials.add_to(request).headers {
            if name != "anthropic-version" {
                headers.push(format!("{name}: {}", value.expose()));
            }
        }
        (headers.join(", "), credentials.are_exposed())
    }

    #[test]
    fn each_header_that_tells_who_asks_is_sent_once() {
        // The section of a provider, and its headers.
        let table = r##"
            base_url = "https://h/v1" | -
            base_url = "https://h/v1"; key_env = "KEY" | authorization: Bearer open-sesame
            base_url = "https://me:pw@h/v1" | authorization: Basic bWU6cHc=
            base_url = "https://me:pw@h/v1"; key_env = "KEY" | authorization: Bearer open-sesame
            base_url = "https://me:pw@h/v1"; headers = { Authorization = "Bearer t" } | Authorization: Bearer t
            base_url = "https://me:pw@h/v1"; headers = { Authorization = "Bearer t" }; key_env = "KEY" | Authorization: Bearer t
            base_url = "https://me:pw@h/v1"; headers = { x-team = "infra" } | authorization: Basic bWU6cHc=, x-team: infra
            base_url = "https://h"; api = "anthropic"; key_env = "KEY" | x-api-key: open-sesame, authorization: Bearer open-sesame
            base_url = "https://me:pw@h"; api = "anthropic"; key_env = "KEY" | x-api-key: open-sesame, authorization: Basic bWU6cHc=
            base_url = "https://h"; api = "anthropic"; headers = { Authorization = "Bearer t" }; key_env = "KEY" | x-api-key: open-sesame, Authorization: Bearer t
            base_url = "https://me:pw@h"; api = "anthropic"; headers = { Authorization = "Bearer t" } | Authorization: Bearer t
            base_url = "https://h"; api = "anthropic"; headers = { X-Api-Key = "t" }; key_env = "KEY" | authorization: Bearer open-sesame, X-Api-Key: t
            base_url = "https://api.anthropic.com"; key_env = "KEY" | x-api-key: open-sesame
            base_url = "https://api.anthropic.com"; key_env = "ANTHROPIC_AUTH_TOKEN" | authorization: Bearer open-sesame
        "##;
        for [section, headers] in rows(table) {
            assert_eq!(sent(section).0, headers, "{section}");
        }
    }

    #[test]
    fn whatever_holds_a_key_is_exposed_without_encryption() {
        // What follows the scheme of a provider's address in its section, and whether it is a key that others can read.
        let table = r##"
            h/v1" | false
            h/v1"; key_env = "KEY" | true
            127.0.0.1/v1"; key_env = "KEY" | false
            me:pw@h/v1" | true
            me:pw@127.0.0.1/v1" | false
            h/v1?api-version=2024-10-21" | false
            h/v1?key=open-sesame" | true
            h/v1?a=b&subscription-key=open-sesame" | true
            h/v1?SIG=open-sesame" | true
            127.0.0.1/v1?key=open-sesame" | false
            h/v1"; headers = { Authorization = "Bearer t" } | true
            h/v1"; headers = { api-key = "open-sesame" } | true
            h/v1"; headers = { Cookie = "session=open-sesame" } | true
            h/v1"; headers = { x-gateway = "${GATEWAY_KEY}" } | true
            h/v1"; headers = { x-gateway = "${TEAM}" } | false
            h/v1"; headers = { x-team = "infra" } | false
            127.0.0.1/v1"; headers = { api-key = "open-sesame" } | false
        "##;
        for [rest, expected] in rows(table) {
            let (_, are_exposed) = sent(&format!("base_url = \"http://{rest}"));
            assert_eq!(are_exposed.to_string(), expected, "{rest}");
            let (_, are_exposed) = sent(&format!("base_url = \"https://{rest}"));
            assert!(!are_exposed, "{rest}");
        }
    }

    #[test]
    fn a_key_all_headers_and_what_is_secret_in_the_url_are_not_shown() {
        let settings = settings(
            "base_url = \"http://me:password-1@h/v1?a=parameter-2\"; key_env = \"KEY\"; headers = { x-team = \"infrastructure\" }",
        );
        let environment = &settings.environment;
        let provider = settings.provider_named("p").expect("a provider");
        let key = provider.key.read("p", environment).expect("a key");
        let credentials = Credentials::new(provider, key.as_ref(), environment);
        let secrets = credentials.expect("an address").secrets();
        let shown = redact(
            "password-1 parameter-2 infrastructure open-sesame h/v1",
            &secrets,
        );
        assert_eq!(shown, "[redacted] [redacted] [redacted] [redacted] h/v1");
    }

    #[test]
    fn a_rejected_key_is_advised_unless_something_else_tells_who_asks() {
        let table = r##"
            - | name the variable that has its key with key_env = "NAME" below [providers.p]
            headers = { x-team = "infra" } | name the variable that has its key with key_env = "NAME" below [providers.p]
            headers = { Authorization = "Bearer t" } | -
            headers = { api-key = "t" } | -
        "##;
        for [rest, expected] in rows(table) {
            let settings = settings(&format!("base_url = \"https://h/v1\"; {rest}"));
            let provider = settings.provider_named("p").expect("a provider");
            let credentials = Credentials::new(provider, None, &settings.environment);
            let advice = credentials.expect("an address").advice();
            assert_eq!(advice.unwrap_or_default(), expected, "{rest}");
        }
    }
}
