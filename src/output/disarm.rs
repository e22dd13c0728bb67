//! Makes text harmless for a terminal: a character that could control it gets a visible form (pure).
//!
//! Only the carriage return of a line end is dropped.

/// Disarms text that may come in pieces.
#[derive(Default)]
pub struct Disarmer {
    /// The last character was a CR. Only the next one shows whether it belongs to a line's end.
    held_carriage_return: bool,
}

impl Disarmer {
    /// The visible form of the next piece.
    pub fn feed(&mut self, piece: &str) -> String {
        let mut visible = String::with_capacity(piece.len());
        for character in piece.chars() {
            if self.held_carriage_return && character != '\n' {
                visible.push_str("^M");
            }
            self.held_carriage_return = character == '\r';
            match character {
                // The next character decides.
                '\r' => {}
                '\t' | '\n' => visible.push(character),
                // Caret notation: the letter is 0x40 away.
                '\0'..='\u{1f}' => {
                    visible.push('^');
                    visible.push(char::from(character as u8 + 0x40));
                }
                '\u{7f}' => visible.push_str("^?"),
                '\u{80}'..='\u{9f}' => {
                    visible += &format!("<{:02X}>", character as u32);
                }
                // Bidirectional embeddings, overrides and isolates (Unicode, UAX #9) can make text read as what it is not.
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    visible += &format!("<U+{:04X}>", character as u32);
                }
                _ => visible.push(character),
            }
        }
        visible
    }

    /// The visible form of what was held back, now that nothing follows.
    pub fn finish(&mut self) -> &'static str {
        if std::mem::take(&mut self.held_carriage_return) {
            "^M"
        } else {
            ""
        }
    }
}

/// The visible form of a complete text.
pub fn visible(text: &str) -> String {
    let mut disarmer = Disarmer::default();
    let mut visible = disarmer.feed(text);
    visible.push_str(disarmer.finish());
    visible
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn controls_are_shown_and_text_passes() {
        for (text, shown) in [
            ("\u{1b}[31mred\u{1b}[0m", "^[[31mred^[[0m"),
            ("\u{1b}]52;c;aGk=\u{7}", "^[]52;c;aGk=^G"),
            ("a\0b\u{7f}c\u{8}", "a^@b^?c^H"),
            ("\u{9b}31m\u{85}", "<9B>31m<85>"),
            ("\u{202e}abc\u{202c}", "<U+202E>abc<U+202C>"),
            ("\u{2066}x\u{2069}", "<U+2066>x<U+2069>"),
            ("a\r\nb\rc\r", "a\nb^Mc^M"),
            ("\r\r\n", "^M\n"),
            ("tab\tline\n", "tab\tline\n"),
            (
                "e\u{301} 👩\u{200d}👧 ‎\u{200f} ü 日本",
                "e\u{301} 👩\u{200d}👧 ‎\u{200f} ü 日本",
            ),
        ] {
            assert_eq!(visible(text), shown, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_no_control_leaves_and_splits_do_not_matter(text in any::<String>(), at in any::<prop::sample::Index>()) {
            let shown = visible(&text);
            prop_assert!(shown.chars().all(|character| matches!(character, '\t' | '\n') || !character.is_control()));
            let boundaries: Vec<usize> = text.char_indices().map(|(index, _)| index).chain([text.len()]).collect();
            let at = *at.get(&boundaries);
            let mut disarmer = Disarmer::default();
            let split = disarmer.feed(&text[..at]) + &disarmer.feed(&text[at..]) + disarmer.finish();
            prop_assert_eq!(split, shown);
        }
    }
}
