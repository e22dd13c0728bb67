//! Whether a follow-up can continue a conversation, and what saving an exchange does to the file that is found (pure).

use std::sync::Arc;
use std::time::Duration;

use super::conversation::{Conversation, Exchange};
use super::timestamp::Timestamp;
use crate::text::age;

/// What is at the path of a conversation.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a run has one of it")]
pub enum FileContent {
    /// There is no file.
    Nothing,
    Conversation(Conversation),
    /// A file that q cannot use as a conversation.
    Unusable(String),
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
#[derive(Debug, Clone, PartialEq)]
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
    pub fn read(&self) -> Option<&Conversation> {
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
/// than `pairs` or was too large.
fn is_same(read: &Conversation, now: &Conversation, pairs: usize) -> bool {
    if read.created != now.created {
        return false;
    }
    let is_either_empty = read.exchanges.is_empty() || now.exchanges.is_empty();
    let was_first = read.entries().next();
    let was_last = read.entries().next_back();
    let mut known = now.entries().map(Some);
    is_either_empty
        || now.exchanges.len() >= pairs
        || known.any(|entry| entry == was_first || entry == was_last)
}

/// The provider and the model that are to answer, and when.
#[derive(Debug, Clone)]
pub struct Responder {
    pub provider: String,
    /// `None` if no model is named anywhere: the conversation's own answers.
    pub model: Option<String>,
    pub at: Timestamp,
}

impl Responder {
    pub(super) fn model(&self) -> String {
        self.model.clone().unwrap_or_default()
    }

    /// A conversation without messages that begins with this question.
    pub(super) fn conversation(&self) -> Conversation {
        Conversation::new(&self.provider, &self.model(), self.at)
    }
}

/// What saving an exchange does.
#[derive(Debug, PartialEq)]
pub(super) enum Decision {
    /// Begins a conversation.
    Begin,
    /// Adds the exchange to this conversation.
    Extend(Conversation),
    /// Puts the exchange in the place of this conversation's last one.
    Replace(Conversation),
    /// Saves the exchange in a conversation of its own, for this reason.
    Separate(String),
}

/// Decides what to do with what was found under the lock.
pub(super) fn decide(
    intent: &Intent,
    found: FileContent,
    exchange: &Exchange,
    responder: &Responder,
    rules: &Rules,
) -> Decision {
    let separate = |reason: &str| Decision::Separate(reason.to_owned());
    match (intent, found) {
        (Intent::New, _) => Decision::Begin,
        (Intent::Named, FileContent::Nothing) => Decision::Extend(responder.conversation()),
        (Intent::Named, FileContent::Conversation(conversation)) => Decision::Extend(conversation),
        (Intent::Named, FileContent::Unusable(reason)) => Decision::Separate(reason),
        (Intent::FollowOrNew, found) => {
            let is_free = obstacle(&found, responder, rules).is_none();
            match found {
                FileContent::Conversation(conversation)
                    if is_free && conversation.system.is_none() =>
                {
                    Decision::Extend(conversation)
                }
                _ => Decision::Begin,
            }
        }
        (Intent::Follow(read), FileContent::Conversation(conversation))
            if is_same(read, &conversation, rules.pairs) =>
        {
            Decision::Extend(conversation)
        }
        (Intent::Follow(_), _) => {
            separate("the conversation was cleared or replaced in the meantime")
        }
        (Intent::Again(_), _) if !exchange.is_complete() => {
            separate("the new answer is incomplete")
        }
        (Intent::Again(read), FileContent::Conversation(conversation))
            if is_same(read, &conversation, rules.pairs)
                && conversation.exchanges.last() == read.exchanges.last() =>
        {
            Decision::Replace(conversation)
        }
        (Intent::Again(_), _) => separate("the conversation has changed in the meantime"),
    }
}

/// Why a follow-up cannot continue the current conversation, if it cannot.
pub fn obstacle(found: &FileContent, responder: &Responder, rules: &Rules) -> Option<String> {
    let conversation = match found {
        FileContent::Nothing => return Some("there is no conversation to continue".to_owned()),
        FileContent::Unusable(reason) => {
            return Some(format!("the conversation cannot be continued: {reason}"));
        }
        FileContent::Conversation(conversation) => conversation,
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
    use super::super::conversation::tests::{conversation, exchange, moment};
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
        let found = FileContent::Conversation(Conversation::new("openai", "m", moment(0)));
        let obstacle = |second| obstacle(&found, &asked("openai", Some("m"), second), &RULES);
        for second in [23 * HOUR, 24 * HOUR, -HOUR] {
            assert_eq!(obstacle(second), None, "{second}");
        }
        let late = obstacle(24 * HOUR + 1).expect("an obstacle");
        assert_eq!(late, "the conversation was idle for 1d");
    }

    /// What is done to what is found, as one word.
    fn action(
        intent: &Intent,
        found: FileContent,
        exchange: &Exchange,
        pairs: usize,
    ) -> &'static str {
        let responder = asked("openai", Some("m"), 9);
        let rules = Rules { pairs, ..RULES };
        match decide(intent, found, exchange, &responder, &rules) {
            Decision::Begin => "begin",
            Decision::Extend(_) => "extend",
            Decision::Replace(_) => "replace",
            Decision::Separate(_) => "separate",
        }
    }

    #[test]
    fn what_is_found_under_the_lock_decides_where_an_exchange_goes() {
        let read = conversation(&[("one", "1"), ("two", "2")]);
        let follow = Intent::Follow(Arc::new(read.clone()));
        let again = Intent::Again(Arc::new(read.clone()));
        let there = |exchanges: &[(&str, &str)]| FileContent::Conversation(conversation(exchanges));
        let same = || FileContent::Conversation(read.clone());
        let undone = || there(&[("one", "1")]);
        let grown = || there(&[("one", "1"), ("two", "2"), ("three", "3")]);
        let other = || there(&[("other", "1"), ("new", "x")]);
        let changed = |change: fn(&mut Conversation)| {
            let mut conversation = read.clone();
            change(&mut conversation);
            FileContent::Conversation(conversation)
        };
        let moved = || changed(|found| found.created = moment(1));
        let unusable = || FileContent::Unusable(String::new());
        let idle = || changed(|found| found.updated = moment(-25 * HOUR));
        let own = || changed(|found| found.system = Some("own".to_owned()));
        let nothing = || FileContent::Nothing;
        type Row<'a> = (&'a str, &'a dyn Fn() -> FileContent, &'a str);
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
            ("same", &same, "begin extend extend extend replace"),
            ("undone", &undone, "begin extend extend extend separate"),
            ("grown", &grown, "begin extend extend extend separate"),
            ("other", &other, "begin separate extend extend separate"),
            ("moved", &moved, "begin separate extend extend separate"),
            ("idle", &idle, "begin extend begin extend replace"),
            ("with a role", &own, "begin extend begin extend replace"),
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
        incomplete.entries[1].interrupted = true;
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
        let emptied = FileContent::Conversation(emptied);
        assert_eq!(action(follow, emptied, &complete, 20), "extend");
        let mut cut = conversation(&[("one", "1"), ("two", "2"), ("three", "3")]);
        cut.exchanges.remove(0);
        let cut = FileContent::Conversation(cut);
        assert_eq!(action(follow, cut, &complete, usize::MAX), "extend");
    }
}
