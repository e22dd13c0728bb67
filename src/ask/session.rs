//! The conversation that a question belongs to: which one it is, what of it is sent again, and who is asked.

use std::io;
use std::path::PathBuf;

use crate::context::Context;
use crate::error::{Error, Kind};
use crate::flags::Arguments;
use crate::message::Said;
use crate::output::Notes;
use crate::server::discover;
use crate::server::target::Target;
use crate::session::Conversation;
use crate::session::commit::Intent;
use crate::session::folder::{self, Folder};
use crate::session::name::Which;
use crate::session::rules::{self, Found, Wanted};
use crate::session::timestamp::Timestamp;
use crate::settings::{Settings, Values};

/// Where the conversation is.
pub(super) struct Place {
    pub(super) folder: Folder,
    pub(super) path: PathBuf,
}

impl Place {
    /// `None`, with a note: there is no home, so nothing is read or saved.
    pub(super) fn find(context: &Context) -> Result<Option<Place>, Error> {
        match context.folder() {
            Ok(folder) => Ok(Some(Place { path: folder.path(&context.which), folder: folder.clone() })),
            Err(error) if !context.which.is_current() => Err(Error { kind: Kind::Session, ..error }),
            Err(_) => {
                context.notes.note("there is no home folder: conversations are neither read nor saved");
                Ok(None)
            }
        }
    }
}

/// What the conversation has to do with this question.
pub(super) struct Session {
    pub(super) intent: Intent,
    pub(super) window: Vec<Said>,
    /// The conversation's own model.
    pub(super) model: Option<String>,
    /// The conversation as it is now.
    pub(super) seen: Option<Conversation>,
}

impl Session {
    fn without_history(intent: Intent) -> Session {
        Session { intent, window: Vec::new(), model: None, seen: None }
    }

    fn going_on(intent: Intent, conversation: Conversation, values: &Values) -> Session {
        Session {
            intent,
            window: conversation.window(values.messages),
            model: Some(conversation.model.clone()),
            seen: Some(conversation),
        }
    }

    /// The current conversation, where a follow-up can go on with it; else a new one, with a note that says why.
    pub(super) fn current(
        follow: bool,
        place: Option<&Place>,
        target: &Target,
        values: &Values,
        now: Timestamp,
        notes: &Notes,
    ) -> Session {
        let Some(place) = place.filter(|_| follow) else { return Session::without_history(Intent::New) };
        let wanted =
            Wanted { provider: &target.provider.name, model: target.named_model.as_deref(), expire: values.expire };
        let found = folder::read(&place.path).or_else(|error| match error.kind() {
            // Of a folder of the user's own, saving would put the mode right too.
            io::ErrorKind::PermissionDenied => place.folder.prepare().and_then(|()| folder::read(&place.path)),
            _ => Err(error),
        });
        let reason = match found {
            Err(error) => format!("the conversation cannot be read ({error})"),
            Ok(found) => match (rules::obstacle(&found, &wanted, now), found) {
                (None, Found::Conversation(conversation)) => {
                    let intent = Intent::Follow { created: conversation.created };
                    return Session::going_on(intent, conversation, values);
                }
                (reason, Found::Conversation(_)) if values.keep.is_none_or(|keep| !keep.is_zero()) => {
                    format!("{} (q --list has it)", reason.map_or_else(String::new, |reason| reason.to_string()))
                }
                (reason, Found::Unusable(_)) => {
                    let reason = reason.map_or_else(String::new, |reason| reason.to_string());
                    format!("{reason} (it is set aside, q --list tells where)")
                }
                (reason, _) => reason.map_or_else(String::new, |reason| reason.to_string()),
            },
        };
        notes.note(&format!("{reason}: this is a new one"));
        Session::without_history(Intent::FollowAnew)
    }
}

/// A conversation by name or path: it is continued with its own provider and model, unless options name others.
pub(super) fn named<'a>(
    arguments: &Arguments,
    place: Option<&Place>,
    known: Option<Target<'a>>,
    settings: &'a Settings,
    context: &Context,
) -> Result<(Target<'a>, Session), Error> {
    let found = match place {
        None => Found::Nothing,
        Some(place) => folder::read(&place.path).map_err(|error| Error::new(Kind::Session, error.to_string()))?,
    };
    let path = place.map_or_else(PathBuf::new, |place| place.path.clone());
    match found {
        Found::Unusable(unusable) => Err(Error::new(Kind::Session, format!("{}: {unusable}", path.display()))
            .advise("it was left as it is; -s with another name starts another conversation")),
        Found::Nothing
            if matches!(context.which, Which::Named(_)) && path.file_name().is_some_and(folder::is_aside) =>
        {
            Err(Error::new(Kind::Session, format!("there is no conversation {}", path.display()))
                .advise("names that begin with session_ are given by q itself; q --list lists those that are there"))
        }
        Found::Nothing => {
            let target = known.map_or_else(
                || discover::choose(settings, context.environment, !arguments.dry_run, context.notes),
                Ok,
            )?;
            Ok((target, Session::without_history(Intent::Named)))
        }
        Found::Conversation(conversation) => {
            let mut target = known
                .map_or_else(|| Target::of_conversation(settings, &conversation.provider, context.environment), Ok)?;
            if let Some(model) = &arguments.model {
                target.named_model = Some(model.clone());
            } else if target.provider.name == conversation.provider {
                target.named_model = Some(conversation.model.clone());
            }
            let mut session = Session::going_on(Intent::Named, conversation, &settings.values);
            // Of another provider's model this one knows nothing.
            session.model = None;
            Ok((target, session))
        }
    }
}
