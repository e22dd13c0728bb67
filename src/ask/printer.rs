//! Records and prints an answer, piece by piece or once it is complete.

use std::sync::Arc;

use super::answer_form::Output;
use super::record::Record;
use crate::error::{Error, ErrorKind};
use crate::output::{DisplayOptions, Notes, OutputError, Screen, Stdout};
use crate::provider::kept::MAX_KEPT;
use crate::provider::reply::Piece;
use crate::server::api_client::ApiError;

/// The way in which an answer is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Printing {
    /// Each piece as it comes.
    Live,
    /// The whole text, once it is complete.
    Whole,
    /// Something that is made of it once it is complete: code, JSON, or JSON about it.
    Excerpt,
}

/// Why an answer did not come to its end, or was not printed to it.
pub enum AnswerFailure {
    Failed(ApiError),
    Unprinted(OutputError),
    /// The answer is printed only when it is complete, and is longer than q keeps.
    TooLong(Error),
}

/// Standard output, and the record of what comes.
pub struct Printer {
    pub screen: Arc<Screen>,
    pub printing: Printing,
    record: Arc<Record>,
    notes: Notes,
}

impl Printer {
    /// With tools, only the text after the last calls is the answer. So a pipe or a file gets no text before the end.
    pub fn new(
        output: &Output,
        has_tools: bool,
        display: DisplayOptions,
        record: &Arc<Record>,
        notes: &Notes,
    ) -> Result<Printer, Error> {
        let mut stdout = Stdout::open(notes.terminal())?;
        let shows_steps = !has_tools || stdout.is_terminal;
        let printing = if !output.is_text() {
            Printing::Excerpt
        } else if shows_steps && output.streams {
            Printing::Live
        } else {
            Printing::Whole
        };
        if printing != Printing::Excerpt {
            stdout.set_display(display);
        }
        let screen = Screen::new(stdout);
        let shown = Arc::clone(&screen);
        record.save_on_signal(move || drop(shown.end()));
        Ok(Printer {
            screen,
            printing,
            record: Arc::clone(record),
            notes: notes.clone(),
        })
    }

    /// Records a piece of the answer, and prints it if the answer is printed as it arrives.
    pub fn take(&self, mut piece: Piece) -> Result<(), AnswerFailure> {
        let is_kept = self.record.push(&mut piece);
        if self.printing != Printing::Live {
            return if is_kept { Ok(()) } else { Err(too_long()) };
        }
        if piece.text.is_empty() {
            return Ok(());
        }
        self.notes.spinner().stop();
        self.screen
            .show(&piece.text)
            .map_err(AnswerFailure::Unprinted)
    }

    /// Ends the text before calls, which are about to run.
    pub fn end_text(&self) -> Result<(), AnswerFailure> {
        self.notes.spinner().stop();
        match self.printing {
            Printing::Live => self.screen.end().map_err(AnswerFailure::Unprinted),
            Printing::Whole | Printing::Excerpt => Ok(()),
        }
    }

    /// Whether the text of a reply has been printed once it has come.
    pub fn is_live(&self) -> bool {
        self.printing == Printing::Live
    }

    /// Whether a person watches the run.
    pub fn is_watched(&self) -> bool {
        self.is_live() && self.screen.is_terminal
    }
}

/// The error for an answer that cannot be kept until it is complete.
fn too_long() -> AnswerFailure {
    let message =
        format!("the answer has more than {MAX_KEPT} bytes, so it is neither printed nor saved");
    let error = Error::new(ErrorKind::Output, message);
    AnswerFailure::TooLong(error.advise(
        "without -x, -j, --schema and --no-stream, and in a pipe without tools, it is printed as it comes",
    ))
}
