//! The question: the words of the command line and what comes on standard input.

use std::ffi::OsString;
use std::io::{self, Read};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::error::{Error, Kind};
use crate::fence;
use crate::output::Notes;
use crate::unix;

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

/// Says that input is missing where a pipe or a file should have brought some: a command that failed leaves its pipe empty.
pub(crate) fn note_empty(input: &str, notes: &Notes) {
    if !input.trim().is_empty() || !unix::stdin_is_pipe_or_file() {
        return;
    }
    notes.note(if input.is_empty() {
        "standard input was empty"
    } else {
        "standard input was empty but for white space"
    });
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
        (Some(words), Some(input)) => Some(behind(&fence::around_input(input), words)),
    }
}

/// The question to ask again: the last one with these words in place of its own, and this input in place of its own, so far
/// as there are any.
pub(crate) fn again(last: &str, words: &str, input: Option<&str>) -> String {
    if words.trim().is_empty() {
        return last.to_owned();
    }
    let input = input.filter(|input| !input.trim().is_empty());
    match (fence::split(last), input) {
        (Some((fence, _)), None) => behind(fence, words),
        _ => compose(words, input).unwrap_or_else(|| last.to_owned()),
    }
}

fn behind(fence: &str, words: &str) -> String {
    format!("{fence}\n\n{words}")
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_question_is_asked_again_with_other_words_or_other_input() {
        let fenced = "<context>\nlog\n</context>\n\nwhy";
        for (last, words, input, question) in [
            ("why", "", None, "why"),
            ("why", "how", None, "how"),
            ("why", "how", Some("new\n"), "<context>\nnew\n</context>\n\nhow"),
            (fenced, "", None, fenced),
            (fenced, "how", None, "<context>\nlog\n</context>\n\nhow"),
            (fenced, "how", Some(" \n"), "<context>\nlog\n</context>\n\nhow"),
            (fenced, "how", Some("new"), "<context>\nnew\n</context>\n\nhow"),
        ] {
            assert_eq!(again(last, words, input), question, "{last:?} {words:?} {input:?}");
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
