//! Finds where reasoning ends in a text if no tag opens it, or the tag was opened again within it (pure).

use super::markdown::{BlockContext, LineKind, OpenFence};

/// The tags that the templates of some servers open themselves, so that only the closing one arrives: those of DeepSeek and
/// Qwen, of Seed, of MiniMax, of LongCat, of K2 Think, of Kimi, and of Mistral. Few other texts have them: those about them, and XML, which has the opening tag, too.
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

/// A closing tag that is not only mentioned.
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
    /// It may also be a line of code that the answer has.
    MayEnd,
    /// It is a line of code.
    Quoted,
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

/// Returns the reasoning that a text begins with, though no tag opens it, and the text after the tag that closes it. A text that
/// only mentions the tag has none: in code, in quotation marks, as a word of a sentence, or after the opening tag. Reasoning may
/// end within code that it has left open, which only the whole text shows.
pub fn split_at_end(text: &str, extent: Extent) -> Option<(&str, &str)> {
    let mut found = None;
    find_tags(text, extent, |tag| {
        if tag.certainty == Certainty::Ends {
            found = Some((tag.before, tag.after));
        }
        found.is_some()
    });
    found
}

/// Whether some code of a text may belong to reasoning, because a closing tag follows it.
pub fn may_follow_code(text: &str) -> bool {
    let mut follows = false;
    find_tags(text, Extent::Whole, |tag| {
        follows = tag.follows_code && tag.certainty != Certainty::Quoted;
        follows
    });
    follows
}

/// Calls `is_enough` for each closing tag until it says so, or until reasoning is opened by a tag in prose.
fn find_tags<'a>(text: &'a str, extent: Extent, mut is_enough: impl FnMut(EndTag<'a>) -> bool) {
    // Most answers end here.
    if !has_closing_tag(text) {
        return;
    }
    let (code_end, blocks) = match extent {
        Extent::Beginning => (CodeEnd::Closed, 0),
        Extent::Whole => read_code(text),
    };
    let mut context = BlockContext::default();
    let mut begin = 0;
    let mut blocks_before = 0;
    let mut tags_in_code = 0;
    // Whether code has opened the tag, so that the next closing one belongs to it.
    let mut is_opened_in_code = false;
    for line in text.split_inclusive('\n') {
        let at_line = begin;
        begin += line.len();
        let fence = context.fence();
        let read = context.read(line.trim_end_matches(['\r', '\n']));
        context = read.context;
        let is_code = match read.kind {
            LineKind::Opening(_) => {
                blocks_before += 1;
                is_opened_in_code = false;
                continue;
            }
            LineKind::Closing => continue,
            LineKind::Code(_) => true,
            _ => false,
        };
        let Some((at, tag, close)) = first_tag(line) else {
            continue;
        };
        let (before, rest) = text.split_at(at_line + at);
        let after = &rest[tag.len()..];
        let mut certainty = Certainty::Ends;
        if let (true, Some(fence)) = (is_code, fence) {
            if tag != close {
                is_opened_in_code = !line[at..].contains(close);
                continue;
            }
            if std::mem::take(&mut is_opened_in_code) || extent == Extent::Beginning {
                continue;
            }
            tags_in_code += 1;
            let stays_open = code_end != CodeEnd::Closed && blocks_before == blocks;
            let end_after = (tags_in_code <= MAX_TAGS_IN_CODE).then(|| read_code(after).0);
            certainty = match end_after {
                None => Certainty::MayEnd,
                // The fence that closes the code would be left over.
                Some(CodeEnd::Empty) => Certainty::Quoted,
                _ if stays_open => Certainty::Ends,
                Some(CodeEnd::Closed) if code_end != CodeEnd::Closed => Certainty::Ends,
                Some(CodeEnd::Closed) if opens_another(after, fence) => Certainty::Ends,
                Some(CodeEnd::Closed) => Certainty::Quoted,
                Some(CodeEnd::Open) => Certainty::MayEnd,
            };
        } else if tag != close {
            // What follows is no answer.
            return;
        }
        let follows_code = blocks_before > 0;
        if is_enough(EndTag {
            before,
            after,
            certainty,
            follows_code,
        }) {
            return;
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

/// Whether a line opens code with a name before this fence is closed. Such a line is no code, unless the code is about fences.
fn opens_another(text: &str, fence: OpenFence) -> bool {
    let mut context = BlockContext::within(fence);
    for line in text.lines() {
        let read = context.read(line);
        if !matches!(read.kind, LineKind::Code(_)) {
            return false;
        }
        context = read.context;
        if let LineKind::Opening(inner) = BlockContext::default().read(line).kind
            && !inner.info_of(line).is_empty()
        {
            return true;
        }
    }
    false
}

/// Returns the first tag in a line that is not only mentioned: its place, the tag, and the tag that closes its reasoning.
fn first_tag(line: &str) -> Option<(usize, &'static str, &'static str)> {
    let has_tag = |&(open, close): &(&str, &str)| line.contains(close) || line.contains(open);
    if !OPENED_BY_TEMPLATES.iter().any(has_tag) {
        return None;
    }
    // Whether a backtick and a quotation mark are open.
    let (mut in_code, mut in_quotes) = (false, false);
    let last_backtick = line.rfind('`').unwrap_or_default();
    for (at, char) in line.char_indices() {
        in_code ^= char == '`';
        in_quotes ^= char == '"';
        for &(open, close) in OPENED_BY_TEMPLATES {
            let rest = &line[at..];
            let found = [
                (open, after_opening(rest, open)),
                (close, rest.strip_prefix(close)),
            ];
            for (tag, after) in found {
                if let Some(after) = after {
                    let is_code = in_code && at < last_backtick;
                    if !is_code && !is_mention(&line[..at], after, in_quotes) {
                        return Some((at, tag, close));
                    }
                }
            }
        }
    }
    None
}

/// Returns what follows an opening tag that the text begins with. As in XML, it may have attributes.
fn after_opening<'a>(text: &'a str, open: &str) -> Option<&'a str> {
    if let Some(after) = text.strip_prefix(open) {
        return Some(after);
    }
    let after = text.strip_prefix(open.strip_suffix('>')?)?;
    after.starts_with([' ', '\t', '\n']).then_some(after)
}

/// Whether prose only mentions the tag between these parts of a line.
fn is_mention(before: &str, after: &str, in_quotes: bool) -> bool {
    let left = before.chars().next_back().unwrap_or('\n');
    let right = after.chars().next().unwrap_or('\n');
    match left {
        '"' => in_quotes && matches!(right, '"' | '\\'),
        '\'' => matches!(right, '\'' | '\\'),
        '“' | '„' | '«' | '»' | '‘' | '(' => "”“»«’)".contains(right),
        ' ' => " .,;:!?".contains(right),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_closing_tag_is_found_by_its_slash() {
        for (_, close) in OPENED_BY_TEMPLATES {
            assert!(has_closing_tag(&format!("a/b {close}c")), "{close}");
            assert!(!has_closing_tag(&close.replace('/', "")), "{close}");
        }
    }
    use crate::text::table::rows;

    fn line_ends(text: &str) -> String {
        text.replace('␊', "\n").replace('␍', "\r")
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
        for mention in ["`</think>` ", "\"</think>\" "] {
            let has_none = split_at_end(&mention.repeat(200_000), Extent::Whole).is_none();
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
        let table = r##"
            ```␊ls␊```␊</think>␊No. | yes
            so␊</think>␊```␊ls␊``` | no
            ```␊ls␊```␊ends with `</think>` | no
            ```␊ls␊``` | no
        "##;
        for [text, is_doubtful] in rows(table) {
            let text = line_ends(text);
            assert_eq!(may_follow_code(&text), is_doubtful == "yes", "{text}");
        }
    }

    #[test]
    fn an_opening_tag_may_have_attributes() {
        for (text, is_split) in [
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
