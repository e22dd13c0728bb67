//! Decides which provider and which model answer a question (pure).

use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::session::Conversation;
use crate::settings::{Origin, Provider, Settings};

/// A provider, and the model as far as it is known without asking the server.
#[derive(Debug, Clone)]
pub struct Choice {
    pub provider: Arc<Provider>,
    pub model: Model,
}

/// A model, by what chose it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Model {
    /// An option, a variable or the file.
    Named(String),
    /// The conversation that is continued.
    OfConversation(String),
    /// q's table of providers.
    Default(String),
    /// Nothing chose it: q takes the first model that the server lists.
    First,
}

impl Model {
    /// The model's name, if it is known.
    pub fn name(&self) -> Option<&str> {
        match self {
            Model::Named(name) | Model::OfConversation(name) | Model::Default(name) => Some(name),
            Model::First => None,
        }
    }
}

/// Chooses by options and settings. With `keeps`, the conversation's provider and model are chosen unless options name
/// others. `None`: nothing names a provider, and no key is set.
pub fn choose(settings: &Settings, keeps: Option<&Conversation>) -> Result<Option<Choice>, Error> {
    let by_settings = settings.chosen_provider();
    let Some(held) = keeps else {
        return Ok(by_settings.map(|provider| of_settings(settings, provider)));
    };
    let provider = match by_settings {
        Some(provider) if settings.typed.provider.is_some() => provider,
        _ => settings.provider_named(&held.provider).ok_or_else(|| {
            let name = &held.provider;
            let message = format!("the conversation's provider “{name}” is not configured");
            Error::new(ErrorKind::Session, message)
                .advise(format!("-p chooses one of {}", settings.provider_names()))
        })?,
    };
    let mut choice = of_settings(settings, provider);
    if provider.name == held.provider && settings.typed.model.is_none() {
        choice.model = Model::OfConversation(held.model.clone());
    }
    Ok(Some(choice))
}

/// A provider with the model that is named for it, else its default.
fn of_settings(settings: &Settings, provider: &Arc<Provider>) -> Choice {
    let named = settings.model.as_ref();
    let model = match named.or(provider.model.as_ref()) {
        Some(model) if model.origin == Origin::Default => Model::Default(model.text.clone()),
        Some(model) => Model::Named(model.text.clone()),
        None => Model::First,
    };
    Choice {
        provider: Arc::clone(provider),
        model,
    }
}

impl Choice {
    /// The model that the user has named.
    pub fn named_model(&self) -> Option<&str> {
        match &self.model {
            Model::Named(model) => Some(model),
            _ => None,
        }
    }

    /// Takes the model of a conversation that continues with this provider, unless the user has named one.
    pub fn continue_with(&mut self, model: &str) {
        if !matches!(self.model, Model::Named(_)) {
            self.model = Model::OfConversation(model.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::flags::Arguments;
    use crate::message::tests::rows;
    use crate::session::timestamp::Timestamp;
    use crate::settings::Environment;

    #[test]
    fn provider_and_model_are_chosen_together() {
        // Variables, -p, -m, the model of a conversation with groq, and the provider and the model that are chosen.
        let table = r##"
            XAI_API_KEY=k | - | - | - | xai | Default("grok-latest")
            XAI_API_KEY=k Q_MODEL=a | - | - | - | xai | Named("a")
            XAI_API_KEY=k Q_PROVIDER=groq | - | - | - | groq | Default("openai/gpt-oss-120b")
            Q_PROVIDER=groq Q_MODEL=a | xai | - | - | xai | Default("grok-latest")
            Q_PROVIDER=groq Q_MODEL=a | xai | b | - | xai | Named("b")
            Q_PROVIDER=ollama | - | - | - | ollama | First
            Q_PROVIDER=xai Q_MODEL=a | - | - | theirs | groq | OfConversation("theirs")
            Q_PROVIDER=xai | - | b | theirs | groq | Named("b")
            - | groq | - | theirs | groq | OfConversation("theirs")
            - | xai | - | theirs | xai | Default("grok-latest")
            Q_PROVIDER=groq Q_MODEL=a | xai | - | theirs | xai | Default("grok-latest")
            - | xai | b | theirs | xai | Named("b")
        "##;
        for [variables, provider, model, held, expected, expected_model] in rows(table) {
            let option = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            let arguments = Arguments {
                provider: option(provider),
                model: option(model),
                ..Arguments::default()
            };
            let variables: Vec<_> = variables
                .split(' ')
                .filter_map(|set| set.split_once('='))
                .collect();
            let environment = Environment::new(&variables);
            let settings = Settings::load(&arguments, &environment, Path::new(""));
            let now = Timestamp::now();
            let held = option(held).map(|model| Conversation {
                provider: "groq".to_owned(),
                model,
                ..Conversation::new(now)
            });
            let choice = choose(&settings.expect("valid settings"), held.as_ref())
                .expect("a provider that is configured")
                .expect("a provider");
            let case = format!("{variables:?} -p {provider} -m {model}");
            assert_eq!(choice.provider.name, expected, "{case}");
            assert_eq!(format!("{:?}", choice.model), expected_model, "{case}");
        }
    }

    #[test]
    fn a_continued_conversation_keeps_its_model_unless_another_is_named() {
        let environment = Environment::new(&[("XAI_API_KEY", "k")]);
        let settings = Settings::load(&Arguments::default(), &environment, Path::new(""));
        let settings = settings.expect("valid settings");
        let choice = choose(&settings, None).expect("no error").expect("xai");
        let own = Model::OfConversation("own".into());
        let named = Model::Named("a".into());
        for (model, continued) in [
            (Model::Default("a".into()), &own),
            (Model::First, &own),
            (named.clone(), &named),
        ] {
            let mut choice = Choice {
                model,
                ..choice.clone()
            };
            choice.continue_with("own");
            assert_eq!(&choice.model, continued);
        }
    }
}
