//! The documents made from the tables of options, settings and providers: help, man page and completions; also the keys
//! for shells and the skill for agents, which are constant.

mod completions;
mod help;
mod pages;
mod template;

use crate::flags::Document;

pub use help::{USAGE, short as short_help};
pub use pages::help as long_help;

/// What the keys for bash and zsh have in common.
const KEYS: &str = include_str!("keys.sh");

/// Returns a document. It calls the program by this name.
pub fn generate(document: Document, name: &str) -> String {
    let text = match document {
        Document::ManPage => pages::man(),
        Document::BashCompletion => completions::bash(),
        Document::ZshCompletion => completions::zsh(),
        Document::FishCompletion => completions::fish(),
        Document::Skill => include_str!("skill.md").to_owned(),
        Document::BashKeys => format!("{KEYS}\n{}", include_str!("keys.bash")),
        Document::ZshKeys => format!("{KEYS}\n{}", include_str!("keys.zsh")),
        Document::FishKeys => include_str!("keys.fish").to_owned(),
    };
    template::fill(&text, &[("NAME", name)])
}
