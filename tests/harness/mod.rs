//! What every test of the real binary stands on: a sandbox, a server, the dialects of models, a tool server, a terminal.

#![allow(dead_code, reason = "no program of tests needs all of it")]

pub mod authority;
pub mod dialect;
pub mod fixtures;
pub mod http;
pub mod pseudo_terminal;
pub mod pty;
pub mod sandbox;
pub mod server;
pub mod toolserver;
