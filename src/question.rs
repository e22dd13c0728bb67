//! The question: the words of the command line and what comes on standard input.

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

/// The words, joined by one space.
pub(crate) fn joined(words: &[OsString], notes: &Notes) -> String {
    let words: Vec<_> =
        words.iter().map(|word| text(word.as_encoded_bytes().to_vec(), "the command line", notes)).collect();
    words.join(" ")
}

/// Bytes as text. Those that are not UTF-8 become U+FFFD, with a note.
pub(crate) fn text(bytes: Vec<u8>, source: &str, notes: &Notes) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        notes.note(&format!("{source} is not all UTF-8: other bytes are sent as U+FFFD"));
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
        std::thread::spawn(move || watch(&watched, &notes));
    }
    notes.sign().wait_for("waiting for standard input");
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
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
    let mut name = "context".to_owned();
    let mut number = 2;
    while input.contains(&format!("</{name}>")) {
        name = format!("context-{number}");
        number += 1;
    }
    let line_end = if input.ends_with('\n') { "" } else { "\n" };
    format!("<{name}>\n{input}{line_end}</{name}>\n\n{words}")
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
