//! Takes a question to its answer: asks, runs the tools that the model calls, and asks again.

use std::time::Instant;

use super::dialogue::{Dialogue, Next};
use super::finish::LastReply;
use super::printer::AnswerFailure;
use super::run::Run;
use crate::answers::CacheEntry;
use crate::context::Context;
use crate::error::Error;
use crate::output::print;
use crate::provider::reply::{Reply, not_kept};
use crate::provider::request::Request;
use crate::provider::text_calls::{self, TextCall};
use crate::server::api_client::ApiClient;
use crate::server::reply_stream::ReplyStream;
use crate::text::size::in_bytes;
use crate::tools::MAX_CALLS;

/// A reply, and how it ended.
struct ReceivedReply {
    reply: Reply,
    end: Result<(), AnswerFailure>,
    /// `None` if no text has come.
    timing: Option<Timing>,
}

/// The time that a reply took, in seconds.
struct Timing {
    first_word: f64,
    total: f64,
}

impl Run<'_> {
    /// Answers the question, from a file if the answer is cached, and saves the exchange. A dry run prints the request instead.
    pub fn answer(&self, dialogue: &mut Dialogue, context: &Context) -> Result<(), Error> {
        let file = self.answer_file(dialogue, context)?;
        if self.settings.arguments.dry_run {
            return self.print_request(dialogue, file.as_ref());
        }
        if let Some(file) = &file
            && let Some(cached) = self.look_up(file)?
        {
            return self.print_cached(cached, dialogue);
        }
        let client = self.target.ready(self.notes)?;
        // The key is known now, and a tool may print it.
        if let (Some(toolbox), Some(key)) = (&dialogue.toolbox, self.target.key()) {
            toolbox.hide(key);
        }
        self.ask_until_answered(dialogue, &client, file.as_ref())
    }

    /// Prints the request that would be sent.
    fn print_request(
        &self,
        dialogue: &mut Dialogue,
        file: Option<&CacheEntry>,
    ) -> Result<(), Error> {
        self.report_request(dialogue);
        dialogue.window.report_messages_left_out(self.notes);
        if let Some(file) = file {
            let path = file.path.display();
            let detail = || format!("looking for a cached answer: {path}");
            self.notes.detail(detail);
        }
        print(
            &self.requests.body_to_show(dialogue)?,
            self.notes.terminal(),
        )
    }

    /// Asks until there is an answer, prints it, and keeps it in `file`.
    fn ask_until_answered(
        &self,
        dialogue: &mut Dialogue,
        client: &ApiClient,
        file: Option<&CacheEntry>,
    ) -> Result<(), Error> {
        loop {
            let mut received = self.ask_once(dialogue, client)?;
            let mut next = Next::Stop;
            if received.end.is_ok() {
                next = dialogue.next(&received.reply, self.settings.values.rounds);
            }
            if next == Next::RunCalls
                && let Err(unprinted) = self.printer.end_text()
            {
                received.end = Err(unprinted);
                next = Next::Stop;
            }
            match next {
                Next::RunCalls => {
                    let turn = &mut received.reply.turn;
                    turn.leave_out_arguments(&mut dialogue.room_for_arguments);
                    self.run_calls(&received.reply, dialogue);
                }
                Next::ContinuePaused => dialogue.pause(&received.reply),
                Next::Stop => return self.finish(received, dialogue, client, file),
            }
            self.report_reply(&received.reply, received.timing.as_ref());
        }
    }

    /// Asks once, and again if the provider may accept less.
    fn ask_once(
        &self,
        dialogue: &mut Dialogue,
        client: &ApiClient,
    ) -> Result<ReceivedReply, Error> {
        loop {
            let mut received = self.receive_reply(dialogue, client)?;
            if received.timing.is_none()
                && let Err(AnswerFailure::Failed(failed)) = &mut received.end
                && self.adapt_to(failed, dialogue)
            {
                continue;
            }
            if let Some(reasoning) = self.record.end_reply(&received.reply)
                && !self.printer.is_live()
            {
                client.show_reasoning(&reasoning);
            }
            return Ok(received);
        }
    }

    /// Sends the next request, and prints and records its reply as it arrives.
    fn receive_reply(
        &self,
        dialogue: &mut Dialogue,
        client: &ApiClient,
    ) -> Result<ReceivedReply, Error> {
        self.report_request(dialogue);
        let request = self.request(dialogue)?;
        self.record.begin_reply(&dialogue.model);
        let began = Instant::now();
        let mut first_word = None;
        let mut stream = ReplyStream::new(client, &request, dialogue.paused.tail);
        let end = loop {
            let piece = match stream.next() {
                Ok(Some(piece)) => piece,
                Ok(None) => break Ok(()),
                Err(failed) => break Err(AnswerFailure::Failed(failed)),
            };
            if !piece.text.is_empty() {
                first_word.get_or_insert_with(|| began.elapsed().as_secs_f64());
            }
            if let Err(failure) = self.printer.take(piece) {
                break Err(failure);
            }
        };
        let total = began.elapsed().as_secs_f64();
        Ok(ReceivedReply {
            reply: stream.into_reply(),
            end,
            timing: first_word.map(|first_word| Timing { first_word, total }),
        })
    }

    /// Returns the next request, with the steps so far.
    fn request(&self, dialogue: &Dialogue) -> Result<Request, Error> {
        let steps = &self.record.lock().answer.steps;
        self.requests.request(dialogue, steps)
    }

    /// Runs the calls of a reply, in their order; neighbours that only read run side by side.
    fn run_calls(&self, reply: &Reply, dialogue: &mut Dialogue) {
        let turn = dialogue.end_turn(reply);
        let Some(toolbox) = &mut dialogue.toolbox else {
            return;
        };
        self.record.begin_step(turn);
        let calls = reply.turn.calls();
        let (mut waiting, too_many) = calls.split_at(MAX_CALLS.min(calls.len()));
        while !waiting.is_empty() {
            let (batch, later) = waiting.split_at(toolbox.batch_of(waiting, self.notes));
            let runs = toolbox.run(batch, self.printer.is_watched(), &*self.record, self.notes);
            self.record.calls_finished(runs);
            waiting = later;
        }
        let refused = too_many.iter().map(|call| toolbox.refuse(call));
        self.record.calls_finished(refused.collect());
        if dialogue.reads_no_images {
            self.record.leave_out_images();
        }
    }

    /// Finishes with the last reply.
    fn finish(
        &self,
        received: ReceivedReply,
        dialogue: &mut Dialogue,
        client: &ApiClient,
        file: Option<&CacheEntry>,
    ) -> Result<(), Error> {
        let ReceivedReply {
            reply,
            mut end,
            timing,
        } = received;
        // The last reply may have no text where all of it came before a pause.
        let state = self.record.lock();
        let is_blank = state.answer.is_blank();
        let has_reasoned = state.answer.has_reasoned;
        let images = state.answer.images;
        drop(state);
        if end.is_ok() && is_blank {
            end = Err(AnswerFailure::Failed(client.no_answer(
                &reply,
                has_reasoned,
                not_kept(images),
            )));
        }
        let mut last = LastReply::from(reply);
        if end.is_ok() && last.reply.end.is_normal() {
            last.called_in_text = self.tool_called_in_text(dialogue);
            if last.called_in_text.is_some() {
                last.reply.end.end_with_calls_that_cannot_run();
            }
        }
        let is_answered = end.is_ok();
        let result = self.conclude(end, &last, dialogue);
        self.report_reply(&last.reply, timing.as_ref());
        if let Some(file) = file
            && is_answered
        {
            self.store_answer(file, &last.reply, dialogue, &result);
        }
        result
    }

    /// Returns the call that the answer is or ends with, if the server has passed it on as text. It never runs, because an answer
    /// may also quote a call. Where a shape is asked for, that decides what an answer is.
    fn tool_called_in_text(&self, dialogue: &Dialogue) -> Option<TextCall> {
        if self.output.shape().is_some() {
            return None;
        }
        let tools = dialogue.tools().iter().map(|tool| tool.name.as_str());
        let answer = &self.record.lock().answer;
        text_calls::call_in(&answer.text, tools)
    }

    /// Reports which server q asks, and what it sends.
    fn report_request(&self, dialogue: &Dialogue) {
        let notes = self.notes;
        let provider = self.target.provider();
        if let Ok(address) = self.target.known_address() {
            let name = &provider.name;
            let model = &dialogue.model;
            notes.detail(|| format!("provider {name}, model {model}, at {address}"));
        }
        let messages = dialogue
            .window
            .messages
            .iter()
            .chain([&self.requests.question]);
        for (number, message) in (1..).zip(messages) {
            let role = message.role;
            let size = in_bytes(message.text.len());
            notes.detail(|| format!("message {number}: {role}, {size}"));
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
