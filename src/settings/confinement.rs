//! What a confined program may read, change and reach, as its section says it (pure).

use serde_json::{Value, json};
use toml::de::DeValue;

use super::paths::{check_directory, refuse_variables};
use super::sections::{section, unknown_key};
use super::value::{ConfigError, strings, switch};
use crate::flags::synonyms::WordPlace;

/// The key `confine` of a section. Paths are as they are written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Confinement {
    /// Files and directories that it may read and run.
    pub read: Vec<String>,
    /// Files and directories that it may change, too.
    pub write: Vec<String>,
    /// Whether it may reach the network.
    pub network: bool,
}

impl Confinement {
    pub(super) fn parse(value: &DeValue) -> Result<Confinement, ConfigError> {
        let mut confinement = Confinement::default();
        section(value, WordPlace::Confinement)?.read(|entry| {
            match entry.key {
                "read" => confinement.read = paths(entry.value)?,
                "write" => confinement.write = paths(entry.value)?,
                "network" => confinement.network = switch(entry.value)?,
                key => return Err(unknown_key(WordPlace::Confinement, key)),
            }
            Ok(())
        })?;
        Ok(confinement)
    }

    /// Returns what tells it from others.
    pub(super) fn identity(&self) -> Value {
        json!([self.read, self.write, self.network])
    }
}

fn paths(value: &DeValue) -> Result<Vec<String>, ConfigError> {
    let paths = strings(value)?;
    for path in &paths {
        refuse_variables(path).map_err(ConfigError::deferred)?;
        check_directory(path).map_err(ConfigError::deferred)?;
    }
    Ok(paths)
}
