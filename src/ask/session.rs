//! Opens the conversation of a question: finds it, decides whether it is continued, and which server is asked.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;

use crate::context::{self, Context, Place};
use crate::error::{Error, ErrorKind};
use crate::flags::Arguments;
use crate::message::Message;
use crate::output::Notes;
use crate::server::choice::HeldWith;
use crate::server::discover;
use crate::server::target::Target;
use crate::session::Conversation;
use crate::session::commit::Committer;
use crate::session::files;
use crate::session::name::Which;
use crate::session::rules::{self, FileContent, Identity, Intent, Responder, Rules};
use crate::session::timestamp::Timestamp;
use crate::settings::Settings;
use crate::unix;

/// The conversation of a question, and the server that is asked.
pub struct Session {
    /// `None`: without a home folder nothing is read or saved.
    place: Option<Place>,
    intent: Intent,
    /// See [`Committer::becomes_current`].
    becomes_current: Option<PathBuf>,
    /// See [`Committer::pins`].
    pins: bool,
    /// The conversation, without the exchange that is asked again.
    pub conversation: Option<Arc<Conversation>>,
    pub target: Target,
    /// The provider, perhaps with its model, that continues what another one began.
    pub handed_to: Option<String>,
}

impl Session {
    fn new(
        place: Option<Place>,
        target: Target,
        intent: Intent,
        conversation: Option<Conversation>,
    ) -> Session {
        let conversation = conversation.map(Arc::new);
        Session {
            place,
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
        match &self.place {
            Some(place) => place.which.clone(),
            None => Which::Current { slot: None },
        }
    }

    /// Pins the conversation if the user chose it by its id or number. On a terminal it also becomes the current one.
    fn choose(&mut self, arguments: &Arguments, settings: &Settings, context: &Context) {
        let Some(place) = &self.place else {
            return;
        };
        if !place.which.is_id_or_number() {
            return;
        }
        self.pins = true;
        if settings.values.save && !arguments.dry_run && place.location.is_auto_named {
            // The sweep of another q must not remove it before the exchange is saved.
            unix::touch(&place.location.path);
        }
        // With the name of a conversation in Q_SESSION there is no current one.
        let variable = context.environment.get("Q_SESSION");
        if let Ok(Which::Current { slot }) = Which::find(None, variable)
            && io::stdout().is_terminal()
        {
            self.becomes_current = Some(place.folder.link(slot.as_deref()));
        }
    }

    /// Reports which conversation is continued.
    pub fn report(&self, notes: &Notes) {
        notes.detail(|| {
            let (Some(conversation), Some(place)) = (&self.conversation, &self.place) else {
                return "begins a conversation".to_owned();
            };
            let id = place.folder.id(&place.location.path, conversation.created);
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
    pub fn committer(
        &self,
        model: &str,
        system: Option<String>,
        tools: Option<Vec<String>>,
        asked: Timestamp,
        mut rules: Rules,
    ) -> Option<Committer> {
        let place = self.place.as_ref()?;
        let is_trimmed = place.which.is_current() && place.location.is_auto_named;
        // Conversations that the user named or chose keep everything.
        if !is_trimmed {
            rules.pairs = usize::MAX;
        }
        Some(Committer {
            folder: place.folder.clone(),
            location: place.location.clone(),
            intent: self.intent.clone(),
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
    let Ok(place) = context.place() else {
        return false;
    };
    match files::read(&place.location.path) {
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
    let mut session = match find_place(arguments, context)? {
        Some(place) if arguments.again => open_again(place, settings, notes)?,
        Some(place) if !place.which.is_current() => {
            let must_exist = arguments.follow;
            open_named(place, must_exist, settings, notes)?
        }
        Some(place) if arguments.follow => follow(place, known, settings, notes, now)?,
        place => {
            let target = target_from_settings(known, settings, notes)?;
            Session::new(place, target, Intent::New, None)
        }
    };
    session.pins = arguments.provider.is_some() || arguments.model.is_some();
    session.choose(arguments, settings, context);
    Ok(session)
}

/// Where the conversation is. Without a place for the current conversation, q still answers, and a note says that nothing
/// is saved.
fn find_place(arguments: &Arguments, context: &Context) -> Result<Option<Place>, Error> {
    let error = match context.place() {
        Ok(place) => return Ok(Some(place)),
        Err(error) => error,
    };
    match context.which {
        Which::Named(_) | Which::Id(_) | Which::File(_) => {
            return Err(Error {
                kind: ErrorKind::Session,
                ..error
            });
        }
        Which::Number(_) => return Err(error),
        Which::Current { .. } if arguments.again => return Err(error),
        Which::Current { .. } => {}
    }
    if context.folder.is_none() {
        let note = "there is no home folder: conversations are neither read nor saved";
        context.notes.note(note);
    } else {
        let reason = error.message;
        let note = format!("conversations are neither read nor saved: {reason}");
        context.notes.note(&note);
    }
    Ok(None)
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
fn open_again(place: Place, settings: &Settings, notes: &Notes) -> Result<Session, Error> {
    let nothing = || Error::nothing("there is no question to ask again");
    let Some(mut conversation) = read(&place)? else {
        if place.which.is_current() {
            return Err(nothing());
        }
        return Err(place.missing());
    };
    let identity = Identity::new(&conversation);
    let last = conversation.undo().ok_or_else(nothing)?;
    let intent = Intent::Again(identity, last);
    let target = target_from_conversation(&conversation, settings, notes)?;
    Ok(Session::new(
        Some(place),
        target,
        intent,
        Some(conversation),
    ))
}

/// A conversation by its name, id or path. One with a name may be new.
fn open_named(
    place: Place,
    must_exist: bool,
    settings: &Settings,
    notes: &Notes,
) -> Result<Session, Error> {
    let Some(conversation) = read(&place)? else {
        if must_exist || place.which.is_id_or_number() {
            return Err(place.missing());
        }
        if io::stderr().is_terminal() {
            let mut note = format!("{} is a new conversation", place.name());
            if let Some(other) = place.nearest() {
                note += &format!("; did you mean {other}?");
            }
            notes.note(&note);
        }
        let target = discover::find(settings, None, notes)?;
        return Ok(Session::new(Some(place), target, Intent::Named, None));
    };
    let target = target_from_conversation(&conversation, settings, notes)?;
    let intent = Intent::Follow(Identity::new(&conversation));
    Ok(Session::new(
        Some(place),
        target,
        intent,
        Some(conversation),
    ))
}

/// A conversation by name, id or path, if it exists.
fn read(place: &Place) -> Result<Option<Conversation>, Error> {
    place.check_owner()?;
    let path = &place.location.path;
    // Naming a file that cannot be used is a usage error.
    let is_named = !place.which.is_current();
    let reason = match files::read(path) {
        Ok(FileContent::Conversation(conversation)) => return Ok(Some(conversation)),
        Ok(FileContent::Nothing) => return Ok(None),
        Ok(FileContent::Unusable(reason)) => reason,
        Err(error) => {
            let is_file = matches!(place.which, Which::File(_));
            let mut kind = ErrorKind::File;
            if is_named && (is_file || error.kind() == files::NOT_REGULAR) {
                kind = ErrorKind::Session;
            }
            return Err(Error::new(kind, error.to_string()));
        }
    };
    let message = format!("{}: {reason}", path.display());
    if !is_named {
        return Err(Error::file(message));
    }
    let advice = "it was left as it is; -s with another name starts another conversation";
    Err(Error::new(ErrorKind::Session, message).advise(advice))
}

/// Continues the current conversation. If an obstacle forbids that, a note names it, and q starts a new conversation.
fn follow(
    place: Place,
    known: Option<Target>,
    settings: &Settings,
    notes: &Notes,
    now: Timestamp,
) -> Result<Session, Error> {
    let found = match read_current(&place) {
        Ok(found) => found,
        Err(error) => {
            let reason = format!("the conversation cannot be read ({error})");
            notes.note(&format!("{reason}; starting a new conversation"));
            let target = target_from_settings(known, settings, notes)?;
            return Ok(Session::new(Some(place), target, Intent::FollowOrNew, None));
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
            return Ok(continue_current(place, target, conversation));
        }
        if rules.keeps() {
            let id = place.folder.id(&place.location.path, conversation.created);
            advice = format!("; this continues the old one: q -s {id}");
        }
    }
    if let Some(obstacle) = obstacle {
        notes.note(&format!("{obstacle}; starting a new conversation{advice}"));
    }
    Ok(Session::new(Some(place), target, Intent::FollowOrNew, None))
}

fn read_current(place: &Place) -> io::Result<FileContent> {
    let path = &place.location.path;
    match files::read(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            // If the folder is the user's own, saving would correct its mode too.
            place.folder.prepare()?;
            files::read(path)
        }
        found => found,
    }
}

/// The current conversation, with the server that continues it.
fn continue_current(place: Place, mut target: Target, conversation: Conversation) -> Session {
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
    let mut session = Session::new(Some(place), target, intent, Some(conversation));
    session.handed_to = handed_to;
    session
}
