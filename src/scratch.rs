//! Temporary directories of confined programs: each is locked as long as its program may run, and removed whatever that has
//! made of it.

use std::collections::hash_map::RandomState;
use std::ffi::{CStr, OsStr};
use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{
    Access, AtFlags, CWD, Dir, Mode, OFlags, accessat, fstat, openat, renameat, unlinkat,
};
use rustix::io::Errno;

use crate::unix::effective_user;
use crate::whole_file::{OrCannot, PRIVATE, identity_of, make_directory, nearest_place};

/// How long removing one may take. What is left then is removed by the daily sweep.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(10);

/// How often to look for a name that no other process takes.
const ATTEMPTS: usize = 100;

/// How a name begins that nobody can know before, and how many digits follow. It is longer than q's own name, because the sweep
/// removes what has such a name, among the files of other programs.
const RANDOM_PREFIX: &str = "q-confined-";
const RANDOM_DIGITS: usize = 16;

/// How many of these directories, and of those moved out of them, this process has named.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The places where temporary directories are made.
#[derive(Debug, Clone)]
pub struct ScratchPlaces {
    /// The directory of q's own; `None` without a home.
    own: Option<PathBuf>,
    /// The system's directory for temporary files, for where none of q's own can be made.
    common: PathBuf,
}

impl ScratchPlaces {
    /// Returns the places of a q with this cache directory, and with the value of `TMPDIR`.
    pub fn new(cache: Option<&Path>, common: Option<&OsStr>) -> ScratchPlaces {
        let common = common.map(Path::new).filter(|path| path.is_absolute());
        ScratchPlaces {
            own: cache.map(|cache| cache.join("tmp")),
            common: common.unwrap_or(Path::new("/tmp")).to_owned(),
        }
    }

    /// Makes a directory in the first place that takes one.
    pub fn create(&self) -> io::Result<Scratch> {
        let mut reasons = Vec::new();
        if let Some(own) = &self.own {
            match Scratch::create(own) {
                Ok(scratch) => return Ok(scratch),
                Err(error) => reasons.push(error.to_string()),
            }
        }
        self.create_apart().map_err(|error| {
            reasons.push(error.to_string());
            io::Error::other(reasons.join("; "))
        })
    }

    /// Makes a directory among the files of others, under a name that nobody can know before. What has the name already is left
    /// alone, be it a link.
    fn create_apart(&self) -> io::Result<Scratch> {
        let directory = safe_directory(&self.common)?;
        Scratch::create_with(&directory, random)
    }

    /// Removes the directories that no running q has locked, as those of a q that was killed.
    pub fn sweep(&self) {
        if let Some(own) = &self.own {
            sweep(own, is_numbered);
        }
        // In any other directory q has made none, and names may change while they are looked at.
        if let Ok(common) = safe_directory(&self.common) {
            sweep(&common, is_random);
        }
    }

    /// Returns why neither place takes a directory, as far as that can be told without making one.
    pub fn obstacle(&self) -> Option<String> {
        let mut reasons = Vec::new();
        if let Some(own) = &self.own {
            reasons.push(check_writable(own).err()?.to_string());
        }
        let common = safe_directory(&self.common).and_then(|common| check_writable(&common));
        reasons.push(common.err()?.to_string());
        Some(reasons.join("; "))
    }
}

/// Checks that a directory can be made in this directory, or in the nearest one above it that is there.
fn check_writable(directory: &Path) -> io::Result<()> {
    let place = nearest_place(directory).unwrap_or(directory);
    let mut access = accessat(
        CWD,
        place,
        Access::WRITE_OK | Access::EXEC_OK,
        AtFlags::EACCESS,
    );
    if access.is_ok() && !place.is_dir() {
        access = Err(Errno::NOTDIR);
    }
    access
        .map_err(io::Error::from)
        .or_cannot("make a directory in", place)
}

/// Returns the real path of a directory in which no other user can put something else in the place of what is made there.
fn safe_directory(directory: &Path) -> io::Result<PathBuf> {
    let real = fs::canonicalize(directory).or_cannot("make a directory in", directory)?;
    for place in real.ancestors() {
        let found = fs::symlink_metadata(place).or_cannot("look at", place)?;
        let is_owned = [0, effective_user()].contains(&found.uid());
        // In a directory like /tmp, each user renames only what is theirs.
        let is_shared = found.mode() & OTHERS_WRITE != 0 && found.mode() & STICKY == 0;
        if !is_owned || is_shared {
            let reason = format!("other users can rename what is in {}", place.display());
            return Err(io::Error::other(reason)).or_cannot("make a directory in", directory);
        }
    }
    Ok(real)
}

/// In the mode of a directory: that its group or all users may change what is in it.
const OTHERS_WRITE: u32 = 0o022;

/// In the mode of a directory: that nobody may rename what belongs to others.
const STICKY: u32 = 0o1000;

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
        make_directory(directory, PRIVATE)?;
        Scratch::create_with(directory, numbered)
    }

    fn create_with(directory: &Path, name: impl Fn() -> String) -> io::Result<Scratch> {
        for _ in 0..ATTEMPTS {
            let path = directory.join(name());
            match DirBuilder::new().mode(PRIVATE).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made.or_cannot("make the directory", &path)?,
            }
            // Until it is locked, another q may sweep it.
            if let Some(scratch) = claim(&path, File::open(&path))? {
                return Ok(scratch);
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

/// Locks a directory that was made at a path, and that was opened then or could not be. `None` if another q sweeps it, or has done
/// so.
fn claim(path: &Path, opened: io::Result<File>) -> io::Result<Option<Scratch>> {
    let directory = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let _ = fs::remove_dir(path);
            return Err(error).or_cannot("open the directory", path);
        }
        Ok(opened) => opened,
    };
    match directory.try_lock() {
        Err(fs::TryLockError::WouldBlock) => return Ok(None),
        // Where there are no locks, no q sweeps it.
        Ok(()) | Err(fs::TryLockError::Error(_)) => (),
    }
    let path = path.to_owned();
    Ok(is_at(&directory, &path).then(|| Scratch { path, directory }))
}

/// Returns a name that no other process gives, and that the daily sweep knows.
fn numbered() -> String {
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{number}", process::id())
}

/// Whether a name may be one of [`numbered`].
fn is_numbered(name: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b'-';
    name.iter().all(is_part)
}

/// Returns a name that nobody can know before, and that the daily sweep knows.
fn random() -> String {
    // The keys of a hasher are random.
    let number = RandomState::new().build_hasher().finish();
    format!("{RANDOM_PREFIX}{number:0RANDOM_DIGITS$x}")
}

/// Whether a name may be one of [`random`].
fn is_random(name: &[u8]) -> bool {
    let digits = name.strip_prefix(RANDOM_PREFIX.as_bytes());
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    digits.is_some_and(|digits| digits.len() == RANDOM_DIGITS && digits.iter().all(is_digit))
}

/// Removes this user's directories in a directory that have such a name and that no running q has locked.
fn sweep(directory: &Path, is_named: fn(&[u8]) -> bool) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if !is_named(name.as_encoded_bytes()) {
            continue;
        }
        let path = entry.path();
        let Ok(found) = openat(CWD, &path, FOUND, Mode::empty()) else {
            continue;
        };
        // Root could open and remove those of others.
        let is_own = fstat(&found).is_ok_and(|found| found.st_uid == effective_user());
        if !is_own {
            continue;
        }
        let Ok(opened) = readable(&found) else {
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
    identity_of(&open) == identity_of(&there)
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
    use std::cell::Cell;

    use super::*;

    /// The rights in the mode of a directory.
    const RIGHTS: u32 = 0o7777;

    /// Makes a directory where no other user can put something in its place, wherever `TMPDIR` leads. `None` where a machine has
    /// no such place.
    fn safe_root() -> Option<tempfile::TempDir> {
        let places = ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from);
        let mut places = [std::env::temp_dir()].into_iter().chain(places);
        let safe = places
            .find(|place| safe_directory(place).is_ok_and(|real| check_writable(&real).is_ok()));
        if safe.is_none() {
            crate::unix::tests::skip("no directory for temporary files is safe");
        }
        Some(tempfile::tempdir_in(safe?).expect("a directory"))
    }

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
    fn a_directory_is_made_among_the_files_of_others_only_where_that_is_safe() {
        // What q's own place is, the mode of the common one, where the directory is, and why there is none.
        for (own, mode, made, reason) in [
            ("missing", 0o1777, "own", ""),
            ("missing", 0o777, "own", ""),
            ("a file", 0o1777, "common", ""),
            ("a file", 0o700, "common", ""),
            ("none", 0o1777, "common", ""),
            (
                "a file",
                0o777,
                "",
                "other users can rename what is in COMMON",
            ),
            (
                "none",
                0o720,
                "",
                "other users can rename what is in COMMON",
            ),
            (
                "none",
                0,
                "",
                "cannot make a directory in COMMON: No such file or directory",
            ),
        ] {
            let Some(root) = safe_root() else { return };
            let root = fs::canonicalize(root.path()).expect("a path");
            let common = root.join("common");
            if mode != 0 {
                fs::create_dir(&common).expect("a directory");
                let mode = fs::Permissions::from_mode(mode);
                fs::set_permissions(&common, mode).expect("a mode");
            }
            // The way to it may have links.
            let link = root.join("link");
            std::os::unix::fs::symlink(&common, &link).expect("a link");
            let cache = root.join("cache");
            if own == "a file" {
                fs::write(&cache, "").expect("a file");
            }
            let cache = Some(cache.as_path()).filter(|_| own != "none");
            let places = ScratchPlaces::new(cache, Some(link.as_os_str()));
            let obstacle = places.obstacle().unwrap_or_default();
            let shown = |text: String| text.replace(&*link.to_string_lossy(), "COMMON");
            let obstacle = shown(obstacle).replace(&*common.to_string_lossy(), "COMMON");
            assert_eq!(
                obstacle.is_empty(),
                reason.is_empty(),
                "{own} {mode:o}: {obstacle}"
            );
            assert!(obstacle.contains(reason), "{own} {mode:o}: {obstacle}");
            let Ok(scratch) = places.create() else {
                assert_eq!(made, "", "{own} {mode:o}");
                continue;
            };
            let directory = match made {
                "own" => root.join("cache/tmp"),
                _ => common.clone(),
            };
            assert_eq!(scratch.path.parent(), Some(&*directory), "{own} {mode:o}");
            let found = scratch.path.symlink_metadata().expect("a directory");
            assert!(
                found.is_dir() && found.mode() & RIGHTS == PRIVATE,
                "{own} {mode:o}"
            );
            let path = scratch.path.clone();
            drop(scratch);
            assert!(!path.exists(), "{own} {mode:o}");
        }
    }

    #[test]
    fn a_directory_is_claimed_unless_another_q_sweeps_it_and_one_that_cannot_be_opened_is_removed()
    {
        // What becomes of the directory, whether it is claimed, the error if there is one, and whether the directory is still
        // there.
        for (fate, is_claimed, error, is_left) in [
            ("opened", true, "", true),
            ("swept", false, "", false),
            ("swept later", false, "", false),
            // Who has locked it removes it.
            ("locked", false, "", true),
            (
                "too many files",
                false,
                "cannot open the directory PATH: ",
                false,
            ),
        ] {
            let root = tempfile::tempdir().expect("a directory");
            let path = root.path().join("made");
            fs::create_dir(&path).expect("a directory");
            let mut opened = File::open(&path);
            let other = File::open(&path).expect("a directory");
            match fate {
                "swept" => {
                    fs::remove_dir(&path).expect("a directory");
                    opened = File::open(&path);
                }
                "swept later" => fs::remove_dir(&path).expect("a directory"),
                "locked" => other.try_lock().expect("nobody has it"),
                "too many files" => opened = Err(Errno::MFILE.into()),
                _ => (),
            }
            let claimed = claim(&path, opened);
            if let Err(found) = &claimed {
                let found = found.to_string();
                let found = found.replace(&*path.to_string_lossy(), "PATH");
                assert!(!error.is_empty() && found.starts_with(error), "{found}");
            }
            assert_eq!(claimed.is_ok(), error.is_empty(), "{fate}");
            assert_eq!(path.exists(), is_left, "{fate}");
            let claimed = claimed.ok().flatten();
            assert_eq!(claimed.is_some(), is_claimed, "{fate}");
            assert!(claimed.is_none_or(|scratch| scratch.path == path), "{fate}");
        }
    }

    #[test]
    fn a_directory_is_made_under_a_name_that_is_free() {
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir(root.path().join("name1")).expect("a directory");
        let count = Cell::new(0);
        let name = || {
            count.set(count.get() + 1);
            format!("name{}", count.get())
        };
        let scratch = Scratch::create_with(root.path(), name).expect("a directory");
        assert_eq!(scratch.path, root.path().join("name2"));
        let error = Scratch::create_with(root.path(), || "name1".to_owned());
        let error = error.expect_err("the name is taken").to_string();
        assert!(error.starts_with("cannot make a directory in "), "{error}");
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

    /// Returns the names in a directory, sorted, with blanks between them.
    fn names_in(directory: &Path) -> String {
        let entries = fs::read_dir(directory).expect("a directory").flatten();
        let names = entries.map(|entry| entry.file_name().into_string().expect("text"));
        let mut names = Vec::from_iter(names);
        names.sort();
        names.join(" ")
    }

    #[test]
    fn the_sweep_removes_what_no_running_q_has_and_nothing_else() {
        let random = "q-confined-000000000000000";
        // A script that calls q may name its own directory so.
        let others = "q-000000000000000";
        // The place, the mode of the common one, how the names of directories there begin, and whether they are swept.
        for (place, mode, prefix, is_swept) in [
            ("own", 0o1777, "1-", true),
            ("own", 0o1777, random, false),
            ("common", 0o1777, random, true),
            ("common", 0o700, random, true),
            ("common", 0o777, random, false),
            ("common", 0o1777, "1-", false),
            ("common", 0o1777, others, false),
        ] {
            let case = format!("{place} {mode:o} {prefix}");
            let Some(root) = safe_root() else { return };
            let root = fs::canonicalize(root.path()).expect("a path");
            let (cache, common) = (root.join("cache"), root.join("common"));
            fs::create_dir(&common).expect("a directory");
            fs::set_permissions(&common, fs::Permissions::from_mode(mode)).expect("a mode");
            let cache = Some(cache.as_path()).filter(|_| place == "own");
            let places = ScratchPlaces::new(cache, Some(common.as_os_str()));
            let directory = cache.map_or(common.clone(), |cache| cache.join("tmp"));
            // There is none where that is not safe.
            let used = places.create().ok();
            let used_name = used
                .as_ref()
                .map(|used| used.path.file_name().expect("a name"));
            let used_name = used_name.map(|name| name.to_string_lossy().into_owned());
            let [left, deep, file, link, other] =
                ["0", "1", "2", "3", "g"].map(|last| format!("{prefix}{last}"));
            for name in [&left, &format!("{deep}/er"), &other, "elsewhere"] {
                fs::create_dir_all(directory.join(name)).expect("a directory");
                fs::write(directory.join(name).join("file"), "").expect("a file");
            }
            fs::write(directory.join(&file), "").expect("a file");
            std::os::unix::fs::symlink("elsewhere", directory.join(&link)).expect("a link");
            let mut expected = vec![file, link, other, "elsewhere".to_owned()];
            if !is_swept {
                expected.extend([left, deep]);
            }
            expected.extend(used_name.clone());
            expected.sort();
            places.sweep();
            assert_eq!(names_in(&directory), expected.join(" "), "{case}");
            assert!(directory.join("elsewhere/file").is_file(), "{case}");
            drop(used);
            expected.retain(|name| Some(name) != used_name.as_ref());
            assert_eq!(names_in(&directory), expected.join(" "), "{case}");
            fs::remove_dir_all(&directory).expect("a directory");
            places.sweep();
        }
    }
}
