//! `-x`: the code of an answer and nothing else; in a pipe only once the answer is complete.

use serde_json::json;

use crate::dialect::{DONE, data, finish, openai_event, openai_stream};
use crate::fixtures::case;
use crate::sandbox::Sandbox;
use crate::server::{Gate, Reply, Server};

/// A script that must not run in part.
const SCRIPT: &str = "Here:\n```sh\necho one\necho two\n```\n";

#[test]
fn the_contents_of_fences_come_out_and_nothing_else() {
    let table = [
        ("Do this:\n\n```sh\nls -l\n```\nThat is all.", "ls -l\n"),
        // Several blocks, one after the other; which lines are code in them is tested beside the code.
        ("```\na\n```\ntext\n\n~~~ python\nb\n~~~\n", "a\nb\n"),
        (
            "1. Run\n\n   ```sh\n   if x; then\n     y\n   fi\n   ```\n2. Done\n",
            "if x; then\n  y\nfi\n",
        ),
        // The last one is not closed, or does not even end its line.
        ("```sh\nls\ndf", "ls\ndf\n"),
        ("a\n```\nls\n", "ls\n"),
        // Line ends and controls stay as they are in a pipe.
        ("```\r\na\r\n```\r\n", "a\r\n"),
        (
            "```\n\u{1b}[31mred\u{202e}\n```\n",
            "\u{1b}[31mred\u{202e}\n",
        ),
    ];
    let server = Server::openai_each(move |number| table[number].0.to_owned());
    for (answer, code) in table {
        let _case = case(answer);
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.q(&["-x", "how?"]).run().success().stdout(code);
        sandbox.expect_answer(answer, false);
        sandbox.q(&["--last", "-x"]).run().success().stdout(code);
        sandbox
            .q(&["--last"])
            .run()
            .success()
            .stdout_contains(answer);
    }
}

#[test]
fn an_answer_without_code_prints_nothing_and_is_saved() {
    let none = "q: there is no code block in the answer\n";
    let uncertain = "q: it is not certain which lines of the answer are code: a line of text ends in backticks\n";
    for (answer, message) in [
        ("Use `ls`, or ``` so ```.\n    ```\n    x\n", none),
        // A block without content is none.
        ("```\n```\n", none),
        ("```sh\n\n \n```\n", none),
        ("foo.```\nls\n```\n", uncertain),
        // The second line of backticks would begin a block, and its text would run.
        ("Run this: ```sh\nls\n```\nThen reboot\n", uncertain),
    ] {
        let _case = case(answer);
        let server = Server::openai(answer);
        let sandbox = Sandbox::new().server_env(&server);
        let asked = sandbox.q(&["-x", "how?"]).run();
        asked.exit(1).stdout_is_empty().stderr_contains(message);
        sandbox.expect_answer(answer, false);
        let again = sandbox.q(&["--last", "-x"]).run();
        again.exit(1).stdout_is_empty().stderr_contains(message);
        server.expect_requests(1);
    }
}

#[test]
fn only_the_built_in_system_prompt_asks_for_a_code_block() {
    let server = Server::openai("```\nls\n```\n");
    let sandbox = Sandbox::new().server_env(&server);
    for (options, setting, asks) in [
        (&["-x"][..], "", true),
        (&[], "", false),
        (&["-x", "-S", "Be brief."], "", false),
        (&["-x", "-S", ""], "", false),
        (&["-x"], "Be brief.", false),
    ] {
        let name = format!("{options:?} {setting}");
        let _case = case(&name);
        sandbox
            .q(options)
            .arg("how?")
            .env("Q_SYSTEM", setting)
            .run()
            .success();
        let system = server.last_request().json()["messages"][0]["content"].to_string();
        assert_eq!(
            system.contains("into one fenced code block"),
            asks,
            "{system}"
        );
    }
}

#[test]
fn advice_about_code_that_is_not_printed_names_the_conversation_that_has_the_answer() {
    let server = Server::start(move |request, _| match request.text().contains("cut") {
        true => Reply::sse([
            openai_event(json!({"content": SCRIPT}), Some("length")),
            DONE.to_vec(),
        ]),
        false => Reply::sse(openai_stream(&["no code"])),
    });
    let sandbox = Sandbox::new().server_env(&server);
    for (question, exit) in [("none", 1), ("cut", 3)] {
        // An answer that was not saved cannot be printed again; --last would print another one.
        let unsaved = sandbox.q(&["-x", "--no-save", question]).run();
        unsaved.exit(exit).stdout_is_empty().stderr_lacks("--last");
        let named = sandbox.q(&["-x", "-s", "work", question]).run();
        named
            .exit(exit)
            .stdout_is_empty()
            .stderr_contains("-s work");
    }
    let asked = sandbox.q(&["-j", "first"]).run().success().stdout_json();
    let id = asked["id"].as_str().expect("an id");
    let again = sandbox.q(&["-x", "-s", id, "--again", "second"]).run();
    again.exit(1).stderr_contains(&format!("q --last -s {id}"));
}

#[test]
fn nothing_is_printed_into_a_pipe_before_the_answer_has_ended() {
    let gate = Gate::new();
    let mut events = openai_stream(&[SCRIPT]);
    let end = events.split_off(2);
    let server = Server::always(Reply::sse(events).wait_for(&gate).pieces(end));
    let sandbox = Sandbox::new().server_env(&server);
    let mut waiting = sandbox.q(&["-x", "--no-save", "how?"]).spawn();
    server.wait_for_requests(1);
    // This one has been sent the same, and later.
    let mut other = sandbox.q(&["how?"]).spawn();
    other.read_stdout_until("echo two");
    assert_eq!(waiting.read_stdout_until(""), b"");
    gate.open();
    waiting.wait().success().stdout("echo one\necho two\n");
    other.wait().success();
}

#[test]
fn code_that_breaks_off_is_not_printed_into_a_pipe() {
    let begun = || Reply::sse(&openai_stream(&[SCRIPT])[..2]);
    let asked = |reply: Reply, exit| {
        let server = Server::always(reply);
        let sandbox = Sandbox::new().server_env(&server);
        let outcome = sandbox.q(&["-x", "how?"]).run();
        outcome.exit(exit).stdout_is_empty();
        (sandbox, outcome)
    };
    for (what, reply) in [
        ("cut", begun().cut()),
        ("ended without its end", begun()),
        (
            "an error",
            begun().piece(data(&json!({"error": {"message": "overloaded"}}))),
        ),
        (
            "blocked",
            begun().piece(finish("content_filter")).piece(DONE),
        ),
    ] {
        let _case = case(what);
        let (sandbox, _) = asked(reply, 1);
        sandbox.expect_answer(SCRIPT, true);
        sandbox
            .q(&["--last", "-x"])
            .run()
            .exit(1)
            .stdout_is_empty()
            .stderr_contains("interrupted");
    }

    // A reset may overtake the words before it: then there is nothing to be saved.
    let (sandbox, _) = asked(begun().reset(), 1);
    if !sandbox.session_files().is_empty() {
        sandbox.expect_answer(SCRIPT, true);
    }

    // What was cut at the limit of tokens is saved as an answer, with the provider's word.
    let (sandbox, outcome) = asked(begun().piece(finish("length")).piece(DONE), 3);
    outcome.stderr_contains("token limit");
    sandbox.expect_answer(SCRIPT, false);
    assert_eq!(sandbox.current()["messages"][1]["finish"], "length");
    let refused = "q: this answer may be incomplete: it ended with “length”, so its code is not printed\n\
                   q: q --last prints the incomplete answer\n";
    sandbox
        .q(&["--last", "-x"])
        .run()
        .exit(1)
        .stdout_is_empty()
        .stderr(refused);
    sandbox
        .q(&["--last"])
        .run()
        .exit(0)
        .stdout(SCRIPT)
        .stderr_contains("length");
}

#[test]
fn a_shell_never_runs_half_a_script() {
    let server = Server::start(|_, number| {
        let events = openai_stream(&["```sh\ntouch half\n", "touch whole\n```\n"]);
        if number == 0 {
            Reply::sse(&events[..2]).cut()
        } else {
            Reply::sse(events)
        }
    });
    let sandbox = Sandbox::new().server_env(&server);
    let touched = |name: &str| sandbox.home().join(name).exists();
    let cut = sandbox.shell("q -x how? | sh").run();
    cut.check(!touched("half") && !touched("whole"), || {
        "expected no file".to_owned()
    });
    let whole = sandbox.shell("q -x how? | sh").run();
    whole.check(touched("half") && touched("whole"), || {
        "expected both files".to_owned()
    });
}
