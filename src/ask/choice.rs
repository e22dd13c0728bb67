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

/// A server that was found before q waits for input.
pub struct EarlyTarget {
    target: Target,
    /// Whether a conversation named it, which may be another one or gone once the input is read.
    is_kept: bool,
}

/// Returns the server, where that can be told before q waits for input, so that a wrong provider or key is reported at once.
/// While q waits, the connection is opened. `None`: it is decided once the input is read.
pub fn choose_early(plan: &Plan, context: &Context) -> Result<Option<EarlyTarget>, Error> {
    let early = find_early(plan, context)?;
    if let Some(early) = &early
        && plan.waits_for_input
    {
        early.target.open_ahead(plan.settings);
    }
    Ok(early)
}

/// Finds the server as far as that can be told now. The conversation is only peeked at, because it may change while q waits.
fn find_early(plan: &Plan, context: &Context) -> Result<Option<EarlyTarget>, Error> {
    let settings = plan.settings;
    let notes = &context.notes;
    if plan.relation == Relation::New || settings.arguments.provider.is_some() {
        let target = discover::find_server_with_note(settings, Claim::None, notes)?;
        return Ok(Some(EarlyTarget::unclaimed(target)));
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
    let target = discover::find_server_with_note(settings, claim, notes)?;
    Ok(Some(EarlyTarget::unclaimed(target)))
}

impl EarlyTarget {
    /// A server that is to be asked without its conversation, too.
    fn unclaimed(target: Target) -> EarlyTarget {
        EarlyTarget {
            target,
            is_kept: false,
        }
    }
}

/// Returns the server that a conversation keeps. What is wrong with it may be right once the input is read.
fn find_kept(settings: &Settings, claim: Claim) -> Option<EarlyTarget> {
    let choice = whom::decide(settings, claim).ok()??;
    let target = Target::new(choice, settings).ok()?;
    Some(EarlyTarget {
        target,
        is_kept: true,
    })
}

/// Returns the server to ask, by what the conversation says that was found at this time: the early one, with its connection, if
/// it is the same.
pub fn choose(
    plan: &Plan,
    early: Option<EarlyTarget>,
    found: &ReadOutcome,
    at: Timestamp,
    notes: &Notes,
) -> Result<Target, Error> {
    let settings = plan.settings;
    let claim = claim_of(found, at, plan);
    let decided = whom::decide(settings, claim)?;
    let early = match early {
        // If a conversation named it, something must name one still.
        Some(early) if decided.is_some() || !early.is_kept => early.target,
        _ => return discover::find_server_with_note(settings, claim, notes),
    };
    let model = match decided {
        Some(choice) if choice.provider.name != early.provider().name => {
            return Target::new(choice, settings);
        }
        Some(choice) => choice.model,
        None => whom::model_of(early.provider(), settings, claim),
    };
    if model == Model::First && matches!(early.choice.model, Model::Listed(_)) {
        // This server has been asked for its list.
        return Ok(early);
    }
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
        settings.caching == Cached::Only && settings.provider.is_none() && settings.model.is_none();
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
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::server::whom::Choice;
    use crate::session::Conversation;
    use crate::settings::{Environment, Origin, Sourced};
    use crate::text::table::rows;

    fn plan<'a>(settings: &'a Settings, relation: &str) -> Plan<'a> {
        Plan {
            settings,
            options_as_given: String::new(),
            options_of_question: String::new(),
            words: None,
            reads_stdin: false,
            waits_for_input: false,
            relation: match relation {
                "new" => Relation::New,
                "follow" => Relation::Follow,
                "chosen" => Relation::Chosen,
                _ => Relation::Again,
            },
            rules: settings.values.rules,
            selection: None,
            system: None,
            output: None,
        }
    }

    #[test]
    fn a_server_that_was_found_early_is_asked_for_what_is_still_said() {
        let own = || Model::OfConversation("own".to_owned());
        let listed = || Model::Listed("first".to_owned());
        // How the question relates to the conversation, who was found early, whom the conversation names now, the model that is
        // set, and who is asked.
        let table = r##"
            chosen | nobody | ollama | - | ollama OfConversation("own")
            chosen | nobody | - | - | a search
            chosen | kept | ollama | - | ollama OfConversation("own")
            chosen | kept | groq | - | groq OfConversation("own")
            chosen | kept | - | - | a search
            chosen | kept | - | m | a search
            again | kept | - | - | a search
            follow | kept | - | - | a search
            follow | found | - | - | ollama Listed("first")
            follow | found | - | m | ollama Named("m")
            follow | found | ollama | - | ollama OfConversation("own")
            follow | found | groq | - | groq OfConversation("own")
            follow | suggested | ollama | - | ollama OfConversation("own")
            follow | suggested | - | - | ollama First
            follow | suggested | - | m | ollama Named("m")
            new | found | groq | - | ollama Listed("first")
        "##;
        for [relation, early, now, model, expected] in rows(table) {
            let mut settings = Settings::defaults(&Environment::new(&[]));
            // Then nothing is searched.
            settings.caching = Cached::Only;
            settings.model = (!model.is_empty()).then(|| Sourced {
                text: model.to_owned(),
                origin: Origin::Variable("Q_MODEL".to_owned()),
            });
            let ollama = settings.provider_named("ollama").expect("a provider");
            let target = |model| {
                let provider = Arc::clone(ollama);
                Target::new(Choice { provider, model }, &settings).expect("a server")
            };
            let early = match early {
                "kept" => Some(EarlyTarget {
                    target: target(own()),
                    is_kept: true,
                }),
                "suggested" => Some(EarlyTarget::unclaimed(target(own()))),
                "found" => Some(EarlyTarget::unclaimed(target(listed()))),
                _ => None,
            };
            let found = Ok((!now.is_empty()).then(|| Conversation {
                provider: now.to_owned(),
                model: "own".to_owned(),
                pinned: true,
                ..Conversation::new(Timestamp::now())
            }));
            let plan = plan(&settings, relation);
            let notes = Notes::default();
            let chosen = match choose(&plan, early, &found, Timestamp::now(), &notes) {
                Ok(target) => format!("{} {:?}", target.provider().name, target.choice.model),
                Err(error) if error.message.contains("cached") => "a search".to_owned(),
                Err(error) => error.message,
            };
            let case = format!("{relation} {now} {model}");
            assert_eq!(chosen, expected, "{case}");
        }
    }

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
                settings.caching = Cached::Only;
            }
            let mut rules = settings.values.rules;
            // It is looked at a moment after it was used.
            rules.expire = kind.contains("idle").then_some(Duration::ZERO);
            let plan = Plan {
                rules,
                ..plan(&settings, relation)
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
