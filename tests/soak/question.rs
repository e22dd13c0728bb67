//! Questions that name their own answers, so that a file shows by itself which exchanges it has, and whether they are whole.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

/// A question. Its number is unique within a soak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    pub id: u64,
    /// How many events the answer comes in, and how many words each has.
    pub pieces: u64,
    pub words: u64,
    /// Milliseconds between two events.
    pub pause: u64,
}

/// How a question ends that goes with an image, whose model calls a tool first, whose answer has sources, or that is asked
/// in a role.
pub const WITH_IMAGE: &str = ", with an image";
pub const WITH_CALL: &str = ", with a call";
pub const WITH_SOURCES: &str = ", with sources";
pub const IN_ROLE: &str = ", in a role";

/// Where all sources are.
pub const SITE: &str = "soak.example";

impl Question {
    /// One whose answer comes at once.
    pub fn small(id: u64) -> Question {
        Question {
            id,
            pieces: 2 + id % 3,
            words: 1 + id % 40,
            pause: 0,
        }
    }

    /// Reads the text of a question, and nothing else.
    pub fn parse(text: &str) -> Option<Question> {
        let ends = [WITH_IMAGE, WITH_CALL, WITH_SOURCES, IN_ROLE];
        let without_end = ends.iter().find_map(|end| text.strip_suffix(end));
        let text = without_end.unwrap_or(text);
        let numbers = text.split(|character: char| !character.is_ascii_digit());
        let numbers = numbers.filter(|part| !part.is_empty());
        let numbers: Vec<u64> = numbers.map(str::parse).collect::<Result<_, _>>().ok()?;
        let [id, pieces, words, pause] = numbers[..] else {
            return None;
        };
        let question = Question {
            id,
            pieces,
            words,
            pause,
        };
        (question.to_string() == text).then_some(question)
    }

    pub fn pause(&self) -> Duration {
        Duration::from_millis(self.pause)
    }

    /// The answer in its pieces. No word of it is in any other answer, and some letters have two bytes.
    pub fn pieces(&self) -> impl Iterator<Item = String> {
        let (id, pieces, words) = (self.id, self.pieces, self.words);
        (0..pieces).map(move |piece| {
            let mut text = String::new();
            for word in 0..words {
                let last = piece + 1 == pieces && word + 1 == words;
                let end = if last {
                    "."
                } else if word % 12 == 11 {
                    "\n"
                } else {
                    " "
                };
                text.push_str(&format!("{id}é{piece}.{word}{end}"));
            }
            text
        })
    }

    pub fn answer(&self) -> String {
        self.pieces().collect()
    }

    /// The pages that the answer names: the first half comes before a search is paused.
    pub fn sources(&self) -> Vec<Value> {
        let id = self.id;
        let source = |page| json!({"url": format!("https://{SITE}/{id}/{page}"), "title": format!("Page {page} of {id}")});
        (1..=4).map(source).collect()
    }

    /// Whether the search is paused once.
    pub fn pauses(&self) -> bool {
        self.id.is_multiple_of(2)
    }
}

impl fmt::Display for Question {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pieces, words, pause) = (self.pieces, self.words, self.pause);
        write!(formatter, "soak {}: {pieces} pieces", self.id)?;
        write!(formatter, " of {words} words, {pause} ms apart")
    }
}
