//! Resolves everything that one run needs, once, from the arguments, the settings and the conversation.

use std::env::consts::OS;
use std::sync::Arc;

use serde_json::Value;
use time::OffsetDateTime;

use super::checked::CheckedArguments;
use super::record::Record;
use super::session::Session;
use super::window::Window;
use crate::context::Context;
use crate::error::Error;
use crate::message::Message;
use crate::output::Notes;
use crate::provider::reply::Tail;
use crate::provider::request::Extra;
use crate::server::discover;
use crate::server::target::Target;
use crate::settings::{Cached, Settings};
use crate::shape::Shape;
use crate::text::fence;
use crate::tools::Toolbox;

/// One question to one provider, with as much of the conversation as it accepts, and the tools that it may call; how the
/// answer is printed, and where the exchange is saved.
pub struct Run {
    pub settings: Settings,
    pub notes: Notes,
    pub target: Arc<Target>,
    pub model: String,
    pub system: String,
    pub window: Window,
    pub question: Message,
    pub toolbox: Option<Toolbox>,
    /// The shape that the answer must have.
    pub shape: Option<Shape>,
    pub record: Arc<Record>,
    pub progress: Progress,
}

/// What the requests of a run have come to so far.
#[derive(Default)]
pub struct Progress {
    /// What the provider has refused; further requests do without it.
    pub left_out: Vec<Extra>,
    /// What the API wants back to continue an answer that it has paused.
    pub paused_turn: Vec<Value>,
    /// What the paused answer ends with.
    pub tail: Tail,
    /// How often the API has paused an answer.
    pub pauses: usize,
    /// How long the newest reply took; `None` if no text of it has come.
    pub timing: Option<String>,
    pub failed_searches: Vec<String>,
    /// The answer was known, so nobody was asked.
    pub is_known: bool,
}

impl Run {
    /// Resolves a question in its conversation, with the tools that it may use.
    pub fn resolve(
        checked: CheckedArguments,
        question: Message,
        session: Session,
        toolbox: Option<Toolbox>,
        context: &Context,
    ) -> Result<Run, Error> {
        let notes = &context.notes;
        let settings = &checked.settings;
        let values = &settings.values;
        let model = choose_model(&session.target, settings, notes)?;

        let window = Window::new(session.intent.earlier(), values);
        if let Some(to) = &session.handed_to(&model) {
            window.report_hand_over(to, notes);
        }

        let read = session.intent.read();
        let kept = read.and_then(|conversation| conversation.system.clone());
        let system = checked.system.clone().or(kept);
        let system = system.unwrap_or_else(|| default_system_prompt(settings));
        let instructions = toolbox.as_ref().map_or("", |toolbox| &toolbox.instructions);
        let saver = session.saver(&model, &checked, context);
        let record = Record::new(question.clone(), saver, context);
        Ok(Run {
            target: Arc::new(session.target),
            model,
            system: fence::join([system.as_str(), instructions]),
            window,
            question,
            toolbox,
            shape: checked.shape,
            record: Arc::new(record),
            progress: Progress::default(),
            notes: notes.clone(),
            settings: checked.settings,
        })
    }

    /// Whether all of the answer is printed, as text.
    pub fn prints_prose(&self) -> bool {
        let arguments = &self.settings.typed;
        self.shape.is_none() && !arguments.extract && !arguments.json
    }
}

/// The model to ask. For a dry run, only a server on this machine is asked for its list.
fn choose_model(target: &Target, settings: &Settings, notes: &Notes) -> Result<String, Error> {
    if let Some(model) = target.choice.model.name() {
        return Ok(model.to_owned());
    }
    if settings.cached() == Cached::Only {
        return Err(discover::unknown_without_asking("model", "-m or Q_MODEL"));
    }
    if settings.typed.dry_run {
        return target.first_model_without_key(notes);
    }
    target.fetch_key(notes)?;
    target.first_model(notes)
}

/// The system prompt of the settings, else the built-in one.
fn default_system_prompt(settings: &Settings) -> String {
    if let Some(system) = &settings.values.system {
        return system.clone();
    }
    let form = if settings.typed.extract {
        "Only code is taken from the answer: put all of it into one fenced code block."
    } else {
        "Answer in plain text for a terminal, briefly and directly, without Markdown; put code and commands into \
         fenced code blocks only where they are asked for."
    };
    let mut system = format!("You answer questions from a Unix command line. {form}");
    // An answer that is known tomorrow, and elsewhere, does not depend on these.
    if settings.cached() == Cached::Off {
        system += &format!(" The user's operating system is {OS}");
        let shell = settings.environment.get("SHELL").unwrap_or_default();
        let (_, name) = shell.rsplit_once('/').unwrap_or(("", shell));
        if !name.is_empty() {
            system += &format!(", shell {name}");
        }
        let today = OffsetDateTime::now_utc().date();
        system += &format!(". Today is {today} (UTC).");
    }
    system
}
