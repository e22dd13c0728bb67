//! Which tools a question may use: servers, single tools and patterns, as `-t` and conversations name them.

use crate::error::Error;
use crate::settings::{Configured, NO_TOOLS, pattern};

/// Separates a server's name from its tool's.
pub(crate) const SEPARATOR: &str = "__";

/// The tools that `-t` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selection {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    server: String,
    /// For the names of its tools; `None` matches all of them.
    pattern: Option<String>,
}

impl Selection {
    /// The tools that `-t` names; `None` if it was not given.
    ///
    /// # Errors
    /// `Usage`: what is wrong with a name.
    pub(crate) fn typed(names: &[String]) -> Result<Option<Selection>, Error> {
        if names.is_empty() {
            return Ok(None);
        }
        Selection::parse(names).map(Some).map_err(|reason| Error::usage(format!("--tools: {reason}")))
    }

    /// Reads names such as `db`, `db__query` and `db__list_*`; `none` alone selects nothing.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn parse<S: AsRef<str>>(names: &[S]) -> Result<Selection, String> {
        let names: Vec<&str> = names.iter().map(|name| name.as_ref().trim()).collect();
        if names == [NO_TOOLS] {
            return Ok(Selection { entries: Vec::new() });
        }
        let entries = names.iter().map(|name| Entry::parse(name)).collect::<Result<_, _>>()?;
        Ok(Selection { entries })
    }

    /// The names as a conversation remembers them.
    pub(crate) fn names(&self) -> Vec<String> {
        self.entries.iter().map(Entry::name).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The named servers, each once, in the order of the configuration.
    ///
    /// # Errors
    /// The first name whose server is not configured.
    pub(crate) fn servers(&self, configured: Vec<Configured>) -> Result<Vec<Configured>, String> {
        let unknown = self.entries.iter().find(|entry| !configured.iter().any(|one| one.name == entry.server));
        match unknown {
            Some(entry) => Err(entry.server.clone()),
            None => {
                let named = |one: &Configured| self.entries.iter().any(|entry| entry.server == one.name);
                Ok(configured.into_iter().filter(named).collect())
            }
        }
    }

    /// Whether a server's tool is selected. `names` are its own name and its name for models.
    pub(crate) fn has(&self, server: &str, names: &[&str]) -> bool {
        self.entries.iter().any(|entry| entry.server == server && entry.fits(names))
    }

    /// The names that select none of these tools, each given by its server and its names.
    pub(crate) fn without_tools(&self, tools: &[(&str, [&str; 2])]) -> Vec<String> {
        let selects = |entry: &&Entry| tools.iter().any(|(server, names)| *server == entry.server && entry.fits(names));
        self.entries.iter().filter(|entry| !selects(entry)).map(Entry::name).collect()
    }
}

impl Entry {
    fn parse(name: &str) -> Result<Entry, String> {
        let (server, pattern) = match name.split_once(SEPARATOR) {
            None => (name, None),
            Some((server, pattern)) => (server, Some(pattern)),
        };
        if name == NO_TOOLS {
            return Err(format!("“{NO_TOOLS}” must be the only name"));
        }
        if server.is_empty() || pattern.is_some_and(str::is_empty) {
            return Err(format!("“{name}” names no tools; give a server, SERVER__TOOL or 'SERVER__list_*'"));
        }
        Ok(Entry { server: server.to_owned(), pattern: pattern.map(str::to_owned) })
    }

    fn name(&self) -> String {
        match &self.pattern {
            None => self.server.clone(),
            Some(pattern) => format!("{}{SEPARATOR}{pattern}", self.server),
        }
    }

    fn fits(&self, names: &[&str]) -> bool {
        self.pattern.as_ref().is_none_or(|wanted| names.iter().any(|name| pattern::matches(wanted, name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(names: &[&str]) -> Selection {
        Selection::parse(names).expect("names")
    }

    #[test]
    fn servers_tools_and_patterns_add_up() {
        let selection = parse(&["db__read_*", "time", "db__count"]);
        for (server, tool, selected) in [
            ("db", "read_query", true),
            ("db", "count", true),
            ("db", "write_query", false),
            ("time", "anything", true),
            ("web", "read_query", false),
        ] {
            assert_eq!(selection.has(server, &[tool]), selected, "{server} {tool}");
        }
        assert_eq!(selection.names(), ["db__read_*", "time", "db__count"]);
        let tools = [("db", ["read_a", "read_a"]), ("time", ["now", "now"])];
        assert_eq!(selection.without_tools(&tools), ["db__count"]);
        assert!(parse(&["x__a__b"]).has("x", &["a__b"]));
    }

    #[test]
    fn none_stands_alone_and_every_name_names_something() {
        assert!(parse(&["none"]).is_empty());
        for names in [&["none", "db"][..], &["db", "none"], &[""], &["__x"], &["db__"], &["db", ""]] {
            assert!(Selection::parse(names).is_err(), "{names:?}");
        }
    }
}
