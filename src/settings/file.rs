//! The configuration file: its keys and sections with their places, or what is wrong on which line (pure).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::headers::HeaderEntry;
use super::key::Key;
use super::origin::{Origin, Sourced};
use super::paths::refuse_variables;
use super::sections::{fault_of_header, is_bare, section, unknown_key, unknown_section};
use super::table::{self, SettingKind, SettingRow, Values};
use super::tool_sections::ToolSection;
use super::value::{self, ConfigError, TableEntry, for_each, string};
use crate::error::Error;
use crate::flags::ToolNames;
use crate::flags::synonyms::WordPlace;
use crate::provider::Dialect;
use crate::provider::request::Field;
use crate::provider::table::{DIALECTS, find_dialect};
use crate::server_url::ServerUrl;
use crate::shape::{SchemaSpec, Shape};

/// What the name of a role may be, for errors.
pub const ROLE_NAMES: &str = "the name of a role has only letters A-Z a-z, digits, _ and -";

/// A configuration file. Its sections are in the order of the file.
#[derive(Debug, Default)]
pub struct File {
    /// Why it counts as missing though it may have something in it, in words that follow its name.
    pub obstacle: Option<String>,
    /// By key.
    pub settings: BTreeMap<String, Sourced>,
    pub providers: Vec<ProviderSection>,
    pub tool_servers: Vec<ToolSection>,
    pub roles: Vec<RoleSection>,
}

/// A section `[providers.NAME]`.
#[derive(Debug, Default)]
pub struct ProviderSection {
    pub name: String,
    pub origin: Origin,
    pub api: Option<&'static Dialect>,
    pub base_url: Option<ServerUrl>,
    pub key: Key,
    pub model: Option<Sourced>,
    pub headers: Vec<HeaderEntry>,
    pub options: Vec<Field>,
}

/// A section `[roles.NAME]`.
#[derive(Debug, Clone, Default)]
pub struct RoleSection {
    pub name: String,
    pub options: RoleOptions,
    /// A file with the system prompt.
    pub system_file: Option<String>,
    /// Where each of its keys is.
    pub origins: BTreeMap<String, Origin>,
}

/// The options that a role stands for.
#[derive(Debug, Clone, Default)]
pub struct RoleOptions {
    pub provider: Option<String>,
    pub model: Option<String>,
    pub effort: Option<String>,
    pub messages: Option<String>,
    pub system: Option<String>,
    pub tools: ToolNames,
    /// A JSON Schema, the path of a file or the short form.
    pub schema: Option<String>,
    pub web: bool,
    /// Each `KEY=VALUE`, as `-o` takes it.
    pub options: Vec<String>,
    /// What is asked if there are no words.
    pub question: Option<String>,
}

/// The lines of a file, which tell on which line a byte is.
struct Lines {
    path: PathBuf,
    /// Where each line ends, in bytes.
    ends: Vec<usize>,
}

impl Lines {
    /// Returns the origin of what is at this place.
    fn origin(&self, at: usize) -> Origin {
        Origin::File {
            path: self.path.clone(),
            line: 1 + self.ends.partition_point(|end| *end < at),
        }
    }
}

/// Reads the text of a configuration file, which has this path. What is wrong is not in the file that is returned; the error is
/// the first such fault.
pub fn read_config(text: &str, path: &Path) -> (File, Option<Error>) {
    let ends = text.match_indices('\n').map(|(at, _)| at);
    let lines = Lines {
        path: path.to_owned(),
        ends: ends.collect(),
    };
    let (file, fault) = read_entries(text, &lines);
    let error = fault.map(|fault| {
        let origin = lines.origin(fault.at.unwrap_or_default());
        let error = Error::settings(format!("{origin}: {fault}"));
        error.advise("run q --help to list the settings")
    });
    (file, error)
}

/// Returns what is wrong with a line such as `provider = fake` or `timeout = 30s`, where the value that begins at `at` is text
/// without quotes. The value is not shown unless it can only be a setting's: it may be a key. `None` if the line is not like
/// that.
fn fault_of_bare_text(text: &str, at: usize) -> Option<String> {
    let (before, after) = text.split_at_checked(at)?;
    let line = before.rsplit('\n').next()?;
    let (key, begun) = line.split_once('=')?;
    let rest = format!("{begun}{}", after.lines().next()?);
    let (key, value) = (key.trim(), rest.split('#').next()?.trim());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let is_text = value.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '~' || c == '/');
    // What is wrong with a text such as 30s comes after its digits.
    let is_at_value = begun.trim().chars().all(|c| c.is_ascii_digit());
    if key.is_empty() || !key.chars().all(is_plain) || !is_text || !is_at_value {
        return None;
    }
    if let Some(row) = table::find(key)
        && let Some(fault) = row.fault_without_quotes(value)
    {
        return Some(format!("{key}: {fault}"));
    }
    let is_number = value.starts_with(|c: char| c.is_ascii_digit());
    let word = value.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
    let is_bool = ["true", "false", "yes", "no"].contains(&&*word.to_ascii_lowercase());
    (!is_number && !is_bool).then(|| format!("the text after {key} = must be in quotes"))
}

/// Returns the line that this byte is in.
fn line_at(text: &str, at: usize) -> &str {
    let (before, after) = text.split_at_checked(at).unwrap_or((text, ""));
    let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
    let end = at + after.find('\n').unwrap_or(after.len());
    text.get(begin..end).unwrap_or_default()
}

/// What the parser says of common mistakes, and what to write.
const SYNTAX_FAULTS: &[(&str, &str)] = &[
    (
        "invalid basic string, expected `\"`",
        "the text is not closed: put \" at its end",
    ),
    (
        "invalid literal string, expected `'`",
        "the text is not closed: put ' at its end",
    ),
    (
        "invalid multi-line basic string, expected `\"`",
        "the text is not closed: put \"\"\" at its end",
    ),
    (
        "invalid multi-line literal string, expected `'`",
        "the text is not closed: put ''' at its end",
    ),
    (
        "missing escaped value, expected ",
        "the text has a single \\: write \\\\, or put the text in '…' instead of \"…\"",
    ),
    (
        "too few unicode value digits, ",
        "the text has a single \\: write \\\\, or put the text in '…' instead of \"…\"",
    ),
    (
        "unclosed table, expected `]`",
        "a section is written like [providers.work]",
    ),
    (
        "unclosed array, expected `]`",
        "the list is not closed: put ] at its end",
    ),
    (
        "unclosed inline table, expected `}`",
        "a table is written like { key = \"value\" }",
    ),
    (
        "key with no value, expected `=`",
        "a setting is written like key = \"value\"",
    ),
];

/// Returns what is wrong with the text, in the parser's words where q has none of its own.
fn syntax_fault(error: &toml::de::Error, text: &str) -> String {
    let message = error.message();
    let place = error.span().and_then(|span| text.get(span));
    if message == "duplicate key"
        && let Some(key) = place
    {
        return format!("{key}: it is there twice");
    }
    let mut known = SYNTAX_FAULTS.iter();
    let known = known.find(|(begin, _)| message.starts_with(begin));
    known.map_or(message, |(_, fault)| fault).to_owned()
}

fn read_entries(text: &str, lines: &Lines) -> (File, Option<ConfigError>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let syntax = errors.first().map(|error| {
        let at = error.span().map(|span| span.start);
        let header = at.and_then(|at| fault_of_header(line_at(text, at)));
        let known = header.or_else(|| fault_of_bare_text(text, at?));
        let message = known.unwrap_or_else(|| syntax_fault(error, text));
        ConfigError::syntax(at, &message)
    });
    let table = DeValue::Table(table.into_inner());
    let mut file = File::default();
    let read = for_each(&table, |entry| file.set(entry, lines));
    (file, syntax.or(read.err()))
}

impl File {
    fn set(&mut self, entry: &TableEntry, lines: &Lines) -> Result<(), ConfigError> {
        let TableEntry { key, value, at } = *entry;
        match key {
            "providers" => section(value, WordPlace::Provider)?.read(|named| {
                self.providers.push(ProviderSection::read(named, lines)?);
                Ok(())
            }),
            "tools" => section(value, WordPlace::Server)?.read(|named| {
                let origin_at = |byte| lines.origin(byte);
                self.tool_servers
                    .push(ToolSection::read(named, &origin_at)?);
                Ok(())
            }),
            "roles" => section(value, WordPlace::Role)?.read(|named| {
                self.roles.push(RoleSection::read(named, lines)?);
                Ok(())
            }),
            // No setting is a table.
            _ if value.is_table() => Err(unknown_section(entry)),
            _ => {
                let set = Sourced::new(&setting(key, value)?, lines.origin(at));
                self.settings.insert(key.to_owned(), set);
                Ok(())
            }
        }
    }
}

impl ProviderSection {
    fn read(named: &TableEntry, lines: &Lines) -> Result<ProviderSection, ConfigError> {
        let mut provider = ProviderSection {
            name: named.key.to_owned(),
            origin: lines.origin(named.at),
            ..ProviderSection::default()
        };
        section(named.value, WordPlace::Provider)?.read(|entry| provider.set(entry, lines))?;
        Ok(provider)
    }

    fn set(&mut self, entry: &TableEntry, lines: &Lines) -> Result<(), ConfigError> {
        let TableEntry { key, value, at } = *entry;
        match key {
            "api" => self.api = Some(dialect(&string(value)?)?),
            "base_url" => self.base_url = Some(ServerUrl::parse(&string(value)?)?),
            "key_env" | "key_cmd" => self.key.set(key, value)?,
            "model" => self.model = Some(Sourced::new(&setting(key, value)?, lines.origin(at))),
            "headers" => {
                let origin_at = |byte| lines.origin(byte);
                self.headers = HeaderEntry::read_all(value, &origin_at)?;
            }
            "options" => {
                for option in options(value)? {
                    self.options.push(Field::parse(&option)?);
                }
            }
            _ => return Err(unknown_key(WordPlace::Provider, key)),
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
    is_bare(name)
}

impl RoleSection {
    fn read(named: &TableEntry, lines: &Lines) -> Result<RoleSection, ConfigError> {
        if !is_role(named.key) {
            return Err(ROLE_NAMES.into());
        }
        let mut role = RoleSection {
            name: named.key.to_owned(),
            ..RoleSection::default()
        };
        let table = section(named.value, WordPlace::Role)?;
        table.read(|entry| {
            let origin = lines.origin(entry.at);
            role.origins.insert(entry.key.to_owned(), origin);
            role.set(entry.key, entry.value)
        })?;
        if role.options.system.is_some() && role.system_file.is_some() {
            let reason = "there can be system or system_file, not both";
            return Err(table.error("system_file", reason));
        }
        Ok(role)
    }

    fn set(&mut self, key: &str, value: &DeValue) -> Result<(), ConfigError> {
        let options = &mut self.options;
        match key {
            "provider" => options.provider = Some(setting(key, value)?),
            "model" => options.model = Some(setting(key, value)?),
            "effort" => options.effort = Some(setting(key, value)?),
            "messages" => options.messages = Some(setting(key, value)?),
            "system" => options.system = Some(setting(key, value)?),
            "system_file" => {
                let path = string(value)?;
                refuse_variables(&path)?;
                self.system_file = Some(path);
            }
            "tools" => options.tools = ToolNames::read(&value::strings(value)?)?,
            "schema" => options.schema = Some(schema(value)?),
            "web" => options.web = value::switch(value)?,
            "options" => options.options = self::options(value)?,
            "question" => options.question = Some(string(value)?),
            _ => return Err(unknown_key(WordPlace::Role, key)),
        }
        Ok(())
    }
}

/// Returns the fields of a request, as `-o` takes them.
fn options(value: &DeValue) -> Result<Vec<String>, ConfigError> {
    let mut options = Vec::new();
    for_each(value, |entry| {
        if !value::is_json(entry.value) {
            return Err("must be a value that JSON can hold".into());
        }
        if entry.key.contains('=') {
            return Err("is not the name of a field: it has a “=”".into());
        }
        let json: serde_json::Value = value::read(entry.value, "a value that JSON has")?;
        let option = format!("{}={json}", entry.key);
        Field::parse(&option)?;
        options.push(option);
        Ok(())
    })?;
    Ok(options)
}

/// Returns the value of a setting as its environment variable would have it.
fn setting(key: &str, value: &DeValue) -> Result<String, ConfigError> {
    let Some(row) = table::find(key) else {
        return Err(unknown_key(WordPlace::Settings, key));
    };
    setting_text(row, value).map_err(|reason| row.fault_in_file(value, &reason).into())
}

fn setting_text(row: &SettingRow, value: &DeValue) -> Result<String, String> {
    let text = match row.kind {
        SettingKind::Limit(_) if value.is_str() => string(value)?,
        SettingKind::Limit(_) => value::read::<i64>(value, value::LIMIT)?.to_string(),
        SettingKind::Whole(..) => value::read::<i64>(value, value::WHOLE)?.to_string(),
        SettingKind::Switch(_) => value::switch(value)?.to_string(),
        _ => string(value)?,
    };
    // The other values do not matter: this one is only checked.
    row.check_written(&text)?;
    row.set(&mut Values::default(), &text)?;
    Ok(row.trimmed(&text).to_owned())
}

/// Returns a value for `--schema`. The JSON file that it may name is read only when the role is used.
fn schema(value: &DeValue) -> Result<String, String> {
    let spec = string(value)?;
    let checked = match SchemaSpec::parse(&spec) {
        SchemaSpec::Pipe(_) => Err("must not be a pipe of the shell".to_owned()),
        SchemaSpec::File(path) => refuse_variables(path),
        SchemaSpec::Json(text) => Shape::from_json(text).map(drop),
        SchemaSpec::ShortForm(text) => Shape::from_short(text).map(drop),
    };
    checked.map(|()| spec)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::settings::sections;
    use crate::text::table::rows;

    fn read(text: &str) -> Result<File, Error> {
        let (file, error) = super::read_config(text, Path::new("F"));
        error.map_or(Ok(file), Err)
    }

    #[test]
    fn an_error_about_text_without_quotes_names_the_key_and_not_the_value() {
        let table = [
            (
                "provider = fake",
                "the text after provider = must be in quotes",
            ),
            (
                "save = true\nanswers = ~/answers # mine",
                "the text after answers = must be in quotes",
            ),
            (
                "[providers.x]\nkey_env=sk-secret",
                "the text after key_env = must be in quotes",
            ),
            (
                "cached = only # x",
                "cached: must be a string in quotes; did you mean cached = \"only\"?",
            ),
            (
                "timeout = 30s",
                "timeout: must be a string in quotes; did you mean timeout = \"30s\"?",
            ),
            (
                "expire = 24h # a day",
                "expire: must be a string in quotes; did you mean expire = \"24h\"?",
            ),
            (
                "keep = forever",
                "keep: must be a string in quotes; did you mean keep = \"never\"?",
            ),
            ("timeout = sk-secret", "timeout: must be a string in quotes"),
            (
                "[tools.x]\ntimeout = 2 min",
                "timeout: must be a string in quotes; did you mean timeout = \"2m\"?",
            ),
            ("messages = ten", "messages: must be a whole number"),
            ("max_tokens = 4k", "max_tokens: must be a whole number"),
            (
                "pairs = all",
                "pairs: must be a whole number, or \"all\"; did you mean pairs = \"all\"?",
            ),
            (
                "save = True",
                "save: must be true or false; did you mean save = true?",
            ),
            (
                "save = no",
                "save: must be true or false; did you mean save = false?",
            ),
            (
                "wrap = off",
                "wrap: must be true or false; did you mean wrap = false?",
            ),
            ("x = no", ""),
            ("x = 4k", ""),
            ("system = \"\"\"\npath = C:\\q\n\"\"\"", ""),
            ("a = 1\n= text", ""),
            ("provider = \"fake", ""),
            ("[providers.work", ""),
        ];
        for (text, wanted) in table {
            let error = read(text).expect_err(text).message;
            assert!(!error.contains("secret"), "{text}: {error}");
            if wanted.is_empty() {
                assert!(!error.contains("in quotes"), "{text}: {error}");
            } else {
                assert!(error.ends_with(wanted), "{text}: {error}");
            }
        }
    }

    #[test]
    fn settings_and_providers_are_read_with_their_lines() {
        let file = read(concat!(
            "provider = \"work\"\nmax_history = 400_000\nsave = false\nexpire = \"12h\"\n\n[providers.work]\n",
            "api = \"anthropic\"\nbase_url = \"https://llm.corp.example/v1\"\nkey_cmd = [\"pass\", \"x\"]\nmodel = \"m\"\n",
            "headers = { x-team = \"infra\" }\n[providers.another]\nkey_env = \"K\"\n",
        ))
        .expect("a valid file");
        let mut settings = Vec::new();
        for (key, Sourced { text, origin }) in &file.settings {
            settings.push(format!("{key} = {text}: {origin}"));
        }
        let expected = "expire = 12h: F, line 4; max_history = 400000: F, line 2; provider = work: F, line 1; save = false: F, line 3";
        assert_eq!(settings.join("; "), expected);
        let [work, another] = &file.providers[..] else {
            panic!("two providers")
        };
        let found = (
            &*work.name,
            work.origin.to_string(),
            work.api.map(|api| api.name),
        );
        assert_eq!(found, ("work", "F, line 6".to_owned(), Some("anthropic")));
        let address = work.base_url.as_ref().map(ToString::to_string);
        assert_eq!(address.as_deref(), Some("https://llm.corp.example/v1"));
        let command = vec!["pass".to_owned(), "x".to_owned()];
        assert_eq!(work.key, Key::Command(command));
        assert_eq!(work.headers.len(), 1);
        assert_eq!(another.key, Key::Variables(vec!["K".to_owned()]));
    }

    #[test]
    fn every_key_of_a_section_is_read() {
        for (place, head) in [
            (WordPlace::Provider, "[providers.work]"),
            (WordPlace::Server, "[tools.shop]"),
            (WordPlace::Command, "[tools.shop.sql]"),
            (WordPlace::Role, "[roles.review]"),
        ] {
            for key in sections::keys(place) {
                // No key can be a date.
                let text = format!("{head}\n{key} = 2026-11-29");
                let wrong = read(&text).map(|_| ()).expect_err(&text).message;
                let is_unknown = wrong.contains("there is no") || wrong.contains("belongs");
                assert!(!is_unknown, "{text}: {wrong}");
            }
        }
    }

    #[test]
    fn an_error_in_the_file_is_reported_with_its_line_and_key() {
        for [line, words, text] in rows(
            r##"
            2 | providr: there is no setting “providr” | ␊providr = "x"
            1 | messages: must be a whole number; did you mean messages = 10? | messages = "10"
            1 | messages: “-1” | messages = -1
            1 | no setting “a” | a = 1␊messages = 1
            1 | keep: must be a string in quotes; did you mean keep = "0"? | keep = 0
            1 | save: must be true or false; did you mean save = false? | save = "false"
            1 | - | x = = 1
            2 | provider: it is there twice | provider = "x"␊provider = "y"
            3 | roles.r.system_file: there can be system or system_file, not both | [roles.r]␊system = "s"␊system_file = "f"
            2 | providers.work.base_url: is not a URL | [providers.work]␊base_url = "nope"
            2 | providers.work.api: “openapi” is not one of | [providers.work]␊api = "openapi"
            2 | providers.work.key: there is no setting “key” | [providers.work]␊key = "sk-123"
            2 | must be the name of an environment variable | [providers.work]␊key_env = "sk-123"
            3 | not both | [providers.work]␊key_env = "A"␊key_cmd = ["b"]
            2 | must be a list | [providers.work]␊key_cmd = "pass show"
            3 | providers.work.headers.a b: is not a valid name | [providers.work.headers]␊x-team = "infra"␊"a b" = "c"
            2 | providers.work.options.model: -m chooses the model | [providers.work]␊options = { model = "m" }
            1 | providers: must be a table | providers = 1
            1 | provider: there is no section [provider.work]; did you mean [providers.work]? | [provider.work]␊model = "m"
        "##,
        ) {
            let text = &text.replace('␊', "\n");
            let wrong = read(text).map(|_| ()).expect_err(text).message;
            let is_right = wrong.starts_with(&format!("F, line {line}: ")) && wrong.contains(words);
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
        fn any_file_of_settings_is_read_or_refused_with_the_number_of_a_line(lines in prop::collection::vec(lines(), 0..8)) {
            if let Err(wrong) = read(&lines.join("\n")) {
                let line = wrong.message.strip_prefix("F, line ").and_then(|rest| rest.split_once(": "));
                let line: usize = line.expect("a line").0.parse().expect("a number");
                prop_assert!((1..=lines.len().max(1)).contains(&line), "{}", wrong);
            }
        }
    }
}
