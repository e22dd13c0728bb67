//! Where the key of a provider or a tool server is (pure).

use toml::de::DeValue;

use super::origin::Environment;
use super::value;
use crate::error::Error;
use crate::secret::Secret;

/// What has one of these words in its name, in any case, is a key: a variable that a pattern of `env_from` passes on, a header,
/// or a parameter of a URL. This list is short, because keys are removed from what the model and the user get, and an ordinary
/// value, such as that of a user name, must not be removed from all results.
const WORDS: &str = "token auth pass key secret credential";

/// What else a header with a key is called.
const SESSION_HEADER: &str = "cookie";

/// The place of a key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Key {
    /// None is needed.
    #[default]
    None,
    /// In the first of these variables that is set.
    Variables(Vec<String>),
    /// The same, if one is set: the server may need none.
    Optional(Vec<String>),
    /// On the first line that this command prints.
    Command(Vec<String>),
}

/// Whether a variable or a parameter of a URL is a key by its name.
pub fn names_key(name: &str) -> bool {
    has_word_of(WORDS, name)
}

/// Whether a name has one of these words, in any case.
pub(super) fn has_word_of(words: &str, name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    words.split(' ').any(|word| name.contains(word))
}

/// Returns the keys among headers, by their names, and what a server may repeat of each alone.
pub fn keys_in_headers(headers: &[(String, Secret)]) -> Vec<Secret> {
    let mut keys = Vec::new();
    for (name, value) in headers {
        if names_key(name) || name.eq_ignore_ascii_case(SESSION_HEADER) {
            keys.extend(value.of_header());
        }
    }
    keys
}

/// Says that none of these variables is set.
pub fn not_set(names: &[String]) -> String {
    match names {
        [name] => format!("{name} is not set"),
        [first, second] => format!("neither {first} nor {second} is set"),
        _ => format!("none of {} is set", names.join(", ")),
    }
}

impl Key {
    /// Reads `key_env` or `key_cmd`.
    pub(super) fn set(&mut self, key: &str, value: &DeValue) -> Result<(), String> {
        if *self != Key::None {
            return Err("there can be key_env or key_cmd, not both".to_owned());
        }
        *self = if key == "key_env" {
            Key::Variables(vec![value::variable(value)?])
        } else {
            Key::Command(value::command(value)?)
        };
        Ok(())
    }

    /// Returns the first of the variables that is set, and its value, which need not be a key. Whitespace around it does not
    /// count: files with secrets end in a newline.
    pub fn find(&self, environment: &Environment) -> Option<(String, Secret)> {
        let (Key::Variables(names) | Key::Optional(names)) = self else {
            return None;
        };
        names.iter().find_map(|name| {
            let value = environment.get_lossy(name)?;
            let value = value.trim_matches([' ', '\t', '\r', '\n']);
            (!value.is_empty()).then(|| (name.clone(), Secret::new(value)))
        })
    }

    /// Returns the key in the environment; `None` if none is needed, or if a command prints it.
    pub fn read(&self, whose: &str, environment: &Environment) -> Result<Option<Secret>, Error> {
        let Some((name, key)) = self.find(environment) else {
            let Key::Variables(names) = self else {
                return Ok(None);
            };
            let reason = not_set(names);
            let error = Error::settings(format!("there is no key for {whose}: {reason}"));
            return Err(error.advise(format!("export {}=your-key", names[0])));
        };
        check_key(&key, &name)?;
        Ok(Some(key))
    }

    /// Whether there may be none.
    pub fn is_optional(&self) -> bool {
        matches!(self, Key::None | Key::Optional(_))
    }

    /// Returns what to do if a server rejects this value of it, or the lack of one.
    pub fn advice(&self, whose: &str, value: Option<&Secret>, environment: &Environment) -> String {
        let key = match (self, self.find(environment)) {
            (Key::None, _) => {
                return format!(
                    "key_env = \"NAME\" below [providers.{whose}] names the variable that has its key"
                );
            }
            (Key::Optional(names), None) => {
                return format!("{whose} wants a key: export {}=your-key", names[0]);
            }
            (Key::Variables(_) | Key::Optional(_), Some((name, _))) => {
                format!("the key in {name}")
            }
            (Key::Variables(names), None) => format!("the key in {}", names.join(" or ")),
            // Its arguments may be secret.
            (Key::Command(command), _) => format!("the key that {} prints", command[0]),
        };
        // Files with variables and containers keep the quotes that a shell would remove.
        let quotes = ['"', '\'', '`', '“', '”'];
        if value.is_some_and(|value| value.expose().trim_matches(quotes) != value.expose()) {
            return format!("{key} begins or ends with a quote, which is sent with it: remove it");
        }
        format!("check {key}")
    }
}

/// Checks that a key can be sent in a header. An error does not show the key.
pub fn check_key(key: &Secret, source: &str) -> Result<(), Error> {
    if key.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    let error = Error::settings(format!(
        "the key in {source} contains whitespace or another character that is not allowed in a key"
    ));
    Err(error.advise("it must be the key alone, without “Bearer” before it or anything after it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_that_is_not_set_is_named() {
        for (names, expected) in [
            (&["A"][..], "A is not set"),
            (&["A", "B"], "neither A nor B is set"),
            (&["A", "B", "C"], "none of A, B, C is set"),
        ] {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(not_set(&names), expected);
        }
    }
}
