//! A long answer, at once and delta by delta.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::bench::Bench;
use crate::programs::{BODY, curl, drained_terminal, quiet, with};
use crate::pseudo_terminal;
use crate::runs::{Contestant, compare, contestant, middle};
use crate::server::{END, HEAD, event, listen, reply};
use crate::table::{line, shown, times};

/// Deltas of the answer, and those whose latency is measured in one answer.
pub const LONG: usize = 200_000;
const WATCHED: usize = 200;

/// From the moment in which a server writes a delta to the one in which its word can be read.
pub fn one_delta(bench: &Bench) {
    let programs: [&dyn Fn(&str) -> Command; 2] = [
        &|server| bench.q(server, &bench.state, &["--no-save", "question"]),
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
        let [q, curl] = latencies.map(middle);
        times(name, q, "curl", curl, "1");
    }
}

pub fn answer(bench: &Bench) {
    let pipeline = format!(
        "curl -sN -H 'content-type: application/json' -d '{BODY}' {}/v1/chat/completions | sed -u -n 's/^data: {{/{{/p' | \
         jq -j --unbuffered '.choices[0].delta.content // empty'",
        bench.long
    );
    let terminal = drained_terminal();
    let on_terminal = |wrap: &str, style: &str| {
        let mut command = bench.q(&bench.long, &bench.state, &["question"]);
        command.env("Q_WRAP", wrap).env("Q_STYLE", style);
        command.stdout(terminal.try_clone().expect("a descriptor"));
        command
    };
    let mut contestants: Vec<Contestant> = vec![
        contestant("q", || bench.q(&bench.long, &bench.state, &["question"])),
        contestant("curl", || curl(&bench.long)),
        contestant("jq", || with(quiet("sh"), ["-c", &pipeline])),
        contestant("terminal", || on_terminal("false", "false")),
        contestant("wrapped", || on_terminal("true", "false")),
        contestant("styled", || on_terminal("true", "true")),
    ];
    if let Some(old) = &bench.old {
        contestants.push(contestant("old", || {
            bench.program(old, &bench.long, &bench.state, &["question"])
        }));
    }
    let results = compare(&contestants, 7);
    results.times(&format!("{LONG} deltas"), "q", "curl", "curl", "");
    if bench.old.is_some() {
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
