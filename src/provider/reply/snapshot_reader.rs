//! Reads messages of a stream that have no increments: each may be a piece of the text, or a snapshot, which is all of the text so
//! far (pure).

/// How many characters must have come again before each message counts as a snapshot. A piece may begin like the one
/// before it by chance.
const MIN_REPEATED: usize = 5;

/// How many bytes are held back until it can be told what each message has.
const MAX_HELD: usize = 100_000;

/// What each of the messages has.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum MessageForm {
    /// It cannot be told yet.
    #[default]
    Unknown,
    /// A piece of the text.
    Piece,
    /// All of the text so far.
    Snapshot,
}

/// A reader of the messages of a stream that have no increments.
#[derive(Debug, Default)]
pub struct SnapshotReader {
    form: MessageForm,
    /// The last message, unless each is a piece, without a broken end.
    last: String,
    /// How many bytes of the text have been handed on.
    taken: usize,
    /// What is still to be handed on: all that would be the text if each message is a piece, or the broken end of the last
    /// message.
    held: String,
    /// How many characters have come again.
    repeated: usize,
    /// Whether a message has taken back a part of what had been handed on.
    pub is_revised: bool,
}

impl SnapshotReader {
    /// Takes the text of the next message, and returns what is new in it.
    pub fn next(&mut self, message: &str) -> String {
        if message.is_empty() || self.form == MessageForm::Piece {
            return message.to_owned();
        }
        let (intact, broken_end) = split_broken_end(message);
        let Some(rest) = intact.strip_prefix(self.last.as_str()) else {
            return self.next_of_other(message);
        };
        let is_first = self.last.is_empty();
        if !rest.is_empty() {
            self.repeated += self.last.chars().count();
        }
        intact.clone_into(&mut self.last);
        if self.repeated >= MIN_REPEATED {
            self.form = MessageForm::Snapshot;
            self.held.clear();
        } else if !is_first {
            self.held.push_str(message);
            if self.held.len() <= MAX_HELD {
                return String::new();
            }
            return self.end();
        }
        let new = intact.get(self.taken..).unwrap_or_default().to_owned();
        self.taken = intact.len();
        self.held.push_str(broken_end);
        new
    }

    /// Takes a message that does not begin like the one before it, or ends within it.
    fn next_of_other(&mut self, message: &str) -> String {
        if self.form == MessageForm::Unknown {
            return self.end() + message;
        }
        let (intact, broken_end) = split_broken_end(message);
        let common = common_beginning(&self.last, intact);
        let taken_back = &self.last[common..];
        let (mut new, mut from) = (String::new(), common);
        if common < MIN_REPEATED || common < taken_back.len() {
            // It is another text, and not the same in other words.
            (new, from) = (std::mem::take(&mut self.held), 0);
        } else if common == intact.len() {
            // An earlier state of the text.
            return new;
        } else {
            self.is_revised |= !taken_back.trim().is_empty();
        }
        new.push_str(&intact[from..]);
        intact.clone_into(&mut self.last);
        self.taken = intact.len();
        broken_end.clone_into(&mut self.held);
        new
    }

    /// Returns what was held back, because no more messages come, or because each of them is a piece.
    pub fn end(&mut self) -> String {
        self.form = MessageForm::Piece;
        self.last = String::new();
        std::mem::take(&mut self.held)
    }
}

/// Splits off the end of a message in which a character has not come as a whole: the next message may have it in its place.
fn split_broken_end(message: &str) -> (&str, &str) {
    let intact = message.trim_end_matches(char::REPLACEMENT_CHARACTER);
    if intact.is_empty() {
        return (message, "");
    }
    message.split_at(intact.len())
}

/// Returns how many bytes two texts have in common at their beginning, in whole characters.
fn common_beginning(one: &str, other: &str) -> usize {
    let pairs = one.chars().zip(other.chars());
    let equal = pairs.take_while(|(char, next)| char == next);
    equal.map(|(char, _)| char.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn text_of_snapshots_is_taken_once() {
        // The messages, and the text; a bar is a blank.
        let table = r##"
            Because_of ; Because_of_light ; Because_of_light. | Because_of_light.
            B ; Because ; Because_of | Because_of
            The ; The_sky ; The_sky_is | The_sky_is
            Y ; Ye ; Yes ; Yes. | Yes.
            Because ; Because ; Because_of | Because_of
            Because ; _of ; _light | Because_of_light
            4 ; 42 | 442
            ha ; haha ; ! | hahaha!
            ha ; ha ; ha | hahaha
            a ; b ; ab | abab
            Because_of ; Because_of_light ; _rays | Because_of_light_rays
            Because | Because
            Das_ist ; Das_ist_gr� ; Das_ist_grün | Das_ist_grün
            Das_ist_gr� ; Das_ist_grün | Das_ist_grün
            Das_ist ; Das_ist_gr� ; Das_ist_gr� | Das_ist_gr�
            � ; ü | �ü
            Das_ist ; Das_ist_grün ; Das_ist_gut | Das_ist_grünut
            Because ; Because_of ; Because ; Because_of_light | Because_of_light
        "##;
        for [messages, text] in rows(table) {
            let mut reader = SnapshotReader::default();
            let mut found = String::new();
            for message in messages.split(" ; ") {
                found += &reader.next("");
                found += &reader.next(message);
            }
            found += &reader.end();
            assert_eq!(found, text, "{messages}");
        }
    }

    #[test]
    fn messages_that_are_held_back_are_bounded() {
        let message = "x".repeat(MAX_HELD / 4);
        let mut reader = SnapshotReader::default();
        let mut length = 0;
        for _ in 0..99 {
            length += reader.next(&message).len();
            assert!(reader.held.len() <= MAX_HELD, "{}", reader.held.len());
        }
        length += reader.end().len();
        assert_eq!(length, 99 * message.len());
    }
}
