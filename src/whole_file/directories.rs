//! Makes directories, and lists the names in them.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rustix::fs::{Dir, Mode, OFlags, open};
use rustix::io::retry_on_intr;

use super::errors::OrCannot;
use super::places::{broken_link, nearest_place};

/// The mode of directories for the user alone.
pub const PRIVATE: u32 = 0o700;

/// The mode of directories that others may use as far as the umask lets them.
pub const SHARED: u32 = 0o777;

/// Makes a directory, and those above it, with this mode, unless it is there.
pub fn make_directory(directory: &Path, mode: u32) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(mode).create(directory);
    let made = made.map_err(|error| obstacle(directory).unwrap_or(error));
    made.or_cannot("make the directory", directory)
}

/// Says what is in the place of a directory, or of one above it; `None` if that is a directory. The system's error does not name
/// it.
fn obstacle(directory: &Path) -> Option<io::Error> {
    let path = nearest_place(directory)?;
    let what = match fs::metadata(path) {
        Ok(found) if !found.is_dir() => "not a directory",
        Ok(_) => return None,
        Err(_) => broken_link(path)?,
    };
    let reason = format!("{} is {what}", path.display());
    Some(io::Error::new(ErrorKind::NotADirectory, reason))
}

/// Returns the names in a directory, at most this many. The standard library would panic where closing the directory fails.
pub fn names_in(directory: &Path, limit: usize) -> io::Result<Vec<OsString>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = retry_on_intr(|| open(directory, flags, Mode::empty()))?;
    let entries = Dir::new(opened)?;
    let mut names = Vec::new();
    for entry in entries {
        let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
        if name != "." && name != ".." {
            names.push(name);
        }
        if names.len() == limit {
            break;
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::places::is_missing;
    use super::*;

    #[test]
    fn an_error_names_the_file_or_link_in_the_place_of_a_directory() {
        let root = tempfile::tempdir().expect("a directory");
        let [file, dangling, below, circle] =
            ["file", "dangling", "below", "circle"].map(|name| root.path().join(name));
        fs::write(&file, "").expect("a file");
        symlink("nowhere", &dangling).expect("a link");
        symlink("file/a", &below).expect("a link");
        symlink("circle", &circle).expect("a link");
        for (path, what) in [
            (&file, "not a directory"),
            (&dangling, "a dangling symbolic link"),
            (&below, "a dangling symbolic link"),
            (&circle, "a circular symbolic link"),
        ] {
            for directory in [path.clone(), path.join("a"), path.join("a/b")] {
                let error = make_directory(&directory, PRIVATE).expect_err("something is there");
                let (directory, path) = (directory.display(), path.display());
                let expected = format!("cannot make the directory {directory}: {path} is {what}");
                assert_eq!(error.to_string(), expected);
            }
        }
    }

    #[test]
    fn the_names_in_a_directory_are_counted_without_itself_and_its_parent() {
        let root = tempfile::tempdir().expect("a directory");
        for name in ["a", ".b", "c"] {
            fs::write(root.path().join(name), "").expect("a file");
        }
        for (limit, count) in [(1, 1), (2, 2), (3, 3), (9, 3)] {
            let names = names_in(root.path(), limit).expect("names");
            assert_eq!(names.len(), count, "{limit}");
            assert!(!names.iter().any(|name| name == "." || name == ".."));
        }
        let error = names_in(&root.path().join("a"), 9).expect_err("a file");
        assert_eq!(error.kind(), ErrorKind::NotADirectory);
        assert!(is_missing(
            &names_in(&root.path().join("gone"), 9).expect_err("nothing")
        ));
        assert!(!is_missing(&error));
    }
}
