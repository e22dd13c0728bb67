//! Assembles the calls of a reply from their fragments (pure).

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::lenient;
use crate::message::ToolCall;
use crate::text::json;

/// The arguments of a call without any.
const NO_ARGUMENTS: &str = "{}";

/// The calls of a reply while it is read.
#[derive(Debug, Default)]
pub struct Calls {
    calls: Vec<ToolCall>,
    /// The provider's index of each call; `None` if the call came in one piece.
    indexes: Vec<Option<u64>>,
    /// How many calls of the question came in earlier replies.
    before: usize,
}

impl Calls {
    /// An empty list, for a question with this many calls in earlier replies.
    pub fn after(before: usize) -> Calls {
        Calls {
            before,
            ..Calls::default()
        }
    }

    /// The calls so far, in the order in which they began.
    pub fn list(&self) -> &[ToolCall] {
        &self.calls
    }

    /// Adds a call in one piece, or a fragment of the call with this index. It may begin another call. Returns the position of
    /// the call.
    pub fn add(&mut self, index: Option<u64>, fragment: ToolCall) -> usize {
        let last = self.indexes.iter().rposition(|known| *known == index);
        if let Some(position) = last
            && index.is_some()
            && !begins_another(&self.calls[position], &fragment)
        {
            let call = &mut self.calls[position];
            if call.id.is_empty() {
                call.id = fragment.id;
            }
            if call.name.is_empty() {
                call.name = fragment.name;
            }
            call.arguments.push_str(&fragment.arguments);
            return position;
        }
        let position = self.calls.len();
        let mut call = fragment;
        if index.is_none() {
            call = settled(call, self.before + position);
        }
        self.calls.push(call);
        self.indexes.push(index);
        position
    }

    /// Completes the calls after the last fragment: drops those without a name, and fills in missing ids and arguments.
    pub fn settle(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        for (position, call) in calls.into_iter().enumerate() {
            if !call.name.is_empty() {
                self.calls.push(settled(call, self.before + position));
            }
        }
    }
}

/// Whether a fragment at the index of a call begins another call. Ollama gives all calls the index 0. LM Studio
/// gives each fragment of a call another id, but only the first fragment has a name.
fn begins_another(call: &ToolCall, fragment: &ToolCall) -> bool {
    if fragment.name.is_empty() || call.name.is_empty() {
        return false;
    }
    if fragment.id.is_empty() || call.id.is_empty() {
        // Some servers repeat the name in each fragment, so only a complete call is followed by another one.
        return serde_json::from_str::<IgnoredAny>(&call.arguments).is_ok();
    }
    fragment.id != call.id
}

/// The call in the form in which it is run. `number` is its place among the calls of the question.
fn settled(mut call: ToolCall, number: usize) -> ToolCall {
    if call.arguments.trim().is_empty() {
        call.arguments = NO_ARGUMENTS.to_owned();
    }
    // Some servers encode the arguments twice.
    if let Ok(decoded) = serde_json::from_str::<String>(&call.arguments)
        && json::is_object(&decoded)
    {
        call.arguments = decoded;
    }
    if call.id.is_empty() {
        // Mistral accepts only ids of nine letters and digits.
        call.id = format!("call{number:05}");
    }
    call
}

/// The arguments of a call as an object. Anything else becomes an empty object, because APIs refuse it.
pub fn object(arguments: &str) -> Value {
    match lenient::value(arguments) {
        Some(Value::Object(fields)) => Value::Object(fields),
        _ => Value::Object(Map::new()),
    }
}

/// The arguments of a call as the model wrote them, or `{}` if they are not an object, because servers parse the text.
pub fn text(arguments: &str) -> &str {
    if json::is_object(arguments) {
        arguments
    } else {
        NO_ARGUMENTS
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::tests::rows;

    fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
        ToolCall {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        }
    }

    #[test]
    fn fragments_become_the_calls_that_were_meant() {
        // The fragments with index, id, name and arguments, and the calls with id, name and arguments.
        let table = r##"
            one call | 0 x a - ; 0 - - {"n" ; 0 - - :1} | x a {"n":1}
            one piece | 0 x a {} | x a {}
            two calls by turns | 0 x a - ; 1 y b - ; 0 - - {} ; 1 - - { } | x a {} ; y b { }
            Ollama: each call has index 0 | 0 x a {} ; 0 y a {"n":1} ; 0 z b {} | x a {} ; y a {"n":1} ; z b {}
            LM Studio: each fragment has an id | 0 x a - ; 0 y - {"n" ; 0 z - :1} ; 1 u b - ; 1 v - {} | x a {"n":1} ; u b {}
            the id comes late | 0 - a - ; 0 x - {} | x a {}
            the name comes late | 0 x - - ; 0 x a {} | x a {}
            the name is repeated | 0 x a { ; 0 x a } | x a {}
            the name is repeated, without an id | 0 x a { ; 0 - a } ; 0 - - ␊ | x a {}␊
            whole calls, one without an id | 0 x a {} ; 0 - b {} | x a {} ; - b {}
            no arguments | 0 x a - | x a {}
            blank arguments | 0 x a ␊ | x a {}
            arguments that are not JSON | 0 x a {no | x a {no
            encoded twice | 0 x a "{\"n\" ; 0 - - :1}" | x a {"n":1}
            text alone | 0 x a "n" | x a "n"
            nothing | 0 - - - | -
            no name | 0 x a {} ; 1 y - - | x a {}
        "##;
        for [case, fragments, expected] in rows(table) {
            let mut calls = Calls::default();
            for fragment in fragments.replace('␊', "\n").split(" ; ") {
                let columns = fragment
                    .splitn(4, ' ')
                    .map(|text| if text == "-" { "" } else { text });
                let columns: Vec<&str> = columns.collect();
                let [index, id, name, arguments] = columns[..] else {
                    panic!("{fragment}");
                };
                let index = index.parse().expect(fragment);
                calls.add(Some(index), call(id, name, arguments));
            }
            calls.settle();
            let mut found = Vec::new();
            for call in calls.list() {
                // q has made up an id.
                let id = if call.id.starts_with("call") {
                    "-"
                } else {
                    &call.id
                };
                found.push(format!("{id} {} {}", call.name, call.arguments));
            }
            assert_eq!(found.join(" ; "), expected.replace('␊', "\n"), "{case}");
        }
    }

    #[test]
    fn ids_of_qs_own_count_the_calls_of_a_question() {
        let mut calls = Calls::after(7);
        calls.add(Some(0), call("", "a", "{}"));
        calls.add(Some(1), call("", "", "{}"));
        calls.add(Some(2), call("x", "a", "{}"));
        calls.add(None, call("", "a", "{}"));
        for _ in 0..2 {
            calls.settle();
            let ids: Vec<&str> = calls.list().iter().map(|call| call.id.as_str()).collect();
            assert_eq!(ids, ["call00007", "x", "call00010"]);
        }
    }

    #[test]
    fn arguments_that_are_no_object_are_sent_as_an_empty_one() {
        for (arguments, sent) in [
            ("{ \"n\": 1 }", "{ \"n\": 1 }"),
            ("[1]", "{}"),
            ("{no", "{}"),
            ("", "{}"),
            ("null", "{}"),
        ] {
            assert_eq!(text(arguments), sent, "{arguments}");
            let expected = serde_json::from_str::<Value>(sent).expect(sent);
            assert_eq!(object(arguments), expected, "{arguments}");
        }
    }

    proptest! {
        #[test]
        fn a_call_is_never_lost(fragments in prop::collection::vec((0u64..3, "[xy]?", "[ab]?", "[{}1]{0,2}"), 0..12)) {
            let mut calls = Calls::default();
            for (index, id, name, arguments) in &fragments {
                calls.add(Some(*index), call(id, name, arguments));
            }
            calls.settle();
            let is_named = fragments.iter().any(|(_, _, name, _)| !name.is_empty());
            prop_assert_eq!(calls.list().is_empty(), !is_named);
        }
    }
}
