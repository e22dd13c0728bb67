//! The file of tool servers that q shares with other programs: JSON with `mcpServers`, where `${NAME}` is a variable.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::origin::Environment;
use super::tools::{self, Configured, ToolServer};
use crate::secret::Secret;

#[derive(Deserialize)]
struct File {
    #[serde(rename = "mcpServers", alias = "servers")]
    servers: BTreeMap<String, Value>,
}

/// Other fields are for other programs.
#[derive(Deserialize)]
struct Section {
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, Value>,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    disabled: bool,
}

/// Reads the text of the file. Disabled servers are left out.
///
/// # Errors
/// It is not such a file, or two servers get the same name.
pub(super) fn read(text: &str, environment: &Environment) -> Result<Vec<Configured>, String> {
    let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut listed: Vec<Configured> = Vec::new();
    for (written, section) in file.servers {
        let section = serde_json::from_value::<Section>(section).map_err(|error| error.to_string());
        if section.as_ref().is_ok_and(|section| section.disabled) {
            continue;
        }
        let name = plain(&written);
        if listed.iter().any(|other| other.name == name) {
            return Err(format!("two servers get the name {name}"));
        }
        let server = tools::check_name(&name).and(section).and_then(|section| section.server(&name, environment));
        listed.push(Configured { name, server });
    }
    Ok(listed)
}

impl Section {
    fn server(self, name: &str, environment: &Environment) -> Result<ToolServer, String> {
        if self.url.is_some() {
            return Err("servers over HTTP are not supported yet".to_owned());
        }
        let fill = |text: &str| filled(text, environment);
        let command = self.command.ok_or("has no command")?;
        let words = [&command].into_iter().chain(&self.args).map(|word| fill(word)).collect::<Result<Vec<_>, _>>()?;
        tools::check_command(&words)?;
        let mut server = ToolServer::new(name, words);
        server.is_shared = true;
        for (name, value) in &self.env {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            server.env.push((name.clone(), Secret::new(fill(&text)?)));
        }
        if let Some(folder) = &self.cwd {
            server.cwd = Some(tools::check_folder(fill(folder)?)?);
        }
        Ok(server)
    }
}

/// The name for `-t`: capitals become lowercase, and all characters except `a-z`, `0-9` and `-` become `-`.
fn plain(name: &str) -> String {
    let plain = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
    name.to_ascii_lowercase().chars().map(plain).collect()
}

/// The text with its variables: `${NAME}` and `${NAME:-default}`.
///
/// # Errors
/// A variable is not set, and has no default.
fn filled(text: &str, environment: &Environment) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((variable, behind)) = after.split_once('}') else { break };
        let (name, default) = match variable.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (variable, None),
        };
        let value = environment.get(name).or(default).ok_or_else(|| format!("the variable {name} is not set"))?;
        filled.push_str(before);
        filled.push_str(value);
        rest = behind;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(text: &str) -> Result<Vec<Configured>, String> {
        read(text, &Environment::of(&[("HOME", "/home/me"), ("TOKEN", "t")]))
    }

    #[test]
    fn servers_are_read_with_their_variables() {
        let text = r#"{"mcpServers": {
            "My_Files": {"command": "/bin/${SHELL:-sh}", "args": ["-c", "${HOME}/x", "$y${"], "env": {"A": "${TOKEN}", "N": 5},
                "cwd": "${HOME}", "type": "stdio"},
            "off": {"command": "x", "disabled": true},
            "web": {"url": "https://x"},
            "unset": {"command": "x", "args": ["${NOTHING}"]}, "empty": {}, "relative": {"command": "./x"},
            "1st": {"command": "x"}, "odd": {"command": "x", "args": "y"}}}"#;
        let servers = servers(text).expect("a file");
        let find = |wanted: &str| &servers.iter().find(|one| one.name == wanted).expect("a server").server;
        let files = find("my-files").as_ref().expect("a valid server");
        assert_eq!(files.command, ["/bin/sh", "-c", "/home/me/x", "$y${"]);
        let env: Vec<(&str, &str)> = files.env.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        assert_eq!((env, files.cwd.as_deref()), (vec![("A", "t"), ("N", "5")], Some("/home/me")));
        for (name, words) in [
            ("web", "HTTP"),
            ("unset", "NOTHING is not set"),
            ("empty", "no command"),
            ("relative", "relative path"),
            ("1st", "a server's name must be"),
            ("odd", "expected a sequence"),
        ] {
            assert!(find(name).as_ref().is_err_and(|wrong| wrong.contains(words)), "{name}");
        }
        assert_eq!(servers.len(), 7);
    }

    #[test]
    fn what_is_no_such_file_is_an_error() {
        for (text, words) in [
            ("{", "EOF"),
            ("{}", "missing field"),
            ("{\"mcpServers\": {\"a_b\": {}, \"a-b\": {}}}", "two servers get the name a-b"),
        ] {
            let wrong = servers(text).map(|_| ()).expect_err(text);
            assert!(wrong.contains(words), "{wrong}");
        }
        assert!(servers("{\"servers\": {}}").is_ok_and(|servers| servers.is_empty()));
    }
}
