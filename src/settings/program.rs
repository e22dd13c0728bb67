//! The programs of tool servers and commands, and the part of q's environment that they get (pure).

use std::ffi::OsString;

use serde_json::{Value, json};
use toml::de::DeValue;

use super::origin::Environment;
use super::pattern;
use super::value::{self, Wrong};
use crate::secret::{self, Secret};

/// The variables that every program gets; a star matches any characters.
const PASSED_ON: &str = "HOME LOGNAME USER PATH SHELL TERM LANG LC_* TZ TMPDIR XDG_* \
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy \
    SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS";

/// The variables for npm and uv, which start many tool servers.
const OF_INSTALLERS: &str = "npm_config_* UV_*";

/// A variable for npm or uv with one of these words in its name may be a key. Only `env` and `env_from` pass it on.
const KEY_WORDS: [&str; 5] = ["token", "auth", "password", "key", "secret"];

/// A program that q starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocalProgram {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables that it gets besides those passed on.
    pub env: Vec<(String, Secret)>,
    /// Patterns for more variables to pass on from q's own environment.
    pub env_from: Vec<String>,
    /// `None` is the home folder, which `~/` stands for, too; `.` is the folder that q was started in.
    pub cwd: Option<String>,
}

impl LocalProgram {
    /// A program with only its command set.
    pub(super) fn new(command: Vec<String>) -> LocalProgram {
        LocalProgram {
            command,
            ..LocalProgram::default()
        }
    }

    /// Sets `env`, `env_from` or `cwd`.
    pub(super) fn set(&mut self, key: &str, value: &DeValue) -> Result<(), Wrong> {
        match key {
            "env" => self.env.extend(value::table(value)?),
            "env_from" => self.env_from.extend(value::strings(value)?),
            _ => self.cwd = Some(check_folder(value::string(value)?)?),
        }
        Ok(())
    }

    /// What tells it from other programs, apart from the values that `env_from` passes on. It has secrets.
    pub(super) fn identity(&self) -> Value {
        json!([self.command, exposed(&self.env), self.env_from, self.cwd])
    }

    /// The secrets among its variables: the values that `env_from` passes on, and the passwords of all URLs.
    pub fn keys(&self, own: &Environment) -> Vec<Secret> {
        let mut keys = Vec::new();
        for (name, value) in own.variables() {
            if self.is_named(name) {
                keys.push(Secret::new(value.to_string_lossy()));
            }
        }
        for (name, value) in self.environment(own) {
            let mut text = value.to_string_lossy().into_owned();
            // The address of a proxy needs no scheme.
            if name.to_ascii_lowercase().ends_with("_proxy") {
                text.insert_str(0, "://");
            }
            keys.extend(secret::of_urls(&text));
        }
        keys
    }

    /// The variables that it gets.
    pub fn environment(&self, own: &Environment) -> Vec<(String, OsString)> {
        let mut variables = Vec::new();
        for (name, value) in own.variables() {
            let is_replaced = self.env.iter().any(|(other, _)| other == name);
            let is_passed = is_passed_on(name) || self.is_named(name);
            if is_passed && !is_replaced {
                variables.push((name.to_owned(), value.to_owned()));
            }
        }
        for (name, value) in &self.env {
            variables.push((name.clone(), value.expose().into()));
        }
        variables
    }

    /// Whether `env_from` names a variable.
    fn is_named(&self, name: &str) -> bool {
        self.env_from
            .iter()
            .any(|wanted| pattern::matches(wanted, name))
    }
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
    let is_one_of = |patterns: &str| {
        let mut patterns = patterns.split(' ');
        patterns.any(|wanted| pattern::matches(wanted, name))
    };
    if is_one_of(PASSED_ON) {
        return true;
    }
    let lower = name.to_ascii_lowercase();
    let is_key = KEY_WORDS.iter().any(|word| lower.contains(word));
    is_one_of(OF_INSTALLERS) && !is_key
}

/// Refuses a relative path: its meaning would depend on where q is started.
pub fn check_command(command: &[String]) -> Result<(), String> {
    if let Some(program) = command.first()
        && program.contains('/')
        && !program.starts_with('/')
    {
        return Err(format!(
            "“{program}” is a relative path; write the full path"
        ));
    }
    Ok(())
}

/// Checks the folder that a program is started in, and returns it: a full path, one in the home folder (`~/`), or `.`.
pub fn check_folder(folder: String) -> Result<String, String> {
    let is_full = folder.starts_with('/') || folder == "~" || folder.starts_with("~/");
    if folder != "." && !is_full {
        return Err(format!(
            "“{folder}” is a relative path; write the full path, or \".\""
        ));
    }
    Ok(folder)
}
