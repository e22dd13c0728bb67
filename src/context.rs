//! What surrounds a run: the environment, where things are kept, which conversation is meant, and where notes go.

use std::path::PathBuf;

use crate::error::Error;
use crate::output::Notes;
use crate::session::folder::Folder;
use crate::session::name::Which;
use crate::settings::Environment;

/// The same for all that one run does.
pub(crate) struct Context<'a> {
    pub(crate) environment: Environment<'a>,
    /// The configuration file, which need not be there.
    pub(crate) configuration: PathBuf,
    /// `None` without a home.
    pub(crate) folder: Option<Folder>,
    pub(crate) which: Which,
    pub(crate) notes: &'a Notes,
}

impl Context<'_> {
    /// The folder of the conversations.
    ///
    /// # Errors
    /// `File`: there is no home.
    pub(crate) fn folder(&self) -> Result<&Folder, Error> {
        self.folder.as_ref().ok_or_else(|| {
            Error::file("there is no home folder, so there are no conversations").advise("set HOME or XDG_STATE_HOME")
        })
    }
}
