//! The man page: prose from a template, options, settings and providers from their tables.

use super::{help, template};
use crate::flags::FLAGS;
use crate::provider::table::{PROVIDERS, base_url_variable};
use crate::settings::table::SETTINGS;

/// The page without the parts from the tables; `@NAME@` marks their places.
const TEMPLATE: &str = include_str!("q.1.in");

/// The longest line that mandoc's lint accepts.
const MAX_LINE: usize = 80;

/// The page in the man(7) language.
pub(super) fn page() -> String {
    let page = template::fill(
        &help::with_samples(TEMPLATE, escaped),
        &[
            ("VERSION", env!("CARGO_PKG_VERSION")),
            ("OPTIONS", &options()),
            ("SETTINGS", &settings()),
            ("PROVIDERS", &providers()),
        ],
    );
    let mut is_example = false;
    let mut lines = String::new();
    for line in page.lines() {
        match line {
            ".nf" => is_example = true,
            ".fi" => is_example = false,
            _ => {}
        }
        // Preformatted text is copied unchanged.
        lines.push_str(&if is_example { format!("{line}\n") } else { filled(line) });
    }
    lines
}

/// Breaks a line of text that is too long for the source of a page; requests stay as they are.
fn filled(line: &str) -> String {
    if line.starts_with('.') {
        return format!("{line}\n");
    }
    // A line that begins with one of these would be a request.
    let guard = |line: &String| if line.starts_with(['.', '\'']) { "\\&" } else { "" };
    template::wrap(line, MAX_LINE, MAX_LINE).iter().map(|line| format!("{}{line}\n", guard(line))).collect()
}

fn options() -> String {
    let text = FLAGS.iter().map(|flag| {
        let names = help::names(flag);
        format!(".TP\n.B {}\n{}\n", escaped(names.trim_start()), escaped(flag.doc))
    });
    text.collect()
}

fn settings() -> String {
    let text = SETTINGS.iter().map(|row| {
        let default = row.default.map_or_else(String::new, |default| format!("; default {default}"));
        let (key, doc) = (escaped(row.key), escaped(row.doc));
        format!(".TP\n.BR {key} \", \" {}\n{doc}{}.\n", row.variable(), escaped(&default))
    });
    text.collect()
}

fn providers() -> String {
    let text = PROVIDERS.iter().map(|row| {
        let key = match row.key_variables {
            [] => "no key".to_owned(),
            names => format!("key in {}", names.join(" or ")),
        };
        let model =
            row.model.map_or_else(|| "the first model on its list".to_owned(), |model| format!("model {model}"));
        let text = format!("{}, {key}, {model}; moved by {}.", row.base_url, base_url_variable(row.name));
        format!(".TP\n.B {}\n{}\n", row.name, escaped(&text))
    });
    text.collect()
}

/// Text that the formatter leaves as it is: backslashes and hyphens are its own.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_as_it_stands_is_not_broken() {
        let (page, template) = (page(), help::with_samples(TEMPLATE, escaped));
        for line in template.split(".nf\n").skip(1).flat_map(|rest| rest.split(".fi\n").next()).flat_map(str::lines) {
            assert!(page.contains(&format!("\n{line}\n")), "{line}");
        }
    }

    #[test]
    fn every_place_of_the_template_is_filled() {
        let page = page();
        assert!(!page.contains('@'), "{:?}", page.lines().find(|line| line.contains('@')));
        assert!(page.contains(".B \\-f, \\-\\-follow\n"));
    }
}
