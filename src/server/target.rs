//! The server that q asks: a provider with its model, its key and a client for its address.

use std::sync::Arc;

use super::call::Call;
use super::choice::{Choice, Model};
use super::client::{self, Client};
use super::key_command;
use crate::error::Error;
use crate::nearest::did_you_mean;
use crate::output::Notes;
use crate::provider::request::{Field, ListedModel, Prompt, Request};
use crate::provider::{ReplyError, failure, table};
use crate::secret::Secret;
use crate::settings::{Key, Provider, Settings};

/// How many of the provider's models an error names.
const NAMED_MODELS: usize = 10;

const NO_MODELS: &str = "the provider lists no models";

/// The newest model of a family by the times in the list, else the first.
fn newest_of(models: &[ListedModel], family: &str) -> Option<String> {
    let family = models
        .iter()
        .filter(|model| table::is_of_family(&model.id, family));
    // The last of equals counts: from the end, that is the first in the list.
    family
        .rev()
        .max_by_key(|model| &model.created)
        .map(|model| model.id.clone())
}

/// Everything that a request needs besides its question.
pub(crate) struct Target {
    pub(crate) choice: Choice,
    key: Option<Secret>,
    client: Client,
}

impl Target {
    /// Checks everything that can be checked before anything is sent.
    ///
    /// # Errors
    /// `Settings`: the key is missing or invalid, the address is not a URL, or proxy or certificates cannot be used.
    pub(crate) fn new(choice: Choice, settings: &Settings) -> Result<Target, Error> {
        let values = &settings.values;
        let address = choice.provider.address()?;
        // A dry run sends nothing.
        let key = if settings.typed.dry_run {
            None
        } else {
            choice.provider.key()?
        };
        let client = Client::new(
            address,
            values.timeout,
            values.retries,
            &settings.environment,
        )?;
        Ok(Target {
            choice,
            key,
            client,
        })
    }

    /// A server that needs no key, with a client of its own.
    pub(super) fn without_key(choice: Choice, client: Client) -> Target {
        Target {
            choice,
            key: None,
            client,
        }
    }

    pub(crate) fn provider(&self) -> &Provider {
        &self.choice.provider
    }

    /// Checks that it can search the web over its API.
    ///
    /// # Errors
    /// `Usage`: it cannot.
    pub(crate) fn check_web(&self) -> Result<(), Error> {
        let Provider {
            name, api, quirks, ..
        } = self.provider();
        if api.searches || quirks.searches {
            return Ok(());
        }
        Err(Error::usage(format!("--web: {name} cannot search the web over the API “{}”", api.name)).advise(format!(
            "-p chooses one that can: {}, or any with api = \"anthropic\", \"responses\" or \"gemini\"\n\
             -t lets the model call a tool of yours that searches",
            table::searching()
        )))
    }

    /// Runs the command that prints the key, if there is one, now that a request is about to be sent. A note says
    /// when the key leaves this machine unencrypted.
    ///
    /// # Errors
    /// `Settings`: it failed, or printed no key.
    pub(crate) fn fetch_key(&mut self, notes: &Notes) -> Result<(), Error> {
        let provider = Arc::clone(&self.choice.provider);
        if let Key::Command(command) = &provider.key {
            // It may ask for a password on the same terminal.
            notes.spinner().stop();
            let named = |error: Error| Error {
                message: format!("{}: {}", provider.name, error.message),
                ..error
            };
            self.key = Some(key_command::run(command).map_err(named)?);
        }
        let address = provider.address()?;
        let sends_key = self.key.is_some()
            || client::has_authorization(&provider.headers)
            || address.authorization().is_some();
        if sends_key && address.is_exposed() {
            notes.note(&format!(
                "the key of {} goes to {address} unencrypted",
                provider.name
            ));
        }
        Ok(())
    }

    /// The model to ask. If none is chosen, q asks the server for its list.
    ///
    /// # Errors
    /// The list cannot be fetched, or is empty.
    pub(crate) fn model(&self, notes: &Notes) -> Result<String, Error> {
        match &self.choice.model {
            Model::Named(model) | Model::OfConversation(model) | Model::Default(model) => {
                Ok(model.clone())
            }
            Model::First => {
                let first = self.models(notes)?.into_iter().next();
                first
                    .map(|model| model.id)
                    .ok_or_else(|| self.lists_no_models(notes))
            }
        }
    }

    /// The error for a server whose list of models is empty.
    pub(crate) fn lists_no_models(&self, notes: &Notes) -> Error {
        match self.call(notes) {
            Ok(call) => call
                .failed(NO_MODELS)
                .error
                .advise("load one\nor name one with -m"),
            Err(error) => error,
        }
    }

    /// The same for a dry run: only a server on this machine that needs no key is asked for its list.
    ///
    /// # Errors
    /// The server that knows the model must not be asked; or as for [`Target::model`].
    pub(crate) fn model_without_key(&self, notes: &Notes) -> Result<String, Error> {
        match self.choice.model.name() {
            Some(model) => Ok(model.to_owned()),
            None if self.provider().key == Key::None
                && self.provider().address()?.is_loopback() =>
            {
                self.model(notes)
            }
            None => Err(Error::settings(
                "the model would be the first on the server's list, which only a request shows",
            )
            .advise("name one with -m")),
        }
    }

    /// What replaces a model that the server does not know and the user has not named: the newest one of the family of the
    /// provider's built-in default.
    ///
    /// # Errors
    /// Nothing can replace it: `error`, with the names of the provider's models, or with the one that is most similar to
    /// the model that the user has named.
    pub(crate) fn heal(&self, model: &str, error: Error, notes: &Notes) -> Result<String, Error> {
        let family = self.provider().row.family;
        let family = match &self.choice.model {
            Model::Default(_) => family,
            Model::OfConversation(_) => family.filter(|family| table::is_of_family(model, family)),
            Model::Named(_) => None,
            Model::First => return Err(error),
        };
        let Ok(models) = self.models(notes) else {
            return Err(error);
        };
        if models.is_empty() {
            return Err(error.advise(NO_MODELS));
        }
        if let Model::Named(_) = self.choice.model {
            let others = models
                .iter()
                .map(|listed| &*listed.id)
                .filter(|listed| *listed != model);
            let advice = did_you_mean(model, others) + error.advice.as_deref().unwrap_or_default();
            return Err(error.advise(advice));
        }
        let newest = family
            .and_then(|family| newest_of(&models, family))
            .filter(|newest| newest != model);
        newest.ok_or_else(|| {
            let names: Vec<&str> = models
                .iter()
                .take(NAMED_MODELS)
                .map(|model| model.id.as_str())
                .collect();
            error.advise(format!(
                "-m or Q_MODEL chooses a model: {}",
                names.join(", ")
            ))
        })
    }

    /// The models that the server lists, in its order.
    ///
    /// # Errors
    /// It cannot be reached, or its list cannot be read.
    pub(crate) fn models(&self, notes: &Notes) -> Result<Vec<ListedModel>, Error> {
        let api = self.provider().api;
        let request = self.complete(api.list_models(self.key.as_ref()))?;
        let call = self.call(notes)?;
        let body = call.fetch(&request).map_err(|failed| failed.error)?;
        let listed = (api.models)(&body);
        let may_be_error = !listed.as_ref().is_ok_and(|models| !models.is_empty());
        let listed = failure::check(&body, may_be_error)
            .map_err(ReplyError::from)
            .and(listed);
        listed.map_err(|error| {
            call.explain_reply(error, &request)
                .error
                .advise("-m names a model")
        })
    }

    /// A request with the headers that the file and the address add.
    ///
    /// # Errors
    /// `Settings`: the provider's address is not a URL.
    fn complete(&self, request: Request) -> Result<Request, Error> {
        let login = self
            .provider()
            .address()?
            .authorization()
            .map(|login| ("authorization".to_owned(), login));
        // The API's own key wins over a login in the same header.
        let login =
            login.filter(|(name, _)| !request.headers.iter().any(|(other, _)| other == name));
        let headers: Vec<_> = login
            .into_iter()
            .chain(self.provider().headers.iter().cloned())
            .collect();
        Ok(request.with_headers(&headers))
    }

    /// The request for a prompt, with the fields that the file sets and then those that options set.
    ///
    /// # Errors
    /// `Settings`: the provider's address is not a URL.
    pub(crate) fn request(&self, prompt: &Prompt, options: &[Field]) -> Result<Request, Error> {
        let provider = self.provider();
        let fields = [&provider.options[..], options].concat();
        self.complete(
            provider
                .api
                .request(prompt, provider.quirks, &fields, self.key.as_ref()),
        )
    }

    /// The way to send requests to this server. A failure is described without the key and other secrets.
    ///
    /// # Errors
    /// `Settings`: the provider's address is not a URL.
    pub(crate) fn call<'c>(&'c self, notes: &'c Notes) -> Result<Call<'c>, Error> {
        let provider = self.provider();
        let address = provider.address()?;
        let headers = provider
            .headers
            .iter()
            .flat_map(|(_, value)| value.with_last_word());
        Ok(Call {
            client: &self.client,
            notes,
            provider: &provider.name,
            api: provider.api,
            address,
            secrets: self
                .key
                .iter()
                .cloned()
                .chain(headers)
                .chain(address.secrets())
                .collect(),
            key_advice: match &provider.key {
                Key::None => None,
                Key::Variables { names, .. } => {
                    Some(format!("check the key in {}", names.join(" or ")))
                }
                // Its arguments may be secret.
                Key::Command(command) => Some(format!(
                    "check the key that {} prints",
                    command.first().map_or("key_cmd", String::as_str)
                )),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_a_family_is_found_by_time_else_by_order() {
        let model = |(id, created): &(&str, Option<&str>)| ListedModel {
            id: (*id).to_owned(),
            created: created.map(str::to_owned),
        };
        for (models, newest) in [
            (
                &[
                    ("gpt-6-luna", Some("1")),
                    ("gpt-7-luna", Some("3")),
                    ("gpt-8-sol", Some("9")),
                ][..],
                Some("gpt-7-luna"),
            ),
            (
                &[("gpt-6-luna", None), ("gpt-7-luna", None)],
                Some("gpt-6-luna"),
            ),
            (
                &[("gpt-6-luna", None), ("gpt-7-luna", Some("3"))],
                Some("gpt-7-luna"),
            ),
            (&[("gpt-8-sol", Some("9"))], None),
            (&[], None),
        ] {
            let models: Vec<ListedModel> = models.iter().map(model).collect();
            assert_eq!(
                newest_of(&models, "gpt-*-luna").as_deref(),
                newest,
                "{models:?}"
            );
        }
    }
}
