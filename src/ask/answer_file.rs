//! The file of a cached answer: looked up before a question is asked, else written once the provider has answered.

use serde_json::json;

use super::dialogue::Dialogue;
use super::ending::{Ending, LastReply};
use super::run::Run;
use crate::answers::{
    self, AnswerCache, AnswerSubject, CacheEntry, CachedAnswer, RequestParts, WholeRequest,
};
use crate::context::Context;
use crate::error::Error;
use crate::message::{Message, Sources};
use crate::provider::reply::Reply;
use crate::session::directory::NO_HOME;
use crate::session::timestamp::Timestamp;
use crate::settings::{Cached, History};
use crate::text::fence;
use crate::whole_file::{broken_link, directory_of};

/// The file that has the answer to a question, or gets it.
pub struct AnswerFile<'a> {
    run: &'a Run<'a>,
    entry: CacheEntry,
}

impl<'a> AnswerFile<'a> {
    /// Finds the file for the answer to the first request; `None` if the answer must not be cached.
    pub fn find(
        run: &'a Run<'a>,
        dialogue: &Dialogue,
        context: &Context,
    ) -> Result<Option<AnswerFile<'a>>, Error> {
        if run.settings.caching == Cached::Off {
            return Ok(None);
        }
        let Some(cache) = context.answers(&run.settings.values) else {
            report_no_home(run)?;
            return Ok(None);
        };
        let entry = entry_in(&cache, run, dialogue)?;
        Ok(Some(AnswerFile { run, entry }))
    }

    /// Returns the model that is asked for this answer.
    pub fn asked(&self) -> &str {
        &self.entry.subject.asked
    }

    /// Notes where the answer is looked for.
    pub fn report(&self) {
        let path = self.entry.path.display();
        let detail = || format!("looking for a cached answer: {path}");
        self.run.notes.detail(detail);
    }

    /// Returns the cached answer, unless it is to be replaced. If nobody may be asked, it is an error that there is none.
    pub fn look_up(&self) -> Result<Option<CachedAnswer>, Error> {
        if self.run.settings.arguments.again {
            return Ok(None);
        }
        let cached = self.entry.read().unwrap_or_else(|reason| {
            self.run.notes.note(&reason);
            None
        });
        let path = self.entry.path.display();
        if cached.is_some() {
            let detail = || format!("cached answer: {path}");
            self.run.notes.detail(detail);
        } else if self.run.settings.caching == Cached::Only {
            let message = format!("no cached answer, and cached = only sends no requests: {path}");
            let mut error = Error::nothing(message);
            error = error.advise("use Q_CACHED=on to ask and cache the answer");
            let directory = directory_of(&self.entry.path);
            if let Some(link) = broken_link(directory) {
                error = error.advise_also(format!("check {}: it is {link}", directory.display()));
            } else if let Some(difference) = self.entry.nearest() {
                error = error.advise_also(difference);
            }
            return Err(error);
        } else {
            let none = || "no answer to this question is cached".to_owned();
            self.run
                .notes
                .detail(|| self.entry.nearest().unwrap_or_else(none));
        }
        Ok(cached)
    }

    /// Records, prints and saves a cached answer, as if it had just come. The conversation stays with the model that is asked:
    /// whoever writes in the directory must not choose the next one.
    pub fn conclude_with(
        &self,
        cached: CachedAnswer,
        dialogue: &mut Dialogue,
    ) -> Result<(), Error> {
        let reply = Reply::of_cached(cached.answer.len(), &cached.finish);
        let last = LastReply {
            cached_from: Some(cached.model),
            ..LastReply::from(reply)
        };
        let sources = Sources::from_json(&cached.sources);
        let end = self.run.take_cached(cached.answer, sources);
        Ending::new(self.run, &last, dialogue).conclude(end)
    }

    /// Stores an answer that was delivered, though perhaps without code in it, unless it would not do another time.
    pub fn store(&self, reply: &Reply, dialogue: &Dialogue, result: &Result<(), Error>) {
        let failure = result.as_ref().err();
        let is_delivered = failure.is_none_or(Error::is_about_content);
        if !reply.end.is_normal() || !is_delivered || !self.run.settings.keeps_answer() {
            return;
        }
        let Some(cached) = self.cached_answer(reply, dialogue) else {
            return;
        };
        if let Err(error) = self.entry.write(&cached) {
            let note = format!("the answer was not cached: {error}");
            self.run.notes.note(&note);
        }
    }

    /// Returns the answer as it is stored; `None` if the text is empty, was too long to keep, does not fit the schema, or came with
    /// images, which are not stored.
    fn cached_answer(&self, reply: &Reply, dialogue: &Dialogue) -> Option<CachedAnswer> {
        let state = self.run.record.lock();
        let answer = &state.answer;
        let shape = self.run.output.shape();
        let is_misshapen = shape.is_some_and(|shape| shape.find_in(&answer.text).is_err());
        if is_misshapen || answer.images > 0 || answer.text.trim().is_empty() {
            return None;
        }
        Some(CachedAnswer {
            version: answers::VERSION,
            question: self.entry.subject.question.clone(),
            parts: Some(self.entry.subject.parts.clone()),
            answer: answer.text.clone(),
            provider: self.run.target.provider().name.clone(),
            model: dialogue.model.clone(),
            asked: self.entry.subject.asked.clone(),
            finish: reply
                .end
                .finish()
                .map_or("stop", |finish| &finish.word)
                .to_owned(),
            usage: json!(answer.usage),
            sources: json!(answer.sources.list),
            created: Timestamp::now(),
        })
    }
}

/// Notes that there is no directory for cached answers. If nobody may be asked, that is an error.
fn report_no_home(run: &Run) -> Result<(), Error> {
    let reason = format!("{NO_HOME} for cached answers");
    let advice = "set HOME, XDG_CACHE_HOME or Q_ANSWERS";
    if run.settings.caching == Cached::Only {
        return Err(Error::settings(reason).advise(advice));
    }
    run.notes
        .note(&format!("the answer is not cached: {reason}; {advice}"));
    Ok(())
}

/// Returns the entry for the answer to the first request.
fn entry_in(cache: &AnswerCache, run: &Run, dialogue: &Dialogue) -> Result<CacheEntry, Error> {
    let provider = run.target.provider();
    let base_url = provider.address()?.keyless(|_| false).join("");
    let dialect = provider.api.name;
    let body = run.request(dialogue)?.body.unwrap_or_default();
    let body = serde_json::from_str(&body).unwrap_or_else(|_| body.into());
    let question = &run.record.question;
    let words = words_of(question);
    let parts = RequestParts::new(&WholeRequest {
        base_url: &base_url,
        dialect,
        system: &run.system,
        question,
        words,
        earlier: &dialogue.window.messages,
        is_flattened: run.settings.values.history == History::Prompt,
        body: &body,
        set_by_user: &[&provider.options[..], &run.settings.options].concat(),
        schema: run.output.shape().map(|shape| &shape.schema),
    });
    let subject = AnswerSubject {
        question: words.to_owned(),
        provider: provider.name.clone(),
        asked: dialogue.model.clone(),
        parts,
    };
    let key = answers::key(&base_url, dialect, &dialogue.model, body);
    Ok(cache.file(&key, subject))
}

/// Returns the words of a question, without its input; empty if it has none.
fn words_of(question: &Message) -> &str {
    if question.input_alone {
        return "";
    }
    fence::split_input(&question.text).1
}
