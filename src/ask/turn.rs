//! Takes a question to its answer: asks, runs the tools that the model calls, and asks again.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;

use super::delivery::Delivery;
use super::run::Run;
use crate::answers::AnswerFile;
use crate::context::Context;
use crate::error::Error;
use crate::output::{print, source_lines};
use crate::provider::finish::Finish;
use crate::provider::reply::{Reply, Tail};
use crate::server::call::{Call, CallEnd};
use crate::text::one_line::on_one_line;
use crate::tools::{MAX_CALLS, Toolbox};

impl Run {
    /// Answers the question, from a file if the answer is known, and saves the exchange. A dry run prints the request instead.
    pub fn ask(&mut self, context: &Context) -> Result<(), Error> {
        let file = self.answer_file(context)?;
        if self.settings.typed.dry_run {
            self.report_request();
            self.window.report_left_out(&self.notes);
            if let Some(file) = &file {
                let path = file.path.display();
                let detail = || format!("the answer is looked for in {path}");
                self.notes.detail(detail);
            }
            return print(&self.body_to_show()?, self.notes.terminal());
        }
        let mut known = None;
        if let Some(file) = &file {
            known = self.look_up(file)?;
        }
        if known.is_none() {
            self.target.fetch_key(&self.notes)?;
        }
        let delivery = Delivery::new(self, context)?;
        match known {
            Some(known) => self.deliver(known, &delivery),
            None => self.ask_until_answered(file.as_ref(), &delivery),
        }
    }

    /// Asks until there is an answer, delivers it, and keeps it in `file`.
    fn ask_until_answered(
        &mut self,
        file: Option<&AnswerFile>,
        delivery: &Delivery,
    ) -> Result<(), Error> {
        let target = Arc::clone(&self.target);
        let notes = self.notes.clone();
        let call = target.call(&notes)?;
        // A command may have printed it.
        if let (Some(toolbox), Some(key)) = (&mut self.toolbox, target.key()) {
            toolbox.hide(key);
        }
        loop {
            let (reply, end) = self.ask_once(&call, delivery)?;
            let mut end = end.and_then(|()| self.prepare_next(&reply, delivery));
            if let Ok(true) = end {
                self.report_reply(&reply);
                continue;
            }
            // The last reply may have no text where all of it came before a pause.
            if end.is_ok() && self.record.answer().is_blank() {
                end = Err(call.no_answer(&reply).into());
            }
            let is_answered = end.is_ok();
            let result = self.finish(&reply, end.map(drop), delivery);
            self.report_reply(&reply);
            if let Some(file) = file
                && is_answered
            {
                self.keep(file, &reply, &result);
            }
            return result;
        }
    }

    /// Asks once, and again if the provider may accept less. Returns the reply, and how it ended.
    fn ask_once(
        &mut self,
        call: &Call,
        delivery: &Delivery,
    ) -> Result<(Reply, Result<(), CallEnd>), Error> {
        loop {
            self.report_request();
            let began = Instant::now();
            let mut first_word = None;
            let mut reply = Reply::default();
            let request = self.request()?;
            let mut end = call.stream(&request, self.progress.tail, &mut reply, &mut |piece| {
                if !piece.text.is_empty() {
                    first_word.get_or_insert_with(|| began.elapsed().as_secs_f64());
                }
                delivery.take(piece)
            });
            if first_word.is_none()
                && let Err(CallEnd::Failed(failed)) = &mut end
                && self.adapt_to(failed)
            {
                continue;
            }
            let total = began.elapsed().as_secs_f64();
            self.progress.timing = first_word.map(|first_word| {
                format!("first word after {first_word:.3} s, all after {total:.3} s")
            });
            let failed_searches = &reply.failed_searches;
            self.progress
                .failed_searches
                .extend_from_slice(failed_searches);
            self.record.add_usage(reply.usage());
            return Ok((reply, end));
        }
    }

    /// Runs the calls of a reply, or keeps what came before a pause. Returns whether another request has to follow.
    fn prepare_next(&mut self, reply: &Reply, delivery: &Delivery) -> Result<bool, CallEnd> {
        let is_cut = matches!(reply.finished(), Some(Finish::Limit(_)));
        if !reply.calls().is_empty() && !is_cut {
            delivery.end_text().map_err(CallEnd::Output)?;
            self.run_calls(reply, delivery.is_watched());
            return Ok(true);
        }
        let progress = &mut self.progress;
        if !reply.is_paused() || progress.pauses >= self.settings.values.rounds {
            return Ok(false);
        }
        progress.pauses += 1;
        progress.tail = reply.tail;
        progress.paused_turn.extend(reply.echo());
        Ok(true)
    }

    /// Runs the calls of a reply, in their order; neighbours that only read run side by side.
    fn run_calls(&mut self, reply: &Reply, watched: bool) {
        let Some(toolbox) = &mut self.toolbox else {
            return;
        };
        let mut echo = std::mem::take(&mut self.progress.paused_turn);
        echo.extend(reply.echo());
        self.progress.tail = Tail::default();
        self.record.begin_step(echo);

        let calls = reply.calls();
        let (mut waiting, too_many) = calls.split_at(MAX_CALLS.min(calls.len()));
        while !waiting.is_empty() {
            let (batch, later) = waiting.split_at(toolbox.batch_of(waiting, &self.notes));
            let runs = toolbox.run(batch, watched, &*self.record, &self.notes);
            self.record.calls_finished(runs);
            waiting = later;
        }
        let refused = too_many.iter().map(Toolbox::refuse);
        self.record.calls_finished(refused.collect());
    }

    /// Delivers the answer. The notes about it come after its last line.
    pub fn finish(
        &mut self,
        reply: &Reply,
        end: Result<(), CallEnd>,
        delivery: &Delivery,
    ) -> Result<(), Error> {
        if let Some(toolbox) = &mut self.toolbox {
            toolbox.report_servers(&self.notes);
        }
        let has_output = !matches!(end, Err(CallEnd::Output(_)));
        let result = delivery.finish(end, reply, self);

        let notes = &self.notes;
        let sources = source_lines(&self.record.answer().sources.list);
        if has_output {
            let mut lines = failed_search_lines(&self.progress.failed_searches);
            lines.extend(sources);
            notes.note_lines(lines);
        }
        self.window.report_left_out(notes);
        let count = self.record.answer().steps.len();
        if self.must_answer(count) {
            let rounds = self.settings.values.rounds;
            notes.note(&format!(
                "the model had to answer, because rounds = {rounds} allows no more calls"
            ));
        }
        result
    }

    /// Reports which server q asks, and what it sends.
    fn report_request(&self) {
        let notes = &self.notes;
        let provider = self.target.provider();
        if let Ok(address) = provider.address() {
            let name = &provider.name;
            let model = &self.model;
            notes.detail(|| format!("provider {name}, model {model}, at {address}"));
        }
        let messages = self.window.messages.iter().chain([&self.question]);
        for (number, message) in (1..).zip(messages) {
            let role = message.role;
            let length = message.text.len();
            notes.detail(|| format!("message {number}: {role}, {length} bytes"));
        }
    }

    /// Reports how long the newest reply took and what it used.
    fn report_reply(&self, reply: &Reply) {
        let notes = &self.notes;
        if let Some(timing) = &self.progress.timing {
            notes.detail(|| timing.clone());
        }
        if let Some(usage) = reply.usage() {
            notes.detail(|| format!("usage: {}", json!(usage)));
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
