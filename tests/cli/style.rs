//! Markdown on a terminal has weight and colour, and every character stays; nothing else gets a style.

use libc::{SIGINT, SIGKILL};
use serde_json::json;

use crate::conversations::{attachment, idle_for};
use crate::dialect::{data, openai_stream, word};
use crate::fixtures::case;
use crate::pty::{Terminal, WIDE, without_styles};
use crate::sandbox::Sandbox;
use crate::server::{Gate, Reply, Server};
use crate::times::HOUR;

const ANSWER: &str = "\
# Sorting `files`

Use **sort by key** or *uniq*, not snake_case, a*b*c or x**2.

1. Read the `man page` of sort
> - then run

```sh
#!/bin/sh
sort **/*.txt
```

| command | does |
|---|---|
| sort | **order** |
";

/// How it looks at 30 columns: `‹`, the parameters of a style, and `›` where it ends.
const STYLED: &str = "\
‹1m# Sorting ›‹1;36m`files`›

Use ‹1m**sort by key**› or \n\
‹3m*uniq*›, not snake_case, a*b*c \n\
or x**2.

‹2m1.› Read the ‹36m`man page`› of \n   \
sort
‹2m>› ‹2m-› then run

‹2m```sh›
‹36m#!/bin/sh›
‹36msort **/*.txt›
‹2m```›

‹2m|› command ‹2m|› does ‹2m|›
‹2m|---|---|›
‹2m|› sort ‹2m|› ‹1m**order**› ‹2m|›
";

const PLAIN: [(&str, &str); 4] = [
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
    ("Q_STYLE", "false"),
    ("NO_COLOR", "false"),
];

#[test]
fn an_answer_is_styled_on_a_terminal_and_nowhere_else() {
    let letters: Vec<String> = ANSWER.chars().map(String::from).collect();
    for (what, stream) in [
        ("letters", openai_stream(&letters)),
        ("all at once", openai_stream(&[ANSWER])),
    ] {
        let _case = case(what);
        let server = Server::always(Reply::sse(stream));
        let sandbox = Sandbox::new().server_env(&server);
        for args in [&["hi"][..], &["--no-stream", "hi"], &["--last"]] {
            let _case = case(args);
            assert_eq!(joined(&sandbox.q(args).shown_on(30).text()), STYLED);
            let q = sandbox.q(args).env("Q_WRAP", "false").env("NO_COLOR", "");
            let unwrapped = q.shown_on(30).text();
            assert!(unwrapped.contains("\u{1b}[1m"), "{unwrapped}");
            assert_eq!(without_styles(&unwrapped), ANSWER);
            sandbox.q(args).run().success().stdout(ANSWER);
            sandbox.expect_answer(ANSWER, false);
            for (name, value) in PLAIN {
                let plain = sandbox.q(args).env(name, value).shown_on(WIDE).text();
                assert_eq!(plain, ANSWER, "{name}={value}");
            }
        }
        for args in [
            &["-x", "hi"][..],
            &["-j", "hi"],
            &["--last", "-x"],
            &["--last", "-j"],
            &["--history", "-j"],
        ] {
            let shown = sandbox.q(args).shown_on(WIDE).text();
            let is_right = !shown.contains('\u{1b}') && shown.contains("#!/bin/sh");
            assert!(is_right, "{args:?} {shown}");
        }
        sandbox.config("style = false");
        assert_eq!(sandbox.q(&["--last"]).shown_on(WIDE).text(), ANSWER);
    }
}

#[test]
fn a_history_has_styled_answers() {
    let sandbox = Sandbox::new();
    let mut conversation = idle_for(HOUR, &["why **two** stars?", "**so**\n"]);
    for message in conversation["messages"].as_array_mut().expect("messages") {
        message["timestamp"].take();
    }
    conversation["messages"][0]["attachments"] = json!([attachment("__a__.txt", "text/plain", "")]);
    sandbox.write_current(&conversation);
    let shown = sandbox.q(&["--history"]).shown_on(80).text();
    let is_right = shown.contains("__a__.txt") && shown.contains("\nwhy **two** stars?\n");
    assert!(is_right, "{shown}");
    assert!(shown.contains("]\n\u{1b}[1m**so**\u{1b}[0m\n"), "{shown}");
    let outcome = sandbox.q(&["--history"]).run();
    outcome.success().stdout(without_styles(&shown));
}

#[test]
fn no_style_is_left_on_when_q_is_stopped() {
    for signal in [SIGINT, SIGKILL] {
        let server = Server::always(Reply::sse([word("a **bold wor")]).hang());
        let sandbox = Sandbox::new().server_env(&server);
        let terminal = Terminal::new(80);
        let mut running = sandbox.q(&["hi"]).stdout_to(terminal.end()).spawn();
        // After a pause.
        terminal.wait_for("wor", 0);
        running.signal(signal);
        running.wait().killed_by(signal);
        let shown = terminal.text();
        let (_, after) = shown.rsplit_once("\u{1b}").expect("a style");
        let is_right = shown.contains("\u{1b}[1m") && after.starts_with("[0m");
        assert!(is_right, "{shown:?}");
    }
}

#[test]
fn empty_fields_for_reasoning_do_not_count_as_reasoning() {
    let gates = [Gate::new(), Gate::new()];
    let empty =
        json!({"content": "", "reasoning": "", "reasoning_details": [], "reasoning_content": null});
    let empty = data(&json!({"choices": [{"delta": empty}]}));
    let reply = Reply::sse([": wait\n\n"]).wait_for(&gates[0]);
    let reply = reply.piece(empty).wait_for(&gates[1]);
    let server = Server::always(reply.cut());
    let sandbox = Sandbox::new().server_env(&server);
    let terminal = Terminal::new(WIDE);
    let running = sandbox.q(&["hi"]).on(&terminal).spawn();
    terminal.wait_for("waiting for openai, ", 0);
    gates[0].open();
    // The first may have been on its way.
    for _ in 0..2 {
        let seen = terminal.so_far().len();
        terminal.wait_for("waiting for openai, ", seen);
    }
    gates[1].open();
    running.wait().exit(1);
    let shown = terminal.text();
    assert!(!shown.contains("thinking"), "{shown}");
}

#[test]
fn the_spinner_no_longer_says_thinking_once_the_answer_arrives() {
    let gate = Gate::new();
    let thinking = data(&json!({"choices": [{"delta": {"reasoning": "hm"}}]}));
    let held = Gate::new();
    let reply = Reply::sse([thinking]).wait_for(&held);
    let reply = reply.piece(word("```\na")).wait_for(&gate);
    let server = Server::always(reply.pieces(openai_stream(&["b\n```\n"])));
    let sandbox = Sandbox::new().server_env(&server);
    let terminal = Terminal::new(WIDE);
    let running = sandbox.q(&["-x", "hi"]).on(&terminal).spawn();
    terminal.wait_for("thinking, ", 0);
    let seen = terminal.so_far().len();
    held.open();
    terminal.wait_for("waiting for openai, ", seen);
    gate.open();
    running.wait().exit(0);
    assert_eq!(terminal.screen(), ["ab", ""]);
}

/// A style that is switched off and on again between two words has not changed.
fn joined(text: &str) -> String {
    let text = text.replace("\u{1b}[1m\u{1b}[36m", "\u{1b}[1;36m");
    let text = text.replace("\u{1b}[0m", "›").replace("\u{1b}[", "‹");
    let mut joined = String::new();
    for part in text.split_inclusive('›') {
        let style = joined.rfind('‹').map(|at| {
            let style = joined[at..].split_inclusive('m').next();
            style.unwrap_or_default().to_owned()
        });
        match style.and_then(|style| part.strip_prefix(&style).filter(|_| joined.ends_with('›')))
        {
            Some(rest) => {
                joined.pop();
                joined += rest;
            }
            None => joined += part,
        }
    }
    joined
}
