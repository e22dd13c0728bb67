//! Files that are read whole and replaced whole: a reader finds the old content or the new, and never half of one.

use std::ffi::OsString;
use std::fmt::{self, Display, Formatter};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{
    DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, lchown, symlink,
};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use rustix::fs::{Dir, Mode, OFlags, open};
use rustix::io::retry_on_intr;
use sha2::{Digest, Sha256};

use crate::text::size::in_units;
use crate::unix;

/// The most bytes of a file that q has written.
pub const MAX_FILE: u64 = 20_000_000;

/// How many bytes of a file are compared or written at once.
const PART: usize = 64 << 10;

/// The size of the blocks in which files are read: a limit is rounded up to whole ones.
const BLOCK: u64 = 4_096;

/// The mode of directories for the user alone.
pub const PRIVATE: u32 = 0o700;

/// The mode of directories that others may use as far as the umask lets them.
pub const SHARED: u32 = 0o777;

/// What a file has of the mode of its directory.
const OF_FILES: u32 = 0o666;

/// The beginning of the names of temporary files. One that a killed run has left does no harm.
pub const TEMPORARY: &str = ".tmp-q-";

/// All bits of a mode that can be set.
const ALL_RIGHTS: u32 = 0o7777;

/// The bits of a mode that give rights to the group.
const OF_GROUP: u32 = 0o2070;

/// How many temporary files this process has made.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Returns the name of the file for this text: its SHA-256 in hexadecimal digits.
pub fn name_of(text: &str) -> String {
    let mut name = String::new();
    for byte in Sha256::digest(text) {
        name.push_str(&format!("{byte:02x}"));
    }
    name
}

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

/// Writes a file. A directory that is missing is made, with this mode.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    make_directory(directory_of(path), mode)?;
    Temporary::write_beside(path, bytes, mode)?.replace(path)
}

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

/// Returns the path, or the nearest one above it, where something is, be it a dangling link.
pub fn nearest_place(path: &Path) -> Option<&Path> {
    let mut ancestors = path.ancestors();
    ancestors.find(|place| place.symlink_metadata().is_ok())
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

/// A file that is complete and on the disk, or a link, under a name that no reader looks for. Dropping it removes it.
#[derive(Debug)]
pub struct Temporary {
    path: PathBuf,
    /// Tells it from every other file, whatever its name is.
    identity: Identity,
}

/// The device and the inode of a file.
type Identity = (u64, u64);

impl Temporary {
    /// Returns a name in a file's directory that nothing else uses, even where the clock stands still.
    fn name_beside(path: &Path) -> PathBuf {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let nanoseconds = since_1970.unwrap_or_default().as_nanos();
        path.with_file_name(format!(
            "{TEMPORARY}{}-{nanoseconds}-{count}",
            process::id()
        ))
    }

    /// Writes a file into the directory of another one, for those who may use a directory of this mode.
    pub fn write_beside(path: &Path, bytes: &[u8], mode: u32) -> io::Result<Temporary> {
        Temporary::stream_beside(path, |file| file.write_all(bytes), mode)
    }

    /// Does the same with a file that is written piece by piece.
    pub fn stream_beside(
        path: &Path,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
        mode: u32,
    ) -> io::Result<Temporary> {
        let mut temporary = Temporary {
            path: Temporary::name_beside(path),
            identity: Identity::default(),
        };
        let filled = temporary.fill(write, mode & OF_FILES);
        filled.or_cannot("write in", directory_of(path))?;
        Ok(temporary)
    }

    fn fill(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
        mode: u32,
    ) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(mode);
        let mut buffered = BufWriter::with_capacity(PART, options.open(&self.path)?);
        write(&mut buffered)?;
        let file = buffered.into_inner()?;
        if let Err(error) = file.sync_all()
            && !is_unsupported(&error)
        {
            return Err(error);
        }
        self.identity = identity_of(&file.metadata()?);
        Ok(())
    }

    /// Makes a link that can take the place of another, and leads to a file next to it.
    pub fn link(link: &Path, target: &Path) -> io::Result<Temporary> {
        let path = Temporary::name_beside(link);
        let name = target.file_name().unwrap_or_default();
        symlink(name, &path).or_cannot("make the link", link)?;
        let mut temporary = Temporary {
            path,
            identity: Identity::default(),
        };
        let metadata = temporary.path.symlink_metadata();
        temporary.identity = identity_of(&metadata.or_cannot("make the link", link)?);
        Ok(temporary)
    }

    /// Gives it the group and the mode of a file of the same user, whatever the umask is. A group that this user cannot give it
    /// gets no rights, and no other group gets them instead.
    pub fn take_rights(&self, path: &Path, metadata: &Metadata) -> io::Result<()> {
        // This may change the mode, too.
        let has_group = lchown(&self.path, None, Some(metadata.gid())).is_ok();
        let permissions = fs::Permissions::from_mode(rights_in(metadata.mode(), has_group));
        fs::set_permissions(&self.path, permissions).or_cannot("keep the mode of", path)
    }

    /// Puts it in the place of a file. On a network file system that may be done and still be reported as failed.
    pub fn replace(&self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path).or_cannot("replace", path)
    }

    /// Gives it a name that nothing has; the error is `AlreadyExists` if something has it. It is no error if this was done and
    /// reported as failed.
    pub fn create(&self, path: &Path) -> io::Result<()> {
        let Err(error) = rename_new(&self.path, path) else {
            return Ok(());
        };
        let found = path.symlink_metadata();
        if found.is_ok_and(|found| identity_of(&found) == self.identity) {
            return Ok(());
        }
        if error.kind() == ErrorKind::AlreadyExists {
            return Err(error);
        }
        Err(error).or_cannot("write", path)
    }

    /// Whether it certainly was not put anywhere; it is removed then.
    pub fn discard(&self) -> bool {
        fs::remove_file(&self.path).is_ok()
    }
}

/// Returns the rights that a mode has, also those of the group if that is the same.
fn rights_in(mode: u32, has_group: bool) -> u32 {
    let rights = mode & ALL_RIGHTS;
    if has_group {
        rights
    } else {
        rights & !OF_GROUP
    }
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

/// Whether there is nothing at a path, or a link to itself.
pub fn is_missing(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(libc::ELOOP)
}

/// Returns what tells a file or a directory from all others.
pub fn identity_of(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

/// Renames a file or a link, and never replaces another; the error is `AlreadyExists` if there is one. File systems differ
/// in how they can do that. Where one can neither refuse to replace nor make hard links, the caller's lock keeps others away.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match unix::rename_new(from, to) {
        Err(error) if is_unsupported(&error) => {}
        renamed => return renamed,
    }
    match fs::hard_link(from, to) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(error),
        // There may be no hard links here.
        Err(_) => {}
        // If the first name stays, the sweep removes it.
        Ok(()) => {
            let _ = fs::remove_file(from);
            return Ok(());
        }
    }
    if to.symlink_metadata().is_ok() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    fs::rename(from, to)
}

/// Whether the system, or the file system, does not know a call or one of its options.
fn is_unsupported(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    // A sandbox may forbid a call that it does not know.
    let codes = [libc::ENOSYS, libc::EINVAL, libc::EOPNOTSUPP, libc::EPERM];
    error.kind() == ErrorKind::Unsupported || code.is_some_and(|code| codes.contains(&code))
}

impl Drop for Temporary {
    fn drop(&mut self) {
        self.discard();
    }
}

/// Returns the directory of a file.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// An extension of results that says in an error what failed on which file.
pub trait OrCannot<T> {
    fn or_cannot(self, action: &str, path: &Path) -> io::Result<T>;
}

impl<T> OrCannot<T> for io::Result<T> {
    fn or_cannot(self, action: &str, path: &Path) -> io::Result<T> {
        self.map_err(|error| {
            let path = path.display();
            io::Error::new(error.kind(), format!("cannot {action} {path}: {error}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unix::tests::skip;

    #[test]
    fn a_new_file_replaces_no_other_and_bytes_of_another_do_not_count_as_its_own() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("taken");
        let written = |bytes| Temporary::write_beside(&path, bytes, PRIVATE).expect("a file");
        fs::write(&path, "theirs").expect("a file");
        let temporary = written(b"own");
        let error = temporary.create(&path).expect_err("it is taken");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        // Whatever went wrong, what is there now is not the file.
        fs::remove_file(&temporary.path).expect("it was there");
        temporary.create(&path).expect_err("it is gone");
        assert_eq!(fs::read(&path).expect("a file"), b"theirs");
        // It was renamed, though that is reported as failed.
        let temporary = written(b"own");
        fs::rename(&temporary.path, &path).expect("another name");
        temporary.create(&path).expect("it is there");
        assert_eq!(fs::read(&path).expect("a file"), b"own");
        assert_eq!(fs::read_dir(directory.path()).expect("entries").count(), 1);
    }

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
    fn renaming_a_link_moves_the_link_itself_and_replaces_no_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let [link, new] = ["link", "new"].map(|name| directory.path().join(name));
        symlink("nowhere", &link).expect("a link");
        rename_new(&link, &new).expect("a new name");
        assert!(new.is_symlink() && !link.is_symlink());
        symlink("elsewhere", &link).expect("a link");
        let error = rename_new(&link, &new).expect_err("it is taken");
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_link(&new).expect("a target"), Path::new("nowhere"));
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

    #[test]
    fn a_file_is_replaced_with_the_rights_of_its_directory_and_nothing_else_is_left() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("a/b/file");
        assert_eq!(directory_of(&path), root.path().join("a/b"));
        assert_eq!(directory_of(Path::new("/")), Path::new("/"));
        for text in ["old", "new"] {
            replace(&path, text.as_bytes(), PRIVATE).expect("a file");
            assert_eq!(fs::read_to_string(&path).expect("a file"), text);
        }
        let mode = |path: &Path| path.metadata().expect("it is there").mode() & ALL_RIGHTS;
        assert_eq!(mode(&path), 0o600);
        for directory in ["a", "a/b"] {
            assert_eq!(mode(&root.path().join(directory)), 0o700, "{directory}");
        }
        let names = names_in(directory_of(&path), 10).expect("names");
        assert_eq!(names, ["file"]);
        // A write that fails leaves the old file, and no other.
        let failed = Temporary::stream_beside(&path, |_| Err(io::Error::other("no")), PRIVATE);
        let error = failed.expect_err("it failed").to_string();
        assert_eq!(
            error,
            format!("cannot write in {}: no", directory_of(&path).display())
        );
        Temporary::write_beside(&path, b"dropped", PRIVATE).expect("a file");
        assert_eq!(names_in(directory_of(&path), 10).expect("names"), ["file"]);
        assert!(has(&path, b"new"));
    }

    #[test]
    fn a_file_takes_the_rights_of_another_and_a_link_the_place_of_another() {
        let root = tempfile::tempdir().expect("a directory");
        let [file, link] = ["file", "link"].map(|name| root.path().join(name));
        fs::write(&file, "old").expect("a file");
        for mode in [0o640, 0o666, 0o400] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("a mode");
            let metadata = file.metadata().expect("it is there");
            let temporary = Temporary::write_beside(&file, b"new", PRIVATE).expect("a file");
            temporary.take_rights(&file, &metadata).expect("rights");
            temporary.replace(&file).expect("a new file");
            let found = file.metadata().expect("it is there");
            assert_eq!(found.mode() & ALL_RIGHTS, mode);
            assert_ne!(identity_of(&found), identity_of(&metadata));
        }
        for target in ["file", "other"] {
            let temporary = Temporary::link(&link, &root.path().join(target)).expect("a link");
            temporary.replace(&link).expect("another link");
            assert_eq!(fs::read_link(&link).expect("a link"), Path::new(target));
        }
        let temporary = Temporary::link(&link, &file).expect("a link");
        assert!(temporary.discard() && !temporary.discard());
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

    #[test]
    fn the_name_for_a_text_is_its_digest() {
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(name_of("abc"), digest);
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
    #[test]
    fn another_group_does_not_get_the_rights_of_the_group() {
        for (mode, with_group, without) in [
            (0o100_640, 0o640, 0o600),
            (0o100_664, 0o664, 0o604),
            (0o102_770, 0o2770, 0o700),
            (0o104_755, 0o4755, 0o4705),
        ] {
            assert_eq!(rights_in(mode, true), with_group, "{mode:o}");
            assert_eq!(rights_in(mode, false), without, "{mode:o}");
        }
    }
}
