//! What a run needs to know: the environment, the paths, the conversation, and where notes go.

use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use crate::error::Error;
use crate::nearest::nearest;
use crate::output::{Look, Notes};
use crate::session::folder::{ConversationLocation, Folder};
use crate::session::name::Which;
use crate::session::rules::Rules;
use crate::settings::{Environment, Values};

/// Advice for a conversation that does not exist.
const LISTED: &str = "q --list lists the conversations";

/// The values that stay the same for the entire run.
pub struct Context {
    pub environment: Environment,
    /// The configuration file, which need not exist.
    pub configuration: PathBuf,
    /// `None` without a home.
    pub folder: Option<Folder>,
    pub which: Which,
    pub notes: Notes,
}

/// Where a run's conversation is, and how the user names it.
#[derive(Debug)]
pub struct Place {
    pub folder: Folder,
    /// A number of the list is replaced by the name, id or path that it stands for.
    pub which: Which,
    pub location: ConversationLocation,
}

impl Context {
    /// How an answer looks on a terminal.
    pub fn look(&self, values: &Values) -> Look {
        if self.environment.get("TERM") == Some("dumb") {
            return Look::default();
        }
        // See no-color.org.
        let no_color = self.environment.get("NO_COLOR").is_some();
        Look {
            wraps: values.wrap,
            styles: values.style && !no_color,
        }
    }

    /// Where this run's conversation is.
    pub fn place(&self) -> Result<Place, Error> {
        let Some(folder) = &self.folder else {
            let error = Error::file("there is no home folder, so there are no conversations");
            return Err(error.advise("set HOME or XDG_STATE_HOME"));
        };
        if !matches!(self.which, Which::File(_))
            && let Err(error) = folder.check_owner()
        {
            return Err(Error::file(error.to_string()));
        }
        let location = folder.locate(&self.which).map_err(|error| {
            // The list has no such number.
            if error.kind() == io::ErrorKind::NotFound {
                Error::nothing(error.to_string()).advise(LISTED)
            } else {
                Error::file(error.to_string())
            }
        })?;
        let mut which = self.which.clone();
        if let Which::Number(number) = self.which {
            which = folder.which(&location.path);
            if io::stdout().is_terminal() {
                let option = which.option();
                self.notes.note(&format!("%{number} is{option}"));
            }
        }
        Ok(Place {
            folder: folder.clone(),
            which,
            location,
        })
    }
}

/// What the settings say about conversations.
pub fn rules(values: &Values) -> Rules {
    Rules {
        pairs: values.pairs,
        keep: values.keep,
        expire: values.expire,
        continue_on_mismatch: values.continue_on_mismatch,
    }
}

impl Place {
    /// The name of another conversation that is most similar to this one's.
    pub fn nearest(&self) -> Option<String> {
        let Which::Named(name) = &self.which else {
            return None;
        };
        let mut others = Vec::new();
        for listed in self.folder.list(false).unwrap_or_default() {
            let stem = listed.path.file_stem().and_then(OsStr::to_str);
            let Some(other) = stem else { continue };
            if other != name && matches!(Which::from_stem(other), Which::Named(_)) {
                others.push(other.to_owned());
            }
        }
        nearest(name, others)
    }

    /// Refuses to replace a file whose owner or group could not use it afterwards.
    pub fn check_owner(&self) -> Result<(), Error> {
        if !self.folder.cannot_keep_owner(&self.location.path) {
            return Ok(());
        }
        let path = self.location.path.display();
        let error = Error::file(format!(
            "{path} belongs to another user or group, who could no longer use it once q has written it"
        ));
        Err(error.advise("run q as that user, or continue a copy of the file"))
    }

    /// What messages call the conversation: its name or its id, or the path of a file.
    pub fn name(&self) -> String {
        match &self.which {
            Which::Named(name) | Which::Id(name) => name.clone(),
            _ => self.location.path.display().to_string(),
        }
    }

    /// The error for a conversation that must exist and does not. The advice has a similar name, if there is one.
    pub fn missing(&self) -> Error {
        let meant = match self.nearest() {
            Some(name) => format!("did you mean {name}? "),
            None => String::new(),
        };
        let error = Error::nothing(format!("there is no conversation {}", self.name()));
        error.advise(format!("{meant}{LISTED}"))
    }
}
