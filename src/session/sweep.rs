//! The daily sweep, which removes conversations without a name that have not been used for long.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::folder::{self, Folder, Kind};
use super::name::CURRENT;
use super::rules::Rules;
use super::{disk, lock};

/// How often q sweeps.
const INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// Younger files are never removed: they may have become current since a sweep has looked.
const GRACE: Duration = Duration::from_secs(60);

/// How many files are removed before other processes may have the lock.
const AT_ONCE: usize = 100;

/// How long to wait for the lock before the rest is left for the next day.
const PATIENCE: Duration = Duration::from_millis(200);

/// Sweeps at most once a day. If the settings keep conversations for ever, it removes nothing.
pub fn sweep_if_due(folder: &Folder, rules: &Rules) {
    let Some(keep) = rules.keep else {
        return;
    };
    let now = SystemTime::now();
    let marker = folder.root.join("swept");
    let since = age(&marker, now);
    let is_due = since.is_none_or(|since| since >= INTERVAL);
    // Without the mark, every run would sweep.
    if !is_due || mark(&marker, now).is_err() {
        return;
    }
    // The first sweep, and one that is dated before the last, only notes its time. A clock that is far ahead ages nothing by
    // more than two days.
    if let Some(since) = since {
        let keep = keep.max(GRACE);
        let keep_of_slots = keep.max(rules.expire.unwrap_or(Duration::MAX));
        let now = now - since.saturating_sub(2 * INTERVAL);
        // What cannot be removed today may be tomorrow.
        let _ = sweep(folder, keep, keep_of_slots, now);
    }
}

/// How old a file or a link is; `None` if that is unknown.
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
    folder: &Folder,
    keep: Duration,
    keep_of_slots: Duration,
    now: SystemTime,
) -> io::Result<()> {
    let paths = folder.paths()?;
    let is_old = |path: &Path| is_old(folder, path, keep, now);
    let mut old = HashSet::new();
    let mut links = Vec::new();
    for path in &paths {
        if is_old(path) {
            old.insert(path.clone());
        }
    }
    for path in &paths {
        let kind = folder.kind(path);
        let target = folder.resolve(path);
        let is_link = kind == Kind::Link || target != *path;
        if !is_link || !kind.is_conversation() {
            continue;
        }
        let is_slot = kind == Kind::Link && *path != folder.file(CURRENT);
        if !is_slot || age(&target, now).is_none_or(|age| age <= keep_of_slots) {
            old.remove(&target);
        }
        if kind == Kind::Link && path.is_symlink() {
            links.push(path.clone());
        }
    }
    let mut old = Vec::from_iter(old);
    // They may lead nowhere once the others are removed.
    old.append(&mut links);
    for part in old.chunks(AT_ONCE) {
        let _lock = lock::acquire(&[&folder.sessions], &|waited| waited >= PATIENCE)?;
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
fn is_old(folder: &Folder, path: &Path, keep: Duration, now: SystemTime) -> bool {
    let limit = match folder.kind(path) {
        Kind::Link if path.is_symlink() => return matches!(folder::metadata(path), Ok(None)),
        Kind::Temporary => INTERVAL,
        kind if kind.is_auto_named() => keep,
        _ => return false,
    };
    age(path, now).is_some_and(|age| age > limit)
}
