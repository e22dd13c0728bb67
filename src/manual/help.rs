//! The short help, made from the table of options.

use crate::flags::{FLAGS, Flag};

/// How q is called: a form and its meaning on each line, the last with a line end.
pub const SYNOPSIS: &str = "\
q [OPTIONS] WORDS…              a new conversation
q -f [OPTIONS] WORDS…           follows up
COMMAND | q [OPTIONS] [WORDS…]  asks about what COMMAND prints
";

/// Usage and options, a line each.
pub fn short() -> String {
    let widths = FLAGS.iter().map(|flag| names(flag).len());
    let width = widths.max().unwrap_or_default();
    let mut text = format!("{SYNOPSIS}\nOptions come before the question; -- ends them.\n");
    for flag in FLAGS {
        let names = names(flag);
        text.push_str(&format!("  {names:width$}  {}\n", flag.help));
    }
    text
}

/// `-f, --follow`, `-m, --model ID`.
pub fn names(flag: &Flag) -> String {
    let mut names = flag.spellings().join(", ");
    if flag.short.is_none() {
        // In a column with those that have a short name.
        names.insert_str(0, "    ");
    }
    if let Some(value) = flag.value() {
        names.push(' ');
        names.push_str(value.name);
    }
    names
}
