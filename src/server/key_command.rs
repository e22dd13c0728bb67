//! Runs the command that prints a key, such as a password manager's, without a shell; its first line is the key.

use std::io::{self, Read};
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::secret::Secret;
use crate::settings::usable_key;

/// The most that q reads of what the command prints.
const MAX_OUTPUT: u64 = 64 << 10;

/// Runs the command and returns the key. The command's standard error passes through.
pub fn run(command: &[String]) -> Result<Secret, Error> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Error::settings("key_cmd names no command"));
    };
    let cannot =
        |error: io::Error| Error::settings(format!("key_cmd: cannot run {program}: {error}"));
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
        let mut beginning = stdout.take(MAX_OUTPUT);
        beginning.read_to_end(&mut printed).map_err(cannot)?;
    }
    let status = child.wait().map_err(cannot)?;
    if !status.success() {
        let error = Error::settings(format!("key_cmd: {program} failed ({status})"));
        return Err(error.advise("run it by hand to see why"));
    }
    let printed = String::from_utf8_lossy(&printed);
    let key = printed.lines().next().unwrap_or_default().trim_end();
    if key.is_empty() {
        return Err(Error::settings(format!(
            "key_cmd: {program} printed no key on its first line"
        )));
    }
    usable_key(key.to_owned(), &format!("what {program} prints"))
}
