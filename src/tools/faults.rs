//! Finds faults of configured tools that matter only if such a tool is named; other questions do not fail by them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::Error;
use crate::settings::{Command, READS, ServerKind, ToolServer};
use crate::text::runners::runner;

/// The faults of all tools that these sections offer.
pub fn find_all(sections: &[ToolServer]) -> Vec<Error> {
    let mut faults = Vec::new();
    for section in sections {
        let ServerKind::Commands(commands) = &section.kind else {
            continue;
        };
        for command in commands {
            if section.offers(&command.name) {
                faults.extend(find(section, command));
            }
        }
    }
    faults
}

/// Finds out whether the settings would let a command run code of the model's without asking.
pub fn find(section: &ToolServer, command: &Command) -> Option<Error> {
    let Command {
        name, argv, reads, ..
    } = command;
    if !section.allows(name, *reads) {
        return None;
    }
    let program = code_runner(command)?;
    let written = argv.free_texts();
    let server = &section.name;
    let mut causes = Vec::new();
    if *reads {
        causes.push(format!("reads = true from [tools.{server}.{name}]"));
    }
    for pattern in section.allowing(name) {
        causes.push(format!("{pattern:?} from allow in [tools.{server}]"));
    }
    let message = format!(
        "tools.{server}.{name}: {program} may run as code what the model writes for {{{}}}, so q must ask before each call",
        written.join("} and {")
    );
    let advice = format!(
        "remove {}\nor give --yes, and the calls of this question run without asking",
        causes.join(" and ")
    );
    Some(Error::settings(message).advise(advice))
}

/// Whether the settings can let a tool run without asking.
pub fn can_be_allowed(section: &ToolServer, tool: &str) -> bool {
    if let ServerKind::Commands(commands) = &section.kind {
        let mut commands = commands.iter();
        let command = commands.find(|command| command.name == tool);
        return command.and_then(code_runner).is_none();
    }
    // A server chooses the names of its tools, and as a pattern its name would allow others, too.
    !tool.contains('*') && tool != READS
}

/// The program by which a command may run as code what a model writes.
fn code_runner(command: &Command) -> Option<&str> {
    let argv = &command.argv;
    if argv.free_texts().is_empty() {
        return None;
    }
    runner(&argv.run, |path| is_program(Path::new(path)))
}

/// Whether a path is that of an executable file, once links are followed.
pub fn is_program(file: &Path) -> bool {
    let Ok(metadata) = fs::metadata(file) else {
        return false;
    };
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}
