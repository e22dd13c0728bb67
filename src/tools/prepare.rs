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
    Command, Environment, KeyPlace, LocalProgram, RemoteServer, ServerKind, Settings, ToolServer,
    usable_key,
};

/// Where the system looks for programs if PATH is not set.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// Prepares a server, or the commands of a section; `None` selects all. A missing program of a selected command is an
/// error. Without a selection it is an error only if the section has no other command; else a note names it. Another note
/// says when a key leaves this machine unencrypted.
pub fn prepare(
    section: ToolServer,
    selection: Option<&Selection>,
    settings: &Settings,
    notes: &Notes,
) -> Result<Spec, Error> {
    let environment = &settings.environment;
    let mut keys = Vec::new();
    let mut hidden = Vec::new();
    let target = match &section.kind {
        ServerKind::Local(local) => {
            keys.extend(local.keys(environment));
            hidden.extend(hidden_values(local));
            Target::Local(program(&section.name, local, environment)?)
        }
        ServerKind::Commands(commands) => {
            for command in commands {
                keys.extend(command.program.keys(environment));
                hidden.extend(hidden_values(&command.program));
            }
            let runnable = runnable(&section, commands, selection, environment, notes)?;
            let mut about = None;
            if let Some(local) = &section.about {
                keys.extend(local.keys(environment));
                let place = format!("{}.about_run", section.name);
                about = Some(program(&place, local, environment)?);
            }
            Target::Commands(Commands { runnable, about })
        }
        ServerKind::Remote(remote) => {
            let site = site(&section, remote, settings, notes).map_err(|error| Error {
                message: format!("tools.{}: {}", section.name, error.message),
                ..error
            })?;
            keys.extend(site.keys.iter().cloned());
            for (_, value) in &remote.headers {
                hidden.extend(value.with_last_word());
            }
            hidden.extend(remote.url.secrets());
            Target::Remote(Arc::new(site))
        }
    };
    Ok(Spec {
        section,
        target,
        keys,
        hidden,
    })
}

/// The values that a section adds to the environment of its program.
fn hidden_values(program: &LocalProgram) -> Vec<Secret> {
    let mut hidden = Vec::new();
    for (_, value) in &program.env {
        hidden.extend(value.parts_to_hide());
    }
    hidden
}

/// The commands of a section whose programs are there.
fn runnable(
    section: &ToolServer,
    commands: &[Command],
    selection: Option<&Selection>,
    environment: &Environment,
    notes: &Notes,
) -> Result<Vec<(Command, Program)>, Error> {
    let mut ready = Vec::new();
    for command in commands {
        let place = format!("{}.{}", section.name, command.name);
        let error = match program(&place, &command.program, environment) {
            Ok(program) => {
                ready.push((command.clone(), program));
                continue;
            }
            Err(error) => error,
        };
        let full_name = names::full_name(&section.name, &command.name);
        let is_selected =
            selection.is_none_or(|selection| selection.has(&full_name, &command.name));
        if !is_selected || !section.offers(&command.name) {
            continue;
        }
        if selection.is_some() || commands.len() == 1 {
            return Err(error);
        }
        notes.note(&error.message);
    }
    Ok(ready)
}

/// A program that can be started, and the folder that it starts in.
fn program(name: &str, local: &LocalProgram, environment: &Environment) -> Result<Program, Error> {
    let variables = local.environment(environment);
    let file = find_program(name, &local.command[0], &variables)?;
    let home = environment.get("HOME").map(PathBuf::from);
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
    let mut passed_on = Vec::new();
    for (variable, value) in variables {
        passed_on.push((variable.into(), value));
    }
    Ok(Program {
        file,
        command: local.command.clone(),
        environment: passed_on,
        folder,
    })
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
    let mut path = OsStr::new(DEFAULT_PATH);
    for (variable, value) in variables {
        if variable == "PATH" {
            path = value;
        }
    }
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

fn site(
    section: &ToolServer,
    server: &RemoteServer,
    settings: &Settings,
    notes: &Notes,
) -> Result<Site, Error> {
    let name = &section.name;
    let address = &server.url.server;
    // No time-out here: each of its requests has limits of its own.
    let client = Client::new(
        address,
        None,
        settings.values.retries,
        &settings.environment,
    )?;
    let key = key(name, server, settings, notes)?;
    let mut headers = server.headers.clone();
    if !has_authorization(&headers) {
        let bearer = key.map(|key| Secret::new(format!("Bearer {}", key.expose())));
        if let Some(authorization) = bearer.or_else(|| address.authorization()) {
            headers.push(("authorization".to_owned(), authorization));
        }
    }
    if has_authorization(&headers) && address.is_exposed() {
        notes.note(&format!(
            "the key of the tool server {name} goes to {address} unencrypted"
        ));
    }
    let mut keys = Vec::new();
    for header in &headers {
        if is_authorization(header) {
            keys.extend(header.1.with_last_word());
        }
    }
    keys.extend(address.secrets());
    Ok(Site {
        client,
        url: server.url.clone(),
        headers,
        keys,
        key_advice: key_advice(section, server),
        start: section.start,
        timeout: section.timeout,
    })
}

/// The key of a server over HTTP, if it has one.
fn key(
    section: &str,
    server: &RemoteServer,
    settings: &Settings,
    notes: &Notes,
) -> Result<Option<Secret>, Error> {
    match &server.key {
        KeyPlace::None => Ok(None),
        KeyPlace::Variable(variable) => {
            let Some(value) = settings.environment.get(variable) else {
                let message = format!("there is no key: {variable} is not set");
                return Err(Error::settings(message).advise(format!(
                    "export {variable}=your-key\nor change key_env in the section [tools.{section}]"
                )));
            };
            usable_key(value.to_owned(), variable).map(Some)
        }
        KeyPlace::Command(command) => {
            // It may ask for a password on the same terminal.
            notes.spinner().stop();
            key_command::run(command).map(Some)
        }
    }
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
    if section.is_shared {
        advice.push_str(&format!(
            "add the key to the headers of {name} in the file that the setting mcp names"
        ));
    } else {
        advice.push_str(&format!(
            "key_env or key_cmd in the section [tools.{name}] sets a key"
        ));
    }
    advice
}
