//! The conversation of a question: which one it is, which of its messages are sent, and which server is asked.

use std::io::{self, IsTerminal};

use crate::context::{Context, Place};
use crate::error::{Error, Kind};
use crate::flags::Arguments;
use crate::message::Message;
use crate::server::choice::HeldWith;
use crate::server::discover;
use crate::server::target::Target;
use crate::session::Conversation;
use crate::session::commit::{Committer, Intent};
use crate::session::folder;
use crate::session::name::Which;
use crate::session::rules::{self, Found, Wanted};
use crate::session::timestamp::Timestamp;
use crate::settings::{Settings, Values};

/// What the conversation has to do with this question.
pub(super) struct Session<'a> {
    /// `None`: without a home folder nothing is read or saved.
    place: Option<Place<'a>>,
    intent: Intent,
    /// See [`Committer::keeps_own`].
    keeps_own: bool,
    /// The conversation's own system prompt.
    pub(super) system: Option<String>,
    /// The tools that it remembers.
    pub(super) tools: Vec<String>,
    /// Its last messages.
    pub(super) window: Vec<Message>,
    /// The provider, and perhaps the model, that answers now; `None` if it answered before.
    pub(super) handed_to: Option<String>,
}

impl Session<'_> {
    /// The question to ask again.
    pub(super) fn last_question(&self) -> Option<&Message> {
        match &self.intent {
            Intent::Again { last, .. } => last.question().map(|question| &question.message),
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
        Some(Committer {
            folder: place.folder.clone(),
            path: place.path.clone(),
            provider: target.provider().name.clone(),
            model: model.to_owned(),
            keeps_own: self.keeps_own,
            system,
            tools,
            asked,
            intent: self.intent.clone(),
            pairs: values.pairs,
            keep: values.keep,
            expire: values.expire,
            hands_over: values.hands_over,
        })
    }
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
    let current = context.which.is_current();
    let place = match context.place() {
        Ok(place) => Some(place),
        Err(error) if !current => return Err(Error { kind: Kind::Session, ..error }),
        Err(error) if arguments.again => return Err(error),
        Err(_) => {
            context.notes.note("there is no home folder: conversations are neither read nor saved");
            None
        }
    };
    let held = match &place {
        Some(place) if arguments.again => Some(open_again(place)?),
        Some(place) if !current => open_named(place, arguments.follow, context)?,
        _ => None,
    };
    let keeps = held.as_ref().map(|held| HeldWith { provider: &held.provider, model: &held.model });
    let mut target = match known {
        Some(mut target) => {
            target.choose_again(settings, keeps)?;
            target
        }
        None => discover::find(settings, keeps, &context.notes)?,
    };
    let (intent, conversation) = match (held, &place) {
        (Some(mut held), _) if arguments.again => {
            let last = held.undo().ok_or_else(nothing_to_ask_again)?;
            (Intent::Again { created: held.created, last }, Some(held))
        }
        (Some(held), _) if context.which.is_given_by_q() => (Intent::Follow { created: held.created }, Some(held)),
        (held, _) if !current => (Intent::Named, held),
        (_, Some(place)) if arguments.follow => follow(place, &target, &settings.values, now, context),
        _ => (Intent::New, None),
    };
    let Some(conversation) = conversation else {
        let session = Session {
            place,
            intent,
            keeps_own: false,
            system: None,
            tools: Vec::new(),
            window: Vec::new(),
            handed_to: None,
        };
        return Ok((target, session));
    };
    let same_provider = target.provider().name == conversation.provider;
    if current && !arguments.again && same_provider {
        target.choice.continue_with(&conversation.model);
    }
    let differs = !same_provider || target.choice.named_model().is_some_and(|model| model != conversation.model);
    let handed_to = (current && !arguments.again && differs).then(|| match target.choice.named_model() {
        Some(model) if same_provider => format!("{}, model {model}", target.provider().name),
        _ => target.provider().name.clone(),
    });
    let window = conversation.window(settings.values.messages);
    // A named conversation changes to the provider that continues it.
    let keeps_own = differs && (current || arguments.again);
    let Conversation { system, tools, .. } = conversation;
    Ok((target, Session { place, intent, keeps_own, system, tools, window, handed_to }))
}

/// The current conversation, if a follow-up can continue it; else a note says why q starts a new one.
fn follow(
    place: &Place,
    target: &Target,
    values: &Values,
    now: Timestamp,
    context: &Context,
) -> (Intent, Option<Conversation>) {
    let wanted = Wanted {
        provider: &target.provider().name,
        model: target.choice.named_model(),
        expire: values.expire,
        hands_over: values.hands_over,
    };
    let found = folder::read(&place.path).or_else(|error| match error.kind() {
        // If the folder is the user's own, saving would correct its mode too.
        io::ErrorKind::PermissionDenied => place.folder.prepare().and_then(|()| folder::read(&place.path)),
        _ => Err(error),
    });
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            context.notes.note(&format!("the conversation cannot be read ({error}): this is a new one"));
            return (Intent::FollowOrNew, None);
        }
    };
    let Some(obstacle) = rules::obstacle(&found, &wanted, now) else {
        return match found {
            Found::Conversation(conversation) => (Intent::Follow { created: conversation.created }, Some(conversation)),
            Found::Nothing | Found::Unusable(_) => (Intent::FollowOrNew, None),
        };
    };
    let old = match found {
        Found::Conversation(conversation) if rules::archives(values.keep) => {
            format!("; q --list has the old one, and this continues it: q -s {}", conversation.created.id())
        }
        Found::Unusable(_) => "; q --list says where the old one is".to_owned(),
        Found::Conversation(_) | Found::Nothing => String::new(),
    };
    context.notes.note(&format!("{obstacle}: this is a new one{old}"));
    (Intent::FollowOrNew, None)
}

/// The conversation whose last question is asked again.
fn open_again(place: &Place) -> Result<Conversation, Error> {
    let found = if place.which.is_current() {
        match folder::read(&place.path).map_err(|error| Error::file(error.to_string()))? {
            Found::Conversation(conversation) => Some(conversation),
            Found::Unusable(unusable) => return Err(Error::file(format!("{}: {unusable}", place.path.display()))),
            Found::Nothing => None,
        }
    } else {
        Some(open_demanded(place)?)
    };
    found.ok_or_else(nothing_to_ask_again)
}

fn nothing_to_ask_again() -> Error {
    Error::nothing("there is no question to ask again")
}

/// A conversation by name or path, which must exist.
fn open_demanded(place: &Place) -> Result<Conversation, Error> {
    if !folder::is_there(&place.path).map_err(|error| Error::file(error.to_string()))? {
        return Err(place.missing());
    }
    open_if_begun(place)?.ok_or_else(|| place.missing())
}

/// A conversation by name or path. Unless it is `demanded`, it may be new, with a note.
fn open_named(place: &Place, demanded: bool, context: &Context) -> Result<Option<Conversation>, Error> {
    if demanded {
        return open_demanded(place).map(Some);
    }
    let conversation = open_if_begun(place)?;
    if conversation.is_none() && io::stderr().is_terminal() {
        let other = place.nearest().map_or_else(String::new, |other| format!("; did you mean {other}?"));
        context.notes.note(&format!("{} is a new conversation{other}", place.name()));
    }
    Ok(conversation)
}

/// A conversation by name or path, if it exists.
fn open_if_begun(place: &Place) -> Result<Option<Conversation>, Error> {
    let path = place.path.display();
    place.spare_owner()?;
    match folder::read(&place.path).map_err(|error| Error::new(Kind::Session, error.to_string()))? {
        Found::Conversation(conversation) => Ok(Some(conversation)),
        Found::Unusable(unusable) => Err(Error::new(Kind::Session, format!("{path}: {unusable}"))
            .advise("it was left as it is; -s with another name starts another conversation")),
        Found::Nothing
            if matches!(place.which, Which::Named(_)) && place.path.file_name().is_some_and(folder::is_archived) =>
        {
            Err(Error::new(Kind::Session, format!("there is no conversation {}", place.name()))
                .advise("only q itself gives names that begin with session_\nq --list lists the conversations"))
        }
        Found::Nothing if matches!(place.which, Which::Id(_)) => {
            Err(Error::new(Kind::Session, format!("there is no conversation {}", place.name()))
                .advise("q --list lists the conversations"))
        }
        Found::Nothing => Ok(None),
    }
}
