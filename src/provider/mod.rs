//! The table of built-in providers, and the dialects that they speak, without any connection (pure).

mod anthropic;
mod api_of;
mod attachment;
mod calls;
mod commentary;
mod counts;
mod dialect;
pub mod failure;
pub mod finish;
mod gemini;
pub mod kept;
mod lenient;
mod models;
mod openai;
pub mod reasoning;
pub mod reply;
pub mod request;
mod responses;
mod schema;
pub mod table;
pub mod text_calls;
pub mod tool_schema;

pub use dialect::Dialect;
pub use failure::ReplyError;
pub use models::{ModelPage, NextPage, read_models};
