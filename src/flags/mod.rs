//! The command line: what it may hold, and how it is read. Also the words by which other programs call its options and the keys of
//! the configuration file.

mod argument;
mod arguments;
mod document;
mod late_options;
mod parse;
pub mod synonyms;
mod table;
mod tool_names;

pub use arguments::{Arguments, Mode};
pub use document::{Document, Generated, NameList};
pub use parse::{asks_for_json, parse, stray_word};
pub use table::{Completion, FLAGS, Flag, OptionGroup};
pub use tool_names::{NO_TOOLS, ToolNames};
