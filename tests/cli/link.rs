//! The link `current.json` where a lock is held or a call of the system fails; `link.txt` has the rest.

use std::fs;

use crate::conversations::{ARCHIVED, OTHER, hold_the_lock, idle_for, other, stored};
use crate::fixtures::{case, numbered};
use crate::machine::lacks;
use crate::sandbox::Sandbox;
use crate::times::{HOUR, wait_until};

#[test]
fn clear_removes_the_conversation_that_is_current_once_the_lock_is_free() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write_linked("current.json", ARCHIVED, &stored(&["one", "two"]));
    sandbox.write_session(OTHER, &other(&["three", "four"]));
    let lock = hold_the_lock(&sandbox);
    let clear = sandbox
        .shell("exec strace -f -o trace -e trace=flock q --clear")
        .spawn();
    wait_until(|| {
        fs::read_to_string(sandbox.home().join("trace")).is_ok_and(|trace| trace.contains("flock("))
    });
    // Another q, which had the lock, has started a conversation.
    sandbox.link(".new", OTHER);
    fs::rename(
        sandbox.sessions().join(".new"),
        sandbox.sessions().join("current.json"),
    )
    .expect("another link");
    drop(lock);
    clear.wait().exit(0);
    sandbox.expect_files(&[ARCHIVED]);
}

#[test]
fn a_follow_up_looks_again_for_a_conversation_that_was_just_removed() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let (_server, sandbox) = numbered();
    sandbox.write_linked("current.json", ARCHIVED, &idle_for(HOUR, &["one", "1"]));
    // Another q, with keep = "0", has made another one current, which has to stand for both here.
    let path = sandbox.sessions().join(ARCHIVED);
    let trace = format!("strace -f -o trace -P {}", path.display());
    let inject = "-e inject=?openat:error=ENOENT:when=1";
    let q = sandbox.shell(&format!("exec {trace} {inject} q -f two"));
    q.run().exit(0).stderr_is_empty();
    sandbox.expect_texts("current.json", &["one", "1", "two", "answer 0"]);
}

#[test]
fn clear_removes_the_link_or_fails_and_never_moves_the_link_aside() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let sandbox = Sandbox::new();
    for call in 1.. {
        let _case = case(call);
        sandbox.write_linked("current.json", ARCHIVED, &stored(&["one", "two"]));
        let inject = format!("?readlink,?readlinkat:error=EIO:when={call}");
        let outcome = sandbox
            .shell(&format!(
                "exec strace -f -o trace -e inject={inject} q --clear"
            ))
            .run();
        let stays = sandbox.sessions().join("current.json").is_symlink();
        let what = format!("the link stays: {stays}");
        outcome.check(outcome.status.success() != stays, &what);
        let trace = fs::read_to_string(sandbox.home().join("trace")).unwrap();
        // A clear that was killed after moving the link would take it from a conversation that another q has just started.
        assert!(!trace.contains("rename"), "{trace}");
        if !trace.contains("INJECTED") {
            break;
        }
    }
}

#[test]
fn a_conversation_that_could_not_be_read_for_a_moment_is_not_removed() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let (_server, sandbox) = numbered();
    // With a role of its own, it is not taken for one that another q has begun.
    sandbox.q(&["-S", "be brief", "one"]).run().success();
    let held = fs::canonicalize(sandbox.sessions().join("current.json")).unwrap();
    let place = held.display();
    let follow =
        format!("exec strace -f -o trace -P {place} -e inject=read:error=EIO:when=1 q -f two");
    let outcome = sandbox.shell(&follow).env("Q_KEEP", "0").run();
    outcome.exit(0).stderr_contains("Input/output error");
    assert!(held.exists());
}
