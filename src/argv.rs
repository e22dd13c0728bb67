//! The argv of a command that a model may call: where the model's arguments go in it, and which ones are taken (pure).

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value, json};

use crate::shape;

/// Programs that run what follows `-c` or `-e` as code; so do all whose name begins with `python`.
const RUN_CODE: [&str; 8] = ["sh", "bash", "zsh", "dash", "fish", "perl", "ruby", "node"];

/// An argv with places for arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Argv {
    /// The first is the program, which has no places.
    elements: Vec<Element>,
    /// What the command gets on its standard input.
    stdin: Option<Element>,
    /// The arguments as the short form of a schema has them. All are required.
    inputs: Map<String, Value>,
    /// An argument may make an element begin with `-`.
    dashes: bool,
}

/// Text, then places for arguments, each with the text after it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Element {
    begin: String,
    places: Vec<(String, String)>,
}

/// A command with all its arguments, ready to run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Invocation {
    pub(crate) argv: Vec<String>,
    pub(crate) stdin: Option<String>,
}

impl Argv {
    /// Reads a command as it is configured; without `input` every argument is text.
    ///
    /// # Errors
    /// What is wrong, after the name of its key.
    pub(crate) fn parse(
        run: &[String],
        stdin: Option<&str>,
        input: Option<&str>,
        dashes: bool,
    ) -> Result<Argv, String> {
        let elements: Vec<Element> = run.iter().map(|element| Element::parse(element)).collect();
        let stdin = stdin.map(Element::parse);
        if elements
            .first()
            .is_none_or(|program| !program.places.is_empty())
        {
            return Err("run: the program cannot be an argument".to_owned());
        }
        let wrong = |element: &String, why: &str| Err(format!("run: “{element}” {why}"));
        // How many of the next elements may be code.
        let (mut runs_code, mut code_follows) = (false, 0_usize);
        for (element, parsed) in run.iter().zip(&elements) {
            let is_option = parsed.begin.starts_with('-');
            if element.contains('\0') {
                return Err("run: contains a NUL byte, which no program can be given".to_owned());
            } else if parsed.places.is_empty() {
                code_follows = match code_before(element) {
                    0 if is_option => code_follows,
                    0 => code_follows.saturating_sub(1),
                    count if runs_code => count,
                    _ => 0,
                };
                runs_code |= is_interpreter(element);
            } else if code_follows > 0 || (runs_code && has_code(&parsed.begin)) {
                return wrong(element, "is code, in which the model may write nothing");
            } else if is_option && !parsed.begin.contains('=') {
                return wrong(
                    element,
                    "is an option, in which an argument may only come after “=”",
                );
            }
        }
        let places = || {
            elements
                .iter()
                .chain(&stdin)
                .flat_map(|element| &element.places)
        };
        let inputs = match input {
            Some(input) => shape::arguments(input).map_err(|reason| format!("input: {reason}"))?,
            None => places()
                .map(|(name, _)| (name.clone(), json!({"type": "string"})))
                .collect(),
        };
        if let Some((name, _)) = places().find(|(name, _)| !inputs.contains_key(name)) {
            return Err(format!("input: does not name {{{name}}}"));
        }
        if let Some(name) = inputs
            .keys()
            .find(|name| !places().any(|(place, _)| place == *name))
        {
            return Err(format!(
                "input: nothing uses “{name}”, which would be {{{name}}} in run or stdin"
            ));
        }
        let is_list = |(name, _): &&(String, String)| inputs[name]["type"] == "array";
        let parts = elements
            .iter()
            .filter(|element| element.whole().is_none())
            .chain(&stdin);
        if let Some((name, _)) = parts.flat_map(|element| &element.places).find(is_list) {
            return Err(format!(
                "input: the list “{name}” must be a whole element of run"
            ));
        }
        Ok(Argv {
            elements,
            stdin,
            inputs,
            dashes,
        })
    }

    /// The JSON Schema of the arguments.
    pub(crate) fn schema(&self) -> Value {
        let mut inputs = self.inputs.clone();
        for input in inputs.values_mut().filter(|input| input["type"] == "path") {
            input["type"] = "string".into();
        }
        shape::object_of(inputs)
    }

    /// The command with these arguments. `resolve` gives the full path for an argument of type `path`.
    ///
    /// # Errors
    /// Why they are refused, in words for the model.
    pub(crate) fn fill(
        &self,
        arguments: &Map<String, Value>,
        resolve: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Invocation, String> {
        if let Some(name) = arguments
            .keys()
            .find(|name| !self.inputs.contains_key(*name))
        {
            let names: Vec<&str> = self.inputs.keys().map(String::as_str).collect();
            return Err(format!(
                "There is no argument {name}. The arguments are: {}.",
                names.join(", ")
            ));
        }
        let mut texts = BTreeMap::new();
        for (name, input) in &self.inputs {
            let wrong = |why: String| format!("The argument {name} {why}.");
            let value = arguments
                .get(name)
                .ok_or_else(|| wrong("is missing".to_owned()))?;
            let mut given = taken(&input["type"], value).map_err(wrong)?;
            if given.is_empty() {
                return Err(wrong("is an empty list".to_owned()));
            }
            if given.iter().any(|text| text.contains('\0')) {
                return Err(wrong(
                    "has a NUL character, which no command can get".to_owned(),
                ));
            }
            if input["type"] == "path" {
                given = given
                    .iter()
                    .map(|path| resolve(path))
                    .collect::<Result<_, _>>()
                    .map_err(wrong)?;
            }
            texts.insert(name.as_str(), given);
        }
        let mut argv = Vec::with_capacity(self.elements.len());
        for element in &self.elements {
            let filled = match element.whole() {
                Some(name) => texts[name].clone(),
                None => vec![element.filled(&texts)],
            };
            let may_be_options = self.dashes || element.begin.starts_with('-');
            if !may_be_options && filled.iter().any(|text| text.starts_with('-')) {
                let names: Vec<&str> = element
                    .places
                    .iter()
                    .map(|(name, _)| name.as_str())
                    .collect();
                return Err(format!(
                    "The command would see an option, because {} begins with “-”.",
                    names.join(" and ")
                ));
            }
            argv.extend(filled);
        }
        Ok(Invocation {
            argv,
            stdin: self.stdin.as_ref().map(|stdin| stdin.filled(&texts)),
        })
    }
}

impl Element {
    /// `{name}` is a place, `{{` is a brace, and any other brace stands for itself.
    fn parse(text: &str) -> Element {
        let mut element = Element {
            begin: String::new(),
            places: Vec::new(),
        };
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            element.push(before);
            if let Some((name, after)) = after.split_once('}').filter(|(name, _)| is_name(name)) {
                element.places.push((name.to_owned(), String::new()));
                rest = after;
            } else {
                element.push("{");
                rest = after.strip_prefix('{').unwrap_or(after);
            }
        }
        element.push(rest);
        element
    }

    fn push(&mut self, text: &str) {
        self.places
            .last_mut()
            .map_or(&mut self.begin, |(_, after)| after)
            .push_str(text);
    }

    /// The argument that is the whole element.
    fn whole(&self) -> Option<&str> {
        match &self.places[..] {
            [(name, after)] if self.begin.is_empty() && after.is_empty() => Some(name),
            _ => None,
        }
    }

    /// The text with arguments in their places; none of them is a list.
    fn filled(&self, texts: &BTreeMap<&str, Vec<String>>) -> String {
        let places = self
            .places
            .iter()
            .flat_map(|(name, after)| [texts[name.as_str()].concat(), after.clone()]);
        std::iter::once(self.begin.clone()).chain(places).collect()
    }
}

/// `[a-z_][a-z0-9_]*`
fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit();
    name.bytes().all(allowed)
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
}

fn is_interpreter(element: &str) -> bool {
    let name = element.rsplit('/').next().unwrap_or_default();
    RUN_CODE.contains(&name) || name.starts_with("python")
}

/// How many of the elements after an option may be code: one after `-c`, `-e` or `-E`, or after several letters that end
/// so; in `-co` and `-oc` the value of `-o` comes before the code.
fn code_before(element: &str) -> usize {
    let letters = element.strip_prefix('-').unwrap_or_default();
    let is_bundle = letters.bytes().all(|byte| byte.is_ascii_alphabetic());
    let values = letters.matches('o').count();
    match letters.trim_end_matches('o').ends_with(['c', 'e', 'E']) {
        true if is_bundle => 1 + values,
        _ => 0,
    }
}

/// Whether code may follow within an option, as in `-cprint(1)`.
fn has_code(option: &str) -> bool {
    let letters = option
        .strip_prefix('-')
        .filter(|letters| !letters.starts_with('-'));
    letters
        .and_then(|letters| letters.split('=').next())
        .is_some_and(|letters| letters.contains(['c', 'e', 'E']))
}

/// The texts of an argument: one, unless it is a list.
fn taken(kind: &Value, value: &Value) -> Result<Vec<String>, String> {
    // In JSON Schema, 5.0 is an integer.
    let whole = |number: &Number| number.to_string().trim_end_matches(".0").to_owned();
    let text = match (kind.as_str().unwrap_or_default(), value) {
        ("string" | "path", Value::String(text)) => text.clone(),
        ("integer", Value::Number(number)) if !whole(number).contains(['.', 'e', 'E']) => {
            whole(number)
        }
        ("number", Value::Number(number)) => number.to_string(),
        ("boolean", Value::Bool(is_true)) => is_true.to_string(),
        ("array", Value::Array(items)) if items.iter().all(Value::is_string) => {
            return Ok(items
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect());
        }
        ("array", _) => return Err("must be a list of strings".to_owned()),
        (kind, _) => return Err(format!("must be of the type {kind}")),
    };
    Ok(vec![text])
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
                .places
                .iter()
                .map(|(name, after)| (&**name, &**after))
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
            (&["sh", "-c", "{a}"], "is code"),
            (&["/bin/bash", "-lc", "ls {a}"], "is code"),
            (&["bash", "-x", "-c", "--", "{a}"], "is code"),
            (&["bash", "-co", "pipefail", "ls {a}"], "is code"),
            (&["bash", "-oc", "pipefail", "ls {a}"], "is code"),
            (&["perl", "-E", "say {a}"], "is code"),
            (&["python3", "-cx={a}"], "is code"),
            (&["perl", "-we=1;{a}"], "is code"),
            (&["sh", "a\0", "{a}"], "contains a NUL byte"),
            (&["zsh", "-ce", "{a}"], "is code"),
            (&["dash", "-c", "{a}"], "is code"),
            (&["fish", "-c", "{a}"], "is code"),
            (&["python3.12", "-Ic", "print({a})"], "is code"),
            (&["/usr/bin/perl", "-ne", "{a}"], "is code"),
            (&["node", "-e", "1", "-e", "{a}"], "is code"),
            (&["env", "-i", "ruby", "-e", "{a}"], "is code"),
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
            &["sh", "{a}"],
        ] {
            assert!(
                Argv::parse(&strings(run), None, None, false).is_ok(),
                "{run:?}"
            );
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
