//! Decides which code of an answer is printed: the contents of its fenced blocks, if it is certain what they are (pure).

use std::fmt::{self, Display};

use super::fenced_blocks::{FencedBlock, find_blocks};
use crate::error::{Error, ErrorKind};
use crate::text::reasoning_end::{may_be_reasoning, may_follow_code};

/// An error does not repeat a longer name of a language.
const MAX_SHOWN_NAME: usize = 30;

/// Who gets the code of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Somebody who reads it on a terminal.
    Person,
    /// A pipe or a file. The code may run without having been read.
    Program,
}

impl Audience {
    /// Returns who reads standard output.
    pub fn of_stdout(is_terminal: bool) -> Audience {
        if is_terminal {
            Audience::Person
        } else {
            Audience::Program
        }
    }
}

/// A reason why the code of an answer is not printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoCode {
    /// The answer has no block, or all blocks are empty.
    NoBlock,
    /// Text before a line of backticks ends in backticks, so the line may open or close a block.
    Unclear,
    /// Two blocks are in these languages; `None` is that of a block without a name.
    Languages(Option<String>, Option<String>),
    /// A line within a block opens another one, so nobody can tell where the first ends.
    Nested,
    /// The list or the block quote of a block ends, the block seems to go on, and a fence is missing.
    Unclosed,
    /// The last block is never closed, and a fence before its end may have been meant to open or close another line.
    Open,
    /// A fence is within HTML, such as a comment, where Markdown is not read.
    Html,
    /// A tag that ends reasoning follows the beginning of a block, which may be a draft.
    Reasoning,
    /// The answer begins with a tag that opens reasoning and is never closed, so all of its blocks may be drafts.
    OpenReasoning,
}

/// Returns the advice to print an answer whose code or part cannot be printed. The option names its conversation.
pub fn advice_to_print_answer(option: &str) -> String {
    format!("run q --last{option} to print the answer as it came")
}

impl NoCode {
    /// Returns the error for the user. The option names the conversation that has the answer, if one has it.
    pub fn to_error(&self, conversation: Option<&str>) -> Error {
        let error = Error::new(ErrorKind::NoCode, self.to_string());
        let has_code = *self != NoCode::NoBlock;
        let Some(option) = conversation else {
            if has_code {
                return error.advise("ask for the code in one block, or without -x");
            }
            return error;
        };
        let error = error.advise(advice_to_print_answer(option));
        if !has_code {
            return error;
        }
        let option = if option.is_empty() { " -f" } else { option };
        error.advise_also(format!("ask for one block: q{option} -x \"in one block\""))
    }
}

impl Display for NoCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoCode::NoBlock => formatter.write_str("there is no code block in the answer"),
            NoCode::Unclear => formatter.write_str(
                "cannot tell which lines of the answer are code: a line of text ends in backticks",
            ),
            NoCode::Languages(one, other) => {
                let (one, other) = (shown(one.as_deref()), shown(other.as_deref()));
                write!(
                    formatter,
                    "the answer has code blocks in different languages ({one}, {other}), so they are not printed as one"
                )
            }
            NoCode::Nested => formatter.write_str(
                "cannot tell where a code block of the answer ends: a line within it opens another block",
            ),
            NoCode::Unclosed => formatter.write_str(
                "cannot tell where a code block of the answer ends: its list or quote ends, but no fence closes it",
            ),
            NoCode::Open => formatter.write_str(
                "cannot tell where a code block of the answer ends: no fence closes the last one",
            ),
            NoCode::Reasoning => formatter.write_str(
                "cannot tell which code is of the answer: a tag that ends reasoning follows some of it",
            ),
            NoCode::OpenReasoning => formatter.write_str(
                "cannot tell which code is of the answer: it begins with a tag that opens reasoning, and none closes that",
            ),
            NoCode::Html => formatter.write_str(
                "cannot tell which lines of the answer are code: a code block begins within HTML, such as a comment",
            ),
        }
    }
}

/// Returns the name of a language for an error. A model may write anything there.
fn shown(language: Option<&str>) -> &str {
    let Some(name) = language else {
        return "unnamed";
    };
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "+-#._".contains(letter);
    if name.len() <= MAX_SHOWN_NAME && name.chars().all(is_name) {
        name
    } else {
        "another"
    }
}

/// Returns the contents of all fenced code blocks, one after the other, including those in lists and block quotes. A last block
/// that is not closed extends to the end; a program gets it only if it is alone and has nothing like a fence.
///
/// # Errors
/// Why there is no code, or, for a program, why it is not certain that the blocks are one.
pub fn extract(answer: &str, audience: Audience) -> Result<String, NoCode> {
    let mut blocks = find_blocks(answer).ok_or(NoCode::Unclear)?;
    if audience == Audience::Program && blocks.iter().any(|block| block.is_in_html) {
        return Err(NoCode::Html);
    }
    let lacks_fence = lacks_fence(&blocks);
    let is_end_uncertain = is_end_uncertain(&blocks);
    blocks.retain(|block| !block.is_empty());
    let Some(first) = blocks.first() else {
        return Err(NoCode::NoBlock);
    };
    if audience == Audience::Program {
        if may_follow_code(answer) {
            return Err(NoCode::Reasoning);
        }
        if may_be_reasoning(answer) {
            return Err(NoCode::OpenReasoning);
        }
        // What seems to follow such a block may be a part of it, so this comes first.
        if blocks.iter().any(FencedBlock::is_nested) {
            return Err(NoCode::Nested);
        }
        if lacks_fence {
            return Err(NoCode::Unclosed);
        }
        if is_end_uncertain {
            return Err(NoCode::Open);
        }
        let mut others = blocks.iter().map(|block| &block.language);
        if let Some(other) = others.find(|other| **other != first.language) {
            return Err(NoCode::Languages(first.language.clone(), other.clone()));
        }
    }
    Ok(blocks.into_iter().map(|block| block.code).collect())
}

/// Whether a fence may be missing where the list or the block quote of a block ends, because the block seems to go on there, and
/// the fences that follow open and close the wrong lines. Models write blocks that go on and are closed, so that is no sign alone.
fn lacks_fence(blocks: &[FencedBlock]) -> bool {
    let is_last_open = blocks.last().is_some_and(FencedBlock::is_open);
    let mut blocks = blocks.iter();
    blocks.any(|block| block.meets_another || is_last_open && block.goes_on_outside)
}

/// Whether the last block is open at the end of the answer, and other fences may have gone wrong. Code with a fence in it, such as
/// a script that writes Markdown, closes its block too early, so that its own end seems to open one. A fence that is too short,
/// too deep or behind code closes none.
fn is_end_uncertain(blocks: &[FencedBlock]) -> bool {
    let Some((last, before)) = blocks.split_last() else {
        return false;
    };
    last.is_open() && (!before.is_empty() || last.has_fence_characters())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::output::formatter::{DisplayOptions, Formatter};
    use crate::text::reasoning_end::{Extent, split_at_end};
    use crate::text::table::rows;

    /// An answer of a table: some of its characters mean blanks and newlines.
    fn text(column: &str) -> String {
        let text = column.replace('␊', "\n").replace('␍', "\r");
        text.replace('→', "\t").replace('·', " ")
    }

    #[test]
    fn the_contents_of_code_blocks_are_extracted() {
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
            ```␊␊··␊```␊```sh␊ls␊```␊ | ls␊
            >```sh␊>ls␊>```␊ | ls␊
            ```␊a␊→```␊``` | a␊→```␊
            -→```␊→a␊→→```␊→```␊ | a␊→```␊
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
            let found = extract(&text(answer), Audience::Person).unwrap_or_default();
            assert_eq!(found, text(code), "{answer}");
        }
    }

    #[test]
    fn an_answer_with_lines_that_may_or_may_not_be_code_is_not_extracted() {
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
            for audience in [Audience::Person, Audience::Program] {
                let refused = extract(&text(answer), audience) == Err(NoCode::Unclear);
                assert_eq!(refused, is_uncertain == "yes", "{answer}");
            }
        }
    }

    #[test]
    fn a_program_gets_blocks_of_one_language_only() {
        let sh = "sh␊bash␊shell␊zsh␊ksh␊dash␊·bash␊Bash␊SH␊sh title=\"x\"␊sh,ignore␊{.bash}␊{sh, echo=FALSE}␊{ .sh }";
        let python =
            "python␊py␊python3␊Python␊{.python .numberLines}␊python title=\"x\"␊{python}␊py{1,3}";
        let javascript = "javascript␊js␊JS␊js{1}";
        let typescript = "ts␊typescript";
        let yaml = "yaml␊yml";
        let cpp = "c++␊C++␊{.c++}␊c++ x";
        let none = "␊·␊{}";
        // Each of these is a language of its own.
        let others = "c␊c#␊jsx␊tsx␊console␊text␊sh-session␊python2␊py:a.py␊=html";
        let named = [sh, python, javascript, typescript, yaml, cpp, none];
        let mut languages: Vec<Vec<&str>> = named.map(|words| words.split('␊').collect()).to_vec();
        languages.extend(others.split('␊').map(|word| vec![word]));
        for (at, one) in languages.iter().enumerate() {
            for (other_at, other) in languages.iter().enumerate() {
                // All names of one language are the same to each other, and one of each of two languages differs.
                let pairs = if at == other_at {
                    let all = one
                        .iter()
                        .flat_map(|one| other.iter().map(move |other| (one, other)));
                    Vec::from_iter(all)
                } else {
                    Vec::from_iter(one.iter().zip(other.iter().cycle()))
                };
                for (one, other) in pairs {
                    for between in ["", "text␊", "```␊␊```␊", "~~~ru␊~~~␊"] {
                        let answer = format!("```{one}␊a␊```␊{between}~~~{other}␊b␊~~~␊");
                        let code = extract(&text(&answer), Audience::Program);
                        let is_refused = matches!(code, Err(NoCode::Languages(..)));
                        assert_eq!(is_refused, at != other_at, "{answer}");
                        let is_joined = code.as_deref() == Ok("a\nb\n");
                        assert_eq!(is_joined, at == other_at, "{answer}");
                        let shown = extract(&text(&answer), Audience::Person);
                        assert_eq!(shown.as_deref(), Ok("a\nb\n"), "{answer}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_program_gets_no_code_out_of_reasoning_that_is_never_closed() {
        let table = r##"
            yes | <thinking>␊Perhaps:␊```sh␊rm -rf a␊```␊No.␊
            yes | ␊·<thought>a␊```sh␊ls␊```␊
            yes | <thinking>␊```sh␊ls␊```
            yes | <reasoning>a</think>␊```sh␊ls␊```␊
            yes | [THINK]␊```sh␊ls␊```␊
            no | <thinking>a</thinking>␊```sh␊ls␊```␊
            no | <thinker>␊```sh␊ls␊```␊
            no | Models write <thinking> first.␊```sh␊ls␊```␊
            no | `<thinking>` is a tag.␊```sh␊ls␊```␊
            no | ```xml␊<thinking>␊```␊
        "##;
        for [may_be_reasoning, answer] in rows(table) {
            let refused = extract(&text(answer), Audience::Program) == Err(NoCode::OpenReasoning);
            assert_eq!(refused, may_be_reasoning == "yes", "{answer}");
            let shown = extract(&text(answer), Audience::Person);
            assert!(shown.is_ok(), "{answer}: {shown:?}");
        }
    }

    #[test]
    fn a_program_gets_no_block_within_which_a_line_opens_another() {
        let table = r##"
            yes | ```sh␊cat <<E␊```python␊x␊```␊E␊```␊
            yes | ```sh␊cat <<E␊```·python␊x␊```␊E␊```␊
            yes | ```␊``` not a close␊```␊
            yes | ```sh␊cat <<E␊````md␊x␊````␊E␊```␊
            yes | ```sh␊cat <<E␊~~~md␊x␊~~~␊E␊```␊
            yes | ~~~␊```sh␊ls␊```␊~~~␊
            yes | ```md␊1. Run␊···```sh␊···ls␊···```␊```␊
            yes | ```md␊- ```sh␊··ls␊··```␊```␊
            yes | > ```md␊> ```sh␊> ls␊> ```␊> ```␊
            yes | - Run␊␊··```md␊··```sh␊··ls␊··```␊··```␊
            yes | - Run␊␊··```md␊```sh␊··ls␊··```␊··```␊
            yes | ```␍␊```sh␍␊ls␍␊```␍␊
            no | ```sh␊cat <<E␊x␊E␊```␊
            no | ````md␊```sh␊ls␊```␊````␊
            no | ~~~~md␊```sh␊ls␊```␊~~~␊~~~~␊
            no | ```sh␊echo '```sh'␊```␊
            no | ```sh␊# ```sh␊```␊
            no | ```py␊····```sh␊····ls␊····```␊```␊
            no | ```sh␊``` a`b␊```␊
            no | ~~~␊```␊~~~␊
            no | ~~~␊``sh␊~~~␊
        "##;
        for [is_nested, answer] in rows(table) {
            let refused = extract(&text(answer), Audience::Program) == Err(NoCode::Nested);
            assert_eq!(refused, is_nested == "yes", "{answer}");
            let shown = extract(&text(answer), Audience::Person);
            assert!(shown.is_ok(), "{answer}: {shown:?}");
        }
    }

    #[test]
    fn a_program_gets_no_block_that_goes_on_where_its_list_or_quote_ends_and_lacks_a_fence() {
        let table = r##"
            yes | - ```sh␊··ls␊␊Never run this:␊rm␊
            yes | - ```sh␊··ls␊rm␊
            yes | - ```sh␍␊··ls␍␊␍␊rm␍␊
            yes | -·Run␊␊··```sh␊··ls␊·rm␊
            yes | - Run␊this␊··```sh␊··ls␊rm␊
            yes | 1. ```sh␊···ls␊··rm␊
            yes | 10) Run␊␊····```sh␊····ls␊␊···rm␊
            yes | 1. Run␊···- then␊␊···```sh␊···ls␊␊Never:␊rm␊
            yes | - - ```sh␊····ls␊␊··Never:␊··rm␊
            yes | - a␊··- b␊␊····```sh␊····ls␊··- rm␊
            yes | -→```sh␊→ls␊rm␊
            yes | > - ```sh␊>   ls␊>␊> Never:␊> rm␊
            yes | > > ```sh␊> > ls␊>␊> Never:␊> rm␊
            yes | > ```sh␊> ls␊␊> Never:␊> rm␊
            yes | - > ```sh␊··> ls␊> rm␊
            yes | - ```␊··ls␊␊Never:␊```␊rm␊```␊
            yes | 1. Run␊···```␊···ls␊2. Then␊···```␊···df␊···```␊
            yes | - ```␊··ls␊␊Never:␊rm␊␊- ```␊··df␊··```␊
            yes | 1. ```␊···ls␊2. ```␊···df␊···```␊
            no | - ```sh␊··ls␊␊··df␊
            no | - ```sh␊··ls␊␊␊
            no | - ```sh␊··ls␊··```␊␊Never:␊rm␊
            no | - ```sh␊ls␊··```␊
            no | - Run␊␊··```sh␊ls␊␊df␊··```␊
            no | 1. Run:␊···```sh␊x␊···```␊2. Then␊
            no | 1. Run:␊···```sh␊x␊```␊2. Then␊···```sh␊y␊```␊
            no | 1. Run:␊···```sh␊···x␊```␊
            no | 1. Run:␊···```yaml␊- x␊···```␊
            no | 1. Run:␊··```sh␊ls␊
            no | - Run␊␊```sh␊ls␊
            no | - Run␊␊Then␊␊··```sh␊ls␊
            no | ··```sh␊ls␊
            no | > ```sh␊> ls␊rm␊
            no | > ```sh␊> ls␊␊rm␊
            no | > - ```sh␊>   ls␊rm␊
            no | > ```sh␊> ls␊␊> df␊> ```␊
            no | -·····x␊␊··```sh␊··ls␊
        "##;
        for [is_unclosed, answer] in rows(table) {
            let refused = extract(&text(answer), Audience::Program) == Err(NoCode::Unclosed);
            assert_eq!(refused, is_unclosed == "yes", "{answer}");
            let shown = extract(&text(answer), Audience::Person);
            assert!(shown.is_ok(), "{answer}: {shown:?}");
        }
    }

    #[test]
    fn a_program_gets_no_block_that_is_never_closed_if_a_fence_may_be_meant_otherwise() {
        let table = r##"
            yes | ```python␊prompt = """␊Return the code in␊```␊print(prompt)␊"""␊```␊
            yes | ```sh␊cat > README.md <<EOF␊```␊make␊EOF␊```␊
            yes | ```␊cat > a.md <<EOF␊```␊make␊EOF␊```␊Run it with care.␊
            yes | ```␊cat > a.md <<EOF␊# Title␊```␊make␊```␊EOF␊Run it.␊
            yes | ```␊```␊text␊```␊ls␊
            yes | ```sh␊ls␊```␊then␊```sh␊df␊
            yes | ```sh␊ls␊```␊then␊```py␊df␊
            yes | ```sh␊ls␊```␊- then␊··~~~␊
            yes | > ```sh␊> ls␊␊```␊df
            yes | ```python␊print(1)```␊Hope this helps!␊
            yes | ```sh␊ls```
            yes | ```sh␊ls ~~~␊
            yes | ````sh␊ls␊```␊Never run this:␊
            yes | ~~~sh␊ls␊```␊Never run this:␊
            yes | ```sh␊ls␊~~~␊Never run this:␊
            yes | ```sh␍␊ls␍␊·····```␍␊Never run this:␍␊
            yes | ```sh␊ls␊→```␊Never run this:␊
            yes | ```sh␊ls␊> ```␊Never run this:␊
            yes | > ```sh␊> ls␊>·····```␊
            yes | - ```sh␊··ls␊·······```␊
            no | ```sh␊ls␊df
            no | ```sh␊ls `date` ``x`` ~~␊
            no | ```␊```␊text␊
            no | ```sh␊ls␊```␊````␊```␊````␊
            no | - Run␊␊··```sh␊··ls␊
            no | > ```sh␊> ls␊
            no | ```␊
            no | text␊
        "##;
        for [is_uncertain, answer] in rows(table) {
            let answer = text(answer);
            let refused = extract(&answer, Audience::Program) == Err(NoCode::Open);
            assert_eq!(refused, is_uncertain == "yes", "{answer}");
            let shown = extract(&answer, Audience::Person);
            let has_code = !matches!(&*answer, "```\n" | "text\n" | "```\n```\ntext\n");
            assert_eq!(shown.is_ok(), has_code, "{answer}: {shown:?}");
        }
    }

    #[test]
    fn a_program_gets_no_block_that_begins_within_html() {
        let table = r##"
            yes | <!--␊```sh␊rm␊```␊-->␊
            yes | <!--␊```sh␊rm␊```␊-->␊```sh␊ls␊```␊
            yes | <!-- never␊␊```sh␊rm␊```␊␊-->␊
            yes | text␊···<!-- never␊~~~␊rm␊~~~␊-->␊
            yes | > <!--␊> ```sh␊> rm␊> ```␊> -->␊
            yes | - <!--␊··```sh␊··rm␊··```␊··-->␊
            no | →<!--␊␊```␊ls␊```␊
            yes | <pre>␊```sh␊rm␊```␊</pre>␊
            yes | <PRE class="x">␊␊```sh␊rm␊```␊</PRE>␊
            yes | <script␊src="x">␊```sh␊rm␊```␊</script>␊
            yes | <style>␊```␊rm␊```␊</style>␊
            yes | <textarea>␊```␊rm␊```␊</textarea>␊
            yes | <?php␊```␊rm␊```␊?>␊
            yes | <!DOCTYPE␊```␊rm␊```␊>␊
            yes | <![CDATA[␊```␊rm␊```␊]]>␊
            yes | <pre>␊a -->␊```␊rm␊```␊
            yes | <!--␊```␊```␊-->␊```sh␊ls␊```␊
            no | <!-- a -->␊```sh␊ls␊```␊
            no | <!--␊a␊␊····-->␊```sh␊ls␊```␊
            no | <!-->␊```sh␊ls␊```␊
            no | <pre>x</PRE>␊```sh␊ls␊```␊
            no | <pre>␊x␊</script>␊```sh␊ls␊```␊
            no | <!doctype html>␊```sh␊ls␊```␊
            no | <? x ?>␊```sh␊ls␊```␊
            no | <prefix>␊```sh␊ls␊```␊
            no | <!␊```sh␊ls␊```␊
            no | `<!--` begins a comment␊```sh␊ls␊```␊
            no | a <!-- b␊```sh␊ls␊```␊
            no | ␊····<!--␊␊```sh␊ls␊```␊
            no | <details>␊␊```sh␊ls␊```␊␊</details>␊
            no | ```html␊<!--␊```␊text␊```html␊-->␊```␊
            no | ```html␊<pre>␊```␊
        "##;
        for [is_in_html, answer] in rows(table) {
            let refused = extract(&text(answer), Audience::Program) == Err(NoCode::Html);
            assert_eq!(refused, is_in_html == "yes", "{answer}");
            let shown = extract(&text(answer), Audience::Person);
            assert!(shown.is_ok(), "{answer}: {shown:?}");
        }
    }

    #[test]
    fn an_error_about_several_languages_does_not_repeat_an_odd_name() {
        for (one, other, said) in [
            ("sh", "python3", "(sh, python)"),
            ("", "c++", "(unnamed, c++)"),
            ("\u{1b}[31m", "sh", "(another, sh)"),
            (
                "a-language-with-a-name-of-31-bytes",
                "",
                "(another, unnamed)",
            ),
        ] {
            let answer = format!("```{one}\na\n```\n```{other}\nb\n```\n");
            let reason = extract(&answer, Audience::Program).expect_err(&answer);
            assert!(reason.to_string().contains(said), "{reason}");
        }
    }

    /// The text that a terminal shows in the colour of code, without blanks.
    fn coloured(answer: &str) -> String {
        let styles = DisplayOptions {
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

    /// What reasoning may hold, also code that is never closed and tags that are only mentioned.
    const DRAFT: [&str; 28] = [
        "draft",
        "draft",
        "",
        "```",
        "```sh",
        "```",
        "~~~",
        "~~~sh",
        "````",
        "- ```",
        "- ```sh",
        "> ```",
        "  ```",
        "   draft",
        "    draft",
        "1. ```sh",
        "\tdraft",
        "`draft",
        "say \"draft",
        "`</think>`",
        "\"</think>\"",
        "(</think>)",
        "a </think> b",
        "<think>",
        "a <think> b",
        "</thinking>",
        "x = '<think>draft</think>'",
        "```</think>",
    ];

    /// The answers behind it.
    const ANSWERS: [&str; 12] = [
        "42",
        "ls:\n```\nls\n```\n",
        "```sh\nls\n```",
        "```sh\nls\n```\nor\n```bash\nls\n```\n",
        "~~~\nls\n~~~\n",
        "~~~sh\nls\n~~~\nis it.",
        "````\nls\n````\n",
        "1. So:\n   ```sh\n   ls\n   ```\n2. Done.",
        "- ```\n  ls\n  ```\n",
        "> ```\n> ls\n> ```\n",
        "```\nls",
        "* ~~~\n  ls\n  ~~~\n```\nls\n```",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2048))]
        /// Whatever stands in reasoning that no tag opens, no program gets it as the code of the answer.
        #[test]
        fn a_program_gets_no_code_of_reasoning_before_a_closing_tag(
            draft in prop::collection::vec(prop::sample::select(&DRAFT[..]), 0..7),
            end in prop::sample::select(vec!["\n</think>\n\n", "\n</think>", "</think>\n", " </think>\n", "\n</think> \n", "\n</thinking>\n\n", "\n</think>\n\n</think>\n"]),
            answer in prop::sample::select(&ANSWERS[..]),
            is_crlf in any::<bool>(),
        ) {
            // Nobody can tell this from an answer whose code has both tags.
            let is_like_code = draft.contains(&"<think>") && answer == "```\nls";
            prop_assume!(!is_like_code);
            let mut text = draft.join("\n") + end + answer;
            if is_crlf {
                text = text.replace('\n', "\r\n");
            }
            let rest = split_at_end(&text, Extent::Whole).map_or(&*text, |(_, rest)| rest);
            if let Ok(code) = extract(rest, Audience::Program) {
                prop_assert!(!code.contains("draft"), "{:?} gave {:?}", text, code);
            }
        }

        #[test]
        fn the_lines_that_are_coloured_as_code_are_those_that_are_extracted(
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
            if let Ok(code) = extract(&text, Audience::Person) {
                let words = Vec::from_iter(code.split_whitespace());
                prop_assert_eq!(coloured(&text), words.concat(), "{}", text);
            }
        }
    }
}
