//! Whom to ask: a provider with its key and its model, and what a call of it needs to know.

use super::call::Call;
use super::client::Client;
use super::key_command;
use crate::error::{Error, Kind};
use crate::output::Notes;
use crate::provider::request::Request;
use crate::secret::Secret;
use crate::settings::{Environment, Key, Provider, Settings};

/// A provider that can be asked.
pub(crate) struct Target<'a> {
    pub(crate) provider: &'a Provider,
    pub(crate) key: Option<Secret>,
    /// The model that somebody has named.
    pub(crate) named_model: Option<String>,
    /// The one to ask where none is named and no conversation has one.
    pub(crate) default_model: Option<String>,
}

impl<'a> Target<'a> {
    /// The provider that a conversation has.
    ///
    /// # Errors
    /// `Session`: the provider is no longer configured. Else as for [`Target::new`].
    pub(crate) fn of_conversation(
        settings: &'a Settings,
        name: &str,
        environment: Environment,
    ) -> Result<Target<'a>, Error> {
        let provider = settings.provider_named(name).ok_or_else(|| {
            Error::new(
                Kind::Session,
                format!("the conversation is with the provider “{name}”, which is not configured"),
            )
            .advise(format!("-p chooses one of {}", settings.provider_names()))
        })?;
        Target::new(provider, None, environment)
    }

    /// A provider, and the model that was named with it.
    ///
    /// # Errors
    /// `Settings`: its key is missing or cannot be one, or its address is no URL.
    pub(crate) fn new(
        provider: &'a Provider,
        named_model: Option<String>,
        environment: Environment,
    ) -> Result<Target<'a>, Error> {
        provider.address()?;
        let key = provider.key(environment)?;
        let own = provider.model.as_ref();
        let named_model = named_model.or_else(|| own.filter(|own| !own.is_default()).map(|own| own.text.clone()));
        Ok(Target { provider, key, named_model, default_model: own.map(|own| own.text.clone()) })
    }

    /// Runs the command that tells the key, where there is one: only now, when a request is about to be sent. A note says
    /// where the key leaves this machine unencrypted.
    ///
    /// # Errors
    /// `Settings`: it failed, or told no key.
    pub(crate) fn fetch_key(&mut self, notes: &Notes) -> Result<(), Error> {
        if let Key::Command(command) = &self.provider.key {
            // It may ask for a password on the same terminal.
            notes.sign().stop();
            self.key = Some(key_command::run(command)?);
        }
        let address = self.provider.address()?;
        if self.key.is_some() && !address.is_https() && !address.is_loopback() {
            notes.note(&format!("the key of {} goes to {address} unencrypted", self.provider.name));
        }
        Ok(())
    }

    /// The model to ask: the one that is named, else the conversation's, else the provider's.
    ///
    /// # Errors
    /// The provider has none of its own, and the list of its server cannot be had or is empty.
    pub(crate) fn model(&self, conversation: Option<&str>, client: &Client, notes: &Notes) -> Result<String, Error> {
        if let Some(model) = self.known_model(conversation) {
            return Ok(model);
        }
        self.first_model(client, notes)?.ok_or_else(|| {
            Error::new(Kind::Provider { status: None }, format!("{} has no model loaded", self.provider.name))
                .advise("load one, or name one with -m")
        })
    }

    /// The model to ask, where that is known without asking the server.
    pub(crate) fn known_model(&self, conversation: Option<&str>) -> Option<String> {
        self.named_model.as_deref().or(conversation).or(self.default_model.as_deref()).map(str::to_owned)
    }

    /// The models that the server lists, in its order.
    ///
    /// # Errors
    /// It cannot be reached, or its list cannot be read.
    pub(crate) fn models(&self, client: &Client, notes: &Notes) -> Result<Vec<String>, Error> {
        let api = self.provider.api;
        let request = self.complete(api.list_models(self.key.as_ref()))?;
        let call = self.call(client, notes)?;
        let body = call.fetch(&request).map_err(|failed| failed.error)?;
        api.read_models(&body).map_err(|malformed| call.malformed(&malformed).error.advise("-m names a model"))
    }

    /// The first model that the server lists, if it lists any.
    ///
    /// # Errors
    /// As for [`Target::models`].
    pub(crate) fn first_model(&self, client: &Client, notes: &Notes) -> Result<Option<String>, Error> {
        Ok(self.models(client, notes)?.into_iter().next())
    }

    /// A request with the headers that the file and the address ask for.
    ///
    /// # Errors
    /// `Settings`: the provider's address is no URL.
    pub(crate) fn complete(&self, request: Request) -> Result<Request, Error> {
        let login = self.provider.address()?.authorization().map(|login| ("authorization".to_owned(), login));
        // A key in the same header is what the API itself asks for.
        let login = login.filter(|(name, _)| !request.headers.iter().any(|(other, _)| other == name));
        let headers: Vec<_> = login.into_iter().chain(self.provider.headers.iter().cloned()).collect();
        Ok(request.with_headers(&headers))
    }

    /// What a call needs to know.
    ///
    /// # Errors
    /// `Settings`: the provider's address is no URL.
    pub(crate) fn call<'c>(&'c self, client: &'c Client, notes: &'c Notes) -> Result<Call<'c>, Error> {
        let address = self.provider.address()?;
        // Of “Bearer KEY” a server may repeat the key alone.
        let headers = self.provider.headers.iter().flat_map(|(_, value)| {
            let last = value.expose().rsplit(' ').next().unwrap_or_default();
            [value.clone(), Secret::new(last)]
        });
        Ok(Call {
            client,
            notes,
            provider: &self.provider.name,
            api: self.provider.api,
            address,
            secrets: self.key.iter().cloned().chain(headers).chain(address.secrets()).collect(),
            key_advice: match &self.provider.key {
                Key::None => None,
                Key::Variables(names) => Some(format!("check the key in {}", names.join(" or "))),
                // Its arguments may be secret.
                Key::Command(command) => {
                    Some(format!("check the key that {} prints", command.first().map_or("key_cmd", String::as_str)))
                }
            },
        })
    }

    /// A target that can be asked for its models, and for nothing that takes a key.
    pub(crate) fn without_key(provider: &'a Provider) -> Target<'a> {
        Target { provider, key: None, named_model: None, default_model: None }
    }
}
