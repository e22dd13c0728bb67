//! Delivers the answer to the user and to the record: as text, code or JSON, piece by piece or once it is complete.

use std::sync::Arc;

use serde_json::json;

use super::record::{Answer, Record};
use super::run::Run;
use super::screen::Screen;
use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::output::code::{self, Audience};
use crate::output::{Notes, OutputError, Stdout, unless_reader_gone};
use crate::provider::finish::Finish;
use crate::provider::kept::MAX_KEPT;
use crate::provider::reply::{Piece, Reply};
use crate::server::call::CallEnd;
use crate::session::save::Saved;
use crate::text::escape;

/// An answer on its way to the user and to the record.
pub struct Delivery {
    screen: Arc<Screen>,
    /// Each piece is printed as it comes, not the answer once it is complete.
    shows_pieces: bool,
    record: Arc<Record>,
    notes: Notes,
}

impl Delivery {
    /// With tools, only the text after the last calls is the answer. So a pipe or a file gets no text before the end.
    pub fn new(run: &Run, context: &Context) -> Result<Delivery, Error> {
        let mut stdout = Stdout::open(run.notes.terminal())?;
        let mut shows_pieces = false;
        if run.prints_prose() {
            stdout.format(context.look(&run.settings.values));
            let shows_steps = run.toolbox.is_none() || stdout.is_terminal;
            shows_pieces = shows_steps && !run.settings.typed.no_stream;
        }
        let screen = Screen::new(stdout);
        let shown = Arc::clone(&screen);
        run.record.save_on_signal(move || drop(shown.end()));
        Ok(Delivery {
            screen,
            shows_pieces,
            record: Arc::clone(&run.record),
            notes: run.notes.clone(),
        })
    }

    /// Records a piece of the answer, and shows it if the answer is printed as it arrives.
    pub fn take(&self, mut piece: Piece) -> Result<(), OutputError> {
        let is_kept = self.record.push(&mut piece);
        let text = &piece.text;
        if !is_kept && !self.shows_pieces {
            return Err(too_long());
        }
        if text.is_empty() || !self.shows_pieces {
            return Ok(());
        }
        self.notes.spinner().stop();
        self.screen.show(text)
    }

    /// Ends the text before calls, which are about to run.
    pub fn end_text(&self) -> Result<(), OutputError> {
        self.notes.spinner().stop();
        if self.shows_pieces {
            self.screen.end()?;
        }
        Ok(())
    }

    /// Whether a person watches the run.
    pub fn is_watched(&self) -> bool {
        self.shows_pieces && self.screen.is_terminal
    }

    /// Saves what has come, prints the rest, and returns how the answer ended.
    pub fn finish(&self, end: Result<(), CallEnd>, reply: &Reply, run: &Run) -> Result<(), Error> {
        self.notes.spinner().stop();
        match end {
            Ok(()) => self.finish_complete(reply, run),
            Err(CallEnd::Output(OutputError::TooLong(error))) => Err(error),
            Err(CallEnd::Output(error)) => {
                let breaks_off = !reply.is_complete();
                self.record.save(breaks_off, reply.flaw());
                unless_reader_gone(Err(error))
            }
            Err(CallEnd::Failed(failed)) => {
                // A failure to end the line must not hide what went wrong before.
                let _ = self.screen.end();
                // The finish reason keeps a blocked exchange from being sent again.
                let finish = match reply.finished() {
                    Some(Finish::Blocked(word)) => Some(word.as_str()),
                    _ => None,
                };
                let is_blank = self.record.answer().is_blank();
                let saved = self.record.save(true, finish);
                if is_blank {
                    return Err(failed.error);
                }
                Err(advise_last(failed.error, &saved))
            }
        }
    }

    /// Does the same for an answer that came to its end, though perhaps to a limit.
    fn finish_complete(&self, reply: &Reply, run: &Run) -> Result<(), Error> {
        let answer = self.record.answer().clone();
        // Text and its last newline do not wait for the disk.
        let mut printed = if run.prints_prose() && !self.shows_pieces {
            self.screen.print(&answer.text)
        } else {
            self.screen.end()
        };
        let saved = self.record.save(false, reply.flaw());
        let result = check_complete(reply);
        // Nobody must run half a script, or read half an object.
        let is_code_to_run = run.settings.typed.extract && !self.screen.is_terminal;
        if let Err(mut error) = result.clone()
            && (is_code_to_run || run.shape.is_some())
        {
            error.kind = ErrorKind::Withheld;
            return Err(advise_last(error, &saved));
        }
        if !run.prints_prose() {
            let mut excerpt = self.excerpt(&answer.text, reply, run, &saved)?;
            if run.settings.typed.json {
                excerpt = as_json(&excerpt, &answer, reply, run, &saved);
            }
            printed = self.screen.print(&excerpt);
        }
        match printed {
            Ok(()) => result,
            failed => unless_reader_gone(failed),
        }
    }

    /// The part of the answer that is to be printed.
    fn excerpt(
        &self,
        answer: &str,
        reply: &Reply,
        run: &Run,
        saved: &Saved,
    ) -> Result<String, Error> {
        if let Some(shape) = &run.shape {
            let mut json = shape.find_in(answer);
            if json.is_err() {
                // Before a search, or in an earlier message, the model may say what it looks for.
                json = shape.find_in(reply.last_part(answer));
            }
            return json.map(str::to_owned).map_err(|misfit| {
                let error = Error::new(ErrorKind::Misshapen, misfit.to_string());
                advise_last(error, saved)
            });
        }
        if !run.settings.typed.extract {
            return Ok(answer.to_owned());
        }
        let audience = Audience::of_stdout(self.screen.is_terminal);
        let conversation = saved.id.as_ref().map(|_| saved.option.as_str());
        let code = code::extract(answer, audience);
        let code = code.map_err(|reason| reason.to_error(conversation))?;
        let terminal = self.notes.terminal();
        if !terminal.fills_command_line {
            return Ok(code);
        }
        let line = escape::command_line(&code, terminal.charset());
        line.map(str::to_owned)
            .map_err(|reason| Error::new(ErrorKind::NoCode, reason))
    }
}

/// Adds how to see the answer anyway, if it was saved.
fn advise_last(error: Error, saved: &Saved) -> Error {
    if saved.id.is_none() {
        return error;
    }
    let option = &saved.option;
    error.advise_also(format!("q --last{option} prints the answer as it came"))
}

/// The JSON output: the part of the answer that is printed, and how it came about.
fn as_json(excerpt: &str, answer: &Answer, reply: &Reply, run: &Run, saved: &Saved) -> String {
    let sources = &answer.sources.list;
    let mut object = json!({
        "answer": excerpt,
        "provider": run.target.provider().name,
        "model": run.model,
        "finish": reply.finished().map_or("stop", Finish::reported),
        "usage": answer.usage,
        "id": saved.id,
        "session": saved.path.as_ref().map(|path| path.to_string_lossy()),
        "messages_sent": run.window.messages.len(),
    });
    if run.progress.is_known {
        object["cached"] = true.into();
    }
    if run.settings.typed.web || !sources.is_empty() {
        object["sources"] = json!(sources);
    }
    if run.toolbox.is_some() {
        let mut calls = Vec::new();
        for call in answer.steps.iter().flat_map(|step| &step.calls) {
            let arguments = call.json_arguments();
            calls.push(json!({"name": call.name, "arguments": arguments, "error": call.is_error}));
        }
        object["rounds"] = answer.steps.len().into();
        object["tool_calls"] = calls.into();
    }
    object.to_string()
}

/// An error for an answer that is or may be incomplete.
fn check_complete(reply: &Reply) -> Result<(), Error> {
    let message = match reply.finished() {
        Some(Finish::Limit(word)) => format!(
            "the answer is incomplete: it reached the token limit ({word}); a higher max_tokens (Q_MAX_TOKENS), or fewer \
             --messages, may help"
        ),
        None | Some(Finish::Complete(_)) => return Ok(()),
        // One that was blocked or failed can only be a known answer whose file somebody has edited.
        Some(finish) => {
            let word = finish.word();
            format!("the answer may be incomplete: it ended with “{word}”")
        }
    };
    Err(Error::new(ErrorKind::Incomplete, message))
}

/// The error for an answer that cannot be kept until it is complete.
fn too_long() -> OutputError {
    let message =
        format!("the answer has more than {MAX_KEPT} bytes, so it is neither printed nor saved");
    let error = Error::new(ErrorKind::Output, message);
    OutputError::TooLong(error.advise(
        "without -x, -j, --schema and --no-stream, and in a pipe without tools, it is printed as it comes",
    ))
}
