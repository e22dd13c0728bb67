//! The names that completions offer, one a line. Shells show them on a terminal, so they are escaped in a pipe, too.

use crate::context::Context;
use crate::error::Error;
use crate::flags::{Arguments, NO_TOOLS, NameList};
use crate::output::print_exactly;
use crate::session;
use crate::session::rules::FileKind;
use crate::session::title::title_of;
use crate::settings::{ServerKind, Settings, ToolServer, advice_to_add, advice_to_add_tools};
use crate::text::escape::escape;

/// Prints the names of a list.
pub fn print(list: NameList, arguments: &Arguments, context: &Context) -> Result<(), Error> {
    // What is wrong is perhaps being corrected with these names.
    let settings = || context.load_settings_leniently(arguments).0;
    let lines = match list {
        NameList::Conversations => conversations(context, &[FileKind::Named])?,
        NameList::EveryConversation => conversations(
            context,
            &[FileKind::Named, FileKind::AutoNamed, FileKind::Backup],
        )?,
        NameList::Providers => plain_lines(provider_names(&settings())),
        NameList::Roles => plain_lines(settings().role_names()),
        NameList::Tools => plain_lines(tool_names(&settings())),
    };
    print_exactly(&lines, context.notes.terminal())
}

/// Returns the error for an option that lacks its value, which is one of these names.
pub fn lacking(lack: &str, list: NameList, arguments: &Arguments, context: &Context) -> Error {
    let settings = context.load_settings_leniently(arguments).0;
    let file = settings.file.as_deref();
    let (kind, names) = match list {
        NameList::Providers => ("providers", provider_names(&settings)),
        NameList::Roles => ("roles", settings.role_names()),
        NameList::Tools => ("tools", server_names(&settings)),
        NameList::Conversations | NameList::EveryConversation => {
            return Error::usage(lack).advise("run q --list to list the conversations");
        }
    };
    let there = match &*names.join(", ") {
        "" => format!("there are no {kind}"),
        names => format!("choose one of {names}"),
    };
    let section = match list {
        NameList::Tools => advice_to_add_tools(file),
        _ => advice_to_add(kind, file),
    };
    Error::usage(lack).advise(format!("{there}; {section}"))
}

/// Returns the conversations of these kinds, newest first. The first question follows a name, after a tab. No shell would have to
/// quote their names.
fn conversations(context: &Context, kinds: &[FileKind]) -> Result<String, Error> {
    let directory = context.directory()?;
    let terminal = context.notes.terminal();
    let mut lines = String::new();
    for file in directory.files(true).map_err(Error::file)? {
        // A file that was put aside, because it cannot be read, cannot be continued.
        let is_aside = file.path.extension().is_none_or(|ending| ending != "json");
        if is_aside || !kinds.contains(&directory.kind(&file.path)) {
            continue;
        }
        // One that cannot be read is offered without its question.
        let conversation = session::read(&file.path).ok().flatten();
        let question = conversation.as_ref().and_then(title_of);
        lines += &directory.id(&file.path);
        if let Some(question) = question {
            lines += &format!("\t{}", escape(&terminal.encoding.encode(&question)));
        }
        lines.push('\n');
    }
    Ok(lines)
}

/// Returns the names of the configuration, one a line, without those that a shell would have to quote.
fn plain_lines(names: Vec<String>) -> String {
    let mut lines = String::new();
    for name in names.iter().filter(|name| is_plain(name)) {
        lines += name;
        lines.push('\n');
    }
    lines
}

fn provider_names(settings: &Settings) -> Vec<String> {
    let providers = settings.providers.iter();
    providers.map(|provider| provider.name.clone()).collect()
}

fn server_names(settings: &Settings) -> Vec<String> {
    let servers = servers(settings).into_iter();
    servers.map(|server| server.name).collect()
}

/// Returns the tool servers. If the file of other programs cannot be read, there are still those of the configuration.
fn servers(settings: &Settings) -> Vec<ToolServer> {
    let servers = settings.all_tool_servers();
    servers.unwrap_or_else(|_| settings.tool_servers_of_sections())
}

/// Returns the tool servers, and the tools that the configuration names.
fn tool_names(settings: &Settings) -> Vec<String> {
    let mut names = vec![NO_TOOLS.to_owned()];
    for server in servers(settings) {
        let mut tools = server.named_tools();
        if let ServerKind::Commands { commands, .. } = &server.kind {
            tools.extend(commands.iter().map(|command| command.name.clone()));
        }
        tools.sort();
        tools.dedup();
        let of_server = tools.iter().map(|tool| format!("{}__{tool}", server.name));
        names.extend([server.name.clone()].into_iter().chain(of_server));
    }
    names
}

/// Whether a shell takes a name as it is.
fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_no_shell_changes_are_offered() {
        for (name, expected) in [
            ("work", true),
            ("a.b_c-1~2", true),
            ("", false),
            ("two words", false),
            ("größe", false),
            ("a$b", false),
            ("it's", false),
            ("a*", false),
            ("a\u{1b}b", false),
        ] {
            assert_eq!(is_plain(name), expected, "{name:?}");
        }
    }
}
