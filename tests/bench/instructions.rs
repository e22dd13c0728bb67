//! Counts the instructions of a program, which say more than its time where other programs are running.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::programs::{self, Q};
use crate::table::{self, line};

/// Whether valgrind is there. If it is not, a line of the table says that this is not measured.
pub fn can_count(what: &str) -> bool {
    let version = programs::quiet("valgrind").arg("--version").status();
    if version.is_err() {
        table::unmeasured(what, "valgrind is missing");
    }
    version.is_ok()
}

/// Prints a line with instructions: those of q next to those of the older q, if there is one.
pub fn compare(what: &str, old: Option<&Path>, count: impl Fn(&Path) -> u64, goal: &str) {
    if !can_count(what) {
        return;
    }
    let millions = |count: u64| format!("{:.1} M", count as f64 / 1e6);
    let own = count(Path::new(Q));
    let Some(old) = old else {
        println!("| {what} | {} | | | |", millions(own));
        return;
    };
    let old = count(old);
    let ratio = own as f64 / old as f64;
    line(what, &millions(own), "`Q_OLD`", &millions(old), ratio, goal);
}

/// How many instructions a command takes, as callgrind counts them.
pub fn count(command: &mut Command) -> u64 {
    count_ending_with(&[0], Stdio::null(), command)
}

/// The same for a command that ends with one of these exit codes and writes to `stdout`, which may be a terminal.
pub fn count_ending_with(codes: &[i32], stdout: Stdio, command: &mut Command) -> u64 {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("counts");
    let mut counted = Command::new("valgrind");
    counted.arg("--tool=callgrind").arg("--quiet");
    counted.arg(format!("--callgrind-out-file={}", file.display()));
    counted.arg(command.get_program()).args(command.get_args());
    // The command's environment is that of q alone.
    counted.env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        counted.env("PATH", path);
    }
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            counted.env(name, value);
        }
    }
    counted.stdin(Stdio::null()).stdout(stdout);
    let status = counted.stderr(Stdio::null()).status().expect("valgrind");
    let is_expected = status.code().is_some_and(|code| codes.contains(&code));
    assert!(is_expected, "{command:?}: {status}");
    total(&file).expect("a count")
}

/// The sum at the end of a file of callgrind.
fn total(file: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let sum = text.lines().find_map(|line| {
        let sum = line.strip_prefix("totals: ");
        sum.or_else(|| line.strip_prefix("summary: "))
    });
    sum?.split_whitespace().next()?.parse().ok()
}
