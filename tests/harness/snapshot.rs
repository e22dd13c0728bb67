//! Everything below a directory at a moment, to see what has changed since.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Everything below a directory. Where nothing has changed since, nothing was written.
pub struct Snapshot {
    directory: PathBuf,
    entries: BTreeMap<PathBuf, Entry>,
}

/// All of an entry that a write could change.
#[derive(PartialEq, Eq)]
struct Entry {
    mode: u32,
    inode: u64,
    modified: (i64, i64),
    /// Of a link its target; pipes, devices and directories have none.
    bytes: Vec<u8>,
}

/// What is below a directory now; nothing where it does not exist.
pub fn snapshot(directory: impl AsRef<Path>) -> Snapshot {
    let directory = directory.as_ref().to_owned();
    let mut entries = BTreeMap::new();
    let mut directories = vec![directory.clone()];
    while let Some(next) = directories.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            let metadata = path.symlink_metadata().expect("what an entry is");
            let bytes = match metadata.file_type() {
                kind if kind.is_file() => fs::read(&path).unwrap_or_default(),
                kind if kind.is_symlink() => fs::read_link(&path)
                    .expect("a link's target")
                    .as_os_str()
                    .as_bytes()
                    .to_vec(),
                _ => Vec::new(),
            };
            let modified = (metadata.mtime(), metadata.mtime_nsec());
            let entry = Entry {
                mode: metadata.mode(),
                inode: metadata.ino(),
                modified,
                bytes,
            };
            let name = path
                .strip_prefix(&directory)
                .expect("a path below the directory");
            if metadata.is_dir() {
                entries.insert(name.join(""), entry);
                directories.push(path);
            } else {
                entries.insert(name.to_owned(), entry);
            }
        }
    }
    Snapshot { directory, entries }
}

impl Snapshot {
    /// What has changed below the directory: `+ new`, `- gone` and `~ changed`, in this order; directories end in a slash.
    pub fn changes(&self) -> Vec<String> {
        let now = snapshot(&self.directory).entries;
        let new = now.keys().filter(|path| !self.entries.contains_key(*path));
        let new = new.map(|path| ("+", path));
        let gone = self.entries.keys().filter(|path| !now.contains_key(*path));
        let gone = gone.map(|path| ("-", path));
        let differs = |path: &&PathBuf| {
            now.get(*path)
                .is_some_and(|entry| *entry != self.entries[*path])
        };
        let changed = self.entries.keys().filter(differs).map(|path| ("~", path));
        new.chain(gone)
            .chain(changed)
            .map(|(sign, path)| format!("{sign} {}", path.display()))
            .collect()
    }

    #[track_caller]
    pub fn expect_unchanged(&self) {
        let changes = self.changes();
        assert!(
            changes.is_empty(),
            "expected no change below {}, but:\n{changes:#?}",
            self.directory.display()
        );
    }

    /// Path, mode and bytes of every entry: what a backup brings back.
    #[allow(dead_code, reason = "comparisons of transcripts need it")]
    pub fn contents(self) -> Vec<(PathBuf, u32, Vec<u8>)> {
        let entries = self.entries.into_iter();
        let contents = entries.map(|(path, entry)| (path, entry.mode, entry.bytes));
        contents.collect()
    }
}

impl Debug for Snapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |entry: &Entry| format!("{:o} {} bytes", entry.mode, entry.bytes.len());
        formatter
            .debug_map()
            .entries(
                self.entries
                    .iter()
                    .map(|(path, entry)| (path, shown(entry))),
            )
            .finish()
    }
}
