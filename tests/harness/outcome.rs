//! How a run of a program ended, and what a test expects of that: a check that fails shows the whole run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::{self, Write as _};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use super::capture::contains;
use super::locks::lock;

/// How much of an output a failure shows.
const SHOWN: usize = 4_000;

/// How a sandbox was used last, for a failure that has no outcome at hand.
#[derive(Default)]
pub struct LastRun {
    /// Command, status and output; nothing before the first run has ended.
    pub text: String,
    /// A failure has shown it already.
    pub shown: bool,
}

/// What a failure has to say about how the program was started.
#[derive(Clone)]
pub struct Invocation {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub env: BTreeMap<OsString, OsString>,
    pub current_dir: PathBuf,
    /// A failure lists what is below it.
    pub state: PathBuf,
    pub last_run: Arc<Mutex<LastRun>>,
}

/// How a run ended. Every check that fails shows the whole run.
pub struct Outcome {
    pub(super) invocation: Invocation,
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// From the start to the end of the program.
    pub(super) elapsed: Duration,
}

impl Outcome {
    /// Exit code 0, and nothing to say about it.
    #[track_caller]
    pub fn success(&self) -> &Outcome {
        self.exit(0).stderr_is_empty()
    }

    #[track_caller]
    pub fn exit(&self, code: i32) -> &Outcome {
        let right = self.status.code() == Some(code);
        self.check(right, &format!("expected exit code {code}"))
    }

    #[track_caller]
    pub fn killed_by(&self, signal: i32) -> &Outcome {
        let right = self.status.signal() == Some(signal);
        self.check(right, &format!("expected the end by signal {signal}"))
    }

    /// Exactly this.
    #[track_caller]
    pub fn stdout(&self, expected: impl AsRef<[u8]>) -> &Outcome {
        let expected = expected.as_ref();
        let what = format!("expected stdout to be:\n{}", excerpt(expected));
        self.check(self.stdout == expected, &what)
    }

    #[track_caller]
    pub fn stdout_contains(&self, text: &str) -> &Outcome {
        let right = contains(&self.stdout, text.as_bytes());
        self.check(right, &format!("expected in stdout: {text:?}"))
    }

    #[track_caller]
    pub fn stdout_lacks(&self, text: &str) -> &Outcome {
        let right = !contains(&self.stdout, text.as_bytes());
        self.check(right, &format!("not expected in stdout: {text:?}"))
    }

    #[track_caller]
    pub fn stdout_is_empty(&self) -> &Outcome {
        self.check(self.stdout.is_empty(), "expected nothing on stdout")
    }

    /// Exactly this.
    #[track_caller]
    pub fn stderr(&self, expected: impl AsRef<[u8]>) -> &Outcome {
        let expected = expected.as_ref();
        let what = format!("expected stderr to be:\n{}", excerpt(expected));
        self.check(self.stderr == expected, &what)
    }

    #[track_caller]
    pub fn stderr_contains(&self, text: &str) -> &Outcome {
        let right = contains(&self.stderr, text.as_bytes());
        self.check(right, &format!("expected in stderr: {text:?}"))
    }

    #[track_caller]
    pub fn stderr_lacks(&self, text: &str) -> &Outcome {
        let right = !contains(&self.stderr, text.as_bytes());
        self.check(right, &format!("not expected in stderr: {text:?}"))
    }

    #[track_caller]
    pub fn stderr_is_empty(&self) -> &Outcome {
        self.check(self.stderr.is_empty(), "expected nothing on stderr")
    }

    /// Each of these is in standard error.
    #[track_caller]
    pub fn stderr_contains_all<S: AsRef<str>>(&self, texts: &[S]) -> &Outcome {
        for text in texts {
            self.stderr_contains(text.as_ref());
        }
        self
    }

    #[track_caller]
    pub fn stderr_has_lines(&self, count: usize) -> &Outcome {
        let found = self.stderr_text().lines().count();
        let what = format!("expected {count} lines on stderr, not {found}");
        self.check(found == count, &what)
    }

    /// There is something on standard error, and each line begins with `q: `.
    #[track_caller]
    pub fn stderr_is_of_q(&self) -> &Outcome {
        let text = self.stderr_text();
        let right = !text.is_empty() && text.lines().all(|line| line.starts_with("q: "));
        self.check(right, "expected lines on stderr that begin with `q: `")
    }

    /// One line that says what is wrong, and perhaps one line for each thing to do.
    #[track_caller]
    pub fn explains(&self) -> &Outcome {
        let right = self.stderr_is_of_q().stderr_text().lines().count() <= 3;
        self.check(right, "expected one line, and at most two with what to do")
    }

    /// Exit code 2, nothing on stdout, and an explanation that has each of these words.
    #[track_caller]
    pub fn refused<S: AsRef<str>>(&self, words: &[S]) -> &Outcome {
        let outcome = self.exit(2).stdout_is_empty();
        outcome.explains().stderr_contains_all(words)
    }

    /// Any condition of the test's own, with the run shown where it does not hold.
    #[track_caller]
    pub fn check(&self, right: bool, expected: &str) -> &Outcome {
        if !right {
            panic!("{}", report(expected, &self.invocation, &self.text()));
        }
        self
    }

    /// What a failure shows of the run.
    pub(super) fn text(&self) -> String {
        let status = self.status.to_string();
        run_text(&self.invocation, &status, &self.stdout, &self.stderr)
    }

    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    #[track_caller]
    pub fn stdout_json(&self) -> Value {
        let value = serde_json::from_slice(&self.stdout);
        self.check(value.is_ok(), "expected JSON on stdout");
        value.unwrap_or_default()
    }

    /// From the start to the end of the program.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "command: {:?}", self.program)?;
        for arg in &self.args {
            write!(formatter, " {arg:?}")?;
        }
        writeln!(formatter, "\nin: {}", self.current_dir.display())?;
        writeln!(formatter, "environment:")?;
        for (key, value) in &self.env {
            writeln!(formatter, "  {}={value:?}", key.display())?;
        }
        Ok(())
    }
}

/// A failure, with the run and the files that are there.
pub fn report(what: &str, invocation: &Invocation, run: &str) -> String {
    lock(&invocation.last_run).shown = true;
    let files = listing(&invocation.state);
    format!("{what}\n\n{run}files below state:\n{files}")
}

pub fn run_text(invocation: &Invocation, status: &str, stdout: &[u8], stderr: &[u8]) -> String {
    let (stdout, stderr) = (excerpt(stdout), excerpt(stderr));
    format!("{invocation}status: {status}\nstdout:\n{stdout}\nstderr:\n{stderr}\n")
}

/// An output as text; of a long one the beginning and the end.
pub fn excerpt(bytes: &[u8]) -> String {
    if bytes.len() <= SHOWN {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let half = SHOWN / 2;
    format!(
        "{}\n[… {} bytes …]\n{}",
        String::from_utf8_lossy(&bytes[..half]),
        bytes.len() - SHOWN,
        String::from_utf8_lossy(&bytes[bytes.len() - half..]),
    )
}

/// Mode, size and path of everything below a directory.
pub fn listing(directory: &Path) -> String {
    let mut text = String::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        let Ok(entries) = fs::read_dir(&next) else {
            let _ = writeln!(text, "  cannot be read: {}", next.display());
            continue;
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let shortened = path.strip_prefix(directory).unwrap_or(&path).display();
            let Ok(metadata) = path.symlink_metadata() else {
                let _ = writeln!(text, "  gone meanwhile: {shortened}");
                continue;
            };
            let mode = metadata.permissions().mode() & 0o7777;
            let _ = writeln!(text, "  {mode:04o} {:>9} {shortened}", metadata.len());
            if metadata.is_dir() {
                directories.push(path);
            }
        }
    }
    text
}
