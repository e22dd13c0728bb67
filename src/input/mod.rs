//! What a question brings along besides its words: standard input, and the files of `-a`.
//!
//! `reader` reads both, within limits that they share, and `file_format` says what a file is by its bytes. For a pattern or a
//! directory, `file_search` finds the files that it names, on a walk of `file_walk`. `ignore_rules` says which of these git
//! ignores, and `left_out` what the user hears of all that is not sent.

mod file_format;
mod file_search;
mod file_walk;
mod ignore_rules;
mod left_out;
mod reader;
pub mod stdin;

pub use reader::{FileContent, InputReader, QuestionInput};
