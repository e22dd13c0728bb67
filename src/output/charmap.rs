//! Asks the system how it encodes the locale of this process.

use std::env;
use std::io::{self, ErrorKind, IsTerminal};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::child_output::{ChildOutput, NeededOutput, OutputLimits};
use crate::programs::find_program;
use crate::text::locale::Charmap;

/// `locale` takes milliseconds, but on a busy machine seconds.
const LIMITS: OutputLimits = OutputLimits {
    needed: NeededOutput::FirstLine,
    bytes: 1_000,
    time: Some(Duration::from_secs(10)),
};

/// Asks the system. For a locale that it does not have, it names ASCII. It is not asked if neither standard output nor standard
/// error is a terminal.
pub fn charmap() -> Charmap {
    if !io::stdout().is_terminal() && !io::stderr().is_terminal() {
        return Charmap::Unknown;
    }
    let Ok(program) = find_program("locale", env::var_os("PATH").as_deref()) else {
        return Charmap::Unknown;
    };
    let mut command = Command::new(program);
    command.arg("charmap");
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let (printed, status) = match ChildOutput::of(command, &LIMITS) {
        Ok(ChildOutput::Ended(printed, status)) => (printed, status),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Charmap::Unknown,
        Ok(ChildOutput::OverLimit) | Err(_) => return Charmap::Unanswered,
    };
    let printed = String::from_utf8_lossy(&printed);
    let name = printed.trim();
    if status.code().is_none() {
        return Charmap::Unanswered;
    }
    // A program of this name may know no such word.
    if !status.success() || name.is_empty() {
        return Charmap::Unknown;
    }
    Charmap::Named(name.to_owned())
}
