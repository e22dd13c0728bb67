//! Reads values of the configuration file as the expected types, or says what is wrong with them (pure).

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeValue, ValueDeserializer};

use crate::secret::Secret;
use crate::text::habits::{self, WordPlace};

/// An entry of a table.
#[derive(Clone, Copy)]
pub struct TableEntry<'a> {
    pub key: &'a str,
    /// The place of the key, in bytes.
    pub at: usize,
    pub value: &'a DeValue<'a>,
}

/// What is wrong with a file.
#[derive(Debug)]
pub struct Wrong {
    /// The place, in bytes; `None` until it is known.
    pub at: Option<usize>,
    /// Once the place is known, it begins with the key and the sections around it.
    pub message: String,
}

impl<Reason: Into<String>> From<Reason> for Wrong {
    fn from(reason: Reason) -> Wrong {
        Wrong {
            at: None,
            message: reason.into(),
        }
    }
}

impl Wrong {
    /// The same, found in the value of this entry. If that is a table and the reason begins with one of its keys, the place is
    /// that of this key.
    pub fn within(mut self, entry: &TableEntry) -> Wrong {
        let message = self.message;
        if self.at.is_some() {
            self.message = format!("{}.{message}", entry.key);
            return self;
        }
        self.at = Some(entry.at);
        if let Some(table) = entry.value.as_table()
            && let Some((name, _)) = message.split_once(':')
            && let Some((key, _)) = table.get_key_value(name)
        {
            self.at = Some(key.span().start);
        }
        self.message = format!("{}: {message}", entry.key);
        self
    }
}

/// Hands the entries of a table to `read`, in the order of the file.
pub fn for_each<'a>(
    table: &'a DeValue<'a>,
    mut read: impl FnMut(&TableEntry<'a>) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    let table = table.as_table().ok_or("must be a table")?;
    let mut entries = Vec::new();
    for (key, value) in table {
        entries.push(TableEntry {
            key: key.get_ref(),
            at: key.span().start,
            value: value.get_ref(),
        });
    }
    entries.sort_by_key(|entry| entry.at);
    for entry in entries {
        read(&entry).map_err(|wrong| wrong.within(&entry))?;
    }
    Ok(())
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
    if name.is_empty() || name.contains(is_other) {
        return Err("must be the name of an environment variable, not the key itself".to_owned());
    }
    Ok(name)
}

/// Names, each with its text, in the order of the file.
pub fn table(value: &DeValue) -> Result<Vec<(String, Secret)>, Wrong> {
    let mut pairs = Vec::new();
    for_each(value, |entry| {
        let text = Secret::new(string(entry.value)?);
        pairs.push((entry.key.to_owned(), text));
        Ok(())
    })?;
    Ok(pairs)
}

/// The headers of every request.
pub fn headers(value: &DeValue) -> Result<Vec<(String, Secret)>, Wrong> {
    let headers = table(value)?;
    for (name, text) in &headers {
        check_header(name, text)?;
    }
    Ok(headers)
}

/// Checks that a header can be sent.
pub fn check_header(name: &str, value: &Secret) -> Result<(), String> {
    let has_name = http::HeaderName::from_bytes(name.as_bytes()).is_ok();
    // The length of a request follows from its body.
    let lower = name.to_ascii_lowercase();
    let sets_length = ["content-length", "transfer-encoding"].contains(&lower.as_str());
    if has_name && !sets_length && http::HeaderValue::from_str(value.expose()).is_ok() {
        return Ok(());
    }
    Err(format!(
        "{name}: no header can have this name or this value"
    ))
}

/// The error for an unknown key. `keys` are those that there are.
pub fn unknown(place: WordPlace, key: &str, keys: &[&str]) -> Wrong {
    let mut reason = format!("there is no setting “{key}”");
    if let Some(meant) = habits::meant(place, key, keys) {
        reason += &format!("; did you mean {meant}?");
    }
    reason.into()
}
