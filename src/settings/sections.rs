//! The kinds of sections in the configuration file, with the keys of each, and the errors for what does not exist (pure).

use std::path::Path;

use toml::de::DeValue;

use super::table::{self, SETTINGS};
use super::value::{ConfigError, Table, TableEntry};
use crate::flags::synonyms::{self, WordPlace};
use crate::provider::table as providers;
use crate::text::nearest::nearest;

/// The keys at the top of the file that hold sections.
pub const SECTIONS: [&str; 3] = ["providers", "tools", "roles"];

/// Advice where there is no home, and so no configuration file.
pub const NO_PLACE: &str = "set HOME or XDG_CONFIG_HOME to have a configuration file";

/// A kind of section.
struct SectionKind {
    place: WordPlace,
    /// A section of this kind that the manual has.
    example: &'static str,
    keys: &'static [&'static str],
}

/// A key that two kinds have is said to belong to the first of them.
static KINDS: [SectionKind; 5] = [
    SectionKind {
        place: WordPlace::Provider,
        example: "[providers.work]",
        keys: &[
            "api", "base_url", "key_env", "key_cmd", "model", "headers", "options",
        ],
    },
    SectionKind {
        place: WordPlace::Server,
        example: "[tools.shop]",
        keys: &[
            "command",
            "url",
            "env",
            "env_from",
            "cwd",
            "headers",
            "key_env",
            "key_cmd",
            "only",
            "allow",
            "timeout",
            "start",
            "about_run",
            "confine",
        ],
    },
    SectionKind {
        place: WordPlace::Command,
        example: "[tools.date.calendar]",
        keys: &[
            "run", "about", "stdin", "input", "reads", "dashes", "timeout", "env", "env_from",
            "cwd", "confine",
        ],
    },
    SectionKind {
        place: WordPlace::Confinement,
        example: "confine = { read = [\"/path\"] }",
        keys: &["read", "write", "network"],
    },
    SectionKind {
        place: WordPlace::Role,
        example: "[roles.review]",
        keys: &[
            "provider",
            "model",
            "effort",
            "messages",
            "system",
            "system_file",
            "tools",
            "schema",
            "web",
            "options",
            "question",
        ],
    },
];

/// Returns the kind of section that a place is. The top of the file is none.
fn kind(place: WordPlace) -> Option<&'static SectionKind> {
    KINDS.iter().find(|kind| kind.place == place)
}

/// Returns the table that a section is.
pub fn section<'a>(value: &'a DeValue<'a>, place: WordPlace) -> Result<Table<'a>, ConfigError> {
    if let Some(table) = Table::of(value) {
        return Ok(table);
    }
    let example = kind(place).map(|kind| format!(", such as {}", kind.example));
    Err(format!("must be a table{}", example.unwrap_or_default()).into())
}

/// Returns the keys that there are in a place.
pub fn keys(place: WordPlace) -> Vec<&'static str> {
    if let Some(kind) = kind(place) {
        return kind.keys.to_vec();
    }
    let settings = SETTINGS.iter().map(|row| row.key);
    SECTIONS.into_iter().chain(settings).collect()
}

/// Returns the error for a key that does not exist in this place. It says where the key belongs, or what was meant.
pub fn unknown_key(place: WordPlace, key: &str) -> ConfigError {
    // A word of another program can be a key of another section here.
    if synonyms::habit(place, key).is_none()
        && let Some(home) = home_of(key)
    {
        return home.into();
    }
    let mut reason = format!("there is no setting “{key}”");
    if let Some(meant) = synonyms::meant(place, key, &keys(place)) {
        reason += &format!("; did you mean {meant}?");
    } else if place != WordPlace::Settings
        && let Some(meant) = nearest(key, SETTINGS.iter().map(|row| row.key))
    {
        reason += &format!("; did you mean {meant}, above the first section?");
    }
    reason.into()
}

/// Whether a key of the section of a server belongs to a command alone.
pub fn is_only_of_command(key: &str) -> bool {
    let is_key = |place| kind(place).is_some_and(|kind| kind.keys.contains(&key));
    is_key(WordPlace::Command) && !is_key(WordPlace::Server)
}

/// Says where a key belongs, if it exists at all.
fn home_of(key: &str) -> Option<String> {
    // In TOML, all that follows the head of a section is in it.
    if table::find(key).is_some() {
        return Some("this setting belongs above the first section".to_owned());
    }
    let mut kinds = KINDS.iter();
    // What a command is confined to is no section of its own.
    let kind =
        kinds.find(|kind| kind.place != WordPlace::Confinement && kind.keys.contains(&key))?;
    let example = kind.example;
    Some(format!("this key belongs in a section such as {example}"))
}

/// Returns advice where there is no section of this kind with some name. `file` is the configuration file; without a home there
/// is none.
pub fn advice_to_add(kind: &str, file: Option<&Path>) -> String {
    let Some(file) = file else {
        return NO_PLACE.to_owned();
    };
    let file = file.display();
    let or_file = if kind == "roles" {
        ", or a file roles/NAME.md next to it"
    } else {
        ""
    };
    format!("add one with a section [{kind}.NAME] in {file}{or_file}")
}

/// Returns advice where there is no tool at all.
pub fn advice_to_add_tools(file: Option<&Path>) -> String {
    let section = advice_to_add("tools", file);
    format!("{section}, or name an mcp.json of another program with the setting mcp (Q_MCP)")
}

/// Whether TOML takes a key without quotes.
pub fn is_bare(key: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !key.is_empty() && key.bytes().all(is_allowed)
}

/// Returns what is wrong with the header of a section that no parser takes because a setting has its first name: `[provider.work]`
/// below `provider = "work"`. `None` if the line is none.
pub fn fault_of_header(line: &str) -> Option<String> {
    let header = line.trim_start().strip_prefix('[')?.split(']').next()?;
    let (kind, name) = header.split_once('.')?;
    if !header.split('.').all(is_bare) || SECTIONS.contains(&kind) {
        return None;
    }
    let meant = synonyms::meant(WordPlace::Section, kind, &SECTIONS)?;
    Some(format!(
        "there is no section [{header}]; did you mean [{meant}.{name}]?"
    ))
}

/// Returns the error for a table at the top of the file that is not a kind of section.
pub fn unknown_section(top: &TableEntry) -> ConfigError {
    let table = Table::of(top.value);
    let entries = table.iter().flat_map(Table::entries);
    let is_section = |entry: &&TableEntry| entry.value.is_table() && is_bare(entry.key);
    let name = entries.clone().find(is_section).map(|entry| entry.key);
    let has_setting = entries
        .clone()
        .any(|entry| table::find(entry.key).is_some());
    let kind = top.key;
    let written = match name {
        Some(name) => format!("{kind}.{name}"),
        None => kind.to_owned(),
    };
    let advice = if providers::find(kind).is_some() {
        format!("did you mean [providers.{kind}]?")
    } else if let Some(meant) = synonyms::meant(WordPlace::Section, kind, &SECTIONS) {
        format!("did you mean [{meant}.{}]?", name.unwrap_or("NAME"))
    } else if has_setting {
        "its settings belong above the first section".to_owned()
    } else {
        "a section is [providers.NAME], [tools.NAME], [tools.NAME.COMMAND] or [roles.NAME]"
            .to_owned()
    };
    format!("there is no section [{written}]; {advice}").into()
}
