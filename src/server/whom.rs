//! Decides which provider and which model answer a question (pure).

use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::session::Conversation;
use crate::settings::{Origin, Provider, Settings, Sourced};

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
    /// Nothing chose it: q takes the first model that the server lists and that can chat.
    First,
    /// Nothing chose it, and the server has been asked for its list.
    Listed(String),
}

impl Model {
    /// Returns the model's name, if it is known.
    pub fn name(&self) -> Option<&str> {
        match self {
            Model::Named(name)
            | Model::OfConversation(name)
            | Model::Default(name)
            | Model::Listed(name) => Some(name),
            Model::First => None,
        }
    }
}

/// The claim of a conversation about who answers.
#[derive(Debug, Clone, Copy)]
pub enum Claim<'a> {
    /// No conversation is continued, so it says nothing.
    None,
    /// Its own provider and model answer, unless options name others. It was chosen by its name, its id or `--again`, or
    /// options chose its provider or model before.
    Keeps(&'a Conversation),
    /// Its own model answers if nothing names a model and the provider is the same.
    Suggests(&'a Conversation),
}

/// Decides who answers: options first, then a conversation that keeps its provider, then the settings. `None`: nothing names a
/// provider, and no key is set, so the first local server that runs answers.
///
/// # Errors
/// The conversation keeps a provider that is no longer configured.
pub fn decide(settings: &Settings, claim: Claim) -> Result<Option<Choice>, Error> {
    let named = settings.chosen_provider();
    let provider = match claim {
        Claim::Keeps(conversation) if settings.arguments.provider.is_none() => {
            Some(provider_of(conversation, settings)?)
        }
        _ => named,
    };
    let Some(provider) = provider else {
        return Ok(None);
    };
    Ok(Some(Choice {
        model: model_of(provider, settings, claim),
        provider: Arc::clone(provider),
    }))
}

/// Returns the provider of a conversation that keeps it.
fn provider_of<'a>(
    conversation: &Conversation,
    settings: &'a Settings,
) -> Result<&'a Arc<Provider>, Error> {
    let name = &conversation.provider;
    settings.provider_named(name).ok_or_else(|| {
        let message = format!("the conversation's provider “{name}” is not configured");
        let names = settings.provider_names();
        Error::new(ErrorKind::Session, message).advise(format!("choose one with -p: {names}"))
    })
}

/// Returns the model that an option, a variable or the file names for this provider.
pub fn named_model<'a>(provider: &'a Provider, settings: &'a Settings) -> Option<&'a Sourced> {
    let named = settings.model.as_ref().or(provider.model.as_ref());
    named.filter(|model| model.origin != Origin::Default)
}

/// Returns the model of this provider that answers.
pub fn model_of(provider: &Provider, settings: &Settings, claim: Claim) -> Model {
    let named = named_model(provider, settings);
    let own = match claim {
        Claim::Keeps(conversation) if settings.arguments.model.is_none() => Some(conversation),
        Claim::Suggests(conversation) if named.is_none() => Some(conversation),
        _ => None,
    };
    if let Some(conversation) = own
        && conversation.provider == provider.name
    {
        return Model::OfConversation(conversation.model.clone());
    }
    match (named, &provider.model) {
        (Some(model), _) => Model::Named(model.text.clone()),
        (None, Some(default)) => Model::Default(default.text.clone()),
        (None, None) => Model::First,
    }
}

impl Choice {
    /// Returns the model that the user has named.
    pub fn named_model(&self) -> Option<&str> {
        match &self.model {
            Model::Named(model) => Some(model),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Arguments;
    use crate::session::timestamp::Timestamp;
    use crate::settings::Environment;
    use crate::text::table::rows;

    /// `name=value` pairs with blanks between them.
    fn pairs(text: &str) -> Vec<(&str, &str)> {
        let words = text.split(' ');
        words.filter_map(|set| set.split_once('=')).collect()
    }

    /// Settings of variables, a file and options, which have the names of their short forms.
    fn settings(variables: &str, file: &str, options: &str) -> Settings {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("config.toml");
        fs_err::write(&path, file.replace('␊', "\n")).expect("a file");
        let mut arguments = Arguments::default();
        for (option, value) in pairs(options) {
            let value = Some(value.to_owned());
            match option {
                "p" => arguments.provider = value,
                "m" => arguments.model = value,
                "r" => arguments.role = value,
                other => panic!("{other}"),
            }
        }
        let environment = Environment::new(&pairs(variables));
        Settings::load(&arguments, &environment, &path).expect("valid settings")
    }

    #[test]
    fn options_then_the_conversation_then_the_settings_decide_who_answers() {
        // Variables; the file; options; what a conversation with groq and the model `own` says; provider and model.
        let table = r##"
            - | - | - | - | nobody
            - | - | - | suggests | nobody
            - | - | - | keeps | groq OfConversation("own")
            XAI_API_KEY=k | - | - | - | xai Default("grok-latest")
            XAI_API_KEY=k | - | - | suggests | xai Default("grok-latest")
            XAI_API_KEY=k | - | - | keeps | groq OfConversation("own")
            XAI_API_KEY=k Q_MODEL=a | - | - | - | xai Named("a")
            XAI_API_KEY=k Q_MODEL=a | - | - | keeps | groq OfConversation("own")
            GROQ_API_KEY=k | - | - | - | groq Default("openai/gpt-oss-120b")
            GROQ_API_KEY=k | - | - | suggests | groq OfConversation("own")
            GROQ_API_KEY=k Q_MODEL=a | - | - | suggests | groq Named("a")
            GROQ_API_KEY=k Q_MODEL=a | - | - | keeps | groq OfConversation("own")
            XAI_API_KEY=k Q_PROVIDER=groq | - | - | - | groq Default("openai/gpt-oss-120b")
            XAI_API_KEY=k Q_PROVIDER=groq | - | - | suggests | groq OfConversation("own")
            Q_PROVIDER=xai | - | - | keeps | groq OfConversation("own")
            Q_PROVIDER=ollama | - | - | - | ollama First
            Q_PROVIDER=ollama | - | - | suggests | ollama First
            - | provider="xai" | - | - | xai Default("grok-latest")
            - | provider="xai" | - | suggests | xai Default("grok-latest")
            - | provider="xai" | - | keeps | groq OfConversation("own")
            - | provider="groq"␊model="a" | - | - | groq Named("a")
            - | provider="groq"␊model="a" | - | suggests | groq Named("a")
            - | provider="groq"␊model="a" | - | keeps | groq OfConversation("own")
            Q_PROVIDER=xai | provider="groq"␊model="a" | - | - | xai Default("grok-latest")
            - | [providers.groq]␊model="a" | p=groq | - | groq Named("a")
            Q_PROVIDER=groq | [providers.groq]␊model="a" | - | suggests | groq Named("a")
            Q_PROVIDER=groq | [providers.groq]␊model="a" | - | keeps | groq OfConversation("own")
            Q_PROVIDER=groq Q_MODEL=a | - | p=xai | - | xai Default("grok-latest")
            Q_PROVIDER=groq Q_MODEL=a | - | p=xai | suggests | xai Default("grok-latest")
            Q_PROVIDER=groq Q_MODEL=a | - | p=xai | keeps | xai Default("grok-latest")
            Q_PROVIDER=groq Q_MODEL=a | - | p=xai m=b | keeps | xai Named("b")
            - | - | p=groq | - | groq Default("openai/gpt-oss-120b")
            - | - | p=groq | suggests | groq OfConversation("own")
            - | - | p=groq | keeps | groq OfConversation("own")
            XAI_API_KEY=k | - | m=b | - | xai Named("b")
            XAI_API_KEY=k | - | m=b | suggests | xai Named("b")
            XAI_API_KEY=k | - | m=b | keeps | groq Named("b")
            - | - | p=groq m=b | keeps | groq Named("b")
            XAI_API_KEY=k | [roles.r]␊provider="groq" | r=r | - | groq Default("openai/gpt-oss-120b")
            XAI_API_KEY=k | [roles.r]␊provider="groq"␊model="b" | r=r | keeps | groq Named("b")
            XAI_API_KEY=k | [roles.r]␊provider="groq"␊model="b" | r=r p=xai | - | xai Default("grok-latest")
            XAI_API_KEY=k | [roles.r]␊model="b" | r=r | keeps | groq Named("b")
        "##;
        for [variables, file, options, says, expected] in rows(table) {
            let settings = settings(variables, file, options);
            let conversation = Conversation {
                provider: "groq".to_owned(),
                model: "own".to_owned(),
                ..Conversation::new(Timestamp::now())
            };
            let claim = match says {
                "keeps" => Claim::Keeps(&conversation),
                "suggests" => Claim::Suggests(&conversation),
                _ => Claim::None,
            };
            let found = match decide(&settings, claim).expect("a decision") {
                Some(choice) => format!("{} {:?}", choice.provider.name, choice.model),
                None => "nobody".to_owned(),
            };
            let case = format!("{variables} | {file} | {options} | {says}");
            assert_eq!(found, expected, "{case}");
        }
    }

    #[test]
    fn a_kept_provider_that_is_no_longer_configured_is_an_error() {
        let conversation = Conversation {
            provider: "gone".to_owned(),
            ..Conversation::new(Timestamp::now())
        };
        let decided = |options| decide(&settings("", "", options), Claim::Keeps(&conversation));
        assert!(decided("").is_err());
        assert!(decided("p=groq").is_ok());
    }
}
