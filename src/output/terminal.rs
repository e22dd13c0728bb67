//! The terminal that q writes to: which characters it may be given, and whether the user must learn why some are missing.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::text::escape::{Charset, Encoding};

/// Set by the keys for shells, which show the messages of q on a terminal and put its answer into the command line.
const FOR_COMMAND_LINE: &str = "Q_LINE";

/// What the environment says about the terminal. Its clones share what has been shown.
#[derive(Debug, Clone, Default)]
pub struct Terminal {
    encoding: Encoding,
    /// It is a window of GNU screen.
    is_in_screen: bool,
    /// The answer goes into the command line of a shell.
    pub fills_command_line: bool,
    /// Letters were shown as their code points.
    has_encoded: Arc<AtomicBool>,
}

impl Terminal {
    /// Reads the environment. `variable` returns the value of a variable that is set and not empty.
    pub fn new<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Terminal {
        Terminal {
            encoding: Encoding::of(&variable, charmap),
            is_in_screen: variable("STY").is_some(),
            fills_command_line: variable(FOR_COMMAND_LINE).is_some(),
            has_encoded: Arc::default(),
        }
    }

    /// The characters of text.
    pub fn charset(&self) -> Charset {
        self.encoding.charset()
    }

    /// The characters of a question whose answer lets something run.
    pub fn charset_of_questions(&self) -> Charset {
        self.encoding.charset_of_questions()
    }

    /// A text that is about to be shown, in the characters that the terminal may be given. It is not escaped yet.
    pub fn encode<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let encoded = self.charset().encode(text);
        if let Cow::Owned(_) = encoded {
            self.has_encoded.store(true, Ordering::Relaxed);
        }
        encoded
    }

    /// The note for a user who has not seen all letters as they are.
    pub(super) fn note(&self) -> Option<String> {
        // In a window of screen that reads bytes, only a new screen helps.
        let when = if self.is_in_screen {
            " before screen is started"
        } else {
            ""
        };
        let has_encoded = self.has_encoded.load(Ordering::Relaxed);
        has_encoded.then(|| {
            format!(
                "the locale is not UTF-8, so letters are shown as \\u{{...}}; set LC_ALL=C.UTF-8{when}"
            )
        })
    }
}

/// The encoding that the system uses for the locale of this process: none of its own if it does not have this locale. `None`
/// if nothing is shown on a terminal, or the system has no such command.
fn charmap() -> Option<String> {
    if !io::stdout().is_terminal() && !io::stderr().is_terminal() {
        return None;
    }
    let mut command = Command::new("locale");
    command.arg("charmap").stdin(Stdio::null());
    let output = command.stderr(Stdio::null()).output().ok()?;
    let charmap = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !charmap.is_empty()).then_some(charmap)
}
