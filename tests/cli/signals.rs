//! Signals: what has come is saved, nothing else is touched, and q dies of the signal itself.

use std::fs;
use std::io::{PipeReader, PipeWriter, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use libc::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use serde_json::{Value, json};

use crate::conversations::{hold_the_lock, idle_for};
use crate::dialect::{
    DIALECTS, finish, first_word_then_silence, in_two_parts, openai_event, openai_reply, word,
};
use crate::fixtures::{case, prompt};
use crate::harness::pseudo_terminal;
use crate::machine::lacks;
use crate::pty::Terminal;
use crate::run::Running;
use crate::sandbox::Sandbox;
use crate::server::{Gate, Reply, Server};
use crate::snapshot::snapshot;
use crate::times::{GUARD, HOUR, wait_until};
use crate::toolserver::is_there;

const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

#[test]
fn a_signal_before_the_first_word_changes_nothing_and_ends_q() {
    let role = openai_event(json!({"role": "assistant", "content": ""}), None);
    let server = Server::always(Reply::sse([role]).hang());
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.write_current(&idle_for(HOUR, &["one", "1"]));
    let before = snapshot(sandbox.root());
    let mut asked = 0;
    for signal in SIGNALS {
        for args in [
            &["-n", "two"][..],
            &["-f", "two"],
            &["-fj", "two"],
            &["-f", "--no-stream", "two"],
            &["-f", "--is", "two"],
            &["-fj", "--is", "two"],
            &["--models"],
        ] {
            let _case = case((signal, args));
            let mut running = sandbox.q(args).spawn();
            asked += 1;
            server.wait_for_requests(asked);
            running.signal(signal);
            let outcome = running.wait();
            outcome.killed_by(signal);
            outcome.stdout_is_empty().stderr_is_empty();
            before.expect_unchanged();
        }
    }
}

#[test]
fn a_signal_after_the_first_word_saves_the_answer_so_far_and_ends_q() {
    let server = Server::always(first_word_then_silence());
    for signal in SIGNALS {
        for (option, before, archived) in [("-n", &[][..], 1), ("-f", &["one", "1"], 0)] {
            let _case = case((signal, option));
            let sandbox = Sandbox::new().server_env(&server);
            sandbox.write_current(&idle_for(HOUR, &["one", "1"]));
            let mut running = sandbox.q(&[option, "two"]).spawn();
            running.read_stdout_until("first ");
            running.signal(signal);
            running.wait().killed_by(signal).stderr_is_empty();
            sandbox.expect_texts("current.json", &[before, &["two", "first "]].concat());
            assert_eq!(interrupted(&sandbox.current()), [before.len() + 1]);
            assert_eq!(sandbox.archived().len(), archived);
        }
    }
}

#[test]
fn a_signal_while_a_verdict_arrives_ends_q_without_a_yes_or_a_no() {
    let half = "{\"reason\":\"so\",\"verdict\":\"no\"";
    let doubt = |text: &str| openai_event(json!({"reasoning_content": text}), None);
    for signal in SIGNALS {
        let _case = case(signal);
        let gate = Gate::new();
        let begun = Reply::sse([[word(half), doubt("Is it?\n")].concat()]);
        let begun = begun.wait_for(&gate).piece(doubt("I doubt it.\n"));
        let server = Server::always(begun.hang());
        let sandbox = Sandbox::new().server_env(&server);
        let mut running = sandbox.shell("exec q -n -v --is 'it is late' 2>&1").spawn();
        running.read_stdout_until("Is it?\n");
        gate.open();
        // What came before this is recorded.
        running.read_stdout_until("I doubt it.\n");
        running.signal(signal);
        running.wait().killed_by(signal);
        sandbox.expect_texts("current.json", &["Is this true? it is late", half]);
        assert_eq!(interrupted(&sandbox.current()), [1]);
    }
}

#[test]
fn an_interrupted_answer_can_be_followed_up() {
    let server = Server::start(|request, number| match number {
        0 => first_word_then_silence(),
        _ => openai_reply(request, "whole"),
    });
    let sandbox = Sandbox::new().server_env(&server);
    let mut running = sandbox.q(&["one"]).ignoring(SIGINT).spawn();
    running.read_stdout_until("first ");
    // One that is ignored does not shield q from another, and signals that come together count as one.
    running.signal(SIGINT).signal(SIGTERM).signal(SIGTERM);
    running.wait().killed_by(SIGTERM);
    sandbox.q(&["-f", "go on"]).run().success();
    let sent = "Previous conversation:\nHuman: one\n\nAssistant: first \n\nHuman: go on";
    assert_eq!(prompt(&server.requests()[1]), sent);
    sandbox.expect_texts("current.json", &["one", "first ", "go on", "whole"]);
    // What was interrupted once stays so.
    assert_eq!(interrupted(&sandbox.current()), [1]);
}

#[test]
fn a_complete_answer_is_not_marked_as_interrupted_though_its_stream_is_open() {
    for (reason, is_marked, saved) in [
        ("stop", false, Value::Null),
        ("length", false, "length".into()),
        ("content_filter", true, "content_filter".into()),
    ] {
        let _case = case(reason);
        let whole = [word("all of it"), finish(reason)].concat();
        let server = Server::always(Reply::sse([whole]).hang());
        let sandbox = Sandbox::new().server_env(&server);
        let mut running = sandbox.q(&["one"]).spawn();
        running.read_stdout_until("all of it");
        running.signal(SIGINT);
        running.wait().killed_by(SIGINT);
        sandbox.expect_answer("all of it", is_marked);
        assert_eq!(sandbox.current()["messages"][1]["finish"], saved);
    }
}

#[test]
fn a_signal_ends_q_though_nobody_reads_its_answer_and_the_answer_is_saved() {
    let answer = "so many words ".repeat(40_000);
    let server = Server::always(Reply::sse([word(&answer)]).hang());
    for signal in SIGNALS {
        let _case = case(signal);
        let sandbox = Sandbox::new().server_env(&server);
        let (pipe, writer) = std::io::pipe().unwrap();
        let (terminal, end) = pseudo_terminal::open(80).unwrap();
        for (reader, stdout) in [
            (OwnedFd::from(pipe), Stdio::from(writer)),
            (terminal.into(), end.into()),
        ] {
            let mut running = sandbox.q(&["one"]).stdout_to(stdout).spawn();
            wait_until_written(&reader);
            running.signal(signal);
            running.wait().killed_by(signal);
            sandbox.expect_answer(&answer, true);
        }
    }
}

#[test]
fn a_signal_does_not_suppress_the_note_where_the_exchange_is_saved() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    let _lock = hold_the_lock(&sandbox);
    let mut started: Vec<_> = (0..8)
        .map(|_| sandbox.q(&["-s", "work", "one"]).spawn())
        .collect();
    // All are signalled before the first is waited for: none may have given up on the lock by then.
    for running in &mut started {
        running.read_stdout_until("answer\n");
        running.signal(SIGTERM);
    }
    for running in started {
        let outcome = running.wait();
        outcome.killed_by(SIGTERM);
        outcome.stderr_contains_all(&["another q holds the lock", "session_"]);
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs LD_PRELOAD")]
fn a_signal_ends_q_where_no_thread_can_be_started() {
    if lacks("a compiler for C", "cc --version") {
        return;
    }
    let server = Server::always(first_word_then_silence());
    let sandbox = Sandbox::new().server_env(&server);
    // EAGAIN, as for a user with as many processes as are allowed.
    sandbox.write_home("none.c", "int pthread_create(void) { return 11; }");
    let compile = "cc -shared -fPIC -o none.so none.c";
    sandbox.shell(compile).run().success();
    let library = sandbox.home().join("none.so");
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        let _case = case(signal);
        let mut running = sandbox.q(&["one"]).env("LD_PRELOAD", &library).spawn();
        running.read_stdout_until("first");
        running.signal(signal);
        running.wait().killed_by(signal);
    }
}

#[test]
fn a_signal_ends_q_while_it_waits_to_try_again() {
    let server =
        Server::always(Reply::json(503, json!({"error": "busy"})).header("retry-after", "50"));
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.write_current(&idle_for(HOUR, &["one", "1"]));
    let before = snapshot(sandbox.root());
    for (number, signal) in SIGNALS.into_iter().enumerate() {
        let _case = case(signal);
        let mut running = sandbox.q(&["-f", "two"]).spawn();
        server.wait_for_requests(number + 1);
        running.signal(signal);
        running.wait().killed_by(signal).stdout_is_empty();
        before.expect_unchanged();
    }
}

#[test]
fn a_signal_ends_q_while_it_reads_its_input() {
    let server = Server::openai("never");
    let sandbox = Sandbox::new().server_env(&server);
    let before = snapshot(sandbox.root());
    for signal in SIGNALS {
        let _case = case(signal);
        let mut running = sandbox.q(&["one"]).stdin_open().spawn();
        // More than a pipe holds: once it is written, q has begun to read.
        running.write_stdin("x".repeat(500_000));
        running.signal(signal);
        let outcome = running.wait();
        outcome.killed_by(signal);
        outcome.stdout_is_empty().stderr_is_empty();
    }
    before.expect_unchanged();
    server.expect_requests(0);
}

/// A password manager waits for a person, and a server that starts for its own servers, perhaps for good.
#[test]
#[cfg(target_os = "linux")]
fn no_program_that_q_waits_for_before_it_asks_outlives_a_signal_to_q_alone() {
    const PROGRAM: &str = "[\"sh\", \"-c\", \"echo $$ >id; mv id waiting; exec sleep 600\"]";
    let server = Server::openai("never");
    for (section, option) in [
        ("[providers.openai]\nkey_cmd = PROGRAM", "-n"),
        ("[tools.t]\nurl = \"<url>\"\nkey_cmd = PROGRAM", "-tt"),
        ("[tools.t]\ncommand = PROGRAM", "-tt"),
        (
            "[tools.t]\nabout_run = PROGRAM\nx = { run = [\"true\"] }",
            "-tt",
        ),
    ] {
        for signal in SIGNALS {
            let _case = case((section, signal));
            let sandbox = Sandbox::new().server_env(&server);
            let section = section.replace("<url>", &server.url());
            sandbox.config(&section.replace("PROGRAM", PROGRAM));
            let mut running = sandbox.q(&[option, "hi"]).spawn();
            let id = sandbox.home().join("waiting");
            wait_until(|| id.exists());
            running.signal(signal);
            running.wait().killed_by(signal);
            let id = fs::read_to_string(id).expect("a number");
            let id = id.trim().parse().expect("a number");
            wait_until(|| !is_there(id));
        }
    }
    server.expect_requests(0);
}

#[test]
fn a_signal_that_was_ignored_when_q_started_stays_ignored() {
    for signal in SIGNALS {
        let _case = case(signal);
        let gate = Gate::new();
        let server = Server::always(in_two_parts("first ", &gate, "second"));
        let sandbox = Sandbox::new().server_env(&server);
        let mut running = sandbox.q(&["one"]).ignoring(signal).spawn();
        server.wait_for_requests(1);
        running.signal(signal);
        running.read_stdout_until("first ");
        running.signal(signal);
        gate.open();
        running.wait().success().stdout("first second\n");
        sandbox.expect_texts("current.json", &["one", "first second"]);
        assert_eq!(interrupted(&sandbox.current()), [0; 0]);
    }
}

#[test]
fn a_signal_that_was_blocked_when_q_started_ends_q() {
    for signal in SIGNALS {
        let _case = case(signal);
        let server = Server::always(first_word_then_silence());
        let sandbox = Sandbox::new().server_env(&server);
        let q = sandbox.q(&["one"]);
        let q = SIGNALS.into_iter().fold(q, |q, signal| q.blocking(signal));
        let mut running = q.blocking(libc::SIGALRM).spawn();
        running.read_stdout_until("first ");
        running.signal(signal);
        running.wait().killed_by(signal);
        sandbox.expect_answer("first ", true);
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs name spaces")]
fn as_process_1_q_ends_with_the_status_of_the_signal() {
    // A new name space of processes has its own process 1, as a container has.
    let unshare = "unshare -r --pid --fork --kill-child";
    if lacks("a name space of processes", &format!("{unshare} true")) {
        return;
    }
    for signal in SIGNALS {
        for has_begun in [false, true] {
            let _case = case((signal, has_begun));
            let server = match has_begun {
                true => Server::always(first_word_then_silence()),
                false => Server::always(Reply::sse([""; 0]).hang()),
            };
            let sandbox = Sandbox::new().server_env(&server);
            let q = sandbox.shell(&format!("exec {unshare} q \"$@\"")).arg("sh");
            let mut running = q.arg("one").spawn();
            server.wait_for_requests(1);
            if has_begun {
                running.read_stdout_until("first ");
            }
            let pid = running.pid();
            let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            let children = children.expect("the children of a process");
            let child: i32 = children.trim().parse().expect("one child");
            // SAFETY: plain system call without pointers, on a process that was started here and has not been waited for.
            let sent = unsafe { libc::kill(child, signal) };
            assert_eq!(sent, 0);
            running.wait().exit(128 + signal).stderr_is_empty();
            if has_begun {
                sandbox.expect_answer("first ", true);
            } else {
                sandbox.expect_no_state();
            }
        }
    }
}

#[test]
fn after_a_signal_q_waits_only_briefly_for_the_lock() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    let lock = hold_the_lock(&sandbox);
    let mut running = sandbox.q(&["one"]).spawn();
    running.read_stdout_until("answer\n");
    let answered = Instant::now();
    running.wait().exit(0);
    let usual = answered.elapsed();
    drop(lock);

    let server = Server::always(first_word_then_silence());
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.write_current(&idle_for(HOUR, &["one", "1"]));
    let before = sandbox.read_bytes("current.json");
    let lock = hold_the_lock(&sandbox);
    let mut running = sandbox.q(&["-f", "two"]).spawn();
    running.read_stdout_until("first ");
    let signalled = Instant::now();
    running.signal(SIGTERM);
    let outcome = running.wait();
    let brief = signalled.elapsed();
    outcome.killed_by(SIGTERM);
    assert!(brief < usual, "{brief:?}, otherwise {usual:?}");
    drop(lock);
    sandbox.expect_bytes("current.json", before);
    let own = sandbox.only_archived();
    sandbox.expect_texts(&own, &["two", "first "]);
    assert_eq!(interrupted(&sandbox.session(&own)), [1]);
}

#[test]
fn a_signal_while_the_answer_is_being_saved_does_not_lose_it() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    let lock = hold_the_lock(&sandbox);
    let mut running = sandbox.q(&["-s", "work", "one"]).spawn();
    running.read_stdout_until("answer\n");
    running.signal(SIGINT);
    let outcome = running.wait();
    outcome.killed_by(SIGINT).stdout("answer\n");
    drop(lock);
    // If the signal did not shorten the wait for the lock, it would give up before that is over.
    sandbox.expect_texts(&sandbox.only_archived(), &["one", "answer"]);
}

#[test]
fn a_signal_ends_q_though_nobody_reads_its_notes() {
    let server = Server::always(first_word_then_silence());
    let sandbox = Sandbox::new().server_env(&server);
    let lock = hold_the_lock(&sandbox);
    let (reader, writer) = full_pipe();
    let mut running = sandbox.q(&["-s", "work", "one"]).stderr_to(writer).spawn();
    running.read_stdout_until("first ");
    running.signal(SIGTERM);
    running.wait().killed_by(SIGTERM);
    drop((lock, reader));
}

#[test]
fn a_signal_ends_q_though_its_terminal_is_stopped_and_the_answer_is_saved() {
    let gate = Gate::new();
    let in_two_parts = Reply::sse([word("first ")]).wait_for(&gate);
    let in_two_parts = in_two_parts.piece(word("second ")).hang();
    let call = ("call00001", "shop__hang", json!({}));
    let at_once = |_: &Sandbox, _: &Terminal| {};
    let shown = |_: &Sandbox, terminal: &Terminal| drop(terminal.wait_for("first ", 0));
    let called =
        |sandbox: &Sandbox, _: &Terminal| wait_until(|| sandbox.home().join("pid").exists());
    // What q is called with, what it cannot write, the reply, when the terminal is stopped, and what is saved: the answer,
    // and how many rounds of calls.
    type Moment<'a> = &'a dyn Fn(&Sandbox, &Terminal);
    type Case<'a> = (&'a str, Reply, Moment<'a>, Option<(&'a str, usize)>);
    let silence = Reply::new(200).hang();
    let calling = DIALECTS[0].calling("", &[call]);
    let [in_call, in_answer] = [Some(("", 1)), Some(("first second ", 0))];
    let table: [(&str, Case); 4] = [
        ("one", ("the first sign", silence.clone(), &at_once, None)),
        ("-v one", ("a detail", silence, &at_once, None)),
        (
            "-t shop one",
            ("the sign of a command", calling, &called, in_call),
        ),
        (
            "one",
            ("the rest of the answer", in_two_parts, &shown, in_answer),
        ),
    ];
    let mut started = Vec::new();
    for (args, (what, reply, is_time, saved)) in table {
        let args: Vec<&str> = args.split(' ').collect();
        let server = Server::always(reply);
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.config(STUBBORN);
        let terminal = Terminal::new(80);
        let running = sandbox.q(&args).on(&terminal).spawn();
        is_time(&sandbox, &terminal);
        terminal.stop();
        started.push((what, server, sandbox, terminal, running, saved));
    }
    gate.open();
    for (what, _server, sandbox, _terminal, mut running, saved) in started {
        let _case = case(what);
        wait_until_stuck(&running);
        running.signal(SIGINT);
        running.wait().killed_by(SIGINT);
        let Some((answer, rounds)) = saved else {
            sandbox.expect_no_state();
            continue;
        };
        let saved = &sandbox.current()["messages"][1];
        assert_eq!(saved["content"], answer);
        assert_eq!(saved["interrupted"], true);
        assert_eq!(saved["steps"].as_array().map_or(0, Vec::len), rounds);
        if rounds > 0 {
            let process = std::fs::read_to_string(sandbox.home().join("pid")).unwrap();
            wait_until(|| !is_there(process.trim().parse().unwrap()));
        }
    }
}

/// The numbers of the system calls that write, as Linux shows them.
#[cfg(target_os = "linux")]
const WRITES: &[libc::c_long] = &[libc::SYS_write, libc::SYS_writev];
#[cfg(not(target_os = "linux"))]
const WRITES: &[libc::c_long] = &[];

/// Returns once a thread of the program waits to write to a terminal, which is stopped. Linux alone tells; elsewhere the sign
/// has been due by then.
fn wait_until_stuck(running: &Running) {
    let process = PathBuf::from(format!("/proc/{}", running.pid()));
    if fs::read_to_string("/proc/self/syscall").is_err() {
        return std::thread::sleep(Duration::from_millis(1_500));
    }
    let is_stuck = |call: String| {
        let mut words = call.split(' ');
        let number = words.next().and_then(|number| number.parse().ok());
        let is_write = number.is_some_and(|number| WRITES.contains(&number));
        let file = words.next().and_then(|file| file.strip_prefix("0x"));
        let file = file.and_then(|file| u32::from_str_radix(file, 16).ok());
        let path = file.map(|file| process.join(format!("fd/{file}")).read_link());
        is_write && path.is_some_and(|path| path.is_ok_and(|path| path.starts_with("/dev/pts")))
    };
    wait_until(|| {
        let threads = fs::read_dir(process.join("task")).expect("threads");
        let calls = threads
            .flatten()
            .map(|thread| thread.path().join("syscall"));
        let mut calls = calls.flat_map(fs::read_to_string);
        calls.any(is_stuck)
    });
}

/// A command that does not end when it is asked to.
const STUBBORN: &str = "[tools.shop.hang]\nreads = true\n\
     run = [\"sh\", \"-c\", \"trap '' TERM INT; echo $$ >pid; while :; do sleep 0.1; done\"]\n";

#[test]
fn a_loop_in_a_shell_ends_with_the_q_that_is_interrupted() {
    let server = Server::always(first_word_then_silence());
    let sandbox = Sandbox::new().server_env(&server);
    // This shell continues its loop unless the program that it waits for dies of the signal, too.
    let mut running = sandbox
        .shell("exec bash -c 'for i in one two three; do q -n $i; done; echo ended'")
        .spawn();
    running.read_stdout_until("first ");
    interrupt_group(&running);
    running.wait().killed_by(SIGINT).stdout_lacks("ended");
    server.expect_requests(1);
    sandbox.expect_texts("current.json", &["one", "first "]);
}

/// What a terminal does at Ctrl-C: everybody in the foreground gets the signal.
fn interrupt_group(running: &Running) {
    let group = libc::pid_t::try_from(running.pid()).unwrap();
    // SAFETY: plain system call without pointers; the group's leader is not reaped while `running` is there.
    assert_eq!(unsafe { libc::kill(-group, SIGINT) }, 0);
}

/// The places of the messages that are marked.
fn interrupted(conversation: &Value) -> Vec<usize> {
    let messages = conversation["messages"].as_array().unwrap();
    (0..messages.len())
        .filter(|index| messages[*index].get("interrupted") == Some(&json!(true)))
        .collect()
}

/// A full pipe: a program that writes to it waits.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    let set_flags = |flags: libc::c_int| {
        // SAFETY: the descriptor is open for as long as `writer` is there.
        let result = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, flags) };
        assert_eq!(result, 0);
    };
    set_flags(libc::O_NONBLOCK);
    while (&writer).write(&[b'.'; 4096]).is_ok() {}
    while (&writer).write(b".").is_ok() {}
    set_flags(0);
    (reader, writer)
}

/// Returns once something was written to a pipe that nobody reads.
fn wait_until_written(reader: &impl AsRawFd) {
    let mut readable = libc::pollfd {
        fd: reader.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one structure, which outlives the call.
    let ready = unsafe { libc::poll(&raw mut readable, 1, GUARD.as_millis() as i32) };
    assert_eq!(ready, 1, "nothing was written");
}
