//! Decides which server is asked: before q waits for input where that can be told, and finally once the conversation is read.

use super::plan::{Plan, Relation};
use crate::context::Context;
use crate::error::Error;
use crate::output::Notes;
use crate::server::discover;
use crate::server::target::Target;
use crate::server::whom::{self, Claim, Model};
use crate::session;
use crate::session::rules::ReadOutcome;
use crate::session::timestamp::Timestamp;
use crate::settings::{Cached, Settings};

/// Returns the server, where that can be told before q waits for input, so that a wrong provider or key is reported at once.
/// While q waits, the connection is opened. `None`: it is decided once the input is read.
pub fn choose_early(plan: &Plan, context: &Context) -> Result<Option<Target>, Error> {
    let early = find_early(plan, context)?;
    if let Some(early) = &early
        && plan.waits_for_input
    {
        early.open_ahead(plan.settings);
    }
    Ok(early)
}

/// Finds the server as far as that can be told now. The conversation is only peeked at, because it may change while q waits.
fn find_early(plan: &Plan, context: &Context) -> Result<Option<Target>, Error> {
    let settings = plan.settings;
    let notes = &context.notes;
    if plan.relation == Relation::New || settings.arguments.provider.is_some() {
        return discover::find_server_with_note(settings, Claim::None, notes).map(Some);
    }
    // Without a wait there is nothing to gain by a look ahead.
    if !plan.waits_for_input {
        return Ok(None);
    }
    let mut peeked = Ok(None);
    if let Ok(handle) = context.find_quietly() {
        peeked = session::read(&handle.path);
    }
    let claim = claim_of(&peeked, Timestamp::now(), plan);
    if let Claim::Keeps(_) = claim {
        return Ok(find_kept(settings, claim));
    }
    // Without its conversation, only a follow-up asks all the same.
    if plan.relation != Relation::Follow {
        return Ok(None);
    }
    discover::find_server_with_note(settings, claim, notes).map(Some)
}

/// Returns the server that a conversation keeps. What is wrong with it may be right once the input is read.
fn find_kept(settings: &Settings, claim: Claim) -> Option<Target> {
    let choice = whom::decide(settings, claim).ok()??;
    Target::new(choice, settings).ok()
}

/// Returns the server to ask, by what the conversation says that was found at this time: the early one, with its connection, if
/// it is the same.
pub fn choose(
    plan: &Plan,
    early: Option<Target>,
    found: &ReadOutcome,
    at: Timestamp,
    notes: &Notes,
) -> Result<Target, Error> {
    let settings = plan.settings;
    let claim = claim_of(found, at, plan);
    let Some(early) = early else {
        return discover::find_server_with_note(settings, claim, notes);
    };
    let model = match whom::decide(settings, claim)? {
        Some(choice) if choice.provider.name != early.provider().name => {
            return Target::new(choice, settings);
        }
        Some(choice) => choice.model,
        // This server has been asked for its list.
        None => match whom::model_of(early.provider(), settings, claim) {
            Model::First => return Ok(early),
            model => model,
        },
    };
    Ok(early.with_model(model))
}

/// Returns the claim of a conversation about who answers.
fn claim_of<'a>(found: &'a ReadOutcome, at: Timestamp, plan: &Plan) -> Claim<'a> {
    let Ok(Some(conversation)) = found else {
        return Claim::None;
    };
    let settings = plan.settings;
    // No server may be asked, and nothing but the conversation names one.
    let is_only_name =
        settings.cached == Cached::Only && settings.provider.is_none() && settings.model.is_none();
    match plan.relation {
        Relation::New => Claim::None,
        Relation::Chosen | Relation::Again => Claim::Keeps(conversation),
        Relation::Follow if plan.rules.is_idle(conversation, at) => Claim::None,
        Relation::Follow if conversation.pinned || is_only_name => Claim::Keeps(conversation),
        Relation::Follow => Claim::Suggests(conversation),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ask::answer_form::Output;
    use crate::session::Conversation;
    use crate::settings::Environment;
    use crate::text::table::rows;

    #[test]
    fn a_followed_conversation_suggests_its_provider_and_a_chosen_one_keeps_it() {
        // How the question relates to it, what is special about it, and what it says.
        let table = r##"
            new | - | nothing
            new | pinned | nothing
            follow | - | suggests
            follow | pinned | keeps
            follow | idle | nothing
            follow | pinned idle | nothing
            follow | only name | keeps
            follow | absent | nothing
            chosen | - | keeps
            chosen | idle | keeps
            chosen | absent | nothing
            again | - | keeps
        "##;
        for [relation, kind, expected] in rows(table) {
            let mut settings = Settings::defaults(&Environment::new(&[]));
            if kind == "only name" {
                settings.cached = Cached::Only;
            }
            let mut rules = settings.values.rules;
            // It is looked at a moment after it was used.
            rules.expire = kind.contains("idle").then_some(Duration::ZERO);
            let plan = Plan {
                settings: &settings,
                whom_as_given: String::new(),
                words: None,
                reads_stdin: false,
                waits_for_input: false,
                relation: match relation {
                    "new" => Relation::New,
                    "follow" => Relation::Follow,
                    "chosen" => Relation::Chosen,
                    _ => Relation::Again,
                },
                rules,
                selection: None,
                system: None,
                output: Output::new(&settings, &Notes::default()).expect("an output"),
            };
            let conversation = Conversation {
                pinned: kind.contains("pinned"),
                ..Conversation::new(Timestamp::now())
            };
            let at = conversation.updated.next();
            let found = Ok((kind != "absent").then_some(conversation));
            let said = match claim_of(&found, at, &plan) {
                Claim::None => "nothing",
                Claim::Suggests(_) => "suggests",
                Claim::Keeps(_) => "keeps",
            };
            assert_eq!(said, expected, "{relation} {kind}");
        }
    }
}
