//! Everything that one run is, resolved once from what was typed, the settings and the conversation.

use std::io::{self, IsTerminal};
use std::sync::Arc;

use super::delivery::{Delivery, Output};
use super::prompt;
use super::question::Given;
use super::record::Record;
use super::session::Session;
use super::turn::{ShapeEnforcement, Turn};
use super::typed::Typed;
use super::window::Window;
use crate::context::{self, Context};
use crate::error::Error;
use crate::fence;
use crate::flags::Arguments;
use crate::interrupt::Interrupts;
use crate::output::{Notes, print};
use crate::provider::reply::Tail;
use crate::server::target::Target;
use crate::session::commit::Committer;
use crate::session::name::Which;
use crate::session::timestamp::Timestamp;
use crate::settings::Settings;
use crate::shape::Shape;
use crate::tools::{Selection, Toolbox};

/// One run: what is sent to which server, how the answer is printed, and where the exchange is saved.
pub(super) struct Plan {
    turn: Turn,
    output: Output,
    /// `None`: nothing is saved.
    committer: Option<Committer>,
    /// How the user names the conversation.
    which: Which,
}

impl Plan {
    /// Resolves a question in its conversation, with the tools that it may use.
    ///
    /// # Errors
    /// The key cannot be had, or the model is unknown and the server does not say which one it has.
    pub(super) fn resolve(
        arguments: &Arguments,
        context: &Context,
        typed: Typed,
        given: Given,
        mut session: Session,
        toolbox: Option<Toolbox>,
        asked: Timestamp,
    ) -> Result<Plan, Error> {
        let notes = &context.notes;
        let Typed {
            selection,
            shape,
            settings,
            ..
        } = typed;
        let model = model(&mut session.target, arguments.dry_run, notes)?;
        let system = arguments
            .system
            .as_ref()
            .map(|system| system.to_string_lossy().into_owned());
        let rules = context::rules(&settings.values);
        let tools = selection.as_ref().map(Selection::names);
        let committer = session.committer(&model, system.clone(), tools, asked, rules);
        let conversation = session.conversation.as_ref();
        let system = system.or_else(|| conversation?.system.clone());
        let messages = conversation.map_or_else(Vec::new, |conversation| {
            conversation.window(settings.values.messages)
        });
        let window = Window::new(messages, &settings.values);
        window.report_limit(&settings.values, notes);
        window.report_hand_over(session.handed_to.as_deref(), notes);
        let output = Output::new(arguments, shape.clone(), context.look(&settings.values));
        let which = session.which();
        let question = given.into_question(session.last_question().as_ref());
        let target = session.target;
        let is_alone = toolbox.is_none() && !arguments.web;
        let shape = shape.map(|shape| enforced(shape, is_alone, &target));
        let system = system.unwrap_or_else(|| system_prompt(&settings, asked, arguments.extract));
        let instructions = toolbox.as_ref().map_or("", Toolbox::instructions);
        let turn = Turn {
            model,
            system: fence::join([system.as_str(), instructions]),
            window,
            question,
            left_out: Vec::new(),
            stream: !arguments.no_stream,
            toolbox,
            steps: Vec::new(),
            begun: Vec::new(),
            tail: Tail::default(),
            pauses: 0,
            cut_results: false,
            shape,
            target: Arc::new(target),
            settings,
        };
        let committer = committer.filter(|_| turn.settings.values.save);
        Ok(Plan {
            turn,
            output,
            committer,
            which,
        })
    }

    /// Prints the request.
    ///
    /// # Errors
    /// `Output`: it could not be printed.
    pub(super) fn print_request(&self, notes: &Notes) -> Result<(), Error> {
        self.turn.report(notes);
        print(&self.turn.body_to_show(io::stdout().is_terminal())?)
    }

    /// Asks, delivers the answer and saves the exchange.
    ///
    /// # Errors
    /// Why there is no answer, or why it is incomplete.
    pub(super) fn run(&mut self, interrupts: Arc<Interrupts>, notes: &Notes) -> Result<(), Error> {
        let with_tools = self.turn.toolbox.is_some();
        let record = Record::new(
            self.turn.question.clone(),
            self.committer.clone(),
            notes.clone(),
        );
        let delivery = Delivery::new(
            self.output.clone(),
            with_tools,
            record,
            self.which.clone(),
            interrupts,
            notes,
        )?;
        self.turn.run(delivery, notes)
    }
}

/// How the shape is asked for. Not every API accepts one together with tools or a search.
fn enforced(shape: Shape, is_alone: bool, target: &Target) -> (Shape, ShapeEnforcement) {
    match is_alone && target.provider().api.can_enforce(&shape) {
        true => (shape, ShapeEnforcement::ByApi),
        false => (shape, ShapeEnforcement::InPrompt),
    }
}

/// The model to ask. For a dry run, only a server on this machine is asked for its list.
fn model(target: &mut Target, is_dry_run: bool, notes: &Notes) -> Result<String, Error> {
    if is_dry_run {
        return target.model_without_key(notes);
    }
    target.fetch_key(notes)?;
    target.model(notes)
}

/// The system prompt of the settings, else the built-in one.
fn system_prompt(settings: &Settings, now: Timestamp, extract: bool) -> String {
    let built_in = || {
        prompt::system(
            std::env::consts::OS,
            settings.environment.get("SHELL"),
            now.date(),
            extract,
        )
    };
    settings.values.system.clone().unwrap_or_else(built_in)
}
