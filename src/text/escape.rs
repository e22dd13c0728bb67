//! Decides what a terminal may be given: which characters pass, and the visible form of all others (pure).

use std::ops::RangeInclusive;

use super::locale::Charset;

/// The letters and digits besides ASCII that a question shows as they are. The ranges are parts of the blocks of Unicode 14.
/// They hold no mark and nothing invisible, because terminals disagree on how wide those are.
const LETTERS: &[RangeInclusive<char>] = &[
    '\u{c0}'..='\u{2af}',      // Latin
    '\u{370}'..='\u{3ff}',     // Greek
    '\u{400}'..='\u{481}',     // Cyrillic
    '\u{48a}'..='\u{52f}',     // Cyrillic, after its combining marks
    '\u{1e00}'..='\u{1eff}',   // Latin with more than one accent
    '\u{1f00}'..='\u{1fff}',   // ancient Greek
    '\u{3005}'..='\u{3007}',   // the repetition mark and the zero of ideographs
    '\u{3041}'..='\u{3096}',   // Hiragana
    '\u{309d}'..='\u{30ff}',   // Hiragana after its combining marks, Katakana
    '\u{31f0}'..='\u{31ff}',   // Katakana for Ainu
    '\u{3400}'..='\u{4dbf}',   // ideographs, extension A
    '\u{4e00}'..='\u{9fff}',   // ideographs
    '\u{ac00}'..='\u{d7a3}',   // Hangul syllables
    '\u{f900}'..='\u{faff}',   // ideographs for compatibility
    '\u{ff10}'..='\u{ff5a}',   // wide digits and Latin letters
    '\u{ff66}'..='\u{ff9d}',   // narrow Katakana, before its marks
    '\u{20000}'..='\u{2a6d6}', // ideographs, extension B
    '\u{2a700}'..='\u{2b734}', // ideographs, extension C
    '\u{2b740}'..='\u{2b81d}', // ideographs, extension D
    '\u{2b820}'..='\u{2cea1}', // ideographs, extension E
    '\u{2ceb0}'..='\u{2ebe0}', // ideographs, extension F
];

/// The characters besides controls that take no column, look like a blank, or look like nothing: those that Unicode lets
/// programs ignore (Default_Ignorable_Code_Point), blanks other than the space, and those for private use.
const INVISIBLE: &[RangeInclusive<char>] = &[
    '\u{a0}'..='\u{a0}',        // no-break space
    '\u{ad}'..='\u{ad}',        // soft hyphen
    '\u{34f}'..='\u{34f}',      // combining grapheme joiner
    '\u{61c}'..='\u{61c}',      // Arabic letter mark
    '\u{115f}'..='\u{1160}',    // fillers for Hangul
    '\u{1680}'..='\u{1680}',    // Ogham space
    '\u{17b4}'..='\u{17b5}',    // Khmer inherent vowels
    '\u{180b}'..='\u{180f}',    // selectors and separator for Mongolian
    '\u{2000}'..='\u{200f}',    // blanks, joiners, direction marks
    '\u{2028}'..='\u{202f}',    // separators, embeddings, overrides
    '\u{205f}'..='\u{206f}',    // a blank, invisible operators, isolates
    '\u{2800}'..='\u{2800}',    // Braille without a dot
    '\u{3000}'..='\u{3000}',    // ideographic space
    '\u{3164}'..='\u{3164}',    // filler for Hangul
    '\u{e000}'..='\u{f8ff}',    // private use
    '\u{fdd0}'..='\u{fdef}',    // no characters
    '\u{fe00}'..='\u{fe0f}',    // variation selectors
    '\u{feff}'..='\u{feff}',    // byte order mark
    '\u{ffa0}'..='\u{ffa0}',    // filler for Hangul, narrow
    '\u{fff0}'..='\u{fffb}',    // unassigned, and annotations
    '\u{fffe}'..='\u{ffff}',    // no characters
    '\u{13430}'..='\u{1343f}',  // hieroglyph joiners
    '\u{16fe4}'..='\u{16fe4}',  // Khitan filler
    '\u{1bca0}'..='\u{1bca3}',  // shorthand controls
    '\u{1d159}'..='\u{1d159}',  // a note without a head
    '\u{1d173}'..='\u{1d17a}',  // musical controls
    '\u{e0000}'..='\u{10ffff}', // tags, variation selectors, private use
];

/// An escaper of text that may come in pieces. Only the carriage return of a newline is dropped.
#[derive(Default)]
pub struct Escaper {
    /// Whether the last character was a CR. Only the next one shows whether it belongs to a newline.
    held_carriage_return: bool,
}

impl Escaper {
    /// Returns the visible form of the next piece.
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
                _ if is_bidirectional(character) => {
                    visible += &format!("<U+{:04X}>", character as u32);
                }
                _ => visible.push(character),
            }
        }
        visible
    }

    /// Returns the visible form of what was held back, now that nothing follows.
    pub fn finish(&mut self) -> &'static str {
        if std::mem::take(&mut self.held_carriage_return) {
            "^M"
        } else {
            ""
        }
    }
}

/// Returns the visible form of a complete text: what a terminal is given of an answer, a note or a name.
pub fn escape(text: &str) -> String {
    let mut escaper = Escaper::default();
    let mut visible = escaper.feed(text);
    visible.push_str(escaper.finish());
    visible
}

/// Returns text in which nothing can hide, for a question whose answer lets something run: printable ASCII stays, and so do
/// letters that the charset has; every other character becomes its code point.
pub fn escape_all(text: &str, charset: Charset) -> String {
    let mut visible = String::with_capacity(text.len());
    for character in text.chars() {
        let is_shown = character == ' '
            || character.is_ascii_graphic()
            || charset == Charset::Unicode && is_letter(character);
        if is_shown {
            visible.push(character);
        } else {
            visible.extend(character.escape_unicode());
        }
    }
    visible
}

/// Whether a character can control a terminal, changes the direction of text, or is not seen.
pub fn is_hidden(character: char) -> bool {
    // The last two of each plane are no characters.
    let is_last = u32::from(character) & 0xfffe == 0xfffe;
    character.is_control() || is_bidirectional(character) || is_last || is_in(INVISIBLE, character)
}

/// Whether a character begins a new line, here or in a program that shows the text later.
pub fn is_line_break(character: char) -> bool {
    matches!(
        character,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Whether a character is an embedding, an override or an isolate (Unicode, UAX #9), which make text read as what it is not.
fn is_bidirectional(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a character is a letter or a digit of a script that every terminal draws character by character.
fn is_letter(character: char) -> bool {
    // The ranges hold a few symbols and unassigned characters, too.
    is_in(LETTERS, character) && character.is_alphanumeric()
}

fn is_in(ranges: &[RangeInclusive<char>], character: char) -> bool {
    ranges.iter().any(|range| range.contains(&character))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_characters_are_escaped_and_text_passes() {
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
            assert_eq!(escape(text), shown, "{text:?}");
        }
    }

    #[test]
    fn all_characters_but_letters_and_ascii_are_escaped_in_a_question_about_a_call() {
        let ascii = "b~ q: \\n e 'n'";
        let letters = "ü ß ə ř Ω я ё ほ カー ㇰ 々 한 日 ｆ";
        let shown = format!("{ascii} {letters}");
        assert_eq!(escape_all(&shown, Charset::Unicode), shown);
        // Controls, what has no width or no look, and symbols; terminals disagree on how wide those of the last line are.
        let hidden = "\u{7f}\u{9b}\u{1b}\u{202e}\u{200b}\u{2028}\u{feff}\u{ad}\u{e0041}\u{fe0f}\u{a0}\u{3000}\u{e000}\
            \u{fffe}\u{378}\u{10ffff}\u{2800}\u{1d159}\u{3164}\u{301}👍שلक\u{1100}×÷・「—\
            \u{302e}\u{9be}\u{cca}\u{1734}\u{16ff0}\u{483}\u{489}\u{3099}\u{309a}\u{ff9e}";
        let escaped = hidden.escape_unicode().to_string();
        assert_eq!(escape_all(hidden, Charset::Unicode), escaped);

        assert_eq!(escape_all(ascii, Charset::Ascii), ascii);
        let letters = letters.replace(' ', "");
        let escaped = letters.escape_unicode().to_string();
        assert_eq!(escape_all(&letters, Charset::Ascii), escaped);
    }

    #[test]
    fn every_unicode_whitespace_character_but_the_space_counts_as_hidden() {
        for character in '\0'..=char::MAX {
            let is_blank = character.is_whitespace() && character != ' ';
            assert!(!is_blank || is_hidden(character), "{character:?}");
            // Letters of questions are not, or one list would contradict the other.
            assert!(
                !is_letter(character) || !is_hidden(character),
                "{character:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn control_characters_are_escaped_however_the_input_is_split(text in any::<String>(), at in any::<prop::sample::Index>()) {
            let shown = escape(&text);
            prop_assert!(shown.chars().all(|character| matches!(character, '\t' | '\n') || !character.is_control()));
            let boundaries: Vec<usize> = text.char_indices().map(|(index, _)| index).chain([text.len()]).collect();
            let at = *at.get(&boundaries);
            let mut escaper = Escaper::default();
            let split = escaper.feed(&text[..at]) + &escaper.feed(&text[at..]) + escaper.finish();
            prop_assert_eq!(split, shown);
            let encoded = escape(&Charset::Ascii.encode(&text));
            prop_assert!(encoded.bytes().all(|byte| matches!(byte, b'\t' | b'\n' | b' '..=b'~')));
        }
    }
    #[test]
    fn what_controls_a_terminal_or_is_not_seen_is_hidden() {
        for (characters, expected) in [
            ("\u{1b}\n\u{7f}\u{9b}\u{202e}\u{2066}", true),
            (
                "\u{a0}\u{ad}\u{200b}\u{feff}\u{e000}\u{e0041}\u{fe0f}",
                true,
            ),
            // No characters, of several planes.
            (
                "\u{fffe}\u{ffff}\u{1fffe}\u{1ffff}\u{dfffe}\u{10ffff}",
                true,
            ),
            (" a~üß日👍\u{301}\u{fffd}\u{1fffd}", false),
        ] {
            for character in characters.chars() {
                assert_eq!(is_hidden(character), expected, "{character:?}");
            }
        }
        let breaks = "\n\r\u{b}\u{c}\u{85}\u{2028}\u{2029}";
        assert!(breaks.chars().all(is_line_break) && !"\t a\u{8}".chars().any(is_line_break));
    }
}
