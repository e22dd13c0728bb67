//! How fast q is beside others, side by side in one run. Prints medians and ratios as the table of README.md in this directory,
//! and judges nothing.
//!
//! `cargo bench --bench speed`, or with names of its parts after `--`: `cargo bench --bench speed -- short long`. State is on
//! /dev/shm where that is there, so that the cost of fsync on a disk can be seen. The static archive takes part where `.ci/run`
//! has built it, and an older q where `Q_OLD` names one.

#[path = "../harness/authority.rs"]
mod authority;
mod distance;
mod events;
#[path = "../harness/http.rs"]
mod http;
mod instructions;
#[path = "../harness/pseudo_terminal.rs"]
mod pseudo_terminal;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rustls::{ServerConnection, StreamOwned};

use authority::Authority;
use distance::{Far, ROUND_TRIP};

const Q: &str = env!("CARGO_BIN_EXE_q");

/// The static archive, where `.ci/run` builds it.
const STATIC: &str = "target/oldest/x86_64-unknown-linux-musl/release/q";

/// Deltas of a short and of a long answer, and those whose latency is measured in one answer.
const SHORT: usize = 20;
const LONG: usize = 200_000;
const WATCHED: usize = 200;

/// What the table calls the certificates that the system trusts, and where they are.
const SYSTEMS: &str = "the system's authorities";
const SYSTEM_STORE: &str = "/etc/ssl/certs/ca-certificates.crt";

/// How long a pipe takes before a question comes through it.
const PIPE: Duration = Duration::from_millis(300);

/// How often a model is asked before it answers, and once more.
const ROUNDS: usize = 6;

/// Bytes of a large conversation.
const LARGE: usize = 9_000_000;

/// How many conversations are searched, and how many bytes each of them has.
const SEARCHED: usize = 1_000;
const USUAL: usize = 20_000;

/// How many conversations a directory may have, few and many, and the bytes of a small one.
const FEW: usize = 10;
const MANY: usize = 100_000;
const SMALL: usize = 2_900;

/// Bytes of an image, which in base64 are as many as q takes.
const IMAGE: usize = 3_749_000;

/// Bytes of a line that is compared with one twice as long.
const LINE: usize = 4_000;

/// What such lines repeat, separated by `☐`.
const REPEATED: &str = " ☐\t☐`☐~☐>☐> ☐*☐* ☐_☐[☐|☐| ☐#☐-☐- ☐7☐1. ☐\u{301}☐👩\u{200d}☐😀☐❤\u{fe0f}☐🇩☐日☐\u{a0}☐&☐\r☐\u{1b}☐x☐word ☐*a☐_a☐,_a☐(*☐*_☐**a** ☐\
    `a`☐ `☐``` ☐~~~ ☐|-☐|a☐\\*☐://☐\n☐```\n";

/// Where they stand: in prose, lists, quotes, tables, headings, fences and code. Each place is an answer's part of its own.
const PLACES: &[(&str, &str)] = &[
    ("a ", "\n\n"),
    ("- ", "\n\n"),
    ("> ", "\n\n"),
    ("# ", "\n\n"),
    ("| ", "\n\n"),
    ("```", "\n```\n```\n\n"),
    ("`````\n", "\n`````\n\n"),
    ("> ~~~~~\n> ", "\n> ~~~~~\n\n"),
];

type Part = fn(&Bench);

/// What can be measured by itself.
const PARTS: &[(&str, Part)] = &[
    ("short", Bench::short_answer),
    ("delta", Bench::one_delta),
    ("long", Bench::long_answer),
    ("instructions", Bench::instructions),
    ("known", Bench::known_answer),
    ("tls", Bench::short_answer_over_tls),
    ("far", Bench::first_word_from_afar),
    ("far", Bench::rounds_afar),
    ("large", Bench::large_conversation),
    ("list", Bench::list),
    ("many", Bench::many_conversations),
    ("image", Bench::image),
    ("tools", Bench::tools),
    ("tools", Bench::request_after_tools),
    ("tools", Bench::request_after_command),
    ("lines", Bench::long_lines),
    ("binary", Bench::binary),
];

fn main() {
    // The server is a process of its own: a child is charged with the memory of the one that it was forked from.
    if let Some(deltas) = std::env::var_os(SERVE).and_then(|deltas| deltas.to_str()?.parse().ok()) {
        return serve(deltas);
    }
    if let Some(pause) = std::env::var(TOOLS)
        .ok()
        .and_then(|pause| pause.parse().ok())
    {
        return serve_tools(Duration::from_millis(pause));
    }
    build_without_tests();
    let parts: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let memory = Path::new("/dev/shm");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let fast = if memory.is_dir() { memory } else { target };
    let state = tempfile::tempdir_in(fast).expect("a directory");
    let disk = tempfile::tempdir_in(target).expect("a directory");
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join(STATIC);
    let (short, long) = (Server::start(SHORT, None), Server::start(LONG, None));
    let bench = Bench {
        short: short.address.clone(),
        long: long.address.clone(),
        state: state.path().to_owned(),
        disk: disk.path().to_owned(),
        client: bare_client(),
        archive: Some(archive).filter(|archive| archive.is_file()),
        old: std::env::var_os("Q_OLD").map(PathBuf::from),
    };
    println!("| | q | beside it | ratio | goal |\n|---|---|---|---|---|");
    for (name, measure) in PARTS {
        if parts.is_empty() || parts.iter().any(|part| part == name) {
            measure(&bench);
        }
    }
}

/// Builds q again as it is installed. Beside the bench it has the features that libraries of the tests ask for, such as the
/// tables of Unicode that proptest wants: half a megabyte of the program, and more of its memory.
fn build_without_tests() {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked", "--quiet"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs");
    assert!(built.success(), "q is built");
}

struct Bench {
    /// Addresses of the servers of the short and of the long answer.
    short: String,
    long: String,
    state: PathBuf,
    disk: PathBuf,
    client: Option<PathBuf>,
    archive: Option<PathBuf>,
    /// An older q, beside which some things are measured.
    old: Option<PathBuf>,
}

/// What is measured: a name, and how to start it.
type Contestant<'a> = (&'a str, Box<dyn Fn() -> Command + 'a>);

fn contestant<'a>(name: &'a str, command: impl Fn() -> Command + 'a) -> Contestant<'a> {
    (name, Box::new(command))
}

impl Bench {
    fn short_answer(&self) {
        let saved = |state| self.q(&self.short, state, &["question"]);
        let mut contestants: Vec<Contestant> = vec![
            contestant("q", || saved(&self.state)),
            contestant("curl", || curl(&self.short)),
            contestant("--no-save", || {
                self.q(&self.short, &self.state, &["--no-save", "question"])
            }),
            contestant("on disk", || saved(&self.disk)),
        ];
        if let Some(client) = &self.client {
            let address = self.short.trim_start_matches("http://");
            contestants.push(contestant("client", move || with(quiet(client), [address])));
        }
        if let Some(archive) = &self.archive {
            contestants.push(contestant("static", || {
                self.program(archive, &self.short, &self.state, &["question"])
            }));
        }
        let results = compare(&contestants, 200);
        let saved = format!("{SHORT} deltas, saved");
        results.times(&saved, "q", "curl", "curl", "0.3");
        if self.client.is_some() {
            results.times("the same", "q", "a bare static client", "client", "2.5");
        }
        if self.archive.is_some() {
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

    /// From the moment in which a server writes a delta to the one in which its word can be read.
    fn one_delta(&self) {
        let programs: [&dyn Fn(&str) -> Command; 2] = [
            &|server| self.q(server, &self.state, &["--no-save", "question"]),
            &curl,
        ];
        for (name, on_terminal) in [
            ("one delta, into a pipe", false),
            ("one delta, to a terminal", true),
        ] {
            let mut latencies = [Vec::new(), Vec::new()];
            for _ in 0..10 {
                for (program, latencies) in programs.iter().zip(&mut latencies) {
                    latencies.extend(watch(program, on_terminal));
                }
            }
            let [q, curl] = latencies.map(|seconds| Median {
                seconds: middle(seconds),
                processor: 0.0,
                memory: 0.0,
            });
            times(name, q, "curl", curl, "1");
        }
    }

    fn long_answer(&self) {
        let pipeline = format!(
            "curl -sN -H 'content-type: application/json' -d '{BODY}' {}/v1/chat/completions | sed -u -n 's/^data: {{/{{/p' | \
             jq -j --unbuffered '.choices[0].delta.content // empty'",
            self.long
        );
        let terminal = drained_terminal();
        let on_terminal = |wrap: &str, style: &str| {
            let mut command = self.q(&self.long, &self.state, &["question"]);
            command.env("Q_WRAP", wrap).env("Q_STYLE", style);
            command.stdout(terminal.try_clone().expect("a descriptor"));
            command
        };
        let mut contestants: Vec<Contestant> = vec![
            contestant("q", || self.q(&self.long, &self.state, &["question"])),
            contestant("curl", || curl(&self.long)),
            contestant("jq", || with(quiet("sh"), ["-c", &pipeline])),
            contestant("terminal", || on_terminal("false", "false")),
            contestant("wrapped", || on_terminal("true", "false")),
            contestant("styled", || on_terminal("true", "true")),
        ];
        if let Some(old) = &self.old {
            contestants.push(contestant("old", || {
                self.program(old, &self.long, &self.state, &["question"])
            }));
        }
        let results = compare(&contestants, 7);
        results.times(&format!("{LONG} deltas"), "q", "curl", "curl", "");
        if self.old.is_some() {
            let (q, old) = (results.of("q").processor, results.of("old").processor);
            let what = "the same, processor time";
            line(what, &shown(q), "Q_OLD", &shown(old), q / old, "0.65");
        }
        results.times("the same", "q", "`curl \\| sed \\| jq`", "jq", "0.05");
        let what = "the same on a terminal";
        results.times(what, "terminal", "into /dev/null", "q", "3");
        results.times("the same, wrapped", "wrapped", "into /dev/null", "q", "3");
        let what = "the same, wrapped and styled";
        results.times(what, "styled", "only wrapped", "wrapped", "1.5");
    }

    fn instructions(&self) {
        events::measure(&self.state, self.old.as_deref());
    }

    /// Nothing is set up that only a request needs.
    fn known_answer(&self) {
        let known = || {
            let arguments = ["--cached", "--no-save", "question"];
            let mut command = self.q(&self.short, &self.state, &arguments);
            command.env("XDG_CACHE_HOME", &self.state);
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
    fn short_answer_over_tls(&self) {
        let authority = self.state.join("authority.pem");
        let store = self.state.join("store.pem");
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
                    let command = self.q(&server.address, &self.state, &["question"]);
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

    /// A server far away, and the file with its authority's certificate.
    fn far(&self) -> (Far, PathBuf) {
        let certificate = self.state.join("far.pem");
        let far = Far::start(&certificate, |body| {
            let results = body.matches(r#""role":"tool""#).count();
            if body.contains(r#""tools":"#) && results + 1 < ROUNDS {
                CALL.to_owned()
            } else {
                event(0) + END
            }
        });
        (far, certificate)
    }

    /// From the end of a pipe to the first byte of the answer.
    fn first_word_from_afar(&self) {
        let (far, certificate) = self.far();
        let arguments = ["--no-save", "question"];
        let q = || with_authority(self.q(&far.address, &self.state, &arguments), &certificate);
        let trusted = [OsStr::new("--cacert"), certificate.as_os_str()];
        let piped_curl = || with(posting(&far.address, "@-"), trusted);
        let programs: [&dyn Fn() -> Command; 2] = [&q, &piped_curl];
        let mut waited = [Vec::new(), Vec::new()];
        for _ in 0..20 {
            for (command, waited) in programs.iter().zip(&mut waited) {
                waited.push(after_pipe(command()));
            }
        }
        let [q, curl] = waited.map(middle);
        let trips = |seconds: f64| {
            let trips = seconds / ROUND_TRIP.as_secs_f64();
            format!("{} ({trips:.2} round trips)", shown(seconds))
        };
        let what = "from the end of a pipe to the first word, TLS, a round trip of 50 ms";
        let (own, other, goal) = (trips(q), trips(curl), "1.2 round trips");
        line(what, &own, "curl", &other, q / curl, goal);
    }

    fn rounds_afar(&self) {
        let (far, certificate) = self.far();
        let configured = self.configure_command();
        let arguments = ["--no-save", "-t", "now", "question"];
        let q = || {
            let mut command = self.q(&far.address, &self.state, &arguments);
            command.env("XDG_CONFIG_HOME", &configured);
            with_authority(command, &certificate)
        };
        let mut times = Vec::new();
        for _ in 0..10 {
            times.push(measure(q(), "q").time.as_secs_f64());
        }
        let connections = far.connections() as f64 / times.len() as f64;
        let seconds = middle(times);
        let trips = seconds / ROUND_TRIP.as_secs_f64();
        println!(
            "| {ROUNDS} rounds of a command at this distance | {} | connections: {connections} | {trips:.1} round trips | 10 |",
            shown(seconds)
        );
    }

    fn large_conversation(&self) {
        let (empty, large) = (self.state.join("empty"), self.state.join("large"));
        self.converse(&empty, "bench", "", 0);
        self.converse(&large, "bench", "", LARGE);
        let asked = ["-s", "bench", "question"];
        let contestants: Vec<Contestant> = vec![
            contestant("empty", || self.q(&self.short, &empty, &asked)),
            contestant("large", || self.q(&self.short, &large, &asked)),
        ];
        let results = compare(&contestants, 30);
        let name = format!("a follow-up on {} MB", LARGE / 1_000_000);
        let label = "on an empty conversation";
        results.more(&name, "large", label, "empty", "");
        self.instructions_of_follow_up(&name);
    }

    /// What a large conversation adds to a follow-up, with q and with an older one. Each asks in conversations of its own.
    fn instructions_of_follow_up(&self, name: &str) {
        let added = |program: &Path| {
            let count = |bytes: usize| {
                let state = tempfile::tempdir_in(&self.state).expect("a directory");
                self.converse(state.path(), "bench", "", bytes);
                let asked = ["-s", "bench", "question"];
                let mut command = self.program(program, &self.short, state.path(), &asked);
                instructions::count(&mut command)
            };
            Some(count(LARGE)?.saturating_sub(count(0)?))
        };
        compare_instructions(&format!("{name}, instructions added"), added, "0.55");
    }

    /// Instructions of a search, with q and with an older one.
    fn instructions_of_search(&self, name: &str, state: &Path) {
        let searched = |program: &Path| {
            let mut command = self.program(program, &self.short, state, &["--list", "needle"]);
            instructions::count(&mut command)
        };
        compare_instructions(&format!("{name}, instructions"), searched, "");
    }

    /// One of the conversations has the word that is looked for.
    fn list(&self) {
        let many = self.state.join("searched");
        for number in 0..SEARCHED {
            let has_it = number == SEARCHED / 2;
            let word = if has_it { "needle" } else { "hay" };
            self.converse(&many, &format!("talk-{number}"), word, USUAL);
        }
        let contestants: Vec<Contestant> = vec![
            contestant("q", || self.q(&self.short, &many, &["--list", "needle"])),
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
                contestant("q", || self.q(&self.short, &many, &["--list", word])),
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
        self.instructions_of_search(&name, &many);
    }

    fn many_conversations(&self) {
        let directories = [("few", FEW), ("many", MANY)].map(|(name, count)| {
            let state = self.state.join(name);
            for number in 0..count {
                let (minute, milliseconds) = (number / 60_000, number % 60_000);
                let id = format!("session_2026010100{minute:02}{milliseconds:05}");
                self.converse(&state, &id, "hay", SMALL);
            }
            state
        });
        let [few, many] = &directories;
        let terminal = drained_terminal();
        let listed = || {
            let mut command = self.q(&self.short, many, &["--list"]);
            command.stdout(terminal.try_clone().expect("a descriptor"));
            command
        };
        let contestants: Vec<Contestant> = vec![
            contestant("few", || self.q(&self.short, few, &["question"])),
            contestant("many", || self.q(&self.short, many, &["question"])),
            contestant("list", listed),
        ];
        let results = compare(&contestants, 30);
        let name = format!("a question among {MANY} conversations");
        results.times(&name, "many", &format!("among {FEW}"), "few", "1");
        let name = format!("`--list` on a terminal, {MANY} conversations");
        alone(&name, results.of("list").seconds, "0.5 s");
    }

    /// What an image costs beside a question without any.
    fn image(&self) {
        let image = self.state.join("image.png");
        std::fs::write(&image, b"\x89PNG\r\n\x1A\n".repeat(IMAGE / 8)).expect("a file");
        let path = image.to_str().expect("a path");
        let asked = ["-a", path, "--no-save", "question"];
        let contestants: Vec<Contestant> = vec![
            contestant("plain", || self.q(&self.short, &self.state, &asked[2..])),
            contestant("image", || self.q(&self.short, &self.state, &asked)),
        ];
        let results = compare(&contestants, 20);
        results.more("an image of 3.75 MB", "image", "without", "plain", "");
    }

    /// Writes a configuration with tool servers, and returns its directory.
    fn configure_tools(&self) -> PathBuf {
        let directory = self.state.join("configured");
        std::fs::create_dir_all(directory.join("q")).expect("a directory");
        let section = |(name, pause): (&str, u64)| {
            let program = std::env::current_exe().expect("a program");
            let stamp = self.stamp(name);
            format!(
                "[tools.{name}]\ncommand = [{program:?}]\nenv = {{ {TOOLS} = \"{pause}\", {STAMP} = {stamp:?} }}\n"
            )
        };
        let sections = [
            ("now", 0),
            ("one", 100),
            ("two", 100),
            ("three", 100),
            ("slow", 3000),
        ];
        let sections = sections.map(section);
        std::fs::write(directory.join("q/config.toml"), sections.concat()).expect("a file");
        directory
    }

    /// Where a tool server writes down when it listed its tools.
    fn stamp(&self, server: &str) -> PathBuf {
        self.state.join(format!("stamp.{server}"))
    }

    /// Without -t a configured server must cost nothing; with it, little beside what the servers take themselves.
    fn tools(&self) {
        let (plain, configured) = (self.state.join("plain"), self.configure_tools());
        std::fs::create_dir_all(plain.join("q")).expect("a directory");
        // Both have a file to read.
        std::fs::write(plain.join("q/config.toml"), "messages = 10\n").expect("a file");
        let q = |configuration: &Path, arguments: &[&str]| {
            let mut command = self.q(&self.short, &self.state, arguments);
            command.args(["--no-save", "question"]);
            command.env("XDG_CONFIG_HOME", configuration);
            command
        };
        // What a server lists is kept where the exchange is saved.
        let saved = |arguments: &[&str]| {
            let mut command = self.q(&self.short, &self.state, arguments);
            command.arg("question");
            command.env("XDG_CONFIG_HOME", &configured);
            command.env("XDG_CACHE_HOME", &self.state);
            command
        };
        // The first run waits for the server.
        measure(saved(&["-t", "slow"]), "slow");
        let contestants: Vec<Contestant> = vec![
            contestant("without", || saved(&[])),
            contestant("slow", || saved(&["-t", "slow"])),
            contestant("none", || q(&plain, &[])),
            contestant("unused", || q(&configured, &[])),
            contestant("one", || q(&configured, &["-t", "one"])),
            contestant("three", || q(&configured, &["-t", "one,two,three"])),
        ];
        let results = compare(&contestants, 50);
        let what = "tool servers that are not used";
        results.times(what, "unused", "none configured", "none", "1");
        let what = "three tool servers that start in 100 ms";
        results.times(what, "three", "one of them", "one", "1");
        let what = "a known tool server that takes 3 s to start and is not called";
        results.more(what, "slow", "without `-t`", "without", "+50 ms");
    }

    /// From the moment in which the server lists its tools to the request of the model.
    fn request_after_tools(&self) {
        let gap = |listener: &TcpListener| {
            let (stream, _) = listener.accept().expect("a connection");
            stream.peek(&mut [0]).expect("a request");
            let asked = now();
            let listed = std::fs::read_to_string(self.stamp("now")).expect("a server that ran");
            (stream, asked - listed.parse::<f64>().expect("a time"))
        };
        let what = "from a tool server's answer to the request";
        self.request_after(what, &self.configure_tools(), gap);
    }

    /// Writes a configuration with a command that may run, and returns its directory.
    fn configure_command(&self) -> PathBuf {
        let configured = self.state.join("command");
        std::fs::create_dir_all(configured.join("q")).expect("a directory");
        let section = "[tools.now.true]\nrun = [\"true\"]\nreads = true\n";
        std::fs::write(configured.join("q/config.toml"), section).expect("a file");
        configured
    }

    /// From the model's call of a command to the next request, without the time that the command takes by itself.
    fn request_after_command(&self) {
        let configured = self.configure_command();
        let gap = |listener: &TcpListener| {
            let (stream, _) = listener.accept().expect("a connection");
            reply(stream, [HEAD, CALL].concat().as_bytes()).expect("a reply");
            let called = Instant::now();
            let (stream, _) = listener.accept().expect("a connection");
            stream.peek(&mut [0]).expect("a request");
            let took = called.elapsed().as_secs_f64();
            let own = measure(quiet("true"), "true").time.as_secs_f64();
            (stream, took - own)
        };
        let what = "from a call of a command to the request, beside its own time";
        self.request_after(what, &configured, gap);
    }

    /// Measures how long a request takes, which is the last of a question with the tools `now`.
    fn request_after(
        &self,
        what: &str,
        configured: &Path,
        gap: impl Fn(&TcpListener) -> (TcpStream, f64),
    ) {
        let (listener, address) = listen();
        let gaps = (0..50).map(|_| {
            let arguments = ["--no-save", "-t", "now", "question"];
            let mut command = self.q(&address, &self.state, &arguments);
            command.env("XDG_CONFIG_HOME", configured);
            command.env("Q_RETRIES", "0");
            command.stdin(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().expect("q");
            let (stream, seconds) = gap(&listener);
            reply(stream, &answer(1))
                .and_then(|()| child.wait())
                .expect("an end");
            seconds
        });
        alone(what, middle(gaps.collect()), "5 ms");
    }

    /// An answer of long lines, and one of lines twice as long, by the instructions that they take: for each kind of text, as
    /// one piece, in small pieces, and for `-x`. The line of the table is the worst of them.
    fn long_lines(&self) {
        if quiet("valgrind").arg("--version").status().is_err() {
            println!("| a line twice as long | valgrind is not there | | | 2.5 |");
            return;
        }
        let terminal = drained_terminal();
        let mut worst = (0.0, String::new(), 0, 0);
        for repeated in REPEATED.split('☐') {
            let [short, long] = [LINE, 2 * LINE]
                .map(|length| self.instructions_of_lines(repeated, length, &terminal));
            for ((way, short), (_, long)) in short.into_iter().zip(long) {
                let ratio = long as f64 / short as f64;
                if ratio > worst.0 {
                    worst = (
                        ratio,
                        format!("`{}`, {way}", repeated.escape_debug()),
                        short,
                        long,
                    );
                }
            }
        }
        let (ratio, what, short, long) = worst;
        let millions = |count: u64| format!("{:.1} million instructions", count as f64 / 1e6);
        let what = format!("lines twice as long, the worst kind ({what})").replace('|', "\\|");
        line(
            &what,
            &millions(long),
            &format!("{LINE} bytes each"),
            &millions(short),
            ratio,
            "2.5",
        );
    }

    /// The instructions that it takes to show an answer with lines of this length in each way.
    fn instructions_of_lines(
        &self,
        repeated: &str,
        length: usize,
        terminal: &OwnedFd,
    ) -> Vec<(&'static str, u64)> {
        let middle = repeated.repeat(length / repeated.len());
        let parts = PLACES
            .iter()
            .map(|(before, after)| format!("{before}{middle}{after}"));
        let answer = Vec::from_iter(parts).concat();
        let (listener, address) = listen();
        let letters = Vec::from_iter(answer.chars());
        let events = letters
            .chunks(4)
            .map(|letters| event_of(&letters.iter().collect::<String>()));
        let stream = [HEAD, &Vec::from_iter(events).concat(), END].concat();
        let server = std::thread::spawn(move || {
            let (connection, _) = listener.accept().expect("a connection");
            reply(connection, stream.as_bytes()).expect("a reply");
        });
        // The answer is saved, so the other ways show the same. `-x` refuses some of it, which takes its time, too.
        let counts = [
            (
                "in small pieces",
                &["-s", "lines", "question"][..],
                true,
                &[0][..],
            ),
            ("in one piece", &["-s", "lines", "--last"], true, &[0]),
            ("for `-x`", &["-s", "lines", "--last", "-x"], false, &[0, 1]),
        ]
        .map(|(way, arguments, on_terminal, codes)| {
            let mut command = self.q(&address, &self.state, arguments);
            command.env("TERM", "xterm").env("LC_ALL", "C.UTF-8");
            command.env("Q_RETRIES", "0");
            let mut stdout = Stdio::null();
            if on_terminal {
                stdout = terminal.try_clone().expect("a descriptor").into();
            }
            let count = instructions::count_ending_with(codes, stdout, &mut command);
            (way, count.unwrap_or_else(|| panic!("{way}: no count")))
        });
        server.join().expect("a server");
        counts.to_vec()
    }

    fn binary(&self) {
        let size = |path: &Path| {
            std::fs::metadata(path).map_or(0.0, |metadata| metadata.len() as f64 / 1e6)
        };
        let archive = self
            .archive
            .as_ref()
            .map_or_else(String::new, |path| format!("static: {:.2} MB", size(path)));
        let own = size(Path::new(Q));
        println!("| binary | {own:.2} MB | {archive} | | 4.6 MB |");
    }

    fn q(&self, server: &str, state: &Path, arguments: &[&str]) -> Command {
        self.program(Path::new(Q), server, state, arguments)
    }

    fn program(&self, program: &Path, server: &str, state: &Path, arguments: &[&str]) -> Command {
        let mut command = quiet(program);
        command.env_clear().arg("-q").args(arguments);
        command.env("HOME", &self.state);
        command.env("XDG_STATE_HOME", state);
        command.env("OPENAI_BASE_URL", format!("{server}/v1"));
        command.env("OPENAI_API_KEY", "sk-0123456789");
        command
    }

    /// Writes a conversation of this name that has about this many bytes, with this word in every message.
    fn converse(&self, state: &Path, name: &str, word: &str, bytes: usize) {
        let sessions = state.join("q/sessions");
        std::fs::create_dir_all(&sessions).expect("a directory");
        let text = "a line of \\\"text\\\" as it is\\n".repeat(100);
        let time = "2026-11-21T10:00:00.000Z";
        // Piece by piece: the system would count the memory of this process as that of its children.
        let mut file =
            BufWriter::new(File::create(sessions.join(format!("{name}.json"))).expect("a file"));
        let mut write = |piece: String| file.write_all(piece.as_bytes()).expect("a file");
        write(format!(
            "{{\"version\":1,\"provider\":\"openai\",\"model\":\"gpt-6-luna\",\"created\":\"{time}\",\"updated\":\"{time}\",\"messages\":["
        ));
        for number in 0..bytes / text.len() {
            let role = if number % 2 == 0 { "user" } else { "assistant" };
            let comma = if number == 0 { "" } else { "," };
            write(format!(
                "{comma}\n{{\"role\":\"{role}\",\"content\":\"{number} {word} {text}\",\"timestamp\":\"{time}\"}}"
            ));
        }
        write("\n]}\n".to_owned());
    }
}

/// A program whose output nobody reads.
fn quiet(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdout(Stdio::null());
    command
}

fn with<A: AsRef<OsStr>>(mut command: Command, arguments: impl IntoIterator<Item = A>) -> Command {
    command.args(arguments);
    command
}

/// A command that trusts the authorities in this file.
fn with_authority(mut command: Command, file: &Path) -> Command {
    command.env("SSL_CERT_FILE", file);
    command
}

/// Ends the input of a program after a while; returns how long its output takes from there, in seconds.
fn after_pipe(mut command: Command) -> f64 {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).spawn().expect("a program");
    let mut input = child.stdin.take().expect("a pipe");
    std::thread::sleep(PIPE);
    input.write_all(BODY.as_bytes()).expect("a pipe");
    drop(input);
    let ended = Instant::now();
    let mut output = child.stdout.take().expect("a pipe");
    output.read_exact(&mut [0]).expect("an answer");
    let waited = ended.elapsed().as_secs_f64();
    let _ = output.read_to_end(&mut Vec::new());
    let is_right = child.wait().is_ok_and(|status| status.success());
    assert!(is_right, "a program failed");
    waited
}

/// A port, and its address.
fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    (listener, address)
}

/// A pseudo-terminal on which everything is read at once.
fn drained_terminal() -> OwnedFd {
    let (mut own, program) = pseudo_terminal::open(80).expect("a pseudo-terminal");
    std::thread::spawn(move || {
        let mut buffer = [0; 64 << 10];
        while own.read(&mut buffer).is_ok_and(|count| count > 0) {}
    });
    program
}

/// Sends a program one delta after another, each once the word of the one before can be read; returns how long each took,
/// in seconds.
fn watch(program: &dyn Fn(&str) -> Command, on_terminal: bool) -> Vec<f64> {
    let (listener, address) = listen();
    let (mut output, stdout): (Box<dyn Read>, Stdio) = if on_terminal {
        let (own, program) = pseudo_terminal::open(80).expect("a pseudo-terminal");
        (Box::new(own), program.into())
    } else {
        let (output, stdout) = std::io::pipe().expect("a pipe");
        (Box::new(output), stdout.into())
    };
    let mut command = program(&address);
    let child = command.stdout(stdout).stdin(Stdio::null());
    let mut child = child.stderr(Stdio::null()).spawn().expect("a program");
    // Only the program has the other end now.
    drop(command);
    let (mut stream, _) = listener.accept().expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    reply(&mut stream, HEAD.as_bytes()).expect("a request");
    let (mut shown, mut part) = (Vec::new(), [0; 4096]);
    let latencies = (0..WATCHED).map(|number| {
        let (event, word) = (event(number), format!("word{number}"));
        shown.clear();
        let began = Instant::now();
        stream.write_all(event.as_bytes()).expect("a socket");
        let is_word = |bytes: &[u8]| bytes == word.as_bytes();
        while !shown.windows(word.len()).any(is_word) {
            let count = output.read(&mut part).expect("output");
            shown.extend_from_slice(&part[..count]);
        }
        began.elapsed().as_secs_f64()
    });
    // The first of them start what the others find running.
    let latencies = latencies.skip(WATCHED / 10).collect();
    stream.write_all(END.as_bytes()).expect("a socket");
    drop(stream);
    // Where nobody reads a terminal, its end is an error.
    let _ = output.read_to_end(&mut shown);
    let is_right = child.wait().is_ok_and(|status| status.success());
    assert!(is_right, "a program failed");
    latencies
}

const BODY: &str =
    r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"question"}]}"#;

fn curl(server: &str) -> Command {
    posting(server, BODY)
}

/// curl that posts these data, or `@-` for what it reads.
fn posting(server: &str, data: &str) -> Command {
    let command = with(
        quiet("curl"),
        ["-sN", "-H", "content-type: application/json"],
    );
    let url = format!("{server}/v1/chat/completions");
    with(command, ["-d", data, &url])
}

/// One run: how long it took, by the clock and of the processor, and the most memory that it had at once (KiB).
#[derive(Clone, Copy)]
struct Run {
    time: Duration,
    /// Of the processor, in seconds.
    processor: f64,
    memory: i64,
}

/// What the runs of one contestant came to: seconds, and bytes.
#[derive(Clone, Copy)]
struct Median {
    seconds: f64,
    processor: f64,
    memory: f64,
}

struct Results(Vec<(String, Median)>);

impl Results {
    fn of(&self, name: &str) -> Median {
        let found = self.0.iter().find(|(other, _)| other == name);
        found.expect(name).1
    }

    /// Prints a line of the table: how often as long as `beside` one of them takes. `label` is what the line calls the other.
    fn times(&self, what: &str, name: &str, label: &str, beside: &str, goal: &str) {
        times(what, self.of(name), label, self.of(beside), goal);
    }

    /// Prints a line that says how much more than `beside` one of them takes, in time and in memory.
    fn more(&self, what: &str, name: &str, label: &str, beside: &str, goal: &str) {
        let (q, other) = (self.of(name), self.of(beside));
        // Rounded, and without the minus of a zero.
        let tenths = |value: f64| (value * 10.0).round() / 10.0 + 0.0;
        let time = tenths((q.seconds - other.seconds) * 1e3);
        let memory = tenths((q.memory - other.memory) / 1e6);
        let (own, others) = (shown(q.seconds), shown(other.seconds));
        println!(
            "| {what} | {own} | {label}: {others} | {time:+.1} ms, {memory:+.1} MB | {goal} |"
        );
    }
}

/// Runs all in turn, so often.
fn compare(contestants: &[Contestant], runs: usize) -> Results {
    let mut all: Vec<Vec<Run>> = vec![Vec::new(); contestants.len()];
    for round in 0..=runs {
        for ((name, command), results) in contestants.iter().zip(&mut all) {
            let run = measure(command(), name);
            // The first round warms up.
            if round > 0 {
                results.push(run);
            }
        }
    }
    let mut results = Vec::new();
    for ((name, _), runs) in contestants.iter().zip(&all) {
        let median = Median {
            seconds: middle(runs.iter().map(|run| run.time.as_secs_f64()).collect()),
            processor: middle(runs.iter().map(|run| run.processor).collect()),
            memory: middle(runs.iter().map(|run| run.memory as f64 * 1024.0).collect()),
        };
        results.push(((*name).to_owned(), median));
    }
    Results(results)
}

fn middle(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn shown(seconds: f64) -> String {
    match seconds * 1e3 {
        small if small < 1.0 => format!("{:.0} µs", small * 1e3),
        small if small < 100.0 => format!("{small:.1} ms"),
        large => format!("{large:.0} ms"),
    }
}

/// A line of the table; a goal is the most that the ratio should be.
fn line(what: &str, q: &str, name: &str, other: &str, ratio: f64, goal: &str) {
    println!("| {what} | {q} | {name}: {other} | {ratio:.2} | {goal} |");
}

fn times(what: &str, q: Median, name: &str, other: Median, goal: &str) {
    let ratio = q.seconds / other.seconds;
    let (own, other) = (shown(q.seconds), shown(other.seconds));
    line(what, &own, name, &other, ratio, goal);
}

/// A line with instructions: those of q beside those of the program that `Q_OLD` names, if it names one.
fn compare_instructions(what: &str, count: impl Fn(&Path) -> Option<u64>, goal: &str) {
    let Some(own) = count(Path::new(Q)) else {
        println!("| {what} | skipped: valgrind is missing | | | |");
        return;
    };
    let millions = |count: u64| format!("{:.1} M", count as f64 / 1e6);
    let old = std::env::var_os("Q_OLD").and_then(|old| count(Path::new(&old)));
    let Some(old) = old else {
        println!("| {what} | {} | | | |", millions(own));
        return;
    };
    let ratio = own as f64 / old as f64;
    line(what, &millions(own), "`Q_OLD`", &millions(old), ratio, goal);
}

/// A line that has nothing to be compared with.
fn alone(what: &str, seconds: f64, goal: &str) {
    println!("| {what} | {} | | | {goal} |", shown(seconds));
}

fn measure(mut command: Command, name: &str) -> Run {
    let began = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let (success, processor, memory) = wait(&child);
    let time = began.elapsed();
    assert!(success, "{name} failed");
    // The standard library does not know that it has been waited for.
    let _ = child.try_wait();
    Run {
        time,
        processor,
        memory,
    }
}

/// Waits for a child; returns whether it succeeded, its time of the processor, and the most memory that it had.
fn wait(child: &Child) -> (bool, f64, i64) {
    let mut status = 0;
    // SAFETY: `rusage` is plain data, for which zeroes are a value; both pointers are to locals; the child is ours and
    // nobody else waits for it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    (
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
        seconds(usage.ru_utime) + seconds(usage.ru_stime),
        usage.ru_maxrss,
    )
}

/// Makes a new process the server; the value is its number of deltas.
const SERVE: &str = "Q_BENCH_SERVE";

/// Makes the server speak TLS; the value is the file for its authority's certificate.
const AUTHORITY: &str = "Q_BENCH_AUTHORITY";

/// Makes a new process a tool server; the value is how many milliseconds it takes to start.
const TOOLS: &str = "Q_BENCH_TOOLS";

/// The file in which the tool server writes when it listed its tools.
const STAMP: &str = "Q_BENCH_STAMP";

/// A server in a process of its own, which ends with this value.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(deltas: usize, authority: Option<&Path>) -> Server {
        let program = std::env::current_exe().expect("a program");
        let mut command = Command::new(program);
        if let Some(path) = authority {
            command.env(AUTHORITY, path);
        }
        let child = command.env(SERVE, deltas.to_string());
        let mut child = child.stdout(Stdio::piped()).spawn().expect("a server");
        let mut address = String::new();
        BufReader::new(child.stdout.take().expect("a pipe"))
            .read_line(&mut address)
            .expect("an address");
        Server {
            child,
            address: address.trim().to_owned(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How an answer begins and ends.
const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
const END: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// An event with one word.
fn event(number: usize) -> String {
    event_of(&format!("word{number} "))
}

/// An event with a piece of text.
fn event_of(text: &str) -> String {
    let text = serde_json::Value::from(text);
    format!(
        "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}},\"finish_reason\":null}}]}}\n\n"
    )
}

/// The answer to a question: a stream of this many deltas.
fn answer(deltas: usize) -> Vec<u8> {
    let events: String = (0..deltas).map(|number| event(number % 10)).collect();
    [HEAD, &events, END].concat().into_bytes()
}

/// Answers every request with a stream of this many deltas, and prints at which address.
fn serve(deltas: usize) {
    let (listener, address) = listen();
    let answer = answer(deltas);
    let tls = std::env::var_os(AUTHORITY).map(|path| {
        let authority = Authority::new("bench");
        std::fs::write(path, authority.pem()).expect("a file");
        authority.server(&["127.0.0.1"], 2000..=2999)
    });
    let scheme = if tls.is_some() { "https" } else { "http" };
    println!("{}", address.replace("http", scheme));
    for stream in listener.incoming().flatten() {
        // A client that goes away early is no concern.
        let _ = match &tls {
            None => reply(stream, &answer),
            Some(config) => {
                let connection =
                    ServerConnection::new(Arc::clone(config)).expect("a server's side of TLS");
                let mut stream = StreamOwned::new(connection, stream);
                reply(&mut stream, &answer).and_then(|()| {
                    stream.conn.send_close_notify();
                    stream.flush()
                })
            }
        };
    }
}

/// The events of a reply that calls a command.
const CALL: &str = concat!(
    r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call00001","function":{"name":"now__true","arguments":"{}"}}]}}]}"#,
    "\n\n",
    r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
    "\n\ndata: [DONE]\n\n",
);

fn reply(mut stream: impl Read + Write, answer: &[u8]) -> std::io::Result<()> {
    http::read_body(&mut stream)?;
    stream.write_all(answer)
}

/// Speaks the Model Context Protocol on standard input and output as far as q needs it to have one tool.
fn serve_tools(pause: Duration) {
    std::thread::sleep(pause);
    let say = |id: usize, result: &str| {
        println!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}")
    };
    for line in std::io::stdin().lines().map_while(Result::ok) {
        if line.contains("\"initialize\"") {
            say(
                1,
                r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"b","version":"1"}}"#,
            );
        } else if line.contains("\"tools/list\"") {
            let stamp = std::env::var_os(STAMP).expect("a place");
            std::fs::write(stamp, now().to_string()).expect("a file");
            say(
                2,
                r#"{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}"#,
            );
        }
    }
}

/// Seconds on the clock that all processes share.
fn now() -> f64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .expect("a time")
        .as_secs_f64()
}

/// Compiles the bare client, statically linked; `None` where that cannot be done.
fn bare_client() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bare-client");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench/client.rs");
    let compiled = Command::new("rustc")
        .args("--edition 2024 -O -C target-feature=+crt-static -C panic=abort -o".split(' '))
        .arg(&path)
        .arg(source)
        .output();
    match compiled {
        Ok(output) if output.status.success() => Some(path),
        // Its line is missing.
        _ => None,
    }
}
