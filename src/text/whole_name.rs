//! Finds names in a text, where they are not parts of longer ones (pure).

/// Whether a name may have this character.
pub fn is_of_name(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '-')
}

/// Whether a text contains a name, not as a part of a longer one, such as that of a model or of a tool.
pub fn has_name(text: &str, name: &str) -> bool {
    occurrences(text, name).next().is_some()
}

/// Returns the text before and after a name, at each place where it is not a part of a longer one.
pub fn occurrences<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
    let places = text.match_indices(name);
    let parts = places.map(move |(at, _)| (&text[..at], &text[at + name.len()..]));
    parts.filter(|(before, after)| {
        let is_longer = before.ends_with(is_of_name) || after.starts_with(is_of_name);
        !is_longer
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn a_name_is_found_where_it_is_whole() {
        // A text, a name, and how often it is there.
        let table = r"
            - | top_p | 0
            top_p | top_p | 1
            'top_p', top_p: top_p | top_p | 3
            functions.top_p:0 | top_p | 1
            <｜tool▁sep｜>top_p␊ | top_p | 1
            top_p_max, my-top_p, top_p2, étop_p | top_p | 0
            top_p2 and top_p | top_p | 1
        ";
        for [text, name, count] in rows(table) {
            let found = occurrences(text, name).count();
            assert_eq!(found.to_string(), count, "{text}");
            assert_eq!(has_name(text, name), found > 0, "{text}");
        }
    }
}
