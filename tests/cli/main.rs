//! q from outside: the real binary against a server inside the test process.

mod actions;
mod again;
mod answers;
mod asking;
mod attach;
mod commands;
mod commit;
mod confined;
mod connections;
mod conversation;
mod documents;
mod endless;
mod escape;
mod extract;
mod files;
#[path = "../harness/mod.rs"]
mod harness;
mod hook;
mod link;
mod list;
mod names;
mod network;
mod ourselves;
mod output;
mod providers;
mod question;
mod readme;
mod remote;
mod requests;
mod settings;
mod shape;
mod signals;
mod style;
mod terminal;
mod tls;
mod tools;
mod trouble;
mod unreadable;
mod web;
mod wrap;

use harness::{
    authority, conversations, dialect, fixtures, machine, outcome, pty, run, sandbox, screen,
    server, snapshot, times, toolserver,
};
