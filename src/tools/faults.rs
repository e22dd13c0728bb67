//! Finds faults of configured tools that matter only if such a tool is named; other questions do not fail by them.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{self, Path, PathBuf};
use std::sync::OnceLock;

use super::bounds::Bounds;
use super::{kernel, names};
use crate::error::Error;
use crate::settings::{
    Command, Environment, Key, LocalProgram, READS, ServerKind, ToolServer, expand_home,
};
use crate::text::runners::runner;

/// Where the system looks for programs if PATH is not set.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// Returns the faults of all tools that these sections offer.
pub fn find_all(sections: &[ToolServer], own: &Environment) -> Vec<Error> {
    let mut faults = Vec::new();
    for section in sections {
        let commands = match &section.kind {
            ServerKind::Commands(commands) => commands,
            ServerKind::Wrong(reason) => {
                faults.push(unusable(section, reason));
                continue;
            }
            ServerKind::Local(local) => {
                faults.extend(of_program(&section.name, local, own));
                continue;
            }
            ServerKind::Remote(remote) => {
                faults.extend(without_key_program(&section.name, &remote.key, own));
                continue;
            }
        };
        if let Some(about) = &section.about {
            faults.extend(of_program(&about_place(&section.name), about, own));
        }
        for command in commands {
            if section.offers(&command.name) {
                let name = format!("{}.{}", section.name, command.name);
                faults.extend(of_program(&name, &command.program, own));
                faults.extend(find_fault(section, command, own));
                faults.extend(without_files(&name, command));
            }
        }
    }
    faults
}

/// Returns how messages name the program that tells about the commands of a section.
pub fn about_place(section: &str) -> String {
    format!("{section}.about_run")
}

/// Returns why a program cannot be started as its section says: the program, its bounds and its directory.
fn of_program(name: &str, local: &LocalProgram, own: &Environment) -> Vec<Error> {
    let held = bounds(name, local, own).map(|_| ());
    let place = held.and_then(|()| directory(name, local, own).map(|_| ()));
    let mut faults = Vec::from_iter(without_program(name, local, own));
    faults.extend(place.err());
    faults
}

/// Returns the directory that a program starts in; `None` for the temporary directory of a confined one.
pub fn directory(
    name: &str,
    local: &LocalProgram,
    own: &Environment,
) -> Result<Option<PathBuf>, Error> {
    let cwd = match &local.cwd {
        Some(cwd) => cwd,
        None if local.confine.is_some() => return Ok(None),
        None => "~",
    };
    let directory = expand_home(cwd, own)
        .map_err(|reason| Error::settings(format!("tools.{name}: cwd: {reason}")))?;
    // The model reads its name if a path leads out of it.
    let directory = path::absolute(directory).ok();
    let directory = directory.filter(|directory| directory.is_dir());
    if directory.is_none() {
        return Err(Error::settings(format!(
            "tools.{name}: {cwd} is not a directory, so nothing can start there"
        )));
    }
    Ok(directory)
}

/// Returns the error for a key that no program can print.
fn without_key_program(section: &str, key: &Key, own: &Environment) -> Option<Error> {
    let program = missing_key_program(key, own)?;
    let missing = format!("tools.{section}: key_cmd: there is no program {program}");
    Some(Error::settings(missing).advise(advice_for_missing(section, program)))
}

/// Returns the program that should print a key, if it is not there.
pub fn missing_key_program<'k>(key: &'k Key, own: &Environment) -> Option<&'k str> {
    let Key::Command(command) = key else {
        return None;
    };
    let program = command.first()?;
    let wanted = expand_home(program, own).ok()?;
    let own_path = own.get("PATH");
    let variables = own_path.map(|path| ("PATH".to_owned(), path.into()));
    let variables = Vec::from_iter(variables);
    look_up(&wanted, &variables).is_none().then_some(program)
}

/// Returns the error for a command that can never get a file: its argument would be one in the temporary directory, which is
/// empty.
pub fn without_files(name: &str, command: &Command) -> Option<Error> {
    let LocalProgram { confine, cwd, .. } = &command.program;
    if confine.is_none() || cwd.is_some() || !command.argv.has_paths() {
        return None;
    }
    Some(Error::settings(format!(
        "tools.{name}: a path in input is below cwd, so set cwd to a directory of confine.read or confine.write"
    )))
}

/// Returns the confined tools and servers that these sections offer, where they can be held to their bounds.
pub fn confined(sections: &[ToolServer], own: &Environment) -> Vec<(String, Bounds)> {
    let mut confined = Vec::new();
    for section in sections {
        let server = &section.name;
        let mut add = |name: String, local: &LocalProgram| {
            if let Ok(Some(bounds)) = bounds(server, local, own) {
                confined.push((name, bounds));
            }
        };
        match &section.kind {
            ServerKind::Local(local) => add(server.clone(), local),
            ServerKind::Commands(commands) => {
                for command in commands {
                    if section.offers(&command.name) {
                        add(names::full_name(server, &command.name), &command.program);
                    }
                }
            }
            ServerKind::Remote(_) | ServerKind::Wrong(_) => (),
        }
    }
    confined
}

/// Returns what the kernel lets a program do; `None` if it is not confined. The error says why it cannot be held to that.
pub fn bounds(
    name: &str,
    local: &LocalProgram,
    own: &Environment,
) -> Result<Option<Bounds>, Error> {
    let Some(found) = Bounds::find(local, own) else {
        return Ok(None);
    };
    let wrong = |reason: &str| Error::settings(format!("tools.{name}: {reason}"));
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    if let Some(missing) = MISSING.get_or_init(kernel::what_is_missing) {
        let error = wrong(&format!(
            "it cannot be confined, so it does not run: {missing}"
        ));
        return Err(error);
    }
    let bounds = found.map_err(|reason| wrong(&reason))?;
    if let Some(cwd) = &local.cwd {
        let directory = expand_home(cwd, own).map_err(|reason| wrong(&reason))?;
        if !bounds.has_directory(Path::new(&directory)) {
            return Err(wrong(&format!(
                "cwd = {cwd:?} is neither below a path of confine.read nor of confine.write"
            )));
        }
    }
    Ok(Some(bounds))
}

/// Returns the error for a server that q cannot use.
pub fn unusable(section: &ToolServer, reason: &str) -> Error {
    Error::settings(format!("the tool server {}: {reason}", section.name))
}

/// Finds out whether the settings would let a command run code of the model's without asking. `own` is the environment of q.
pub fn find_fault(section: &ToolServer, command: &Command, own: &Environment) -> Option<Error> {
    let Command {
        name, argv, reads, ..
    } = command;
    if !section.allows(name, *reads) {
        return None;
    }
    let program = code_runner(command, own)?;
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
        "remove {}\nor add confine = {{ read = [...] }} to [tools.{server}.{name}], so that the kernel holds it\nor give --yes, and the calls of this question run without asking",
        causes.join(" and ")
    );
    Some(Error::settings(message).advise(advice))
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

/// Returns the program by which a command may run as code what a model writes.
fn code_runner<'c>(command: &'c Command, own: &Environment) -> Option<&'c str> {
    let argv = &command.argv;
    if argv.free_texts().is_empty() || command.program.confine.is_some() {
        return None;
    }
    let variables = command.program.environment(own);
    runner(&argv.run, |name| {
        let path = expand_home(name, own).ok()?;
        let file = fs::canonicalize(look_up(&path, &variables)?).ok()?;
        Some(file.to_string_lossy().into_owned())
    })
}

/// Finds a program that a section names.
pub fn find_program(
    section: &str,
    name: &str,
    variables: &[(String, OsString)],
) -> Result<PathBuf, Error> {
    look_up(name, variables).ok_or_else(|| {
        let missing = format!("tools.{section}: there is no program {name}");
        Error::settings(missing).advise(advice_for_missing(section, name))
    })
}

/// Returns what to do about a program that is not there.
fn advice_for_missing(section: &str, name: &str) -> String {
    if name.contains('/') {
        format!("correct its path in [tools.{section}]")
    } else {
        "install it\nor write its absolute path".to_owned()
    }
}

/// Returns the error for a program that is not there.
fn without_program(name: &str, local: &LocalProgram, own: &Environment) -> Option<Error> {
    let program = expand_home(local.command.first()?, own).ok()?;
    find_program(name, &program, &local.environment(own)).err()
}

/// Returns the file of a program: by its absolute path, or by its name in the PATH that it will have itself. Relative directories
/// of PATH do not count, because they would depend on where q is started.
fn look_up(name: &str, variables: &[(String, OsString)]) -> Option<PathBuf> {
    let directories = if name.contains('/') {
        vec![PathBuf::new()]
    } else {
        let mut variables = variables.iter();
        let path = variables.find(|(variable, _)| variable == "PATH");
        let path = path.map_or(OsStr::new(DEFAULT_PATH), |(_, path)| path);
        env::split_paths(path)
            .filter(|directory| directory.is_absolute())
            .collect()
    };
    let mut files = directories
        .into_iter()
        .map(|directory| directory.join(name));
    files.find(|file| file.is_absolute() && is_program(file))
}

/// Whether a path is that of an executable file, once links are followed.
fn is_program(file: &Path) -> bool {
    let Ok(metadata) = fs::metadata(file) else {
        return false;
    };
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}
