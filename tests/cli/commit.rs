//! Committing an exchange: what was acknowledged is never lost or torn, whatever else writes or kills.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::conversations::{
    ARCHIVED, EARLIER, ID, hold_the_lock, id_of, idle_for, lock_directory, stored, texts,
};
use crate::dialect::{held_back, openai_reply, word};
use crate::fixtures::{case, prompt};
use crate::machine::{FASTER, fast_clock, lacks, layer};
use crate::outcome::Outcome;
use crate::run::Running;
use crate::sandbox::Sandbox;
use crate::server::{Gate, Reply, Server};
use crate::snapshot::snapshot;
use crate::times::{HOUR, ahead};

/// How many run at once when they compete. Each waits five seconds for the lock; with more of them that would not be enough
/// on a slow disk and a busy machine.
const CROWD: usize = 16;

#[test]
fn follow_ups_at_the_same_time_are_all_saved_in_one_conversation() {
    let sandbox = Sandbox::new().env("Q_PAIRS", "1000");
    sandbox.write_current(&idle_for(HOUR, &["the first", "1"]));
    let (sandbox, outcomes) = crowd(sandbox, &["-f", "--messages", "0"]);
    for outcome in outcomes {
        outcome.success();
    }
    sandbox.expect_files(&["current.json"]);
    let kept = texts(&sandbox.current());
    assert_eq!(kept[..2], ["the first", "1"]);
    assert_eq!(exchanges(&kept[2..]), crowd_exchanges());
}

#[test]
fn follow_ups_at_the_same_time_with_nothing_to_continue_are_all_saved() {
    let (sandbox, outcomes) = crowd(Sandbox::new().env("Q_PAIRS", "1000"), &["-f"]);
    for outcome in outcomes {
        let note = "q: there is no conversation to continue";
        outcome.exit(0).stderr_contains(note).stderr_has_lines(1);
    }
    let files = sandbox.session_files();
    let said = files.iter().flat_map(|name| texts(&sandbox.session(name)));
    let said: Vec<String> = said.collect();
    assert_eq!(exchanges(&said), crowd_exchanges());
}

#[test]
fn plain_questions_at_the_same_time_get_a_conversation_each() {
    let (sandbox, outcomes) = crowd(Sandbox::new(), &["-n"]);
    for outcome in outcomes {
        outcome.success();
    }
    let files = sandbox.all_files().into_iter();
    let files: Vec<String> = files.filter(|name| name != "current.json").collect();
    assert_eq!(files.len(), CROWD);
    let mut said = Vec::new();
    for name in &files {
        let kept = sandbox.session(name);
        assert_eq!(*name, id_of(&kept) + ".json");
        said.extend(texts(&kept));
    }
    assert_eq!(exchanges(&said), crowd_exchanges());
    let is_right = files.contains(&format!("{}.json", sandbox.current_id()));
    assert!(is_right, "the link leads to one of them");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs LD_PRELOAD")]
fn a_new_conversation_replaces_no_file_and_skips_ids_that_are_taken() {
    let server = Server::openai("answer");
    let library = Sandbox::new();
    let Some(layer) = layer(&library) else {
        return;
    };
    // Not every file system can refuse to replace, and some have no hard links either.
    for lacking in ["nothing", "noreplace", "noreplace hardlink"] {
        let _case = case(lacking);
        let sandbox = Sandbox::new().server_env(&server);
        for milliseconds in 0..2_000 {
            let created = json!({"created": ahead(Duration::from_millis(milliseconds))});
            sandbox.write_bytes(&(id_of(&created) + ".json"), "taken");
        }
        for question in ["one", "two"] {
            let q = sandbox.q(&[question]).env("LD_PRELOAD", &layer);
            q.env("LAYER", lacking).run().success();
        }
        let names = sandbox.archived();
        let is_taken = |name: &&String| sandbox.read_bytes(name) == b"taken";
        let taken = names.iter().filter(is_taken).count();
        // Two conversations and a link are new, and no temporary file is left.
        assert_eq!((taken, sandbox.all_files().len()), (2_000, 2_003));
        assert_eq!(sandbox.current_id(), id_of(&sandbox.current()));
    }
}

#[test]
fn a_q_that_is_killed_at_any_change_leaves_no_empty_or_half_file() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let server = Server::openai("answer");
    let held = idle_for(HOUR, &["one", "1", "two", "2"]);
    for args in [
        &["new"][..],
        &["-f", "more"],
        &["-s", "work", "new"],
        &["--again"],
        &["--undo"],
        &["--copy", "branch"],
    ] {
        for is_link in [true, false] {
            for call in 1.. {
                let _case = case((args, is_link, call));
                let sandbox = Sandbox::new().server_env(&server);
                if is_link {
                    sandbox.write_linked("current.json", ARCHIVED, &held);
                } else {
                    sandbox.write_session("current.json", &held);
                }
                let calls = "?rename,?renameat,?renameat2,?link,?linkat,?symlink,?symlinkat,?unlink,?unlinkat,?fsync";
                let inject = format!(
                    "exec strace -f -o trace -e inject={calls}:signal=KILL:when={call} q \"$@\""
                );
                let outcome = sandbox.shell(&inject).arg("sh").args(args).run();
                let mut names = sandbox.session_files();
                // No reader looks for the others.
                names.retain(|name| name.ends_with(".json"));
                for name in names {
                    let bytes = sandbox.read_bytes(&name);
                    let is_whole = serde_json::from_slice::<Value>(&bytes).is_ok();
                    outcome.check(is_whole, &format!("{name} is not whole"));
                }
                if outcome.status.success() {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_follow_up_whose_conversation_was_cleared_meanwhile_is_saved_on_its_own() {
    let clear = |sandbox: &Sandbox| {
        sandbox.q(&["--clear"]).run().success();
    };
    let new = |sandbox: &Sandbox| {
        clear(sandbox);
        sandbox.q(&["new"]).run().success();
    };
    // Another one under the same id.
    let other = |sandbox: &Sandbox| {
        let path = sandbox.sessions().join("current.json");
        let conversation = stored(&["two", "2"]).to_string();
        fs::write(path, conversation).expect("a conversation");
    };
    type Meanwhile<'a> = &'a dyn Fn(&Sandbox);
    let table: [(Meanwhile, &[&str]); 3] = [
        (&clear, &[]),
        (&new, &["new", "answer"]),
        (&other, &["two", "2"]),
    ];
    for (number, (meanwhile, current)) in table.into_iter().enumerate() {
        let _case = case(number);
        let (outcome, sandbox) = overtaken(meanwhile);
        let own = sandbox.only_archived();
        let note = "q: the conversation was cleared or replaced in the meantime; saved as a separate conversation: ";
        outcome.exit(0).stdout("late\n").stderr_contains(note);
        outcome.stderr_contains(&own).stderr_has_lines(1);
        sandbox.expect_texts(&own, &["slow", "late"]);
        // What was cleared must not come back.
        if current.is_empty() {
            sandbox.expect_files(&[own]);
        } else {
            sandbox.expect_texts("current.json", current);
        }
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs LD_PRELOAD")]
fn without_the_lock_an_exchange_is_saved_on_its_own_after_five_seconds() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server).env("Q_EXPIRE", "never");
    sandbox.write_linked("current.json", ARCHIVED, &stored(&["one", "1"]));
    let before = sandbox.read_bytes("current.json");
    // A file in place of a link is read where it is.
    let slot = "current-tty1.json";
    sandbox.write_session(slot, &idle_for(HOUR, &["one", "1"]));
    let lock = hold_the_lock(&sandbox);
    // A file elsewhere has its directory locked.
    let elsewhere = Sandbox::new().server_env(&server);
    elsewhere.write_home("talk.json", idle_for(HOUR, &["one", "1"]).to_string());
    let home = snapshot(elsewhere.home());
    let directory = lock_directory(&elsewhere.home());
    let library = Sandbox::new();
    let Some(clock) = fast_clock(&library) else {
        return;
    };
    let runs = [
        sandbox.q(&["-f", "two"]),
        sandbox.q(&["--again", "two"]),
        sandbox.q(&["two"]),
        sandbox.q(&["-f", "two"]).env("Q_SESSION", "tty1"),
        elsewhere.q(&["-s", "talk.json", "two"]),
    ];
    for running in runs.map(|q| q.env("LD_PRELOAD", &clock).spawn()) {
        let outcome = running.wait();
        let note = "q: another q holds the lock; saved as a separate conversation: ";
        outcome.exit(0).stdout("answer\n");
        outcome.stderr_contains(note).stderr_contains("session_");
        let has_waited = outcome.elapsed() * FASTER >= Duration::from_secs(5);
        outcome.check(has_waited, "expected the timeout of five seconds");
    }
    drop((lock, directory));
    home.expect_unchanged();
    elsewhere.expect_texts(&elsewhere.only_archived(), &["two", "answer"]);
    sandbox.expect_bytes("current.json", before);
    assert!(!sandbox.sessions().join(slot).is_symlink());
    let archived = sandbox.archived();
    assert_eq!((archived.len(), sandbox.session_files().len()), (4, 6));
    for name in archived {
        sandbox.expect_texts(&name, &["two", "answer"]);
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs LD_PRELOAD")]
fn a_question_is_sent_without_waiting_for_the_lock() {
    let library = Sandbox::new();
    let Some(clock) = fast_clock(&library) else {
        return;
    };
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let server = Server::openai("answer");
    let held = idle_for(HOUR, &["one", "1"]);
    for (args, files, attempts) in [
        (&["hi"][..], &[][..], 0),
        (&["-f", "hi"], &[], 0),
        (&["-ff", "hi"], &[], 0),
        (&["-f", "--no-save", "hi"], &[], 0),
        (&["-f", "--dry-run", "hi"], &[], 0),
        (&["-s", "work", "hi"], &[], 0),
        (&["-s", "work", "hi"], &["work.json"], 0),
        (&["--again", "-s", "work"], &["work.json"], 0),
        (&["-s", "talk.json", "hi"], &[], 0),
        // The file gets an id, if that can be done at once.
        (&["hi"], &["current.json"], 1),
        (&["-f", "hi"], &["current.json"], 1),
        (&["-f", "--no-save", "hi"], &["current.json"], 1),
        (&["--again"], &["current.json"], 1),
    ] {
        let _case = case((args, files));
        let sandbox = Sandbox::new().server_env(&server);
        for name in files {
            sandbox.write_session(name, &held);
        }
        let _lock = hold_the_lock(&sandbox);
        let trace =
            "exec strace -f -o trace -e trace=flock,connect -E LD_PRELOAD=\"$CLOCK\" q \"$@\"";
        let q = sandbox.shell(trace).env("CLOCK", &clock);
        let outcome = q.arg("sh").args(args).run();
        outcome.exit(0);
        let trace = fs::read_to_string(sandbox.home().join("trace")).expect("a trace");
        let before = trace.lines().take_while(|line| !line.contains("AF_INET"));
        let tried = before.filter(|line| line.contains("flock(")).count();
        outcome.check(tried <= attempts, &format!("{tried} attempts to lock"));
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs LD_PRELOAD")]
fn a_lock_that_the_system_never_answers_costs_five_seconds_and_no_answer() {
    let library = Sandbox::new();
    let (Some(clock), Some(layer)) = (fast_clock(&library), layer(&library)) else {
        return;
    };
    // A network file system without a lock server does this, although it is told not to wait.
    let preloaded = format!("{} {}", clock.display(), layer.display());
    let server = Server::openai("answer");
    let why = "the file system does not answer a request for a lock";
    let held = stored(&["one", "1"]);
    for (args, is_link) in [
        (&["new"][..], true),
        (&["-f", "new"], true),
        (&["-f", "new"], false),
        (&["-s", "work", "new"], true),
        (&["-s", "talk.json", "new"], true),
    ] {
        let _case = case((args, is_link));
        let sandbox = Sandbox::new().server_env(&server).env("Q_EXPIRE", "never");
        if is_link {
            sandbox.write_linked("current.json", ARCHIVED, &held);
        } else {
            sandbox.write_session("current.json", &held);
        }
        let before = sandbox.read_bytes("current.json");
        let q = sandbox.q(args).env("LD_PRELOAD", &preloaded);
        let outcome = q.env("LAYER", "hang").run();
        let note = format!("q: {why}; saved as a separate conversation: ");
        outcome.exit(0).stdout("answer\n").stderr_contains(&note);
        outcome.stderr_has_lines(1);
        sandbox.expect_bytes("current.json", &before);
        let mut own = sandbox.archived();
        own.retain(|name| name != ARCHIVED);
        assert_eq!(own.len(), 1);
        sandbox.expect_texts(&own[0], &["new", "answer"]);
    }
    for args in [
        &["--undo"][..],
        &["--clear"],
        &["--clear", "--all", "--yes"],
        &["--copy", "branch"],
    ] {
        let _case = case(args);
        let sandbox = Sandbox::new();
        sandbox.write_linked("current.json", ARCHIVED, &held);
        let state = snapshot(sandbox.state());
        let q = sandbox.q(args).env("LD_PRELOAD", &preloaded);
        q.env("LAYER", "hang").run().exit(1).stderr_contains(why);
        state.expect_unchanged();
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "it needs LD_PRELOAD")]
fn a_signal_ends_the_wait_for_a_lock_that_is_never_answered() {
    let library = Sandbox::new();
    let Some(layer) = layer(&library) else {
        return;
    };
    let gate = Gate::new();
    let held = gate.clone();
    let server = Server::start(move |_, _| {
        let begun = Reply::sse([word("begun ")]).wait_for(&held);
        begun.piece(word("never"))
    });
    let sandbox = Sandbox::new().server_env(&server);
    let q = sandbox.q(&["hi"]).env("LD_PRELOAD", &layer);
    let mut running = q.env("LAYER", "hang").spawn();
    running.read_stdout_until("begun ");
    running.signal(libc::SIGTERM);
    let outcome = running.wait();
    outcome.killed_by(libc::SIGTERM);
    outcome.stderr_contains("the file system does not answer a request for a lock");
    sandbox.expect_texts(&sandbox.only_archived(), &["hi", "begun "]);
}

#[test]
fn a_failed_lock_is_noted_with_its_reason_and_an_interrupted_one_is_retried() {
    if lacks("strace", "strace -o /dev/null true") {
        return;
    }
    let server = Server::openai("answer");
    for (fault, note) in [
        ("EINTR:when=1..3", ""),
        ("ENOLCK", "q: this file system has no locks; "),
        ("EOPNOTSUPP", "q: this file system has no locks; "),
        ("EIO", "q: cannot lock <sessions>: Input/output error"),
        ("EBADF", "q: cannot lock <sessions>: Bad file descriptor"),
    ] {
        let _case = case(fault);
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.write_linked("current.json", ARCHIVED, &idle_for(HOUR, &["one", "1"]));
        let inject = format!("exec strace -f -o trace -e inject=flock:error={fault} q -f two");
        let outcome = sandbox.shell(&inject).run();
        outcome.exit(0).stdout("answer\n");
        if note.is_empty() {
            outcome.success();
            sandbox.expect_texts(ARCHIVED, &["one", "1", "two", "answer"]);
            continue;
        }
        let place = sandbox.sessions().display().to_string();
        outcome.stderr_contains(&note.replace("<sessions>", &place));
        outcome.stderr_contains("; saved as a separate conversation: ");
        sandbox.expect_texts(ARCHIVED, &["one", "1"]);
    }
}

#[test]
fn the_newest_backup_has_the_highest_number_though_another_was_removed() {
    let sandbox = Sandbox::new();
    let said = &["one", "1", "two", "2", "three", "3", "four", "4"];
    sandbox.write_linked("current.json", ARCHIVED, &stored(said));
    for _ in 0..2 {
        sandbox.q(&["--undo"]).run().success();
    }
    sandbox.expect_texts(EARLIER, said);
    fs::remove_file(sandbox.sessions().join(EARLIER)).expect("a backup");
    sandbox.q(&["--undo"]).run().success();
    assert!(!sandbox.sessions().join(EARLIER).exists());
    sandbox.expect_texts(&format!("{ID}~2.json"), &said[..6]);
    sandbox.expect_texts(&format!("{ID}~3.json"), &said[..4]);
}

#[test]
fn an_exchange_waits_for_a_lock_that_is_released_in_time() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    let lock = hold_the_lock(&sandbox);
    let mut running = sandbox.q(&["-s", "work", "one"]).spawn();
    // The complete answer is printed before it is saved.
    running.read_stdout_until("answer\n");
    sandbox.expect_no_files();
    drop(lock);
    running.wait().success();
    sandbox.expect_texts("work.json", &["one", "answer"]);
}

#[test]
fn a_follow_up_is_saved_in_its_conversation_whatever_was_asked_meanwhile() {
    for (meanwhile, current, own) in [
        (
            &["new"][..],
            &["new", "answer"][..],
            &["one", "1", "slow", "late"][..],
        ),
        (
            &["-f", "quick"],
            &["quick", "answer", "slow", "late"],
            &["quick", "answer", "slow", "late"],
        ),
    ] {
        let _case = case(meanwhile);
        let (overtaken, sandbox) = overtaken(|sandbox| drop(sandbox.q(meanwhile).run()));
        overtaken.success().stdout("late\n");
        sandbox.expect_texts("current.json", current);
        sandbox.expect_texts(ARCHIVED, own);
    }
}

#[test]
fn a_follow_up_is_saved_in_its_conversation_though_another_has_dropped_its_beginning() {
    let said = &["one", "1", "two", "2"];
    for options in [&["-s", ID][..], &["-f"]] {
        let _case = case(options);
        let meanwhile = |sandbox: &Sandbox| drop(sandbox.q(&["-f", "quick"]).run());
        let slow = Slow {
            options,
            pairs: "20",
            said,
        };
        let (overtaken, sandbox) = slow.overtaken(meanwhile);
        overtaken.success().stdout("late\n");
        let left = &["two", "2", "quick", "answer", "slow", "late"];
        sandbox.expect_texts(ARCHIVED, left);
    }
}

#[test]
fn advice_names_the_conversation_of_a_follow_up_that_is_no_longer_the_current_one() {
    for (meanwhile, option) in [("-n", format!(" -s {ID}")), ("-f", String::new())] {
        let _case = case(meanwhile);
        let slow = Slow {
            options: &["-f", "-x"],
            pairs: "20",
            said: &["one", "1"],
        };
        let (overtaken, _sandbox) =
            slow.overtaken(|sandbox| drop(sandbox.q(&[meanwhile, "quick"]).run()));
        let advice = format!("run q --last{option} to print");
        overtaken.exit(1).stderr_contains(&advice);
    }
}

/// Question and answer of each exchange, sorted.
fn exchanges(texts: &[String]) -> Vec<(String, String)> {
    let mut exchanges: Vec<_> = texts
        .chunks(2)
        .map(|pair| (pair[0].clone(), pair[1].clone()))
        .collect();
    exchanges.sort();
    exchanges
}

fn crowd_exchanges() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for number in 0..CROWD {
        texts.push(format!("question {number}"));
        texts.push(format!("answer to question {number}"));
    }
    exchanges(&texts)
}

/// Asks many questions at once with the same options; no answer comes before all have asked.
fn crowd(sandbox: Sandbox, options: &[&str]) -> (Sandbox, Vec<Outcome>) {
    let gate = Gate::new();
    let held = gate.clone();
    let server = Server::start(move |request, _| {
        held_back(&held, &format!("answer to {}", prompt(request)))
    });
    let sandbox = sandbox.server_env(&server);
    let running: Vec<Running> = (0..CROWD)
        .map(|number| sandbox.q(options).arg(format!("question {number}")).spawn())
        .collect();
    server.wait_for_requests(CROWD);
    gate.open();
    let outcomes = running.into_iter().map(Running::wait).collect();
    (sandbox, outcomes)
}

/// A follow-up, `slow`, whose answer is held back. The others keep two pairs.
struct Slow<'a> {
    options: &'a [&'a str],
    pairs: &'a str,
    /// What the conversation has already.
    said: &'a [&'a str],
}

impl Slow<'_> {
    /// Asks it, and does something else meanwhile.
    fn overtaken(&self, meanwhile: impl FnOnce(&Sandbox)) -> (Outcome, Sandbox) {
        let gate = Gate::new();
        let held = gate.clone();
        let server =
            Server::start(
                move |request, _| match prompt(request).ends_with("Human: slow") {
                    true => held_back(&held, "late"),
                    false => openai_reply(request, "answer"),
                },
            );
        let sandbox = Sandbox::new().server_env(&server);
        let sandbox = sandbox.env("Q_PAIRS", "2").env("Q_EXPIRE", "never");
        sandbox.write_current(&stored(self.said));
        let slow = sandbox.q(self.options).arg("slow");
        let slow = slow.env("Q_PAIRS", self.pairs).spawn();
        server.wait_for_requests(1);
        meanwhile(&sandbox);
        gate.open();
        (slow.wait(), sandbox)
    }
}

/// Asks a follow-up, `slow`, and does something else while its answer is held back; two pairs are kept.
fn overtaken(meanwhile: impl FnOnce(&Sandbox)) -> (Outcome, Sandbox) {
    let slow = Slow {
        options: &["-f"],
        pairs: "2",
        said: &["one", "1"],
    };
    slow.overtaken(meanwhile)
}

#[test]
fn a_system_prompt_does_not_get_into_a_conversation_started_meanwhile() {
    for (option, value) in [("-S", "own"), ("-t", "none")] {
        let gate = Gate::new();
        let held = gate.clone();
        let server = Server::start(move |request, _| match prompt(request) == "slow" {
            true => held_back(&held, "late"),
            false => openai_reply(request, "answer"),
        });
        let sandbox = Sandbox::new().server_env(&server);
        let slow = sandbox.q(&["-f", option, value, "slow"]).spawn();
        server.wait_for_requests(1);
        let plain = sandbox.q(&["-j", "plain"]).run().success().stdout_json();
        gate.open();
        slow.wait().exit(0);
        sandbox.expect_texts("current.json", &["slow", "late"]);
        let plain = format!("{}.json", plain["id"].as_str().expect("an id"));
        sandbox.expect_texts(&plain, &["plain", "answer"]);
        assert_eq!(&sandbox.session(&plain)["system"], &Value::Null);
        let own = sandbox.current();
        assert!(option != "-S" || own["system"] == value);
    }
}
