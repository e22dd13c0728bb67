//! Reads the lists of models of all servers (pure).

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::api_of::first_fields;
use super::failure::{ReplyError, ReplyResult};
use super::lenient::{self, List, Object, Scalar, Text};
use super::request::ListedModel;
use crate::text::byte_order_mark::text_after_mark;
use crate::text::surrogates;

/// A list of models, or a page of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ModelPage {
    /// In the server's order.
    pub models: Vec<ListedModel>,
    pub next: NextPage,
}

/// The page of a list that follows another one.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum NextPage {
    /// There is none.
    #[default]
    Absent,
    /// The server wants to hear this in the request for it.
    After(String),
    /// The server says that there is one, and not how to ask for it.
    Unnamed,
}

/// Reads a list of models.
pub fn read_models(body: &str) -> ReplyResult<ModelPage> {
    let body = surrogates::replaced(text_after_mark(body));
    let found = FoundList::find(&body)?;
    let entries: List<&RawValue> = serde_json::from_str(found.json)?;
    let mut models = Vec::new();
    let mut is_any_named = false;
    for entry in &entries.0 {
        let entry = ListedEntry::read(entry.get());
        is_any_named |= !matches!(entry, ListedEntry::Unnamed);
        if let ListedEntry::Served(model) = entry {
            models.push(model);
        }
    }
    match entries.0.first() {
        Some(first) if !is_any_named => Err(ReplyError::Malformed(without_names(first))),
        _ => {
            let last = entries.0.last().map_or("", |last| last.get());
            let next = match found.next {
                NextPage::Unnamed => after_last(last),
                known => known,
            };
            Ok(ModelPage { models, next })
        }
    }
}

/// Returns how to ask for the page after the one that ends with this entry: by the id, as in lists like OpenAI's.
fn after_last(entry: &str) -> NextPage {
    match read_entry(entry) {
        Ok(last) if !last.id.is_empty() => NextPage::After(last.id.to_string()),
        _ => NextPage::Unnamed,
    }
}

/// The list in a body, and the page after it.
struct FoundList<'a> {
    /// A list, or null.
    json: &'a str,
    next: NextPage,
}

impl FoundList<'_> {
    /// Finds the list. Together sends a bare one, and Ollama null if it has no models.
    fn find(body: &str) -> ReplyResult<FoundList<'_>> {
        let mut next = NextPage::Absent;
        let mut list: &RawValue = serde_json::from_str(body)?;
        if list.get().starts_with('{') {
            let lists: ModelLists = serde_json::from_str(list.get())?;
            next = lists.next_page();
            let mut fields = [lists.data, lists.models].into_iter().flatten();
            let given = fields.clone().find(|field| field.get().starts_with('['));
            list = given.or(fields.next()).unwrap_or(list);
        }
        let json = list.get();
        if !json.starts_with('[') && json != "null" {
            let reason = "the list of models is not a list";
            return Err(ReplyError::Malformed(reason.to_owned()));
        }
        Ok(FoundList { json, next })
    }
}

/// An entry of a list of models.
enum ListedEntry {
    Unnamed,
    /// Anthropic's list keeps the models that it no longer serves.
    Retired,
    Served(ListedModel),
}

impl ListedEntry {
    fn read(json: &str) -> ListedEntry {
        if let Ok(model) = read_entry(json) {
            return ListedEntry::of(&model);
        }
        // It may have a field twice, of which a tree keeps one. No entry costs the others.
        let respelled = lenient::value(json).unwrap_or_default().to_string();
        ListedEntry::of(&read_entry(&respelled).unwrap_or_default())
    }

    fn of(model: &ModelEntry) -> ListedEntry {
        let Some(id) = model.name_to_ask() else {
            return ListedEntry::Unnamed;
        };
        if &*model.lifecycle == "retired" {
            return ListedEntry::Retired;
        }
        let signs_of_loading = [&model.status, &model.state, &model.loaded];
        ListedEntry::Served(ListedModel {
            id: id.trim_start_matches("models/").to_owned(),
            created: creation_time(model),
            is_loaded: signs_of_loading.iter().any(|field| field.0),
            cannot_chat: cannot_chat(id, model),
        })
    }
}

/// Says what is wrong with a list whose models have no names, by its first entry.
fn without_names(first: &RawValue) -> String {
    let fields = first_fields(first.get());
    if fields.is_empty() {
        return "the list of models has no names".to_owned();
    }
    format!("the list of models has no names: its first entry begins with the fields {fields}")
}

/// Reads an entry of the list. Some servers list ids alone.
fn read_entry(entry: &str) -> serde_json::Result<ModelEntry<'_>> {
    if entry.starts_with('"') {
        return Ok(ModelEntry {
            id: serde_json::from_str(entry)?,
            ..ModelEntry::default()
        });
    }
    let fields: Object<ModelEntry> = serde_json::from_str(entry)?;
    Ok(fields.0.unwrap_or_default())
}

/// The fields that may have the list of models.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ModelLists<'a> {
    #[serde(borrow, deserialize_with = "also_null")]
    data: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "also_null")]
    models: Option<&'a RawValue>,
    /// Whether another page follows, in the lists of Anthropic and those like OpenAI's.
    has_more: Scalar<bool>,
    /// The last model of the page, after which the next one begins.
    last_id: Text<'a>,
    /// Gemini's word for the next page.
    #[serde(rename = "nextPageToken")]
    next_page_token: Text<'a>,
}

impl ModelLists<'_> {
    /// Returns the next page, as far as the fields next to the list tell.
    fn next_page(&self) -> NextPage {
        let has_more = self.has_more.0 == Some(true);
        if !self.next_page_token.is_empty() {
            NextPage::After(self.next_page_token.to_string())
        } else if !has_more {
            NextPage::Absent
        } else if self.last_id.is_empty() {
            NextPage::Unnamed
        } else {
            NextPage::After(self.last_id.to_string())
        }
    }
}

/// Reads a field in which null is a list without models.
fn also_null<'de, D: Deserializer<'de>>(field: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(field).map(Some)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ModelEntry<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    slug: Text<'a>,
    name: Text<'a>,
    model: Text<'a>,
    model_id: Text<'a>,
    /// In Bedrock's list.
    #[serde(rename = "modelId")]
    bedrock_id: Text<'a>,
    model_name: Text<'a>,
    key: Text<'a>,
    created: Scalar<u32>,
    created_at: Text<'a>,
    /// Anthropic's word for what has become of it.
    lifecycle: Text<'a>,
    /// In the list of llama.cpp's router.
    status: LoadedField,
    /// In LM Studio's own list, as is the type.
    state: LoadedField,
    loaded: LoadedField,
    r#type: ChatField,
    task: ChatField,
    labels: ChatField,
    capabilities: ChatField,
    architecture: ChatField,
}

impl ModelEntry<'_> {
    /// Returns the name by which the model is asked. ChatGPT's list has slugs, Gemini's a `name` such as
    /// `models/gemini-flash-latest`, gateways have `model`, LiteLLM `model_name`, and LM Studio's own list has keys. Next to an
    /// id or a slug, `name` is for people; next to what only some servers have, it is what is asked, and the rest is internal.
    fn name_to_ask(&self) -> Option<&str> {
        let names = [
            &self.id,
            &self.slug,
            &self.name,
            &self.model,
            &self.model_id,
            &self.bedrock_id,
            &self.model_name,
            &self.key,
        ];
        let mut given = names.into_iter().filter(|name| !name.is_empty());
        given.next().map(|name| &**name)
    }
}

/// The field that says whether a model is in memory. One that sleeps wakes at once.
#[derive(Default)]
struct LoadedField(bool);

impl<'de> Deserialize<'de> for LoadedField {
    fn deserialize<D: Deserializer<'de>>(field: D) -> Result<LoadedField, D::Error> {
        let json = <&RawValue>::deserialize(field)?.get();
        let status: Object<ModelStatus> = serde_json::from_str(json).unwrap_or_default();
        let value = status.0.unwrap_or_default().value;
        let is_loaded = |word: &str| matches!(word, "loaded" | "sleeping");
        Ok(LoadedField(
            json == "true" || is_loaded(json.trim_matches('"')) || is_loaded(&value),
        ))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ModelStatus<'a> {
    #[serde(borrow)]
    value: Text<'a>,
}

/// The field that says whether a model can chat.
#[derive(Default)]
struct ChatField(Option<bool>);

/// What fields say of models that chat, in the words of LM Studio, Ollama, Mistral and others.
const CHATS: &[&str] = &[
    "llm",
    "vlm",
    "completion",
    "completion_chat",
    "chat",
    "text-generation",
];

/// What the words for other models contain.
const CANNOT_CHAT: &[&str] = &["embed", "rerank", "transcri", "speech"];

/// What the names of models have that cannot chat, where the list does not tell.
const NAMES_WITHOUT_CHAT: &[&str] = &["embed", "rerank", "bge-", "whisper"];

impl<'de> Deserialize<'de> for ChatField {
    fn deserialize<D: Deserializer<'de>>(field: D) -> Result<ChatField, D::Error> {
        let json = <&RawValue>::deserialize(field)?.get();
        let mut words = Vec::new();
        add_words_of(&lenient::value(json).unwrap_or_default(), &mut words);
        if words.iter().any(|word| CHATS.contains(&word.as_str())) {
            return Ok(ChatField(Some(true)));
        }
        let cannot_chat = words.iter().any(|word| has_any(word, CANNOT_CHAT));
        Ok(ChatField(cannot_chat.then_some(false)))
    }
}

/// Adds the words of a value in lower case: its texts and the names of its fields, except for what is false, as Mistral writes
/// what a model cannot do.
fn add_words_of(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) => words.push(text.to_lowercase()),
        Value::Array(values) => values.iter().for_each(|one| add_words_of(one, words)),
        Value::Object(fields) => {
            for (name, field) in fields {
                if *field != Value::Bool(false) && !field.is_null() {
                    words.push(name.to_lowercase());
                    add_words_of(field, words);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn has_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// Whether a model cannot chat, by what the list says of it, else by its name.
fn cannot_chat(id: &str, model: &ModelEntry) -> bool {
    let fields = [
        &model.r#type,
        &model.task,
        &model.labels,
        &model.capabilities,
        &model.architecture,
    ];
    let says = |chats: bool| fields.iter().any(|field| field.0 == Some(chats));
    says(false) || (!says(true) && has_any(&id.to_ascii_lowercase(), NAMES_WITHOUT_CHAT))
}

fn creation_time(model: &ModelEntry) -> Option<String> {
    match model.created.0 {
        // With leading zeros, numbers sort like text.
        Some(seconds) => Some(format!("{seconds:012}")),
        // Anthropic's list has the time as text.
        None if model.created_at.is_empty() => None,
        None => Some(model.created_at.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    fn models_in(body: &str) -> ReplyResult<Vec<ListedModel>> {
        read_models(body).map(|page| page.models)
    }

    #[test]
    fn a_page_of_a_list_says_how_to_ask_for_the_next_one() {
        let table = r##"
            Anthropic | c | {"data":[{"id":"a"}],"first_id":"a","has_more":true,"last_id":"c"}
            OpenAI | c | {"object":"list","data":[{"id":"a"}],"has_more":true,"last_id":"c"}
            Gemini | t/1 | {"models":[{"name":"models/a"}],"nextPageToken":"t/1"}
            an empty page | c | {"data":[],"has_more":true,"last_id":"c"}
            text | c | {"data":[{"id":"a"}],"has_more":"true","last_id":"c"}
            the last page | - | {"data":[{"id":"a"}],"has_more":false,"last_id":"c"}
            Gemini's last page | - | {"models":[{"name":"models/a"}],"nextPageToken":""}
            null | - | {"data":[{"id":"a"}],"has_more":null,"last_id":"c","nextPageToken":null}
            no last model | b | {"data":[{"id":"a"},{"id":"b"}],"has_more":true,"last_id":null}
            no last model, and ids alone | b | {"data":["a","b"],"has_more":true}
            no last model, and names | ? | {"data":[{"name":"a"}],"has_more":true}
            no last model, and no model | ? | {"data":[],"has_more":true}
            odd values | - | {"data":[{"id":"a"}],"has_more":{},"last_id":[1],"nextPageToken":{}}
            one page | - | {"data":[{"id":"a"}]}
            a bare list | - | [{"id":"a"}]
        "##;
        for [server, next, body] in rows(table) {
            let page = read_models(body).expect(body);
            let found = match page.next {
                NextPage::Absent => String::new(),
                NextPage::After(token) => token,
                NextPage::Unnamed => "?".to_owned(),
            };
            assert_eq!(found, next, "{server}");
        }
    }

    #[test]
    fn a_list_of_models_is_read_in_every_form_and_keeps_its_order() {
        let model = |id: &str, created: Option<&str>| ListedModel {
            is_loaded: false,
            cannot_chat: false,
            id: id.into(),
            created: created.map(str::to_owned),
        };
        let listed = vec![model("b", Some("000000000007")), model("a", None)];
        let list = r#"[{"id":"b","created":7},{"id":"a","created":"odd"}]"#;
        assert_eq!(
            models_in(&format!(r#"{{"object":"list","data":{list}}}"#)),
            Ok(listed.clone())
        );
        let marked = format!("\u{feff}{list}");
        for list in [list, &marked] {
            assert_eq!(models_in(list), Ok(listed.clone()));
        }
        for list in [
            r#"["b","models/a"]"#,
            r#"[{"slug":"b","name":"B"},null,7,{"name":"a"}]"#,
        ] {
            let ids = [model("b", None), model("a", None)];
            for body in [
                list,
                &format!(r#"{{"data":{list}}}"#),
                &format!(r#"{{"models":{list}}}"#),
                &format!(r#"{{"data":null,"models":{list}}}"#),
                &format!(r#"{{"data":{list},"models":null}}"#),
                &format!(r#"{{"data":{{}},"models":{list}}}"#),
            ] {
                assert_eq!(models_in(body).as_deref(), Ok(&ids[..]), "{body}");
            }
        }
        for body in [r#"{"data":[]}"#, r#"{"object":"list","data":null}"#, "[]"] {
            assert_eq!(models_in(body), Ok(Vec::new()), "{body}");
        }
        for body in [
            "{}",
            r#"{"data":{}}"#,
            r#"{"data":"a"}"#,
            "\"a\"",
            "7",
            "<html>",
        ] {
            assert!(read_models(body).is_err(), "{body}");
        }
    }

    #[test]
    fn a_model_has_the_name_by_which_it_is_asked_in_the_list_of_each_server() {
        let table = r##"
            a | OpenAI | {"id":"a","name":"A","model":"x","key":"x"}
            a | ChatGPT | {"slug":"a","name":"A"}
            a/b | a gateway | {"model":"a/b","provider":"a","display_name":"A","availability_status":"available"}
            a:1b | Ollama | {"name":"a:1b","model":"a:1b","size":7}
            a | a gateway | {"model_id":"a","model_name":"A"}
            a | a gateway with internal names | {"name":"a","model":"a-120b-internal"}
            a | the same with numbers | {"name":"a","model_id":"7f3c","model_name":"A","key":"x"}
            a | Bedrock | {"modelId":"a","modelName":"A"}
            a | LiteLLM | {"model_name":"a","litellm_params":{"model":"b/a"}}
            a | Cohere | {"name":"a","key":7}
            a | LM Studio | {"type":"llm","key":"a","display_name":"A"}
            a | odd values | {"id":7,"model":"","model_id":null,"name":"a"}
        "##;
        for [id, server, entry] in rows(table) {
            let models = models_in(&format!("[{entry}]")).expect(entry);
            assert_eq!(models[0].id, id, "{server}");
        }
    }

    #[test]
    fn an_entry_with_a_field_twice_costs_no_model_of_the_list() {
        let table = r##"
            z | {"id":"z","modelId":"a","model_id":"b"}
            b | {"modelId":"a","model_id":"b"}
            b | {"key":"a","key":"b"}
            b | {"model":"a","model":"b"}
            n | {"model":"a","model":"b","name":"n"}
            b | {"id":"a","id":"b","type":"llm","type":"vlm"}
        "##;
        for [id, entry] in rows(table) {
            let models = models_in(&format!(r#"[{{"id":"x"}},{entry},{{"id":"y"}}]"#));
            let models = models.expect(entry);
            let ids = Vec::from_iter(models.iter().map(|model| &*model.id));
            assert_eq!(ids, ["x", id, "y"], "{entry}");
        }
    }

    #[test]
    fn a_list_without_names_is_no_empty_list() {
        let table = r##"
            the list of models has no names: its first entry begins with the fields title, family | [{"title":"A","family":"a"},{"title":"B"}]
            the list of models has no names: its first entry begins with the fields id, a | {"data":[{"id":"","a":1}]}
            the list of models has no names | [7,null]
            the list of models has no names | [{}]
        "##;
        for [reason, list] in rows(table) {
            let expected = ReplyError::Malformed(reason.to_owned());
            assert_eq!(read_models(list), Err(expected), "{list}");
        }
        for list in [
            r#"[{"title":"A"},{"id":"a"}]"#,
            r#"[{"id":"a","lifecycle":"retired"}]"#,
        ] {
            assert!(read_models(list).is_ok(), "{list}");
        }
    }

    #[test]
    fn a_model_that_cannot_chat_is_recognized_by_its_listed_capabilities() {
        let table = r##"
            yes | {"id":"mistral-large-latest","capabilities":{"completion_chat":true,"vision":true,"audio_transcription":false,"audio_speech":false}}
            yes | {"id":"voxtral-small-latest","capabilities":{"completion_chat":true,"audio_transcription":true}}
            no | {"id":"voxtral-mini-transcribe","capabilities":{"completion_chat":false,"audio_transcription":true}}
            yes | {"id":"a","capabilities":{"completion_chat":false,"audio_transcription":null}}
            no | {"id":"a","capabilities":{"embeddings":{"dimensions":7}}}
            yes | {"id":"embedder","capabilities":{"type":"Chat","limits":{"max_embeddings":7}}}
            no | {"id":"a","architecture":{"output_modalities":["Speech"]}}
        "##;
        for [chats, entry] in rows(table) {
            let models = models_in(&format!("[{entry}]")).expect(entry);
            assert_eq!(models[0].cannot_chat, chats == "no", "{entry}");
        }
    }
}
