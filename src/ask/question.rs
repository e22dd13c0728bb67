//! The question: the words of the command line and what comes on standard input.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, Read};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::error::{Error, Kind};
use crate::output::Notes;

/// The most bytes that are taken from standard input.
pub(crate) const LONGEST_INPUT: usize = 10_000_000;

/// How long input may stay away before q says that it waits for it.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long to wait for a writer where the pipe does not block, and is empty.
const EMPTY_PIPE_POLL: Duration = Duration::from_millis(5);

/// The words, joined by one space.
pub(crate) fn joined(words: &[OsString], notes: &Notes) -> String {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_encoded_bytes()).collect();
    text(words.join(&b' '), "the command line", notes)
}

/// Says that bytes have been replaced.
pub(crate) fn note_replaced(source: &str, notes: &Notes) {
    notes.note(&format!("{source} is not all UTF-8: other bytes are sent as U+FFFD"));
}

/// Bytes as text. Those that are not UTF-8 become U+FFFD, with a note.
fn text(bytes: Vec<u8>, source: &str, notes: &Notes) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        note_replaced(source, notes);
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    })
}

/// Reads standard input to its end, with a note where nothing comes for long.
///
/// # Errors
/// `Input`: it is binary (it has a NUL byte) or longer than [`LONGEST_INPUT`]. `File`: it cannot be read.
pub(crate) fn read(mut input: impl Read, notes: &Notes) -> Result<String, Error> {
    let (progress, watched) = mpsc::channel();
    // On a terminal the waiting sign says it, and sooner.
    if !notes.sign().is_active() {
        let notes = notes.clone();
        // Without a thread there is no note, and nothing else is missing.
        let _ = std::thread::Builder::new().spawn(move || watch(&watched, &notes));
    }
    notes.sign().wait_for("waiting for standard input");
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // Somebody else has set the pipe so; it cannot be told here when there is something again.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(EMPTY_PIPE_POLL);
                continue;
            }
            Err(error) => {
                return Err(Error::file(format!("cannot read standard input: {error}"))
                    .advise("-n leaves standard input alone"));
            }
        };
        // A watcher that has said its note is gone.
        let _ = progress.send(());
        if buffer[..count].contains(&0) {
            return Err(Error::new(Kind::Input, "standard input is binary: it has a NUL byte")
                .advise("only text can be asked about; -n leaves standard input alone"));
        }
        bytes.extend_from_slice(&buffer[..count]);
        if bytes.len() > LONGEST_INPUT {
            return Err(Error::new(Kind::Input, format!("standard input is longer than {LONGEST_INPUT} bytes"))
                .advise("send a part of it, with head, tail or grep for example; -n leaves standard input alone"));
        }
    }
    drop(progress);
    notes.sign().stop();
    Ok(text(bytes, "standard input", notes))
}

fn watch(progress: &mpsc::Receiver<()>, notes: &Notes) {
    loop {
        match progress.recv_timeout(PATIENCE) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => {
                return notes.note("waiting for standard input; -n or </dev/null leaves it alone");
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Puts words and input together; `None` where there is neither.
pub(crate) fn compose(words: &str, input: Option<&str>) -> Option<String> {
    let words = Some(words).filter(|words| !words.trim().is_empty());
    let input = input.filter(|input| !input.trim().is_empty());
    match (words, input) {
        (None, None) => None,
        (Some(words), None) => Some(words.to_owned()),
        (None, Some(input)) => Some(input.trim_end_matches(['\n', '\r']).to_owned()),
        (Some(words), Some(input)) => Some(fenced(input, words)),
    }
}

/// The fence has a name that the input does not close.
fn fenced(input: &str, words: &str) -> String {
    const NAME: &str = "context";
    // In one pass, so that an input full of closing tags takes no longer than another.
    let closed: HashSet<&str> =
        input.split("</context").skip(1).filter_map(|rest| rest.split_once('>').map(|(suffix, _)| suffix)).collect();
    let suffixes = (1_u32..).map(|number| if number == 1 { String::new() } else { format!("-{number}") });
    let suffix = suffixes.into_iter().find(|suffix| !closed.contains(suffix.as_str())).unwrap_or_default();
    let line_end = if input.ends_with('\n') { "" } else { "\n" };
    format!("<{NAME}{suffix}>\n{input}{line_end}</{NAME}{suffix}>\n\n{words}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_and_input_come_together() {
        for (words, input, question) in [
            ("why", None, Some("why")),
            ("why", Some("log"), Some("<context>\nlog\n</context>\n\nwhy")),
            ("why", Some("log\n"), Some("<context>\nlog\n</context>\n\nwhy")),
            ("why", Some("log\n\n"), Some("<context>\nlog\n\n</context>\n\nwhy")),
            ("why", Some("a\r\n"), Some("<context>\na\r\n</context>\n\nwhy")),
            ("", Some("what is this?\n\n"), Some("what is this?")),
            ("", Some("  indented\n"), Some("  indented")),
            ("why", Some(" \n\t"), Some("why")),
            (" why ", None, Some(" why ")),
            ("  ", Some(" \n"), None),
            ("", None, None),
            ("why", Some("</context>"), Some("<context-2>\n</context>\n</context-2>\n\nwhy")),
            ("why", Some("</context></context-2>"), Some("<context-3>\n</context></context-2>\n</context-3>\n\nwhy")),
        ] {
            assert_eq!(compose(words, input).as_deref(), question, "{words:?} {input:?}");
        }
    }

    proptest! {
        #[test]
        fn no_input_can_close_its_fence(input in "(</?context(-[2-4])?>|[a-z \n]){1,20}") {
            prop_assume!(!input.trim().is_empty());
            let question = compose("why", Some(&input)).expect("a question");
            let name = &question[1..question.find('>').expect("a fence")];
            prop_assert_eq!(question.matches(&format!("</{name}>")).count(), 1);
            prop_assert!(question.contains(&input));
        }
    }

    #[test]
    fn binary_and_endless_input_is_refused() {
        let notes = Notes::default();
        let binary = read(&b"abc\0def"[..], &notes).expect_err("binary");
        assert!(binary.message.contains("binary") && binary.exit_status() == 2);
        let endless = read(io::repeat(b'y'), &notes).expect_err("endless");
        assert!(endless.message.contains("10000000") && endless.exit_status() == 2);
        let longest = vec![b'y'; LONGEST_INPUT];
        assert_eq!(read(&longest[..], &notes).map(|text| text.len()).ok(), Some(LONGEST_INPUT));
    }
}
