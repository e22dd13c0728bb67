//! Reads how an answer ended from the finish reasons of all providers (pure).

/// The kind of reason for which the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishKind {
    /// The answer is complete.
    Complete,
    /// The answer reached the token limit.
    Limit,
    /// The answer broke off, and the provider does not say why.
    Cut,
    /// The provider continues the answer when it is asked to.
    Paused,
    /// The answer is or may be incomplete for another reason: calls of tools not offered, or a word that q does not recognize.
    Other,
    /// The model or the server failed.
    Failed,
    /// The provider blocked the answer, or the rest of it.
    Blocked,
}

/// The finish reason of a reply: its kind, and the provider's word for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    pub kind: FinishKind,
    /// The provider's word for it.
    pub word: String,
}

/// The word of the Responses API for what is cut.
pub const INCOMPLETE: &str = "incomplete";

/// What the words of the providers mean, in lower case, with blanks between them. [`Finish::read`] knows the others.
const MEANINGS: &[(FinishKind, &str)] = &[
    (
        FinishKind::Complete,
        "stop end_turn stop_sequence eos eos_token complete completed end",
    ),
    // The token limit of the answer or of the context.
    (
        FinishKind::Limit,
        "length max_tokens max_output_tokens model_length model_context_window_exceeded",
    ),
    (FinishKind::Cut, INCOMPLETE),
    (
        FinishKind::Failed,
        "error failed insufficient_system_resource network_error network-error",
    ),
    // The words of OpenAI and Azure, Anthropic, Gemini and Zhipu.
    (
        FinishKind::Blocked,
        "content_filter refusal safety recitation language blocklist prohibited_content spii model_armor \
            image_safety image_prohibited_content image_recitation escalation pup_limited_disabled sensitive",
    ),
    // Anthropic's word for an answer that it interrupts in the middle of a search.
    (FinishKind::Paused, "pause_turn"),
];

/// The beginning of Gemini's finish reasons for malformed answers.
const FAILED_BEGINNING: &str = "malformed_";

impl Finish {
    pub(super) fn new(kind: FinishKind, word: &str) -> Finish {
        Finish {
            kind,
            word: word.to_owned(),
        }
    }

    /// Reads a provider's word, in upper or lower case; `None` if it is no finish reason. Some servers fill the field with
    /// another word while the answer continues.
    pub fn read(word: &str) -> Option<Finish> {
        // Most events have no word.
        if word.is_empty() {
            return None;
        }
        let lower = word.to_lowercase();
        if matches!(lower.as_str(), "null" | "finish_reason_unspecified") {
            return None;
        }
        let mut meanings = MEANINGS.iter();
        let found = meanings.find(|(_, words)| words.split(' ').any(|known| known == lower));
        let kind = match found {
            Some((kind, _)) => *kind,
            None if lower.starts_with(FAILED_BEGINNING) => FinishKind::Failed,
            None => FinishKind::Other,
        };
        Some(Finish::new(kind, word))
    }

    /// Returns the word in JSON: `stop`, `length` or the provider's.
    pub fn reported(&self) -> &str {
        match self.kind {
            FinishKind::Complete => "stop",
            FinishKind::Limit => "length",
            _ => &self.word,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finish_reason_is_assigned_to_its_kind_in_upper_and_lower_case() {
        for (words, kind) in [
            ("stop end_turn eos end", FinishKind::Complete),
            ("length max_tokens model_length", FinishKind::Limit),
            ("incomplete", FinishKind::Cut),
            ("error network_error malformed_response", FinishKind::Failed),
            ("safety image_safety sensitive", FinishKind::Blocked),
            ("escalation pup_limited_disabled", FinishKind::Blocked),
            ("pause_turn", FinishKind::Paused),
            ("tool_calls continuation something_new", FinishKind::Other),
            ("no_image malformed", FinishKind::Other),
        ] {
            assert_eq!(Finish::read(""), None);
            for word in words.split(' ') {
                for word in [word.to_owned(), word.to_uppercase()] {
                    assert_eq!(
                        Finish::read(&word),
                        Some(Finish::new(kind, &word)),
                        "{word}"
                    );
                }
            }
        }
    }

    #[test]
    fn programs_get_stop_length_or_the_finish_reason_of_the_provider() {
        for (word, own, reported) in [
            ("END_TURN", "END_TURN", "stop"),
            ("stop", "stop", "stop"),
            ("MAX_TOKENS", "MAX_TOKENS", "length"),
            ("tool_use", "tool_use", "tool_use"),
            ("SAFETY", "SAFETY", "SAFETY"),
            ("error", "error", "error"),
        ] {
            let finish = Finish::read(word).expect(word);
            assert_eq!(
                (&*finish.word, finish.reported()),
                (own, reported),
                "{word}"
            );
        }
    }
}
