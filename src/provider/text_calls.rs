//! Recognizes calls of tools that a model has written and its server has passed on as text (pure).

use serde::Deserialize;
use serde_json::value::RawValue;

use super::lenient;
use crate::text::markdown::{BlockContext, LineKind};
use crate::text::whole_name::occurrences;

/// The marks around calls, as models write them. A server that is not told how its model calls leaves them in the text. Where the
/// closing mark is missing or there is none, the calls go on to the end.
const MARKS: &[(&str, &str)] = &[
    // Hermes, Qwen, GLM; and with a function within, Qwen Coder.
    ("<tool_call>", "</tool_call>"),
    ("<tool_calls>", "</tool_calls>"),
    ("<function_call>", "</function_call>"),
    ("<function_calls>", "</function_calls>"),
    // Llama, Qwen Coder.
    ("<function=", "</function>"),
    ("<|python_tag|>", "<|eom_id|>"),
    ("<|python_start|>", "<|python_end|>"),
    // Mistral.
    ("[TOOL_CALLS]", "</s>"),
    // Granite, and Phi.
    ("<|tool_call|>", "<|/tool_call|>"),
    // Gemma.
    ("<|tool_call>", "<tool_call|>"),
    ("<start_function_call>", "<end_function_call>"),
    ("```tool_code\n", "\n```"),
    // Nemotron, MiniMax, Seed, Cohere, and InternLM.
    ("<TOOLCALL>", "</TOOLCALL>"),
    ("<minimax:tool_call>", "</minimax:tool_call>"),
    ("]<]minimax[>[<tool_call>", "]<]minimax[>[</tool_call>"),
    ("]<]minimax[>[<invoke name=", "]<]minimax[>[</invoke>"),
    ("<seed:tool_call>", "</seed:tool_call>"),
    ("<|START_ACTION|>", "<|END_ACTION|>"),
    ("<|action_start|>", "<|action_end|>"),
    // Kimi.
    ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    ("<|tool_call_begin|>", "<|tool_call_end|>"),
    // DeepSeek.
    ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
    ("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"),
    ("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
    ("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),
    ("<｜DSML｜invoke name=", "</｜DSML｜invoke>"),
    (
        "<｜｜DSML｜｜function_calls>",
        "</｜｜DSML｜｜function_calls>",
    ),
    ("<｜｜DSML｜｜tool_calls>", "</｜｜DSML｜｜tool_calls>"),
    ("<｜｜DSML｜｜invoke name=", "</｜｜DSML｜｜invoke>"),
    // The same, and MiniMax, where a server leaves out the marks around it.
    ("<invoke name=", "</invoke>"),
    // LFM.
    ("<|tool_call_start|>", "<|tool_call_end|>"),
    // Phi, whose list ends with the turn.
    ("functools[", "<|end|>"),
    // gpt-oss.
    ("<|channel|>commentary to=", "<|call|>"),
    ("<|channel|>analysis to=", "<|call|>"),
    ("<|start|>assistant<|channel|>commentary to=", "<|call|>"),
    ("<|start|>assistant<|channel|>analysis to=", "<|call|>"),
    ("<|start|>assistant to=", "<|call|>"),
    // The same where a server leaves out the special tokens.
    ("assistantcommentary to=functions.", "<|call|>"),
    ("commentary to=functions.", "<|call|>"),
    ("assistant to=functions.", "<|call|>"),
    ("to=functions.", "<|call|>"),
];

/// How marks begin that are special tokens of models, and that no prose has.
const SPECIAL: &[&str] = &["<|", "<｜", "[TOOL_CALLS]", "]<]minimax[>["];

/// The characters that end a sentence, so that a call may follow on its line.
const SENTENCE_ENDS: &[char] = &['.', '!', '?', '…', '。', '！', '？'];

/// The marks of the end of a turn that may follow.
const ENDS: &[&str] = &[
    "</s>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|endoftext|>",
    "<｜end▁of▁sentence｜>",
];

/// A call in JSON, as Llama and xLAM write it without marks.
#[derive(Deserialize)]
#[expect(dead_code, reason = "some fields are decoded only to be allowed")]
#[serde(deny_unknown_fields)]
struct JsonCall<'a> {
    #[serde(default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(default)]
    id: Option<&'a RawValue>,
    name: String,
    #[serde(borrow, alias = "parameters")]
    arguments: &'a RawValue,
}

/// The same as an element of a list of calls in the API's form.
#[derive(Deserialize)]
#[expect(dead_code, reason = "some fields are decoded only to be allowed")]
#[serde(deny_unknown_fields)]
struct CallElement<'a> {
    #[serde(default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    index: Option<&'a RawValue>,
    #[serde(borrow)]
    function: JsonCall<'a>,
}

/// Such a list, as a model copies it from what it has been shown.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallList<'a> {
    #[serde(borrow)]
    tool_calls: Vec<&'a RawValue>,
}

/// A block of code that holds nothing but JSON.
const JSON_FENCE: (&str, &str) = ("```json\n", "\n```");

/// What is left of a call of Qwen's where a server has taken the mark before its name.
const NAME_AND_END: (&str, &str) = ("<name>", "</function>");

/// How many marks at the end of a text are looked at, because each is compared with all that follows it.
const MAX_MARKS: usize = 8;

/// A call that has come as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextCall {
    pub tool: String,
    /// Whether text comes before it.
    pub follows_text: bool,
}

/// Returns the call that a text is, or ends with: a call within it, or in code, may be an example of one.
pub fn call_in<'t>(text: &str, tools: impl Iterator<Item = &'t str> + Clone) -> Option<TextCall> {
    if let Some(tool) = only_calls(text, tools.clone()) {
        return Some(TextCall {
            tool: tool.to_owned(),
            follows_text: false,
        });
    }
    // Reading the code of a long text takes its time.
    tools.clone().next()?;
    let places = marks_in_prose(text);
    let last = &places[places.len().saturating_sub(MAX_MARKS)..];
    let tool = last
        .iter()
        .find_map(|at| only_calls(&text[*at..], tools.clone()))?;
    Some(TextCall {
        tool: tool.to_owned(),
        follows_text: true,
    })
}

/// Returns the places of the marks that open calls, where a line begins with one, where one follows a sentence, or where it is a
/// special token. Those in code do not count.
fn marks_in_prose(text: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let mut context = BlockContext::default();
    let mut begin = 0;
    for line in text.split_inclusive('\n') {
        let read = context.read(line.trim_end_matches(['\r', '\n']));
        context = read.context;
        let is_code = matches!(
            read.kind,
            LineKind::Opening(_) | LineKind::Code(_) | LineKind::Closing | LineKind::Indented
        );
        if !is_code {
            let indent = line.len() - line.trim_start().len();
            let within = line.match_indices(['<', '[', ']']).map(|(at, _)| at);
            let ats = [indent].into_iter().chain(within.filter(|at| *at > indent));
            places.extend(ats.filter(|at| may_call(line, *at)).map(|at| begin + at));
        }
        begin += line.len();
    }
    places
}

/// Whether a mark is at this place of a line, and may open calls there.
fn may_call(line: &str, at: usize) -> bool {
    let (before, words) = line.split_at(at);
    let is_quoted = before.ends_with(['`', '"', '\'', '“', '‘', '«']);
    let before = before.trim_end();
    let follows_sentence = before.is_empty() || before.ends_with(SENTENCE_ENDS);
    let is_special = || SPECIAL.iter().any(|begin| words.starts_with(begin));
    !is_quoted
        && (follows_sentence || is_special())
        && MARKS.iter().any(|(open, _)| words.starts_with(open))
}

/// Returns the one of these tools that the text calls first, if the text is nothing but calls of them.
fn only_calls<'t>(text: &str, mut tools: impl Iterator<Item = &'t str> + Clone) -> Option<&'t str> {
    let mut rest = text.trim();
    if let Some(name) = name_of_bare_call(without_ends(rest)) {
        return tools.find(|tool| *tool == name);
    }
    let mut called = None;
    while !rest.is_empty() {
        if let Some(after) = after_end(rest) {
            rest = after.trim_start();
            continue;
        }
        let (calls, after) = split_calls(rest)?;
        let tool = first_named(calls, tools.clone())?;
        called.get_or_insert(tool);
        rest = after.trim_start();
    }
    called
}

/// Returns the tool whose name comes first in a text: arguments, which may have the name of another one, come after it.
fn first_named<'t>(text: &str, tools: impl Iterator<Item = &'t str>) -> Option<&'t str> {
    let named = tools.filter_map(|tool| {
        let (before, _) = occurrences(text, tool).next()?;
        Some((before.len(), tool))
    });
    let (_, tool) = named.min_by_key(|(place, _)| *place)?;
    Some(tool)
}

/// Returns what is after a mark that ends calls or the turn, if the text begins with one.
fn after_end(text: &str) -> Option<&str> {
    let closing = MARKS.iter().map(|(_, close)| *close);
    let mut ends = closing.chain(ENDS.iter().copied());
    ends.find_map(|end| text.strip_prefix(end))
}

/// Returns the text without the marks of the end of a turn that follow it.
fn without_ends(mut text: &str) -> &str {
    while let Some(before) = ENDS.iter().find_map(|end| text.strip_suffix(end)) {
        text = before.trim_end();
    }
    text
}

/// Returns the calls between the marks at the beginning of the text, and what is after them.
fn split_calls(text: &str) -> Option<(&str, &str)> {
    let (calls, close) = MARKS
        .iter()
        .find_map(|(open, close)| Some((text.strip_prefix(open)?, close)))?;
    if let Some(found) = calls.split_once(close) {
        return Some(found);
    }
    // What ends otherwise is likely to be prose.
    calls.ends_with(['}', ']', ')', '>']).then_some((calls, ""))
}

/// Returns the name of the first call, if the text is a call without marks, or with the rest of one: JSON, perhaps as the only
/// code, a list of it, or as Llama writes it in the notation of Python.
fn name_of_bare_call(text: &str) -> Option<String> {
    let within = |(open, close)| text.strip_prefix(open)?.strip_suffix(close).map(str::trim);
    if let Some(call) = within(NAME_AND_END) {
        let name = call.split(['<', '\n']).next()?;
        return Some(name.trim().to_owned());
    }
    let text = within(JSON_FENCE).unwrap_or(text);
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    if let Some(calls) = inner.map(str::trim)
        && calls.ends_with(')')
        && let Some((name, _)) = calls.split_once('(')
    {
        return Some(name.to_owned());
    }
    let values: Vec<&RawValue> = match inner {
        Some(_) => serde_json::from_str(text).ok()?,
        None => json_values(text)?,
    };
    let values = match values[..] {
        [only] => calls_listed_in(only.get()).unwrap_or(values),
        _ => values,
    };
    let calls = values.into_iter().map(|value| call_of(value.get()));
    let calls: Vec<JsonCall> = calls.collect::<Option<_>>()?;
    // Some models write them as the text of an object.
    let is_object = |json: &str| json.starts_with('{') || json.starts_with("\"{");
    let has_arguments = |call: &JsonCall| {
        let json = call.arguments.get();
        is_object(json) && !is_schema(json)
    };
    let first = calls.iter().all(has_arguments).then(|| calls.first())??;
    Some(first.name.clone())
}

/// Whether arguments are the schema of a tool's parameters: then the answer shows what the tool is, and does not call it.
fn is_schema(json: &str) -> bool {
    let value = lenient::value(json).unwrap_or_default();
    value["type"] == "object" && value["properties"].is_object()
}

/// Returns the elements of an object that is a list of calls.
fn calls_listed_in(json: &str) -> Option<Vec<&RawValue>> {
    let list: CallList = serde_json::from_str(json).ok()?;
    Some(list.tool_calls)
}

fn call_of(json: &str) -> Option<JsonCall<'_>> {
    if let Ok(call) = serde_json::from_str(json) {
        return Some(call);
    }
    let call: CallElement = serde_json::from_str(json).ok()?;
    Some(call.function)
}

/// Returns the values of a text that has nothing but JSON, one after the other or, as Llama writes calls, with semicolons between
/// them.
fn json_values(text: &str) -> Option<Vec<&RawValue>> {
    let mut calls = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter();
        calls.push(values.next()?.ok()?);
        let after = rest[values.byte_offset()..].trim_start();
        rest = after.strip_prefix(';').unwrap_or(after).trim_start();
    }
    Some(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tool that the text calls, of two that are offered.
    fn called(text: &str) -> Option<&'static str> {
        only_calls(text, ["db__get", "db__get_all"].into_iter())
    }

    #[test]
    fn calls_are_recognized_in_the_notation_of_every_common_model() {
        for text in [
            r#"<tool_call>{"name": "db__get", "arguments": {"n": 1}}</tool_call>"#,
            "\n<tool_call>\n{\"name\": \"db__get\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n{\"name\": \"db__get_all\"}\n</tool_call>\n",
            r#"<tool_call>{"name": "db__get", "arguments": {}}"#,
            r#"<tool_call>{"name": "db__get", "arguments": {}}</tool_call><|im_end|>"#,
            "<tool_call>\n<function=db__get>\n<parameter=n>\n1\n</parameter>\n</function>\n</tool_call>",
            "<function=db__get>\n<parameter=n>\n1\n</parameter>\n</function>\n</tool_call>",
            "<tool_call>db__get\n<arg_key>n</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
            "<tool_calls>\n[{\"name\": \"db__get\", \"arguments\": {}}]\n</tool_calls>",
            r#"<function=db__get>{"n": 1}</function>"#,
            r#"<|python_tag|>{"name": "db__get", "parameters": {}}"#,
            r#"<|python_tag|>db__get.call(n=1)<|eom_id|>"#,
            "<|python_start|>[db__get(n=1)]<|python_end|>",
            r#"[TOOL_CALLS][{"name": "db__get", "arguments": {}}]"#,
            r#"[TOOL_CALLS] [{"name": "db__get", "arguments": {}}]</s>"#,
            r#"[TOOL_CALLS]db__get[ARGS]{"n": 1}"#,
            r#"[TOOL_CALLS]db__get{"n": 1}[TOOL_CALLS]db__get{"n": 2}"#,
            r#"[TOOL_CALLS]db__get[CALL_ID]a1b2c3d4e[ARGS]{}"#,
            r#"<|tool_call|>[{"name": "db__get", "arguments": {}}]"#,
            r#"<|tool_call|>[{"name": "db__get", "arguments": {}}]<|/tool_call|>"#,
            "<|tool_call>call:db__get{n:1}<tool_call|>",
            "<start_function_call>call:db__get{n:<escape>1<escape>}<end_function_call>",
            "```tool_code\ndb__get(n=1)\n```",
            r#"<TOOLCALL>[{"name": "db__get", "arguments": {}}]</TOOLCALL>"#,
            "<minimax:tool_call>\n<invoke name=\"db__get\">\n<parameter name=\"n\">1</parameter>\n</invoke>\n</minimax:tool_call>",
            "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"db__get\">]<]minimax[>[<n>1]<]minimax[>[</n>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
            "]<]minimax[>[<invoke name=\"db__get\">]<]minimax[>[</invoke>\n]<]minimax[>[<invoke name=\"db__get_all\">]<]minimax[>[</invoke>",
            "<seed:tool_call><function=db__get><parameter=n>1</parameter></function></seed:tool_call>",
            r#"<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "db__get", "parameters": {}}]<|END_ACTION|>"#,
            "<|action_start|><|plugin|>{\"name\": \"db__get\", \"parameters\": {}}<|action_end|>",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.db__get:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>db__get\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"db__get\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
            "<|start|>assistant<|channel|>commentary to=functions.db__get <|constrain|>json<|message|>{}<|call|>",
            "<|channel|>commentary to=functions.db__get <|constrain|>json<|message|>{\"n\": 1}",
            r#"{"name": "db__get", "parameters": {"n": "1"}}"#,
            r#"{"name": "db__get", "arguments": "{\"n\": 1}"}"#,
            r#"{"type": "function", "name": "db__get", "parameters": {}}"#,
            r#"[{"name": "db__get", "arguments": {}}, {"name": "db__get_all", "arguments": {}}]"#,
            "{\"name\": \"db__get\", \"arguments\": {}}\n{\"name\": \"db__get\", \"arguments\": {}}",
            "[db__get(n=1), db__get_all()]",
            "```json\n{\"name\": \"db__get\", \"arguments\": {}}\n```",
            "```json\n[\n{\"name\": \"db__get\", \"parameters\": {}}\n]\n```",
            r#"{"tool_calls":[{"id":"c","type":"function","function":{"name":"db__get","arguments":"{\"n\":1}"}}]}"#,
            r#"{"tool_calls": [{"function": {"name": "db__get", "arguments": {}}}, {"name": "db__get_all", "arguments": {}}]}"#,
            r#"{"name": "db__get", "parameters": {"type": "object", "n": 1}}"#,
            r#"{"name": "db__get", "parameters": {"type": "list", "properties": {}}}"#,
            r#"[{"type": "function", "index": 0, "function": {"name": "db__get", "arguments": {}}}]"#,
            "```json\n{\"tool_calls\": [{\"name\": \"db__get\", \"arguments\": {}}]}\n```",
            "<name>db__get\n</parameter>\n<parameter=n>\n1\n</parameter>\n</function>\n",
            r#"{"name": "db__get", "parameters": {}}; {"name": "db__get_all", "parameters": {}}"#,
            r#"{"name": "db__get", "parameters": {}}<|eot_id|>"#,
            "[db__get(n=1)]<|eom_id|>",
            r#"[{"name": "db__get", "arguments": {}}] <|im_end|><|endoftext|>"#,
            "<|start|>assistant to=functions.db__get<|channel|>commentary json<|message|>{}",
            "<|start|>assistant to=functions.db__get<|channel|>commentary <|constrain|>json<|message|>{}<|call|>",
            "<|channel|>analysis to=functions.db__get code<|message|>{}<|call|>",
            "<|start|>assistant<|channel|>analysis to=functions.db__get <|constrain|>json<|message|>{}",
            "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"db__get\">\n<｜DSML｜parameter name=\"n\" string=\"true\">1</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
            "<｜｜DSML｜｜tool_calls>\n<｜｜DSML｜｜invoke name=\"db__get\">\n</｜｜DSML｜｜invoke>\n</｜｜DSML｜｜tool_calls>",
            "<｜｜DSML｜｜function_calls>\n<｜｜DSML｜｜invoke name=\"db__get\">\n</｜｜DSML｜｜invoke>\n</｜｜DSML｜｜function_calls>",
            "<｜DSML｜invoke name=\"db__get\">\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
            "<｜｜DSML｜｜invoke name=\"db__get\">\n</｜｜DSML｜｜invoke>",
            "<invoke name=\"db__get\">\n<parameter name=\"n\">1</parameter>\n</invoke>",
            "<invoke name=\"db__get\">\n</invoke>\n<invoke name=\"db__get_all\">\n</invoke>\n</function_calls>",
            "<|tool_call_start|>[db__get(n=1)]<|tool_call_end|>",
            r#"functools[{"name": "db__get", "arguments": {"n": [1]}}]"#,
            r#"functools[{"name": "db__get", "arguments": {}}]<|end|>"#,
            "to=functions.db__get\n{\"n\": 1}",
            "commentary to=functions.db__get json{\"n\": 1}",
            "assistantcommentary to=functions.db__get json{}",
            "assistant to=functions.db__get<|channel|>commentary json<|message|>{}<|call|>",
        ] {
            assert_eq!(called(text), Some("db__get"), "{text}");
        }
    }

    #[test]
    fn the_tool_that_is_called_is_the_one_named_first_whatever_the_order_of_the_tools() {
        for (text, tool) in [
            (
                r#"<tool_call>{"name": "db__get", "arguments": {"like": "db__get_all"}}</tool_call>"#,
                "db__get",
            ),
            (
                r#"<tool_call>{"name": "db__get_all", "arguments": {"like": "db__get"}}</tool_call>"#,
                "db__get_all",
            ),
            (
                "<function=db__get_all>\n<parameter=like>\ndb__get\n</parameter>\n</function>",
                "db__get_all",
            ),
            (
                "<tool_call>{\"name\": \"db__get_all\"}</tool_call><tool_call>{\"name\": \"db__get\"}</tool_call>",
                "db__get_all",
            ),
            (
                "[TOOL_CALLS]db__get_all{\"like\": \"db__get\"}[TOOL_CALLS]db__get{}",
                "db__get_all",
            ),
        ] {
            for tools in [["db__get", "db__get_all"], ["db__get_all", "db__get"]] {
                assert_eq!(only_calls(text, tools.into_iter()), Some(tool), "{text}");
            }
        }
    }

    #[test]
    fn an_answer_is_no_call_if_it_says_more_or_names_another_tool() {
        for text in [
            "",
            "db__get",
            "I look.\n<tool_call>{\"name\": \"db__get\", \"arguments\": {}}</tool_call>",
            "<tool_call>{\"name\": \"db__get\", \"arguments\": {}}</tool_call> calls the tool.",
            "<tool_call>{\"name\": \"db__get\", \"arguments\": {}} calls the tool.",
            "<tool_call>{\"name\": \"db__get\"}</tool_call> or <tool_call>{\"name\": \"db__get\"}</tool_call>",
            "[TOOL_CALLS] is Mistral's mark of a call of db__get.",
            "`<tool_call>{\"name\": \"db__get\"}</tool_call>`",
            "So:\n```json\n{\"name\": \"db__get\", \"arguments\": {}}\n```",
            "```json\n{\"name\": \"db__get\", \"arguments\": {}}\n```\nis a call.",
            "```json\n{\"name\": \"get\", \"arguments\": {}}\n```",
            "```json\n{\"name\": \"db__get\", \"about\": \"a tool\"}\n```",
            "```python\n{\"name\": \"db__get\", \"arguments\": {}}\n```",
            r#"{"tool_calls": []}"#,
            r#"{"tool_calls": ["db__get"]}"#,
            r#"{"tool_calls": [{"function": {"name": "get", "arguments": {}}}]}"#,
            r#"{"tool_calls": [{"function": {"name": "db__get", "arguments": {}}}], "note": "x"}"#,
            r#"{"tool_calls": [{"tool_calls": [{"name": "db__get", "arguments": {}}]}]}"#,
            r#"{"name": "db__get", "parameters": {"type": "object", "properties": {}}}"#,
            "```json\n{\"name\": \"db__get\", \"parameters\": {\"type\": \"object\", \"properties\": {\"n\": {}}, \"required\": []}}\n```",
            r#"[{"type": "function", "function": {"name": "db__get", "parameters": {"type": "object", "properties": {}}}}]"#,
            r#"{"tool_calls": [{"name": "db__get", "arguments": {"properties": {}, "type": "object"}}]}"#,
            "<name>db__get</name>",
            "<name>get\n</parameter>\n</function>",
            "<name>the function db__get\n</parameter>\n</function>",
            r#"<tool_call>{"name": "get", "arguments": {}}</tool_call>"#,
            r#"<tool_call>{"name": "db__get_one", "arguments": {}}</tool_call>"#,
            r#"{"name": "db__get"}"#,
            r#"{"name": "db__get", "arguments": "none"}"#,
            r#"{"name": "db__get", "arguments": {}, "note": "x"}"#,
            r#"{"name": "Bob", "parameters": {}}"#,
            r#"["db__get"]"#,
            "functools",
            "functools[db__get] is a decorator",
            "functools is a module, and db__get (a tool) is not in it",
            "to=functions.db__get is how gpt-oss calls",
            "<invoke name=\"get\">\n</invoke>",
            "<invoke name=\"db__get\"> is a mark",
            "[]",
            "[Bob (a friend)]",
            r#"{"name": "Bob", "parameters": {}}<|eot_id|>"#,
            r#"{"name": "db__get", "parameters": {}}; or not"#,
            r#"; {"name": "db__get", "parameters": {}}"#,
            "<|start|>assistant to=Bob<|channel|>final<|message|>{}",
            "<tool_call></tool_call>",
            "</tool_call>",
            "<|im_end|>",
        ] {
            assert_eq!(called(text), None, "{text}");
        }
        assert_eq!(
            only_calls("<tool_call>db__get</tool_call>", [].into_iter()),
            None
        );
    }
    #[test]
    fn a_call_at_the_end_of_a_text_is_recognized_unless_it_is_quoted() {
        let call = r#"<tool_call>{"name": "db__get", "arguments": {}}</tool_call>"#;
        let table = r##"
            yes | I will look.␊CALL
            yes | I will look.␊␊CALL␊<|im_end|>
            yes | I will look.␊CALL␊CALL
            yes | ```␊a␊```␊CALL
            yes | I look.␊[TOOL_CALLS]db__get{"n": 1}
            yes | I look.␊<function=db__get>␊<parameter=n>␊1␊</parameter>␊</function>
            yes | I will look.CALL
            yes | I will look! CALL
            yes | 見ます。CALL
            yes | I look.<invoke name="db__get">␊</invoke>
            yes | I look. <function=db__get>␊</function>␊</tool_call>
            yes | I look <|tool_call_start|>[db__get(n=1)]<|tool_call_end|>
            yes | I look:<｜DSML｜tool_calls><｜DSML｜invoke name="db__get"></｜DSML｜invoke></｜DSML｜tool_calls>
            no | I look.<invoke name="get">␊</invoke>
            no | Models write `<|tool_call_start|>[db__get(n=1)]<|tool_call_end|>`
            no | Models write `<|tool_call_start|>` and db__get (as here)
            no | It is over.`CALL`
            no | Like this: CALL
            no | Like this:␊```␊I look.CALL␊```
            no | Like this:␊```␊CALL␊```
            no | Write CALL
            no | Like this:␊`CALL`
            no | Like this:␊"CALL"
            no | Like this:␊␊    CALL
            no | I look.␊CALL␊Done.
            no | I look.␊CALL is a call.
            no | I look.␊<tool_call>{"name": "get", "arguments": {}}</tool_call>
            no | I look.
        "##;
        let tools = ["db__get", "db__get_all"];
        for [is_call, text] in crate::text::table::rows(table) {
            let text = text.replace('␊', "\n").replace("CALL", call);
            let text = text.replace(&format!("[TOOL_{call}S]"), "[TOOL_CALLS]");
            let found = call_in(&text, tools.into_iter());
            let expected = TextCall {
                tool: "db__get".to_owned(),
                follows_text: true,
            };
            assert_eq!(found, (is_call == "yes").then_some(expected), "{text}");
        }
        let only = call_in(call, tools.into_iter()).expect("a call");
        assert!(!only.follows_text);
        // The work grows with the length of the text, and not with its square.
        for mark in ["<tool_call>\n", "<|tool_call_start|>", "I look.<tool_call>"] {
            assert_eq!(call_in(&mark.repeat(50_000), tools.into_iter()), None);
        }
    }
}
