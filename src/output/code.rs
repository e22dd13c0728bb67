//! The code in an answer: the contents of its fenced blocks, after CommonMark's rules for fences, line by line.

/// The fewest characters of a fence (CommonMark, 4.5).
const SHORTEST_FENCE: usize = 3;

/// How far a fence may be indented within what it stands in; further in, it is text.
const FURTHEST_INDENT: usize = 3;

/// The line that opens a block.
#[derive(Debug, Clone, Copy)]
struct Fence {
    indent: usize,
    character: char,
    length: usize,
}

/// The contents of all fenced code blocks, one after the other; `None` where there is no block. A last block that is not
/// closed goes to the end.
pub(crate) fn extract(answer: &str) -> Option<String> {
    let mut code = String::new();
    let mut found = false;
    let mut open: Option<Fence> = None;
    // Where the text of the list items begins in which a line may stand.
    let mut items: Vec<usize> = Vec::new();
    for line in answer.split_inclusive('\n') {
        if let Some(fence) = open {
            if closes(line, fence) {
                open = None;
            } else {
                code.push_str(without_indent(line, fence.indent));
                if !line.ends_with('\n') {
                    code.push('\n');
                }
            }
            continue;
        }
        let (text, column) = into_items(line, &mut items);
        let begin = items.last().copied().filter(|begin| *begin <= column).unwrap_or(0);
        open = opening(text, column).filter(|_| column - begin <= FURTHEST_INDENT);
        found |= open.is_some();
    }
    found.then_some(code)
}

/// Follows a line into the list items that it continues or begins. Returns its text behind their markers, and the column
/// at which that stands.
fn into_items<'a>(line: &'a str, items: &mut Vec<usize>) -> (&'a str, usize) {
    let mut text = line.trim_start_matches(' ');
    let mut column = line.len() - text.len();
    if text.trim().is_empty() {
        return (text, column);
    }
    items.retain(|begin| *begin <= column);
    while let Some(marker) = marker_width(text) {
        let behind = &text[marker..];
        let blanks = behind.len() - behind.trim_start_matches(' ').len();
        column += marker + blanks;
        items.push(column);
        text = &behind[blanks..];
    }
    (text, column)
}

/// The length of a list item's marker, where a line begins with one that text follows.
fn marker_width(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let width = match text.as_bytes().get(digits)? {
        b'-' | b'*' | b'+' if digits == 0 => 1,
        b'.' | b')' if (1..=9).contains(&digits) => digits + 1,
        _ => return None,
    };
    (text.as_bytes().get(width) == Some(&b' ')).then_some(width)
}

fn opening(text: &str, indent: usize) -> Option<Fence> {
    let character = text.chars().next().filter(|character| matches!(character, '`' | '~'))?;
    let length = text.chars().take_while(|other| *other == character).count();
    // Behind backticks, more of them make it code within a line.
    let sound = length >= SHORTEST_FENCE && (character == '~' || !text[length..].contains('`'));
    sound.then_some(Fence { indent, character, length })
}

fn closes(line: &str, fence: Fence) -> bool {
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    let length = text.chars().take_while(|character| *character == fence.character).count();
    indent <= fence.indent + FURTHEST_INDENT && length >= fence.length && text[length..].trim().is_empty()
}

fn without_indent(line: &str, indent: usize) -> &str {
    let blanks = line.len() - line.trim_start_matches(' ').len();
    &line[blanks.min(indent)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contents_of_fences_are_extracted() {
        for (answer, code) in [
            ("text\n```sh\nls -l\n```\nmore\n", Some("ls -l\n")),
            ("~~~\na\n~~~\n", Some("a\n")),
            ("```\na\n```\nthen\n~~~ python\nb\n~~~\n", Some("a\nb\n")),
            ("````md\n```sh\nx\n```\n````\n", Some("```sh\nx\n```\n")),
            ("```\na\n~~~\nb\n```\n", Some("a\n~~~\nb\n")),
            ("```\na\n`````\nb\n", Some("a\n")),
            ("```\nnot closed", Some("not closed\n")),
            ("```\n``` not a close\n```\n", Some("``` not a close\n")),
            ("  ```\n    a\n  b\nc\n  ```\n", Some("  a\nb\nc\n")),
            ("```\n\n\ta\n  \n```\n", Some("\n\ta\n  \n")),
            ("```\r\na\r\n```\r\n", Some("a\r\n")),
            ("1. Run\n   ```sh\n   ls\n   ```\n2. Then\n\n   ```sh\n   df\n   ```\n", Some("ls\ndf\n")),
            ("- a\n  - b\n\n    ```\n    deep\n      er\n    ```\n", Some("deep\n  er\n")),
            ("- ```\n  a\n  ```\n", Some("a\n")),
            ("10. x\n\n    ```\n    y\n    ```\n", Some("y\n")),
            ("```\n    ```\n```\n", Some("    ```\n")),
            ("``` a`b\n", None),
            ("``\nx\n``\n", None),
            ("   ```\n   x\n   ```\n", Some("x\n")),
            ("```\nx\n   ```\ny\n", Some("x\n")),
            ("    ```\n    x\n    ```\n", None),
            ("- a\n\n     ```\n     x\n     ```\n", Some("x\n")),
            ("- a\n\n      ```\n      x\n      ```\n", None),
            ("123456789. ```\n           x\n           ```\n", Some("x\n")),
            ("1- ```\n   x\n", None),
            ("1234567890. ```\n            x\n", None),
            ("inline ```x``` code\n", None),
            ("```\n```\n", Some("")),
            ("", None),
            ("plain\n", None),
        ] {
            assert_eq!(extract(answer).as_deref(), code, "{answer:?}");
        }
    }
}
