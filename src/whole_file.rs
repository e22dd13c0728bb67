//! Files that are read whole and replaced whole: a reader finds the old content or the new, and never half of one.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::mem;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

/// The most bytes of a file that q has written.
pub const MAX_FILE: u64 = 20_000_000;

/// The mode of folders for the user alone.
pub const PRIVATE: u32 = 0o700;

/// The mode of folders that others may use as far as the umask lets them.
pub const SHARED: u32 = 0o777;

/// What a file has of the mode of its folder.
const OF_FILES: u32 = 0o666;

/// The beginning of the names of temporary files. One that a killed run has left does no harm.
pub const TEMPORARY: &str = ".tmp-q-";

/// How many temporary files this process has made.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The name of the file for this text: its SHA-256 in hexadecimal digits.
pub fn name_of(text: &str) -> String {
    let mut name = String::new();
    for byte in Sha256::digest(text) {
        name.push_str(&format!("{byte:02x}"));
    }
    name
}

/// Reads a regular file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    // Opening a pipe would wait for a writer.
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.len() > limit {
        let reason = format!("it has more than {limit} bytes");
        return Err(io::Error::other(reason));
    }
    fs::read(path)
}

/// Writes a file. A folder that is missing is made, with this mode.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    make_folder(folder_of(path), mode)?;
    Temporary::write_beside(path, bytes, mode)?.replace(path)
}

/// Makes a folder, and those above it, with this mode, unless it is there.
pub fn make_folder(folder: &Path, mode: u32) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(mode).create(folder);
    made.or_cannot("make the folder", folder)
}

/// A name that an empty file holds for what will stand there. Dropping it gives the name back, unless it was used.
#[derive(Debug)]
pub struct TakenName {
    pub path: PathBuf,
}

impl TakenName {
    /// Takes a name; the error is `AlreadyExists` if something has it.
    pub fn take(path: PathBuf) -> io::Result<TakenName> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let opened = options.mode(PRIVATE & OF_FILES).open(&path);
        opened.or_cannot("write", &path)?;
        Ok(TakenName { path })
    }

    /// Says that it is used: something else has taken the place of the empty file.
    pub fn used(mut self) -> PathBuf {
        // Nothing has the empty path, so there is nothing to give back.
        mem::take(&mut self.path)
    }
}

impl Drop for TakenName {
    fn drop(&mut self) {
        // On a network file system the file may be there, though that was reported as failed.
        if fs::metadata(&self.path).is_ok_and(|metadata| metadata.len() == 0) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A file that is complete and on the disk, or a link, under a name that no reader looks for. Dropping it removes it.
#[derive(Debug)]
pub struct Temporary {
    path: PathBuf,
}

impl Temporary {
    /// A name in a file's folder that nothing else uses, even where the clock stands still.
    fn beside(path: &Path) -> Temporary {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let nanoseconds = since_1970.unwrap_or_default().as_nanos();
        let name = format!("{TEMPORARY}{}-{nanoseconds}-{count}", process::id());
        Temporary {
            path: path.with_file_name(name),
        }
    }

    /// Writes a file into the folder of another one, for those who may use a folder of this mode.
    pub fn write_beside(path: &Path, bytes: &[u8], mode: u32) -> io::Result<Temporary> {
        let temporary = Temporary::beside(path);
        let filled = temporary.fill(bytes, mode & OF_FILES);
        filled.or_cannot("write in", folder_of(path))?;
        Ok(temporary)
    }

    fn fill(&self, bytes: &[u8], mode: u32) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(mode);
        let mut file = options.open(&self.path)?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    /// Makes a link that can take the place of another, and leads to a file beside it.
    pub fn link(link: &Path, target: &Path) -> io::Result<Temporary> {
        let temporary = Temporary::beside(link);
        let name = target.file_name().unwrap_or_default();
        symlink(name, &temporary.path).or_cannot("make the link", link)?;
        Ok(temporary)
    }

    /// Changes the mode, whatever the umask is.
    pub fn set_mode(&self, permissions: fs::Permissions) -> io::Result<()> {
        fs::set_permissions(&self.path, permissions)
    }

    /// Puts it in the place of a file. On a network file system that may be done and still be reported as failed.
    pub fn replace(&self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path).or_cannot("replace", path)
    }

    /// Gives it a name that nothing else has, whatever is reported.
    pub fn create(&self, path: &Path) -> io::Result<()> {
        let renamed = self.replace(path);
        let is_done = fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0);
        if is_done { Ok(()) } else { renamed }
    }

    /// Whether it certainly was not put anywhere; it is removed then.
    pub fn discard(&self) -> bool {
        fs::remove_file(&self.path).is_ok()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        self.discard();
    }
}

/// The folder of a file.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// Says in an error what failed on which file.
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
