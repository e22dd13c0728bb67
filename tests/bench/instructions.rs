//! Counts the instructions of a program, which say more than its time where other programs are running.

use std::path::Path;
use std::process::{Command, Stdio};

/// How many instructions a command takes, as callgrind counts them; `None` without valgrind, or if the command fails.
pub fn count(command: &mut Command) -> Option<u64> {
    count_ending_with(&[0], Stdio::null(), command)
}

/// The same for a command that ends with one of these exit codes and writes to `stdout`, which may be a terminal.
pub fn count_ending_with(codes: &[i32], stdout: Stdio, command: &mut Command) -> Option<u64> {
    let directory = tempfile::tempdir().ok()?;
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
    let status = counted.stderr(Stdio::null()).status().ok()?;
    let is_expected = codes.contains(&status.code()?);
    is_expected.then(|| total(&file))?
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
