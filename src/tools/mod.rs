//! Tools that a model may call: commands, and servers that speak the Model Context Protocol.

mod about;
mod calls;
mod commands;
mod connection;
mod consent;
mod events;
pub mod faults;
mod headers;
mod http;
mod known;
mod layout;
mod names;
mod offers;
mod outcome;
mod prepare;
mod process;
mod protocol;
mod secrets;
mod server;
mod source;
mod toolbox;

pub use calls::{MAX_ARGUMENTS, MAX_CALLS, Observer};
pub use names::Selection;
pub use process::Groups;
pub use toolbox::Toolbox;
