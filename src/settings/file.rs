//! The configuration file: its keys and sections with their lines, or what is wrong on which line (pure).

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::key::Key;
use super::table::{self, SettingKind, Values};
use super::tools::ToolServer;
use super::value::{self, Fault, Section, TableEntry, in_order, string, unknown};
use crate::address::Address;
use crate::flags::Arguments;
use crate::provider::Dialect;
use crate::provider::request::Field;
use crate::provider::table::{DIALECTS, find_dialect};
use crate::secret::Secret;
use crate::shape::Shape;
use crate::text::habits::Place;

/// What the name of a role may be, for errors.
pub const ROLE_NAMES: &str = "the name of a role has only letters A-Z a-z, digits, _ and -";

/// The kinds of sections.
const SECTIONS: [&str; 3] = ["providers", "tools", "roles"];

/// A configuration file. Everything in it is in the order of the file.
#[derive(Debug, Default)]
pub struct File {
    pub settings: Vec<FileSetting>,
    pub providers: Vec<ProviderSection>,
    pub tools: Vec<ToolServer>,
    pub roles: Vec<RoleSection>,
}

/// A setting in the file, with its value as text.
#[derive(Debug)]
pub struct FileSetting {
    pub key: String,
    pub text: String,
    pub line: usize,
}

/// A section `[providers.NAME]`.
#[derive(Debug, Default)]
pub struct ProviderSection {
    pub name: String,
    pub line: usize,
    pub api: Option<&'static Dialect>,
    pub base_url: Option<Address>,
    pub key: Key,
    pub model: Option<String>,
    pub headers: Vec<(String, Secret)>,
    pub options: Vec<Field>,
}

/// A section `[roles.NAME]`.
#[derive(Debug, Default)]
pub struct RoleSection {
    pub name: String,
    /// Its keys as options; its question is in `words`.
    pub options: Arguments,
    /// A file with the system prompt.
    pub system_file: Option<String>,
    /// Its keys, each with its line.
    pub lines: BTreeMap<String, usize>,
}

/// Reads the text of a configuration file. An error begins with the line.
pub fn read(text: &str) -> Result<File, String> {
    let ends = text.match_indices('\n').map(|(at, _)| at);
    let lines = Lines(ends.collect());
    read_entries(text, &lines).map_err(|fault| {
        let line = lines.of(fault.at);
        format!("line {line}: {}", fault.message)
    })
}

fn read_entries(text: &str, lines: &Lines) -> Result<File, Fault> {
    let table = DeTable::parse(text).map_err(|error| Fault {
        at: error.span().map_or(0, |span| span.start),
        message: error.message().to_owned(),
    })?;
    let mut file = File::default();
    for entry in in_order(table.get_ref()) {
        let key = entry.key;
        if SECTIONS.contains(&key) {
            for section in sections(&entry)? {
                match key {
                    "providers" => file.providers.push(ProviderSection::read(&section, lines)?),
                    "tools" => file.tools.push(ToolServer::read(&section)?),
                    _ => file.roles.push(RoleSection::read(&section, lines)?),
                }
            }
        } else {
            file.settings.push(FileSetting {
                key: key.to_owned(),
                text: setting(key, entry.value).map_err(|reason| entry.fault("", &reason))?,
                line: lines.of(entry.at),
            });
        }
    }
    Ok(file)
}

/// The sections `[KIND.NAME]`, in the order of the file.
fn sections<'a>(kind: &TableEntry<'a>) -> Result<Vec<Section<'a>>, Fault> {
    let path = format!("{}.", kind.key);
    let named = value::entries(kind.value).map_err(|reason| kind.fault("", &reason))?;
    let mut sections = Vec::new();
    for entry in named {
        let entries = value::entries(entry.value).map_err(|reason| entry.fault(&path, &reason))?;
        sections.push(Section {
            name: entry.key,
            path: format!("{path}{}", entry.key),
            at: entry.at,
            entries,
        });
    }
    Ok(sections)
}

/// Where each line of the file ends, in bytes.
struct Lines(Vec<usize>);

impl Lines {
    /// The line of a place in bytes, counted from 1.
    fn of(&self, at: usize) -> usize {
        1 + self.0.partition_point(|end| *end < at)
    }
}

const PROVIDER_KEYS: &[&str] = &[
    "api", "base_url", "key_env", "key_cmd", "model", "headers", "options",
];

impl ProviderSection {
    fn read(section: &Section, lines: &Lines) -> Result<ProviderSection, Fault> {
        let mut provider = ProviderSection {
            name: section.name.to_owned(),
            line: lines.of(section.at),
            ..ProviderSection::default()
        };
        section.read_entries(|key, value| provider.set(key, value))?;
        Ok(provider)
    }

    fn set(&mut self, key: &str, value: &DeValue) -> Result<(), String> {
        match key {
            "api" => self.api = Some(dialect(&string(value)?)?),
            "base_url" => self.base_url = Some(Address::parse(&string(value)?)?),
            "key_env" | "key_cmd" => self.key.set(key, value)?,
            "model" => self.model = Some(setting(key, value)?),
            "headers" => self.headers = value::headers(value)?,
            "options" => {
                for option in options(value)? {
                    self.options.push(Field::parse(&option)?);
                }
            }
            _ => return Err(unknown(Place::Provider, key, PROVIDER_KEYS)),
        }
        Ok(())
    }
}

fn dialect(name: &str) -> Result<&'static Dialect, String> {
    if let Some(dialect) = find_dialect(name) {
        return Ok(dialect);
    }
    let names: Vec<&str> = DIALECTS.iter().map(|dialect| dialect.name).collect();
    Err(format!("“{name}” is not one of {}", names.join(", ")))
}

/// Whether this can be the name of a role. A path cannot.
pub fn is_role(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.bytes().all(is_allowed)
}

const ROLE_KEYS: &[&str] = &[
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
];

impl RoleSection {
    fn read(section: &Section, lines: &Lines) -> Result<RoleSection, Fault> {
        let name = section.name;
        if !is_role(name) {
            return Err(section.fault(ROLE_NAMES));
        }
        let mut role = RoleSection {
            name: name.to_owned(),
            ..RoleSection::default()
        };
        section.read_entries(|key, value| role.set(key, value))?;
        for entry in &section.entries {
            role.lines.insert(entry.key.to_owned(), lines.of(entry.at));
        }
        Ok(role)
    }

    fn set(&mut self, key: &str, value: &DeValue) -> Result<(), String> {
        let options = &mut self.options;
        match key {
            "provider" => options.provider = Some(setting(key, value)?),
            "model" => options.model = Some(setting(key, value)?),
            "effort" => options.effort = Some(setting(key, value)?),
            "messages" => options.messages = Some(setting(key, value)?),
            "system" => options.system = Some(setting(key, value)?.into()),
            "system_file" => self.system_file = Some(string(value)?),
            "tools" => options.tools = value::strings(value)?,
            "schema" => options.schema = Some(schema(value)?),
            "web" => options.web = value::switch(value)?,
            "options" => options.options = self::options(value)?,
            "question" => options.words = vec![string(value)?.into()],
            _ => return Err(unknown(Place::Role, key, ROLE_KEYS)),
        }
        Ok(())
    }
}

/// The fields of a request, as they would be typed after `-o`.
fn options(value: &DeValue) -> Result<Vec<String>, String> {
    let mut options = Vec::new();
    for entry in value::entries(value)? {
        let key = entry.key;
        if !value::is_json(entry.value) {
            return Err(format!("{key}: must be a value that JSON has"));
        }
        let json: serde_json::Value = value::read(entry.value, "a value that JSON has")?;
        let option = format!("{key}={json}");
        Field::parse(&option)?;
        options.push(option);
    }
    Ok(options)
}

/// The value of a setting as its environment variable would have it.
fn setting(key: &str, value: &DeValue) -> Result<String, String> {
    let Some(row) = table::find(key) else {
        let mut keys = SECTIONS.to_vec();
        keys.extend(table::SETTINGS.iter().map(|row| row.key));
        return Err(unknown(Place::Settings, key, &keys));
    };
    let text = match row.kind {
        SettingKind::Limit(_) if value.is_str() => string(value)?,
        SettingKind::Limit(_) | SettingKind::Whole(..) => whole_number(value)?,
        SettingKind::Switch(_) => value::switch(value)?.to_string(),
        _ => string(value)?,
    };
    // The other values do not matter: this one is only checked.
    row.set(&mut Values::default(), &text)?;
    Ok(text)
}

fn whole_number(value: &DeValue) -> Result<String, String> {
    let number: i64 = value::read(value, "a whole number")?;
    Ok(number.to_string())
}

/// A value for `--schema`. The JSON file that it may name is read only when the role is used.
fn schema(value: &DeValue) -> Result<String, String> {
    let spec = string(value)?;
    if !spec.ends_with(".json") {
        Shape::from_spec(&spec)?;
    }
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::tests::rows;

    #[test]
    fn settings_and_providers_are_read_with_their_lines() {
        let file = read(concat!(
            "provider = \"work\"\nmax_history = 400_000\nsave = false\nexpire = \"12h\"\n\n[providers.work]\n",
            "api = \"anthropic\"\nbase_url = \"https://llm.corp.example/v1\"\nkey_cmd = [\"pass\", \"x\"]\nmodel = \"m\"\n",
            "headers = { x-team = \"infra\" }\n[providers.another]\nkey_env = \"K\"\n",
        ))
        .expect("a valid file");
        let mut settings = Vec::new();
        for setting in &file.settings {
            settings.push((setting.key.as_str(), setting.text.as_str(), setting.line));
        }
        let expected = r#"[("provider", "work", 1), ("max_history", "400000", 2), ("save", "false", 3), ("expire", "12h", 4)]"#;
        assert_eq!(format!("{settings:?}"), expected);
        let [work, another] = &file.providers[..] else {
            panic!("two providers")
        };
        let found = (&*work.name, work.line, work.api.map(|api| api.name));
        assert_eq!(found, ("work", 6, Some("anthropic")));
        let address = work.base_url.as_ref().map(ToString::to_string);
        assert_eq!(address.as_deref(), Some("https://llm.corp.example/v1"));
        let command = vec!["pass".to_owned(), "x".to_owned()];
        assert_eq!(work.key, Key::Command(command));
        assert_eq!(work.headers.len(), 1);
        assert_eq!(another.key, Key::Variables(vec!["K".to_owned()]));
    }

    #[test]
    fn what_is_wrong_is_said_with_line_and_key() {
        for [line, words, text] in rows(
            r##"
            2 | providr: there is no setting “providr” | ␊providr = "x"
            1 | messages: must be a whole number | messages = "10"
            1 | messages: “-1” | messages = -1
            1 | no setting “a” | a = 1␊messages = 1
            1 | keep: must be a string | keep = 0
            1 | save: must be true or false | save = "false"
            1 | - | x = = 1
            2 | duplicate | provider = "x"␊provider = "y"
            2 | providers.work.base_url: is not a URL | [providers.work]␊base_url = "nope"
            2 | providers.work.api: “openapi” is not one of | [providers.work]␊api = "openapi"
            2 | providers.work.key: there is no setting “key” | [providers.work]␊key = "sk-123"
            2 | must be the name of an environment variable | [providers.work]␊key_env = "sk-123"
            3 | not both | [providers.work]␊key_env = "A"␊key_cmd = ["b"]
            2 | must be a list | [providers.work]␊key_cmd = "pass show"
            3 | a b: no header can have this name | [providers.work.headers]␊x-team = "infra"␊"a b" = "c"
            2 | providers.work.options: -m chooses the model | [providers.work]␊options = { model = "m" }
            1 | providers: must be a table | providers = 1
            1 | provider: must be a string | [provider.work]␊model = "m"
        "##,
        ) {
            let text = &text.replace('␊', "\n");
            let wrong = read(text).map(|_| ()).expect_err(text);
            let is_right = wrong.starts_with(&format!("line {line}: ")) && wrong.contains(words);
            assert!(is_right && !wrong.contains("sk-123"), "{text}: {wrong}");
        }
    }

    /// Lines of a configuration file, most of them nearly right.
    fn lines() -> impl Strategy<Value = String> {
        let keys = "provider messages save expire keep pairs api base_url key_env key_cmd model headers options command url \
                    env env_from cwd only allow timeout start system_file tools schema question nonsense \"ä\"";
        let values = "\"x\" \"\" \"5m\" \"https://h/x?y=z\" \"/bin/sh\" 1 -1 1_0 0x1f 1e400 nan true [] [\"a\"] [[1]] {a=\"b\"} \
                      {\"ä\"=1} 1979-05-27 ''' \"\\u00e4\" sk-123";
        let sections = "[providers.work] [providers.openai] [tools.db] [tools.Db] [tools] [[tools]] [roles.review] \
                        [roles.\"x/y\"] [x [providers.x.headers]";
        let one_of =
            |words: &'static str| prop::sample::select(words.split(' ').collect::<Vec<_>>());
        prop_oneof![
            5 => (one_of(keys), one_of(values)).prop_map(|(key, value)| format!("{key} = {value}")),
            2 => one_of(sections).prop_map(str::to_owned),
            1 => "[a-z\\[\\]=\"'.#{},\\r ä]{0,12}",
        ]
    }

    proptest! {
        #[test]
        fn whatever_a_file_says_it_is_read_or_a_line_of_it_is_named(lines in prop::collection::vec(lines(), 0..8)) {
            if let Err(wrong) = read(&lines.join("\n")) {
                let line = wrong.strip_prefix("line ").and_then(|rest| rest.split_once(": "));
                let line: usize = line.expect("a line").0.parse().expect("a number");
                prop_assert!((1..=lines.len().max(1)).contains(&line), "{}", wrong);
            }
        }
    }
}
