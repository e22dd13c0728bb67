//! Compares the messages of a complete reply with the text that has arrived of it: a last look, so that no text is lost
//! without a note, whatever the server's habits (pure).

use super::spelling::{letters, visible};

/// How many messages are looked for that are not at the beginning of what is left. Each costs a search in all of that.
const MAX_SEARCHES: usize = 100;

/// Stands for a message that was found, so that the texts before and after it do not become one.
const FOUND: &str = "\0";

/// A message of a complete reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompleteMessage {
    pub text: String,
    /// Whether it is a comment of the model before its answer.
    pub is_commentary: bool,
}

/// The messages of a complete reply that have not arrived.
#[derive(Debug, PartialEq, Eq)]
pub enum MissingMessages {
    Nothing,
    /// All from this place on. Everything else has arrived, so they can follow.
    From(usize),
    /// Some text elsewhere, which cannot follow.
    Elsewhere,
}

impl MissingMessages {
    /// Compares the messages of a reply, in their order, with the text that has arrived. The order may differ, and whitespace
    /// and reasoning do not count. Commentary need not arrive.
    pub fn find(arrived: &str, messages: &[CompleteMessage]) -> MissingMessages {
        let mut remaining = RemainingText::of(arrived);
        let mut lacking = LackingText::default();
        for (place, message) in messages.iter().enumerate() {
            let text = visible(&message.text);
            if text.is_empty() {
                continue;
            }
            match remaining.take(&text) {
                MessageSearch::Found => lacking.note_found(),
                MessageSearch::Missing => lacking.add(place, &text, message.is_commentary),
                MessageSearch::TooMany => return MissingMessages::Nothing,
            }
        }
        lacking.verdict(&remaining.unknown())
    }
}

/// The text that has arrived, without the messages that were found in it.
struct RemainingText {
    text: String,
    /// How much of its beginning has been found.
    begin: usize,
    searches: usize,
}

/// The outcome of a search for a message.
enum MessageSearch {
    Found,
    Missing,
    /// There were too many searches before it.
    TooMany,
}

impl RemainingText {
    fn of(arrived: &str) -> RemainingText {
        RemainingText {
            text: visible(arrived),
            begin: 0,
            searches: 0,
        }
    }

    /// Looks for a message, and takes it out.
    fn take(&mut self, message: &str) -> MessageSearch {
        let left = &self.text[self.begin..];
        if left.starts_with(message) {
            self.begin += message.len();
            return MessageSearch::Found;
        }
        if self.searches >= MAX_SEARCHES {
            return MessageSearch::TooMany;
        }
        self.searches += 1;
        if !left.contains(message) {
            return MessageSearch::Missing;
        }
        self.text = left.replacen(message, FOUND, 1);
        self.begin = 0;
        MessageSearch::Found
    }

    /// Returns the text that no message has.
    fn unknown(&self) -> String {
        self.text[self.begin..].replace(FOUND, "")
    }
}

/// The messages that have not arrived.
#[derive(Default)]
struct LackingText {
    /// The place of the first that is no commentary.
    first: Option<usize>,
    text: String,
    commentary: String,
    /// Whether a message that has arrived comes after the first.
    is_followed: bool,
}

impl LackingText {
    fn add(&mut self, place: usize, text: &str, is_commentary: bool) {
        if is_commentary {
            self.commentary.push_str(text);
        } else {
            self.first.get_or_insert(place);
            self.text.push_str(text);
        }
    }

    /// Notes that the next message has arrived.
    fn note_found(&mut self) {
        self.is_followed |= self.first.is_some();
    }

    /// Returns what is missing, where this text has arrived that no message has.
    fn verdict(&self, unknown: &str) -> MissingMessages {
        match self.first {
            Some(first) if unknown.is_empty() && !self.is_followed => MissingMessages::From(first),
            Some(_) if !is_respelled(unknown, &self.text, &self.commentary) => {
                MissingMessages::Elsewhere
            }
            _ => MissingMessages::Nothing,
        }
    }
}

/// Whether the text that has arrived and is not known is what is missing, perhaps with the commentary that is: some servers spell
/// a text differently when it is complete, or leave out marks such as those of sources. Increments of several messages may have
/// come by turns, so the order does not count for letters that are all there.
fn is_respelled(unknown: &str, missing: &str, missing_commentary: &str) -> bool {
    let sorted = |text: &str| {
        let mut letters = Vec::from_iter(letters(text).chars());
        letters.sort_unstable();
        letters
    };
    let all = sorted(unknown);
    all == sorted(missing)
        || all == sorted(&[missing, missing_commentary].concat())
        || is_shortened(&letters(unknown), &letters(missing))
}

/// Whether a text is what is left of another one, of which it has most.
fn is_shortened(long: &str, short: &str) -> bool {
    let mut left = long.chars();
    let is_within = short
        .chars()
        .all(|letter| left.any(|other| other == letter));
    is_within && short.chars().count() * 2 > long.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn messages_of_a_complete_reply_that_have_not_arrived_are_found() {
        // What has arrived, the messages, of which commentary begins with `~`, and what has not arrived.
        let table = r##"
            One. | One. | Nothing
            One. | One. ; Two. | From(1)
            One. | One. ; Two. ; Three. | From(1)
            One. | Zero. ; One. | Elsewhere
            One.Three. | One. ; Two. ; Three. | Elsewhere
            One.Tw | One. ; Two. | Elsewhere
            One.Two. | Two. ; One. | Nothing
            One.Two. | Two. ; One. ; Three. | From(2)
            BeLicauseght | Because ; Light | Nothing
            Yesterday | Yesterday ; Yes | From(1)
            Yesterday | Yes ; Yesterday | Elsewhere
            One. | One. ; One. | From(1)
            One. | one. | Nothing
            One【1†a】 and two, three【2†b】. | One and two, three. | Nothing
            One【1†a】. | One ([a](https://a.example/b)). | Nothing
            One.[[1]](https://x.ai/1) Yes. | One. Yes. | Nothing
            One [b] and【c | One [d] and【e | Elsewhere
            One and two. | and | Nothing
            One and two. | dna | Elsewhere
            “One”, | one | Nothing
            Let me think. | 42. | Elsewhere
            Let me think. | Light. ; 42. | Elsewhere
            Oh, ONE TWO! | ~oh ; one ; two | Nothing
            ONE TWO! | ~oh ; one ; two | Nothing
            ONE TWO! | ~oh ; one ; three | Elsewhere
            One. | 👍 | Elsewhere
            One. | ~Hm ; One. | Nothing
            HmOne. | ~Hm ; One. ; Two. | From(2)
            One. | One. ; ~Hm ; Two. | From(2)
            <think>hm</think>One. | One. | Nothing
            One. | <think>hm</think>One. | Nothing
            On e. | O ne. | Nothing
            One. | - | Nothing
            - | One. | From(0)
        "##;
        for [arrived, messages, expected] in rows(table) {
            let messages = messages.split(" ; ").map(|text| CompleteMessage {
                text: text.trim_start_matches('~').to_owned(),
                is_commentary: text.starts_with('~'),
            });
            let messages = Vec::from_iter(messages);
            let found = MissingMessages::find(arrived, &messages);
            assert_eq!(format!("{found:?}"), expected, "{arrived} | {messages:?}");
        }
    }

    #[test]
    fn the_search_for_messages_is_bounded() {
        let message = |number: usize| CompleteMessage {
            text: format!("{number}."),
            is_commentary: false,
        };
        let messages = Vec::from_iter((0..=MAX_SEARCHES).map(message));
        let few = &messages[..MAX_SEARCHES];
        assert_eq!(MissingMessages::find("x", few), MissingMessages::Elsewhere);
        assert_eq!(
            MissingMessages::find("x", &messages),
            MissingMessages::Nothing
        );
        // Those at the beginning of what is left need no search.
        let texts = Vec::from_iter(messages.iter().map(|message| message.text.as_str()));
        let found = MissingMessages::find(&texts.concat(), &[&messages, &messages[..1]].concat());
        assert_eq!(found, MissingMessages::From(messages.len()));
    }
}
