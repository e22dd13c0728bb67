//! Builds text for a terminal, with the sequences that switch its styles on and off (pure).

use std::ops::BitOr;

/// The look of text: plain, or a sum of the other constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style(u8);

impl Style {
    pub const PLAIN: Style = Style(0);
    pub const BOLD: Style = Style(1);
    pub const DIM: Style = Style(2);
    pub const ITALIC: Style = Style(4);
    pub const CODE: Style = Style(8);

    fn contains(self, part: Style) -> bool {
        self.0 & part.0 != 0
    }
}

impl BitOr for Style {
    type Output = Style;

    fn bitor(self, other: Style) -> Style {
        Style(self.0 | other.0)
    }
}

/// The sequences that switch each of them on (ECMA-48: SGR). Code is cyan.
const SEQUENCES: &[(Style, &str)] = &[
    (Style::BOLD, "\u{1b}[1m"),
    (Style::DIM, "\u{1b}[2m"),
    (Style::ITALIC, "\u{1b}[3m"),
    (Style::CODE, "\u{1b}[36m"),
];

/// Switches all styles off.
const RESET: &str = "\u{1b}[0m";

/// Text for a terminal, as far as it has been built. A style is on only where text needs it.
pub struct StyledText {
    /// Whether text gets styles. Otherwise all of it is plain.
    has_styles: bool,
    /// The style that is on at the end of the text.
    style: Style,
    text: String,
}

impl StyledText {
    pub fn new(has_styles: bool) -> StyledText {
        StyledText {
            has_styles,
            style: Style::PLAIN,
            text: String::new(),
        }
    }

    pub fn push(&mut self, style: Style, text: &str) {
        if self.has_styles && style != self.style && !text.is_empty() {
            self.reset();
            for (part, sequence) in SEQUENCES {
                if style.contains(*part) {
                    self.text.push_str(sequence);
                }
            }
            self.style = style;
        }
        self.text.push_str(text);
    }

    /// Takes the text. It leaves no style on, because something else may be written next.
    pub fn take(&mut self) -> String {
        self.reset();
        std::mem::take(&mut self.text)
    }

    fn reset(&mut self) {
        if self.style != Style::PLAIN {
            self.text.push_str(RESET);
            self.style = Style::PLAIN;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_written_only_where_the_style_changes() {
        const STRONG_CODE: Style = Style(Style::BOLD.0 | Style::CODE.0);
        for (parts, expected) in [
            (&[(Style::PLAIN, "a"), (Style::PLAIN, "b")][..], "ab"),
            (
                &[(Style::BOLD, "a"), (Style::BOLD, "b")],
                "\u{1b}[1mab\u{1b}[0m",
            ),
            (
                &[(Style::DIM, "a"), (Style::PLAIN, "b")],
                "\u{1b}[2ma\u{1b}[0mb",
            ),
            (
                &[(Style::ITALIC, "a"), (Style::CODE, "b")],
                "\u{1b}[3ma\u{1b}[0m\u{1b}[36mb\u{1b}[0m",
            ),
            (&[(STRONG_CODE, "a")], "\u{1b}[1m\u{1b}[36ma\u{1b}[0m"),
            // No text needs no style.
            (&[(Style::BOLD, ""), (Style::PLAIN, "a")], "a"),
            (
                &[(Style::BOLD, "a"), (Style::PLAIN, ""), (Style::BOLD, "b")],
                "\u{1b}[1mab\u{1b}[0m",
            ),
            (&[], ""),
        ] {
            let (mut styled, mut unstyled) = (StyledText::new(true), StyledText::new(false));
            for (style, text) in parts {
                styled.push(*style, text);
                unstyled.push(*style, text);
            }
            assert_eq!(styled.take(), expected, "{parts:?}");
            assert_eq!(styled.take(), "", "{parts:?}");
            let texts: String = parts.iter().map(|(_, text)| *text).collect();
            assert_eq!(unstyled.take(), texts, "{parts:?}");
        }
    }
}
