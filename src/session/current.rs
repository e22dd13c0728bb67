//! The link `current.json`, or that of a slot: makes it, changes it, and removes it.

use std::fs::Permissions;
use std::io;
use std::iter;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err as fs;
use fs_err::os::unix::fs::symlink;

use super::conversation::Conversation;
use super::files::{self, are_same, read, remove, second_name};
use super::folder::{Folder, TEMPORARY, UNREADABLE, is_current, own_temporary};
use super::format;
use super::lock::Lock;
use super::rules::FileContent;
use super::timestamp::Timestamp;
use crate::unix;

/// How long to wait until another q has changed a link.
const LINK_PATIENCE: Duration = Duration::from_millis(200);

impl Folder {
    /// Returns the conversation that was current until now, and starts the time for which it is kept. `None` if there is
    /// none, or the user named it. Without the lock, a file in place of the link is left alone.
    pub(super) fn leave(&self, link: &Path, lock: Option<&Lock>) -> io::Result<Option<PathBuf>> {
        let path = match lock {
            Some(lock) if is_file(link) => self.adopt(link, lock)?,
            _ => self.resolve(link).unwrap_or_default(),
        };
        if !self.is_auto_named(&path) || !path.exists() {
            return Ok(None);
        }
        unix::touch(&path);
        Ok(Some(path))
    }

    /// Returns where a conversation is from now on. q before 0.3 and other tools write a file in place of the link: this
    /// file gets the name of its id, and a link takes its place. On a file system without links it stays.
    pub(super) fn settle(&self, path: &Path, lock: &Lock) -> io::Result<PathBuf> {
        // A q that was killed may have given this name to the file in place of a link.
        let has_two_names = fs::metadata(path).is_ok_and(|metadata| metadata.nlink() > 1);
        let mut link = path.to_owned();
        if has_two_names {
            for other in self.paths().unwrap_or_default() {
                if is_current(&other) && are_same(path, &other) {
                    link = other;
                    break;
                }
            }
        }
        if !self.has(&link) || !is_current(&link) || !is_file(&link) {
            return self.resolve(&link);
        }
        let adopted = self.adopt(&link, lock)?;
        let settled = self.point(&link, &adopted)?;
        if settled != adopted {
            // There are no links here, so the file keeps only the name of the link.
            let _ = fs::remove_file(&adopted);
        }
        Ok(settled)
    }

    /// Gives a file in place of a link the name of its id. If it cannot be read, the time when it was changed replaces the id.
    fn adopt(&self, link: &Path, lock: &Lock) -> io::Result<PathBuf> {
        let adopted = match read(link)? {
            FileContent::Conversation(conversation) => {
                self.adopt_conversation(link, conversation, lock)?
            }
            FileContent::Unusable(_) | FileContent::Nothing => {
                let changed = Timestamp::from_mtime(fs::metadata(link)?.modified()?);
                // A second file of the same millisecond gets the next one.
                let moments = iter::successors(Some(changed), |moment| Some(moment.next()));
                let names = moments.map(|moment| format!("{}{UNREADABLE}", moment.id()));
                self.link_first_free(link, names)?
            }
        };
        let _ = fs::set_permissions(&adopted, Permissions::from_mode(files::PRIVATE_FILE));
        Ok(adopted)
    }

    fn adopt_conversation(
        &self,
        link: &Path,
        mut conversation: Conversation,
        lock: &Lock,
    ) -> io::Result<PathBuf> {
        let path = self.file(&conversation.created.id());
        let Err(error) = second_name(link, &path, &self.temporary(&path)) else {
            return Ok(path);
        };
        if error.kind() != io::ErrorKind::AlreadyExists {
            return Err(error);
        }
        if are_same(link, &path) {
            return Ok(path);
        }
        // An older q has continued it in place of the link.
        if let FileContent::Conversation(old) = read(&path)?
            && conversation.exchanges.starts_with(&old.exchanges)
        {
            let bytes = format::to_bytes(&conversation)?;
            self.replace(&path, &bytes).map_err(|failed| failed.error)?;
            return Ok(path);
        }
        self.create(&mut conversation, Some(lock))
    }

    /// Makes a link lead to a conversation, and returns where the conversation is then. On a file system without links,
    /// the conversation's file takes the place of the link.
    pub(super) fn point(&self, link: &Path, path: &Path) -> io::Result<PathBuf> {
        let name = path.file_name().unwrap_or_default();
        if fs::read_link(link).is_ok_and(|target| target.as_os_str() == name) {
            return Ok(path.to_owned());
        }
        let lock = self.lock_links();
        let temporary = if lock.is_some() {
            self.temporary_link()
        } else {
            own_temporary(link)
        };
        // A killed run may have left it.
        let _ = fs::remove_file(&temporary);
        if let Err(error) = symlink(name, &temporary) {
            if link.is_symlink() {
                return Err(error);
            }
            fs::rename(path, link)?;
            return Ok(link.to_owned());
        }
        if let Err(error) = fs::rename(&temporary, link) {
            let _ = fs::remove_file(&temporary);
            return Err(error);
        }
        Ok(path.to_owned())
    }

    /// Removes a link, unless another q has made it lead to another conversation by now.
    pub(super) fn remove_link(&self, link: &Path, path: &Path) -> io::Result<()> {
        let _lock = self.lock_links();
        if self.leads_to(link, path)? {
            remove(link)?;
        }
        Ok(())
    }

    /// Removes the temporary link that a killed run has left.
    pub(super) fn remove_temporary_link(&self) {
        if self.temporary_link().is_symlink() {
            let _lock = self.lock_links();
            let _ = fs::remove_file(self.temporary_link());
        }
    }

    /// The lock for changing links: with it, no q removes a link that another has just made. Each q holds it only for a
    /// moment. The lock of the conversations is another one, so a new question does not wait for a save. If the lock
    /// cannot be had, q continues: the worst is a lost link.
    fn lock_links(&self) -> Option<Lock> {
        Lock::acquire(&self.root, &|waited| waited >= LINK_PATIENCE).ok()
    }

    /// The link that is made before it replaces another. Only the holder of the lock makes it, so one name is enough.
    fn temporary_link(&self) -> PathBuf {
        self.sessions.join(format!("{TEMPORARY}-link"))
    }
}

/// Whether a path is a file itself, not a link to one.
fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}
