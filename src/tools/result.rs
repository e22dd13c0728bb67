//! A tool's answer as the text that the model gets (pure).

use serde_json::Value;

/// The result of a call, as the model gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    /// Why the server cannot continue, with its last lines, for the user alone.
    pub(crate) server_failed: Option<String>,
}

impl Outcome {
    /// A call that failed, for this reason.
    pub(crate) fn failed(reason: impl Into<String>) -> Outcome {
        Outcome { text: reason.into(), is_error: true, server_failed: None }
    }
}

/// A server's refusal of a request: a JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) message: String,
    pub(crate) code: Option<i64>,
    /// What the server adds, as text or JSON.
    pub(crate) data: Option<String>,
}

impl Refusal {
    /// The refusal in an `error` object.
    pub(crate) fn read(error: &Value) -> Refusal {
        let message = error["message"].as_str().filter(|message| !message.is_empty());
        // Without a message the whole error stands for it, data included.
        let data = error.get("data").filter(|data| !data.is_null() && message.is_some());
        let data = data.map(|data| data.as_str().map_or_else(|| data.to_string(), str::to_owned));
        let message = message.map_or_else(|| error.to_string(), str::to_owned);
        Refusal { message, code: error["code"].as_i64(), data }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.code {
            Some(code) => write!(formatter, "{} ({code})", self.message),
            None => formatter.write_str(&self.message),
        }
    }
}

/// The model's text for an answer to `tools/call`.
pub(crate) fn read(answer: &Result<Value, Refusal>) -> Outcome {
    let result = match answer {
        Ok(result) => result,
        Err(refusal) => {
            let data = refusal.data.as_ref().map_or_else(String::new, |data| format!(": {data}"));
            return Outcome::failed(format!("{refusal}{data}"));
        }
    };
    let kind = &result["resultType"];
    if !kind.is_null() && kind != "complete" {
        let kind = kind.as_str().map_or_else(|| kind.to_string(), str::to_owned);
        return Outcome::failed(format!("the tool did not finish: its result is of the type {kind}"));
    }
    if !result.is_object() {
        return Outcome::failed("the tool answered something that is not a result");
    }
    Outcome { text: text_of(result), is_error: result["isError"] == true, server_failed: None }
}

/// The text of a result. Structured content usually repeats the text, so it counts only where there is no text.
fn text_of(result: &Value) -> String {
    // Some servers forget the list.
    if let Some(text) = result["content"].as_str() {
        return text.to_owned();
    }
    let content = result["content"].as_array().map_or(&[][..], Vec::as_slice);
    let mut pieces: Vec<String> = content.iter().map(describe).collect();
    let has_text = content.iter().filter_map(plain).any(|text| !text.is_empty());
    let structured = &result["structuredContent"];
    if !has_text && !structured.is_null() {
        pieces.retain(|piece| !piece.is_empty());
        pieces.push(structured.to_string());
    }
    pieces.join("\n")
}

/// The text of a text content.
fn plain(content: &Value) -> Option<&str> {
    match content["type"].as_str()? {
        "text" => content["text"].as_str(),
        "resource" => content["resource"]["text"].as_str(),
        _ => None,
    }
}

/// One content: its text, or a note that says what it is.
fn describe(content: &Value) -> String {
    if let Some(text) = plain(content) {
        return text.to_owned();
    }
    match content["type"].as_str().unwrap_or("content") {
        "resource_link" => {
            let words = [content["uri"].as_str(), content["name"].as_str()];
            words.iter().flatten().fold("[resource_link".to_owned(), |note, word| note + " " + word) + "]"
        }
        "resource" => not_shown("resource", &content["resource"]["mimeType"], &content["resource"]["blob"]),
        kind => not_shown(kind, &content["mimeType"], &content["data"]),
    }
}

fn not_shown(kind: &str, format: &Value, data: &Value) -> String {
    let format = format.as_str().map(|format| format!(" {format}")).unwrap_or_default();
    let size = data.as_str().map(|data| format!(", {} bytes", decoded_length(data))).unwrap_or_default();
    format!("[{kind}{format}{size}, not shown]")
}

/// How many bytes a text in base64 encodes.
fn decoded_length(base64: &str) -> usize {
    let digits = base64.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=').count();
    digits * 3 / 4
}

/// The text if it has at most `limit` bytes. Otherwise that many bytes of it, three quarters from its beginning and one
/// from its end, with a line between them that says how much is missing.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = limit - limit / 4;
    let head = (0..=head).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let tail = text.len() - limit / 4;
    let tail = (tail..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    format!("{}\n[{} bytes left out]\n{}", &text[..head], tail - head, &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn outcome(text: &str, is_error: bool) -> Outcome {
        Outcome { text: text.to_owned(), is_error, server_failed: None }
    }

    #[test]
    fn a_result_is_reported_as_text() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let embedded = json!({"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}});
        let blob = json!({"type": "resource", "resource": {"mimeType": "application/pdf", "blob": "aGVsbG8="}});
        let link = json!({"type": "resource_link", "uri": "file:///a", "name": "a.txt"});
        let image = json!({"type": "image", "mimeType": "image/png", "data": "aGVs\nbG8h"});
        let audio = json!({"type": "audio", "mimeType": "audio/wav", "data": "YQ=="});
        for (name, result, expected) in [
            ("one text", json!({"content": [text("a")]}), "a"),
            ("several texts", json!({"content": [text("a"), text(""), text("b")]}), "a\n\nb"),
            ("an embedded text", json!({"content": [embedded]}), "inside"),
            ("a link", json!({"content": [link]}), "[resource_link file:///a a.txt]"),
            ("an image", json!({"content": [image]}), "[image image/png, 6 bytes, not shown]"),
            ("a sound", json!({"content": [audio]}), "[audio audio/wav, 1 bytes, not shown]"),
            ("a binary resource", json!({"content": [blob]}), "[resource application/pdf, 5 bytes, not shown]"),
            ("an unknown kind", json!({"content": [{"type": "scent"}]}), "[scent, not shown]"),
            ("a content of no kind", json!({"content": [7]}), "[content, not shown]"),
            ("text and its twin", json!({"content": [text("a")], "structuredContent": {"a": 1}}), "a"),
            ("structure alone", json!({"structuredContent": {"a": [1, 2]}}), r#"{"a":[1,2]}"#),
            ("an empty text", json!({"content": [text("")], "structuredContent": {"a": 1}}), r#"{"a":1}"#),
            ("nothing", json!({"content": []}), ""),
            ("no content", json!({}), ""),
            ("a complete one", json!({"content": [text("a")], "resultType": "complete"}), "a"),
            ("not an error", json!({"content": [text("a")], "isError": false}), "a"),
        ] {
            assert_eq!(read(&Ok(result)), outcome(expected, false), "{name}");
        }
        let both = json!({"content": [image], "structuredContent": {"a": 1}});
        assert_eq!(read(&Ok(both)), outcome("[image image/png, 6 bytes, not shown]\n{\"a\":1}", false));
    }

    #[test]
    fn a_failure_is_reported_as_an_error() {
        let marked = json!({"content": [{"type": "text", "text": "no such row"}], "isError": true});
        let refusal = |error: Value| Err(Refusal::read(&error));
        for (name, answer, expected) in [
            ("marked", Ok(marked), "no such row"),
            ("refused", refusal(json!({"code": -32602, "message": "Unknown tool"})), "Unknown tool (-32602)"),
            (
                "refused with a text",
                refusal(json!({"code": -1, "message": "no", "data": "disk full"})),
                "no (-1): disk full",
            ),
            ("refused with data", refusal(json!({"message": "no", "data": {"row": 1}})), r#"no: {"row":1}"#),
            ("refused with data alone", refusal(json!({"message": "", "data": 1})), r#"{"message":"","data":1}"#),
            ("refused without a code", refusal(json!({"message": "no"})), "no"),
            ("refused without a word", refusal(json!({"code": -1})), r#"{"code":-1} (-1)"#),
            ("refused with a string", refusal(json!("no")), r#""no""#),
            (
                "not complete",
                Ok(json!({"resultType": "input_required"})),
                "the tool did not finish: its result is of the type input_required",
            ),
            ("no object", Ok(json!("done")), "the tool answered something that is not a result"),
        ] {
            assert_eq!(read(&answer), outcome(expected, true), "{name}");
        }
    }

    #[test]
    fn a_long_text_is_cut_in_its_middle() {
        for (text, limit, expected) in [
            ("12345678", 8, "12345678"),
            ("123456789", 8, "123456\n[1 bytes left out]\n89"),
            ("ääääää", 8, "äää\n[4 bytes left out]\nä"),
            ("ääääää", 7, "äää\n[6 bytes left out]\n"),
            ("12", 0, "\n[2 bytes left out]\n"),
        ] {
            assert_eq!(cut(text, limit), expected, "{text} to {limit}");
        }
    }

    proptest! {
        #[test]
        fn a_cut_text_keeps_its_ends_and_its_limit(text in "[a-c\näüß€😀]{0,60}", limit in 0usize..100) {
            let short = cut(&text, limit);
            if text.len() <= limit {
                prop_assert_eq!(&short, &text);
            } else {
                let (head, rest) = short.rsplit_once("\n[").expect("a mark");
                let (left_out, tail) = rest.split_once(" bytes left out]\n").expect("a mark");
                let left_out: usize = left_out.parse().expect("a number");
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
                prop_assert!(head.len() + tail.len() <= limit);
                // A character has at most four bytes, so at most three are lost at either end.
                prop_assert!(head.len() + tail.len() + 6 >= limit);
                prop_assert_eq!(head.len() + left_out + tail.len(), text.len());
            }
        }
    }
}
