//! The texts of a reply as they have arrived, each at its place, with which finished texts are compared (pure).

use std::collections::BTreeMap;

use super::spelling::{letters, visible};

/// How many bytes of text are kept for the comparison. Longer texts are not compared, because a second copy takes memory.
const MAX_COMPARED: usize = 1_000_000;

/// How many bytes are compared with finished messages, all together: a server may send many, and each is compared with all text.
const MAX_WORK: usize = 30 * MAX_COMPARED;

/// The most texts that are told apart.
const MAX_TEXTS: usize = 1_000;

/// The place of a text. Not every server says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPlace {
    /// The index of its message.
    pub message: Option<u64>,
    /// Its index in that.
    pub part: Option<u64>,
}

/// The texts that have arrived, without those of messages in one piece, and all text in its order.
#[derive(Debug, Default)]
pub struct TextsByPlace {
    /// All text that has arrived, in its order, without the growth of the last text.
    all: String,
    texts: BTreeMap<TextPlace, PlacedText>,
    /// The text that has grown last.
    last: Option<TextPlace>,
    /// Increments of the last text that are not in the map yet: nearly all go to one text, without looking for it each time.
    growth: String,
    /// The bytes of all of them.
    size: usize,
    /// The bytes that have been compared with finished messages.
    work: usize,
}

/// A text as it has arrived.
#[derive(Debug, Default)]
struct PlacedText {
    text: String,
    /// Whether it has been compared with the finished text.
    is_finished: bool,
}

/// The part of a finished text that has not arrived.
#[derive(Debug, PartialEq, Eq)]
pub enum MissingText<'t> {
    Nothing,
    /// Its end, which can follow what has arrived.
    End(&'t str),
    /// Some of it elsewhere, which cannot follow.
    Elsewhere,
}

impl TextsByPlace {
    /// Adds an increment of the text at this place.
    pub fn push(&mut self, place: TextPlace, increment: &str) {
        if !self.make_room(increment) {
            return;
        }
        if !increment.is_empty() && self.last != Some(place) {
            self.settle();
            self.last = Some(place);
        }
        self.growth.push_str(increment);
    }

    /// Adds a message that has arrived in one piece. Nothing can follow the texts before it.
    pub fn push_message(&mut self, message: &str) {
        self.push_end(message);
        self.last = None;
    }

    /// Adds the end of a message that is over, and that has grown last.
    pub fn push_end(&mut self, end: &str) {
        if self.make_room(end) {
            self.settle();
            self.all.push_str(end);
        }
    }

    /// Counts more text. Returns whether there is room for it; if not, there is no comparison.
    fn make_room(&mut self, text: &str) -> bool {
        self.size = self.size.saturating_add(text.len());
        let fits = self.size <= MAX_COMPARED;
        if !fits {
            *self = TextsByPlace {
                size: self.size,
                work: self.work,
                ..TextsByPlace::default()
            };
        }
        fits
    }

    /// Counts a comparison with all text. Returns whether there may be another one.
    fn begin_comparison(&mut self) -> bool {
        self.settle();
        // Those that are too long are not compared.
        if self.size <= MAX_COMPARED {
            self.work = self.work.saturating_add(self.size);
        }
        self.work <= MAX_WORK
    }

    /// Whether this is in the text that has arrived, as far as that is compared.
    pub fn has(&mut self, words: &str) -> bool {
        self.begin_comparison() && self.all().is_some_and(|all| all.contains(words))
    }

    /// Returns all text that has arrived, in its order; `None` if it is too long for a comparison.
    pub fn all(&mut self) -> Option<&str> {
        self.settle();
        (self.size <= MAX_COMPARED).then_some(&*self.all)
    }

    /// Whether a text is the next part of the message that has grown last.
    pub fn is_next_part(&self, place: TextPlace) -> bool {
        self.last.is_some_and(|last| {
            let is_later = last.part.is_some() && last.part < place.part;
            is_later && last.message.is_some() && last.message == place.message
        })
    }

    /// Decides about a finished message that is not compared; `None` if it is. Where the texts are too long, it repeats them: few
    /// servers send anything else after them. After many comparisons it does not, because text that comes twice is better than
    /// text that is lost.
    fn repeats_without_comparison(&mut self) -> Option<bool> {
        if !self.begin_comparison() {
            return Some(false);
        }
        (self.size > MAX_COMPARED).then_some(true)
    }

    /// Whether a finished message repeats the message with this index that is over. Some servers give each message the same index.
    pub fn repeats_message(&mut self, index: Option<u64>, finished: &str) -> bool {
        if let Some(repeats) = self.repeats_without_comparison() {
            return repeats;
        }
        let mut known = String::new();
        for (place, placed) in &self.texts {
            if place.message == index {
                if !placed.is_finished {
                    return true;
                }
                known.push_str(&placed.text);
            }
        }
        let (known, finished) = (visible(&known), visible(finished));
        known.contains(&finished) || finished.starts_with(&known)
    }

    /// Adds to the last text what it has grown by.
    fn settle(&mut self) {
        let growth = std::mem::take(&mut self.growth);
        let Some(place) = self.last.filter(|_| !growth.is_empty()) else {
            return;
        };
        self.all.push_str(&growth);
        if self.texts.len() >= MAX_TEXTS && !self.texts.contains_key(&place) {
            return;
        }
        let placed = self.texts.entry(place).or_default();
        // Some servers give each message the same index.
        if std::mem::take(&mut placed.is_finished) {
            placed.text.clear();
        }
        placed.text.push_str(&growth);
    }

    /// Whether a text that has arrived, whatever its place, is the beginning of this finished text, or ends with it. It may be if
    /// the texts are too long for a comparison.
    pub fn may_have(&mut self, finished: &str) -> bool {
        self.settle();
        let mut texts = self.texts.values().map(|placed| &*placed.text);
        let is_there = texts.any(|text| finished.starts_with(text) || text.ends_with(finished));
        is_there || self.size > MAX_COMPARED
    }

    /// Whether a finished message repeats what has arrived since the last message ended, whatever its place. Some servers spell a
    /// text differently when it is complete.
    pub fn repeats_open_text(&mut self, finished: &str) -> bool {
        if let Some(repeats) = self.repeats_without_comparison() {
            return repeats;
        }
        let finished = letters(finished);
        let mut open = self.texts.values().filter(|placed| !placed.is_finished);
        open.any(|placed| {
            let known = letters(&placed.text);
            known.contains(&finished) || finished.starts_with(&known)
        })
    }

    /// Compares the finished text at a place with what has arrived of it.
    pub fn missing_of_text<'t>(&mut self, place: TextPlace, finished: &'t str) -> MissingText<'t> {
        self.settle();
        match self.texts.get(&place) {
            Some(placed) if !placed.is_finished => {
                self.missing(&placed.text, finished, self.last == Some(place))
            }
            _ => MissingText::Nothing,
        }
    }

    /// Compares the finished text of a message with what has arrived of it. After that, nothing more of it should come.
    pub fn missing_of_message<'t>(
        &mut self,
        index: Option<u64>,
        finished: &'t str,
    ) -> MissingText<'t> {
        self.settle();
        let mut places = Vec::new();
        for (place, placed) in &self.texts {
            if !placed.is_finished && !finished.is_empty() {
                places.push(*place);
            }
        }
        if places.iter().any(|place| place.message == index) {
            places.retain(|place| place.message == index);
        } else {
            // Not every server says in each event which message it means.
            let first = places.first().map(|place| place.message);
            let is_one = places.iter().all(|place| Some(place.message) == first);
            if !is_one || (index.is_some() && first != Some(None)) {
                return MissingText::Nothing;
            }
        }
        let mut text = String::new();
        for place in &places {
            if let Some(placed) = self.texts.get_mut(place) {
                text.push_str(&placed.text);
                placed.is_finished = true;
            }
        }
        let is_last = self.last.is_some() && self.last == places.last().copied();
        self.missing(&text, finished, is_last)
    }

    fn missing<'t>(&self, arrived: &str, finished: &'t str, is_last: bool) -> MissingText<'t> {
        if arrived.is_empty() || self.size > MAX_COMPARED {
            return MissingText::Nothing;
        }
        let Some(end) = finished.strip_prefix(arrived) else {
            let is_longer = length_of_answer(finished) > length_of_answer(arrived);
            return if is_longer {
                MissingText::Elsewhere
            } else {
                MissingText::Nothing
            };
        };
        if end.trim().is_empty() {
            MissingText::Nothing
        } else if is_last {
            MissingText::End(end)
        } else {
            MissingText::Elsewhere
        }
    }
}

/// Returns the number of characters of an answer that count in a comparison.
fn length_of_answer(text: &str) -> usize {
    visible(text).chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    fn place_of(message: Option<u64>, part: Option<u64>) -> TextPlace {
        TextPlace { message, part }
    }

    #[test]
    fn what_is_missing_of_a_finished_text_is_found() {
        // The increments with the place of each; the index of a message that is finished, and its text; what is missing.
        let table = r##"
            0.0 Because ; 0.0 _of | 0 | Because_of | Nothing
            0.0 Because | 0 | Because_of | End("_of")
            0.0 Because | - | Because_of | End("_of")
            -.- Because | 0 | Because_of | End("_of")
            0.0 Because ; 0.1 _of | 0 | Because_of_light | End("_light")
            0.0 Because | 1 | Because_of | Nothing
            0.0 Because ; 1.0 Light | 0 | Because_of | Elsewhere
            0.0 Because ; 1.0 Light | 1 | Lights | End("s")
            0.0 Because ; 1.0 Light | - | Because_of | Nothing
            0.0 Becuse | 0 | Because | Elsewhere
            0.0 Because | 0 | because | Nothing
            0.0 Because | 0 | Be | Nothing
            0.0 Because | 0 | Because␊ | Nothing
            0.0 Because | 0 | Beca␊use | Nothing
            0.0 Because | 0 | <think>hm</think>Because | Nothing
            0.0 <think>hm</think>Because | 0 | Because_of | Elsewhere
            - | 0 | Because | Nothing
        "##;
        for [increments, index, finished, expected] in rows(table) {
            let mut texts = TextsByPlace::default();
            let number = |word: &str| word.parse().ok();
            for increment in increments.split(" ; ").filter(|words| !words.is_empty()) {
                let (place, text) = increment.split_once(' ').expect(increment);
                let (message, part) = place.split_once('.').expect(place);
                texts.push(place_of(number(message), number(part)), text);
            }
            let finished = finished.replace('␊', "\n");
            let found = texts.missing_of_message(number(index), &finished);
            let case = format!("{increments} | {index} | {finished}");
            assert_eq!(format!("{found:?}"), expected, "{case}");
            let again = texts.missing_of_message(number(index), &finished);
            assert_eq!(again, MissingText::Nothing, "{case}, once more");
        }
    }

    #[test]
    fn a_place_is_used_again_by_the_next_message() {
        let mut texts = TextsByPlace::default();
        let place = place_of(Some(0), Some(0));
        texts.push(place, "one");
        assert_eq!(texts.missing_of_text(place, "one!"), MissingText::End("!"));
        assert_eq!(
            texts.missing_of_message(Some(0), "one"),
            MissingText::Nothing
        );
        assert_eq!(texts.missing_of_text(place, "one!"), MissingText::Nothing);
        texts.push(place, "two");
        assert_eq!(
            texts.missing_of_message(Some(0), "two!"),
            MissingText::End("!")
        );
    }

    #[test]
    fn comparisons_with_finished_messages_are_bounded() {
        let mut texts = TextsByPlace::default();
        let long = "x".repeat(MAX_COMPARED / 2);
        texts.push(place_of(Some(0), Some(0)), &long);
        texts.missing_of_message(Some(0), &long);
        texts.push(place_of(Some(1), Some(0)), "one");
        assert!(texts.has("one") && texts.repeats_open_text("one"));
        assert!(!texts.repeats_open_text("other"));
        assert!(texts.repeats_message(Some(0), "x"));
        let mut comparisons = 0;
        while texts.repeats_message(Some(0), "x") {
            comparisons += 1;
            assert!(comparisons < 100, "there is no bound");
        }
        assert!(comparisons > 20, "{comparisons}");
        // It may be new, and must not be lost.
        assert!(!texts.repeats_open_text("one") && !texts.has("one"));
    }

    #[test]
    fn texts_that_are_compared_are_bounded() {
        let mut texts = TextsByPlace::default();
        let long = "x".repeat(MAX_COMPARED / 4);
        for _ in 0..9 {
            texts.push(place_of(None, None), &long);
        }
        for place in 0..9_999 {
            texts.push(place_of(Some(place), None), "x");
        }
        assert!(texts.texts.is_empty() && texts.growth.is_empty());
        // Nearly always it is the message of these texts.
        assert!(texts.repeats_open_text("y") && texts.repeats_message(Some(0), "y"));
        assert_eq!(
            texts.missing_of_text(place_of(None, None), "y"),
            MissingText::Nothing
        );
        let mut many = TextsByPlace::default();
        for place in 0..9_999 {
            many.push(place_of(Some(place), None), "x");
        }
        assert_eq!(many.texts.len(), MAX_TEXTS);
    }
}
