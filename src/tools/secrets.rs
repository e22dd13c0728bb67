//! What tools know and must not tell: to the model, and to the user.

use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::about::{self, ServerInfo};
use super::names;
use crate::error::Error;
use crate::message::MAX_TOOL_NAME;
use crate::secret::{self, Secret, Secrets};
use crate::settings::{Key, Settings};
use crate::text::one_line::beginning;
use crate::threads::lock;

/// The secrets of all tools of a question. Its clones share them, so that a key that becomes known later counts for what
/// threads print, too.
#[derive(Clone, Default)]
pub struct ToolSecrets(Arc<Mutex<SecretLists>>);

/// The values that must not be told, by whom they must not reach.
#[derive(Default)]
struct SecretLists {
    /// Keys. Neither the model nor a file gets them.
    keys: Secrets,
    /// The keys, and other values that are not shown.
    hidden: Secrets,
}

/// Where the name of a tool goes that a model has called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameGoal {
    /// To the user, and in a sentence to the model.
    Shown,
    /// Back to the API and into a file, as the name of the call.
    Sent,
}

impl ToolSecrets {
    /// Returns the keys of all providers, which a tool may find on this machine.
    pub fn of_providers(settings: &Settings) -> ToolSecrets {
        let secrets = ToolSecrets::default();
        for provider in &settings.providers {
            if let Key::Variables(names) | Key::Optional(names) = &provider.key {
                let values = names.iter();
                let values = values.filter_map(|name| settings.environment.get(name));
                secrets.add_keys(&Vec::from_iter(values.map(Secret::new)));
            }
            secrets.add_keys(&provider.keys_within());
        }
        secrets
    }

    /// Adds keys, which neither the model nor the user gets.
    pub fn add_keys(&self, keys: &[Secret]) {
        let mut lists = lock(&self.0);
        lists.keys.extend(keys);
        lists.hidden.extend(keys);
    }

    /// Adds values that the model may get, but that are not shown.
    pub fn add_hidden(&self, values: &[Secret]) {
        lock(&self.0).hidden.extend(values);
    }

    /// Returns the text as the model gets it.
    pub fn redact_for_model(&self, text: &str) -> String {
        secret::redact(text, &lock(&self.0).keys)
    }

    /// Returns the name of a tool that a server lists, as the model and the user get it.
    pub fn redact_tool_name(&self, name: &str) -> String {
        without_brackets(secret::redact_name(name, &lock(&self.0).keys), name)
    }

    /// Returns the name of a tool that a model has made up. Only a provider that repeats what it was sent has a key in it.
    pub fn redact_called_name(&self, name: &str, goal: NameGoal) -> String {
        let redacted = self.redact_for_model(name);
        match goal {
            NameGoal::Shown => beginning(&redacted, MAX_TOOL_NAME),
            NameGoal::Sent => names::accepted_name(&without_brackets(redacted, name)),
        }
    }

    /// Whether a key is in the name of an argument, or of a part of one, in this schema. As in the names of tools, it counts only
    /// if it has a digit.
    pub fn are_in_argument_names(&self, schema: &Value) -> bool {
        let keys = &lock(&self.0).keys;
        about::has_name(schema, &|name| secret::redact_name(name, keys) != name)
    }

    /// Removes keys from what a server says of itself, before the model and a file get it.
    pub fn redact_about(&self, about: &mut ServerInfo) {
        about.redact(&lock(&self.0).keys);
    }

    /// Returns the text as the user sees it.
    pub fn redact_for_user(&self, text: &str) -> String {
        secret::redact(text, &lock(&self.0).hidden)
    }

    /// Returns the error as the user sees it.
    pub fn redact_error(&self, mut error: Error) -> Error {
        error.redact(&lock(&self.0).hidden);
        error
    }
}

/// Returns a name from which keys were removed without the brackets of the mark for them, which no API takes.
fn without_brackets(redacted: String, name: &str) -> String {
    if redacted == name {
        return redacted;
    }
    redacted.replace(['[', ']'], "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    fn secrets() -> ToolSecrets {
        let secrets = ToolSecrets::default();
        let keys = ["hunter22secret", "database", "is_a_pass_word"].map(Secret::new);
        secrets.add_keys(&keys);
        secrets.add_hidden(&[Secret::new("https-of-the-shop")]);
        secrets
    }

    #[test]
    fn the_model_gets_no_keys_and_the_user_sees_no_other_secrets_either() {
        let secrets = secrets();
        // Clones share what becomes known later.
        secrets.clone().add_keys(&[Secret::new("known-later")]);
        let table = "
            a hunter22secret | a [redacted] | a [redacted]
            https-of-the-shop | https-of-the-shop | [redacted]
            known-later | [redacted] | [redacted]
            the shop | the shop | the shop
        ";
        for [text, model, user] in rows(table) {
            assert_eq!(secrets.redact_for_model(text), model);
            assert_eq!(secrets.redact_for_user(text), user);
            let error = secrets.redact_error(Error::settings(text));
            assert_eq!(error.message, user);
        }
    }

    #[test]
    fn a_key_in_the_name_of_a_tool_is_removed_unless_it_may_be_a_word() {
        // A name may end in the beginning of a key, as that of anything may.
        let table = "
            query | query
            drop_hunter22secret | drop_redacted
            HUNTER22SECRET_x | redacted_x
            hunter22secrethunter22secret | redacted
            a_hunter22secre | a_hunter22secre
            drop_database | drop_database
            database2 | database2
            is_a_pass_word | is_a_pass_word
            database_hunter22secret | database_redacted
            https-of-the-shop | https-of-the-shop
        ";
        for [name, shown] in rows(table) {
            assert_eq!(secrets().redact_tool_name(name), shown, "{name}");
        }
    }

    #[test]
    fn a_key_is_found_in_the_names_of_arguments_wherever_these_are() {
        // Whether there is one, and a schema. Elsewhere in it keys are removed.
        let table = r#"
            no | {"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}
            no | {"properties":{"database":{}},"required":["is_a_pass_word"]}
            no | {"properties":{"x":{"description":"hunter22secret","enum":["hunter22secret"]}}}
            yes | {"properties":{"hunter22secret":{}}}
            yes | {"properties":{"of_HUNTER22secret_x":{}}}
            yes | {"required":["query","hunter22secret"]}
            yes | {"properties":{"x":{"items":{"properties":{"hunter22secret":true}}}}}
            yes | {"properties":{"x":{"anyOf":[{},{"required":["hunter22secret"]}]}}}
            yes | {"$defs":{"hunter22secret":{}}}
            yes | {"dependentRequired":{"hunter22secret":["query"]}}
        "#;
        for [expected, schema] in rows(table) {
            let schema: Value = serde_json::from_str(schema).expect(schema);
            let found = secrets().are_in_argument_names(&schema);
            assert_eq!(found, expected == "yes", "{schema}");
        }
    }

    #[test]
    fn a_key_is_removed_from_a_name_that_a_model_has_made_up() {
        let secrets = secrets();
        let table = "
            db__unknown | db__unknown | db__unknown
            hunter22secret | [redacted] | redacted
            db__hunter22secret | db__[redacted] | db__redacted
            xHUNTER22SECRETy | x[redacted]y | xredactedy
            db__database2 | db__[redacted]2 | db__redacted2
            database | [redacted] | redacted
            a[0].b | a[0].b | a_0__b
        ";
        for [name, shown, sent] in rows(table) {
            assert_eq!(secrets.redact_called_name(name, NameGoal::Shown), shown);
            assert_eq!(secrets.redact_called_name(name, NameGoal::Sent), sent);
        }
    }

    #[test]
    fn a_key_in_a_called_name_that_is_cut_is_removed_before_the_cut() {
        let key = "hunter22secret";
        for (goal, limit) in [(NameGoal::Shown, MAX_TOOL_NAME), (NameGoal::Sent, 64)] {
            for before in limit - key.len() - 1..=limit {
                let whole = "x".repeat(before) + key + &"y".repeat(200);
                // As it comes from a provider.
                let name: String = whole.chars().take(MAX_TOOL_NAME + 1).collect();
                let redacted = secrets().redact_called_name(&name, goal);
                assert!(!redacted.contains("hunter22"), "{redacted}");
                assert!(redacted.chars().count() <= limit, "{redacted}");
            }
            let long = "x".repeat(MAX_TOOL_NAME + 1);
            let redacted = secrets().redact_called_name(&long, goal);
            let is_marked = goal == NameGoal::Shown;
            assert_eq!(redacted.ends_with("x…"), is_marked, "{redacted}");
        }
    }
}
