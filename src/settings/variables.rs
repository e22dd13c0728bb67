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
/// A variable is not set, or only another program knows it.
pub fn fill(text: &str, environment: &Environment) -> Result<Filled, String> {
    let mut filled = Filled::default();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${")
        && let Some((variable, following)) = after.split_once('}')
    {
        filled.text.push_str(before);
        let variable = variable.strip_prefix("env:").unwrap_or(variable);
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
