//! Settings: built-in defaults, then the configuration file, then the environment, then options. They decide which
//! provider and model are asked.

mod commands;
mod duration;
mod file;
mod mcp;
mod origin;
pub(crate) mod pattern;
mod program;
mod providers;
mod roles;
pub(crate) mod table;
mod text;
mod tools;
mod value;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use commands::Command;
pub(crate) use origin::{Environment, Origin, Sourced};
pub(crate) use program::LocalProgram;
pub(crate) use providers::{Key, Provider, usable_key};
pub(crate) use table::{History, Values};
pub(crate) use text::{MAX_TEXT, read_text};
pub(crate) use tools::{Configured, KeyPlace, NO_TOOLS, Place, RemoteServer, ToolServer};

use crate::error::Error;
use crate::flags::Arguments;
use crate::nearest::did_you_mean;
use crate::provider::request::Field;

/// The settings after all levels.
#[derive(Debug)]
pub(crate) struct Settings {
    /// What was typed, with the options of its role before it.
    pub(crate) typed: Arguments,
    pub(crate) values: Values,
    /// The providers of the file, in its order, then those of the table.
    pub(crate) providers: Vec<Arc<Provider>>,
    /// In the order of the file.
    pub(crate) tools: Vec<ToolServer>,
    /// The named provider, if any.
    pub(crate) provider: Option<Sourced>,
    /// The named model that goes with that provider, if any.
    pub(crate) model: Option<Sourced>,
    /// Other code looks up proxies, certificates, keys and the shell here.
    pub(crate) environment: Environment,
    /// The effort comes from the command line, and not from a role.
    pub(crate) effort_is_typed: bool,
    /// Fields of the request that options set.
    pub(crate) options: Vec<Field>,
    pub(crate) file: PathBuf,
    /// In the order of the file.
    roles: Vec<file::RoleSection>,
    /// The settings that are set, by key.
    sourced: BTreeMap<&'static str, Sourced>,
}

impl Settings {
    /// Reads all levels and checks every value.
    ///
    /// # Errors
    /// `Settings` or `Usage`: what is wrong, and where.
    pub(crate) fn load(
        arguments: &Arguments,
        environment: &Environment,
        file: &Path,
    ) -> Result<Settings, Error> {
        let written = read_file(file)?;
        let typed = roles::apply(arguments, &written.roles, file)?;
        let mut values = Values::default();
        let mut levels = BTreeMap::new();
        for row in table::SETTINGS {
            let set = levels_of(row, &typed, environment, &written, file);
            for Sourced { text, origin } in &set {
                row.set(&mut values, text)
                    .map_err(|reason| origin.wrong(row.key, &reason))?;
            }
            levels.insert(row.key, set);
        }
        let providers = providers::all(written.providers, environment, file);
        let providers: Vec<Arc<Provider>> = providers.into_iter().map(Arc::new).collect();
        let unnamed = first_with_key(&providers).map(|provider| provider.name.as_str());
        let model = model_for(&levels["provider"], &levels["model"], unnamed);
        let mut sourced: BTreeMap<_, _> = levels
            .into_iter()
            .filter_map(|(key, mut set)| Some((key, set.pop()?)))
            .collect();
        // A model that was set for another provider does not count.
        sourced.remove("model");
        sourced.extend(model.clone().map(|model| ("model", model)));
        let provider = sourced.get("provider").cloned();
        for role in &written.roles {
            let (origin, key) = (role.origin("provider", file), role.key("provider"));
            role.options
                .provider
                .iter()
                .try_for_each(|name| known(&providers, name, &origin, &key, file))?;
        }
        if let Some(Sourced { text, origin }) = &provider {
            known(&providers, text, origin, "provider", file)?;
        }
        let options = typed
            .options
            .iter()
            .map(|option| Field::parse(option))
            .collect::<Result<_, _>>();
        let options = options.map_err(|reason| Error::usage(format!("--option: {reason}")))?;
        let file::File { tools, roles, .. } = written;
        let effort_is_typed = arguments.effort.is_some();
        let (environment, file) = (environment.clone(), file.to_owned());
        Ok(Settings {
            typed,
            values,
            providers,
            tools,
            provider,
            model,
            environment,
            effort_is_typed,
            options,
            file,
            roles,
            sourced,
        })
    }

    /// The values for actions, which must work whatever is wrong with the settings. A file with an error counts as
    /// missing; if that does not help, `Q_…` variables count as unset.
    pub(crate) fn for_actions(environment: &Environment, file: &Path) -> Values {
        let with = |file: &Path| Settings::load(&Arguments::default(), environment, file);
        let settings = with(file)
            .or_else(|_| with(Path::new("")))
            .or_else(|_| Settings::defaults(environment));
        settings.map(|settings| settings.values).unwrap_or_default()
    }

    /// The default settings, with the environment's providers.
    ///
    /// # Errors
    /// None that a user could cause.
    pub(crate) fn defaults(environment: &Environment) -> Result<Settings, Error> {
        Settings::load(
            &Arguments::default(),
            &environment.without_settings(),
            Path::new(""),
        )
    }

    /// Every setting by key, with its value and where it comes from; `None` if it is unset.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&'static str, Option<&Sourced>)> {
        table::SETTINGS
            .iter()
            .map(|row| (row.key, self.sourced.get(row.key)))
    }

    /// All tool servers: those of the configuration, then others from the file of the setting `mcp`. An error in one
    /// of them matters only if it is used.
    ///
    /// # Errors
    /// `Settings`: that file cannot be read.
    pub(crate) fn tool_servers(&self) -> Result<Vec<Configured>, Error> {
        let own = self.tools.iter();
        let mut servers: Vec<Configured> = own
            .map(|server| Configured {
                name: server.name.clone(),
                server: Ok(server.clone()),
            })
            .collect();
        let Some(path) = &self.values.mcp else {
            return Ok(servers);
        };
        let wrong = |reason| Error::settings(format!("mcp: {reason}"));
        let text = read_text(Path::new(path), text::MAX_SHARED).map_err(wrong)?;
        let more = mcp::read(&text, &self.environment)
            .map_err(|reason| wrong(format!("{path}: {reason}")))?;
        servers.extend(
            more.into_iter()
                .filter(|one| !self.tools.iter().any(|server| server.name == one.name)),
        );
        Ok(servers)
    }

    /// Where the role in use names this tool server, for errors.
    pub(crate) fn place_of_server(&self, name: &str) -> String {
        let names = |role: &&file::RoleSection| {
            role.options
                .tools
                .iter()
                .any(|tool| tool.split("__").next() == Some(name))
        };
        let used = self
            .roles
            .iter()
            .find(|role| self.typed.role.as_ref() == Some(&role.name))
            .filter(names);
        used.map_or_else(String::new, |role| {
            format!(
                "{}: {}: ",
                role.origin("tools", &self.file),
                role.key("tools")
            )
        })
    }

    /// The names of all roles.
    pub(crate) fn role_names(&self) -> Vec<String> {
        roles::names(&self.roles, &self.file)
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
    providers
        .iter()
        .map(|provider| provider.name.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

fn known(
    providers: &[Arc<Provider>],
    name: &str,
    origin: &Origin,
    key: &str,
    file: &Path,
) -> Result<(), Error> {
    if providers.iter().any(|provider| provider.name == name) {
        return Ok(());
    }
    Err(origin
        .wrong(key, &format!("there is no provider “{name}”"))
        .advise(format!(
            "{}-p chooses one of {}\na section [providers.NAME] in {} adds one",
            did_you_mean(name, providers.iter().map(|provider| &provider.name)),
            joined_names(providers),
            file.display()
        )))
}

fn read_file(path: &Path) -> Result<file::File, Error> {
    let text = match path.metadata() {
        // If the home is not a folder, there is no configuration either.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(file::File::default());
        }
        // A link to /dev/null is a configuration without any key.
        Ok(metadata) if metadata.file_type().is_char_device() => return Ok(file::File::default()),
        Ok(_) => text::read_regular(path, MAX_TEXT).map_err(Error::settings)?,
        Err(error) => return Err(Error::settings(text::unreadable(path, error))),
    };
    file::read(&text).map_err(|wrong| {
        Error::settings(format!(
            "{}, line {}: {}",
            path.display(),
            wrong.line,
            wrong.message
        ))
        .advise("q --help lists the settings")
    })
}

/// What each level sets, from the lowest to the highest.
fn levels_of(
    row: &table::SettingRow,
    arguments: &Arguments,
    environment: &Environment,
    written: &file::File,
    file: &Path,
) -> Vec<Sourced> {
    let mut levels = Vec::new();
    let mut set = |text: &str, origin: Origin| {
        levels.push(Sourced {
            text: text.to_owned(),
            origin,
        })
    };
    if let Some(default) = row.default {
        set(default, Origin::Default);
    }
    if let Some((_, text, line)) = written.settings.iter().find(|(key, ..)| *key == row.key) {
        set(
            text,
            Origin::File {
                path: file.to_owned(),
                line: *line,
            },
        );
    }
    if let Some(text) = environment.get(&row.variable()) {
        set(text, Origin::Variable(row.variable()));
    }
    if let Some((name, typed)) = row.option
        && let Some(text) = typed(arguments)
    {
        set(&text, Origin::Option(name));
    }
    levels
}

/// The model, which belongs to the provider that it was set for: it counts only if no higher level names another one.
/// `unnamed` is the provider to use if none is named.
fn model_for(providers: &[Sourced], models: &[Sourced], unnamed: Option<&str>) -> Option<Sourced> {
    let model = models.last()?;
    let is_below = |provider: &Sourced| provider.origin.rank() <= model.origin.rank();
    let (below, above) = providers.split_at(providers.partition_point(is_below));
    let its_own = below
        .last()
        .map(|provider| provider.text.as_str())
        .or(unnamed);
    let mut names = its_own
        .into_iter()
        .chain(above.iter().map(|provider| provider.text.as_str()));
    let first = names.next();
    names.all(|name| Some(name) == first).then(|| model.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_keeps_what_the_settings_say_as_far_as_they_can_be_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config.toml");
        for (file, variables, days, wraps) in [
            ("keep = \"2d\"", &[][..], 2, true),
            ("keep = \"2d\"\nwrap = false", &[("Q_KEEP", "3d")], 3, false),
            (
                "keep = ",
                &[("Q_KEEP", "3d"), ("Q_WRAP", "false")],
                3,
                false,
            ),
            ("keep = ", &[], 30, true),
            ("", &[("Q_KEEP", "3d"), ("Q_PAIRS", "x")], 30, true),
        ] {
            fs_err::write(&path, file).expect("a file");
            let values = Settings::for_actions(&Environment::new(variables), &path);
            let keep = values.keep.expect("a time");
            assert_eq!(
                (keep.as_secs(), values.wrap),
                (days * 24 * 60 * 60, wraps),
                "{file} {variables:?}"
            );
        }
    }
}
