//! What comes of a server's messages, on the threads that read them.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;

use super::outcome::Failure;
use super::process::Report;
use super::protocol::{Protocol, ServerEvent};
use crate::threads::lock;

/// Takes what a server sends while q waits for it, or does something else.
#[derive(Clone)]
pub(super) struct Listener {
    pub(super) protocol: Arc<Mutex<Protocol>>,
    /// To the thread that waits for the server.
    pub(super) events: Sender<Result<ServerEvent, Failure>>,
    pub(super) report: Report,
}

impl Listener {
    pub(super) fn protocol(&self) -> MutexGuard<'_, Protocol> {
        lock(&self.protocol)
    }

    /// Hands on events; `reply` answers the server's own requests. Returns whether the answer to q's request was among them.
    pub(super) fn hand_on(&self, received: Vec<ServerEvent>, reply: impl Fn(Value)) -> bool {
        let mut is_answered = false;
        for event in received {
            is_answered |= !matches!(
                event,
                ServerEvent::Reply(_) | ServerEvent::Detail(_) | ServerEvent::Progress
            );
            match event {
                ServerEvent::Reply(message) => reply(message),
                ServerEvent::Detail(text) => (self.report)(&text),
                event => _ = self.events.send(Ok(event)),
            }
        }
        is_answered
    }
}
