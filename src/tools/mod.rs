//! Tools that a model may call: commands, and servers that speak the Model Context Protocol.

mod commands;
mod consent;
mod http;
mod listener;
mod names;
mod offers;
mod outcome;
mod prepare;
mod process;
mod protocol;
mod server;
mod start;
mod toolbox;

pub(crate) use names::Selection;
pub(crate) use offers::Offer;
pub(crate) use outcome::cut;
pub(crate) use process::Groups;
pub(crate) use start::Starting;
pub(crate) use toolbox::{MAX_CALLS, Toolbox};
