//! Turns a section of the configuration into a server that can be started, or commands that can be run: finds programs,
//! folders and keys.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err as fs;

use super::commands::Commands;
use super::http::Site;
use super::names::{self, Selection};
use super::process::Program;
use super::server::{Spec, Target};
use crate::error::Error;
use crate::output::Notes;
use crate::secret::Secret;
use crate::server::client::{Client, has_authorization, is_authorization};
use crate::server::key_command;
use crate::settings::{
    Command, KeyPlace, LocalProgram, RemoteServer, ServerKind, Settings, ToolServer, usable_key,
};

/// Where the system looks for programs if PATH is not set.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// A section on its way to a server or commands.
struct Preparation<'a> {
    section: &'a ToolServer,
    selection: Option<&'a Selection>,
    settings: &'a Settings,
    notes: &'a Notes,
    keys: Vec<Secret>,
    hidden: Vec<Secret>,
}

/// Prepares a server, or the commands of a section; `None` selects all. A missing program of a selected command is an
/// error. Without a selection it is an error only if the section has no other command; else a note names it. Another note
/// says when a key leaves this machine unencrypted.
pub fn prepare(
    section: ToolServer,
    selection: Option<&Selection>,
    settings: &Settings,
    notes: &Notes,
) -> Result<Spec, Error> {
    let mut preparation = Preparation {
        section: &section,
        selection,
        settings,
        notes,
        keys: Vec::new(),
        hidden: Vec::new(),
    };
    let target = preparation.target()?;
    let Preparation { keys, hidden, .. } = preparation;
    Ok(Spec {
        section,
        target,
        keys,
        hidden,
    })
}

impl Preparation<'_> {
    fn target(&mut self) -> Result<Target, Error> {
        let name = &self.section.name;
        match &self.section.kind {
            ServerKind::Local(local) => Ok(Target::Local(self.program(name, local)?)),
            ServerKind::Commands(commands) => {
                let runnable = self.runnable(commands)?;
                let mut about = None;
                if let Some(local) = &self.section.about {
                    about = Some(self.program(&format!("{name}.about_run"), local)?);
                }
                Ok(Target::Commands(Commands { runnable, about }))
            }
            ServerKind::Remote(remote) => {
                let site = self.site(remote).map_err(|error| Error {
                    message: format!("tools.{name}: {}", error.message),
                    ..error
                })?;
                Ok(Target::Remote(Arc::new(site)))
            }
        }
    }

    /// The commands of a section whose programs are there.
    fn runnable(&mut self, commands: &[Command]) -> Result<Vec<(Command, Program)>, Error> {
        let section = self.section;
        let mut ready = Vec::new();
        for command in commands {
            let place = format!("{}.{}", section.name, command.name);
            let error = match self.program(&place, &command.program) {
                Ok(program) => {
                    ready.push((command.clone(), program));
                    continue;
                }
                Err(error) => error,
            };
            let full_name = names::full_name(&section.name, &command.name);
            let is_selected = self
                .selection
                .is_none_or(|selection| selection.has(&full_name, &command.name));
            if !is_selected || !section.offers(&command.name) {
                continue;
            }
            if self.selection.is_some() || commands.len() == 1 {
                return Err(error);
            }
            self.notes.note(&error.message);
        }
        Ok(ready)
    }

    /// A program that can be started, and the folder that it starts in.
    fn program(&mut self, name: &str, local: &LocalProgram) -> Result<Program, Error> {
        let own = &self.settings.environment;
        let environment = local.environment(own);
        let file = find_program(name, &local.command[0], &environment)?;
        let home = own.get("HOME").map(PathBuf::from);
        let folder = match local.cwd.as_deref().unwrap_or("~") {
            "." => std::env::current_dir().ok(),
            "~" => home,
            folder => match folder.strip_prefix("~/") {
                Some(below) => home.map(|home| home.join(below)),
                None => Some(PathBuf::from(folder)),
            },
        };
        let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
            let missing = local.cwd.as_deref().unwrap_or("the home folder");
            return Err(Error::settings(format!(
                "tools.{name}: {missing} is not a folder, so nothing can start there"
            )));
        };
        self.keys.extend(local.keys(own));
        for (_, value) in &local.env {
            self.hidden.extend(value.parts_to_hide());
        }
        Ok(Program {
            file,
            command: local.command.clone(),
            environment,
            folder,
        })
    }

    fn site(&mut self, server: &RemoteServer) -> Result<Site, Error> {
        let settings = self.settings;
        let address = &server.url.server;
        // No time-out here: each of its requests has limits of its own.
        let retries = settings.values.retries;
        let client = Client::new(address, None, retries, &settings.environment)?;
        let key = self.key(&server.key)?;
        let mut headers = server.headers.clone();
        if !has_authorization(&headers) {
            let bearer = key.map(|key| Secret::new(format!("Bearer {}", key.expose())));
            if let Some(authorization) = bearer.or_else(|| address.authorization()) {
                headers.push(("authorization".to_owned(), authorization));
            }
        }
        if has_authorization(&headers) && address.is_exposed() {
            self.notes.note(&format!(
                "the key of the tool server {} goes to {address} unencrypted",
                self.section.name
            ));
        }
        let mut keys = address.secrets();
        for header in &headers {
            let secrets = header.1.with_last_word();
            if is_authorization(header) {
                keys.extend(secrets.clone());
            }
            self.hidden.extend(secrets);
        }
        self.keys.extend(keys.iter().cloned());
        self.hidden.extend(server.url.secrets());
        Ok(Site {
            client,
            url: server.url.clone(),
            headers,
            keys,
            key_advice: key_advice(self.section, server),
            start: self.section.start,
            timeout: self.section.timeout,
        })
    }

    /// The key of a server over HTTP, if it has one.
    fn key(&self, place: &KeyPlace) -> Result<Option<Secret>, Error> {
        match place {
            KeyPlace::None => Ok(None),
            KeyPlace::Variable(variable) => {
                let Some(value) = self.settings.environment.get(variable) else {
                    let section = &self.section.name;
                    let message = format!("there is no key: {variable} is not set");
                    return Err(Error::settings(message).advise(format!(
                        "export {variable}=your-key\nor change key_env in the section [tools.{section}]"
                    )));
                };
                usable_key(value.to_owned(), variable).map(Some)
            }
            KeyPlace::Command(command) => {
                // It may ask for a password on the same terminal.
                self.notes.spinner().stop();
                key_command::run(command).map(Some)
            }
        }
    }
}

/// Finds a program by its full path, or in the PATH that it will have itself: the configuration may set that. Relative
/// folders of PATH do not count, because they would depend on where q is started.
fn find_program(
    section: &str,
    name: &str,
    variables: &[(String, OsString)],
) -> Result<PathBuf, Error> {
    let missing = format!("tools.{section}: there is no program {name}");
    if name.contains('/') {
        let file = PathBuf::from(name);
        if is_program(&file) {
            return Ok(file);
        }
        let advice = format!("correct its path in [tools.{section}]");
        return Err(Error::settings(missing).advise(advice));
    }
    let mut variables = variables.iter();
    let own = variables.find(|(variable, _)| variable == "PATH");
    let path = own.map_or(OsStr::new(DEFAULT_PATH), |(_, path)| path);
    for folder in std::env::split_paths(path) {
        let file = folder.join(name);
        if folder.is_absolute() && is_program(&file) {
            return Ok(file);
        }
    }
    Err(Error::settings(missing).advise("install it\nor write its full path"))
}

fn is_program(file: &Path) -> bool {
    let Ok(metadata) = fs::metadata(file) else {
        return false;
    };
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}

/// What to do if a server refuses the key, or wants one.
fn key_advice(section: &ToolServer, server: &RemoteServer) -> String {
    match &server.key {
        KeyPlace::Variable(variable) => return format!("check the key in {variable}"),
        KeyPlace::Command(command) => {
            let program = command.first().map_or("key_cmd", String::as_str);
            return format!("check the key that {program} prints");
        }
        KeyPlace::None => {}
    }
    let name = &section.name;
    if has_authorization(&server.headers) {
        return format!("check the header authorization of the tool server {name}");
    }
    let mut advice = String::new();
    if server.url.server.authorization().is_some() {
        advice.push_str("check the user and the password in its url\n");
    }
    advice += &if section.is_shared {
        format!("add the key to the headers of {name} in the file that the setting mcp names")
    } else {
        format!("key_env or key_cmd in the section [tools.{name}] sets a key")
    };
    advice
}
