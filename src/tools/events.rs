//! The queue of events between the threads that read from a server and the thread that waits for it; it has a limit.

use std::sync::mpsc::{self, Receiver, SyncSender};

use super::outcome::Failure;
use super::protocol::ServerEvent;

/// How many events of a server wait until q takes them.
const MAX_EVENTS: usize = 64;

/// The end at which events go in.
#[derive(Clone)]
pub struct Events(SyncSender<Result<ServerEvent, Failure>>);

/// The end at which they come out.
pub type Received = Receiver<Result<ServerEvent, Failure>>;

impl Events {
    /// A queue with both of its ends.
    pub fn queue() -> (Events, Received) {
        let (sender, received) = mpsc::sync_channel(MAX_EVENTS);
        (Events(sender), received)
    }

    /// Passes an event on. Where many wait already, progress says nothing new.
    pub fn pass(&self, event: ServerEvent) {
        if event == ServerEvent::Progress {
            let _ = self.0.try_send(Ok(event));
        } else {
            let _ = self.0.send(Ok(event));
        }
    }

    /// Says why nothing more will come.
    pub fn fail(&self, failure: Failure) {
        let _ = self.0.send(Err(failure));
    }
}
