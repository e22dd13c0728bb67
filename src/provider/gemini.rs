//! Google's Gemini API (`generateContent`): its requests and its replies (pure).

mod body;
mod older_schema;
mod reply;

use super::dialect::Dialect;
use super::request::OptionalField;
use super::tool_schema::ToolSchemas;
use crate::server_url::Version;

pub static DIALECT: Dialect = Dialect {
    name: "gemini",
    version: Version::InPaths(&["/v1beta", "/v1"]),
    models_path: "/v1beta/models?pageSize=1000",
    next_models: "pageToken",
    fixed_headers: &[],
    key_header: ("x-goog-api-key", ""),
    takes_bearer: false,
    chat: |prompt, quirks| (body::path(prompt), body::body(prompt, quirks)),
    event: reply::read_response,
    whole: reply::read_response,
    reply_fields: &[
        "candidates",
        "promptFeedback",
        "usageMetadata",
        "responseId",
        "modelVersion",
    ],
    ends_with_done: |_| Ok(false),
    optional_fields: &[
        (OptionalField::Effort, "/generationConfig/thinkingConfig"),
        (OptionalField::Form, "/generationConfig/responseMimeType"),
        (
            OptionalField::JsonSchemas,
            "/tools/0/functionDeclarations/0/parametersJsonSchema",
        ),
        (OptionalField::Store, "/store"),
        (OptionalField::System, "/systemInstruction"),
        (
            OptionalField::ToolChoice,
            "/toolConfig/functionCallingConfig",
        ),
    ],
    enforces_maps: true,
    searches: true,
    groups_tools: true,
    tool_schemas: ToolSchemas::FewKeywords,
};

#[cfg(test)]
mod tests {
    use super::super::dialect::tests::{prompt, shapes};
    use super::super::table;
    use super::*;
    use crate::provider::request::{AnswerForm, Prompt};
    use serde_json::{Value, json};

    #[test]
    fn the_effort_is_sent_together_with_the_form_of_the_answer() {
        let [strict, _] = shapes();
        let effort = json!({"thinkingLevel": "low"});
        let of = |form| {
            sent(&Prompt {
                form,
                effort: Some("low"),
                ..prompt()
            })["generationConfig"]
                .clone()
        };
        assert_eq!(of(AnswerForm::Any), json!({"thinkingConfig": effort}));
        let expected = json!({"thinkingConfig": effort, "responseMimeType": "application/json"});
        assert_eq!(of(AnswerForm::Object), expected);
        assert_eq!(of(AnswerForm::Shaped(&strict))["thinkingConfig"], effort);
    }

    fn sent(prompt: &Prompt) -> Value {
        body::body(prompt, table::find("gemini").expect("a row").quirks)
    }
}
