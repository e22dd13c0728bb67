//! q from outside: the real binary against a server inside the test process.

mod actions;
mod again;
#[path = "../authority.rs"]
mod authority;
mod commit;
mod conversation;
mod corpus;
mod dialects;
mod documents;
mod extract;
mod files;
mod fixtures;
mod hook;
mod json;
mod list;
mod names;
mod network;
mod options;
mod output;
mod providers;
mod pty;
mod question;
mod requests;
mod sandbox;
mod server;
mod settings;
mod signals;
mod smoke;
mod tell;
mod terminal;
mod tls;
mod tools;
mod toolserver;
mod trouble;
mod unreadable;
