//! Shows longer text from elsewhere line by line, each after a mark, so that no line of it looks like one of q's own (pure).

use unicode_width::UnicodeWidthChar;

use crate::text::columns::next_tab_stop;
use crate::text::escape::is_line_break;

/// Begins each line.
const MARK: &str = "q: | ";

/// Text that is being quoted, and may come in pieces. Empty lines are left out.
#[derive(Default)]
pub struct Quote {
    /// The last line, if it has no end yet.
    open: Option<QuotedLine>,
}

/// A line as far as it has been quoted.
struct QuotedLine {
    /// The column of the next character.
    column: usize,
    /// Whether the last character was a blank, or there is none on the line.
    is_between_words: bool,
}

impl Quote {
    /// Returns the next piece, of which a terminal is given the visible form. On a terminal of this many columns no line is
    /// longer, for the terminal would continue it without the mark.
    pub fn feed(
        &mut self,
        piece: &str,
        columns: Option<usize>,
        visible: impl Fn(&str) -> String,
    ) -> String {
        let width = columns.map_or(usize::MAX, |columns| (columns - 1).max(MARK.len() + 1));
        let mut quoted = String::new();
        for part in piece.split_inclusive(is_line_break) {
            let text = part.trim_end_matches(is_line_break);
            if !text.is_empty() {
                let begin = || QuotedLine::begin(&mut quoted);
                let line = self.open.get_or_insert_with(begin);
                line.push(&visible(text), width, &mut quoted);
            }
            // The LF after a CR ends an empty line, and so nothing.
            if text.len() < part.len() {
                quoted += self.end();
            }
        }
        quoted
    }

    /// Returns the end of the last line, if it has none yet.
    pub fn end(&mut self) -> &'static str {
        match self.open.take() {
            Some(_) => "\n",
            None => "",
        }
    }
}

impl QuotedLine {
    fn begin(quoted: &mut String) -> QuotedLine {
        quoted.push_str(MARK);
        QuotedLine {
            column: MARK.len(),
            is_between_words: true,
        }
    }

    /// Adds visible text without line breaks. Lines are broken between words, as far as these are in the same piece.
    fn push(&mut self, text: &str, width: usize, quoted: &mut String) {
        for word in text.split_inclusive([' ', '\t']) {
            let letters: usize = word.chars().map(columns_of).sum();
            let is_whole = letters <= width - MARK.len();
            if self.is_between_words && is_whole && self.column + letters > width {
                self.break_line(quoted);
            }
            for character in word.chars() {
                if self.column_after(character) > width {
                    self.break_line(quoted);
                }
                quoted.push(character);
                self.column = self.column_after(character);
            }
            self.is_between_words = word.ends_with([' ', '\t']);
        }
    }

    fn column_after(&self, character: char) -> usize {
        match character {
            '\t' => next_tab_stop(self.column),
            _ => self.column + columns_of(character),
        }
    }

    fn break_line(&mut self, quoted: &mut String) {
        quoted.push('\n');
        *self = QuotedLine::begin(quoted);
    }
}

/// Returns how many columns a character takes at least. Terminals disagree on those that take none, and a line that is too long
/// would be continued without the mark.
fn columns_of(character: char) -> usize {
    character.width().unwrap_or_default().max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::escape::escape;

    fn quoted(pieces: &[&str], columns: Option<usize>) -> String {
        let mut quote = Quote::default();
        let mut text = String::new();
        for piece in pieces {
            text += &quote.feed(piece, columns, escape);
        }
        text + quote.end()
    }

    #[test]
    fn every_line_of_a_quote_begins_with_the_mark() {
        for (pieces, expected) in [
            (&["one\ntwo"][..], "q: | one\nq: | two\n"),
            (&["one\r", "\ntwo"], "q: | one\nq: | two\n"),
            (&["one\r", "two"], "q: | one\nq: | two\n"),
            (&["one\r", "", "\n\ntwo\n"], "q: | one\nq: | two\n"),
            (&["\n\n", "a", "b\n"], "q: | ab\n"),
            (
                &["a\u{b}b\u{c}c\u{85}d\u{2028}e\u{2029}f"],
                "q: | a\nq: | b\nq: | c\nq: | d\nq: | e\nq: | f\n",
            ),
            (&["a\u{1b}[1m"], "q: | a^[[1m\n"),
            (&[], ""),
        ] {
            assert_eq!(quoted(pieces, None), expected, "{pieces:?}");
        }
    }

    #[test]
    fn a_long_line_of_a_quote_is_broken_between_words_within_the_screen() {
        for (pieces, expected) in [
            (&["one two six"][..], "q: | one two \nq: | six\n"),
            (&["one", " two", " six"], "q: | one two \nq: | six\n"),
            (&["one two si", "x"], "q: | one two \nq: | six\n"),
            (&["one two s", "ix"], "q: | one two s\nq: | ix\n"),
            (&["one si", "xteen"], "q: | one sixte\nq: | en\n"),
            (&["onetwosixten"], "q: | onetwosix\nq: | ten\n"),
            (&["日本日本日本"], "q: | 日本日本\nq: | 日本\n"),
            (&["one\ttwo"], "q: | one\nq: | \ttwo\n"),
        ] {
            assert_eq!(quoted(pieces, Some(15)), expected, "{pieces:?}");
        }
    }

    proptest! {
        #[test]
        fn every_line_of_any_quote_fits_the_screen_and_begins_with_the_mark(
            pieces in prop::collection::vec("[a-c é日\u{301}\n\r\u{85}\t\u{1b}]{0,30}", 0..6),
            columns in 1..40_usize,
        ) {
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let shown = quoted(&pieces, Some(columns));
            for line in shown.lines() {
                prop_assert!(line.starts_with(MARK), "{:?}", line);
                let mut column = 0;
                for character in line.chars() {
                    column += if character == '\t' { next_tab_stop(column) - column } else { columns_of(character) };
                }
                // A tab or a wide character fits into every line that is wide enough for it.
                prop_assert!(column < columns.max(MARK.len() + 1 + next_tab_stop(0)), "{:?}", line);
            }
            let text = pieces.concat();
            let letters = |text: &str| text.chars().filter(|letter| matches!(letter, 'a'..='c' | 'é' | '日')).collect::<String>();
            prop_assert_eq!(letters(&shown), letters(&text));
        }
    }
}
