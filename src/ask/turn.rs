//! Takes a question to its answer: asks, runs the tools that the model calls, and asks again.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;

use super::delivery::Delivery;
use super::known;
use super::prompt;
use super::record::Record;
use super::run::{Run, ShapeEnforcement};
use crate::answers::AnswerFile;
use crate::error::Error;
use crate::interrupt::Interrupts;
use crate::message::{Attachment, Step, ToolRun};
use crate::output::{print, source_lines};
use crate::provider::failure::{self, Meaning};
use crate::provider::finish::Finish;
use crate::provider::reply::{Reply, Tail};
use crate::provider::request::{AnswerForm, Extra, Prompt, Request};
use crate::secret::{self, Secret};
use crate::server::call::{Call, CallEnd, CallError};
use crate::text::one_line::on_one_line;
use crate::tools::{MAX_CALLS, Toolbox};

/// Advice for a prompt that cannot be made shorter.
const TOO_LONG: &str =
    "a question with less input, or a model with a larger context (-m), may work";

/// How many bytes of base64 a terminal shows.
const SHOWN_OF_BASE64: usize = 32;

impl Run {
    /// The next request.
    pub fn request(&self) -> Result<Request, Error> {
        let values = &self.settings.values;
        let progress = &self.progress;
        let form = match &self.shape {
            Some((shape, ShapeEnforcement::ByApi)) => AnswerForm::Shaped(shape),
            Some((_, ShapeEnforcement::AsObject)) => AnswerForm::Object,
            _ => AnswerForm::Any,
        };
        // A copy shares the text.
        let mut question = self.question.clone();
        if let Some((shape, enforcement)) = &self.shape
            && *enforcement != ShapeEnforcement::ByApi
        {
            question = prompt::with_shape(&question, shape);
        }
        let messages = prompt::messages(&self.window.messages, &question, values.history);
        let sends = |extra| !progress.left_out.contains(&extra);
        let mut effort = None;
        if sends(Extra::Effort) {
            effort = self.effort();
        }
        let prompt = Prompt {
            model: &self.model,
            system: &self.system,
            messages,
            max_tokens: values.max_tokens,
            effort,
            refuses_storage: sends(Extra::Store),
            caches: sends(Extra::Cache),
            stream: !self.settings.typed.no_stream,
            tools: self.toolbox.as_ref().map_or(&[], |toolbox| &toolbox.tools),
            web: self.settings.typed.web,
            steps: &progress.steps,
            paused_turn: &progress.paused_turn,
            forbids_calls: self.is_last(),
            form,
        };
        self.target.request(&prompt, &self.settings.options)
    }

    /// The effort that is asked for.
    fn effort(&self) -> Option<&str> {
        let set = self.settings.values.effort.as_deref();
        set.or(self.target.provider().quirks.effort)
    }

    /// The body of the request as text. A terminal gets only the beginning of base64.
    fn body_to_show(&self) -> Result<String, Error> {
        let mut body = self.request()?.body.unwrap_or_default().to_string();
        if !io::stdout().is_terminal() {
            return Ok(body);
        }
        for message in self.window.messages.iter().chain([&self.question]) {
            for Attachment { data, .. } in &message.attachments {
                if let Some(beginning) = data.get(..SHOWN_OF_BASE64) {
                    let length = data.len();
                    let shown = format!("{beginning}… ({length} bytes of base64)");
                    body = body.replace(&**data, &shown);
                }
            }
        }
        Ok(body)
    }

    /// Whether this is the last request: the model has called so often that it must answer now.
    fn is_last(&self) -> bool {
        let rounds = self.progress.steps.len();
        self.toolbox.is_some() && rounds >= self.settings.values.rounds
    }

    /// Answers the question, from a file if the answer is known, and saves the exchange. A dry run prints the request instead.
    pub fn ask(&mut self, interrupts: Arc<Interrupts>) -> Result<(), Error> {
        let file = self.answer_file()?;
        if self.settings.typed.dry_run {
            self.report();
            self.window.report_left_out(&self.notes);
            if let Some(file) = &file {
                let path = file.path.display();
                let detail = || format!("the answer is looked for in {path}");
                self.notes.detail(detail);
            }
            return print(&self.body_to_show()?);
        }
        let mut known = None;
        if let Some(file) = &file {
            known = self.look_up(file)?;
        }
        if known.is_none() {
            self.target.fetch_key(&self.notes)?;
        }
        let saver = self.saver.take();
        let record = Record::new(self.question.clone(), saver, self.notes.clone());
        let delivery = Delivery::new(self, record, interrupts)?;
        match known {
            Some(known) => self.deliver(known, delivery),
            None => self.ask_until_answered(file.as_ref(), delivery),
        }
    }

    /// Asks until there is an answer, delivers it, and keeps it in `file`.
    fn ask_until_answered(
        &mut self,
        file: Option<&AnswerFile>,
        mut delivery: Delivery,
    ) -> Result<(), Error> {
        let target = Arc::clone(&self.target);
        let notes = self.notes.clone();
        let call = target.call(&notes)?;
        loop {
            let (reply, mut end) = self.ask_once(&call, &mut delivery)?;
            let reply = &reply;
            let progress = &mut self.progress;
            let failed_searches = &reply.failed_searches;
            progress.failed_searches.extend_from_slice(failed_searches);
            progress.usage = match (progress.usage, reply.usage()) {
                (Some(earlier), Some(usage)) => Some(earlier.plus(usage)),
                (earlier, usage) => earlier.or(usage),
            };

            if end.is_ok() {
                let asks_again = self.advance(reply, &mut delivery);
                match asks_again {
                    Ok(true) => {
                        self.report_reply(reply);
                        continue;
                    }
                    // The last reply may have no text where all of it came before a pause.
                    Ok(false) if delivery.record.is_blank() => {
                        end = Err(call.no_answer(reply).into());
                    }
                    Ok(false) => {}
                    Err(error) => end = Err(error),
                }
            }
            let mut known = None;
            if let Some(file) = file
                && end.is_ok()
            {
                let answer = self.known_answer(file, reply, &delivery);
                known = answer.map(|answer| (answer, file));
            }
            let result = self.finish(&call.secrets, reply, end, delivery);
            self.report_reply(reply);
            if let Some((answer, place)) = known {
                known::keep(&answer, place, &result, &notes);
            }
            return result;
        }
    }

    /// Delivers the answer. The notes about it come after its last line.
    pub fn finish(
        &mut self,
        secrets: &[Secret],
        reply: &Reply,
        end: Result<(), CallEnd>,
        delivery: Delivery,
    ) -> Result<(), Error> {
        if let Some(toolbox) = &mut self.toolbox {
            toolbox.report_servers(&self.notes);
        }
        let sources = delivery.record.sources();
        let has_output = !matches!(end, Err(CallEnd::Output(_)));
        let result = delivery.finish(end, reply, self);

        let notes = &self.notes;
        if has_output {
            let mut lines = failed_search_lines(&self.progress.failed_searches);
            lines.push_str(&source_lines(&sources));
            notes.note(&secret::redact(&lines, secrets));
        }
        self.window.report_left_out(notes);
        if self.is_last() {
            let rounds = self.settings.values.rounds;
            notes.note(&format!(
                "the model had to answer, because rounds = {rounds} allows no more calls"
            ));
        }
        result
    }

    /// Runs the calls of a reply, or keeps what came before a pause. Returns whether another request has to follow.
    fn advance(&mut self, reply: &Reply, delivery: &mut Delivery) -> Result<bool, CallEnd> {
        let is_cut = matches!(reply.finished(), Some(Finish::Limit(_)));
        if !reply.calls().is_empty() && !is_cut {
            self.run_calls(reply, delivery)?;
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

    /// Asks once, and again if the provider may accept less. Returns the reply, and how it ended.
    fn ask_once(
        &mut self,
        call: &Call,
        delivery: &mut Delivery,
    ) -> Result<(Reply, Result<(), CallEnd>), Error> {
        loop {
            self.report();
            let began = Instant::now();
            let mut first_word = None;
            let mut reply = Reply::default();
            let request = self.request()?;
            let mut end = call.stream(&request, self.progress.tail, &mut reply, &mut |piece| {
                if !piece.text.is_empty() {
                    first_word.get_or_insert_with(|| began.elapsed());
                }
                delivery.take(piece)
            });
            if first_word.is_none()
                && let Err(CallEnd::Failed(failed)) = end
            {
                match self.adapt_to(failed, delivery) {
                    Ok(()) => continue,
                    Err(failed) => end = Err(failed.into()),
                }
            }
            self.progress.first_word = first_word;
            self.progress.total = began.elapsed();
            return Ok((reply, end));
        }
    }

    /// Changes what the provider did not accept, for another request. If nothing can be changed, returns the failure,
    /// perhaps with advice.
    fn adapt_to(&mut self, mut failed: CallError, delivery: &Delivery) -> Result<(), CallError> {
        match failed.meaning {
            Meaning::TooLong => {
                if self.window.halve() {
                    return Ok(());
                }
                failed.error = failed.error.advise_also(TOO_LONG);
                Err(failed)
            }
            Meaning::UnknownModel if !self.progress.is_healed => {
                self.progress.is_healed = true;
                if let Err(error) = self.heal(failed.error) {
                    failed.error = error;
                    return Err(failed);
                }
                delivery.record.set_model(&self.model);
                Ok(())
            }
            Meaning::Refuses(extra) => self.leave_out(extra, failed),
            _ => Err(failed),
        }
    }

    /// Runs the calls of a reply, in their order; neighbours that only read run side by side.
    fn run_calls(&mut self, reply: &Reply, delivery: &mut Delivery) -> Result<(), CallEnd> {
        let Some(toolbox) = &mut self.toolbox else {
            return Ok(());
        };
        let progress = &mut self.progress;
        let text = delivery.begin_step().map_err(CallEnd::Output)?;
        let mut echo = std::mem::take(&mut progress.paused_turn);
        echo.extend(reply.echo());
        progress.tail = Tail::default();

        let mut step = Step {
            text,
            echo,
            ..Step::default()
        };
        let calls = reply.calls();
        let (mut waiting, too_many) = calls.split_at(MAX_CALLS.min(calls.len()));
        while !waiting.is_empty() {
            let (batch, later) = waiting.split_at(toolbox.batch_of(waiting, &self.notes));
            let watched = delivery.is_watched();
            let runs = toolbox.run(batch, watched, &*delivery.record, &self.notes);
            delivery.record.calls_finished(&runs);
            step.calls.extend(runs);
            waiting = later;
        }
        let refused: Vec<ToolRun> = too_many.iter().map(Toolbox::refuse).collect();
        delivery.record.calls_finished(&refused);
        step.calls.extend(refused);
        progress.steps.push(step);
        Ok(())
    }

    /// Leaves out of further requests what the server has refused in this one. If only the user can leave it out, returns
    /// the failure, perhaps with advice.
    fn leave_out(&mut self, extra: Extra, mut failed: CallError) -> Result<(), CallError> {
        let notes = &self.notes;
        let provider = &self.target.provider().name;
        match extra {
            Extra::Effort => {
                let effort = self.effort().unwrap_or_default();
                let mut levels = failure::levels_in(&failed.error.message, effort);
                if !levels.is_empty() {
                    levels = format!(" (levels that {provider} names: {levels})");
                }
                if self.settings.effort_is_typed {
                    let advice = format!("choose another level, or leave out -e{levels}");
                    failed.error = failed.error.advise(advice);
                    return Err(failed);
                }
                notes.note(&format!(
                    "{provider} refuses the effort {effort}, so q asks without it{levels}"
                ));
            }
            Extra::Store => notes.note(&format!(
                "{provider} refuses the field store, so it may keep this request"
            )),
            Extra::Cache => {}
            Extra::Form => self.ask_less_of_api(),
            Extra::Attachments => {
                if !self.leave_out_images() {
                    return Err(failed);
                }
            }
        }
        let error = &failed.error;
        self.notes
            .detail(|| format!("{error}; asking again without what it refuses"));
        self.progress.left_out.push(extra);
        Ok(())
    }

    /// Leaves out the images of tools, which not every model reads; their results name them. Returns whether there were any.
    fn leave_out_images(&mut self) -> bool {
        let mut has_images = false;
        for step in &mut self.progress.steps {
            for run in &mut step.calls {
                has_images |= !run.images.is_empty();
                run.images.clear();
            }
        }
        has_images
    }

    /// Asks for the answer's shape in a way that more servers support.
    fn ask_less_of_api(&mut self) {
        let enforces_maps = self.target.provider().api.enforces_maps;
        let Some((shape, enforcement)) = &mut self.shape else {
            return;
        };
        let can_ask_for_object =
            *enforcement == ShapeEnforcement::ByApi && enforces_maps && shape.is_object();
        *enforcement = if can_ask_for_object {
            ShapeEnforcement::AsObject
        } else {
            ShapeEnforcement::InPrompt
        };
    }

    /// Replaces a model that the server does not know with the newest one of its family.
    fn heal(&mut self, error: Error) -> Result<(), Error> {
        let newest = self.target.heal(&self.model, error, &self.notes)?;
        let provider = &self.target.provider().name;
        let model = &self.model;
        let file = self.settings.file.display();
        self.notes.note(&format!(
            "{provider} no longer serves {model}; asking {newest}: model = \"{newest}\" in {file}, or Q_MODEL={newest}, \
             silences this note"
        ));
        self.model = newest;
        Ok(())
    }

    /// Reports which server q asks, and what it sends.
    fn report(&self) {
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
        if let Some(first_word) = self.progress.first_word {
            let first_word = first_word.as_secs_f64();
            let total = self.progress.total.as_secs_f64();
            notes.detail(|| format!("first word after {first_word:.3} s, all after {total:.3} s"));
        }
        if let Some(usage) = reply.usage() {
            notes.detail(|| format!("usage: {}", json!(usage)));
        }
    }
}

/// A line for each of the provider's searches that failed.
fn failed_search_lines(reasons: &[String]) -> String {
    let mut lines = String::new();
    for reason in reasons {
        lines.push_str("a search of the web failed");
        if !reason.is_empty() {
            lines.push_str(&format!(": {}", on_one_line(reason)));
        }
        lines.push('\n');
    }
    lines
}
