//! What q does without asking a model. No question is sent, and only a confirmation is read from standard input.

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
