//! Conversations that are meant by a name: `-s NAME`, `-s FILE.json`, and the slots of `Q_SESSION`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::fixtures::{
    ANTHROPIC_MODEL, ARCHIVED, CREATED, DAY, HOUR, LARGEST, STORED_MODEL, Snapshot, age, ahead, case, failure,
    in_two_parts, mode, numbered, openai_reply, prompt, set_mode, snapshot, stored, texts, with,
};
use crate::pty::{Terminal, WIDE};
use crate::sandbox::{Outcome, Sandbox};
use crate::server::{Gate, Server};

/// What a stored conversation of `one` and `two` becomes before a question.
const HISTORY: &str = "Previous conversation:\nHuman: one\n\nAssistant: two\n\nHuman: ";

#[test]
fn a_name_starts_a_conversation_and_continues_it() {
    let (server, sandbox) = numbered();
    sandbox.q(&["-s", "work", "one"]).run().success().stdout("answer 0\n");
    sandbox.q(&["current"]).run().success();
    sandbox.q(&["--session=work", "two"]).run().success().stdout("answer 2\n");

    assert_eq!(prompt(&server.requests()[0]), "one");
    assert_eq!(
        prompt(&server.requests()[2]),
        "Previous conversation:\nHuman: one\n\nAssistant: answer 0\n\nHuman: two"
    );
    sandbox.expect_files(&["current.json", "work.json"]);
    sandbox.expect_texts("work.json", &["one", "answer 0", "two", "answer 2"]);
    sandbox.expect_texts("current.json", &["current", "answer 1"]);
    assert_eq!(mode(&sandbox.sessions().join("work.json")), 0o600);
}

#[test]
fn a_pipeline_by_name_sees_what_its_first_half_has_saved() {
    let (server, sandbox) = numbered();
    sandbox.shell("q -s work one | q -s work two").run().success().stdout("answer 1\n");
    let second = "Previous conversation:\nHuman: one\n\nAssistant: answer 0\n\nHuman: \
                  <context>\nanswer 0\n</context>\n\ntwo";
    assert_eq!(prompt(&server.requests()[1]), second);
}

#[test]
fn a_conversation_by_name_or_path_never_expires_and_keeps_all_pairs() {
    let numbers: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    let long: Vec<&str> = numbers.iter().map(String::as_str).collect();
    let (server, sandbox) = numbered();
    let sandbox = sandbox.env("Q_EXPIRE", "1s").env("Q_PAIRS", "1");
    sandbox.write_session("work.json", &stored(&long));
    sandbox.write_home("talk.json", stored(&long).to_string());
    for name in ["work", "talk.json"] {
        let _case = case(name);
        sandbox.q(&["-s", name, "more"]).run().success();
        let sent = prompt(&server.last_request());
        assert!(sent.starts_with("Previous conversation:\nHuman: 40\n\nAssistant: 41\n"), "{sent}");
    }
    sandbox.expect_files(&["work.json"]);
    for (name, conversation) in [("work", sandbox.session("work.json")), ("talk", sandbox.home_session("talk.json"))] {
        let _case = case(name);
        assert_eq!(texts(&conversation).len(), 52);
        assert_eq!(texts(&conversation)[..50], long);
        assert_eq!(conversation["created"], CREATED);
    }
}

#[test]
fn a_named_conversation_keeps_its_own_provider_and_model() {
    let (openai, claude) = (Server::openai("from openai"), Server::anthropic("from anthropic"));
    for (variables, config) in [
        (&[][..], ""),
        (&[("Q_PROVIDER", "openai"), ("Q_MODEL", "named")], ""),
        (&[("Q_MODEL", "named")], ""),
        (&[], "provider = \"openai\"\nmodel = \"named\""),
        (&[], "[providers.anthropic]\nmodel = \"named\""),
    ] {
        let _case = case((variables, config));
        let mut sandbox = Sandbox::new().server_env(&openai).anthropic_env(&claude);
        for (key, value) in variables {
            sandbox = sandbox.env(key, value);
        }
        sandbox.config(config);
        sandbox.write_session("work.json", &with(stored(&["one", "two"]), "provider", "anthropic"));
        sandbox.q(&["-s", "work", "three"]).run().success().stdout("from anthropic\n");
        let written = sandbox.session("work.json");
        assert_eq!((&written["provider"], &written["model"]), (&json!("anthropic"), &json!(STORED_MODEL)));
        assert_eq!(claude.last_request().json()["model"], STORED_MODEL);
    }
    claude.expect_requests(5);
    openai.expect_requests(0);
}

#[test]
fn another_model_or_provider_takes_the_history_over_and_stays() {
    let (openai, claude) = (Server::openai("from openai"), Server::anthropic("from anthropic"));
    for (options, provider, model) in [
        (&["-m", "other"][..], "openai", "other"),
        (&["-p", "openai"], "openai", STORED_MODEL),
        (&["-p", "anthropic"], "anthropic", ANTHROPIC_MODEL),
        (&["-p", "anthropic", "-m", "other"], "anthropic", "other"),
    ] {
        let _case = case(options);
        let sandbox = Sandbox::new().server_env(&openai).anthropic_env(&claude);
        sandbox.write_session("work.json", &stored(&["one", "two"]));
        let server = if provider == "openai" { &openai } else { &claude };
        let before = server.requests().len();
        sandbox.q(&["-s", "work"]).args(options).arg("three").run().success();
        sandbox.q(&["-s", "work", "four"]).run().success();
        server.expect_requests(before + 2);
        for request in &server.requests()[before..] {
            assert_eq!(request.json()["model"], model);
            let sent = prompt(request);
            assert!(sent.starts_with(HISTORY), "{sent}");
        }
        let written = sandbox.session("work.json");
        assert_eq!((&written["provider"], &written["model"]), (&json!(provider), &json!(model)));
        assert_eq!(texts(&written).len(), 6);
        sandbox.expect_files(&["work.json"]);
    }
}

#[test]
fn a_conversation_whose_provider_is_gone_names_those_that_are_there() {
    let (server, sandbox) = numbered();
    sandbox.config("[providers.desk]\napi = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\n");
    sandbox.write_session("work.json", &with(stored(&["one", "two"]), "provider", "cellar"));
    let before = snapshot(sandbox.sessions());
    for ask in [&["three"][..], &["--again"]] {
        let outcome = sandbox.q(&["-s", "work"]).args(ask).run();
        outcome.exit(2).stdout_is_empty().stderr_contains_all(&["cellar", "desk", "openai", "ollama", "-p"]);
    }
    server.expect_requests(0);
    before.expect_unchanged();

    sandbox.q(&["-s", "work", "-p", "openai", "three"]).run().success();
    assert_eq!(prompt(&server.request()), format!("{HISTORY}three"));
    assert_eq!(sandbox.session("work.json")["provider"], "openai");
    sandbox.q(&["-s", "work", "four"]).run().success();
}

#[test]
fn a_question_that_fails_or_leaves_no_trace_changes_no_named_file() {
    let server = Server::start(|request, _| match prompt(request).contains("fail") {
        true => failure(400, "no"),
        false => openai_reply(request, "fine"),
    });
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.write_session("work.json", &stored(&["one", "two"]));
    sandbox.write_home("talk.json", stored(&["one", "two"]).to_string());
    let before = snapshot(sandbox.root());
    for name in ["work", "new", "talk.json", "new.json"] {
        sandbox.q(&["-s", name, "fail"]).run().exit(1);
        sandbox.q(&["-s", name, "--no-save", "answer"]).run().success().stdout("fine\n");
    }
    server.expect_requests(8);
    before.expect_unchanged();
}

const NO_NAMES: &[&str] = &[
    ".",
    "..",
    ".hidden",
    "../work",
    "../../work",
    "/tmp/work",
    "a/b",
    "a/",
    "a b",
    "a\nb",
    "a\tb",
    "ä",
    "a\\b",
    "a:b",
    "~",
    "*",
    "current",
    "current-1",
    "currently",
];

#[test]
fn what_is_no_name_is_refused_before_input_and_request() {
    let (server, sandbox) = numbered();
    let long = "x".repeat(101);
    for name in NO_NAMES.iter().chain([&"", &long.as_str()]) {
        for action in [&["--history"][..], &["--last"], &["--undo"], &["--clear"], &[]] {
            // An open standard input shows that none is waited for.
            let outcome = sandbox.q(&["-s", name]).args(action).stdin_open().run();
            outcome.exit(2).stdout_is_empty().stderr_contains("q: ");
        }
    }
    // A list shows these, so the error says what names them.
    for (name, advice) in [
        ("current", "q: without -s, q uses the current conversation"),
        ("current-tty1", "q: Q_SESSION=tty1 in place of -s names this conversation"),
    ] {
        sandbox.q(&["-s", name, "--last"]).run().exit(2).stdout_is_empty().stderr_contains(advice);
    }
    server.expect_requests(0);
    snapshot(sandbox.state()).expect_empty();
}

#[test]
fn every_kind_of_name_stays_in_the_folder() {
    let (_server, sandbox) = numbered();
    let long = "x".repeat(100);
    let names = ["a", "A-Z_0.9", "-x", "a..b", "a.json.txt", "session", &long];
    for name in names {
        sandbox.q(&["-s", name, "one"]).run().success();
        sandbox.q(&["-s", name, "two"]).run().success();
    }
    let mut files = names.map(|name| format!("{name}.json"));
    files.sort();
    sandbox.expect_files(&files);
    for file in &files {
        let _case = case(file);
        assert_eq!(texts(&sandbox.session(file)).len(), 4);
    }
    snapshot(sandbox.home()).expect_empty();
}

#[test]
fn one_that_was_archived_is_continued_by_its_name_but_none_is_started_so() {
    let (server, sandbox) = numbered();
    let name = ARCHIVED.strip_suffix(".json").unwrap();
    sandbox.q(&["-s", name, "one"]).run().exit(2).stdout_is_empty().stderr_contains(name);
    server.expect_requests(0);
    sandbox.expect_no_files();

    sandbox.write_session(ARCHIVED, &stored(&["one", "two"]));
    sandbox.q(&["-s", name, "three"]).run().success();
    assert_eq!(prompt(&server.request()), format!("{HISTORY}three"));
    sandbox.expect_files(&[ARCHIVED]);
    sandbox.expect_texts(ARCHIVED, &["one", "two", "three", "answer 0"]);

    // Its id stays its own; the name may become another one's.
    let last = sandbox.q(&["--last", "-j", "-s", name]).run().success().stdout_json();
    assert_eq!(last["id"], "session_20260102030405678", "{last}");
}

#[test]
fn an_archived_conversation_that_is_removed_meanwhile_does_not_come_back_without_its_beginning() {
    let gate = Gate::new();
    let server = Server::always(in_two_parts("an", &gate, "swer"));
    let sandbox = Sandbox::new().server_env(&server);
    sandbox.write_session(ARCHIVED, &stored(&["one", "two"]));
    let mut asked = sandbox.q(&["-s", ARCHIVED.trim_end_matches(".json"), "three"]).spawn();
    asked.read_stdout_until("an");
    fs::remove_file(sandbox.sessions().join(ARCHIVED)).unwrap();
    gate.open();
    asked.wait().exit(0).stderr_contains("the conversation was cleared or displaced in the meantime");
}

#[test]
fn a_file_elsewhere_may_have_any_name_and_any_way_to_it() {
    let (server, sandbox) = numbered();
    fs::create_dir(sandbox.home().join("talks")).unwrap();
    let absolute = sandbox.home().join("absolute.json");
    for path in [
        "talk.json",
        "./talks/../dotted.json",
        "talks/a talk.json",
        "current.json",
        ".json",
        "session_notes.json",
        absolute.to_str().unwrap(),
    ] {
        let _case = case(path);
        sandbox.q(&["-s", path, "one"]).run().success();
        sandbox.q(&["-s", path, "two"]).run().success();
        assert_eq!(texts(&sandbox.home_session(path)).len(), 4);
        assert_eq!(mode(&sandbox.home().join(path)), 0o600);
    }
    server.expect_requests(14);
    sandbox.expect_no_files();
}

#[test]
fn a_folder_that_is_not_there_is_not_made() {
    let (server, sandbox) = numbered();
    for action in [&["--history"][..], &["--last"], &["--undo"], &["--clear"], &[]] {
        let outcome = sandbox.q(&["-s", "missing/talk.json"]).args(action).stdin_open().run();
        outcome.exit(2).stdout_is_empty().stderr_contains("missing/talk.json");
    }
    server.expect_requests(0);
    snapshot(sandbox.home()).expect_empty();
}

#[test]
fn a_link_stays_and_the_file_behind_it_is_rewritten() {
    let (server, sandbox) = numbered();
    let (real, near, far) = (sandbox.root().join("real.json"), "near.json", "far.json");
    fs::write(&real, stored(&["one", "two"]).to_string()).unwrap();
    symlink("../real.json", sandbox.home().join(near)).unwrap();
    symlink(near, sandbox.home().join(far)).unwrap();
    sandbox.q(&["-s", far, "three"]).run().success();
    sandbox.q(&["--undo", "-s", near]).run().success().stdout("three\n");
    sandbox.q(&["-s", near, "four"]).run().success();
    server.expect_requests(2);
    assert_eq!(fs::read_link(sandbox.home().join(near)).unwrap(), Path::new("../real.json"));
    assert_eq!(fs::read_link(sandbox.home().join(far)).unwrap(), Path::new(near));
    assert_eq!(texts(&sandbox.home_session("../real.json")), ["one", "two", "four", "answer 1"]);
    assert_eq!(fs::read_dir(sandbox.home()).unwrap().count(), 2, "nothing is left behind");
}

#[test]
fn a_link_whose_file_was_emptied_leads_to_a_new_one() {
    let (_server, sandbox) = numbered();
    let real = sandbox.root().join("real.json");
    symlink("../real.json", sandbox.home().join("link.json")).unwrap();
    for emptied_by in ["--undo", "--clear"] {
        let _case = case(emptied_by);
        fs::write(&real, stored(&["one", "two"]).to_string()).unwrap();
        let outcome = sandbox.q(&[emptied_by, "-s", "link.json"]).run();
        outcome.exit(0).check(!real.exists(), || format!("expected no file {}", real.display()));
        let outcome = sandbox.q(&["-s", "link.json", "again"]).run();
        outcome.success().check(real.is_file(), || format!("expected the file {}", real.display()));
    }
}

#[test]
fn a_file_keeps_its_mode_whatever_the_umask() {
    let (_server, sandbox) = numbered();
    let file = sandbox.home().join("talk.json");
    for (given, umask) in [(0o600, "000"), (0o640, "022"), (0o644, "022"), (0o644, "077"), (0o664, "022")] {
        for script in ["q -s talk.json more", "q --undo -s talk.json"] {
            fs::write(&file, stored(&["one", "two", "three", "four"]).to_string()).unwrap();
            set_mode(&file, given);
            let outcome = sandbox.shell(&format!("umask {umask}; {script}")).run();
            outcome.success().check(mode(&file) == given, || format!("expected {given:o}, not {:o}", mode(&file)));
        }
    }
}

/// Contents that are no conversation, each with a word for it.
fn no_conversations() -> Vec<(&'static str, String)> {
    let valid = stored(&["one", "two"]).to_string();
    let wrong = |field: &str, value: Value| with(stored(&["one", "two"]), field, value).to_string();
    let message = |message: Value| wrong("messages", json!([message]));
    vec![
        ("empty", String::new()),
        ("text", "hello\n".to_owned()),
        ("half", valid[..valid.len() / 2].to_owned()),
        ("more", format!("{valid}x")),
        ("a list", "[]".to_owned()),
        ("another version", wrong("version", json!(2))),
        ("no messages", wrong("messages", Value::Null)),
        ("no time", wrong("created", json!("yesterday"))),
        ("a role of another kind", message(json!({"role": "system", "content": "x"}))),
        ("no role", message(json!({"content": "x"}))),
        ("no text", message(json!({"role": "user"}))),
        ("parts", message(json!({"role": "user", "content": [{"text": "x"}]}))),
        ("too large", format!("{valid}{}", " ".repeat(LARGEST + 1 - valid.len()))),
    ]
}

#[test]
fn a_file_that_is_no_conversation_is_refused_and_untouched() {
    let (server, sandbox) = numbered();
    for (what, text) in no_conversations() {
        let _case = case(what);
        sandbox.write_home("talk.json", &text);
        sandbox.write_bytes("work.json", &text);
        let before = [snapshot(sandbox.home()), snapshot(sandbox.sessions())];
        for typed in ["--history", "--last", "--undo", "--clear", "a question"] {
            let outcome = sandbox.q(&["-s", "talk.json", typed]).run();
            outcome.exit(2).stdout_is_empty().stderr_contains("talk.json");
        }
        let outcome = sandbox.q(&["--history", "--json", "-s", "talk.json"]).run();
        outcome.exit(2).stdout_contains("{\"error\"").stderr_contains("talk.json");
        for action in ["--history", "--last", "--undo"] {
            sandbox.q(&[action, "-s", "work"]).run().exit(1).stdout_is_empty().stderr_contains("work.json");
        }
        sandbox.q(&["-s", "work", "x"]).run().exit(2).stdout_is_empty().stderr_contains("work.json");
        before.iter().for_each(Snapshot::expect_unchanged);
    }
    server.expect_requests(0);
}

#[test]
fn a_time_at_the_end_of_the_calendar_is_read_or_refused() {
    let (_server, sandbox) = numbered();
    for time in ["9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00", "9999-12-31T23:59:59.999Z"] {
        for key in ["created", "updated"] {
            let _case = case((key, time));
            sandbox.write_home("talk.json", with(stored(&["one", "two"]), key, time).to_string());
            let before = snapshot(sandbox.home());
            let asked = sandbox.q(&["-s", "talk.json", "three"]).run();
            if asked.status.code() != Some(0) {
                asked.exit(2);
                before.expect_unchanged();
                continue;
            }
            // What q has written it can read.
            sandbox.q(&["--last", "-s", "talk.json"]).run().success();
        }
    }
}

#[test]
fn what_is_no_regular_file_is_refused_and_left_alone() {
    let (server, sandbox) = numbered();
    let zoo = "mkdir folder.json; mkfifo pipe.json; ln -s loop.json loop.json; ln -s /dev/zero device.json";
    sandbox.shell(zoo).run().success();
    fs::create_dir_all(sandbox.sessions()).unwrap();
    sandbox.shell("cp -a *.json ../state/q/sessions/").run().success();
    let before = [snapshot(sandbox.home()), snapshot(sandbox.sessions())];
    for name in ["folder", "pipe", "loop", "device"] {
        let file = format!("{name}.json");
        for action in ["--history", "--last", "--undo", "--clear"] {
            sandbox.q(&[action, "-s", &file]).run().exit(2).stdout_is_empty().stderr_contains("q: ");
        }
        for action in ["--history", "--last", "--undo"] {
            sandbox.q(&[action, "-s", name]).run().exit(1).stdout_is_empty().stderr_contains("q: ");
        }
        for session in [name, &file] {
            sandbox.q(&["-s", session, "x"]).run().exit(2).stdout_is_empty().stderr_contains("q: ");
        }
    }
    server.expect_requests(0);
    before.iter().for_each(Snapshot::expect_unchanged);
}

#[test]
fn a_file_without_permission_is_refused_and_left_alone() {
    // SAFETY: the call has no conditions and cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        return eprintln!("skipped: root may read everything");
    }
    let (server, sandbox) = numbered();
    sandbox.write_home("talk.json", stored(&["one", "two"]).to_string());
    set_mode(&sandbox.home().join("talk.json"), 0o000);
    let before = snapshot(sandbox.home());
    for typed in ["--history", "--last", "--undo", "--clear", "a question"] {
        sandbox.q(&["-s", "talk.json", typed]).run().exit(2).stdout_is_empty().stderr_contains("talk.json");
    }
    server.expect_requests(0);
    before.expect_unchanged();
}

#[test]
fn thin_and_odd_conversations_are_continued_as_they_are() {
    let (user, assistant) =
        (|text| json!({"role": "user", "content": text}), |text| json!({"role": "assistant", "content": text}));
    let (server, sandbox) = numbered();
    for (messages, sent) in [
        (vec![], "more"),
        (vec![user("one")], "Previous conversation:\nHuman: one\n\nHuman: more"),
        (vec![assistant("one")], "Previous conversation:\nAssistant: one\n\nHuman: more"),
        (vec![user("one"), user("two")], "Previous conversation:\nHuman: one\n\nHuman: two\n\nHuman: more"),
    ] {
        let _case = case(sent);
        sandbox.write_session("work.json", &with(stored::<&str>(&[]), "messages", messages.clone()));
        sandbox.q(&["-s", "work", "more"]).run().success();
        assert_eq!(prompt(&server.last_request()), sent);
        let written = sandbox.session("work.json");
        let kept = written["messages"].as_array().unwrap();
        assert_eq!(kept[..messages.len()], messages);
        assert_eq!(kept.len(), messages.len() + 2);
    }
}

#[test]
fn a_conversation_of_100_000_messages_is_continued() {
    let (server, sandbox) = numbered();
    let text = stored(&vec!["x"; 100_000]).to_string();
    assert!(text.len() < LARGEST, "{} bytes", text.len());
    sandbox.write_bytes("work.json", text);
    sandbox.q(&["-s", "work", "more"]).run().success();
    assert_eq!(prompt(&server.request()).matches("Human: x").count(), 5);
    assert_eq!(texts(&sandbox.session("work.json")).len(), 100_002);
    sandbox.q(&["--undo", "-s", "work"]).run().success().stdout("more\n");
    assert_eq!(texts(&sandbox.session("work.json")).len(), 100_000);
}

/// A question in the slot of this name; none where it is empty.
#[track_caller]
fn in_slot(sandbox: &Sandbox, slot: &str, arguments: &[&str]) -> Outcome {
    sandbox.q(arguments).env("Q_SESSION", slot).run()
}

#[test]
fn each_slot_has_a_current_conversation_of_its_own() {
    let (server, sandbox) = numbered();
    let slots = [("", "current.json"), ("tty1", "current-tty1.json"), ("tty2", "current-tty2.json")];
    for (slot, _) in slots {
        in_slot(&sandbox, slot, &[&format!("first of {slot}")]).success();
    }
    for (slot, _) in slots {
        in_slot(&sandbox, slot, &["-f", "more"]).success();
    }
    for (number, (slot, file)) in slots.into_iter().enumerate() {
        let _case = case(slot);
        let sent = prompt(&server.requests()[3 + number]);
        let expected =
            format!("Previous conversation:\nHuman: first of {slot}\n\nAssistant: answer {number}\n\nHuman: more");
        assert_eq!(sent, expected);
        assert_eq!(texts(&sandbox.session(file)).len(), 4);
        assert_eq!(mode(&sandbox.sessions().join(file)), 0o600);
    }
    assert_eq!(sandbox.session_files().len(), 3);
}

#[test]
fn each_action_in_a_slot_is_about_the_conversation_there() {
    let (server, sandbox) = numbered();
    sandbox.write_current(&stored(&["other", "terminal"]));
    sandbox.write_session("current-tty1.json", &stored(&["one", "two", "three", "four"]));
    let before = sandbox.read_bytes("current.json");
    let act = |args: &[&str]| in_slot(&sandbox, "tty1", args);
    act(&["--last"]).success().stdout("four\n");
    act(&["--copy", "branch"]).success();
    sandbox.expect_texts("branch.json", &["one", "two", "three", "four"]);
    assert_eq!(act(&["--status", "-j"]).success().stdout_json()["conversation"]["messages"], 4);
    act(&["--again"]).success();
    assert!(prompt(&server.request()).ends_with("Human: three"));
    sandbox.expect_texts("current-tty1.json", &["one", "two", "three", "answer 0"]);
    act(&["--undo"]).success().stdout("three\n");
    act(&["--clear"]).exit(0);
    let left = sandbox.session_files();
    sandbox.check(!left.contains(&"current-tty1.json".to_owned()), || format!("expected no slot in {left:?}"));
    sandbox.expect_bytes("current.json", before);
}

#[test]
fn a_new_question_in_a_slot_archives_that_one_alone() {
    let (_server, sandbox) = numbered();
    for file in ["current.json", "current-tty2.json", "work.json"] {
        sandbox.write_session(file, &stored(&["other", "terminal"]));
    }
    sandbox.write_session("current-tty1.json", &stored(&["one", "two"]));
    let before = snapshot(sandbox.sessions());

    in_slot(&sandbox, "tty1", &["three"]).success();
    sandbox.expect_texts(ARCHIVED, &["one", "two"]);
    sandbox.expect_texts("current-tty1.json", &["three", "answer 0"]);
    assert_eq!(before.changes(), [&format!("+ {ARCHIVED}"), "~ current-tty1.json"]);

    // What follows wherever the named conversation goes on, no slot has a part in it.
    in_slot(&sandbox, "tty1", &["-s", "work", "more"]).success();
    assert_eq!(texts(&sandbox.session("work.json")).len(), 4);
    assert_eq!(texts(&sandbox.session("current-tty1.json")).len(), 2);
    assert_eq!(sandbox.session_files().len(), 5);
}

#[test]
fn a_slot_has_all_the_rules_of_the_current_conversation() {
    let fresh = || with(stored(&["one", "two", "three", "four"]), "updated", "2999-01-01T00:00:00.000Z");
    let (server, sandbox) = numbered();
    sandbox.write_session("current-tty1.json", &fresh());
    let sandbox = sandbox.env("Q_PAIRS", "2");
    in_slot(&sandbox, "tty1", &["-f", "more"]).success();
    sandbox.expect_texts("current-tty1.json", &["three", "four", "more", "answer 0"]);
    let sent = prompt(&server.request());
    assert!(sent.starts_with("Previous conversation:\nHuman: one\n"), "{sent}");

    for (what, old, variable, archived) in [
        ("another provider", with(fresh(), "provider", "groq"), ("Q_PAIRS", "20"), "session_"),
        ("another model", with(fresh(), "model", "m"), ("Q_MODEL", "n"), "session_"),
        ("idle", stored(&["one", "two"]), ("Q_EXPIRE", "1h"), "session_"),
        ("another version", with(fresh(), "version", 2), ("Q_PAIRS", "20"), ".json.unreadable"),
    ] {
        let _case = case(what);
        let (server, sandbox) = numbered();
        let sandbox = sandbox.env(variable.0, variable.1);
        sandbox.write_session("current-tty1.json", &old);
        in_slot(&sandbox, "tty1", &["-f", "more"]).exit(0).stderr_contains("q: ");
        assert_eq!(prompt(&server.request()), "more");
        sandbox.expect_texts("current-tty1.json", &["more", "answer 0"]);
        let name = sandbox.only_archived();
        assert!(name.contains(archived), "{name}");
        sandbox.expect_bytes(&name, old.to_string());
    }
}

#[test]
fn a_slot_that_is_no_name_is_refused_before_input_and_request() {
    let (server, sandbox) = numbered();
    let long = "x".repeat(101);
    for slot in NO_NAMES.iter().chain([&long.as_str()]) {
        for arguments in [&["one"][..], &["-f", "one"], &[]] {
            let outcome = sandbox.q(arguments).env("Q_SESSION", slot).stdin_open().run();
            outcome.exit(2).stdout_is_empty().stderr_contains("Q_SESSION");
        }
    }
    server.expect_requests(0);
    snapshot(sandbox.state()).expect_empty();
}

#[test]
fn idle_slots_are_swept_and_what_has_a_name_is_not() {
    let (_server, sandbox) = numbered();
    for (file, days) in [
        ("current.json", 31),
        ("current-old.json", 31),
        ("current-new.json", 29),
        ("session_20250101000000.json", 31),
        ("session_20250101000001.json", 29),
        ("work.json", 3000),
    ] {
        sandbox.write_session(file, &stored(&["one", "two"]));
        age(&sandbox.sessions().join(file), days * DAY);
    }
    in_slot(&sandbox, "tty1", &["one"]).success();
    let kept = ["current-new.json", "current-tty1.json", "current.json", "session_20250101000001.json", "work.json"];
    sandbox.expect_files(&kept);
}

#[test]
fn what_is_archived_today_is_kept_however_old_it_is() {
    for (file, slot, command) in [
        ("current.json", "", &["-f", "more"][..]),
        ("current.json", "", &["new"]),
        ("current-tty1.json", "tty1", &["new"]),
        ("work.json", "", &["--undo", "-s", "work"]),
    ] {
        let _case = case((file, command));
        let (_server, sandbox) = numbered();
        sandbox.write_session(file, &stored(&["one", "two"]));
        age(&sandbox.sessions().join(file), 40 * DAY);
        in_slot(&sandbox, slot, command).exit(0);
        in_slot(&sandbox, slot, &["another"]).success();
        sandbox.expect_texts(ARCHIVED, &["one", "two"]);
    }
}

#[test]
fn an_id_finds_a_conversation_wherever_it_lies() {
    let (server, sandbox) = numbered();
    let printed = sandbox.q(&["--json", "one"]).run().stdout_json();
    let id = printed["id"].as_str().expect("an id").to_owned();
    // While it is current, by id it is continued like one by name, and stays current.
    sandbox.q(&["-s", &id, "two"]).run().success();
    sandbox.expect_texts("current.json", &["one", "answer 0", "two", "answer 1"]);
    // Displaced, renamed by hand, and again current in another place.
    sandbox.q(&["another"]).run().success();
    let archived = sandbox.only_archived();
    sandbox.q(&["-s", &id, "three"]).run().success();
    assert!(prompt(&server.last_request()).contains("Human: two"), "{}", prompt(&server.last_request()));
    sandbox.expect_texts(&archived, &["one", "answer 0", "two", "answer 1", "three", "answer 3"]);
    sandbox.q(&["--last", "-s", &id]).run().success().stdout("answer 3\n");
    let other = archived.replace(".json", "-7.json");
    fs::rename(sandbox.sessions().join(&archived), sandbox.sessions().join(&other)).unwrap();
    let renamed = "whatever.json";
    fs::rename(sandbox.sessions().join(&other), sandbox.sessions().join(renamed)).unwrap();
    sandbox.q(&["--last", "-s", &id]).run().success().stdout("answer 3\n");
    fs::rename(sandbox.sessions().join(renamed), sandbox.sessions().join(&other)).unwrap();
    sandbox.q(&["--undo", "-s", &id]).run().exit(0).stdout("three\n");
    fs::rename(sandbox.sessions().join(&other), sandbox.sessions().join("current-tty1.json")).unwrap();
    let unknown = "session_20200101000000000";
    for action in ["--history", "--last", "--undo", "--clear"] {
        sandbox.q(&[action, "-s", unknown]).run().exit(1).stdout_is_empty().stderr_contains(unknown);
    }
    sandbox.q(&["-s", unknown, "more"]).run().exit(2).stdout_is_empty().stderr_contains(unknown);
}

#[test]
fn an_id_finds_what_is_current_in_another_slot() {
    let (_server, sandbox) = numbered();
    let printed = in_slot(&sandbox, "tty1", &["-j", "one"]).success().stdout_json();
    let id = printed["id"].as_str().expect("an id");
    sandbox.q(&["another"]).run().success();
    sandbox.q(&["-s", id, "two"]).run().success();
    sandbox.expect_files(&["current-tty1.json", "current.json"]);
    sandbox.expect_texts("current-tty1.json", &["one", "answer 0", "two", "answer 2"]);
    in_slot(&sandbox, "tty2", &["--last", "-s", id]).success().stdout("answer 2\n");
    sandbox.q(&["--clear", "-s", id]).run().exit(0);
    sandbox.expect_files(&["current.json"]);
}

#[test]
fn what_changes_at_its_end_gets_another_id_and_leaves_the_old_one_to_what_it_was() {
    let id = "session_20260102030405678";
    for (file, args, last) in [
        ("current.json", &["--undo"][..], "two\n"),
        ("current.json", &["--again"], "answer 0\n"),
        ("work.json", &["--undo", "-s", "work"], "two\n"),
        ("work.json", &["--again", "-s", "work"], "answer 0\n"),
    ] {
        let _case = case((file, args));
        let (_server, sandbox) = numbered();
        sandbox.write_session(file, &stored(&["one", "two", "three", "four"]));
        sandbox.q(args).run().success();
        sandbox.q(&["--last", "-s", id]).run().success().stdout("four\n");
        sandbox.expect_texts(ARCHIVED, &["one", "two", "three", "four"]);
        let created = sandbox.session(file)["created"].as_str().expect("a moment").to_owned();
        let other = created.chars().filter(char::is_ascii_digit).collect::<String>();
        assert_ne!(created, CREATED);
        if file == "current.json" {
            sandbox.q(&["--last", "-s", &format!("session_{other}")]).run().success().stdout(last);
        }
    }
}

#[test]
fn what_is_continued_by_its_id_is_removed_once_it_is_left_alone_and_a_copy_is_kept() {
    let (_server, sandbox) = numbered();
    let sandbox = sandbox.env("Q_EXPIRE", "never");
    let id = "session_20260102030405678";
    sandbox.write_session(ARCHIVED, &stored(&["one", "two"]));
    sandbox.q(&["-s", id, "three"]).run().success();
    sandbox.q(&["--copy", "kept", "-s", id]).run().success();
    sandbox.expect_files(&["kept.json", ARCHIVED]);
    for file in ["kept.json", ARCHIVED] {
        age(&sandbox.sessions().join(file), 31 * DAY);
    }
    // As on another day.
    fs::remove_file(sandbox.state().join("q/swept")).unwrap();
    sandbox.q(&["new"]).run().success();
    sandbox.expect_files(&["current.json", "kept.json"]);
    sandbox.expect_texts("kept.json", &["one", "two", "three", "answer 0"]);
}

#[test]
fn what_a_killed_run_left_beside_a_file_goes_with_the_next_that_writes_or_clears_it() {
    for (args, left) in [
        (&["-s", "talk.json", "more"][..], &["talk.json"][..]),
        (&["-s", "talk.json", "--again"], &["talk.json"]),
        (&["-s", "talk.json", "--undo"], &["talk.json"]),
        (&["-s", "talk.json", "--clear"], &[]),
    ] {
        let _case = case(args);
        let (_server, sandbox) = numbered();
        sandbox.write_home("talk.json", stored(&["one", "two", "three", "four"]).to_string());
        sandbox.write_home(".talk.json.tmp", "{\"version\":1,");
        sandbox.q(args).run().exit(0);
        let files: Vec<_> = fs::read_dir(sandbox.home()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(files, left);
    }
}

#[test]
fn a_file_is_written_by_one_at_a_time_also_from_two_state_folders() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    let other = sandbox.root().join("other");
    let script = format!(
        "for i in 1 2 3 4 5 6 7 8 9 10; do q -s talk.json \"here $i\" & XDG_STATE_HOME=\"{}\" q -s talk.json \"there $i\" & done; wait",
        other.display()
    );
    sandbox.shell(&script).run().success();
    let texts = texts(&sandbox.home_session("talk.json"));
    for number in 1..=10 {
        for place in ["here", "there"] {
            let question = format!("{place} {number}");
            assert_eq!(texts.iter().filter(|text| **text == question).count(), 1, "{question} in {texts:?}");
        }
    }
    // Nothing but the file itself is left beside it.
    let left: Vec<_> = fs::read_dir(sandbox.home()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["talk.json"]);
}

#[test]
fn what_comes_from_a_file_elsewhere_shares_its_moment_with_nothing_in_the_state_folder() {
    // An undo takes all of the file away, or its end.
    for exchanges in [1, 2] {
        let _case = case(exchanges);
        let (_server, sandbox) = numbered();
        let begun = sandbox.q(&["--json", "here"]).run().success().stdout_json();
        let created = sandbox.current()["created"].as_str().expect("a moment").to_owned();
        let there: Vec<String> = (0..2 * exchanges).map(|number| format!("text {number}")).collect();
        let file = with(stored(&there), "created", created.as_str());
        fs::write(sandbox.home().join("talk.json"), file.to_string()).unwrap();
        sandbox.q(&["--undo", "-s", "talk.json"]).run().exit(0);
        let archived = sandbox.only_archived();
        sandbox.expect_texts(&archived, &there);
        assert_ne!(sandbox.session(&archived)["created"], created.as_str());
        sandbox.expect_texts("current.json", &["here", "answer 0"]);
        let id = begun["id"].as_str().expect("an id");
        sandbox.q(&["--last", "-s", id]).run().success().stdout("answer 0\n");
        // The other way round: the moment comes from elsewhere first.
        let later = with(stored(&there), "created", "2026-01-01T00:00:00.000Z");
        fs::write(sandbox.home().join("talk.json"), later.to_string()).unwrap();
        sandbox.q(&["--undo", "-s", "talk.json"]).run().exit(0);
        assert_eq!(sandbox.session("session_20260101000000.json")["created"], "2026-01-01T00:00:00.000Z");
    }
}

#[test]
fn no_moment_is_given_twice_though_the_lock_file_was_deleted() {
    let (_server, sandbox) = numbered();
    // The clock has gone back since.
    let latest = ahead(HOUR);
    sandbox.write_session("session_20260101000000.json", &with(stored(&["one", "two"]), "created", latest.as_str()));
    for _ in 0..2 {
        sandbox.q(&["new"]).run().success();
        let created = sandbox.current()["created"].as_str().expect("a moment").to_owned();
        assert!(created > latest, "{created} and {latest}");
        sandbox.q(&["--clear"]).run().exit(0);
        fs::remove_file(sandbox.state().join("q/lock")).unwrap();
    }
}

#[test]
fn a_file_of_another_user_is_not_taken_from_him() {
    // SAFETY: the call has no conditions and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return eprintln!("skipped: only root can give a file away");
    }
    let (_server, sandbox) = numbered();
    let path = sandbox.home().join("talk.json");
    fs::write(&path, stored(&["one", "two"]).to_string()).unwrap();
    std::os::unix::fs::chown(&path, Some(65_534), Some(65_533)).unwrap();
    set_mode(&path, 0o640);
    // Root may give the new file to the same user and group.
    sandbox.q(&["-s", "talk.json", "three"]).run().success();
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!((metadata.uid(), metadata.gid(), metadata.mode() & 0o777), (65_534, 65_533, 0o640));
}

#[test]
fn a_file_that_its_owner_could_no_longer_use_is_refused_before_anything_is_asked() {
    const OTHER: &str = "exec setpriv --reuid 65534 --regid 65534 --clear-groups";
    let (server, sandbox) = numbered();
    for folder in [sandbox.root(), &sandbox.home(), &sandbox.state()] {
        set_mode(folder, 0o777);
    }
    // Only root can give a file away, and not everywhere may somebody else run what was built.
    if !sandbox.shell(&format!("{OTHER} q --version")).run().status.success() {
        return eprintln!("skipped: another user cannot run q here");
    }
    let path = sandbox.home().join("talk.json");
    let give = |mode| {
        fs::write(&path, stored(&["one", "two", "three", "four"]).to_string()).unwrap();
        std::os::unix::fs::chown(&path, Some(65_533), Some(65_533)).unwrap();
        set_mode(&path, mode);
    };
    for command in ["q -s talk.json more", "q -s talk.json --again", "q -s talk.json --undo"] {
        for mode in [0o600, 0o644, 0o662] {
            let _case = case((command, mode));
            give(mode);
            let before = snapshot(sandbox.home());
            let refused = sandbox.shell(&format!("{OTHER} {command}")).run();
            refused.exit(1).stdout_is_empty().stderr_contains("talk.json belongs to another user");
            before.expect_unchanged();
        }
    }
    server.expect_requests(0);
    // What everybody may read and write stays of use to its owner.
    give(0o666);
    sandbox.shell(&format!("{OTHER} q -s talk.json more")).run().success();
    sandbox.shell(&format!("{OTHER} q -s talk.json --undo")).run().success();
    assert_eq!((texts(&sandbox.home_session("talk.json")).len(), mode(&path)), (4, 0o666));
}

#[test]
fn the_longest_names_of_files_are_saved_too() {
    let (_server, sandbox) = numbered();
    for length in [250, 252, 255] {
        let name = format!("{}.json", "x".repeat(length - 5));
        sandbox.q(&["-s", &name, "one"]).run().success();
        sandbox.q(&["-s", &name, "two"]).run().success();
        assert_eq!(texts(&sandbox.home_session(&name)).len(), 4, "{length}");
        fs::remove_file(sandbox.home().join(&name)).unwrap();
    }
}

#[test]
fn a_person_is_told_that_a_name_is_new() {
    let (server, sandbox) = numbered();
    sandbox.write_session("work.json", &stored(&["one", "two"]));
    sandbox.write_session(ARCHIVED, &stored(&["one", "two"]));
    for (name, printed) in
        [("wrok", "q: wrok is a new conversation; did you mean work?"), ("garden", "q: garden is a new conversation")]
    {
        let terminal = Terminal::new(WIDE);
        sandbox.q(&["-s", name, "hi"]).stderr_to(terminal.end()).run().exit(0);
        assert_eq!(terminal.screen(), [printed, ""]);
        // Not once it is there, and not where nobody looks.
        let terminal = Terminal::new(WIDE);
        sandbox.q(&["-s", name, "hi"]).stderr_to(terminal.end()).run().exit(0);
        assert_eq!(terminal.screen(), [""]);
    }
    sandbox.q(&["-s", "house", "hi"]).run().success();
    server.expect_requests(5);
}

#[test]
fn a_follow_up_by_name_demands_that_it_exists() {
    let (server, sandbox) = numbered();
    sandbox.write_session("work.json", &stored(&["one", "two"]));
    let before = snapshot(sandbox.sessions());
    let outcome = sandbox.q(&["-f", "-s", "wrok", "hi"]).run();
    outcome.exit(1).stdout_is_empty().stderr_contains_all(&["no conversation wrok", "did you mean work?"]);
    sandbox.q(&["-f", "-s", "talk.json", "hi"]).run().exit(1).stdout_is_empty().stderr_contains("talk.json");
    sandbox.q(&["--last", "-s", "wokr"]).run().exit(1).stderr_contains("did you mean work?");
    for name in ["zzz", "session_20200101000000", "session_20200101000000000"] {
        sandbox.q(&["-f", "-s", name, "hi"]).run().exit(1).stderr_contains(name).stderr_lacks("did you mean");
    }
    server.expect_requests(0);
    before.expect_unchanged();
    sandbox.q(&["-f", "-s", "work", "hi"]).run().success();
}

#[test]
fn what_is_cleared_or_copied_by_its_id_beside_a_new_question_is_that_one() {
    let (_server, sandbox) = numbered();
    for round in 0..75 {
        let _case = case(round);
        for action in [&["--clear"][..], &["--copy"]] {
            let before: Value = sandbox.q(&["--json", "before"]).run().success().stdout_json();
            let id = before["id"].as_str().expect("an id");
            let copy = format!("copy-{round}");
            let name: &[&str] = if action == ["--copy"] { &[&copy] } else { &[] };
            let question = sandbox.q(&["--json", "beside"]).spawn();
            sandbox.q(&["-s", id]).args(action).args(name).run().exit(0);
            let beside = question.wait().success().stdout_json();
            let kept = |id: &str, question: &str| {
                sandbox.q(&["-s", id, "--history"]).run().stdout_contains(question);
            };
            kept(beside["id"].as_str().expect("an id"), "beside");
            if action == ["--copy"] {
                kept(&copy, "before");
            }
        }
    }
}
