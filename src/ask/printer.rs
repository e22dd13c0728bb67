//! Prints an answer, piece by piece or once it is complete.

use std::sync::{Arc, Mutex};

use super::answer_form::{Form, Output};
use crate::error::{Error, ErrorKind};
use crate::output::{DisplayOptions, Notes, OutputError, Screen, Stdout};
use crate::provider::kept::MAX_KEPT;
use crate::provider::reply::Piece;
use crate::server::api_error::ApiError;
use crate::shape::{ItemFault, ItemReader};
use crate::text::size::in_units;
use crate::threads::lock;

/// When an answer is printed, and as what.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Printing {
    /// Each piece as it comes.
    Live,
    /// Each item of a list, once it is whole.
    Items,
    /// The whole text, once it is complete.
    Whole,
    /// Something that is made of it once it is complete: code, JSON, or JSON about it.
    Excerpt,
}

/// Whether the model may call tools after the text of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallsAhead {
    /// No tools are offered.
    None,
    /// It has called tools before, so this may be the answer.
    Possible,
    /// It has called none yet.
    Likely,
}

/// A reason why an answer did not come to its end, or was not printed to it.
pub enum AnswerFailure {
    Failed(ApiError),
    Unprinted(OutputError),
    /// An item of the list does not fit.
    Misfit(ItemFault),
    /// The answer is printed only when it is complete, and is longer than q keeps.
    TooLong(Error),
}

/// The way of an answer to standard output.
pub struct Printer {
    pub screen: Arc<Screen>,
    pub printing: Printing,
    /// Reads the items that are printed, if it is the items of a list.
    items: Option<Mutex<ItemReader>>,
    notes: Notes,
}

impl Printer {
    /// Decides how the answer is printed. With tools, only the text after the last calls is the answer, so a pipe or a file gets
    /// it once it is complete. Of the items of a list, see [`CallsAhead`].
    pub fn new(
        output: &Output,
        has_tools: bool,
        display: DisplayOptions,
        notes: &Notes,
    ) -> Result<Printer, Error> {
        let mut stdout = Stdout::open(notes.terminal())?;
        let shows_steps = !has_tools || stdout.is_terminal;
        let mut items = None;
        if let Form::Items(shape, place) = &output.form {
            items = Some(ItemReader::new(shape.checked_schema(), place.clone()).into());
        }
        let printing = if items.is_some() && output.streams {
            Printing::Items
        } else if !output.is_text() {
            Printing::Excerpt
        } else if shows_steps && output.streams {
            Printing::Live
        } else {
            Printing::Whole
        };
        if matches!(printing, Printing::Live | Printing::Whole) {
            stdout.set_display(display);
        }
        Ok(Printer {
            screen: Screen::new(stdout),
            printing,
            items,
            notes: notes.clone(),
        })
    }

    /// Prints a piece of the answer if that is printed as it arrives. What comes later can be printed only if the answer is kept.
    pub fn take(
        &self,
        piece: &Piece,
        is_kept: bool,
        calls_ahead: CallsAhead,
    ) -> Result<(), AnswerFailure> {
        match self.printing {
            Printing::Live if piece.text.is_empty() => Ok(()),
            Printing::Live => {
                self.notes.spinner().stop();
                let shown = self.screen.show(&piece.text);
                shown.map_err(AnswerFailure::Unprinted)
            }
            Printing::Items | Printing::Whole | Printing::Excerpt if !is_kept => {
                Err(self.too_long())
            }
            Printing::Items => self.print_items(piece, calls_ahead),
            Printing::Whole | Printing::Excerpt => Ok(()),
        }
    }

    /// Prints the items that end in a piece of the answer. What comes before calls is no part of it, so the text of a first reply
    /// waits until it is known that it has no calls, and an item that does not fit is an error only once it is known.
    fn print_items(&self, piece: &Piece, calls_ahead: CallsAhead) -> Result<(), AnswerFailure> {
        let Some(items) = &self.items else {
            return Ok(());
        };
        let items = &mut *lock(items);
        match calls_ahead {
            CallsAhead::None => self.print_items_in(piece, items),
            CallsAhead::Likely => Ok(()),
            CallsAhead::Possible => match self.print_items_in(piece, items) {
                Err(AnswerFailure::Misfit(_)) => {
                    items.give_up();
                    Ok(())
                }
                printed => printed,
            },
        }
    }

    fn print_items_in(&self, piece: &Piece, items: &mut ItemReader) -> Result<(), AnswerFailure> {
        let (mut before, mut rest) = piece.text.split_at(piece.part_begin.unwrap_or(0));
        self.print_next_items(items, &mut before)?;
        if piece.part_begin.is_some() {
            items.begin_part();
        }
        self.print_next_items(items, &mut rest)
    }

    fn print_next_items(
        &self,
        items: &mut ItemReader,
        text: &mut &str,
    ) -> Result<(), AnswerFailure> {
        while let Some(line) = items.next(text).map_err(AnswerFailure::Misfit)? {
            self.notes.spinner().stop();
            self.screen.print(&line).map_err(AnswerFailure::Unprinted)?;
        }
        Ok(())
    }

    /// Returns the items of a complete answer that have not been printed yet, if its items are printed.
    pub fn remaining_items(&self, json: &str) -> Option<Result<String, ItemFault>> {
        let items = self.items.as_ref()?;
        Some(lock(items).remaining(json))
    }

    /// Ends the text before calls, which are about to run.
    pub fn end_text(&self) -> Result<(), AnswerFailure> {
        self.notes.spinner().stop();
        if let Some(items) = &self.items {
            lock(items).restart();
        }
        match self.printing {
            Printing::Live => self.screen.end().map_err(AnswerFailure::Unprinted),
            Printing::Items | Printing::Whole | Printing::Excerpt => Ok(()),
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

    /// Returns the failure of an answer that cannot be kept until it is complete.
    fn too_long(&self) -> AnswerFailure {
        let (done, advice) = if self.printing == Printing::Items {
            (
                "the rest is not printed, and nothing is saved",
                "ask for fewer items",
            )
        } else {
            (
                "it is neither printed nor saved",
                "leave out -x, -j, --schema and --no-stream, and tools in a pipe, to print it as it comes",
            )
        };
        let message = format!(
            "the answer has more than {size}, so {done}",
            size = in_units(MAX_KEPT)
        );
        AnswerFailure::TooLong(Error::new(ErrorKind::Output, message).advise(advice))
    }
}
