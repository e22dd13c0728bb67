//! A run under strace, which makes a system call fail or kills the run in its place, and lists the calls.

use std::collections::HashMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The system calls for files. strace ignores those that a machine does not have.
const CALLS: &str = "\
    open openat read pread64 write pwrite64 fsync fdatasync rename renameat renameat2 link linkat \
    symlink symlinkat unlink unlinkat mkdir mkdirat rmdir flock fcntl chmod fchmod fchmodat chown fchown \
    fchownat utimensat ftruncate stat lstat fstat newfstatat statx getdents64 readlink readlinkat";

/// A system call of an earlier run, by its name and its number among the calls of that name in its thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    pub number: u64,
    /// strace's line.
    pub line: String,
}

/// The path of strace, where it is there and may trace.
pub fn find() -> Option<PathBuf> {
    let path = env::split_paths(&env::var_os("PATH")?)
        .map(|directory| directory.join("strace"))
        .find(|path| path.is_file())?;
    let mut probe = Command::new(&path);
    probe.args(["-f", "-qq", "-o", "/dev/null", "/bin/sh", "-c", ":"]);
    let traced = probe.stdin(Stdio::null());
    let traced = traced.stdout(Stdio::null()).stderr(Stdio::null()).status();
    traced.is_ok_and(|status| status.success()).then_some(path)
}

/// The words that come before the program.
pub fn wrapper(strace: &Path, log: &Path, injections: &[String]) -> Vec<String> {
    let calls: Vec<String> = CALLS.split(' ').map(|call| format!("?{call}")).collect();
    let mut words = vec![strace.display().to_string()];
    words.extend(["-f", "-y", "-qq", "-s", "64", "-o"].map(str::to_owned));
    words.extend([
        log.display().to_string(),
        "-e".to_owned(),
        format!("trace={}", calls.join(",")),
    ]);
    for injection in injections {
        words.extend(["-e".to_owned(), format!("inject={injection}")]);
    }
    words
}

/// What a log shows.
#[derive(Default)]
pub struct Trace {
    /// The calls that name a file below one of the directories.
    pub calls: Vec<Call>,
    /// A call has failed that may have been about something else.
    pub missed: bool,
}

/// Reads a log: the calls that name a file below one of these directories.
pub fn read(log: &str, directories: &[PathBuf]) -> Trace {
    let directories = directories
        .iter()
        .map(|directory| directory.display().to_string());
    let directories: Vec<String> = directories.collect();
    let mut counts: HashMap<(&str, &str), u64> = HashMap::new();
    let mut trace = Trace::default();
    for line in log.lines() {
        let Some((thread, rest)) = line.split_once(' ') else {
            continue;
        };
        let rest = rest.trim_start();
        let about_state = directories.iter().any(|directory| rest.contains(directory));
        trace.missed |= rest.contains("(INJECTED)") && !about_state;
        // A call that another thread interrupted has two lines; the second names no arguments, and is not counted.
        let Some((name, _)) = rest
            .split_once('(')
            .filter(|(name, _)| CALLS.split(' ').any(|call| call == *name))
        else {
            continue;
        };
        let number = counts.entry((thread, name)).or_default();
        *number += 1;
        if about_state {
            trace.calls.push(Call {
                name: name.to_owned(),
                number: *number,
                line: rest.to_owned(),
            });
        }
    }
    trace
}
