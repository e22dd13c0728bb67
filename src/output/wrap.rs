//! Wraps text for a terminal, between words. Code and tables are left alone.
//!
//! A break is a line end and the indentation after it. It comes after the blanks before a word, so these blanks end
//! their line, where nobody sees them. Blanks for which the terminal's line has no room follow the break, because
//! they would fill a line of their own. Nothing is dropped: without the breaks, the text is what came, to the byte. The
//! pieces that it comes in make no difference, unless a pause shows the beginning of a word that turns out to be too
//! long for its line.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::disarm::visible;

/// Longer lines are hard to read, however wide the terminal is.
const MAX_COLUMNS: usize = 100;

/// The columns from one tab stop of a terminal to the next.
const TAB: usize = 8;

/// Text indented this far after a blank line is code.
const CODE_INDENT: usize = 4;

/// A closing fence may be indented this much further than its opening one.
const MAX_FURTHER_INDENT: usize = 3;

/// The shortest fence.
const MIN_FENCE: usize = 3;

/// The most digits in the number of a list item.
const MAX_DIGITS: usize = 9;

/// The most characters that an emoji is made of.
const MAX_EMOJI: usize = 64;

/// The most bytes of a word that wait for its end.
const MAX_HELD: usize = 4_000;

/// These do not begin a line.
const CLOSING: &str = "、。，．！？：；）」』】〉》";

/// These do not end a line.
const OPENING: &str = "（「『【〈《";

/// Wraps text that may come in pieces. It holds back an unfinished word, with the blanks before it for which there was
/// no room.
#[derive(Debug, Default)]
pub(crate) struct Wrapper {
    /// The columns of the terminal.
    columns: usize,
    line: Line,
    /// The column of the next character.
    column: usize,
    /// The column at which the line's text begins, after blanks and markers.
    begin: usize,
    /// The line begins with a marker.
    marked: bool,
    /// The line begins with the marker of a block quote.
    quoted: bool,
    /// The line has had a word since its beginning, or since its last break.
    has_word: bool,
    /// The last character is a carriage return, which a line end after it would hide.
    after_return: bool,
    /// Blanks for which there is no room.
    blanks: String,
    word: Word,
    /// The previous line is neither blank nor indented code.
    after_text: bool,
    in_list: bool,
    fence: Option<Fence>,
}

/// What kind of line it is, as far as it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Line {
    /// Only blanks and markers have come before the word.
    #[default]
    Begin,
    Prose,
    Table,
    Indented,
    /// It opens fenced code.
    Info,
    /// It is within fenced code.
    Code,
}

/// What opened fenced code.
#[derive(Debug, Clone, Copy)]
struct Fence {
    character: char,
    length: usize,
    begin: usize,
    quoted: bool,
}

impl Wrapper {
    /// As much of the text as can be shown, with this piece, on a terminal of this many columns.
    pub(crate) fn feed(&mut self, piece: &str, columns: usize) -> String {
        self.columns = columns;
        let mut wrapped = String::with_capacity(piece.len());
        for character in piece.chars() {
            match (self.line, character) {
                (_, '\n') => self.end_line(&mut wrapped),
                (Line::Begin | Line::Prose, ' ' | '\t') => self.push_blank(character, &mut wrapped),
                (Line::Begin | Line::Prose, _) => self.push_letter(character, &mut wrapped),
                (Line::Table | Line::Indented, _) => wrapped.push(character),
                (Line::Info, _) => self.push_info(character, &mut wrapped),
                (Line::Code, _) => {
                    self.word.push_shown(character);
                    wrapped.push(character);
                }
            }
        }
        // A word that is too long for a line will not become shorter. Many bytes may take no columns.
        let is_long = |word: &Word, room| word.rest().len() > MAX_HELD || word.width() > room;
        if self.word.shown > 0 || is_long(&self.word, self.width().saturating_sub(self.indent())) {
            self.put_word(&mut wrapped);
        }
        wrapped
    }

    /// Whether a part of a word waits for the rest.
    pub(crate) fn holds_word(&self) -> bool {
        self.word.shown < self.word.text.len()
    }

    /// The unfinished word as far as it has come, after a pause.
    pub(crate) fn pause(&mut self, columns: usize) -> String {
        self.columns = columns;
        let mut wrapped = String::new();
        if self.holds_word() {
            self.put_word(&mut wrapped);
        }
        wrapped
    }

    /// The text held back, now that nothing follows. Another text may come after this.
    pub(crate) fn finish(&mut self, columns: usize) -> String {
        self.columns = columns;
        let mut wrapped = String::new();
        self.end_word(true, &mut wrapped);
        self.put_blanks(&mut wrapped);
        *self = Wrapper::default();
        wrapped
    }

    /// The columns that a line may have. The last column of the terminal may hold a blank.
    fn width(&self) -> usize {
        self.columns.saturating_sub(1).clamp(1, MAX_COLUMNS)
    }

    /// How far lines are indented after a break: as far as the text before it, unless that leaves no room.
    fn indent(&self) -> usize {
        self.begin.min(self.width() / 2)
    }

    fn push_blank(&mut self, blank: char, wrapped: &mut String) {
        self.end_word(true, wrapped);
        let is_full = self.column > 0 && self.column.is_multiple_of(self.columns.max(1));
        let may_break = self.line == Line::Prose && self.has_word;
        if may_break && (is_full || !self.blanks.is_empty()) {
            self.blanks.push(blank);
        } else {
            self.put_blank(blank, wrapped);
        }
    }

    fn push_letter(&mut self, letter: char, wrapped: &mut String) {
        if self.line == Line::Begin && self.word.text.is_empty() {
            self.begin = self.column;
            let follows_blank = !self.marked && !self.after_text;
            if follows_blank && self.begin == 0 {
                self.in_list = false;
            }
            if follows_blank && self.begin >= CODE_INDENT && !self.in_list {
                self.line = Line::Indented;
                wrapped.push(letter);
                return;
            }
        }
        if self.word.may_end_before(letter) {
            self.end_word(false, wrapped);
        }
        if self.line == Line::Info {
            return self.push_info(letter, wrapped);
        }
        if self.line == Line::Table {
            return wrapped.push(letter);
        }
        self.word.text.push(letter);
    }

    /// The text after an opening fence is not prose. With another backtick, the fence was code within a line.
    fn push_info(&mut self, character: char, wrapped: &mut String) {
        wrapped.push(character);
        self.column += visible(character.encode_utf8(&mut [0; 4])).width();
        if character == '`' && self.fence.is_some_and(|fence| fence.character == '`') {
            self.fence = None;
            self.line = Line::Prose;
            self.word.push_shown(character);
        }
    }

    fn end_line(&mut self, wrapped: &mut String) {
        let is_blank = self.line == Line::Begin && !self.marked && matches!(self.word.text.as_str(), "" | "\r");
        match self.line {
            Line::Code if self.fence.is_some_and(|fence| fence.is_closed_by(&self.word.text)) => self.fence = None,
            Line::Code | Line::Table | Line::Indented | Line::Info => {}
            Line::Begin | Line::Prose => self.end_word(false, wrapped),
        }
        self.put_blanks(wrapped);
        wrapped.push('\n');
        self.after_text = !is_blank && self.line != Line::Indented;
        self.line = if self.fence.is_some() { Line::Code } else { Line::Begin };
        self.word.clear();
        (self.column, self.begin) = (0, 0);
        (self.marked, self.quoted, self.has_word, self.after_return) = (false, false, false, false);
    }

    /// The word has ended, with or without a blank after it.
    fn end_word(&mut self, before_blank: bool, wrapped: &mut String) {
        if self.word.text.is_empty() {
            return;
        }
        if self.line == Line::Begin {
            self.line = self.line_of_first_word(before_blank);
        }
        self.put_word(wrapped);
        self.word.clear();
        self.has_word = self.line != Line::Begin;
    }

    /// Decides the kind of line by its first word after blanks and markers.
    fn line_of_first_word(&mut self, before_blank: bool) -> Line {
        let word = self.word.text.as_str();
        if before_blank && is_marker(word) {
            let quotes = word.starts_with('>');
            self.marked = true;
            self.quoted |= quotes;
            self.in_list |= !quotes;
            return Line::Begin;
        }
        self.fence = Fence::opened_by(word, self.begin, self.quoted);
        match &self.fence {
            Some(_) => Line::Info,
            None if word.starts_with('|') => Line::Table,
            None => Line::Prose,
        }
    }

    /// Puts the rest of the word on this line or, if none of it is shown yet and there is no room, on the next.
    fn put_word(&mut self, wrapped: &mut String) {
        let width = self.word.width();
        let fits = self.column + width <= self.width();
        if self.word.shown == 0 && self.has_word && !fits && !self.after_return {
            let indent = self.indent();
            wrapped.push('\n');
            wrapped.extend(std::iter::repeat_n(' ', indent));
            self.column = indent;
            self.has_word = false;
        }
        self.put_blanks(wrapped);
        let rest = self.word.rest();
        wrapped.push_str(rest);
        self.after_return = if rest.is_empty() { self.after_return } else { rest.ends_with('\r') };
        self.word.shown = self.word.text.len();
        self.column += width;
    }

    fn put_blanks(&mut self, wrapped: &mut String) {
        for blank in std::mem::take(&mut self.blanks).chars() {
            self.put_blank(blank, wrapped);
        }
    }

    fn put_blank(&mut self, blank: char, wrapped: &mut String) {
        wrapped.push(blank);
        self.after_return = false;
        self.column += if blank == '\t' { TAB - self.column % TAB } else { 1 };
    }
}

impl Fence {
    /// `word` is the first one of the line.
    fn opened_by(word: &str, begin: usize, quoted: bool) -> Option<Fence> {
        let character = word.chars().next().filter(|character| matches!(character, '`' | '~'))?;
        let length = run_of(word, character);
        // With more backticks after it, it is code within a line.
        let opens = length >= MIN_FENCE && (character == '~' || !word[length..].contains('`'));
        opens.then_some(Fence { character, length, begin, quoted })
    }

    fn is_closed_by(self, line: &str) -> bool {
        let precedes = |character: char| matches!(character, ' ' | '\t') || (self.quoted && character == '>');
        let text = line.trim_start_matches(precedes);
        let length = run_of(text, self.character);
        line.len() - text.len() <= self.begin + MAX_FURTHER_INDENT
            && length >= self.length
            && text[length..].trim().is_empty()
    }
}

/// A word as it comes: text without blanks, or a single wide character.
#[derive(Debug, Default)]
struct Word {
    text: String,
    /// How many bytes of it have been put on the line.
    shown: usize,
}

impl Word {
    /// Adds text that is on the line already.
    fn push_shown(&mut self, character: char) {
        self.text.push(character);
        self.shown = self.text.len();
    }

    fn rest(&self) -> &str {
        &self.text[self.shown..]
    }

    /// The columns of the rest, which may change the end of what is shown: a skin tone comes after its emoji.
    fn width(&self) -> usize {
        let before = end_of(&self.text[..self.shown]);
        columns(&format!("{before}{}", self.rest())).saturating_sub(columns(before))
    }

    /// Whether a break is allowed before the character though there is no blank: between two wide ones that are not
    /// parts of one emoji.
    fn may_end_before(&self, character: char) -> bool {
        if !is_wide(character) || CLOSING.contains(character) {
            return false;
        }
        let before = end_of(&self.text);
        let base = before.chars().rev().find(|character| character.width() != Some(0));
        base.is_some_and(|base| is_wide(base) && !OPENING.contains(base))
            && format!("{before}{character}").width() > before.width()
    }

    /// Another word may come.
    fn clear(&mut self) {
        self.text.clear();
        self.shown = 0;
    }
}

/// As much of the end of a text as what follows may combine with.
fn end_of(text: &str) -> &str {
    text.char_indices().rev().nth(MAX_EMOJI).map_or(text, |(at, _)| &text[at..])
}

/// The columns of a part of a word. A carriage return at its end may belong to a line's end, which is invisible.
fn columns(text: &str) -> usize {
    visible(text.strip_suffix('\r').unwrap_or(text)).width()
}

/// Whether the word begins a list item or a line of a block quote.
fn is_marker(word: &str) -> bool {
    let number = word.trim_start_matches(|character: char| character.is_ascii_digit());
    let digits = word.len() - number.len();
    match number {
        "-" | "*" | "+" => digits == 0,
        "." | ")" => (1..=MAX_DIGITS).contains(&digits),
        _ => word.bytes().all(|byte| byte == b'>'),
    }
}

fn is_wide(character: char) -> bool {
    !character.is_ascii() && character.width() == Some(2)
}

/// How often the character, of one byte, stands at the beginning.
fn run_of(text: &str, character: char) -> usize {
    text.len() - text.trim_start_matches(character).len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text in these pieces, wrapped.
    fn wrapped<'a>(pieces: impl IntoIterator<Item = &'a str>, columns: usize) -> String {
        let mut wrapper = Wrapper::default();
        let mut wrapped: String = pieces.into_iter().map(|piece| wrapper.feed(piece, columns)).collect();
        wrapped.push_str(&wrapper.finish(columns));
        wrapped
    }

    /// Whether a wrapped text is this text but for line ends and indentation that were added.
    fn is_wrapped(wrapped: &str, text: &str) -> bool {
        let spaces = |text: &str| text.len() - text.trim_start_matches(' ').len();
        let (mut wrapped, mut text) = (wrapped, text);
        while let Some(character) = wrapped.chars().next() {
            let rest = &wrapped[character.len_utf8()..];
            match text.strip_prefix(character) {
                Some(after) => (wrapped, text) = (rest, after),
                None if character == '\n' => wrapped = &rest[spaces(rest).saturating_sub(spaces(text))..],
                None => return false,
            }
        }
        text.is_empty()
    }

    fn wrap(text: &str, columns: usize) -> String {
        let wrapped = wrapped([text], columns);
        assert!(is_wrapped(&wrapped, text), "{wrapped:?} {text:?}");
        wrapped
    }

    #[test]
    fn prose_is_broken_between_words() {
        // One column less than the terminal has is used.
        for (text, columns, expected) in [
            ("", 10, ""),
            ("one two", 10, "one two"),
            ("one two three", 10, "one two \nthree"),
            ("one two34", 10, "one two34"),
            ("one two345", 10, "one \ntwo345"),
            ("one two\nthree four\n", 10, "one two\nthree \nfour\n"),
            ("one two\r\nthree four\r\n", 10, "one two\r\nthree \nfour\r\n"),
            ("12345 789\r\n", 10, "12345 789\r\n"),
            ("12345 78\rx", 10, "12345 \n78\rx"),
            ("12 123\rx", 10, "12 123\rx"),
            // Words that are longer than the line.
            ("a 1234567890123 b", 10, "a \n1234567890123 \nb"),
            ("1234567890123 b", 10, "1234567890123 \nb"),
            ("a\n1234567890123\nb", 10, "a\n1234567890123\nb"),
            // Blanks stay before the break, as long as the line of the terminal has room.
            ("123456789 b", 10, "123456789 \nb"),
            ("123456789  b", 10, "123456789 \n b"),
            ("123456  b c", 10, "123456  b \nc"),
            ("123456  \nb", 10, "123456  \nb"),
            ("123456789   ", 10, "123456789   "),
            ("123456789   \nb", 10, "123456789   \nb"),
            // Tabs.
            ("a\tb c", 11, "a\tb \nc"),
            ("a\tb", 9, "a\t\nb"),
            ("1234\tb", 10, "1234\tb"),
            ("aaaa \u{263a}\u{fe0f}", 7, "aaaa \n\u{263a}\u{fe0f}"),
            // What a terminal shows of controls.
            ("12345 \u{1b}m", 10, "12345 \u{1b}m"),
            ("123456 \u{1b}m", 10, "123456 \n\u{1b}m"),
            ("1 \u{9b}\u{202e}", 15, "1 \u{9b}\u{202e}"),
            ("1 \u{9b}\u{202e}", 14, "1 \n\u{9b}\u{202e}"),
            // A no-break space is not a blank.
            ("one two\u{a0}three", 10, "one \ntwo\u{a0}three"),
            ("# a long heading", 10, "# a long \nheading"),
        ] {
            assert_eq!(wrap(text, columns), expected, "{text:?}");
        }
        let long = "word ".repeat(50);
        let longest = wrap(&long, 2_000).lines().map(|line| line.trim_end().len()).max();
        assert_eq!(longest, Some(99));
    }

    #[test]
    fn characters_are_as_wide_as_a_terminal_shows_them() {
        for (text, columns, expected) in [
            ("日本語日本語", 8, "日本語\n日本語"),
            ("日本語日本語", 7, "日本語\n日本語"),
            ("日本語日本語", 6, "日本\n語日\n本語"),
            ("日本 語日", 8, "日本 語\n日"),
            ("abc日本", 6, "abc日\n本"),
            ("日本語。日本", 7, "日本\n語。日\n本"),
            ("日本「語」", 8, "日本\n「語」"),
            ("한국어 단어", 8, "한국어 \n단어"),
            ("e\u{301}e\u{301}e\u{301} e\u{301}e\u{301}", 7, "e\u{301}e\u{301}e\u{301} e\u{301}e\u{301}"),
            ("e\u{301}e\u{301}e\u{301} e\u{301}e\u{301}", 6, "e\u{301}e\u{301}e\u{301} \ne\u{301}e\u{301}"),
            ("👩\u{200d}👩\u{200d}👧👍🏽❤\u{fe0f}", 7, "👩\u{200d}👩\u{200d}👧👍🏽❤\u{fe0f}"),
            ("👩\u{200d}👩\u{200d}👧👍🏽👍🏽", 5, "👩\u{200d}👩\u{200d}👧👍🏽\n👍🏽"),
            ("👩\u{200d}❤\u{fe0f}\u{200d}👨 ab", 6, "👩\u{200d}❤\u{fe0f}\u{200d}👨 ab"),
            ("👩\u{200d}❤\u{fe0f}\u{200d}👨 ab", 5, "👩\u{200d}❤\u{fe0f}\u{200d}👨 \nab"),
            ("🇩🇪 🇫🇷", 6, "🇩🇪 🇫🇷"),
            ("🇩🇪 🇫🇷", 5, "🇩🇪 \n🇫🇷"),
            ("क्षत्रिय a", 80, "क्षत्रिय a"),
            ("か\u{3099}か\u{3099}か\u{3099}", 5, "か\u{3099}か\u{3099}\nか\u{3099}"),
            // Only emoji are joined, and have a skin tone.
            ("\u{2194}\u{200d}👩 ab", 7, "\u{2194}\u{200d}👩 ab"),
            ("\u{2194}\u{200d}👩 ab", 6, "\u{2194}\u{200d}👩 \nab"),
            ("日🏽", 5, "日🏽"),
            ("日🏽", 4, "日\n🏽"),
        ] {
            assert_eq!(wrap(text, columns), expected, "{text:?} {columns}");
        }
    }

    #[test]
    fn lists_and_quotes_continue_under_their_text() {
        for (text, columns, expected) in [
            ("- one two three", 12, "- one two \n  three"),
            ("* one two three", 12, "* one two \n  three"),
            ("+ one two three", 12, "+ one two \n  three"),
            ("1. one two three", 13, "1. one two \n   three"),
            ("10) one two three", 14, "10) one two \n    three"),
            ("  - one two three", 14, "  - one two \n    three"),
            ("- - one two three", 14, "- - one two \n    three"),
            ("-   one two three", 14, "-   one two \n    three"),
            ("- one\n\n  two three four\n", 12, "- one\n\n  two three \n  four\n"),
            ("- one\n\n    two three four\n", 14, "- one\n\n    two three \n    four\n"),
            ("   one two three", 14, "   one two \n   three"),
            ("> one two three", 12, "> one two \n  three"),
            ("> - one two three", 14, "> - one two \n    three"),
            (">> one two three", 12, ">> one two \n   three"),
            ("- [ ] one two", 10, "- [ ] one \n  two"),
            ("-\tone two", 13, "-\tone \n      two"),
            // These are no markers.
            ("-one two three", 12, "-one two \nthree"),
            ("**one** two three", 12, "**one** two \nthree"),
            ("1234567890. one two", 14, "1234567890. \none two"),
            ("1.5 one two three", 12, "1.5 one two \nthree"),
            ("-\none two three", 12, "-\none two \nthree"),
            // A marker never stays alone on its line, and the indentation leaves room.
            ("- 123456789012 a", 10, "- 123456789012 \n  a"),
            ("a\n      - one two", 10, "a\n      - one \n    two"),
        ] {
            assert_eq!(wrap(text, columns), expected, "{text:?}");
        }
    }

    const LONG: &str = "one two three four";

    #[test]
    fn code_and_tables_are_left_alone() {
        for text in [
            format!("```\n{LONG}\n```\n"),
            format!("```rust and so on\n{LONG}\n{LONG}"),
            format!("~~~ a `b` and c\n{LONG}\n```\n{LONG}\n~~~\n"),
            format!("````\n{LONG}\n```\n{LONG}\n````\n"),
            format!("```\n{LONG}\n``` no\n{LONG}\n    ```\n{LONG}\n````\n"),
            format!("```\n{LONG}\n  ```\n"),
            format!("- a\n\n  ```sh\n  {LONG}\n  ```\n"),
            format!("- ```sh\n  {LONG}\n  ```\n"),
            format!("> ```\n> {LONG}\n> ```\n"),
            format!("```\r\n{LONG}\r\n```\r\n"),
            format!("```日本\n{LONG}\n```\n"),
            format!("| {LONG} |\n|---|---|---|---|\n  | {LONG} |\n"),
            format!("|日本|{LONG}|"),
            format!("- | {LONG} |"),
            format!("    {LONG}\n     {LONG}\n\n    {LONG}\n"),
            format!("a\n\n\t{LONG}\n"),
        ] {
            assert_eq!(wrap(&text, 10), text);
            // What follows is prose.
            let closed = text.ends_with('\n');
            let expected = format!("{text}\n\none two \nthree \nfour");
            assert!(!closed || wrap(&format!("{text}\n\n{LONG}"), 10) == expected, "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_code_is_prose() {
        for (text, expected) in [
            (format!("a\n    {LONG}"), "a\n    one two \n    three \n    four"),
            (format!("``` a` {LONG}"), "``` a` one \ntwo three \nfour"),
            (format!("```a`b {LONG}"), "```a`b one \ntwo three \nfour"),
            (format!("``` aaaaa`b {LONG}"), "``` aaaaa`b \none two \nthree four"),
            (format!("`` {LONG}"), "`` one two \nthree four"),
            (format!("a ``` {LONG}"), "a ``` one \ntwo three \nfour"),
            (format!("a | {LONG}"), "a | one two \nthree four"),
            (format!("- a\n\n    {LONG}"), "- a\n\n    one two \n    three \n    four"),
        ] {
            assert_eq!(wrap(&text, 12), expected, "{text:?}");
        }
    }

    #[test]
    fn a_word_leaves_once_it_has_ended_or_is_too_long() {
        let mut wrapper = Wrapper::default();
        for (piece, expected) in [
            ("on", ""),
            ("e", ""),
            (" ", "one "),
            ("two three fo", "two \nthree "),
            ("ur", ""),
            ("\n", "\nfour\n"),
            ("日", ""),
            ("本", "日"),
            ("\n1234567890", "本\n1234567890"),
            ("1", "1"),
            (" ", " "),
            ("`", ""),
            ("``", ""),
            ("\n", "\n```\n"),
            ("|", ""),
            (" a", "| a"),
            ("\n123456789", "\n"),
            ("0", "1234567890"),
        ] {
            assert_eq!(wrapper.feed(piece, 10), expected, "{piece:?}");
        }
        assert_eq!(wrapper.finish(10), "");
        // It has no width, but it would have to be measured again with each piece.
        assert!(!wrapper.feed(&"\u{301}".repeat(MAX_HELD), 10).is_empty());
    }

    #[test]
    fn a_pause_shows_what_has_come() {
        let mut wrapper = Wrapper::default();
        assert!(!wrapper.holds_word());
        assert_eq!(wrapper.feed("one tw", 10), "one ");
        assert!(wrapper.holds_word());
        assert_eq!(wrapper.pause(10), "tw");
        assert!(!wrapper.holds_word());
        // There is no break within the word, but one after it.
        assert_eq!(wrapper.feed("o345678 t", 10), "o345678 ");
        assert_eq!(wrapper.pause(10), "\nt");
        assert_eq!(wrapper.feed("wo\n`", 10), "wo\n");
        // A fence is still a fence.
        assert_eq!(wrapper.pause(10), "`");
        assert_eq!(wrapper.feed("``\n", 10), "``\n");
        assert_eq!(wrapper.feed("one two three", 10), "one two three");
        assert_eq!(wrapper.pause(10), "");
    }

    #[test]
    fn the_width_may_change_at_any_time() {
        let mut wrapper = Wrapper::default();
        assert_eq!(wrapper.feed("- one two three ", 12), "- one two \n  three ");
        assert_eq!(wrapper.feed("four five ", 20), "four five ");
        assert_eq!(wrapper.feed("six ", 3), "\n six ");
        assert_eq!(wrapper.feed("seven\n", 0), "\nseven\n");
    }

    /// Texts made of the parts that matter here.
    fn texts() -> impl Strategy<Value = String> {
        let part = prop::sample::select(vec![
            " ",
            " ",
            " ",
            "  ",
            "\t",
            "\n",
            "\n",
            "\n\n",
            "\r\n",
            "\r",
            "    ",
            "a",
            "word",
            "words",
            "longer",
            "- ",
            "* ",
            "1. ",
            "23) ",
            "> ",
            "# ",
            "|",
            "`",
            "``",
            "```",
            "```sh\n",
            "````",
            "~~~",
            "日",
            "本語",
            "。",
            "「",
            "e\u{301}",
            "👩",
            "\u{200d}",
            "👧",
            "❤\u{fe0f}",
            "\u{fe0f}",
            "🏽",
            "🇩🇪",
            "\u{1b}",
            "\u{202e}",
            "\u{9b}",
            "\u{a0}",
            "ä",
            "supercalifragilistic",
        ]);
        prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn splits_make_no_difference(text in texts(), at in prop::collection::vec(any::<prop::sample::Index>(), 0..9), columns in 1..40_usize) {
            let boundaries: Vec<usize> = text.char_indices().map(|(index, _)| index).chain([text.len()]).collect();
            let mut at: Vec<usize> = at.iter().map(|at| *at.get(&boundaries)).chain([0, text.len()]).collect();
            at.sort_unstable();
            let pieces = at.windows(2).map(|ends| &text[ends[0]..ends[1]]);
            prop_assert_eq!(wrapped(pieces, columns), wrapped([text.as_str()], columns));
        }

        #[test]
        fn without_the_breaks_it_is_the_text(
            text in prop_oneof![texts(), any::<String>()],
            columns in prop::collection::vec(0..30_usize, 1..4),
        ) {
            let mut wrapper = Wrapper::default();
            let mut whole = String::new();
            for (number, character) in text.chars().enumerate() {
                let columns = columns[number % columns.len()];
                whole += &wrapper.feed(character.encode_utf8(&mut [0; 4]), columns);
                if number % 7 == 0 {
                    whole += &wrapper.pause(columns);
                }
            }
            whole += &wrapper.finish(columns[0]);
            prop_assert!(is_wrapped(&whole, &text), "{:?} {:?}", whole, text);
        }

        #[test]
        fn no_line_of_prose_is_too_long_unless_it_is_one_word(text in texts(), columns in 2..40_usize) {
            // How wide a joiner or a modifier is that follows nothing it belongs to, terminals do not agree on.
            let text = text.replace(['|', '`', '~', '\t', '\r', '\u{200d}', '\u{fe0f}', '🏽'], "");
            let text: String = text.split('\n').map(|line| line.trim_start().to_owned() + "\n").collect();
            for line in wrap(&text, columns).lines() {
                let words = line.trim_end_matches(' ').trim_start_matches(|character: char| " -*>.)".contains(character) || character.is_ascii_digit());
                let shown = visible(line.trim_end_matches(' '));
                prop_assert!(shown.width() < columns || !words.contains(' '), "{:?} {}", line, columns);
            }
        }

        #[test]
        fn no_break_hides_a_carriage_return(text in "[a-c\\r ]{0,30}", columns in 2..12_usize) {
            let shown = |text: &str| visible(text).matches("^M").count();
            prop_assert_eq!(shown(&wrap(&text, columns)), shown(&text));
        }

        #[test]
        fn blanks_do_not_fill_a_line(words in prop::collection::vec((0..12_usize, 1..4_usize), 1..20), columns in 2..20_usize) {
            let text: String = words.iter().map(|(letters, blanks)| "a".repeat(letters + 1) + &" ".repeat(*blanks)).collect();
            let text = text.trim_end();
            for line in wrap(text, columns).lines() {
                prop_assert!(!line.trim().is_empty(), "{:?}", line);
                let fits = line.len() <= columns || line.trim_end().len() > columns;
                prop_assert!(fits, "{:?} has blanks beyond the edge of {}", line, columns);
            }
        }

        #[test]
        fn what_is_in_a_fence_is_never_broken(text in texts(), columns in 1..20_usize) {
            let code = text.replace(['`', '~'], "'");
            for fenced in [format!("```\n{code}\n```\n"), format!("~~~~ x\n{code}\n~~~~\n")] {
                prop_assert_eq!(wrap(&fenced, columns), fenced);
            }
        }
    }
}
