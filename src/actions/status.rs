//! `q --status`: version, paths, settings with their origins, providers, tools, roles, and the conversation.

use serde::Serialize;
use serde_json::{Value, json};

use crate::answers::Size;
use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::output::{Look, print, print_texts};
use crate::server::discover;
use crate::session::store::{Handle, Opened, Purpose};
use crate::session::{Conversation, list};
use crate::settings::{Environment, Key, Settings};

/// Stands for a model that only the server knows.
const FIRST_LISTED: &str = "the first on its list";

/// Prints the status. Wrong settings are no error here: it says what is wrong with them.
pub fn print_status(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let environment = &context.environment;
    let (settings, error) = match Settings::load(arguments, environment, &context.configuration) {
        Ok(settings) => (settings, None),
        Err(error) => (Settings::defaults(environment)?, Some(error.message)),
    };
    let found = context.open(Purpose::Look).and_then(Opened::conversation);
    // Only a named conversation keeps its own provider and model.
    let mut keeps = None;
    if let Ok((_, Some(conversation))) = &found
        && !context.which.is_current()
    {
        keeps = Some(conversation);
    }
    let asked = match error {
        None => choose(&settings, keeps, context),
        Some(_) => Err(Error::settings("the configuration is wrong")),
    };
    let asked = asked.unwrap_or_else(|reason| Asked {
        why: reason.message,
        ..Asked::default()
    });

    let mut report = Report::default();
    report.add_asked(&asked);
    report.add_configuration(context, error.as_deref());
    report.add_sessions(context);
    report.add_answers(context, &settings);
    report.add_settings(&settings);
    report.add_providers(&settings, &asked);
    report.add_names(&settings);
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

/// What a question would be asked of.
#[derive(Default, Serialize)]
struct Asked {
    /// `None`: there is no provider to ask.
    provider: Option<String>,
    /// `None`: the first that the server lists.
    model: Option<String>,
    /// Why this provider, or why none.
    why: String,
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

    fn add_asked(&mut self, asked: &Asked) {
        let why = &asked.why;
        let model = asked.model.as_deref().unwrap_or(FIRST_LISTED);
        self.line(&match &asked.provider {
            Some(provider) => format!("asks {provider}, model {model} ({why})"),
            None => format!("asks nobody: {why}"),
        });
        self.json["asks"] = json!(asked);
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
        let mut path = None;
        if let Some(folder) = &context.folder {
            path = Some(folder.sessions.display().to_string());
        }
        let files = context
            .folder()
            .and_then(|folder| list::files(folder, true).map_err(Error::file));
        let mut kept = None;
        let mut bytes = None;
        let mut problem = None;
        let shown = match files {
            Ok(files) => {
                let sum = files.iter().map(|file| file.bytes).sum();
                kept = Some(files.len());
                bytes = Some(sum);
                let path = path.as_deref().unwrap_or_default();
                format!("{path} {}", size(files.len(), sum))
            }
            Err(error) => problem.insert(error.message).clone(),
        };
        self.line(&format!("conversations  {shown}"));
        self.json["sessions"] = path.into();
        self.json["kept"] = kept.into();
        self.json["bytes"] = bytes.into();
        self.json["sessions_error"] = problem.into();
    }

    fn add_answers(&mut self, context: &Context, settings: &Settings) {
        self.json["answers"] = Value::Null;
        let Some(answers) = context.answers(&settings.values) else {
            return;
        };
        let path = answers.folder.display().to_string();
        let Size { files, bytes } = answers.size();
        let size = size(files, bytes);
        self.line(&format!("known answers  {path} {size}"));
        self.json["answers"] = json!({"path": path, "kept": files, "bytes": bytes});
    }

    /// The settings, and where each comes from.
    fn add_settings(&mut self, settings: &Settings) {
        self.line("");
        let mut rows = Vec::new();
        for (name, sourced) in settings.shown() {
            let value = sourced.map(|sourced| &sourced.text);
            let origin = sourced.map_or("unset".to_owned(), |sourced| sourced.origin.to_string());
            let shown = value.map_or("-".to_owned(), |value| value.replace('\n', " "));
            self.line(&format!("{name:<13}  {shown}  ({origin})"));
            rows.push(json!({"name": name, "value": value, "origin": origin}));
        }
        self.json["settings"] = rows.into();
    }

    /// A line for each provider that is set up; the chosen one has a mark. The others share the last line.
    fn add_providers(&mut self, settings: &Settings, asked: &Asked) {
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
            let key = key_summary(&provider.key, &settings.environment);
            let model = provider.model.as_ref().map(|model| &model.text);
            let is_chosen = asked.provider.as_ref() == Some(name);
            if is_chosen || provider.is_set_up(&settings.environment) {
                let mark = if is_chosen { '*' } else { ' ' };
                let default = model.map_or(FIRST_LISTED, String::as_str);
                self.line(&format!(
                    "{mark} {name:<11}  {key}; {api} at {address}; {default}"
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

    /// The tool servers, including those of a shared file, and the roles. How a server is reached is left out, because that
    /// may be secret.
    fn add_names(&mut self, settings: &Settings) {
        let tools = match settings.tool_servers() {
            Ok(servers) => Vec::from_iter(servers.into_iter().map(|server| server.name)),
            Err(error) => vec![error.message],
        };
        for (what, names) in [("tools", tools), ("roles", settings.role_names())] {
            if !names.is_empty() {
                self.line(&format!("  {what}        {}", names.join(", ")));
            }
            self.json[what] = names.into();
        }
    }

    /// The conversation of this run with its own system prompt and the tools that it uses again, or why it cannot be used.
    fn add_conversation(&mut self, found: Result<(Handle, Option<Conversation>), Error>) {
        self.line("");
        self.json["conversation"] = Value::Null;
        let (path, conversation) = match found {
            Ok((handle, Some(conversation))) => (handle.path.display().to_string(), conversation),
            Ok((_, None)) => return self.line("there is no conversation"),
            Err(Error { message, .. }) => {
                self.line(&message);
                self.json["conversation"] = json!({"error": message});
                return;
            }
        };
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
        self.json["conversation"] = json!({
            "path": path,
            "error": null,
            "provider": provider,
            "model": model,
            "updated": updated,
            "messages": messages,
            "system": system,
            "tools": tools,
        });
    }
}

/// Chooses as for a question, or says why there is no provider. A named conversation keeps its own provider and model, which
/// are in `keeps`.
fn choose(
    settings: &Settings,
    keeps: Option<&Conversation>,
    context: &Context,
) -> Result<Asked, Error> {
    let choice = discover::find(settings, keeps, &context.notes)?.choice;
    let name = &choice.provider.name;
    let why = if keeps.is_some_and(|keeps| keeps.provider == *name) {
        "the conversation is with it".to_owned()
    } else if let Some(named) = &settings.provider {
        named.origin.to_string()
    } else {
        let key = key_summary(&choice.provider.key, &settings.environment);
        format!("the first that can be asked; its key: {key}")
    };
    Ok(Asked {
        provider: Some(name.clone()),
        model: choice.model.name().map(str::to_owned),
        why,
    })
}

/// Whether the key is set; never the key itself.
fn key_summary(key: &Key, environment: &Environment) -> String {
    match key {
        Key::None => "none needed".to_owned(),
        Key::Command(command) => format!("by {}", command[0]),
        Key::Variables(names) => match key.find(environment) {
            Some((name, _)) => format!("{name} is set"),
            None => format!("{} is not set", names.join(" or ")),
        },
    }
}

/// A number of files, and their size as people write it.
fn size(files: usize, bytes: u64) -> String {
    if bytes < 1_000_000 {
        return format!("({files}, {} kB)", bytes.div_ceil(1_000));
    }
    format!(
        "({files}, {}.{} MB)",
        bytes / 1_000_000,
        bytes / 100_000 % 10
    )
}
