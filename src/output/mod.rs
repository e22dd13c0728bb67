//! What the user sees: the answer on standard output, notes and errors on standard error.

pub mod code;
mod formatter;
mod held_word;
mod inline_markdown;
pub mod markdown;
mod notes;
mod pager;
mod quote;
mod screen;
mod spinner;
mod stdout;
mod styled_text;
mod terminal;
mod terminal_lock;
mod text_encoding;

pub use formatter::DisplayOptions;
pub use notes::{Notes, source_lines};
pub use pager::page;
pub use screen::Screen;
pub use spinner::Spinner;
pub use stdout::{
    OutputError, Stdout, print, print_exactly, print_report, print_texts, unless_reader_gone,
};
pub use terminal::{Styling, Terminal};
pub use terminal_lock::TerminalLock;
