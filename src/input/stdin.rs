//! Standard input: whether it is read, and whether q may have to wait for it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, IsTerminal};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::error::Error;
use crate::output::Notes;
use crate::settings::Settings;
use crate::unix;

/// The name of standard input for `-a`.
pub const STDIN: &str = "-";

/// Where the system shows what standard input is.
pub const STDIN_PATH: &str = "/dev/stdin";

/// Other paths of it.
const OTHER_PATHS: [&str; 2] = ["/dev/fd/0", "/proc/self/fd/0"];

/// Whether standard input is read, besides the files.
///
/// # Errors
/// The variable `Q_STDIN` has another value than `none`.
pub fn is_read(settings: &Settings, has_words: bool, notes: &Notes) -> Result<bool, Error> {
    let arguments = &settings.arguments;
    let is_spared = match settings.environment.get("Q_STDIN") {
        None => false,
        Some("none") => true,
        Some(other) => {
            return Err(Error::settings(format!(
                "Q_STDIN must be none, not “{other}”"
            )));
        }
    };
    // The last question is asked again unchanged, with its own input.
    if arguments.again && !has_words && arguments.attach.is_empty() {
        return Ok(false);
    }
    let is_file = arguments.attach.iter().any(|file| is_its_path(file));
    if arguments.no_stdin || is_file || io::stdin().is_terminal() {
        return Ok(false);
    }
    if !is_spared {
        return Ok(true);
    }
    // One of the files may be standard input.
    if unix::stdin_has_bytes() && !arguments.attach.iter().any(|file| is_named(file)) {
        notes.note(
            "standard input has data, which is not read because of Q_STDIN=none; use -a - to read it",
        );
    }
    Ok(false)
}

/// Whether q may have to wait for standard input, if it `is_read`, or for one of the files.
pub fn is_awaited(is_read: bool, files: &[OsString]) -> bool {
    let reads_pipe = is_read && may_wait(STDIN.as_ref());
    reads_pipe || files.iter().any(|file| may_wait(file))
}

/// Whether q may have to wait for what comes from a file of `-a`, as from a pipe.
pub fn may_wait(file: &OsStr) -> bool {
    let Ok(metadata) = fs::metadata(path_of(file)) else {
        return false;
    };
    let is_device = metadata.file_type().is_char_device();
    !metadata.is_file() && !metadata.is_dir() && !is_device
}

/// Whether `-a` means standard input by this name.
pub fn is_named(file: &OsStr) -> bool {
    file == STDIN
}

/// Whether `-a` means standard input by this name, or by a path of the system.
pub fn is_any_name(file: &OsStr) -> bool {
    is_named(file) || is_its_path(file)
}

/// Returns the path of a file of `-a`.
fn path_of(file: &OsStr) -> &OsStr {
    if is_named(file) {
        STDIN_PATH.as_ref()
    } else {
        file
    }
}

/// Whether a file is standard input by a path of the system.
fn is_its_path(file: &OsStr) -> bool {
    file == STDIN_PATH || OTHER_PATHS.iter().any(|path| file == *path)
}

/// Whether a file is a device. /dev/null is meant to be empty, whatever its name is.
pub fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_char_device())
}

/// Whether standard input is a pipe or a file, so that somebody meant to give something.
pub fn is_from_command() -> bool {
    let metadata = fs::metadata(STDIN_PATH);
    metadata.is_ok_and(|stdin| stdin.is_file() || stdin.file_type().is_fifo())
}
