//! What a terminal gets: harmless text whatever the model or the server says, and the spinner.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::conversations::{idle_for, with};
use crate::dialect::{Dialect, data, openai_stream, word};
use crate::fixtures::{case, make_pipe, prompt, session};
use crate::pty::{Terminal, WIDE};
use crate::run::API_KEY;
use crate::sandbox::Sandbox;
use crate::screen::screen;
use crate::server::{Gate, Reply, Server};
use crate::times::HOUR;

/// Text that must pass as it is: marks, joiners, both directions, tabs; and CR LF, which passes as LF.
const ORDINARY: &str =
    "e\u{301} 👩\u{200d}👧 \u{200f}שלום\u{200e} ü 日本\u{ad}\u{2028}\ttab\r\nnext\r\n\r\n";

#[test]
fn control_characters_from_servers_and_files_are_escaped_on_a_terminal() {
    let said = all_controls();
    let spaced = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let noted = said.replace(['\r', '\u{b}', '\u{c}', '\u{85}'], " ");
    let quoted = json!(said).to_string();
    let within = &quoted[1..quoted.len() - 1];
    let beginning = &spaced[..spaced.find('\u{1c}').expect("a later control")];
    let error = json!({"error": {"message": said}});
    let blocked = Reply::sse([data(&json!({"promptFeedback": {"blockReason": said}}))]);
    let models = Reply::json(200, json!({"data": [{"id": said}]}));
    let block = format!("```\n{said}\n```\n");
    let answer = format!("{said}{ORDINARY}");
    let letters: Vec<String> = answer.chars().map(String::from).collect();
    // What q is called with, what the server says to that, and what must arrive in a pipe.
    let table: Vec<(&[&str], Reply, &str)> = vec![
        (&["hi"], Reply::json(400, error.clone()), &spaced),
        (&["hi"], Reply::new(400).piece(&said), beginning),
        (&["hi"], Reply::sse(vec![word("x"), data(&error)]), &spaced),
        (&["-p", "gemini", "hi"], blocked, &noted),
        (&["hi"], Reply::sse(openai_stream(&[&answer])), &answer),
        (&["hi"], Reply::sse(openai_stream(&letters)), &answer),
        (&["-x", "hi"], Reply::sse(openai_stream(&[&block])), &said),
        (&["-j", "hi"], Reply::sse(openai_stream(&[&said])), &quoted),
        (&["--models"], models, &said),
        (
            &["-f", "-m", "x", "hi"],
            Reply::sse(openai_stream(&["x"])),
            &noted,
        ),
        (&["--dry-run", "-f", "hi"], Reply::new(500), within),
        (&["--history"], Reply::new(500), &said),
        (&["--history", "-j"], Reply::new(500), &quoted),
        (&["--last"], Reply::new(500), &said),
        (&["-s", "%1", "--last"], Reply::new(500), &said),
        (&["--undo"], Reply::new(500), &said),
        (&["--list"], Reply::new(500), &spaced),
        (&["--status"], Reply::new(500), &noted),
    ];
    for (args, reply, expected) in table {
        let _case = case((args, expected));
        let server = Server::always(reply);
        let used = || {
            let sandbox = Sandbox::new().gemini_env(&server).server_env(&server);
            sandbox.write_current(&all_of(&said));
            // A file that the list cannot show, and quotes in a note.
            let stranger = json!({"version": 1, "messages": [{"role": said, "content": ""}]});
            sandbox.write_session("stranger.json", &stranger);
            sandbox.env("TERM", "dumb").env("Q_RETRIES", "0")
        };
        let outcome = used().q(args).run();
        let both_outputs = outcome.stdout_text() + &outcome.stderr_text();
        let what = format!("expected unchanged: {expected:?}");
        outcome.check(both_outputs.contains(expected), &what);

        // Wide enough for the longest line.
        let terminal = Terminal::new(WIDE);
        used().q(args).on(&terminal).run();
        let bytes = terminal.bytes();
        assert_no_controls(&bytes);
        let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
        // Notes are wrapped.
        let text = text.replace(" \n   ", " ");
        let is_right = text.contains(&shown(expected));
        assert!(is_right, "{text:?}\nexpected {:?}", shown(expected));
    }
}

#[test]
fn the_spinner_appears_after_a_while_and_disappears_before_the_first_word() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = Server::start(move |request, _| {
        let reply = Reply::new(200).wait_for(&held);
        let whole = json!({"choices": [{"message": {"content": "Hello"}}]});
        match request.method.as_str() {
            "GET" => reply.piece(json!({"data": [{"id": "test-model"}]}).to_string()),
            _ if request.text().contains("\"stream\":true") => reply
                .header("content-type", "text/event-stream")
                .pieces(openai_stream(&["```\nHello\n```\n"])),
            _ => reply.piece(whole.to_string()),
        }
    });
    // What q is called with, how the screen begins in the end, and how many lines it has.
    let started = [
        (&["hi"][..], "```\nHello\n```\n", 3),
        (&["-x", "hi"], "Hello\n", 1),
        (&["-j", "hi"], "{\"answer\":", 1),
        (&["--no-stream", "hi"], "Hello\n", 1),
        (&["--models"], "test-model\n", 1),
    ]
    .map(|(args, first, lines)| {
        let sandbox = Sandbox::new().server_env(&server);
        let terminal = Terminal::new(WIDE);
        let began = Instant::now();
        let running = sandbox.q(args).on(&terminal).spawn();
        terminal.wait_for("waiting for openai, ", 0);
        assert!(began.elapsed() >= Duration::from_millis(300), "{args:?}");
        (args, first, lines, sandbox, terminal, running)
    });
    for (args, _, _, _, terminal, _) in &started {
        terminal.wait_for_seconds("waiting for openai, ", 0);
        let screen = terminal.screen_so_far();
        let is_alone = screen.len() == 1 && screen[0].starts_with("waiting for openai, ");
        assert!(is_alone, "{args:?} {screen:?}");
    }
    gate.open();
    for (args, first, lines, _sandbox, terminal, running) in started {
        running.wait().exit(0);
        let screen = terminal.screen().join("\n");
        let is_right = screen.starts_with(first) && screen.matches('\n').count() == lines;
        assert!(is_right, "{args:?} {screen:?}");
    }
}

#[test]
fn a_q_in_the_background_has_no_spinner_until_it_is_brought_to_the_front() {
    let [first, second] = [Gate::new(), Gate::new()];
    let held = [first.clone(), second.clone()];
    let server = Server::start(move |request, _| {
        let is_behind = request.text().contains("behind");
        let reply = Reply::new(200).wait_for(&held[usize::from(is_behind)]);
        let reply = reply.header("content-type", "text/event-stream");
        reply.pieces(openai_stream(&["Hello"]))
    });
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.config(&format!(
        "[providers.other]\napi = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n",
        server.url()
    ));
    let terminal = Terminal::new(WIDE);
    let script = "set -m; q -n --no-save -p other behind & q -n --no-save before; fg";
    let running = session(&sandbox, &terminal, script).spawn();
    server.wait_for_requests(2);
    // The one before it has waited for as long, and shows it.
    terminal.wait_for_seconds("waiting for openai, ", 0);
    let so_far = String::from_utf8_lossy(&terminal.so_far()).into_owned();
    assert!(!so_far.contains("waiting for other"), "{so_far:?}");
    first.open();
    terminal.wait_for("waiting for other, ", so_far.len());
    second.open();
    running.wait().exit(0);
}

/// Events between which and the answer the sign says something else than that it waits.
const SIGNS: &str = r#"
openai thinking {"choices":[{"delta":{"reasoning_content":"hm"}}]}
openai thinking {"choices":[{"delta":{"reasoning":"hm"}}]}
openai thinking {"choices":[{"delta":{"reasoning_details":[{"text":"hm"}]}}]}
openai thinking {"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}
openai thinking {"choices":[{"delta":{"content":"<think>hm"}}]}
anthropic thinking {"type":"content_block_start","index":0,"content_block":{"type":"thinking"}}
anthropic thinking {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}
anthropic searching {"type":"content_block_start","content_block":{"type":"server_tool_use","name":"web_search"}}
responses thinking {"type":"response.output_item.added","item":{"type":"reasoning","id":"r"}}
responses thinking {"type":"response.reasoning_summary_text.delta","delta":"hm"}
responses searching {"type":"response.web_search_call.searching","output_index":0,"item_id":"ws_1"}
responses searching {"type":"response.output_item.added","output_index":0,"item":{"type":"web_search_call"}}
gemini thinking {"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}]}
gemini searching {"candidates":[{"content":{"parts":[{"toolCall":{"toolType":"GOOGLE_SEARCH_WEB"}}]}}]}
"#;

#[test]
fn the_spinner_says_that_the_model_thinks_or_that_the_provider_searches() {
    let mut started = Vec::new();
    for line in SIGNS.trim().lines() {
        let mut words = line.splitn(3, ' ').map(str::to_owned);
        let [provider, sign, event] = [(); 3].map(|()| words.next().expect("three words"));
        let gates = [Gate::new(), Gate::new()];
        let reply = Reply::sse([": wait\n\n"]).wait_for(&gates[0]);
        let reply = reply.piece(format!("data: {event}\n\n"));
        let dialect = Dialect::named(&provider);
        let server = Server::always(reply.wait_for(&gates[1]).cut());
        let sandbox = Sandbox::new();
        let terminal = Terminal::new(WIDE);
        let option = if sign == "searching" { "-w" } else { "-n" };
        let q = dialect.q(&sandbox, &server, &[option, "hi"]);
        let running = q.on(&terminal).spawn();
        started.push((line, sign, gates, server, sandbox, terminal, running));
    }
    for (line, sign, gates, _server, _sandbox, terminal, running) in started {
        let _case = case(line);
        terminal.wait_for("waiting for ", 0);
        gates[0].open();
        let searches = sign == "searching";
        let text = if searches {
            "searching the web, "
        } else {
            "thinking, "
        };
        terminal.wait_for(text, 0);
        gates[1].open();
        running.wait().exit(1);
    }
}

#[test]
fn the_spinner_appears_only_if_both_outputs_are_a_terminal() {
    let gate = Gate::new();
    let reply = Reply::sse([":\n\n"]).wait_for(&gate);
    let server = Server::always(reply.pieces(openai_stream(&["Hello"])));
    let sandbox = Sandbox::new().server_env(&server);
    let start = |variant: &str| {
        let terminal = Terminal::new(80);
        let q = match variant {
            "stdout" => sandbox.q(&["hi"]).stdout_to(terminal.end()),
            "stderr" => sandbox.q(&["hi"]).stderr_to(terminal.end()),
            "quiet" => sandbox.q(&["-q", "hi"]).on(&terminal),
            "dumb" => sandbox.q(&["hi"]).on(&terminal).env("TERM", "dumb"),
            _ => sandbox.q(&["hi"]).on(&terminal).env("TERM", "xterm"),
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
        let bytes = terminal.bytes();
        assert_eq!(String::from_utf8_lossy(&bytes), expected, "{variant}");
    }
}

#[test]
fn the_spinner_is_wiped_when_a_signal_ends_q() {
    let server = Server::start(|request, _| match request.text().as_str() {
        text if text.contains("retried") => Reply::new(429).header("retry-after", "50").piece("{}"),
        text if text.contains("begun") => Reply::sse([word("half")]).hang(),
        _ => Reply::new(200).hang(),
    });
    for (args, sign, signal) in [
        (&["-n", "hi"][..], "waiting for openai", libc::SIGINT),
        (&["-n", "hi"], "waiting for openai", libc::SIGTERM),
        (&["-n", "hi"], "waiting for openai", libc::SIGHUP),
        (&["-n", "-x", "begun"], "waiting for openai", libc::SIGINT),
        (&["-n", "retried"], "retrying in", libc::SIGINT),
        (&["hi"], "waiting for standard input", libc::SIGINT),
        (&["-n", "-a", "p", "hi"], "waiting for p, ", libc::SIGINT),
        (&["--models"], "waiting for openai", libc::SIGINT),
    ] {
        let _case = case((args, signal));
        let sandbox = Sandbox::new().server_env(&server);
        make_pipe(&sandbox.home().join("p"));
        let terminal = Terminal::new(80);
        let mut running = sandbox.q(args).on(&terminal).stdin_open().spawn();
        terminal.wait_for(sign, 0);
        running.signal(signal);
        running.wait().killed_by(signal);
        assert_eq!(terminal.screen(), [""]);
    }
}

#[test]
fn the_spinner_is_wiped_before_an_answer_or_an_error() {
    // How many columns the terminal has, what the sign says, what comes then, and the last line.
    let error = data(&json!({"error": "no"}));
    let waiting = "waiting for openai";
    for (columns, sign, busy, comes, last) in [
        (80, waiting, false, vec![error], "q: openai: no"),
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
        let sandbox = Sandbox::new().server_env(&server);
        let running = sandbox.q(&["hi"]).on(&terminal).spawn();
        terminal.wait_for(sign, 0);
        gate.open();
        running.wait();
        let screen = terminal.screen();
        let is_right = screen.len() == 2 && screen[0].starts_with(last) && screen[1].is_empty();
        assert!(is_right, "{screen:?}");
    }
}

#[test]
fn the_spinner_counts_down_to_the_next_try() {
    let server = Server::always(Reply::new(503).header("retry-after", "50").piece("{}"));
    let sandbox = Sandbox::new();
    let terminal = Terminal::new(80);
    let mut running = sandbox.q(&["hi"]).server_env(&server).on(&terminal).spawn();
    let first = terminal.wait_for_seconds("retrying in ", 0);
    let next = terminal.wait_for_seconds("retrying in ", terminal.so_far().len());
    assert!(next < first && first <= 50, "{first}, {next}");
    running.signal(libc::SIGTERM);
    running.wait().killed_by(libc::SIGTERM);
}

#[test]
fn the_spinner_says_that_q_waits_for_standard_input() {
    let server = Server::openai("Hello");
    let sandbox = Sandbox::new();
    let terminal = Terminal::new(80);
    let running = sandbox.q(&["hi"]).server_env(&server);
    let mut running = running.on(&terminal).stdin_open().spawn();
    terminal.wait_for_seconds("waiting for standard input, ", 0);
    server.expect_requests(0);
    running.write_stdin("log\n").close_stdin();
    running.wait().exit(0);
    assert_eq!(terminal.screen(), ["Hello", ""]);
    let found = prompt(&server.request());
    assert_eq!(found, "<context>\nlog\n</context>\n\nhi");
}

#[test]
fn only_one_of_two_q_in_a_pipeline_shows_a_spinner_at_a_time() {
    let gates = [Gate::new(), Gate::new()];
    let held = gates.clone();
    let server = Server::start(move |_, number| {
        Reply::sse([":\n\n"])
            .wait_for(&held[number])
            .pieces(openai_stream(&[format!("answer {number}")]))
    });
    let sandbox = Sandbox::new().server_env(&server);
    let terminal = Terminal::new(80);
    let running = sandbox.shell("q one | q -f two").on(&terminal).spawn();
    server.wait_for_requests(1);
    terminal.wait_for_seconds("waiting for standard input, ", 0);
    let before = terminal.so_far();
    let is_right = !String::from_utf8_lossy(&before).contains("waiting for openai");
    assert!(is_right, "two signs at once");
    gates[0].open();
    server.wait_for_requests(2);
    terminal.wait_for("waiting for openai", before.len());
    let is_right = terminal.screen_so_far()[0].starts_with("waiting for openai");
    assert!(is_right, "{:?}", terminal.screen_so_far());
    gates[1].open();
    running.wait().exit(0);
    assert_eq!(terminal.screen(), ["answer 1", ""]);
}

#[test]
fn the_spinner_does_not_overwrite_the_prompt_of_a_key_command() {
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
    let mut running = sandbox.q(&["hi"]).on(&terminal).stdin_open().spawn();
    terminal.wait_for("waiting for standard input", 0);
    running.write_stdin("log\n").close_stdin();
    terminal.wait_for("Passphrase: ", 0);
    let asked = terminal.screen_so_far();
    fs::write(&pipe, format!("{API_KEY}\n")).expect("a command that reads");
    running.wait().exit(0);
    assert_eq!(asked, ["Passphrase: "]);
}

#[test]
fn notes_and_errors_after_an_answer_begin_on_a_line_of_their_own() {
    let broken = Reply::sse([word("Hello")]).cut();
    let whole = Reply::sse(openai_stream(&["Hello"]));
    let error = json!({"error": {"message": "long", "code": "context_length_exceeded"}});
    let long = Reply::json(400, error);
    // What q is called with, the replies to its requests, and a word of what it says in the end.
    let table: [(&[&str], Vec<Reply>, &str); 3] = [
        (&["hi"], vec![broken], "q: openai: "),
        (&["-v", "hi"], vec![whole.clone()], "q: first word after"),
        (&["-f", "hi"], vec![long, whole], "q: "),
    ];
    for (args, replies, said) in table {
        let _case = case(args);
        let server = Server::start(move |_, number| replies[number].clone());
        let sandbox = Sandbox::new().server_env(&server).env("Q_MODEL", "m");
        sandbox.write_current(&all_of("m"));
        let terminal = Terminal::new(WIDE);
        sandbox.q(args).on(&terminal).env("TERM", "dumb").run();
        let screen = terminal.screen();
        let mut after = screen.iter().skip_while(|line| *line != "Hello").skip(1);
        assert!(after.any(|line| line.starts_with(said)), "{screen:#?}");
    }
}

#[test]
fn reasoning_is_shown_faint_and_escaped_before_the_answer() {
    let thought = data(&json!({"choices": [{"delta": {"reasoning_content": "Let\u{1b}[1m me"}}]}));
    for (name, value, shown) in [
        ("STYLED", "1", "\u{1b}[2mq: | Let^[[1m me\u{1b}[0m"),
        ("NO_COLOR", "1", "q: | Let^[[1m me"),
    ] {
        let _case = case(name);
        let gate = Gate::new();
        let reply = Reply::sse([thought.clone()]).wait_for(&gate);
        let server = Server::always(reply.pieces(openai_stream(&["Because."])));
        let sandbox = Sandbox::new().server_env(&server).env(name, value);
        let terminal = Terminal::new(WIDE);
        let running = sandbox.q(&["-v", "hi"]).on(&terminal).spawn();
        terminal.wait_for(&format!("\n{shown}"), 0);
        gate.open();
        running.wait();
        let bytes = terminal.bytes();
        let all = String::from_utf8_lossy(&bytes);
        assert!(all.contains(&format!("{shown}\r\nBecause.")), "{all:?}");
    }
}

/// A conversation with this text in every field that somebody else can have written.
fn all_of(text: &str) -> Value {
    with(idle_for(HOUR, &[text, text]), "model", text)
}

/// Every character that could drive a terminal, with its visible form.
fn controls() -> Vec<(char, String)> {
    let mut controls = vec![('\u{7f}', "^?".to_owned())];
    let c0 = ('\0'..='\u{1f}').filter(|character| !matches!(character, '\t' | '\n'));
    for (control, letter) in c0.zip("@ABCDEFGHKLMNOPQRSTUVWXYZ[\\]^_".chars()) {
        controls.push((control, format!("^{letter}")));
    }
    for control in '\u{80}'..='\u{9f}' {
        controls.push((control, format!("<{:02X}>", u32::from(control))));
    }
    for control in
        "\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}".chars()
    {
        controls.push((control, format!("<U+{:04X}>", u32::from(control))));
    }
    controls
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
fn assert_no_controls(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    let controls = controls();
    for character in text.replace("\r\n", "").chars() {
        let is_control = controls.iter().any(|(control, _)| *control == character);
        let is_right = character != '\n' && !is_control;
        assert!(is_right, "{character:?} in {text:?}");
    }
    // The same by the rules of a terminal.
    screen(bytes, u16::MAX);
}
