//! Reads a file that may say what git ignores, within a limit, or says why it cannot be used.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::error::{self, Error};
use crate::text::one_line::on_one_line;
use crate::whole_file::{self, identity_of, is_missing};

/// Reads a file; nothing where git reads nothing: where no file is, or a directory or the null device.
pub fn read_if_any(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    match fs::metadata(path) {
        Err(error) if is_missing(&error) || error.kind() == ErrorKind::NotADirectory => {
            return Ok(Vec::new());
        }
        // Where nothing can be looked at, nothing is sent of a walk, and git does without its own files.
        Err(_) if path.symlink_metadata().is_err() => return Ok(Vec::new()),
        Ok(found) if found.is_dir() || is_null(&found) => return Ok(Vec::new()),
        _ => {}
    }
    whole_file::read(path, limit).map_err(|reason| unusable(path, &reason.to_string()))
}

fn is_null(found: &Metadata) -> bool {
    let null: io::Result<Metadata> = fs::metadata("/dev/null");
    null.is_ok_and(|null| identity_of(&null) == identity_of(found))
}

/// Returns the error for a file that may say what git ignores.
pub fn unusable(path: &Path, reason: &str) -> Error {
    let below = path.strip_prefix(".").ok();
    // The current directory itself has no other name.
    let path = below
        .filter(|below| !below.as_os_str().is_empty())
        .unwrap_or(path);
    let path = on_one_line(&path.to_string_lossy());
    let message = format!("cannot tell which files git ignores: {path}: {reason}");
    let advice = "name the files, each after -a, or replace the file that says what to ignore";
    Error::new(error::ErrorKind::Input, message).advise(advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn an_error_has_the_path_as_it_was_typed() {
        let table = r"
            . | .
            ./ | .
            ./a/b | a/b
            a | a
            /a | /a
            .a | .a
        ";
        for [path, shown] in rows(table) {
            let error = unusable(Path::new(path).components().as_path(), "no");
            let expected = format!("cannot tell which files git ignores: {shown}: no");
            assert_eq!(error.message, expected, "{path}");
        }
    }
}
