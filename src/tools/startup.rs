//! Finds what the programs of a section start with: their files, their directories and their bounds.

use std::ffi::OsString;
use std::fs;
use std::path::{self, Path, PathBuf};
use std::sync::OnceLock;

use super::bounds::Bounds;
use super::{kernel, names};
use crate::commands::runners::runner;
use crate::programs::find_program;
use crate::settings::{
    Command, Environment, Key, LocalProgram, ServerKind, ToolServer, expand_home,
};

/// Returns the directory that a program starts in; `None` for the temporary directory of a confined one. The error says why it
/// cannot start there.
pub fn start_directory(local: &LocalProgram, own: &Environment) -> Result<Option<PathBuf>, String> {
    let cwd = match &local.cwd {
        Some(cwd) => cwd,
        None if local.confine.is_some() => return Ok(None),
        None => "~",
    };
    let directory = expand_home(cwd, own).map_err(|reason| format!("cwd: {reason}"))?;
    // The model reads its name if a path leads out of it.
    let directory = path::absolute(directory).ok();
    let directory = directory.filter(|directory| directory.is_dir());
    if directory.is_none() {
        return Err(format!(
            "{cwd} is not a directory, so nothing can start there"
        ));
    }
    Ok(directory)
}

/// Returns what the kernel lets a program do; `None` if it is not confined. The error says why it cannot be held to that.
pub fn bounds_of(local: &LocalProgram, own: &Environment) -> Result<Option<Bounds>, String> {
    let Some(found) = Bounds::find(local, own) else {
        return Ok(None);
    };
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    if let Some(missing) = MISSING.get_or_init(kernel::what_is_missing) {
        return Err(format!(
            "it cannot be confined, so it does not run: {missing}"
        ));
    }
    let bounds = found?;
    let name = expand_home(&local.name, own)?;
    if let Some(file) = program_file(&name, &local.environment(own)) {
        bounds.real_program(&file)?;
    }
    if let Some(cwd) = &local.cwd {
        let directory = expand_home(cwd, own)?;
        if !bounds.has_directory(Path::new(&directory)) {
            return Err(format!(
                "cwd = {cwd:?} is neither below a path of confine.read nor of confine.write"
            ));
        }
    }
    Ok(Some(bounds))
}

/// Returns the confined tools and servers that these sections offer, where they can be held to their bounds.
pub fn confined_tools(sections: &[ToolServer], own: &Environment) -> Vec<(String, Bounds)> {
    let mut confined = Vec::new();
    for section in sections {
        let mut add = |name: String, local: &LocalProgram| {
            if let Ok(Some(bounds)) = bounds_of(local, own) {
                confined.push((name, bounds));
            }
        };
        let server = &section.name;
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

/// Returns the program by which a command may run as code what a model writes.
pub fn code_runner<'c>(command: &'c Command, own: &Environment) -> Option<&'c str> {
    let argv = &command.argv;
    if argv.free_texts().is_empty() || command.program.confine.is_some() {
        return None;
    }
    let variables = command.program.environment(own);
    runner(argv, |name| {
        let path = expand_home(name, own).ok()?;
        let file = fs::canonicalize(program_file(&path, &variables)?).ok()?;
        Some(file.to_string_lossy().into_owned())
    })
}

/// Returns the program that should print a key, if it is not there.
pub fn missing_key_program<'k>(key: &'k Key, own: &Environment) -> Option<&'k str> {
    let Key::Command(command) = key else {
        return None;
    };
    let program = command.first()?;
    let wanted = expand_home(program, own).ok()?;
    find_program(&wanted, own.get_os("PATH"))
        .is_none()
        .then_some(program)
}

/// Returns the file of a program: by its absolute path, or by its name in the PATH that it will have itself.
pub fn program_file(name: &str, variables: &[(String, OsString)]) -> Option<PathBuf> {
    let mut variables = variables.iter();
    let path = variables.find(|(variable, _)| variable == "PATH");
    find_program(name, path.map(|(_, path)| path.as_os_str()))
}
