//! Turns the selected sections of the configuration into servers that can be started and commands that can be run: finds
//! programs, directories and keys.

use std::collections::HashSet;
use std::sync::Arc;

use super::commands::{Commands, RunnableCommand};
use super::confined::{Confined, remove_home_variables};
use super::connection::Callee;
use super::faults::{self, ProgramPart, program_error};
use super::groups::ProcessGroups;
use super::http::Site;
use super::names::{self, SEPARATOR, Selection};
use super::program::Program;
use super::secrets::ToolSecrets;
use super::server::Server;
use super::startup::{self, FoundProgram};
use crate::error::Error;
use crate::flags::Mode;
use crate::output::Notes;
use crate::scratch::ScratchPlaces;
use crate::secret::{Secret, Secrets};
use crate::server::client::{Client, has_authorization};
use crate::server::key_command;
use crate::settings::{
    Command, LocalProgram, RemoteServer, ServerKind, ServerOrigin, Settings, SharedEntry,
    ToolServer, advice_to_add, advice_to_add_tools, keys_in_headers, names_key, short_name,
};
use crate::text::nearest::did_you_mean;

/// The preparation of the servers and commands of a question.
pub struct Preparation<'a> {
    /// `None`: all tools.
    pub selection: Option<&'a Selection>,
    pub settings: &'a Settings,
    pub notes: &'a Notes,
    /// Where they start.
    pub groups: &'a ProcessGroups,
    /// Gets those of the sections.
    pub secrets: &'a ToolSecrets,
    pub scratch_places: ScratchPlaces,
}

impl Preparation<'_> {
    /// Returns the selected servers. Without a selection all that can be started, with a note for each of the others.
    pub fn prepare_all(&mut self) -> Result<Vec<Server>, Error> {
        let selection = self.selection;
        let mut configured = Vec::new();
        let mut others = Vec::new();
        if selection.is_none_or(|selection| !selection.is_empty()) {
            configured = self.settings.all_tool_servers()?;
        }
        if let Some(selection) = selection {
            let named = selection.servers();
            for name in &named {
                if !configured.iter().any(|server| server.name == *name) {
                    return Err(unknown(name, &configured, self.settings));
                }
            }
            let is_named = |server: &ToolServer| named.contains(&server.name.as_str());
            (configured, others) = configured.into_iter().partition(is_named);
        }
        let is_file_used = configured.iter().any(is_shared);
        // Remote servers come last: no key is asked for where a program is missing.
        configured.sort_by_key(|server| matches!(server.kind, ServerKind::Remote(_)));
        let mut prepared = Vec::new();
        for section in configured {
            match self.prepare(section) {
                Ok(ready) => prepared.push(ready),
                Err(error) if selection.is_none() => self.notes.note_error(&error),
                Err(error) => return Err(error),
            }
        }
        if is_file_used {
            self.note_faults(others);
        }
        Ok(prepared)
    }

    /// Says which of these servers of the shared file cannot be used. Whoever uses that file may miss them.
    fn note_faults(&self, mut others: Vec<ToolServer>) {
        others.retain(is_shared);
        for fault in faults::faults_of_sections(&others, &self.settings.environment) {
            self.notes.note_error(&fault);
        }
    }

    fn prepare(&mut self, section: ToolServer) -> Result<Server, Error> {
        self.note_unfilled(&section);
        let name = &section.name;
        let callee = match &section.kind {
            ServerKind::Local(local) => Callee::Local(self.program(&section, name, local)?),
            ServerKind::Commands { commands, about } => {
                let runnable = self.runnable(&section, commands)?;
                // A list of tools says nothing of it, and must not depend on it.
                let asks = self.settings.arguments.mode == Mode::Ask;
                let about = match about.as_ref().filter(|_| asks) {
                    Some(local) => {
                        let dotted_key = faults::dotted_key_of_about(name);
                        Some(self.program(&section, &dotted_key, local)?)
                    }
                    None => None,
                };
                Callee::Commands(Commands { runnable, about })
            }
            ServerKind::Remote(remote) => {
                let site = self.site(&section, remote)?;
                Callee::Remote(Arc::new(site))
            }
            ServerKind::Wrong(fault) => {
                return Err(faults::as_error(&section, fault));
            }
        };
        Ok(Server::new(section, callee, self.groups))
    }

    /// Notes the variables that a section has where none is filled in. Its commands may have them in common.
    fn note_unfilled(&self, section: &ToolServer) {
        let own = &self.settings.environment;
        let mut notes = Vec::new();
        match &section.kind {
            ServerKind::Local(local) => notes = local.unfilled(own),
            ServerKind::Commands { commands, about } => {
                for command in commands {
                    let full_name = names::full_name(&section.name, &command.name);
                    if self.has(&full_name) && section.offers(&command.name) {
                        notes.extend(command.program.unfilled(own));
                    }
                }
                notes.extend(about.iter().flat_map(|about| about.unfilled(own)));
            }
            ServerKind::Remote(remote) if !is_shared(section) => {
                notes.clone_from(&remote.headers.unfilled);
            }
            ServerKind::Remote(_) | ServerKind::Wrong(_) => {}
        }
        let name = &section.name;
        if let ServerOrigin::Shared(entry) = &section.origin {
            let SharedEntry { file, path, .. } = entry;
            for written in &entry.unread {
                self.notes.note(&format!("{name}: {written} (in {file})"));
            }
            if entry.is_sandboxed
                && let ServerKind::Local(program) = &section.kind
                && program.confine.is_none()
            {
                self.notes.note(&format!(
                    "{name}: {path}.sandboxEnabled: q does not read it, so the server is not confined; confine in a section [tools.{name}] does that (in {file})"
                ));
            }
        }
        let mut seen = HashSet::new();
        notes.retain(|note| seen.insert(note.clone()));
        for note in notes {
            self.notes.note(&format!("tools.{name}: {note}"));
        }
    }

    /// Whether a tool is selected.
    fn has(&self, full_name: &str) -> bool {
        let mut selection = self.selection.into_iter();
        selection.all(|selection| selection.has(full_name))
    }

    /// Returns the commands of a section that have no fault, and whose programs are there. What is wrong with a selected command
    /// is an error; without a selection, a note says it.
    fn runnable(
        &mut self,
        section: &ToolServer,
        commands: &[Command],
    ) -> Result<Vec<RunnableCommand>, Error> {
        let mut ready = Vec::new();
        for command in commands {
            let name = &command.name;
            let full_name = names::full_name(&section.name, name);
            let is_selected = self.has(&full_name);
            match self.checked_program(section, command) {
                Ok(program) => ready.push(RunnableCommand {
                    command: command.clone(),
                    program: Arc::new(program),
                }),
                Err(_) if !is_selected || !section.offers(name) => (),
                Err(error) if self.selection.is_none() => self.notes.note_error(&error),
                Err(error) => return Err(error),
            }
        }
        Ok(ready)
    }

    /// Returns the program of a command that may run. `--yes` is a person's own word, and may let code of the model's run.
    fn checked_program(
        &mut self,
        section: &ToolServer,
        command: &Command,
    ) -> Result<Program, Error> {
        if let Some(fault) = &command.fault {
            return Err(faults::as_error(section, fault));
        }
        let own = &self.settings.environment;
        if !self.settings.arguments.yes
            && let Some(fault) = faults::fault_of_unasked_code(section, command, own)
        {
            return Err(fault);
        }
        if let Some(fault) = faults::fault_of_paths(section, command) {
            return Err(fault);
        }
        let dotted_key = faults::dotted_key_of_command(section, command);
        self.program(section, &dotted_key, &command.program)
    }

    /// Returns the program of the tool or server with this dotted key, as it can be started.
    fn program(
        &mut self,
        section: &ToolServer,
        dotted_key: &str,
        local: &LocalProgram,
    ) -> Result<Program, Error> {
        let own = &self.settings.environment;
        let found = startup::find_start(local, own)
            .map_err(|faults| faults::start_error(section, dotted_key, &faults.first))?;
        let FoundProgram {
            name,
            file,
            mut environment,
            bounds,
            directory,
        } = found;
        let mut confined = None;
        if let Some(bounds) = bounds {
            remove_home_variables(&mut environment, &local.env);
            let scratch_places = self.scratch_places.clone();
            if let Some(reason) = scratch_places.obstacle() {
                let reason = faults::without_scratch(&reason);
                let error = program_error(section, dotted_key, ProgramPart::Bounds, &reason);
                return Err(error.advise(faults::SCRATCH_ADVICE));
            }
            confined = Some(Confined {
                bounds,
                scratch_places,
            });
        }
        self.secrets.add_keys(&local.keys(own));
        for (_, value) in &local.env {
            self.secrets.add_hidden(&value.parts_to_hide());
        }
        Ok(Program {
            file,
            name,
            arguments: local.arguments.clone(),
            environment,
            withheld: local.withheld(own),
            directory,
            confined,
        })
    }

    /// Returns a server over HTTP with its key. A note says when a key leaves this machine unencrypted.
    fn site(&mut self, section: &ToolServer, server: &RemoteServer) -> Result<Site, Error> {
        let settings = self.settings;
        let address = &server.url.server;
        // No time-out here: each of its requests has limits of its own.
        let client = Client::new(address, None, &settings.environment)?;
        let whose = format!("tools.{}", section.name);
        let key = key_command::fetch(&server.key, &whose, &settings.environment, self.notes)?;
        let mut headers = server.headers.all.clone();
        if !has_authorization(&headers) {
            let bearer = key.map(|key| Secret::new(format!("Bearer {}", key.expose())));
            if let Some(authorization) = bearer.or_else(|| address.authorization()) {
                headers.push(("authorization".to_owned(), authorization));
            }
        }
        let mut keys = server.url.keys(names_key);
        keys.extend_from_slice(&server.headers.keys);
        keys.extend(keys_in_headers(&headers));
        if !keys.is_empty() && address.is_exposed() {
            self.notes.note(&format!(
                "the key of the tool server {} goes to {address} unencrypted",
                section.name
            ));
        }
        keys.extend_from_slice(client.proxy_secrets());
        for (_, value) in &headers {
            self.secrets.add_hidden(&value.of_header());
        }
        self.secrets.add_keys(&keys);
        self.secrets.add_hidden(&server.url.secrets());
        Ok(Site {
            client,
            url: server.url.clone(),
            origin: section.origin.clone(),
            headers,
            keys: Secrets::from_iter(&keys),
            retries: settings.values.retries,
        })
    }
}

/// Returns the whole names of the commands of a section.
fn command_names(section: &ToolServer) -> Vec<String> {
    let ServerKind::Commands { commands, .. } = &section.kind else {
        return Vec::new();
    };
    let whole = |command: &Command| format!("{}{SEPARATOR}{}", section.name, command.name);
    commands.iter().map(whole).collect()
}

/// Whether a server is one of the file that the setting `mcp` names.
fn is_shared(section: &ToolServer) -> bool {
    matches!(section.origin, ServerOrigin::Shared(_))
}

fn unknown(name: &str, configured: &[ToolServer], settings: &Settings) -> Error {
    if let Some(server) = settings.disabled_server(&short_name(name)) {
        let error = settings.wrong_server(name, &format!("{name} is disabled in {}", server.file));
        return error.advise(format!("remove {} from {}", server.switch, server.path));
    }
    let error = settings.wrong_server(name, &format!("there are no tools named “{name}”"));
    if configured.is_empty() {
        return error.advise(advice_to_add_tools(settings.file.as_deref()));
    }
    let servers = configured.iter();
    let names: Vec<&str> = servers.map(|server| server.name.as_str()).collect();
    let short = short_name(name);
    // The name in a file of other programs may be longer.
    let is_longer = names.contains(&short.as_str());
    let given = if is_longer { &short } else { name };
    let there_are = names.join(", ");
    let mut known = Vec::from_iter(names.iter().map(|server| (*server).to_owned()));
    // A single hyphen, dot or underscore makes a tool look like a server.
    known.extend(configured.iter().flat_map(command_names));
    let meant = did_you_mean(given, known);
    let file = settings.file.as_deref();
    let adds = if settings.values.mcp.is_none() {
        advice_to_add_tools(file)
    } else {
        advice_to_add("tools", file)
    };
    error.advise(format!("{meant}there are {there_are}; {adds}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Arguments;
    use crate::output::{Spinner, Terminal, Verbosity};
    use crate::settings::Environment;
    use crate::text::table::rows;

    /// Prepares a section, and returns what the model and the user get of a text.
    fn redacted(section: &str, text: &str) -> [String; 2] {
        let home = tempfile::tempdir().expect("a directory");
        let file = home.path().join("config.toml");
        let section = section.replace("; ", "\n");
        fs_err::write(&file, format!("[tools.shop]\n{section}\n")).expect("a file");
        let environment = Environment::new(&[
            ("HOME", &home.path().to_string_lossy()),
            ("PATH", "/usr/bin:/bin"),
            ("ALL_PROXY", "http://me:proxy-secret@proxy.example:3128"),
            ("SHOP_TOKEN", "shop-token-1"),
            ("TEAM", "warehouse"),
        ]);
        let loaded = Settings::load(&Arguments::default(), &environment, &file);
        let settings = loaded.expect("settings");
        let secrets = ToolSecrets::default();
        let mut preparation = Preparation {
            selection: None,
            settings: &settings,
            notes: &Notes::new(Verbosity::Errors, Spinner::default(), Terminal::default()),
            groups: &ProcessGroups::default(),
            secrets: &secrets,
            scratch_places: ScratchPlaces::new(None, None),
        };
        let prepared = preparation.prepare_all().expect("a server");
        assert_eq!(prepared.len(), 1, "{section}");
        [
            secrets.redact_for_model(text),
            secrets.redact_for_user(text),
        ]
    }

    #[test]
    fn the_model_gets_no_key_of_a_section_or_a_proxy_and_the_user_no_header_or_variable_either() {
        // Of a section, what a tool says, what the model gets of that, and what the user.
        let table = r#"
            url = "http://shop.example/mcp" | proxy-secret | [redacted] | [redacted]
            url = "http://shop.example/mcp" | bWU6cHJveHktc2VjcmV0 | [redacted] | [redacted]
            url = "http://shop.example/mcp" | shop-token-1 | shop-token-1 | shop-token-1
            url = "http://shop.example/mcp"; key_env = "SHOP_TOKEN" | shop-token-1 | [redacted] | [redacted]
            url = "http://shop.example/mcp"; headers = { x-api-key = "open-sesame" } | open-sesame | [redacted] | [redacted]
            url = "http://shop.example/mcp"; headers = { x-team = "warehouse" } | warehouse | warehouse | [redacted]
            url = "http://shop.example/mcp"; headers = { x-gateway = "id=1 ${SHOP_TOKEN}" } | shop-token-1 | [redacted] | [redacted]
            url = "http://shop.example/mcp"; headers = { x-team = "${TEAM}" } | warehouse | warehouse | [redacted]
            url = "http://me:pass-word@shop.example/mcp" | pass-word | [redacted] | [redacted]
            url = "http://shop.example/mcp?api_key=open-sesame" | open-sesame | [redacted] | [redacted]
            command = ["sh"] | proxy-secret | [redacted] | [redacted]
            command = ["sh"] | shop-token-1 | shop-token-1 | shop-token-1
            command = ["sh"]; env_from = ["SHOP_TOKEN"] | shop-token-1 | [redacted] | [redacted]
            command = ["sh"]; env = { TEAM = "warehouse" } | warehouse | warehouse | [redacted]
            [tools.shop.sql]; run = ["sh"]; env_from = ["SHOP_*"] | shop-token-1 | [redacted] | [redacted]
        "#;
        for [section, text, model, user] in rows(table) {
            assert_eq!(redacted(section, text), [model, user], "{section}: {text}");
        }
    }
}
