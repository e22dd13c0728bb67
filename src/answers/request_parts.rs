//! Hashes the parts of a request, so that a cached answer tells in which of them another request differs (pure).

use std::fmt::Write;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::message::{Message, Role};
use crate::provider::request::Field;

/// Fields of a body that are parts of their own, or follow from them, in all dialects.
const NOT_OPTIONS: &[&str] = &[
    "model",
    "system",
    "instructions",
    "systemInstruction",
    "messages",
    "input",
    "contents",
    "cache_control",
];

/// Fields of a body that change how an answer arrives, and not what it says.
pub const OF_ARRIVAL: &[&str] = &["stream", "stream_options"];

/// How many bytes of a hash are kept. Nothing is decided by them but what an error says.
const KEPT_BYTES: usize = 6;

/// The hashes of all that makes a request besides its model and the words of its question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestParts {
    /// The base URL.
    pub server: String,
    pub system: String,
    /// The messages before the question, and whether they are sent as one.
    pub earlier: String,
    /// The files, the input and the attachments. If there are no words, the input is the question.
    pub input: String,
    /// All other fields of the body, the API, and the schema of the answer.
    pub options: String,
}

/// A request, as far as its parts are told apart.
pub struct WholeRequest<'a> {
    pub base_url: &'a str,
    pub dialect: &'a str,
    pub system: &'a str,
    pub question: &'a Message,
    /// The words at the end of the question, if it has any.
    pub words: &'a str,
    pub earlier: &'a [Message],
    /// Whether the earlier messages are sent as one.
    pub is_flattened: bool,
    pub body: &'a Value,
    /// The fields of the body that the user has set.
    pub set_by_user: &'a [Field],
    /// The schema that the answer must obey. Perhaps only the text of the question has it.
    pub schema: Option<&'a Value>,
}

impl RequestParts {
    pub fn new(request: &WholeRequest) -> RequestParts {
        RequestParts {
            server: hash_of([request.base_url]),
            system: hash_of([request.system]),
            earlier: hash_of_earlier(request),
            input: hash_of_input(request),
            options: hash_of_options(request),
        }
    }
}

fn hash_of_earlier(request: &WholeRequest) -> String {
    let mut texts = Vec::new();
    if !request.earlier.is_empty() {
        texts.push(if request.is_flattened { "one" } else { "each" });
    }
    for message in request.earlier {
        texts.push(match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        });
        texts.push(&*message.text);
        add_attachments(message, &mut texts);
    }
    hash_of(texts)
}

fn hash_of_input(request: &WholeRequest) -> String {
    let text = &*request.question.text;
    let mut texts = vec![text.strip_suffix(request.words).unwrap_or(text)];
    add_attachments(request.question, &mut texts);
    hash_of(texts)
}

/// Adds what requests have of the attachments of a message: of names only that of a PDF, without its directory.
fn add_attachments<'a>(message: &'a Message, texts: &mut Vec<&'a str>) {
    for attachment in &message.attachments {
        let mut name = "";
        if !attachment.is_image() {
            name = attachment.name.rsplit('/').next().unwrap_or_default();
        }
        texts.extend([name, &*attachment.media, attachment.data.as_str()]);
    }
}

fn hash_of_options(request: &WholeRequest) -> String {
    let fields = request.body.as_object();
    let mut texts = vec![request.dialect.to_owned()];
    for (name, value) in fields.into_iter().flatten() {
        let name = name.as_str();
        if !NOT_OPTIONS.contains(&name) && !OF_ARRIVAL.contains(&name) {
            texts.extend([name.to_owned(), value.to_string()]);
        }
    }
    // Such a field need not have what the other parts have.
    let set = request
        .set_by_user
        .iter()
        .filter_map(|field| field.path.first());
    for name in set.filter(|name| NOT_OPTIONS.contains(&name.as_str())) {
        let value = &request.body[name.as_str()];
        texts.extend([name.clone(), value.to_string()]);
    }
    texts.extend(request.schema.map(Value::to_string));
    hash_of(texts.iter().map(String::as_str))
}

/// Returns the beginning of the SHA-256 of some texts, in hexadecimal digits.
fn hash_of<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        // The end of one text and the beginning of the next are not the same as both in one.
        hash.update(text.len().to_string());
        hash.update(" ");
        hash.update(text);
    }
    let mut digits = String::new();
    for byte in hash.finalize().iter().take(KEPT_BYTES) {
        // Nothing is written that could fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// Reads the hashes of a file. If they cannot be read, for example after an edit by hand, they count as missing; the answer is
/// still used.
pub fn readable<'de, D: Deserializer<'de>>(field: D) -> Result<Option<RequestParts>, D::Error> {
    let value = Value::deserialize(field)?;
    Ok(RequestParts::deserialize(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Attachment;
    use serde_json::json;

    /// What a request is made of, so that a row of a table can change some of it.
    struct RequestParameters {
        base_url: &'static str,
        dialect: &'static str,
        system: &'static str,
        words: &'static str,
        before_words: &'static str,
        files: &'static [[&'static str; 3]],
        earlier: Vec<Message>,
        is_flattened: bool,
        body: Value,
        fields: &'static [&'static str],
        schema: Option<Value>,
    }

    impl RequestParameters {
        fn new() -> RequestParameters {
            RequestParameters {
                base_url: "https://h/v1",
                dialect: "openai",
                system: "s",
                words: "why?",
                before_words: "<context>\nlog\n</context>\n\n",
                files: &[["a/b.png", "image/png", "AA=="]],
                earlier: vec![said(Role::User, "one"), said(Role::Assistant, "two")],
                is_flattened: true,
                body: json!({"model": "m", "stream": true, "messages": ["all"], "n": 1, "stop": "x"}),
                fields: &[],
                schema: None,
            }
        }

        fn parts(&self) -> RequestParts {
            let text = self.before_words.to_owned() + self.words;
            let files = self.files.iter().map(attached).collect();
            let fields = self.fields.iter().map(|text| Field::parse(text));
            RequestParts::new(&WholeRequest {
                base_url: self.base_url,
                dialect: self.dialect,
                system: self.system,
                question: &Message::with_attachments(Role::User, files, text),
                words: self.words,
                earlier: &self.earlier,
                is_flattened: self.is_flattened,
                body: &self.body,
                set_by_user: &Vec::from_iter(fields.map(|field| field.expect("a field"))),
                schema: self.schema.as_ref(),
            })
        }
    }

    fn said(role: Role, text: &str) -> Message {
        Message::text(role, text)
    }

    fn attached(file: &[&str; 3]) -> Attachment {
        let [name, media, data] = file;
        let file = json!({"name": name, "type": media, "data": data});
        serde_json::from_value(file).expect("an attachment")
    }

    /// The names of the parts that differ.
    fn differing(one: &RequestParts, other: &RequestParts) -> String {
        let [one, other] = [one, other].map(|parts| json!(parts));
        let fields = one.as_object().expect("an object").iter();
        let names = fields.filter(|(name, hash)| other[name.as_str()] != **hash);
        Vec::from_iter(names.map(|(name, _)| name.as_str())).join(" ")
    }

    #[test]
    fn a_changed_parameter_changes_the_hash_of_its_part_alone() {
        type Change = fn(&mut RequestParameters);
        let table: &[(&str, Change)] = &[
            ("", |_| {}),
            ("", |made| made.words = "why not?"),
            ("", |made| made.body["model"] = json!("other")),
            ("", |made| made.body["stream"] = json!(false)),
            ("", |made| made.body["stream_options"] = json!({})),
            ("", |made| made.body["messages"] = json!(["others"])),
            ("", |made| made.body["cache_control"] = json!({})),
            ("", |made| made.files = &[["c.png", "image/png", "AA=="]]),
            ("", |made| made.fields = &["n=1"]),
            ("server", |made| made.base_url = "https://h/v2"),
            ("system", |made| made.system = ""),
            ("input", |made| made.before_words = ""),
            ("input", |made| {
                made.before_words = "<context>\nlog\n</context>\n";
            }),
            ("input", |made| made.files = &[]),
            ("input", |made| {
                made.files = &[["b.png", "image/png", "AB=="]];
            }),
            ("input", |made| {
                made.files = &[["b.png", "image/webp", "AA=="]];
            }),
            ("input", |made| {
                made.files = &[
                    ["b.png", "image/png", "AA=="],
                    ["b.png", "image/png", "AA=="],
                ];
            }),
            ("earlier", |made| made.earlier.clear()),
            ("earlier", |made| made.earlier.truncate(1)),
            ("earlier", |made| {
                made.earlier[0] = said(Role::Assistant, "one");
            }),
            ("earlier", |made| {
                made.earlier[1] = said(Role::Assistant, "three");
            }),
            ("earlier", |made| {
                made.earlier[0]
                    .attachments
                    .push(attached(&["a.png", "image/png", "AA=="]));
            }),
            ("earlier", |made| made.is_flattened = false),
            ("options", |made| made.dialect = "responses"),
            ("options", |made| made.body["n"] = json!(2)),
            ("options", |made| made.body["stop"] = json!("x\"")),
            ("options", |made| made.body["more"] = json!(null)),
            ("options", |made| made.schema = Some(json!({}))),
            ("options", |made| made.fields = &["messages=[]"]),
            ("options", |made| made.fields = &["system.x=1"]),
            ("system options", |made| {
                (made.system, made.body["n"]) = ("t", json!(2));
            }),
        ];
        let parts = RequestParameters::new().parts();
        for (number, (expected, change)) in table.iter().enumerate() {
            let mut made = RequestParameters::new();
            change(&mut made);
            let found = differing(&parts, &made.parts());
            assert_eq!(found, *expected, "row {number}");
        }
    }

    #[test]
    fn the_name_of_a_pdf_changes_the_hash_and_its_directory_does_not() {
        let input = |name: &'static str| {
            let file = attached(&[name, "application/pdf", "AA=="]);
            let mut made = RequestParameters::new();
            made.earlier[0].attachments.push(file);
            made.parts().earlier
        };
        assert_eq!(input("a.pdf"), input("b/a.pdf"));
        assert_ne!(input("a.pdf"), input("b.pdf"));
    }

    #[test]
    fn without_earlier_messages_the_form_of_the_history_changes_no_hash() {
        let earlier = |is_flattened| {
            let mut made = RequestParameters::new();
            made.earlier.clear();
            made.is_flattened = is_flattened;
            made.parts().earlier
        };
        assert_eq!(earlier(true), earlier(false));
    }

    #[test]
    fn texts_that_are_divided_differently_have_different_hashes() {
        let mut hashes = Vec::new();
        for texts in [&["ab", "c"][..], &["a", "bc"], &["abc"], &["abc", ""], &[]] {
            hashes.push(hash_of(texts.iter().copied()));
        }
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 5);
    }

    #[test]
    fn the_hashes_of_request_parts_stay_the_same_from_version_to_version() {
        // Another one would say of all answers in repositories that this part differs.
        let expected = json!({
            "server": "63001d803084",
            "system": "53af32d5788a",
            "earlier": "0eebc463816c",
            "input": "41f8c7f594ad",
            "options": "a36dd62fff42",
        });
        assert_eq!(json!(RequestParameters::new().parts()), expected);
    }
}
