//! State of another owner, as after a run under sudo: every action reports that, and none treats it as missing.

use std::os::unix::fs::chown;

use crate::conversations::stored;
use crate::fixtures::case;
use crate::machine::skip;
use crate::sandbox::Sandbox;
use crate::snapshot::snapshot;

/// The actions that must read a conversation, and others. Deleting one needs no right to read it.
const READS: &str = "--history, --last, --last --json, --list, --list --json, --list one, --copy branch, --undo, --undo --json";
const OTHERS: &str = "--history --json, --history -s work, --last -s work, --copy branch -s work, --undo -s work, --clear, \
    --clear --json, --clear -s work, --clear --all --yes, --clear --all --yes --json, -n -s work more";

#[test]
fn an_action_on_state_of_another_owner_is_an_error_with_its_cause() {
    // SAFETY: the call has no conditions and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return skip("only root can give a file away");
    }
    let sandbox = Sandbox::new();
    sandbox.write_current(&stored(&["one", "two"]));
    sandbox.write_bytes("work.json", stored(&["three", "four"]).to_string());
    let owner = "belongs to another user; sudo chown ";
    let all = format!("{READS}, {OTHERS}");
    for (path, obeys_modes, actions, cause) in [
        ("sessions", true, &*all, owner),
        ("sessions", false, &*all, owner),
        ("", true, &*all, owner),
        ("", false, &*all, owner),
        ("sessions/current.json", true, READS, "ermission denied"),
    ] {
        let path = sandbox.state().join("q").join(path);
        chown(&path, Some(65_534), Some(65_534)).expect("another owner");
        let before = snapshot(sandbox.state());
        for action in actions.split(", ") {
            let _case = case((&path, obeys_modes, action));
            let words: Vec<&str> = action.split(' ').collect();
            let q = sandbox.q(&words).stdin_open();
            let refused = if obeys_modes { q.obeying_modes() } else { q }.run();
            let printed = refused.exit(1).stdout_text();
            let is_expected =
                printed.is_empty() || printed.starts_with("{\"error\":") || path.is_file();
            refused.check(is_expected, "expected nothing but an error");
            for words in ["failed to", "there is no", "nothing to"] {
                refused.stderr_lacks(words);
            }
            refused.stderr_contains(cause);
            before.expect_unchanged();
        }
        chown(&path, Some(0), Some(0)).expect("the owner");
    }
}
