//! Prepares text for a terminal: escapes it, wraps it between words, and styles it (pure).
//!
//! Code and tables are not wrapped. A break is a newline and the indentation after it. The blanks before a word stay before
//! the break, at the end of their line, where nobody sees them. Without the breaks, the output is the model's text, with its
//! controls in a visible form. How the text is split into pieces makes no difference, unless a pause shows the beginning of a
//! word that turns out to be too long for its line.

use super::held_word::HeldWord;
use super::inline_markdown::InlineMarkdown;
use super::styled_text::{Style, StyledText};
use crate::text::escape::Escaper;
use crate::text::markdown::{
    BlockContext, CodePart, LineKind, MarkdownReader, column_after, is_blank,
};

/// Longer lines are hard to read, however wide the terminal is.
const MAX_COLUMNS: usize = 100;

/// What is longer, in bytes, is shown before it has ended.
const MAX_HELD: usize = 4_000;

/// The options for text on a terminal.
#[derive(Clone, Copy, Default)]
pub struct DisplayOptions {
    /// Whether prose is wrapped.
    pub wraps: bool,
    /// Whether Markdown gets weight and colour.
    pub styles: bool,
}

/// Text that is being wrapped and styled, and may come in pieces. An unfinished word is held back, and so is what may be a
/// closing fence. The work grows with the text, whatever it is: of a word that is shown only the end is looked at again.
pub struct Formatter {
    display: DisplayOptions,
    escaper: Escaper,
    /// The columns of the terminal.
    columns: usize,
    line: OpenLine,
    /// What can be shown and has not been taken.
    output: StyledText,
}

/// The last line of the text, as far as it has come.
struct OpenLine {
    reader: MarkdownReader,
    /// The column of the next character.
    column: usize,
    /// Whether prose is before the next word, since the last break, so that there may be a break between them. There is none
    /// after a marker, which would stay alone on its line. There is none after a fence, either, which may be shown before the
    /// line turns out to be prose.
    follows_prose: bool,
    inline: InlineMarkdown,
    word: HeldWord,
    /// In fenced code: what may be the closing fence, as far as it is not shown.
    fence: String,
}

impl OpenLine {
    fn new(reader: MarkdownReader) -> OpenLine {
        OpenLine {
            reader,
            column: 0,
            follows_prose: false,
            inline: InlineMarkdown::default(),
            word: HeldWord::default(),
            fence: String::new(),
        }
    }

    /// Whether a part of it waits for the rest.
    fn is_held_back(&self) -> bool {
        !self.word.held().is_empty() || !self.fence.is_empty()
    }
}

/// Returns a line of q's own, wrapped. Its further lines are indented under its text, which begins at this column.
pub fn wrapped(line: &str, begin: usize, columns: usize) -> String {
    let display = DisplayOptions {
        wraps: true,
        styles: false,
    };
    let mut formatter = Formatter::with_line(display, MarkdownReader::of_prose(begin));
    formatter.feed(line, columns) + &formatter.finish(columns)
}

impl Formatter {
    pub fn new(display: DisplayOptions) -> Formatter {
        Formatter::with_line(display, MarkdownReader::new(BlockContext::default()))
    }

    fn with_line(display: DisplayOptions, reader: MarkdownReader) -> Formatter {
        Formatter {
            display,
            escaper: Escaper::default(),
            columns: 0,
            line: OpenLine::new(reader),
            output: StyledText::new(display.styles),
        }
    }

    /// Returns as much of the text as can be shown, with this piece, on a terminal of this many columns.
    pub fn feed(&mut self, piece: &str, columns: usize) -> String {
        let visible = self.escaper.feed(piece);
        if !self.display.wraps && !self.display.styles {
            return visible;
        }
        self.columns = columns;
        self.push_all(&visible);
        if self.line.is_held_back() && self.need_not_wait() {
            self.show_held();
            self.line.word.mark_shown();
        }
        self.output.take()
    }

    /// Returns what is held back of the text, after a pause.
    pub fn pause(&mut self, columns: usize) -> String {
        self.columns = columns;
        if self.line.is_held_back() {
            self.show_held();
            self.line.word.mark_paused();
        }
        self.output.take()
    }

    /// Returns what was held back of the text, now that nothing follows. After this, another text may come.
    pub fn finish(&mut self, columns: usize) -> String {
        self.columns = columns;
        let held = self.escaper.finish();
        self.push_all(held);
        self.end_line();
        let text = self.output.take();
        *self = Formatter::new(self.display);
        text
    }

    fn push_all(&mut self, text: &str) {
        for character in text.chars() {
            if character == '\n' {
                let context = self.end_line();
                self.output.push(Style::PLAIN, "\n");
                self.line = OpenLine::new(MarkdownReader::new(context));
            } else {
                self.push(character);
            }
        }
    }

    fn push(&mut self, character: char) {
        self.line.reader.push(character);
        match self.line.reader.kind() {
            LineKind::Code(part) => self.push_code(part, character),
            kind if is_blank(character) => self.push_blank(kind, character),
            kind => self.push_letter(kind, character),
        }
    }

    /// Adds a character of code. What may be a closing fence waits for the end of its line. Markers of quotes look like those
    /// outside of code.
    fn push_code(&mut self, part: CodePart, character: char) {
        let line = &mut self.line;
        line.fence.push(character);
        line.column = column_after(line.column, character);
        let style = match part {
            CodePart::MayClose => return,
            CodePart::Margin => Style::DIM,
            CodePart::Text => Style::CODE,
        };
        self.output.push(style, &line.fence);
        line.fence.clear();
    }

    fn push_blank(&mut self, kind: LineKind, blank: char) {
        self.end_word(kind, blank);
        let line = &mut self.line;
        line.inline.end_word();
        let style = base_style(kind) | line.inline.style();
        self.output.push(style, blank.encode_utf8(&mut [0; 4]));
        line.column = column_after(line.column, blank);
    }

    fn push_letter(&mut self, kind: LineKind, letter: char) {
        if self.line.word.ends_before(letter) {
            self.end_word(kind, letter);
        }
        self.line.word.push(letter);
    }

    /// Shows what is held back of the line, now that it has ended. Returns the context of the next line.
    fn end_line(&mut self) -> BlockContext {
        let end = self.line.reader.end();
        self.show_fence(end.kind);
        self.end_word(end.kind, '\n');
        end.context
    }

    /// Shows the word, which has ended, because this follows.
    fn end_word(&mut self, kind: LineKind, next: char) {
        if self.line.word.is_empty() {
            return;
        }
        self.show_word(kind, Some(next));
        self.line.word.clear();
        self.line.follows_prose = is_prose(kind);
    }

    /// Whether what is held back need not wait for its end: it is long, or it is a word of which a part is shown already or that
    /// fits on no line.
    fn need_not_wait(&mut self) -> bool {
        let room = self.width().saturating_sub(self.indent());
        let line = &mut self.line;
        let length = line.word.held().len();
        // Many bytes may take no columns, but none takes more than one.
        line.fence.len() > MAX_HELD
            || length > MAX_HELD
            || line.word.has_shown_part()
            || length > room && line.word.width() > room
    }

    /// Shows what is held back, although it has not ended.
    fn show_held(&mut self) {
        self.show_fence(self.line.reader.end().kind);
        self.show_word(self.line.reader.kind(), None);
    }

    /// Shows what may be a closing fence, which it is if the line is of that kind.
    fn show_fence(&mut self, kind: LineKind) {
        let style = match kind {
            LineKind::Closing => Style::DIM,
            _ => Style::CODE,
        };
        self.output.push(style, &self.line.fence);
        self.line.fence.clear();
    }

    /// Shows what is held back of the word. If there is no room for it, a word begins the next line, unless a part of it is shown
    /// already. `next` is what follows the word, if it has ended.
    fn show_word(&mut self, kind: LineKind, next: Option<char>) {
        let width = self.line.word.width();
        let room = self.width().saturating_sub(self.line.column);
        let may_break =
            is_prose(kind) && self.line.follows_prose && !self.line.word.has_shown_part();
        if may_break && width > room {
            self.break_line();
        }
        self.style_word(kind, next);
        self.line.column += width;
    }

    fn break_line(&mut self) {
        let indent = self.indent();
        self.output.push(Style::PLAIN, "\n");
        self.output.push(Style::PLAIN, &" ".repeat(indent));
        self.line.column = indent;
        self.line.follows_prose = false;
    }

    /// Puts what is held back of the word into the output, as words of such lines look.
    fn style_word(&mut self, kind: LineKind, next: Option<char>) {
        let line = &mut self.line;
        let word = line.word.held();
        match kind {
            LineKind::Table if !is_of_rule(line.word.text()) => self.style_cells(next),
            LineKind::Indented => self.output.push(Style::PLAIN, word),
            LineKind::Prose | LineKind::Heading => {
                line.inline
                    .push(base_style(kind), word, next, &mut self.output);
            }
            // An unfinished word at the beginning of a line may become a marker or text.
            LineKind::Margin if next.is_none() => {
                line.inline.push(Style::PLAIN, word, next, &mut self.output);
            }
            // Markers, fences and rules of tables. Lines of code have no words.
            _ => self.output.push(Style::DIM, word),
        }
    }

    /// Puts what is held back of a word of a table into the output. It may have several cells. Their contents look like prose.
    fn style_cells(&mut self, next: Option<char>) {
        let line = &mut self.line;
        let word = line.word.text();
        let mut begin = word.len() - line.word.held().len();
        for (bar, _) in word.match_indices('|') {
            if bar < begin || is_escaped(word, bar) {
                continue;
            }
            let cell = &word[begin..bar];
            line.inline
                .push(Style::PLAIN, cell, Some('|'), &mut self.output);
            // Nothing that a cell opens is open in the next one.
            line.inline = InlineMarkdown::default();
            self.output.push(Style::DIM, "|");
            begin = bar + 1;
        }
        let rest = &word[begin..];
        line.inline.push(Style::PLAIN, rest, next, &mut self.output);
    }

    /// Returns the columns that a line may have. The last column of the terminal is left for a blank.
    fn width(&self) -> usize {
        if self.display.wraps {
            self.columns.saturating_sub(1).clamp(1, MAX_COLUMNS)
        } else {
            usize::MAX
        }
    }

    /// Returns how far a line is indented after a break: as far as the text before it, but at most half the line.
    fn indent(&self) -> usize {
        self.line.reader.begin.min(self.width() / 2)
    }
}

/// Whether a line is wrapped, and its words have styles of their own.
fn is_prose(kind: LineKind) -> bool {
    matches!(kind, LineKind::Prose | LineKind::Heading)
}

/// Returns the style of text without marks.
fn base_style(kind: LineKind) -> Style {
    match kind {
        LineKind::Heading => Style::BOLD,
        _ => Style::PLAIN,
    }
}

/// Whether there is a backslash before this place of a table that makes a bar a part of its cell, also in code (GitHub Flavored
/// Markdown, 4.10).
fn is_escaped(word: &str, place: usize) -> bool {
    let before = &word[..place];
    let backslashes = before.len() - before.trim_end_matches('\\').len();
    backslashes % 2 == 1
}

/// Whether a word of a table is part of its rule.
fn is_of_rule(word: &str) -> bool {
    word.len() > 1 && word.contains('-') && word.chars().all(|character| "|-:".contains(character))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::time::{Duration, Instant};

    use super::*;
    use crate::output::code::{Audience, extract};
    use crate::text::columns::width;
    use crate::text::escape::escape;

    const WRAPS: DisplayOptions = display(true, false);
    const BOTH: DisplayOptions = display(true, true);
    const STYLES: DisplayOptions = display(false, true);

    const fn display(wraps: bool, styles: bool) -> DisplayOptions {
        DisplayOptions { wraps, styles }
    }

    /// The text in these pieces, escaped and formatted.
    fn formatted<'a>(
        pieces: impl IntoIterator<Item = &'a str>,
        display: DisplayOptions,
        columns: usize,
    ) -> String {
        let mut formatter = Formatter::new(display);
        let mut text = String::new();
        for piece in pieces {
            text += &formatter.feed(piece, columns);
        }
        text + &formatter.finish(columns)
    }

    fn wrapped<'a>(pieces: impl IntoIterator<Item = &'a str>, columns: usize) -> String {
        formatted(pieces, WRAPS, columns)
    }

    /// Whether a wrapped text is this text but for newlines and indentation that were added.
    fn is_wrapped(wrapped: &str, text: &str) -> bool {
        let spaces = |text: &str| text.len() - text.trim_start_matches(' ').len();
        let (mut wrapped, mut text) = (wrapped, text);
        while let Some(character) = wrapped.chars().next() {
            let rest = &wrapped[character.len_utf8()..];
            match text.strip_prefix(character) {
                Some(after) => (wrapped, text) = (rest, after),
                None if character == '\n' => {
                    wrapped = &rest[spaces(rest).saturating_sub(spaces(text))..];
                }
                None => return false,
            }
        }
        text.is_empty()
    }

    fn wrap(text: &str, columns: usize) -> String {
        let wrapped = wrapped([text], columns);
        assert!(is_wrapped(&wrapped, &escape(text)), "{wrapped:?} {text:?}");
        wrapped
    }

    #[test]
    fn an_endless_word_takes_bounded_memory_and_is_styled_like_a_short_one() {
        const NEXT: &str = "\n**next**\n";
        for begin in [
            "", "- ", "a ", "# ", "    ", "| ", "|", "```", "```\n", "~~~", "> ", ">", "**",
        ] {
            let mut formatter = Formatter::new(BOTH);
            let mut shown = formatter.feed(begin, 80);
            for _ in 0..50 {
                shown += &formatter.feed(&"x".repeat(MAX_HELD / 4), 80);
                let is_right = formatter.line.word.text().len() <= 2 * MAX_HELD;
                assert!(is_right, "{begin}: {}", formatter.line.word.text().len());
            }
            shown += &formatter.feed(NEXT, 80);
            shown += &formatter.finish(80);
            let short = formatted([begin, "xxx", NEXT], BOTH, 80);
            let after = |shown: &str| shown.rsplit('\n').nth(1).map(str::to_owned);
            assert_eq!(after(&shown), after(&short), "{begin}");
        }
    }

    #[test]
    fn prose_is_broken_between_words() {
        // One column less than the terminal has is used.
        for (text, columns, expected) in [
            ("", 10, ""),
            ("one two three", 10, "one two \nthree"),
            ("one two345", 10, "one \ntwo345"),
            ("one two\nthree four\n", 10, "one two\nthree \nfour\n"),
            ("one two\r\nthree four\r\n", 10, "one two\nthree \nfour\n"),
            ("12345 78\rx", 10, "12345 \n78^Mx"),
            // Words that are longer than the line.
            ("a 1234567890123 b", 10, "a \n1234567890123 \nb"),
            // Blanks stay before the break.
            ("123456789  b", 10, "123456789  \nb"),
            ("123456  b c", 10, "123456  b \nc"),
            ("123456789   \nb", 10, "123456789   \nb"),
            // Tabs.
            ("a\tb c", 11, "a\tb \nc"),
            ("a\tb", 9, "a\t\nb"),
            ("1234\tb", 10, "1234\tb"),
            ("aaaa \u{263a}\u{fe0f}", 7, "aaaa \n\u{263a}\u{fe0f}"),
            // What a terminal shows of controls.
            ("12345 \u{1b}m", 10, "12345 ^[m"),
            ("1 \u{9b}\u{202e}", 14, "1 \n<9B><U+202E>"),
            // A no-break space is not a blank.
            ("one two\u{a0}three", 10, "one \ntwo\u{a0}three"),
            ("# a long heading", 10, "# a long \nheading"),
        ] {
            assert_eq!(wrap(text, columns), expected, "{text:?}");
        }
        let long = "sword ".to_owned() + &"word ".repeat(50);
        let longest = wrap(&long, 2_000)
            .lines()
            .map(|line| line.trim_end().len())
            .max();
        assert_eq!(longest, Some(100));
    }

    #[test]
    fn wrapping_counts_the_columns_that_a_terminal_gives_to_each_character() {
        // The columns, and the text with the breaks that it gets.
        for (columns, expected) in [
            (7, "日本語\n日本語"),
            (6, "日本\n語日\n本語"),
            (6, "abc日\n本"),
            (7, "日本\n語。日\n本"),
            (7, "日本\n「語」\n日"),
            (7, "日本\n語、\n「日」"),
            (7, "e\u{301}e\u{301}e\u{301} e\u{301}e\u{301}"),
            (6, "e\u{301}e\u{301}e\u{301} \ne\u{301}e\u{301}"),
            (7, "👩\u{200d}👩\u{200d}👧👍🏽❤\u{fe0f}"),
            (5, "👩\u{200d}👩\u{200d}👧👍🏽\n👍🏽"),
            (5, "👩\u{200d}❤\u{fe0f}\u{200d}👨 \nab"),
            (5, "🇩🇪 \n🇫🇷"),
            (5, "か\u{3099}か\u{3099}\nか\u{3099}"),
            // Only emoji are joined, and have a skin tone.
            (7, "\u{2194}\u{200d}👩 ab"),
            (6, "\u{2194}\u{200d}👩 \nab"),
            (11, "سلام لا \nإلا إلا"),
            (12, "سلام لا إلا"),
            (5, "日🏽"),
            (4, "日\n🏽"),
        ] {
            let text = expected.replace('\n', "");
            assert_eq!(wrap(&text, columns), expected, "{columns}");
        }
    }

    #[test]
    fn wrapped_lists_and_quotes_continue_under_their_text() {
        for (text, columns, expected) in [
            ("- one two three", 12, "- one two \n  three"),
            ("10) one two three", 14, "10) one two \n    three"),
            ("  - one two three", 14, "  - one two \n    three"),
            ("-   one two three", 14, "-   one two \n    three"),
            (
                "- one\n\n    two three four\n",
                14,
                "- one\n\n    two three \n    four\n",
            ),
            ("> - one two three", 14, "> - one two \n    three"),
            (">> one two three", 12, ">> one two \n   three"),
            ("- [ ] one two", 10, "- [ ] one \n  two"),
            ("-\tone two", 13, "-\tone \n      two"),
            // These are no markers.
            ("-one two three", 12, "-one two \nthree"),
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
    fn code_and_tables_are_not_wrapped() {
        for text in [
            format!("```rust and so on\n{LONG}\n{LONG}"),
            format!("~~~ a `b` and c\n{LONG}\n```\n{LONG}\n~~~\n"),
            format!("````\n{LONG}\n```\n{LONG}\n````\n"),
            format!("```\n{LONG}\n``` no\n{LONG}\n    ```\n{LONG}\n````\n"),
            format!("- a\n\n  ```sh\n  {LONG}\n  ```\n"),
            format!("> ```\n> {LONG}\n> ```\n"),
            format!("```日本\n{LONG}\n```\n"),
            format!("| {LONG} |\n|---|---|---|---|\n  | {LONG} |\n"),
            format!("|日本|{LONG}|"),
            format!("    {LONG}\n     {LONG}\n\n    {LONG}\n"),
            format!("a\n\n\t{LONG}\n"),
        ] {
            assert_eq!(wrap(&text, 10), text);
            // What follows is prose.
            let closed = text.ends_with('\n');
            let expected = format!("{text}\n\none two \nthree \nfour");
            let is_right = !closed || wrap(&format!("{text}\n\n{LONG}"), 10) == expected;
            assert!(is_right, "{text}");
        }
    }

    #[test]
    fn lines_that_only_look_like_code_or_tables_are_wrapped_as_prose() {
        for (begin, expected) in [
            ("a\n    ", "a\n    one two \n    three \n    four"),
            ("``` a` ", "``` a` one \ntwo three \nfour"),
            ("``` aaaaa`b ", "``` aaaaa`b \none two \nthree four"),
            ("`` ", "`` one two \nthree four"),
            ("a | ", "a | one two \nthree four"),
            ("- a\n\n    ", "- a\n\n    one two \n    three \n    four"),
        ] {
            assert_eq!(wrap(&format!("{begin}{LONG}"), 12), expected, "{begin:?}");
        }
    }

    /// The characters, each with the parameters of the style that it has.
    fn cells(text: &str) -> Vec<(char, String)> {
        let (mut cells, mut style) = (Vec::new(), String::new());
        let mut rest = text.chars();
        while let Some(character) = rest.next() {
            match character {
                '\u{1b}' => {
                    let parameters = rest.by_ref().skip(1);
                    style.extend(parameters.take_while(|character| *character != 'm'));
                    style = style.rsplit('0').next().unwrap_or_default().to_owned();
                }
                _ => cells.push((character, style.clone())),
            }
        }
        cells
    }

    /// The text with the parameters of each style before what has it, and `›` after that.
    fn styled(text: &str, columns: usize) -> String {
        let mut formatter = Formatter::new(BOTH);
        let shown = formatter.feed(&(escape(text) + "\n"), columns);
        shown
            .strip_suffix('\n')
            .expect("a line")
            .replace("\u{1b}[0m", "›")
            .replace("\u{1b}[", "‹")
    }

    /// The text of what is shown like this: without the parameters of styles and their ends.
    fn unstyled(shown: &str) -> String {
        let mut parts = shown.split('‹');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            text += part.split_once('m').expect("parameters").1;
        }
        text.replace('›', "")
    }

    #[test]
    fn lines_are_styled_by_their_kind() {
        for expected in [
            "‹1m# a b›\n",
            "‹1m###### a ›‹1m‹36m`b`›\nc",
            "‹2m-› a\n  ‹2m-› b\n\n    ‹1m# c›",
            "####### a",
            "#a #",
            "#\n",
            "a\n    # b",
            "‹2m-› a\n‹2m1.› ‹1m**b**›",
            "‹2m>› a\n‹2m>›\n‹2m>› ‹2m-› b\n",
            "-\na - b",
            "a | ‹1m**b**›",
            "‹2m```sh› ‹2mx›\n‹36m#!/bin/sh›\n‹2m  ›‹36m**a** >`b`›\n\n‹2m```›\nc",
            "‹2m-› ‹2m```›\n‹2m  ›‹36ma›\n‹2m  ```›",
            "‹2m```›\n‹36m``` a›\n‹36m`` b›\n‹2m````›\n",
            // Code that is only indented may as well be text.
            "a\n\n    b **c**\n",
            "‹2m```› a` ‹1m**b**›",
            "‹1m**a›\nb**",
        ] {
            assert_eq!(styled(&unstyled(expected), 80), expected);
        }
        assert_eq!(styled("**a\u{1b}[0m**", 80), "‹1m**a^[[0m**›");
        // A style ends before a break and begins again after it.
        let expected = "‹2m-› ‹1m**one two ›\n  ‹1mthree**› \n  four";
        assert_eq!(styled("- **one two three** four", 12), expected);
    }

    #[test]
    fn bars_and_rules_of_tables_are_faint_and_cells_are_styled_like_prose() {
        for expected in [
            "‹2m|› ‹1m**a**› ‹2m|› b ‹2m|›\n‹2m|---|---|›",
            "‹2m|›‹36m`a`›‹2m|›‹3m*b*›‹2m|›c‹2m|›",
            "‹2m|› a ‹2m|›\n‹2m|› ‹2m:--› ‹2m|›\n‹2m|› - ‹2m|›",
            // A second line with text is no rule.
            "‹2m|›a‹2m|›b‹2m|›\n‹2m|›c‹2m|›-‹2m|›",
            // What is open ends with its cell.
            "‹2m|› ‹1m**a ›‹2m|› b ‹2m|›",
            "‹2m|›*a‹2m|›b*‹2m|›",
            // An escaped bar is a part of its cell.
            "‹2m|› ‹36m`a \\| b`› ‹2m|› ‹1m**a\\|b**› ‹2m|›",
            "‹2m|›a\\\\‹2m|›b\\\\\\|c‹2m|›",
            "‹2m|› snake_case ‹2m|› x**2 ‹2m|› don`t ‹2m|›",
        ] {
            // A table is never wrapped.
            for columns in [80, 5] {
                assert_eq!(styled(&unstyled(expected), columns), expected);
            }
        }
    }

    #[test]
    fn text_after_marks_is_styled_although_a_pause_has_split_them() {
        let mut formatter = Formatter::new(BOTH);
        let mut shown = String::new();
        for piece in [
            "*", " ", "*", "*", "a", " b", "**", " c\n", "#", " d\n", "``", "`", "\n", "e", "\n",
            "`", "``", "\n",
        ] {
            shown += &formatter.feed(piece, 80);
            shown += &formatter.pause(80);
        }
        let bold = cells(&shown).into_iter().filter(|(_, style)| style == "1");
        let bold: String = bold.map(|(cell, _)| cell).collect();
        let code = cells(&shown).into_iter().filter(|(_, style)| style == "36");
        let code: String = code.map(|(cell, _)| cell).collect();
        assert_eq!((bold.as_str(), code.as_str()), ("a b** d", "e`"));
    }

    #[test]
    fn a_word_is_printed_once_it_has_ended_or_is_too_long() {
        let mut wrapper = Formatter::new(WRAPS);
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
            // It has more bytes than there are columns, but not more columns.
            ("\n1234567éé", "\n"),
            (" ", "1234567éé "),
            ("`", ""),
            ("``", ""),
            ("\n", "\n```\n"),
            ("|", ""),
            (" a", "| "),
            ("\n123456789", "a\n"),
            ("0", "1234567890"),
        ] {
            assert_eq!(wrapper.feed(piece, 10), expected, "{piece:?}");
        }
        assert_eq!(wrapper.finish(10), "");
        // It has no width, but it would have to be measured again with each piece.
        assert!(!wrapper.feed(&"\u{301}".repeat(MAX_HELD), 10).is_empty());
    }

    #[test]
    fn a_pause_shows_the_unfinished_word() {
        let mut wrapper = Formatter::new(WRAPS);
        assert!(!wrapper.line.is_held_back());
        assert_eq!(wrapper.feed("one tw", 10), "one ");
        assert!(wrapper.line.is_held_back());
        assert_eq!(wrapper.pause(10), "tw");
        assert!(!wrapper.line.is_held_back());
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
    fn an_unfinished_closing_fence_is_styled_at_a_pause_as_what_it_is_so_far() {
        const END: &str = "\u{1b}[0m";
        const CODE: &str = "\u{1b}[36m";
        const DIM: &str = "\u{1b}[2m";
        // The pieces of a line within code, what is shown of each after a pause, and what its end adds.
        for (pieces, shown, end) in [
            (&["``", "`"][..], &[(CODE, "``"), (DIM, "`")][..], ""),
            (&["```"], &[(DIM, "```")], ""),
            (&["``` "], &[(DIM, "``` ")], ""),
            (&["```", "a"], &[(DIM, "```"), (CODE, "a")], ""),
            (&["  "], &[(DIM, "  ")], ""),
            (&["a`"], &[(CODE, "a`")], ""),
        ] {
            let mut formatter = Formatter::new(BOTH);
            formatter.feed("```\n", 80);
            for (piece, (style, text)) in pieces.iter().zip(shown) {
                let found = formatter.feed(piece, 80) + &formatter.pause(80);
                assert_eq!(found, format!("{style}{text}{END}"), "{pieces:?}");
            }
            assert_eq!(formatter.finish(80), end, "{pieces:?}");
        }
    }

    #[test]
    fn a_changed_width_of_the_terminal_applies_from_the_next_word_on() {
        let mut wrapper = Formatter::new(WRAPS);
        assert_eq!(wrapper.feed("- one two three ", 12), "- one two \n  three ");
        assert_eq!(wrapper.feed("four five ", 20), "four five ");
        assert_eq!(wrapper.feed("six ", 3), "\n six ");
        assert_eq!(wrapper.feed("seven\n", 0), "\nseven\n");
    }

    /// Texts made of the parts that matter here.
    fn texts() -> impl Strategy<Value = String> {
        let parts = " ~ ~ ~  ~\t~\n~\n~\n\n~\r\n~\r~    ~a~word~words~longer~supercalifragilistic~- ~*~**~_~__~\\~* ~1. ~23) ~> ~# ~|\
            ~`~``~```~```sh\n~````~\u{1b}~\u{202e}~\u{9b}~\u{a0}~日~本語~。~👩~👧~🏽~🇩🇪~ä~e\u{301}~\u{200d}~❤\u{fe0f}~\u{fe0f}";
        let parts = Vec::from_iter(parts.split('~').chain(["~~~"]));
        let part = prop::sample::select(parts);
        prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
    }

    /// What a model may repeat without an end, separated by `☐`.
    const REPEATED: &str = " ☐\t☐`☐~☐>☐> ☐*☐* ☐_☐[☐|☐| ☐#☐-☐- ☐7☐1. ☐\u{301}☐👩\u{200d}☐😀☐❤\u{fe0f}☐🇩☐日☐\u{a0}☐&☐\r☐\u{1b}☐x☐word ☐*a☐_a☐,_a☐(*☐\
        *_☐**a** ☐`a`☐ `☐``` ☐~~~ ☐|-☐|a☐\\*☐://☐\n☐```\n";

    /// What comes before it on its line and ends that.
    const AROUND: &[(&str, &str)] = &[
        ("a ", ""),
        ("| ", ""),
        ("```\n", "\n```"),
        ("> ~~~\n> ", "\n> ~~~"),
    ];

    /// How much time of the processor this thread has had; where the system does not say it, how much has passed.
    fn time_taken(since: Instant) -> Duration {
        let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanoseconds = statistics
            .split(' ')
            .next()
            .and_then(|text| text.parse().ok());
        nanoseconds.map_or_else(|| since.elapsed(), Duration::from_nanos)
    }

    /// The time that it takes to print a line of about `length` bytes whose middle is this, and to look for code in it.
    fn time_for(kind: &str, (before, after): (&str, &str), length: usize) -> Duration {
        let line = format!("{before}{}{after}\n", kind.repeat(length / kind.len()));
        let since = Instant::now();
        let began = time_taken(since);
        formatted([line.as_str()], BOTH, 80);
        formatted(line.split_inclusive(|_| true), BOTH, 80);
        let _ = extract(&line, Audience::Program);
        time_taken(since) - began
    }

    #[test]
    fn the_time_to_format_a_line_grows_linearly_with_its_length() {
        const LENGTH: usize = 6_000;
        // Most lines take a quarter of that, and then nothing is compared. Where a line was read again for each character, it
        // took more than a second.
        const FLOOR: Duration = Duration::from_millis(250);
        for kind in REPEATED.split('☐') {
            for around in AROUND {
                // Twice the length takes twice the time, or four times by the square. One attempt may be disturbed.
                let is_linear = || {
                    let long = time_for(kind, *around, LENGTH);
                    long < FLOOR || long < 3 * time_for(kind, *around, LENGTH / 2)
                };
                let is_linear = (0..5).any(|_| is_linear());
                assert!(is_linear, "{kind:?} within {around:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn formatted_text_is_the_same_however_the_answer_is_split(text in texts(), at in prop::collection::vec(any::<prop::sample::Index>(), 0..9), columns in 1..40_usize) {
            let boundaries: Vec<usize> = text.char_indices().map(|(index, _)| index).chain([text.len()]).collect();
            let mut at: Vec<usize> = at.iter().map(|at| *at.get(&boundaries)).chain([0, text.len()]).collect();
            at.sort_unstable();
            let pieces = at.windows(2).map(|ends| &text[ends[0]..ends[1]]);
            prop_assert_eq!(wrapped(pieces.clone(), columns), wrapped([text.as_str()], columns));
            // A mark that is shown before what follows it is plain.
            let styled = |text: String| {
                cells(&text).into_iter().filter(|(character, _)| !"`*_".contains(*character)).collect::<Vec<_>>()
            };
            let whole = formatted([text.as_str()], STYLES, columns);
            prop_assert_eq!(styled(formatted(pieces, STYLES, columns)), styled(whole));
        }

        #[test]
        fn formatted_text_without_breaks_and_styles_is_the_text_of_the_answer(
            text in prop_oneof![texts(), any::<String>()],
            columns in prop::collection::vec(0..30_usize, 1..4),
            pauses in 1..9_usize,
        ) {
            let shown = |display| {
                let (mut formatter, mut parts) = (Formatter::new(display), Vec::new());
                for (number, character) in text.chars().enumerate() {
                    let columns = columns[number % columns.len()];
                    parts.push(formatter.feed(character.encode_utf8(&mut [0; 4]), columns));
                    if number % pauses == 0 {
                        parts.push(formatter.pause(columns));
                    }
                }
                parts.push(formatter.finish(columns[0]));
                // Whatever comes next finds no style on.
                let is_off = |part: &String| part.rsplit_once('\u{1b}').is_none_or(|(_, rest)| rest.starts_with("[0m"));
                assert!(parts.iter().all(is_off), "{parts:?}");
                parts.concat()
            };
            let plain = shown(WRAPS);
            prop_assert!(is_wrapped(&plain, &escape(&text)), "{:?} {:?}", plain, text);
            let styled = cells(&shown(BOTH));
            prop_assert!(styled.iter().all(|(character, style)| *character != '\n' || style.is_empty()));
            prop_assert_eq!(styled.iter().map(|(character, _)| character).collect::<String>(), plain);
            let unwrapped: String = cells(&shown(STYLES)).iter().map(|(character, _)| character).collect();
            prop_assert_eq!(unwrapped, escape(&text));
        }

        #[test]
        fn no_line_of_prose_is_too_long_unless_it_is_one_word(text in texts(), columns in 2..40_usize) {
            // How wide a joiner or a modifier is that follows nothing it belongs to, terminals do not agree on.
            let text = text.replace(['|', '`', '~', '\t', '\r', '\u{200d}', '\u{fe0f}', '🏽'], "");
            let text: String = text.split('\n').map(|line| line.trim_start().to_owned() + "\n").collect();
            for line in wrap(&text, columns).lines() {
                let words = line.trim_end_matches(' ').trim_start_matches(|character: char| " -*>.)".contains(character) || character.is_ascii_digit());
                let shown = escape(line.trim_end_matches(' '));
                prop_assert!(width(&shown) < columns || !words.contains(' '), "{:?} {}", line, columns);
            }
        }

        #[test]
        fn lines_in_a_code_block_are_never_broken(text in texts(), columns in 1..20_usize) {
            let code = escape(&text).replace(['`', '~'], "'");
            for fenced in [format!("```\n{code}\n```\n"), format!("~~~~ x\n{code}\n~~~~\n")] {
                prop_assert_eq!(wrap(&fenced, columns), fenced);
            }
        }
    }
}
