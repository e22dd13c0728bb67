//! Tools: what the model is offered, what runs, who is asked, what is kept, and that no server outlives q.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use serde_json::{Value, json};

use crate::dialect::{DIALECTS, Dialect, data, failure, held_back, openai_stream};
use crate::fixtures::{case, in_foreground, make_pipe, session};
use crate::harness::request::Recorded;
use crate::pty::{Terminal, WIDE};
use crate::run::{Q, Running};
use crate::sandbox::Sandbox;
use crate::server::{Gate, Reply, Server};
use crate::times::wait_until;
use crate::toolserver::{calls, expect_gone, heard, is_there, log, section};

const OPENAI: &Dialect = &DIALECTS[0];

/// A call: id, name and arguments.
type Call = (&'static str, &'static str, Value);

/// A server of models that calls these tools with its replies, one reply after another, and then answers.
fn model(rounds: Vec<Vec<Call>>) -> Server {
    Server::start(move |request, number| match rounds.get(number) {
        Some(calls) => OPENAI.calling("let me see", calls),
        None => (OPENAI.reply)(request, "the answer"),
    })
}

/// A sandbox that asks such a server, with a tool server `db`; `more` are more lines of its section.
fn with_db(server: &Server, mode: &str, more: &str) -> Sandbox {
    let sandbox = Sandbox::new().server_env(server).env("Q_RETRIES", "0");
    sandbox.config(&section(&sandbox, "db", mode, more));
    sandbox
}

fn echo(text: &str) -> Call {
    ("call00001", "db__echo", json!({ "text": text }))
}

fn hang() -> Call {
    ("call00001", "db__hang", json!({}))
}

fn write(text: &str) -> Call {
    ("call00001", "db__write", json!({ "text": text }))
}

#[test]
fn the_user_is_asked_about_one_call_at_a_time() {
    for (typed, ran) in [
        ("y\n", 1),
        ("n\n", 0),
        ("\n", 0),
        ("yes\n", 1),
        ("a\n", 2),
        ("Y\n", 1),
        ("yep\n", 0),
    ] {
        let _case = case(typed);
        let two = ("call00002", "db__write", json!({"text": "two"}));
        let server = model(vec![vec![write("one\u{202e}"), two]]);
        let sandbox = with_db(&server, "", "");
        let terminal = Terminal::new(WIDE);
        let running = in_foreground(&sandbox, &terminal, &["-t", "db", "go"]).spawn();
        let question = "q: db__write wants to run:\r\n   text = one\\u{202e}\r\n\
                        q: run db__write? [y]es, [N]o, [a]lways in this run ";
        let shown = terminal.wait_for(question, 0);
        assert_eq!(calls(&sandbox, "db").len(), 0);
        assert!(!String::from_utf8_lossy(&shown).contains("two"));
        terminal.type_in(typed);
        if ran < 2 {
            let question = "q: db__write wants to run:\r\n   text = two\r\nq: run db__write? ";
            terminal.wait_for(question, shown.len());
            assert_eq!(calls(&sandbox, "db").len(), ran);
            terminal.type_in("\n");
        }
        running.wait().exit(0);
        // What was shown with the question is not shown once more.
        let lines = terminal.text().matches("q: db__write {").count();
        assert_eq!(lines, usize::from(ran == 2));
        assert_eq!(calls(&sandbox, "db").len(), ran);
    }
}

#[test]
fn a_question_mark_explains_the_keys_and_the_same_is_asked_again() {
    let text = vec!["x"; 60].join("\n");
    let server = model(vec![vec![write(&text)]]);
    let sandbox = with_db(&server, "", "");
    let terminal = Terminal::new(80);
    let running = in_foreground(&sandbox, &terminal, &["-n", "-t", "db", "go"]).spawn();
    let mut shown = terminal.wait_for("[v]iew, [N]o ", 0).len();
    for (typed, keys, question) in [
        ("?\n", "q: v shows more of the call", "[v]iew, [N]o "),
        ("h\n", "q: v shows more of the call", "[v]iew, [N]o "),
        ("v\n", "", "[a]lways in this run "),
        ("?\n", "q: y runs the call", "[a]lways in this run "),
    ] {
        let _case = case(typed);
        terminal.type_in(typed);
        let all = terminal.wait_for(question, shown);
        let new = String::from_utf8_lossy(&all[shown..]).into_owned();
        assert!(new.contains(keys), "{new}");
        assert_eq!(calls(&sandbox, "db").len(), 0);
        shown = all.len();
    }
    terminal.type_in("y\n");
    running.wait().exit(0);
    assert_eq!(calls(&sandbox, "db").len(), 1);
}

#[test]
fn text_before_an_interrupted_request_for_approval_is_saved_as_the_answer() {
    let server = model(vec![vec![write("one")]]);
    let sandbox = with_db(&server, "", "");
    let terminal = Terminal::new(WIDE);
    let running = in_foreground(&sandbox, &terminal, &["-t", "db", "go"]).spawn();
    terminal.wait_for("q: run db__write? ", 0);
    terminal.type_in("\x03");
    running.wait();
    sandbox.expect_texts("current.json", &["go", "let me see"]);
}

#[test]
fn keys_typed_before_a_request_for_approval_do_not_answer_it() {
    let server = model(vec![vec![write("x")]]);
    let sandbox = with_db(&server, "", "");
    let terminal = Terminal::new(WIDE);
    terminal.type_in("y\ny\ny\n");
    let running = in_foreground(&sandbox, &terminal, &["-q", "-t", "db", "go"]).spawn();
    terminal.answer(&[("? [y]es", "n\n")]);
    running.wait().exit(0);
    assert_eq!(calls(&sandbox, "db").len(), 0);
}

#[test]
fn messages_of_a_tool_server_are_held_back_while_q_asks_for_approval() {
    let server = model(vec![vec![write("x")]]);
    let sandbox = Sandbox::new().server_env(&server);
    let script = "{ until [ -e asked ]; do sleep 0.01; done; echo chatter >&2; touch said; } & :";
    sandbox.config(&section_after(&sandbox, "db", script, ""));
    let terminal = Terminal::new(WIDE);
    let running = in_foreground(&sandbox, &terminal, &["-v", "-t", "db", "go"]).spawn();
    terminal.wait_for("run db__write? ", 0);
    sandbox.write_home("asked", "");
    wait_until(|| sandbox.home().join("said").exists());
    terminal.type_in("n\n");
    running.wait().exit(0);
    let text = terminal.text();
    let (before, _) = text.split_once("in this run n").expect("an answer");
    assert!(!before.contains("chatter"), "{before}");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs /proc")]
fn messages_of_a_tool_server_are_not_held_back_while_another_q_asks() {
    let server = model(vec![vec![write("x")]]);
    let sandbox = Sandbox::new().server_env(&server);
    let script = "{ until [ -e asked ]; do sleep 0.01; done; echo chatter >&2; } & :";
    sandbox.config(&section_after(&sandbox, "db", script, ""));
    let terminal = Terminal::new(WIDE);
    // As another q does while it asks.
    let device = terminal.device();
    device.lock().expect("a lock");
    let running = in_foreground(&sandbox, &terminal, &["-v", "-t", "db", "go"]).spawn();
    wait_until(|| terminal.askers().len() == 1);
    sandbox.write_home("asked", "");
    let shown = terminal.wait_for("chatter", 0).len();
    device.unlock().expect("no lock");
    terminal.wait_for("run db__write? ", shown);
    terminal.type_in("n\n");
    running.wait().exit(0);
}

#[test]
fn an_answer_with_tools_that_nobody_reads_is_saved_on_a_signal() {
    let long = "word ".repeat(60_000);
    let answer = long.clone();
    let server = Server::start(move |request, _| (OPENAI.reply)(request, &answer));
    let sandbox = with_db(&server, "", "");
    let (reader, writer) = std::io::pipe().unwrap();
    let mut running = sandbox.q(&["-t", "db", "go"]).stdout_to(writer).spawn();
    server.wait_for_requests(1);
    // The pipe is full, and q waits for a reader.
    wait_until(|| waits_for_pipe(&running));
    running.signal(libc::SIGTERM);
    running.wait().killed_by(libc::SIGTERM);
    let taken = std::io::read_to_string(reader).unwrap();
    assert!(taken.len() < long.len());
    let saved = &sandbox.current()["messages"][1];
    let text = saved["content"].as_str().expect("text");
    assert!(text.starts_with(&taken));
}

#[test]
fn only_the_first_32_calls_of_a_reply_run() {
    let texts = (0..40).map(|number| echo(&format!("hi {number}")));
    let server = model(vec![texts.collect()]);
    let sandbox = with_db(&server, "", "");
    sandbox.q(&["-t", "db", "go"]).run().success();
    assert_eq!(calls(&sandbox, "db").len(), 32);
    let kept = sandbox.current()["messages"][1]["steps"][0]["calls"].clone();
    assert_eq!(kept.as_array().map(Vec::len), Some(40));
    assert_eq!(kept[31]["result"], "you said hi 31");
    let refused = "The call was refused: at most 32 calls of one reply run.";
    assert_eq!(kept[32]["result"], refused);
    assert_eq!(kept[39]["error"], true);
}

#[test]
fn the_results_of_refused_calls_count_towards_the_limit_of_all_results() {
    let mut calls: Vec<Call> = Vec::new();
    for number in 0..332 {
        let tool = if number < 32 { "db__big" } else { "db__echo" };
        calls.push(("call00001", tool, json!({"text": number.to_string()})));
    }
    let server = model(vec![calls]);
    let sandbox = with_db(&server, "", "");
    sandbox.q(&["-t", "db", "go"]).run().success();
    let sent = server.last_request().json()["messages"].clone();
    let mut bytes = 0;
    for message in sent.as_array().expect("messages") {
        if message["role"] == "tool" {
            bytes += message["content"].as_str().expect("a result").len();
        }
    }
    assert!(bytes <= 400_000, "{bytes}");
}

#[test]
fn no_tool_server_outlives_q() {
    let started = [
        ("normal end", 0),
        ("an error", 0),
        ("SIGINT", libc::SIGINT),
        ("SIGTERM", libc::SIGTERM),
        ("SIGQUIT", libc::SIGQUIT),
    ]
    .map(|(name, signal)| {
        let second = if signal == 0 { "db__echo" } else { "db__hang" };
        let server = Server::start(move |request, number| match (name, number) {
            ("an error", 1) => failure(500, "down"),
            (_, 0) => OPENAI.calling("", &[echo("hi"), ("call00002", second, json!({}))]),
            _ => (OPENAI.reply)(request, "the answer"),
        });
        let sandbox = with_db(&server, "stubborn", "");
        let running = sandbox.q(&["-t", "db", "go"]).spawn();
        (name, signal, server, sandbox, running)
    });
    for (name, signal, _server, sandbox, mut running) in started {
        let _case = case(name);
        let was_stopped = signal != 0;
        if was_stopped {
            wait_until(|| calls(&sandbox, "db").len() == 2);
            running.signal(signal);
            running.wait().killed_by(signal);
        } else {
            running.wait().exit(i32::from(name == "an error"));
        }
        expect_gone(&sandbox, "db");
        // What had run is kept, marked; and so is a call that may have done what it was to do.
        let answer = &sandbox.current()["messages"][1];
        assert_eq!(answer.get("interrupted").is_some(), name != "normal end");
        let calls = &answer["steps"][0]["calls"];
        assert_eq!(calls[0]["result"], "you said hi");
        assert_eq!(calls[1]["error"].as_bool(), was_stopped.then_some(true));
        let result = calls[1]["result"].as_str().expect("text");
        let is_marked = result.contains("interrupted before the result came");
        assert_eq!(is_marked, was_stopped, "{result}");
    }
}

#[test]
fn programs_are_waited_for_although_sigchld_is_ignored_or_blocked() {
    type Start = fn(Q) -> Q;
    let starts: [Start; 2] = [|q| q.ignoring(libc::SIGCHLD), |q| q.blocking(libc::SIGCHLD)];
    for start in starts {
        let call = ("call00002", "shop__sql", json!({}));
        let server = model(vec![vec![echo("hi"), call]]);
        let sandbox = Sandbox::new().env("Q_RETRIES", "0");
        let provider = format!(
            "[providers.own]\napi = \"openai\"\nbase_url = \"{}/v1\"\nkey_cmd = [\"echo\", \"{}\"]\n",
            server.url(),
            crate::run::API_KEY
        );
        let shop = "[tools.shop]\nabout_run = [\"echo\", \"tables\"]\n\
            sql = { run = [\"sh\", \"-c\", \"sleep 0; echo rows; exit 3\"], reads = true }\n";
        let tool_server = section(&sandbox, "db", "", "");
        sandbox.config(&(provider + shop + &tool_server));
        let q = sandbox.q(&["-p", "own", "-m", "m", "-t", "db,shop", "go"]);
        start(q).run().success().stdout("the answer\n");
        let sent = server.requests()[1].json().to_string();
        // How a command has ended is known.
        for text in ["tables", "you said hi", "[exit status 3]"] {
            assert!(sent.contains(text), "{text} in {sent}");
        }
    }
}

#[test]
fn lines_about_calls_on_a_terminal_have_no_keys() {
    let key = crate::run::API_KEY;
    let server = model(vec![vec![echo(key), ("call00002", key, json!({}))]]);
    let sandbox = with_db(&server, "plain", "");
    let terminal = Terminal::new(WIDE);
    sandbox.q(&["-t", "db", "go"]).on(&terminal).run().exit(0);
    let text = terminal.text_alone();
    assert!(!text.contains(key), "{text}");
    for line in [
        "q: db__echo {\"text\":\"[redacted]\"}",
        "q: [redacted] did not run: There is no tool [redacted].",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn processes_in_another_session_are_not_ended() {
    let server = model(vec![vec![echo("hi")]]);
    let sandbox = Sandbox::new().env("Q_RETRIES", "0");
    // The command that prints the key leaves an agent, the tool server a daemon, and the shell that becomes q a job.
    let daemon = |name: &str| {
        format!("setsid sh -c 'echo $$ >{name}; exec sleep 1000' </dev/null >/dev/null 2>&1 &")
    };
    let until = |name: &str| format!(" until [ -s {name} ]; do sleep 0.01; done; ");
    let key = daemon("agent") + &until("agent") + "echo " + crate::run::API_KEY;
    let provider = format!(
        "[providers.own]\napi = \"openai\"\nbase_url = \"{}/v1\"\nkey_cmd = [\"sh\", \"-c\", {}]\n",
        server.url(),
        json!(key)
    );
    let begins = daemon("daemon") + " until [ -s daemon ]; do sleep 0.01; done";
    sandbox.config(&(provider + &section_after(&sandbox, "db", &begins, "")));
    let job = daemon("job") + &until("job");
    let script = format!("{job} exec q -p own -m m -t db go");
    let run = sandbox.shell(&script).run();
    run.success().stdout("the answer\n");
    expect_gone(&sandbox, "db");
    for name in ["agent", "daemon", "job"] {
        let id = fs::read_to_string(sandbox.home().join(name)).unwrap();
        let id: i32 = id.trim().parse().unwrap();
        // SAFETY: a plain system call, and the process is one that this test has started.
        assert_eq!(unsafe { libc::kill(id, libc::SIGKILL) }, 0, "{name}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_failure_is_reported_before_stubborn_servers_are_killed() {
    let server = model(vec![]);
    let sandbox = with_db(&server, "", "");
    let heard = log(&sandbox, "db");
    let started = format!("until grep -q tools/list {heard}; do sleep 0.01; done");
    let late = section_after(&sandbox, "late", &started, "")
        .replace("TOOL_MODE = \"\"", "TOOL_MODE = \"broken\"");
    sandbox.config(&(section(&sandbox, "db", "stubborn", "") + &late));
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    // SAFETY: a plain system call about a pipe that is open.
    let size = unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&writer), libc::F_GETPIPE_SZ) };
    std::io::Write::write_all(&mut writer, &vec![b' '; usize::try_from(size).unwrap()]).unwrap();
    let q = sandbox.q(&["-t", "db,late", "go"]);
    let running = q.stderr_to(writer).spawn();
    // The pipe is full, and q waits for a reader of its words.
    wait_until(|| waits_for_pipe(&running));
    let heard = fs::read_to_string(log(&sandbox, "db")).unwrap();
    let mut lines = heard.lines();
    let process = lines.find_map(|line| line.strip_prefix("process ")?.parse().ok());
    let process: i32 = process.expect("a process");
    // SAFETY: signal 0 only asks whether the process is there.
    assert_eq!(unsafe { libc::kill(process, 0) }, 0);
    std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    running.wait().exit(1);
    expect_gone(&sandbox, "db");
}

fn waits_for_pipe(running: &Running) -> bool {
    fs::read_to_string(format!("/proc/{}/wchan", running.pid()))
        .is_ok_and(|place| place.contains("pipe"))
}

#[test]
fn a_signal_before_the_first_call_saves_nothing_and_ends_the_servers() {
    let server = model(vec![]);
    let sandbox = with_db(&server, "stubborn", "");
    let mut running = sandbox.q(&["-t", "db"]).stdin_open().spawn();
    wait_until(|| {
        heard(&sandbox, "db")
            .iter()
            .any(|message| message["method"] == "tools/list")
    });
    running.signal(libc::SIGINT);
    running.wait().killed_by(libc::SIGINT);
    expect_gone(&sandbox, "db");
    sandbox.expect_no_files();
}

#[test]
fn the_spinner_says_which_tool_runs() {
    let server = model(vec![vec![hang()]]);
    let sandbox = with_db(&server, "", "timeout = \"2s\"");
    let terminal = Terminal::new(WIDE);
    let running = sandbox.q(&["-t", "db", "go"]).on(&terminal).spawn();
    terminal.wait_for("waiting for db__hang, ", 0);
    running.wait().exit(0);
    let expected = ["let me see", "q: db__hang {}", "the answer", ""];
    assert_eq!(terminal.screen(), expected);
}

#[test]
fn the_spinner_no_longer_says_thinking_once_a_call_arrives() {
    let function = json!({"name": "db__echo", "arguments": "{"});
    let fragment = json!({"tool_calls": [{"index": 0, "id": "call00001", "function": function}]});
    let whole = json!({"functionCall": {"name": "db__echo", "args": {}}});
    let of_openai = |delta: Value| json!({"choices": [{"delta": delta}]});
    let of_gemini = |part: Value| json!({"candidates": [{"content": {"parts": [part]}}]});
    let thought = json!({"text": "hm", "thought": true});
    for (dialect, thinks, calls) in [
        (
            "openai",
            of_openai(json!({"reasoning": "hm"})),
            of_openai(fragment),
        ),
        ("gemini", of_gemini(thought), of_gemini(whole)),
    ] {
        let _case = case(dialect);
        let (called, cut) = (Gate::new(), Gate::new());
        let reply = Reply::sse([data(&thinks)]).wait_for(&called);
        let server = Server::always(reply.piece(data(&calls)).wait_for(&cut).cut());
        let sandbox = Sandbox::new().env("Q_RETRIES", "0");
        sandbox.config(&section(&sandbox, "db", "", ""));
        let terminal = Terminal::new(WIDE);
        let q = Dialect::named(dialect).q(&sandbox, &server, &["-t", "db", "go"]);
        let running = q.on(&terminal).spawn();
        terminal.wait_for("thinking, ", 0);
        let seen = terminal.so_far().len();
        called.open();
        terminal.wait_for("waiting for ", seen);
        cut.open();
        running.wait().exit(1);
    }
}

/// The section of a server that runs this script first.
fn section_after(sandbox: &Sandbox, name: &str, script: &str, more: &str) -> String {
    let script = format!("{script}; exec \"$0\" \"$@\"");
    let begin = format!("command = [\"/bin/sh\", \"-c\", {script:?}, ");
    section(sandbox, name, "", more).replace("command = [", &begin)
}

#[test]
fn reasoning_and_what_a_server_writes_meanwhile_have_lines_of_their_own() {
    let thought =
        |number| json!({"choices": [{"delta": {"reasoning_content": format!("r{number} ")}}]});
    let thoughts = Vec::from_iter((0..4_000).map(|number| data(&thought(number))));
    let stream = [thoughts, openai_stream(&["the answer"])].concat();
    let server = Server::always(Reply::sse(stream));
    let sandbox = Sandbox::new().server_env(&server);
    // It writes from its start on, as long as q thinks.
    let written = "(i=0; while [ $i -lt 200000 ]; do echo w$i; i=$((i+1)); done) >&2 & :";
    sandbox.config(&section_after(&sandbox, "db", written, ""));
    let outcome = sandbox.q(&["-v", "-t", "db", "hi"]).run();
    let outcome = outcome.exit(0);
    let mut thoughts = 0;
    for line in String::from_utf8_lossy(&outcome.stderr).lines() {
        assert!(line.starts_with("q: "), "{line:?}");
        assert_eq!(line.matches("q: ").count(), 1, "{line:?}");
        thoughts += line.matches(" r").count();
    }
    assert!(thoughts >= 4_000, "{thoughts}");
}

#[test]
fn messages_in_a_batch_are_read_one_after_another() {
    let server = model(vec![vec![echo("hi")]]);
    let sandbox = Sandbox::new().server_env(&server);
    // In each, a ping comes before the answer.
    let script = r#"
        reply() {
            echo "[{\"id\":\"p\",\"method\":\"ping\"},{\"id\":$id,$1}]"
        }
        while read -r line; do
            id=${line#*\"id\":}
            id=${id%%[,\}]*}
            case $line in
            *'"id":"p"'*) pong=yes ;;
            *'"initialize"'*) reply '"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{}}}' ;;
            *'"tools/list"'*) reply '"result":{"tools":[{"name":"echo"}]}' ;;
            *'"tools/call"'*) reply '"result":{"content":[{"type":"text","text":"pong: '$pong'"}]}' ;;
            esac
        done
    "#;
    let command = json!(["/bin/sh", "-c", script]);
    sandbox.config(&format!(
        "[tools.db]\ncommand = {command}\nallow = [\"echo\"]\nstart = \"20s\""
    ));
    let run = sandbox.q(&["-t", "db", "go"]).run();
    run.exit(0).stdout("the answer\n");
    let requests = server.requests();
    let last = requests.last().expect("a request");
    assert!(last.text().contains("pong: yes"), "{}", last.text());
}

#[test]
fn tool_servers_start_side_by_side() {
    let server = model(vec![]);
    let sandbox = Sandbox::new().server_env(&server);
    // Each waits for the other one before it says a word.
    let waiting = |name: &str, other: &str| {
        let script = format!(
            "touch \"$TOOL_LOG.up\"; until [ -e \"{}.up\" ]; do sleep 0.01; done",
            log(&sandbox, other)
        );
        section_after(&sandbox, name, &script, "start = \"10s\"")
    };
    sandbox.config(&(waiting("db", "web") + &waiting("web", "db")));
    let outcome = sandbox.q(&["-t", "db,web", "go"]).run();
    outcome.success().stdout("the answer\n");
    let listed = sandbox.q(&["--list-tools"]).run();
    listed.success().stdout_contains("web__echo");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs /proc")]
fn without_tool_servers_and_calls_q_has_one_thread_and_no_child_process() {
    for args in [&["go"][..], &["-t", "shop", "go"]] {
        let _case = case(args);
        let gate = Gate::new();
        let server = Server::always(held_back(&gate, "the answer"));
        let sandbox = Sandbox::new().server_env(&server);
        let command = "[tools.shop.sql]\nrun = [\"true\"]\n".to_owned();
        sandbox.config(&(command + &section(&sandbox, "db", "", "")));
        let running = sandbox.q(args).spawn();
        server.wait_for_requests(1);
        let directory = format!("/proc/{}/task", running.pid());
        let threads = fs::read_dir(&directory)
            .expect("a process that runs")
            .count();
        let children = fs::read_to_string(format!("{directory}/{}/children", running.pid()))
            .expect("its children");
        gate.open();
        running.wait().success();
        assert_eq!((threads, children.as_str()), (1, ""));
    }
}

#[test]
fn a_long_call_can_be_approved_only_once_all_of_it_has_been_shown() {
    // A terminal of the tests has 50 rows, and one that does not know its size counts as one of 80 by 24. A row is for
    // the question, and the first row of the call for its name.
    let [known, unknown] = [48, 22];
    let more = |count: usize| format!("? {count} more lines: [v]iew, [N]o ");
    let yes = || "? [y]es".to_owned();
    for (columns, lines, option, dialogue, runs) in [
        (80, known, "-n", vec![(yes(), "y\n")], true),
        (
            80,
            known + 1,
            "-n",
            vec![(more(1), "v\n"), (yes(), "y\n")],
            true,
        ),
        (
            80,
            known + 50,
            "-n",
            vec![(more(50), "v\n"), (more(1), "v\n"), (yes(), "n\n")],
            false,
        ),
        (80, known + 1, "-n", vec![(more(1), "y\n")], false),
        (80, known + 1, "-n", vec![(more(1), "a\n")], false),
        (80, known + 1, "-n", vec![(more(1), "\n")], false),
        (80, known, "-n", vec![(yes(), "v\n")], false),
        (0, unknown, "-n", vec![(yes(), "y\n")], true),
        (
            0,
            unknown + 1,
            "-n",
            vec![(more(1), "v\n"), (yes(), "y\n")],
            true,
        ),
        (80, known + 1, "--yes", vec![], true),
    ] {
        let _case = case((columns, lines, option, &dialogue));
        let text = vec!["x"; lines].join("\n");
        let server = model(vec![vec![write(&text)]]);
        let sandbox = with_db(&server, "", "");
        let terminal = Terminal::new(columns);
        let running = in_foreground(&sandbox, &terminal, &[option, "-t", "db", "go"]).spawn();
        let dialogue: Vec<_> = dialogue
            .iter()
            .map(|(shown, typed)| (&**shown, *typed))
            .collect();
        terminal.answer(&dialogue);
        running.wait().exit(0);
        let expected = if runs {
            vec![json!({"text": text})]
        } else {
            vec![]
        };
        assert_eq!(calls(&sandbox, "db"), expected);
    }
}

#[test]
fn the_keys_are_explained_on_every_screenful_where_a_person_sees_it() {
    let server = model(vec![vec![write(&vec!["x"; 60].join("\n"))]]);
    let sandbox = with_db(&server, "", "");
    let terminal = Terminal::new(80);
    let running = in_foreground(&sandbox, &terminal, &["-n", "-t", "db", "go"]).spawn();
    let mut shown = 0;
    for (question, help, next) in [
        (
            "? 12 more lines: [v]iew, [N]o ",
            "q: v shows more of the call; ",
            "v\n",
        ),
        (
            "? [y]es, [N]o, [a]lways in this run ",
            "q: y runs the call; ",
            "n\n",
        ),
    ] {
        shown = terminal.wait_for(question, shown).len();
        terminal.type_in("?\n");
        let before = terminal.wait_for(help, shown).len();
        let arrived = terminal.wait_for(question, before);
        // The screenful itself would push the help off the screen.
        let after = String::from_utf8_lossy(&arrived[before..]);
        assert_eq!(after.lines().count(), 3, "{after}");
        terminal.type_in(next);
        shown = arrived.len();
    }
    running.wait().exit(0);
    assert_eq!(calls(&sandbox, "db").len(), 0);
}

#[test]
fn a_call_is_shown_again_from_its_beginning_after_the_screen_was_resized() {
    let server = model(vec![vec![write(&vec!["x"; 60].join("\n"))]]);
    let sandbox = with_db(&server, "", "");
    let mut terminal = Terminal::new(80);
    let running = in_foreground(&sandbox, &terminal, &["-n", "-t", "db", "go"]).spawn();
    let shown = terminal.wait_for("? 12 more lines: [v]iew, [N]o ", 0).len();
    terminal.resize(40);
    terminal.type_in("v\n");
    terminal.wait_for("q: db__write wants to run:\r\n   text = x\r\n", shown);
    terminal.wait_for("? 13 more lines: \r\n   [v]iew, [N]o ", shown);
    terminal.type_in("\n");
    running.wait().exit(0);
}

#[test]
fn a_call_is_shown_again_from_its_beginning_after_q_was_stopped() {
    let server = model(vec![vec![write(&vec!["x"; 60].join("\n"))]]);
    let sandbox = with_db(&server, "", "");
    let terminal = Terminal::new(80);
    let script = "set -m; q -n -t db go; fg";
    let running = session(&sandbox, &terminal, script).spawn();
    let shown = terminal.wait_for("? 12 more lines: [v]iew, [N]o ", 0).len();
    terminal.type_in("v\n");
    let shown = terminal.wait_for("[a]lways in this run ", shown).len();
    terminal.type_in("\x1a");
    terminal.wait_for("? 12 more lines: [v]iew, [N]o ", shown);
    // Whoever agrees before the end has not seen all of it.
    terminal.type_in("y\n");
    running.wait().exit(0);
    assert_eq!(calls(&sandbox, "db").len(), 0);
}

#[test]
fn a_call_is_refused_on_a_screen_that_is_too_small_to_show_it() {
    let server = model(vec![vec![write("x")]]);
    let sandbox = with_db(&server, "", "");
    let terminal = Terminal::new(8);
    let running = in_foreground(&sandbox, &terminal, &["-n", "-t", "db", "go"]).spawn();
    running.wait().exit(0);
    let words: String = terminal.text().split_whitespace().collect();
    assert!(words.contains("toosmalltoshowit"), "{words}");
    assert_eq!(calls(&sandbox, "db").len(), 0);
}

#[test]
fn an_approval_for_always_covers_later_calls_of_any_length_and_no_other_tool() {
    let texts = ["x", &"y\n".repeat(4_000)];
    let mut rounds = texts.map(|text| vec![write(text)]).to_vec();
    rounds.push(vec![("call00001", "shop__touch", json!({}))]);
    let server = model(rounds);
    let other = "[tools.shop.touch]\nrun = [\"touch\", \"made\"]";
    let sandbox = with_db(&server, "", other);
    let terminal = Terminal::new(80);
    let running = in_foreground(&sandbox, &terminal, &["-t", "db,shop", "go"]).spawn();
    terminal.answer(&[("write? [y]es", "a\n"), ("touch? [y]es", "n\n")]);
    running.wait().exit(0);
    let expected = texts.map(|text| json!({"text": text}));
    assert_eq!(calls(&sandbox, "db"), expected);
    assert!(!sandbox.home().join("made").exists(), "another tool ran");
}

#[test]
fn the_user_is_asked_on_the_terminal_though_input_and_output_are_redirected() {
    // Its own size counts, too, and not that of standard output.
    let text = "x".repeat(80 * 24);
    let server = model(vec![vec![write(&text)]]);
    let sandbox = with_db(&server, "", "");
    let terminal = Terminal::new(WIDE);
    let running = session(&sandbox, &terminal, "yes | q -n -t db go >answer").spawn();
    terminal.answer(&[("? [y]es", "n\n")]);
    running.wait().exit(0);
    let answer = fs::read_to_string(sandbox.home().join("answer")).unwrap();
    assert_eq!(answer, "the answer\n");
    assert_eq!(calls(&sandbox, "db").len(), 0);
}

#[test]
fn an_approval_for_always_holds_for_one_run() {
    let sandbox = Sandbox::new().env("Q_RETRIES", "0");
    sandbox.config(&section(&sandbox, "db", "", ""));
    for typed in ["a\n", "n\n"] {
        let server = model(vec![vec![write("x")]]);
        let terminal = Terminal::new(WIDE);
        let running = in_foreground(&sandbox, &terminal, &["-f", "-t", "db", "go"])
            .server_env(&server)
            .spawn();
        terminal.answer(&[("? [y]es", typed)]);
        running.wait().exit(0);
        assert_eq!(calls(&sandbox, "db").len(), 1);
    }
}

#[test]
fn a_tool_server_sees_the_end_of_its_input_when_q_is_killed() {
    let server = model(vec![vec![hang()]]);
    let sandbox = with_db(&server, "", "");
    let mut running = sandbox.q(&["-t", "db", "go"]).spawn();
    wait_until(|| calls(&sandbox, "db").len() == 1);
    running.signal(libc::SIGKILL);
    wait_until(|| {
        heard(&sandbox, "db")
            .iter()
            .any(|message| message["end"] == true)
    });
    running.wait().killed_by(libc::SIGKILL);
    expect_gone(&sandbox, "db");
}

#[test]
fn a_signal_does_not_wait_for_a_tool_server_that_ignores_it() {
    // How long it waits otherwise, after a call that may have changed something.
    let server = model(vec![vec![write("x")]]);
    let sandbox = with_db(&server, "stubborn", "allow = [\"*\"]");
    let mut running = sandbox.q(&["-t", "db", "go"]).spawn();
    running.read_stdout_until("the answer\n");
    let answered = Instant::now();
    running.wait().exit(0);
    let usual = answered.elapsed();

    let server = model(vec![vec![hang()]]);
    let sandbox = with_db(&server, "stubborn", "");
    let mut running = sandbox.q(&["-t", "db", "go"]).spawn();
    wait_until(|| calls(&sandbox, "db").len() == 1);
    let signalled = Instant::now();
    running.signal(libc::SIGTERM);
    let outcome = running.wait();
    let quick = signalled.elapsed();
    outcome.killed_by(libc::SIGTERM);
    let what = format!("expected an end sooner than after {usual:?}, not {quick:?}");
    outcome.check(quick < usual, &what);
    expect_gone(&sandbox, "db");
}

/// A sandbox with a tool server that has been used once. Before it starts again, it runs this script.
fn used_before(script: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let cache = sandbox.root().join("cache");
    let sandbox = sandbox.env("XDG_CACHE_HOME", cache);
    let script = format!("cd {:?}; {script}", sandbox.home());
    sandbox.config(&section_after(&sandbox, "db", &script, ""));
    let first = model(vec![]);
    let run = sandbox.q(&["-t", "db", "go"]).server_env(&first).run();
    run.success().stderr_is_empty();
    sandbox
}

fn lists(sandbox: &Sandbox) -> Vec<fs::DirEntry> {
    let directory = sandbox.root().join("cache/q/tools");
    fs::read_dir(directory).map_or(Vec::new(), |entries| entries.flatten().collect())
}

#[test]
fn a_question_does_not_wait_for_a_tool_server_that_was_used_before() {
    // It starts only if somebody opens the gate.
    let sandbox = used_before("[ ! -e gate ] || cat gate");
    let [list] = &lists(&sandbox)[..] else {
        panic!("{:?}", lists(&sandbox))
    };
    let mode = list.metadata().expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let kept = fs::read(list.path()).expect("a list");
    let gate = sandbox.home().join("gate");
    make_pipe(&gate);

    // Nothing is called: the server ends before it has started.
    let server = model(vec![]);
    let run = sandbox.q(&["-t", "db", "go"]).server_env(&server).run();
    run.success().stdout("the answer\n").stderr_is_empty();
    assert_eq!(server.last_request().json()["tools"][0]["type"], "function");
    assert_eq!(fs::read(list.path()).expect("a list"), kept);

    // A call waits for it.
    let server = model(vec![vec![echo("hi")]]);
    let running = sandbox.q(&["-t", "db", "go"]).server_env(&server).spawn();
    wait_until(|| server.requests().len() == 1);
    fs::write(&gate, "").expect("a server that waits");
    running.wait().success().stderr_is_empty();
    let calls = &sandbox.current()["messages"][1]["steps"][0]["calls"];
    assert_eq!(calls[0]["result"], "you said hi");

    // What shows the tools waits, too.
    let mut running = sandbox.q(&["--list-tools"]).spawn();
    fs::write(&gate, "").expect("a server that waits");
    running.read_stdout_until("db__echo");
    running.wait().success();
    expect_gone(&sandbox, "db");
}

#[test]
fn a_tool_that_its_server_no_longer_has_does_not_run() {
    let sandbox = used_before(
        "[ ! -e gate ] || { cat gate; \"$0\" \"$@\" | sed -u 's/\"echo\"/\"other\"/'; exit; }",
    );
    let gate = sandbox.home().join("gate");
    make_pipe(&gate);
    let server = model(vec![vec![echo("hi")]]);
    let running = sandbox.q(&["-t", "db", "go"]).server_env(&server).spawn();
    wait_until(|| server.requests().len() == 1);
    fs::write(&gate, "").expect("a server that waits");
    running.wait().success();
    let made = &sandbox.current()["messages"][1]["steps"][0]["calls"];
    let expected = "The server no longer has the tool db__echo.";
    assert_eq!(made[0]["result"], expected);
    assert_eq!(calls(&sandbox, "db"), Vec::<Value>::new());
}

/// A sandbox with a tool server that has the tool `login` until that is called, and then says three times that its tools have
/// changed. It answers later requests for the list with `later`, and writes each down.
fn with_changing_tools(later: &str, more: &str) -> Sandbox {
    let script = r#"n=0; list='"result":{"tools":[{"name":"login"}]}'
        while read -r line; do
            case $line in *notifications*) continue;; esac
            n=$((n + 1)); answer='"result":{"content":[{"type":"text","text":"done"}]}'
            case $line in
            *'"initialize"'*) answer='"result":{"protocolVersion":"2025-06-18"}';;
            *'"tools/list"'*) answer=$list; list='LATER'; echo >>lists;;
            *'"login"'*) for _ in 1 2 3; do echo '{"method":"notifications/tools/list_changed"}'; done;;
            esac
            echo "{\"id\":$n,$answer}"
        done"#;
    let sandbox = Sandbox::new();
    let cache = sandbox.root().join("cache");
    let sandbox = sandbox.env("XDG_CACHE_HOME", cache);
    sandbox.write_home("server", script.replace("LATER", later));
    sandbox.config(&format!(
        "[tools.db]\ncommand = [\"/bin/sh\", \"server\"]\n{more}\n"
    ));
    sandbox
}

/// The names of the tools in a request.
fn offered(request: &Recorded) -> Vec<String> {
    let tools = request.json()["tools"].as_array().cloned();
    let name = |tool: &Value| tool["function"]["name"].as_str().map(str::to_owned);
    tools.iter().flatten().filter_map(name).collect()
}

#[test]
fn tools_that_a_server_has_changed_are_listed_once_before_the_next_request() {
    let report = r#""result":{"tools":[{"name":"report"}]}"#;
    let both = r#""result":{"tools":[{"name":"login"},{"name":"report"}]}"#;
    let refusal = r#""error":{"code":-1,"message":"no"}"#;
    let all = "allow = [\"*\"]";
    let unknown = "There is no tool db__report.";
    let nobody = "The call was refused: there is no terminal to ask on.";
    let failed = "q: db: refused to list its tools: no (-1)\n";
    // The new list, the selection, lines of the section, what is offered then, the result of a new tool, and a note.
    for (later, selection, more, tools, result, note) in [
        (both, "db", all, "db__login db__report", "done", ""),
        (report, "db", all, "db__report", "done", ""),
        (
            report,
            "db",
            "allow = [\"login\"]",
            "db__report",
            nobody,
            "db__report did not run",
        ),
        (both, "db__login", all, "db__login", unknown, ""),
        (
            both,
            "db",
            "allow = [\"*\"]\nonly = [\"login\"]",
            "db__login",
            unknown,
            "",
        ),
        (refusal, "db", all, "db__login", unknown, failed),
        // An API may reject a request without tools.
        (report, "db__login", all, "db__login", unknown, ""),
        (
            r#""result":{"tools":[]}"#,
            "db",
            all,
            "db__login",
            unknown,
            "",
        ),
    ] {
        let row = format!("{later} {selection} {more}");
        let _case = case(&row);
        let sandbox = with_changing_tools(later, more);
        let call = |tool| vec![("call00001", tool, json!({}))];
        let server = model(vec![call("db__login"), call("db__report")]);
        let run = sandbox
            .q(&["-t", selection, "go"])
            .server_env(&server)
            .run();
        run.exit(0).stdout("the answer\n").stderr_contains(note);
        let requests = server.requests();
        assert_eq!(offered(&requests[0]), ["db__login"]);
        assert_eq!(offered(&requests[1]).join(" "), tools);
        let steps = &sandbox.current()["messages"][1]["steps"];
        assert_eq!(steps[1]["calls"][0]["result"], result);
        let asked = fs::read_to_string(sandbox.home().join("lists"));
        assert_eq!(asked.expect("a log"), "\n\n");
    }
}

#[test]
fn tools_are_not_listed_again_after_a_failure_nor_where_no_call_can_follow() {
    let refusal = r#""error":{"code":-32601,"message":"no such method"}"#;
    let both = r#""result":{"tools":[{"name":"login"},{"name":"report"}]}"#;
    let failed = "q: db: refused to list its tools: no such method (-32601)\n";
    let last = "q: the model had to answer, because rounds = 1 allows no more calls\n";
    // The answer to the second list, the most rounds, how many lists are asked for, and the note.
    for (later, rounds, asked, note) in [(refusal, "5", 2, failed), (both, "1", 1, last)] {
        let _case = case(rounds);
        let sandbox = with_changing_tools(later, "allow = [\"*\"]");
        let login = || vec![("call00001", "db__login", json!({}))];
        let server = model(if rounds == "1" {
            vec![login()]
        } else {
            vec![login(), login()]
        });
        let run = sandbox
            .q(&["-t", "db", "go"])
            .server_env(&server)
            .env("Q_ROUNDS", rounds)
            .run();
        run.exit(0).stdout("the answer\n").stderr(note);
        let lists = fs::read_to_string(sandbox.home().join("lists"));
        assert_eq!(lists.expect("a log").lines().count(), asked);
        let steps = sandbox.current()["messages"][1]["steps"].clone();
        for step in steps.as_array().expect("steps") {
            assert_eq!(step["calls"][0]["result"], "done");
        }
    }
}

#[test]
fn tools_of_a_server_that_starts_with_others_than_it_listed_last_are_offered_in_the_next_request() {
    let report = r#""result":{"tools":[{"name":"report"}]}"#;
    let sandbox = with_changing_tools(report, "allow = [\"*\"]");
    let ask = || {
        let server = model(vec![vec![("call00001", "db__login", json!({}))]]);
        let run = sandbox.q(&["-t", "db", "go"]).server_env(&server).run();
        run.exit(0).stdout("the answer\n");
        [0, 1].map(|request| offered(&server.requests()[request]).join(" "))
    };
    // What has changed while it ran is not what its next process begins with.
    assert_eq!(ask(), ["db__login", "db__report"]);
    assert_eq!(ask(), ["db__login", "db__report"]);
    let script = fs::read_to_string(sandbox.home().join("server")).expect("a script");
    sandbox.write_home("server", script.replacen("login", "report", 1));
    assert_eq!(ask(), ["db__login", "db__report"]);
    assert_eq!(ask(), ["db__report", "db__report"]);
}

#[test]
fn a_tool_server_that_was_used_before_and_does_not_start_is_reported() {
    let ended = "ended by itself (exit status: 3): no";
    let empty = r#""$0" "$@" | sed -u 's/"tools":\[.*\]/"tools":[]/'"#;
    for (script, reason) in [("echo no >&2; exit 3", ended), (empty, "offers no tools")] {
        let _case = case(reason);
        expect_failure(script, &format!("q: db: {reason}\n"));
    }
}

fn expect_failure(script: &str, note: &str) {
    let sandbox = used_before(&format!(
        "if [ -e gone ]; then echo $$ >pid; {script}; exit; fi"
    ));
    sandbox.write_home("gone", "");
    // The answer comes when the process has ended, of which q may still not have heard.
    let pid = sandbox.home().join("pid");
    let has_ended = {
        let pid = pid.clone();
        move || {
            let number = fs::read_to_string(&pid).unwrap_or_default();
            let number = number.trim().parse();
            number.is_ok_and(|number| !is_there(number))
        }
    };
    let server = Server::start(move |request, _| {
        wait_until(&has_ended);
        (OPENAI.reply)(request, "the answer")
    });
    let ask = || {
        let _ = fs::remove_file(&pid);
        sandbox.q(&["-t", "db", "go"]).server_env(&server).run()
    };
    wait_until(|| ask().exit(0).stdout("the answer\n").stderr == note.as_bytes());

    let server = model(vec![vec![echo("hi")]]);
    let run = sandbox.q(&["-t", "db", "go"]).server_env(&server).run();
    run.exit(0).stdout("the answer\n").stderr(note);
    let calls = &sandbox.current()["messages"][1]["steps"][0]["calls"];
    assert_eq!(calls[0]["result"], "The tool server db did not start.");

    let server = model(vec![]);
    sandbox.q(&["--list-tools", "-t", "db"]).run().exit(1);
    let run = sandbox
        .q(&["-t", "db", "--dry-run", "go"])
        .server_env(&server);
    run.run().exit(1).stderr(note);
}

#[test]
fn the_current_list_of_the_server_decides_whether_a_call_may_run() {
    let sandbox = used_before(
        "if [ -e changed ]; then \"$0\" \"$@\" | sed -u s/readOnlyHint/nothing/; exit; fi",
    );
    let kept = fs::read(lists(&sandbox)[0].path()).expect("a list");
    sandbox.write_home("changed", "");
    let server = model(vec![vec![echo("hi")]]);
    let run = sandbox
        .q(&["-t", "db", "--no-save", "go"])
        .server_env(&server);
    run.run()
        .exit(0)
        .stderr_contains("db__echo did not run: there is no terminal to ask on");
    assert_eq!(fs::read(lists(&sandbox)[0].path()).expect("a list"), kept);
    // A new list that came in time takes the place of the old one.
    let server = model(vec![vec![echo("hi")]]);
    let run = sandbox.q(&["-t", "db", "go"]).server_env(&server).run();
    run.exit(0);
    assert_ne!(fs::read(lists(&sandbox)[0].path()).expect("a list"), kept);
    assert_eq!(calls(&sandbox, "db"), Vec::<Value>::new());
}
