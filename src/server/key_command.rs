//! Runs the command that prints a key, such as a password manager's, without a shell; its first line is the key.

use std::process::{Command, Stdio};

use crate::error::Error;
use crate::secret::Secret;
use crate::settings::check_key;

/// Runs the command and returns the key. The command's standard error passes through.
pub fn run(command: &[String]) -> Result<Secret, Error> {
    let program = &command[0];
    let output = Command::new(program)
        .args(&command[1..])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output();
    let output = output
        .map_err(|error| Error::settings(format!("key_cmd: cannot run {program}: {error}")))?;
    let status = output.status;
    if !status.success() {
        let error = Error::settings(format!("key_cmd: {program} failed ({status})"));
        return Err(error.advise("run it by hand to see why"));
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    let key = printed.lines().next().unwrap_or_default().trim_end();
    if key.is_empty() {
        return Err(Error::settings(format!(
            "key_cmd: {program} printed no key on its first line"
        )));
    }
    let key = Secret::new(key);
    check_key(&key, &format!("what {program} prints"))?;
    Ok(key)
}
