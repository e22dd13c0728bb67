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
        Completion::NamesOf(list) => format!("_@NAME@_names {}; {NO_FILES}", list.name()),
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
        let help = zsh_help(flag.help);
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

/// Returns a help text for a specification of zsh, which is in single quotes and has colons between its parts. Brackets are around
/// the text.
fn zsh_help(text: &str) -> String {
    let text = text.replace('\'', "'\\''").replace(':', "\\:");
    text.replace(']', "\\]")
}

fn zsh_action(completion: Completion) -> String {
    match completion {
        Completion::Nothing => String::new(),
        Completion::NamesOf(list) => format!("_@NAME@_names {}", list.name()),
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
        Completion::NamesOf(list) => format!(" -x -a '(__@NAME@_names {})'", list.name()),
        Completion::Files => " -r -F".to_owned(),
        Completion::Conversations => {
            " -x -a '(__@NAME@_conversations) (__@NAME@_session_files)'".to_owned()
        }
        Completion::Words(words) => format!(" -x -a '{}'", words.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::NameList;

    #[test]
    fn each_kind_of_value_is_completed_in_each_shell() {
        let words = &["a", "b"][..];
        for (completion, bash, zsh, fish) in [
            (Completion::Nothing, NO_FILES.to_owned(), "", " -x"),
            (Completion::Files, ":".to_owned(), "_files", " -r -F"),
            (
                Completion::Conversations,
                "_@NAME@_conversations".to_owned(),
                "_@NAME@_conversations",
                " -x -a '(__@NAME@_conversations) (__@NAME@_session_files)'",
            ),
            (
                Completion::NamesOf(NameList::Roles),
                format!("_@NAME@_names roles; {NO_FILES}"),
                "_@NAME@_names roles",
                " -x -a '(__@NAME@_names roles)'",
            ),
            (
                Completion::Words(words),
                format!("names=(a b); {NO_FILES}"),
                "(a b)",
                " -x -a 'a b'",
            ),
        ] {
            assert_eq!(bash_action(completion), bash);
            assert_eq!(zsh_action(completion), zsh);
            assert_eq!(fish_action(completion), fish);
        }
    }

    #[test]
    fn a_quotation_mark_colon_or_bracket_of_a_help_ends_no_part_of_a_specification_of_zsh() {
        assert_eq!(zsh_help("it's: [a]"), "it'\\''s\\: [a\\]");
    }

    #[test]
    fn each_option_is_in_each_completion_once_as_its_shell_writes_it() {
        let (bash, zsh, fish) = (bash(), zsh(), fish());
        let offered = bash
            .split_once("names=(-")
            .and_then(|(_, rest)| rest.split_once(')'));
        let offered = format!("-{}", offered.expect("a list of options").0);
        let offered = Vec::from_iter(offered.split(' '));
        for flag in FLAGS {
            let has_value = flag.value().is_some();
            for spelling in flag.spellings() {
                let is_long = spelling.starts_with("--");
                assert!(offered.contains(&spelling), "bash: {spelling}");
                let glue = match (has_value, is_long) {
                    (false, _) => "[",
                    (true, true) => "=[",
                    (true, false) => "+[",
                };
                // Its group comes before it, or `*` if it may be repeated.
                let repeats = flag.value().is_some_and(|value| value.setter.repeats());
                let mark = if repeats { "'*" } else { ")" };
                let option = format!("{mark}{spelling}{glue}");
                assert_eq!(zsh.matches(&option).count(), 1, "zsh: {spelling}");
                let name = without_hyphens(spelling);
                let option = if is_long {
                    format!(" -l {name} ")
                } else {
                    format!(" -s {name} ")
                };
                assert_eq!(fish.matches(&option).count(), 1, "fish: {spelling}");
            }
        }
        // No quotation mark or colon of a help ends its text early.
        for line in zsh
            .lines()
            .filter(|line| line.starts_with("    '") && line.contains('['))
        {
            assert!(
                line.ends_with("' \\") && line.replace("'\\''", "").matches('\'').count() == 2,
                "{line}"
            );
        }
        for line in fish.lines().filter(|line| line.starts_with("complete -c ")) {
            assert_eq!(
                line.replace("\\'", "").matches('\'').count() % 2,
                0,
                "{line}"
            );
        }
    }

    #[test]
    fn words_that_take_a_value_are_told_from_those_that_do_not() {
        let script = script("@SHORT@ @LONG@ @X@", &[("X", "own")]);
        let (common, own) = script.rsplit_once(' ').expect("parts");
        let (short, long) = common.split_once(' ').expect("parts");
        assert_eq!(own, "own");
        let (switches, values) = short.split_once("]*([").expect("two sets");
        for flag in FLAGS {
            for spelling in flag.spellings() {
                let name = without_hyphens(spelling);
                let has_value = flag.value().is_some();
                if spelling.starts_with("--") {
                    let names = Vec::from_iter(long.trim_matches(['-', '(', ')']).split('|'));
                    assert_eq!(names.contains(&name), has_value, "{spelling}");
                } else {
                    assert_eq!(switches.contains(name), !has_value, "{spelling}");
                    assert_eq!(values.contains(name), has_value, "{spelling}");
                }
            }
        }
    }
}
