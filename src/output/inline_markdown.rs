//! Bold, italic and colour for the Markdown within a line (pure).
//!
//! Every character stays, also the marks. In case of doubt, text stays plain.

use unicode_width::UnicodeWidthChar;

use super::styled_text::{Style, StyledText};

/// More marks than this in a row are no emphasis.
const MAX_MARKS: usize = 3;

/// The state within a line: which marks have opened strong text, emphasis or code so far.
#[derive(Default)]
pub struct InlineMarkdown {
    /// The line is a heading.
    pub heading: bool,
    /// The mark of the strong text that is open.
    strong: Option<char>,
    /// The mark of the emphasis that is open.
    emphasis: Option<char>,
    /// How many backticks opened code; zero outside code.
    code: usize,
    /// The word has an address of the web, where marks open nothing.
    url: bool,
    /// The character before the marks; `None` after a blank and at the line's start.
    before: Option<char>,
    /// The mark at the end of what has come, and how often it is repeated. What follows decides its meaning.
    mark: char,
    marks: usize,
}

impl InlineMarkdown {
    /// How text looks now.
    pub fn style(&self) -> Style {
        let mut style = Style::PLAIN;
        if self.heading || self.strong.is_some() {
            style = style | Style::BOLD;
        }
        if self.emphasis.is_some() {
            style = style | Style::ITALIC;
        }
        if self.code > 0 {
            style = style | Style::CODE;
        }
        style
    }

    /// A blank has come after a word.
    pub fn end_word(&mut self) {
        self.emphasis = None;
        self.before = None;
        self.marks = 0;
        self.url = false;
    }

    /// Styles a word, or a part of it. `next` is what follows it, if that has come.
    pub fn put(&mut self, mut text: &str, next: Option<char>, output: &mut StyledText) {
        loop {
            if self.marks == 0 {
                let mark_at =
                    text.find(|letter| letter == '`' || self.code == 0 && "*_".contains(letter));
                let plain_end = mark_at.unwrap_or(text.len());
                let (plain, rest) = text.split_at(plain_end);
                output.push(self.style(), plain);
                self.url |= plain.contains("://");
                self.before = plain.chars().next_back().or(self.before);
                let Some(mark) = rest.chars().next() else {
                    return;
                };
                self.mark = mark;
                text = rest;
            }
            let rest = text.trim_start_matches(self.mark);
            let marks = &text[..text.len() - rest.len()];
            self.marks += marks.len();
            let style_before = self.style();
            let Some(after) = rest.chars().next().or(next) else {
                return output.push(style_before, marks);
            };
            self.read_marks(after, rest, next);
            // Marks look like the text between them.
            output.push(style_before | self.style(), marks);
            self.before = Some(self.mark);
            self.marks = 0;
            text = rest;
        }
    }

    /// Decides what the marks mean, now that `after` follows them. `rest` is the rest of the word, which begins with `after`.
    fn read_marks(&mut self, after: char, rest: &str, next: Option<char>) {
        let is_escaped = self.before == Some('\\');
        let is_name = self.mark == '_' && self.before == Some('.');
        let is_literal = is_escaped || is_name || self.url;
        let begins_word = !is_part_of_word(self.before) && !after.is_whitespace();
        let opens = begins_word && !is_literal;
        if self.mark == '`' {
            if self.code == self.marks {
                self.code = 0;
            } else if self.code == 0 && opens {
                self.code = self.marks;
            }
            return;
        }

        let ends_word = self.mark == '*' || !is_in_word(after);
        let closes = ends_word && self.before.is_some() && !is_escaped;
        // Three marks make text strong and emphasized.
        if (2..=MAX_MARKS).contains(&self.marks) {
            if self.strong.is_none() && opens && after != '/' {
                self.strong = Some(self.mark);
            } else if self.strong == Some(self.mark) && closes {
                self.strong = None;
            }
        }
        if is_emphasis(self.marks) {
            let may_open = self.emphasis.is_none() && opens;
            if may_open && self.closes_within(rest, next) {
                self.emphasis = Some(self.mark);
            } else if self.emphasis == Some(self.mark) && closes {
                self.emphasis = None;
            }
        }
    }

    /// Whether the next marks in the rest of the word close the emphasis that opens here.
    fn closes_within(&self, rest: &str, next: Option<char>) -> bool {
        for (at, _) in rest.match_indices(self.mark) {
            let (inside, end) = rest.split_at(at);
            let after = end.trim_start_matches(self.mark);
            let before = inside.chars().next_back();
            let follows = after.chars().next().or(next);
            if self.mark == '_' && is_part_of_word(before) && is_part_of_word(follows) {
                continue;
            }
            let ends_word = self.mark == '*' || follows.is_some_and(|letter| !is_in_word(letter));
            let has_text = inside.contains(char::is_alphanumeric);
            return is_emphasis(end.len() - after.len()) && ends_word && has_text;
        }
        false
    }
}

fn is_emphasis(marks: usize) -> bool {
    matches!(marks, 1 | MAX_MARKS)
}

fn is_part_of_word(character: Option<char>) -> bool {
    character.is_some_and(is_in_word)
}

/// Whether the character is part of a word: a mark beside it may be part of the word, too. Wide characters do not count,
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
            inline.put(word.trim_end(), blank.or(Some('\n')), &mut output);
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
    fn marks_style_what_is_between_them() {
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
    fn what_may_be_something_else_stays_plain() {
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
    fn marks_before_a_pause_count_with_what_follows() {
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
                inline.put(part, None, &mut output);
                shown += &output.take();
            }
            inline.put("", Some('\n'), &mut output);
            assert_eq!(shown + &output.take(), expected, "{parts:?}");
        }
    }
}
