//! Questions that name their own answers, so that a file shows by itself which exchanges it has, and whether they are whole.

use std::fmt;
use std::time::Duration;

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

/// How a question ends that goes with an image.
pub const WITH_IMAGE: &str = ", with an image";

impl Question {
    /// One whose answer comes at once.
    pub fn small(id: u64) -> Question {
        Question { id, pieces: 2 + id % 3, words: 1 + id % 40, pause: 0 }
    }

    /// Reads the text of a question, and nothing else.
    pub fn parse(text: &str) -> Option<Question> {
        let text = text.strip_suffix(WITH_IMAGE).unwrap_or(text);
        let numbers = text.split(|character: char| !character.is_ascii_digit()).filter(|part| !part.is_empty());
        let numbers: Vec<u64> = numbers.map(str::parse).collect::<Result<_, _>>().ok()?;
        let [id, pieces, words, pause] = numbers[..] else { return None };
        let question = Question { id, pieces, words, pause };
        (question.to_string() == text).then_some(question)
    }

    pub fn pause(&self) -> Duration {
        Duration::from_millis(self.pause)
    }

    /// The answer in its pieces. No word of it is in any other answer, and some letters have two bytes.
    pub fn pieces(&self) -> impl Iterator<Item = String> {
        let Question { id, pieces, words, .. } = *self;
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
}

impl fmt::Display for Question {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Question { id, pieces, words, pause } = self;
        write!(formatter, "soak {id}: {pieces} pieces of {words} words, {pause} ms apart")
    }
}
