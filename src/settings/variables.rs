//! Fills in the variables of the environment that a text names (pure).

use super::origin::Environment;
use crate::secret::Secret;

/// A text with its variables.
#[derive(Default)]
pub struct Filled {
    pub text: String,
    /// The variables with their values.
    pub values: Vec<(String, Secret)>,
}

/// Returns the text with the values of its variables, `${NAME}`, `${env:NAME}` or `${NAME:-default}`, in their places.
///
/// # Errors
///
/// A variable is not set, has another one within it, or only another program knows it.
pub fn fill(text: &str, environment: &Environment) -> Result<Filled, String> {
    let mut filled = Filled::default();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${")
        && let Some((variable, following)) = after.split_once('}')
    {
        filled.text.push_str(before);
        let variable = variable.strip_prefix("env:").unwrap_or(variable);
        // The brace that ends the inner one would end the outer one, and the rest would become part of the value.
        if variable.contains("${") {
            return Err(format!(
                "a variable within another one is not filled in: ${{{variable}}}…"
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
            filled.text.push_str(value);
        } else if let Some(default) = default {
            filled.text.push_str(default);
        } else if name.contains(':') {
            return Err(format!(
                "only the program that the file is for can fill in ${{{name}}}; write a variable of the environment, such as ${{TOKEN}}"
            ));
        } else {
            return Err(format!("the variable {name} is not set"));
        }
        rest = following;
    }
    filled.text.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
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
            ${X} | error: the variable X is not set | -
            ${E} | error: the variable E is not set | -
            ${a} | error: the variable a is not set | -
            ${input:token} | error: only the program that the file is for can fill in ${input:token}; | -
            ${env:input:x} | error: only the program that the file is for can fill in ${input:x}; | -
            ${A} ${X} | error: the variable X is not set | -
            ${A:-${X}} | error: a variable within another one is not filled in: ${A:-${X}… | -
            ${X:-a${A}} | error: a variable within another one is not filled in: ${X:-a${A}… | -
            ${env:${A}} | error: a variable within another one is not filled in: ${${A}… | -
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
}
