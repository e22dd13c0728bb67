//! q from outside: the real binary against a server inside the test process.

#![allow(
    unsafe_code,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::match_bool,
    clippy::needless_for_each,
    clippy::semicolon_if_nothing_returned,
    clippy::shadow_unrelated,
    clippy::single_match_else
)]

mod actions;
mod again;
mod attach;
#[path = "../authority.rs"]
mod authority;
mod commands;
mod commit;
mod conversation;
mod corpus;
mod dialects;
mod documents;
mod endless;
mod extract;
mod files;
mod fixtures;
mod harness;
mod hook;
mod json;
mod link;
mod list;
mod names;
mod network;
mod options;
mod output;
mod providers;
#[path = "../pseudo_terminal.rs"]
mod pseudo_terminal;
mod pty;
mod question;
mod readme;
mod remote;
mod reports;
mod requests;
mod roles;
mod sandbox;
mod scripts;
mod server;
mod settings;
mod shape;
mod signals;
mod states;
mod style;
mod terminal;
mod tls;
mod tools;
mod toolserver;
mod trouble;
mod unreadable;
mod upgrade;
mod web;
mod wrap;
