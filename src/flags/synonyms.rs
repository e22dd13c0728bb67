//! Which option or setting of q is meant by a name that other programs have for it (pure).

use crate::text::nearest::nearest;

/// The place of a name.
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
    /// What a confined program may do.
    Confinement,
    /// The kind of a section, such as `tools` in `[tools.time]`.
    Section,
}

use WordPlace::{Command, CommandLine, Confinement, Provider, Role, Section, Server, Settings};

/// Words with blanks between them, and what somebody who writes them means. A word that begins with `_` is the end of one.
const HABITS: &[(WordPlace, &str, &str)] = &[
    (
        CommandLine,
        "c continue continue-last resume follow-up interactive interaction prompt-interactive repl",
        "-f",
    ),
    (
        CommandLine,
        "image images img picture file files attachment attachments at attachment-type fragment context-file",
        "-a",
    ),
    (
        CommandLine,
        "dir directory folder add-dir include include-directories all-files",
        "-a",
    ),
    // A picture for Codex, and the beginning of a chat for Gemini.
    (CommandLine, "i", "-a FILE, or -f"),
    (
        CommandLine,
        "format format-as output output-format json-mode json-output",
        "-j",
    ),
    (CommandLine, "output-file output-last-message", ">FILE"),
    (CommandLine, "no-color no-colour", "NO_COLOR=1"),
    (CommandLine, "log-file", "-v … 2>FILE"),
    (
        CommandLine,
        "raw raw-output plain no-markdown no-md no-style no-highlight",
        "Q_STYLE=false",
    ),
    (
        CommandLine,
        "markdown md render color colour style highlight",
        "Q_STYLE=true or false",
    ),
    (
        CommandLine,
        "no-wrap nowordwrap no-word-wrap",
        "Q_WRAP=false",
    ),
    (CommandLine, "wrap word-wrap", "Q_WRAP=true or false"),
    (CommandLine, "jsonl ndjson json-lines", "--lines"),
    (
        CommandLine,
        "json-schema output-schema schema-file response-format",
        "--schema",
    ),
    (
        CommandLine,
        "schema-multi",
        "--schema '[FIELD, …]', for a list of objects",
    ),
    (CommandLine, "code shell bash execute xl extract-last", "-x"),
    (
        CommandLine,
        "think thinking thinking-level reasoning reasoning-effort variant",
        "-e",
    ),
    (
        CommandLine,
        "u usage cost tokens d debug trace stats timing td tools-debug vv",
        "-v",
    ),
    (CommandLine, "silent", "-q"),
    (CommandLine, "preview", "--dry-run"),
    // A tool for llm, and the temperature for others.
    (CommandLine, "t", "-t NAME, or -o temperature=…"),
    (CommandLine, "temperature temp", "-o temperature=…"),
    (CommandLine, "top-p topp", "-o top_p=…"),
    (CommandLine, "top-k topk", "-o top_k=…"),
    (CommandLine, "min-p", "-o min_p=…"),
    (CommandLine, "frequency-penalty", "-o frequency_penalty=…"),
    (CommandLine, "presence-penalty", "-o presence_penalty=…"),
    (CommandLine, "keepalive keep-alive", "-o keep_alive=…"),
    (CommandLine, "seed", "-o seed=…"),
    (CommandLine, "stop", "-o stop=…"),
    (CommandLine, "param params data", "-o KEY=VALUE"),
    (
        CommandLine,
        "max-tokens max-output-tokens num-predict n-predict",
        "Q_MAX_TOKENS=…",
    ),
    (CommandLine, "timeout max-time", "Q_TIMEOUT=…"),
    (CommandLine, "retries max-retries", "Q_RETRIES=…"),
    (
        CommandLine,
        "rounds max-rounds max-turns max-steps chain-limit cl max-tool-repetitions",
        "Q_ROUNDS=…",
    ),
    (CommandLine, "max-history", "Q_MAX_HISTORY=…"),
    (CommandLine, "pairs", "Q_PAIRS=…"),
    (CommandLine, "expire", "Q_EXPIRE=…"),
    (CommandLine, "keep delete-older-than", "Q_KEEP=…"),
    (CommandLine, "answers cache-dir", "Q_ANSWERS=…"),
    (CommandLine, "mismatch", "Q_MISMATCH=continue, or -ff"),
    (CommandLine, "config-dir config-file", "XDG_CONFIG_HOME=…"),
    (
        CommandLine,
        "session-dir state-dir data-dir",
        "XDG_STATE_HOME=…",
    ),
    (CommandLine, "cd cwd working-dir", "cd DIRECTORY; q"),
    (CommandLine, "proxy http-proxy", "HTTPS_PROXY=…"),
    (CommandLine, "cacert ca-cert insecure", "SSL_CERT_FILE=…"),
    (
        CommandLine,
        "url base-url api-base api-url endpoint host",
        "NAME_BASE_URL=…, such as OPENAI_BASE_URL",
    ),
    (
        CommandLine,
        "header headers",
        "headers of a provider in config.toml",
    ),
    (CommandLine, "search find grep", "--list WORDS"),
    (CommandLine, "web-search internet online browse", "-w"),
    (
        CommandLine,
        "l log logs list-chats list-sessions list-conversations sessions chats conversations",
        "--list",
    ),
    (CommandLine, "show show-chat export", "--history"),
    (CommandLine, "show-last last-answer", "--last"),
    (
        CommandLine,
        "chat cid conversation conversation-id session-id",
        "-s NAME",
    ),
    (
        CommandLine,
        "no-log no-history no-session no-session-persistence ephemeral incognito",
        "--no-save",
    ),
    (
        CommandLine,
        "template pattern agent profile preset persona assistant",
        "-r",
    ),
    (
        CommandLine,
        "api backend vendor service local-provider",
        "-p",
    ),
    (
        CommandLine,
        "oss local offline",
        "-p ollama, or another local server",
    ),
    (CommandLine, "ask-model", "-m"),
    (
        CommandLine,
        "list-models model-list sync-models",
        "--models",
    ),
    (
        CommandLine,
        "config settings show-role list-roles roles list-agents list-templates list-providers providers info dirs doctor",
        "--status",
    ),
    (
        CommandLine,
        "list-mcp mcp-list mcp-list-tools",
        "--list-tools",
    ),
    (
        CommandLine,
        "mcp mcp-config mcp-server mcp-servers",
        "mcp = \"/path/mcp.json\" in config.toml, or Q_MCP=…",
    ),
    (CommandLine, "function functions", "-t"),
    (
        CommandLine,
        "allowedtools allowed-tools allow-tool available-tools",
        "-t, and allow of a tool in config.toml",
    ),
    (
        CommandLine,
        "disallowedtools disallowed-tools deny-tool no-tools mcp-disable",
        "-t none",
    ),
    (
        CommandLine,
        "y yolo full-auto auto-approve assume-yes allow-all-tools dangerously-skip-permissions \
         dangerously-bypass-approvals-and-sandbox",
        "--yes",
    ),
    (
        CommandLine,
        "permission-mode approval-mode ask-for-approval",
        "--yes, or allow of a tool in config.toml",
    ),
    (CommandLine, "sandbox", "confine of a tool in config.toml"),
    (CommandLine, "no-input", "-n"),
    (
        CommandLine,
        "completion completions generate-completion install-completion",
        "--generate KIND",
    ),
    (CommandLine, "man manual examples", "--help"),
    (CommandLine, "regenerate redo retry", "--again"),
    (CommandLine, "no-cache", "--again, or no --cached"),
    (CommandLine, "cache", "--cached"),
    // What deletes is an answer to this very word alone.
    (CommandLine, "delete", "--clear"),
    (
        CommandLine,
        "rename mv",
        "--copy NEW -s OLD, then --clear -s OLD",
    ),
    (CommandLine, "branch fork fork-session", "--copy"),
    (
        CommandLine,
        "name title",
        "-s NAME, or --copy NAME for a conversation that is there",
    ),
    (
        CommandLine,
        "system-prompt append-system-prompt instructions",
        "-S",
    ),
    (
        CommandLine,
        "system-file system-prompt-file append-system-prompt-file system-fragment sf",
        "-S \"$(cat FILE)\"",
    ),
    (Settings, "default_provider model_provider", "provider"),
    (Settings, "default_model", "model"),
    (Settings, "system_prompt instructions", "system"),
    (
        Settings,
        "reasoning think thinking _reasoning_effort",
        "effort",
    ),
    (Settings, "_output_tokens _completion_tokens", "max_tokens"),
    (Settings, "max_messages history_size", "messages"),
    (Settings, "max_steps max_turns", "rounds"),
    (Settings, "request_timeout", "timeout"),
    (Settings, "_max_retries", "retries"),
    (Settings, "word_wrap", "wrap"),
    (Settings, "color colour theme highlight", "style"),
    (Settings, "web_search", "web of a role"),
    (
        Settings,
        "key token _api_key _auth_token",
        "key_env of a provider",
    ),
    (Settings, "url api_base _base_url", "base_url of a provider"),
    (Settings, "headers http_headers", "headers of a provider"),
    (Settings, SAMPLING, "options of a provider"),
    (Settings, "mcp_servers mcpservers", "tools or mcp"),
    (Settings, "profile", "roles"),
    (
        Provider,
        "key token env_key _api_key _auth_token _key_env",
        "key_env or key_cmd",
    ),
    (Provider, "url endpoint api_base _base_url", "base_url"),
    (Provider, "type api_type wire_api", "api"),
    (Provider, "default_model", "model"),
    (Provider, "http_headers extra_headers", "headers"),
    (Provider, "body extra_body", "options"),
    (Provider, SAMPLING, "options"),
    (Server, "key env_key _api_key", "key_env or key_cmd"),
    (Server, "bearer_token_env_var", "key_env"),
    (
        Server,
        "args arguments",
        "command, which holds the arguments, too",
    ),
    (Server, "server program cmd exec executable", "command"),
    (Server, "serverurl httpurl endpoint", "url"),
    (Server, "http_headers", "headers"),
    (Server, "env_vars", "env_from"),
    (Server, "tools enabled_tools includetools", "only"),
    (Server, "autoapprove alwaysallow trust", "allow"),
    (Server, "startup_timeout_sec startup_timeout_ms", "start"),
    (Server, "tool_timeout_sec", "timeout"),
    (Command, "command cmd args program exec executable", "run"),
    (Command, "description", "about"),
    (Command, "parameters arguments schema input_schema", "input"),
    (Command, "readonly read_only", "reads"),
    (Server, "sandbox confined", "confine"),
    (Command, "sandbox confined", "confine"),
    (
        Confinement,
        "ro reads readonly read_only paths files",
        "read",
    ),
    (Confinement, "rw writes", "write"),
    (Confinement, "net internet", "network"),
    (Role, "system_prompt instructions", "system"),
    (Role, "prompt", "system or question"),
    (Role, "prompt_file", "system_file"),
    (Role, "reasoning think thinking _reasoning_effort", "effort"),
    (Role, "web_search", "web"),
    (Role, SAMPLING, "options"),
    (Section, "model_providers clients apis", "providers"),
    (Section, "mcp servers mcp_servers mcpservers", "tools"),
    (Section, "profile profiles agents", "roles"),
];

/// The commands that other programs have as words, separated by commas, and what is here in their place. None of these deletes, and
/// none is about the conversation before, because the words begin another one.
const SUBCOMMANDS: &[(&str, &str)] = &[
    (
        "models, list-models, models list, list models",
        "q --models lists the models",
    ),
    (
        "list, ls, log, logs, logs list, sessions, chats, conversations, threads, history, list sessions, list chats",
        "q --list lists the conversations",
    ),
    (
        "chat, interactive, repl",
        "q -f QUESTION continues this conversation",
    ),
    ("help, man", "q --help prints the manual"),
    ("version", "q --version prints the version"),
    (
        "config, settings, status, info, providers, config list, config show, list providers",
        "q --status shows the settings",
    ),
    (
        "login, auth, keys, setup, init, configure, auth login, keys set, keys list, config set",
        "q --status names the variables of the keys",
    ),
    (
        "roles, templates, templates list, list roles",
        "q --status lists the roles",
    ),
    (
        "tools, mcp, tools list, mcp list, list tools",
        "q --list-tools lists the tools",
    ),
];

/// Returns what is here in the place of a command of another program, if these words are one to the letter. After two words one
/// more may say of what, as in `keys set openai`.
pub fn subcommand(words: &[&str]) -> Option<&'static str> {
    let command = match words {
        [first, second, _] => format!("{first} {second}"),
        words => words.join(" "),
    };
    let mut table = SUBCOMMANDS.iter();
    let found = table.find(|(commands, _)| {
        let is_listed = |listed| listed == command;
        // A word with blanks in it was quoted, as a question is.
        words.iter().all(|word| !word.contains(' ')) && commands.split(", ").any(is_listed)
    });
    found.map(|(_, here)| *here)
}

/// Options of other programs that are no option here, with blanks between them, and what to do instead.
const INSTEAD: &[(&str, &str)] = &[
    (
        "print prompt query question text",
        "write the question as words, without an option",
    ),
    (
        "explain describe-shell",
        "write into the question what to explain",
    ),
    (
        "edit editor",
        "write the question in an editor: vipe </dev/null | q",
    ),
    (
        "stdin input pipe",
        "pipe the input into q, or attach a file with -a",
    ),
    (
        "new new-chat new-session reset empty-session clear-history",
        "ask without -f to start a new conversation",
    ),
    (
        "save-session",
        "leave it out, because q saves every conversation; -s NAME gives one a name",
    ),
    (
        "save create-role save-template",
        "write a role into a file roles/NAME.md next to config.toml, for -r NAME",
    ),
    (
        "key keys api-key login auth token",
        "export the variable of the provider's key, which --status names, or set key_cmd in config.toml",
    ),
    (
        "hide-reasoning hidethinking hide-thinking",
        "leave it out, because only -v shows the reasoning",
    ),
    (
        "tools-approve ta",
        "leave it out, because q asks before a tool call unless it is allowed",
    ),
    (
        "stream streaming",
        "leave it out, because q streams the answer unless --no-stream is given",
    ),
    (
        "no-interaction no-interactive non-interactive headless",
        "leave it out, because q asks one question and exits",
    ),
    (
        "skip-git-repo-check",
        "leave it out, because q needs no repository",
    ),
    (
        "install-integration",
        "bind a key of the shell: eval \"$(q --generate keys-bash)\"",
    ),
    (
        "rag rebuild-rag",
        "attach files with -a, or let the model search them with a tool (-t)",
    ),
    (
        "clear-cache",
        "delete files in the directory of cached answers, which --status names",
    ),
];

/// What people call providers by the names of their models or of their owners.
const OTHER_PROVIDER_NAMES: &[(&str, &str)] = &[
    ("claude", "anthropic"),
    ("gpt", "openai"),
    ("chatgpt", "openai"),
    ("google", "gemini"),
    ("grok", "xai"),
    ("kimi", "moonshot"),
    ("glm", "zai"),
    ("zhipu", "zai"),
    ("llama.cpp", "llamacpp"),
];

/// Fields of a request that other programs have as settings.
const SAMPLING: &str =
    "temperature temp top_p top_k topp topk seed stop frequency_penalty presence_penalty";

/// Words of up to this many letters count only if they are spelt right.
const MAX_SHORT: usize = 5;

/// Returns what a word of another program is called here, if it is one to the letter.
pub fn habit(place: WordPlace, given: &str) -> Option<&'static str> {
    // `-` and `_` separate words in the same way.
    let given = given.to_lowercase().replace('-', "_");
    let is_given = |word: &str| {
        let is_end = word.starts_with('_') && given.ends_with(word);
        is_end || given == word.replace('-', "_")
    };
    for (where_used, words, answer) in HABITS {
        if *where_used == place && words.split(' ').any(is_given) {
            return Some(answer);
        }
    }
    None
}

/// Returns what to do instead of giving an option of another program, which is no option here.
pub fn instead_of_option(given: &str) -> Option<&'static str> {
    let given = given.to_lowercase().replace('_', "-");
    let mut known = INSTEAD.iter();
    let found = known.find(|(words, _)| words.split(' ').any(|word| word == given));
    found.map(|(_, advice)| *advice)
}

/// Returns the provider that has this other name.
pub fn provider(given: &str) -> Option<&'static str> {
    let given = given.to_lowercase();
    let mut known = OTHER_PROVIDER_NAMES.iter();
    let found = known.find(|(other, _)| *other == given);
    found.map(|(_, provider)| *provider)
}

/// Returns what was meant by a name that does not exist: one of `names`, or what a word of another program is called here.
pub fn meant(place: WordPlace, given: &str, names: &[&str]) -> Option<String> {
    if let Some(answer) = habit(place, given) {
        return Some(answer.to_owned());
    }
    let mut candidates = Vec::new();
    for name in names {
        candidates.push((*name, *name));
    }
    for (where_used, words, answer) in HABITS {
        for word in words.split(' ') {
            // A short word with an error in it is another word.
            if *where_used == place && word.len() > MAX_SHORT {
                candidates.push((word, *answer));
            }
        }
    }
    let words = candidates.iter().map(|(word, _)| *word);
    let found = nearest(given, words)?;
    let (_, answer) = candidates.iter().find(|(word, _)| *word == found)?;
    Some((*answer).to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::table::{FLAGS, Flag};
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn a_command_of_another_program_is_answered_with_an_option_that_deletes_nothing() {
        for [words, option] in rows(
            "
            models           | --models
            list models      | --models
            logs             | --list
            history          | --list
            retry            | -
            continue         | -
            help             | --help
            version          | --version
            config           | --status
            login            | --status
            keys set openai  | --status
            chat             | -f
            tools            | --list-tools
            Models           | -
            models of cars   | -
            clear            | -
            keys             | --status
            keys of a piano  | -
            list all primes  | -",
        ) {
            let words = Vec::from_iter(words.split(' '));
            let found = subcommand(&words).map(|here| {
                let option = here.split(' ').nth(1).expect("an option");
                option.to_owned()
            });
            assert_eq!(found.unwrap_or_default(), option, "{words:?}");
        }
        assert_eq!(subcommand(&["list models"]), None);
        for (_, here) in SUBCOMMANDS {
            let is_meant = |flag: &&Flag| here.contains(flag.name());
            let flag = FLAGS.iter().find(is_meant);
            assert!(flag.is_none_or(|flag| !flag.deletes()), "{here}");
        }
    }

    #[test]
    fn every_option_of_another_program_is_no_option_here_and_has_one_answer() {
        let own = Vec::from_iter(FLAGS.iter().flat_map(Flag::spellings));
        let mut seen = std::collections::HashSet::new();
        let habits = HABITS
            .iter()
            .filter(|(place, _, _)| *place == CommandLine)
            .map(|(_, words, _)| *words);
        for word in habits
            .chain(INSTEAD.iter().map(|(words, _)| *words))
            .flat_map(|words| words.split(' '))
        {
            let is_own = word.len() > 1 && own.contains(&&*format!("--{word}"));
            assert!(!is_own, "{word} is an option");
            assert!(seen.insert(word), "{word} stands twice");
        }
    }

    #[test]
    fn every_option_that_is_named_as_an_answer_exists() {
        let own = Vec::from_iter(FLAGS.iter().flat_map(Flag::spellings));
        let answers = HABITS.iter().map(|(_, _, answer)| *answer);
        for answer in answers.chain(INSTEAD.iter().map(|(_, advice)| *advice)) {
            let words = answer.split([' ', ',', ';', ')', '(']);
            for option in words.filter(|word| word.starts_with('-')) {
                let is_own = own.contains(&option) || option == "-ff";
                assert!(is_own, "{answer}: {option}");
            }
        }
    }

    #[test]
    fn a_setting_or_option_of_another_program_is_answered_with_the_one_of_q() {
        for [place, given, expected] in rows(
            "
            top  | OPENAI_API_KEY | key_env of a provider
            top  | api_key | key_env of a provider
            top  | GROQ_BASE_URL | base_url of a provider
            top  | temperature | options of a provider
            top  | temprature | options of a provider
            top  | model_reasoning_effort | effort
            top  | default-model | model
            top  | timout | timeout
            top  | max_token | -
            top  | temporary | -
            line | system-prompt | -S
            line | contine | -f
            line | follow-up | -f
            line | continue | -f
            line | c | -f
            line | image | -a
            line | file | -a
            line | format | -j
            line | output | -j
            line | code | -x
            line | think | -e
            line | reasoning | -e
            line | usage | -v
            line | temperature | -o temperature=…
            line | search | --list WORDS
            line | logs | --list
            line | branch | --copy
            line | fork | --copy
            line | template | -r
            line | chat | -s NAME
            line | delete | --clear
            line | rename | --copy NEW -s OLD, then --clear -s OLD
            line | max_tokens | Q_MAX_TOKENS=…
            line | allowedTools | -t, and allow of a tool in config.toml
            line | no-cache | --again, or no --cached
            line | cod | -
            line | T | -t NAME, or -o temperature=…
            line | u | -v
            line | at | -a
            line | schema-multi | --schema '[FIELD, …]', for a list of objects
            line | chain-limit | Q_ROUNDS=…
            line | show-role | --status
            line | show-last | --last
            line | continue-last | -f
            line | topp | -o top_p=…
            line | api | -p
            line | allow-all-tools | --yes
            line | all_files | -a
            line | reset-all | -",
        ) {
            let place = if place == "top" {
                Settings
            } else {
                CommandLine
            };
            let found = meant(place, given, &["timeout", "model"]);
            assert_eq!(found.as_deref().unwrap_or_default(), expected, "{given}");
        }
    }
}
