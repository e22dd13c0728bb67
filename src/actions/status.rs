//! `q --status`: version, paths, settings with their origins, providers, and the conversation.

use std::io;
use std::path::PathBuf;

use serde::Serialize;

use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::output::print;
use crate::server::choice::{self, HeldWith};
use crate::server::discover;
use crate::session::files;
use crate::session::folder::Folder;
use crate::session::rules::Found;
use crate::session::timestamp::Timestamp;
use crate::settings::{Configured, Key, KeyPlace, Place, Provider, Settings};

#[derive(Serialize)]
struct Status {
    asks: Asks,
    version: &'static str,
    config: String,
    /// What is wrong with the settings; the values shown are the defaults then.
    error: Option<String>,
    sessions: Option<String>,
    /// How many conversations there are, and how many bytes they have together; `None` if they cannot be counted.
    kept: Option<usize>,
    bytes: Option<u64>,
    /// Why they cannot be counted.
    sessions_error: Option<String>,
    settings: Vec<Setting>,
    providers: Vec<ProviderStatus>,
    tools: Vec<ToolStatus>,
    conversation: Option<ConversationStatus>,
}

/// Which provider a question would go to, and why; or why there is no provider.
#[derive(Serialize)]
struct Asks {
    provider: Option<String>,
    /// `None`: the first that the server lists.
    model: Option<String>,
    why: String,
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
    /// A question would go to this provider.
    chosen: bool,
}

/// A configured tool server.
#[derive(Serialize)]
struct ToolStatus {
    name: String,
    /// Without its arguments, which may be secret.
    program: Option<String>,
    /// Without its query, which may be secret.
    url: Option<String>,
    /// Why it cannot be used, if it cannot.
    error: Option<String>,
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
    /// Its own system prompt.
    system: Option<String>,
    /// The tools that it uses again.
    tools: Vec<String>,
}

/// Prints everything. This works even with wrong settings, and says what is wrong with them.
///
/// # Errors
/// `Output`: standard output could not be written.
pub(crate) fn print_status(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let environment = &context.environment;
    let (settings, error) = match Settings::load(arguments, environment, &context.configuration) {
        Ok(settings) => (settings, None),
        Err(error) => (Settings::defaults(environment)?, Some(error.message)),
    };
    let folder = context.folder.as_ref();
    let conversation =
        folder.and_then(|folder| conversation(folder.locate(&context.which).map(|location| location.path)));
    let (kept, sessions_error) = match folder.map_or(Ok((0, 0)), kept) {
        Ok(kept) => (Some(kept), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let asks = match &error {
        Some(_) => Asks { provider: None, model: None, why: "the configuration is wrong".to_owned() },
        None => asks(&settings, conversation.as_ref().filter(|_| !context.which.is_current())),
    };
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
        providers: providers(&settings, asks.provider.as_deref()),
        asks,
        tools: tools(&settings),
        kept: kept.map(|(count, _)| count),
        bytes: kept.map(|(_, bytes)| bytes),
        sessions_error,
        conversation,
    };
    if arguments.json {
        let json = serde_json::to_string(&status).map_err(|error| Error::file(error.to_string()))?;
        return print(&json);
    }
    print(&text(&status))
}

/// Which provider a question would go to; `named` is a conversation that keeps its own provider and model.
fn asks(settings: &Settings, named: Option<&ConversationStatus>) -> Asks {
    let held =
        named.and_then(|named| Some(HeldWith { provider: named.provider.as_deref()?, model: named.model.as_deref()? }));
    let nobody = |why: String| Asks { provider: None, model: None, why };
    let choice = match choice::choose(settings, held) {
        Ok(Some(choice)) => choice,
        Err(error) => return nobody(error.message),
        Ok(None) => {
            return match discover::running(settings) {
                Some(running) => Asks {
                    provider: Some(running.provider.name.clone()),
                    model: Some(settings.model.as_ref().map_or(running.model, |named| named.text.clone())),
                    why: "no key is set, and this is the first local server that answers".to_owned(),
                },
                None => nobody("no key is set, and no local server answers with a model".to_owned()),
            };
        }
    };
    let provider = choice.provider;
    if let Err(error) = provider.address().and_then(|_| provider.key()) {
        return nobody(error.message);
    }
    let why = match (&settings.provider, held) {
        (_, Some(held)) if held.provider == provider.name => "the conversation is with it".to_owned(),
        (Some(named), _) => named.origin.to_string(),
        (None, _) => format!("the first with a key: {}", key(provider)),
    };
    Asks { provider: Some(provider.name.clone()), model: choice.model.name().map(str::to_owned), why }
}

/// The tool servers, including those of a shared file; if that cannot be read, one line says so.
fn tools(settings: &Settings) -> Vec<ToolStatus> {
    let failed = |name: String, error: String| ToolStatus { name, program: None, url: None, error: Some(error) };
    let status = |Configured { name, server }: Configured| match server.map(|server| server.place) {
        Ok(Place::Local(program)) => {
            ToolStatus { name, program: program.command.into_iter().next(), url: None, error: None }
        }
        Ok(Place::Remote(server)) => {
            let error = match &server.key {
                KeyPlace::Variable(key) if settings.environment.get(key).is_none() => Some(format!("{key} is not set")),
                _ => None,
            };
            ToolStatus { name, program: None, url: Some(server.url.to_string()), error }
        }
        Err(error) => failed(name, error),
    };
    match settings.tool_servers() {
        Ok(servers) => servers.into_iter().map(status).collect(),
        Err(error) => vec![failed("mcp".to_owned(), error.message)],
    }
}

/// How many conversations there are, and their bytes together.
fn kept(folder: &Folder) -> io::Result<(usize, u64)> {
    let (mut count, mut bytes) = (0, 0);
    for file in folder.list(true)? {
        match fs_err::metadata(file.path) {
            Ok(metadata) => (count, bytes) = (count + 1, bytes + metadata.len()),
            // It was removed in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok((count, bytes))
}

fn providers(settings: &Settings, asked: Option<&str>) -> Vec<ProviderStatus> {
    let status = |provider: &Provider| ProviderStatus {
        name: provider.name.clone(),
        api: provider.api.name.to_owned(),
        address: provider.address().map_or_else(|error| error.message, ToString::to_string),
        key: key(provider),
        model: provider.model.as_ref().map(|model| model.text.clone()),
        chosen: asked == Some(&provider.name),
    };
    settings.providers.iter().map(status).collect()
}

/// Whether the key is set; never the key itself.
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
        system: None,
        tools: Vec::new(),
    };
    match path.and_then(|path| files::read(&path)) {
        Ok(Found::Nothing) => return None,
        Ok(Found::Conversation(conversation)) => {
            status.messages = conversation.message_count();
            status.updated = Some(conversation.updated);
            status.provider = Some(conversation.provider);
            status.model = Some(conversation.model);
            status.system = conversation.system;
            status.tools = conversation.tools;
        }
        Ok(Found::Unusable(reason)) => status.error = Some(reason),
        Err(error) => status.error = Some(error.to_string()),
    }
    Some(status)
}

fn text(status: &Status) -> String {
    let Asks { provider, model, why } = &status.asks;
    let mut lines = vec![match (provider, model) {
        (None, _) => format!("asks no provider: {why}"),
        (Some(provider), None) => format!("asks {provider}, the first model on its list ({why})"),
        (Some(provider), Some(model)) => format!("asks {provider}, model {model} ({why})"),
    }];
    lines.extend([String::new(), format!("q {}", status.version), String::new()]);
    lines.push(format!("configuration  {}", status.config));
    if let Some(error) = &status.error {
        lines.push(format!("  wrong: {error}"));
        lines.push("  q asks nothing until that is corrected; these are the defaults:".to_owned());
    }
    lines.push(match (&status.sessions, &status.sessions_error) {
        (Some(_), Some(error)) => format!("conversations  {error}"),
        (Some(sessions), None) => {
            let (kept, bytes) = (status.kept.unwrap_or_default(), status.bytes.unwrap_or_default());
            format!("conversations  {sessions} ({kept}, {})", size(bytes))
        }
        (None, _) => "conversations  none: there is no home folder".to_owned(),
    });
    lines.push(String::new());
    for setting in &status.settings {
        let value = setting.value.as_deref().unwrap_or("-").replace('\n', " ");
        lines.push(format!("{:<13}  {value}  ({})", setting.name, setting.origin));
    }
    lines.push(String::new());
    for provider in &status.providers {
        let mark = if provider.chosen { '*' } else { ' ' };
        let model = provider.model.as_deref().unwrap_or("the first on its list");
        let ProviderStatus { name, api, address, key, .. } = provider;
        lines.push(format!("{mark} {name:<11}  {key}; {api} at {address}; {model}"));
    }
    for ToolStatus { name, program, url, error } in &status.tools {
        let what = match (error, url) {
            (Some(error), Some(url)) => format!("at {url}; {error}"),
            (Some(error), None) => error.clone(),
            (None, Some(url)) => format!("at {url}"),
            (None, None) => format!("by {}", program.as_deref().unwrap_or_default()),
        };
        lines.push(format!("  tools {name:<5}  {what}"));
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
    if let Some(system) = status.conversation.as_ref().and_then(|conversation| conversation.system.as_ref()) {
        lines.push(format!("  its system prompt: {}", system.replace('\n', " ")));
    }
    if let Some(tools) =
        status.conversation.as_ref().map(|conversation| &conversation.tools).filter(|tools| !tools.is_empty())
    {
        lines.push(format!("  its tools: {}", tools.join(", ")));
    }
    lines.join("\n")
}

/// Bytes, for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}
