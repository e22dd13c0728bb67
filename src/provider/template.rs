//! The events of a stream are alike but for their text: one that only differs there from the last is read without parsing
//! it, which makes long answers several times faster.

/// An event of which nothing matters but its text: what stands before the text, and what stands behind it.
#[derive(Debug, Default)]
pub(crate) struct Template {
    before: String,
    /// Begins with the quotation mark that ends the text; empty where no event has been learnt.
    after: String,
}

impl Template {
    /// Remembers an event that came to nothing but its text. `text` is a part of `data`, in quotation marks; text of
    /// which the data hold another form, because it has escapes, is not learnt from.
    pub(super) fn learn(&mut self, data: &str, text: &str) {
        let begin = (text.as_ptr() as usize).wrapping_sub(data.as_ptr() as usize);
        let end = begin.saturating_add(text.len());
        let (Some(before), Some(after)) = (data.get(..begin), data.get(end..)) else { return };
        if before.ends_with('"') && after.starts_with('"') && data.get(begin..end) == Some(text) {
            before.clone_into(&mut self.before);
            after.clone_into(&mut self.after);
        }
    }

    /// The text of an event that is like the one remembered.
    pub(super) fn text<'a>(&self, data: &'a str) -> Option<&'a str> {
        if self.after.is_empty() {
            return None;
        }
        let text = data.strip_prefix(self.before.as_str())?.strip_suffix(self.after.as_str())?;
        // Anything else might end the text early, or stand for another character.
        let plain = text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\');
        plain.then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Api;
    use crate::provider::reply::Reply;
    use proptest::prelude::*;

    #[test]
    fn only_what_differs_in_its_text_alone_is_alike() {
        let mut template = Template::default();
        let data = r#"{"a":"x","content":"one","b":1}"#;
        assert_eq!(template.text(data), None);
        template.learn(data, &data[20..23]);
        for (data, text) in [
            (r#"{"a":"x","content":"two ü","b":1}"#, Some("two ü")),
            (r#"{"a":"x","content":"","b":1}"#, Some("")),
            (r#"{"a":"y","content":"two","b":1}"#, None),
            (r#"{"a":"x","content":"two","b":2}"#, None),
            (r#"{"a":"x","content":"t\nwo","b":1}"#, None),
            (r#"{"a":"x","content":"two","content":"three","b":1}"#, None),
            (r#"{"a":"x","content":"#, None),
        ] {
            assert_eq!(template.text(data), text, "{data}");
        }
    }

    #[test]
    fn streams_of_both_dialects_are_learnt_from() {
        for api in [Api::OpenAi, Api::Anthropic] {
            let mut reply = Reply::default();
            api.read_event(&event(api, 4, "a"), &mut reply).expect("a sound event");
            assert_eq!(reply.template.text(&event(api, 4, "b")), Some("xb"), "{api}");
        }
    }

    #[test]
    fn text_from_elsewhere_is_not_learnt() {
        let mut template = Template::default();
        template.learn(r#"{"content":"a\nb"}"#, "a\nb");
        assert_eq!(template.text(r#"{"content":"c"}"#), None);
    }

    proptest! {
        #[test]
        fn a_stream_says_the_same_with_and_without_it(
            events in proptest::collection::vec((0usize..5, "[a\"\\\\ü\n]{0,3}"), 0..12),
        ) {
            for api in [Api::OpenAi, Api::Anthropic] {
                let stream: Vec<String> = events.iter().map(|(kind, text)| event(api, *kind, text)).collect();
                let mut reply = Reply::default();
                let mut expected = String::new();
                for data in &stream {
                    api.read_event(data, &mut reply).expect("a sound event");
                    // A reply that has seen nothing has no template.
                    let mut alone = Reply::default();
                    api.read_event(data, &mut alone).expect("a sound event");
                    expected.push_str(alone.text());
                }
                prop_assert_eq!(reply.text(), expected);
            }
        }
    }

    fn event(api: Api, kind: usize, text: &str) -> String {
        let text = serde_json::Value::from(format!("x{text}"));
        match (api, kind) {
            (Api::OpenAi, 0) => format!(r#"{{"choices":[{{"delta":{{"content":null,"reasoning":{text}}}}}]}}"#),
            (Api::OpenAi, 1) => format!(r#"{{"choices":[{{"delta":{{"content":{text}}},"finish_reason":"stop"}}]}}"#),
            (Api::OpenAi, _) => format!(r#"{{"choices":[{{"delta":{{"content":{text}}},"finish_reason":null}}]}}"#),
            (_, 0) => {
                format!(r#"{{"type":"content_block_delta","delta":{{"type":"thinking_delta","thinking":{text}}}}}"#)
            }
            (_, _) => format!(r#"{{"type":"content_block_delta","delta":{{"type":"text_delta","text":{text}}}}}"#),
        }
    }
}
