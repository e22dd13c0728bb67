//! What the rules for conversations say: whether one can be continued, where an exchange is saved, and what is trimmed,
//! pinned, made current and swept (pure).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::conversation::{Conversation, Exchange};
use super::name::ConversationRef;
use super::timestamp::Timestamp;
use crate::text::age;
use crate::whole_file::ReadFailure;

/// What was found at the path of a conversation; `None` means that there is no file.
pub type ReadOutcome = Result<Option<Conversation>, ReadFailure>;

/// The kind of a file, by its name and its directory alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FileKind {
    /// `current.json` or `current-NAME.json`: a link to a current conversation, or a file in its place.
    Link,
    /// A conversation under an id, which q has given it.
    AutoNamed,
    /// A backup of any conversation, before it was undone or shortened.
    Backup,
    /// A conversation that the user has named.
    Named,
    /// A file that has no other name yet.
    Temporary,
    /// A file outside the directory, or with a name that q never gives.
    External,
}

/// The one who decides about a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Owner {
    /// q has named it, so q sets its time, and trims, sweeps and replaces it.
    Q,
    /// Only what the user asks for changes it.
    User,
}

/// The time when the daily sweep removes a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SweepTime {
    Never,
    /// Once it was not used for longer than `keep`.
    AfterKeep,
    /// Once it is a day old, unless conversations are kept forever.
    AfterADay,
}

/// The rule for a kind of file: what q does with it without being asked to.
#[derive(Debug)]
pub struct FileRule {
    pub owner: Owner,
    /// Whether it is a conversation of the directory, or a link to one.
    pub is_conversation: bool,
    pub swept: SweepTime,
}

/// The table of files: returns the rule for a kind.
pub fn of_file(kind: FileKind) -> FileRule {
    match kind {
        // A file in the place of the link is a conversation that has no id yet.
        FileKind::Link => FileRule {
            owner: Owner::Q,
            is_conversation: true,
            swept: SweepTime::AfterKeep,
        },
        // Nobody has named it, so it goes once nobody has used it for long.
        FileKind::AutoNamed => FileRule {
            owner: Owner::Q,
            is_conversation: true,
            swept: SweepTime::AfterKeep,
        },
        // A backup goes as if it had an id, also where its conversation has a name.
        FileKind::Backup => FileRule {
            owner: Owner::Q,
            is_conversation: true,
            swept: SweepTime::AfterKeep,
        },
        // A named conversation never expires.
        FileKind::Named => FileRule {
            owner: Owner::User,
            is_conversation: true,
            swept: SweepTime::Never,
        },
        // A run that was killed may have left it.
        FileKind::Temporary => FileRule {
            owner: Owner::Q,
            is_conversation: false,
            swept: SweepTime::AfterADay,
        },
        // What other programs have made stays, whatever its name is.
        FileKind::External => FileRule {
            owner: Owner::User,
            is_conversation: false,
            swept: SweepTime::Never,
        },
    }
}

/// The time for which a link keeps what it leads to from being swept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shelter {
    Always,
    /// Until a follow-up would not continue it any more.
    UntilExpired,
}

/// Returns the shelter that a link gives. A terminal that was closed leaves its `current-NAME.json` behind; whatever else is
/// linked is in use.
pub fn shelter_of(link: FileKind, is_current: bool) -> Shelter {
    if link == FileKind::Link && !is_current {
        return Shelter::UntilExpired;
    }
    Shelter::Always
}

/// The way in which a user names the conversation of a question.
#[derive(Debug, Clone, Copy)]
enum NamedBy {
    /// The link to the current one.
    Link,
    /// A name that the user has given.
    Name,
    /// An id, the name of a backup, or a number of the list.
    Id,
    /// The path of a file.
    Path,
}

impl NamedBy {
    fn new(reference: &ConversationRef) -> NamedBy {
        match reference {
            ConversationRef::Current(_) => NamedBy::Link,
            ConversationRef::File(_) => NamedBy::Path,
            _ if reference.is_generated() => NamedBy::Id,
            _ => NamedBy::Name,
        }
    }
}

/// The condition on which something is done to the conversation of a question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Condition {
    Always,
    Never,
    /// If the exchange begins it.
    New,
    /// If `-p`, `-m` or a role names a provider or a model.
    ModelGiven,
    /// If standard output is a terminal.
    Terminal,
}

/// The circumstances of a question, for [`Condition`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Circumstances {
    pub is_new: bool,
    pub is_model_given: bool,
    pub is_terminal: bool,
}

impl Condition {
    pub fn applies(self, to: Circumstances) -> bool {
        match self {
            Condition::Always => true,
            Condition::Never => false,
            Condition::New => to.is_new,
            Condition::ModelGiven => to.is_model_given,
            Condition::Terminal => to.is_terminal,
        }
    }
}

/// The rule for a question: what it does to its conversation besides adding the exchange.
#[derive(Debug)]
pub struct QuestionRule {
    /// Whether only the last `pairs` exchanges stay.
    pub is_trimmed: bool,
    /// When it keeps its provider and model from now on.
    pub pinned: Condition,
    /// When it becomes the current one.
    pub becomes_current: Condition,
}

/// The table of questions: returns the rule for a conversation that is asked, by how it was named, and what its file is.
pub fn of_question(reference: &ConversationRef, kind: FileKind) -> QuestionRule {
    match (NamedBy::new(reference), of_file(kind).owner) {
        // The current conversation would grow forever, and each plain question begins another one.
        (NamedBy::Link, Owner::Q) => QuestionRule {
            is_trimmed: true,
            pinned: Condition::ModelGiven,
            becomes_current: Condition::New,
        },
        // A link that the user has made lead to a file of their own is followed like a name.
        (NamedBy::Link, Owner::User) => QuestionRule {
            is_trimmed: false,
            pinned: Condition::ModelGiven,
            becomes_current: Condition::New,
        },
        // Who picks an old conversation goes on with it: as it was, and in this terminal.
        (NamedBy::Id, _) => QuestionRule {
            is_trimmed: false,
            pinned: Condition::Always,
            becomes_current: Condition::Terminal,
        },
        // A name or a path is given each time, so it needs no link, and keeps what was said under it.
        (NamedBy::Name | NamedBy::Path, _) => QuestionRule {
            is_trimmed: false,
            pinned: Condition::ModelGiven,
            becomes_current: Condition::Never,
        },
    }
}

/// Whether a conversation is removed once another one is current in its place, where the settings keep none. One that cannot be
/// used is not: its bytes may be all that is left of it. An error means that it could not be read, so it is not removed either.
pub fn is_removed_when_left(kind: FileKind, found: ReadOutcome) -> io::Result<bool> {
    if of_file(kind).owner != Owner::Q {
        return Ok(false);
    }
    match found {
        Ok(_) => Ok(true),
        Err(ReadFailure::Unusable(_)) => Ok(false),
        Err(ReadFailure::System(error)) => Err(error),
    }
}

/// The settings about conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules {
    /// The most exchanges that the conversation keeps; at least 1.
    pub pairs: usize,
    /// How long a conversation that is not current is kept; `None` means forever, and zero not at all.
    pub keep: Option<Duration>,
    /// The longest idle time of a conversation that is continued; `None` means no limit.
    pub expire: Option<Duration>,
    /// Whether `-f` continues a conversation with another provider or model instead of starting a new one.
    pub continue_on_mismatch: bool,
}

impl Rules {
    /// Whether a conversation stays when another one takes its place, and backups are kept.
    pub fn keeps(&self) -> bool {
        self.keep.is_none_or(|keep| !keep.is_zero())
    }

    /// Whether a conversation was idle for too long.
    pub fn is_idle(&self, conversation: &Conversation, now: Timestamp) -> bool {
        self.expire
            .is_some_and(|expire| conversation.updated.elapsed_until(now) > expire)
    }
}

/// The conversation that an exchange is meant for.
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
    /// Returns the conversation as it was read, if one is continued.
    pub fn continued(&self) -> Option<&Conversation> {
        match self {
            Intent::Follow(read) | Intent::Again(read) => Some(read),
            _ => None,
        }
    }

    /// Returns the exchanges before the question.
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

/// Whether this may still be the conversation that was read. Another q may have dropped its oldest exchanges, because they were
/// more than its `pairs`, which need not be those of this q, or larger than a file may be. If none of those that were read is
/// left, it must have kept as many others as this q would.
fn may_be_same(read: &Conversation, now: Option<&Conversation>, pairs: usize) -> bool {
    let Some(now) = now else {
        return false;
    };
    let is_begun_alike = match now.entries().next() {
        Some(first) if !read.exchanges.is_empty() => {
            read.entries().any(|entry| entry == first) || now.exchanges.len() >= pairs
        }
        _ => true,
    };
    is_begun_alike && read.created == now.created
}

/// The provider and the model that are to answer, and when.
#[derive(Clone)]
pub struct AnsweredBy {
    pub provider: String,
    /// `None` if no model is named anywhere: then the conversation's own model answers.
    pub model: Option<String>,
    pub at: Timestamp,
}

/// Decides, by what was found under the lock, which conversation an exchange goes to: `None` means a new one. The error says
/// why it is saved in one of its own.
pub(super) fn decide(
    intent: &Intent,
    found: ReadOutcome,
    exchange: &Exchange,
    responder: &AnsweredBy,
    rules: &Rules,
) -> Result<Option<Conversation>, String> {
    match intent {
        Intent::New => Ok(None),
        Intent::FollowOrNew => Ok(decide_follow_or_new(found, responder, rules)),
        Intent::Named => decide_named(found, responder.at).map(Some),
        Intent::Follow(read) => decide_follow(read, found, rules.pairs),
        Intent::Again(read) => decide_again(read, found, exchange, rules.pairs),
    }
}

/// Continues the current conversation, unless there is an obstacle. A system prompt that another q has given it stays alone.
fn decide_follow_or_new(
    found: ReadOutcome,
    responder: &AnsweredBy,
    rules: &Rules,
) -> Option<Conversation> {
    if obstacle(&found, responder, rules).is_some() {
        return None;
    }
    found.ok()?.filter(|now| now.system.is_none())
}

/// Continues the conversation that the user has named, or begins it. If it cannot be read, no other one takes its place.
fn decide_named(found: ReadOutcome, at: Timestamp) -> Result<Conversation, String> {
    let conversation = found.map_err(|failure| failure.to_string())?;
    Ok(conversation.unwrap_or_else(|| Conversation::new(at)))
}

/// Continues the conversation that was read, if it is still there.
fn decide_follow(
    read: &Conversation,
    found: ReadOutcome,
    pairs: usize,
) -> Result<Option<Conversation>, String> {
    let now = usable(found)?;
    if !may_be_same(read, now.as_ref(), pairs) {
        return Err("the conversation was cleared or replaced in the meantime".to_owned());
    }
    Ok(now)
}

/// Replaces the last exchange of the conversation that was read, if that is still its last one.
fn decide_again(
    read: &Conversation,
    found: ReadOutcome,
    exchange: &Exchange,
    pairs: usize,
) -> Result<Option<Conversation>, String> {
    let now = usable(found)?;
    if !exchange.is_complete() {
        return Err("the new answer is incomplete".to_owned());
    }
    let last = now.as_ref().and_then(|now| now.exchanges.last());
    if !may_be_same(read, now.as_ref(), pairs) || last != read.exchanges.last() {
        return Err("the conversation has changed in the meantime".to_owned());
    }
    Ok(now)
}

/// Returns the conversation that was found; `None` also for a file that is none. If it cannot be read now, it may be as it was.
fn usable(found: ReadOutcome) -> Result<Option<Conversation>, String> {
    match found {
        Ok(conversation) => Ok(conversation),
        Err(ReadFailure::Unusable(_)) => Ok(None),
        Err(ReadFailure::System(error)) => Err(error.to_string()),
    }
}

/// Returns why a follow-up cannot continue the current conversation, if it cannot.
pub fn obstacle(found: &ReadOutcome, responder: &AnsweredBy, rules: &Rules) -> Option<String> {
    let conversation = match found {
        Ok(Some(conversation)) => conversation,
        Ok(None) => return Some("there is no conversation to continue".to_owned()),
        Err(failure) => return Some(format!("the conversation cannot be continued: {failure}")),
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

    fn asked(provider: &str, model: Option<&str>, second: i64) -> AnsweredBy {
        AnsweredBy {
            provider: provider.to_owned(),
            model: model.map(str::to_owned),
            at: moment(second),
        }
    }

    #[test]
    fn a_conversation_up_to_a_day_old_or_from_the_future_is_continued() {
        let found = Ok(Some(conversation(&[])));
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
        found: ReadOutcome,
        exchange: &Exchange,
        pairs: usize,
    ) -> &'static str {
        let responder = asked("openai", Some("m"), 9);
        let rules = Rules { pairs, ..RULES };
        match decide(intent, found, exchange, &responder, &rules) {
            Ok(None) => "begin",
            Ok(Some(_)) => "extend",
            Err(_) => "separate",
        }
    }

    #[test]
    fn the_conversation_found_under_the_lock_decides_where_an_exchange_goes() {
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
        let unusable = || Err(ReadFailure::Unusable(String::new()));
        let failed = || {
            Err(ReadFailure::System(
                std::io::ErrorKind::PermissionDenied.into(),
            ))
        };
        let idle = || changed(|found| found.updated = moment(-25 * HOUR));
        let own = || changed(|found| found.system = Some("own".to_owned()));
        let nothing = || Ok(None);
        type Row<'a> = (&'a str, &'a dyn Fn() -> ReadOutcome, &'a str);
        let intents = [
            Intent::New,
            follow,
            Intent::FollowOrNew,
            Intent::Named,
            again,
        ];
        // What is done for each of these intents.
        let table: [Row; 10] = [
            ("nothing", &nothing, "begin separate begin extend separate"),
            ("odd", &unusable, "begin separate begin separate separate"),
            ("failed", &failed, "begin separate begin separate separate"),
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
        // Other follow-ups have dropped the beginning: by these rules, by other ones, or all that was read.
        let said = [("one", "1"), ("two", "2"), ("three", "3"), ("four", "4")];
        for (left, pairs, expected) in [
            (1..3, 2, "extend"),
            (1..3, 20, "extend"),
            (1..2, usize::MAX, "extend"),
            (2..4, 2, "extend"),
            (2..4, 20, "separate"),
            (2..4, usize::MAX, "separate"),
            (2..3, 2, "separate"),
        ] {
            let mut trimmed = conversation(&said[..left.end]);
            trimmed.exchanges.drain(..left.start);
            let found = action(follow, Ok(Some(trimmed)), &complete, pairs);
            assert_eq!(found, expected, "{left:?} {pairs}");
        }
        let last_left = || changed(|found| drop(found.exchanges.remove(0)));
        assert_eq!(action(again, last_left(), &complete, 20), "extend");
        let mut emptied = read.clone();
        emptied.exchanges.clear();
        let follow_emptied = Intent::Follow(Arc::new(emptied.clone()));
        assert_eq!(action(&follow_emptied, same(), &complete, 20), "extend");
        let emptied = Ok(Some(emptied));
        assert_eq!(action(follow, emptied, &complete, 20), "extend");
    }

    #[test]
    fn each_kind_of_file_has_an_owner_and_a_time_to_be_swept() {
        use FileKind::*;
        for (kind, owner, is_conversation, swept) in [
            (Link, Owner::Q, true, SweepTime::AfterKeep),
            (AutoNamed, Owner::Q, true, SweepTime::AfterKeep),
            (Backup, Owner::Q, true, SweepTime::AfterKeep),
            (Named, Owner::User, true, SweepTime::Never),
            (Temporary, Owner::Q, false, SweepTime::AfterADay),
            (External, Owner::User, false, SweepTime::Never),
        ] {
            let rule = of_file(kind);
            let found = (rule.owner, rule.is_conversation, rule.swept);
            assert_eq!(found, (owner, is_conversation, swept), "{kind:?}");
        }
    }

    #[test]
    fn only_the_target_of_a_link_that_is_not_current_can_expire() {
        use FileKind::*;
        for (link, is_current, expected) in [
            (Link, true, Shelter::Always),
            (Link, false, Shelter::UntilExpired),
            (Named, false, Shelter::Always),
            (AutoNamed, false, Shelter::Always),
            (Backup, false, Shelter::Always),
        ] {
            let shelter = shelter_of(link, is_current);
            assert_eq!(shelter, expected, "{link:?} {is_current}");
        }
    }

    #[test]
    fn only_a_readable_conversation_without_a_name_is_removed_when_it_is_left() {
        use FileKind::*;
        let read = || Ok(Some(conversation(&[])));
        let missing = || Ok(None);
        let unusable = || Err(ReadFailure::Unusable(String::new()));
        let failed = || {
            Err(ReadFailure::System(
                std::io::ErrorKind::PermissionDenied.into(),
            ))
        };
        for (kind, expected) in [
            (Link, [Some(true), Some(true), Some(false), None]),
            (AutoNamed, [Some(true), Some(true), Some(false), None]),
            (Backup, [Some(true), Some(true), Some(false), None]),
            (Named, [Some(false); 4]),
            (External, [Some(false); 4]),
        ] {
            let found = [read(), missing(), unusable(), failed()];
            let removed = found.map(|found| is_removed_when_left(kind, found).ok());
            assert_eq!(removed, expected, "{kind:?}");
        }
    }

    #[test]
    fn the_kind_of_name_of_a_conversation_decides_what_a_question_does_to_it() {
        use Condition::*;
        use FileKind::*;
        let current = || ConversationRef::Current("current".to_owned());
        let named = |name: &str| ConversationRef::Named(name.to_owned());
        let id = || named("session_20260102030405678");
        let path = || ConversationRef::File("/f.json".into());
        for (reference, kind, is_trimmed, pinned, becomes_current) in [
            (current(), Link, true, ModelGiven, New),
            (current(), AutoNamed, true, ModelGiven, New),
            (current(), Backup, true, ModelGiven, New),
            (current(), Named, false, ModelGiven, New),
            (current(), External, false, ModelGiven, New),
            (id(), AutoNamed, false, Always, Terminal),
            (id(), External, false, Always, Terminal),
            (ConversationRef::Number(1), Named, false, Always, Terminal),
            (named("work~1"), Backup, false, Always, Terminal),
            (named("work"), Named, false, ModelGiven, Never),
            (named("work"), AutoNamed, false, ModelGiven, Never),
            (named("work"), External, false, ModelGiven, Never),
            (path(), External, false, ModelGiven, Never),
            (path(), AutoNamed, false, ModelGiven, Never),
        ] {
            let rule = of_question(&reference, kind);
            let found = (rule.is_trimmed, rule.pinned, rule.becomes_current);
            let expected = (is_trimmed, pinned, becomes_current);
            assert_eq!(found, expected, "{reference:?} {kind:?}");
        }
    }

    #[test]
    fn a_condition_applies_in_its_own_circumstances() {
        use Condition::*;
        let nothing = Circumstances::default();
        let new = Circumstances {
            is_new: true,
            ..nothing
        };
        let model_given = Circumstances {
            is_model_given: true,
            ..nothing
        };
        let terminal = Circumstances {
            is_terminal: true,
            ..nothing
        };
        for (condition, expected) in [
            (Always, [true, true, true, true]),
            (Never, [false, false, false, false]),
            (New, [false, true, false, false]),
            (ModelGiven, [false, false, true, false]),
            (Terminal, [false, false, false, true]),
        ] {
            let found = [nothing, new, model_given, terminal].map(|to| condition.applies(to));
            assert_eq!(found, expected, "{condition:?}");
        }
    }
}
