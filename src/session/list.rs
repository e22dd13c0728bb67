//! Which files of the folder are conversations, newest first.

use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use super::disk;
use super::folder::{Folder, is_current, is_state, name_of, stem_of};
use super::name::CURRENT;
use super::timestamp::UNNAMED;

/// A file that contains a conversation, or should, as a list shows it.
#[derive(Debug)]
pub struct ConversationFile {
    pub path: PathBuf,
    pub bytes: u64,
    /// An earlier state, which has no number.
    pub is_state: bool,
    modified: SystemTime,
}

/// The files of conversations, newest first. Earlier states are listed if `all`, or if they are current.
pub fn files(folder: &Folder, all: bool) -> io::Result<Vec<ConversationFile>> {
    let current = folder.resolve(&folder.file(CURRENT));
    let mut files = Vec::new();
    for entry in folder.entries()? {
        let path = entry.path();
        if stem_of(&path).is_none() {
            continue;
        }
        let is_state = is_state(&path) && path != current;
        if is_state && !all {
            continue;
        }
        // Such a link is a second name of a conversation, which is listed by its first.
        let may_be_second = is_current(&path) || name_of(&path).starts_with(UNNAMED);
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if may_be_second && is_link && folder.has(&folder.resolve(&path)) {
            continue;
        }
        // It may have been removed in the meantime, or be a link that leads nowhere.
        let Some(metadata) = disk::metadata(&path)? else {
            continue;
        };
        // A killed q may have left an empty file, for a name that it had reserved.
        let is_reserved = metadata.len() == 0 && folder.is_auto_named(&path);
        if !metadata.is_file() || is_reserved {
            continue;
        }
        files.push(ConversationFile {
            bytes: metadata.len(),
            is_state,
            modified: metadata.modified()?,
            path,
        });
    }
    files.sort_by(|a, b| (b.modified, &b.path).cmp(&(a.modified, &a.path)));
    Ok(files)
}
