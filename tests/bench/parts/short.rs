//! A short answer: saved or not, over TLS, from the cache, and to a question with an image.

use std::ffi::OsStr;

use crate::bench::Bench;
use crate::programs::{Q, curl, quiet, with, with_authority};
use crate::runs::{Contestant, compare, contestant};
use crate::server::Server;
use crate::table::{line, shown};

/// Deltas of the answer.
pub const SHORT: usize = 20;

/// What the table calls the certificates that the system trusts, and where they are.
const SYSTEMS: &str = "the system's authorities";
const SYSTEM_STORE: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Bytes of an image, which in base64 are as many as q takes.
const IMAGE: usize = 3_749_000;

pub fn answer(bench: &Bench) {
    let saved = |state| bench.q(&bench.short, state, &["question"]);
    let mut contestants: Vec<Contestant> = vec![
        contestant("q", || saved(&bench.state)),
        contestant("curl", || curl(&bench.short)),
        contestant("--no-save", || {
            bench.q(&bench.short, &bench.state, &["--no-save", "question"])
        }),
        contestant("on disk", || saved(&bench.disk)),
    ];
    if let Some(client) = &bench.client {
        let address = bench.short.trim_start_matches("http://");
        contestants.push(contestant("client", move || with(quiet(client), [address])));
    }
    if let Some(archive) = &bench.archive {
        contestants.push(contestant("static", || {
            bench.program(archive, &bench.short, &bench.state, &["question"])
        }));
    }
    let results = compare(&contestants, 200);
    let saved = format!("{SHORT} deltas, saved");
    results.times(&saved, "q", "curl", "curl", "0.3");
    if bench.client.is_some() {
        results.times("the same", "q", "a bare static client", "client", "2.5");
    }
    if bench.archive.is_some() {
        results.times("the same, static archive", "static", "curl", "curl", "0.22");
    }
    let unsaved = format!("{SHORT} deltas, `--no-save`");
    results.times(&unsaved, "--no-save", "curl", "curl", "");
    results.more("saved on a disk", "on disk", "on tmpfs", "q", "");
    let (q, curl) = (results.of("q"), results.of("curl"));
    let megabytes = |bytes: f64| format!("{:.1} MB", bytes / 1e6);
    let (own, other) = (megabytes(q.memory), megabytes(curl.memory));
    let what = format!("peak memory, {SHORT} deltas");
    line(&what, &own, "curl", &other, q.memory / curl.memory, "0.42");
}

/// Nothing is set up that only a request needs.
pub fn known_answer(bench: &Bench) {
    let known = || {
        let arguments = ["--cached", "--no-save", "question"];
        let mut command = bench.q(&bench.short, &bench.state, &arguments);
        command.env("XDG_CACHE_HOME", &bench.state);
        command
    };
    let contestants: Vec<Contestant> = vec![
        contestant("known", known),
        contestant("version", || with(quiet(Q), ["--version"])),
    ];
    let results = compare(&contestants, 200);
    let what = "a cached answer, `--no-save`";
    results.times(what, "known", "`q --version`", "version", "1.5");
}

/// The store of the system is loaded where it holds the server's authority, too, which has to be named for the test.
pub fn over_tls(bench: &Bench) {
    let authority = bench.state.join("authority.pem");
    let store = bench.state.join("store.pem");
    let server = Server::start(SHORT, Some(&authority));
    let mut stores = vec![("one authority", authority.clone())];
    if let Ok(mut certificates) = std::fs::read(SYSTEM_STORE) {
        certificates.extend(std::fs::read(&authority).expect("a certificate"));
        std::fs::write(&store, certificates).expect("a file");
        stores.push((SYSTEMS, store));
    }
    for (name, certificates) in &stores {
        let contestants: Vec<Contestant> = vec![
            contestant("q", || {
                let command = bench.q(&server.address, &bench.state, &["question"]);
                with_authority(command, certificates)
            }),
            contestant("curl", || {
                let trusted = [OsStr::new("--cacert"), certificates.as_os_str()];
                with(curl(&server.address), trusted)
            }),
        ];
        let results = compare(&contestants, 50);
        let what = format!("{SHORT} deltas over TLS, {name}");
        results.times(&what, "q", "curl", "curl", "");
        let (q, curl) = (results.of("q").processor, results.of("curl").processor);
        let what = what + ", processor time";
        let goal = if *name == SYSTEMS { "0.12" } else { "" };
        line(&what, &shown(q), "curl", &shown(curl), q / curl, goal);
    }
}

/// What an image costs compared with a question without any.
pub fn image(bench: &Bench) {
    let image = bench.state.join("image.png");
    std::fs::write(&image, b"\x89PNG\r\n\x1A\n".repeat(IMAGE / 8)).expect("a file");
    let path = image.to_str().expect("a path");
    let asked = ["-a", path, "--no-save", "question"];
    let contestants: Vec<Contestant> = vec![
        contestant("plain", || bench.q(&bench.short, &bench.state, &asked[2..])),
        contestant("image", || bench.q(&bench.short, &bench.state, &asked)),
    ];
    let results = compare(&contestants, 20);
    results.more("an image of 3.75 MB", "image", "without", "plain", "");
}
