//! Opens the conversation of a question: finds it, decides whether it is continued, and which server is asked.

use std::io::{self, IsTerminal};
use std::sync::Arc;

use crate::context::Context;
use crate::error::Error;
use crate::message::Message;
use crate::output::Notes;
use crate::server::discover;
use crate::server::target::Target;
use crate::session::Conversation;
use crate::session::name::Which;
use crate::session::rules::{self, FileContent, Intent, Responder};
use crate::session::save::Saver;
use crate::session::store::{self, Handle, Opened, Purpose};
use crate::session::timestamp::Timestamp;
use crate::settings::Settings;

/// The conversation of a question, and the server that is asked.
pub struct Session {
    pub intent: Intent,
    /// `None`: nothing is saved.
    pub saver: Option<Saver>,
    pub target: Target,
    /// The provider, perhaps with its model, that continues what another one began.
    pub handed_to: Option<String>,
}

impl Session {
    /// Without a folder there is no `handle`.
    fn new(handle: Option<Handle>, target: Target, intent: Intent, settings: &Settings) -> Session {
        let mut saver = None;
        if settings.saves()
            && let Some(handle) = handle
        {
            saver = Some(new_saver(handle, &target, &intent, settings));
        }
        Session {
            intent,
            saver,
            target,
            handed_to: None,
        }
    }

    /// The question to ask again.
    pub fn last_question(&self) -> Option<Message> {
        let Intent::Again(read) = &self.intent else {
            return None;
        };
        Some(read.exchanges.last()?.question()?.to_message())
    }
}

/// What saves the exchange, as far as the conversation and the settings say.
fn new_saver(handle: Handle, target: &Target, intent: &Intent, settings: &Settings) -> Saver {
    let arguments = &settings.typed;
    let mut rules = settings.values.rules;
    let is_trimmed = handle.which.is_current() && handle.folder.is_auto_named(&handle.path);
    // Conversations that the user named or chose keep everything.
    if !is_trimmed {
        rules.pairs = usize::MAX;
    }
    let mut becomes_current = None;
    if let Intent::New | Intent::FollowOrNew = intent {
        becomes_current = handle.link();
    }
    Saver {
        intent: intent.clone(),
        becomes_current,
        responder: Responder {
            provider: target.provider().name.clone(),
            model: None,
            at: Timestamp::now(),
        },
        pins: arguments.provider.is_some() || arguments.model.is_some() || handle.which.is_id(),
        system: None,
        tools: None,
        rules,
        handle,
    }
}

/// Keeps a conversation that the user chose by its id or number. On a terminal it becomes the current one.
fn choose(saver: &mut Saver, context: &Context) {
    let handle = &saver.handle;
    if !handle.which.is_id() {
        return;
    }
    // No sweep may remove it before the exchange is saved.
    handle.folder.touch(&handle.path);
    // With the name of a conversation in Q_SESSION there is no current one.
    let variable = context.environment.get("Q_SESSION");
    if let Ok(Which::Current(stem)) = Which::find(None, variable)
        && io::stdout().is_terminal()
    {
        saver.becomes_current = Some(handle.folder.file(&stem));
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
    let mut session = if arguments.again {
        let (handle, intent) = again(context.open(Purpose::Ask)?)?;
        open_own(handle, intent, settings, notes)?
    } else if !context.which.is_current() {
        let opened = context.open(Purpose::Ask)?;
        let (handle, intent) = named(opened, arguments.follow, notes)?;
        open_own(handle, intent, settings, notes)?
    } else {
        open_current(known, settings, context)?
    };
    if arguments.web {
        session.target.check_web()?;
    }
    if let Some(saver) = &mut session.saver {
        choose(saver, context);
    }
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
    Ok(Session::new(Some(handle), target, intent, settings))
}

/// Continues the current conversation, or begins one.
fn open_current(
    known: Option<Target>,
    settings: &Settings,
    context: &Context,
) -> Result<Session, Error> {
    let handle = if settings.typed.follow {
        match context.open(Purpose::Ask) {
            Ok(opened) => return follow(opened, known, settings, &context.notes),
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
    let target = known_or_found(known, None, settings, &context.notes)?;
    Ok(Session::new(handle.ok(), target, Intent::New, settings))
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
        let mut note = format!("{} is a new conversation", handle.id());
        if let Some(other) = handle.nearest() {
            note += &format!("; did you mean {other}?");
        }
        notes.note(&note);
    }
    Ok((handle, Intent::Named))
}

/// Continues the current conversation. If an obstacle forbids that, a note names it, and q starts a new conversation.
fn follow(
    opened: Opened,
    known: Option<Target>,
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
    let keeps = match &found {
        FileContent::Conversation(held) if held.pinned && !rules.is_idle(held, now) => Some(held),
        _ => None,
    };
    let mut target = known_or_found(known, keeps, settings, notes)?;
    let responder = Responder {
        provider: target.provider().name.clone(),
        model: target.choice.named_model().map(str::to_owned),
        at: now,
    };
    let obstacle = unreadable.or_else(|| rules::obstacle(&found, &responder, &rules));
    let mut advice = String::new();
    if let FileContent::Conversation(conversation) = found {
        if obstacle.is_none() {
            let handed_to = continue_with(&mut target, &conversation, responder);
            let intent = Intent::Follow(Arc::new(conversation));
            return Ok(Session {
                handed_to,
                ..Session::new(Some(handle), target, intent, settings)
            });
        }
        if rules.keeps() {
            let id = handle.id();
            advice = format!("; this continues the old one: q -s {id}");
        }
    }
    let obstacle = obstacle.unwrap_or_default();
    notes.note(&format!("{obstacle}; starting a new conversation{advice}"));
    let arguments = &settings.typed;
    let mut intent = Intent::FollowOrNew;
    // What stays with a conversation must not get into one that another q has begun.
    if arguments.system.is_some() || !arguments.tools.is_empty() {
        intent = Intent::New;
    }
    Ok(Session::new(Some(handle), target, intent, settings))
}

/// The server that is known already, unless the conversation keeps one.
fn known_or_found(
    known: Option<Target>,
    keeps: Option<&Conversation>,
    settings: &Settings,
    notes: &Notes,
) -> Result<Target, Error> {
    match known {
        Some(target) if keeps.is_none() => Ok(target),
        _ => discover::find(settings, keeps, notes),
    }
}

/// Lets this server continue a conversation, with its model if no other is named. Returns to whom it is handed over, if it is.
fn continue_with(
    target: &mut Target,
    conversation: &Conversation,
    responder: Responder,
) -> Option<String> {
    let provider = responder.provider;
    if provider != conversation.provider {
        return Some(provider);
    }
    target.choice.continue_with(&conversation.model);
    let model = responder.model?;
    (model != conversation.model).then(|| format!("{provider}, model {model}"))
}
