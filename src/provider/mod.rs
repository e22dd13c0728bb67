//! Providers: the table of built-in ones and the dialects that they speak, none of which opens a connection.

mod anthropic;
mod attachment;
mod calls;
mod dialect;
pub mod failure;
pub mod finish;
mod gemini;
pub mod kept;
mod lenient;
mod openai;
mod reasoning;
pub mod reply;
pub mod request;
mod responses;
mod schema;
pub mod table;

pub use dialect::Dialect;
pub use lenient::ReplyError;
