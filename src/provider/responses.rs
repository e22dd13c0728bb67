//! OpenAI's Responses API, which other servers have as well: its requests and its replies (pure).

mod body;
mod events;
mod item;
mod late_reasoning;
mod output;
mod output_calls;

use super::dialect::Dialect;
use super::openai;
use super::request::OptionalField;
use super::tool_schema::ToolSchemas;

pub static DIALECT: Dialect = Dialect {
    name: "responses",
    chat: |prompt, _| ("/responses".to_owned(), body::body(prompt)),
    event: events::read_event,
    whole: output::read_whole,
    reply_fields: &["id", "object", "type", "status", "output", "output_text"],
    ends_with_done: events::end_with_done,
    optional_fields: &[
        (OptionalField::Effort, "/reasoning/effort"),
        (OptionalField::Form, "/text/format"),
        (OptionalField::Store, "/store"),
        (OptionalField::Encrypted, "/include"),
        (OptionalField::System, "/instructions"),
        (OptionalField::ToolChoice, "/tool_choice"),
    ],
    searches: true,
    tool_schemas: ToolSchemas::Any,
    ..openai::DIALECT
};

#[cfg(test)]
mod tests {
    use super::super::dialect::tests::{calls_of, replied, replied_with_tools};
    use serde_json::{Value, json};

    use super::super::finish::{Finish, FinishKind};
    use super::item::FUNCTION_CALL;
    use super::*;
    use crate::message::UNJOINED;
    use crate::provider::reply::Reply;
    use crate::text::table::rows;

    #[test]
    fn text_of_a_stream_is_not_repeated_at_its_end() {
        let end = r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}}"#;
        let done = r#"{"type":"response.output_text.done","text":"Hi"}"#;
        let delta = r#"{"type":"response.output_text.delta","delta":"Hi"}"#;
        let item = r#"{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"Hi"}]}}"#;
        let bare = r#"{"type":"response.completed","response":{"status":"completed"}}"#;
        for events in [
            &[delta, end][..],
            &[delta, done, item, end],
            &[done, item, end],
            &[end],
            &[delta, done, item, bare],
            &[done, item, bare],
            &[item, bare],
            &[done, bare],
        ] {
            let mut reply = replied(&DIALECT, events);
            assert_eq!(
                (reply.take_piece(false).text.as_str(), reply.end.finish()),
                ("Hi", Some(&Finish::new(FinishKind::Complete, "completed"))),
                "{events:?}"
            );
            assert!(reply.end.is_over());
        }
    }

    /// Returns the event that a short form stands for. In it, 0 is the index of the message and 1 that of the text within it; either
    /// may be missing. A message that begins with `~` is commentary, and what follows `^` in it is a refusal.
    ///
    /// | short form | event |
    /// |---|---|
    /// | `d0.1 TEXT` | delta: an increment of a text |
    /// | `t0.1 TEXT` | text: all of it, once it is finished |
    /// | `r0.1 TEXT` | refusal: an increment of one |
    /// | `f0.1 TEXT` | finished refusal: all of it |
    /// | `a0.5` | added: the item of a message begins; its id is 5 |
    /// | `i0 TEXT` | item: a message that is complete |
    /// | `e ONE/TWO` | end: the complete response with these messages, or with none |
    fn event(short: &str) -> String {
        let (place, text) = short.split_once(' ').unwrap_or((short, ""));
        let (kind, place) = place.split_at(1);
        let mut numbers = place.split('.').map(|number| number.parse::<u64>().ok());
        let (message, part) = (numbers.next().flatten(), numbers.next().flatten());
        let item = |text: &str| {
            let phase = if text.starts_with('~') {
                "commentary"
            } else {
                "final_answer"
            };
            let text = text.trim_start_matches('~');
            let (text, refusal) = text.split_once('^').unwrap_or((text, ""));
            let mut content = vec![json!({"type": "output_text", "text": text})];
            if !refusal.is_empty() {
                content.push(json!({"type": "refusal", "refusal": refusal}));
            }
            json!({"type": "message", "phase": phase, "content": content})
        };
        let mut event = json!({"output_index": message, "content_index": part});
        let kind = match kind {
            "d" => {
                event["delta"] = text.into();
                "output_text.delta"
            }
            "r" => {
                event["delta"] = text.into();
                "refusal.delta"
            }
            "t" => {
                event["text"] = text.into();
                "output_text.done"
            }
            "f" => {
                event["refusal"] = text.into();
                "refusal.done"
            }
            "a" => {
                event["item"] = item(text);
                event["item"]["content"] = json!([]);
                event["item"]["id"] = part.map(|id| id.to_string()).into();
                "output_item.added"
            }
            "i" => {
                event["item"] = item(text);
                "output_item.done"
            }
            _ => {
                let texts = text.split('/').filter(|text| !text.is_empty());
                let output = Vec::from_iter(texts.map(item));
                event["response"] = json!({"status": "completed", "output": output});
                "completed"
            }
        };
        event["type"] = format!("response.{kind}").into();
        event.to_string()
    }

    #[test]
    fn each_text_is_printed_once_and_a_lost_one_makes_the_answer_incomplete() {
        // The habit of a server, as `reply/arrived_text.rs` names them, or another case; the events; the answer, in which a bar
        // begins a paragraph; and the exit status, which is 3 if text is missing.
        let table = r##"
            increments, then the same text finished | d0.0 One. ; t0.0 One. ; e | One. | 0
            the same, with more at its end | d0.0 Hello ; t0.0 Hello_world ; i0 Hello_world ; e | Hello_world | 0
            the same, with another index | d0.0 Hello ; t0.1 Hello_world ; e Hello_world | Hello_world | 0
            a part of a message in increments, the next one only finished | d0.0 Hello ; t0.0 Hello ; t0.1 _world ; e | Hello_world | 0
            the same, then its message | d0.0 Hello ; t0.0 Hello ; t0.1 _world ; i0 Hello_world ; e Hello_world | Hello_world | 0
            the same, with other indexes | d0.0 Hello ; t1.0 Hello ; t1.1 _world ; e Hello_world | Hello_world | 0
            the next part repeats the first | d0.0 Hello ; t0.1 Hello ; e Hello | Hello | 0
            a finished text without increments, then its message | t0.0 One. ; i0 One. ; e | One. | 0
            the same, with more in the message | t0.0 One. ; i0 One._Two. ; e | One._Two. | 0
            a finished text without increments and without a message | t0.0 One. ; e | One. | 0
            the same, before increments | t0.0 One. ; d1.0 Two. ; e | One.│Two. | 0
            the same, twice, and a message at the end | t0.0 One. ; t1.0 Two. ; e One./Two./Three. | One.│Two.│Three. | 0
            messages in one piece, each after its finished texts | t0.0 One. ; i0 One. ; t1.0 Two. ; i1 Two. ; e | One.│Two. | 0
            the same, each before its finished texts | i0 One. ; t0.0 One. ; i1 Two. ; t1.0 Two. ; e | One.│Two. | 0
            increments, then their message | d0.0 One. ; i0 One. ; e One. | One. | 0
            the same, with more at its end | d0.0 One. ; i0 One._Two. ; e | One._Two. | 0
            the same, of two messages at once | d0.0 One. ; d1.0 Two. ; i0 One. ; i1 Two. ; e | One.Two. | 0
            increments with another index than their message | d5.0 One. ; i0 One. ; e One. | One. | 0
            the same, with more at its end | d0.0 One. ; i1 One._Two. ; e | One._Two. | 0
            the same, then another message | d0.0 One. ; i1 One._Two. ; i2 Three. ; e | One._Two.│Three. | 0
            the same, in two parts | d0.0 One. ; d0.1 _Two. ; i1 One._Two. ; e | One._Two. | 0
            the same, in another spelling | d0.0 One._ ; i1 one ; e | One._ | 0
            increments without an index | d-.- One. ; i0 One._Two. ; e | One._Two. | 0
            the same, in other words | d-.- One. ; i0 Zero. ; e | One. | 3
            a message without an index | d0.0 One. ; i- One._Two. ; e | One._Two. | 0
            the same, in other words | d0.0 One. ; i- Zero. ; e | One. | 3
            messages in one piece | i0 One. ; i1 Two. ; e One./Two. | One.│Two. | 0
            the same, and another at the end | i0 One. ; i1 Two. ; e One./Two./Three. | One.│Two.│Three. | 0
            a message in one piece while the increments of another one come | d0.0 One. ; i1 Two. ; e | One.│Two. | 0
            the same, and both at the end | d0.0 One. ; i1 Two. ; e One./Two. | One.│Two. | 0
            the same, then the message of the increments | d0.0 One. ; i1 Two. ; i0 One._ ; e | One.│Two. | 0
            the same, and more increments | d0.0 One. ; i1 Two. ; d0.0 _More. ; i0 One._More. ; e | One.│Two._More. | 0
            the same, between two of them | d0.0 One. ; d1.0 Two. ; i2 Three. ; i0 One. ; i1 Two. ; e | One.Two.│Three. | 0
            the same, after a finished message like it | d0.0 One. ; i0 One. ; d1.0 Hm ; i2 One,_too. ; e | One.│Hm│One,_too. | 0
            the same, without a letter | d0.0 One. ; i1 👍 ; e | One.│👍 | 0
            the same, with the increments at its end | d0.0 Two. ; i1 One._Two. ; e | Two.│One._Two. | 0
            the same index for each message | d0.0 One. ; i0 One. ; i0 Two. ; e | One.│Two. | 0
            the same, and both at the end | d0.0 One. ; i0 One. ; i0 Two. ; e One./Two. | One.│Two. | 0
            the same, and the first one again | d0.0 One. ; i0 One. ; i0 One. ; e One. | One. | 0
            a message that only the complete reply has | d0.0 One. ; t0.0 One. ; e One./Two. | One.│Two. | 0
            two of them | d0.0 One. ; e One./Two./Three. | One.│Two.│Three. | 0
            one that is a beginning of the one before it | d0.0 Yesterday ; i0 Yesterday ; e Yesterday/Yes | Yesterday│Yes | 0
            one of them before what has arrived | d0.0 One. ; e Zero./One. | One. | 3
            one of them instead of what has arrived | d0.0 Let_me_think. ; e 42. | Let_me_think. | 3
            one of them next to one that is cut | d0.0 One. ; d1.0 Tw ; e One./Two./Three. | One.Two.│Three. | 0
            commentary that only the complete reply has | d0.0 One. ; e ~Hm/One./~Hm | One. | 0
            messages in another order at the end | d1.0 Two. ; d0.0 One. ; e One./Two. | Two.One. | 0
            increments by turns | d0.0 Be ; d1.0 Li ; d0.0 cause ; d1.0 ght ; e Because/Light | BeLicauseght | 0
            another spelling at the end | d0.0 One ; e one | One | 0
            the same, in two parts | d0.0 Let_me_think. ; d0.1 _No: ; e “let_me_think”_no | Let_me_think._No: | 0
            a message that begins after its first increment | d0.0 Hel ; a0.5 ; d0.0 lo ; i0 Hello ; e Hello | Hello | 0
            the same without ids | d0.0 Hel ; a0 ; d0.0 lo ; i0 Hello ; e Hello | Hello | 0
            the same without indexes of increments | d Hel ; a0.5 ; d lo ; i0 Hello ; e Hello | Hello | 0
            the same without any indexes | d Hel ; a ; d lo ; i Hello ; e Hello | Hello | 0
            the same after a message | a0.5 ; d0.0 One. ; i0 One. ; d1.0 Tw ; a1.6 ; d1.0 o. ; e One./Two. | One.│Two. | 0
            a message that begins twice | a0.5 ; d0.0 Hel ; a0.5 ; d0.0 lo ; e Hello | Hello | 0
            the same without ids | a0 ; d0.0 Hel ; a0 ; d0.0 lo ; e Hello | Hello | 0
            messages that begin, and do not end | a0.5 ; d0.0 One. ; a1.6 ; d1.0 Two. ; e One./Two. | One.│Two. | 0
            the same after the first increment of the first | d0.0 On ; a0.5 ; d0.0 e. ; a1.6 ; d1.0 Two. ; e One./Two. | One.│Two. | 0
            the same without indexes of increments | d One. ; a0.5 ; a1.6 ; d Two. ; e One./Two. | One.│Two. | 0
            the same with one index | a0.5 ; d0.0 One. ; a0.6 ; d0.0 Two. ; e One./Two. | One.│Two. | 0
            the same without any indexes and ids | a ; d One. ; a ; d Two. ; e One./Two. | One.│Two. | 0
            the same without ids, each after a finished text | a0 ; d0.0 One. ; t0.0 One. ; a0 ; d0.0 Two. ; t0.0 Two. ; e One./Two. | One.│Two. | 0
            the same, the first without a beginning | d0.0 One. ; t0.0 One. ; a0 ; d0.0 Two. ; e One./Two. | One.│Two. | 0
            messages that begin together, and do not end | a0.5 ; a1.6 ; d0.0 One. ; t0.0 One. ; d1.0 Two. ; t1.0 Two. ; e One./Two. | One.│Two. | 0
            messages without a beginning or an end | d0.0 One. ; t0.0 One. ; d1.0 Two. ; t1.0 Two. ; e One./Two. | One.│Two. | 0
            the same, of two parts | d0.0 One. ; t0.0 One. ; d0.1 _More. ; t0.1 _More. ; d1.0 Two. ; e One._More./Two. | One._More.│Two. | 0
            one that begins again after its text | a0.5 ; d0.0 One. ; t0.0 One. ; a0.5 ; d0.1 _Two. ; e One._Two. | One._Two. | 0
            finished texts of messages by turns | d0.0 One. ; d1.0 Tw ; t0.0 One. ; d1.0 o. ; t1.0 Two. ; e One./Two. | One.Two. | 0
            commentary that begins, and a message after it | a0.5 ~ ; d0.0 Hm ; a1.6 ; d1.0 One. ; e ~Hm/One. | One. | 0
            a refusal in a message | d0.0 One. ; i0 One.^I_won't. ; e | One.I_won't. | 0
            the same, and at the end | d0.0 One. ; i0 One.^I_won't. ; e One.^I_won't. | One.I_won't. | 0
            a refusal at the end | d0.0 One. ; e One.^I_won't. | One.I_won't. | 0
            a refusal in increments | r0.0 I_won ; f0.0 I_won't. ; e ^I_won't. | I_won't. | 0
            a finished refusal | f0.0 I_won't. ; i0 ^I_won't. ; e ^I_won't. | I_won't. | 0
            a refusal that has come as text | d0.0 I_won't. ; e ^I_won't. | I_won't. | 0
        "##;
        for [case, events, text, exit_status] in rows(table) {
            let events = Vec::from_iter(events.replace('_', " ").split(" ; ").map(event));
            let events = Vec::from_iter(events.iter().map(String::as_str));
            let mut reply = replied(&DIALECT, &events);
            let found = reply.take_piece(false).text.replace("\n\n", "│");
            assert_eq!(found.replace(' ', "_"), text, "{case}: {events:?}");
            let has_refused = text.contains("won't");
            assert_eq!(reply.end.has_refused(), has_refused, "{case}: {events:?}");
            let kind = reply.end.finish().map(|finish| finish.kind);
            let expected = match exit_status {
                "0" => FinishKind::Complete,
                _ => FinishKind::Other,
            };
            assert_eq!(kind, Some(expected), "{case}: {events:?}");
        }
    }

    /// Returns the item of a call that a short form stands for. `-` is in the place of an id that is missing.
    ///
    /// | short form | item |
    /// |---|---|
    /// | `x.f ARGUMENTS` | a call with the id x; the id of the item is f; either may be missing, and so may the arguments |
    /// | `=x` | the output of the call x |
    fn item_of_call(short: &str) -> Value {
        let (ids, arguments) = short.split_once(' ').unwrap_or((short, ""));
        if let Some(id) = ids.strip_prefix('=') {
            return result(id, "found");
        }
        let (own, of_item) = ids.split_once('.').unwrap_or((ids, ""));
        let mut item = json!({"type": FUNCTION_CALL, "name": "get", "arguments": arguments});
        for (field, id) in [("call_id", own), ("id", of_item)] {
            if !id.is_empty() && id != "-" {
                item[field] = id.into();
            }
        }
        item
    }

    /// Returns the event that a short form stands for, see also [`item_of_call`]. In it, 0 is the index of the item; `-` says that
    /// there is none.
    ///
    /// | short form | event |
    /// |---|---|
    /// | `a0 ITEM` | added: the item of a call begins |
    /// | `g0.f TEXT` | given: an increment of the arguments; the id of the item is f, or is missing |
    /// | `c0 TEXT` | complete: all arguments |
    /// | `e0 ITEM` | ended: the item of a call that is complete |
    /// | `m0` | message: the item of one that is complete |
    /// | `z ITEM / ITEM` | the end: the complete response with these items, or with none |
    fn event_of_call(short: &str) -> String {
        let (place, rest) = short.split_once(' ').unwrap_or((short, ""));
        let (kind, index) = place.split_at(1);
        let (index, item_id) = index.split_once('.').unwrap_or((index, ""));
        let (kind, field, value) = match kind {
            "a" => ("output_item.added", "item", item_of_call(rest)),
            "g" => ("function_call_arguments.delta", "delta", rest.into()),
            "c" => ("function_call_arguments.done", "arguments", rest.into()),
            "e" => ("output_item.done", "item", item_of_call(rest)),
            "m" => {
                let content = json!([{"type": "output_text", "text": "I look."}]);
                let message = json!({"type": "message", "content": content});
                ("output_item.done", "item", message)
            }
            _ => {
                let items = rest.split(" / ").filter(|item| !item.is_empty());
                let output = Vec::from_iter(items.map(item_of_call));
                let response = json!({"status": "completed", "output": output});
                ("completed", "response", response)
            }
        };
        let mut event =
            json!({"type": format!("response.{kind}"), "item_id": item_id, field: value});
        if let Ok(index) = index.parse::<u64>() {
            event["output_index"] = index.into();
        }
        event.to_string()
    }

    #[test]
    fn calls_run_once_and_with_their_own_arguments_wherever_the_server_sends_them() {
        // The events, and the calls with id and arguments; a dash stands for an id that q makes up.
        let table = r##"
            increments | a0 x ; g0 {"n ; g0 ":1} ; z | x {"n":1}
            increments without an index | a- x ; g- {"n ; g- ":1} ; z | x {"n":1}
            increments that count otherwise | a0 x ; g5 {"n ; g5 ":1} ; z | x {"n":1}
            increments with an index, items without | a- x ; g0 {"n":1} ; a- y ; g1 {"n" ; g1 :2} ; z | x {"n":1} ; y {"n":2}
            increments by turns | a0 x ; a1 y ; g0 {"n ; g1 {"n ; g0 ":1} ; g1 ":2} ; z | x {"n":1} ; y {"n":2}
            all arguments | a0 x ; c0 {"n":1} ; z | x {"n":1}
            the item | a0 x ; g0 {"n":1} ; e0 x {"n":1} ; z | x {"n":1}
            the item without its beginning | e0 x {"n":1} ; z | x {"n":1}
            the item and the output | a0 x ; g0 {"n":1} ; e0 x {"n":1} ; z x { "n":1} | x {"n":1}
            the output | z x {"n":1} / y {"n":2} | x {"n":1} ; y {"n":2}
            the beginning and the output | a0 x ; z x {"n":1} | x {"n":1}
            a message, then an item with its own id alone | m0 ; a1 .f ; g1 {"n":1} ; z | f {"n":1}
            a message, then an item without an id | m0 ; a1 - ; g1 {"n":1} ; z | - {"n":1}
            a message, then the output | m0 ; z x {"n":1} | x {"n":1}
            a message, then an output that the provider has run | m0 ; z x {"n":1} / =x | -
            an item, and another in the output | a0 x ; e0 x {"n":1} ; z x {"n":1} / y {"n":2} | x {"n":1} ; y {"n":2}
            a beginning, and another in the output | m0 ; a1 x ; g1 {"n":1} ; z y {"n":2} | y {"n":2} ; x {"n":1}
            an item that has not begun, next to one that has | a0 x ; g0 {"n":1} ; e1 y {"n":2} ; z | y {"n":2} ; x {"n":1}
            the same without ids | a0 - ; g0 {"n":1} ; e1 - {"n":2} ; z | - {"n":2} ; - {"n":1}
            the same at one index | a0 x ; g0 {"n":1} ; e0 y {"n":2} ; z | y {"n":2} ; x {"n":1}
            the same without an index | a- x ; g- {"n":1} ; e- y {"n":2} ; z | y {"n":2} ; x {"n":1}
            all arguments of a call that has not begun | a0 x ; g0 {"n":1} ; c1 {"n":2} ; e1 y {"n":2} ; z | y {"n":2} ; x {"n":1}
            an item at another index | a0 x ; a1 y ; g1 {"n":2} ; e5 x {"n":1} ; z | x {"n":1} ; y {"n":2}
            items whose indexes are exchanged | a0 x ; a1 y ; e1 x {"n":1} ; e0 y {"n":2} ; z | x {"n":1} ; y {"n":2}
            one index for all | a0 x ; a0 y ; e0 x {"n":1} ; e0 y {"n":2} ; z | x {"n":1} ; y {"n":2}
            no index | a- x ; a- y ; e- x {"n":1} ; e- y {"n":2} ; z | x {"n":1} ; y {"n":2}
            no ids | a0 - ; g0 {"n":1} ; e0 - {"n":1} ; z - {"n":1} | - {"n":1}
            no ids and no indexes | a- - ; e- - {"n":1} ; z - {"n":1} | - {"n":1}
            an id of each event's own | a0 .e ; g0 {"n":1} ; e0 .f {"n":1} ; z | f {"n":1}
            the id of the call comes late | a0 .f ; g0 {"n":1} ; e0 x.f {"n":1} ; z x.f {"n":1} | x {"n":1}
            it comes with the output | a0 .f ; g0 {"n":1} ; e0 .f {"n":1} ; z x.f {"n":1} | f {"n":1}
            other ids at the end | a0 x.f ; g0 {"n":1} ; e0 x.f {"n":1} ; z y.g {"n":1} | x {"n":1}
            two calls with other ids at the end | e0 x {"n":1} ; e1 y {"n":1} ; z v {"n":1} / w {"n":1} | x {"n":1} ; y {"n":1}
            another id of the call, that of the item | e0 x.f {"n":1} ; z y.f {"n":1} | x {"n":1}
            the id of the item, then other ids | e0 .f {"n":1} ; z x.g {"n":1} | f {"n":1}
            other ids and other blanks | e0 x.f {"n":1} ; z y.g {"n": 1} | x {"n":1}
            no ids and other blanks | e0 - {"n":1} ; z - {"n": 1} | - {"n":1}
            a message, a beginning and other ids | m0 ; a1 x.f ; g1 {"n":1} ; z y.g {"n":1} | y {"n":1}
            the arguments come last | a0 x ; e0 x ; z x {"n":1} | x {"n":1}
            the item has no arguments | a0 x ; g0 {"n":1} ; e0 x ; z | x {"n":1}
            one id for all calls | a0 x ; g0 {"n":1} ; a1 x ; g1 {"n":2} ; z | x {"n":1} ; - {"n":2}
            one id for an item and for the output | e0 x {"n":1} ; z x {"n":1} / x {"n":2} | x {"n":1} ; - {"n":2}
            one id for all calls, whose arguments come by turns | a0 x.f ; a1 x.f ; g0.f {"n ; g1.f {"n ; g0.f ":1} ; g1.f ":2} ; z | x {"n":1} ; - {"n":2}
            one id for all calls, and the item of the first | a0 x ; g0 {"n":1} ; a1 x ; g1 {"n":2} ; e0 x {"n":1} ; z | x {"n":1} ; - {"n":2}
            one id for all calls, and the item of the second | a0 x ; g0 {"n":1} ; a1 x ; g1 {"n":2} ; e1 x {"n":2} ; z | x {"n":2} ; - {"n":1}
            a beginning twice | a0 x.f ; a0 x.f ; g0.f {"n ; g0.f ":1} ; z | x {"n":1}
            a beginning twice, at two indexes | a0 x.f ; a1 x.f ; g1.f {"n ; g1.f ":1} ; c0.f {"n":1} ; z | x {"n":1}
            a beginning twice, and the item | a0 x.f ; a1 x.f ; g1.f {"n":1} ; e1 x.f {"n":1} ; z x.f {"n":1} | x {"n":1}
            arguments of either of two calls | a0 x ; a1 y ; g5 {"n":1} ; z | x ? ; y ?
            all arguments of either of two calls | a0 x ; a1 y ; c5 {"n":1} ; z | x ? ; y ?
            arguments with another index than their beginning | a0 x ; g0 {"n ; g5 ":1} ; z | x ?
            arguments of a call that begins after them | g0 {"n":1} ; a0 x ; z | x ?
            the same, and the output | g0 {"n":1} ; a0 x ; z x {"n":1} | x {"n":1}
            arguments of either of two calls, and their items | a0 x ; a1 y ; g5 {"n":1} ; e0 x {} ; e1 y {"n":1} ; z | x {} ; y {"n":1}
            one id for all items | a0 x.f ; g0 {"n":1} ; a1 y.f ; g1 {"n":2} ; z | x {"n":1} ; y {"n":2}
        "##;
        for [case, events, expected] in rows(table) {
            let events = Vec::from_iter(events.split(" ; ").map(event_of_call));
            let events = Vec::from_iter(events.iter().map(String::as_str));
            let reply = replied_with_tools(&DIALECT, &events);
            let mut found = Vec::new();
            for (id, _, arguments) in calls_of(&reply) {
                let id = if id.is_empty() { "-" } else { id };
                let arguments = arguments.replace(UNJOINED, "?");
                found.push(format!("{id} {arguments}"));
            }
            assert_eq!(found.join(" ; "), expected, "{case}");
        }
    }

    #[test]
    fn arguments_that_are_sent_back_are_the_text_of_an_object() {
        for (arguments, sent) in [
            (json!("{ \"n\": 1 }"), "{ \"n\": 1 }"),
            (json!({"n": 1}), "{\"n\":1}"),
            (json!("\"{\\\"n\\\":1}\""), "{\"n\":1}"),
            (json!("{\"n"), "{}"),
            (json!("{\"n\":\"\n\"}"), "{}"),
            (json!("[1]"), "{}"),
            (json!(""), "{}"),
            (Value::Null, "{}"),
        ] {
            let item =
                json!({"type": FUNCTION_CALL, "call_id": "x", "name": "a", "arguments": arguments});
            let mut missing = item.clone();
            if arguments.is_null() {
                missing = json!({"type": FUNCTION_CALL, "call_id": "x", "name": "a"});
            }
            let mut begun = item.clone();
            begun["arguments"] = "".into();
            for items in [json!([item]), json!([missing]), json!([begun, item])] {
                let body = json!({"status": "completed", "output": items}).to_string();
                let mut reply = Reply::new(true);
                DIALECT.read_whole(&body, &mut reply).expect(&body);
                let echo = reply.turn.echo();
                let found = Vec::from_iter(echo.items().iter().map(|item| &item["arguments"]));
                assert_eq!(found, [sent], "{items}");
            }
        }
    }

    #[test]
    fn reasoning_that_only_the_complete_response_has_goes_back_before_its_call() {
        // The items that come before, those of the complete response, and what goes back: `r` and `s` are encrypted reasoning,
        // `t` and `u` are its text, `x` and `y` are calls, `m` is a message, and `b` is reasoning with neither.
        let table = r##"
            x | r x | r x
            x y | r x y | r x y
            x y | r x s y | r x s y
            r x | r x | r x
            r x y | r x s y | r x s y
            r x | s r x | s r x
            m x | r m x | r m x
            x | b x | x
            x | x r | x
            x | y r | x
            - | r x | r x
            r x | s x | r x
            r x y | s x y | r x y
            x | t x | t x
            x y | t x u y | t x u y
            t x | t x | t x
            t x y | t x u y | t x u y
            m x | t m x | t m x
            t x | u x | t x
            x | r t x | r t x
            - | t x | t x
        "##;
        let item = |name: &str| match name {
            "x" | "y" => call(name, "{}"),
            "m" => {
                json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi"}]})
            }
            "b" => json!({"type": "reasoning", "id": "b", "summary": []}),
            "t" | "u" => {
                let content = json!([{"type": "reasoning_text", "text": name}]);
                json!({"type": "reasoning", "id": name, "summary": [], "content": content})
            }
            _ => json!({"type": "reasoning", "id": name, "summary": [], "encrypted_content": name}),
        };
        for [before, output, sent] in rows(table) {
            let items = |names: &str| {
                let names = names.split_whitespace();
                Vec::from_iter(names.map(item))
            };
            let mut events = Vec::new();
            for item in items(before) {
                events.push(json!({"type": "response.output_item.done", "item": item}).to_string());
            }
            let response = json!({"status": "completed", "output": items(output)});
            events.push(json!({"type": "response.completed", "response": response}).to_string());
            let events = Vec::from_iter(events.iter().map(String::as_str));
            let reply = replied_with_tools(&DIALECT, &events);
            let echo = reply.turn.echo();
            let names = echo.items().iter().map(|item| {
                let id = item.get("call_id").or(item.get("id"));
                id.and_then(Value::as_str).unwrap_or_default().to_owned()
            });
            assert_eq!(Vec::from_iter(names).join(" "), sent, "{before} | {output}");
        }
    }

    fn call(id: &str, arguments: &str) -> Value {
        json!({"type": "function_call", "call_id": id, "name": "db__get", "arguments": arguments})
    }

    fn result(id: &str, output: &str) -> Value {
        json!({"type": "function_call_output", "call_id": id, "output": output})
    }

    /// Items that a model sends, and those that q sends back.
    fn items() -> (Value, Value) {
        let reasoning =
            json!({"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "s"});
        let bare = json!({"type": "reasoning", "id": "r2", "summary": []});
        let message = json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi"}], "phase": "p"});
        let (one, two) = (call("x", "{\"n\":1}"), call("y", ""));
        (
            json!([reasoning, bare, message, one, two]),
            json!([reasoning, message, one, call("y", "{}")]),
        )
    }

    #[test]
    fn output_items_are_kept_for_the_echo_and_calls_are_read_from_them() {
        let (items, kept) = items();
        let of_type = |kind: &str, item: &Value| json!({"type": kind, "item": item}).to_string();
        let list = items.as_array().expect("a list");
        let mut streamed =
            vec![json!({"type": "response.output_text.delta", "delta": "Hi"}).to_string()];
        for item in list {
            streamed.push(of_type("response.output_item.added", item));
            if item["type"] == FUNCTION_CALL {
                let kind = "response.function_call_arguments.delta";
                streamed.push(json!({"type": kind, "delta": "{"}).to_string());
            }
            streamed.push(of_type("response.output_item.done", item));
        }
        let mut again = items.clone();
        again[0]["encrypted_content"] = "another".into();
        let end = |output: &Value| {
            json!({"type": "response.completed", "response": {"status": "completed", "output": output}}).to_string()
        };
        let with_end = |output: &Value| {
            streamed
                .iter()
                .cloned()
                .chain([end(output)])
                .collect::<Vec<String>>()
        };
        for (case, events) in [
            ("items by themselves", with_end(&json!([]))),
            ("items twice", with_end(&again)),
            ("items at the end only", vec![end(&items)]),
        ] {
            let events: Vec<&str> = events.iter().map(String::as_str).collect();
            let mut reply = replied_with_tools(&DIALECT, &events);
            assert_eq!(reply.take_piece(false).text, "Hi", "{case}");
            assert_eq!(
                calls_of(&reply),
                [("x", "db__get", "{\"n\":1}"), ("y", "db__get", "{}")],
                "{case}"
            );
            assert_eq!(
                reply.end.finish(),
                Some(&Finish::new(FinishKind::Complete, "completed")),
                "{case}"
            );
            assert_eq!(Value::from(reply.turn.echo().items()), kept, "{case}");
        }
        let begun: Vec<&str> = streamed.iter().map(String::as_str).collect();
        assert_eq!(replied_with_tools(&DIALECT, &begun).end.finish(), None);
    }

    #[test]
    fn messages_become_paragraphs_and_a_custom_call_is_not_run() {
        let message = |text: &str| json!({"type": "message", "content": [{"type": "output_text", "text": text}]});
        let own = json!({"type": "function_call", "id": "fc", "name": "a", "arguments": "{}"});
        for between in [
            // Without a call_id, as some servers have it.
            json!({"type": "custom_tool_call", "id": "c", "name": "x_keyword_search"}),
            json!({"type": "web_search_call", "id": "ws"}),
            json!({"type": "reasoning", "id": "rs"}),
        ] {
            let output = json!([message("I look."), between, message("Found"), own]);
            let mut reply = Reply::new(true);
            DIALECT
                .read_whole(
                    &json!({"status": "completed", "output": output}).to_string(),
                    &mut reply,
                )
                .expect("an answer");
            assert_eq!(
                reply.take_piece(false).text,
                "I look.\n\nFound",
                "{between}"
            );
            assert_eq!(calls_of(&reply), [("fc", "a", "{}")]);
        }
    }

    #[test]
    fn a_call_without_an_id_gets_that_of_its_item_or_a_made_up_one() {
        let made_up = json!({"type": "function_call", "name": "a", "arguments": {"n": 1}});
        let own =
            json!({"type": "function_call", "id": "fc", "name": "a", "arguments": "{\"n\":1}"});
        for (item, id) in [(made_up, ""), (own, "fc")] {
            let done = json!({"type": "response.output_item.done", "item": item}).to_string();
            let reply = replied_with_tools(&DIALECT, &[&done, r#"{"type":"response.completed"}"#]);
            assert_eq!(calls_of(&reply), [(id, "a", "{\"n\":1}")], "{item}");
            assert_eq!(
                reply.turn.echo().items()[0]["call_id"],
                *reply.turn.calls()[0].id,
                "{item}"
            );
        }
    }

    #[test]
    fn a_call_without_a_name_is_one_call_however_often_the_reply_ends() {
        let item = json!({"type": "function_call", "id": "i", "call_id": "x", "arguments": "{}"});
        let end = json!({"type": "response.completed", "response": {"output": [item]}}).to_string();
        let reply = replied_with_tools(&DIALECT, &[&end, &end]);
        assert_eq!(calls_of(&reply), [("x", "unnamed_tool", "{}")]);
    }

    #[test]
    fn an_unanswered_call_without_offered_tools_ends_with_tool_calls() {
        let item = json!({"type": "function_call", "id": "i", "call_id": "x", "name": "a"});
        let other = |kind: &str, id: &str| json!([{"type": kind, id: "x"}]);
        for (items, word) in [
            (json!([item]), "tool_calls"),
            (json!([item, result("y", "")]), "tool_calls"),
            (json!([item, result("x", "")]), "completed"),
            (other("shell_call", "call_id"), "tool_calls"),
            (other("image_generation_call", "id"), "completed"),
        ] {
            let mut reply = Reply::default();
            let body = json!({"status": "completed", "output": items}).to_string();
            DIALECT.read_whole(&body, &mut reply).expect(&body);
            let found = reply.end.finish().map(|finish| &*finish.word);
            assert_eq!(
                (reply.turn.calls(), found),
                (&[][..], Some(word)),
                "{items}"
            );
        }
    }

    #[test]
    fn a_call_that_the_provider_has_run_is_sent_back_and_not_run_again() {
        let (one, two, output) = (call("x", "{}"), call("y", "{}"), result("x", "found"));
        let custom = json!({"type": "custom_tool_call", "call_id": "z", "name": "a", "input": ""});
        let called = [("y", "db__get", "{}")];
        let complete = Finish::new(FinishKind::Complete, "completed");
        for (items, calls, finish) in [
            (json!([one, output, two]), &called[..], &complete),
            (json!([one, output]), &[], &complete),
            (json!([one, custom, output]), &[], &complete),
        ] {
            let mut reply = Reply::new(true);
            let body = json!({"status": "completed", "output": items}).to_string();
            DIALECT
                .read_whole(&body, &mut reply)
                .expect("a whole answer");
            assert_eq!(
                (calls_of(&reply).as_slice(), reply.end.finish()),
                (calls, Some(finish)),
                "{items}"
            );
            assert_eq!(Value::from(reply.turn.echo().items()), items);
        }
    }
}
