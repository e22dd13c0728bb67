//! The texts that are made from the tables of options, settings and providers: help, man page, completions.

mod completions;
mod help;
mod man;
mod template;

pub(crate) use help::{SYNOPSIS, long as long_help, short as short_help};

/// The text of a kind: `bash`, `zsh`, `fish`, or else the man page.
pub(crate) fn generate(kind: &str) -> String {
    match kind {
        "bash" => completions::bash(),
        "zsh" => completions::zsh(),
        "fish" => completions::fish(),
        _ => man::page(),
    }
}
