//! Chooses the messages of the conversation that go with the question, and fewer of them if they are too many. Puts them
//! together with the question.

use std::ops::Range;

use super::unsent::Unsent;
use crate::message::{Message, Role};
use crate::output::Notes;
use crate::session::{Exchange, StoredEntry};
use crate::settings::{History, Settings, Values};

/// The messages of a conversation that are sent.
pub struct Window {
    /// Oldest first: those that last, then the newest ones.
    pub messages: Vec<Message>,
    /// How many of them last, while the newest ones are replaced in time: a question among them came with files or input.
    pub lasting: usize,
    form: History,
    /// How many messages the conversation has.
    total: usize,
    max_history: usize,
    /// Older ones that `max_history` leaves out.
    beyond_max_history: Unsent,
    /// Older ones that are left out because the provider accepts no more.
    beyond_model: Unsent,
    /// Whether the older half has been left out.
    pub is_halved: bool,
    /// How many are sent from now on, if `messages` allows no more and the conversation has more with this question for the
    /// first time, so that a note says it.
    newly_limited_to: Option<usize>,
}

/// The messages that are sent as far as their number decides that, by their places among all that can be sent.
#[derive(Debug, PartialEq)]
struct SentPlaces {
    /// From here on all of them.
    first: usize,
    /// Exchanges before that last, the newest first.
    lasting: Vec<Range<usize>>,
}

impl SentPlaces {
    /// Returns the newest messages, and before them the newest exchanges that brought files or input. `--messages` is exact.
    fn new(exchanges: &[&Exchange], values: &Values, is_exact: bool) -> SentPlaces {
        let total = count_messages(exchanges.iter().copied());
        let most = values.messages;
        let mut first = total.saturating_sub(most);
        let mut lasting = Vec::new();
        let mut end = total;
        for exchange in exchanges.iter().rev() {
            let start = end - exchange.entries.len();
            // Native messages must begin with a question.
            if values.history == History::Messages && start < first && first < end {
                first = end;
            }
            let lasts = !is_exact && exchange.brings_input() && lasting.len() < most / 2;
            if start < first && lasts {
                lasting.push(start..end.min(first));
            }
            end = start;
        }
        SentPlaces { first, lasting }
    }

    /// Whether there are messages that are not sent.
    fn leaves_out(&self) -> bool {
        let lasting: usize = self.lasting.iter().map(ExactSizeIterator::len).sum();
        lasting < self.first
    }
}

/// Whether the last of these exchanges was asked with messages left out already: those before it were the conversation then. `true`
/// without exchanges.
fn left_out_before(sent: &[&Exchange], values: &Values) -> bool {
    let before = sent.split_last();
    before.is_none_or(|(_, before)| SentPlaces::new(before, values, false).leaves_out())
}

impl Window {
    /// Returns the messages of some exchanges that the settings allow. Blocked exchanges are not sent again.
    pub fn new(exchanges: &[Exchange], settings: &Settings) -> Window {
        Window::of_values(
            exchanges,
            &settings.values,
            settings.arguments.messages.is_some(),
        )
    }

    fn of_values(exchanges: &[Exchange], values: &Values, is_exact: bool) -> Window {
        let sent = exchanges.iter().filter(|exchange| !exchange.is_blocked());
        let sent = Vec::from_iter(sent);
        let entries = Vec::from_iter(sent.iter().flat_map(|exchange| &exchange.entries));
        let places = SentPlaces::new(&sent, values, is_exact);
        let mut room = values.max_history;
        let newest = &entries[places.first..];
        let messages = newest_messages(newest, &mut room);
        let wanted = newest.len();
        let is_cut = messages.len() < wanted;
        let mut window = Window {
            messages,
            lasting: 0,
            form: values.history,
            total: count_messages(exchanges),
            max_history: values.max_history,
            beyond_max_history: Unsent::default(),
            beyond_model: Unsent::default(),
            is_halved: false,
            newly_limited_to: None,
        };
        window.drop_leading_answer();
        if is_cut {
            // The answer to a question over the limit is left out with it.
            let (over_limit, _) = newest.split_at(wanted - window.messages.len());
            window.leave_out_lasting(&places.lasting, &entries);
            window.leave_out(over_limit);
        } else {
            window.add_lasting(&places, &entries, room);
        }
        // What `max_history` leaves out has a note of its own, and who gives a number on the command line, or 0, wants that.
        let is_unexpected = !is_exact && !is_cut && values.messages > 0;
        if is_unexpected && places.leaves_out() && !left_out_before(&sent, values) {
            window.newly_limited_to = Some(wanted);
        }
        window
    }

    /// Adds the exchanges that last, as far as there is room for their texts.
    fn add_lasting(&mut self, places: &SentPlaces, entries: &[&StoredEntry], mut room: usize) {
        for (index, place) in places.lasting.iter().enumerate() {
            let exchange = entries[place.clone()].iter();
            let exchange = Vec::from_iter(exchange.map(|entry| entry.entry().to_message()));
            let bytes = exchange.iter().map(|message| message.text.len()).sum();
            let Some(rest) = room.checked_sub(bytes) else {
                self.leave_out_lasting(&places.lasting[index..], entries);
                return;
            };
            room = rest;
            self.lasting += exchange.len();
            self.messages.splice(0..0, exchange);
        }
    }

    /// Leaves out exchanges that would last. The newest comes first.
    fn leave_out_lasting(&mut self, lasting: &[Range<usize>], entries: &[&StoredEntry]) {
        for place in lasting.iter().rev() {
            self.leave_out(&entries[place.clone()]);
        }
    }

    /// Leaves out messages that come after those that `max_history` has left out already.
    fn leave_out(&mut self, entries: &[&StoredEntry]) {
        for entry in entries {
            self.beyond_max_history.add(&entry.entry().to_message());
        }
    }

    /// Returns the messages to send: these, oldest first, and the question.
    pub fn with(&self, question: Message) -> Vec<Message> {
        let mut messages = self.messages.clone();
        messages.push(question);
        if self.form == History::Prompt && messages.len() > 1 {
            messages = vec![flattened(&messages)];
        }
        messages
    }

    /// Leaves out the older half. Returns whether there was anything to leave out.
    pub fn halve(&mut self) -> bool {
        let before = self.messages.len();
        if before == 0 {
            return false;
        }
        self.is_halved = true;
        let mut gone = Vec::from_iter(self.messages.drain(..before.div_ceil(2)));
        gone.extend(self.drop_leading_answer());
        for message in &gone {
            self.beyond_model.add(message);
        }
        self.lasting = self.lasting.saturating_sub(gone.len());
        true
    }

    /// Drops and returns an answer without its question: native messages must begin with a question.
    fn drop_leading_answer(&mut self) -> Option<Message> {
        if self.form == History::Messages
            && let Some(first) = self.messages.first()
            && first.role == Role::Assistant
        {
            return Some(self.messages.remove(0));
        }
        None
    }

    /// Notes that messages go to another provider or model than the one that answered them.
    pub fn report_hand_over(&self, to: &str, notes: &Notes) {
        match self.messages.len() {
            0 => {}
            1 => notes.note(&format!("sending 1 message of this conversation to {to}")),
            count => notes.note(&format!(
                "sending {count} messages of this conversation to {to}"
            )),
        }
    }

    /// Returns how many messages of the conversation are not sent.
    pub fn messages_left_out(&self) -> usize {
        self.total - self.messages.len()
    }

    /// Notes what the settings leave out of the requests of this question, where the user may not expect it. `again` is the
    /// command that asks it again, if there is one.
    pub fn report_beyond_settings(&self, question: &Message, again: Option<&str>, notes: &Notes) {
        if let Some(most) = self.newly_limited_to {
            let sent = match most {
                0 => "no earlier message is".to_owned(),
                1 => "only the last message is".to_owned(),
                most => format!("only the last {most} messages are"),
            };
            notes.note(&format!(
                "{sent} sent from now on; to send more: --messages {}",
                most.max(1) * 2
            ));
        }
        if let Some(unsent) = self.beyond_max_history.in_words(question) {
            let sent = self.messages.iter().map(|message| message.text.len());
            let needed = self.beyond_max_history.bytes + sent.sum::<usize>();
            let limit = with_room_to_grow(needed);
            let once = match again {
                Some(command) => format!("to send all: Q_MAX_HISTORY={limit} {command}"),
                None => format!("to send all, set Q_MAX_HISTORY={limit}"),
            };
            notes.note(&format!(
                "{unsent}, because max_history is {}; {once}; to send all every time: max_history = {limit} in config.toml",
                self.max_history,
            ));
        }
    }

    /// Notes what was left out because the provider accepts no more.
    pub fn report_beyond_model(&self, question: &Message, notes: &Notes) {
        if let Some(unsent) = self.beyond_model.in_words(question) {
            notes.note(&format!(
                "{unsent}, because the model accepts no more; to send all, ask a model with a larger context: -ff -m MODEL"
            ));
        }
    }
}

/// Returns a limit of bytes that these stay below for some more follow-ups: a digit and zeros.
fn with_room_to_grow(bytes: usize) -> usize {
    let wanted = bytes.saturating_add(bytes / 10).max(1);
    let unit = 10_usize.pow(wanted.ilog10());
    wanted.div_ceil(unit).saturating_mul(unit)
}

fn count_messages<'a>(exchanges: impl IntoIterator<Item = &'a Exchange>) -> usize {
    let counts = exchanges.into_iter().map(|exchange| exchange.entries.len());
    counts.sum()
}

/// Takes the newest messages, as far as there is room for their texts. Returns them with the oldest first.
fn newest_messages(entries: &[&StoredEntry], room: &mut usize) -> Vec<Message> {
    let mut messages = Vec::new();
    for entry in entries.iter().rev() {
        let message = entry.entry().to_message();
        let Some(rest) = room.checked_sub(message.text.len()) else {
            break;
        };
        *room = rest;
        messages.push(message);
    }
    messages.reverse();
    messages
}

/// Messages as one, with all their attachments. The last one is the question.
fn flattened(messages: &[Message]) -> Message {
    let mut attachments = Vec::new();
    let mut prompt = "Previous conversation:\n".to_owned();
    let mut part_ends = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        attachments.extend_from_slice(&message.attachments);
        if index > 0 {
            part_ends.push(prompt.len());
            prompt.push_str("\n\n");
        }
        prompt.push_str(match message.role {
            Role::User => "Human: ",
            Role::Assistant => "Assistant: ",
        });
        prompt.push_str(&message.text);
    }
    Message {
        part_ends,
        ..Message::with_attachments(Role::User, attachments, prompt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Step, ToolCall, ToolRun};
    use crate::session::Conversation;
    use crate::session::conversation::tests::{change, conversation};

    fn newest(conversation: &Conversation, most: usize) -> Vec<Message> {
        let values = Values {
            messages: most,
            max_history: usize::MAX,
            ..Values::default()
        };
        Window::of_values(&conversation.exchanges, &values, true).messages
    }

    #[test]
    fn the_window_has_the_last_messages() {
        let conversation = conversation(&[("one", "1"), ("two", "2")]);
        for (most, expected) in [(0, ""), (1, "2"), (3, "1 two 2"), (9, "one 1 two 2")] {
            let window = newest(&conversation, most);
            let texts: Vec<_> = window.iter().map(|message| &*message.text).collect();
            assert_eq!(texts.join(" "), expected, "{most}");
        }
    }

    #[test]
    fn earlier_calls_are_sent_as_text_and_a_missing_answer_is_marked() {
        for (text, expected) in [("yes", "\n\nyes"), ("", "\n\n(interrupted)")] {
            let mut conversation = conversation(&[("one", text)]);
            let run = ToolRun::new(&ToolCall::default(), "r", false);
            let calls = vec![run];
            change(&mut conversation.exchanges[0].entries[1], |answer| {
                answer.steps = vec![Step {
                    calls,
                    ..Step::default()
                }];
            });
            let window = newest(&conversation, 1);
            let sent = &window[0].text;
            let is_right = sent.starts_with("Tool ") && sent.ends_with(expected);
            assert!(is_right, "{sent}");
        }
    }

    #[test]
    fn a_blocked_exchange_is_not_sent_again() {
        for (interrupted, finish, sent) in [
            (true, Some("SAFETY"), 2),
            (true, None, 4),
            (false, Some("length"), 4),
            (false, None, 4),
        ] {
            let mut conversation = conversation(&[("one", "1"), ("two", "2")]);
            change(&mut conversation.exchanges[0].entries[1], |answer| {
                answer.interrupted = interrupted;
                answer.finish = finish.map(str::to_owned);
            });
            let found = newest(&conversation, 10).len();
            assert_eq!(found, sent, "{interrupted} {finish:?}");
        }
    }

    /// A conversation whose questions have these letters; after `+` they came with a log.
    fn talked(questions: &str) -> Conversation {
        let mut texts = Vec::new();
        for question in questions.split(' ') {
            let text = match question.strip_prefix('+') {
                Some(name) => format!("{}\n\n{name}", crate::text::fence::around_input("log")),
                None => question.to_owned(),
            };
            texts.push((text, question.to_lowercase()));
        }
        let texts = texts.iter();
        let pairs =
            Vec::from_iter(texts.map(|(question, answer)| (question.as_str(), answer.as_str())));
        conversation(&pairs)
    }

    /// The first letters of the questions that are sent, and what else a window says.
    fn sent(
        questions: &str,
        values: &Values,
        is_exact: bool,
    ) -> (String, usize, usize, Option<usize>) {
        let conversation = talked(questions);
        let window = Window::of_values(&conversation.exchanges, values, is_exact);
        let mut names = Vec::new();
        for message in &window.messages {
            if message.role == Role::User {
                names.push(message.text.rsplit('\n').next().expect("a line").to_owned());
            }
        }
        assert_eq!(
            window.messages_left_out() + window.messages.len(),
            conversation.exchanges.len() * 2
        );
        (
            names.join(" "),
            window.lasting,
            window.messages_left_out(),
            window.newly_limited_to,
        )
    }

    #[test]
    fn exchanges_with_attached_input_are_sent_before_the_latest_messages() {
        for (questions, most, is_exact, names, lasting, left_out) in [
            ("+A B C", 4, false, "A B C", 2, 0),
            ("+A B C D", 4, false, "A C D", 2, 2),
            ("+A B C D", 4, true, "C D", 0, 4),
            ("A B C D", 4, false, "C D", 0, 4),
            ("+A +B C D E", 4, false, "A B D E", 4, 2),
            ("+A +B +C D E", 4, false, "B C D E", 4, 2),
            ("+A B C", 2, false, "A C", 2, 2),
            ("+A B C", 1, false, "", 0, 5),
            ("+A B C", 0, false, "", 0, 6),
        ] {
            for history in [History::Prompt, History::Messages] {
                let values = Values {
                    messages: most,
                    max_history: usize::MAX,
                    history,
                    ..Values::default()
                };
                let (found, found_lasting, found_count, _) = sent(questions, &values, is_exact);
                let case = format!("{questions} {most} {is_exact} {history:?}");
                assert_eq!((found.as_str(), found_lasting), (names, lasting), "{case}");
                let answer_alone = most == 1 && history == History::Messages;
                assert_eq!(found_count, left_out + usize::from(answer_alone), "{case}");
            }
        }
    }

    #[test]
    fn exchanges_with_attached_input_are_left_out_beyond_max_history() {
        for (max_history, names, cut) in [
            (1_000, "A B E F", 0),
            (41, "B E F", 2),
            (20, "E F", 4),
            (3, "F", 5),
        ] {
            let values = Values {
                messages: 4,
                max_history,
                ..Values::default()
            };
            let conversation = talked("+A +B C D E F");
            let window = Window::of_values(&conversation.exchanges, &values, false);
            assert_eq!(
                sent("+A +B C D E F", &values, false).0,
                names,
                "{max_history}"
            );
            assert_eq!(window.beyond_max_history.count, cut, "{max_history}");
        }
    }

    #[test]
    fn a_larger_limit_has_room_for_follow_ups() {
        for (bytes, expected) in [
            (0, 1),
            (9, 9),
            (10, 20),
            (60, 70),
            (500_123, 600_000),
            (999_999, 2_000_000),
            (usize::MAX, usize::MAX),
        ] {
            assert_eq!(with_room_to_grow(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn the_first_question_that_leaves_earlier_messages_out_gets_a_note() {
        let (prompt, native) = (History::Prompt, History::Messages);
        for (questions, most, history, is_exact, said) in [
            ("A B", 4, prompt, false, None),
            ("A B C", 4, prompt, false, Some(4)),
            ("A B C", 4, prompt, true, None),
            ("A B C D", 4, prompt, false, None),
            ("+A B C", 4, prompt, false, None),
            ("+A B C D", 4, prompt, false, Some(4)),
            ("+A B C D E", 4, prompt, false, None),
            ("A", 1, prompt, false, Some(1)),
            ("A", 0, prompt, false, None),
            ("A B C", 4, native, false, Some(4)),
            // An answer without its question is not sent.
            ("A B", 3, native, false, Some(2)),
            ("A", 1, native, false, Some(0)),
        ] {
            let values = Values {
                messages: most,
                max_history: usize::MAX,
                history,
                ..Values::default()
            };
            let found = sent(questions, &values, is_exact).3;
            assert_eq!(found, said, "{questions} {most} {history:?} {is_exact}");
        }
        // More messages would not help where max_history leaves some of these out; another note says so.
        for (max_history, said) in [(4, Some(4)), (3, None)] {
            let values = Values {
                messages: 4,
                max_history,
                ..Values::default()
            };
            let found = sent("A B C", &values, false).3;
            assert_eq!(found, said, "{max_history}");
        }
    }

    #[test]
    fn a_prompt_of_flattened_history_begins_with_the_previous_prompt() {
        let question = |text: &str| Message::text(Role::User, text);
        let values = Values {
            messages: 10,
            max_history: usize::MAX,
            ..Values::default()
        };
        let mut before = String::new();
        for questions in ["+A", "+A B", "+A B C", "+A B C D"] {
            let conversation = talked(questions);
            let window = Window::of_values(&conversation.exchanges, &values, true);
            let messages = window.with(question("next"));
            let [flat] = &messages[..] else {
                panic!("one message");
            };
            assert_eq!(flat.part_ends.len(), conversation.message_count());
            let (so_far, last) = flat.text.split_at(*flat.part_ends.last().expect("parts"));
            assert_eq!(last, "\n\nHuman: next");
            assert!(so_far.starts_with(&before), "{questions}");
            before = so_far.to_owned();
        }
    }
}
