//! Delivers the answer to the user, piece by piece or once it is complete, as text, code or JSON; and to the record.

use std::borrow::Cow;
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
use crate::session::commit::Committed;
use crate::session::name::Which;
use crate::shape::Shape;

/// How the answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Each piece as it arrives.
    Text,
    /// Once it is complete; a server may stream though it was not asked to.
    Whole,
    /// Once it is complete, as one line of JSON.
    Json,
}

/// Which part of the answer is printed.
#[derive(Debug, Clone, PartialEq)]
enum Excerpt {
    All,
    /// The contents of its code blocks.
    Code,
    /// Its JSON, which must have this shape.
    Json(Shape),
}

/// What is printed, and how.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Output {
    form: Form,
    excerpt: Excerpt,
    /// How it looks on a terminal.
    look: Look,
}

impl Output {
    /// `look`: how text that is meant to be read looks on a terminal.
    pub(super) fn new(arguments: &Arguments, shape: Option<Shape>, look: Look) -> Output {
        let excerpt = match shape {
            Some(shape) => Excerpt::Json(shape),
            None if arguments.extract => Excerpt::Code,
            None => Excerpt::All,
        };
        let form = match excerpt {
            _ if arguments.json => Form::Json,
            Excerpt::All if !arguments.no_stream => Form::Text,
            _ => Form::Whole,
        };
        let is_prose = excerpt == Excerpt::All && form != Form::Json;
        Output {
            form,
            excerpt,
            look: if is_prose { look } else { Look::default() },
        }
    }
}

/// What is known of an answer at its end, besides its text.
pub(super) struct Summary {
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) role: Option<String>,
    /// How many messages of the conversation went with the question.
    pub(super) messages_sent: usize,
    /// The calls that led to the answer; `None` where no tools were offered.
    pub(super) steps: Option<Vec<Step>>,
    /// The usage of all requests together.
    pub(super) usage: Option<Usage>,
    /// `None`: the web was not offered, and no source has come.
    pub(super) sources: Option<Vec<Source>>,
}

/// Takes the pieces of one answer.
pub(super) struct Delivery {
    screen: Arc<Screen>,
    output: Output,
    pub(super) record: Arc<Record>,
    /// Which conversation the exchange belongs to.
    which: Which,
    interrupts: Arc<Interrupts>,
    notes: Notes,
}

/// The JSON output.
fn as_json(answer: &str, reply: &Reply, summary: &Summary, committed: &Committed) -> Value {
    let mut object = json!({
        "answer": answer,
        "provider": summary.provider,
        "model": summary.model,
        "finish": reply.finished().map_or("stop", Finish::reported),
        "usage": summary.usage,
        "id": committed.id,
        "session": committed.path.as_ref().map(|path| path.to_string_lossy()),
        "messages_sent": summary.messages_sent,
    });
    if let Some(role) = &summary.role {
        object["role"] = role.as_str().into();
    }
    if let Some(sources) = &summary.sources {
        object["sources"] = json!(sources);
    }
    if let Some(steps) = &summary.steps {
        object["rounds"] = steps.len().into();
        object["tool_calls"] = steps
            .iter()
            .flat_map(|step| &step.calls)
            .map(tool_call)
            .collect();
    }
    object
}

/// A call in the JSON output.
fn tool_call(ran: &ToolRun) -> Value {
    let arguments = serde_json::from_str(&ran.arguments)
        .unwrap_or_else(|_| Value::from(ran.arguments.as_str()));
    json!({"name": ran.name, "arguments": arguments, "error": ran.is_error})
}

impl Delivery {
    /// With tools, text that calls follow is not the answer. So a pipe or a file gets text only at the end.
    ///
    /// # Errors
    /// `Output`: there is no standard output.
    pub(super) fn new(
        mut output: Output,
        with_tools: bool,
        record: Record,
        which: Which,
        interrupts: Arc<Interrupts>,
        notes: &Notes,
    ) -> Result<Delivery, Error> {
        let mut stdout = Stdout::open().map_err(unwritable)?;
        stdout.format(output.look);
        if with_tools && output.form == Form::Text && !stdout.is_terminal() {
            output.form = Form::Whole;
        }
        let record = Arc::new(record);
        interrupts.before_the_end(When::AtOnce, {
            let record = Arc::clone(&record);
            move || record.close()
        });
        let screen = Screen::new(stdout);
        interrupts.before_the_end(When::Then, {
            let (record, screen) = (Arc::clone(&record), Arc::clone(&screen));
            move || record.save_interrupted(move || drop(screen.end()))
        });
        Ok(Delivery {
            screen,
            output,
            record,
            which,
            interrupts,
            notes: notes.clone(),
        })
    }

    /// A piece of the answer has come.
    ///
    /// # Errors
    /// As for [`Screen::show`].
    pub(super) fn take(
        &mut self,
        Piece {
            text,
            is_last,
            sources,
            ..
        }: Piece,
    ) -> Result<(), OutputError> {
        let is_kept = self.record.push(&text, is_last, sources);
        if !is_kept && self.output.form != Form::Text {
            return Err(OutputError::TooLong);
        }
        if text.is_empty() {
            return Ok(());
        }
        if self.record.saves() {
            // Until now there was nothing to save, so a signal could end q by itself.
            self.interrupts.install();
        }
        if self.output.form != Form::Text {
            return Ok(());
        }
        self.notes.spinner().stop();
        self.screen.show(&text)
    }

    /// The model has called tools, which are about to run. Returns the text that came before the calls.
    ///
    /// # Errors
    /// As for [`Screen::end`].
    pub(super) fn begin_step(&mut self) -> Result<String, OutputError> {
        self.notes.spinner().stop();
        // A signal must end what is about to run, too.
        self.interrupts.install();
        if self.output.form == Form::Text {
            self.screen.end()?;
        }
        Ok(self.record.begin_step())
    }

    /// Whether a person watches the run.
    pub(super) fn is_watched(&self) -> bool {
        self.output.form == Form::Text && self.screen.is_terminal()
    }

    /// Saves what has come, prints the rest, and says how the answer ended.
    ///
    /// # Errors
    /// Why the answer is incomplete, or was not printed.
    pub(super) fn finish(
        self,
        ended: Result<(), CallEnd>,
        reply: &Reply,
        summary: &Summary,
    ) -> Result<(), Error> {
        self.notes.spinner().stop();
        match ended {
            Ok(()) => self.finish_complete(reply, summary),
            Err(CallEnd::Output(OutputError::TooLong)) => Err(too_long()),
            Err(CallEnd::Output(error)) => {
                self.record
                    .save(!reply.is_complete(), incomplete(reply), summary.usage);
                match error {
                    OutputError::ReaderGone => Ok(()),
                    _ => Err(unwritable(error)),
                }
            }
            Err(CallEnd::Failed(failed)) => {
                // A failure to end the line must not hide what went wrong before.
                let _ = self.screen.end();
                // A blocked exchange is not sent again.
                let blocked = reply
                    .finished()
                    .filter(|finish| matches!(finish, Finish::Blocked(_)))
                    .map(Finish::word);
                let has_begun = !self.record.is_blank();
                let committed = self.record.save(true, blocked, summary.usage);
                Err(match has_begun {
                    true => self.advise_last(failed.error, "the incomplete answer", &committed),
                    false => failed.error,
                })
            }
        }
    }

    fn finish_complete(&self, reply: &Reply, summary: &Summary) -> Result<(), Error> {
        let is_all = self.output.excerpt == Excerpt::All;
        // Text has been printed already.
        let answer = if self.output.form == Form::Text {
            String::new()
        } else {
            self.record.text()
        };
        // The last newline does not wait for the disk.
        let line = match self.output.form {
            Form::Whole if is_all => self.screen.print(&answer),
            _ => self.screen.end(),
        };
        let committed = self.record.save(false, incomplete(reply), summary.usage);
        let ended = how_it_ended(reply);
        let ended = match ended {
            Err(error) if self.prints_complete_answers_only() => {
                let withheld = Error {
                    kind: ErrorKind::Withheld,
                    ..error
                };
                return Err(self.advise_last(withheld, "the incomplete answer", &committed));
            }
            ended => ended,
        };
        let excerpt = self.excerpt(&answer, reply, &committed)?;
        let printed = match self.output.form {
            Form::Text => line,
            Form::Whole if is_all => line,
            Form::Whole => self.screen.print(&excerpt),
            Form::Json => self
                .screen
                .print(&as_json(&excerpt, reply, summary, &committed).to_string()),
        };
        match printed {
            Ok(()) => ended,
            Err(OutputError::ReaderGone) => Ok(()),
            Err(error) => Err(unwritable(error)),
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
    ///
    /// # Errors
    /// `NoCode`: the answer has no code. `Misshapen`: it does not have the requested shape.
    fn excerpt<'b>(
        &self,
        answer: &'b str,
        reply: &Reply,
        committed: &Committed,
    ) -> Result<Cow<'b, str>, Error> {
        match &self.output.excerpt {
            Excerpt::Code => code::extract(answer).map(Cow::Owned).map_err(|reason| {
                let error = Error::new(ErrorKind::NoCode, reason);
                let is_complete = incomplete(reply).is_none();
                let what = if is_complete {
                    "the complete answer"
                } else {
                    "the incomplete answer"
                };
                self.advise_last(error, what, committed)
            }),
            Excerpt::Json(shape) => {
                // Before a search, or in an earlier message, the model may say what it looks for.
                let found = shape
                    .find_in(answer)
                    .or_else(|_| shape.find_in(reply.last_part(answer)));
                found.map(Cow::Borrowed).map_err(|reason| {
                    let error = format!(
                        "the answer does not have the shape that --schema asks for: {reason}"
                    );
                    self.advise_last(
                        Error::new(ErrorKind::Misshapen, error),
                        "the answer as it came",
                        committed,
                    )
                })
            }
            Excerpt::All => Ok(Cow::Borrowed(answer)),
        }
    }

    /// Adds how to see the answer anyway, if it was saved.
    fn advise_last(&self, error: Error, what: &str, committed: &Committed) -> Error {
        let option = match &committed.id {
            Some(id) if committed.saved_separately => format!(" -s {id}"),
            Some(_) => self.which.option(),
            None => return error,
        };
        error.advise_also(format!("q --last{option} prints {what}"))
    }
}

/// How an answer that is or may be incomplete ended, in the provider's word.
fn incomplete(reply: &Reply) -> Option<&str> {
    match reply.finished()? {
        Finish::Limit(word) | Finish::Other(word) => Some(word),
        Finish::Complete(_) | Finish::Failed(_) | Finish::Blocked(_) => None,
    }
}

/// The words of Anthropic and Mistral for an answer that another limit than `max_tokens` has ended.
const CONTEXT_IS_FULL: &[&str] = &["model_context_window_exceeded", "model_length"];

/// The error for an answer that is or may be incomplete.
fn how_it_ended(reply: &Reply) -> Result<(), Error> {
    let message = match reply.finished() {
        Some(Finish::Limit(word)) => {
            let fills_context = CONTEXT_IS_FULL.contains(&word.to_ascii_lowercase().as_str());
            let remedy = match fills_context {
                true => "--messages N sends fewer messages",
                false => "max_tokens (Q_MAX_TOKENS) raises it",
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

fn unwritable(error: OutputError) -> Error {
    Error::new(ErrorKind::Output, error.to_string())
}
