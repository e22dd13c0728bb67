//! What a section of the configuration means on this machine: a program, an address or commands, ready to be used.

use std::sync::Arc;

use super::commands::Commands;
use super::http::Site;
use super::process::Program;
use crate::settings::ToolServer;

/// A section that is ready: its server can be started, or its commands called.
pub struct Spec {
    pub section: ToolServer,
    pub target: Target,
}

/// What a call goes to.
pub enum Target {
    Local(Program),
    Remote(Arc<Site>),
    /// Each is a tool, and starts when it is called.
    Commands(Commands),
}

impl Target {
    /// Whether there is nothing to wait for until its tools are known.
    pub fn is_known(&self) -> bool {
        matches!(self, Target::Commands(commands) if commands.about.is_none())
    }
}
