//! Finds the fenced blocks of code in an answer, and whether text around them makes them uncertain (pure).

use crate::text::markdown::{
    BlockContext, Container, LineKind, MAX_NESTED_ITEMS, MIN_FENCE, MarkdownLine, OpenFence,
    column_after,
};

/// The names that languages have after a fence. Each row is one language, under its first name.
const LANGUAGES: &[&[&str]] = &[
    &["sh", "bash", "shell", "zsh", "ksh", "dash"],
    &["python", "py", "python3"],
    &["javascript", "js"],
    &["typescript", "ts"],
    &["yaml", "yml"],
];

/// A fenced block of code.
pub struct FencedBlock {
    fence: OpenFence,
    /// The language that is named after its fence.
    pub language: Option<String>,
    /// Whether its fence is within HTML that is open.
    pub is_in_html: bool,
    /// Its lines, without what comes before the fence on each of them.
    pub code: String,
    /// The items of lists and the block quote that it begins in.
    containers: Vec<Container>,
    /// How it ends, as far as the answer has been read.
    end: BlockEnd,
    /// Whether a line that is not in these containers has come, where it ends by the rules of CommonMark.
    has_left: bool,
    /// Whether it has gone on after that, as models write blocks in lists: with lines of code, or the closing fence.
    pub goes_on_outside: bool,
    /// Whether a line of it that is not in these containers opens another block, such as one in the next item of the list.
    pub meets_another: bool,
}

/// How a block ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockEnd {
    /// With a fence, or with the block quote that it is in.
    Closed,
    /// With the answer.
    Open,
}

impl FencedBlock {
    fn begin(
        fence: OpenFence,
        line: &str,
        is_in_html: bool,
        mut containers: Vec<Container>,
    ) -> FencedBlock {
        containers.push(fence.quote());
        FencedBlock {
            fence,
            language: language(fence.info_of(line)),
            is_in_html,
            code: String::new(),
            containers,
            end: BlockEnd::Open,
            has_left: false,
            goes_on_outside: false,
            meets_another: false,
        }
    }

    /// Reads a line of its code, and the characters that end the line.
    fn read(&mut self, line: &str, end: &str) {
        let code = self.fence.code_of(line);
        if !self.holds(line) {
            self.has_left = true;
            self.meets_another |= OpenFence::opened_by(line).is_some();
        }
        // Empty lines may also follow a block that has ended.
        self.goes_on_outside |= self.has_left && !code.trim().is_empty();
        self.code.push_str(&code);
        self.code.push_str(end);
    }

    /// Reads its closing fence.
    fn close(&mut self, line: &str) {
        self.goes_on_outside |= self.has_left || !self.holds(line);
        self.end = BlockEnd::Closed;
    }

    fn holds(&self, line: &str) -> bool {
        let mut containers = self.containers.iter();
        containers.all(|container| container.holds(line))
    }

    /// Whether it is never closed.
    pub fn is_open(&self) -> bool {
        self.end == BlockEnd::Open
    }

    /// Whether a line of it has as many backticks or tildes in a row as a fence.
    pub fn has_fence_characters(&self) -> bool {
        let mut fences = ["`", "~"].iter().map(|mark| mark.repeat(MIN_FENCE));
        fences.any(|fence| self.code.contains(&fence))
    }

    pub fn is_empty(&self) -> bool {
        self.code.trim().is_empty()
    }

    /// Whether a line of it opens another block: it has a fence that is as long as its own, and a word after that.
    pub fn is_nested(&self) -> bool {
        let mut lines = self.code.lines();
        lines.any(|line| {
            OpenFence::opened_by(line).is_some_and(|inner| {
                inner.length >= self.fence.length && !inner.info_of(line).is_empty()
            })
        })
    }
}

/// Finds the fenced blocks of an answer. `None` if text before a line of backticks ends in backticks, too, so that the line may open
/// or close a block.
pub fn find_blocks(answer: &str) -> Option<Vec<FencedBlock>> {
    let mut context = BlockContext::default();
    let mut blocks: Vec<FencedBlock> = Vec::new();
    let mut text = TextBetween::default();
    let mut items = OpenItems::default();
    for part in answer.split_inclusive('\n') {
        let content = part.trim_end_matches(['\r', '\n']);
        let line = context.read(content);
        context = line.context;
        match line.kind {
            LineKind::Opening(fence) if fence.has_backticks() && text.ends_in_backticks => {
                return None;
            }
            LineKind::Opening(fence) => {
                items.read(&line, content);
                let containers = items.items.clone();
                let block = FencedBlock::begin(fence, content, text.is_in_html(), containers);
                blocks.push(block);
            }
            LineKind::Code(_) => {
                if let Some(block) = blocks.last_mut() {
                    block.read(content, &part[content.len()..]);
                }
            }
            LineKind::Closing => {
                if let Some(block) = blocks.last_mut() {
                    block.close(content);
                }
            }
            _ => {
                if let Some(block) = blocks.last_mut() {
                    block.end = BlockEnd::Closed;
                }
                items.read(&line, content);
                text.read(&line, content);
            }
        }
    }
    Some(blocks)
}

/// The items of lists that are open, each within the one before.
#[derive(Default)]
struct OpenItems {
    items: Vec<Container>,
    /// Whether the line before is prose.
    is_after_prose: bool,
}

impl OpenItems {
    /// Reads a line outside fenced code.
    fn read(&mut self, line: &MarkdownLine, content: &str) {
        let is_prose = line.kind == LineKind::Prose;
        // A paragraph goes on with lines that are not indented.
        let continues_paragraph = is_prose && self.is_after_prose && line.items.is_empty();
        if !continues_paragraph {
            self.items.retain(|item| item.holds(content));
        }
        self.items.extend(&line.items);
        self.items.truncate(MAX_NESTED_ITEMS);
        self.is_after_prose = is_prose;
    }
}

/// The text between the blocks, by what it means for those that follow.
#[derive(Default)]
struct TextBetween {
    /// Whether a line ends in backticks, which may be meant to open or close a block.
    ends_in_backticks: bool,
    /// What ends the HTML that is open; nothing if none is.
    html_ends: &'static [&'static str],
}

impl TextBetween {
    fn read(&mut self, line: &MarkdownLine, content: &str) {
        self.ends_in_backticks |= ends_in_backticks(content);
        if !self.is_in_html() && line.kind != LineKind::Indented {
            self.html_ends = ends_of_html(text_from(content, line.begin));
        }
        let lower = content.to_ascii_lowercase();
        if self.html_ends.iter().any(|end| lower.contains(end)) {
            self.html_ends = &[];
        }
    }

    fn is_in_html(&self) -> bool {
        !self.html_ends.is_empty()
    }
}

/// Returns what ends the HTML that a text begins, if blank lines do not end it: these are the first five kinds of HTML blocks in
/// CommonMark. Nothing if it begins none.
fn ends_of_html(text: &str) -> &'static [&'static str] {
    let text = text.to_ascii_lowercase();
    if text.starts_with("<!--") {
        return &["-->"];
    }
    if text.starts_with("<?") {
        return &["?>"];
    }
    if text.starts_with("<![cdata[") {
        return &["]]>"];
    }
    let declaration = text.strip_prefix("<!");
    if declaration.is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_alphabetic()))
    {
        return &[">"];
    }
    for tag in ["<pre", "<script", "<style", "<textarea"] {
        let rest = text.strip_prefix(tag);
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '>'])) {
            return &["</pre>", "</script>", "</style>", "</textarea>"];
        }
    }
    &[]
}

/// Returns the part of a line that begins at this column.
fn text_from(line: &str, begin: usize) -> &str {
    let mut column = 0;
    for (place, character) in line.char_indices() {
        if column >= begin {
            return &line[place..];
        }
        column = column_after(column, character);
    }
    ""
}

/// Returns the language that a fence names: the first word after it. Models also write `{.python}`, `Bash` and `sh,ignore`.
fn language(info: &str) -> Option<String> {
    let attributes = info.strip_prefix('{');
    let word = match attributes {
        Some(attributes) => attributes.trim_start().trim_start_matches('.'),
        None => info,
    };
    let is_end = |letter: char| letter.is_whitespace() || matches!(letter, ',' | '{' | '}');
    let word = word.split(is_end).next().unwrap_or_default();
    if word.is_empty() {
        return None;
    }
    let word = word.to_lowercase();
    let known = LANGUAGES.iter().find(|names| names.contains(&&*word));
    Some(known.map_or(word, |names| names[0].to_owned()))
}

/// Whether the line has text before backticks that nothing follows, except perhaps the name of a language.
fn ends_in_backticks(text: &str) -> bool {
    let Some((before, after)) = text.trim_end().rsplit_once("```") else {
        return false;
    };
    let has_text = !before.trim_end_matches('`').is_empty();
    let is_language =
        after.starts_with(char::is_alphabetic) && !after.contains(char::is_whitespace);
    if !has_text || !(after.is_empty() || is_language) {
        return false;
    }
    // Backticks that end code within the line have a partner before them.
    let runs = text.split(|character| character != '`');
    let long_runs = runs.filter(|run| run.len() >= MIN_FENCE);
    long_runs.count() % 2 == 1
}
