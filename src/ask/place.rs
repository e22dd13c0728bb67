//! Opens the conversation of a question, and decides whether it is continued.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::choice::{self, EarlyTarget};
use super::plan::{Plan, Relation};
use crate::context::Context;
use crate::error::Error;
use crate::message::Message;
use crate::output::Notes;
use crate::server::target::Target;
use crate::session::asked_schema::schema_of_answer;
use crate::session::name::option_of;
use crate::session::rules::{self, AnsweredBy, FileKind, Intent, ReadOutcome};
use crate::session::store::{Handle, Purpose};
use crate::session::timestamp::Timestamp;
use crate::session::{self, Conversation};
use crate::text::shell_words::quoted;
use crate::whole_file::ReadFailure;

/// The place of a question: its conversation, and what it repeats of it.
pub struct Place {
    /// `None`: there is no place for conversations.
    pub handle: Option<Handle>,
    pub intent: Intent,
    /// Whether the current conversation stays, whatever the settings say: it could not be read, perhaps only for a moment.
    pub retains_current: bool,
    /// The conversation's file, if it is not in q's own directory: it may have come from somebody else.
    pub file_elsewhere: Option<PathBuf>,
    /// The question to ask again.
    pub question_to_repeat: Option<Message>,
    /// The schema of the answer that is asked for again.
    pub schema_to_repeat: Option<Value>,
}

impl Place {
    /// Opens the conversation of a question, once its input is read; decides finally which server is asked, by what the
    /// conversation says, and then whether it is continued.
    pub fn open(
        plan: &Plan,
        early: Option<EarlyTarget>,
        context: &Context,
    ) -> Result<(Place, Target), Error> {
        let notes = &context.notes;
        let opened = OpenedConversation::read(plan, context)?;
        let target = choice::choose(plan, early, &opened.found, opened.at, notes)?;
        let place = opened.decide(plan, &target, notes);
        Ok((place, target))
    }
}

/// A conversation as it was read, before it is decided whether it is continued.
struct OpenedConversation {
    /// `None`: there is no place for conversations.
    handle: Option<Handle>,
    found: ReadOutcome,
    at: Timestamp,
}

impl OpenedConversation {
    fn read(plan: &Plan, context: &Context) -> Result<OpenedConversation, Error> {
        let mut opened = OpenedConversation {
            handle: None,
            found: Ok(None),
            at: Timestamp::now(),
        };
        match plan.relation {
            // Such a question needs no place.
            Relation::New if !plan.settings.saves() => opened.handle = context.find_quietly().ok(),
            Relation::New => opened.handle = handle_or_note(context.find_quietly(), &context.notes),
            Relation::Follow => opened.read_current(context),
            Relation::Chosen | Relation::Again => opened.read_chosen(plan, context)?,
        }
        Ok(opened)
    }

    /// Reads the current conversation. Looks for it again if it has just gone: with `keep` 0, another q that makes another one
    /// current removes it.
    fn read_current(&mut self, context: &Context) {
        let Some(handle) = handle_or_note(context.find(Purpose::Ask), &context.notes) else {
            return;
        };
        self.found = session::read(&handle.path);
        self.handle = Some(handle);
        if let Ok(None) = self.found
            && let Ok(again) = context.find(Purpose::Ask)
        {
            self.found = session::read(&again.path);
            self.handle = Some(again);
        }
    }

    /// Reads a conversation that was chosen, or whose last question is asked again.
    fn read_chosen(&mut self, plan: &Plan, context: &Context) -> Result<(), Error> {
        let is_again = plan.relation == Relation::Again;
        let handle = context.find(Purpose::Ask)?;
        let conversation = handle.open()?;
        let must_exist = is_again || plan.settings.arguments.follow || handle.which.is_generated();
        if conversation.is_none() && must_exist && !handle.which.is_current() {
            return Err(handle.missing());
        }
        if is_again && conversation.as_ref().and_then(last_question_of).is_none() {
            return Err(Error::nothing("there is no question to ask again"));
        }
        if conversation.is_none() && io::stderr().is_terminal() {
            let mut note = if plan.settings.saves() {
                format!("{} is a new conversation", handle.id())
            } else {
                format!("there is no conversation {}", handle.id())
            };
            if let Some(other) = handle.nearest() {
                note += &format!("; did you mean {other}?");
            }
            context.notes.note(&note);
        }
        self.found = Ok(conversation);
        self.handle = Some(handle);
        Ok(())
    }

    /// Decides whether the conversation is continued. If an obstacle forbids that, a note names it, and q starts a new one.
    fn decide(self, plan: &Plan, target: &Target, notes: &Notes) -> Place {
        let retains_current = matches!(self.found, Err(ReadFailure::System(_)));
        let handle = self.handle.clone();
        let intent = match plan.relation {
            Relation::New => Intent::New,
            // Where nothing can be looked for, nothing is missing.
            Relation::Follow if handle.is_none() => Intent::New,
            Relation::Follow => self.follow(plan, target, notes),
            Relation::Chosen | Relation::Again => match self.found.ok().flatten().map(Arc::new) {
                Some(read) if plan.relation == Relation::Again => Intent::Again(read),
                Some(read) => Intent::Follow(read),
                None => Intent::Named,
            },
        };
        if let Some(handle) = &handle
            && handle.which.is_generated()
            && plan.settings.saves()
        {
            // No sweep may remove it before the exchange is saved.
            handle.directory.touch(&handle.path);
        }
        let mut place = Place {
            file_elsewhere: handle.as_ref().and_then(file_elsewhere),
            handle,
            intent,
            retains_current,
            question_to_repeat: None,
            schema_to_repeat: None,
        };
        if let Intent::Again(read) = &place.intent {
            place.question_to_repeat = last_question_of(read);
            place.schema_to_repeat = last_schema_of(read);
        }
        place
    }

    /// Continues the current conversation, unless there is an obstacle.
    fn follow(self, plan: &Plan, target: &Target, notes: &Notes) -> Intent {
        let responder = AnsweredBy {
            provider: target.provider().name.clone(),
            model: target.choice.named_model().map(str::to_owned),
            at: self.at,
        };
        let Some(obstacle) = rules::obstacle(&self.found, &responder, &plan.rules) else {
            let continued = self.found.ok().flatten().map(Arc::new);
            return continued.map_or(Intent::FollowOrNew, Intent::Follow);
        };
        let instead = if plan.settings.saves() {
            "starting a new conversation"
        } else {
            "asking without earlier messages"
        };
        let mut note = format!("{obstacle}; {instead}");
        if let (Ok(Some(old)), Some(handle)) = (&self.found, &self.handle)
            && plan.rules.keeps()
        {
            let mut given = plan.options_as_given.clone();
            let is_named = plan.settings.arguments.provider.is_some();
            if !is_named && plan.settings.provider_named(&old.provider).is_none() {
                // Its own provider cannot be asked any more.
                given += &format!(" -p {}", quoted(&target.provider().name));
            }
            let option = option_of(&handle.id());
            note += &format!("; this continues the old one: q{option}{given}");
        }
        notes.note(&note);
        let given = &plan.settings.arguments;
        // A system prompt or tools that stay with a conversation must not get into one that another q has begun.
        if given.system.is_some() || given.tools.is_given() {
            Intent::New
        } else {
            Intent::FollowOrNew
        }
    }
}

/// Returns the place of the conversation. Without one, q still answers, and a note says why nothing is saved.
fn handle_or_note(found: Result<Handle, Error>, notes: &Notes) -> Option<Handle> {
    match found {
        Ok(handle) => Some(handle),
        Err(error) => {
            let reason = &error.message;
            let message = format!("conversations are neither read nor saved: {reason}");
            notes.note_error(&Error { message, ..error });
            None
        }
    }
}

fn last_question_of(conversation: &Conversation) -> Option<Message> {
    let question = conversation.exchanges.last()?.question()?;
    Some(question.entry().to_message())
}

fn last_schema_of(conversation: &Conversation) -> Option<Value> {
    schema_of_answer(conversation.exchanges.last()?.question()?)
}

fn file_elsewhere(handle: &Handle) -> Option<PathBuf> {
    let is_elsewhere = handle.directory.kind(&handle.path) == FileKind::External;
    is_elsewhere.then(|| handle.path.clone())
}
