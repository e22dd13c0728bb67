//! The commands of the README and of the manual: each line that runs q, as it stands, in a shell.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Map, Value, json};

use crate::conversations::{PNG, stored};
use crate::dialect::{DIALECTS, models_reply, openai_stream, word};
use crate::fixtures::{case, documents, prompt, session, set_mode, shown_roles};
use crate::machine::lacks;
use crate::pty::{Terminal, WIDE};
use crate::sandbox::Sandbox;
use crate::server::{Reply, Server};

/// What the answer is where nothing else is wanted: a script, so that there is code in it.
const ANSWER: &str = "```\nprint('hello')\n```";

/// Programs of a desktop; these commands need only that they exist.
const STUBS: &[(&str, &str)] = &[
    ("journalctl", "echo failed"),
    ("make", "echo error >&2"),
    ("git", "case $1 in commit) ;; *) echo changed ;; esac"),
    ("curl", "printf '%%PDF-1.4'"),
    ("wl-paste", "cat error.png"),
    ("wl-copy", "cat >/dev/null"),
    ("fzf", "head -n 1"),
    ("vipe", "echo why"),
    ("glow", "cat"),
];

/// The commands that run q, those of several lines joined; the outputs shown between them are no commands.
fn commands(documents: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in documents
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
    {
        let line = line.strip_prefix("$ ").unwrap_or(line);
        if let Some(last) = commands.last_mut().filter(|_| goes_on) {
            last.push('\n');
            last.push_str(line);
        } else if runs_q(line) {
            commands.push(line.to_owned());
        } else {
            continue;
        }
        goes_on = line.ends_with('|');
    }
    let mut seen = BTreeSet::new();
    commands.retain(|command| seen.insert(command.clone()));
    commands
}

/// Whether q is run: not in the synopsis, nor in other shells than bash; a hook, a script for cron and a chat are
/// tested on their own.
fn runs_q(line: &str) -> bool {
    let code = line.split(" #").next().unwrap_or_default();
    let starts = ["q ", "| q ", "&& q ", "; q ", "!q ", "$(q "];
    let is_run = code.starts_with("q ") || starts[1..].iter().any(|start| code.contains(start));
    is_run
        && !code.starts_with(' ')
        && ![
            "[OPTIONS]",
            "keys-fish",
            "keys-zsh",
            "Q_TIMEOUT",
            "$1.tail",
            "read -erp",
        ]
        .iter()
        .any(|other| code.contains(other))
}

/// The least value that a schema allows.
fn example(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            Value::Object(
                properties
                    .map(|(name, schema)| (name.clone(), example(schema)))
                    .collect::<Map<_, _>>(),
            )
        }
        Some("array") => json!([example(&schema["items"])]),
        Some("integer" | "number") => json!(7),
        Some("boolean") => json!(true),
        _ => json!("x"),
    }
}

/// What the manual and the README say that a chat is.
fn chats() -> Vec<String> {
    let documents = documents();
    let parts = documents.split("    (export Q_SESSION=chat-").skip(1);
    parts
        .map(|part| {
            let (rest, _) = part.split_once("done)").expect("an end");
            format!("(export Q_SESSION=chat-{rest}done)")
        })
        .collect()
}

#[test]
fn the_chat_scripts_have_their_own_conversation_and_survive_ctrl_c() {
    if lacks("bash", "bash -c true") {
        return;
    }
    let chats = chats();
    assert_eq!(chats.len(), 2, "one in the manual, and one in the README");
    for chat in chats {
        let _case = case(&chat);
        let server = Server::start(|request, _| {
            let reply = Reply::new(200).header("content-type", "text/event-stream");
            if prompt(request).ends_with("stalled") {
                return reply.piece(word("a word")).hang();
            }
            reply.pieces(openai_stream(&["a word", " and the end"]))
        });
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.write_home("chat.sh", &chat);
        let terminal = Terminal::new(WIDE);
        let running = session(&sandbox, &terminal, "exec bash chat.sh").spawn();
        let mut shown = terminal.wait_for("> ", 0).len();
        terminal.type_in("first\n");
        shown = terminal.wait_for("and the end", shown).len();
        shown = terminal.wait_for("> ", shown).len();
        terminal.type_in("stalled\n");
        shown = terminal.wait_for("a word", shown).len();
        terminal.type_in("\x03");
        // What follows an answer that has been ended is on a line of its own.
        shown = terminal.wait_for("^C\r\n> ", shown).len();
        // Neither an empty line nor one that is taken back asks anything.
        for empty in ["\n", "  \n"] {
            terminal.type_in(empty);
            shown = terminal.wait_for("> ", shown).len();
        }
        terminal.type_in("taken back");
        shown = terminal.wait_for("taken back", shown).len();
        terminal.type_in("\x03");
        shown = terminal.wait_for("^C", shown).len();
        // The shell sets the terminal again after the signal; what is typed meanwhile is not its editor's. It has done so once it
        // shows the line again.
        terminal.type_in("\x0c");
        shown = terminal.wait_for("> taken back", shown).len();
        terminal.type_in("\x15\n");
        shown = terminal.wait_for("> ", shown).len();
        // Delete the last letter, as an editor of lines can.
        terminal.type_in("laste\x08\n");
        shown = terminal.wait_for("and the end", shown).len();
        terminal.wait_for("> ", shown);
        terminal.type_in("\x04");
        running.wait();
        let text = terminal.text();
        assert!(!text.contains("usage"), "{text}");
        // The first question continues nothing, so it needs no note.
        assert!(!text.contains("no conversation to continue"), "{text}");
        assert_eq!(server.requests().len(), 3, "{text}");
        let said = prompt(&server.last_request());
        let is_right = said.contains("Human: first") && said.ends_with("Human: last");
        assert!(is_right, "{said}");
        let files = fs::read_dir(sandbox.sessions()).expect("conversations");
        let mut links = files.flatten().map(|file| file.file_name());
        let is_own = |name: std::ffi::OsString| name.to_string_lossy().starts_with("current-chat-");
        assert!(links.any(is_own));
        assert!(!sandbox.sessions().join("current.json").exists());
    }
}

#[test]
fn each_command_of_the_documents_works() {
    if lacks("jq", "jq --version") || lacks("bash", "bash --version") {
        return;
    }
    let server = Server::start(|request, _| {
        if request.method == "GET" {
            return models_reply(request, json!({"data": [{"id": "a-model"}]}));
        }
        let dialect = &DIALECTS[0];
        let reply = if request.json().get("max_tokens").is_some() {
            DIALECTS[1].reply
        } else {
            dialect.reply
        };
        match &request.json()["response_format"]["json_schema"]["schema"] {
            Value::Null => reply(request, ANSWER),
            schema => reply(request, &example(schema).to_string()),
        }
    });
    let sandbox = Sandbox::new().every_env(&server);
    let sandbox = sandbox.env("Q_PROVIDER", "openai").env("Q_EXPIRE", "never");
    let tools = "[tools.date.day]\nrun = [\"true\"]\n[tools.shop.sql]\nrun = [\"true\"]\n[roles.shop]\ntools = [\"shop\"]\n";
    sandbox.config(&(tools.to_owned() + &shown_roles()));
    let home = sandbox.home();
    for directory in ["bin", "src"] {
        fs::create_dir(home.join(directory)).expect("a directory");
    }
    for (name, script) in STUBS {
        sandbox.write_home(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
        set_mode(&home.join("bin").join(name), 0o755);
    }
    for name in "main.rs src/main.rs Cargo.toml notes.txt app.log a.c b.c".split(' ') {
        sandbox.write_home(name, format!("{name}\n"));
    }
    sandbox.write_home("error.png", PNG);
    // The directories that the manual makes.
    let documents = documents();
    let made = documents
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with("mkdir -p "));
    let made = made.collect::<Vec<_>>().join("; ");
    let directories = format!("mkdir -p ~/.local/state; {made}");
    let commands = commands(&documents);
    assert!(commands.len() > 50, "{commands:#?}");
    for command in commands {
        let _case = case(&command);
        // Each finds what another one may have cleared.
        let mut words = command.split_whitespace();
        let id = words.find(|word| word.starts_with("session_"));
        let id = id.unwrap_or("session_20261114093000000");
        for name in ["current.json", &format!("{id}.json")] {
            sandbox.write_session(name, &stored(&["why a rebase?", ANSWER, "more", ANSWER]));
        }
        if command.contains("--result") {
            let mut called = stored(&["who?", ANSWER]);
            let call = json!({"name": "shop__sql", "arguments": {}, "result": "[]"});
            called["messages"][1]["steps"] = json!([{"calls": [call]}]);
            sandbox.write_session("current.json", &called);
        }
        if command.contains("--copy") {
            let _ = fs::remove_file(sandbox.sessions().join("plan-b.json"));
        }
        let script = format!(
            "PATH=$PWD/bin:$PATH; {directories}; ln -sfn \"$XDG_STATE_HOME/q\" ~/.local/state/q\n{command}"
        );
        let terminal = Terminal::new(WIDE);
        let outcome = sandbox.shell("exec bash -o pipefail -c \"$1\" bash \"$2\"");
        let outcome = outcome.env("Q_MODEL", "").arg("sh");
        let ended = outcome.arg(&script).stdin_from(terminal.end()).run();
        ended.exit(0);
    }
}

#[test]
fn the_recipes_for_the_files_of_conversations_count_tokens_and_copy_them() {
    if lacks("jq", "jq --version") || lacks("rsync", "rsync --version") {
        return;
    }
    let sandbox = Sandbox::new();
    let mut talked = stored(&["why?", ANSWER, "more", ANSWER]);
    for (at, model) in [(1, "a"), (3, "b")] {
        talked["messages"][at]["model"] = json!(model);
        talked["messages"][at]["usage"] = json!({"input_tokens": 10, "output_tokens": at});
    }
    for name in ["work", "session_20261114093000123", "work~1"] {
        sandbox.write_session(&format!("{name}.json"), &talked);
    }
    let documents = documents();
    let recipe = |first: &str, last: &str| {
        let (_, from) = documents.split_once(first).expect(first);
        let (recipe, _) = from.split_once(last).expect(last);
        format!("{first}{recipe}{last}")
    };
    let jq = recipe("jq -rn '[inputs", "*.json");
    let rsync = recipe("rsync -au", "~/.local/state/q/sessions/ ");
    let script = format!(
        "cd \"$XDG_STATE_HOME/q/sessions\"; ln -s work.json current.json; {jq}\n\
         mkdir -p ~/.local/state; ln -s \"$XDG_STATE_HOME/q\" ~/.local/state/q\n{rsync} ~/other/; ls ~/other"
    );
    let files = "session_20261114093000123.json\nwork.json\nwork~1.json\n";
    let expected = format!("a\t20\t2\nb\t20\t6\n{files}");
    sandbox.shell(&script).run().exit(0).stdout(&expected);
}
