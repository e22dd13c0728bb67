//! What a run needs to know: the environment, the paths, the conversation, where notes go, and what a signal does.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;

use crate::answers::{AnswerCache, Sharing};
use crate::error::Error;
use crate::flags::Arguments;
use crate::interrupt::Interrupts;
use crate::output::{DisplayOptions, Notes, Styling};
use crate::scratch::ScratchPlaces;
use crate::session::directory::{NO_HOME, StateDirectory};
use crate::session::name::ConversationRef;
use crate::session::store::{self, Handle, Purpose};
use crate::session::title::title_of;
use crate::session::{self, Conversation};
use crate::settings::{Environment, Settings, Values, misspelt_variables};
use crate::text::one_line::beginning;

/// How many characters of a question a note shows.
const MAX_TITLE: usize = 60;

/// The values that stay the same for the entire run.
pub struct Context {
    pub environment: Environment,
    /// The configuration file, which need not exist.
    pub configuration: Option<PathBuf>,
    /// `None` without a home.
    pub directory: Option<StateDirectory>,
    /// The cache directory `q`; `None` without a home.
    pub cache: Option<PathBuf>,
    /// An error if `Q_SESSION` names none, which matters only to what needs a conversation.
    pub conversation: Result<ConversationRef, Error>,
    pub notes: Notes,
    pub interrupts: Arc<Interrupts>,
}

impl Context {
    /// Reads the settings for actions, and returns the valid ones.
    pub fn load_values(&self) -> Values {
        let (settings, _) = self.load_settings_leniently(&Arguments::default());
        settings.values
    }

    /// Reads the settings of this run. Returns the valid settings and the first fault.
    pub fn load_settings_leniently(&self, arguments: &Arguments) -> (Settings, Option<Error>) {
        let file = self.configuration.as_deref();
        Settings::load_leniently(arguments, &self.environment, file)
    }

    /// Returns the settings of this run.
    pub fn settings(&self, arguments: &Arguments) -> Result<Settings, Error> {
        let (settings, fault) = self.load_settings_leniently(arguments);
        // Before any fault, because that may be that something is missing which the file has.
        if let Some(obstacle) = &settings.obstacle
            && let Some(file) = &settings.file
        {
            self.notes.note(&format!(
                "{} {obstacle}; set XDG_CONFIG_HOME to use another directory",
                file.display()
            ));
        }
        if let Some(fault) = fault {
            return Err(fault);
        }
        for note in misspelt_variables(&self.environment) {
            self.notes.note(&note);
        }
        Ok(settings)
    }

    /// Returns how an answer is shown on a terminal.
    pub fn display_options(&self, values: &Values) -> DisplayOptions {
        let styling = self.notes.terminal().styling;
        DisplayOptions {
            wraps: values.wrap && styling != Styling::Dumb,
            styles: values.style && styling == Styling::Full,
        }
    }

    /// Returns where cached answers are; `None` without a directory for them.
    pub fn answers(&self, values: &Values) -> Option<AnswerCache> {
        if let Some(path) = &values.answers {
            return Some(AnswerCache {
                directory: path.into(),
                sharing: Sharing::Shared,
            });
        }
        Some(AnswerCache {
            directory: self.cache.as_ref()?.join("answers"),
            sharing: Sharing::Private,
        })
    }

    /// Returns where the temporary directories of confined programs are made.
    pub fn scratch_places(&self) -> ScratchPlaces {
        ScratchPlaces::new(self.cache.as_deref(), self.environment.get_os("TMPDIR"))
    }

    /// Returns where the conversations are.
    pub fn directory(&self) -> Result<&StateDirectory, Error> {
        self.directory.as_ref().ok_or_else(|| {
            Error::file(NO_HOME).advise("set HOME or XDG_STATE_HOME to have conversations")
        })
    }

    /// Returns how the user names this run's conversation.
    pub fn conversation(&self) -> Result<&ConversationRef, Error> {
        self.conversation.as_ref().map_err(Clone::clone)
    }

    /// Finds this run's conversation. A terminal is told which one a number means.
    pub fn find(&self, purpose: Purpose) -> Result<Handle, Error> {
        let handle = self.handle_for(purpose)?;
        if let ConversationRef::Number(number) = self.conversation()?
            && io::stdout().is_terminal()
        {
            self.notes.note(&number_note(*number, &handle));
        }
        Ok(handle)
    }

    /// Finds this run's conversation to look at it, and does not say which one a number means.
    pub fn find_quietly(&self) -> Result<Handle, Error> {
        self.handle_for(Purpose::Look)
    }

    fn handle_for(&self, purpose: Purpose) -> Result<Handle, Error> {
        let which = self.conversation()?;
        let is_elsewhere = matches!(which, ConversationRef::File(_));
        if self.directory.is_none() && is_elsewhere {
            return store::find(&StateDirectory::nowhere(), which, purpose);
        }
        store::find(self.directory()?, which, purpose)
    }

    /// Opens this run's conversation, which must exist.
    pub fn open_existing(&self, purpose: Purpose) -> Result<(Handle, Conversation), Error> {
        let handle = self.find(purpose)?;
        let conversation = handle.open_named_or_current()?;
        let conversation =
            conversation.ok_or_else(|| Error::nothing("there is no conversation"))?;
        Ok((handle, conversation))
    }
}

/// Returns a note of which conversation a number of the list means: how it is named, and its question.
pub fn number_note(number: usize, handle: &Handle) -> String {
    let option = handle.which.option();
    let conversation = session::read(&handle.path).ok().flatten();
    match conversation.as_ref().and_then(title_of) {
        Some(title) => format!("%{number} is{option}: {}", beginning(&title, MAX_TITLE)),
        None => format!("%{number} is{option}"),
    }
}
