//! Starts a confined program: on a thread that the kernel holds from then on, with a temporary directory of its own.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::mpsc;

use super::bounds::Bounds;
use super::kernel;
use crate::scratch::{Scratch, ScratchPlaces};
use crate::secret::Secret;
use crate::threads;

/// The variables that lead a program to its own files, and where they lead below its temporary directory. It gets no others of
/// XDG.
const OWN_DIRECTORIES: &[(&str, &str)] = &[
    ("HOME", ""),
    ("TMPDIR", ""),
    ("XDG_CACHE_HOME", ".cache"),
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
];

/// The confinement of a program.
#[derive(Debug, Clone)]
pub struct Confined {
    pub bounds: Bounds,
    /// Where its temporary directory is made.
    pub scratch_places: ScratchPlaces,
}

/// Removes the variables that lead elsewhere, unless the section sets them itself.
pub fn remove_home_variables(variables: &mut Vec<(String, OsString)>, set: &[(String, Secret)]) {
    variables.retain(|(name, _)| {
        let leads_elsewhere = name.starts_with("XDG_") || matches!(&**name, "HOME" | "TMPDIR");
        !leads_elsewhere || set.iter().any(|(own, _)| own == name)
    });
}

impl Confined {
    /// Makes the temporary directory of a program with its variables set. It starts there unless the command has another one.
    pub fn make_scratch(
        &self,
        command: &mut Command,
        variables: &[(String, OsString)],
    ) -> io::Result<Scratch> {
        let scratch = self.scratch_places.create()?;
        for (name, below) in OWN_DIRECTORIES {
            if !variables.iter().any(|(set, _)| set == name) {
                // Without a slash at its end.
                let mut directory = scratch.path.clone();
                directory.extend(below.split('/').filter(|part| !part.is_empty()));
                command.env(name, directory);
            }
        }
        if command.get_current_dir().is_none() {
            command.current_dir(&scratch.path);
        }
        Ok(scratch)
    }

    /// Starts a program with this temporary directory. The thread that the kernel holds ends as soon as the program has started.
    pub fn spawn(
        &self,
        mut command: Command,
        program: PathBuf,
        scratch: Option<PathBuf>,
    ) -> io::Result<Child> {
        let bounds = self.bounds.clone();
        let (sender, started) = mpsc::channel();
        threads::start(move || {
            let held = kernel::confine(&bounds, &program, scratch.as_deref());
            let spawned = held
                .map_err(io::Error::other)
                .and_then(|()| command.spawn());
            let _ = sender.send(spawned);
        })?;
        let spawned = started.recv();
        let spawned = spawned.map_err(|_| io::Error::other("it could not be confined"))?;
        spawned.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => io::Error::new(
                error.kind(),
                "Permission denied; what it is run by, and its libraries, belong in read of confine",
            ),
            _ => error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn a_confined_program_gets_no_variable_that_leads_to_the_home_directory_but_those_of_its_section()
     {
        // The variables of q, those that the section sets, and those that are left of the first.
        let table = "
            PATH LANG HOME TMPDIR | - | PATH LANG
            XDG_CACHE_HOME XDG_RUNTIME_DIR XDG_ANY | - | -
            HOME XDG_DATA_HOME TMPDIR | HOME TMPDIR | HOME TMPDIR
            HOMEBREW TMP MY_HOME xdg_x | - | HOMEBREW TMP MY_HOME xdg_x
        ";
        for [own, set, left] in rows(table) {
            let own = own.split_whitespace();
            let mut variables = Vec::from_iter(own.map(|name| (name.to_owned(), "/x".into())));
            let set = set.split_whitespace();
            let set = Vec::from_iter(set.map(|name| (name.to_owned(), Secret::new("/y"))));
            remove_home_variables(&mut variables, &set);
            let names = Vec::from_iter(variables.iter().map(|(name, _)| name.as_str()));
            assert_eq!(names.join(" "), left);
        }
    }
}
