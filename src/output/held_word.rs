//! Holds a word back until it has ended, and measures it (pure).

use unicode_width::UnicodeWidthChar;

use crate::text::columns::{end_of, width};

/// The wide characters that no line of Chinese or Japanese begins with (JIS X 4051): what ends a sentence, a part of one or a
/// bracket, and what repeats or lengthens the sign before it.
const NOT_FIRST: &str = "、。，．：；！？）］｝｠」』】〕〉》〗〙〛〞〟・々ーヽヾゝゞ";

/// The wide characters that no such line ends with: what opens a bracket.
const NOT_LAST: &str = "（［｛｟「『【〔〈《〖〘〚〝";

/// A word that may be unfinished: text without blanks, or a single wide character. A part of it may be shown already.
#[derive(Default)]
pub struct HeldWord {
    /// Its text; once a part of it is shown, only the end of that part and the rest.
    text: String,
    /// How many bytes of it are shown.
    shown: usize,
    /// Whether a pause has shown a part of it, which cannot go to the next line any more.
    is_paused: bool,
    /// How many bytes of it have been measured.
    measured: usize,
    /// The columns of what has been measured and is not shown.
    columns: usize,
}

impl HeldWord {
    pub fn push(&mut self, letter: char) {
        self.text.push(letter);
    }

    /// Goes on to the next word.
    pub fn clear(&mut self) {
        self.text.clear();
        self.shown = 0;
        self.is_paused = false;
        self.measured = 0;
        self.columns = 0;
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether a part of it is shown.
    pub fn has_shown_part(&self) -> bool {
        self.shown > 0
    }

    /// Its text. Once a part of it is shown, only the end of that part is left.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns what is not shown of it.
    pub fn held(&self) -> &str {
        &self.text[self.shown..]
    }

    /// Notes that all of it is shown, and forgets that but for its end.
    pub fn mark_shown(&mut self) {
        let end = end_of(&self.text).len();
        self.text.drain(..self.text.len() - end);
        self.shown = end;
        self.measured = end;
        self.columns = 0;
    }

    /// Notes that a pause has shown all of it.
    pub fn mark_paused(&mut self) {
        self.mark_shown();
        self.is_paused = true;
    }

    /// Returns the columns of what is not shown. It may combine with the end of what is: a skin tone comes after its emoji. Only
    /// what has come since the last call is measured.
    pub fn width(&mut self) -> usize {
        let before = end_of(&self.text[..self.measured]);
        let both = &self.text[self.measured - before.len()..];
        self.columns = (self.columns + width(both)).saturating_sub(width(before));
        self.measured = self.text.len();
        self.columns
    }

    /// Whether it ends before this character although there is no blank: a break is allowed between two wide characters that
    /// are not parts of one emoji. Punctuation stays with what it belongs to, unless a pause has shown that: then it
    /// begins a line better here than where the terminal would break.
    pub fn ends_before(&self, character: char) -> bool {
        if !is_wide(character) {
            return false;
        }
        let before = end_of(&self.text);
        let has_columns = |letter: &char| letter.width() != Some(0);
        let Some(base) = before.chars().rev().find(has_columns) else {
            return false;
        };
        let is_bound = NOT_FIRST.contains(character) || NOT_LAST.contains(base);
        if !is_wide(base) || is_bound && !self.is_paused {
            return false;
        }
        let both = format!("{before}{character}");
        width(&both) > width(before)
    }
}

fn is_wide(character: char) -> bool {
    !character.is_ascii() && character.width() == Some(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> HeldWord {
        let mut word = HeldWord::default();
        text.chars().for_each(|letter| word.push(letter));
        word
    }

    #[test]
    fn a_word_is_as_wide_as_a_terminal_shows_it_however_it_is_split_and_shown() {
        // The parts of a word, and the columns that each adds.
        for (parts, columns) in [
            (&["abc"][..], &[3][..]),
            (&["日本"], &[4]),
            (&["e\u{301}e\u{301}"], &[2]),
            // A mark belongs to the letter before it.
            (&["e", "\u{301}"], &[1, 0]),
            (&["👍", "🏽"], &[2, 0]),
            (&["日", "🏽"], &[2, 2]),
            (&["👩", "\u{200d}", "👩", "\u{200d}👧"], &[2, 0, 0, 0]),
            (&["🇩", "🇪"], &[1, 1]),
            (&["❤", "\u{fe0f}"], &[1, 1]),
            // Terminals give each letter a column, also where a font joins two.
            (&["إلا"], &[3]),
            (&["ل", "ا"], &[1, 1]),
            (&["ل\u{64e}", "ا"], &[1, 1]),
            (&["", "a"], &[0, 1]),
        ] {
            let (mut held, mut shown) = (HeldWord::default(), HeldWord::default());
            let mut sum = 0;
            for (part, width) in parts.iter().zip(columns) {
                part.chars().for_each(|letter| held.push(letter));
                part.chars().for_each(|letter| shown.push(letter));
                sum += width;
                assert_eq!(held.width(), sum, "{parts:?} held, with {part:?}");
                assert_eq!(shown.width(), *width, "{parts:?} shown, with {part:?}");
                assert_eq!(shown.held(), *part, "{parts:?}");
                shown.mark_shown();
                assert_eq!((shown.width(), shown.held()), (0, ""), "{parts:?}");
            }
        }
    }

    #[test]
    fn a_word_ends_between_wide_characters_that_are_not_one_emoji() {
        // The word, what follows it, whether the word ends between them, and whether it does after a pause.
        for (text, character, ends, ends_after_pause) in [
            ("", '日', false, false),
            ("a", 'b', false, false),
            ("a", '日', false, false),
            ("日", 'a', false, false),
            ("日", '本', true, true),
            ("か\u{3099}", 'か', true, true),
            // Punctuation.
            ("日", '。', false, true),
            ("日", '」', false, true),
            ("」", '。', false, true),
            ("。", '日', true, true),
            ("日", '「', true, true),
            ("「", '日', false, true),
            ("（", '「', false, true),
            ("ラ", 'ー', false, true),
            ("👍", '🏽', false, false),
            ("日", '🏽', true, true),
            ("👩\u{200d}", '👧', false, false),
            ("👩", '👧', true, true),
            ("🇩🇪", '🇫', false, false),
        ] {
            let mut word = word(text);
            let case = format!("{text} {character}");
            assert_eq!(word.ends_before(character), ends, "{case}");
            word.mark_shown();
            assert_eq!(word.ends_before(character), ends, "{case}");
            word.mark_paused();
            assert_eq!(word.ends_before(character), ends_after_pause, "{case}");
        }
    }

    #[test]
    fn only_the_end_of_the_shown_part_of_a_word_is_kept() {
        let mut word = word(&"x".repeat(1_000));
        assert!(!word.has_shown_part() && word.held().len() == 1_000);
        word.mark_shown();
        word.push('y');
        assert!(word.has_shown_part() && word.text.len() < 100);
        assert_eq!((word.width(), word.held()), (1, "y"));
        word.clear();
        assert!(word.is_empty() && !word.has_shown_part());
        assert_eq!((word.width(), word.held()), (0, ""));
    }
}
