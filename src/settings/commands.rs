//! Reads a command of the configuration file that is a tool: a table `[tools.NAME.COMMAND]` (pure).

use std::time::Duration;

use toml::de::DeValue;

use super::guess::time_limit;
use super::program::LocalProgram;
use super::section_fault::SectionFault;
use super::sections::{section, unknown_key};
use super::value::{self, ConfigError, TableEntry, string, switch};
use crate::commands::argv::{Argv, ArgvError};
use crate::flags::synonyms::WordPlace;
use crate::text::short_form::{self, FormPurpose};

/// A command that the model may call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Command {
    pub name: String,
    /// What it does, for the model.
    pub about: String,
    pub argv: Argv,
    /// Whether it changes nothing, so that it runs without asking.
    pub reads: bool,
    pub program: LocalProgram,
    /// How long it may run; `None` is no limit.
    pub timeout: Option<Duration>,
    /// What is wrong with it, which q reports only if it is used. Then it has nothing but its name.
    pub fault: Option<SectionFault>,
}

impl Command {
    /// Reads a table. `shared` and `timeout` are what its section sets for all of its commands.
    pub(super) fn read(
        named: &TableEntry,
        shared: &LocalProgram,
        timeout: Option<Duration>,
    ) -> Result<Command, ConfigError> {
        let mut command = Command {
            name: named.key.to_owned(),
            program: shared.clone(),
            timeout,
            ..Command::default()
        };
        let table = section(named.value, WordPlace::Command)?;
        table.read(|entry| command.set(entry.key, entry.value))?;
        if command.program.name.is_empty() {
            return Err(ConfigError::deferred("has no run"));
        }
        let complete = command.argv.complete();
        complete
            .map_err(|ArgvError { key, reason }| table.error(key, ConfigError::deferred(reason)))?;
        Ok(command)
    }

    /// Returns a command that cannot be used.
    pub(super) fn wrong(name: &str, fault: SectionFault) -> Command {
        Command {
            name: name.to_owned(),
            fault: Some(fault),
            ..Command::default()
        }
    }

    fn set(&mut self, key: &str, value: &DeValue) -> Result<(), ConfigError> {
        match key {
            "run" => {
                self.argv.run = value::tool_command(value)?;
                self.program.name.clone_from(&self.argv.run[0]);
            }
            "about" => self.about = string(value)?,
            "stdin" => self.argv.stdin = Some(string(value)?),
            "input" => {
                let parameters = short_form::parse(&string(value)?, FormPurpose::Arguments);
                self.argv.parameters = parameters.map_err(ConfigError::deferred)?;
            }
            "reads" => self.reads = switch(value)?,
            "dashes" => self.argv.dashes = switch(value)?,
            "timeout" => self.timeout = time_limit(key, value)?,
            "env" | "env_from" | "cwd" | "confine" => self.program.set(key, value)?,
            _ => return Err(unknown_key(WordPlace::Command, key)),
        }
        Ok(())
    }
}
