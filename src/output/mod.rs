//! What the user sees: the answer on standard output, notes and errors on standard error.

pub(crate) mod code;
mod disarm;
mod notes;
mod spinner;
mod stdout;
mod style;
mod wrap;

pub(crate) use disarm::visible;
pub(crate) use notes::{Notes, source_lines};
pub(crate) use spinner::Spinner;
pub(crate) use stdout::{OutputError, Stdout, print, print_texts};
pub(crate) use wrap::Look;
