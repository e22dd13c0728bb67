//! Reads a command of the configuration file that is a tool: a table `[tools.NAME.COMMAND]` (pure).

use std::time::Duration;

use toml::de::DeValue;

use super::duration;
use super::program::{LocalProgram, check_command};
use super::value::{self, TableEntry, string, switch};
use crate::argv::Argv;
use crate::text::habits::Place;

/// A command that the model may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub name: String,
    /// What it does, for the model.
    pub about: String,
    pub argv: Argv,
    /// It changes nothing, so it runs without asking.
    pub reads: bool,
    pub program: LocalProgram,
    /// How long it may run; `None` is no limit.
    pub timeout: Option<Duration>,
}

impl Command {
    /// Reads a table. `shared` and `timeout` are what its section sets for all of its commands.
    pub(super) fn read(
        entry: &TableEntry,
        shared: &LocalProgram,
        timeout: Option<Duration>,
    ) -> Result<Command, String> {
        let mut keys = Keys {
            program: shared.clone(),
            timeout,
            ..Keys::default()
        };
        for TableEntry { key, value, .. } in value::entries(entry.value)? {
            if let Err(reason) = keys.set(key, value) {
                return Err(format!("{key}: {reason}"));
            }
        }
        let mut program = keys.program;
        check_command(&program.command).map_err(|reason| format!("run: {reason}"))?;
        if program.command.is_empty() {
            return Err("has no run".to_owned());
        }
        let argv = Argv::parse(
            &program.command,
            keys.stdin.as_deref(),
            keys.input.as_deref(),
            keys.dashes,
        )?;
        program.command.truncate(1);
        Ok(Command {
            name: entry.key.to_owned(),
            about: keys.about,
            argv,
            reads: keys.reads,
            program,
            timeout: keys.timeout,
        })
    }
}

const KEYS: &[&str] = &[
    "run", "about", "stdin", "input", "reads", "dashes", "timeout", "env", "env_from", "cwd",
];

/// The keys of a table `[tools.NAME.COMMAND]`, as they are written.
#[derive(Default)]
struct Keys {
    about: String,
    stdin: Option<String>,
    input: Option<String>,
    reads: bool,
    dashes: bool,
    program: LocalProgram,
    timeout: Option<Duration>,
}

impl Keys {
    fn set(&mut self, key: &str, value: &DeValue) -> Result<(), String> {
        match key {
            "run" => self.program.command = value::command(value)?,
            "about" => self.about = string(value)?,
            "stdin" => self.stdin = Some(string(value)?),
            "input" => self.input = Some(string(value)?),
            "reads" => self.reads = switch(value)?,
            "dashes" => self.dashes = switch(value)?,
            "timeout" => self.timeout = duration::patience(&string(value)?)?,
            "env" | "env_from" | "cwd" => self.program.set(key, value)?,
            _ => return Err(value::unknown(Place::Command, key, KEYS)),
        }
        Ok(())
    }
}
