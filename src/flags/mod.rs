//! The command line: what it may hold, and how it is read.

mod arguments;
mod parse;
mod table;

pub(crate) use arguments::{Arguments, Mode};
pub(crate) use parse::{asks_for_json, parse};
pub(crate) use table::{Completion, FLAGS, Flag};
