//! What tools know and must not tell: to the model, and to the user.

use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::about::{self, ServerInfo};
use crate::error::Error;
use crate::secret::{self, Secret, Secrets};
use crate::settings::{Key, Settings};
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

    /// Returns the name of a tool as the model and the user get it. An API takes no brackets in it.
    pub fn redact_tool_name(&self, name: &str) -> String {
        let redacted = secret::redact_name(name, &lock(&self.0).keys);
        if redacted == name {
            return redacted;
        }
        redacted.replace(['[', ']'], "")
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
}
