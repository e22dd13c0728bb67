//! `q --status`: version, paths, settings with their origins, providers, and the conversation.

use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::output::{Look, print, print_texts};
use crate::server::choice::{self, HeldWith, Model};
use crate::server::discover;
use crate::session::Conversation;
use crate::session::files;
use crate::session::folder::Folder;
use crate::session::rules::Found;
use crate::settings::{Configured, Key, KeyPlace, Place, Provider, Settings};

/// Where the model comes from if the user has not named one and the provider has no default.
const FIRST_LISTED: &str = "the first on its list";

/// A part of the status: lines for people, and the same for programs.
struct Section {
    lines: Vec<String>,
    fields: Vec<(&'static str, Value)>,
}

/// The provider that a question would go to.
struct Chosen {
    provider: String,
    /// `None`: the first that the server lists.
    model: Option<String>,
    why: String,
    /// Where the model comes from.
    origin: String,
}

/// The conversation of this run.
struct Kept {
    path: String,
    /// The conversation, or why it cannot be used.
    content: Result<Conversation, String>,
}

/// Prints the status. Wrong settings are no error here: it says what is wrong with them.
///
/// # Errors
/// `Output`: standard output could not be written.
pub(crate) fn print_status(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let environment = &context.environment;
    let (settings, error) = match Settings::load(arguments, environment, &context.configuration) {
        Ok(settings) => (settings, None),
        Err(error) => (Settings::defaults(environment)?, Some(error.message)),
    };
    let kept = kept(context);
    let named = kept
        .as_ref()
        .filter(|_| !context.which.is_current())
        .and_then(|kept| kept.content.as_ref().ok());
    let chosen = match error {
        Some(_) => Err("the configuration is wrong".to_owned()),
        None => choose(&settings, named),
    };
    let paragraphs = [
        vec![asks(&chosen)],
        vec![version()],
        vec![
            configuration(context, error),
            conversations(context.folder.as_ref()),
        ],
        vec![values(&settings, chosen.as_ref().ok())],
        vec![
            providers(&settings, chosen.as_ref().ok()),
            tools(&settings),
            roles(&settings),
        ],
        vec![conversation(kept)],
    ];
    if arguments.json {
        let fields = paragraphs
            .into_iter()
            .flatten()
            .flat_map(|section| section.fields);
        let object: Map<String, Value> = fields
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        return print(&Value::Object(object).to_string());
    }
    let text = |sections: Vec<Section>| {
        sections
            .into_iter()
            .flat_map(|section| section.lines)
            .collect::<Vec<_>>()
    };
    let text = paragraphs
        .map(|sections| text(sections).join("\n"))
        .join("\n\n");
    print_texts(&[(
        &text,
        Look {
            styles: false,
            ..context.look(&settings.values)
        },
    )])
}

/// Reads the conversation of this run, if there is one.
fn kept(context: &Context) -> Option<Kept> {
    let (path, found) = match context.folder.as_ref()?.locate(&context.which) {
        Ok(location) => (
            location.path.display().to_string(),
            files::read(&location.path),
        ),
        Err(error) => (String::new(), Err(error)),
    };
    let content = match found {
        Ok(Found::Nothing) => return None,
        Ok(Found::Conversation(conversation)) => Ok(conversation),
        Ok(Found::Unusable(reason)) => Err(reason),
        Err(error) => Err(error.to_string()),
    };
    Some(Kept { path, content })
}

/// Chooses as for a question, or says why there is no provider; `named` is a conversation that keeps its own provider
/// and model.
fn choose(settings: &Settings, named: Option<&Conversation>) -> Result<Chosen, String> {
    let held = named.map(|named| HeldWith {
        provider: named.provider.clone(),
        model: named.model.clone(),
    });
    let Some(choice) = choice::choose(settings, held.as_ref()).map_err(|error| error.message)?
    else {
        let running = discover::running(settings)
            .ok_or("no key is set, and no local server answers with a model")?;
        return Ok(Chosen {
            provider: running.provider.name.clone(),
            model: Some(
                settings
                    .model
                    .as_ref()
                    .map_or(running.model, |named| named.text.clone()),
            ),
            why: "no key is set, and this is the first local server that answers".to_owned(),
            origin: settings
                .model
                .as_ref()
                .map_or(FIRST_LISTED.to_owned(), |named| named.origin.to_string()),
        });
    };
    let provider = choice.provider;
    provider
        .address()
        .and_then(|_| provider.key())
        .map_err(|error| error.message)?;
    let why = match (&settings.provider, held) {
        (_, Some(held)) if held.provider == provider.name => {
            "the conversation is with it".to_owned()
        }
        (Some(named), _) => named.origin.to_string(),
        (None, _) => format!("the first with a key: {}", key(&provider)),
    };
    let origin = match (
        &choice.model,
        settings.model.as_ref().or(provider.model.as_ref()),
    ) {
        (Model::Named(_), Some(named)) => named.origin.to_string(),
        (Model::OfConversation(_), _) => "the conversation's own".to_owned(),
        (Model::First, _) => FIRST_LISTED.to_owned(),
        _ => format!("the default of {}", provider.name),
    };
    Ok(Chosen {
        provider: provider.name.clone(),
        model: choice.model.name().map(str::to_owned),
        why,
        origin,
    })
}

fn asks(chosen: &Result<Chosen, String>) -> Section {
    let (line, asks) = match chosen {
        Err(why) => (
            format!("no provider to ask: {why}"),
            json!({"provider": null, "model": null, "why": why}),
        ),
        Ok(Chosen {
            provider,
            model,
            why,
            ..
        }) => {
            let what = model
                .as_ref()
                .map_or("the first model on its list".to_owned(), |model| {
                    format!("model {model}")
                });
            let asks = json!({"provider": provider, "model": model, "why": why});
            (format!("asks {provider}, {what} ({why})"), asks)
        }
    };
    Section {
        lines: vec![line],
        fields: vec![("asks", asks)],
    }
}

fn version() -> Section {
    let version = env!("CARGO_PKG_VERSION");
    Section {
        lines: vec![format!("q {version}")],
        fields: vec![("version", json!(version))],
    }
}

/// The configuration file, and what is wrong with the settings; if they are wrong, the defaults are shown.
fn configuration(context: &Context, error: Option<String>) -> Section {
    let path = context.configuration.display().to_string();
    let mut lines = vec![format!("configuration  {path}")];
    if let Some(error) = &error {
        lines.push(format!("  wrong: {error}"));
        lines.push(
            "  no question is asked until that is corrected; these are the defaults:".to_owned(),
        );
    }
    Section {
        lines,
        fields: vec![("config", json!(path)), ("error", json!(error))],
    }
}

/// The folder of conversations, how many there are, and how many bytes they have together.
fn conversations(folder: Option<&Folder>) -> Section {
    let path = folder.map(|folder| folder.sessions().display().to_string());
    let listed = folder.map_or(Ok(Vec::new()), |folder| folder.list(true));
    let counted = listed.map(|files| (files.len(), files.iter().map(|file| file.bytes).sum()));
    let counted = counted.map_err(|error| error.to_string());
    let what = match (&path, &counted) {
        (Some(path), Ok((count, bytes))) => format!("{path} ({count}, {})", size(*bytes)),
        (Some(_), Err(error)) => error.clone(),
        (None, _) => "none: there is no home folder".to_owned(),
    };
    let (count, bytes) = counted.clone().ok().unzip();
    let fields = vec![
        ("sessions", json!(path)),
        ("kept", json!(count)),
        ("bytes", json!(bytes)),
        ("sessions_error", json!(counted.err())),
    ];
    Section {
        lines: vec![format!("conversations  {what}")],
        fields,
    }
}

/// The settings, and where each comes from; the model is the one that would be asked.
fn values(settings: &Settings, chosen: Option<&Chosen>) -> Section {
    let rows = settings.shown().map(|(name, given)| {
        let (value, origin) = match (given, chosen) {
            (_, Some(chosen)) if name == "model" => {
                (chosen.model.as_deref(), chosen.origin.clone())
            }
            (Some(given), _) => (Some(given.text.as_str()), given.origin.to_string()),
            (None, _) => (None, "unset".to_owned()),
        };
        let line = format!(
            "{name:<13}  {}  ({origin})",
            value.unwrap_or("-").replace('\n', " ")
        );
        (
            line,
            json!({"name": name, "value": value, "origin": origin}),
        )
    });
    listed("settings", rows)
}

/// The providers; the chosen one has a mark. Those that are not set up share the last line.
fn providers(settings: &Settings, chosen: Option<&Chosen>) -> Section {
    let (mut lines, mut values, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for provider in &settings.providers {
        let name = &provider.name;
        let chosen = chosen.is_some_and(|chosen| chosen.provider == *name);
        let (mark, key, api) = (
            if chosen { '*' } else { ' ' },
            key(provider),
            provider.api.name,
        );
        let address = provider
            .address()
            .map_or_else(|error| error.message, ToString::to_string);
        let model = provider.model.as_ref().map(|model| &*model.text);
        match chosen || provider.is_set_up() {
            true => {
                let model = model.unwrap_or(FIRST_LISTED);
                lines.push(format!(
                    "{mark} {name:<11}  {key}; {api} at {address}; {model}"
                ));
            }
            false => others.push(name.as_str()),
        }
        values.push(json!({
            "name": name, "api": api, "address": address, "key": key, "model": model, "chosen": chosen,
        }));
    }
    if !others.is_empty() {
        lines.push(format!("  not set up   {}", others.join(", ")));
    }
    Section {
        lines,
        fields: vec![("providers", Value::Array(values))],
    }
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

/// The tool servers, including those of a shared file; if that cannot be read, one line says so. The arguments of a
/// program and the query of an address are left out, because they may be secret.
fn tools(settings: &Settings) -> Section {
    let unreadable = |error: Error| {
        vec![Configured {
            name: "mcp".to_owned(),
            server: Err(error.message),
        }]
    };
    let servers = settings.tool_servers().unwrap_or_else(unreadable);
    let rows = servers.into_iter().map(|Configured { name, server }| {
        let (what, program, url, error) = match server.map(|server| server.place) {
            Ok(Place::Local(program)) => {
                let program = program.command.into_iter().next().unwrap_or_default();
                (format!("by {program}"), Some(program), None, None)
            }
            Ok(Place::Remote(server)) => match &server.key {
                KeyPlace::Variable(key) if settings.environment.get(key).is_none() => {
                    let error = format!("{key} is not set");
                    (
                        format!("at {}; {error}", server.url),
                        None,
                        Some(server.url.to_string()),
                        Some(error),
                    )
                }
                _ => (
                    format!("at {}", server.url),
                    None,
                    Some(server.url.to_string()),
                    None,
                ),
            },
            Ok(Place::Commands(commands)) => {
                let names: Vec<&str> = commands
                    .iter()
                    .map(|command| command.name.as_str())
                    .collect();
                (format!("commands {}", names.join(", ")), None, None, None)
            }
            Err(error) => (error.clone(), None, None, Some(error)),
        };
        let line = format!("  tools {name:<5}  {what}");
        (
            line,
            json!({"name": name, "program": program, "url": url, "error": error}),
        )
    });
    listed("tools", rows)
}

/// The names of the roles.
fn roles(settings: &Settings) -> Section {
    let names = settings.role_names();
    let lines = if names.is_empty() {
        Vec::new()
    } else {
        vec![format!("  roles        {}", names.join(", "))]
    };
    Section {
        lines,
        fields: vec![("roles", json!(names))],
    }
}

/// A section with a row for each of several things.
fn listed(name: &'static str, rows: impl Iterator<Item = (String, Value)>) -> Section {
    let (lines, values) = rows.unzip();
    Section {
        lines,
        fields: vec![(name, Value::Array(values))],
    }
}

/// The conversation, its own system prompt, and the tools that it uses again.
fn conversation(kept: Option<Kept>) -> Section {
    let (lines, fields) = match kept {
        None => (vec!["there is no conversation".to_owned()], Value::Null),
        Some(Kept {
            path,
            content: Err(error),
        }) => {
            let fields = json!({
                "path": path, "error": error, "provider": null, "model": null, "updated": null, "messages": 0,
                "system": null, "tools": [],
            });
            (vec![format!("{path}: {error}")], fields)
        }
        Some(Kept {
            path,
            content: Ok(conversation),
        }) => {
            let messages = conversation.message_count();
            let Conversation {
                provider,
                model,
                updated,
                system,
                tools,
                ..
            } = conversation;
            let mut lines = vec![format!(
                "{path}: {messages} messages, with {provider}/{model}, updated {updated}"
            )];
            lines.extend(
                system
                    .as_ref()
                    .map(|system| format!("  its system prompt: {}", system.replace('\n', " "))),
            );
            if !tools.is_empty() {
                lines.push(format!("  its tools: {}", tools.join(", ")));
            }
            let fields = json!({
                "path": path, "error": null, "provider": provider, "model": model, "updated": updated,
                "messages": messages, "system": system, "tools": tools,
            });
            (lines, fields)
        }
    };
    Section {
        lines,
        fields: vec![("conversation", fields)],
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
