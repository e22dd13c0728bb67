//! Finds conversations and opens them.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::conversation::Conversation;
use super::folder::{Folder, Kind};
use super::lock::{self, GiveUp, Lock, LockRequest};
use super::name::Which;
use super::{disk, rules};
use crate::error::{Error, ErrorKind};
use crate::text::nearest::nearest;
use crate::unix;
use crate::whole_file::folder_of;

/// Advice for a conversation that does not exist.
const LISTED: &str = "q --list lists the conversations";

/// What a conversation is found for.
#[derive(Clone, Copy, PartialEq)]
pub enum Purpose {
    /// To show it, copy it or delete it.
    Look,
    /// To change what it has.
    Change,
    /// To ask a question in it.
    Ask,
}

/// Where a conversation is, and how the user names it.
#[derive(Clone)]
pub struct Handle {
    pub folder: Folder,
    /// A number of the list is replaced by the name, id or path that it stands for.
    pub which: Which,
    purpose: Purpose,
    /// Its file, or a link to that.
    pub link: PathBuf,
    /// Its file, without links at its end. It need not exist.
    pub path: PathBuf,
}

/// Finds a conversation, which need not exist. For a question, a file in the place of a link gets an id first.
pub fn find(folder: &Folder, which: &Which, purpose: Purpose) -> Result<Handle, Error> {
    if !matches!(which, Which::File(_)) {
        folder.check().map_err(Error::file)?;
    }
    let link = match which {
        Which::Current(name) => folder.file(name),
        Which::Named(name) => folder.file_of(name),
        Which::Number(number) => with_number(folder, *number)?,
        Which::File(path) => folder.as_written(path),
    };
    let mut path = folder.resolve(&link);
    if purpose == Purpose::Ask && folder.is_in_place_of_link(&path) {
        // Asking waits for no lock. Where this cannot be done now, the file is read where it is.
        if let Ok(_lock) = lock::try_acquire(&folder.sessions) {
            let _ = disk::adopt(folder, &path);
        }
        path = folder.resolve(&path);
    }
    let which = match which {
        Which::Number(_) => folder.which(&path),
        which => which.clone(),
    };
    if purpose != Purpose::Look
        && folder.kind(&path) == Kind::Foreign
        && let Ok(metadata) = path.metadata()
        && metadata.uid() != unix::effective_user()
    {
        // It would be replaced, and its user could not use it afterwards.
        let path = path.display();
        let error = Error::nothing(format!("{path} belongs to another user"));
        return Err(error.advise("run q as that user, or continue a copy of the file"));
    }
    Ok(Handle {
        folder: folder.clone(),
        which,
        purpose,
        link,
        path,
    })
}

/// The conversation with this number in the list, which leaves out files that cannot be used.
fn with_number(folder: &Folder, number: usize) -> Result<PathBuf, Error> {
    let reason = format!("there is no conversation %{number}");
    let mut missing = Error::nothing(reason).advise(LISTED);
    let mut left = number;
    for file in folder.files(false).map_err(Error::file)? {
        match disk::read(&file.path) {
            Ok(Some(_)) => left -= 1,
            Err(error) if !rules::is_unusable(&error) => missing = Error::file(error),
            _ => {}
        }
        if left == 0 {
            return Ok(file.path);
        }
    }
    Err(missing)
}

impl Handle {
    /// Opens the conversation; `None` if there is none.
    pub fn open(&self) -> Result<Option<Conversation>, Error> {
        let error = match disk::read(&self.path) {
            Ok(None) if self.path.is_symlink() && !self.which.is_current() => {
                io::Error::other("it is a link that leads nowhere")
            }
            Ok(found) => return Ok(found),
            Err(error) => error,
        };
        let is_unusable = rules::is_unusable(&error);
        let mut reason = error.to_string();
        if is_unusable {
            reason = format!("{}: {reason}", self.path.display());
        }
        let asks = self.purpose == Purpose::Ask;
        let is_usage = match self.which {
            Which::File(_) => true,
            Which::Current(_) => false,
            _ => asks && is_unusable,
        };
        if !is_usage {
            return Err(Error::file(reason));
        }
        // Naming a file that cannot be used is a usage error.
        let mut usage = Error::new(ErrorKind::Session, reason);
        if asks {
            usage = usage
                .advise("it was left as it is; -s with another name starts another conversation");
        }
        Err(usage)
    }

    /// Opens the conversation; it is an error if a name or an id has none.
    pub fn open_existing(&self) -> Result<Option<Conversation>, Error> {
        let conversation = self.open()?;
        if conversation.is_none() && !self.which.is_current() {
            return Err(self.missing());
        }
        Ok(conversation)
    }

    /// The value for `-s` that names it: its name, its id, or the path of its file.
    pub fn id(&self) -> String {
        self.folder.id(&self.path)
    }

    /// Locks the folder of its file, and then the one where a link to it and its earlier states may be.
    pub(super) fn lock(&self, give_up: GiveUp) -> io::Result<Lock> {
        self.prepare_lock().wait(give_up)
    }

    /// Prepares the request for this lock.
    pub(super) fn prepare_lock(&self) -> LockRequest {
        let place = folder_of(&self.path);
        let sessions = &*self.folder.sessions;
        let mut directories = vec![place];
        // A file elsewhere can be changed without it.
        if place != sessions && File::open(sessions).is_ok() {
            directories.push(sessions);
        }
        LockRequest::prepare(&directories, true)
    }

    /// The name of another conversation that is most similar to this one's.
    pub fn nearest(&self) -> Option<String> {
        let name = match &self.which {
            Which::Named(name) if !self.which.is_generated() => name,
            _ => return None,
        };
        let mut others = Vec::new();
        for listed in self.folder.files(false).unwrap_or_default() {
            if self.folder.kind(&listed.path) == Kind::Named {
                others.push(self.folder.id(&listed.path));
            }
        }
        nearest(name, others)
    }

    /// The error for a conversation that must exist and does not. The advice has a similar name, if there is one.
    pub fn missing(&self) -> Error {
        let meant = match self.nearest() {
            Some(name) => format!("did you mean {name}? "),
            None => String::new(),
        };
        let error = Error::nothing(format!("there is no conversation {}", self.id()));
        error.advise(format!("{meant}{LISTED}"))
    }
}
