//! Answers on a terminal are broken into lines between words; what is kept, and what others read, is the model's text.

use std::time::{Duration, Instant};

use libc::SIGINT;
use serde_json::Value;

use crate::conversations::idle_for;
use crate::dialect::{in_two_parts, openai_stream, word};
use crate::fixtures::{case, make_pipe};
use crate::pty::Terminal;
use crate::run::Q;
use crate::sandbox::Sandbox;
use crate::screen::screen;
use crate::server::{Gate, Reply, Server};
use crate::times::HOUR;

/// Prose, a list, code and a table.
const ANSWER: &str = "\
A **B-tree** keeps its keys in sorted order, in nodes that have many children each, so that it is never deep.

- A node that is full is split in two, and its middle key moves up to the parent.
  1. 根から葉までの距離はどこでも同じです。木はいつも釣り合っています。

```sh
sort --unique --key=1,1 --field-separator=: /etc/passwd | head -n 100 | tail -n 10 >sorted.txt
```

| operation | how many nodes are read and written in the worst case of all, with a cold cache |
";

const AT_40: &str = "\
A **B-tree** keeps its keys in sorted \n\
order, in nodes that have many children \n\
each, so that it is never deep.

- A node that is full is split in two, \n  \
and its middle key moves up to the \n  \
parent.
  1. 根から葉までの距離はどこでも同じで\n     \
す。木はいつも釣り合っています。

```sh
sort --unique --key=1,1 --field-separator=: /etc/passwd | head -n 100 | tail -n 10 >sorted.txt
```

| operation | how many nodes are read and written in the worst case of all, with a cold cache |
";

#[test]
fn an_answer_is_broken_between_words_on_a_terminal_and_nowhere_else() {
    let letters: Vec<String> = ANSWER.chars().map(String::from).collect();
    for stream in [openai_stream(&letters), openai_stream(&[ANSWER])] {
        let server = Server::always(Reply::sse(stream));
        let sandbox = Sandbox::new().server_env(&server);
        for args in [&["hi"][..], &["--no-stream", "hi"]] {
            assert_eq!(on_terminal(sandbox.q(args), 40), AT_40);
            sandbox.expect_answer(ANSWER, false);
            sandbox.q(args).run().success().stdout(ANSWER);
        }
    }
}

/// What the other tests see is what a terminal makes of it.
#[test]
fn the_screen_of_these_tests_has_columns_and_not_characters() {
    for (bytes, expected) in [
        ("abcdef", &["abcd", "ef"][..]),
        // One column is left, and it takes two.
        ("abc日本", &["abc", "日本"]),
        ("日本語", &["日本", "語"]),
        (
            "e\u{301}e\u{301}e\u{301}e\u{301}e",
            &["e\u{301}e\u{301}e\u{301}e\u{301}", "e"],
        ),
        ("👩\u{200d}👧🇩🇪a", &["👩\u{200d}👧🇩🇪", "a"]),
        ("日本\rab", &["ab本"]),
        ("日本\ra", &["a 本"]),
        ("abcd\r日\u{1b}[K", &["日"]),
        ("a\tb", &["a\t", "b"]),
    ] {
        let _case = case(bytes);
        assert_eq!(screen(bytes.as_bytes(), 4), expected);
    }
}

#[test]
fn wide_letters_stay_within_the_columns_of_the_terminal() {
    for (answer, expected) in [
        ("one 日本語 two", &["one 日", "本語 ", "two", ""][..]),
        ("日本語日本語", &["日本語", "日本語", ""]),
        ("a日本語日本語", &["a日本", "語日本", "語", ""]),
        (
            "👩\u{200d}👧 👩\u{200d}👧 👩\u{200d}👧",
            &["👩\u{200d}👧 👩\u{200d}👧 ", "👩\u{200d}👧", ""],
        ),
    ] {
        let _case = case(answer);
        let server = Server::openai(answer);
        let sandbox = Sandbox::new().server_env(&server);
        assert_eq!(sandbox.q(&["hi"]).shown_on(7).screen(), expected);
    }
}

#[test]
fn lines_are_not_wrapped_if_that_is_configured() {
    let server = Server::openai(ANSWER);
    let sandbox = Sandbox::new().server_env(&server);
    let ask = |name: &str, value: &str| on_terminal(sandbox.q(&["hi"]).env(name, value), 40);
    assert_eq!(ask("Q_WRAP", "false"), ANSWER);
    assert_eq!(ask("TERM", "dumb"), ANSWER);
    assert_eq!(ask("TERM", "xterm"), AT_40);
    sandbox.config("wrap = false");
    assert_eq!(ask("TERM", "xterm"), ANSWER);
    assert_eq!(ask("Q_WRAP", "true"), AT_40);
}

#[test]
fn code_and_json_are_not_wrapped() {
    let code = "a line of code that is longer than the terminal, and must be pasted as it is\n";
    let answer = format!("```\n{code}```\n");
    let server = Server::openai(&answer);
    let sandbox = Sandbox::new().server_env(&server);
    assert_eq!(on_terminal(sandbox.q(&["-x", "hi"]), 40), code);
    assert_eq!(on_terminal(sandbox.q(&["--last", "-x"]), 40), code);
    for args in [&["-j", "hi"][..], &["--last", "-j"], &["--history", "-j"]] {
        let _case = case(args);
        let json = on_terminal(sandbox.q(args), 40);
        let is_right = json.contains("longer than the terminal, and must be pasted");
        assert!(is_right, "{json}");
    }
    let object = r#"{"text": "words that go on and on beyond the end of a line"}"#;
    let server = Server::openai(object);
    let q = sandbox.q(&["--schema", "text", "hi"]).server_env(&server);
    let shown = on_terminal(q, 40);
    assert_eq!(shown, format!("{object}\n"));
}

/// What stands above an answer of a stored conversation without times.
const ASSISTANT: &str = "[assistant openai/stored-model]";

#[test]
fn last_and_history_are_wrapped_even_if_the_configuration_is_wrong() {
    let sandbox = Sandbox::new();
    let question = "question one two three four five six seven";
    let mut conversation = idle_for(HOUR, &[question, ANSWER, "again", ANSWER]);
    for message in conversation["messages"].as_array_mut().expect("messages") {
        message["timestamp"].take();
    }
    // A fence that is never closed is no concern of the next message.
    conversation["messages"][1]["content"] = Value::from("```\ncode");
    sandbox.write_current(&conversation);
    let history = |question: &str, answer: &str| {
        format!(
            "[user]\n{question}\n\n{ASSISTANT}\n```\ncode\n\n[user]\nagain\n\n{ASSISTANT}\n{answer}"
        )
    };
    let broken = history("question one two three four five six \nseven", AT_40);
    for config in ["", "wrap = tru"] {
        let _case = case(config);
        sandbox.config(config);
        assert_eq!(on_terminal(sandbox.q(&["--last"]), 40), AT_40);
        assert_eq!(on_terminal(sandbox.q(&["--history"]), 40), broken);
    }
    let unbroken = history(question, ANSWER);
    sandbox.config("wrap = false");
    assert_eq!(on_terminal(sandbox.q(&["--last"]), 40), ANSWER);
    assert_eq!(on_terminal(sandbox.q(&["--history"]), 40), unbroken);
    sandbox.config("");
    let found = on_terminal(sandbox.q(&["--last"]).env("TERM", "dumb"), 40);
    assert_eq!(found, ANSWER);
    sandbox.q(&["--last"]).run().success().stdout(ANSWER);
    sandbox.q(&["--history"]).run().success().stdout(unbroken);
}

#[test]
fn a_word_is_printed_when_it_has_ended_and_half_a_word_after_a_pause() {
    let gates = [Gate::new(), Gate::new()];
    let reply = Reply::sse([word("first ")]).wait_for(&gates[0]);
    let reply = reply.piece(word("sec")).wait_for(&gates[1]);
    let server = Server::always(reply.pieces(openai_stream(&["ond third"])));
    let sandbox = Sandbox::new().server_env(&server);
    let terminal = Terminal::new(20);
    let running = sandbox.q(&["hi"]).stdout_to(terminal.end()).spawn();
    assert_eq!(terminal.wait_for("first ", 0), b"first ");
    let began = Instant::now();
    gates[0].open();
    assert_eq!(terminal.wait_for("sec", 0), b"first sec");
    let is_right = began.elapsed() >= Duration::from_millis(100);
    assert!(is_right, "after {:?}", began.elapsed());
    gates[1].open();
    running.wait().exit(0);
    assert_eq!(terminal.screen(), ["first second third", ""]);
    sandbox.expect_answer("first second third", false);
}

#[test]
fn a_word_held_back_for_wrapping_is_saved_when_a_signal_comes() {
    let server = Server::always(Reply::sse([word("one two three\nfour fi")]).hang());
    let sandbox = Sandbox::new().server_env(&server);
    let terminal = Terminal::new(12);
    let mut running = sandbox.q(&["hi"]).stdout_to(terminal.end()).spawn();
    terminal.wait_for("four ", 0);
    running.signal(SIGINT);
    running.wait().killed_by(SIGINT);
    sandbox.expect_answer("one two three\nfour fi", true);
}

#[test]
fn a_word_held_back_for_wrapping_is_shown_and_saved_if_the_connection_breaks() {
    let server = Server::always(Reply::sse([word("one two thr")]).cut());
    let sandbox = Sandbox::new().server_env(&server);
    let terminal = Terminal::new(80);
    sandbox.q(&["hi"]).stdout_to(terminal.end()).run().exit(1);
    assert_eq!(terminal.text_alone(), "one two thr\n");
    sandbox.expect_answer("one two thr", true);
}

#[test]
fn lines_are_wrapped_at_the_width_that_the_terminal_has_when_they_arrive() {
    let gate = Gate::new();
    let line = "one two three four five six\n";
    let server = Server::always(in_two_parts(line, &gate, line));
    let sandbox = Sandbox::new().server_env(&server);
    let mut terminal = Terminal::new(20);
    let running = sandbox.q(&["hi"]).stdout_to(terminal.end()).spawn();
    terminal.wait_for("six\r\n", 0);
    terminal.resize(10);
    gate.open();
    running.wait().exit(0);
    let expected = "one two three four \nfive six\none two \nthree \nfour five \nsix\n";
    assert_eq!(terminal.text_alone(), expected);
    sandbox.expect_answer(&line.repeat(2), false);
}

#[test]
fn notes_and_errors_are_broken_between_words_and_go_on_under_their_text() {
    let sandbox = Sandbox::new();
    let terminal = Terminal::new(30);
    sandbox.q(&["-s", "a b", "hi"]).on(&terminal).run().exit(2);
    let expected = "\
        q: --session: “a b” is not a \n   valid name: it must have 1 \n   \
        to 100 characters: A-Z a-z \n   0-9 . _ -, and not begin \n   with a dot, a hyphen, \n   “current” or “session_”\n\
        q: give a system prompt with \n   -S, or ask for code alone \n   with -x, because -s names \n   a conversation\n";
    assert_eq!(terminal.screen().join("\n"), expected);
}

#[test]
fn the_spinner_fits_on_its_line_and_escapes_control_characters() {
    let server = Server::always(Reply::new(500));
    let sandbox = Sandbox::new().server_env(&server);
    make_pipe(&sandbox.home().join("日本語\u{1b}[31m日本語"));
    let terminal = Terminal::new(30);
    let q = sandbox.q(&["-a", "日本語\u{1b}[31m日本語", "hi"]);
    let mut running = q.on(&terminal).spawn();
    terminal.wait_for("waiting for 日本語^[[31m日", 0);
    assert_eq!(terminal.screen_so_far(), ["waiting for 日本語^[[31m日本…"]);
    running.signal(SIGINT);
    running.wait().killed_by(SIGINT);
}

/// What a run prints on a terminal of this many columns, on which nothing else is.
#[track_caller]
fn on_terminal(q: Q, columns: u16) -> String {
    q.shown_on(columns).text_alone()
}
