//! What a terminal gets: harmless text whatever the model or the server says, and the waiting sign.

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::dialect::{data, openai_stream, word};
use crate::fixtures::{HOUR, case, idle_for, make_pipe, prompt, with};
use crate::pty::{Terminal, WIDE, screen};
use crate::sandbox::{API_KEY, Q, Sandbox};
use crate::server::{Gate, Reply, Server};

/// Text that must pass as it is: marks, joiners, both directions, tabs; and CR LF, which passes as LF.
const ORDINARY: &str =
    "e\u{301} 👩\u{200d}👧 \u{200f}שלום\u{200e} ü 日本\u{ad}\u{2028}\ttab\r\nnext\r\n\r\n";

#[test]
fn nothing_that_a_server_or_a_file_says_reaches_a_terminal_unchanged() {
    let said = all_controls();
    let spaced = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let quoted = json!(said).to_string();
    let error = json!({"error": {"message": said}});

    let blocked = json!({"promptFeedback": {"blockReason": said}});
    let block = format!("```\n{said}\n```\n");
    let answer = format!("{said}{ORDINARY}");
    let letters: Vec<String> = answer.chars().map(String::from).collect();
    // What q is called with, what the server says to that, and what must arrive in a pipe.
    let table: Vec<(&[&str], Reply, &str)> = vec![
        (&["hi"], Reply::json(400, error.clone()), &spaced),
        (
            &["hi"],
            Reply::new(400).piece(&said),
            &spaced[..spaced.find('\u{1c}').expect("a later control")],
        ),
        (&["hi"], Reply::sse(vec![word("x"), data(&error)]), &spaced),
        (
            &["-p", "gemini", "hi"],
            Reply::sse(vec![data(&blocked)]),
            &said,
        ),
        (&["hi"], Reply::sse(openai_stream(&[&answer])), &answer),
        (&["hi"], Reply::sse(openai_stream(&letters)), &answer),
        (&["-x", "hi"], Reply::sse(openai_stream(&[&block])), &said),
        (&["-j", "hi"], Reply::sse(openai_stream(&[&said])), &quoted),
        (
            &["--models"],
            Reply::json(200, json!({"data": [{"id": said}]})),
            &said,
        ),
        (
            &["-f", "-m", "other", "hi"],
            Reply::sse(openai_stream(&["x"])),
            &said,
        ),
        (
            &["--dry-run", "-f", "hi"],
            Reply::new(500),
            &quoted[1..quoted.len() - 1],
        ),
        (&["--history"], Reply::new(500), &said),
        (&["--history", "-j"], Reply::new(500), &quoted),
        (&["--last"], Reply::new(500), &said),
        (&["--undo"], Reply::new(500), &said),
        (&["--list"], Reply::new(500), &spaced),
        (&["--status"], Reply::new(500), &said),
    ];
    for (args, reply, expected) in table {
        let _case = case((args, expected));
        let server = Server::always(reply);
        let used = || {
            let sandbox = Sandbox::new().gemini_env(&server).server_env(&server);
            sandbox.write_current(&all_of(&said));
            // A file that the list cannot show, and quotes in a note.
            sandbox.write_session(
                "stranger.json",
                &json!({"version": 1, "messages": [{"role": said, "content": ""}]}),
            );
            sandbox.env("TERM", "dumb").env("Q_RETRIES", "0")
        };
        let outcome = used().q(args).run();
        let both_outputs = outcome.stdout_text() + &outcome.stderr_text();
        outcome.check(both_outputs.contains(expected), || {
            format!("expected unchanged: {expected:?}")
        });

        // Wide enough for the longest line.
        let terminal = Terminal::new(WIDE);
        both(used().q(args), &terminal).run();
        let bytes = terminal.bytes();
        assert_harmless(&bytes);
        let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
        assert!(
            text.contains(&shown(expected)),
            "{text:?}\nexpected {:?}",
            shown(expected)
        );
    }
}

#[test]
fn the_waiting_sign_comes_after_a_while_and_goes_before_the_first_word() {
    // What q is called with, how the screen begins in the end, and how many lines it has.
    for (args, first, lines) in [
        (&["hi"][..], "```\nHello\n```\n", 3),
        (&["-x", "hi"], "Hello\n", 1),
        (&["-j", "hi"], "{\"answer\":", 1),
        (&["--no-stream", "hi"], "Hello\n", 1),
        (&["--models"], "test-model\n", 1),
    ] {
        let _case = case(args);
        let gate = Gate::new();
        let held = gate.clone();
        let server = Server::start(move |request, _| {
            let mut reply = Reply::new(200).wait_for(&held);
            reply = match request.method.as_str() {
                "GET" => reply.piece(json!({"data": [{"id": "test-model"}]}).to_string()),
                _ if request.text().contains("\"stream\":true") => reply
                    .header("content-type", "text/event-stream")
                    .pieces(openai_stream(&["```\nHello\n```\n"])),
                _ => {
                    reply.piece(json!({"choices": [{"message": {"content": "Hello"}}]}).to_string())
                }
            };
            reply
        });
        let sandbox = Sandbox::new();
        let terminal = Terminal::new(WIDE);
        let started = Instant::now();
        let running = both(sandbox.q(args).server_env(&server), &terminal).spawn();
        terminal.wait_for("waiting for openai, ", 0);
        assert!(
            started.elapsed() >= Duration::from_millis(300),
            "after {:?}",
            started.elapsed()
        );
        terminal.wait_for_seconds("waiting for openai, ", 0);
        let screen = terminal.screen_so_far();
        assert!(
            screen.len() == 1 && screen[0].starts_with("waiting for openai, "),
            "{screen:?}"
        );
        gate.open();
        running.wait().exit(0);
        let screen = terminal.screen().join("\n");
        assert!(
            screen.starts_with(first) && screen.matches('\n').count() == lines,
            "{screen:?}"
        );
    }
}

#[test]
fn the_waiting_sign_appears_only_if_both_outputs_are_a_terminal() {
    let gate = Gate::new();
    let server = Server::always(
        Reply::sse([":\n\n"])
            .wait_for(&gate)
            .pieces(openai_stream(&["Hello"])),
    );
    let sandbox = Sandbox::new().server_env(&server);
    let start = |variant: &str| {
        let terminal = Terminal::new(80);
        let q = match variant {
            "stdout" => sandbox.q(&["hi"]).stdout_to(terminal.end()),
            "stderr" => sandbox.q(&["hi"]).stderr_to(terminal.end()),
            "quiet" => both(sandbox.q(&["-q", "hi"]), &terminal),
            "dumb" => both(sandbox.q(&["hi"]), &terminal).env("TERM", "dumb"),
            _ => both(sandbox.q(&["hi"]), &terminal).env("TERM", "xterm"),
        };
        (terminal, q.spawn())
    };
    let unseen = ["stdout", "stderr", "quiet", "dumb"].map(|variant| (variant, start(variant)));
    server.wait_for_requests(unseen.len());
    // It was started last: when it has waited long enough, the others have, too.
    let (seeing, running) = start("both");
    seeing.wait_for_seconds("waiting for openai, ", 0);
    for (variant, (terminal, _)) in &unseen {
        assert_eq!(String::from_utf8_lossy(&terminal.so_far()), "", "{variant}");
    }
    gate.open();
    running.wait().exit(0);
    for (variant, (terminal, running)) in unseen {
        let _case = case(variant);
        running.wait().exit(0);
        let expected = if variant == "stderr" { "" } else { "Hello\r\n" };
        assert_eq!(
            String::from_utf8_lossy(&terminal.bytes()),
            expected,
            "{variant}"
        );
    }
}

#[test]
fn the_waiting_sign_is_wiped_when_a_signal_ends_q() {
    let server = Server::start(|request, _| match request.text().as_str() {
        text if text.contains("retried") => Reply::new(429).header("retry-after", "50").piece("{}"),
        text if text.contains("begun") => Reply::sse([word("half")]).hang(),
        _ => Reply::new(200).hang(),
    });
    for (what, args, sign, signal) in [
        (
            "the first word",
            &["-n", "hi"][..],
            "waiting for openai",
            libc::SIGINT,
        ),
        (
            "the first word",
            &["-n", "hi"],
            "waiting for openai",
            libc::SIGTERM,
        ),
        (
            "the first word",
            &["-n", "hi"],
            "waiting for openai",
            libc::SIGHUP,
        ),
        (
            "the end of the code",
            &["-n", "-x", "begun"],
            "waiting for openai",
            libc::SIGINT,
        ),
        (
            "another try",
            &["-n", "retried"],
            "retrying in",
            libc::SIGINT,
        ),
        (
            "standard input",
            &["hi"],
            "waiting for standard input",
            libc::SIGINT,
        ),
        (
            "the models",
            &["--models"],
            "waiting for openai",
            libc::SIGINT,
        ),
    ] {
        let _case = case((what, signal));
        let sandbox = Sandbox::new().server_env(&server);
        let terminal = Terminal::new(80);
        let mut running = both(sandbox.q(args), &terminal).stdin_open().spawn();
        terminal.wait_for(sign, 0);
        running.signal(signal);
        running.wait().killed_by(signal);
        assert_eq!(terminal.screen(), [""]);
    }
}

#[test]
fn the_waiting_sign_is_wiped_before_an_answer_or_an_error() {
    // How many columns the terminal has, what the sign says, what comes then, and the last line.
    let error = data(&json!({"error": "no"}));
    for (columns, sign, busy, comes, last) in [
        (
            80,
            "waiting for openai",
            false,
            vec![error],
            "q: openai: no",
        ),
        (16, "waiting", false, openai_stream(&["Hello"]), "Hello"),
        (80, "retrying in ", true, openai_stream(&["Hello"]), "Hello"),
    ] {
        let _case = case((columns, sign, last));
        let gate = Gate::new();
        let reply = Reply::sse([":\n\n"]).wait_for(&gate).pieces(comes);
        let server = Server::start(move |_, number| match number {
            0 if busy => Reply::new(503).header("retry-after", "2").piece("{}"),
            _ => reply.clone(),
        });
        let terminal = Terminal::new(columns);
        let running = both(Sandbox::new().q(&["hi"]).server_env(&server), &terminal).spawn();
        terminal.wait_for(sign, 0);
        gate.open();
        running.wait();
        let screen = terminal.screen();
        assert!(
            screen.len() == 2 && screen[0].starts_with(last) && screen[1].is_empty(),
            "{screen:?}"
        );
    }
}

#[test]
fn the_waiting_sign_counts_down_to_the_next_try() {
    let server = Server::always(Reply::new(503).header("retry-after", "50").piece("{}"));
    let sandbox = Sandbox::new();
    let terminal = Terminal::new(80);
    let mut running = both(sandbox.q(&["hi"]).server_env(&server), &terminal).spawn();
    let first = terminal.wait_for_seconds("retrying in ", 0);
    let next = terminal.wait_for_seconds("retrying in ", terminal.so_far().len());
    assert!(next < first && first <= 50, "{first}, {next}");
    running.signal(libc::SIGTERM);
    running.wait().killed_by(libc::SIGTERM);
}

#[test]
fn the_waiting_sign_says_that_standard_input_is_waited_for() {
    let server = Server::openai("Hello");
    let sandbox = Sandbox::new();
    let terminal = Terminal::new(80);
    let mut running = both(sandbox.q(&["hi"]).server_env(&server), &terminal)
        .stdin_open()
        .spawn();
    terminal.wait_for_seconds("waiting for standard input, ", 0);
    server.expect_requests(0);
    running.write_stdin("log\n").close_stdin();
    running.wait().exit(0);
    assert_eq!(terminal.screen(), ["Hello", ""]);
    assert_eq!(
        prompt(&server.request()),
        "<context>\nlog\n</context>\n\nhi"
    );
}

#[test]
fn two_qs_in_a_pipeline_do_not_fight_over_the_line() {
    let gates = [Gate::new(), Gate::new()];
    let held = gates.clone();
    let server = Server::start(move |_, number| {
        Reply::sse([":\n\n"])
            .wait_for(&held[number])
            .pieces(openai_stream(&[format!("answer {number}")]))
    });
    let sandbox = Sandbox::new().server_env(&server);
    let terminal = Terminal::new(80);
    let running = both(sandbox.shell("q one | q -f two"), &terminal).spawn();
    server.wait_for_requests(1);
    terminal.wait_for_seconds("waiting for standard input, ", 0);
    let before = terminal.so_far();
    assert!(
        !String::from_utf8_lossy(&before).contains("waiting for openai"),
        "two signs at once"
    );
    gates[0].open();
    server.wait_for_requests(2);
    terminal.wait_for("waiting for openai", before.len());
    assert!(
        terminal.screen_so_far()[0].starts_with("waiting for openai"),
        "{:?}",
        terminal.screen_so_far()
    );
    gates[1].open();
    running.wait().exit(0);
    assert_eq!(terminal.screen(), ["answer 1", ""]);
}

#[test]
fn the_waiting_sign_does_not_write_over_what_a_key_command_asks() {
    let server = Server::openai("Hello");
    let sandbox = Sandbox::new();
    let pipe = sandbox.root().join("key");
    make_pipe(&pipe);
    sandbox.config(&format!(
        "[providers.work]\nbase_url = \"{}/v1\"\nmodel = \"m\"\nkey_cmd = [\"/bin/sh\", \"-c\", \"printf 'Passphrase: ' >&2; cat '{}'\"]\n",
        server.url(),
        pipe.display()
    ));
    let terminal = Terminal::new(WIDE);
    let mut running = both(sandbox.q(&["hi"]), &terminal).stdin_open().spawn();
    terminal.wait_for("waiting for standard input", 0);
    running.write_stdin("log\n").close_stdin();
    terminal.wait_for("Passphrase: ", 0);
    let asked = terminal.screen_so_far();
    let mut writer = fs::OpenOptions::new()
        .write(true)
        .open(&pipe)
        .expect("a command that reads");
    writer
        .write_all(format!("{API_KEY}\n").as_bytes())
        .expect("a command that reads");
    drop(writer);
    running.wait().exit(0);
    assert_eq!(asked, ["Passphrase: "]);
}

#[test]
fn what_q_says_after_an_answer_begins_on_a_line_of_its_own() {
    let broken = Reply::sse([word("Hello")]).cut();
    let whole = Reply::sse(openai_stream(&["Hello"]));
    let long = Reply::json(
        400,
        json!({"error": {"message": "long", "code": "context_length_exceeded"}}),
    );
    // What q is called with, the replies to its requests, and a word of what it says in the end.
    let table: [(&[&str], Vec<Reply>, &str); 3] = [
        (&["hi"], vec![broken], "q: openai: "),
        (&["-v", "hi"], vec![whole.clone()], "q: first word after"),
        (&["-f", "hi"], vec![long, whole], "q: "),
    ];
    for (args, replies, said) in table {
        let _case = case(args);
        let server = Server::start(move |_, number| replies[number].clone());
        let sandbox = Sandbox::new()
            .server_env(&server)
            .env("TERM", "dumb")
            .env("Q_MODEL", "m");
        sandbox.write_current(&all_of("m"));
        let terminal = Terminal::new(WIDE);
        both(sandbox.q(args), &terminal).run();
        let screen = terminal.screen();
        assert!(screen.iter().any(|line| line == "Hello"), "{screen:#?}");
        let after = screen.iter().skip_while(|line| *line != "Hello").skip(1);
        assert!(
            after.clone().any(|line| line.starts_with(said)),
            "{screen:#?}"
        );
    }
}

/// Standard output and standard error on the same terminal.
fn both(q: Q, terminal: &Terminal) -> Q {
    q.stdout_to(terminal.end()).stderr_to(terminal.end())
}

/// A conversation with this text in every field that somebody else can have written.
fn all_of(text: &str) -> Value {
    with(idle_for(HOUR, &[text, text]), "model", text)
}

/// Every character that could drive a terminal, with its visible form.
fn controls() -> Vec<(char, String)> {
    let c0 = ('\0'..='\u{1f}').filter(|character| !matches!(character, '\t' | '\n'));
    let c0 = c0
        .zip("@ABCDEFGHKLMNOPQRSTUVWXYZ[\\]^_".chars())
        .map(|(control, letter)| (control, format!("^{letter}")));
    let c1 =
        ('\u{80}'..='\u{9f}').map(|control| (control, format!("<{:02X}>", u32::from(control))));
    let bidirectional = "\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";
    let bidirectional = bidirectional
        .chars()
        .map(|control| (control, format!("<U+{:04X}>", u32::from(control))));
    c0.chain([('\u{7f}', "^?".to_owned())])
        .chain(c1)
        .chain(bidirectional)
        .collect()
}

/// All of them in one text, apart from each other.
fn all_controls() -> String {
    controls()
        .iter()
        .flat_map(|(control, _)| ['a', *control])
        .chain(['z'])
        .collect()
}

/// What a terminal should get for a text.
fn shown(text: &str) -> String {
    let controls = controls();
    let form = |character: char| match controls.iter().find(|(control, _)| *control == character) {
        Some((_, form)) => form.clone(),
        None => character.to_string(),
    };
    text.replace("\r\n", "\n").chars().map(form).collect()
}

/// Nothing but text, tabs and the terminal's own CR LF.
#[track_caller]
fn assert_harmless(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    let controls = controls();
    for character in text.replace("\r\n", "").chars() {
        let harmless =
            character != '\n' && controls.iter().all(|(control, _)| *control != character);
        assert!(harmless, "{character:?} in {text:?}");
    }
    // The same by the rules of a terminal.
    screen(bytes, u16::MAX);
}
