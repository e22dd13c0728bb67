//! Servers: which provider q asks, with which key, and each request over HTTP.
//!
//! Whom to ask: `whom` decides that from options, settings and a conversation. Where nothing names a provider, `discover`
//! looks for a server on this machine. `probe` looks what is at an address. `target` is the server that was chosen; it gets
//! its key (`key_command`), and `model_choice` says which model it is asked for, perhaps one of its list (`model_list`), which
//! may have pages (`paged_list`).
//!
//! A question: `target` makes the request with its `credentials`. `reply_stream` sends it and hands on the reply in pieces,
//! which `reply_reader` reads from the `body` with the parser of events (`sse`). `api_client` sends it again where `retry` says
//! so, and describes what failed (`api_error`), with `advice`.
//!
//! HTTP: `client` sends one request to one address, through a proxy where the environment names one. Tool servers use it too.

pub mod advice;
pub mod api_client;
pub mod api_error;
pub mod body;
pub mod client;
pub mod credentials;
pub mod discover;
pub mod key_command;
pub mod model_choice;
pub mod model_list;
mod paged_list;
pub mod probe;
pub mod reply_reader;
pub mod reply_stream;
pub mod retry;
pub mod sse;
pub mod target;
pub mod whom;
