//! The command line: the table of options, and what was typed.

mod arguments;
mod parse;
mod table;

pub(crate) use arguments::{Arguments, Mode};
pub(crate) use parse::{asks_for_json, parse};
pub(crate) use table::{Completion, FLAGS, Flag, Value};
