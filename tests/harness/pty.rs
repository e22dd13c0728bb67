//! A pseudo-terminal for the real binary: what arrives on it byte by byte, and what a person would see on its screen.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use super::capture::Capture;
use super::pseudo_terminal;
use super::screen::screen;
use super::times::GUARD;

/// Wide enough that no line of a test wraps, unless the test is about that.
pub const WIDE: u16 = 2_000;

/// The terminal; programs get its other end.
pub struct Terminal {
    program_end: OwnedFd,
    keyboard: File,
    columns: u16,
    /// It ends when no program has the other end open any more.
    arrived: Capture,
}

impl Terminal {
    pub fn new(columns: u16) -> Terminal {
        let (own_end, program_end) = pseudo_terminal::open(columns).expect("a pseudo-terminal");
        let keyboard = own_end.try_clone().expect("a descriptor");
        Terminal {
            program_end,
            keyboard,
            columns,
            arrived: Capture::start(Some(own_end)),
        }
    }

    /// For `stdin_from`, `stdout_to` and `stderr_to`.
    pub fn end(&self) -> Stdio {
        self.program_end.try_clone().expect("a descriptor").into()
    }

    /// Its device.
    pub fn device(&self) -> File {
        File::from(self.program_end.try_clone().expect("a descriptor"))
    }

    /// The q that ask on it, or wait until they may: for each the fields of `/proc/…/stat` of Linux after its name.
    pub fn askers(&self) -> Vec<Vec<String>> {
        let device = self.device().metadata().expect("a device").rdev();
        let mut askers = Vec::new();
        for process in std::fs::read_dir("/proc").expect("processes").flatten() {
            let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
            let (_, fields) = stat.rsplit_once("(q) ").unwrap_or_default();
            let fields = Vec::from_iter(fields.split(' ').map(str::to_owned));
            let is_here = fields.get(4) == Some(&device.to_string());
            if is_here && let Ok(opened) = std::fs::read_dir(process.path().join("fd")) {
                let mut files = opened.flatten().flat_map(|file| file.path().read_link());
                if files.any(|file| file == Path::new("/dev/tty")) {
                    askers.push(fields);
                }
            }
        }
        askers
    }

    /// Types on it.
    pub fn type_in(&self, text: &str) {
        (&self.keyboard)
            .write_all(text.as_bytes())
            .expect("a terminal");
    }

    /// Sets how many columns it has.
    pub fn resize(&mut self, columns: u16) {
        self.columns = columns;
        pseudo_terminal::set_columns(&self.keyboard, columns).expect("a terminal");
    }

    /// Makes it take no output, as after Ctrl-S, and programs that write to it wait.
    pub fn stop(&self) {
        // SAFETY: a plain system call without pointers.
        let result = unsafe { libc::tcflow(self.program_end.as_raw_fd(), libc::TCOOFF) };
        assert_eq!(result, 0);
    }

    /// Waits until `text` has arrived after the first `from` bytes, and returns all that has arrived up to its end. What came with
    /// it can be waited for next.
    #[track_caller]
    pub fn wait_for(&self, text: &str, from: usize) -> Vec<u8> {
        self.wait_until(text, |bytes| {
            let mut windows = bytes.get(from..)?.windows(text.len());
            let at = windows.position(|window| window == text.as_bytes())?;
            Some(bytes[..from + at + text.len()].to_vec())
        })
    }

    /// Waits until `text` and a number of seconds but zero have arrived after the first `from` bytes, and returns that
    /// number. On a busy machine a sign may leave numbers out.
    #[track_caller]
    pub fn wait_for_seconds(&self, text: &str, from: usize) -> u64 {
        self.wait_until(text, |bytes| {
            let arrived = String::from_utf8_lossy(bytes.get(from..)?);
            let numbers = arrived.split(text).skip(1);
            let numbers = numbers.filter_map(|rest| rest.split_once(" s")?.0.parse().ok());
            numbers.into_iter().find(|number| *number > 0)
        })
    }

    #[track_caller]
    fn wait_until<T>(&self, what: &str, find: impl Fn(&[u8]) -> Option<T>) -> T {
        let is_there = |bytes: &[u8]| find(bytes).is_some();
        let deadline = Instant::now() + GUARD;
        let state = self
            .arrived
            .wait_until(deadline, |now| now.ended || is_there(&now.bytes));
        match find(&state.bytes) {
            Some(found) => found,
            None => panic!(
                "no {what:?} on the terminal:\n{:?}",
                String::from_utf8_lossy(&state.bytes)
            ),
        }
    }

    /// What has arrived up to now.
    pub fn so_far(&self) -> Vec<u8> {
        self.arrived.lock().bytes.clone()
    }

    /// Everything that arrived, once the programs have ended.
    #[track_caller]
    pub fn bytes(self) -> Vec<u8> {
        drop(self.program_end);
        let is_free = self.arrived.wait_for_end(Instant::now() + GUARD);
        assert!(is_free, "something holds the terminal open");
        self.arrived.take()
    }

    /// Everything that arrived, with the ends of lines as programs write them, once the programs have ended.
    #[track_caller]
    pub fn text(self) -> String {
        let text = String::from_utf8(self.bytes()).expect("UTF-8");
        text.replace("\r\n", "\n")
    }

    /// The same without styles.
    #[track_caller]
    pub fn text_alone(self) -> String {
        without_styles(&self.text())
    }

    /// Waits for each question in turn, and types the answer to it.
    #[track_caller]
    pub fn answer(&self, said: &[(&str, &str)]) {
        let mut seen = 0;
        for (question, answer) in said {
            seen = self.wait_for(question, seen).len();
            self.type_in(answer);
        }
    }

    /// What a person sees in the end.
    #[track_caller]
    pub fn screen(self) -> Vec<String> {
        let columns = self.columns;
        screen(&self.bytes(), columns)
    }

    /// What a person sees now.
    pub fn screen_so_far(&self) -> Vec<String> {
        screen(&self.so_far(), self.columns)
    }
}

/// A text without the sequences that switch styles on and off (SGR).
pub fn without_styles(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('m') {
            Some((style, rest))
                if style
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b';') =>
            {
                plain += rest
            }
            _ => plain = plain + "\u{1b}[" + part,
        }
    }
    plain
}
