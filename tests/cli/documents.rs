//! The documents agree with the program: help, man page and completions.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::fixtures::{case, repository_file, set_mode};
use crate::machine::lacks;
use crate::pty::{Terminal, WIDE};
use crate::sandbox::Sandbox;

/// What the repository holds of what `q --generate KIND` prints.
const GENERATED: [(&str, &str); 5] = [
    ("man", "man/q.1"),
    ("skill", ".github/skills/q/SKILL.md"),
    ("bash", "completions/q.bash"),
    ("zsh", "completions/_q"),
    ("fish", "completions/q.fish"),
];

#[test]
fn the_man_page_the_skill_and_the_completions_are_what_q_generates() {
    let sandbox = Sandbox::new();
    for (kind, file) in GENERATED {
        let outcome = sandbox.q(&["--generate", kind]).stdin_open().run();
        let right = outcome.success().stdout_text() == repository_file(file);
        let what = format!("{file} is out of date: q --generate {kind} > {file}");
        outcome.check(right, &what);
    }
}

#[test]
fn the_manual_goes_through_a_pager_only_on_a_terminal() {
    let manual = printed(&["--help"]);
    let paged: String = manual
        .lines()
        .map(|line| format!("paged {line}\n"))
        .collect();
    let pager = "sed 's/^/paged /'";
    // The kind of the terminal, the pager, whether there is less, and what the terminal shows.
    for (kind, pager, has_less, expected) in [
        ("xterm", pager, true, &paged),
        ("xterm", "", true, &paged),
        ("xterm", "no-such-pager 2>/dev/null", true, &manual),
        ("xterm", "/etc/passwd 2>/dev/null", true, &manual),
        ("xterm", "/ 2>/dev/null", true, &manual),
        ("xterm", "", false, &manual),
        ("dumb", pager, true, &manual),
        ("", pager, true, &manual),
    ] {
        let _case = case((kind, pager, has_less));
        let sandbox = Sandbox::new().env("TERM", kind).env("PAGER", pager);
        let sandbox = sandbox.env("LC_ALL", "C.UTF-8");
        let bin = sandbox.home().join("bin");
        let mut path = bin.display().to_string();
        std::fs::create_dir(&bin).expect("a directory");
        sandbox.write_home("bin/less", "#!/bin/sh\nsed 's/^/paged /'\n");
        if has_less {
            set_mode(&bin.join("less"), 0o755);
            path += ":/usr/bin:/bin";
        }
        let terminal = Terminal::new(WIDE);
        let q = sandbox.q(&["--help"]).env("PATH", &path);
        q.on(&terminal).run().success();
        let shown = String::from_utf8(terminal.bytes()).expect("UTF-8");
        assert_eq!(shown.replace("\r\n", "\n"), *expected);
        let outcome = sandbox.q(&["--help"]).env("PATH", path).run();
        assert_eq!(outcome.success().stdout_text(), manual);
    }
}

#[test]
fn every_option_is_in_every_document() {
    let options = options();
    assert!(options.len() > 30, "{options:?}");
    let page = man_page();
    let short = printed(&["-h"]);
    let completions = GENERATED[2..]
        .iter()
        .map(|(_, file)| (*file, repository_file(file)));
    for option in &options {
        assert!(has_word(&short, option), "{option} is not in q -h");
        assert!(has_word(&page, option), "{option} is not in the man page");
    }
    for (file, text) in completions {
        for option in &options {
            // Fish has them without their dashes: -s f -l follow.
            let bare = option.trim_start_matches('-');
            let there = has_word(&text, option)
                || has_word(&text, &format!("-l {bare}"))
                || has_word(&text, &format!("-s {bare}"));
            assert!(there, "{option} is not in {file}");
        }
    }
}

#[test]
fn every_setting_and_provider_is_in_every_document() {
    let status = Sandbox::new().q(&["--status", "--json"]).run();
    let status = status.success().stdout_json();
    let names = |list: &str| -> Vec<String> {
        let list = status[list].as_array().expect("a list");
        list.iter()
            .map(|one| one["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    let (settings, providers) = (names("settings"), names("providers"));
    assert_eq!((settings.len(), providers.len()), (22, 15));
    let sandbox = Sandbox::new();
    sandbox.config("[providers.work]\napi = \"none\"\n");
    let refused = sandbox.q(&["hi"]).run().exit(2).stderr_text();
    let first = refused.lines().next().unwrap_or_default();
    let (_, dialects) = first.split_once("is not one of ").expect("the dialects");
    for (document, text) in &[
        ("q --help", printed(&["--help"])),
        ("the man page", man_page()),
    ] {
        for setting in &settings {
            let is_right = has_word(text, setting);
            assert!(is_right, "the setting {setting} is not in {document}");
        }
        for variable in ["Q_MAX_TOKENS", "Q_SESSION", "Q_STDIN", "Q_KEY", "Q_LINE"] {
            assert!(has_word(text, variable), "{variable} is not in {document}");
        }
        for provider in &providers {
            let is_right = has_word(text, provider);
            assert!(is_right, "the provider {provider} is not in {document}");
        }
        for dialect in dialects.split(", ") {
            let is_right = text.contains(&format!("\"{dialect}\""));
            assert!(is_right, "the dialect {dialect} is not in {document}");
        }
        for provider in status["providers"].as_array().expect("a list") {
            let key = provider["key"].as_str().expect("words about the key");
            for variable in key.split(' ').filter(|word| word.ends_with("_API_KEY")) {
                assert!(has_word(text, variable), "{variable} is not in {document}");
            }
        }
    }
}

#[test]
fn the_man_page_has_all_sections_and_passes_mandoc() {
    let sections: Vec<String> = repository_file("man/q.1")
        .lines()
        .filter_map(|line| Some(line.strip_prefix(".SH ")?.to_owned()))
        .collect();
    let expected = "NAME SYNOPSIS DESCRIPTION OPTIONS INPUT_AND_OUTPUT CONVERSATIONS ATTACHMENTS STRUCTURED_OUTPUT TOOLS \
                    WEB_SEARCH CACHING CONFIGURATION SHELL_INTEGRATION PRIVACY_AND_SECURITY EXIT_STATUS ENVIRONMENT FILES \
                    EXAMPLES";
    for section in expected.split(' ').map(|name| name.replace('_', " ")) {
        let is_right = sections.contains(&section);
        assert!(is_right, "no section {section}: {sections:?}");
    }
    if lacks("mandoc", "echo | mandoc") {
        return;
    }
    let lint = format!("exec mandoc -T lint '{}'", path("man/q.1").display());
    let outcome = Sandbox::new().shell(&lint).run();
    outcome.success().stdout_is_empty();
}

/// The options as `q --help` shows them at the beginning of a paragraph, short and long.
fn options() -> BTreeSet<String> {
    let help = printed(&["--help"]);
    let heads = help.lines().map(str::trim_start);
    let heads = heads.filter(|line| line.starts_with('-'));
    // A head is `-s, --session NAME`; text that happens to begin with a dash has no such form.
    let heads = heads.filter(|line| {
        line.split(", ").all(|name| name.starts_with('-')) && line.split(' ').count() <= 3
    });
    heads
        .flat_map(|line| {
            line.split([' ', ','])
                .filter(|word| word.starts_with('-'))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect()
}

fn printed(args: &[&str]) -> String {
    Sandbox::new().q(args).run().success().stdout_text()
}

/// The text of the page, with the characters that its language writes otherwise.
fn man_page() -> String {
    let mut page = repository_file("man/q.1").replace("\\-", "-");
    for font in ["\\fB", "\\fI", "\\fP"] {
        page = page.replace(font, "");
    }
    page.replace("\\&", "").replace("\\e", "\\")
}

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// Whether the text has this and not only something longer that contains it.
fn has_word(text: &str, word: &str) -> bool {
    let goes_on = |character: char| character.is_alphanumeric() || matches!(character, '-' | '_');
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(goes_on) && !after.is_some_and(goes_on)
    })
}

#[test]
fn the_files_that_the_readme_links_to_come_with_it_wherever_it_goes() {
    let readme = repository_file("README.md");
    let manifest = repository_file("Cargo.toml");
    let archive = repository_file("tests/archive.py");
    let excluded = manifest
        .lines()
        .find_map(|line| line.strip_prefix("exclude = "));
    let excluded: Vec<String> =
        serde_json::from_str(excluded.expect("what the crate lacks")).expect("a list");
    let mut count = 0;
    for link in readme.split("](").skip(1) {
        let (path, _) = link.split_once(')').expect("a link");
        if path.starts_with("https://") || path.starts_with('#') {
            continue;
        }
        let _case = case(path);
        count += 1;
        let place = format!("/{path}");
        let is_in_crate = !excluded.iter().any(|start| place.starts_with(start));
        assert!(is_in_crate, "Cargo.toml excludes it from the crate");
        let in_archive = format!("\"{path}\": \"{path}\",");
        assert!(archive.contains(&in_archive), "it is not in the archive");
        let directory = &path[..path.rfind('/').map_or(0, |at| at + 1)];
        let in_package = format!("[\"{path}\", \"usr/share/doc/q-ask/{directory}\", \"644\"]");
        let is_in_package = manifest.contains(&in_package);
        assert!(is_in_package, "it is not in the Debian package");
    }
    assert!(count > 5);
}
