//! Cached answers where there are many q at once, kills, or another user. The rest is in the transcripts.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::thread;

use crate::dialect::openai_reply;
use crate::fixtures::case;
use crate::machine::skip;
use crate::sandbox::Sandbox;
use crate::server::Server;

/// An answer that takes a while to write, and the word that ends it.
fn long(number: usize) -> String {
    "x".repeat(500_000) + &format!(" end{number}")
}

/// A sandbox with a directory for answers, whose server numbers them.
fn numbered() -> (Server, Sandbox) {
    let server = Server::start(|request, number| openai_reply(request, &long(number)));
    let sandbox = Sandbox::new().server_env(&server);
    let directory = sandbox.root().join("known");
    (server, sandbox.env("Q_ANSWERS", directory))
}

/// The names in the directory for answers.
fn names(sandbox: &Sandbox) -> Vec<String> {
    let entries = fs::read_dir(sandbox.root().join("known")).expect("the directory");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        let name = entry.expect("an entry").file_name();
        name.into_string().expect("UTF-8")
    };
    entries.map(name).collect()
}

#[test]
fn twenty_cached_questions_at_once_each_print_a_whole_answer_and_one_is_kept() {
    let (server, sandbox) = numbered();
    let ask = || sandbox.q(&["--cached", "--no-save", "-n", "hi"]);
    sandbox.q(&["--cached", "-n", "hi"]).run().exit(0);
    let mut running = Vec::new();
    for _ in 0..10 {
        running.push(sandbox.q(&["--again", "--cached", "--no-save"]).spawn());
        running.push(ask().spawn());
    }
    let mut printed = Vec::new();
    for one in running {
        let outcome = one.wait();
        printed.push(outcome.exit(0).stderr_is_empty().stdout_text());
    }
    let asked = server.requests().len();
    let given = |text: &String| (0..asked).any(|number| *text == long(number) + "\n");
    assert!(printed.iter().all(given), "an answer that nobody has given");
    let kept = ask().run().exit(0).stderr_is_empty().stdout_text();
    assert!(printed.contains(&kept), "the file has another answer");
    server.expect_requests(asked);
    assert_eq!(names(&sandbox).len(), 1, "{:?}", names(&sandbox));
}

#[test]
fn a_kill_at_any_moment_leaves_the_whole_cached_answer_or_none() {
    let (server, sandbox) = numbered();
    fs::create_dir(sandbox.root().join("known")).expect("a directory");
    for number in 0..10 {
        let _case = case(number);
        let question = number.to_string();
        let args = ["--no-save", "-n", "--cached", "-p", "openai", &question];
        let before = names(&sandbox);
        let mut running = sandbox.q(&args).spawn();
        while names(&sandbox) == before {
            thread::yield_now();
        }
        running.signal(libc::SIGKILL);
        running.wait();
        let again = sandbox.q(&args).env("Q_CACHED", "only").run();
        let said = again.stderr_text();
        if said.is_empty() {
            again.exit(0).stdout(&(long(number) + "\n"));
        } else {
            assert!(said.contains("no cached answer"), "{said}");
            again.exit(1).stdout_is_empty();
        }
    }
    server.expect_requests(10);
    for name in names(&sandbox) {
        let is_known = name.len() == 64 + ".json".len();
        assert!(is_known || name.starts_with(".tmp-q-"), "{name}");
    }
}

#[test]
fn a_cached_answer_of_another_user_is_used_only_in_a_configured_directory() {
    let server =
        Server::start(|request, number| openai_reply(request, &format!("answer {number}")));
    let sandbox = Sandbox::new().server_env(&server);
    let args = ["--cached", "--no-save", "-n", "hi"];
    sandbox.q(&args).run().exit(0).stdout("answer 0\n");
    let directory = sandbox.home().join(".cache/q/answers");
    let mut entries = fs::read_dir(&directory).expect("the directory");
    let path = entries.next().expect("an answer").expect("an entry").path();
    let elsewhere = sandbox.home().join("elsewhere");
    fs::copy(&path, &elsewhere).expect("a copy");
    for given in [&path, &elsewhere] {
        if chown(given, Some(65_534), None).is_err() {
            return skip("only root can give a file away");
        }
    }
    let named = sandbox.q(&args).env("Q_ANSWERS", &directory).run();
    named.success().stdout("answer 0\n");
    let only = sandbox
        .q(&args)
        .env("Q_CACHED", "only")
        .env("Q_PROVIDER", "openai")
        .run();
    only.exit(1)
        .stderr_contains("no cached answer")
        .stderr_lacks("the same question");
    let other = |directory: &str| {
        let q = sandbox.q(&["-n", "-p", "openai", "-m", "other", "hi"]);
        q.env("Q_CACHED", "only").env("Q_ANSWERS", directory).run()
    };
    let named = directory.to_str().expect("UTF-8");
    other(named).exit(1).stderr_contains("the same question");
    other("").exit(1).stderr_lacks("the same question");
    let reason = format!(
        "ignoring the cached answer {}: it belongs to another user",
        path.display()
    );
    // The new answer takes its place.
    sandbox
        .q(&args)
        .run()
        .exit(0)
        .stdout("answer 1\n")
        .stderr_contains(&reason);
    sandbox.q(&args).run().success().stdout("answer 1\n");
    fs::remove_file(&path).expect("the answer");
    symlink(&elsewhere, &path).expect("a link");
    sandbox
        .q(&args)
        .run()
        .exit(0)
        .stdout("answer 2\n")
        .stderr_contains(&reason);
    server.expect_requests(3);
}
