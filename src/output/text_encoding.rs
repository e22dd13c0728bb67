//! The encoding of the terminal: which characters it may be given, and whether the user must learn why some are missing.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::text::escape::{Charmap, Charset, Encoding};
use crate::unix;

/// How long `locale` may take to print the encoding of a locale. It takes milliseconds, but on a busy machine seconds.
const LOCALE_TIMEOUT: Duration = Duration::from_secs(10);

/// How often to look whether it has ended.
const LOCALE_POLL: Duration = Duration::from_millis(2);

/// The most bytes of its output that are read.
const MAX_CHARMAP: usize = 1_000;

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

/// Asks the system how it encodes the locale of this process. For a locale that it does not have, it names ASCII. It is not asked
/// if neither standard output nor standard error is a terminal.
fn charmap() -> Charmap {
    if !io::stdout().is_terminal() && !io::stderr().is_terminal() {
        return Charmap::Unknown;
    }
    let deadline = Instant::now() + LOCALE_TIMEOUT;
    let mut command = Command::new("locale");
    command.arg("charmap").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = match command.spawn() {
        Ok(process) => process,
        Err(error) if has_no_command(error.kind()) => return Charmap::Unknown,
        Err(_) => return Charmap::Unanswered,
    };
    let printed = read_until(&mut process, deadline);
    let Some(status) = wait_until(&mut process, deadline) else {
        return Charmap::Unanswered;
    };
    match printed {
        // A program of this name may know no such word.
        Some(name) if status.success() && !name.is_empty() => Charmap::Named(name),
        Some(_) if status.code().is_some() => Charmap::Unknown,
        _ => Charmap::Unanswered,
    }
}

/// Whether a program could not be started because this user has none.
fn has_no_command(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::PermissionDenied)
}

/// Reads what a process writes until it closes its output. `None` if that takes longer than the deadline.
fn read_until(process: &mut Child, deadline: Instant) -> Option<String> {
    let mut output = File::from(OwnedFd::from(process.stdout.take()?));
    let mut bytes = Vec::new();
    let mut part = [0; MAX_CHARMAP];
    // It may have left another process behind that holds its output open.
    while bytes.len() < MAX_CHARMAP {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        if !unix::wait_for_input(&output, left) {
            continue;
        }
        match output.read(&mut part) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&part[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// Waits until a process has ended. At the deadline it is killed, and there is no status.
fn wait_until(process: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    loop {
        match process.try_wait() {
            Ok(None) if Instant::now() < deadline => sleep(LOCALE_POLL),
            Ok(Some(status)) => return Some(status),
            Ok(None) | Err(_) => break,
        }
    }
    let _ = process.kill();
    let _ = process.wait();
    None
}
