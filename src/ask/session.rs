//! The conversation that a question belongs to: which one it is, what of it is sent again, and which server is asked.

use std::io;

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
    /// `None`: without a home nothing is read or saved.
    place: Option<Place<'a>>,
    intent: Intent,
    /// Its last messages.
    pub(super) window: Vec<Message>,
}

impl Session<'_> {
    /// How the exchange is to be saved, if it is.
    pub(super) fn committer(
        &self,
        target: &Target,
        model: &str,
        asked: Timestamp,
        values: &Values,
    ) -> Option<Committer> {
        let place = self.place.as_ref().filter(|_| values.save)?;
        Some(Committer {
            folder: place.folder.clone(),
            path: place.path.clone(),
            provider: target.provider().name.clone(),
            model: model.to_owned(),
            asked,
            intent: self.intent.clone(),
            pairs: values.pairs,
            keep: values.keep,
            expire: values.expire,
        })
    }
}

/// Opens the conversation that is meant. `known` is the server, unless only the conversation can say which one that is.
///
/// # Errors
/// `Session`: a conversation that was named cannot be used, or its provider is gone. Else why there is no server to ask.
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
        Err(_) => {
            context.notes.note("there is no home folder: conversations are neither read nor saved");
            None
        }
    };
    let held = match &place {
        Some(place) if !current => open_named(place)?,
        _ => None,
    };
    let keeps = held.as_ref().map(|held| HeldWith { provider: &held.provider, model: &held.model });
    let search = !arguments.dry_run;
    let mut target = match known {
        Some(mut target) => {
            target.choose_again(settings, keeps)?;
            target
        }
        None => discover::find(settings, keeps, search, &context.notes)?,
    };
    let (intent, conversation) = match (current, &place) {
        (false, _) => match (&context.which, held) {
            (Which::Id(created), Some(conversation)) => (Intent::Follow { created: *created }, Some(conversation)),
            (_, held) => (Intent::Named, held),
        },
        (true, Some(place)) if arguments.follow => follow(place, &target, &settings.values, now, context),
        (true, _) => (Intent::New, None),
    };
    if let Some(conversation) = conversation.as_ref().filter(|_| current) {
        target.choice.continue_with(&conversation.model);
    }
    let window = conversation.map_or_else(Vec::new, |conversation| conversation.window(settings.values.messages));
    Ok((target, Session { place, intent, window }))
}

/// The current conversation, where a follow-up can continue it; else a note says why a new one is started.
fn follow(
    place: &Place,
    target: &Target,
    values: &Values,
    now: Timestamp,
    context: &Context,
) -> (Intent, Option<Conversation>) {
    let wanted =
        Wanted { provider: &target.provider().name, model: target.choice.named_model(), expire: values.expire };
    let found = folder::read(&place.path).or_else(|error| match error.kind() {
        // Of a folder of the user's own, saving would put the mode right too.
        io::ErrorKind::PermissionDenied => place.folder.prepare().and_then(|()| folder::read(&place.path)),
        _ => Err(error),
    });
    let reason = match found {
        Err(error) => format!("the conversation cannot be read ({error})"),
        Ok(found) => {
            let obstacle = rules::obstacle(&found, &wanted, now);
            let reason = obstacle.as_ref().map_or_else(String::new, ToString::to_string);
            match found {
                Found::Conversation(conversation) if obstacle.is_none() => {
                    return (Intent::Follow { created: conversation.created }, Some(conversation));
                }
                Found::Conversation(_) if values.keep.is_none_or(|keep| !keep.is_zero()) => {
                    format!("{reason} (q --list has it)")
                }
                Found::Unusable(_) => format!("{reason} (it is set aside, q --list tells where)"),
                _ => reason,
            }
        }
    };
    context.notes.note(&format!("{reason}: this is a new one"));
    (Intent::FollowAnew, None)
}

/// A conversation by name or path, if it has begun.
fn open_named(place: &Place) -> Result<Option<Conversation>, Error> {
    let path = place.path.display();
    if place.folder.locks_owner_out(&place.path) {
        return Err(Error::file(format!(
            "{path} belongs to another user, who could not use it any more once q has written it"
        ))
        .advise("ask as that user, or continue a copy of the file"));
    }
    match folder::read(&place.path).map_err(|error| Error::new(Kind::Session, error.to_string()))? {
        Found::Conversation(conversation) => Ok(Some(conversation)),
        Found::Unusable(unusable) => Err(Error::new(Kind::Session, format!("{path}: {unusable}"))
            .advise("it was left as it is; -s with another name starts another conversation")),
        Found::Nothing
            if matches!(place.which, Which::Named(_)) && place.path.file_name().is_some_and(folder::is_archived) =>
        {
            Err(Error::new(Kind::Session, format!("there is no conversation {path}"))
                .advise("names that begin with session_ are given by q itself; q --list lists those that are there"))
        }
        Found::Nothing if matches!(place.which, Which::Id(_)) => {
            let name = place.path.file_stem().unwrap_or_default().display();
            Err(Error::new(Kind::Session, format!("there is no conversation {name}"))
                .advise("q --list lists those that are there"))
        }
        Found::Nothing => Ok(None),
    }
}
