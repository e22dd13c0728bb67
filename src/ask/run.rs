//! Brings together what is decided about a question before it is asked.

use std::env::consts::OS;
use std::sync::Arc;

use time::OffsetDateTime;

use super::answer_form::{Form, Output};
use super::dialogue::Dialogue;
use super::place::Place;
use super::plan::Plan;
use super::printer::Printer;
use super::record::Record;
use super::saving;
use super::window::Window;
use crate::context::Context;
use crate::error::Error;
use crate::message::Message;
use crate::output::Notes;
use crate::server::target::Target;
use crate::session::rules::{AnsweredBy, Intent};
use crate::session::timestamp::Timestamp;
use crate::settings::{Cached, Settings};
use crate::text::fence;
use crate::tools::Toolbox;

/// A question to one server: what is asked, how the answer is printed, and the record of what comes.
pub struct Run<'a> {
    pub settings: &'a Settings,
    pub notes: &'a Notes,
    pub output: Output,
    pub target: Target,
    pub system: String,
    pub question: Message,
    pub record: Arc<Record>,
    pub printer: Printer,
}

impl<'a> Run<'a> {
    /// Brings together what is decided, and what may change while the question is answered.
    pub fn new(
        plan: Plan<'a>,
        question: Message,
        place: &Place,
        target: Target,
        toolbox: Option<Toolbox>,
        context: &'a Context,
    ) -> Result<(Run<'a>, Dialogue), Error> {
        let notes = &context.notes;
        let settings = plan.settings;
        let model = target.choose_model(settings, notes)?;
        let provider = &target.provider().name;
        let window = Window::new(place.intent.earlier(), settings);
        if let Some(to) = handed_to(place, provider, &model) {
            window.report_hand_over(&to, notes);
        }
        let system = system_prompt(&plan, place);
        let instructions = toolbox.as_ref().map_or("", |toolbox| &toolbox.instructions);
        let responder = AnsweredBy {
            provider: provider.clone(),
            model: Some(model.clone()),
            at: Timestamp::now(),
        };
        let saver = saving::saver(&plan, place, responder, context);
        let schema = plan.output.shape().map(|shape| shape.schema.clone());
        let record = Arc::new(Record::new(question.clone(), schema, saver, context));
        let display = context.display_options(&settings.values);
        let printer = Printer::new(&plan.output, toolbox.is_some(), display, &record, notes)?;
        let run = Run {
            settings,
            notes,
            system: fence::join([system.as_str(), instructions]),
            record,
            printer,
            output: plan.output,
            target,
            question,
        };
        Ok((run, Dialogue::new(model, window, toolbox)))
    }
}

/// Returns the provider, perhaps with its model, that continues the current conversation after another one.
fn handed_to(place: &Place, provider: &str, model: &str) -> Option<String> {
    let is_current = place.handle.as_ref()?.which.is_current();
    match &place.intent {
        Intent::Follow(read) if is_current && provider != read.provider => {
            Some(provider.to_owned())
        }
        Intent::Follow(read) if is_current && model != read.model => {
            Some(format!("{provider}, model {model}"))
        }
        _ => None,
    }
}

/// Returns the system prompt: the one of the command line, the conversation's own, that of the settings, or the built-in one.
fn system_prompt(plan: &Plan, place: &Place) -> String {
    let continued = place.intent.continued();
    let kept = continued.and_then(|conversation| conversation.system.as_ref());
    let set = plan.system.as_ref().or(kept);
    let set = set.or(plan.settings.values.system.as_ref());
    set.cloned()
        .unwrap_or_else(|| built_in_system_prompt(&plan.output, plan.settings))
}

fn built_in_system_prompt(output: &Output, settings: &Settings) -> String {
    let form = match output.form {
        Form::Code => {
            "Only code is taken from the answer: put all of it into one fenced code block."
        }
        Form::Prose | Form::Shaped(_) | Form::Items(..) | Form::Verdict(_) => {
            "Answer in plain text for a terminal, briefly and directly, without Markdown; put code and commands into \
             fenced code blocks only where they are asked for."
        }
    };
    let mut system = format!("You answer questions from a Unix command line. {form}");
    // A cached answer must serve tomorrow, and elsewhere.
    if settings.cached == Cached::Off {
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
