//! The schema of the answer to a question, as the message of the question has it in a conversation's file (pure).

use serde::Deserialize;
use serde_json::Value;

use super::entry::{Entry, StoredEntry};

/// A question, decoded only as far as the schema of its answer.
#[derive(Deserialize)]
struct AskedSchema {
    schema: Option<Value>,
}

/// Adds the schema that the answer must fit to a question that is in no file yet.
pub fn add_schema(question: &mut Entry, schema: &Value) {
    question
        .unknown_fields
        .add("\"schema\"", &schema.to_string());
}

/// Returns the schema that the answer to a question had to fit. What another program may have written there is none unless it is
/// an object.
pub fn schema_of_answer(question: &StoredEntry) -> Option<Value> {
    let asked: AskedSchema = serde_json::from_str(question.json()).ok()?;
    asked.schema.filter(Value::is_object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::{Message, Role};
    use crate::session::conversation::tests::moment;

    #[test]
    fn a_saved_schema_is_read_back_unchanged() {
        for schema in [
            json!({"type": "object", "properties": {"b": {"type": "integer"}, "a": {"enum": ["\u{e4}\"\n"]}}}),
            json!({}),
            json!({"maximum": 1e2, "default": null}),
        ] {
            let message = Message::text(Role::User, "why");
            let mut question = Entry::new(message, moment(0));
            add_schema(&mut question, &schema);
            let stored = StoredEntry::new(&question).expect("JSON");
            assert_eq!(schema_of_answer(&stored), Some(schema));
            assert_eq!(stored.entry().unknown_fields, question.unknown_fields);
        }
    }

    #[test]
    fn a_saved_schema_that_is_not_an_object_is_ignored() {
        for value in ["null", "\"a\"", "[{}]", "true", "3"] {
            let mut question = Entry::new(Message::text(Role::User, "why"), moment(0));
            question.unknown_fields.add("\"schema\"", value);
            let stored = StoredEntry::new(&question).expect("JSON");
            assert_eq!(schema_of_answer(&stored), None, "{value}");
        }
        let question = Entry::new(Message::text(Role::User, "why"), moment(0));
        let stored = StoredEntry::new(&question).expect("JSON");
        assert_eq!(schema_of_answer(&stored), None);
    }
}
