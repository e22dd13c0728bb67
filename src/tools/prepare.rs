//! Turns a configured server into what starts it: finds its program and folder, or its key.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use super::commands::Commands;
use super::http::Site;
use super::names::{self, Selection};
use super::process::Program;
use super::server::{Location, Spec};
use crate::error::Error;
use crate::output::Notes;
use crate::secret::Secret;
use crate::server::client::{Client, has_authorization, is_authorization};
use crate::server::key_command;
use crate::settings::{
    Command, Environment, KeyPlace, LocalProgram, Place, RemoteServer, Settings, ToolServer, usable_key,
};

/// Where the system looks for programs if PATH is not set.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// A section whose server can be started, or whose commands can be called.
pub(super) struct Prepared {
    pub(super) section: ToolServer,
    pub(super) spec: Spec,
    /// Values that only its programs may get.
    pub(super) keys: Vec<Secret>,
    /// Other values that must not be shown.
    pub(super) hidden: Vec<Secret>,
}

/// Checks what can be checked before anything is started: a missing program is reported before q waits for anything.
///
/// # Errors
/// `Settings`: there is no such program.
pub(super) fn check(server: &ToolServer, environment: &Environment) -> Result<(), Error> {
    let Place::Local(local) = &server.place else { return Ok(()) };
    file_of(&server.name, local, environment).map(drop)
}

/// The program of a command; its argv is the file alone.
fn program_of(section: &ToolServer, command: &Command, environment: &Environment) -> Result<Program, Error> {
    let name = format!("{}.{}", section.name, command.name);
    let file = file_of(&name, &command.program, environment)?.display().to_string();
    Ok(Program { command: vec![file], ..program(&name, &command.program, environment)? })
}

/// The file of a program that has a full path or is in a folder of PATH. A relative folder would depend on where q is
/// started, so that does not count.
fn file_of(name: &str, program: &LocalProgram, environment: &Environment) -> Result<PathBuf, Error> {
    let named = &program.command[0];
    // The program's own PATH counts, in which the system would search, too.
    let variables = program.environment(environment);
    let path = variables.iter().rev().find(|(name, _)| name == "PATH").map_or(DEFAULT_PATH, |(_, path)| path);
    let is_program =
        |file: &PathBuf| fs::metadata(file).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    let mut folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let file = match named.contains('/') {
        true => Some(PathBuf::from(named)).filter(is_program),
        false => folders.find_map(|folder| Some(folder.join(named)).filter(is_program)),
    };
    file.ok_or_else(|| {
        Error::settings(format!("tools.{name}: there is no program {named}")).advise(match named.contains('/') {
            true => format!("correct its path in [tools.{name}]"),
            false => "install it\nor write its full path".to_owned(),
        })
    })
}

/// Prepares a server, or commands, of which only those matter that are selected; `None` selects all. A note says when a
/// key leaves this machine unencrypted.
///
/// # Errors
/// `Settings`: a program, its folder or a key is missing, or proxy or certificates cannot be used.
pub(super) fn prepare(
    section: ToolServer,
    selection: Option<&Selection>,
    settings: &Settings,
    notes: &Notes,
) -> Result<Prepared, Error> {
    let hidden = |program: &LocalProgram| program.env.iter().flat_map(|(_, value)| value.parts_to_hide()).collect();
    let (location, keys, hidden) = match &section.place {
        Place::Local(local) => {
            let program = program(&section.name, local, &settings.environment)?;
            (Location::Local(program), local.keys(&settings.environment), hidden(local))
        }
        Place::Commands(commands) => {
            let programs = commands.iter().map(|command| &command.program);
            let keys = programs.clone().flat_map(|program| program.keys(&settings.environment)).collect();
            let hidden = programs.flat_map(hidden).collect();
            let mut ready = Vec::new();
            for command in commands {
                let full = names::full_name(&section.name, &command.name);
                match program_of(&section, command, &settings.environment) {
                    Ok(program) => ready.push((command.clone(), program)),
                    Err(_) if !section.offers(&command.name) => (),
                    Err(_) if selection.is_some_and(|selection| !selection.has(&full, &command.name)) => (),
                    Err(error) if selection.is_none() && commands.len() > 1 => notes.note(&error.message),
                    Err(error) => return Err(error),
                }
            }
            (Location::Commands(Commands(ready)), keys, hidden)
        }
        Place::Remote(remote) => {
            let site = site(&section, remote, settings, notes)
                .map_err(|error| Error { message: format!("tools.{}: {}", section.name, error.message), ..error })?;
            let keys = site.keys.clone();
            let headers = remote.headers.iter().flat_map(|(_, value)| value.with_last_word());
            (Location::Remote(Arc::new(site)), keys, headers.chain(remote.url.secrets()).collect())
        }
    };
    let spec = Spec { name: section.name.clone(), location, start: section.start, timeout: section.timeout };
    Ok(Prepared { section, spec, keys, hidden })
}

fn program(name: &str, local: &LocalProgram, environment: &Environment) -> Result<Program, Error> {
    let folder = match local.cwd.as_deref() {
        Some(".") => std::env::current_dir().ok(),
        Some(folder) => Some(PathBuf::from(folder)),
        None => environment.get("HOME").map(PathBuf::from),
    };
    let folder = folder.filter(|folder| folder.is_dir()).ok_or_else(|| {
        let folder = local.cwd.as_deref().unwrap_or("the home folder");
        Error::settings(format!("tools.{name}: {folder} is not a folder, so nothing can start there"))
    })?;
    let variables = local.environment(environment).into_iter();
    let environment = variables.map(|(name, value)| (name.into(), value.into())).collect();
    Ok(Program { command: local.command.clone(), environment, folder })
}

fn site(section: &ToolServer, server: &RemoteServer, settings: &Settings, notes: &Notes) -> Result<Site, Error> {
    let (name, address) = (&section.name, &server.url.server);
    // Each of its requests has limits of its own.
    let client = Client::new(address, None, settings.values.retries, &settings.environment)?;
    let (key, key_advice) = match &server.key {
        KeyPlace::None => (None, advice_without_key(section, server)),
        KeyPlace::Variable(variable) => {
            let value = settings.environment.get(variable).ok_or_else(|| {
                Error::settings(format!("there is no key: {variable} is not set"))
                    .advise(format!("set it\nor change key_env in the section [tools.{name}]"))
            })?;
            (Some(usable_key(value.to_owned(), variable)?), format!("check the key in {variable}"))
        }
        KeyPlace::Command(command) => {
            // It may ask for a password on the same terminal.
            notes.spinner().stop();
            let program = command.first().map_or("key_cmd", String::as_str);
            (Some(key_command::run(command)?), format!("check the key that {program} prints"))
        }
    };
    let bearer = key.map(|key| Secret::new(format!("Bearer {}", key.expose())));
    let mut headers = server.headers.clone();
    if let Some(authorization) = bearer.or_else(|| address.authorization())
        && !has_authorization(&headers)
    {
        headers.push(("authorization".to_owned(), authorization));
    }
    if has_authorization(&headers) && address.is_exposed() {
        notes.note(&format!("the key of the tool server {name} goes to {address} unencrypted"));
    }
    let values = headers.iter().filter(|header| is_authorization(header)).flat_map(|(_, value)| value.with_last_word());
    let keys = values.chain(address.secrets()).collect();
    Ok(Site { client, url: server.url.clone(), headers, keys, key_advice })
}

/// What to do about a refusal where no key is configured as such.
fn advice_without_key(section: &ToolServer, server: &RemoteServer) -> String {
    let name = &section.name;
    if has_authorization(&server.headers) {
        format!("check the header authorization of the tool server {name}")
    } else if server.url.server.authorization().is_some() {
        format!("check user and password in the url of the tool server {name}")
    } else if section.is_shared {
        format!("add the key to the headers of {name} in the file that the setting mcp names")
    } else {
        format!("key_env or key_cmd in the section [tools.{name}] sets a key")
    }
}
