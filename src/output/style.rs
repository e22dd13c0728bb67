//! Bold, italic and colour for Markdown (pure). Every character stays, marks too; text stays plain in case of doubt.

use unicode_width::UnicodeWidthChar;

/// How text looks: plain, or a sum of the others.
pub(super) type Style = u8;
pub(super) const PLAIN: Style = 0;
pub(super) const BOLD: Style = 1;
pub(super) const DIM: Style = 2;
pub(super) const ITALIC: Style = 4;
pub(super) const CODE: Style = 8;

/// What a terminal is sent for each of them (ECMA-48: SGR). Code is cyan.
const PARAMETERS: &[(Style, &str)] = &[(BOLD, "1"), (DIM, "2"), (ITALIC, "3"), (CODE, "36")];

/// Back to plain.
const RESET: &str = "\u{1b}[0m";

/// More marks than this in a row are no emphasis.
const MAX_MARKS: usize = 3;

/// Builds text for a terminal. A style is on only where text needs it, and never at a line's end.
#[derive(Debug, Default)]
pub(super) struct Pen {
    styles: bool,
    /// The style that is on.
    style: Style,
    text: String,
}

impl Pen {
    /// With `styles` the text has styles, else none.
    pub(super) fn new(styles: bool) -> Pen {
        Pen {
            styles,
            ..Pen::default()
        }
    }

    pub(super) fn put(&mut self, style: Style, text: &str) {
        if self.styles && style != self.style && !text.is_empty() {
            self.reset();
            let mut before = "\u{1b}[";
            for (_, parameter) in PARAMETERS.iter().filter(|(one, _)| style & one != 0) {
                self.text += before;
                self.text += parameter;
                before = ";";
            }
            if style != PLAIN {
                self.text.push('m');
            }
            self.style = style;
        }
        self.text.push_str(text);
    }

    pub(super) fn end_line(&mut self) {
        self.put(PLAIN, "\n");
    }

    /// Takes the text. No style is left on, because something else may be written next.
    pub(super) fn take(&mut self) -> String {
        self.reset();
        std::mem::take(&mut self.text)
    }

    fn reset(&mut self) {
        if std::mem::replace(&mut self.style, PLAIN) != PLAIN {
            self.text.push_str(RESET);
        }
    }
}

/// How the text of a line looks: which marks have opened strong text, emphasis or code so far.
#[derive(Debug, Default)]
pub(super) struct Inline {
    /// The line is a heading.
    pub(super) heading: bool,
    /// The mark of the strong text that is open.
    strong: Option<char>,
    /// The mark of the emphasis that is open.
    emphasis: Option<char>,
    /// How many backticks opened code; zero outside code.
    code: usize,
    /// The word has an address of the web, in which marks open nothing.
    url: bool,
    /// The character before the marks; `None` after a blank and at the line's start.
    before: Option<char>,
    /// The mark at the end of what has come, and how often it is repeated; its meaning depends on what follows.
    mark: char,
    marks: usize,
}

impl Inline {
    /// How text looks now.
    pub(super) fn style(&self) -> Style {
        let strong = if self.heading || self.strong.is_some() {
            BOLD
        } else {
            PLAIN
        };
        let emphasis = if self.emphasis.is_some() {
            ITALIC
        } else {
            PLAIN
        };
        let code = if self.code > 0 { CODE } else { PLAIN };
        strong | emphasis | code
    }

    /// A blank has come after a word.
    pub(super) fn end_word(&mut self) {
        (self.emphasis, self.before, self.marks) = (None, None, 0);
        self.url = false;
    }

    /// Whether a bar that follows may be text of a table's cell: it is escaped, or within code.
    pub(super) fn takes_bar(&self) -> bool {
        self.code > 0 || self.before == Some('\\')
    }

    /// Styles a word, or a part of it; `next` is what follows it, if that has come.
    pub(super) fn put(&mut self, mut text: &str, next: Option<char>, pen: &mut Pen) {
        loop {
            if self.marks == 0 {
                let is_mark = |character| {
                    character == '`' || (self.code == 0 && matches!(character, '*' | '_'))
                };
                let (plain, rest) = text.split_at(text.find(is_mark).unwrap_or(text.len()));
                pen.put(self.style(), plain);
                self.url |= plain.contains("://");
                self.before = plain.chars().next_back().or(self.before);
                let Some(mark) = rest.chars().next() else {
                    return;
                };
                (self.mark, text) = (mark, rest);
            }
            let rest = text.trim_start_matches(self.mark);
            let marks = &text[..text.len() - rest.len()];
            self.marks += marks.len();
            let style = self.style();
            let Some(after) = rest.chars().next().or(next) else {
                return pen.put(style, marks);
            };
            self.read_marks(after, rest, next);
            // Marks look like the text between them.
            pen.put(style | self.style(), marks);
            self.before = Some(self.mark);
            self.marks = 0;
            text = rest;
        }
    }

    /// Decides what the marks mean, now that `after` follows them; `rest` is the rest of the word, with `after`.
    fn read_marks(&mut self, after: char, rest: &str, next: Option<char>) {
        let is_escaped = self.before == Some('\\');
        let is_name = self.mark == '_' && self.before == Some('.');
        let is_literal = is_escaped || is_name || self.url;
        let opens = !(after.is_whitespace() || is_literal || self.before.is_some_and(is_in_word));
        if self.mark == '`' {
            match self.code {
                0 if opens => self.code = self.marks,
                code if code == self.marks => self.code = 0,
                _ => {}
            }
            return;
        }
        let closes =
            self.before.is_some() && !is_escaped && (self.mark == '*' || !is_in_word(after));
        if matches!(self.marks, 2..=MAX_MARKS) {
            match self.strong {
                // What is not closed may be a pattern for paths.
                None if opens && (after != '/' || self.closes_within(true, rest, next)) => {
                    self.strong = Some(self.mark)
                }
                Some(mark) if mark == self.mark && closes => self.strong = None,
                _ => {}
            }
        }
        if matches!(self.marks, 1 | MAX_MARKS) {
            match self.emphasis {
                None if opens
                    && !matches!(after, '.' | '/')
                    && self.closes_within(false, rest, next) =>
                {
                    self.emphasis = Some(self.mark);
                }
                Some(mark) if mark == self.mark && closes => self.emphasis = None,
                _ => {}
            }
        }
    }

    /// Whether what opens here is closed in the rest of the word. Only the next marks are examined.
    fn closes_within(&self, strong: bool, rest: &str, next: Option<char>) -> bool {
        let mut from = 0;
        while let Some(at) = rest[from..].find(self.mark).map(|at| from + at) {
            let (inside, end) = rest.split_at(at);
            let after = end.trim_start_matches(self.mark);
            let marks = end.len() - after.len();
            let is_within = |character: Option<char>| character.is_some_and(is_in_word);
            let follows = after.chars().next().or(next);
            if self.mark == '_' && is_within(inside.chars().next_back()) && is_within(follows) {
                from = at + marks;
                continue;
            }
            let fits = if strong {
                matches!(marks, 2..=MAX_MARKS)
            } else {
                matches!(marks, 1 | MAX_MARKS)
            };
            return fits
                && (self.mark == '*' || follows.is_some_and(|after| !is_in_word(after)))
                && inside.contains(char::is_alphanumeric)
                && !inside.ends_with('\\')
                && inside.matches('`').count() % 2 == 0;
        }
        false
    }
}

/// Whether the character is part of a word, so that a mark beside it need not be one. Wide characters have no blanks
/// between their words.
fn is_in_word(character: char) -> bool {
    character.is_alphanumeric() && character.width() != Some(2)
}

/// Whether the first word of a line makes it a heading.
pub(super) fn is_heading(word: &str) -> bool {
    word.len() <= 6 && !word.is_empty() && word.bytes().all(|byte| byte == b'#')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with `b‹`, `i‹` and `c‹` where a style begins, and `›` where it ends.
    fn styled(line: &str) -> String {
        let (mut inline, mut pen) = (Inline::default(), Pen::new(true));
        for word in line.split_inclusive(' ') {
            let blank = word.ends_with(' ').then_some(' ');
            inline.put(word.trim_end(), blank.or(Some('\n')), &mut pen);
            if blank.is_some() {
                inline.end_word();
                pen.put(inline.style(), " ");
            }
        }
        let text = pen.take().replace(RESET, "›");
        let names = [
            ("1", "b"),
            ("2", "d"),
            ("3", "i"),
            ("36", "c"),
            ("1;3", "bi"),
            ("1;36", "bc"),
            ("3;36", "ic"),
        ];
        names.iter().fold(text, |text, (code, name)| {
            text.replace(&format!("\u{1b}[{code}m"), &format!("{name}‹"))
        })
    }

    #[test]
    fn marks_style_what_is_between_them() {
        for (line, expected) in [
            ("a **b c** d", "a b‹**b c**› d"),
            ("__a b__, c", "b‹__a b__›, c"),
            ("(**a**)", "(b‹**a**›)"),
            ("**a**b", "b‹**a**›b"),
            ("**a:** b", "b‹**a:**› b"),
            ("**a b", "b‹**a b›"),
            ("**a ** b** c", "b‹**a ** b**› c"),
            ("**a __b__ c** d", "b‹**a __b__ c**› d"),
            ("*a* _b_ c", "i‹*a*› i‹_b_› c"),
            ("(*a*), *b*!", "(i‹*a*›), i‹*b*›!"),
            ("*a*b", "i‹*a*›b"),
            ("_a_b_", "i‹_a_b_›"),
            ("***a*** b", "bi‹***a***› b"),
            ("***a b*** c", "b‹***a b***› c"),
            ("**a *b*** c", "b‹**a ›bi‹*b***› c"),
            ("`a` b", "c‹`a`› b"),
            ("`a b", "c‹`a b›"),
            ("``a`b`` c", "c‹``a`b``› c"),
            ("`**a**` b", "c‹`**a**`› b"),
            ("**`a` b** c", "b‹**›bc‹`a`›b‹ b**› c"),
            ("*`a`* b", "i‹*›ic‹`a`›i‹*› b"),
            ("`a\\` b", "c‹`a\\`› b"),
            ("**/etc/a** b", "b‹**/etc/a**› b"),
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
            "**/*.rs src/**/*.rs *.rs *.tar.* */5 *.* *,*",
            "**** ****a **** *** ___ --- ****",
            "*a`*b` #!/bin/sh # a",
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
            let (mut inline, mut pen) = (Inline::default(), Pen::new(true));
            let mut shown = String::new();
            for part in parts {
                inline.put(part, None, &mut pen);
                shown += &pen.take();
            }
            inline.put("", Some('\n'), &mut pen);
            assert_eq!(shown + &pen.take(), expected, "{parts:?}");
        }
    }
}
