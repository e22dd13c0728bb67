//! The short help, made from the table of options (pure).

use crate::flags::{FLAGS, Flag, OptionGroup};

/// How q is called: a form and its meaning on each line. The last line has a newline, too.
pub const SYNOPSIS: &str = "\
q [OPTIONS] QUESTION...              ask a question
q [OPTIONS] -f QUESTION...           ask a follow-up question
COMMAND | q [OPTIONS] [QUESTION...]  ask about the output of COMMAND
q ACTION [OPTIONS]                   ask nothing: --list, --status, ...
";

/// How a question is asked, on one line, for an error.
pub const USAGE: &str = "usage: q [OPTIONS] QUESTION..., or COMMAND | q [OPTIONS] [QUESTION...]; \
    run q -h to list the options";

/// The groups, in the order in which they are shown, and their headings.
pub const GROUPS: &[(OptionGroup, &str)] = &[
    (OptionGroup::Conversation, "Conversation"),
    (OptionGroup::Model, "Model"),
    (OptionGroup::Input, "Input"),
    (OptionGroup::Tools, "Tools"),
    (OptionGroup::Output, "Output"),
    (OptionGroup::Action, "Actions (no question is asked)"),
];

/// Returns the short help: how q is called, and a line for each option, in groups.
pub fn short() -> String {
    let mut width = 0;
    for flag in FLAGS {
        width = width.max(names(flag).len());
    }
    let forms = SYNOPSIS.trim_end().replace('\n', "\n       ");
    let mut text = format!("Usage: {forms}\n\nOptions come before the question; -- ends them.\n");
    for (group, heading) in GROUPS {
        text.push_str(&format!("\n{heading}:\n"));
        for flag in FLAGS.iter().filter(|flag| flag.group == *group) {
            let names = names(flag);
            text.push_str(&format!("  {names:width$}  {}\n", flag.help));
        }
    }
    text
}

/// Returns the names of an option and of its value: `-f, --follow` or `-m, --model ID`.
pub fn names(flag: &Flag) -> String {
    let mut names = flag.names.to_owned();
    if names.starts_with("--") {
        // The long names are in one column.
        names.insert_str(0, "    ");
    }
    if let Some(value) = flag.value() {
        names.push(' ');
        names.push_str(value.name);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::table::rows;

    #[test]
    fn an_option_is_shown_with_its_names_and_value_in_columns() {
        let table = "
            --follow | -f, --follow
            --model | -m, --model ID
            --dry-run |     --dry-run
        ";
        for [name, expected] in rows(table) {
            let flag = FLAGS.iter().find(|flag| flag.name() == name).expect(name);
            assert_eq!(names(flag).trim_start(), expected, "{name}");
            let is_long = flag.names.starts_with("--");
            assert_eq!(names(flag).starts_with("    --"), is_long, "{name}");
        }
    }

    #[test]
    fn each_option_is_in_the_short_help_once_and_all_texts_begin_in_one_column() {
        let text = short();
        let begin = text.lines().find_map(|line| line.find(FLAGS[0].help));
        for flag in FLAGS {
            let end = format!("  {}", flag.help);
            let of_flag = |line: &&str| line.trim_start().starts_with(names(flag).trim_start());
            let lines = Vec::from_iter(
                text.lines()
                    .filter(of_flag)
                    .filter(|line| line.ends_with(&end)),
            );
            assert_eq!(lines.len(), 1, "{}", flag.names);
            assert_eq!(
                lines[0].find(&end).map(|at| at + 2),
                begin,
                "{}",
                flag.names
            );
            let has_group = GROUPS.iter().any(|(group, _)| *group == flag.group);
            assert!(has_group, "{}", flag.names);
        }
        for (_, heading) in GROUPS {
            assert!(text.contains(&format!("\n\n{heading}:\n  ")), "{heading}");
        }
        assert!(text.starts_with("Usage: q [OPTIONS] QUESTION...") && text.ends_with('\n'));
        let forms = text.lines().take_while(|line| !line.is_empty());
        assert!(forms.skip(1).all(|line| line.starts_with("       ")));
    }
}
