//! Finds names in a text, where they are not parts of longer ones (pure).

/// The most places of one name that are looked at: callers read the text around each, and a server may repeat a name.
const MAX_OCCURRENCES: usize = 100;

/// Whether a name may have this character.
pub fn is_of_name(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '-')
}

/// Whether a text contains a name, not as a part of a longer one, such as that of a model or of a tool.
pub fn has_name(text: &str, name: &str) -> bool {
    occurrences(text, name).next().is_some()
}

/// Returns the text before and after a name, at each of the first places where it is not a part of a longer one.
pub fn occurrences<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
    let places = text.match_indices(name);
    let parts = places.map(move |(at, _)| (&text[..at], &text[at + name.len()..]));
    let whole = parts.filter(|(before, after)| {
        let is_longer = before.ends_with(is_of_name) || after.starts_with(is_of_name);
        !is_longer
    });
    whole.take(MAX_OCCURRENCES)
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

    #[test]
    fn a_name_is_found_a_bounded_number_of_times() {
        let text = format!("{}top_p", "top_p2 ".repeat(MAX_OCCURRENCES));
        assert_eq!(occurrences(&text, "top_p").count(), 1);
        let text = "top_p ".repeat(10 * MAX_OCCURRENCES);
        assert_eq!(occurrences(&text, "top_p").count(), MAX_OCCURRENCES);
    }
}
