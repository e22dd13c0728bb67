//! Trouble with the disk, the reader or the connection: the answer is never lost, and what was kept before stays.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::sandbox::Sandbox;
use crate::server::{Gate, Reply, Server, openai_event, openai_stream};
use crate::state::{DAY, HOUR, conversation, snapshot, texts};

#[test]
fn state_that_cannot_be_used_never_costs_the_answer() {
    let server = Server::openai("answer");
    let file = |path: &Path| fs::write(path, "in the way").unwrap();
    let folder = |path: &Path| fs::create_dir_all(path.join("in the way")).unwrap();
    let pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let circle = |path: &Path| symlink(path, path).unwrap();
    type Obstacle<'a> = &'a dyn Fn(&Path);
    let cases: [(&str, Obstacle); 7] = [
        ("state", &file),
        ("state/q", &file),
        ("state/q", &circle),
        ("state/q/sessions", &file),
        ("state/q/sessions/current.json", &folder),
        ("state/q/sessions/current.json", &pipe),
        ("state/q/sessions/current.json", &circle),
    ];
    for (path, obstruct) in cases {
        let sandbox = Sandbox::new().server_env(&server);
        fs::remove_dir(sandbox.state()).unwrap();
        let path = sandbox.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        obstruct(&path);
        let obstacle =
            || -> Vec<_> { snapshot(&sandbox).into_iter().filter(|(found, _)| found.starts_with(&path)).collect() };
        let before = obstacle();
        for args in [&["one"][..], &["-f", "one"]] {
            let outcome = sandbox.q(args).run();
            outcome.exit(0).stdout("answer\n").stderr_contains("q: this exchange was not saved: ");
            outcome.check(obstacle() == before, || format!("{} was changed", path.display()));
            // Nothing half done beside it either.
            let left = sandbox.session_files();
            outcome.check(left.iter().all(|name| name == "current.json"), || format!("left behind: {left:?}"));
        }
    }
}

#[test]
fn an_exchange_goes_into_a_file_of_its_own_where_the_lock_cannot_be_opened() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    fs::create_dir_all(sandbox.state().join("q/lock/in the way")).unwrap();
    for args in [&["one"][..], &["-f", "one"]] {
        sandbox.q(args).run().exit(0).stdout("answer\n").stderr_contains("saved on its own");
    }
    let left = sandbox.session_files();
    assert!(left.len() == 2 && left.iter().all(|name| name.starts_with("session_")), "{left:?}");
}

#[test]
fn a_link_in_place_of_the_conversation_is_replaced_and_its_target_left_alone() {
    let server = Server::openai("answer");
    let sound = conversation(HOUR, &["one", "1"]).to_string();
    for (bytes, args, kept) in [
        (None, &["two"][..], &["two", "answer"][..]),
        (None, &["-f", "two"], &["two", "answer"]),
        (Some(sound.as_str()), &["two"], &["two", "answer"]),
        (Some(&sound), &["-f", "two"], &["one", "1", "two", "answer"]),
        (Some("not JSON"), &["two"], &["two", "answer"]),
    ] {
        let sandbox = Sandbox::new().server_env(&server);
        fs::create_dir_all(sandbox.sessions()).unwrap();
        let target = sandbox.home().join("target.json");
        if let Some(bytes) = bytes {
            fs::write(&target, bytes).unwrap();
            fs::set_permissions(&target, fs::Permissions::from_mode(0o644)).unwrap();
            let file = fs::File::options().write(true).open(&target).unwrap();
            file.set_modified(std::time::SystemTime::now() - DAY).unwrap();
        }
        let state_of =
            || fs::metadata(&target).ok().map(|found| (found.permissions().mode(), found.modified().unwrap()));
        let before = state_of();
        let current = sandbox.sessions().join("current.json");
        symlink(&target, &current).unwrap();
        sandbox.q(args).run().exit(0).stdout("answer\n");
        assert_eq!(texts(&sandbox.current()), kept);
        let metadata = current.symlink_metadata().unwrap();
        assert!(metadata.is_file());
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&target).ok().as_deref(), bytes, "the target was changed");
        assert_eq!(state_of(), before, "the target's mode or time was changed");
    }
}

#[test]
fn a_disk_that_is_full_costs_neither_the_answer_nor_what_was_kept() {
    let server = Server::openai("answer");
    let long = "x".repeat(200_000);
    for (blocks, command) in [(0, "q -f two"), (0, "q two"), (100, "q -f two")] {
        for kept in [Some(conversation(HOUR, &["one", &long])), None] {
            let sandbox = Sandbox::new().server_env(&server);
            if let Some(kept) = &kept {
                sandbox.write_current(kept);
            } else if blocks > 0 {
                continue;
            }
            let before = sandbox.session_files();
            let bytes = kept.as_ref().map(|_| sandbox.read_bytes("current.json"));
            // Writing more than the limit fails as it does on a full disk: with an error, or after a part of it.
            let outcome = sandbox.shell(&format!("ulimit -f {blocks}; exec {command} </dev/null")).run();
            outcome.exit(0).stdout("answer\n").stderr_contains("q: this exchange was not saved: ");
            assert_eq!(sandbox.session_files(), before, "{command}: something was left behind");
            assert_eq!(kept.map(|_| sandbox.read_bytes("current.json")), bytes, "{command}");
        }
    }
}

#[test]
fn a_full_disk_does_not_remove_what_is_set_aside() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    for question in ["one", "two"] {
        sandbox.q(&[question]).run().success();
    }
    let before = snapshot(&sandbox);
    let outcome = sandbox.shell("ulimit -f 0; exec q three </dev/null").run();
    outcome.exit(0).stderr_contains("not saved");
    let after = snapshot(&sandbox);
    for (path, was) in before.iter().filter(|(path, _)| path.is_file()) {
        assert_eq!(after.get(path), Some(was), "{}", path.display());
    }
}

#[test]
fn a_reader_that_goes_away_ends_q_quietly_and_what_it_was_given_is_kept() {
    // Before the first piece, of an answer that comes at once, and of one whose rest never comes.
    let (kept, interrupted) =
        left_by_its_reader(false, |gate| Reply::sse([""; 0]).wait_for(gate).piece(openai_stream(&["first"]).concat()));
    assert_eq!((kept.as_str(), interrupted), ("first", false));
    let (kept, interrupted) = left_by_its_reader(false, |gate| {
        Reply::sse([""; 0]).wait_for(gate).piece(piece("first ")).wait_for(&Gate::new()).piece(piece("never"))
    });
    assert_eq!((kept.as_str(), interrupted), ("first ", true));
    // After it: what comes next is not delivered.
    let (kept, interrupted) = left_by_its_reader(true, |gate| {
        Reply::sse([piece("first ")]).wait_for(gate).piece(piece("second ")).wait_for(&Gate::new())
    });
    assert_eq!((kept.as_str(), interrupted), ("first ", true));
    // All of it has come before the reader was missed.
    let (kept, interrupted) = left_by_its_reader(true, |gate| {
        Reply::sse([piece("first ")]).wait_for(gate).piece(openai_stream(&["second"]).concat())
    });
    assert_eq!((kept.as_str(), interrupted), ("first second", false));
}

#[test]
fn an_answer_that_breaks_off_is_kept_as_far_as_it_came() {
    type Ending = fn(Reply) -> Reply;
    let failing: [(&str, Ending); 6] = [
        ("a cut", Reply::cut),
        ("a reset", Reply::reset),
        ("an end without an end", |reply| reply),
        ("an error", |reply| reply.piece("data: {\"error\":{\"message\":\"overloaded\"}}\n\n")),
        ("nonsense", |reply| reply.piece("data: {\"choices\":\n\n")),
        ("the end of the provider's patience", |reply| reply.piece(openai_event(json!({}), Some("content_filter")))),
    ];
    for (what, end) in failing {
        for (args, before) in [(&["two"][..], &[][..]), (&["-f", "two"], &["one", "1"])] {
            let gate = Gate::new();
            let held = gate.clone();
            let server = Server::start(move |_, _| end(Reply::sse([piece("first ")]).wait_for(&held)));
            let sandbox = Sandbox::new().server_env(&server);
            sandbox.write_current(&conversation(HOUR, &["one", "1"]));
            let mut running = sandbox.q(args).spawn();
            running.read_stdout_until("first ");
            gate.open();
            let outcome = running.wait();
            outcome.exit(1).stdout("first \n").stderr_contains("q: openai: ");
            let kept = sandbox.current();
            assert_eq!(texts(&kept), [before, &["two", "first "]].concat(), "{what}");
            assert_eq!(kept["messages"][before.len() + 1]["interrupted"], true, "{what}");
            assert_eq!(server.requests().len(), 1, "{what}: asked again after the first word");
        }
    }
}

#[test]
fn an_output_that_cannot_be_written_is_an_error_and_the_answer_is_kept() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let server = Server::start(|_, _| Reply::sse([openai_stream(&["answer"]).concat()]));
    let sandbox = Sandbox::new().server_env(&server);
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let outcome = sandbox.q(&["one"]).stdout_to(full).run();
    outcome.exit(1).stderr_contains("q: cannot write to standard output");
    assert_eq!(texts(&sandbox.current()), ["one", "answer"]);
}

#[test]
fn notes_that_nobody_takes_change_nothing() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    let mut running = sandbox.q(&["-f", "one"]).stdin_open().spawn();
    running.close_stderr().close_stdin();
    running.wait().exit(0).stdout("answer\n");
    sandbox.shell("q --clear >/dev/null; q -f one 2>&- </dev/null").run().exit(0).stdout("answer\n");
    assert_eq!(texts(&sandbox.current()), ["one", "answer"]);
}

#[test]
fn only_the_folders_that_are_its_own_are_made_private() {
    let server = Server::openai("answer");
    for mode in [0o755, 0o777, 0o500] {
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.write_bytes("named.json", "{}");
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let own = [sandbox.state().join("q"), sandbox.sessions()];
        let others = [sandbox.state(), sandbox.home(), sandbox.sessions().join("named.json")];
        others.iter().for_each(|path| set(path, 0o755));
        own.iter().rev().for_each(|path| set(path, mode));
        sandbox.q(&["one"]).run().success();
        for (paths, expected) in [(&own[..], 0o700), (&others, 0o755)] {
            for path in paths {
                let found = fs::metadata(path).unwrap().permissions().mode() & 0o7777;
                assert_eq!(found, expected, "{} with {mode:o}", path.display());
            }
        }
    }
}

/// What is kept of an answer whose reader goes away before the gate is opened, and whether it is marked as interrupted.
#[track_caller]
fn left_by_its_reader(after_first: bool, reply: impl Fn(&Gate) -> Reply + Send + Sync + 'static) -> (String, bool) {
    let gate = Gate::new();
    let held = gate.clone();
    let server = Server::start(move |_, _| reply(&held));
    let sandbox = Sandbox::new().server_env(&server);
    let mut running = sandbox.q(&["one"]).spawn();
    server.wait_for_requests(1);
    if after_first {
        running.read_stdout_until("first ");
    }
    running.close_stdout();
    gate.open();
    running.wait().success();
    let kept = sandbox.current();
    let mut said = texts(&kept);
    assert_eq!(said.remove(0), "one");
    (said.concat(), kept["messages"][1].get("interrupted").is_some())
}

fn piece(text: &str) -> Vec<u8> {
    openai_event(json!({"content": text}), None)
}
