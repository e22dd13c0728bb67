//! What comes out: the answer on standard output, all else on standard error, and the exit code.

use std::io;
use std::net::TcpListener;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::fixtures::{
    DIALECTS, DONE, anthropic_stream, case, everybody, failure, finish, full_device, gemini_stream, openai_event,
    openai_stream, snapshot, typed_event, word,
};
use crate::sandbox::{Q, Sandbox};
use crate::server::{Gate, Reply, Server};

/// A sandbox that finds each of the three APIs at `server`, and asks OpenAI's where a test does not say otherwise.
fn sandbox_of(server: &Server) -> Sandbox {
    Sandbox::new().every_env(server).env("Q_PROVIDER", "openai").env("Q_RETRIES", "0")
}

/// One event of a Gemini-like stream.
fn gemini(event: Value) -> Vec<u8> {
    format!("data: {event}\r\n\r\n").into_bytes()
}

fn gemini_candidate(parts: Value, finish_reason: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}});
    if let Some(reason) = finish_reason {
        candidate["finishReason"] = json!(reason);
    }
    json!({"candidates": [candidate]})
}

/// The events of an Anthropic-like stream from this delta and this reason to stop.
fn anthropic(delta: Value, stop_reason: &str) -> Vec<Vec<u8>> {
    let kind = if delta["type"] == "thinking_delta" { "thinking" } else { "text" };
    vec![
        typed_event(json!({"type": "message_start", "message": {"role": "assistant", "content": []}})),
        typed_event(json!({"type": "content_block_start", "index": 0, "content_block": {"type": kind, kind: ""}})),
        typed_event(json!({"type": "content_block_delta", "index": 0, "delta": delta})),
        typed_event(json!({"type": "content_block_stop", "index": 0})),
        typed_event(json!({"type": "message_delta", "delta": {"stop_reason": stop_reason}})),
        typed_event(json!({"type": "message_stop"})),
    ]
}

fn openai(delta: Value, finish_reason: &str) -> Vec<Vec<u8>> {
    vec![openai_event(delta, None), finish(finish_reason), DONE.to_vec()]
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
            // The first events that hold a word are those that may not be answered with more before it is out.
            let text = String::from_utf8(piece.clone()).unwrap();
            reply = reply.piece(piece);
            if ["one ", "two\\n", "three"].iter().any(|word| text.contains(word))
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
        ("\u{202e}turned\u{2066} \u{feff}\u{fffd} \u{10ffff}", "\u{202e}turned\u{2066} \u{feff}\u{fffd} \u{10ffff}\n"),
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
fn no_stream_prints_nothing_before_the_answer_is_whole() {
    let half = [word("half ")];
    let whole = json!({"choices": [{"message": {"role": "assistant", "content": "half"}}]}).to_string();
    let cut = Reply::new(200).header("content-type", "application/json").piece(&whole[..whole.len() - 4]).cut();
    for (what, reply) in [
        // Some servers stream whatever they are asked for.
        ("a stream", Reply::sse(half).cut()),
        ("one piece", cut),
    ] {
        let _case = case(what);
        let server = Server::always(reply);
        let sandbox = sandbox_of(&server);
        sandbox.q(&["--no-stream", "why"]).run().exit(1).stdout_is_empty().stderr_contains("openai");
    }
}

#[test]
fn blank_lines_while_an_answer_in_one_piece_is_awaited_do_no_harm() {
    // Busy servers send some so that the connection stays alive; as many as these are never read at once.
    let blank = "\n".repeat(200_000);
    let whole = json!({"choices": [{"message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}]});
    let reply = Reply::new(200).header("content-type", "application/json").chunked();
    let server = Server::always(reply.piece(blank).piece(whole.to_string()));
    sandbox_of(&server).q(&["--no-stream", "why"]).run().success().stdout("fine\n");
}

#[test]
fn the_exit_code_says_who_is_to_blame() {
    let server = Server::openai("fine");
    let refusing = Server::always(failure(400, "no such thing"));
    let failing = Server::always(failure(500, "out of order"));
    // Taken and let go again: nobody listens there now.
    let nobody = format!("http://{}/v1", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
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
        (2, "OPENAI_BASE_URL", &|run| run.env("OPENAI_BASE_URL", "ftp://127.0.0.1/")),
    ];
    for (code, words, change) in table {
        let _case = case(words);
        let outcome = change(sandbox.q(&["-p", "openai", "-f", "why"])).run();
        outcome.exit(*code).stdout_is_empty().explains().stderr_contains(words);
        // What fails before its first word changes nothing.
        before.expect_unchanged();
    }
}

#[test]
fn an_answer_that_is_none_fails() {
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}});
    let table: &[(&str, &str, &str, Vec<Vec<u8>>)] = &[
        ("no words", "openai", "empty", openai_stream::<&str>(&[])),
        ("blanks", "openai", "empty", openai_stream(&[" ", "\n\n"])),
        ("a tool call", "openai", "", openai(json!({"content": null, "tool_calls": []}), "tool_calls")),
        ("blocked", "openai", "content_filter", openai(json!({}), "content_filter")),
        ("nothing before the limit", "openai", "", openai(json!({"content": ""}), "length")),
        ("an error", "openai", "too many", vec![b"data: {\"error\":{\"message\":\"too many\"}}\n\n".to_vec()]),
        ("no event", "openai", "", vec![]),
        ("a comment alone", "openai", "", vec![b": nothing but a comment\n\n".to_vec()]),
        ("a role alone", "openai", "", vec![openai_event(json!({"role": "assistant", "content": ""}), None)]),
        ("no words", "anthropic", "empty", anthropic_stream::<&str>(&[])),
        ("refused", "anthropic", "refusal", anthropic(json!({"type": "text_delta", "text": ""}), "refusal")),
        (
            "an error",
            "anthropic",
            "Overloaded",
            vec![typed_event(json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}))],
        ),
        ("no words", "gemini", "empty", gemini_stream::<&str>(&[])),
        ("blocked", "gemini", "SAFETY", vec![gemini(gemini_candidate(json!([]), Some("SAFETY")))]),
        ("a blocked question", "gemini", "SAFETY", vec![gemini(blocked)]),
    ];
    for (what, provider, words, stream) in table {
        let _case = case((what, provider));
        let server = Server::always(Reply::sse(stream));
        let sandbox = sandbox_of(&server);
        let outcome = sandbox.q(&["-p", provider, "why"]).run();
        outcome.exit(1).stderr_contains(&format!("q: {provider}")).stderr_contains(words);
        outcome.check(outcome.stdout_text().trim().is_empty(), || "expected no answer".to_owned());
        // There was no first word, so there is nothing to continue.
        sandbox.expect_no_files();
    }
}

#[test]
fn an_answer_that_breaks_off_is_shown_and_fails() {
    let half = json!({"type": "text_delta", "text": "half"});
    let table: &[(&str, &str, &str, Vec<Vec<u8>>)] = &[
        ("no end", "openai", "", vec![word("half")]),
        ("blocked", "openai", "content_filter", openai(json!({"content": "half"}), "content_filter")),
        ("an error", "openai", "out of order", vec![word("half"), b"data: {\"error\":\"out of order\"}\n\n".to_vec()]),
        ("no end", "anthropic", "", anthropic(half.clone(), "end_turn").drain(..3).collect()),
        ("refused", "anthropic", "refusal", anthropic(half, "refusal")),
        ("no end", "gemini", "", vec![gemini(gemini_candidate(json!([{"text": "half"}]), None))]),
        ("blocked", "gemini", "SAFETY", vec![gemini(gemini_candidate(json!([{"text": "half"}]), Some("SAFETY")))]),
    ];
    for (what, provider, words, stream) in table {
        let _case = case((what, provider));
        let server = Server::always(Reply::sse(stream));
        let sandbox = sandbox_of(&server);
        let outcome = sandbox.q(&["-p", provider, "why"]).run();
        outcome.exit(1).stdout("half\n").stderr_contains(&format!("q: {provider}")).stderr_contains(words);
        sandbox.expect_answer("half", true);
    }
}

#[test]
fn an_answer_cut_at_the_token_limit_is_an_answer_with_a_note() {
    let table: &[(&str, Vec<Vec<u8>>)] = &[
        ("openai", openai(json!({"content": "half"}), "length")),
        ("anthropic", anthropic(json!({"type": "text_delta", "text": "half"}), "max_tokens")),
        ("gemini", vec![gemini(gemini_candidate(json!([{"text": "half"}]), Some("MAX_TOKENS")))]),
    ];
    for (provider, stream) in table {
        let _case = case(provider);
        let server = Server::always(Reply::sse(stream));
        let sandbox = sandbox_of(&server);
        let outcome = sandbox.q(&["-p", provider, "why"]).run();
        outcome.exit(3).stdout("half\n").stderr_has_lines(1).stderr_contains("q: ").stderr_contains("Q_MAX_TOKENS");
        sandbox.expect_answer("half", false);
    }
}

#[test]
fn the_word_for_an_end_means_the_same_in_every_dialect_and_in_any_case() {
    // Words, the exit status, and what is said with the word.
    let ends: &[(&[&str], i32, &str)] = &[
        (&["stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed", "end"], 0, ""),
        (&["length", "max_tokens", "model_length", "model_context_window_exceeded"], 3, "the token limit"),
        (&["pause_turn", "tool_calls", "tool_use", "nobody_knows_this_word"], 3, "may be incomplete"),
        (
            &["error", "insufficient_system_resource", "malformed_function_call", "malformed_anything"],
            1,
            "ended in an error",
        ),
        (&["content_filter", "refusal", "safety", "recitation", "sensitive"], 1, "blocked the answer"),
    ];
    let half = || json!({"type": "text_delta", "text": "half"});
    let responses = |word: &str| {
        let delta = json!({"type": "response.output_text.delta", "delta": "half"});
        [delta, json!({"type": "response.completed", "response": {"status": word}})].map(typed_event).to_vec()
    };
    for (words, code, note) in ends {
        for word in words.iter().flat_map(|word| [(*word).to_owned(), word.to_uppercase()]) {
            for (dialect, stream) in DIALECTS.iter().zip([
                openai(json!({"content": "half"}), &word),
                anthropic(half(), &word),
                vec![gemini(gemini_candidate(json!([{"text": "half"}]), Some(&word)))],
                responses(&word),
            ]) {
                let _case = case((&word, dialect.provider));
                let server = Server::always(Reply::sse(stream));
                let sandbox = Sandbox::new();
                let outcome = dialect.q(&sandbox, &server, &["why"]).run();
                outcome.exit(*code).stdout("half\n");
                if *code == 0 {
                    outcome.stderr_is_empty();
                } else {
                    outcome.stderr_contains(note).stderr_contains(&word);
                }
                sandbox.expect_answer("half", *code == 1);
                let kept = sandbox.current()["messages"][1]["finish"].clone();
                assert!(*code == 1 || kept == if *code == 3 { json!(word) } else { Value::Null }, "{kept}");
            }
        }
    }
}

#[test]
fn reasoning_never_comes_out() {
    let thinking = json!({"type": "thinking_delta", "thinking": "hmm, let me see"});
    let answer = json!({"type": "text_delta", "text": "42"});
    let by_character: Vec<String> =
        " \n<think>hmm, </thin let me see</think>\n\n42".chars().map(String::from).collect();
    let streams: Vec<(&str, &str, Vec<Vec<u8>>)> = vec![
        ("tags", "openai", openai_stream(&["<think>hmm, let me see</think>42"])),
        ("tags over lines", "openai", openai_stream(&["<think>\nhmm, <b> let me see\n</think>\n\n", "42"])),
        ("tags character by character", "openai", openai_stream(&by_character)),
        (
            "fields",
            "openai",
            [
                vec![openai_event(json!({"content": null, "reasoning_content": "hmm, "}), None)],
                vec![openai_event(json!({"content": "", "reasoning": "let me see"}), None)],
                openai(json!({"content": "42", "reasoning_details": [{"text": "hmm"}]}), "stop"),
            ]
            .concat(),
        ),
        (
            "a thinking block",
            "anthropic",
            [anthropic(thinking, "end_turn").drain(..4).collect(), anthropic(answer, "end_turn").split_off(1)].concat(),
        ),
        (
            "thoughts",
            "gemini",
            vec![
                gemini(gemini_candidate(json!([{"text": "hmm, let me see", "thought": true}]), None)),
                gemini(gemini_candidate(json!([{"text": "hmm", "thought": true}, {"text": "42"}]), Some("STOP"))),
            ],
        ),
    ];
    let wholes = [
        (
            "tags and fields",
            "openai",
            json!({"choices": [{"finish_reason": "stop", "message": {
                "content": "<think>hmm</think>\n42", "reasoning_content": "hmm", "reasoning": "hmm",
            }}]}),
        ),
        (
            "thinking blocks",
            "anthropic",
            json!({"type": "message", "role": "assistant", "stop_reason": "end_turn", "content": [
                {"type": "thinking", "thinking": "hmm", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "aG1t"},
                {"type": "text", "text": "42"},
            ]}),
        ),
        (
            "thoughts",
            "gemini",
            gemini_candidate(json!([{"text": "hmm", "thought": true}, {"text": "42"}]), Some("STOP")),
        ),
    ];
    let asked = |args: &[&str], reply: Reply| {
        let server = Server::always(reply);
        let sandbox = sandbox_of(&server);
        sandbox.q(args).run().success().stdout("42\n");
        sandbox.expect_answer("42", false);
        let file = String::from_utf8(sandbox.read_bytes("current.json")).unwrap();
        assert!(!file.contains("hmm"), "{file}");
    };
    for (what, provider, stream) in streams {
        let _case = case((what, provider));
        asked(&["-p", provider, "why"], Reply::sse(stream));
    }
    for (what, provider, whole) in wholes {
        let _case = case((what, provider));
        asked(&["-p", provider, "--no-stream", "why"], Reply::json(200, whole));
    }
}

#[test]
fn reasoning_alone_is_no_answer() {
    for (what, stream) in [
        ("a closed tag", openai_stream(&["<think>hmm, let me see</think>\n"])),
        ("an open tag", openai_stream(&["<think>hmm, let me"])),
        ("a field", openai(json!({"reasoning_content": "hmm, let me see"}), "length")),
    ] {
        let _case = case(what);
        let server = Server::always(Reply::sse(stream));
        let sandbox = sandbox_of(&server);
        sandbox.q(&["why"]).run().exit(1).stdout_is_empty().stderr_lacks("hmm");
        sandbox.expect_no_files();
    }
}

#[test]
fn a_reader_that_goes_away_ends_q_quietly() {
    for words_read in [0, 1, 2] {
        let _case = case(words_read);
        let gate = Gate::new();
        let mut reply = Reply::sse::<&[u8]>([]);
        for (number, event) in openai_stream(&["one ", "two ", "three"]).iter().enumerate() {
            // The first event has no words.
            if number == words_read + 1 {
                reply = reply.wait_for(&gate);
            }
            reply = reply.piece(event);
        }
        let server = Server::always(reply);
        let sandbox = sandbox_of(&server);
        let mut running = sandbox.q(&["why"]).spawn();
        match words_read {
            0 => server.wait_for_requests(1),
            1 => drop(running.read_stdout_until("one ")),
            _ => drop(running.read_stdout_until("two ")),
        }
        running.close_stdout();
        gate.open();
        running.wait().success();
    }
    let server = Server::openai(&"yes\n".repeat(100_000));
    let sandbox = sandbox_of(&server);
    let script = "{ q why; echo \"exit $?\" >&2; } | head -n 1";
    sandbox.shell(script).run().exit(0).stdout("yes\n").stderr("exit 0\n");
    for action in ["-h", "--help", "--version", "--clear"] {
        let outcome = sandbox.q(&[action]).stdout_to(unread_pipe()).run();
        outcome.exit(0).stderr_lacks("standard output");
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "other systems have no device that is always full")]
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
        outcome.exit(1).stderr_contains("standard output").stderr_contains("No space left");
        outcome.stderr_has_lines(1);
    }
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
        let mut runs =
            vec![sandbox.q(args).stderr_to(unread_pipe()), sandbox.shell("exec q \"$@\" 2>&-").arg("q").args(args)];
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
        let run = sandbox_of(&server).q(&["why"]).stdout_to(full_device()).stderr_to(full_device()).run();
        run.exit(1);
    }
}
