//! The argv of a command that a model may call, and how the model's arguments are put into it (pure).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Number, Value, json};

use crate::shape;

/// Programs that run text as code. Those with a name that begins with `python` do so, too.
const INTERPRETERS: [&str; 8] = ["sh", "bash", "zsh", "dash", "fish", "perl", "ruby", "node"];

/// A command with placeholders for the model's arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argv {
    /// The first is the program, which has no placeholders.
    elements: Vec<Element>,
    stdin: Option<Element>,
    /// The arguments in the short form of a schema. All are required.
    inputs: Map<String, Value>,
    /// An argument may make an element begin with `-`.
    dashes: bool,
}

/// One element of an argv, or its standard input: text with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Element {
    begin: String,
    placeholders: Vec<Placeholder>,
}

/// The place of an argument, and the text after it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Placeholder {
    name: String,
    after: String,
}

/// A command with all its arguments, ready to run.
#[derive(Debug, PartialEq, Eq)]
pub struct Invocation {
    pub argv: Vec<String>,
    pub stdin: Option<String>,
}

impl Argv {
    /// Reads a command from its configuration. Without `input`, every argument is text. An error begins with the key that is
    /// wrong.
    pub fn parse(
        run: &[String],
        stdin: Option<&str>,
        input: Option<&str>,
        dashes: bool,
    ) -> Result<Argv, String> {
        let elements: Vec<Element> = run.iter().map(|text| Element::parse(text)).collect();
        let stdin = stdin.map(Element::parse);
        check_elements(run, &elements)?;
        check_code(run, &elements, stdin.as_ref())?;

        let mut argv = Argv {
            elements,
            stdin,
            inputs: Map::new(),
            dashes,
        };
        argv.inputs = match input.map(shape::arguments) {
            Some(Ok(inputs)) => inputs,
            Some(Err(reason)) => return Err(format!("input: {reason}")),
            None => argv.untyped_inputs(),
        };
        argv.check_inputs()?;
        Ok(argv)
    }

    fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        let elements = self.elements.iter().chain(&self.stdin);
        elements.flat_map(|element| &element.placeholders)
    }

    /// Every placeholder as an argument that is text.
    fn untyped_inputs(&self) -> Map<String, Value> {
        let mut inputs = Map::new();
        for Placeholder { name, .. } in self.placeholders() {
            let text = json!({"type": "string"});
            inputs.insert(name.clone(), text);
        }
        inputs
    }

    fn check_inputs(&self) -> Result<(), String> {
        for Placeholder { name, .. } in self.placeholders() {
            if !self.inputs.contains_key(name) {
                return Err(format!("input: does not name {{{name}}}"));
            }
        }
        for name in self.inputs.keys() {
            if !self.placeholders().any(|place| place.name == *name) {
                return Err(format!(
                    "input: nothing uses “{name}”, which would be {{{name}}} in run or stdin"
                ));
            }
        }
        // A list becomes several elements, which neither a part of an element nor standard input can.
        let elements = self.elements.iter();
        let partial = elements.filter(|element| element.only_argument().is_none());
        for element in partial.chain(&self.stdin) {
            for Placeholder { name, .. } in &element.placeholders {
                if self.inputs[name]["type"] == "array" {
                    return Err(format!(
                        "input: the list “{name}” must be a whole element of run"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The JSON Schema of the arguments.
    pub fn schema(&self) -> Value {
        let mut inputs = self.inputs.clone();
        for input in inputs.values_mut() {
            if input["type"] == "path" {
                input["type"] = "string".into();
            }
        }
        shape::object_of(inputs)
    }

    /// The command with these arguments. `resolve` gives the full path for an argument of type `path`. An error says to the
    /// model why they are refused.
    pub fn fill(
        &self,
        arguments: &Map<String, Value>,
        resolve: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Invocation, String> {
        for name in arguments.keys() {
            if !self.inputs.contains_key(name) {
                let names: Vec<_> = self.inputs.keys().cloned().collect();
                let names = names.join(", ");
                return Err(format!(
                    "There is no argument {name}. The arguments are: {names}."
                ));
            }
        }
        let mut texts = BTreeMap::new();
        for (name, input) in &self.inputs {
            let kind = input["type"].as_str().unwrap_or_default();
            let text = checked_texts(kind, arguments.get(name), &resolve)
                .map_err(|reason| format!("The argument {name} {reason}."))?;
            texts.insert(name.as_str(), text);
        }

        let mut argv = Vec::with_capacity(self.elements.len());
        for element in &self.elements {
            let filled = match element.only_argument() {
                Some(name) => texts[name].clone(),
                None => vec![element.fill(&texts)],
            };
            let may_be_option = self.dashes || element.begin.starts_with('-');
            let is_option = filled.iter().any(|text| text.starts_with('-'));
            if is_option && !may_be_option {
                let names = element.names().join(" and ");
                return Err(format!(
                    "The command would see an option, because {names} begins with “-”."
                ));
            }
            argv.extend(filled);
        }
        let mut stdin = None;
        if let Some(element) = &self.stdin {
            stdin = Some(element.fill(&texts));
        }
        Ok(Invocation { argv, stdin })
    }
}

impl Element {
    /// Reads an element: `{name}` is a placeholder, `{{` is a brace, and any other brace stands for itself.
    fn parse(text: &str) -> Element {
        let mut element = Element {
            begin: String::new(),
            placeholders: Vec::new(),
        };
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            element.push(before);
            match after.split_once('}') {
                Some((name, after)) if is_name(name) => {
                    element.placeholders.push(Placeholder {
                        name: name.to_owned(),
                        after: String::new(),
                    });
                    rest = after;
                }
                _ => {
                    element.push("{");
                    rest = after.strip_prefix('{').unwrap_or(after);
                }
            }
        }
        element.push(rest);
        element
    }

    fn push(&mut self, text: &str) {
        match self.placeholders.last_mut() {
            Some(last) => last.after.push_str(text),
            None => self.begin.push_str(text),
        }
    }

    fn has_placeholder(&self) -> bool {
        !self.placeholders.is_empty()
    }

    /// The argument, if the element is nothing else.
    fn only_argument(&self) -> Option<&str> {
        match &self.placeholders[..] {
            [only] if self.begin.is_empty() && only.after.is_empty() => Some(&only.name),
            _ => None,
        }
    }

    fn names(&self) -> Vec<&str> {
        let placeholders = self.placeholders.iter();
        placeholders.map(|place| place.name.as_str()).collect()
    }

    /// The text with arguments in their places; none of them is a list.
    fn fill(&self, texts: &BTreeMap<&str, Vec<String>>) -> String {
        let mut filled = self.begin.clone();
        for Placeholder { name, after } in &self.placeholders {
            filled.push_str(&texts[name.as_str()].concat());
            filled.push_str(after);
        }
        filled
    }
}

/// Refuses elements in which the model could write a program or an option.
fn check_elements(run: &[String], elements: &[Element]) -> Result<(), String> {
    let program = elements.first();
    if program.is_none_or(Element::has_placeholder) {
        return Err("run: the program cannot be an argument".to_owned());
    }
    for (text, element) in run.iter().zip(elements) {
        if text.contains('\0') {
            return Err("run: contains a NUL byte, which no program can be given".to_owned());
        }
        if element.has_placeholder() && text.starts_with('-') && !element.begin.contains('=') {
            return Err(format!(
                "run: “{text}” is an option, in which an argument may only come after “=”"
            ));
        }
    }
    Ok(())
}

/// Refuses code that the model would write: in the options of an interpreter, in what follows them, or in its standard input.
fn check_code(run: &[String], elements: &[Element], stdin: Option<&Element>) -> Result<(), String> {
    let Some(interpreter) = interpreter(run) else {
        return Ok(());
    };
    let words = run.iter().zip(elements);
    let mut is_value = false;
    for (text, element) in words.skip(interpreter + 1) {
        if element.has_placeholder() {
            return Err(format!(
                "run: “{text}” is code, in which the model may write nothing"
            ));
        }
        let is_option = text.starts_with('-');
        if !is_option && !is_value {
            return Ok(());
        }
        // A shell's `-o` is followed by the name of a setting.
        is_value = is_option && text.ends_with('o');
    }
    if stdin.is_some_and(Element::has_placeholder) {
        return Err("stdin: is code, in which the model may write nothing".to_owned());
    }
    Ok(())
}

/// Where an argv has an interpreter: at its beginning, or after `env`, its options and variables.
fn interpreter(run: &[String]) -> Option<usize> {
    let mut at = 0;
    if program_name(run.first()?) == "env" {
        let is_own = |text: &&String| text.starts_with('-') || text.contains('=');
        at = 1 + run.iter().skip(1).take_while(is_own).count();
    }
    let name = program_name(run.get(at)?);
    if !INTERPRETERS.contains(&name) && !name.starts_with("python") {
        return None;
    }
    Some(at)
}

/// The name of a program without its folder.
fn program_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or_default()
}

/// `[a-z_][a-z0-9_]*`
fn is_name(name: &str) -> bool {
    let is_letter = |character: char| character.is_ascii_lowercase() || character == '_';
    let is_allowed = |character: char| is_letter(character) || character.is_ascii_digit();
    name.starts_with(is_letter) && name.chars().all(is_allowed)
}

/// The texts of an argument: one, unless it is a list. An error continues a sentence that begins with the argument's name.
fn checked_texts(
    kind: &str,
    value: Option<&Value>,
    resolve: impl Fn(&str) -> Result<String, String>,
) -> Result<Vec<String>, String> {
    let Some(value) = value else {
        return Err("is missing".to_owned());
    };
    let mut texts = texts_of(kind, value)?;
    if texts.is_empty() {
        return Err("is an empty list".to_owned());
    }
    if texts.iter().any(|text| text.contains('\0')) {
        return Err("has a NUL character, which no command can get".to_owned());
    }
    if kind == "path" {
        for path in &mut texts {
            *path = resolve(path)?;
        }
    }
    Ok(texts)
}

fn texts_of(kind: &str, value: &Value) -> Result<Vec<String>, String> {
    if kind == "array" {
        return Vec::deserialize(value).map_err(|_| "must be a list of strings".to_owned());
    }
    let text = match (kind, value) {
        ("string" | "path", Value::String(text)) => Some(text.clone()),
        ("integer", Value::Number(number)) => integer(number),
        ("number", Value::Number(number)) => Some(number.to_string()),
        ("boolean", Value::Bool(is_true)) => Some(is_true.to_string()),
        _ => None,
    };
    match text {
        Some(text) => Ok(vec![text]),
        None => Err(format!("must be of the type {kind}")),
    }
}

/// The digits of an integer. In JSON Schema, 5.0 is one, too.
fn integer(number: &Number) -> Option<String> {
    let text = number.to_string();
    let digits = text.trim_end_matches(".0");
    if digits.contains(['.', 'e', 'E']) {
        return None;
    }
    Some(digits.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    fn full(path: &str) -> Result<String, String> {
        Ok(format!("/full/{path}"))
    }

    #[test]
    fn a_name_in_braces_is_a_place_and_every_other_brace_itself() {
        for (text, begin, places) in [
            ("", "", &[][..]),
            ("plain", "plain", &[]),
            ("{a}", "", &[("a", "")]),
            (" {a_1}x{_b}", " ", &[("a_1", "x"), ("_b", "")]),
            ("{{a}", "{a}", &[]),
            ("{{{a}}}", "{", &[("a", "}}")]),
            ("{{{{", "{{", &[]),
            ("{}{A}{1a}{a b}{a-b}{é}", "{}{A}{1a}{a b}{a-b}{é}", &[]),
            ("{a{b}", "{a", &[("b", "")]),
            ("a}{", "a}{", &[]),
        ] {
            let element = Element::parse(text);
            let read: Vec<(&str, &str)> = element
                .placeholders
                .iter()
                .map(|place| (&*place.name, &*place.after))
                .collect();
            assert_eq!((&*element.begin, &read[..]), (begin, places), "{text}");
        }
    }

    #[test]
    fn what_would_let_the_model_write_a_program_or_an_option_is_refused() {
        for (run, words) in [
            (&["{a}"][..], "the program cannot be"),
            (&["/bin/{a}"], "the program cannot be"),
            (&["ls", "-{a}"], "may only come after “=”"),
            (&["ls", "--{a}=b"], "may only come after “=”"),
            (&["ls", "-I{a}=b"], "may only come after “=”"),
            (&["sh", "a\0", "{a}"], "contains a NUL byte"),
            (&["sh", "{a}"], "is code"),
            (&["sh", "-c", "{a}"], "is code"),
            (&["/bin/bash", "-lc", "ls {a}"], "is code"),
            (&["bash", "-x", "-c", "--", "{a}"], "is code"),
            (&["bash", "-c", "-o", "pipefail", "ls {a}"], "is code"),
            (&["bash", "-co", "pipefail", "ls {a}"], "is code"),
            (&["perl", "-0777pe", "{a}"], "is code"),
            (&["python3", "-cx={a}"], "is code"),
            (&["python3.12", "-Ic", "print({a})"], "is code"),
            (&["node", "-p", "{a}"], "is code"),
            (&["env", "-i", "A=b", "ruby", "-e", "{a}"], "is code"),
        ] {
            let error = Argv::parse(&strings(run), None, None, true).expect_err(run[run.len() - 1]);
            assert!(
                error.starts_with("run: ") && error.contains(words),
                "{run:?}: {error}"
            );
        }
        for run in [
            &["ls", "--file={a}"][..],
            &["ls", "-I=x{a}"],
            &["sh", "-c", "ls \"$1\"", "-", "{a}"],
            &["bash", "-euo", "pipefail", "x.sh", "{a}"],
            &["bash", "--norc", "x.sh", "{a}"],
            &["grep", "-e", "{a}"],
            &["wc", "-c", "{a}"],
            &["awk", "{print $1}", "{a}"],
            &["grep", "python", "{a}"],
            &["python3", "tool.py", "-c", "{a}"],
        ] {
            assert!(
                Argv::parse(&strings(run), None, None, false).is_ok(),
                "{run:?}"
            );
        }
    }

    #[test]
    fn what_an_interpreter_reads_as_its_program_is_code() {
        for (run, is_allowed) in [
            (&["sh"][..], false),
            (&["python3", "-"], false),
            (&["bash", "-eu"], false),
            (&["python3", "count.py"], true),
            (&["sh", "-c", "wc -l"], true),
            (&["wc"], true),
        ] {
            let argv = Argv::parse(&strings(run), Some("{a}"), None, false);
            assert_eq!(argv.is_ok(), is_allowed, "{run:?}");
        }
    }

    #[test]
    fn every_argument_has_a_place_and_every_place_an_argument() {
        for (run, stdin, input, words) in [
            ("{a}", None, Some("b"), "input: does not name {a}"),
            ("x", Some("{a}"), Some("b"), "input: does not name {a}"),
            ("{a}", None, Some("a, b int"), "input: nothing uses “b”"),
            ("{{a}", None, Some("a"), "input: nothing uses “a”"),
            ("x{a}", None, Some("a list"), "must be a whole element"),
            ("{a}{a}", None, Some("a list"), "must be a whole element"),
            (
                "{a}",
                Some("{a}"),
                Some("a list"),
                "must be a whole element",
            ),
            ("{a}", None, Some("[a]"), "is not the name"),
            (
                "{a}",
                None,
                Some("a integer"),
                "str, int, float, bool, list, path",
            ),
            ("x", None, Some(""), "a field is empty"),
        ] {
            let error = Argv::parse(&strings(&["ls", run]), stdin, input, false).expect_err(run);
            assert!(error.contains(words), "{run} {input:?}: {error}");
        }
    }

    #[test]
    fn the_schema_requires_every_argument() {
        let run = strings(&["x", "{file}", "{n}"]);
        let argv =
            Argv::parse(&run, None, Some("n int, file path: a note"), false).expect("an argv");
        let properties =
            json!({"n": {"type": "integer"}, "file": {"type": "string", "description": "a note"}});
        let required = json!(["n", "file"]);
        let schema = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
        assert_eq!(argv.schema(), schema);
        let argv = Argv::parse(&run[..1], None, None, false).expect("an argv");
        assert_eq!(argv.schema()["properties"], json!({}));
    }

    #[test]
    fn arguments_go_into_their_places_as_text() {
        let run = strings(&[
            "x", "{s} {n}", "{f}", "--on={b}", "{l}", "{{s}", "{p}", "{s}",
        ]);
        let input = "s, n int, f float, b bool, l list, p path";
        let argv = Argv::parse(&run, Some("<{s}>{p}"), Some(input), false).expect("an argv");
        let arguments = json!({"s": "{n}$(ls)\n", "n": 5.0, "f": 1.50, "b": true, "l": ["{s}", "", "c"], "p": "a/b"});
        let filled = argv.fill(&object(arguments), full).expect("arguments");
        let sentence = "{n}$(ls)\n";
        let expected = [
            "x",
            "{n}$(ls)\n 5",
            "1.5",
            "--on=true",
            "{s}",
            "",
            "c",
            "{s}",
            "/full/a/b",
            sentence,
        ]
        .map(str::to_owned);
        assert_eq!(
            filled,
            Invocation {
                argv: expected.to_vec(),
                stdin: Some("<{n}$(ls)\n>/full/a/b".to_owned())
            }
        );
    }

    #[test]
    fn what_does_not_fit_is_refused_with_words_for_the_model() {
        let run = strings(&["x", "{s}{p}", "{n}", "{l}", "{b}"]);
        let argv = Argv::parse(&run, None, Some("s, n int, l list, p path, b bool"), false)
            .expect("an argv");
        let good = json!({"s": "a", "n": 1, "l": ["a"], "p": "a", "b": false});
        assert!(argv.fill(&object(good.clone()), full).is_ok());
        for (name, value, words) in [
            (
                "more",
                json!("x"),
                "There is no argument more. The arguments are: s, n, l, p, b.",
            ),
            ("s", json!(5), "s must be of the type string"),
            ("s", json!(null), "s must be of the type string"),
            ("s", json!(["a"]), "s must be of the type string"),
            ("s", json!("a\0b"), "s has a NUL"),
            ("s", json!("-a"), "because s and p begins with “-”"),
            ("n", json!("1"), "n must be of the type integer"),
            ("n", json!(1.5), "n must be of the type integer"),
            ("n", json!(1e300), "n must be of the type integer"),
            ("n", json!(-1), "because n begins with “-”"),
            ("l", json!([]), "l is an empty list"),
            ("l", json!("a"), "l must be a list of strings"),
            ("l", json!(["a", 1]), "l must be a list of strings"),
            ("l", json!(["a", "-rf"]), "because l begins with “-”"),
            ("l", json!(["a", "\0"]), "l has a NUL"),
            ("p", json!(1), "p must be of the type path"),
            ("p", json!("\0"), "p has a NUL"),
            ("b", json!("true"), "b must be of the type boolean"),
        ] {
            let mut arguments = object(good.clone());
            arguments.insert(name.to_owned(), value.clone());
            let error = argv.fill(&arguments, full).expect_err(name);
            assert!(
                error.contains(words) && error.ends_with('.'),
                "{name} {value}: {error}"
            );
        }
        let mut arguments = object(good.clone());
        arguments.remove("p");
        assert_eq!(
            argv.fill(&arguments, full),
            Err("The argument p is missing.".to_owned())
        );
        let refuses = |_: &str| Err("is outside of /x".to_owned());
        assert_eq!(
            argv.fill(&object(good), refuses),
            Err("The argument p is outside of /x.".to_owned())
        );
    }

    #[test]
    fn a_command_may_say_that_arguments_begin_with_a_dash() {
        for (element, value, is_taken) in [
            ("{a}", "-5", false),
            ("-x={a}", "-5", true),
            (" {a}", "-5", true),
            ("{a}-", "", false),
            ("{a}-", "a", true),
        ] {
            for dashes in [false, true] {
                let argv =
                    Argv::parse(&strings(&["x", element]), None, None, dashes).expect("an argv");
                let filled = argv.fill(&object(json!({"a": value})), full);
                assert_eq!(
                    filled.is_ok(),
                    is_taken || dashes,
                    "{element} {value:?}: {filled:?}"
                );
            }
        }
    }

    /// What may stand in a configured element, and what a model may write to get out of it.
    const PARTS: [&str; 13] = [
        "{a}", "{b}", "{a}", "{{", "}", "{", "-", "--x=", "=", " ", "ls", "é", "\n",
    ];
    const HOSTILE: [&str; 20] = [
        "{a}", "{b}", "{{", "-", "--", "-rf", "=", " ", "\n", "\t", "'", "\"", "\\", "$(id)",
        "`id`", ";", "|", "*", "é", "\u{202e}",
    ];

    fn hostile() -> impl Strategy<Value = String> {
        let parts = prop::collection::vec(prop::sample::select(&HOSTILE[..]), 0..5)
            .prop_map(|parts| parts.concat());
        prop_oneof![3 => parts, 1 => "[^\u{0}\u{1}]{0,6}"]
    }

    proptest! {
        /// The argv has the elements of `run`, each with what it has there, whatever the arguments hold.
        #[test]
        fn arguments_stay_in_their_places(
            run in prop::collection::vec(prop::collection::vec(prop::sample::select(&PARTS[..]), 0..4), 0..4),
            values in (hostile(), hostile()),
            list in prop::collection::vec(hostile(), 1..4),
            dashes in any::<bool>(),
        ) {
            let mut run: Vec<String> = run.into_iter().map(|parts| parts.concat()).collect();
            run.insert(0, "x".to_owned());
            run.extend(["{a}{b}", "{l}", "end"].map(str::to_owned));
            let Ok(argv) = Argv::parse(&run, None, Some("a, b, l list"), dashes) else { return Ok(()) };
            let with = |a: &str, b: &str, list: &[String]| argv.fill(&object(json!({"a": a, "b": b, "l": list})), full);
            let marked = with("\u{1}a", "\u{1}b", &["\u{1}l".to_owned()]).expect("marks that are no options").argv;
            prop_assert_eq!(marked.len(), run.len());
            let Ok(filled) = with(&values.0, &values.1, &list) else {
                prop_assert!(!dashes);
                return Ok(());
            };
            let (before, after) = (run.len() - 2, list.len());
            prop_assert_eq!(&filled.argv[before..], &[&list[..], &["end".to_owned()]].concat());
            prop_assert_eq!(filled.argv.len(), before + after + 1);
            for (at, text) in filled.argv[..before].iter().enumerate() {
                let expected = marked[at].replace("\u{1}a", &values.0).replace("\u{1}b", &values.1);
                prop_assert_eq!(text, &expected);
                let begin = run[at].split('{').next().unwrap_or_default();
                prop_assert!(text.starts_with(begin), "{:?} became {:?}", run[at], text);
            }
            for (text, at) in filled.argv.iter().zip((0..before).chain(std::iter::repeat_n(before, after))) {
                prop_assert!(dashes || !text.starts_with('-') || run[at].starts_with('-'), "{:?} became {:?}", run[at], text);
            }
        }
    }
}
