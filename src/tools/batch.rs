//! Takes apart a batch: an array of messages, as a server of revision 2025-03-26 may send them (pure).

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::text::byte_order_mark::text_after_mark;
use crate::text::not_a_number;

/// The most messages of a batch. Each takes memory besides its text.
const MAX_BATCH: usize = 1_000;

/// The messages of a batch.
struct Batch<'m>(Vec<&'m RawValue>);

/// Returns the messages of a batch; `None` for a message of its own, and for what is no batch or has too many messages.
pub fn messages_of(bytes: &[u8]) -> Option<Vec<String>> {
    let text = String::from_utf8_lossy(bytes.trim_ascii());
    let text = text_after_mark(&text);
    if !text.starts_with('[') {
        return None;
    }
    let read = |json: &str| {
        let Batch(messages) = serde_json::from_str(json)?;
        let messages = messages.into_iter().map(|each| each.get().to_owned());
        serde_json::Result::Ok(Vec::from_iter(messages))
    };
    let messages = not_a_number::read_with(text, |_| true, read).ok()?;
    let are_objects = messages.iter().all(|each| each.starts_with('{'));
    (!messages.is_empty() && are_objects).then_some(messages)
}

impl<'de: 'm, 'm> Deserialize<'de> for Batch<'m> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Batch<'m>, D::Error> {
        let messages = deserializer.deserialize_seq(BatchVisitor)?;
        Ok(Batch(messages))
    }
}

/// Reads the messages of a batch, and gives up where there are too many.
struct BatchVisitor;

impl<'de> Visitor<'de> for BatchVisitor {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.write_str("a batch of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut batch: A) -> Result<Self::Value, A::Error> {
        let mut messages = Vec::new();
        while let Some(message) = batch.next_element()? {
            if messages.len() == MAX_BATCH {
                return Err(A::Error::custom("too many messages"));
            }
            messages.push(message);
        }
        Ok(messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_an_array_of_some_messages() {
        for (text, expected) in [
            (
                r#"[{"id":1},{"id":2}]"#,
                Some(&[r#"{"id":1}"#, r#"{"id":2}"#][..]),
            ),
            ("\u{feff}[ {} ]\r", Some(&["{}"])),
            (
                r#"[{"id":1,"result":["\ud800"]}]"#,
                Some(&[r#"{"id":1,"result":["\ud800"]}"#]),
            ),
            (r#"{"id":1}"#, None),
            ("[]", None),
            ("[1,{}]", None),
            ("[[{}]]", None),
            (
                r#"[{"id":1,"result":NaN}]"#,
                Some(&[r#"{"id":1,"result":null}"#]),
            ),
            ("[{}", None),
            ("[{}] {}", None),
            ("[info] started", None),
            ("", None),
        ] {
            let found = messages_of(text.as_bytes());
            let expected =
                expected.map(|messages| messages.iter().map(|each| (*each).to_owned()).collect());
            assert_eq!(found, expected, "{text}");
        }
        let found = messages_of(b"[{\"a\":\"\xff\"}]");
        assert_eq!(found, Some(vec!["{\"a\":\"\u{fffd}\"}".to_owned()]));
    }

    #[test]
    fn a_batch_has_a_limit() {
        for (count, is_read) in [(MAX_BATCH, true), (MAX_BATCH + 1, false)] {
            let batch = format!("[{}]", vec!["{}"; count].join(","));
            assert_eq!(messages_of(batch.as_bytes()).is_some(), is_read, "{count}");
        }
    }
}
