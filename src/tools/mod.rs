//! Tool servers: programs and addresses that speak the Model Context Protocol, and what a model may do with them.

mod commands;
mod consent;
mod failure;
mod local;
mod naming;
mod prepare;
mod process;
mod protocol;
mod remote;
mod result;
mod selection;
mod server;
mod start;
mod toolbox;

pub(crate) use process::Groups;
pub(crate) use result::cut;
pub(crate) use selection::Selection;
pub(crate) use start::Starting;
pub(crate) use toolbox::{MOST_CALLS, Offer, Toolbox};
