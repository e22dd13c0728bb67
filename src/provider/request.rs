//! What a model is asked, the same for every dialect, and the HTTP request that a dialect makes from it (pure).

use std::fmt;

use serde_json::{Map, Value, json};

use super::kept::{self, ByteBudget};
use crate::message::echo::Echo;
use crate::message::{Message, Role, Step, Tool, json_or_text};
use crate::secret::Secret;
use crate::shape::Shape;

/// A question to a model, the same for every dialect. Tools and steps are borrowed because results may have megabytes.
#[derive(Debug)]
pub struct Prompt<'a> {
    pub model: &'a str,
    /// If it is empty, no system prompt is sent.
    pub system: &'a str,
    /// The last one is the question.
    pub messages: Vec<Message>,
    /// How many messages, or parts of a flattened one, stay at the beginning while those after them are replaced in time.
    pub lasting: usize,
    /// The most tokens of the answer; `None` leaves this to the API if the API allows it.
    pub max_tokens: Option<u64>,
    /// How much the model thinks, as a value that the provider defines; `None` leaves it to the provider.
    pub effort: Option<&'a str>,
    /// What the server has rejected in an earlier request.
    pub rejected_fields: &'a [OptionalField],
    pub stream: bool,
    /// The tools offered, sorted by name. If there are none, the request has no field about tools.
    pub tools: &'a [Tool],
    /// Whether the provider may search the web.
    pub web: bool,
    /// The calls of this question so far. They follow the messages, in the form in which the API sent them.
    pub steps: &'a [Step],
    /// A turn of the model that the provider paused, in the form in which the API sent it.
    pub paused_turn: &'a Echo,
    /// Whether there are tools, but they must not be called again.
    pub forbids_calls: bool,
    pub form: AnswerForm<'a>,
}

impl Prompt<'_> {
    /// Returns what is left of the budget after the model's turns so far.
    pub(super) fn budget_left(&self) -> ByteBudget {
        let turns = self.steps.iter().map(|step| &step.echo);
        let mut budget = ByteBudget::default();
        for part in turns.chain([self.paused_turn]).flat_map(Echo::texts) {
            budget.spend(kept::weight(&part));
        }
        let runs = self.steps.iter().flat_map(|step| &step.calls);
        for run in runs.filter(|run| !run.api_data.is_null()) {
            budget.spend(kept::weight(&run.api_data.to_string()));
        }
        budget
    }

    /// Whether the request says that the model must not call.
    pub(super) fn says_no_calls(&self) -> bool {
        self.forbids_calls && self.sends(OptionalField::ToolChoice)
    }

    /// Whether the request has this, if the dialect has it at all.
    pub(super) fn sends(&self, field: OptionalField) -> bool {
        !self.rejected_fields.contains(&field)
    }

    /// Whether turns of the model go back that may have sealed reasoning.
    pub(super) fn has_earlier_turns(&self) -> bool {
        !self.steps.is_empty() || !self.paused_turn.items().is_empty()
    }

    /// Whether turns of the model go back, from the conversation or with calls.
    pub(super) fn has_turns(&self) -> bool {
        let mut messages = self.messages.iter();
        !self.steps.is_empty() || messages.any(|message| message.role == Role::Assistant)
    }

    /// Whether turns of the model go back with reasoning as text.
    pub(super) fn has_reasoned_turns(&self) -> bool {
        let mut fields = self.steps.iter().filter_map(|step| step.echo.fields());
        fields.any(|fields| !fields.reasoning.is_empty() || !fields.plain.is_empty())
    }

    /// Whether images or PDFs go with it, from the user or from tools.
    pub(super) fn has_attachments(&self) -> bool {
        let of_user = self
            .messages
            .iter()
            .flat_map(|message| &message.attachments);
        let runs = self.steps.iter().flat_map(|step| &step.calls);
        let of_tools = runs.flat_map(|run| &run.images);
        let mut attachments = of_user.chain(of_tools);
        attachments.any(|one| !one.data.is_empty())
    }
}

/// The form of answer that the API must enforce.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AnswerForm<'a> {
    Any,
    /// A JSON object of any shape.
    Object,
    /// JSON of this shape.
    Shaped(&'a Shape),
}

/// The name of an answer's shape, for APIs that demand one.
pub(super) const SHAPE_NAME: &str = "answer";

/// A model in a provider's list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListedModel {
    pub id: String,
    /// When it was made: seconds since 1970 or RFC 3339, as the provider writes it. Comparable only within a list.
    pub created: Option<String>,
    /// Whether the list says that it is in memory.
    pub is_loaded: bool,
    /// Whether it is for embedding, ranking or speech, as the list or its name says.
    pub cannot_chat: bool,
}

/// A field of the request's body that the user sets, or removes.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The names of the objects that contain the field, outermost first, and then the field's name.
    pub path: Vec<String>,
    /// Null removes the field.
    pub value: Value,
}

impl Field {
    /// Reads `a.b=VALUE`: the value is JSON if it is valid JSON, else text.
    pub fn parse(text: &str) -> Result<Field, String> {
        let Some((key, value)) = text.split_once('=') else {
            return Err(format!("“{text}” is not KEY=VALUE, such as temperature=0"));
        };
        let path: Vec<String> = key.split('.').map(str::to_owned).collect();
        if path.iter().any(String::is_empty) {
            return Err(format!(
                "“{key}” is not the name of a field, such as temperature or reasoning.summary"
            ));
        }
        let value = json_or_text(value);
        // The model would differ from the one that is reported and saved.
        if path[0] == "model" && !value.is_null() {
            return Err("-m chooses the model, not -o".to_owned());
        }
        Ok(Field { path, value })
    }

    /// Whether it sets the field at this JSON pointer, a part of that field, or an object that contains it.
    pub(super) fn meets(&self, pointer: &str) -> bool {
        let own = format!("/{}/", self.path.join("/"));
        let other = format!("{pointer}/");
        own.starts_with(&other) || other.starts_with(&own)
    }

    /// Sets the field in a body. Replaces what is in its place.
    pub(super) fn set(&self, body: &mut Value) {
        let Some((name, objects)) = self.path.split_last() else {
            return;
        };
        let mut place = body;
        for object in objects {
            if !place.get(object).is_some_and(Value::is_object) {
                if self.value.is_null() {
                    return;
                }
                place[object.as_str()] = Value::Object(Map::new());
            }
            place = &mut place[object.as_str()];
        }
        let Some(fields) = place.as_object_mut() else {
            return;
        };
        if self.value.is_null() {
            fields.shift_remove(name);
        } else {
            fields.insert(name.clone(), self.value.clone());
        }
    }
}

/// Returns a JSON object of these fields. The macro `json!` would copy them, and messages may have megabytes.
pub(super) fn object<const COUNT: usize>(fields: [(&str, Value); COUNT]) -> Value {
    let fields = fields.map(|(name, value)| (name.to_owned(), value));
    Value::Object(Map::from_iter(fields))
}

/// Returns a JSON object without its null and empty fields: servers reject some of these.
pub(super) fn without_empty(mut object: Value) -> Value {
    let empty = [json!(null), json!(""), json!([]), json!({})];
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| !empty.contains(value));
    }
    object
}

/// The differences of a server from others with the same dialect.
#[derive(Debug, Clone, Copy)]
pub struct Quirks {
    /// Whether it accepts `stream_options`, and then reports the usage in a stream.
    pub stream_usage: bool,
    /// Whether it knows `max_completion_tokens`, which OpenAI's newer models demand in place of `max_tokens`. Mistral rejects it.
    pub max_completion_tokens: bool,
    /// Whether it is known to want reasoning with all calls that come back, empty where there was none. Others say so in an error.
    pub returns_reasoning: bool,
    /// Whether it accepts PDFs as `document_url`; other servers that accept PDFs want `file`.
    pub document_url: bool,
    /// Whether it has Gemini's API and stores requests, unless a field asks it not to. Other servers with that API may not know
    /// the field.
    pub stores: bool,
    /// Whether it has a tool in chat completions that searches the web.
    pub searches: bool,
    /// The effort to send if the user sets none, because the server's default is high.
    pub effort: Option<&'static str>,
}

/// A field that a request can do without, or say in another form. Where a server rejects it, the request is sent again, once for
/// each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionalField {
    /// How much the model thinks.
    Effort,
    /// That the request is not stored.
    Store,
    /// That the provider caches what a later request may repeat.
    Cache,
    /// That a stream reports the usage.
    Usage,
    /// That reasoning comes encrypted, so that it can be sent back with the results of calls.
    Encrypted,
    /// That the model must not call a tool. Even without it, calls are not run.
    ToolChoice,
    /// The usual name of the limit of tokens. The other form is its other name.
    Limit,
    /// The system prompt as such. In the other form it is before the question.
    System,
    /// That the API enforces the form of the answer.
    Form,
    /// The schemas of tools in a field for JSON Schema. In the other form they are in an older field, which takes fewer keywords.
    JsonSchemas,
    /// Images and PDFs, which not every model reads. Only those of tools can be left out.
    Attachments,
    /// What a model has thought before its calls, in a form that only the API reads: encrypted or signed. It goes back with the
    /// results, and another server or key may not be able to read it.
    SealedReasoning,
    /// The reasoning in turns of the model, as text. Not every server takes back what it has sent.
    ReasonedTurns,
    /// Turns of the model without the field for its reasoning. In the other form all have it, empty where no reasoning came.
    UnreasonedTurns,
}

/// The limit of an answer's tokens in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenLimit {
    pub tokens: u64,
    pub origin: LimitOrigin,
}

/// What has set the limit of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitOrigin {
    /// q, because the API demands a limit and the user sets none. It can be lowered.
    Own,
    /// The setting `max_tokens`.
    Setting,
    /// The field of `-o` with this name.
    Field(String),
}

impl LimitOrigin {
    /// Finds what sets the limit where these fields of `-o` are set: one of them, or else the setting.
    pub fn of_user(fields: &[Field]) -> LimitOrigin {
        let mut pointers = TokenLimit::POINTERS.iter();
        let field = pointers.find_map(|pointer| fields.iter().find(|field| field.meets(pointer)));
        field.map_or(LimitOrigin::Setting, LimitOrigin::of_field)
    }

    fn of_field(field: &Field) -> LimitOrigin {
        LimitOrigin::Field(field.path.join("."))
    }
}

/// What a user changes, and how.
impl fmt::Display for LimitOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            LimitOrigin::Field(name) => write!(formatter, "{name} (-o or options)"),
            LimitOrigin::Own | LimitOrigin::Setting => {
                formatter.write_str("max_tokens (Q_MAX_TOKENS)")
            }
        }
    }
}

impl TokenLimit {
    /// The places of the limit in the bodies of the APIs.
    const POINTERS: &[&str] = &[
        "/max_tokens",
        "/max_completion_tokens",
        "/max_output_tokens",
        "/generationConfig/maxOutputTokens",
    ];

    /// Finds the limit in a body in which these fields of `-o` are set. `is_own` says whose it is if none of them sets it.
    pub(super) fn find(body: &Value, fields: &[Field], is_own: bool) -> Option<TokenLimit> {
        let mut limits = Vec::new();
        for pointer in Self::POINTERS {
            let Some(tokens) = body.pointer(pointer).and_then(Value::as_u64) else {
                continue;
            };
            let field = fields.iter().find(|field| field.meets(pointer));
            let origin = match field {
                Some(field) => LimitOrigin::of_field(field),
                None if is_own => LimitOrigin::Own,
                None => LimitOrigin::Setting,
            };
            limits.push(TokenLimit { tokens, origin });
        }
        let is_of_field = |limit: &TokenLimit| matches!(limit.origin, LimitOrigin::Field(_));
        let place = limits.iter().position(is_of_field).unwrap_or(0);
        (place < limits.len()).then(|| limits.swap_remove(place))
    }
}

/// The tools of a request.
#[derive(Debug, Clone, Default)]
pub struct RequestedTools {
    /// In the order of the request.
    pub names: Vec<String>,
    /// Whether they are one element in the request's list of tools. The others are the provider's own.
    pub are_grouped: bool,
}

/// A request to a path below the client's address.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub path: String,
    pub headers: Vec<(String, Secret)>,
    /// The JSON to post; `None` is a GET. As values it would take more memory, all the time until the answer has arrived.
    pub body: Option<String>,
    /// Whether the reply may call tools. Calls in any other reply cannot run.
    pub offers_tools: bool,
    /// What q, not the user, has put into it, and what it can do without.
    pub optional_fields: Vec<OptionalField>,
    /// The limit of the answer's tokens, if it has one.
    pub limit: Option<TokenLimit>,
    pub tools: RequestedTools,
    /// The ids of the question's calls that came before it.
    pub earlier_call_ids: Vec<String>,
    /// What the replies before it have left of the budget, which is for all replies of a question.
    pub budget: ByteBudget,
}

impl Request {
    /// Whether it asks for the list of models, the only request without a body.
    pub fn lists_models(&self) -> bool {
        self.body.is_none()
    }

    /// Returns the request with these headers, too. They replace those with the same name.
    pub fn with_headers(mut self, headers: &[(String, Secret)]) -> Request {
        for (name, _) in headers {
            self.headers
                .retain(|(own, _)| !own.eq_ignore_ascii_case(name));
        }
        self.headers.extend_from_slice(headers);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn extra_fields_are_json_or_text_and_dots_lead_into_objects() {
        let body = json!({"model": "m", "stream": true, "reasoning": {"effort": "low"}});
        let table = r##"
            - | {"model": "m", "stream": true, "reasoning": {"effort": "low"}}
            temperature=0 | {"model": "m", "stream": true, "reasoning": {"effort": "low"}, "temperature": 0}
            reasoning.summary=auto stream=null | {"model": "m", "reasoning": {"effort": "low", "summary": "auto"}}
            a.b.c=[1,"x"] reasoning=null | {"model": "m", "stream": true, "a": {"b": {"c": [1, "x"]}}}
            stream.x=1 | {"model": "m", "stream": {"x": 1}, "reasoning": {"effort": "low"}}
            a=1 a=2 b.c=null reasoning=null stop={"x":"="} | {"model": "m", "stream": true, "a": 2, "stop": {"x": "="}}
            a= reasoning=null | {"model": "m", "stream": true, "a": ""}
        "##;
        for [fields, expected] in rows(table) {
            let fields = fields.split_whitespace();
            let mut body = body.clone();
            for field in fields {
                Field::parse(field).expect(field).set(&mut body);
            }
            let expected: Value = serde_json::from_str(expected).expect(expected);
            assert_eq!(body, expected, "{expected}");
        }
    }

    #[test]
    fn the_limit_of_tokens_is_that_of_the_user_before_that_of_q() {
        // The body, the fields of -o, and the limit where the setting has none and where it has one.
        let table = r##"
            {} | - | None | None
            {"max_tokens":9} | - | 9 Own | 9 Setting
            {"max_output_tokens":9} | - | 9 Own | 9 Setting
            {"max_completion_tokens":9} | top_p=1 | 9 Own | 9 Setting
            {"generationConfig":{"maxOutputTokens":9}} | - | 9 Own | 9 Setting
            {"max_tokens":9} | max_tokens=8 | 8 Field("max_tokens") | 8 Field("max_tokens")
            {"max_tokens":9} | max_completion_tokens=8 | 8 Field("max_completion_tokens") | 8 Field("max_completion_tokens")
            {} | generationConfig={"maxOutputTokens":8} | 8 Field("generationConfig") | 8 Field("generationConfig")
            {"max_tokens":9} | max_tokens=null | None | None
            {"max_tokens":9} | max_tokens=many | None | None
        "##;
        for [body, fields, own, of_setting] in rows(table) {
            let mut found: Value = serde_json::from_str(body).expect(body);
            let fields = fields.split_whitespace();
            let fields = Vec::from_iter(fields.map(|field| Field::parse(field).expect(field)));
            for field in &fields {
                field.set(&mut found);
            }
            for (is_own, expected) in [(true, own), (false, of_setting)] {
                let limit = TokenLimit::find(&found, &fields, is_own);
                let limit = limit.map(|limit| format!("{} {:?}", limit.tokens, limit.origin));
                assert_eq!(
                    limit.as_deref().unwrap_or("None"),
                    expected,
                    "{body} {fields:?}"
                );
            }
        }
    }

    #[test]
    fn a_field_overlaps_its_parents_and_children() {
        for (field, pointer, meets) in [
            ("store=true", "/store", true),
            ("reasoning=null", "/reasoning/effort", true),
            ("text.format.schema={}", "/text/format", true),
            ("reasoning.summary=auto", "/reasoning/effort", false),
            ("stored=1", "/store", false),
            ("store=1", "/stored", false),
        ] {
            let found = Field::parse(field).expect(field).meets(pointer);
            assert_eq!(found, meets, "{field} {pointer}");
        }
    }

    #[test]
    fn a_field_without_a_valid_name_or_with_a_reserved_one_is_refused() {
        for text in "|temperature|=1|.a=1|a.=1|a..b=1|model=m|model.x=1".split('|') {
            assert!(Field::parse(text).is_err(), "{text}");
        }
    }
}
