//! The text of an answer while it grows: how much has come, how much was shown, and whether more will come.

/// An answer that may still grow.
#[derive(Debug, Default, Clone)]
pub(super) struct Answer {
    text: String,
    /// How many bytes of the text the user was shown.
    shown: usize,
    /// No more text will come.
    complete: bool,
}

impl Answer {
    /// Adds a piece, perhaps the last one; some servers mark every piece as the last.
    pub(super) fn push(&mut self, piece: &str, last: bool) {
        self.text.push_str(piece);
        self.complete = last || (self.complete && piece.is_empty());
    }

    /// The user has been shown this many bytes.
    pub(super) fn show(&mut self, bytes: usize) {
        self.shown = bytes;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// All that has come.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// What the user was shown, without half a character at its end. If nothing was shown, all that has come: an
    /// answer may be printed only once it is complete.
    pub(super) fn shown_text(&self) -> &str {
        let shown = (0..=self.shown).rev().find(|at| self.text.is_char_boundary(*at)).unwrap_or(0);
        if shown == 0 { &self.text } else { &self.text[..shown] }
    }

    /// Whether the user was shown less than the complete answer.
    pub(super) fn breaks_off(&self) -> bool {
        !self.complete || self.shown_text().len() < self.text.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(pieces: &[&str], shown: usize, complete: bool) -> Answer {
        let mut answer = Answer::default();
        for piece in pieces {
            answer.push(piece, true);
        }
        answer.push("", false);
        answer.show(shown);
        if !complete {
            answer.complete = false;
        }
        answer
    }

    #[test]
    fn what_was_shown_is_known_to_the_byte() {
        for (pieces, shown, complete, text, breaks_off) in [
            (&["one ", "two"][..], 4, false, "one ", true),
            (&["one ", "two"], 4, true, "one ", true),
            (&["one ", "two"], 7, false, "one two", true),
            (&["one ", "two"], 7, true, "one two", false),
            // Nothing was shown, for example because of -x, so what came counts.
            (&["one ", "two"], 0, false, "one two", true),
            (&["one ", "two"], 0, true, "one two", false),
            // Two of the three bytes of a character have left.
            (&["a€"], 3, true, "a", true),
            (&["a€"], 4, true, "a€", false),
            (&[], 0, false, "", true),
            (&[], 0, true, "", true),
        ] {
            let answer = answer(pieces, shown, complete);
            assert_eq!((answer.shown_text(), answer.breaks_off()), (text, breaks_off), "{pieces:?} {shown} {complete}");
            assert_eq!(answer.text(), pieces.concat());
            assert_eq!(answer.is_empty(), pieces.is_empty());
        }
    }
}
