//! The variables of the environment (pure).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use crate::error::Error;

/// The environment variables. Empty ones count as unset.
#[derive(Debug, Clone, Default)]
pub struct Environment(BTreeMap<String, OsString>);

impl Environment {
    /// Returns the value of a variable, if it is set to text. What is not text counts as unset, so this is for what matters little.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.to_str()
    }

    /// Returns the value of a variable, whether it is text or not.
    pub fn get_os(&self, name: &str) -> Option<&OsStr> {
        self.0.get(name).map(OsString::as_os_str)
    }

    /// Returns the value of a variable that has to be text, if it is set, or why it is none.
    pub(super) fn text(&self, name: &str) -> Option<Result<&str, String>> {
        let text = self.0.get(name)?.to_str();
        Some(text.ok_or_else(|| "is not UTF-8".to_owned()))
    }

    /// Returns the value of a variable, if it is set, with U+FFFD for bytes that are not UTF-8.
    pub fn get_lossy(&self, name: &str) -> Option<Cow<'_, str>> {
        Some(self.0.get(name)?.to_string_lossy())
    }

    /// Checks that all settings are text.
    pub fn check(&self) -> Result<(), Error> {
        for (name, value) in &self.0 {
            if name.starts_with("Q_") && value.to_str().is_none() {
                return Err(Error::settings(format!("{name}: it is not UTF-8")));
            }
        }
        Ok(())
    }

    /// Returns all variables by name, with the bytes of their values.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&String, &OsString)> {
        self.0.iter()
    }

    /// Returns the environment without the settings in it.
    #[cfg(test)]
    pub(super) fn without_settings(&self) -> Environment {
        let mut variables = self.0.clone();
        variables.retain(|name, _| !name.starts_with("Q_"));
        Environment(variables)
    }
}

/// Bytes of a name that are not UTF-8 become U+FFFD.
impl FromIterator<(OsString, OsString)> for Environment {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Environment {
        let mut set = BTreeMap::new();
        for (name, value) in variables {
            if !value.is_empty() {
                set.insert(name.to_string_lossy().into_owned(), value);
            }
        }
        Environment(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Environment {
        pub fn new(variables: &[(&str, &str)]) -> Environment {
            variables
                .iter()
                .map(|(name, value)| (OsString::from(name), OsString::from(value)))
                .collect()
        }
    }
}
