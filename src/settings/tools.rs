//! The tool servers of the settings: how q reaches each, which tools it offers, and what runs without asking (pure).

use std::time::Duration;

use serde_json::{Value, json};

use super::commands::Command;
use super::headers::OwnHeaders;
use super::key::Key;
use super::pattern;
use super::program::{LocalProgram, exposed};
use super::section_fault::SectionFault;
use super::server_origin::{ServerOrigin, SharedEntry};
use crate::secret::Secret;
use crate::server_url::Endpoint;

/// In `allow`, means the tools that are said to read.
pub const READS: &str = "@reads";

/// A tool server: a section `[tools.NAME]`, or one in the file that the setting `mcp` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolServer {
    pub name: String,
    pub kind: ServerKind,
    pub rules: ToolRules,
    pub origin: ServerOrigin,
}

/// What a section of any kind may say of its tools: which are offered, which run without asking, and how long they may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRules {
    /// Lists of patterns for the tools to offer: each list must have one that matches.
    pub(super) only: Vec<Vec<String>>,
    /// Patterns for those of them that are left out anyway.
    pub(super) without: Vec<String>,
    /// Patterns for the tools that run without asking.
    pub(super) allow: Vec<String>,
    /// How long a call may go without an answer or a report of progress; `None` is no limit.
    pub timeout: Option<Duration>,
    /// How long it may take until its tools are listed; `None` is no limit.
    pub start: Option<Duration>,
}

/// A kind of tool server, with what only this kind has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerKind {
    /// A program on this machine.
    Local(LocalProgram),
    /// An address.
    Remote(RemoteServer),
    /// No server, but commands.
    Commands {
        /// Each is a tool.
        commands: Vec<Command>,
        /// A command whose output tells the model about the others. It has only an argv without placeholders.
        about: Option<LocalProgram>,
    },
    /// What is wrong with it, which q reports only if it is used.
    Wrong(SectionFault),
}

/// A tool server over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteServer {
    pub url: Endpoint,
    /// Headers of every request.
    pub headers: OwnHeaders,
    pub key: Key,
}

impl ToolServer {
    /// Returns a server with the default settings.
    pub(super) fn new(name: &str, kind: ServerKind) -> ToolServer {
        ToolServer {
            name: name.to_owned(),
            kind,
            rules: ToolRules::default(),
            origin: ServerOrigin::Section,
        }
    }

    /// Returns the section that a key of every kind of section belongs to, for advice. It may have no other key.
    pub fn section_to_edit(&self) -> String {
        format!("[tools.{}]", self.name)
    }

    /// Whether something says which of its tools are offered.
    pub fn chooses_tools(&self) -> bool {
        self.rules.choose_tools()
    }

    /// Returns what says which of its tools are offered, for advice.
    pub fn choice_of_tools(&self) -> String {
        format!("only = [...] in {}", self.section_to_edit())
    }

    /// Returns why it offers none of the tools that it has.
    pub fn fault_of_choice(&self) -> String {
        let own = self.choice_of_tools();
        let ServerOrigin::Shared(entry) = &self.origin else {
            return format!("{own} matches none of its tools");
        };
        let SharedEntry { file, path, .. } = entry;
        let keys = entry.include_keys.iter().chain(&entry.exclude_keys);
        let keys = Vec::from_iter(keys.map(|key| format!("\"{key}\"")));
        // It is in place of those of the file.
        let has_own = self.chooses_tools() && entry.include_keys.is_empty();
        let mut choices = Vec::new();
        if has_own {
            choices.push(own);
        }
        if !keys.is_empty() {
            choices.push(format!("{} in {path} of {file}", keys.join(" and ")));
        }
        let is_one = keys.len() + usize::from(has_own) == 1;
        let leave = if is_one { "leaves" } else { "leave" };
        format!("{} {leave} none of its tools", choices.join(" and "))
    }

    /// Returns the setting that gives its program a variable of q's environment.
    pub fn passing_of(&self, variable: &str) -> String {
        match &self.origin {
            ServerOrigin::Section => {
                format!("env_from = [\"{variable}\"] in [tools.{}]", self.name)
            }
            ServerOrigin::Shared(entry) => {
                let SharedEntry {
                    file,
                    path,
                    env_key,
                    ..
                } = entry;
                format!(
                    "\"{env_key}\": {{\"{variable}\": \"${{{variable}}}\"}} in {path} of {file}"
                )
            }
        }
    }

    /// Returns what tells it from other servers. It has secrets.
    pub fn identity(&self) -> Value {
        match &self.kind {
            ServerKind::Local(program) => program.identity(),
            ServerKind::Remote(remote) => {
                let RemoteServer { url, headers, key } = remote;
                let authorization = url.server.authorization();
                json!([
                    self.name,
                    url.server.to_string(),
                    url.path_and_query(),
                    authorization.as_ref().map(Secret::expose),
                    exposed(&headers.all),
                    format!("{key:?}"),
                ])
            }
            ServerKind::Commands { .. } | ServerKind::Wrong(_) => Value::Null,
        }
    }

    /// Whether a tool is offered at all.
    pub fn offers(&self, tool: &str) -> bool {
        let is_matched = |pattern: &String| pattern::matches(pattern, tool);
        let has_match = |list: &Vec<String>| list.iter().any(is_matched);
        let ToolRules { only, without, .. } = &self.rules;
        only.iter().all(has_match) && !without.iter().any(is_matched)
    }

    /// Returns the tools that `only` and `allow` name, without patterns.
    pub fn named_tools(&self) -> Vec<String> {
        let mut named = Vec::new();
        let ToolRules { only, allow, .. } = &self.rules;
        for tool in only.iter().flatten().chain(allow) {
            if !tool.contains('*') && !tool.starts_with('@') {
                named.push(tool.clone());
            }
        }
        named
    }

    /// Whether a tool runs without asking. `reads` says that it changes nothing: of a command the user has written that, and of
    /// its own tools a server says it, which counts only where `@reads` is allowed.
    pub fn allows(&self, tool: &str, reads: bool) -> bool {
        let is_command = matches!(self.kind, ServerKind::Commands { .. });
        if is_command && reads {
            return true;
        }
        let all_that_read = reads && self.rules.allow.iter().any(|allowed| allowed == READS);
        all_that_read || self.allowing(tool).next().is_some()
    }

    /// Returns the patterns that let a tool run without asking.
    pub fn allowing(&self, tool: &str) -> impl Iterator<Item = &str> {
        let patterns = self.rules.allow.iter().map(String::as_str);
        patterns.filter(move |pattern| *pattern != READS && pattern::matches(pattern, tool))
    }
}

impl Default for ToolRules {
    fn default() -> ToolRules {
        ToolRules {
            only: Vec::new(),
            without: Vec::new(),
            allow: Vec::new(),
            timeout: Some(Duration::from_secs(60)),
            start: Some(Duration::from_secs(30)),
        }
    }
}

impl ToolRules {
    /// Whether they say which tools are offered.
    fn choose_tools(&self) -> bool {
        !self.only.is_empty()
    }
}

impl RemoteServer {
    /// Returns a server that needs no key.
    pub(super) fn new(url: Endpoint) -> RemoteServer {
        RemoteServer {
            url,
            headers: OwnHeaders::default(),
            key: Key::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_runs_without_asking_if_allow_has_a_pattern_for_it_or_for_tools_that_read() {
        let server =
            ToolServer::parse("db", "command = [\"x\"]\nallow = [\"@reads\", \"write_*\"]");
        for (tool, reads, is_allowed) in [
            ("a", true, true),
            ("a", false, false),
            ("@reads", false, false),
            ("write_a", false, true),
        ] {
            assert_eq!(server.allows(tool, reads), is_allowed, "{tool}");
        }
    }
}
