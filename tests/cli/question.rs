//! Input that comes slowly, stays open or is very large. The rest is in the transcripts.

use std::io::{BufRead, BufReader, Read, Write};
use std::time::{Duration, Instant};
use std::{io, thread};

use crate::fixtures::{asked_by, case, make_pipe, prompt};
use crate::machine::{FASTER, fast_clock};
use crate::run::{API_KEY, Q};
use crate::sandbox::Sandbox;
use crate::server::Server;

#[test]
fn input_full_of_closing_tags_gets_a_tag_of_its_own_without_delay() {
    let tags = (2..60_000).map(|number| format!("</context-{number}>"));
    let input: String = ["</context>".to_owned()].into_iter().chain(tags).collect();
    let question = asked_by(|sandbox| sandbox.q(&["why"]).stdin(&input));
    let expected = format!("<context-60000>\n{input}\n</context-60000>\n\nwhy");
    let is_right = question == expected;
    assert!(is_right, "{}…", &question[..question.len().min(100)]);
}

/// Runs q until it notes what it waits for, lets `come` send something, and expects nothing but this note, after ten
/// seconds on q's clock.
#[track_caller]
fn expect_note_after_ten_seconds(q: Q, note: &str, answer: &str, come: impl FnOnce() + Send) {
    let (notes, stderr) = io::pipe().unwrap();
    let started = Instant::now();
    let (waited, rest) = thread::scope(|scope| {
        let noted = scope.spawn(|| {
            let (mut notes, mut first, mut rest) =
                (BufReader::new(notes), String::new(), String::new());
            notes.read_line(&mut first).unwrap();
            let waited = started.elapsed();
            assert_eq!(first, note);
            come();
            notes.read_to_string(&mut rest).unwrap();
            (waited, rest)
        });
        q.stderr_to(stderr).run().exit(0).stdout(answer);
        noted.join().expect("a thread that reads")
    });
    assert_eq!(rest, "");
    let is_right = waited >= Duration::from_secs(10) / FASTER;
    assert!(is_right, "after {waited:?}");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs LD_PRELOAD")]
fn after_ten_seconds_without_input_one_note_says_what_q_waits_for() {
    let server = Server::openai("fine");
    let sandbox = Sandbox::new().server_env(&server);
    let Some(clock) = fast_clock(&sandbox) else {
        return;
    };
    let (input, mut typing) = io::pipe().unwrap();
    let note = "q: waiting for standard input; use -n or Q_STDIN=none to not read it\n";
    let q = sandbox.q(&["why"]).stdin_from(input);
    let q = q.env("LD_PRELOAD", clock);
    expect_note_after_ten_seconds(q, note, "fine\n", move || {
        typing.write_all(b"log\n").unwrap();
    });
    let found = prompt(&server.request());
    assert_eq!(found, "<context>\nlog\n</context>\n\nwhy");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs LD_PRELOAD")]
fn the_note_about_waiting_also_comes_for_a_named_pipe_that_nobody_opens() {
    let server = Server::openai("fine");
    let sandbox = Sandbox::new().server_env(&server);
    let pipe = sandbox.home().join("pipe");
    make_pipe(&pipe);
    let Some(clock) = fast_clock(&sandbox) else {
        return;
    };
    let q = sandbox.q(&["-n", "-a", "pipe", "why"]);
    let q = q.env("LD_PRELOAD", clock);
    let come = || std::fs::write(&pipe, "log\n").unwrap();
    expect_note_after_ten_seconds(q, "q: waiting for pipe\n", "fine\n", come);
    let found = prompt(&server.request());
    assert_eq!(found, "<file name=\"pipe\">\nlog\n</file>\n\nwhy");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs LD_PRELOAD")]
fn the_note_about_waiting_also_comes_for_a_schema_from_a_pipe() {
    let server = Server::openai("{}");
    let sandbox = Sandbox::new().server_env(&server);
    let Some(clock) = fast_clock(&sandbox) else {
        return;
    };
    // The shell gives `<(command)` such a path.
    let (schema, mut command) = io::pipe().unwrap();
    let q = sandbox.q(&["-n", "--schema", "/dev/fd/0", "why"]);
    let q = q.stdin_from(schema).env("LD_PRELOAD", clock);
    let come = move || command.write_all(b"{\"type\":\"object\"}").unwrap();
    expect_note_after_ten_seconds(q, "q: waiting for /dev/fd/0\n", "{}\n", come);
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs LD_PRELOAD")]
fn the_note_about_waiting_also_comes_for_the_command_of_a_key() {
    let server = Server::openai("fine");
    let sandbox = Sandbox::new();
    let pipe = sandbox.home().join("key");
    make_pipe(&pipe);
    let url = server.url();
    sandbox.config(&format!(
        "[providers.work]\nbase_url = \"{url}/v1\"\nmodel = \"m\"\nkey_cmd = [\"cat\", \"key\"]\n"
    ));
    let Some(clock) = fast_clock(&sandbox) else {
        return;
    };
    let q = sandbox.q(&["-n", "why"]).env("LD_PRELOAD", clock);
    let come = || std::fs::write(&pipe, format!("{API_KEY}\n")).unwrap();
    let note = "q: waiting for cat, which prints the key for work\n";
    expect_note_after_ten_seconds(q, note, "fine\n", come);
}

#[test]
fn binary_input_is_refused_at_its_first_nul() {
    for input in ["\0", "text\0", "text\n\0more", "\0\0\0"] {
        let _case = case(input);
        let server = Server::openai("never");
        let sandbox = Sandbox::new().server_env(&server);
        for words in [&[][..], &["why"]] {
            let mut waiting = sandbox.q(words).stdin_open().spawn();
            waiting.write_stdin(input);
            // The pipe is still open: what comes after the NUL makes no difference.
            let outcome = waiting.wait();
            outcome.exit(2).stdout_is_empty().stderr_contains("binary");
        }
        server.expect_requests(0);
    }
}

#[test]
fn input_of_ten_million_bytes_is_accepted_and_one_byte_more_is_refused() {
    let longest = vec![b'y'; 10_000_000];
    let question = asked_by(|sandbox| sandbox.q(&["--no-save"]).stdin(&longest));
    let is_right = question.as_bytes() == longest;
    assert!(is_right, "{} bytes were sent", question.len());

    let server = Server::openai("never");
    let sandbox = Sandbox::new().server_env(&server);
    let mut waiting = sandbox.q(&["why"]).stdin_open().spawn();
    // The pipe is still open: q does not wait for its end.
    waiting.write_stdin(&longest).write_stdin("y");
    let outcome = waiting.wait();
    outcome.exit(2).stdout_is_empty();
    outcome.stderr_contains("10 MB");
    server.expect_requests(0);
}
