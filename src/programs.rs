//! Finds the file of a program by its name.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where the system looks for programs if PATH is not set.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// Returns the file of a program: by its absolute path, or by its name in this PATH. Relative directories of PATH do not count,
/// because they would depend on where q is started: anybody may have put a program there.
pub fn find_program(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    let directories = if name.contains('/') {
        vec![PathBuf::new()]
    } else {
        env::split_paths(path.unwrap_or(OsStr::new(DEFAULT_PATH)))
            .filter(|directory| directory.is_absolute())
            .collect()
    };
    let mut files = directories
        .into_iter()
        .map(|directory| directory.join(name));
    files.find(|file| file.is_absolute() && is_program(file))
}

/// Whether a path is that of an executable file, once links are followed.
fn is_program(file: &Path) -> bool {
    let Ok(metadata) = fs::metadata(file) else {
        return false;
    };
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}
