//! Says what is wrong with configured tools. It matters only if such a tool is named; other questions do not fail by it.
//!
//! What is called `fault_of` something returns the error, or `None` if there is nothing wrong. `startup` finds what a program
//! needs.

use super::startup::{bounds_of, code_runner, missing_key_program, program_file, start_directory};
use crate::error::Error;
use crate::settings::{
    Command, Environment, Key, LocalProgram, READS, ServerKind, ToolServer, expand_home,
};

/// Returns the faults of all tools that these sections offer.
pub fn faults_of_sections(sections: &[ToolServer], own: &Environment) -> Vec<Error> {
    let mut faults = Vec::new();
    for section in sections {
        let name = &section.name;
        match &section.kind {
            ServerKind::Wrong(reason) => faults.push(fault_of_section(section, reason)),
            ServerKind::Local(local) => faults.extend(faults_of_program(name, local, own)),
            ServerKind::Remote(remote) => faults.extend(fault_of_key(name, &remote.key, own)),
            ServerKind::Commands(commands) => {
                faults.extend(faults_of_commands(section, commands, own));
            }
        }
    }
    faults
}

/// Returns the faults of the commands that a section offers, and of the program that tells about them.
fn faults_of_commands(section: &ToolServer, commands: &[Command], own: &Environment) -> Vec<Error> {
    let mut faults = Vec::new();
    if let Some(about) = &section.about {
        faults.extend(faults_of_program(
            &dotted_key_of_about(&section.name),
            about,
            own,
        ));
    }
    for command in commands {
        if section.offers(&command.name) {
            let dotted_key = dotted_key_of_command(section, command);
            faults.extend(faults_of_program(&dotted_key, &command.program, own));
            faults.extend(fault_of_unasked_code(section, command, own));
            faults.extend(fault_of_paths(section, command));
        }
    }
    faults
}

/// Returns the dotted key, below `tools`, of the program that tells about the commands of a section.
pub fn dotted_key_of_about(section: &str) -> String {
    format!("{section}.about_run")
}

/// Returns the dotted key of a command.
pub fn dotted_key_of_command(section: &ToolServer, command: &Command) -> String {
    format!("{}.{}", section.name, command.name)
}

/// Returns an error about the tool or server that this key below `tools` configures.
pub fn fault_at(dotted_key: &str, reason: &str) -> Error {
    Error::settings(format!("tools.{dotted_key}: {reason}"))
}

/// Returns the error for a section that q cannot use.
pub fn fault_of_section(section: &ToolServer, reason: &str) -> Error {
    Error::settings(format!("the tool server {}: {reason}", section.name))
}

/// Returns why a program cannot be started as its section says: its file, and its bounds or its directory.
fn faults_of_program(dotted_key: &str, local: &LocalProgram, own: &Environment) -> Vec<Error> {
    let mut faults = Vec::from_iter(fault_of_file(dotted_key, local, own));
    let surroundings = bounds_of(local, own).and_then(|_| start_directory(local, own));
    faults.extend(
        surroundings
            .err()
            .map(|reason| fault_at(dotted_key, &reason)),
    );
    faults
}

/// Returns the error for a program that is not there.
fn fault_of_file(dotted_key: &str, local: &LocalProgram, own: &Environment) -> Option<Error> {
    let program = expand_home(&local.name, own).ok()?;
    match program_file(&program, &local.environment(own)) {
        Some(_) => None,
        None => Some(fault_of_missing(dotted_key, &program)),
    }
}

/// Returns the error for a program with this name or path, which is not there.
pub fn fault_of_missing(dotted_key: &str, program: &str) -> Error {
    let missing = fault_at(dotted_key, &format!("there is no program {program}"));
    missing.advise(advice_for_missing(dotted_key, program))
}

/// Returns what to do about a program that is not there.
fn advice_for_missing(dotted_key: &str, program: &str) -> String {
    if program.contains('/') {
        format!("correct its path in [tools.{dotted_key}]")
    } else {
        "install it\nor write its absolute path".to_owned()
    }
}

/// Returns the error for a key that no program can print.
fn fault_of_key(section: &str, key: &Key, own: &Environment) -> Option<Error> {
    let program = missing_key_program(key, own)?;
    let missing = fault_at(section, &format!("key_cmd: there is no program {program}"));
    Some(missing.advise(advice_for_missing(section, program)))
}

/// Returns the error for a command that can never get a file: its argument would be one in the temporary directory, which is
/// empty.
pub fn fault_of_paths(section: &ToolServer, command: &Command) -> Option<Error> {
    let LocalProgram { confine, cwd, .. } = &command.program;
    if confine.is_none() || cwd.is_some() || !command.argv.has_paths() {
        return None;
    }
    Some(fault_at(
        &dotted_key_of_command(section, command),
        "a path in input is below cwd, so set cwd to a directory of confine.read or confine.write",
    ))
}

/// Returns the error for a command that would run code of the model's without asking, as the settings are. `own` is the
/// environment of q.
pub fn fault_of_unasked_code(
    section: &ToolServer,
    command: &Command,
    own: &Environment,
) -> Option<Error> {
    let Command {
        name, argv, reads, ..
    } = command;
    if !section.allows(name, *reads) {
        return None;
    }
    let program = code_runner(command, own)?;
    let mut written = argv.free_texts();
    if written.is_empty() {
        written = argv.paths();
    }
    let server = &section.name;
    let mut causes = Vec::new();
    if *reads {
        causes.push(format!("reads = true from [tools.{server}.{name}]"));
    }
    for pattern in section.allowing(name) {
        causes.push(format!("{pattern:?} from allow in [tools.{server}]"));
    }
    let reason = format!(
        "{program} may run as code what the model writes for {{{}}}, so q must ask before each call",
        written.join("} and {")
    );
    let advice = format!(
        "remove {}\nor add confine = {{ read = [...] }} to [tools.{server}.{name}], so that the kernel holds it\nor give --yes, and the calls of this question run without asking",
        causes.join(" and ")
    );
    Some(fault_at(&dotted_key_of_command(section, command), &reason).advise(advice))
}

/// Whether the settings can let a tool run without asking.
pub fn can_be_allowed(section: &ToolServer, tool: &str, own: &Environment) -> bool {
    if let ServerKind::Commands(commands) = &section.kind {
        let mut commands = commands.iter();
        let command = commands.find(|command| command.name == tool);
        return command.is_none_or(|command| code_runner(command, own).is_none());
    }
    // A server chooses the names of its tools, and as a pattern its name would allow others, too.
    !tool.contains('*') && tool != READS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn each_fault_of_a_section_is_told_with_its_key() {
        // The keys of a section, and the beginnings of the errors.
        let table = r#"
            command = ["/bin/sh"] | tools.s: ~ is not a directory
            command = ["~/no-program"] | tools.s: there is no program /none/no-program; tools.s: ~ is not a directory
            command = ["sh"]; cwd = "/" | -
            command = ["sh"]; cwd = "/no/such" | tools.s: /no/such is not a directory
            command = ["no-such-program"]; cwd = "/" | tools.s: there is no program no-such-program
            url = "https://e.com/mcp" | -
            url = "https://e.com/mcp"; key_cmd = ["no-pass"] | tools.s: key_cmd: there is no program no-pass
            url = "https://e.com/mcp"; key_cmd = ["sh"] | -
            x.run = ["ls"]; cwd = "/" | -
            x.run = ["ls"] | tools.s.x: ~ is not a directory
            x.run = ["ls"]; only = ["y"] | -
            x.run = ["ls"]; cwd = "/"; about_run = ["/no"] | tools.s.about_run: there is no program /no
            x = { run = ["sh", "-c", "{a}"], reads = true }; cwd = "/" | tools.s.x: sh may run as code
            x = { run = ["sh", "-c", "{a}"] }; cwd = "/" | -
        "#;
        let own = Environment::new(&[("HOME", "/none"), ("PATH", "/usr/bin:/bin")]);
        for [section, expected] in rows(table) {
            let server = ToolServer::parse("s", &section.replace("; ", "\n"));
            let found = faults_of_sections(&[server], &own);
            let expected = Vec::from_iter(expected.split("; ").filter(|error| !error.is_empty()));
            assert_eq!(found.len(), expected.len(), "{section}: {found:?}");
            for (error, beginning) in found.iter().zip(expected) {
                assert!(error.message.starts_with(beginning), "{section}: {error:?}");
            }
        }
    }
}
