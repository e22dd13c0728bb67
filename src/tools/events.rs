//! The queue of events between the threads that read from a server and the thread that waits for it; it has a limit.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::failure::Failure;
use super::lines::ReportLine;
use super::protocol::{Protocol, ServerEvent};
use super::rpc::Id;
use crate::threads::lock;

/// How many events of a server wait until q takes them.
const MAX_EVENTS: usize = 64;

/// How much of what answers nothing is reported between two requests.
const MAX_SHOWN_STRAYS: usize = 20;

/// A message or a failure that has arrived from a server.
#[derive(Debug, PartialEq)]
pub enum Arrival {
    /// What a message of its means.
    Event(ServerEvent),
    /// The request with this number has failed. It may be one that q has given up since.
    Failed(Id, Failure),
}

/// The end at which events go in.
#[derive(Clone)]
pub struct EventSender {
    queue: SyncSender<Arrival>,
    /// Why nothing more will come. It is not in the queue, where it might have to wait for room.
    failure: Arc<Mutex<Option<Failure>>>,
}

/// The end at which they come out.
pub struct EventReceiver {
    queue: Receiver<Arrival>,
    failure: Arc<Mutex<Option<Failure>>>,
}

/// Makes a queue with both of its ends.
pub fn event_queue() -> (EventSender, EventReceiver) {
    let (sender, receiver) = mpsc::sync_channel(MAX_EVENTS);
    let failure = Arc::default();
    let events = EventSender {
        queue: sender,
        failure: Arc::clone(&failure),
    };
    let received = EventReceiver {
        queue: receiver,
        failure,
    };
    (events, received)
}

impl EventSender {
    /// Passes an event on. Where many wait already, progress says nothing new.
    pub fn pass(&self, event: ServerEvent) {
        if event == ServerEvent::Progress {
            let _ = self.queue.try_send(Arrival::Event(event));
        } else {
            let _ = self.queue.send(Arrival::Event(event));
        }
    }

    /// Says why a request has no answer.
    pub fn fail_request(&self, id: Id, failure: Failure) {
        let _ = self.queue.send(Arrival::Failed(id, failure));
    }

    /// Says why nothing more will come. Does not wait.
    pub fn fail(&self, failure: Failure) {
        lock(&self.failure).get_or_insert(failure);
    }
}

impl EventReceiver {
    /// Returns the next event, or why nothing more comes. What was passed on before a failure comes before it.
    pub fn next(&self, wait: Duration) -> Result<Result<Arrival, Failure>, RecvTimeoutError> {
        match self.queue.recv_timeout(wait) {
            Ok(event) => Ok(Ok(event)),
            Err(error) => lock(&self.failure).take().map(Err).ok_or(error),
        }
    }

    /// Forgets the events that wait, and returns why nothing more comes, if that is so.
    pub fn failed(&self) -> Option<Failure> {
        for _ in self.queue.try_iter() {}
        lock(&self.failure).take()
    }
}

/// Takes what has arrived, and reports it for `-v` if it answers nothing; of many such only the first ones.
pub fn reporting_strays(
    protocol: &Mutex<Protocol>,
    report: &ReportLine,
    receive: impl FnOnce(&mut Protocol) -> Option<ServerEvent>,
) -> Option<ServerEvent> {
    let mut protocol = lock(protocol);
    let before = protocol.strays.count;
    let event = receive(&mut protocol);
    let strays = &protocol.strays;
    let is_shown = before < strays.count && strays.count <= MAX_SHOWN_STRAYS;
    let shown = is_shown.then(|| strays.last().to_owned());
    drop(protocol);
    if let Some(last) = shown {
        report(&format!("answers nothing that q asked: {last}"));
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_taken_by_a_full_queue_of_events_and_comes_last() {
        let (events, received) = event_queue();
        for _ in 0..=MAX_EVENTS {
            events.pass(ServerEvent::Progress);
        }
        events.fail(Failure::flood());
        events.fail(Failure::of_server("fails later"));
        for _ in 0..MAX_EVENTS {
            let passed = Arrival::Event(ServerEvent::Progress);
            assert_eq!(received.next(Duration::ZERO), Ok(Ok(passed)));
        }
        let failed = received.next(Duration::ZERO);
        assert_eq!(failed, Ok(Err(Failure::flood())));
        assert_eq!(
            received.next(Duration::ZERO),
            Err(RecvTimeoutError::Timeout)
        );
        events.pass(ServerEvent::Progress);
        events.fail(Failure::flood());
        assert_eq!(received.failed(), Some(Failure::flood()));
        assert_eq!(received.failed(), None);
        drop(events);
        let ended = received.next(Duration::ZERO);
        assert_eq!(ended, Err(RecvTimeoutError::Disconnected));
    }
}
