//! `q --status`: version, paths, settings with their origins, providers, tools, roles, and the conversation.

use std::io::{self, IsTerminal};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::answers::CacheSize;
use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::flags::Arguments;
use crate::output::{DisplayOptions, print, print_texts};
use crate::programs::ProgramFault;
use crate::server::discover;
use crate::server::whom::{self, Claim, Model};
use crate::session::Conversation;
use crate::session::directory::NO_HOME;
use crate::session::store::{Handle, Purpose};
use crate::settings::{
    Environment, Key, NO_PLACE, Provider, Settings, misspelt_variables, not_set,
};
use crate::text::one_line::without_breaks;
use crate::tools::{faults, startup};

/// Why a provider or a model is that of the conversation.
const OF_CONVERSATION: &str = "the conversation is with it";

/// In place of a model that only the server knows.
const FIRST_LISTED: &str = "the first on its list";

/// The conversation of this run, with its place. `None`: there is none.
type ConversationLookup = Result<(Handle, Option<Conversation>), Error>;

/// Prints the status. Wrong settings are no error here: it says what is wrong with them. A conversation that cannot be shown is an
/// error, as in the other actions, once all the rest is printed.
pub fn print_status(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let (settings, error) = context.load_settings_leniently(arguments);
    let error = error.map(|error| error.message);
    let found = find_conversation(context);
    let asked = match error {
        None => AskedModel::new(&settings, claim_of(&found)),
        Some(_) => Err(Error::settings("the configuration is wrong")),
    };
    let asked = asked.unwrap_or_else(|reason| AskedModel {
        why: reason.message,
        ..AskedModel::default()
    });
    let mut report = Report::new(&asked, error.as_deref(), &settings, context);
    let is_usable = report.add_sessions(context);
    report.add_answers(context, &settings);
    report.add_settings(&settings, context);
    report.add_providers(&settings, &asked);
    report.add_names(&settings, context);
    let is_named = context
        .conversation()
        .is_ok_and(|which| !which.is_current());
    // Where the directory cannot be used, the report says it, and nothing else was wanted from there.
    let fault = fault_of(&found).filter(|_| is_usable || is_named);
    let is_on_terminal = io::stdout().is_terminal() && io::stderr().is_terminal();
    report.add_conversation(found, fault.is_some() && is_on_terminal);
    report.print(arguments.json, context, &settings)?;
    fault.map_or(Ok(()), Err)
}

/// Returns what the conversation has to say about the model. A question without `-f` begins a conversation, so what the current one
/// keeps does not count.
fn claim_of(found: &ConversationLookup) -> Claim<'_> {
    match found {
        Ok((handle, Some(conversation))) if !handle.which.is_current() => {
            Claim::Keeps(conversation)
        }
        _ => Claim::None,
    }
}

/// The provider and the model that a question would go to.
#[derive(Debug, Default, Serialize)]
struct AskedModel {
    /// `None`: there is no provider to ask.
    provider: Option<String>,
    /// `None`: the first that the server lists.
    model: Option<String>,
    /// Why this provider, or why none.
    why: String,
    /// Why this model; `None`: it is the provider's default, or the first that the server lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_why: Option<String>,
    /// Where its server has been found, if it was looked for. It may be at either of two addresses.
    #[serde(skip)]
    address: Option<String>,
}

impl AskedModel {
    /// Says who would be asked, or why nobody can be. A conversation that was chosen by its name has a claim.
    fn new(settings: &Settings, claim: Claim) -> Result<AskedModel, Error> {
        let target = discover::find_server(settings, claim)?;
        let address = target.known_address().ok().map(ToString::to_string);
        let choice = target.choice;
        let name = &choice.provider.name;
        let key = key_summary(&choice.provider.key, &settings.environment);
        let why = match (claim, &settings.provider) {
            (Claim::Keeps(_), _) if settings.arguments.provider.is_none() => {
                OF_CONVERSATION.to_owned()
            }
            (_, Some(named)) => named.origin.to_string(),
            (_, None) => format!("the first available; key: {key}"),
        };
        let named = whom::named_model(&choice.provider, settings);
        let model_why = match choice.model {
            Model::Named(_) => named.map(|named| named.origin.to_string()),
            Model::OfConversation(_) => Some(OF_CONVERSATION.to_owned()),
            Model::Default(_) | Model::First | Model::Listed(_) => None,
        };
        Ok(AskedModel {
            provider: Some(name.clone()),
            model: choice.model.name().map(str::to_owned),
            why,
            model_why,
            address,
        })
    }

    /// Says who would be asked and why, or why nobody can be.
    fn summary(&self) -> String {
        let why = &self.why;
        let Some(provider) = &self.provider else {
            return format!("no provider: {why}");
        };
        let model = self.model.as_deref().unwrap_or(FIRST_LISTED);
        match &self.model_why {
            Some(model_why) if model_why != why => {
                format!("provider {provider} ({why}), model {model} ({model_why})")
            }
            _ => format!("provider {provider}, model {model} ({why})"),
        }
    }

    /// Returns the address at which a provider is asked, or why it has none.
    fn address_of(&self, provider: &Provider) -> String {
        let known = match provider.address() {
            Ok(address) => address.to_string(),
            Err(error) => error.message,
        };
        let is_asked = self.provider.as_ref() == Some(&provider.name);
        self.address.clone().filter(|_| is_asked).unwrap_or(known)
    }
}

/// Everything that `--status` prints, as JSON and as lines for people.
struct Report {
    json: Value,
    text: String,
}

impl Report {
    /// Returns what would be asked, the version, and the file of settings. If these are wrong, the defaults follow.
    fn new(
        asked: &AskedModel,
        error: Option<&str>,
        settings: &Settings,
        context: &Context,
    ) -> Report {
        let version = env!("CARGO_PKG_VERSION");
        let file = context.configuration.as_ref();
        let file = file.map(|path| path.display().to_string());
        let missing = format!("{NO_HOME}; {NO_PLACE}");
        let shown = file.as_ref().unwrap_or(&missing);
        let json = json!({
            "asks": asked,
            "version": version,
            "config": file,
            "error": error,
            "sessions": null,
            "kept": null,
            "bytes": null,
            "sessions_error": null,
            "answers": null,
        });
        let mut report = Report {
            json,
            text: String::new(),
        };
        report.line(&asked.summary());
        report.line("");
        report.line(&format!("q {version}"));
        report.line("");
        report.line(&format!("configuration  {shown}"));
        if let Some(obstacle) = &settings.obstacle {
            report.line(&format!("  it {obstacle}"));
        }
        if let Some(error) = error {
            report.line(&format!("  wrong: {error}"));
            report.line("  q asks nothing until this is fixed; these are the settings without it:");
        }
        report
    }

    fn print(self, json: bool, context: &Context, settings: &Settings) -> Result<(), Error> {
        let terminal = context.notes.terminal();
        if json {
            return print(&self.json.to_string(), terminal);
        }
        let plain = DisplayOptions {
            styles: false,
            ..context.display_options(&settings.values)
        };
        print_texts(&[(self.text, plain)], terminal)
    }

    /// Adds one line, whatever a file, a variable or a server has put in it.
    fn line(&mut self, text: &str) {
        self.text += &without_breaks(text);
        self.text.push('\n');
    }

    /// Adds the directory of conversations, or why it cannot be used. Returns whether it can be.
    fn add_sessions(&mut self, context: &Context) -> bool {
        if let Err(obstacle) = self.add_directory(context) {
            let advice = obstacle.advice.as_ref();
            let advice = advice.map_or(String::new(), |advice| format!("; {advice}"));
            self.line(&format!("conversations  {obstacle}{advice}"));
            self.json["sessions_error"] = obstacle.message.as_str().into();
            return false;
        }
        let directory = context.directory();
        directory.is_ok_and(|directory| directory.check().is_ok())
    }

    /// Adds the directory of conversations, and how many files it has, with backups.
    fn add_directory(&mut self, context: &Context) -> Result<(), Error> {
        let directory = context.directory()?;
        let path = directory.sessions.display().to_string();
        self.json["sessions"] = path.as_str().into();
        let files = directory.files(true).map_err(Error::file)?;
        let count = files.len();
        let bytes: u64 = files.iter().map(|file| file.bytes).sum();
        let size = bytes.div_ceil(1_000);
        self.line(&format!("conversations  {path} ({count}, {size} kB)"));
        self.json["kept"] = count.into();
        self.json["bytes"] = bytes.into();
        Ok(())
    }

    fn add_answers(&mut self, context: &Context, settings: &Settings) {
        if let Some(answers) = context.answers(&settings.values) {
            let path = answers.directory.display().to_string();
            let CacheSize { files, bytes } = answers.size();
            let size = bytes.div_ceil(1_000);
            self.line(&format!("cached answers {path} ({files}, {size} kB)"));
            self.json["answers"] = json!({"path": path, "kept": files, "bytes": bytes});
        }
    }

    /// Adds the settings, and where each comes from.
    fn add_settings(&mut self, settings: &Settings, context: &Context) {
        self.line("");
        let mut rows = Vec::new();
        for setting in settings.rows() {
            let name = setting.row.key;
            let sourced = setting.effective();
            let value = sourced.map(|sourced| &sourced.text);
            let origin = sourced.map_or("unset".to_owned(), |sourced| sourced.origin.to_string());
            let shown = value.map_or("-", String::as_str);
            self.line(&format!("{name:<13}  {shown}  ({origin})"));
            rows.push(json!({"name": name, "value": value, "origin": origin}));
        }
        for note in misspelt_variables(&context.environment) {
            self.line(&format!("  {note}"));
        }
        self.json["settings"] = rows.into();
    }

    /// Adds a line for each provider that is set up; the chosen one has a mark. The others share the last line.
    fn add_providers(&mut self, settings: &Settings, asked: &AskedModel) {
        self.line("");
        let mut rows = Vec::new();
        let mut others = Vec::new();
        for provider in &settings.providers {
            let name = &provider.name;
            let api = provider.api.name;
            let address = asked.address_of(provider);
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

    /// Adds the tool servers, including those of a shared file, the roles, and the tools that cannot be used. How a server is
    /// reached is left out, because that may be secret.
    fn add_names(&mut self, settings: &Settings, context: &Context) {
        let mut tools = Vec::new();
        let mut faults = Vec::new();
        let mut confined = Vec::new();
        match settings.all_tool_servers() {
            Ok(servers) => {
                faults = faults::faults_of_sections(&servers, &settings.environment);
                confined = startup::confined_tools(&servers, &settings.environment);
                tools.extend(servers.into_iter().map(|server| server.name));
            }
            Err(error) => tools.push(error.message),
        }
        if !confined.is_empty()
            && let Some(reason) = context.scratch_places().obstacle()
        {
            let fault = Error::settings(faults::without_scratch(&reason));
            faults.push(fault.advise(faults::SCRATCH_ADVICE));
        }
        for (what, names) in [("tools", tools), ("roles", settings.role_names())] {
            if !names.is_empty() {
                self.line(&format!("  {what}        {}", names.join(", ")));
            }
            self.json[what] = names.into();
        }
        let mut held = Map::new();
        for (name, bounds) in confined {
            self.line(&format!("  {name} is {}", bounds.full_summary()));
            held.insert(name, bounds.to_json());
        }
        if !held.is_empty() {
            self.json["confined"] = held.into();
        }
        let mut rows = Vec::new();
        for Error {
            message, advice, ..
        } in faults
        {
            self.line(&format!("  wrong: {message}"));
            if let Some(advice) = advice {
                self.line(&format!("    {advice}"));
            }
            rows.push(message);
        }
        self.json["tool_faults"] = rows.into();
    }

    /// Adds the conversation of this run with its own system prompt and the tools that it uses again, or why it cannot be used.
    /// `error_follows` says that its error is shown at once after the report, so only JSON has it, too.
    fn add_conversation(&mut self, found: ConversationLookup, error_follows: bool) {
        if !error_follows {
            self.line("");
        }
        let mut conversation = Value::Null;
        match found {
            Ok((handle, Some(found))) => {
                let path = handle.path.display().to_string();
                let messages = found.message_count();
                let (provider, model, updated) = (found.provider, found.model, found.updated);
                let of = format!("{provider}/{model}");
                self.line(&format!(
                    "{path}: {messages} messages, with {of}, updated {updated}"
                ));
                if let Some(system) = &found.system {
                    self.line(&format!("  its system prompt: {system}"));
                }
                if !found.tools.is_empty() {
                    let tools = found.tools.join(", ");
                    self.line(&format!("  its tools: {tools}"));
                }
                conversation = json!({
                    "path": path,
                    "error": null,
                    "provider": provider,
                    "model": model,
                    "updated": updated,
                    "messages": messages,
                    "system": found.system,
                    "tools": found.tools,
                });
            }
            Ok((handle, None)) if handle.which.is_current() => {
                self.line("there is no conversation");
            }
            Ok((handle, None)) => {
                let message = handle.missing().message;
                if !error_follows {
                    self.line(&message);
                }
                conversation = json!({"error": message});
            }
            Err(error) => {
                if !error_follows {
                    self.line(&error.message);
                }
                conversation = json!({"error": error.message});
            }
        }
        self.json["conversation"] = conversation;
    }
}

/// Returns the conversation of this run.
fn find_conversation(context: &Context) -> ConversationLookup {
    let handle = context.find(Purpose::Look)?;
    let conversation = handle.open()?;
    Ok((handle, conversation))
}

/// Returns the error for a conversation that is not there though it was named, or that cannot be read.
fn fault_of(found: &ConversationLookup) -> Option<Error> {
    let error = match found {
        Ok((handle, None)) if !handle.which.is_current() => handle.missing(),
        Ok(_) => return None,
        // It is wrong settings that name none.
        Err(error) if error.kind == ErrorKind::Settings => return None,
        Err(error) => error.clone(),
    };
    // The report has its message, also in JSON.
    let kind = ErrorKind::PartMissing;
    Some(Error { kind, ..error })
}

/// Says whether the key is set, and never shows the key itself.
fn key_summary(key: &Key, environment: &Environment) -> String {
    match key {
        Key::None => "none needed".to_owned(),
        Key::Command(command) => match startup::fault_of_key_program(key, environment) {
            Some((program, ProgramFault::Missing)) => {
                format!("by {program} (there is no such program)")
            }
            Some((program, fault)) => format!("by {program} ({})", fault.reason(program)),
            None => format!("by {}", command[0]),
        },
        Key::Variables(names) => match key.find(environment) {
            Some((name, _)) => format!("{name} is set"),
            None => not_set(names),
        },
        Key::Optional(_) => match key.find(environment) {
            Some((name, _)) => format!("{name} is set"),
            None => "none needed".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn the_asked_provider_has_the_address_where_it_was_found() {
        let variables = [("LLAMACPP_BASE_URL", "http://h:1/v1")];
        let settings = Settings::defaults(&Environment::new(&variables));
        // The provider that is asked, where it was found, a provider, and its address.
        let table = r##"
            llamacpp | http://h:2/v1 | llamacpp | http://h:2/v1
            llamacpp | - | llamacpp | http://h:1/v1
            ollama | http://h:2/v1 | llamacpp | http://h:1/v1
            - | - | llamacpp | http://h:1/v1
        "##;
        for [asked, found, name, address] in rows(table) {
            let asked = AskedModel {
                provider: Some(asked.to_owned()),
                address: (!found.is_empty()).then(|| found.to_owned()),
                ..AskedModel::default()
            };
            let provider = settings.provider_named(name).expect(name);
            assert_eq!(asked.address_of(provider), address, "{asked:?}");
        }
    }

    #[test]
    fn a_key_is_described_without_being_shown() {
        let environment = Environment::new(&[("A_KEY", "sk-secret"), ("PATH", "/nonexistent")]);
        let variables = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        for (key, expected) in [
            (Key::None, "none needed"),
            (Key::Variables(variables(&["A_KEY"])), "A_KEY is set"),
            (Key::Variables(variables(&["B", "A_KEY"])), "A_KEY is set"),
            (Key::Variables(variables(&["B"])), "B is not set"),
            (
                Key::Variables(variables(&["B", "C"])),
                "neither B nor C is set",
            ),
            (Key::Optional(variables(&["A_KEY"])), "A_KEY is set"),
            (Key::Optional(variables(&["B"])), "none needed"),
            (Key::Command(variables(&["/bin/sh", "x"])), "by /bin/sh"),
            (
                Key::Command(variables(&["no-such"])),
                "by no-such (there is no such program)",
            ),
        ] {
            assert_eq!(key_summary(&key, &environment), expected);
        }
    }
}
