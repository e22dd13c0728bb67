//! What a run needs to know: the environment, the paths, the conversation, and where notes go.

use std::path::PathBuf;

use crate::error::Error;
use crate::output::Notes;
use crate::session::folder::Folder;
use crate::session::name::Which;
use crate::settings::{Environment, Values};

/// A name less similar than this (Jaro-Winkler, 0 to 1) is not suggested.
const LIKENESS: f64 = 0.8;

/// What stays the same for the whole run.
pub(crate) struct Context {
    pub(crate) environment: Environment,
    /// The configuration file, which need not exist.
    pub(crate) configuration: PathBuf,
    /// `None` without a home.
    pub(crate) folder: Option<Folder>,
    pub(crate) which: Which,
    pub(crate) notes: Notes,
}

/// Where a conversation is, or will be.
pub(crate) struct Place<'a> {
    pub(crate) folder: &'a Folder,
    pub(crate) which: &'a Which,
    pub(crate) path: PathBuf,
}

impl Context {
    /// Whether prose is wrapped if it goes to a terminal.
    pub(crate) fn wraps(&self, values: &Values) -> bool {
        values.wrap && self.environment.get("TERM") != Some("dumb")
    }

    /// Where this run's conversation is.
    ///
    /// # Errors
    /// `File`: there is no home folder, or the search for a conversation's id failed.
    pub(crate) fn place(&self) -> Result<Place<'_>, Error> {
        let folder = self.folder.as_ref().ok_or_else(|| {
            Error::file("there is no home folder, so there are no conversations").advise("set HOME or XDG_STATE_HOME")
        })?;
        let path = folder.path(&self.which).map_err(|error| Error::file(error.to_string()))?;
        Ok(Place { folder, which: &self.which, path })
    }
}

impl Place<'_> {
    /// The name of another conversation that is most similar to the given one.
    pub(crate) fn nearest(&self) -> Option<String> {
        let Which::Named(name) = self.which else { return None };
        let others = self.folder.all().unwrap_or_default().into_iter();
        let others = others.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
        let others = others.filter(|other| other != name && Which::is_name(other));
        others
            .map(|other| (strsim::jaro_winkler(name, &other), other))
            .filter(|(likeness, _)| *likeness >= LIKENESS)
            .max_by(|one, other| one.0.total_cmp(&other.0))
            .map(|(_, other)| other)
    }

    /// Refuses to replace a file that its owner could not use afterwards.
    ///
    /// # Errors
    /// `File`: it belongs to another user, and not everybody may read and write it.
    pub(crate) fn spare_owner(&self) -> Result<(), Error> {
        if !self.folder.locks_owner_out(&self.path) {
            return Ok(());
        }
        let path = self.path.display();
        Err(Error::file(format!("{path} belongs to another user, who could no longer use it once q has written it"))
            .advise("run q as that user, or continue a copy of the file"))
    }

    /// The conversation in a message: its name or its id, or the path of a file.
    pub(crate) fn name(&self) -> String {
        match self.which {
            Which::File(path) => path.display().to_string(),
            _ => self.path.file_stem().unwrap_or_default().display().to_string(),
        }
    }

    /// The error for a conversation that must exist and does not, with a similar name and how to list the others.
    pub(crate) fn missing(&self) -> Error {
        let meant = self.nearest().map_or_else(String::new, |name| format!("did you mean {name}? "));
        Error::nothing(format!("there is no conversation {}", self.name()))
            .advise(format!("{meant}q --list lists the conversations"))
    }
}
