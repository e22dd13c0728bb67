//! Turns a section of the configuration into a server that can be started, or commands that can be run: finds programs,
//! folders and keys.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use fs_err as fs;

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
    Environment, KeyPlace, LocalProgram, Place, RemoteServer, Settings, ToolServer, usable_key,
};

/// Where the system looks for programs if PATH is not set.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// A section whose server can be started, or whose commands can be called.
pub(super) struct Prepared {
    pub(super) spec: Spec,
    /// Values that only its programs may get.
    pub(super) keys: Vec<Secret>,
    /// Other values that must not be shown.
    pub(super) hidden: Vec<Secret>,
}

/// Prepares a server, or commands; `None` selects all. A command whose program is missing is an error only if it was asked
/// for, or is the only one. Where all were selected, a note names it. Another note says when a key leaves this machine
/// unencrypted.
///
/// # Errors
/// `Settings`: a program, its folder or a key is missing, or proxy or certificates cannot be used.
pub(super) fn prepare(
    section: ToolServer,
    selection: Option<&Selection>,
    settings: &Settings,
    notes: &Notes,
) -> Result<Prepared, Error> {
    let environment = &settings.environment;
    let hidden = |program: &LocalProgram| {
        program
            .env
            .iter()
            .flat_map(|(_, value)| value.parts_to_hide())
            .collect()
    };
    let (location, keys, hidden) = match &section.place {
        Place::Local(local) => {
            let program = program(&section.name, local, environment)?;
            (
                Location::Local(program),
                local.keys(environment),
                hidden(local),
            )
        }
        Place::Commands(commands) => {
            let programs = commands.iter().map(|command| &command.program);
            let keys = programs
                .clone()
                .flat_map(|program| program.keys(environment))
                .collect();
            let hidden = programs.flat_map(hidden).collect();
            let mut ready = Vec::new();
            for command in commands {
                let full = names::full_name(&section.name, &command.name);
                match program(
                    &format!("{}.{}", section.name, command.name),
                    &command.program,
                    environment,
                ) {
                    Ok(program) => ready.push((command.clone(), program)),
                    Err(_) if !section.offers(&command.name) => (),
                    Err(_)
                        if selection
                            .is_some_and(|selection| !selection.has(&full, &command.name)) =>
                    {
                        ()
                    }
                    Err(error) if selection.is_none() && commands.len() > 1 => {
                        notes.note(&error.message)
                    }
                    Err(error) => return Err(error),
                }
            }
            (Location::Commands(Commands(ready)), keys, hidden)
        }
        Place::Remote(remote) => {
            let site = site(&section, remote, settings, notes).map_err(|error| Error {
                message: format!("tools.{}: {}", section.name, error.message),
                ..error
            })?;
            let keys = site.keys.clone();
            let headers = remote
                .headers
                .iter()
                .flat_map(|(_, value)| value.with_last_word());
            (
                Location::Remote(Arc::new(site)),
                keys,
                headers.chain(remote.url.secrets()).collect(),
            )
        }
    };
    Ok(Prepared {
        spec: Spec { section, location },
        keys,
        hidden,
    })
}

/// Finds a program by its full path or in PATH, and the folder that it starts in. Relative folders of PATH do not count,
/// because they would depend on where q is started.
fn program(name: &str, local: &LocalProgram, environment: &Environment) -> Result<Program, Error> {
    let command = local.command.clone();
    let named = &command[0];
    // The program's own PATH, which the configuration may set.
    let variables = local.environment(environment);
    let path = variables
        .iter()
        .rev()
        .find(|(name, _)| name == "PATH")
        .map_or(DEFAULT_PATH, |(_, path)| path);
    let is_program = |file: &PathBuf| {
        fs::metadata(file)
            .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let mut folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let (file, advice) = match named.contains('/') {
        true => (
            Some(PathBuf::from(named)).filter(is_program),
            format!("correct its path in [tools.{name}]"),
        ),
        false => (
            folders.find_map(|folder| Some(folder.join(named)).filter(is_program)),
            "install it\nor write its full path".to_owned(),
        ),
    };
    let file = file.ok_or_else(|| {
        Error::settings(format!("tools.{name}: there is no program {named}")).advise(advice)
    })?;
    let folder = match local.cwd.as_deref() {
        Some(".") => std::env::current_dir().ok(),
        Some(folder) => Some(PathBuf::from(folder)),
        None => environment.get("HOME").map(PathBuf::from),
    };
    let folder = folder.filter(|folder| folder.is_dir()).ok_or_else(|| {
        let folder = local.cwd.as_deref().unwrap_or("the home folder");
        Error::settings(format!(
            "tools.{name}: {folder} is not a folder, so nothing can start there"
        ))
    })?;
    let environment = variables
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    Ok(Program {
        file,
        command,
        environment,
        folder,
    })
}

fn site(
    section: &ToolServer,
    server: &RemoteServer,
    settings: &Settings,
    notes: &Notes,
) -> Result<Site, Error> {
    let (name, address) = (&section.name, &server.url.server);
    // Each of its requests has limits of its own.
    let client = Client::new(
        address,
        None,
        settings.values.retries,
        &settings.environment,
    )?;
    let (key, key_advice) = match &server.key {
        KeyPlace::None => (None, advice_without_key(section, server)),
        KeyPlace::Variable(variable) => {
            let value = settings.environment.get(variable).ok_or_else(|| {
                Error::settings(format!("there is no key: {variable} is not set")).advise(format!(
                    "export {variable}=your-key\nor change key_env in the section [tools.{name}]"
                ))
            })?;
            (
                Some(usable_key(value.to_owned(), variable)?),
                format!("check the key in {variable}"),
            )
        }
        KeyPlace::Command(command) => {
            // It may ask for a password on the same terminal.
            notes.spinner().stop();
            let program = command.first().map_or("key_cmd", String::as_str);
            (
                Some(key_command::run(command)?),
                format!("check the key that {program} prints"),
            )
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
        notes.note(&format!(
            "the key of the tool server {name} goes to {address} unencrypted"
        ));
    }
    let values = headers
        .iter()
        .filter(|header| is_authorization(header))
        .flat_map(|(_, value)| value.with_last_word());
    let keys = values.chain(address.secrets()).collect();
    Ok(Site {
        client,
        url: server.url.clone(),
        headers,
        keys,
        key_advice,
    })
}

/// Advice for a server that refuses a request, if no key is configured.
fn advice_without_key(section: &ToolServer, server: &RemoteServer) -> String {
    let name = &section.name;
    if has_authorization(&server.headers) {
        return format!("check the header authorization of the tool server {name}");
    }
    let login = server
        .url
        .server
        .authorization()
        .map_or("", |_| "check the user and the password in its url\n");
    match section.is_shared {
        true => format!(
            "{login}add the key to the headers of {name} in the file that the setting mcp names"
        ),
        false => format!("{login}key_env or key_cmd in the section [tools.{name}] sets a key"),
    }
}
