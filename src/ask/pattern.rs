//! Finds the files that a pattern or a directory of `-a` names, as git sees them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use glob::{MatchOptions, Pattern};
use ignore::{DirEntry, WalkBuilder};

use crate::error::{Error, ErrorKind};
use crate::output::Notes;
use crate::text::one_line::on_one_line;
use crate::threads::lock;

/// The most files that a pattern or a directory may name.
const MAX_FILES: usize = 1_000;

/// Matches any directories, or none.
const ANY_DIRECTORIES: &str = "**";

/// As in a shell, `*` matches no slash and no hidden file.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// The regular files that a pattern or a directory names, sorted.
pub struct NamedFiles {
    pub files: Vec<PathBuf>,
    /// How many more there would be if git ignored nothing; a directory that is ignored counts as one.
    pub ignored: usize,
}

/// A search for files: which ones, and where.
#[derive(Clone)]
struct FileSearch {
    /// A directory; its own name has no part in the search. Empty for the current one.
    root: PathBuf,
    /// `None`: all files that are not hidden.
    pattern: Option<Pattern>,
    /// How many levels below the root there may be files.
    depth: usize,
    /// Whether a part of the pattern begins with a dot.
    looks_into_hidden: bool,
    /// Whether links to directories are followed, as far as the pattern has a part for each level. Below a `**` they might form a
    /// circle.
    follows_links: bool,
}

/// Returns the files that a pattern or a directory names. `None`: it is neither, but an address or the name of a file.
pub fn named_files(name: &OsStr, notes: &Notes) -> Result<Option<NamedFiles>, Error> {
    let path = Path::new(name);
    let shown = on_one_line(&name.to_string_lossy());
    let (search, what) = if path.is_dir() {
        (FileSearch::below(path), format!("take all of {shown}"))
    } else {
        match name.to_str() {
            // A dangling link is a file, too.
            Some(text) if is_pattern(text) && path.symlink_metadata().is_err() => {
                let what = format!("use the pattern {shown}");
                let search = FileSearch::from_pattern(text);
                let wrong =
                    |reason| Error::new(ErrorKind::Input, format!("cannot {what}: {reason}"));
                (search.map_err(wrong)?, what)
            }
            _ => return Ok(None),
        }
    };
    let named = search.run(notes);
    if named.files.len() > MAX_FILES {
        let error = format!("cannot {what}: it names more than {MAX_FILES} files");
        return Err(Error::new(ErrorKind::Input, error));
    }
    Ok(Some(named))
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[']) && !text.contains("://")
}

impl FileSearch {
    /// Returns a search for all files below a directory.
    fn below(directory: &Path) -> FileSearch {
        FileSearch {
            // Files in the current directory have no `./` before their names.
            root: directory
                .components()
                .filter(|part| part.as_os_str() != ".")
                .collect(),
            pattern: None,
            depth: usize::MAX,
            looks_into_hidden: false,
            follows_links: false,
        }
    }

    /// Returns a search for the files that a pattern names, in the directory that its beginning names.
    ///
    /// # Errors
    ///
    /// The reason why the pattern is wrong.
    fn from_pattern(text: &str) -> Result<FileSearch, &'static str> {
        // Shells also accept `[^a]`, which the library does not.
        let allowed = text.replace("[^", "[!");
        let mut path: PathBuf = Path::new(&allowed).components().collect();
        if path.ends_with(ANY_DIRECTORIES) {
            path.push("*");
        }
        let parts = Vec::from_iter(&path);
        let mut names = parts.iter();
        let first = names.position(|part| is_pattern(&part.to_string_lossy()));
        let (root, patterns) = parts.split_at(first.unwrap_or_default());
        let any_depth = patterns.contains(&OsStr::new(ANY_DIRECTORIES));
        let pattern = Pattern::new(&path.to_string_lossy()).map_err(|error| error.msg)?;
        Ok(FileSearch {
            root: root.iter().collect(),
            pattern: Some(pattern),
            depth: if any_depth {
                usize::MAX
            } else {
                patterns.len()
            },
            looks_into_hidden: patterns.iter().any(|part| is_hidden(part)),
            follows_links: !any_depth,
        })
    }

    /// Finds the files. What cannot be listed or read gets a note.
    fn run(self, notes: &Notes) -> NamedFiles {
        let mut root = self.root.as_path();
        if root.as_os_str().is_empty() {
            root = Path::new(".");
        }
        let mut named = NamedFiles {
            files: Vec::new(),
            ignored: 0,
        };
        // A directory that is not there has no files.
        if !root.is_dir() {
            return named;
        }
        let ignored = Arc::new(AtomicUsize::default());
        for found in self.walk(root, &ignored).build() {
            match found {
                Ok(entry) if entry.path().is_file() => {
                    named.files.push(self.shown(entry.path()).to_owned());
                }
                Ok(entry) if entry.path().is_dir() => (),
                Ok(entry) => self.note_irregular(entry.path(), notes),
                Err(error) => self.note_error(&error, notes),
            }
            if named.files.len() > MAX_FILES {
                break;
            }
        }
        named.files.sort_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
        named.ignored = ignored.load(Ordering::Relaxed);
        named
    }

    /// Makes the walk through the files that are meant and that git does not ignore, and counts those that it ignores.
    fn walk(&self, root: &Path, ignored: &Arc<AtomicUsize>) -> WalkBuilder {
        let mut walk = WalkBuilder::new(root);
        walk.hidden(false).follow_links(self.follows_links);
        // Git's rules are not applied by the walk, because it would not say how much it leaves out.
        let rules = Mutex::new(walk.build_matchers());
        walk.standard_filters(false);
        let (search, counter) = (self.clone(), Arc::clone(ignored));
        walk.filter_entry(move |entry| {
            let is_directory = entry.path().is_dir();
            if entry.depth() == 0 || !search.wants(entry, is_directory) {
                return entry.depth() == 0;
            }
            let path = search.relative(entry.path());
            let is_ignored = lock(&rules)
                .iter_mut()
                .any(|rule| rule.matched(path, is_directory).is_ignore());
            if is_ignored {
                counter.fetch_add(1, Ordering::Relaxed);
            }
            !is_ignored
        });
        walk
    }

    /// Whether a file is meant, or there may be such files below a directory.
    fn wants(&self, entry: &DirEntry, is_directory: bool) -> bool {
        if !self.follows_links && entry.path_is_symlink() {
            return false;
        }
        if is_directory {
            let is_shown = self.looks_into_hidden || !is_hidden(entry.file_name());
            return is_shown && entry.depth() < self.depth;
        }
        self.has(entry.path())
    }

    /// Whether a file of this path is meant.
    fn has(&self, path: &Path) -> bool {
        match &self.pattern {
            Some(pattern) => pattern.matches_path_with(self.shown(path), OPTIONS),
            None => !path.file_name().is_some_and(is_hidden),
        }
    }

    /// Returns a path as the pattern has it.
    fn shown<'a>(&self, path: &'a Path) -> &'a Path {
        if self.root.as_os_str().is_empty() {
            return path.strip_prefix(".").unwrap_or(path);
        }
        path
    }

    /// Returns a path as it is below the root.
    fn relative<'a>(&self, path: &'a Path) -> &'a Path {
        let shown = self.shown(path);
        shown.strip_prefix(&self.root).unwrap_or(shown)
    }

    fn note_irregular(&self, path: &Path, notes: &Notes) {
        let path = on_one_line(&self.shown(path).to_string_lossy());
        notes.note(&format!("{path} is not a regular file; skipped"));
    }

    /// Notes a directory that cannot be listed, or a dangling link. A link back to a directory above has nothing new.
    fn note_error(&self, error: &ignore::Error, notes: &Notes) {
        let Some(path) = path_of(error) else {
            return;
        };
        if path.is_symlink() {
            if self.has(path) {
                self.note_irregular(path, notes);
            }
            return;
        }
        // The error of the walk says the path in words of its own.
        if let Err(reason) = path.read_dir() {
            let path = on_one_line(&self.shown(path).to_string_lossy());
            notes.note(&format!("cannot list {path}: {reason}; skipped"));
        }
    }
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b".")
}

/// Returns where an error has arisen.
fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } => path_of(err),
        _ => None,
    }
}
