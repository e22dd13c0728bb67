//! The main job: q turns words and input into a question, adds the conversation, asks the provider, prints the answer
//! and saves the exchange.

mod answer_form;
mod cached;
mod dialogue;
mod file_format;
mod input;
mod pattern;
mod place;
mod plan;
mod printer;
mod question;
mod record;
mod request;
mod run;
mod tools;
mod turn;
mod verdict;
mod window;

use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::tools::Groups;
use input::InputReader;
use place::Opened;
use plan::Plan;
use run::Run;
use tools::Tools;

/// Asks one question, in the conversation that the command line chooses. Tool servers start in `groups`.
pub fn ask(command_line: &Arguments, context: &Context, groups: &Groups) -> Result<(), Error> {
    let notes = &context.notes;
    let settings = context.settings(command_line)?;
    let mut plan = Plan::new(&settings, notes)?;
    place::check_name(&settings, context)?;
    let early = place::early_target(&plan, context)?;
    if let Some(early) = &early
        && plan.waits_for_input()
    {
        early.open_ahead(&settings);
    }

    let files = InputReader::read_files(&settings.typed.attach, notes)?;
    // Servers start while input is read.
    let mut tools = Tools::start_typed(&plan, context, groups)?;
    let draft = plan.read_input(files, notes)?;

    let opened = Opened::read(&settings, context)?;
    let target = opened.target(early, &settings, notes)?;
    let place = opened.decide(&target, &settings, command_line, notes);
    if let Some(schema) = place.schema_to_repeat() {
        plan.output.repeat_shape(schema);
    }
    let question = draft.into_question(place.question_to_repeat().as_ref())?;
    tools.start_remembered(&place)?;
    let toolbox = tools.wait(&target)?;

    let (run, mut dialogue) = Run::new(plan, question, &place, target, toolbox, context)?;
    let result = run.answer(&mut dialogue, context);
    let failure = result.as_ref().err();
    dialogue.end_servers(failure.is_none_or(Error::is_about_content));
    result
}
