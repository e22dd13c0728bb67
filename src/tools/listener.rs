//! Takes what a server sends, on the thread that reads it, and passes on what another thread waits for.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;

use super::outcome::Failure;
use super::process::Report;
use super::protocol::{Protocol, ServerEvent};
use crate::threads::lock;

/// The receiving end of a conversation with a server. It works whether or not q waits for the server.
#[derive(Clone)]
pub struct Listener {
    pub protocol: Arc<Mutex<Protocol>>,
    /// The way to the thread that waits for the server.
    pub events: Sender<Result<ServerEvent, Failure>>,
    pub report: Report,
}

impl Listener {
    pub fn protocol(&self) -> MutexGuard<'_, Protocol> {
        lock(&self.protocol)
    }

    /// Takes a message. `reply` answers the server's own requests.
    pub fn receive(&self, message: &[u8], reply: impl FnOnce(Value)) {
        let event = self.protocol().receive(message);
        match event {
            Some(ServerEvent::Reply(message)) => reply(message),
            Some(ServerEvent::Noise(line)) => (self.report)(&line),
            Some(event) => _ = self.events.send(Ok(event)),
            None => (),
        }
    }
}
