//! The short help, made from the table of options.

use crate::flags::{FLAGS, Flag, Value};

/// How q is called: a form and its meaning on each line, the last with a line end.
pub(crate) const SYNOPSIS: &str = "\
q [OPTIONS] WORDS…              a new conversation
q -f [OPTIONS] WORDS…           follows up
COMMAND | q [OPTIONS] [WORDS…]  asks about what COMMAND prints
";

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

/// `-f, --follow`, `-m, --model ID`.
pub(super) fn names(flag: &Flag) -> String {
    let value = flag
        .value()
        .map_or_else(String::new, |Value(name, ..)| format!(" {name}"));
    match (flag.short, flag.long) {
        (Some(short), Some(long)) => format!("-{short}, --{long}{value}"),
        (Some(short), None) => format!("-{short}{value}"),
        (None, long) => format!("    --{}{value}", long.unwrap_or_default()),
    }
}
