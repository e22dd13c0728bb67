//! How an answer is printed, decided once.

use std::borrow::Cow;

use serde_json::Value;

use super::verdict::{self, Verdict};
use crate::error::{Error, ErrorKind};
use crate::flags::Arguments;
use crate::output::code::{self, Audience};
use crate::output::{LateNote, Notes, Terminal};
use crate::session::save::SaveOutcome;
use crate::settings::{MAX_TEXT, Settings, read_pipe, read_text};
use crate::shape::{ListPlace, Misfit, SchemaSpec, Shape};
use crate::text::command_line::command_line;
use crate::text::shell_words::quoted;

/// The forms of SPEC, for errors.
const SHAPES: &str = "give a JSON Schema, the path of a .json file, or fields: 'name, age int, tags list: what they like'";

/// What is asked for of an answer: what is printed of it, and whether piece by piece.
pub struct Output {
    pub form: Form,
    /// Whether it is printed as JSON, with how the answer came about.
    pub json: bool,
    /// Whether the answer is asked for, and may be printed, piece by piece.
    pub streams: bool,
    /// Whether the items of a list are printed, each on a line of its own.
    lines: bool,
}

/// The part of an answer that is printed.
pub enum Form {
    Prose,
    /// The contents of its code blocks.
    Code,
    /// JSON of this shape.
    Shaped(Shape),
    /// The items of the list in JSON of this shape, which is in this place.
    Items(Shape, ListPlace),
    /// JSON of this shape, which says whether a statement is true. The exit status shows it.
    Verdict(Shape),
}

/// Whether q has to wait for the schema, because it comes from a pipe.
pub fn awaits_schema(arguments: &Arguments) -> bool {
    let spec = arguments.schema.as_deref().map(SchemaSpec::parse);
    matches!(spec, Some(SchemaSpec::Pipe(_))) && !arguments.is
}

impl Output {
    /// Decides it, and waits for a schema that comes from a pipe.
    pub fn new(settings: &Settings, notes: &Notes) -> Result<Output, Error> {
        let arguments = &settings.arguments;
        let read_shape = |spec: &str| read_shape(spec, notes);
        let form = match &arguments.schema {
            _ if arguments.is => Form::Verdict(verdict::shape()),
            Some(spec) if arguments.lines => Form::items(read_shape(spec)?, Some(spec))?,
            Some(spec) => Form::Shaped(read_shape(spec)?),
            None if arguments.lines && !arguments.again => return Err(no_schema()),
            None if arguments.extract => Form::Code,
            None => Form::Prose,
        };
        Ok(Output {
            form,
            json: arguments.json,
            streams: settings.values.stream,
            lines: arguments.lines,
        })
    }

    /// Asks for the shape of an answer that is asked for again, if it had one, unless another form is given.
    pub fn repeat_shape(&mut self, schema: Option<&Value>) -> Result<(), Error> {
        if !matches!(self.form, Form::Prose) {
            return Ok(());
        }
        let shape = schema.cloned().map(Shape::repeated);
        self.form = match shape {
            Some(shape) if self.lines => Form::items(shape, None)?,
            Some(shape) => Form::Shaped(shape),
            None if self.lines => return Err(no_schema()),
            None => Form::Prose,
        };
        Ok(())
    }

    /// Returns the shape that the answer must have.
    pub fn shape(&self) -> Option<&Shape> {
        match &self.form {
            Form::Shaped(shape) | Form::Items(shape, _) | Form::Verdict(shape) => Some(shape),
            Form::Prose | Form::Code => None,
        }
    }

    /// Returns what a printed part of the answer says about the statement, if it was asked about one.
    pub fn verdict(&self, excerpt: &str) -> Option<Verdict> {
        matches!(self.form, Form::Verdict(_)).then(|| Verdict::read(excerpt))
    }

    /// Whether the answer is printed as it is, and not a part of it or JSON about it.
    pub fn is_text(&self) -> bool {
        matches!(self.form, Form::Prose) && !self.json
    }

    /// Whether nothing of an incomplete answer is printed: nobody must run half a script, or read half an object.
    pub fn withholds_incomplete(&self, is_terminal: bool) -> bool {
        match self.form {
            Form::Prose => false,
            Form::Code => !is_terminal,
            Form::Shaped(_) | Form::Items(..) | Form::Verdict(_) => true,
        }
    }

    /// Returns the part of the answer that is printed. `last_part` is the text after the provider's last search, or the last of
    /// several messages.
    pub fn excerpt<'a>(
        &self,
        answer: &'a str,
        last_part: &'a str,
        to: &Recipient,
    ) -> Result<Cow<'a, str>, Error> {
        match &self.form {
            Form::Prose => Ok(answer.into()),
            Form::Code => Ok(to.code_in(answer)?.into()),
            Form::Shaped(shape) | Form::Items(shape, _) | Form::Verdict(shape) => {
                let mut json = shape.find_in(answer);
                if json.is_err() {
                    // Before a search, or in an earlier message, the model may say what it looks for.
                    json = shape.find_in(last_part);
                }
                json.map(Cow::Borrowed).map_err(|misfit| {
                    let message = match (&self.form, misfit) {
                        (Form::Verdict(_), Misfit::Differs(reason)) => {
                            format!("the answer is neither yes nor no: {reason}")
                        }
                        (_, misfit) => misfit.to_string(),
                    };
                    advise_last(Error::new(ErrorKind::Misshapen, message), to.saved)
                })
            }
        }
    }
}

impl Form {
    /// Returns the items of the list that a shape has. `spec` is the value of `--schema`.
    fn items(shape: Shape, spec: Option<&str>) -> Result<Form, Error> {
        let names = match shape.list() {
            Ok(place) => return Ok(Form::Items(shape, place)),
            Err(names) => names,
        };
        let mut reason = "has none".to_owned();
        if !names.is_empty() {
            reason = format!("has several: {}", names.join(", "));
        }
        let error = format!("--lines prints the items of a list, and the schema {reason}");
        let mut advice =
            "use a schema of type array, or one with a single property of type array".to_owned();
        if let Some(fields) = spec.filter(|spec| is_short_form(spec)) {
            advice = "put brackets around the fields to ask for a list of such objects".to_owned();
            let list = quoted(&format!("[{}]", fields.trim()));
            if !list.contains(char::is_control) {
                advice += &format!(": --schema {list} --lines");
            }
        }
        Err(Error::usage(error).advise(advice))
    }
}

/// The recipient of the part of an answer that is printed.
pub struct Recipient<'a> {
    pub audience: Audience,
    pub terminal: &'a Terminal,
    /// Where all of the answer is.
    pub saved: &'a SaveOutcome,
}

impl Recipient<'_> {
    /// Returns the contents of the code blocks; for a command line, one line.
    fn code_in(&self, answer: &str) -> Result<String, Error> {
        let conversation = self.saved.id.as_ref().map(|_| self.saved.option.as_str());
        let code = code::extract(answer, self.audience);
        let code = code.map_err(|reason| reason.to_error(conversation))?;
        if !self.terminal.fills_command_line {
            return Ok(code);
        }
        let line = command_line(&code, self.terminal.encoding.charset());
        line.map(str::to_owned)
            .map_err(|reason| Error::new(ErrorKind::NoCode, reason))
    }
}

/// Adds how to see the answer anyway, if it was saved.
pub fn advise_last(error: Error, saved: &SaveOutcome) -> Error {
    if saved.id.is_none() {
        return error;
    }
    error.advise_also(code::advice_to_print_answer(&saved.option))
}

/// Returns the error for `--lines` where there is no schema.
fn no_schema() -> Error {
    Error::usage("--lines prints the items of a list, so it needs a --schema that has one").advise(
        "put the fields of an item in brackets: q --schema '[name, age int]' --lines \"make up ten people\"",
    )
}

/// Whether `--schema` has the fields of an object in the short form.
fn is_short_form(spec: &str) -> bool {
    let is_list = spec.trim_start().starts_with('[');
    matches!(SchemaSpec::parse(spec), SchemaSpec::ShortForm(_)) && !is_list
}

/// Reads a pipe, and shows that q waits for it.
fn wait_for_pipe(path: &str, notes: &Notes) -> Result<String, String> {
    let waiting = format!("waiting for {path}");
    let spinner = notes.spinner();
    spinner.wait_for(&waiting);
    let late = (!spinner.is_active()).then(|| LateNote::start(notes, waiting));
    let text = read_pipe(path.as_ref(), MAX_TEXT);
    drop(late);
    spinner.stop();
    text
}

/// Reads the shape that `--schema` asks for.
fn read_shape(spec: &str, notes: &Notes) -> Result<Shape, Error> {
    let read = |text: Result<String, String>| {
        let named = |reason| format!("{spec}: {reason}");
        text.and_then(|text| Shape::from_json(&text).map_err(named))
    };
    let shape = match SchemaSpec::parse(spec) {
        SchemaSpec::Pipe(path) => read(wait_for_pipe(path, notes)),
        SchemaSpec::File(path) => read(read_text(path.as_ref(), MAX_TEXT)),
        SchemaSpec::Json(text) => Shape::from_json(text),
        SchemaSpec::ShortForm(text) => Shape::from_short(text),
    };
    shape.map_err(|reason| {
        let error = format!("--schema: {reason}");
        Error::usage(error).advise(SHAPES)
    })
}
