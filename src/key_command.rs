//! The command that tells a key, such as a password manager's: run without a shell, its first line is the key.

use std::process::{Command, Stdio};

use crate::error::Error;
use crate::secret::Secret;
use crate::settings::usable_key;

/// Runs the command and returns the key. What the command says on standard error passes through.
///
/// # Errors
/// `Settings`: it cannot be run, it failed, or what it printed is no key.
pub(crate) fn run(command: &[String]) -> Result<Secret, Error> {
    let (program, arguments) = command.split_first().ok_or_else(|| Error::settings("key_cmd names no command"))?;
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Error::settings(format!("key_cmd: cannot run {program}: {error}")))?;
    if !output.status.success() {
        return Err(Error::settings(format!("key_cmd: {program} failed ({})", output.status))
            .advise("run it by hand to see why"));
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    match printed.lines().next().map(str::trim_end).filter(|line| !line.is_empty()) {
        Some(line) => usable_key(line.to_owned(), &format!("what {program} prints")),
        None => Err(Error::settings(format!("key_cmd: {program} printed no key on its first line"))),
    }
}
