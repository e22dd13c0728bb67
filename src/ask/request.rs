//! Makes the next request of a run, and leaves out of further ones what the provider does not accept.

use std::io::{self, IsTerminal};

use super::dialogue::Dialogue;
use super::run::Run;
use crate::error::Error;
use crate::message::Message;
use crate::provider::failure::{self, ErrorClass};
use crate::provider::request::{AnswerForm, OptionalField, Prompt, Request};
use crate::server::api_error::ApiError;
use crate::text::fence;

/// Advice for a prompt that cannot be made shorter.
const TOO_LONG: &str =
    "a question with less input, or a model with a larger context (-m), may work";

/// How many bytes of base64 a terminal shows.
const SHOWN_OF_BASE64: usize = 32;

impl Run<'_> {
    /// Returns the next request.
    pub fn request(&self, dialogue: &Dialogue) -> Result<Request, Error> {
        let values = &self.settings.values;
        let form = self.form(dialogue);
        let mut messages = dialogue.window.with(self.question_for(&form));
        let mut system = self.system.as_str();
        if dialogue.rejects(OptionalField::System)
            && let Some(last) = messages.last_mut()
        {
            put_before(last, system);
            system = "";
        }
        let mut effort = None;
        if !dialogue.rejects(OptionalField::Effort) {
            effort = self.effort();
        }
        let answer = &self.record.lock().answer;
        let prompt = Prompt {
            model: &dialogue.model,
            system,
            messages,
            lasting: dialogue.window.kept,
            max_tokens: values.max_tokens,
            effort,
            rejected_fields: &dialogue.rejected_fields,
            stream: self.output.streams,
            tools: dialogue.tools(),
            web: self.settings.arguments.web,
            steps: &answer.steps,
            paused_turn: &dialogue.paused.turn,
            forbids_calls: dialogue.must_answer(answer.steps.len(), values.rounds),
            form,
        };
        self.target.request(&prompt, &self.settings.options)
    }

    /// Returns the question, which asks for the shape itself where the API is not told to enforce it.
    fn question_for(&self, form: &AnswerForm) -> Message {
        // A copy shares the text.
        let mut question = self.question.clone();
        if let Some(shape) = self.output.shape()
            && !matches!(form, AnswerForm::Shaped(_))
        {
            let schema = &shape.schema;
            let order =
                format!("Answer with nothing but JSON that fits this JSON Schema:\n{schema}");
            question.text = fence::join([&*question.text, &order]).into();
        }
        question
    }

    /// Returns the effort that is asked for.
    fn effort(&self) -> Option<&str> {
        let set = self.settings.values.effort.as_deref();
        set.or(self.target.provider().quirks.effort)
    }

    /// Returns how the API enforces the shape; after each refusal, in a way that more servers support. Not every API does so
    /// together with tools or a search.
    fn form(&self, dialogue: &Dialogue) -> AnswerForm<'_> {
        let api = self.target.provider().api;
        let is_alone = dialogue.toolbox.is_none() && !self.settings.arguments.web;
        let shape = match self.output.shape() {
            Some(shape) if is_alone && api.can_enforce(shape) => shape,
            _ => return AnswerForm::Any,
        };
        let rejected = dialogue.rejected_fields.iter();
        match rejected
            .filter(|field| **field == OptionalField::Form)
            .count()
        {
            0 => AnswerForm::Shaped(shape),
            1 if api.enforces_maps && shape.is_object() => AnswerForm::Object,
            _ => AnswerForm::Any,
        }
    }

    /// Returns the body of the request as text. A terminal gets only the beginning of base64.
    pub fn body_to_show(&self, dialogue: &Dialogue) -> Result<String, Error> {
        let mut body = self.request(dialogue)?.body.unwrap_or_default();
        if !io::stdout().is_terminal() {
            return Ok(body);
        }
        for message in dialogue.window.messages.iter().chain([&self.question]) {
            for attachment in &message.attachments {
                let data = &*attachment.data;
                if let Some(beginning) = data.get(..SHOWN_OF_BASE64) {
                    let length = data.len();
                    let shown = format!("{beginning}… ({length} bytes of base64)");
                    body = body.replace(data, &shown);
                }
            }
        }
        Ok(body)
    }

    /// Changes what the provider did not accept, for another request. Returns whether anything can be changed; if not, the
    /// failure may have got advice.
    pub fn adapt_to(&self, failed: &mut ApiError, dialogue: &mut Dialogue) -> bool {
        match failed.meaning {
            ErrorClass::TooLong => {
                let is_shorter = dialogue.window.halve();
                if !is_shorter {
                    failed.error = failed.error.clone().advise_also(TOO_LONG);
                }
                is_shorter
            }
            ErrorClass::UnknownModel => self.replace_retired_model(failed, dialogue),
            ErrorClass::CannotChat => self.ask_next_model(dialogue),
            ErrorClass::Rejects(field) => self.retry_without(field, failed, dialogue),
            ErrorClass::RejectsTool(place) => {
                let toolbox = dialogue.toolbox.as_ref();
                failed.error.advice = toolbox.and_then(|toolbox| toolbox.leave_out_advice(place));
                false
            }
            _ => false,
        }
    }

    /// Leaves out of further requests what the server has refused in this one, unless only the user can leave it out.
    fn retry_without(
        &self,
        field: OptionalField,
        failed: &mut ApiError,
        dialogue: &mut Dialogue,
    ) -> bool {
        let notes = self.notes;
        let provider = &self.target.provider().name;
        let error = &mut failed.error;
        match field {
            OptionalField::Effort => {
                let effort = self.effort().unwrap_or_default();
                let mut levels = failure::levels_in(&error.message, effort);
                if !levels.is_empty() {
                    levels = format!(" (levels that {provider} names: {levels})");
                }
                if self.settings.effort_is_explicit {
                    error.advice = Some(format!("choose another level, or leave out -e{levels}"));
                    return false;
                }
                notes.note(&format!(
                    "{provider} does not accept the effort {effort}; retrying without it{levels}"
                ));
            }
            OptionalField::Store => notes.note(&format!(
                "{provider} does not accept store = false, so it may keep this request"
            )),
            OptionalField::Attachments if !self.record.leave_out_images() => return false,
            OptionalField::Attachments => notes.note(&format!(
                "{} does not read images; those of tools are left out",
                dialogue.model
            )),
            // The limit has two names: the usual one was rejected before, and now the other one.
            OptionalField::Limit if dialogue.rejects(field) => return false,
            // These only tune the request, or are said in another way.
            OptionalField::Cache
            | OptionalField::Usage
            | OptionalField::Encrypted
            | OptionalField::Choice
            | OptionalField::Limit
            | OptionalField::System
            | OptionalField::Form => {}
        }
        notes.detail(|| format!("{error}; retrying without what it rejects"));
        dialogue.rejected_fields.push(field);
        true
    }

    /// Asks the next model of the server's list, once, where nobody named the one that cannot chat.
    fn ask_next_model(&self, dialogue: &mut Dialogue) -> bool {
        if std::mem::replace(&mut dialogue.has_next_model, true) {
            return false;
        }
        let model = &dialogue.model;
        let Some(next) = self.target.next_model(model, self.notes) else {
            return false;
        };
        self.notes
            .detail(|| format!("{model} cannot chat; asking {next}"));
        dialogue.model = next;
        true
    }

    /// Replaces a model that the server does not know with the newest one of its family, if that is another one.
    fn replace_retired_model(&self, failed: &mut ApiError, dialogue: &mut Dialogue) -> bool {
        let model = &dialogue.model;
        let replacement =
            self.target
                .replace_retired_model(model, failed.error.clone(), self.notes);
        let newest = match replacement {
            Ok(newest) => newest,
            Err(error) => {
                failed.error = error;
                return false;
            }
        };
        let provider = &self.target.provider().name;
        let file = self.settings.file.display();
        self.notes.note(&format!(
            "{provider} no longer serves {model}; asking {newest}: model = \"{newest}\" in {file}, or Q_MODEL={newest}, \
             silences this note"
        ));
        dialogue.model = newest;
        true
    }
}

/// Puts the system prompt before the text of a message.
fn put_before(message: &mut Message, system: &str) {
    message.text = fence::join([system, &*message.text]).into();
    message.part_ends.clear();
}
