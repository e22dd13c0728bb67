//! What is at a path: a file, told from all others, a link that leads to nothing, or nothing.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The device and the inode of a file.
pub type Identity = (u64, u64);

/// Returns what tells a file or a directory from all others.
pub fn identity_of(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

/// Returns the directory of a file.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// Returns the path, or the nearest one above it, where something is, be it a dangling link.
pub fn nearest_place(path: &Path) -> Option<&Path> {
    let mut ancestors = path.ancestors();
    ancestors.find(|place| place.symlink_metadata().is_ok())
}

/// Whether an error says that there is nothing at a path, or a link to itself.
pub fn is_missing(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(libc::ELOOP)
}

/// Says what a link is that leads to nothing; `None` for everything else.
pub fn broken_link(path: &Path) -> Option<&'static str> {
    if !path.is_symlink() {
        return None;
    }
    match fs::metadata(path) {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => Some("a circular symbolic link"),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Some("a dangling symbolic link")
        }
        _ => None,
    }
}
