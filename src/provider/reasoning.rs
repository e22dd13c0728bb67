//! Separates the answer from reasoning between tags at the beginning of a reply (pure).

use super::commentary::{Commentary, PARAGRAPH};
use super::kept::{ByteBudget, MAX_KEPT};
use crate::text::reasoning_end::{Extent, OPENED_BY_TEMPLATES, split_at_end};

/// The tag that opens reasoning for certain. The others of [`OPENED_BY_TEMPLATES`] are also words that an answer may begin with,
/// so they open reasoning only if their closing tag follows.
const CERTAIN: &str = "<think>";

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
    ("<|channel|>commentary<|message|>", "<|end|>"),
    (
        "<|start|>assistant<|channel|>commentary<|message|>",
        "<|end|>",
    ),
    ("<|start|>assistant<|channel|>final", "<|message|>"),
    ("<|channel|>final", "<|message|>"),
];

/// What opens a comment of gpt-oss before its answer, also after the role. If nothing else comes, it is the answer.
const COMMENTARY_TAG: &str = "<|channel|>commentary<|message|>";

/// What closes the opening of the answer of gpt-oss, and what may end that.
const FINAL: &str = "<|message|>";
const FINAL_ENDS: &[&str] = &["<|return|>", "<|end|>"];

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
    /// After this closing tag: whitespace is dropped, and what may begin another opening tag is held back.
    AfterThinking(&'static str),
    /// In the answer.
    Answer,
    /// In the answer as a message of gpt-oss, which does not have the mark of its end.
    FinalMessage,
}

/// A filter that removes the reasoning from a text that comes in pieces.
#[derive(Debug, Default)]
pub struct Filter {
    stage: Stage,
    held: String,
    /// Reasoning that has not been taken yet.
    pub reasoning: String,
    /// All since an opening tag that may be a word of the answer, while its closing tag has not arrived.
    unclosed: Option<Unclosed>,
    commentary: Commentary,
    /// For the commentary.
    budget: ByteBudget,
    /// Whether the server has told reasoning apart from the text, so that the text has none that no tag opens.
    is_told_apart: bool,
    /// Whether reasoning has ended at a tag of the text.
    pub has_ended: bool,
    /// Whether the tag of the reasoning has been opened again within it, so that the first closing tag may not end it.
    pub is_nested: bool,
}

/// Text that is reasoning if its closing tag arrives, and else the answer.
#[derive(Debug)]
struct Unclosed {
    text: String,
    /// Whether the text that comes next is a paragraph of its own.
    ends_paragraph: bool,
}

impl Unclosed {
    /// Returns no text yet, of what this tag opens; `None` if that is reasoning for certain. `closed` is the tag that has closed
    /// reasoning before it: the model that has closed a pair of tags means the same by the next one.
    fn after(open: &str, close: &str, closed: Option<&str>) -> Option<Unclosed> {
        let is_word = open != CERTAIN && OPENED_BY_TEMPLATES.iter().any(|(tag, _)| *tag == open);
        let may_be_answer = is_word && closed != Some(close);
        may_be_answer.then(|| Unclosed {
            text: open.to_owned(),
            ends_paragraph: false,
        })
    }

    /// Adds text. Returns whether it is not more than may be kept.
    fn push(&mut self, text: &str) -> bool {
        if std::mem::take(&mut self.ends_paragraph) {
            let runs_on = !self.text.ends_with(char::is_whitespace);
            if runs_on && !text.starts_with(char::is_whitespace) {
                self.text.push_str(PARAGRAPH);
            }
        }
        self.text.push_str(text);
        self.text.len() <= MAX_KEPT
    }
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

    /// Records that the text that comes next is a paragraph of its own.
    pub fn begin_paragraph(&mut self) {
        if let Some(unclosed) = &mut self.unclosed {
            unclosed.ends_paragraph = true;
        }
    }

    /// Takes the next piece, and adds to `answer` what is known to belong to it.
    pub fn add(&mut self, piece: &str, answer: &mut String) {
        if self.stage == Stage::Answer {
            answer.push_str(piece);
            return;
        }
        if let Some(unclosed) = &mut self.unclosed
            && !unclosed.push(piece)
        {
            self.unclosed = None;
        }
        // A piece may have megabytes, and is copied only if it must be.
        if self.held.is_empty() {
            self.read(piece, answer);
        } else {
            let text = std::mem::take(&mut self.held) + piece;
            self.read(&text, answer);
        }
    }

    /// Adds to `answer` what was held back. The beginning of a tag may have been a short answer, and if the reply `is_answer`,
    /// because it has ended well and without a call, so may have been all since a tag that was never closed.
    pub fn end(&mut self, is_answer: bool, answer: &mut String) {
        let unclosed = self.unclosed.take();
        if let Some(unclosed) = unclosed
            && is_answer
        {
            self.held = unclosed.text;
            self.begin_answer(answer);
        } else if self.is_within() {
            let held = std::mem::take(&mut self.held);
            self.add_thought(&held);
        } else if self.stage == Stage::FinalMessage && FINAL_ENDS.contains(&self.held.trim_end()) {
            self.held.clear();
        } else if !self.held.trim().is_empty() {
            self.begin_answer(answer);
        }
        if is_answer {
            answer.push_str(&self.commentary.take());
        }
    }

    /// Reads text that has arrived: as much of it as belongs to a stage, then what follows.
    fn read(&mut self, arrived: &str, answer: &mut String) {
        let mut unread = Some(arrived);
        while let Some(text) = unread {
            unread = match self.stage {
                Stage::Start | Stage::AfterThinking(_) => self.read_beginning(text),
                Stage::Thinking(close) => self.read_thinking(text, close),
                Stage::Answer => {
                    self.add_to_answer(text, answer);
                    None
                }
                Stage::FinalMessage => {
                    self.read_final_message(text, answer);
                    None
                }
            };
        }
    }

    /// Reads text before the answer that is not between tags. Returns what begins reasoning or the answer; `None` if that has to
    /// be decided by the text that comes next.
    fn read_beginning<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let begin = text.trim_start();
        if let Some((open, close)) = opened(begin) {
            let rest = &begin[open.len()..];
            self.begin_thinking(open, close, rest);
            return Some(rest);
        }
        if self.stage == Stage::Start
            && let Some((thinking, rest)) = split_at_end(begin, Extent::Beginning)
            // Some servers leave the tag alone in the text.
            && (!self.is_told_apart || thinking.is_empty())
        {
            self.reasoning += thinking;
            self.stage = Stage::AfterThinking("");
            self.has_ended = true;
            return Some(rest);
        }
        // Only an answer without reasoning before it keeps its whitespace.
        let text = if self.stage == Stage::Start {
            text
        } else {
            begin
        };
        if may_begin_tag(begin) && text.len() <= MAX_HELD {
            self.held.push_str(text);
            return None;
        }
        self.stage = match self.stage {
            Stage::AfterThinking(FINAL) => Stage::FinalMessage,
            _ => Stage::Answer,
        };
        Some(text)
    }

    /// Begins reasoning between these tags, of which `rest` has arrived, and perhaps more.
    fn begin_thinking(&mut self, open: &str, close: &'static str, rest: &str) {
        let closed_before = match self.stage {
            Stage::AfterThinking(closed) => Some(closed),
            _ => None,
        };
        self.unclosed = Unclosed::after(open, close, closed_before);
        if let Some(unclosed) = &mut self.unclosed {
            unclosed.push(rest);
        }
        if open.ends_with(COMMENTARY_TAG) {
            self.commentary.begin_message();
        } else {
            self.commentary.end_message();
        }
        self.stage = Stage::Thinking(close);
    }

    /// Reads text within reasoning. Returns what follows the tag that closes it; `None` if that has not arrived.
    fn read_thinking<'t>(&mut self, text: &'t str, close: &'static str) -> Option<&'t str> {
        let (thinking, rest) = match text.split_once(close) {
            Some((thinking, rest)) => (thinking, Some(rest)),
            None => (text, None),
        };
        self.is_nested |= openings_with(close).any(|open| thinking.contains(open));
        if rest.is_some() {
            self.add_thought(thinking);
            self.unclosed = None;
            self.stage = Stage::AfterThinking(close);
            self.has_ended = true;
        } else {
            let openings = openings_with(close).map(str::len);
            let longest_tag = openings.fold(close.len(), usize::max);
            let mut end = text.len().saturating_sub(longest_tag);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            let (thought, held) = text.split_at(end);
            self.add_thought(thought);
            self.held.push_str(held);
        }
        rest
    }

    /// Adds reasoning, which may be commentary.
    fn add_thought(&mut self, thought: &str) {
        self.reasoning += thought;
        if self.commentary.is_coming() {
            let fits = self.budget.spend(thought.len());
            self.commentary.push(thought, fits);
        }
    }

    /// Adds text to the answer, which leaves no commentary to take for it.
    fn add_to_answer(&mut self, text: &str, answer: &mut String) {
        if !text.trim().is_empty() {
            self.commentary.clear();
        }
        answer.push_str(text);
    }

    /// Reads text of a message of gpt-oss, and holds back what may be the mark of its end.
    fn read_final_message(&mut self, text: &str, answer: &mut String) {
        let may_be_end = |at: &usize| {
            let mark = text[*at..].trim_end();
            let is_short = text.len() - at <= MAX_HELD;
            is_short && FINAL_ENDS.iter().any(|end| end.starts_with(mark))
        };
        let end = text.rfind('<').filter(may_be_end);
        let (said, held) = text.split_at(end.unwrap_or(text.len()));
        self.add_to_answer(said, answer);
        self.held.push_str(held);
    }

    /// Ends the reasoning: the text held back is the beginning of the answer.
    fn begin_answer(&mut self, answer: &mut String) {
        self.stage = Stage::Answer;
        self.commentary.clear();
        let held = std::mem::take(&mut self.held);
        // It may have megabytes.
        if answer.is_empty() {
            *answer = held;
        } else {
            answer.push_str(&held);
        }
    }
}

/// Whether text at the beginning may become a tag by what comes next: an opening one, or one that closes what a template opened.
fn may_begin_tag(text: &str) -> bool {
    let closing = OPENED_BY_TEMPLATES.iter().map(|(_, close)| close);
    let opening = tags().map(|(open, _)| open);
    opening.chain(closing).any(|tag| tag.starts_with(text))
}

/// Returns the opening tag that the text begins with, and the tag that closes it.
fn opened(text: &str) -> Option<(&'static str, &'static str)> {
    let tags = &mut tags();
    tags.find(|(open, _)| text.starts_with(open)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text_of(pieces: &[&str]) -> String {
        text_of_reply(pieces, true)
    }

    fn text_of_reply(pieces: &[&str], is_answer: bool) -> String {
        let (mut filter, mut answer) = (Filter::default(), String::new());
        for piece in pieces {
            filter.add(piece, &mut answer);
        }
        filter.end(is_answer, &mut answer);
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
            (
                "<|channel|>analysis<|message|>so<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>final<|message|>42<|return|>",
                "42",
            ),
            (
                "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>commentary<|message|>I see.<|end|><|channel|>final<|message|>42<|end|>\n",
                "42",
            ),
            // Nothing else has come.
            ("<|channel|>commentary<|message|>I look.<|end|>", "I look."),
            ("<|channel|>commentary<|message|>I look.", "I look."),
            (
                "<|channel|>commentary<|message|>I look.<|end|><|channel|>analysis<|message|>so<|end|>",
                "I look.",
            ),
            (
                "<|channel|>commentary<|message|>I look.<|end|><|channel|>final<|message|><|return|>",
                "I look.",
            ),
            ("<|channel|>final<|message|>42<|ret", "42<|ret"),
            (
                "<|channel|>final<|message|>a <|end|> b < c<|return|>",
                "a <|end|> b < c",
            ),
            ("42<|return|>", "42<|return|>"),
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
    fn a_tag_that_may_be_a_word_opens_reasoning_only_if_it_is_closed_or_the_reply_is_no_answer() {
        // Commentary that nothing follows is the answer.
        let others = tags().filter(|(open, _)| !open.ends_with(COMMENTARY_TAG));
        for (open, close) in others {
            let whole = format!("{open} is a tag");
            let is_word = OPENED_BY_TEMPLATES[1..].iter().any(|(tag, _)| tag == open);
            let answer = if is_word { whole.as_str() } else { "" };
            for (begin, answer) in [
                ("".to_owned(), answer),
                (
                    "<think>so</think>\n".to_owned(),
                    if *open == CERTAIN { "" } else { answer },
                ),
                // Its model closes what it opens.
                (format!("{open}so{close}\n"), ""),
            ] {
                let text = format!("{begin}{whole}");
                for at in text.char_indices().map(|(at, _)| at) {
                    let pieces = [&text[..at], &text[at..]];
                    assert_eq!(text_of(&pieces), answer, "{text}, at {at}");
                    assert_eq!(text_of_reply(&pieces, false), "", "{text}, at {at}");
                }
            }
        }
    }

    #[test]
    fn what_is_kept_of_an_unclosed_tag_is_bounded_and_has_its_paragraphs() {
        let long = "x".repeat(MAX_KEPT);
        assert_eq!(text_of(&["<thinking>", &long]), "");
        let (mut filter, mut answer) = (Filter::default(), String::new());
        for message in ["<thinking>", "is", "a\n", "tag"] {
            filter.begin_paragraph();
            filter.add(message, &mut answer);
            filter.begin_paragraph();
        }
        filter.end(true, &mut answer);
        assert_eq!(answer, "<thinking>\n\nis\n\na\ntag");
    }

    #[test]
    fn commentary_of_which_a_part_is_not_kept_is_not_the_answer() {
        const TAG: &str = "<|channel|>commentary<|message|>";
        let most = "x".repeat(MAX_KEPT - 10);
        for (pieces, answer) in [
            (&[TAG, &most, "<|end|>"][..], most.as_str()),
            // The part that comes last would fit.
            (&[TAG, &most, &"y".repeat(100), "zzz", "<|end|>"], ""),
            (
                &[
                    TAG,
                    &most,
                    "<|end|>",
                    TAG,
                    &"y".repeat(20),
                    "<|end|>",
                    TAG,
                    "z<|end|>",
                ],
                "",
            ),
            (
                &[
                    TAG,
                    &most,
                    &"y".repeat(100),
                    "<|end|>",
                    "<|channel|>final<|message|>42",
                ],
                "42",
            ),
        ] {
            let found = text_of(pieces);
            assert_eq!((found.len(), found == answer), (answer.len(), true));
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
            filter.end(true, &mut found);
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
