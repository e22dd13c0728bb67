//! Finds where reasoning ends in a text if no tag opens it, or the tag was opened again within it (pure).

use std::collections::HashMap;
use std::mem;
use std::ops::Range;

use super::markdown::{BlockContext, LineKind, OpenFence};

/// The tags that the templates of some servers open themselves, so that only the closing one arrives: those of DeepSeek and
/// Qwen, of Seed, of MiniMax, of LongCat, of K2 Think, of Kimi, and of Mistral. Few other texts have them: those about them, and
/// XML, which has the opening tag, too.
pub const OPENED_BY_TEMPLATES: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
    ("<seed:think>", "</seed:think>"),
    ("<mm:think>", "</mm:think>"),
    ("<longcat_think>", "</longcat_think>"),
    ("<think_fast>", "</think_fast>"),
    ("<think_faster>", "</think_faster>"),
    ("◁think▷", "◁/think▷"),
];

/// How many closing tags within code are looked at, because each is compared with all of the text.
const MAX_TAGS_IN_CODE: usize = 8;

/// How much of a text is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// More may follow, also the end of code that is open.
    Beginning,
    Whole,
}

/// A closing tag that may end reasoning.
struct EndTag<'a> {
    /// What stands before it, and what follows it.
    before: &'a str,
    after: &'a str,
    certainty: Certainty,
    /// Whether code begins before it.
    follows_code: bool,
}

/// Whether a closing tag ends reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Certainty {
    Ends,
    /// It may also be a part of the answer: a word, a line of code, or the end of what an opening tag in the answer began.
    MayEnd,
    /// It is a line of code.
    Quoted,
}

/// Returns the reasoning that a text begins with, though no tag opens it, and the text after the tag that closes it. A text that
/// only mentions the tag has none: in code, in quotation marks, as a word of a sentence, or after the opening tag. Reasoning may
/// end within code that it has left open, which only the whole text shows.
pub fn split_at_end(text: &str, extent: Extent) -> Option<(&str, &str)> {
    let mut tags = end_tags(text, extent).into_iter();
    let end = tags.find(|tag| tag.certainty == Certainty::Ends)?;
    Some((end.before, end.after))
}

/// Whether some code of a text may belong to reasoning, because a closing tag follows it.
pub fn may_follow_code(text: &str) -> bool {
    let mut tags = end_tags(text, Extent::Whole).into_iter();
    tags.any(|tag| tag.follows_code && tag.certainty != Certainty::Quoted)
}

/// Whether all of a text may be reasoning, because it begins with a tag that opens some, which is never closed.
pub fn may_be_reasoning(text: &str) -> bool {
    let text = text.trim_start();
    OPENED_BY_TEMPLATES.iter().any(|(open, close)| {
        text.strip_prefix(open)
            .is_some_and(|rest| !rest.contains(close))
    })
}

/// Finds the closing tags that may end reasoning.
fn end_tags(text: &str, extent: Extent) -> Vec<EndTag<'_>> {
    let mut found = Vec::new();
    // Most answers end here.
    if !has_closing_tag(text) {
        return found;
    }
    let mut judge = CodeJudge::new(text, extent);
    let mut context = BlockContext::default();
    let mut begin = 0;
    let mut preceding = Preceding::default();
    for line in text.split_inclusive('\n') {
        let fence = context.fence();
        let read = context.read(line.trim_end_matches(['\r', '\n']));
        context = read.context;
        for tag in tags_of(line) {
            if !tag.closes {
                preceding.note_opening_tag(read.kind);
                continue;
            }
            let (before, rest) = text.split_at(begin + tag.at);
            let after = &rest[tag.length..];
            let mut certainty = match (read.kind, fence) {
                (LineKind::Code(_), Some(fence)) => {
                    let closes_one = preceding.close_in_code();
                    judge.certainty(after, fence, preceding.blocks, closes_one)
                }
                // What the answer shows as code, or calls it.
                (LineKind::Indented | LineKind::Opening(_), _) => Certainty::MayEnd,
                _ => Certainty::Ends,
            };
            let is_doubtful = preceding.is_opened_in_prose || tag.is_word;
            if certainty == Certainty::Ends && is_doubtful {
                certainty = Certainty::MayEnd;
            }
            found.push(EndTag {
                before,
                after,
                certainty,
                follows_code: preceding.blocks > 0,
            });
        }
        preceding.note_line(read.kind);
        begin += line.len();
    }
    found
}

/// What matters of the text before a closing tag.
#[derive(Default)]
struct Preceding {
    /// Whether a tag has opened reasoning in prose, or in the current block of code.
    is_opened_in_prose: bool,
    is_opened_in_code: bool,
    /// How many blocks of fenced code have begun.
    blocks: usize,
}

impl Preceding {
    /// Records a tag that opens reasoning, in a line of this kind.
    fn note_opening_tag(&mut self, line: LineKind) {
        match line {
            LineKind::Code(_) => self.is_opened_in_code = true,
            _ => self.is_opened_in_prose = true,
        }
    }

    /// Records a closing tag in code. Returns whether a tag in the same block has opened what it closes.
    fn close_in_code(&mut self) -> bool {
        mem::take(&mut self.is_opened_in_code)
    }

    /// Records a line of this kind, after its tags.
    fn note_line(&mut self, line: LineKind) {
        if let LineKind::Opening(_) = line {
            self.blocks += 1;
            self.is_opened_in_code = false;
        }
    }
}

/// What decides whether a closing tag within code ends reasoning: how the code of the text goes on with and without the tag.
struct CodeJudge {
    extent: Extent,
    /// How the last code of the text ends, and how many blocks there are.
    end: CodeEnd,
    blocks: usize,
    /// How many tags it has been asked about.
    tags: usize,
}

/// How the last fenced code of a text ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodeEnd {
    /// By a closing fence, or there is no code.
    Closed,
    /// With the text, without a line of code.
    Empty,
    /// With the text.
    Open,
}

impl CodeJudge {
    fn new(text: &str, extent: Extent) -> CodeJudge {
        let (end, blocks) = match extent {
            Extent::Beginning => (CodeEnd::Closed, 0),
            Extent::Whole => read_code(text),
        };
        CodeJudge {
            extent,
            end,
            blocks,
            tags: 0,
        }
    }

    /// Returns whether a tag ends reasoning, from what follows it, the fence of its code, which block that is, and whether the tag
    /// closes one in the same block.
    fn certainty(
        &mut self,
        after: &str,
        fence: OpenFence,
        block: usize,
        closes_one: bool,
    ) -> Certainty {
        // The end of the code may still follow.
        if self.extent == Extent::Beginning {
            return Certainty::MayEnd;
        }
        self.tags += 1;
        if self.tags > MAX_TAGS_IN_CODE {
            return Certainty::MayEnd;
        }
        let is_closed = self.end == CodeEnd::Closed;
        let is_another_opened = opens_another(after, fence);
        if closes_one {
            return if is_closed && !is_another_opened {
                Certainty::Quoted
            } else {
                Certainty::MayEnd
            };
        }
        let stays_open = !is_closed && block == self.blocks;
        match read_code(after).0 {
            // The fence that closes the code would be left over.
            CodeEnd::Empty => Certainty::Quoted,
            _ if stays_open => Certainty::Ends,
            CodeEnd::Closed if !is_closed || is_another_opened => Certainty::Ends,
            CodeEnd::Closed => Certainty::Quoted,
            CodeEnd::Open => Certainty::MayEnd,
        }
    }
}

/// Whether a text has some closing tag. Each of them has a slash, so a long text is searched once, and not for each tag.
fn has_closing_tag(text: &str) -> bool {
    text.match_indices('/').any(|(slash, _)| {
        let (before, after) = text.split_at(slash);
        OPENED_BY_TEMPLATES.iter().any(|(_, close)| {
            let (begin, end) = close.split_at(close.find('/').unwrap_or_default());
            before.ends_with(begin) && after.starts_with(end)
        })
    })
}

/// Returns how the last fenced code of a text ends, and how many blocks of it there are.
fn read_code(text: &str) -> (CodeEnd, usize) {
    let mut context = BlockContext::default();
    let (mut end, mut blocks) = (CodeEnd::Closed, 0);
    for line in text.lines() {
        let read = context.read(line);
        context = read.context;
        end = match read.kind {
            LineKind::Opening(_) => {
                blocks += 1;
                CodeEnd::Empty
            }
            LineKind::Code(_) if end == CodeEnd::Empty && line.trim().is_empty() => end,
            LineKind::Code(_) => CodeEnd::Open,
            _ => CodeEnd::Closed,
        };
    }
    (end, blocks)
}

/// Whether something after a tag opens code before this fence, in whose code the tag is, is closed: a fence on the line of the tag,
/// one with a name, or one in a list or quote. None of these is a line of code, unless the code is about fences.
fn opens_another(after: &str, fence: OpenFence) -> bool {
    let mut context = BlockContext::within(fence);
    for (index, line) in after.lines().enumerate() {
        let opening = OpenFence::opened_by(line);
        // It continues the line of the tag, and so closes nothing.
        let is_rest = index == 0;
        if !is_rest {
            let read = context.read(line);
            if !matches!(read.kind, LineKind::Code(_)) {
                return false;
            }
            context = read.context;
        }
        if let Some(inner) = opening {
            let is_marked = !line.trim_start().starts_with(['`', '~']);
            if is_rest || is_marked || !inner.info_of(line).is_empty() {
                return true;
            }
        }
    }
    false
}

/// A tag in a line that is not only mentioned.
#[derive(Debug, PartialEq, Eq)]
struct Tag {
    at: usize,
    length: usize,
    /// Whether it closes reasoning, and does not open it.
    closes: bool,
    /// Whether it stands between blanks, like a word of a sentence.
    is_word: bool,
}

/// How a tag stands in its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TagPlace {
    /// Where it is a tag.
    Bare,
    /// Between blanks or before punctuation, like a word of a sentence.
    Word,
    /// In quotation marks or parentheses.
    Mention,
}

/// Finds the tags in a line that are neither in inline code nor in quotation marks. An opening one that is a word is only mentioned.
fn tags_of(line: &str) -> Vec<Tag> {
    let mut found = Vec::new();
    let has_tag = |&(open, close): &(&str, &str)| {
        line.contains(close) || line.contains(open.trim_end_matches('>'))
    };
    if !OPENED_BY_TEMPLATES.iter().any(has_tag) {
        return found;
    }
    let mut codes = inline_codes(line).into_iter().peekable();
    let mut in_quotes = false;
    for (at, char) in line.char_indices() {
        in_quotes ^= char == '"';
        while codes.next_if(|code| code.end <= at).is_some() {}
        let is_code = codes.peek().is_some_and(|code| code.contains(&at));
        let Some((length, closes)) = tag_at(&line[at..]) else {
            continue;
        };
        let place = place_of(&line[..at], &line[at + length..], in_quotes);
        let is_word = place == TagPlace::Word;
        let is_mention = is_code || place == TagPlace::Mention || (is_word && !closes);
        if !is_mention {
            found.push(Tag {
                at,
                length,
                closes,
                is_word,
            });
        }
    }
    found
}

/// Returns the length of the tag that the text begins with, and whether it closes reasoning.
fn tag_at(text: &str) -> Option<(usize, bool)> {
    OPENED_BY_TEMPLATES.iter().find_map(|&(open, close)| {
        if text.starts_with(close) {
            return Some((close.len(), true));
        }
        after_opening(text, open).map(|after| (text.len() - after.len(), false))
    })
}

/// Returns what follows an opening tag that the text begins with. As in XML, it may have attributes, also on the lines after it.
fn after_opening<'a>(text: &'a str, open: &str) -> Option<&'a str> {
    if let Some(after) = text.strip_prefix(open) {
        return Some(after);
    }
    let attributes = text.strip_prefix(open.strip_suffix('>')?)?;
    if !attributes.starts_with([' ', '\t', '\r', '\n']) {
        return None;
    }
    // Another tag ends one that is never closed.
    let end = attributes.find(['<', '>']).unwrap_or(attributes.len());
    let after = &attributes[end..];
    Some(after.strip_prefix('>').unwrap_or(after))
}

/// Returns the places of code within a line: from backticks to the next ones that are as many.
fn inline_codes(line: &str) -> Vec<Range<usize>> {
    let mut ticks: Vec<Range<usize>> = Vec::new();
    for (at, _) in line.match_indices('`') {
        match ticks.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            _ => ticks.push(at..at + 1),
        }
    }
    // Where the last ones of each length are, so that none are looked for in vain.
    let mut last = HashMap::new();
    for run in &ticks {
        last.insert(run.len(), run.start);
    }
    let mut codes = Vec::new();
    let mut runs = ticks.into_iter();
    while let Some(opening) = runs.next() {
        if last.get(&opening.len()) == Some(&opening.start) {
            continue;
        }
        if let Some(closing) = runs.find(|run| run.len() == opening.len()) {
            codes.push(opening.start..closing.end);
        }
    }
    codes
}

/// Returns how the tag between these parts of a line stands there.
fn place_of(before: &str, after: &str, in_quotes: bool) -> TagPlace {
    let left = before.chars().next_back().unwrap_or('\n');
    let right = after.chars().next().unwrap_or('\n');
    let is_mention = match left {
        '"' => in_quotes && matches!(right, '"' | '\\'),
        '\'' => matches!(right, '\'' | '\\'),
        '“' | '„' | '«' | '»' | '‘' | '(' => "”“»«’)".contains(right),
        _ => false,
    };
    if is_mention {
        TagPlace::Mention
    } else if left == ' ' && " .,;:!?".contains(right) {
        TagPlace::Word
    } else {
        TagPlace::Bare
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn each_closing_tag_is_found_by_its_slash() {
        for (_, close) in OPENED_BY_TEMPLATES {
            assert!(has_closing_tag(&format!("a/b {close}c")), "{close}");
            assert!(!has_closing_tag(&close.replace('/', "")), "{close}");
        }
    }

    fn line_ends(text: &str) -> String {
        let text = text.replace('␊', "\n").replace('␍', "\r");
        text.replace('␉', "\t").replace('·', " ")
    }

    #[test]
    fn reasoning_that_the_template_has_opened_ends_at_its_closing_tag() {
        let table = r##"
            so I say␊</think>␊␊42 | so I say␊ | ␊␊42
            so I say␊</think>␍␊42 | so I say␊ | ␍␊42
            so I say.</think>42 | so I say. | 42
            so I say </think>␊42 | so I say  | ␊42
            it is `42`</think>**42** | it is `42` | **42**
            he says "42"</think>"42" | he says "42" | "42"
            so␊</think> 42 | so␊ |  42
            so␊```␊a␊```␊</think>␊42 | so␊```␊a␊```␊ | ␊42
            the tag `<think>`?␊</think>␊42 | the tag `<think>`?␊ | ␊42
            so</think>a</think>b | so | a</think>b
            so</seed:think>42 | so | 42
            so</mm:think>42 | so | 42
            so</longcat_think>42 | so | 42
            so</think_fast>42 | so | 42
            so</thinking>42 | so | 42
            so</reasoning>42 | so | 42
            so␊[/THINK]␊42 | so␊ | ␊42
            so</think_faster>42 | so | 42
            ends with ``</think>``, I say␊</think>␊42 | ends with ``</think>``, I say␊ | ␊42
            a ` b</think>42 | a ` b | 42
            a `` b</think>`42` | a `` b | `42`
            first </think> is said, then␊</think>␊42 | first </think> is said, then␊ | ␊42
            1. so␊   </think>␊42 | 1. so␊    | ␊42
            > so␊> </think>␊42 | > so␊>  | ␊42
            so␊␉</think>␊42 | so␊␉ | ␊42
            ```␍␊a␍␊```␍␊</think>␍␊42 | ```␍␊a␍␊```␍␊ | ␍␊42
            so◁/think▷42 | so | 42
            so</think> | so | -
            </think>42 | - | 42
        "##;
        for [text, thought, answer] in rows(table) {
            let text = line_ends(text);
            let found = split_at_end(&text, Extent::Beginning).expect(&text);
            assert_eq!(split_at_end(&text, Extent::Whole), Some(found), "{text}");
            let found = (found.0.trim(), found.1.trim());
            let [thought, answer] = [thought, answer].map(line_ends);
            assert_eq!(found, (thought.trim(), answer.trim()), "{text}");
        }
    }

    #[test]
    fn an_answer_that_mentions_the_tag_has_no_reasoning() {
        let table = r##"
            write </think> at the end
            it ends with </think>.
            x.split("</think>")[-1]
            `x.split('</think>')[-1]` takes the rest
            print("</think>\n")
            the tag `</think>` ends it
            `so</think>42` is one
            the tag (</think>) ends it
            „</think>“ ends it
            ```␊so␊</think>␊42␊```␊is one
            ~~~ xml␊so</think>42␊~~~
            <think>so</think>42 is one
            first ␊<think>␊so␊</think>␊42
            first <think>so</think>42
            the tag ``</think>`` ends it
            ```` ` </think> ``` ```` ends it
            Write:␊␊    so␊    </think>␊␊at the end
            Write:␊␊␉</think>␊␊at the end
            ```</think>␊42␊```
            I am done. </think> 42
            ```xml␊<thinking>␊so␊</thinking>␊```
            </thinker>
            I think so
        "##;
        for [text] in rows(table) {
            let text = line_ends(text);
            for extent in [Extent::Beginning, Extent::Whole] {
                assert_eq!(split_at_end(&text, extent), None, "{text}");
            }
        }
        // The work grows with the length of a line, and not with its square.
        for mention in ["`</think>` ", "\"</think>\" ", "(</think>) <reasoning "] {
            let has_none = split_at_end(&mention.repeat(20_000), Extent::Whole).is_none();
            assert!(has_none, "{mention}");
        }
    }

    #[test]
    fn reasoning_ends_within_the_code_that_it_has_left_open_if_the_rest_is_whole_without_it() {
        // The text, and what follows the reasoning.
        let table = r##"
            ```sh␊rm␊</think>␊␊Use:␊```␊ls␊``` | ␊␊Use:␊```␊ls␊```
            ```sh␊rm␊</think>␊␊Use:␊```sh␊ls␊``` | ␊␊Use:␊```sh␊ls␊```
            ```sh␊rm␊</think>␊```sh␊ls␊```␊or␊```sh␊df␊``` | ␊```sh␊ls␊```␊or␊```sh␊df␊```
            ```sh␊rm␊</think>␊```␊ls␊```␊or␊```␊df␊``` | ␊```␊ls␊```␊or␊```␊df␊```
            ~~~␊rm␊</think>␊```␊ls␊``` | ␊```␊ls␊```
            ```sh␊rm␊</think>␊- ```␊  ls␊  ``` | ␊- ```␊  ls␊  ```
            ```sh␊rm␊</think>````␊ls␊```` | ````␊ls␊````
            ```sh␊rm␊```</think>␊```sh␊ls␊``` | ␊```sh␊ls␊```
            ```sh␍␊rm␍␊</think>␍␊```sh␍␊ls␍␊```␍␊ | ␍␊```sh␍␊ls␍␊```␍␊
            ````␊rm␊</think>␊```␊ls␊``` | ␊```␊ls␊```
            1. So:␊   ```sh␊   rm␊</think>␊Use:␊```␊ls␊``` | ␊Use:␊```␊ls␊```
            ```sh␊rm␊</think>␊No code. | ␊No code.
            ```sh␊rm</think>No code. | No code.
            ```sh␊rm␊[/THINK]␊No code. | ␊No code.
            ```json␊{"n":1}␊</think>␊{"n":2} | ␊{"n":2}
            ```sh␊rm␊</think> | -
            ```␊a␊```␊```sh␊rm␊</think>␊Use ls. | ␊Use ls.
            ```sh␊rm␊</think>␊Use:␊```sh␊ls | ␊Use:␊```sh␊ls
        "##;
        for [text, rest] in rows(table) {
            let [text, rest] = [text, rest].map(line_ends);
            let found = split_at_end(&text, Extent::Whole).map(|(_, rest)| rest.trim());
            assert_eq!(found, Some(rest.trim()), "{text}");
            // The end of the code may still follow.
            assert_eq!(split_at_end(&text, Extent::Beginning), None, "{text}");
        }
    }

    #[test]
    fn code_that_an_answer_closes_belongs_to_it_though_a_tag_is_within() {
        // The text, and whether its code may be reasoning.
        let table = r##"
            ```␊so␊</think>␊42␊``` | no
            Write:␊```␊so␊</think>␊42␊```␊ | no
            ```md␊</think>␊```sh␊ls␊```␊``` | no
            ````md␊</think>␊```sh␊ls␊```␊```` | no
            ```␊<think>␊so␊</think>␊``` | no
            ```␊x.split("</think>")␊```␊a␊```␊b␊``` | no
            ```␊x </think> y␊``` | no
            ```xml␊<think>so</think>␊```␊is one | no
            ```xml␊<think>␊so␊</think>␊```␊is one | no
            ```xml␊<think>␊so␊</think>␊```␊```xml␊<a/>␊``` | no
            ```sh␊rm␊<think>␊so␊</think>␊Use:␊```␊ls␊``` | yes
            ```sh␊rm␊<think>␊so␊</think>␊Use:␊```sh␊ls␊``` | yes
            ```sh␊rm no </think> Use:␊```␊ls␊``` | yes
            ```sh␊rm no </think> Use:␊```sh␊ls␊``` | yes
            ```␊so␊</think>␊42␊```␊is one | yes
            ```sh␊rm␊</think>␊Use:␊```␊ls | yes
            ```␊a␊</think>␊```␊then␊```sh␊ls | yes
        "##;
        for [text, is_doubtful] in rows(table) {
            let text = line_ends(text);
            assert_eq!(split_at_end(&text, Extent::Whole), None, "{text}");
            assert_eq!(may_follow_code(&text), is_doubtful == "yes", "{text}");
        }
        // Each is compared with all of the text.
        let many = "```\n</think>\n```\n".repeat(20_000);
        assert!(may_follow_code(&many));
    }

    #[test]
    fn code_before_a_tag_in_prose_may_be_reasoning() {
        // What follows code, and whether that may be reasoning.
        let table = r##"
            </think>␊No. | yes
            No, wrong. </think> Use: | yes
            It ends with </think>. | yes
            <think>␊no␊</think>␊Use: | yes
            <think>no</think>Use: | yes
            <think> no</think></think> | yes
            ␊    no␊    </think>␊Use: | yes
            ```</think>␊ls␊``` | yes
            It ends with `</think>` | no
            It ends with ``</think>`` | no
            It ends with "</think>". | no
            It ends with (</think>). | no
            It begins with <think> | no
            - | no
        "##;
        for [rest, is_doubtful] in rows(table) {
            let [rest, code] = [rest, "```␊rm␊```␊"].map(line_ends);
            let text = format!("{code}{rest}");
            assert_eq!(may_follow_code(&text), is_doubtful == "yes", "{text}");
            let without_code = format!("{rest}\n```\nls\n```");
            assert!(!may_follow_code(&without_code), "{without_code}");
        }
    }

    #[test]
    fn all_tags_of_a_line_are_found_but_those_that_it_only_mentions() {
        // The line, and what it has: `<` opens, `>` closes, `w` is a closing tag that is a word.
        let table = r##"
            <think>a</think></think> | < > >
            [THINK]a[/THINK] | < >
            <think_fast>a</think_faster> | < >
            a </think> b </think>. </think> | w w >
            a <think> b <reasoning x="1">c | <
            a <reasoning | -
            a <reasoning␊ | <
            `<think>` ``</think>`` </think>`a` | >
            `a </think> b | w
            ` </think> ``` </think> ` </think> | >
            "</think>" "a</think>" '</think>' (</think>) “</think>” | >
            x("</think>\n") y('</think>\n') | -
            ä</think>ö | >
            <thinker></thinks></think | -
        "##;
        for [line, expected] in rows(table) {
            let mut found = Vec::new();
            for tag in tags_of(&line_ends(line)) {
                let name = if tag.is_word { "w" } else { ">" };
                found.push(if tag.closes { name } else { "<" });
            }
            assert_eq!(found.join(" "), expected, "{line}");
        }
    }

    #[test]
    fn an_opening_tag_may_have_attributes() {
        for (text, is_split) in [
            ("see <reasoning lang=\"en\">why</reasoning><b>42</b>", false),
            ("see <reasoning\r\n  a=\"b\">why</reasoning>42", false),
            (
                "<a><reasoning lang=\"en\">why</reasoning><b>42</b></a>",
                false,
            ),
            ("<a><reasoning>why</reasoning><b>42</b></a>", false),
            ("<reasoning-steps>why</reasoning>42", true),
            ("why</reasoning>42", true),
        ] {
            let found = split_at_end(text, Extent::Whole);
            assert_eq!(found.is_some(), is_split, "{text}");
        }
    }

    #[test]
    fn the_end_of_each_tag_that_templates_open_ends_reasoning() {
        let tags = "</think> </thinking> </thought> </reasoning> [/THINK] </seed:think> </mm:think> </longcat_think> \
                    </think_fast> </think_faster> ◁/think▷";
        for tag in tags.split_whitespace() {
            let text = format!("why{tag}\n42");
            let found = split_at_end(&text, Extent::Whole);
            assert_eq!(found, Some(("why", "\n42")), "{tag}");
        }
    }
}
