//! What surrounds a run: the environment, where things are kept, which conversation is meant, and where notes go.

use std::path::PathBuf;

use crate::error::Error;
use crate::output::Notes;
use crate::session::folder::Folder;
use crate::session::name::Which;
use crate::settings::Environment;

/// The same for all that one run does.
pub(crate) struct Context {
    pub(crate) environment: Environment,
    /// The configuration file, which need not be there.
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
    /// Where the conversation is that is meant.
    ///
    /// # Errors
    /// `File`: there is no home, or a conversation cannot be looked for by its id.
    pub(crate) fn place(&self) -> Result<Place<'_>, Error> {
        let folder = self.folder.as_ref().ok_or_else(|| {
            Error::file("there is no home folder, so there are no conversations").advise("set HOME or XDG_STATE_HOME")
        })?;
        let path = folder.path(&self.which).map_err(|error| Error::file(error.to_string()))?;
        Ok(Place { folder, which: &self.which, path })
    }
}
