//! Reads the text of a file of tool servers that other programs use, too: JSON with `mcpServers` and `${NAME}` (pure).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::origin::Environment;
use super::paths::{check_folder, check_program};
use super::program::LocalProgram;
use super::tools::{self, RemoteServer, ServerKind, ToolServer};
use super::value;
use crate::address::Endpoint;
use crate::secret::Secret;
use crate::text::json;

/// The file. Some programs call its list `servers`.
#[derive(Deserialize)]
struct SharedFile {
    #[serde(rename = "mcpServers", alias = "servers")]
    servers: BTreeMap<String, Box<RawValue>>,
}

/// A server in the file. Its other fields are for other programs.
#[derive(Deserialize, Default)]
#[serde(default)]
struct SharedServer {
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
}

/// Reads the text of the file. Disabled servers are left out.
pub fn read_shared(text: &str, environment: &Environment) -> Result<Vec<ToolServer>, String> {
    let file: SharedFile = serde_json::from_str(text).map_err(|error| without_text(&error))?;
    let mut listed: Vec<ToolServer> = Vec::new();
    for (original_name, section) in file.servers {
        let section: Value = json::parse(section.get()).map_err(|error| error.to_string())?;
        if section["disabled"] == true {
            continue;
        }
        // As `-t` takes it.
        let is_other = |character: char| !character.is_ascii_alphanumeric();
        let name = original_name.to_ascii_lowercase().replace(is_other, "-");
        if listed.iter().any(|other| other.name == name) {
            return Err(format!("two servers get the name {name}"));
        }
        let kind = kind(&name, section, environment).unwrap_or_else(|reason| {
            ServerKind::Wrong(format!("{reason} (in the file of the setting mcp)"))
        });
        listed.push(ToolServer::new(&name, kind));
    }
    Ok(listed)
}

fn kind(name: &str, section: Value, environment: &Environment) -> Result<ServerKind, String> {
    tools::check_name(name)?;
    let section = SharedServer::deserialize(section).map_err(|error| without_text(&error))?;
    match (&section.command, &section.url) {
        (Some(command), None) => Ok(ServerKind::Local(section.local(command, environment)?)),
        (None, Some(url)) => Ok(ServerKind::Remote(section.remote(url, environment)?)),
        _ => Err("must have either a command or a url".to_owned()),
    }
}

impl SharedServer {
    fn local(&self, command: &str, environment: &Environment) -> Result<LocalProgram, String> {
        let fill = |text: &str| filled(text, environment);
        let command = fill(command)?;
        check_program(&command)?;
        let mut program = LocalProgram::new(vec![command]);
        for argument in &self.args {
            program.command.push(fill(argument)?);
        }
        for (name, value) in &self.env {
            program.env.push((name.clone(), Secret::new(fill(value)?)));
        }
        if let Some(folder) = &self.cwd {
            let folder = fill(folder)?;
            check_folder(&folder)?;
            program.cwd = Some(folder);
        }
        Ok(program)
    }

    fn remote(&self, url: &str, environment: &Environment) -> Result<RemoteServer, String> {
        let endpoint = Endpoint::parse(&filled(url, environment)?);
        let mut endpoint = endpoint.map_err(|reason| format!("its url {reason}"))?;
        endpoint.keys = values_in(url, environment);
        let mut server = RemoteServer::new(endpoint);
        for (name, value) in &self.headers {
            let value = Secret::new(filled(value, environment)?);
            value::check_header(name, &value).map_err(|reason| format!("{name}: {reason}"))?;
            server.headers.push((name.clone(), value));
        }
        Ok(server)
    }
}

/// What is wrong with the file, without the text in it that has the wrong type: it may be a key.
fn without_text(error: &serde_json::Error) -> String {
    let reason = error.to_string();
    match (reason.split_once(" \""), reason.rsplit_once('"')) {
        (Some((before, _)), Some((_, after))) => format!("{before}{after}"),
        _ => reason,
    }
}

/// The text with its variables: `${NAME}` and `${NAME:-default}`.
pub(super) fn filled(text: &str, environment: &Environment) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${")
        && let Some((variable, following)) = after.split_once('}')
    {
        filled.push_str(before);
        let (name, default) = match variable.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (variable, None),
        };
        let Some(value) = environment.get(name).or(default) else {
            return Err(format!("the variable {name} is not set"));
        };
        filled.push_str(value);
        rest = following;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The values of the variables in a text.
fn values_in(text: &str, environment: &Environment) -> Vec<Secret> {
    let mut values = Vec::new();
    for variable in text.split("${").skip(1) {
        let name = variable.split(['}', ':']).next().unwrap_or_default();
        values.extend(environment.get(name).map(Secret::new));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(text: &str) -> Result<Vec<ToolServer>, String> {
        read_shared(
            text,
            &Environment::new(&[("HOME", "/home/me"), ("TOKEN", "t")]),
        )
    }

    #[test]
    fn servers_are_read_with_their_variables() {
        let text = r#"{"mcpServers": {
            "My_Files": {"command": "/bin/${SHELL:-sh}", "args": ["-c", "${HOME}/x", "$y${"], "env": {"A": "${TOKEN}", "N": "5"},
                "cwd": "${HOME}", "type": "stdio"},
            "off": {"command": "x", "disabled": true},
            "web": {"type": "http", "url": "https://x/key-${TOKEN:-no}", "headers": {"Authorization": "Bearer ${TOKEN}"}},
            "odd-web": {"url": "x"}, "odd-header": {"url": "https://x", "headers": {"a": "${NOTHING}"}},
            "both": {"url": "https://x", "command": "x"},
            "unset": {"command": "x", "args": ["${NOTHING}"]}, "empty": {}, "relative": {"command": "./x"},
            "keyed": {"url": "https://x", "headers": "Bearer k"}, "1st": {"command": "x"}, "odd": {"command": "x", "args": "y"}}}"#;
        let servers = servers(text).expect("a file");
        let kind_of = |wanted: &str| {
            let server = servers.iter().find(|one| one.name == wanted);
            &server.expect("a server").kind
        };
        let ServerKind::Local(files) = kind_of("my-files") else {
            panic!("no program")
        };
        assert_eq!(files.command, ["/bin/sh", "-c", "/home/me/x", "$y${"]);
        let env = files.env.iter();
        let env: Vec<String> = env
            .map(|(name, value)| format!("{name}={}", value.expose()))
            .collect();
        assert_eq!(env, ["A=t", "N=5"]);
        assert_eq!(files.cwd.as_deref(), Some("/home/me"));
        let ServerKind::Remote(web) = kind_of("web") else {
            panic!("no address")
        };
        let [(name, value)] = &web.headers[..] else {
            panic!("not one header")
        };
        assert_eq!(
            (name.as_str(), value.expose()),
            ("Authorization", "Bearer t")
        );
        assert_eq!(web.url.to_string(), "https://x/…");
        assert_eq!(web.url.secrets(), [Secret::new("t")]);
        for (name, words) in [
            ("odd-web", "its url is not a URL"),
            ("odd-header", "the variable NOTHING is not set"),
            ("both", "either a command or a url"),
            ("unset", "NOTHING is not set"),
            ("empty", "either a command or a url"),
            ("relative", "relative path"),
            ("keyed", "invalid type: string, expected a map"),
            ("1st", "the name must be"),
            ("odd", "expected a sequence"),
        ] {
            let ServerKind::Wrong(wrong) = kind_of(name) else {
                panic!("{name} is right")
            };
            assert!(wrong.contains(words), "{name}");
        }
        assert_eq!(servers.len(), 11);
    }

    #[test]
    fn what_is_no_such_file_is_an_error() {
        for (text, words) in [
            ("{", "EOF"),
            ("{}", "missing field"),
            (
                "{\"mcpServers\": {\"a_b\": {}, \"a-b\": {}}}",
                "two servers get the name a-b",
            ),
            (
                "{\"mcpServers\": \"a \\\"key\"}",
                "invalid type: string, expected a map at line 1",
            ),
        ] {
            let wrong = servers(text).map(|_| ()).expect_err(text);
            assert!(wrong.contains(words), "{wrong}");
        }
        assert!(servers("{\"servers\": {}}").is_ok_and(|servers| servers.is_empty()));
    }
}
