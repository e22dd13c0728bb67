//! The tools of a question: those of `-t`, else those that its conversation remembers.

use std::io::{self, IsTerminal};

use super::place::Place;
use super::plan::Plan;
use crate::context::Context;
use crate::error::Error;
use crate::server::target::Target;
use crate::settings::{Cached, Settings};
use crate::text::one_line::on_one_line;
use crate::text::shell_words::quoted;
use crate::tools::{ProcessGroups, Selection, Toolbox};

/// Advice for remembered tools that fail.
const REMEMBERED: &str =
    "drop the tools that the conversation remembers with -t none, or choose others with -t NAME";

/// The most characters of the names of tools that a note shows.
const MAX_NAMES: usize = 200;

/// The tools of a question, which start as soon as it is known which these are.
pub struct Tools<'a> {
    settings: &'a Settings,
    context: &'a Context,
    groups: &'a ProcessGroups,
    selection: Option<Selection>,
    toolbox: Option<Toolbox>,
    /// Advice in case they fail.
    advice: Option<&'static str>,
}

impl<'a> Tools<'a> {
    /// Starts those of `-t`, in `groups`.
    pub fn start(
        plan: &Plan<'a>,
        context: &'a Context,
        groups: &'a ProcessGroups,
    ) -> Result<Tools<'a>, Error> {
        let mut tools = Tools {
            settings: plan.settings,
            context,
            groups,
            selection: plan.selection.clone(),
            toolbox: None,
            advice: None,
        };
        tools.start_selected()?;
        Ok(tools)
    }

    /// Waits until the tools can be offered to the server: those of `-t`, else those that the conversation remembers. `None` if
    /// there are none.
    pub fn ready(mut self, place: &Place, target: &Target) -> Result<Option<Toolbox>, Error> {
        self.start_remembered(place)?;
        self.wait(target)
    }

    /// Starts those that the conversation remembers, unless `-t` is given.
    fn start_remembered(&mut self, place: &Place) -> Result<(), Error> {
        if self.selection.is_some() {
            return Ok(());
        }
        self.selection = self.remembered(place)?;
        self.advice = Some(REMEMBERED);
        self.start_selected()
    }

    fn start_selected(&mut self) -> Result<(), Error> {
        let selection = self.selection.as_ref();
        if selection.is_some() {
            let started = Toolbox::start(selection, self.settings, self.context, self.groups);
            self.toolbox = Some(started.map_err(|error| self.advise(error))?);
        }
        Ok(())
    }

    fn wait(mut self, target: &Target) -> Result<Option<Toolbox>, Error> {
        let Some(mut toolbox) = self.toolbox.take() else {
            return Ok(None);
        };
        if toolbox.is_starting() {
            target.open_ahead(self.settings);
        }
        let notes = &self.context.notes;
        let provider = target.provider();
        let known = toolbox.wait(notes);
        known
            .and_then(|()| toolbox.fit(provider.api.tool_schemas, &provider.name, notes))
            .map_err(|error| self.advise(error))?;
        Ok((!toolbox.is_empty()).then_some(toolbox))
    }

    fn advise(&self, error: Error) -> Error {
        match self.advice {
            Some(advice) => error.advise_also(advice),
            None => error,
        }
    }

    /// Returns the tools that the conversation remembers. Without a person at the terminal they are not used, nor where the
    /// answer may be cached, nor where somebody else may have named them.
    fn remembered(&self, place: &Place) -> Result<Option<Selection>, Error> {
        let names = match place.intent.continued() {
            Some(conversation) if !conversation.tools.is_empty() => &conversation.tools,
            _ => return Ok(None),
        };
        let reason = if self.settings.caching != Cached::Off {
            "answers that use tools are not cached".to_owned()
        } else if let Some(file) = &place.file_elsewhere {
            let mut names = on_one_line(&names.join(","));
            if let Some((end, _)) = names.char_indices().nth(MAX_NAMES) {
                names.replace_range(end.., "…");
            }
            let (file, names) = (file.display(), quoted(&names));
            format!(
                "{file} names them, and it may have come from somebody else; -t {names} uses them"
            )
        } else if !io::stdin().is_terminal() {
            let names = names.join(",");
            format!("standard input is not a terminal; -t {names} uses them")
        } else {
            let tools = Selection::parse(names);
            let tools = tools.map_err(|reason| Error::usage(reason).advise(REMEMBERED))?;
            return Ok(Some(tools));
        };
        self.context.notes.note(&format!(
            "the tools of this conversation are not used: {reason}"
        ));
        Ok(None)
    }
}
