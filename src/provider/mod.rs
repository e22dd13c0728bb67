//! Providers: the table of built-in ones and the dialects that they speak, none of which opens a connection.

mod anthropic;
mod attachment;
mod calls;
mod dialect;
pub(crate) mod failure;
pub(crate) mod finish;
mod gemini;
pub(crate) mod kept;
mod lenient;
mod openai;
mod reasoning;
pub(crate) mod reply;
pub(crate) mod request;
mod responses;
mod schema;
pub(crate) mod table;

pub(crate) use dialect::Dialect;
pub(crate) use lenient::ReplyError;
