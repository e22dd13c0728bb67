//! The manual's git hook, as it stands there, in a real repository.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::dialect::{failure, word};
use crate::fixtures::{CLOSED, case, documents, shown_roles};
use crate::machine::lacks;
use crate::outcome::Outcome;
use crate::sandbox::Sandbox;
use crate::server::{Reply, Server};

const MESSAGE: &str = "Add a file that says hello";

/// The script that the manual shows for `.git/hooks/prepare-commit-msg`.
fn hook() -> String {
    let documents = documents();
    let (_, rest) = documents
        .split_once("prepare-commit-msg")
        .expect("the recipe");
    let lines = rest.lines().skip_while(|line| !line.starts_with("    #!"));
    lines
        .take_while(|line| line.starts_with("    "))
        .map(|line| format!("{}\n", &line[4..]))
        .collect()
}

/// A repository with the hook, one commit, and a staged change; none where git is missing.
fn repository(server: Option<&Server>) -> Option<Sandbox> {
    let sandbox = Sandbox::new()
        .env("GIT_AUTHOR_NAME", "A U Thor")
        .env("GIT_AUTHOR_EMAIL", "author@example.com")
        .env("GIT_COMMITTER_NAME", "A U Thor")
        .env("GIT_COMMITTER_EMAIL", "author@example.com")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        // What a person would see in the editor is kept, and accepted.
        .env("GIT_EDITOR", "cp \"$1\" \"$HOME/seen\"; true");
    let sandbox = match server {
        Some(server) => sandbox.server_env(server),
        None => sandbox
            .env("OPENAI_BASE_URL", CLOSED)
            .env("OPENAI_API_KEY", "sk-test"),
    };
    if lacks("git", "git --version") {
        return None;
    }
    sandbox.config(&shown_roles());
    let begun =
        "git init -q . && git commit -q --allow-empty -m first && echo hello >file && git add file";
    git(&sandbox, begun);
    let path = sandbox.home().join(".git/hooks/prepare-commit-msg");
    fs::create_dir_all(path.parent().expect("a directory")).expect("the hooks' directory");
    fs::write(&path, hook()).expect("the hook");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a hook that can be run");
    Some(sandbox)
}

#[track_caller]
fn git(sandbox: &Sandbox, script: &str) -> Outcome {
    let done = sandbox.shell(script).run();
    done.exit(0);
    done
}

#[test]
fn the_message_that_the_hook_proposes_is_above_gits_comments() {
    let server = Server::openai(MESSAGE);
    let commands = "git commit | git commit -v | git commit -a | git -c commit.verbose=true commit";
    for command in commands.split(" | ") {
        let Some(sandbox) = repository(Some(&server)) else {
            return;
        };
        let committed = git(&sandbox, command);
        let seen =
            fs::read_to_string(sandbox.home().join("seen")).expect("what the editor was given");
        let first = seen.lines().next();
        let what = format!("{command}: the editor was given:\n{seen}");
        committed.check(first == Some(MESSAGE), &what);
        let what = format!("{command}: git's comments are gone:\n{seen}");
        committed.check(seen.contains("\n# "), &what);
        git(&sandbox, "git log -1 --format=%B").stdout(format!("{MESSAGE}\n\n"));
        git(&sandbox, "ls .git/*.q 2>&1; true").stdout_contains("No such file");
        let asked = server.last_request().text();
        let is_right = asked.contains("+hello") && asked.contains("imperative");
        assert!(is_right, "{asked}");
    }
}

#[test]
fn no_line_of_the_message_that_the_hook_proposes_is_a_comment_to_git() {
    let server = Server::openai("#42: say hello\n\n# Why\nsomebody asked");
    let Some(sandbox) = repository(Some(&server)) else {
        return;
    };
    git(&sandbox, "git commit");
    git(&sandbox, "git log -1 --format=%B").stdout(" #42: say hello\n\n # Why\nsomebody asked\n\n");
}

#[test]
fn the_hook_leaves_a_commit_with_a_message_or_without_a_change_alone() {
    let server = Server::openai(MESSAGE);
    for (command, message) in [
        ("git commit -m mine", "mine"),
        ("git commit --amend", "first"),
        (
            "git reset -q; git commit --allow-empty; git commit -q --allow-empty -m mine",
            "mine",
        ),
        (
            "git checkout -q -b other && git commit -qm theirs && git checkout -q - && git merge -q --no-ff -m merged other",
            "merged",
        ),
    ] {
        let _case = case(command);
        let Some(sandbox) = repository(Some(&server)) else {
            return;
        };
        git(&sandbox, command);
        git(&sandbox, "git log -1 --format=%B").stdout(format!("{message}\n\n"));
    }
    server.expect_requests(0);
}

#[test]
fn without_an_answer_git_continues_as_it_would_without_the_hook() {
    let cut = Server::always(Reply::sse([word("half a mess")]).cut());
    let failing = Server::always(failure(500, "down"));
    for (what, server) in [
        ("refused", None),
        ("cut", Some(&cut)),
        ("failing", Some(&failing)),
    ] {
        let _case = case(what);
        let Some(sandbox) = repository(server) else {
            return;
        };
        let sandbox = sandbox.env("GIT_EDITOR", "cp \"$1\" \"$HOME/seen\"; echo typed >");
        git(&sandbox, "git commit");
        let seen =
            fs::read_to_string(sandbox.home().join("seen")).expect("what the editor was given");
        let is_right = seen.starts_with("\n# ") && !seen.contains("half");
        assert!(is_right, "the editor was given:\n{seen}");
        git(&sandbox, "git log -1 --format=%B").stdout("typed\n\n");
    }
}
