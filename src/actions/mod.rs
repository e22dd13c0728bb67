//! Actions: what q does without asking a question. Only `--clear --all` reads standard input, for a confirmation.

mod conversations;
mod list;
mod models;
mod status;
mod tools;

pub(crate) use conversations::{clear, clear_all, copy, history, last, undo};
pub(crate) use list::list;
pub(crate) use models::list as list_models;
pub(crate) use status::print_status;
pub(crate) use tools::list as list_tools;
