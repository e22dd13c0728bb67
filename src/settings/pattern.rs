//! Patterns for names: a star matches any characters, and every other character matches itself (pure).

/// Whether a pattern matches the entire name.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(first) else {
        return false;
    };
    // The parts between stars come in their order, each as early as it can, which leaves the most for the last.
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        let Some(at) = name.find(part) else {
            return false;
        };
        name = &name[at + part.len()..];
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, fits) in [
            ("list", "list", true),
            ("list", "list_tables", false),
            ("list_*", "list_tables", true),
            ("list_*", "list_", true),
            ("list_*", "read_list_", false),
            ("*", "", true),
            ("*_query", "read_query", true),
            ("*_query", "read_query_2", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxcyyb", false),
            ("a*a", "a", false),
            ("a*b*b", "axb", false),
            ("a*b*b", "axbb", true),
            ("a**b", "ab", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
