//! Servers: which provider q asks, with which key, and each request over HTTP.

pub(crate) mod call;
pub(crate) mod choice;
pub(crate) mod client;
pub(crate) mod discover;
pub(crate) mod key_command;
mod reading;
pub(crate) mod retry;
pub(crate) mod stream;
pub(crate) mod target;
