//! `q --status`: what q would do and why: version, paths, settings with their origins, providers, the conversation.

use std::io;
use std::path::PathBuf;

use serde::Serialize;

use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::output::print;
use crate::session::folder;
use crate::session::rules::Found;
use crate::session::timestamp::Timestamp;
use crate::settings::{Key, Provider, Settings};

#[derive(Serialize)]
struct Status {
    version: &'static str,
    config: String,
    /// What is wrong with the settings; then those that follow are the defaults.
    error: Option<String>,
    sessions: Option<String>,
    settings: Vec<Setting>,
    providers: Vec<ProviderStatus>,
    conversation: Option<ConversationStatus>,
}

#[derive(Serialize)]
struct Setting {
    name: &'static str,
    value: Option<String>,
    origin: String,
}

#[derive(Serialize)]
struct ProviderStatus {
    name: String,
    api: String,
    address: String,
    key: String,
    model: Option<String>,
    /// A question would go to it.
    chosen: bool,
}

#[derive(Serialize)]
struct ConversationStatus {
    path: String,
    /// Why it cannot be used, if it cannot.
    error: Option<String>,
    provider: Option<String>,
    model: Option<String>,
    updated: Option<Timestamp>,
    messages: usize,
}

/// Prints all of it. It works with settings that are wrong, and says what is wrong with them.
///
/// # Errors
/// `Output`: it could not be printed.
pub(crate) fn print_status(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let environment = &context.environment;
    let (settings, error) = match Settings::load(arguments, environment, &context.configuration) {
        Ok(settings) => (settings, None),
        Err(error) => (Settings::defaults(environment)?, Some(error.message)),
    };
    let folder = context.folder.as_ref();
    let status = Status {
        version: env!("CARGO_PKG_VERSION"),
        config: context.configuration.display().to_string(),
        error,
        sessions: folder.map(|folder| folder.sessions().display().to_string()),
        settings: settings
            .shown()
            .map(|(name, given)| Setting {
                name,
                value: given.map(|given| given.text.clone()),
                origin: given.map_or_else(|| "unset".to_owned(), |given| given.origin.to_string()),
            })
            .collect(),
        providers: providers(&settings),
        conversation: folder.and_then(|folder| conversation(folder.path(&context.which))),
    };
    if arguments.json {
        let json = serde_json::to_string(&status).map_err(|error| Error::file(error.to_string()))?;
        return print(&json);
    }
    print(&text(&status))
}

fn providers(settings: &Settings) -> Vec<ProviderStatus> {
    let chosen = settings.chosen_provider().map(|provider| provider.name.as_str());
    let status = |provider: &Provider| ProviderStatus {
        name: provider.name.clone(),
        api: provider.api.to_string(),
        address: provider.address().map_or_else(|error| error.message, ToString::to_string),
        key: key(provider),
        model: provider.model.as_ref().map(|model| model.text.clone()),
        chosen: chosen == Some(&provider.name),
    };
    settings.providers.iter().map(status).collect()
}

/// Whether the key is there; never the key.
fn key(provider: &Provider) -> String {
    match &provider.key {
        Key::None => "none needed".to_owned(),
        Key::Command(command) => format!("by {}", command.first().map_or("", String::as_str)),
        Key::Variables { names, found } => match found {
            Some((name, _)) => format!("{name} is set"),
            None => format!("{} is not set", names.join(" or ")),
        },
    }
}

fn conversation(path: io::Result<PathBuf>) -> Option<ConversationStatus> {
    let mut status = ConversationStatus {
        path: path.as_ref().map_or_else(|_| String::new(), |path| path.display().to_string()),
        error: None,
        provider: None,
        model: None,
        updated: None,
        messages: 0,
    };
    match path.and_then(|path| folder::read(&path)) {
        Ok(Found::Nothing) => return None,
        Ok(Found::Conversation(conversation)) => {
            status.messages = conversation.message_count();
            status.updated = Some(conversation.updated);
            status.provider = Some(conversation.provider);
            status.model = Some(conversation.model);
        }
        Ok(Found::Unusable(unusable)) => status.error = Some(unusable.to_string()),
        Err(error) => status.error = Some(error.to_string()),
    }
    Some(status)
}

fn text(status: &Status) -> String {
    let mut lines = vec![format!("q {}", status.version), String::new()];
    lines.push(format!("configuration  {}", status.config));
    if let Some(error) = &status.error {
        lines.push(format!("  wrong: {error}"));
        lines.push("  q asks nothing until that is put right; these are the defaults:".to_owned());
    }
    lines.push(format!("conversations  {}", status.sessions.as_deref().unwrap_or("none: there is no home folder")));
    lines.push(String::new());
    for setting in &status.settings {
        let value = setting.value.as_deref().unwrap_or("-").replace('\n', " ");
        lines.push(format!("{:<13}  {value}  ({})", setting.name, setting.origin));
    }
    lines.push(String::new());
    for provider in &status.providers {
        let mark = if provider.chosen { '*' } else { ' ' };
        let model = provider.model.as_deref().unwrap_or("the first that it lists");
        let ProviderStatus { name, api, address, key, .. } = provider;
        lines.push(format!("{mark} {name:<11}  {key}; {api} at {address}; {model}"));
    }
    lines.push(String::new());
    lines.push(match &status.conversation {
        None => "there is no conversation".to_owned(),
        Some(ConversationStatus { path, error: Some(error), .. }) => format!("{path}: {error}"),
        Some(ConversationStatus { path, provider, model, updated, messages, .. }) => format!(
            "{path}: {messages} messages, with {}/{}, updated {}",
            provider.as_deref().unwrap_or_default(),
            model.as_deref().unwrap_or_default(),
            updated.map_or_else(String::new, |updated| updated.to_string())
        ),
    });
    lines.join("\n")
}
