//! Resolves everything that one run needs, once, from the arguments, the settings and the conversation.

use std::env::consts::OS;
use std::io::{self, IsTerminal};
use std::sync::Arc;

use super::checked::CheckedArguments;
use super::delivery::{Delivery, Output};
use super::prompt;
use super::record::Record;
use super::session::Session;
use super::turn::{Progress, ShapeEnforcement, Turn};
use super::window::Window;
use crate::context::{self, Context};
use crate::error::Error;
use crate::interrupt::Interrupts;
use crate::message::Message;
use crate::output::{Notes, print};
use crate::server::target::Target;
use crate::session::name::Which;
use crate::session::save::Saver;
use crate::session::timestamp::Timestamp;
use crate::settings::{Settings, Values};
use crate::shape::Shape;
use crate::text::fence;
use crate::tools::{Selection, Toolbox};

/// One run: what is sent to which server, how the answer is printed, and where the exchange is saved.
pub struct Plan {
    turn: Turn,
    output: Output,
    /// `None`: nothing is saved.
    saver: Option<Saver>,
    /// How the user names the conversation.
    which: Which,
}

impl Plan {
    /// Resolves a question in its conversation, with the tools that it may use.
    pub fn resolve(
        checked: CheckedArguments,
        question: Message,
        mut session: Session,
        toolbox: Option<Toolbox>,
        asked: Timestamp,
        context: &Context,
    ) -> Result<Plan, Error> {
        let notes = &context.notes;
        let settings = checked.settings;
        let arguments = &settings.typed;
        let values = &settings.values;
        let model = choose_model(&mut session.target, arguments.dry_run, notes)?;

        let mut typed_system = None;
        if let Some(system) = &arguments.system {
            typed_system = Some(system.to_string_lossy().into_owned());
        }
        let mut saver = None;
        if values.save {
            let tools = checked.selection.as_ref().map(Selection::names);
            let rules = context::rules(values);
            saver = session.saver(&model, typed_system.clone(), tools, asked, rules);
        }

        let window = open_window(&session, values, notes);
        let conversation = session.conversation.as_ref();
        let system = typed_system
            .or_else(|| conversation?.system.clone())
            .unwrap_or_else(|| default_system_prompt(&settings, asked));
        let instructions = toolbox.as_ref().map_or("", Toolbox::instructions);

        let look = context.look(values);
        let output = Output::new(arguments, checked.shape.clone(), look);
        let which = session.which();
        let target = session.target;
        let is_alone = toolbox.is_none() && !arguments.web;
        let mut shape = None;
        if let Some(required) = checked.shape {
            let enforcement = enforcement(&required, is_alone, &target);
            shape = Some((required, enforcement));
        }
        let turn = Turn {
            model,
            system: fence::join([system.as_str(), instructions]),
            window,
            question,
            stream: !arguments.no_stream,
            toolbox,
            shape,
            target: Arc::new(target),
            settings,
            progress: Progress::default(),
        };
        Ok(Plan {
            turn,
            output,
            saver,
            which,
        })
    }

    /// Asks, delivers the answer and saves the exchange. A dry run prints the request instead.
    pub fn run(&mut self, interrupts: Arc<Interrupts>, notes: &Notes) -> Result<(), Error> {
        if self.turn.settings.typed.dry_run {
            self.turn.report(notes);
            let is_terminal = io::stdout().is_terminal();
            return print(&self.turn.body_to_show(is_terminal)?);
        }
        let has_tools = self.turn.toolbox.is_some();
        let question = self.turn.question.clone();
        let record = Record::new(question, self.saver.clone(), notes.clone());
        let output = self.output.clone();
        let which = self.which.clone();
        let delivery = Delivery::new(output, has_tools, record, which, interrupts, notes)?;
        self.turn.run(delivery, notes)
    }
}

/// The messages of the conversation to send. Notes say how many are not sent, and whether another provider gets them.
fn open_window(session: &Session, values: &Values, notes: &Notes) -> Window {
    let messages = match &session.conversation {
        Some(conversation) => conversation.window(values.messages),
        None => Vec::new(),
    };
    let window = Window::new(messages, values);
    window.report_limit(values, notes);
    window.report_hand_over(session.handed_to.as_deref(), notes);
    window
}

/// How the shape is asked for. Not every API accepts one together with tools or a search.
fn enforcement(shape: &Shape, is_alone: bool, target: &Target) -> ShapeEnforcement {
    if is_alone && target.provider().api.can_enforce(shape) {
        ShapeEnforcement::ByApi
    } else {
        ShapeEnforcement::InPrompt
    }
}

/// The model to ask. For a dry run, only a server on this machine is asked for its list.
fn choose_model(target: &mut Target, is_dry_run: bool, notes: &Notes) -> Result<String, Error> {
    if is_dry_run {
        return target.model_without_key(notes);
    }
    target.fetch_key(notes)?;
    target.model(notes)
}

/// The system prompt of the settings, else the built-in one.
fn default_system_prompt(settings: &Settings, now: Timestamp) -> String {
    if let Some(system) = &settings.values.system {
        return system.clone();
    }
    let shell = settings.environment.get("SHELL");
    let only_code = settings.typed.extract;
    prompt::system(OS, shell, now.date(), only_code)
}
