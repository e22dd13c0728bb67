//! The texts that are made from the tables of options, settings and providers: help, man page, completions.

mod completions;
mod help;
mod man;

pub(crate) use help::{SYNOPSIS, long as long_help, short as short_help};

/// The text of one of [`crate::flags::KINDS`].
pub(crate) fn generate(kind: &str) -> String {
    match kind {
        "bash" => completions::bash(),
        "zsh" => completions::zsh(),
        "fish" => completions::fish(),
        _ => man::page(),
    }
}
