//! The conversation with a tool server that is a program: messages are lines on its standard input and output.

use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::failure::{self, Failure};
use super::process::{Groups, Input, LONGEST_LINE, Line, Process, Program, Report};
use super::protocol::{self, About, Event, Protocol};
use super::result::{self, Outcome};

/// How often to look whether a silent server still runs.
const LOOK: Duration = Duration::from_millis(100);

/// A process and the conversation with it. The thread that reads drives the conversation, so that a server's own
/// requests are answered while q does something else.
pub(crate) struct Conversation {
    pub(crate) process: Process,
    protocol: Arc<Mutex<Protocol>>,
    events: Receiver<Heard>,
    since: Instant,
    is_ready: bool,
}

/// What a server said, and when.
struct Heard {
    event: Event,
    at: Instant,
}

impl Conversation {
    /// Starts the process and begins the conversation.
    ///
    /// # Errors
    /// Why the program cannot be run.
    pub(crate) fn open(program: &Program, groups: &Groups, report: &Report) -> Result<Conversation, Failure> {
        let since = Instant::now();
        let (protocol, first_line) = Protocol::open(false);
        let protocol = Arc::new(Mutex::new(protocol));
        let (sender, events) = mpsc::channel();
        let read = {
            let (protocol, report) = (Arc::clone(&protocol), Arc::clone(report));
            move |input: &Input, line: Line| hear(&line, &protocol, input, &sender, &report)
        };
        let process = Process::start(program, groups, read, Arc::clone(report));
        let process = process.map_err(|error| cannot_run(program, &error))?;
        process.send(first_line);
        Ok(Conversation { process, protocol, events, since, is_ready: false })
    }

    /// What the server says about itself once its tools are listed, and when it had said it; `None` if that takes
    /// longer than `slice`.
    ///
    /// # Errors
    /// The server has ended, is too slow, or does not speak the protocol.
    pub(crate) fn wait(
        &mut self,
        name: &str,
        patience: Option<Duration>,
        slice: Duration,
    ) -> Option<Result<(About, Instant), Failure>> {
        let deadline = after(self.since, patience);
        let pause = Instant::now() + slice;
        loop {
            match self.next(Some(deadline.map_or(pause, |deadline| deadline.min(pause)))) {
                Ok(Heard { event: Event::Ready(about), at }) => {
                    self.is_ready = true;
                    return Some(Ok((about, at)));
                }
                Ok(Heard { event: Event::Unusable(reason), .. }) => return Some(Err(reason.into())),
                Ok(_) => (),
                Err(RecvTimeoutError::Timeout) if deadline.is_none_or(|deadline| Instant::now() < deadline) => {
                    return None;
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Some(Err(Failure { lines: self.process.lines(), ..Failure::too_slow(name, patience) }));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Some(Err(self.fallen_silent("before its tools were listed")));
                }
            }
        }
    }

    /// The outcome of a call, which may take `patience` until its answer, or from one report of progress to the next.
    ///
    /// # Errors
    /// The server cannot continue.
    pub(crate) fn call(
        &mut self,
        tool: &str,
        arguments: &Map<String, Value>,
        patience: Option<Duration>,
    ) -> Result<Outcome, Failure> {
        if !self.is_ready {
            return Err(Failure::not_started());
        }
        let (id, line) = self.protocol().call(tool, arguments);
        self.process.report_again();
        if !self.process.send(line) {
            return Err(self.ended("does not read what it is sent, and was ended"));
        }
        let mut deadline = after(Instant::now(), patience);
        loop {
            match self.next(deadline) {
                Ok(Heard { event: Event::Progress, at }) => deadline = after(at, patience),
                Ok(Heard { event: Event::Answer(answered, answer), .. }) if answered == id => {
                    return Ok(result::read(&answer));
                }
                Ok(_) => (),
                Err(RecvTimeoutError::Timeout) => {
                    let line = self.protocol().cancel(id);
                    self.process.send(line);
                    return Ok(Outcome::failed(failure::no_answer(patience)));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.fallen_silent("during the call")),
            }
        }
    }

    /// The server's next words. Words that have arrived count even after the deadline. A server without a process is
    /// gone, though something that it started may hold its output open.
    fn next(&mut self, deadline: Option<Instant>) -> Result<Heard, RecvTimeoutError> {
        loop {
            let left = deadline.map_or(LOOK, |deadline| deadline.saturating_duration_since(Instant::now()));
            match self.events.recv_timeout(left.min(LOOK)) {
                Err(RecvTimeoutError::Timeout) if self.process.leader_has_ended() => {
                    // Its last lines may still be on their way.
                    let last = self.events.recv_timeout(LOOK);
                    return last.map_err(|_| RecvTimeoutError::Disconnected);
                }
                Err(RecvTimeoutError::Timeout) if left > LOOK || deadline.is_none() => {}
                heard => return heard,
            }
        }
    }

    /// Whether the server has ended, or has closed its output. Words between two calls are dropped.
    pub(crate) fn has_ended(&mut self) -> bool {
        loop {
            match self.events.try_recv() {
                Ok(_) => (),
                Err(error) => return error == TryRecvError::Disconnected || self.process.leader_has_ended(),
            }
        }
    }

    /// How the server failed that writes no more: it has ended, or has closed its output, and then q ends it.
    fn fallen_silent(&mut self, when: &str) -> Failure {
        // A program that ends closes its output a moment before it is gone.
        let began = Instant::now();
        while !self.process.leader_has_ended() && began.elapsed() < LOOK {
            thread::sleep(LOOK / 50);
        }
        if self.process.leader_has_ended() {
            return self.ended(&format!("ended {when}"));
        }
        self.process.end();
        Failure { lines: self.process.lines(), ..format!("closed its output {when}").into() }
    }

    /// How the server failed: the reason, its exit status and its lines. Nothing of it is left after this.
    fn ended(&mut self, words: &str) -> Failure {
        let status = self.process.end().map(|status| format!(" ({})", status_words(status))).unwrap_or_default();
        Failure { lines: self.process.lines(), ..format!("{words}{status}").into() }
    }

    fn protocol(&self) -> MutexGuard<'_, Protocol> {
        self.protocol.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Handles a line that the server wrote.
fn hear(line: &Line, protocol: &Mutex<Protocol>, input: &Input, heard: &mpsc::Sender<Heard>, report: &Report) {
    let events = {
        let mut protocol = protocol.lock().unwrap_or_else(PoisonError::into_inner);
        match line.is_cut && protocol::is_message(&line.bytes) {
            true => protocol.receive_too_long(LONGEST_LINE),
            false => protocol.receive(&line.bytes),
        }
    };
    for event in events {
        match event {
            Event::Notify(line) | Event::Reply(line) | Event::Ask(line) => input.send_patiently(line),
            Event::Detail(text) => report(&text),
            event => _ = heard.send(Heard { event, at: Instant::now() }),
        }
    }
}

/// Why a program cannot be run. The system does not say whether the program or its folder is missing.
fn cannot_run(program: &Program, error: &std::io::Error) -> String {
    if !program.folder.is_dir() {
        return format!("there is no folder {}", program.folder.display());
    }
    format!("cannot run {}: {error}", program.command.first().map_or("an empty command", String::as_str))
}

fn after(start: Instant, patience: Option<Duration>) -> Option<Instant> {
    patience.and_then(|patience| start.checked_add(patience))
}

fn status_words(status: ExitStatus) -> String {
    status.to_string().replace(": ", " ")
}
