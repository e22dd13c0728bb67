//! Reads regular files, each up to a limit. A pipe or a device in the place of one is unusable, and never waited for.

use std::fmt::{self, Display, Formatter};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::text::size::in_units;
use crate::unix;

/// The most bytes of a file that q has written.
pub const MAX_FILE: u64 = 20_000_000;

/// How many bytes of a file are compared at once.
const PART: usize = 64 << 10;

/// The size of the blocks in which files are read: a limit is rounded up to whole ones.
const BLOCK: u64 = 4_096;

/// A reason why a file was not read.
#[derive(Debug)]
pub enum ReadFailure {
    /// Something is there that cannot be used: no regular file, one that is too large, or one without the expected content.
    Unusable(String),
    /// The system could not read it, perhaps because nothing is there.
    System(io::Error),
}

impl Display for ReadFailure {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        match self {
            ReadFailure::Unusable(reason) => formatter.write_str(reason),
            ReadFailure::System(error) => error.fmt(formatter),
        }
    }
}

impl From<io::Error> for ReadFailure {
    fn from(error: io::Error) -> ReadFailure {
        ReadFailure::System(error)
    }
}

impl From<ReadFailure> for io::Error {
    fn from(failure: ReadFailure) -> io::Error {
        match failure {
            ReadFailure::Unusable(reason) => io::Error::other(reason),
            ReadFailure::System(error) => error,
        }
    }
}

/// Whether a file may be behind a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    Followed,
    Refused,
}

/// Opens a regular file for reading. A pipe or a device in its place is unusable, and never waited for.
fn open_regular(path: &Path, links: Links) -> Result<(File, Metadata), ReadFailure> {
    let (found, flag) = match links {
        Links::Followed => (fs::metadata(path)?, 0),
        Links::Refused => (path.symlink_metadata()?, libc::O_NOFOLLOW),
    };
    // To open some devices has an effect.
    if !found.is_file() {
        return Err(not_regular());
    }
    let mut options = OpenOptions::new();
    // A pipe that has taken its place meanwhile would wait for a writer.
    options.read(true).custom_flags(flag | libc::O_NONBLOCK);
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok((file, metadata))
    } else {
        Err(not_regular())
    }
}

fn not_regular() -> ReadFailure {
    ReadFailure::Unusable("it is not a regular file".to_owned())
}

/// Reads a regular file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, ReadFailure> {
    read_open(open_regular(path, Links::Followed)?, limit)
}

/// Reads a regular file of the user. Whose it is, is asked of the open file: another one may take its place at any moment.
pub fn read_own(path: &Path, links: Links, limit: u64) -> Result<Vec<u8>, ReadFailure> {
    let (file, metadata) = open_regular(path, links)?;
    if metadata.uid() != unix::effective_user() {
        let reason = "it belongs to another user".to_owned();
        return Err(ReadFailure::Unusable(reason));
    }
    read_open((file, metadata), limit)
}

/// Reads an open file to its end. The size that the system reports proves nothing: some files of `/proc` have none and no end.
fn read_open((file, metadata): (File, Metadata), limit: u64) -> Result<Vec<u8>, ReadFailure> {
    let too_long =
        || ReadFailure::Unusable(format!("it has more than {size}", size = in_units(limit)));
    let size = metadata.len();
    if size > limit {
        return Err(too_long());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    // Some files of `/proc` can be read in whole blocks only.
    let blocks = (limit / BLOCK + 1) * BLOCK;
    file.take(blocks).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(too_long());
    }
    Ok(bytes)
}

/// Returns the first bytes of a regular file, at most this many, and its size as the system reports it.
pub fn read_beginning(path: &Path, count: u64) -> Result<(Vec<u8>, u64), ReadFailure> {
    let (file, metadata) = open_regular(path, Links::Followed)?;
    let mut bytes = Vec::new();
    file.take(count).read_to_end(&mut bytes)?;
    Ok((bytes, metadata.len()))
}

/// Whether a regular file has these bytes and no others. It is compared part by part, so it takes no room.
pub fn has(path: &Path, mut bytes: &[u8]) -> bool {
    let Ok((file, _)) = open_regular(path, Links::Followed) else {
        return false;
    };
    let mut reader = BufReader::with_capacity(PART, file);
    while let Ok(part) = reader.fill_buf()
        && let Some(rest) = bytes.strip_prefix(part)
    {
        let count = part.len();
        if count == 0 {
            return bytes.is_empty();
        }
        bytes = rest;
        reader.consume(count);
    }
    false
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::places::is_missing;
    use super::*;
    use crate::unix::tests::skip;

    #[test]
    fn a_file_has_its_own_bytes_and_no_others() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        for size in [0, 1, PART, PART + 1, 3 * PART] {
            let own = Vec::from_iter((0..size).map(|at| at.to_le_bytes()[0]));
            fs::write(&path, &own).expect("a file");
            assert!(has(&path, &own), "{size}");
            assert!(!has(&path, &[&own[..], b"x"].concat()), "{size}");
            if let Some((last, before)) = own.split_last() {
                assert!(!has(&path, before), "{size}");
                assert!(!has(&path, &[before, &[!last]].concat()), "{size}");
            }
        }
    }

    #[test]
    fn only_a_file_of_the_user_itself_is_read_as_one_of_the_user() {
        let directory = tempfile::tempdir().expect("a directory");
        let [own, link, other] = ["own", "link", "other"].map(|name| directory.path().join(name));
        fs::write(&own, "own").expect("a file");
        symlink(&own, &link).expect("a link");
        let found = |path: &Path| {
            let read = |links| read_own(path, links, 3).ok();
            [Links::Followed, Links::Refused].map(read)
        };
        let content = Some(b"own".to_vec());
        assert_eq!(found(&own), [content.clone(), content.clone()]);
        assert_eq!(found(&link), [content, None]);
        fs::write(&other, "four").expect("a file");
        for path in [&other, directory.path(), &directory.path().join("no")] {
            assert_eq!(found(path), [None, None], "{}", path.display());
        }
        if std::os::unix::fs::chown(&own, Some(12345), None).is_err() {
            return skip("only root can give a file away");
        }
        assert_eq!(found(&own), [None, None]);
        assert_eq!(found(&link), [None, None]);
    }

    #[test]
    fn a_link_that_takes_the_place_of_a_file_just_now_is_not_followed() {
        let directory = tempfile::tempdir().expect("a directory");
        let [own, planted, place] =
            ["own", "planted", "place"].map(|name| directory.path().join(name));
        fs::write(&planted, "planted").expect("a file");
        let swaps = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let next = directory.path().join("next");
                for _ in 0..3_000 {
                    fs::write(&own, "own").expect("a file");
                    fs::rename(&own, &place).expect("a file");
                    symlink(&planted, &next).expect("a link");
                    fs::rename(&next, &place).expect("a link");
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
            });
            while swaps.load(Ordering::Relaxed) < 3_000 {
                let read = read_own(&place, Links::Refused, 100).unwrap_or_default();
                assert!(b"own".starts_with(&read), "{read:?}");
            }
        });
    }

    #[test]
    fn a_file_is_read_up_to_its_limit_and_only_if_it_is_a_regular_one() {
        let root = tempfile::tempdir().expect("a directory");
        let file = root.path().join("file");
        fs::write(&file, "12345").expect("a file");
        let text = |found: Result<Vec<u8>, ReadFailure>| match found {
            Ok(bytes) => String::from_utf8(bytes).expect("text"),
            Err(failure) => failure.to_string(),
        };
        assert_eq!(text(read(&file, 5)), "12345");
        assert!(text(read(&file, 4)).starts_with("it has more than 4"));
        for path in [root.path(), Path::new("/dev/null")] {
            assert_eq!(text(read(path, 5)), "it is not a regular file", "{path:?}");
            let beginning = read_beginning(path, 5);
            assert!(
                matches!(beginning, Err(ReadFailure::Unusable(_))),
                "{path:?}"
            );
            assert!(!has(path, b""), "{path:?}");
        }
        let gone = read(&root.path().join("gone"), 5);
        let is_gone = matches!(gone, Err(ReadFailure::System(error)) if is_missing(&error));
        assert!(is_gone);
        for (count, beginning) in [(0, ""), (4, "1234"), (5, "12345"), (9, "12345")] {
            let (bytes, size) = read_beginning(&file, count).expect("a file");
            assert_eq!((&*bytes, size), (beginning.as_bytes(), 5));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_of_proc_without_a_size_is_read_up_to_its_limit() {
        let path = Path::new("/proc/self/status");
        assert_eq!(path.metadata().expect("it is there").len(), 0);
        let failure = read(path, 10).expect_err("it has more");
        assert!(
            failure.to_string().starts_with("it has more than 10"),
            "{failure}"
        );
        let whole = read(path, MAX_FILE).expect("a file");
        assert!(whole.starts_with(b"Name:") && whole.len() > 10);
    }
}
