//! `q --status`: version, paths, settings with their origins, providers, tools, roles, and the conversation.

use serde_json::{Value, json};

use crate::answers::Size;
use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::output::{Look, print, print_texts};
use crate::server::choice::{self, Choice, Model};
use crate::server::discover::{self, Running};
use crate::session::rules::FileContent;
use crate::session::store::Purpose;
use crate::session::{Conversation, list};
use crate::settings::{Configured, Key, KeyPlace, Provider, RemoteServer, ServerKind, Settings};

/// Where the model comes from if the user has not named one and the provider has no default.
const FIRST_LISTED: &str = "the first on its list";

/// Prints the status. Wrong settings are no error here: it says what is wrong with them.
pub fn print_status(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let environment = &context.environment;
    let (settings, error) = match Settings::load(arguments, environment, &context.configuration) {
        Ok(settings) => (settings, None),
        Err(error) => (Settings::defaults(environment)?, Some(error.message)),
    };
    let found = read_conversation(context);
    // Only a named conversation keeps its own provider and model.
    let mut keeps = None;
    if let Some((_, Ok(conversation))) = &found
        && !context.which.is_current()
    {
        keeps = Some(conversation);
    }
    let target = match error {
        None => choose(&settings, keeps),
        Some(_) => Err(Error::settings("the configuration is wrong")),
    };
    let target = target.unwrap_or_else(|reason| Target {
        why: reason.message,
        ..Target::default()
    });

    let mut report = Report::default();
    report.add_target(&target);
    report.add_configuration(context, error.as_deref());
    report.add_sessions(context);
    report.add_answers(context, &settings);
    report.add_settings(&settings, &target);
    report.add_providers(&settings, &target);
    report.add_tools(&settings);
    report.add_roles(&settings);
    report.add_conversation(found);
    if arguments.json {
        return print(&report.json.to_string());
    }
    let plain = Look {
        styles: false,
        ..context.look(&settings.values)
    };
    print_texts(&[(report.text, plain)])
}

/// The provider and the model that a question would go to.
#[derive(Default)]
struct Target {
    /// `None`: there is no provider to ask.
    provider: Option<String>,
    /// `None`: the first that the server lists.
    model: Option<String>,
    /// Why this provider, or why none.
    why: String,
    /// Where the model comes from.
    model_origin: String,
}

/// Everything that `--status` prints, as JSON and as lines for people.
#[derive(Default)]
struct Report {
    json: Value,
    text: String,
}

impl Report {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn add_target(&mut self, target: &Target) {
        let Target {
            provider,
            model,
            why,
            ..
        } = target;
        self.json["asks"] = json!({"provider": provider, "model": model, "why": why});
        self.line(&match (provider, model) {
            (None, _) => format!("no provider to ask: {why}"),
            (Some(provider), Some(model)) => format!("asks {provider}, model {model} ({why})"),
            (Some(provider), None) => {
                format!("asks {provider}, the first model on its list ({why})")
            }
        });
    }

    /// The version and the file of settings. If these are wrong, the defaults follow.
    fn add_configuration(&mut self, context: &Context, error: Option<&str>) {
        let version = env!("CARGO_PKG_VERSION");
        let file = context.configuration.display().to_string();
        self.line(&format!("\nq {version}\n\nconfiguration  {file}"));
        if let Some(error) = error {
            self.line(&format!("  wrong: {error}"));
            self.line("  no question is asked until that is corrected; these are the defaults:");
        }
        self.json["version"] = version.into();
        self.json["config"] = file.into();
        self.json["error"] = error.into();
    }

    /// The folder of conversations, and how many files it has, with earlier states.
    fn add_sessions(&mut self, context: &Context) {
        self.json["sessions"] = Value::Null;
        self.json["kept"] = 0.into();
        self.json["bytes"] = 0.into();
        self.json["sessions_error"] = Value::Null;
        let Some(folder) = &context.folder else {
            self.line("conversations  none: there is no home folder");
            return;
        };
        let path = folder.sessions.display().to_string();
        match list::files(folder, true) {
            Ok(files) => {
                let kept = files.len();
                let bytes = files.iter().map(|file| file.bytes).sum();
                self.line(&format!("conversations  {path} ({kept}, {})", size(bytes)));
                self.json["kept"] = kept.into();
                self.json["bytes"] = bytes.into();
            }
            Err(error) => {
                self.line(&format!("conversations  {error}"));
                self.json["kept"] = Value::Null;
                self.json["bytes"] = Value::Null;
                self.json["sessions_error"] = error.to_string().into();
            }
        }
        self.json["sessions"] = path.into();
    }

    fn add_answers(&mut self, context: &Context, settings: &Settings) {
        self.json["answers"] = Value::Null;
        let Some(answers) = context.answers(&settings.values) else {
            return;
        };
        let path = answers.folder.display().to_string();
        let Size { files, bytes } = answers.size();
        self.line(&format!("known answers  {path} ({files}, {})", size(bytes)));
        self.json["answers"] = json!({"path": path, "kept": files, "bytes": bytes});
    }

    /// The settings, and where each comes from; the model is the one that would be asked.
    fn add_settings(&mut self, settings: &Settings, target: &Target) {
        self.line("");
        let mut rows = Vec::new();
        for (name, sourced) in settings.shown() {
            let mut value = None;
            let mut origin = "unset".to_owned();
            if name == "model" && target.provider.is_some() {
                value = target.model.as_deref();
                origin.clone_from(&target.model_origin);
            } else if let Some(sourced) = sourced {
                value = Some(&sourced.text);
                origin = sourced.origin.to_string();
            }
            let shown = value.unwrap_or("-").replace('\n', " ");
            self.line(&format!("{name:<13}  {shown}  ({origin})"));
            rows.push(json!({"name": name, "value": value, "origin": origin}));
        }
        self.json["settings"] = rows.into();
    }

    /// A line for each provider that is set up; the chosen one has a mark. The others share the last line.
    fn add_providers(&mut self, settings: &Settings, target: &Target) {
        self.line("");
        let mut rows = Vec::new();
        let mut others = Vec::new();
        for provider in &settings.providers {
            let name = &provider.name;
            let api = provider.api.name;
            let address = match provider.address() {
                Ok(address) => address.to_string(),
                Err(error) => error.message,
            };
            let key = key_summary(provider);
            let model = provider.model.as_ref().map(|model| &model.text);
            let is_chosen = target.provider.as_ref() == Some(name);
            if is_chosen || provider.is_set_up() {
                let mark = if is_chosen { '*' } else { ' ' };
                let asked = model.map_or(FIRST_LISTED, String::as_str);
                self.line(&format!(
                    "{mark} {name:<11}  {key}; {api} at {address}; {asked}"
                ));
            } else {
                others.push(name.as_str());
            }
            rows.push(json!({
                "name": name,
                "api": api,
                "address": address,
                "key": key,
                "model": model,
                "chosen": is_chosen,
            }));
        }
        if !others.is_empty() {
            self.line(&format!("  not set up   {}", others.join(", ")));
        }
        self.json["providers"] = rows.into();
    }

    /// The tool servers, including those of a shared file; if that cannot be read, one row says so. The arguments of a
    /// program and the query of an address are left out, because they may be secret.
    fn add_tools(&mut self, settings: &Settings) {
        let unreadable = |error: Error| {
            vec![Configured {
                name: "mcp".to_owned(),
                server: Err(error.message),
            }]
        };
        let mut rows = Vec::new();
        for Configured { name, server } in settings.tool_servers().unwrap_or_else(unreadable) {
            let mut program = None;
            let mut url = None;
            let mut error = None;
            let summary = match server.map(|server| server.kind) {
                Ok(ServerKind::Local(local)) => {
                    let first = local.command.into_iter().next().unwrap_or_default();
                    format!("by {}", program.insert(first))
                }
                Ok(ServerKind::Remote(remote)) => {
                    error = missing_key(&remote, settings);
                    let at = url.insert(remote.url.to_string());
                    match &error {
                        Some(error) => format!("at {at}; {error}"),
                        None => format!("at {at}"),
                    }
                }
                Ok(ServerKind::Commands(commands)) => {
                    let names = Vec::from_iter(commands.into_iter().map(|command| command.name));
                    format!("commands {}", names.join(", "))
                }
                Err(reason) => error.insert(reason).clone(),
            };
            self.line(&format!("  tools {name:<5}  {summary}"));
            rows.push(json!({"name": name, "program": program, "url": url, "error": error}));
        }
        self.json["tools"] = rows.into();
    }

    fn add_roles(&mut self, settings: &Settings) {
        let roles = settings.role_names();
        if !roles.is_empty() {
            self.line(&format!("  roles        {}", roles.join(", ")));
        }
        self.json["roles"] = roles.into();
    }

    /// The conversation of this run with its own system prompt and the tools that it uses again, or why it cannot be used.
    fn add_conversation(&mut self, found: Option<(String, Result<Conversation, String>)>) {
        self.line("");
        self.json["conversation"] = Value::Null;
        let Some((path, content)) = found else {
            self.line("there is no conversation");
            return;
        };
        let mut json = json!({
            "path": path,
            "error": null,
            "provider": null,
            "model": null,
            "updated": null,
            "messages": 0,
            "system": null,
            "tools": [],
        });
        match content {
            Ok(conversation) => {
                let messages = conversation.message_count();
                let Conversation {
                    provider,
                    model,
                    updated,
                    system,
                    tools,
                    ..
                } = conversation;
                self.line(&format!(
                    "{path}: {messages} messages, with {provider}/{model}, updated {updated}"
                ));
                if let Some(system) = &system {
                    let system = system.replace('\n', " ");
                    self.line(&format!("  its system prompt: {system}"));
                }
                if !tools.is_empty() {
                    self.line(&format!("  its tools: {}", tools.join(", ")));
                }
                json["provider"] = provider.into();
                json["model"] = model.into();
                json["updated"] = updated.to_string().into();
                json["messages"] = messages.into();
                json["system"] = system.into();
                json["tools"] = tools.into();
            }
            Err(error) => {
                self.line(&format!("{path}: {error}"));
                json["error"] = error.into();
            }
        }
        self.json["conversation"] = json;
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
fn choose(settings: &Settings, keeps: Option<&Conversation>) -> Result<Target, Error> {
    let Some(Choice { provider, model }) = choice::choose(settings, keeps)? else {
        return choose_running(settings);
    };
    provider.address()?;
    provider.key()?;

    let is_kept = keeps.is_some_and(|keeps| keeps.provider == provider.name);
    let why = if is_kept {
        "the conversation is with it".to_owned()
    } else if let Some(named) = &settings.provider {
        named.origin.to_string()
    } else {
        format!("the first with a key: {}", key_summary(&provider))
    };
    let named = settings.model.as_ref().or(provider.model.as_ref());
    let model_origin = match (&model, named) {
        (Model::Named(_), Some(named)) => named.origin.to_string(),
        (Model::OfConversation(_), _) => "the conversation's own".to_owned(),
        (Model::First, _) => FIRST_LISTED.to_owned(),
        _ => format!("the default of {}", provider.name),
    };
    Ok(Target {
        provider: Some(provider.name.clone()),
        model: model.name().map(str::to_owned),
        why,
        model_origin,
    })
}

/// Chooses the first local server that answers, as for a question if no key is set.
fn choose_running(settings: &Settings) -> Result<Target, Error> {
    let Some(Running { provider, model }) = discover::running(settings) else {
        let message = "no key is set, and no local server answers with a model";
        return Err(Error::settings(message));
    };
    let mut target = Target {
        provider: Some(provider.name.clone()),
        model: Some(model),
        why: "no key is set, and this is the first local server that answers".to_owned(),
        model_origin: FIRST_LISTED.to_owned(),
    };
    if let Some(named) = &settings.model {
        target.model = Some(named.text.clone());
        target.model_origin = named.origin.to_string();
    }
    Ok(target)
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

/// A number of bytes, as people write it.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}
