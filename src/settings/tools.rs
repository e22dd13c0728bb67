//! The tool servers of the configuration file: how q reaches each one, what it may see, and what runs without asking.

use std::borrow::Cow;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::duration;
use super::origin::Environment;
use super::pattern;
use super::value::{self, in_order};
use crate::address::Endpoint;
use crate::secret::Secret;

/// The most characters of a server's name.
const MAX_NAME: usize = 20;

/// A name with a special meaning for `-t`.
pub(crate) const NO_TOOLS: &str = "none";

/// The time without an answer or progress after which a call has failed.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How long a server may take until its tools are listed.
const START: Duration = Duration::from_secs(30);

/// The variables that every server gets; a star matches any characters. Only `env` and `env_from` pass on keys.
const PASSED_ON: &[&str] = &[
    "HOME",
    "LOGNAME",
    "USER",
    "PATH",
    "SHELL",
    "TERM",
    "LANG",
    "LC_*",
    "TZ",
    "TMPDIR",
    "XDG_*",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "npm_config_*",
    "UV_*",
];

/// A tool server: a section `[tools.NAME]`, or one in the file that the setting `mcp` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolServer {
    pub(crate) name: String,
    pub(crate) place: Place,
    /// Patterns for the tools to offer; `None` offers all.
    only: Option<Vec<String>>,
    /// Patterns for the tools that run without asking.
    allow: Vec<String>,
    /// How long a call may take until its answer, or from one report of progress to the next; `None` is for ever.
    pub(crate) timeout: Option<Duration>,
    /// How long it may take until its tools are listed; `None` is for ever.
    pub(crate) start: Option<Duration>,
    /// It is in the file that the setting `mcp` names.
    pub(crate) is_shared: bool,
}

/// Where a tool server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A program on this machine.
    Local(LocalServer),
    /// An address.
    Remote(RemoteServer),
}

/// A tool server that q starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LocalServer {
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// Variables that it gets besides those passed on.
    pub(crate) env: Vec<(String, Secret)>,
    /// Patterns for more variables to pass on from q's own environment.
    env_from: Vec<String>,
    /// `None` is the home folder; `.` the folder that q was started in.
    pub(crate) cwd: Option<String>,
}

/// A tool server over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteServer {
    pub(crate) url: Endpoint,
    /// Headers of every request.
    pub(crate) headers: Vec<(String, Secret)>,
    pub(crate) key: KeyPlace,
}

/// Where the key of a tool server over HTTP is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyPlace {
    /// The server needs no key.
    None,
    /// In this variable.
    Variable(String),
    /// On the first line that this command prints.
    Command(Vec<String>),
}

/// A configured server, or what is wrong with it, which q reports only if it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Configured {
    pub(crate) name: String,
    pub(crate) server: Result<ToolServer, String>,
}

impl ToolServer {
    /// A server with only its place set.
    pub(super) fn new(name: &str, place: Place) -> ToolServer {
        ToolServer {
            name: name.to_owned(),
            place,
            only: None,
            allow: Vec::new(),
            timeout: Some(TIMEOUT),
            start: Some(START),
            is_shared: false,
        }
    }

    /// Reads a section.
    ///
    /// # Errors
    /// What is wrong, and the place of the key at fault if there is one.
    pub(super) fn read(name: &str, fields: &DeTable) -> Result<ToolServer, (Option<usize>, String)> {
        let mut server = ToolServer::new(name, Place::Local(LocalServer::default()));
        let entries = in_order(fields);
        let wrong = |key: &toml::Spanned<Cow<str>>, reason: String| {
            (Some(key.span().start), format!("tools.{name}.{}: {reason}", key.get_ref()))
        };
        // The other keys depend on whether there is a url.
        if let Some((key, url)) = entries.iter().find(|(key, _)| key.get_ref() == "url") {
            let url = value::string(url.get_ref()).and_then(|url| Endpoint::parse(&url));
            server.place = Place::Remote(RemoteServer::new(url.map_err(|reason| wrong(key, reason))?));
        }
        for (key, value) in entries.iter().filter(|(key, _)| key.get_ref() != "url") {
            server.set(key.get_ref(), value.get_ref()).map_err(|reason| wrong(key, reason))?;
        }
        match &server.place {
            Place::Local(program) if program.command.is_empty() => {
                Err((None, format!("tools.{name}: has neither a command nor a url")))
            }
            _ => Ok(server),
        }
    }

    fn set(&mut self, key: &str, value: &DeValue) -> Result<(), String> {
        const PATTERNS: &str = "[\"list_*\"]";
        match key {
            "only" => self.only = Some(value::strings(value, PATTERNS)?),
            "allow" => self.allow = value::strings(value, PATTERNS)?,
            "timeout" => self.timeout = time(value)?,
            "start" => self.start = time(value)?,
            _ => match &mut self.place {
                Place::Local(program) => program.set(key, value)?,
                Place::Remote(site) => site.set(key, value)?,
            },
        }
        Ok(())
    }

    /// Whether a tool is offered at all.
    pub(crate) fn offers(&self, tool: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|wanted| pattern::matches(wanted, tool)))
    }

    /// Whether a tool runs without asking.
    pub(crate) fn allows(&self, tool: &str) -> bool {
        self.allow.iter().any(|allowed| pattern::matches(allowed, tool))
    }

    /// The patterns for tools that run without asking that fit none of these tools.
    pub(crate) fn idle_patterns(&self, tools: &[&str]) -> Vec<&String> {
        self.allow.iter().filter(|allowed| !tools.iter().any(|tool| pattern::matches(allowed, tool))).collect()
    }
}

impl LocalServer {
    /// A server with only its command set.
    pub(super) fn new(command: Vec<String>) -> LocalServer {
        LocalServer { command, ..LocalServer::default() }
    }

    fn set(&mut self, key: &str, value: &DeValue) -> Result<(), String> {
        const FIELDS: [&str; 9] = ["command", "url", "env", "env_from", "cwd", "only", "allow", "timeout", "start"];
        match key {
            "command" => {
                self.command = value::command(value, "[\"uvx\", \"mcp-server-time\"]")?;
                check_command(&self.command)?;
            }
            "env" => {
                let variables = value::table(value, "{ LOG_LEVEL = \"error\" }", |_, text| Ok(Secret::new(text)));
                self.env = variables.map_err(|(_, reason)| reason)?;
            }
            "env_from" => self.env_from = value::strings(value, "[\"SHOP_TOKEN\", \"AWS_*\"]")?,
            "cwd" => self.cwd = Some(check_folder(value::not_empty(value::string(value)?)?)?),
            "headers" | "key_env" | "key_cmd" => return Err("is for a server with a url".to_owned()),
            _ => return Err(value::unknown(key, FIELDS)),
        }
        Ok(())
    }

    /// The values that nobody else must get: those of the variables that `env_from` passes on.
    pub(crate) fn keys(&self, own: &Environment) -> Vec<Secret> {
        let named = |name: &str| self.env_from.iter().any(|wanted| pattern::matches(wanted, name));
        own.variables().filter(|(name, _)| named(name)).map(|(_, value)| Secret::new(value)).collect()
    }

    /// All variables that it gets.
    pub(crate) fn environment(&self, own: &Environment) -> Vec<(String, String)> {
        let passed = |name: &str| {
            let mut patterns = PASSED_ON.iter().copied().chain(self.env_from.iter().map(String::as_str));
            patterns.any(|wanted| pattern::matches(wanted, name))
        };
        let added = self.env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
        let of_own =
            own.variables().filter(|(name, _)| passed(name) && !self.env.iter().any(|(other, _)| other == name));
        of_own.map(|(name, value)| (name.to_owned(), value.to_owned())).chain(added).collect()
    }
}

impl RemoteServer {
    /// A server that needs no key.
    pub(super) fn new(url: Endpoint) -> RemoteServer {
        RemoteServer { url, headers: Vec::new(), key: KeyPlace::None }
    }

    fn set(&mut self, key: &str, value: &DeValue) -> Result<(), String> {
        const FIELDS: [&str; 8] = ["url", "headers", "key_env", "key_cmd", "only", "allow", "timeout", "start"];
        match key {
            "headers" => self.headers = value::headers(value).map_err(|(_, reason)| reason)?,
            "key_env" | "key_cmd" if self.key != KeyPlace::None => {
                return Err("a server has key_env or key_cmd, not both".to_owned());
            }
            "key_env" => self.key = KeyPlace::Variable(value::variable(value)?),
            "key_cmd" => self.key = KeyPlace::Command(value::command(value, "[\"pass\", \"show\", \"work/search\"]")?),
            "command" => return Err("a server has a command or a url, not both".to_owned()),
            "env" | "env_from" | "cwd" => return Err("is for a server with a command".to_owned()),
            _ => return Err(value::unknown(key, FIELDS)),
        }
        Ok(())
    }
}

/// Checks a command. The meaning of a relative path would depend on the folder that q is started in.
pub(super) fn check_command(command: &[String]) -> Result<(), String> {
    match command.first() {
        Some(program) if program.contains('/') && !program.starts_with('/') => {
            Err(format!("“{program}” is a relative path; write the full path"))
        }
        _ => Ok(()),
    }
}

/// Checks the folder that a server is started in, and returns it: a full path, or `.`.
pub(super) fn check_folder(folder: String) -> Result<String, String> {
    if folder != "." && !folder.starts_with('/') {
        return Err(format!("“{folder}” is a relative path; write the full path, or \".\""));
    }
    Ok(folder)
}

/// Checks the name of a server.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
    let allowed = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    if !begins || name.len() > MAX_NAME || !name.chars().all(allowed) || name == NO_TOOLS {
        return Err(format!(
            "tools.{name}: a server's name must be a lowercase letter, then up to {} of a-z 0-9 -; “{NO_TOOLS}” is taken",
            MAX_NAME - 1
        ));
    }
    Ok(())
}

fn time(value: &DeValue) -> Result<Option<Duration>, String> {
    let duration = duration::parse(&value::string(value)?)?;
    if duration == Some(Duration::ZERO) { Err("is too short: at least 1s, or never".to_owned()) } else { Ok(duration) }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl ToolServer {
        /// The server of a section, for tests of what is made of it.
        pub(crate) fn parse(name: &str, section: &str) -> ToolServer {
            let table = DeTable::parse(section).expect("TOML");
            ToolServer::read(name, table.get_ref()).expect("a section")
        }
    }

    fn read(text: &str) -> Result<ToolServer, (Option<usize>, String)> {
        let table = DeTable::parse(text).expect("TOML");
        ToolServer::read("db", table.get_ref())
    }

    #[test]
    fn a_section_is_read_and_what_is_wrong_is_named() {
        let server = read(
            "command = [\"uvx\", \"x\"]\nonly = [\"read_*\"]\nallow = [\"read_a\"]\ntimeout = \"5s\"\nstart = \"never\"",
        );
        let server = server.expect("a server");
        assert_eq!((server.timeout, server.start), (Some(Duration::from_secs(5)), None));
        assert!(matches!(&server.place, Place::Local(program) if program.command == ["uvx", "x"]));
        assert_eq!((server.offers("read_b"), server.offers("write")), (true, false));
        assert_eq!((server.allows("read_a"), server.allows("read_b")), (true, false));
        for (text, words) in [
            ("command = []", "tools.db.command: names no command"),
            ("command = \"uvx\"", "must be a list"),
            ("command = [\"./server\"]", "relative path"),
            ("command = [\"a/b\"]", "relative path"),
            ("cwd = \"here\"", "relative path"),
            ("env = [1]", "must be a table"),
            ("env = { A = 1 }", "A: must be a string"),
            ("timeout = \"0s\"", "too short"),
            ("start = 5", "must be a string"),
            ("alow = []", "did you mean “allow”?"),
            ("only = []", "tools.db: has neither a command nor a url"),
            ("command = [\"x\"]\nkey_env = \"K\"", "tools.db.key_env: is for a server with a url"),
            ("command = [\"x\"]\nheaders = {}", "headers: is for a server with a url"),
            ("url = \"https://x\"\ncommand = [\"x\"]", "tools.db.command: a server has a command or a url, not both"),
            ("cwd = \"/\"\nurl = \"https://x\"", "cwd: is for a server with a command"),
            ("url = \"x\"", "tools.db.url: is not a URL"),
            ("url = 1", "url: must be a string"),
            ("url = \"https://x\"\nkey_env = \"sk-123\"", "must be the name of an environment variable"),
            (
                "url = \"https://x\"\nkey_env = \"A\"\nkey_cmd = [\"b\"]",
                "key_cmd: a server has key_env or key_cmd, not both",
            ),
            ("url = \"https://x\"\nheaders = 1", "must be a table"),
            ("url = \"https://x\"\nheaders = { \"a b\" = \"x\" }", "a b: that cannot be the name of a header"),
            ("url = \"https://x\"\nheader = {}", "did you mean “headers”?"),
        ] {
            let (_, wrong) = read(text).expect_err(text);
            assert!(wrong.contains(words), "{wrong}");
            assert!(!wrong.contains("sk-123"), "{wrong}");
        }
    }

    #[test]
    fn a_server_over_http_has_headers_and_a_key() {
        let server = read(
            "allow = [\"*\"]\nheaders = { x-team = \"infra\" }\nkey_cmd = [\"pass\", \"x\"]\nurl = \"https://h.example/mcp\"",
        );
        let server = server.expect("a server");
        assert!(server.allows("a"));
        let Place::Remote(site) = &server.place else { panic!("no address") };
        assert_eq!(site.url.to_string(), "https://h.example/mcp");
        let headers: Vec<_> = site.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        assert_eq!(headers, [("x-team", "infra")]);
        assert_eq!(site.key, KeyPlace::Command(vec!["pass".to_owned(), "x".to_owned()]));
    }

    #[test]
    fn names_are_short_and_plain() {
        for (name, fine) in [
            ("db", true),
            ("a-1", true),
            ("a2345678901234567890", true),
            ("a23456789012345678901", false),
            ("none", false),
            ("1a", false),
            ("Db", false),
            ("a_b", false),
            ("", false),
        ] {
            assert_eq!(check_name(name).is_ok(), fine, "{name}");
        }
    }

    #[test]
    fn a_server_gets_no_variable_that_is_not_meant_for_it() {
        let own = [
            ("HOME", "/home/me"),
            ("LC_ALL", "C"),
            ("XDG_STATE_HOME", "/s"),
            ("OPENAI_API_KEY", "sk-secret"),
            ("SHOP_TOKEN", "t"),
            ("AWS_REGION", "r"),
            ("Q_MODEL", "m"),
            ("LANG", "de"),
        ];
        let section = "command = [\"x\"]\nenv_from = [\"SHOP_TOKEN\", \"AWS_*\"]\nenv = { LANG = \"C\", X = \"1\" }";
        let Place::Local(program) = read(section).expect("a server").place else { panic!("no program") };
        let mut given = program.environment(&Environment::new(&own));
        given.sort();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [
            pair("AWS_REGION", "r"),
            pair("HOME", "/home/me"),
            pair("LANG", "C"),
            pair("LC_ALL", "C"),
            pair("SHOP_TOKEN", "t"),
            pair("X", "1"),
            pair("XDG_STATE_HOME", "/s"),
        ];
        assert_eq!(given, expected);
    }
}
