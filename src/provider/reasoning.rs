//! Separates the answer from reasoning between tags, which some models put at the beginning of a reply (pure).

/// The tags around the reasoning that some models put before the answer. Bedrock puts a pair of them around each piece.
const TAGS: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
];

/// The end of reasoning without an opening tag, which is part of the template of some servers. It is recognized only before
/// any text has been handed on: at the very beginning, or at the end of a line in an answer that comes in one piece.
const CLOSE_ALONE: &str = "</think>";

/// The most bytes that are held back at the beginning: white space, and perhaps the beginning of a tag.
const MAX_HELD: usize = 10_000;

/// The part of a reply to which the next text belongs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// So far only white space and perhaps the beginning of an opening tag. It is held back.
    #[default]
    Start,
    /// Between the tags of reasoning. What may begin this closing tag is held back.
    Thinking(&'static str),
    /// After the closing tag: white space is dropped, and what may begin another opening tag is held back.
    Thought,
    /// In the answer.
    Answer,
}

/// Removes the reasoning from a text that comes in pieces.
#[derive(Debug, Default)]
pub struct Filter {
    stage: Stage,
    held: String,
    /// Reasoning that has not been taken yet.
    pub thoughts: String,
}

impl Filter {
    /// Whether more than white space has come, of the answer or of reasoning before it.
    pub fn has_begun(&self) -> bool {
        self.stage != Stage::Start || !self.held.trim().is_empty()
    }

    /// Whether an opening tag has come and its closing tag has not.
    pub fn is_within(&self) -> bool {
        matches!(self.stage, Stage::Thinking(_))
    }

    /// Takes the next piece, and adds to `answer` what is known to belong to it.
    pub fn add(&mut self, piece: &str, answer: &mut String) {
        if self.stage == Stage::Answer {
            answer.push_str(piece);
            return;
        }
        // A piece may have megabytes, and is copied only if it must be.
        if self.held.is_empty() {
            self.read(piece, answer);
        } else {
            let text = std::mem::take(&mut self.held) + piece;
            self.read(&text, answer);
        }
    }

    /// At the end, adds to `answer` what was held back. The beginning of a tag may have been a short answer.
    pub fn end(&mut self, answer: &mut String) {
        if self.is_within() {
            self.thoughts += &std::mem::take(&mut self.held);
        } else if !self.held.trim().is_empty() {
            self.begin_answer(answer);
        }
    }

    /// Reads text at the beginning, within reasoning or after it.
    fn read(&mut self, mut text: &str, answer: &mut String) {
        loop {
            if let Stage::Thinking(close) = self.stage {
                let Some((thought, rest)) = text.split_once(close) else {
                    let mut tail = text.len().saturating_sub(close.len());
                    while !text.is_char_boundary(tail) {
                        tail -= 1;
                    }
                    self.thoughts += &text[..tail];
                    self.held.push_str(&text[tail..]);
                    return;
                };
                self.thoughts += thought;
                self.stage = Stage::Thought;
                text = rest;
            }
            let begin = text.trim_start();
            if let Some((thought, close)) = opened(begin) {
                self.stage = Stage::Thinking(close);
                text = thought;
            } else if self.stage == Stage::Start
                && let Some((thought, rest)) = around_close_alone(begin)
            {
                self.thoughts += thought;
                self.stage = Stage::Thought;
                text = rest;
            } else {
                // Only an answer without reasoning before it keeps its white space.
                if self.stage == Stage::Thought {
                    text = begin;
                }
                // It may be the beginning of a tag.
                let may_open = TAGS.iter().any(|(open, _)| open.starts_with(begin));
                let may_be_tag = may_open || CLOSE_ALONE.starts_with(begin);
                if !may_be_tag || text.len() > MAX_HELD {
                    self.stage = Stage::Answer;
                    answer.push_str(text);
                } else {
                    self.held.push_str(text);
                }
                return;
            }
        }
    }

    /// The text held back is the beginning of the answer.
    fn begin_answer(&mut self, answer: &mut String) {
        self.stage = Stage::Answer;
        answer.push_str(&std::mem::take(&mut self.held));
    }
}

/// What follows the opening tag that the text begins with, and the tag that closes it.
fn opened(text: &str) -> Option<(&str, &'static str)> {
    let mut tags = TAGS.iter();
    tags.find_map(|&(open, close)| Some((text.strip_prefix(open)?, close)))
}

/// What stands before and after the end of reasoning that has no opening tag. The closing tag must stand alone on a line.
/// Elsewhere the answer only mentions the tag.
fn around_close_alone(text: &str) -> Option<(&str, &str)> {
    let (before, rest) = text.split_once(CLOSE_ALONE)?;
    let line_ends = rest.is_empty() || rest.starts_with(['\n', '\r']);
    let stands_alone = line_ends && before.ends_with('\n');
    if before.is_empty() || stands_alone {
        Some((before, rest))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text_of(pieces: &[&str]) -> String {
        let (mut filter, mut answer) = (Filter::default(), String::new());
        for piece in pieces {
            filter.add(piece, &mut answer);
        }
        filter.end(&mut answer);
        answer
    }

    #[test]
    fn leading_reasoning_is_left_out() {
        for (whole, answer) in [
            ("plain", "plain"),
            ("  indented", "  indented"),
            ("<think>let me see</think>\n\n42", "42"),
            ("\n<think>\nso\n</think>42", "42"),
            ("<think></think>42", "42"),
            ("<think>never closed", ""),
            ("<thin", "<thin"),
            ("<thinking>so</thinking>42", "42"),
            ("<thought>so</thought>\n42", "42"),
            ("<reasoning>so</reasoning>\n42", "42"),
            ("[THINK]so[/THINK]42", "42"),
            ("[THIN", "[THIN"),
            ("<think>a</thinking>b</think>42", "42"),
            ("</think>\n42", "42"),
            ("<thinker> is no tag", "<thinker> is no tag"),
            ("see <think>this</think>", "see <think>this</think>"),
            // A pair around each piece.
            (
                "<reasoning>so</reasoning><reasoning> I</reasoning>\n<reasoning>say</reasoning>42",
                "42",
            ),
            ("<think>a</think>\n\n<think>b</think>\n42", "42"),
            ("<think>a</think><thinking>b</thinking>42", "42"),
            ("<think>a</think><think>never closed", ""),
            ("<think>a</think>", ""),
            ("<think>a</think> <thin", "<thin"),
            ("<think>a</think>42 <think>b</think>", "42 <think>b</think>"),
            ("<think>a</think>so\n</think>\n42", "so\n</think>\n42"),
            ("<think>ä</thinkö</think>ü", "ü"),
            ("", ""),
            (" \n ", ""),
        ] {
            assert_eq!(text_of(&[whole]), answer, "{whole}");
            let mut filter = Filter::default();
            filter.add(whole, &mut String::new());
            assert_eq!(filter.has_begun(), !whole.trim().is_empty(), "{whole}");
            let characters: Vec<String> = whole.chars().map(String::from).collect();
            let characters: Vec<&str> = characters.iter().map(String::as_str).collect();
            assert_eq!(text_of(&characters), answer, "{whole}, by character");
        }
    }

    #[test]
    fn endless_white_space_is_not_held_back() {
        let (mut filter, mut answer) = (Filter::default(), String::new());
        for _ in 0..=MAX_HELD {
            filter.add(" ", &mut answer);
        }
        assert_eq!((filter.held.len(), answer.len()), (0, MAX_HELD + 1));
    }

    #[test]
    fn reasoning_without_its_opening_tag_is_left_out_of_an_answer_in_one_piece() {
        assert_eq!(text_of(&["so I say\n</think>\n\n42"]), "42");
        assert_eq!(text_of(&["so I say\n</think>\r\n42"]), "42");
        assert_eq!(text_of(&["so I say\n</think>", "\n42"]), "42");
        // An answer about the tag.
        for answer in [
            "write </think> at the end",
            "like\n</think> so",
            "`a`</think>\nb",
            "x.split(\"</think>\")[-1]\n",
        ] {
            assert_eq!(text_of(&[answer]), answer);
        }
        // Text that was handed on cannot be taken back.
        assert_eq!(text_of(&["so I say", "</think>42"]), "so I say</think>42");
    }

    proptest! {
        #[test]
        fn where_an_answer_is_split_does_not_matter(
            thought in "[a-z<>/ ]{0,12}", again in "(<think>[a-z<>/ ]{0,6}</think>|<thin|</think>|)",
            answer in "[a-z<>/ ]{0,12}", at in 0usize..68,
        ) {
            let whole = format!("<think>{thought}</think>{again}{answer}");
            let at = at.min(whole.len());
            prop_assert_eq!(text_of(&[&whole[..at], &whole[at..]]), text_of(&[&whole]));
        }
    }
}
