//! Patterns for names, such as `list_*`: a star matches any characters, and every other character itself (pure).

use glob::Pattern;

/// Whether a pattern matches the entire name.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut with_stars = Pattern::escape(pattern).replace("[*]", "*");
    // The library takes two stars for directories.
    while with_stars.contains("**") {
        with_stars = with_stars.replace("**", "*");
    }
    Pattern::new(&with_stars).is_ok_and(|fitting| fitting.matches(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_star_is_special_in_a_pattern() {
        let fitting =
            "list=list list_*=list_ *= *_query=read_query a*b*c=axxbyyc a**b=ab a[b]?=a[b]?";
        let others = "list=list_tables list_*=read_list_ a*a=a a?=ab [ab]=a =a";
        let fits = |pair: &str| {
            pair.split_once('=')
                .map(|(pattern, name)| matches(pattern, name))
        };
        assert!(fitting.split(' ').all(|pair| fits(pair) == Some(true)));
        assert!(others.split(' ').all(|pair| fits(pair) == Some(false)));
    }
}
