//! Decides what becomes of the exchange: where it is saved, and what that changes in the conversation.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use super::place::Place;
use super::plan::{Plan, Relation};
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

/// The command that asks the question again once its exchange is saved.
pub struct AgainCommand {
    /// The option that names the conversation of the question, with a space before it; nothing for the current one.
    conversation: String,
    /// What the conversation does not remember of the options, with a space before each.
    given: String,
    /// Whether the question was asked with `--again` itself.
    repeats: bool,
}

impl AgainCommand {
    /// Returns the command; `None` if nothing is saved, or if no question may be sent again.
    pub fn new(plan: &Plan, place: &Place) -> Option<AgainCommand> {
        let settings = plan.settings;
        if !settings.saves() || settings.values.cached_setting == Cached::Only {
            return None;
        }
        let handle = place.handle.as_ref()?;
        let mut conversation = String::new();
        if !handle.which.is_current() {
            // A number may be that of another one by then.
            conversation = option_of(&handle.id());
        }
        Some(AgainCommand {
            conversation,
            given: plan.options_of_question.clone(),
            repeats: plan.relation == Relation::Again,
        })
    }

    /// Returns the command for an exchange that is saved in the conversation of the question.
    pub fn in_its_conversation(&self) -> String {
        format!("q --again{}{}", self.conversation, self.given)
    }

    /// Returns the command for an incomplete exchange, given the option that names its conversation. `None` for an answer to
    /// `--again`: it is saved without the history before it, so that it replaces no complete one.
    pub fn after_failure(&self, conversation: &str) -> Option<String> {
        let given = &self.given;
        (!self.repeats).then(|| format!("q --again{conversation}{given}"))
    }
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
