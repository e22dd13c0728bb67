//! Whether a follow-up can continue the current conversation, and if not, why.

use std::time::Duration;

use super::age;
use super::conversation::Conversation;
use super::format::Unusable;
use super::timestamp::Timestamp;

/// What is at the path of a conversation.
#[derive(Debug)]
pub(crate) enum Found {
    /// There is no file.
    Nothing,
    Conversation(Conversation),
    /// A file that q cannot use as a conversation.
    Unusable(Unusable),
}

/// What a follow-up asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) provider: &'a str,
    /// `None` if no model is named anywhere: the conversation's own is used.
    pub(crate) model: Option<&'a str>,
    /// The longest idle time; `None` is no limit.
    pub(crate) expire: Option<Duration>,
    /// Another provider or model may continue it.
    pub(crate) hands_over: bool,
}

/// Why a follow-up starts a new conversation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    Nothing,
    Unusable(String),
    Idle(Duration),
    Provider { was: String, is: String },
    Model { was: String, is: String },
}

/// Whether displaced conversations are archived, with this setting `keep`.
pub(crate) fn archives(keep: Option<Duration>) -> bool {
    keep.is_none_or(|keep| !keep.is_zero())
}

/// Why a follow-up cannot continue the current conversation, if it cannot.
pub(crate) fn obstacle(found: &Found, wanted: &Wanted, now: Timestamp) -> Option<Obstacle> {
    match found {
        Found::Nothing => Some(Obstacle::Nothing),
        Found::Unusable(unusable) => Some(Obstacle::Unusable(unusable.to_string())),
        Found::Conversation(conversation) => mismatch(conversation, wanted, now),
    }
}

fn mismatch(conversation: &Conversation, wanted: &Wanted, now: Timestamp) -> Option<Obstacle> {
    let idle = conversation.updated.elapsed_until(now);
    if wanted.expire.is_some_and(|expire| idle > expire) {
        return Some(Obstacle::Idle(idle));
    }
    if wanted.hands_over {
        return None;
    }
    if conversation.provider != wanted.provider {
        return Some(Obstacle::Provider { was: conversation.provider.clone(), is: wanted.provider.to_owned() });
    }
    match wanted.model {
        Some(model) if model != conversation.model => {
            Some(Obstacle::Model { was: conversation.model.clone(), is: model.to_owned() })
        }
        _ => None,
    }
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Obstacle::Nothing => formatter.write_str("there is no conversation to continue"),
            Obstacle::Unusable(reason) => write!(formatter, "the conversation cannot be continued: {reason}"),
            Obstacle::Idle(idle) => write!(formatter, "the conversation was idle for {}", age::in_words(*idle)),
            Obstacle::Provider { was, is } => {
                write!(formatter, "the conversation is with the provider {was}, not {is}")
            }
            Obstacle::Model { was, is } => write!(formatter, "the conversation is with the model {was}, not {is}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::conversation::tests::moment;
    use super::*;

    const HOUR: i64 = 3600;

    fn obstacle_at(now: i64, provider: &str, model: Option<&str>, expire: Option<u64>) -> Option<Obstacle> {
        let conversation = Conversation::new("openai", "m", moment(0));
        let wanted = Wanted { provider, model, expire: expire.map(Duration::from_secs), hands_over: false };
        obstacle(&Found::Conversation(conversation), &wanted, moment(now))
    }

    #[test]
    fn a_conversation_is_followed_while_it_is_fresh_and_the_same() {
        let day = Some(24 * 60 * 60);
        assert_eq!(obstacle_at(23 * HOUR, "openai", Some("m"), day), None);
        assert_eq!(obstacle_at(24 * HOUR, "openai", Some("m"), day), None);
        assert_eq!(obstacle_at(-HOUR, "openai", Some("m"), day), None);
        assert_eq!(obstacle_at(1000 * HOUR, "openai", Some("m"), None), None);
        assert_eq!(obstacle_at(0, "openai", None, day), None);
        assert!(matches!(obstacle_at(25 * HOUR, "openai", Some("m"), day), Some(Obstacle::Idle(_))));
        assert!(matches!(obstacle_at(24 * HOUR + 1, "openai", Some("m"), day), Some(Obstacle::Idle(_))));
        assert!(matches!(obstacle_at(0, "groq", None, day), Some(Obstacle::Provider { .. })));
        assert!(matches!(obstacle_at(0, "openai", Some("other"), day), Some(Obstacle::Model { .. })));
    }

    #[test]
    fn a_conversation_may_be_handed_over_while_it_is_fresh() {
        let conversation = || Found::Conversation(Conversation::new("openai", "m", moment(0)));
        for (provider, model) in [("openai", Some("other")), ("groq", None), ("groq", Some("m"))] {
            let wanted = Wanted { provider, model, expire: Some(Duration::from_secs(60)), hands_over: true };
            assert_eq!(obstacle(&conversation(), &wanted, moment(60)), None, "{provider} {model:?}");
            assert!(matches!(obstacle(&conversation(), &wanted, moment(61)), Some(Obstacle::Idle(_))), "{provider}");
        }
    }

    #[test]
    fn what_is_not_there_or_not_usable_is_not_followed() {
        let wanted = Wanted { provider: "openai", model: None, expire: None, hands_over: true };
        assert_eq!(obstacle(&Found::Nothing, &wanted, moment(0)), Some(Obstacle::Nothing));
        let unusable = Found::Unusable(Unusable::Version(2));
        assert!(matches!(obstacle(&unusable, &wanted, moment(0)), Some(Obstacle::Unusable(_))));
    }
}
