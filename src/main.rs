//! q asks a language model one question from the shell: from the command line to the exit status.

mod actions;
mod address;
mod ask;
mod call;
mod discover;
mod error;
mod flags;
mod http;
mod interrupt;
mod key_command;
mod manual;
mod models;
mod output;
mod prompt;
mod provider;
mod question;
mod record;
mod secret;
mod session;
mod settings;
mod sse;
mod status;
mod target;
mod unix;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::actions::Place;
use crate::error::Error;
use crate::flags::{Arguments, Mode};
use crate::output::{Notes, Sign};
use crate::session::folder::Folder;
use crate::session::name::Which;
use crate::settings::{Environment, Settings};

fn main() -> ExitCode {
    let environment = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
        Some(value.to_string_lossy().into_owned())
    };
    let arguments = match flags::parse(std::env::args_os().skip(1)) {
        Ok(arguments) => arguments,
        Err(error) => return failure(&error, false, &Notes::default()),
    };
    let sign = match arguments.mode {
        Mode::Ask | Mode::Models => Sign::new(arguments.quiet, environment("TERM").as_deref()),
        _ => Sign::default(),
    };
    let notes = Notes::new(arguments.quiet, arguments.verbose, sign);
    match run(&arguments, &environment, &notes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure(&error, arguments.json, &notes),
    }
}

/// The only place that reports an error.
fn failure(error: &Error, json: bool, notes: &Notes) -> ExitCode {
    notes.sign().stop();
    if json {
        // Where not even that can be printed, the exit status and the next line still tell.
        let _ = output::print(&error.to_json());
    }
    notes.error(error);
    ExitCode::from(error.exit_status())
}

fn run(arguments: &Arguments, environment: Environment, notes: &Notes) -> Result<(), Error> {
    match arguments.mode {
        Mode::ShortHelp => return output::print(&manual::short_help()),
        Mode::LongHelp => return output::print(&manual::long_help()),
        Mode::Generate => return output::print(&manual::generate(arguments.generate.as_deref().unwrap_or_default())),
        Mode::Version => return output::print(concat!("q ", env!("CARGO_PKG_VERSION"))),
        _ => {}
    }
    let configuration = configuration(environment);
    let which = Which::find(arguments.session.as_deref(), environment("Q_SESSION").as_deref())?;
    match arguments.mode {
        Mode::Ask => return ask::ask(arguments, &which, environment, &configuration, notes),
        Mode::Status => return status::print_status(arguments, &which, environment, &configuration),
        Mode::Models => return models::list(arguments, environment, &configuration, notes),
        _ => {}
    }
    let folder = Folder::find(environment).ok_or_else(|| {
        Error::file("there is no home folder, so there are no conversations").advise("set HOME or XDG_STATE_HOME")
    })?;
    let place = Place { folder, which };
    match arguments.mode {
        Mode::History => actions::history(&place, arguments.json, notes),
        Mode::Last => actions::last(&place, arguments.extract, notes),
        Mode::Undo => actions::undo(&place, Settings::keep(environment, &configuration)),
        Mode::List => actions::list(&place, arguments.json, notes),
        Mode::Clear if arguments.all => actions::clear_all(&place, notes),
        Mode::Clear => actions::clear(&place, notes),
        Mode::Ask | Mode::Status | Mode::Models | Mode::Generate | Mode::ShortHelp | Mode::LongHelp | Mode::Version => {
            Ok(())
        }
    }
}

/// The configuration file: below `$XDG_CONFIG_HOME`, where that is an absolute path, else below `~/.config`, on every
/// platform.
fn configuration(environment: Environment) -> PathBuf {
    let named = environment("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = named.or_else(|| Some(directories::BaseDirs::new()?.home_dir().join(".config")));
    folder.unwrap_or_default().join("q").join("config.toml")
}
