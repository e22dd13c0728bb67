//! Reads JSON with numbers that JSON does not have: Python writes `NaN` and `Infinity`, and printf `nan` and `-inf` (pure).

use super::json::end_of_string;

/// The words for such numbers, in lower case, the longer one first.
const WORDS: [&str; 3] = ["infinity", "inf", "nan"];

/// Reads JSON. If it `is_no_json`, by the error, and has such numbers, it is read again with null in their place.
pub fn read_with<T, E>(
    json: &str,
    is_no_json: impl Fn(&E) -> bool,
    mut read: impl FnMut(&str) -> Result<T, E>,
) -> Result<T, E> {
    let result = read(json);
    if result.as_ref().is_err_and(is_no_json)
        && let Some(without) = as_null(json)
    {
        return read(&without);
    }
    result
}

/// Returns JSON with null in place of such numbers; `None` if it has none.
fn as_null(json: &str) -> Option<String> {
    let mut replaced = String::new();
    // Up to where it has been copied.
    let mut copied = 0;
    let mut at = 0;
    let bytes = json.as_bytes();
    while let Some(byte) = bytes.get(at) {
        let mut length = 1;
        match byte {
            b'"' => length = end_of_string(bytes, at) + 1 - at,
            b'-' | b'+' | b'I' | b'i' | b'N' | b'n' => {
                if let Some(number) = number_at(bytes, at) {
                    length = number;
                    replaced.push_str(&json[copied..at]);
                    replaced.push_str("null");
                    copied = at + length;
                }
            }
            _ => {}
        }
        at += length;
    }
    if copied == 0 {
        return None;
    }
    replaced.push_str(&json[copied..]);
    Some(replaced)
}

/// Returns the length of such a number at a place, if there is one.
fn number_at(json: &[u8], at: usize) -> Option<usize> {
    let rest = json.get(at..)?;
    let word = rest.strip_prefix(b"-").or(rest.strip_prefix(b"+"));
    let word = word.unwrap_or(rest);
    let sign = rest.len() - word.len();
    for known in WORDS {
        let begin = word.get(..known.len());
        if begin.is_some_and(|begin| begin.eq_ignore_ascii_case(known.as_bytes())) {
            return Some(sign + known.len());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_json_lacks_become_null_outside_of_texts() {
        for (json, expected) in [
            (r#"{"a":NaN}"#, Some(r#"{"a":null}"#)),
            (r#"[nan,-Infinity, +inf ,1]"#, Some("[null,null, null ,1]")),
            (
                r#"{"ä":[Infinity],"b":"NaN"}"#,
                Some(r#"{"ä":[null],"b":"NaN"}"#),
            ),
            (r#""a \" NaN""#, None),
            (r#"{"NaN":null}"#, None),
            ("", None),
            ("\"\\", None),
            ("-", None),
        ] {
            assert_eq!(as_null(json).as_deref(), expected, "{json}");
        }
    }
}
