//! Several q on one terminal: each asks alone, and what the others show does not touch its question.

use std::fs;

use serde_json::json;

use crate::dialect::{DIALECTS, Dialect, held_back};
use crate::fixtures::{case, session};
use crate::pty::{Terminal, WIDE};
use crate::sandbox::Sandbox;
use crate::server::{Gate, Server};
use crate::times::wait_until;

const OPENAI: &Dialect = &DIALECTS[0];

/// Two questions side by side, as a user starts them.
const BOTH: &str = "printf 'one\\0two' | xargs -0 -n 1 -P 2 q -n --no-save -t shop --";

/// A server of models that calls the command with the question's last word, and then answers.
fn caller() -> Server {
    caller_unless_slow(&Gate::new())
}

/// The same, but the answer to a question with the word slow waits.
fn caller_unless_slow(gate: &Gate) -> Server {
    let gate = gate.clone();
    Server::start(move |request, _| {
        let text = request.text();
        if text.contains("slow") {
            return held_back(&gate, "at last");
        }
        let word = if text.contains("two") { "two" } else { "one" };
        if text.contains("\"role\":\"tool\"") {
            return (OPENAI.reply)(request, &format!("{word} is done"));
        }
        OPENAI.calling("", &[("call00001", "shop__touch", json!({ "name": word }))])
    })
}

/// A sandbox with a command that leaves a file, and runs until there is one with the name `end`.
fn with_touch(server: &Server) -> Sandbox {
    let sandbox = Sandbox::new().server_env(server).env("TERM", "xterm");
    let script = "touch \"$1\"; until [ -e end ]; do sleep 0.01; done";
    sandbox.config(&format!(
        "[tools.shop.touch]\nrun = [\"sh\", \"-c\", {script:?}, \"-\", \"{{name}}\"]\n"
    ));
    sandbox
}

fn has_run(sandbox: &Sandbox, name: &str) -> bool {
    sandbox.home().join(name).exists()
}

/// The end of the question about the command with this argument.
fn question(name: &str) -> String {
    format!(
        "q: shop__touch wants to run:\r\n   name = {name}\r\nq: run shop__touch? [y]es, [N]o, [a]lways in this run "
    )
}

/// Waits for a question about either of the calls, and returns its name and the other one.
#[track_caller]
fn first_asked(terminal: &Terminal) -> (&'static str, &'static str) {
    let shown = terminal.wait_for("[a]lways in this run ", 0);
    let shown = String::from_utf8_lossy(&shown);
    if shown.contains(&question("one")) {
        return ("one", "two");
    }
    assert!(shown.contains(&question("two")), "{shown:?}");
    ("two", "one")
}

/// Types Ctrl-Z once a q that waits to ask runs in the foreground of this terminal.
#[track_caller]
fn stop_the_asker(terminal: &Terminal) {
    wait_until(|| {
        let askers = terminal.askers();
        askers.len() == 1 && askers[0][0] != "T" && askers[0][2] == askers[0][5]
    });
    terminal.type_in("\x1a");
}

/// Waits until one program asks on this terminal, and another waits for it.
#[track_caller]
fn wait_until_another_waits(terminal: &Terminal) {
    wait_until(|| terminal.askers().len() == 2);
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs /proc")]
fn a_typed_approval_counts_for_only_one_of_two_q_on_a_terminal() {
    for typed in ["y\n", "a\n"] {
        let _case = case(typed);
        let server = caller();
        let sandbox = with_touch(&server);
        let terminal = Terminal::new(WIDE);
        let running = session(&sandbox, &terminal, BOTH).spawn();
        let (first, second) = first_asked(&terminal);
        wait_until_another_waits(&terminal);
        let shown = terminal.so_far();
        assert_eq!(
            terminal.screen_so_far().last().map(String::as_str),
            Some("q: run shop__touch? [y]es, [N]o, [a]lways in this run ")
        );
        terminal.type_in(typed);
        // The command of the first still runs, so it holds no lock.
        terminal.wait_for(&question(second), shown.len());
        assert!(!String::from_utf8_lossy(&shown).contains(&question(second)));
        wait_until(|| has_run(&sandbox, first));
        assert!(!has_run(&sandbox, second));
        terminal.type_in("n\n");
        terminal.wait_for(&format!("{second} is done"), shown.len());
        sandbox.write_home("end", "");
        running.wait().exit(0);
        assert!(has_run(&sandbox, first) && !has_run(&sandbox, second));
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs /proc")]
fn typing_ahead_approves_only_the_call_of_the_first_q_that_asks() {
    let server = caller();
    let sandbox = with_touch(&server);
    let terminal = Terminal::new(WIDE);
    let running = session(&sandbox, &terminal, BOTH).spawn();
    let (first, second) = first_asked(&terminal);
    wait_until_another_waits(&terminal);
    let shown = terminal.so_far().len();
    terminal.type_in("y\ny\ny\n");
    terminal.wait_for(&question(second), shown);
    terminal.type_in("\n");
    sandbox.write_home("end", "");
    running.wait().exit(0);
    assert!(has_run(&sandbox, first) && !has_run(&sandbox, second));
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs /proc")]
fn ctrl_c_ends_a_q_that_asks_and_one_that_waits_to_ask() {
    let server = caller();
    let sandbox = with_touch(&server);
    let terminal = Terminal::new(WIDE);
    let running = session(&sandbox, &terminal, BOTH).spawn();
    first_asked(&terminal);
    wait_until_another_waits(&terminal);
    terminal.type_in("\x03");
    running.wait();
    // No q holds the terminal open any longer.
    let text = terminal.text();
    assert_eq!(text.matches("wants to run").count(), 1, "{text}");
    assert!(!has_run(&sandbox, "one") && !has_run(&sandbox, "two"));
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs /proc")]
fn after_a_q_is_killed_while_it_asks_the_next_one_asks() {
    let server = caller();
    let sandbox = with_touch(&server);
    sandbox.write_home("end", "");
    let terminal = Terminal::new(WIDE);
    let one = "q -n --no-save -t shop one & echo $! >id; ";
    let script = format!("{one} until [ -e go ]; do sleep 0.01; done; q -n --no-save -t shop two");
    let running = session(&sandbox, &terminal, &script).spawn();
    terminal.wait_for(&question("one"), 0);
    sandbox.write_home("go", "");
    wait_until_another_waits(&terminal);
    let shown = terminal.so_far().len();
    let id = fs::read_to_string(sandbox.home().join("id")).expect("a number");
    let id: i32 = id.trim().parse().expect("a number");
    // SAFETY: a plain system call, and the process is one that this test has started.
    assert_eq!(unsafe { libc::kill(id, libc::SIGKILL) }, 0);
    terminal.wait_for(&question("two"), shown);
    terminal.type_in("y\n");
    running.wait().exit(0);
    assert!(has_run(&sandbox, "two") && !has_run(&sandbox, "one"));
}

#[test]
fn a_q_that_is_stopped_lets_another_ask_and_asks_again_when_it_goes_on() {
    let server = caller();
    let sandbox = with_touch(&server);
    sandbox.write_home("end", "");
    let terminal = Terminal::new(WIDE);
    // The first is stopped in the foreground of a shell with job control, as a person's is.
    let script = "set -m; q -n --no-save -t shop one; q -n --no-save -t shop two; fg";
    let running = session(&sandbox, &terminal, script).spawn();
    let shown = terminal.wait_for(&question("one"), 0).len();
    terminal.type_in("\x1a");
    let shown = terminal.wait_for(&question("two"), shown).len();
    terminal.type_in("y\n");
    terminal.wait_for("two is done", shown);
    terminal.wait_for(&question("one"), shown);
    assert!(has_run(&sandbox, "two") && !has_run(&sandbox, "one"));
    terminal.type_in("y\n");
    terminal.wait_for("one is done", shown);
    running.wait().exit(0);
    assert!(has_run(&sandbox, "one"));
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs /proc")]
fn ctrl_z_stops_a_q_that_waits_to_ask_and_one_that_waits_to_ask_again() {
    let server = caller();
    let sandbox = with_touch(&server);
    sandbox.write_home("end", "");
    let terminal = Terminal::new(WIDE);
    // As another q does while it asks.
    let device = terminal.device();
    device.lock().expect("a lock");
    let script = "set -m; q -n --no-save -t shop one; echo stop 1; fg; \
        echo stop 2; until [ -e locked ]; do sleep 0.01; done; fg; echo stop 3; fg";
    let running = session(&sandbox, &terminal, script).spawn();
    stop_the_asker(&terminal);
    let shown = terminal.wait_for("stop 1", 0).len();
    device.unlock().expect("no lock");
    let shown = terminal.wait_for(&question("one"), shown).len();
    terminal.type_in("\x1a");
    // The one that stops has released it.
    device.lock().expect("a lock");
    let shown = terminal.wait_for("stop 2", shown).len();
    sandbox.write_home("locked", "");
    stop_the_asker(&terminal);
    let shown = terminal.wait_for("stop 3", shown).len();
    device.unlock().expect("no lock");
    let shown = terminal.wait_for(&question("one"), shown).len();
    terminal.type_in("y\n");
    terminal.wait_for("one is done", shown);
    running.wait().exit(0);
    assert!(has_run(&sandbox, "one"));
}

#[test]
fn a_q_in_the_background_of_its_terminal_refuses_a_call_and_says_why() {
    let server = caller();
    let sandbox = with_touch(&server);
    let terminal = Terminal::new(WIDE);
    let script = "set -m; q -n --no-save -t shop one & wait";
    session(&sandbox, &terminal, script).spawn().wait().exit(0);
    let shown = terminal.text();
    let reason = "q: shop__touch did not run: q cannot ask from the background of its terminal; ";
    assert!(shown.contains(reason), "{shown}");
    assert!(shown.contains("one is done"), "{shown}");
    assert!(!has_run(&sandbox, "one"));
}

#[test]
fn no_spinner_is_drawn_over_the_question_of_another_q() {
    let gate = Gate::new();
    let server = caller_unless_slow(&gate);
    let sandbox = with_touch(&server);
    let terminal = Terminal::new(WIDE);
    let script = "q -n --no-save slow & until [ -e go ]; do sleep 0.01; done; q -n --no-save -t shop one; wait";
    let running = session(&sandbox, &terminal, script).spawn();
    terminal.wait_for_seconds("waiting for openai, ", 0);
    sandbox.write_home("go", "");
    terminal.wait_for(&question("one"), 0);
    let screen = terminal.screen_so_far();
    // As long as this one needs to draw several, the other one would have drawn one.
    let control = Terminal::new(WIDE);
    let watched = sandbox.q(&["-n", "--no-save", "slow"]).on(&control).spawn();
    for _ in 0..2 {
        control.wait_for_seconds("waiting for openai, ", control.so_far().len());
    }
    assert_eq!(terminal.screen_so_far(), screen);
    gate.open();
    watched.wait().exit(0);
    terminal.wait_for("at last", 0);
    let screen = terminal.screen_so_far().join("\n");
    assert!(screen.contains("q: run shop__touch? [y]es"), "{screen}");
    terminal.type_in("n\n");
    running.wait().exit(0);
}
