//! Separates the answer from reasoning between tags at the beginning of a reply (pure).

use crate::text::reasoning_end::{Extent, OPENED_BY_TEMPLATES, split_at_end};

/// The tags around the reasoning of models whose templates do not open it, besides [`OPENED_BY_TEMPLATES`]. Bedrock puts a pair of
/// tags around each piece.
const OPENED_BY_MODELS: &[(&str, &str)] = &[
    // Cohere, OpenThinker, Apertus, and Gemma.
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|channel>thought", "<channel|>"),
    // The channels of gpt-oss, as a server shows them that does not read them. Nothing is between the last two.
    ("<|channel|>analysis<|message|>", "<|end|>"),
    (
        "<|start|>assistant<|channel|>analysis<|message|>",
        "<|end|>",
    ),
    ("<|start|>assistant<|channel|>final", "<|message|>"),
    ("<|channel|>final", "<|message|>"),
];

/// Returns all tags around the reasoning that some models put before the answer.
fn tags() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    OPENED_BY_TEMPLATES.iter().chain(OPENED_BY_MODELS)
}

/// Returns the tags that open what this tag closes.
fn openings_with(close: &str) -> impl Iterator<Item = &'static str> {
    let pairs = tags().filter(move |(_, end)| *end == close);
    pairs.map(|(open, _)| *open)
}

/// The most bytes that are held back at the beginning: whitespace, and perhaps the beginning of a tag.
const MAX_HELD: usize = 10_000;

/// The part of a reply to which the next text belongs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// So far only whitespace and perhaps the beginning of an opening tag. It is held back.
    #[default]
    Start,
    /// Between the tags of reasoning. What may begin this closing tag, or open the reasoning again, is held back.
    Thinking(&'static str),
    /// After the closing tag: whitespace is dropped, and what may begin another opening tag is held back.
    AfterThinking,
    /// In the answer.
    Answer,
}

/// A filter that removes the reasoning from a text that comes in pieces.
#[derive(Debug, Default)]
pub struct Filter {
    stage: Stage,
    held: String,
    /// Reasoning that has not been taken yet.
    pub reasoning: String,
    /// Whether the server has told reasoning apart from the text, so that the text has none that no tag opens.
    is_told_apart: bool,
    /// Whether the tag of the reasoning has been opened again within it, so that the first closing tag may not end it.
    pub is_nested: bool,
}

impl Filter {
    /// Whether more than whitespace has arrived, of the answer or of reasoning before it.
    pub fn has_begun(&self) -> bool {
        self.stage != Stage::Start || !self.held.trim().is_empty()
    }

    /// Whether an opening tag has arrived and its closing tag has not.
    pub fn is_within(&self) -> bool {
        matches!(self.stage, Stage::Thinking(_))
    }

    /// Adds reasoning that the server has told apart from the text.
    pub fn think(&mut self, thought: &str) {
        self.is_told_apart |= !thought.trim().is_empty();
        self.reasoning.push_str(thought);
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

    /// Adds to `answer` what was held back. The beginning of a tag may have been a short answer.
    pub fn end(&mut self, answer: &mut String) {
        if self.is_within() {
            self.reasoning += &std::mem::take(&mut self.held);
        } else if !self.held.trim().is_empty() {
            self.begin_answer(answer);
        }
    }

    /// Reads text at the beginning, within reasoning or after it.
    fn read(&mut self, mut text: &str, answer: &mut String) {
        loop {
            if let Stage::Thinking(close) = self.stage {
                let within = text.split(close).next().unwrap_or_default();
                self.is_nested |= openings_with(close).any(|open| within.contains(open));
                let Some((thinking, rest)) = text.split_once(close) else {
                    let openings = openings_with(close).map(str::len);
                    let held = openings.fold(close.len(), usize::max);
                    let mut tail = text.len().saturating_sub(held);
                    while !text.is_char_boundary(tail) {
                        tail -= 1;
                    }
                    self.reasoning += &text[..tail];
                    self.held.push_str(&text[tail..]);
                    return;
                };
                self.reasoning += thinking;
                self.stage = Stage::AfterThinking;
                text = rest;
            }
            let begin = text.trim_start();
            if let Some((thinking, close)) = opened(begin) {
                self.stage = Stage::Thinking(close);
                text = thinking;
            } else if self.stage == Stage::Start
                && let Some((thinking, rest)) = split_at_end(begin, Extent::Beginning)
                // Some servers leave the tag alone in the text.
                && (!self.is_told_apart || thinking.is_empty())
            {
                self.reasoning += thinking;
                self.stage = Stage::AfterThinking;
                text = rest;
            } else {
                // Only an answer without reasoning before it keeps its whitespace.
                if self.stage == Stage::AfterThinking {
                    text = begin;
                }
                // It may be the beginning of a tag.
                let may_open = tags().any(|(open, _)| open.starts_with(begin));
                let mut pairs = OPENED_BY_TEMPLATES.iter();
                let may_be_tag = may_open || pairs.any(|(_, close)| close.starts_with(begin));
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

    /// Ends the reasoning: the text held back is the beginning of the answer.
    fn begin_answer(&mut self, answer: &mut String) {
        self.stage = Stage::Answer;
        answer.push_str(&std::mem::take(&mut self.held));
    }
}

/// Returns what follows the opening tag that the text begins with, and the tag that closes it.
fn opened(text: &str) -> Option<(&str, &'static str)> {
    tags().find_map(|&(open, close)| Some((text.strip_prefix(open)?, close)))
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
    fn leading_reasoning_is_left_out_of_the_answer() {
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
            ("<seed:think>so</seed:think>42", "42"),
            ("<mm:think>so</mm:think>42", "42"),
            ("<longcat_think>\nso\n</longcat_think>\n42", "42"),
            ("<think_fast>so</think_fast>42", "42"),
            ("<think_faster>so</think_faster>42", "42"),
            ("<mm:th", "<mm:th"),
            ("◁think▷so◁/think▷42", "42"),
            ("<|START_THINKING|>so<|END_THINKING|>42", "42"),
            ("<|begin_of_thought|>so<|end_of_thought|>42", "42"),
            ("<|inner_prefix|>so<|inner_suffix|>42", "42"),
            ("<|channel>thought\nso<channel|>42", "42"),
            (
                "<|channel|>analysis<|message|>so<|end|><|start|>assistant<|channel|>final<|message|>42",
                "42",
            ),
            ("<|channel|>final<|message|>42", "42"),
            ("<|chan", "<|chan"),
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
    fn reasoning_that_the_template_has_opened_is_left_out_of_a_text_in_one_piece() {
        // Text that was handed on cannot be taken back.
        for (thought, rest) in [("so I say\n", "</think>\n\n42"), ("so", "◁/think▷42")] {
            let whole = format!("{thought}{rest}");
            assert_eq!(text_of(&[&whole]), "42", "{whole}");
            assert_eq!(text_of(&["so", &whole]), format!("so{whole}"));
        }
    }

    #[test]
    fn a_closing_tag_in_a_text_is_a_word_of_it_after_reasoning_that_came_apart() {
        for (thought, text, answer) in [
            ("hm", "so\n</think>\n42", "so\n</think>\n42"),
            ("\n", "so\n</think>\n42", "42"),
            ("hm", "</think>\n42", "42"),
            ("hm", "<think>so</think>42", "42"),
        ] {
            let (mut filter, mut found) = (Filter::default(), String::new());
            filter.think(thought);
            filter.add(text, &mut found);
            filter.end(&mut found);
            assert_eq!(found, answer, "{thought:?}, {text:?}");
        }
    }

    #[test]
    fn a_tag_that_is_opened_within_its_reasoning_is_noticed_wherever_the_text_is_split() {
        let is_nested = |pieces: &[&str]| {
            let mut filter = Filter::default();
            for piece in pieces {
                filter.add(piece, &mut String::new());
            }
            filter.is_nested
        };
        let mut cases = vec![("<thinking>a <think> b</thinking>42".to_owned(), false)];
        for (open, close) in tags() {
            cases.push((format!("{open}a{close}42 {open}"), false));
            cases.push((format!("{open}a{close}{open}b{close}42"), false));
            for (again, _) in tags().filter(|(_, end)| end == close) {
                cases.push((format!("{open}a {again} b{close}42"), true));
            }
        }
        for (whole, expected) in cases {
            let places = whole.char_indices().map(|(at, _)| at);
            for at in places.clone() {
                let found = is_nested(&[&whole[..at], &whole[at..]]);
                assert_eq!(found, expected, "{whole}, at {at}");
            }
            let characters = Vec::from_iter(places.map(|at| {
                let next = whole[at..].chars().next().map_or(0, char::len_utf8);
                &whole[at..at + next]
            }));
            assert_eq!(is_nested(&characters), expected, "{whole}, by character");
        }
    }

    proptest! {
        #[test]
        fn reasoning_is_recognized_wherever_the_answer_is_split(
            thought in "[a-z<>/ ]{0,12}", again in "(<think>[a-z<>/ ]{0,6}</think>|<thin|</think>|)",
            answer in "[a-z<>/ ]{0,12}", at in 0usize..68,
        ) {
            let whole = format!("<think>{thought}</think>{again}{answer}");
            let at = at.min(whole.len());
            prop_assert_eq!(text_of(&[&whole[..at], &whole[at..]]), text_of(&[&whole]));
        }
    }
}
