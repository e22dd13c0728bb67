//! Where the key of a provider or a tool server is (pure).

use toml::de::DeValue;

use super::environment::Environment;
use super::value::{self, ConfigError};
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
    pub(super) fn set(&mut self, key: &str, value: &DeValue) -> Result<(), ConfigError> {
        let read = if key == "key_env" {
            Key::Variables(vec![value::variable(value)?])
        } else {
            Key::Command(value::command(value)?)
        };
        if *self != Key::None {
            let reason = "there can be key_env or key_cmd, not both";
            return Err(ConfigError::deferred(reason));
        }
        *self = read;
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
                    "name the variable that has its key with key_env = \"NAME\" below [providers.{whose}]"
                );
            }
            (Key::Optional(names), None) => {
                return format!("export {}=your-key, because {whose} wants a key", names[0]);
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
            return format!(
                "remove the quote at the beginning or the end of {key}, because it is sent"
            );
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
    Err(error.advise("set it to the key alone, without “Bearer” before it or anything after it"))
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
    fn variables(names: &[&str]) -> Key {
        Key::Variables(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn a_key_is_the_first_variable_that_has_more_than_whitespace_around_it() {
        let environment = Environment::new(&[
            ("A", " \r\n"),
            ("B", "\tkey\n"),
            ("C", "other"),
            ("D", "a b"),
        ]);
        for (names, found) in [
            (&["B", "C"][..], Some(("B", "key"))),
            (&["C", "B"], Some(("C", "other"))),
            (&["A", "B"], Some(("B", "key"))),
            (&["gone", "D"], Some(("D", "a b"))),
            (&["A", "gone"], None),
        ] {
            let found = found.map(|(name, value)| (name.to_owned(), Secret::new(value)));
            let key = variables(names);
            assert_eq!(key.find(&environment), found, "{names:?}");
            let Key::Variables(names) = key else {
                unreachable!()
            };
            assert_eq!(Key::Optional(names).find(&environment), found);
        }
        for key in [Key::None, Key::Command(vec!["pass".to_owned()])] {
            assert_eq!(key.find(&environment), None);
            assert!(matches!(key.read("x", &environment), Ok(None)));
        }
    }

    #[test]
    fn a_key_that_is_missing_or_cannot_be_sent_is_an_error_that_does_not_show_it() {
        let environment = Environment::new(&[
            ("GOOD", "sk-1_~!"),
            ("BLANK", "sk 1"),
            ("LINE", "sk\nx"),
            ("WIDE", "sk-é"),
        ]);
        let read = |key: &Key| match key.read("x", &environment) {
            Ok(key) => key.map_or("none".to_owned(), |key| key.expose().to_owned()),
            Err(error) => error.message,
        };
        for (names, expected) in [
            (&["GOOD"][..], "sk-1_~!"),
            (&["gone"], "there is no key for x: gone is not set"),
            (&["BLANK"], "the key in BLANK contains whitespace"),
            (&["LINE"], "the key in LINE contains whitespace"),
            (&["WIDE"], "the key in WIDE contains whitespace"),
        ] {
            let found = read(&variables(names));
            assert!(found.starts_with(expected), "{names:?}: {found}");
            assert!(names == ["GOOD"] || !found.contains("sk"), "{found}");
        }
        assert_eq!(read(&Key::Optional(vec!["gone".to_owned()])), "none");
    }

    #[test]
    fn the_keys_among_headers_are_known_by_their_names() {
        for (name, is_key) in [
            ("X-Api-Key", true),
            ("authorization", true),
            ("Proxy-AUTH", true),
            ("Cookie", true),
            ("X-Secret-Id", true),
            ("X-Cookie-Policy", false),
            ("X-Team", false),
            ("Accept", false),
        ] {
            let headers = [(name.to_owned(), Secret::new("Bearer value"))];
            let keys = keys_in_headers(&headers);
            assert_eq!(keys.contains(&Secret::new("value")), is_key, "{name}");
            assert_eq!(keys.is_empty(), !is_key, "{name}");
        }
    }

    #[test]
    fn the_advice_about_a_rejected_key_says_where_it_is() {
        let environment = Environment::new(&[("SET", "key")]);
        let command = Key::Command(vec!["pass".to_owned(), "secret".to_owned()]);
        let optional = |name: &str| Key::Optional(vec![name.to_owned()]);
        for (key, value, expected) in [
            (
                Key::None,
                "",
                "name the variable that has its key with key_env = \"NAME\" below [providers.x]",
            ),
            (
                optional("gone"),
                "",
                "export gone=your-key, because x wants a key",
            ),
            (optional("SET"), "key", "check the key in SET"),
            (variables(&["gone", "SET"]), "key", "check the key in SET"),
            (
                variables(&["gone", "other"]),
                "key",
                "check the key in gone or other",
            ),
            (command.clone(), "key", "check the key that pass prints"),
            (
                command,
                "\"key\"",
                "remove the quote at the beginning or the end of the key that pass prints, because it is sent",
            ),
            (
                optional("SET"),
                "key'",
                "remove the quote at the beginning or the end of the key in SET, because it is sent",
            ),
        ] {
            let found = key.advice("x", Some(&Secret::new(value)), &environment);
            assert_eq!(found, expected);
        }
    }
}
