//! The JSON of a conversation's file, version 1; fields that q does not know keep their bytes (pure).

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::sync::Arc;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::checked_entry::{CheckedEntry, decoded_name, without_place};
use super::conversation::{Conversation, VERSION, grouped};
pub use super::entry::MAX_SIZE;
use super::entry::{StoredEntry, UnknownFields};
use super::timestamp::Timestamp;
use crate::message::or_default;
use crate::text::byte_order_mark::remove_mark;
use crate::text::search::Word;
use crate::text::size::in_units;
use crate::text::{json, surrogates};

/// The name of the field with its messages.
const MESSAGES: &str = "messages";

/// How q begins a file.
const BEGIN_FILE: &str = "{\"version\":1,";

/// What is between a conversation's own fields and its messages, and at the end.
const BEGIN: &str = ",\"messages\":[";
const END: &str = "\n]}\n";

/// The names of the fields of a [`Conversation`] that q knows, but for its messages.
const KNOWN_NAMES: [&str; 8] = [
    "version", "provider", "model", "created", "updated", "system", "tools", "pinned",
];

/// These fields as a file has them.
#[derive(Deserialize)]
#[serde(expecting = "a conversation")]
struct FileFields {
    version: u64,
    provider: String,
    model: String,
    created: Timestamp,
    updated: Timestamp,
    system: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    tools: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pinned: bool,
}

/// A file of any version.
#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

/// A file that can be read. Of its messages, which are most of it, nothing was decoded.
struct CheckedFile<'a> {
    fields: FileFields,
    messages: Vec<CheckedEntry<'a>>,
    unknown_fields: UnknownFields,
}

impl<'de: 'a, 'a> Deserialize<'de> for CheckedFile<'a> {
    fn deserialize<D: Deserializer<'de>>(file: D) -> Result<Self, D::Error> {
        file.deserialize_map(FileVisitor)
    }
}

struct FileVisitor;

impl<'de> Visitor<'de> for FileVisitor {
    type Value = CheckedFile<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a conversation")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = String::new();
        let mut messages = None;
        let mut unknown_fields = UnknownFields::default();
        while let Some(name) = map.next_key::<&RawValue>()? {
            let decoded = decoded_name(name.get()).map_err(A::Error::custom)?;
            if decoded == MESSAGES {
                if messages.is_some() {
                    return Err(A::Error::duplicate_field(MESSAGES));
                }
                messages = Some(map.next_value()?);
                continue;
            }
            let value = map.next_value::<&RawValue>()?.get();
            if KNOWN_NAMES.contains(&&*decoded) {
                let comma = if fields.is_empty() { "" } else { "," };
                fields += &format!("{comma}{name}:{value}");
            } else {
                unknown_fields.add(name.get(), value);
            }
        }
        let fields = format!("{{{fields}}}");
        let fields = json::check_weight(&fields, json::MAX_WEIGHT)
            .and_then(|()| surrogates::lossy(&fields))
            .map_err(|error| A::Error::custom(without_place(&error)))?;
        let messages = messages.ok_or_else(|| A::Error::missing_field(MESSAGES))?;
        Ok(CheckedFile {
            fields,
            messages,
            unknown_fields,
        })
    }
}

/// Reads a file's bytes. The error says why it cannot be used as a conversation.
pub fn read(bytes: Vec<u8>) -> Result<Conversation, String> {
    read_text(text_of(bytes)?)
}

/// Reads a file that may have all words; `None` without parsing it where it surely lacks one of them and looks as q has written it.
pub fn read_if_it_may_have(bytes: Vec<u8>, words: &[Word]) -> Result<Option<Conversation>, String> {
    let text = text_of(bytes)?;
    let may_have_all = words.iter().all(|word| word.may_be_in(&text));
    if !may_have_all && text.starts_with(BEGIN_FILE) && text.ends_with(END) {
        return Ok(None);
    }
    read_text(text).map(Some)
}

/// Returns the text of a file without a byte order mark, which some editors put before it. To check all of it once is faster than
/// each string for itself.
fn text_of(bytes: Vec<u8>) -> Result<String, String> {
    let text = String::from_utf8(bytes);
    let mut text = text.map_err(|error| unparsable(&error.utf8_error()))?;
    remove_mark(&mut text);
    Ok(text)
}

fn read_text(text: String) -> Result<Conversation, String> {
    let source = Arc::new(text);
    let parsed = parse_file(&source);
    let version = if let Ok(conversation) = &parsed {
        conversation.version
    } else {
        // Its other fields need not be those that q knows.
        let file = serde_json::from_str::<Versioned>(&source);
        file.map_or(VERSION, |file| file.version)
    };
    if version != VERSION {
        return Err(format!(
            "it has version {version}, but q reads version {VERSION}"
        ));
    }
    let mut conversation = parsed?;
    conversation.source = Some(source);
    Ok(conversation)
}

fn unparsable(error: &dyn Display) -> String {
    format!("it cannot be parsed ({error})")
}

fn parse_file(text: &Arc<String>) -> Result<Conversation, String> {
    let file: CheckedFile =
        serde_json::from_str(text).map_err(|error| unparsable(&json::parse_failure(&error)))?;
    let entries = file
        .messages
        .iter()
        .map(|message| StoredEntry::of_file(message, text));
    let fields = file.fields;
    Ok(Conversation {
        version: fields.version,
        provider: fields.provider,
        model: fields.model,
        created: fields.created,
        updated: fields.updated,
        system: fields.system,
        tools: fields.tools,
        pinned: fields.pinned,
        exchanges: grouped(entries),
        unknown_fields: file.unknown_fields,
        source: None,
    })
}

/// Writes the file of a conversation: JSON, one message a line. It must not have more than [`MAX_SIZE`].
pub fn write(conversation: &Conversation, file: &mut dyn Write) -> io::Result<()> {
    check_size(conversation)?;
    file.write_all(&head(conversation)?)?;
    file.write_all(BEGIN.as_bytes())?;
    for (index, entry) in conversation.entries().enumerate() {
        file.write_all(before_message(index).as_bytes())?;
        file.write_all(entry.json().as_bytes())?;
    }
    file.write_all(END.as_bytes())
}

/// Returns the bytes of a conversation's file.
pub fn to_bytes(conversation: &Conversation) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write(conversation, &mut bytes)?;
    Ok(bytes)
}

/// Returns what is before a message.
fn before_message(index: usize) -> &'static str {
    if index == 0 { "\n" } else { ",\n" }
}

/// Returns the fields of a conversation but for its messages, which follow in place of the last brace.
fn head(conversation: &Conversation) -> io::Result<Vec<u8>> {
    let mut head = serde_json::to_vec(conversation)?;
    head.pop();
    head.extend_from_slice(conversation.unknown_fields.members().as_bytes());
    Ok(head)
}

/// Checks that the file of a conversation is not too large.
fn check_size(conversation: &Conversation) -> io::Result<()> {
    let mut size = head(conversation)?.len() + BEGIN.len() + END.len();
    for (index, entry) in conversation.entries().enumerate() {
        size += before_message(index).len() + entry.json().len();
    }
    if size > MAX_SIZE {
        let reason = format!("it has more than {size}", size = in_units(MAX_SIZE));
        return Err(io::Error::other(reason));
    }
    Ok(())
}

/// Makes room for the file of a conversation that has changed. If it would be too large, the results of tool calls are cut,
/// and then the oldest exchanges are removed. The last one stays.
pub(super) fn fit(conversation: &mut Conversation) -> io::Result<()> {
    let mut fits = check_size(conversation);
    if fits.is_err() {
        conversation.cut_results();
        fits = check_size(conversation);
    }
    while fits.is_err() && conversation.exchanges.len() > 1 {
        // A tenth at a time, or every further exchange would remove one and keep another backup.
        let kept = conversation.exchanges.len() * 9 / 10;
        conversation.keep_last(kept);
        fits = check_size(conversation);
    }
    fits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::conversation::tests::{change, conversation};
    use super::*;
    use crate::message::{Step, ToolCall, ToolRun};
    use crate::text::table::rows;

    fn file(messages: &str) -> String {
        format!(
            r#"{{"version":1,"provider":"p","model":"m","created":"2026-11-21T10:00:00.000Z","updated":"2026-11-21T10:00:00Z","messages":{messages}}}"#
        )
    }

    fn rewritten(text: &str) -> String {
        let read = read(text.as_bytes().to_vec());
        let conversation = read.unwrap_or_else(|unusable| panic!("{text}: {unusable}"));
        String::from_utf8(to_bytes(&conversation).expect("bytes")).expect("text")
    }

    #[test]
    fn a_saved_message_that_is_not_changed_keeps_every_byte() {
        let deep = format!("{}1{}", "[".repeat(1000), "]".repeat(1000));
        for message in [
            r#"{"role":"user","content":"a","timestamp":"2026-11-23 10:00"}"#,
            r#"{"role":"user","content":"a","input_alone":true,"x":1}"#,
            &format!(r#"{{"role":"user","content":"a","x":{deep}}}"#),
            r#"{"role":"user","content":"a","x":{"b":1.50,"a":[1e+400,12345678901234567890123]}}"#,
            r#"{"role":"user","content":"a","attachments":[{"name":"n","type":"image/png","data":"AAAA","x":1}]}"#,
            r#"{"role":"user","content":"a","attachments":[{"name":"n","type":"image/png"}]}"#,
            &format!(
                r#"{{"role":"assistant","content":"a","steps":[{{"calls":[{{"id":"1","name":"t","arguments":{deep},"result":"r","x":1}}],"y":2.0}}]}}"#
            ),
            r#"{"role":"assistant","content":"a","steps":[{"text":"t","calls":[{"id":"1","name":"t","arguments":"not JSON","result":"r","error":true}]}]}"#,
            r#"{"role":"assistant","content":"a\ud800b","timestamp":null,"attachments":null,"input_alone":null,"interrupted":null,"finish":null,"provider":null,"model":null,"usage":null,"sources":null,"steps":null}"#,
            r#"{"x":"\udc00","content":"\u00e9\/\n","model":"\ud83d","x":2,"x":{"y":1,"y":2},"role":"assistant"}"#,
            "{\n  \"role\": \"us\\u0065r\",\n  \"\\u0063ontent\": \"a\" ,\t\"}{\":\"}{\"\n}",
        ] {
            let text = file(&format!("[ {message}\t]"));
            let unknown = format!(r#""z":{{"y":[1.10],"y":2}},"\ud800":"a\udc00","z":{deep}"#);
            let text = text.replacen('{', &format!("{{{unknown},"), 1);
            let written = rewritten(&text);
            let is_kept = written.ends_with(&format!("\n{message}\n]}}\n"));
            assert!(is_kept, "{written}\nlacks\n{message}");
            assert!(written.contains(&unknown), "{written}");
            assert_eq!(rewritten(&written), written);
        }
    }

    #[test]
    fn a_byte_order_mark_is_read_over_and_not_written() {
        let text = file(r#"[{"role":"user","content":"\ufeffa"}]"#);
        let marked = format!("\u{feff}{text}");
        assert_eq!(rewritten(&marked), rewritten(&text));
    }

    #[test]
    fn optional_fields_may_be_null_and_text_may_have_lone_surrogates() {
        let text = file(r#"[{"role":"assistant","content":"a\ud800b\ud83d"}]"#);
        let null = r#"{"system":null,"tools":null,"pinned":null,"#;
        let read = read(text.replacen('{', null, 1).into_bytes()).expect("a conversation");
        assert_eq!(read.exchanges[0].entries[0].text(), "a\u{FFFD}b\u{FFFD}");
        let is_default = read.system.is_none() && read.tools.is_empty() && !read.pinned;
        assert!(is_default, "{read:?}");
        let prompt = r#"{"system":"a\ud800b","#;
        let written = rewritten(&text.replacen('{', prompt, 1));
        assert!(written.contains("\"system\":\"a\u{FFFD}b\""), "{written}");
        // The messages keep every byte.
        assert!(
            written.contains(r#""content":"a\ud800b\ud83d""#),
            "{written}"
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_completely_is_unusable() {
        let good = file("[]");
        let mut texts = vec![good[1..].to_owned(), format!("{good}x")];
        let changes = r#"
            "version":1, | -
            2026-11-21T10:00:00.000Z | yesterday
            {" | {"model":"twice","
            [] | [["user","a"]]
            [] | [{"role":"system","content":"a"}]
            [] | [{"role":"user"}]
            [] | [{"content":"a"}]
            [] | [{"role":"user","content":"a","role":"user"}]
            [] | [{"role":"user","content":"a","content":"b"}]
            [] | [{"role":"user","content":"a","\u0063ontent":"b"}]
            [] | [{"role":"user","content":"a\x"}]
            [] | [{"role":"user","content":"a","x":[1}]
            [] | [{}]
            [] | [{"role":"user","content":"a","timestamp":"x","timestamp":"x"}]
            [] | [{"role":"user","content":"a","attachments":[{}]}]
            [] | [{"role":"user","content":"a","attachments":[{"name":"a","name":"b","type":"c","data":""}]}]
            [] | [{"role":"user","content":"a","usage":{},"usage":{}}]
            [] | [{"role":"user","content":"a","usage":{"cost":1,"cost":1}}]
            [] | [{"role":"user","content":"a","usage":{"cost":1,"\u0063ost":1}}]
            [] | [{"role":"user","content":"a","sources":[{}]}]
            [] | [{"role":"user","content":"a","sources":[{"url":"a","url":"a"}]}]
            [] | [{"role":"user","content":"a","sources":[["a","b"]]}]
            [] | [{"role":"user","content":"a","steps":[{}]}]
            [] | [{"role":"user","content":"a","steps":[{"calls":[["1","t",{},"r"]]}]}]"#;
        for [from, to] in rows(changes) {
            assert!(good.contains(from), "{from}");
            texts.push(good.replacen(from, to, 1));
        }
        texts.extend(["", "[]", "{}", "hello\n"].map(str::to_owned));
        for text in texts {
            let unusable = read(text.as_bytes().to_vec()).expect_err(&text);
            let is_right = unusable.starts_with("it cannot be parsed (");
            assert!(is_right, "{text}: {unusable}");
        }
        let wrong = file(r#"[{"role":"user","content":3}]"#);
        let reason = "it cannot be parsed (invalid type: integer `3`, expected a string at line 1 column 149)";
        assert_eq!(read(wrong.into_bytes()), Err(reason.to_owned()));
    }

    #[test]
    fn a_field_of_another_type_makes_the_file_unusable() {
        let values = [
            ("null", "null"),
            ("bool", "true"),
            ("number", "-1.50e+400"),
            ("number", "12345678901234567890123"),
            ("text", r#""a""#),
            ("list", "[]"),
            ("object", "{}"),
            ("object", r#"{"a":{"a":1,"a":2}}"#),
        ];
        // A part of a file, what is put there, with `?` for the value, and the types that it may have.
        let table = r#"
            1 | ? | none
            "p" | ? | text
            "m" | ? | text
            "2026-11-21T10:00:00.000Z" | ? | none
            "2026-11-21T10:00:00Z" | ? | none
            "messages":[ | "messages":?,"x":[ | list
            { | {"system":?, | null text
            { | {"tools":?, | null list
            { | {"tools":[?], | text
            { | {"pinned":?, | null bool
            { | {"x":?, | null bool number text list object
            "user" | ? | none
            "a" | ? | text
            "a" | "a","timestamp":? | null text
            "a" | "a","provider":? | null text
            "a" | "a","model":? | null text
            "a" | "a","finish":? | null text
            "a" | "a","interrupted":? | null bool
            "a" | "a","input_alone":? | null bool
            "a" | "a","schema":? | null bool number text list object
            "a" | "a","x":? | null bool number text list object
            "a" | "a","attachments":? | null list
            "a" | "a","attachments":[?] | none
            "a" | "a","attachments":[{"name":?,"type":"t","data":"d"}] | text
            "a" | "a","attachments":[{"name":"n","type":?,"data":"d"}] | text
            "a" | "a","attachments":[{"name":"n","type":"t","data":?}] | null text
            "a" | "a","attachments":[{"name":"n","type":"t","x":?}] | null bool number text list object
            "a" | "a","usage":? | null object
            "a" | "a","usage":{"input_tokens":?} | null number
            "a" | "a","usage":{"output_tokens":?} | null number
            "a" | "a","usage":{"cached_tokens":?} | null number
            "a" | "a","usage":{"reasoning_tokens":?} | null number
            "a" | "a","usage":{"cost":?} | null number
            "a" | "a","usage":{"x":?} | null bool number text list object
            "a" | "a","sources":? | null list
            "a" | "a","sources":[?] | none
            "a" | "a","sources":[{"url":?,"title":"t"}] | text
            "a" | "a","sources":[{"url":"u","title":?}] | null text
            "a" | "a","sources":[{"url":"u","x":?}] | null bool number text list object
            "a" | "a","steps":? | null list
            "a" | "a","steps":[?] | none
            "a" | "a","steps":[{"text":?,"calls":[]}] | null text
            "a" | "a","steps":[{"calls":?}] | list
            "a" | "a","steps":[{"calls":[?]}] | none
            "a" | "a","steps":[{"calls":[{"id":?,"name":"n","arguments":{},"result":"r"}]}] | null text
            "a" | "a","steps":[{"calls":[{"name":?,"arguments":{},"result":"r"}]}] | text
            "a" | "a","steps":[{"calls":[{"name":"n","arguments":?,"result":"r"}]}] | null bool number text list object
            "a" | "a","steps":[{"calls":[{"name":"n","arguments":{},"result":?}]}] | text
            "a" | "a","steps":[{"calls":[{"name":"n","arguments":{},"result":"r","error":?}]}] | null bool
            "a" | "a","steps":[{"calls":[{"name":"n","arguments":{},"result":"r","changed":?}]}] | null bool
            "a" | "a","steps":[{"calls":[{"name":"n","arguments":{},"result":"r","no_result":?}]}] | null bool
            "a" | "a","steps":[{"calls":[{"name":"n","arguments":{},"result":"r","x":?}]}] | null bool number text list object"#;
        let good = file(r#"[{"role":"user","content":"a"}]"#);
        for [from, to, types] in rows(table) {
            assert!(good.contains(from), "{from}");
            let text = good.replacen(from, to, 1);
            for (kind, value) in values {
                let is_taken = types.split(' ').any(|name| name == kind);
                let read = read(text.replacen('?', value, 1).into_bytes());
                assert_eq!(read.is_ok(), is_taken, "{to} with {value}: {read:?}");
            }
        }
    }

    #[test]
    fn a_search_parses_files_that_may_have_the_words_or_may_be_damaged() {
        let talk = conversation(&[("a needle", "hay")]);
        let written = String::from_utf8(to_bytes(&talk).expect("bytes")).expect("text");
        for (text, words, parsed) in [
            (written.clone(), "", Ok(true)),
            (written.clone(), "NEEDLE", Ok(true)),
            // They are in different messages, which only the messages tell.
            (written.clone(), "needle hay", Ok(true)),
            (written.clone(), "needle straw", Ok(false)),
            (written.replace("hay", "h\\u0061y"), "straw", Ok(true)),
            (format!(" {written}"), "straw", Ok(true)),
            (format!("{written} "), "straw", Ok(true)),
            (written[..written.len() - 4].to_owned(), "straw", Err(())),
            (written.replace(":1,", ":2,"), "straw", Err(())),
            (String::new(), "straw", Err(())),
        ] {
            let words = words.split_whitespace();
            let words = Vec::from_iter(words.map(|word| Word::new(word.to_lowercase())));
            let found = read_if_it_may_have(text.clone().into_bytes(), &words);
            let found = found.map(|found| found.is_some()).map_err(drop);
            assert_eq!(found, parsed, "{text}");
        }
    }

    #[test]
    fn a_conversation_of_the_maximum_size_is_read_and_no_larger_one_is_written() {
        let rest = to_bytes(&conversation(&[("one", "")]))
            .expect("bytes")
            .len();
        for (more, fits) in [(0, true), (1, false)] {
            let written = to_bytes(&conversation(&[(
                "one",
                &"x".repeat(MAX_SIZE - rest + more),
            )]));
            let found = written
                .map_err(|error| error.kind())
                .is_ok_and(|bytes| read(bytes).is_ok());
            assert_eq!(found, fits, "{more}");
        }
    }

    #[test]
    fn a_conversation_that_would_be_too_large_loses_a_tenth_and_never_its_end() {
        for (count, size, left) in [(100, 99_000, 100), (100, 101_000, 90), (3, 5_000_000, 1)] {
            let answer = "x".repeat(size);
            let mut shrunk = conversation(&vec![("", answer.as_str()); count]);
            let last = shrunk.exchanges.last().cloned();
            fit(&mut shrunk).expect("it fits");
            assert_eq!(shrunk.exchanges.len(), left, "{count} {size}");
            assert_eq!(shrunk.exchanges.last().cloned(), last);
        }
        let too_large = "x".repeat(MAX_SIZE);
        let alone = fit(&mut conversation(&[("", &too_large)]));
        assert!(alone.is_err());
        // Results go before exchanges do.
        let mut with_results = conversation(&[("", ""), ("", "")]);
        let run = ToolRun::new(&ToolCall::default(), &too_large, false);
        change(&mut with_results.exchanges[1].entries[1], |answer| {
            answer.steps = vec![Step {
                calls: vec![run],
                ..Step::default()
            }];
        });
        fit(&mut with_results).expect("it fits");
        assert_eq!(with_results.exchanges.len(), 2);
    }

    proptest! {
        #[test]
        fn a_search_parses_every_file_that_has_the_word(
            texts in prop::collection::vec("[a-cK\u{212A}\u{130}ЖжΣςé日\"\\\\/\n :,{}]{0,8}", 1..4),
            from in 0_usize..8,
            count in 1_usize..4,
            is_escaped: bool,
        ) {
            let exchanges: Vec<_> = texts.iter().map(|text| (text.as_str(), "")).collect();
            let mut bytes = to_bytes(&conversation(&exchanges)).expect("bytes");
            if is_escaped {
                let text = String::from_utf8(bytes).expect("text");
                bytes = text.replace('é', "\\u00E9").replace('ж', "\\u0436").replace('/', "\\/").into_bytes();
            }
            let part: String = texts[0].chars().skip(from).take(count).collect();
            for word in [part.to_lowercase(), part.to_uppercase().to_lowercase()] {
                let has = texts.iter().any(|text| text.to_lowercase().contains(&word));
                let words = [Word::new(word)];
                let found = read_if_it_may_have(bytes.clone(), &words).expect("a conversation");
                prop_assert!(found.is_some() || !has);
            }
        }

        #[test]
        fn a_written_conversation_is_read_back_unchanged(texts in prop::collection::vec((".*", ".*"), 0..5), system in prop::option::of(".*"), pinned: bool) {
            let pairs: Vec<(&str, &str)> = texts.iter().map(|(question, answer)| (question.as_str(), answer.as_str())).collect();
            let mut written = conversation(&pairs);
            (written.system, written.pinned) = (system, pinned);
            let bytes = to_bytes(&written).expect("bytes");
            written.source = Some(Arc::new(String::from_utf8(bytes.clone()).expect("text")));
            prop_assert_eq!(read(bytes), Ok(written));
        }
    }
}
