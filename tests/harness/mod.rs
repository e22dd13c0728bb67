//! What every test of the real binary stands on: a sandbox, a server, the dialects of models, a tool server, a terminal.

pub mod authority;
pub mod capture;
pub mod conversations;
#[allow(
    dead_code,
    reason = "transcripts alone read requests and send errors in each dialect"
)]
pub mod dialect;
pub mod fixtures;
pub mod locks;
pub mod machine;
pub mod outcome;
pub mod pseudo_terminal;
pub mod pty;
pub mod reply;
pub mod request;
pub mod run;
pub mod sandbox;
pub mod screen;
pub mod server;
pub mod snapshot;
pub mod times;
pub mod toolserver;
