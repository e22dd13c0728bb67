//! A command of the configuration file that is a tool: a table `[tools.NAME.COMMAND]`.

use std::time::Duration;

use toml::de::DeValue;

use super::duration;
use super::program::{LocalProgram, check_command};
use super::value::{self, in_order, must_be, string};
use crate::argv::Argv;

/// A command that the model may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) name: String,
    /// What it does, for the model.
    pub(crate) about: String,
    pub(crate) argv: Argv,
    /// It changes nothing, so it runs without asking.
    pub(crate) reads: bool,
    pub(crate) program: LocalProgram,
    /// How long it may run; `None` is for ever.
    pub(crate) timeout: Option<Duration>,
}

impl Command {
    /// Reads a table. `shared` and `timeout` are what its section sets for all of its commands.
    ///
    /// # Errors
    /// What is wrong, with the name of the key.
    pub(super) fn read(
        name: &str,
        table: &DeValue,
        shared: &LocalProgram,
        timeout: Option<Duration>,
    ) -> Result<Command, String> {
        let (mut about, mut stdin, mut input) = (String::new(), None, None);
        let (mut reads, mut dashes) = (false, false);
        let (mut program, mut timeout) = (shared.clone(), timeout);
        let switch = |value: &DeValue| {
            value
                .as_bool()
                .ok_or_else(|| must_be("true or false", value))
        };
        for (key, value) in table.as_table().map(in_order).unwrap_or_default() {
            let value = value.get_ref();
            let mut set = || {
                match key.get_ref().as_ref() {
                    "run" => program.command = value::command(value, "[\"git\", \"log\"]")?,
                    "about" => about = string(value)?,
                    "stdin" => stdin = Some(string(value)?),
                    "input" => input = Some(string(value)?),
                    "reads" => reads = switch(value)?,
                    "dashes" => dashes = switch(value)?,
                    "timeout" => timeout = duration::patience(&string(value)?)?,
                    key @ ("env" | "env_from" | "cwd") => program.set(key, value)?,
                    key => return Err(value::unknown(key)),
                }
                Ok(())
            };
            set().map_err(|reason| format!("{}: {reason}", key.get_ref()))?;
        }
        check_command(&program.command).map_err(|reason| format!("run: {reason}"))?;
        let argv = match &program.command[..] {
            [] => return Err("has no run".to_owned()),
            run => Argv::parse(run, stdin.as_deref(), input.as_deref(), dashes)?,
        };
        program.command.truncate(1);
        Ok(Command {
            name: name.to_owned(),
            about,
            argv,
            reads,
            program,
            timeout,
        })
    }
}
