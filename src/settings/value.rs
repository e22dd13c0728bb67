//! Reads values of the configuration file as the expected types, or says what is wrong with them (pure).

use std::fmt::{self, Display, Formatter};

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeValue, ValueDeserializer};

use super::paths::{check_program, refuse_variables};
use crate::secret::Secret;

/// A key of a table, and its value.
#[derive(Clone, Copy)]
pub struct TableEntry<'a> {
    pub key: &'a str,
    /// The place of the key, in bytes.
    pub at: usize,
    pub value: &'a DeValue<'a>,
}

impl TableEntry<'_> {
    /// Reads the value with `read`. An error names this key.
    pub fn read<T, E: Into<ConfigError>>(
        &self,
        read: impl FnOnce(&DeValue) -> Result<T, E>,
    ) -> Result<T, ConfigError> {
        read(self.value).map_err(|error| error.into().under(self))
    }
}

/// A fault of the configuration file: which key is wrong, and why.
#[derive(Debug)]
pub struct ConfigError {
    /// The key that is wrong, after the keys of the tables around it. Empty if the file is not TOML.
    path: Vec<String>,
    /// The place of that key in bytes, or of what is not TOML; `None` until it is known.
    pub at: Option<usize>,
    reason: String,
    /// Whether it matters only if what the section configures is used. A misspelt key, type or name matters at once, because it
    /// may hide what was meant.
    pub is_deferred: bool,
}

impl ConfigError {
    /// Returns a fault of the whole text, which is not TOML.
    pub fn syntax(at: Option<usize>, reason: &str) -> ConfigError {
        ConfigError {
            at,
            ..ConfigError::from(reason)
        }
    }

    /// Returns a fault that matters only if what the section configures is used.
    pub fn deferred(reason: impl Into<String>) -> ConfigError {
        ConfigError {
            is_deferred: true,
            ..ConfigError::from(reason)
        }
    }

    /// Returns the same fault, now that its value, or a table around it, turns out to be that of this entry.
    pub fn under(mut self, entry: &TableEntry) -> ConfigError {
        self.path.insert(0, entry.key.to_owned());
        self.at.get_or_insert(entry.at);
        self
    }
}

/// A fault of the value that is being read. Its key is added by [`ConfigError::under`].
impl<Reason: Into<String>> From<Reason> for ConfigError {
    fn from(reason: Reason) -> ConfigError {
        ConfigError {
            path: Vec::new(),
            at: None,
            reason: reason.into(),
            is_deferred: false,
        }
    }
}

/// Returns both values, or the fault that matters first: one that is not deferred, else the first.
pub fn both_or_fault<First, Second>(
    first: Result<First, ConfigError>,
    second: Result<Second, ConfigError>,
) -> Result<(First, Second), ConfigError> {
    match (first, second) {
        (Ok(first), Ok(second)) => Ok((first, second)),
        (Err(first), Err(second)) if first.is_deferred && !second.is_deferred => Err(second),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

impl Display for ConfigError {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        if !self.path.is_empty() {
            write!(formatter, "{}: ", self.path.join("."))?;
        }
        formatter.write_str(&self.reason)
    }
}

/// What values are called in errors.
pub const STRING: &str = "a string in quotes";
pub const SWITCH: &str = "true or false";
pub const WHOLE: &str = "a whole number";
pub const LIMIT: &str = "a whole number, or \"all\"";

/// The entries of a table, in the order of the file.
pub struct Table<'a>(Vec<TableEntry<'a>>);

impl<'a> Table<'a> {
    /// Returns the table that a value is; `None` if it is something else.
    pub fn of(value: &'a DeValue<'a>) -> Option<Table<'a>> {
        let mut entries = Vec::new();
        for (key, content) in value.as_table()? {
            entries.push(TableEntry {
                key: key.get_ref(),
                at: key.span().start,
                value: content.get_ref(),
            });
        }
        entries.sort_by_key(|entry| entry.at);
        Some(Table(entries))
    }

    pub fn entries(&self) -> &[TableEntry<'a>] {
        &self.0
    }

    /// Hands all entries to `read`, one after the other, also those after one that is wrong. The error is the one that matters
    /// first.
    pub fn read(
        &self,
        mut read: impl FnMut(&TableEntry<'a>) -> Result<(), ConfigError>,
    ) -> Result<(), ConfigError> {
        let mut result = Ok(());
        for entry in &self.0 {
            let entry_result = read(entry).map_err(|error| error.under(entry));
            result = both_or_fault(result, entry_result).map(|_| ());
        }
        result
    }

    /// Removes the entry with this key, and returns it.
    pub fn take(&mut self, key: &str) -> Option<TableEntry<'a>> {
        let index = self.0.iter().position(|entry| entry.key == key)?;
        Some(self.0.remove(index))
    }

    /// Returns the entries for which this is true, and the others.
    pub fn split(self, is_first: fn(&TableEntry) -> bool) -> (Table<'a>, Table<'a>) {
        let (first, second) = self.0.into_iter().partition(is_first);
        (Table(first), Table(second))
    }

    /// Returns the fault of one of its keys, which shows only with the others.
    pub fn error(&self, key: &str, reason: impl Into<ConfigError>) -> ConfigError {
        let error = reason.into();
        match self.0.iter().find(|entry| entry.key == key) {
            Some(entry) => error.under(entry),
            None => error,
        }
    }
}

/// Hands the entries of a table to `read`, in the order of the file.
pub fn for_each<'a>(
    value: &'a DeValue<'a>,
    read: impl FnMut(&TableEntry<'a>) -> Result<(), ConfigError>,
) -> Result<(), ConfigError> {
    Table::of(value).ok_or("must be a table")?.read(read)
}

/// Returns the value as a type of Rust. An error does not show it, because it may be a key.
pub fn read<T: DeserializeOwned>(value: &DeValue, wanted: &str) -> Result<T, String> {
    let value = Spanned::new(0..0, value.clone());
    let read = T::deserialize(ValueDeserializer::from(value));
    read.map_err(|_| format!("must be {wanted}"))
}

/// Whether JSON has this value: it has no dates, and no numbers without end.
pub fn is_json(value: &DeValue) -> bool {
    match value {
        DeValue::Datetime(_) => false,
        DeValue::Float(float) => float.as_str().parse().is_ok_and(f64::is_finite),
        DeValue::Array(items) => items.iter().all(|item| is_json(item.get_ref())),
        DeValue::Table(table) => table.iter().all(|(_, item)| is_json(item.get_ref())),
        _ => true,
    }
}

/// Returns the text of a value that is neither a date nor has parts.
pub fn scalar(value: &DeValue) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(_) => read::<i64>(value, "").ok().map(|number| number.to_string()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(on) => Some(on.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

pub fn string(value: &DeValue) -> Result<String, String> {
    read(value, STRING)
}

pub fn switch(value: &DeValue) -> Result<bool, String> {
    read(value, SWITCH)
}

pub fn strings(value: &DeValue) -> Result<Vec<String>, String> {
    read(value, "a list of strings, such as [\"a\", \"b\"]")
}

/// Returns a program and its arguments.
pub fn command(value: &DeValue) -> Result<Vec<String>, ConfigError> {
    let words = strings(value)?;
    if words.first().is_none_or(String::is_empty) {
        return Err(ConfigError::deferred("must name a program"));
    }
    Ok(words)
}

/// Returns the command of a tool, whose program has no relative path.
pub fn tool_command(value: &DeValue) -> Result<Vec<String>, ConfigError> {
    let words = command(value)?;
    refuse_variables(&words[0]).map_err(ConfigError::deferred)?;
    check_program(&words[0]).map_err(ConfigError::deferred)?;
    Ok(words)
}

/// Returns the name of a variable. A user may have written the key itself, so errors do not show it.
pub fn variable(value: &DeValue) -> Result<String, String> {
    let name = string(value)?;
    let is_other = |character: char| !character.is_ascii_alphanumeric() && character != '_';
    if name.starts_with('$') {
        return Err(
            "must be the name of an environment variable alone, without $ or braces".to_owned(),
        );
    }
    if name.is_empty() || name.contains(is_other) {
        return Err("must be the name of an environment variable, not the key itself".to_owned());
    }
    Ok(name)
}

/// Reads names, each with its text, in the order of the file.
pub fn pairs(value: &DeValue) -> Result<Vec<(String, Secret)>, ConfigError> {
    let mut pairs = Vec::new();
    for_each(value, |entry| {
        let text = Secret::new(string(entry.value)?);
        pairs.push((entry.key.to_owned(), text));
        Ok(())
    })?;
    Ok(pairs)
}

/// Returns a header and its value.
pub fn header(entry: &TableEntry) -> Result<(String, Secret), ConfigError> {
    let value = Secret::new(string(entry.value)?);
    check_header(entry.key, &value)?;
    Ok((entry.key.to_owned(), value))
}

/// Checks that a header can be sent. An error does not show its value.
pub fn check_header(name: &str, value: &Secret) -> Result<(), String> {
    let has_name = http::HeaderName::from_bytes(name.as_bytes()).is_ok();
    // The length of a request follows from its body.
    let lower = name.to_ascii_lowercase();
    let sets_length = ["content-length", "transfer-encoding"].contains(&lower.as_str());
    if has_name && !sets_length && http::HeaderValue::from_str(value.expose()).is_ok() {
        return Ok(());
    }
    Err("is not a valid name or value of a header".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::de::DeTable;

    use crate::text::table::rows;

    /// Hands the value `v` of a file to `check`.
    fn with_value<T>(text: &str, check: impl FnOnce(&DeValue) -> T) -> T {
        let file = format!("v = {text}");
        let table = DeTable::parse(&file).expect(text);
        check(table.get_ref()["v"].get_ref())
    }

    fn shown<T: fmt::Debug>(found: Result<T, impl Display>) -> String {
        found.map_or_else(|error| format!("error: {error}"), |it| format!("{it:?}"))
    }

    #[test]
    fn a_value_is_read_as_its_type_or_refused_without_showing_it() {
        let table = r#"
            string | "a" | "a"
            string | 1 | error: must be a string in quotes
            switch | true | true
            switch | "true" | error: must be true or false
            strings | ["a", ""] | ["a", ""]
            strings | [] | []
            strings | "secret" | error: must be a list of strings, such as ["a", "b"]
            strings | ["a", 1] | error: must be a list of strings, such as ["a", "b"]
            command | ["ls", ""] | ["ls", ""]
            command | [] | error: must name a program
            command | [""] | error: must name a program
            command | "ls" | error: must be a list of strings, such as ["a", "b"]
            tool | ["ls"] | ["ls"]
            tool | ["/bin/ls"] | ["/bin/ls"]
            tool | ["./ls"] | error
            tool | [] | error: must name a program
            variable | "A_1b" | "A_1b"
            variable | "$KEY" | error: must be the name of an environment variable alone, without $ or braces
            variable | "${KEY}" | error: must be the name of an environment variable alone, without $ or braces
            tool | ["$HOME/bin/x"] | error: variables such as $HOME are not filled in here; write ~/
            tool | ["$EDITOR"] | error: variables such as $EDITOR are not filled in here; write the path itself
            tool | ["sh", "$HOME"] | ["sh", "$HOME"]
            variable | "" | error: must be the name of an environment variable, not the key itself
            variable | "sk-secret" | error: must be the name of an environment variable, not the key itself
            variable | "größe" | error: must be the name of an environment variable, not the key itself
            variable | 1 | error: must be a string in quotes
        "#;
        for [kind, value, expected] in rows(table) {
            let found = with_value(value, |value| match kind {
                "string" => shown(string(value)),
                "switch" => shown(switch(value)),
                "strings" => shown(strings(value)),
                "command" => shown(command(value)),
                "tool" => shown(tool_command(value)),
                "variable" => shown(variable(value)),
                _ => unreachable!("{kind}"),
            });
            let is_right = if expected == "error" {
                found.starts_with("error: ")
            } else {
                found == expected
            };
            assert!(
                is_right && !found.contains("secret"),
                "{kind} {value}: {found}"
            );
        }
    }

    #[test]
    fn a_value_is_json_unless_it_is_a_date_or_endless_and_a_scalar_unless_it_has_parts() {
        // A value, whether JSON has it, and its text.
        let table = r#"
            "a b" | yes | a b
            0x10 | yes | 16
            -1_000 | yes | -1000
            1_000.5 | yes | 1000.5
            1e3 | yes | 1e3
            true | yes | true
            inf | no | inf
            -nan | no | -nan
            2026-11-29 | no | none
            [1, "a"] | yes | none
            [1, [inf]] | no | none
            { a = 1 } | yes | none
            { a = { b = 12:00:00 } } | no | none
            [] | yes | none
        "#;
        for [value, has_json, text] in rows(table) {
            with_value(value, |read| {
                assert_eq!(is_json(read), has_json == "yes", "{value}");
                assert_eq!(scalar(read).as_deref().unwrap_or("none"), text, "{value}");
            });
        }
    }

    #[test]
    fn a_header_is_checked_and_its_value_never_shown() {
        for (name, value, is_right) in [
            ("X-Team", "a b", true),
            ("x-team", "", true),
            ("Authorization", "Bearer x", true),
            ("X Team", "a", false),
            ("", "a", false),
            ("X-Team", "a\nb", false),
            ("X-Team", "a\rb", false),
            ("X-Team", "a\0", false),
            ("Content-Length", "5", false),
            ("content-length", "5", false),
            ("Transfer-Encoding", "chunked", false),
        ] {
            let found = check_header(name, &Secret::new(value));
            assert_eq!(found.is_ok(), is_right, "{name} {value:?}");
        }
    }

    #[test]
    fn pairs_are_read_in_the_order_of_the_file() {
        let found = with_value(r#"{ b = "1", a = "2" }"#, pairs).expect("pairs");
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(name, text)| (&**name, text.expose()))
            .collect();
        assert_eq!(found, [("b", "1"), ("a", "2")]);
        for (value, error) in [
            ("1", "must be a table"),
            ("{ a = 1 }", "a: must be a string in quotes"),
        ] {
            let found = with_value(value, pairs).expect_err(value);
            assert_eq!(found.to_string(), error);
        }
    }

    #[test]
    fn the_entries_of_a_table_are_all_read_and_the_first_fault_is_told_with_its_keys() {
        let text = r#"{ c = 1, a = "x", b = 2 }"#;
        with_value(text, |value| {
            let mut table = Table::of(value).expect("a table");
            let mut seen = Vec::new();
            let result = table.read(|entry| {
                seen.push(entry.key.to_owned());
                entry.read(string).map(|_| ())
            });
            assert_eq!(seen, ["c", "a", "b"]);
            let error = result.expect_err("two are wrong");
            assert_eq!(error.to_string(), "c.c: must be a string in quotes");
            assert_eq!(error.at, Some("v = { ".len()));

            let error = table.error("b", "is wrong");
            assert_eq!(
                (error.to_string(), error.at),
                (
                    "b: is wrong".to_owned(),
                    Some(text.find("b =").expect("b") + 4)
                )
            );
            let error = table.error("gone", "is wrong");
            assert_eq!((error.to_string(), error.at), ("is wrong".to_owned(), None));

            assert_eq!(table.take("a").expect("it is there").key, "a");
            assert!(table.take("a").is_none());
            let (first, second) = table.split(|entry| entry.key == "b");
            let keys = |table: &Table| {
                Vec::from_iter(table.entries().iter().map(|entry| entry.key.to_owned()))
            };
            assert_eq!(
                (keys(&first), keys(&second)),
                (vec!["b".to_owned()], vec!["c".to_owned()])
            );
        });
        with_value("1", |value| assert!(Table::of(value).is_none()));
    }
}
