//! Reads the sections `[tools.NAME]` of the configuration file: servers, commands, and settings of shared servers (pure).

use toml::de::DeValue;

use super::commands::Command;
use super::confinement::Confinement;
use super::environment::Environment;
use super::guess::time_limit;
use super::headers::HeaderEntry;
use super::key::Key;
use super::origin::Origin;
use super::program::LocalProgram;
use super::section_fault::{SectionFault, SectionPlace};
use super::sections::{self, section, unknown_key};
use super::server_origin::ServerOrigin;
use super::tools::{RemoteServer, ServerKind, ToolRules, ToolServer};
use super::value::{self, ConfigError, Table, TableEntry, both_or_fault, string, strings};
use crate::flags::NO_TOOLS;
use crate::flags::synonyms::WordPlace;
use crate::server_url::Endpoint;

/// Why a key of another kind of section is refused.
const MISFIT: &str = "cannot be combined with the other keys of this section";

/// A section `[tools.NAME]`.
#[derive(Debug)]
pub enum ToolSection {
    /// It is a server, or has commands.
    Whole(Box<WholeSection>),
    /// It sets something of a server in the file that the setting `mcp` names.
    OfShared(Box<SharedSettings>),
}

/// A section that is a server or has commands. The variables in its headers are not filled in.
#[derive(Debug)]
pub struct WholeSection {
    server: ToolServer,
    /// The headers of a server over HTTP as they are written.
    headers: Vec<HeaderEntry>,
}

/// What a section sets of a server whose command or url is in the file that the setting `mcp` names.
#[derive(Debug, Clone)]
pub struct SharedSettings {
    name: String,
    rules: ToolRules,
    confine: Option<Confinement>,
    /// The fault of `confine` where the server is not a program.
    fault_of_confine: SectionFault,
    /// The fault of the section where there is no server of its name.
    fault: SectionFault,
}

/// What a section lacks that has neither a server nor commands.
const NO_SERVER: &str = "needs command, url, or a table with run, or the name of a server in the file of the setting mcp and nothing but only, allow, timeout, start and confine";

/// Why a section cannot confine a server that is not on this machine.
const NO_PROGRAM: &str = "only a program can be confined, and the server of this name in the file of the setting mcp has a url";

impl ToolSection {
    /// Reads a section. `origin_at` returns the origin of what is at a byte of the file.
    ///
    /// # Errors
    ///
    /// Something is misspelt. With any other fault there is a server that cannot be used.
    pub(super) fn read(
        named: &TableEntry,
        origin_at: &dyn Fn(usize) -> Origin,
    ) -> Result<ToolSection, ConfigError> {
        check_name(named.key)?;
        let place = SectionPlace { named, origin_at };
        match ToolSection::read_usable(&place) {
            Err(error) if error.is_deferred => {
                let kind = ServerKind::Wrong(place.fault(error));
                let server = ToolServer::new(named.key, kind);
                let headers = Vec::new();
                Ok(ToolSection::Whole(Box::new(WholeSection {
                    server,
                    headers,
                })))
            }
            read => read,
        }
    }

    /// Reads a section. A url or a command makes it a server, and without them its tables are commands.
    fn read_usable(place: &SectionPlace) -> Result<ToolSection, ConfigError> {
        let (tables, mut keys) = section(place.named.value, WordPlace::Server)?.split(is_command);
        let mut rules = ToolRules::default();
        let mut headers = Vec::new();
        let kind = if let Some(url) = keys.take("url") {
            let remote = read_remote(place, &url, &keys, &mut rules);
            let ((remote, written), ()) = both_or_fault(remote, refuse_commands(&tables))?;
            headers = written;
            ServerKind::Remote(remote)
        } else if let Some(command) = keys.take("command") {
            let local = read_local(&command, &keys, &mut rules);
            let (local, ()) = both_or_fault(local, refuse_commands(&tables))?;
            ServerKind::Local(local)
        } else if tables.entries().is_empty() {
            let settings = SharedSettings::read(place, &keys)?;
            return Ok(ToolSection::OfShared(Box::new(settings)));
        } else {
            read_commands(place, &tables, &keys, &mut rules)?
        };
        let mut server = ToolServer::new(place.named.key, kind);
        server.rules = rules;
        Ok(ToolSection::Whole(Box::new(WholeSection {
            server,
            headers,
        })))
    }
}

/// Sets a key that every kind of section may have.
fn set_rule(rules: &mut ToolRules, key: &str, value: &DeValue) -> Result<(), ConfigError> {
    match key {
        "only" => rules.only = vec![strings(value)?],
        "allow" => rules.allow = strings(value)?,
        "timeout" => rules.timeout = time_limit(key, value)?,
        "start" => rules.start = time_limit(key, value)?,
        _ if sections::keys(WordPlace::Server).contains(&key) => {
            return Err(misfit(key, value));
        }
        _ if sections::is_only_of_command(key) => {
            return Err(
                "this key belongs to a command, which has a name: [tools.SECTION.NAME]".into(),
            );
        }
        _ => return Err(unknown_key(WordPlace::Server, key)),
    }
    Ok(())
}

/// Reads a section over HTTP, and its headers as they are written.
fn read_remote(
    place: &SectionPlace,
    url: &TableEntry,
    keys: &Table,
    rules: &mut ToolRules,
) -> Result<(RemoteServer, Vec<HeaderEntry>), ConfigError> {
    let url = url.read(|value| {
        let text = string(value)?;
        Endpoint::parse(&text).map_err(ConfigError::deferred)
    });
    let mut own_key = Key::None;
    let mut headers = Vec::new();
    let others = keys.read(|entry| {
        let TableEntry { key, value, .. } = *entry;
        match key {
            "headers" => headers = HeaderEntry::read_all(value, place.origin_at)?,
            "key_env" | "key_cmd" => own_key.set(key, value)?,
            _ => set_rule(rules, key, value)?,
        }
        Ok(())
    });
    let (url, ()) = both_or_fault(url, others)?;
    let mut remote = RemoteServer::new(url);
    remote.key = own_key;
    Ok((remote, headers))
}

fn read_local(
    command: &TableEntry,
    keys: &Table,
    rules: &mut ToolRules,
) -> Result<LocalProgram, ConfigError> {
    let command = command.read(value::tool_command);
    let mut program = LocalProgram::default();
    let others = keys.read(|entry| {
        let TableEntry { key, value, .. } = *entry;
        match key {
            "env" | "env_from" | "cwd" | "confine" => program.set(key, value)?,
            _ => set_rule(rules, key, value)?,
        }
        Ok(())
    });
    let (command, ()) = both_or_fault(command, others)?;
    Ok(program.with_command(command))
}

/// What a section that is no server may say besides its rules.
#[derive(Default)]
struct CommonKeys {
    /// Holds for each of its commands.
    program: LocalProgram,
    /// The value of `about_run`.
    about: Option<Vec<String>>,
}

impl CommonKeys {
    fn read(keys: &Table, rules: &mut ToolRules) -> Result<CommonKeys, ConfigError> {
        let mut common = CommonKeys::default();
        keys.read(|entry| {
            let TableEntry { key, value, .. } = *entry;
            match key {
                "env" | "env_from" | "cwd" | "confine" => common.program.set(key, value)?,
                "about_run" => common.about = Some(value::tool_command(value)?),
                _ => set_rule(rules, key, value)?,
            }
            Ok(())
        })?;
        Ok(common)
    }
}

/// Reads a section of commands. A command that cannot be used is among them.
fn read_commands(
    place: &SectionPlace,
    tables: &Table,
    keys: &Table,
    rules: &mut ToolRules,
) -> Result<ServerKind, ConfigError> {
    let (common, fault) = match CommonKeys::read(keys, rules) {
        Ok(common) => (common, Ok(())),
        // What is misspelt in a command matters first.
        Err(error) => (CommonKeys::default(), Err(error)),
    };
    let mut commands = Vec::new();
    let others = tables.read(|entry| {
        check_name(entry.key)?;
        let command = match Command::read(entry, &common.program, rules.timeout) {
            Err(error) if error.is_deferred => {
                Command::wrong(entry.key, place.fault(error.under(entry)))
            }
            read => read?,
        };
        commands.push(command);
        Ok(())
    });
    both_or_fault(fault, others)?;
    let CommonKeys { program, about } = common;
    let about = about.map(|command| program.with_command(command));
    Ok(ServerKind::Commands { commands, about })
}

/// Refuses tables in a section that is a server: those with `run` are commands, and others perhaps misspelt keys.
fn refuse_commands(tables: &Table) -> Result<(), ConfigError> {
    tables.read(|entry| {
        let keys = section(entry.value, WordPlace::Command)?;
        if !keys.entries().iter().any(|inner| inner.key == "run") {
            return Err(MISFIT.into());
        }
        check_name(entry.key)?;
        let command = Command::read(entry, &LocalProgram::default(), None);
        let misfit = Err(ConfigError::deferred(MISFIT));
        both_or_fault::<(), Command>(misfit, command).map(|_| ())
    })
}

impl WholeSection {
    /// Returns its server with the variables in its headers. One that cannot be filled in matters only if the server is used.
    pub(super) fn server(self, environment: &Environment) -> ToolServer {
        let mut server = self.server;
        if let ServerKind::Remote(remote) = &mut server.kind {
            for header in self.headers {
                let HeaderEntry {
                    name,
                    value,
                    origin,
                } = header;
                let added = remote.headers.add(&name, value.expose(), environment);
                if let Err(reason) = added {
                    let reason = format!("{}.headers.{name}: {reason}", server.name);
                    server.kind = ServerKind::Wrong(SectionFault::InFile { origin, reason });
                    break;
                }
            }
        }
        server
    }
}

impl SharedSettings {
    /// Reads a section without a server or commands. The file of the server has all that is about its program but `confine`.
    fn read(place: &SectionPlace, keys: &Table) -> Result<SharedSettings, ConfigError> {
        let mut rules = ToolRules::default();
        let CommonKeys { mut program, about } = CommonKeys::read(keys, &mut rules)?;
        let confine = program.confine.take();
        if program != LocalProgram::default() || about.is_some() {
            return Err(ConfigError::deferred(NO_SERVER));
        }
        Ok(SharedSettings {
            name: place.named.key.to_owned(),
            rules,
            confine,
            fault_of_confine: place.fault(keys.error("confine", NO_PROGRAM)),
            fault: place.fault(NO_SERVER.into()),
        })
    }

    /// Returns the server of the section where there is none of its name: it cannot be used.
    pub(super) fn without_server(self) -> ToolServer {
        let mut server = ToolServer::new(&self.name, ServerKind::Wrong(self.fault));
        server.rules = self.rules;
        server
    }

    /// Whether it is for this server.
    pub(super) fn is_for(&self, name: &str) -> bool {
        self.name == name
    }

    /// Returns a server of the file as the section sets it.
    pub(super) fn applied_to(self, mut server: ToolServer) -> ToolServer {
        let shared = std::mem::replace(&mut server.rules, self.rules);
        server.rules.without = shared.without;
        if !server.chooses_tools() {
            server.rules.only = shared.only;
        } else if let ServerOrigin::Shared(entry) = &mut server.origin {
            entry.include_keys.clear();
        }
        if self.confine.is_none() {
            return server;
        }
        match &mut server.kind {
            ServerKind::Local(program) => program.confine = self.confine,
            ServerKind::Remote(_) => {
                server.kind = ServerKind::Wrong(self.fault_of_confine);
                server.origin = ServerOrigin::Section;
            }
            ServerKind::Commands { .. } | ServerKind::Wrong(_) => {}
        }
        server
    }
}

/// Returns the fault of a key of another kind of section. What is misspelt in its value matters first.
fn misfit(key: &str, value: &DeValue) -> ConfigError {
    let read = match key {
        "url" => string(value).map(|_| ()).map_err(ConfigError::from),
        "command" | "about_run" => value::tool_command(value).map(|_| ()),
        // A table may be meant as a command of this name.
        "headers" if value.is_table() => Ok(()),
        "headers" => HeaderEntry::read_all(value, &|_| Origin::Default).map(|_| ()),
        "key_env" | "key_cmd" => Key::None.set(key, value),
        _ => LocalProgram::default().set(key, value),
    };
    match read {
        Err(error) if !error.is_deferred => error,
        _ => ConfigError::deferred(MISFIT),
    }
}

/// Whether an entry of a section is a command.
fn is_command(entry: &TableEntry) -> bool {
    entry.value.is_table() && !matches!(entry.key, "env" | "headers" | "confine")
}

/// Checks the name of a server or a command.
fn check_name(name: &str) -> Result<(), String> {
    let begins_well = name.starts_with(|first: char| first.is_ascii_lowercase());
    let is_allowed = |character| matches!(character, 'a'..='z' | '0'..='9' | '-');
    let is_well_formed = begins_well && name.len() <= 20 && name.chars().all(is_allowed);
    if is_well_formed && name != NO_TOOLS {
        return Ok(());
    }
    Err(format!(
        "the name must be a lowercase letter, then up to 19 of a-z 0-9 -; “{NO_TOOLS}” is taken"
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toml::de::DeTable;

    use super::*;
    use crate::text::table::rows;

    impl ToolServer {
        /// The server of a section, for tests of what is made of it.
        pub fn parse(name: &str, section: &str) -> ToolServer {
            read_as(name, section).expect("a section")
        }
    }

    fn read_as(name: &str, text: &str) -> Result<ToolServer, String> {
        let table = DeTable::parse(text).expect("TOML");
        let section = TableEntry {
            key: name,
            at: 0,
            value: &DeValue::Table(table.into_inner()),
        };
        let read = ToolSection::read(&section, &|_| Origin::Default);
        Ok(
            match read.map_err(|error| error.under(&section).to_string())? {
                ToolSection::Whole(whole) => whole.server(&Environment::default()),
                ToolSection::OfShared(settings) => settings.without_server(),
            },
        )
    }

    /// Returns the fault of a section, or of its only command: when it matters, and what it is.
    fn fault(text: &str) -> String {
        let server = match read(text) {
            Ok(server) => server,
            Err(reason) => return format!("at once {reason}"),
        };
        match &server.kind {
            ServerKind::Wrong(fault) => format!("if used {fault}"),
            ServerKind::Commands { commands, .. } => match &commands[..] {
                [
                    Command {
                        fault: Some(fault), ..
                    },
                ] => format!("if it is called {fault}"),
                _ => panic!("{text}: {commands:?}"),
            },
            other => panic!("{text}: {other:?}"),
        }
    }

    fn read(text: &str) -> Result<ToolServer, String> {
        read_as("db", text)
    }

    #[test]
    fn a_section_of_tools_is_read_or_refused_with_the_key_that_is_wrong() {
        let section = "command = [\"uvx\"]\nonly = [\"read_*\"]\ntimeout = \"5s\"";
        let server = ToolServer::parse("db", section);
        let seconds = |count| Some(Duration::from_secs(count));
        assert_eq!(
            (server.rules.timeout, server.rules.start),
            (seconds(5), seconds(30))
        );
        assert!(server.offers("read_b") && !server.offers("write"));
        for [words, text] in rows(
            r##"
            if used; db.command: must name a program | command = []
            at once; must be a list | command = "uvx"
            at once; db.start: must be a string | command = ["./x"]␊start = 5
            at once; db.start: must be a string | url = "x"␊start = 5
            at once; db.command: must be a list | url = "https://x"␊command = "x"
            at once; db.confine.rad: there is no setting “rad” | url = "https://x"␊confine = { rad = [] }
            if used; db.confine: cannot be combined with | url = "https://x"␊confine = { read = ["/"] }
            if used; db.confine.read: “x” is a relative path | command = ["x"]␊confine = { read = ["x"] }
            at once; db.heders: cannot be combined with | url = "https://x"␊heders = { X-A = "b" }
            at once; db.a.raed: there is no setting “raed” | command = ["x"]␊a = { run = ["./x"], raed = 1 }
            if used; relative path | command = ["./server"]
            if used; relative path | command = ["a/b"]
            if used; relative path | cwd = "here"
            at once; must be a table | env = [1]
            at once; env.A: must be a string | env = { A = 1 }
            at once; too short | timeout = "0s"
            if used; db.key_cmd: must name a program | url = "https://x"␊key_cmd = []
            at once; must be a string | start = 5
            at once; there is no setting “alow” | alow = []
            if used; db: needs command, url, or a table | -
            if used; db: needs command, url, or a table | only = []
            if used; db: needs command, url, or a table | allow = ["*"]␊env = { A = "1" }
            at once; db.confine.net: there is no setting “net” | confine = { net = true }
            if used; db.key_env: cannot be combined with | command = ["x"]␊key_env = "K"
            if used; db.command: cannot be combined with | url = "https://x"␊command = ["x"]
            if used; cwd: cannot be combined with | cwd = "/"␊url = "https://x"
            if used; db.url: is not a URL | url = "x"
            at once; url: must be a string | url = 1
            at once; must be the name of an environment variable | url = "https://x"␊key_env = "sk-123"
            at once; must be the name of an environment variable | url = "https://x"␊key_env = ""
            if used; key_cmd: there can be key_env or key_cmd, not both | url = "https://x"␊key_env = "A"␊key_cmd = ["b"]
            at once; must be a table | url = "https://x"␊headers = 1
            at once; headers.a b: is not a valid name | url = "https://x"␊headers = { "a b" = "x" }
            at once; headers.Content-Length: is not a valid name | url = "https://x"␊headers = { Content-Length = "1" }
            at once; there is no setting “header” | url = "https://x"␊header = 1
        "##,
        ) {
            let wrong = fault(&text.replace('␊', "\n"));
            let (first, rest) = words.split_once("; ").expect(words);
            assert!(
                wrong.starts_with(first) && wrong.contains(rest),
                "{text}: {wrong}"
            );
            assert!(!wrong.contains("sk-123"), "{wrong}");
        }
    }

    #[test]
    fn a_section_without_a_server_sets_what_the_shared_one_may_do() {
        // An entry of the shared file, a section, and the server: what it offers of a, b and c, what of them runs unasked, its
        // limits in seconds, whether it is confined, and why it offers nothing where that is so.
        let table = r#"
            {"command": "x"} | - | abc - 60 30 free | -
            {"command": "x"} | allow = ["a"]; timeout = "9s" | abc a 9 30 free | -
            {"command": "x", "tools": ["a"]} | allow = ["*"]; start = "5s" | a abc 60 5 free | "tools" in mcpServers.s of /mcp.json leaves none of its tools
            {"command": "x", "tools": ["a"]} | only = ["b", "c"] | bc - 60 30 free | only = [...] in [tools.s] leaves none of its tools
            {"command": "x", "disabledTools": ["b"]} | only = ["b", "c"] | c - 60 30 free | only = [...] in [tools.s] and "disabledTools" in mcpServers.s of /mcp.json leave none of its tools
            {"command": "x", "tools": ["a"], "disabledTools": ["b"]} | confine = {} | a - 60 30 confined | "tools" and "disabledTools" in mcpServers.s of /mcp.json leave none of its tools
            {"url": "https://x"} | allow = ["a"] | abc a 60 30 remote | -
            {"url": "https://x"} | confine = {} | abc - 60 30 wrong | matches none of its tools
            {"command": 5, "env": 1} | confine = {} | abc - 60 30 wrong | -
        "#;
        for [entry, section, expected, fault] in rows(table) {
            let section = section.replace("; ", "\n");
            let table = DeTable::parse(&section).expect("TOML");
            let value = DeValue::Table(table.into_inner());
            let named = TableEntry {
                key: "s",
                at: 0,
                value: &value,
            };
            let read = ToolSection::read(&named, &|_| Origin::Default);
            let ToolSection::OfShared(settings) = read.expect("a section") else {
                panic!("a whole section: {section}")
            };
            let shared = ToolServer::parse_shared(entry, &Environment::default());
            let server = settings.applied_to(shared);
            let mut offered = ["a", "b", "c"].to_vec();
            let mut allowed = offered.clone();
            offered.retain(|tool| server.offers(tool));
            allowed.retain(|tool| server.allows(tool, false));
            let seconds = |limit: Option<Duration>| limit.expect("a limit").as_secs();
            let kind = match &server.kind {
                ServerKind::Local(program) if program.confine.is_some() => "confined",
                ServerKind::Local(_) => "free",
                ServerKind::Remote(_) => "remote",
                ServerKind::Commands { .. } | ServerKind::Wrong(_) => "wrong",
            };
            let or_dash = |tools: Vec<&str>| match tools.concat() {
                none if none.is_empty() => "-".to_owned(),
                some => some,
            };
            let (timeout, start) = (seconds(server.rules.timeout), seconds(server.rules.start));
            let found = format!(
                "{} {} {timeout} {start} {kind}",
                or_dash(offered),
                or_dash(allowed)
            );
            assert_eq!(found, expected, "{entry} {section}");
            assert!(
                server.fault_of_choice().ends_with(fault),
                "{entry} {section}"
            );
        }
    }

    #[test]
    fn a_server_over_http_has_headers_and_a_key() {
        let server = read(
            "headers = { x-team = \"infra\" }\nkey_cmd = [\"pass\", \"x\"]\nurl = \"https://h/mcp\"",
        );
        let ServerKind::Remote(site) = server.expect("a server").kind else {
            panic!("no address")
        };
        assert_eq!(site.url.to_string(), "https://h/mcp");
        let [(name, value)] = &site.headers.all[..] else {
            panic!("not one header")
        };
        assert_eq!((name.as_str(), value.expose()), ("x-team", "infra"));
        let command = ["pass", "x"].map(str::to_owned);
        assert_eq!(site.key, Key::Command(command.to_vec()));
    }

    #[test]
    fn a_section_without_a_server_has_commands() {
        let section = read(
            "allow = [\"b*\"]\ntimeout = \"5s\"\ncwd = \"/home\"\nenv_from = [\"A\"]\nenv = { LANG = \"C\", X = \"1\" }\n\
             [command]\nrun = [\"date\", \"{day}\"]\nreads = true\n\
             [b]\nrun = [\"/bin/ls\"]\nstdin = \"{text}\"\ninput = \"text: what\"\nabout = \"List.\"\ndashes = true\n\
             timeout = \"never\"\ncwd = \".\"\nenv_from = [\"B\"]\nenv = { X = \"2\" }",
        );
        let section = section.expect("a section");
        let ServerKind::Commands { commands, .. } = &section.kind else {
            panic!("no commands")
        };
        let [first, second] = &commands[..] else {
            panic!("{commands:?}")
        };
        for (command, expected) in [
            (first, r#"command true "" Some(5s) Some("/home")"#),
            (second, r#"b false "List." None Some(".")"#),
        ] {
            let (about, timeout, cwd) = (&command.about, command.timeout, &command.program.cwd);
            let found = format!(
                "{} {} {about:?} {timeout:?} {cwd:?}",
                command.name, command.reads
            );
            assert_eq!(found, expected);
        }
        assert!(section.allows("b", false) && !section.allows("command", false));
        for (command, a, b, x) in [(first, true, false, "1"), (second, true, true, "2")] {
            let own = Environment::new(&[("A", "a"), ("B", "b"), ("C", "c")]);
            let given = command.program.environment(&own);
            let last = |wanted: &str| {
                let found = given.iter().rfind(|(name, _)| name == wanted);
                found.map(|(_, value)| value.to_str().expect("text"))
            };
            let found = (last("A").is_some(), last("B").is_some(), last("C"));
            assert_eq!(found, (a, b, None));
            assert_eq!((last("LANG"), last("X")), (Some("C"), Some(x)));
        }
        for [words, text] in rows(
            r##"
            if used; db.a: cannot be combined with | command = ["x"]␊[a]␊run = ["x"]
            at once; db.env.run: must be a string | [a]␊run = ["x"]␊[url]␊run = ["x"]␊[env]␊run = 1
            if it is called; db.a: has no run | [a]
            if it is called; db.a.run: must name a program | [a]␊run = []
            if it is called; run: must name a program | [a]␊run = [""]
            at once; run: must be a list | [a]␊run = "x"
            if it is called; run: “./x” is a relative path | [a]␊run = ["./x"]
            if it is called; “-n{x}” is an option | [a]␊run = ["x", "-n{x}"]
            if it is called; db.a.input: “X” is not the name of an argument | [a]␊run = ["x"]␊input = "X"
            if it is called; db.a.confine.read: “x” is a relative path | [a]␊run = ["x"]␊confine = { read = ["x"] }
            at once; db.a.reads: must be true or false | [a]␊run = ["./x"]␊reads = 1
            at once; db.a.reads: must be true or false | cwd = "x"␊[a]␊run = ["x"]␊reads = 1
            at once; db.timeout: must be a string | timeout = 5␊[a]␊run = ["./x"]
            if used; db.cwd: “x” is a relative path | cwd = "x"␊[a]␊run = ["x"]
            if it is called; db.a.run: the program cannot be | [a]␊run = ["{x}"]
            if it is called; db.a.input: “b” is never used | [a]␊run = ["x"]␊input = "b"
            at once; reads: must be true or false | [a]␊run = ["x"]␊reads = 1
            if used; db.about_run: “./x” is a relative path | about_run = ["./x"]␊[a]␊run = ["x"]
            if used; db.about_run: must name a program | about_run = []␊[a]␊run = ["x"]
            if used; db.about_run: cannot be combined with | command = ["x"]␊about_run = ["x"]
            at once; read: there is no setting “read” | [a]␊run = ["x"]␊read = true
            at once; db.a.allow: this key belongs in a section such as [tools.shop] | [a]␊run = ["x"]␊allow = []
            at once; too short | [a]␊run = ["x"]␊timeout = "0s"
            if it is called; cwd: “x” is a relative path | [a]␊run = ["x"]␊cwd = "x"
            at once; db.a_b: the name must be | [a_b]␊run = ["x"]
            at once; db.none: the name must be | [none]␊run = ["x"]
            if used; headers: cannot be combined with | [headers]␊run = ["x"]
            at once; db.run: this key belongs to a command, which has a name: [tools.SECTION.NAME] | run = ["x"]
        "##,
        ) {
            let wrong = fault(&text.replace('␊', "\n"));
            let (first, rest) = words.split_once("; ").expect(words);
            assert!(
                wrong.starts_with(first) && wrong.contains(rest),
                "{text}: {wrong}"
            );
        }
    }

    #[test]
    fn names_of_tool_servers_must_be_short_and_plain() {
        for name in ["db", "a-1", "a2345678901234567890"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["a23456789012345678901", "none", "1a", "Db", "a_b", ""] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_server_gets_no_variable_that_is_not_meant_for_it() {
        let own = "HOME=/home/me LC_ALL=C XDG_STATE_HOME=/s OPENAI_API_KEY=sk-secret SHOP_TOKEN=t AWS_REGION=r \
                   Q_MODEL=m LANG=de";
        let own = own.split(' ').filter_map(|pair| pair.split_once('='));
        let section = "command = [\"x\"]\nenv_from = [\"SHOP_TOKEN\", \"AWS_*\"]\nenv = { LANG = \"C\", X = \"1\" }";
        let ServerKind::Local(program) = read(section).expect("a server").kind else {
            panic!("no program")
        };
        let mut given = Vec::new();
        for (name, value) in program.environment(&Environment::new(&Vec::from_iter(own))) {
            given.push(format!("{name}={}", value.display()));
        }
        given.sort();
        let expected =
            "AWS_REGION=r HOME=/home/me LANG=C LC_ALL=C SHOP_TOKEN=t X=1 XDG_STATE_HOME=/s";
        assert_eq!(given.join(" "), expected);
    }
}
