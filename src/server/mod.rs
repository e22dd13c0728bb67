//! Servers: which provider q asks, with which key, and each request over HTTP.

pub mod advice;
pub mod api_client;
pub mod api_error;
pub mod body;
pub mod client;
pub mod discover;
pub mod key_command;
pub mod models;

pub mod reply_reader;
pub mod reply_stream;
pub mod retry;
pub mod sse;
pub mod target;
pub mod whom;
