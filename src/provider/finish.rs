//! Reads how an answer ended from the finish reasons of all providers (pure).

/// Why the model stopped, with the provider's word for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// The answer is complete.
    Complete(String),
    /// The answer reached the token limit.
    Limit(String),
    /// The provider continues the answer when it is asked to.
    Paused(String),
    /// The answer is or may be incomplete for another reason: calls of tools not offered, or a word that q does not recognize.
    Other(String),
    /// The model or the server failed.
    Failed(String),
    /// The provider blocked the answer, or the rest of it.
    Blocked(String),
}

type Make = fn(String) -> Finish;

/// What the words of the providers mean, in lower case, with blanks between them. [`Finish::read`] knows the others.
const MEANINGS: &[(Make, &str)] = &[
    (
        Finish::Complete,
        "stop end_turn stop_sequence eos eos_token complete completed end",
    ),
    // The token limit of the answer or of the context.
    (
        Finish::Limit,
        "length max_tokens max_output_tokens model_length model_context_window_exceeded",
    ),
    (
        Finish::Failed,
        "error failed insufficient_system_resource network_error network-error",
    ),
    // The words of OpenAI and Azure, Anthropic, Gemini and Zhipu.
    (
        Finish::Blocked,
        "content_filter refusal safety recitation language blocklist prohibited_content spii model_armor \
            image_safety image_prohibited_content image_recitation escalation pup_limited_disabled sensitive",
    ),
    // Anthropic's word for an answer that it interrupts in the middle of a search.
    (Finish::Paused, "pause_turn"),
];

/// The beginning of Gemini's finish reasons for malformed answers.
const FAILED_BEGINNING: &str = "malformed_";

impl Finish {
    /// Reads a provider's word, in upper or lower case; `None` if it is no finish reason. Some servers fill the field with
    /// another word while the answer continues.
    pub(super) fn read(word: &str) -> Option<Finish> {
        // Most events have no word.
        if word.is_empty() {
            return None;
        }
        let lower = word.to_lowercase();
        if matches!(lower.as_str(), "null" | "finish_reason_unspecified") {
            return None;
        }
        let word = word.to_owned();
        for (finish, words) in MEANINGS {
            if words.split(' ').any(|known| known == lower) {
                return Some(finish(word));
            }
        }
        if lower.starts_with(FAILED_BEGINNING) {
            return Some(Finish::Failed(word));
        }
        Some(Finish::Other(word))
    }

    /// The provider's word.
    pub fn word(&self) -> &str {
        use Finish::{Blocked, Complete, Failed, Limit, Other, Paused};
        let (Complete(word) | Limit(word) | Paused(word) | Other(word) | Failed(word)
        | Blocked(word)) = self;
        word
    }

    pub(super) fn word_mut(&mut self) -> &mut String {
        use Finish::{Blocked, Complete, Failed, Limit, Other, Paused};
        let (Complete(word) | Limit(word) | Paused(word) | Other(word) | Failed(word)
        | Blocked(word)) = self;
        word
    }

    /// The word in JSON: `stop`, `length` or the provider's.
    pub fn reported(&self) -> &str {
        match self {
            Finish::Complete(_) => "stop",
            Finish::Limit(_) => "length",
            _ => self.word(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_for_what_it_means_in_any_case() {
        for (words, make) in [
            ("stop end_turn eos end", Finish::Complete as Make),
            ("length max_tokens model_length", Finish::Limit),
            ("error network_error malformed_response", Finish::Failed),
            ("safety image_safety sensitive", Finish::Blocked),
            ("escalation pup_limited_disabled", Finish::Blocked),
            ("pause_turn", Finish::Paused),
            ("tool_calls continuation something_new", Finish::Other),
            ("no_image malformed", Finish::Other),
        ] {
            assert_eq!(Finish::read(""), None);
            for word in words.split(' ') {
                for word in [word.to_owned(), word.to_uppercase()] {
                    assert_eq!(Finish::read(&word), Some(make(word.clone())), "{word}");
                }
            }
        }
    }

    #[test]
    fn programs_see_stop_length_or_the_providers_word() {
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
                (finish.word(), finish.reported()),
                (own, reported),
                "{word}"
            );
        }
    }
}
