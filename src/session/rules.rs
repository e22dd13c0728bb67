//! Whether a follow-up can continue the current conversation, and with which model.

use std::time::Duration;

use super::age;
use super::conversation::Conversation;
use super::format::Unusable;
use super::timestamp::Timestamp;

/// What is in the file of the current conversation.
#[derive(Debug)]
pub(crate) enum Found {
    Nothing,
    Conversation(Conversation),
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
pub(crate) enum Anew {
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
pub(crate) fn obstacle(found: &Found, wanted: &Wanted, now: Timestamp) -> Option<Anew> {
    match found {
        Found::Nothing => Some(Anew::Nothing),
        Found::Unusable(unusable) => Some(Anew::Unusable(unusable.to_string())),
        Found::Conversation(conversation) => mismatch(conversation, wanted, now),
    }
}

fn mismatch(conversation: &Conversation, wanted: &Wanted, now: Timestamp) -> Option<Anew> {
    let idle = conversation.updated.elapsed_until(now);
    if wanted.expire.is_some_and(|expire| idle > expire) {
        return Some(Anew::Idle(idle));
    }
    if wanted.hands_over {
        return None;
    }
    if conversation.provider != wanted.provider {
        return Some(Anew::Provider { was: conversation.provider.clone(), is: wanted.provider.to_owned() });
    }
    match wanted.model {
        Some(model) if model != conversation.model => {
            Some(Anew::Model { was: conversation.model.clone(), is: model.to_owned() })
        }
        _ => None,
    }
}

impl std::fmt::Display for Anew {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Anew::Nothing => formatter.write_str("there is no conversation to continue"),
            Anew::Unusable(reason) => write!(formatter, "the conversation cannot be continued: {reason}"),
            Anew::Idle(idle) => write!(formatter, "the conversation was idle for {}", age::in_words(*idle)),
            Anew::Provider { was, is } => write!(formatter, "the conversation is with the provider {was}, not {is}"),
            Anew::Model { was, is } => write!(formatter, "the conversation is with the model {was}, not {is}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::conversation::tests::moment;
    use super::*;

    const HOUR: i64 = 3600;

    fn anew(now: i64, provider: &str, model: Option<&str>, expire: Option<u64>) -> Option<Anew> {
        let conversation = Conversation::new("openai", "m", moment(0));
        let wanted = Wanted { provider, model, expire: expire.map(Duration::from_secs), hands_over: false };
        obstacle(&Found::Conversation(conversation), &wanted, moment(now))
    }

    #[test]
    fn a_conversation_is_followed_while_it_is_fresh_and_the_same() {
        let day = Some(24 * 60 * 60);
        assert_eq!(anew(23 * HOUR, "openai", Some("m"), day), None);
        assert_eq!(anew(24 * HOUR, "openai", Some("m"), day), None);
        assert_eq!(anew(-HOUR, "openai", Some("m"), day), None);
        assert_eq!(anew(1000 * HOUR, "openai", Some("m"), None), None);
        assert_eq!(anew(0, "openai", None, day), None);
        assert!(matches!(anew(25 * HOUR, "openai", Some("m"), day), Some(Anew::Idle(_))));
        assert!(matches!(anew(24 * HOUR + 1, "openai", Some("m"), day), Some(Anew::Idle(_))));
        assert!(matches!(anew(0, "groq", None, day), Some(Anew::Provider { .. })));
        assert!(matches!(anew(0, "openai", Some("other"), day), Some(Anew::Model { .. })));
    }

    #[test]
    fn a_conversation_may_be_handed_over_while_it_is_fresh() {
        let conversation = || Found::Conversation(Conversation::new("openai", "m", moment(0)));
        for (provider, model) in [("openai", Some("other")), ("groq", None), ("groq", Some("m"))] {
            let wanted = Wanted { provider, model, expire: Some(Duration::from_secs(60)), hands_over: true };
            assert_eq!(obstacle(&conversation(), &wanted, moment(60)), None, "{provider} {model:?}");
            assert!(matches!(obstacle(&conversation(), &wanted, moment(61)), Some(Anew::Idle(_))), "{provider}");
        }
    }

    #[test]
    fn what_is_not_there_or_not_usable_is_not_followed() {
        let wanted = Wanted { provider: "openai", model: None, expire: None, hands_over: true };
        assert_eq!(obstacle(&Found::Nothing, &wanted, moment(0)), Some(Anew::Nothing));
        let unusable = Found::Unusable(Unusable::Version(2));
        assert!(matches!(obstacle(&unusable, &wanted, moment(0)), Some(Anew::Unusable(_))));
    }
}
