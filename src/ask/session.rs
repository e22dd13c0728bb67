//! Opens the conversation of a question: finds it, decides whether it is continued, and which server is asked.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::checked::CheckedArguments;
use crate::context::Context;
use crate::error::Error;
use crate::message::Message;
use crate::output::Notes;
use crate::server::choice::{self, Model};
use crate::server::discover;
use crate::server::target::Target;
use crate::session::folder::Kind;
use crate::session::name::Which;
use crate::session::rules::{self, Found, Intent, Responder, Rules};
use crate::session::save::Saver;
use crate::session::store::{self, Handle, Purpose};
use crate::session::timestamp::Timestamp;
use crate::session::{self, Conversation};
use crate::settings::{Cached, Settings};
use crate::tools::Selection;

/// The conversation of a question, and the server that is asked.
pub struct Session {
    /// `None`: there is no place for the conversation.
    handle: Option<Handle>,
    pub intent: Intent,
    pub target: Target,
    /// The current conversation could not be read, so it stays, whatever the settings say.
    spares_current: bool,
}

impl Session {
    /// The provider, perhaps with its model, that continues the current conversation after another one.
    pub fn handed_to(&self, model: &str) -> Option<String> {
        let is_current = self.handle.as_ref()?.which.is_current();
        let provider = &self.target.provider().name;
        match &self.intent {
            Intent::Follow(read) if is_current && *provider != read.provider => {
                Some(provider.clone())
            }
            Intent::Follow(read) if is_current && model != read.model => {
                Some(format!("{provider}, model {model}"))
            }
            _ => None,
        }
    }

    /// The conversation's file, if it is not in q's own folder: it may have come from somebody else.
    pub fn file_elsewhere(&self) -> Option<&Path> {
        let handle = self.handle.as_ref()?;
        let is_elsewhere = handle.folder.kind(&handle.path) == Kind::Foreign;
        is_elsewhere.then_some(&handle.path)
    }

    /// What saves the exchange with the answer of this model; `None` if nothing is saved.
    pub fn saver(
        &self,
        model: &str,
        checked: &CheckedArguments,
        context: &Context,
    ) -> Option<Saver> {
        let settings = &checked.settings;
        let arguments = &settings.typed;
        if !settings.saves() {
            return None;
        }
        let mut handle = self.handle.clone()?;
        if self.intent == Intent::New {
            // A new conversation is not in the folder to which a link of the user's may lead.
            handle.path.clone_from(&handle.link);
        }
        let mut rules = settings.values.rules;
        if self.spares_current {
            rules.keep = None;
        }
        // Conversations that the user named or chose keep everything.
        if !handle.which.is_current() || !handle.folder.kind(&handle.path).is_auto_named() {
            rules.pairs = usize::MAX;
        }
        let is_chosen = handle.which.is_generated();
        let becomes_current = match self.intent {
            Intent::New | Intent::FollowOrNew => Some(handle.link.clone()),
            _ if is_chosen && io::stdout().is_terminal() => current_link(&handle, context),
            _ => None,
        };
        Some(Saver {
            intent: self.intent.clone(),
            becomes_current,
            responder: Responder {
                provider: self.target.provider().name.clone(),
                model: Some(model.to_owned()),
                at: Timestamp::now(),
            },
            pins: arguments.provider.is_some() || arguments.model.is_some() || is_chosen,
            system: checked.system.clone(),
            tools: checked.selection.as_ref().map(Selection::names),
            rules,
            handle,
        })
    }
}

/// The link to the current conversation, which `Q_SESSION` may choose; `None` if no current conversation can have that name.
fn current_link(handle: &Handle, context: &Context) -> Option<PathBuf> {
    let which = Which::find(None, context.environment.get("Q_SESSION"));
    let Ok(Which::Current(stem)) = which else {
        return None;
    };
    Some(handle.folder.file(&stem))
}

/// The server to ask. A wrong provider or key is reported here, before q waits for input. `None`: only the conversation
/// shows which server it is. If q `connects` before it reads the conversation, it must not connect to another server, so this
/// looks at the conversation first.
pub fn known_target(
    settings: &Settings,
    context: &Context,
    connects: bool,
) -> Result<Option<Target>, Error> {
    let arguments = &settings.typed;
    let has_own = arguments.again || !context.which()?.is_current();
    if arguments.provider.is_none() && has_own {
        return Ok(None);
    }
    // With --web, q checks that the server can search. It must not check a server that is not asked in the end.
    let must_be_asked = connects || arguments.web;
    if !must_be_asked && let Ok(Some(target)) = discover::chosen(settings, None) {
        return Ok(Some(target));
    }
    let mut keeps = None;
    if arguments.provider.is_none() && arguments.follow {
        keeps = keeping_now(settings, context);
    }
    let target = discover::find(settings, keeps.as_ref(), &context.notes)?;
    if arguments.web {
        target.check_web()?;
    }
    Ok(Some(target))
}

/// The current conversation, if it keeps a provider and a model that were chosen for it, as far as that can be seen before
/// input has come. Looking takes no lock and changes nothing.
fn keeping_now(settings: &Settings, context: &Context) -> Option<Conversation> {
    let handle = context.find(Purpose::Look).ok()?;
    let found = session::read(&handle.path);
    kept(&found, settings, Timestamp::now()).cloned()
}

/// The rules for a follow-up; `-ff` continues in any case.
fn follow_rules(settings: &Settings) -> Rules {
    let mut rules = settings.values.rules;
    if settings.typed.follow_anyway {
        rules.expire = None;
        rules.continue_on_mismatch = true;
    }
    rules
}

/// The conversation, if it keeps the provider and the model that were chosen for it. Where no server may be asked and nothing
/// else names one, any conversation names its own.
fn kept<'f>(found: &'f Found, settings: &Settings, now: Timestamp) -> Option<&'f Conversation> {
    let held = found.as_ref().ok()?.as_ref()?;
    let is_only_name = settings.cached() == Cached::Only
        && settings.provider.is_none()
        && settings.model.is_none();
    let keeps = held.pinned || is_only_name;
    (keeps && !follow_rules(settings).is_idle(held, now)).then_some(held)
}

/// Opens the conversation of this question. `known` is the result of [`known_target`].
pub fn open(
    known: Option<Target>,
    settings: &Settings,
    context: &Context,
) -> Result<Session, Error> {
    let arguments = &settings.typed;
    let session = if arguments.again || !context.which()?.is_current() {
        open_own(known, settings, context)?
    } else {
        open_current(known, settings, context)?
    };
    if arguments.web {
        session.target.check_web()?;
    }
    Ok(session)
}

/// A conversation by its name, id or path, or one whose last question is asked again. It keeps its own provider and model,
/// unless others are typed. One with a name may be new.
fn open_own(
    known: Option<Target>,
    settings: &Settings,
    context: &Context,
) -> Result<Session, Error> {
    let arguments = &settings.typed;
    let handle = context.find(Purpose::Ask)?;
    let conversation = handle.open()?;
    let must_exist = arguments.again || arguments.follow || handle.which.is_generated();
    if conversation.is_none() && must_exist && !handle.which.is_current() {
        return Err(handle.missing());
    }
    let intent = match conversation.map(Arc::new) {
        Some(read) if arguments.again => Intent::Again(read),
        Some(read) => Intent::Follow(read),
        None => Intent::Named,
    };
    if arguments.again && last_question(&intent).is_none() {
        return Err(Error::nothing("there is no question to ask again"));
    }
    if intent == Intent::Named && io::stderr().is_terminal() {
        let mut note = format!("{} is a new conversation", handle.id());
        if let Some(other) = handle.nearest() {
            note += &format!("; did you mean {other}?");
        }
        context.notes.note(&note);
    }
    let target = known_or_found(known, intent.read(), settings, &context.notes)?;
    if handle.which.is_generated() && settings.saves() {
        // No sweep may remove it before the exchange is saved.
        handle.folder.touch(&handle.path);
    }
    Ok(Session {
        handle: Some(handle),
        intent,
        target,
        spares_current: false,
    })
}

/// The question to ask again.
pub fn last_question(intent: &Intent) -> Option<Message> {
    let Intent::Again(read) = intent else {
        return None;
    };
    Some(read.exchanges.last()?.question()?.entry().to_message())
}

/// Continues the current conversation, or begins one.
fn open_current(
    known: Option<Target>,
    settings: &Settings,
    context: &Context,
) -> Result<Session, Error> {
    let handle = if settings.typed.follow {
        match context.find(Purpose::Ask) {
            Ok(handle) => return follow(handle, known, settings, context),
            Err(error) => Err(error),
        }
    } else {
        let folder = context.folder();
        folder.and_then(|folder| store::find(folder, context.which()?, Purpose::Look))
    };
    // Without a place for the conversation, q still answers.
    if let Err(error) = &handle {
        let reason = &error.message;
        let note = format!("conversations are neither read nor saved: {reason}");
        context.notes.note(&note);
    }
    Ok(Session {
        handle: handle.ok(),
        intent: Intent::New,
        target: known_or_found(known, None, settings, &context.notes)?,
        spares_current: false,
    })
}

/// Continues the current conversation. If an obstacle forbids that, a note names it, and q starts a new conversation.
fn follow(
    handle: Handle,
    known: Option<Target>,
    settings: &Settings,
    context: &Context,
) -> Result<Session, Error> {
    let notes = &context.notes;
    let arguments = &settings.typed;
    let (handle, found) = read_current(handle, context);
    let spares_current = matches!(&found, Err(error) if !rules::is_unusable(error));
    let rules = follow_rules(settings);
    let now = Timestamp::now();
    let mut target = known_or_found(known, kept(&found, settings, now), settings, notes)?;
    let responder = Responder {
        provider: target.provider().name.clone(),
        model: target.choice.named_model().map(str::to_owned),
        at: now,
    };
    let obstacle = rules::obstacle(&found, &responder, &rules);
    let intent = match (found, obstacle) {
        (Ok(Some(conversation)), None) => {
            if responder.provider == conversation.provider {
                target.choice.continue_with(&conversation.model);
            }
            Intent::Follow(Arc::new(conversation))
        }
        (found, obstacle) => {
            let obstacle = obstacle.unwrap_or_default();
            let mut note = format!("{obstacle}; starting a new conversation");
            if let Ok(Some(_)) = found
                && rules.keeps()
            {
                let id = handle.id();
                note += &format!("; this continues the old one: q -s {id}");
            }
            notes.note(&note);
            // What stays with a conversation must not get into one that another q has begun.
            if arguments.system.is_some() || !arguments.tools.is_empty() {
                Intent::New
            } else {
                Intent::FollowOrNew
            }
        }
    };
    Ok(Session {
        handle: Some(handle),
        intent,
        target,
        spares_current,
    })
}

/// Reads the current conversation. Looks for it again if it has just gone: with `keep` 0, another q that makes another one
/// current removes it.
fn read_current(handle: Handle, context: &Context) -> (Handle, Found) {
    let found = session::read(&handle.path);
    if let Ok(None) = found
        && let Ok(again) = context.find(Purpose::Ask)
    {
        let found_again = session::read(&again.path);
        return (again, found_again);
    }
    (handle, found)
}

/// The server that is known already, if it is still the one to ask now that the conversation has been read.
fn known_or_found(
    known: Option<Target>,
    keeps: Option<&Conversation>,
    settings: &Settings,
    notes: &Notes,
) -> Result<Target, Error> {
    let Some(mut known) = known else {
        return discover::find(settings, keeps, notes);
    };
    match choice::choose(settings, keeps)? {
        Some(choice) if choice.provider.name == known.provider().name => {
            // A connection may be open.
            known.choice = choice;
            Ok(known)
        }
        Some(choice) => Target::new(choice, settings),
        // The conversation that kept it has gone.
        None if matches!(known.choice.model, Model::OfConversation(_)) => {
            discover::find(settings, None, notes)
        }
        // It is the first that answers on this machine.
        None => Ok(known),
    }
}
