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
        let fitting = "list=list list_*=list_tables list_*=list_ *= *_query=read_query a*b*c=axxbyyc a*b*b=axbb a**b=ab =";
        let others = "list=list_tables list_*=read_list_ *_query=read_query_2 a*b*c=axxcyyb a*a=a a*b*b=axb =a";
        for (pairs, fits) in [(fitting, true), (others, false)] {
            for pair in pairs.split(' ') {
                let (pattern, name) = pair.split_once('=').expect("a pair");
                assert_eq!(matches(pattern, name), fits, "{pair}");
            }
        }
    }
}
