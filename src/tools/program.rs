//! A program as it is started: its file, its arguments, and what it gets of q's environment.

use std::ffi::OsString;
use std::path::PathBuf;

use super::confined::Confined;

/// A program that can be started.
#[derive(Debug, Clone)]
pub struct Program {
    pub file: PathBuf,
    /// Its name or path as it is configured, but with the home directory in place of `~`.
    pub name: String,
    /// Those that it always gets, as they are configured; no shell reads them. A command that the model calls gets others.
    pub arguments: Vec<String>,
    /// Its environment; it gets no other variables.
    pub environment: Vec<(String, OsString)>,
    /// The names of q's own variables that it does not get, for advice.
    pub withheld: Vec<String>,
    /// Where it starts; `None` for the temporary directory of a confined program.
    pub directory: Option<PathBuf>,
    /// `None` if it may do all that the user may do.
    pub confined: Option<Confined>,
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Program {
        /// A shell that runs a script, for tests of what it does.
        pub fn shell(script: &str) -> Program {
            Program {
                file: "/bin/sh".into(),
                name: "/bin/sh".to_owned(),
                arguments: ["-c", script].map(str::to_owned).to_vec(),
                environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
                withheld: Vec::new(),
                directory: Some("/".into()),
                confined: None,
            }
        }
    }
}
