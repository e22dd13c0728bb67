//! Reads values of the configuration file as the expected types, or says what is wrong with them (pure).

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

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

/// The entries of a value that must be a table.
pub fn entries<'a>(value: &'a DeValue<'a>) -> Result<Vec<TableEntry<'a>>, String> {
    let table = value.as_table().ok_or("must be a table")?;
    Ok(in_order(table))
}

impl TableEntry<'_> {
    /// The error for an entry below this path. If its value is a table and the reason begins with one of its keys, the
    /// place is that of this key.
    pub fn fault(&self, path: &str, reason: &str) -> Fault {
        let mut at = self.at;
        if let Some(table) = self.value.as_table()
            && let Some((name, _)) = reason.split_once(':')
            && let Some((key, _)) = table.get_key_value(name)
        {
            at = key.span().start;
        }
        let message = format!("{path}{}: {reason}", self.key);
        Fault { at, message }
    }
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

    /// The error for an entry.
    pub fn fault_in(&self, entry: &TableEntry, reason: &str) -> Fault {
        entry.fault(&format!("{}.", self.path), reason)
    }
}

/// The value as a type of Rust. An error does not show it, because it may be a key.
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

pub fn string(value: &DeValue) -> Result<String, String> {
    read(value, "a string in quotes")
}

pub fn switch(value: &DeValue) -> Result<bool, String> {
    read(value, "true or false")
}

pub fn strings(value: &DeValue) -> Result<Vec<String>, String> {
    read(value, "a list of strings")
}

/// A program and its arguments.
pub fn command(value: &DeValue) -> Result<Vec<String>, String> {
    let words = strings(value)?;
    if words.first().is_none_or(String::is_empty) {
        return Err("names no command".to_owned());
    }
    Ok(words)
}

/// The name of a variable. A user may have written the key itself, so errors do not show it.
pub fn variable(value: &DeValue) -> Result<String, String> {
    let name = string(value)?;
    let is_other = |character: char| !character.is_ascii_alphanumeric() && character != '_';
    if name.contains(is_other) {
        return Err("must be the name of an environment variable, not the key itself".to_owned());
    }
    Ok(name)
}

/// Names, each with its text, in the order of the file.
pub fn table(value: &DeValue) -> Result<Vec<(String, Secret)>, String> {
    let mut pairs = Vec::new();
    for entry in entries(value)? {
        let name = entry.key;
        let text = string(entry.value).map_err(|reason| format!("{name}: {reason}"))?;
        pairs.push((name.to_owned(), Secret::new(text)));
    }
    Ok(pairs)
}

/// The headers of every request.
pub fn headers(value: &DeValue) -> Result<Vec<(String, Secret)>, String> {
    let headers = table(value)?;
    for (name, text) in &headers {
        check_header(name, text)?;
    }
    Ok(headers)
}

/// Checks that a header can be sent.
pub fn check_header(name: &str, value: &Secret) -> Result<(), String> {
    let has_name = http::HeaderName::from_bytes(name.as_bytes()).is_ok();
    if has_name && http::HeaderValue::from_str(value.expose()).is_ok() {
        return Ok(());
    }
    Err(format!(
        "{name}: no header can have this name or this value"
    ))
}

/// The error for an unknown key. `keys` are those that there are.
pub fn unknown(place: Place, key: &str, keys: &[&str]) -> String {
    let mut reason = format!("there is no setting “{key}”");
    if let Some(meant) = habits::meant(place, key, keys) {
        reason += &format!("; did you mean {meant}?");
    }
    reason
}
