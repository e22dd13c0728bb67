//! Puts text from elsewhere on one line (pure).

use super::escape::is_line_break;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line_break_becomes_a_space() {
        let text = "a\r\nb\nc\rd\u{b}e\u{c}f\u{85}g\u{2028}h\u{2029}i  j\tk";
        assert_eq!(without_breaks(text), "a b c d e f g h i  j\tk");
    }
}
