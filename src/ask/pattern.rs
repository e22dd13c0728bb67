//! Finds the files that a pattern of `-a` names.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};

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

/// A search for the files that a pattern names.
struct Search {
    pattern: Pattern,
    /// The pattern has a `**`. Links are not followed then, because they may form a circle.
    has_any_folders: bool,
    files: Vec<PathBuf>,
    notes: Notes,
}

/// The regular files that a pattern names, sorted. `None`: it is no pattern, but an address or the name of a file.
pub fn matches(pattern: &OsStr, notes: &Notes) -> Result<Option<Vec<PathBuf>>, Error> {
    // A link that leads nowhere is a file, too.
    let exists = Path::new(pattern).symlink_metadata().is_ok();
    let text = match pattern.to_str() {
        Some(text) if is_pattern(text) && !text.contains("://") && !exists => text,
        _ => return Ok(None),
    };
    let wrong = |reason: &str| {
        let error = format!("cannot use the pattern {text}: {reason}");
        Error::new(ErrorKind::Input, error)
    };
    // Shells also accept `[^a]`, which the library does not.
    let allowed = text.replace("[^", "[!");
    let mut path: PathBuf = Path::new(&allowed).components().collect();
    if path.ends_with(ANY_FOLDERS) {
        path.push("*");
    }
    let parts = Vec::from_iter(&path);
    let mut names = parts.iter();
    let first = names.position(|part| is_pattern(&part.to_string_lossy()));
    let (folder, patterns) = parts.split_at(first.unwrap_or_default());

    let whole = path.to_string_lossy();
    let mut search = Search {
        pattern: Pattern::new(&whole).map_err(|error| wrong(error.msg))?,
        has_any_folders: patterns.contains(&OsStr::new(ANY_FOLDERS)),
        files: Vec::new(),
        notes: notes.clone(),
    };
    search.search(&PathBuf::from_iter(folder), patterns.len());
    let mut files = search.files;
    if files.len() > MAX_FILES {
        return Err(wrong(&format!("it names more than {MAX_FILES} files")));
    }
    files.sort_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    Ok(Some(files))
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

impl Search {
    /// Finds the files so many levels below a folder, with a `**` on any level.
    fn search(&mut self, folder: &Path, levels: usize) {
        if self.files.len() > MAX_FILES {
            return;
        }
        let is_current = folder.as_os_str().is_empty();
        let listed = if is_current { Path::new(".") } else { folder };
        let entries = match listed.read_dir() {
            Ok(entries) => entries,
            // A folder that is not there has no files.
            Err(_) if !listed.is_dir() => return,
            Err(error) => {
                let shown = listed.display();
                let note = format!("cannot list {shown}: {error}; it is left out");
                self.notes.note(&note);
                return;
            }
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let path = folder.join(&name);
            if self.has_any_folders && path.is_symlink() {
                continue;
            }
            if !path.is_dir() {
                self.add(path);
            } else if self.has_any_folders && !name.as_bytes().starts_with(b".") {
                self.search(&path, levels);
            } else if levels > 1 {
                self.search(&path, levels - 1);
            }
        }
    }

    /// Adds a regular file that the pattern names. Other files get a note.
    fn add(&mut self, path: PathBuf) {
        let is_named = self.pattern.matches_with(&path.to_string_lossy(), OPTIONS);
        if is_named && path.is_file() {
            self.files.push(path);
        } else if is_named {
            let path = path.display();
            let note = format!("{path} is not a regular file; it is left out");
            self.notes.note(&note);
        }
    }
}
