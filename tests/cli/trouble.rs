//! Trouble with the disk, the reader or the connection: the answer is never lost, and what was kept before stays.

use std::fs;
use std::os::unix::fs::chown;

use crate::conversations::{ARCHIVED, EARLIER, ID, idle_for, texts};
use crate::dialect::{openai_stream, word};
use crate::fixtures::{CLOSED, LARGEST, case, every_provider, numbered, set_mode};
use crate::machine::{lacks, layer, skip};
use crate::outcome::Outcome;
use crate::sandbox::Sandbox;
use crate::server::{Gate, Reply, Server};
use crate::snapshot::snapshot;
use crate::times::HOUR;

/// Runs a command of q as a user that the system does not know; only root can become one.
fn without_home(sandbox: &Sandbox, command: &str) -> Outcome {
    const STRANGER: &str = "cd /; exec setpriv --reuid 1999999 --regid 1999999 --clear-groups";
    let variables = ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"];
    let q = sandbox.shell(&format!("{STRANGER} {command}"));
    variables
        .into_iter()
        .fold(q, |q, name| q.env_remove(name))
        .run()
}

/// Whether no stranger can run q here, which skips a test.
fn lacks_strangers(sandbox: &Sandbox) -> bool {
    let lacks = !without_home(sandbox, "q --version").status.success();
    if lacks {
        skip("another user cannot run q here");
    }
    lacks
}

#[test]
fn where_no_thread_can_be_started_the_answer_is_printed() {
    let server = every_provider("answer");
    let url = server.url();
    // A name may have several addresses.
    let named = url.replace("127.0.0.1", "localhost");
    let sandbox = Sandbox::new();
    if lacks_strangers(&sandbox) || lacks("a limit of threads", "prlimit --nproc=1 true") {
        return;
    }
    let openai = "OPENAI_API_KEY=key OPENAI_BASE_URL";
    // A local server that nobody named is looked for at the addresses of all of them.
    let closed =
        format!("LLAMACPP_BASE_URL={CLOSED} LMSTUDIO_BASE_URL={CLOSED} VLLM_BASE_URL={CLOSED}");
    for variables in [
        format!("{openai}={url}"),
        format!("{openai}={named}"),
        format!("OLLAMA_BASE_URL={url} {closed}"),
        format!("OLLAMA_BASE_URL={named} {closed}"),
    ] {
        let _case = case(&variables);
        let q = format!("env {variables} prlimit --nproc=1 q one");
        without_home(&sandbox, &q).exit(0).stdout("answer\n");
    }
}

#[test]
fn a_file_of_ones_own_needs_no_home() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    if lacks_strangers(&sandbox) {
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    set_mode(place.path(), 0o777);
    let file = place.path().join("talk.json");
    let file = file.display();
    let reason = "there is no home directory; set HOME or XDG_STATE_HOME";
    let not_saved = format!("q: this exchange was not saved: {reason}\n");
    let not_undone = format!("q: undo failed: {reason}\n");
    let not_copied = format!("q: {reason}\n");
    for (options, words, status, stdout, stderr) in [
        ("", "one", 0, "answer\n", ""),
        ("-f", "two", 0, "answer\n", ""),
        ("--last", "", 0, "answer\n", ""),
        // A backup has no place.
        ("--again", "three", 0, "answer\n", &*not_saved),
        ("--undo", "", 1, "", &*not_undone),
        ("--copy other", "", 1, "", &*not_copied),
    ] {
        let _case = case(options);
        let outcome = without_home(&sandbox, &format!("q -s {file} {options} {words}"));
        outcome.exit(status).stdout(stdout).stderr(stderr);
    }
    let history = without_home(&sandbox, &format!("q -s {file} --history -j")).stdout_json();
    assert_eq!(texts(&history), ["one", "answer", "two", "answer"]);
    let outcome = without_home(&sandbox, &format!("q -s {file} --clear"));
    outcome.success().stdout("Conversation cleared\n");
    assert_eq!(fs::read_dir(place.path()).expect("entries").count(), 0);
}

#[test]
fn without_a_home_directory_the_answer_is_printed_with_a_note() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    let homeless = |command: &str| without_home(&sandbox, command);
    if lacks_strangers(&sandbox) {
        return;
    }
    let advice = "q: set HOME or XDG_STATE_HOME to have conversations\n";
    for command in ["q one", "q -f one"] {
        let _case = case(command);
        let outcome = homeless(command);
        outcome.exit(0).stdout("answer\n");
        let note = "q: conversations are neither read nor saved: there is no home directory\n";
        outcome.stderr(format!("{note}{advice}"));
    }
    let uncached = "there is no home directory for cached answers";
    let set = "set HOME, XDG_CACHE_HOME or Q_ANSWERS\n";
    for (caching, status, stdout, said) in [
        (
            "on",
            0,
            "answer\n",
            format!("q: the answer is not cached: {uncached}; {set}"),
        ),
        ("only", 2, "", format!("q: {uncached}\nq: {set}")),
    ] {
        let _case = case(caching);
        let q = format!("env -u XDG_CACHE_HOME -u Q_ANSWERS Q_CACHED={caching} q -n -p openai one");
        let outcome = homeless(&q);
        outcome.exit(status).stdout(stdout);
        outcome.stderr_contains(&said);
    }
    for action in ["last", "history", "list", "undo", "clear"] {
        let outcome = homeless(&format!("q --{action}"));
        outcome.exit(1).stdout_is_empty();
        outcome.stderr(format!("q: there is no home directory\n{advice}"));
    }
    let config = "set HOME or XDG_CONFIG_HOME to have a configuration file";
    for command in ["q -r x one", "q -t x one", "q -p x one", "q --list-tools"] {
        let _case = case(command);
        homeless(command).stderr_contains(config);
    }
    // What is in the current directory is no configuration.
    let place = tempfile::tempdir().expect("a directory");
    fs::create_dir(place.path().join("roles")).expect("a directory");
    fs::write(place.path().join("roles/x.md"), "Be brief.").expect("a file");
    set_mode(place.path(), 0o755);
    let outcome = homeless(&format!("env -C {} q -r x one", place.path().display()));
    outcome.exit(2).stderr_contains("q: there are no roles; ");
    let outcome = homeless("q --status");
    let status = String::from_utf8_lossy(&outcome.stdout).into_owned();
    for line in [
        format!("configuration  there is no home directory; {config}"),
        "conversations  there is no home directory; set HOME or XDG_STATE_HOME to have conversations"
            .to_owned(),
    ] {
        assert!(status.lines().any(|shown| shown == line), "{status}");
    }
    homeless("q --status -j").stdout_contains("\"config\":null,");
    server.expect_requests(3);
}

#[test]
fn directories_of_another_user_are_not_used_and_the_note_says_what_to_do() {
    // SAFETY: the call has no conditions and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return skip("only root can give a directory away");
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
            let path = path.display().to_string();
            outcome.stderr_contains_all(&["saved", "another user", "chown", &path]);
            before.expect_unchanged();
            assert!(!server.last_request().text().contains("secret"));
        }
    }
}

#[test]
fn an_exchange_is_saved_separately_where_its_file_cannot_be_replaced() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    // A mount point, as containers have them.
    let script = "mount --bind talk.json talk.json && exec q -s talk.json two";
    sandbox.write_home("talk.json", idle_for(HOUR, &["one", "1"]).to_string());
    if lacks("a mount", "unshare -m true") {
        return;
    }
    let before = snapshot(sandbox.home());
    let q = sandbox.shell("exec unshare -m sh -c \"$0\"").arg(script);
    let outcome = q.run();
    outcome.exit(0).stdout("answer\n");
    outcome.stderr_contains("; saved as a separate conversation: ");
    before.expect_unchanged();
    sandbox.expect_texts(&sandbox.only_archived(), &["two", "answer"]);
}

#[test]
fn without_symbolic_links_or_locks_no_exchange_is_lost() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let server = Server::openai("answer");
    let refusing = |sandbox: &Sandbox, inject: &str, args: &[&str]| {
        let script = format!("exec strace -f -o trace -e inject={inject} q \"$@\"");
        sandbox.shell(&script).arg("sh").args(args).run()
    };
    let sandbox = Sandbox::new().server_env(&server);
    for args in [&["one"][..], &["-f", "two"]] {
        let outcome = refusing(&sandbox, "?symlink,?symlinkat:error=EPERM", args);
        outcome.exit(0).stdout("answer\n");
        outcome.stderr_contains("; to continue this conversation, use q -s session_");
    }
    assert_eq!(sandbox.archived().len(), 2);
    // A file in place of the link is continued where it is, and stays when another conversation begins.
    sandbox.write_session("current.json", &idle_for(HOUR, &["one", "1"]));
    for args in [&["-f", "two"][..], &["three"]] {
        refusing(&sandbox, "?symlink,?symlinkat:error=EPERM", args)
            .exit(0)
            .stdout("answer\n");
        sandbox.expect_texts("current.json", &["one", "1", "two", "answer"]);
    }
    assert_eq!(sandbox.archived().len(), 3);
    // Without the lock nobody knows who else writes.
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.write_linked("current.json", ARCHIVED, &idle_for(HOUR, &["one", "1"]));
    let before = sandbox.read_bytes(ARCHIVED);
    let outcome = refusing(&sandbox, "?flock:error=ENOLCK", &["-f", "two"]);
    outcome.exit(0).stdout("answer\n");
    outcome.stderr_contains("; saved as a separate conversation: ");
    sandbox.expect_bytes("current.json", before);
    sandbox.expect_texts(&sandbox.only_archived(), &["two", "answer"]);
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs LD_PRELOAD")]
fn exchanges_dropped_by_a_rename_that_reports_a_failure_stay_as_a_backup() {
    let library = Sandbox::new();
    let Some(layer) = layer(&library) else {
        return;
    };
    let half = "x".repeat(LARGEST / 2);
    for (option, input, first, status) in [
        ("--undo", "", "one", 1),
        ("--again", "", "one", 0),
        ("-f", &half, &half, 0),
    ] {
        for renames in [true, false] {
            let _case = case((option, renames));
            let (_server, sandbox) = numbered();
            let conversation = idle_for(HOUR, &[first, "1", "two", "2"]);
            sandbox.write_linked("current.json", ARCHIVED, &conversation);
            let before = sandbox.read_bytes(ARCHIVED);
            let q = sandbox.q(&[option]).stdin(input).env("Q_MAX_HISTORY", "0");
            let does = if renames { "stale" } else { "stale undone" };
            let run = q.env("LD_PRELOAD", &layer).env("LAYER", does).run();
            run.exit(status).stderr_contains("Stale file handle");
            if renames {
                let state = format!("q -s {ID}~1 has the state before");
                run.stderr_contains_all(&["it is not certain whether ", &state]);
                sandbox.expect_bytes(EARLIER, &before);
                assert_ne!(sandbox.read_bytes(ARCHIVED), before);
            } else {
                run.stderr_lacks("certain");
                sandbox.expect_bytes(ARCHIVED, &before);
                assert!(!sandbox.sessions().join(EARLIER).exists());
            }
            // A new answer is safe, or a note says that it is not.
            let mut names = sandbox.archived().into_iter();
            let own = names.find(|name| ![ARCHIVED, EARLIER].contains(&name.as_str()));
            assert_eq!(own.is_some(), status == 0 && renames);
            if status == 0 && !renames {
                run.stderr_contains("this exchange was not saved: ");
            }
        }
    }
}

#[test]
fn q_ends_quietly_if_its_reader_goes_away_and_saves_the_answer_so_far() {
    let nothing = || Reply::sse([""; 0]);
    // Before the first piece, of an answer that comes at once, and of one whose rest never comes.
    let gate = Gate::new();
    let at_once = nothing()
        .wait_for(&gate)
        .piece(openai_stream(&["first"]).concat());
    left_by_its_reader(at_once, &gate, None).expect_answer("first", false);

    let gate = Gate::new();
    let halting = nothing().wait_for(&gate).piece(word("first "));
    let halting = halting.wait_for(&Gate::new()).piece(word("never"));
    left_by_its_reader(halting, &gate, None).expect_answer("first ", true);

    // After the first piece: everything that has come by then is kept.
    let gate = Gate::new();
    let halting = Reply::sse([word("first ")]).wait_for(&gate);
    let halting = halting.piece(word("second ")).wait_for(&Gate::new());
    left_by_its_reader(halting, &gate, Some("first ")).expect_answer("first second ", true);

    // All of the answer has come before q notices that the reader is gone.
    let gate = Gate::new();
    let at_once = Reply::sse([word("first ")])
        .wait_for(&gate)
        .piece(openai_stream(&["second"]).concat());
    left_by_its_reader(at_once, &gate, Some("first ")).expect_answer("first second", false);
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
