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
mod turn;
mod window;

use std::io::{self, IsTerminal};

use crate::context::Context;
use crate::error::Error;
use crate::flags::Arguments;
use crate::output::Notes;
use crate::server::target::Target;
use crate::settings::{Cached, Settings};
use crate::text::one_line::{on_one_line, quoted};
use crate::tools::{Groups, Selection, Starting, Toolbox};
use input::InputReader;
use place::{Opened, Place};
use plan::Plan;
use run::Run;

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
    let tools = Tools {
        settings: &settings,
        context,
        groups,
    };
    // Servers start while input is read.
    let starting = tools.start(plan.selection.as_ref())?;
    let draft = plan.read_input(files, notes)?;

    let opened = Opened::read(&settings, context)?;
    let target = opened.target(early, &settings, notes)?;
    let place = opened.decide(&target, &settings, command_line, notes);
    if let Some(schema) = place.schema_to_repeat() {
        plan.output.repeat_shape(schema);
    }
    let question = draft.into_question(place.question_to_repeat().as_ref());
    let toolbox = tools.wait(starting, &place, &target)?;

    let (run, mut dialogue) = Run::new(plan, question, &place, target, toolbox, context)?;
    let result = run.answer(&mut dialogue, context);
    dialogue.end_servers(result.is_ok());
    result
}

/// Starts the tools of a question, and waits until they are known.
struct Tools<'a> {
    settings: &'a Settings,
    context: &'a Context,
    groups: &'a Groups,
}

impl Tools<'_> {
    fn start(&self, selection: Option<&Selection>) -> Result<Option<Starting>, Error> {
        if selection.is_none() {
            return Ok(None);
        }
        Starting::new(selection, self.settings, self.context, self.groups).map(Some)
    }

    /// Waits for the tools of `-t`, else for those that the conversation remembers.
    fn wait(
        &self,
        starting: Option<Starting>,
        place: &Place,
        target: &Target,
    ) -> Result<Option<Toolbox>, Error> {
        if starting.is_some() {
            return self.finish(starting, target);
        }
        let Some(conversation) = place.intent.continued() else {
            return Ok(None);
        };
        let notes = &self.context.notes;
        let remembered = remembered_tools(&conversation.tools, place, self.settings, notes)?;
        let toolbox = match self.start(remembered.as_ref()) {
            Ok(started) => self.finish(started, target),
            Err(error) => Err(error),
        };
        toolbox.map_err(|error| error.advise_also(REMEMBERED))
    }

    fn finish(
        &self,
        starting: Option<Starting>,
        target: &Target,
    ) -> Result<Option<Toolbox>, Error> {
        let Some(starting) = starting else {
            return Ok(None);
        };
        if starting.are_awaited() {
            target.open_ahead(self.settings);
        }
        let notes = &self.context.notes;
        let mut toolbox = starting.finish(self.settings.typed.yes, notes)?;
        if let Some(toolbox) = &mut toolbox {
            let provider = target.provider();
            toolbox.fit(provider.api.tool_schemas, &provider.name, notes)?;
        }
        Ok(toolbox)
    }
}

/// Advice for remembered tools that fail.
const REMEMBERED: &str =
    "the conversation remembers these tools: -t none drops them, -t NAME chooses others";

/// The most characters of the names of tools that a note shows.
const MAX_NAMES: usize = 200;

/// The tools that the conversation remembers. Without a person at the terminal they are not used, nor where the answer may
/// be known, nor where somebody else may have named them.
fn remembered_tools(
    names: &[String],
    place: &Place,
    settings: &Settings,
    notes: &Notes,
) -> Result<Option<Selection>, Error> {
    if names.is_empty() {
        return Ok(None);
    }
    let reason = if settings.cached != Cached::Off {
        "no answer that needs them can be known".to_owned()
    } else if let Some(file) = place.file_elsewhere() {
        let mut names = on_one_line(&names.join(","));
        if let Some((end, _)) = names.char_indices().nth(MAX_NAMES) {
            names.replace_range(end.., "…");
        }
        let (file, names) = (file.display(), quoted(&names));
        format!("{file} names them, and it may have come from somebody else; -t {names} uses them")
    } else if !io::stdin().is_terminal() {
        let names = names.join(",");
        format!("standard input is not a terminal; -t {names} uses them")
    } else {
        let tools = Selection::parse(names);
        let tools = tools.map_err(|reason| Error::usage(reason).advise(REMEMBERED))?;
        return Ok(Some(tools));
    };
    notes.note(&format!(
        "the tools of this conversation are not used: {reason}"
    ));
    Ok(None)
}
