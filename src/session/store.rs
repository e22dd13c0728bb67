//! Finds conversations and opens them.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::conversation::Conversation;
use super::directory::{self, StateDirectory};
use super::lock::{self, GiveUp, Lock, LockRequest};
use super::name::{ConversationRef, option_of};
use super::rules::FileKind;
use super::{disk, name};
use crate::error::{Error, ErrorKind};
use crate::text::nearest::nearest;
use crate::unix;
use crate::whole_file::{ReadFailure, broken_link, directory_of};

/// Advice for a conversation that does not exist.
const LISTED: &str = "run q --list to list the conversations";

/// The purpose for which a conversation is found.
#[derive(Clone, Copy, PartialEq)]
pub enum Purpose {
    /// To show it, copy it or delete it.
    Look,
    /// To change what it has.
    Change,
    /// To ask a question in it.
    Ask,
}

/// A conversation's place, and how the user names it.
#[derive(Clone)]
pub struct Handle {
    pub directory: StateDirectory,
    /// A number of the list is replaced by the name, id or path that it means.
    pub which: ConversationRef,
    purpose: Purpose,
    /// Its file, or a link to that.
    pub link: PathBuf,
    /// Its file, without links at its end. It need not exist.
    pub path: PathBuf,
}

/// Finds a conversation, which need not exist. For a question, a file in the place of a link gets an id first.
pub fn find(
    directory: &StateDirectory,
    which: &ConversationRef,
    purpose: Purpose,
) -> Result<Handle, Error> {
    if !matches!(which, ConversationRef::File(_)) {
        directory.check().map_err(Error::file)?;
    }
    let link = match which {
        ConversationRef::Current(name) => directory.path_of(name),
        ConversationRef::Named(name) => path_of_name(directory, name),
        ConversationRef::Number(number) => with_number(directory, *number)?,
        ConversationRef::File(path) => directory.normalize(path),
    };
    let mut path = read_link_or_self(directory, &link);
    if purpose == Purpose::Ask && directory.is_in_place_of_link(&path) {
        // Asking waits for no lock. Where this cannot be done now, the file is read where it is.
        if let Ok(_lock) = lock::try_acquire(&directory.sessions) {
            let _ = disk::migrate_to_link(directory, &path);
        }
        path = read_link_or_self(directory, &path);
    }
    let which = match which {
        ConversationRef::Number(_) => match directory.name_of(&path) {
            Some(name) => ConversationRef::Named(name),
            None => ConversationRef::File(path.clone()),
        },
        which => which.clone(),
    };
    if purpose != Purpose::Look && directory.kind(&path) == FileKind::External {
        check_owner(&path)?;
    }
    Ok(Handle {
        directory: directory.clone(),
        which,
        purpose,
        link,
        path,
    })
}

/// Returns the file that a link leads to. A link that cannot be followed is looked at where it is.
fn read_link_or_self(directory: &StateDirectory, link: &Path) -> PathBuf {
    let path = directory.read_link(link);
    path.unwrap_or_else(|_| link.to_owned())
}

/// Returns the path of the conversation with this name or id, or of a backup. The backups of a name that is a link are those of
/// what it leads to.
fn path_of_name(directory: &StateDirectory, name: &str) -> PathBuf {
    let base = name::base(name);
    let path = read_link_or_self(directory, &directory.path_of(base));
    match directory.name_of(&path) {
        Some(id) => directory.path_of(&name.replacen(base, &id, 1)),
        None => directory.path_of(name),
    }
}

/// Refuses a file of another user: it would be replaced, and that user could not use it afterwards.
fn check_owner(path: &Path) -> Result<(), Error> {
    match path.metadata() {
        Ok(metadata) if metadata.uid() != unix::effective_user() => {
            let error = Error::nothing(format!("{} belongs to another user", path.display()));
            Err(error.advise("run q as that user, or continue a copy of the file"))
        }
        _ => Ok(()),
    }
}

/// Returns the conversation with this number in the list, which leaves out files that cannot be used.
fn with_number(directory: &StateDirectory, number: usize) -> Result<PathBuf, Error> {
    let reason = format!("there is no conversation %{number}");
    let mut missing = Error::nothing(reason).advise(LISTED);
    let mut left = number;
    for file in directory.files(false).map_err(Error::file)? {
        match disk::read(&file.path) {
            Ok(Some(_)) => left -= 1,
            Err(ReadFailure::System(error)) => missing = Error::file(error),
            Ok(None) | Err(ReadFailure::Unusable(_)) => {}
        }
        if left == 0 {
            return Ok(file.path);
        }
    }
    Err(missing)
}

impl Handle {
    /// Opens the conversation; `None` if there is none. A link that leads to nothing is none, but nothing can be written there.
    pub fn open(&self) -> Result<Option<Conversation>, Error> {
        let asks = self.purpose == Purpose::Ask;
        let failure = match disk::read(&self.path) {
            Ok(None) if asks && !self.which.is_current() => match broken_link(&self.path) {
                Some(link) => disk::unusable(&self.path, &format!("it is {link}")),
                None => return Ok(None),
            },
            Ok(found) => return Ok(found),
            Err(failure) => failure,
        };
        let is_unusable = matches!(failure, ReadFailure::Unusable(_));
        let reason = failure.to_string();
        // To name a file that cannot be used is a usage error.
        let is_usage = match self.which {
            ConversationRef::File(_) => true,
            ConversationRef::Current(_) => false,
            ConversationRef::Named(_) | ConversationRef::Number(_) => asks && is_unusable,
        };
        if !is_usage {
            return Err(Error::file(reason));
        }
        let mut usage = Error::new(ErrorKind::Session, reason);
        if asks {
            usage = usage.advise(self.advice_in_its_place());
        }
        Err(usage)
    }

    /// Says what to do where its file cannot be used for a question.
    fn advice_in_its_place(&self) -> String {
        let start =
            "use -s with another name to start another conversation; the file was not changed";
        let files = self.directory.files(true).unwrap_or_default();
        let mut newest_first = files.iter();
        match newest_first.find(|file| self.directory.is_backup_of(&file.path, &self.path)) {
            Some(backup) => {
                let option = option_of(&self.directory.id(&backup.path));
                format!("continue its backup with{option}, or {start}")
            }
            None => start.to_owned(),
        }
    }

    /// Opens the conversation; it is an error if a name or an id has none.
    pub fn open_named_or_current(&self) -> Result<Option<Conversation>, Error> {
        let conversation = self.open()?;
        if conversation.is_none() && !self.which.is_current() {
            return Err(self.missing());
        }
        Ok(conversation)
    }

    /// Returns the value for `-s` that names it: its name, its id, or the path of its file.
    pub fn id(&self) -> String {
        self.directory.id(&self.path)
    }

    /// Makes q's own directory, unless the file is elsewhere, so that it can be written without that.
    pub(super) fn prepare_directory(&self) -> io::Result<()> {
        if self.directory.kind(&self.path) == FileKind::External {
            return Ok(());
        }
        self.directory.prepare()
    }

    /// Locks the directory of its file, and then the one where a link to it and its backups may be.
    pub(super) fn lock(&self, give_up: GiveUp) -> io::Result<Lock> {
        self.prepare_lock().wait(give_up)
    }

    /// Prepares the request for this lock.
    pub(super) fn prepare_lock(&self) -> LockRequest {
        let place = directory_of(&self.path);
        let sessions = &*self.directory.sessions;
        let mut directories = vec![place];
        // A file elsewhere can be changed without it.
        if place != sessions && File::open(sessions).is_ok() {
            directories.push(sessions);
        }
        LockRequest::prepare(&directories, true)
    }

    /// Returns the name of another conversation that is most similar to this one's, or the number that may be meant by it.
    pub fn nearest(&self) -> Option<String> {
        if let Some(number) = self.which.like_number() {
            return (number > 0).then(|| format!("%{number}"));
        }
        let name = match &self.which {
            ConversationRef::Named(name) if !self.which.is_generated() => name,
            _ => return None,
        };
        let mut others = Vec::new();
        for listed in self.directory.files(false).unwrap_or_default() {
            if self.directory.kind(&listed.path) == FileKind::Named {
                others.push(self.directory.id(&listed.path));
            }
        }
        nearest(name, others)
    }

    /// Refuses to begin this conversation: its name looks like a number of the list.
    pub fn refuse_new(&self) -> Result<(), Error> {
        if !matches!(directory::metadata(&self.path), Ok(None)) {
            return Ok(());
        }
        let Error {
            message, advice, ..
        } = self.missing();
        let message = format!(
            "{message}, and a new name of one to three digits would look like a number of the list"
        );
        Err(Error {
            advice,
            ..Error::usage(message)
        })
    }

    /// Returns the error for a conversation that must exist and does not. The advice has a similar name, if there is one.
    pub fn missing(&self) -> Error {
        let meant = match self.nearest() {
            Some(name) => format!("did you mean {name}? "),
            None => String::new(),
        };
        let id = self.id();
        let lists = if name::base(&id) == id {
            LISTED
        } else {
            "run q --list --all to list the backups, too"
        };
        let mut message = format!("there is no conversation {id}");
        if let Some(link) = broken_link(&self.path) {
            message += &format!(": {path} is {link}", path = self.path.display());
        }
        Error::nothing(message).advise(format!("{meant}{lists}"))
    }
}
