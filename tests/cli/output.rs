//! What comes out: the answer on standard output, all else on standard error, and the exit code.

use std::io;
use std::net::TcpListener;
use std::process::Stdio;

use serde_json::json;

use crate::dialect::{DIALECTS, failure, openai_stream, word};
use crate::fixtures::{case, everybody, full_device, snapshot};
use crate::sandbox::{Q, Sandbox};
use crate::server::{Gate, Reply, Server};

/// A sandbox that finds each of the three APIs at `server`, and asks OpenAI's where a test does not say otherwise.
fn sandbox_of(server: &Server) -> Sandbox {
    Sandbox::new()
        .every_env(server)
        .env("Q_PROVIDER", "openai")
        .env("Q_RETRIES", "0")
}

/// A pipe that nobody reads.
fn unread_pipe() -> Stdio {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn each_piece_leaves_before_the_next_arrives() {
    let words = ["one ", "two\n", "\tthree"];
    for dialect in &DIALECTS {
        let _case = case(dialect.provider);
        let gates = [Gate::new(), Gate::new(), Gate::new()];
        let mut next = gates.iter();
        let mut reply = Reply::sse::<&[u8]>([]);
        for piece in (dialect.stream)(&words) {
            // After each event with a word the server waits until the word has been printed.
            let text = String::from_utf8(piece.clone()).unwrap();
            reply = reply.piece(piece);
            if ["one ", "two\\n", "three"]
                .iter()
                .any(|word| text.contains(word))
                && let Some(gate) = next.next()
            {
                reply = reply.wait_for(gate);
            }
        }
        assert!(next.next().is_none(), "a gate after each word");
        let server = Server::always(reply);
        let sandbox = Sandbox::new();
        let mut running = dialect.q(&sandbox, &server, &["why"]).spawn();
        let mut expected = String::new();
        for (word, gate) in words.iter().zip(&gates) {
            expected.push_str(word);
            assert_eq!(running.read_stdout_until(word), expected.as_bytes());
            gate.open();
        }
        running.wait().success().stdout(format!("{expected}\n"));
    }
}

#[test]
fn an_answer_ends_with_a_newline_and_is_otherwise_unchanged_in_a_pipe() {
    for (answer, expected) in [
        ("plain", "plain\n"),
        ("one newline\n", "one newline\n"),
        ("three\n\n\n", "three\n\n\n"),
        ("  \n indented \t", "  \n indented \t\n"),
        ("carriage return\r", "carriage return\r\n"),
        ("a\r\nb\r\n", "a\r\nb\r\n"),
        (
            "\u{1b}[31mred\u{1b}[0m \u{7}\u{8}\u{0}\u{7f}\u{85}\u{9b}",
            "\u{1b}[31mred\u{1b}[0m \u{7}\u{8}\u{0}\u{7f}\u{85}\u{9b}\n",
        ),
        (
            "\u{202e}turned\u{2066} \u{feff}\u{fffd} \u{10ffff}",
            "\u{202e}turned\u{2066} \u{feff}\u{fffd} \u{10ffff}\n",
        ),
        ("```sh\nls -l\n```", "```sh\nls -l\n```\n"),
    ] {
        let _case = case(answer);
        let server = Server::openai(answer);
        let sandbox = sandbox_of(&server);
        for args in [&["why"][..], &["--no-stream", "why"]] {
            sandbox.q(args).run().success().stdout(expected);
            sandbox.expect_answer(answer, false);
        }
    }
}

#[test]
fn no_stream_prints_nothing_before_the_answer_is_complete() {
    let half = [word("half ")];
    let whole =
        json!({"choices": [{"message": {"role": "assistant", "content": "half"}}]}).to_string();
    let cut = Reply::new(200)
        .header("content-type", "application/json")
        .piece(&whole[..whole.len() - 4])
        .cut();
    for (what, reply) in [
        // Some servers always stream.
        ("a stream", Reply::sse(half).cut()),
        ("one piece", cut),
    ] {
        let _case = case(what);
        let server = Server::always(reply);
        let sandbox = sandbox_of(&server);
        sandbox
            .q(&["--no-stream", "why"])
            .run()
            .exit(1)
            .stdout_is_empty()
            .stderr_contains("openai");
    }
}

#[test]
fn the_exit_status_distinguishes_failures_from_wrong_usage() {
    let server = Server::openai("fine");
    let refusing = Server::always(failure(400, "no such thing"));
    let failing = Server::always(failure(500, "out of order"));
    // Taken and released again: nothing listens there now.
    let nobody = format!(
        "http://{}/v1",
        TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
    );
    let sandbox = sandbox_of(&server);
    sandbox.q(&["why"]).run().success().stdout("fine\n");
    let before = snapshot(sandbox.state());
    type Change<'a> = &'a dyn Fn(Q) -> Q;
    let table: &[(i32, &str, Change)] = &[
        (1, "no such thing", &|run| run.server_env(&refusing)),
        (1, "out of order", &|run| run.server_env(&failing)),
        (1, "refused", &|run| run.env("OPENAI_BASE_URL", &nobody)),
        (2, "OPENAI_API_KEY", &|run| run.env_remove("OPENAI_API_KEY")),
        (2, "Q_TIMEOUT", &|run| run.env("Q_TIMEOUT", "soon")),
        (2, "OPENAI_BASE_URL", &|run| {
            run.env("OPENAI_BASE_URL", "ftp://127.0.0.1/")
        }),
    ];
    for (code, words, change) in table {
        let _case = case(words);
        let outcome = change(sandbox.q(&["-p", "openai", "-f", "why"])).run();
        outcome
            .exit(*code)
            .stdout_is_empty()
            .explains()
            .stderr_contains(words);
        // A question that fails before the first word changes nothing.
        before.expect_unchanged();
    }
}

#[test]
fn a_reader_that_goes_away_ends_q_quietly() {
    let server = Server::openai(&"yes\n".repeat(100_000));
    let sandbox = sandbox_of(&server);
    let script = "{ q why; echo \"exit $?\" >&2; } | head -n 1";
    sandbox
        .shell(script)
        .run()
        .exit(0)
        .stdout("yes\n")
        .stderr("exit 0\n");
    for action in ["-h", "--help", "--version", "--clear"] {
        let outcome = sandbox.q(&[action]).stdout_to(unread_pipe()).run();
        outcome.exit(0).stderr_lacks("standard output");
    }
}

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "other systems have no device that is always full"
)]
fn a_full_device_as_output_is_an_error() {
    let server = everybody("fine");
    let sandbox = sandbox_of(&server);
    for args in [
        &["-p", "openai", "why"][..],
        &["-p", "gemini", "why"],
        &["-p", "openai", "--no-stream", "why"],
        &["-p", "openai", "--no-save", "why"],
        &["-h"],
        &["--help"],
        &["--version"],
        &["--clear"],
    ] {
        let outcome = sandbox.q(args).stdout_to(full_device()).run();
        outcome
            .exit(1)
            .stderr_contains("standard output")
            .stderr_contains("No space left");
        outcome.stderr_has_lines(1);
    }
    // An answer that has come is kept.
    let server = Server::always(Reply::sse([openai_stream(&["answer"]).concat()]));
    let sandbox = sandbox_of(&server);
    sandbox
        .q(&["one"])
        .stdout_to(full_device())
        .run()
        .exit(1)
        .stderr_contains("q: cannot write to standard output");
    sandbox.expect_texts("current.json", &["one", "answer"]);
}

#[test]
fn a_standard_error_that_takes_nothing_changes_nothing_else() {
    // Each of these has something to say: a new conversation, what is wrong.
    for (args, code, expected, files) in [
        (&["-f", "why"][..], 0, "fine\n", &["current.json"][..]),
        (&["-p", "nobody", "why"], 2, "", &[]),
        (&["why", "-f"], 2, "", &[]),
    ] {
        let server = Server::openai("fine");
        let sandbox = sandbox_of(&server);
        let mut runs = vec![
            sandbox.q(args).stderr_to(unread_pipe()),
            sandbox.shell("exec q \"$@\" 2>&-").arg("q").args(args),
        ];
        if cfg!(target_os = "linux") {
            runs.push(sandbox.q(args).stderr_to(full_device()));
        }
        for run in runs {
            run.run().exit(code).stdout(expected);
            sandbox.expect_files(files);
            sandbox.q(&["--clear"]).run().exit(0);
        }
    }
    if cfg!(target_os = "linux") {
        let server = Server::openai("fine");
        let run = sandbox_of(&server)
            .q(&["why"])
            .stdout_to(full_device())
            .stderr_to(full_device())
            .run();
        run.exit(1);
    }
}
