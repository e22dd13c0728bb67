//! Reads Markdown, and decides what each line is: for its look on a terminal, and for `-x` (pure).
//!
//! It looks at each character once, and decides as early as the text allows, because an answer comes in pieces. In case of
//! doubt a line is prose.

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
    character: char,
    pub length: usize,
    /// The column at which it begins.
    begin: usize,
    /// How many markers of block quotes come before it.
    quotes: usize,
}

/// What follows the blanks and markers at the beginning of a line, as far as it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Start {
    #[default]
    Nothing,
    /// A marker of a list, if a blank follows.
    Marker,
    /// The number of a list's item, if a dot or a parenthesis follows.
    Number,
    /// The marks of a heading, if a blank follows.
    Hashes(usize),
    /// A fence, if it is long enough: its character and its length.
    Fence(char, usize),
    /// In fenced code: a fence that closes it if nothing but blanks follows.
    Closing,
    /// In fenced code: code.
    Code,
}

/// What is known of the lines before, and of the current one.
#[derive(Default)]
pub struct Reader {
    /// The previous line is neither blank nor indented code.
    after_text: bool,
    in_list: bool,
    pub fence: Option<OpenFence>,
    /// The kind of the current line.
    pub kind: LineKind,
    /// The column at which its text begins, after blanks and markers.
    pub begin: usize,
    /// The column of the next character. It counts until the line's kind is known, and in the margin of code.
    column: usize,
    /// It begins with a marker.
    marked: bool,
    /// How many markers of block quotes it begins with.
    quotes: usize,
    start: Start,
}

impl Reader {
    /// A reader of a line that is prose, whose text begins at this column.
    pub fn of_prose(begin: usize) -> Reader {
        Reader {
            kind: LineKind::Prose,
            begin,
            ..Reader::default()
        }
    }

    /// Reads a complete line after the one before.
    pub fn read_line(&mut self, line: &str) {
        self.next_line();
        for character in line.chars() {
            self.push(character);
        }
        self.end_line();
    }

    /// Reads the next character of the line.
    pub fn push(&mut self, character: char) {
        match self.kind {
            LineKind::Begin if is_blank(character) => self.end_start(),
            LineKind::Begin => self.push_start(character),
            LineKind::Code => self.push_code(character),
            // With another backtick, the fence was code within a line.
            LineKind::Fence if character == '`' && self.has_backticks() => {
                self.kind = LineKind::Prose;
                self.fence = None;
            }
            _ => {}
        }
        self.column = column_after(self.column, character);
    }

    /// Reads a character before which only blanks and markers have come, and what the line starts with.
    fn push_start(&mut self, character: char) {
        match self.start {
            Start::Nothing => self.begin_text(character),
            Start::Number if character.is_ascii_digit() => {}
            Start::Number if matches!(character, '.' | ')') => self.start = Start::Marker,
            Start::Hashes(count) if character == '#' && count < MAX_LEVEL => {
                self.start = Start::Hashes(count + 1);
            }
            Start::Fence(mark, length) if character == mark => {
                self.start = Start::Fence(mark, length + 1);
            }
            Start::Fence(mark, length) if length >= MIN_FENCE => self.open_fence(mark, length),
            _ => self.kind = LineKind::Prose,
        }
    }

    /// Reads the first character after blanks and markers. A line may have several markers.
    fn begin_text(&mut self, character: char) {
        self.begin = self.column;
        let follows_blank_line = !self.marked && !self.after_text;
        if follows_blank_line && self.begin == 0 {
            self.in_list = false;
        }
        if follows_blank_line && self.begin >= CODE_INDENT && !self.in_list {
            self.kind = LineKind::Indented;
            return;
        }
        match character {
            '|' => self.kind = LineKind::Table,
            '>' => {
                self.marked = true;
                self.quotes += 1;
            }
            '-' | '*' | '+' => self.start = Start::Marker,
            '0'..='9' => self.start = Start::Number,
            '#' => self.start = Start::Hashes(1),
            '`' | '~' => self.start = Start::Fence(character, 1),
            _ => self.kind = LineKind::Prose,
        }
    }

    /// Reads a blank after what the line starts with.
    fn end_start(&mut self) {
        match self.start {
            Start::Nothing => {}
            Start::Marker => {
                self.marked = true;
                self.in_list = true;
                self.start = Start::Nothing;
            }
            Start::Hashes(_) if self.may_be_heading() => self.kind = LineKind::Heading,
            Start::Fence(mark, length) if length >= MIN_FENCE => self.open_fence(mark, length),
            _ => self.kind = LineKind::Prose,
        }
    }

    fn may_be_heading(&self) -> bool {
        self.marked || self.in_list || self.begin < CODE_INDENT
    }

    fn open_fence(&mut self, character: char, length: usize) {
        self.kind = LineKind::Fence;
        self.fence = Some(OpenFence {
            character,
            length,
            begin: self.begin,
            quotes: self.quotes,
        });
    }

    /// Reads a character of a line within fenced code.
    fn push_code(&mut self, character: char) {
        let Some(fence) = self.fence else {
            return;
        };
        match self.start {
            Start::Nothing if is_blank(character) => {}
            Start::Nothing if self.continues_quote(fence, character) => self.quotes += 1,
            // The block quote with the code has ended.
            Start::Nothing if fence.quotes > 0 && self.quotes == 0 && character != '>' => {
                self.fence = None;
                self.kind = LineKind::Begin;
                self.push_start(character);
            }
            Start::Nothing if character == fence.character && self.is_near(fence) => {
                self.start = Start::Fence(character, 1);
            }
            Start::Fence(mark, length) if character == mark => {
                self.start = Start::Fence(mark, length + 1);
            }
            Start::Fence(_, length) if length >= fence.length && is_blank(character) => {
                self.start = Start::Closing;
            }
            Start::Closing if is_blank(character) => {}
            _ => self.start = Start::Code,
        }
    }

    /// Whether a character in the margin of code is a marker of the quote that the code is in.
    fn continues_quote(&self, fence: OpenFence, character: char) -> bool {
        character == '>' && self.column < fence.begin && self.quotes < fence.quotes
    }

    /// Whether a fence at this column may close this one.
    fn is_near(&self, fence: OpenFence) -> bool {
        self.column <= fence.begin + MAX_FURTHER_INDENT
    }

    /// Whether only blanks and the markers of quotes have come of a line of fenced code.
    pub fn is_in_margin(&self) -> bool {
        self.kind == LineKind::Code && self.start == Start::Nothing
    }

    /// Whether a line of fenced code may turn out to be the closing fence.
    pub fn may_close(&self) -> bool {
        let has_fence = matches!(self.start, Start::Fence(..) | Start::Closing);
        self.kind == LineKind::Code && has_fence
    }

    /// Whether a line of fenced code is the closing fence, if it ends here.
    pub fn closes(&self) -> bool {
        let is_long_enough = match (self.start, self.fence) {
            (Start::Closing, _) => true,
            (Start::Fence(_, length), Some(fence)) => length >= fence.length,
            _ => false,
        };
        self.kind == LineKind::Code && is_long_enough
    }

    /// Whether fenced code is open, and backticks opened it.
    pub fn has_backticks(&self) -> bool {
        self.fence.is_some_and(|fence| fence.character == '`')
    }

    /// Reads the end of the line, which decides its kind.
    pub fn end_line(&mut self) {
        match (self.kind, self.start) {
            (LineKind::Begin, Start::Fence(mark, length)) if length >= MIN_FENCE => {
                self.open_fence(mark, length);
            }
            // Only markers make an empty item or a line of a quote.
            (LineKind::Begin, Start::Nothing) => {}
            (LineKind::Begin, _) => self.kind = LineKind::Prose,
            _ if self.closes() => {
                self.kind = LineKind::Fence;
                self.fence = None;
            }
            _ => {}
        }
    }

    /// Goes on to the next line.
    pub fn next_line(&mut self) {
        let is_blank = self.kind == LineKind::Begin && !self.marked;
        let kind = match self.fence {
            Some(_) => LineKind::Code,
            None => LineKind::Begin,
        };
        *self = Reader {
            after_text: !is_blank && self.kind != LineKind::Indented,
            in_list: self.in_list,
            fence: self.fence,
            kind,
            ..Reader::default()
        };
    }
}

impl OpenFence {
    /// What follows the fence on its line, such as the name of a language.
    pub fn info_of(self, line: &str) -> &str {
        let fence = line.trim_start_matches(|character| character != self.character);
        fence.trim_start_matches(self.character).trim()
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

pub fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

/// The column after a blank, a tab or a marker that stands at this one.
pub fn column_after(column: usize, character: char) -> usize {
    if character == '\t' {
        column + TAB - column % TAB
    } else {
        column + 1
    }
}
