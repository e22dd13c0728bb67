//! The configuration file: its keys and sections with their lines, or what is wrong on which line (pure).

use toml::de::{DeInteger, DeTable, DeValue};

use super::table::{self, SettingKind, SettingRow, Values};
use super::tools::{self, KeyPlace, ToolServer};
use super::value::{
    self, Fault, Section, TableEntry, filled_string, in_order, must_be, string, unknown,
};
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
    pub key: &'static str,
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
    pub key: KeyPlace,
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
    pub lines: Vec<(String, usize)>,
}

/// An error in the file, and its line, counted from 1.
#[derive(Debug, PartialEq, Eq)]
pub struct Wrong {
    pub line: usize,
    pub message: String,
}

/// Reads the text of a configuration file.
pub fn read(text: &str) -> Result<File, Wrong> {
    let lines = Lines::new(text);
    read_entries(text, &lines).map_err(|fault| Wrong {
        line: lines.of(fault.at),
        message: fault.message,
    })
}

fn read_entries(text: &str, lines: &Lines) -> Result<File, Fault> {
    let table = DeTable::parse(text).map_err(|error| Fault {
        at: error.span().map_or(0, |span| span.start),
        message: error.message().to_owned(),
    })?;
    let mut file = File::default();
    for entry in in_order(table.get_ref()) {
        match entry.key {
            "providers" => {
                for section in sections(entry)? {
                    file.providers.push(ProviderSection::read(&section, lines)?);
                }
            }
            "tools" => {
                for section in sections(entry)? {
                    file.tools.push(ToolServer::read(&section)?);
                }
            }
            "roles" => {
                for section in sections(entry)? {
                    file.roles.push(RoleSection::read(&section, lines)?);
                }
            }
            _ => {
                let at = entry.at;
                let setting = top_setting(entry, lines);
                let setting = setting.map_err(|message| Fault { at, message })?;
                file.settings.push(setting);
            }
        }
    }
    Ok(file)
}

/// Reads an entry at the top of the file that is no section.
fn top_setting(entry: TableEntry, lines: &Lines) -> Result<FileSetting, String> {
    let TableEntry { key, at, value } = entry;
    let Some(row) = table::find(key) else {
        return Err(unknown(Place::Settings, key, &known_keys()));
    };
    if value.is_table() {
        let sections = "[providers.NAME], [tools.NAME] and [roles.NAME]";
        return Err(format!("{key}: is no section; sections are {sections}"));
    }
    Ok(FileSetting {
        key: row.key,
        text: setting(row, value).map_err(|reason| format!("{key}: {reason}"))?,
        line: lines.of(at),
    })
}

/// The keys of settings, and the first words of sections.
fn known_keys() -> Vec<&'static str> {
    let mut keys = vec!["providers", "tools", "roles"];
    keys.extend(table::SETTINGS.iter().map(|row| row.key));
    keys
}

/// The sections `[KIND.NAME]`, in the order of the file.
fn sections(entry: TableEntry) -> Result<Vec<Section>, Fault> {
    let kind = entry.key;
    let Some(table) = entry.value.as_table() else {
        return Err(Fault {
            at: entry.at,
            message: format!("{kind}: must be sections such as [{kind}.work]"),
        });
    };
    let mut sections = Vec::new();
    for TableEntry { key, at, value } in in_order(table) {
        let path = format!("{kind}.{key}");
        let Some(fields) = value.as_table() else {
            let message = format!("{path}: must be a section");
            return Err(Fault { at, message });
        };
        sections.push(Section {
            name: key,
            path,
            at,
            entries: in_order(fields),
        });
    }
    Ok(sections)
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
            "model" => self.model = Some(filled_string(value)?),
            "headers" => self.headers = value::headers(value)?,
            "options" => self.options = request_fields(value)?,
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
        if role.options.system.is_some() && role.system_file.is_some() {
            return Err(section.fault("has both system and system_file"));
        }
        for entry in &section.entries {
            role.lines.push((entry.key.to_owned(), lines.of(entry.at)));
        }
        Ok(role)
    }

    fn set(&mut self, key: &str, value: &DeValue) -> Result<(), String> {
        let options = &mut self.options;
        let text = || match table::find(key) {
            Some(row) => setting(row, value),
            None => Err(unknown(Place::Role, key, ROLE_KEYS)),
        };
        match key {
            "provider" => options.provider = Some(text()?),
            "model" => options.model = Some(text()?),
            "effort" => options.effort = Some(text()?),
            "messages" => options.messages = Some(text()?),
            "system" => options.system = Some(text()?.into()),
            "system_file" => self.system_file = Some(filled_string(value)?),
            "tools" => options.tools = tool_names(value)?,
            "schema" => options.schema = Some(schema(value)?),
            "web" => options.web = value::switch(value)?,
            "options" => options.options = typed_fields(value)?,
            "question" => {
                let question = filled_string(value)?;
                options.words = vec![question.into()];
            }
            _ => return Err(unknown(Place::Role, key, ROLE_KEYS)),
        }
        Ok(())
    }
}

/// The names of tools; the one that stands for none must be alone.
fn tool_names(value: &DeValue) -> Result<Vec<String>, String> {
    let names = value::strings(value, "[\"git\"]")?;
    if names.len() > 1 && names.iter().any(|name| name == tools::NO_TOOLS) {
        return Err(format!("“{}” must be the only name", tools::NO_TOOLS));
    }
    Ok(names)
}

/// The fields of a request as they would be typed after `-o`.
fn typed_fields(value: &DeValue) -> Result<Vec<String>, String> {
    let mut typed = Vec::new();
    for field in request_fields(value)? {
        let option = format!("{}={}", field.path.join("."), field.value);
        Field::parse(&option)?;
        typed.push(option);
    }
    Ok(typed)
}

/// The value of a setting as its environment variable would have it.
fn setting(row: &SettingRow, value: &DeValue) -> Result<String, String> {
    let text = match row.kind {
        SettingKind::Limit(_) if value.as_str() == Some("all") => "all".to_owned(),
        SettingKind::Limit(_) => whole_number(value, "a whole number or \"all\"")?,
        SettingKind::Whole(..) => whole_number(value, "a whole number")?,
        SettingKind::Switch(_) => value::switch(value)?.to_string(),
        _ => string(value)?,
    };
    // The other values do not matter: this one is only checked.
    row.set(&mut Values::default(), &text)?;
    Ok(text)
}

fn whole_number(value: &DeValue, wanted: &str) -> Result<String, String> {
    let Some(number) = value.as_integer() else {
        return Err(must_be(wanted, value));
    };
    // If it is too large, the check against the setting's range says so.
    Ok(integer(number).map_or(number.as_str().to_owned(), |number| number.to_string()))
}

/// A value for `--schema`. The JSON file that it may name is read only when the role is used.
fn schema(value: &DeValue) -> Result<String, String> {
    let spec = string(value)?;
    if !spec.ends_with(".json") {
        Shape::from_spec(&spec)?;
    }
    Ok(spec)
}

/// The fields of a request.
fn request_fields(value: &DeValue) -> Result<Vec<Field>, String> {
    let Some(table) = value.as_table() else {
        return Err("must be a table such as { temperature = 0 }".to_owned());
    };
    let mut fields = Vec::new();
    for entry in in_order(table) {
        let field = Field {
            path: vec![entry.key.to_owned()],
            value: json(entry.value)?,
        };
        if field.names_model() {
            return Err("the model belongs in the section itself, as model = \"…\"".to_owned());
        }
        fields.push(field);
    }
    Ok(fields)
}

/// A value in JSON, as a request has it.
fn json(value: &DeValue) -> Result<serde_json::Value, String> {
    match value {
        DeValue::Boolean(on) => Ok((*on).into()),
        DeValue::Integer(number) => match integer(number) {
            Some(number) => Ok(number.into()),
            None => Err("has a number that is too large".to_owned()),
        },
        DeValue::Float(number) => match number.as_str().replace('_', "").parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(float.into()),
            _ => Err("has a number that JSON does not have".to_owned()),
        },
        DeValue::Array(values) => {
            let values = values.iter();
            values.map(|element| json(element.get_ref())).collect()
        }
        DeValue::Table(fields) => {
            let mut object = serde_json::Map::new();
            for (name, field) in fields {
                let name = name.get_ref().to_string();
                object.insert(name, json(field.get_ref())?);
            }
            Ok(object.into())
        }
        DeValue::String(text) => Ok(text.to_string().into()),
        DeValue::Datetime(time) => Ok(time.to_string().into()),
    }
}

/// A whole number, however TOML lets it be written.
fn integer(number: &DeInteger) -> Option<i64> {
    let digits = number.as_str().replace('_', "");
    i64::from_str_radix(&digits, number.radix()).ok()
}

/// The lines of the file, to find that of a place in it.
struct Lines {
    /// Where each line ends, in bytes.
    ends: Vec<usize>,
}

impl Lines {
    fn new(text: &str) -> Lines {
        let ends = text.match_indices('\n').map(|(at, _)| at);
        Lines {
            ends: ends.collect(),
        }
    }

    /// The line of a place in bytes, counted from 1.
    fn of(&self, at: usize) -> usize {
        1 + self.ends.partition_point(|end| *end < at)
    }
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
            settings.push((setting.key, setting.text.as_str(), setting.line));
        }
        assert_eq!(
            settings,
            [
                ("provider", "work", 1),
                ("max_history", "400000", 2),
                ("save", "false", 3),
                ("expire", "12h", 4)
            ]
        );
        let [work, another] = &file.providers[..] else {
            panic!("two providers")
        };
        assert_eq!(
            (work.name.as_str(), work.line, work.api.map(|api| api.name)),
            ("work", 6, Some("anthropic"))
        );
        assert_eq!(
            work.base_url.as_ref().map(ToString::to_string).as_deref(),
            Some("https://llm.corp.example/v1")
        );
        let command = vec!["pass".to_owned(), "x".to_owned()];
        assert_eq!(work.key, KeyPlace::Command(command));
        assert_eq!(work.headers.len(), 1);
        assert_eq!(
            (another.name.as_str(), &another.key),
            ("another", &KeyPlace::Variable("K".to_owned()))
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_line_and_key() {
        for [line, words, text] in rows(
            r##"
            2 | no setting “providr” | ␊providr = "x"
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
            2 | headers: a b: that cannot be the name | [providers.work]␊headers = { "a b" = "x" }
            3 | a b: that cannot be the name | [providers.work.headers]␊x-team = "infra"␊"a b" = "c"
            2 | providers.work.options: the model belongs | [providers.work]␊options = { model = "m" }
            1 | sections | providers = 1
            1 | provider: is no section | [provider.work]␊model = "m"
        "##,
        ) {
            let text = &text.replace('␊', "\n");
            let wrong = read(text).map(|_| ()).expect_err(text);
            assert_eq!(wrong.line.to_string(), line, "{text}: {}", wrong.message);
            assert!(wrong.message.contains(words), "{text}: {}", wrong.message);
            assert!(!wrong.message.contains("sk-123"), "{}", wrong.message);
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
                prop_assert!((1..=lines.len().max(1)).contains(&wrong.line), "{:?}", wrong);
                prop_assert!(!wrong.message.is_empty());
            }
        }
    }
}
