//! Trouble with the disk, the reader or the connection: the answer is never lost, and what was kept before stays.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::Path;

use crate::dialect::{finish, openai_stream, word};
use crate::fixtures::{
    ARCHIVED, EARLIER, HOUR, ID, LARGEST, case, idle_for, lacks, make_pipe, mode, numbered,
    set_mode, snapshot, texts,
};
use crate::sandbox::Sandbox;
use crate::server::{Gate, Reply, Server};

#[test]
fn state_that_cannot_be_used_never_costs_the_answer() {
    let server = Server::openai("answer");
    let file = |path: &Path| fs::write(path, "in the way").unwrap();
    let folder = |path: &Path| fs::create_dir_all(path.join("in the way")).unwrap();
    let circle = |path: &Path| symlink(path, path).unwrap();
    type Obstacle<'a> = &'a dyn Fn(&Path);
    let cases: [(&str, &str, Obstacle, &str); 6] = [
        ("a file", "state", &file, "saved: "),
        ("a file", "state/q", &file, "saved: "),
        ("a link to itself", "state/q", &circle, "saved: "),
        ("a file", "state/q/sessions", &file, "saved: "),
        (
            "a folder",
            "state/q/sessions/current.json",
            &folder,
            "saved on its own",
        ),
        (
            "a pipe",
            "state/q/sessions/current.json",
            &make_pipe,
            "saved on its own",
        ),
    ];
    for (what, path, obstruct, note) in cases {
        let _case = case((what, path));
        let sandbox = Sandbox::new().server_env(&server);
        fs::remove_dir(sandbox.state()).unwrap();
        let path = sandbox.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        obstruct(&path);
        let before = snapshot(sandbox.root());
        let obstacle = path
            .strip_prefix(sandbox.root())
            .unwrap()
            .display()
            .to_string();
        for args in [&["one"][..], &["-f", "one"]] {
            let outcome = sandbox.q(args).run();
            outcome
                .exit(0)
                .stdout("answer\n")
                .stderr_is_of_q()
                .stderr_contains(note);
            let changes = before.changes();
            outcome.check(
                changes
                    .iter()
                    .all(|change| !change[2..].starts_with(&obstacle)),
                || format!("{changes:#?}"),
            );
            // There is no temporary file beside it either.
            let left = sandbox.all_files();
            outcome.check(left.iter().all(|name| !name.starts_with('.')), || {
                format!("left behind: {left:?}")
            });
        }
    }
}

#[test]
fn without_a_home_the_answer_comes_with_a_note() {
    // A user that the system does not know; only root can become one.
    const STRANGER: &str = "cd /; exec setpriv --reuid 1999999 --regid 1999999 --clear-groups";
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    let homeless = |command: &str| {
        let variables = ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"];
        let q = sandbox.shell(&format!("{STRANGER} {command}"));
        variables
            .into_iter()
            .fold(q, |q, name| q.env_remove(name))
            .run()
    };
    if !homeless("q --version").status.success() {
        return eprintln!("skipped: another user cannot run q here");
    }
    for command in ["q one", "q -f one"] {
        homeless(command)
            .exit(0)
            .stdout("answer\n")
            .stderr_contains("q: there is no home folder: ");
    }
    for command in [
        "q --last",
        "q --history",
        "q --list",
        "q --undo",
        "q --clear",
    ] {
        homeless(command)
            .exit(1)
            .stdout_is_empty()
            .stderr_contains("q: there is no home folder, so ");
    }
    server.expect_requests(2);
}

#[test]
fn folders_of_another_user_are_not_used_and_the_note_says_what_to_do() {
    // SAFETY: the call has no conditions and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return eprintln!("skipped: only root can give a folder away");
    }
    let server = Server::openai("answer");
    for path in ["q", "q/sessions"] {
        for args in [&["one"][..], &["-f", "one"]] {
            let _case = case((path, args));
            let sandbox = Sandbox::new().server_env(&server);
            sandbox.write_current(&idle_for(HOUR, &["secret", "1"]));
            let path = sandbox.state().join(path);
            chown(&path, Some(65_534), Some(65_534)).unwrap();
            let before = snapshot(sandbox.state());
            let outcome = sandbox.q(args).run();
            outcome.exit(0).stdout("answer\n").stderr_is_of_q();
            outcome.stderr_contains_all(&[
                "saved",
                "another user",
                "chown",
                &path.display().to_string(),
            ]);
            before.expect_unchanged();
            assert!(!server.last_request().text().contains("secret"));
        }
        for action in [
            &["--history"][..],
            &["--last"],
            &["--list"],
            &["--undo"],
            &["--clear"],
            &["--clear", "--all", "--yes"],
        ] {
            let _case = case((path, action));
            let sandbox = Sandbox::new();
            sandbox.write_current(&idle_for(HOUR, &["secret", "1"]));
            chown(sandbox.state().join(path), Some(65_534), Some(65_534)).unwrap();
            let before = snapshot(sandbox.state());
            let refused = sandbox.q(action).run();
            refused
                .exit(1)
                .stdout_is_empty()
                .stderr_contains_all(&["another user", "chown"]);
            before.expect_unchanged();
        }
    }
}

#[test]
fn a_file_that_cannot_be_replaced_leaves_the_exchange_on_its_own() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    // A mount point, as containers have them.
    let script = "mount --bind talk.json talk.json && exec q -s talk.json two";
    sandbox.write_home("talk.json", idle_for(HOUR, &["one", "1"]).to_string());
    if lacks("a mount", "unshare -m true") {
        return;
    }
    let before = snapshot(sandbox.home());
    let outcome = sandbox
        .shell("exec unshare -m sh -c \"$1\"")
        .arg("sh")
        .arg(script)
        .run();
    outcome
        .exit(0)
        .stdout("answer\n")
        .stderr_contains(": this exchange is saved on its own, in ");
    before.expect_unchanged();
    sandbox.expect_texts(&sandbox.only_archived(), &["two", "answer"]);
}

#[test]
fn without_symbolic_links_or_locks_nothing_is_lost() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let server = Server::openai("answer");
    let refusing = |sandbox: &Sandbox, inject: &str, args: &[&str]| {
        let script = format!("exec strace -f -o trace -e inject={inject} q \"$@\"");
        sandbox.shell(&script).arg("sh").args(args).run()
    };
    // The current conversation stays a file, until another one takes its place.
    let sandbox = Sandbox::new().server_env(&server);
    for args in [&["one"][..], &["-f", "two"], &["three"], &["-f", "four"]] {
        refusing(&sandbox, "?symlink,?symlinkat:error=EPERM", args)
            .success()
            .stdout("answer\n");
        assert_eq!(sandbox.target("current.json"), None);
    }
    sandbox.expect_texts("current.json", &["three", "answer", "four", "answer"]);
    sandbox.expect_texts(
        &sandbox.only_archived(),
        &["one", "answer", "two", "answer"],
    );
    // Without the lock nobody knows who else writes.
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.write_linked("current.json", ARCHIVED, &idle_for(HOUR, &["one", "1"]));
    let before = sandbox.read_bytes(ARCHIVED);
    let outcome = refusing(&sandbox, "?flock:error=ENOLCK", &["-f", "two"]);
    outcome
        .exit(0)
        .stdout("answer\n")
        .stderr_contains(": this exchange is saved on its own, in ");
    sandbox.expect_bytes("current.json", before);
    sandbox.expect_texts(&sandbox.only_archived(), &["two", "answer"]);
}

/// Renames a file where `RENAMES` is set, and reports a failure in any case, as a network file system may.
const FAILING_RENAME: &str = "\
    #include <errno.h>\n#include <fcntl.h>\n#include <stdlib.h>\n\
    int renameat(int, const char *, int, const char *);\n\
    int rename(const char *from, const char *to) {\n\
        if (getenv(\"RENAMES\")) renameat(AT_FDCWD, from, AT_FDCWD, to);\n\
        errno = ESTALE;\n\
        return -1;\n\
    }\n";

#[test]
#[cfg_attr(
    not(target_os = "linux"),
    ignore = "other systems replace a function of a program in other ways"
)]
fn what_is_dropped_by_a_rename_that_reports_a_failure_stays_as_an_earlier_state() {
    if lacks("a compiler for C", "cc --version") {
        return;
    }
    let half = "x".repeat(LARGEST / 2);
    for (option, input, first, status) in [
        ("--undo", "", "one", 1),
        ("--again", "", "one", 0),
        ("-f", &half, &half, 0),
    ] {
        for renames in [true, false] {
            let _case = case((option, renames));
            let (_server, sandbox) = numbered();
            sandbox.write_home("rename.c", FAILING_RENAME);
            sandbox
                .shell("cc -shared -fPIC -o rename.so rename.c")
                .run()
                .success();
            sandbox.write_linked(
                "current.json",
                ARCHIVED,
                &idle_for(HOUR, &[first, "1", "two", "2"]),
            );
            let before = sandbox.read_bytes(ARCHIVED);
            let q = sandbox.q(&[option]).stdin(input).env("Q_MAX_HISTORY", "0");
            let q = q.env("LD_PRELOAD", sandbox.home().join("rename.so"));
            let run = if renames { q.env("RENAMES", "1") } else { q }.run();
            run.exit(status).stderr_contains("Stale file handle");
            if renames {
                run.stderr_contains_all(&[
                    "it is not certain whether ",
                    &format!("q -s {ID}~1 has the state before"),
                ]);
                sandbox.expect_bytes(EARLIER, &before);
                assert_ne!(sandbox.read_bytes(ARCHIVED), before);
            } else {
                run.stderr_lacks("certain");
                sandbox.expect_bytes(ARCHIVED, &before);
                assert!(!sandbox.sessions().join(EARLIER).exists());
            }
            // A new answer is safe in any case.
            let own = sandbox
                .archived()
                .into_iter()
                .find(|name| ![ARCHIVED, EARLIER].contains(&name.as_str()));
            assert_eq!(own.is_some(), status == 0);
        }
    }
}

#[test]
fn a_disk_that_is_full_costs_neither_the_answer_nor_what_was_kept() {
    let server = Server::openai("answer");
    let long = "x".repeat(200_000);
    let kept = || Some(idle_for(HOUR, &["one", &long]));
    for (kept, script) in [
        (None, "ulimit -f 0; exec q -f two </dev/null"),
        (None, "ulimit -f 0; exec q two </dev/null"),
        (kept(), "ulimit -f 0; exec q -f two </dev/null"),
        (kept(), "ulimit -f 0; exec q two </dev/null"),
    ] {
        let _case = case((kept.is_some(), script));
        let sandbox = Sandbox::new().server_env(&server);
        if let Some(kept) = kept {
            sandbox.write_linked("current.json", ARCHIVED, &kept);
        }
        let before = snapshot(sandbox.sessions()).contents();
        let outcome = sandbox.shell(script).run();
        outcome
            .exit(0)
            .stdout("answer\n")
            .stderr_contains("q: this exchange was not saved: ");
        assert!(
            snapshot(sandbox.sessions()).contents() == before,
            "something has changed"
        );
    }
    // Writing more than the limit fails as it does on a full disk: after a part of it. There is room for the exchange alone.
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.write_linked("current.json", ARCHIVED, &kept().expect("a conversation"));
    let before = sandbox.read_bytes(ARCHIVED);
    let outcome = sandbox
        .shell("ulimit -f 100; exec q -f two </dev/null")
        .run();
    outcome
        .exit(0)
        .stdout("answer\n")
        .stderr_contains(": this exchange is saved on its own, in ");
    sandbox.expect_bytes("current.json", before);
    sandbox.expect_texts(&sandbox.only_archived(), &["two", "answer"]);
}

#[test]
fn a_reader_that_goes_away_ends_q_quietly_and_what_has_come_is_kept() {
    let nothing = || Reply::sse([""; 0]);
    // Before the first piece, of an answer that comes at once, and of one whose rest never comes.
    let gate = Gate::new();
    let at_once = nothing()
        .wait_for(&gate)
        .piece(openai_stream(&["first"]).concat());
    left_by_its_reader(at_once, &gate, None).expect_answer("first", false);

    let gate = Gate::new();
    let halting = nothing()
        .wait_for(&gate)
        .piece(word("first "))
        .wait_for(&Gate::new())
        .piece(word("never"));
    left_by_its_reader(halting, &gate, None).expect_answer("first ", true);

    // After the first piece: everything that has come by then is kept.
    let gate = Gate::new();
    let halting = Reply::sse([word("first ")])
        .wait_for(&gate)
        .piece(word("second "))
        .wait_for(&Gate::new());
    left_by_its_reader(halting, &gate, Some("first ")).expect_answer("first second ", true);

    // All of the answer has come before q notices that the reader is gone.
    let gate = Gate::new();
    let at_once = Reply::sse([word("first ")])
        .wait_for(&gate)
        .piece(openai_stream(&["second"]).concat());
    left_by_its_reader(at_once, &gate, Some("first ")).expect_answer("first second", false);
}

#[test]
fn an_answer_that_breaks_off_is_kept_as_far_as_it_came() {
    type Ending = fn(Reply) -> Reply;
    let failing: [(&str, Ending); 6] = [
        ("a cut", Reply::cut),
        ("a reset", Reply::reset),
        ("an end without an end", |reply| reply),
        ("an error", |reply| {
            reply.piece("data: {\"error\":{\"message\":\"overloaded\"}}\n\n")
        }),
        ("nonsense", |reply| reply.piece("data: {\"choices\":\n\n")),
        ("the end of the provider's patience", |reply| {
            reply.piece(finish("content_filter"))
        }),
    ];
    for (what, end) in failing {
        for (args, before) in [(&["two"][..], &[][..]), (&["-f", "two"], &["one", "1"])] {
            let _case = case((what, args));
            let gate = Gate::new();
            let server = Server::always(end(Reply::sse([word("first ")]).wait_for(&gate)));
            let sandbox = Sandbox::new().server_env(&server);
            sandbox.write_current(&idle_for(HOUR, &["one", "1"]));
            let mut running = sandbox.q(args).spawn();
            running.read_stdout_until("first ");
            gate.open();
            let outcome = running.wait();
            outcome
                .exit(1)
                .stdout("first \n")
                .stderr_contains("q: openai: ");
            sandbox.expect_texts("current.json", &[before, &["two", "first "]].concat());
            sandbox.expect_answer("first ", true);
            server.expect_requests(1);
        }
    }
}

#[test]
fn only_the_folders_that_are_its_own_are_made_private() {
    let server = Server::openai("answer");
    for given in [0o755, 0o777, 0o500] {
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.write_bytes("named.json", "{}");
        let own = [sandbox.state().join("q"), sandbox.sessions()];
        let others = [
            sandbox.state(),
            sandbox.home(),
            sandbox.sessions().join("named.json"),
        ];
        others.iter().for_each(|path| set_mode(path, 0o755));
        own.iter().rev().for_each(|path| set_mode(path, given));
        sandbox.q(&["one"]).run().success();
        for (paths, expected) in [(&own[..], 0o700), (&others, 0o755)] {
            for path in paths {
                assert_eq!(
                    format!("{:o}", mode(path)),
                    format!("{expected:o}"),
                    "{} with {given:o}",
                    path.display()
                );
            }
        }
    }
}

/// A sandbox in which the reader of an answer has gone away, perhaps after some words, before the gate was opened.
#[track_caller]
fn left_by_its_reader(reply: Reply, gate: &Gate, after: Option<&str>) -> Sandbox {
    let server = Server::always(reply);
    let sandbox = Sandbox::new().server_env(&server);
    let mut running = sandbox.q(&["one"]).spawn();
    server.wait_for_requests(1);
    if let Some(words) = after {
        running.read_stdout_until(words);
    }
    running.close_stdout();
    gate.open();
    running.wait().success();
    assert_eq!(texts(&sandbox.current())[0], "one");
    assert_eq!(texts(&sandbox.current()).len(), 2);
    sandbox
}
