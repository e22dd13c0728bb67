//! The argv of a command that a model may call, and how the model's arguments are put into it (pure).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::text::number::integer_text;
use crate::text::short_form::{self, ARGUMENT_NAME, FieldKind, ShortField, is_argument_name};

/// A command with placeholders for the model's arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Argv {
    /// The first is the program, which has no placeholders.
    pub run: Vec<String>,
    pub stdin: Option<String>,
    /// What the model may or must give, as arguments. Each parameter has a placeholder.
    pub parameters: Vec<ShortField>,
    /// Whether an argument may make an element begin with `-`.
    pub dashes: bool,
}

/// A fault of a command as the configuration has it.
#[derive(Debug)]
pub struct ArgvError {
    /// The key that is wrong: `run` or `input`.
    pub key: &'static str,
    pub reason: String,
}

impl ArgvError {
    fn run(reason: String) -> ArgvError {
        ArgvError { key: "run", reason }
    }

    fn input(reason: String) -> ArgvError {
        let key = "input";
        ArgvError { key, reason }
    }
}

/// A command with all its arguments, ready to run.
#[derive(Debug, PartialEq, Eq)]
pub struct Invocation {
    pub argv: Vec<String>,
    pub stdin: Option<String>,
}

impl Argv {
    /// Checks a command as the configuration has it. Without parameters, each placeholder becomes one, and is text.
    pub fn complete(&mut self) -> Result<(), ArgvError> {
        if self.parameters.is_empty() {
            self.parameters = self.untyped_parameters()?;
        }
        self.check_elements()?;
        self.check_parameters()?;
        self.check_optional()
    }

    /// Returns a parameter for every placeholder; each is text.
    fn untyped_parameters(&self) -> Result<Vec<ShortField>, ArgvError> {
        let mut parameters: Vec<ShortField> = Vec::new();
        for text in self.run.iter().chain(&self.stdin) {
            for (_, name) in in_braces(text) {
                if is_argument_name(name) {
                    if !parameters.iter().any(|field| field.name == name) {
                        parameters.push(ShortField::text(name));
                    }
                } else if is_like_a_name(name) {
                    return Err(ArgvError::run(format!(
                        "the name in “{{{name}}}” must have the form {ARGUMENT_NAME}; with input, only what it names is replaced"
                    )));
                }
            }
        }
        Ok(parameters)
    }

    /// Returns the parameters in single braces, each with its place. Any other brace means itself.
    fn placeholders<'t>(&self, text: &'t str) -> Vec<(usize, &'t str)> {
        let mut places = in_braces(text);
        places.retain(|(_, name)| self.has_parameter(name));
        places
    }

    /// Returns the parameter whose placeholder is the whole element.
    fn whole_parameter(&self, element: &str) -> Option<&ShortField> {
        let mut parameters = self.parameters.iter();
        parameters.find(|field| element == whole(&field.name))
    }

    /// Returns the first parameter of an element whose argument may be missing, so that the element is left out.
    fn optional_parameter<'t>(&self, element: &'t str) -> Option<&'t str> {
        let may_be_missing = |name: &str| {
            let mut parameters = self.parameters.iter();
            parameters
                .any(|field| field.name == name && field.is_optional && field.default.is_none())
        };
        let mut placeholders = self.placeholders(element).into_iter();
        placeholders.find_map(|(_, name)| may_be_missing(name).then_some(name))
    }

    fn has_parameter(&self, name: &str) -> bool {
        self.parameters.iter().any(|field| field.name == name)
    }

    /// Refuses elements in which the model could write a program or an option.
    fn check_elements(&self) -> Result<(), ArgvError> {
        for (index, text) in self.run.iter().enumerate() {
            let placeholders = self.placeholders(text);
            let Some((start, _)) = placeholders.first() else {
                continue;
            };
            if index == 0 {
                return Err(ArgvError::run(
                    "the program cannot be a placeholder".to_owned(),
                ));
            }
            if text.starts_with('-') && !text[..*start].contains('=') {
                return Err(ArgvError::run(format!(
                    "“{text}” is an option: a placeholder in it must follow “=”"
                )));
            }
        }
        Ok(())
    }

    fn check_parameters(&self) -> Result<(), ArgvError> {
        for ShortField { name, kind, .. } in &self.parameters {
            let whole = whole(name);
            let mut is_used = false;
            for text in self.run.iter().chain(&self.stdin) {
                let placeholders = self.placeholders(text);
                if !placeholders.iter().any(|(_, used)| used == name) {
                    continue;
                }
                is_used = true;
                // A list becomes several elements, which neither a part of an element nor standard input can.
                let is_whole = *text == whole && self.stdin.as_ref() != Some(text);
                if *kind == FieldKind::List && !is_whole {
                    return Err(ArgvError::input(format!(
                        "the list “{name}” must be an argument of its own in run"
                    )));
                }
            }
            if !is_used {
                return Err(ArgvError::input(format!(
                    "“{name}” is never used: add {whole} to run or stdin"
                )));
            }
        }
        Ok(())
    }

    /// Refuses an option whose value may be missing: it would take the next element as its value.
    fn check_optional(&self) -> Result<(), ArgvError> {
        for (index, value) in self.run.iter().enumerate().skip(1) {
            let option = &self.run[index - 1];
            // Nothing after `--` is an option's value, and an option is none.
            if !option.starts_with('-') || option == "--" || value.starts_with('-') {
                continue;
            }
            if let Some(name) = self.optional_parameter(value) {
                let joined = format!("--{name}={value}");
                return Err(ArgvError::run(format!(
                    "“{value}”, which may be missing, cannot follow “{option}”, which would take the next argument as its value; write one argument, such as “{joined}”, or change their order"
                )));
            }
            let Some(field) = self.whole_parameter(value) else {
                continue;
            };
            // At the end there is no next element.
            let is_last = index + 1 == self.run.len();
            let has_value = option.contains('=');
            if field.kind == FieldKind::List && !is_last && !has_value {
                return Err(ArgvError::run(format!(
                    "the list “{value}”, which may be empty, cannot follow “{option}”, which would take the next argument as its value; move “{value}” before “{option}”, after “--”, or to the end"
                )));
            }
        }
        Ok(())
    }

    /// Returns the names of the parameters for which a model may write any text.
    pub fn text_parameters(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for field in &self.parameters {
            if takes_any_text(field) {
                names.push(field.name.as_str());
            }
        }
        names
    }

    /// Returns the parameters in an element, or in standard input, for which a model may write any text, each with its place.
    pub fn text_parts(&self, text: &str) -> Vec<(usize, &ShortField)> {
        self.parts(text, takes_any_text)
    }

    /// Whether the model may choose which path a text names.
    pub fn has_chosen_path(&self, text: &str) -> bool {
        let may_name_one =
            |field: &ShortField| takes_any_text(field) || field.kind == FieldKind::Path;
        !self.parts(text, may_name_one).is_empty()
    }

    fn parts(
        &self,
        text: &str,
        is_meant: impl Fn(&ShortField) -> bool,
    ) -> Vec<(usize, &ShortField)> {
        let mut parts = Vec::new();
        for (start, name) in self.placeholders(text) {
            let mut parameters = self.parameters.iter();
            if let Some(field) = parameters.find(|field| field.name == name && is_meant(field)) {
                parts.push((start, field));
            }
        }
        parts
    }

    /// Returns the names of the parameters that are paths of files.
    pub fn paths(&self) -> Vec<&str> {
        let parameters = self.parameters.iter();
        let paths = parameters.filter(|field| field.kind == FieldKind::Path);
        paths.map(|field| field.name.as_str()).collect()
    }

    /// Whether a parameter is the path of a file.
    pub fn has_paths(&self) -> bool {
        let mut parameters = self.parameters.iter();
        parameters.any(|field| field.kind == FieldKind::Path)
    }

    /// Returns the JSON Schema of the parameters.
    pub fn schema(&self) -> Value {
        short_form::schema_of(&self.parameters)
    }

    /// Returns the command with these arguments. An element whose argument is missing is left out. `resolve` gives the absolute
    /// path for an argument of type `path`. An error says to the model why the arguments are refused.
    pub fn fill(
        &self,
        arguments: &Map<String, Value>,
        resolve: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Invocation, String> {
        for name in arguments.keys() {
            if !self.has_parameter(name) {
                return Err(format!("There is no argument {name}."));
            }
        }
        let texts = self.texts(arguments, resolve)?;
        let mut argv = Vec::new();
        for text in &self.run {
            let Some(filled) = self.fill_element(text, &texts) else {
                continue;
            };
            if !self.dashes && self.gives_option(text, &filled, arguments) {
                return Err(format!(
                    "The command would see an option, because {text} would begin with “-”."
                ));
            }
            argv.extend(filled);
        }
        let mut stdin = None;
        if let Some(text) = &self.stdin {
            stdin = self.fill_element(text, &texts).map(|parts| parts.concat());
        }
        Ok(Invocation { argv, stdin })
    }

    /// Whether the model's arguments make an element an option that is none as the user wrote it.
    fn gives_option(
        &self,
        element: &str,
        filled: &[String],
        arguments: &Map<String, Value>,
    ) -> bool {
        // The user wrote the defaults.
        let is_given =
            |(_, name): &(usize, &str)| arguments.get(*name).is_some_and(|it| !it.is_null());
        let is_option = filled.iter().any(|text| text.starts_with('-'));
        is_option && !element.starts_with('-') && self.placeholders(element).iter().any(is_given)
    }

    /// Returns the texts of each argument that is given or has a default.
    fn texts(
        &self,
        arguments: &Map<String, Value>,
        resolve: impl Fn(&str) -> Result<String, String>,
    ) -> Result<BTreeMap<&str, Vec<String>>, String> {
        let mut texts = BTreeMap::new();
        for field in &self.parameters {
            let name = &field.name;
            let given = arguments.get(name).filter(|value| !value.is_null());
            if let Some(value) = given.or(field.default.as_ref()) {
                let checked = checked_texts(&field.kind, value, &resolve)
                    .map_err(|reason| format!("The argument {name} {reason}."))?;
                texts.insert(name.as_str(), checked);
            } else if !field.is_optional {
                return Err(format!("The argument {name} is missing."));
            }
        }
        Ok(texts)
    }

    /// Returns an element with arguments in their places. A list is an element for each item. `None` if an argument is missing.
    fn fill_element(&self, text: &str, texts: &BTreeMap<&str, Vec<String>>) -> Option<Vec<String>> {
        let mut filled = String::new();
        let mut from = 0;
        for (start, name) in self.placeholders(text) {
            let values = texts.get(name)?;
            let whole = whole(name);
            if text == whole {
                return Some(values.clone());
            }
            filled.push_str(&text[from..start]);
            filled.push_str(&values.concat());
            from = start + whole.len();
        }
        filled.push_str(&text[from..]);
        Some(vec![filled])
    }
}

/// Whether a model may write any text for a parameter.
fn takes_any_text(field: &ShortField) -> bool {
    matches!(field.kind, FieldKind::Text | FieldKind::List)
}

/// Finds what is in single braces, each with its place. Two braces of one kind in a row mean one brace.
fn in_braces(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (start, _) in text.match_indices('{') {
        if let Some((name, after)) = text[start + 1..].split_once('}')
            && !name.contains('{')
            && !text[..start].ends_with('{')
            && !after.starts_with('}')
        {
            found.push((start, name));
        }
    }
    found
}

/// Returns an element that is this argument and nothing else.
fn whole(name: &str) -> String {
    format!("{{{name}}}")
}

/// Whether somebody may have meant a name: it begins with a letter, and has letters, digits, `_` and `-` only.
fn is_like_a_name(name: &str) -> bool {
    let is_allowed = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    let begins_well = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    begins_well && name.chars().all(is_allowed)
}

/// Returns the texts of an argument: one, unless it is a list. An error continues a sentence that begins with the argument's
/// name.
fn checked_texts(
    kind: &FieldKind,
    value: &Value,
    resolve: impl Fn(&str) -> Result<String, String>,
) -> Result<Vec<String>, String> {
    let Some(mut texts) = texts_of(kind, value) else {
        return Err(format!("must be {kind}"));
    };
    if texts.iter().any(|text| text.contains('\0')) {
        return Err("has a NUL character, which no command can get".to_owned());
    }
    if *kind == FieldKind::Path {
        for path in &mut texts {
            *path = resolve(path)?;
        }
    }
    Ok(texts)
}

/// Returns the texts of a value, if it is of this kind.
fn texts_of(kind: &FieldKind, value: &Value) -> Option<Vec<String>> {
    let text = match (kind, value) {
        (FieldKind::List, Value::Array(_)) => return Vec::deserialize(value).ok(),
        (FieldKind::Text | FieldKind::Path, Value::String(text)) => text.clone(),
        (FieldKind::Choice(values), Value::String(text)) if values.contains(text) => text.clone(),
        (FieldKind::Integer, Value::Number(number)) => integer_text(number)?,
        (FieldKind::Number, Value::Number(number)) => number.to_string(),
        (FieldKind::Boolean, Value::Bool(is_true)) => is_true.to_string(),
        _ => return None,
    };
    Some(vec![text])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::text::table::rows;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    fn full(path: &str) -> Result<String, String> {
        Ok(format!("/full/{path}"))
    }

    impl Argv {
        fn parse(
            run: &[String],
            stdin: Option<&str>,
            input: Option<&str>,
            dashes: bool,
        ) -> Result<Argv, ArgvError> {
            let mut argv = Argv {
                run: run.to_vec(),
                stdin: stdin.map(str::to_owned),
                parameters: Vec::new(),
                dashes,
            };
            if let Some(input) = input {
                let parameters = short_form::parse(input, short_form::FormPurpose::Arguments);
                argv.parameters = parameters.map_err(ArgvError::input)?;
            }
            argv.complete()?;
            Ok(argv)
        }
    }

    fn parse(run: &[&str], input: Option<&str>) -> Result<Argv, ArgvError> {
        Argv::parse(&strings(run), None, input, false)
    }

    fn names_of(argv: &Argv) -> String {
        let names: Vec<&str> = argv.parameters.iter().map(|field| &*field.name).collect();
        names.join(",")
    }

    #[test]
    fn a_name_in_single_braces_is_a_placeholder_and_all_else_is_literal() {
        for [text, names, filled] in rows(
            r#"
            plain            |           | plain
            {a}x{_b}         | a,_b      | <a>x<_b>
            {a}{b-1}         | a,b-1     | <a><b-1>
            {{a}}            |           | {{a}}
            {{a}             |           | {{a}
            {a}}             |           | {a}}
            {{{a}}}          |           | {{{a}}}
            {{{{             |           | {{{{
            {}{1a}{a b}{é}   |           | {}{1a}{a b}{é}
            {a{b}            | b         | {a<b>
            a}{              |           | a}{
            @{u} {{.Names}}  | u         | @<u> {{.Names}}
            %{http_code}     | http_code | %<http_code>"#,
        ) {
            let argv = parse(&["x", text], None).expect(text);
            assert_eq!(names_of(&argv), names, "{text}");
            let mut arguments = Map::new();
            for field in &argv.parameters {
                arguments.insert(field.name.clone(), format!("<{}>", field.name).into());
            }
            let called = argv.fill(&arguments, full).expect(text);
            assert_eq!(called.argv[1], filled);
        }
        for text in ["{Dir}", "a {maxCount}", "{A-b}"] {
            let error = parse(&["x", text], None).expect_err(text);
            let is_named = error.key == "run" && error.reason.contains("must have the form");
            assert!(is_named, "{error:?}");
        }
        // With `input`, all that it does not name is literal.
        let argv = parse(&["x", "{Dir} {c} {{a}} {a}"], Some("a")).expect("an argv");
        let called = argv.fill(&object(json!({"a": "1"})), full);
        assert_eq!(called.expect("arguments").argv[1], "{Dir} {c} {{a}} 1");
    }

    #[test]
    fn a_missing_argument_is_left_out_has_its_default_or_is_an_error() {
        let run = "rg|--max={n}|--type={type}|{words}|{files}|--|{more}";
        let run = Vec::from_iter(run.split('|'));
        let input = "n int = 20, type? md|txt, words, files list = a, more?";
        let argv = parse(&run, Some(input)).expect("an argv");
        let table = r#"
            {"words": "w"} | rg --max=20 w a --
            {"words": "w", "n": null, "type": null, "more": null} | rg --max=20 w a --
            {"words": "w", "n": 5, "type": "md", "files": ["b", "c"], "more": "d"} | rg --max=5 --type=md w b c -- d
            {"words": "w", "files": []} | rg --max=20 w --
            {} | The argument words is missing.
            {"words": null} | The argument words is missing.
            {"words": "w", "type": "rs"} | The argument type must be one of md, txt."#;
        for [arguments, expected] in rows(table) {
            let arguments = serde_json::from_str(arguments).expect(arguments);
            let filled = argv
                .fill(&arguments, full)
                .map(|called| called.argv.join(" "));
            assert_eq!(filled.unwrap_or_else(|error| error), expected);
        }
        let stdin = Argv::parse(&strings(&["x"]), Some("<{a}>"), Some("a?"), false);
        let called = stdin.expect("an argv").fill(&Map::new(), full);
        assert_eq!(called.expect("arguments").stdin, None);
        let negative = parse(&["x", "{n}"], Some("n int = -5")).expect("an argv");
        let called = negative.fill(&Map::new(), full).expect("a default");
        assert_eq!(called.argv, ["x", "-5"]);
        let error = negative.fill(&object(json!({"n": -5})), full);
        assert!(error.is_err(), "the model gives no option");
    }

    #[test]
    fn a_value_directly_after_an_option_is_refused_if_it_may_be_missing() {
        for [run, input, refused] in rows(
            "
            -n {n}                     | n? int              | {n}
            -n {n}                     | n? int = 5          | -
            -n {n}                     | n int = 5           | -
            -n {n}                     | n int               | -
            --since {n}␠days␠ago -- x  | n? int              | {n} days ago
            --since {n}␠days␠ago -- x  | n int               | -
            -C {a}/{b} z               | a, b?               | {a}/{b}
            -C {a}/{b} z               | a?, b               | {a}/{b}
            -C {a}/{b} z               | a = x, b? = y       | -
            -C {a}/{b}                 | a, b?               | {a}/{b}
            -C /home/{a} z             | a?                  | /home/{a}
            -C {{a}} {a}               | a?                  | -
            -v --since={a} z           | a?                  | -
            -- {a}/{b} z               | a, b?               | -
            show {a}/{b} z             | a, b?               | -
            {a}/{b} -C z               | a, b?               | -",
        ) {
            let words = run.split(' ').map(|word| word.replace('␠', " "));
            let run = Vec::from_iter(std::iter::once("x".to_owned()).chain(words));
            let found = Argv::parse(&run, None, Some(input), false);
            let reason = found.err().map_or(String::new(), |error| error.reason);
            let value = reason
                .strip_prefix('“')
                .and_then(|rest| rest.split_once('”'));
            let value = value.map_or("", |(value, _)| value);
            assert_eq!(value, refused, "{run:?} {input}");
            let is_told = reason.contains("which may be missing, cannot follow “-");
            assert_eq!(is_told, !refused.is_empty(), "{reason}");
        }
    }

    #[test]
    fn a_list_directly_after_an_option_is_refused_unless_it_is_the_end() {
        for [run, input, refused] in rows(
            "
            -e {l} -- file   | l list     | yes
            --like {l} end   | l list     | yes
            -e {l} {m}       | l list, m  | yes
            -e {l} end       | l list = x | yes
            -e {l} end       | l? list    | yes
            {l} -e end       | l list     | no
            -- {l} end       | l list     | no
            --like=x {l} end | l list     | no
            -n100 {l}        | l list     | no
            -n100 {l}        | l? list    | yes
            -e {l} end       | l          | no",
        ) {
            let run = Vec::from_iter(std::iter::once("x").chain(run.split(' ')));
            let found = parse(&run, Some(input));
            let is_refused = match &found {
                Ok(_) => false,
                Err(error) => {
                    assert!(
                        error.key == "run" && error.reason.contains("“{l}”"),
                        "{error:?}"
                    );
                    true
                }
            };
            assert_eq!(is_refused, refused == "yes", "{run:?} {input}");
        }
    }

    #[test]
    fn a_placeholder_that_lets_the_model_write_a_program_or_option_is_refused() {
        for (run, words) in [
            (&["{a}"][..], "the program cannot be"),
            (&["/bin/{a}"], "the program cannot be"),
            (&["ls", "-{a}"], "must follow “=”"),
            (&["ls", "--{a}=b"], "must follow “=”"),
            (&["ls", "-I{a}=b"], "must follow “=”"),
        ] {
            let error = Argv::parse(&strings(run), None, None, true).expect_err(run[run.len() - 1]);
            assert!(
                error.key == "run" && error.reason.contains(words),
                "{run:?}: {error:?}"
            );
        }
        for run in [
            &["ls", "--file={a}"][..],
            &["ls", "-I=x{a}"],
            &["sh", "-c", "{a}"],
            &["bash", "-x", "deploy.sh", "-p", "{a}"],
            &["node", "--no-warnings", "cli.js", "-e", "{a}"],
            &["python3", "-u", "tool.py", "-c", "{a}"],
            &["grep", "-e", "{a}"],
        ] {
            assert!(
                Argv::parse(&strings(run), None, None, false).is_ok(),
                "{run:?}"
            );
        }
    }

    #[test]
    fn only_arguments_that_are_texts_or_lists_count_as_free() {
        let kinds = "a, b str, c list, d? , e = x, f int, g float, h bool, i x|y, j path, k? list";
        let run = "x {a} {b} {c} {d} {e} {f} {g} {h} {i} {j} {k}";
        let run = Vec::from_iter(run.split(' '));
        let argv = parse(&run, Some(kinds)).expect("an argv");
        assert_eq!(argv.text_parameters(), ["a", "b", "c", "d", "e", "k"]);
        assert_eq!(
            parse(&["x", "{a}"], None)
                .expect("an argv")
                .text_parameters(),
            ["a"]
        );
        let stdin = Argv::parse(&strings(&["x"]), Some("{a}"), None, false);
        assert_eq!(stdin.expect("an argv").text_parameters(), ["a"]);
    }

    #[test]
    fn an_argument_without_a_place_or_with_an_unsuitable_one_is_refused() {
        for [run, stdin, input, words] in rows(
            r#"
            {a}    |     | a, b int  | “b” is never used
            {a}    | {b} | b, c      | “c” is never used
            {{a}}  |     | a         | “a” is never used
            x{a}   |     | a list    | must be an argument of its own
            {a}{a} |     | a list    | must be an argument of its own
            {a}    | {a} | a list    | must be an argument of its own
            {a}    |     | [a]       | is not the name
            {Dir}  |     | Dir: which | “Dir” is not the name of an argument, which has the form [a-z_]
            {größe} |    | größe     | “größe” is not the name of an argument
            {1a}   |     | 1a int    | “1a” is not the name of an argument
            {-a}   |     | -a        | “-a” is not the name of an argument
            {_a}   |     | _a, _A    | “_A” is not the name of an argument
            {a}    |     | a integer | str, int, float, bool, list, path
            x      |     |           | it is empty"#,
        ) {
            let stdin = Some(stdin).filter(|stdin| !stdin.is_empty());
            let run = strings(&["ls", run]);
            let error = Argv::parse(&run, stdin, Some(input), false).expect_err(input);
            let is_named = error.key == "input" && error.reason.contains(words);
            assert!(is_named, "{run:?} {input:?}: {error:?}");
        }
    }

    #[test]
    fn arguments_go_into_their_places_as_text() {
        let run = strings(&["x", "{s} {n}", "{f}", "--on={b}", "{l}", "{p}", "{s}"]);
        let input = "s, n int, f float, b bool, l list, p path";
        let argv = Argv::parse(&run, Some("<{s}>{p}"), Some(input), false).expect("an argv");
        let arguments = json!({"s": "{n}$(ls)\n", "n": 5.0, "f": 1.50, "b": true, "l": ["{s}", "", "c"], "p": "a/b"});
        let filled = argv.fill(&object(arguments), full).expect("arguments");
        let expected = "x|{n}$(ls)\n 5|1.5|--on=true|{s}||c|/full/a/b|{n}$(ls)\n";
        assert_eq!(filled.argv.join("|"), expected);
        assert_eq!(filled.stdin.as_deref(), Some("<{n}$(ls)\n>/full/a/b"));
    }

    #[test]
    fn an_argument_is_an_integer_by_its_value_whatever_its_notation() {
        let run = strings(&["x", " {n}"]);
        let argv = Argv::parse(&run, None, Some("n int"), false).expect("argv");
        let long = "1".repeat(400);
        for [number, text] in rows(&format!(
            "
            5.00   | 5
            -5.0e0 | -5
            1e2    | 100
            -0     | -0
            {long} | {long}
            12345678901234567890.0 | 12345678901234567890
            1.50   | refused
            1e-2   | refused
            1e999999999 | refused"
        )) {
            let arguments = serde_json::from_str(&format!("{{\"n\":{number}}}")).expect("JSON");
            let filled = argv.fill(&arguments, full);
            let found = filled.map_or("refused".to_owned(), |filled| {
                filled.argv.join("").replace("x ", "")
            });
            assert_eq!(found, text, "{number}");

            // The user's default is one by the same rule.
            let with_default = Argv::parse(&run, None, Some(&format!("n int = {number}")), false);
            let filled = with_default.map(|argv| argv.fill(&Map::new(), full).expect(number));
            let found = filled.map_or("refused".to_owned(), |filled| {
                filled.argv.join("").replace("x ", "")
            });
            assert_eq!(found, text, "default {number}");
        }
    }

    #[test]
    fn an_invalid_argument_is_refused_with_words_for_the_model() {
        let run = strings(&["x", "{s}{p}", "{n}", "{l}", "{b}"]);
        let argv = Argv::parse(&run, None, Some("s, n int, l list, p path, b bool"), false)
            .expect("an argv");
        let good = json!({"s": "a", "n": 1, "l": ["a"], "p": "a", "b": false});
        assert!(argv.fill(&object(good.clone()), full).is_ok());
        for (name, value, words) in [
            ("more", json!("x"), "There is no argument more."),
            ("s", json!(5), "s must be a string"),
            ("s", json!(null), "s is missing"),
            ("s", json!(["a"]), "s must be a string"),
            ("s", json!("a\0b"), "s has a NUL"),
            ("s", json!("-a"), "because {s}{p} would begin with “-”"),
            ("n", json!("1"), "n must be an integer"),
            ("n", json!(1.5), "n must be an integer"),
            ("n", json!(1e300), "n must be an integer"),
            ("n", json!(-1), "because {n} would begin with “-”"),
            ("l", json!("a"), "l must be a list of strings"),
            ("l", json!(["a", 1]), "l must be a list of strings"),
            ("l", json!(["a", "-rf"]), "because {l} would begin with “-”"),
            ("l", json!(["a", "\0"]), "l has a NUL"),
            ("p", json!(1), "p must be a string"),
            ("p", json!("\0"), "p has a NUL"),
            ("b", json!("true"), "b must be true or false"),
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
    fn an_argument_must_not_begin_an_element_with_a_dash_unless_dashes_are_allowed() {
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

    /// What may be in a configured element, and what a model may write to get out of it.
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
        fn hostile_arguments_stay_in_their_places(
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
