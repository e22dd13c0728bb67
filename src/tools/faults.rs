//! Says what is wrong with configured tools. It matters only if such a tool is named; other questions do not fail by it.
//!
//! What is called `fault_of` something returns the error, or `None` if there is nothing wrong. `startup` finds what a program
//! needs.

use super::startup::{self, StartFault, code_runner, fault_of_key_program};
use crate::error::Error;
use crate::programs::ProgramFault;
use crate::settings::{
    Command, Environment, Key, LocalProgram, READS, SectionFault, ServerKind, ServerOrigin,
    SharedEntry, ToolServer,
};

/// Returns the faults of all tools that these sections offer.
pub fn faults_of_sections(sections: &[ToolServer], own: &Environment) -> Vec<Error> {
    let mut faults = Vec::new();
    for section in sections {
        let name = &section.name;
        match &section.kind {
            ServerKind::Wrong(fault) => faults.push(as_error(section, fault)),
            ServerKind::Local(local) => {
                faults.extend(faults_of_program(section, name, local, own));
            }
            ServerKind::Remote(remote) => faults.extend(fault_of_key(section, &remote.key, own)),
            ServerKind::Commands { commands, about } => {
                faults.extend(faults_of_commands(section, commands, about.as_ref(), own));
            }
        }
    }
    faults
}

/// Returns the faults of the commands that a section offers, and of the program that tells about them.
fn faults_of_commands(
    section: &ToolServer,
    commands: &[Command],
    about: Option<&LocalProgram>,
    own: &Environment,
) -> Vec<Error> {
    let mut faults = Vec::new();
    if let Some(about) = about {
        let dotted_key = dotted_key_of_about(&section.name);
        faults.extend(faults_of_program(section, &dotted_key, about, own));
    }
    for command in commands {
        if !section.offers(&command.name) {
            continue;
        }
        if let Some(fault) = &command.fault {
            faults.push(as_error(section, fault));
        } else {
            let dotted_key = dotted_key_of_command(section, command);
            let program = &command.program;
            faults.extend(faults_of_program(section, &dotted_key, program, own));
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

/// A part of a configured program that can be wrong.
#[derive(Clone, Copy)]
pub enum ProgramPart {
    Command,
    /// Where it starts.
    Directory,
    /// What the kernel lets it do, which only a section of the configuration file can say.
    Bounds,
}

/// Says that no confined program can have its temporary directory. `reason` tells what is in the way.
pub fn without_scratch(reason: &str) -> String {
    format!("no temporary directory can be made, so nothing confined runs: {reason}")
}

/// What to do where no temporary directory can be made.
pub const SCRATCH_ADVICE: &str =
    "set XDG_CACHE_HOME or TMPDIR to a directory that you can write in";

/// Returns an error about the tool or server that this key below `tools` configures.
fn error_at(dotted_key: &str, reason: &str) -> Error {
    Error::settings(format!("tools.{dotted_key}: {reason}"))
}

/// Returns the fault of a section, or of one of its commands, as an error.
pub fn as_error(section: &ToolServer, fault: &SectionFault) -> Error {
    match fault {
        SectionFault::InFile { .. } => {
            Error::settings(fault.to_string()).advise("run q --help to list the settings")
        }
        SectionFault::InSharedFile(reason) => section_error(section, reason),
    }
}

/// Returns the error for a section that q cannot use.
fn section_error(section: &ToolServer, reason: &str) -> Error {
    let name = &section.name;
    match &section.origin {
        ServerOrigin::Section => error_at(name, reason),
        ServerOrigin::Shared(SharedEntry { file, .. }) => {
            Error::settings(format!("the tool server {name}: {reason} (in {file})"))
        }
    }
}

/// Returns an error about a program of a section, which has this dotted key below `tools` in the configuration file.
pub fn program_error(
    section: &ToolServer,
    dotted_key: &str,
    part: ProgramPart,
    reason: &str,
) -> Error {
    let (key, entry) = match (part, &section.origin) {
        (ProgramPart::Bounds, _) | (_, ServerOrigin::Section) => {
            return error_at(dotted_key, reason);
        }
        (ProgramPart::Command, ServerOrigin::Shared(entry)) => (entry.command_key, entry),
        (ProgramPart::Directory, ServerOrigin::Shared(entry)) => (entry.cwd_key, entry),
    };
    section_error(section, &format!("{}.{key}: {reason}", entry.path))
}

/// Returns why a program cannot be started as its section says.
fn faults_of_program(
    section: &ToolServer,
    dotted_key: &str,
    local: &LocalProgram,
    own: &Environment,
) -> Vec<Error> {
    let Err(faults) = startup::find_start(local, own) else {
        return Vec::new();
    };
    let mut errors = vec![start_error(section, dotted_key, &faults.first)];
    if let Some(second) = &faults.second {
        errors.push(start_error(section, dotted_key, second));
    }
    errors
}

/// Returns the error for a program that cannot be started.
pub fn start_error(section: &ToolServer, dotted_key: &str, fault: &StartFault) -> Error {
    let (part, reason) = match fault {
        StartFault::File(program, fault) => {
            return file_error(section, dotted_key, program, fault);
        }
        StartFault::Name(reason) => (ProgramPart::Command, reason),
        StartFault::Bounds(reason) => (ProgramPart::Bounds, reason),
        StartFault::Directory(reason) => (ProgramPart::Directory, reason),
        StartFault::Cwd(reason) => match section.origin {
            // There is no other word of the key.
            ServerOrigin::Section => return error_at(dotted_key, &format!("cwd: {reason}")),
            ServerOrigin::Shared(_) => (ProgramPart::Directory, reason),
        },
    };
    program_error(section, dotted_key, part, reason)
}

/// Returns the error for a program with this name or path, which cannot be run.
fn file_error(
    section: &ToolServer,
    dotted_key: &str,
    program: &str,
    fault: &ProgramFault,
) -> Error {
    let reason = fault.reason(program);
    let error = program_error(section, dotted_key, ProgramPart::Command, &reason);
    error.advise(advice_for_file(section, dotted_key, program, fault))
}

/// Returns what to do about a program that cannot be run.
fn advice_for_file(
    section: &ToolServer,
    dotted_key: &str,
    program: &str,
    fault: &ProgramFault,
) -> String {
    if let Some(advice) = fault.advice() {
        return advice;
    }
    if !program.contains('/') {
        return "install it, or write its absolute path".to_owned();
    }
    match &section.origin {
        ServerOrigin::Section => format!("correct its path in [tools.{dotted_key}]"),
        ServerOrigin::Shared(entry) => {
            format!("correct its path in \"{}\"", entry.command_key)
        }
    }
}

/// Returns the error for a key that no program can print.
fn fault_of_key(section: &ToolServer, key: &Key, own: &Environment) -> Option<Error> {
    let name = &section.name;
    let (program, fault) = fault_of_key_program(key, own)?;
    let reason = fault.reason(program);
    let error = error_at(name, &format!("key_cmd: {reason}"));
    Some(error.advise(advice_for_file(section, name, program, &fault)))
}

/// Returns the error for a command that can never get a file: its argument would be one in the temporary directory, which is
/// empty.
pub fn fault_of_paths(section: &ToolServer, command: &Command) -> Option<Error> {
    let LocalProgram { confine, cwd, .. } = &command.program;
    if confine.is_none() || cwd.is_some() || !command.argv.has_paths() {
        return None;
    }
    Some(error_at(
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
    let mut written = argv.text_parameters();
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
        "remove {}, or add confine = {{ read = [...] }} to [tools.{server}.{name}], so that the kernel holds it, or give --yes, and the calls of this question run without asking",
        causes.join(" and ")
    );
    Some(error_at(&dotted_key_of_command(section, command), &reason).advise(advice))
}

/// Whether the settings can let a tool run without asking.
pub fn can_be_allowed(section: &ToolServer, tool: &str, own: &Environment) -> bool {
    if let ServerKind::Commands { commands, .. } = &section.kind {
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
    fn each_fault_of_a_shared_files_server_is_told_and_corrected_there() {
        // A server, the fault without its beginning and end, and the advice.
        let table = r#"
            {"command": "~/bin/x", "cwd": "/"} | command: there is no program /none/bin/x | correct its path in "command"
            {"command": {"path": "/no/x"}, "cwd": "/"} | command.path: there is no program /no/x | correct its path in "command.path"
            {"command": "no-such-program", "cwd": "/"} | command: there is no program no-such-program | install it, or write its absolute path
            {"command": "sh", "cwd": "/no/such"} | cwd: /no/such is not a directory, so nothing can start there | -
            {"command": "sh"} | cwd: ~ is not a directory, so nothing can start there; set cwd to another directory | -
            {"command": "sh", "confine": {}} | confine: only a section [tools.NAME] of q's own file can confine a server | -
            {"command": "sh", "cwd": "/"} | - | -
            {"url": "https://e.com/mcp"} | - | -
        "#;
        let own = Environment::new(&[("HOME", "/none"), ("PATH", "/usr/bin:/bin")]);
        for [section, fault, advice] in rows(table) {
            let server = ToolServer::parse_shared(section, &own);
            let faults = faults_of_sections(&[server], &own);
            let Some(found) = faults.first() else {
                assert_eq!(fault, "", "{section}");
                continue;
            };
            let message = found
                .message
                .strip_prefix("the tool server s: mcpServers.s.");
            let message = message.and_then(|message| message.strip_suffix(" (in /mcp.json)"));
            assert_eq!(message, Some(fault), "{section}: {found:?}");
            let found = found.advice.as_deref().unwrap_or_default();
            assert_eq!(found, advice, "{section}");
        }
    }

    #[test]
    fn a_key_is_named_once_where_there_is_no_home() {
        let own = Environment::new(&[("PATH", "/usr/bin:/bin")]);
        let server = ToolServer::parse_shared(r#"{"command": "sh"}"#, &own);
        let faults = faults_of_sections(&[server], &own);
        let expected = "the tool server s: mcpServers.s.cwd: ~ needs HOME, which is not set";
        assert!(faults[0].message.starts_with(expected), "{faults:?}");
        let server = ToolServer::parse("s", "command = [\"~/x\"]");
        let faults = faults_of_sections(&[server], &own);
        let [of_name, of_cwd] = &faults[..] else {
            panic!("{faults:?}");
        };
        let expected = "tools.s: ~/x needs HOME, which is not set";
        assert!(of_name.message.starts_with(expected), "{of_name:?}");
        let expected = "tools.s: cwd: ~ needs HOME, which is not set";
        assert!(of_cwd.message.starts_with(expected), "{of_cwd:?}");
    }

    #[test]
    fn advice_about_a_server_names_the_keys_and_the_place_that_it_has() {
        let own = Environment::default();
        // A server, and what advice says: its tools, a variable, its address, its key and a bridge.
        let program =
            r#"{"command": "x", "environment": {}, "tools": ["a"], "disabledTools": ["a"]}"#;
        let program = ToolServer::parse_shared(program, &own);
        let remote = ToolServer::parse_shared(r#"{"httpUrl": "https://h/mcp"}"#, &own);
        let own_program = ToolServer::parse("s", "command = [\"x\"]");
        let own_remote = ToolServer::parse("s", "url = \"https://h/mcp\"");
        let forwards = "a program on your machine that forwards this server";
        for (found, expected) in [
            (own_program.choice_of_tools(), "only = [...] in [tools.s]".to_owned()),
            (own_program.passing_of("X"), "env_from = [\"X\"] in [tools.s]".to_owned()),
            (
                own_program.fault_of_choice(),
                "only = [...] in [tools.s] matches none of its tools".to_owned(),
            ),
            (own_remote.origin.url_key(), "url".to_owned()),
            (
                own_remote.origin.credentials(),
                "key_env, key_cmd or headers set it".to_owned(),
            ),
            (
                own_remote.origin.bridge("U"),
                format!("replace url with command = [\"npx\", \"mcp-remote\", \"U\"], {forwards}"),
            ),
            (
                program.choice_of_tools(),
                "only = [...] in [tools.s]".to_owned(),
            ),
            (
                program.passing_of("X"),
                "\"environment\": {\"X\": \"${X}\"} in mcpServers.s of /mcp.json".to_owned(),
            ),
            (
                program.fault_of_choice(),
                "\"tools\" and \"disabledTools\" in mcpServers.s of /mcp.json leave none of its tools"
                    .to_owned(),
            ),
            (
                remote.choice_of_tools(),
                "only = [...] in [tools.s]".to_owned(),
            ),
            (remote.origin.url_key(), "\"httpUrl\" of mcpServers.s in /mcp.json".to_owned()),
            (
                remote.origin.credentials(),
                "\"headers\" of mcpServers.s in /mcp.json sets it, such as \"Authorization\": \"Bearer ${TOKEN}\""
                    .to_owned(),
            ),
            (
                remote.origin.bridge("U"),
                format!(
                    "replace \"httpUrl\" with \"command\": \"npx\", \"args\": [\"mcp-remote\", \"U\"], {forwards}"
                ),
            ),
        ] {
            assert_eq!(found, expected);
        }
    }

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
