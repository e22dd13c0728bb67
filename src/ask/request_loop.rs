//! Takes a question to its answer: asks, runs the tools that the model calls, and asks again.

use std::time::Instant;

use super::answer_file::AnswerFile;
use super::dialogue::{Dialogue, Next};
use super::ending::{Ending, LastReply};
use super::printer::AnswerFailure;
use super::run::Run;
use super::saving::AgainCommand;
use crate::context::Context;
use crate::error::Error;
use crate::output::print;
use crate::provider::reply::{Reply, note_of_images};
use crate::provider::request::LimitOrigin;
use crate::provider::text_calls::{self, TextCall};
use crate::server::api_client::ApiClient;
use crate::server::reply_stream::ReplyStream;
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

/// Answers the question, from a file if the answer is cached, and saves the exchange. A dry run prints the request instead.
pub fn answer(run: &Run, dialogue: &mut Dialogue, context: &Context) -> Result<(), Error> {
    let file = AnswerFile::find(run, dialogue, context)?;
    let window = &dialogue.window;
    let again = run.again.as_ref().map(AgainCommand::in_its_conversation);
    window.report_beyond_settings(&run.record.question, again.as_deref(), run.notes);
    if run.settings.arguments.dry_run {
        return print_request(run, dialogue, file.as_ref());
    }
    if let Some(file) = &file
        && let Some(cached) = file.look_up()?
    {
        return file.conclude_with(cached, dialogue);
    }
    if let Some(to) = &run.handed_to {
        dialogue.window.report_hand_over(to, run.notes);
    }
    let client = run.target.ready(run.notes)?;
    // The key is known now, and a tool may print it.
    if let (Some(toolbox), Some(key)) = (&dialogue.toolbox, run.target.key()) {
        toolbox.hide(key);
    }
    let requests = RequestLoop {
        run,
        client,
        dialogue,
        file,
    };
    requests.ask_until_answered()
}

/// Prints the request that would be sent.
fn print_request(run: &Run, dialogue: &Dialogue, file: Option<&AnswerFile>) -> Result<(), Error> {
    run.report_request(dialogue);
    if let Some(file) = file {
        file.report();
    }
    print(&run.body_to_show(dialogue)?, run.notes.terminal())
}

/// The requests that lead to an answer, one after another.
struct RequestLoop<'a> {
    run: &'a Run<'a>,
    client: ApiClient<'a>,
    dialogue: &'a mut Dialogue,
    /// Where the answer is kept, if it may be cached.
    file: Option<AnswerFile<'a>>,
}

impl RequestLoop<'_> {
    /// Asks until there is an answer, and prints it.
    fn ask_until_answered(mut self) -> Result<(), Error> {
        let run = self.run;
        loop {
            let mut received = self.ask_once()?;
            let mut next = Next::Stop;
            if received.end.is_ok() {
                next = self.dialogue.next(&received.reply);
            }
            if next == Next::RunCalls
                && let Err(unprinted) = run.printer.end_text()
            {
                received.end = Err(unprinted);
                next = Next::Stop;
            }
            match next {
                Next::RunCalls => {
                    let turn = &mut received.reply.turn;
                    turn.leave_out_arguments(&mut self.dialogue.room_for_arguments);
                    self.run_calls(&received.reply);
                }
                Next::ContinuePaused => self.dialogue.pause(&received.reply),
                Next::Stop => return self.finish(received),
            }
            self.report_reply(&received.reply, received.timing.as_ref());
        }
    }

    /// Asks once, and again if the provider may accept less.
    fn ask_once(&mut self) -> Result<ReceivedReply, Error> {
        let run = self.run;
        loop {
            let mut received = self.receive_reply()?;
            if received.timing.is_none()
                && let Err(AnswerFailure::Failed(failed)) = &mut received.end
                && run.adapt(failed, self.dialogue)
            {
                continue;
            }
            if let Some(reasoning) = run.record.end_reply(&received.reply)
                && !run.printer.is_live()
            {
                self.client.show_reasoning(&reasoning);
            }
            return Ok(received);
        }
    }

    /// Returns the model that the conversation is with after this answer. Where the answer is cached, that is the one that was
    /// asked, also if another one answers: the cached answer will be found by it, and so must those of follow-ups be.
    fn model_of_record(&self) -> &str {
        let file = self.file.as_ref();
        file.map_or(&self.dialogue.model, AnswerFile::asked)
    }

    /// Sends the next request, and prints and records its reply as it arrives.
    fn receive_reply(&self) -> Result<ReceivedReply, Error> {
        let RequestLoop {
            run,
            client,
            dialogue,
            ..
        } = self;
        run.report_request(dialogue);
        let request = run.request(dialogue)?;
        let calls_ahead = dialogue.calls_ahead(&request);
        run.record.begin_reply(self.model_of_record());
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
            if let Err(failure) = run.take(piece, calls_ahead) {
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

    /// Runs the calls of a reply, in their order; neighbours that only read run side by side.
    fn run_calls(&mut self, reply: &Reply) {
        let RequestLoop { run, dialogue, .. } = self;
        let turn = dialogue.end_turn(reply);
        let must_answer = dialogue.must_answer();
        let Some(toolbox) = &mut dialogue.toolbox else {
            return;
        };
        run.record.begin_step(turn);
        let calls = reply.turn.calls();
        let (mut waiting, too_many) = calls.split_at(MAX_CALLS.min(calls.len()));
        while !waiting.is_empty() {
            let (batch, later) = waiting.split_at(toolbox.batch_of(waiting, run.notes));
            let runs = toolbox.run(batch, run.printer.is_watched(), &*run.record, run.notes);
            run.record.calls_finished(runs);
            waiting = later;
        }
        let refused = too_many.iter().map(|call| toolbox.refuse(call));
        run.record.calls_finished(refused.collect());
        if !must_answer {
            let provider = run.target.provider();
            toolbox.offer_new_tools(provider.api.tool_schemas, &provider.name, run.notes);
        }
        if dialogue.reads_no_images {
            run.record.leave_out_images();
        }
    }

    /// Finishes with the last reply.
    fn finish(self, received: ReceivedReply) -> Result<(), Error> {
        let run = self.run;
        let ReceivedReply {
            reply,
            mut end,
            timing,
        } = received;
        // The last reply may have no text where all of it came before a pause.
        let state = run.record.lock();
        let is_blank = state.answer.is_blank();
        let has_reasoned = state.answer.has_reasoned;
        let images = state.answer.images;
        drop(state);
        if end.is_ok() && is_blank {
            end = Err(AnswerFailure::Failed(self.client.no_answer(
                &reply,
                has_reasoned,
                &LimitOrigin::of_user(&run.settings.options),
                note_of_images(images),
            )));
        }
        let mut last = LastReply::from(reply);
        if end.is_ok() && last.reply.end.is_normal() {
            last.called_in_text = self.tool_called_in_text();
            if last.called_in_text.is_some() {
                last.reply.end.end_with_calls_that_cannot_run();
            }
        }
        let is_answered = end.is_ok();
        let result = Ending::new(run, &last, self.dialogue).conclude(end);
        self.report_reply(&last.reply, timing.as_ref());
        if let Some(file) = &self.file
            && is_answered
        {
            file.store(&last.reply, self.dialogue, &result);
        }
        result
    }

    /// Returns the call that the answer is or ends with, if the server has passed it on as text. It never runs, because an answer
    /// may also quote a call. Where a shape is asked for, that decides what an answer is.
    fn tool_called_in_text(&self) -> Option<TextCall> {
        if self.run.output.shape().is_some() {
            return None;
        }
        let tools = self.dialogue.tools().iter().map(|tool| tool.name.as_str());
        let answer = &self.run.record.lock().answer;
        text_calls::call_in(&answer.text, tools)
    }

    /// Reports how long a reply took and what it used.
    fn report_reply(&self, reply: &Reply, timing: Option<&Timing>) {
        let notes = self.run.notes;
        if let Some(Timing { first_word, total }) = timing {
            notes.detail(|| format!("first word after {first_word:.3} s, all after {total:.3} s"));
        }
        if let Some(usage) = reply.usage() {
            notes.detail(|| format!("usage: {}", usage.in_words()));
        }
    }
}
