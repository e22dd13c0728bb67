//! Tool servers and commands.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use crate::bench::Bench;
use crate::programs::quiet;
use crate::runs::{Contestant, compare, contestant, measure, middle};
use crate::server::{CALL, HEAD, STAMP, TOOLS, answer, listen, now, reply};
use crate::table::alone;

/// Writes a configuration with tool servers, and returns its directory.
fn configure(bench: &Bench) -> PathBuf {
    let directory = bench.state.join("configured");
    std::fs::create_dir_all(directory.join("q")).expect("a directory");
    let section = |(name, pause): (&str, u64)| {
        let program = std::env::current_exe().expect("a program");
        let stamp = stamp(bench, name);
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
fn stamp(bench: &Bench, server: &str) -> PathBuf {
    bench.state.join(format!("stamp.{server}"))
}

/// Without -t a configured server must cost nothing; with it, little compared with what the servers take themselves.
pub fn tools(bench: &Bench) {
    let (plain, configured) = (bench.state.join("plain"), configure(bench));
    std::fs::create_dir_all(plain.join("q")).expect("a directory");
    // Both have a file to read.
    std::fs::write(plain.join("q/config.toml"), "messages = 10\n").expect("a file");
    let q = |configuration: &Path, arguments: &[&str]| {
        let mut command = bench.q(&bench.short, &bench.state, arguments);
        command.args(["--no-save", "question"]);
        command.env("XDG_CONFIG_HOME", configuration);
        command
    };
    // What a server lists is kept where the exchange is saved.
    let saved = |arguments: &[&str]| {
        let mut command = bench.q(&bench.short, &bench.state, arguments);
        command.arg("question");
        command.env("XDG_CONFIG_HOME", &configured);
        command.env("XDG_CACHE_HOME", &bench.state);
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
pub fn request_after_tools(bench: &Bench) {
    let gap = |listener: &TcpListener| {
        let (stream, _) = listener.accept().expect("a connection");
        stream.peek(&mut [0]).expect("a request");
        let asked = now();
        let listed = std::fs::read_to_string(stamp(bench, "now")).expect("a server that ran");
        (stream, asked - listed.parse::<f64>().expect("a time"))
    };
    let what = "from a tool server's answer to the request";
    request_after(bench, what, &configure(bench), gap);
}

/// From the model's call of a command to the next request, without the time that the command takes by itbench.
pub fn request_after_command(bench: &Bench) {
    let configured = bench.configure_command();
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
    let what = "from a call of a command to the request, besides its own time";
    request_after(bench, what, &configured, gap);
}

/// Measures how long a request takes, which is the last of a question with the tools `now`.
fn request_after(
    bench: &Bench,
    what: &str,
    configured: &Path,
    gap: impl Fn(&TcpListener) -> (TcpStream, f64),
) {
    let (listener, address) = listen();
    let gaps = (0..50).map(|_| {
        let arguments = ["--no-save", "-t", "now", "question"];
        let mut command = bench.q(&address, &bench.state, &arguments);
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
