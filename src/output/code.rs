//! Finds the code in an answer: the contents of its fenced blocks (pure).
//!
//! The rules are those of CommonMark 0.31 (chapters 4 and 5) except those for HTML, because models put fences directly
//! into elements such as `<details>`.

use super::wrap::{MIN_FENCE, opening_fence, run_of};

/// A line that is indented further is indented code or text of a paragraph, and begins no other block.
const MAX_INDENT: usize = 3;

/// The columns from one tab stop to the next.
const TAB: usize = 4;

/// What may stand after a marker, and on a blank line.
const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// How deeply lists and block quotes may be nested. Each line is compared with all of them, which takes time.
const MAX_DEPTH: usize = 100;

/// The contents of all fenced code blocks, one after the other, including those in lists and block quotes. A last block
/// that is not closed extends to the end.
///
/// # Errors
/// Why there is no code: all blocks are empty, or it is not certain which lines are code.
pub fn extract(answer: &str) -> Result<String, &'static str> {
    let document = Document::of(answer);
    if document.is_uncertain {
        return Err(
            "it is not certain which lines of the answer are code: a line of text ends in backticks",
        );
    }
    match document.code {
        Some(code) if !code.trim().is_empty() => Ok(code),
        _ => Err("there is no code block in the answer"),
    }
}

/// A block that contains other blocks.
#[derive(Clone, Copy)]
enum Container {
    Quote,
    Item {
        /// How many columns its lines are indented within the block that contains the item.
        indent: usize,
        /// The item has only its marker so far.
        empty: bool,
    },
}

/// The innermost block, which contains text.
#[derive(PartialEq, Eq, Default)]
enum Leaf {
    #[default]
    None,
    Paragraph,
    Code(FenceLine),
}

/// The line that opens a fenced block.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FenceLine {
    indent: usize,
    character: char,
    length: usize,
}

/// The code so far, and the blocks that are open at the end of a line.
#[derive(Default)]
struct Document {
    containers: Vec<Container>,
    leaf: Leaf,
    code: Option<String>,
    /// A line of text ends in backticks. They may be meant to open or close a block.
    text_ends_in_backticks: bool,
    /// After such a line, a fence may close a block where it seems to open one.
    is_uncertain: bool,
}

impl Document {
    fn of(answer: &str) -> Document {
        let mut document = Document::default();
        for text in answer.split_inclusive('\n') {
            document.read(&mut LineReader {
                text,
                ..LineReader::default()
            });
        }
        document
    }

    fn read(&mut self, line: &mut LineReader) {
        let matched = self.match_containers(line);
        let all_matched = matched == self.containers.len();
        if let Leaf::Code(fence) = self.leaf
            && all_matched
        {
            return self.read_code(fence, line);
        }
        let in_paragraph = self.leaf == Leaf::Paragraph;
        // A line of a paragraph may lack the markers of the blocks around the paragraph.
        let containers_before = self.containers.clone();
        self.containers.truncate(matched);
        if !all_matched {
            self.leaf = Leaf::None;
        }
        if self.begin_blocks(line) {
            return;
        }

        self.text_ends_in_backticks |= ends_in_backticks(line.text());
        let begins_block = self.containers.len() > matched;
        if in_paragraph && !all_matched && !begins_block {
            self.containers = containers_before;
            self.leaf = Leaf::Paragraph;
        } else if line.indent() <= MAX_INDENT {
            // Text that is indented further continues a paragraph, or it is indented code.
            self.leaf = Leaf::Paragraph;
        }
    }

    /// Opens the blocks that begin with this line. Returns whether no text is left after them.
    fn begin_blocks(&mut self, line: &mut LineReader) -> bool {
        while !line.is_blank() {
            if line.indent() > MAX_INDENT || self.containers.len() == MAX_DEPTH {
                return false;
            }
            if line.skip_quote_marker() {
                self.containers.push(Container::Quote);
            } else if let Some(leaf) = self.begin_leaf(line) {
                self.leaf = leaf;
                return true;
            } else {
                let in_paragraph = self.leaf == Leaf::Paragraph;
                let Some(item) = line.skip_item_marker(in_paragraph) else {
                    return false;
                };
                self.containers.push(item);
            }
            self.leaf = Leaf::None;
        }
        self.leaf = Leaf::None;
        true
    }

    /// Skips the markers and the indent of the containers that the line continues. Returns how many they are.
    fn match_containers(&mut self, line: &mut LineReader) -> usize {
        for (index, container) in self.containers.iter_mut().enumerate() {
            let matched = match container {
                Container::Quote => line.indent() <= MAX_INDENT && line.skip_quote_marker(),
                // An item that begins with a blank line ends with the next one.
                Container::Item { empty: true, .. } if line.is_blank() => false,
                Container::Item { indent, empty } => {
                    let matched = line.indent() >= *indent || line.is_blank();
                    if matched {
                        line.skip_columns(*indent);
                        *empty = false;
                    }
                    matched
                }
            };
            if !matched {
                return index;
            }
        }
        self.containers.len()
    }

    fn read_code(&mut self, fence: FenceLine, line: &mut LineReader) {
        if line.indent() <= MAX_INDENT && fence.is_closed_by(line.text()) {
            self.leaf = Leaf::None;
            return;
        }
        line.skip_columns(line.indent().min(fence.indent));
        let code = self.code.get_or_insert_default();
        code.extend(std::iter::repeat_n(' ', line.left_of_tab));
        code.push_str(line.rest());
    }

    /// Reads a line that is a block of its own, or opens one that is no container. Returns what is open after the line.
    fn begin_leaf(&mut self, line: &LineReader) -> Option<Leaf> {
        let text = line.text();
        if let Some((character, length)) = opening_fence(text) {
            self.is_uncertain |= self.text_ends_in_backticks && character == '`';
            self.code.get_or_insert_default();
            return Some(Leaf::Code(FenceLine {
                indent: line.indent(),
                character,
                length,
            }));
        }
        let ends_paragraph = self.leaf == Leaf::Paragraph && is_underline(text);
        if !ends_paragraph && !is_heading(text) && !is_thematic_break(text) {
            return None;
        }
        self.text_ends_in_backticks |= ends_in_backticks(text);
        Some(Leaf::None)
    }
}

impl FenceLine {
    fn is_closed_by(self, text: &str) -> bool {
        let length = run_of(text, self.character);
        length >= self.length && text[length..].trim().is_empty()
    }
}

/// A line, and how much of it has been read. A tab counts as the blanks up to the next tab stop.
#[derive(Default)]
struct LineReader<'a> {
    text: &'a str,
    at: usize,
    column: usize,
    /// How many columns are left of a tab that has been read in part.
    left_of_tab: usize,
}

impl<'a> LineReader<'a> {
    /// What has not been read, without the rest of a tab.
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The same without leading blanks.
    fn text(&self) -> &'a str {
        self.rest().trim_start_matches([' ', '\t'])
    }

    fn is_blank(&self) -> bool {
        self.rest().trim_matches(BLANKS).is_empty()
    }

    /// How many columns of blanks come next.
    fn indent(&self) -> usize {
        let mut column = self.column + self.left_of_tab;
        for byte in self.rest().bytes() {
            column += match byte {
                b' ' => 1,
                b'\t' => TAB - column % TAB,
                _ => break,
            };
        }
        column - self.column
    }

    /// Reads up to this many columns of blanks.
    fn skip_columns(&mut self, count: usize) {
        for _ in 0..count.min(self.indent()) {
            if self.left_of_tab > 0 {
                self.left_of_tab -= 1;
            } else {
                if self.rest().starts_with('\t') {
                    self.left_of_tab = TAB - self.column % TAB - 1;
                }
                self.at += 1;
            }
            self.column += 1;
        }
    }

    /// Reads `>` and the blanks that belong to it, if it comes next.
    fn skip_quote_marker(&mut self) -> bool {
        if !self.text().starts_with('>') {
            return false;
        }
        self.skip_marker(1);
        self.skip_columns(1);
        true
    }

    /// Reads the marker of a list item, if one comes next.
    fn skip_item_marker(&mut self, in_paragraph: bool) -> Option<Container> {
        let text = self.text();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let width = match (digits, text.as_bytes().get(digits)?) {
            (0, b'-' | b'*' | b'+') => 1,
            (1..=9, b'.' | b')') => digits + 1,
            _ => return None,
        };
        let after = &text[width..];
        let empty = after.trim().is_empty();
        let blank_follows = after.is_empty() || after.starts_with(BLANKS);
        // Text like “1986. A great year” continues its paragraph.
        let is_first = digits == 0 || text[..digits].parse() == Ok(1);
        let continues_paragraph = in_paragraph && (empty || !is_first);
        if !blank_follows || continues_paragraph {
            return None;
        }
        let before = self.indent();
        self.skip_marker(width);
        // Text that is indented further is indented code within the item.
        let blanks = match self.indent() {
            blanks @ 1..=4 if !empty => blanks,
            _ => 1,
        };
        self.skip_columns(blanks);
        Some(Container::Item {
            indent: before + width + blanks,
            empty,
        })
    }

    /// Reads blanks and a marker of this many bytes.
    fn skip_marker(&mut self, width: usize) {
        self.skip_columns(self.indent());
        self.at += width;
        self.column += width;
    }
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

fn is_heading(text: &str) -> bool {
    let level = run_of(text, '#');
    let title = &text[level..];
    let is_apart = title.is_empty() || title.starts_with(BLANKS);
    (1..=6).contains(&level) && is_apart
}

fn is_thematic_break(text: &str) -> bool {
    let marks = text.replace(|character: char| character.is_ascii_whitespace(), "");
    let is_uniform = ['-', '*', '_'].iter().any(|mark| is_made_of(&marks, *mark));
    is_uniform && marks.len() >= 3
}

/// Whether the line makes the paragraph above it a heading.
fn is_underline(text: &str) -> bool {
    let text = text.trim_end();
    !text.is_empty() && (is_made_of(text, '=') || is_made_of(text, '-'))
}

fn is_made_of(text: &str, character: char) -> bool {
    run_of(text, character) == text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

    use super::*;

    /// The same, by another CommonMark parser.
    fn extracted_by_another(answer: &str) -> Option<String> {
        let mut code: Option<String> = None;
        let mut inside = false;
        for event in Parser::new(answer) {
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => {
                    inside = true;
                    code.get_or_insert_default();
                }
                Event::End(TagEnd::CodeBlock) => inside = false,
                Event::Text(text) if inside => code.get_or_insert_default().push_str(&text),
                _ => {}
            }
        }
        code
    }

    proptest! {
        #[test]
        fn another_parser_finds_the_same(
            lines in proptest::collection::vec(
                (
                    prop::sample::select(vec![
                        "", "", " ", "  ", "   ", "    ", "\t", "      ", "> ", ">", "> > ", "- ", "-\t", "* ", "- - ", "1. ",
                        "2) ", "> - ", "- > ", "  > ", ">   ", ">     ", "1.  ",
                    ]),
                    prop::sample::select(vec![
                        "", "", "a", "b", "```", "```", "~~~", "````", "``` sh", "``` `", "# h", "---", "***", "===",
                    ]),
                ),
                1..9,
            ),
        ) {
            let text: String = lines.iter().map(|(begin, end)| format!("{begin}{end}\n")).collect();
            prop_assert_eq!(Document::of(&text).code, extracted_by_another(&text), "{}", text);
        }
    }

    #[test]
    fn the_contents_of_fences_are_extracted() {
        for (answer, code) in [
            ("text\n```sh\nls -l\n```\nmore\n", Some("ls -l\n")),
            ("~~~\na\n~~~\n", Some("a\n")),
            ("```\na\n```\nthen\n~~~ python\nb\n~~~\n", Some("a\nb\n")),
            ("````md\n```sh\nx\n```\n````\n", Some("```sh\nx\n```\n")),
            ("```\na\n~~~\nb\n```\n", Some("a\n~~~\nb\n")),
            ("```\nnot closed", Some("not closed")),
            ("```\n``` not a close\n```\n", Some("``` not a close\n")),
            ("~~~\n```\n~~~~~\nout\n", Some("```\n")),
            ("```sh title=\"x.sh\" {1,2}\na\n```\n", Some("a\n")),
            ("~~~ a`b\nc\n~~~\n", Some("c\n")),
            ("``` a`b\nno code\n\n```\nx\n```\n", Some("x\n")),
            ("  ```\n    a\n  b\nc\n  ```\n", Some("  a\nb\nc\n")),
            ("```\n\n\ta\n  \n```\n", Some("\n\ta\n  \n")),
            ("```\n&amp; \\* <b>\n```\n", Some("&amp; \\* <b>\n")),
            ("```\r\na\r\n\r\n\tb\r\n```\r\n", Some("a\r\n\r\n\tb\r\n")),
            (
                "> - x\r\n>   ```\r\n>   a\r\n>\r\n>   ```\r\n",
                Some("a\r\n\r\n"),
            ),
            (
                "1. Run\n   ```sh\n   ls\n   ```\n2. Then\n\n   ```sh\n   df\n   ```\n",
                Some("ls\ndf\n"),
            ),
            (
                "- a\n  - b\n\n    ```\n    deep\n      er\n    ```\n",
                Some("deep\n  er\n"),
            ),
            ("-\tx\n\n\t```\n\ta\n\t\tb\n\t```\n", Some("a\n\tb\n")),
            ("> ```sh\n> ls -l\n>\n> df\n> ```\n", Some("ls -l\n\ndf\n")),
            ("- a\nb\n    ```\n    x\n    ```\n", Some("x\n")),
            ("-\n\n    ```\n    x\n    ```\n", None),
            ("- ```\n\t\n", Some("  \n")),
            ("-\t```\n      ~~~\n", Some("  ~~~\n")),
            ("-\t```\n      \n", Some("  \n")),
            ("-  a\n\n    ```\n \t x\n    ```\n", Some(" x\n")),
            ("- \n  ```\na\n", Some("")),
            ("-\t\n  > ```\n> - \n", Some("")),
            ("> \n``` `\n2) ```\n", None),
            ("- ---\n    ```\n", None),
            ("- ---\n  ```\n``` sh\n", Some("``` sh\n")),
            ("``` `\n- ```\n  ~~~\n", Some("~~~\n")),
            ("===\n- ```\n  ~~~\n", Some("~~~\n")),
            ("a\n- ```\n", Some("")),
            ("    a\n2. ```\n   x\n   ```\n", Some("x\n")),
            ("a\n    b\n2. ```\n   x\n", None),
            ("a\n===\n2. ```\n   x\n   ```\n", Some("x\n")),
            ("# a\n2. ```\n   x\n   ```\n", Some("x\n")),
            ("#a\n2. ```\n   x\n", None),
            ("####### a\n2. ```\n   x\n", None),
            ("    ```\n    x\n    ```\n", None),
            ("``\nx\n``\n", None),
            ("inline ```x``` code\n", None),
            ("<details>\n```\nx\n```\n</details>\n", Some("x\n")),
            ("```\n```\n", Some("")),
            ("", None),
            ("plain\n", None),
        ] {
            assert_eq!(Document::of(answer).code.as_deref(), code, "{answer:?}");
            let expected = code.filter(|code| !code.trim().is_empty());
            assert_eq!(extract(answer).ok().as_deref(), expected, "{answer:?}");
        }
    }

    #[test]
    fn lines_that_may_or_may_not_be_code_are_not_extracted() {
        for (answer, is_uncertain) in [
            ("foo.```\n", false),
            ("foo.```\nls\n```\n", true),
            ("Run this: ```bash\nls\n```\nThen reboot.\n", true),
            ("1. Run ```sh\n   ls\n   ```\n", true),
            ("> foo.````\n> ls\n> ````\n", true),
            ("# Run ```sh\nls\n```\n", true),
            ("a\n    b ```\n\n```\nls\n```\n", true),
            ("foo ```a``` and ```\nls\n```\n", true),
            ("```\nls\n```\nfoo.```\n", false),
            ("foo.```\n\n~~~\nls\n~~~\n", false),
            ("```\nfoo.```\n```\n", false),
            ("- ```sh\n  ls\n  ```\n", false),
            ("Use ```ls```\n\n```\nls\n```\n", false),
            ("Blocks begin with ``` here.\n\n```\nls\n```\n", false),
            ("It is `` ``` ``\n\n```\nls\n```\n", false),
            ("Write \"```\".\n\n```\nls\n```\n", false),
        ] {
            assert_eq!(
                Document::of(answer).is_uncertain,
                is_uncertain,
                "{answer:?}"
            );
            assert!(!is_uncertain || extract(answer).is_err(), "{answer:?}");
        }
    }
}
