//! Foreign text on one line, and a word as a shell takes it (pure).

/// What a word may hold without quotes, besides letters and digits.
const PLAIN: &str = "%+,-./:=@_";

/// The words of a text, separated by single spaces.
pub(crate) fn on_one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// A word of a command as a shell takes it: in quotes if it has characters that mean something to a shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || PLAIN.contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_in_quotes_if_a_shell_would_change_it() {
        for (word, expected) in [
            ("src/main.rs", "src/main.rs"),
            ("für", "für"),
            ("", "''"),
            ("why?", "'why?'"),
            ("my file", "'my file'"),
            ("what's", "'what'\\''s'"),
            ("~", "'~'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
