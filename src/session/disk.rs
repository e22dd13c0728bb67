//! Reads the files of conversations and replaces them, so that no other program ever sees half of one.

use std::fs::{self, File, FileType, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::time::SystemTime;

use super::conversation::Conversation;
use super::format;
use super::rules::FileContent;

/// The mode of files that only their owner may read.
pub(super) const PRIVATE_FILE: u32 = 0o600;

/// The most that is read of a file, which may grow meanwhile.
const MAX_READ: u64 = format::MAX_SIZE as u64 + 1;

/// Whether q has given a file this name for a moment.
pub(super) fn is_temporary(name: &str) -> bool {
    let Some(numbers) = name.strip_prefix(TEMPORARY) else {
        return false;
    };
    numbers
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// The beginning of the names of temporary files. One that a killed run has left does no harm.
const TEMPORARY: &str = ".tmp-q-";

/// The kind of the error if a pipe, a device or a folder is in a conversation's place.
pub const NOT_REGULAR: io::ErrorKind = io::ErrorKind::InvalidInput;

/// Reads what is at a path. A link that leads nowhere is nothing. An error means that the content is unknown.
pub(super) fn read(path: &Path) -> io::Result<FileContent> {
    read_again(path, None)
}

/// Reads what is at a path. A file that still has the bytes of a known conversation is not parsed again.
pub(super) fn read_again(path: &Path, known: Option<&Conversation>) -> io::Result<FileContent> {
    let Some(metadata) = metadata(path)? else {
        return Ok(FileContent::Nothing);
    };
    read_of(path, metadata.file_type(), metadata.len(), known)
}

/// The same, where its kind and size are known.
pub(super) fn read_of(
    path: &Path,
    kind: FileType,
    size: u64,
    known: Option<&Conversation>,
) -> io::Result<FileContent> {
    // Opening a pipe would wait for a writer.
    if !kind.is_file() {
        return Err(not_regular(path));
    }
    if let Err(too_large) = format::check_size(size) {
        return Ok(FileContent::Unusable(too_large));
    }
    let mut bytes = Vec::with_capacity(size as usize + 1);
    let opened = File::open(path);
    match opened.and_then(|file| file.take(MAX_READ).read_to_end(&mut bytes)) {
        // Another q may have removed it just now.
        Err(error) if is_missing(&error) => return Ok(FileContent::Nothing),
        read => _ = read.or_cannot("read", path)?,
    }
    if let Some(known) = known
        && known.source.as_deref() == Some(&bytes)
    {
        return Ok(FileContent::Conversation(known.clone()));
    }
    match format::read(&bytes) {
        Ok(mut conversation) => {
            conversation.source = Some(Arc::new(bytes));
            Ok(FileContent::Conversation(conversation))
        }
        Err(reason) => Ok(FileContent::Unusable(reason)),
    }
}

/// The metadata of what a path leads to; `None` if there is nothing.
pub(super) fn metadata(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::metadata(path) {
        Err(error) if is_missing(&error) => Ok(None),
        found => found.or_cannot("look at", path).map(Some),
    }
}

/// The error for a pipe, a device or a folder in a conversation's place.
pub(super) fn not_regular(path: &Path) -> io::Error {
    let reason = format!("{} is not a regular file", path.display());
    io::Error::new(NOT_REGULAR, reason)
}

/// Whether there is nothing at a path, or a link to itself.
fn is_missing(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ELOOP)
}

/// Takes a name that must be free, else the error is `AlreadyExists`. The empty file makes it safe without a lock.
pub(super) fn reserve(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(PRIVATE_FILE);
    options.open(path).or_cannot("write", path)?;
    Ok(())
}

/// A file that is complete and on the disk, or a link, under a name that no reader looks for. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Temporary {
    path: PathBuf,
}

impl Temporary {
    /// A name in a folder that no other process uses.
    fn new(folder: &Path) -> Temporary {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let nanoseconds = since_1970.unwrap_or_default().as_nanos();
        Temporary {
            path: folder.join(format!("{TEMPORARY}{}-{nanoseconds}", process::id())),
        }
    }

    /// Writes a file into the folder of another one.
    pub fn write_beside(path: &Path, bytes: &[u8], mode: u32) -> io::Result<Temporary> {
        let folder = folder_of(path);
        let temporary = Temporary::new(folder);
        temporary.fill(bytes, mode).or_cannot("write in", folder)?;
        Ok(temporary)
    }

    /// Makes a link that can take the place of another, and leads to a file beside it.
    pub fn link(link: &Path, target: &Path) -> io::Result<Temporary> {
        let temporary = Temporary::new(folder_of(link));
        let name = target.file_name().unwrap_or_default();
        symlink(name, &temporary.path).or_cannot("make the link", link)?;
        Ok(temporary)
    }

    fn fill(&self, bytes: &[u8], mode: u32) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(mode);
        let mut file = options.open(&self.path)?;
        file.write_all(bytes)?;
        // The umask may have removed bits of the mode.
        file.set_permissions(Permissions::from_mode(mode))?;
        file.sync_all()
    }

    /// Puts it in the place of a file, which a reader finds either old or new. On a network file system that may be done
    /// and still be reported as failed.
    pub fn replace(&self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path).or_cannot("replace", path)
    }

    /// Whether it certainly was not put anywhere; it is removed then.
    pub fn discard(&self) -> bool {
        fs::remove_file(&self.path).is_ok()
    }

    /// Gives it a name that is free, or reserved for it.
    pub fn create(&self, path: &Path) -> io::Result<()> {
        let Err(error) = self.replace(path) else {
            return Ok(());
        };
        let is_unused = self.discard();
        if !is_unused && fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0) {
            return Ok(());
        }
        release(path);
        Err(error)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        self.discard();
    }
}

/// The folder of a file.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// Gives up a name that was reserved, unless something has got it.
pub(super) fn release(reserved: &Path) {
    if fs::metadata(reserved).is_ok_and(|metadata| metadata.len() == 0) {
        let _ = fs::remove_file(reserved);
    }
}

/// Deletes a file or a link. Returns whether it existed.
pub(super) fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Err(error) if is_missing(&error) => Ok(false),
        removed => removed.or_cannot("remove", path).map(|()| true),
    }
}

/// Says in an error what failed on which file.
pub(super) trait OrCannot<T> {
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
