//! Finds the file of a program by its name, and says why it cannot be run.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::text::escape::escape;
use crate::text::shell_words::quoted;
use crate::unix::effective_user;
use crate::whole_file::broken_link;

/// Where the system looks for programs if PATH is not set.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// How much of a script Linux reads to find its interpreter.
const MAX_FIRST_LINE: u64 = 256;

/// A reason why a program cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramFault {
    /// Nothing is there.
    Missing,
    /// A link that leads to nothing, in words.
    BrokenLink(&'static str),
    Directory,
    /// A pipe, a socket or a device.
    NotRegular(PathBuf),
    /// A file whose mode does not let this user execute it.
    NotExecutable(PathBuf),
    /// A file that the system does not execute although its mode lets this user do so.
    Forbidden(PathBuf),
    /// A script whose first line names a program that is not there, perhaps as an argument of env.
    NoInterpreter {
        script: PathBuf,
        interpreter: PathBuf,
    },
}

impl ProgramFault {
    /// Returns what is wrong with the program of this name or path.
    pub fn reason(&self, program: &str) -> String {
        match self {
            ProgramFault::Missing => format!("there is no program {program}"),
            ProgramFault::BrokenLink(what) => format!("{program} is {what}"),
            ProgramFault::Directory => format!("{program} is a directory, not a program"),
            ProgramFault::NotRegular(file) => {
                format!("{file} is not a regular file", file = file.display())
            }
            ProgramFault::NotExecutable(file) => {
                format!("{file} is not executable", file = file.display())
            }
            ProgramFault::Forbidden(file) => {
                format!("{file} cannot be executed", file = file.display())
            }
            ProgramFault::NoInterpreter {
                script,
                interpreter,
            } => format!(
                "{script} cannot run, because its first line names the interpreter {interpreter}, which does not exist",
                script = script.display(),
                interpreter = escape(&interpreter.to_string_lossy())
            ),
        }
    }

    /// Returns what to do about a file that is where it should be.
    pub fn advice(&self) -> Option<String> {
        match self {
            ProgramFault::Missing
            | ProgramFault::BrokenLink(_)
            | ProgramFault::Directory
            | ProgramFault::NotRegular(_) => None,
            ProgramFault::Forbidden(_) => {
                Some("check whether its file system is mounted with noexec".to_owned())
            }
            ProgramFault::NotExecutable(file) => Some(format!(
                "make it executable: chmod +x {file}",
                file = quoted(&file.to_string_lossy())
            )),
            ProgramFault::NoInterpreter {
                script,
                interpreter,
            } if interpreter.to_string_lossy().ends_with('\r') => Some(format!(
                "remove the carriage returns (^M) at the ends of its lines: dos2unix {script}",
                script = quoted(&script.to_string_lossy())
            )),
            ProgramFault::NoInterpreter { .. } => {
                Some("install the interpreter, or correct the first line".to_owned())
            }
        }
    }
}

/// Returns the file of a program: by its absolute path, or by its name in this PATH. Relative directories of PATH do not count,
/// because they would depend on where q is started: anybody may have put a program there.
pub fn find_program(name: &str, path: Option<&OsStr>) -> Result<PathBuf, ProgramFault> {
    let is_path = name.contains('/');
    let directories = if is_path {
        vec![PathBuf::new()]
    } else {
        env::split_paths(path.unwrap_or(OsStr::new(DEFAULT_PATH))).collect()
    };
    let mut fault = ProgramFault::Missing;
    for directory in directories {
        let file = directory.join(name);
        if !file.is_absolute() {
            continue;
        }
        match look_at(&file) {
            Ok(()) => return with_interpreter(file),
            // Only a path says that this file is meant.
            Err(
                found @ (ProgramFault::NotRegular(_)
                | ProgramFault::NotExecutable(_)
                | ProgramFault::Forbidden(_)),
            ) if fault == ProgramFault::Missing => fault = found,
            Err(found) if is_path => fault = found,
            Err(_) => (),
        }
    }
    Err(fault)
}

/// Checks that a path is that of a file that this user may execute, once links are followed. A shell goes on to the next
/// directory of PATH where it is not, as do we.
fn look_at(file: &Path) -> Result<(), ProgramFault> {
    match fs::metadata(file) {
        Err(_) => Err(broken_link(file).map_or(ProgramFault::Missing, ProgramFault::BrokenLink)),
        Ok(metadata) if metadata.is_dir() => Err(ProgramFault::Directory),
        Ok(metadata) if !metadata.is_file() => Err(ProgramFault::NotRegular(file.to_owned())),
        Ok(_) if accessat(CWD, file, Access::EXEC_OK, AtFlags::EACCESS).is_ok() => Ok(()),
        Ok(metadata) => Err(refused(file, &metadata)),
    }
}

/// Returns the fault of a regular file that the system does not let this user execute.
fn refused(file: &Path, metadata: &Metadata) -> ProgramFault {
    // This user may be in the group of another's file or not.
    let is_own = metadata.uid() == effective_user();
    let bits = if is_own { 0o100 } else { 0o011 };
    if metadata.mode() & bits == bits {
        ProgramFault::Forbidden(file.to_owned())
    } else {
        ProgramFault::NotExecutable(file.to_owned())
    }
}

/// Returns the file of a program, unless it is a script without its interpreter.
fn with_interpreter(file: PathBuf) -> Result<PathBuf, ProgramFault> {
    match missing_interpreter(&file) {
        Some(interpreter) => Err(ProgramFault::NoInterpreter {
            script: file,
            interpreter,
        }),
        None => Ok(file),
    }
}

/// Returns the interpreter that the first line of a script names, if that is not there. `None` also for a relative path, because
/// it depends on where the script is started.
fn missing_interpreter(file: &Path) -> Option<PathBuf> {
    let line = first_line(file)?;
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let mut words = line.splitn(2, is_blank);
    let interpreter = path_of(words.next()?);
    if !interpreter.is_absolute() {
        return None;
    }
    if !interpreter.exists() {
        return Some(interpreter);
    }
    // With -S, env takes the carriage return for a blank.
    let argument = words.next()?.trim_ascii_start();
    let is_named_by_env = interpreter.ends_with("env") && !argument.starts_with(b"-");
    (is_named_by_env && argument.ends_with(b"\r")).then(|| path_of(argument))
}

/// Returns the first line of a script, from its interpreter on, if the script can be read. Only the system can tell what a line
/// means that is longer than what it reads, or that has a NUL byte.
fn first_line(file: &Path) -> Option<Vec<u8>> {
    let mut beginning = Vec::new();
    let file = File::open(file).ok()?;
    file.take(MAX_FIRST_LINE).read_to_end(&mut beginning).ok()?;
    let line = beginning.strip_prefix(b"#!")?;
    let end = line.iter().position(|byte| *byte == b'\n')?;
    let line = &line[..end];
    if line.contains(&0) {
        return None;
    }
    let start = line.iter().position(|byte| !matches!(byte, b' ' | b'\t'))?;
    Some(line[start..].to_vec())
}

fn path_of(bytes: &[u8]) -> PathBuf {
    OsString::from_vec(bytes.to_vec()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_an_executable_file_in_an_absolute_directory_of_path() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path().to_str().expect("UTF-8");
        for directory in ["one", "two", "two/directory"] {
            fs::create_dir(format!("{root}/{directory}")).expect("a directory");
        }
        for (file, mode) in [
            ("one/plain", 0o644),
            ("two/plain", 0o700),
            ("one/both", 0o700),
            ("two/both", 0o700),
            ("one/others", 0o001),
            ("two/others", 0o700),
        ] {
            let path = format!("{root}/{file}");
            fs::write(&path, "").expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
        }
        symlink("../two/both", format!("{root}/one/link")).expect("a link");
        symlink("nowhere", format!("{root}/one/dangling")).expect("a link");
        let both = format!("{root}/one:{root}/two");
        // The same directories from the current one.
        let here = env::current_dir().expect("a directory");
        let up = "../".repeat(here.components().count() - 1);
        let relative = format!("{up}{}", root.trim_start_matches('/'));
        assert_eq!(look_at(Path::new(&format!("{relative}/one/both"))), Ok(()));
        // Root may execute what anybody may; its owner may not.
        let others = if effective_user() == 0 {
            "one/others"
        } else {
            "two/others"
        };
        for (name, path, found) in [
            ("both", &*both, Some("one/both")),
            ("both", &*format!("{root}/two:{root}/one"), Some("two/both")),
            ("plain", &both, Some("two/plain")),
            ("others", &both, Some(others)),
            ("link", &both, Some("one/link")),
            ("dangling", &both, None),
            ("directory", &both, None),
            ("gone", &both, None),
            ("both", "", None),
            ("both", &*format!("{relative}/one:."), None),
            (
                "both",
                &*format!("{relative}/one:{root}/two"),
                Some("two/both"),
            ),
            (&format!("{relative}/one/both"), &both, None),
            (
                "both",
                &*format!(":{root}/gone:{root}/one"),
                Some("one/both"),
            ),
            (&format!("{root}/two/both"), "", Some("two/both")),
            (&format!("{root}/one/plain"), &both, None),
            ("./both", &both, None),
            ("two/both", root, None),
        ] {
            let found = found.map(|found| PathBuf::from(format!("{root}/{found}")));
            let path = Some(OsStr::new(path));
            assert_eq!(find_program(name, path).ok(), found, "{name} {path:?}");
        }
        let shell = find_program("sh", None).expect("the system's shell");
        assert!(shell.is_absolute() && shell.ends_with("sh"), "{shell:?}");
    }

    #[test]
    fn a_program_that_cannot_be_run_is_told_with_the_reason_and_what_to_do() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        use std::os::unix::net::UnixListener;
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path().to_str().expect("UTF-8");
        fs::create_dir(format!("{root}/directory")).expect("a directory");
        symlink("nowhere", format!("{root}/dangling")).expect("a link");
        for (file, mode, content) in [
            ("plain", 0o644, "#!/bin/sh\n"),
            ("a b", 0o600, ""),
            ("script", 0o755, "#!/bin/sh\n"),
            ("spaced", 0o755, "#! \t/bin/sh -e\n"),
            ("env", 0o755, "#!/usr/bin/env sh"),
            ("relative", 0o755, "#!no/such\n"),
            ("empty", 0o755, ""),
            ("nothing", 0o755, "#!\n"),
            ("bytes", 0o755, "\u{7f}ELF"),
            ("crlf", 0o755, "#!/bin/sh\r\necho\r\n"),
            ("envcrlf", 0o755, "#!/usr/bin/env python3\r\n"),
            ("splitcrlf", 0o755, "#!/usr/bin/env -S sh -e\r\n"),
            ("argumentcrlf", 0o755, "#!/bin/sh -e\r\n"),
            ("old", 0o755, "#!/no/such/python -u\n"),
            ("long", 0o755, &format!("#!/{}\n", "no/such/".repeat(40))),
            ("nul", 0o755, "#!/bin/sh\0junk\n"),
        ] {
            let path = format!("{root}/{file}");
            fs::write(&path, content).expect("a file");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
        }
        let socket = format!("{root}/socket");
        let _listener = UnixListener::bind(&socket).expect("a socket");
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o755)).expect("a mode");
        let interpreter = "cannot run, because its first line names the interpreter";
        for (name, reason, advice) in [
            ("ROOT/script", "", ""),
            ("spaced", "", ""),
            ("env", "", ""),
            ("relative", "", ""),
            ("empty", "", ""),
            ("nothing", "", ""),
            ("bytes", "", ""),
            ("long", "", ""),
            ("nul", "", ""),
            ("splitcrlf", "", ""),
            ("argumentcrlf", "", ""),
            ("socket", "ROOT/socket is not a regular file", ""),
            ("ROOT/socket", "ROOT/socket is not a regular file", ""),
            ("/dev/null", "/dev/null is not a regular file", ""),
            ("gone", "there is no program gone", ""),
            ("ROOT/gone", "there is no program ROOT/gone", ""),
            ("directory", "there is no program directory", ""),
            (
                "ROOT/directory",
                "ROOT/directory is a directory, not a program",
                "",
            ),
            ("dangling", "there is no program dangling", ""),
            (
                "ROOT/dangling",
                "ROOT/dangling is a dangling symbolic link",
                "",
            ),
            (
                "plain",
                "ROOT/plain is not executable",
                "make it executable: chmod +x ROOT/plain",
            ),
            (
                "ROOT/a b",
                "ROOT/a b is not executable",
                "make it executable: chmod +x 'ROOT/a b'",
            ),
            (
                "crlf",
                &format!("ROOT/crlf {interpreter} /bin/sh^M, which does not exist"),
                "remove the carriage returns (^M) at the ends of its lines: dos2unix ROOT/crlf",
            ),
            (
                "ROOT/envcrlf",
                &format!("ROOT/envcrlf {interpreter} python3^M, which does not exist"),
                "remove the carriage returns (^M) at the ends of its lines: dos2unix ROOT/envcrlf",
            ),
            (
                "ROOT/old",
                &format!("ROOT/old {interpreter} /no/such/python, which does not exist"),
                "install the interpreter, or correct the first line",
            ),
        ] {
            let name = name.replace("ROOT", root);
            let fault = find_program(&name, Some(OsStr::new(root))).err();
            let found = fault.as_ref().map(|fault| fault.reason(&name));
            assert_eq!(
                found.unwrap_or_default(),
                reason.replace("ROOT", root),
                "{name}"
            );
            let found = fault.and_then(|fault| fault.advice());
            assert_eq!(
                found.unwrap_or_default(),
                advice.replace("ROOT", root),
                "{name}"
            );
        }
    }

    #[test]
    fn a_file_is_made_executable_only_where_its_mode_forbids_it() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().expect("a directory");
        let file = root.path().join("file");
        fs::write(&file, "").expect("a file");
        let noexec = "check whether its file system is mounted with noexec";
        for (mode, advice) in [
            (0o755, noexec),
            (0o700, noexec),
            (0o644, "make it executable: chmod +x"),
            (0o611, "make it executable: chmod +x"),
        ] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("a mode");
            let metadata = file.metadata().expect("it is there");
            let found = refused(&file, &metadata).advice().unwrap_or_default();
            assert!(found.starts_with(advice), "{mode:o} {found}");
        }
    }
}
