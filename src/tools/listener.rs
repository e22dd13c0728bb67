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

    /// Handles events as they come: `reply` answers the server's own requests.
    pub fn dispatch(&self, events: Vec<ServerEvent>, reply: impl Fn(Value)) {
        for event in events {
            match event {
                ServerEvent::Reply(message) => reply(message),
                ServerEvent::Detail(text) => (self.report)(&text),
                event => _ = self.events.send(Ok(event)),
            }
        }
    }
}
