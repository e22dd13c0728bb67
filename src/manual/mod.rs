//! The documents made from the tables of options, settings and providers: help, man page and completions; also the keys
//! for shells and the skill for agents, which are constant.

mod completions;
mod help;
mod pages;
mod template;

pub use help::{SYNOPSIS, short as short_help};
pub use pages::help as long_help;

/// What the keys for bash and zsh have in common.
const KEYS: &str = include_str!("keys.sh");

/// Returns the document of this kind. It calls the program by this name.
pub fn generate(kind: &str, name: &str) -> String {
    let text = match kind {
        "bash" => completions::bash(),
        "zsh" => completions::zsh(),
        "fish" => completions::fish(),
        "skill" => include_str!("skill.md").to_owned(),
        "keys-bash" => format!("{KEYS}\n{}", include_str!("keys.bash")),
        "keys-zsh" => format!("{KEYS}\n{}", include_str!("keys.zsh")),
        "keys-fish" => include_str!("keys.fish").to_owned(),
        _ => pages::man(),
    };
    template::fill(&text, &[("NAME", name)])
}
