//! The daily sweep, which removes conversations without a name that have not been used for long.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::directory::{self, StateDirectory};
use super::name::CURRENT;
use super::rules::{FileKind, Rules, Shelter, SweepTime, of_file, shelter_of};
use super::{disk, lock};
use crate::scratch::ScratchPlaces;

/// How often q sweeps.
const INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// Younger files are never removed: they may have become current since a sweep has looked.
const GRACE: Duration = Duration::from_secs(60);

/// How many files are removed before other processes may have the lock.
const AT_ONCE: usize = 100;

/// How long to wait for the lock before the rest is left for the next day.
const SWEEP_LOCK_TIMEOUT: Duration = Duration::from_millis(200);

/// Sweeps at most once a day, also the temporary directories of killed runs. If the settings keep conversations forever, it removes
/// none of their files, also not what killed runs have left.
pub fn sweep_if_due(directory: &StateDirectory, rules: &Rules, scratch_places: &ScratchPlaces) {
    let now = SystemTime::now();
    let marker = directory.root.join("swept");
    let since = age(&marker, now);
    let is_due = since.is_none_or(|since| since >= INTERVAL);
    // Without the mark, every run would sweep.
    if !is_due || mark(&marker, now).is_err() {
        return;
    }
    scratch_places.sweep();
    let Some(keep) = rules.keep else {
        return;
    };
    // The first sweep, and one that is dated before the last, only notes its time. A clock that is far ahead ages nothing by
    // more than two days.
    if let Some(since) = since {
        let keep = keep.max(GRACE);
        let keep_of_slots = keep.max(rules.expire.unwrap_or(Duration::MAX));
        let now = now - since.saturating_sub(2 * INTERVAL);
        // What cannot be removed today may be tomorrow.
        let _ = sweep(directory, keep, keep_of_slots, now);
    }
}

/// Returns how old a file or a link is; `None` if that is unknown.
fn age(path: &Path, now: SystemTime) -> Option<Duration> {
    let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    now.duration_since(modified.ok()?).ok()
}

/// Notes the time of a sweep.
fn mark(marker: &Path, now: SystemTime) -> io::Result<()> {
    let mut options = File::options();
    options.append(true).create(true).mode(0o600);
    options.custom_flags(libc::O_NONBLOCK);
    options.open(marker)?.set_modified(now)
}

/// Looks for old files without the lock, and takes it to remove them. A conversation of a slot stays until it has expired,
/// too; what other links lead to is not removed, nor is a file in the place of one.
fn sweep(
    directory: &StateDirectory,
    keep: Duration,
    keep_of_slots: Duration,
    now: SystemTime,
) -> io::Result<()> {
    let paths = directory.paths()?;
    let current = directory.path_of(CURRENT);
    let is_old = |path: &Path| is_old(directory, path, keep, now);
    let mut old = HashSet::new();
    let mut links = Vec::new();
    for path in &paths {
        if is_old(path) {
            old.insert(path.clone());
        }
    }
    for path in &paths {
        let kind = directory.kind(path);
        let target = directory.read_link(path)?;
        let is_link = kind == FileKind::Link || target != *path;
        if !is_link || !of_file(kind).is_conversation {
            continue;
        }
        let is_sheltered = match shelter_of(kind, *path == current) {
            Shelter::Always => true,
            Shelter::UntilExpired => age(&target, now).is_none_or(|age| age <= keep_of_slots),
        };
        if is_sheltered {
            old.remove(&target);
        }
        if kind == FileKind::Link && path.is_symlink() {
            links.push(path.clone());
        }
    }
    let mut old = Vec::from_iter(old);
    // They may lead nowhere once the others are removed.
    old.append(&mut links);
    remove_old(directory, &old, is_old)
}

/// Removes files that are still old once the lock is held, a few at a time, so that no other q waits long.
fn remove_old(
    directory: &StateDirectory,
    old: &[PathBuf],
    is_old: impl Fn(&Path) -> bool,
) -> io::Result<()> {
    for part in old.chunks(AT_ONCE) {
        let _lock = lock::acquire(&[&directory.sessions], &|waited| {
            waited >= SWEEP_LOCK_TIMEOUT
        })?;
        for path in part {
            // Another q may have used it in the meantime.
            if is_old(path) {
                let _ = disk::remove(path);
            }
        }
    }
    Ok(())
}

/// Whether a file was not used for so long that it is removed. A link to a current conversation is removed if it leads
/// nowhere.
fn is_old(directory: &StateDirectory, path: &Path, keep: Duration, now: SystemTime) -> bool {
    let kind = directory.kind(path);
    if kind == FileKind::Link && path.is_symlink() {
        return matches!(directory::metadata(path), Ok(None));
    }
    let limit = match of_file(kind).swept {
        SweepTime::Never => return false,
        SweepTime::AfterKeep => keep,
        SweepTime::AfterADay => INTERVAL,
    };
    age(path, now).is_some_and(|age| age > limit)
}
