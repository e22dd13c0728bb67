//! Finds what the programs of a section start with: their files, their directories and their bounds.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{self, Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::bounds::Bounds;
use super::{kernel, names};
use crate::commands::runners::runner;
use crate::error::in_words;
use crate::programs::{ProgramFault, find_program};
use crate::settings::{
    Command, Environment, Key, LocalProgram, ServerKind, ToolServer, expand_home,
};

/// A program of a section, with what it starts with.
pub struct FoundProgram {
    /// Its name, or its absolute path.
    pub name: String,
    pub file: PathBuf,
    pub environment: Vec<(String, OsString)>,
    /// What the kernel lets it do; `None` if it is not confined.
    pub bounds: Option<Bounds>,
    /// Where it starts; `None` for the temporary directory of a confined one.
    pub directory: Option<PathBuf>,
}

/// A reason why a program cannot be started as its section says.
#[derive(Debug, PartialEq, Eq)]
pub enum StartFault {
    /// Its name has no meaning here.
    Name(String),
    /// This program cannot be run.
    File(String, ProgramFault),
    /// It cannot be held to its bounds.
    Bounds(String),
    /// Its cwd has no meaning here.
    Cwd(String),
    /// Nothing can start in its directory.
    Directory(String),
}

/// The faults of a program: there is one of its file, one of its bounds or directory, or both.
#[derive(Debug, PartialEq, Eq)]
pub struct StartFaults {
    pub first: StartFault,
    pub second: Option<StartFault>,
}

/// Finds what a program starts with.
pub fn find_start(local: &LocalProgram, own: &Environment) -> Result<FoundProgram, StartFaults> {
    let environment = local.environment(own);
    let found = file_of(local, own, &environment);
    let known = found.as_ref().ok().map(|(_, file)| file.as_path());
    let place = bounds_of(local, own, known)
        .map_err(StartFault::Bounds)
        .and_then(|bounds| Ok((bounds, start_directory(local, own)?)));
    match (found, place) {
        (Ok((name, file)), Ok((bounds, directory))) => Ok(FoundProgram {
            name,
            file,
            environment,
            bounds,
            directory,
        }),
        (Err(first), place) => Err(StartFaults {
            first,
            second: place.err(),
        }),
        (Ok(_), Err(first)) => Err(StartFaults {
            first,
            second: None,
        }),
    }
}

/// Returns the name and the file of a program with this environment.
fn file_of(
    local: &LocalProgram,
    own: &Environment,
    environment: &[(String, OsString)],
) -> Result<(String, PathBuf), StartFault> {
    let name = expand_home(&local.name, own).map_err(StartFault::Name)?;
    match program_file(&name, environment) {
        Ok(file) => Ok((name, file)),
        Err(fault) => Err(StartFault::File(name, fault)),
    }
}

/// Returns the directory that a program starts in; `None` for the temporary directory of a confined one.
fn start_directory(local: &LocalProgram, own: &Environment) -> Result<Option<PathBuf>, StartFault> {
    let cwd = match &local.cwd {
        Some(cwd) => cwd,
        None if local.confine.is_some() => return Ok(None),
        None => "~",
    };
    let directory = expand_home(cwd, own).map_err(StartFault::Cwd)?;
    // The model reads its name if a path leads out of it.
    let found = path::absolute(&directory).and_then(|place| {
        check_entry(&place)?;
        Ok(place)
    });
    let error = match found {
        Ok(place) => return Ok(Some(place)),
        Err(error) => error,
    };
    let mut reason = match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            format!("{cwd} is not a directory, so nothing can start there")
        }
        _ => {
            let why = error.to_string();
            format!(
                "{directory} cannot be entered ({}), so nothing can start there",
                in_words(&why)
            )
        }
    };
    if local.cwd.is_none() {
        reason += "; set cwd to another directory";
    }
    Err(StartFault::Directory(reason))
}

/// Checks that a program can start in a directory. Else the system says only that the program cannot be run.
fn check_entry(directory: &Path) -> io::Result<()> {
    if !fs::metadata(directory)?.is_dir() {
        return Err(ErrorKind::NotADirectory.into());
    }
    accessat(CWD, directory, Access::EXEC_OK, AtFlags::EACCESS)?;
    Ok(())
}

/// Returns what the kernel lets a program with this file do; `None` if it is not confined. The error says why it cannot be held to
/// that.
fn bounds_of(
    local: &LocalProgram,
    own: &Environment,
    file: Option<&Path>,
) -> Result<Option<Bounds>, String> {
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
    if let Some(file) = file {
        bounds.real_program(file)?;
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
            let found = file_of(local, own, &local.environment(own));
            let known = found.as_ref().ok().map(|(_, file)| file.as_path());
            if let Ok(Some(bounds)) = bounds_of(local, own, known) {
                confined.push((name, bounds));
            }
        };
        let server = &section.name;
        match &section.kind {
            ServerKind::Local(local) => add(server.clone(), local),
            ServerKind::Commands { commands, .. } => {
                for command in commands {
                    if command.fault.is_none() && section.offers(&command.name) {
                        add(names::full_name(server, &command.name), &command.program);
                    }
                }
            }
            ServerKind::Remote(_) | ServerKind::Wrong(_) => (),
        }
    }
    confined
}

/// Returns the program by which a command may run code that a model writes, or chooses.
pub fn code_runner<'c>(command: &'c Command, own: &Environment) -> Option<&'c str> {
    let argv = &command.argv;
    if command.program.confine.is_some() {
        return None;
    }
    let variables = command.program.environment(own);
    runner(argv, |name| {
        let path = expand_home(name, own).ok()?;
        let file = fs::canonicalize(program_file(&path, &variables).ok()?).ok()?;
        Some(file.to_string_lossy().into_owned())
    })
}

/// Returns the program that should print a key, and why it cannot be run; `None` if it can.
pub fn fault_of_key_program<'k>(
    key: &'k Key,
    own: &Environment,
) -> Option<(&'k str, ProgramFault)> {
    let Key::Command(command) = key else {
        return None;
    };
    let program = command.first()?;
    let wanted = expand_home(program, own).ok()?;
    let fault = find_program(&wanted, own.get_os("PATH")).err()?;
    Some((program, fault))
}

/// Returns the file of a program: by its absolute path, or by its name in the PATH that it will have itself.
pub fn program_file(name: &str, variables: &[(String, OsString)]) -> Result<PathBuf, ProgramFault> {
    let mut variables = variables.iter();
    let path = variables.find(|(variable, _)| variable == "PATH");
    find_program(name, path.map(|(_, path)| path.as_os_str()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::text::table::rows;

    #[test]
    fn a_program_starts_in_its_cwd_or_at_home_and_a_confined_one_in_its_temporary_directory() {
        let home = tempfile::tempdir().expect("a directory");
        let home = home.path();
        fs_err::create_dir(home.join("shop")).expect("a directory");
        fs_err::write(home.join("file"), "").expect("a file");
        let own = Environment::new(&[("HOME", &home.to_string_lossy())]);
        // Lines of a section, and the directory, or why there is none.
        let table = r#"
            - | HOME
            cwd = "~" | HOME
            cwd = "~/shop" | HOME/shop
            cwd = "/" | /
            confine = {} | temporary
            confine = {}; cwd = "~/shop" | HOME/shop
            cwd = "~/file" | ~/file is not a directory, so nothing can start there
            cwd = "~/gone" | ~/gone is not a directory, so nothing can start there
        "#;
        for [lines, expected] in rows(table) {
            let section = format!("command = [\"x\"]\n{}", lines.replace("; ", "\n"));
            let section = ToolServer::parse("db", &section);
            let ServerKind::Local(local) = &section.kind else {
                panic!("{lines} is of another kind");
            };
            let found = match start_directory(local, &own) {
                Ok(Some(directory)) => directory.to_string_lossy().into_owned(),
                Ok(None) => "temporary".to_owned(),
                Err(StartFault::Directory(reason)) => reason,
                Err(fault) => panic!("{fault:?}"),
            };
            assert_eq!(
                found,
                expected.replace("HOME", &home.to_string_lossy()),
                "{lines}"
            );
        }
    }

    #[test]
    fn a_link_to_an_interpreter_runs_code_as_it_does() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str| directory.path().join(name);
        for program in ["python3.13", "report"] {
            fs_err::write(file(program), "").expect("a file");
            let executable = PermissionsExt::from_mode(0o755);
            fs_err::set_permissions(file(program), executable).expect("a program");
        }
        symlink(file("python3.13"), file("tool")).expect("a link");
        symlink(file("tool"), file("link")).expect("a link to the link");
        let path = directory.path().to_string_lossy();
        let own = Environment::new(&[("PATH", &path), ("HOME", "/")]);
        // The words of a command, other lines of its section, and the program that runs code.
        let table = r#"
            "python3.13", "{code}" | - | python3.13
            "tool", "{code}" | - | tool
            "link", "{code}" | - | link
            "report", "DIR/link", "{code}" | - | DIR/link
            "report", "{code}" | - | -
            "tool", "--version" | - | -
            "tool", "{count}" | input = "count int" | -
            "tool", "{code}" | confine = {} | -
        "#;
        for [words, lines, expected] in rows(table) {
            let words = words.replace("DIR", &path);
            let section = ToolServer::parse("shop", &format!("[run]\nrun = [{words}]\n{lines}"));
            let ServerKind::Commands { commands, .. } = &section.kind else {
                panic!("{words} is no command");
            };
            let found = code_runner(&commands[0], &own).unwrap_or_default();
            assert_eq!(found, expected.replace("DIR", &path), "{words} {lines}");
        }
    }
}
