//! A large conversation, and many of them.

use std::path::Path;

use crate::bench::Bench;
use crate::instructions;
use crate::programs::{drained_terminal, quiet, with};
use crate::runs::{Contestant, compare, contestant};
use crate::table::alone;

/// Bytes of a large conversation.
const LARGE: usize = 9_000_000;

/// How many conversations are searched, and how many bytes each of them has.
const SEARCHED: usize = 1_000;
const USUAL: usize = 20_000;

/// How many conversations a directory may have, few and many, and the bytes of a small one.
const FEW: usize = 10;
const MANY: usize = 100_000;
const SMALL: usize = 2_900;

pub fn large(bench: &Bench) {
    let (empty, large) = (bench.state.join("empty"), bench.state.join("large"));
    bench.converse(&empty, "bench", "", 0);
    bench.converse(&large, "bench", "", LARGE);
    let asked = ["-s", "bench", "question"];
    let contestants: Vec<Contestant> = vec![
        contestant("empty", || bench.q(&bench.short, &empty, &asked)),
        contestant("large", || bench.q(&bench.short, &large, &asked)),
    ];
    let results = compare(&contestants, 30);
    let name = format!("a follow-up on {} MB", LARGE / 1_000_000);
    let label = "on an empty conversation";
    results.more(&name, "large", label, "empty", "");
    instructions_of_follow_up(bench, &name);
}

/// What a large conversation adds to a follow-up, with q and with an older one. Each asks in conversations of its own.
fn instructions_of_follow_up(bench: &Bench, name: &str) {
    let added = |program: &Path| {
        let count = |bytes: usize| {
            let state = tempfile::tempdir_in(&bench.state).expect("a directory");
            bench.converse(state.path(), "bench", "", bytes);
            let asked = ["-s", "bench", "question"];
            let mut command = bench.program(program, &bench.short, state.path(), &asked);
            instructions::count(&mut command)
        };
        count(LARGE).saturating_sub(count(0))
    };
    let what = format!("{name}, instructions added");
    instructions::compare(&what, bench.old.as_deref(), added, "0.55");
}

/// One of the conversations has the word that is looked for.
pub fn list(bench: &Bench) {
    let many = bench.state.join("searched");
    for number in 0..SEARCHED {
        let has_it = number == SEARCHED / 2;
        let word = if has_it { "needle" } else { "hay" };
        bench.converse(&many, &format!("talk-{number}"), word, USUAL);
    }
    let contestants: Vec<Contestant> = vec![
        contestant("q", || bench.q(&bench.short, &many, &["--list", "needle"])),
        contestant("grep", || {
            let command = with(quiet("grep"), ["-ril", "needle"]);
            with(command, [many.join("q/sessions")])
        }),
    ];
    let results = compare(&contestants, 30);
    let size = USUAL / 1_000;
    let name = format!("`--list WORD`, {SEARCHED} conversations of {size} KB");
    results.times(&name, "q", "`grep -ril`", "grep", "2");
    for (what, word) in [
        ("a common", "line"),
        ("an absent", "zyx"),
        ("a cyrillic", "мир"),
    ] {
        let contestants: Vec<Contestant> = vec![
            contestant("q", || bench.q(&bench.short, &many, &["--list", word])),
            contestant("grep", || {
                let script = format!("grep -ril {word} '{}' || true", many.display());
                with(quiet("sh"), ["-c", &script])
            }),
        ];
        let results = compare(&contestants, 30);
        results.times(
            &format!("the same for {what} word"),
            "q",
            "`grep -ril`",
            "grep",
            "2",
        );
    }
    instructions_of_search(bench, &name, &many);
}

/// Instructions of a search, with q and with an older one.
fn instructions_of_search(bench: &Bench, name: &str, state: &Path) {
    let searched = |program: &Path| {
        let mut command = bench.program(program, &bench.short, state, &["--list", "needle"]);
        instructions::count(&mut command)
    };
    let what = format!("{name}, instructions");
    instructions::compare(&what, bench.old.as_deref(), searched, "");
}

pub fn many(bench: &Bench) {
    let directories = [("few", FEW), ("many", MANY)].map(|(name, count)| {
        let state = bench.state.join(name);
        for number in 0..count {
            let (minute, milliseconds) = (number / 60_000, number % 60_000);
            let id = format!("session_2026010100{minute:02}{milliseconds:05}");
            bench.converse(&state, &id, "hay", SMALL);
        }
        state
    });
    let [few, many] = &directories;
    let terminal = drained_terminal();
    let listed = || {
        let mut command = bench.q(&bench.short, many, &["--list"]);
        command.stdout(terminal.try_clone().expect("a descriptor"));
        command
    };
    let contestants: Vec<Contestant> = vec![
        contestant("few", || bench.q(&bench.short, few, &["question"])),
        contestant("many", || bench.q(&bench.short, many, &["question"])),
        contestant("list", listed),
    ];
    let results = compare(&contestants, 30);
    let name = format!("a question among {MANY} conversations");
    results.times(&name, "many", &format!("among {FEW}"), "few", "1");
    let name = format!("`--list` on a terminal, {MANY} conversations");
    alone(&name, results.of("list").seconds, "0.5 s");
}
