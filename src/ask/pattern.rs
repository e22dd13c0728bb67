//! Finds the files that a pattern of `-a` names.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};

use crate::error::{Error, ErrorKind};
use crate::output::Notes;

/// The most files that a pattern may name.
const MAX_FILES: usize = 1_000;

/// Any folders, or none.
const ANY_FOLDERS: &str = "**";

/// Hidden files need a dot in the pattern.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// The regular files that a pattern names, sorted. `None`: it is no pattern, or there is a file of this name.
///
/// # Errors
/// `Input`: the pattern is malformed, or there are too many files.
pub(super) fn matches(pattern: &OsStr, notes: &Notes) -> Result<Option<Vec<PathBuf>>, Error> {
    let is_meant = |text: &&str| {
        is_pattern(text) && !text.contains("://") && Path::new(text).symlink_metadata().is_err()
    };
    let Some(text) = pattern.to_str().filter(is_meant) else {
        return Ok(None);
    };
    let wrong = |reason: &str| {
        Error::new(
            ErrorKind::Input,
            format!("cannot use the pattern {text}: {reason}"),
        )
    };
    let mut parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
    if parts.last() == Some(&ANY_FOLDERS) {
        parts.push("*");
    }
    parts.dedup_by(|a, b| a == b && *a == ANY_FOLDERS);
    // Shells know both signs for “none of these”.
    let parts = parts
        .into_iter()
        .map(|part| Pattern::new(&part.replace("[^", "[!")));
    let parts: Vec<Pattern> = parts
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(error.msg))?;
    let mut found = Vec::new();
    search(
        Path::new(if text.starts_with('/') { "/" } else { "" }),
        &parts,
        false,
        &mut found,
        notes,
    );
    if found.len() > MAX_FILES {
        return Err(wrong(&format!("it names more than {MAX_FILES} files")));
    }
    found.sort_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    found.dedup();
    Ok(Some(found))
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Finds what the rest of a pattern names at a path. `below` a `**`, links are not followed.
fn search(path: &Path, parts: &[Pattern], below: bool, found: &mut Vec<PathBuf>, notes: &Notes) {
    if found.len() > MAX_FILES || (below && path.is_symlink()) {
        return;
    }
    let Some((part, rest)) = parts.split_first() else {
        match path.symlink_metadata() {
            Ok(_) if path.is_file() => found.push(path.to_owned()),
            Ok(_) if !path.is_dir() => {
                notes.note(&format!(
                    "{} is not a regular file; it is left out",
                    path.display()
                ));
            }
            _ => {}
        }
        return;
    };
    let is_any = part.as_str() == ANY_FOLDERS;
    if is_any {
        search(path, rest, true, found, notes);
    } else if !is_pattern(part.as_str()) {
        return search(&path.join(part.as_str()), rest, below, found, notes);
    }
    let folder = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    if !folder.is_dir() {
        return;
    }
    let entries = folder.read_dir().map_err(|error| {
        // Below `**` each folder is listed again for the next part.
        if is_any || !below {
            notes.note(&format!(
                "cannot list {}: {error}; it is left out",
                folder.display()
            ));
        }
    });
    for entry in entries.into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_hidden = name.as_bytes().starts_with(b".");
        match is_any {
            true if !is_hidden && entry.file_type().is_ok_and(|kind| kind.is_dir()) => {
                search(&path.join(name), parts, true, found, notes);
            }
            false if part.matches_with(&name.to_string_lossy(), OPTIONS) => {
                search(&path.join(name), rest, below, found, notes);
            }
            _ => {}
        }
    }
}
