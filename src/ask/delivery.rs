//! Delivers the answer to the user and to the record: as text, code or JSON, piece by piece or once it is complete.

use std::sync::Arc;

use serde_json::{Value, json};

use super::record::Record;
use super::screen::Screen;
use crate::error::{Error, ErrorKind};
use crate::flags::Arguments;
use crate::interrupt::{Interrupts, When};
use crate::message::{Source, Step, ToolRun, Usage};
use crate::output::{Look, Notes, OutputError, Stdout, code};
use crate::provider::finish::Finish;
use crate::provider::kept::MAX_KEPT;
use crate::provider::reply::{Piece, Reply};
use crate::server::call::CallEnd;
use crate::session::save::Saved;
use crate::shape::Shape;

/// How the answer is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Each piece as it arrives.
    Pieces,
    /// Once it is complete, even if the server streams.
    Complete,
    /// Once it is complete, as one line of JSON.
    Json,
}

/// Which part of the answer is printed.
#[derive(Clone, PartialEq)]
enum Excerpt {
    All,
    /// The contents of its code blocks.
    Code,
    /// Its JSON, which must have this shape.
    Json(Shape),
}

/// What is printed, and how.
#[derive(Clone)]
pub struct Output {
    form: Form,
    excerpt: Excerpt,
    /// How prose looks on a terminal.
    look: Look,
}

impl Output {
    pub fn new(arguments: &Arguments, shape: Option<Shape>, look: Look) -> Output {
        let excerpt = match shape {
            Some(shape) => Excerpt::Json(shape),
            None if arguments.extract => Excerpt::Code,
            None => Excerpt::All,
        };
        let form = match excerpt {
            _ if arguments.json => Form::Json,
            Excerpt::All if !arguments.no_stream => Form::Pieces,
            _ => Form::Complete,
        };
        let is_prose = excerpt == Excerpt::All && form != Form::Json;
        let look = if is_prose { look } else { Look::default() };
        Output {
            form,
            excerpt,
            look,
        }
    }
}

/// What is known of an answer at its end, besides its text.
pub struct Summary {
    pub provider: String,
    pub model: String,
    pub role: Option<String>,
    /// How many messages of the conversation went with the question.
    pub messages_sent: usize,
    /// The calls that led to the answer; `None` where no tools were offered.
    pub steps: Option<Vec<Step>>,
    /// The usage of all requests together.
    pub usage: Option<Usage>,
    /// `None`: the web was not offered, and no source has come.
    pub sources: Option<Vec<Source>>,
    /// The answer was known.
    pub is_known: bool,
}

/// An answer on its way to the user and to the record.
pub struct Delivery {
    screen: Arc<Screen>,
    output: Output,
    pub record: Arc<Record>,
    interrupts: Arc<Interrupts>,
    notes: Notes,
}

impl Delivery {
    /// With tools, only the text after the last calls is the answer. So a pipe or a file gets no text before the end.
    pub fn new(
        mut output: Output,
        with_tools: bool,
        record: Record,
        interrupts: Arc<Interrupts>,
        notes: &Notes,
    ) -> Result<Delivery, Error> {
        let mut stdout = Stdout::open().map_err(unwritable)?;
        stdout.format(output.look);
        if with_tools && output.form == Form::Pieces && !stdout.is_terminal() {
            output.form = Form::Complete;
        }
        let record = Arc::new(record);
        let screen = Screen::new(stdout);
        let closed = Arc::clone(&record);
        interrupts.before_the_end(When::AtOnce, move || closed.close());
        let saved = Arc::clone(&record);
        let shown = Arc::clone(&screen);
        interrupts.before_the_end(When::Then, move || {
            saved.save_interrupted(move || drop(shown.end()));
        });
        Ok(Delivery {
            screen,
            output,
            record,
            interrupts,
            notes: notes.clone(),
        })
    }

    /// Records a piece of the answer, and shows it if the answer is printed as it arrives.
    pub fn take(&mut self, piece: Piece) -> Result<(), OutputError> {
        let text = &piece.text;
        let shows_pieces = self.output.form == Form::Pieces;
        let is_kept = self.record.push(text, piece.is_last, piece.sources);
        if !is_kept && !shows_pieces {
            return Err(OutputError::TooLong);
        }
        if text.is_empty() {
            return Ok(());
        }
        if self.record.saves() {
            // Until now there was nothing to save, so a signal needed no handler.
            self.interrupts.install();
        }
        if !shows_pieces {
            return Ok(());
        }
        self.notes.spinner().stop();
        self.screen.show(text)
    }

    /// Ends the text before calls, which are about to run. Returns that text.
    pub fn begin_step(&mut self) -> Result<String, OutputError> {
        self.notes.spinner().stop();
        // A signal must also end the programs that are about to run.
        self.interrupts.install();
        if self.output.form == Form::Pieces {
            self.screen.end()?;
        }
        Ok(self.record.begin_step())
    }

    /// Whether a person watches the run.
    pub fn is_watched(&self) -> bool {
        self.output.form == Form::Pieces && self.screen.is_terminal()
    }

    /// Saves what has come, prints the rest, and returns how the answer ended.
    pub fn finish(
        self,
        end: Result<(), CallEnd>,
        reply: &Reply,
        summary: &Summary,
    ) -> Result<(), Error> {
        self.notes.spinner().stop();
        match end {
            Ok(()) => self.finish_complete(reply, summary),
            Err(CallEnd::Output(OutputError::TooLong)) => Err(too_long()),
            Err(CallEnd::Output(error)) => {
                let breaks_off = !reply.is_complete();
                let finish = incomplete(reply);
                self.record.save(breaks_off, finish, summary.usage);
                unless_reader_gone(error)
            }
            Err(CallEnd::Failed(failed)) => {
                // A failure to end the line must not hide what went wrong before.
                let _ = self.screen.end();
                // The finish reason keeps a blocked exchange from being sent again.
                let finish = match reply.finished() {
                    Some(Finish::Blocked(word)) => Some(word.as_str()),
                    _ => None,
                };
                let has_begun = !self.record.is_blank();
                let saved = self.record.save(true, finish, summary.usage);
                if !has_begun {
                    return Err(failed.error);
                }
                Err(self.advise_last(failed.error, "the incomplete answer", &saved))
            }
        }
    }

    /// Does the same for an answer that came to its end, though perhaps to a limit.
    fn finish_complete(&self, reply: &Reply, summary: &Summary) -> Result<(), Error> {
        let is_all = self.output.excerpt == Excerpt::All;
        // In this form, the pieces are printed already.
        let answer = if self.output.form == Form::Pieces {
            String::new()
        } else {
            self.record.text()
        };
        // Text and its last newline do not wait for the disk.
        let mut printed = if self.output.form == Form::Complete && is_all {
            self.screen.print(&answer)
        } else {
            self.screen.end()
        };
        let finish = incomplete(reply);
        let saved = self.record.save(false, finish, summary.usage);
        let result = match check_complete(reply) {
            Err(mut error) if self.prints_complete_answers_only() => {
                error.kind = ErrorKind::Withheld;
                return Err(self.advise_last(error, "the incomplete answer", &saved));
            }
            result => result,
        };
        let excerpt = self.excerpt(answer, reply, &saved)?;
        if self.output.form == Form::Json {
            let object = as_json(&excerpt, reply, summary, &saved);
            printed = self.screen.print(&object.to_string());
        } else if !is_all {
            printed = self.screen.print(&excerpt);
        }
        match printed {
            Ok(()) => result,
            Err(error) => unless_reader_gone(error),
        }
    }

    /// Whether nothing is printed of an incomplete answer: nobody must run half a script, or read half an object.
    fn prints_complete_answers_only(&self) -> bool {
        match self.output.excerpt {
            Excerpt::All => false,
            Excerpt::Code => !self.screen.is_terminal(),
            Excerpt::Json(_) => true,
        }
    }

    /// The part of the answer that is to be printed.
    fn excerpt(&self, answer: String, reply: &Reply, saved: &Saved) -> Result<String, Error> {
        match &self.output.excerpt {
            Excerpt::All => Ok(answer),
            Excerpt::Code => code::extract(&answer).map_err(|reason| {
                let error = Error::new(ErrorKind::NoCode, reason);
                let what = match incomplete(reply) {
                    None => "the complete answer",
                    Some(_) => "the incomplete answer",
                };
                self.advise_last(error, what, saved)
            }),
            Excerpt::Json(shape) => {
                let mut json = shape.find_in(&answer);
                if json.is_err() {
                    // Before a search, or in an earlier message, the model may say what it looks for.
                    json = shape.find_in(reply.last_part(&answer));
                }
                json.map(str::to_owned).map_err(|reason| {
                    let error = Error::new(
                        ErrorKind::Misshapen,
                        format!(
                            "the answer does not have the shape that --schema asks for: {reason}"
                        ),
                    );
                    self.advise_last(error, "the answer as it came", saved)
                })
            }
        }
    }

    /// Adds how to see the answer anyway, if it was saved.
    fn advise_last(&self, error: Error, what: &str, saved: &Saved) -> Error {
        if saved.id.is_none() {
            return error;
        }
        let option = &saved.option;
        error.advise_also(format!("q --last{option} prints {what}"))
    }
}

/// The JSON output.
fn as_json(answer: &str, reply: &Reply, summary: &Summary, saved: &Saved) -> Value {
    let mut object = json!({
        "answer": answer,
        "provider": summary.provider,
        "model": summary.model,
        "finish": reply.finished().map_or("stop", Finish::reported),
        "usage": summary.usage,
        "id": saved.id,
        "session": saved.path.as_ref().map(|path| path.to_string_lossy()),
        "messages_sent": summary.messages_sent,
    });
    if let Some(role) = &summary.role {
        object["role"] = role.as_str().into();
    }
    if summary.is_known {
        object["cached"] = true.into();
    }
    if let Some(sources) = &summary.sources {
        object["sources"] = json!(sources);
    }
    if let Some(steps) = &summary.steps {
        let runs = steps.iter().flat_map(|step| &step.calls);
        object["rounds"] = steps.len().into();
        object["tool_calls"] = runs.map(tool_call).collect();
    }
    object
}

/// A call in the JSON output.
fn tool_call(run: &ToolRun) -> Value {
    json!({"name": run.name, "arguments": run.json_arguments(), "error": run.is_error})
}

/// The provider's finish reason for an answer that is or may be incomplete.
pub fn incomplete(reply: &Reply) -> Option<&str> {
    match reply.finished()? {
        Finish::Limit(word) | Finish::Other(word) => Some(word),
        Finish::Complete(_) | Finish::Failed(_) | Finish::Blocked(_) => None,
    }
}

/// The finish reasons of Anthropic and Mistral for an answer that fills the model's context. Raising `max_tokens` would
/// not help.
const CONTEXT_IS_FULL: &[&str] = &["model_context_window_exceeded", "model_length"];

/// An error for an answer that is or may be incomplete.
fn check_complete(reply: &Reply) -> Result<(), Error> {
    let message = match reply.finished() {
        Some(Finish::Limit(word)) => {
            let lowercase = word.to_ascii_lowercase();
            let fills_context = CONTEXT_IS_FULL.contains(&lowercase.as_str());
            let remedy = if fills_context {
                "--messages N sends fewer messages"
            } else {
                "max_tokens (Q_MAX_TOKENS) raises it"
            };
            format!("the answer is incomplete: it reached the token limit ({word}); {remedy}")
        }
        Some(Finish::Other(word)) => {
            format!("the answer may be incomplete: it ended with “{word}”")
        }
        _ => return Ok(()),
    };
    Err(Error::new(ErrorKind::Incomplete, message))
}

/// The error for an answer that cannot be kept until it is complete.
fn too_long() -> Error {
    let message =
        format!("the answer has more than {MAX_KEPT} bytes, so it is neither printed nor saved");
    Error::new(ErrorKind::Output, message)
        .advise("without -x, -j, --schema and --no-stream, and in a pipe without tools, it is printed as it comes")
}

/// A reader that has gone has read as much as it wanted.
fn unless_reader_gone(error: OutputError) -> Result<(), Error> {
    match error {
        OutputError::ReaderGone => Ok(()),
        _ => Err(unwritable(error)),
    }
}

fn unwritable(error: OutputError) -> Error {
    Error::new(ErrorKind::Output, error.to_string())
}
