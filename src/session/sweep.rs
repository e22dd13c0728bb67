//! The daily sweep, which removes conversations without a name that have not been used for long.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt;

use super::files::PRIVATE_FILE;
use super::folder::{Folder, SLOT, TEMPORARY, is_current, name_of, stem_of};
use super::rules::Rules;
use super::timestamp::UNNAMED;
use crate::unix;

/// How often q sweeps.
const INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// Younger files are never removed: a conversation that another q has just written may have no link yet.
const GRACE: Duration = Duration::from_secs(60);

/// After a longer time without a sweep the clock may be wrong, so nothing is removed until the next one.
const MAX_ABSENCE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A file dated before this was written while the clock was wrong: 2026-01-01, in seconds since 1970.
const FIRST_BELIEVED: Duration = Duration::from_secs(1_767_225_600);

impl Folder {
    /// Sweeps at most once a day, and not while another q has the lock. If the settings keep conversations for ever, it
    /// removes nothing.
    pub(super) fn sweep_if_due(&self, rules: &Rules, now: SystemTime) {
        let Some(keep) = rules.keep else {
            return;
        };
        let marker = self.root.join("swept");
        let mut since = None;
        if let Ok(metadata) = fs::metadata(&marker) {
            since = age(&metadata, now);
        }
        if since.is_some_and(|since| since < INTERVAL) {
            return;
        }
        let Ok(_lock) = self.lock(&self.link(None), &|_| true) else {
            return;
        };
        // Without the mark, every run would sweep.
        if mark(&marker, now).is_err() {
            return;
        }
        if since.is_none_or(|since| since <= MAX_ABSENCE) {
            let limits = Limits {
                keep: keep.max(GRACE),
                expire: rules.expire.unwrap_or(Duration::MAX),
            };
            self.sweep(&limits, now);
        }
    }

    /// Removes files older than their limit, except those that `current.json` or a name leads to. Then removes links to
    /// nothing.
    fn sweep(&self, limits: &Limits, now: SystemTime) {
        let Ok(paths) = self.paths() else {
            return;
        };
        let mut files = Vec::new();
        let mut links = Vec::new();
        for path in paths {
            if path.is_symlink() && !name_of(&path).starts_with(TEMPORARY) {
                links.push(path);
            } else {
                files.push(path);
            }
        }
        let targets = self.targets(&links);
        for path in files {
            if let Some(limit) = self.limit(&path, &targets, limits) {
                remove_if_older(&path, limit, now);
            }
        }
        for link in links {
            if is_current(&link) {
                self.remove_dead_link(&link);
            }
        }
    }

    /// What these links lead to.
    fn targets(&self, links: &[PathBuf]) -> Targets {
        let mut targets = Targets::default();
        for link in links {
            let name = name_of(link);
            // A link whose name is an id keeps nothing: q 0.2 has renamed `current.json` to such names.
            if name.starts_with(UNNAMED) {
                continue;
            }
            let Ok(path) = self.resolve(link) else {
                continue;
            };
            if name.starts_with(SLOT) {
                targets.of_slots.push(path);
            } else {
                targets.kept.push(path);
            }
        }
        targets
    }

    /// The age at which a file is removed; `None` if it never is.
    fn limit(&self, path: &PathBuf, targets: &Targets, limits: &Limits) -> Option<Duration> {
        if targets.kept.contains(path) {
            return None;
        }
        let name = name_of(path);
        if name.starts_with(TEMPORARY) {
            return Some(INTERVAL);
        }
        // Other programs may keep files here.
        stem_of(&name)?;
        let is_auto_named = self.is_auto_named(path);
        let is_of_slot = is_auto_named && targets.of_slots.contains(path);
        if name.starts_with(SLOT) || is_of_slot {
            return Some(limits.keep.max(limits.expire));
        }
        if is_auto_named {
            Some(limits.keep)
        } else {
            None
        }
    }

    fn remove_dead_link(&self, link: &Path) {
        let leads_nowhere = matches!(link.try_exists(), Ok(false));
        if leads_nowhere
            && let Ok(path) = self.resolve(link)
            && self.is_auto_named(&path)
        {
            let _ = self.remove_link(link, &path);
        }
    }
}

/// How long conversations without a name are kept.
struct Limits {
    keep: Duration,
    /// A conversation of a slot also stays until it has expired.
    expire: Duration,
}

/// The conversations that links lead to.
#[derive(Default)]
struct Targets {
    /// From `current.json` or a name: these are never removed.
    kept: Vec<PathBuf>,
    of_slots: Vec<PathBuf>,
}

/// Notes the time of a sweep.
fn mark(marker: &Path, now: SystemTime) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options
        .append(true)
        .create(true)
        .mode(PRIVATE_FILE)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW);
    options.open(marker)?.set_modified(now)
}

fn remove_if_older(path: &Path, limit: Duration, now: SystemTime) {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return;
    };
    if !metadata.is_file() && !metadata.is_symlink() {
        return;
    }
    let first_believed = SystemTime::UNIX_EPOCH + FIRST_BELIEVED;
    let modified = metadata.modified();
    if modified.is_ok_and(|modified| modified < first_believed) {
        unix::touch(path);
        return;
    }
    if age(&metadata, now).is_some_and(|age| age > limit) {
        let _ = fs::remove_file(path);
    }
}

/// How long ago a file was changed; `None` if its time is in the future.
fn age(metadata: &Metadata, now: SystemTime) -> Option<Duration> {
    now.duration_since(metadata.modified().ok()?).ok()
}
