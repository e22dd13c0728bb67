//! What other programs call the options and settings of q (pure).

use super::nearest::nearest;

/// Where a name stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum WordPlace {
    CommandLine,
    /// The top of the configuration file.
    Settings,
    /// The section of a provider, of a tool server, of a command as a tool, or of a role.
    Provider,
    Server,
    Command,
    Role,
}

use WordPlace::{CommandLine, Provider, Role, Server, Settings};

/// Words with blanks between them, and what somebody who writes them means.
const HABITS: &[(WordPlace, &str, &str)] = &[
    (CommandLine, "c continue resume follow-up", "-f"),
    (CommandLine, "image file", "-a"),
    (CommandLine, "format output", "-j"),
    (CommandLine, "code", "-x"),
    (CommandLine, "think thinking reasoning", "-e"),
    (CommandLine, "usage cost tokens", "-v"),
    (CommandLine, "temperature", "-o temperature=…"),
    (CommandLine, "search find grep", "--list WORDS"),
    (CommandLine, "branch fork", "--copy"),
    (CommandLine, "system-prompt", "-S"),
    (Settings, "default_provider", "provider"),
    (Settings, "default_model", "model"),
    (Settings, "system_prompt", "system"),
    (Settings, "key api_key", "key_env of a provider"),
    (Settings, "url base_url", "base_url of a provider"),
    (Provider, "key api_key", "key_env or key_cmd"),
    (Server, "key api_key", "key_env or key_cmd"),
    (Provider, "url", "base_url"),
    (Role, "system_prompt", "system"),
    (Role, "prompt", "system or question"),
];

/// Words of so many letters count only if they are spelt right.
const MAX_SHORT: usize = 5;

/// What was meant by a name that does not exist: one of `names`, or what a word of another program is called here.
pub fn meant(place: WordPlace, typed: &str, names: &[&str]) -> Option<String> {
    let typed = typed.to_lowercase();
    let mut candidates = Vec::new();
    for name in names {
        candidates.push((*name, *name));
    }
    for (where_used, words, answer) in HABITS {
        for word in words.split(' ') {
            // A short word with an error in it is another word.
            let is_clear = word == typed || word.len() > MAX_SHORT;
            if *where_used == place && is_clear {
                candidates.push((word, *answer));
            }
        }
    }
    let words = candidates.iter().map(|(word, _)| *word);
    let found = nearest(&typed, words)?;
    let (_, answer) = candidates.iter().find(|(word, _)| *word == found)?;
    Some((*answer).to_owned())
}
