//! What q does without asking a model: no standard input is read, no request is sent.

use std::io::Write;
use std::time::Duration;

use crate::error::{Error, Kind};
use crate::output::Notes;
use crate::session::folder::{self, Folder, NoLock};
use crate::settings::Environment;

/// How long an action waits for the lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// Deletes the current conversation.
///
/// # Errors
/// `File`: it is still there.
pub(crate) fn clear(environment: Environment, notes: &Notes) -> Result<(), Error> {
    let folder = Folder::find(environment).ok_or_else(no_home)?;
    if folder.exists() {
        let _lock = match folder.lock(&|waited| waited >= LOCK_PATIENCE) {
            Ok(lock) => Some(lock),
            Err(NoLock::Unsupported) => None,
            Err(NoLock::Busy) => {
                return Err(Error::file("another q holds the lock of the conversations").advise("try again"));
            }
            Err(NoLock::Failed(error)) => return Err(Error::file(error.to_string())),
        };
        folder::remove(&folder.current()).map_err(|error| Error::file(error.to_string()))?;
    }
    print("Conversation cleared\n")?;
    if folder.has_others(&folder.current()) {
        notes.note("older conversations are kept");
    }
    Ok(())
}

/// Prints what was asked for.
///
/// # Errors
/// `Output`: it could not be written. A reader that has gone away is no error.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::new(Kind::Output, format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

fn no_home() -> Error {
    Error::file("there is no home folder, so there are no conversations").advise("set HOME or XDG_STATE_HOME")
}
