//! Takes a question to its answer: asks, runs the tools that the model calls, and asks again.

use std::time::Instant;

use super::dialogue::{Dialogue, Next};
use super::printer::Printer;
use super::run::Run;
use crate::answers::AnswerFile;
use crate::context::Context;
use crate::error::Error;
use crate::output::{print, source_lines};
use crate::provider::reply::Reply;
use crate::server::call::{Call, CallEnd};
use crate::text::one_line::on_one_line;
use crate::tools::{MAX_CALLS, Toolbox};

/// A reply, and how it ended.
struct ReceivedReply {
    reply: Reply,
    end: Result<(), CallEnd>,
    /// `None` if no text has come.
    timing: Option<Timing>,
}

/// How long a reply took, in seconds.
struct Timing {
    first_word: f64,
    total: f64,
}

impl Run<'_> {
    /// Answers the question, from a file if the answer is cached, and saves the exchange. A dry run prints the request instead.
    pub fn answer(&self, dialogue: &mut Dialogue, context: &Context) -> Result<(), Error> {
        let file = self.answer_file(dialogue, context)?;
        if self.settings.typed.dry_run {
            return self.print_request(dialogue, file.as_ref());
        }
        let mut cached = None;
        if let Some(file) = &file {
            cached = self.look_up(file)?;
        }
        if cached.is_none() {
            self.target.fetch_key(self.notes)?;
        }
        let printer = Printer::new(self, dialogue.toolbox.is_some(), context)?;
        match cached {
            Some(cached) => self.deliver(cached, dialogue, &printer),
            None => self.ask_until_answered(dialogue, file.as_ref(), &printer),
        }
    }

    /// Prints the request that would be sent.
    fn print_request(
        &self,
        dialogue: &mut Dialogue,
        file: Option<&AnswerFile>,
    ) -> Result<(), Error> {
        self.report_request(dialogue);
        dialogue.window.report_left_out(self.notes);
        if let Some(file) = file {
            let path = file.path.display();
            let detail = || format!("the answer is looked for in {path}");
            self.notes.detail(detail);
        }
        print(&self.body_to_show(dialogue)?, self.notes.terminal())
    }

    /// Asks until there is an answer, prints it, and keeps it in `file`.
    fn ask_until_answered(
        &self,
        dialogue: &mut Dialogue,
        file: Option<&AnswerFile>,
        printer: &Printer,
    ) -> Result<(), Error> {
        let call = self.target.call(self.notes)?;
        // The key is known now, and a tool may print it.
        if let (Some(toolbox), Some(key)) = (&dialogue.toolbox, self.target.key()) {
            toolbox.hide(key);
        }
        loop {
            let mut received = self.ask_once(dialogue, &call, printer)?;
            let mut next = Next::Stop;
            if received.end.is_ok() {
                next = dialogue.next(&received.reply, self.settings.values.rounds);
            }
            if next == Next::RunCalls
                && let Err(error) = printer.end_text()
            {
                received.end = Err(CallEnd::Output(error));
                next = Next::Stop;
            }
            match next {
                Next::RunCalls => {
                    let reply = &mut received.reply;
                    reply
                        .turn
                        .leave_out_arguments(&mut dialogue.room_for_arguments);
                    self.run_calls(reply, dialogue, printer.is_watched());
                }
                Next::ContinuePaused => dialogue.pause(&received.reply),
                Next::Stop => return self.finish(received, dialogue, &call, file, printer),
            }
            self.report_reply(&received.reply, received.timing.as_ref());
        }
    }

    /// Asks once, and again if the provider may accept less.
    fn ask_once(
        &self,
        dialogue: &mut Dialogue,
        call: &Call,
        printer: &Printer,
    ) -> Result<ReceivedReply, Error> {
        loop {
            self.report_request(dialogue);
            let began = Instant::now();
            let mut first_word = None;
            let mut reply = Reply::default();
            let request = self.request(dialogue)?;
            let tail = dialogue.paused.tail;
            self.record.begin_reply();
            let mut end = call.stream(&request, tail, &mut reply, &mut |piece| {
                if !piece.text.is_empty() {
                    first_word.get_or_insert_with(|| began.elapsed().as_secs_f64());
                }
                printer.take(piece)
            });
            if first_word.is_none()
                && let Err(CallEnd::Failed(failed)) = &mut end
                && self.adapt_to(failed, dialogue)
            {
                continue;
            }
            let total = began.elapsed().as_secs_f64();
            if let Some(reasoning) = self.record.end_reply()
                && !printer.is_live()
            {
                call.show_reasoning(&reasoning);
            }
            let failed_searches = &reply.activity.failed_searches;
            dialogue.failed_searches.extend_from_slice(failed_searches);
            self.record.add_usage(reply.usage());
            return Ok(ReceivedReply {
                reply,
                end,
                timing: first_word.map(|first_word| Timing { first_word, total }),
            });
        }
    }

    /// Runs the calls of a reply, in their order; neighbours that only read run side by side.
    fn run_calls(&self, reply: &Reply, dialogue: &mut Dialogue, watched: bool) {
        let turn = dialogue.end_turn(reply);
        let Some(toolbox) = &mut dialogue.toolbox else {
            return;
        };
        self.record.begin_step(turn);
        let calls = reply.turn.calls();
        let (mut waiting, too_many) = calls.split_at(MAX_CALLS.min(calls.len()));
        while !waiting.is_empty() {
            let (batch, later) = waiting.split_at(toolbox.batch_of(waiting, self.notes));
            let runs = toolbox.run(batch, watched, &*self.record, self.notes);
            self.record.calls_finished(runs);
            waiting = later;
        }
        let refused = too_many.iter().map(Toolbox::refuse);
        self.record.calls_finished(refused.collect());
    }

    /// Finishes with the last reply.
    fn finish(
        &self,
        received: ReceivedReply,
        dialogue: &mut Dialogue,
        call: &Call,
        file: Option<&AnswerFile>,
        printer: &Printer,
    ) -> Result<(), Error> {
        let ReceivedReply { reply, end, timing } = received;
        let mut end = end;
        // The last reply may have no text where all of it came before a pause.
        let state = self.record.lock();
        let is_blank = state.answer.is_blank();
        let has_reasoned = state.answer.has_reasoned;
        drop(state);
        if end.is_ok() && is_blank {
            end = Err(call.no_answer(&reply, has_reasoned).into());
        }
        let is_answered = end.is_ok();
        let result = self.conclude(end, &reply, dialogue, printer);
        self.report_reply(&reply, timing.as_ref());
        if let Some(file) = file
            && is_answered
        {
            self.keep(file, &reply, &result);
        }
        result
    }

    /// Prints the rest of the answer and saves it. The notes about it come after its last line.
    pub fn conclude(
        &self,
        end: Result<(), CallEnd>,
        reply: &Reply,
        dialogue: &mut Dialogue,
        printer: &Printer,
    ) -> Result<(), Error> {
        if let Some(toolbox) = &mut dialogue.toolbox {
            toolbox.report_servers(self.notes);
        }
        let has_output = !matches!(end, Err(CallEnd::Output(_)));
        let result = printer.finish(end, reply, self, dialogue);

        let state = self.record.lock();
        let sources = source_lines(&state.answer.sources.list);
        let steps = state.answer.steps.len();
        drop(state);
        if has_output {
            let mut lines = failed_search_lines(&dialogue.failed_searches);
            lines.extend(sources);
            self.notes.note_lines(lines);
        }
        dialogue.window.report_left_out(self.notes);
        let rounds = self.settings.values.rounds;
        if dialogue.must_answer(steps, rounds) {
            self.notes.note(&format!(
                "the model had to answer, because rounds = {rounds} allows no more calls"
            ));
        }
        result
    }

    /// Reports which server q asks, and what it sends.
    fn report_request(&self, dialogue: &Dialogue) {
        let notes = self.notes;
        let provider = self.target.provider();
        if let Ok(address) = self.target.known_address() {
            let name = &provider.name;
            let model = self.record.lock().answer.model.clone();
            notes.detail(|| format!("provider {name}, model {model}, at {address}"));
        }
        let messages = dialogue.window.messages.iter().chain([&self.question]);
        for (number, message) in (1..).zip(messages) {
            let role = message.role;
            let length = message.text.len();
            notes.detail(|| format!("message {number}: {role}, {length} bytes"));
        }
    }

    /// Reports how long a reply took and what it used.
    fn report_reply(&self, reply: &Reply, timing: Option<&Timing>) {
        if let Some(Timing { first_word, total }) = timing {
            self.notes
                .detail(|| format!("first word after {first_word:.3} s, all after {total:.3} s"));
        }
        if let Some(usage) = reply.usage() {
            self.notes.detail(|| format!("usage: {}", usage.in_words()));
        }
    }
}

/// A line for each of the provider's searches that failed.
fn failed_search_lines(reasons: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    for reason in reasons {
        let mut line = "a search of the web failed".to_owned();
        if !reason.is_empty() {
            line += &format!(": {}", on_one_line(reason));
        }
        lines.push(line);
    }
    lines
}
