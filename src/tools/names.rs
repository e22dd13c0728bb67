//! The names of tools: as models know them, in characters and a length that every API accepts, and as `-t` and
//! conversations select them (pure).

use std::borrow::Cow;

use crate::error::Error;
use crate::flags::ToolNames;
use crate::settings::pattern;

/// Separates a server's name from its tool's.
pub const SEPARATOR: &str = "__";

/// The tools that `-t` names: each name is a server's, with or without a pattern for the names of its tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    names: Vec<String>,
}

impl Selection {
    /// Returns the tools that `-t` names; `None` if it was not given.
    pub fn from_option(names: &ToolNames) -> Result<Option<Selection>, Error> {
        if !names.is_given() {
            return Ok(None);
        }
        match Selection::new(names) {
            Ok(selection) => Ok(Some(selection)),
            Err(reason) => Err(Error::usage(format!("--tools: {reason}"))),
        }
    }

    /// Reads names such as `db`, `db__query` and `db__list_*`; `none` alone selects nothing.
    pub fn parse<S: AsRef<str>>(given: &[S]) -> Result<Selection, String> {
        Selection::new(&ToolNames::read(given)?)
    }

    fn new(given: &ToolNames) -> Result<Selection, String> {
        let mut names = Vec::new();
        for name in given.names() {
            // As models know a server whose name begins with a digit.
            let own = name.strip_prefix('_').filter(|own| begins_with_digit(own));
            let name = own.unwrap_or(name);
            check(name)?;
            names.push(name.to_owned());
        }
        Ok(Selection { names })
    }

    /// Returns the names as a conversation remembers them.
    pub fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the servers that are named.
    pub fn servers(&self) -> Vec<&str> {
        self.names.iter().map(|name| split(name).0).collect()
    }

    /// Whether a tool is selected, by its full name.
    pub fn has(&self, full: &str) -> bool {
        self.names.iter().any(|name| selects(name, full))
    }

    /// Returns the names that select none of these tools, which have full names.
    pub fn without_tools(&self, tools: &[String]) -> Vec<&str> {
        let mut idle = Vec::new();
        for name in &self.names {
            if !tools.iter().any(|full| selects(name, full)) {
                idle.push(name.as_str());
            }
        }
        idle
    }
}

fn check(name: &str) -> Result<(), String> {
    let (server, pattern) = split(name);
    if server.is_empty() || (pattern.is_empty() && name != server) {
        return Err(format!(
            "“{name}” names no tools; give a server, SERVER__TOOL or 'SERVER__list_*'"
        ));
    }
    Ok(())
}

/// Whether a name selects a tool. A server's name selects all of its tools.
fn selects(name: &str, full: &str) -> bool {
    let (server, pattern) = split(name);
    let (tool_server, tool) = split(full);
    let is_selected = pattern.is_empty() || pattern::matches(&plain(pattern), tool);
    with_letter(server) == tool_server && is_selected
}

/// The most characters that OpenAI allows.
const MAX_LENGTH: usize = 64;

/// Returns the full name of a tool, as models know it unless it is too long or another tool has it, too.
pub fn full_name(server: &str, tool: &str) -> String {
    let server = with_letter(server);
    with_plain_letters(&format!("{server}{SEPARATOR}{tool}"))
}

/// Returns a name that a model has made up as every API accepts it.
pub fn accepted_name(name: &str) -> String {
    match name {
        "" => "_".to_owned(),
        _ => shortened_name(&with_plain_letters(&with_letter(name)), 1),
    }
}

fn with_plain_letters(name: &str) -> String {
    plain(name).replace('*', "_")
}

/// Returns a full name that is short enough for every API; with a number, unless it is the first one.
pub fn shortened_name(full: &str, number: usize) -> String {
    let mut end = String::new();
    if number > 1 {
        end = format!("_{number}");
    }
    let mut name = full.to_owned();
    name.truncate(MAX_LENGTH - end.len());
    name + &end
}

/// Returns the name of a server as the beginning of a name. Gemini and Moonshot reject one that begins with a digit.
fn with_letter(server: &str) -> Cow<'_, str> {
    if begins_with_digit(server) {
        return format!("_{server}").into();
    }
    server.into()
}

fn begins_with_digit(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_digit())
}

/// Returns a name or a pattern, in which characters that an API may reject become `_`.
fn plain(text: &str) -> String {
    text.replace(
        |character: char| !character.is_ascii_alphanumeric() && !"-*".contains(character),
        "_",
    )
}

/// Returns the server and the tool of a full name; the tool is empty if the name is only a server's.
pub fn split(full: &str) -> (&str, &str) {
    full.split_once(SEPARATOR).unwrap_or((full, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_names_of_tools_fit_every_api() {
        let long = "x".repeat(80);
        for (server, tool, name) in [
            ("db", "read_query", "db__read_query"),
            ("a-b", "c.d/e f", "a-b__c_d_e_f"),
            ("db", "größe", "db__gr__e"),
            ("db", "list_*", "db__list__"),
            ("db", "", "db__"),
            ("1password", "list", "_1password__list"),
            ("db", &long, &format!("db__{long}")),
        ] {
            assert_eq!(full_name(server, tool), name);
        }
        let full = full_name("db", &long);
        for (number, name) in [
            (1, format!("db__{}", "x".repeat(60))),
            (2, format!("db__{}_2", "x".repeat(58))),
            (10, format!("db__{}_10", "x".repeat(57))),
        ] {
            assert_eq!(shortened_name(&full, number), name);
        }
    }

    #[test]
    fn a_name_that_a_model_has_made_up_fits_every_api() {
        let long = "x".repeat(5_000);
        for (name, accepted) in [
            ("db__query-2", "db__query-2"),
            ("shell.run größe*", "shell_run_gr__e_"),
            ("7zip", "_7zip"),
            ("", "_"),
            (&long, &long[..64]),
            (&format!("7{long}"), &format!("_7{}", &long[..62])),
        ] {
            assert_eq!(accepted_name(name), accepted);
        }
    }

    fn parse(names: &[&str]) -> Selection {
        Selection::parse(names).expect("names")
    }

    #[test]
    fn selected_servers_tools_and_patterns_add_up() {
        let selection = parse(&["db__read_*", "time", "db__count"]);
        for (server, tool, selected) in [
            ("db", "read_query", true),
            ("db", "count", true),
            ("db", "write_query", false),
            ("time", "anything", true),
            ("web", "read_query", false),
        ] {
            assert_eq!(
                selection.has(&full_name(server, tool)),
                selected,
                "{server} {tool}"
            );
        }
        assert_eq!(selection.names(), ["db__read_*", "time", "db__count"]);
        let tools = ["db__read_a".to_owned(), "time__now".to_owned()];
        assert_eq!(selection.without_tools(&tools), ["db__count"]);
        for (name, full) in [
            ("x__a__b", "x__a__b"),
            ("x__a.*", "x__a_b"),
            ("1x", "_1x__a"),
            ("1x__a", "_1x__a"),
            ("_1x__a", "_1x__a"),
        ] {
            assert!(parse(&[name]).has(full), "{name}");
        }
    }

    #[test]
    fn none_together_with_other_names_and_incomplete_names_are_refused() {
        assert!(parse(&["none"]).is_empty());
        for names in [
            &["none", "db"][..],
            &["db", "none"],
            &[""],
            &["__x"],
            &["db__"],
            &["db", ""],
        ] {
            assert!(Selection::parse(names).is_err(), "{names:?}");
        }
    }
}
