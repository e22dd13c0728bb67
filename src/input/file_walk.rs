//! Walks through the entries below a directory, and behind those of its links that are followed.

use std::ffi::OsStr;
use std::path::Path;

use walkdir::{DirEntry, WalkDir};

/// A walk through the entries below a directory. A directory comes before its entries. A link comes alone: those of a directory
/// that it leads to come if it is followed, which is up to the caller, who also sees that the walk ends where links form a circle.
pub struct FileWalk {
    /// What is left of the walks below the directory and behind the links on the way to the last entry.
    parts: Vec<WalkPart>,
}

/// A part of a walk, which follows no link but the one where it may begin.
struct WalkPart {
    /// How many levels below the root of the search it begins.
    depth: usize,
    entries: walkdir::IntoIter,
}

/// An entry of a directory, which may be a link.
pub struct WalkEntry {
    entry: DirEntry,
    /// How many levels below the root of the search it is.
    pub depth: usize,
}

impl FileWalk {
    /// Begins a walk below a directory that is this many levels below the root of the search.
    pub fn below(directory: &Path, depth: usize) -> FileWalk {
        let mut walk = FileWalk { parts: Vec::new() };
        walk.begin_part(directory, depth);
        walk
    }

    /// Returns the next entry, or the error of a directory that cannot be listed.
    pub fn next(&mut self) -> Option<Result<WalkEntry, walkdir::Error>> {
        while let Some(part) = self.parts.last_mut() {
            let Some(found) = part.entries.next() else {
                self.parts.pop();
                continue;
            };
            let above = part.depth;
            return Some(found.map(|entry| WalkEntry {
                depth: above + entry.depth(),
                entry,
            }));
        }
        None
    }

    /// Goes on with the entries of the last entry, a directory or a link to one.
    pub fn enter(&mut self, last: &WalkEntry) {
        // A directory is entered unless it is skipped.
        if last.is_link() {
            self.begin_part(last.path(), last.depth);
        }
    }

    /// Leaves out the entries of the last entry, if it has any.
    pub fn skip(&mut self, last: &WalkEntry) {
        if let Some(part) = self.parts.last_mut()
            && last.entry.file_type().is_dir()
        {
            part.entries.skip_current_dir();
        }
    }

    fn begin_part(&mut self, directory: &Path, depth: usize) {
        let entries = WalkDir::new(directory).min_depth(1).into_iter();
        self.parts.push(WalkPart { depth, entries });
    }
}

impl WalkEntry {
    pub fn path(&self) -> &Path {
        self.entry.path()
    }

    pub fn name(&self) -> &OsStr {
        self.entry.file_name()
    }

    pub fn is_link(&self) -> bool {
        self.entry.path_is_symlink()
    }

    /// Whether it is a directory, or a link that leads to one.
    pub fn is_directory(&self) -> bool {
        let is_own = self.entry.file_type().is_dir();
        is_own || self.is_link() && self.path().is_dir()
    }

    /// Whether it is a regular file, or a link that leads to one.
    pub fn is_file(&self) -> bool {
        let is_own = self.entry.file_type().is_file();
        is_own || self.is_link() && self.path().is_file()
    }
}
