//! `q --status`: version, paths, settings with their origins, providers, tools, roles, and the conversation.

use serde::Serialize;

use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::output::{Look, print, print_texts};
use crate::server::choice::{self, Model};
use crate::server::discover;
use crate::session::rules::FileContent;
use crate::session::store::Purpose;
use crate::session::timestamp::Timestamp;
use crate::session::{Conversation, list};
use crate::settings::{
    Configured, Key, KeyPlace, Provider, RemoteServer, ServerKind, Settings, Sourced,
};

/// Where the model comes from if the user has not named one and the provider has no default.
const FIRST_LISTED: &str = "the first on its list";

/// Everything that `--status` prints. It is serialized as the JSON, and the text has the same fields.
#[derive(Serialize)]
struct Status {
    asks: TargetStatus,
    version: &'static str,
    /// The path of the configuration file.
    config: String,
    /// What is wrong with the settings. The defaults are shown then.
    error: Option<String>,
    #[serde(flatten)]
    sessions: SessionsStatus,
    answers: Option<AnswersStatus>,
    settings: Vec<SettingStatus>,
    providers: Vec<ProviderStatus>,
    tools: Vec<ToolStatus>,
    roles: Vec<String>,
    conversation: Option<ConversationStatus>,
}

/// The provider and the model that a question would go to.
#[derive(Serialize)]
struct TargetStatus {
    /// `None`: there is no provider to ask.
    provider: Option<String>,
    /// `None`: the first that the server lists.
    model: Option<String>,
    /// Why this provider, or why none.
    why: String,
    /// Where the model comes from.
    #[serde(skip)]
    model_origin: String,
}

/// The folder of conversations.
#[derive(Serialize)]
struct SessionsStatus {
    /// `None`: there is no home folder.
    #[serde(rename = "sessions")]
    path: Option<String>,
    /// How many files there are, with earlier states.
    kept: Option<usize>,
    /// How many bytes they have together.
    bytes: Option<u64>,
    #[serde(rename = "sessions_error")]
    error: Option<String>,
}

/// The folder of known answers.
#[derive(Serialize)]
struct AnswersStatus {
    path: String,
    kept: usize,
    bytes: u64,
}

#[derive(Serialize)]
struct SettingStatus {
    name: &'static str,
    value: Option<String>,
    origin: String,
}

#[derive(Serialize)]
struct ProviderStatus {
    name: String,
    api: &'static str,
    /// Its base URL, or what is wrong with it.
    address: String,
    /// Whether the key is set; never the key itself.
    key: String,
    model: Option<String>,
    /// A question would go to it.
    chosen: bool,
    #[serde(skip)]
    is_set_up: bool,
}

/// A tool server, or a section with commands. The arguments of a program and the query of an address are left out,
/// because they may be secret.
#[derive(Serialize, Default)]
struct ToolStatus {
    name: String,
    program: Option<String>,
    url: Option<String>,
    error: Option<String>,
    #[serde(skip)]
    commands: Vec<String>,
}

/// The conversation of this run.
#[derive(Serialize)]
struct ConversationStatus {
    path: String,
    /// Why it cannot be used.
    error: Option<String>,
    provider: Option<String>,
    model: Option<String>,
    updated: Option<Timestamp>,
    messages: usize,
    system: Option<String>,
    tools: Vec<String>,
}

/// Prints the status. Wrong settings are no error here: it says what is wrong with them.
pub fn print_status(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let environment = &context.environment;
    let (settings, error) = match Settings::load(arguments, environment, &context.configuration) {
        Ok(settings) => (settings, None),
        Err(error) => (Settings::defaults(environment)?, Some(error.message)),
    };
    let status = Status::new(context, &settings, error);
    if arguments.json {
        let json = serde_json::to_string(&status);
        return print(&json.map_err(Error::file)?);
    }
    let plain = Look {
        styles: false,
        ..context.look(&settings.values)
    };
    print_texts(&[(&status.text(), plain)])
}

impl Status {
    fn new(context: &Context, settings: &Settings, error: Option<String>) -> Status {
        let (path, content) = read_conversation(context).unzip();
        // Only a named conversation keeps its own provider and model.
        let mut keeps = None;
        if let Some(Ok(conversation)) = &content
            && !context.which.is_current()
        {
            keeps = Some(conversation);
        }
        let target = match error {
            None => choose(settings, keeps),
            Some(_) => Err("the configuration is wrong".to_owned()),
        };
        let asks = target.unwrap_or_else(|why| TargetStatus {
            provider: None,
            model: None,
            why,
            model_origin: String::new(),
        });
        Status {
            version: env!("CARGO_PKG_VERSION"),
            config: context.configuration.display().to_string(),
            error,
            sessions: sessions(context),
            answers: answers(settings, context),
            settings: setting_rows(settings, &asks),
            providers: provider_rows(settings, &asks),
            tools: tool_rows(settings),
            roles: settings.role_names(),
            conversation: path
                .zip(content)
                .map(|(path, content)| ConversationStatus::new(path, content)),
            asks,
        }
    }

    /// The status for people: paragraphs of lines.
    fn text(&self) -> String {
        let mut text = self.asks.line();
        text.push_str(&format!("\n\nq {}\n", self.version));
        text.push_str(&format!("\nconfiguration  {}", self.config));
        if let Some(error) = &self.error {
            text.push_str(&format!("\n  wrong: {error}"));
            text.push_str(
                "\n  no question is asked until that is corrected; these are the defaults:",
            );
        }
        text.push_str(&format!("\nconversations  {}\n", self.sessions.summary()));
        if let Some(AnswersStatus { path, kept, bytes }) = &self.answers {
            let bytes = size(*bytes);
            text.push_str(&format!("known answers  {path} ({kept}, {bytes})\n"));
        }
        for setting in &self.settings {
            text.push_str(&format!("\n{}", setting.line()));
        }
        text.push('\n');
        self.add_providers(&mut text);
        for row in &self.tools {
            text.push_str(&format!("\n  tools {:<5}  {}", row.name, row.summary()));
        }
        if !self.roles.is_empty() {
            text.push_str(&format!("\n  roles        {}", self.roles.join(", ")));
        }
        text.push_str("\n\n");
        match &self.conversation {
            Some(conversation) => text.push_str(&conversation.lines()),
            None => text.push_str("there is no conversation"),
        }
        text
    }

    /// Adds a line for each provider that is set up; the chosen one has a mark. The others share the last line.
    fn add_providers(&self, text: &mut String) {
        let mut others = Vec::new();
        for row in &self.providers {
            let name = &row.name;
            if !row.chosen && !row.is_set_up {
                others.push(name.as_str());
                continue;
            }
            let mark = if row.chosen { '*' } else { ' ' };
            let model = row.model.as_deref().unwrap_or(FIRST_LISTED);
            let ProviderStatus {
                key, api, address, ..
            } = row;
            text.push_str(&format!(
                "\n{mark} {name:<11}  {key}; {api} at {address}; {model}"
            ));
        }
        if !others.is_empty() {
            text.push_str(&format!("\n  not set up   {}", others.join(", ")));
        }
    }
}

/// Reads the conversation of this run, if there is one. Returns its path, and the conversation or why it cannot be used.
fn read_conversation(context: &Context) -> Option<(String, Result<Conversation, String>)> {
    context.folder.as_ref()?;
    let opened = match context.open(Purpose::Look) {
        Ok(opened) => opened,
        Err(error) => return Some((String::new(), Err(error.message))),
    };
    let content = match opened.found {
        Ok(FileContent::Nothing) => return None,
        Ok(FileContent::Conversation(conversation)) => Ok(conversation),
        Ok(FileContent::Unusable(reason)) => Err(reason),
        Err(error) => Err(error.to_string()),
    };
    Some((opened.handle.path.display().to_string(), content))
}

/// Chooses as for a question, or says why there is no provider. A named conversation keeps its own provider and model, which
/// are in `keeps`.
fn choose(settings: &Settings, keeps: Option<&Conversation>) -> Result<TargetStatus, String> {
    let choice = choice::choose(settings, keeps).map_err(|error| error.message)?;
    let Some(choice) = choice else {
        return choose_running(settings);
    };
    let provider = choice.provider;
    provider.address().map_err(|error| error.message)?;
    provider.key().map_err(|error| error.message)?;

    let is_kept = keeps.is_some_and(|keeps| keeps.provider == provider.name);
    let why = if is_kept {
        "the conversation is with it".to_owned()
    } else if let Some(named) = &settings.provider {
        named.origin.to_string()
    } else {
        format!("the first with a key: {}", key_summary(&provider))
    };
    let model = choice.model.name().map(str::to_owned);
    let of_provider = format!("the default of {}", provider.name);
    let model_origin = match choice.model {
        Model::Named(_) => match settings.model.as_ref().or(provider.model.as_ref()) {
            Some(named) => named.origin.to_string(),
            None => of_provider,
        },
        Model::OfConversation(_) => "the conversation's own".to_owned(),
        Model::Default(_) => of_provider,
        Model::First => FIRST_LISTED.to_owned(),
    };
    Ok(TargetStatus {
        provider: Some(provider.name.clone()),
        model,
        why,
        model_origin,
    })
}

/// Chooses the first local server that answers, as for a question if no key is set.
fn choose_running(settings: &Settings) -> Result<TargetStatus, String> {
    let running = discover::running(settings)
        .ok_or("no key is set, and no local server answers with a model")?;
    let mut target = TargetStatus {
        provider: Some(running.provider.name.clone()),
        model: Some(running.model),
        why: "no key is set, and this is the first local server that answers".to_owned(),
        model_origin: FIRST_LISTED.to_owned(),
    };
    if let Some(named) = &settings.model {
        target.model = Some(named.text.clone());
        target.model_origin = named.origin.to_string();
    }
    Ok(target)
}

impl TargetStatus {
    fn line(&self) -> String {
        let why = &self.why;
        let Some(provider) = &self.provider else {
            return format!("no provider to ask: {why}");
        };
        match &self.model {
            Some(model) => format!("asks {provider}, model {model} ({why})"),
            None => format!("asks {provider}, the first model on its list ({why})"),
        }
    }
}

fn sessions(context: &Context) -> SessionsStatus {
    let mut sessions = SessionsStatus {
        path: None,
        kept: Some(0),
        bytes: Some(0),
        error: None,
    };
    let Some(folder) = &context.folder else {
        return sessions;
    };
    sessions.path = Some(folder.sessions.display().to_string());
    match list::files(folder, true) {
        Ok(files) => {
            sessions.kept = Some(files.len());
            sessions.bytes = Some(files.iter().map(|file| file.bytes).sum());
        }
        Err(error) => {
            sessions.kept = None;
            sessions.bytes = None;
            sessions.error = Some(error.to_string());
        }
    }
    sessions
}

fn answers(settings: &Settings, context: &Context) -> Option<AnswersStatus> {
    let answers = context.answers(&settings.values)?;
    let size = answers.size();
    Some(AnswersStatus {
        path: answers.folder.display().to_string(),
        kept: size.files,
        bytes: size.bytes,
    })
}

impl SessionsStatus {
    fn summary(&self) -> String {
        let Some(path) = &self.path else {
            return "none: there is no home folder".to_owned();
        };
        if let Some(error) = &self.error {
            return error.clone();
        }
        let kept = self.kept.unwrap_or_default();
        let bytes = size(self.bytes.unwrap_or_default());
        format!("{path} ({kept}, {bytes})")
    }
}

/// The settings, and where each comes from; the model is the one that would be asked.
fn setting_rows(settings: &Settings, target: &TargetStatus) -> Vec<SettingStatus> {
    let mut rows = Vec::new();
    for (name, sourced) in settings.shown() {
        let mut row = SettingStatus::new(name, sourced);
        if name == "model" && target.provider.is_some() {
            row.value = target.model.clone();
            row.origin = target.model_origin.clone();
        }
        rows.push(row);
    }
    rows
}

impl SettingStatus {
    fn new(name: &'static str, sourced: Option<&Sourced>) -> SettingStatus {
        match sourced {
            Some(sourced) => SettingStatus {
                name,
                value: Some(sourced.text.clone()),
                origin: sourced.origin.to_string(),
            },
            None => SettingStatus {
                name,
                value: None,
                origin: "unset".to_owned(),
            },
        }
    }

    fn line(&self) -> String {
        let value = self.value.as_deref().unwrap_or("-").replace('\n', " ");
        format!("{:<13}  {value}  ({})", self.name, self.origin)
    }
}

fn provider_rows(settings: &Settings, target: &TargetStatus) -> Vec<ProviderStatus> {
    let mut rows = Vec::new();
    for provider in &settings.providers {
        let address = match provider.address() {
            Ok(address) => address.to_string(),
            Err(error) => error.message,
        };
        rows.push(ProviderStatus {
            name: provider.name.clone(),
            api: provider.api.name,
            address,
            key: key_summary(provider),
            model: provider.model.as_ref().map(|model| model.text.clone()),
            chosen: target.provider.as_ref() == Some(&provider.name),
            is_set_up: provider.is_set_up(),
        });
    }
    rows
}

/// Whether the key is set; never the key itself.
fn key_summary(provider: &Provider) -> String {
    match &provider.key {
        Key::None => "none needed".to_owned(),
        Key::Command(command) => {
            let program = command.first().map_or("", String::as_str);
            format!("by {program}")
        }
        Key::Variables { names, found } => match found {
            Some((name, _)) => format!("{name} is set"),
            None => format!("{} is not set", names.join(" or ")),
        },
    }
}

/// The tool servers, including those of a shared file; if that cannot be read, one row says so.
fn tool_rows(settings: &Settings) -> Vec<ToolStatus> {
    let unreadable = |error: Error| {
        vec![Configured {
            name: "mcp".to_owned(),
            server: Err(error.message),
        }]
    };
    let servers = settings.tool_servers().unwrap_or_else(unreadable);
    let mut rows = Vec::new();
    for Configured { name, server } in servers {
        let mut row = ToolStatus {
            name,
            ..ToolStatus::default()
        };
        match server.map(|server| server.kind) {
            Ok(ServerKind::Local(program)) => {
                let mut words = program.command.into_iter();
                row.program = Some(words.next().unwrap_or_default());
            }
            Ok(ServerKind::Remote(remote)) => {
                row.url = Some(remote.url.to_string());
                row.error = missing_key(&remote, settings);
            }
            Ok(ServerKind::Commands(commands)) => {
                for command in commands {
                    row.commands.push(command.name);
                }
            }
            Err(error) => row.error = Some(error),
        }
        rows.push(row);
    }
    rows
}

/// Says which variable should have the key of a server and is not set.
fn missing_key(server: &RemoteServer, settings: &Settings) -> Option<String> {
    let KeyPlace::Variable(name) = &server.key else {
        return None;
    };
    if settings.environment.get(name).is_some() {
        return None;
    }
    Some(format!("{name} is not set"))
}

impl ToolStatus {
    fn summary(&self) -> String {
        if let Some(program) = &self.program {
            return format!("by {program}");
        }
        match (&self.url, &self.error) {
            (Some(url), Some(error)) => format!("at {url}; {error}"),
            (Some(url), None) => format!("at {url}"),
            (None, Some(error)) => error.clone(),
            (None, None) => format!("commands {}", self.commands.join(", ")),
        }
    }
}

impl ConversationStatus {
    fn new(path: String, content: Result<Conversation, String>) -> ConversationStatus {
        match content {
            Ok(conversation) => ConversationStatus {
                path,
                error: None,
                messages: conversation.message_count(),
                provider: Some(conversation.provider),
                model: Some(conversation.model),
                updated: Some(conversation.updated),
                system: conversation.system,
                tools: conversation.tools,
            },
            Err(error) => ConversationStatus {
                path,
                error: Some(error),
                provider: None,
                model: None,
                updated: None,
                messages: 0,
                system: None,
                tools: Vec::new(),
            },
        }
    }

    /// The conversation, its own system prompt, and the tools that it uses again.
    fn lines(&self) -> String {
        let path = &self.path;
        if let Some(error) = &self.error {
            return format!("{path}: {error}");
        }
        let messages = self.messages;
        let provider = self.provider.as_deref().unwrap_or_default();
        let model = self.model.as_deref().unwrap_or_default();
        let mut lines = format!("{path}: {messages} messages, with {provider}/{model}");
        if let Some(updated) = self.updated {
            lines.push_str(&format!(", updated {updated}"));
        }
        if let Some(system) = &self.system {
            let system = system.replace('\n', " ");
            lines.push_str(&format!("\n  its system prompt: {system}"));
        }
        if !self.tools.is_empty() {
            lines.push_str(&format!("\n  its tools: {}", self.tools.join(", ")));
        }
        lines
    }
}

/// A number of bytes, as people write it.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}
