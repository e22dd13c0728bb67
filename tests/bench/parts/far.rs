//! A server far away: how many round trips q takes.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::bench::Bench;
use crate::distance::{Far, ROUND_TRIP};
use crate::programs::{BODY, posting, with, with_authority};
use crate::runs::{measure, middle};
use crate::server::{CALL, END, event};
use crate::table::{line, shown};

/// How long a pipe takes before a question comes through it.
const PIPE: Duration = Duration::from_millis(300);

/// How often a model is asked before it answers, and once more.
const ROUNDS: usize = 6;

/// A server far away, and the file with its authority's certificate.
fn start(bench: &Bench) -> (Far, PathBuf) {
    let certificate = bench.state.join("far.pem");
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
pub fn first_word(bench: &Bench) {
    let (far, certificate) = start(bench);
    let arguments = ["--no-save", "question"];
    let q = || {
        with_authority(
            bench.q(&far.address, &bench.state, &arguments),
            &certificate,
        )
    };
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

pub fn rounds(bench: &Bench) {
    let (far, certificate) = start(bench);
    let configured = bench.configure_command();
    let arguments = ["--no-save", "-t", "now", "question"];
    let q = || {
        let mut command = bench.q(&far.address, &bench.state, &arguments);
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
