//! The files that a pattern of `-a` names.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};

use crate::error::{Error, Kind};
use crate::output::Notes;

/// The most files that a pattern may name.
const MAX_FILES: usize = 1_000;

/// Any folders, or none.
const ANY_FOLDERS: &str = "**";

/// Hidden files need a dot in the pattern.
const OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// The regular files that a pattern names, sorted. `None`: it is no pattern, or there is a file of this name.
///
/// # Errors
/// `Input`: the pattern is malformed, or there are too many files.
pub(super) fn matches(pattern: &OsStr, notes: &Notes) -> Result<Option<Vec<PathBuf>>, Error> {
    let Some(text) = pattern.to_str().filter(|text| is_pattern(text) && !text.contains("://")) else { return Ok(None) };
    if fs::symlink_metadata(text).is_ok() {
        return Ok(None);
    }
    let wrong = |reason: &str| Error::new(Kind::Input, format!("cannot use the pattern {text}: {reason}"));
    let mut parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
    if parts.last() == Some(&ANY_FOLDERS) {
        parts.push("*");
    }
    let parts: Vec<Pattern> =
        parts.into_iter().map(Pattern::new).collect::<Result<_, _>>().map_err(|error| wrong(error.msg))?;
    let mut search = Search { found: Vec::new(), notes };
    search.enter(Path::new(if text.starts_with('/') { "/" } else { "" }), &parts, false);
    let mut found = search.found;
    found.sort_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    found.dedup();
    if found.len() > MAX_FILES {
        return Err(wrong(&format!("it names more than {MAX_FILES} files")));
    }
    Ok(Some(found))
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

struct Search<'n> {
    found: Vec<PathBuf>,
    notes: &'n Notes,
}

impl Search<'_> {
    /// Finds what the rest of a pattern names in a folder. Links are not followed `below` any folders.
    fn enter(&mut self, folder: &Path, parts: &[Pattern], below: bool) {
        let Some((part, rest)) = parts.split_first() else { return };
        let is_any = part.as_str() == ANY_FOLDERS;
        if is_any {
            self.enter(folder, rest, true);
        } else if !is_pattern(part.as_str()) {
            return self.visit(folder.join(part.as_str()), rest, below);
        }
        let place = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let entries = match fs::read_dir(place) {
            Ok(entries) => entries.flatten(),
            Err(error) => {
                if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
                    self.notes.note(&format!("{} is left out: {error}", place.display()));
                }
                return;
            }
        };
        for entry in entries {
            let (name, path) = (entry.file_name(), folder.join(entry.file_name()));
            match is_any {
                true if name.as_bytes().starts_with(b".") || !entry.file_type().is_ok_and(|kind| kind.is_dir()) => {}
                true => self.enter(&path, parts, true),
                false if !part.matches_with(&name.to_string_lossy(), OPTIONS) => {}
                false => self.visit(path, rest, below),
            }
            if self.found.len() > MAX_FILES {
                return;
            }
        }
    }

    /// Adds a file, or continues in a folder.
    fn visit(&mut self, path: PathBuf, rest: &[Pattern], below: bool) {
        if below && path.is_symlink() {
            return;
        }
        match rest.is_empty() {
            true if path.is_file() => self.found.push(path),
            true => {}
            false => self.enter(&path, rest, below),
        }
    }
}
