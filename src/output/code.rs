//! Finds the code in an answer: the contents of its fenced blocks (pure).

use super::markdown::{LineKind, MIN_FENCE, Reader};

/// The contents of all fenced code blocks, one after the other, including those in lists and block quotes. A last block
/// that is not closed extends to the end.
///
/// # Errors
/// Why there is no code: all blocks are empty, or it is not certain which lines are code.
pub fn extract(answer: &str) -> Result<String, &'static str> {
    let mut reader = Reader::default();
    let mut code = String::new();
    // A line of text ends in backticks, which may be meant to open or close a block.
    let mut text_ends_in_backticks = false;
    for text in answer.split_inclusive('\n') {
        let line = text.trim_end_matches(['\r', '\n']);
        reader.read_line(line);
        let is_code = reader.kind == LineKind::Code;
        if is_code && let Some(fence) = reader.fence {
            code.push_str(&fence.code_of(line));
            code.push_str(&text[line.len()..]);
        }
        let is_fence = reader.kind == LineKind::Fence;
        if is_fence && reader.has_backticks() && text_ends_in_backticks {
            return Err(
                "it is not certain which lines of the answer are code: a line of text ends in backticks",
            );
        }
        text_ends_in_backticks |= !is_fence && !is_code && ends_in_backticks(line);
    }
    if code.trim().is_empty() {
        return Err("there is no code block in the answer");
    }
    Ok(code)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::tests::rows;
    use crate::output::wrap::{Formatter, Look};

    /// An answer of a table: some of its characters stand for blanks and line ends.
    fn text(column: &str) -> String {
        let text = column.replace('␊', "\n").replace('␍', "\r");
        text.replace('→', "\t").replace('·', " ")
    }

    #[test]
    fn the_contents_of_fences_are_extracted() {
        let table = r##"
            text␊```sh␊ls -l␊```␊more␊ | ls -l␊
            ~~~␊a␊~~~␊ | a␊
            ```␊a␊```␊then␊~~~ python␊b␊~~~␊ | a␊b␊
            ````md␊```sh␊x␊```␊````␊ | ```sh␊x␊```␊
            ```␊a␊~~~␊b␊```␊ | a␊~~~␊b␊
            ```␊``` not a close␊```␊ | ``` not a close␊
            ~~~␊```␊~~~~~␊out␊ | ```␊
            ```sh title="x.sh" {1,2}␊a␊```␊ | a␊
            ``` a`b␊no code␊␊```␊x␊```␊ | x␊
            ··```␊····a␊··b␊c␊··```␊ | ··a␊b␊c␊
            ```␊␊→a␊··␊```␊ | ␊→a␊··␊
            ```␍␊a␍␊␍␊→b␍␊```␍␊ | a␍␊␍␊→b␍␊
            > - x␍␊>   ```␍␊>   a␍␊>␍␊>   ```␍␊ | a␍␊␍␊
            1. Run␊   ```sh␊   ls␊   ```␊2. Then␊␊   ```sh␊   df␊   ```␊ | ls␊df␊
            - a␊  - b␊␊    ```␊    deep␊      er␊    ```␊ | deep␊  er␊
            -→x␊␊→```␊→a␊→→b␊→```␊ | a␊→b␊
            ·```␊→x␊·```␊ | ·······x␊
            > ```sh␊> ls -l␊>␊> df␊> ```␊ | ls -l␊␊df␊
            > ```␊> ls␊rm␊ | ls␊
            - a␊b␊    ```␊    x␊    ```␊ | x␊
            - Run:␊␊      ```␊      x␊      ```␊ | x␊
            1. Run:␊   ```␊x␊   ```␊2. Then␊ | x␊
            2. ```␊   x␊   ```␊ | x␊
            -␊␊    ```␊    x␊    ```␊ | -
            ····```␊····x␊····```␊ | -
            inline ```x``` code␊ | -
            ```␊```␊ | -
            - | -
            plain␊ | -
        "##;
        for [answer, code] in rows(table) {
            let found = extract(&text(answer)).unwrap_or_default();
            assert_eq!(found, text(code), "{answer}");
        }
    }

    #[test]
    fn lines_that_may_or_may_not_be_code_are_not_extracted() {
        let table = r##"
            no | foo.```␊
            yes | foo.```␊ls␊```␊
            yes | Run this: ```bash␊ls␊```␊Then reboot.␊
            yes | 1. Run ```sh␊   ls␊   ```␊
            yes | > foo.````␊> ls␊> ````␊
            yes | a␊    b ```␊␊```␊ls␊```␊
            yes | foo ```a``` and ```␊ls␊```␊
            no | foo.```␊␊~~~␊ls␊~~~␊
            no | ```␊foo.```␊```␊
            no | - ```sh␊  ls␊  ```␊
            no | Use ```ls```␊␊```␊ls␊```␊
            no | Blocks begin with ``` here.␊␊```␊ls␊```␊
            no | Write "```".␊␊```␊ls␊```␊
        "##;
        for [is_uncertain, answer] in rows(table) {
            let result = extract(&text(answer));
            let refused = matches!(result, Err(reason) if reason.contains("not certain"));
            assert_eq!(refused, is_uncertain == "yes", "{answer}");
        }
    }

    /// The text that a terminal shows in the colour of code, without blanks.
    fn coloured(answer: &str) -> String {
        let styles = Look {
            wraps: false,
            styles: true,
        };
        let mut formatter = Formatter::new(styles);
        let shown = formatter.feed(answer, 80) + &formatter.finish(80);
        let mut code = String::new();
        for part in shown.split("\u{1b}[36m").skip(1) {
            let (part, _) = part.split_once("\u{1b}[0m").expect("an end of the colour");
            code.extend(part.split_whitespace());
        }
        code
    }

    proptest! {
        #[test]
        fn what_is_coloured_as_a_block_is_what_is_extracted(
            lines in proptest::collection::vec(
                (
                    prop::sample::select(vec![
                        "", "", " ", "  ", "   ", "    ", "\t", "      ", "> ", ">", "> > ", "- ", "-\t", "* ", "- - ", "1. ",
                        "2) ", "> - ", "- > ", "  > ", ">   ", ">     ", "1.  ",
                    ]),
                    prop::sample::select(vec![
                        "", "", "a", "b", "```", "```", "~~~", "````", "``` sh", "# h", "---", "***", "===", "| a",
                    ]),
                ),
                1..9,
            ),
        ) {
            let text: String = lines.iter().map(|(begin, end)| format!("{begin}{end}\n")).collect();
            if let Ok(code) = extract(&text) {
                let words = Vec::from_iter(code.split_whitespace());
                prop_assert_eq!(coloured(&text), words.concat(), "{}", text);
            }
        }
    }
}
