//! Finishes an answer: saves it, prints what is not yet printed, and notes what belongs below it.

use serde_json::{Value, json};

use super::answer::Answer;
use super::answer_form::{Recipient, advise_last};
use super::dialogue::Dialogue;
use super::printer::{AnswerFailure, Printing};
use super::record::AnswerEnd;
use super::run::Run;
use super::verdict::Verdict;
use crate::error::{Error, ErrorKind};
use crate::output::code::Audience;
use crate::output::{source_lines, unless_reader_gone};
use crate::provider::finish::Finish;
use crate::provider::reply::{Reply, note_of_images};
use crate::provider::request::LimitOrigin;
use crate::provider::text_calls::TextCall;
use crate::secret::{self, Secrets};
use crate::session::save::SaveOutcome;
use crate::shape::ItemFault;
use crate::text::one_line::on_one_line;

/// Advice where a server has passed on a call as text.
const PARSE_CALLS: &str = "choose another model with -m, ask without tools (-t none), \
    or start a server of your own with its parser for tool calls: llama-server --jinja, \
    vllm serve --enable-auto-tool-choice --tool-call-parser NAME";

/// The words of servers for an answer that has filled the model's context, which a higher limit does not widen.
const FULL_CONTEXT: &[&str] = &["model_length", "model_context_window_exceeded"];

/// Advice where a model calls a tool, as text, when it has to answer.
const MORE_ROUNDS: &str = "allow more rounds of calls with rounds (Q_ROUNDS)";

/// The part of a complete answer that was asked for.
struct Excerpt {
    /// The text that is printed.
    text: String,
    /// The answer to the question whether a statement is true, if that was asked.
    verdict: Option<Verdict>,
}

/// The last reply of an answer.
pub struct LastReply {
    pub reply: Reply,
    /// The call that the answer has in its text, so that it did not run.
    pub called_in_text: Option<TextCall>,
    /// The model that gave the answer, if it is a cached one.
    pub cached_from: Option<String>,
}

impl From<Reply> for LastReply {
    fn from(reply: Reply) -> LastReply {
        LastReply {
            reply,
            called_in_text: None,
            cached_from: None,
        }
    }
}

/// The end of an answer, with its last reply.
pub struct Ending<'a> {
    run: &'a Run<'a>,
    last: &'a LastReply,
    dialogue: &'a mut Dialogue,
}

impl<'a> Ending<'a> {
    pub fn new(run: &'a Run<'a>, last: &'a LastReply, dialogue: &'a mut Dialogue) -> Ending<'a> {
        Ending {
            run,
            last,
            dialogue,
        }
    }

    /// Prints the rest of the answer and saves it. The notes about it come after its last line.
    pub fn conclude(self, end: Result<(), AnswerFailure>) -> Result<(), Error> {
        let run = self.run;
        if let Some(toolbox) = &mut self.dialogue.toolbox {
            toolbox.report_servers(run.notes);
        }
        let has_output = !matches!(
            end,
            Err(AnswerFailure::Unprinted(_) | AnswerFailure::TooLong(_))
        );
        let secrets = Secrets::from_iter(&run.target.known_key());
        let result = self.save_and_print(end, &secrets).map_err(|mut error| {
            // It may quote the answer.
            error.redact(&secrets);
            error
        });

        let state = run.record.lock();
        let sources = source_lines(&state.answer.sources.list);
        let failed_searches = failed_search_lines(&state.answer.failed_searches);
        let images = state.answer.images;
        let is_blank = state.answer.is_blank();
        drop(state);
        if has_output {
            let mut lines = failed_searches;
            lines.extend(note_of_images(images).filter(|_| !is_blank));
            lines.extend(sources);
            run.notes.note_lines(lines);
        }
        let window = &self.dialogue.window;
        window.report_beyond_model(&run.record.question, run.notes);
        let rounds = run.settings.values.rounds;
        // Where its last reply breaks off, rounds are not why.
        if self.dialogue.must_answer() && self.last.reply.end.is_complete() {
            run.notes.note(&format!(
                "the model had to answer, because rounds = {rounds} allows no more calls"
            ));
        }
        result
    }

    /// Saves what has come, prints the rest, and returns how the answer ended.
    fn save_and_print(
        &self,
        end: Result<(), AnswerFailure>,
        secrets: &Secrets,
    ) -> Result<(), Error> {
        let Ending { run, last, .. } = self;
        run.notes.spinner().stop();
        match end {
            Ok(()) => self.print_complete(secrets),
            Err(AnswerFailure::TooLong(error)) => Err(error),
            Err(AnswerFailure::Misfit(fault)) => {
                let saved = run.record.save(AnswerEnd::of_reply(&last.reply));
                Err(refused(&last.reply, &saved).unwrap_or_else(|| misshapen(&fault, &saved)))
            }
            Err(AnswerFailure::Unprinted(error)) => {
                run.record.save(AnswerEnd::of_reply(&last.reply));
                unless_reader_gone(Err(error))
            }
            Err(AnswerFailure::Failed(failed)) => {
                // A failure to end the line must not hide what went wrong before.
                let _ = run.printer.screen.end();
                let is_blank = run.record.lock().answer.is_blank();
                // The finish reason keeps a blocked exchange from being sent again.
                let blocked = last.reply.end.blocked();
                let saved = run.record.save(AnswerEnd::BrokenOff { finish: blocked });
                if is_blank {
                    return Err(failed.error);
                }
                let error = advise_last(failed.error, &saved);
                let again = run.again.as_ref().filter(|_| saved.id.is_some());
                Err(
                    match again.and_then(|again| again.after_failure(&saved.option)) {
                        Some(command) if blocked.is_none() => {
                            error.advise_also(format!("run {command} to ask again"))
                        }
                        _ => error,
                    },
                )
            }
        }
    }

    /// Saves an answer that came to its end, though perhaps to a limit, prints the rest, and returns how it ended.
    fn print_complete(&self, secrets: &Secrets) -> Result<(), Error> {
        let Ending { run, last, .. } = self;
        // Text and its last newline do not wait for the disk.
        let printed = match run.printer.printing {
            Printing::Live => run.printer.screen.end(),
            Printing::Whole => {
                let text = run.record.lock().answer.text.clone();
                run.printer.screen.print(&text)
            }
            Printing::Items | Printing::Excerpt => Ok(()),
        };
        let saved = run.record.save(AnswerEnd::Complete {
            finish: last.reply.end.incomplete_reason(),
        });
        match (run.printer.printing, printed) {
            (Printing::Items | Printing::Excerpt, _) => self.print_excerpt(&saved, secrets),
            (Printing::Live | Printing::Whole, Ok(())) => self.check_complete(),
            (Printing::Live | Printing::Whole, failed) => unless_reader_gone(failed),
        }
    }

    /// Prints the part of a saved answer that was asked for, unless it is withheld because the answer is incomplete. Returns how
    /// the answer ended.
    fn print_excerpt(&self, saved: &SaveOutcome, secrets: &Secrets) -> Result<(), Error> {
        let run = self.run;
        let is_terminal = run.printer.screen.is_terminal;
        let incomplete = match self.check_complete() {
            Err(error) if run.output.withholds_incomplete(is_terminal) => {
                return Err(withheld(error, saved));
            }
            complete => complete.err(),
        };
        let excerpt = run.record.read_saved(|answer| self.excerpt(answer, saved));
        let Excerpt { text, verdict } = match excerpt {
            Ok(excerpt) => excerpt,
            Err(lacks) => return Err(self.reason_without_excerpt(lacks, incomplete, saved)),
        };
        let printed = run.printer.screen.print(&text);
        if let Some(verdict) = verdict {
            unless_reader_gone(printed)?;
            return self.report_verdict(&verdict, secrets);
        }
        match incomplete {
            Some(error) if printed.is_ok() => Err(error),
            _ => unless_reader_gone(printed),
        }
    }

    /// Returns why nothing of an answer is printed that `lacks` what was asked for.
    fn reason_without_excerpt(
        &self,
        lacks: Error,
        incomplete: Option<Error>,
        saved: &SaveOutcome,
    ) -> Error {
        // What it lacks may be what did not come.
        if let Some(error) = incomplete {
            return withheld(error, saved);
        }
        if lacks.kind != ErrorKind::Misshapen {
            return lacks;
        }
        refused(&self.last.reply, saved).unwrap_or(lacks)
    }

    /// Refuses an answer that is or may be incomplete.
    fn check_complete(&self) -> Result<(), Error> {
        let Some(TextCall { tool, follows_text }) = &self.last.called_in_text else {
            return self.check_end();
        };
        let advice = if self.dialogue.must_answer() {
            MORE_ROUNDS
        } else {
            PARSE_CALLS
        };
        let is_call = if *follows_text {
            "it ends with a call"
        } else {
            "it is a call"
        };
        let message = format!(
            "the answer is incomplete: {is_call} of {tool} that came as text, so the tool did not run"
        );
        Err(Error::new(ErrorKind::Incomplete, message).advise(advice))
    }

    /// Refuses an answer that is or may be incomplete by what the provider says of its end.
    fn check_end(&self) -> Result<(), Error> {
        let end = &self.last.reply.end;
        if end.is_normal() {
            return Ok(());
        }
        let word = end.finish().map_or("", |finish| &finish.word);
        let message = if end.has_reached_limit() {
            let limit = LimitOrigin::of_user(&self.run.settings.options);
            let mut help = format!("a higher {limit}");
            if FULL_CONTEXT
                .iter()
                .any(|full| word.eq_ignore_ascii_case(full))
            {
                help = "less input".to_owned();
            }
            if !self.dialogue.window.messages.is_empty() {
                help += ", or fewer --messages,";
            }
            format!(
                "the answer is incomplete: it reached the token limit ({word}); {help} may help"
            )
        } else {
            // An answer that was blocked or failed can only be a cached one whose file somebody has edited.
            let reason = end.shown_reason();
            format!("the answer may be incomplete: it ended with “{word}”{reason}")
        };
        Err(Error::new(ErrorKind::Incomplete, message))
    }

    /// Returns the text that is printed of an answer that has been saved.
    fn excerpt(&self, answer: &Answer, saved: &SaveOutcome) -> Result<Excerpt, Error> {
        let run = self.run;
        let recipient = Recipient {
            audience: Audience::of_stdout(run.printer.screen.is_terminal),
            terminal: run.notes.terminal(),
            saved,
        };
        let last_part = self.last.reply.answer.last_part(&answer.text);
        let excerpt = run.output.excerpt(&answer.text, last_part, &recipient)?;
        let verdict = run.output.verdict(&excerpt);
        let text = if run.output.json {
            let mut object = self.as_json(&excerpt, answer, saved);
            if let Some(verdict) = &verdict {
                object["is"] = verdict.is_true.into();
                object["reason"] = verdict.reason.as_str().into();
            }
            object.to_string()
        } else if verdict.is_some() {
            String::new()
        } else if let Some(items) = run.printer.remaining_items(&excerpt) {
            items.map_err(|fault| misshapen(&fault, saved))?
        } else {
            excerpt.into_owned()
        };
        Ok(Excerpt { text, verdict })
    }

    /// Returns what a verdict means for the exit status. Its reason is a detail for users who gave `-v`.
    fn report_verdict(&self, verdict: &Verdict, secrets: &Secrets) -> Result<(), Error> {
        if let Some(words) = verdict.in_words() {
            let detail = || secret::redact(&words, secrets);
            self.run.notes.detail(detail);
        }
        verdict.to_result()
    }

    /// Returns the JSON output: the part of the answer that is printed, and how it came about.
    fn as_json(&self, excerpt: &str, answer: &Answer, saved: &SaveOutcome) -> Value {
        let Ending {
            run,
            last,
            dialogue,
        } = self;
        let sources = &answer.sources.list;
        let mut object = json!({
            "answer": excerpt,
            "provider": run.target.provider().name,
            "model": last.cached_from.as_ref().unwrap_or(&dialogue.model),
            "finish": last.reply.end.finish().map_or("stop", Finish::reported),
            "usage": answer.usage,
            "id": saved.id,
            "session": saved.path.as_ref().map(|path| path.to_string_lossy()),
            "messages_sent": dialogue.window.messages.len(),
        });
        if dialogue.window.messages_left_out() > 0 {
            object["messages_left_out"] = dialogue.window.messages_left_out().into();
        }
        if last.cached_from.is_some() {
            object["cached"] = true.into();
        }
        if run.settings.arguments.web || !sources.is_empty() {
            object["sources"] = json!(sources);
        }
        if dialogue.toolbox.is_some() {
            let mut calls = Vec::new();
            for call in answer.steps.iter().flat_map(|step| &step.calls) {
                let arguments = call.json_arguments();
                calls.push(
                    json!({"name": call.name, "arguments": arguments, "error": call.is_error}),
                );
            }
            object["rounds"] = answer.steps.len().into();
            object["tool_calls"] = calls.into();
        }
        object
    }
}

/// Returns the error for an answer that is or may be incomplete, if what was asked for is not printed.
fn withheld(incomplete: Error, saved: &SaveOutcome) -> Error {
    let error = Error {
        kind: ErrorKind::Withheld,
        ..incomplete
    };
    advise_last(error, saved)
}

/// Returns the error for a list whose items do not fit.
fn misshapen(fault: &ItemFault, saved: &SaveOutcome) -> Error {
    advise_last(Error::new(ErrorKind::Misshapen, fault.to_string()), saved)
}

/// Returns the error for words of a model that refuses to answer, where something else was asked for.
fn refused(reply: &Reply, saved: &SaveOutcome) -> Option<Error> {
    let message = format!("the model refuses{}", reply.end.shown_reason());
    let error = Error::new(ErrorKind::Misshapen, message);
    reply.end.has_refused().then(|| advise_last(error, saved))
}

/// Returns a line for each of the provider's searches that failed.
fn failed_search_lines(reasons: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    for reason in reasons {
        let mut line = "a web search failed".to_owned();
        if !reason.is_empty() {
            line += &format!(": {}", on_one_line(reason));
        }
        lines.push(line);
    }
    lines
}
