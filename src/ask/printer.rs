//! Prints the answer and records it: as text, code or JSON, piece by piece or once it is complete.

use std::sync::Arc;

use serde_json::{Value, json};

use super::answer_form::{Recipient, advise_last};
use super::dialogue::Dialogue;
use super::record::{Answer, Record};
use super::run::Run;
use super::verdict::Verdict;
use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::output::code::Audience;
use crate::output::{Notes, OutputError, Screen, Stdout, unless_reader_gone};
use crate::provider::finish::Finish;
use crate::provider::kept::MAX_KEPT;
use crate::provider::reply::{Piece, Reply};
use crate::secret::{self, Secrets};
use crate::server::call::CallEnd;
use crate::session::save::Saved;

/// What of an answer is printed, and when.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Printing {
    /// Each piece as it comes.
    Live,
    /// All of it, once it is complete.
    Whole,
    /// What is made of it once it is complete: code, JSON, or JSON about it.
    Excerpt,
}

/// What is made of a complete answer.
struct Excerpt {
    /// What is printed.
    text: String,
    /// What it says about a statement, if it was asked about one.
    verdict: Option<Verdict>,
}

/// Standard output, and the record of what comes.
pub struct Printer {
    screen: Arc<Screen>,
    printing: Printing,
    record: Arc<Record>,
    notes: Notes,
}

impl Printer {
    /// With tools, only the text after the last calls is the answer. So a pipe or a file gets no text before the end.
    pub fn new(run: &Run, has_tools: bool, context: &Context) -> Result<Printer, Error> {
        let mut stdout = Stdout::open(run.notes.terminal())?;
        let shows_steps = !has_tools || stdout.is_terminal;
        let printing = if !run.output.is_text() {
            Printing::Excerpt
        } else if shows_steps && run.output.streams {
            Printing::Live
        } else {
            Printing::Whole
        };
        if printing != Printing::Excerpt {
            stdout.format(context.look(&run.settings.values));
        }
        let screen = Screen::new(stdout);
        let shown = Arc::clone(&screen);
        run.record.save_on_signal(move || drop(shown.end()));
        Ok(Printer {
            screen,
            printing,
            record: Arc::clone(&run.record),
            notes: run.notes.clone(),
        })
    }

    /// Records a piece of the answer, and prints it if the answer is printed as it arrives.
    pub fn take(&self, mut piece: Piece) -> Result<(), OutputError> {
        let is_kept = self.record.push(&mut piece);
        if self.printing != Printing::Live {
            return if is_kept { Ok(()) } else { Err(too_long()) };
        }
        if piece.text.is_empty() {
            return Ok(());
        }
        self.notes.spinner().stop();
        self.screen.show(&piece.text)
    }

    /// Ends the text before calls, which are about to run.
    pub fn end_text(&self) -> Result<(), OutputError> {
        self.notes.spinner().stop();
        match self.printing {
            Printing::Live => self.screen.end(),
            Printing::Whole | Printing::Excerpt => Ok(()),
        }
    }

    /// Whether the text of a reply has been printed once it has come.
    pub fn is_live(&self) -> bool {
        self.printing == Printing::Live
    }

    /// Whether a person watches the run.
    pub fn is_watched(&self) -> bool {
        self.is_live() && self.screen.is_terminal
    }

    /// Saves what has come, prints the rest, and returns how the answer ended.
    pub fn finish(
        &self,
        end: Result<(), CallEnd>,
        reply: &Reply,
        run: &Run,
        dialogue: &Dialogue,
    ) -> Result<(), Error> {
        self.notes.spinner().stop();
        match end {
            Ok(()) => self.finish_complete(reply, run, dialogue),
            Err(CallEnd::Output(OutputError::TooLong(error))) => Err(error),
            Err(CallEnd::Output(error)) => {
                let breaks_off = !reply.end.is_complete();
                self.record.save(breaks_off, reply.end.flaw());
                unless_reader_gone(Err(error))
            }
            Err(CallEnd::Failed(failed)) => {
                // A failure to end the line must not hide what went wrong before.
                let _ = self.screen.end();
                // The finish reason keeps a blocked exchange from being sent again.
                let finish = match reply.end.finish() {
                    Some(Finish::Blocked(word)) => Some(word.as_str()),
                    _ => None,
                };
                let is_blank = self.record.lock().answer.is_blank();
                let saved = self.record.save(true, finish);
                if is_blank {
                    return Err(failed.error);
                }
                Err(advise_last(failed.error, &saved))
            }
        }
    }

    /// Saves an answer that came to its end, though perhaps to a limit, prints the rest, and returns how it ended.
    fn finish_complete(&self, reply: &Reply, run: &Run, dialogue: &Dialogue) -> Result<(), Error> {
        // Text and its last newline do not wait for the disk.
        let mut printed = match self.printing {
            Printing::Live => self.screen.end(),
            Printing::Whole => {
                let text = self.record.lock().answer.text.clone();
                self.screen.print(&text)
            }
            Printing::Excerpt => Ok(()),
        };
        let saved = self.record.save(false, reply.end.flaw());
        let complete = check_complete(reply);
        if self.printing == Printing::Excerpt {
            if let Err(mut error) = complete.clone()
                && run.output.withholds_incomplete(self.screen.is_terminal)
            {
                error.kind = ErrorKind::Withheld;
                return Err(advise_last(error, &saved));
            }
            // A signal must not wait until the excerpt is made.
            let answer = self.record.take_answer();
            let excerpt = self.excerpt(&answer, reply, run, dialogue, &saved);
            self.record.put_back(answer);
            let Excerpt { text, verdict } = excerpt?;
            printed = self.screen.print(&text);
            if let Some(verdict) = verdict {
                unless_reader_gone(printed)?;
                self.report(&verdict, run);
                return verdict.to_result().map_err(|mut error| {
                    error.redact(&Secrets::from_iter(run.target.key()));
                    error
                });
            }
        }
        match printed {
            Ok(()) => complete,
            failed => unless_reader_gone(failed),
        }
    }

    /// What is printed of an answer that has been saved.
    fn excerpt(
        &self,
        answer: &Answer,
        reply: &Reply,
        run: &Run,
        dialogue: &Dialogue,
        saved: &Saved,
    ) -> Result<Excerpt, Error> {
        let recipient = Recipient {
            audience: Audience::of_stdout(self.screen.is_terminal),
            terminal: self.notes.terminal(),
            saved,
        };
        let last_part = reply.answer.last_part(&answer.text);
        let excerpt = run.output.excerpt(&answer.text, last_part, &recipient)?;
        let verdict = run.output.verdict(&excerpt);
        let text = if run.output.json {
            let mut object = as_json(&excerpt, answer, reply, run, dialogue, saved);
            if let Some(verdict) = &verdict {
                object["is"] = verdict.is_true.into();
                object["reason"] = verdict.reason.as_str().into();
            }
            object.to_string()
        } else if verdict.is_some() {
            String::new()
        } else {
            excerpt.into_owned()
        };
        Ok(Excerpt { text, verdict })
    }

    /// Reports the reason of a verdict, for users who gave `-v`.
    fn report(&self, verdict: &Verdict, run: &Run) {
        if let Some(words) = verdict.in_words() {
            let secrets = Secrets::from_iter(run.target.key());
            self.notes.detail(|| secret::redact(&words, &secrets));
        }
    }
}

/// The JSON output: the part of the answer that is printed, and how it came about.
fn as_json(
    excerpt: &str,
    answer: &Answer,
    reply: &Reply,
    run: &Run,
    dialogue: &Dialogue,
    saved: &Saved,
) -> Value {
    let sources = &answer.sources.list;
    let mut object = json!({
        "answer": excerpt,
        "provider": run.target.provider().name,
        "model": dialogue.cached_from.as_ref().unwrap_or(&answer.model),
        "finish": reply.end.finish().map_or("stop", Finish::reported),
        "usage": answer.usage,
        "id": saved.id,
        "session": saved.path.as_ref().map(|path| path.to_string_lossy()),
        "messages_sent": dialogue.window.messages.len(),
    });
    if dialogue.window.left_out() > 0 {
        object["messages_left_out"] = dialogue.window.left_out().into();
    }
    if dialogue.cached_from.is_some() {
        object["cached"] = true.into();
    }
    if run.settings.typed.web || !sources.is_empty() {
        object["sources"] = json!(sources);
    }
    if dialogue.toolbox.is_some() {
        let mut calls = Vec::new();
        for call in answer.steps.iter().flat_map(|step| &step.calls) {
            let arguments = call.json_arguments();
            calls.push(json!({"name": call.name, "arguments": arguments, "error": call.is_error}));
        }
        object["rounds"] = answer.steps.len().into();
        object["tool_calls"] = calls.into();
    }
    object
}

/// An error for an answer that is or may be incomplete.
fn check_complete(reply: &Reply) -> Result<(), Error> {
    let message = match reply.end.finish() {
        Some(Finish::Limit(word)) => format!(
            "the answer is incomplete: it reached the token limit ({word}); a higher max_tokens (Q_MAX_TOKENS), or fewer \
             --messages, may help"
        ),
        None | Some(Finish::Complete(_)) => return Ok(()),
        // One that was blocked or failed can only be a known answer whose file somebody has edited.
        Some(finish) => {
            let word = finish.word();
            let reason = reply.end.shown_reason();
            format!("the answer may be incomplete: it ended with “{word}”{reason}")
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
