//! Reads the Markdown within a line, and makes its text bold, italic or coloured (pure).
//!
//! Every character stays, also the marks. In case of doubt, text stays plain.

use unicode_width::UnicodeWidthChar;

use super::styled_text::{Style, StyledText};

/// More marks than this in a row are no emphasis.
const MAX_MARKS: usize = 3;

/// The marks of a line that are open: they have opened strong text, emphasis or code that is not closed.
#[derive(Default)]
pub struct InlineMarkdown {
    /// The mark of the strong text that is open.
    strong: Option<char>,
    /// The mark of the emphasis that is open.
    emphasis: Option<char>,
    /// How many backticks opened the code that is open.
    code: Option<usize>,
    word: InlineWord,
}

/// The current word, as far as it has been read.
#[derive(Default)]
struct InlineWord {
    /// Whether it has a URL, where marks open nothing.
    has_url: bool,
    /// The last character before the unread marks; `None` if the word begins with them.
    before: Option<char>,
    /// The marks at its end, whose meaning depends on what follows.
    unread: Option<Marks>,
}

/// The same mark, a number of times in a row.
#[derive(Clone, Copy)]
struct Marks {
    mark: char,
    count: usize,
}

/// The ways in which marks may be used, by the characters before and after them.
#[derive(Clone, Copy)]
struct Sides {
    opens: bool,
    closes: bool,
}

impl InlineMarkdown {
    /// Returns how text looks now.
    pub fn style(&self) -> Style {
        let mut style = Style::PLAIN;
        if self.strong.is_some() {
            style = style | Style::BOLD;
        }
        if self.emphasis.is_some() {
            style = style | Style::ITALIC;
        }
        if self.code.is_some() {
            style = style | Style::CODE;
        }
        style
    }

    /// Goes on to the next word, after a blank. Only emphasis ends with its word.
    pub fn end_word(&mut self) {
        self.emphasis = None;
        self.word = InlineWord::default();
    }

    /// Puts a word, or a part of it, into the output with its styles and this one. `next` is what follows it, if that has come.
    pub fn push(
        &mut self,
        base: Style,
        mut text: &str,
        next: Option<char>,
        output: &mut StyledText,
    ) {
        loop {
            // These marks may continue some at the end of an earlier part.
            let earlier = self.word.unread.take();
            if earlier.is_none() {
                text = self.push_plain(base, text, output);
            }
            let mark = match earlier {
                Some(earlier) => Some(earlier.mark),
                None => text.chars().next(),
            };
            let Some(mark) = mark else {
                return;
            };
            let rest = text.trim_start_matches(mark);
            let shown = &text[..text.len() - rest.len()];
            let count = earlier.map_or(0, |earlier| earlier.count) + shown.len();
            let marks = Marks { mark, count };
            let style_before = base | self.style();
            let Some(after) = rest.chars().next().or(next) else {
                output.push(style_before, shown);
                self.word.unread = Some(marks);
                return;
            };
            self.read_marks(marks, after, rest, next);
            // Marks look like the text between them.
            output.push(style_before | self.style(), shown);
            self.word.before = Some(marks.mark);
            text = rest;
        }
    }

    /// Puts the text before the first mark into the output, and returns the rest. In code, only backticks are marks.
    fn push_plain<'a>(&mut self, base: Style, text: &'a str, output: &mut StyledText) -> &'a str {
        let is_in_code = self.code.is_some();
        let is_mark = |letter| letter == '`' || !is_in_code && "*_".contains(letter);
        let (plain, rest) = text.split_at(text.find(is_mark).unwrap_or(text.len()));
        output.push(base | self.style(), plain);
        self.word.has_url |= plain.contains("://");
        self.word.before = plain.chars().next_back().or(self.word.before);
        rest
    }

    /// Opens or closes what these marks open or close. The rest of the word follows them, and then `next`.
    fn read_marks(&mut self, marks: Marks, after: char, rest: &str, next: Option<char>) {
        let sides = self.sides_of(marks, after);
        if marks.mark == '`' {
            self.read_backticks(marks, sides);
            return;
        }
        // Three marks make text strong and emphasized.
        if (2..=MAX_MARKS).contains(&marks.count) {
            self.read_strong(marks, sides, after);
        }
        if is_emphasis(marks.count) {
            self.read_emphasis(marks, sides, rest, next);
        }
    }

    fn sides_of(&self, marks: Marks, after: char) -> Sides {
        let before = self.word.before;
        let is_escaped = before == Some('\\');
        let is_name = marks.mark == '_' && before == Some('.');
        let is_literal = is_escaped || is_name || self.word.has_url;
        let begins_word = !is_part_of_word(before) && !after.is_whitespace();
        let ends_word = marks.mark == '*' || !is_in_word(after);
        Sides {
            opens: begins_word && !is_literal,
            closes: ends_word && before.is_some() && !is_escaped,
        }
    }

    /// Reads backticks, which open or close code. It is closed by as many backticks as opened it, whatever is next to them.
    fn read_backticks(&mut self, marks: Marks, sides: Sides) {
        if self.code == Some(marks.count) {
            self.code = None;
        } else if self.code.is_none() && sides.opens {
            self.code = Some(marks.count);
        }
    }

    fn read_strong(&mut self, marks: Marks, sides: Sides, after: char) {
        let is_pattern = after == '/';
        if self.strong.is_none() && sides.opens && !is_pattern {
            self.strong = Some(marks.mark);
        } else if self.strong == Some(marks.mark) && sides.closes {
            self.strong = None;
        }
    }

    fn read_emphasis(&mut self, marks: Marks, sides: Sides, rest: &str, next: Option<char>) {
        let may_open = self.emphasis.is_none() && sides.opens;
        if may_open && closes_within(marks.mark, rest, next) {
            self.emphasis = Some(marks.mark);
        } else if self.emphasis == Some(marks.mark) && sides.closes {
            self.emphasis = None;
        }
    }
}

/// Whether the next marks in the rest of the word close the emphasis that this mark opens.
fn closes_within(mark: char, rest: &str, next: Option<char>) -> bool {
    for (at, _) in rest.match_indices(mark) {
        let (inside, end) = rest.split_at(at);
        let after = end.trim_start_matches(mark);
        let before = inside.chars().next_back();
        let follows = after.chars().next().or(next);
        if mark == '_' && is_part_of_word(before) && is_part_of_word(follows) {
            continue;
        }
        let ends_word = mark == '*' || follows.is_some_and(|letter| !is_in_word(letter));
        let has_text = inside.contains(char::is_alphanumeric);
        return is_emphasis(end.len() - after.len()) && ends_word && has_text;
    }
    false
}

fn is_emphasis(marks: usize) -> bool {
    matches!(marks, 1 | MAX_MARKS)
}

fn is_part_of_word(character: Option<char>) -> bool {
    character.is_some_and(is_in_word)
}

/// Whether the character is part of a word: a mark next to it may be part of the word, too. Wide characters do not count,
/// because there are no blanks between their words.
fn is_in_word(character: char) -> bool {
    character.is_alphanumeric() && character.width() != Some(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with `b‹`, `i‹` and `c‹` where a style begins, and `›` where it ends.
    fn styled(line: &str) -> String {
        let (mut inline, mut output) = (InlineMarkdown::default(), StyledText::new(true));
        for word in line.split_inclusive(' ') {
            let blank = word.ends_with(' ').then_some(' ');
            inline.push(
                Style::PLAIN,
                word.trim_end(),
                blank.or(Some('\n')),
                &mut output,
            );
            if blank.is_some() {
                inline.end_word();
                output.push(inline.style(), " ");
            }
        }
        let text = output.take().replace("\u{1b}[0m", "›");
        let text = text.replace("\u{1b}[36m", "c‹").replace("\u{1b}[3m", "i‹");
        let text = text.replace("\u{1b}[1m", "b‹");
        text.replace("i‹c‹", "ic‹")
            .replace("b‹c‹", "bc‹")
            .replace("b‹i‹", "bi‹")
    }

    #[test]
    fn marks_style_the_text_between_them() {
        for (line, expected) in [
            ("a **b c** d", "a b‹**b c**› d"),
            ("(**a**)", "(b‹**a**›)"),
            ("**a**b", "b‹**a**›b"),
            ("**a b", "b‹**a b›"),
            ("**a ** b** c", "b‹**a ** b**› c"),
            ("(*a*), *b*!", "(i‹*a*›), i‹*b*›!"),
            ("*a*b", "i‹*a*›b"),
            ("_a_b_", "i‹_a_b_›"),
            ("***a*** b", "bi‹***a***› b"),
            ("**a *b*** c", "b‹**a ›bi‹*b***› c"),
            ("`a` b", "c‹`a`› b"),
            ("``a`b`` c", "c‹``a`b``› c"),
            ("`**a**` b", "c‹`**a**`› b"),
            ("**`a` b** c", "b‹**›bc‹`a`›b‹ b**› c"),
            ("*`a`* b", "i‹*›ic‹`a`›i‹*› b"),
            ("`a\\` b", "c‹`a\\`› b"),
            ("**http://a/_b_** _c_", "b‹**http://a/_b_**› i‹_c_›"),
            ("これは**重要**です", "これはb‹**重要**›です"),
        ] {
            assert_eq!(styled(line), expected, "{line}");
        }
    }

    #[test]
    fn marks_add_their_style_to_that_of_the_line() {
        const BOLD: &str = "\u{1b}[1m";
        for (word, expected) in [
            ("a", format!("{BOLD}a\u{1b}[0m")),
            ("**a**", format!("{BOLD}**a**\u{1b}[0m")),
            ("*a*", format!("{BOLD}\u{1b}[3m*a*\u{1b}[0m")),
            ("`a`", format!("{BOLD}\u{1b}[36m`a`\u{1b}[0m")),
            (
                "a-`b`",
                format!("{BOLD}a-\u{1b}[0m{BOLD}\u{1b}[36m`b`\u{1b}[0m"),
            ),
        ] {
            let (mut inline, mut output) = (InlineMarkdown::default(), StyledText::new(true));
            inline.push(Style::BOLD, word, Some('\n'), &mut output);
            assert_eq!(output.take(), expected, "{word}");
        }
    }

    #[test]
    fn marks_that_may_be_ordinary_characters_stay_plain() {
        for line in [
            "snake_case my__init__x self.__init__() a_b_c _a a__b__",
            "a*b*c x**2 2 ** 3 a ** b 2 * 3 * 4 *",
            "** a ** __ b __ ` a ` * c * _ d _",
            "*a b* _a b_ *a b_ * _a,_b",
            "don`t a`b`c",
            "\\*a\\* \\**a\\** \\`a\\` \\_a\\_ \\__a__",
            "**/*.rs src/**/*.rs *.rs */5 *.* *,*",
            "**** ****a **** *** ___ --- ****",
            "#!/bin/sh # a",
            "https://example.com/_d_/*e*/__f__ [a](https://example.com/_d_/x)",
        ] {
            assert_eq!(styled(line), line);
        }
    }

    #[test]
    fn marks_before_a_pause_are_read_together_with_the_text_that_follows() {
        for (parts, expected) in [
            (&["**", "a"][..], "**\u{1b}[1ma\u{1b}[0m"),
            (&["*", "*a"], "*\u{1b}[1m*a\u{1b}[0m"),
            (
                &["**a", "**", "b"],
                "\u{1b}[1m**a\u{1b}[0m\u{1b}[1m**\u{1b}[0mb",
            ),
            (
                &["`", "a", "`"],
                "`\u{1b}[36ma\u{1b}[0m\u{1b}[36m`\u{1b}[0m",
            ),
            (&["x", "**", "2"], "x**2"),
        ] {
            let (mut inline, mut output) = (InlineMarkdown::default(), StyledText::new(true));
            let mut shown = String::new();
            for part in parts {
                inline.push(Style::PLAIN, part, None, &mut output);
                shown += &output.take();
            }
            inline.push(Style::PLAIN, "", Some('\n'), &mut output);
            assert_eq!(shown + &output.take(), expected, "{parts:?}");
        }
    }
}
