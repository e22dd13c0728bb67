//! The state that changes while a question is answered, and the step that follows a reply.

use super::printer::CallsAhead;
use super::window::Window;
use crate::message::Tool;
use crate::message::echo::Echo;
use crate::provider::reply::{AnswerTail, Reply};
use crate::provider::request::{OptionalField, Request};
use crate::tools::{MAX_ARGUMENTS, Toolbox};

/// The state that changes from request to request.
pub struct Dialogue {
    /// The model that is asked.
    pub model: String,
    /// The earlier messages that are sent; fewer once the provider says that they are too many.
    pub window: Window,
    /// The tools that the model may call, and the servers that run them.
    pub toolbox: Option<Toolbox>,
    /// Parts of a request that the provider has refused; further requests do without it.
    pub rejected_fields: Vec<OptionalField>,
    /// The limit of tokens that the server accepts, where it has rejected q's own.
    pub lowered_limit: Option<u64>,
    pub form: FormLevel,
    /// Whether the provider says that the model reads no images. Those of later results are not sent then.
    pub reads_no_images: bool,
    /// Whether the model of a local server was replaced by the next one on its list.
    pub has_taken_next_model: bool,
    /// Whether a model that is no longer served was replaced by the newest of its family.
    pub has_replaced_retired_model: bool,
    pub paused: PausedAnswer,
    /// How many replies have called tools.
    rounds_called: usize,
    /// The most replies that may call tools, and the most that may pause the answer.
    max_rounds: usize,
    /// How many more bytes the arguments of calls may have. All of them go with each further request.
    pub room_for_arguments: usize,
}

/// An answer that the API has paused, to be continued by another request.
#[derive(Default)]
pub struct PausedAnswer {
    /// The turn so far, as the API wants it back.
    pub turn: Echo,
    /// The end of its text.
    pub tail: AnswerTail,
    /// How often an answer to this question was paused.
    count: usize,
}

/// How the API is told to enforce the form of the answer, where it can. More servers support the later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormLevel {
    /// The answer has the shape that is asked for.
    Shape,
    /// The answer is a JSON object. Words ask for the shape.
    Object,
    /// Words alone ask for the form.
    Words,
}

impl FormLevel {
    /// Returns the next one, once the provider has refused this.
    pub fn after_refusal(self) -> FormLevel {
        match self {
            FormLevel::Shape => FormLevel::Object,
            FormLevel::Object | FormLevel::Words => FormLevel::Words,
        }
    }
}

/// The step that follows a reply.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    RunCalls,
    ContinuePaused,
    Stop,
}

impl Dialogue {
    /// Begins with the first request.
    pub fn new(
        model: String,
        window: Window,
        toolbox: Option<Toolbox>,
        max_rounds: usize,
    ) -> Dialogue {
        Dialogue {
            model,
            window,
            toolbox,
            rejected_fields: Vec::new(),
            lowered_limit: None,
            form: FormLevel::Shape,
            reads_no_images: false,
            has_taken_next_model: false,
            has_replaced_retired_model: false,
            paused: PausedAnswer::default(),
            rounds_called: 0,
            max_rounds,
            room_for_arguments: MAX_ARGUMENTS,
        }
    }

    /// Returns the tools that the model may call.
    pub fn tools(&self) -> &[Tool] {
        let toolbox = self.toolbox.as_ref();
        toolbox.map_or(&[], |toolbox| toolbox.offers.tools())
    }

    /// Whether the provider has refused this part of a request.
    pub fn rejects(&self, field: OptionalField) -> bool {
        self.rejected_fields.contains(&field)
    }

    /// Ends the tool servers.
    pub fn end_servers(self, has_answer: bool) {
        if let Some(toolbox) = self.toolbox {
            toolbox.end(has_answer);
        }
    }

    /// Returns the step that follows this reply. Calls of a reply that was cut may be cut themselves, so they
    /// do not run.
    pub fn next(&self, reply: &Reply) -> Next {
        if !reply.turn.calls().is_empty() && !reply.end.is_cut() {
            Next::RunCalls
        } else if reply.is_paused() && self.paused.count < self.max_rounds {
            Next::ContinuePaused
        } else {
            Next::Stop
        }
    }

    /// Whether the model may call tools in the reply to this request.
    pub fn calls_ahead(&self, request: &Request) -> CallsAhead {
        if !request.offers_tools {
            CallsAhead::None
        } else if self.rounds_called == 0 {
            CallsAhead::Likely
        } else {
            CallsAhead::Possible
        }
    }

    /// Keeps what the API wants back to continue the answer that it has paused with this reply.
    pub fn pause(&mut self, reply: &Reply) {
        self.paused.count += 1;
        self.paused.tail = reply.answer.tail;
        self.paused.turn.extend(reply.turn.echo());
    }

    /// Returns the turn that has ended with the calls of this reply, as the API wants it back, with what came before a pause.
    pub fn end_turn(&mut self, reply: &Reply) -> Echo {
        self.rounds_called += 1;
        let mut turn = std::mem::take(&mut self.paused.turn);
        turn.extend(reply.turn.echo());
        self.paused.tail = AnswerTail::default();
        turn
    }

    /// Whether the model has called so often that it must answer now.
    pub fn must_answer(&self) -> bool {
        self.toolbox.is_some() && self.rounds_called >= self.max_rounds
    }
}
