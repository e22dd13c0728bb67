//! Opens the conversation of a question: finds it, decides whether it is continued, and which server is asked.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;

use crate::context::{self, Context};
use crate::error::{Error, ErrorKind};
use crate::flags::Arguments;
use crate::message::Message;
use crate::output::Notes;
use crate::server::choice::HeldWith;
use crate::server::discover;
use crate::server::target::Target;
use crate::session::Conversation;
use crate::session::name::Which;
use crate::session::rules::{self, FileContent, Identity, Intent, Responder, Rules};
use crate::session::save::Saver;
use crate::session::store::{self, Handle, Opened, Purpose};
use crate::session::timestamp::Timestamp;
use crate::settings::Settings;

/// The conversation of a question, and the server that is asked.
pub struct Session {
    /// `None`: without a folder nothing is read or saved.
    handle: Option<Handle>,
    intent: Intent,
    /// See [`Saver::becomes_current`].
    becomes_current: Option<PathBuf>,
    /// See [`Saver::pins`].
    pins: bool,
    /// The conversation, without the exchange that is asked again.
    pub conversation: Option<Arc<Conversation>>,
    pub target: Target,
    /// The provider, perhaps with its model, that continues what another one began.
    pub handed_to: Option<String>,
}

impl Session {
    fn new(
        handle: Option<Handle>,
        target: Target,
        intent: Intent,
        conversation: Option<Conversation>,
    ) -> Session {
        let conversation = conversation.map(Arc::new);
        Session {
            handle,
            intent,
            becomes_current: None,
            pins: false,
            conversation,
            target,
            handed_to: None,
        }
    }

    /// How the user names the conversation.
    pub fn which(&self) -> Which {
        match &self.handle {
            Some(handle) => handle.which.clone(),
            None => Which::Current { slot: None },
        }
    }

    /// Pins the conversation if the user chose it by its id or number. On a terminal it also becomes the current one.
    fn choose(&mut self, arguments: &Arguments, settings: &Settings, context: &Context) {
        let Some(handle) = &self.handle else {
            return;
        };
        if !handle.which.is_id_or_number() {
            return;
        }
        self.pins = true;
        if settings.values.save && !arguments.dry_run {
            handle.touch();
        }
        // With the name of a conversation in Q_SESSION there is no current one.
        let variable = context.environment.get("Q_SESSION");
        if let Ok(Which::Current { slot }) = Which::find(None, variable)
            && io::stdout().is_terminal()
        {
            self.becomes_current = Some(handle.folder.link(slot.as_deref()));
        }
    }

    /// Reports which conversation is continued.
    pub fn report(&self, notes: &Notes) {
        notes.detail(|| {
            let (Some(conversation), Some(handle)) = (&self.conversation, &self.handle) else {
                return "begins a conversation".to_owned();
            };
            let id = handle.id();
            let count = conversation.message_count();
            format!("continues conversation {id}, {count} messages")
        });
    }

    /// The question to ask again.
    pub fn last_question(&self) -> Option<Message> {
        let Intent::Again(_, last) = &self.intent else {
            return None;
        };
        Some(last.question()?.to_message())
    }

    /// What saves the exchange, with `system` and `tools`; `None` without a place for it.
    pub fn saver(
        &self,
        model: &str,
        system: Option<String>,
        tools: Option<Vec<String>>,
        asked: Timestamp,
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
            provider: self.target.provider().name.clone(),
            model: model.to_owned(),
            pins: self.pins,
            system,
            tools,
            asked,
            rules,
            known: self.conversation.clone(),
        })
    }
}

/// The server to ask. A wrong provider or key is reported here, before q waits for input. `None`: only the conversation
/// shows which server it is.
pub fn known_target(
    arguments: &Arguments,
    settings: &Settings,
    context: &Context,
) -> Result<Option<Target>, Error> {
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
    discover::find(settings, None, &context.notes).map(Some)
}

/// Whether the current conversation keeps a provider that was chosen for it.
fn is_pinned(context: &Context) -> bool {
    let Ok(opened) = context.open(Purpose::Look) else {
        return false;
    };
    match opened.found {
        Ok(FileContent::Conversation(conversation)) => conversation.pinned,
        _ => false,
    }
}

/// Opens the conversation of this question. `known` is the result of [`known_target`].
pub fn open(
    arguments: &Arguments,
    known: Option<Target>,
    settings: &Settings,
    context: &Context,
    now: Timestamp,
) -> Result<Session, Error> {
    let notes = &context.notes;
    let mut purpose = Purpose::Ask;
    if settings.values.save && !arguments.dry_run {
        purpose = Purpose::AskAndSave;
    }
    let mut session = if arguments.again {
        open_again(context.open(purpose)?, settings, notes)?
    } else if !context.which.is_current() {
        let opened = context.open(purpose).map_err(as_usage)?;
        open_named(opened, arguments.follow, settings, notes)?
    } else if arguments.follow {
        match context.open(purpose) {
            Ok(opened) => follow(opened, known, settings, notes, now)?,
            Err(error) => begin(Err(error), known, settings, context)?,
        }
    } else {
        let handle = context
            .folder()
            .and_then(|folder| store::find(folder, &context.which, Purpose::Look));
        begin(handle, known, settings, context)?
    };
    session.pins = arguments.provider.is_some() || arguments.model.is_some();
    session.choose(arguments, settings, context);
    Ok(session)
}

/// Begins a conversation. Without a place for it, q still answers, and a note says that nothing is saved.
fn begin(
    handle: Result<Handle, Error>,
    known: Option<Target>,
    settings: &Settings,
    context: &Context,
) -> Result<Session, Error> {
    if let Err(error) = &handle {
        let note = if context.folder.is_none() {
            "there is no home folder: conversations are neither read nor saved".to_owned()
        } else {
            let reason = &error.message;
            format!("conversations are neither read nor saved: {reason}")
        };
        context.notes.note(&note);
    }
    let target = target_from_settings(known, settings, &context.notes)?;
    Ok(Session::new(handle.ok(), target, Intent::New, None))
}

/// The error for a conversation that was named: naming one where there can be none is a usage error.
fn as_usage(error: Error) -> Error {
    let kind = match error.kind {
        ErrorKind::File => ErrorKind::Session,
        kind => kind,
    };
    Error { kind, ..error }
}

/// The server that the settings choose.
fn target_from_settings(
    known: Option<Target>,
    settings: &Settings,
    notes: &Notes,
) -> Result<Target, Error> {
    match known {
        Some(target) => Ok(target),
        None => discover::find(settings, None, notes),
    }
}

/// The server for a conversation that keeps its own provider and model.
fn target_from_conversation(
    conversation: &Conversation,
    settings: &Settings,
    notes: &Notes,
) -> Result<Target, Error> {
    let held_with = HeldWith {
        provider: conversation.provider.clone(),
        model: conversation.model.clone(),
    };
    discover::find(settings, Some(&held_with), notes)
}

/// The conversation without its last question, which is asked again.
fn open_again(opened: Opened, settings: &Settings, notes: &Notes) -> Result<Session, Error> {
    let nothing = || Error::nothing("there is no question to ask again");
    let (handle, conversation) = opened.existing()?;
    let mut conversation = conversation.ok_or_else(nothing)?;
    let identity = Identity::new(&conversation);
    let last = conversation.undo().ok_or_else(nothing)?;
    let intent = Intent::Again(identity, last);
    let target = target_from_conversation(&conversation, settings, notes)?;
    Ok(Session::new(
        Some(handle),
        target,
        intent,
        Some(conversation),
    ))
}

/// A conversation by its name, id or path. One with a name may be new.
fn open_named(
    opened: Opened,
    must_exist: bool,
    settings: &Settings,
    notes: &Notes,
) -> Result<Session, Error> {
    let (handle, conversation) = opened.conversation()?;
    let Some(conversation) = conversation else {
        if must_exist || handle.which.is_id_or_number() {
            return Err(handle.missing());
        }
        if io::stderr().is_terminal() {
            let mut note = format!("{} is a new conversation", handle.name());
            if let Some(other) = handle.nearest() {
                note += &format!("; did you mean {other}?");
            }
            notes.note(&note);
        }
        let target = discover::find(settings, None, notes)?;
        return Ok(Session::new(Some(handle), target, Intent::Named, None));
    };
    let target = target_from_conversation(&conversation, settings, notes)?;
    let intent = Intent::Follow(Identity::new(&conversation));
    Ok(Session::new(
        Some(handle),
        target,
        intent,
        Some(conversation),
    ))
}

/// Continues the current conversation. If an obstacle forbids that, a note names it, and q starts a new conversation.
fn follow(
    opened: Opened,
    known: Option<Target>,
    settings: &Settings,
    notes: &Notes,
    now: Timestamp,
) -> Result<Session, Error> {
    let handle = opened.handle;
    let found = match opened.found {
        Ok(found) => found,
        Err(error) => {
            let reason = format!("the conversation cannot be read ({error})");
            notes.note(&format!("{reason}; starting a new conversation"));
            let target = target_from_settings(known, settings, notes)?;
            let intent = Intent::FollowOrNew;
            return Ok(Session::new(Some(handle), target, intent, None));
        }
    };
    let rules = context::rules(&settings.values);
    let target = if let FileContent::Conversation(conversation) = &found
        && conversation.pinned
        && !rules.is_idle(conversation, now)
    {
        target_from_conversation(conversation, settings, notes)?
    } else {
        target_from_settings(known, settings, notes)?
    };
    let responder = Responder {
        provider: target.provider().name.clone(),
        model: target.choice.named_model().map(str::to_owned),
        at: now,
    };
    let obstacle = rules::obstacle(&found, &responder, &rules);
    let mut advice = String::new();
    if let FileContent::Conversation(conversation) = found {
        if obstacle.is_none() {
            return Ok(continue_current(handle, target, conversation));
        }
        if rules.keeps() {
            let id = handle.id();
            advice = format!("; this continues the old one: q -s {id}");
        }
    }
    if let Some(obstacle) = obstacle {
        notes.note(&format!("{obstacle}; starting a new conversation{advice}"));
    }
    let intent = Intent::FollowOrNew;
    Ok(Session::new(Some(handle), target, intent, None))
}

/// The current conversation, with the server that continues it.
fn continue_current(handle: Handle, mut target: Target, conversation: Conversation) -> Session {
    let provider = target.provider().name.clone();
    let is_same_provider = provider == conversation.provider;
    if is_same_provider {
        target.choice.continue_with(&conversation.model);
    }
    let mut handed_to = None;
    if !is_same_provider {
        handed_to = Some(provider);
    } else if let Some(model) = target.choice.named_model()
        && model != conversation.model
    {
        handed_to = Some(format!("{provider}, model {model}"));
    }
    let intent = Intent::Follow(Identity::new(&conversation));
    let mut session = Session::new(Some(handle), target, intent, Some(conversation));
    session.handed_to = handed_to;
    session
}
