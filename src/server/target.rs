//! The server that q asks, from the choice of its provider and model until it is ready for requests.

use std::sync::OnceLock;
use std::time::Duration;

use super::api_client::ApiClient;
use super::client::Client;
use super::credentials::Credentials;
use super::key_command;
use super::probe::{self, Probe};
use super::retry::RetryLimits;
use super::whom::{Choice, Model};
use crate::error::Error;
use crate::output::Notes;
use crate::provider::request::{Field, ListedModel, Prompt, Request};
use crate::provider::table;
use crate::secret::Secret;
use crate::server_url::ServerUrl;
use crate::settings::{Cached, Environment, Provider, Settings};

/// A server to ask. What it needs for that, it gets once it is needed: a cached answer does without.
pub struct Target {
    pub choice: Choice,
    /// A client for its address, once that is known: a server may be at either of two addresses on this machine.
    client: OnceLock<Client>,
    /// The first model of its list that can chat, if looking for the server has shown it.
    first_listed: OnceLock<String>,
    /// The key, once it has been fetched; within, `None` if the server needs none.
    key: OnceLock<Option<Secret>>,
    read_timeout: Option<Duration>,
    retries: u32,
    environment: Environment,
}

impl Target {
    /// Checks everything that can be checked without a request; if the answer may be cached, the address and the headers alone.
    pub fn new(choice: Choice, settings: &Settings) -> Result<Target, Error> {
        let Settings {
            values,
            arguments,
            environment,
            ..
        } = settings;
        let mut target = Target {
            choice,
            client: OnceLock::new(),
            first_listed: OnceLock::new(),
            key: OnceLock::new(),
            read_timeout: values.timeout,
            retries: values.retries,
            environment: environment.clone(),
        };
        let provider = target.provider();
        // Makes sure of address and headers.
        target.credentials()?;
        if arguments.web {
            check_web(provider)?;
        }
        if settings.caching != Cached::Off {
            return Ok(target);
        }
        // A dry run needs none.
        if !arguments.dry_run {
            require_key(provider, environment)?;
        }
        let client = Client::new(provider.address()?, values.timeout, environment)?;
        if provider.other_address.is_none() {
            target.client = OnceLock::from(client);
        }
        Ok(target)
    }

    /// Does the same with a server that has been found at this address, so that it is not looked for again.
    pub fn at(address: &ServerUrl, choice: Choice, settings: &Settings) -> Result<Target, Error> {
        let client = Client::new(address, settings.values.timeout, &settings.environment)?;
        Ok(Target {
            client: OnceLock::from(client),
            ..Target::new(choice, settings)?
        })
    }

    /// Returns the same server, asked for this model. A connection that is open stays open.
    pub fn with_model(self, model: Model) -> Target {
        let provider = self.choice.provider;
        Target {
            choice: Choice { provider, model },
            ..self
        }
    }

    pub fn provider(&self) -> &Provider {
        &self.choice.provider
    }

    /// Returns a client for its address. Looks at which of them the server is, unless that is known.
    fn located_client(&self) -> Result<&Client, Error> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let provider = self.provider();
        let mut address = provider.address()?.clone();
        if provider.other_address.is_some() {
            let located = probe::locate(&self.choice.provider, &self.environment)?;
            address = located.address;
            if let Probe::Ready(first) = located.probe {
                self.first_listed.get_or_init(|| first);
            }
        }
        let client = Client::new(&address, self.read_timeout, &self.environment)?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Returns the first model of its list that can chat, if looking for the server has shown it, now or before.
    pub(super) fn locate_and_list_first(&self) -> Result<Option<&String>, Error> {
        self.located_client()?;
        Ok(self.first_listed.get())
    }

    /// Returns the address that is asked, as far as it is known without looking where the server is.
    pub fn known_address(&self) -> Result<&ServerUrl, Error> {
        match self.client.get() {
            Some(client) => Ok(&client.address),
            None => self.provider().address(),
        }
    }

    /// Looks for the server, and opens the connection for the first request, while q waits for something else. A dry run sends
    /// no question, and a cached answer needs no request.
    pub fn open_ahead(&self, settings: &Settings) {
        if settings.arguments.dry_run || settings.caching != Cached::Off {
            return;
        }
        if let Ok(client) = self.located_client() {
            client.open_ahead();
        }
    }

    /// Makes the server one that can be asked, just before the first request is sent: looks for it, and fetches the key.
    pub fn ready<'c>(&'c self, notes: &'c Notes) -> Result<ApiClient<'c>, Error> {
        let provider = self.provider();
        // A key that is not set is said before anything that only a request needs.
        require_key(provider, &self.environment)?;
        let client = self.located_client()?;
        self.fetch_key(notes)?;
        let limits = RetryLimits {
            retries: self.retries,
            loading: self.read_timeout,
        };
        Ok(ApiClient::new(client, self.credentials()?, limits, notes))
    }

    /// Fetches the key, once, and notes if it leaves this machine unencrypted.
    fn fetch_key(&self, notes: &Notes) -> Result<(), Error> {
        if self.key.get().is_some() {
            return Ok(());
        }
        let provider = self.provider();
        let key = key_command::fetch_for(provider, &self.environment, notes)?;
        self.key.get_or_init(|| key);
        for written in provider.unfilled() {
            notes.note(&format!("providers.{}: {written}", provider.name));
        }
        if self.credentials()?.are_exposed() {
            let name = &provider.name;
            let address = provider.address()?;
            notes.note(&format!("the key of {name} goes to {address} unencrypted"));
        }
        Ok(())
    }

    /// Returns the key, once it has been fetched.
    pub fn key(&self) -> Option<&Secret> {
        self.key.get()?.as_ref()
    }

    /// Returns the key, if it has been fetched or can be had without running a command.
    pub fn known_key(&self) -> Option<Secret> {
        if let Some(fetched) = self.key() {
            return Some(fetched.clone());
        }
        let (_, found) = self.provider().key.find(&self.environment)?;
        Some(found)
    }

    /// Returns what tells the server who asks, with the key as far as it has been fetched.
    fn credentials(&self) -> Result<Credentials<'_>, Error> {
        Credentials::new(self.provider(), self.key(), &self.environment)
    }

    /// Returns the request for a prompt, with the fields that the file sets and then those that options set.
    pub fn request(&self, prompt: &Prompt, options: &[Field]) -> Result<Request, Error> {
        let provider = self.provider();
        let fields = [&provider.options[..], options].concat();
        let api = provider.api;
        let request = api.request(prompt, provider.quirks, &fields, self.key());
        Ok(self.credentials()?.add_to(request))
    }

    /// Returns the models that the server lists, in its order. It is an error if there are none.
    pub fn models(&self, notes: &Notes) -> Result<Vec<ListedModel>, Error> {
        let listed = self.ready(notes)?.list_models();
        listed.map_err(|failed| failed.error)
    }
}

/// Refuses a provider that needs a key where there is none.
fn require_key(provider: &Provider, environment: &Environment) -> Result<(), Error> {
    let key = provider.key.read(&provider.name, environment);
    key.map(drop).map_err(|error| {
        if provider.key.find(environment).is_some() {
            return error;
        }
        error.advise_also("q --status shows which keys are set")
    })
}

/// Checks that a provider can search the web over its API.
fn check_web(provider: &Provider) -> Result<(), Error> {
    if provider.api.searches || provider.quirks.searches {
        return Ok(());
    }
    let name = &provider.name;
    let api = provider.api.name;
    let message = format!("--web: {name} cannot search the web over the API “{api}”");
    // At another address, a built-in provider may have an API that cannot.
    let mut others = table::searching();
    others.retain(|other| other != name);
    let others = others.join(", ");
    let mut apis = Vec::new();
    for dialect in table::searching_dialects() {
        apis.push(format!("\"{}\"", dialect.name));
    }
    let last = apis.pop().unwrap_or_default();
    let apis = apis.join(", ");
    Err(Error::usage(message).advise(format!(
        "choose one that can with -p: {others}, or any with api = {apis} or {last}, \
         or let the model call a tool of yours that searches (-t)"
    )))
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::TcpListener;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_local_server_is_looked_for_before_the_first_request_unless_it_has_been_found() {
        // Whether it is a dry run, whether the server has been found before, what q does next, and whether it is asked.
        for (dry_run, is_found, next, is_asked) in [
            (true, false, "opens", false),
            (false, true, "begins", false),
            (false, false, "waits", false),
            (false, false, "opens", true),
            (false, false, "begins", true),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            listener.set_nonblocking(true).expect("a socket");
            let address = listener.local_addr().expect("an address");
            let base_url = format!("http://{address}/v1");
            let environment = Environment::new(&[("LLAMACPP_BASE_URL", &*base_url)]);
            let mut settings = Settings::defaults(&environment);
            settings.arguments.dry_run = dry_run;
            let found = settings.provider_named("llamacpp").expect("a provider");
            let mut provider = Provider::clone(found);
            provider.other_address = Some("http://127.0.0.1:1/v1");
            let choice = Choice {
                provider: Arc::new(provider),
                model: Model::Named("m".to_owned()),
            };
            let target = if is_found {
                let address = ServerUrl::parse(&base_url).expect("a URL");
                Target::at(&address, choice, &settings)
            } else {
                Target::new(choice, &settings)
            };
            let target = target.expect("a target");
            let known = target.known_address().expect("an address").to_string();
            assert_eq!(known, base_url);
            let notes = Notes::default();
            match next {
                "begins" => drop(target.ready(&notes).expect("a client")),
                "opens" => target.open_ahead(&settings),
                _ => {}
            }
            let asked = listener.accept().map_err(|error| error.kind());
            let expected = (!is_asked).then_some(ErrorKind::WouldBlock);
            let case = format!("dry run: {dry_run}, found: {is_found}, {next}");
            assert_eq!(asked.err(), expected, "{case}");
        }
    }
}
