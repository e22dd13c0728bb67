//! Plans a question: checks the command line as far as that needs no waiting, and decides what follows from it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::answer_form::{self, Output};
use super::verdict::no_statement;
use crate::context::Context;
use crate::error::Error;
use crate::flags::{Arguments, NO_TOOLS, ToolNames};
use crate::input::{QuestionInput, stdin};
use crate::manual;
use crate::session::rules::Rules;
use crate::settings::{Cached, Settings};
use crate::text::columns::width;
use crate::text::escape::is_hidden;
use crate::text::non_blank;
use crate::text::one_line::on_one_line;
use crate::text::shell_words::quoted;
use crate::tools::Selection;

/// The decisions about a question that are made before its input is read.
pub struct Plan<'a> {
    pub settings: &'a Settings,
    /// The options that hold for another conversation, too, as they were typed, with a space before each. The settings have
    /// those of a role, too.
    pub options_as_given: String,
    /// Those that a conversation does not remember, in the same form.
    pub options_of_question: String,
    pub words: Option<String>,
    pub reads_stdin: bool,
    /// Whether q may have to wait for standard input, a file or the schema.
    pub waits_for_input: bool,
    pub relation: Relation,
    /// The settings' rules for conversations, loosened by `-ff`.
    pub rules: Rules,
    /// The tools of `-t`, if it is given.
    pub selection: Option<Selection>,
    /// A system prompt that stays with the conversation.
    pub system: Option<String>,
    /// How the answer is printed; `None` if q has to wait for the schema first.
    pub output: Option<Output>,
}

/// The most columns of a system prompt in a command to copy. Where a terminal wraps a longer one, what is copied is another.
const MAX_SYSTEM: usize = 40;

/// The relation of a question to a conversation.
#[derive(Clone, Copy, PartialEq)]
pub enum Relation {
    /// The question begins one.
    New,
    /// The question continues the current one.
    Follow,
    /// The question belongs to one that was chosen by its name, id or path, which may be new.
    Chosen,
    /// The last question is asked again.
    Again,
}

impl Plan<'_> {
    /// `command_line` has no options of a role.
    pub fn new<'a>(
        command_line: &Arguments,
        settings: &'a Settings,
        context: &Context,
    ) -> Result<Plan<'a>, Error> {
        let notes = &context.notes;
        let text = |words: OsString, name| notes.text_of(words.into_encoded_bytes(), name);
        let arguments = &settings.arguments;
        refuse_file_as_word(arguments)?;
        check_cached(settings)?;
        let words = text(arguments.words.join(OsStr::new(" ")), "the command line");
        let words = non_blank(words);
        if arguments.is && words.is_none() && !arguments.again {
            return Err(no_statement());
        }
        let reads_stdin = stdin::is_read(settings, words.is_some(), notes)?;
        let has_question = words.is_some() || reads_stdin || !arguments.attach.is_empty();
        if !has_question && !arguments.again {
            return Err(no_question(arguments));
        }
        let selection = Selection::from_option(&arguments.tools)?;
        let mut output = None;
        if !answer_form::awaits_schema(arguments) {
            output = Some(Output::new(settings, notes)?);
        }
        let system = arguments.system.clone();
        let system = system.map(|system| text(system, "the system prompt"));
        let relation = Relation::new(arguments, context)?;
        check_name(arguments, context)?;
        Ok(Plan {
            settings,
            options_as_given: options_as_given(command_line),
            options_of_question: options_of_question(command_line),
            words,
            reads_stdin,
            waits_for_input: output.is_none() || stdin::is_awaited(reads_stdin, &arguments.attach),
            system,
            relation,
            rules: rules_of(settings),
            selection,
            output,
        })
    }

    /// Refuses to ask where neither words nor what was read make a question. The last one needs no other to be asked again.
    pub fn refuse_no_question(&self, input: &QuestionInput) -> Result<(), Error> {
        let is_any_read = input.text.is_some() || !input.files.is_empty();
        if self.words.is_some() || is_any_read || self.relation == Relation::Again {
            return Ok(());
        }
        let arguments = &self.settings.arguments;
        Err(match input.stdin_fault {
            Some(fault) if arguments.taken_word.is_none() => no_input(fault),
            _ => no_question(arguments),
        })
    }
}

impl Relation {
    fn new(arguments: &Arguments, context: &Context) -> Result<Relation, Error> {
        let is_current = context.conversation()?.is_current();
        Ok(if arguments.again {
            Relation::Again
        } else if !is_current {
            Relation::Chosen
        } else if arguments.follow {
            Relation::Follow
        } else {
            Relation::New
        })
    }
}

/// Returns the options that say whom to ask, and how, as they were given, with a space before each.
fn options_as_given(command_line: &Arguments) -> String {
    let mut options = with_values(&[
        ("-r", &command_line.role),
        ("-p", &command_line.provider),
        ("-m", &command_line.model),
        ("-e", &command_line.effort),
    ]);
    options += &tools_as_given(command_line);
    if let Some(system) = command_line.system.as_ref().and_then(|text| text.to_str())
        && width(system) <= MAX_SYSTEM
        && !system.contains(is_hidden)
    {
        options += &format!(" -S {}", quoted(system));
    }
    options
}

/// Returns the options that a conversation does not remember, as they were given, with a space before each. Tools are used again
/// without a terminal only if they are named.
fn options_of_question(command_line: &Arguments) -> String {
    let mut options = with_values(&[
        ("-r", &command_line.role),
        ("-e", &command_line.effort),
        ("--messages", &command_line.messages),
    ]);
    options += &tools_as_given(command_line);
    for option in &command_line.options {
        options += &format!(" -o {}", quoted(&on_one_line(option)));
    }
    for (option, is_given) in [
        ("-w", command_line.web),
        ("-x", command_line.extract),
        ("--is", command_line.is),
        ("--lines", command_line.lines),
    ] {
        if is_given {
            options += &format!(" {option}");
        }
    }
    options
}

fn with_values(options: &[(&str, &Option<String>)]) -> String {
    let given = options
        .iter()
        .filter_map(|(option, value)| value.as_ref().map(|value| (option, value)));
    given
        .map(|(option, value)| format!(" {option} {}", quoted(&on_one_line(value))))
        .collect()
}

fn tools_as_given(command_line: &Arguments) -> String {
    let none = [NO_TOOLS.to_owned()];
    let names = match &command_line.tools {
        ToolNames::Nothing => &none,
        tools => tools.names(),
    };
    let quoted = names.iter().map(|name| quoted(&on_one_line(name)));
    quoted.map(|name| format!(" -t {name}")).collect()
}

/// Refuses a new name that looks like a number of the list. A conversation that was named so before is continued.
fn check_name(arguments: &Arguments, context: &Context) -> Result<(), Error> {
    let must_exist = arguments.follow || arguments.again;
    if must_exist || context.conversation()?.like_number().is_none() {
        return Ok(());
    }
    // A directory that cannot be used is reported once the conversation is opened.
    context
        .find_quietly()
        .map_or(Ok(()), |handle| handle.refuse_new())
}

fn rules_of(settings: &Settings) -> Rules {
    let mut rules = settings.values.rules;
    if settings.arguments.follow_anyway {
        rules.expire = None;
        rules.continue_on_mismatch = true;
    }
    rules
}

/// Refuses a file as the first word: the shell makes several words of `-a *.rs`, but `-a` takes only one.
fn refuse_file_as_word(arguments: &Arguments) -> Result<(), Error> {
    let Some(word) = arguments.words.first() else {
        return Ok(());
    };
    if !arguments.words_follow_attach || !Path::new(word).is_file() {
        return Ok(());
    }
    let mut pattern = Path::new(word).with_file_name("*");
    if let Some(ending) = Path::new(word).extension() {
        pattern.set_extension(ending);
    }
    let pattern = quoted(&pattern.to_string_lossy());
    let error = format!(
        "-a takes one file, so {} would be a word of the question",
        word.display()
    );
    Err(Error::usage(error).advise(format!(
        "if it is a word, put -- before it; otherwise put -a before each file, or before a pattern in quotes: -a {pattern}"
    )))
}

/// Refuses what cached answers cannot serve: tools and searches, and `--again` where only they count.
fn check_cached(settings: &Settings) -> Result<(), Error> {
    let arguments = &settings.arguments;
    let is_only = settings.values.cached_setting == Cached::Only;
    let name = if is_only { "cached = only" } else { "--cached" };
    if is_only && arguments.again {
        let message = format!("--again sends a new request, which {name} forbids");
        return Err(Error::usage(message));
    }
    if settings.wants_results() && (is_only || arguments.cached) {
        let message = format!(
            "{name} cannot be used with -t or -w: a cached answer cannot cover what tools and searches return"
        );
        return Err(Error::usage(message));
    }
    Ok(())
}

/// Returns the error where standard input should have been the question, but has none.
fn no_input(fault: &str) -> Error {
    let error = Error::usage(format!("there is no question, because {fault}"));
    error.advise(format!(
        "check the command or the file that it comes from; {}",
        manual::USAGE
    ))
}

/// Returns the error where neither words nor input have a question.
fn no_question(arguments: &Arguments) -> Error {
    let mut message = "there is no question".to_owned();
    // An alias may have -n.
    if arguments.no_stdin && stdin::is_from_command() {
        message += ", because -n leaves standard input alone";
    } else if let Some(taken) = &arguments.taken_word {
        message += &format!(", because {taken}");
    }
    Error::usage(message).advise(manual::USAGE)
}
