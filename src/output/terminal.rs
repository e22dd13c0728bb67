//! The terminal that q writes to: which characters it may be given, and whether the user must learn why some are missing.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Read};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::text::escape::{Charset, Encoding};
use crate::threads;

/// Set by the keys for shells, which show the messages of q on a terminal and put its answer into the command line.
const FOR_COMMAND_LINE: &str = "Q_LINE";

/// How long the system's command may take to say how it encodes a locale, and how often to look whether it has ended.
const LOCALE_WAIT: Duration = Duration::from_millis(200);
const LOCALE_POLL: Duration = Duration::from_millis(2);

/// The most bytes of what it says.
const MAX_CHARMAP: u64 = 1_000;

/// What the environment lets q do with a terminal, whatever the settings say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Styling {
    /// `TERM=dumb`: it shows lines one after the other, and nothing else works.
    Dumb,
    /// `NO_COLOR`, see no-color.org: text has neither weight nor colour.
    Plain,
    #[default]
    Full,
}

impl Styling {
    /// Reads the environment. `variable` returns the value of a variable that is set and not empty.
    fn of<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Styling {
        if variable("TERM") == Some("dumb") {
            Styling::Dumb
        } else if variable("NO_COLOR").is_some() {
            Styling::Plain
        } else {
            Styling::Full
        }
    }
}

/// What the environment says about the terminal. Its clones share what has been shown.
#[derive(Debug, Clone, Default)]
pub struct Terminal {
    /// By its variables alone.
    named: Encoding,
    /// By the system, too, once somebody needs to know.
    encoding: Arc<OnceLock<Encoding>>,
    pub styling: Styling,
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
            named: Encoding::of(&variable),
            encoding: Arc::default(),
            styling: Styling::of(&variable),
            is_in_screen: variable("STY").is_some(),
            fills_command_line: variable(FOR_COMMAND_LINE).is_some(),
            has_encoded: Arc::default(),
        }
    }

    /// A terminal about which the system is not asked, for what must work wherever q starts.
    pub fn as_named(&self) -> Terminal {
        Terminal {
            encoding: Arc::new(self.named.into()),
            ..self.clone()
        }
    }

    /// How it reads bytes. GNU screen reads single bytes where it was started with a locale that the system does not have.
    fn encoding(&self) -> Encoding {
        let find = || {
            if self.is_in_screen {
                self.named.for_screen(charmap)
            } else {
                self.named
            }
        };
        *self.encoding.get_or_init(find)
    }

    /// The characters of text.
    pub fn charset(&self) -> Charset {
        self.encoding().charset()
    }

    /// The characters of a question whose answer lets something run.
    pub fn charset_of_questions(&self) -> Charset {
        self.encoding().charset_of_questions()
    }

    /// A text that is about to be shown, in the characters that the terminal may be given. It is not escaped yet.
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
/// if nothing is shown on a terminal, the system has no such command, or it takes too long.
fn charmap() -> Option<String> {
    if !io::stdout().is_terminal() && !io::stderr().is_terminal() {
        return None;
    }
    let deadline = Instant::now() + LOCALE_WAIT;
    let mut command = Command::new("locale");
    command.arg("charmap").stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = command.spawn().ok()?;
    let charmap = read_until(&mut process, deadline);
    let status = loop {
        match process.try_wait() {
            Ok(None) if Instant::now() < deadline => sleep(LOCALE_POLL),
            Ok(status) => break status,
            Err(_) => break None,
        }
    };
    if status.is_none() {
        let _ = process.kill();
        let _ = process.wait();
    }
    charmap.filter(|_| status.is_some_and(|status| status.success()))
}

/// What a process has written when it closes its output, if that is something and comes in time.
fn read_until(process: &mut Child, deadline: Instant) -> Option<String> {
    let output = process.stdout.take()?;
    let (sender, written) = mpsc::channel();
    // It may have left another process behind that holds its output open.
    threads::start(move || {
        let mut bytes = Vec::new();
        let _ = output.take(MAX_CHARMAP).read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    })
    .ok()?;
    let left = deadline.saturating_duration_since(Instant::now());
    let bytes = written.recv_timeout(left).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    (!text.is_empty()).then_some(text)
}
