//! A program as it is started: its file, its arguments, and what it gets of q's environment.

use std::ffi::OsString;
use std::path::PathBuf;

use super::confined::Confined;

/// A program that can be started.
#[derive(Debug, Clone)]
pub struct Program {
    pub file: PathBuf,
    /// The program and its arguments as they are configured; no shell reads them.
    pub command: Vec<String>,
    /// Its environment; it gets no other variables.
    pub environment: Vec<(String, OsString)>,
    /// Where it starts; `None` for the temporary directory of a confined program.
    pub directory: Option<PathBuf>,
    /// `None` if it may do all that the user may do.
    pub confined: Option<Confined>,
}
