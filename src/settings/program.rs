//! The programs of tool servers and commands, and the part of q's environment that they get (pure).

use std::ffi::OsString;

use serde_json::{Value, json};
use toml::de::DeValue;

use super::confinement::Confinement;
use super::environment::Environment;
use super::key::{has_word_of, names_key};
use super::paths::{check_directory, refuse_variables};
use super::pattern;
use super::sections::unknown_key;
use super::value::{self, ConfigError};
use super::variables::{self, UnfilledVariable};
use crate::flags::synonyms::WordPlace;
use crate::secret::{self, Secret};

/// The variables that every program gets, unless they may be keys; a star matches any characters. npm and uv start many tool
/// servers.
const PASSED_ON: &str = "HOME LOGNAME USER PATH SHELL TERM LANG LC_* TZ TMPDIR XDG_* \
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy \
    SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS \
    npm_config_* NPM_CONFIG_* UV_*";

/// A variable with one of these words in its name, in any case, or with this end may be a key. Only `env` and `env_from`
/// pass it on. This list is longer than that of [`names_key`], because nobody has asked for these variables: one that a program
/// does not get does little harm, and `env_from` can name it.
const MAY_BE_KEYS: &str = "token auth pass key secret cred otp basic username";
const END_OF_CERTIFICATES: &str = "_cert";

/// A program that q starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocalProgram {
    /// Its name in PATH, or its absolute path.
    pub name: String,
    /// Those that it always gets. A command that the model calls has its arguments in its `Argv` instead.
    pub arguments: Vec<String>,
    /// Variables that it gets besides those passed on.
    pub env: Vec<(String, Secret)>,
    /// Variables that it does not get even if they are passed on.
    pub env_without: Vec<String>,
    /// Whether a file of other programs has it.
    pub is_shared: bool,
    /// Patterns for more variables to pass on from q's own environment.
    pub env_from: Vec<String>,
    /// `None` is the home directory, which `~/` means, too, or the temporary directory of a confined program; `.` is the directory
    /// that q was started in.
    pub cwd: Option<String>,
    /// What the kernel lets it do; `None` if that is everything that the user may do.
    pub confine: Option<Confinement>,
}

impl LocalProgram {
    /// Returns a program with only its name and arguments set.
    pub(super) fn new(command: Vec<String>) -> LocalProgram {
        LocalProgram::default().with_command(command)
    }

    /// Sets the program, which is the first word of a command, and its arguments, which are the others.
    pub(super) fn with_command(mut self, command: Vec<String>) -> LocalProgram {
        let mut words = command.into_iter();
        self.name = words.next().unwrap_or_default();
        self.arguments = words.collect();
        self
    }

    /// Sets `env`, `env_from`, `cwd` or `confine`.
    pub(super) fn set(&mut self, key: &str, value: &DeValue) -> Result<(), ConfigError> {
        match key {
            "env" => self.env.extend(value::pairs(value)?),
            "env_from" => {
                for name in value::strings(value)? {
                    check_variable_name(&name).map_err(ConfigError::deferred)?;
                    self.env_from.push(name);
                }
            }
            "confine" => self.confine = Some(Confinement::parse(value)?),
            "cwd" => {
                let directory = value::string(value)?;
                refuse_variables(&directory).map_err(ConfigError::deferred)?;
                check_directory(&directory).map_err(ConfigError::deferred)?;
                self.cwd = Some(directory);
            }
            _ => return Err(unknown_key(WordPlace::Server, key)),
        }
        Ok(())
    }

    /// Returns what tells it from other programs, apart from the values that `env_from` passes on. It has secrets.
    pub(super) fn identity(&self) -> Value {
        let mut command = vec![&self.name];
        command.extend(&self.arguments);
        json!([
            command,
            exposed(&self.env),
            self.env_without,
            self.env_from,
            self.cwd,
            self.confine.as_ref().map(Confinement::identity),
        ])
    }

    /// Returns the keys among its variables: those that `env_from` passes on as keys, those of `env` that are named like keys in
    /// a file of other programs, which has no other place for them, and the credentials in all URLs.
    pub fn keys(&self, own: &Environment) -> Vec<Secret> {
        let mut keys = Vec::new();
        for (name, value) in self.environment(own) {
            let text = value.to_string_lossy();
            let is_set_here = self.env.iter().any(|(other, _)| *other == name);
            let is_key = if is_set_here {
                self.is_shared && names_key(&name)
            } else {
                self.is_key(&name)
            };
            if is_key {
                keys.push(Secret::new(text.clone()));
            }
            if name.to_ascii_lowercase().ends_with("_proxy") {
                keys.extend(secret::of_proxy(&text));
            }
            // The query of a database's address has settings, too, but that of an index nothing else.
            let is_of_settings = is_set_here || self.is_named(&name);
            let is_secret = |parameter: &str| !is_of_settings || names_key(parameter);
            keys.extend(secret::of_urls(&text, is_secret));
        }
        keys
    }

    /// Whether `env_from` passes a variable on as a key: by its whole name or, by a pattern, with the name of a key.
    fn is_key(&self, name: &str) -> bool {
        let has_whole_name = self.env_from.iter().any(|wanted| wanted == name);
        has_whole_name || (self.is_named(name) && names_key(name))
    }

    /// Returns the variables that it gets.
    pub fn environment(&self, own: &Environment) -> Vec<(String, OsString)> {
        let mut variables = Vec::new();
        for (name, value) in own.variables() {
            let is_replaced = self.env.iter().any(|(other, _)| other == name);
            let is_removed = self.env_without.iter().any(|other| other == name);
            let is_passed = is_passed_on(name) || self.is_named(name);
            if is_passed && !is_replaced && !is_removed {
                variables.push((name.to_owned(), value.to_owned()));
            }
        }
        for (name, value) in &self.env {
            variables.push((name.clone(), value.expose().into()));
        }
        variables
    }

    /// Returns what it gets as it stands and is hardly meant so: variables in the values of `env`, and in its arguments, which no
    /// shell reads. A value may have a dollar for a good reason, so a variable that is not set counts only where it is all of the
    /// value. No note has anything else of a value.
    pub fn unfilled(&self, own: &Environment) -> Vec<String> {
        if self.is_shared {
            return Vec::new();
        }
        let mut notes = self.unfilled_in_env(own);
        notes.extend(self.unfilled_in_arguments(own));
        notes
    }

    fn unfilled_in_env(&self, own: &Environment) -> Vec<String> {
        let mut notes = Vec::new();
        for (key, value) in &self.env {
            for UnfilledVariable {
                name,
                written,
                is_whole,
            } in variables::unfilled(value.expose())
            {
                if is_whole || own.get_os(&name).is_some() {
                    // What env sets wins over what env_from passes on, which keeps its name.
                    let instead = if *key == name {
                        format!("write env_from = [{name:?}] in its place")
                    } else {
                        format!("export {key} to q, and write env_from = [{key:?}] in its place")
                    };
                    notes.push(format!(
                        "env.{key}: {written} is passed as it stands; {instead}"
                    ));
                }
            }
        }
        notes
    }

    fn unfilled_in_arguments(&self, own: &Environment) -> Vec<String> {
        let mut notes = Vec::new();
        let program = self.name.rsplit('/').next().unwrap_or_default();
        let is_container_program = ["docker", "podman", "nerdctl"].contains(&program);
        let mut before = self.name.as_str();
        for argument in &self.arguments {
            let is_script = is_script_option(before, is_container_program);
            before = argument;
            // A script is hardly one word.
            if is_script || argument.contains(char::is_whitespace) {
                continue;
            }
            for UnfilledVariable { name, written, .. } in variables::unfilled(argument) {
                if written.ends_with('}') && own.get_os(&name).is_some() {
                    notes.push(format!(
                        "the argument {written} is passed as it stands, because no shell reads it; write its value"
                    ));
                }
            }
        }
        notes
    }

    /// Returns the names of the variables that q has and it does not get, although nothing removes them.
    pub fn withheld(&self, own: &Environment) -> Vec<String> {
        let given = self.environment(own);
        let mut withheld = Vec::new();
        for (name, _) in own.variables() {
            let is_given = given.iter().any(|(other, _)| other == name);
            if !is_given && !self.env_without.contains(name) {
                withheld.push(name.clone());
            }
        }
        withheld
    }

    /// Whether `env_from` names a variable.
    fn is_named(&self, name: &str) -> bool {
        self.env_from
            .iter()
            .any(|wanted| pattern::matches(wanted, name))
    }
}

/// Whether a script follows this option: a shell reads what follows -c, an interpreter what follows -e. Programs that start
/// containers set variables with -e.
fn is_script_option(option: &str, is_container_program: bool) -> bool {
    let is_short = option.starts_with('-') && !option.starts_with("--");
    is_short && (option.ends_with('c') || (option.ends_with('e') && !is_container_program))
}

/// Refuses what no variable is called. A user may have written its value there, so the error shows only a name.
fn check_variable_name(name: &str) -> Result<(), String> {
    if let Some(variable) = variables::unfilled(name).into_iter().next() {
        // It may be a pattern.
        let rest = name.strip_prefix(&variable.written).unwrap_or_default();
        let is_pattern = rest
            .chars()
            .all(|c| c == '*' || c.is_ascii_alphanumeric() || c == '_');
        let pattern = if is_pattern { rest } else { "" };
        let meant = variable.name + pattern;
        return Err(format!("has names without $ and braces: write {meant:?}"));
    }
    if name.contains('$') {
        return Err("has names of variables, and no name has a $".to_owned());
    }
    Ok(())
}

/// Names with their secret values.
pub(super) fn exposed(secrets: &[(String, Secret)]) -> Value {
    let pairs = secrets.iter();
    pairs
        .map(|(name, value)| json!([name, value.expose()]))
        .collect()
}

/// Whether every program gets a variable.
fn is_passed_on(name: &str) -> bool {
    let mut patterns = PASSED_ON.split(' ');
    let is_listed = patterns.any(|wanted| pattern::matches(wanted, name));
    let is_certificate = name.to_ascii_lowercase().ends_with(END_OF_CERTIFICATES);
    let may_be_key = is_certificate || has_word_of(MAY_BE_KEYS, name);
    is_listed && !may_be_key
}
