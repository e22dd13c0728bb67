//! Reads JSON that servers write in more than one way; what has no meaning is nothing (pure).

use serde_json::Value;

use crate::message::Usage;

/// The types of a part with text; some servers name none.
const TEXT_TYPES: &[&str] = &["", "text", "output_text"];

/// The text of an answer: a string, or a list of strings and parts. A part has text unless it names another type. Any other
/// value has no text.
pub fn text_of(json: &Value) -> String {
    match json {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text_of).collect(),
        Value::Object(_) if TEXT_TYPES.contains(&text_field(json, "type")) => {
            text_of(&json["text"])
        }
        _ => String::new(),
    }
}

/// The count at a place in JSON.
pub fn count(json: &Value, place: &str) -> Option<u64> {
    let count = json.pointer(place)?.as_u64()?;
    // Larger ones are no counts, and their sum might be too large.
    u32::try_from(count).ok().map(u64::from)
}

/// The tokens and the cost that an API reports, under whatever names.
pub fn usage(counts: &Value) -> Usage {
    let first = |places: &[&str]| places.iter().find_map(|place| count(counts, place));
    Usage {
        input_tokens: first(&["/input_tokens", "/prompt_tokens", "/promptTokenCount"]),
        output_tokens: first(&[
            "/output_tokens",
            "/completion_tokens",
            "/candidatesTokenCount",
        ]),
        cached_tokens: first(&[
            "/input_tokens_details/cached_tokens",
            "/prompt_tokens_details/cached_tokens",
            "/cache_read_input_tokens",
            "/cachedContentTokenCount",
            // DeepSeek's name for it.
            "/prompt_cache_hit_tokens",
        ]),
        reasoning_tokens: first(&[
            "/output_tokens_details/reasoning_tokens",
            "/completion_tokens_details/reasoning_tokens",
            "/output_tokens_details/thinking_tokens",
            "/thoughtsTokenCount",
        ]),
        // OpenRouter alone reports it.
        cost: counts["cost"].as_f64(),
    }
}

/// The arguments of a call: JSON as text, or JSON itself, which becomes compact text.
pub fn arguments(json: &Value) -> String {
    match json {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        json => json.to_string(),
    }
}

/// The text in a field of an object; empty if there is none.
pub fn text_field<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_default()
}

/// Appends to a text that may not have begun.
pub fn append(text: &mut Value, piece: &str) {
    match text {
        Value::String(text) => text.push_str(piece),
        other => *other = piece.into(),
    }
}

/// The elements of a list; none if the value is not a list.
pub fn elements(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_as_a_string_as_null_or_in_parts() {
        for (json, text) in [
            (r#""one \"two\" \u00e4""#, "one \"two\" ä"),
            ("null", ""),
            ("7", ""),
            ("{}", ""),
            ("[]", ""),
            (
                r#"[{"type":"text","text":"a"},{"type":"thinking","text":"no"},"b",{"text":"c"},7,{"type":1,"text":"d"}]"#,
                "abcd",
            ),
            (r#"[{"type":"output_text","text":"a"}]"#, "a"),
            (r#""\ud83d\ude00""#, "😀"),
            (r#""thinking""#, "thinking"),
        ] {
            let value = serde_json::from_str(json).expect(json);
            assert_eq!(text_of(&value), text, "{json}");
        }
    }

    #[test]
    fn arguments_come_as_text_or_as_json() {
        for (json, text) in [
            (r#""{\"n\": 1}""#, "{\"n\": 1}"),
            (r#""{\"n\" ""#, "{\"n\" "),
            ("{ \"n\": [1, {}] }", "{\"n\":[1,{}]}"),
            ("[ 1 ]", "[1]"),
            ("null", ""),
            ("\"\"", ""),
        ] {
            let value: Value = serde_json::from_str(json).expect(json);
            assert_eq!(arguments(&value), text, "{json}");
        }
    }

    #[test]
    fn counts_are_whole_numbers() {
        for (json, count) in [
            ("7", Some(7)),
            ("0", Some(0)),
            ("7.5", None),
            ("-1", None),
            ("\"7\"", None),
            ("4294967295", Some(4_294_967_295)),
            ("4294967296", None),
        ] {
            let within = serde_json::from_str(&format!("{{\"a\":{{\"b\":{json}}}}}"));
            let found = super::count(&within.expect(json), "/a/b");
            assert_eq!(found, count, "{json}");
        }
    }
}
