//! Finds the tool whose definition a server's error rejects (pure).

use super::reading::ServerError;
use super::words;
use crate::provider::request::RequestedTools;
use crate::text::whole_name::has_name;

/// What is before the place of a tool in a group.
const IN_GROUP: &[&str] = &["function_declarations[", "functiondeclarations["];

/// What is before a place in the list of tools. The last is on a path as Python prints it.
const IN_LIST: &[&str] = &["tools[", "tools.", "'tools', "];

/// Returns the first number that follows one of these texts.
fn number_after(words: &str, texts: &[&str]) -> Option<usize> {
    let number_at = |(place, text): (usize, &str)| {
        let after = &words[place + text.len()..];
        let digits = after.split(|end: char| !end.is_ascii_digit()).next()?;
        digits.parse().ok()
    };
    let mut found = texts.iter().flat_map(|text| words.match_indices(text));
    found.find_map(number_at)
}

/// Returns the place of the tool whose definition a server rejects, if its error says which one: by its name, or by its place,
/// such as `tools.14.custom.input_schema`, `tools[14].function.parameters` and `tools[0].function_declarations[14]`.
pub fn rejected_tool(error: &ServerError, tools: &RequestedTools) -> Option<usize> {
    let words = format!("{} {}", error.message, error.field);
    let lower = words.to_lowercase();
    if lower.contains(words::TOO_MANY_DECLARATIONS) {
        return None;
    }
    let names = &tools.names;
    let mut place = number_after(&lower, IN_GROUP);
    // Else it is the place of the group, or of a tool of the provider's own.
    if place.is_none() && !tools.are_grouped {
        place = number_after(&lower, IN_LIST);
    }
    if place.is_some() {
        return place.filter(|place| *place < names.len());
    }
    let is_about_definition = [
        "schema",
        "function",
        "parameters",
        "parameter type",
        "keyword",
    ]
    .iter()
    .any(|word| lower.contains(word));
    let named = names.iter().position(|tool| has_name(&words, tool));
    named.filter(|_| is_about_definition)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_in_a_group_is_found_by_its_place_there_or_by_its_name() {
        let tools = RequestedTools {
            names: ["db__get", "db__list"].map(str::to_owned).to_vec(),
            are_grouped: true,
        };
        for (message, place) in [
            (
                "Unknown name \"google_search\" at 'tools[1]': Cannot find field.",
                None,
            ),
            (
                "Invalid at 'tools[0].function_declarations[1].parameters'",
                Some(1),
            ),
            ("Invalid at 'tools[0]': schema of db__list", Some(1)),
        ] {
            let found = rejected_tool(&ServerError::new(message), &tools);
            assert_eq!(found, place, "{message}");
        }
    }
}
