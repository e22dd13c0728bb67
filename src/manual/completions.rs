//! Completions for bash, zsh and fish, made from the table of options (pure).

use std::fmt::Write;

use super::template;
use crate::flags::{Completion, FLAGS};

/// Keeps bash from offering files. The bash of macOS is too old for it, and its error is hidden.
const NO_FILES: &str = "compopt +o default 2>/dev/null";

/// Fills a script with its own parts, and with those that are common to the shells.
fn script(template: &str, own: &[(&str, &str)]) -> String {
    let mut short = String::new();
    let mut short_with_value = String::new();
    let mut long_with_value = Vec::new();
    for flag in FLAGS {
        for spelling in flag.spellings() {
            let name = without_hyphens(spelling);
            match (spelling.starts_with("--"), flag.value()) {
                (true, Some(_)) => long_with_value.push(name),
                (true, None) => (),
                (false, Some(_)) => short_with_value.push_str(name),
                (false, None) => short.push_str(name),
            }
        }
    }
    let common = [
        // Extended regular expressions for a word that ends in an option with a value.
        ("SHORT", &*format!("-[{short}]*([{short_with_value}])")),
        ("LONG", &format!("--({})", long_with_value.join("|"))),
    ];
    template::fill(template, &[&common, own].concat())
}

/// Returns the completion for bash, with or without the package bash-completion.
pub fn bash() -> String {
    let mut cases = String::new();
    let mut options = Vec::new();
    for flag in FLAGS {
        options.extend(flag.spellings());
        if let Some(value) = flag.value() {
            let names: Vec<&str> = flag.spellings().map(without_hyphens).collect();
            let names = names.join(" | ");
            let action = bash_action(value.completion);
            let _ = writeln!(cases, "    {names}) {action} ;;");
        }
    }
    let own = [("CASES", &*cases), ("OPTIONS", &options.join(" "))];
    script(include_str!("q.bash.in"), &own)
}

fn without_hyphens(spelling: &str) -> &str {
    spelling.trim_start_matches('-')
}

fn bash_action(completion: Completion) -> String {
    match completion {
        // Bash offers files by itself.
        Completion::Files => ":".to_owned(),
        Completion::Conversations => "_@NAME@_conversations".to_owned(),
        Completion::Nothing => NO_FILES.to_owned(),
        Completion::NamesOf(kind) => format!("_@NAME@_names {kind}; {NO_FILES}"),
        Completion::Words(words) => format!("names=({}); {NO_FILES}", words.join(" ")),
    }
}

/// Returns the completion for zsh, as a function of its completion system.
pub fn zsh() -> String {
    let mut specifications = String::new();
    for flag in FLAGS {
        let mut group = format!("({})", flag.names.replace(',', ""));
        let mut value = String::new();
        if let Some(option) = flag.value() {
            value = format!(":{}:{}", option.name, zsh_action(option.completion));
            // An option that may be repeated is offered again.
            if option.setter.repeats() {
                group = "*".to_owned();
            }
        }
        let help = flag.help.replace('\'', "'\\''").replace(':', "\\:");
        for spelling in flag.spellings() {
            // A value may be glued to a short option, or follow a long one's equals sign.
            let glue = if value.is_empty() {
                ""
            } else if spelling.starts_with("--") {
                "="
            } else {
                "+"
            };
            let _ = writeln!(
                specifications,
                "    '{group}{spelling}{glue}[{help}]{value}' \\"
            );
        }
    }
    let own = [("SPECIFICATIONS", &*specifications)];
    script(include_str!("q.zsh.in"), &own)
}

fn zsh_action(completion: Completion) -> String {
    match completion {
        Completion::Nothing => String::new(),
        Completion::NamesOf(kind) => format!("_@NAME@_names {kind}"),
        Completion::Conversations => "_@NAME@_conversations".to_owned(),
        Completion::Files => "_files".to_owned(),
        Completion::Words(words) => format!("({})", words.join(" ")),
    }
}

/// Returns the completion for fish.
pub fn fish() -> String {
    let mut lines = String::new();
    for flag in FLAGS {
        lines.push_str("complete -c @NAME@ -n __@NAME@_options");
        for spelling in flag.spellings() {
            let kind = if spelling.starts_with("--") {
                "-l"
            } else {
                "-s"
            };
            let name = without_hyphens(spelling);
            let _ = write!(lines, " {kind} {name}");
        }
        if let Some(value) = flag.value() {
            lines.push_str(&fish_action(value.completion));
        }
        let help = flag.help.replace('\'', "\\'");
        let _ = writeln!(lines, " -d '{help}'");
    }
    script(include_str!("q.fish.in"), &[("LINES", &lines)])
}

fn fish_action(completion: Completion) -> String {
    match completion {
        Completion::Nothing => " -x".to_owned(),
        Completion::NamesOf(kind) => format!(" -x -a '(__@NAME@_names {kind})'"),
        Completion::Files => " -r -F".to_owned(),
        Completion::Conversations => " -r -F -a '(__@NAME@_conversations)'".to_owned(),
        Completion::Words(words) => format!(" -x -a '{}'", words.join(" ")),
    }
}
