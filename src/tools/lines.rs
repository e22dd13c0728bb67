//! The lines that a process writes: each is cut at a limit, and the last ones of standard error are kept.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::protocol::MAX_KEPT_LINES;
use super::rpc::MAX_MESSAGE;
use crate::threads::{self, lock};
use crate::wait::wait_until;

/// How much of each of the last lines of a server's standard error is kept.
const MAX_KEPT_LINE: usize = 500;

/// How much of a line is passed over after what is read of it.
const MAX_SKIPPED: usize = 100_000_000;

/// The most bytes of a line of a server.
pub const MAX_LINE: usize = MAX_MESSAGE + MAX_SKIPPED;

/// A line that a program has written.
pub struct WrittenLine {
    /// Its first bytes, without its end.
    pub bytes: Vec<u8>,
    /// Whether it goes on beyond what is passed over.
    pub is_endless: bool,
    /// Whether the output ended within it.
    pub is_unfinished: bool,
}

/// How long to wait for the rest of what a process has written before it ended. Something that it has left running may hold
/// the pipe open.
pub const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// Prints a line that a server writes to its standard error, for `-v`. Runs on any thread.
pub type ReportLine = Arc<dyn Fn(&str) + Send + Sync>;

/// The last lines of a server's standard error. The thread that reads them has a reference of its own until it ends.
#[derive(Debug, Clone, Default)]
pub struct KeptLines(Arc<Mutex<Vec<String>>>);

impl KeptLines {
    /// Reads standard error to its end, on a thread, so that the process never waits for it. `report` gets each line.
    pub fn read_from(
        &self,
        stderr: impl Read + Send + 'static,
        report: ReportLine,
    ) -> io::Result<()> {
        let kept = self.clone();
        threads::start(move || kept.read_all(stderr, &report))
    }

    fn read_all(&self, stderr: impl Read, report: &ReportLine) {
        let mut stderr = BufReader::new(stderr);
        while let Some(line) = read_line(&mut stderr, MAX_KEPT_LINE) {
            let text = String::from_utf8_lossy(&line.bytes);
            // Where the line is cut within a character, its end would not look like the beginning of a secret.
            let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
            let text = text.trim_end();
            if text.is_empty() {
                continue;
            }
            report(text);
            let mut kept = lock(&self.0);
            if kept.len() == MAX_KEPT_LINES {
                kept.remove(0);
            }
            kept.push(text.to_owned());
        }
    }

    /// Waits until all that a process has written before it ended is read.
    pub fn wait_for_the_last(&self) {
        wait_until(DRAIN_TIMEOUT, || Arc::strong_count(&self.0) == 1);
    }

    /// Returns the lines that have been read so far.
    pub fn so_far(&self) -> Vec<String> {
        lock(&self.0).clone()
    }
}

/// Returns the next line, or `None` after the last one. At most `limit` bytes of it are kept. What follows a line that is endless
/// is the rest of it.
pub fn read_line(from: &mut impl BufRead, limit: usize) -> Option<WrittenLine> {
    let mut line = WrittenLine {
        bytes: Vec::new(),
        is_endless: false,
        is_unfinished: false,
    };
    let mut limited = from.by_ref().take(limit as u64);
    let count = limited.read_until(b'\n', &mut line.bytes).ok()?;
    if line.bytes.ends_with(b"\n") {
        line.bytes.pop();
    } else if count == limit {
        let mut rest = from.take(MAX_SKIPPED as u64);
        rest.skip_until(b'\n').ok()?;
        line.is_endless = rest.limit() == 0;
    } else {
        line.is_unfinished = true;
    }
    (count > 0).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is kept of this standard error.
    fn kept(stderr: impl Read) -> Vec<String> {
        let lines = KeptLines::default();
        lines.read_all(stderr, &(Arc::new(|_: &str| ()) as ReportLine));
        lines.so_far()
    }

    #[test]
    fn lines_of_a_process_are_cut_at_the_limit() {
        for (written, lines) in [
            ("", &[][..]),
            ("\n", &[""]),
            ("a\nbc\n", &["a", "bc"]),
            ("1234\n12345\n123456789\n1", &["1234", "1234", "1234", "1"]),
        ] {
            for capacity in [1, 3, 100] {
                let mut from = BufReader::with_capacity(capacity, written.as_bytes());
                let mut read = Vec::new();
                while let Some(line) = read_line(&mut from, 4) {
                    read.push(String::from_utf8(line.bytes).expect("text"));
                }
                assert_eq!(read, lines, "{written:?}");
            }
        }
    }

    #[test]
    fn a_line_without_an_end_is_not_read_forever() {
        let mut from = BufReader::with_capacity(1 << 20, io::repeat(b'x'));
        let line = read_line(&mut from, 4).expect("a line");
        assert!(line.is_endless);
        assert_eq!(line.bytes, b"xxxx");
    }

    #[test]
    fn the_last_lines_of_standard_error_are_kept() {
        let written: String = (1..=40)
            .map(|number| format!("{number}:{number:0999}\n\n"))
            .collect();
        let kept = kept(written.as_bytes());
        let numbers = Vec::from_iter(kept.iter().filter_map(|line| line.split(':').next()));
        let expected = "21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40";
        assert_eq!(numbers.join(" "), expected);
        assert!(kept.iter().all(|line| line.len() == MAX_KEPT_LINE));
    }

    #[test]
    fn standard_error_is_read_however_long_its_lines_are() {
        let long = io::repeat(b'x').take(250_000_000);
        let kept = kept(long.chain(&b"\n\nthe end\n"[..]));
        assert_eq!(kept.last().map(String::as_str), Some("the end"), "{kept:?}");
        assert!(kept.len() <= 4, "{kept:?}");
    }

    #[test]
    fn a_line_of_standard_error_is_not_kept_with_half_a_character() {
        let zeros = "0".repeat(MAX_KEPT_LINE - 1);
        assert_eq!(kept(format!("{zeros}é.\n").as_bytes()), [zeros]);
    }
}
