//! Reads Markdown line by line, and decides what each line is: for a terminal, and for `-x` (pure).
//!
//! A `BlockContext` says what the lines before mean for the next one. A `MarkdownReader` begins with it, is given each character of
//! the line once, and decides as early as the text allows, because an answer comes in pieces. Its `end` returns the `MarkdownLine`
//! that there is if nothing follows, and with it the context of the next line. In case of doubt a line is prose.

use super::columns::next_tab_stop;

/// Text indented this far after a blank line is code.
const CODE_INDENT: usize = 4;

/// A closing fence may be indented this much further than its opening one.
const MAX_FURTHER_INDENT: usize = 3;

/// The shortest fence.
pub const MIN_FENCE: usize = 3;

/// The most items of lists that are told apart, each within the one before. Each line is compared with all that are open.
pub const MAX_NESTED_ITEMS: usize = 30;

/// The highest level of a heading.
const MAX_LEVEL: usize = 6;

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// It has only blanks and the markers of lists and quotes, or what may still become a marker, a heading or a fence.
    Margin,
    Prose,
    Heading,
    Table,
    /// Code without a fence.
    Indented,
    /// It opens fenced code.
    Opening(OpenFence),
    /// It is within fenced code.
    Code(CodePart),
    /// It closes fenced code.
    Closing,
}

/// The part of a line of fenced code that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodePart {
    /// It has only blanks, and the markers of the quote that the code is in.
    Margin,
    /// It may still become the closing fence.
    MayClose,
    /// It is certainly code.
    Text,
}

/// The fence that opened the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFence {
    character: char,
    pub length: usize,
    /// The column at which it begins.
    begin: usize,
    /// How many markers of block quotes come before it.
    quotes: usize,
}

/// The lines before, by what they mean for the next one.
#[derive(Debug, Clone, Copy, Default)]
pub struct BlockContext {
    /// The fenced code that is open.
    fence: Option<OpenFence>,
    in_list: bool,
    /// Whether the previous line is neither blank nor indented code.
    after_text: bool,
}

/// What holds lines together: an item of a list, or a block quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Container {
    /// How many markers of block quotes its lines begin with.
    quotes: usize,
    /// The column at which its content begins.
    begin: usize,
}

/// A line that has ended.
pub struct MarkdownLine {
    pub kind: LineKind,
    /// The column at which its text begins, after blanks and markers.
    pub begin: usize,
    /// The items of lists that it begins, each within the one before.
    pub items: Vec<Container>,
    /// What this line and those before it mean for the next one.
    pub context: BlockContext,
}

/// A line, as far as it has come.
pub struct MarkdownReader {
    state: LineState,
    /// The column at which its text begins, after blanks and markers.
    pub begin: usize,
    /// The column of the next character, as long as that matters.
    column: usize,
    after_text: bool,
    in_list: bool,
    /// Whether it begins with a marker.
    is_marked: bool,
    /// How many markers of block quotes it begins with.
    quotes: usize,
    items: Vec<Container>,
}

/// The state of a line, as its beginning has decided it.
#[derive(Debug, Clone, Copy)]
enum LineState {
    /// Nothing yet.
    Start(LineStart),
    /// The kind, which stays the same whatever follows.
    Decided(LineKind),
    /// It opens fenced code, unless more backticks follow.
    Opening(OpenFence),
    /// It is within the code of this fence.
    Fenced(OpenFence, FencedStart),
}

/// The start of a line, after its blanks and markers.
#[derive(Debug, Clone, Copy)]
enum LineStart {
    Nothing,
    /// A marker of a list, if a blank follows.
    Marker,
    /// The number of a list's item, if a dot or a parenthesis follows.
    Number,
    /// The marks of a heading, if a blank follows.
    Hashes(usize),
    /// A fence, if it is long enough: its character and its length.
    Fence(char, usize),
}

/// The start of a line of fenced code, after its blanks and markers.
#[derive(Debug, Clone, Copy)]
enum FencedStart {
    Nothing,
    /// The closing fence, if it is long enough and only blanks follow: its length.
    Fence(usize),
    /// The closing fence and blanks, if only blanks follow.
    FenceAndBlank,
    Text,
}

impl BlockContext {
    /// Returns the context of a line within the code of this fence.
    pub fn within(fence: OpenFence) -> BlockContext {
        BlockContext {
            fence: Some(fence),
            ..BlockContext::default()
        }
    }

    /// Returns the fence of the code that is open.
    pub fn fence(self) -> Option<OpenFence> {
        self.fence
    }

    /// Reads a whole line.
    pub fn read(self, line: &str) -> MarkdownLine {
        let mut reader = MarkdownReader::new(self);
        for character in line.chars() {
            reader.push(character);
        }
        reader.end()
    }
}

impl MarkdownReader {
    pub fn new(context: BlockContext) -> MarkdownReader {
        let state = match context.fence {
            Some(fence) => LineState::Fenced(fence, FencedStart::Nothing),
            None => LineState::Start(LineStart::Nothing),
        };
        MarkdownReader {
            state,
            begin: 0,
            column: 0,
            after_text: context.after_text,
            in_list: context.in_list,
            is_marked: false,
            quotes: 0,
            items: Vec::new(),
        }
    }

    /// Returns a reader of a line that is prose, whose text begins at this column.
    pub fn of_prose(begin: usize) -> MarkdownReader {
        MarkdownReader {
            state: LineState::Decided(LineKind::Prose),
            begin,
            ..MarkdownReader::new(BlockContext::default())
        }
    }

    /// Reads the next character of the line.
    pub fn push(&mut self, character: char) {
        match self.state {
            LineState::Start(start) if is_blank(character) => self.end_start(start),
            LineState::Start(start) => self.push_start(start, character),
            // With another backtick, the fence was code within a line.
            LineState::Opening(fence) if character == '`' && fence.has_backticks() => {
                self.state = LineState::Decided(LineKind::Prose);
            }
            LineState::Fenced(fence, fenced) => self.push_fenced(fence, fenced, character),
            LineState::Decided(_) | LineState::Opening(_) => return,
        }
        self.column = column_after(self.column, character);
    }

    /// Returns what the line is so far. More text may change that.
    pub fn kind(&self) -> LineKind {
        match self.state {
            LineState::Start(_) => LineKind::Margin,
            LineState::Decided(kind) => kind,
            LineState::Opening(fence) => LineKind::Opening(fence),
            LineState::Fenced(_, FencedStart::Nothing) => LineKind::Code(CodePart::Margin),
            LineState::Fenced(_, FencedStart::Fence(_) | FencedStart::FenceAndBlank) => {
                LineKind::Code(CodePart::MayClose)
            }
            LineState::Fenced(_, FencedStart::Text) => LineKind::Code(CodePart::Text),
        }
    }

    /// Returns the line, if it ends here.
    pub fn end(&self) -> MarkdownLine {
        let kind = self.kind_at_end();
        let is_blank = kind == LineKind::Margin && !self.is_marked;
        let items = self.items.clone();
        let fence = match (kind, self.state) {
            (LineKind::Opening(fence), _) => Some(fence),
            (LineKind::Code(_), LineState::Fenced(fence, _)) => Some(fence),
            _ => None,
        };
        MarkdownLine {
            kind,
            begin: self.begin,
            items,
            context: BlockContext {
                fence,
                in_list: self.in_list,
                after_text: !is_blank && kind != LineKind::Indented,
            },
        }
    }

    fn kind_at_end(&self) -> LineKind {
        match self.state {
            // Only markers make an empty item or a line of a quote.
            LineState::Start(LineStart::Nothing) => LineKind::Margin,
            LineState::Start(LineStart::Fence(character, length)) if length >= MIN_FENCE => {
                LineKind::Opening(self.fence(character, length))
            }
            LineState::Start(_) => LineKind::Prose,
            LineState::Fenced(_, FencedStart::FenceAndBlank) => LineKind::Closing,
            LineState::Fenced(fence, FencedStart::Fence(length)) if length >= fence.length => {
                LineKind::Closing
            }
            LineState::Fenced(_, FencedStart::Fence(_)) => LineKind::Code(CodePart::Text),
            LineState::Decided(_) | LineState::Opening(_) | LineState::Fenced(..) => self.kind(),
        }
    }

    /// Reads a character before which only blanks and markers have come, and what the line starts with.
    fn push_start(&mut self, start: LineStart, character: char) {
        self.state = match start {
            LineStart::Nothing => self.begin_text(character),
            LineStart::Number if character.is_ascii_digit() => LineState::Start(start),
            LineStart::Number if matches!(character, '.' | ')') => {
                LineState::Start(LineStart::Marker)
            }
            LineStart::Hashes(count) if character == '#' && count < MAX_LEVEL => {
                LineState::Start(LineStart::Hashes(count + 1))
            }
            LineStart::Fence(mark, length) if character == mark => {
                LineState::Start(LineStart::Fence(mark, length + 1))
            }
            LineStart::Fence(mark, length) if length >= MIN_FENCE => {
                LineState::Opening(self.fence(mark, length))
            }
            _ => LineState::Decided(LineKind::Prose),
        };
    }

    /// Reads the first character after blanks and markers. A line may have several markers.
    fn begin_text(&mut self, character: char) -> LineState {
        self.begin = self.column;
        self.begin_item();
        let follows_blank_line = !self.is_marked && !self.after_text;
        if follows_blank_line && self.begin == 0 {
            self.in_list = false;
        }
        if follows_blank_line && self.begin >= CODE_INDENT && !self.in_list {
            return LineState::Decided(LineKind::Indented);
        }
        match character {
            '|' => LineState::Decided(LineKind::Table),
            '>' => {
                self.is_marked = true;
                self.quotes += 1;
                LineState::Start(LineStart::Nothing)
            }
            '-' | '*' | '+' => LineState::Start(LineStart::Marker),
            '0'..='9' => LineState::Start(LineStart::Number),
            '#' => LineState::Start(LineStart::Hashes(1)),
            '`' | '~' => LineState::Start(LineStart::Fence(character, 1)),
            _ => LineState::Decided(LineKind::Prose),
        }
    }

    /// The content of an item begins where its text does, unless that is indented as code is.
    fn begin_item(&mut self) {
        if let Some(item) = self.items.last_mut()
            && item.quotes == self.quotes
            && self.column < item.begin + CODE_INDENT
        {
            item.begin = self.column;
        }
    }

    /// Reads a blank after what the line starts with.
    fn end_start(&mut self, start: LineStart) {
        self.state = match start {
            LineStart::Nothing => LineState::Start(start),
            LineStart::Marker => {
                self.is_marked = true;
                self.in_list = true;
                if self.items.len() < MAX_NESTED_ITEMS {
                    self.items.push(Container {
                        quotes: self.quotes,
                        begin: self.column + 1,
                    });
                }
                LineState::Start(LineStart::Nothing)
            }
            LineStart::Hashes(_) if self.may_be_heading() => LineState::Decided(LineKind::Heading),
            LineStart::Fence(mark, length) if length >= MIN_FENCE => {
                LineState::Opening(self.fence(mark, length))
            }
            _ => LineState::Decided(LineKind::Prose),
        };
    }

    fn may_be_heading(&self) -> bool {
        self.is_marked || self.in_list || self.begin < CODE_INDENT
    }

    /// Returns the fence that begins where the text of this line does.
    fn fence(&self, character: char, length: usize) -> OpenFence {
        OpenFence {
            character,
            length,
            begin: self.begin,
            quotes: self.quotes,
        }
    }

    /// Reads a character of a line within fenced code.
    fn push_fenced(&mut self, fence: OpenFence, fenced: FencedStart, character: char) {
        let next = match fenced {
            FencedStart::Nothing => return self.push_margin(fence, character),
            FencedStart::Fence(length) if character == fence.character => {
                FencedStart::Fence(length + 1)
            }
            FencedStart::Fence(length) if length >= fence.length && is_blank(character) => {
                FencedStart::FenceAndBlank
            }
            FencedStart::FenceAndBlank if is_blank(character) => fenced,
            FencedStart::Fence(_) | FencedStart::FenceAndBlank | FencedStart::Text => {
                FencedStart::Text
            }
        };
        self.state = LineState::Fenced(fence, next);
    }

    /// Reads a character of a line within fenced code, before which only blanks and the markers of quotes have come.
    fn push_margin(&mut self, fence: OpenFence, character: char) {
        let is_left_of_fence = self.column < fence.begin;
        let continues_quote = character == '>' && is_left_of_fence && self.quotes < fence.quotes;
        let is_near_fence = self.column <= fence.begin + MAX_FURTHER_INDENT;
        if is_blank(character) {
            return;
        }
        if continues_quote {
            self.quotes += 1;
        } else if fence.quotes > 0 && self.quotes == 0 && character != '>' {
            // The block quote with the code has ended.
            self.state = self.begin_text(character);
        } else if character == fence.character && is_near_fence {
            self.state = LineState::Fenced(fence, FencedStart::Fence(1));
        } else {
            self.state = LineState::Fenced(fence, FencedStart::Text);
        }
    }
}

impl Container {
    /// Whether a line is within it. An empty line ends a block quote, and no item.
    pub fn holds(self, line: &str) -> bool {
        let mut column = 0;
        let mut quotes = 0;
        for character in line.chars() {
            match character {
                ' ' | '\t' => {}
                '>' if quotes < self.quotes => quotes += 1,
                _ => return quotes == self.quotes && column >= self.begin,
            }
            column = column_after(column, character);
        }
        quotes == self.quotes
    }
}

impl OpenFence {
    /// Returns the block quote that it is in, or the whole text.
    pub fn quote(self) -> Container {
        Container {
            quotes: self.quotes,
            begin: 0,
        }
    }

    /// Returns the fence that a line opens, if nothing is before the line.
    pub fn opened_by(line: &str) -> Option<OpenFence> {
        match BlockContext::default().read(line).kind {
            LineKind::Opening(fence) => Some(fence),
            _ => None,
        }
    }

    pub fn has_backticks(self) -> bool {
        self.character == '`'
    }

    /// Returns what follows the fence on its line, such as the name of a language.
    pub fn info_of(self, line: &str) -> &str {
        let fence = line.trim_start_matches(|character| character != self.character);
        fence.trim_start_matches(self.character).trim()
    }

    /// Returns a line of code without what comes before the fence: blanks, and the markers of quotes.
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

/// Returns the column after a blank, a tab or a marker that is at this one.
pub fn column_after(column: usize, character: char) -> usize {
    if character == '\t' {
        next_tab_stop(column)
    } else {
        column + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(kind: LineKind) -> &'static str {
        match kind {
            LineKind::Margin => "margin",
            LineKind::Prose => "prose",
            LineKind::Heading => "heading",
            LineKind::Table => "table",
            LineKind::Indented => "indented",
            LineKind::Opening(_) => "opening",
            LineKind::Code(CodePart::Margin) => "code-margin",
            LineKind::Code(CodePart::MayClose) => "may-close",
            LineKind::Code(CodePart::Text) => "code",
            LineKind::Closing => "closing",
        }
    }

    #[test]
    fn the_kind_of_a_line_follows_from_its_beginning_and_the_lines_before() {
        for (text, kinds) in [
            ("a\n\n  b", "prose margin prose"),
            ("# a\n####### a\n#a\n#\n", "heading prose prose prose"),
            ("- a\n>\n> \n-\n- - 1.", "prose margin margin prose prose"),
            ("- # a\n1. # a\n1 # a", "heading heading prose"),
            ("| a\n  |a\n> |\na |", "table table table prose"),
            (
                "    a\n\n\ta\na\n    a",
                "indented margin indented prose prose",
            ),
            (
                "- a\n\n    a\n    # a\nb",
                "prose margin prose heading prose",
            ),
            ("- a\n\nb\n\n    a", "prose margin prose margin indented"),
            ("```\na\n```\na", "opening code closing prose"),
            (
                "```sh\n\n  \n```",
                "opening code-margin code-margin closing",
            ),
            ("~~~\n```\n~~~~~ \n", "opening code closing"),
            ("````\n```\n```` a\n````", "opening code code closing"),
            (
                "```\n   ```\n```\n    ```\n```",
                "opening closing opening code closing",
            ),
            (
                "``\n``` a`\n``` a ```\n~~~ ~\n~~~",
                "prose prose prose opening closing",
            ),
            (
                "> ```\n> a\n>\n> > a\nb",
                "opening code code-margin code prose",
            ),
            ("> ```\n\n- a", "opening code-margin prose"),
            ("- ```\n  a\n  ```", "opening code closing"),
        ] {
            let mut context = BlockContext::default();
            let mut found = Vec::new();
            for text in text.lines() {
                let line = context.read(text);
                found.push(name(line.kind));
                context = line.context;
            }
            assert_eq!(found.join(" "), kinds, "{text:?}");
        }
    }

    #[test]
    fn the_kind_of_a_line_is_decided_as_early_as_its_characters_allow() {
        // The lines before, and what each character makes of the line.
        for (before, line, kinds) in [
            ("", "ab", "prose prose"),
            ("", "- a", "margin margin prose"),
            ("", "1) a", "margin margin margin prose"),
            ("", "1x", "margin prose"),
            ("", "## a", "margin margin heading heading"),
            ("", "*a", "margin prose"),
            ("", "> |", "margin margin table"),
            ("", "```a`", "margin margin margin opening prose"),
            ("", "``` ~", "margin margin margin opening opening"),
            ("```", "  a`", "code-margin code-margin code code"),
            ("```", "``` ", "may-close may-close may-close may-close"),
            ("```", "``a", "may-close may-close code"),
            (
                "```",
                "``` a",
                "may-close may-close may-close may-close code",
            ),
            ("> ```", "> a", "code-margin code-margin code"),
            ("> ```", " a", "code-margin prose"),
        ] {
            let mut reader = MarkdownReader::new(BlockContext::default().read(before).context);
            let mut found = Vec::new();
            for character in line.chars() {
                reader.push(character);
                found.push(name(reader.kind()));
            }
            assert_eq!(found.join(" "), kinds, "{before:?} {line:?}");
        }
    }

    #[test]
    fn a_line_of_many_markers_has_a_bounded_number_of_items() {
        for (markers, items) in [(0, 0), (1, 1), (MAX_NESTED_ITEMS, MAX_NESTED_ITEMS)] {
            let line = BlockContext::default().read(&format!("{}a", "- ".repeat(markers)));
            assert_eq!((line.items.len(), line.begin), (items, 2 * markers));
        }
        let line = BlockContext::default().read(&"- ".repeat(MAX_NESTED_ITEMS + 1));
        assert_eq!(line.items.len(), MAX_NESTED_ITEMS);
    }

    #[test]
    fn the_text_of_a_line_begins_after_spaces_and_markers() {
        for (line, begin) in [
            ("a", 0),
            ("  a", 2),
            ("- a", 2),
            ("-   a", 4),
            ("10. a", 4),
            ("> - a", 4),
            ("-\ta", 8),
            ("-a", 0),
            ("- [ ] a", 2),
            ("  - # a", 4),
        ] {
            let found = BlockContext::default().read(line).begin;
            assert_eq!(found, begin, "{line:?}");
        }
    }
}
