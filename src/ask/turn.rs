//! Takes a question to its answer: asks, runs the tools that the model calls, and asks again.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::delivery::{Delivery, Facts};
use super::prompt;
use super::window::Window;
use crate::error::Error;
use crate::message::{Attachment, Message, Step, Usage};
use crate::one_line::on_one_line;
use crate::output::{Notes, source_lines};
use crate::provider::failure::{self, Meaning};
use crate::provider::finish::Finish;
use crate::provider::reply::{FailedSearch, Reply, Tail};
use crate::provider::request::{AnswerForm, Extra, Prompt, Request};
use crate::secret::{self, Secret};
use crate::server::call::{Call, CallEnd, CallError};
use crate::server::target::Target;
use crate::settings::Settings;
use crate::shape::Shape;
use crate::tools::{MAX_CALLS, Toolbox};

/// Advice for a prompt that cannot be made shorter.
const TOO_LONG: &str =
    "a question with less input, or a model with a larger context (-m), may work";

/// Cutting a result of fewer bytes would not help.
const MIN_CUT: usize = 1_000;

/// How many bytes of base64 a terminal shows.
const SHOWN_OF_BASE64: usize = 32;

/// One question to one provider, with as much of the conversation as it accepts, and the tools that it may call.
pub(super) struct Turn {
    pub(super) target: Arc<Target>,
    pub(super) model: String,
    pub(super) system: String,
    pub(super) window: Window,
    pub(super) question: Message,
    pub(super) settings: Settings,
    /// What the provider has refused, and requests can do without.
    pub(super) left_out: Vec<Extra>,
    pub(super) stream: bool,
    pub(super) toolbox: Option<Toolbox>,
    /// The calls so far.
    pub(super) steps: Vec<Step>,
    /// What the API wants back to continue an answer that it has paused.
    pub(super) begun: Vec<Value>,
    /// What that answer ends with.
    pub(super) tail: Tail,
    /// How often it has done so.
    pub(super) pauses: usize,
    /// Results in the steps were cut, because the provider found the prompt too long.
    pub(super) cut_results: bool,
    /// The shape that the answer must have, and how it is asked for.
    pub(super) shape: Option<(Shape, ShapeEnforcement)>,
}

/// How the shape of an answer is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShapeEnforcement {
    /// The API enforces it.
    ByApi,
    /// The API enforces an object; the prompt describes its shape.
    AsObject,
    InPrompt,
}

/// A reply, and when it came.
struct Answered {
    reply: Reply,
    ended: Result<(), CallEnd>,
    /// The time from the request to the first text; `None` if there was none.
    first_word: Option<Duration>,
    /// The time from the request to the end.
    whole: Duration,
}

impl Turn {
    /// The next request.
    fn request(&self) -> Result<Request, Error> {
        let values = &self.settings.values;
        let (form, question) = match &self.shape {
            None => (AnswerForm::Any, Cow::Borrowed(&self.question)),
            Some((shape, ShapeEnforcement::ByApi)) => {
                (AnswerForm::Shaped(shape), Cow::Borrowed(&self.question))
            }
            Some((shape, enforcement)) => {
                let form = if *enforcement == ShapeEnforcement::AsObject {
                    AnswerForm::Object
                } else {
                    AnswerForm::Any
                };
                (form, Cow::Owned(prompt::with_shape(&self.question, shape)))
            }
        };
        let sends = |extra| !self.left_out.contains(&extra);
        let prompt = Prompt {
            model: &self.model,
            system: &self.system,
            messages: prompt::messages(self.window.messages(), &question, values.history),
            max_tokens: values.max_tokens,
            effort: self.effort().filter(|_| sends(Extra::Effort)),
            refuses_storage: sends(Extra::Store),
            caches: sends(Extra::Cache),
            stream: self.stream,
            tools: self.toolbox.as_ref().map_or(&[], Toolbox::tools),
            web: self.settings.typed.web,
            steps: &self.steps,
            paused_turn: &self.begun,
            forbids_calls: self.is_last(),
            form,
        };
        self.target.request(&prompt, &self.settings.options)
    }

    /// The effort that is asked for.
    fn effort(&self) -> Option<&str> {
        self.settings
            .values
            .effort
            .as_deref()
            .or(self.target.provider().quirks.effort)
    }

    /// The body of the request as text. A terminal gets only the beginning of base64.
    pub(super) fn body_to_show(&self, is_terminal: bool) -> Result<String, Error> {
        let mut body = self.request()?.body.unwrap_or_default().to_string();
        if is_terminal {
            let messages = self.window.messages().iter().chain([&self.question]);
            for data in messages
                .flat_map(|message| &message.attachments)
                .map(|attachment| &*attachment.data)
            {
                if let Some(beginning) = data.get(..SHOWN_OF_BASE64) {
                    body = body.replace(
                        data,
                        &format!("{beginning}… ({} bytes of base64)", data.len()),
                    );
                }
            }
        }
        Ok(body)
    }

    /// Whether the model has called so often that it must answer now.
    fn is_last(&self) -> bool {
        self.toolbox.is_some() && self.steps.len() >= self.settings.values.rounds
    }

    /// Asks until there is an answer, and delivers it.
    ///
    /// # Errors
    /// Why there is no answer, or why it is incomplete.
    pub(super) fn run(&mut self, mut delivery: Delivery, notes: &Notes) -> Result<(), Error> {
        let target = Arc::clone(&self.target);
        let call = target.call(notes)?;
        let (mut usage, mut failed_searches) = (None, Vec::new());
        loop {
            let Answered {
                reply,
                ended,
                first_word,
                whole,
            } = self.ask(&call, &mut delivery, notes)?;
            usage = [usage, reply.usage()]
                .into_iter()
                .flatten()
                .reduce(Usage::plus);
            failed_searches.extend_from_slice(reply.failed_searches());
            let ended = match ended.and_then(|()| self.advance(&reply, &mut delivery, notes)) {
                Ok(true) => {
                    report_reply(&reply, first_word, whole, notes);
                    continue;
                }
                // All text may have come before a pause.
                Ok(false) if delivery.record.is_blank() => Err(call.no_answer(&reply).into()),
                advanced => advanced.map(drop),
            };
            let messages_sent = self.window.messages().len();
            // Saving reads the conversation again, which may have megabytes of images.
            self.window.forget();
            let facts = Facts {
                provider: self.target.provider().name.clone(),
                model: self.model.clone(),
                role: self.settings.typed.role.clone(),
                messages_sent,
                steps: self.toolbox.as_ref().map(|_| self.steps.clone()),
                usage,
                sources: Some(delivery.record.sources())
                    .filter(|all| self.settings.typed.web || !all.is_empty()),
            };
            let is_read = !matches!(ended, Err(CallEnd::Output(_)));
            // Notes come after the answer's last line.
            let done = delivery.finish(ended, &reply, &facts);
            if is_read {
                report_search(&facts, &failed_searches, &call.secrets, notes);
            }
            self.window.report_too_long(notes);
            self.report_cut_results(notes);
            // A reply that calls tools again is no answer, but it has come.
            if self.is_last() && (done.is_ok() || reply.finished().is_some()) {
                let rounds = self.steps.len();
                let plural = if rounds == 1 { "" } else { "s" };
                notes.note(&format!(
                    "after {rounds} round{plural} of calls the model had to answer; the setting rounds allows more"
                ));
            }
            report_reply(&reply, first_word, whole, notes);
            return done;
        }
    }

    /// Runs the calls of a reply, or keeps what came before a pause. Returns whether another request has to follow.
    fn advance(
        &mut self,
        reply: &Reply,
        delivery: &mut Delivery,
        notes: &Notes,
    ) -> Result<bool, CallEnd> {
        let is_cut = matches!(reply.finished(), Some(Finish::Limit(_)));
        if !reply.calls().is_empty() && !is_cut {
            return self.run_calls(reply, delivery, notes).map(|()| true);
        }
        let is_continued = reply.is_paused() && self.pauses < self.settings.values.rounds;
        if is_continued {
            self.pauses += 1;
            self.tail = reply.tail();
            self.begun.extend(reply.echo());
        }
        Ok(is_continued)
    }

    /// Asks once, and again if the provider may accept less.
    fn ask(
        &mut self,
        call: &Call,
        delivery: &mut Delivery,
        notes: &Notes,
    ) -> Result<Answered, Error> {
        let mut healed = false;
        loop {
            self.report(notes);
            let began = Instant::now();
            let mut first_word = None;
            let mut reply = Reply::default();
            let ended = call.stream(&self.request()?, self.tail, &mut reply, &mut |piece| {
                if !piece.text.is_empty() {
                    first_word.get_or_insert_with(|| began.elapsed());
                }
                delivery.take(piece)
            });
            let ended = match ended {
                Err(CallEnd::Failed(failed)) if first_word.is_none() => {
                    match self.adapt_to(failed, &mut healed, delivery, notes) {
                        Ok(()) => continue,
                        Err(failed) => Err(failed.into()),
                    }
                }
                ended => ended,
            };
            return Ok(Answered {
                reply,
                ended,
                first_word,
                whole: began.elapsed(),
            });
        }
    }

    /// Changes the next request so that the provider may accept it.
    ///
    /// # Errors
    /// The failure, if it leaves nothing to change; perhaps with advice.
    fn adapt_to(
        &mut self,
        mut failed: CallError,
        healed: &mut bool,
        delivery: &Delivery,
        notes: &Notes,
    ) -> Result<(), CallError> {
        match failed.meaning {
            Meaning::TooLong if self.window.halve() || self.shorten_results() => Ok(()),
            Meaning::TooLong => {
                failed.error = failed.error.advise_also(TOO_LONG);
                Err(failed)
            }
            Meaning::UnknownModel if !*healed => {
                *healed = true;
                if let Err(error) = self.heal(failed.error, notes) {
                    failed.error = error;
                    return Err(failed);
                }
                delivery.record.set_model(&self.model);
                Ok(())
            }
            Meaning::Refuses(extra) => self.leave_out(extra, failed, notes),
            _ => Err(failed),
        }
    }

    /// Runs the calls of a reply, one after another.
    fn run_calls(
        &mut self,
        reply: &Reply,
        delivery: &mut Delivery,
        notes: &Notes,
    ) -> Result<(), CallEnd> {
        let Some(toolbox) = &mut self.toolbox else {
            return Ok(());
        };
        let text = delivery.begin_step().map_err(CallEnd::Output)?;
        let echo = [std::mem::take(&mut self.begun), reply.echo()].concat();
        self.tail = Tail::default();
        let mut step = Step {
            text,
            echo,
            ..Step::default()
        };
        for (number, call) in reply.calls().iter().enumerate() {
            let ran = match number < MAX_CALLS {
                true => toolbox.run(
                    call,
                    delivery.is_watched(),
                    &|| delivery.record.call_started(call),
                    notes,
                ),
                false => Toolbox::refuse(call),
            };
            delivery.record.call_finished(ran.clone());
            step.calls.push(ran);
        }
        self.steps.push(step);
        Ok(())
    }

    /// Cuts the longest result of this question's calls to a quarter. Returns whether there was a result to cut.
    fn shorten_results(&mut self) -> bool {
        let results = self
            .steps
            .iter_mut()
            .flat_map(|step| &mut step.calls)
            .map(|ran| &mut ran.result);
        match results
            .max_by_key(|result| result.len())
            .filter(|result| result.len() >= MIN_CUT)
        {
            Some(result) => {
                *result = crate::tools::cut(result, result.len() / 4);
                self.cut_results = true;
                true
            }
            None => false,
        }
    }

    /// Leaves out of the next request what the server has refused in this one.
    ///
    /// # Errors
    /// The failure, if only the user can leave it out; perhaps with advice.
    fn leave_out(
        &mut self,
        extra: Extra,
        mut failed: CallError,
        notes: &Notes,
    ) -> Result<(), CallError> {
        let provider = &self.target.provider().name;
        match extra {
            Extra::Effort => {
                let effort = self.effort().unwrap_or_default();
                let mut levels = failure::levels_in(&failed.error.message, effort);
                if !levels.is_empty() {
                    levels = format!(" (levels that {provider} names: {levels})");
                }
                if self.settings.effort_is_typed {
                    failed.error = failed
                        .error
                        .advise(format!("choose another level, or leave out -e{levels}"));
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
            Extra::Attachments if self.leave_out_images() => {}
            Extra::Attachments => return Err(failed),
        }
        notes.detail(|| format!("{}; asking again without what it refuses", failed.error));
        self.left_out.push(extra);
        Ok(())
    }

    /// Leaves out the images of tools, which not every model reads; their results name them. Returns whether there were any.
    fn leave_out_images(&mut self) -> bool {
        let images = self
            .steps
            .iter_mut()
            .flat_map(|step| &mut step.calls)
            .map(|ran| &mut ran.images);
        images.flat_map(|images| images.drain(..)).count() > 0
    }

    /// Reports that the model has seen less of the tools' results than the file has.
    fn report_cut_results(&self, notes: &Notes) {
        if self.cut_results {
            notes.note("the longest results of tools were sent in part: together they are too long for the model");
        }
    }

    /// Asks for the answer's shape in a way that more servers support.
    fn ask_less_of_api(&mut self) {
        let knows_object_form = self.target.provider().api.knows_object_form;
        let Some((shape, enforcement)) = &mut self.shape else {
            return;
        };
        let can_ask_for_object =
            *enforcement == ShapeEnforcement::ByApi && knows_object_form && shape.is_object();
        *enforcement = if can_ask_for_object {
            ShapeEnforcement::AsObject
        } else {
            ShapeEnforcement::InPrompt
        };
    }

    /// Replaces a model that the server does not know with the newest one of its family.
    fn heal(&mut self, error: Error, notes: &Notes) -> Result<(), Error> {
        let newest = self.target.heal(&self.model, error, notes)?;
        let provider = &self.target.provider().name;
        notes.note(&format!(
            "{provider} no longer serves {}; asking {newest}: model = \"{newest}\" in {}, or Q_MODEL={newest}, \
             silences this note",
            self.model,
            self.settings.file.display()
        ));
        self.model = newest;
        Ok(())
    }

    /// Says which server q asks, and what it sends.
    pub(super) fn report(&self, notes: &Notes) {
        let provider = self.target.provider();
        notes.detail(|| {
            let address = provider
                .address()
                .map_or_else(|error| error.to_string(), ToString::to_string);
            format!(
                "provider {}, model {}, at {address}",
                provider.name, self.model
            )
        });
        for (index, message) in self
            .window
            .messages()
            .iter()
            .chain([&self.question])
            .enumerate()
        {
            let (index, role, length) = (index + 1, message.role, message.text.len());
            let calls = if message.calls > 0 {
                &format!(", calls: {}", message.calls)
            } else {
                ""
            };
            notes.detail(|| format!("message {index}: {role}, {length} bytes{calls}"));
            for Attachment {
                name, media, data, ..
            } in &message.attachments
            {
                let (name, media, size) = (on_one_line(name), on_one_line(media), data.len());
                notes
                    .detail(|| format!("message {index}: {name}, {media}, {size} bytes in base64"));
            }
        }
    }
}

/// Reports what the provider's searches have found, and those that failed.
fn report_search(facts: &Facts, failed: &[FailedSearch], secrets: &[Secret], notes: &Notes) {
    let mut lines = String::new();
    for FailedSearch { is_fetch, reason } in failed {
        let what = if *is_fetch {
            "a page of the web could not be fetched"
        } else {
            "a search of the web failed"
        };
        let reason = reason
            .as_ref()
            .map_or_else(String::new, |reason| format!(": {}", on_one_line(reason)));
        lines.push_str(&format!("{what}{reason}\n"));
    }
    lines.push_str(&source_lines(facts.sources.as_deref().unwrap_or_default()));
    notes.note(&secret::redact(&lines, secrets));
}

/// Reports how long the answer took and what it used.
fn report_reply(reply: &Reply, first_word: Option<Duration>, whole: Duration, notes: &Notes) {
    if let Some(first_word) = first_word {
        let (first_word, whole) = (first_word.as_secs_f64(), whole.as_secs_f64());
        notes.detail(|| format!("first word after {first_word:.3} s, all after {whole:.3} s"));
    }
    if let Some(finish) = reply.finished() {
        notes.detail(|| format!("the answer ended with {}", finish.word()));
    }
    if let Some(usage) = reply.usage() {
        let counted = |tokens: Option<u64>| {
            tokens.map_or_else(|| "?".to_owned(), |tokens| tokens.to_string())
        };
        let part = |tokens: Option<u64>, what| {
            tokens.map_or_else(String::new, |tokens| format!(" ({tokens} {what})"))
        };
        notes.detail(|| {
            format!(
                "usage: {} tokens in{}, {} tokens out{}{}",
                counted(usage.input_tokens),
                part(usage.cached_tokens, "from a cache"),
                counted(usage.output_tokens),
                part(usage.reasoning_tokens, "of reasoning"),
                usage
                    .cost
                    .map_or_else(String::new, |cost| format!(", cost {cost}"))
            )
        });
    }
}
