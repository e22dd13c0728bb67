//! Conversations that a user names: `-s NAME`, `-s FILE.json`, and the slots of `Q_SESSION`.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::Path;

use serde_json::{Value, json};

use crate::dialect::{failure, in_two_parts, openai_reply};
use crate::fixtures::{
    ANTHROPIC_MODEL, ARCHIVED, CREATED, DAY, EARLIER, ID, LARGEST, MINUTE, OTHER, STORED_MODEL,
    Snapshot, age, another_day, case, mode, numbered, other, prompt, set_mode, snapshot, stored,
    texts, with,
};
use crate::pty::{Terminal, WIDE};
use crate::sandbox::{Outcome, Sandbox};
use crate::server::{Gate, Server};

/// How a stored conversation of `one` and `two` stands before a question.
const HISTORY: &str = "Previous conversation:\nHuman: one\n\nAssistant: two\n\nHuman: ";

#[test]
fn a_name_starts_a_conversation_and_continues_it() {
    let (server, sandbox) = numbered();
    sandbox
        .q(&["-s", "work", "one"])
        .run()
        .success()
        .stdout("answer 0\n");
    sandbox.q(&["current"]).run().success();
    sandbox
        .q(&["--session=work", "two"])
        .run()
        .success()
        .stdout("answer 2\n");

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
        assert!(
            sent.starts_with("Previous conversation:\nHuman: 40\n\nAssistant: 41\n"),
            "{sent}"
        );
    }
    sandbox.expect_files(&["work.json"]);
    for (name, conversation) in [
        ("work", sandbox.session("work.json")),
        ("talk", sandbox.home_session("talk.json")),
    ] {
        let _case = case(name);
        assert_eq!(texts(&conversation).len(), 52);
        assert_eq!(texts(&conversation)[..50], long);
        assert_eq!(conversation["created"], CREATED);
    }
}

#[test]
fn a_named_conversation_keeps_its_own_provider_and_model() {
    let (openai, claude) = (
        Server::openai("from openai"),
        Server::anthropic("from anthropic"),
    );
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
        sandbox.write_session(
            "work.json",
            &with(stored(&["one", "two"]), "provider", "anthropic"),
        );
        sandbox
            .q(&["-s", "work", "three"])
            .run()
            .success()
            .stdout("from anthropic\n");
        let written = sandbox.session("work.json");
        assert_eq!(
            (&written["provider"], &written["model"]),
            (&json!("anthropic"), &json!(STORED_MODEL))
        );
        assert_eq!(claude.last_request().json()["model"], STORED_MODEL);
    }
    claude.expect_requests(5);
    openai.expect_requests(0);
}

#[test]
fn another_model_or_provider_takes_the_history_over_and_stays() {
    let (openai, claude) = (
        Server::openai("from openai"),
        Server::anthropic("from anthropic"),
    );
    for (options, provider, model) in [
        (&["-m", "other"][..], "openai", "other"),
        (&["-p", "openai"], "openai", STORED_MODEL),
        (&["-p", "anthropic"], "anthropic", ANTHROPIC_MODEL),
        (&["-p", "anthropic", "-m", "other"], "anthropic", "other"),
    ] {
        let _case = case(options);
        let sandbox = Sandbox::new().server_env(&openai).anthropic_env(&claude);
        sandbox.write_session("work.json", &stored(&["one", "two"]));
        let server = if provider == "openai" {
            &openai
        } else {
            &claude
        };
        let before = server.requests().len();
        sandbox
            .q(&["-s", "work"])
            .args(options)
            .arg("three")
            .run()
            .success();
        sandbox.q(&["-s", "work", "four"]).run().success();
        server.expect_requests(before + 2);
        for request in &server.requests()[before..] {
            assert_eq!(request.json()["model"], model);
            let sent = prompt(request);
            assert!(sent.starts_with(HISTORY), "{sent}");
        }
        let written = sandbox.session("work.json");
        assert_eq!(
            (&written["provider"], &written["model"]),
            (&json!(provider), &json!(model))
        );
        assert_eq!(texts(&written).len(), 6);
        sandbox.expect_files(&["work.json"]);
    }
}

#[test]
fn a_conversation_whose_provider_is_gone_names_those_that_are_there() {
    let (server, sandbox) = numbered();
    sandbox.config("[providers.desk]\napi = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\n");
    sandbox.write_session(
        "work.json",
        &with(stored(&["one", "two"]), "provider", "cellar"),
    );
    let before = snapshot(sandbox.sessions());
    for ask in [&["three"][..], &["--again"]] {
        let outcome = sandbox.q(&["-s", "work"]).args(ask).run();
        outcome
            .exit(2)
            .stdout_is_empty()
            .stderr_contains_all(&["cellar", "desk", "openai", "ollama", "-p"]);
    }
    server.expect_requests(0);
    before.expect_unchanged();

    sandbox
        .q(&["-s", "work", "-p", "openai", "three"])
        .run()
        .success();
    assert_eq!(prompt(&server.request()), format!("{HISTORY}three"));
    assert_eq!(sandbox.session("work.json")["provider"], "openai");
    sandbox.q(&["-s", "work", "four"]).run().success();
}

#[test]
fn a_question_that_fails_or_is_not_saved_changes_no_named_file() {
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
        sandbox
            .q(&["-s", name, "--no-save", "answer"])
            .run()
            .success()
            .stdout("fine\n");
    }
    server.expect_requests(8);
    before.expect_unchanged();
}

/// Some invalid names; session/name.rs tests all of them.
const NO_NAMES: [&str; 5] = ["", "../work", "a b", "-1", "current-1"];

#[test]
fn an_invalid_name_is_refused_before_input_and_request() {
    let (server, sandbox) = numbered();
    for name in NO_NAMES {
        for action in [
            &["--history"][..],
            &["--last"],
            &["--undo"],
            &["--clear"],
            &[],
        ] {
            // An open standard input shows that q does not wait for it.
            let outcome = sandbox.q(&["-s", name]).args(action).stdin_open().run();
            outcome.exit(2).stdout_is_empty().stderr_contains("q: ");
        }
    }
    server.expect_requests(0);
    snapshot(sandbox.state()).expect_empty();
}

#[test]
fn every_kind_of_name_stays_in_the_folder() {
    let (_server, sandbox) = numbered();
    let long = "x".repeat(100);
    let names = ["a", "A-Z_0.9", "a..b", "a.json.txt", "session", &long];
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
fn a_conversation_that_is_named_like_an_option_is_reached_by_its_number_and_path() {
    let (_server, sandbox) = numbered();
    sandbox.write_session("-f.json", &stored(&["one", "two"]));
    sandbox.q(&["-s", "%1", "three"]).run().success();
    sandbox.expect_texts("-f.json", &["one", "two", "three", "answer 0"]);
    sandbox
        .q(&["--clear", "-s"])
        .arg(sandbox.sessions().join("-f.json"))
        .run()
        .success();
    sandbox.expect_no_files();
}

#[test]
fn an_unnamed_conversation_is_continued_by_its_id_and_none_is_started_by_one() {
    let (server, sandbox) = numbered();
    sandbox.write_session(OTHER, &other(&["five", "six"]));
    for unknown in [ID, "session_20200101000000", "session_notes"] {
        for args in [
            &["more"][..],
            &["-f", "more"],
            &["--again"],
            &["--history"],
            &["--last"],
            &["--undo"],
            &["--clear"],
        ] {
            let _case = case((unknown, args));
            let outcome = sandbox.q(&["-s", unknown]).args(args).run();
            outcome
                .exit(1)
                .stdout_is_empty()
                .stderr_contains(unknown)
                .stderr_lacks("did you mean");
        }
    }
    server.expect_requests(0);
    sandbox.expect_files(&[OTHER]);

    // Named by its id it never expires and is not trimmed; its age counts from now on.
    let sandbox = sandbox
        .env("Q_EXPIRE", "1s")
        .env("Q_PAIRS", "1")
        .env("Q_MODEL", "other");
    sandbox.write_session(ARCHIVED, &stored(&["one", "two"]));
    age(&sandbox.sessions().join(ARCHIVED), 40 * DAY);
    let printed = sandbox
        .q(&["-j", "-s", ID, "three"])
        .run()
        .success()
        .stdout_json();
    assert_eq!(
        (&printed["id"], &printed["model"]),
        (&json!(ID), &json!(STORED_MODEL))
    );
    assert_eq!(prompt(&server.request()), format!("{HISTORY}three"));
    sandbox.expect_texts(ARCHIVED, &["one", "two", "three", "answer 0"]);
    sandbox.expect_files(&[ARCHIVED, OTHER]);
    // Its provider and model are pinned.
    assert_eq!(sandbox.session(ARCHIVED)["pinned"], true);
    assert_eq!(
        sandbox
            .q(&["--last", "-j", "-s", ID])
            .run()
            .success()
            .stdout_json()["id"],
        ID
    );
    sandbox
        .q(&["-s", ID, "-m", "third", "four"])
        .run()
        .success();
    assert_eq!(sandbox.session(ARCHIVED)["model"], "third");
}

#[test]
fn the_days_of_a_conversation_begin_when_its_id_opens_it() {
    let server = Server::start(|request, _| match prompt(request).contains("fail") {
        true => failure(400, "no"),
        false => openai_reply(request, "fine"),
    });
    let sandbox = Sandbox::new().server_env(&server);
    for (name, conversation) in [
        (ARCHIVED, stored(&["one", "two"])),
        (OTHER, other(&["five", "six"])),
    ] {
        sandbox.write_session(name, &conversation);
        age(&sandbox.sessions().join(name), 40 * DAY);
    }
    let before = sandbox.read_bytes(ARCHIVED);
    sandbox.q(&["-s", ID, "fail"]).run().exit(1);
    sandbox.q(&["-s", "work", "fine"]).run().success();
    sandbox.expect_files(&[ARCHIVED, "work.json"]);
    sandbox.expect_bytes(ARCHIVED, before);
}

#[test]
fn a_conversation_continued_by_its_id_on_a_terminal_becomes_current() {
    for (slot, link) in [("", "current.json"), ("tty1", "current-tty1.json")] {
        let (server, sandbox) = numbered();
        let sandbox = sandbox.env("Q_SESSION", slot);
        sandbox.write_session(ARCHIVED, &stored(&["one", "two"]));
        sandbox.q(&["new"]).run().success();
        let new = sandbox.target(link).expect("a link");
        sandbox.q(&["-s", ID, "three"]).run().success();
        assert_eq!(
            sandbox.target(link).as_deref(),
            Some(new.as_str()),
            "no terminal"
        );
        let before = sandbox.read_bytes(&new);
        age(&sandbox.sessions().join(&new), 40 * DAY);
        let terminal = Terminal::new(WIDE);
        sandbox
            .q(&["-s", ID, "four"])
            .stdout_to(terminal.end())
            .run()
            .success();
        assert_eq!(sandbox.target(link).as_deref(), Some(ARCHIVED));
        // The former current conversation stays under its id, and its days begin now.
        sandbox.expect_bytes(&new, before);
        sandbox
            .q(&["-f", "five"])
            .env("Q_MODEL", "other")
            .run()
            .success();
        assert!(prompt(&server.last_request()).contains("Human: four"));
        assert_eq!(server.last_request().json()["model"], STORED_MODEL);
        another_day(&sandbox);
        sandbox.q(&["-f", "six"]).run().success();
        assert_eq!(sandbox.all_files(), [link, ARCHIVED, &new]);
        // A name, a file, and a run that saves nothing leave the link where it is.
        for args in [
            &["-s", "work", "hi"][..],
            &["-s", "talk.json", "hi"],
            &["-s", new.trim_end_matches(".json"), "--no-save", "hi"],
        ] {
            let terminal = Terminal::new(WIDE);
            sandbox.q(args).stdout_to(terminal.end()).run().success();
            assert_eq!(sandbox.target(link).as_deref(), Some(ARCHIVED));
        }
        // Asking again is a question, too.
        let terminal = Terminal::new(WIDE);
        sandbox
            .q(&["-s", new.trim_end_matches(".json"), "--again"])
            .stdout_to(terminal.end())
            .run()
            .success();
        assert_eq!(sandbox.target(link).as_deref(), Some(new.as_str()));
        assert_eq!(sandbox.session(&new)["pinned"], true);
    }
}

#[test]
fn a_number_of_the_list_names_its_conversation() {
    let (server, sandbox) = numbered();
    for (minutes, (name, text)) in [
        ("work.json", "named"),
        (ARCHIVED, "second"),
        (OTHER, "third"),
        (EARLIER, "a state"),
    ]
    .iter()
    .enumerate()
    {
        let conversation = if *name == OTHER {
            other(&[*text, "x"])
        } else {
            stored(&[*text, "x"])
        };
        sandbox.write_session(name, &conversation);
        age(&sandbox.sessions().join(name), MINUTE * minutes as u32);
    }
    let before = snapshot(sandbox.sessions());
    sandbox
        .q(&["-s", "%3", "--last", "-j"])
        .run()
        .success()
        .stdout_contains(OTHER.trim_end_matches(".json"));
    sandbox
        .q(&["-s", "%1", "--history"])
        .run()
        .success()
        .stdout_contains("named");
    sandbox
        .q(&["-s", "%4", "hi"])
        .run()
        .exit(1)
        .stdout_is_empty()
        .stderr_contains("%4");
    // Numbers change with each list.
    for action in ["--clear", "--undo"] {
        sandbox
            .q(&["-s", "%2", action])
            .run()
            .exit(2)
            .stdout_is_empty()
            .stderr_contains("number");
    }
    server.expect_requests(0);
    before.expect_unchanged();
    let terminal = Terminal::new(WIDE);
    sandbox
        .q(&["-s", "%2", "more"])
        .stdout_to(terminal.end())
        .stderr_to(terminal.end())
        .run()
        .exit(0);
    let screen = terminal.screen().join("\n");
    sandbox.check(screen.contains("q: ") && screen.contains(ID), || {
        format!("expected a note that says which:\n{screen}")
    });
    assert_eq!(sandbox.current_id(), ID);
    assert!(prompt(&server.request()).contains("Human: second"));
    assert_eq!(sandbox.current()["pinned"], true);
    let terminal = Terminal::new(WIDE);
    let copy = sandbox.q(&["-s", "%2", "--copy", "copied"]);
    copy.stdout_to(terminal.end())
        .stderr_to(terminal.end())
        .run()
        .exit(0);
    let screen = terminal.screen().join("\n");
    sandbox.check(screen.matches("%2").count() == 1, || {
        format!("expected one note that says which:\n{screen}")
    });
    fs::remove_file(sandbox.sessions().join("copied.json")).expect("a copy");
    // In a pipe there is no note, and the link stays.
    sandbox.q(&["-s", "%2", "more"]).run().success();
    assert_eq!(sandbox.current_id(), ID);
    sandbox.expect_texts("work.json", &["named", "x", "more", "answer 1"]);
}

#[test]
fn a_conversation_removed_meanwhile_does_not_come_back_without_its_beginning() {
    for again in [false, true] {
        let _case = case(again);
        let gate = Gate::new();
        let server = Server::always(in_two_parts("an", &gate, "swer"));
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.write_session(ARCHIVED, &stored(&["one", "two"]));
        let mut asked = sandbox.q(&["-s", ID, "three"]).spawn();
        asked.read_stdout_until("an");
        fs::remove_file(sandbox.sessions().join(ARCHIVED)).unwrap();
        if again {
            sandbox.write_session(ARCHIVED, &stored(&["another", "x"]));
        }
        gate.open();
        asked
            .wait()
            .exit(0)
            .stderr_contains("the conversation was cleared or replaced in the meantime");
        sandbox.expect_texts(
            &sandbox.archived().pop().expect("one of its own"),
            &["three", "answer"],
        );
        assert_eq!(sandbox.all_files().len(), 1 + usize::from(again));
    }
}

#[test]
fn a_run_that_saves_nothing_does_not_touch_the_file() {
    let (_server, sandbox) = numbered();
    sandbox.write_session(ARCHIVED, &stored(&["one", "two"]));
    let before = snapshot(sandbox.root());
    for option in ["--dry-run", "--no-save"] {
        let _case = case(option);
        sandbox.q(&["-s", ID, option, "more"]).run().success();
        before.expect_unchanged();
    }
}

#[test]
fn a_file_elsewhere_may_have_any_name_and_path() {
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
fn a_missing_folder_is_not_created() {
    let (server, sandbox) = numbered();
    for action in [
        &["--history"][..],
        &["--last"],
        &["--undo"],
        &["--clear"],
        &[],
    ] {
        let outcome = sandbox
            .q(&["-s", "missing/talk.json"])
            .args(action)
            .stdin_open()
            .run();
        outcome
            .exit(2)
            .stdout_is_empty()
            .stderr_contains("missing/talk.json");
    }
    server.expect_requests(0);
    snapshot(sandbox.home()).expect_empty();
}

#[test]
fn a_link_stays_and_its_target_is_rewritten() {
    let (server, sandbox) = numbered();
    let (real, near, far) = (sandbox.root().join("real.json"), "near.json", "far.json");
    fs::write(&real, stored(&["one", "two"]).to_string()).unwrap();
    symlink("../real.json", sandbox.home().join(near)).unwrap();
    symlink(near, sandbox.home().join(far)).unwrap();
    sandbox.q(&["-s", far, "three"]).run().success();
    sandbox
        .q(&["--undo", "-s", near])
        .run()
        .success()
        .stdout("three\n");
    sandbox.q(&["-s", near, "four"]).run().success();
    server.expect_requests(2);
    assert_eq!(
        fs::read_link(sandbox.home().join(near)).unwrap(),
        Path::new("../real.json")
    );
    assert_eq!(
        fs::read_link(sandbox.home().join(far)).unwrap(),
        Path::new(near)
    );
    assert_eq!(
        texts(&sandbox.home_session("../real.json")),
        ["one", "two", "four", "answer 1"]
    );
    assert_eq!(
        fs::read_dir(sandbox.home()).unwrap().count(),
        2,
        "nothing is left behind"
    );
}

#[test]
fn a_link_whose_file_was_emptied_leads_to_a_new_one() {
    let (_server, sandbox) = numbered();
    let real = sandbox.root().join("real.json");
    symlink("../real.json", sandbox.home().join("link.json")).unwrap();
    fs::write(&real, stored(&["one", "two"]).to_string()).unwrap();
    sandbox.q(&["--undo", "-s", "link.json"]).run().success();
    assert_eq!(texts(&sandbox.home_session("../real.json")).len(), 0);
    sandbox.q(&["--clear", "-s", "link.json"]).run().exit(0);
    sandbox.check(!real.exists(), || {
        format!("expected no file {}", real.display())
    });
    sandbox.q(&["-s", "link.json", "again"]).run().success();
    assert_eq!(
        texts(&sandbox.home_session("link.json")),
        ["again", "answer 0"]
    );
}

#[test]
fn a_file_keeps_its_mode_whatever_the_umask() {
    let (_server, sandbox) = numbered();
    let file = sandbox.home().join("talk.json");
    for (given, umask) in [
        (0o600, "000"),
        (0o640, "022"),
        (0o644, "022"),
        (0o644, "077"),
        (0o664, "022"),
    ] {
        for script in ["q -s talk.json more", "q --undo -s talk.json"] {
            fs::write(&file, stored(&["one", "two", "three", "four"]).to_string()).unwrap();
            set_mode(&file, given);
            let outcome = sandbox.shell(&format!("umask {umask}; {script}")).run();
            outcome.success().check(mode(&file) == given, || {
                format!("expected {given:o}, not {:o}", mode(&file))
            });
        }
    }
}

/// Files that are not conversations, each with a name; session/format.rs tests all of them.
fn no_conversations() -> Vec<(&'static str, String)> {
    let valid = stored(&["one", "two"]).to_string();
    vec![
        ("empty", String::new()),
        ("half", valid[..valid.len() / 2].to_owned()),
        (
            "another version",
            with(stored(&["one", "two"]), "version", 2).to_string(),
        ),
        (
            "no text",
            with(
                stored(&["one", "two"]),
                "messages",
                json!([{"role": "user"}]),
            )
            .to_string(),
        ),
        (
            "too large",
            format!("{valid}{}", " ".repeat(LARGEST + 1 - valid.len())),
        ),
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
            outcome
                .exit(2)
                .stdout_is_empty()
                .stderr_contains("talk.json");
        }
        let outcome = sandbox.q(&["--history", "--json", "-s", "talk.json"]).run();
        outcome
            .exit(2)
            .stdout_contains("{\"error\"")
            .stderr_contains("talk.json");
        for action in ["--history", "--last", "--undo"] {
            sandbox
                .q(&[action, "-s", "work"])
                .run()
                .exit(1)
                .stdout_is_empty()
                .stderr_contains("work.json");
        }
        sandbox
            .q(&["-s", "work", "x"])
            .run()
            .exit(2)
            .stdout_is_empty()
            .stderr_contains("work.json");
        before.iter().for_each(Snapshot::expect_unchanged);
    }
    server.expect_requests(0);
}

#[test]
fn a_file_that_is_not_regular_or_not_readable_is_refused_and_left_alone() {
    let (server, sandbox) = numbered();
    let zoo = "mkdir folder.json; mkfifo pipe.json; ln -s loop.json loop.json; ln -s /dev/zero device.json
               echo '{}' >closed.json; chmod 0 closed.json";
    sandbox.shell(zoo).run().success();
    fs::create_dir_all(sandbox.sessions()).unwrap();
    sandbox
        .shell("cp -a *.json ../state/q/sessions/")
        .run()
        .success();
    let before = [snapshot(sandbox.home()), snapshot(sandbox.sessions())];
    let refused = |session: &str, typed: &str, exit| {
        let outcome = sandbox.q(&["-s", session, typed]).obeying_modes().run();
        outcome.exit(exit).stdout_is_empty().stderr_contains("q: ");
    };
    for (name, exit) in [
        ("folder", 2),
        ("pipe", 2),
        ("loop", 2),
        ("device", 2),
        ("closed", 1),
    ] {
        let file = format!("{name}.json");
        for action in ["--history", "--last", "--undo"] {
            refused(&file, action, 2);
            refused(name, action, 1);
        }
        refused(&file, "--clear", 2);
        refused(&file, "a question", 2);
        refused(name, "a question", exit);
    }
    server.expect_requests(0);
    before.iter().for_each(Snapshot::expect_unchanged);
}

#[test]
fn thin_and_odd_conversations_are_continued_as_they_are() {
    let (user, assistant) = (
        |text| json!({"role": "user", "content": text}),
        |text| json!({"role": "assistant", "content": text}),
    );
    let (server, sandbox) = numbered();
    for (messages, sent) in [
        (vec![], "more"),
        (
            vec![user("one")],
            "Previous conversation:\nHuman: one\n\nHuman: more",
        ),
        (
            vec![assistant("one")],
            "Previous conversation:\nAssistant: one\n\nHuman: more",
        ),
        (
            vec![user("one"), user("two")],
            "Previous conversation:\nHuman: one\n\nHuman: two\n\nHuman: more",
        ),
    ] {
        let _case = case(sent);
        sandbox.write_session(
            "work.json",
            &with(stored::<&str>(&[]), "messages", messages.clone()),
        );
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
    sandbox
        .q(&["--undo", "-s", "work"])
        .run()
        .success()
        .stdout("more\n");
    assert_eq!(texts(&sandbox.session("work.json")).len(), 100_000);
}

/// Runs q in this slot; without a slot if the name is empty.
#[track_caller]
fn in_slot(sandbox: &Sandbox, slot: &str, arguments: &[&str]) -> Outcome {
    sandbox.q(arguments).env("Q_SESSION", slot).run()
}

#[test]
fn each_slot_has_a_current_conversation_of_its_own() {
    let (server, sandbox) = numbered();
    let slots = [
        ("", "current.json"),
        ("tty1", "current-tty1.json"),
        ("tty2", "current-tty2.json"),
    ];
    for (slot, _) in slots {
        in_slot(&sandbox, slot, &[&format!("first of {slot}")]).success();
    }
    for (slot, _) in slots {
        in_slot(&sandbox, slot, &["-f", "more"]).success();
    }
    for (number, (slot, file)) in slots.into_iter().enumerate() {
        let _case = case(slot);
        let sent = prompt(&server.requests()[3 + number]);
        let expected = format!(
            "Previous conversation:\nHuman: first of {slot}\n\nAssistant: answer {number}\n\nHuman: more"
        );
        assert_eq!(sent, expected);
        assert_eq!(texts(&sandbox.session(file)).len(), 4);
        assert_eq!(mode(&sandbox.sessions().join(file)), 0o600);
    }
    sandbox.expect_files(&["current-tty1.json", "current-tty2.json", "current.json"]);
}

#[test]
fn each_action_in_a_slot_is_about_the_conversation_there() {
    let (server, sandbox) = numbered();
    sandbox.write_current(&stored(&["other", "terminal"]));
    sandbox.write_session(
        "current-tty1.json",
        &stored(&["one", "two", "three", "four"]),
    );
    let before = sandbox.read_bytes("current.json");
    let act = |args: &[&str]| in_slot(&sandbox, "tty1", args);
    act(&["--last"]).success().stdout("four\n");
    act(&["--copy", "branch"]).success();
    sandbox.expect_texts("branch.json", &["one", "two", "three", "four"]);
    assert_eq!(
        act(&["--status", "-j"]).success().stdout_json()["conversation"]["messages"],
        4
    );
    act(&["--again"]).success();
    assert!(prompt(&server.request()).ends_with("Human: three"));
    sandbox.expect_texts("current-tty1.json", &["one", "two", "three", "answer 0"]);
    act(&["--undo"]).success().stdout("three\n");
    act(&["--clear"]).exit(0);
    sandbox.expect_files(&["branch.json", "current.json"]);
    sandbox.expect_bytes("current.json", before);
}

#[test]
fn a_new_question_in_a_slot_leaves_that_one_alone() {
    let (_server, sandbox) = numbered();
    for file in ["current.json", "current-tty2.json", "work.json"] {
        sandbox.write_session(file, &stored(&["other", "terminal"]));
    }
    sandbox.write_session("current-tty1.json", &stored(&["one", "two"]));
    let before = snapshot(sandbox.sessions());

    in_slot(&sandbox, "tty1", &["three"]).success();
    sandbox.expect_texts(ARCHIVED, &["one", "two"]);
    sandbox.expect_texts("current-tty1.json", &["three", "answer 0"]);
    let new = format!("+ {}", sandbox.target("current-tty1.json").expect("a link"));
    assert_eq!(
        before.changes(),
        [&format!("+ {ARCHIVED}"), &new, "~ current-tty1.json"]
    );

    // A named conversation has nothing to do with slots.
    in_slot(&sandbox, "tty1", &["-s", "work", "more"]).success();
    assert_eq!(texts(&sandbox.session("work.json")).len(), 4);
    assert_eq!(texts(&sandbox.session("current-tty1.json")).len(), 2);
    assert_eq!(sandbox.session_files().len(), 5);
}

#[test]
fn a_slot_has_all_the_rules_of_the_current_conversation() {
    let fresh = || {
        with(
            stored(&["one", "two", "three", "four"]),
            "updated",
            "2999-01-01T00:00:00.000Z",
        )
    };
    let (server, sandbox) = numbered();
    sandbox.write_session("current-tty1.json", &fresh());
    let sandbox = sandbox.env("Q_PAIRS", "2");
    in_slot(&sandbox, "tty1", &["-f", "more"]).success();
    sandbox.expect_texts("current-tty1.json", &["three", "four", "more", "answer 0"]);
    let sent = prompt(&server.request());
    assert!(
        sent.starts_with("Previous conversation:\nHuman: one\n"),
        "{sent}"
    );

    in_slot(&sandbox, "tty1", &["-f", "-m", "other", "hi"])
        .exit(0)
        .stderr_contains("; starting a new conversation");
    sandbox.expect_texts("current-tty1.json", &["hi", "answer 1"]);
    sandbox.expect_texts(
        &sandbox.only_archived(),
        &["three", "four", "more", "answer 0"],
    );
}

#[test]
fn an_invalid_slot_is_refused_before_input_and_request() {
    let (server, sandbox) = numbered();
    for slot in NO_NAMES.iter().filter(|name| !name.is_empty()) {
        for arguments in [&["one"][..], &["-f", "one"], &[]] {
            let outcome = sandbox
                .q(arguments)
                .env("Q_SESSION", slot)
                .stdin_open()
                .run();
            outcome
                .exit(2)
                .stdout_is_empty()
                .stderr_contains("Q_SESSION");
        }
    }
    server.expect_requests(0);
    snapshot(sandbox.state()).expect_empty();
}

#[test]
fn leftovers_beside_a_file_are_removed_by_the_next_run_that_writes_or_clears_it() {
    for (args, left) in [
        (&["-s", "talk.json", "more"][..], &["talk.json"][..]),
        (&["-s", "talk.json", "--again"], &["talk.json"]),
        (&["-s", "talk.json", "--undo"], &["talk.json"]),
        (&["-s", "talk.json", "--clear"], &[]),
    ] {
        let _case = case(args);
        let (_server, sandbox) = numbered();
        sandbox.write_home(
            "talk.json",
            stored(&["one", "two", "three", "four"]).to_string(),
        );
        sandbox.write_home(".tmp-q", "{\"version\":1,");
        sandbox.q(args).run().exit(0);
        let files: Vec<_> = fs::read_dir(sandbox.home())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(files, left);
    }
}

#[test]
fn a_file_is_written_by_one_q_at_a_time_even_from_two_state_folders() {
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
            assert_eq!(
                texts.iter().filter(|text| **text == question).count(),
                1,
                "{question} in {texts:?}"
            );
        }
    }
    // Nothing but the file itself is left beside it.
    let left: Vec<_> = fs::read_dir(sandbox.home())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["talk.json"]);
}

/// Runs a command as a user who does not own the file, in these groups.
fn as_another_user(sandbox: &Sandbox, groups: &str, command: &str) -> Outcome {
    sandbox
        .shell(&format!(
            "exec setpriv --reuid 65534 --regid 65534 {groups} {command}"
        ))
        .run()
}

#[test]
fn a_file_that_a_group_shares_keeps_its_group_and_mode_or_is_refused_before_anything_is_asked() {
    let (server, sandbox) = numbered();
    for folder in [sandbox.root(), &sandbox.home(), &sandbox.state()] {
        set_mode(folder, 0o777);
    }
    // Only root can change the owner of a file, and another user may not be allowed to run what was built.
    if !as_another_user(&sandbox, "--clear-groups", "q --version")
        .status
        .success()
    {
        return eprintln!("skipped: another user cannot run q here");
    }
    let path = sandbox.home().join("talk.json");
    let give = |mode| {
        fs::write(&path, stored(&["one", "two", "three", "four"]).to_string()).unwrap();
        chown(&path, Some(65_533), Some(65_533)).unwrap();
        set_mode(&path, mode);
    };
    for command in [
        "q -s talk.json more",
        "q -s talk.json --again",
        "q -s talk.json --undo",
    ] {
        let _case = case(command);
        give(0o660);
        as_another_user(&sandbox, "--groups 65533", command).success();
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!((metadata.gid(), metadata.mode() & 0o777), (65_533, 0o660));
        // A user who is not in the group cannot keep the group.
        let asked = server.requests().len();
        for mode in [0o644, 0o666] {
            give(mode);
            let before = snapshot(sandbox.home());
            let refused = as_another_user(&sandbox, "--clear-groups", command);
            refused
                .exit(1)
                .stdout_is_empty()
                .stderr_contains("talk.json")
                .stderr_is_of_q();
            before.expect_unchanged();
        }
        server.expect_requests(asked);
    }
    // Root may keep everything.
    give(0o640);
    sandbox.q(&["-s", "talk.json", "three"]).run().success();
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!((metadata.gid(), metadata.mode() & 0o777), (65_533, 0o640));
}

#[test]
fn a_note_on_a_terminal_says_that_a_name_is_new() {
    let (server, sandbox) = numbered();
    sandbox.write_session("work.json", &stored(&["one", "two"]));
    sandbox.write_session(ARCHIVED, &stored(&["one", "two"]));
    for (name, printed) in [
        ("wrok", "q: wrok is a new conversation; did you mean work?"),
        ("garden", "q: garden is a new conversation"),
    ] {
        let terminal = Terminal::new(WIDE);
        sandbox
            .q(&["-s", name, "hi"])
            .stderr_to(terminal.end())
            .run()
            .exit(0);
        assert_eq!(terminal.screen(), [printed, ""]);
        // Not once it exists, and not in a pipe.
        let terminal = Terminal::new(WIDE);
        sandbox
            .q(&["-s", name, "hi"])
            .stderr_to(terminal.end())
            .run()
            .exit(0);
        assert_eq!(terminal.screen(), [""]);
    }
    sandbox.q(&["-s", "house", "hi"]).run().success();
    server.expect_requests(5);
}

#[test]
fn a_follow_up_by_name_needs_an_existing_conversation() {
    let (server, sandbox) = numbered();
    sandbox.write_session("work.json", &stored(&["one", "two"]));
    let before = snapshot(sandbox.sessions());
    let outcome = sandbox.q(&["-f", "-s", "wrok", "hi"]).run();
    outcome
        .exit(1)
        .stdout_is_empty()
        .stderr_contains_all(&["no conversation wrok", "did you mean work?"]);
    sandbox
        .q(&["-f", "-s", "talk.json", "hi"])
        .run()
        .exit(1)
        .stdout_is_empty()
        .stderr_contains("talk.json");
    sandbox
        .q(&["--last", "-s", "wokr"])
        .run()
        .exit(1)
        .stderr_contains("did you mean work?");
    sandbox
        .q(&["-f", "-s", "zzz", "hi"])
        .run()
        .exit(1)
        .stderr_contains("zzz")
        .stderr_lacks("did you mean");
    server.expect_requests(0);
    before.expect_unchanged();
    sandbox.q(&["-f", "-s", "work", "hi"]).run().success();
}

#[test]
fn the_right_conversation_is_cleared_or_copied_beside_a_new_question() {
    let (_server, sandbox) = numbered();
    for round in 0..75 {
        let _case = case(round);
        for action in [&["--clear"][..], &["--copy"]] {
            let before: Value = sandbox
                .q(&["--json", "before"])
                .run()
                .success()
                .stdout_json();
            let id = before["id"].as_str().expect("an id");
            let copy = format!("copy-{round}");
            let name: &[&str] = if action == ["--copy"] { &[&copy] } else { &[] };
            let question = sandbox.q(&["--json", "beside"]).spawn();
            sandbox.q(&["-s", id]).args(action).args(name).run().exit(0);
            let beside = question.wait().success().stdout_json();
            let kept = |id: &str, question: &str| {
                sandbox
                    .q(&["-s", id, "--history"])
                    .run()
                    .stdout_contains(question);
            };
            kept(beside["id"].as_str().expect("an id"), "beside");
            if action == ["--copy"] {
                kept(&copy, "before");
            }
        }
    }
}

#[test]
fn a_number_is_refused_if_a_file_before_it_cannot_be_read() {
    let (_server, sandbox) = numbered();
    sandbox.write_session(OTHER, &other(&["one", "x"]));
    age(&sandbox.sessions().join(OTHER), MINUTE);
    symlink("loop.json", sandbox.sessions().join("loop.json")).expect("a link");
    sandbox
        .q(&["-s", "%1", "more"])
        .run()
        .exit(1)
        .stderr_contains("loop.json");
}
