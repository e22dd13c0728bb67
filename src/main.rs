//! Starts q, which asks a language model a question from the shell, and ends it with its exit status.

// Lints of this crate alone; the test targets in tests/ do not have them. Lints of all targets are in Cargo.toml.
#![deny(unsafe_code)] // but in unix/
#![warn(clippy::unwrap_used, clippy::expect_used)]
#![warn(clippy::match_bool, clippy::single_match_else)]
#![warn(clippy::needless_for_each, clippy::semicolon_if_nothing_returned)]
#![cfg_attr(not(test), warn(clippy::shadow_unrelated))]

mod actions;
mod answers;
mod ask;
mod child_output;
mod commands;
mod context;
mod error;
mod flags;
mod input;
mod interrupt;
mod manual;
mod message;
mod output;
mod programs;
mod provider;
mod scratch;
mod secret;
mod server;
mod server_url;
mod session;
mod settings;
mod shape;
mod text;
mod threads;
mod tools;
mod unix;
mod wait;
mod whole_file;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::actions::{change, show};
use crate::context::Context;
use crate::error::Error;
use crate::flags::{Arguments, Generated, Mode, NameList};
use crate::interrupt::Interrupts;
use crate::output::{Notes, Spinner, Terminal, Verbosity};
use crate::session::directory::StateDirectory;
use crate::session::name::ConversationRef;
use crate::settings::Environment;
use crate::tools::ProcessGroups;

fn main() -> ExitCode {
    prepare_process();
    let args = Vec::from_iter(std::env::args_os().skip(1));
    let environment: Environment = std::env::vars_os().collect();
    let terminal = Terminal::new(|variable| environment.get(variable));
    let arguments = match flags::parse(&args) {
        Ok(arguments) => arguments,
        Err(error) => {
            // --json may come after the option that is wrong.
            let json = flags::asks_for_json(&args);
            let notes = Notes::new(Verbosity::Notes, Spinner::default(), terminal);
            report(&error, json, &notes);
            return ExitCode::from(error.exit_status());
        }
    };
    let notes = notes_of(&arguments, terminal);
    let servers = ProcessGroups::default();
    let result = run(&arguments, environment, notes.clone(), &servers);
    let status = conclude(result, &arguments, &notes);
    // The failure is reported first, because the servers may take a while to end.
    servers.kill();
    status
}

/// Returns the notes as the arguments want them, with a spinner where q waits for servers.
fn notes_of(arguments: &Arguments, terminal: Terminal) -> Notes {
    let spinner = if arguments.mode.waits_for_servers() {
        Spinner::new(arguments.quiet, &terminal)
    } else {
        Spinner::default()
    };
    let verbosity = Verbosity::of(arguments.quiet, arguments.verbose);
    Notes::new(verbosity, spinner, terminal)
}

/// Reports how the run ended, and returns its exit status.
fn conclude(result: Result<(), Error>, arguments: &Arguments, notes: &Notes) -> ExitCode {
    let Err(error) = result else {
        notes.explain_encoding();
        return ExitCode::SUCCESS;
    };
    report(&error, arguments.json, notes);
    let status = if arguments.is {
        error.exit_status_of_condition()
    } else {
        error.exit_status()
    };
    ExitCode::from(status)
}

/// Sets what the process has inherited to what q needs.
fn prepare_process() {
    unix::close_on_exec();
    unix::reset_signals();
    unix::unmask_owner();
    interrupt::ignore_sigxfsz();
    // rustls-native-certs reads these variables, and takes an empty value for a path.
    unix::unset_if_empty("SSL_CERT_FILE");
    unix::unset_if_empty("SSL_CERT_DIR");
    unix::give_memory_back();
}

/// Reports the error that ends q. Nothing else does.
fn report(error: &Error, json: bool, notes: &Notes) {
    notes.spinner().stop();
    if json && !error.kind.consequences().has_printed_json {
        // If this cannot be printed, the message on standard error and the exit status still report the failure.
        let _ = output::print(&error.to_json(), notes.terminal());
    }
    notes.error(error);
    notes.explain_encoding();
}

/// The task of a run, by what it needs.
enum Task {
    /// Prints a text that is the same in every run.
    Print(String),
    /// Prints the manual, which is long.
    ShowManual,
    /// Prints the names that completions offer.
    PrintNames(NameList),
    /// Does something with conversations, settings or a provider.
    Act(fn(&Arguments, &Context) -> Result<(), Error>),
    /// Does something for which tool servers may start.
    ActWithServers(fn(&Arguments, &Context, &ProcessGroups) -> Result<(), Error>),
}

impl Task {
    fn of(arguments: &Arguments) -> Task {
        match arguments.mode {
            Mode::Ask => Task::ActWithServers(ask::ask),
            Mode::ListTools => Task::ActWithServers(actions::tools::list),
            Mode::History => Task::Act(show::history),
            Mode::Last => Task::Act(show::last),
            Mode::Result => Task::Act(show::result),
            Mode::Undo => Task::Act(change::undo),
            Mode::Copy => Task::Act(change::copy),
            Mode::Clear => Task::Act(change::clear),
            Mode::List => Task::Act(actions::list::list),
            Mode::Status => Task::Act(actions::status::print_status),
            Mode::Models => Task::Act(actions::models::list),
            Mode::Generate => match arguments.generate {
                Generated::Document(document) => {
                    Task::Print(manual::generate(document, &own_name()))
                }
                Generated::Names(list) => Task::PrintNames(list),
            },
            Mode::ShortHelp => Task::Print(manual::short_help()),
            Mode::LongHelp => Task::ShowManual,
            Mode::Version => Task::Print(version()),
        }
    }
}

fn run(
    arguments: &Arguments,
    environment: Environment,
    notes: Notes,
    servers: &ProcessGroups,
) -> Result<(), Error> {
    // Documents need no context, because help must work where nothing else does.
    let terminal = notes.terminal().without_system();
    match Task::of(arguments) {
        Task::Print(text) => output::print(&text, &terminal),
        Task::ShowManual => {
            let variable = |name: &str| environment.get(name);
            output::page(&manual::long_help(), &terminal, variable)
        }
        Task::PrintNames(list) => {
            let context = prepare_context(arguments, environment, notes)?;
            actions::names::print(list, arguments, &context)
        }
        Task::Act(act) => {
            let context = prepare_context(arguments, environment, notes)?;
            act(arguments, &context)
        }
        Task::ActWithServers(act) => {
            let context = prepare_context(arguments, environment, notes)?;
            act(arguments, &context, servers)
        }
    }
}

/// Finds out what surrounds the run, and refuses arguments that only this shows to be wrong.
fn prepare_context(
    arguments: &Arguments,
    environment: Environment,
    notes: Notes,
) -> Result<Context, Error> {
    let context = find_context(arguments, environment, notes)?;
    if let Some((lack, list)) = &arguments.lacking_value {
        return Err(actions::names::lacking(lack, *list, arguments, &context));
    }
    actions::refuse_words(arguments, &context)?;
    Ok(context)
}

/// Adds advice to the error for a wrong value of `-s`. Other programs take a system prompt after that letter, or a task for the
/// shell.
fn advise_on_session(error: Error, given: &OsStr, mode: Mode) -> Error {
    if mode != Mode::Ask || !given.to_string_lossy().trim().contains(' ') {
        return error;
    }
    error.advise(
        "give a system prompt with -S, or ask for code alone with -x, because -s names a conversation",
    )
}

/// Finds out what surrounds the run.
fn find_context(
    arguments: &Arguments,
    environment: Environment,
    notes: Notes,
) -> Result<Context, Error> {
    environment.check()?;
    let variable = environment.get("Q_SESSION");
    let conversation = match arguments.session.as_deref() {
        // What is given on the command line must be right. A wrong variable fails only where a conversation is needed.
        Some(given) => {
            let found = ConversationRef::find(Some(given), None);
            Ok(found.map_err(|error| advise_on_session(error, given, arguments.mode))?)
        }
        None => ConversationRef::find(None, variable),
    };
    Ok(Context {
        conversation,
        configuration: configuration(&environment),
        cache: own_directory("XDG_CACHE_HOME", ".cache", &environment),
        directory: StateDirectory::find(directory_of("XDG_STATE_HOME", &environment)),
        environment,
        interrupts: Interrupts::new(notes.spinner()),
        notes,
    })
}

/// Returns the name that q was started by, if every shell takes it for a name.
fn own_name() -> String {
    let path = PathBuf::from(std::env::args_os().next().unwrap_or_default());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if name.is_empty() || name.starts_with('-') || !name.bytes().all(is_allowed) {
        return "q".to_owned();
    }
    name.into_owned()
}

/// Returns the version, and the commit where the build knew it.
fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    match option_env!("Q_COMMIT") {
        Some(commit) => format!("q {version} ({commit})"),
        None => format!("q {version}"),
    }
}

/// Returns the configuration file. `None` without a home: a relative path would be in the current directory.
fn configuration(environment: &Environment) -> Option<PathBuf> {
    let directory = own_directory("XDG_CONFIG_HOME", ".config", environment)?;
    Some(directory.join("config.toml"))
}

/// Returns the directory `q` below the one that a variable names, else below one of the home, on every platform. `None` without a
/// home.
fn own_directory(variable: &str, name: &str, environment: &Environment) -> Option<PathBuf> {
    let directory = directory_of(variable, environment).or_else(|| {
        let directories = directories::BaseDirs::new()?;
        absolute(directories.home_dir().join(name))
    });
    Some(directory?.join("q"))
}

/// Returns the directory that a variable names. The XDG base directory specification demands that a relative one is ignored.
fn directory_of(variable: &str, environment: &Environment) -> Option<PathBuf> {
    absolute(environment.get_os(variable)?.into())
}

fn absolute(path: PathBuf) -> Option<PathBuf> {
    if path.is_absolute() { Some(path) } else { None }
}
