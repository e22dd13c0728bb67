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
pub(super) struct Session {
    /// `None`: without a home folder nothing is read or saved.
    place: Option<Place>,
    intent: Intent,
    /// See [`Committer::becomes_current`].
    becomes_current: Option<PathBuf>,
    /// See [`Committer::pins`].
    pins: bool,
    /// The conversation, without the exchange that is asked again.
    pub(super) conversation: Option<Arc<Conversation>>,
    /// The server that is asked.
    pub(super) target: Target,
    /// The provider, and perhaps the model, that takes over; `None` if nothing changes.
    pub(super) handed_to: Option<String>,
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
    pub(super) fn which(&self) -> Which {
        self.place
            .as_ref()
            .map_or(Which::Current { slot: None }, |place| place.which.clone())
    }

    /// Pins a conversation that was chosen by its id, or its number; on a terminal it becomes the current one.
    fn choose(&mut self, arguments: &Arguments, settings: &Settings, context: &Context) {
        let Some(place) = self
            .place
            .as_ref()
            .filter(|place| place.which.is_id_or_number())
        else {
            return;
        };
        self.pins = true;
        if settings.values.save && !arguments.dry_run && place.location.is_auto_named {
            unix::touch(&place.location.path);
        }
        if let Ok(Which::Current { slot }) = Which::find(None, context.environment.get("Q_SESSION"))
            && io::stdout().is_terminal()
        {
            self.becomes_current = Some(place.folder.link(slot.as_deref()));
        }
    }

    /// Says which conversation is continued.
    pub(super) fn report(&self, notes: &Notes) {
        let continued = self.conversation.as_ref().zip(self.place.as_ref());
        notes.detail(|| match continued {
            Some((
                conversation,
                Place {
                    folder, location, ..
                },
            )) => {
                let id = folder.id(&location.path, conversation.created);
                format!(
                    "continues conversation {id}, {} messages",
                    conversation.message_count()
                )
            }
            None => "begins a conversation".to_owned(),
        });
    }

    /// The question to ask again.
    pub(super) fn last_question(&self) -> Option<Message> {
        match &self.intent {
            Intent::Again(_, last) => Some(last.question()?.to_message()),
            _ => None,
        }
    }

    /// How to save the exchange; `None` without a place for it. `system` and `tools` are saved with it.
    pub(super) fn committer(
        &self,
        model: &str,
        system: Option<String>,
        tools: Option<Vec<String>>,
        asked: Timestamp,
        rules: Rules,
    ) -> Option<Committer> {
        let place = self.place.as_ref()?;
        // Conversations that the user named or chose keep everything.
        let is_trimmed = place.which.is_current() && place.location.is_auto_named;
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
            rules: Rules {
                pairs: if is_trimmed { rules.pairs } else { usize::MAX },
                ..rules
            },
            known: self.conversation.clone(),
        })
    }
}

/// The server that is asked, as far as it is known before the conversation is read. A wrong provider or key is reported
/// before q waits for input. `None`: the conversation says which one it is.
///
/// # Errors
/// Why there is no server to ask.
pub(super) fn known_target(
    arguments: &Arguments,
    settings: &Settings,
    context: &Context,
) -> Result<Option<Target>, Error> {
    let has_own = arguments.again || !context.which.is_current();
    if arguments.provider.is_none() && has_own {
        return Ok(None);
    }
    let has_pinned = || arguments.provider.is_none() && arguments.follow && is_pinned(context);
    match discover::chosen(settings, None) {
        // Only the server that is asked has to be able to search.
        Ok(Some(target)) if !arguments.web || !has_pinned() => Ok(Some(target)),
        _ if has_pinned() => Ok(None),
        _ => discover::find(settings, None, &context.notes).map(Some),
    }
}

/// Whether the current conversation keeps a provider that was chosen for it.
fn is_pinned(context: &Context) -> bool {
    let Ok(place) = context.place() else {
        return false;
    };
    matches!(files::read(&place.location.path), Ok(FileContent::Conversation(conversation)) if conversation.pinned)
}

/// Opens the conversation of this question. `known` is the server, unless only the conversation knows it.
///
/// # Errors
/// `Session`: the named conversation cannot be used, or its provider is gone. `Nothing`: a conversation that must exist
/// does not, or has no question. Else why there is no server to ask.
pub(super) fn open(
    arguments: &Arguments,
    known: Option<Target>,
    settings: &Settings,
    context: &Context,
    now: Timestamp,
) -> Result<Session, Error> {
    let mut session = match find_place(arguments, context)? {
        Some(place) if arguments.again => open_again(place, settings, &context.notes)?,
        Some(place) if !place.which.is_current() => {
            open_named(place, arguments, settings, context)?
        }
        Some(place) if arguments.follow => follow(place, known, settings, &context.notes, now)?,
        place => Session::new(
            place,
            target_from_settings(known, settings, &context.notes)?,
            Intent::New,
            None,
        ),
    };
    session.pins = arguments.provider.is_some() || arguments.model.is_some();
    session.choose(arguments, settings, context);
    Ok(session)
}

/// Where the conversation is. `None`: there is no place for a current one.
fn find_place(arguments: &Arguments, context: &Context) -> Result<Option<Place>, Error> {
    match context.place() {
        Ok(place) => Ok(Some(place)),
        Err(error)
            if matches!(
                context.which,
                Which::Named(_) | Which::Id(_) | Which::File(_)
            ) =>
        {
            Err(Error {
                kind: ErrorKind::Session,
                ..error
            })
        }
        Err(error) if !context.which.is_current() || arguments.again => Err(error),
        Err(error) => {
            context.notes.note(&match context.folder {
                None => {
                    "there is no home folder: conversations are neither read nor saved".to_owned()
                }
                Some(_) => format!(
                    "conversations are neither read nor saved: {}",
                    error.message
                ),
            });
            Ok(None)
        }
    }
}

/// The server that the settings choose.
fn target_from_settings(
    known: Option<Target>,
    settings: &Settings,
    notes: &Notes,
) -> Result<Target, Error> {
    known.map_or_else(|| discover::find(settings, None, notes), Ok)
}

/// The server for a conversation that keeps its own provider and model.
fn target_from_conversation(
    conversation: &Conversation,
    settings: &Settings,
    notes: &Notes,
) -> Result<Target, Error> {
    let Conversation {
        provider, model, ..
    } = conversation.clone();
    discover::find(settings, Some(&HeldWith { provider, model }), notes)
}

/// The conversation whose last question is asked again.
fn open_again(place: Place, settings: &Settings, notes: &Notes) -> Result<Session, Error> {
    let nothing = || Error::nothing("there is no question to ask again");
    let mut conversation = match (read(&place)?, place.which.is_current()) {
        (Some(conversation), _) => conversation,
        (None, true) => return Err(nothing()),
        (None, false) => return Err(place.missing()),
    };
    let intent = Intent::Again(
        Identity::new(&conversation),
        conversation.undo().ok_or_else(nothing)?,
    );
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
    arguments: &Arguments,
    settings: &Settings,
    context: &Context,
) -> Result<Session, Error> {
    let notes = &context.notes;
    let Some(conversation) = read(&place)? else {
        if place.which.is_id_or_number() || arguments.follow {
            return Err(place.missing());
        }
        if io::stderr().is_terminal() {
            let other = place
                .nearest()
                .map_or_else(String::new, |other| format!("; did you mean {other}?"));
            notes.note(&format!("{} is a new conversation{other}", place.name()));
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
    // Naming a file that cannot be used is a usage error.
    let is_named = !place.which.is_current();
    let found = files::read(&place.location.path).map_err(|error| {
        let is_usage = is_named
            && (error.kind() == files::NOT_REGULAR || matches!(place.which, Which::File(_)));
        Error::new(
            if is_usage {
                ErrorKind::Session
            } else {
                ErrorKind::File
            },
            error.to_string(),
        )
    });
    match found? {
        FileContent::Conversation(conversation) => Ok(Some(conversation)),
        FileContent::Unusable(reason) => {
            let error = format!("{}: {reason}", place.location.path.display());
            Err(match is_named {
                true => Error::new(ErrorKind::Session, error).advise(
                    "it was left as it is; -s with another name starts another conversation",
                ),
                false => Error::file(error),
            })
        }
        FileContent::Nothing => Ok(None),
    }
}

/// The current conversation, if a follow-up can continue it; else a note says why q starts a new one.
fn follow(
    place: Place,
    known: Option<Target>,
    settings: &Settings,
    notes: &Notes,
    now: Timestamp,
) -> Result<Session, Error> {
    let found = files::read(&place.location.path).or_else(|error| match error.kind() {
        // If the folder is the user's own, saving would correct its mode too.
        io::ErrorKind::PermissionDenied => place
            .folder
            .prepare()
            .and_then(|()| files::read(&place.location.path)),
        _ => Err(error),
    });
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            notes.note(&format!(
                "the conversation cannot be read ({error}); starting a new conversation"
            ));
            return Ok(Session::new(
                Some(place),
                target_from_settings(known, settings, notes)?,
                Intent::FollowOrNew,
                None,
            ));
        }
    };
    let rules = context::rules(&settings.values);
    let target = match &found {
        FileContent::Conversation(conversation)
            if conversation.pinned && !rules.is_idle(conversation, now) =>
        {
            target_from_conversation(conversation, settings, notes)?
        }
        _ => target_from_settings(known, settings, notes)?,
    };
    let model = target.choice.named_model().map(str::to_owned);
    let asked = Responder {
        provider: target.provider().name.clone(),
        model,
        at: now,
    };
    match (rules::obstacle(&found, &asked, &rules), found) {
        (None, FileContent::Conversation(conversation)) => {
            Ok(continue_current(place, target, conversation))
        }
        (obstacle, found) => {
            let old = match found {
                FileContent::Conversation(conversation) if rules.keeps() => {
                    let id = place.folder.id(&place.location.path, conversation.created);
                    format!("; this continues the old one: q -s {id}")
                }
                _ => String::new(),
            };
            if let Some(obstacle) = obstacle {
                notes.note(&format!("{obstacle}; starting a new conversation{old}"));
            }
            Ok(Session::new(Some(place), target, Intent::FollowOrNew, None))
        }
    }
}

fn continue_current(place: Place, mut target: Target, conversation: Conversation) -> Session {
    let is_same_provider = target.provider().name == conversation.provider;
    if is_same_provider {
        target.choice.continue_with(&conversation.model);
    }
    let name = target.provider().name.clone();
    let handed_to = match target
        .choice
        .named_model()
        .filter(|model| *model != conversation.model)
    {
        Some(model) if is_same_provider => Some(format!("{name}, model {model}")),
        _ => Some(name).filter(|_| !is_same_provider),
    };
    let intent = Intent::Follow(Identity::new(&conversation));
    Session {
        handed_to,
        ..Session::new(Some(place), target, intent, Some(conversation))
    }
}
