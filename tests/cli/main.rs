//! q from outside: the real binary against a server inside the test process.

mod sandbox;
mod server;
mod smoke;
