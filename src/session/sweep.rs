//! The daily sweep, which removes conversations without a name that have not been used for long.

use std::fs::Metadata;
use std::path::PathBuf;
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

/// What is younger is never removed: a conversation that another q has just written may have no link yet.
const GRACE: Duration = Duration::from_secs(60);

/// After a longer time without a sweep the clock may be wrong, so nothing is removed until the next one.
const MAX_ABSENCE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A file dated before this was written while the clock was wrong: 2026-01-01, in seconds since 1970.
const FIRST_BELIEVED: Duration = Duration::from_secs(1_767_225_600);

impl Folder {
    /// Sweeps, at most once a day, unless another q has the lock. Without a limit on the time, removes nothing.
    pub(super) fn sweep_if_due(&self, rules: &Rules, now: SystemTime) {
        let Some(keep) = rules.keep.map(|keep| keep.max(GRACE)) else {
            return;
        };
        let marker = self.root.join("swept");
        let since = fs::metadata(&marker)
            .ok()
            .and_then(|metadata| age(&metadata, now));
        if since.is_some_and(|since| since < INTERVAL) {
            return;
        }
        let Ok(_lock) = self.lock(&self.link(None), &|_| true) else {
            return;
        };
        let mut options = fs::OpenOptions::new();
        options
            .append(true)
            .create(true)
            .mode(PRIVATE_FILE)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW);
        let marked = options
            .open(&marker)
            .and_then(|marker| marker.set_modified(now));
        // Without the mark, every run would do this.
        if marked.is_ok() && since.is_none_or(|since| since <= MAX_ABSENCE) {
            self.sweep(keep, rules.expire.unwrap_or(Duration::MAX), now);
        }
    }

    /// Removes conversations without a name and earlier states that have not changed for longer than `keep`, unless
    /// `current.json` or a name leads to them; those of slots only once they have expired, too; and links that lead
    /// nowhere.
    fn sweep(&self, keep: Duration, expire: Duration, now: SystemTime) {
        let is_link = |path: &PathBuf| path.is_symlink() && !name_of(path).starts_with(TEMPORARY);
        let (links, files): (Vec<_>, Vec<_>) =
            self.paths().into_iter().flatten().partition(is_link);
        // Links with ids keep nothing: q 0.2 has renamed `current.json` so.
        let keeping = links
            .iter()
            .filter(|link| !name_of(link).starts_with(UNNAMED));
        let (slots, names): (Vec<_>, Vec<_>) =
            keeping.partition(|link| name_of(link).starts_with(SLOT));
        let real = |link: &PathBuf| self.resolve(link).ok();
        let of_slots: Vec<_> = slots.into_iter().filter_map(real).collect();
        let kept: Vec<_> = names.into_iter().filter_map(real).collect();
        for path in files {
            let (name, is_unnamed) = (name_of(&path), self.is_unnamed(&path));
            let limit = match stem_of(&name) {
                _ if name.starts_with(TEMPORARY) => INTERVAL,
                Some(_) if name.starts_with(SLOT) || (is_unnamed && of_slots.contains(&path)) => {
                    keep.max(expire)
                }
                Some(_) if is_unnamed => keep,
                _ => continue,
            };
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                continue;
            };
            if !(metadata.is_file() || metadata.is_symlink()) || kept.contains(&path) {
                continue;
            }
            if metadata
                .modified()
                .is_ok_and(|modified| modified < SystemTime::UNIX_EPOCH + FIRST_BELIEVED)
            {
                unix::touch(&path);
            } else if age(&metadata, now).is_some_and(|age| age > limit) {
                let _ = fs::remove_file(&path);
            }
        }
        for link in links.into_iter().filter(|link| is_current(link)) {
            let leads_nowhere = matches!(link.try_exists(), Ok(false));
            if leads_nowhere
                && let Ok(path) = self.resolve(&link)
                && self.is_unnamed(&path)
            {
                let _ = self.remove_link(&link, &path);
            }
        }
    }
}

/// How long ago a file was changed; `None` if its time is in the future.
fn age(metadata: &Metadata, now: SystemTime) -> Option<Duration> {
    now.duration_since(metadata.modified().ok()?).ok()
}
