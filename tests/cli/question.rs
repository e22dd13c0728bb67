//! Where the question comes from: words, standard input, both or neither, and in which order q looks at them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};
use std::{io, thread};

use crate::fixtures::{asked_by, case, make_pipe, numbered, prompt, refused};
use crate::pty::{Terminal, WIDE};
use crate::sandbox::{Q, Sandbox};
use crate::server::Server;

#[test]
fn words_are_joined_by_one_space_and_otherwise_unchanged() {
    let table: &[(&[&str], &str)] = &[
        (&["why"], "why"),
        (&["explain", "git", "rebase"], "explain git rebase"),
        (&["  two  blanks ", "\ttab\n"], "  two  blanks  \ttab\n"),
        (&["a", "", "b"], "a  b"),
        (&["Zoë", "€ \u{1F600}"], "Zoë € \u{1F600}"),
    ];
    for (words, expected) in table {
        assert_eq!(asked_by(|sandbox| sandbox.q(words)), *expected, "{words:?}");
    }
}

#[test]
fn input_alone_is_the_question_less_its_trailing_newlines() {
    for (input, expected) in [
        ("what is this?", "what is this?"),
        ("what is this?\n", "what is this?"),
        ("one\n\ntwo\n\n\n", "one\n\ntwo"),
        ("one\r\ntwo\r\n", "one\r\ntwo"),
        ("\n  indented \t\n", "\n  indented \t"),
        ("\u{FEFF}mark\n", "\u{FEFF}mark"),
        ("</context>\n", "</context>"),
    ] {
        let _case = case(input);
        assert_eq!(asked_by(|sandbox| sandbox.q(&[]).stdin(input)), expected);
        // Blank words do not count.
        assert_eq!(
            asked_by(|sandbox| sandbox.q(&[" ", "\n"]).stdin(input)),
            expected
        );
    }
}

#[test]
fn input_beside_words_stands_in_a_fence_byte_for_byte() {
    for input in [
        "log\n",
        "a\n\n\n",
        "a\r\nb\r\n",
        "\u{FEFF}mark\n",
        "\tindented\t \n",
        "\n\n  after blank lines\n",
    ] {
        let _case = case(input);
        let expected = format!("<context>\n{input}</context>\n\nwhy so");
        assert_eq!(
            asked_by(|sandbox| sandbox.q(&["why", "so"]).stdin(input)),
            expected
        );
    }
    for input in [
        "log",
        "line\nno end",
        "trailing blanks  ",
        "carriage return\r",
    ] {
        let _case = case(input);
        let expected = format!("<context>\n{input}\n</context>\n\nwhy");
        assert_eq!(
            asked_by(|sandbox| sandbox.q(&["why"]).stdin(input)),
            expected
        );
    }
}

#[test]
fn input_that_would_close_the_fence_gets_another_one() {
    for (input, name) in [
        ("</context>", "context-2"),
        ("a </context> b </context>", "context-2"),
        ("</context> </context-2>", "context-3"),
        ("</context-2> </context> </context-3>", "context-4"),
        // None of these closes `<context>`.
        (
            "<context> </context-2> </contexts> </Context> < /context>",
            "context",
        ),
    ] {
        let _case = case(input);
        let expected = format!("<{name}>\n{input}\n</{name}>\n\nwhy");
        assert_eq!(
            asked_by(|sandbox| sandbox.q(&["why"]).stdin(input)),
            expected
        );
    }
}

#[test]
fn input_full_of_closing_tags_is_fenced_without_delay() {
    let tags = (2..60_000).map(|number| format!("</context-{number}>"));
    let input: String = ["</context>".to_owned()].into_iter().chain(tags).collect();
    let question = asked_by(|sandbox| sandbox.q(&["why"]).stdin(&input));
    let expected = format!("<context-60000>\n{input}\n</context-60000>\n\nwhy");
    assert!(
        question == expected,
        "{}…",
        &question[..question.len().min(100)]
    );
}

#[test]
fn blank_input_is_ignored_and_an_empty_pipe_or_file_is_reported() {
    let server = Server::openai("fine");
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.write_home("empty", "");
    let empty = "q: standard input was empty\n";
    for (script, printed) in [
        (": | q why", empty),
        ("q why <empty", empty),
        ("echo | q why", empty),
        ("printf ' \\t\\r\\n \\n' | q why", empty),
        // These are empty on purpose, or q cannot know.
        ("q why </dev/null", ""),
        ("q why <&-", ""),
        (": | q -n why", ""),
        (": | q -q why", ""),
        ("echo why | q", ""),
    ] {
        let _case = case(script);
        sandbox
            .shell(script)
            .run()
            .exit(0)
            .stdout("fine\n")
            .stderr(printed);
        assert_eq!(prompt(&server.last_request()), "why");
    }
}

#[test]
fn without_a_question_q_shows_its_usage() {
    for script in [
        "q </dev/null",
        "q <&-",
        "q '' ' '",
        "echo | q",
        "echo | q ' '",
        "q -f",
        "q --",
        "echo words | q -n",
    ] {
        refused(|sandbox| sandbox.shell(script)).stderr_contains("q -h");
    }
}

#[test]
fn without_a_question_the_usage_comes_before_any_other_trouble() {
    // A user who tries q for the first time has no key yet.
    let sandbox = Sandbox::new();
    let outcome = sandbox.q(&["-p", "openai", "-n"]).run();
    outcome
        .exit(2)
        .stderr_contains("question")
        .stderr_lacks("OPENAI_API_KEY");
}

#[test]
fn on_a_terminal_q_never_waits_for_typing() {
    let terminal = Terminal::new(WIDE);
    refused(|sandbox| sandbox.q(&[]).stdin_from(terminal.end())).stderr_contains("q -h");
    assert_eq!(
        asked_by(|sandbox| sandbox.q(&["why"]).stdin_from(terminal.end())),
        "why"
    );
}

/// Runs q until it notes what it waits for, lets `come` send something, and expects nothing but this note, after half a
/// minute.
#[track_caller]
fn expect_note_after_half_a_minute(q: Q, note: &str, come: impl FnOnce() + Send) {
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
        q.stderr_to(stderr).run().exit(0).stdout("fine\n");
        noted.join().expect("a thread that reads")
    });
    assert_eq!(rest, "");
    assert!(waited >= Duration::from_secs(30), "after {waited:?}");
}

#[test]
fn after_half_a_minute_without_input_one_note_says_what_q_waits_for() {
    let server = Server::openai("fine");
    let sandbox = Sandbox::new().server_env(&server);
    let (input, mut typing) = io::pipe().unwrap();
    let note = "q: waiting for standard input; -n or </dev/null leaves it alone\n";
    expect_note_after_half_a_minute(sandbox.q(&["why"]).stdin_from(input), note, move || {
        typing.write_all(b"log\n").unwrap();
    });
    assert_eq!(
        prompt(&server.request()),
        "<context>\nlog\n</context>\n\nwhy"
    );
}

#[test]
fn the_note_comes_for_a_named_pipe_that_nobody_opens_too() {
    let server = Server::openai("fine");
    let sandbox = Sandbox::new().server_env(&server);
    let pipe = sandbox.home().join("pipe");
    make_pipe(&pipe);
    expect_note_after_half_a_minute(
        sandbox.q(&["-n", "-a", "pipe", "why"]),
        "q: waiting for pipe\n",
        || {
            std::fs::write(&pipe, "log\n").unwrap();
        },
    );
    assert_eq!(
        prompt(&server.request()),
        "<file name=\"pipe\">\nlog\n</file>\n\nwhy"
    );
}

#[test]
fn n_leaves_input_to_others() {
    assert_eq!(
        asked_by(|sandbox| sandbox.q(&["-n", "why"]).stdin_open()),
        "why"
    );

    let (server, sandbox) = numbered();
    let script = r#"printf 'one\ntwo\nthree\n' | while read -r line; do q -n "about $line"; done"#;
    sandbox
        .shell(script)
        .run()
        .success()
        .stdout("answer 0\nanswer 1\nanswer 2\n");
    let questions: Vec<_> = server.requests().iter().map(prompt).collect();
    assert_eq!(questions, ["about one", "about two", "about three"]);
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
            waiting
                .wait()
                .exit(2)
                .stdout_is_empty()
                .stderr_contains("binary");
        }
        server.expect_requests(0);
    }
}

#[test]
fn an_image_or_a_pdf_on_standard_input_is_refused_though_it_may_look_like_text() {
    for input in ["%PDF-1.4\n1 0 obj\n", "GIF89a"] {
        let server = Server::openai("never");
        let sandbox = Sandbox::new().server_env(&server);
        sandbox
            .q(&["why"])
            .stdin(input)
            .run()
            .exit(2)
            .stdout_is_empty()
            .stderr_contains("-a - sends it");
        server.expect_requests(0);
    }
}

#[test]
fn bytes_that_are_not_utf8_are_replaced_with_a_note() {
    let text = OsStr::from_bytes(b"caf\xe9 \xf0\x9f au lait");
    let replaced = "caf\u{FFFD} \u{FFFD} au lait";
    type Run<'a> = &'a dyn Fn(&Sandbox) -> Q;
    let runs: &[(&str, usize, Run)] = &[
        ("input", 1, &|sandbox| sandbox.q(&[]).stdin(text.as_bytes())),
        ("words", 1, &|sandbox| sandbox.q(&[]).arg(text)),
        ("words after --", 1, &|sandbox| sandbox.q(&["--"]).arg(text)),
        ("-S", 0, &|sandbox| sandbox.q(&["-S"]).arg(text).arg("why")),
        ("--system=", 0, &|sandbox| {
            let option = [b"--system=", text.as_bytes()].concat();
            sandbox.q(&[]).arg(OsStr::from_bytes(&option)).arg("why")
        }),
    ];
    for (what, index, run) in runs {
        let _case = case(what);
        let server = Server::openai("fine");
        let sandbox = Sandbox::new().server_env(&server);
        let outcome = run(&sandbox).run();
        outcome.exit(0).stdout("fine\n").stderr_contains("UTF-8");
        outcome.stderr_has_lines(1);
        assert_eq!(
            server.request().json()["messages"][index]["content"],
            replaced,
            "{what}"
        );
    }
}

#[test]
fn one_note_is_enough_for_many_words_that_are_not_utf8() {
    let server = Server::openai("fine");
    let sandbox = Sandbox::new().server_env(&server);
    let word = OsStr::from_bytes(b"\xff");
    sandbox
        .q(&[])
        .args(&[word, word, word])
        .run()
        .exit(0)
        .stderr_has_lines(1);
    assert_eq!(prompt(&server.request()), "\u{FFFD} \u{FFFD} \u{FFFD}");
}

#[test]
fn input_may_have_ten_million_bytes_and_not_one_more() {
    let longest = vec![b'y'; 10_000_000];
    let question = asked_by(|sandbox| sandbox.q(&["--no-save"]).stdin(&longest));
    assert!(
        question.as_bytes() == longest,
        "{} bytes were sent",
        question.len()
    );

    let server = Server::openai("never");
    let sandbox = Sandbox::new().server_env(&server);
    let mut waiting = sandbox.q(&["why"]).stdin_open().spawn();
    // The pipe is still open: q does not wait for its end.
    waiting.write_stdin(&longest).write_stdin("y");
    waiting
        .wait()
        .exit(2)
        .stdout_is_empty()
        .stderr_contains("10000000");
    server.expect_requests(0);
}

#[test]
fn endless_input_ends() {
    refused(|sandbox| sandbox.shell("yes | q")).stderr_contains("10000000");
}

#[test]
fn a_folder_as_input_is_an_error_unless_it_is_left_alone() {
    let server = Server::openai("fine");
    let sandbox = Sandbox::new().server_env(&server);
    let folder = || File::open(sandbox.home()).unwrap();
    let outcome = sandbox.q(&["why"]).stdin_from(folder()).run();
    outcome
        .exit(1)
        .stdout_is_empty()
        .stderr_contains("standard input")
        .stderr_contains("directory");
    server.expect_requests(0);
    sandbox.expect_no_files();
    sandbox
        .q(&["-n", "why"])
        .stdin_from(folder())
        .run()
        .success()
        .stdout("fine\n");
}

#[test]
fn errors_that_depend_on_no_input_are_reported_before_any_is_read() {
    const AWAY: &str = "https://llm.invalid/v1";
    type Run<'a> = &'a dyn Fn(&Sandbox) -> Q;
    let runs: &[(&str, &str, Run)] = &[
        ("a missing key", "GROQ_API_KEY", &|sandbox| {
            sandbox.q(&["-p", "groq", "why"])
        }),
        ("a wrong address", "OPENAI_BASE_URL", &|sandbox| {
            sandbox.q(&["why"]).env("OPENAI_BASE_URL", "no url")
        }),
        // Never reached, and not on this machine: a proxy is not asked for what is.
        ("a file of certificates", "SSL_CERT_FILE", &|sandbox| {
            sandbox
                .q(&["why"])
                .env("OPENAI_BASE_URL", AWAY)
                .env("SSL_CERT_FILE", "/nowhere/at/all.pem")
        }),
        ("a proxy", "HTTPS_PROXY", &|sandbox| {
            sandbox
                .q(&["why"])
                .env("OPENAI_BASE_URL", AWAY)
                .env("HTTPS_PROXY", "http://[")
        }),
    ];
    for (what, words, run) in runs {
        let _case = case(what);
        refused(|sandbox| run(sandbox).stdin_open()).stderr_contains(words);
    }
}
