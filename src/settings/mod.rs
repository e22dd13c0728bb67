//! Settings: built-in defaults, then the configuration file, then the environment, then options; and the provider and
//! model that result.

mod commands;
mod duration;
mod file;
mod mcp;
mod origin;
pub(crate) mod pattern;
mod program;
mod providers;
pub(crate) mod table;
mod tools;
mod value;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use commands::Command;
pub(crate) use origin::{Environment, Given, Origin};
pub(crate) use program::LocalProgram;
pub(crate) use providers::{Key, Provider, usable_key};
pub(crate) use table::{History, Values};
pub(crate) use tools::{Configured, KeyPlace, NO_TOOLS, Place, RemoteServer, ToolServer};

use crate::error::Error;
use crate::flags::Arguments;
use crate::provider::request::Field;

/// The settings after all levels.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) values: Values,
    /// Those of the file, in its order, then those of the table.
    pub(crate) providers: Vec<Arc<Provider>>,
    /// In the order of the file.
    pub(crate) tools: Vec<ToolServer>,
    /// The named provider, if any.
    pub(crate) provider: Option<Given>,
    /// The named model that goes with that provider, if any.
    pub(crate) model: Option<Given>,
    /// For the client: proxies and certificates; for the system prompt: the shell.
    pub(crate) environment: Environment,
    /// Fields of the request that options set.
    pub(crate) options: Vec<Field>,
    pub(crate) file: PathBuf,
    /// In the order of the table.
    given: Vec<Option<Given>>,
}

impl Settings {
    /// Reads all levels and checks every value.
    ///
    /// # Errors
    /// `Settings` or `Usage`: what is wrong, and where.
    pub(crate) fn load(arguments: &Arguments, environment: &Environment, file: &Path) -> Result<Settings, Error> {
        let written = read_file(file)?;
        let mut values = Values::default();
        let mut levels = Levels::default();
        let mut given = Vec::with_capacity(table::SETTINGS.len());
        for row in table::SETTINGS {
            let mut effective = None;
            let mut set = |text: &str, origin: Origin| {
                row.set(&mut values, text).map_err(|reason| wrong(&origin, row.key, &reason))?;
                let value = Given { text: text.to_owned(), origin };
                levels.note(row.key, &value);
                effective = Some(value);
                Ok(())
            };
            if let Some(default) = row.default {
                set(default, Origin::Default)?;
            }
            if let Some((_, text, line)) = written.settings.iter().find(|(key, ..)| *key == row.key) {
                set(text, Origin::File { path: file.to_owned(), line: *line })?;
            }
            if let Some(text) = environment.get(row.variable) {
                set(text, Origin::Variable(row.variable.to_owned()))?;
            }
            if let Some((option, text)) = option_of(arguments, row.key) {
                set(&text, Origin::Option(option))?;
            }
            given.push(effective);
        }
        let providers = providers::all(written.providers, environment, file);
        let providers: Vec<Arc<Provider>> = providers.into_iter().map(Arc::new).collect();
        let (provider, model) = levels.choose(&providers);
        if let Some(provider) = &provider {
            known(&providers, provider, file)?;
        }
        let environment = environment.clone();
        let options = arguments.options.iter().map(|option| Field::parse(option)).collect::<Result<_, _>>();
        let options = options.map_err(|reason| Error::usage(format!("--option: {reason}")))?;
        let tools = written.tools;
        Ok(Settings { values, providers, tools, provider, model, environment, options, file: file.to_owned(), given })
    }

    /// The values for actions, which must work with broken settings. A broken file counts as missing; if that is not enough,
    /// `Q_…` variables count as unset.
    pub(crate) fn of_actions(environment: &Environment, file: &Path) -> Values {
        let with = |file: &Path| Settings::load(&Arguments::default(), environment, file);
        let settings = with(file).or_else(|_| with(Path::new(""))).or_else(|_| Settings::defaults(environment));
        settings.map(|settings| settings.values).unwrap_or_default()
    }

    /// The default settings, with the environment's providers.
    ///
    /// # Errors
    /// None that a user could cause.
    pub(crate) fn defaults(environment: &Environment) -> Result<Settings, Error> {
        Settings::load(&Arguments::default(), &environment.without_settings(), Path::new(""))
    }

    /// Every setting by name, with its value and where it comes from; `None` if it is unset.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&'static str, Option<&Given>)> {
        table::SETTINGS.iter().zip(&self.given).map(|(row, given)| {
            let given = match row.key {
                // A model that was set for another provider does not count.
                "model" => self.model.as_ref(),
                _ => given.as_ref(),
            };
            (row.key, given)
        })
    }

    /// All tool servers: those of the configuration, then others from the file of the setting `mcp`. An error in one
    /// of them matters only if it is used.
    ///
    /// # Errors
    /// `Settings`: that file cannot be read.
    pub(crate) fn tool_servers(&self) -> Result<Vec<Configured>, Error> {
        let own = self.tools.iter();
        let mut servers: Vec<Configured> =
            own.map(|server| Configured { name: server.name.clone(), server: Ok(server.clone()) }).collect();
        let Some(path) = &self.values.mcp else { return Ok(servers) };
        let wrong = |reason: String| Error::settings(format!("mcp: {path}: {reason}"));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let more = mcp::read(&text, &self.environment).map_err(wrong)?;
        servers.extend(more.into_iter().filter(|one| !self.tools.iter().any(|server| server.name == one.name)));
        Ok(servers)
    }

    /// The provider with this name, if it is configured.
    pub(crate) fn provider_named(&self, name: &str) -> Option<&Arc<Provider>> {
        self.providers.iter().find(|provider| provider.name == name)
    }

    /// The names of all providers, in their order.
    pub(crate) fn provider_names(&self) -> String {
        joined_names(&self.providers)
    }

    /// The named provider, else the first with its key set.
    pub(crate) fn chosen_provider(&self) -> Option<&Arc<Provider>> {
        match &self.provider {
            Some(named) => self.provider_named(&named.text),
            None => first_with_key(&self.providers),
        }
    }
}

fn first_with_key(providers: &[Arc<Provider>]) -> Option<&Arc<Provider>> {
    providers.iter().find(|provider| provider.has_key())
}

fn joined_names(providers: &[Arc<Provider>]) -> String {
    providers.iter().map(|provider| provider.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn known(providers: &[Arc<Provider>], named: &Given, file: &Path) -> Result<(), Error> {
    if providers.iter().any(|provider| provider.name == named.text) {
        return Ok(());
    }
    Err(Error::settings(format!("there is no provider “{}” ({})", named.text, named.origin)).advise(format!(
        "-p chooses one of {}\na section [providers.NAME] in {} adds one",
        joined_names(providers),
        file.display()
    )))
}

fn read_file(path: &Path) -> Result<file::File, Error> {
    let text = match fs_err::read(path) {
        Ok(bytes) => {
            String::from_utf8(bytes).map_err(|_| Error::settings(format!("{} is not UTF-8", path.display())))?
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(file::File::default()),
        // If the home is not a folder, there is no configuration either.
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Ok(file::File::default()),
        Err(error) => return Err(Error::settings(format!("cannot read the configuration: {error}"))),
    };
    file::read(&text).map_err(|wrong| {
        Error::settings(format!("{}, line {}: {}", path.display(), wrong.line, wrong.message))
            .advise("q --help lists the settings")
    })
}

/// The option that sets a setting, if it was given, and its value.
fn option_of(arguments: &Arguments, key: &str) -> Option<(&'static str, String)> {
    match key {
        "provider" => Some(("--provider", arguments.provider.clone()?)),
        "model" => Some(("--model", arguments.model.clone()?)),
        "system" => Some(("--system", arguments.system.as_ref()?.to_string_lossy().into_owned())),
        "messages" => Some(("--messages", arguments.messages.clone()?)),
        "effort" => Some(("--effort", arguments.effort.clone()?)),
        "save" if arguments.no_save => Some(("--no-save", "false".to_owned())),
        _ => None,
    }
}

fn wrong(origin: &Origin, key: &str, reason: &str) -> Error {
    match origin {
        Origin::Option(name) => Error::usage(format!("{name}: {reason}")),
        Origin::Variable(name) => Error::settings(format!("{name}: {reason}")),
        Origin::File { .. } | Origin::Default => Error::settings(format!("{origin}: {key}: {reason}")),
    }
}

/// What each level says of provider and model, from the lowest to the highest.
#[derive(Default)]
struct Levels {
    provider: Vec<Given>,
    model: Vec<Given>,
}

impl Levels {
    fn note(&mut self, key: &str, given: &Given) {
        match key {
            "provider" => self.provider.push(given.clone()),
            "model" => self.model.push(given.clone()),
            _ => {}
        }
    }

    /// A model goes with the provider that it was set for: a level that names another provider drops the models
    /// of the levels below it.
    fn choose(self, providers: &[Arc<Provider>]) -> (Option<Given>, Option<Given>) {
        let unnamed = first_with_key(providers).map(|provider| provider.name.clone());
        let mut provider: Option<Given> = None;
        let mut model = None;
        for rank in Origin::RANKS {
            if let Some(named) = self.provider.iter().find(|given| given.origin.rank() == rank) {
                let before = provider.as_ref().map(|given| given.text.clone()).or_else(|| unnamed.clone());
                if before.is_some_and(|before| before != named.text) {
                    model = None;
                }
                provider = Some(named.clone());
            }
            if let Some(named) = self.model.iter().find(|given| given.origin.rank() == rank) {
                model = Some(named.clone());
            }
        }
        (provider, model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings from a file's text, variables and arguments.
    fn load(text: &str, variables: &[(&str, &str)], arguments: Arguments) -> Result<Settings, Error> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config.toml");
        fs_err::write(&path, text).expect("a file");
        Settings::load(&arguments, &Environment::of(variables), &path)
    }

    #[test]
    fn later_levels_win() {
        let file = "messages = 4\npairs = 5\nretries = 6\n";
        let arguments = Arguments { messages: Some("8".to_owned()), no_save: true, ..Arguments::default() };
        let settings = load(file, &[("Q_MESSAGES", "7"), ("Q_PAIRS", "9")], arguments).expect("valid settings");
        let values = settings.values;
        assert_eq!((values.messages, values.pairs, values.retries, values.save), (8, 9, 6, false));
        assert_eq!(values.max_history, 400_000);
    }

    #[test]
    fn an_action_keeps_what_the_settings_say_as_far_as_they_can_be_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config.toml");
        for (file, variables, days, wraps) in [
            ("keep = \"2d\"", &[][..], 2, true),
            ("keep = \"2d\"\nwrap = false", &[("Q_KEEP", "3d")], 3, false),
            ("keep = ", &[("Q_KEEP", "3d"), ("Q_WRAP", "false")], 3, false),
            ("keep = ", &[], 30, true),
            ("", &[("Q_KEEP", "3d"), ("Q_PAIRS", "x")], 30, true),
        ] {
            fs_err::write(&path, file).expect("a file");
            let values = Settings::of_actions(&Environment::of(variables), &path);
            let keep = values.keep.expect("a time");
            assert_eq!((keep.as_secs(), values.wrap), (days * 24 * 60 * 60, wraps), "{file} {variables:?}");
        }
    }

    #[test]
    fn a_wrong_value_names_its_place() {
        for (file, variables, option, words) in [
            ("\nmessages = \"x\"", &[][..], None, "config.toml, line 2: messages"),
            ("expire = \"1w\"", &[], None, "config.toml, line 1: expire: “1w”"),
            ("\nhistory = \"chat\"", &[], None, "config.toml, line 2: history: “chat” is not one of prompt, messages"),
            ("", &[("Q_PAIRS", "x")], None, "Q_PAIRS: “x”"),
            ("", &[], Some("x"), "--messages: “x”"),
            ("provider = \"nobody\"", &[], None, "there is no provider “nobody”"),
            ("", &[("Q_PROVIDER", "nobody")], None, "(Q_PROVIDER)"),
        ] {
            let arguments = Arguments { messages: option.map(str::to_owned), ..Arguments::default() };
            let error = load(file, variables, arguments).expect_err(words);
            assert_eq!(error.exit_status(), 2);
            assert!(error.message.contains(words), "{}", error.message);
        }
    }

    #[test]
    fn a_model_goes_with_the_provider_it_was_set_for() {
        let work = "[providers.work]\nbase_url = \"http://h/v1\"\nmodel = \"own\"\n";
        /// File, variables, `-p`, `-m`, and the resulting model.
        type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], Option<&'a str>, Option<&'a str>, Option<&'a str>);
        let table: &[Case] = &[
            ("provider = \"openai\"\nmodel = \"a\"", &[], None, None, Some("a")),
            ("provider = \"openai\"\nmodel = \"a\"", &[], Some("groq"), None, None),
            ("provider = \"openai\"\nmodel = \"a\"", &[], Some("openai"), None, Some("a")),
            ("provider = \"openai\"\nmodel = \"a\"", &[("Q_PROVIDER", "groq")], None, None, None),
            (
                "provider = \"openai\"\nmodel = \"a\"",
                &[("Q_PROVIDER", "groq"), ("Q_MODEL", "b")],
                None,
                None,
                Some("b"),
            ),
            ("provider = \"openai\"\nmodel = \"a\"", &[("Q_MODEL", "b")], Some("groq"), None, None),
            ("provider = \"openai\"\nmodel = \"a\"", &[("Q_MODEL", "b")], Some("groq"), Some("c"), Some("c")),
            ("model = \"a\"", &[("OPENAI_API_KEY", "k")], None, None, Some("a")),
            ("model = \"a\"", &[("OPENAI_API_KEY", "k")], Some("openai"), None, Some("a")),
            ("model = \"a\"", &[("OPENAI_API_KEY", "k")], Some("groq"), None, None),
            ("model = \"a\"", &[], Some("ollama"), None, Some("a")),
        ];
        for (file, variables, provider, model, expected) in table {
            let arguments = Arguments {
                provider: provider.map(str::to_owned),
                model: model.map(str::to_owned),
                ..Arguments::default()
            };
            let settings = load(&format!("{file}\n{work}"), variables, arguments).expect(file);
            let named = settings.model.as_ref().map(|given| given.text.as_str());
            assert_eq!(named, *expected, "{file} {variables:?} {provider:?} {model:?}");
        }
    }

    #[test]
    fn the_first_provider_with_a_key_is_chosen_the_files_first() {
        let file =
            "[providers.zeta]\nbase_url = \"http://z/v1\"\nkey_env = \"ZETA\"\n[providers.groq]\nmodel = \"m\"\n";
        for (variables, expected) in [
            (&[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")][..], Some("anthropic")),
            (&[("GROQ_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")], Some("groq")),
            (&[("GROQ_API_KEY", "k"), ("ZETA", "k")], Some("zeta")),
            (&[("GOOGLE_API_KEY", "k")], Some("gemini")),
            (&[], None),
        ] {
            let settings = load(file, variables, Arguments::default()).expect("valid settings");
            let chosen = settings.chosen_provider().map(|provider| provider.name.as_str());
            assert_eq!(chosen, expected, "{variables:?}");
        }
    }
}
