//! Whether a statement is true: how that is asked for, and what the answer says (pure).

use serde_json::{Value, json};

use crate::error::{Error, ErrorKind};
use crate::shape::Shape;
use crate::text::one_line::on_one_line;

/// Comes before the statement in the question.
const QUESTION: &str = "Is this true? ";

/// The answer about a statement.
pub struct Verdict {
    /// `None` if the model cannot tell.
    pub is_true: Option<bool>,
    pub reason: String,
}

/// Returns the shape of the answer. The reason comes first, because models judge better once they have given one.
pub fn shape() -> Shape {
    Shape::new(json!({
            "type": "object",
            "properties": {
                "reason": {"type": "string"},
                "verdict": {"type": "string", "enum": ["yes", "no", "unknown"]},
            },
            "required": ["reason", "verdict"],
            "additionalProperties": false,
    }))
}

/// Returns the question about a statement.
pub fn question_about(statement: &str) -> String {
    format!("{QUESTION}{statement}")
}

/// Returns the words of an earlier question as a question about a statement, which they may be already.
pub fn question_again(words: &str) -> String {
    if words.starts_with(QUESTION) {
        return words.to_owned();
    }
    question_about(words)
}

/// Returns the error for `--is` without words.
pub fn no_statement() -> Error {
    let error = Error::usage("--is needs a statement, which is true or not");
    error.advise("type it after the options: q --is \"contains a secret\" <file")
}

impl Verdict {
    /// Reads JSON that has the shape.
    pub fn read(json: &str) -> Verdict {
        let answer: Value = serde_json::from_str(json).unwrap_or_default();
        Verdict {
            is_true: match answer["verdict"].as_str() {
                Some("yes") => Some(true),
                Some("no") => Some(false),
                _ => None,
            },
            reason: on_one_line(answer["reason"].as_str().unwrap_or_default()),
        }
    }

    /// Returns the verdict and its reason, if it is one.
    pub fn in_words(&self) -> Option<String> {
        let word = if self.is_true? { "yes" } else { "no" };
        Some(format!("{word}: {}", self.reason))
    }

    /// Returns success for a yes only.
    pub fn to_result(&self) -> Result<(), Error> {
        let reason = &self.reason;
        let (kind, message) = match self.is_true {
            Some(true) => return Ok(()),
            Some(false) => (ErrorKind::Untrue, format!("no: {reason}")),
            None => {
                let message = format!("the model cannot tell whether this is true: {reason}");
                (ErrorKind::Undecided, message)
            }
        };
        Err(Error::new(kind, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_and_no_are_verdicts() {
        for (json, is_true, status) in [
            (r#"{"reason":"a","verdict":"yes"}"#, Some(true), None),
            (r#"{"reason":"a","verdict":"no"}"#, Some(false), Some(1)),
            (r#"{"reason":"a","verdict":"unknown"}"#, None, Some(2)),
            (r#"{"reason":"a","verdict":"Yes"}"#, None, Some(2)),
            ("not JSON", None, Some(2)),
        ] {
            let verdict = Verdict::read(json);
            let error = verdict.to_result().err();
            let found = error.as_ref().map(Error::exit_status_of_condition);
            assert_eq!((verdict.is_true, found), (is_true, status), "{json}");
            assert_eq!(found, error.as_ref().map(Error::exit_status), "{json}");
        }
        let words = Verdict::read("{\"reason\":\"a\\nb\",\"verdict\":\"no\"}").in_words();
        assert_eq!(words.as_deref(), Some("no: a b"));
    }

    #[test]
    fn the_schema_of_a_verdict_is_strict_and_asks_for_the_reason_first() {
        assert!(shape().is_strict());
        let schema = shape().schema.to_string();
        assert!(schema.find("reason") < schema.find("verdict"), "{schema}");
    }
}
