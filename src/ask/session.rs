//! Opens the conversation of a question: finds it, decides whether it is continued, and which server is asked.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;

use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::message::Message;
use crate::output::Notes;
use crate::server::discover;
use crate::server::target::Target;
use crate::session::Conversation;
use crate::session::name::Which;
use crate::session::rules::{self, FileContent, Intent, Responder, Rules};
use crate::session::save::Saver;
use crate::session::store::{self, Handle, Opened, Purpose};
use crate::session::timestamp::Timestamp;
use crate::settings::Settings;

/// The conversation of a question, and the server that is asked.
pub struct Session {
    /// `None`: without a folder nothing is read or saved.
    handle: Option<Handle>,
    pub intent: Intent,
    /// See [`Saver::becomes_current`].
    becomes_current: Option<PathBuf>,
    /// See [`Saver::pins`].
    pins: bool,
    pub target: Target,
    /// The provider, perhaps with its model, that continues what another one began.
    pub handed_to: Option<String>,
    /// When the question was asked.
    pub asked: Timestamp,
}

impl Session {
    fn new(handle: Option<Handle>, target: Target, intent: Intent) -> Session {
        let mut becomes_current = None;
        if let Intent::New | Intent::FollowOrNew = intent {
            becomes_current = handle.as_ref().and_then(Handle::link);
        }
        Session {
            handle,
            intent,
            becomes_current,
            pins: false,
            target,
            handed_to: None,
            asked: Timestamp::now(),
        }
    }

    /// Pins the conversation if the user chose it by its id or number. On a terminal it also becomes the current one.
    fn choose(&mut self, saves: bool, context: &Context) {
        let Some(handle) = &self.handle else {
            return;
        };
        if !handle.which.is_id() {
            return;
        }
        self.pins = true;
        if saves {
            // No sweep may remove it before the exchange is saved.
            handle.folder.touch(&handle.path);
        }
        // With the name of a conversation in Q_SESSION there is no current one.
        let variable = context.environment.get("Q_SESSION");
        if let Ok(Which::Current(stem)) = Which::find(None, variable)
            && io::stdout().is_terminal()
        {
            self.becomes_current = Some(handle.folder.file(&stem));
        }
    }

    /// The question to ask again.
    pub fn last_question(&self) -> Option<Message> {
        let Intent::Again(read) = &self.intent else {
            return None;
        };
        Some(read.exchanges.last()?.question()?.to_message())
    }

    /// What saves the exchange, with `system` and `tools`; `None` without a place for it.
    pub fn saver(
        &self,
        model: &str,
        system: Option<String>,
        tools: Option<Vec<String>>,
        mut rules: Rules,
    ) -> Option<Saver> {
        let handle = self.handle.clone()?;
        let is_trimmed = handle.which.is_current() && handle.folder.is_auto_named(&handle.path);
        // Conversations that the user named or chose keep everything.
        if !is_trimmed {
            rules.pairs = usize::MAX;
        }
        let mut intent = self.intent.clone();
        // What stays with a conversation must not get into one that another q has begun.
        if intent == Intent::FollowOrNew && (system.is_some() || tools.is_some()) {
            intent = Intent::New;
        }
        Some(Saver {
            handle,
            intent,
            becomes_current: self.becomes_current.clone(),
            responder: Responder {
                provider: self.target.provider().name.clone(),
                model: Some(model.to_owned()),
                at: self.asked,
            },
            pins: self.pins,
            system,
            tools,
            rules,
        })
    }
}

/// The server to ask. A wrong provider or key is reported here, before q waits for input. `None`: only the conversation
/// shows which server it is.
pub fn known_target(settings: &Settings, context: &Context) -> Result<Option<Target>, Error> {
    let arguments = &settings.typed;
    let has_own = arguments.again || !context.which.is_current();
    if arguments.provider.is_none() && has_own {
        return Ok(None);
    }
    // With --web, q checks that the server can search. It must not check a server that is not asked in the end.
    if !arguments.web
        && let Ok(Some(target)) = discover::chosen(settings, None)
    {
        return Ok(Some(target));
    }
    if arguments.provider.is_none() && arguments.follow && is_pinned(context) {
        return Ok(None);
    }
    let target = discover::find(settings, None, &context.notes)?;
    if arguments.web {
        target.check_web()?;
    }
    Ok(Some(target))
}

/// Whether the current conversation keeps a provider that was chosen for it.
fn is_pinned(context: &Context) -> bool {
    let Ok(opened) = context.open(Purpose::Look) else {
        return false;
    };
    matches!(opened.found, Ok(FileContent::Conversation(held)) if held.pinned)
}

/// Opens the conversation of this question. `known` is the result of [`known_target`].
pub fn open(
    known: Option<Target>,
    settings: &Settings,
    context: &Context,
) -> Result<Session, Error> {
    let arguments = &settings.typed;
    let notes = &context.notes;
    let mut purpose = Purpose::Ask;
    if settings.saves() {
        purpose = Purpose::AskAndSave;
    }
    let mut session = if arguments.again {
        let (handle, intent) = again(context.open(purpose)?)?;
        open_own(handle, intent, settings, notes)?
    } else if !context.which.is_current() {
        let opened = context.open(purpose).map_err(as_usage)?;
        let (handle, intent) = named(opened, arguments.follow, notes)?;
        open_own(handle, intent, settings, notes)?
    } else {
        open_current(purpose, known, settings, context)?
    };
    if arguments.web {
        session.target.check_web()?;
    }
    session.pins = arguments.provider.is_some() || arguments.model.is_some();
    session.choose(settings.saves(), context);
    Ok(session)
}

/// A conversation that keeps its own provider and model, unless others are typed.
fn open_own(
    handle: Handle,
    intent: Intent,
    settings: &Settings,
    notes: &Notes,
) -> Result<Session, Error> {
    let target = discover::find(settings, intent.read(), notes)?;
    Ok(Session::new(Some(handle), target, intent))
}

/// Continues the current conversation, or begins one.
fn open_current(
    purpose: Purpose,
    known: Option<Target>,
    settings: &Settings,
    context: &Context,
) -> Result<Session, Error> {
    let find_known = || match known {
        Some(target) => Ok(target),
        None => discover::find(settings, None, &context.notes),
    };
    let handle = if settings.typed.follow {
        match context.open(purpose) {
            Ok(opened) => return follow(opened, find_known, settings, &context.notes),
            Err(error) => Err(error),
        }
    } else {
        let folder = context.folder();
        folder.and_then(|folder| store::find(folder, &context.which, Purpose::Look))
    };
    // Without a place for the conversation, q still answers.
    if let Err(error) = &handle {
        let reason = &error.message;
        let note = format!("conversations are neither read nor saved: {reason}");
        context.notes.note(&note);
    }
    Ok(Session::new(handle.ok(), find_known()?, Intent::New))
}

/// The error for a conversation that was named: naming one where there can be none is a usage error.
fn as_usage(error: Error) -> Error {
    let kind = match error.kind {
        ErrorKind::File => ErrorKind::Session,
        kind => kind,
    };
    Error { kind, ..error }
}

/// The conversation whose last question is asked again.
fn again(opened: Opened) -> Result<(Handle, Intent), Error> {
    let (handle, conversation) = opened.existing()?;
    if let Some(conversation) = conversation
        && let Some(last) = conversation.exchanges.last()
        && last.question().is_some()
    {
        return Ok((handle, Intent::Again(Arc::new(conversation))));
    }
    Err(Error::nothing("there is no question to ask again"))
}

/// A conversation by its name, id or path. One with a name may be new.
fn named(opened: Opened, must_exist: bool, notes: &Notes) -> Result<(Handle, Intent), Error> {
    let (handle, conversation) = opened.conversation()?;
    if let Some(conversation) = conversation {
        return Ok((handle, Intent::Follow(Arc::new(conversation))));
    }
    if must_exist || handle.which.is_id() {
        return Err(handle.missing());
    }
    if io::stderr().is_terminal() {
        let mut note = format!("{} is a new conversation", handle.name());
        if let Some(other) = handle.nearest() {
            note += &format!("; did you mean {other}?");
        }
        notes.note(&note);
    }
    Ok((handle, Intent::Named))
}

/// Continues the current conversation. If an obstacle forbids that, a note names it, and q starts a new conversation.
/// `find_known` finds the server that the settings choose.
fn follow(
    opened: Opened,
    find_known: impl FnOnce() -> Result<Target, Error>,
    settings: &Settings,
    notes: &Notes,
) -> Result<Session, Error> {
    let handle = opened.handle;
    let mut unreadable = None;
    let found = opened.found.unwrap_or_else(|error| {
        unreadable = Some(format!("the conversation cannot be read ({error})"));
        FileContent::Nothing
    });
    let mut rules = settings.values.rules;
    if settings.typed.follow_anyway {
        rules.expire = None;
        rules.continue_on_mismatch = true;
    }
    let now = Timestamp::now();
    let target = match &found {
        FileContent::Conversation(held) if held.pinned && !rules.is_idle(held, now) => {
            discover::find(settings, Some(held), notes)?
        }
        _ => find_known()?,
    };
    let responder = Responder {
        provider: target.provider().name.clone(),
        model: target.choice.named_model().map(str::to_owned),
        at: now,
    };
    let obstacle = unreadable.or_else(|| rules::obstacle(&found, &responder, &rules));
    let mut advice = String::new();
    if let FileContent::Conversation(conversation) = found {
        if obstacle.is_none() {
            return Ok(continue_current(handle, target, conversation, responder));
        }
        if rules.keeps() {
            let id = handle.id();
            advice = format!("; this continues the old one: q -s {id}");
        }
    }
    let obstacle = obstacle.unwrap_or_default();
    notes.note(&format!("{obstacle}; starting a new conversation{advice}"));
    Ok(Session::new(Some(handle), target, Intent::FollowOrNew))
}

/// The current conversation, with the server that continues it.
fn continue_current(
    handle: Handle,
    mut target: Target,
    conversation: Conversation,
    responder: Responder,
) -> Session {
    let provider = responder.provider;
    let mut handed_to = None;
    if provider != conversation.provider {
        handed_to = Some(provider);
    } else {
        target.choice.continue_with(&conversation.model);
        if let Some(model) = responder.model
            && model != conversation.model
        {
            handed_to = Some(format!("{provider}, model {model}"));
        }
    }
    let intent = Intent::Follow(Arc::new(conversation));
    Session {
        handed_to,
        ..Session::new(Some(handle), target, intent)
    }
}
