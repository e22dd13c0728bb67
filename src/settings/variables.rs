//! Fills in the variables of the environment that a text names (pure).

use std::fmt;

use super::environment::Environment;
use crate::secret::Secret;

/// A text with its variables.
#[derive(Default)]
pub struct Filled {
    pub text: String,
    /// The variables with their values.
    pub values: Vec<(String, Secret)>,
    /// The variables that leave nothing but whitespace: by their value or their default.
    pub blank: Vec<String>,
    /// What stays in it although another program would fill it in.
    pub left: Vec<LeftAsItIs>,
}

/// A form that other programs, or a typing error, have for a variable, and that stays in a text. None has anything of the text
/// but a variable's name, because the rest may be a password with such characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftAsItIs {
    /// `$NAME`, of a variable that is set.
    WithoutBraces(String),
    /// `${NAME` of a variable that is set, or at the end of the text.
    Unclosed(Option<String>),
    /// A form of another program, without what it names.
    Foreign(&'static str),
}

impl LeftAsItIs {
    /// Whether it is a variable in a script, too, as arguments may be.
    pub fn is_usual_in_scripts(&self) -> bool {
        match self {
            LeftAsItIs::WithoutBraces(_) => true,
            LeftAsItIs::Unclosed(_) => false,
            LeftAsItIs::Foreign(form) => *form != FILE_FORM,
        }
    }
}

/// The end of a sentence that begins with the place of the text.
impl fmt::Display for LeftAsItIs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeftAsItIs::WithoutBraces(name) => write!(
                formatter,
                "${name} is passed as it stands; write ${{{name}}} for its value"
            ),
            LeftAsItIs::Unclosed(Some(name)) => write!(
                formatter,
                "${{{name} has no closing brace, so it is passed as it stands; write ${{{name}}} for its value"
            ),
            LeftAsItIs::Unclosed(None) => formatter.write_str(
                "${… has no closing brace, so it is passed as it stands; write ${NAME} for the value of a variable",
            ),
            LeftAsItIs::Foreign(form) => write!(
                formatter,
                "{form} is passed as it stands; only ${{NAME}}, ${{NAME:-default}}, ${{env:NAME}} and {{env:NAME}} are filled in"
            ),
        }
    }
}

/// How opencode has the text of a file put in.
const FILE_FORM: &str = "{file:…}";

/// Returns the text with the values of its variables, `${NAME}`, `${env:NAME}` or `${NAME:-default}`, in their places. opencode
/// writes `{env:NAME}`.
///
/// # Errors
///
/// A variable is not set, has another one within it, or only another program knows it. The error has no value and no default,
/// which may be a key.
pub fn fill(text: &str, environment: &Environment) -> Result<Filled, String> {
    let mut filled = Filled::default();
    let mut rest = text;
    while let Some((before, after)) = split_at_variable(rest)
        && let Some((variable, following)) = after.split_once('}')
    {
        filled.text.push_str(before);
        filled.note_others(before, environment);
        let variable = variable.strip_prefix("env:").unwrap_or(variable);
        // The brace that ends the inner one would end the outer one, and the rest would become part of the value.
        if variable.contains("${") {
            let shown = beginning_of_name(variable);
            return Err(format!(
                "a variable within another one is not filled in: ${{{shown}…"
            ));
        }
        let (name, default) = match variable.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (variable, None),
        };
        // VS Code and Cursor call it so.
        let own_name = if name == "userHome" { "HOME" } else { name };
        if let Some(value) = environment.text(own_name) {
            let value = value.map_err(|reason| format!("the variable {name} {reason}"))?;
            filled
                .values
                .push((own_name.to_owned(), Secret::new(value)));
            filled.put(name, value);
        } else if let Some(default) = default {
            filled.put(name, default);
        } else {
            return Err(fault_of_name(name));
        }
        rest = following;
    }
    filled.text.push_str(rest);
    filled.note_others(rest, environment);
    Ok(filled)
}

/// Returns what is before the next variable of a text, and what follows the brace that opens it.
fn split_at_variable(text: &str) -> Option<(&str, &str)> {
    let with_dollar = text.split_once("${");
    let named = text.match_indices("{env:").find(|(at, opening)| {
        let name = beginning_of_name(&text[at + opening.len()..]);
        let end = at + opening.len() + name.len();
        !name.is_empty() && text[end..].starts_with('}')
    });
    match (with_dollar, named) {
        // After a dollar it is the same variable.
        (Some((before, after)), Some((at, _))) if before.len() <= at => Some((before, after)),
        (_, Some((at, _))) => Some((&text[..at], &text[at + 1..])),
        (with_dollar, None) => with_dollar,
    }
}

impl Filled {
    /// Puts what a variable stands for at the end of the text.
    fn put(&mut self, name: &str, value: &str) {
        if value.trim().is_empty() {
            self.blank.push(name.to_owned());
        }
        self.text.push_str(value);
    }

    /// Notes the variables that a part of the text names as `$NAME`, each as a whole word, and those that others name in other
    /// forms. A password may have a dollar, too, so only those count that are set.
    fn note_others(&mut self, part: &str, environment: &Environment) {
        for (at, _) in part.match_indices('$') {
            let is_within_word =
                part[..at].ends_with(|c: char| c.is_alphanumeric() || "_$".contains(c));
            if !is_within_word
                && let Some(name) = variable_at_start(&part[at..])
                && environment.get_os(name).is_some()
            {
                self.left.push(LeftAsItIs::WithoutBraces(name.to_owned()));
            }
        }
        self.note_unclosed(part, environment);
        for (form, opening, closing) in [
            (FILE_FORM, "{file:", "}"),
            ("{{…}}", "{{", "}}"),
            ("{env:…}", "{env:", "}"),
            ("$(…)", "$(", ")"),
        ] {
            let begins_well = |inner: &str| match form {
                // Python has other things in such braces.
                FILE_FORM => inner.starts_with(['/', '~', '.']),
                _ => true,
            };
            let is_form = |inner: &str| begins_well(inner) && inner.contains(closing);
            let mut parts = part.split(opening).skip(1);
            if parts.any(is_form) {
                self.left.push(LeftAsItIs::Foreign(form));
            }
        }
    }

    /// Notes a variable whose brace is not closed.
    fn note_unclosed(&mut self, part: &str, environment: &Environment) {
        let Some((_, inner)) = part.rsplit_once("${").or_else(|| part.rsplit_once("{env:")) else {
            return;
        };
        let inner = inner.strip_prefix("env:").unwrap_or(inner);
        let name = beginning_of_name(inner);
        let is_set = !name.is_empty() && environment.get_os(name).is_some();
        let is_at_end = !name.is_empty() && name.len() == inner.len();
        if !inner.contains('}') && (is_set || is_at_end) {
            let name = is_set.then(|| name.to_owned());
            self.left.push(LeftAsItIs::Unclosed(name));
        }
    }
}

/// A variable that a text names where q fills in none.
#[derive(Debug, PartialEq, Eq)]
pub struct UnfilledVariable {
    pub name: String,
    /// As the text has it, without a default, which may be a key.
    pub written: String,
    /// Whether the text is this variable in braces, and nothing else.
    pub is_whole: bool,
}

/// Returns the variables that a text names as [`fill`] reads them, or as `$NAME` in capitals and a whole word. A dot after that is
/// one of a file's name: Windows has directories such as `$RECYCLE.BIN`.
pub fn unfilled(text: &str) -> Vec<UnfilledVariable> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('$') {
        let (before, rest) = text.split_at(at);
        let is_within_word = before.ends_with(|c: char| c.is_alphanumeric() || "_$".contains(c));
        if let Some(inner) = rest.strip_prefix("${") {
            let inner = inner.strip_prefix("env:").unwrap_or(inner);
            let name = beginning_of_name(inner);
            let following = &inner[name.len()..];
            let after = match following.strip_prefix(":-") {
                Some(default) => default.split_once('}').map(|(_, after)| after),
                None => following.strip_prefix('}'),
            };
            if name.starts_with(|first: char| !first.is_ascii_digit())
                && let Some(after) = after
            {
                found.push(UnfilledVariable {
                    name: name.to_owned(),
                    written: format!("${{{name}}}"),
                    is_whole: before.is_empty() && after.is_empty(),
                });
            }
        } else if !is_within_word
            && let Some(name) = variable_at_start(rest)
            && !rest[1 + name.len()..].starts_with('.')
        {
            found.push(UnfilledVariable {
                name: name.to_owned(),
                written: format!("${name}"),
                is_whole: false,
            });
        }
    }
    found
}

/// Refuses a name or a path with a variable in it, which can only be meant for its value. `instead` says what else to write.
pub fn refuse(text: &str, instead: &str) -> Result<(), String> {
    let Some(UnfilledVariable { name, written, .. }) = unfilled(text).into_iter().next() else {
        return Ok(());
    };
    let is_home = name == "HOME" && text.starts_with(&format!("{written}/"));
    let instead = if is_home { "write ~/" } else { instead };
    Err(format!(
        "variables such as {written} are not filled in here; {instead}"
    ))
}

/// Returns the name of the variable that a text begins with as `$NAME`, in capitals as such names are.
pub fn variable_at_start(text: &str) -> Option<&str> {
    let name = beginning_of_name(text.strip_prefix('$')?);
    let begins_well = name.starts_with(|first: char| first.is_ascii_uppercase() || first == '_');
    let is_name = begins_well && !name.contains(|c: char| c.is_ascii_lowercase());
    is_name.then_some(name)
}

/// Returns what is wrong with a name that no variable has. Only its beginning is shown: what follows may be a default in another
/// notation, and that a key.
fn fault_of_name(name: &str) -> String {
    let shown = beginning_of_name(name);
    let rest = &name[shown.len()..];
    if rest.is_empty() && !shown.is_empty() {
        return format!("the variable {shown} is not set");
    }
    // ${input:token} asks the user of an editor.
    let is_of_program = rest
        .strip_prefix(':')
        .is_some_and(|rest| rest.starts_with(char::is_alphanumeric));
    if is_of_program && !shown.is_empty() {
        return format!(
            "only the program that the file is for can fill in ${{{shown}:…}}; write a variable of the environment, such as ${{TOKEN}}"
        );
    }
    format!("${{{shown}…}} does not name a variable; write ${{NAME}} or ${{NAME:-default}}")
}

/// Returns the beginning of a text that can be that of a variable's name.
fn beginning_of_name(text: &str) -> &str {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = text.find(|c| !is_of_name(c)).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::table::rows;

    #[test]
    fn variables_are_filled_in_and_others_stay_or_are_refused() {
        let environment = Environment::new(&[("A", "1"), ("B", "${A}"), ("HOME", "/h"), ("E", "")]);
        // A text, what comes of it, and the variables that are named.
        let table = r"
            plain | plain | -
            ${A} | 1 | A
            <${A}${env:A}> | <11> | A A
            ${B} | ${A} | B
            ${userHome}/x | /h/x | HOME
            ${env:userHome} | /h | HOME
            ${A:-other} | 1 | A
            ${X:-other} | other | -
            ${X:-} | - | -
            ${E:-other} | other | -
            ${env:X:-a:-b} | a:-b | -
            ${X:-a}b} | ab} | -
            $A {A} $ {A} ${A | $A {A} $ {A} ${A | -
            a$${A} | a$1 | A
            Bearer {env:A} | Bearer 1 | A
            {env:A}${A}{env:A} | 111 | A A A
            ${X:-{env:A}} | {env:A} | -
            {env:A:-b} {env:} {env:a b} {env:A | {env:A:-b} {env:} {env:a b} {env:A | -
            {env:X} | error: the variable X is not set | -
            ${X} | error: the variable X is not set | -
            ${E} | error: the variable E is not set | -
            ${a} | error: the variable a is not set | -
            ${input:token} | error: only the program that the file is for can fill in ${input:…}; | -
            ${env:input:x} | error: only the program that the file is for can fill in ${input:…}; | -
            ${X:x} | error: only the program that the file is for can fill in ${X:…}; | -
            ${X-other} | error: ${X…} does not name a variable; write ${NAME} or ${NAME:-default} | -
            ${X:=other} | error: ${X…} does not name a variable | -
            ${X:?other} | error: ${X…} does not name a variable | -
            ${X other} | error: ${X…} does not name a variable | -
            ${ü} | error: ${…} does not name a variable | -
            ${} | error: ${…} does not name a variable | -
            ${:x} | error: ${…} does not name a variable | -
            ${A} ${X} | error: the variable X is not set | -
            ${A:-${X}} | error: a variable within another one is not filled in: ${A… | -
            ${X:-a${A}} | error: a variable within another one is not filled in: ${X… | -
            ${env:${A}} | error: a variable within another one is not filled in: ${… | -
            ${A:-$A} | 1 | A
        ";
        for [text, expected, names] in rows(table) {
            match fill(text, &environment) {
                Ok(filled) => {
                    let found: Vec<&str> = filled.values.iter().map(|(name, _)| &**name).collect();
                    assert_eq!(
                        (&*filled.text, found.join(" ")),
                        (expected, names.to_owned())
                    );
                    for (name, value) in &filled.values {
                        assert_eq!(environment.get(name), Some(value.expose()), "{text}");
                    }
                }
                Err(reason) => {
                    let found = format!("error: {reason}");
                    assert!(
                        !expected.is_empty() && found.starts_with(expected),
                        "{text}: {found}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_only_another_program_fills_in_is_noted_and_nothing_else_of_the_text() {
        let environment = Environment::new(&[("A", "1"), ("B_2", "2")]);
        // A text, and what is noted; a star marks what is usual in a script.
        let table = r"
            plain | -
            ${A}{env:A} | -
            $A | $A*
            <$A> $B_2 $C $a | $A* $B_2*
            ${A | ${A
            Bearer ${env:B_2 | ${B_2
            {env:A | ${A
            ${C | ${…
            ${A} ${C | ${…
            pa${hunter2 word | -
            x${ | -
            ${A x | ${A
            {file:~/.key} {file:/k} {file:./k} | {file:…}
            {file:>10} {file} {file:~/x | -
            {{A}} {{ secrets.A }} | {{…}}*
            {{A} {A}} }} | {{…}}*
            {{ {A | -
            pa{{ss}w}ord | -
            {env:A:-b} | {env:…}*
            a$(cat /x)b | $(…)*
            $( (A $A( | $A*
            ${X:-$A{{b} | -
        ";
        for [text, expected] in rows(table) {
            let left = fill(text, &environment).expect(text).left;
            let shown = left.iter().map(|left| {
                let said = left.to_string();
                let form = said.split([' ', '\n']).next().unwrap_or_default();
                form.to_owned() + if left.is_usual_in_scripts() { "*" } else { "" }
            });
            assert_eq!(Vec::from_iter(shown).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn a_variable_is_found_where_none_is_filled_in() {
        // A text, and the variables in it; a star marks one that is all of it.
        let table = r"
            plain | -
            ${A} | ${A}*
            ${env:A} | ${A}*
            ${A:-sk-1} | ${A}*
            ${a_1} | ${a_1}*
            /x/${A}/y${B} | ${A} ${B}
            $A | $A
            /x/$A/y-$B_2 | $A $B_2
            ~/$A | $A
            $a $Ab $1 ${1} ${} ${A-x} ${A:x} ${A $ | -
            /mnt/$RECYCLE.BIN x$A $$A V$SESSION | -
        ";
        for [text, expected] in rows(table) {
            let found = unfilled(text).into_iter();
            let found = found.map(|found| found.written + if found.is_whole { "*" } else { "" });
            assert_eq!(Vec::from_iter(found).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn a_variable_that_is_not_text_is_refused_also_with_a_default() {
        use std::ffi::OsString;
        use std::os::unix::ffi::OsStringExt;
        let variable = (OsString::from("A"), OsString::from_vec(vec![b'x', 0xff]));
        let environment = Environment::from_iter([variable]);
        for text in ["${A}", "${A:-other}"] {
            let reason = fill(text, &environment).err();
            assert_eq!(
                reason.as_deref(),
                Some("the variable A is not UTF-8"),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_error_has_a_default_in_any_notation(
            before in "[A-Z$]{0,3}",
            name in "(env:)?[A-Z_]{0,4}",
            mark in "(:-|-|:=|=|:\\?|\\+|:| |%%|@|:-\\$\\{|\\$\\{|:-x\\$\\{Y:-)",
            after in "(\\$\\{[A-Z]?\\}){0,2}",
            end in "\\}{0,2}",
        ) {
            let text = format!("{before}${{{name}{mark}sk-live-0123{after}{end}");
            if let Err(reason) = fill(&text, &Environment::default()) {
                prop_assert!(!reason.contains("sk"), "{text}: {reason}");
            }
        }
    }
}
