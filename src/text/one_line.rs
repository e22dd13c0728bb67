//! Puts text from elsewhere on one line, and quotes a word for a shell (pure).

use super::escape::is_line_break;

/// The characters that need no quotes in a shell, besides letters and digits. A tilde does at the beginning, where it is a home.
const PLAIN: &str = "%+,-./:=@_~";

/// Returns the words of a text, separated by single spaces.
pub fn on_one_line(text: &str) -> String {
    let words = Vec::from_iter(text.split_whitespace());
    words.join(" ")
}

/// Returns a text with a blank in place of each newline, whatever character it is.
pub fn without_breaks(text: &str) -> String {
    text.replace("\r\n", " ").replace(is_line_break, " ")
}

/// Returns at most this many characters of a text. An ellipsis says that there were more.
pub fn beginning(text: &str, limit: usize) -> String {
    if text.chars().nth(limit).is_none() {
        return text.to_owned();
    }
    let kept = text.chars().take(limit - 1);
    kept.chain(['…']).collect()
}

/// Returns a word of a shell's command, in quotes if it has characters that may mean something to a shell.
pub fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || PLAIN.contains(character);
    if !word.is_empty() && !word.starts_with('~') && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let escaped = word.replace('\'', "'\\''");
    format!("'{escaped}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line_break_becomes_a_space() {
        let text = "a\r\nb\nc\rd\u{b}e\u{c}f\u{85}g\u{2028}h\u{2029}i  j\tk";
        assert_eq!(without_breaks(text), "a b c d e f g h i  j\tk");
    }

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
            ("~/work", "'~/work'"),
            ("work~1", "work~1"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
