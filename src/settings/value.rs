//! Reads values of the configuration file as the expected types, or says what is wrong with them (pure).

use toml::de::{DeTable, DeValue};

use crate::secret::Secret;
use crate::text::habits::{self, Place};

/// An entry of a table.
#[derive(Clone, Copy)]
pub struct TableEntry<'a> {
    pub key: &'a str,
    /// The place of the key, in bytes.
    pub at: usize,
    pub value: &'a DeValue<'a>,
}

/// A section `[KIND.NAME]`.
pub struct Section<'a> {
    pub name: &'a str,
    /// With its kind, such as `tools.db`.
    pub path: String,
    /// Its place, in bytes.
    pub at: usize,
    pub entries: Vec<TableEntry<'a>>,
}

/// An error, and its place in bytes.
#[derive(Debug)]
pub struct Fault {
    pub at: usize,
    pub message: String,
}

/// The entries of a table in the order of the file.
pub fn in_order<'a>(table: &'a DeTable<'a>) -> Vec<TableEntry<'a>> {
    let mut entries = Vec::new();
    for (key, value) in table {
        entries.push(TableEntry {
            key: key.get_ref(),
            at: key.span().start,
            value: value.get_ref(),
        });
    }
    entries.sort_by_key(|entry| entry.at);
    entries
}

impl Section<'_> {
    /// Hands the key and the value of each entry to `set`, which says what is wrong with them.
    pub fn read_entries(
        &self,
        mut set: impl FnMut(&str, &DeValue) -> Result<(), String>,
    ) -> Result<(), Fault> {
        for entry in &self.entries {
            set(entry.key, entry.value).map_err(|reason| self.fault_in(entry, &reason))?;
        }
        Ok(())
    }

    /// The error for the section itself.
    pub fn fault(&self, reason: &str) -> Fault {
        Fault {
            at: self.at,
            message: format!("{}: {reason}", self.path),
        }
    }

    /// The error for an entry. If its value is a table and the reason begins with one of its keys, the place is that of
    /// this key.
    pub fn fault_in(&self, entry: &TableEntry, reason: &str) -> Fault {
        let mut at = entry.at;
        if let Some(table) = entry.value.as_table()
            && let Some((name, _)) = reason.split_once(':')
            && let Some((key, _)) = table.get_key_value(name)
        {
            at = key.span().start;
        }
        let message = format!("{}.{}: {reason}", self.path, entry.key);
        Fault { at, message }
    }
}

/// The text of a string.
pub fn string(value: &DeValue) -> Result<String, String> {
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(must_be("a string in quotes", value)),
    }
}

/// Reads `true` or `false`.
pub fn switch(value: &DeValue) -> Result<bool, String> {
    match value.as_bool() {
        Some(on) => Ok(on),
        None => Err(must_be("true or false", value)),
    }
}

/// The text of a string that is not empty.
pub fn filled_string(value: &DeValue) -> Result<String, String> {
    let text = string(value)?;
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    Ok(text)
}

/// A list of strings; an error shows the example.
pub fn strings(value: &DeValue, example: &str) -> Result<Vec<String>, String> {
    let Some(words) = value.as_array() else {
        return Err(format!("must be a list such as {example}"));
    };
    words.iter().map(|word| string(word.get_ref())).collect()
}

/// A program and its arguments; an error shows the example.
pub fn command(value: &DeValue, example: &str) -> Result<Vec<String>, String> {
    let words = strings(value, example)?;
    if words.first().is_none_or(String::is_empty) {
        return Err("names no command".to_owned());
    }
    Ok(words)
}

/// The name of a variable. A user may have written the key itself, so errors do not show it.
pub fn variable(value: &DeValue) -> Result<String, String> {
    let name = filled_string(value)?;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins_well = !name.as_bytes()[0].is_ascii_digit();
    if begins_well && name.bytes().all(is_allowed) {
        Ok(name)
    } else {
        Err("must be the name of an environment variable, not the key itself".to_owned())
    }
}

/// Names, each with its text, in the order of the file. An error says what is wrong with one.
type Texts = Result<Vec<(String, Secret)>, String>;

/// Reads a table of texts. `read` checks each name with its text. An error shows the example.
pub fn table(
    value: &DeValue,
    example: &str,
    read: impl Fn(&str, String) -> Result<Secret, String>,
) -> Texts {
    let Some(table) = value.as_table() else {
        return Err(format!("must be a table such as {example}"));
    };
    let mut entries = Vec::new();
    for entry in in_order(table) {
        let name = entry.key;
        match string(entry.value).and_then(|text| read(name, text)) {
            Ok(secret) => entries.push((name.to_owned(), secret)),
            Err(reason) => return Err(format!("{name}: {reason}")),
        }
    }
    Ok(entries)
}

/// The headers of every request.
pub fn headers(value: &DeValue) -> Texts {
    table(value, "{ x-team = \"infra\" }", header)
}

/// The value of a header, if the header can be sent.
pub fn header(name: &str, value: String) -> Result<Secret, String> {
    if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
        return Err("that cannot be the name of a header".to_owned());
    }
    if http::HeaderValue::from_str(&value).is_err() {
        return Err("its value has characters that no header can have".to_owned());
    }
    Ok(Secret::new(value))
}

/// The error for a value of the wrong type. `wanted` says in words what it must be.
pub fn must_be(wanted: &str, value: &DeValue) -> String {
    format!("must be {wanted}, not a value of type {}", value.type_str())
}

/// The error for an unknown key. `keys` are those that there are.
pub fn unknown(place: Place, key: &str, keys: &[&str]) -> String {
    let mut reason = format!("there is no setting “{key}”");
    if let Some(meant) = habits::meant(place, key, keys) {
        reason += &format!("; did you mean {meant}?");
    }
    reason
}
