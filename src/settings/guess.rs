//! Guesses what somebody meant by a value that a setting cannot have or a variable that nothing reads, and says how to write
//! it (pure).

use std::time::Duration;

use toml::de::DeValue;

use super::duration;
use super::environment::Environment;
use super::origin::Origin;
use super::table::{NO_LIMIT, SETTINGS, SettingKind, SettingRow, Values};
use super::value::{self, LIMIT, STRING, SWITCH, WHOLE};
use crate::text::digits::is_digits;
use crate::text::nearest::{misspelt, nearest};
use crate::text::shell_words::quoted;

/// The unit of a number alone where something is waited for.
const UNIT_OF_WAITING: &str = "s";

/// How q's variables begin.
const PREFIX: &str = "Q_";

/// Those of q's variables that are no settings.
const OTHER_VARIABLES: [&str; 4] = ["Q_SESSION", "Q_STDIN", "Q_KEY", "Q_LINE"];

impl SettingRow {
    /// Returns the value that a text means: the text itself if it is one, else one that may have been meant.
    pub(super) fn value_meant_by(&self, text: &str) -> Option<String> {
        let lower = text.trim().to_lowercase();
        let guessed = match &self.kind {
            SettingKind::Whole(..) => Some(number_in(&lower)),
            SettingKind::Limit(_) => {
                let word = nearest(&lower, [NO_LIMIT]).map(str::to_owned);
                word.or_else(|| Some(number_in(&lower)))
            }
            SettingKind::Switch(_) => {
                let meant = switch_word(&lower, "true", "false");
                meant
                    .or_else(|| nearest(&lower, ["true", "false"]))
                    .map(str::to_owned)
            }
            SettingKind::Choice(words, _) => {
                let meant = switch_word(&lower, "on", "off").unwrap_or(&lower);
                nearest(meant, words.iter().copied()).map(str::to_owned)
            }
            SettingKind::Span(_) => duration::guess(text, self.unit()),
            SettingKind::Timeout(_) => guess_limit(text),
            SettingKind::Text(_)
            | SettingKind::KnownName
            | SettingKind::Verbatim(_)
            | SettingKind::Path(_) => None,
        };
        let candidates = [Some(text.to_owned()), guessed];
        let is_value = |value: &String| {
            self.check_written(value).is_ok() && self.set(&mut Values::default(), value).is_ok()
        };
        candidates.into_iter().flatten().find(is_value)
    }

    /// Returns the unit of a number alone: that of the default.
    fn unit(&self) -> &'static str {
        self.default
            .trim_start_matches(|c: char| c.is_ascii_digit())
    }

    /// Returns a value as it is in the configuration file.
    fn in_file(&self, value: &str) -> String {
        let key = self.key;
        let is_bare = match self.kind {
            SettingKind::Whole(..) | SettingKind::Switch(_) => true,
            SettingKind::Limit(_) => is_digits(value),
            _ => false,
        };
        if is_bare {
            format!("{key} = {value}")
        } else {
            format!("{key} = {value:?}")
        }
    }

    /// Returns what is wrong with text without quotes as the value, with what to write instead. `None` for a setting that is any
    /// text.
    pub(super) fn fault_without_quotes(&self, value: &str) -> Option<String> {
        let reason = match self.kind {
            SettingKind::Whole(..) => WHOLE,
            SettingKind::Limit(_) => LIMIT,
            SettingKind::Switch(_) => SWITCH,
            SettingKind::Span(_) | SettingKind::Timeout(_) | SettingKind::Choice(..) => STRING,
            SettingKind::Text(_)
            | SettingKind::KnownName
            | SettingKind::Verbatim(_)
            | SettingKind::Path(_) => return None,
        };
        let guessed = self
            .value_meant_by(value)
            .map(|guessed| self.in_file(&guessed));
        Some(did_you_mean(&format!("must be {reason}"), guessed))
    }

    /// Returns the reason why a value of the configuration file is wrong, with what to write instead.
    pub(super) fn fault_in_file(&self, value: &DeValue, reason: &str) -> String {
        let guessed = value::scalar(value).and_then(|text| self.value_meant_by(&text));
        did_you_mean(reason, guessed.map(|guessed| self.in_file(&guessed)))
    }
}

/// Reads from a section how long something may take; `None` is no limit. An error says what to write for this key.
pub fn time_limit(key: &str, value: &DeValue) -> Result<Option<Duration>, String> {
    let limit = value::string(value).and_then(|text| duration::parse_timeout(&text));
    limit.map_err(|reason| {
        let guessed = value::scalar(value).and_then(|text| guess_limit(&text));
        did_you_mean(
            &reason,
            guessed.map(|guessed| format!("{key} = {guessed:?}")),
        )
    })
}

/// Returns the reason why a variable or an option is wrong, with what to type instead.
pub fn fault_of_text(row: &SettingRow, text: &str, origin: &Origin, reason: &str) -> String {
    let command = |guessed: String| {
        let value = quoted(&guessed);
        match origin {
            Origin::Variable(name) => Some(format!("{name}={value}")),
            Origin::Option(name) => Some(format!("{name} {value}")),
            Origin::Default | Origin::File { .. } => None,
        }
    };
    did_you_mean(reason, row.value_meant_by(text).and_then(command))
}

/// Returns the time to wait that somebody may have meant. Zero often means no limit.
fn guess_limit(text: &str) -> Option<String> {
    let guessed = duration::guess(text, UNIT_OF_WAITING)?;
    let is_limit = duration::parse_timeout(&guessed).is_ok();
    Some(if is_limit {
        guessed
    } else {
        "never".to_owned()
    })
}

fn did_you_mean(reason: &str, meant: Option<String>) -> String {
    match meant {
        Some(meant) => format!("{reason}; did you mean {meant}?"),
        None => reason.to_owned(),
    }
}

/// Returns a note for each variable that is nearly one of q's. Others may be those of other programs.
pub fn misspelt_variables(environment: &Environment) -> Vec<String> {
    let mut known = Vec::from_iter(SETTINGS.iter().map(SettingRow::variable));
    known.extend(OTHER_VARIABLES.map(str::to_owned));
    let mut notes = Vec::new();
    for (name, _) in environment.variables() {
        let unknown = name.strip_prefix(PREFIX).filter(|_| !known.contains(name));
        let Some(unknown) = unknown else {
            continue;
        };
        let names = known.iter().map(|variable| &variable[PREFIX.len()..]);
        // One that is set as well shows that this one is something else.
        if let Some(meant) = misspelt(unknown, names)
            && environment.get(&format!("{PREFIX}{meant}")).is_none()
        {
            notes.push(format!("{name} is not read; did you mean {PREFIX}{meant}?"));
        }
    }
    notes
}

/// Returns a number without what people write between its digits.
fn number_in(text: &str) -> String {
    text.replace(['_', ',', ' '], "")
}

/// Returns a word for yes or no as this word or that one.
fn switch_word<'a>(word: &str, yes: &'a str, no: &'a str) -> Option<&'a str> {
    match word {
        "true" | "yes" | "on" | "y" | "1" => Some(yes),
        "false" | "no" | "off" | "n" | "0" => Some(no),
        _ => None,
    }
}
