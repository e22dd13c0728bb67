//! `-x`: the code of an answer and nothing else, and into a pipe not before the answer has ended well.

use serde_json::json;

use crate::sandbox::Sandbox;
use crate::server::{Gate, Reply, Server, openai_event, openai_stream};

/// A script that must not run by halves.
const SCRIPT: &str = "Here:\n```sh\necho one\necho two\n```\n";

#[test]
fn the_contents_of_fences_come_out_and_nothing_else() {
    let table = [
        ("Do this:\n\n```sh\nls -l\n```\nThat is all.", "ls -l\n"),
        ("~~~\na\n~~~\n", "a\n"),
        // Several blocks, one after the other.
        ("```\na\n```\ntext\n\n~~~ python\nb\n~~~\n", "a\nb\n"),
        // A fence is closed by one of its own kind, at least as long, with nothing behind it.
        ("````md\n```sh\nx\n```\n````\n", "```sh\nx\n```\n"),
        ("```\na\n~~~\nb\n```\n", "a\n~~~\nb\n"),
        ("~~~\n```\n~~~~~\nout\n", "```\n"),
        ("```\na\n``` sh\nb\n```  \nout\n", "a\n``` sh\nb\n"),
        // Info strings: backticks may not stand behind backticks, but behind tildes.
        ("```sh title=\"x.sh\" {1,2}\na\n```\n", "a\n"),
        ("~~~ a`b\nc\n~~~\n", "c\n"),
        ("``` a`b\nno code\n\n```\nx\n```\n", "x\n"),
        // Indentation goes as far as the fence's own.
        ("  ```\n    a\n  b\nc\n  ```\n", "  a\nb\nc\n"),
        ("1. Run\n\n   ```sh\n   if x; then\n     y\n   fi\n   ```\n2. Done\n", "if x; then\n  y\nfi\n"),
        ("    ```\n    indented code\n    ```\n\n```\nx\n```\n", "x\n"),
        ("```\n\ta\n\n  b  \n```\n", "\ta\n\n  b  \n"),
        // The last one is not closed, or does not even end its line.
        ("```sh\nls\ndf", "ls\ndf\n"),
        ("a\n```\nls\n", "ls\n"),
        // Line ends and controls stay as they are in a pipe.
        ("```\r\na\r\n```\r\n", "a\r\n"),
        ("```\n\u{1b}[31mred\u{202e}\n```\n", "\u{1b}[31mred\u{202e}\n"),
    ];
    let server = Server::openai_each(move |number| table[number].0.to_owned());
    for (answer, code) in table {
        let sandbox = Sandbox::new().server_env(&server);
        let outcome = sandbox.q(&["-x", "how?"]).run();
        outcome.check(outcome.stdout == code.as_bytes(), || format!("expected of {answer:?}: {code:?}"));
        outcome.success();
        assert_eq!(sandbox.current()["messages"][1]["content"], answer);
        sandbox.q(&["--last", "-x"]).run().success().stdout(code);
        sandbox.q(&["--last"]).run().success().stdout_contains(answer);
    }
}

#[test]
fn an_answer_without_code_prints_nothing_and_is_saved_whole() {
    let answer = "Use `ls`, or ``` so ```.\n    ```\n    x\n";
    let server = Server::openai(answer);
    let sandbox = Sandbox::new().server_env(&server);
    let message = "q: there is no code block in the answer\n";
    let asked = sandbox.q(&["-x", "how?"]).run();
    asked.exit(1).stdout_is_empty().stderr_contains(message);
    let current = sandbox.current();
    assert_eq!(current["messages"][1]["content"], answer);
    assert!(current["messages"][1].get("interrupted").is_none());
    let again = sandbox.q(&["--last", "-x"]).run();
    again.exit(1).stdout_is_empty().stderr_contains(message);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn an_empty_block_is_a_block() {
    let server = Server::openai("```\n```\n");
    Sandbox::new().server_env(&server).q(&["-x", "how?"]).run().success().stdout_is_empty();
}

#[test]
fn advice_about_code_that_is_not_printed_names_the_conversation_that_has_the_answer() {
    let cut = || Reply::sse([openai_event(json!({"content": SCRIPT}), Some("length")), b"data: [DONE]\n\n".to_vec()]);
    let server = Server::start(move |request, _| match request.text().contains("cut") {
        true => cut(),
        false => Reply::sse(openai_stream(&["no code"])),
    });
    let sandbox = Sandbox::new().server_env(&server);
    for question in ["none", "cut"] {
        // What was not saved cannot be printed again, and what --last has is another answer.
        let unsaved = sandbox.q(&["-x", "--no-save", question]).run();
        unsaved.exit(1).stdout_is_empty().stderr_lacks("--last");
        let named = sandbox.q(&["-x", "-s", "work", question]).run();
        named.exit(1).stdout_is_empty().stderr_contains("-s work");
    }
}

#[test]
fn nothing_is_printed_into_a_pipe_before_the_answer_has_ended() {
    let gate = Gate::new();
    let held = gate.clone();
    let server = Server::start(move |_, _| {
        let mut events = openai_stream(&[SCRIPT]);
        let end = events.split_off(2);
        Reply::sse(events).wait_for(&held).pieces(end)
    });
    let sandbox = Sandbox::new().server_env(&server);
    let mut waiting = sandbox.q(&["-x", "--no-save", "how?"]).spawn();
    server.wait_for_requests(1);
    // It has been sent as much, and later.
    let mut other = sandbox.q(&["how?"]).spawn();
    other.read_stdout_until("echo two");
    assert_eq!(waiting.read_stdout_until(""), b"");
    gate.open();
    waiting.wait().success().stdout("echo one\necho two\n");
    other.wait().success();
}

#[test]
fn code_that_breaks_off_is_not_printed_into_a_pipe() {
    let events = || openai_stream(&[SCRIPT])[..2].to_vec();
    let word = |word: &'static str| openai_event(json!({}), Some(word));
    let error = b"data: {\"error\":{\"message\":\"overloaded\"}}\n\n".to_vec();
    let table = [
        ("cut", Reply::sse(events()).cut()),
        ("reset", Reply::sse(events()).reset()),
        ("ended without its end", Reply::sse(events())),
        ("an error", Reply::sse(events()).piece(error)),
        ("blocked", Reply::sse(events()).piece(word("content_filter")).piece("data: [DONE]\n\n")),
        ("the limit of tokens", Reply::sse(events()).piece(word("length")).piece("data: [DONE]\n\n")),
    ];
    for (what, reply) in table {
        let server = Server::start(move |_, _| reply.clone());
        let sandbox = Sandbox::new().server_env(&server);
        let outcome = sandbox.q(&["-x", "how?"]).run();
        outcome.check(outcome.status.code() == Some(1) && outcome.stdout.is_empty(), || {
            format!("{what}: expected exit code 1 and nothing on stdout")
        });
        let limit = what == "the limit of tokens";
        // A reset may overtake the words before it: then there is nothing to be saved.
        if what != "reset" || !sandbox.session_files().is_empty() {
            let answer = &sandbox.current()["messages"][1];
            assert_eq!(answer["content"], SCRIPT, "{what}");
            assert_eq!(answer["interrupted"] == true, !limit, "{what}");
        }
        if what == "reset" {
            continue;
        }
        let again = sandbox.q(&["--last", "-x"]).run();
        if limit {
            // It was saved as an answer, and who asks for it again has been told.
            outcome.stderr_contains("limit of tokens");
            again.success().stdout("echo one\necho two\n");
        } else {
            again.exit(1).stdout_is_empty().stderr_contains("interrupted");
        }
    }
}

#[test]
fn a_shell_never_runs_half_a_script() {
    let server = Server::start(|_, number| {
        let events = openai_stream(&["```sh\ntouch half\n", "touch whole\n```\n"]);
        if number == 0 { Reply::sse(&events[..2]).cut() } else { Reply::sse(events) }
    });
    let sandbox = Sandbox::new().server_env(&server);
    for (half, name) in [(true, "half"), (false, "whole")] {
        sandbox.shell("q -x how? | sh").run();
        assert_eq!(sandbox.home().join(name).exists(), !half);
        assert_eq!(sandbox.home().join("half").exists(), !half);
    }
}
