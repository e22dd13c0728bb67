//! Replaces files whole: a reader finds the old content or the new, and never half of one.

use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use super::directories::make_directory;
use super::errors::OrCannot;
use super::places::{Identity, directory_of, identity_of};
use crate::unix;

/// The beginning of the names of temporary files. One that a killed run has left does no harm.
pub const TEMPORARY: &str = ".tmp-q-";

/// What a file has of the mode of its directory.
const OF_FILES: u32 = 0o666;

/// All bits of a mode that can be set.
const ALL_RIGHTS: u32 = 0o7777;

/// The bits of a mode that give rights to the group.
const OF_GROUP: u32 = 0o2070;

/// How many bytes of a file are written at once.
const PART: usize = 64 << 10;

/// How many temporary files this process has made.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Writes a file. A directory that is missing is made, with this mode.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    make_directory(directory_of(path), mode)?;
    Temporary::write_beside(path, bytes, mode)?.replace(path)
}

/// A file that is complete and on the disk, or a link, under a name that no reader looks for. Dropping it removes it.
#[derive(Debug)]
pub struct Temporary {
    path: PathBuf,
    /// Tells it from every other file, whatever its name is.
    identity: Identity,
}

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

impl Drop for Temporary {
    fn drop(&mut self) {
        self.discard();
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

#[cfg(test)]
mod tests {
    use super::super::directories::{PRIVATE, names_in};
    use super::super::reading::has;
    use super::*;

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
