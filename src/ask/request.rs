//! Makes the requests of a question, without what the provider has refused.

use std::io::{self, IsTerminal};

use super::answer_form::Output;
use super::dialogue::{Dialogue, FormLevel};
use crate::error::Error;
use crate::message::{Message, Step};
use crate::provider::request::{AnswerForm, OptionalField, Prompt, Request};
use crate::server::target::Target;
use crate::settings::Settings;
use crate::text::fence;

/// How many bytes of base64 a terminal shows.
const SHOWN_OF_BASE64: usize = 32;

/// What all requests of a question have in common.
pub struct RequestMaker<'a> {
    pub settings: &'a Settings,
    pub output: &'a Output,
    pub target: &'a Target,
    pub system: String,
    pub question: Message,
}

impl RequestMaker<'_> {
    /// Returns the next request, which follows these steps.
    pub fn request(&self, dialogue: &Dialogue, steps: &[Step]) -> Result<Request, Error> {
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
        let prompt = Prompt {
            model: &dialogue.model,
            system,
            messages,
            lasting: dialogue.window.lasting,
            max_tokens: values.max_tokens,
            effort,
            rejected_fields: &dialogue.rejected_fields,
            stream: self.output.streams,
            tools: dialogue.tools(),
            web: self.settings.arguments.web,
            steps,
            paused_turn: &dialogue.paused.turn,
            forbids_calls: dialogue.must_answer(),
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
    pub fn effort(&self) -> Option<&str> {
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
        match dialogue.form {
            FormLevel::Shape => AnswerForm::Shaped(shape),
            FormLevel::Object if api.enforces_maps && shape.is_object() => AnswerForm::Object,
            FormLevel::Object | FormLevel::Words => AnswerForm::Any,
        }
    }

    /// Returns the body of the first request as text. A terminal gets only the beginning of base64.
    pub fn body_to_show(&self, dialogue: &Dialogue) -> Result<String, Error> {
        let mut body = self.request(dialogue, &[])?.body.unwrap_or_default();
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
}

/// Puts the system prompt before the text of a message.
fn put_before(message: &mut Message, system: &str) {
    message.text = fence::join([system, &*message.text]).into();
    message.part_ends.clear();
}
