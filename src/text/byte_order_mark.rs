//! Removes the byte order marks that some editors and libraries write before a text, perhaps more than one (pure).

/// The byte order mark of UTF-8.
const MARK: &str = "\u{feff}";

/// Returns what follows the marks before a text.
pub fn text_after_mark(text: &str) -> &str {
    text.trim_start_matches(MARK)
}

/// Removes the marks before a text.
pub fn remove_mark(text: &mut String) {
    let marks = text.len() - text_after_mark(text).len();
    text.drain(..marks);
}

/// Returns what follows the marks before a text, of which it is not yet known whether it is UTF-8.
pub fn after_mark(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let Some(after) = rest.strip_prefix(MARK.as_bytes()) {
        rest = after;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_marks_before_a_text_are_removed_and_none_within() {
        for (text, expected) in [
            ("", ""),
            ("a\u{feff}", "a\u{feff}"),
            ("\u{feff}a", "a"),
            ("\u{feff}\u{feff}a\u{feff}", "a\u{feff}"),
            ("\u{feff}", ""),
        ] {
            let mut found = text.to_owned();
            remove_mark(&mut found);
            assert_eq!(found, expected);
            assert_eq!(text_after_mark(text), expected);
            assert_eq!(after_mark(text.as_bytes()), expected.as_bytes());
        }
    }
}
