//! Reads Markdown line by line, and decides what each line is: for its look on a terminal, and for `-x` (pure).
//!
//! It decides as early as the text allows, because an answer comes in pieces. In case of doubt a line is prose.

/// The columns from one tab stop of a terminal to the next.
const TAB: usize = 8;

/// Text indented this far after a blank line is code.
const CODE_INDENT: usize = 4;

/// A closing fence may be indented this much further than its opening one.
const MAX_FURTHER_INDENT: usize = 3;

/// The shortest fence.
pub const MIN_FENCE: usize = 3;

/// The highest level of a heading.
const MAX_LEVEL: usize = 6;

/// The kind of line, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineKind {
    /// Only blanks and the markers of lists and quotes have come.
    #[default]
    Begin,
    Prose,
    Heading,
    Table,
    /// Code without a fence.
    Indented,
    /// It opens or closes fenced code.
    Fence,
    /// It is within fenced code, or may still close it.
    Code,
}

/// The fence that opened the code.
#[derive(Debug, Clone, Copy)]
pub struct OpenFence {
    pub character: char,
    length: usize,
    /// The column at which it begins.
    begin: usize,
    /// How many markers of block quotes come before it.
    quotes: usize,
}

/// What is known of the current line, and of those before it.
#[derive(Default)]
pub struct Reader {
    pub kind: LineKind,
    /// The column at which the line's text begins, after blanks and markers.
    pub begin: usize,
    /// The line begins with a marker.
    marked: bool,
    /// How many markers of block quotes it begins with.
    quotes: usize,
    /// The previous line is neither blank nor indented code.
    after_text: bool,
    in_list: bool,
    pub fence: Option<OpenFence>,
}

impl Reader {
    /// Reads the first letter of a word before which only blanks and markers have come.
    pub fn begin_word(&mut self, column: usize, letter: char) {
        self.begin = column;
        let follows_blank_line = !self.marked && !self.after_text;
        if follows_blank_line && column == 0 {
            self.in_list = false;
        }
        if follows_blank_line && column >= CODE_INDENT && !self.in_list {
            self.kind = LineKind::Indented;
        } else if letter == '|' {
            self.kind = LineKind::Table;
        }
    }

    /// Reads a word that has ended; in fenced code, a line. It may decide what the line is.
    pub fn end_word(&mut self, word: &str, before_blank: bool) {
        match self.kind {
            LineKind::Begin => self.end_first_word(word, before_blank),
            // With another backtick, the fence was code within a line.
            LineKind::Fence if self.has_backticks() && word.contains('`') => {
                self.kind = LineKind::Prose;
                self.fence = None;
            }
            LineKind::Code if self.closes_fence(word) => {
                self.kind = LineKind::Fence;
                self.fence = None;
            }
            _ => {}
        }
    }

    /// Reads a word before which only blanks and markers have come. It may be one more marker.
    fn end_first_word(&mut self, word: &str, before_blank: bool) {
        let is_quote = word.starts_with('>');
        if (before_blank || is_quote) && is_marker(word) {
            self.marked = true;
            if is_quote {
                self.quotes += word.len();
            } else {
                self.in_list = true;
            }
            return;
        }
        if let Some((character, length)) = opening_fence(word) {
            self.kind = LineKind::Fence;
            self.fence = Some(OpenFence {
                character,
                length,
                begin: self.begin,
                quotes: self.quotes,
            });
            return;
        }
        let may_be_heading = self.marked || self.in_list || self.begin < CODE_INDENT;
        self.kind = if may_be_heading && before_blank && is_heading(word) {
            LineKind::Heading
        } else {
            LineKind::Prose
        };
    }

    /// Whether fenced code is open, and backticks opened it.
    pub fn has_backticks(&self) -> bool {
        self.fence.is_some_and(|fence| fence.character == '`')
    }

    /// Whether the first letter of a line within fenced code shows that the block quote with the code has ended.
    pub fn leaves_quote(&mut self, letter: char) -> bool {
        let leaves = letter != '>' && self.fence.is_some_and(|fence| fence.quotes > 0);
        if leaves {
            self.fence = None;
            self.kind = LineKind::Begin;
        }
        leaves
    }

    /// Whether a line of fenced code closes it.
    pub fn closes_fence(&self, line: &str) -> bool {
        self.kind == LineKind::Code && self.fence.is_some_and(|fence| fence.is_closed_by(line))
    }

    /// Reads the end of the line.
    pub fn end_line(&mut self) {
        let is_blank = self.kind == LineKind::Begin && !self.marked;
        self.after_text = !is_blank && self.kind != LineKind::Indented;
        self.kind = match self.fence {
            Some(_) => LineKind::Code,
            None => LineKind::Begin,
        };
        self.begin = 0;
        self.marked = false;
        self.quotes = 0;
    }
}

impl OpenFence {
    fn is_closed_by(self, line: &str) -> bool {
        let code = self.code_of(line);
        let text = code.trim_start_matches([' ', '\t']);
        let indent = code.len() - text.len();
        let length = run_of(text, self.character);
        let is_alone = text[length..].trim().is_empty();
        indent <= MAX_FURTHER_INDENT && length >= self.length && is_alone
    }

    /// A line of code without what comes before the fence: blanks, and the markers of quotes.
    pub fn code_of(self, line: &str) -> String {
        let mut column = 0;
        let mut quotes = 0;
        let mut rest = line;
        while column < self.begin
            && let Some(character) = rest.chars().next()
        {
            match character {
                ' ' | '\t' => {}
                '>' if quotes < self.quotes => quotes += 1,
                _ => break,
            }
            column = column_after(column, character);
            rest = &rest[1..];
        }
        // A tab may reach further than the fence.
        let blanks = column.saturating_sub(self.begin);
        format!("{}{rest}", " ".repeat(blanks))
    }
}

/// The column after a blank, a tab or a marker that stands at this one.
pub fn column_after(column: usize, character: char) -> usize {
    if character == '\t' {
        column + TAB - column % TAB
    } else {
        column + 1
    }
}

/// Whether the word begins a list item or a line of a block quote.
fn is_marker(word: &str) -> bool {
    let number = word.trim_start_matches(|character: char| character.is_ascii_digit());
    let digits = word.len() - number.len();
    match number {
        "-" | "*" | "+" => digits == 0,
        "." | ")" => digits > 0,
        _ => word.bytes().all(|byte| byte == b'>'),
    }
}

/// Whether the first word of a line makes it a heading.
fn is_heading(word: &str) -> bool {
    word.len() <= MAX_LEVEL && run_of(word, '#') == word.len()
}

/// The character and the length of the fence that the word begins with, if it opens fenced code.
fn opening_fence(word: &str) -> Option<(char, usize)> {
    let character = word.chars().next()?;
    if !matches!(character, '`' | '~') {
        return None;
    }
    let length = run_of(word, character);
    // With more backticks after it, it is code within a line.
    let is_inline = character == '`' && word[length..].contains('`');
    if length < MIN_FENCE || is_inline {
        return None;
    }
    Some((character, length))
}

/// How often the character, which has one byte, is repeated at the beginning.
fn run_of(text: &str, character: char) -> usize {
    text.len() - text.trim_start_matches(character).len()
}
