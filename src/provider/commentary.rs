//! The commentary of a model before its answer, which is the answer if nothing else comes (pure).

/// What is between two paragraphs.
pub const PARAGRAPH: &str = "\n\n";

/// The commentary of a reply, each message of it as a paragraph.
#[derive(Debug, Default)]
pub struct Commentary {
    text: String,
    /// Whether the message that comes is commentary.
    is_coming: bool,
}

impl Commentary {
    /// Begins a message of it.
    pub fn begin_message(&mut self) {
        self.is_coming = true;
        // Many messages may begin without a word.
        if !self.text.is_empty() && !self.text.ends_with(PARAGRAPH) {
            self.text.push_str(PARAGRAPH);
        }
    }

    /// Ends the message that comes: what follows is no commentary.
    pub fn end_message(&mut self) {
        self.is_coming = false;
    }

    /// Whether the message that comes is commentary.
    pub fn is_coming(&self) -> bool {
        self.is_coming
    }

    /// Adds words to the message. If there is no room for them, there must be none for any that follow.
    pub fn push(&mut self, words: &str, fits: bool) {
        if fits {
            self.text.push_str(words);
        } else {
            // A part of it must not become the answer.
            self.clear();
        }
    }

    /// Drops the words that have come, because they are not the answer.
    pub fn clear(&mut self) {
        self.text = String::new();
    }

    /// Ends the message that comes, and takes the words, to make them the answer.
    pub fn take(&mut self) -> String {
        self.end_message();
        std::mem::take(&mut self.text)
    }

    /// Whether there is more than whitespace.
    pub fn has_words(&self) -> bool {
        !self.text.trim().is_empty()
    }
}
