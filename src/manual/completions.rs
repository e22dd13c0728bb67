//! Completions for bash, zsh and fish, made from the table of options.

use std::fmt::Write;

use super::template;
use crate::flags::{Completion, FLAGS, Flag, Value};
use crate::provider::table::PROVIDERS;

/// Prints the names of the providers that the configuration file adds, in any shell.
const SECTIONS: &str = r#"sed -n 's/^[[:space:]]*\[providers\."\{0,1\}\([A-Za-z0-9_-]*\)"\{0,1\}\].*/\1/p' "$config/q/config.toml" 2>/dev/null"#;

/// Prints the roles of the configuration file, and of the files beside it, in any shell.
const ROLES: &str = r#"sed -n 's/^[[:space:]]*\[roles\."\{0,1\}\([A-Za-z0-9_-]*\)"\{0,1\}\].*/\1/p' "$config/q/config.toml" 2>/dev/null; find -L "$config/q/roles" -maxdepth 2 -name '*.md' 2>/dev/null | sed -n 's|.*/q/roles/\([A-Za-z0-9_-]*\)\.md$|\1|p; s|.*/q/roles/\([A-Za-z0-9_-]*\)/system\.md$|\1|p'"#;

/// Keeps bash from offering files. The version on macOS is too old for it.
const NO_FILES: &str = "compopt +o default 2>/dev/null";

/// Prints the tool servers of the configuration file, and the tools that it names, in any shell.
const TOOLS: &str = r#"awk 'function say(name) { if (!seen[name]++) print name } /^[[:space:]]*\[/ { name = ""; if (match($0, /\[tools\.[a-z0-9-]+(\.[a-z0-9-]+)?\]/)) { split(substr($0, RSTART + 7, RLENGTH - 8), part, "."); say(name = part[1]); if (part[2] !~ /^(env|headers)?$/) say(name "__" part[2]) } } name != "" && /^[[:space:]]*(only|allow)[[:space:]]*=/ { rest = $0; while (match(rest, /"[^"*]*"/)) { say(name "__" substr(rest, RSTART + 1, RLENGTH - 2)); rest = substr(rest, RSTART + RLENGTH) } }' "$config/q/config.toml" 2>/dev/null"#;

/// A script with the parts that are common to the shells, and its own.
fn script(template: &str, own: &[(&str, &str)]) -> String {
    let common = [
        ("PROVIDERS", &*provider_names()),
        ("SECTIONS", SECTIONS),
        ("ROLES", ROLES),
        ("TOOLS", TOOLS),
    ];
    template::fill(template, &[&common, own].concat())
}

fn provider_names() -> String {
    PROVIDERS
        .iter()
        .map(|row| row.name)
        .collect::<Vec<_>>()
        .join(" ")
}

fn spellings(flag: &Flag) -> Vec<String> {
    let short = flag.short.map(|short| format!("-{short}"));
    short
        .into_iter()
        .chain(flag.long.map(|long| format!("--{long}")))
        .collect()
}

/// Extended regular expressions for a word whose last option takes a value: for short options, and for a long one.
fn valued() -> (String, String) {
    let (valued, switches): (Vec<&Flag>, Vec<&Flag>) =
        FLAGS.iter().partition(|flag| flag.value().is_some());
    let letters = |flags: &[&Flag]| {
        flags
            .iter()
            .filter_map(|flag| flag.short)
            .collect::<String>()
    };
    let long = valued
        .iter()
        .filter_map(|flag| flag.long)
        .collect::<Vec<_>>()
        .join("|");
    (
        format!("-[{}]*([{}])", letters(&switches), letters(&valued)),
        format!("--({long})"),
    )
}

/// For bash, with or without the package bash-completion.
pub(super) fn bash() -> String {
    let mut cases = String::new();
    for (flag, Value(_, completion, _)) in
        FLAGS.iter().filter_map(|flag| Some((flag, flag.value()?)))
    {
        // If nothing matches, bash offers files unless asked not to.
        let action = match completion {
            Completion::Conversations => "_q_conversations".to_owned(),
            // Bash offers files by itself.
            Completion::Files => ":".to_owned(),
            Completion::Nothing => NO_FILES.to_owned(),
            Completion::Providers => format!("_q_providers; {NO_FILES}"),
            Completion::Roles => format!("_q_roles; {NO_FILES}"),
            Completion::Tools => format!("_q_tools; {NO_FILES}"),
            Completion::Words(words) => format!("names=({}); {NO_FILES}", words.join(" ")),
        };
        let names = flag
            .short
            .map(String::from)
            .into_iter()
            .chain(flag.long.map(String::from))
            .collect::<Vec<_>>();
        let _ = writeln!(cases, "    {}) {action} ;;", names.join(" | "));
    }
    let (short, long) = valued();
    let options: Vec<String> = FLAGS.iter().flat_map(spellings).collect();
    let own = [
        ("SHORT", &*short),
        ("LONG", &long),
        ("CASES", &cases),
        ("OPTIONS", &options.join(" ")),
    ];
    script(include_str!("q.bash.in"), &own)
}

/// For zsh, as a function of its completion system.
pub(super) fn zsh() -> String {
    let mut specifications = String::new();
    for flag in FLAGS {
        let help = flag
            .help
            .replace('\'', "'\\''")
            .replace('[', "\\[")
            .replace(']', "\\]")
            .replace(':', "\\:");
        let value = match flag.value() {
            None => String::new(),
            Some(Value(name, completion, _)) => {
                let action = match completion {
                    Completion::Nothing => String::new(),
                    Completion::Providers => "_q_providers".to_owned(),
                    Completion::Roles => "_q_roles".to_owned(),
                    Completion::Tools => "_q_tools".to_owned(),
                    Completion::Conversations => "_q_conversations".to_owned(),
                    Completion::Files => "_files".to_owned(),
                    Completion::Words(words) => format!("({})", words.join(" ")),
                };
                format!(":{name}:{action}")
            }
        };
        let spelled = spellings(flag);
        // An option that may be repeated is offered again.
        let repeats = flag
            .value()
            .is_some_and(|Value(_, _, setter)| setter.repeats());
        let group = if repeats {
            "*".to_owned()
        } else {
            format!("({})", spelled.join(" "))
        };
        for spelling in &spelled {
            // A value may be glued to a short option, or follow a long one's equals sign.
            let glue = match (value.is_empty(), spelling.starts_with("--")) {
                (true, _) => "",
                (false, true) => "=",
                (false, false) => "+",
            };
            let _ = writeln!(
                specifications,
                "    '{group}{spelling}{glue}[{help}]{value}' \\"
            );
        }
    }
    script(
        include_str!("q.zsh.in"),
        &[("SPECIFICATIONS", &specifications)],
    )
}

/// For fish.
pub(super) fn fish() -> String {
    let mut lines = String::new();
    for flag in FLAGS {
        let mut line = String::from("complete -c q -n __q_options");
        if let Some(short) = flag.short {
            let _ = write!(line, " -s {short}");
        }
        if let Some(long) = flag.long {
            let _ = write!(line, " -l {long}");
        }
        let value = match flag.value().map(|Value(_, completion, _)| completion) {
            None => String::new(),
            Some(Completion::Nothing) => " -x".to_owned(),
            Some(Completion::Providers) => format!(" -x -a '{} (__q_providers)'", provider_names()),
            Some(Completion::Roles) => " -x -a '(__q_roles)'".to_owned(),
            Some(Completion::Tools) => " -x -a '(__q_tools)'".to_owned(),
            Some(Completion::Files) => " -r -F".to_owned(),
            Some(Completion::Conversations) => " -r -F -a '(__q_conversations)'".to_owned(),
            Some(Completion::Words(words)) => format!(" -x -a '{}'", words.join(" ")),
        };
        let _ = writeln!(
            lines,
            "{line}{value} -d '{}'",
            flag.help.replace('\\', "\\\\").replace('\'', "\\'")
        );
    }
    let (short, long) = valued();
    script(
        include_str!("q.fish.in"),
        &[("SHORT", &short), ("LONG", &long), ("LINES", &lines)],
    )
}
