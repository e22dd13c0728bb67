//! What q writes is on the disk before it is needed, comes whole, and no other file is opened: by the calls of the system.

use std::fs;
use std::os::unix::fs::symlink;

use crate::conversations::{ARCHIVED, ID, OTHER, stored};
use crate::fixtures::{case, numbered};
use crate::machine::lacks;
use crate::sandbox::Sandbox;
use crate::times::{HOUR, age};

/// What q printed, and all calls of the system that it made.
#[track_caller]
fn traced(sandbox: &Sandbox, slot: &str, args: &[&str]) -> (String, String) {
    let run = sandbox.shell("exec strace -f -y -s 9999 -o trace q \"$@\"");
    let run = run.arg("sh").args(args).env("Q_SESSION", slot);
    let printed = run.run().success().stdout_text();
    let trace = fs::read_to_string(sandbox.home().join("trace")).expect("a trace");
    assert!(trace.contains("execve("), "nothing in the trace");
    (printed, trace)
}

#[test]
fn a_conversation_is_replaced_by_a_synced_file_and_is_never_missing() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let (_server, sandbox) = numbered();
    let sandbox = sandbox.env("Q_EXPIRE", "never");
    let archived = "q/sessions/session_20260102030405678.json";
    let directory = "q/sessions/.tmp-q-";
    for (args, name, temporary) in [
        (&["-f", "more"][..], archived, directory),
        (&["--again"], archived, directory),
        (&["--undo"], archived, directory),
        (&["-s", "work", "more"], "q/sessions/work.json", directory),
        (
            &["-s", "talk.json", "more"],
            "home/talk.json",
            "home/.tmp-q-",
        ),
    ] {
        let _case = case(args);
        for name in [ARCHIVED, "work.json"] {
            sandbox.write_session(name, &stored(&["one", "two", "three", "four"]));
        }
        let _ = symlink(ARCHIVED, sandbox.sessions().join("current.json"));
        sandbox.write_home("talk.json", stored(&["one", "two"]).to_string());
        let (_, trace) = traced(&sandbox, "", args);
        let calls: Vec<&str> = trace
            .lines()
            .filter_map(|line| Some(line.split_once(' ')?.1.trim_start()))
            .collect();
        let (name, temporary) = (format!("/{name}\""), format!("/{temporary}"));
        let synced = calls
            .iter()
            .position(|call| call.starts_with("fsync(") && call.contains(&temporary));
        let named = calls.iter().position(|call| {
            call.starts_with("rename") && call.contains(&temporary) && call.contains(&name)
        });
        assert!(
            synced.is_some() && synced < named,
            "fsync at {synced:?}, rename at {named:?} in:\n{trace}"
        );
        // Nothing else takes its name away.
        let away = |call: &&&str| {
            let mut parts = call.split(", ");
            let first = parts.find(|part| part.contains('/')).unwrap_or_default();
            (call.starts_with("unlink") || call.starts_with("rename")) && first.contains(&name)
        };
        assert_eq!(calls.iter().find(away), None);
    }
}

#[test]
fn output_that_is_printed_whole_is_written_by_one_system_call() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    // Several processes may write to one pipe.
    let (_server, sandbox) = numbered();
    for args in [
        &["-j", "one"][..],
        &["--no-stream", "one"],
        &["--last"],
        &["--last", "-j"],
        &["--dry-run", "one"],
    ] {
        let (printed, trace) = traced(&sandbox, "", args);
        let written = printed.replace('"', "\\\"").replace('\n', "\\n");
        let text = format!(", \"{written}\"");
        // One call may also write the text and the newline at its end.
        let lines = written.strip_suffix("\\n").unwrap_or(&written);
        let parts = format!("[{{iov_base=\"{lines}\"");
        let is_whole = |line: &str| {
            let is_one = line.contains(" write(") && line.contains(&text);
            is_one || (line.contains(" writev(") && line.contains(&parts))
        };
        assert!(trace.lines().any(is_whole), "{written} in:\n{trace}");
    }
}

#[test]
fn a_new_conversation_is_on_the_disk_before_the_link_leads_to_it() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let (_server, sandbox) = numbered();
    sandbox.write_linked("current.json", ARCHIVED, &stored(&["one", "two"]));
    let (_, trace) = traced(&sandbox, "", &["new"]);
    let id = sandbox.current_id();
    let at = |call: &str, words: &[&str]| {
        let has = |line: &str| line.contains(call) && words.iter().all(|word| line.contains(word));
        trace
            .lines()
            .position(has)
            .unwrap_or_else(|| panic!("no {call} with {words:?} in:\n{trace}"))
    };
    let synced = at("fsync(", &["q/sessions"]);
    let locked = at("flock(", &[]);
    let named = at("rename", &[&id]);
    // It is listed before the one that the link leaves.
    let touched = at("utimensat(", &[&id]);
    let led = at("rename", &["/current.json\""]);
    assert!(
        synced < locked && locked < named && named < led && touched < led,
        "{synced} {locked} {named} {touched} {led} in:\n{trace}"
    );
}

#[test]
fn a_question_opens_no_other_conversation_and_scans_the_directory_once_a_day() {
    let (_server, sandbox) = numbered();
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let sandbox = sandbox.env("Q_EXPIRE", "never");
    let bystanders = [
        "current-tty2.json",
        "play.json",
        "session_20250101000000.json",
        OTHER,
        "current-tty3.json",
    ];
    for name in bystanders.into_iter().chain(["work.json", ARCHIVED]) {
        sandbox.write_session(name, &stored(&["one", "two"]));
    }
    for slot in ["current.json", "current-tty1.json"] {
        sandbox.link(slot, ARCHIVED);
    }
    // What q opens, and whether it looks through the directory.
    let scans = |args: &[&str], slot: &str| {
        let _case = case((args, slot));
        let (_, trace) = traced(&sandbox, slot, args);
        let opens = |line: &&str| {
            line.contains("open") && bystanders.iter().any(|name| line.contains(name))
        };
        assert_eq!(trace.lines().find(opens), None);
        trace
            .lines()
            .any(|line| line.contains("getdents") && line.contains("/q/sessions>"))
    };
    // Once a day it looks for what is too old, in the directory and not in its files.
    let swept = sandbox.state().join("q/swept");
    fs::write(&swept, "").expect("the mark of a sweep");
    age(&swept, 25 * HOUR);
    assert!(scans(&["one"], ""), "it did not look");
    for (args, slot) in [
        (&["one"][..], ""),
        (&["-f", "more"], ""),
        (&["--no-save", "one"], ""),
        (&["-s", "work", "more"], ""),
        (&["-s", "new", "one"], ""),
        (&["-s", "talk.json", "one"], ""),
        (&["-s", ID, "more"], ""),
        (&["one"], "tty1"),
        (&["-f", "more"], "tty1"),
        (&["--history"], ""),
        (&["--last", "-s", "work"], ""),
    ] {
        assert!(!scans(args, slot), "{args:?} in the slot {slot:?}");
    }
    // A backup gets a number above all others, so this looks for them, and in the directory alone.
    assert!(scans(&["--undo"], ""), "it did not look");
}

#[test]
fn a_file_system_that_cannot_sync_costs_no_conversation() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    for error in ["ENOSYS", "EINVAL", "EOPNOTSUPP", "EPERM"] {
        let _case = case(error);
        let (_server, sandbox) = numbered();
        let script = format!("exec strace -f -o trace -e inject=fsync:error={error} q new");
        sandbox.shell(&script).run().success();
        sandbox.expect_texts("current.json", &["new", "answer 0"]);
    }
}

#[test]
fn a_link_that_cannot_be_looked_at_is_removed_and_named() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let run = |inject: &str| {
        let (server, sandbox) = numbered();
        let calls = "?lstat,?newfstatat,?statx,?symlink,?symlinkat";
        let script = format!("exec strace -f -s 9999 -o trace -e trace={calls} {inject} q new");
        let outcome = sandbox.shell(&script).run();
        let trace = fs::read_to_string(sandbox.home().join("trace")).expect("a trace");
        (server, sandbox, outcome, trace)
    };
    let (_server, _sandbox, _outcome, trace) = run("");
    let lines = Vec::from_iter(trace.lines());
    let made = lines.iter().position(|line| line.contains(" symlink"));
    let made = made.expect("a link");
    let looked = lines[made + 1..]
        .iter()
        .position(|line| line.contains("/.tmp-q-"));
    let looked = made + 1 + looked.expect("it is looked at");
    // A number that strace counts is one of a thread.
    let (call, _) = lines[looked].split_once('(').expect("a call");
    let before = lines[..looked].iter().filter(|line| line.starts_with(call));
    let count = before.count() + 1;
    let (_, name) = call.rsplit_once(' ').expect("a process");
    let (_server, sandbox, outcome, trace) =
        run(&format!("-e inject={name}:error=EIO:when={count}"));
    assert!(trace.contains("INJECTED"), "{trace}");
    outcome
        .exit(0)
        .stderr_contains("/current.json: Input/output error");
    for entry in fs::read_dir(sandbox.sessions()).expect("a directory") {
        let name = entry.expect("an entry").file_name();
        assert!(!name.to_string_lossy().starts_with(".tmp-q-"), "{name:?}");
    }
}

#[test]
fn a_directory_whose_closing_fails_is_read_all_the_same() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    for action in ["--list", "--undo", "--clear", "--copy branch", "--status"] {
        let _case = case(action);
        let sandbox = Sandbox::new();
        sandbox.write_linked("current.json", ARCHIVED, &stored(&["one", "two"]));
        let place = sandbox.sessions();
        let place = place.display();
        let inject = "inject=close:error=EIO";
        let script = format!("exec strace -f -o trace -P {place} -e {inject} q {action}");
        sandbox.shell(&script).run().exit(0);
    }
}

#[test]
fn a_history_goes_to_a_pipe_in_few_writes() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let sandbox = Sandbox::new();
    let texts = Vec::from_iter((0..40).map(|number| format!("text {number}")));
    let texts = Vec::from_iter(texts.iter().map(String::as_str));
    sandbox.write_current(&stored(&texts));
    let (printed, trace) = traced(&sandbox, "", &["--history"]);
    assert!(printed.contains("text 0\n") && printed.ends_with("text 39\n"));
    let writes = trace.lines().filter(|line| line.contains(" write"));
    assert!(writes.count() < 10, "{trace}");
}
