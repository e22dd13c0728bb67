//! What the user sees: the answer on standard output, notes and errors on standard error.

pub mod code;
mod formatter;
mod held_word;
mod inline_markdown;
pub mod markdown;
mod note_layout;
mod notes;
mod pager;
mod quote;
mod screen;
mod source_lines;
mod spinner;
mod stdout;
mod styled_text;
mod terminal;
mod terminal_lock;
mod text_encoding;

pub use formatter::DisplayOptions;
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
