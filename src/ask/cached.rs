//! Answers a question from a file, if its answer is cached; else stores the answer that the provider gives.

use serde_json::json;

use super::dialogue::Dialogue;
use super::run::Run;
use crate::answers::{self, CacheEntry, CachedAnswer};
use crate::context::{Context, NO_HOME};
use crate::error::Error;
use crate::message::Sources;
use crate::provider::finish::Finish;
use crate::provider::reply::{Piece, Reply};
use crate::session::timestamp::Timestamp;
use crate::settings::Cached;
use crate::text::fence;

impl Run<'_> {
    /// The place of the answer to the first request; `None` if it must not be cached.
    pub fn answer_file(
        &self,
        dialogue: &Dialogue,
        context: &Context,
    ) -> Result<Option<CacheEntry>, Error> {
        if self.settings.cached == Cached::Off {
            return Ok(None);
        }
        let Some(answers) = context.answers(&self.settings.values) else {
            let error = format!("{NO_HOME}, so there are no known answers");
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

    /// The cached answer, unless it is to be replaced. If nobody may be asked, it is an error that there is none.
    pub fn look_up(&self, file: &CacheEntry) -> Result<Option<CachedAnswer>, Error> {
        if self.settings.typed.again {
            return Ok(None);
        }
        let cached = file.read().unwrap_or_else(|reason| {
            self.notes.note(&reason);
            None
        });
        let path = file.path.display();
        if cached.is_some() {
            let detail = || format!("the answer is known: {path}");
            self.notes.detail(detail);
        } else if self.settings.cached == Cached::Only {
            let message =
                format!("the answer is not known, and cached = only asks no server: {path}");
            let error = Error::nothing(message);
            return Err(error.advise("Q_CACHED=on asks, and keeps the answer there"));
        }
        Ok(cached)
    }

    /// Prints a cached answer, as if it had just come. The conversation stays with the model that is asked: whoever writes in
    /// the folder must not choose the next one.
    pub fn print_cached(&self, cached: CachedAnswer, dialogue: &mut Dialogue) -> Result<(), Error> {
        dialogue.cached_from = Some(cached.model);
        let reply = Reply::of_cached(cached.answer.len(), &cached.finish);
        let piece = Piece {
            text: cached.answer,
            is_last: true,
            sources: Sources::from_json(&cached.sources).list,
            ..Piece::default()
        };
        let end = self.printer.take(piece);
        self.conclude(end, &reply, dialogue)
    }

    /// Stores an answer that was delivered, though perhaps without code in it, unless it would not do another time.
    pub fn store_answer(
        &self,
        file: &CacheEntry,
        reply: &Reply,
        dialogue: &Dialogue,
        result: &Result<(), Error>,
    ) {
        let failure = result.as_ref().err();
        let is_delivered = failure.is_none_or(Error::is_about_content);
        if !reply.end.is_normal() || !is_delivered || !self.settings.keeps_answer() {
            return;
        }
        let Some(cached) = self.cached_answer(file, reply, dialogue) else {
            return;
        };
        if let Err(error) = file.write(&cached) {
            let note = format!("the answer is not kept: {error}");
            self.notes.note(&note);
        }
    }

    /// The answer as it is stored; `None` if it was too long to be kept, or has not the shape that was asked for.
    fn cached_answer(
        &self,
        file: &CacheEntry,
        reply: &Reply,
        dialogue: &Dialogue,
    ) -> Option<CachedAnswer> {
        let state = self.record.lock();
        let answer = &state.answer;
        let shape = self.output.shape();
        let is_misshapen = shape.is_some_and(|shape| shape.find_in(&answer.text).is_err());
        if is_misshapen || answer.text.trim().is_empty() {
            return None;
        }
        Some(CachedAnswer {
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
