//! Settings, from the lowest layer to the highest: built-in defaults, the configuration file, the environment and options.

mod commands;
mod confinement;
mod duration;
mod environment;
mod file;
mod guess;
mod headers;
mod key;
mod mcp;
mod origin;
mod paths;
pub mod pattern;
mod program;
mod providers;
mod roles;
mod section_fault;
mod sections;
mod server_origin;
pub mod table;
mod text_file;
mod tool_sections;
mod tools;
mod value;
mod variables;

use std::fmt::Display;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

pub use commands::Command;
pub use confinement::Confinement;
pub use environment::Environment;
pub use guess::misspelt_variables;
pub use key::{Key, check_key, keys_in_headers, names_key, not_set};
pub use mcp::short_name;
pub use origin::{Origin, Sourced};
pub use paths::expand_home;
pub use program::LocalProgram;
pub use providers::Provider;
pub use section_fault::SectionFault;
pub use sections::{NO_PLACE, advice_to_add, advice_to_add_tools};
pub use server_origin::{DisabledServer, ServerOrigin, SharedEntry};
pub use table::{Cached, History, SettingRow, Values};
pub use text_file::{MAX_TEXT, read_pipe, read_text};
pub use tools::{READS, RemoteServer, ServerKind, ToolServer};

use guess::fault_of_text;
use mcp::SharedServers;
use tool_sections::{SharedSettings, ToolSection};

use crate::error::Error;
use crate::flags::{Arguments, Mode, synonyms};
use crate::provider::request::Field;
use crate::text::json;
use crate::text::nearest::choices;
use crate::text::one_line::on_one_line;
use crate::text::shell_words::quoted;
use crate::unix;
use crate::whole_file::{broken_link, nearest_place};

/// A setting, with what each layer says about it.
#[derive(Debug)]
pub struct Setting {
    pub row: &'static SettingRow,
    layers: Layers,
}

/// What each layer sets, from the lowest to the highest: the defaults, the file, the environment and the options.
type Layers = [Option<Sourced>; 4];

/// The most bytes of a question that is shown in advice.
const MAX_SHOWN_QUESTION: usize = 200;

const UNSET: Layers = [const { None }; 4];

impl Setting {
    fn new(
        row: &'static SettingRow,
        file: &file::File,
        environment: &Environment,
        arguments: &Arguments,
    ) -> Setting {
        let has_default = !row.default.is_empty();
        let default = has_default.then(|| Sourced::new(row.default, Origin::Default));
        let in_file = file.settings.get(row.key).cloned();
        let variable = environment.get(&row.variable());
        let variable =
            variable.map(|text| Sourced::new(row.trimmed(text), Origin::Variable(row.variable())));
        let below = variable.as_ref().or(in_file.as_ref());
        let is_strictest = below.is_some_and(|set| row.strictest == Some(set.text.as_str()));
        let option = table::option_value(row.key, arguments).filter(|_| !is_strictest);
        let option =
            option.map(|(name, text)| Sourced::new(row.trimmed(&text), Origin::Option(name)));
        Setting {
            row,
            layers: [default, in_file, variable, option],
        }
    }

    /// Sets the value that holds, and unsets the layers that are wrong. Each must be right, even where another one decides: the
    /// error is that of the lowest.
    fn apply(&mut self, values: &mut Values, environment: &Environment) -> Result<(), Error> {
        let row = self.row;
        self.unset_wrong_layers(|Sourced { text, origin }| {
            let expanded = row.expand(text, environment);
            let set = expanded.and_then(|full| row.set(values, &full));
            set.map_err(|reason| {
                let reason = fault_of_text(row, text, origin, &reason);
                origin.error(row.key, &reason)
            })
        })
    }

    /// Hands the layers to `check`, from the lowest to the highest, and unsets those that are wrong. The error is the first.
    fn unset_wrong_layers(
        &mut self,
        mut check: impl FnMut(&Sourced) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut result = Ok(());
        for layer in &mut self.layers {
            if let Some(set) = layer
                && let Err(error) = check(set)
            {
                *layer = None;
                result = result.and(Err(error));
            }
        }
        result
    }

    /// Returns the value that holds: that of the highest layer that has one.
    pub fn effective(&self) -> Option<&Sourced> {
        highest(&self.layers)
    }
}

/// Returns what each layer says about the setting with this key.
fn layers<'a>(rows: &'a [Setting], key: &str) -> &'a Layers {
    let setting = rows.iter().find(|setting| setting.row.key == key);
    setting.map_or(&UNSET, |setting| &setting.layers)
}

fn highest(layers: &Layers) -> Option<&Sourced> {
    layers.iter().flatten().last()
}

/// The settings after all layers.
#[derive(Debug)]
pub struct Settings {
    /// The arguments of the command line, with the options of their role.
    pub arguments: Arguments,
    pub values: Values,
    /// How this question uses cached answers: as the setting says, but not at all where no cached answer could serve.
    pub caching: Cached,
    /// The providers of the file, in its order, then those of the table.
    pub providers: Vec<Arc<Provider>>,
    /// The tool servers that are whole in the configuration file, in its order. See [`Settings::all_tool_servers`].
    pub configured_tool_servers: Vec<ToolServer>,
    /// What the configuration file sets of servers in the file of the setting `mcp`.
    shared_settings: Vec<SharedSettings>,
    /// The name of a provider, if one is set.
    pub provider: Option<Sourced>,
    /// The model, if one is set for that provider.
    pub model: Option<Sourced>,
    /// Has the variables that are not settings, too: proxies, certificates, keys, the shell.
    pub environment: Environment,
    /// Whether the effort is given on the command line, and not by a role.
    pub effort_is_explicit: bool,
    /// Fields of the request that options set.
    pub options: Vec<Field>,
    /// The configuration file, which need not exist; `None` without a home.
    pub file: Option<PathBuf>,
    /// What keeps q from a file that counts as missing, in words that follow its name: this user may not read it, as where q runs
    /// with the home of somebody else, or a link to it dangles.
    pub obstacle: Option<String>,
    /// In the order of the file.
    roles: Vec<file::RoleSection>,
    /// All settings, in the order of the table.
    rows: Vec<Setting>,
    /// All tool servers, once they have been asked for.
    all_tool_servers: OnceLock<Result<AllServers, Error>>,
}

/// The tool servers of all files.
#[derive(Debug)]
struct AllServers {
    enabled: Vec<ToolServer>,
    disabled: Vec<DisabledServer>,
}

/// What is wrong with settings: the first fault that was met.
#[derive(Default)]
struct Faults {
    first: Option<Error>,
}

impl Faults {
    /// Returns what was read; `None` if it is wrong.
    fn catch<T>(&mut self, read: Result<T, Error>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(error) => {
                self.first.get_or_insert(error);
                None
            }
        }
    }
}

/// The providers that settings may name.
struct KnownProviders<'a> {
    providers: &'a [Arc<Provider>],
    /// The configuration file, which can have more.
    file: Option<&'a Path>,
}

impl KnownProviders<'_> {
    /// Refuses a role with the name of a provider that is not configured, even if no question uses it.
    fn check_roles(&self, roles: &[file::RoleSection]) -> Result<(), Error> {
        for role in roles {
            if let Some(name) = &role.options.provider {
                self.check(name, None, |reason| role.error("provider", reason))?;
            }
        }
        Ok(())
    }

    /// Unsets the names of providers that are not configured. As with any setting, a layer must be right even where another one
    /// decides.
    fn check_layers(&self, rows: &mut [Setting]) -> Result<(), Error> {
        let mut named = rows
            .iter_mut()
            .filter(|setting| setting.row.key == "provider");
        named.try_for_each(|setting| {
            setting.unset_wrong_layers(|Sourced { text, origin }| {
                let wrong = |reason: &str| origin.error("provider", reason);
                self.check(text, Some(origin), wrong)
            })
        })
    }

    /// Refuses the name of a provider that is not configured. It comes from `origin`, or from a role.
    fn check(
        &self,
        name: &str,
        origin: Option<&Origin>,
        wrong: impl Fn(&str) -> Error,
    ) -> Result<(), Error> {
        let names = Vec::from_iter(self.providers.iter().map(|provider| &*provider.name));
        if names.contains(&name) {
            return Ok(());
        }
        let error = wrong(&format!("there is no provider “{name}”"));
        if let Some(question) = question_as_provider(name, origin) {
            return Err(error.advise(format!(
                "-p takes the name of a provider; to ask this as a question: q {question}"
            )));
        }
        let there = advice_on_provider(name, &names, origin);
        let section = advice_to_add("providers", self.file);
        Err(error.advise(format!("{there}; {section}")))
    }
}

/// Returns the question that was given to `-p`, quoted: Claude Code takes it there.
fn question_as_provider(given: &str, origin: Option<&Origin>) -> Option<String> {
    let is_option = matches!(origin, Some(Origin::Option(_)));
    let is_question = given.trim().contains(' ') && given.len() <= MAX_SHOWN_QUESTION;
    (is_option && is_question).then(|| quoted(&on_one_line(given)))
}

/// Returns what to choose in the place of a provider that is not there.
fn advice_on_provider(name: &str, names: &[&str], origin: Option<&Origin>) -> String {
    let there_are = match origin {
        Some(Origin::Option(_)) => "choose one with -p:".to_owned(),
        Some(Origin::Variable(variable)) => format!("set {variable} to one of:"),
        _ => "choose one of:".to_owned(),
    };
    let choose = format!("{there_are} {}", names.join(", "));
    // Other programs name a model after its provider.
    let parts = name.split_once(['/', ':']);
    if let Some((provider, model)) = parts.filter(|(provider, _)| names.contains(provider)) {
        let provider = quoted(provider);
        let model = quoted(&on_one_line(model));
        let both = match origin {
            Some(Origin::Option(_)) => format!("-p {provider} -m {model}"),
            Some(Origin::Variable(_)) => format!("Q_PROVIDER={provider} Q_MODEL={model}"),
            _ => format!("{provider}, and the model {model}"),
        };
        return format!("did you mean {both}? {choose}");
    }
    if let Some(provider) = synonyms::provider(name).filter(|provider| names.contains(provider)) {
        return format!("did you mean {provider}? {choose}");
    }
    choices(name, names, &there_are)
}

/// Reads the layers of every setting, and returns these and the values that follow.
fn read_rows(
    file: &file::File,
    environment: &Environment,
    arguments: &Arguments,
    faults: &mut Faults,
) -> (Vec<Setting>, Values) {
    let mut values = Values::default();
    let mut rows = Vec::new();
    for row in table::SETTINGS {
        let mut setting = Setting::new(row, file, environment, arguments);
        faults.catch(setting.apply(&mut values, environment));
        rows.push(setting);
    }
    (rows, values)
}

/// Returns the tool servers of sections, and the sections that have settings of servers in the shared file, if there is one.
fn split_tool_sections(
    sections: Vec<ToolSection>,
    has_shared_file: bool,
    environment: &Environment,
) -> (Vec<ToolServer>, Vec<SharedSettings>) {
    let mut servers = Vec::new();
    let mut shared = Vec::new();
    for section in sections {
        match section {
            ToolSection::Whole(whole) => servers.push(whole.server(environment)),
            ToolSection::OfShared(settings) if has_shared_file => shared.push(*settings),
            ToolSection::OfShared(settings) => servers.push(settings.without_server()),
        }
    }
    (servers, shared)
}

impl Settings {
    /// Reads all layers and checks every value.
    #[cfg(test)]
    pub fn load(
        arguments: &Arguments,
        environment: &Environment,
        path: &Path,
    ) -> Result<Settings, Error> {
        let (settings, fault) = Settings::load_leniently(arguments, environment, Some(path));
        fault.map_or(Ok(settings), Err)
    }

    /// Reads all layers, also for actions, which must work whatever is wrong. Returns the valid settings and the first fault. The
    /// configuration file is at this path, next to the files of roles; without a home there is none.
    pub fn load_leniently(
        arguments: &Arguments,
        environment: &Environment,
        path: Option<&Path>,
    ) -> (Settings, Option<Error>) {
        let mut faults = Faults::default();
        let (file, fault) = path.map(read_file).unwrap_or_default();
        faults.first = fault;
        let with_role = roles::apply(arguments, &file.roles, path, environment);
        let with_role = faults.catch(with_role).unwrap_or_else(|| arguments.clone());
        let (mut rows, values) = read_rows(&file, environment, &with_role, &mut faults);
        let providers = providers::all(file.providers, environment);
        let known = KnownProviders {
            providers: &providers,
            file: path,
        };
        faults.catch(known.check_roles(&file.roles));
        faults.catch(known.check_layers(&mut rows));
        unset_model_of_another_provider(&mut rows, first_with_key(&providers, environment));
        let (configured_tool_servers, shared_settings) =
            split_tool_sections(file.tool_servers, values.mcp.is_some(), environment);
        let options = faults.catch(read_options(&with_role.options));
        let settings = Settings {
            options: options.unwrap_or_default(),
            effort_is_explicit: arguments.effort.is_some(),
            caching: if wants_results(&with_role) {
                Cached::Off
            } else {
                values.cached_setting
            },
            arguments: with_role,
            values,
            providers,
            configured_tool_servers,
            shared_settings,
            provider: highest(layers(&rows, "provider")).cloned(),
            model: highest(layers(&rows, "model")).cloned(),
            environment: environment.clone(),
            file: path.map(Path::to_owned),
            obstacle: file.obstacle,
            roles: file.roles,
            rows,
            all_tool_servers: OnceLock::new(),
        };
        (settings, faults.first)
    }

    /// Returns the default settings, with the environment's providers.
    #[cfg(test)]
    pub fn defaults(environment: &Environment) -> Settings {
        let none = Arguments::default();
        let (settings, _) = Settings::load_leniently(&none, &environment.without_settings(), None);
        settings
    }

    /// Whether the exchange of this run is saved.
    pub fn saves(&self) -> bool {
        self.values.save && !self.arguments.dry_run
    }

    /// Whether tools or searches are asked for. No request shows what they will return, so their answers are never cached.
    pub fn wants_results(&self) -> bool {
        wants_results(&self.arguments)
    }

    /// Whether the answer of this run is cached.
    pub fn keeps_answer(&self) -> bool {
        let may_keep = self.values.save || self.arguments.cached;
        may_keep && self.caching != Cached::Off
    }

    /// Returns every setting, in the order of the table.
    pub fn rows(&self) -> &[Setting] {
        &self.rows
    }

    /// Returns all tool servers: those of the configuration file, then others from the file of the setting `mcp`, which is read
    /// once. An error in one of them matters only if it is used.
    pub fn all_tool_servers(&self) -> Result<Vec<ToolServer>, Error> {
        let servers = self.known_servers().as_ref();
        servers
            .map(|servers| servers.enabled.clone())
            .map_err(Error::clone)
    }

    /// Returns the servers that sections name, for where the file of the setting `mcp` cannot be read.
    pub fn tool_servers_of_sections(&self) -> Vec<ToolServer> {
        let mut servers = self.configured_tool_servers.clone();
        for settings in self.shared_settings.clone() {
            servers.push(settings.without_server());
        }
        servers
    }

    /// Returns the server with this name that the file of the setting `mcp` switches off.
    pub fn disabled_server(&self, name: &str) -> Option<&DisabledServer> {
        let servers = self.known_servers().as_ref().ok()?;
        let mut disabled = servers.disabled.iter();
        disabled.find(|server| server.name == name)
    }

    fn known_servers(&self) -> &Result<AllServers, Error> {
        self.all_tool_servers
            .get_or_init(|| self.read_all_tool_servers())
    }

    fn read_all_tool_servers(&self) -> Result<AllServers, Error> {
        let Some(path) = &self.values.mcp else {
            return Ok(AllServers {
                enabled: self.configured_tool_servers.clone(),
                disabled: Vec::new(),
            });
        };
        let wrong = |reason| {
            let error = Error::settings(format!("mcp: {reason}"));
            error.advise("correct the file that mcp (Q_MCP) names, or unset mcp")
        };
        let text = read_text(Path::new(path), text_file::MAX_SHARED).map_err(wrong)?;
        let is_file = |file: &str| Path::new(file).is_file();
        let shared = mcp::read_shared(text, path, &self.environment, &is_file)
            .map_err(|reason| wrong(format!("{path}: {reason}")))?;
        Ok(self.with_shared(shared))
    }

    /// Returns all servers. A section is in place of the server of its name in the shared file, or sets what that may do.
    fn with_shared(&self, shared: SharedServers) -> AllServers {
        let mut enabled = self.configured_tool_servers.clone();
        let mut unused = self.shared_settings.clone();
        for server in shared.servers {
            let mut configured = self.configured_tool_servers.iter();
            if configured.any(|own| own.name == server.name) {
                continue;
            }
            let settings = unused.iter().position(|own| own.is_for(&server.name));
            enabled.push(match settings {
                Some(index) => unused.remove(index).applied_to(server),
                None => server,
            });
        }
        // A server that is switched off is there.
        unused.retain(|own| {
            let mut disabled = shared.disabled.iter();
            !disabled.any(|server| own.is_for(&server.name))
        });
        enabled.extend(unused.into_iter().map(SharedSettings::without_server));
        AllServers {
            enabled,
            disabled: shared.disabled,
        }
    }

    /// Returns the error for the name of a tool server, which may come from the role in use.
    pub fn wrong_server(&self, name: &str, reason: &str) -> Error {
        let mut roles = self.roles.iter();
        let in_use = roles.find(|role| Some(&role.name) == self.arguments.role.as_ref());
        let is_server = |tool: &String| tool.split("__").next() == Some(name);
        match in_use {
            Some(role) if role.options.tools.names().iter().any(is_server) => {
                role.error("tools", reason)
            }
            _ => Error::settings(reason),
        }
    }

    /// Returns the names of all roles.
    pub fn role_names(&self) -> Vec<String> {
        roles::names(&self.roles, self.file.as_deref())
    }

    /// Returns the provider with this name, if it is configured.
    pub fn provider_named(&self, name: &str) -> Option<&Arc<Provider>> {
        self.providers.iter().find(|provider| provider.name == name)
    }

    /// Returns the names of all providers, in their order.
    pub fn provider_names(&self) -> String {
        let names = self.providers.iter().map(|provider| &*provider.name);
        Vec::from_iter(names).join(", ")
    }

    /// Returns the named provider, else the first with its key set.
    pub fn chosen_provider(&self) -> Option<&Arc<Provider>> {
        match &self.provider {
            Some(named) => self.provider_named(&named.text),
            // Which keys are set must not decide which cached answer is looked for.
            None if self.arguments.mode == Mode::Ask && self.caching == Cached::Only => None,
            None => first_with_key(&self.providers, &self.environment),
        }
    }
}

fn wants_results(arguments: &Arguments) -> bool {
    arguments.web || !arguments.tools.names().is_empty()
}

/// Returns the fields of a request that `-o` sets.
fn read_options(options: &[String]) -> Result<Vec<Field>, Error> {
    let mut fields = Vec::new();
    for text in options {
        let field = Field::parse(text);
        fields.push(field.map_err(|reason| Error::usage(format!("--option: {reason}")))?);
    }
    Ok(fields)
}

fn first_with_key<'a>(
    providers: &'a [Arc<Provider>],
    environment: &Environment,
) -> Option<&'a Arc<Provider>> {
    providers
        .iter()
        .find(|provider| provider.has_key(environment))
}

/// Reads the configuration file. One that is not there has nothing in it. The error is the first of its faults.
fn read_file(path: &Path) -> (file::File, Option<Error>) {
    let mut nothing = file::File::default();
    let wrong = |error: &dyn Display| Some(Error::settings(text_file::unreadable(path, error)));
    let text = match text_file::try_read(path, MAX_TEXT) {
        Ok(text) => text,
        Err(error) => {
            return match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => {
                    nothing.obstacle = obstacle_on_the_way(path);
                    (nothing, None)
                }
                ErrorKind::PermissionDenied if !is_own(path) => {
                    let reason = "cannot be read by this user, so it counts as missing";
                    nothing.obstacle = Some(reason.to_owned());
                    (nothing, None)
                }
                _ => (nothing, wrong(&error)),
            };
        }
    };
    // The values of TOML look like those of JSON.
    match json::check_weight(&text, json::MAX_WEIGHT) {
        Ok(()) => file::read_config(&text, path),
        Err(error) => (nothing, wrong(&error)),
    }
}

/// Returns why a file cannot be there: a dangling link, or a file in the place of a directory. A device is none: a home that is
/// /dev/null is there to have no configuration.
fn obstacle_on_the_way(path: &Path) -> Option<String> {
    let place = nearest_place(path)?;
    let what = match broken_link(place) {
        Some(what) => what,
        None if place.is_file() => "not a directory",
        None => return None,
    };
    if place == path {
        return Some(format!("is {what}, so it counts as missing"));
    }
    let place = place.display();
    Some(format!("counts as missing, because {place} is {what}"))
}

/// Whether a file can be seen, and is this user's.
fn is_own(path: &Path) -> bool {
    let metadata = path.metadata();
    metadata.is_ok_and(|metadata| metadata.uid() == unix::effective_user())
}

/// Unsets a model that was set for another provider than the one that is named. Where none is named, it is for `unnamed`.
fn unset_model_of_another_provider(rows: &mut [Setting], unnamed: Option<&Arc<Provider>>) {
    let unnamed = unnamed.map(|provider| provider.name.as_str());
    if model_fits(layers(rows, "provider"), layers(rows, "model"), unnamed) {
        return;
    }
    for setting in rows {
        if setting.row.key == "model" {
            setting.layers = UNSET;
        }
    }
}

/// Whether a model is set, and for the provider that is named. A model belongs to the provider that it was set for, so it
/// does not count if a higher layer names another one. Until a layer names a provider, it is `unnamed`.
fn model_fits(providers: &Layers, models: &Layers, unnamed: Option<&str>) -> bool {
    let Some(of_model) = models.iter().rposition(Option::is_some) else {
        return false;
    };
    let mut own = unnamed;
    for (layer, provider) in providers.iter().enumerate() {
        let Some(Sourced { text, .. }) = provider else {
            continue;
        };
        if layer > of_model && own.is_some_and(|own| own != text) {
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
    fn what_is_wrong_with_settings_leaves_the_others_as_they_are() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("config.toml");
        for (file, variable, days, wraps) in [
            ("wrap = false", ("Q_KEEP", "3d"), 3, false),
            ("wrap = false", ("Q_KEEP", "x"), 30, false),
            ("wrap = false\nkeep = '2d'", ("Q_KEEP", "x"), 2, false),
            ("wrap = false\nkeep = 'x'", ("Q_KEEP", "3d"), 3, false),
            ("wrap = false\nkeep = ", ("Q_KEEP", "3d"), 3, false),
            ("keep = '2d'\nwrap = 7", ("Q_MESSAGES", "4"), 2, true),
            (
                "wrap = false\nkeep = '2d'",
                ("Q_MESSAGES", "many"),
                2,
                false,
            ),
            (
                "wrap = false\nkeep = '2d'",
                ("Q_PROVIDER", "nobody"),
                2,
                false,
            ),
            (
                "wrap = false\nprovider = 'nobody'",
                ("Q_KEEP", "3d"),
                3,
                false,
            ),
            (
                "wrap = false\n[roles.x]\nwhat = 1",
                ("Q_KEEP", "3d"),
                3,
                false,
            ),
            (
                "wrap = false\n[roles.x]\nprovider = 'nobody'",
                ("Q_KEEP", "3d"),
                3,
                false,
            ),
            (
                "wrap = false\n[tools.x]\nrun = 1",
                ("Q_KEEP", "3d"),
                3,
                false,
            ),
            (
                "wrap = false\nwhat = 1\nkeep = '2d'",
                ("Q_MESSAGES", "4"),
                2,
                false,
            ),
        ] {
            fs_err::write(&path, file).expect("a file");
            let environment = Environment::new(&[variable]);
            let none = Arguments::default();
            let (Settings { values, .. }, fault) =
                Settings::load_leniently(&none, &environment, Some(&path));
            let keep = values.rules.keep.expect("a time");
            let found = (keep.as_secs(), values.wrap);
            assert_eq!(found, (days * 24 * 60 * 60, wraps), "{file} {variable:?}");
            let is_right = file == "wrap = false" && variable.1 == "3d";
            assert_eq!(fault.is_none(), is_right, "{file} {variable:?}");
        }
    }
}
