//! Conversations: how their file looks, when a follow-up goes on with one, and what is never touched.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::sandbox::Sandbox;
use crate::server::{Gate, Reply, Server, openai_event, openai_reply};
use crate::state::{DAY, HOUR, MODEL, conversation, held_back, only_set_aside, prompt, snapshot, texts};

/// The most bytes that the file of a conversation may have.
const LARGEST: usize = 10_000_000;

#[test]
fn a_question_is_kept_in_the_format_that_is_promised() {
    let server = Server::openai("Hello there");
    let sandbox = Sandbox::new().server_env(&server);
    let before = OffsetDateTime::now_utc() - Duration::from_millis(1);
    // The modes are q's own, whatever the mask would let through.
    sandbox.shell("umask 0; q say hello").run().success();
    let after = OffsetDateTime::now_utc();

    let kept = sandbox.current();
    assert_eq!(keys(&kept), ["created", "messages", "model", "provider", "updated", "version"]);
    assert_eq!((&kept["version"], &kept["provider"], &kept["model"]), (&json!(1), &json!("openai"), &json!(MODEL)));
    let messages = kept["messages"].as_array().unwrap();
    for (message, role, content) in [(&messages[0], "user", "say hello"), (&messages[1], "assistant", "Hello there")] {
        assert_eq!(keys(message), ["content", "role", "timestamp"], "interrupted only where true");
        assert_eq!((&message["role"], &message["content"]), (&json!(role), &json!(content)));
    }
    assert_eq!(messages.len(), 2);

    let written = [&kept["created"], &messages[0]["timestamp"], &messages[1]["timestamp"], &kept["updated"]];
    let moments = written.map(|written| {
        let text = written.as_str().unwrap();
        assert!(text.len() == "2026-11-21T10:00:00.000Z".len() && text.ends_with('Z'), "{text}");
        assert_eq!(text.as_bytes()[19], b'.', "{text}");
        OffsetDateTime::parse(text, &Rfc3339).unwrap()
    });
    assert!(moments.is_sorted() && moments[0] >= before && moments[3] <= after, "{before} {moments:?} {after}");

    for (path, mode) in [("q", 0o700), ("q/sessions", 0o700), ("q/sessions/current.json", 0o600), ("q/lock", 0o600)] {
        assert_eq!(mode_of(&sandbox.state().join(path)), mode, "{path}");
    }
}

#[test]
fn files_that_others_may_read_are_private_again_once_saved() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    for option in ["-f", "-n"] {
        sandbox.write_current(&conversation(HOUR, &["one", "1"]));
        let current = sandbox.sessions().join("current.json");
        fs::set_permissions(&current, fs::Permissions::from_mode(0o644)).unwrap();
        sandbox.q(&[option, "two"]).run().success();
        assert_eq!(mode_of(&current), 0o600, "{option}");
    }
}

#[test]
fn a_plain_question_starts_anew_and_a_follow_up_goes_on() {
    let server = Server::openai_each(|number| format!("answer {number}"));
    let sandbox = Sandbox::new().server_env(&server);
    for args in [&["one"][..], &["two"], &["-f", "three"], &["--follow", "four\n"]] {
        sandbox.q(args).run().success();
    }
    let kept = sandbox.current();
    assert_eq!(texts(&kept), ["two", "answer 1", "three", "answer 2", "four\n", "answer 3"]);
    assert_eq!(texts(&sandbox.session(&only_set_aside(&sandbox))), ["one", "answer 0"]);
    let sent: Vec<String> = server.requests().iter().map(prompt).collect();
    assert_eq!(sent[1], "two");
    assert_eq!(sent[2], "Previous conversation:\nHuman: two\n\nAssistant: answer 1\n\nHuman: three");
    let created: Vec<&Value> = [&kept["created"], &kept["messages"][0]["timestamp"]].into();
    assert_eq!(created[0], created[1], "the conversation is as old as its first question");
    assert_eq!(kept["updated"], kept["messages"][5]["timestamp"]);
}

#[test]
fn follow_ups_in_a_pipeline_go_on_with_one_conversation_in_order() {
    let server = Server::start(|request, _| {
        let asked = prompt(request);
        let last = asked.rsplit("Human: ").next().unwrap_or_default();
        openai_reply(request, &format!("<{last}>"))
    });
    let sandbox = Sandbox::new().server_env(&server);
    let piped = sandbox.shell("q one </dev/null >/dev/null; q -f two </dev/null | q -f | q -f three").run();
    piped.success();
    let kept = texts(&sandbox.current());
    assert_eq!(kept[..4], ["one", "<one>", "two", "<two>"]);
    assert_eq!(kept[4..6], ["<two>", "<<two>>"]);
    assert_eq!(kept[6], "<context>\n<<two>>\n</context>\n\nthree");
    assert_eq!((kept.len(), sandbox.session_files()), (8, vec!["current.json".to_owned()]));
}

#[test]
fn a_conversation_is_followed_until_it_was_idle_for_too_long() {
    let server = Server::openai("answer");
    const MINUTE: Duration = Duration::from_secs(60);
    for (idle, variable, file, followed) in [
        (23 * HOUR, "", "", true),
        (25 * HOUR, "", "", false),
        (25 * HOUR, "2d", "", true),
        (1000 * DAY, "never", "", true),
        (2 * HOUR, "1h", "", false),
        (2 * MINUTE, "90s", "", false),
        (MINUTE, "90s", "", true),
        (25 * HOUR, "", "expire = \"26h\"", true),
        (25 * HOUR, "24h", "expire = \"26h\"", false),
    ] {
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.config(file);
        sandbox.write_current(&conversation(idle, &["one", "1"]));
        let old = sandbox.read_bytes("current.json");
        let outcome = sandbox.q(&["-f", "two"]).env("Q_EXPIRE", variable).run();
        outcome.exit(0).stdout("answer\n");
        let sent = prompt(server.requests().last().unwrap());
        let case = format!("{idle:?} {variable:?} {file:?}");
        if followed {
            outcome.stderr_is_empty();
            assert_eq!(texts(&sandbox.current()), ["one", "1", "two", "answer"], "{case}");
            assert!(sent.starts_with("Previous conversation:"), "{case}: {sent}");
            assert_eq!(sandbox.session_files(), ["current.json"], "{case}");
        } else {
            outcome.stderr_contains("q: the conversation was idle for ").stderr_contains("q --list");
            assert_eq!(texts(&sandbox.current()), ["two", "answer"], "{case}");
            assert_eq!(sent, "two", "{case}");
            assert_eq!(sandbox.read_bytes(&only_set_aside(&sandbox)), old, "{case}");
        }
    }
}

#[test]
fn a_conversation_with_somebody_else_is_not_followed() {
    let server = Server::openai("answer");
    let own_model = "[providers.openai]\nmodel = \"other\"";
    for (args, variable, file, model, followed) in [
        // Where none is named, the conversation goes on with its own model.
        (&["-f", "two"][..], "", "", "odd-model", true),
        (&["-f", "-p", "openai", "two"], "", "", "odd-model", true),
        (&["-f", "-m", "odd-model", "two"], "", "", "odd-model", true),
        (&["-f", "two"], "odd-model", "model = \"other\"", "odd-model", true),
        (&["-f", "-m", MODEL, "two"], "", "", MODEL, false),
        (&["-f", "two"], "other", "", "other", false),
        (&["-f", "two"], "", "model = \"other\"", "other", false),
        (&["-f", "two"], "", own_model, "other", false),
        (&["-f", "-p", "groq", "two"], "", "", "openai/gpt-oss-120b", false),
        // The same model from another provider is another one.
        (&["-f", "-p", "groq", "-m", "odd-model", "two"], "", "", "odd-model", false),
    ] {
        let sandbox = Sandbox::new().server_env(&server).env("GROQ_API_KEY", "gsk-test-0123456789");
        let sandbox = sandbox.env("GROQ_BASE_URL", format!("{}/v1", server.url()));
        sandbox.config(file);
        let mut old = conversation(HOUR, &["one", "1"]);
        old["model"] = json!("odd-model");
        sandbox.write_current(&old);
        let outcome = sandbox.q(args).env("Q_MODEL", variable).run();
        let case = format!("{args:?} {variable:?} {file:?}");
        outcome.exit(0).stdout("answer\n");
        let sent = server.requests().pop().unwrap();
        assert_eq!(sent.json()["model"], model, "{case}");
        let kept = sandbox.current();
        assert_eq!(kept["model"], model, "{case}");
        if followed {
            outcome.stderr_is_empty();
            assert_eq!(texts(&kept), ["one", "1", "two", "answer"], "{case}");
        } else {
            outcome.stderr_contains(if args.contains(&"groq") { "provider" } else { "model" });
            outcome.stderr_contains("new one").stderr_contains("q --list");
            assert_eq!(prompt(&sent), "two", "{case}");
            assert_eq!(texts(&kept), ["two", "answer"], "{case}");
            assert_eq!(sandbox.session(&only_set_aside(&sandbox)), old, "{case}");
        }
    }
}

#[test]
fn what_cannot_be_followed_is_set_aside_once_the_new_answer_is_there() {
    let sound = conversation(HOUR, &["one", "1"]);
    let mut newer = sound.clone();
    newer["version"] = json!(2);
    let mut unknown_role = sound.clone();
    unknown_role["messages"][0]["role"] = json!("system");
    let padded = format!("{sound}{}", " ".repeat(LARGEST + 1 - sound.to_string().len()));
    for (what, bytes) in [
        ("corrupt", "{\"version\": 1, \"prov".to_owned()),
        ("empty", String::new()),
        ("something else", "[]".to_owned()),
        ("a role that there is not", unknown_role.to_string()),
        ("a newer version", newer.to_string()),
        ("too large", padded),
    ] {
        let gate = Gate::new();
        let held = gate.clone();
        let server = Server::start(move |_, number| match number {
            0 => held_back(&Gate::new(), "never").cut(),
            _ => held_back(&held, "answer"),
        });
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.write_bytes("current.json", &bytes);
        let current = sandbox.sessions().join("current.json");
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_045);
        File::open(&current).and_then(|file| file.set_modified(modified)).unwrap();
        let before = snapshot(&sandbox);

        let mut failing = sandbox.q(&["-f", "two"]).spawn();
        server.wait_for_requests(1);
        failing.signal(libc::SIGKILL);
        failing.wait();
        let asking = sandbox.q(&["-f", "two"]).env("Q_KEEP", "never").spawn();
        server.wait_for_requests(2);
        assert_eq!(snapshot(&sandbox), before, "{what}: changed before there was an answer");
        gate.open();
        asking.wait().exit(0).stdout("answer\n").stderr_contains("q: the conversation cannot be continued");
        assert_eq!(texts(&sandbox.current()), ["two", "answer"], "{what}");
        let aside = only_set_aside(&sandbox);
        assert_eq!(aside, "session_20260102030405.json.unreadable", "{what}");
        assert!(sandbox.read_bytes(&aside) == bytes.as_bytes(), "{what}: not as it was");
    }
}

#[test]
fn a_follow_up_with_nothing_to_follow_says_so_and_begins_a_conversation() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    let outcome = sandbox.q(&["-f", "one"]).run();
    outcome.exit(0).stdout("answer\n").stderr("q: there is no conversation to continue: this is a new one\n");
    sandbox.q(&["-f", "two"]).run().success();
    assert_eq!(texts(&sandbox.current()), ["one", "answer", "two", "answer"]);
    assert_eq!(sandbox.session_files(), ["current.json"]);
}

#[test]
fn a_note_promises_no_old_conversation_where_it_is_not_kept() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server).env("Q_KEEP", "0");
    sandbox.write_current(&conversation(25 * HOUR, &["one", "1"]));
    let outcome = sandbox.q(&["-f", "two"]).run();
    outcome.exit(0).stderr_contains("idle").stderr_lacks("set aside").stderr_lacks("--list");
    assert_eq!(sandbox.session_files(), ["current.json"]);
}

#[test]
fn the_current_conversation_keeps_its_last_pairs() {
    let server = Server::openai("answer");
    let numbers: Vec<String> = (0..40).map(|number| format!("text {number}")).collect();
    let old: Vec<&str> = numbers.iter().map(String::as_str).collect();
    for (variable, file, kept) in
        [("", "", 20), ("2", "", 2), ("1", "pairs = 7", 1), ("", "pairs = 7", 7), ("1000", "", 21)]
    {
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.config(file);
        sandbox.write_current(&conversation(HOUR, &old));
        sandbox.q(&["-f", "new"]).env("Q_PAIRS", variable).run().success();
        let mut expected = old[old.len() - 2 * (kept - 1)..].to_vec();
        expected.extend(["new", "answer"]);
        assert_eq!(texts(&sandbox.current()), expected, "{variable:?} {file:?}");
        assert_eq!(sandbox.session_files(), ["current.json"]);
    }
}

#[test]
fn fields_that_q_does_not_know_stay_as_they_are_byte_for_byte() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    let moment = crate::state::ago(HOUR);
    let above = r#""x-tags": [ 1.50, 12345678901234567890123,  "\u00e9\/" ]"#;
    let question = r#"{"stars": 1e2, "role":"user","content":"caf\u00e9 \ud83d\ude00","timestamp":"2026-01-02T03:04:05.123456+02:00"}"#;
    let answer = r#"{"role":"assistant" , "content":"1", "interrupted": true, "cost": {"b": 0.10, "a": null}}"#;
    let file = format!(
        "{{{above}, \"version\": 1, \"provider\": \"openai\", \"model\": \"{MODEL}\", \"created\": \"{moment}\", \
         \"updated\": \"{moment}\", \"messages\": [{question}, {answer}], \"title\":\"a \\\"b\\\"\"}}"
    );
    sandbox.write_bytes("current.json", file);
    for question in ["two", "three"] {
        sandbox.q(&["-f", question]).run().success();
    }
    assert!(prompt(&server.requests()[0]).starts_with("Previous conversation:\nHuman: café 😀\n\nAssistant: 1\n\n"));
    let kept = sandbox.current();
    assert_eq!(texts(&kept), ["café 😀", "1", "two", "answer", "three", "answer"]);
    assert_eq!(kept["title"], "a \"b\"");
    let written = String::from_utf8(sandbox.read_bytes("current.json")).unwrap();
    let value = |field: &'static str| field.split_once(": ").expect("a field").1;
    for fragment in [value(above), question, answer, r#""a \"b\"""#] {
        assert_eq!(written.matches(fragment).count(), 1, "{fragment} in:\n{written}");
    }
}

#[test]
fn a_request_that_fails_before_its_first_word_changes_no_file() {
    type Failing = fn() -> Reply;
    let failing: [(&str, Failing); 7] = [
        ("an error's status", || Reply::json(500, json!({"error": {"message": "overloaded"}}))),
        ("a close", || Reply::raw("")),
        ("a cut", || Reply::sse([openai_event(json!({"role": "assistant", "content": ""}), None)]).cut()),
        ("an error in the stream", || Reply::sse(["data: {\"error\":{\"message\":\"overloaded\"}}\n\n"])),
        ("an empty answer", || Reply::sse([openai_event(json!({}), Some("stop")), b"data: [DONE]\n\n".to_vec()])),
        ("no more than thoughts", || Reply::sse([openai_event(json!({"reasoning": "hm"}), None)]).cut()),
        ("a blocked answer", || Reply::sse([openai_event(json!({}), Some("content_filter"))])),
    ];
    for (what, reply) in failing {
        nothing_changes(what, reply);
    }
}

#[test]
fn an_answer_of_nothing_but_blanks_changes_no_file() {
    nothing_changes("blanks", || {
        Reply::sse([openai_event(json!({"content": "\n\n"}), None), openai_event(json!({}), Some("stop"))])
    });
    nothing_changes("blanks and a cut", || Reply::sse([openai_event(json!({"content": " \n"}), None)]).cut());
}

/// A request that fails like this leaves the state as it is, whatever it was.
#[track_caller]
fn nothing_changes(what: &str, reply: fn() -> Reply) {
    let server = Server::start(move |_, _| reply());
    let blank = Sandbox::new().server_env(&server).env("Q_RETRIES", "0");
    let sound = Sandbox::new().server_env(&server).env("Q_RETRIES", "0");
    sound.write_current(&conversation(HOUR, &["one", "1"]));
    let expired = Sandbox::new().server_env(&server).env("Q_RETRIES", "0");
    expired.write_current(&conversation(2 * DAY, &["one", "1"]));
    for (sandbox, args) in [
        (&blank, &["two"][..]),
        (&blank, &["-f", "two"]),
        (&sound, &["two"]),
        (&sound, &["-f", "two"]),
        (&expired, &["-f", "two"]),
    ] {
        let before = snapshot(sandbox);
        let outcome = sandbox.q(args).run();
        outcome.exit(1);
        outcome.check(snapshot(sandbox) == before, || format!("{what}: a file was changed"));
    }
}

#[test]
fn no_save_leaves_no_trace() {
    let server = Server::openai("answer");
    for (args, variable, file) in [
        (&["--no-save", "two"][..], "", ""),
        (&["--no-save", "-f", "two"], "", ""),
        (&["-f", "two"], "false", ""),
        (&["two"], "", "save = false"),
        (&["two"], "false", "save = true"),
        (&["--no-save", "two"], "true", "save = true"),
    ] {
        let blank = Sandbox::new().server_env(&server);
        let used = Sandbox::new().server_env(&server);
        used.write_current(&conversation(HOUR, &["one", "1"]));
        for sandbox in [&blank, &used] {
            sandbox.config(file);
            let before = snapshot(sandbox);
            let outcome = sandbox.q(args).env("Q_SAVE", variable).run();
            outcome.exit(0).stdout("answer\n");
            outcome.check(snapshot(sandbox) == before, || format!("{args:?} {variable:?} {file:?}: left a trace"));
        }
        // What is there is used all the same.
        let sent = prompt(server.requests().last().unwrap());
        assert_eq!(sent.contains("Human: one\n\nAssistant: 1"), args.contains(&"-f"), "{args:?}");
    }
}

#[test]
fn an_interrupted_run_that_saves_nothing_leaves_no_trace() {
    let server = Server::start(|_, _| Reply::sse([openai_event(json!({"content": "first "}), None)]).hang());
    let sandbox = Sandbox::new().server_env(&server);
    let before = snapshot(&sandbox);
    let mut running = sandbox.q(&["--no-save", "one"]).spawn();
    running.read_stdout_until("first ");
    running.signal(libc::SIGTERM);
    running.wait().killed_by(libc::SIGTERM);
    assert_eq!(snapshot(&sandbox), before);
}

#[test]
fn a_state_home_that_is_no_absolute_path_is_ignored() {
    let server = Server::openai("answer");
    for value in ["state", "../state", "./", ""] {
        let sandbox = Sandbox::new().server_env(&server).env("XDG_STATE_HOME", value);
        sandbox.q(&["one"]).run().success();
        let kept = sandbox.home().join(".local/state/q/sessions/current.json");
        assert!(kept.is_file(), "{value:?}");
        assert_eq!(fs::read_dir(sandbox.home()).unwrap().count(), 1, "{value:?}: nothing but .local");
        assert_eq!(fs::read_dir(sandbox.state()).unwrap().count(), 0, "{value:?}");
    }
}

#[test]
fn clear_deletes_the_conversation_whatever_it_holds() {
    let server = Server::openai("answer");
    let sound = conversation(HOUR, &["one", "1"]).to_string();
    for bytes in [sound.as_str(), "{", ""] {
        let sandbox = Sandbox::new().server_env(&server);
        sandbox.write_bytes("current.json", bytes);
        // It reads no input, and needs no provider.
        let cleared = sandbox.q(&["--clear"]).env_remove("OPENAI_API_KEY").stdin_open().run();
        cleared.success().stdout("Conversation cleared\n");
        assert_eq!(sandbox.session_files(), [""; 0]);
        let outcome = sandbox.q(&["-f", "two"]).run();
        outcome.exit(0).stderr_contains("no conversation");
        assert_eq!(texts(&sandbox.current()), ["two", "answer"]);
    }
}

#[test]
fn clear_with_nothing_there_says_the_same_and_makes_nothing() {
    let sandbox = Sandbox::new();
    let before = snapshot(&sandbox);
    let cleared = sandbox.q(&["--clear"]).run();
    cleared.exit(0).stdout("Conversation cleared\n").stderr("q: there was no conversation\n");
    assert_eq!(snapshot(&sandbox), before);
}

#[test]
fn clear_leaves_older_conversations_and_says_so() {
    for other in ["session_20260102030405.json", "session_20260102030405.json.unreadable", "named.json"] {
        let sandbox = Sandbox::new();
        sandbox.write_current(&conversation(HOUR, &["one", "1"]));
        sandbox.write_bytes(other, "{}");
        let cleared = sandbox.q(&["--clear"]).run();
        cleared.exit(0).stdout("Conversation cleared\n").stderr_contains("q: ").stderr_contains("kept");
        assert_eq!(sandbox.session_files(), [other]);
    }
}

fn keys(value: &Value) -> Vec<&str> {
    let object = value.as_object().expect("an object");
    let mut keys: Vec<&str> = object.keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).expect("what a file is").permissions().mode() & 0o7777
}

#[test]
fn a_time_that_is_yet_to_come_does_not_spread_to_new_conversations() {
    let server = Server::openai("answer");
    let sandbox = Sandbox::new().server_env(&server);
    let mut ahead = conversation(HOUR, &["one", "1"]);
    ahead["created"] = json!("2099-01-01T00:00:00.000Z");
    ahead["updated"] = ahead["created"].clone();
    sandbox.write_current(&ahead);
    sandbox.q(&["two"]).run().success();
    let current = sandbox.current();
    // Later than what it displaced, so that no two are alike; but when it was used is told as it was.
    assert_eq!(current["created"], "2099-01-01T00:00:00.001Z");
    assert_eq!(current["updated"], current["messages"][1]["timestamp"]);
}
