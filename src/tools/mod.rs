//! Tool servers: programs that speak the Model Context Protocol on their standard input and output, and what a model may
//! do with them.

mod consent;
mod naming;
mod process;
mod protocol;
mod result;
mod selection;
mod server;
mod start;
mod toolbox;

pub(crate) use result::cut;
pub(crate) use selection::Selection;
pub(crate) use start::Starting;
pub(crate) use toolbox::{Offer, Toolbox};
