//! Small files that are named by a hash, read whole, and replaced whole: a reader finds the old content or the new.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::process;
use std::time::SystemTime;

use sha2::{Digest, Sha256};

/// The most bytes of a file.
const MAX_FILE: usize = 20_000_000;

/// The modes of a file and of its folder.
#[derive(Debug, Clone, Copy)]
pub struct Modes {
    file: u32,
    folder: u32,
}

/// Others may read and change them as far as the umask lets them.
pub const SHARED: Modes = Modes {
    file: 0o666,
    folder: 0o777,
};

pub const PRIVATE: Modes = Modes {
    file: 0o600,
    folder: 0o700,
};

/// The name of the file for this text: its SHA-256 in hexadecimal digits.
pub fn name_of(text: &str) -> String {
    let mut name = String::new();
    for byte in Sha256::digest(text) {
        name.push_str(&format!("{byte:02x}"));
    }
    name
}

pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    // Opening a pipe would wait for a writer.
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.len() > MAX_FILE as u64 {
        return Err(too_large());
    }
    fs::read(path)
}

/// Makes the folder, too.
pub fn replace(path: &Path, bytes: &[u8], modes: Modes) -> io::Result<()> {
    if bytes.len() > MAX_FILE {
        return Err(too_large());
    }
    let folder = path.parent().unwrap_or(path);
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(modes.folder).create(folder)?;

    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanoseconds = since_1970.unwrap_or_default().as_nanos();
    let temporary = folder.join(format!(".tmp-q-{}-{nanoseconds}", process::id()));
    let filled = fill(&temporary, bytes, modes.file);
    let replaced = filled.and_then(|()| fs::rename(&temporary, path));
    if replaced.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    replaced
}

fn fill(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    options.open(path)?.write_all(bytes)
}

fn too_large() -> io::Error {
    io::Error::other(format!("it has more than {MAX_FILE} bytes"))
}
