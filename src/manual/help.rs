//! The two helps, short and long, made from the tables of options, settings and providers.

use super::template;
use crate::flags::{FLAGS, Flag, Value};
use crate::provider::table::{DIALECTS, PROVIDERS};
use crate::settings::table::SETTINGS;

/// How q is called: a form and its meaning on each line, the last with a line end.
pub(crate) const SYNOPSIS: &str = "\
q [OPTIONS] WORDS…              a new conversation
q -f [OPTIONS] WORDS…           follows up
COMMAND | q [OPTIONS] [WORDS…]  asks about what COMMAND prints
";

/// The long help without the parts from the tables; `@NAME@` marks their places.
const TEMPLATE: &str = include_str!("help.in");

/// What both the long help and the man page show: questions, and sections of the configuration file.
const SAMPLES: [(&str, &str); 4] = [
    ("EXAMPLES", include_str!("examples.in")),
    ("PROVIDER", include_str!("provider.in")),
    ("ROLES", include_str!("roles.in")),
    ("TOOLS", include_str!("tools.in")),
];

/// The width that the texts are wrapped to.
const WIDTH: usize = 80;

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

/// Fills the samples into a template, each of their lines as `format` shows it.
pub(super) fn with_samples(template: &str, format: impl Fn(&str) -> String) -> String {
    let names: Vec<String> = DIALECTS.iter().map(|dialect| format!("\"{}\"", dialect.name)).collect();
    let (usual, others) = names.split_at(1);
    let dialects = format!("{}        # or {}", usual.concat(), others.join(", "));
    let shown = |text: &str| {
        let text = template::fill(text, &[("DIALECTS", &dialects)]);
        text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format(line) + "\n" }).collect::<String>()
    };
    SAMPLES.iter().fold(template.to_owned(), |text, (name, sample)| template::fill(&text, &[(name, &shown(sample))]))
}

/// Everything.
pub(crate) fn long() -> String {
    let template = with_samples(TEMPLATE, |line| format!("    {line}"));
    template::fill(
        &template,
        &[("SYNOPSIS", SYNOPSIS), ("OPTIONS", &options()), ("SETTINGS", &settings()), ("PROVIDERS", &providers())],
    )
}

fn options() -> String {
    let option = |flag: &Flag| format!("  {}\n{}", names(flag), hanging(flag.doc, 6, 0));
    FLAGS.iter().map(option).collect::<Vec<_>>().join("\n")
}

fn settings() -> String {
    let width = SETTINGS.iter().map(|row| row.key.len()).max().unwrap_or_default();
    let text = SETTINGS.iter().map(|row| {
        let default = row.default.map_or_else(String::new, |default| format!(" ({default})"));
        let line = format!("{:width$}  {:15} {}{default}", row.key, row.variable(), row.doc);
        hanging(&line, 2, width + 20)
    });
    text.collect()
}

fn providers() -> String {
    let width = PROVIDERS.iter().map(|row| row.name.len()).max().unwrap_or_default();
    let text = PROVIDERS.iter().map(|row| {
        let key = if row.key_variables.is_empty() { "no key".to_owned() } else { row.key_variables.join(", ") };
        let model = row.model.unwrap_or("the first that it lists");
        format!("  {:width$}  {key:30}  {model}\n  {:width$}  {}\n", row.name, "", row.base_url)
    });
    text.collect()
}

/// `-f, --follow`, `-m, --model ID`.
pub(super) fn names(flag: &Flag) -> String {
    let value = flag.value().map_or_else(String::new, |Value(name, ..)| format!(" {name}"));
    match (flag.short, flag.long) {
        (Some(short), Some(long)) => format!("-{short}, --{long}{value}"),
        (Some(short), None) => format!("-{short}{value}"),
        (None, long) => format!("    --{}{value}", long.unwrap_or_default()),
    }
}

/// Wraps a text; lines after the first are indented further.
fn hanging(text: &str, indent: usize, further: usize) -> String {
    let (first, rest) = (" ".repeat(indent), " ".repeat(indent + further));
    let lines = template::wrap(text, WIDTH - first.len(), WIDTH - rest.len());
    let line = |(index, line): (usize, &String)| format!("{}{line}\n", if index == 0 { &first } else { &rest });
    lines.iter().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_setting_and_provider_is_reported_and_no_line_is_too_long() {
        let (short, long) = (short(), long());
        for flag in FLAGS {
            assert!(short.contains(&names(flag)) && long.contains(&names(flag)), "{}", flag.name());
        }
        for row in SETTINGS {
            assert!(long.contains(&row.variable()), "{}", row.key);
        }
        for row in PROVIDERS {
            assert!(long.contains(row.base_url), "{}", row.name);
        }
        for line in short.lines().chain(long.lines()) {
            let has_room = line.chars().count() <= WIDTH && line == line.trim_end();
            assert!(has_room && !line.contains('@'), "{line}");
        }
    }
}
