//! Reads the lines that the program of a tool server writes: answers what it asks, and passes on what it answers.

use std::sync::{Arc, Mutex};

use serde::de::IgnoredAny;

use super::batch;
use super::events::{EventSender, reporting_strays};
use super::failure::Failure;
use super::input::Input;
use super::lines::{MAX_LINE, ReportLine, WrittenLine};
use super::protocol::{Protocol, ServerEvent};
use crate::text::not_a_number;
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
            reporting_strays(&self.protocol, &self.report, |protocol| {
                protocol.receive_part(&line.bytes);
                None
            });
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
    let text = String::from_utf8_lossy(bytes);
    let read = |json: &str| serde_json::from_str::<IgnoredAny>(json);
    not_a_number::read_with(&text, |_| true, read).is_ok()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::text::table::rows;
    use crate::tools::events::{Arrival, EventReceiver, event_queue};

    /// A reader of the lines of a server that was asked something, under the number 1.
    fn reader() -> (LineReader, EventReceiver) {
        let mut protocol = Protocol::new(false);
        protocol.request("tools/list", json!({}));
        let (sender, events) = event_queue();
        let report: ReportLine = Arc::new(|_: &str| ());
        let protocol = Arc::new(Mutex::new(protocol));
        (LineReader::new(protocol, sender, &report), events)
    }

    /// A program that repeats its input, in place of the server.
    fn program() -> (Child, Input) {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let stdin = child.stdin.take().expect("its input");
        (child, Input::start(stdin).expect("a thread"))
    }

    /// Returns what the program was sent.
    fn sent(mut child: Child, input: &Input) -> String {
        input.close();
        let mut sent = String::new();
        let stdout = child.stdout.take();
        let read = stdout.map(|mut stdout| stdout.read_to_string(&mut sent));
        read.expect("its output").expect("text");
        child.wait().expect("its end");
        sent.trim_end().to_owned()
    }

    fn line(text: &str) -> WrittenLine {
        WrittenLine {
            bytes: text.as_bytes().to_owned(),
            is_endless: false,
            is_unfinished: false,
        }
    }

    #[test]
    fn each_line_is_answered_passed_on_or_ignored() {
        // How the line ends, what is passed on, what the server is sent, and the line.
        let pong = r#"{"jsonrpc":"2.0","id":"p","result":{}}"#;
        let table = r#"
            newline | answer 1 | - | {"id":1,"result":{}}
            newline | - | pong | {"id":"p","method":"ping"}
            newline | answer 1 | pong | [{"id":"p","method":"ping"},{"id":1,"result":{}}]
            newline | - | - | {"method":"notifications/tools/list_changed"}
            newline | - | - | listening on standard input
            newline | - | - | -
            nothing | answer 1 | - | {"id":1,"result":{}}
            nothing | - | - | {"id":1,"res
            never | the tool server db writes a line of more than 110 MB, so it was ended | - | x
        "#;
        for [end, passed, reply, text] in rows(table) {
            let (mut reader, events) = reader();
            let (child, input) = program();
            let goes_on = reader.take(
                &input,
                &WrittenLine {
                    is_endless: end == "never",
                    is_unfinished: end == "nothing",
                    ..line(text)
                },
            );
            let found = match events.next(Duration::ZERO) {
                Ok(Ok(Arrival::Event(ServerEvent::RpcAnswer(id, _)))) => format!("answer {id}"),
                Ok(Ok(other)) => format!("{other:?}"),
                Ok(Err(failure)) => failure.for_model("db"),
                Err(_) => String::new(),
            };
            assert_eq!(found, passed, "{text}");
            assert_eq!(sent(child, &input), reply.replace("pong", pong), "{text}");
            assert_eq!(goes_on, end != "never", "{text}");
        }
    }

    #[test]
    fn only_lines_in_a_row_that_ask_and_answer_nothing_are_too_many() {
        let (child, input) = program();
        for (between, goes_on) in [
            (r#"{"id":1,"result":{}}"#, true),
            (r#"{"id":"p","method":"ping"}"#, true),
            ("noise", false),
        ] {
            let (mut reader, _events) = reader();
            reader.ignored = MAX_IGNORED - LINE;
            reader.take(&input, &line(between));
            assert_eq!(reader.take(&input, &line("noise")), goes_on, "{between}");
        }
        sent(child, &input);
    }
}
