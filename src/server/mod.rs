//! The server of a provider: which one q asks, with which key, and each request over HTTP.

pub(crate) mod call;
pub(crate) mod choice;
pub(crate) mod client;
pub(crate) mod discover;
mod key_command;
mod reading;
mod retry;
mod stream;
pub(crate) mod target;
