//! What was done and what was found: a line every few seconds, a table at the end, and a copy of the state for each finding.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fs_err as fs;
use fs_err::os::unix::fs::symlink;

const PROGRESS: Duration = Duration::from_secs(5);

/// For how many findings of one sort from one command a copy of the state is kept.
const COPIES: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Lost,
    Torn,
    LeftOver,
    Misplaced,
    Other,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Kind::Lost => "lost",
            Kind::Torn => "torn",
            Kind::LeftOver => "left over",
            Kind::Misplaced => "misplaced",
            Kind::Other => "other",
        })
    }
}

pub struct Report {
    /// Where copies of the state go.
    directory: PathBuf,
    began: Instant,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    done: BTreeMap<(&'static str, String), u64>,
    found: BTreeMap<(&'static str, Kind, String), Group>,
    findings: u64,
    shown: Option<Instant>,
    /// How long runs took to end after a signal.
    ends: BTreeMap<&'static str, Vec<Duration>>,
    /// What runs said on standard error.
    said: BTreeMap<(&'static str, String), u64>,
}

/// Findings of the same sort from the same command.
struct Group {
    count: u64,
    first_seed: u64,
    first_copy: PathBuf,
    /// What was wrong with the first.
    what: String,
}

/// Which part of a soak something happened in: the mode, and the seed that repeats it.
#[derive(Clone, Copy)]
pub struct Part {
    pub mode: &'static str,
    pub seed: u64,
}

impl Report {
    pub fn new(directory: PathBuf) -> Report {
        Report {
            directory,
            began: Instant::now(),
            inner: Mutex::default(),
        }
    }

    /// Something was done.
    pub fn done(&self, mode: &'static str, command: &str) {
        let mut inner = self.lock();
        *inner.done.entry((mode, command.to_owned())).or_default() += 1;
        if inner.shown.is_none_or(|shown| shown.elapsed() >= PROGRESS) {
            inner.shown = Some(Instant::now());
            let mut modes: BTreeMap<&str, u64> = BTreeMap::new();
            for ((mode, _), count) in &inner.done {
                *modes.entry(mode).or_default() += count;
            }
            let modes = modes.iter().map(|(mode, count)| format!("{mode} {count}"));
            let modes: Vec<String> = modes.collect();
            let seconds = self.began.elapsed().as_secs();
            let modes = modes.join(", ");
            eprintln!("{seconds:6} s: {modes}; findings {}", inner.findings);
        }
    }

    /// Records how long after a signal a run has ended. On a busy machine that says little, so it is shown and not judged.
    pub fn ended(&self, mode: &'static str, after: Duration) {
        self.lock().ends.entry(mode).or_default().push(after);
    }

    /// What a run said on standard error, for a reader who wants to know how often something happened.
    pub fn said(&self, mode: &'static str, command: &str, status: ExitStatus, stderr: &str) {
        let Some(line) = stderr.lines().next() else {
            return;
        };
        // Numbers, and paths from here on, differ from run to run.
        let line = line.split(" /").next().unwrap_or_default();
        let mut words: Vec<&str> = line.split(|letter: char| letter.is_ascii_digit()).collect();
        words.dedup_by(|one, other| one.is_empty() && other.is_empty());
        let text = format!("{command}, {status}: {}", words.join("#"));
        *self.lock().said.entry((mode, text)).or_default() += 1;
    }

    /// Something was found that must not be; `state` is the directory to be looked at later.
    pub fn found(&self, part: Part, kind: Kind, command: &str, what: &str, state: &Path) {
        let mut inner = self.lock();
        inner.findings += 1;
        let copy = self.directory.join(format!("{:04}", inner.findings));
        let group = inner.found.entry((part.mode, kind, command.to_owned()));
        let group = group.or_insert(Group {
            count: 0,
            first_seed: part.seed,
            first_copy: copy.clone(),
            what: what.to_owned(),
        });
        group.count += 1;
        if group.count <= COPIES {
            let mode = part.mode;
            let text = format!("{mode}, --seed {}, {command}: {kind}\n{what}\n", part.seed);
            let kept = copy_directory(state, &copy)
                .and_then(|()| fs::write(copy.join("finding.txt"), text));
            if let Err(error) = kept {
                eprintln!("soak: cannot keep {}: {error}", copy.display());
            }
        }
    }

    /// All that is wrong with one state is one finding, of the first sort that it has. Returns whether nothing is wrong.
    pub fn check(
        &self,
        part: Part,
        command: &str,
        mut wrong: Vec<(Kind, String)>,
        state: &Path,
    ) -> bool {
        wrong.sort();
        let texts: Vec<&str> = wrong.iter().map(|(_, what)| what.as_str()).collect();
        if let Some((kind, _)) = wrong.first() {
            self.found(part, *kind, command, &texts.join("\n"), state);
        }
        wrong.is_empty()
    }

    /// Prints the tables. Returns whether anything was found.
    pub fn print(&self) -> bool {
        let inner = self.lock();
        let mut text = format!("\n{:9} {:>8}  command\n", "mode", "runs");
        for ((mode, command), count) in &inner.done {
            text.push_str(&format!("{mode:9} {count:8}  {command}\n"));
        }
        for (mode, ends) in &inner.ends {
            let mut ends = ends.clone();
            ends.sort();
            let (median, longest) = (ends[ends.len() / 2], ends[ends.len() - 1]);
            text.push_str(&format!(
                "\n{mode}: the end came {median:.0?} after a signal (median), {longest:.0?} at the latest\n"
            ));
        }
        text.push_str(&format!("\n{:9} {:>8}  said\n", "mode", "times"));
        for ((mode, said), count) in &inner.said {
            text.push_str(&format!("{mode:9} {count:8}  {said}\n"));
        }
        if inner.found.is_empty() {
            text.push_str("\nnothing was found\n");
        } else {
            text.push_str(&format!(
                "\n{:9} {:9} {:>8}  command; seed and copy of the first\n",
                "mode", "found", "times"
            ));
        }
        for ((mode, kind, command), group) in &inner.found {
            let (count, seed, what) = (group.count, group.first_seed, &group.what);
            let copy = group.first_copy.display();
            text.push_str(&format!(
                "{mode:9} {kind:9} {count:8}  {command}; --seed {seed}, {copy}\n{what}\n"
            ));
        }
        // Nothing can be done for a reader that is gone.
        let _ = io::stdout().write_all(text.as_bytes());
        !inner.found.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn copy_directory(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_symlink() {
            symlink(fs::read_link(entry.path())?, to)?;
        } else if entry.file_type()?.is_dir() {
            copy_directory(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
