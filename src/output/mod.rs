//! What reaches the user: the answer on standard output, notes and errors on standard error.

mod notes;
mod stdout;

pub(crate) use notes::Notes;
pub(crate) use stdout::{Broken, Stdout};
