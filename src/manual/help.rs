//! The short help, made from the table of options (pure).

use crate::flags::{FLAGS, Flag};

/// How q is called: a form and its meaning on each line. The last line has a line end, too.
pub const SYNOPSIS: &str = "\
q [OPTIONS] WORDS...              a new conversation
q -f [OPTIONS] WORDS...           follows up
COMMAND | q [OPTIONS] [WORDS...]  asks about what COMMAND prints
";

/// The short help: how q is called, and a line for each option.
pub fn short() -> String {
    let mut width = 0;
    for flag in FLAGS {
        width = width.max(names(flag).len());
    }
    let mut text = format!("{SYNOPSIS}\nOptions come before the question; -- ends them.\n");
    for flag in FLAGS {
        let names = names(flag);
        text.push_str(&format!("  {names:width$}  {}\n", flag.help));
    }
    text
}

/// The names of an option and of its value: `-f, --follow` or `-m, --model ID`.
pub fn names(flag: &Flag) -> String {
    let mut names = flag.names.to_owned();
    if names.starts_with("--") {
        // The long names stand in one column.
        names.insert_str(0, "    ");
    }
    if let Some(value) = flag.value() {
        names.push(' ');
        names.push_str(value.name);
    }
    names
}
