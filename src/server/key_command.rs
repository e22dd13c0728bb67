//! The command that prints a key, such as a password manager's. It runs without a shell, and its first line is the key.

use std::io::Read;
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::secret::Secret;
use crate::settings::usable_key;
use crate::unix;

/// The most that q reads of what the command prints.
const MAX_OUTPUT: u64 = 64 << 10;

/// Runs the command and returns the key. The command's standard error passes through.
///
/// # Errors
/// `Settings`: it cannot be run, it failed, or it printed something that is not a key.
pub(crate) fn run(command: &[String]) -> Result<Secret, Error> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| Error::settings("key_cmd names no command"))?;
    let cannot =
        |error: std::io::Error| Error::settings(format!("key_cmd: cannot run {program}: {error}"));
    // What it leaves running, such as an agent that keeps passwords, is not one of q's tool servers.
    let adopts = unix::adopt_orphans(false);
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(cannot)?;
    let mut printed = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        // The pipe closes after this, which ends a command that prints without end.
        stdout
            .take(MAX_OUTPUT)
            .read_to_end(&mut printed)
            .map_err(cannot)?;
    }
    let status = child.wait().map_err(cannot)?;
    unix::adopt_orphans(adopts);
    if !status.success() {
        return Err(
            Error::settings(format!("key_cmd: {program} failed ({status})"))
                .advise("run it by hand to see why"),
        );
    }
    let printed = String::from_utf8_lossy(&printed);
    match printed
        .lines()
        .next()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
    {
        Some(line) => usable_key(line.to_owned(), &format!("what {program} prints")),
        None => Err(Error::settings(format!(
            "key_cmd: {program} printed no key on its first line"
        ))),
    }
}
