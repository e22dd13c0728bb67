//! The table of settings: each setting's key, default, possible values and documentation (pure).

use std::ops::RangeInclusive;
use std::time::Duration;

use super::duration;
use super::environment::Environment;
use super::paths::{check_path, expand_home};
use super::variables;
use crate::flags::Arguments;
use crate::session::rules::Rules;
use crate::text::digits::whole_number;

use SettingKind::{Choice, KnownName, Limit, Path, Span, Switch, Text, Timeout, Verbatim, Whole};

/// The values of all settings, after all layers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Values {
    /// `None`: the built-in system prompt.
    pub system: Option<String>,
    /// How many of the last messages a follow-up sends.
    pub messages: usize,
    /// The most bytes of these messages together.
    pub max_history: usize,
    pub history: History,
    /// What is kept, and when a conversation is continued.
    pub rules: Rules,
    /// The most tokens of an answer; `None` sends a limit only where the API demands one.
    pub max_tokens: Option<u64>,
    /// How long a connection may bring no data; `None` is no limit.
    pub timeout: Option<Duration>,
    /// How often a request that failed before the server began to answer is tried again; at most 100.
    pub retries: u32,
    /// Whether exchanges are saved.
    pub save: bool,
    /// The setting `cached`; what holds for a question is [`super::Settings::caching`].
    pub cached_setting: Cached,
    /// The directory of cached answers; `None` is the usual one.
    pub answers: Option<String>,
    /// Whether prose is wrapped on a terminal.
    pub wrap: bool,
    /// Whether an answer is printed piece by piece as it comes.
    pub stream: bool,
    /// Whether Markdown is styled on a terminal.
    pub style: bool,
    /// How much the model thinks; `None` leaves it to the provider.
    pub effort: Option<String>,
    /// The most rounds of tool calls per question.
    pub rounds: usize,
    /// A file with more tool servers.
    pub mcp: Option<String>,
}

/// The form in which a conversation is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum History {
    /// Flattened into one prompt.
    #[default]
    Prompt,
    /// As user and assistant messages.
    Messages,
}

/// The use of cached answers for a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cached {
    #[default]
    Off,
    On,
    /// No server is ever asked.
    Only,
}

/// One setting.
#[derive(Debug)]
pub struct SettingRow {
    pub key: &'static str,
    /// The default, as a user would write it; empty if there is none.
    pub default: &'static str,
    pub kind: SettingKind,
    pub doc: &'static str,
    /// The value that no option replaces.
    pub strictest: Option<&'static str>,
}

/// The kind of a setting: which values it may have, and where they are stored.
#[derive(Debug)]
pub enum SettingKind {
    /// Any word but an empty one.
    Text(fn(&mut Values, String)),
    /// A name that is looked up, so any other is refused there.
    KnownName,
    /// Any text, with all of its whitespace.
    Verbatim(fn(&mut Values, String)),
    /// A number in a range.
    Whole(RangeInclusive<usize>, fn(&mut Values, usize)),
    /// A number from 1, or the word `all` for no limit.
    Limit(fn(&mut Values, usize)),
    /// An absolute path, or one in the home directory (`~/`).
    Path(fn(&mut Values, String)),
    /// A duration, or `0` alone.
    Span(fn(&mut Values, Option<Duration>)),
    /// A timeout.
    Timeout(fn(&mut Values, Option<Duration>)),
    /// One of these words; its place among them is set.
    Choice(&'static [&'static str], fn(&mut Values, usize)),
    Switch(fn(&mut Values, bool)),
}

const fn row(
    key: &'static str,
    default: &'static str,
    kind: SettingKind,
    doc: &'static str,
) -> SettingRow {
    SettingRow {
        key,
        default,
        kind,
        doc,
        strictest: None,
    }
}

/// The word for a limit that is none.
pub const NO_LIMIT: &str = "all";

/// The upper limit of numbers that need none of their own.
const MAX: usize = u32::MAX as usize;

/// Every setting, in the order of the documents.
pub const SETTINGS: &[SettingRow] = &[
    row(
        "provider",
        "",
        KnownName,
        "the provider to ask; unset: see Providers",
    ),
    row(
        "model",
        "",
        Text(|_, _| {}),
        "the model to ask; unset: the provider's default",
    ),
    row(
        "system",
        "",
        Verbatim(|values, text| values.system = Some(text)),
        "replaces the built-in system prompt",
    ),
    row(
        "messages",
        "10",
        Whole(0..=MAX, |values, number| values.messages = number),
        "how many of the last messages a follow-up sends",
    ),
    row(
        "max_history",
        "400000",
        Whole(0..=MAX, |values, number| values.max_history = number),
        "the most bytes of these messages together",
    ),
    row(
        "history",
        "prompt",
        Choice(&["prompt", "messages"], |values, index| {
            values.history = [History::Prompt, History::Messages][index];
        }),
        "their form: one \"prompt\", or \"messages\"",
    ),
    row(
        "pairs",
        "20",
        Limit(|values, number| values.rules.pairs = number),
        "questions and answers that the current conversation is trimmed to, or \"all\"",
    ),
    row(
        "expire",
        "24h",
        Span(|values, duration| values.rules.expire = duration),
        "idle time after which -f starts a new conversation",
    ),
    row(
        "keep",
        "30d",
        Span(|values, duration| values.rules.keep = duration),
        "how long a conversation that is not current is kept; \"never\" deletes none, \"0\" keeps none",
    ),
    row(
        "max_tokens",
        "",
        Whole(1..=MAX, |values, number| {
            values.max_tokens = Some(number as u64);
        }),
        "the most tokens of an answer; unset: sent only where the API demands it (Anthropic: 16384)",
    ),
    row(
        "timeout",
        "5m",
        Timeout(|values, duration| values.timeout = duration),
        "how long q waits for data from the server",
    ),
    row(
        "retries",
        "3",
        Whole(0..=100, |values, number| values.retries = number as u32),
        "how often a request that failed is retried",
    ),
    row(
        "save",
        "true",
        Switch(|values, on| values.save = on),
        "\"false\" saves nothing, like --no-save",
    ),
    row(
        "cached",
        "off",
        Choice(&["off", "on", "only"], |values, index| {
            values.cached_setting = [Cached::Off, Cached::On, Cached::Only][index];
        }),
        "\"on\" is like --cached, \"only\" sends no requests",
    )
    // The option --cached does not loosen it.
    .with_strictest("only"),
    row(
        "answers",
        "",
        Path(|values, path| values.answers = Some(path)),
        "the absolute path of a directory for cached answers",
    ),
    row(
        "wrap",
        "true",
        Switch(|values, on| values.wrap = on),
        "\"false\" does not wrap answers on a terminal",
    ),
    row(
        "stream",
        "true",
        Switch(|values, on| values.stream = on),
        "\"false\" prints complete answers, like --no-stream",
    ),
    row(
        "style",
        "true",
        Switch(|values, on| values.style = on),
        "\"false\" prints no bold, italic and colour",
    ),
    row(
        "mismatch",
        "new",
        Choice(&["new", "continue"], |values, index| {
            values.rules.continue_on_mismatch = index == 1;
        }),
        "what -f does with another provider or model: start a \"new\" conversation, or \"continue\" the old one",
    ),
    row(
        "effort",
        "",
        Text(|values, text| values.effort = Some(text)),
        "the reasoning effort, as with -e; one that the server rejects is omitted, with a note",
    ),
    row(
        "rounds",
        "10",
        Whole(1..=1_000, |values, number| values.rounds = number),
        "the most rounds of tool calls per question",
    ),
    row(
        "mcp",
        "",
        Path(|values, path| values.mcp = Some(path)),
        "the absolute path of a JSON file with more servers",
    ),
];

/// Returns the row of a setting.
pub fn find(key: &str) -> Option<&'static SettingRow> {
    SETTINGS.iter().find(|row| row.key == key)
}

/// Returns the option that sets a setting, and its value.
pub fn option_value(key: &str, arguments: &Arguments) -> Option<(&'static str, String)> {
    let system = arguments.system.as_ref();
    let (option, value) = match key {
        "provider" => ("--provider", arguments.provider.clone()),
        "model" => ("--model", arguments.model.clone()),
        "system" => (
            "--system",
            system.map(|text| text.to_string_lossy().into_owned()),
        ),
        "messages" => ("--messages", arguments.messages.clone()),
        "effort" => ("--effort", arguments.effort.clone()),
        "stream" => (
            "--no-stream",
            arguments.no_stream.then(|| "false".to_owned()),
        ),
        "save" => ("--no-save", arguments.no_save.then(|| "false".to_owned())),
        "cached" => ("--cached", arguments.cached.then(|| "on".to_owned())),
        _ => return None,
    };
    Some((option, value?))
}

impl SettingRow {
    /// Says which value no option replaces.
    const fn with_strictest(mut self, value: &'static str) -> SettingRow {
        self.strictest = Some(value);
        self
    }

    /// Returns the environment variable that sets it.
    pub fn variable(&self) -> String {
        format!("Q_{}", self.key.to_ascii_uppercase())
    }

    /// Returns a value as it was meant: a name has no whitespace around it, but a file with Windows newlines, or one that `$(…)`
    /// prints, may leave some there. Whitespace alone is no name, and stays to be refused.
    pub fn trimmed<'t>(&self, text: &'t str) -> &'t str {
        let name = text.trim();
        match self.kind {
            Text(_) | KnownName if !name.is_empty() => name,
            _ => text,
        }
    }

    /// Returns the text of a value with the home directory in place of `~`, where that is a path.
    pub fn expand(&self, text: &str, environment: &Environment) -> Result<String, String> {
        match self.kind {
            Path(_) => expand_home(text, environment),
            _ => Ok(text.to_owned()),
        }
    }

    /// Refuses what the configuration file has for a path or a name if it has a variable, which a shell would have filled in
    /// elsewhere.
    pub fn check_written(&self, text: &str) -> Result<(), String> {
        if matches!(self.kind, Text(_) | KnownName | Path(_)) {
            let variable = self.variable();
            variables::refuse(
                text,
                &format!("write the value itself, or set {variable} in its place"),
            )?;
        }
        Ok(())
    }

    /// Sets the value from its text.
    pub fn set(&self, values: &mut Values, text: &str) -> Result<(), String> {
        match &self.kind {
            Text(_) if text.trim().is_empty() => return Err("it is empty".to_owned()),
            KnownName => {}
            Text(set) | Verbatim(set) => set(values, text.to_owned()),
            Path(set) => {
                check_path(text)?;
                set(values, text.to_owned());
            }
            Whole(range, set) => set(values, whole(text, range)?),
            Limit(set) if text == NO_LIMIT => set(values, usize::MAX),
            Limit(set) => match whole(text, &(1..=MAX)) {
                Ok(number) => set(values, number),
                Err(reason) => return Err(format!("{reason}, nor {NO_LIMIT}")),
            },
            Span(set) => set(values, duration::parse_span(text)?),
            Timeout(set) => set(values, duration::parse_timeout(text)?),
            Choice(words, set) => {
                let Some(index) = words.iter().position(|word| *word == text) else {
                    return Err(format!("“{text}” is not one of {}", words.join(", ")));
                };
                set(values, index);
            }
            Switch(set) => match text.parse() {
                Ok(on) => set(values, on),
                Err(_) => return Err(format!("“{text}” is neither true nor false")),
            },
        }
        Ok(())
    }
}

/// Reads a number in a range.
fn whole(text: &str, range: &RangeInclusive<usize>) -> Result<usize, String> {
    match whole_number(text) {
        Some(number) if range.contains(&number) => Ok(number),
        _ => {
            let (first, last) = (range.start(), range.end());
            Err(format!(
                "“{text}” is not a whole number from {first} to {last}"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::synonyms::{self, WordPlace};
    use crate::flags::{FLAGS, Flag};
    use crate::text::table::rows;
    use crate::text::whole_name::has_name;

    #[test]
    fn the_error_of_a_setting_names_every_word_that_it_may_be() {
        for row in SETTINGS {
            let words = match &row.kind {
                Text(_) | KnownName | Verbatim(_) | Path(_) | Whole(..) => continue,
                Limit(_) => vec!["all"],
                Span(_) => vec!["never", "0"],
                Timeout(_) => vec!["never"],
                Choice(words, _) => words.to_vec(),
                Switch(_) => vec!["true", "false"],
            };
            let mut values = Values::default();
            let said = row.set(&mut values, "§").expect_err(row.key);
            for word in words {
                assert!(has_name(&said, word), "{}: {said}", row.key);
                assert_eq!(row.set(&mut values, word), Ok(()), "{}", row.key);
                if let Some(last) = word.chars().last().filter(char::is_ascii_alphabetic) {
                    let misspelt = format!("{word}{last}");
                    let meant = row.value_meant_by(&misspelt);
                    assert_eq!(meant.as_deref(), Some(word), "{}: {misspelt}", row.key);
                }
            }
        }
    }

    #[test]
    fn every_setting_that_is_typed_as_an_option_is_answered_with_its_variable() {
        for row in SETTINGS {
            let option = format!("--{}", row.key.replace('_', "-"));
            let mut parts = FLAGS.iter().flat_map(Flag::spellings);
            let exists = parts.any(|spelling| {
                spelling == option || spelling.strip_prefix("--no-") == option.get(2..)
            });
            if exists {
                continue;
            }
            let answer = synonyms::habit(WordPlace::CommandLine, row.key);
            let is_right = answer.is_some_and(|answer| answer.contains(&row.variable()));
            assert!(is_right, "{option}: {answer:?}");
        }
    }

    #[test]
    fn every_default_is_a_valid_value_of_its_setting() {
        let mut values = Values::default();
        for row in SETTINGS {
            if !row.default.is_empty() {
                assert_eq!(row.set(&mut values, row.default), Ok(()), "{}", row.key);
            }
        }
        let found = (values.messages, values.rules.pairs, values.max_history);
        assert_eq!(found, (10, 20, 400_000));
        let found = values.rules.keep;
        assert_eq!(found, Some(Duration::from_secs(30 * 24 * 60 * 60)));
        assert!(values.save && values.wrap && values.style);
    }

    #[test]
    fn whitespace_around_a_name_does_not_count_and_other_values_stay_as_they_are() {
        // A setting, a value with ␍ and ␊ for the ends of lines and · for a blank, and what it means.
        let table = "
            model | m1␍ | m1
            model | m1␍␊ | m1
            model | ·a·model␊ | a·model
            provider | openai␍ | openai
            effort | high␊ | high
            model | · | ·
            provider | ␍␊ | ␍␊
            system | ·Be·brief.␊ | ·Be·brief.␊
            answers | /a· | /a·
            messages | 1␍ | 1␍
        ";
        for [key, text, expected] in rows(table) {
            let [text, expected] = [text, expected]
                .map(|text| text.replace('␍', "\r").replace('␊', "\n").replace('·', " "));
            let found = find(key).expect(key).trimmed(&text);
            assert_eq!(found, expected, "{key} = {text:?}");
        }
    }

    #[test]
    fn invalid_values_of_settings_are_refused() {
        for (key, text) in [
            ("messages", ""),
            ("messages", "all"),
            ("pairs", "ALL"),
            ("mcp", "mcp.json"),
        ] {
            let row = find(key).expect(key);
            let is_right = row.set(&mut Values::default(), text).is_err();
            assert!(is_right, "{key} = {text}");
        }
        let mut values = Values::default();
        assert_eq!(find("keep").expect("keep").set(&mut values, "0"), Ok(()));
        assert_eq!(values.rules.keep, Some(Duration::ZERO));
        let found = find("pairs").expect("pairs").set(&mut values, "all");
        assert_eq!(found, Ok(()));
        assert_eq!(values.rules.pairs, usize::MAX);
    }
}
