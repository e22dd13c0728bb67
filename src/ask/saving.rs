//! Decides what becomes of the exchange: where it is saved, and what that changes in the conversation.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use super::place::Place;
use super::plan::Plan;
use crate::context::Context;
use crate::session::name::{ConversationRef, option_of};
use crate::session::rules::{self, AnsweredBy, Circumstances, Intent, QuestionRule, Rules};
use crate::session::save::Saver;
use crate::session::store::Handle;
use crate::settings::{Cached, Settings};
use crate::tools::Selection;

/// Returns the way to save the exchange with the answer of this model; `None` if nothing is saved.
pub fn saver(
    plan: &Plan,
    place: &Place,
    responder: AnsweredBy,
    context: &Context,
) -> Option<Saver> {
    let settings = plan.settings;
    if !settings.saves() {
        return None;
    }
    let handle = handle_to_save(place)?;
    let arguments = &settings.arguments;
    let rule = rules::of_question(&handle.which, handle.directory.kind(&handle.path));
    let circumstances = Circumstances {
        is_new: matches!(place.intent, Intent::New | Intent::FollowOrNew),
        is_model_given: arguments.provider.is_some() || arguments.model.is_some(),
        is_terminal: io::stdout().is_terminal(),
    };
    let mut becomes_current = None;
    if rule.becomes_current.applies(circumstances) {
        becomes_current = current_link(&handle, context);
    }
    Some(Saver {
        intent: place.intent.clone(),
        becomes_current,
        responder,
        pins: rule.pinned.applies(circumstances),
        system: plan.system.clone(),
        tools: plan.selection.as_ref().map(Selection::names),
        rules: rules_to_save(settings, &rule, place.retains_current),
        scratch_places: context.scratch_places(),
        handle,
    })
}

/// Returns the command that asks the question again, with what the conversation does not remember of the options; `None` if nothing
/// is saved, or if no question may be sent again.
pub fn command_to_ask_again(plan: &Plan, place: &Place) -> Option<String> {
    let settings = plan.settings;
    if !settings.saves() || settings.values.cached_setting == Cached::Only {
        return None;
    }
    let handle = place.handle.as_ref()?;
    let mut option = String::new();
    if !handle.which.is_current() {
        // A number may be that of another one by then.
        option = option_of(&handle.id());
    }
    let given = &plan.options_as_given;
    Some(format!("q --again{option}{given}"))
}

/// Returns where the exchange is saved. The link to the current conversation may lead to a file of the user's in another
/// directory: a new conversation does not get its file there.
fn handle_to_save(place: &Place) -> Option<Handle> {
    let mut handle = place.handle.clone()?;
    if place.intent == Intent::New {
        handle.path.clone_from(&handle.link);
    }
    Some(handle)
}

/// Returns the rules by which the exchange is saved: those of the settings. `-ff` has loosened those of the plan only for the
/// conversation that was there when the question began, and not for one that another q has begun since.
fn rules_to_save(settings: &Settings, rule: &QuestionRule, retains_current: bool) -> Rules {
    let mut rules = settings.values.rules;
    if !rule.is_trimmed {
        // All exchanges stay.
        rules.pairs = usize::MAX;
    }
    if retains_current {
        // Nothing is removed, so neither is the current one.
        rules.keep = None;
    }
    rules
}

/// Returns the link to the current conversation: of the question, else the one that `Q_SESSION` may choose; `None` if no current
/// conversation can have that name.
fn current_link(handle: &Handle, context: &Context) -> Option<PathBuf> {
    if handle.which.is_current() {
        return Some(handle.link.clone());
    }
    let which = ConversationRef::find(None, context.environment.get("Q_SESSION"));
    let Ok(ConversationRef::Current(stem)) = which else {
        return None;
    };
    Some(handle.directory.path_of(&stem))
}
