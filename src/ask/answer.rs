//! As much of an answer as has come, and what becomes of it in a conversation.

use serde_json::json;

use crate::message::echo::Echo;
use crate::message::{Message, Role, Source, Sources, Step, ToolCall, ToolRun, Usage, either};
use crate::provider::kept::{ByteBudget, ITEM};
use crate::provider::reply::{Piece, Reply};
use crate::session::Entry;
use crate::session::timestamp::Timestamp;
use crate::text::reasoning_end::{Extent, split_at_end};

/// In place of the result of a call that had not ended when q did.
const NO_RESULT: &str = "(interrupted before the result came)";

/// As much of an answer as has come.
#[derive(Default)]
pub struct Answer {
    pub text: String,
    /// The text and the calls of the model before the answer.
    pub steps: Vec<Step>,
    /// The pages that the answer and these steps name.
    pub sources: Sources,
    /// The usage of all requests together.
    pub usage: Option<Usage>,
    /// Why searches of the provider failed.
    pub failed_searches: Vec<String>,
    /// How many images came with it. They are not kept.
    pub images: usize,
    /// The calls that are running.
    running: Vec<ToolRun>,
    /// Whether a call has run, so that it may have had an effect. Calls that were refused had none.
    has_run: bool,
    /// Where the text of the latest reply begins.
    reply_begins: usize,
    /// Whether reasoning has come with the latest reply, or was found in its text.
    pub has_reasoned: bool,
    unopened_reasoning: UnopenedReasoning,
    /// Of the text, also that of the steps, and the sources. Once it is exhausted, none of them is kept.
    budget: ByteBudget,
}

/// What is known of reasoning at the beginning of the latest reply's text, of which only the end has a tag, because the server's
/// template has opened it. What is known later in this list counts more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum UnopenedReasoning {
    /// No reasoning has come otherwise, so the text may begin with it.
    #[default]
    Possible,
    /// Reasoning has come apart from the text, or has ended at a tag, so another tag is a word of the answer.
    Over,
    /// The tag was opened again within reasoning, so the text may begin with more of it.
    Nested,
    /// The answer is a cached one. Reasoning was taken out of its text before it was stored.
    TakenOut,
}

impl UnopenedReasoning {
    /// Returns what a piece tells of it.
    fn of_piece(piece: &Piece) -> UnopenedReasoning {
        if piece.may_reason_on {
            UnopenedReasoning::Nested
        } else if piece.has_ended_reasoning || piece.has_words_of_reasoning() {
            UnopenedReasoning::Over
        } else {
            UnopenedReasoning::Possible
        }
    }

    /// Splits a reply at the end of its reasoning, if it begins with reasoning.
    fn split(self, reply: &str, extent: Extent) -> Option<(&str, &str)> {
        match self {
            UnopenedReasoning::Possible | UnopenedReasoning::Nested => split_at_end(reply, extent),
            UnopenedReasoning::Over | UnopenedReasoning::TakenOut => None,
        }
    }
}

impl Answer {
    /// Whether it has more than is kept. What was there is gone then.
    pub fn is_too_long(&self) -> bool {
        self.budget.is_exhausted()
    }

    /// Whether nothing but whitespace has come.
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty() && !self.budget.is_exhausted()
    }

    /// Begins another reply.
    pub fn begin_reply(&mut self) {
        self.reply_begins = self.text.len();
        self.has_reasoned = false;
        self.unopened_reasoning = UnopenedReasoning::default();
    }

    /// Adds the usage and searches of a reply. Removes reasoning at the start of its text that only has an end tag, and returns
    /// that reasoning.
    pub fn end_reply(&mut self, reply: &Reply, extent: Extent) -> Option<String> {
        self.usage = either(self.usage, reply.usage(), Usage::plus);
        let activity = &reply.activity;
        self.failed_searches
            .extend_from_slice(&activity.failed_searches);
        self.images += activity.images;
        self.take_unopened_reasoning(extent)
    }

    /// Adds a piece. Takes its sources. Returns whether the answer is still kept.
    pub fn push(&mut self, piece: &mut Piece) -> bool {
        self.has_reasoned |= piece.has_words_of_reasoning();
        let told = UnopenedReasoning::of_piece(piece);
        self.unopened_reasoning = self.unopened_reasoning.max(told);
        let sources = std::mem::take(&mut piece.sources);
        self.keep(&piece.text, sources)
    }

    /// Makes a cached answer all of it. Returns whether it is kept.
    pub fn set_cached(&mut self, text: &str, sources: Sources) -> bool {
        self.unopened_reasoning = UnopenedReasoning::TakenOut;
        self.keep(text, sources.list)
    }

    /// Adds text and sources, unless there is too much of them. Returns whether the answer is still kept.
    fn keep(&mut self, text: &str, sources: Vec<Source>) -> bool {
        for source in sources {
            let bytes = self.sources.add(source);
            if bytes > 0 {
                self.budget.spend(ITEM + bytes);
            }
        }
        let is_kept = self.budget.spend(text.len());
        if is_kept {
            self.text.push_str(text);
        } else {
            // A part of the answer is not saved, so its memory is given back.
            self.text = String::new();
            self.sources = Sources::default();
        }
        is_kept
    }

    /// Makes the text so far a step on the way to the answer, with the model's turn as the API wants it back.
    pub fn begin_step(&mut self, echo: Echo) {
        self.steps.push(Step {
            text: std::mem::take(&mut self.text),
            echo,
            ..Step::default()
        });
    }

    /// Adds calls that are running now.
    pub fn calls_started(&mut self, calls: &[&ToolCall]) {
        self.has_run |= !calls.is_empty();
        for call in calls {
            self.running.push(ToolRun {
                no_result: true,
                ..ToolRun::new(call, NO_RESULT, true)
            });
        }
    }

    /// Keeps the result of a call that has ended while others may be running.
    pub fn call_ended(&mut self, run: ToolRun) {
        let mut running = self.running.iter_mut();
        if let Some(place) = running.find(|other| other.id == run.id) {
            *place = run;
        }
    }

    /// Adds calls of the last step that have ended. No other call is running then.
    pub fn calls_finished(&mut self, runs: Vec<ToolRun>) {
        self.running.clear();
        if let Some(step) = self.steps.last_mut() {
            step.calls.extend(runs);
        }
    }

    /// Leaves out the images of tools, which not every model reads; their results name them. Returns whether there were any.
    pub fn leave_out_images(&mut self) -> bool {
        let mut has_images = false;
        for step in &mut self.steps {
            for run in &mut step.calls {
                has_images |= !run.images.is_empty();
                run.images.clear();
            }
        }
        has_images
    }

    /// Removes reasoning at the start of the latest reply's text that only has an end tag, and returns that reasoning.
    pub fn take_unopened_reasoning(&mut self, extent: Extent) -> Option<String> {
        let reply = self.text.get(self.reply_begins..)?;
        let (reasoning, rest) = self.unopened_reasoning.split(reply, extent)?;
        let reasoning = reasoning.to_owned();
        let end = self.text.len() - rest.trim_start().len();
        self.text.drain(self.reply_begins..end);
        self.has_reasoned = true;
        self.unopened_reasoning = UnopenedReasoning::Over;
        Some(reasoning)
    }

    /// Makes the answer a message of the conversation; `None` if there is no word of it, and no call has run. The message
    /// takes text and steps, which may have megabytes, until [`Answer::take_back`].
    pub fn take_entry(&mut self) -> Option<Entry> {
        if let Some(step) = self.steps.last_mut() {
            step.calls.append(&mut self.running);
        }
        for run in self.steps.iter_mut().flat_map(|step| &mut step.calls) {
            if let Some(complete) = run.complete.take() {
                run.result = complete;
            }
        }
        // If none of the last calls has run, the text before them is the answer.
        if self.text.is_empty()
            && let Some(step) = self.steps.pop_if(|step| step.calls.is_empty())
        {
            self.text = step.text;
        }
        let has_words =
            !self.text.is_empty() || self.steps.iter().any(|step| !step.text.is_empty());
        if !has_words && !self.has_run {
            return None;
        }
        let message = Message::text(Role::Assistant, std::mem::take(&mut self.text));
        let mut entry = Entry::new(message, Timestamp::now());
        if !self.sources.list.is_empty() {
            entry.sources = Some(json!(self.sources.list));
        }
        entry.steps = std::mem::take(&mut self.steps);
        entry.usage = self.usage.map(|usage| json!(usage));
        Some(entry)
    }

    /// Gets back what a message has taken.
    pub fn take_back(&mut self, entry: Entry) {
        self.text = String::from(&*entry.text);
        self.steps = entry.steps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pieces_tell_of_unopened_reasoning_decides_where_a_reply_is_split() {
        use UnopenedReasoning::{Nested, Over, Possible};
        let blank = Piece::default();
        let reasoning = Piece {
            reasoning: "so".to_owned(),
            ..Piece::default()
        };
        let ended = Piece {
            has_ended_reasoning: true,
            ..Piece::default()
        };
        let nested = Piece {
            may_reason_on: true,
            ..Piece::default()
        };
        for (pieces, expected) in [
            (vec![&blank], Possible),
            (vec![&blank, &reasoning, &blank], Over),
            (vec![&ended, &reasoning], Over),
            (vec![&reasoning, &ended, &blank], Over),
            (vec![&reasoning, &nested, &ended], Nested),
        ] {
            let mut found = Possible;
            for piece in pieces {
                found = found.max(UnopenedReasoning::of_piece(piece));
            }
            assert_eq!(found, expected);
        }
        let reply = "so\n</think>\n\nyes";
        for (state, is_split) in [
            (Possible, true),
            (Over, false),
            (Nested, true),
            (UnopenedReasoning::TakenOut, false),
        ] {
            let found = state.split(reply, Extent::Whole);
            assert_eq!(found.is_some(), is_split, "{state:?}");
        }
    }
}
