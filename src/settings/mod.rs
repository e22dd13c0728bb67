//! Settings: built-in defaults, then the configuration file, then the environment, then options. They decide which
//! provider and model are asked.

mod commands;
mod duration;
mod file;
mod key;
mod mcp;
mod origin;
pub mod pattern;
mod program;
mod providers;
mod roles;
pub mod table;
mod text;
mod tools;
mod value;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use commands::Command;
pub use key::{Key, check_key};
pub use origin::{Environment, Origin, Sourced};
pub use program::LocalProgram;
pub use providers::Provider;
pub use table::{Cached, History, Values};
pub use text::{MAX_TEXT, read_text};
pub use tools::{NO_TOOLS, READS, RemoteServer, ServerKind, ToolServer};

use crate::error::Error;
use crate::flags::{Arguments, Mode};
use crate::provider::request::Field;
use crate::text::json;
use crate::text::nearest::did_you_mean;

/// The settings after all levels.
#[derive(Debug)]
pub struct Settings {
    /// The arguments of the command line, with the options of their role.
    pub typed: Arguments,
    pub values: Values,
    /// The providers of the file, in its order, then those of the table.
    pub providers: Vec<Arc<Provider>>,
    /// In the order of the file.
    pub tools: Vec<ToolServer>,
    /// The name of a provider, if one is set.
    pub provider: Option<Sourced>,
    /// The model, if one is set for that provider.
    pub model: Option<Sourced>,
    /// Has the variables that are not settings, too: proxies, certificates, keys, the shell.
    pub environment: Environment,
    /// The effort was typed. A role did not set it.
    pub effort_is_typed: bool,
    /// Fields of the request that options set.
    pub options: Vec<Field>,
    pub file: PathBuf,
    /// In the order of the file.
    roles: Vec<file::RoleSection>,
    /// By key.
    levels: BTreeMap<&'static str, Levels>,
}

/// What each level sets, from the lowest to the highest: the defaults, the file, the environment and the options.
type Levels = [Option<Sourced>; 4];

impl Settings {
    /// Reads all levels and checks every value.
    pub fn load(
        arguments: &Arguments,
        environment: &Environment,
        file: &Path,
    ) -> Result<Settings, Error> {
        let written = read_file(file)?;
        let typed = roles::apply(arguments, &written.roles, file)?;
        let mut values = Values::default();
        let mut levels = BTreeMap::new();
        for row in table::SETTINGS {
            let set = levels_of(row, &typed, environment, &written);
            for Sourced { text, origin } in set.iter().flatten() {
                row.set(&mut values, text)
                    .map_err(|reason| origin.wrong(row.key, &reason))?;
            }
            levels.insert(row.key, set);
        }
        let providers = providers::all(written.providers, environment);
        let unnamed =
            first_with_key(&providers, environment).map(|provider| provider.name.as_str());
        if !model_fits(&levels["provider"], &levels["model"], unnamed) {
            levels.remove("model");
        }
        let mut options = Vec::new();
        for text in &typed.options {
            let field = Field::parse(text);
            options.push(field.map_err(|reason| Error::usage(format!("--option: {reason}")))?);
        }

        let settings = Settings {
            options,
            effort_is_typed: arguments.effort.is_some(),
            typed,
            values,
            providers,
            tools: written.tools,
            provider: highest(&levels, "provider").cloned(),
            model: highest(&levels, "model").cloned(),
            environment: environment.clone(),
            file: file.to_owned(),
            roles: written.roles,
            levels,
        };
        settings.check_providers()?;
        Ok(settings)
    }

    /// Refuses the name of a provider that is not configured, of a role even if no question uses it.
    fn check_providers(&self) -> Result<(), Error> {
        for role in &self.roles {
            if let Some(name) = &role.options.provider {
                self.check_provider(name, |reason| role.wrong("provider", reason))?;
            }
        }
        // As with any setting, a level must be right even where another one decides.
        for Sourced { text, origin } in self.levels["provider"].iter().flatten() {
            self.check_provider(text, |reason| origin.wrong("provider", reason))?;
        }
        Ok(())
    }

    fn check_provider(&self, name: &str, wrong: impl Fn(&str) -> Error) -> Result<(), Error> {
        if self.provider_named(name).is_some() {
            return Ok(());
        }
        let meant = did_you_mean(name, self.providers.iter().map(|provider| &provider.name));
        let names = self.provider_names();
        let file = self.file.display();
        let error = wrong(&format!("there is no provider “{name}”"));
        Err(error.advise(format!(
            "{meant}-p chooses one of {names}\na section [providers.NAME] in {file} adds one"
        )))
    }

    /// The values for actions, which must work whatever is wrong with the settings. A file with an error counts as
    /// missing; if that does not help, `Q_…` variables count as unset.
    pub fn for_actions(environment: &Environment, file: &Path) -> Values {
        let load = |path: &Path| Settings::load(&Arguments::default(), environment, path);
        let settings = load(file)
            .or_else(|_| load(Path::new("")))
            .or_else(|_| Settings::defaults(environment));
        settings.map(|settings| settings.values).unwrap_or_default()
    }

    /// The default settings, with the environment's providers.
    pub fn defaults(environment: &Environment) -> Result<Settings, Error> {
        Settings::load(
            &Arguments::default(),
            &environment.without_settings(),
            Path::new(""),
        )
    }

    /// Whether the exchange of this run is saved.
    pub fn saves(&self) -> bool {
        self.values.save && !self.typed.dry_run
    }

    /// How this question uses known answers.
    pub fn cached(&self) -> Cached {
        if self.wants_results() {
            return Cached::Off;
        }
        self.values.cached
    }

    /// Whether tools or searches are asked for. No request shows what they will return, so their answers are never known.
    pub fn wants_results(&self) -> bool {
        let mut tools = self.typed.tools.iter();
        self.typed.web || tools.any(|name| name.trim() != NO_TOOLS)
    }

    /// Whether the answer of this run is kept as a known one.
    pub fn keeps_answer(&self) -> bool {
        let may_keep = self.values.save || self.typed.cached;
        may_keep && self.cached() != Cached::Off
    }

    /// Every setting by key, with its value and where it comes from; `None` if it is unset.
    pub fn shown(&self) -> impl Iterator<Item = (&'static str, Option<&Sourced>)> {
        let rows = table::SETTINGS.iter();
        rows.map(|row| (row.key, highest(&self.levels, row.key)))
    }

    /// All tool servers: those of the configuration, then others from the file of the setting `mcp`. An error in one
    /// of them matters only if it is used.
    pub fn tool_servers(&self) -> Result<Vec<ToolServer>, Error> {
        let mut servers = self.tools.clone();
        let Some(path) = &self.values.mcp else {
            return Ok(servers);
        };
        let wrong = |reason| Error::settings(format!("mcp: {reason}"));
        let text = read_text(Path::new(path), text::MAX_SHARED).map_err(wrong)?;
        let shared = mcp::read(&text, &self.environment)
            .map_err(|reason| wrong(format!("{path}: {reason}")))?;
        for server in shared {
            let is_configured = self.tools.iter().any(|own| own.name == server.name);
            if !is_configured {
                servers.push(server);
            }
        }
        Ok(servers)
    }

    /// The error for the name of a tool server, which may come from the role in use.
    pub fn wrong_server(&self, name: &str, reason: &str) -> Error {
        let mut roles = self.roles.iter();
        let in_use = roles.find(|role| Some(&role.name) == self.typed.role.as_ref());
        let is_server = |tool: &String| tool.split("__").next() == Some(name);
        match in_use {
            Some(role) if role.options.tools.iter().any(is_server) => role.wrong("tools", reason),
            _ => Error::settings(reason),
        }
    }

    /// The names of all roles.
    pub fn role_names(&self) -> Vec<String> {
        roles::names(&self.roles, &self.file)
    }

    /// The provider with this name, if it is configured.
    pub fn provider_named(&self, name: &str) -> Option<&Arc<Provider>> {
        self.providers.iter().find(|provider| provider.name == name)
    }

    /// The names of all providers, in their order.
    pub fn provider_names(&self) -> String {
        let names = self.providers.iter().map(|provider| &*provider.name);
        Vec::from_iter(names).join(", ")
    }

    /// The named provider, else the first with its key set.
    pub fn chosen_provider(&self) -> Option<&Arc<Provider>> {
        match &self.provider {
            Some(named) => self.provider_named(&named.text),
            // Which keys are set must not decide which known answer is looked for.
            None if self.typed.mode == Mode::Ask && self.cached() == Cached::Only => None,
            None => first_with_key(&self.providers, &self.environment),
        }
    }
}

fn highest<'a>(levels: &'a BTreeMap<&str, Levels>, key: &str) -> Option<&'a Sourced> {
    levels.get(key)?.iter().flatten().last()
}

fn first_with_key<'a>(
    providers: &'a [Arc<Provider>],
    environment: &Environment,
) -> Option<&'a Arc<Provider>> {
    providers
        .iter()
        .find(|provider| provider.has_key(environment))
}

fn read_file(path: &Path) -> Result<file::File, Error> {
    // If the home is not a folder, there is no configuration either.
    if let Err(error) = path.metadata()
        && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
    {
        return Ok(file::File::default());
    }
    let text = read_text(path, MAX_TEXT).map_err(Error::settings)?;
    // The values of TOML look like those of JSON.
    json::check(&text, json::MAX_WEIGHT)
        .map_err(|error| Error::settings(format!("cannot read {}: {error}", path.display())))?;
    file::read(&text, path)
}

fn levels_of(
    row: &table::SettingRow,
    arguments: &Arguments,
    environment: &Environment,
    written: &file::File,
) -> Levels {
    let has_default = !row.default.is_empty();
    let default = has_default.then(|| Sourced::new(row.default, Origin::Default));
    let in_file = written.settings.get(row.key).cloned();
    let variable = environment.get(&row.variable());
    let variable = variable.map(|text| Sourced::new(text, Origin::Variable(row.variable())));
    let before = variable.as_ref().or(in_file.as_ref());
    let is_strictest = row.key == "cached" && before.is_some_and(|set| set.text == "only");
    let typed = table::typed(row.key, arguments).filter(|_| !is_strictest);
    let option = typed.map(|(name, text)| Sourced::new(&text, Origin::Option(name)));
    [default, in_file, variable, option]
}

/// Whether a model is set, and for the provider that is named. A model belongs to the provider that it was set for, so it
/// does not count if a higher level names another one. Until a level names a provider, it is `unnamed`.
fn model_fits(providers: &Levels, models: &Levels, unnamed: Option<&str>) -> bool {
    let Some(of_model) = models.iter().rposition(Option::is_some) else {
        return false;
    };
    let mut own = unnamed;
    for (level, provider) in providers.iter().enumerate() {
        let Some(Sourced { text, .. }) = provider else {
            continue;
        };
        if level > of_model && own.is_some_and(|own| own != text) {
            return false;
        }
        own = Some(text);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_keeps_what_the_settings_say_as_far_as_they_can_be_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config.toml");
        for (file, keep, days, wraps) in [
            ("wrap = false", "3d", 3, false),
            ("keep = ", "3d", 3, true),
            ("wrap = false", "x", 30, true),
        ] {
            fs_err::write(&path, file).expect("a file");
            let environment = Environment::new(&[("Q_KEEP", keep)]);
            let values = Settings::for_actions(&environment, &path);
            let keep = values.rules.keep.expect("a time");
            let found = (keep.as_secs(), values.wrap);
            assert_eq!(found, (days * 24 * 60 * 60, wraps), "{file}");
        }
    }
}
