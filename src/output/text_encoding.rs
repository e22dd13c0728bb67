//! The encoding of the terminal: which characters it may be given, and whether the user must learn why some are missing.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::charmap::charmap;
use crate::text::locale::{Charset, Encoding};

/// The encoding of the terminal, as far as the environment and the system can tell. Clones share what has been found and shown.
#[derive(Debug, Clone, Default)]
pub struct TextEncoding {
    /// The encoding by the environment alone.
    by_environment: Encoding,
    /// The encoding by the system, too. It is found when somebody first needs it, because that may take a while.
    by_system: Arc<OnceLock<Encoding>>,
    /// Whether the terminal is a window of GNU screen.
    is_in_screen: bool,
    /// Letters were shown as their code points.
    has_encoded: Arc<AtomicBool>,
}

impl TextEncoding {
    /// Reads the environment. `variable` returns the value of a variable that is set and not empty.
    pub fn new<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> TextEncoding {
        TextEncoding {
            by_environment: Encoding::of(&variable),
            by_system: Arc::default(),
            is_in_screen: variable("STY").is_some(),
            has_encoded: Arc::default(),
        }
    }

    /// Returns the encoding by the environment alone, for what must work wherever q starts.
    pub fn without_system(&self) -> TextEncoding {
        TextEncoding {
            by_system: Arc::new(self.by_environment.into()),
            ..self.clone()
        }
    }

    /// Returns the encoding of the terminal. GNU screen reads single bytes if it was started with a locale that the system does
    /// not have.
    fn encoding(&self) -> Encoding {
        let find = || {
            if self.is_in_screen {
                self.by_environment.for_screen(charmap)
            } else {
                self.by_environment
            }
        };
        *self.by_system.get_or_init(find)
    }

    /// Returns the characters of text.
    pub fn charset(&self) -> Charset {
        self.encoding().charset()
    }

    /// Returns the characters of a question whose answer lets something run.
    pub fn charset_of_questions(&self) -> Charset {
        self.encoding().charset_of_questions()
    }

    /// Returns a text that is about to be shown, in the characters that the terminal may be given. It is not escaped yet.
    pub fn encode<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if text.is_ascii() {
            return text.into();
        }
        let encoded = self.charset().encode(text);
        if let Cow::Owned(_) = encoded {
            self.has_encoded.store(true, Ordering::Relaxed);
        }
        encoded
    }

    /// Returns the note for a user who has not seen all letters as they are.
    pub(super) fn note(&self) -> Option<String> {
        if !self.has_encoded.load(Ordering::Relaxed) {
            return None;
        }
        if self.encoding() == Encoding::Undecided {
            return Some(
                "the system does not say whether screen shows UTF-8, so letters are shown as \\u{...}; to see why, run: locale charmap"
                    .to_owned(),
            );
        }
        // In a window of screen that reads bytes, only a new screen helps.
        let when = if self.is_in_screen {
            " before screen is started"
        } else {
            ""
        };
        Some(format!(
            "the locale is not UTF-8, so letters are shown as \\u{{...}}; set LC_ALL=C.UTF-8{when}"
        ))
    }
}
