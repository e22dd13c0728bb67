//! The names of tools that an option or a role gives (pure).

/// The name that stands for no tools.
pub const NO_TOOLS: &str = "none";

/// The tools that `-t` or a role names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolNames {
    /// Neither names any, so others decide.
    #[default]
    Unset,
    /// No tools: `none`.
    Nothing,
    /// Each a server, one of its tools or a pattern, in the order given.
    Names(Vec<String>),
}

impl ToolNames {
    /// Reads names, which may have blanks around them.
    pub fn read<S: AsRef<str>>(given: &[S]) -> Result<ToolNames, String> {
        let mut names = ToolNames::Unset;
        for name in given {
            names.add(name.as_ref())?;
        }
        Ok(names)
    }

    /// Adds a name to those before it.
    pub fn add(&mut self, name: &str) -> Result<(), String> {
        let name = name.trim();
        match self {
            ToolNames::Unset if name == NO_TOOLS => *self = ToolNames::Nothing,
            ToolNames::Unset => *self = ToolNames::Names(vec![name.to_owned()]),
            ToolNames::Names(names) if name != NO_TOOLS => names.push(name.to_owned()),
            ToolNames::Nothing | ToolNames::Names(_) => {
                return Err(format!("“{NO_TOOLS}” must be the only name"));
            }
        }
        Ok(())
    }

    /// Returns these names with those of an option that comes later. `none` takes away what comes before it, and gives way to
    /// what comes after it.
    pub fn followed_by(self, later: &ToolNames) -> ToolNames {
        match (self, later) {
            (first, ToolNames::Unset) => first,
            (ToolNames::Names(mut names), ToolNames::Names(more)) => {
                names.extend_from_slice(more);
                ToolNames::Names(names)
            }
            (_, later) => later.clone(),
        }
    }

    /// Whether anything is said about tools, be it that there are none.
    pub fn is_given(&self) -> bool {
        *self != ToolNames::Unset
    }

    /// Returns the names, of which `none` is not one.
    pub fn names(&self) -> &[String] {
        match self {
            ToolNames::Unset | ToolNames::Nothing => &[],
            ToolNames::Names(names) => names,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    fn read(names: &str) -> Result<ToolNames, String> {
        let names = names.split(',').filter(|names| !names.is_empty());
        ToolNames::read(&Vec::from_iter(names))
    }

    #[test]
    fn none_stands_for_no_tools_and_must_be_alone() {
        for (names, expected) in [
            ("", Some(ToolNames::Unset)),
            ("none", Some(ToolNames::Nothing)),
            (" none\t", Some(ToolNames::Nothing)),
            ("a, b", Some(ToolNames::Names(vec!["a".into(), "b".into()]))),
            ("None", Some(ToolNames::Names(vec!["None".into()]))),
            ("none,a", None),
            ("a,none ", None),
            ("none,none", None),
        ] {
            assert_eq!(read(names).ok(), expected, "{names:?}");
        }
    }

    #[test]
    fn names_add_up_unless_one_of_them_is_none() {
        for [first, later, both] in rows(
            "
            - | - | -
            - | a | a
            a | - | a
            a,b | c | a,b,c
            none | a | a
            none | - | none
            a | none | none
            none | none | none",
        ) {
            let first = read(first).expect("names");
            let found = first.followed_by(&read(later).expect("names"));
            assert_eq!(found, read(both).expect("names"), "{later} {both}");
        }
    }
}
