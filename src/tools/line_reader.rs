//! Reads the lines that the program of a tool server writes: answers what it asks, and passes on what it answers.

use std::sync::{Arc, Mutex};

use super::batch;
use super::events::{EventSender, reporting_strays};
use super::failure::Failure;
use super::input::Input;
use super::lines::{MAX_LINE, ReportLine, WrittenLine};
use super::protocol::{Protocol, ServerEvent};
use crate::text::size::in_units;

/// The most bytes of lines in a row that ask and answer nothing, and how many each line counts besides its own, so that empty
/// ones come to an end, too.
const MAX_IGNORED: usize = 100_000_000;
const LINE: usize = 100;

/// A reader of a program's lines, on a thread of its own, so that the server's requests are answered while q does something else.
pub struct LineReader {
    protocol: Arc<Mutex<Protocol>>,
    events: EventSender,
    report: ReportLine,
    /// The size of the last lines, in a row, that ask and answer nothing.
    ignored: usize,
}

impl LineReader {
    pub fn new(
        protocol: Arc<Mutex<Protocol>>,
        events: EventSender,
        report: &ReportLine,
    ) -> LineReader {
        LineReader {
            protocol,
            events,
            report: Arc::clone(report),
            ignored: 0,
        }
    }

    /// Takes a line, and answers it if it asks. Returns false after the last line that is worth reading.
    pub fn take(&mut self, input: &Input, line: &WrittenLine) -> bool {
        let taken = self.receive(input, line);
        let goes_on = taken.is_ok();
        if let Err(failure) = taken {
            self.events.fail(failure);
        }
        goes_on
    }

    fn receive(&mut self, input: &Input, line: &WrittenLine) -> Result<(), Failure> {
        if line.is_endless {
            let most = in_units(MAX_LINE);
            return Err(Failure::ending_server(format!(
                "writes a line of more than {most}, so it was ended"
            )));
        }
        // A program that ends within a line has not sent a broken message: how it ended says what has failed.
        let is_part = line.is_unfinished && !is_json(&line.bytes);
        if is_part {
            return Ok(());
        }
        match batch::messages_of(&line.bytes) {
            Some(messages) => messages
                .iter()
                .try_for_each(|message| self.receive_message(input, message.as_bytes())),
            None => self.receive_message(input, &line.bytes),
        }
    }

    fn receive_message(&mut self, input: &Input, message: &[u8]) -> Result<(), Failure> {
        let received = reporting_strays(&self.protocol, &self.report, |protocol| {
            protocol.receive(message)
        });
        let Some(event) = received else {
            self.ignored += message.len() + LINE;
            if self.ignored > MAX_IGNORED {
                return Err(Failure::noise());
            }
            return Ok(());
        };
        self.ignored = 0;
        match event {
            ServerEvent::Reply(answer) if !input.send(format!("{answer}\n")) => {
                return Err(Failure::flood());
            }
            ServerEvent::Reply(_) => (),
            ServerEvent::Flood => return Err(Failure::flood()),
            ServerEvent::RpcAnswer(..) | ServerEvent::Progress => self.events.pass(event),
        }
        Ok(())
    }
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}
