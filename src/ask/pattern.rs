//! Finds the files that a pattern of `-a` names.

use std::ffi::OsStr;
use std::fs::DirEntry;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern, PatternError};

use crate::error::{Error, ErrorKind};
use crate::output::Notes;

/// The most files that a pattern may name.
const MAX_FILES: usize = 1_000;

/// Stands for any folders, or none.
const ANY_FOLDERS: &str = "**";

/// As in a shell, `*` matches no slash and no hidden file.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// The regular files that a pattern names, sorted. `None`: it is no pattern, but an address or the name of a file.
pub fn matches(pattern: &OsStr, notes: &Notes) -> Result<Option<Vec<PathBuf>>, Error> {
    let Some(text) = pattern.to_str() else {
        return Ok(None);
    };
    if !is_pattern(text) || text.contains("://") || exists(Path::new(text)) {
        return Ok(None);
    }
    let wrong = |reason: &str| {
        let error = format!("cannot use the pattern {text}: {reason}");
        Error::new(ErrorKind::Input, error)
    };
    let parts = parse(text).map_err(|error| wrong(error.msg))?;
    let mut search = Search {
        files: Vec::new(),
        notes,
    };
    let root = if text.starts_with('/') { "/" } else { "" };
    search.search(root.as_ref(), &parts, false);
    let mut files = search.files;
    if files.len() > MAX_FILES {
        return Err(wrong(&format!("it names more than {MAX_FILES} files")));
    }
    files.sort_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    files.dedup();
    Ok(Some(files))
}

/// Whether there is a file, a folder or a link, even one that leads nowhere.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// The parts of a pattern between its slashes.
fn parse(text: &str) -> Result<Vec<Pattern>, PatternError> {
    let mut parts: Vec<&str> = text.split('/').collect();
    parts.retain(|part| !part.is_empty());
    if parts.last() == Some(&ANY_FOLDERS) {
        parts.push("*");
    }
    parts.dedup_by(|a, b| a == b && *a == ANY_FOLDERS);
    let mut patterns = Vec::new();
    for part in parts {
        // Shells also accept `[^a]`, which the library does not.
        let part = part.replace("[^", "[!");
        patterns.push(Pattern::new(&part)?);
    }
    Ok(patterns)
}

/// The files found so far.
struct Search<'a> {
    files: Vec<PathBuf>,
    notes: &'a Notes,
}

impl Search<'_> {
    /// Finds what the rest of a pattern names at a path. Links `below` a `**` are not followed, because they may form a
    /// circle.
    fn search(&mut self, path: &Path, parts: &[Pattern], below: bool) {
        let is_skipped = below && path.is_symlink();
        if is_skipped || self.files.len() > MAX_FILES {
            return;
        }
        let Some((part, rest)) = parts.split_first() else {
            self.add(path);
            return;
        };
        if part.as_str() == ANY_FOLDERS {
            self.search(path, rest, true);
            for entry in self.list(path, true) {
                let name = entry.file_name();
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let is_hidden = name.as_bytes().starts_with(b".");
                if is_folder && !is_hidden {
                    self.search(&path.join(name), parts, true);
                }
            }
        } else if is_pattern(part.as_str()) {
            // Below `**` the folder has been listed before, with a note if that failed.
            for entry in self.list(path, !below) {
                let name = entry.file_name();
                if part.matches_with(&name.to_string_lossy(), OPTIONS) {
                    self.search(&path.join(name), rest, below);
                }
            }
        } else {
            self.search(&path.join(part.as_str()), rest, below);
        }
    }

    /// Adds a regular file. Other files get a note, and folders are left out without one.
    fn add(&mut self, path: &Path) {
        if path.is_file() {
            self.files.push(path.to_owned());
        } else if exists(path) && !path.is_dir() {
            let path = path.display();
            let note = format!("{path} is not a regular file; it is left out");
            self.notes.note(&note);
        }
    }

    /// The entries of a folder; none where there is no folder.
    fn list(&self, path: &Path, notes_errors: bool) -> Vec<DirEntry> {
        let is_current = path.as_os_str().is_empty();
        let folder = if is_current { Path::new(".") } else { path };
        if !folder.is_dir() {
            return Vec::new();
        }
        match folder.read_dir() {
            Ok(entries) => entries.flatten().collect(),
            Err(error) => {
                if notes_errors {
                    let folder = folder.display();
                    let note = format!("cannot list {folder}: {error}; it is left out");
                    self.notes.note(&note);
                }
                Vec::new()
            }
        }
    }
}
