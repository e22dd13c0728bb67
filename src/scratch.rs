//! Temporary directories of confined programs: each is locked as long as its program may run, and removed whatever that has
//! made of it.

use std::ffi::CStr;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::whole_file::{OrCannot, PRIVATE, make_directory};

/// How long removing one may take. What is left then is removed by the daily sweep.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(10);

/// How often to look for a name that no other process takes.
const ATTEMPTS: usize = 100;

/// How many of these directories, and of those moved out of them, this process has named.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A temporary directory. Dropping it removes it.
#[derive(Debug)]
pub struct Scratch {
    pub path: PathBuf,
    /// The directory itself. It is locked, so that another q does not sweep it.
    directory: File,
}

impl Scratch {
    /// Makes a directory in this directory, which is made, too.
    pub fn create(directory: &Path) -> io::Result<Scratch> {
        Scratch::create_with(directory, |path| File::open(path))
    }

    fn create_with(
        directory: &Path,
        open: impl Fn(&Path) -> io::Result<File>,
    ) -> io::Result<Scratch> {
        make_directory(directory, PRIVATE)?;
        for _ in 0..ATTEMPTS {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = directory.join(format!("{}-{number}", process::id()));
            match DirBuilder::new().mode(PRIVATE).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made.or_cannot("make the directory", &path)?,
            }
            // Until it is locked, another q may sweep it.
            let opened = match open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    let _ = fs::remove_dir(&path);
                    return Err(error).or_cannot("open the directory", &path);
                }
                Ok(opened) => opened,
            };
            match opened.try_lock() {
                Err(fs::TryLockError::WouldBlock) => continue,
                // Where there are no locks, no q sweeps it.
                Ok(()) | Err(fs::TryLockError::Error(_)) => (),
            }
            if is_at(&opened, &path) {
                return Ok(Scratch {
                    path,
                    directory: opened,
                });
            }
        }
        let none_left = Err(io::ErrorKind::AlreadyExists.into());
        none_left.or_cannot("make a directory in", directory)
    }

    /// Removes it as far as this time allows.
    pub fn remove_within(self, timeout: Duration) {
        remove(&self.path, &self.directory, timeout);
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path, &self.directory, REMOVAL_TIMEOUT);
    }
}

/// Removes the directories in a directory that no running q has locked.
pub fn sweep(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_own = |byte: &u8| byte.is_ascii_digit() || *byte == b'-';
        if !name.as_encoded_bytes().iter().all(is_own) {
            continue;
        }
        let path = entry.path();
        let found = openat(CWD, &path, FOUND, Mode::empty());
        let Ok(opened) = found.and_then(|found| readable(&found)) else {
            continue;
        };
        let opened = File::from(opened);
        if opened.try_lock().is_ok() {
            remove(&path, &opened, REMOVAL_TIMEOUT);
        }
    }
}

/// Whether a directory that is open is the one at a path.
fn is_at(directory: &File, path: &Path) -> bool {
    let (Ok(open), Ok(there)) = (directory.metadata(), fs::symlink_metadata(path)) else {
        return false;
    };
    (open.dev(), open.ino()) == (there.dev(), there.ino())
}

/// Finds a directory that cannot be read perhaps.
#[cfg(target_os = "linux")]
const FOUND: OFlags = DIRECTORY.union(OFlags::PATH);
#[cfg(not(target_os = "linux"))]
const FOUND: OFlags = DIRECTORY;

/// Opens a directory, and never what a link leads to.
const DIRECTORY: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens a directory for reading that was found. Its program may have taken the right to do so.
fn readable(found: &OwnedFd) -> Result<OwnedFd, Errno> {
    // The number leads to the directory itself, whatever has its name now.
    let own = PathBuf::from(format!("/proc/self/fd/{}", found.as_raw_fd()));
    let _ = fs::set_permissions(own, fs::Permissions::from_mode(PRIVATE));
    openat(found, c".", DIRECTORY | OFlags::RDONLY, Mode::empty())
}

/// Removes a directory with all that is in it, as far as this time allows. What cannot be removed stays.
fn remove(path: &Path, directory: &File, timeout: Duration) {
    if !is_at(directory, path) {
        return;
    }
    let _ = directory.set_permissions(fs::Permissions::from_mode(PRIVATE));
    let deadline = Instant::now() + timeout;
    while let Ok(true) = remove_entries(directory, deadline) {}
    let _ = unlinkat(CWD, path, AtFlags::REMOVEDIR);
}

/// Removes what is in a directory. What is in directories below it moves up, so that no depth takes more memory or open files.
/// Returns whether there was anything.
fn remove_entries(directory: &File, deadline: Instant) -> io::Result<bool> {
    let mut had_any = false;
    let mut has_removed_any = false;
    for name in entries_of(directory)? {
        let name = name?;
        let name = name.as_c_str();
        if Instant::now() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        had_any = true;
        has_removed_any |= unlinkat(directory, name, AtFlags::empty()).is_ok()
            || remove_directory(directory, name, deadline).is_ok();
    }
    if had_any && !has_removed_any {
        return Err(io::ErrorKind::DirectoryNotEmpty.into());
    }
    Ok(had_any)
}

/// Removes a directory in another one, after removing its files and moving its directories up.
fn remove_directory(parent: &File, name: &CStr, deadline: Instant) -> io::Result<()> {
    let found = openat(parent, name, FOUND, Mode::empty())?;
    let directory = readable(&found)?;
    for entry in entries_of(&directory)? {
        let entry = entry?;
        let entry = entry.as_c_str();
        if Instant::now() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if unlinkat(&directory, entry, AtFlags::empty()).is_ok() {
            continue;
        }
        let inner = openat(&directory, entry, FOUND, Mode::empty())?;
        // A directory that cannot be written cannot move either.
        let _ = readable(&inner);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let new_name = format!(".q-{}-{number}", process::id());
        renameat(&directory, entry, parent, new_name)?;
    }
    unlinkat(parent, name, AtFlags::REMOVEDIR)?;
    Ok(())
}

/// Returns the names in a directory.
fn entries_of(
    directory: impl AsFd,
) -> io::Result<impl Iterator<Item = io::Result<std::ffi::CString>>> {
    let entries = Dir::read_from(directory)?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_owned()));
    Ok(names.filter(|name| !name.as_ref().is_ok_and(|name| is_dots(name))))
}

fn is_dots(name: &CStr) -> bool {
    name == c"." || name == c".."
}

#[cfg(test)]
mod tests {
    use std::cell::{OnceCell, RefCell};

    use super::*;

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        // No user makes anything there, and where it is missing, nobody makes it either.
        let error = Scratch::create(Path::new("/proc/self")).expect_err("it takes no directory");
        let error = error.to_string();
        assert!(
            error.starts_with("cannot make the directory /proc/self"),
            "{error}"
        );
    }

    #[test]
    fn a_directory_that_is_swept_meanwhile_is_made_again_and_one_that_cannot_be_opened_is_removed()
    {
        // What becomes of the first directory, the error if there is one, and how many directories there are in the end.
        for (first, error, left) in [
            ("opened", "", 1),
            ("swept", "", 1),
            ("swept later", "", 1),
            // Who has locked it removes it.
            ("locked", "", 2),
            ("too many files", "cannot open the directory ROOT/NAME: ", 0),
        ] {
            let root = tempfile::tempdir().expect("a directory");
            let root = root.path();
            let opened = RefCell::new(Vec::new());
            let lock = OnceCell::new();
            let created = Scratch::create_with(root, |path| {
                opened.borrow_mut().push(path.to_owned());
                let file = File::open(path);
                if opened.borrow().len() > 1 {
                    return file;
                }
                match first {
                    "swept" => {
                        fs::remove_dir(path).expect("a directory");
                        return File::open(path);
                    }
                    "swept later" => fs::remove_dir(path).expect("a directory"),
                    "locked" => {
                        let other = lock.get_or_init(|| File::open(path).expect("a directory"));
                        other.try_lock().expect("nobody has it");
                    }
                    "too many files" => return Err(Errno::MFILE.into()),
                    _ => (),
                }
                file
            });
            let opened = opened.into_inner();
            match &created {
                Ok(scratch) => assert_eq!(opened.last(), Some(&scratch.path), "{first}"),
                Err(found) => {
                    let name = opened[0].file_name().expect("a name").to_string_lossy();
                    let found = found.to_string().replace(&*name, "NAME");
                    let found = found.replace(&*root.to_string_lossy(), "ROOT");
                    assert!(!error.is_empty() && found.starts_with(error), "{found}");
                }
            }
            assert_eq!(created.is_ok(), error.is_empty(), "{first}");
            assert_eq!(
                fs::read_dir(root).expect("entries").count(),
                left,
                "{first}"
            );
        }
    }

    #[test]
    fn a_directory_is_removed_only_while_it_is_the_one_at_its_path() {
        // What a program has made of the path of its directory, whether the directory is still there, and what of it and of the
        // directory in its place is left in the end.
        for (made, is_there, left) in [
            ("nothing", true, ""),
            ("it is gone", false, "elsewhere/file"),
            ("another one", false, "elsewhere/file own/file"),
            ("a link to it", false, "elsewhere/file own/file"),
            (
                "a link to another one",
                false,
                "elsewhere/file other/file own/file",
            ),
            ("a file", false, "elsewhere/file own"),
        ] {
            let root = tempfile::tempdir().expect("a directory");
            let root = root.path();
            let mut scratch = Scratch::create(root).expect("a directory");
            // A name that is the same in each run.
            let [own, elsewhere, other] = ["own", "elsewhere", "other"].map(|name| root.join(name));
            fs::rename(&scratch.path, &own).expect("a move");
            scratch.path.clone_from(&own);
            fs::write(own.join("file"), "").expect("a file");
            if made != "nothing" {
                fs::rename(&own, &elsewhere).expect("a move");
            }
            match made {
                "another one" => {
                    fs::create_dir(&own).expect("a directory");
                    fs::write(own.join("file"), "").expect("a file");
                }
                "a link to it" => std::os::unix::fs::symlink(&elsewhere, &own).expect("a link"),
                "a link to another one" => {
                    fs::create_dir(&other).expect("a directory");
                    fs::write(other.join("file"), "").expect("a file");
                    std::os::unix::fs::symlink(&other, &own).expect("a link");
                }
                "a file" => fs::write(&own, "").expect("a file"),
                _ => (),
            }
            assert_eq!(is_at(&scratch.directory, &scratch.path), is_there, "{made}");
            drop(scratch);
            let mut found = Vec::new();
            for name in ["elsewhere/file", "other/file", "own/file", "own"] {
                let is_file = fs::metadata(root.join(name)).is_ok_and(|found| found.is_file());
                found.extend(is_file.then_some(name));
            }
            assert_eq!(found.join(" "), left, "{made}");
            assert_eq!(
                own.symlink_metadata().is_ok(),
                left.contains("own"),
                "{made}"
            );
        }
    }
    #[test]
    fn the_sweep_removes_what_no_running_q_has_and_nothing_else() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        let used = Scratch::create(root).expect("a directory");
        let used_name = used.path.file_name().expect("a name").to_owned();
        for directory in ["1-0", "1-1/deep/er", "other", "1-a", "elsewhere"] {
            fs::create_dir_all(root.join(directory)).expect("a directory");
            fs::write(root.join(directory).join("file"), "").expect("a file");
        }
        fs::write(root.join("1-2"), "").expect("a file");
        std::os::unix::fs::symlink("elsewhere", root.join("1-3")).expect("a link");
        sweep(root);
        let names = fs::read_dir(root).expect("a directory");
        let mut names = Vec::from_iter(names.flatten().map(|entry| entry.file_name()));
        names.sort();
        let mut expected = ["1-2", "1-3", "1-a", "elsewhere", "other"]
            .map(Into::into)
            .to_vec();
        expected.push(used_name.clone());
        expected.sort();
        assert_eq!(names, expected);
        assert!(root.join("elsewhere/file").is_file());
        drop(used);
        assert!(!root.join(used_name).exists());
        sweep(&root.join("gone"));
    }
}
