//! Reads the text of a file of tool servers that other programs use, too: JSON with `mcpServers` and `${NAME}` (pure).

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::environment::Environment;
use super::key::names_key;
use super::paths::{check_directory, check_program};
use super::program::LocalProgram;
use super::section_fault::SectionFault;
use super::server_origin::{DisabledServer, ServerOrigin, SharedEntry};
use super::tools::{RemoteServer, ServerKind, ToolServer};
use super::variables::{self, Filled, LeftAsItIs};
use crate::flags::NO_TOOLS;
use crate::secret::Secret;
use crate::server_url::Endpoint;
use crate::text::json;
use crate::text::shell_words::shell_words;

/// The most characters of a server's name.
const MAX_NAME: usize = 20;

/// The name of a server whose own name has neither a letter nor a digit of ASCII.
const NAMELESS: &str = "server";

/// The lists of servers in the file, as different programs call them. Its other fields are not kept: they may be large.
#[derive(Deserialize)]
struct SharedFile<'f> {
    #[serde(borrow, rename = "mcpServers")]
    usual: Option<&'f RawValue>,
    /// Amp's settings.
    #[serde(borrow, rename = "amp.mcpServers")]
    amp: Option<&'f RawValue>,
    /// VS Code's and Visual Studio's own files.
    #[serde(borrow)]
    servers: Option<&'f RawValue>,
    /// VS Code's settings have a list `servers` in it; for opencode and Crush it is the list itself.
    #[serde(borrow)]
    mcp: Option<&'f RawValue>,
    /// Zed's settings.
    #[serde(borrow)]
    context_servers: Option<&'f RawValue>,
}

/// What other programs call the list of the tools that are offered. `tools` is something else where it is no list of texts.
const INCLUDE_KEYS: [&str; 4] = ["includeTools", "enabledTools", "enabled_tools", "tools"];

/// What they call the list of those that are not.
const EXCLUDE_KEYS: [&str; 3] = ["excludeTools", "disabledTools", "disabled_tools"];

/// Keys that change what a server is in the programs that know them, and what their absence means.
const UNREAD_KEYS: [(&str, &str); 2] = [
    (
        "envFile",
        "the server does not get the variables of that file; write them in \"env\", such as \"NAME\": \"${NAME}\"",
    ),
    (
        "headersHelper",
        "no program makes headers; write them in \"headers\", such as \"Authorization\": \"Bearer ${TOKEN}\"",
    ),
];

/// The servers of the file.
pub struct SharedServers {
    pub servers: Vec<ToolServer>,
    pub disabled: Vec<DisabledServer>,
}

/// A server as the file has it.
struct SharedServer {
    /// The keys that lead to it.
    path: String,
    original_name: String,
    section: Value,
}

/// Reads the text of the file, which has this path. `is_file` tells whether a path is that of a file.
pub fn read_shared(
    mut text: String,
    file: &str,
    environment: &Environment,
    is_file: &dyn Fn(&str) -> bool,
) -> Result<SharedServers, String> {
    // What it has outside of strings becomes blanks, so that places in it stay the same.
    if json_strip_comments::strip(&mut text).is_err() {
        return Err("a slash is outside of strings and comments".to_owned());
    }
    let mut listed: BTreeMap<String, Vec<SharedServer>> = BTreeMap::new();
    let mut disabled = Vec::new();
    for server in servers_of(&text)? {
        let name = short_name(&server.original_name);
        match disabling_switch(&server.section) {
            None => listed.entry(name).or_default().push(server),
            Some(switch) => disabled.push(DisabledServer {
                name,
                file: file.to_owned(),
                path: server.path,
                switch,
            }),
        }
    }
    let mut servers = Vec::new();
    for (name, mut same) in listed {
        // Two programs may share a file, and each has its list.
        same.dedup_by(|a, b| a.original_name == b.original_name && a.section == b.section);
        let path = same.first().map_or("", |server| server.path.as_str());
        let mut reader = SectionReader {
            environment,
            is_file,
            entry: SharedEntry::new(file, path),
        };
        let read = match &same[..] {
            [server] if name != NO_TOOLS => reader.server(&name, &server.section),
            [server] => Err(format!("{}: no server can have this name", server.path)),
            _ => {
                let paths = Vec::from_iter(same.iter().map(|server| server.path.as_str()));
                let paths = paths.join(" and ");
                Err(format!("{paths} both get the name {name}; rename one"))
            }
        };
        let mut server = read.unwrap_or_else(|reason| {
            ToolServer::new(&name, ServerKind::Wrong(SectionFault::InSharedFile(reason)))
        });
        server.origin = ServerOrigin::Shared(reader.entry);
        servers.push(server);
    }
    Ok(SharedServers { servers, disabled })
}

/// Returns the servers of all lists.
fn servers_of(text: &str) -> Result<Vec<SharedServer>, String> {
    let file: SharedFile = serde_json::from_str(text).map_err(|error| {
        let reason = json::parse_failure(&error);
        // A value of the wrong type may be a key.
        if error.is_data() && !reason.starts_with("duplicate") {
            return "must be a JSON object".to_owned();
        }
        reason
    })?;
    let mut lists = Vec::new();
    for (path, list) in [
        ("mcpServers", file.usual),
        ("amp.mcpServers", file.amp),
        ("servers", file.servers),
        ("context_servers", file.context_servers),
    ] {
        if let Some(list) = list {
            lists.push((path, entries(path, list)?));
        }
    }
    if let Some(mcp) = file.mcp {
        let mut list = entries("mcp", mcp)?;
        if let Some(servers) = list.get("servers") {
            lists.push(("mcp.servers", entries("mcp.servers", servers)?));
        } else {
            // Gemini CLI has settings of its own there.
            list.retain(|_, section| section.get().starts_with('{'));
            lists.push(("mcp", list));
        }
    }
    if lists.is_empty() {
        return Err("it has neither mcpServers nor servers".to_owned());
    }
    let mut servers = Vec::new();
    for (list, sections) in lists {
        for (original_name, section) in sections {
            let path = format!("{list}.{}", shown_key(&original_name));
            let section = json::parse(section.get()).map_err(|error| format!("{path}: {error}"))?;
            servers.push(SharedServer {
                path,
                original_name,
                section,
            });
        }
    }
    Ok(servers)
}

/// Returns the entries of an object in the file.
fn entries<'f>(path: &str, object: &'f RawValue) -> Result<BTreeMap<String, &'f RawValue>, String> {
    serde_json::from_str(object.get()).map_err(|_| format!("{path}: must be an object"))
}

/// Returns the key and value that switch a server off.
fn disabling_switch(section: &Value) -> Option<&'static str> {
    if section["disabled"] == true {
        return Some("\"disabled\": true");
    }
    (section["enabled"] == false).then_some("\"enabled\": false")
}

/// Returns the name of a server of the file as `-t` takes it.
pub fn short_name(original: &str) -> String {
    let is_other = |character: char| !character.is_ascii_alphanumeric();
    let mut name = original.to_ascii_lowercase().replace(is_other, "-");
    name.truncate(MAX_NAME);
    match name.trim_matches('-') {
        "" => NAMELESS.to_owned(),
        name => name.to_owned(),
    }
}

/// Returns a key in the path to a value; in quotes if it has other characters than most.
fn shown_key(key: &str) -> String {
    let is_other =
        |character: char| !character.is_ascii_alphanumeric() && !"-_".contains(character);
    if key.contains(is_other) || key.is_empty() {
        return format!("{key:?}");
    }
    key.to_owned()
}

/// A reader that makes a server of its section.
struct SectionReader<'e> {
    environment: &'e Environment,
    is_file: &'e dyn Fn(&str) -> bool,
    /// Gets the keys that the section has.
    entry: SharedEntry,
}

/// A value of a section, and the keys that lead to it. Errors do not show the value: it may be a key.
#[derive(Clone)]
struct SharedField<'s> {
    path: String,
    value: &'s Value,
}

impl<'s> SharedField<'s> {
    /// Returns one of the values of an object. There is none if it is null, too.
    fn get(&self, key: &str) -> Option<SharedField<'s>> {
        let value = self.value.get(key)?;
        (!value.is_null()).then(|| self.inner(key, value))
    }

    /// Returns the first of these that there is, with its key.
    fn first_of(&self, keys: &[&'static str]) -> Option<(&'static str, SharedField<'s>)> {
        let mut keys = keys.iter();
        keys.find_map(|key| Some((*key, self.get(key)?)))
    }

    fn inner(&self, key: &str, value: &'s Value) -> SharedField<'s> {
        let path = format!("{}.{}", self.path, shown_key(key));
        SharedField { path, value }
    }

    /// Returns texts, numbers, true and false as text.
    fn text(&self) -> Result<String, String> {
        match self.value {
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            Value::Bool(switch) => Ok(switch.to_string()),
            _ => self.wrong("must be text"),
        }
    }

    fn list(&self) -> Result<Vec<SharedField<'s>>, String> {
        let Value::Array(list) = self.value else {
            return self.wrong("must be a list");
        };
        let fields = list.iter().enumerate();
        let fields = fields.map(|(index, value)| SharedField {
            path: format!("{}[{index}]", self.path),
            value,
        });
        Ok(fields.collect())
    }

    /// Whether it is a list of nothing but texts.
    fn has_texts(&self) -> bool {
        let list = self.value.as_array();
        list.is_some_and(|list| list.iter().all(Value::is_string))
    }

    fn entries(&self) -> Result<Vec<(&'s str, SharedField<'s>)>, String> {
        let Value::Object(object) = self.value else {
            return self.wrong("must be an object");
        };
        let fields = object.iter();
        let fields = fields.map(|(key, value)| (key.as_str(), self.inner(key, value)));
        Ok(fields.collect())
    }

    fn wrong<T>(&self, reason: &str) -> Result<T, String> {
        Err(self.explain(reason))
    }

    fn explain(&self, reason: impl Display) -> String {
        format!("{}: {reason}", self.path)
    }
}

impl SectionReader<'_> {
    fn server(&mut self, name: &str, section: &Value) -> Result<ToolServer, String> {
        let section = SharedField {
            path: self.entry.path.clone(),
            value: section,
        };
        section.entries()?;
        refuse_own_keys(&section)?;
        self.note_unread_keys(&section);
        let mut server = ToolServer::new(name, self.kind(&section)?);
        server.rules.only = self.included(&section)?;
        server.rules.without = self.excluded(&section)?;
        Ok(server)
    }

    /// Notes the keys of other programs without which a server is another one. What only says how they treat it is not noted.
    fn note_unread_keys(&mut self, section: &SharedField) {
        for (key, effect) in UNREAD_KEYS {
            if let Some(field) = section.get(key) {
                self.note(field.explain(format!("q does not read it, so {effect}")));
            }
        }
        // VS Code.
        self.entry.is_sandboxed = section.value["sandboxEnabled"] == true;
    }

    /// Returns the lists of the tools to offer. A tool must be in each of them.
    fn included(&mut self, section: &SharedField) -> Result<Vec<Vec<String>>, String> {
        let mut included = Vec::new();
        for key in INCLUDE_KEYS {
            let Some(field) = section.get(key) else {
                continue;
            };
            if key == "tools" && !field.has_texts() {
                continue;
            }
            let tools = names_of_tools(&field)?;
            let are_all = tools.iter().any(|tool| tool == "*");
            if !are_all {
                self.entry.include_keys.push(key);
                included.push(tools);
            }
        }
        Ok(included)
    }

    /// Returns the tools that are not offered.
    fn excluded(&mut self, section: &SharedField) -> Result<Vec<String>, String> {
        let mut excluded = Vec::new();
        for key in EXCLUDE_KEYS {
            if let Some(field) = section.get(key) {
                let tools = names_of_tools(&field)?;
                if !tools.is_empty() {
                    self.entry.exclude_keys.push(key);
                }
                excluded.extend(tools);
            }
        }
        Ok(excluded)
    }

    fn kind(&mut self, section: &SharedField) -> Result<ServerKind, String> {
        let command = section.get("command");
        // Gemini CLI's for streamable HTTP, most programs' and Windsurf's.
        let url = section.first_of(&["httpUrl", "url", "serverUrl"]);
        if let Some((key, _)) = &url {
            self.entry.url_key = *key;
        }
        let url = url.map(|(_, url)| url);
        let kind = section.first_of(&["type", "transport"]);
        let kind = kind.and_then(|(_, kind)| kind.value.as_str());
        match (command, url) {
            (Some(command), None) => Ok(ServerKind::Local(self.local(section, &command)?)),
            (None, Some(url)) => Ok(ServerKind::Remote(self.remote(section, &url)?)),
            (Some(command), Some(_)) if matches!(kind, Some("stdio" | "local")) => {
                Ok(ServerKind::Local(self.local(section, &command)?))
            }
            (Some(_), Some(url)) if kind.is_some() => {
                Ok(ServerKind::Remote(self.remote(section, &url)?))
            }
            _ => section.wrong("must have either a command or a url"),
        }
    }

    fn local(
        &mut self,
        section: &SharedField,
        command: &SharedField,
    ) -> Result<LocalProgram, String> {
        // Zed had an object in which the program is the path.
        let (command, section) = match command.get("path") {
            Some(path) => {
                refuse_own_keys(command)?;
                self.entry.command_key = "command.path";
                self.entry.cwd_key = "command.cwd";
                self.entry.env_key = "command.env";
                (path, command)
            }
            None => (command.clone(), section),
        };
        let mut argv = self.program(&command)?;
        if let Some(arguments) = section.get("args") {
            for argument in arguments.list()? {
                argv.push(self.fill_argument(&argument)?);
            }
        }
        refuse_dollar(&command, &argv[0])?;
        check_program(&argv[0]).map_err(|reason| command.explain(reason))?;
        let mut program = LocalProgram::new(argv);
        program.is_shared = true;
        // opencode calls it environment.
        if let Some((key, variables)) = section.first_of(&["env", "environment"]) {
            if key == "environment" {
                self.entry.env_key = key;
            }
            for (name, field) in variables.entries()? {
                if field.value.is_null() {
                    program.env_without.push(name.to_owned());
                } else {
                    let value = Secret::new(self.fill_value(&field)?.text);
                    program.env.push((name.to_owned(), value));
                }
            }
        }
        if let Some(cwd) = section.get("cwd") {
            let directory = self.fill_value(&cwd)?.text;
            refuse_dollar(&cwd, &directory)?;
            check_directory(&directory).map_err(|reason| cwd.explain(reason))?;
            program.cwd = Some(directory);
        }
        Ok(program)
    }

    /// Returns a program and its first arguments: a list, the name or the path of a program, or all of them as one text.
    fn program(&mut self, command: &SharedField) -> Result<Vec<String>, String> {
        if command.value.is_array() {
            let mut argv = Vec::new();
            for word in command.list()? {
                argv.push(self.fill_argument(&word)?);
            }
            return if argv.first().is_none_or(String::is_empty) {
                command.wrong("must name a program")
            } else {
                Ok(argv)
            };
        }
        let whole = self.fill_argument(command)?;
        if whole.trim().is_empty() {
            return command.wrong("must name a program");
        }
        let is_program = !whole.contains(char::is_whitespace) || (self.is_file)(&whole);
        if is_program {
            return Ok(vec![whole]);
        }
        let mut argv = Vec::new();
        let line = command.text()?;
        for word in shell_words(&line).map_err(|reason| command.explain(reason))? {
            argv.push(
                variables::fill(&word, self.environment)
                    .map_err(|reason| command.explain(reason))?
                    .text,
            );
        }
        Ok(argv)
    }

    fn remote(&mut self, section: &SharedField, url: &SharedField) -> Result<RemoteServer, String> {
        let filled = self.fill_value(url)?;
        let endpoint = Endpoint::parse_filled(&filled.text);
        let mut endpoint = endpoint.map_err(|reason| url.explain(reason))?;
        endpoint.add_variables(filled.values, names_key);
        let mut server = RemoteServer::new(endpoint);
        if let Some(headers) = section.get("headers") {
            for (name, field) in headers.entries()? {
                if field.value.is_null() {
                    continue;
                }
                let added = server.headers.add(name, &field.text()?, self.environment);
                let left = added.map_err(|reason| field.explain(reason))?;
                self.note_left(&field, &left);
            }
        }
        Ok(server)
    }

    /// Returns the text of a field with its variables.
    fn fill(&self, field: &SharedField) -> Result<Filled, String> {
        let filled = variables::fill(&field.text()?, self.environment);
        filled.map_err(|reason| field.explain(reason))
    }

    /// Does the same for a value that no shell reads, where `$NAME` is hardly meant as it stands.
    fn fill_value(&mut self, field: &SharedField) -> Result<Filled, String> {
        let filled = self.fill(field)?;
        self.note_left(field, &filled.left);
        Ok(filled)
    }

    /// Does the same for an argument, which may be a script.
    fn fill_argument(&mut self, field: &SharedField) -> Result<String, String> {
        let mut filled = self.fill(field)?;
        filled.left.retain(|left| !left.is_usual_in_scripts());
        self.note_left(field, &filled.left);
        Ok(filled.text)
    }

    /// Notes what stays in a field although another program would fill it in.
    fn note_left(&mut self, field: &SharedField, left: &[LeftAsItIs]) {
        for form in left {
            self.note(field.explain(form));
        }
    }

    fn note(&mut self, note: String) {
        if !self.entry.unread.contains(&note) {
            self.entry.unread.push(note);
        }
    }
}

/// Refuses the keys of q's own file that limit what a server may do. To ignore them would run more than is meant.
fn refuse_own_keys(section: &SharedField) -> Result<(), String> {
    for (key, reason) in [
        (
            "confine",
            "only a section [tools.NAME] of q's own file can confine a server",
        ),
        (
            "only",
            "only a section [tools.NAME] of q's own file has it; here it is called \"includeTools\"",
        ),
        (
            "allow",
            "only a section [tools.NAME] of q's own file can say what runs without asking",
        ),
    ] {
        if let Some(field) = section.get(key) {
            return field.wrong(reason);
        }
    }
    Ok(())
}

/// Refuses a path that begins with a variable as a shell writes it.
fn refuse_dollar(field: &SharedField, path: &str) -> Result<(), String> {
    match variables::variable_at_start(path) {
        Some(name) => field.wrong(&format!("${name} is not filled in; write ${{{name}}}")),
        None => Ok(()),
    }
}

/// Returns the names of a list of tools.
fn names_of_tools(list: &SharedField) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for tool in list.list()? {
        match tool.value {
            Value::String(name) => names.push(name.clone()),
            _ => return tool.wrong("must be the name of a tool"),
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::table::rows;

    impl ToolServer {
        /// The server `s` of a file of other programs, for tests of what is made of it.
        pub fn parse_shared(section: &str, environment: &Environment) -> ToolServer {
            let text = format!("{{\"mcpServers\": {{\"s\": {section}}}}}");
            let read = read_shared(text, "/mcp.json", environment, &|_| false);
            let mut servers = read.expect("a file").servers;
            servers.pop().expect("a server")
        }
    }

    fn servers(text: &str) -> Result<Vec<ToolServer>, String> {
        Ok(read(text)?.servers)
    }

    fn read(text: &str) -> Result<SharedServers, String> {
        read_shared(
            text.to_owned(),
            "/mcp.json",
            &Environment::new(&[("HOME", "/home/me"), ("TOKEN", "t"), ("TWO", "a b")]),
            &|path| path == "/opt/My App/server",
        )
    }

    /// What a server of the file is: its command with what it gets, or its address; or what is wrong with it.
    fn shown(server: &ToolServer) -> String {
        match &server.kind {
            ServerKind::Local(program) => {
                let mut shown = program.name.clone();
                for argument in &program.arguments {
                    shown += &format!("|{argument}");
                }
                for (name, value) in &program.env {
                    shown += &format!(" {name}={}", value.expose());
                }
                for name in &program.env_without {
                    shown += &format!(" -{name}");
                }
                if let Some(cwd) = &program.cwd {
                    shown += &format!(" in {cwd}");
                }
                shown
            }
            ServerKind::Remote(server) => {
                let url = &server.url;
                let mut shown = format!("{}{}", url.server, url.path_and_query());
                for (name, value) in &server.headers.all {
                    shown += &format!(" {name}={}", value.expose());
                }
                shown
            }
            ServerKind::Wrong(fault) => fault.to_string(),
            ServerKind::Commands { .. } => panic!("the file has no commands"),
        }
    }

    #[test]
    fn the_json_of_an_mcp_server_is_read_as_other_programs_read_it() {
        let table = r#"
            x | {"command": "x"}
            run|-p|a b|t | {"command": "${NO_SUCH:-run} -p ${NO_SUCH:-a b} ${TOKEN}"}
            x|a | {"command": "x", "args": ["a"], "type": "stdio", "disabled": false, "enabled": true, "timeout": 5, "tools": ["*"]}
            x|--port|8080|true|1.50 | {"command": "x", "args": ["--port", 8080, true, 1.50]}
            x A=5 B=true C=t -D | {"command": "x", "env": {"A": 5, "B": true, "C": "${TOKEN}", "D": null}}
            x | {"command": "x", "args": null, "env": null, "cwd": null, "url": null}
            /bin/sh|-c|/home/me/x|$y${ in /home/me | {"command": "/bin/${SHELL:-sh}", "args": ["-c", "${HOME}/x", "$y${"], "cwd": "${HOME}"}
            t|t||no}|/home/me | {"command": "${env:TOKEN}", "args": ["${env:TOKEN:-no}", "${NO:-}", "${env:NO:-no}}", "${userHome}"]}
            npx|-y|a b|c | {"command": " npx  -y 'a b' ", "args": ["c"]}
            npx|a b|c d|e\|f'|| | {"command": "npx \"a b\" c\\ d \"e\\\\\"\\|\"f'\" '' \"\""}
            printf|\d+ %s\n|x | {"command": "printf \"\\d+ %s\\n\" x"}
            x|"\$`\a| a|"|\d' | {"command": "x \"\\\"\\\\\\$\\`\\a\" \\ a \\\" '\\d'\\'"}
            npx|a b | {"command": "npx ${TWO}"}
            /opt/My App/server|x | {"command": "/opt/My App/server", "args": ["x"]}
            /opt/My|Other | {"command": "/opt/My Other"}
            npx|-y|x A=1 | {"type": "local", "command": ["npx", "-y", "x"], "environment": {"A": "1"}}
            x|a A=1 | {"source": "custom", "command": {"path": "x", "args": ["a"], "env": {"A": "1"}}}
            https://x/a | {"url": "https://x/a"}
            https://x/a | {"type": "sse", "serverUrl": "https://x/a"}
            https://x/a | {"httpUrl": "https://x/a", "url": "https://x/sse"}
            https://x/a A=1 B=Bearer t | {"type": "streamable-http", "url": "https://x/a", "headers": {"A": 1, "B": "Bearer ${env:TOKEN}", "C": null}}
            https://x/a | {"type": "http", "command": "", "url": "https://x/a"}
            x | {"type": "stdio", "command": "x", "url": "https://x/a"}
            servers.s: must be an object | "x"
            servers.s: must have either a command or a url | {}
            servers.s: must have either a command or a url | {"command": "x", "url": "https://x"}
            servers.s.command: must be text | {"command": {"a": 1}}
            servers.s.command: must name a program | {"command": " "}
            servers.s.command: must name a program | {"command": []}
            servers.s.command: has a quotation mark " that is not closed | {"command": "x \"a b"}
            servers.s.command: has a quotation mark ' that is not closed | {"command": "x it's"}
            servers.s.command: has a quotation mark " that is not closed | {"command": "x \"a\\\""}
            servers.s.command: “./x” is a relative path; write an absolute one | {"command": "./x"}
            servers.s.command: $HOME is not filled in; write ${HOME} | {"command": "$HOME/bin/x"}
            servers.s.command: $A_2 is not filled in; write ${A_2} | {"command": ["$A_2", "x"]}
            servers.s.command.path: $HOME is not filled in | {"command": {"path": "$HOME/x"}}
            servers.s.cwd: $HOME is not filled in; write ${HOME} | {"command": "x", "cwd": "$HOME/x"}
            servers.s.command: “$home/x” is a relative path | {"command": "$home/x"}
            servers.s.confine: only a section [tools.NAME] of q's own file can confine | {"command": "x", "confine": {}}
            servers.s.confine: only a section [tools.NAME] of q's own file can confine | {"url": "https://x", "confine": {}}
            servers.s.command.confine: only a section [tools.NAME] of q's own file can confine | {"command": {"path": "x", "confine": {}}}
            servers.s.only: only a section [tools.NAME] of q's own file has it; here it is called "includeTools" | {"command": "x", "only": ["a"]}
            servers.s.allow: only a section [tools.NAME] of q's own file can say | {"url": "https://x", "allow": ["a"]}
            servers.s.includeTools: must be a list | {"command": "x", "includeTools": "a"}
            servers.s.excludeTools[1]: must be the name of a tool | {"command": "x", "excludeTools": ["a", 1]}
            servers.s.args: must be a list | {"command": "x", "args": "y"}
            servers.s.args[1]: must be text | {"command": "x", "args": ["y", {}]}
            servers.s.args[0]: the variable NO is not set | {"command": "x", "args": ["${NO}"]}
            servers.s.env: must be an object | {"command": "x", "env": ["A=key"]}
            servers.s.env.A: must be text | {"command": "x", "env": {"A": ["key"]}}
            servers.s.env."a.b": the variable NO is not set | {"command": "x", "env": {"a.b": "${env:NO}"}}
            servers.s.cwd: “x” is a relative path; write an absolute one, or "." | {"command": "x", "cwd": "x"}
            servers.s.url: is not a URL | {"url": "x"}
            servers.s.headers: must be an object | {"url": "https://x", "headers": "Bearer key"}
            servers.s.env.A: a variable within another one is not filled in: ${NO… | {"command": "x", "env": {"A": "${NO:-key${TOKEN}}"}}
            servers.s.args[0]: ${NO…} does not name a variable | {"command": "x", "args": ["${NO?key}"]}
            servers.s.url: ${NO…} does not name a variable | {"url": "https://x/${NO-key}"}
            servers.s.headers.A: ${NO…} does not name a variable | {"url": "https://x", "headers": {"A": "${NO:=key}"}}
            servers.s.headers.A: is not a valid name or value of a header | {"url": "https://x", "headers": {"A": "key\n"}}
            servers.s.headers."a b": is not a valid name or value of a header | {"url": "https://x", "headers": {"a b": "key"}}
        "#;
        for line in table.trim().lines() {
            let (expected, section) = line.trim().split_once(" | ").expect("two cells");
            let text = format!("{{\"servers\": {{\"s\": {section}}}}}");
            let servers = servers(&text).expect(section);
            let [server] = &servers[..] else {
                panic!("not one server: {section}")
            };
            let shown = shown(server);
            assert!(shown.starts_with(expected), "{section}\n{shown}");
            assert!(!shown.contains("key"), "{shown}");
        }
        let input = r#"{"servers": {"s": {"command": "x", "env": {"A": "${input:token}"}}}}"#;
        let wrong = shown(&servers(input).expect("a file")[0]);
        assert!(
            wrong.starts_with("servers.s.env.A: only the program"),
            "{wrong}"
        );
    }

    #[test]
    fn the_tools_that_the_file_includes_and_does_not_exclude_are_offered() {
        // Keys of a server, and which of the tools a, b and list_c are offered.
        let table = r#"
            "trust": false | a b list_c
            "includeTools": null, "excludeTools": [] | a b list_c
            "includeTools": ["a", "list_*"] | a list_c
            "enabledTools": ["a"] | a
            "enabled_tools": ["a"] | a
            "tools": ["*"] | a b list_c
            "tools": ["a"] | a
            "tools": [{"name": "a"}] | a b list_c
            "tools": {"a": true} | a b list_c
            "tools": [] | -
            "includeTools": ["a", "b"], "tools": ["*"] | a b
            "includeTools": ["a", "b"], "tools": ["b", "list_c"] | b
            "includeTools": ["list_*"], "tools": ["a", "list_c"] | list_c
            "includeTools": ["a", "list_c"], "tools": ["list_*"] | list_c
            "includeTools": ["list_*"], "enabledTools": ["*_c"] | list_c
            "includeTools": ["a"], "enabledTools": ["a", "b"], "tools": ["b"] | -
            "excludeTools": ["a"] | b list_c
            "disabledTools": ["a", "list_*"] | b
            "disabled_tools": ["a"], "disabledTools": ["b"] | list_c
            "includeTools": ["a", "b"], "excludeTools": ["b", "x"] | a
        "#;
        for [keys, expected] in rows(table) {
            for reached in [r#""command": "x""#, r#""url": "https://x""#] {
                let section = format!("{{{reached}, {keys}}}");
                let server = ToolServer::parse_shared(&section, &Environment::default());
                let mut offered = vec!["a", "b", "list_c"];
                offered.retain(|tool| server.offers(tool));
                assert_eq!(offered.join(" "), expected, "{section}");
                assert!(!server.allows("a", true), "{section}");
            }
        }
    }

    #[test]
    fn the_keys_that_leave_none_of_its_tools_are_named() {
        let table = r#"
            "includeTools": ["x"] | "includeTools" in mcpServers.s of /mcp.json leaves
            "tools": ["x"], "includeTools": ["*"], "excludeTools": [] | "tools" in mcpServers.s of /mcp.json leaves
            "disabledTools": ["*"] | "disabledTools" in mcpServers.s of /mcp.json leaves
            "enabledTools": ["a"], "tools": ["b"] | "enabledTools" and "tools" in mcpServers.s of /mcp.json leave
            "tools": ["a"], "excludeTools": ["a"] | "tools" and "excludeTools" in mcpServers.s of /mcp.json leave
        "#;
        for [keys, expected] in rows(table) {
            let section = format!(r#"{{"command": "x", {keys}}}"#);
            let server = ToolServer::parse_shared(&section, &Environment::default());
            let expected = format!("{expected} none of its tools");
            assert_eq!(server.fault_of_choice(), expected, "{section}");
        }
    }

    #[test]
    fn a_variable_that_is_set_and_written_as_a_shell_has_it_is_noted() {
        // A server, and where it has such a variable.
        let table = r#"
            {"url": "https://x", "headers": {"Authorization": "Bearer $TOKEN"}} | headers.Authorization: $TOKEN
            {"url": "https://x/$TOKEN/y"} | url: $TOKEN
            {"command": "x", "env": {"A": "$TOKEN", "B": "$TWO,$TOKEN"}} | env.A: $TOKEN; env.B: $TWO; env.B: $TOKEN
            {"command": "x", "environment": {"A": "$HOME/x"}} | environment.A: $HOME
            {"command": "x", "env": {"A": "${TOKEN}$TOKEN"}} | env.A: $TOKEN
            {"command": "x", "env": {"A": "$TOKEN$TOKEN"}} | env.A: $TOKEN
            {"url": "https://x", "headers": {"A": "$TOKEN $TOKEN"}} | headers.A: $TOKEN
            {"command": "x", "env": {"A": "${NO:-$TOKEN}"}} | -
            {"command": "x", "env": {"A": "$NO $TOKENS $token $1 $ $"}} | -
            {"command": "x", "env": {"A": "pa$TOKEN $$TOKEN TOKEN"}} | -
            {"command": "sh", "args": ["-c", "echo $TOKEN $(x) {{.Names}}"]} | -
        "#;
        let own = Environment::new(&[("HOME", "/h"), ("TOKEN", "open-sesame"), ("TWO", "2")]);
        for [section, expected] in rows(table) {
            let server = ToolServer::parse_shared(section, &own);
            let ServerOrigin::Shared(entry) = server.origin else {
                panic!("{section} is of a section");
            };
            let expected = Vec::from_iter(expected.split("; ").filter(|note| !note.is_empty()));
            assert_eq!(entry.unread.len(), expected.len(), "{section}");
            for (note, expected) in entry.unread.iter().zip(expected) {
                let (_, name) = expected.split_once('$').expect("a variable");
                let expected = format!(
                    "mcpServers.s.{expected} is passed as it stands; write ${{{name}}} for its value"
                );
                assert_eq!(*note, expected, "{section}");
            }
        }
    }

    #[test]
    fn keys_and_forms_of_other_programs_that_change_a_server_are_noted() {
        // A server, and the beginnings of the notes.
        let table = r#"
            {"command": "x", "env": {"A": "${TOKEN"}} | env.A: ${TOKEN has no closing brace
            {"command": "x", "env": {"A": "{file:~/.key}", "B": "{{TOKEN}}"}} | env.A: {file:…} is passed as it stands; env.B: {{…}} is passed as it stands
            {"url": "https://x", "headers": {"A": "Bearer {env:TOKEN"}} | headers.A: ${TOKEN has no closing brace
            {"command": "x", "args": ["--token", "${TOKEN"]} | args[1]: ${TOKEN has no closing brace
            {"command": ["x", "{file:/k}"]} | command[1]: {file:…} is passed as it stands
            {"command": "x", "cwd": "/x/{{dir}}"} | cwd: {{…}} is passed as it stands
            {"command": "x", "envFile": "/x/.env"} | envFile: q does not read it
            {"command": "x", "envFile": "${workspaceFolder}/.env"} | envFile: q does not read it
            {"url": "https://x", "headersHelper": "/x/token.sh"} | headersHelper: q does not read it
            {"command": "x", "envFile": null, "headersHelper": null} | -
            {"command": "x", "alwaysAllow": ["a"], "autoApprove": ["*"], "trust": true, "timeout": 5} | -
        "#;
        let own = Environment::new(&[("TOKEN", "open-sesame")]);
        for [section, expected] in rows(table) {
            let server = ToolServer::parse_shared(section, &own);
            assert!(!server.allows("a", true), "{section}");
            let ServerOrigin::Shared(entry) = server.origin else {
                panic!("{section} is of a section");
            };
            let expected = Vec::from_iter(expected.split("; ").filter(|note| !note.is_empty()));
            assert_eq!(entry.unread.len(), expected.len(), "{section}");
            for (note, expected) in entry.unread.iter().zip(expected) {
                let expected = format!("mcpServers.s.{expected}");
                assert!(note.starts_with(&expected), "{note}");
            }
        }
    }

    #[test]
    fn a_disabled_server_is_known_with_what_disables_it() {
        let text = r#"{"mcpServers": {"a": {"command": "x"}, "B_b": {"disabled": true}}, "servers": {"c": {"enabled": false}}}"#;
        let disabled = read(text).expect("a file").disabled;
        let shown = disabled.iter().map(|server| {
            let DisabledServer {
                name,
                file,
                path,
                switch,
            } = server;
            format!("{name}: {switch} in {path} of {file}")
        });
        assert_eq!(
            Vec::from_iter(shown),
            [
                "b-b: \"disabled\": true in mcpServers.B_b of /mcp.json",
                "c: \"enabled\": false in servers.c of /mcp.json",
            ]
        );
    }

    #[test]
    fn the_values_of_variables_in_a_url_are_secrets() {
        let text = r#"{"servers": {"s": {"url": "https://x/key-${env:TOKEN}-${NO:-no}"}}}"#;
        let servers = servers(text).expect("a file");
        let ServerKind::Remote(server) = &servers[0].kind else {
            panic!("no address")
        };
        assert_eq!(server.url.to_string(), "https://x/…");
        assert_eq!(server.url.secrets(), [Secret::new("t")]);
    }

    #[test]
    fn lists_of_mcp_servers_of_different_programs_are_read() {
        let table = r#"
            a b | {"mcpServers": {"a": {"command": "x"}}, "servers": {"b": {"command": "x"}}, "inputs": []}
            a | {"amp.mcpServers": {"a": {"command": "x"}}}
            a | {"mcp": {"inputs": [], "servers": {"a": {"command": "x"}}}}
            a | {"mcp": {"a": {"type": "local", "command": ["x"]}}, "$schema": "https://x"}
            a | {"mcp": {"allowed": ["a"]}, "mcpServers": {"a": {"command": "x"}}}
            a | {"context_servers": {"a": {"command": "x"}}}
            a | {"mcpServers": {"a": {"command": "x"}, "b": {"disabled": true}, "c": {"enabled": false}}}
            a | {"mcpServers": {"a": {"command": "x", "args": []}}, "servers": {"a": {"command": "x", "args": []}}}
            - | {"servers": {}}
        "#;
        for [names, text] in rows(table) {
            let servers = servers(text).expect(text);
            let found = Vec::from_iter(servers.iter().map(|server| server.name.as_str()));
            assert_eq!(found.join(" "), names.replace('-', ""), "{text}");
            let usable = |server: &ToolServer| matches!(server.kind, ServerKind::Local(_));
            assert!(servers.iter().all(usable), "{text}");
        }
    }

    #[test]
    fn any_name_of_an_mcp_server_becomes_a_valid_one() {
        for (original, name) in [
            ("My_Files", "my-files"),
            ("1password", "1password"),
            ("com.atlassian/atlassian-mcp-server", "com-atlassian-atlass"),
            (
                "awslabs.aws-documentation-mcp-server",
                "awslabs-aws-document",
            ),
            ("@scope/server", "scope-server"),
            ("a name with blanks", "a-name-with-blanks"),
            ("größe", "gr--e"),
            ("数据库", "server"),
            ("", "server"),
        ] {
            let text = serde_json::json!({"servers": {original: {"command": "x"}}});
            let servers = servers(&text.to_string()).expect("a file");
            assert_eq!(servers[0].name, name, "{original}");
            assert_eq!(shown(&servers[0]), "x", "{original}");
        }
    }

    #[test]
    fn mcp_servers_that_get_the_same_name_are_errors_and_the_others_are_read() {
        let text = r#"{"mcpServers": {"a_b": {"command": "x"}, "a-b": {"command": "x"}, "None": {"command": "x"}, "c": {"command": "x"}},
            "servers": {"c": {"command": "y"}, "d": {"command": "y"}, "awslabs.aws-documentation-1": {}, "awslabs.aws-documentation-2": {}}}"#;
        let servers = servers(text).expect("a file");
        let found = Vec::from_iter(
            servers
                .iter()
                .map(|one| format!("{}: {}", one.name, shown(one))),
        );
        assert_eq!(
            found,
            [
                "a-b: mcpServers.a-b and mcpServers.a_b both get the name a-b; rename one",
                "awslabs-aws-document: servers.\"awslabs.aws-documentation-1\" and servers.\"awslabs.aws-documentation-2\" both get \
                 the name awslabs-aws-document; rename one",
                "c: mcpServers.c and servers.c both get the name c; rename one",
                "d: y",
                "none: mcpServers.None: no server can have this name",
            ]
        );
    }

    #[test]
    fn comments_and_trailing_commas_are_ignored() {
        let text = "// mine\n{\n  /* all, \"of\" } them */ \"mcpServers\": {\n    \"a\": {\"command\": \"x\", // ü\n      \
                    \"args\": [\"https://x/*y*/\", \"#\", \",]\", \"\\\"//\",],\n    }, # the last\n  },\n}\n// end";
        let servers = servers(text).expect("a file");
        assert_eq!(shown(&servers[0]), "x|https://x/*y*/|#|,]|\"//");
    }

    #[test]
    fn a_file_that_is_no_list_of_mcp_servers_is_an_error() {
        for [words, text] in rows(
            r#"
            it ends early | {
            it ends early | /*
            it ends early | {"mcpServers": {} /*
            a slash is outside | {"mcpServers": {} / }
            at line 1 column 19 | {"mcpServers": {},, }
            must be a JSON object | "hunter2"
            must be a JSON object | []
            duplicate field | {"servers": {}, "servers": {}}
            it has neither mcpServers nor servers | {"command": "x"}
            mcpServers: must be an object | {"mcpServers": "hunter2"}
            servers: must be an object | {"mcpServers": {}, "servers": [1]}
            mcp.servers: must be an object | {"mcp": {"servers": []}}
        "#,
        ) {
            let wrong = servers(text).map(|_| ()).expect_err(text);
            assert!(
                wrong.contains(words) && !wrong.contains("hunter2"),
                "{wrong}"
            );
        }
    }

    proptest! {
        #[test]
        fn json_without_comments_stays_unchanged_and_no_input_panics(
            text in "[\\[\\]{}\",:/*#a\\\\ü \n]{0,40}",
            strings in prop::collection::vec("[/*#,\\]}\"\\\\aü\n]{0,8}", 0..5),
        ) {
            let _ = servers(&text);
            let json = serde_json::to_string(&strings).expect("JSON");
            let mut stripped = json.clone();
            prop_assert!(json_strip_comments::strip(&mut stripped).is_ok());
            prop_assert_eq!(stripped, json);
        }
    }
}
