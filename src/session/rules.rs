//! Whether a follow-up can continue a conversation, and what saving an exchange does to the file that is found (pure).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::conversation::{Conversation, Exchange};
use super::timestamp::Timestamp;
use crate::text::age;

/// What was found at the path of a conversation; `None` means that there is no file.
pub type Found = io::Result<Option<Conversation>>;

/// Whether what is there cannot be used as a conversation; the error says why. Else it could not be read.
pub fn is_unusable(error: &io::Error) -> bool {
    // No error of the system is of this kind.
    error.kind() == io::ErrorKind::Other
}

/// What the settings say about conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules {
    /// The most exchanges that the conversation keeps; at least 1.
    pub pairs: usize,
    /// How long a conversation that is not current is kept; `None` means for ever, and zero not at all.
    pub keep: Option<Duration>,
    /// The longest idle time of a conversation that is continued; `None` means no limit.
    pub expire: Option<Duration>,
    /// `-f` continues a conversation with another provider or model instead of starting a new one.
    pub continue_on_mismatch: bool,
}

impl Rules {
    /// Whether a conversation stays when another one takes its place, and earlier states are kept.
    pub fn keeps(&self) -> bool {
        self.keep.is_none_or(|keep| !keep.is_zero())
    }

    /// Whether a conversation was idle for too long.
    pub fn is_idle(&self, conversation: &Conversation, now: Timestamp) -> bool {
        self.expire
            .is_some_and(|expire| conversation.updated.elapsed_until(now) > expire)
    }
}

/// Which conversation an exchange belongs to.
#[derive(Clone, PartialEq)]
pub enum Intent {
    /// A new one, which becomes the current one.
    New,
    /// This one, as it was read.
    Follow(Arc<Conversation>),
    /// A follow-up that found nothing to continue: a new one, unless another follow-up has begun it by now.
    FollowOrNew,
    /// The one with this name, or in this file. It is created if it is missing.
    Named,
    /// This one, in place of its last exchange, if that is still the last.
    Again(Arc<Conversation>),
}

impl Intent {
    /// The conversation as it was read, if one is continued.
    pub fn continued(&self) -> Option<&Conversation> {
        match self {
            Intent::Follow(read) | Intent::Again(read) => Some(read),
            _ => None,
        }
    }

    /// The exchanges before the question.
    pub fn earlier(&self) -> &[Exchange] {
        match self {
            Intent::Follow(read) => &read.exchanges,
            Intent::Again(read) => {
                let last = read.exchanges.len().saturating_sub(1);
                &read.exchanges[..last]
            }
            _ => &[],
        }
    }
}

/// Whether this is still the conversation that was read. Another q may have dropped its oldest exchanges, because it had more
/// than `pairs`.
fn is_same(read: &Conversation, now: Option<&Conversation>, pairs: usize) -> bool {
    let Some(now) = now else {
        return false;
    };
    let is_begun_alike = match (read.entries().next(), now.entries().next()) {
        (Some(was), Some(is)) => was == is || now.exchanges.len() >= pairs,
        _ => true,
    };
    is_begun_alike && read.created == now.created
}

/// The provider and the model that are to answer, and when.
#[derive(Clone)]
pub struct Responder {
    pub provider: String,
    /// `None` if no model is named anywhere: the conversation's own answers.
    pub model: Option<String>,
    pub at: Timestamp,
}

/// Decides, by what was found under the lock, which conversation an exchange goes to: `None` means a new one. The error says
/// why it is saved in one of its own.
pub(super) fn decide(
    intent: &Intent,
    found: Found,
    exchange: &Exchange,
    responder: &Responder,
    rules: &Rules,
) -> Result<Option<Conversation>, String> {
    let is_free = obstacle(&found, responder, rules).is_none();
    let conversation = match found {
        Ok(conversation) => conversation,
        Err(error) if *intent == Intent::Named || !is_unusable(&error) => {
            return Err(error.to_string());
        }
        Err(_) => None,
    };
    let now = conversation.as_ref();
    let reason = match intent {
        Intent::New => return Ok(None),
        Intent::FollowOrNew => {
            return Ok(conversation.filter(|held| is_free && held.system.is_none()));
        }
        Intent::Named => {
            let new = || Conversation::new(responder.at);
            return Ok(Some(conversation.unwrap_or_else(new)));
        }
        Intent::Follow(read) if is_same(read, now, rules.pairs) => return Ok(conversation),
        Intent::Follow(_) => "the conversation was cleared or replaced in the meantime",
        Intent::Again(_) if !exchange.is_complete() => "the new answer is incomplete",
        Intent::Again(read)
            if is_same(read, now, rules.pairs)
                && now.and_then(|now| now.exchanges.last()) == read.exchanges.last() =>
        {
            return Ok(conversation);
        }
        Intent::Again(_) => "the conversation has changed in the meantime",
    };
    Err(reason.to_owned())
}

/// Why a follow-up cannot continue the current conversation, if it cannot.
pub fn obstacle(found: &Found, responder: &Responder, rules: &Rules) -> Option<String> {
    let conversation = match found {
        Ok(Some(conversation)) => conversation,
        Ok(None) => return Some("there is no conversation to continue".to_owned()),
        Err(error) => return Some(format!("the conversation cannot be continued: {error}")),
    };
    if rules.is_idle(conversation, responder.at) {
        let idle = age::short(conversation.updated.elapsed_until(responder.at));
        return Some(format!("the conversation was idle for {idle}"));
    }
    if rules.continue_on_mismatch {
        return None;
    }
    let old = &conversation.provider;
    let new = &responder.provider;
    if old != new {
        return Some(format!(
            "the conversation is with the provider {old}, not {new}"
        ));
    }
    let old_model = &conversation.model;
    let new_model = responder.model.as_ref()?;
    if old_model != new_model {
        return Some(format!(
            "the conversation is with the model {old_model}, not {new_model}"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::conversation::tests::{change, conversation, exchange, moment};
    use super::*;

    const HOUR: i64 = 3600;
    const RULES: Rules = Rules {
        pairs: 20,
        keep: None,
        expire: Some(Duration::from_secs(24 * 3600)),
        continue_on_mismatch: false,
    };

    fn asked(provider: &str, model: Option<&str>, second: i64) -> Responder {
        Responder {
            provider: provider.to_owned(),
            model: model.map(str::to_owned),
            at: moment(second),
        }
    }

    #[test]
    fn a_conversation_is_fresh_for_a_day_and_from_the_future_too() {
        let found = Ok(Some(conversation(&[])));
        let obstacle = |second| obstacle(&found, &asked("openai", Some("m"), second), &RULES);
        for second in [23 * HOUR, 24 * HOUR, -HOUR] {
            assert_eq!(obstacle(second), None, "{second}");
        }
        let late = obstacle(24 * HOUR + 1).expect("an obstacle");
        assert_eq!(late, "the conversation was idle for 1d");
    }

    /// What is done to what is found, as one word.
    fn action(intent: &Intent, found: Found, exchange: &Exchange, pairs: usize) -> &'static str {
        let responder = asked("openai", Some("m"), 9);
        let rules = Rules { pairs, ..RULES };
        match decide(intent, found, exchange, &responder, &rules) {
            Ok(None) => "begin",
            Ok(Some(_)) => "extend",
            Err(_) => "separate",
        }
    }

    #[test]
    fn what_is_found_under_the_lock_decides_where_an_exchange_goes() {
        let read = conversation(&[("one", "1"), ("two", "2")]);
        let follow = Intent::Follow(Arc::new(read.clone()));
        let again = Intent::Again(Arc::new(read.clone()));
        let there = |exchanges: &[(&str, &str)]| Ok(Some(conversation(exchanges)));
        let same = || Ok(Some(read.clone()));
        let undone = || there(&[("one", "1")]);
        let grown = || there(&[("one", "1"), ("two", "2"), ("three", "3")]);
        let other = || there(&[("other", "1"), ("new", "x")]);
        let changed = |change: fn(&mut Conversation)| {
            let mut conversation = read.clone();
            change(&mut conversation);
            Ok(Some(conversation))
        };
        let moved = || changed(|found| found.created = moment(1));
        let unusable = || Err(io::Error::other(""));
        let idle = || changed(|found| found.updated = moment(-25 * HOUR));
        let own = || changed(|found| found.system = Some("own".to_owned()));
        let nothing = || Ok(None);
        type Row<'a> = (&'a str, &'a dyn Fn() -> Found, &'a str);
        let intents = [
            Intent::New,
            follow,
            Intent::FollowOrNew,
            Intent::Named,
            again,
        ];
        // What is done for each of these intents.
        let table: [Row; 9] = [
            ("nothing", &nothing, "begin separate begin extend separate"),
            ("odd", &unusable, "begin separate begin separate separate"),
            ("same", &same, "begin extend extend extend extend"),
            ("undone", &undone, "begin extend extend extend separate"),
            ("grown", &grown, "begin extend extend extend separate"),
            ("other", &other, "begin separate extend extend separate"),
            ("moved", &moved, "begin separate extend extend separate"),
            ("idle", &idle, "begin extend begin extend extend"),
            ("with a role", &own, "begin extend begin extend extend"),
        ];
        let complete = exchange("new", "answer", 5);
        for (name, found, expected) in table {
            let actions = intents
                .each_ref()
                .map(|intent| action(intent, found(), &complete, 20));
            assert_eq!(actions.join(" "), expected, "{name}");
        }
        let [_, follow, _, _, again] = &intents;
        let mut incomplete = complete.clone();
        change(&mut incomplete.entries[1], |answer| {
            answer.interrupted = true;
        });
        assert_eq!(action(again, same(), &incomplete, 20), "separate");
        // Another follow-up has dropped the beginning.
        let two = || there(&[("three", "3"), ("four", "4")]);
        assert_eq!(action(follow, two(), &complete, 2), "extend");
        let one = there(&[("three", "3")]);
        assert_eq!(action(follow, one, &complete, 2), "separate");
        let mut emptied = read.clone();
        emptied.exchanges.clear();
        let follow_emptied = Intent::Follow(Arc::new(emptied.clone()));
        assert_eq!(action(&follow_emptied, same(), &complete, 20), "extend");
        let emptied = Ok(Some(emptied));
        assert_eq!(action(follow, emptied, &complete, 20), "extend");
    }
}
