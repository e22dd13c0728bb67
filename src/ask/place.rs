//! The conversation of a question: what is there, who it says answers, whether it is continued, and where the exchange is
//! saved.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::plan::Plan;
use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::message::Message;
use crate::output::Notes;
use crate::server::discover;
use crate::server::target::Target;
use crate::server::whom::{self, Claim, Model, Whom};
use crate::session::asked_schema::schema_of_answer;
use crate::session::name::ConversationRef;
use crate::session::rules::{self, Circumstances, FileKind, Found, Intent, Responder, Rules};
use crate::session::save::Saver;
use crate::session::store::{self, Handle, Purpose};
use crate::session::timestamp::Timestamp;
use crate::session::{self, Conversation};
use crate::settings::{Cached, Settings};
use crate::text::one_line::{on_one_line, quoted};
use crate::tools::Selection;
use crate::whole_file::ReadFailure;

/// How a question relates to a conversation.
#[derive(Clone, Copy, PartialEq)]
enum Relation {
    /// It begins one.
    New,
    /// It continues the current one.
    Follow,
    /// It belongs to one that was chosen by its name, id or path, which may be new.
    Chosen,
    /// It repeats the last question.
    Again,
}

impl Relation {
    fn new(settings: &Settings, context: &Context) -> Result<Relation, Error> {
        let is_current = context.which()?.is_current();
        Ok(if settings.typed.again {
            Relation::Again
        } else if !is_current {
            Relation::Chosen
        } else if settings.typed.follow {
            Relation::Follow
        } else {
            Relation::New
        })
    }
}

/// The server, where that can be told before q waits for input, so that a wrong provider or key is reported at once. The
/// conversation is only peeked at, because it may change while q waits. `None`: it is decided once the input is read.
pub fn early_target(plan: &Plan, context: &Context) -> Result<Option<Target>, Error> {
    let settings = plan.settings;
    let relation = Relation::new(settings, context)?;
    let notes = &context.notes;
    if relation == Relation::New || settings.typed.provider.is_some() {
        return discover::find_server(settings, Claim::None, notes).map(Some);
    }
    // Without a wait there is nothing to gain by a look ahead.
    if !plan.waits_for_input() {
        return Ok(None);
    }
    let peeked = Opened::peek(relation, settings, context);
    match (relation, peeked.claim()) {
        (Relation::Follow, claim @ (Claim::None | Claim::Suggests(_))) => {
            discover::find_server(settings, claim, notes).map(Some)
        }
        (_, claim @ Claim::Keeps(_)) => {
            // What is wrong may be right once the input is read.
            let Ok(Whom::Server(choice)) = whom::decide(settings, claim) else {
                return Ok(None);
            };
            Ok(Target::new(choice, settings).ok())
        }
        _ => Ok(None),
    }
}

/// Refuses a new name that looks like a number of the list, before q waits for input. A conversation that was named so before is
/// continued.
pub fn check_name(settings: &Settings, context: &Context) -> Result<(), Error> {
    let must_exist = settings.typed.follow || settings.typed.again;
    if must_exist || context.which()?.like_number().is_none() {
        return Ok(());
    }
    // What is wrong with the directory is told once the conversation is opened.
    find_unread(context).map_or(Ok(()), |handle| handle.refuse_new())
}

/// A conversation as it was read, before it is decided whether it is continued.
pub struct Opened {
    relation: Relation,
    /// No server may be asked, and nothing but the conversation names one.
    is_only_name: bool,
    /// `None`: there is no place for conversations.
    handle: Option<Handle>,
    found: Found,
    /// The settings' rules, loosened by `-ff`.
    rules: Rules,
    now: Timestamp,
}

impl Opened {
    /// Looks at the conversation without a lock, a change or a note.
    fn peek(relation: Relation, settings: &Settings, context: &Context) -> Opened {
        let mut opened = Opened::nothing(relation, settings);
        if let Ok(directory) = context.directory()
            && let Ok(which) = context.which()
            && let Ok(handle) = store::find(directory, which, Purpose::Look)
        {
            opened.found = session::read(&handle.path);
        }
        opened
    }

    /// Opens the conversation of this question, once its input is read.
    pub fn read(settings: &Settings, context: &Context) -> Result<Opened, Error> {
        let relation = Relation::new(settings, context)?;
        let mut opened = Opened::nothing(relation, settings);
        match opened.relation {
            Relation::New => opened.handle = noted(find_unread(context), &context.notes),
            Relation::Follow => opened.read_current(context),
            Relation::Chosen | Relation::Again => opened.read_chosen(settings, context)?,
        }
        Ok(opened)
    }

    fn nothing(relation: Relation, settings: &Settings) -> Opened {
        let mut rules = settings.values.rules;
        if settings.typed.follow_anyway {
            rules.expire = None;
            rules.continue_on_mismatch = true;
        }
        let is_only_name = settings.cached == Cached::Only
            && settings.provider.is_none()
            && settings.model.is_none();
        Opened {
            relation,
            is_only_name,
            handle: None,
            found: Ok(None),
            rules,
            now: Timestamp::now(),
        }
    }

    /// Reads the current conversation. Looks for it again if it has just gone: with `keep` 0, another q that makes another one
    /// current removes it.
    fn read_current(&mut self, context: &Context) {
        let Some(handle) = noted(context.find(Purpose::Ask), &context.notes) else {
            // Where nothing can be looked for, nothing is missing.
            self.relation = Relation::New;
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
    fn read_chosen(&mut self, settings: &Settings, context: &Context) -> Result<(), Error> {
        let is_again = self.relation == Relation::Again;
        let handle = context.find(Purpose::Ask)?;
        let conversation = handle.open()?;
        let must_exist = is_again || settings.typed.follow || handle.which.is_generated();
        if conversation.is_none() && must_exist && !handle.which.is_current() {
            return Err(handle.missing());
        }
        if is_again && conversation.as_ref().and_then(last_question_of).is_none() {
            return Err(Error::nothing("there is no question to ask again"));
        }
        if conversation.is_none() && io::stderr().is_terminal() {
            let mut note = format!("{} is a new conversation", handle.id());
            if let Some(other) = handle.nearest() {
                note += &format!("; did you mean {other}?");
            }
            context.notes.note(&note);
        }
        self.found = Ok(conversation);
        self.handle = Some(handle);
        Ok(())
    }

    /// What this conversation says about who answers.
    pub fn claim(&self) -> Claim<'_> {
        let Ok(Some(conversation)) = &self.found else {
            return Claim::None;
        };
        match self.relation {
            Relation::New => Claim::None,
            Relation::Chosen | Relation::Again => Claim::Keeps(conversation),
            Relation::Follow if self.rules.is_idle(conversation, self.now) => Claim::None,
            Relation::Follow if conversation.pinned || self.is_only_name => {
                Claim::Keeps(conversation)
            }
            Relation::Follow => Claim::Suggests(conversation),
        }
    }

    /// The server to ask: the early one, with its connection, if it is the same.
    pub fn target(
        &self,
        early: Option<Target>,
        settings: &Settings,
        notes: &Notes,
    ) -> Result<Target, Error> {
        let Some(early) = early else {
            return discover::find_server(settings, self.claim(), notes);
        };
        match whom::decide(settings, self.claim())? {
            Whom::Server(choice) if choice.provider.name != early.provider().name => {
                Target::new(choice, settings)
            }
            Whom::Server(choice) => Ok(early.with_model(choice.model)),
            Whom::FirstRunning => match whom::model_of(early.provider(), settings, self.claim()) {
                // It has been asked for its list.
                Model::First => Ok(early),
                model => Ok(early.with_model(model)),
            },
        }
    }

    /// Decides whether the conversation is continued. If an obstacle forbids that, a note names it, and q starts a new one.
    /// `typed` are the arguments without those of the role.
    pub fn decide(
        self,
        target: &Target,
        settings: &Settings,
        typed: &Arguments,
        notes: &Notes,
    ) -> Place {
        let retains_current = matches!(self.found, Err(ReadFailure::System(_)));
        let handle = self.handle.clone();
        let relation = self.relation;
        let intent = match relation {
            Relation::New => Intent::New,
            Relation::Follow => self.follow(target, settings, typed, notes),
            Relation::Chosen | Relation::Again => match self.found.ok().flatten().map(Arc::new) {
                Some(read) if relation == Relation::Again => Intent::Again(read),
                Some(read) => Intent::Follow(read),
                None => Intent::Named,
            },
        };
        if let Some(handle) = &handle
            && handle.which.is_generated()
            && settings.saves()
        {
            // No sweep may remove it before the exchange is saved.
            handle.directory.touch(&handle.path);
        }
        Place {
            handle,
            intent,
            retains_current,
        }
    }

    /// Continues the current conversation, unless there is an obstacle.
    fn follow(
        self,
        target: &Target,
        settings: &Settings,
        typed: &Arguments,
        notes: &Notes,
    ) -> Intent {
        let responder = Responder {
            provider: target.provider().name.clone(),
            model: target.choice.named_model().map(str::to_owned),
            at: self.now,
        };
        let Some(obstacle) = rules::obstacle(&self.found, &responder, &self.rules) else {
            let continued = self.found.ok().flatten().map(Arc::new);
            return continued.map_or(Intent::FollowOrNew, Intent::Follow);
        };
        let mut note = format!("{obstacle}; starting a new conversation");
        if let (Ok(Some(_)), Some(handle)) = (&self.found, &self.handle)
            && self.rules.keeps()
        {
            let (id, whom) = (handle.id(), options_of_whom(typed));
            note += &format!("; this continues the old one: q -s {id}{whom}");
        }
        notes.note(&note);
        // What stays with a conversation must not get into one that another q has begun.
        if settings.typed.system.is_some() || !settings.typed.tools.is_empty() {
            Intent::New
        } else {
            Intent::FollowOrNew
        }
    }
}

/// The options that say whom to ask, as they were typed, with a blank before each.
fn options_of_whom(typed: &Arguments) -> String {
    let mut options = String::new();
    for (option, value) in [
        ("-r", &typed.role),
        ("-p", &typed.provider),
        ("-m", &typed.model),
    ] {
        if let Some(value) = value {
            options += &format!(" {option} {}", quoted(&on_one_line(value)));
        }
    }
    options
}

/// The place of the current conversation, which is not read.
fn find_unread(context: &Context) -> Result<Handle, Error> {
    store::find(context.directory()?, context.which()?, Purpose::Look)
}

/// The place of the conversation. Without one, q still answers, and a note says why nothing is saved.
fn noted(found: Result<Handle, Error>, notes: &Notes) -> Option<Handle> {
    match found {
        Ok(handle) => Some(handle),
        Err(error) => {
            let reason = &error.message;
            notes.note(&format!(
                "conversations are neither read nor saved: {reason}"
            ));
            None
        }
    }
}

fn last_question_of(conversation: &Conversation) -> Option<Message> {
    Some(
        conversation
            .exchanges
            .last()?
            .question()?
            .entry()
            .to_message(),
    )
}

/// Where a question belongs, and what becomes of its exchange.
pub struct Place {
    /// `None`: there is no place for conversations.
    handle: Option<Handle>,
    pub intent: Intent,
    /// The current conversation could not be read, perhaps only for a moment, so it stays, whatever the settings say.
    retains_current: bool,
}

impl Place {
    /// The conversation's file, if it is not in q's own directory: it may have come from somebody else.
    pub fn file_elsewhere(&self) -> Option<&Path> {
        let handle = self.handle.as_ref()?;
        let is_elsewhere = handle.directory.kind(&handle.path) == FileKind::External;
        is_elsewhere.then_some(&handle.path)
    }

    /// The question to ask again.
    pub fn question_to_repeat(&self) -> Option<Message> {
        match &self.intent {
            Intent::Again(read) => last_question_of(read),
            _ => None,
        }
    }

    /// The schema of the answer that is asked for again.
    pub fn schema_to_repeat(&self) -> Option<Value> {
        match &self.intent {
            Intent::Again(read) => schema_of_answer(read.exchanges.last()?.question()?),
            _ => None,
        }
    }

    /// The provider, perhaps with its model, that continues the current conversation after another one.
    pub fn handed_to(&self, provider: &str, model: &str) -> Option<String> {
        let is_current = self.handle.as_ref()?.which.is_current();
        match &self.intent {
            Intent::Follow(read) if is_current && provider != read.provider => {
                Some(provider.to_owned())
            }
            Intent::Follow(read) if is_current && model != read.model => {
                Some(format!("{provider}, model {model}"))
            }
            _ => None,
        }
    }

    /// What saves the exchange with the answer of this model; `None` if nothing is saved.
    pub fn saver(&self, responder: Responder, plan: &Plan, context: &Context) -> Option<Saver> {
        let settings = plan.settings;
        if !settings.saves() {
            return None;
        }
        let mut handle = self.handle.clone()?;
        if self.intent == Intent::New {
            // A new conversation is not in the directory to which a link of the user's may lead.
            handle.path.clone_from(&handle.link);
        }
        let arguments = &settings.typed;
        let rule = rules::of_question(&handle.which, handle.directory.kind(&handle.path));
        let circumstances = Circumstances {
            is_new: matches!(self.intent, Intent::New | Intent::FollowOrNew),
            is_model_typed: arguments.provider.is_some() || arguments.model.is_some(),
            is_terminal: io::stdout().is_terminal(),
        };
        // -ff meant what was there when the question began, and not what another q has begun since.
        let mut rules = settings.values.rules;
        if !rule.is_trimmed {
            rules.pairs = usize::MAX;
        }
        if self.retains_current {
            rules.keep = None;
        }
        let mut becomes_current = None;
        if rule.becomes_current.applies(circumstances) {
            becomes_current = current_link(&handle, context);
        }
        Some(Saver {
            intent: self.intent.clone(),
            becomes_current,
            responder,
            pins: rule.pinned.applies(circumstances),
            system: plan.system.clone(),
            tools: plan.selection.as_ref().map(Selection::names),
            rules,
            cache: context.cache.clone(),
            handle,
        })
    }
}

/// The link to the current conversation: of the question, else the one that `Q_SESSION` may choose; `None` if no current
/// conversation can have that name.
fn current_link(handle: &Handle, context: &Context) -> Option<PathBuf> {
    if handle.which.is_current() {
        return Some(handle.link.clone());
    }
    let which = ConversationRef::find(None, context.environment.get("Q_SESSION"));
    let Ok(ConversationRef::Current(stem)) = which else {
        return None;
    };
    Some(handle.directory.path_of(&stem))
}
