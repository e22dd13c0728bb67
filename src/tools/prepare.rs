//! Turns a configured server into what starts it: finds its program and folder, or its key.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::process::Program;
use super::remote;
use super::server::{Place, Spec};
use crate::error::Error;
use crate::output::Notes;
use crate::secret::Secret;
use crate::server::client::{Client, has_authorization, is_authorization};
use crate::server::key_command;
use crate::settings::{self, Environment, KeyPlace, LocalProgram, RemoteServer, Settings, ToolServer, usable_key};

/// Where the system looks for programs if PATH is not set.
const USUAL_PATH: &str = "/usr/bin:/bin";

/// A server that can be started.
pub(super) struct Prepared {
    pub(super) section: ToolServer,
    pub(super) spec: Spec,
    /// Values that only the server may get.
    pub(super) keys: Vec<Secret>,
    /// Other values that must not be shown.
    pub(super) hidden: Vec<Secret>,
}

/// Checks what can be checked before anything is started: a missing program is reported before q waits for anything.
///
/// # Errors
/// `Settings`: there is no such program.
pub(super) fn check(server: &ToolServer, environment: &Environment) -> Result<(), Error> {
    let settings::Place::Local(local) = &server.place else { return Ok(()) };
    let program = &local.command[0];
    // The system searches the server's own PATH.
    let variables = local.environment(environment);
    let path = variables.iter().find(|(name, _)| name == "PATH").map_or(USUAL_PATH, |(_, path)| path);
    let is_there = match program.contains('/') {
        true => Path::new(program).is_file(),
        false => std::env::split_paths(path).any(|folder| folder.join(program).is_file()),
    };
    if is_there {
        return Ok(());
    }
    let name = &server.name;
    Err(Error::settings(format!("tools.{name}: there is no program {program}")).advise(match program.contains('/') {
        true => format!("correct the command of the server {name}"),
        false => "install it\nor write its full path".to_owned(),
    }))
}

/// Prepares a server. A note says when a key leaves this machine unencrypted.
///
/// # Errors
/// `Settings`: its folder or its key is missing, or proxy or certificates cannot be used.
pub(super) fn prepare(section: ToolServer, settings: &Settings, notes: &Notes) -> Result<Prepared, Error> {
    let (place, keys, hidden) = match &section.place {
        settings::Place::Local(local) => {
            let program = program(&section.name, local, &settings.environment)?;
            let hidden = local.env.iter().flat_map(|(_, value)| value.parts_to_hide()).collect();
            (Place::Local(program), local.keys(&settings.environment), hidden)
        }
        settings::Place::Commands(_) => return Err(Error::settings("commands cannot be called yet")),
        settings::Place::Remote(remote) => {
            let server = self::remote(&section, remote, settings, notes)
                .map_err(|error| Error { message: format!("tools.{}: {}", section.name, error.message), ..error })?;
            let keys = server.keys.clone();
            let headers = remote.headers.iter().flat_map(|(_, value)| value.with_last_word());
            (Place::Remote(Arc::new(server)), keys, headers.chain(remote.url.secrets()).collect())
        }
    };
    let spec = Spec { name: section.name.clone(), place, start: section.start, timeout: section.timeout };
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
        Error::settings(format!("tools.{name}: {folder} is not a folder, so the server cannot start there"))
    })?;
    let variables = local.environment(environment).into_iter();
    let environment = variables.map(|(name, value)| (name.into(), value.into())).collect();
    Ok(Program { command: local.command.clone(), environment, folder })
}

fn remote(
    section: &ToolServer,
    server: &RemoteServer,
    settings: &Settings,
    notes: &Notes,
) -> Result<remote::Server, Error> {
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
            notes.sign().stop();
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
    Ok(remote::Server { client, url: server.url.clone(), headers, keys, key_advice })
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
