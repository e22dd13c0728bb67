//! What a configured server needs to start: a program with its environment, or an address with its key.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::process::Program;
use super::remote;
use super::server::{Place, Spec};
use crate::error::Error;
use crate::output::Notes;
use crate::secret::Secret;
use crate::server::client::Client;
use crate::server::key_command;
use crate::settings::{self, Environment, KeyPlace, Settings, Site, ToolServer, usable_key};

/// Where the system looks for programs if PATH is not set.
const USUAL_PATH: &str = "/usr/bin:/bin";

/// Checks what can be checked before anything is started: a missing program is reported before q waits for anything.
///
/// # Errors
/// `Settings`: there is no such program.
pub(super) fn check(server: &ToolServer, environment: &Environment) -> Result<(), Error> {
    let settings::Place::Program(of_settings) = &server.place else { return Ok(()) };
    let program = &of_settings.command[0];
    // The system searches the server's own PATH.
    let variables = of_settings.environment(environment);
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

/// What starts a server, and the values that must not be shown.
///
/// # Errors
/// `Settings`: its folder or its key is missing, or proxy or certificates cannot be used.
pub(super) fn of(server: &ToolServer, settings: &Settings, notes: &Notes) -> Result<(Spec, Vec<Secret>), Error> {
    let environment = &settings.environment;
    let (place, secrets) = match &server.place {
        settings::Place::Program(of_settings) => {
            (Place::Program(program(&server.name, of_settings, environment)?), of_settings.secrets(environment))
        }
        settings::Place::Site(of_settings) => {
            let site = site(server, of_settings, settings, notes)
                .map_err(|error| Error { message: format!("tools.{}: {}", server.name, error.message), ..error })?;
            let secrets = site.secrets.clone();
            (Place::Site(Arc::new(site)), secrets)
        }
    };
    Ok((Spec { name: server.name.clone(), place, start: server.start, timeout: server.timeout }, secrets))
}

fn program(name: &str, program: &settings::Program, environment: &Environment) -> Result<Program, Error> {
    let home = || environment.get("HOME").map(PathBuf::from);
    let folder = match program.cwd.as_deref() {
        Some(".") => std::env::current_dir().ok(),
        Some(folder) => Some(PathBuf::from(folder)),
        None => home(),
    };
    let folder = folder.filter(|folder| folder.is_dir()).ok_or_else(|| {
        let folder = program.cwd.as_deref().unwrap_or("the home folder");
        Error::settings(format!("tools.{name}: {folder} is not a folder, so the server cannot start there"))
    })?;
    let variables = program.environment(environment).into_iter();
    let environment = variables.map(|(name, value)| (name.into(), value.into())).collect();
    Ok(Program { command: program.command.clone(), environment, folder })
}

/// The address with its key. A note says when the key leaves this machine unencrypted.
fn site(server: &ToolServer, site: &Site, settings: &Settings, notes: &Notes) -> Result<remote::Site, Error> {
    let address = &site.url.server;
    let client = Client::new(address, server.timeout, settings.values.retries, &settings.environment)?;
    let section = format!("the section [tools.{}]", server.name);
    let (key, key_advice) = match &site.key {
        KeyPlace::None => (None, format!("key_env or key_cmd in {section} sets a key")),
        KeyPlace::Variable(variable) => {
            let value = settings.environment.get(variable).ok_or_else(|| {
                Error::settings(format!("there is no key: {variable} is not set"))
                    .advise(format!("set it\nor change key_env in {section}"))
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
    if key.is_some() && !address.is_https() && !address.is_loopback() {
        notes.note(&format!("the key of the tool server {} goes to {address} unencrypted", server.name));
    }
    let authorization = key.as_ref().map(|key| Secret::new(format!("Bearer {}", key.expose())));
    let authorization = authorization.or_else(|| address.authorization());
    let mut headers: Vec<(String, Secret)> = site.headers.clone();
    if let Some(value) =
        authorization.filter(|_| !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")))
    {
        headers.push(("authorization".to_owned(), value));
    }
    // A server may repeat the key of “Bearer KEY” alone.
    let values = headers.iter().flat_map(|(_, value)| {
        let last = value.expose().rsplit(' ').next().unwrap_or_default();
        [value.clone(), Secret::new(last)]
    });
    let secrets = values.chain(site.url.secrets()).collect();
    Ok(remote::Site { client, url: site.url.clone(), headers, secrets, key_advice })
}
