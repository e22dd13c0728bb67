//! Answers a question from a file, if its answer is known; else keeps the answer that the provider gives.

use serde_json::json;

use super::dialogue::Dialogue;
use super::run::Run;
use crate::answers::{self, AnswerFile, KnownAnswer};
use crate::context::Context;
use crate::error::Error;
use crate::message::Sources;
use crate::provider::finish::Finish;
use crate::provider::reply::{Piece, Reply};
use crate::session::timestamp::Timestamp;
use crate::settings::Cached;
use crate::text::fence;

impl Run<'_> {
    /// The place of the answer to the first request; `None` if it must not be known.
    pub fn answer_file(
        &self,
        dialogue: &Dialogue,
        context: &Context,
    ) -> Result<Option<AnswerFile>, Error> {
        if self.settings.cached == Cached::Off {
            return Ok(None);
        }
        let Some(answers) = context.answers(&self.settings.values) else {
            let error = "there is no home folder, so there are no known answers";
            return Err(Error::settings(error).advise("set HOME, XDG_CACHE_HOME or Q_ANSWERS"));
        };
        let provider = self.target.provider();
        let base_url = provider.address()?.without_keys();
        let body = self.request(dialogue)?.body.unwrap_or_default();
        let model = &dialogue.model;
        let body = serde_json::from_str(&body).unwrap_or_else(|_| body.into());
        let key = answers::key(&base_url, provider.api.name, model, body);
        let mut question = String::new();
        if !self.question.input_alone {
            question = fence::split_input(&self.question.text).1.to_owned();
        }
        Ok(Some(answers.file(&key, question, model.clone())))
    }

    /// The known answer, unless it is to be replaced. If nobody may be asked, it is an error that there is none.
    pub fn look_up(&self, file: &AnswerFile) -> Result<Option<KnownAnswer>, Error> {
        if self.settings.typed.again {
            return Ok(None);
        }
        let known = file.read().unwrap_or_else(|reason| {
            self.notes.note(&reason);
            None
        });
        let path = file.path.display();
        if known.is_some() {
            let detail = || format!("the answer is known: {path}");
            self.notes.detail(detail);
        } else if self.settings.cached == Cached::Only {
            let message =
                format!("the answer is not known, and cached = only asks no server: {path}");
            let error = Error::nothing(message);
            return Err(error.advise("Q_CACHED=on asks, and keeps the answer there"));
        }
        Ok(known)
    }

    /// Delivers a known answer, as if it had just come. The conversation stays with the model that is asked: whoever writes in
    /// the folder must not choose the next one.
    pub fn deliver(&self, known: KnownAnswer, dialogue: &mut Dialogue) -> Result<(), Error> {
        dialogue.cached_from = Some(known.model);
        let reply = Reply::of_known(known.answer.len(), &known.finish);
        let piece = Piece {
            text: known.answer,
            is_last: true,
            sources: Sources::from_json(&known.sources).list,
            ..Piece::default()
        };
        let end = self.printer.take(piece);
        self.conclude(end, &reply, dialogue)
    }

    /// Keeps an answer that was delivered, though perhaps without code in it, unless it would not do another time.
    pub fn keep(
        &self,
        file: &AnswerFile,
        reply: &Reply,
        dialogue: &Dialogue,
        result: &Result<(), Error>,
    ) {
        let failure = result.as_ref().err();
        let is_delivered = failure.is_none_or(Error::is_about_content);
        if !reply.end.is_normal() || !is_delivered || !self.settings.keeps_answer() {
            return;
        }
        let Some(known) = self.known_answer(file, reply, dialogue) else {
            return;
        };
        if let Err(error) = file.write(&known) {
            let note = format!("the answer is not kept: {error}");
            self.notes.note(&note);
        }
    }

    /// The answer as it is kept; `None` if it was too long to be kept, or has not the shape that was asked for.
    fn known_answer(
        &self,
        file: &AnswerFile,
        reply: &Reply,
        dialogue: &Dialogue,
    ) -> Option<KnownAnswer> {
        let state = self.record.lock();
        let answer = &state.answer;
        let shape = self.output.shape();
        let is_misshapen = shape.is_some_and(|shape| shape.find_in(&answer.text).is_err());
        if is_misshapen || answer.text.trim().is_empty() {
            return None;
        }
        Some(KnownAnswer {
            version: answers::VERSION,
            question: file.question.clone(),
            answer: answer.text.clone(),
            provider: self.target.provider().name.clone(),
            model: dialogue.model.clone(),
            asked: file.asked.clone(),
            finish: reply.end.finish().map_or("stop", Finish::word).to_owned(),
            usage: json!(answer.usage),
            sources: json!(answer.sources.list),
            created: Timestamp::now(),
        })
    }
}
