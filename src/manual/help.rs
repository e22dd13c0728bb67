//! The two helps, short and long, made from the tables of options, settings and providers.

use super::template;
use crate::flags::{Effect, FLAGS, Flag};
use crate::provider::table::{DIALECTS, PROVIDERS};
use crate::settings::table::SETTINGS;

/// How q is called: a form and its meaning on each line, the last with a line end.
pub(crate) const SYNOPSIS: &str = "\
q [OPTIONS] WORDS…              a new conversation
q -f [OPTIONS] WORDS…           follows up
COMMAND | q [OPTIONS] [WORDS…]  asks about what COMMAND prints
";

const EXAMPLES: &str = r#"
EXAMPLES
  q "explain git rebase"
  q -f "what about interactive mode?"
  journalctl -b -p err | q "what failed, and why?"
  git commit -em "$(git diff --staged | q --no-save "a commit message")"
  q -x "a shell script that renames *.jpeg to *.jpg" >rename.sh
  q -a error.png -a main.rs "what went wrong?"
  q --schema 'city, population int' "France's largest city" | jq .population
  q -t db "which customers have not paid?"
  q --list rebase
"#;

/// The width that the texts are wrapped to.
const WIDTH: usize = 80;

/// Usage and options, a line each.
pub(crate) fn short() -> String {
    let names: Vec<String> = FLAGS.iter().map(names).collect();
    let width = names.iter().map(String::len).max().unwrap_or_default();
    let mut text = format!("{SYNOPSIS}\nOptions come before the question; -- ends them.\n");
    for (flag, names) in FLAGS.iter().zip(&names) {
        text.push_str(&format!("  {names:width$}  {}\n", flag.help));
    }
    text
}

/// The dialects as values of `api`: the usual one, and the others in a comment.
pub(super) fn dialects() -> String {
    let names: Vec<String> = DIALECTS.iter().map(|dialect| format!("\"{}\"", dialect.name)).collect();
    names.split_first().map_or_else(String::new, |(usual, others)| format!("{usual}        # or {}", others.join(", ")))
}

/// Everything.
pub(crate) fn long() -> String {
    let mut text = String::from(
        "q asks a language model one question from the shell, prints the answer, and\n\
         remembers the conversation, so that q -f can follow up.\n\n",
    );
    text.push_str(SYNOPSIS);
    text.push_str(EXAMPLES);
    text.push_str("\nOPTIONS\n");
    text.push_str("  They come before the question; -- ends them.\n");
    for flag in FLAGS {
        text.push_str(&format!("\n  {}\n{}", names(flag), wrapped(flag.doc, 6)));
    }
    text.push_str(&format!(
        "\nTHE QUESTION\n{}",
        wrapped(
            "The words, joined by spaces; or standard input, where it is not a terminal; or both: then the input comes \
             first, between <context> and </context>, and the words after it. Files that -a names come before both, each \
             between <file name=\"NAME\"> and </file>. Input and text files may have 10,000,000 bytes together.",
            2
        )
    ));
    text.push_str(&format!(
        "\nSETTINGS\n{}\n",
        wrapped(
            "Lowest to highest: the default, the key in $XDG_CONFIG_HOME/q/config.toml (else ~/.config/q/config.toml), the \
             variable, the option. Durations are a whole number and s, m, h or d, or never.",
            2
        )
    ));
    let width = SETTINGS.iter().map(|row| row.key.len()).max().unwrap_or_default();
    for row in SETTINGS {
        let default = row.default.map_or_else(String::new, |default| format!(" ({default})"));
        let line = format!("{:width$}  {:15} {}{default}", row.key, row.variable, row.doc);
        text.push_str(&hanging(&line, 2, width + 20));
    }
    text.push_str(&format!(
        "\n{}\n    [providers.work]\n    api      = {}\n    \
         base_url = \"https://llm.corp.example/v1\"\n    key_env  = \"WORK_KEY\"\n    model    = \"…\"\n    \
         headers  = {{ x-team = \"infra\" }}\n    options  = {{ temperature = 0 }}\n",
        wrapped("Sections of the file add providers, any number, or change the built-in ones:", 2),
        dialects()
    ));
    text.push_str(&format!(
        "\nPROVIDERS\n{}\n",
        wrapped(
            "Where none is named: the first with its key set, those of the file before these; else the first local server \
             that answers. NAME_BASE_URL moves a provider; OLLAMA_HOST is read as Ollama reads it. Proxies are taken from \
             HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, certificates from the system, or from SSL_CERT_FILE and \
             SSL_CERT_DIR.",
            2
        )
    ));
    let width = PROVIDERS.iter().map(|row| row.name.len()).max().unwrap_or_default();
    for row in PROVIDERS {
        let key = if row.key_variables.is_empty() { "no key".to_owned() } else { row.key_variables.join(", ") };
        let model = row.model.unwrap_or("the first that it lists");
        text.push_str(&format!("  {:width$}  {key:30}  {model}\n  {:width$}  {}\n", row.name, "", row.base_url));
    }
    text.push_str(&format!(
        "\nTOOLS\n{}\n    [tools.db]\n    command  = [\"uvx\", \"mcp-server-sqlite\", \"--db-path\", \"/home/me/shop.db\"]\n    \
         env      = {{ LOG_LEVEL = \"error\" }}    # added to its environment\n    \
         env_from = [\"SHOP_TOKEN\"]            # variables of yours that it gets too\n    \
         cwd      = \"/home/me/shop\"           # \".\" is where q was started; else home\n    \
         only     = [\"read_query\", \"list_*\"]  # the tools that are offered at all\n    \
         allow    = [\"list_*\"]                # those that run without asking\n    \
         timeout  = \"60s\"                     # without answer or progress of a call\n    \
         start    = \"30s\"                     # until the tools are listed\n\n    \
         [tools.search]\n    \
         url      = \"https://mcp.example.com/mcp\"   # streamable HTTP\n    \
         headers  = {{ x-team = \"infra\" }}            # sent with every request\n    \
         key_env  = \"SEARCH_KEY\"                    # or key_cmd; a bearer token\n    \
         allow    = [\"*\"]                           # also: only, timeout, start\n\n{}",
        wrapped(
            "A section of the file names a tool server, a program or an address that speaks the Model Context Protocol; -t \
             lets the model call its tools:",
            2
        ),
        wrapped(
            "If a program says that a tool only reads, and reaches nothing outside, the tool runs at once. Any other call asks \
             on the terminal, unless allow or --yes covers it, and is refused where nobody can be asked, or its arguments do not fit the screen. Calls and results \
             are kept with the answer. q cannot sign in by OAuth; for a server that needs it, use command = [\"npx\", \
             \"mcp-remote\", \"URL\"] in place of url.",
            2
        )
    ));
    text.push_str(&format!(
        "\nCONVERSATIONS\n{}",
        wrapped(
            "They are kept in $XDG_STATE_HOME/q/sessions (else ~/.local/state/q/sessions), for you alone: one file each, \
             session_YYYYMMDDHHMMSSmmm.json or NAME.json; current.json is a link to the one that -f continues. Those without \
             a name stay for 30 days after their last use. Answers that break off are kept too, and marked. With Q_SESSION=NAME there is another current conversation, such as one for each terminal.",
            2
        )
    ));
    text.push_str(
        "\nEXIT STATUS\n  0              answered, or the action done\n  1              the provider, the network or a file failed; nothing to show; no\n                 \
         code block; not the shape of --schema\n  \
         2              wrong usage or configuration; no request was sent\n  \
         3              answered, but the answer is incomplete\n  \
         129, 130, 143  ended by SIGHUP, SIGINT, SIGTERM\n\n\
         BUGS\n  Report them in the issue tracker of the repository that q came from, with what\n  \
         q --status and q -v print; neither shows a key.\n",
    );
    text
}

/// `-f, --follow`, `-m, --model ID`.
pub(super) fn names(flag: &Flag) -> String {
    let value = match flag.effect {
        Effect::Value { name, .. } => format!(" {name}"),
        Effect::Mode(_) | Effect::Switch(_) => String::new(),
    };
    match (flag.short, flag.long) {
        (Some(short), Some(long)) => format!("-{short}, --{long}{value}"),
        (Some(short), None) => format!("-{short}{value}"),
        (None, long) => format!("    --{}{value}", long.unwrap_or_default()),
    }
}

fn wrapped(text: &str, indent: usize) -> String {
    hanging(text, indent, 0)
}

/// Wraps a text; lines after the first are indented further.
fn hanging(text: &str, indent: usize, further: usize) -> String {
    let (first, rest) = (" ".repeat(indent), " ".repeat(indent + further));
    let lines = template::wrap(text, WIDTH - first.len(), WIDTH - rest.len());
    let line = |(index, line): (usize, &String)| format!("{}{line}\n", if index == 0 { &first } else { &rest });
    lines.iter().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_setting_and_provider_is_reported_and_no_line_is_too_long() {
        let (short, long) = (short(), long());
        for flag in FLAGS {
            assert!(short.contains(&names(flag)) && long.contains(&names(flag)), "{}", flag.name());
        }
        for row in SETTINGS {
            assert!(long.contains(row.variable), "{}", row.key);
        }
        for row in PROVIDERS {
            assert!(long.contains(row.base_url), "{}", row.name);
        }
        for line in short.lines().chain(long.lines()) {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }
}
