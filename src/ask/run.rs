//! What stays the same while a question is answered, and the requests that are made of it.

use std::io::{self, IsTerminal};
use std::sync::Arc;

use super::answer_form::Output;
use super::dialogue::{Dialogue, FormLevel};
use super::printer::{AnswerFailure, CallsAhead, Printer};
use super::record::Record;
use super::saving::AgainCommand;
use crate::error::Error;
use crate::message::{Message, Sources};
use crate::output::Notes;
use crate::provider::reply::Piece;
use crate::provider::request::{AnswerForm, OptionalField, Prompt, Request};
use crate::server::target::Target;
use crate::settings::Settings;
use crate::text::fence;
use crate::text::size::in_bytes;

/// How many bytes of base64 a terminal shows.
const SHOWN_OF_BASE64: usize = 32;

/// A question to one server: what is asked and in which form, and where the answer goes.
pub struct Run<'a> {
    pub settings: &'a Settings,
    pub notes: &'a Notes,
    pub output: &'a Output,
    pub target: &'a Target,
    /// The provider, perhaps with its model, that gets messages which another one has answered.
    pub handed_to: Option<String>,
    /// The system prompt.
    pub system: String,
    /// The command that asks the question again; `None` if none can.
    pub again: Option<AgainCommand>,
    /// The question, and what comes of its answer.
    pub record: Arc<Record>,
    pub printer: Printer,
}

impl Run<'_> {
    /// Records a piece of the answer, and prints it if the answer is printed as it arrives.
    pub fn take(&self, mut piece: Piece, calls_ahead: CallsAhead) -> Result<(), AnswerFailure> {
        let is_kept = self.record.push(&mut piece);
        self.printer.take(&piece, is_kept, calls_ahead)
    }

    /// Records a cached answer, and prints it, as if it had come in one piece.
    pub fn take_cached(&self, text: String, sources: Sources) -> Result<(), AnswerFailure> {
        let is_kept = self.record.set_cached(&text, sources);
        let piece = Piece {
            text,
            ..Piece::default()
        };
        self.printer.take(&piece, is_kept, CallsAhead::None)
    }

    /// Returns the next request, without what the provider has refused.
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
        let state = self.record.lock();
        let prompt = Prompt {
            model: &dialogue.model,
            system,
            messages,
            lasting: dialogue.window.lasting,
            max_tokens: values.max_tokens.or(dialogue.lowered_limit),
            effort,
            rejected_fields: &dialogue.rejected_fields,
            stream: self.output.streams,
            tools: dialogue.tools(),
            web: self.settings.arguments.web,
            steps: &state.answer.steps,
            paused_turn: &dialogue.paused.turn,
            forbids_calls: dialogue.must_answer(),
            form,
        };
        self.target.request(&prompt, &self.settings.options)
    }

    /// Returns the question, which asks for the shape itself where the API is not told to enforce it.
    fn question_for(&self, form: &AnswerForm) -> Message {
        // A copy shares the text.
        let mut question = self.record.question.clone();
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

    /// Returns the body of the next request as text. A terminal gets only the beginning of base64.
    pub fn body_to_show(&self, dialogue: &Dialogue) -> Result<String, Error> {
        let mut body = self.request(dialogue)?.body.unwrap_or_default();
        if !io::stdout().is_terminal() {
            return Ok(body);
        }
        for message in self.messages(dialogue) {
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

    /// Returns the earlier messages that are sent, and the question.
    fn messages<'m>(&'m self, dialogue: &'m Dialogue) -> impl Iterator<Item = &'m Message> {
        let earlier = dialogue.window.messages.iter();
        earlier.chain([&self.record.question])
    }

    /// Reports which server q asks, and what it sends.
    pub fn report_request(&self, dialogue: &Dialogue) {
        let notes = self.notes;
        let provider = self.target.provider();
        if let Ok(address) = self.target.known_address() {
            let name = &provider.name;
            let model = &dialogue.model;
            notes.detail(|| format!("provider {name}, model {model}, at {address}"));
        }
        for (number, message) in (1..).zip(self.messages(dialogue)) {
            let role = message.role;
            let size = in_bytes(message.text.len());
            notes.detail(|| format!("message {number}: {role}, {size}"));
        }
    }
}

/// Puts the system prompt before the text of a message.
fn put_before(message: &mut Message, system: &str) {
    message.text = fence::join([system, &*message.text]).into();
    message.part_ends.clear();
}
