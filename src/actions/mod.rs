//! Actions: what q does without asking a question. Only `--clear --all` reads standard input, for a confirmation.

mod conversations;
mod list;
mod models;
mod status;
mod tools;

pub use conversations::{clear, clear_all, copy, history, last, refuse_words, result, undo};
pub use list::list;
pub use models::list as list_models;
pub use status::print_status;
pub use tools::list as list_tools;
