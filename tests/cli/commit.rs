//! Committing an exchange: what was acknowledged is never lost or torn, whatever else writes or kills.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::fixtures::{
    ARCHIVED, CREATED, DAY, HOUR, LARGEST, age, ahead, case, change_when_created, held_back, hold_the_lock, idle_for,
    openai_reply, prompt, snapshot, texts, with,
};
use crate::sandbox::{Outcome, Q, Running, Sandbox};
use crate::server::{Gate, Server};

/// How many run at once where they are to get into each other's way. Each gives up the lock after five seconds, which
/// more of them need where the disk is slow and the machine busy.
const CROWD: usize = 16;

#[test]
fn follow_ups_at_the_same_time_all_land_in_one_conversation() {
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
fn follow_ups_at_the_same_time_with_nothing_to_follow_begin_one_conversation() {
    let (sandbox, outcomes) = crowd(Sandbox::new().env("Q_PAIRS", "1000"), &["-f"]);
    for outcome in outcomes {
        outcome.exit(0).stderr("q: there is no conversation to continue: this is a new one\n");
    }
    sandbox.expect_files(&["current.json"]);
    assert_eq!(exchanges(&texts(&sandbox.current())), crowd_exchanges());
}

#[test]
fn plain_questions_at_the_same_time_are_a_conversation_each() {
    let (sandbox, outcomes) = crowd(Sandbox::new(), &["-n"]);
    for outcome in outcomes {
        outcome.success();
    }
    let files = sandbox.session_files();
    assert_eq!(files.len(), CROWD);
    let mut created = BTreeSet::new();
    let mut said = Vec::new();
    for name in &files {
        let kept = sandbox.session(name);
        let begun = kept["created"].as_str().unwrap().to_owned();
        assert!(name == "current.json" || name.starts_with(&stamped(&begun)), "{name} was created {begun}");
        created.insert(begun);
        said.extend(texts(&kept));
    }
    assert_eq!(created.len(), CROWD, "two conversations cannot be distinguished");
    assert_eq!(exchanges(&said), crowd_exchanges());
    let current = sandbox.current()["created"].as_str().unwrap().to_owned();
    assert_eq!(Some(&current), created.last(), "the current one is the newest");
}

#[test]
fn a_follow_up_overtaken_by_a_new_question_lands_where_its_conversation_lies() {
    let (overtaken, sandbox) = overtaken("", |sandbox| {
        sandbox.q(&["new"]).run().success();
    });
    overtaken.success().stdout("late\n");
    sandbox.expect_texts("current.json", &["new", "answer"]);
    sandbox.expect_texts(&sandbox.only_archived(), &["one", "1", "slow", "late"]);
}

#[test]
fn a_follow_up_overtaken_twice_finds_its_own_among_those_of_the_same_second() {
    let second = "session_20260102030405-2.json";
    let (overtaken, sandbox) = overtaken("", |sandbox| {
        sandbox.q(&["new"]).run().success();
        // Takes the old one's name, so that only what is in the files distinguishes them.
        assert_eq!(sandbox.only_archived(), ARCHIVED);
        fs::rename(sandbox.sessions().join(ARCHIVED), sandbox.sessions().join(second)).unwrap();
        let other = with(idle_for(HOUR, &["another", "2"]), "created", "2026-01-02T03:04:05.001Z");
        sandbox.write_session(ARCHIVED, &other);
    });
    overtaken.success().stdout("late\n");
    assert_eq!(sandbox.archived(), [second, ARCHIVED]);
    sandbox.expect_texts(ARCHIVED, &["another", "2"]);
    sandbox.expect_texts(second, &["one", "1", "slow", "late"]);
}

#[test]
fn a_follow_up_whose_conversation_was_cleared_meanwhile_is_kept_on_its_own() {
    let clear = |sandbox: &Sandbox| {
        sandbox.q(&["--clear"]).run().success();
    };
    let kept_alone = |overtaken: Outcome, sandbox: &Sandbox| {
        let own = sandbox.only_archived();
        overtaken.exit(0).stdout("late\n").stderr_contains("q: ").stderr_contains("cleared").stderr_contains(&own);
        sandbox.expect_texts(&own, &["slow", "late"]);
        own
    };
    let (outcome, sandbox) = overtaken("", clear);
    let own = kept_alone(outcome, &sandbox);
    // What was cleared must not come back.
    sandbox.expect_files(&[own]);

    let (outcome, sandbox) = overtaken("", |sandbox| {
        clear(sandbox);
        sandbox.q(&["new"]).run().success();
    });
    kept_alone(outcome, &sandbox);
    sandbox.expect_texts("current.json", &["new", "answer"]);
}

#[test]
fn a_follow_up_is_added_to_what_is_there_by_then() {
    let (overtaken, sandbox) = overtaken("2", |sandbox| {
        sandbox.q(&["-f", "quick"]).run().success();
    });
    overtaken.success();
    sandbox.expect_texts("current.json", &["quick", "answer", "slow", "late"]);
    sandbox.expect_files(&["current.json"]);
}

#[test]
fn where_the_lock_cannot_be_had_an_exchange_is_kept_on_its_own_after_five_seconds() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.write_current(&idle_for(HOUR, &["one", "1"]));
    let before = sandbox.read_bytes("current.json");
    let lock = hold_the_lock(&sandbox);
    // A file elsewhere has its folder locked.
    let elsewhere = Sandbox::new().server_env(&server);
    elsewhere.write_home("talk.json", idle_for(HOUR, &["one", "1"]).to_string());
    let home = snapshot(elsewhere.home());
    let folder = fs::File::open(elsewhere.home()).expect("a folder");
    folder.lock().expect("a lock");
    let runs = [sandbox.q(&["-f", "two"]), sandbox.q(&["two"]), elsewhere.q(&["-s", "talk.json", "two"])];
    for running in runs.map(Q::spawn) {
        let outcome = running.wait();
        outcome.exit(0).stdout("answer\n").stderr_contains("q: another q holds the lock").stderr_contains("session_");
        outcome.check(outcome.elapsed().as_secs() >= 5, || "expected five seconds of patience".to_owned());
    }
    drop((lock, folder));
    home.expect_unchanged();
    elsewhere.expect_texts(&elsewhere.only_archived(), &["two", "answer"]);
    sandbox.expect_bytes("current.json", before);
    let archived = sandbox.archived();
    assert_eq!((archived.len(), sandbox.session_files().len()), (2, 3));
    for name in archived {
        sandbox.expect_texts(&name, &["two", "answer"]);
    }
}

#[test]
fn an_exchange_waits_for_a_lock_that_is_given_back_in_time() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    let lock = hold_the_lock(&sandbox);
    let mut running = sandbox.q(&["one"]).spawn();
    // All of the answer is there before it is saved.
    running.read_stdout_until("answer\n");
    sandbox.expect_no_files();
    drop(lock);
    running.wait().success();
    sandbox.expect_texts("current.json", &["one", "answer"]);
}

#[test]
fn what_is_archived_is_named_by_its_beginning_and_never_overwrites() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server).env("Q_KEEP", "never");
    let mut kept = Vec::new();
    for (number, created) in ["05.000", "05.001", "05.999", "06.000"].iter().enumerate() {
        let _case = case(created);
        let old = idle_for(HOUR, &["old", &number.to_string()]);
        sandbox.write_current(&with(old, "created", format!("2026-01-02T05:04:{created}+02:00")));
        kept.push(sandbox.read_bytes("current.json"));
        sandbox.q(&["new"]).run().success();
    }
    let names = ["05.json", "05-2.json", "05-3.json", "06.json"].map(|end| format!("session_202601020304{end}"));
    for (name, bytes) in names.iter().zip(&kept) {
        sandbox.expect_bytes(name, bytes);
    }
    for number in 1..=2 {
        let _case = case(number);
        sandbox.write_bytes("current.json", format!("not JSON {number}"));
        change_when_created(&sandbox.sessions().join("current.json"));
        sandbox.q(&["new"]).run().success();
    }
    sandbox.expect_bytes("session_20260102030405.json.unreadable", b"not JSON 1");
    sandbox.expect_bytes("session_20260102030405-2.json.unreadable", b"not JSON 2");
    assert_eq!(sandbox.session_files().len(), 7);
}

#[test]
fn a_new_conversation_begins_after_the_one_that_it_displaces() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    let displaced = ahead(HOUR);
    sandbox.write_current(&with(idle_for(HOUR, &["one", "1"]), "created", displaced.as_str()));
    sandbox.q(&["two"]).run().success();
    let created = sandbox.current()["created"].as_str().expect("a time").to_owned();
    assert!(created > displaced && created < ahead(HOUR), "{created} and {displaced}");
}

#[test]
fn what_nobody_changed_for_long_is_removed_once_a_day_and_unopened() {
    let server = Server::openai("answer");
    for (keep, left) in [
        ("", &["current.json", "named.json", "session_20260102030405-2.json"][..]),
        (
            "45d",
            &[
                "current-tty1.json",
                "current.json",
                "named.json",
                "session_20260102030405-2.json",
                "session_20260102030405.json",
            ],
        ),
    ] {
        let _case = case(keep);
        let sandbox = Sandbox::new().server_env(&server).env("Q_KEEP", keep);
        // None of them is a conversation: they are not opened.
        let fill = || {
            for (name, days) in [
                ("session_20260102030405.json", 40),
                ("session_20260102030405-2.json", 20),
                ("session_20260102030405.json.unreadable", 50),
                ("current-tty1.json", 40),
                ("named.json", 400),
            ] {
                sandbox.write_bytes(name, "{");
                age(&sandbox.sessions().join(name), days * DAY);
            }
        };
        fill();
        sandbox.q(&["-f", "one"]).run().exit(0);
        sandbox.expect_files(left);
        fill();
        sandbox.q(&["-f", "two"]).run().success();
        assert_eq!(sandbox.session_files().len(), 6, "looked again on the same day");
        for entry in fs::read_dir(sandbox.state().join("q")).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                age(&path, DAY + HOUR);
            }
        }
        sandbox.q(&["-f", "three"]).run().success();
        sandbox.expect_files(left);
    }
}

#[test]
fn however_many_are_archived_a_new_one_pushes_none_out() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    for number in 0..1_500 {
        sandbox.write_session(&format!("session_20260102030405-{number}.json"), &idle_for(HOUR, &["one", "1"]));
    }
    sandbox.write_current(&idle_for(HOUR, &["one", "1"]));
    let before = snapshot(sandbox.sessions());
    sandbox.q(&["two"]).run().success();
    let changes = before.changes();
    assert!(
        changes.len() == 2 && changes[0].starts_with("+ session_") && changes[1] == "~ current.json",
        "{changes:?}"
    );
}

#[test]
fn what_is_archived_now_is_there_afterwards_however_long_it_was_idle() {
    let server = Server::openai("answer");
    for bytes in [idle_for(40 * DAY, &["one", "1"]).to_string(), "not JSON".to_owned()] {
        for args in [&["two"][..], &["-f", "two"]] {
            let _case = case((&bytes, args));
            let sandbox = Sandbox::new().server_env(&server);
            sandbox.write_bytes("current.json", &bytes);
            age(&sandbox.sessions().join("current.json"), 40 * DAY);
            sandbox.q(args).run().exit(0);
            sandbox.expect_bytes(&sandbox.only_archived(), &bytes);
        }
    }
}

#[test]
fn keep_says_whether_what_is_displaced_is_archived_and_for_how_long() {
    let server = Server::openai("answer");
    for (keep, archived) in [("0", &[][..]), ("never", &["session_20250102030405.json", ARCHIVED])] {
        let _case = case(keep);
        let sandbox = Sandbox::new().server_env(&server).env("Q_KEEP", keep);
        for created in ["2025-01-02T03:04:05.000Z", "2026-01-02T03:04:05.000Z"] {
            sandbox.write_current(&with(idle_for(HOUR, &["one", "1"]), "created", created));
            sandbox.q(&["two"]).run().success();
            sandbox.expect_texts("current.json", &["two", "answer"]);
            for name in sandbox.archived() {
                age(&sandbox.sessions().join(name), 4000 * DAY);
            }
            // As on another day.
            let _ = fs::remove_file(sandbox.state().join("q/swept"));
        }
        assert_eq!(sandbox.archived(), archived);
    }
}

#[test]
fn a_conversation_that_would_grow_too_large_is_archived_whole_and_continues() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    let long = "x".repeat(990_000);
    let old = idle_for(HOUR, &[long.as_str(); 10]);
    sandbox.write_current(&old);
    let before = sandbox.read_bytes("current.json");
    assert!(before.len() < LARGEST, "{} bytes", before.len());
    let more = "y".repeat(200_000);
    let outcome = sandbox.q(&["-f", "--messages", "0", "two"]).stdin(&more).run();
    let archived = sandbox.only_archived();
    outcome.exit(0).stdout("answer\n").stderr_contains("q: the conversation would").stderr_contains(&archived);
    sandbox.expect_bytes(&archived, &before);
    let continued = sandbox.current();
    let kept = texts(&continued);
    let bytes = sandbox.read_bytes("current.json").len();
    outcome.check(bytes <= LARGEST, || format!("expected at most {LARGEST} bytes, not {bytes}"));
    assert!(kept.len() > 2 && kept.len().is_multiple_of(2) && kept.len() < 12, "{} messages", kept.len());
    let ends = kept[0] == long && kept[kept.len() - 2].ends_with("two") && kept[kept.len() - 1] == "answer";
    outcome.check(ends, || "expected old messages first and the new exchange last".to_owned());
    assert_ne!(continued["created"], old["created"], "the two could not be distinguished");
    sandbox.q(&["-f", "--messages", "2", "three"]).run().success();
    assert_eq!(texts(&sandbox.current()).len(), kept.len() + 2);
    assert_eq!(sandbox.session_files().len(), 2);
}

#[test]
fn an_exchange_too_large_by_itself_is_answered_and_not_saved() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.write_current(&idle_for(HOUR, &["one", "1"]));
    let before = snapshot(sandbox.root());
    // In the file each of them takes two bytes.
    let input = "\"".repeat(6_000_000);
    for option in ["-f", "--no-stream"] {
        let outcome = sandbox.q(&[option, "two"]).stdin(&input).run();
        outcome.exit(0).stdout("answer\n").stderr_contains("q: ").stderr_contains("not saved");
        before.expect_unchanged();
    }
}

#[test]
fn what_a_killed_run_left_behind_is_gone_after_the_next_save() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.write_current(&idle_for(HOUR, &["one", "1"]));
    // Half a conversation that was about to take the current one's place.
    sandbox.write_bytes(".tmp", "{\"version\":1,\"provider\":");
    // Of another run that never had the lock, longer ago than any could still be at work.
    sandbox.write_bytes(".tmp-4711", "{");
    age(&sandbox.sessions().join(".tmp-4711"), 2 * DAY);
    sandbox.q(&["-f", "two"]).run().success();
    sandbox.expect_files(&["current.json"]);
    sandbox.expect_texts("current.json", &["one", "1", "two", "answer"]);
}

#[test]
fn what_a_killed_run_had_archived_already_is_not_kept_twice() {
    let server = Server::openai("answer");
    for (questions, kept) in
        [(&[&["three"][..]][..], &["one", "1"][..]), (&[&["-f", "two"], &["three"]], &["one", "1", "two", "answer"])]
    {
        let _case = case(questions);
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.write_current(&with(idle_for(HOUR, &["one", "1"]), "created", CREATED));
        // So it is between archiving the old conversation and putting the new one in its place.
        fs::hard_link(sandbox.sessions().join("current.json"), sandbox.sessions().join(ARCHIVED)).unwrap();
        for question in questions {
            sandbox.q(question).run().success();
        }
        sandbox.expect_files(&["current.json", ARCHIVED]);
        sandbox.expect_texts(ARCHIVED, kept);
    }
}

#[test]
fn runs_that_are_killed_at_any_moment_lose_and_tear_nothing() {
    const ROUNDS: u32 = 40;
    let server = echo(None);
    let sandbox = Sandbox::new().server_env(&server).env("Q_PAIRS", "1000");
    let undisturbed = sandbox.q(&["question the first"]).run();
    undisturbed.success();
    let mut acknowledged = vec!["question the first".to_owned()];
    for round in 0..ROUNDS {
        let question = format!("question {round}");
        let follow = if round % 4 == 0 { "-n" } else { "-f" };
        let mut running = sandbox.q(&[follow, "--messages", "0", &question]).spawn();
        // Spread over the whole of a run, with more of them towards its end, where files are written.
        std::thread::sleep(undisturbed.elapsed().mul_f64(0.5 + f64::from(round) / f64::from(ROUNDS)));
        running.signal(libc::SIGKILL);
        let outcome = running.wait();
        if outcome.status.success() {
            outcome.success();
            acknowledged.push(question);
        } else {
            outcome.killed_by(libc::SIGKILL);
        }
        // Each file that a user would look at is whole.
        let kept: BTreeSet<String> = sandbox
            .session_files()
            .iter()
            .filter(|name| name.ends_with(".json"))
            .flat_map(|name| whole_exchanges(&sandbox.session(name)))
            .collect();
        for question in &acknowledged {
            assert!(kept.contains(question), "round {round}: {question} is lost");
        }
    }
    sandbox.q(&["-f", "question the last"]).run().success();
    let names = sandbox.session_files();
    assert!(names.iter().all(|name| name.ends_with(".json")), "{names:?}");
}

/// The questions of a conversation, each of which has its own answer.
#[track_caller]
fn whole_exchanges(conversation: &Value) -> Vec<String> {
    let kept = texts(conversation);
    exchanges(&kept)
        .into_iter()
        .map(|(question, answer)| {
            assert_eq!(answer, format!("answer to {question}"));
            question
        })
        .collect()
}

/// Question and answer of each exchange, sorted.
fn exchanges(texts: &[String]) -> Vec<(String, String)> {
    let mut exchanges: Vec<_> = texts
        .chunks(2)
        .map(|pair| (pair[0].clone(), pair.get(1).expect("an answer to each question").clone()))
        .collect();
    exchanges.sort();
    exchanges
}

fn crowd_exchanges() -> Vec<(String, String)> {
    let texts: Vec<String> =
        (0..CROWD).flat_map(|number| [format!("question {number}"), format!("answer to question {number}")]).collect();
    exchanges(&texts)
}

/// Asks many questions at once with the same options; nobody is answered before all have asked.
fn crowd(sandbox: Sandbox, options: &[&str]) -> (Sandbox, Vec<Outcome>) {
    let gate = Gate::new();
    let server = echo(Some(gate.clone()));
    let sandbox = sandbox.server_env(&server);
    let running: Vec<Running> =
        (0..CROWD).map(|number| sandbox.q(options).arg(format!("question {number}")).spawn()).collect();
    server.wait_for_requests(CROWD);
    gate.open();
    let outcomes = running.into_iter().map(Running::wait).collect();
    (sandbox, outcomes)
}

/// Answers each question with itself, once the gate is open.
fn echo(gate: Option<Gate>) -> Server {
    Server::start(move |request, _| {
        let answer = format!("answer to {}", prompt(request));
        match &gate {
            Some(gate) => held_back(gate, &answer),
            None => openai_reply(request, &answer),
        }
    })
}

/// The name under which a conversation that was started then is archived, without its end.
fn stamped(created: &str) -> String {
    let digits: String = created.chars().filter(char::is_ascii_digit).take(14).collect();
    format!("session_{digits}")
}

/// What becomes of a follow-up, `slow`, if something else happens while its answer is held back.
fn overtaken(pairs: &str, meanwhile: impl FnOnce(&Sandbox)) -> (Outcome, Sandbox) {
    let gate = Gate::new();
    let held = gate.clone();
    let server = Server::start(move |request, _| match prompt(request).ends_with("Human: slow") {
        true => held_back(&held, "late"),
        false => openai_reply(request, "answer"),
    });
    let sandbox = Sandbox::new().server_env(&server).env("Q_PAIRS", pairs);
    sandbox.write_current(&with(idle_for(HOUR, &["one", "1"]), "created", CREATED));
    let slow = sandbox.q(&["-f", "slow"]).spawn();
    server.wait_for_requests(1);
    meanwhile(&sandbox);
    gate.open();
    (slow.wait(), sandbox)
}
