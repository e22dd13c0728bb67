//! q asks a language model one question from the shell: from the command line to the exit status.

mod actions;
mod address;
mod ask;
mod call;
mod discover;
mod error;
mod flags;
mod help;
mod http;
mod interrupt;
mod key_command;
mod output;
mod prompt;
mod provider;
mod question;
mod record;
mod secret;
mod session;
mod settings;
mod sse;
mod unix;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::error::Error;
use crate::flags::{Arguments, Mode};
use crate::output::Notes;
use crate::settings::Environment;

fn main() -> ExitCode {
    let notes = Notes::new();
    let environment = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
        Some(value.to_string_lossy().into_owned())
    };
    let done = flags::parse(std::env::args_os().skip(1)).and_then(|arguments| run(&arguments, &environment, &notes));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            notes.error(&error);
            ExitCode::from(error.exit_status())
        }
    }
}

fn run(arguments: &Arguments, environment: Environment, notes: &Notes) -> Result<(), Error> {
    match arguments.mode {
        Mode::Ask => ask::ask(arguments, environment, &configuration(environment), notes),
        Mode::Clear => actions::clear(environment, notes),
        Mode::ShortHelp => actions::print(&help::short()),
        Mode::LongHelp => actions::print(&help::long()),
        Mode::Version => actions::print(concat!("q ", env!("CARGO_PKG_VERSION"), "\n")),
    }
}

/// The configuration file: below `$XDG_CONFIG_HOME`, where that is an absolute path, else below `~/.config`, on every
/// platform.
fn configuration(environment: Environment) -> PathBuf {
    let named = environment("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = named.or_else(|| Some(directories::BaseDirs::new()?.home_dir().join(".config")));
    folder.unwrap_or_default().join("q").join("config.toml")
}
