//! Opens conversations: the only place where their files are found, and where the errors of that get their words.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::conversation::Conversation;
use super::disk;
use super::folder::{Folder, is_current};
use super::list;
use super::lock::{GiveUp, Lock, PATIENTLY};
use super::name::Which;
use super::pointer;
use super::rules::FileContent;
use crate::error::{Error, ErrorKind};
use crate::text::nearest::nearest;
use crate::unix;

/// Advice for a conversation that does not exist.
const LISTED: &str = "q --list lists the conversations";

/// What a conversation is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To show it, copy it or delete it.
    Look,
    /// To change what it has.
    Change,
    /// To ask a question in it.
    Ask,
}

/// Where a conversation is, and how the user names it.
#[derive(Debug, Clone)]
pub struct Handle {
    pub folder: Folder,
    /// A number of the list is replaced by the name, id or path that it stands for.
    pub which: Which,
    /// Its file, without links at its end. It need not exist.
    pub path: PathBuf,
}

/// A conversation that was looked for, and what was found.
pub struct Opened {
    pub handle: Handle,
    pub purpose: Purpose,
    pub found: io::Result<FileContent>,
}

/// Finds a conversation and reads it.
pub fn open(folder: &Folder, which: &Which, purpose: Purpose) -> Result<Opened, Error> {
    let handle = find(folder, which, purpose)?;
    Ok(Opened {
        found: disk::read(&handle.path),
        handle,
        purpose,
    })
}

/// Finds a conversation, which need not exist.
pub fn find(folder: &Folder, which: &Which, purpose: Purpose) -> Result<Handle, Error> {
    if !matches!(which, Which::File(_)) {
        folder.check().map_err(Error::file)?;
    }
    let mut path = match which {
        Which::Current(name) | Which::Named(name) => folder.resolve(&folder.file(name)),
        Which::Id(id) => folder.file_of_id(id),
        Which::Number(number) => with_number(folder, *number)?,
        Which::File(path) => folder.as_written(path),
    };
    if purpose == Purpose::Ask && folder.has(&path) && is_current(&path) {
        // Where that cannot be done, a file in place of the link is read where it is.
        if let Ok(_lock) = Lock::acquire(&folder.sessions, PATIENTLY) {
            let _ = pointer::adopt(folder, &path);
        }
        path = folder.resolve(&path);
    }
    let which = match which {
        Which::Number(_) => folder.which(&path),
        which => which.clone(),
    };
    let handle = Handle {
        folder: folder.clone(),
        which,
        path,
    };
    if purpose != Purpose::Look {
        handle.check_owner()?;
    }
    Ok(handle)
}

/// The conversation with this number in the list, which leaves out files that cannot be used.
fn with_number(folder: &Folder, number: usize) -> Result<PathBuf, Error> {
    let mut left = number;
    for file in list::files(folder, false).map_err(Error::file)? {
        if let FileContent::Conversation(_) = disk::read(&file.path).map_err(Error::file)? {
            left -= 1;
        }
        if left == 0 {
            return Ok(folder.resolve(&file.path));
        }
    }
    let error = Error::nothing(format!("there is no conversation %{number}"));
    Err(error.advise(LISTED))
}

impl Opened {
    /// The conversation; `None` if there is none.
    pub fn conversation(self) -> Result<(Handle, Option<Conversation>), Error> {
        let handle = self.handle;
        let (reason, is_unusable) = match self.found {
            Ok(FileContent::Conversation(found)) => return Ok((handle, Some(found))),
            Ok(FileContent::Nothing) if handle.which.is_current() || !handle.path.is_symlink() => {
                return Ok((handle, None));
            }
            Ok(FileContent::Nothing) => {
                let path = handle.path.display();
                (format!("{path} is a link that leads nowhere"), true)
            }
            Ok(FileContent::Unusable(reason)) => {
                let path = handle.path.display();
                (format!("{path}: {reason}"), true)
            }
            Err(error) => (error.to_string(), false),
        };
        // Naming a file that cannot be used is a usage error.
        let asks = self.purpose == Purpose::Ask;
        let is_usage = match handle.which {
            Which::File(_) => true,
            Which::Current(_) => false,
            _ => asks && is_unusable,
        };
        if !is_usage {
            return Err(Error::file(reason));
        }
        let error = Error::new(ErrorKind::Session, reason);
        if !asks {
            return Err(error);
        }
        Err(error.advise("it was left as it is; -s with another name starts another conversation"))
    }

    /// The conversation; it is an error if a name or an id has none.
    pub fn existing(self) -> Result<(Handle, Option<Conversation>), Error> {
        let (handle, conversation) = self.conversation()?;
        if conversation.is_none() && !handle.which.is_current() {
            return Err(handle.missing());
        }
        Ok((handle, conversation))
    }
}

impl Handle {
    /// The link that makes it the current one, if it was found by that. It need not exist.
    pub fn link(&self) -> Option<PathBuf> {
        match &self.which {
            Which::Current(name) => Some(self.folder.file(name)),
            _ => None,
        }
    }

    /// The value for `-s` that names it: its name, its id, or the path of its file.
    pub fn id(&self) -> String {
        self.folder.id(&self.path)
    }

    /// Locks its file's folder.
    pub(super) fn lock(&self, give_up: GiveUp) -> io::Result<Lock> {
        Lock::acquire(self.path.parent().unwrap_or(&self.path), give_up)
    }

    /// The name of another conversation that is most similar to this one's.
    pub fn nearest(&self) -> Option<String> {
        let Which::Named(name) = &self.which else {
            return None;
        };
        let mut others = Vec::new();
        for listed in list::files(&self.folder, false).unwrap_or_default() {
            if let Which::Named(other) = self.folder.which(&listed.path)
                && other != *name
            {
                others.push(other);
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

    /// Refuses to replace a file of another user, who could not use it afterwards.
    fn check_owner(&self) -> Result<(), Error> {
        if let Ok(metadata) = self.path.metadata()
            && metadata.uid() != unix::effective_user()
            && !self.folder.has(&self.path)
        {
            let path = self.path.display();
            let error = Error::nothing(format!("{path} belongs to another user"));
            return Err(error.advise("run q as that user, or continue a copy of the file"));
        }
        Ok(())
    }
}
