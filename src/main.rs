//! q asks a language model one question from the shell: from the command line to the exit status.

mod actions;
mod address;
mod argv;
mod ask;
mod context;
mod error;
mod fence;
mod flags;
mod interrupt;
mod manual;
mod message;
mod nearest;
mod one_line;
mod output;
mod provider;
mod secret;
mod server;
mod session;
mod settings;
mod shape;
mod surrogates;
mod threads;
mod tools;
mod unix;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::flags::{Arguments, Mode};
use crate::output::{Notes, Spinner};
use crate::session::folder::Folder;
use crate::session::name::Which;
use crate::settings::Environment;
use crate::tools::Groups;

fn main() -> ExitCode {
    // These are read by a library, which takes an empty value for a path.
    unix::unset_if_empty("SSL_CERT_FILE");
    unix::unset_if_empty("SSL_CERT_DIR");
    let arguments = match flags::parse(std::env::args_os().skip(1)) {
        Ok(arguments) => arguments,
        Err(error) => {
            // --json may come after the option that is wrong.
            let json = flags::asks_for_json(std::env::args_os().skip(1));
            return failure(&error, json, &Notes::default());
        }
    };
    interrupt::survive_size_limit();
    let environment: Environment = std::env::vars_os().collect();
    let spinner = match arguments.mode {
        Mode::Ask | Mode::Models | Mode::ListTools => {
            Spinner::new(arguments.quiet, environment.get("TERM"))
        }
        _ => Spinner::default(),
    };
    let notes = Notes::new(arguments.quiet, arguments.verbose, spinner);
    let servers = Groups::default();
    let status = match run(&arguments, environment, notes.clone(), &servers) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure(&error, arguments.json, &notes),
    };
    // The user need not wait for them to learn of a failure.
    servers.end_rest();
    status
}

/// The only place that reports an error.
fn failure(error: &Error, json: bool, notes: &Notes) -> ExitCode {
    notes.spinner().stop();
    // The JSON of an incomplete answer has been printed already.
    if json && error.kind != ErrorKind::Incomplete {
        // If not even that can be printed, the exit status and the next line still report the failure.
        let _ = output::print(&error.to_json());
    }
    notes.error(error);
    ExitCode::from(error.exit_status())
}

fn run(
    arguments: &Arguments,
    environment: Environment,
    notes: Notes,
    servers: &Groups,
) -> Result<(), Error> {
    // Help and version need no context.
    let context = || {
        Ok(Context {
            which: Which::find(arguments.session.as_deref(), environment.get("Q_SESSION"))?,
            environment,
            configuration: configuration(),
            folder: Folder::find(absolute("XDG_STATE_HOME")),
            notes,
        })
    };
    match arguments.mode {
        Mode::Ask => ask::ask(arguments, &context()?, servers),
        Mode::History => actions::history(&context()?, arguments.json),
        Mode::Last => actions::last(&context()?, arguments.extract, arguments.json),
        Mode::Undo => actions::undo(&context()?, arguments.json),
        Mode::List => actions::list(&context()?, &arguments.words, arguments.json, arguments.all),
        Mode::Copy => actions::copy(
            &context()?,
            arguments.copy.as_deref().unwrap_or_default(),
            arguments.json,
        ),
        Mode::Clear if arguments.all => {
            actions::clear_all(&context()?, arguments.yes, arguments.json)
        }
        Mode::Clear => actions::clear(&context()?, arguments.json),
        Mode::Status => actions::print_status(arguments, &context()?),
        Mode::ListTools => actions::list_tools(arguments, &context()?, servers),
        Mode::Models => actions::list_models(arguments, &context()?),
        Mode::Generate => output::print(&manual::generate(
            arguments.generate.as_deref().unwrap_or_default(),
        )),
        Mode::ShortHelp => output::print(&manual::short_help()),
        Mode::LongHelp => output::print(&manual::long_help()),
        Mode::Version => output::print(concat!("q ", env!("CARGO_PKG_VERSION"))),
    }
}

/// The configuration file: below `$XDG_CONFIG_HOME`, else below `~/.config`, on every platform.
fn configuration() -> PathBuf {
    let home = || {
        Some(directories::BaseDirs::new()?.home_dir().join(".config"))
            .filter(|folder| folder.is_absolute())
    };
    let folder = absolute("XDG_CONFIG_HOME").or_else(home);
    // Without a home there is no file; one in the current folder must not count.
    folder
        .map(|folder| folder.join("q").join("config.toml"))
        .unwrap_or_default()
}

/// The folder that a variable names. A relative one does not count (XDG base directory specification).
fn absolute(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}
