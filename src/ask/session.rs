//! The conversation of a question: which one it is, which of its messages are sent, and which server is asked.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use crate::context::{self, Context, Place};
use crate::error::{Error, Kind};
use crate::flags::Arguments;
use crate::message::Message;
use crate::server::choice::HeldWith;
use crate::server::discover;
use crate::server::target::Target;
use crate::session::Conversation;
use crate::session::commit::Committer;
use crate::session::files;
use crate::session::name::Which;
use crate::session::rules::{self, Asked, Found, Intent, Seen};
use crate::session::timestamp::Timestamp;
use crate::settings::{Settings, Values};

/// What the conversation has to do with this question.
pub(super) struct Session<'a> {
    /// `None`: without a home folder nothing is read or saved.
    place: Option<Place<'a>>,
    intent: Intent,
    /// See [`Committer::becomes_current`].
    becomes_current: Option<PathBuf>,
    pins: bool,
    /// The conversation as it is, without the exchange that is asked again.
    conversation: Option<Conversation>,
    /// Its last messages.
    pub(super) window: Vec<Message>,
    /// The provider, and perhaps the model, that answers now; `None` if it answered before.
    pub(super) handed_to: Option<String>,
}

impl Session<'_> {
    /// How the user names the conversation.
    pub(super) fn which(&self) -> Which {
        self.place.as_ref().map_or(Which::Current { slot: None }, |place| place.which.clone())
    }

    /// The conversation's own system prompt.
    pub(super) fn system(&self) -> Option<&String> {
        self.conversation.as_ref()?.system.as_ref()
    }

    /// The tools that it remembers.
    pub(super) fn tools(&self) -> &[String] {
        self.conversation.as_ref().map_or(&[], |conversation| &conversation.tools)
    }

    /// The question to ask again.
    pub(super) fn last_question(&self) -> Option<Message> {
        match &self.intent {
            Intent::Again(_, last) => Some(last.question()?.to_message()),
            _ => None,
        }
    }

    /// How to save the exchange, if it is saved. `system` and `tools` are saved with it.
    pub(super) fn committer(
        &self,
        target: &Target,
        model: &str,
        system: Option<String>,
        tools: Option<Vec<String>>,
        asked: Timestamp,
        values: &Values,
    ) -> Option<Committer> {
        let place = self.place.as_ref().filter(|_| values.save)?;
        // Only what q would keep for a while only is trimmed, and not where a user names it.
        let is_trimmed = place.which.is_current() && place.location.is_unnamed;
        let mut rules = context::rules(values);
        rules.pairs = if is_trimmed { rules.pairs } else { usize::MAX };
        Some(Committer {
            folder: place.folder.clone(),
            location: place.location.clone(),
            intent: self.intent.clone(),
            becomes_current: self.becomes_current.clone(),
            provider: target.provider().name.clone(),
            model: model.to_owned(),
            pins: self.pins,
            system,
            tools,
            asked,
            rules,
        })
    }
}

/// The server that is asked, as far as it is known before the conversation is read. A wrong provider or key is reported
/// before q waits for input. `None`: the conversation says which one it is.
///
/// # Errors
/// Why there is no server to ask.
pub(super) fn known_target<'a>(
    arguments: &Arguments,
    settings: &'a Settings,
    context: &Context,
) -> Result<Option<Target<'a>>, Error> {
    let has_own = arguments.again || !context.which.is_current();
    if arguments.provider.is_none() && has_own {
        return Ok(None);
    }
    match discover::chosen(settings, None) {
        Ok(Some(target)) => Ok(Some(target)),
        _ if arguments.provider.is_none() && arguments.follow && is_pinned(context) => Ok(None),
        _ => discover::find(settings, None, &context.notes).map(Some),
    }
}

/// Whether the current conversation keeps a provider that was chosen for it.
fn is_pinned(context: &Context) -> bool {
    let Ok(place) = context.place() else { return false };
    matches!(files::read(&place.location.path), Ok(Found::Conversation(conversation)) if conversation.pinned)
}

/// Opens the conversation of this question. `known` is the server, unless only the conversation knows it.
///
/// # Errors
/// `Session`: the named conversation cannot be used, or its provider is gone. `Nothing`: a conversation that must exist
/// does not, or has no question. Else why there is no server to ask.
pub(super) fn open<'a>(
    arguments: &Arguments,
    known: Option<Target<'a>>,
    settings: &'a Settings,
    context: &'a Context,
    now: Timestamp,
) -> Result<(Target<'a>, Session<'a>), Error> {
    let place = find_place(arguments, context)?;
    let pins = arguments.provider.is_some() || arguments.model.is_some();
    let mut session = Session {
        place: None,
        intent: Intent::New,
        becomes_current: None,
        pins,
        conversation: None,
        window: Vec::new(),
        handed_to: None,
    };
    let target = match &place {
        Some(place) if arguments.again => open_again(place, settings, context, &mut session)?,
        Some(place) if !place.which.is_current() => open_named(arguments, place, settings, context, &mut session)?,
        Some(place) if arguments.follow => open_current(place, known, settings, context, now, &mut session)?,
        _ => known.map_or_else(|| discover::find(settings, None, &context.notes), Ok)?,
    };
    if let Some(conversation) = &session.conversation {
        let same_provider = target.provider().name == conversation.provider;
        let model = target.choice.named_model().filter(|model| *model != conversation.model);
        // A user who names a conversation, or asks again, knows what goes where.
        let is_followed = place.as_ref().is_some_and(|place| place.which.is_current()) && !arguments.again;
        if is_followed && (!same_provider || model.is_some()) {
            let name = &target.provider().name;
            session.handed_to = Some(match model {
                Some(model) if same_provider => format!("{name}, model {model}"),
                _ => name.clone(),
            });
        }
        session.window = conversation.window(settings.values.messages);
    }
    session.place = place;
    Ok((target, session))
}

/// Where the conversation is. `None`: there is no place for a current one.
fn find_place<'a>(arguments: &Arguments, context: &'a Context) -> Result<Option<Place<'a>>, Error> {
    match context.place() {
        Ok(place) => Ok(Some(place)),
        Err(error) if !context.which.is_current() && error.kind != Kind::Nothing => {
            Err(Error { kind: Kind::Session, ..error })
        }
        Err(error) if !context.which.is_current() || arguments.again => Err(error),
        Err(error) => {
            context.notes.note(&match context.folder {
                None => "there is no home folder: conversations are neither read nor saved".to_owned(),
                Some(_) => format!("conversations are neither read nor saved: {}", error.message),
            });
            Ok(None)
        }
    }
}

/// The server for a conversation that keeps its own provider and model.
fn keeping<'a>(conversation: &Conversation, settings: &'a Settings, context: &Context) -> Result<Target<'a>, Error> {
    let held = HeldWith { provider: &conversation.provider, model: &conversation.model };
    discover::find(settings, Some(held), &context.notes)
}

fn open_again<'a>(
    place: &Place,
    settings: &'a Settings,
    context: &Context,
    session: &mut Session,
) -> Result<Target<'a>, Error> {
    let nothing = || Error::nothing("there is no question to ask again");
    let mut conversation = match place.which.is_current() {
        true => match files::read(&place.location.path).map_err(|error| Error::file(error.to_string()))? {
            Found::Conversation(conversation) => Some(conversation),
            Found::Unusable(reason) => {
                return Err(Error::file(format!("{}: {reason}", place.location.path.display())));
            }
            Found::Nothing => None,
        },
        false => Some(read_named(place)?.ok_or_else(|| place.missing())?),
    }
    .ok_or_else(nothing)?;
    let seen = Seen::new(&conversation);
    session.intent = Intent::Again(seen, conversation.undo().ok_or_else(nothing)?);
    let target = keeping(&conversation, settings, context)?;
    session.conversation = Some(conversation);
    Ok(target)
}

fn open_named<'a>(
    arguments: &Arguments,
    place: &Place,
    settings: &'a Settings,
    context: &Context,
    session: &mut Session,
) -> Result<Target<'a>, Error> {
    session.conversation = read_named(place)?;
    let is_unnamed = place.which.is_unnamed();
    let Some(conversation) = &session.conversation else {
        if is_unnamed || arguments.follow {
            return Err(place.missing());
        }
        if io::stderr().is_terminal() {
            let other = place.nearest().map_or_else(String::new, |other| format!("; did you mean {other}?"));
            context.notes.note(&format!("{} is a new conversation{other}", place.name()));
        }
        session.intent = Intent::Named;
        return discover::find(settings, None, &context.notes);
    };
    let target = keeping(conversation, settings, context)?;
    session.intent = Intent::Follow(Seen::new(conversation));
    if is_unnamed {
        if settings.values.save && !arguments.dry_run {
            place.folder.touch(&place.location);
        }
        session.pins = true;
        if let Ok(Which::Current { slot }) = Which::find(None, context.environment.get("Q_SESSION"))
            && io::stdout().is_terminal()
        {
            session.becomes_current = Some(place.folder.link(slot.as_deref()));
        }
    }
    Ok(target)
}

/// The current conversation, if a follow-up can continue it; else a note says why q starts a new one.
fn open_current<'a>(
    place: &Place,
    known: Option<Target<'a>>,
    settings: &'a Settings,
    context: &Context,
    now: Timestamp,
    session: &mut Session,
) -> Result<Target<'a>, Error> {
    session.intent = Intent::FollowOrNew;
    let read = || files::read(&place.location.path);
    let found = read().or_else(|error| match error.kind() {
        // If the folder is the user's own, saving would correct its mode too.
        io::ErrorKind::PermissionDenied => place.folder.prepare().and_then(|()| read()),
        _ => Err(error),
    });
    let from_settings = || known.map_or_else(|| discover::find(settings, None, &context.notes), Ok);
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            context.notes.note(&format!("the conversation cannot be read ({error}); starting a new conversation"));
            return from_settings();
        }
    };
    let rules = context::rules(&settings.values);
    let mut target = match &found {
        Found::Conversation(conversation) if conversation.pinned && !rules.is_idle(conversation, now) => {
            keeping(conversation, settings, context)?
        }
        _ => from_settings()?,
    };
    let asked = Asked { provider: &target.provider().name, model: target.choice.named_model(), at: now };
    match (rules::obstacle(&found, &asked, &rules), found) {
        (None, Found::Conversation(conversation)) => {
            if target.provider().name == conversation.provider {
                target.choice.continue_with(&conversation.model);
            }
            session.intent = Intent::Follow(Seen::new(&conversation));
            session.conversation = Some(conversation);
        }
        (Some(obstacle), found) => {
            let old = match found {
                Found::Conversation(conversation) if rules.keeps() => {
                    let id = place.folder.id(&place.location.path, conversation.created);
                    format!("; this continues the old one: q -s {id}")
                }
                _ => String::new(),
            };
            context.notes.note(&format!("{obstacle}; starting a new conversation{old}"));
        }
        (None, _) => {}
    }
    Ok(target)
}

/// A conversation by name, id or path, if it exists.
fn read_named(place: &Place) -> Result<Option<Conversation>, Error> {
    place.check_owner()?;
    match files::read(&place.location.path).map_err(|error| Error::new(Kind::Session, error.to_string()))? {
        Found::Conversation(conversation) => Ok(Some(conversation)),
        Found::Unusable(reason) => {
            let path = place.location.path.display();
            Err(Error::new(Kind::Session, format!("{path}: {reason}"))
                .advise("it was left as it is; -s with another name starts another conversation"))
        }
        Found::Nothing => Ok(None),
    }
}
