//! What the user sees: the answer on standard output, notes and errors on standard error.
//!
//! An answer that arrives in pieces goes to the `Screen`, which shows an unfinished word after a pause, and from there to
//! `Stdout`. On a terminal, the `Formatter` makes of it what is shown: it has the `MarkdownReader` of `text` say what the line
//! is, holds the last word back (`held_word.rs`), reads the marks within the line (`inline_markdown.rs`) and switches styles on
//! and off (`styled_text.rs`). A message of q goes to the `Notes`, which make room in the place of the `Spinner`. For `-x`,
//! `code::extract` reads the lines of an answer with the same `MarkdownReader`.

mod charmap;
pub mod code;
mod fenced_blocks;
mod formatter;
mod held_word;
mod inline_markdown;
mod late_note;
mod note_layout;
mod notes;
mod pager;
mod quote;
mod screen;
mod source_lines;
mod spinner;
mod stderr;
mod stdout;
mod styled_text;
mod terminal;
mod terminal_lock;
mod text_encoding;

pub use formatter::DisplayOptions;
pub use late_note::LateNote;
pub use notes::{Notes, Verbosity};
pub use pager::page;
pub use screen::Screen;
pub use source_lines::source_lines;
pub use spinner::Spinner;
pub use stdout::{
    OutputError, Stdout, print, print_exactly, print_report, print_texts, unless_reader_gone,
};
pub use terminal::{Styling, Terminal};
pub use terminal_lock::TerminalLock;
