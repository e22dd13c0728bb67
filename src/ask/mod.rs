//! The main job: q turns words and input into a question, adds the conversation, asks the provider, prints the answer
//! and saves the exchange.

mod addressee;
mod answer;
mod answer_file;
mod answer_form;
mod choice;
mod dialogue;
mod ending;
mod failed_request;
mod misread_words;
mod place;
mod plan;
mod printer;
mod question;
mod record;
mod request_loop;
mod run;
mod saving;
mod system;
mod tools;
mod unsent;
mod verdict;
mod window;

use std::sync::Arc;

use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::input::InputReader;
use crate::message::Message;
use crate::tools::{ProcessGroups, Toolbox};
use addressee::Addressee;
use answer_form::Output;
use choice::EarlyTarget;
use dialogue::Dialogue;
use misread_words::note_misread_words;
use place::Place;
use plan::Plan;
use printer::Printer;
use record::Record;
use run::Run;
use tools::Tools;
use window::Window;

/// A question that can be asked.
struct ReadyQuestion<'a> {
    plan: Plan<'a>,
    place: Place,
    output: Output,
    question: Message,
    toolbox: Option<Toolbox>,
    addressee: Addressee,
}

/// Asks one question, in the conversation that the command line chooses. Tool servers start in `groups`.
pub fn ask(
    command_line: &Arguments,
    context: &Context,
    groups: &ProcessGroups,
) -> Result<(), Error> {
    let settings = context.settings(command_line)?;
    let plan = Plan::new(command_line, &settings, context)?;
    note_misread_words(&plan, &context.notes);
    let early = choice::choose_early(&plan, context)?;
    let ready = prepare(plan, early, context, groups)?;
    answer(ready, context)
}

/// Reads the input and the conversation, and makes the question for the server and the model that they lead to.
fn prepare<'a>(
    mut plan: Plan<'a>,
    early: Option<EarlyTarget>,
    context: &Context,
    groups: &ProcessGroups,
) -> Result<ReadyQuestion<'a>, Error> {
    let notes = &context.notes;
    let settings = plan.settings;
    let arguments = &settings.arguments;
    let files = InputReader::read_files(&arguments.attach, &context.environment, notes)?;
    // Tool servers start while input is read.
    let tools = Tools::start(&plan, context, groups)?;
    let mut output = match plan.output.take() {
        Some(output) => output,
        None => Output::new(settings, notes)?,
    };
    let input = files.read_stdin(plan.reads_stdin, plan.words.is_some())?;
    plan.refuse_no_question(&input)?;

    let (place, target) = Place::open(&plan, early, context)?;
    output.repeat_shape(place.schema_to_repeat.as_ref())?;
    let words = plan.words.take();
    let last = place.question_to_repeat.as_ref();
    let question = question::compose(words, input, last, arguments.is)?;
    let toolbox = tools.ready(&place, &target)?;
    let addressee = Addressee::choose(target, settings, notes)?;
    Ok(ReadyQuestion {
        plan,
        place,
        output,
        question,
        toolbox,
        addressee,
    })
}

/// Asks the question, prints the answer and saves both.
fn answer(ready: ReadyQuestion, context: &Context) -> Result<(), Error> {
    let (plan, place) = (&ready.plan, &ready.place);
    let (output, addressee) = (&ready.output, &ready.addressee);
    let toolbox = ready.toolbox;
    let notes = &context.notes;
    let settings = plan.settings;
    let window = Window::new(place.intent.earlier(), settings);
    let system = system::prompt(plan, output, place, toolbox.as_ref());
    let saver = saving::saver(plan, place, addressee.responder(), context);
    let schema = output.shape().map(|shape| shape.schema.clone());
    let record = Arc::new(Record::new(ready.question, schema, saver, context));
    let display = context.display_options(&settings.values);
    let printer = Printer::new(output, toolbox.is_some(), display, notes)?;
    let screen = Arc::clone(&printer.screen);
    record.save_on_signal(move || drop(screen.end()));

    let run = Run {
        settings,
        notes,
        output,
        target: &addressee.target,
        handed_to: addressee.handed_to(place),
        system,
        again: saving::AgainCommand::new(plan, place),
        record,
        printer,
    };
    let mut dialogue = Dialogue::new(
        addressee.model.clone(),
        window,
        toolbox,
        settings.values.rounds,
    );
    let result = request_loop::answer(&run, &mut dialogue, context);
    let failure = result.as_ref().err();
    dialogue.end_servers(failure.is_none_or(Error::is_about_content));
    result
}
