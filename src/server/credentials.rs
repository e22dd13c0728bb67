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
        Ok(Credentials {
            provider,
            address: provider.address()?,
            headers: provider.headers()?,
            key,
            environment,
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
        self.address.is_exposed() && (self.key.is_some() || self.have_authorization())
    }

    /// Whether a header or the URL tells who asks, without a key.
    fn have_authorization(&self) -> bool {
        has_authorization(self.headers) || self.address.authorization().is_some()
    }

    /// Returns advice for a server that rejects the key, or wants one; `None` if something else than a key tells who asks.
    pub fn advice(&self) -> Option<String> {
        let Provider { name, key, .. } = self.provider;
        if *key == Key::None && self.have_authorization() {
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
        // The API's own key wins over credentials of the URL in the same header.
        if let Some(login) = self.address.authorization()
            && !has_authorization(&request.headers)
        {
            headers.push(("authorization".to_owned(), login));
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
        let has_other =
            has_authorization(&request.headers) || self.address.authorization().is_some();
        if api.takes_bearer && !is_vendors && !has_other {
            return request.with_headers(&header);
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::rows;
    use crate::output::Notes;
    use crate::server::key_command;
    use crate::settings::Settings;

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
            let environment = Environment::new(&variables);
            let settings = Settings::defaults(&environment).expect("settings");
            let provider = settings.provider_named("ollama").expect("a provider");
            let key = key_command::fetch_for(provider, &environment, &Notes::default());
            let key = key.expect("a key or none");
            assert_eq!(key.is_some().to_string(), goes, "{host}");
            let credentials = Credentials::new(provider, key.as_ref(), &environment);
            let found = credentials.expect(host).advice();
            assert_eq!(found.as_deref(), Some(advice), "{host}");
        }
    }
}
