//! The daily sweep, which removes conversations without a name that have not been used for long.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fs_err as fs;
use fs_err::os::unix::fs::OpenOptionsExt;

use super::disk;
use super::folder::{Folder, is_current, is_own, name_of};
use super::lock::Lock;
use super::name::SLOT;
use super::rules::Rules;

/// How often q sweeps.
const INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// Younger files are never removed: they may have become current since a sweep has looked.
const GRACE: Duration = Duration::from_secs(60);

/// How many files are removed before other processes may have the lock.
const AT_ONCE: usize = 100;

/// How long to wait for the lock before the rest is left for the next day.
const PATIENCE: Duration = Duration::from_millis(200);

/// Sweeps at most once a day. If the settings keep conversations for ever, it removes nothing.
pub(super) fn sweep_if_due(folder: &Folder, rules: &Rules) {
    let Some(keep) = rules.keep else {
        return;
    };
    let now = SystemTime::now();
    let marker = folder.root.join("swept");
    let before = fs::metadata(&marker).and_then(|metadata| metadata.modified());
    let since = before
        .ok()
        .and_then(|before| now.duration_since(before).ok());
    let is_due = since.is_none_or(|since| since >= INTERVAL);
    // Without the mark, every run would sweep.
    if !is_due || mark(&marker, now).is_err() {
        return;
    }
    // The first sweep, and one that is dated before the last, only notes its time. A clock that is far ahead ages nothing by
    // more than two days.
    if let Some(since) = since {
        let keep = keep.max(GRACE);
        let sweep = Sweep {
            folder,
            keep,
            keep_of_slots: keep.max(rules.expire.unwrap_or(Duration::MAX)),
            now: now - since.saturating_sub(2 * INTERVAL),
        };
        sweep.run();
    }
}

/// Notes the time of a sweep.
fn mark(marker: &Path, now: SystemTime) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(libc::O_NONBLOCK);
    options.open(marker)?.set_modified(now)
}

struct Sweep<'a> {
    folder: &'a Folder,
    /// How long conversations without a name are kept.
    keep: Duration,
    /// A conversation of a slot also stays until it has expired.
    keep_of_slots: Duration,
    now: SystemTime,
}

impl Sweep<'_> {
    /// Looks for old files without the lock, and takes it to remove them.
    fn run(&self) {
        let Ok(paths) = self.folder.paths() else {
            return;
        };
        let mut limits = HashMap::new();
        for path in &paths {
            if let Some(limit) = self.limit(path) {
                limits.insert(path.clone(), limit);
            }
        }
        for link in &paths {
            self.spare_target(link, &mut limits);
        }
        let mut old: Vec<_> = limits.into_iter().collect();
        old.retain(|(path, limit)| path.is_symlink() || self.is_older(path, *limit));
        // A link may lead to one of these files.
        old.sort_by_key(|(path, _)| path.is_symlink());
        for part in old.chunks(AT_ONCE) {
            let sessions = &self.folder.sessions;
            let Ok(_lock) = Lock::acquire(sessions, &|waited| waited >= PATIENCE) else {
                return;
            };
            for (path, limit) in part {
                // Another q may have used it in the meantime.
                if self.is_older(path, *limit) {
                    let _ = disk::remove(path);
                }
            }
        }
    }

    /// The age at which a file is removed, unless a link leads to it; `None` if it never is.
    fn limit(&self, path: &Path) -> Option<Duration> {
        if disk::is_temporary(&name_of(path)) {
            return Some(INTERVAL);
        }
        // What is named a little otherwise, such as an editor's backup, is not q's.
        let is_removed = is_own(path) && self.folder.is_auto_named(path);
        is_removed.then_some(self.keep)
    }

    /// Keeps what a link leads to, and a file in the place of such a link.
    fn spare_target(&self, link: &Path, limits: &mut HashMap<PathBuf, Duration>) {
        let target = self.folder.resolve(link);
        let is_link = is_current(link) || target != link;
        if !is_link || !is_own(link) {
            return;
        }
        if !name_of(link).starts_with(SLOT) {
            limits.remove(&target);
        } else if let Some(limit) = limits.get_mut(&target) {
            *limit = self.keep_of_slots;
        }
    }

    /// Whether a file is older than its limit. A link of a current conversation is old if it leads nowhere.
    fn is_older(&self, path: &Path, limit: Duration) -> bool {
        let Ok(metadata) = fs::symlink_metadata(path) else {
            return false;
        };
        if metadata.is_symlink() && is_current(path) {
            return matches!(disk::metadata(path), Ok(None));
        }
        let age = metadata
            .modified()
            .map(|modified| self.now.duration_since(modified));
        matches!(age, Ok(Ok(age)) if age > limit)
    }
}
