//! The short help, made from the table of options (pure).

use crate::flags::{FLAGS, Flag, OptionGroup};

/// How q is called: a form and its meaning on each line. The last line has a newline, too.
pub const SYNOPSIS: &str = "\
q [OPTIONS] QUESTION...              ask a question
q [OPTIONS] -f QUESTION...           ask a follow-up question
COMMAND | q [OPTIONS] [QUESTION...]  ask about the output of COMMAND
q ACTION [OPTIONS]                   ask nothing: --list, --status, ...
";

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
